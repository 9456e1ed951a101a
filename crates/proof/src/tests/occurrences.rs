//! Ops that draw numbers, and ops of which nobody says that they do not: each of the result is one of the input.

use super::opaque::refused;
use super::*;

/// Two of them, one after the other, and what is made of both.
fn two(op: &str, domain: &str, lines: &[(&str, &[&str])], sum: [&str; 2]) -> Model {
    let mut all: Vec<Line<'_>> = lines.iter().map(|(result, operands)| (*result, op, *operands, vec![])).collect();
    let sum = sum.as_slice();
    all.push(("y", "Sub", sum, vec![]));
    let mut made = model(&all, &[]);
    for node in &mut Rc::make_mut(&mut made.graph).nodes {
        if node.op == op {
            domain.clone_into(&mut node.domain);
        }
    }
    made.opsets.insert("mine".into(), 1);
    made
}

#[test]
fn each_of_the_result_is_one_of_the_input() {
    for (op, domain) in [
        ("RandomNormalLike", ""),
        ("RandomUniformLike", ""),
        ("Bernoulli", ""),
        ("Multinomial", ""),
        ("Strange", "mine"),
    ] {
        let both: &[(&str, &[&str])] = &[("a", &["x"]), ("b", &["x"])];
        let a = two(op, domain, both, ["a", "b"]);
        assert!(holds(&a, &a), "{op}: {}", verdict(&a, &a, &Proof::default()));
        let renamed = two(op, domain, &[("c", &["x"]), ("d", &["x"])], ["c", "d"]);
        assert!(holds(&a, &renamed), "{op} of other names");
        let turned = two(op, domain, &[("b", &["x"]), ("a", &["x"])], ["a", "b"]);
        assert!(holds(&a, &turned), "{op} in another order");
        refused(&a, &two(op, domain, both, ["b", "a"]));
        refused(&a, &two(op, domain, both, ["a", "a"]));
        refused(&a, &two(op, domain, &[("a", &["x"])], ["a", "a"]));
        let one = two(op, domain, &[("a", &["x"])], ["a", "a"]);
        assert!(holds(&one, &one), "one {op} that is read twice");
        refused(&one, &a);
        // Of another domain nobody knows what a runtime says to a node that nothing needs.
        assert_eq!(holds(&one, &two(op, domain, both, ["b", "b"])), domain.is_empty(), "nothing needs one {op}");
        refused(&a, &two(op, domain, &[("a", &["x"]), ("b", &["z"])], ["a", "b"]));
    }
}

#[test]
fn one_that_an_output_needs_may_not_be_left_out() {
    let zero = |lines: &[Line<'_>]| model(lines, &[]);
    let a = zero(&[
        ("a", "RandomNormalLike", &["x"], vec![]),
        ("s", "Shape", &["a"], vec![]),
        ("y", "Reshape", &["x", "s"], vec![]),
    ]);
    let b = zero(&[("s", "Shape", &["x"], vec![]), ("y", "Reshape", &["x", "s"], vec![])]);
    assert!(holds(&a, &a));
    refused(&a, &b);
    let dead = zero(&[("a", "RandomNormalLike", &["x"], vec![]), ("y", "Relu", &["x"], vec![])]);
    assert!(holds(&dead, &zero(&[("y", "Relu", &["x"], vec![])])), "nothing needs it");
}

#[test]
fn the_seed_and_the_size_are_told() {
    let drawn = |seed: f32, size: i64| {
        let attrs = vec![("seed", Attr::Float(seed)), ("shape", Attr::Ints(vec![size]))];
        model(&[("a", "RandomNormal", &[], attrs), ("y", "Add", &["x", "a"], vec![])], &[])
    };
    assert!(holds(&drawn(1.0, 5), &drawn(1.0, 5)));
    refused(&drawn(1.0, 5), &drawn(2.0, 5));
    refused(&drawn(1.0, 5), &drawn(1.0, 1));
}

#[test]
fn a_dropout_in_training_draws() {
    let trains = |mode: f32, lines: &[Line<'_>]| {
        let mut made = model(lines, &[("r", &[], vec![0.5]), ("t", &[], vec![mode])]);
        let graph = Rc::make_mut(&mut made.graph);
        graph.initializers[1].1.dtype = 9;
        graph.initializers[1].1.data = vec![mode as u8].into();
        made
    };
    let lines = |second: &'static [&'static str]| -> Vec<Line<'static>> {
        vec![
            ("a", "Dropout", &["x", "r", "t"], vec![]),
            ("b", "Dropout", &["x", "r", "t"], vec![]),
            ("y", "Sub", second, vec![]),
        ]
    };
    let (two, one) = (lines(&["a", "b"]), lines(&["a", "a"]));
    assert!(holds(&trains(1.0, &two), &trains(1.0, &two)));
    refused(&trains(1.0, &two), &trains(1.0, &one));
    refused(&trains(1.0, &two), &trains(0.0, &two));
    let plain = model(&[("y", "Sub", &["x", "x"], vec![])], &[]);
    assert!(holds(&trains(0.0, &two), &plain), "nothing is drawn");
    refused(&trains(1.0, &two), &plain);
}

#[test]
fn calls_of_a_function_draw_each_for_themselves() {
    let calls = |sum: &'static [&'static str], op: &str| {
        let mut made =
            model(&[("a", "Draw", &["x"], vec![]), ("b", "Draw", &["x"], vec![]), ("y", "Sub", sum, vec![])], &[]);
        for node in &mut Rc::make_mut(&mut made.graph).nodes[..2] {
            "mine".clone_into(&mut node.domain);
        }
        made.opsets.insert("mine".into(), 1);
        let body = model(&[("y", op, &["x"], vec![])], &[]);
        made.functions.push(Rc::new(crate::files::model::Function {
            domain: "mine".into(),
            name: "Draw".into(),
            inputs: vec!["x".into()],
            outputs: vec!["y".into()],
            nodes: body.graph.nodes.clone(),
            opsets: body.opsets,
            ..Default::default()
        }));
        made
    };
    let a = calls(&["a", "b"], "RandomNormalLike");
    assert!(holds(&a, &a));
    refused(&a, &calls(&["a", "a"], "RandomNormalLike"));
    refused(&a, &calls(&["a", "b"], "RandomUniformLike"));
}
