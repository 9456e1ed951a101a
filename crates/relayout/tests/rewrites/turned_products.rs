//! Products with constant weights and normalizations beside moves of their columns: run in ONNX Runtime before and after, with its own
//! rewrites off and on, in every form, and every condition under which they stay as they were.

use crate::common;
use crate::fold_nets::{F16, F32, F64, I8, Net};
use prost::Message;
use relayout::{Model, Numerics, Options, Size, Target, optimize, target};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// Sizes of symbolic dims when models run, and when they are priced.
const SIZES: [(&str, i64); 3] = [("batch", 3), ("high", 80), ("wide", 100)];
/// Rounding of sums of halves.
const HALVES: f64 = 2e-3;

fn made(target: &dyn Target, bytes: &[u8], numerics: Numerics) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let sized = |options: Options, (name, size): (&str, i64)| options.dim(name, Size::of(size));
    let options = SIZES.into_iter().fold(Options::default().numerics(numerics).strict(), sized).dims_of(&model);
    optimize(&model, target, &options).expect("it is optimized").to_bytes().expect("it is written")
}

/// The optimized model, its results held against those of the input. A second run changes nothing.
fn optimized(target: &dyn Target, net: &Net, numerics: Numerics) -> ModelProto {
    let bytes = net.bytes();
    let result = made(target, &bytes, numerics);
    let read = SIZES.into_iter().filter(|(name, _)| net.reads_symbol(name));
    let dims: BTreeMap<String, i64> = read.map(|(name, size)| (name.to_owned(), size)).collect();
    for level in [Level::Disabled, Level::All] {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 11, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
        let comparison = verify(common::runtime(), a, b, &inputs, &options).expect("both run");
        let halves = common::printed(&bytes).lines().any(|line| line.ends_with("= input") && line.contains("f16["));
        let tolerance = if halves { Tolerance::new(HALVES, 10.0 * HALVES) } else { Tolerance::default() };
        common::judged(&comparison, Some(tolerance)).unwrap_or_else(|e| panic!("{level:?}: {e}"));
    }
    assert_eq!(made(target, &result, numerics), result, "a second run changes something");
    ModelProto::decode(result.as_slice()).expect("a model")
}

fn for_onnx(net: &Net) -> ModelProto {
    optimized(target("onnx").expect("a built-in target").as_ref(), net, Numerics::Reassociate)
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |g| &g.node)
}

/// Op types in the order of the file, but for views.
fn ops(model: &ModelProto) -> Vec<&str> {
    let ops = nodes(model).iter().filter_map(|n| n.op_type.as_deref());
    ops.filter(|op| !["Reshape", "Constant"].contains(op)).collect()
}

/// A product with constant weights, and the Transposes around it.
#[derive(Clone, Copy)]
struct Written<'a> {
    opset: i64,
    /// Dims of the operand of the product; the last one is summed over.
    x: &'a [&'a str],
    columns: i64,
    /// The input of the model is turned to be the operand, so that its columns came second.
    turned_before: bool,
    /// The result is turned, so that its columns come second.
    turned_after: bool,
    product: &'a str,
    bias: bool,
    dtype: i32,
}

const PLAIN: Written<'static> = Written {
    opset: 17,
    x: &["1", "1024", "64"],
    columns: 64,
    turned_before: false,
    turned_after: false,
    product: "MatMul",
    bias: true,
    dtype: F32,
};

/// From columns second to columns last.
fn to_last(rank: usize) -> Vec<i64> {
    let rank = rank as i64;
    if rank == 2 { vec![1, 0] } else { [0].into_iter().chain(2..rank).chain([1]).collect() }
}

/// From columns last to columns second.
fn to_second(rank: usize) -> Vec<i64> {
    let rank = rank as i64;
    if rank == 2 { vec![1, 0] } else { [0, rank - 1].into_iter().chain(1..rank - 1).collect() }
}

impl Written<'_> {
    /// Up to the sum `s`.
    fn open(&self) -> Net {
        let rank = self.x.len();
        let inputs: i64 = self.x[rank - 1].parse().expect("a number");
        let net = if self.turned_before {
            let stored: Vec<&str> = to_second(rank).into_iter().map(|axis| self.x[axis as usize]).collect();
            let net = Net::new(self.opset).symbolic_input("in", self.dtype, &stored);
            net.node_with("Transpose", &["in"], "x", &[("perm", &to_last(rank))])
        } else {
            Net::new(self.opset).symbolic_input("x", self.dtype, self.x)
        };
        // As small as those of networks are, so that sums are in the range in which halves are precise.
        let small = |net: Net, name: &str, dims: &[i64]| {
            let count = dims.iter().product::<i64>();
            let values: Vec<f32> = (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 400.0).collect();
            net.values(name, self.dtype, dims, &values)
        };
        if self.product == "Gemm" {
            let net = small(small(net, "w", &[self.columns, inputs]), "b", &[self.columns]);
            return net.node_with("Gemm", &["x", "w", "b"], "s", &[("transB", &[1])]);
        }
        let net = small(net, "w", &[inputs, self.columns]);
        if !self.bias {
            return net.node("MatMul", &["x", "w"], "s");
        }
        small(net.node("MatMul", &["x", "w"], "p"), "b", &[self.columns]).node("Add", &["p", "b"], "s")
    }

    fn net(&self) -> Net {
        let net = if self.turned_after {
            self.open().node_with("Transpose", &["s"], "t", &[("perm", &to_second(self.x.len()))])
        } else {
            self.open().node("Neg", &["s"], "t")
        };
        net.node("Tanh", &["t"], "y").output("y", self.dtype)
    }

    fn ops(&self) -> Vec<String> {
        let model = for_onnx(&self.net());
        ops(&model).into_iter().filter(|op| !["Neg", "Tanh"].contains(op)).map(str::to_owned).collect()
    }
}

#[test]
fn a_gemm_leaves_its_result_turned() {
    let turned = Written { turned_after: true, ..PLAIN };
    assert_eq!(turned.ops(), ["Gemm", "Add"]);
    assert_eq!(Written { bias: false, ..turned }.ops(), ["Gemm"]);
    assert_eq!(Written { x: &["1024", "64"], ..turned }.ops(), ["Gemm", "Add"]);
    assert_eq!(Written { x: &["1024", "64"], product: "Gemm", ..turned }.ops(), ["Gemm", "Add"]);
    assert_eq!(Written { dtype: F64, ..turned }.ops(), ["Gemm", "Add"]);
    let images = Written { x: &["1", "32", "32", "64"], ..turned };
    assert_eq!(images.ops(), ["Gemm", "Add"]);
}

#[test]
fn a_gemm_reads_a_turned_operand() {
    let turned = Written { x: &["1", "4096", "128"], columns: 64, turned_before: true, ..PLAIN };
    assert_eq!(turned.ops(), ["Gemm"]);
    assert_eq!(Written { bias: false, ..turned }.ops(), ["Gemm"]);
    assert_eq!(Written { dtype: F64, ..turned }.ops(), ["Gemm"]);
    assert_eq!(Written { x: &["1", "64", "64", "128"], ..turned }.ops(), ["Gemm"]);
}

#[test]
fn a_gemm_of_an_older_operator_set_adds_a_zero() {
    for opset in [7, 9, 10] {
        for turned_after in [false, true] {
            let of = Written { opset, turned_before: !turned_after, turned_after, ..PLAIN };
            let model = for_onnx(&Written { x: &["1", "4096", "128"], ..of }.net());
            let gemm = nodes(&model).iter().find(|n| n.op_type.as_deref() == Some("Gemm")).expect("a Gemm");
            assert_eq!(gemm.input.len(), 3, "opset {opset}");
            assert!(!ops(&model).contains(&"Transpose"), "opset {opset}");
        }
    }
}

#[test]
fn a_product_between_images_that_have_channels_first_is_a_convolution() {
    let turned = Written { turned_before: true, turned_after: true, ..PLAIN };
    assert_eq!(turned.ops(), ["Conv"]);
    assert_eq!(Written { bias: false, ..turned }.ops(), ["Conv"]);
    assert_eq!(Written { x: &["2", "1024", "64"], ..turned }.ops(), ["Conv"]);
    assert_eq!(Written { x: &["2", "32", "32", "64"], ..turned }.ops(), ["Conv"]);
    for opset in [7, 11, 21] {
        assert_eq!(Written { opset, ..turned }.ops(), ["Conv"], "opset {opset}");
    }
    assert_eq!(Written { x: &["batch", "high", "wide", "64"], ..turned }.ops(), ["Conv"]);
}

#[test]
fn a_product_of_matrices_that_are_turned_on_both_sides_is_one_of_turned_weights() {
    let turned = Written { x: &["1024", "64"], turned_before: true, turned_after: true, ..PLAIN };
    assert_eq!(turned.ops(), ["MatMul", "Add"]);
    assert_eq!(Written { bias: false, ..turned }.ops(), ["MatMul"]);
    assert_eq!(Written { product: "Gemm", ..turned }.ops(), ["MatMul", "Add"]);
    assert_eq!(Written { dtype: F64, ..turned }.ops(), ["MatMul", "Add"]);
    assert_eq!(Written { x: &["high", "64"], ..turned }.ops(), ["MatMul", "Add"]);
    assert_eq!(
        Written { x: &["2", "1024", "64"], dtype: F64, ..turned }.ops(),
        ["MatMul", "Add"],
        "no Conv of doubles"
    );
}

#[test]
fn so_is_one_of_any_batch() {
    let weights: Vec<f32> = (0..64 * 32).map(|i| ((i * 37 % 101) as f32 - 50.0) / 400.0).collect();
    for x in [&["3", "4", "64", "128"][..], &["2", "3", "4", "64", "128"], &["batch", "high", "2", "64", "128"]] {
        let rank = x.len() as i64;
        let turn: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        let net = Net::new(17)
            .symbolic_input("in", F32, x)
            .node_with("Transpose", &["in"], "x", &[("perm", &turn)])
            .values("w", F32, &[64, 32], &weights)
            .node("MatMul", &["x", "w"], "p")
            .node_with("Transpose", &["p"], "y", &[("perm", &turn)])
            .output("y", F32);
        assert_eq!(ops(&for_onnx(&net)), ["MatMul"], "{x:?}");
    }
}

/// An image whose pixels are put on one axis, a product of rows with `columns`, and an image of them again. So products stand around a
/// depthwise convolution in the blocks of a segmentation transformer.
fn between_images(columns: i64, wide: bool) -> Net {
    between_images_of(&["2", "64", "32", "40"], columns, wide)
}

/// The same of images of these dims; extents that are not known are read off the input.
fn between_images_of(x: &[&str], columns: i64, wide: bool) -> Net {
    let weights: Vec<f32> = (0..64 * columns).map(|i| ((i * 37 % 101) as f32 - 50.0) / 400.0).collect();
    let net = Net::new(17)
        .symbolic_input("in", F32, x)
        .floats("taps", F32, &[64, 1, 3, 3], true)
        .node_with("Conv", &["in", "taps"], "c", &[("group", &[64]), ("pads", &[1, 1, 1, 1])])
        .ints("flat", &[0, 64, -1])
        .node("Reshape", &["c", "flat"], "f")
        .node_with("Transpose", &["f"], "t", &[("perm", &[0, 2, 1])])
        .node("Sigmoid", &["t"], "x")
        .values("w", F32, &[64, columns], &weights)
        .node("MatMul", &["x", "w"], "p");
    if !wide {
        return net.node("Tanh", &["p"], "y").output("y", F32);
    }
    net.node_with("Transpose", &["p"], "u", &[("perm", &[0, 2, 1])])
        .node("Shape", &["in"], "shape")
        .ints("first", &[0])
        .ints("pixels", &[2, 3])
        .ints("columns", &[columns])
        .node("Gather", &["shape", "first"], "count")
        .node("Gather", &["shape", "pixels"], "extents")
        .node_with("Concat", &["count", "columns", "extents"], "image", &[("axis", &[0])])
        .node("Reshape", &["u", "image"], "z")
        .node_with("MaxPool", &["z"], "y", &[("kernel_shape", &[2, 2])])
        .output("y", F32)
}

#[test]
fn a_convolution_whose_pixels_become_an_image_is_one_of_images() {
    let model = for_onnx(&between_images(256, true));
    assert_eq!(ops(&model), ["Conv", "Sigmoid", "Conv", "MaxPool"]);
    let graph = model.graph.as_ref().expect("a graph");
    let [_, taps] = &graph.node.iter().filter(|n| n.op_type() == "Conv").collect::<Vec<_>>()[..] else {
        panic!("two convolutions")
    };
    let weights = graph.initializer.iter().find(|t| t.name() == taps.input[1]).expect("its weights");
    assert_eq!(weights.dims, [256, 64, 1, 1]);
    let pool = graph.node.iter().find(|n| n.op_type() == "MaxPool").expect("a pool");
    assert_eq!(pool.input[0], taps.output[0], "no Reshape is between them");
    let of = |x: &[&str]| {
        let model = for_onnx(&between_images_of(x, 256, true));
        ops(&model).into_iter().filter(|&op| op == "Conv").count()
    };
    assert_eq!(of(&["batch", "64", "32", "40"]), 2);
    assert_eq!(of(&["1", "64", "high", "40"]), 2);
    // No constant says a shape of two unknown extents, so no convolution of images is made for it: the taps are those of signals.
    for unknown in [&["1", "64", "high", "wide"][..], &["batch", "64", "high", "wide"]] {
        let model = for_onnx(&between_images_of(unknown, 256, true));
        let weights = model.graph.iter().flat_map(|graph| &graph.initializer);
        assert!(weights.into_iter().all(|t| t.dims != [256, 64, 1, 1]), "{unknown:?}");
    }
}

#[test]
fn what_channels_last_runtimes_have_as_rows_is_not_read_turned() {
    assert_eq!(ops(&for_onnx(&between_images(64, false))), ["Conv", "Transpose", "Sigmoid", "MatMul", "Tanh"]);
}

#[test]
fn what_has_few_columns_is_moved_in_the_place_of_what_has_many() {
    // Of several images: a Gemm has all rows of all of them in one.
    let grows = Written { x: &["2", "1024", "64"], columns: 256, turned_after: true, ..PLAIN };
    assert_eq!(grows.ops(), ["Transpose", "Conv"]);
    let shrinks = Written { x: &["2", "1024", "256"], columns: 32, turned_before: true, ..PLAIN };
    assert_eq!(shrinks.ops(), ["Conv", "Transpose"]);
}

#[test]
fn few_rows_that_fill_no_run_are_not_worth_it() {
    let few = Written { x: &["1", "33", "512"], columns: 512, turned_after: true, ..PLAIN };
    assert_eq!(few.ops(), ["MatMul", "Add", "Transpose"]);
    let both = Written { turned_before: true, ..few };
    assert_eq!(both.ops(), ["Transpose", "MatMul", "Add", "Transpose"]);
}

#[test]
fn rows_of_two_unknown_extents_and_halves_stay() {
    let unknown = Written { x: &["batch", "high", "64"], turned_after: true, ..PLAIN };
    let x = ["Transpose", "MatMul", "Add"];
    let mut kinds = unknown.ops();
    kinds.sort_by_key(|op| x.iter().position(|x| x == op));
    assert_eq!(kinds, x, "no Reshape says the rows of a Gemm");
    let halves = Written { dtype: F16, turned_after: true, ..PLAIN };
    assert!(halves.ops().contains(&"Transpose".to_owned()));
}

#[test]
fn a_batch_of_unknown_size_between_channels_first_is_a_convolution_too() {
    let turned = Written { x: &["batch", "1024", "64"], turned_before: true, turned_after: true, ..PLAIN };
    assert_eq!(turned.ops(), ["Conv"]);
}

#[test]
fn what_somebody_else_reads_or_rounds_stays_a_product_of_rows() {
    let of = Written { turned_before: true, turned_after: true, ..PLAIN };
    let shared = for_onnx(&of.net().node("Relu", &["w"], "z").output("z", F32));
    assert!(ops(&shared).contains(&"MatMul"), "weights would be stored twice");
    let quantized = of.net().values("scale", F32, &[], &[0.1]).values("zero", I8, &[], &[0.0]);
    let quantized = quantized.node("QuantizeLinear", &["y", "scale", "zero"], "q").output("q", I8);
    assert!(ops(&for_onnx(&quantized)).contains(&"MatMul"), "rounding would differ by a step");
    let onnx = target("onnx").expect("a built-in target");
    assert!(ops(&optimized(onnx.as_ref(), &of.net(), Numerics::Exact)).contains(&"MatMul"));
}

#[test]
fn a_product_that_others_read_too_is_turned_without_what_is_added() {
    let of = Written { turned_before: true, turned_after: true, ..PLAIN };
    let net = of.net().node_with("Transpose", &["p"], "z", &[("perm", &[0, 2, 1])]).output("z", F32);
    let model = for_onnx(&net);
    let count = |op: &str| ops(&model).iter().filter(|&&o| o == op).count();
    assert_eq!(["Conv", "Add", "MatMul", "Transpose"].map(count), [1, 1, 0, 0]);
}

#[test]
fn other_targets_have_no_such_forms() {
    let of = Written { turned_before: true, turned_after: true, ..PLAIN };
    let cpu = OrtCpu::new(Block::B16).expect("a built-in target");
    let nhwc = target("nhwc").expect("a built-in target");
    for target in [&cpu as &dyn Target, nhwc.as_ref()] {
        let model = optimized(target, &of.net(), Numerics::Reassociate);
        assert!(!ops(&model).contains(&"Conv"), "{}", target.name());
    }
}

/// Keys of attention as exporters write them, and queries that are there.
fn keys(batch: &str, positions: i64) -> Net {
    let rows = positions.to_string();
    let width = 16;
    let heads = if batch == "1" { 1 } else { -1 };
    let weights: Vec<f32> = (0..64 * 64).map(|i| ((i * 29 % 83) as f32 - 41.0) / 300.0).collect();
    Net::new(17)
        .symbolic_input("q", F32, &[batch, "4", "20", "16"])
        .symbolic_input("x", F32, &[batch, &rows, "64"])
        .values("w", F32, &[64, 64], &weights)
        .node("MatMul", &["x", "w"], "p")
        .floats("b", F32, &[64], true)
        .node("Add", &["b", "p"], "s")
        .ints("shape", &[heads, positions, 4, width])
        .node("Reshape", &["s", "shape"], "r")
        .node_with("Transpose", &["r"], "k", &[("perm", &[0, 2, 3, 1])])
        .node("MatMul", &["q", "k"], "y")
        .output("y", F32)
}

#[test]
fn keys_of_one_sequence_are_made_as_the_scores_read_them() {
    assert_eq!(ops(&for_onnx(&keys("1", 1024))), ["Gemm", "Add", "MatMul"]);
    let of_three = for_onnx(&keys("3", 1024));
    assert!(ops(&of_three).contains(&"Transpose"), "positions of all sequences are innermost in a Gemm's result");
}

/// A `LayerNormalization` of this value in the place of channels last, and the Transposes around it.
#[derive(Clone, Copy)]
struct Norm<'a> {
    /// Channels first.
    x: &'a [&'a str],
    bias: bool,
    dtype: i32,
    axis: i64,
    /// What is added to the input before.
    offset: f32,
}

const NORM: Norm<'static> = Norm { x: &["1", "48", "40", "50"], bias: true, dtype: F32, axis: -1, offset: 0.0 };

impl Norm<'_> {
    fn net(&self) -> Net {
        let rank = self.x.len();
        let channels: i64 = self.x[1].parse().expect("a number");
        let net = Net::new(17)
            .symbolic_input("in", self.dtype, self.x)
            .values("offset", self.dtype, &[1], &[self.offset])
            .node("Add", &["in", "offset"], "o")
            .node_with("Transpose", &["o"], "t", &[("perm", &to_last(rank))])
            .floats("scale", self.dtype, &[channels], true)
            .floats("bias", self.dtype, &[channels], true);
        let operands = if self.bias { &["t", "scale", "bias"][..] } else { &["t", "scale"] };
        net.node_with("LayerNormalization", operands, "n", &[("axis", &[self.axis])])
            .float_attribute("epsilon", 1e-3)
            .node_with("Transpose", &["n"], "b", &[("perm", &to_second(rank))])
            .node("Sigmoid", &["b"], "y")
            .output("y", self.dtype)
    }

    fn is_across(&self) -> bool {
        let model = for_onnx(&self.net());
        let ops = ops(&model);
        let across = !ops.contains(&"LayerNormalization");
        assert_eq!(across, !ops.contains(&"Transpose"));
        across
    }
}

#[test]
fn channels_before_pixels_are_normalized_where_they_are() {
    assert!(NORM.is_across());
    assert!(Norm { bias: false, ..NORM }.is_across());
    assert!(Norm { x: &["2", "48", "2000"], ..NORM }.is_across());
    assert!(Norm { axis: 3, ..NORM }.is_across());
    assert!(Norm { x: &["batch", "48", "high", "wide"], ..NORM }.is_across());
    assert!(Norm { offset: 30.0, ..NORM }.is_across(), "a mean far beyond the deviation");
}

#[test]
fn normalizations_of_few_bytes_of_halves_and_of_more_axes_stay() {
    assert!(!Norm { x: &["1", "48", "7", "7"], ..NORM }.is_across());
    assert!(!Norm { dtype: F16, ..NORM }.is_across());
    assert!(!Norm { x: &["1", "48", "8", "10", "25"], ..NORM }.is_across());
    let onnx = target("onnx").expect("a built-in target");
    let exact = optimized(onnx.as_ref(), &NORM.net(), Numerics::Exact);
    assert!(ops(&exact).contains(&"LayerNormalization"));
    let seen = NORM.net().node_with("LayerNormalization", &["t", "scale"], "m", &[]).also("mean").output("mean", F32);
    assert!(ops(&for_onnx(&seen)).contains(&"LayerNormalization"), "its mean is read");
}

/// Two normalizations of pixels between convolutions, with a sum of pixels in between. `seen` says whether the sum is an output too.
fn between_convolutions(seen: bool) -> Net {
    let conv = |net: Net, x: &str, y: &str| {
        net.node_with("Conv", &[x, "taps"], y, &[("group", &[48]), ("pads", &[1, 1, 1, 1])])
    };
    let net = Net::new(17).input("in", F32, &[1, 48, 80, 96]).floats("taps", F32, &[48, 1, 3, 3], true).floats(
        "scale",
        F32,
        &[48],
        true,
    );
    let net = conv(net, "in", "c")
        .node("Relu", &["c"], "r")
        .node_with("Transpose", &["r"], "t", &[("perm", &[0, 2, 3, 1])])
        .node("LayerNormalization", &["t", "scale"], "n")
        .node("Add", &["n", "t"], "s")
        .node("LayerNormalization", &["s", "scale"], "m")
        .node_with("Transpose", &["m"], "b", &[("perm", &[0, 3, 1, 2])]);
    let net = conv(net, "b", "y").output("y", F32);
    if seen { net.output("s", F32) } else { net }
}

#[test]
fn pixels_between_images_of_convolutions_are_normalized_as_pixels() {
    let norms = |net: &Net| ops(&for_onnx(net)).iter().filter(|&&op| op == "LayerNormalization").count();
    assert_eq!(norms(&between_convolutions(false)), 2);
    assert_eq!(norms(&between_convolutions(true)), 2, "what is read as pixels is there as pixels");
}

#[test]
fn a_block_of_pixels_moves_nothing() {
    // Normalization and two products between convolutions.
    let weights = |net: Net, name: &str, dims: &[i64]| {
        let values: Vec<f32> =
            (0..dims.iter().product::<i64>()).map(|i| ((i * 31 % 97) as f32 - 48.0) / 500.0).collect();
        net.values(name, F32, dims, &values)
    };
    let net = Net::new(17)
        .input("in", F32, &[2, 48, 80, 96])
        .floats("taps", F32, &[48, 1, 3, 3], true)
        .node_with("Conv", &["in", "taps"], "c", &[("group", &[48]), ("pads", &[1, 1, 1, 1])])
        .node_with("Transpose", &["c"], "t", &[("perm", &[0, 2, 3, 1])])
        .floats("scale", F32, &[48], true)
        .floats("bias", F32, &[48], true)
        .node("LayerNormalization", &["t", "scale", "bias"], "n");
    let net = weights(weights(net, "w1", &[48, 192]), "b1", &[192]);
    let net = net.node("MatMul", &["n", "w1"], "p1").node("Add", &["p1", "b1"], "s1").node("Sigmoid", &["s1"], "g");
    let net = weights(weights(net, "w2", &[192, 48]), "b2", &[48]);
    let net = net
        .node("MatMul", &["g", "w2"], "p2")
        .node("Add", &["p2", "b2"], "s2")
        .node_with("Transpose", &["s2"], "back", &[("perm", &[0, 3, 1, 2])])
        .node("Add", &["in", "back"], "y")
        .output("y", F32);
    let model = for_onnx(&net);
    assert!(!ops(&model).contains(&"Transpose"), "{:?}", ops(&model));
    assert_eq!(ops(&model).iter().filter(|&&op| op == "Conv").count(), 5, "that of the file, two means, two products");
}
