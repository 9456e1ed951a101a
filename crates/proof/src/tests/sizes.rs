//! Sizes that nobody gave: those that make the nodes of the model fit.

use super::*;

/// The model with `x` of these dims.
fn sized(mut made: Model, dims: Vec<DeclaredDim>) -> Model {
    Rc::make_mut(&mut made.graph).inputs[0].dims = Some(dims);
    made
}

fn symbols(names: [&str; 4]) -> Vec<DeclaredDim> {
    names.map(|name| name.parse().map_or_else(|_| DeclaredDim::Symbol(name.into()), DeclaredDim::Known)).to_vec()
}

/// The sizes for which a model that lies otherwise is proved.
fn sizes(lines: &[Line<'_>], constants: &[(&str, &[i64], Vec<f32>)], dims: [&str; 4]) -> Vec<(String, i64)> {
    let mut after = lines.to_vec();
    let (last, op) = (lines.len() - 1, lines[lines.len() - 1].clone());
    after[last] = ("q", op.1, op.2, op.3.clone());
    after.push(("r", "Transpose", &["q"], perm(TO_LAST)));
    after.push(("y", "Transpose", &["r"], perm(TO_FIRST)));
    let (a, b) = (sized(model(lines, constants), symbols(dims)), sized(model(&after, constants), symbols(dims)));
    match of_sizes(&a, &b, &Proof::default()) {
        Verdict::ForSizes { sizes, .. } => sizes[0].clone().into_iter().collect(),
        other => panic!("{other}"),
    }
}

fn named(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

#[test]
fn weights_say_how_many_channels_there_are() {
    let lines: &[Line<'_>] = &[("a", "Relu", &["x"], vec![]), ("y", "Conv", &["a", "w"], conv([0; 4]))];
    let found = sizes(lines, &[("w", &[4, 6, 1, 1], weights())], ["n", "c", "8", "8"]);
    assert_eq!(found, named(&[("c", 6), ("n", 64)]));
}

#[test]
fn a_matrix_says_how_wide_rows_are() {
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(TO_LAST)),
        ("a", "Neg", &["t"], vec![]),
        ("m", "MatMul", &["a", "w"], vec![]),
        ("y", "Transpose", &["m"], perm(TO_FIRST)),
    ];
    assert_eq!(sizes(lines, &[("w", &[6, 4], weights())], ["2", "c", "8", "8"]), named(&[("c", 6)]));
}

#[test]
fn what_is_added_says_how_many_there_are() {
    let lines: &[Line<'_>] = &[("y", "Add", &["x", "w"], vec![])];
    assert_eq!(sizes(lines, &[("w", &[4, 6], weights())], ["2", "3", "h", "w"]), named(&[("h", 4), ("w", 6)]));
}

#[test]
fn a_size_is_found_through_windows() {
    let windows = vec![("kernel_shape", Attr::Ints(vec![3, 3])), ("strides", Attr::Ints(vec![2, 2]))];
    let lines: &[Line<'_>] = &[("a", "MaxPool", &["x"], windows), ("y", "Add", &["a", "w"], vec![])];
    let found = sizes(lines, &[("w", &[4, 6], weights())], ["2", "3", "h", "w"]);
    let [(_, h), (_, w)] = found.as_slice() else { panic!("{found:?}") };
    assert!([9, 10].contains(h) && [13, 14].contains(w), "{found:?}");
}

#[test]
fn windows_say_how_wide_an_image_is_at_least() {
    let lines: &[Line<'_>] = &[("y", "Conv", &["x", "w"], vec![])];
    let found = sizes(lines, &[("w", &[1, 1, 1, 300], vec![0.5; 300])], ["2", "1", "h", "w"]);
    assert!(found[1].1 >= 300, "{found:?}");
}

#[test]
fn sizes_that_were_given_stay_if_the_model_runs_with_them() {
    let lines: &[Line<'_>] = &[("y", "Add", &["x", "w"], vec![])];
    let a = sized(model(lines, &[("w", &[4, 6], weights())]), symbols(["n", "3", "h", "w"]));
    let mut b = a.clone();
    Rc::make_mut(&mut b.graph).nodes[0].inputs.reverse();
    for given in [4, 5] {
        let given = [("h".to_owned(), given), ("n".to_owned(), 7)].into();
        let proof = Proof { version: 1, sizes: given, ..Proof::default() };
        let Verdict::ForSizes { sizes, .. } = of_sizes(&a, &b, &proof) else { panic!("it holds for sizes") };
        assert_eq!(sizes[0].clone().into_iter().collect::<Vec<_>>(), named(&[("h", 4), ("n", 7), ("w", 6)]));
    }
}

#[test]
fn a_model_that_fits_no_size_is_refused() {
    let lines: &[Line<'_>] = &[("a", "Add", &["x", "v"], vec![]), ("y", "Add", &["w", "a"], vec![])];
    let constants: &[(&str, &[i64], Vec<f32>)] = &[("w", &[4, 6], weights()), ("v", &[4, 5], vec![0.5; 20])];
    let a = sized(model(lines, constants), symbols(["2", "3", "h", "w"]));
    let mut b = a.clone();
    Rc::make_mut(&mut b.graph).nodes[1].inputs.reverse();
    assert!(!holds(&a, &b));
}

#[test]
fn an_axis_that_is_counted_in_twos_and_in_threes_gets_another_size() {
    let windows = |rows: i64| {
        let each = Attr::Ints(vec![rows, 1]);
        vec![("kernel_shape", each.clone()), ("strides", each)]
    };
    let nearest = || {
        let word = |word: &str| Attr::Text(word.as_bytes().to_vec());
        vec![("coordinate_transformation_mode", word("asymmetric")), ("nearest_mode", word("floor"))]
    };
    let sum = |order: &'static [&'static str]| {
        let lines: &[Line<'_>] = &[
            ("a", "MaxPool", &["x"], windows(2)),
            ("b", "MaxPool", &["x"], windows(3)),
            ("c", "Resize", &["a", "", "twice"], nearest()),
            ("s", "Shape", &["c"], vec![]),
            ("d", "Resize", &["b", "", "", "s"], nearest()),
            ("y", "Add", order, vec![]),
        ];
        let made = model(lines, &[("twice", &[4], vec![1.0, 1.0, 2.0, 1.0])]);
        sized(made, symbols(["n", "6", "h", "5"]))
    };
    let found = of_sizes(&sum(&["c", "d"]), &sum(&["d", "c"]), &Proof::default());
    let Verdict::ForSizes { sizes, .. } = found else { panic!("{found}") };
    assert!(sizes[0]["h"] % 3 > 0, "{sizes:?}");
    assert!(!holds(&sum(&["c", "d"]), &sum(&["d", "d"])));
}
