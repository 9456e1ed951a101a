//! Forms over the reals: what is the same in other ops, and beside each what is not.

use super::*;

/// Numbers by name, beside those that each case has.
fn net(lines: &[Line<'_>], numbers: &[(&str, f32)]) -> Model {
    let constants: Vec<(&str, &[i64], Vec<f32>)> =
        numbers.iter().map(|(name, value)| (*name, [].as_slice(), vec![*value])).collect();
    model(lines, &constants)
}

fn axes(list: &[i64]) -> Vec<(&'static str, Attr)> {
    vec![("axes", Attr::Ints(list.to_vec()))]
}

/// The sums of the last axis, which stays.
fn sums<'l>(y: &'l str, x: &'l [&'l str]) -> Line<'l> {
    (y, "ReduceSum", x, vec![])
}

/// The model with the axes that its sums are over.
fn over(mut made: Model, axis: &[i64]) -> Model {
    let data = axis.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into();
    let tensor = Tensor { dims: vec![axis.len() as i64], dtype: 7, data };
    Rc::make_mut(&mut made.graph).initializers.push(("axes".to_owned(), tensor));
    made
}

fn with_lemmas(a: &Model, b: &Model) {
    let found = verdict(a, b, &Proof::default());
    assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
}

#[test]
fn a_number_may_be_times_an_operand_or_the_product() {
    // The operand with the number is made after the other one, so that the axes of the product lie in another order.
    let before = |of: &'static [&'static str]| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["z"], perm(&[0, 1, 3, 2])),
            ("q", "Transpose", &["x"], perm(&[0, 2, 1, 3])),
            ("a", "Mul", of, vec![]),
            ("y", "MatMul", &["a", "z"], vec![]),
        ];
        net(lines, &[("c", 0.35)])
    };
    let after = |c: f32, of: &'static [&'static str]| {
        let lines: &[Line<'_>] = &[
            ("q", "Transpose", &["x"], perm(&[0, 2, 1, 3])),
            ("p", "MatMul", &["q", "z"], vec![]),
            ("y", "Mul", of, vec![]),
        ];
        net(lines, &[("c", c)])
    };
    with_lemmas(&before(&["q", "c"]), &after(0.35, &["p", "c"]));
    assert!(!holds(&before(&["q", "c"]), &after(0.36, &["p", "c"])));
    assert!(!holds(&before(&["q", "c"]), &after(-0.35, &["p", "c"])));
    assert!(!holds(&before(&["q", "c"]), &after(0.35, &["p", "p"])));
    assert!(!holds(&before(&["q", "q"]), &after(0.35, &["p", "c"])));
}

#[test]
fn a_softmax_may_be_written_out() {
    let written = |power: &'static [&'static str], sum: &'static [&'static str], less: &'static [&'static str]| {
        let lines: &[Line<'_>] = &[
            ("m", "ReduceMax", &["x"], axes(&[-1])),
            ("n", "ReduceMax", &["x"], axes(&[1])),
            ("d", "Sub", less, vec![]),
            ("e", "Exp", power, vec![]),
            sums("s", sum),
            ("y", "Div", &["e", "s"], vec![]),
        ];
        over(net(lines, &[]), &[-1])
    };
    let plain = |at: i64| model(&[("y", "Softmax", &["x"], axis(at))], &[]);
    for less in [["x", "m"], ["x", "x"]] {
        let shown = if less[1] == "m" { ["d"] } else { ["x"] };
        let right = written(if shown == ["d"] { &["d"] } else { &["x"] }, &["e", "axes"], &["x", "m"]);
        with_lemmas(&right, &plain(-1));
        with_lemmas(&plain(-1), &right);
        assert!(!holds(&right, &plain(1)));
        assert!(!holds(&right, &plain(2)));
    }
    for (power, sum, less) in [
        (&["d"], &["e", "axes"], &["x", "n"]),
        (&["d"], &["e", "axes"], &["m", "x"]),
        (&["d"], &["x", "axes"], &["x", "m"]),
        (&["x"], &["d", "axes"], &["x", "m"]),
    ] {
        assert!(!holds(&written(power, sum, less), &plain(-1)), "{power:?} {sum:?} {less:?}");
    }
}

/// An `InstanceNormalization` in other ops, each of which may be another.
fn norm(spelling: &[Spelled], other: Option<Spelled>) -> Model {
    let mean = || axes(&[2, 3]);
    let mut lines: Vec<Line<'_>> = vec![
        ("u", "ReduceSum", &["x", "axes"], vec![]),
        ("m", "ReduceMean", &["x"], mean()),
        ("c", "Sub", &["x", "m"], vec![]),
        ("q", "Mul", &["c", "c"], vec![]),
        ("r", "ReduceSum", &["q", "axes"], vec![]),
        ("s", "ReduceMean", &["q"], mean()),
        ("k", "Mul", &["m", "m"], vec![]),
        ("v", "Identity", &["s"], vec![]),
        ("w", "Add", &["v", "e"], vec![]),
        ("d", "Sqrt", &["w"], vec![]),
        ("y", "Div", &["c", "d"], vec![]),
    ];
    for (of, op, operands) in spelling.iter().chain(&other) {
        let line = lines.iter_mut().find(|line| line.0 == *of).unwrap();
        (line.1, line.2) = (op, operands);
        line.3.retain(|_| *op == "ReduceMean");
    }
    over(net(&lines, &[("count", 20.0), ("e", 1e-5), ("half", 0.5), ("less", -0.5), ("other", 19.0)]), &[2, 3])
}

/// Result, op, operands.
type Spelled = (&'static str, &'static str, &'static [&'static str]);

const SPELLINGS: &[&[Spelled]] = &[
    &[],
    &[("m", "Div", &["u", "count"]), ("s", "Div", &["r", "count"])],
    &[("q", "Mul", &["x", "x"]), ("v", "Sub", &["s", "k"])],
    &[("d", "Pow", &["w", "half"])],
    &[("d", "Pow", &["w", "less"]), ("y", "Mul", &["c", "d"])],
];

const MISSES: &[(usize, Spelled)] = &[
    (0, ("c", "Sub", &["m", "x"])),
    (0, ("q", "Mul", &["x", "c"])),
    (0, ("w", "Sub", &["v", "e"])),
    (0, ("y", "Div", &["x", "d"])),
    (1, ("m", "Div", &["u", "other"])),
    (1, ("s", "Div", &["r", "other"])),
    (1, ("s", "Div", &["u", "count"])),
    (2, ("k", "Mul", &["m", "s"])),
    (2, ("v", "Sub", &["k", "s"])),
    (2, ("v", "Add", &["s", "k"])),
    (2, ("q", "Mul", &["x", "c"])),
    (3, ("d", "Pow", &["w", "less"])),
    (3, ("d", "Pow", &["w", "e"])),
    (4, ("d", "Pow", &["w", "half"])),
    (4, ("y", "Mul", &["x", "d"])),
];

#[test]
fn a_norm_may_be_by_sums_squares_and_powers() {
    let lines: &[Line<'_>] = &[("y", "InstanceNormalization", &["x", "one", "none"], vec![])];
    let plain = model(lines, &[("one", &[6], vec![1.0; 6]), ("none", &[6], vec![0.0; 6])]);
    for spelling in SPELLINGS {
        with_lemmas(&norm(spelling, None), &plain);
    }
    for (spelling, other) in MISSES {
        assert!(!holds(&norm(SPELLINGS[*spelling], Some(*other)), &plain), "{spelling}: {other:?}");
    }
}

#[test]
fn the_largest_of_constants_is_computed() {
    let before = |op: &'static str, list: &[f32], told: Vec<(&'static str, Attr)>| {
        let lines: &[Line<'_>] = &[("m", op, &["c"], told), ("y", "Mul", &["x", "m"], vec![])];
        model(lines, &[("c", &[2, 5], list.to_vec())])
    };
    let after = |list: &[f32]| {
        let shape = [list.len() as i64];
        model(&[("y", "Mul", &["x", "m"], vec![])], &[("m", &shape, list.to_vec())])
    };
    let list = [3.0, -1.0, 4.0, 1.0, 5.0, 9.0, -2.0, f32::NEG_INFINITY, 0.0, 5.5];
    assert!(holds(&before("ReduceMax", &list, axes(&[0])), &after(&[9.0, -1.0, 4.0, 1.0, 5.5])));
    assert!(holds(&before("ReduceMin", &list, axes(&[-2])), &after(&[3.0, -2.0, f32::NEG_INFINITY, 0.0, 5.0])));
    assert!(holds(&before("ReduceMax", &list, vec![]), &after(&[9.0])));
    assert!(!holds(&before("ReduceMax", &list, axes(&[0])), &after(&[9.0, -1.0, 4.0, 1.0, 5.0])));
    assert!(!holds(&before("ReduceMax", &list, axes(&[1])), &after(&[9.0, -1.0, 4.0, 1.0, 5.5])));
    for odd in [f32::NAN, -0.0] {
        let mut list = list;
        list[3] = odd;
        let largest = before("ReduceMax", &list, axes(&[0]));
        assert!(!holds(&largest, &after(&[9.0, -1.0, 4.0, 0.0, 5.5])), "{odd}");
        assert!(holds(&largest, &largest));
    }
}

/// A normalization of halves, as the op or in floats.
fn of_halves(lines: &[Line<'_>], epsilon: f32) -> Model {
    let to = |dtype: i64| vec![("to", Attr::Int(dtype))];
    let begin: [Line<'_>; 1] = [("h", "Cast", &["x"], to(10))];
    let all: Vec<Line<'_>> = begin.into_iter().chain(lines.iter().cloned()).collect();
    let mut made = model(&all, &[("e", &[], vec![epsilon])]);
    for (name, bits) in [("one", 0x3c00u16), ("none", 0)] {
        let tensor = Tensor { dims: vec![1], dtype: 10, data: bits.to_le_bytes().to_vec().into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    for (name, dims) in
        [("rows", vec![2, 1, 120]), ("first", vec![2, 6, 4, 5]), ("last", vec![2, 4, 5, 6]), ("all", vec![1, 1, 240])]
    {
        let data: Vec<u8> = dims.iter().flat_map(|n: &i64| n.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![dims.len() as i64], dtype: 7, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    made
}

/// All channels as one group, in the order in which they lie: the shapes before and behind, and where the channels are.
fn group(rows: &'static str, back: &'static str, last: bool, epsilon: f32) -> Model {
    let first: &[Line<'_>] = &[("t", if last { "Transpose" } else { "Identity" }, &["h"], perm(TO_LAST))];
    let between = [("r", vec!["t", rows]), ("b", vec!["n", back])];
    let norm: &[&str] = &["r", "one", "none"];
    let mut lines = first.to_vec();
    lines.push(("r", "Reshape", &between[0].1, vec![]));
    lines.push(("n", "InstanceNormalization", norm, vec![]));
    lines.push(("b", "Reshape", &between[1].1, vec![]));
    lines.push(("y", if last { "Transpose" } else { "Identity" }, &["b"], perm(TO_FIRST)));
    if !last {
        lines.iter_mut().filter(|line| line.1 == "Identity").for_each(|line| line.3.clear());
    }
    of_halves(&lines, epsilon)
}

#[test]
fn a_normalization_of_halves_is_one_of_floats_and_takes_its_elements_in_any_order() {
    let plain = group("rows", "first", false, 0.0);
    let found = verdict(&plain, &group("rows", "last", true, 0.0), &Proof::default());
    assert!(found.holds(), "{found}");
    assert!(!holds(&plain, &group("all", "last", true, 0.0)), "both images at once");
    let mean = || axes(&[2]);
    let to = |dtype: i64| vec![("to", Attr::Int(dtype))];
    let written = |rows: &'static str, epsilon: f32, end: i64| {
        let operands = ["f", rows];
        let lines: &[Line<'_>] = &[
            ("f", "Cast", &["h"], to(1)),
            ("r", "Reshape", &operands, vec![]),
            ("m", "ReduceMean", &["r"], mean()),
            ("c", "Sub", &["r", "m"], vec![]),
            ("q", "Mul", &["c", "c"], vec![]),
            ("v", "ReduceMean", &["q"], mean()),
            ("w", "Add", &["v", "e"], vec![]),
            ("d", "Sqrt", &["w"], vec![]),
            ("n", "Div", &["c", "d"], vec![]),
            ("b", "Reshape", &["n", "first"], vec![]),
            ("y", "Cast", &["b"], to(end)),
        ];
        of_halves(lines, epsilon)
    };
    let found = verdict(&plain, &written("rows", 1e-5, 10), &Proof::default());
    let Verdict::WithLemmas { lemmas, .. } = &found else { panic!("{found}") };
    assert_eq!(lemmas["halves as floats"], 1);
    assert!(!holds(&plain, &written("rows", 2e-5, 10)));
    assert!(!holds(&plain, &written("rows", 1e-5, 1)));
    assert!(!holds(&plain, &written("all", 1e-5, 10)));
}
