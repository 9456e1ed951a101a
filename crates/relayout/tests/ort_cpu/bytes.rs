//! Target `ort-cpu`: quantized networks of signed bytes as the same ones of unsigned bytes, run in ONNX Runtime before and after, with
//! its own rewrites off and on.

use crate::fold_nets::cpu::refusal;
use crate::fold_nets::{F32, I8, I64, Net, U8, runtime};
use prost::Message;
use relayout::{Model, Numerics, Options, Report, Target, optimize, target};
use relayout_onnx::proto::{ModelProto, TensorProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// What ONNX Runtime's integer ops may be off by: a step of bytes here and there.
const STEP: f64 = 0.02;

fn made_with(bytes: &[u8], target: &dyn Target, numerics: Numerics) -> (Vec<u8>, Report) {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let result = optimize(&model, target, &Options::default().numerics(numerics).strict()).expect("it is optimized");
    (result.to_bytes().expect("it is written"), result.report().clone())
}

fn ort_cpu() -> OrtCpu {
    OrtCpu::new(Block::of_host()).expect("a built-in target")
}

fn made(bytes: &[u8]) -> (Vec<u8>, Report) {
    made_with(bytes, &ort_cpu(), Numerics::Reassociate)
}

/// The model for target `ort-cpu`: as it stands it computes the same bits, and with the runtime's own rewrites it is as near as
/// quantization lets it be. Made for the target, it stays.
fn restated(net: &Net) -> ModelProto {
    let bytes = net.bytes();
    let (result, report) = made(&bytes);
    assert!(report.rewrites.contains_key("unsign_bytes"), "{}", report.explain());
    let (again, second) = made(&result);
    assert!(!second.changed && again == result);
    assert_eq!(refusal(Block::of_host(), &bytes), None);
    for (level, tolerance) in [(Level::Disabled, None), (Level::All, Some(Tolerance::new(STEP, 2.0 * STEP)))] {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: BTreeMap::new() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        assert!(tolerance.map_or(comparison.exact, |t| comparison.holds(&t)), "{level:?}: {comparison}");
    }
    ModelProto::decode(result.as_slice()).expect("a model")
}

/// The constant that the node behind this result reads at this place.
fn constant<'m>(model: &'m ModelProto, result: &str, slot: usize) -> &'m TensorProto {
    let graph = model.graph.as_ref().expect("a graph");
    let node = graph.node.iter().find(|n| n.output.iter().any(|o| o == result)).expect("a node of this result");
    let name = Some(node.input[slot].clone());
    graph.initializer.iter().find(|t| t.name == name).expect("a constant")
}

/// The one byte of a zero point, and whether it is unsigned.
fn zero(model: &ModelProto, result: &str) -> (u8, bool) {
    let c = constant(model, result, 2);
    (c.raw_data.as_ref().expect("bytes")[0], c.data_type == Some(U8))
}

/// x and what quantizations share: scale `s`, zero point `z`, weights `w` with `ws` and `wz`.
fn start(zero: i32) -> Net {
    let weights: Vec<f32> = (0..144).map(|i| ((i * 37) % 23 - 11) as f32).collect();
    Net::new(17)
        .input("x", F32, &[1, 4, 6, 6])
        .values("s", F32, &[], &[0.05])
        .values("z", zero, &[], &[3.0])
        .values("w", I8, &[4, 4, 3, 3], &weights)
        .values("ws", F32, &[], &[0.02])
        .values("wz", I8, &[], &[0.0])
}

/// Bytes of `x`, dequantized.
fn pair(net: Net, x: &str, name: &str) -> Net {
    let bytes = format!("{name}_bytes");
    net.node("QuantizeLinear", &[x, "s", "z"], &bytes).node("DequantizeLinear", &[&bytes, "s", "z"], name)
}

/// A convolution with quantized weights of `x`, quantized.
fn convolution(net: Net, x: &str, name: &str) -> Net {
    let (weights, sum) = (format!("{name}_weights"), format!("{name}_sum"));
    let net = net.node("DequantizeLinear", &["w", "ws", "wz"], &weights).node_with(
        "Conv",
        &[x, &weights],
        &sum,
        &[("pads", &[1, 1, 1, 1])],
    );
    pair(net, &sum, name)
}

/// A convolution and a sum around it: what is quantized first has two readers.
fn residual(net: Net) -> Net {
    let net = convolution(pair(net, "x", "d"), "d", "c").node("Add", &["c", "d"], "sum");
    pair(net, "sum", "y").output("y", F32)
}

#[test]
fn signed_bytes_with_two_readers_and_all_beside_them_become_unsigned() {
    let model = restated(&residual(start(I8)));
    for result in ["d_bytes", "d", "c_bytes", "c", "y_bytes", "y"] {
        assert_eq!(zero(&model, result), (131, true), "{result}");
    }
}

#[test]
fn weights_stay_signed_also_where_their_zero_point_is_that_of_activations() {
    let net = Net::new(17)
        .input("x", F32, &[1, 4, 6, 6])
        .values("s", F32, &[], &[0.05])
        .values("z", I8, &[], &[0.0])
        .values("w", I8, &[4, 4, 1, 1], &(0..16).map(|i| (i - 8) as f32).collect::<Vec<_>>())
        .node("DequantizeLinear", &["w", "s", "z"], "dw");
    let net = pair(pair(net, "x", "d").node("Conv", &["d", "dw"], "sum"), "sum", "c").node("Add", &["c", "d"], "a");
    let model = restated(&pair(net, "a", "y").output("y", F32));
    assert_eq!(constant(&model, "dw", 0).data_type, Some(I8));
    assert_eq!(zero(&model, "dw"), (0, false));
    assert_eq!(zero(&model, "d"), (128, true));
}

#[test]
fn a_signed_constant_beside_unsigned_bytes_becomes_unsigned() {
    for zero_type in [I8, U8] {
        let net = start(zero_type).values("k", I8, &[1, 4, 1, 1], &[-128.0, -1.0, 0.0, 127.0]).node(
            "DequantizeLinear",
            &["k", "ws", "wz"],
            "dk",
        );
        let net = pair(net, "x", "d").node("Add", &["d", "dk"], "sum");
        let model = restated(&pair(net, "sum", "y").output("y", F32));
        let k = constant(&model, "dk", 0);
        assert_eq!((k.data_type, k.raw_data.as_deref()), (Some(U8), Some(&[0u8, 127, 128, 255][..])));
    }
}

#[test]
fn an_activation_that_bytes_stand_for_is_looked_through() {
    let net = pair(start(I8), "x", "d").node("DequantizeLinear", &["w", "ws", "wz"], "dw");
    let net = net.node_with("Conv", &["d", "dw"], "sum", &[("pads", &[1, 1, 1, 1])]).node("Relu", &["sum"], "r");
    let net = pair(net, "r", "c").node("Add", &["c", "d"], "a");
    assert_eq!(zero(&restated(&pair(net, "a", "y").output("y", F32)), "c_bytes"), (131, true));
}

#[test]
fn a_type_that_the_node_names_is_named_anew() {
    let net = Net::new(21)
        .input("x", F32, &[1, 4, 6, 6])
        .values("s", F32, &[], &[0.05])
        .values("z", I8, &[], &[3.0])
        .node_with("QuantizeLinear", &["x", "s", "z"], "d_bytes", &[("output_dtype", &[i64::from(I8)])])
        .node("DequantizeLinear", &["d_bytes", "s", "z"], "d")
        .node("Mul", &["d", "d"], "square");
    let net = pair(net, "square", "m").node("Add", &["d", "m"], "a");
    let model = restated(&pair(net, "a", "y").output("y", F32));
    let node = &model.graph.as_ref().expect("a graph").node[0];
    assert_eq!(node.attribute[0].i, Some(i64::from(U8)));
}

#[test]
fn what_the_runtime_does_by_itself_or_can_not_do_stays() {
    let plain = |net: Net| pair(net, "x", "d");
    let wide = vec![1.0; 4 << 14];
    let stays: Vec<(&str, Net)> = vec![
        ("unsigned bytes", residual(start(U8))),
        ("one reader each", convolution(plain(start(I8)), "d", "y").output("y", F32)),
        (
            "no integer op to be made",
            plain(start(I8)).node("Exp", &["d"], "e").node("Add", &["e", "d"], "y").output("y", F32),
        ),
        ("bytes that leave the graph", residual(start(I8)).output("d_bytes", I8)),
        (
            "bytes that another op reads",
            residual(start(I8)).node_with("Cast", &["d_bytes"], "t", &[("to", &[7])]).output("t", I64),
        ),
        (
            "a zero point that is computed",
            residual(
                Net::new(17)
                    .input("x", F32, &[1, 4, 6, 6])
                    .input("z", I8, &[])
                    .values("s", F32, &[], &[0.05])
                    .values("w", I8, &[4, 4, 3, 3], &[1.0; 144])
                    .values("ws", F32, &[], &[0.02])
                    .values("wz", I8, &[], &[0.0]),
            ),
        ),
        (
            "zero points per channel",
            residual(
                Net::new(17)
                    .input("x", F32, &[1, 4, 6, 6])
                    .values("s", F32, &[4], &[0.05, 0.04, 0.03, 0.02])
                    .values("z", I8, &[4], &[0.0; 4])
                    .values("w", I8, &[4, 4, 3, 3], &[1.0; 144])
                    .values("ws", F32, &[], &[0.02])
                    .values("wz", I8, &[], &[0.0]),
            ),
        ),
        (
            "a large constant",
            Net::new(17)
                .input("x", F32, &[1 << 14, 4])
                .values("s", F32, &[], &[0.05])
                .values("z", U8, &[], &[3.0])
                .values("kz", I8, &[], &[3.0])
                .values("k", I8, &[(1 << 14) + 1, 4], &[wide, vec![1.0; 4]].concat())
                .node("DequantizeLinear", &["k", "s", "kz"], "dk")
                .node("QuantizeLinear", &["x", "s", "z"], "q")
                .node("DequantizeLinear", &["q", "s", "z"], "d")
                .node_with("Concat", &["d", "dk"], "c", &[("axis", &[0])])
                .node("QuantizeLinear", &["c", "s", "z"], "qc")
                .node("DequantizeLinear", &["qc", "s", "z"], "y")
                .output("y", F32),
        ),
    ];
    for (why, net) in stays {
        let (_, report) = made(&net.bytes());
        assert!(!report.rewrites.contains_key("unsign_bytes"), "{why}: {}", report.explain());
    }
}

#[test]
fn sixteen_bits_stay() {
    let net = Net::new(21).input("x", F32, &[1, 4, 6, 6]).values("s", F32, &[], &[0.05]).short("z", &[], &[3]);
    let net = pair(net, "x", "d").node("Mul", &["d", "d"], "square");
    let net = pair(net, "square", "m").node("Add", &["d", "m"], "a");
    let (_, report) = made(&pair(net, "a", "y").output("y", F32).bytes());
    assert!(!report.changed, "{}", report.explain());
}

#[test]
fn exact_numerics_and_other_targets_leave_signed_bytes() {
    let bytes = residual(start(I8)).bytes();
    let (_, report) = made_with(&bytes, &ort_cpu(), Numerics::Exact);
    assert!(!report.changed, "{}", report.explain());
    for name in ["onnx", "nhwc", "x86-avx512"] {
        let other = target(name).expect("a built-in target");
        let (_, report) = made_with(&bytes, other.as_ref(), Numerics::Reassociate);
        assert!(!report.rewrites.contains_key("unsign_bytes"), "{name}: {}", report.explain());
    }
}
