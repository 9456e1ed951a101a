//! Scans: states and scanned values may lie otherwise, and nothing of what a step does may be another one.

use super::bodies::body;
use super::opaque::refused;
use super::*;

/// A Scan along the first axis of `z` [2, 4, 5, 6], seen in another order of axes, and its results in the order of the first one.
struct Seen {
    /// Of `z`, of the first state [4, 5, 6], and of what is collected.
    orders: [&'static [i64]; 3],
    /// The axes along which it reads and writes.
    axes: [i64; 2],
    directions: [i64; 2],
    /// The body of `state` and `part`, which makes `next` and `out`.
    lines: Vec<Line<'static>>,
    first: &'static str,
    declared: Option<[i64; 3]>,
}

fn plain() -> Seen {
    let lines = vec![("next", "Sub", &["state", "part"] as _, vec![]), ("out", "Neg", &["next"] as _, vec![])];
    let orders: [&[i64]; 3] = [&[0, 1, 2, 3], &[0, 1, 2], &[0, 1, 2, 3]];
    Seen { orders, axes: [0, 0], directions: [0, 0], lines, first: "m", declared: None }
}

/// Channels first, and the axis of steps is another one before and after.
fn turned() -> Seen {
    Seen { orders: [&[3, 1, 0, 2], &[2, 0, 1], &[2, 1, 3, 0]], axes: [2, 2], ..plain() }
}

/// `y` is what is collected, or the last state.
fn scan(of: &Seen, collected: bool) -> Model {
    let [of_z, of_state, back] = of.orders;
    let list = |name, list: &[i64]| (name, Attr::Ints(list.to_vec()));
    let mut inner = body(&["state", "part"], &of.lines, &["next", "out"]);
    if let Some(dims) = of.declared {
        for input in &mut inner.inputs {
            (input.dtype, input.dims) = (1, Some(dims.map(DeclaredDim::Known).to_vec()));
        }
    }
    let told = vec![
        ("body", Attr::Graph(Rc::new(inner))),
        ("num_scan_inputs", Attr::Int(1)),
        list("scan_input_axes", &of.axes[..1]),
        list("scan_output_axes", &of.axes[1..]),
        list("scan_input_directions", &of.directions[..1]),
        list("scan_output_directions", &of.directions[1..]),
    ];
    let maximum = || vec![list("axes", &[0]), ("keepdims", Attr::Int(0))];
    let back_of_state: &[i64] = if of_state == [0, 1, 2] { &[0, 1, 2] } else { &[1, 2, 0] };
    let (made, back) = if collected { ("all", back) } else { ("last", back_of_state) };
    let operands = [made];
    let lines: &[Line<'_>] = &[
        ("m", "ReduceMax", &["z"], maximum()),
        ("n", "ReduceMin", &["z"], maximum()),
        ("s", "Transpose", &[of.first], perm(of_state)),
        ("t", "Transpose", &["z"], perm(of_z)),
        ("last", "Scan", &["s", "t"], told),
        ("u", "Transpose", &operands, perm(back)),
        ("y", "Relu", &["u"], vec![]),
    ];
    let mut model = model(lines, &[]);
    Rc::make_mut(&mut model.graph).nodes[4].outputs = vec!["last".into(), "all".into()];
    model
}

#[test]
fn a_scan_may_run_in_another_order_of_axes() {
    for collected in [false, true] {
        let a = scan(&plain(), collected);
        assert_eq!(
            verdict(&a, &scan(&turned(), collected), &Proof::default()),
            Verdict::Proved { links: 0, hosts: None }
        );
        refused(&a, &scan(&plain(), !collected));
    }
    let backwards = |seen: Seen| scan(&Seen { directions: [1, 1], ..seen }, true);
    assert!(holds(&backwards(plain()), &backwards(turned())));
}

#[test]
fn another_step_is_another_scan() {
    let sub = |operands: &'static [&'static str]| ("next", "Sub", operands, vec![]);
    let out = |op, of: &'static [&'static str]| ("out", op, of, vec![]);
    let others: [Vec<Line<'static>>; 5] = [
        vec![sub(&["part", "state"]), out("Neg", &["next"])],
        vec![sub(&["state", "state"]), out("Neg", &["next"])],
        vec![sub(&["state", "part"]), out("Abs", &["next"])],
        vec![sub(&["state", "part"]), out("Neg", &["state"])],
        vec![sub(&["state", "part"]), out("Neg", &["part"])],
    ];
    let a = scan(&plain(), true);
    for lines in others {
        refused(&a, &scan(&Seen { lines, ..turned() }, true));
    }
    for directions in [[0, 1], [1, 0], [1, 1]] {
        refused(&a, &scan(&Seen { directions, ..turned() }, true));
    }
    refused(&a, &scan(&Seen { first: "n", ..turned() }, true));
    refused(&a, &scan(&Seen { axes: [2, 0], ..turned() }, true));
    // Steps along another axis, of which there are as many parts.
    let square = |axis: i64| {
        let mut made = scan(&Seen { axes: [axis, axis], lines: plain().lines, ..plain() }, true);
        let graph = Rc::make_mut(&mut made.graph);
        graph.inputs[1].dims = Some([4; 4].map(DeclaredDim::Known).to_vec());
        made
    };
    assert!(holds(&square(0), &square(0)));
    refused(&square(0), &square(1));
}

#[test]
fn a_body_that_declares_other_parts_is_one_term() {
    let of = |seen: Seen, dims| scan(&Seen { declared: Some(dims), ..seen }, true);
    let a = of(plain(), [4, 5, 6]);
    assert!(holds(&a, &of(turned(), [6, 4, 5])));
    refused(&a, &of(turned(), [4, 5, 6]));
    let wrong = of(plain(), [5, 4, 6]);
    assert!(holds(&wrong, &wrong));
    // Before operator set 9 the first axis is one of batches.
    let [mut old, mut other] = [scan(&plain(), true), scan(&turned(), true)];
    for model in [&mut old, &mut other] {
        model.opsets.insert(String::new(), 8);
    }
    refused(&old, &other);
}
