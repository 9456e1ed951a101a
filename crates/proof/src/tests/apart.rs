//! Operands with axes that no common digits say: an op takes them as they lie, in any order of axes.

use super::bodies::body;
use super::opaque::refused;
use super::volumes::ints;
use super::*;

/// `p` [8, 30] counts its second axis in 6 and 5 of `x`, `q` in 5 and 6 of `z`.
fn both<'l>(lines: &[Line<'l>]) -> Model {
    let mut all: Vec<Line<'l>> = vec![
        ("v", "Transpose", &["x"], perm(&[0, 2, 1, 3])),
        ("p", "Reshape", &["v", "s"], vec![]),
        ("q", "Reshape", &["z", "s"], vec![]),
        ("r", "Transpose", &["p"], perm(&[1, 0])),
        ("t", "Transpose", &["q"], perm(&[1, 0])),
    ];
    all.extend(lines.iter().cloned());
    ints(model(&all, &[]), &[("s", &[2], &[8, 30])])
}

fn back() -> Vec<(&'static str, Attr)> {
    perm(&[1, 0])
}

#[test]
fn an_op_of_operands_that_split_otherwise_runs_in_any_order_of_axes() {
    let by = |op, operands: &[&'static str]| both(&[("o", op, operands, vec![]), ("y", "Relu", &["o"], vec![])]);
    let turned = |op, operands: &[&'static str]| {
        both(&[("o", op, operands, vec![]), ("u", "Relu", &["o"], vec![]), ("y", "Transpose", &["u"], back())])
    };
    for op in ["Add", "Sub", "Pow"] {
        let a = by(op, &["p", "q"]);
        assert_eq!(verdict(&a, &turned(op, &["r", "t"]), &Proof::default()), Verdict::Proved { links: 0, hosts: None });
        assert_eq!(holds(&a, &turned(op, &["t", "r"])), op == "Add", "{op}");
        refused(&a, &turned("Mul", &["r", "t"]));
        refused(&a, &turned(op, &["r", "r"]));
    }
    // The rows in another order of what they are made of.
    let mut other = by("Add", &["p", "q"]);
    Rc::make_mut(&mut other.graph).nodes[0].attrs[0].1 = Attr::Ints(vec![2, 0, 1, 3]);
    refused(&by("Add", &["p", "q"]), &other);
}

#[test]
fn a_product_over_axes_that_split_otherwise_is_a_sum() {
    let a = both(&[("o", "MatMul", &["p", "t"], vec![]), ("y", "Relu", &["o"], vec![])]);
    let turned = |operands: &[&'static str], order: &[i64]| {
        let lines: &[Line<'_>] = &[
            ("o", "MatMul", operands, vec![]),
            ("u", "Transpose", &["o"], perm(order)),
            ("y", "Relu", &["u"], vec![]),
        ];
        both(lines)
    };
    assert!(holds(&a, &turned(&["q", "r"], &[1, 0])), "rows and columns are swapped");
    refused(&a, &turned(&["q", "r"], &[0, 1]));
    refused(&a, &turned(&["p", "t"], &[1, 0]));
    refused(&a, &turned(&["q", "t"], &[1, 0]));
}

#[test]
fn a_choice_between_values_that_split_otherwise_may_be_made_in_any_order() {
    let choice = |yes: &'static str, no: &'static str, order: &[i64]| {
        let branch = |of: &'static str| {
            let operands = [of];
            Attr::Graph(Rc::new(body(&[], &[("b", "Identity", &operands, vec![])], &["b"])))
        };
        let attrs = vec![("then_branch", branch(yes)), ("else_branch", branch(no))];
        let lines: &[Line<'_>] = &[
            ("m", "ReduceMax", &["x"], vec![("keepdims", Attr::Int(0))]),
            ("c", "Cast", &["m"], vec![("to", Attr::Int(9))]),
            ("i", "If", &["c"], attrs),
            ("y", "Transpose", &["i"], perm(order)),
        ];
        both(lines)
    };
    let a = choice("p", "q", &[0, 1]);
    assert!(holds(&a, &choice("r", "t", &[1, 0])));
    refused(&a, &choice("q", "p", &[0, 1]));
    refused(&a, &choice("t", "r", &[1, 0]));
    refused(&a, &choice("p", "p", &[0, 1]));
}
