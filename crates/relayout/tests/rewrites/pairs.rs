//! Models in quantized units keep what a runtime makes integers of: a `QuantizeLinear` with the `DequantizeLinear` behind it.

use crate::common;
use crate::fold_nets::{F32, I8, Net};
use prost::Message;
use relayout_onnx::proto::ModelProto;
use relayout_verify::{Level, ModelSource, save_as_loaded};
use std::collections::BTreeMap;

/// A value that is quantized and dequantized: both results have its name and more.
fn pair(net: Net, x: &str) -> Net {
    let [q, d] = ["q", "d"].map(|end| format!("{x}_{end}"));
    net.node("QuantizeLinear", &[x, "step", "zero"], &q).node("DequantizeLinear", &[&q, "step", "zero"], &d)
}

/// A convolution between two Transposes, as exporters of TensorFlow write it, and a pair behind it.
fn convolved(net: Net, x: &str, y: &str, [from, to, size]: [i64; 3]) -> Net {
    let [w, floats, turned, back, made] = ["w", "f", "t", "b", "c"].map(|what| format!("{y}_{what}"));
    let count = (from * to * size * size) as usize;
    let weights: Vec<f32> = (0..count).map(|i| (i * 37 % 181) as f32 - 90.0).collect();
    let net = net
        .values(&w, I8, &[to, from, size, size], &weights)
        .node("DequantizeLinear", &[&w, "scale", "zero"], &floats)
        .node_with("Transpose", &[x], &turned, &[("perm", &[0, 3, 1, 2])])
        .node_with("Conv", &[&turned, &floats], &made, &[("pads", &[size / 2; 4])])
        .node_with("Transpose", &[&made], &back, &[("perm", &[0, 2, 3, 1])])
        .node("Identity", &[&back], y);
    pair(net, y)
}

/// Three convolutions, the first of which is read twice, and a head whose rows are listed.
fn network() -> Net {
    let net = Net::new(13)
        .input("x", F32, &[1, 12, 12, 8])
        .values("step", F32, &[], &[0.05])
        .values("scale", F32, &[], &[0.01])
        .values("zero", I8, &[], &[0.0])
        .ints("rows", &[1, -1, 4]);
    let net = convolved(pair(net, "x"), "x_d", "a", [8, 16, 3]);
    let net = convolved(net, "a_d", "b", [16, 16, 1]);
    let net = pair(net.node("Add", &["a_d", "b_d"], "s"), "s");
    let net = convolved(net, "s_d", "h", [16, 8, 3]);
    net.node("Reshape", &["h_d", "rows"], "y").output("y", F32)
}

/// How many convolutions of integers ONNX Runtime makes of a file.
fn of_integers(bytes: &[u8]) -> usize {
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pairs.onnx");
    save_as_loaded(common::runtime(), ModelSource::Bytes(bytes), Level::All, &place).expect("it loads");
    let model = ModelProto::decode(std::fs::read(place).expect("it is saved").as_slice()).expect("a model");
    model.graph.iter().flat_map(|g| &g.node).filter(|n| n.op_type() == "QLinearConv").count()
}

#[test]
fn no_move_parts_a_pair() {
    let bytes = network().bytes();
    let made = common::optimized(&bytes, &BTreeMap::new()).expect("it computes the same");
    assert!(made.report.changed && made.report.after.nodes < made.report.before.nodes, "{}", made.report.explain());
    let model = ModelProto::decode(made.bytes.as_slice()).expect("a model");
    let nodes: Vec<_> = model.graph.iter().flat_map(|g| &g.node).collect();
    for up in nodes.iter().filter(|n| n.op_type() == "QuantizeLinear") {
        let readers = nodes.iter().filter(|n| n.input.contains(&up.output[0]));
        assert!(readers.into_iter().all(|n| n.op_type() == "DequantizeLinear"), "{}", made.report.explain());
    }
    let counts = [&bytes, &made.bytes].map(|file| of_integers(file));
    assert!(counts[0] >= 1 && counts[1] >= counts[0], "{counts:?} convolutions of integers");
}
