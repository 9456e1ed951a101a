//! Ops that the checker does not know: the same op, told the same, of the same operands, is the same. Anything else is refused.

use super::*;

/// `y = op(x, l)` of an op whose result has a shape that nobody knows.
fn nms(change: impl Fn(&mut Model)) -> Model {
    let told = vec![("center_point_box", Attr::Int(1))];
    let mut made = model(&[("y", "NonMaxSuppression", &["x", "z"], told)], &[]);
    change(&mut made);
    made
}

fn node(made: &mut Model, at: usize) -> &mut Node {
    &mut Rc::make_mut(&mut made.graph).nodes[at]
}

/// Both models, where the dims of `x` are not known.
fn unsized_x(mut made: Model) -> Model {
    let dims =
        vec![DeclaredDim::Symbol("n".into()), DeclaredDim::Unknown, DeclaredDim::Known(-1), DeclaredDim::Known(5)];
    Rc::make_mut(&mut made.graph).inputs[0].dims = Some(dims);
    made
}

fn refused(a: &Model, b: &Model) {
    assert!(!holds(a, b), "{:?}", b.graph.nodes);
}

#[test]
fn an_op_that_is_not_known_is_one_term() {
    let a = nms(|_| ());
    assert_eq!(verdict(&a, &a, &Proof::default()).to_string(), "PROVED: 0 links");
    refused(&a, &nms(|b| node(b, 0).attrs[0].1 = Attr::Int(0)));
    refused(&a, &nms(|b| node(b, 0).attrs.clear()));
    refused(&a, &nms(|b| node(b, 0).inputs.reverse()));
    refused(&a, &nms(|b| node(b, 0).inputs.push("x".into())));
    refused(&a, &nms(|b| node(b, 0).outputs.push("other".into())));
    refused(&a, &nms(|b| b.opsets.extend([(String::new(), 11)])));
    refused(&a, &nms(|b| "GatherND".clone_into(&mut node(b, 0).op)));
}

#[test]
fn operands_of_such_an_op_have_to_lie_alike() {
    let turned = |order: &[i64], by: &[i64]| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(order)),
            ("r", "Relu", &["t"], vec![]),
            ("u", "Transpose", &["r"], perm(by)),
            ("y", "NonZero", &["u"], vec![]),
        ];
        model(lines, &[])
    };
    let a = model(&[("r", "Relu", &["x"], vec![]), ("y", "NonZero", &["r"], vec![])], &[]);
    assert!(holds(&a, &turned(TO_LAST, TO_FIRST)));
    refused(&a, &turned(TO_LAST, &[0, 1, 2, 3]));
}

#[test]
fn all_that_is_made_of_such_a_result_is_compared_op_by_op() {
    let after = |op: &'static str, attrs: Vec<(&'static str, Attr)>| {
        model(&[("n", "NonZero", &["x"], vec![]), ("y", op, &["n"], attrs)], &[])
    };
    let a = after("Transpose", perm(&[1, 0]));
    assert!(holds(&a, &a));
    refused(&a, &after("Transpose", perm(&[0, 1])));
    refused(&a, &after("Relu", vec![]));
    let plain = model(&[("y", "NonZero", &["x"], vec![])], &[]);
    assert!(holds(&plain, &after("Identity", vec![])));
}

#[test]
fn what_is_told_when_the_model_runs_may_be_anything() {
    let views = |shape: &'static str| {
        let lines: &[Line<'_>] = &[
            ("n", "NonZero", &["x"], vec![]),
            ("s", "Shape", &[shape], vec![]),
            ("y", "Reshape", &["z", "s"], vec![]),
        ];
        model(lines, &[])
    };
    assert!(holds(&views("n"), &views("n")));
    refused(&views("n"), &views("x"));
}

#[test]
fn what_holds_without_sizes_holds_for_all_of_them() {
    let relu = |op: &'static str| unsized_x(model(&[("y", op, &["x"], vec![])], &[]));
    assert_eq!(verdict(&relu("Relu"), &relu("Relu"), &Proof::default()).to_string(), "PROVED: 0 links");
    refused(&relu("Relu"), &relu("Neg"));
    let mut narrow = relu("Relu");
    Rc::make_mut(&mut narrow.graph).inputs[0].dims = Some(vec![
        DeclaredDim::Symbol("n".into()),
        DeclaredDim::Known(6),
        DeclaredDim::Known(4),
        DeclaredDim::Known(5),
    ]);
    refused(&relu("Relu"), &narrow);
}

#[test]
fn dims_without_a_name_have_names_of_their_own() {
    let a = unsized_x(model(&[("t", "Transpose", &["x"], perm(TO_LAST)), ("y", "Relu", &["t"], vec![])], &[]));
    let b = unsized_x(model(&[("r", "Relu", &["x"], vec![]), ("y", "Transpose", &["r"], perm(TO_LAST))], &[]));
    let Verdict::ForSizes { sizes, .. } = verdict(&a, &b, &Proof::default()) else { panic!("it holds for sizes") };
    assert_eq!(sizes.keys().collect::<Vec<_>>(), ["n", "x[1]", "x[2]"]);
    assert_eq!(sizes.values().collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[test]
fn an_output_of_no_known_shape_is_declared_as_it_was() {
    let declared = |dims: Option<Vec<DeclaredDim>>| {
        nms(|made| {
            let output = Input { name: "y".to_owned(), dtype: 7, dims: dims.clone(), ..Input::default() };
            Rc::make_mut(&mut made.graph).declared = vec![output];
        })
    };
    let n = || DeclaredDim::Symbol("n".into());
    let a = declared(Some(vec![n(), DeclaredDim::Known(3)]));
    assert!(holds(&a, &a));
    assert!(holds(&a, &declared(None)));
    assert!(holds(&a, &declared(Some(vec![n(), n()]))));
    refused(&a, &declared(Some(vec![n(), DeclaredDim::Known(4)])));
    refused(&a, &declared(Some(vec![DeclaredDim::Known(2), DeclaredDim::Known(3)])));
    refused(&a, &declared(Some(vec![n()])));
}

#[test]
fn numbers_in_names_and_words_are_not_mixed_up() {
    let told = |attrs: Vec<(&'static str, Attr)>| {
        let mut made = model(&[("y", "Strange", &["x"], attrs)], &[]);
        "mine".clone_into(&mut node(&mut made, 0).domain);
        made.opsets.insert("mine".into(), 1);
        made
    };
    let a = told(vec![("a", Attr::Int(1)), ("b", Attr::Int(2))]);
    assert!(holds(&a, &a));
    assert!(holds(&a, &told(vec![("b", Attr::Int(2)), ("a", Attr::Int(1))])));
    let zero = told(vec![("a", Attr::Float(0.0))]);
    for (a, b) in [
        (&a, told(vec![("a=Int(1);b", Attr::Int(2))])),
        (&zero, told(vec![("a", Attr::Float(-0.0))])),
        (&zero, told(vec![("a", Attr::Int(0))])),
        (&told(vec![("a", Attr::Text(b"1".to_vec()))]), told(vec![("a", Attr::Texts(vec![b"1".to_vec()]))])),
        (
            &told(vec![("a", Attr::Texts(vec![b"12".to_vec(), b"".to_vec()]))]),
            told(vec![("a", Attr::Texts(vec![b"1".to_vec(), b"2".to_vec()]))]),
        ),
        (
            &told(vec![("a", Attr::Unread('p', b"1".as_slice().into()))]),
            told(vec![("a", Attr::Unread('p', b"2".as_slice().into()))]),
        ),
    ] {
        refused(a, &b);
    }
    // It may name values or files.
    let unread = told(vec![("a", Attr::Unread('T', b"1".as_slice().into()))]);
    refused(&unread, &unread);
}

#[test]
fn an_op_of_a_domain_has_its_version_and_its_overload() {
    let mine = |version: i64, domain: &str, overload: &str| {
        let mut made = model(&[("y", "Strange", &["x"], vec![])], &[]);
        domain.clone_into(&mut node(&mut made, 0).domain);
        overload.clone_into(&mut node(&mut made, 0).overload);
        made.opsets.extend([("mine".to_owned(), version), ("yours".to_owned(), 1)]);
        made
    };
    let a = mine(1, "mine", "");
    assert!(holds(&a, &a));
    refused(&a, &mine(2, "mine", ""));
    refused(&a, &mine(1, "yours", ""));
    refused(&a, &mine(1, "mine", "other"));
    let nobody = mine(1, "nobody", "");
    refused(&nobody, &nobody);
}

/// Ops that draw numbers, and ops of which nobody says that they do not.
mod occurrences {
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
            made.functions.push(Rc::new(crate::model::Function {
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
}

/// Ops with bodies.
mod bodies {
    use super::*;
    use crate::model::Tensor;

    fn body(inputs: &[&str], lines: &[Line<'_>], outputs: &[&str]) -> Graph {
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
    fn looped(lines: &[Line<'_>], outputs: &[&str], operands: &[&str], result: usize) -> Model {
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
        let given = Verdict::ForSizes { links: 0, sizes: [("all[0]".to_owned(), 3)].into(), hosts: None };
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
}
