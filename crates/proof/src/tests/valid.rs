//! Results that no runtime loads, or that the standard does not allow: refused, unless their models are the same there.

use super::*;

fn plain() -> Model {
    model(&[("r", "LeakyRelu", &["x"], vec![]), ("y", "Relu", &["r"], vec![])], &[])
}

/// The model with something else in its graph.
fn with(change: impl Fn(&mut Graph)) -> Model {
    let mut made = plain();
    change(Rc::make_mut(&mut made.graph));
    made
}

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Node {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Node { op: op.to_owned(), inputs: names(inputs), outputs: names(outputs), ..Node::default() }
}

/// The model with a node that nothing reads.
fn dead(op: &str, inputs: &[&str], outputs: &[&str], attrs: &[(&str, Attr)]) -> Model {
    let attrs: Vec<_> = attrs.iter().map(|(name, attr)| ((*name).to_owned(), attr.clone())).collect();
    with(|graph| graph.nodes.push(Node { attrs: attrs.clone(), ..node(op, inputs, outputs) }))
}

fn declared(dtype: u8, dims: &[i64]) -> Model {
    let dims = Some(dims.iter().map(|extent| DeclaredDim::Known(*extent)).collect());
    with(|graph| graph.declared = vec![Input { name: "y".to_owned(), dtype, dims: dims.clone(), ..Input::default() }])
}

#[test]
fn nodes_that_the_standard_has_are_taken_wherever_they_stand() {
    let right = [
        dead("Neg", &["x"], &["d"], &[]),
        dead("Clip", &["x", "", "c"], &["d"], &[]),
        dead("Cast", &["x"], &["d"], &[("to", Attr::Int(10))]),
        dead("Concat", &["x", "x", "x"], &["d"], &[("axis", Attr::Int(1))]),
        dead("Dropout", &["x"], &["d", "mask"], &[]),
        dead(
            "Conv",
            &["x", "x"],
            &["d"],
            &[("pads", Attr::Ints(vec![0; 4])), ("auto_pad", Attr::Text(b"NOTSET".to_vec()))],
        ),
        fused(b"NOTSET"),
        declared(1, &[2, 6, 4, 5]),
    ];
    for mut b in right {
        let data = 1f32.to_le_bytes().to_vec().into();
        Rc::make_mut(&mut b.graph).initializers.push(("c".to_owned(), Tensor { dims: vec![], dtype: 1, data }));
        assert_eq!(verdict(&plain(), &b, &Proof::default()).to_string(), "PROVED: 0 links");
    }
}

/// A convolution of the runtime's own that nothing reads.
fn fused(how: &[u8]) -> Model {
    let attrs = [("auto_pad", Attr::Text(how.to_vec())), ("pads", Attr::Ints(vec![0; 4]))];
    let mut made = dead("FusedConv", &["x", "x"], &["d"], &attrs);
    for node in Rc::make_mut(&mut made.graph).nodes.iter_mut().filter(|node| node.op == "FusedConv") {
        node.domain = "com.microsoft".to_owned();
    }
    made
}

#[test]
fn what_the_standard_does_not_have_is_refused_unless_the_model_has_it() {
    let wrong = [
        ("an unknown op", dead("Foo", &["x"], &["d"], &[])),
        ("an op that was taken away", dead("Upsample", &["x", "x"], &["d"], &[])),
        ("no operand", dead("Neg", &[], &["d"], &[])),
        ("an operand without a name", dead("Add", &["x", ""], &["d"], &[])),
        ("an operand too many", dead("Neg", &["x", "x"], &["d"], &[])),
        ("a result too many", dead("Neg", &["x"], &["d", "e"], &[])),
        ("an operand that nothing makes", dead("Add", &["x", "nothing"], &["d"], &[])),
        ("an operand of its own", dead("Add", &["x", "d"], &["d"], &[])),
        ("a value that is made twice", dead("Neg", &["x"], &["r"], &[])),
        ("an input that is made", dead("Neg", &["x"], &["x"], &[])),
        ("an attribute that it has not", dead("Neg", &["x"], &["d"], &[("alpha", Attr::Float(1.0))])),
        ("an attribute of another kind", dead("Elu", &["x"], &["d"], &[("alpha", Attr::Int(1))])),
        ("an attribute that is absent", dead("Concat", &["x", "x"], &["d"], &[])),
        ("a type of elements that is none", dead("Cast", &["x"], &["d"], &[("to", Attr::Int(257))])),
        ("a truth value that is none", { dead("ReduceMax", &["x"], &["d"], &[("keepdims", Attr::Int(2))]) }),
        ("a word that is none", {
            let attrs = [("auto_pad", Attr::Text(b"SAME".to_vec())), ("kernel_shape", Attr::Ints(vec![1, 1]))];
            dead("MaxPool", &["x"], &["d"], &attrs)
        }),
        ("padding that is told twice", {
            let attrs = [("auto_pad", Attr::Text(b"VALID".to_vec())), ("pads", Attr::Ints(vec![0; 4]))];
            dead("Conv", &["x", "x"], &["d"], &attrs)
        }),
        ("padding of a runtime's convolution that is told twice", fused(b"VALID")),
        ("two nodes of one name", with(|graph| graph.nodes.iter_mut().for_each(|node| node.name = "n".to_owned()))),
        ("a domain without an import", {
            with(|graph| graph.nodes.push(Node { domain: "mine".to_owned(), ..node("Neg", &["x"], &["d"]) }))
        }),
        ("a dead node of another domain", {
            with(|graph| graph.nodes.push(Node { domain: "com.microsoft".to_owned(), ..node("Foo", &["x"], &["d"]) }))
        }),
        ("another type of an input that nothing reads", with(|graph| graph.inputs[1].dtype = 10)),
        ("another extent of such an input", {
            with(|graph| graph.inputs[1].dims = Some([2, 4, 5, 7].map(DeclaredDim::Known).to_vec()))
        }),
        ("another type of an output", declared(10, &[2, 6, 4, 5])),
        ("another extent of an output", declared(1, &[2, 6, 4, 6])),
        ("another rank of an output", declared(1, &[2, 6, 20])),
    ];
    for (what, b) in wrong {
        assert!(!holds(&plain(), &b), "{what}");
    }
    let fused = |op: &str| {
        let mut made = with(|graph| {
            let other = Node { domain: "com.microsoft".to_owned(), ..node(op, &["x", "x"], &["d"]) };
            graph.nodes.push(other);
        });
        made.opsets.insert("com.microsoft".to_owned(), 1);
        made
    };
    assert!(holds(&plain(), &fused("FusedMatMul")), "a dead node of an op of another domain that the checker knows");
    assert!(!holds(&plain(), &fused("FusedMatMulActivation")), "one that it does not know");
    // Released models have nodes that runtimes take although the standard does not.
    let odd = dead("Neg", &["x"], &["d"], &[("alpha", Attr::Float(1.0))]);
    assert!(holds(&odd, &odd));
    assert!(!holds(&odd, &dead("Neg", &["x"], &["e"], &[("beta", Attr::Float(1.0))])));
    assert!(holds(&declared(10, &[2, 6, 4, 5]), &declared(10, &[2, 6, 4, 5])));
}

#[test]
fn a_node_is_looked_at_by_the_version_of_its_operator() {
    let at = |opset: i64| {
        let mut made = dead("Upsample", &["x", "s"], &["d"], &[]);
        let data: Vec<u8> = [1f32; 4].iter().flat_map(|v| v.to_le_bytes()).collect();
        let scales = Tensor { dims: vec![4], dtype: 1, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push(("s".to_owned(), scales));
        made.opsets.insert(String::new(), opset);
        let mut before = plain();
        before.opsets.insert(String::new(), opset);
        holds(&before, &made)
    };
    assert!(at(9));
    assert!(!at(10));
    let mut none = plain();
    none.opsets.clear();
    assert!(!holds(&plain(), &none), "no operator set");
}

#[test]
fn bodies_and_functions_are_looked_at_too() {
    let body = |inner: Node| Graph {
        nodes: vec![node("Neg", &["x"], &["b"]), inner],
        outputs: vec!["b".to_owned()],
        ..Graph::default()
    };
    let choice = |inner: &Node| {
        let branch = |name: &str| (name.to_owned(), Attr::Graph(Rc::new(body(inner.clone()))));
        with(|graph| {
            let flag = Tensor { dims: vec![], dtype: 9, data: vec![1].into() };
            graph.initializers.push(("flag".to_owned(), flag));
            let attrs = vec![branch("then_branch"), branch("else_branch")];
            graph.nodes.push(Node { attrs, ..node("If", &["flag"], &["d"]) });
        })
    };
    assert!(holds(&plain(), &choice(&node("Neg", &["x"], &["c"]))));
    assert!(!holds(&plain(), &choice(&node("Foo", &["x"], &["c"]))));
    assert!(!holds(&plain(), &choice(&node("Neg", &["nothing"], &["c"]))));
    let call = |inner: &Node| {
        let mut made = plain();
        made.functions.push(Rc::new(crate::files::model::Function {
            domain: "mine".to_owned(),
            name: "F".to_owned(),
            inputs: vec!["x".to_owned()],
            outputs: vec!["b".to_owned()],
            nodes: body(inner.clone()).nodes,
            opsets: [(String::new(), 17)].into(),
            ..Default::default()
        }));
        made
    };
    assert!(holds(&plain(), &call(&node("Neg", &["x"], &["c"]))));
    assert!(!holds(&plain(), &call(&node("Foo", &["x"], &["c"]))));
}

/// A runtime holds operands to the types that the standard lets them have before it loads a file.
#[test]
fn operands_have_types_that_their_op_takes() {
    let shaped = |to: i64| {
        let lines: &[Line<'_>] = &[
            ("s", "Shape", &["x"], vec![]),
            ("t", "Cast", &["s"], vec![("to", Attr::Int(to))]),
            ("y", "Reshape", &["x", "t"], vec![]),
        ];
        model(lines, &[])
    };
    assert!(holds(&shaped(7), &shaped(7)));
    let said = |a: &Model, b: &Model| verdict(a, b, &Proof::default()).to_string();
    let why = said(&shaped(7), &shaped(6));
    assert!(why.contains("operand 1 has a type of elements"), "{why}");
    // Both operands of a sum have one type.
    let summed = |to: i64| {
        let lines: &[Line<'_>] =
            &[("c", "Cast", &["x"], vec![("to", Attr::Int(to))]), ("y", "Add", &["x", "c"], vec![])];
        model(lines, &[])
    };
    assert!(holds(&summed(1), &summed(1)));
    let why = said(&summed(1), &summed(11));
    assert!(why.contains("operand 1 has a type of elements"), "{why}");
}

#[test]
fn nodes_of_the_input_may_stand_in_any_order() {
    let lines: &[Line<'_>] = &[
        ("a", "Relu", &["x"], vec![]),
        ("b", "Sigmoid", &["a"], vec![]),
        ("c", "Mul", &["a", "b"], vec![]),
        ("y", "Add", &["c", "x"], vec![]),
    ];
    let sorted = model(lines, &[]);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 1, 3]] {
        let lines: Vec<Line<'_>> = order.iter().map(|&at| lines[at].clone()).collect();
        let other = model(&lines, &[]);
        assert!(holds(&other, &sorted), "{order:?}");
        // The standard asks for the order, so a result has it.
        assert!(!holds(&sorted, &other), "{order:?}");
    }
    let mut circle = lines.to_vec();
    circle[0].2 = &["c"];
    assert!(!holds(&model(&circle, &[]), &sorted));
}
