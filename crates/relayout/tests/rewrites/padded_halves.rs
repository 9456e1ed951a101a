//! Halves in functions: channels that are no multiple of what tensor cores take, and bodies in which no two moves meet.

use crate::common;
use crate::fold_nets::{F16, F32, Net};
use prost::Message;
use relayout::target;
use relayout_onnx::proto::ModelProto;
use relayout_verify::Tolerance;
use std::collections::BTreeMap;

/// A unit of a network that shuffles channels, without the shuffle: half of the channels pass, the others go through three convolutions.
fn unit(channels: i64) -> Net {
    let half = channels / 2;
    Net::new(17)
        .input("x", F16, &[8, 28, 28, channels])
        .node_with("Transpose", &["x"], "t", &[("perm", &[0, 3, 1, 2])])
        .node_with("Split", &["t"], "passed", &[])
        .int_attribute("axis", 1)
        .also("read")
        .floats("first", F16, &[half, half, 1, 1], true)
        .node("Conv", &["read", "first"], "a")
        .node("Relu", &["a"], "b")
        .floats("each", F16, &[half, 1, 3, 3], true)
        .node_with("Conv", &["b", "each"], "c", &[("pads", &[1, 1, 1, 1])])
        .int_attribute("group", half)
        .floats("last", F16, &[half, half, 1, 1], true)
        .node("Conv", &["c", "last"], "d")
        .node("Concat", &["passed", "d"], "e")
        .int_attribute("axis", 1)
        .node_with("Transpose", &["e"], "y", &[("perm", &[0, 2, 3, 1])])
        .output("y", F16)
}

/// Extents of the filters of the written convolutions, in the order of the file.
fn filters(bytes: &[u8]) -> Vec<Vec<i64>> {
    let model = ModelProto::decode(bytes).expect("a model");
    let graph = model.graph.expect("a graph");
    let dims = |name: &String| graph.initializer.iter().find(|t| t.name.as_ref() == Some(name)).map(|t| t.dims.clone());
    let convolutions = graph.node.iter().filter(|n| n.op_type.as_deref().is_some_and(|op| op.starts_with("Conv")));
    convolutions.filter_map(|n| n.input.get(1).and_then(dims)).collect()
}

#[test]
fn no_dense_convolution_has_odd_halves_on_both_sides() {
    let target = target("cuda-tensorcore").expect("a built-in target");
    for (channels, expected) in [
        (116, vec![vec![64, 1, 1, 58], vec![64, 3, 3, 1], vec![58, 1, 1, 64]]),
        (128, vec![vec![64, 1, 1, 64], vec![64, 3, 3, 1], vec![64, 1, 1, 64]]),
    ] {
        let bytes = unit(channels).bytes();
        let made = common::optimized_for(target.as_ref(), &bytes, &BTreeMap::new()).expect("a result");
        assert_eq!(filters(&made.bytes), expected);
        let compared = common::compared(&bytes, &made.bytes, &BTreeMap::new()).expect("both run");
        common::judged(&compared, Some(Tolerance::default())).expect("the same numbers");
    }
}

#[test]
fn bodies_that_halves_call_have_a_sum_between_moves_and_no_others_do() {
    let target = target("nhwc").expect("a built-in target");
    for (dtype, parted) in [(F16, true), (F32, false)] {
        let net = Net::new(17).input("x", dtype, &[1, 8, 8, 4]).floats("w", dtype, &[6, 4, 3, 3], true);
        let net = net.node_with("Transpose", &["x"], "t", &[("perm", &[0, 3, 1, 2])]).node("Conv", &["t", "w"], "a");
        let net = net.node_with("Transpose", &["a"], "y", &[("perm", &[0, 2, 3, 1])]).output("y", dtype);
        let made = common::optimized_for(target.as_ref(), &net.bytes(), &BTreeMap::new()).expect("a result");
        let bodies = ModelProto::decode(&made.bytes[..]).expect("a model").functions;
        let sums = |op: &str| bodies.iter().flat_map(|body| &body.node).filter(|n| n.op_type() == op).count() > 0;
        assert_eq!((sums("Transpose"), sums("Sum")), (true, parted), "{bodies:?}");
    }
}
