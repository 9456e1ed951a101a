//! Target `ort-cpu`: attention as one op, run in ONNX Runtime before and after, with its own rewrites off and on; and every
//! condition under which it stays as it was.

use crate::fold_nets::{self, F32, Net, runtime};
use prost::Message;
use relayout::{Model, Numerics, Options, Size, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// Rounding of float32 sums.
const ROUNDING: f64 = 2e-5;
/// Sizes of symbolic dims when models run.
const SIZES: [(&str, i64); 3] = [("batch", 3), ("queries", 70), ("keys", 67)];

fn options(model: &Model, numerics: Numerics) -> Options {
    // Long enough that the op pays.
    let hints = SIZES.iter().map(|&(name, n)| (name, if name == "batch" { 2 } else { 16 * n }));
    let options = Options::default().numerics(numerics).strict();
    hints.fold(options, |options, (name, n)| options.dim(name, Size::of(n))).dims_of(model)
}

/// The bytes for target `ort-cpu` in blocks of this host.
fn made(bytes: &[u8], numerics: Numerics) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let target = OrtCpu::new(Block::of_host()).expect("a built-in target");
    let result = optimize(&model, &target, &options(&model, numerics)).expect("it is optimized");
    result.to_bytes().expect("it is written")
}

fn decoded(bytes: &[u8]) -> ModelProto {
    ModelProto::decode(bytes).expect("a model")
}

/// The model for target `ort-cpu`, its results held against those of the input. A second run changes nothing.
fn optimized(net: &Net) -> ModelProto {
    let bytes = net.bytes();
    let result = made(&bytes, Numerics::Reassociate);
    let dims: BTreeMap<String, i64> =
        SIZES.into_iter().filter(|(name, _)| net.reads_symbol(name)).map(|(name, n)| (name.to_owned(), n)).collect();
    for level in [Level::Disabled, Level::All] {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        assert!(comparison.holds(&Tolerance::new(ROUNDING, 20.0 * ROUNDING)), "{level:?}: {comparison}");
    }
    assert_eq!(made(&result, Numerics::Reassociate), result, "a second run changes something");
    decoded(&result)
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |graph| &graph.node)
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|node| node.op_type.as_deref() == Some(op)).count()
}

/// `num_heads` and `scale` of the only attention, which has taken the place of everything that it stands for.
fn whole(net: &Net) -> (i64, f32) {
    let model = optimized(net);
    let found: Vec<_> = nodes(&model).iter().filter(|n| n.op_type.as_deref() == Some("MultiHeadAttention")).collect();
    let [node] = found[..] else { panic!("{} attentions: {model:?}", found.len()) };
    assert_eq!(node.domain.as_deref(), Some("com.microsoft"));
    assert_eq!((node.input.len(), count(&model, "Softmax")), (3, 0));
    let attribute = |name: &str| node.attribute.iter().find(|a| a.name.as_deref() == Some(name)).expect(name);
    (attribute("num_heads").i(), attribute("scale").f())
}

fn is_whole(net: &Net) -> bool {
    let model = optimized(net);
    assert_eq!(count(&model, "Softmax") + count(&model, "MultiHeadAttention"), 1);
    count(&model, "MultiHeadAttention") == 1
}

/// Sizes of an attention.
#[derive(Clone, Copy)]
struct Sizes<'a> {
    batch: &'a str,
    queries: &'a str,
    keys: &'a str,
    heads: i64,
    width: i64,
    value_width: i64,
    opset: i64,
}

const SELF: Sizes<'static> =
    Sizes { batch: "2", queries: "1024", keys: "1024", heads: 2, width: 16, value_width: 16, opset: 17 };
/// Channels of what is projected.
const CHANNELS: i64 = 24;

/// A number, or -1 for a symbol.
fn extent(dim: &str) -> i64 {
    dim.parse().unwrap_or(-1)
}

impl Sizes<'_> {
    /// A projection of `from`, split into heads: `[batch, positions, heads, width]`.
    fn projection(&self, net: Net, name: &str, from: &str, [positions, width]: [i64; 2]) -> Net {
        let (weights, projected, shape) = (format!("w_{name}"), format!("{name}_all"), format!("{name}_shape"));
        net.floats(&weights, F32, &[CHANNELS, self.heads * width], true)
            .node("MatMul", &[from, &weights], &projected)
            .ints(&shape, &[extent(self.batch).max(0), positions, self.heads, width])
            .node("Reshape", &[&projected, &shape], &format!("{name}_split"))
    }

    /// Inputs and what is projected of them, a little of it so that shares of attention differ.
    fn projections(&self) -> Net {
        let channels = CHANNELS.to_string();
        let net = Net::new(self.opset).symbolic_input("x", F32, &[self.batch, self.queries, &channels]).symbolic_input(
            "m",
            F32,
            &[self.batch, self.keys, &channels],
        );
        let net = self.projection(net, "q", "x", [extent(self.queries), self.width]);
        let net = self.projection(net, "k", "m", [extent(self.keys), self.width]);
        self.projection(net, "v", "m", [extent(self.keys), self.value_width])
    }

    /// `q` and `v` by heads, and `k` turned.
    fn heads(&self) -> Net {
        self.projections()
            .node_with("Transpose", &["q_split"], "q", &[("perm", &[0, 2, 1, 3])])
            .node_with("Transpose", &["k_split"], "k", &[("perm", &[0, 2, 3, 1])])
            .node_with("Transpose", &["v_split"], "v", &[("perm", &[0, 2, 1, 3])])
    }

    /// From `z`, the context by heads, to the result.
    fn closed(&self, net: Net) -> Net {
        let all = self.heads * self.value_width;
        net.node_with("Transpose", &["z"], "z_split", &[("perm", &[0, 2, 1, 3])])
            .ints("z_shape", &[extent(self.batch).max(0), extent(self.queries), all])
            .node("Reshape", &["z_split", "z_shape"], "z_all")
            .floats("w_o", F32, &[all, CHANNELS], true)
            .node("MatMul", &["z_all", "w_o"], "y")
            .symbolic_output("y", F32, &[self.batch, self.queries, &CHANNELS.to_string()])
    }

    /// The scores become `scaled` by what `between` adds to the scores `s`.
    fn with(&self, between: impl Fn(Net) -> Net) -> Net {
        let net = between(self.heads().node("MatMul", &["q", "k"], "s"));
        let net = net.node_with("Softmax", &["scaled"], "p", &[("axis", &[3])]).node("MatMul", &["p", "v"], "z");
        self.closed(net)
    }

    fn scaled(&self) -> Net {
        self.with(|net| times(net, &[], 0.02))
    }
}

/// `scaled`, the scores times one constant of these dims.
fn times(net: Net, dims: &[i64], by: f32) -> Net {
    net.values("by", F32, dims, &[by]).node("Mul", &["s", "by"], "scaled")
}

#[test]
fn attention_becomes_one_op_that_reads_projections_as_they_are() {
    let model = optimized(&SELF.scaled());
    assert_eq!((count(&model, "MultiHeadAttention"), count(&model, "Transpose")), (1, 0));
    assert_eq!(whole(&SELF.scaled()), (2, 0.02));
}

#[test]
fn batch_and_positions_may_be_symbolic() {
    for (batch, queries, keys) in
        [("batch", "1024", "1024"), ("1", "1024", "1024"), ("2", "queries", "1024"), ("batch", "1024", "keys")]
    {
        let sizes = Sizes { batch, queries, keys, ..SELF };
        assert!(is_whole(&sizes.scaled()), "{batch} {queries} {keys}");
    }
}

#[test]
fn keys_may_be_more_or_fewer_than_queries_and_values_wider_or_narrower_than_keys() {
    for (queries, keys, width, value_width) in
        [("1100", "1024", 16, 16), ("1024", "1500", 16, 16), ("1024", "1024", 16, 24), ("1024", "1024", 24, 5)]
    {
        let sizes = Sizes { queries, keys, width, value_width, ..SELF };
        assert!(is_whole(&sizes.scaled()), "{queries} {keys} {width} {value_width}");
    }
}

#[test]
fn scalars_behind_the_product_become_its_scale() {
    assert_eq!(whole(&SELF.with(|net| times(net, &[1, 1], 0.5))), (2, 0.5));
    let divided = |net: Net| net.values("by", F32, &[], &[4.0]).node("Div", &["s", "by"], "scaled");
    assert_eq!(whole(&SELF.with(divided)), (2, 0.25));
    let twice = |net: Net| {
        let net = net.values("half", F32, &[1], &[0.5]).node("Mul", &["half", "s"], "t");
        net.values("by", F32, &[], &[-4.0]).node("Div", &["t", "by"], "scaled")
    };
    assert_eq!(whole(&SELF.with(twice)), (2, -0.125));
}

#[test]
fn scalars_before_the_product_become_its_scale_too() {
    let net = SELF
        .heads()
        .values("by", F32, &[], &[0.02])
        .node("Mul", &["q", "by"], "little")
        .node("MatMul", &["little", "k"], "s")
        .node_with("Softmax", &["s"], "p", &[("axis", &[-1])])
        .node("MatMul", &["p", "v"], "z");
    assert_eq!(whole(&SELF.closed(net)), (2, 0.02));
}

#[test]
fn what_is_recognized_is_told_with_the_equations_that_lead_there() {
    let told = |net: &Net, numerics: Numerics| {
        let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
        let target = OrtCpu::new(Block::of_host()).expect("a built-in target");
        relayout::why::pieces(&model, &target, &options(&model, numerics)).expect("it is looked at")
    };
    let net = SELF.with(|net| net.values("by", F32, &[], &[4.0]).node("Div", &["s", "by"], "scaled"));
    let pieces = told(&net, Numerics::Reassociate);
    let attention = pieces.iter().find(|piece| piece.op == "Attention").expect("an attention");
    assert_eq!((attention.graph.as_str(), attention.nodes.len()), ("", 4), "{attention:?}");
    let by: Vec<&str> = attention.why.steps.iter().map(|step| step.equation.as_str()).collect();
    assert_eq!(by, ["divide_is_multiply", "attention"]);
    let last = &attention.why.steps[1].term;
    assert!(last.starts_with("(Attention q k v 0.25)"), "{last}");
    assert_eq!(attention.written.as_deref(), Some("attention"));
    assert_eq!(told(&net, Numerics::Exact), []);
}

#[test]
fn keys_may_be_turned_by_a_transpose_of_their_own() {
    let net = SELF
        .projections()
        .node_with("Transpose", &["q_split"], "q", &[("perm", &[0, 2, 1, 3])])
        .node_with("Transpose", &["k_split"], "k_rows", &[("perm", &[0, 2, 1, 3])])
        .node_with("Transpose", &["k_rows"], "k", &[("perm", &[0, 1, 3, 2])])
        .node_with("Transpose", &["v_split"], "v", &[("perm", &[0, 2, 1, 3])])
        .node("MatMul", &["q", "k"], "s");
    let net = times(net, &[], 0.02).node_with("Softmax", &["scaled"], "p", &[("axis", &[-1])]);
    let model = optimized(&SELF.closed(net.node("MatMul", &["p", "v"], "z")));
    assert_eq!((count(&model, "MultiHeadAttention"), count(&model, "Transpose")), (1, 0));
}

/// Heads merged into the batch on the way to the products and split behind them.
fn merged(sizes: Sizes<'_>, splits: bool) -> Net {
    let (both, h) = (extent(sizes.batch) * sizes.heads, sizes.heads);
    let [queries, keys] = [sizes.queries, sizes.keys].map(extent);
    let net = sizes.projections().ints("q_both", &[both, queries, sizes.width]);
    let net = net.ints("k_both", &[both, keys, sizes.width]).ints("v_both", &[both, keys, sizes.value_width]);
    let net = ["q", "k", "v"].iter().fold(net, |net, name| {
        let (split, by_heads) = (format!("{name}_split"), format!("{name}_heads"));
        net.node_with("Transpose", &[&split], &by_heads, &[("perm", &[0, 2, 1, 3])]).node(
            "Reshape",
            &[&by_heads, &format!("{name}_both")],
            &format!("{name}_rows"),
        )
    });
    let net =
        net.node_with("Transpose", &["k_rows"], "k", &[("perm", &[0, 2, 1])]).node("MatMul", &["q_rows", "k"], "s");
    let net = times(net, &[1], 0.02).node_with("Softmax", &["scaled"], "p", &[("axis", &[-1])]);
    let net = net.node("MatMul", &["p", "v_rows"], "z_both");
    if !splits {
        return net.symbolic_output("z_both", F32, &[&both.to_string(), sizes.queries, &sizes.value_width.to_string()]);
    }
    let net = net.ints("z_apart", &[both / h, h, queries, sizes.value_width]);
    sizes.closed(net.node("Reshape", &["z_both", "z_apart"], "z"))
}

#[test]
fn heads_that_were_merged_into_the_batch_are_heads_again() {
    for batch in ["1", "2"] {
        let model = optimized(&merged(Sizes { batch, ..SELF }, true));
        assert_eq!((count(&model, "MultiHeadAttention"), count(&model, "Transpose")), (1, 0), "batch {batch}");
        assert_eq!(whole(&merged(Sizes { batch, ..SELF }, true)), (2, 0.02));
    }
}

#[test]
fn a_batch_without_heads_has_one_head() {
    assert_eq!(whole(&merged(SELF, false)), (1, 0.02));
}

#[test]
fn before_opset_13_softmax_of_the_last_axis_counts_and_of_an_earlier_one_does_not() {
    let of = |axis: i64| {
        let sizes = Sizes { opset: 12, queries: "1100", ..SELF };
        let net = times(sizes.heads().node("MatMul", &["q", "k"], "s"), &[], 0.02);
        let net = net.node_with("Softmax", &["scaled"], "p", &[("axis", &[axis])]);
        sizes.closed(net.node("MatMul", &["p", "v"], "z"))
    };
    assert!(is_whole(&of(3)));
    assert!(!is_whole(&of(2)));
    let default = times(SELF.heads().node("MatMul", &["q", "k"], "s"), &[], 0.02).node("Softmax", &["scaled"], "p");
    assert!(is_whole(&SELF.closed(default.node("MatMul", &["p", "v"], "z"))));
}

#[test]
fn softmax_of_another_axis_is_no_attention() {
    let net = times(SELF.heads().node("MatMul", &["q", "k"], "s"), &[], 0.02);
    let net = net.node_with("Softmax", &["scaled"], "p", &[("axis", &[2])]).node("MatMul", &["p", "v"], "z");
    assert!(!is_whole(&SELF.closed(net)));
}

#[test]
fn a_mask_or_a_bias_leaves_attention_alone() {
    let biased = |net: Net| net.floats("bias", F32, &[1024, 1024], true).node("Add", &["s", "bias"], "scaled");
    assert!(!is_whole(&SELF.with(biased)));
}

#[test]
fn zeros_on_the_scores_and_casts_to_the_type_that_is_there_go_too() {
    let net = times(SELF.heads().node("MatMul", &["q", "k"], "s"), &[], 0.02);
    let net = net.values("none", F32, &[2, 2, 1024, 1024], &vec![0.0; 1 << 22]).node("Add", &["none", "scaled"], "sum");
    let net = net.node_with("Cast", &["sum"], "sum_f", &[("to", &[1])]).node_with(
        "Softmax",
        &["sum_f"],
        "p",
        &[("axis", &[3])],
    );
    let net = net.node_with("Cast", &["p"], "p_f", &[("to", &[1])]).node("MatMul", &["p_f", "v"], "z");
    assert_eq!(whole(&SELF.closed(net)), (2, 0.02));
    let mut one = vec![0.0; 1 << 10];
    one[77] = 1.0;
    let biased = |net: Net| net.values("bias", F32, &[1024], &one).node("Add", &["s", "bias"], "scaled");
    assert!(!is_whole(&SELF.with(biased)));
}

#[test]
fn a_factor_per_head_and_a_factor_that_is_computed_are_no_scale() {
    let per_head = |net: Net| net.values("by", F32, &[2, 1, 1], &[0.02, 0.03]).node("Mul", &["s", "by"], "scaled");
    assert!(!is_whole(&SELF.with(per_head)));
    let computed = |net: Net| net.symbolic_input("by", F32, &["1"]).node("Mul", &["s", "by"], "scaled");
    assert!(!is_whole(&SELF.with(computed)));
    let divides = |net: Net| net.values("by", F32, &[], &[0.02]).node("Div", &["by", "s"], "scaled");
    assert_eq!(count(&decoded(&made(&SELF.with(divides).bytes(), Numerics::Reassociate)), "MultiHeadAttention"), 0);
}

#[test]
fn a_scale_of_zero_would_be_taken_for_none() {
    assert!(!is_whole(&SELF.with(|net| times(net, &[], 0.0))));
}

#[test]
fn scores_or_shares_that_somebody_else_reads_are_kept() {
    let dims = ["2", "2", "1024", "1024"];
    for kept in ["s", "scaled", "p"] {
        assert!(!is_whole(&SELF.scaled().symbolic_output(kept, F32, &dims)), "{kept} is a result");
        let read = SELF.scaled().node("Relu", &[kept], "other").symbolic_output("other", F32, &dims);
        assert!(!is_whole(&read), "{kept} is read");
    }
}

#[test]
fn shares_on_the_right_of_a_product_are_no_attention() {
    let net = times(SELF.heads().node("MatMul", &["q", "k"], "s"), &[], 0.02);
    let net = net.node_with("Softmax", &["scaled"], "p", &[("axis", &[3])]);
    let net =
        net.node_with("Transpose", &["v_split"], "w", &[("perm", &[0, 2, 3, 1])]).node("MatMul", &["w", "p"], "z");
    assert!(!is_whole(&net.symbolic_output("z", F32, &["2", "2", "16", "1024"])));
}

#[test]
fn constant_values_are_packed_on_load_and_stay_an_operand_of_a_product() {
    let net = times(SELF.heads().node("MatMul", &["q", "k"], "s"), &[], 0.02).floats("c", F32, &[2, 2, 1024, 16], true);
    let net = net.node_with("Softmax", &["scaled"], "p", &[("axis", &[3])]).node("MatMul", &["p", "c"], "z");
    assert!(!is_whole(&SELF.closed(net)));
}

#[test]
fn keys_that_all_heads_share_are_no_operand_of_the_op() {
    let net = SELF.heads().ints("first", &[0]).node_with("Gather", &["k", "first"], "k_0", &[("axis", &[1])]);
    let net = times(net.node("MatMul", &["q", "k_0"], "s"), &[], 0.02);
    let net = net.node_with("Softmax", &["scaled"], "p", &[("axis", &[3])]).node("MatMul", &["p", "v"], "z");
    assert!(!is_whole(&SELF.closed(net)));
}

#[test]
fn attention_of_doubles_stays() {
    const F64: i32 = 11;
    let shape: [&[&str]; 2] = [&["1", "2", "1024", "16"], &["1", "2", "16", "1024"]];
    let net = Net::new(17).symbolic_input("q", F64, shape[0]).symbolic_input("k", F64, shape[1]);
    let net = net.symbolic_input("v", F64, shape[0]).node("MatMul", &["q", "k"], "s");
    let net = net.node_with("Softmax", &["s"], "p", &[("axis", &[3])]).node("MatMul", &["p", "v"], "z");
    assert!(!is_whole(&net.symbolic_output("z", F64, shape[0])));
}

#[test]
fn attention_that_is_faster_apart_stays() {
    assert!(!is_whole(&Sizes { batch: "1", queries: "16", keys: "64", ..SELF }.scaled()));
}

#[test]
fn exact_numerics_leave_attention_alone() {
    let model = decoded(&made(&SELF.scaled().bytes(), Numerics::Exact));
    assert_eq!((count(&model, "MultiHeadAttention"), count(&model, "Softmax")), (0, 1));
}

#[test]
fn nothing_that_rounds_otherwise_comes_before_a_quantization() {
    let net = SELF.scaled().values("step", F32, &[], &[0.05]).node("QuantizeLinear", &["y", "step"], "steps");
    let model = decoded(&made(&net.output("steps", fold_nets::U8).bytes(), Numerics::Reassociate));
    assert_eq!((count(&model, "MultiHeadAttention"), count(&model, "Softmax")), (0, 1));
}

#[test]
fn attention_in_a_body_becomes_one_op_there() {
    let inside = |name: &str| {
        let net = Net::new(17).node_with("Transpose", &["k0"], &format!("{name}k"), &[("perm", &[0, 1, 3, 2])]);
        let named = |what: &str| format!("{name}{what}");
        net.node("MatMul", &["q0", &named("k")], &named("s"))
            .node_with("Softmax", &[&named("s")], &named("p"), &[("axis", &[3])])
            .node("MatMul", &[&named("p"), "v0"], &named("z"))
            .symbolic_output(&named("z"), F32, &["1", "2", "1024", "16"])
    };
    let other =
        Net::new(17).node("Identity", &["q0"], "other").symbolic_output("other", F32, &["1", "2", "1024", "16"]);
    let dims = ["1", "1024", "2", "16"];
    let net = ["q", "k", "v"].iter().fold(Net::new(17).input("c", fold_nets::BOOL, &[]), |net, name| {
        net.symbolic_input(name, F32, &dims).node_with(
            "Transpose",
            &[name],
            &format!("{name}0"),
            &[("perm", &[0, 2, 1, 3])],
        )
    });
    let net = net.branches("c", "y", &inside("t"), &other).symbolic_output("y", F32, &["1", "2", "1024", "16"]);
    let model = decoded(&made(&net.bytes(), Numerics::Reassociate));
    let holder = nodes(&model).iter().find(|n| n.op_type.as_deref() == Some("If")).expect("the If");
    let bodies = holder.attribute.iter().filter_map(|a| a.g.as_ref()).flat_map(|g| &g.node);
    assert_eq!(bodies.filter(|n| n.op_type.as_deref() == Some("MultiHeadAttention")).count(), 1);
    let bytes = (net.bytes(), made(&net.bytes(), Numerics::Reassociate));
    assert!(fold_nets::compare(&bytes.0, &bytes.1).holds(&Tolerance::new(ROUNDING, 20.0 * ROUNDING)));
}

#[test]
fn drawn_sizes_give_the_same_results_in_either_form() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut wholes = 0;
    for _ in 0..24 {
        let mut positions = |named: &'static str| match below(3) {
            0 => named.to_owned(),
            1 => (1 + below(90)).to_string(),
            _ => (600 + below(600)).to_string(),
        };
        let (queries, keys) = (positions("queries"), positions("keys"));
        let batch = ["1", "2", "batch"][below(3) as usize];
        let [heads, width, value_width] = [4, 40, 40].map(|n| 1 + below(n) as i64);
        let opset = [12, 13, 17][below(3) as usize];
        let sizes = Sizes { batch, queries: &queries, keys: &keys, heads, width, value_width, opset };
        let symbols = [batch, &queries, &keys].into_iter().filter(|dim| extent(dim) < 0).count();
        let net = if below(3) == 0 && symbols == 0 {
            merged(sizes, below(2) == 0)
        } else {
            sizes.with(|net| times(net, &[], 0.002))
        };
        wholes += usize::from(is_whole(&net));
    }
    assert!((4..=20).contains(&wholes), "{wholes} of 24 are one op");
}
