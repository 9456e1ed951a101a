//! Functions that are other ops, and units of integers.

use super::fused::with;
use super::*;
use crate::finder;

fn float(name: &'static str, value: f32) -> Vec<(&'static str, Attr)> {
    vec![(name, Attr::Float(value))]
}

/// The model with more constants: numbers that are floats, and bytes.
pub(super) fn and(mut made: Model, floats: &[(&str, f32)], bytes: &[(&str, u8)]) -> Model {
    let graph = Rc::make_mut(&mut made.graph);
    let floats = floats.iter().map(|(name, value)| (*name, 1, value.to_le_bytes().to_vec()));
    for (name, dtype, data) in floats.chain(bytes.iter().map(|(name, value)| (*name, 2, vec![*value]))) {
        graph.initializers.push((name.to_owned(), Tensor { dims: Vec::new(), dtype, data: data.into() }));
    }
    made
}

#[test]
fn hard_swish_is_a_product_with_its_gate() {
    let gate = |alpha| vec![("alpha", Attr::Float(alpha)), ("beta", Attr::Float(0.5))];
    let apart = |alpha| model(&[("h", "HardSigmoid", &["x"], gate(alpha)), ("y", "Mul", &["x", "h"], vec![])], &[]);
    let whole = model(&[("y", "HardSwish", &["x"], vec![])], &[]);
    for (a, b) in [(&whole, &apart(1.0 / 6.0)), (&apart(1.0 / 6.0), &whole)] {
        assert!(holds(a, b));
    }
    assert!(!holds(&whole, &apart(0.2)));
}

/// `x Clip(x + add, 0, most) by`, the factor where it is told.
fn swish_by_clip(add: f32, most: f32, by: f32, factor_first: bool) -> Model {
    let ends: [Line<'_>; 2] = if factor_first {
        [("m", "Mul", &["c", "by"], vec![]), ("y", "Mul", &["x", "m"], vec![])]
    } else {
        [("m", "Mul", &["x", "c"], vec![]), ("y", "Mul", &["m", "by"], vec![])]
    };
    let mut lines: Vec<Line<'_>> =
        vec![("a", "Add", &["x", "add"], vec![]), ("c", "Clip", &["a", "zero", "most"], vec![])];
    lines.extend(ends);
    and(model(&lines, &[]), &[("add", add), ("zero", 0.0), ("most", most), ("by", by)], &[])
}

#[test]
fn hard_swish_is_a_product_with_what_its_gate_cuts_off() {
    let sixth = 1.0 / 6.0;
    let attrs = || vec![("alpha", Attr::Float(sixth)), ("beta", Attr::Float(0.5))];
    let apart = model(&[("h", "HardSigmoid", &["x"], attrs()), ("y", "Mul", &["x", "h"], vec![])], &[]);
    let whole = model(&[("y", "HardSwish", &["x"], vec![])], &[]);
    for result in [&apart, &whole] {
        for factor_first in [false, true] {
            assert!(holds(&swish_by_clip(3.0, 6.0, sixth, factor_first), result));
            for (add, most, by) in [(3.0, 6.0, 0.2), (3.0, 5.0, sixth), (2.0, 6.0, sixth), (3.0, 5.0, 0.2)] {
                assert!(!holds(&swish_by_clip(add, most, by, factor_first), result), "{add} {most} {by}");
            }
        }
    }
}

#[test]
fn a_gate_may_be_cut_off_by_a_minimum_of_a_maximum() {
    let cases: [(Line<'_>, f32, bool); 5] = [
        (("b", "Relu", &["a"], vec![]), 6.0, true),
        (("b", "Max", &["a", "zero"], vec![]), 6.0, true),
        (("b", "Max", &["zero", "a"], vec![]), 6.0, true),
        (("b", "Max", &["a", "six"], vec![]), 6.0, false),
        (("b", "Relu", &["a"], vec![]), 5.0, false),
    ];
    for (above, six, same) in cases {
        let lines = [
            ("a", "Add", &["x", "add"] as &[&str], vec![]),
            above,
            ("c", "Min", &["b", "six"], vec![]),
            ("y", "Div", &["c", "six"], vec![]),
        ];
        let spelled = and(model(&lines, &[]), &[("add", 3.0), ("zero", 0.0), ("six", six)], &[]);
        let attrs = vec![("alpha", Attr::Float(1.0 / 6.0)), ("beta", Attr::Float(0.5))];
        assert_eq!(holds(&spelled, &model(&[("y", "HardSigmoid", &["x"], attrs)], &[])), same, "{:?}", lines[1]);
    }
}

#[test]
fn a_gate_by_itself_is_a_hard_sigmoid_of_its_slope_and_start() {
    let spelled = |by: f32| {
        let lines: &[Line<'_>] = &[
            ("a", "Add", &["x", "add"], vec![]),
            ("c", "Clip", &["a", "zero", "most"], vec![]),
            ("y", "Mul", &["c", "by"], vec![]),
        ];
        and(model(lines, &[]), &[("add", 1.0), ("zero", 0.0), ("most", 4.0), ("by", by)], &[])
    };
    let gate = |alpha, beta| {
        model(&[("y", "HardSigmoid", &["x"], vec![("alpha", Attr::Float(alpha)), ("beta", Attr::Float(beta))])], &[])
    };
    assert!(holds(&spelled(0.25), &gate(0.25, 0.25)));
    for (by, alpha, beta) in [(0.5, 0.25, 0.25), (0.25, 0.5, 0.25), (0.25, 0.25, 0.5), (0.25, -0.25, 0.25)] {
        assert!(!holds(&spelled(by), &gate(alpha, beta)), "{by} {alpha} {beta}");
    }
}

#[test]
fn a_product_with_a_sigmoid_is_quick_gelu_of_its_factor() {
    let apart = |by: f32| {
        let lines: &[Line<'_>] =
            &[("s", "Mul", &["x", "by"], vec![]), ("g", "Sigmoid", &["s"], vec![]), ("y", "Mul", &["x", "g"], vec![])];
        and(model(lines, &[]), &[("by", by)], &[])
    };
    let whole = |alpha| with(&[("y", "QuickGelu", &["x"], float("alpha", alpha))], &["QuickGelu"], 0);
    for by in [1.0, 1.702] {
        assert!(holds(&apart(by), &whole(by)), "{by}");
        assert!(!holds(&apart(by), &whole(0.5)), "{by}");
    }
    assert!(holds(&apart(1.702), &with(&[("y", "QuickGelu", &["x"], vec![])], &["QuickGelu"], 0)));
}

/// Gelu in ops, with these numbers, and the half where it is told.
fn gelu(root: f32, half_first: bool) -> Model {
    let (left, right): (&[&str], &[&str]) = (&["x", "half"], &["m", "half"]);
    let ends: [Line<'_>; 2] = if half_first {
        [("m", "Mul", left, vec![]), ("y", "Mul", &["m", "p"], vec![])]
    } else {
        [("m", "Mul", &["x", "p"], vec![]), ("y", "Mul", right, vec![])]
    };
    let mut lines: Vec<Line<'_>> =
        vec![("d", "Div", &["x", "root"], vec![]), ("e", "Erf", &["d"], vec![]), ("p", "Add", &["e", "one"], vec![])];
    lines.extend(ends);
    and(model(&lines, &[]), &[("root", root), ("one", 1.0), ("half", 0.5)], &[])
}

#[test]
fn gelu_is_the_ops_that_make_it() {
    let whole = with(&[("y", "Gelu", &["x"], vec![])], &["Gelu"], 0);
    for half_first in [false, true] {
        assert!(holds(&gelu(std::f32::consts::SQRT_2, half_first), &whole));
        assert!(!holds(&gelu(1.5, half_first), &whole));
    }
    let biased = with(&[("y", "BiasGelu", &["x", "x"], vec![])], &["BiasGelu"], 0);
    assert!(!holds(&gelu(std::f32::consts::SQRT_2, false), &biased));
}

#[test]
fn gelu_by_a_tangent_is_fast_gelu() {
    let apart = |factor: f32| {
        let lines: &[Line<'_>] = &[
            ("c", "Pow", &["x", "three"], vec![]),
            ("s", "Mul", &["c", "factor"], vec![]),
            ("a", "Add", &["x", "s"], vec![]),
            ("r", "Mul", &["a", "root"], vec![]),
            ("t", "Tanh", &["r"], vec![]),
            ("p", "Add", &["t", "one"], vec![]),
            ("h", "Mul", &["x", "half"], vec![]),
            ("y", "Mul", &["h", "p"], vec![]),
        ];
        let numbers = [("three", 3.0), ("factor", factor), ("root", 0.797_884_6), ("one", 1.0), ("half", 0.5)];
        and(model(lines, &[]), &numbers, &[])
    };
    let whole = with(&[("y", "FastGelu", &["x"], vec![])], &["FastGelu"], 0);
    assert!(holds(&apart(0.044_715), &whole));
    assert!(!holds(&apart(0.05), &whole));
}

#[test]
fn factors_of_a_gemm_may_be_ops_behind_it() {
    let factors = |alpha| vec![("alpha", Attr::Float(alpha)), ("beta", Attr::Float(2.0))];
    let flat: Line<'_> = ("f", "Flatten", &["x"], vec![]);
    let turned: Line<'_> = ("t", "Transpose", &["f"], perm(&[1, 0]));
    let apart: &[Line<'_>] = &[
        flat.clone(),
        turned.clone(),
        ("m", "MatMul", &["f", "t"], vec![]),
        ("s", "Mul", &["m", "quarter"], vec![]),
        ("b", "Mul", &["m", "two"], vec![]),
        ("y", "Add", &["s", "b"], vec![]),
    ];
    let apart = and(model(apart, &[]), &[("quarter", 0.25), ("two", 2.0)], &[]);
    let whole = |alpha| {
        let lines: &[Line<'_>] = &[
            flat.clone(),
            turned.clone(),
            ("m", "MatMul", &["f", "t"], vec![]),
            ("y", "Gemm", &["f", "t", "m"], factors(alpha)),
        ];
        model(lines, &[])
    };
    assert!(holds(&apart, &whole(0.25)));
    assert!(!holds(&apart, &whole(0.5)));
    let plain: Line<'_> = ("y", "Gemm", &["f", "t"], vec![]);
    assert!(!holds(&apart, &model(&[flat.clone(), turned.clone(), plain], &[])));
}

/// A sum of two quantized values in floats, and as a unit.
fn sums(scale: &'static str) -> [Model; 2] {
    let numbers = [("a", 0.5), ("b", 0.25), ("c", 0.125)];
    let bytes = [("n", 3), ("m", 4)];
    let begin: [Line<'_>; 1] = [("q", "QuantizeLinear", &["x", "a", "n"], vec![])];
    let operands: &[&str] = &["q", "a", "n", "q", scale, "n", "c", "m"];
    let apart: Vec<Line<'_>> = vec![
        ("f", "DequantizeLinear", &["q", "a", "n"], vec![]),
        ("s", "Add", &["f", "f"], vec![]),
        ("y", "QuantizeLinear", &["s", "c", "m"], vec![]),
    ];
    let whole: Vec<Line<'_>> = vec![("y", "QLinearAdd", operands, vec![])];
    [apart, whole].map(|lines| {
        let lines: Vec<Line<'_>> = begin.iter().cloned().chain(lines).collect();
        and(with(&lines, &["QLinearAdd"], 0), &numbers, &bytes)
    })
}

#[test]
fn a_unit_of_integers_is_the_op_on_floats_by_a_lemma() {
    let [apart, whole] = sums("a");
    let found = verdict(&apart, &whole, &Proof::default());
    assert!(
        matches!(&found, Verdict::WithLemmas { lemmas, .. } if lemmas.contains_key("units of integers")),
        "{found}"
    );
    let [apart, other] = sums("b");
    assert!(!holds(&apart, &other));
    // A unit of the input is read as ops on floats where the result has these in its place.
    let found = verdict(&whole, &apart, &Proof::default());
    assert!(
        matches!(&found, Verdict::WithLemmas { lemmas, .. } if lemmas.contains_key("units of integers")),
        "{found}"
    );
    assert!(!holds(&other, &apart));
    assert!(matches!(verdict(&whole, &whole, &Proof::default()), Verdict::Proved { .. }), "what stays needs no lemma");
}

#[test]
fn what_the_standard_has_without_an_attribute_is_no_difference() {
    let random = |attrs| {
        let to = ("to", "Cast", &["z"][..], vec![("to", Attr::Int(7))]);
        model(&[to, ("t", "Reshape", &["x", "to"], attrs), ("y", "Relu", &["t"], vec![])], &[])
    };
    let zero = |value| vec![("allowzero", Attr::Int(value))];
    assert!(holds(&random(vec![]), &random(zero(0))));
    assert!(!holds(&random(vec![]), &random(zero(1))));
}

#[test]
fn what_is_not_shown_is_cut_down_to_what_differs() {
    let lines = |op: &'static str| -> Vec<Line<'static>> {
        vec![
            ("r", "Relu", &["x"], vec![]),
            ("e", "Exp", &["r"], vec![]),
            ("f", op, &["e"], vec![]),
            ("y", "Abs", &["f"], vec![]),
        ]
    };
    let found = finder::found(&model(&lines("Sin"), &[]), &model(&lines("Cos"), &[]));
    let cut = found.cut.unwrap();
    assert_eq!((cut.value.as_str(), cut.given), ("f", vec!["e".to_owned()]));
    assert_eq!((cut.input, cut.result), (vec!["f = Sin(e)".to_owned()], vec!["f = Cos(e)".to_owned()]));
    assert!(finder::found(&model(&lines("Sin"), &[]), &model(&lines("Sin"), &[])).cut.is_none());
}

#[test]
fn a_gemm_with_an_activation_is_told_the_numbers_of_that() {
    let flat: Line<'_> = ("f", "Flatten", &["x"], vec![]);
    let turned: Line<'_> = ("t", "Transpose", &["f"], perm(&[1, 0]));
    let apart = |op: &'static str, attrs| {
        let lines: &[Line<'_>] =
            &[flat.clone(), turned.clone(), ("m", "Gemm", &["f", "t"], vec![]), ("y", op, &["m"], attrs)];
        model(lines, &[])
    };
    let whole = |op: &str, numbers: Vec<(&'static str, Attr)>| {
        let mut attrs = vec![("activation", Attr::Text(op.into()))];
        attrs.extend(numbers);
        with(&[flat.clone(), turned.clone(), ("y", "FusedGemm", &["f", "t"], attrs)], &["FusedGemm"], 0)
    };
    assert!(holds(&apart("Elu", float("alpha", 0.5)), &whole("Elu", float("activation_alpha", 0.5))));
    assert!(!holds(&apart("Elu", float("alpha", 0.5)), &whole("Elu", float("activation_alpha", 0.25))));
    assert!(!holds(&apart("Elu", float("alpha", 1.0)), &whole("Elu", vec![])), "without them it does not run");
    assert!(holds(&apart("Tanh", vec![]), &whole("Tanh", vec![])));
    assert!(!holds(&apart("Tanh", vec![]), &whole("Relu", vec![])));
}

#[test]
fn a_normalization_is_the_ops_that_make_it_however_they_write_squares() {
    let mean = || vec![("axes", Attr::Ints(vec![-1]))];
    let apart = |epsilon| {
        let lines: &[Line<'_>] = &[
            ("m", "ReduceMean", &["x"], mean()),
            ("c", "Sub", &["x", "m"], vec![]),
            ("q", "Pow", &["c", "two"], vec![]),
            ("v", "ReduceMean", &["q"], mean()),
            ("e", "Add", &["v", "epsilon"], vec![]),
            ("d", "Sqrt", &["e"], vec![]),
            ("n", "Div", &["c", "d"], vec![]),
            ("y", "Mul", &["n", "g"], vec![]),
        ];
        and(with(lines, &[], 0), &[("two", 2.0), ("epsilon", epsilon)], &[])
    };
    let attrs = vec![("axis", Attr::Int(-1)), ("epsilon", Attr::Float(1e-3))];
    let whole = with(&[("y", "LayerNormalization", &["x", "g"], attrs)], &[], 0);
    assert!(holds(&apart(1e-3), &whole));
    assert!(!holds(&apart(1e-2), &whole));
}

#[test]
fn what_is_reduced_over_one_place_stays() {
    let first = || vec![("axes", Attr::Ints(vec![0])), ("keepdims", Attr::Int(0))];
    let reduced = |op: &'static str, from: &'static str| {
        let lines: &[Line<'_>] =
            &[("m", "ReduceMax", &["x"], vec![("axes", Attr::Ints(vec![0]))]), ("y", op, vec![from].leak(), first())];
        model(lines, &[])
    };
    let plain = model(&[("y", "ReduceMax", &["x"], first())], &[]);
    for op in ["ReduceSum", "ReduceMean", "ReduceMin"] {
        if op != "ReduceSum" {
            assert!(holds(&reduced(op, "m"), &plain), "{op}");
        }
        assert!(!holds(&reduced(op, "x"), &plain), "{op}");
    }
    assert!(!holds(&reduced("ReduceSumSquare", "m"), &plain));
}

/// A product of quantized matrices in floats, with a scale for each column of the left one, and as a unit.
fn products(left: &'static str, zero: &'static str) -> [Model; 2] {
    let apart: Vec<Line<'_>> = vec![
        ("f", "DequantizeLinear", vec!["a8", left, zero].leak(), axis(1)),
        ("w", "DequantizeLinear", &["b8", "c", "n"], vec![]),
        ("p", "MatMul", &["f", "w"], vec![]),
        ("y", "QuantizeLinear", &["p", "c", "n"], vec![]),
    ];
    let whole: Vec<Line<'_>> =
        vec![("y", "QLinearMatMul", vec!["a8", left, zero, "b8", "c", "n", "c", "n"].leak(), vec![])];
    [apart, whole].map(|lines| {
        let scales = (1..6).map(|n| n as f32).collect();
        let mut made = and(model(&lines, &[("s", &[5], scales)]), &[("c", 0.125)], &[("n", 3)]);
        let graph = Rc::make_mut(&mut made.graph);
        for name in ["a8", "b8"] {
            let dims = Some([5, 5].map(DeclaredDim::Known).to_vec());
            graph.inputs.push(Input { name: name.to_owned(), dtype: 2, dims, ..Input::default() });
        }
        graph.initializers.push(("zs".to_owned(), Tensor { dims: vec![5], dtype: 2, data: vec![3; 5].into() }));
        made
    })
}

#[test]
fn scales_of_rows_are_none_of_columns() {
    let [apart, whole] = products("c", "n");
    assert!(holds(&apart, &whole), "{}", verdict(&apart, &whole, &Proof::default()));
    let [apart, whole] = products("s", "zs");
    assert!(holds(&apart, &apart));
    assert!(!holds(&apart, &whole), "the unit has scales of its rows");
}

#[test]
fn what_is_added_before_gelu_is_a_list() {
    let biased = |operands: &[&str]| with(&[("y", "FastGelu", operands, vec![])], &["FastGelu"], 0);
    let apart = with(&[("a", "Add", &["x", "g"], vec![]), ("y", "FastGelu", &["a"], vec![])], &["FastGelu"], 0);
    assert!(holds(&apart, &biased(&["x", "g"])));
    assert!(!holds(&apart, &biased(&["g", "x"])));
}
