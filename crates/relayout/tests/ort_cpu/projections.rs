//! Projections into heads with a matrix per head, and moves of rows that are joined: run in ONNX Runtime before and after, with its
//! own rewrites off and on, and every condition under which they stay as they were.

use crate::common;
use crate::fold_nets::blocks::{blocks, levels};
use crate::fold_nets::{F16, F32, F64, I8, Net};
use prost::Message;
use relayout::audit::Fate;
use relayout::{Model, Numerics, Options, Size, Target, audit, optimize, target};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// Size of the symbolic batch when models run, and when they are priced.
const BATCH: i64 = 3;
/// Rounding of sums of halves.
const HALVES: f64 = 2e-3;

fn made(target: &dyn Target, bytes: &[u8], numerics: Numerics) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let options = Options::default().numerics(numerics).strict().dim("batch", Size::of(BATCH));
    let options = options.dims_of(&model);
    optimize(&model, target, &options).expect("it is optimized").to_bytes().expect("it is written")
}

/// The optimized model, its results held against those of the input. A second run changes nothing.
fn optimized(target: &dyn Target, net: &Net, numerics: Numerics) -> ModelProto {
    optimized_in(Block::of_host(), target, net, numerics)
}

/// The same of a target for hosts of a block, run where this is one.
fn optimized_in(block: Block, target: &dyn Target, net: &Net, numerics: Numerics) -> ModelProto {
    let bytes = net.bytes();
    let result = made(target, &bytes, numerics);
    let dims: BTreeMap<String, i64> =
        if net.reads_symbol("batch") { [("batch".to_owned(), BATCH)].into() } else { BTreeMap::new() };
    for level in levels(block, &result) {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 11, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
        let comparison = verify(common::runtime(), a, b, &inputs, &options).expect("both run");
        // Halves are rounded between the nodes.
        let halves = bytes_say_halves(&bytes);
        let tolerance = if halves { Tolerance::new(HALVES, 10.0 * HALVES) } else { Tolerance::default() };
        common::judged(&comparison, Some(tolerance)).unwrap_or_else(|e| panic!("{level:?}: {e}"));
    }
    assert_eq!(made(target, &result, numerics), result, "a second run changes something");
    ModelProto::decode(result.as_slice()).expect("a model")
}

/// Whether the input of a model is of float16.
fn bytes_say_halves(bytes: &[u8]) -> bool {
    common::printed(bytes).lines().any(|line| line.ends_with("= input") && line.contains("f16["))
}

fn standard() -> Box<dyn Target> {
    target("onnx").expect("a built-in target")
}

/// What target `ort-cpu` makes in blocks of 16; in blocks of 8 it is made too, and the one that this host executes is run.
fn for_cpu(net: &Net, numerics: Numerics) -> ModelProto {
    let made = |block| optimized_in(block, &OrtCpu::new(block).expect("a built-in target"), net, numerics);
    blocks().map(made).last().expect("there are blocks")
}

fn for_onnx(net: &Net) -> ModelProto {
    optimized(standard().as_ref(), net, Numerics::Reassociate)
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |g| &g.node)
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|n| n.op_type.as_deref() == Some(op)).count()
}

/// Dims of the initializers that products read.
fn weights(model: &ModelProto) -> Vec<&[i64]> {
    let stored = |name: &String| {
        let all = model.graph.iter().flat_map(|g| &g.initializer);
        all.clone().find(|i| i.name.as_ref() == Some(name)).map(|i| &i.dims[..])
    };
    let products = nodes(model).iter().filter(|n| matches!(n.op_type.as_deref(), Some("MatMul" | "Gemm")));
    let products = products.filter(|n| n.output != ["g"]);
    products.flat_map(|n| &n.input).filter_map(stored).filter(|dims| dims.len() > 1).collect()
}

/// What a projection of rows into heads is written with.
#[derive(Clone, Copy)]
struct Written<'a> {
    /// Dims of the operand; the last one is summed over.
    x: &'a [&'a str],
    /// Heads and their width.
    heads: &'a [i64],
    /// Rows of the result, 0 for a symbol that stays at its place, -1 for one that does not.
    rows: &'a [i64],
    /// The Transpose behind it.
    perm: &'a [i64],
    product: &'a str,
    bias: bool,
    dtype: i32,
}

const PLAIN: Written<'static> = Written {
    x: &["2", "900", "24"],
    heads: &[4, 16],
    rows: &[2, 900],
    perm: &[0, 2, 1, 3],
    product: "MatMul",
    bias: true,
    dtype: F32,
};

impl Written<'_> {
    /// Up to `h`, the result by heads.
    fn open(&self) -> Net {
        let inputs = self.x.last().and_then(|d| d.parse().ok()).expect("a number");
        let columns: i64 = self.heads.iter().product();
        let net = Net::new(17).symbolic_input("x", self.dtype, self.x);
        let net = if self.product == "MatMul" {
            let net = net.floats("w", self.dtype, &[inputs, columns], true);
            if self.bias {
                let net = net.node("MatMul", &["x", "w"], "p");
                net.floats("b", self.dtype, &[columns], true).node("Add", &["b", "p"], "s")
            } else {
                net.node("MatMul", &["x", "w"], "s")
            }
        } else {
            let net = net.floats("w", self.dtype, &[columns, inputs], true).floats("b", self.dtype, &[columns], true);
            net.node_with("Gemm", &["x", "w", "b"], "s", &[("transB", &[1])])
        };
        let shape: Vec<i64> = [self.rows, self.heads].concat();
        net.ints("shape", &shape).node("Reshape", &["s", "shape"], "r").node_with(
            "Transpose",
            &["r"],
            "h",
            &[("perm", self.perm)],
        )
    }

    /// What reads the heads is a product with a constant matrix for each: it finds positions and units last, heads in any order.
    fn net(&self) -> Net {
        let extent = |&axis: &i64| {
            let axis = usize::try_from(axis).expect("an axis");
            axis.checked_sub(self.rows.len()).map_or(1, |head| self.heads[head])
        };
        let (last, before) = self.perm.split_last().expect("axes");
        let batch = &before[..before.len() - 1];
        let constant: Vec<i64> = batch.iter().map(extent).chain([extent(last), 5]).collect();
        let all: Vec<i64> = (0..self.perm.len() as i64 - 1).collect();
        let net = self.open().floats("k", self.dtype, &constant, true).node("MatMul", &["h", "k"], "g");
        net.node_with("ReduceMax", &["g"], "y", &[("axes", &all)]).output("y", self.dtype)
    }

    /// Whether the only product has a matrix per head, and no Transpose is left.
    fn is_apart(&self) -> bool {
        let model = for_onnx(&self.net());
        let apart = weights(&model).iter().any(|dims| dims.len() == 3);
        assert_eq!(count(&model, "Transpose"), usize::from(!apart));
        apart
    }
}

#[test]
fn heads_lie_outermost_where_rows_are_many() {
    assert!(PLAIN.is_apart());
    assert!(Written { bias: false, ..PLAIN }.is_apart());
    assert!(Written { x: &["1", "900", "24"], rows: &[1, 900], ..PLAIN }.is_apart());
    assert!(Written { x: &["1800", "24"], product: "Gemm", ..PLAIN }.is_apart());
    assert!(Written { heads: &[3, 4, 16], perm: &[2, 0, 3, 1, 4], ..PLAIN }.is_apart());
    assert!(Written { x: &["900", "24"], rows: &[900], perm: &[1, 0, 2], ..PLAIN }.is_apart());
    assert!(Written { dtype: F16, ..PLAIN }.is_apart());
    assert!(Written { dtype: F64, ..PLAIN }.is_apart());
}

#[test]
fn a_matrix_per_head_is_that_of_its_columns() {
    let model = for_onnx(&PLAIN.net());
    assert_eq!(weights(&model), [&[4, 24, 16][..]]);
    let model = for_onnx(&Written { x: &["1800", "24"], product: "Gemm", ..PLAIN }.net());
    assert_eq!(weights(&model), [&[4, 24, 16][..]]);
}

#[test]
fn rows_of_a_batch_of_unknown_size_are_projected_too() {
    assert!(Written { x: &["batch", "900", "24"], rows: &[-1, 900], ..PLAIN }.is_apart());
    assert!(
        Written { x: &["batch", "900", "24"], rows: &[0, 900], heads: &[3, 4, 16], perm: &[2, 0, 3, 1, 4], ..PLAIN }
            .is_apart()
    );
}

#[test]
fn few_rows_of_many_weights_and_heads_that_fill_no_run_of_columns_are_projected_together() {
    assert!(!Written { x: &["2", "20", "512"], rows: &[2, 20], ..PLAIN }.is_apart());
    assert!(!Written { x: &["2", "900", "256"], heads: &[4, 17], ..PLAIN }.is_apart());
}

#[test]
fn what_the_transpose_does_not_split_into_heads_stays() {
    // The last axis moves: it is no head.
    assert!(!Written { perm: &[0, 3, 1, 2], ..PLAIN }.is_apart());
    let model = optimized(standard().as_ref(), &PLAIN.net(), Numerics::Exact);
    assert_eq!(
        (count(&model, "Transpose"), weights(&model)),
        (1, vec![&[24, 64][..]]),
        "sums are taken in another order"
    );
}

#[test]
fn what_somebody_else_reads_stays_together() {
    for what in ["w", "p", "s"] {
        let model = for_onnx(&PLAIN.net().node("Relu", &[what], "z").output("z", F32));
        assert!(weights(&model).iter().all(|dims| dims.len() == 2), "{what}");
    }
    let quantized = PLAIN.open().values("scale", F32, &[], &[0.1]).values("zero", I8, &[], &[0.0]);
    let quantized = quantized.node("QuantizeLinear", &["h", "scale", "zero"], "y").output("y", I8);
    assert!(weights(&for_onnx(&quantized)).iter().all(|dims| dims.len() == 2), "rounding would differ by a step");
}

/// Attention in windows: heads merged, a projection, windows put back.
fn windows(batch: &str, between: impl Fn(Net) -> Net) -> Net {
    let number = |of: i64| batch.parse::<i64>().map_or(-1, |n| n * of);
    let all = if batch == "1" { "16".to_owned() } else { batch.to_owned() };
    let heads = [all.as_str(), "3", "25", "8"];
    let net = Net::new(17)
        .symbolic_input("x", F32, &heads)
        .node("Relu", &["x"], "h")
        .node_with("Transpose", &["h"], "t", &[("perm", &[0, 2, 1, 3])])
        .ints("merged", &[if batch == "1" { 16 } else { -1 }, 25, 24])
        .node("Reshape", &["t", "merged"], "m")
        .floats("w", F32, &[24, 12], true)
        .node("MatMul", &["m", "w"], "p");
    between(net)
        .ints("apart", &[number(1), 4, 4, 5, 5, 12])
        .node("Reshape", &["s", "apart"], "a")
        .node_with("Transpose", &["a"], "b", &[("perm", &[0, 1, 3, 2, 4, 5])])
        .ints("image", &[number(1), 20, 20, 12])
        .node("Reshape", &["b", "image"], "i")
        .node("Sigmoid", &["i"], "y")
        .output("y", F32)
}

fn with_bias(net: Net) -> Net {
    net.floats("bias", F32, &[12], true).node("Add", &["p", "bias"], "q").node("Tanh", &["q"], "s")
}

fn moves(net: &Net) -> [usize; 2] {
    let (onnx, cpu) = (for_onnx(net), for_cpu(net, Numerics::Reassociate));
    [count(&onnx, "Transpose"), count(&cpu, "Transpose")]
}

#[test]
fn merged_heads_and_windows_that_are_put_back_are_one_move() {
    assert_eq!(moves(&windows("1", with_bias)), [1, 1]);
    assert_eq!(count(&optimized(standard().as_ref(), &windows("1", with_bias), Numerics::Exact), "Transpose"), 1);
    // By a Gemm of rows.
    let gemm = |net: Net| {
        let net = net.ints("rows", &[400, 12]).node("Reshape", &["p", "rows"], "r");
        net.floats("v", F32, &[12, 12], true).floats("bias", F32, &[12], true).node("Gemm", &["r", "v", "bias"], "s")
    };
    assert_eq!(moves(&windows("1", gemm)), [1, 1]);
}

#[test]
fn what_does_not_treat_rows_alike_keeps_both_moves() {
    let by_row = |net: Net| net.floats("each", F32, &[25, 12], true).node("Add", &["p", "each"], "s");
    let softmax = |net: Net| net.node_with("Softmax", &["p"], "s", &[("axis", &[1])]);
    let seen = |net: Net| with_bias(net).output("q", F32);
    let of_two = |net: Net| net.node("Relu", &["p"], "q").node("Add", &["p", "q"], "s");
    for (what, between) in [
        ("an addend per row", by_row as fn(Net) -> Net),
        ("a sum over rows", softmax),
        ("an output", seen),
        ("a fork", of_two),
    ] {
        assert_eq!(moves(&windows("1", between)), [2, 2], "{what}");
    }
}

#[test]
fn moves_whose_axes_share_no_digits_stay_two() {
    let net = Net::new(17)
        .input("x", F32, &[6, 2, 4, 8])
        .node("Relu", &["x"], "h")
        .node_with("Transpose", &["h"], "t", &[("perm", &[0, 2, 1, 3])])
        .ints("merged", &[24, 16])
        .node("Reshape", &["t", "merged"], "m")
        .floats("w", F32, &[16, 10], true)
        .node("MatMul", &["m", "w"], "p")
        .ints("apart", &[4, 6, 10])
        .node("Reshape", &["p", "apart"], "a")
        .node_with("Transpose", &["a"], "b", &[("perm", &[1, 0, 2])])
        .node("Sigmoid", &["b"], "y")
        .output("y", F32);
    assert_eq!(moves(&net), [2, 2]);
}

/// Queries, keys and values of one projection, taken apart by Gathers of these indices; too few rows for a matrix per head.
fn packed(opset: i64, indices: [i64; 3], more: impl Fn(Net) -> Net) -> Net {
    let net = Net::new(opset)
        .input("x", F32, &[4, 49, 384])
        .floats("w", F32, &[384, 1152], true)
        .node("MatMul", &["x", "w"], "p")
        .ints("shape", &[4, 49, 3, 12, 32])
        .node("Reshape", &["p", "shape"], "r")
        .node_with("Transpose", &["r"], "t", &[("perm", &[2, 0, 3, 1, 4])]);
    let parts = indices.into_iter().zip(["q", "k", "v"]).fold(net, |net, (index, name)| {
        let at = format!("at_{name}");
        net.int(&at, index).node_with("Gather", &["t", &at], name, &[("axis", &[0])])
    });
    let net = parts.node_with("Transpose", &["k"], "kt", &[("perm", &[0, 1, 3, 2])]).node("MatMul", &["q", "kt"], "s");
    more(net.node_with("Softmax", &["s"], "a", &[("axis", &[3])]).node("MatMul", &["a", "v"], "y").output("y", F32))
}

#[test]
fn parts_of_a_transpose_are_split_so_that_the_runtime_keeps_it_in_one_piece() {
    let is_split = |net: &Net| {
        let model = for_cpu(net, Numerics::Exact);
        assert_eq!(count(&model, "Transpose"), 1);
        let [splits, gathers] = ["Split", "Gather"].map(|op| count(&model, op));
        assert_eq!(gathers, 3 * (1 - splits));
        splits == 1
    };
    for opset in [11, 13, 17] {
        assert!(is_split(&packed(opset, [0, 1, 2], |net| net)));
        assert!(is_split(&packed(opset, [-1, 1, 0], |net| net)));
    }
    assert!(!is_split(&packed(17, [0, 1, 1], |net| net)), "a part is read twice, another not at all");
    assert!(!is_split(&packed(17, [0, 1, 2], |net| net.node("Relu", &["t"], "z").output("z", F32))), "all are read");
}

#[test]
fn what_one_form_leaves_another_reads() {
    // Heads are in the batch, so the attention's own result is what is projected.
    let net = Net::new(17)
        .input("q", F32, &[2, 1500, 16])
        .input("kt", F32, &[2, 16, 1500])
        .input("v", F32, &[2, 1500, 64])
        .node("MatMul", &["q", "kt"], "scores")
        .node_with("Softmax", &["scores"], "shares", &[("axis", &[-1])])
        .node("MatMul", &["shares", "v"], "context")
        .floats("w", F32, &[64, 128], true)
        .node("MatMul", &["context", "w"], "p")
        .ints("shape", &[2, 1500, 4, 32])
        .node("Reshape", &["p", "shape"], "r")
        .node_with("Transpose", &["r"], "h", &[("perm", &[0, 2, 1, 3])])
        .floats("k", F32, &[1, 4, 32, 5], true)
        .node("MatMul", &["h", "k"], "g")
        .node_with("ReduceMax", &["g"], "y", &[("axes", &[0, 1, 2])])
        .output("y", F32);
    let model = for_cpu(&net, Numerics::Reassociate);
    assert_eq!(count(&model, "MultiHeadAttention"), 1);
    assert!(weights(&model).contains(&&[4, 64, 32][..]), "{:?}", weights(&model));
}

#[test]
fn what_one_projection_leaves_another_reads() {
    let net = Net::new(17)
        .input("x", F32, &[1, 900, 24])
        .floats("w", F32, &[24, 64], true)
        .node("MatMul", &["x", "w"], "p")
        .ints("shape", &[1, 900, 4, 16])
        .node("Reshape", &["p", "shape"], "r")
        .floats("w2", F32, &[16, 48], true)
        .node("MatMul", &["r", "w2"], "p2")
        .ints("shape2", &[1, 900, 4, 3, 16])
        .node("Reshape", &["p2", "shape2"], "r2")
        .node_with("Transpose", &["r2"], "h", &[("perm", &[0, 3, 2, 1, 4])])
        .floats("k", F32, &[1, 3, 4, 16, 5], true)
        .node("MatMul", &["h", "k"], "g")
        .node_with("ReduceMax", &["g"], "y", &[("axes", &[0, 1, 2, 3])])
        .output("y", F32);
    for_onnx(&net);
    for_cpu(&net, Numerics::Reassociate);
}

#[test]
fn an_audit_says_of_a_move_that_only_a_rewrite_takes_away_that_it_goes_so() {
    let model = Model::from_bytes(PLAIN.net().bytes().into(), None).expect("it opens");
    let audited = audit(&model, standard().as_ref(), &Options::default()).expect("it is audited");
    let fates: Vec<Fate> = audited.list.iter().map(|m| m.fate).collect();
    assert_eq!(fates, [Fate::Rewritten], "{}", audited.explain());
    assert_eq!((audited.best.nodes, audited.optimized.nodes), (1, 0), "layouts alone leave it");
    assert!(audited.explain().contains("goes where nodes are rewritten"));
    let exact = Options::default().numerics(Numerics::Exact);
    let audited = audit(&model, standard().as_ref(), &exact).expect("it is audited");
    let fates: Vec<Fate> = audited.list.iter().map(|m| m.fate).collect();
    assert_eq!(fates, [Fate::Stays], "a rewrite that rounds otherwise is not allowed");
}
