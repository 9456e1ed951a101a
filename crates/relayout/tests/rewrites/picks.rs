//! Extents of tensors that are stored in another order: what picks entries of the list picks them where they are, and no node puts the
//! list in order for it.

use crate::fold_nets::{F32, I64, Net, runtime};
use prost::Message;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_verify::{Inputs, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// Images channels last, which a Relu reads channels first; `h` is its Shape.
fn images() -> Net {
    Net::new(17)
        .symbolic_input("x", F32, &["N", "H", "W", "3"])
        .node_with("Transpose", &["x"], "first", &[("perm", &[0, 3, 1, 2])])
        .node("Relu", &["first"], "r")
        .node_with("Transpose", &["r"], "y", &[("perm", &[0, 2, 3, 1])])
        .output("y", F32)
        .node("Shape", &["r"], "h")
}

/// The result of target `onnx`, held against its model in ONNX Runtime.
fn optimized(net: &Net) -> ModelProto {
    let bytes = net.bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let target = target("onnx").expect("a built-in target");
    let result = optimize(&model, target.as_ref(), &Options::default()).expect("it is optimized");
    let result = result.to_bytes().expect("it is written");
    let dims: BTreeMap<String, i64> = [("N", 2), ("H", 5), ("W", 7)].map(|(name, size)| (name.to_owned(), size)).into();
    let inputs = Inputs::Random { seed: 3, dims };
    let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
    let comparison = verify(runtime(), a, b, &inputs, &Run::default()).expect("both run");
    assert!(comparison.holds(&Tolerance::new(0.0, 0.0)), "{comparison}");
    let made = ModelProto::decode(result.as_slice()).expect("a model");
    assert_eq!(count(&made, "Transpose"), 0);
    made
}

fn count(model: &ModelProto, op: &str) -> usize {
    let nodes: &[NodeProto] = model.graph.as_ref().map_or(&[], |graph| &graph.node);
    nodes.iter().filter(|node| node.op_type.as_deref() == Some(op)).count()
}

#[test]
fn entries_are_picked_where_they_are() {
    let net = images()
        .int("rows", 2)
        .ints("ends", &[-1, 0])
        .node("Gather", &["h", "rows"], "rows_of")
        .node("Gather", &["h", "ends"], "ends_of")
        .output("rows_of", I64)
        .output("ends_of", I64);
    assert_eq!(count(&optimized(&net), "Gather"), 2);
}

#[test]
fn a_slice_becomes_a_gather_of_its_entries() {
    let net = images()
        .ints("two", &[2])
        .ints("all", &[i64::MAX])
        .ints("last", &[-1])
        .ints("low", &[i64::MIN])
        .ints("axis", &[0])
        .node("Slice", &["h", "two", "all"], "pixels")
        .node("Slice", &["h", "last", "low", "axis", "last"], "back")
        .output("pixels", I64)
        .output("back", I64);
    let model = optimized(&net);
    assert_eq!(["Gather", "Slice"].map(|op| count(&model, op)), [2, 0]);
}

#[test]
fn the_list_is_put_in_order_once_if_it_is_read_whole() {
    let net = images()
        .int("rows", 2)
        .node("Gather", &["h", "rows"], "rows_of")
        .node("Add", &["h", "h"], "twice")
        .output("rows_of", I64)
        .output("twice", I64);
    assert_eq!(count(&optimized(&net), "Gather"), 2);
    let named = images().int("rows", 2).node("Gather", &["h", "rows"], "p").output("p", I64).output("h", I64);
    assert_eq!(count(&optimized(&named), "Gather"), 2);
}
