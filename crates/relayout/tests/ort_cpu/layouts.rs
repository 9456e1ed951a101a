//! Target `ort-cpu`, run in ONNX Runtime as the file stands and with every optimization on load: permutations that the runtime
//! is slow at, and 8-bit images with their channels last.

use crate::common;
use crate::fold_nets::{F32, I8, Net, U8, runtime};
use prost::Message;
use relayout::{Model, optimize};
use relayout_onnx::proto::{ModelProto, OperatorSetIdProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Options, verify};
use std::collections::BTreeMap;

/// The model for target `ort-cpu`, its results held against those of the input on the runtime's lowest and highest level.
fn optimized(bytes: &[u8]) -> ModelProto {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let target = OrtCpu::new(Block::of_host()).expect("a built-in target");
    let result = optimize(&model, &target, &relayout::Options::default().strict()).expect("it is optimized");
    let made = result.to_bytes().expect("it is written");
    for level in [Level::Disabled, Level::All] {
        let mut options = Options::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 3, dims: BTreeMap::new() };
        let (a, b) = (ModelSource::Bytes(bytes), ModelSource::Bytes(&made));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        assert!(comparison.exact, "{level:?}: {comparison}");
    }
    ModelProto::decode(made.as_slice()).expect("a model")
}

/// Op types in the order of the file.
fn ops(model: &ModelProto) -> Vec<&str> {
    model.graph.iter().flat_map(|g| &g.node).filter_map(|n| n.op_type.as_deref()).collect()
}

fn transpose(dtype: i32, dims: &[i64], perm: &[i64]) -> Vec<u8> {
    let net = Net::new(17).input("x", dtype, dims).node_with("Transpose", &["x"], "y", &[("perm", perm)]);
    net.output("y", dtype).bytes()
}

/// Every order of `rank` axes.
fn orders(rank: i64) -> Vec<Vec<i64>> {
    if rank == 0 {
        return vec![vec![]];
    }
    let longer =
        |shorter: Vec<i64>| (0..rank as usize).map(move |at| [&shorter[..at], &[rank - 1], &shorter[at..]].concat());
    orders(rank - 1).into_iter().flat_map(longer).collect()
}

#[test]
fn a_slow_transpose_becomes_fast_ones_with_a_view_between_them() {
    for (dims, perm) in [
        (&[1, 64, 192, 128][..], &[0, 3, 2, 1][..]),
        (&[192, 128, 96], &[2, 1, 0]),
        (&[48, 32, 64, 20], &[1, 0, 3, 2]),
        (&[48, 32, 64, 20], &[3, 2, 1, 0]),
        (&[1, 32, 80, 2, 96, 2], &[0, 3, 5, 1, 2, 4]),
    ] {
        let model = optimized(&transpose(F32, dims, perm));
        assert_eq!(ops(&model), ["Transpose", "Flatten", "Reshape", "Transpose"], "{dims:?} {perm:?}");
    }
}

#[test]
fn axes_of_size_1_are_put_into_place_by_a_view() {
    let model = optimized(&transpose(F32, &[256, 1, 300], &[2, 1, 0]));
    assert_eq!(ops(&model), ["Transpose", "Flatten", "Reshape"]);
}

#[test]
fn fast_transposes_and_those_of_symbolic_extents_that_no_view_can_say_stay() {
    for (dims, perm) in [
        (&[1, 32, 96, 64][..], &[0, 2, 3, 1][..]),
        (&[8, 64, 16, 128], &[0, 2, 1, 3]),
        (&[3, 4, 5], &[2, 1, 0]),
        (&[-1, 32, -1, -1], &[0, 3, 2, 1]),
    ] {
        assert_eq!(ops(&optimized(&transpose(F32, dims, perm))), ["Transpose"], "{dims:?} {perm:?}");
    }
}

#[test]
fn a_batch_of_any_size_goes_through_the_view() {
    let model = optimized(&transpose(F32, &[-1, 64, 192, 128], &[0, 3, 2, 1]));
    assert_eq!(ops(&model), ["Transpose", "Flatten", "Reshape", "Transpose"]);
}

#[test]
fn every_order_of_four_axes_is_exact_for_elements_of_every_size() {
    let cases = [(F32, [26, 40, 34, 24]), (F32, [1, 80, 66, 96]), (F32, [80, 66, 1, 96]), (U8, [52, 80, 34, 24])];
    for (turn, (dtype, dims)) in cases.into_iter().enumerate() {
        let perms = common::thinned(&orders(4), 2, turn);
        let net = perms.iter().enumerate().fold(Net::new(17).input("x", dtype, &dims), |net, (i, perm)| {
            let y = format!("y{i}");
            net.node_with("Transpose", &["x"], &y, &[("perm", perm)]).output(&y, dtype)
        });
        let model = optimized(&net.bytes());
        assert!(ops(&model).contains(&"Flatten"), "{dims:?}: nothing was split");
    }
}

#[test]
fn a_slow_transpose_between_other_ops_keeps_the_names_that_others_read() {
    let net = Net::new(17)
        .input("x", F32, &[128, 96, 64])
        .node("Relu", &["x"], "r")
        .node_with("Transpose", &["r"], "t", &[("perm", &[2, 1, 0])])
        .node_with("CumSum", &["t", "last"], "y", &[])
        .ints("last", &[2])
        .output("t", F32)
        .output("y", F32);
    let model = optimized(&net.bytes());
    assert!(ops(&model).contains(&"Flatten"));
}

/// The file with these ops in domain `com.microsoft`.
fn contributed(net: &Net, ops: &[&str]) -> Vec<u8> {
    let mut model = ModelProto::decode(net.bytes().as_slice()).expect("a model");
    model.opset_import.push(OperatorSetIdProto { domain: Some("com.microsoft".to_owned()), version: Some(1) });
    for node in model.graph.iter_mut().flat_map(|g| &mut g.node) {
        if node.op_type.as_deref().is_some_and(|op| ops.contains(&op)) {
            node.domain = Some("com.microsoft".to_owned());
        }
    }
    model.encode_to_vec()
}

/// A residual block of 8-bit convolutions that floats go into and come out of.
fn quantized(dtype: i32) -> Vec<u8> {
    let scale = |net: Net, name: &str, value: f32| net.values(name, F32, &[], &[value]);
    let weights = |net: Net, name: &str, dims: &[i64]| {
        let count = dims.iter().product::<i64>();
        let values: Vec<f32> = (0..count).map(|i| ((i * 37 + 11) % 101 - 50) as f32).collect();
        net.values(name, I8, dims, &values)
    };
    let mut net = Net::new(17).input("x", F32, &[2, 3, 18, 21]);
    for (name, value) in [("sx", 0.02), ("s1", 0.05), ("s2", 0.04), ("s3", 0.06), ("sw", 0.01)] {
        net = scale(net, name, value);
    }
    let per_channel: Vec<f32> = (0..16).map(|i| 0.002 + 0.0005 * i as f32).collect();
    net =
        net.values("swc", F32, &[16], &per_channel).values("zwc", I8, &[16], &[0.0; 16]).values("zw", I8, &[], &[0.0]);
    net = net.values("z", dtype, &[], &[if dtype == U8 { 120.0 } else { -3.0 }]);
    net = weights(net, "w1", &[16, 3, 3, 3]);
    net = weights(net, "w2", &[16, 1, 3, 3]);
    net = weights(net, "w3", &[16, 16, 1, 1]);
    let pads: &[i64] = &[1, 1, 1, 1];
    let around: &[(&str, &[i64])] = &[("kernel_shape", &[3, 3]), ("pads", pads)];
    let net = net
        .node("QuantizeLinear", &["x", "sx", "z"], "q")
        .node_with("QLinearConv", &["q", "sx", "z", "w1", "swc", "zwc", "s1", "z"], "c1", around)
        .node_with("MaxPool", &["c1"], "p", &[("kernel_shape", &[3, 3]), ("strides", &[2, 2]), ("pads", &[1, 1, 0, 0])])
        .node_with(
            "QLinearConv",
            &["p", "s1", "z", "w2", "swc", "zwc", "s2", "z"],
            "c2",
            &[("kernel_shape", &[3, 3]), ("pads", pads), ("group", &[16])],
        )
        .node("QLinearConv", &["c2", "s2", "z", "w3", "sw", "zw", "s2", "z"], "c3")
        .node("QLinearAdd", &["c3", "s2", "z", "p", "s1", "z", "s3", "z"], "a")
        .node_with("QLinearConcat", &["s3", "z", "a", "s3", "z", "c2", "s2", "z"], "j", &[("axis", &[1])])
        .node_with("QLinearAveragePool", &["j", "s3", "z", "s2", "z"], "v", around)
        .node("QLinearGlobalAveragePool", &["v", "s2", "z", "s2", "z"], "g")
        .node("DequantizeLinear", &["g", "s2", "z"], "y")
        .output("y", F32);
    contributed(&net, &["QLinearAdd", "QLinearConcat", "QLinearAveragePool", "QLinearGlobalAveragePool"])
}

#[test]
fn images_of_8_bits_stay_channels_last_from_the_first_convolution_to_the_last_pool() {
    for dtype in [U8, I8] {
        let model = optimized(&quantized(dtype));
        let count = |op: &str| ops(&model).iter().filter(|o| **o == op).count();
        // The image's own; after the global pool nothing is left to move.
        assert_eq!(count("Transpose"), 1, "{:?}", ops(&model));
        assert_eq!((count("NhwcMaxPool"), count("MaxPool")), (1, 0));
        let nodes = model.graph.iter().flat_map(|g| &g.node);
        let last =
            nodes.filter(|n| n.attribute.iter().any(|a| a.name.as_deref() == Some("channels_last") && a.i() == 1));
        assert_eq!(last.count(), 5, "three convolutions and two pools");
    }
}
