//! What depends on constants only and rounds: it is computed in f64, as ONNX Runtime computes it but for rounding, and never makes
//! a file larger.

use crate::fold_nets;
use crate::fold_nets::folded::{Folded, fold, fold_with};
use crate::fold_nets::{F16, F32, F64, I64, Net, U8, runtime};
use proptest::prelude::*;
use prost::Message as _;
use relayout::{Model, Numerics, Options, optimize, target};
use relayout_onnx::proto::{ModelProto, StringStringEntryProto};
use relayout_targets::Block;
use relayout_verify::{Comparison, Data, Inputs, Level, ModelSource, Tensor, Tolerance, run, verify};
use std::collections::BTreeMap;

impl Folded {
    /// Before and after on the same inputs. The runtime folds the constants of the first, as it does for applications.
    fn compared(&self) -> Comparison {
        let inputs = Inputs::Random { seed: 7, dims: BTreeMap::new() };
        let mut options = relayout_verify::Options::default();
        options.level_a = Level::All;
        let [before, after] = [&self.before, &self.after].map(|bytes| ModelSource::Bytes(bytes));
        verify(runtime(), before, after, &inputs, &options).expect("both run")
    }

    fn agrees(&self, rms: f64, what: &str) {
        let comparison = self.compared();
        assert!(comparison.holds(&Tolerance::new(rms, 10.0 * rms)), "{what}: {comparison}\n{}", self.text);
    }

    /// The constant that a Mul reads.
    fn factors(&self) -> Vec<f64> {
        let model = Model::from_bytes(self.after.clone().into(), None).unwrap();
        let graph = &model.ir().graph;
        let read = |v| graph.uses(v).iter().any(|u| graph.node(u.node).onnx() == Some("Mul"));
        graph.values().filter(|&v| read(v)).find_map(|v| graph.constant(v)?.to_floats(64)).unwrap()
    }

    fn counted(&self) -> usize {
        self.report.rewrites.get("evaluate_rounded").copied().unwrap_or(0)
    }
}

/// Numbers between two bounds that depend on a seed.
fn numbers(seed: u64, count: i64, low: f32, high: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (state >> 40) as f32 / (1u32 << 24) as f32 * (high - low)
    };
    (0..count).map(|_| draw()).collect()
}

/// A model with operands for every op below, of this type.
fn operands(opset: i64, dtype: i32, seed: u64) -> Net {
    let bounds: [(&str, &[i64], f32, f32); 20] = [
        ("a", &[4, 6], -2.0, 2.0),
        ("b", &[6, 5], -1.0, 1.0),
        ("bt", &[5, 6], -1.0, 1.0),
        ("at", &[6, 4], -1.0, 1.0),
        ("v", &[6], -1.0, 1.0),
        ("batch", &[3, 1, 4, 6], -1.0, 1.0),
        ("batches", &[2, 6, 5], -1.0, 1.0),
        ("row", &[5], -1.0, 1.0),
        ("unit", &[4, 6], -0.9, 0.9),
        ("above", &[4, 6], 1.1, 3.0),
        ("exponent", &[6], -2.0, 2.5),
        ("image", &[2, 4, 7, 6], -1.0, 1.0),
        ("filters", &[6, 4, 3, 3], -1.0, 1.0),
        ("narrow", &[6, 2, 3, 2], -1.0, 1.0),
        ("bias", &[6], -1.0, 1.0),
        ("scale", &[4], 0.5, 1.5),
        ("shift", &[4], -1.0, 1.0),
        ("mean", &[4], -1.0, 1.0),
        ("variance", &[4], 0.1, 2.0),
        ("last", &[6], 0.5, 1.5),
    ];
    let mut net = Net::new(opset).input("x", dtype, &[]);
    for (i, (name, dims, low, high)) in bounds.into_iter().enumerate() {
        let seed = seed.wrapping_mul(31).wrapping_add(i as u64 + 1);
        net = net.values(name, dtype, dims, &numbers(seed, dims.iter().product(), low, high));
    }
    net.values("low", dtype, &[], &[-0.5]).values("high", dtype, &[], &[0.75]).values("pair", dtype, &[2], &[0.5, 2.0])
}

type Ints = &'static [(&'static str, &'static [i64])];

/// An op of these operands and attributes, from this version on.
type Case = (i64, &'static str, &'static [&'static str], Ints);

const CASES: &[Case] = &[
    (17, "Exp", &["a"], &[]),
    (17, "Log", &["above"], &[]),
    (17, "Erf", &["a"], &[]),
    (17, "Sin", &["a"], &[]),
    (17, "Cos", &["a"], &[]),
    (17, "Tan", &["unit"], &[]),
    (17, "Asin", &["unit"], &[]),
    (17, "Acos", &["unit"], &[]),
    (17, "Atan", &["a"], &[]),
    (17, "Sinh", &["a"], &[]),
    (17, "Cosh", &["a"], &[]),
    (17, "Asinh", &["a"], &[]),
    (17, "Acosh", &["above"], &[]),
    (17, "Atanh", &["unit"], &[]),
    (17, "Tanh", &["a"], &[]),
    (17, "Sigmoid", &["a"], &[]),
    (17, "Softplus", &["a"], &[]),
    (17, "Softsign", &["a"], &[]),
    (17, "LeakyRelu", &["a"], &[]),
    (17, "Elu", &["a"], &[]),
    (17, "HardSigmoid", &["a"], &[]),
    (17, "HardSwish", &["a"], &[]),
    (18, "Mish", &["a"], &[]),
    (20, "Gelu", &["a"], &[]),
    (17, "Pow", &["above", "exponent"], &[]),
    (17, "Sum", &["a", "v", "unit"], &[]),
    (17, "Mean", &["a", "v", "unit"], &[]),
    (17, "ReduceSum", &["a"], &[]),
    (13, "ReduceMean", &["image"], &[("axes", &[1, 3])]),
    (17, "ReduceMean", &["image"], &[("axes", &[-1]), ("keepdims", &[0])]),
    (17, "ReduceMin", &["a"], &[("axes", &[0])]),
    (17, "ReduceProd", &["above"], &[("axes", &[1])]),
    (17, "ReduceSumSquare", &["a"], &[("axes", &[0])]),
    (17, "ReduceL1", &["a"], &[("axes", &[1])]),
    (17, "ReduceL2", &["image"], &[("axes", &[1, 2, 3])]),
    (17, "ReduceLogSum", &["above"], &[("axes", &[1])]),
    (17, "ReduceLogSumExp", &["a"], &[("axes", &[0])]),
    (17, "Softmax", &["image"], &[("axis", &[1])]),
    (17, "Softmax", &["image"], &[]),
    (11, "Softmax", &["image"], &[("axis", &[2])]),
    (11, "LogSoftmax", &["image"], &[]),
    (17, "LogSoftmax", &["image"], &[("axis", &[2])]),
    (17, "BatchNormalization", &["image", "scale", "shift", "mean", "variance"], &[]),
    (17, "InstanceNormalization", &["image", "scale", "shift"], &[]),
    (17, "LayerNormalization", &["image", "last", "v"], &[("axis", &[-1])]),
    (17, "LayerNormalization", &["image", "last"], &[]),
    (18, "GroupNormalization", &["image", "pair", "pair"], &[("num_groups", &[2])]),
    (21, "GroupNormalization", &["image", "scale", "shift"], &[("num_groups", &[2])]),
    (23, "RMSNormalization", &["image", "last"], &[]),
    (17, "LpNormalization", &["image"], &[("axis", &[1])]),
    (17, "MatMul", &["a", "b"], &[]),
    (17, "MatMul", &["batch", "batches"], &[]),
    (17, "MatMul", &["v", "batches"], &[]),
    (17, "MatMul", &["batch", "v"], &[]),
    (17, "MatMul", &["v", "v"], &[]),
    (17, "Gemm", &["a", "b", "row"], &[]),
    (17, "Gemm", &["at", "b"], &[("transA", &[1])]),
    (17, "Gemm", &["at", "bt", "row"], &[("transA", &[1]), ("transB", &[1])]),
    (17, "Conv", &["image", "filters"], &[]),
    (17, "Conv", &["image", "filters", "bias"], &[("pads", &[1, 0, 2, 1]), ("strides", &[2, 1])]),
    (17, "Conv", &["image", "narrow", "bias"], &[("group", &[2]), ("dilations", &[2, 1]), ("pads", &[1, 1, 1, 0])]),
];

fn known(seed: u64, dtype: i32, case: &Case) -> Net {
    let (opset, op, inputs, ints) = case;
    operands(*opset, dtype, seed).node_with(op, inputs, "known", ints)
}

fn is_evaluated(net: Net, dtype: i32, rms: f64, what: &str) {
    let net = net.node("Mul", &["known", "x"], "y").output("y", dtype);
    let folded = fold(&net);
    assert_eq!(folded.ops(), ["Mul"], "{what}\n{}", folded.text);
    assert_eq!(folded.counted(), 1, "{what}");
    folded.agrees(rms, what);
    let exact = fold_with(&net, Numerics::Exact);
    assert_eq!((exact.counted(), exact.ops().len()), (0, 2), "{what}");
}

#[test]
fn every_op_that_rounds_gives_the_runtime_s_numbers_within_rounding() {
    for seed in [1, 2, 3] {
        for case in CASES {
            is_evaluated(known(seed, F32, case), F32, 1e-6, &format!("{case:?}, seed {seed}"));
        }
    }
}

/// A BatchNormalization that takes its statistics from the image.
fn trained(net: Net) -> Net {
    let inputs = ["image", "scale", "shift", "mean", "variance"];
    net.node_with("BatchNormalization", &inputs, "known", &[("training_mode", &[1])])
        .also("mean_now")
        .also("variance_now")
}

#[test]
fn attributes_that_are_numbers_or_texts_are_read() {
    let made = |op: &str, inputs: &[&str], opset| operands(opset, F32, 4).node(op, inputs, "known");
    let cases = [
        ("alpha", made("LeakyRelu", &["a"], 17).float_attribute("alpha", 0.3)),
        ("elu", made("Elu", &["a"], 17).float_attribute("alpha", 0.3)),
        ("hard", made("HardSigmoid", &["a"], 17).float_attribute("alpha", 0.3).float_attribute("beta", 0.4)),
        ("gelu", made("Gelu", &["a"], 20).text_attribute("approximate", "tanh")),
        ("gemm", made("Gemm", &["a", "b", "row"], 17).float_attribute("alpha", 0.3).float_attribute("beta", -2.0)),
        ("epsilon", made("InstanceNormalization", &["image", "scale", "shift"], 17).float_attribute("epsilon", 0.1)),
        ("einsum", made("Einsum", &["batch", "b"], 17).text_attribute("equation", "xyij,jk->kyxi")),
        ("trace", made("Einsum", &["image"], 17).text_attribute("equation", "nchw -> wn")),
        ("train", trained(operands(15, F32, 4))),
        ("outer", made("Einsum", &["v", "row"], 17).text_attribute("equation", "i,j->ij")),
    ];
    for (what, net) in cases {
        is_evaluated(net, F32, 1e-6, what);
    }
}

#[test]
fn the_result_is_rounded_once_however_many_ops_there_are() {
    // No op of these has the same bits in every runtime, or reads only what was given.
    let chain = |dtype| {
        operands(17, dtype, 5)
            .node("Exp", &["a"], "e")
            .node("Mul", &["e", "e"], "s")
            .node("Sub", &["e", "s"], "d")
            .node_with("ReduceMean", &["d"], "m", &[("axes", &[1])])
            .node("Sub", &["d", "m"], "c")
            .node_with("Softmax", &["c"], "p", &[("axis", &[1])])
            .node("Log", &["p"], "known")
            .node("Mul", &["known", "x"], "y")
            .output("y", dtype)
    };
    let folded = fold(&chain(F32));
    assert_eq!((folded.ops(), folded.counted()), (vec!["Mul".to_owned()], 7), "{}", folded.text);
    let wide = fold(&chain(F64));
    assert_eq!(wide.ops(), ["Mul"]);
    // The operands are float32 numbers in both; so the wide result rounded is the narrow one, to the last bit.
    let rounded: Vec<f64> = wide.factors().into_iter().map(|x| f64::from(x as f32)).collect();
    assert_eq!(folded.factors(), rounded);
}

#[test]
fn halves_are_computed_wide() {
    for case in CASES.iter().filter(|(_, op, ..)| ["Exp", "ReduceSum", "Softmax", "MatMul", "Conv"].contains(op)) {
        is_evaluated(known(6, F16, case), F16, 1e-3, &format!("{case:?}"));
    }
    // In halves the sum of squares is infinite, and so is what a runtime makes of it.
    let net = Net::new(17)
        .input("x", F16, &[])
        .values("large", F16, &[2], &[300.0, 400.0])
        .node_with("ReduceSumSquare", &["large"], "s", &[("axes", &[0])])
        .node("Sqrt", &["s"], "known")
        .node("Mul", &["known", "x"], "y")
        .output("y", F16);
    let folded = fold(&net);
    assert_eq!((folded.ops(), folded.counted()), (vec!["Mul".to_owned()], 2));
    assert_eq!(folded.factors(), [500.0]);
}

/// Weights of a convolution that are standardized: less their mean, divided by their deviation, times a gain.
fn standardized(dims: &[i64], by_norm: bool) -> Net {
    let (filters, rest) = (dims[0], dims[1..].iter().product::<i64>());
    let net = Net::new(17)
        .input("x", F32, &[1, dims[1], 9, 8])
        .floats("w", F32, dims, true)
        .floats("gain", F32, &[filters, 1, 1, 1], true)
        .values("eps", F32, &[], &[1e-4]);
    let net = if by_norm {
        net.ints("flat", &[1, filters, rest])
            .ints("shape", dims)
            .ints("one", &[-1])
            .values("zeros", F32, &[filters], &vec![0.0; filters as usize])
            .node("Reshape", &["w", "flat"], "f")
            .node("Reshape", &["gain", "one"], "g")
            .node_with("BatchNormalization", &["f", "g", "zeros", "zeros", "g"], "n", &[("training_mode", &[1])])
            .also("running_mean")
            .also("running_var")
            .node("Reshape", &["n", "shape"], "s")
    } else {
        net.node_with("ReduceMean", &["w"], "m", &[("axes", &[1, 2, 3])])
            .node("Sub", &["w", "m"], "c")
            .node("Mul", &["c", "c"], "q")
            .node_with("ReduceMean", &["q"], "v", &[("axes", &[1, 2, 3])])
            .node("Add", &["v", "eps"], "e")
            .node("Sqrt", &["e"], "d")
            .node("Div", &["c", "d"], "u")
            .node("Mul", &["u", "gain"], "s")
    };
    net.node_with("Conv", &["x", "s"], "y", &[("pads", &[1, 1, 1, 1])]).output("y", F32)
}

#[test]
fn standardized_weights_are_weights() {
    // The second is large: it is computed when the file is written, in the place of the weights that it came from.
    for dims in [[6, 4, 3, 3], [64, 48, 3, 3]] {
        for by_norm in [false, true] {
            let folded = fold(&standardized(&dims, by_norm));
            assert_eq!(folded.ops(), ["Conv"], "{}", folded.text);
            folded.agrees(1e-6, "standardized");
            assert!(folded.after.len() <= folded.before.len(), "{} of {}", folded.after.len(), folded.before.len());
            let exact = fold_with(&standardized(&dims, by_norm), Numerics::Exact);
            assert_eq!(exact.counted(), 0);
            assert!(exact.ops().len() > 2, "{}", exact.text);
        }
    }
}

/// `x` times a large result of a large constant.
fn large() -> Net {
    Net::new(17).input("x", F32, &[200, 200]).floats("w", F32, &[200, 200], true).node("Exp", &["w"], "e")
}

#[test]
fn a_file_never_grows_by_what_is_large() {
    let once = fold(&large().node("Mul", &["x", "e"], "y").output("y", F32));
    assert_eq!(once.ops(), ["Mul"]);
    once.agrees(1e-6, "once");
    // Two results of the same weights, the weights themselves read, a result that is larger than all it is made of, an output.
    let twice = large().node("Sin", &["w"], "s").node("Mul", &["x", "e"], "m").node("Mul", &["m", "s"], "y");
    let read = large().node("Mul", &["x", "e"], "m").node("Mul", &["m", "w"], "y");
    let spread = large()
        .floats("column", F32, &[200, 1], true)
        .node("Add", &["e", "column"], "outer")
        .ints("shape", &[2, 200, 200])
        .node("Expand", &["outer", "shape"], "wide")
        .node("Mul", &["x", "wide"], "y");
    let [twice, read, spread] = [twice, read, spread].map(|net| fold(&net.output("y", F32)));
    assert!(!read.report.changed);
    // One of the two takes the place of the weights only if the other does not need them.
    assert!(!twice.report.changed, "{}", twice.text);
    assert_eq!(spread.ops(), ["Expand", "Mul"], "{}", spread.text);
    spread.agrees(1e-6, "spread");
    let output = fold(&large().node("Mul", &["x", "e"], "y").output("y", F32).output("e", F32));
    assert!(!output.report.changed);
    // Two halves of it are no larger than it is.
    let halves = large()
        .node_with("Split", &["e"], "first", &[("axis", &[0])])
        .also("second")
        .node("MatMul", &["first", "x"], "a")
        .node("MatMul", &["second", "x"], "b")
        .node("Sub", &["a", "b"], "y");
    let halves = fold(&halves.output("y", F32));
    assert_eq!(halves.ops(), ["MatMul", "MatMul", "Sub"], "{}", halves.text);
    halves.agrees(1e-5, "halves");
}

#[test]
fn nothing_is_computed_of_weights_that_are_in_no_file() {
    let net = large().node("Mul", &["x", "e"], "y").output("y", F32);
    let mut proto = ModelProto::decode(&net.bytes()[..]).unwrap();
    for tensor in proto.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        let entry =
            |(key, value): (&str, &str)| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
        (tensor.raw_data, tensor.data_location) = (None, Some(1));
        tensor.float_data.clear();
        tensor.external_data = [("location", "not_there.bin"), ("length", "160000")].map(entry).to_vec();
    }
    let model = Model::from_bytes(proto.encode_to_vec().into(), None).unwrap();
    let made = optimize(&model, target("onnx").unwrap().as_ref(), &Options::default().strict()).unwrap();
    assert!(!made.report().changed, "{}", made.graph());
}

#[test]
fn what_jumps_reads_numbers_of_the_model_s_own_type_and_what_is_quantized_stays() {
    let base = || Net::new(17).input("x", F32, &[]).floats("w", F32, &[4, 4], true).node("Exp", &["w"], "e");
    let cast =
        |net: Net, from: &str, to: &str, dtype| net.node_with("Cast", &[from], to, &[("to", &[i64::from(dtype)])]);
    let floor = base().node("Floor", &["e"], "f");
    let whole = cast(cast(base(), "e", "i", I64), "i", "f", F32);
    // As a half, the sum loses what was added.
    let half =
        base().values("large", F32, &[], &[2049.0]).node("Sigmoid", &["e"], "s").node("Add", &["s", "large"], "l");
    let half = cast(cast(half, "l", "h", F16), "h", "f", F32);
    for (what, net) in [("floor", floor), ("whole", whole), ("half", half)] {
        let folded = fold(&net.node("Mul", &["f", "x"], "y").output("y", F32));
        assert_eq!(folded.ops(), ["Mul"], "{what}");
        folded.agrees(1e-6, what);
        assert!(folded.factors().iter().all(|x| x.fract() == 0.0), "{what}: {:?}", folded.factors());
    }
    let quantized = fold(
        &base()
            .values("step", F32, &[], &[0.1])
            .values("zero", U8, &[], &[3.0])
            .node("QuantizeLinear", &["e", "step", "zero"], "q")
            .node("DequantizeLinear", &["q", "step", "zero"], "f")
            .node("Mul", &["f", "x"], "y")
            .output("y", F32),
    );
    assert_eq!(quantized.counted(), 0, "{}", quantized.text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_two_ops_after_one_another_are_computed(
        seed in any::<u64>(),
        first in 0..CASES.len(),
        then in prop::sample::select(vec!["Exp", "Sigmoid", "Tanh", "Erf", "Softmax", "ReduceL2", "Sqrt", "Neg", "Identity"]),
    ) {
        let case = &CASES[first];
        // A product of two vectors has no axis that the second op could run along.
        prop_assume!(case.2 != ["v", "v"]);
        // A sum that is near zero has few digits left, and Exp and Softmax make of the rounding of a number, which grows with it, a
        // part of their result. So what the second op reads is at least one, and what these two read less than one.
        let made = known(seed, F32, case).values("one", F32, &[], &[1.0]).node("Abs", &["known"], "size");
        let made = made.node("Add", &["size", "one"], "read");
        let made = if ["Exp", "Softmax"].contains(&then) {
            made.node("Softsign", &["read"], "fraction").node(then, &["fraction"], "after")
        } else {
            made.node(then, &["read"], "after")
        };
        let folded = fold(&made.node("Mul", &["after", "x"], "y").output("y", F32));
        prop_assert_eq!(folded.ops(), ["Mul"], "{:?} {}", case, then);
        let comparison = folded.compared();
        prop_assert!(comparison.holds(&Tolerance::new(3e-6, 3e-5)), "{:?} {}: {}", case, then, comparison);
    }
}

/// Channels of the images, and of what a convolution makes of them by repeating each.
const CHANNELS: [i64; 2] = [16, 128];

/// A mean over an image behind a convolution that repeats channels, so that the image is in blocks.
fn mean_of(height: i64, width: i64, symbolic: bool) -> Net {
    let [from, to] = CHANNELS;
    let repeats: Vec<f32> = (0..to * from).map(|i| f32::from(u8::from(i / from % from == i % from))).collect();
    let net = Net::new(13);
    let net = if symbolic {
        net.symbolic_input("x", F32, &["1", "16", "H", "W"])
    } else {
        net.input("x", F32, &[1, from, height, width])
    };
    let net = net.values("w", F32, &[to, from, 1, 1], &repeats).node("Conv", &["x", "w"], "a");
    net.node_with("ReduceMean", &["a"], "y", &[("axes", &[2, 3]), ("keepdims", &[1])]).output("y", F32)
}

/// The root mean square of a model's error over images of positive numbers, in units of 2^-24 of their mean.
fn error_of_means(bytes: &[u8], height: i64, width: i64) -> f64 {
    let (mut squares, mut count) = (0.0, 0);
    for seed in 0..if height > 500 { 2 } else { 6 } {
        let image = numbers(seed, CHANNELS[0] * height * width, 0.0, 1.0);
        let x = Tensor::new("x", [1, CHANNELS[0], height, width], Data::F32(image.clone())).expect("an image");
        let y = run(runtime(), ModelSource::Bytes(bytes), &[x], Level::Disabled).expect("it runs");
        let Data::F32(means) = y[0].data() else { panic!("floats") };
        for (mean, channel) in means.iter().take(16).zip(image.chunks((height * width) as usize)) {
            let exact = channel.iter().copied().map(f64::from).sum::<f64>() / channel.len() as f64;
            squares += ((f64::from(*mean) - exact) / exact * f64::from(1 << 24)).powi(2);
            count += 1;
        }
    }
    (squares / f64::from(count)).sqrt()
}

#[test]
fn means_of_images_lose_at_most_two_bits_against_the_runtimes_own() {
    let made = |net: &Net, numerics| {
        let target = fold_nets::cpu::target(Block::of_host());
        fold_nets::cpu::made_for(&target, &net.bytes(), numerics)
    };
    let ops = |bytes: &[u8]| -> Vec<String> {
        let model = ModelProto::decode(bytes).expect("a model");
        model.graph.iter().flat_map(|g| &g.node).filter_map(|n| n.op_type.clone()).collect()
    };
    // Few places are one pool, more are pools of tiles, and of more than two levels the mean stays.
    for (height, width, pools) in [(7, 7, 1), (8, 16, 1), (14, 14, 2), (56, 56, 2), (113, 112, 2), (640, 960, 0)] {
        for numerics in [Numerics::Reassociate, Numerics::Exact] {
            let net = mean_of(height, width, false);
            let ours = made(&net, numerics);
            let found = ops(&ours).iter().filter(|op| op.ends_with("AveragePool")).count();
            assert_eq!(found, pools, "{height} x {width}: {:?}", ops(&ours));
            if numerics == Numerics::Exact && ours == made(&net, Numerics::Reassociate) {
                continue;
            }
            let (before, after) = (error_of_means(&net.bytes(), height, width), error_of_means(&ours, height, width));
            assert!(after <= 4.0 * before, "{height} x {width}: {before} before, {after} after");
        }
    }
    // A size that is not in the file may be any.
    assert!(ops(&made(&mean_of(7, 7, true), Numerics::Reassociate)).contains(&"ReduceMean".to_owned()));
}
