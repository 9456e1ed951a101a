//! Ops that the checker does not know: the same op, told the same, of the same operands, is the same. Anything else is refused.

use super::*;

/// `y = op(x, l)` of an op whose result has a shape that nobody knows.
fn nms(change: impl Fn(&mut Model)) -> Model {
    let told = vec![("center_point_box", Attr::Int(1))];
    let mut made = model(&[("y", "NonMaxSuppression", &["x", "z"], told)], &[]);
    change(&mut made);
    made
}

pub(super) fn node(made: &mut Model, at: usize) -> &mut Node {
    &mut Rc::make_mut(&mut made.graph).nodes[at]
}

/// Both models, where the dims of `x` are not known.
fn unsized_x(mut made: Model) -> Model {
    let dims =
        vec![DeclaredDim::Symbol("n".into()), DeclaredDim::Unknown, DeclaredDim::Known(-1), DeclaredDim::Known(5)];
    Rc::make_mut(&mut made.graph).inputs[0].dims = Some(dims);
    made
}

pub(super) fn refused(a: &Model, b: &Model) {
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
fn a_use_of_an_op_that_is_not_known_is_one_term() {
    let told = |equation: &str| vec![("equation", Attr::Text(equation.as_bytes().to_vec()))];
    let sum = |equation: &str, order: &'static [i64]| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(order)),
            ("r", "Relu", &["t"], vec![]),
            ("u", "Transpose", &["r"], perm(TO_FIRST)),
            ("y", "Einsum", &["u"], told(equation)),
        ];
        model(lines, &[])
    };
    let a = model(&[("r", "Relu", &["x"], vec![]), ("y", "Einsum", &["r"], told("nchw->chwn"))], &[]);
    assert!(holds(&a, &sum("nchw->chwn", TO_LAST)));
    refused(&a, &sum("nchw->cwhn", TO_LAST));
    refused(&a, &sum("nchw->chwn", &[0, 1, 2, 3]));
    let places = |results: &[&str]| {
        let windows = vec![("kernel_shape", Attr::Ints(vec![2, 2]))];
        let mut made = model(&[("m", "MaxPool", &["x"], windows), ("y", "Neg", &["i"], vec![])], &[]);
        node(&mut made, 0).outputs = results.iter().map(|name| (*name).to_owned()).collect();
        made
    };
    assert!(holds(&places(&["m", "i"]), &places(&["n", "i"])));
    refused(&places(&["m", "i"]), &places(&["i", "m"]));
    // What does not fit is none.
    let wide = model(&[("y", "MatMul", &["x", "z"], vec![])], &[]);
    refused(&wide, &wide);
}

#[test]
fn an_ellipsis_stands_for_letters() {
    let weights: &[(&str, &[i64], Vec<f32>)] = &[("w", &[6, 6], (0..36).map(|n| n as f32 / 7.0).collect())];
    let einsum = |equation: &str| {
        let told = vec![("equation", Attr::Text(equation.as_bytes().to_vec()))];
        model(&[("y", "Einsum", &["z", "w"], told)], weights)
    };
    let spelled = einsum("nhwc,cd->nhwd");
    for same in ["...c,cd->...d", "n...c,cd->n...d", "...c,cd"] {
        assert!(holds(&spelled, &einsum(same)) && holds(&einsum(same), &spelled), "{same}");
    }
    for other in ["...c,dc->...d", "...d,cd->...c", "...c,cd->d...", "...c,dc"] {
        refused(&spelled, &einsum(other));
    }
}

#[test]
fn a_normalization_of_images_names_its_axes_where_they_lie_otherwise() {
    let normalized = |order: &[i64], axes: Option<&[i64]>, back: &[i64]| {
        let told = axes.map(|axes| ("axes", Attr::Ints(axes.to_vec()))).into_iter().collect();
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(order)),
            ("n", "MeanVarianceNormalization", &["t"], told),
            ("y", "Transpose", &["n"], perm(back)),
        ];
        model(lines, &[])
    };
    let first: &[i64] = &[0, 1, 2, 3];
    let plain = normalized(first, None, first);
    assert!(holds(&plain, &normalized(TO_LAST, Some(&[0, 1, 2]), TO_FIRST)));
    assert!(holds(&plain, &normalized(first, Some(&[0, 2, 3]), first)));
    refused(&plain, &normalized(TO_LAST, None, TO_FIRST));
    refused(&plain, &normalized(TO_LAST, Some(&[1, 2]), TO_FIRST));
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
    assert_eq!(verdict(&a, &b, &Proof::default()), Verdict::Proved { links: 0, hosts: None });
    let Verdict::ForSizes { sizes, .. } = of_sizes(&a, &b, &Proof::default()) else { panic!("it holds for sizes") };
    assert_eq!(sizes[0].keys().collect::<Vec<_>>(), ["n", "x[1]", "x[2]"]);
    assert_eq!(sizes[0].values().collect::<std::collections::BTreeSet<_>>().len(), 3);
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

#[test]
fn two_orders_of_axes_of_an_unknown_shape_are_one() {
    // Runtimes differ about windows that start behind the operand, so nobody knows the shape.
    let chain = |orders: &[&[i64]]| {
        let names = ["n", "a", "b", "c"];
        let list = |name, list: &[i64]| (name, Attr::Ints(list.to_vec()));
        let told = vec![list("kernel_shape", &[1, 2]), list("strides", &[2, 2]), ("ceil_mode", Attr::Int(1))];
        let mut lines: Vec<Line<'_>> = vec![("n", "MaxPool", &["x"], told)];
        for (at, order) in orders.iter().enumerate() {
            lines.push((names[at + 1], "Transpose", &names[at..=at], perm(order)));
        }
        lines.push(("y", "Relu", &names[orders.len()..=orders.len()], vec![]));
        model(&lines, &[])
    };
    let shift: &[i64] = &[1, 2, 3, 0];
    let a = chain(&[shift]);
    assert!(holds(&a, &chain(&[TO_FIRST, &[2, 3, 1, 0]])));
    refused(&a, &chain(&[&[3, 1, 0, 2], TO_FIRST]));
    refused(&a, &chain(&[&[3, 0, 1, 2]]));
    refused(&a, &chain(&[]));
    assert!(holds(&chain(&[]), &chain(&[TO_LAST, TO_FIRST])));
    assert!(holds(&chain(&[]), &chain(&[TO_LAST, TO_LAST, TO_LAST])));
    refused(&chain(&[]), &chain(&[TO_LAST, TO_LAST]));
    // What is no order of four axes is none that goes away.
    for [once, back] in [[[0, 0, 1, 2], [0, 0, 1, 2]], [[0, 1, 2, 4], [0, 1, 2, 4]], [[-1, 0, 1, 2], [1, 2, 3, 0]]] {
        refused(&chain(&[]), &chain(&[&once, &back]));
    }
    refused(&chain(&[]), &chain(&[&[1, 2, 0], &[2, 0, 1]]));
    refused(&chain(&[]), &chain(&[&[0, 1, 2]]));
    // Of other values nobody knows how many axes they have.
    let unknown = |orders: &[&[i64]]| {
        let mut made = chain(orders);
        *node(&mut made, 0) = Node { attrs: vec![], op: "NonZero".into(), ..node(&mut made, 0).clone() };
        made
    };
    refused(&unknown(&[]), &unknown(&[&[1, 0], &[1, 0]]));
}
