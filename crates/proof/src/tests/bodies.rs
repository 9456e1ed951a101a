//! Ops with bodies: they are the same if one run of each body makes the same of names for its operands.

use super::opaque::{node, refused};
use super::volumes::ints;
use super::*;
use crate::files::model::Tensor;

pub(super) fn body(inputs: &[&str], lines: &[Line<'_>], outputs: &[&str]) -> Graph {
    let mut graph = (*model(lines, &[]).graph).clone();
    graph.inputs = inputs.iter().map(|name| Input { name: (*name).to_owned(), ..Input::default() }).collect();
    graph.outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
    graph
}

fn with_body(op: &'static str, operands: &[&str], body: Graph, change: impl Fn(&mut Model)) -> Model {
    let told = if op == "Scan" { vec![("num_scan_inputs", Attr::Int(1))] } else { vec![] };
    let mut attrs = vec![("body", Attr::Graph(Rc::new(body)))];
    attrs.extend(told);
    let mut made =
        model(&[("c", "Relu", &["z"], vec![]), ("d", "Neg", &["z"], vec![]), ("y", op, operands, attrs)], &[]);
    let graph = Rc::make_mut(&mut made.graph);
    for (name, dtype, data) in
        [("n", 7, 3i64.to_le_bytes().to_vec()), ("m", 7, 4i64.to_le_bytes().to_vec()), ("yes", 9, vec![1])]
    {
        graph.initializers.push((name.to_owned(), Tensor { dims: vec![], dtype, data: data.into() }));
    }
    change(&mut made);
    made
}

fn scan(lines: &[Line<'_>], operands: &[&str]) -> Model {
    with_body("Scan", operands, body(&["state", "part"], lines, &["next", "out"]), |made| {
        node(made, 2).outputs = vec!["y".into(), "all".into()];
    })
}

#[test]
fn a_scan_is_one_term_if_its_body_is() {
    let lines = |op: &'static str, captured: &'static str| -> Vec<Line<'static>> {
        vec![
            ("s", op, vec!["state", "part"].leak(), vec![]),
            ("next", "Add", vec!["s", captured].leak(), vec![]),
            ("out", "Identity", &["s"], vec![]),
        ]
    };
    let a = scan(&lines("Sub", "c"), &["x", "z"]);
    assert!(holds(&a, &a), "{}", verdict(&a, &a, &Proof::default()));
    refused(&a, &scan(&lines("Mul", "c"), &["x", "z"]));
    refused(&a, &scan(&lines("Sub", "d"), &["x", "z"]));
    refused(&a, &scan(&lines("Sub", "part"), &["x", "z"]));
    refused(&a, &scan(&lines("Sub", "c"), &["z", "x"]));
    let mut other = a.clone();
    node(&mut other, 2).attrs[1].1 = Attr::Int(2);
    refused(&a, &other);
    let mut turned = a.clone();
    node(&mut turned, 2).outputs.reverse();
    refused(&a, &turned);
    let renamed: &[Line<'_>] = &[
        ("q", "Sub", &["state", "part"], vec![]),
        ("next", "Add", &["q", "c"], vec![]),
        ("out", "Identity", &["q"], vec![]),
    ];
    assert!(holds(&a, &scan(renamed, &["x", "z"])), "names inside of a body say nothing");
}

/// A loop that carries one value and collects one.
pub(super) fn looped(lines: &[Line<'_>], outputs: &[&str], operands: &[&str], result: usize) -> Model {
    with_body("Loop", operands, body(&["i", "go", "v"], lines, outputs), |made| {
        let mut names = vec!["last".to_owned(), "all".to_owned()];
        "y".clone_into(&mut names[result]);
        node(made, 2).outputs = names;
    })
}

#[test]
fn a_loop_that_collects_is_one_term_if_its_body_is() {
    let lines = |captured: &'static str| -> Vec<Line<'static>> {
        vec![
            ("more", "Identity", &["go"], vec![]),
            ("w", "Add", vec!["v", captured].leak(), vec![]),
            ("out", "Neg", &["w"], vec![]),
            ("other", "Relu", &["w"], vec![]),
        ]
    };
    let outputs = &["more", "w", "out"];
    for result in [0, 1] {
        let a = looped(&lines("c"), outputs, &["n", "yes", "z"], result);
        assert!(holds(&a, &a), "{}", verdict(&a, &a, &Proof::default()));
        refused(&a, &looped(&lines("d"), outputs, &["n", "yes", "z"], result));
        refused(&a, &looped(&lines("c"), outputs, &["m", "yes", "z"], result));
        refused(&a, &looped(&lines("c"), outputs, &["n", "yes", "c"], result));
        refused(&a, &looped(&lines("c"), &["more", "w", "other"], &["n", "yes", "z"], 1));
        refused(&a, &looped(&lines("c"), outputs, &["n", "yes", "z"], 1 - result));
    }
}

#[test]
fn what_a_loop_collects_can_be_moved_if_it_runs_all_rounds() {
    let inside: &[Line<'_>] = &[
        ("more", "Identity", &["go"], vec![]),
        ("w", "Add", &["v", "c"], vec![]),
        ("out", "Neg", &["w"], vec![]),
        ("ends", "ReduceMax", &["w"], vec![("keepdims", Attr::Int(0))]),
        ("less", "Cast", &["ends"], vec![("to", Attr::Int(9))]),
    ];
    let after = |outputs: [&str; 3], orders: &[[i64; 5]]| {
        let mut made = looped(inside, &outputs, &["n", "yes", "z"], 1);
        let graph = Rc::make_mut(&mut made.graph);
        graph.nodes[2].outputs[1] = "all".into();
        for (at, order) in orders.iter().enumerate() {
            let mut turn = model(&[("r", "Transpose", &["r"], perm(order))], &[]).graph.nodes[0].clone();
            turn.inputs[0] = if at == 0 { "all".into() } else { format!("t{at}") };
            turn.outputs[0] = if at + 1 == orders.len() { "y".into() } else { format!("t{}", at + 1) };
            graph.nodes.push(turn);
        }
        made
    };
    let once = [[1, 0, 2, 3, 4]];
    let twice = [[4, 0, 1, 2, 3], [2, 1, 3, 4, 0]];
    let given = Verdict::ForSizes { links: 0, sizes: vec![[("all[0]".to_owned(), 3)].into()], hosts: None };
    for (outputs, wanted) in
        [(["more", "w", "out"], Verdict::Proved { links: 0, hosts: None }), (["less", "w", "out"], given)]
    {
        let (a, b) = (after(outputs, &once), after(outputs, &twice));
        assert_eq!(verdict(&a, &b, &Proof::default()), wanted);
        refused(&a, &after(outputs, &[[4, 0, 1, 2, 3], [1, 2, 3, 4, 0]]));
    }
    refused(&after(["more", "w", "out"], &once), &after(["less", "w", "out"], &once));
}

#[test]
fn a_loop_may_carry_what_grows() {
    let lines = |order: &'static [&'static str]| -> Vec<Line<'static>> {
        vec![("more", "Identity", &["go"], vec![]), ("w", "Concat", order, axis(1)), ("out", "Neg", &["w"], vec![])]
    };
    let outputs = &["more", "w", "out"];
    let a = looped(&lines(&["v", "c"]), outputs, &["n", "yes", "z"], 0);
    assert!(holds(&a, &a), "{}", verdict(&a, &a, &Proof::default()));
    refused(&a, &looped(&lines(&["c", "v"]), outputs, &["n", "yes", "z"], 0));
}

#[test]
fn what_a_body_draws_stays_in_it() {
    let inside: &[Line<'_>] = &[
        ("more", "Identity", &["go"], vec![]),
        ("r", "RandomNormalLike", &["c"], vec![]),
        ("w", "Add", &["v", "r"], vec![]),
        ("out", "Neg", &["w"], vec![]),
    ];
    let outputs = &["more", "w", "out"];
    let a = looped(inside, outputs, &["n", "yes", "z"], 0);
    assert!(holds(&a, &a), "{}", verdict(&a, &a, &Proof::default()));
    let outside: Vec<Line<'_>> = [&inside[..1], &inside[2..]].concat();
    let mut b = looped(&outside, outputs, &["n", "yes", "z"], 0);
    let drawn = model(&[("r", "RandomNormalLike", &["c"], vec![])], &[]).graph.nodes[0].clone();
    Rc::make_mut(&mut b.graph).nodes.insert(2, drawn);
    assert!(holds(&b, &b));
    refused(&a, &b);
    refused(&b, &a);
}

fn choice(yes: &'static str, no: &'static str, condition: &'static str) -> Model {
    let branch = |of: &'static str| {
        let lines: Vec<Line<'_>> = vec![("q", "NonZero", vec![of].leak(), vec![])];
        Attr::Graph(Rc::new(body(&[], &lines, &["q"])))
    };
    let attrs = vec![("then_branch", branch(yes)), ("else_branch", branch(no))];
    let lines: &[Line<'_>] = &[
        ("m", "ReduceMax", &["x"], vec![("keepdims", Attr::Int(0))]),
        ("p", "ReduceMin", &["x"], vec![("keepdims", Attr::Int(0))]),
        ("b", "Cast", vec![condition].leak(), vec![("to", Attr::Int(9))]),
        ("y", "If", &["b"], attrs),
    ];
    model(lines, &[])
}

#[test]
fn a_choice_between_results_of_no_known_shape_is_one_term() {
    let a = choice("x", "z", "m");
    assert!(holds(&a, &a), "{}", verdict(&a, &a, &Proof::default()));
    refused(&a, &choice("z", "x", "m"));
    refused(&a, &choice("x", "x", "m"));
    refused(&a, &choice("x", "z", "p"));
}

/// A choice by the extent of an axis of `x`, which is 6.
fn by_size(wanted: i64, yes: &[Line<'_>], no: &[Line<'_>]) -> Model {
    let branch = |lines: &[Line<'_>]| Attr::Graph(Rc::new(body(&[], lines, &["q"])));
    let attrs = vec![("then_branch", branch(yes)), ("else_branch", branch(no))];
    let lines: &[Line<'_>] = &[
        ("s", "Shape", &["x"], vec![("start", Attr::Int(1)), ("end", Attr::Int(2))]),
        ("k", "Constant", &[], vec![("value_ints", Attr::Ints(vec![wanted]))]),
        ("b", "Equal", &["s", "k"], vec![]),
        ("y", "If", &["b"], attrs),
    ];
    model(lines, &[])
}

#[test]
fn a_branch_that_is_not_taken_is_the_one_that_it_was() {
    let taken: &[Line<'_>] = &[("q", "Relu", &["x"], vec![])];
    let fits: &[Line<'_>] = &[("t", "Neg", &["x"], vec![]), ("q", "Abs", &["t"], vec![])];
    let misfits: &[Line<'_>] = &[("t", "Neg", &["x"], vec![]), ("q", "Squeeze", &["t", "s"], vec![])];
    for other in [fits, misfits] {
        let a = by_size(6, taken, other);
        assert!(holds(&a, &a), "{}", verdict(&a, &a, &Proof::default()));
        assert!(holds(&by_size(7, other, taken), &by_size(7, other, taken)));
        for changed in [0, 1] {
            let mut lines = other.to_vec();
            lines[changed].1 = "Exp";
            lines[changed].2 = &lines[changed].2[..1];
            refused(&a, &by_size(6, taken, &lines));
        }
        let empty = ("t", "Constant", [].as_slice(), vec![]);
        refused(&a, &by_size(6, taken, &[empty, other[1].clone()]));
        assert!(holds(&a, &model(&[("y", "Relu", &["x"], vec![])], &[])), "the choice may be made before");
    }
    let mut number = by_size(6, taken, fits);
    node(&mut number, 3).inputs = vec!["k".into()];
    refused(&number, &number);
    let turned = |order: &'static [i64]| -> Vec<Line<'static>> {
        vec![
            ("t", "Transpose", &["x"], perm(order)),
            ("u", "Neg", &["t"], vec![]),
            ("v", "Abs", &["u"], vec![]),
            ("q", "Transpose", &["v"], perm(TO_FIRST)),
        ]
    };
    assert!(holds(&by_size(6, taken, fits), &by_size(6, taken, &turned(TO_LAST))));
    refused(&by_size(6, taken, fits), &by_size(6, taken, &turned(&[0, 1, 2, 3])));
}

#[test]
fn bodies_of_another_domain_are_not_looked_into() {
    let mut a = choice("x", "z", "m");
    "mine".clone_into(&mut node(&mut a, 3).domain);
    a.opsets.insert("mine".into(), 1);
    refused(&a, &a);
}

#[test]
fn what_a_loop_collects_may_be_turned_in_each_round() {
    let inside: &[Line<'_>] = &[
        ("more", "Identity", &["go"], vec![]),
        ("w", "Add", &["v", "c"], vec![]),
        ("out", "Neg", &["w"], vec![]),
        ("turned", "Transpose", &["out"], perm(TO_FIRST)),
        ("other", "Transpose", &["w"], perm(TO_FIRST)),
    ];
    let after = |collects: &str, rounds: &str, order: &[i64]| {
        let mut made = looped(inside, &["more", "w", collects], &[rounds, "yes", "z"], 1);
        let graph = Rc::make_mut(&mut made.graph);
        graph.nodes[2].outputs[1] = "all".into();
        let mut turn = model(&[("y", "Transpose", &["all"], perm(order))], &[]).graph.nodes[0].clone();
        turn.outputs[0] = "y".into();
        graph.nodes.push(turn);
        made
    };
    let a = after("turned", "n", &[0, 1, 2, 3, 4]);
    assert!(holds(&a, &after("out", "n", &[0, 1, 4, 2, 3])), "each round or all of them");
    refused(&a, &after("out", "n", &[0, 1, 2, 4, 3]));
    refused(&a, &after("out", "n", &[0, 1, 2, 3, 4]));
    refused(&a, &after("other", "n", &[0, 1, 2, 3, 4]));
    refused(&a, &after("out", "m", &[0, 1, 4, 2, 3]));
}

#[test]
fn rounds_are_counted_in_lists_of_one_where_a_body_says_so() {
    let counting = |declared: Option<usize>| {
        let lines: &[Line<'_>] = &[("more", "Identity", &["go"], vec![]), ("out", "Identity", &["i"], vec![])];
        let mut body = body(&["i", "go", "v"], lines, &["more", "v", "out"]);
        body.inputs[0].dims = declared.map(|rank| vec![DeclaredDim::Known(1); rank]);
        with_body("Loop", &["n", "yes", "z"], body, |made| {
            node(made, 2).outputs = vec!["last".into(), "all".into()];
            let shape = model(&[("y", "Shape", &["all"], vec![])], &[]).graph.nodes[0].clone();
            Rc::make_mut(&mut made.graph).nodes.push(shape);
        })
    };
    let plain = counting(None);
    assert!(holds(&plain, &counting(Some(0))));
    assert!(holds(&counting(Some(1)), &counting(Some(1))));
    refused(&plain, &counting(Some(1)));
    refused(&plain, &counting(Some(2)));
}

#[test]
fn an_input_may_say_how_many_rounds_a_loop_has() {
    let inside: &[Line<'_>] = &[
        ("more", "Identity", &["go"], vec![]),
        ("w", "Add", &["v", "c"], vec![]),
        ("out", "Neg", &["w"], vec![]),
        ("turned", "Transpose", &["out"], perm(TO_FIRST)),
        ("other", "Transpose", &["w"], perm(TO_FIRST)),
    ];
    let after = |collects: &str, rounds: &str, order: &[i64]| {
        let mut made = looped(inside, &["more", "w", collects], &[rounds, "yes", "z"], 1);
        let graph = Rc::make_mut(&mut made.graph);
        for name in ["j", "k"] {
            graph.inputs.push(Input { name: name.into(), dtype: 7, dims: Some(vec![]), ..Input::default() });
        }
        graph.nodes[2].outputs[1] = "all".into();
        let mut turn = model(&[("y", "Transpose", &["all"], perm(order))], &[]).graph.nodes[0].clone();
        turn.outputs[0] = "y".into();
        graph.nodes.push(turn);
        made
    };
    let a = after("turned", "k", &[0, 1, 2, 3, 4]);
    let sizes = [64, 1, 5].map(|rounds| [("k".to_owned(), rounds)].into()).to_vec();
    let found = verdict(&a, &after("out", "k", &[0, 1, 4, 2, 3]), &Proof::default());
    assert_eq!(found, Verdict::ForSizes { links: 0, sizes, hosts: None });
    let mut same = a.clone();
    node(&mut same, 2).name = "otherwise".into();
    assert_eq!(verdict(&a, &same, &Proof::default()), Verdict::Proved { links: 0, hosts: None });
    refused(&a, &after("out", "k", &[0, 1, 2, 4, 3]));
    refused(&a, &after("out", "k", &[0, 1, 2, 3, 4]));
    refused(&a, &after("other", "k", &[0, 1, 2, 3, 4]));
    refused(&a, &after("out", "j", &[0, 1, 4, 2, 3]));
    refused(&a, &after("out", "n", &[0, 1, 4, 2, 3]));
    refused(&after("out", "n", &[0, 1, 4, 2, 3]), &a);
}

#[test]
fn a_value_that_repeats_may_be_carried_in_another_order() {
    let carries = |op: &'static str, captured: &'static str, turned: Option<&'static [i64]>| {
        let operands: &[&str] = if turned.is_some() { &["v", "k"] } else { &["v", captured] };
        let of_body = body(
            &["i", "go", "v"],
            &[("more", "Identity", &["go"], vec![]), ("w", op, operands, vec![])],
            &["more", "w"],
        );
        let attrs = vec![("body", Attr::Graph(Rc::new(of_body)))];
        let axes = vec![("axes", Attr::Ints(vec![1]))];
        let captures = [captured];
        let mut lines: Vec<Line<'_>> = vec![
            ("c", "Relu", &["z"], vec![]),
            ("d", "Neg", &["z"], vec![]),
            ("m", "ReduceMax", &["z"], axes),
            ("e", "Expand", &["m", "s"], vec![]),
        ];
        if let Some(back) = turned {
            lines.push(("k", "Transpose", &captures, perm(TO_FIRST)));
            lines.push(("f", "Transpose", &["e"], perm(TO_FIRST)));
            lines.push(("l", "Loop", &["n", "yes", "f"], attrs));
            lines.push(("y", "Transpose", &["l"], perm(back)));
        } else {
            lines.push(("y", "Loop", &["n", "yes", "e"], attrs));
        }
        let mut made = ints(model(&lines, &[]), &[("s", &[4], &[2, 4, 5, 6]), ("n", &[], &[3])]);
        let yes = Tensor { dims: vec![], dtype: 9, data: vec![1].into() };
        Rc::make_mut(&mut made.graph).initializers.push(("yes".to_owned(), yes));
        made
    };
    let a = carries("Sub", "c", None);
    assert!(
        holds(&a, &carries("Sub", "c", Some(TO_LAST))),
        "{}",
        verdict(&a, &carries("Sub", "c", Some(TO_LAST)), &Proof::default())
    );
    refused(&a, &carries("Sub", "d", Some(TO_LAST)));
    refused(&a, &carries("Add", "c", Some(TO_LAST)));
    refused(&a, &carries("Sub", "c", Some(&[0, 3, 2, 1])));
}

#[test]
fn zeros_that_a_body_adds_add_nothing() {
    let branches = |bias: Option<[f32; 4]>| {
        let operands: &[&str] = if bias.is_some() { &["x", "w", "b"] } else { &["x", "w"] };
        let branch = |lines: &[Line<'_>]| Attr::Graph(Rc::new(body(&[], lines, &["q"])));
        let [yes, no] = [
            branch(&[("q", "Conv", operands, conv([1; 4]))]),
            branch(&[("r", "Conv", &["x", "w"], conv([1; 4])), ("q", "Relu", &["r"], vec![])]),
        ];
        let lines: &[Line<'_>] = &[
            ("m", "ReduceMax", &["x"], vec![("keepdims", Attr::Int(0))]),
            ("c", "Cast", &["m"], vec![("to", Attr::Int(9))]),
            ("y", "If", &["c"], vec![("then_branch", yes), ("else_branch", no)]),
        ];
        let windows = (0..216).map(|n| (n % 7) as f32 - 2.5).collect();
        model(lines, &[("w", &[4, 6, 3, 3], windows), ("b", &[4], bias.unwrap_or_default().to_vec())])
    };
    let a = branches(None);
    assert!(holds(&a, &branches(Some([0.0; 4]))));
    for at in 0..4 {
        let mut bias = [0.0; 4];
        bias[at] = 1e-30;
        refused(&a, &branches(Some(bias)));
    }
}
