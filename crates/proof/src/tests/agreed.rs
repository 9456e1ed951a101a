//! Inputs and outputs that lie as the caller agreed to, and models in memory.

use super::*;
use crate::checks::agreed::Digits;

/// The digits of axes in this order.
fn order(axes: &[u32]) -> Digits {
    axes.iter().map(|&axis| vec![(axis, -1, 1)]).collect()
}

fn agreed(inputs: &[(&str, &[u32])], outputs: &[(&str, &[u32])]) -> Agreed {
    let of = |ends: &[(&str, &[u32])]| ends.iter().map(|(name, axes)| ((*name).to_owned(), order(axes))).collect();
    Agreed { inputs: of(inputs), outputs: of(outputs) }
}

/// `x` turned by this order and through a Relu, where the file declares `x` with these dims.
fn relu(turns: &[&[i64]], dims: [i64; 4]) -> Model {
    let names = ["x", "t0", "t1"];
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        lines.push((names[at + 1], "Transpose", &names[at..=at], perm(turn)));
    }
    lines.push(("y", "Relu", &names[turns.len()..=turns.len()], vec![]));
    let mut made = model(&lines, &[]);
    Rc::make_mut(&mut made.graph).inputs[0].dims = Some(dims.map(DeclaredDim::Known).to_vec());
    made
}

fn found(a: &Model, b: &Model, agreed: &Agreed) -> Verdict {
    check::verdict(&Pair { a, b, agreed, proof: &Proof::default() })
}

#[test]
fn ends_lie_as_the_caller_agreed_to() {
    // The caller feeds channels last, so the Transpose to channels first is in the file; it takes the output as it was.
    let (plain, moved) = (relu(&[], [2, 6, 4, 5]), relu(&[&[0, 3, 1, 2]], [2, 4, 5, 6]));
    let last: &[u32] = &[0, 2, 3, 1];
    assert!(found(&plain, &moved, &agreed(&[("x", last)], &[])).holds());
    // Nobody agreed, or to something else.
    assert!(!found(&plain, &moved, &Agreed::default()).holds());
    assert!(!found(&plain, &moved, &agreed(&[("x", &[0, 3, 1, 2])], &[])).holds());
    assert!(!found(&plain, &moved, &agreed(&[("x", last)], &[("y", last)])).holds());
    assert!(!found(&plain, &moved, &agreed(&[("nobody", last)], &[])).holds());
    // Both ends lie so, and no Transpose is left.
    let both = agreed(&[("x", last)], &[("y", last)]);
    assert!(found(&plain, &relu(&[], [2, 4, 5, 6]), &both).holds());
    assert!(!found(&plain, &relu(&[], [2, 5, 4, 6]), &both).holds(), "the file declares another shape");
    assert!(!found(&plain, &moved, &both).holds());
    // A file that is the same is not what was agreed to.
    assert!(!found(&plain, &plain, &both).holds());
    let square = relu(&[], [6, 6, 6, 6]);
    assert!(!found(&square, &square, &agreed(&[("x", last)], &[])).holds());
}

#[test]
fn what_only_holds_where_a_dim_is_one_is_refused() {
    let sized = |lines: &[Line<'_>]| {
        let mut made = model(lines, &[("to", &[4], vec![0.0; 4])]);
        let dims = ["n", "c", "h", "w"].map(|name| DeclaredDim::Symbol(name.to_owned()));
        Rc::make_mut(&mut made.graph).inputs[0].dims = Some(dims.to_vec());
        made
    };
    let turned = |order: &[i64], back: &[i64]| {
        sized(&[
            ("t", "Transpose", &["x"], perm(order)),
            ("r", "Relu", &["t"], vec![]),
            ("y", "Transpose", &["r"], perm(back)),
        ])
    };
    let plain = sized(&[("y", "Relu", &["x"], vec![])]);
    let right = of_sizes(&plain, &turned(&[0, 2, 3, 1], &[0, 3, 1, 2]), &Proof::default());
    assert!(right.sizes().len() >= 3, "{right}");
    for at in 0..right.sizes().len() {
        let ones = right.sizes()[at].values().all(|size| *size == 1);
        assert_eq!(at == 1, ones, "{right}");
    }
    // An order that is the same where n is 1 says nothing of other sizes.
    let one = Proof { sizes: [("n".to_owned(), 1), ("c".to_owned(), 1)].into(), ..Proof::default() };
    let wrong = verdict(&plain, &turned(&[1, 0, 2, 3], &[0, 1, 2, 3]), &one);
    assert!(matches!(&wrong, Verdict::Refused { shown: true, .. }), "{wrong}");
    // The ends of a range are looked at too.
    let also = vec![[("h".to_owned(), 3)].into(), [("h".to_owned(), 700)].into()];
    let more = of_sizes(&plain, &turned(&[0, 2, 3, 1], &[0, 3, 1, 2]), &Proof { also, ..Proof::default() });
    assert!([3, 700].iter().all(|size| more.sizes().iter().any(|set| set.get("h") == Some(size))), "{more}");
}
