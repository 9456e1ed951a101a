//! Folding of constants, scales and shifts: what goes, what stays and why, and that models compute the same before and after.

use crate::fold_nets::cpu::refusal_by;
use crate::fold_nets::folded::{fold, fold_with};
use crate::fold_nets::{BOOL, F16, F32, I8, Net, U8, compare};
use proptest::prelude::*;
use relayout::{Model, Numerics, Options, optimize, target};
use relayout_verify::Tolerance;

const ROUNDED: f64 = 2e-6;

/// x -> Conv -> c, with everything that the chains below may read.
fn conv(dtype: i32) -> Net {
    let net = Net::new(17)
        .input("x", dtype, &[2, 4, 6, 5])
        .floats("w", dtype, &[6, 4, 3, 3], true)
        .floats("b", dtype, &[6], true)
        .floats("channel", dtype, &[6, 1, 1], true)
        .floats("last", dtype, &[6], true)
        .floats("one", dtype, &[], false)
        .floats("wide", dtype, &[6, 6, 5], true)
        .floats("gamma", dtype, &[6], false)
        .floats("beta", dtype, &[6], true)
        .floats("mean", dtype, &[6], true)
        .floats("var", dtype, &[6], false);
    net.node_with("Conv", &["x", "w", "b"], "c", &[("pads", &[1, 1, 1, 1])])
}

const BN: [&str; 5] = ["c", "gamma", "beta", "mean", "var"];

#[test]
fn a_chain_behind_a_convolution_is_one_scale_and_one_shift() {
    let net = conv(F32)
        .node("BatchNormalization", &BN, "n")
        .node("Mul", &["channel", "n"], "m")
        .node("Sub", &["m", "one"], "s")
        .node("Neg", &["s"], "g")
        .node("Div", &["g", "one"], "y")
        .output("y", F32);
    let folded = fold(&net);
    assert_eq!(folded.ops(), ["Conv"]);
    folded.holds(ROUNDED);
    insta::assert_snapshot!("chain", folded.text);
    assert_eq!(folded.report.rewrites.get("scale_into_conv"), Some(&5));
    let model = Model::from_bytes(folded.after.into(), None).unwrap();
    let names: Vec<&str> = model.ir().graph.values().map(|v| model.ir().graph.value(v).name.as_str()).collect();
    // Weights, bias and the result keep their names; what nothing read in the input stays, and nothing else is left.
    assert_eq!(names, ["x", "w", "b", "last", "wide", "y"]);
}

#[test]
fn numerics_exact_leaves_arithmetic_alone() {
    let net = conv(F32).node("BatchNormalization", &BN, "y").output("y", F32);
    let folded = fold_with(&net, Numerics::Exact);
    assert!(!folded.report.changed);
    assert_eq!(folded.before, folded.after);
}

#[test]
fn scales_go_through_transposes_and_the_channel_with_them() {
    let net = conv(F32)
        .node_with("Transpose", &["c"], "t", &[("perm", &[0, 2, 3, 1])])
        .node("Mul", &["t", "last"], "m")
        .node("Add", &["m", "last"], "y")
        .output("y", F32);
    let folded = fold(&net);
    assert_eq!(folded.ops(), ["Conv", "Transpose"]);
    folded.holds(ROUNDED);
}

#[test]
fn a_number_goes_through_a_reshape_and_a_vector_does_not() {
    let reshaped = |by: &str| {
        let net = conv(F32).ints("shape", &[2, -1, 6]).node("Reshape", &["c", "shape"], "r");
        fold(&net.floats("six", F32, &[6], true).node("Mul", &["r", by], "y").output("y", F32))
    };
    let number = reshaped("one");
    assert_eq!(number.ops(), ["Conv", "Reshape"]);
    number.holds(ROUNDED);
    let vector = reshaped("six");
    assert_eq!(vector.ops(), ["Conv", "Reshape", "Mul"]);
    assert!(!vector.report.changed);
}

#[test]
fn a_vector_goes_through_a_reshape_that_leaves_channels_an_axis() {
    for (shape, dims) in [(&[2, 6, -1][..], &[6, 1][..]), (&[1, 2, 6, 30], &[6, 1]), (&[2, 6, 6, 5, 1], &[6, 1, 1, 1])]
    {
        let net = conv(F32).ints("shape", shape).node("Reshape", &["c", "shape"], "r").floats("by", F32, dims, true);
        let folded = fold(&net.node("Mul", &["r", "by"], "m").node("Add", &["by", "m"], "y").output("y", F32));
        assert_eq!(folded.ops(), ["Conv", "Reshape"], "{shape:?}");
        folded.holds(ROUNDED);
    }
    // Of images and channels together.
    let net =
        conv(F32).ints("shape", &[12, -1]).node("Reshape", &["c", "shape"], "r").floats("by", F32, &[12, 1], true);
    assert!(!fold(&net.node("Mul", &["r", "by"], "y").output("y", F32)).report.changed);
}

/// What keeps a scale where it is. Each stands beside `a_chain_behind_a_convolution_is_one_scale_and_one_shift`.
#[test]
fn what_is_no_scale_of_this_convolution_alone_stays() {
    let cases: [(&str, Net); 6] = [
        ("another reader of the convolution", conv(F32).node("Mul", &["c", "one"], "y").node("Relu", &["c"], "z")),
        ("the convolution is an output", conv(F32).node("Mul", &["c", "one"], "y").output("c", F32)),
        ("one number per element", conv(F32).node("Mul", &["c", "wide"], "y")),
        ("a constant divided by it", conv(F32).node("Div", &["one", "c"], "y")),
        ("its own product", conv(F32).node("Mul", &["c", "c"], "y")),
        (
            "a quantization follows",
            conv(F32)
                .node("Mul", &["c", "one"], "m")
                .values("zero", U8, &[], &[3.0])
                .node("QuantizeLinear", &["m", "one", "zero"], "q")
                .node("DequantizeLinear", &["q", "one", "zero"], "y"),
        ),
    ];
    for (why, net) in cases {
        let net = if why.starts_with("another") { net.output("z", F32) } else { net };
        let folded = fold(&net.output("y", F32));
        assert!(!folded.report.changed, "{why}:\n{}", folded.text);
        assert_eq!(folded.before, folded.after, "{why}");
    }
}

#[test]
fn large_weights_with_another_reader_are_not_stored_twice_and_small_ones_are() {
    for (channels, twice) in [(16i64, true), (96, false)] {
        let net = Net::new(17)
            .input("x", F32, &[1, channels, 4, 4])
            .floats("w", F32, &[channels, channels, 3, 3], true)
            .floats("s", F32, &[channels, 1, 1], true)
            .node("Conv", &["x", "w"], "a")
            .node("Conv", &["x", "w"], "b")
            .node("Mul", &["a", "s"], "y")
            .node("Add", &["b", "s"], "z")
            .output("y", F32)
            .output("z", F32);
        let folded = fold(&net);
        let muls = folded.ops().iter().filter(|op| *op == "Mul").count();
        // A shift needs no other weights.
        assert_eq!((muls, folded.ops().contains(&"Add".to_owned())), (usize::from(!twice), false), "{}", folded.text);
        folded.holds(ROUNDED);
    }
}

#[test]
fn matmul_takes_scales_and_its_add_takes_shifts() {
    let net = Net::new(17)
        .input("x", F32, &[2, 5, 8])
        .floats("w", F32, &[8, 6], true)
        .floats("b", F32, &[6], true)
        .floats("s", F32, &[6], true)
        .floats("t", F32, &[1, 1, 6], true)
        .node("MatMul", &["x", "w"], "p")
        .node("Add", &["b", "p"], "q")
        .node("Mul", &["q", "s"], "r");
    let folded = fold(&net.clone().node("Sub", &["r", "t"], "y").output("y", F32));
    assert_eq!(folded.ops(), ["MatMul", "Add"]);
    folded.holds(ROUNDED);
    insta::assert_snapshot!("matmul", folded.text);
    let bare = Net::new(17)
        .input("x", F32, &[2, 8])
        .floats("w", F32, &[8, 6], true)
        .floats("s", F32, &[6], true)
        .node("MatMul", &["x", "w"], "p")
        .node("Mul", &["p", "s"], "q")
        .node("Add", &["q", "s"], "y")
        .output("y", F32);
    assert_eq!(fold(&bare).ops(), ["MatMul", "Add"]);
    fold(&bare).holds(ROUNDED);
}

#[test]
fn a_factor_of_a_product_of_activations_stays_for_the_runtime_to_fuse() {
    let alone = Net::new(17)
        .input("x", F32, &[2, 5, 8])
        .input("k", F32, &[2, 6, 5])
        .floats("w", F32, &[8, 6], true)
        .values("s", F32, &[], &[0.125])
        .node("MatMul", &["x", "w"], "p")
        .node("Mul", &["p", "s"], "q");
    assert!(!fold(&alone.clone().node("MatMul", &["q", "k"], "y").output("y", F32)).report.changed);
    let folded = fold(&alone.node("Relu", &["q"], "r").node("MatMul", &["r", "k"], "y").output("y", F32));
    assert_eq!(folded.ops(), ["MatMul", "Relu", "MatMul"]);
    folded.holds(ROUNDED);
}

#[test]
fn gemm_takes_both_unless_beta_scales_its_summand() {
    for (transposed, beta) in [(0, None), (1, None), (1, Some(0.5))] {
        let dims: [i64; 2] = if transposed == 0 { [8, 6] } else { [6, 8] };
        let mut net = Net::new(17)
            .input("x", F32, &[3, 8])
            .floats("w", F32, &dims, true)
            .floats("b", F32, &[6], true)
            .floats("v", F32, &[6], false)
            .node_with("Gemm", &["x", "w", "b"], "c", &[("transB", &[transposed])]);
        if let Some(beta) = beta {
            net = net.float_attribute("beta", beta);
        }
        let net = net.node("BatchNormalization", &["c", "v", "b", "b", "v"], "y").output("y", F32);
        let folded = fold(&net);
        assert_eq!(folded.report.changed, beta.is_none());
        folded.holds(ROUNDED);
    }
}

#[test]
fn weights_behind_views_and_casts_are_weights() {
    let net = Net::new(17)
        .input("x", F32, &[1, 4, 5, 5])
        .floats("half", F16, &[9, 4, 6], true)
        .ints("shape", &[3, 3, 4, 6])
        .floats("s", F32, &[6, 1, 1], true)
        .node_with("Cast", &["half"], "single", &[("to", &[i64::from(F32)])])
        .node("Reshape", &["single", "shape"], "hwio")
        .node_with("Transpose", &["hwio"], "w", &[("perm", &[3, 2, 0, 1])])
        .node("Conv", &["x", "w"], "c")
        .node("Mul", &["c", "s"], "y")
        .output("y", F32);
    let folded = fold(&net);
    assert_eq!(folded.ops(), ["Conv"]);
    folded.holds(ROUNDED);
    let exact = fold_with(&net, Numerics::Exact);
    assert_eq!(exact.ops(), ["Conv", "Mul"]);
    assert!(compare(&exact.before, &exact.after).exact);
}

#[test]
fn large_weights_are_computed_when_they_are_written() {
    let net = Net::new(17)
        .input("x", F32, &[256, 300])
        .floats("half", F16, &[256, 300], true)
        .floats("s", F32, &[300], false)
        .node_with("Cast", &["half"], "single", &[("to", &[i64::from(F32)])])
        .node("Div", &["single", "s"], "scaled")
        .node("Add", &["x", "scaled"], "y")
        .output("y", F32);
    let folded = fold(&net);
    assert_eq!(folded.ops(), ["Add"]);
    assert!(compare(&folded.before, &folded.after).exact);
}

#[test]
fn every_evaluated_op_gives_the_runtime_s_bits() {
    type Attributes = &'static [(&'static str, &'static [i64])];
    let steps: &[(&str, &[&str], Attributes)] = &[
        ("Add", &["a", "row"], &[]),
        ("Sub", &["row", "a"], &[]),
        ("Mul", &["a", "row"], &[]),
        ("Div", &["row", "a"], &[]),
        ("Neg", &["a"], &[]),
        ("Abs", &["a"], &[]),
        ("Floor", &["a"], &[]),
        ("Ceil", &["a"], &[]),
        ("Round", &["a"], &[]),
        ("Min", &["a", "row"], &[]),
        ("Max", &["row", "a"], &[]),
        ("Pow", &["squares", "half"], &[]),
        ("Clip", &["a", "low"], &[]),
        ("Clip", &["a", "", "high"], &[]),
        ("Clip", &["a", "low", "high"], &[]),
        ("Identity", &["a"], &[]),
        ("Transpose", &["a"], &[("perm", &[1, 0])]),
        ("Concat", &["a", "a"], &[("axis", &[1])]),
        ("Gather", &["a", "picks"], &[("axis", &[-1])]),
        ("Slice", &["a", "from", "to", "axes", "steps"], &[]),
        ("ReduceMax", &["a"], &[("axes", &[1])]),
        ("ReduceMax", &["a"], &[("axes", &[0]), ("keepdims", &[0])]),
        ("ReduceMax", &["a"], &[("axes", &[0, 1])]),
        ("Expand", &["row", "shape"], &[]),
        ("Tile", &["part", "repeats"], &[]),
        ("Unsqueeze", &["a", "axes"], &[]),
        ("ScatterND", &["a", "places", "updates"], &[]),
    ];
    for (op, inputs, attributes) in steps {
        let net = Net::new(17)
            .floats("a", F32, &[3, 4], true)
            .floats("row", F32, &[4], true)
            .values("squares", F32, &[3, 4], &(1..13).map(|i| (i * i) as f32).collect::<Vec<_>>())
            .values("half", F32, &[], &[0.5])
            .values("low", F32, &[], &[-0.25])
            .values("high", F32, &[], &[0.5])
            .floats("part", F32, &[3, 2], true)
            .ints("repeats", &[1, 2])
            .ints("picks", &[0, -1, 2])
            .ints("from", &[-1])
            .ints("to", &[-9])
            .ints("axes", &[1])
            .ints("steps", &[-2])
            .ints("shape", &[3, 4])
            .values("places", 7, &[2, 1], &[2.0, 0.0])
            .floats("updates", F32, &[2, 4], true)
            .input("x", F32, &[])
            .node_with(op, inputs, "known", attributes)
            .node("Add", &["known", "x"], "y")
            .output("y", F32);
        let folded = fold(&net);
        assert_eq!(folded.ops(), ["Add"], "{op}");
        assert!(compare(&folded.before, &folded.after).exact, "{op}");
    }
}

#[test]
fn sizes_that_computed_paddings_say_are_known_in_the_same_round() {
    let net = Net::new(17)
        .input("x", F32, &[1, 3, 9, 9])
        .input("z", F32, &[4])
        .values("outputs", F32, &[], &[4.5])
        .values("stride", F32, &[], &[2.0])
        .values("none", F32, &[], &[0.0])
        .ints("before", &[0, 0, 0, 0, 0, 0])
        .ints("place", &[0])
        .node("Ceil", &["outputs"], "whole")
        .node("Mul", &["whole", "stride"], "needed")
        .node("Sub", &["needed", "stride"], "missing")
        .node("Clip", &["missing", "none", ""], "least")
        .node_with("Cast", &["least"], "number", &[("to", &[7])])
        .node("Unsqueeze", &["number", "place"], "one")
        .node_with("Concat", &["before", "one", "one"], "pads", &[("axis", &[0])])
        .node("Pad", &["x", "pads"], "p")
        .node("Shape", &["p"], "shape")
        .node_with("Cast", &["shape"], "sizes", &[("to", &[i64::from(F32)])])
        .node("Sqrt", &["sizes"], "roots")
        .node("Add", &["roots", "z"], "s")
        .node("Relu", &["p"], "y")
        .output("y", F32)
        .output("s", F32);
    let model = Model::from_bytes(net.bytes().into(), None).unwrap();
    // The one round of a target with a dialect of its own.
    let optimized = optimize(&model, target("ort-cpu").unwrap().as_ref(), &Options::default()).unwrap();
    let text = optimized.graph().to_string();
    assert!(text.contains("1,3,17,17") || text.contains("[1, 3, 17, 17]"), "{text}");
    for op in ["Clip", "Shape", "Cast", "Sqrt"] {
        assert!(!text.contains(op), "{op} is left:\n{text}");
    }
    assert!(compare(&net.bytes(), &optimized.to_bytes().unwrap()).exact);
}

#[test]
fn dequantized_weights_stay_with_what_reads_them() {
    let net = |op: &str| {
        Net::new(17)
            .input("x", F32, &[2, 8])
            .values("q", I8, &[8, 8], &(0..64).map(|i| i as f32 - 30.0).collect::<Vec<_>>())
            .values("scale", F32, &[], &[0.25])
            .values("zero", I8, &[], &[3.0])
            .ints("rows", &[0, 1])
            .node("DequantizeLinear", &["q", "scale", "zero"], "w")
            .node_with(op, if op == "MatMul" { &["x", "w"] } else { &["w", "x"] }, "y", &[])
            .output("y", F32)
    };
    let weights = fold(&net("MatMul"));
    assert!(!weights.report.changed);
    let table = Net::new(17)
        .input("x", F32, &[8, 8])
        .values("q", I8, &[8, 8], &(0..64).map(|i| i as f32 - 30.0).collect::<Vec<_>>())
        .values("scale", F32, &[], &[0.25])
        .values("zero", I8, &[], &[3.0])
        .node("DequantizeLinear", &["q", "scale", "zero"], "w")
        .node("Add", &["x", "w"], "y")
        .output("y", F32);
    let folded = fold(&table);
    assert_eq!(folded.ops(), ["Add"]);
    assert!(compare(&folded.before, &folded.after).exact);
}

#[test]
fn what_would_only_make_the_file_larger_stays() {
    let net = Net::new(17)
        .input("x", F32, &[200, 200])
        .values("one", F32, &[1], &[2.0])
        .ints("shape", &[200, 200])
        .node("Expand", &["one", "shape"], "e")
        .node("Add", &["x", "e"], "y")
        .output("y", F32);
    assert!(!fold(&net).report.changed);
}

#[test]
fn halves_whose_products_leave_their_range_stay() {
    for (by, ops) in [(0.75, 1), (1e-4, 2), (5e4, 2)] {
        let net = conv(F16).values("s", F16, &[], &[by]).node("Mul", &["c", "s"], "y").output("y", F16);
        assert_eq!(fold(&net).ops().len(), ops, "{by}");
    }
}

#[test]
fn files_whose_initializers_are_inputs_keep_lists_that_agree() {
    let net = Net::new(9)
        .input("x", F32, &[1, 3, 5, 5])
        .floats("w", F32, &[4, 3, 3, 3], true)
        .floats("gamma", F32, &[4], false)
        .floats("beta", F32, &[4], true)
        .node("Conv", &["x", "w"], "c")
        .node("BatchNormalization", &["c", "gamma", "beta", "beta", "gamma"], "y")
        .output("y", F32)
        .ir_3();
    let folded = fold(&net);
    assert_eq!(folded.ops(), ["Conv"]);
    folded.holds(ROUNDED);
}

#[test]
fn a_branch_folds_unless_what_leaves_it_is_quantized() {
    let then = Net::new(17)
        .floats("w", F32, &[6, 4, 3, 3], true)
        .floats("s", F32, &[6, 1, 1], true)
        .node("Conv", &["x", "w"], "c")
        .node("Mul", &["c", "s"], "m")
        .node("Add", &["m", "outside"], "r")
        .output("r", F32);
    let other = Net::new(17).floats("v", F32, &[6, 4, 3, 3], true).node("Conv", &["x", "v"], "d").output("d", F32);
    let net = Net::new(17)
        .input("x", F32, &[1, 4, 5, 5])
        .input("condition", BOOL, &[])
        .floats("outside", F32, &[6, 1, 1], true)
        .branches("condition", "z", &then, &other);
    let plain = fold(&net.clone().node("Relu", &["z"], "y").output("y", F32));
    assert_eq!(plain.report.rewrites.get("scale_into_conv"), Some(&1), "{}", plain.text);
    plain.holds(ROUNDED);
    let quantized = net
        .values("scale", F32, &[], &[0.5])
        .values("zero", U8, &[], &[3.0])
        .node("QuantizeLinear", &["z", "scale", "zero"], "y")
        .output("y", U8);
    assert!(!fold(&quantized).report.changed);
}

#[test]
fn copies_of_everything_go_unless_their_name_is_wanted() {
    let net = |start: i64, end: i64, step: i64| {
        let net = Net::new(17).input("x", F32, &[2, 6, 5]).ints("start", &[start]).ints("end", &[end]);
        let net = net.ints("axis", &[1]).ints("step", &[step]).ints("pads", &[0; 6]);
        net.node("Slice", &["x", "start", "end", "axis", "step"], "s").node("Pad", &["s", "pads"], "p")
    };
    let read = |net: Net| net.node("Relu", &["p"], "y").output("y", F32);
    let folded = fold_with(&read(net(-6, i64::MAX, 1)), Numerics::Exact);
    assert_eq!(folded.report.rewrites.get("read_what_is_copied"), Some(&2));
    assert_eq!(folded.ops(), ["Relu"]);
    folded.holds(0.0);
    for (start, end, step) in [(-1, i64::MIN, -1), (1, 6, 1), (0, 6, 2)] {
        assert_eq!(fold(&read(net(start, end, step))).ops(), ["Slice", "Relu"], "{start}..{end} by {step}");
    }
    let wanted = fold(&net(0, 6, 1).output("s", F32).output("p", F32));
    assert!(!wanted.report.changed, "{}", wanted.text);
    let then = Net::new(17).node("Relu", &["p"], "z").output("z", F32);
    let other = Net::new(17).node("Neg", &["x"], "o").output("o", F32);
    let captured = net(0, 6, 1).input("condition", BOOL, &[]).branches("condition", "y", &then, &other);
    let captured = fold(&captured.output("y", F32));
    assert_eq!(captured.report.rewrites.get("read_what_is_copied"), Some(&1), "{}", captured.text);
    captured.holds(0.0);
}

#[test]
fn places_that_are_picked_of_what_a_slice_takes_are_picked_of_its_operand() {
    let net = |axis: i64, places: &[i64]| {
        let net =
            Net::new(17).input("x", F32, &[2, 6, 5]).ints("start", &[-1]).ints("end", &[i64::MIN]).ints("step", &[-2]);
        let net = net.ints("axis", &[1]).node("Slice", &["x", "start", "end", "axis", "step"], "s");
        let picked = net.ints("places", places).node_with("Gather", &["s", "places"], "p", &[("axis", &[axis])]);
        picked.node("Relu", &["p"], "y").output("y", F32)
    };
    for places in [&[0][..], &[2], &[-1], &[1, 0, -3]] {
        let folded = fold_with(&net(1, places), Numerics::Exact);
        assert_eq!(folded.report.rewrites.get("pick_from_what_is_cut"), Some(&1), "{places:?}");
        assert_eq!(folded.ops(), ["Gather", "Relu"]);
        folded.holds(0.0);
    }
    let asked = |step: i64| {
        let net = Net::new(17)
            .input("x", F32, &[2, 6, 5])
            .ints("start", &[-1])
            .ints("end", &[i64::MIN])
            .ints("step", &[step]);
        let net = net.ints("axis", &[1]).node("Slice", &["x", "start", "end", "axis", "step"], "s").ints("place", &[1]);
        let picked = net.node_with("Gather", &["s", "place"], "y", &[("axis", &[1])]).output("y", F32);
        fold(&picked.node("Shape", &["s"], "shape").node("ConstantOfShape", &["shape"], "zeros").output("zeros", F32))
    };
    let reversed = asked(-1);
    assert_eq!(reversed.report.rewrites.get("pick_from_what_is_cut"), Some(&1));
    assert!(!reversed.ops().iter().any(|op| op == "Slice"), "{}", reversed.text);
    reversed.holds(0.0);
    assert!(!fold(&net(2, &[0])).report.changed, "another axis");
    assert!(!fold(&net(1, &[0]).output("s", F32)).report.changed, "it is wanted");
    assert!(!fold(&net(1, &[0]).node("Neg", &["s"], "n").output("n", F32)).report.changed, "others read it");
}

#[test]
fn a_constant_takes_another_name_where_an_earlier_body_has_its_name() {
    let then = Net::new(17).node("Neg", &["x"], "t").node("Relu", &["t"], "z").output("z", F32);
    let other = Net::new(17).node("Neg", &["x"], "o").output("o", F32);
    let net = Net::new(17).input("x", F32, &[2, 6]).input("condition", BOOL, &[]).floats("w", F32, &[5, 6], true);
    let net = net.branches("condition", "c", &then, &other).node_with("Transpose", &["w"], "t", &[("perm", &[1, 0])]);
    let folded = fold(&net.node("MatMul", &["c", "t"], "y").output("y", F32));
    assert_eq!(folded.ops(), ["If", "MatMul"]);
    folded.holds(0.0);
}

#[test]
fn a_cast_goes_where_it_keeps_the_type() {
    let net = |to: i32| {
        let net = Net::new(17).input("x", F16, &[2, 6]).node("Neg", &["x"], "n");
        let cast = net.node_with("Cast", &["n"], "c", &[("to", &[i64::from(to)])]);
        cast.node("Relu", &["c"], "y").output("y", to)
    };
    let same = fold_with(&net(F16), Numerics::Exact);
    assert_eq!(same.ops(), ["Neg", "Relu"]);
    same.holds(0.0);
    assert!(!fold(&net(F32)).report.changed);
}

#[test]
fn shape_arithmetic_of_known_shapes_goes_and_that_of_symbols_stays() {
    let net = |dims: &[i64]| {
        Net::new(17)
            .input("x", F32, dims)
            .ints("first", &[0])
            .ints("rest", &[-1])
            .node("Shape", &["x"], "extents")
            .node_with("Gather", &["extents", "first"], "n", &[("axis", &[0])])
            .node_with("Concat", &["n", "rest"], "target", &[("axis", &[0])])
            .node("Reshape", &["x", "target"], "y")
            .output("y", F32)
    };
    let known = fold(&net(&[2, 3, 4]));
    assert_eq!(known.ops(), ["Reshape"]);
    assert!(compare(&known.before, &known.after).exact);
    // -1 stands for a dim that is not known here.
    assert!(!fold(&net(&[-1, 3, 4])).report.changed);
}

/// A convolution of any kind and a chain behind it.
#[derive(Clone, Debug)]
struct Case {
    spatial: usize,
    groups: i64,
    channels: (i64, i64),
    kernel: i64,
    transposed: bool,
    bias: bool,
    half: bool,
    chain: Vec<(u8, bool)>,
}

fn case() -> impl Strategy<Value = Case> {
    let shape = (1usize..=3, 1i64..=3, (1i64..=3, 1i64..=3), 1i64..=2);
    let kind = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.25));
    (shape, kind, prop::collection::vec((0u8..6, any::<bool>()), 1..=4)).prop_map(
        |((spatial, groups, channels, kernel), (transposed, bias, half), chain)| Case {
            spatial,
            groups,
            channels,
            kernel,
            transposed,
            bias,
            half,
            chain,
        },
    )
}

fn net_of(case: &Case) -> Net {
    let dtype = if case.half { F16 } else { F32 };
    let (ins, outs) = (case.channels.0 * case.groups, case.channels.1 * case.groups);
    let mut x = vec![2, ins];
    let mut w = if case.transposed { vec![ins, case.channels.1] } else { vec![outs, case.channels.0] };
    x.extend(vec![4; case.spatial]);
    w.extend(vec![case.kernel; case.spatial]);
    let mut channel = vec![outs];
    channel.extend(vec![1; case.spatial]);
    let net = Net::new(17)
        .input("x", dtype, &x)
        .floats("w", dtype, &w, true)
        .floats("b", dtype, &[outs], true)
        .floats("positive", dtype, &[outs], false)
        .floats("channel", dtype, &channel, true)
        .floats("number", dtype, &[1], true);
    let op = if case.transposed { "ConvTranspose" } else { "Conv" };
    let inputs: &[&str] = if case.bias { &["x", "w", "b"] } else { &["x", "w"] };
    let mut net = net.node_with(op, inputs, "v0", &[("group", &[case.groups])]);
    for (i, &(kind, by_channel)) in case.chain.iter().enumerate() {
        let (from, to) =
            (format!("v{i}"), if i + 1 == case.chain.len() { "y".to_owned() } else { format!("v{}", i + 1) });
        let by = if by_channel { "channel" } else { "number" };
        net = match kind {
            0 => net.node("BatchNormalization", &[&from, "positive", "b", "b", "positive"], &to),
            1 => net.node("Mul", &[by, &from], &to),
            2 => net.node("Div", &[&from, by], &to),
            3 => net.node("Add", &[&from, by], &to),
            4 => net.node("Sub", &[by, &from], &to),
            _ => net.node("Sub", &[&from, by], &to),
        };
    }
    net.output("y", dtype)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_chain_behind_any_convolution_folds_whole_and_computes_the_same(case in case()) {
        let folded = fold(&net_of(&case));
        // Halves may stay where a product leaves their range.
        if !case.half {
            prop_assert_eq!(folded.ops().len(), 1, "{}", folded.text);
        }
        let rms = if case.half { 5e-3 } else { 1e-5 };
        let comparison = compare(&folded.before, &folded.after);
        prop_assert!(comparison.holds(&Tolerance::new(rms, 10.0 * rms)), "{comparison}\n{}", folded.text);
    }
}

#[test]
fn a_bias_that_is_added_behind_views_is_no_claim_about_what_lies_before() {
    let net = || {
        let net = Net::new(17).input("x", F32, &[2, 8, 1, 20]).floats("k", F32, &[6, 8, 1, 5], true).floats(
            "bias",
            F32,
            &[1, 6, 1],
            true,
        );
        net.ints("two", &[2]).ints("first", &[0; 4]).ints("last", &[i64::MAX; 4])
    };
    let behind = |net: Net, c: &str| {
        let net = net.node("Squeeze", &[c, "two"], "s").node("Add", &["s", "bias"], "a");
        net.node("Relu", &["a"], "y").output("y", F32).bytes()
    };
    let conv = || net().node("Conv", &["x", "k"], "c");
    let models = [
        behind(conv(), "c"),
        behind(conv().node("Slice", &["c", "first", "last"], "v"), "v"),
        behind(conv().node_with("Cast", &["c"], "v", &[("to", &[i64::from(F32)])]), "v"),
    ];
    for bytes in models {
        for name in ["onnx", "ort-cpu"] {
            let target = target(name).expect("a built-in target");
            assert_eq!(refusal_by(target.as_ref(), &bytes), None, "{name}");
        }
    }
}
