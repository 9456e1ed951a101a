//! The equations.
//!
//! Each says that two terms are equal where its conditions hold. They lead from the ways in which exporters write something to one
//! way, and from that to an op that names it. Axes count from the end.

use crate::term::Head;
use relayout_target_api::{
    Equation, Numerics,
    When::{
        self, Float, Groups, IsShapeOf, KeepsLast, MergesHeads, Near, Number, OneOverExtent, PerLast, Positive, Rank,
        RankOfShape, RowsAndColumns, SameBatch, TurnsMatrices, Within, Zeros,
    },
};
use std::collections::BTreeSet;
use std::f64::consts::FRAC_1_SQRT_2;

const fn exact(name: &'static str, left: &'static str, right: &'static str, when: &'static [When]) -> Equation {
    Equation { name, left, right, when, numerics: Numerics::Exact }
}

const fn rounds(name: &'static str, left: &'static str, right: &'static str, when: &'static [When]) -> Equation {
    Equation { name, left, right, when, numerics: Numerics::Reassociate }
}

/// The square root of two over pi.
const ROOT_TWO_OVER_PI: f64 = 0.797_884_560_802_865_4;

/// Queries, keys and values whose heads are merged into the batch, and the result, from which they are split again.
const MERGED: &[When] = &[
    MergesHeads("?q", "?a"),
    MergesHeads("?k", "?b"),
    MergesHeads("?v", "?c"),
    SameBatch("?q", "?k"),
    SameBatch("?q", "?v"),
    RowsAndColumns("?d", "?q", "?v"),
];

/// The ops that the built-in equations and others give a name to, in the order of the alphabet.
pub fn named(others: &[Equation]) -> Vec<&'static str> {
    let made = |equation: &Equation| equation.right.strip_prefix('(')?.split(' ').next();
    let ops = EQUATIONS.iter().chain(others).filter_map(made);
    let names: BTreeSet<&str> = ops.filter(|name| Head::op(name).is_none()).collect();
    names.into_iter().collect()
}

/// All of them.
pub const EQUATIONS: &[Equation] = &[
    // Sums.
    exact("add_commutes", "(Add ?a ?b)", "(Add ?b ?a)", &[]),
    rounds("add_no_zero", "(Add ?x 0)", "?x", &[]),
    rounds("add_no_zeros", "(Add ?x ?z)", "?x", &[Zeros("?z"), Within("?z", "?x")]),
    exact("subtract_is_add", "(Sub ?x ?c)", "(Add ?x (minus ?c))", &[Number("?c")]),
    exact("negate_is_multiply", "(Neg ?x)", "(Mul ?x -1)", &[]),
    // Products.
    exact("multiply_commutes", "(Mul ?a ?b)", "(Mul ?b ?a)", &[]),
    exact("multiply_by_one", "(Mul ?x 1)", "?x", &[]),
    rounds("divide_is_multiply", "(Div ?x ?c)", "(Mul ?x (inverse ?c))", &[Number("?c")]),
    rounds("divide_is_reciprocal", "(Div ?x ?y)", "(Mul ?x (Reciprocal ?y))", &[]),
    exact("one_over", "(Div 1 ?x)", "(Reciprocal ?x)", &[]),
    rounds("join_factors", "(Mul (Mul ?x ?a) ?b)", "(Mul ?x (times ?a ?b))", &[Number("?a"), Number("?b")]),
    rounds("factor_goes_out", "(Mul (Mul ?x ?a) ?y)", "(Mul (Mul ?x ?y) ?a)", &[Number("?a")]),
    rounds("reciprocal_goes_in", "(Mul (Mul ?x ?y) (Reciprocal ?z))", "(Mul (Mul ?x (Reciprocal ?z)) ?y)", &[]),
    rounds("reciprocal_goes_over", "(Mul (Mul ?x (Reciprocal ?z)) ?y)", "(Mul (Mul ?y (Reciprocal ?z)) ?x)", &[]),
    rounds(
        "distribute_factor",
        "(Mul (Add ?x ?a) ?b)",
        "(Add (Mul ?x ?b) (times ?a ?b))",
        &[Number("?a"), Number("?b")],
    ),
    rounds("factor_of_both", "(Add (Mul ?y ?a) ?a)", "(Mul (Add ?y 1) ?a)", &[Number("?a")]),
    rounds("distribute_cube", "(Mul ?x (Add (Mul (Pow ?x 2) ?a) 1))", "(Add ?x (Mul (Pow ?x 3) ?a))", &[Number("?a")]),
    rounds("factor_of_left", "(MatMul (Mul ?a ?s) ?b)", "(Mul (MatMul ?a ?b) ?s)", &[Number("?s")]),
    rounds("factor_of_right", "(MatMul ?a (Mul ?b ?s))", "(Mul (MatMul ?a ?b) ?s)", &[Number("?s")]),
    exact("factor_of_transpose", "(Transpose (Mul ?x ?s) ?p)", "(Mul (Transpose ?x ?p) ?s)", &[Number("?s")]),
    exact("factor_of_reshape", "(Reshape (Mul ?x ?s) ?d)", "(Mul (Reshape ?x ?d) ?s)", &[Number("?s")]),
    // Powers and roots.
    rounds("square", "(Mul ?x ?x)", "(Pow ?x 2)", &[]),
    rounds("cube", "(Mul (Pow ?x 2) ?x)", "(Pow ?x 3)", &[]),
    rounds("square_root", "(Pow ?x 0.5)", "(Sqrt ?x)", &[]),
    rounds("inverse_square_root", "(Pow ?x -0.5)", "(Reciprocal (Sqrt ?x))", &[]),
    rounds("inverse_power", "(Pow ?x -1)", "(Reciprocal ?x)", &[]),
    rounds("root_of_reciprocal", "(Sqrt (Reciprocal ?x))", "(Reciprocal (Sqrt ?x))", &[]),
    // Views.
    exact("join_transposes", "(Transpose (Transpose ?x ?p) ?q)", "(Transpose ?x (then ?p ?q))", &[]),
    exact("join_reshapes", "(Reshape (Reshape ?x ?a) ?b)", "(Reshape ?x ?b)", &[]),
    exact("reshape_of_sigmoid", "(Reshape (Sigmoid ?x) ?d)", "(Sigmoid (Reshape ?x ?d))", &[]),
    exact("reshape_of_erf", "(Reshape (Erf ?x) ?d)", "(Erf (Reshape ?x ?d))", &[]),
    exact("reshape_of_sum", "(Reshape (Add ?x ?c) ?d)", "(Add (Reshape ?x ?d) ?c)", &[Number("?c")]),
    exact("reshape_to_itself", "(Reshape ?x ?d)", "?x", &[IsShapeOf("?d", "?x")]),
    // Means.
    rounds("mean_of_sum", "(Mul (ReduceSum ?x ?a) ?c)", "(ReduceMean ?x ?a)", &[OneOverExtent("?c", "?x", "?a")]),
    rounds(
        "variance",
        "(Sub (ReduceMean (Pow ?x 2) ?a) (Pow (ReduceMean ?x ?a) 2))",
        "(ReduceMean (Pow (Sub ?x (ReduceMean ?x ?a)) 2) ?a)",
        &[],
    ),
    // Softmax.
    rounds("softmax", "(Div (Exp ?x) (ReduceSum (Exp ?x) ?a))", "(Softmax ?x ?a)", &[]),
    rounds("softmax_of_shifted", "(Softmax (Sub ?x (ReduceMax ?x ?a)) ?a)", "(Softmax ?x ?a)", &[]),
    // Attention.
    rounds(
        "attention",
        "(MatMul (Softmax (Mul (MatMul ?q ?k) ?s) [-1]) ?v)",
        "(Attention ?q ?k ?v ?s)",
        &[Number("?s"), Float("?q"), Float("?k"), Float("?v")],
    ),
    rounds(
        "attention_without_scale",
        "(MatMul (Softmax (MatMul ?q ?k) [-1]) ?v)",
        "(Attention ?q ?k ?v 1)",
        &[Float("?q"), Float("?k"), Float("?v")],
    ),
    rounds(
        "attention_of_rows",
        "(Attention ?q (Transpose ?k ?p) ?v ?s)",
        "(AttentionOfRows ?q ?k ?v ?s)",
        &[TurnsMatrices("?p"), Rank("?k", 3)],
    ),
    rounds(
        "attention_of_heads",
        "(Reshape (Attention (Reshape ?q ?a) (Reshape ?k ?b) (Reshape ?v ?c) ?s) ?d)",
        "(Attention ?q ?k ?v ?s)",
        MERGED,
    ),
    rounds(
        "attention_of_heads_of_rows",
        "(Reshape (AttentionOfRows (Reshape ?q ?a) (Reshape ?k ?b) (Reshape ?v ?c) ?s) ?d)",
        "(AttentionOfRows ?q ?k ?v ?s)",
        MERGED,
    ),
    // Normalizations.
    rounds(
        "normalized",
        "(Div (Sub ?x (ReduceMean ?x ?a)) (Sqrt (Add (ReduceMean (Pow (Sub ?x (ReduceMean ?x ?a)) 2) ?a) ?e)))",
        "(Normalized ?x ?a ?e)",
        &[Positive("?e")],
    ),
    rounds(
        "normalized_by_reciprocal",
        "(Mul (Sub ?x (ReduceMean ?x ?a)) (Reciprocal (Sqrt (Add (ReduceMean (Pow (Sub ?x (ReduceMean ?x ?a)) 2) ?a) ?e))))",
        "(Normalized ?x ?a ?e)",
        &[Positive("?e")],
    ),
    rounds(
        "layer_normalization",
        "(Add (Mul (Normalized ?x [-1] ?e) ?s) ?b)",
        "(LayerNormalization ?x ?s ?b [-1] ?e)",
        &[PerLast("?s", "?x"), PerLast("?b", "?x")],
    ),
    rounds(
        "layer_normalization_of_rows",
        "(Reshape (LayerNormalization (Reshape ?x ?r) ?s ?b ?a ?e) ?d)",
        "(LayerNormalization ?x ?s ?b ?a ?e)",
        &[KeepsLast("?r", "?x"), IsShapeOf("?d", "?x")],
    ),
    rounds(
        "root_normalized",
        "(Div ?x (Sqrt (Add (ReduceMean (Pow ?x 2) ?a) ?e)))",
        "(RootNormalized ?x ?a ?e)",
        &[Positive("?e")],
    ),
    rounds(
        "root_normalized_by_reciprocal",
        "(Mul ?x (Reciprocal (Sqrt (Add (ReduceMean (Pow ?x 2) ?a) ?e))))",
        "(RootNormalized ?x ?a ?e)",
        &[Positive("?e")],
    ),
    rounds(
        "rms_normalization",
        "(Mul (RootNormalized ?x [-1] ?e) ?s)",
        "(RMSNormalization ?x ?s [-1] ?e)",
        &[PerLast("?s", "?x")],
    ),
    rounds(
        "group_normalization",
        "(Reshape (InstanceNormalization (Reshape ?x ?r) ?s ?b ?e) ?d)",
        "(GroupNormalization ?x ?s ?b (second ?r) ?e)",
        &[Groups("?x", "?r"), IsShapeOf("?d", "?x")],
    ),
    rounds(
        "group_normalization_of_rows",
        "(Reshape (Normalized (Reshape ?x ?r) [-1] ?e) ?d)",
        "(GroupNormalization ?x 1 0 (second ?r) ?e)",
        &[Groups("?x", "?r"), RankOfShape("?r", 3), IsShapeOf("?d", "?x")],
    ),
    rounds(
        "instance_normalization",
        "(Normalized ?x [-2,-1] ?e)",
        "(InstanceNormalization ?x 1 0 ?e)",
        &[Rank("?x", 4)],
    ),
    // Activations.
    rounds("sigmoid", "(Reciprocal (Add (Exp (Mul ?x ?c)) 1))", "(Sigmoid (Mul ?x (minus ?c)))", &[Number("?c")]),
    exact("minimum_commutes", "(Min ?a ?b)", "(Min ?b ?a)", &[]),
    exact("maximum_commutes", "(Max ?a ?b)", "(Max ?b ?a)", &[]),
    exact("clip", "(Min (Max ?x ?a) ?b)", "(Clip ?x ?a ?b)", &[Number("?a"), Number("?b")]),
    exact("clip_of_relu", "(Min (Relu ?x) ?b)", "(Clip ?x 0 ?b)", &[Number("?b")]),
    rounds("gelu", "(Mul (Mul ?x (Add (Erf (Mul ?x ?c)) 1)) 0.5)", "(Gelu ?x)", &[Near("?c", FRAC_1_SQRT_2)]),
    rounds(
        "gelu_by_tanh",
        "(Mul (Mul ?x (Add (Tanh (Mul (Add ?x (Mul (Pow ?x 3) ?a)) ?c)) 1)) 0.5)",
        "(GeluTanh ?x)",
        &[Near("?a", 0.044_715), Near("?c", ROOT_TWO_OVER_PI)],
    ),
    rounds("quick_gelu", "(Mul ?x (Sigmoid (Mul ?x ?c)))", "(QuickGelu ?x)", &[Near("?c", 1.702)]),
    rounds("swish", "(Mul ?x (Sigmoid ?x))", "(Swish ?x)", &[]),
    rounds("hard_swish", "(Mul ?x (HardSigmoid ?x ?a 0.5))", "(HardSwish ?x)", &[Near("?a", 1.0 / 6.0)]),
    rounds("hard_swish_by_clip", "(Mul (Mul ?x (Clip (Add ?x 3) 0 6)) ?c)", "(HardSwish ?x)", &[Near("?c", 1.0 / 6.0)]),
];
