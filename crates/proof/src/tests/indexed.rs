//! Places that another operand names: their axes may lie otherwise, and none may be mixed up.

use super::volumes::ints;
use super::*;

/// `y = op(x, l, ..)` along `axis`, where `l` [2, 6, 4, 5] is computed from `z`.
fn plain(op: &'static str, along: i64, change: impl Fn(&mut Node)) -> Model {
    let operands: &[&str] = if op == "GatherElements" { &["x", "l"] } else { &["x", "l", "u"] };
    let lines: &[Line<'_>] = &[
        ("n", "Transpose", &["z"], perm(TO_FIRST)),
        ("l", "Cast", &["n"], vec![("to", Attr::Int(7))]),
        ("u", "Neg", &["n"], vec![]),
        ("y", op, operands, axis(along)),
    ];
    let mut made = model(lines, &[]);
    change(&mut Rc::make_mut(&mut made.graph).nodes[3]);
    made
}

/// The same with the channels last.
fn turned(op: &'static str, along: i64, list: &'static str, change: impl Fn(&mut Node)) -> Model {
    let operands: Vec<&str> = if op == "GatherElements" { vec!["t", list] } else { vec!["t", list, "u"] };
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(TO_LAST)),
        ("l", "Cast", &["z"], vec![("to", Attr::Int(7))]),
        ("m", "Neg", &["l"], vec![]),
        ("u", "Neg", &["z"], vec![]),
        ("q", op, &operands, axis(along)),
        ("y", "Transpose", &["q"], perm(TO_FIRST)),
    ];
    let mut made = model(lines, &[]);
    change(&mut Rc::make_mut(&mut made.graph).nodes[4]);
    made
}

#[test]
fn elements_are_read_and_written_wherever_their_axes_lie() {
    for op in ["GatherElements", "ScatterElements"] {
        for (first, last) in [(0, 0), (1, 3), (2, 1), (3, 2), (-1, -2)] {
            let a = plain(op, first, |_| ());
            assert!(holds(&a, &turned(op, last, "l", |_| ())), "{op} {first}");
            for other in (0..4).filter(|other| *other != (last + 4) % 4) {
                assert!(!holds(&a, &turned(op, other, "l", |_| ())), "{op} {first} as {other}");
            }
            assert!(!holds(&a, &turned(op, last, "m", |_| ())), "{op}: other places");
        }
    }
    let adds = |node: &mut Node| node.attrs.push(("reduction".into(), Attr::Text(b"add".to_vec())));
    let a = plain("ScatterElements", 1, adds);
    assert!(holds(&a, &turned("ScatterElements", 3, "l", adds)));
    assert!(!holds(&a, &turned("ScatterElements", 3, "l", |_| ())));
}

#[test]
fn places_that_are_computed_are_read_along_any_axis() {
    let lines = |from: &'static str, along: i64, back: &[i64]| -> Model {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(TO_LAST)),
            ("m", "ReduceMax", &["z"], vec![("axes", Attr::Ints(vec![0, 1, 2])), ("keepdims", Attr::Int(0))]),
            ("k", "Cast", &["m"], vec![("to", Attr::Int(7))]),
            ("s", "Constant", &[], vec![("value_ints", Attr::Ints(vec![2, 3]))]),
            ("l", "Reshape", &["k", "s"], vec![]),
            ("g", "Gather", &[from, "l"], axis(along)),
            ("y", "Transpose", &["g"], perm(back)),
        ];
        model(lines, &[])
    };
    // [2 (2 3) 4 5] of x, and the same of [2 4 5 6] along the last axis.
    let a = lines("x", 1, &[0, 1, 2, 3, 4]);
    assert!(holds(&a, &lines("t", 3, &[0, 3, 4, 1, 2])));
    assert!(holds(&a, &lines("t", -1, &[0, 3, 4, 1, 2])));
    assert!(!holds(&a, &lines("t", 3, &[0, 4, 3, 1, 2])));
    assert!(!holds(&a, &lines("t", 1, &[0, 1, 2, 3, 4])));
    assert!(!holds(&a, &lines("x", 2, &[0, 2, 3, 1, 4])));
}

#[test]
fn elements_by_all_of_their_places_are_taken_as_they_lie() {
    let by = |batches: i64, order: &[i64]| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(order)),
            ("c", "Cast", &["z"], vec![("to", Attr::Int(7))]),
            ("l", "Slice", &["c", "zero", "three", "last"], vec![]),
            ("g", "GatherND", &["t", "l"], vec![("batch_dims", Attr::Int(batches))]),
            ("r", "Relu", &["g"], vec![]),
            ("y", "Relu", &["r"], vec![]),
        ];
        ints(model(lines, &[]), &[("zero", &[1], &[0]), ("three", &[1], &[3]), ("last", &[1], &[3])])
    };
    let mut once = by(1, &[0, 1, 2, 3]);
    Rc::make_mut(&mut once.graph).nodes[4].op = "Neg".into();
    let mut twice = once.clone();
    Rc::make_mut(&mut twice.graph)
        .nodes
        .insert(0, model(&[("v", "Identity", &["x"], vec![])], &[]).graph.nodes[0].clone());
    Rc::make_mut(&mut twice.graph).nodes[1].inputs = vec!["v".into()];
    assert!(holds(&once, &twice));
    assert!(!holds(&by(1, &[0, 1, 2, 3]), &by(0, &[0, 1, 2, 3])));
    assert!(!holds(&by(1, &[0, 1, 2, 3]), &by(1, &[0, 2, 1, 3])));
}

#[test]
fn a_range_is_one_of_all_elements() {
    let quantized = |order: Option<&[i64]>, result: usize, of: &'static str| {
        let (first, last): (Vec<i64>, Vec<i64>) = match order {
            Some(_) => (TO_LAST.to_vec(), TO_FIRST.to_vec()),
            None => (vec![0, 1, 2, 3], vec![0, 1, 2, 3]),
        };
        let lines: &[Line<'_>] = &[
            ("n", "Neg", &["x"], vec![]),
            ("t", "Transpose", vec![of].leak(), perm(&first)),
            ("q", "DynamicQuantizeLinear", &["t"], vec![]),
            ("y", "Transpose", &["q"], perm(&last)),
        ];
        let mut made = model(lines, &[]);
        let graph = Rc::make_mut(&mut made.graph);
        if result > 0 {
            graph.nodes[2].outputs = vec!["q".into(), "scale".into(), "zero".into()];
            graph.nodes[3] = Node { attrs: vec![], op: "Identity".into(), ..graph.nodes[3].clone() };
            graph.nodes[3].inputs = vec![["q", "scale", "zero"][result].into()];
        }
        made
    };
    for result in 0..3 {
        assert!(holds(&quantized(None, result, "x"), &quantized(Some(&[]), result, "x")), "{result}");
        assert!(!holds(&quantized(None, result, "x"), &quantized(Some(&[]), result, "n")), "{result}");
    }
    assert!(!holds(&quantized(None, 1, "x"), &quantized(None, 2, "x")));
}

/// `y` of `x` [2, 6, 4, 5] in the order `order`, of parts at the places `l`, and brought back by `back`. Parts that are written are those
/// of `z`, in the same order of axes.
fn parts(
    op: &'static str,
    places: &[&[i64]],
    [order, of_z, back]: [&[i64]; 3],
    attrs: Vec<(&'static str, Attr)>,
) -> Model {
    let operands: &[&str] = if op == "GatherND" { &["t", "l"] } else { &["t", "l", "u"] };
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(order)),
        ("u", "Transpose", &["z"], perm(of_z)),
        ("q", op, operands, attrs),
        ("y", "Transpose", &["q"], perm(back)),
    ];
    let dims = [places.len() as i64, places[0].len() as i64];
    ints(model(lines, &[]), &[("l", &dims, &places.concat())])
}

const AS_IT_LIES: &[i64] = &[0, 1, 2, 3];

#[test]
fn parts_of_a_value_are_read_and_written_wherever_their_axes_lie() {
    let (places, others): ([&[i64]; 2], [&[i64]; 2]) = ([&[1], &[0]], [&[0], &[1]]);
    for op in ["GatherND", "ScatterND"] {
        let a = parts(op, &places, [AS_IT_LIES, TO_FIRST, AS_IT_LIES], vec![]);
        let b = |places, orders| parts(op, places, orders, vec![]);
        assert!(holds(&a, &b(&places, [TO_LAST, AS_IT_LIES, TO_FIRST])), "{op}");
        assert!(!holds(&a, &b(&others, [TO_LAST, AS_IT_LIES, TO_FIRST])), "{op}: other places");
        assert!(!holds(&a, &b(&places, [TO_LAST, AS_IT_LIES, &[0, 2, 1, 3]])), "{op}: back another way");
        assert!(!holds(&a, &b(&places, [&[1, 0, 2, 3], &[3, 0, 1, 2], &[1, 0, 2, 3]])), "{op}: along another axis");
    }
    let add = || vec![("reduction", Attr::Text(b"add".to_vec()))];
    let a = parts("ScatterND", &places, [AS_IT_LIES, TO_FIRST, AS_IT_LIES], add());
    assert!(holds(&a, &parts("ScatterND", &places, [TO_LAST, AS_IT_LIES, TO_FIRST], add())));
    assert!(!holds(&a, &parts("ScatterND", &places, [TO_LAST, AS_IT_LIES, TO_FIRST], vec![])));
}

#[test]
fn axes_along_which_places_are_counted_stay() {
    let (places, swapped): ([&[i64]; 2], [&[i64]; 2]) = ([&[1, 0], &[0, 3]], [&[0, 1], &[3, 0]]);
    let a = parts("GatherND", &places, [AS_IT_LIES, AS_IT_LIES, &[0, 1, 2]], vec![]);
    let b = |places, order, back| parts("GatherND", places, [order, AS_IT_LIES, back], vec![]);
    assert!(holds(&a, &b(&places, &[0, 1, 3, 2], &[0, 2, 1])));
    assert!(!holds(&a, &b(&places, &[0, 1, 3, 2], &[0, 1, 2])));
    assert!(!holds(&a, &b(&places, &[1, 0, 2, 3], &[0, 1, 2])));
    assert!(!holds(&a, &b(&swapped, AS_IT_LIES, &[0, 1, 2])));
}
