//! What becomes integers, what integers become, and products of them.

use super::fused::with;
use super::units::and;
use super::*;

/// The lines with a scale of 1/8 and zero points of 0 and 3, of unsigned bytes.
fn bytes(lines: &[Line<'_>], fused: &[&str]) -> Model {
    let floats = [("s", 0.125), ("r", 0.25), ("half", 0.5), ("zero", 0.0), ("forty", 40.0), ("ten", 10.0)];
    and(with(lines, fused, 0), &floats, &[("n", 0), ("m", 3)])
}

#[test]
fn what_quantizing_cuts_off_need_not_be_cut_off_before() {
    let plain = |zero| bytes(&[("y", "QuantizeLinear", &["x", "s", zero], vec![])], &[]);
    let relu = |zero| bytes(&[("u", "Relu", &["x"], vec![]), ("y", "QuantizeLinear", &["u", "s", zero], vec![])], &[]);
    let clip = |most| {
        let lines: &[Line<'_>] =
            &[("c", "Clip", &["x", "zero", most], vec![]), ("y", "QuantizeLinear", &["c", "s", "n"], vec![])];
        bytes(lines, &[])
    };
    assert!(holds(&relu("n"), &plain("n")));
    assert!(!holds(&relu("m"), &plain("m")), "numbers below zero have integers");
    assert!(holds(&clip("forty"), &plain("n")));
    assert!(!holds(&clip("ten"), &plain("n")));
}

#[test]
fn the_largest_float_of_integers_is_that_of_the_largest_integer() {
    let pool = |pads: i64, dilation: i64| {
        vec![
            ("kernel_shape", Attr::Ints(vec![2, 2])),
            ("pads", Attr::Ints(vec![pads; 4])),
            ("dilations", Attr::Ints(vec![dilation; 2])),
        ]
    };
    let quantized: Line<'_> = ("q", "QuantizeLinear", &["x", "s", "m"], vec![]);
    let floats = |pool, scale| {
        let lines: &[Line<'_>] = &[
            quantized.clone(),
            ("f", "DequantizeLinear", &["q", "s", "m"], vec![]),
            ("p", "MaxPool", &["f"], pool),
            ("y", "QuantizeLinear", &["p", scale, "m"], vec![]),
        ];
        bytes(lines, &[])
    };
    let integers = |pool| bytes(&[quantized.clone(), ("y", "MaxPool", &["q"], pool)], &[]);
    assert!(holds(&floats(pool(1, 1), "s"), &integers(pool(1, 1))));
    assert!(!holds(&floats(pool(1, 1), "r"), &integers(pool(1, 1))), "of another scale they are other integers");
    assert!(!holds(&floats(pool(1, 1), "s"), &integers(pool(0, 1))));
    assert!(!holds(&floats(pool(1, 2), "s"), &integers(pool(1, 2))), "a window may hold nothing");
}

/// A product of integers in ops of the standard, with the scale of its right matrix and what is added.
fn apart(dynamic: bool, scale: &'static str) -> Model {
    let left: &[Line<'_>] = if dynamic {
        &[("q", "DynamicQuantizeLinear", &["x"], vec![])]
    } else {
        &[("q", "QuantizeLinear", &["x", "s", "m"], vec![])]
    };
    let operands: &[&str] = if dynamic { &["q", "w8", "qz", "n"] } else { &["q", "w8", "m", "n"] };
    let scales: &[&str] = if dynamic { &["qs", scale] } else { &["s", scale] };
    let mut lines = left.to_vec();
    lines.extend([
        ("p", "MatMulInteger", operands, vec![]),
        ("f", "Cast", &["p"] as &[&str], vec![("to", Attr::Int(1))]),
        ("t", "Mul", scales, vec![]),
        ("u", "Mul", &["f", "t"], vec![]),
        ("y", "Add", &["u", "g"], vec![]),
    ]);
    matrix(&lines, &[])
}

fn matrix(lines: &[Line<'_>], fused: &[&str]) -> Model {
    let mut made = bytes(lines, fused);
    let graph = Rc::make_mut(&mut made.graph);
    let tensor = Tensor { dims: vec![5, 5], dtype: 2, data: (0..25).collect::<Vec<u8>>().into() };
    graph.initializers.push(("w8".to_owned(), tensor));
    for node in graph.nodes.iter_mut().filter(|node| node.op == "DynamicQuantizeLinear") {
        node.outputs.extend(["qs".to_owned(), "qz".to_owned()]);
    }
    made
}

#[test]
fn a_product_of_integers_with_its_scales_is_the_ops_that_make_it() {
    let begin: Line<'_> = ("q", "QuantizeLinear", &["x", "s", "m"], vec![]);
    let whole = |scale: &'static str, zero: &'static str| {
        let operands = ["q", "w8", "s", scale, zero, "n", "g"];
        matrix(&[begin.clone(), ("y", "MatMulIntegerToFloat", &operands, vec![])], &["MatMulIntegerToFloat"])
    };
    assert!(holds(&apart(false, "r"), &whole("r", "m")));
    assert!(!holds(&apart(false, "r"), &whole("half", "m")));
    assert!(!holds(&apart(false, "r"), &whole("r", "n")));
    let dynamic =
        |operands: &[&str]| matrix(&[("y", "DynamicQuantizeMatMul", operands, vec![])], &["DynamicQuantizeMatMul"]);
    assert!(holds(&apart(true, "r"), &dynamic(&["x", "w8", "r", "n", "g"])));
    assert!(!holds(&apart(true, "r"), &dynamic(&["x", "w8", "half", "n", "g"])));
    assert!(!holds(&apart(true, "r"), &dynamic(&["x", "w8", "r", "n"])));
}

#[test]
fn a_bias_of_sums_is_the_floats_that_it_stands_for() {
    let sums = |made: &mut Model, last: i32| {
        let data: Vec<u8> = [1, -2, 300, 4, last].iter().flat_map(|sum: &i32| sum.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![5], dtype: 6, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push(("i".to_owned(), tensor));
    };
    let mut integers = bytes(&[("b", "DequantizeLinear", &["i", "s"], vec![]), ("y", "Add", &["x", "b"], vec![])], &[]);
    sums(&mut integers, 5);
    let floats = |last: f32| {
        let bias = vec![0.125, -0.25, 37.5, 0.5, last];
        model(&[("y", "Add", &["x", "b"], vec![])], &[("b", &[5], bias)])
    };
    assert!(holds(&integers, &floats(0.625)));
    assert!(!holds(&integers, &floats(0.75)));
}

#[test]
fn a_unit_whose_channels_are_last_is_the_op_between_transposes() {
    let begin: Line<'_> = ("q", "QuantizeLinear", &["x", "s", "m"], vec![]);
    let operands: &[&str] = &["t", "s", "m", "s", "n"];
    let apart: &[Line<'_>] = &[
        begin.clone(),
        ("f", "DequantizeLinear", &["q", "s", "m"], vec![]),
        ("p", "GlobalAveragePool", &["f"], vec![]),
        ("y", "QuantizeLinear", &["p", "s", "n"], vec![]),
    ];
    let whole = |to: &[i64], last| {
        let lines: &[Line<'_>] = &[
            begin.clone(),
            ("t", "Transpose", &["q"], perm(to)),
            ("p", "QLinearGlobalAveragePool", operands, vec![("channels_last", Attr::Int(last))]),
            ("y", "Transpose", &["p"], perm(TO_FIRST)),
        ];
        bytes(lines, &["QLinearGlobalAveragePool"])
    };
    assert!(holds(&bytes(apart, &[]), &whole(TO_LAST, 1)));
    assert!(!holds(&bytes(apart, &[]), &whole(TO_LAST, 0)));
    assert!(!holds(&bytes(apart, &[]), &whole(&[0, 1, 2, 3], 1)));
}

#[test]
fn what_divides_in_another_precision_rounds_elsewhere() {
    let quantized = |attrs: &[(&'static str, i64)], cut: bool| {
        let attrs = attrs.iter().map(|(name, value)| (*name, Attr::Int(*value))).collect();
        let cuts: Line<'_> = ("u", "Relu", &["x"], vec![]);
        let from: &[&str] = if cut { &["u", "s", "n"] } else { &["x", "s", "n"] };
        let last: Line<'_> = ("y", "QuantizeLinear", from, attrs);
        let mut made = bytes(&if cut { vec![cuts, last] } else { vec![last] }, &[]);
        made.opsets.insert(String::new(), 23);
        made
    };
    for (attrs, wanted) in [(&[][..], true), (&[("precision", 1)], true), (&[("precision", 10)], false)] {
        assert!(holds(&quantized(attrs, true), &quantized(attrs, true)));
        assert_eq!(holds(&quantized(&[], false), &quantized(attrs, true)), wanted, "{attrs:?}");
    }
    assert!(holds(&quantized(&[], false), &quantized(&[("output_dtype", 2)], false)));
    assert!(
        !holds(&quantized(&[], false), &quantized(&[("output_dtype", 3)], false)),
        "its zero point is another type"
    );
}
