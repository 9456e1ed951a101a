//! Target `ort-nhwc`: channels in the order that normalizations over groups want, and heads of attention before positions. Each model is
//! run in ONNX Runtime before and after, as the file stands and with every optimization on load.

use crate::fold_nets::{F32, I8, I32, I64, Net, U8, runtime};
use prost::Message;
use relayout::device::audit_device;
use relayout::proof::Unproved;
use relayout::targets::{OrtNhwc, Provider};
use relayout::{Model, Numerics, Options, optimize, target};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

const SAME: (&str, &[i64]) = ("pads", &[1, 1, 1, 1]);
/// Rows and columns of images.
const SIDE: i64 = 12;

fn made(bytes: &[u8], numerics: Numerics) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let target = target("ort-nhwc").expect("a built-in target");
    let result =
        optimize(&model, target.as_ref(), &Options::default().numerics(numerics).strict()).expect("it is optimized");
    result.to_bytes().expect("it is written")
}

fn for_webgpu(net: &Net) -> Vec<u8> {
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    let target = OrtNhwc::of(Provider::of("webgpu").expect("a known provider"));
    let result = optimize(&model, &target, &Options::default().strict()).expect("it is optimized");
    result.to_bytes().expect("it is written")
}

/// The model for WebGPU, its results held against those of the input.
fn on_webgpu(net: &Net) -> ModelProto {
    held(net, &for_webgpu(net))
}

/// The model for the target, its results held against those of the input.
fn optimized(net: &Net) -> ModelProto {
    held(net, &made(&net.bytes(), Numerics::Reassociate))
}

fn held(net: &Net, result: &[u8]) -> ModelProto {
    let bytes = net.bytes();
    let sizes: BTreeMap<String, i64> = net.reads_symbol("N").then(|| ("N".to_owned(), 2)).into_iter().collect();
    for level in [Level::Disabled, Level::All] {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: sizes.clone() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(result));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        assert!(comparison.holds(&Tolerance::new(2e-5, 4e-4)), "{level:?}: {comparison}");
    }
    ModelProto::decode(result).expect("a model")
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |graph| &graph.node)
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|node| node.op_type.as_deref() == Some(op)).count()
}

/// Transposes that exchange two neighbouring axes: parts of channels.
fn swaps(model: &ModelProto) -> usize {
    nodes(model).iter().filter(|node| is_swap(node)).count()
}

fn is_swap(node: &NodeProto) -> bool {
    node.op_type.as_deref() == Some("Transpose")
        && node.attribute.iter().any(|attr| [[0, 1, 3, 2], [0, 2, 1, 3]].iter().any(|perm| attr.ints == *perm))
}

/// A network of images, whose values have numbered names.
struct Unet {
    net: Net,
    made: usize,
}

impl Unet {
    /// An image of three channels, `x`, and a time step `t` of 16 numbers.
    fn new(batch: &str) -> Unet {
        let side = SIDE.to_string();
        let net =
            Net::new(17).symbolic_input("x", F32, &[batch, "3", &side, &side]).symbolic_input("t", F32, &[batch, "16"]);
        Unet { net, made: 0 }
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("v{}", self.made)
    }

    fn with(&mut self, add: impl FnOnce(Net) -> Net) {
        let net = std::mem::replace(&mut self.net, Net::new(17));
        self.net = add(net);
    }

    fn op(&mut self, op: &str, inputs: &[&str], ints: &[(&str, &[i64])]) -> String {
        let y = self.fresh();
        self.with(|net| net.node_with(op, inputs, &y, ints));
        y
    }

    /// Weights of this size that keep sums of them small, and a bias.
    fn weights(&mut self, dims: &[i64]) -> [String; 2] {
        let (w, b) = (self.fresh(), self.fresh());
        let (taps, filters) = (dims[1..].iter().product::<i64>(), dims[0]);
        let value = |i: i64| ((i * 7919 + taps) % 23 - 11) as f32 / (8.0 * (taps as f32).sqrt());
        let values: Vec<f32> = (0..filters * taps).map(value).collect();
        self.with(|net| net.values(&w, F32, dims, &values).floats(&b, F32, &[filters], true));
        [w, b]
    }

    fn conv(&mut self, x: &str, from: i64, to: i64) -> String {
        let [w, b] = self.weights(&[to, from, 3, 3]);
        self.op("Conv", &[x, &w, &b], &[SAME])
    }

    /// What exporters write of a normalization over groups, and an activation.
    fn norm(&mut self, x: &str, groups: i64, channels: i64) -> String {
        let [apart, image, unit, zero, gamma, beta, even] = [(); 7].map(|()| self.fresh());
        self.with(|net| {
            net.ints(&apart, &[0, groups, -1])
                .ints(&image, &[0, channels, SIDE, SIDE])
                .values(&unit, F32, &[groups], &vec![1.0; groups as usize])
                .values(&zero, F32, &[groups], &vec![0.0; groups as usize])
                .floats(&gamma, F32, &[channels, 1, 1], true)
                .floats(&beta, F32, &[channels, 1, 1], true)
        });
        let rows = self.op("Reshape", &[x, &apart], &[]);
        self.with(|net| {
            net.node("InstanceNormalization", &[&rows, &unit, &zero], &even).float_attribute("epsilon", 1e-4)
        });
        let back = self.op("Reshape", &[&even, &image], &[]);
        let scaled = self.op("Mul", &[&back, &gamma], &[]);
        let shifted = self.op("Add", &[&scaled, &beta], &[]);
        let gate = self.op("Sigmoid", &[&shifted], &[]);
        self.op("Mul", &[&shifted, &gate], &[])
    }

    /// Norm, convolution, the time step, norm, convolution, and the sum with what it read.
    fn unit(&mut self, x: &str, groups: i64, channels: i64) -> String {
        let a = self.norm(x, groups, channels);
        let a = self.conv(&a, channels, channels);
        let [w, b] = self.weights(&[channels, 16]);
        let time = self.op("Gemm", &["t", &w, &b], &[("transB", &[1])]);
        let axes = self.fresh();
        self.with(|net| net.ints(&axes, &[2, 3]));
        let time = self.op("Unsqueeze", &[&time, &axes], &[]);
        let a = self.op("Add", &[&a, &time], &[]);
        let a = self.norm(&a, groups, channels);
        let a = self.conv(&a, channels, channels);
        self.op("Add", &[&a, x], &[])
    }

    /// With a last convolution to `y`.
    fn end(mut self, x: &str, channels: i64, batch: &str) -> Net {
        let [w, b] = self.weights(&[3, channels, 3, 3]);
        self.with(|net| net.node_with("Conv", &[x, &w, &b], "y", &[SAME]));
        let side = SIDE.to_string();
        self.net.symbolic_output("y", F32, &[batch, "3", &side, &side])
    }
}

#[test]
fn channels_lie_as_normalizations_read_them_from_convolution_to_convolution() {
    for batch in ["1", "N"] {
        let mut unet = Unet::new(batch);
        let mut x = unet.conv("x", 3, 24);
        for _ in 0..3 {
            x = unet.unit(&x, 4, 24);
        }
        let x = unet.norm(&x, 4, 24);
        let model = optimized(&unet.end(&x, 24, batch));
        assert_eq!((count(&model, "InstanceNormalization"), swaps(&model)), (7, 0), "{batch}");
    }
}

/// What has channels between a convolution and a normalization over groups of them, all in floats: how it is written, by name.
type Between = (&'static str, fn(Net, &str, &str) -> Net);

const DOUBLED: (&str, &[i64]) = ("strides", &[2, 2]);

fn between() -> Vec<Between> {
    vec![
        ("ConvTranspose with a bias", |net, x, y| {
            let net = net.floats("w", F32, &[24, 24, 2, 2], true).floats("b", F32, &[24], true);
            net.node_with("ConvTranspose", &[x, "w", "b"], y, &[DOUBLED])
        }),
        ("ConvTranspose of a filter each", |net, x, y| {
            let net = net.floats("w", F32, &[24, 1, 2, 2], true).floats("b", F32, &[24], true);
            net.node_with("ConvTranspose", &[x, "w", "b"], y, &[DOUBLED, ("group", &[24])])
        }),
        ("ConvTranspose of groups", |net, x, y| {
            let net = net.floats("w", F32, &[24, 8, 2, 2], true).floats("b", F32, &[24], true);
            net.node_with("ConvTranspose", &[x, "w", "b"], y, &[DOUBLED, ("group", &[3])])
        }),
        ("Conv of groups", |net, x, y| {
            let net = net.floats("w", F32, &[24, 8, 3, 3], true).floats("b", F32, &[24], true);
            net.node_with("Conv", &[x, "w", "b"], y, &[SAME, ("group", &[3])])
        }),
        ("BatchNormalization", |net, x, y| {
            let vectors = ["a", "b", "c"].iter().fold(net, |net, name| net.floats(name, F32, &[24], true));
            let net = vectors.floats("d", F32, &[24], false);
            net.node("BatchNormalization", &[x, "a", "b", "c", "d"], y)
        }),
        ("PRelu", |net, x, y| net.floats("slope", F32, &[24, 1, 1], true).node("PRelu", &[x, "slope"], y)),
        ("QLinearConv", |net, x, y| quantized_conv(net, x, y, 1, false)),
        ("QLinearConv by filter", |net, x, y| quantized_conv(net, x, y, 1, true)),
        ("QLinearConv of groups", |net, x, y| quantized_conv(net, x, y, 3, true)),
        ("QLinearConv of a filter each", |net, x, y| quantized_conv(net, x, y, 24, true)),
        ("ConvInteger", |net, x, y| {
            let net = bytes_of(net, x).floats("w", U8, &[24, 24, 3, 3], false).values("wz", U8, &[], &[1.0]);
            let net = net.node_with("ConvInteger", &["q", "w", "z", "wz"], "i", &[SAME]);
            net.node_with("Cast", &["i"], "f", &[("to", &[1])]).values("thousandth", F32, &[], &[1e-3]).node(
                "Mul",
                &["f", "thousandth"],
                y,
            )
        }),
        ("MatMulInteger by column", |net, x, y| product(net, x, y, false)),
        ("QLinearMatMul by column", |net, x, y| product(net, x, y, true)),
        ("DequantizeLinear by channel", |net, x, y| {
            let net = bytes_of(net, x).floats("scales", F32, &[24], false).floats("zeros", U8, &[24], false);
            net.node_with("DequantizeLinear", &["q", "scales", "zeros"], y, &[("axis", &[1])])
        }),
    ]
}

/// `x` in bytes as `q`, in units of `s` from `z`.
fn bytes_of(net: Net, x: &str) -> Net {
    let net = net.values("s", F32, &[], &[0.05]).values("z", U8, &[], &[120.0]);
    net.node("QuantizeLinear", &[x, "s", "z"], "q")
}

fn quantized_conv(net: Net, x: &str, y: &str, groups: i64, by_filter: bool) -> Net {
    let dims: &[i64] = if by_filter { &[24] } else { &[] };
    let net = bytes_of(net, x).floats("w", I8, &[24, 24 / groups, 3, 3], true).floats("b", I32, &[24], true);
    let net = net.floats("ws", F32, dims, false).values("wz", I8, dims, &vec![0.0; if by_filter { 24 } else { 1 }]);
    let net = net.values("ys", F32, &[], &[0.5]);
    let inputs = ["q", "s", "z", "w", "ws", "wz", "ys", "z", "b"];
    let net = net.node_with("QLinearConv", &inputs, "o", &[SAME, ("group", &[groups])]);
    net.node("DequantizeLinear", &["o", "ys", "z"], y)
}

/// A product of pixels, their channels last, and back.
fn product(net: Net, x: &str, y: &str, units: bool) -> Net {
    let net = net.node_with("Transpose", &[x], "last", &[("perm", &[0, 2, 3, 1])]);
    let net = bytes_of(net, "last").floats("w", U8, &[24, 24], false).floats("wz", U8, &[24], false);
    let net = if units {
        let net = net.floats("ws", F32, &[24], false).values("ys", F32, &[], &[0.5]);
        let net = net.node("QLinearMatMul", &["q", "s", "z", "w", "ws", "wz", "ys", "z"], "o");
        net.node("DequantizeLinear", &["o", "ys", "z"], "f")
    } else {
        let net =
            net.node("MatMulInteger", &["q", "w", "z", "wz"], "i").node_with("Cast", &["i"], "c", &[("to", &[1])]);
        net.values("thousandth", F32, &[], &[1e-3]).node("Mul", &["c", "thousandth"], "f")
    };
    net.node_with("Transpose", &["f"], y, &[("perm", &[0, 3, 1, 2])])
}

#[test]
fn every_operand_that_has_the_channels_follows_them() {
    for (what, add) in between() {
        let mut unet = Unet::new("1");
        let a = unet.conv("x", 3, 24);
        let b = unet.fresh();
        unet.with(|net| add(net, &a, &b));
        let [apart, image, unit, zero, even] = [(); 5].map(|()| unet.fresh());
        let side = if what.contains("Transpose") { 2 * SIDE } else { SIDE };
        unet.with(|net| {
            net.ints(&apart, &[0, 4, -1]).ints(&image, &[0, 24, side, side]).values(&unit, F32, &[4], &[1.0; 4]).values(
                &zero,
                F32,
                &[4],
                &[0.0; 4],
            )
        });
        let rows = unet.op("Reshape", &[&b, &apart], &[]);
        unet.with(|net| net.node("InstanceNormalization", &[&rows, &unit, &zero], &even));
        let x = unet.op("Reshape", &[&even, &image], &[]);
        let [w, bias] = unet.weights(&[3, 24, 3, 3]);
        unet.with(|net| net.node_with("Conv", &[&x, &w, &bias], "y", &[SAME]));
        let net = unet.net.output("y", F32);
        for result in [made(&net.bytes(), Numerics::Reassociate), made(&net.bytes(), Numerics::Exact), for_webgpu(&net)]
        {
            let held = std::panic::catch_unwind(|| held(&net, &result));
            assert!(held.is_ok(), "{what}");
        }
    }
}

#[test]
fn a_concatenation_keeps_its_channels_and_a_move_stands_before_it() {
    let mut unet = Unet::new("1");
    let a = unet.conv("x", 3, 24);
    let a = unet.unit(&a, 4, 24);
    let a = unet.unit(&a, 4, 24);
    let b = unet.conv(&a, 24, 8);
    let x = unet.op("Concat", &[&b, &a], &[("axis", &[1])]);
    let x = unet.norm(&x, 4, 32);
    let model = optimized(&unet.end(&x, 32, "1"));
    // The skip is read in its own order, and so is what the last normalization reads.
    assert_eq!((count(&model, "InstanceNormalization"), swaps(&model)), (5, 2));
}

/// What ends behind a normalization: what makes the values whose channels are exchanged.
fn exchanged_behind_a_normalization(ends: impl FnOnce(&mut Unet, &str) -> Vec<String>) -> Vec<String> {
    let mut unet = Unet::new("1");
    let a = unet.conv("x", 3, 24);
    let n = unet.norm(&a, 4, 24);
    let outputs = ends(&mut unet, &n);
    let model = optimized(&outputs.into_iter().fold(unet.net, |net, y| net.output(&y, F32)));
    nodes(&model).iter().filter(|node| is_swap(node)).map(|node| maker(&model, &node.input[0])).collect()
}

/// The op that makes a value, through what only moves it.
fn maker(model: &ModelProto, value: &str) -> String {
    let made = nodes(model).iter().find(|node| node.output.iter().any(|y| y == value)).expect("it is made");
    if matches!(made.op_type(), "Reshape" | "Transpose") {
        maker(model, &made.input[0])
    } else {
        made.op_type().to_owned()
    }
}

/// What a pool over all pixels leaves, behind other channels.
fn pooled(unet: &mut Unet, n: &str, pool: &str) -> String {
    let (mean, more) = (unet.op(pool, &[n], &[]), unet.fresh());
    unet.with(|net| net.input(&more, F32, &[1, 8, 1, 1]));
    unet.op("Concat", &[&mean, &more], &[("axis", &[1])])
}

#[test]
fn a_move_behind_a_normalization_goes_where_as_many_of_fewer_elements_do() {
    let one = exchanged_behind_a_normalization(|unet, n| vec![pooled(unet, n, "GlobalAveragePool")]);
    assert_eq!(one, ["GlobalAveragePool"]);
    // It stays where two would stand in its place.
    let pools = ["GlobalAveragePool", "GlobalMaxPool"];
    let two = exchanged_behind_a_normalization(|unet, n| pools.map(|pool| pooled(unet, n, pool)).to_vec());
    assert_eq!(two, ["InstanceNormalization"]);
}

#[test]
fn what_knows_channels_by_their_numbers_keeps_a_network_as_it_was() {
    // Both what is normalized and the result of that are outputs.
    let mut unet = Unet::new("1");
    let a = unet.conv("x", 3, 24);
    let n = unet.norm(&a, 4, 24);
    let side = SIDE.to_string();
    let mut net = unet.end(&n, 24, "1");
    for output in [&a, &n] {
        net = net.symbolic_output(output, F32, &["1", "24", &side, &side]);
    }
    let model = optimized(&net);
    assert_eq!(count(&model, "InstanceNormalization"), 1);
    let exact = ModelProto::decode(made(&net.bytes(), Numerics::Exact).as_slice()).expect("a model");
    assert_eq!(swaps(&exact), 0, "nothing is read in groups where every bit has to stay");
}

/// Attention of one sequence or several: queries and keys without a bias, rows that are flattened or not.
fn attention(batch: i64, flat: bool) -> Net {
    let (heads, width, positions) = (3_i64, 8_i64, 20_i64);
    let columns = heads * width;
    let rows: &[i64] = if flat { &[batch * positions, columns] } else { &[batch, positions, columns] };
    let mut net = Net::new(17).input("x", F32, &[batch, positions, columns]);
    net = net.ints("apart", &[batch, positions, heads, width]).ints("rows", rows);
    for (name, perm) in [("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])] {
        let [w, m, r] = ["w", "m", "r"].map(|what| format!("{name}.{what}"));
        net = net.floats(&w, F32, &[columns, columns], true).node("MatMul", &["x", &w], &m);
        net = net.node("Reshape", &[&m, "apart"], &r).node_with("Transpose", &[&r], name, &[("perm", &perm)]);
    }
    net = net.values("s", F32, &[], &[0.05]).node("MatMul", &["q", "k"], "scores").node(
        "Mul",
        &["scores", "s"],
        "scaled",
    );
    net =
        net.node_with("Softmax", &["scaled"], "shares", &[("axis", &[-1])]).node("MatMul", &["shares", "v"], "context");
    net = net.node_with("Transpose", &["context"], "turned", &[("perm", &[0, 2, 1, 3])]);
    net = net.node("Reshape", &["turned", "rows"], "merged").floats("o", F32, &[columns, columns], true);
    net = net.floats("b", F32, &[columns], true).node("MatMul", &["merged", "o"], "z").node("Add", &["z", "b"], "y");
    net.output("y", F32)
}

#[test]
fn heads_of_one_sequence_need_no_transpose() {
    for flat in [false, true] {
        let model = optimized(&attention(1, flat));
        let left = ["Transpose", "Conv", "Einsum", "MatMul"].map(|op| count(&model, op));
        // Two are those of the convolution, which the runtime undoes.
        assert_eq!(left, [2, 1, 1, 4], "flat: {flat}");
    }
}

#[test]
fn heads_of_several_sequences_are_gathered_by_a_convolution() {
    for flat in [false, true] {
        let model = optimized(&attention(3, flat));
        assert_eq!(count(&model, "Conv"), 1, "flat: {flat}");
        assert!(count(&model, "Transpose") <= 5, "flat: {flat}");
    }
}

/// Attention whose queries, keys and values are one product with a bias, queries and keys each times a number.
fn joined_attention(scaled: bool) -> Net {
    let (heads, width, positions) = (3_i64, 8_i64, 20_i64);
    let columns = heads * width;
    let mut net = Net::new(17).input("x", F32, &[1, positions, columns]);
    net =
        net.ints("apart", &[1, positions, 3, heads, width]).ints("rows", &[1, positions, columns]).ints("first", &[0]);
    net = net.floats("w", F32, &[columns, 3 * columns], true).floats("b", F32, &[3 * columns], true);
    net = net.node("MatMul", &["x", "w"], "m").node("Add", &["m", "b"], "p").node("Reshape", &["p", "apart"], "r");
    net = net.node_with("Transpose", &["r"], "t", &[("perm", &[2, 0, 3, 1, 4])]).ints("one", &[1, 1, 1]);
    net = net.node_with("Split", &["t", "one"], "q5", &[("axis", &[0])]).also("k5").also("v5");
    for (name, part) in [("q", "q5"), ("k", "k5"), ("v", "v5")] {
        net = net.node("Squeeze", &[part, "first"], name);
    }
    net = net.node_with("Transpose", &["k"], "kt", &[("perm", &[0, 1, 3, 2])]).values("s", F32, &[], &[0.3]);
    let (q, k) = if scaled {
        net = net.node("Mul", &["q", "s"], "qs").node("Mul", &["kt", "s"], "ks");
        ("qs", "ks")
    } else {
        ("q", "kt")
    };
    net = net.node("MatMul", &[q, k], "scores").node_with("Softmax", &["scores"], "shares", &[("axis", &[-1])]);
    net = net.node("MatMul", &["shares", "v"], "context");
    net = net.node_with("Transpose", &["context"], "turned", &[("perm", &[0, 2, 1, 3])]);
    net = net.node("Reshape", &["turned", "rows"], "merged").floats("o", F32, &[columns, columns], true);
    net.node("MatMul", &["merged", "o"], "y").output("y", F32)
}

#[test]
fn a_bias_of_heads_is_a_node_where_one_of_two_scales_goes() {
    let model = optimized(&joined_attention(true));
    let left = ["Transpose", "Add", "Mul", "Einsum", "Conv"].map(|op| count(&model, op));
    assert_eq!(left, [2, 1, 1, 1, 1]);
    // Without scales the product stays one with its bias.
    let model = optimized(&joined_attention(false));
    let left = ["Add", "Mul", "Einsum", "Conv"].map(|op| count(&model, op));
    assert_eq!(left, [1, 0, 1, 1]);
    assert!(nodes(&model).iter().any(|node| node.output.first().is_some_and(|y| y == "p")), "the sum is as it was");
}

#[test]
fn every_bit_stays_where_it_has_to() {
    let bytes = attention(1, false).bytes();
    let exact = ModelProto::decode(made(&bytes, Numerics::Exact).as_slice()).expect("a model");
    assert_eq!(count(&exact, "Conv"), 0);
}

/// An image that is resized between two convolutions.
fn resized(mode: &'static str) -> Net {
    Net::new(17)
        .input("x", F32, &[1, 3, 6, 6])
        .floats("w", F32, &[4, 3, 1, 1], true)
        .floats("v", F32, &[5, 4, 1, 1], true)
        .values("scales", F32, &[4], &[1.0, 1.0, 2.0, 2.0])
        .node("Conv", &["x", "w"], "a")
        .node("Resize", &["a", "", "scales"], "b")
        .text_attribute("mode", mode)
        .node("Conv", &["b", "v"], "y")
        .output("y", F32)
}

#[test]
fn webgpu_interpolates_images_only_channels_first() {
    let scales = |model: &ModelProto| {
        let node = nodes(model).iter().find(|node| node.op_type.as_deref() == Some("Resize")).expect("a Resize");
        node.input.get(2).cloned().expect("scales")
    };
    assert_ne!(scales(&on_webgpu(&resized("nearest"))), "scales", "they are put in another order");
    assert_eq!(scales(&on_webgpu(&resized("cubic"))), "scales");
    // By products, channels last.
    assert_eq!(count(&on_webgpu(&resized("linear")), "Resize"), 0);
}

/// A provider in sessions that run convolutions channels last, and no others: of networks as small as these the others run moves faster.
pub(crate) fn channels_last(provider: &str) -> Provider {
    let mut provider = Provider::of(provider).expect("a known provider");
    provider.channels_first = None;
    provider
}

/// The model for CUDA, its results held against those of the input, and the Transposes that are left of both on the device.
fn on_cuda(net: &Net) -> (ModelProto, [usize; 2]) {
    audited(net, "cuda")
}

/// The model for a provider, its results held against those of the input, and the Transposes that are predicted of both.
fn audited(net: &Net, provider: &str) -> (ModelProto, [usize; 2]) {
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    let provider = channels_last(provider);
    let left = audit_device(&model, &provider, &Options::default()).expect("it is audited");
    let result = optimize(&model, &OrtNhwc::of(provider), &Options::default().strict()).expect("it is optimized");
    let bytes = result.to_bytes().expect("it is written");
    (held(net, &bytes), [left.file.transposes, left.optimized.transposes])
}

/// A network of images that are made twice as large between convolutions, three times, with what was there before beside them.
pub(crate) fn unet(mode: &'static str, coordinates: &'static str) -> Net {
    let mut net = Net::new(17).input("x", F32, &[1, 3, 8, 8]).values("twice", F32, &[4], &[1.0, 1.0, 2.0, 2.0]);
    let mut x = "x".to_owned();
    for (i, from) in [3, 8, 8].into_iter().enumerate() {
        let [w, a, b, r] = ["w", "a", "b", "r"].map(|what| format!("{what}{i}"));
        net = net.floats(&w, F32, &[8, from, 1, 1], true).node("Conv", &[&x, &w], &a).node("Relu", &[&a], &b);
        net = net.node("Resize", &[&b, "", "twice"], &r).text_attribute("mode", mode);
        net = net.text_attribute("coordinate_transformation_mode", coordinates);
        if mode == "nearest" {
            net = net.text_attribute("nearest_mode", "floor");
        }
        x = r;
    }
    net.floats("v", F32, &[2, 8, 1, 1], true).node("Conv", &[&x, "v"], "y").output("y", F32)
}

#[test]
fn a_network_whose_images_are_resized_leaves_the_transposes_of_its_ends_on_cuda() {
    for (mode, coordinates) in [("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners")] {
        let (model, left) = on_cuda(&unet(mode, coordinates));
        assert_eq!(left, [8, 2], "{mode}, {coordinates}");
        assert_eq!(count(&model, "Resize"), if mode == "nearest" { 3 } else { 0 });
    }
    let net = unet("linear", "half_pixel");
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    let target = OrtNhwc::of(channels_last("cuda"));
    let checked = Options::default().strict().unproved(Unproved::Fail);
    let proved = optimize(&model, &target, &checked).expect("it is proved");
    let proved = ModelProto::decode(&*proved.to_bytes().expect("it is written")).expect("a model");
    assert_eq!(count(&proved, "Resize"), 0, "products are known to the checker");
    let exact = optimize(&model, &target, &Options::default().numerics(Numerics::Exact)).expect("it is optimized");
    let exact = ModelProto::decode(&*exact.to_bytes().expect("it is written")).expect("a model");
    assert_eq!(count(&exact, "Resize"), 3, "every bit has to stay");
}

#[test]
fn heads_need_no_transpose_on_cuda() {
    for (batch, flat) in [(1, false), (1, true), (3, false), (3, true)] {
        let (model, [_, left]) = on_cuda(&attention(batch, flat));
        assert!(left <= usize::from(batch > 1), "{batch} sequences, flat {flat}: {left}");
        assert_eq!(count(&model, "Einsum"), 0, "which turns its operands itself");
    }
}

#[test]
fn keys_alone_are_transposed_on_webgpu() {
    for (batch, flat) in [(1, false), (1, true), (3, false), (3, true)] {
        let net = attention(batch, flat);
        for provider in ["webgpu", "webgpu@1.27"] {
            let (model, left) = audited(&net, provider);
            assert_eq!(left, [4, 1], "{batch} sequences, flat {flat}, {provider}");
            // Einsum would be slower than the Transpose.
            assert_eq!(["Einsum", "Conv"].map(|op| count(&model, op)), [0, 1]);
        }
        let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
        let target = OrtNhwc::of(Provider::of("webgpu").expect("a known provider"));
        let exact = optimize(&model, &target, &Options::default().numerics(Numerics::Exact)).expect("it is optimized");
        let exact = ModelProto::decode(&*exact.to_bytes().expect("it is written")).expect("a model");
        assert_eq!(count(&exact, "Conv"), 0, "every bit has to stay");
    }
}

#[test]
fn a_normalization_over_one_group_stays_where_features_lie_on_cuda() {
    let mut unet = Unet::new("1");
    let a = unet.conv("x", 3, 24);
    let n = unet.norm(&a, 1, 24);
    let b = unet.conv(&n, 24, 24);
    let (_, [before, left]) = on_cuda(&unet.end(&b, 24, "1"));
    assert!(left < before && left <= 2, "{before} to {left}");
}

/// Rows and columns of images that are taken apart into windows.
const WINDOWED: i64 = 14;

/// An image `x` whose rows or columns are rolled.
fn rolled(net: Net, x: &str, y: &str, axis: i64, by: i64) -> Net {
    let [a, b] = ["head", "tail"].map(|what| format!("{y}_{what}"));
    let [at, along] = ["at", "along"].map(|what| format!("{y}_{what}"));
    let net = net.ints(&at, &[by]).ints(&along, &[axis]);
    let net = net.node("Slice", &[x, &at, "end", &along], &a).node("Slice", &[x, "start", &at, &along], &b);
    net.node_with("Concat", &[&a, &b], y, &[("axis", &[axis])])
}

/// A map of shifted windows, from a product to a sum.
fn shifted(across: i64) -> Net {
    let net = Net::new(17).input("x", F32, &[1, WINDOWED, WINDOWED, 8]).floats("w", F32, &[8, 8], true);
    let net = net.ints("start", &[0]).ints("end", &[i64::MAX]).node("MatMul", &["x", "w"], "m");
    let net = rolled(rolled(net, "m", "r1", 1, 3), "r1", "r2", across, 3).ints("apart", &[1, 2, 7, 2, 7, 8]);
    let net = net.node("Reshape", &["r2", "apart"], "a").node_with(
        "Transpose",
        &["a"],
        "b",
        &[("perm", &[0, 1, 3, 2, 4, 5])],
    );
    let net = net.ints("windows", &[4, 49, 8]).node("Reshape", &["b", "windows"], "c").node("Sigmoid", &["c"], "d");
    let net = net.ints("together", &[1, 2, 2, 7, 7, 8]).ints("whole", &[1, WINDOWED, WINDOWED, 8]);
    let net = net.node("Reshape", &["d", "together"], "e").node_with(
        "Transpose",
        &["e"],
        "f",
        &[("perm", &[0, 1, 3, 2, 4, 5])],
    );
    let net = net.node("Reshape", &["f", "whole"], "g");
    rolled(rolled(net, "g", "r3", 1, -3), "r3", "r4", across, -3).node("Add", &["r4", "x"], "s").node(
        "Relu",
        &["s"],
        "y",
    )
}

#[test]
fn rows_of_shifted_windows_are_picked_once_on_cuda() {
    let moves = |model: &ModelProto| ["Gather", "Slice", "Concat", "Transpose"].map(|op| count(model, op));
    let net = shifted(2).output("y", F32);
    assert_eq!(moves(&on_cuda(&net).0), [2, 0, 0, 0]);
    assert_eq!(count(&optimized(&net), "Gather"), 0, "the data of QNN says nothing of it");
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    let exact = optimize(&model, &OrtNhwc::of(channels_last("cuda")), &Options::default().numerics(Numerics::Exact));
    let exact = ModelProto::decode(&*exact.expect("it is optimized").to_bytes().expect("it is written"));
    assert_eq!(moves(&exact.expect("a model")), [2, 0, 0, 0], "no bit changes");
    // Another reads what is between: rows are picked from there on.
    let read = shifted(2).node("Relu", &["r1"], "z").output("y", F32).output("z", F32);
    assert_eq!(moves(&on_cuda(&read).0), [3, 0, 0, 0]);
    // What moves along the innermost axis is not rows.
    assert!(count(&on_cuda(&shifted(3).output("y", F32)).0, "Concat") >= 2);
}

/// Four convolutions of so many channels and rows, with a shuffle of channels behind the first one.
pub(crate) fn convolutions(side: i64, channels: i64) -> Net {
    let mut net = Net::new(17).input("x", F32, &[1, 3, side, side]).ints("whole", &[1, channels, side, side]);
    net = net.ints("parts", &[1, 2, channels / 2, side, side]);
    let mut x = "x".to_owned();
    for (i, from) in [3, channels, channels, channels].into_iter().enumerate() {
        let [w, y] = ["w", "y"].map(|what| format!("{what}{i}"));
        net = net.floats(&w, F32, &[channels, from, 1, 1], true).node("Conv", &[&x, &w], &y);
        x = y;
        if i == 0 {
            net = net.node("Reshape", &[&x, "parts"], "a").node_with(
                "Transpose",
                &["a"],
                "b",
                &[("perm", &[0, 2, 1, 3, 4])],
            );
            net = net.node("Reshape", &["b", "whole"], "c");
            "c".clone_into(&mut x);
        }
    }
    net.output(&x, F32)
}

#[test]
fn a_file_for_cuda_is_for_the_sessions_whose_moves_cost_less() {
    // What kernels turn by themselves in default sessions grows with the images; two Transposes of a small one are two starts of a kernel.
    for (side, channels, session, other) in
        [(6, 4, "prefer_nhwc=0", "prefer_nhwc=1"), (112, 64, "prefer_nhwc=1", "prefer_nhwc=0")]
    {
        let net = convolutions(side, channels);
        let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
        let target = OrtNhwc::of(Provider::of("cuda").expect("a known provider"));
        let result = optimize(&model, &target, &Options::default().strict()).expect("it is optimized");
        let device = result.report().device.clone().expect("a device");
        let instead = device.instead.expect("another kind of sessions");
        assert_eq!((device.session.as_deref(), instead.session.as_str()), (Some(session), other));
        assert!(device.predicted_ns.is_some_and(|ns| ns < instead.predicted_ns), "{side}");
        let line = result.report().line();
        assert!(
            line.contains(&format!("in sessions with {session}")) && line.contains(&format!("for {other}")),
            "{line}"
        );
        let bytes = result.to_bytes().expect("it is written");
        held(&net, &bytes);
        let written = Model::from_bytes(bytes.into(), None).expect("it opens");
        assert_eq!(written.metadata("relayout.session"), Some(session));
        let audit = audit_device(&model, &Provider::of("cuda").expect("a known provider"), &Options::default());
        let audit = audit.expect("it is audited");
        assert_eq!((audit.session.as_deref(), audit.optimized), (Some(session), device.after));
        assert!(!optimize(&written, &target, &Options::default()).expect("it is optimized").report().changed);
    }
}

#[test]
fn a_model_that_gains_nothing_in_any_session_says_for_which_it_is() {
    let net = Net::new(17).input("x", F32, &[1, 3, 6, 6]).floats("w", F32, &[4, 3, 1, 1], true);
    let net = net.node("Conv", &["x", "w"], "y").output("y", F32);
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    let target = OrtNhwc::of(Provider::of("cuda").expect("a known provider"));
    let result = optimize(&model, &target, &Options::default().strict()).expect("it is optimized");
    assert!(!result.report().changed);
    let line = result.report().line();
    assert!(line.contains("in sessions with prefer_nhwc=0: Transposes 0 -> 0"), "{line}");
}

/// Queries, keys and values of several windows, of one product; so many of the three are read.
fn taken_apart(parts: usize) -> Net {
    let net =
        Net::new(17).input("x", F32, &[4, 20, 24]).floats("w", F32, &[24, 72], true).node("MatMul", &["x", "w"], "m");
    let net = net.ints("apart", &[4, 20, 3, 3, 8]).node("Reshape", &["m", "apart"], "r");
    let net = net.node_with("Transpose", &["r"], "t", &[("perm", &[2, 0, 3, 1, 4])]);
    (0..parts).fold(net, |net, part| {
        let [place, taken, y] = ["place", "taken", "y"].map(|what| format!("{what}{part}"));
        let net =
            net.values(&place, I64, &[], &[part as f32]).node_with("Gather", &["t", &place], &taken, &[("axis", &[0])]);
        net.node("Relu", &[&taken], &y).output(&y, F32)
    })
}

#[test]
fn what_is_taken_apart_behind_a_transpose_is_a_split_behind_it() {
    for provider in ["qnn", "webgpu"] {
        let (model, left) = audited(&taken_apart(3), provider);
        assert_eq!((count(&model, "Gather"), count(&model, "Split"), left), (0, 1, [3, 1]), "{provider}");
    }
    // One of the parts is read by nobody, and this version moves nothing through Gathers.
    assert_eq!(count(&audited(&taken_apart(2), "qnn").0, "Split"), 0);
    assert_eq!(count(&audited(&taken_apart(3), "webgpu@1.27").0, "Split"), 0);
}

/// A network of `QLinear` ops: convolutions, a pool of their integers, a sum, and parts of channels that change places. The second scale
/// may be computed.
fn of_units(known: bool) -> Net {
    let net = bytes_of(Net::new(17).input("x", F32, &[1, 8, 8, 8]), "x").floats("w", I8, &[8, 8, 3, 3], true);
    let net = net.values("ws", F32, &[8], &[0.0137; 8]).values("wz", I8, &[8], &[0.0; 8]).floats("b", I32, &[8], true);
    let net = if known { net.values("t", F32, &[], &[0.5]) } else { net.input("t", F32, &[]) };
    let conv = ["q", "s", "z", "w", "ws", "wz", "t", "z", "b"];
    let net = net.node_with("QLinearConv", &conv, "c", &[SAME]);
    let net = net.node_with("MaxPool", &["c"], "p", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])]);
    let net = net.ints("parts", &[1, 2, 4, 4, 4]).ints("whole", &[1, 8, 4, 4]).node("Reshape", &["p", "parts"], "r");
    let net =
        net.node_with("Transpose", &["r"], "u", &[("perm", &[0, 2, 1, 3, 4])]).node("Reshape", &["u", "whole"], "m");
    let last = ["m", "t", "z", "w", "ws", "wz", "t", "z", "b"];
    net.node_with("QLinearConv", &last, "o", &[SAME]).node("DequantizeLinear", &["o", "t", "z"], "y").output("y", F32)
}

#[test]
fn units_of_integers_are_ops_between_quantizations() {
    let net = of_units(true);
    let (model, [before, left]) = audited(&net, "qnn");
    let ops = ["QLinearConv", "Conv", "MaxPool"].map(|op| count(&model, op));
    assert_eq!(ops, [0, 2, 1]);
    assert!(left < before, "{before} to {left}");
    let pool = nodes(&model).iter().find(|node| node.op_type.as_deref() == Some("MaxPool")).expect("a pool");
    let reads = |name: &str| nodes(&model).iter().find(|node| node.output.iter().any(|y| y == name));
    let mut made = pool.input.first().and_then(|x| reads(x)).expect("a node makes what it reads");
    if made.op_type.as_deref() == Some("Transpose") {
        made = reads(&made.input[0]).expect("a node makes what that reads");
    }
    assert_eq!(made.op_type.as_deref(), Some("DequantizeLinear"), "the pool is one of floats");
    // Providers that have such ops, scales that nobody knows, and bits that have to stay.
    assert_eq!(count(&audited(&net, "xnnpack").0, "QLinearConv"), 2);
    assert_eq!(count(&audited(&of_units(false), "qnn").0, "QLinearConv"), 2);
    let exact = ModelProto::decode(made_exact(&net).as_slice()).expect("a model");
    assert_eq!(count(&exact, "QLinearConv"), 2);
}

#[test]
fn parts_of_integers_are_parts_between_quantizations() {
    let net = bytes_of(Net::new(17).input("x", F32, &[1, 8, 8, 8]), "x").floats("w", I8, &[8, 8, 3, 3], true);
    let net = net.floats("v", I8, &[8, 4, 3, 3], true).ints("sizes", &[4, 4]).values("t", F32, &[], &[0.5]);
    let net = net.values("ws", F32, &[8], &[0.0137; 8]).values("wz", I8, &[8], &[0.0; 8]).floats("b", I32, &[8], true);
    let net = net.node_with("QLinearConv", &["q", "s", "z", "w", "ws", "wz", "t", "z", "b"], "c", &[SAME]);
    let net = net.node_with("MaxPool", &["c"], "p", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])]);
    let net = net.ints("parts", &[1, 2, 4, 4, 4]).ints("whole", &[1, 8, 4, 4]).node("Reshape", &["p", "parts"], "r");
    let net = net.node_with("Transpose", &["r"], "u", &[("perm", &[0, 2, 1, 3, 4])]);
    let net = net.node("Reshape", &["u", "whole"], "shuffled");
    let mut net = net.node("Split", &["shuffled", "sizes"], "h").int_attribute("axis", 1).also("k");
    for (part, y) in [("h", "m"), ("k", "n")] {
        let conv = [part, "t", "z", "v", "ws", "wz", "t", "z", "b"];
        let made = format!("{part}_made");
        net = net.node_with("QLinearConv", &conv, &made, &[SAME]).node("DequantizeLinear", &[&made, "t", "z"], y);
    }
    let (model, _) = audited(&net.output("m", F32).output("n", F32), "qnn");
    assert_eq!(["QLinearConv", "Conv", "Split"].map(|op| count(&model, op)), [0, 3, 1]);
    let split = nodes(&model).iter().find(|node| node.op_type.as_deref() == Some("Split")).expect("a Split");
    let whole = |name: &str| {
        let readers = nodes(&model).iter().filter(move |node| node.input.iter().any(|x| x == name));
        readers.map(|node| node.op_type.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    for part in &split.output {
        assert!(
            whole(part).iter().all(|op| ["QuantizeLinear", "Transpose"].contains(&op.as_str())),
            "{:?}",
            whole(part)
        );
    }
}

fn made_exact(net: &Net) -> Vec<u8> {
    made(&net.bytes(), Numerics::Exact)
}

#[test]
fn a_file_with_more_transposes_is_not_written_however_small_they_are() {
    // One Transpose of the sum, or one of each summand, which are smaller by far.
    let net = Net::new(17)
        .input("a", F32, &[1, 32, 1, 16])
        .input("b", F32, &[1, 1, 32, 16])
        .node("Add", &["a", "b"], "s")
        .node_with("Transpose", &["s"], "y", &[("perm", &[0, 3, 1, 2])])
        .output("y", F32);
    assert_eq!(count(&on_webgpu(&net), "Transpose"), 1);
}

/// Two convolutions of images `x` to `e`, with a shuffle of channels between them, so that the file is written anew.
fn shuffled(batch: &str) -> Net {
    Net::new(17)
        .symbolic_input("x", F32, &[batch, "3", "6", "6"])
        .floats("w", F32, &[4, 3, 1, 1], true)
        .floats("v", F32, &[4, 4, 1, 1], true)
        .ints("parts", &[-1, 2, 2, 6, 6])
        .ints("whole", &[-1, 4, 6, 6])
        .node("Conv", &["x", "w"], "a")
        .node("Reshape", &["a", "parts"], "b")
        .node_with("Transpose", &["b"], "c", &[("perm", &[0, 2, 1, 3, 4])])
        .node("Reshape", &["c", "whole"], "d")
        .node("Conv", &["d", "v"], "e")
}

#[test]
fn shapes_are_read_where_the_runtime_leaves_channels_first() {
    // Batches are of unknown size, so shapes are no constants.
    let net = shuffled("N")
        .floats("u", F32, &[5, 4, 1, 1], true)
        .node("Relu", &["e"], "f")
        .node("Conv", &["f", "u"], "y")
        .node("Shape", &["e"], "of_conv")
        .node("Shape", &["f"], "of_relu")
        .symbolic_output("y", F32, &["N", "5", "6", "6"])
        .output_of("of_conv", I64, &[4])
        .output_of("of_relu", I64, &[4]);
    let model = on_webgpu(&net);
    assert_eq!((count(&model, "Shape"), count(&model, "Gather")), (2, 0), "no list of extents is put in another order");
    let maker = |v: &String| nodes(&model).iter().find(|node| node.output.contains(v)).and_then(|n| n.op_type.clone());
    let read = nodes(&model).iter().filter(|node| node.op_type.as_deref() == Some("Shape")).map(|n| maker(&n.input[0]));
    let read: Vec<Option<String>> = read.collect();
    // That of the activation is the one that the next convolution reads.
    assert_eq!(read, ["Conv", "Transpose"].map(|op| Some(op.to_owned())));
}

#[test]
fn pads_that_are_computed_keep_their_order() {
    // One row or column at the end of each axis of an image, if anything of it is positive.
    let net = shuffled("1")
        .ints("ends", &[0, 0, 0, 0, 0, 0, 1, 1])
        .values("zero", F32, &[], &[0.0])
        .node_with("ReduceMax", &["x"], "most", &[("keepdims", &[0])])
        .node("Greater", &["most", "zero"], "some")
        .node_with("Cast", &["some"], "one", &[("to", &[I64.into()])])
        .node("Mul", &["one", "ends"], "pads");
    // Read by an activation, whose result is convolved, and by a convolution itself.
    let alone = net.clone().node("Pad", &["e", "pads"], "f").node("Relu", &["f"], "g").node("Conv", &["g", "v"], "y");
    let both = alone.clone().node("Conv", &["f", "v"], "z").output("y", F32).output("z", F32);
    let only = net.node("Pad", &["e", "pads"], "f").node("Conv", &["f", "v"], "y").output("y", F32);
    for net in [alone.output("y", F32), both, only] {
        let model = on_webgpu(&net);
        assert_eq!((count(&model, "Pad"), count(&model, "Gather")), (1, 0));
        let pad = nodes(&model).iter().find(|node| node.op_type.as_deref() == Some("Pad")).expect("a Pad");
        let maker = nodes(&model).iter().find(|node| node.output.contains(&pad.input[0])).expect("what it reads");
        assert_eq!(maker.op_type.as_deref(), Some("Conv"));
    }
}

/// A value that is quantized, by this scale, and dequantized.
fn pair(net: Net, x: &str, scale: &str) -> Net {
    let (q, d) = (format!("{x}_q"), format!("{x}_d"));
    net.node("QuantizeLinear", &[x, scale, "zero"], &q).node("DequantizeLinear", &[&q, scale, "zero"], &d)
}

/// Quantized halves of channels, two convolutions of an image each, that are shuffled, and of which one is convolved again. `again` is
/// the scale behind the shuffle, a constant of its own, where that of what it reads is 0.05.
fn quantized_shuffle(again: f32) -> Net {
    let net = Net::new(17)
        .input("x", F32, &[1, 3, 6, 6])
        .floats("v", F32, &[4, 3, 3, 3], true)
        .floats("w", F32, &[4, 3, 3, 3], true)
        .floats("u", F32, &[5, 4, 3, 3], true)
        .values("scale", F32, &[], &[0.05])
        .values("again", F32, &[], &[again])
        .values("zero", I8, &[], &[3.0])
        .ints("parts", &[1, 2, 4, 6, 6])
        .ints("whole", &[1, 8, 6, 6])
        .ints("none", &[0])
        .ints("half", &[4])
        .ints("all", &[8])
        .ints("channels", &[1])
        .node_with("Conv", &["x", "v"], "a", &[SAME])
        .node_with("Conv", &["x", "w"], "b", &[SAME]);
    let net = pair(pair(net, "a", "scale"), "b", "scale").node_with("Concat", &["a_d", "b_d"], "c", &[("axis", &[1])]);
    let net = pair(net, "c", "scale").node("Reshape", &["c_d", "parts"], "e");
    let net = pair(net, "e", "scale").node_with("Transpose", &["e_d"], "f", &[("perm", &[0, 2, 1, 3, 4])]);
    let net = pair(net, "f", "scale").node("Reshape", &["f_d", "whole"], "g");
    let net = pair(net, "g", "again").node("Slice", &["g_d", "none", "half", "channels"], "h").node(
        "Slice",
        &["g_d", "half", "all", "channels"],
        "i",
    );
    pair(pair(net, "h", "again"), "i", "again")
        .node_with("Conv", &["h_d", "u"], "y", &[SAME])
        .node("Relu", &["i_d"], "z")
        .output("y", F32)
        .output("z", F32)
}

#[test]
fn quantized_channels_are_picked_once_where_no_op_is_of_quantized_values() {
    let net = quantized_shuffle(0.05);
    let model = on_webgpu(&net);
    let counts = ["Gather", "Slice", "Reshape", "QuantizeLinear"].map(|op| count(&model, op));
    assert_eq!(
        counts,
        [2, 0, 0, 3],
        "each half is picked, and quantized are the convolutions and what is put together"
    );
    let units = optimized(&net);
    assert_eq!(count(&units, "Gather"), 0, "QNN has ops of quantized values");
    assert!(count(&units, "QuantizeLinear") > 3);
}

#[test]
fn values_are_quantized_again_where_the_scale_is_another_one() {
    let model = on_webgpu(&quantized_shuffle(0.1));
    assert_eq!(["Gather", "Slice", "QuantizeLinear"].map(|op| count(&model, op)), [1, 2, 4]);
}

/// A convolution of quantized features with quantized weights, and what reads its result.
struct Quantized {
    /// Of the weights: signed bytes or not, and scales and zero points by channel.
    dtype: i32,
    scales: &'static [f32],
    zeros: &'static [f32],
    bias: bool,
    /// Whether features are quantized too.
    features: bool,
}

impl Quantized {
    fn net(&self) -> Net {
        let count = self.scales.len() as i64;
        let dims: &[i64] = if count == 1 { &[] } else { &[count] };
        let weights: Vec<f32> = (0..4 * 3 * 9).map(|at| ((at * 37) % 127) as f32).collect();
        let net = Net::new(17)
            .input("x", F32, &[1, 3, SIDE, SIDE])
            .values("scale", F32, &[], &[0.05])
            .values("zero", I8, &[], &[3.0])
            .values("w", self.dtype, &[4, 3, 3, 3], &weights)
            .values("w_scale", F32, dims, self.scales)
            .values("w_zero", self.dtype, dims, self.zeros)
            .values("b", I8, &[4], &[5.0, -3.0, 100.0, 0.0])
            .node_with("DequantizeLinear", &["w", "w_scale", "w_zero"], "v", &[("axis", &[0])])
            .node("DequantizeLinear", &["b", "scale"], "c");
        let net = if self.features { pair(net, "x", "scale") } else { net.node("Relu", &["x"], "x_d") };
        let operands: &[&str] = if self.bias { &["x_d", "v", "c"] } else { &["x_d", "v"] };
        let net = net.node_with("Conv", operands, "y", &[SAME]);
        let net = if self.features { pair(net, "y", "scale") } else { net.node("Relu", &["y"], "y_d") };
        net.output("y_d", F32)
    }
}

/// One scale and none but zeros beside signed bytes.
const PLAIN: Quantized = Quantized { dtype: I8, scales: &[0.01], zeros: &[0.0], bias: true, features: true };
/// A scale and a zero point for each channel.
const BY_CHANNEL: Quantized = Quantized { scales: &[0.01, 0.02, 0.5, 0.003], zeros: &[0.0, 7.0, 64.0, 126.0], ..PLAIN };

/// How the weights are made: by Cast, Sub and Mul, or dequantized.
fn made_by(model: &ModelProto) -> [usize; 4] {
    let conv = nodes(model).iter().find(|node| node.op_type.as_deref() == Some("Conv")).expect("a Conv");
    let maker = nodes(model).iter().find(|node| node.output[0] == conv.input[1]).expect("computed weights");
    let kept = usize::from(maker.op_type.as_deref() == Some("DequantizeLinear"));
    [count(model, "Cast"), count(model, "Sub"), count(model, "Mul"), kept]
}

#[test]
fn weights_become_constant_on_load_where_no_op_is_of_quantized_values() {
    for (quantized, expected) in [
        (PLAIN, [1, 0, 1, 0]),
        (BY_CHANNEL, [1, 1, 1, 0]),
        (Quantized { dtype: U8, ..BY_CHANNEL }, [1, 1, 1, 0]),
        // Weights alone are quantized.
        (Quantized { features: false, ..BY_CHANNEL }, [1, 1, 1, 0]),
        (Quantized { features: false, bias: false, ..PLAIN }, [1, 0, 1, 0]),
    ] {
        let net = quantized.net();
        assert_eq!(made_by(&on_webgpu(&net)), expected);
        assert_eq!(made_by(&optimized(&net))[3], 1, "QNN has ops of quantized values");
    }
}

#[test]
fn weights_that_the_runtime_would_quantize_once_more_stay_dequantized() {
    let net = Quantized { bias: false, ..PLAIN }.net();
    assert_eq!(for_webgpu(&net), net.bytes(), "nothing is gained, so it is as it was");
}

#[test]
fn weights_that_something_else_reads_stay_dequantized() {
    let net = PLAIN.net();
    assert_eq!(made_by(&on_webgpu(&net.clone().output("v", F32))), [0, 0, 0, 1]);
    let summed = net.node_with("ReduceSum", &["v"], "sum", &[]).output("sum", F32);
    assert_eq!(made_by(&on_webgpu(&summed)), [0, 0, 0, 1]);
}
