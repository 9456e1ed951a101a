//! Halves that are computed in floats of 32 bits.

use super::*;
use crate::finder::between;
use half::f16;

const FLOAT: i64 = 1;
const HALF: i64 = 10;

fn to(dtype: i64) -> Vec<(&'static str, Attr)> {
    vec![("to", Attr::Int(dtype))]
}

/// Weights [4, 6, 1, 1] and a bias of halves.
fn constants() -> [Vec<f32>; 2] {
    let round = |v: f32| f16::from_f32(v).to_f32();
    [weights().into_iter().map(round).collect(), [0.5, -1.25, 2.0, 0.0].to_vec()]
}

fn with_halves(mut made: Model, constants: &[Vec<f32>; 2]) -> Model {
    for ((name, dims), values) in [("w", vec![4, 6, 1, 1]), ("b", vec![4])].into_iter().zip(constants) {
        let data: Vec<u8> = values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect();
        let tensor = Tensor { dims, dtype: 10, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    made
}

fn in_halves(activation: &str) -> Model {
    let lines: &[Line<'_>] = &[
        ("h", "Cast", &["x"], to(HALF)),
        ("c", "Conv", &["h", "w", "b"], conv([1; 4])),
        ("r", activation, &["c"], vec![]),
        ("p", "MaxPool", &["r"], vec![("kernel_shape", Attr::Ints(vec![2, 2]))]),
        ("y", "Add", &["p", "p"], vec![]),
    ];
    with_halves(model(lines, &[]), &constants())
}

/// The same in floats, of this value, with these constants, and with this type at the end.
fn in_floats(of: &str, activation: &str, constants: &[Vec<f32>; 2], end: i64) -> Model {
    let operands = [of];
    let lines: &[Line<'_>] = &[
        ("h", "Cast", &["x"], to(HALF)),
        ("f", "Cast", &operands, to(FLOAT)),
        ("t", "Transpose", &["f"], perm(TO_LAST)),
        ("u", "Transpose", &["t"], perm(TO_FIRST)),
        ("c", "Conv", &["u", "w", "b"], conv([1; 4])),
        ("r", activation, &["c"], vec![]),
        ("p", "MaxPool", &["r"], vec![("kernel_shape", Attr::Ints(vec![2, 2]))]),
        ("s", "Add", &["p", "p"], vec![]),
        ("y", "Cast", &["s"], to(end)),
    ];
    let [w, b] = constants;
    model(lines, &[("w", &[4, 6, 1, 1], w.clone()), ("b", &[4], b.clone())])
}

#[test]
fn halves_may_be_computed_in_floats() {
    let plain = in_halves("Relu");
    let found = verdict(&plain, &in_floats("h", "Relu", &constants(), HALF), &Proof::default());
    let Verdict::WithLemmas { lemmas, .. } = &found else { panic!("{found}") };
    assert_eq!(lemmas["halves as floats"], 4);
    assert!(!lemmas.contains_key(UNROUNDED));
    assert!(!holds(&plain, &in_floats("h", "Sigmoid", &constants(), HALF)));
    assert!(!holds(&plain, &in_floats("h", "Relu", &constants(), FLOAT)));
    for (list, at) in [(0, 0), (0, 23), (1, 3)] {
        // No half, and another half.
        for more in [1e-5, 1.0] {
            let mut other = constants();
            other[list][at] += more;
            assert!(!holds(&plain, &in_floats("h", "Relu", &other, HALF)), "{list} {at} {more}");
        }
    }
}

const UNROUNDED: &str = "floats as their halves";

#[test]
fn a_rounding_to_halves_may_be_left_out_before_what_is_computed_in_floats() {
    let found = verdict(&in_halves("Relu"), &in_floats("x", "Relu", &constants(), HALF), &Proof::default());
    let Verdict::WithLemmas { lemmas, .. } = &found else { panic!("{found}") };
    assert_eq!((lemmas["halves as floats"], lemmas[UNROUNDED]), (4, 1));
    // Of halves that nothing computes with, the rounding is all that there is.
    let casts: &[Line<'_>] = &[("h", "Cast", &["x"], to(HALF)), ("y", "Cast", &["h"], to(FLOAT))];
    let none: &[Line<'_>] = &[("y", "Identity", &["x"], vec![])];
    assert!(!holds(&model(casts, &[]), &model(none, &[])));
    // Another float than the one that is rounded.
    let mut other = in_floats("x", "Relu", &constants(), HALF);
    let doubled: &[Line<'_>] = &[("d", "Add", &["x", "x"], vec![])];
    let graph = Rc::make_mut(&mut other.graph);
    let cast = graph.nodes.iter_mut().find(|node| node.outputs == ["f"]).unwrap();
    cast.inputs = vec!["d".to_owned()];
    graph.nodes.splice(0..0, model(doubled, &[]).graph.nodes.iter().cloned());
    assert!(!holds(&in_halves("Relu"), &other));
}

#[test]
fn floats_of_halves_are_these_halves_again() {
    let cast = |from: &'static str| {
        let operands = [from];
        let lines: &[Line<'_>] = &[
            ("h", "Cast", &["x"], to(HALF)),
            ("f", "Cast", &operands, to(FLOAT)),
            ("g", "Cast", &["f"], to(HALF)),
            ("y", "Relu", &["g"], vec![]),
        ];
        model(lines, &[])
    };
    let once: &[Line<'_>] = &[("h", "Cast", &["x"], to(HALF)), ("y", "Relu", &["h"], vec![])];
    assert_eq!(verdict(&model(once, &[]), &cast("h"), &Proof::default()), Verdict::Proved { links: 0, hosts: None });
    // The other way numbers are lost.
    let lost: &[Line<'_>] =
        &[("h", "Cast", &["x"], to(HALF)), ("f", "Cast", &["h"], to(FLOAT)), ("y", "Relu", &["f"], vec![])];
    assert!(!holds(&model(&[("y", "Relu", &["x"], vec![])], &[]), &model(lost, &[])));
}

#[test]
fn floats_are_not_computed_in_halves() {
    let lines: &[Line<'_>] = &[
        ("h", "Cast", &["x"], to(HALF)),
        ("f", "Cast", &["h"], to(FLOAT)),
        ("c", "Conv", &["f", "w", "b"], vec![]),
        ("y", "Relu", &["c"], vec![]),
    ];
    let [w, b] = constants();
    let floats = model(lines, &[("w", &[4, 6, 1, 1], w), ("b", &[4], b)]);
    let narrower: &[Line<'_>] = &[
        ("h", "Cast", &["x"], to(HALF)),
        ("c", "Conv", &["h", "w", "b"], vec![]),
        ("r", "Relu", &["c"], vec![]),
        ("y", "Cast", &["r"], to(FLOAT)),
    ];
    assert!(!holds(&floats, &with_halves(model(narrower, &[]), &constants())));
    assert!(holds(&floats, &floats));
}

/// A model of floats, and what a converter to halves makes of it.
fn converted(activation: &str, constants: &[Vec<f32>; 2]) -> [Model; 2] {
    let pool = || vec![("kernel_shape", Attr::Ints(vec![2, 2]))];
    let plain: &[Line<'_>] = &[
        ("c", "Conv", &["x", "w", "b"], conv([1; 4])),
        ("r", activation, &["c"], vec![]),
        ("p", "MaxPool", &["r"], pool()),
        ("y", "Add", &["p", "p"], vec![]),
    ];
    let halved: &[Line<'_>] = &[
        ("h", "Cast", &["x"], to(HALF)),
        ("c", "Conv", &["h", "w", "b"], conv([1; 4])),
        ("r", activation, &["c"], vec![]),
        ("f", "Cast", &["r"], to(FLOAT)),
        ("p", "MaxPool", &["f"], pool()),
        ("g", "Cast", &["p"], to(HALF)),
        ("s", "Add", &["g", "g"], vec![]),
        ("y", "Cast", &["s"], to(FLOAT)),
    ];
    let [w, b] = constants;
    [
        model(plain, &[("w", &[4, 6, 1, 1], w.clone()), ("b", &[4], b.clone())]),
        with_halves(model(halved, &[]), constants),
    ]
}

#[test]
fn a_conversion_to_halves_is_the_same_up_to_types() {
    // Numbers that no half is, and one that is smaller than converters leave.
    let mut numbers = constants();
    numbers[0].iter_mut().for_each(|number| *number *= 1.0001);
    numbers[1][3] = 1e-8;
    let [plain, halved] = converted("Relu", &numbers);
    assert!(!holds(&plain, &halved), "it computes in other types");
    let same = between(&plain, &halved).expect("the same up to types");
    assert_eq!(same.types, [vec!["float32"], vec!["float16", "float32"]]);
    assert!(same.proof.holds());
    assert!(between(&halved, &plain).is_some());
    assert!(between(&plain, &plain).is_none() && between(&halved, &halved).is_none(), "the types are the same");
    assert!(between(&plain, &converted("Sigmoid", &numbers)[1]).is_none());
    let mut other = numbers.clone();
    other[0][7] *= 1.01;
    assert!(between(&plain, &converted("Relu", &other)[1]).is_none());
}

/// `y` of the halves of `x`, and of those of `z` with the channels first, in halves or in floats of these.
fn of_both(floats: bool, lines: &[Line<'_>], constants: &[(&str, &[i64], Vec<f32>)]) -> Model {
    let dtype = if floats { FLOAT } else { HALF };
    let mut all: Vec<Line<'_>> = vec![
        ("u", "Transpose", &["z"], perm(TO_FIRST)),
        ("of_x", "Cast", &["x"], to(HALF)),
        ("of_z", "Cast", &["u"], to(HALF)),
        ("h", "Cast", &["of_x"], to(dtype)),
        ("i", "Cast", &["of_z"], to(dtype)),
    ];
    all.extend(lines.iter().cloned());
    let mut made = model(&all, &[]);
    for (name, dims, values) in constants {
        let bytes = |v: &f32| if floats { v.to_le_bytes().to_vec() } else { f16::from_f32(*v).to_le_bytes().to_vec() };
        let tensor = Tensor { dims: dims.to_vec(), dtype: dtype as u8, data: values.iter().flat_map(bytes).collect() };
        Rc::make_mut(&mut made.graph).initializers.push(((*name).to_owned(), tensor));
    }
    made
}

#[test]
fn halves_may_be_compared_as_floats() {
    let by = |floats, op, operands: &[&'static str]| {
        let lines: &[Line<'_>] = &[("c", op, operands, vec![]), ("y", "Not", &["c"], vec![])];
        of_both(floats, lines, &[])
    };
    let a = by(false, "Greater", &["h", "i"]);
    assert!(holds(&a, &by(true, "Greater", &["h", "i"])));
    assert!(!holds(&a, &by(true, "Greater", &["i", "h"])));
    assert!(!holds(&a, &by(true, "Less", &["h", "i"])));
    assert!(!holds(&a, &by(true, "Greater", &["x", "u"])), "numbers that are no halves");
    let places = |floats, axis: i64| {
        let told = || vec![("axis", Attr::Int(axis))];
        of_both(floats, &[("c", "ArgMax", &["h"], told()), ("y", "Cast", &["c"], to(FLOAT))], &[])
    };
    assert!(holds(&places(false, 1), &places(true, 1)));
    assert!(!holds(&places(false, 1), &places(true, 2)));
}

#[test]
fn how_often_halves_are_repeated_is_a_float() {
    let by = |floats, scale: f32| {
        let lines: &[Line<'_>] = &[("c", "Resize", &["h", "", "s"], vec![("mode", Attr::Text(b"linear".to_vec()))])];
        let mut made = of_both(floats, &[lines, &[("y", "Cast", &["c"], to(HALF))]].concat(), &[]);
        let data = [1.0, 1.0, scale, 2.0].iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![4], dtype: 1, data };
        Rc::make_mut(&mut made.graph).initializers.push(("s".to_owned(), tensor));
        made
    };
    assert!(holds(&by(false, 2.0), &by(true, 2.0)));
    assert!(!holds(&by(false, 2.0), &by(true, 2.1)));
}

#[test]
fn slopes_of_halves_are_those_of_floats() {
    let slopes = |last: f32| vec![0.5, 0.25, -1.0, 1.0, 0.125, last];
    let prelu = |last| {
        let lines: &[Line<'_>] = &[("y", "PRelu", &["h", "s"], vec![])];
        of_both(false, lines, &[("s", &[6, 1, 1], slopes(last))])
    };
    let written = |op, last| {
        let lines: &[Line<'_>] =
            &[("p", "Mul", &["h", "s"], vec![]), ("m", op, &["h", "p"], vec![]), ("y", "Cast", &["m"], to(HALF))];
        of_both(true, lines, &[("s", &[6, 1, 1], slopes(last))])
    };
    assert!(holds(&prelu(0.75), &written("Max", 0.75)));
    assert!(!holds(&prelu(0.75), &written("Min", 0.75)));
    assert!(!holds(&prelu(0.75), &written("Max", 0.5)));
    assert!(!holds(&prelu(1.5), &written("Max", 1.5)), "above one the product is the larger one");
}

#[test]
fn filters_of_halves_may_come_in_another_order() {
    // [4, 6] filters of rows in one order, and those of [2, 4] after them of columns in one.
    let rows = |order: [usize; 4]| order.iter().flat_map(|row| constants()[0][row * 6..][..6].to_vec()).collect();
    let columns =
        |order: [usize; 4]| (0..2).flat_map(|row| order.map(|column| constants()[0][12 + row * 4 + column])).collect();
    let lines: &[Line<'_>] = &[
        ("c", "Conv", &["h", "w", "b"], vec![]),
        ("r", "Relu", &["c"], vec![]),
        ("d", "Conv", &["r", "v"], vec![]),
        ("y", "Cast", &["d"], to(HALF)),
    ];
    let by = |floats, first: [usize; 4], then: [usize; 4]| {
        let bias = first.iter().map(|&filter| constants()[1][filter]).collect();
        of_both(
            floats,
            lines,
            &[("w", &[4, 6, 1, 1], rows(first)), ("b", &[4], bias), ("v", &[2, 4, 1, 1], columns(then))],
        )
    };
    let a = by(false, [0, 1, 2, 3], [0, 1, 2, 3]);
    for floats in [false, true] {
        let b = by(floats, [2, 0, 3, 1], [2, 0, 3, 1]);
        assert!(holds(&a, &b), "{}", verdict(&a, &b, &Proof::default()));
        assert!(!holds(&a, &by(floats, [2, 0, 3, 1], [1, 3, 0, 2])));
        assert!(!holds(&a, &by(floats, [2, 0, 3, 1], [0, 1, 2, 3])));
        assert!(!holds(&a, &by(floats, [0, 1, 2, 3], [2, 0, 3, 1])));
    }
}

#[test]
fn what_is_made_of_halves_in_two_steps_is_made_of_them() {
    let to = |dtype| vec![("to", Attr::Int(dtype))];
    let steps = |first, last| {
        let lines: &[Line<'_>] =
            &[("h", "Cast", &["x"], to(first)), ("f", "Cast", &["h"], to(1)), ("y", "Cast", &["f"], to(last))];
        model(lines, &[])
    };
    let step = |first, last| model(&[("h", "Cast", &["x"], to(first)), ("y", "Cast", &["h"], to(last))], &[]);
    for narrow in [10, 16] {
        assert!(holds(&step(narrow, 11), &steps(narrow, 11)), "{narrow}");
        // Integers are cut off, and doubles do not fit floats.
        assert!(!holds(&step(6, 11), &steps(6, 11)));
        assert!(!holds(&step(11, 11), &steps(11, 11)));
        assert!(!holds(&step(narrow, 11), &steps(26 - narrow, 11)));
    }
}

/// A convolution of halves with these weights, times numbers by channel or not.
fn scaled(weights: &[f32], by: Option<[f32; 4]>) -> Model {
    let mut lines: Vec<Line<'_>> = vec![("h", "Cast", &["x"], to(HALF)), ("y", "Conv", &["h", "w", "b"], conv([0; 4]))];
    if by.is_some() {
        lines[1].0 = "c";
        lines.push(("s", "Cast", &["scales"], to(HALF)));
        lines.push(("y", "Mul", &["c", "s"], vec![]));
    }
    let scales = by.unwrap_or([1.0; 4]).to_vec();
    let made = model(&lines, &[("scales", &[4, 1, 1], scales)]);
    with_halves(made, &[weights.to_vec(), vec![0.0; 4]])
}

#[test]
fn weights_below_what_halves_are_precise_to_may_be_scaled() {
    let round = |v: f32| f16::from_f32(v).to_f32();
    let by = [0.3, 0.7, 1.25, 0.9].map(round);
    // Down to the smallest half, 6e-8.
    let weights: Vec<f32> = (0..24u8).map(|at| round(0.4 / 2f32.powi(i32::from(at % 6) * 4) * 0.9)).collect();
    let folded: Vec<f32> = weights.iter().zip(0..).map(|(w, at)| round(w * by[at / 6])).collect();
    assert!(folded.iter().zip(&weights).zip(0..).any(|((f, w), at)| (f / (w * by[at / 6]) - 1.0).abs() > 0.01));
    assert!(holds(&scaled(&weights, Some(by)), &scaled(&folded, None)));
    for at in 0..24 {
        let mut other = folded.clone();
        other[at] += other[at].abs().max(6.2e-5) * 0.01;
        assert!(!holds(&scaled(&weights, Some(by)), &scaled(&other, None)), "{at}");
    }
}

/// Attention of halves of `x`, [2, 6, 4, 5] as positions and heads, whose keys are other numbers: by the op of the runtime with this factor,
/// or as products whose queries and keys are multiplied with these.
fn attention(apart: Option<[f32; 2]>, whole: f32) -> Model {
    let split = || perm(&[0, 2, 1, 3]);
    let told = vec![("num_heads", Attr::Int(4)), ("scale", Attr::Float(whole))];
    let products: &[Line<'_>] = &[
        ("t", "Transpose", &["h"], split()),
        ("k", "Transpose", &["g"], perm(&[0, 2, 3, 1])),
        ("a", "Mul", &["t", "of_queries"], vec![]),
        ("b", "Mul", &["k", "of_keys"], vec![]),
        ("m", "MatMul", &["a", "b"], vec![]),
        ("p", "Softmax", &["m"], axis(-1)),
        ("c", "MatMul", &["p", "t"], vec![]),
        ("o", "Transpose", &["c"], split()),
    ];
    let fused: &[Line<'_>] = &[
        ("r", "Reshape", &["h", "rows"], vec![]),
        ("k", "Reshape", &["g", "rows"], vec![]),
        ("m", "MultiHeadAttention", &["r", "k", "r"], told),
        ("o", "Reshape", &["m", "split"], vec![]),
    ];
    let first: &[Line<'_>] = &[("h", "Cast", &["x"], to(HALF)), ("g", "Sin", &["h"], vec![])];
    let end: &[Line<'_>] = &[("y", "Cast", &["o"], to(FLOAT))];
    let mut made = model(&[first, if apart.is_some() { products } else { fused }, end].concat(), &[]);
    made = super::volumes::ints(made, &[("rows", &[3], &[2, 6, 20]), ("split", &[4], &[2, 6, 4, 5])]);
    made.opsets.insert("com.microsoft".to_owned(), 1);
    let graph = Rc::make_mut(&mut made.graph);
    for node in graph.nodes.iter_mut().filter(|node| node.op == "MultiHeadAttention") {
        node.domain = "com.microsoft".to_owned();
    }
    for (name, number) in ["of_queries", "of_keys"].into_iter().zip(apart.unwrap_or_default()) {
        let data = f16::from_f32(number).to_le_bytes().to_vec().into();
        graph.initializers.push((name.to_owned(), Tensor { dims: vec![], dtype: 10, data }));
    }
    made
}

#[test]
fn attention_of_halves_is_its_products() {
    // The second factor is no half: it is the product of two that are.
    let root = f16::from_f32(0.5f32.sqrt()).to_f32();
    for (apart, whole) in [([0.5, 0.25], 0.125), ([root, root], root * root)] {
        let plain = attention(Some(apart), 0.0);
        let found = verdict(&plain, &attention(None, whole), &Proof::default());
        assert!(matches!(found, Verdict::WithLemmas { .. }), "{apart:?}: {found}");
        for other in [whole * 1.02, whole / 2.0] {
            assert!(!holds(&plain, &attention(None, other)), "{apart:?} {other}");
        }
    }
}

/// Halves beside halves, normalized by channel and cut off, or in floats with a scale and a shift.
fn normalized(floats: Option<f32>) -> Model {
    let number = |at: usize| 0.5 + 0.25 * at as f32;
    let list = |of: &dyn Fn(f32) -> f32| (0..12).map(|at| of(number(at))).collect::<Vec<f32>>();
    let bounds = [("least", f16::ZERO), ("most", f16::from_f32(6.0))];
    let lines: &[Line<'_>] = if floats.is_some() {
        &[
            ("h", "Cast", &["x"], to(HALF)),
            ("f", "Cast", &["h"], to(FLOAT)),
            ("c", "Concat", &["f", "f"], axis(1)),
            ("m", "Mul", &["c", "by"], vec![]),
            ("s", "Add", &["m", "more"], vec![]),
            ("r", "Clip", &["s", "least32", "most32"], vec![]),
            ("y", "Cast", &["r"], to(HALF)),
        ]
    } else {
        &[
            ("h", "Cast", &["x"], to(HALF)),
            ("c", "Concat", &["h", "h"], axis(1)),
            ("n", "BatchNormalization", &["c", "scale", "shift", "mean", "deviation"], vec![]),
            ("y", "Clip", &["n", "least", "most"], vec![]),
        ]
    };
    let deviation = |n: f32| (f64::from(n) + f64::from(1e-5_f32)).sqrt();
    let by = list(&|n| (f64::from(n) / deviation(n)) as f32 * floats.unwrap_or(1.0));
    let more = list(&|n| (f64::from(n) - f64::from(n) * f64::from(n) / deviation(n)) as f32);
    let constants = [
        ("by", &[12i64, 1, 1][..], by),
        ("more", &[12, 1, 1], more),
        ("least32", &[], vec![0.0]),
        ("most32", &[], vec![6.0]),
    ];
    let mut made = model(lines, &constants);
    let halves = |values: &[f16]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let numbers: Vec<f16> = (0..12).map(|at| f16::from_f32(number(at))).collect();
    let lists = ["scale", "shift", "mean", "deviation"].map(|name| (name, vec![12], halves(&numbers)));
    let scalars = bounds.map(|(name, value)| (name, vec![], halves(&[value])));
    for (name, dims, data) in lists.into_iter().chain(scalars) {
        Rc::make_mut(&mut made.graph)
            .initializers
            .push((name.to_owned(), Tensor { dims, dtype: 10, data: data.into() }));
    }
    made
}

#[test]
fn halves_that_are_scaled_may_be_scaled_in_floats() {
    let found = verdict(&normalized(None), &normalized(Some(1.0)), &Proof::default());
    let Verdict::WithLemmas { lemmas, .. } = &found else { panic!("{found}") };
    assert!(lemmas.contains_key("halves as floats") && lemmas.contains_key("scales in weights"), "{lemmas:?}");
    assert!(!holds(&normalized(None), &normalized(Some(1.01))));
}
