//! Ops of `com.microsoft` that are several ops of ONNX at once.

use super::*;

const DOMAIN: &str = "com.microsoft";

fn weights(from: i32) -> Vec<f32> {
    (0..6 * 6).map(|n| (n % 11 + from) as f32 / 8.0).collect()
}

/// The lines, ops of that domain where they are named in `fused`; weights [6,6,1,1], and a gain of 5.
pub(super) fn with(lines: &[Line<'_>], fused: &[&str], from: i32) -> Model {
    let gain = (1..6).map(|n| n as f32).collect();
    let mut made = model(lines, &[("w", &[6, 6, 1, 1], weights(from)), ("g", &[5], gain)]);
    for node in &mut Rc::make_mut(&mut made.graph).nodes {
        if fused.contains(&node.op.as_str()) {
            node.domain = DOMAIN.to_owned();
        }
    }
    made.opsets.insert(DOMAIN.to_owned(), 1);
    made
}

/// A convolution of the runtime's own of `x`, with a sum if it has one.
fn convolution(activation: &str, numbers: &[f32], operands: &[&str], from: i32) -> Model {
    let mut attrs = conv_of_one();
    attrs.push(("activation", Attr::Text(activation.into())));
    if !numbers.is_empty() {
        attrs.push(("activation_params", Attr::Floats(numbers.to_vec())));
    }
    with(&[("y", "FusedConv", operands, attrs)], &["FusedConv"], from)
}

fn conv_of_one() -> Vec<(&'static str, Attr)> {
    vec![("kernel_shape", Attr::Ints(vec![1, 1]))]
}

#[test]
fn a_fused_convolution_is_its_convolution_sum_and_activation() {
    let alpha = |alpha| vec![("alpha", Attr::Float(alpha))];
    let apart: &[Line<'_>] = &[("c", "Conv", &["x", "w"], conv_of_one()), ("y", "LeakyRelu", &["c"], alpha(0.25))];
    let plain = with(apart, &[], 0);
    assert!(holds(&plain, &convolution("LeakyRelu", &[0.25], &["x", "w"], 0)));
    assert!(!holds(&plain, &convolution("LeakyRelu", &[0.5], &["x", "w"], 0)));
    assert!(!holds(&plain, &convolution("Relu", &[], &["x", "w"], 0)));
    assert!(!holds(&plain, &convolution("LeakyRelu", &[0.25], &["x", "w"], 1)));
    let sum: &[Line<'_>] =
        &[("c", "Conv", &["x", "w"], conv_of_one()), ("s", "Add", &["c", "x"], vec![]), ("y", "Relu", &["s"], vec![])];
    assert!(holds(&with(sum, &[], 0), &convolution("Relu", &[], &["x", "w", "", "x"], 0)));
    assert!(!holds(&with(sum, &[], 0), &convolution("Relu", &[], &["x", "w"], 0)));
}

#[test]
fn a_normalization_of_a_sum_is_both() {
    let epsilon = |epsilon| vec![("epsilon", Attr::Float(epsilon))];
    let layer = |epsilon| vec![("axis", Attr::Int(-1)), ("epsilon", Attr::Float(epsilon))];
    let flat: Line<'_> = ("f", "Flatten", &["x"], axis(3));
    let apart: &[Line<'_>] =
        &[flat.clone(), ("s", "Add", &["f", "f"], vec![]), ("y", "LayerNormalization", &["s", "g"], layer(1e-12))];
    let plain = with(apart, &[], 0);
    let together = |operands: &[&str], attrs| {
        let lines = [flat.clone(), ("y", "SkipLayerNormalization", operands, attrs)];
        with(&lines, &["SkipLayerNormalization"], 0)
    };
    assert!(holds(&plain, &together(&["f", "f", "g"], epsilon(1e-12))));
    // Its default is not that of ONNX.
    assert!(holds(&plain, &together(&["f", "f", "g"], vec![])));
    assert!(!holds(&plain, &together(&["f", "f", "g"], epsilon(1e-5))));
    assert!(!holds(&plain, &together(&["f", "f", "g", "g"], epsilon(1e-12))));
    // Of more axes, and with what is wider, it runs nowhere.
    let of_image: &[Line<'_>] =
        &[("s", "Add", &["x", "x"], vec![]), ("y", "LayerNormalization", &["s", "g"], layer(1e-12))];
    assert!(!holds(&with(of_image, &[], 0), &together(&["x", "x", "g"], epsilon(1e-12))));
}

#[test]
fn a_bias_may_be_added_before_or_behind_what_skips() {
    let numbers = |from: usize| (from..from + 5).map(|n| n as f32 / 4.0).collect();
    let of = |lines: &[Line<'_>]| {
        let mut made = model(lines, &[("g", &[5], numbers(4)), ("b", &[5], numbers(2)), ("h", &[5], numbers(3))]);
        for node in Rc::make_mut(&mut made.graph).nodes.iter_mut().filter(|node| node.op.starts_with("Skip")) {
            node.domain = DOMAIN.to_owned();
        }
        made.opsets.insert(DOMAIN.to_owned(), 1);
        made
    };
    let flat: Line<'_> = ("f", "Flatten", &["x"], axis(3));
    let skip: Line<'_> = ("s", "Sin", &["f"], vec![]);
    let norm = || vec![("axis", Attr::Int(-1)), ("epsilon", Attr::Float(1e-12))];
    let apart = |first: &'static [&'static str], then: &'static [&'static str]| {
        let y = ("y", "LayerNormalization", &["q", "g"][..], norm());
        of(&[flat.clone(), skip.clone(), ("p", "Add", first, vec![]), ("q", "Add", then, vec![]), y])
    };
    let together =
        |operands: &[&str]| of(&[flat.clone(), skip.clone(), ("y", "SkipLayerNormalization", operands, vec![])]);
    let fused = together(&["f", "s", "g", "", "b"]);
    assert!(matches!(verdict(&apart(&["f", "s"], &["p", "b"]), &fused, &Proof::default()), Verdict::Proved { .. }));
    for plain in [apart(&["f", "b"], &["p", "s"]), apart(&["f", "b"], &["s", "p"]), apart(&["s", "b"], &["p", "f"])] {
        for (a, b) in [(&plain, &fused), (&fused, &plain)] {
            let found = verdict(a, b, &Proof::default());
            assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
        }
        let others: [&[&str]; 4] =
            [&["f", "s", "g", "", "h"], &["f", "f", "g", "", "b"], &["s", "s", "g", "", "b"], &["f", "s", "g", "b"]];
        for operands in others {
            assert!(!holds(&plain, &together(operands)), "{operands:?}");
        }
    }
    assert!(!holds(&apart(&["f", "b"], &["p", "b"]), &fused));
}

#[test]
fn what_the_runtime_does_not_load_or_run_is_refused() {
    let plain = with(&[("y", "Gelu", &["x"], vec![])], &["Gelu"], 0);
    let odd = |operands: &[&str], attrs| with(&[("y", "Gelu", operands, attrs)], &["Gelu"], 0);
    assert!(holds(&plain, &odd(&["x"], vec![])));
    assert!(!holds(&plain, &odd(&["x"], vec![("approximate", Attr::Int(1))])), "it has no such attribute");
    assert!(!holds(&plain, &odd(&["x", "g"], vec![])), "it has one operand");
    // Matrices of batches by one of rows and columns.
    let turn: Line<'_> = ("t", "Transpose", &["x"], perm(&[1, 2, 0, 3]));
    let column: Line<'_> = ("c", "Reshape", &["g", "to"], vec![]);
    let apart = with(&[turn, column.clone(), ("y", "MatMul", &["t", "c"], vec![])], &[], 0);
    let batches = vec![("transBatchA", Attr::Int(1))];
    let whole = with(&[column, ("y", "FusedMatMul", &["x", "c"], batches)], &["FusedMatMul"], 0);
    let [apart, whole] = [apart, whole].map(|mut made| {
        let data: Vec<u8> = [5i64, 1].iter().flat_map(|n| n.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![2], dtype: 7, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push(("to".to_owned(), tensor));
        made
    });
    assert!(holds(&apart, &apart));
    assert!(!holds(&apart, &whole), "the runtime turns batches of both");
}

#[test]
fn functions_of_the_runtime_pass_transposes_and_differ_by_their_numbers() {
    let alpha = |alpha| vec![("alpha", Attr::Float(alpha))];
    let first = |of: f32| {
        with(&[("t", "Transpose", &["x"], perm(TO_LAST)), ("y", "QuickGelu", &["t"], alpha(of))], &["QuickGelu"], 0)
    };
    let last = |of: f32| {
        with(&[("r", "QuickGelu", &["x"], alpha(of)), ("y", "Transpose", &["r"], perm(TO_LAST))], &["QuickGelu"], 0)
    };
    assert!(holds(&first(1.0), &last(1.0)));
    assert!(!holds(&first(1.0), &last(1.702)));
    let gelu = |fused: &[&str]| with(&[("y", "Gelu", &["x"], vec![])], fused, 0);
    assert!(holds(&gelu(&["Gelu"]), &gelu(&["Gelu"])));
    assert!(!holds(&gelu(&["Gelu"]), &with(&[("y", "Relu", &["x"], vec![])], &[], 0)));
}

/// Of `x`, [2, 6, 4, 5]: rows of this many groups of channels, normalized, scaled and shifted by channel, and `SiLU`.
fn apart(groups: i64, epsilon: f32, silu: bool) -> Model {
    let told = vec![("epsilon", Attr::Float(epsilon))];
    let mut lines: Vec<Line<'_>> = vec![
        ("r", "Reshape", &["x", "rows"], vec![]),
        ("e", "InstanceNormalization", &["r", "one", "zero"], told),
        ("i", "Reshape", &["e", "image"], vec![]),
        ("m", "Mul", &["i", "scale"], vec![]),
        ("n", "Add", &["m", "bias"], vec![]),
    ];
    if silu {
        lines.extend([("g", "Sigmoid", &["n"] as &[&str], vec![]), ("y", "Mul", &["n", "g"], vec![])]);
    } else {
        lines.push(("y", "Identity", &["n"], vec![]));
    }
    let [scale, bias] = numbers_by_channel();
    let (each, none) = (vec![1.0; groups as usize], vec![0.0; groups as usize]);
    let made: [(&str, &[i64], Vec<f32>); 4] =
        [("one", &[groups], each), ("zero", &[groups], none), ("scale", &[6, 1, 1], scale), ("bias", &[6, 1, 1], bias)];
    let mut made = model(&lines, &made);
    for (name, list) in [("rows", vec![0, groups, -1]), ("image", vec![0, 6, 4, 5])] {
        let data: Vec<u8> = list.iter().flat_map(|n: &i64| n.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![list.len() as i64], dtype: 7, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    made
}

fn numbers_by_channel() -> [Vec<f32>; 2] {
    [(0..6).map(|n| n as f32 / 4.0 - 0.5).collect(), (0..6).map(|n| 1.0 - n as f32 / 8.0).collect()]
}

/// The same as one op, between Transposes.
fn group_norm(attrs: Vec<(&'static str, Attr)>, operands: &[&str]) -> Model {
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(TO_LAST)),
        ("n", "GroupNorm", operands, attrs),
        ("y", "Transpose", &["n"], perm(TO_FIRST)),
    ];
    let [scale, bias] = numbers_by_channel();
    let mut made = model(lines, &[("scale", &[6], scale), ("bias", &[6], bias)]);
    Rc::make_mut(&mut made.graph).nodes[1].domain = DOMAIN.to_owned();
    made
}

#[test]
fn a_normalization_of_groups_is_its_rows_scale_shift_and_activation() {
    let told = |groups, activation, epsilon| {
        let ints = [("groups", groups), ("activation", activation), ("channels_last", 1)];
        let ints = ints.into_iter().map(|(name, value)| (name, Attr::Int(value)));
        ints.chain([("epsilon", Attr::Float(epsilon))]).collect::<Vec<_>>()
    };
    let own = ["t", "scale", "bias"];
    for (activation, silu) in [(0, false), (1, true)] {
        let plain = apart(3, 1e-4, silu);
        assert!(holds(&plain, &group_norm(told(3, activation, 1e-4), &own)), "{silu}");
        assert!(!holds(&plain, &group_norm(told(3, 1 - activation, 1e-4), &own)), "another activation");
        assert!(!holds(&plain, &group_norm(told(2, activation, 1e-4), &own)), "other groups");
        assert!(!holds(&plain, &group_norm(told(3, activation, 1e-5), &own)), "another epsilon");
        assert!(!holds(&plain, &group_norm(told(3, activation, 1e-4), &["t", "bias", "scale"])), "other numbers");
    }
    let plain = apart(3, 1e-4, true);
    let mut first = told(3, 1, 1e-4);
    first[2].1 = Attr::Int(0);
    assert!(!holds(&plain, &group_norm(first, &own)), "channels first");
    assert!(!holds(&plain, &group_norm(told(3, 2, 1e-4), &own)), "an activation that it does not have");
    assert!(!holds(&plain, &group_norm(told(4, 1, 1e-4), &own)), "groups that do not divide the channels");
    assert!(!holds(&plain, &group_norm(told(3, 1, 1e-4), &["t", "scale"])), "no shift");
}

#[test]
fn a_normalization_of_groups_may_have_the_sum_before_it() {
    let told = vec![
        ("groups", Attr::Int(3)),
        ("activation", Attr::Int(0)),
        ("channels_last", Attr::Int(1)),
        ("epsilon", Attr::Float(1e-4)),
    ];
    // The image and what is added to it, as one op or before it; then the sum again.
    let made = |operands: Option<&[&str]>, again: &str| {
        let (mut lines, last): (Vec<Line<'_>>, _) = (vec![("t", "Transpose", &["x"], perm(TO_LAST))], perm(TO_FIRST));
        lines.push(("u", "Sin", &["t"], vec![]));
        lines.push(("p", "GlobalAveragePool", &["x"], vec![]));
        lines.push(("q", "Transpose", &["p"], perm(TO_LAST)));
        if let Some(operands) = operands {
            lines.push(("n", "SkipGroupNorm", operands, told.clone()));
        } else {
            lines.push(("s", "Add", &["t", "u"], vec![]));
            lines.push(("n", "GroupNorm", &["s", "scale", "bias"], told.clone()));
        }
        let both = ["n", again];
        lines.push(("m", "Mul", &both, vec![]));
        lines.push(("y", "Transpose", &["m"], last));
        let [scale, bias] = numbers_by_channel();
        let mut made = with(&lines, &["GroupNorm", "SkipGroupNorm"], 0);
        let graph = Rc::make_mut(&mut made.graph);
        for (name, values) in [("scale", scale), ("bias", bias)] {
            let data: Vec<u8> = values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
            graph.initializers.push((name.to_owned(), Tensor { dims: vec![6], dtype: 1, data: data.into() }));
        }
        if let Some(node) = graph.nodes.iter_mut().find(|node| node.op == "SkipGroupNorm") {
            node.outputs.push("s".to_owned());
        }
        made
    };
    let plain = made(None, "s");
    let fused = |operands: &[&str], again| made(Some(operands), again);
    let right = fused(&["t", "scale", "bias", "u"], "s");
    assert!(holds(&plain, &right), "{}", verdict(&plain, &right, &Proof::default()));
    assert!(!holds(&plain, &fused(&["t", "scale", "bias", "u"], "t")), "the image is no sum");
    assert!(!holds(&plain, &fused(&["t", "scale", "bias", "t"], "s")), "another sum");
    assert!(!holds(&plain, &fused(&["t", "scale", "bias", "q"], "s")), "a number for each channel of an image");
    assert!(!holds(&plain, &fused(&["t", "scale", "bias", "u", "bias"], "s")), "a bias");
}
