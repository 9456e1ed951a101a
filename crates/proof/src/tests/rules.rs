//! What is the same over the reals, and ops that act along axes which lie in several parts.

use super::*;

/// The model with another constant.
fn with(mut model: Model, name: &str, dims: &[i64], dtype: u8, data: Vec<u8>) -> Model {
    let tensor = Tensor { dims: dims.to_vec(), dtype, data: data.into() };
    Rc::make_mut(&mut model.graph).initializers.push((name.to_owned(), tensor));
    model
}

fn ints(model: Model, name: &str, values: &[i64]) -> Model {
    with(model, name, &[values.len() as i64], 7, values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

/// `LayerNormalization` of the channels of `x`, where they lie last, and the same written as convolutions.
mod norms {
    use super::*;

    fn list(start: f32) -> Vec<f32> {
        (0..6).map(|n| start + 0.3 * n as f32).collect()
    }

    fn plain(epsilon: f32) -> Model {
        let mut told = axis(-1);
        told.push(("epsilon", Attr::Float(epsilon)));
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(TO_LAST)),
            ("n", "LayerNormalization", &["t", "s", "b"], told),
            ("y", "Transpose", &["n"], perm(TO_FIRST)),
        ];
        model(lines, &[("s", &[6], list(0.5)), ("b", &[6], list(-1.0))])
    }

    /// With another operand of the line that makes `of`, or another constant.
    fn written(of: &str, operands: &[&'static str], other: Option<(&str, f32)>) -> Model {
        let mut lines: Vec<(&str, &str, Vec<&str>)> = vec![
            ("m", "Conv", vec!["x", "w"]),
            ("c", "Sub", vec!["x", "m"]),
            ("q", "Mul", vec!["c", "c"]),
            ("v", "Conv", vec!["q", "w", "e"]),
            ("d", "Sqrt", vec!["v"]),
            ("r", "Reciprocal", vec!["d"]),
            ("n", "Mul", vec!["c", "r"]),
            ("y", "BatchNormalization", vec!["n", "s", "b", "none", "one"]),
        ];
        for line in lines.iter_mut().filter(|line| line.0 == of) {
            line.2 = operands.to_vec();
        }
        let lines: Vec<Line<'_>> = lines
            .iter()
            .map(|(y, op, x)| {
                let told = if *op == "BatchNormalization" { vec![("epsilon", Attr::Float(0.0))] } else { vec![] };
                (*y, *op, x.as_slice(), told)
            })
            .collect();
        let mut constants: Vec<(&str, &[i64], Vec<f32>)> = vec![
            ("w", &[1, 6, 1, 1], vec![1.0 / 6.0; 6]),
            ("e", &[1], vec![1e-5]),
            ("s", &[6], list(0.5)),
            ("b", &[6], list(-1.0)),
            ("none", &[6], vec![0.0; 6]),
            ("one", &[6], vec![1.0; 6]),
        ];
        for constant in &mut constants {
            if let Some((_, value)) = other.filter(|(name, _)| *name == constant.0) {
                constant.2[0] = value;
            }
        }
        model(&lines, &constants)
    }

    #[test]
    fn a_normalization_may_be_written_as_convolutions() {
        let found = verdict(&plain(1e-5), &written("", &[], None), &Proof::default());
        assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
    }

    #[test]
    fn another_one_is_refused() {
        let right = plain(1e-5);
        assert!(!holds(&plain(1e-4), &written("", &[], None)));
        for (of, operands) in [
            ("c", ["m", "x"].as_slice()),
            ("q", &["c", "x"]),
            ("v", &["x", "w", "e"]),
            ("v", &["q", "w"]),
            ("r", &["v"]),
            ("n", &["x", "r"]),
            ("n", &["c", "d"]),
            ("y", &["n", "b", "s", "none", "one"]),
            ("y", &["c", "s", "b", "none", "one"]),
        ] {
            assert!(!holds(&right, &written(of, operands, None)), "{of} of {operands:?}");
        }
        for (name, value) in [("w", 0.2), ("e", 2e-5), ("s", 0.6), ("b", -1.1), ("none", 0.1), ("one", 0.9)] {
            assert!(!holds(&right, &written("", &[], Some((name, value)))), "{name} with {value}");
        }
    }
}

#[test]
fn factors_of_operands_are_factors_of_their_product() {
    let before = |c: f32| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(&[0, 1, 3, 2])),
            ("a", "Mul", &["x", "c"], vec![]),
            ("b", "Mul", &["t", "c"], vec![]),
            ("y", "MatMul", &["a", "b"], vec![]),
        ];
        model(lines, &[("c", &[], vec![c])])
    };
    let after = |d: f32| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(&[0, 1, 3, 2])),
            ("p", "MatMul", &["x", "t"], vec![]),
            ("y", "Mul", &["p", "d"], vec![]),
        ];
        model(lines, &[("d", &[], vec![d])])
    };
    let found = verdict(&before(0.3), &after(0.09), &Proof::default());
    assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
    for other in [0.3, 0.0901, -0.09] {
        assert!(!holds(&before(0.3), &after(other)), "{other}");
    }
}

#[test]
fn a_slice_of_all_inner_places_is_one_of_the_outer_ones() {
    // The channels are [2 3]; the first of these axes is in front of the batch, and they are counted as one.
    let chosen = |which: i64| {
        let lines: &[Line<'_>] = &[
            ("r", "Reshape", &["x", "to"], vec![]),
            ("g", "Gather", &["r", "which"], axis(1)),
            ("y", "Reshape", &["g", "out"], vec![]),
        ];
        let made = ints(ints(model(lines, &[]), "to", &[2, 2, 3, 4, 5]), "out", &[2, 3, 4, 5]);
        with(made, "which", &[], 7, which.to_le_bytes().to_vec())
    };
    let sliced = |from: i64| {
        let lines: &[Line<'_>] = &[
            ("r", "Reshape", &["x", "to"], vec![]),
            ("t", "Transpose", &["r"], perm(&[1, 0, 2, 3, 4])),
            ("u", "Reshape", &["t", "one"], vec![]),
            ("y", "Slice", &["u", "from", "end"], vec![]),
        ];
        let made = ints(ints(model(lines, &[]), "to", &[2, 2, 3, 4, 5]), "one", &[4, 3, 4, 5]);
        ints(ints(made, "from", &[from]), "end", &[from + 2])
    };
    assert!(holds(&chosen(1), &sliced(2)), "{}", verdict(&chosen(1), &sliced(2), &Proof::default()));
    assert!(holds(&chosen(0), &sliced(0)));
    for (which, from) in [(0, 2), (1, 0), (1, 1), (0, 1)] {
        assert!(!holds(&chosen(which), &sliced(from)), "{which} {from}");
    }
}

#[test]
fn channels_of_several_parts_in_turns_are_a_shuffle() {
    let shuffled: &[Line<'_>] = &[
        ("p", "Reshape", &["x", "parts"], vec![]),
        ("t", "Transpose", &["p"], perm(&[0, 2, 1, 3, 4])),
        ("s", "Reshape", &["t", "whole"], vec![]),
        ("h", "Slice", &["s", "from", "to", "axis"], vec![]),
        ("y", "Relu", &["h"], vec![]),
    ];
    let cut = |from: i64, to: i64| {
        let lists: [(&str, &[i64]); 5] =
            [("parts", &[2, 2, 3, 4, 5]), ("whole", &[2, 6, 4, 5]), ("from", &[from]), ("to", &[to]), ("axis", &[1])];
        lists.into_iter().fold(model(shuffled, &[]), |made, (name, list)| ints(made, name, list))
    };
    let picked = |list: &[i64]| {
        let lines: &[Line<'_>] = &[("p", "Gather", &["x", "list"], axis(1)), ("y", "Relu", &["p"], vec![])];
        ints(model(lines, &[]), "list", list)
    };
    for (from, to, list) in [(0, 6, &[0, 3, 1, 4, 2, 5][..]), (0, 4, &[0, 3, 1, 4]), (2, 6, &[1, 4, 2, 5])] {
        let proof = Proof::default();
        assert_eq!(
            verdict(&cut(from, to), &picked(list), &proof),
            Verdict::Proved { links: 0, hosts: None },
            "{list:?}"
        );
        let mut other = list.to_vec();
        other.swap(1, 2);
        assert!(!holds(&cut(from, to), &picked(&other)), "{other:?}");
    }
    assert!(!holds(&cut(1, 5), &picked(&[0, 3, 1, 4])));
    assert!(!holds(&cut(0, 4), &picked(&[0, 2, 1, 3])));
}

#[test]
fn quantized_weights_may_lie_in_another_order() {
    let extents = [80, 6, 4, 5];
    let byte = |o: i64, c: i64, h: i64, w: i64| (o * 7 + c * 31 + h * 5 + w * 3) as u8;
    let scales: Vec<f32> = (0..80).map(|n| 0.5 + n as f32 / 8.0).collect();
    let read = |weights: &'static str, axis: i64, lines: &[Line<'static>]| {
        let (quantized, operands) = ([weights, "s"], ["x", lines.last().map_or("q", |line| line.0)]);
        let scaled: Line<'_> = ("q", "DequantizeLinear", &quantized, vec![("axis", Attr::Int(axis))]);
        let conv: Line<'_> = ("y", "Conv", &operands, vec![]);
        model(&[&[scaled], lines, &[conv]].concat(), &[("s", &[80], scales.clone())])
    };
    let mut first = Vec::new();
    (0..80).for_each(|o| (0..6).for_each(|c| (0..4).for_each(|h| (0..5).for_each(|w| first.push(byte(o, c, h, w))))));
    let mut last = Vec::new();
    (0..4).for_each(|h| (0..5).for_each(|w| (0..6).for_each(|c| (0..80).for_each(|o| last.push(byte(o, c, h, w))))));
    let a = with(read("w", 0, &[]), "w", &extents, 2, first);
    let turned: &[Line<'static>] = &[("t", "Transpose", &["q"], perm(&[3, 2, 0, 1]))];
    let b = |axis, last: &[u8]| with(read("v", axis, turned), "v", &[4, 5, 6, 80], 2, last.to_vec());
    assert_eq!(verdict(&a, &b(3, &last), &Proof::default()), Verdict::Proved { links: 0, hosts: None });
    for at in [0, 4799, last.len() - 1] {
        let mut other = last.clone();
        other[at] ^= 1;
        assert!(!holds(&a, &b(3, &other)), "byte {at}");
    }
    let mut other = scales.clone();
    other.rotate_left(1);
    let strange = model(&[("y", "Relu", &["x"], vec![])], &[("s", &[80], other)]);
    let mut b = b(3, &last);
    let graph = Rc::make_mut(&mut b.graph);
    graph.initializers.retain(|(name, _)| name != "s");
    graph.initializers.extend(strange.graph.initializers.iter().cloned());
    assert!(!holds(&a, &b));
}

#[test]
fn a_quantized_convolution_may_have_its_channels_last() {
    let made = |lines: &[Line<'_>], weight: u8| {
        let numbers = [("s", vec![0.1]), ("v", vec![0.2]), ("u", vec![0.3])];
        let constants: Vec<(&str, &[i64], Vec<f32>)> =
            numbers.into_iter().map(|(name, value)| (name, [].as_slice(), value)).collect();
        let mut made = with(model(lines, &constants), "z", &[], 2, vec![7]);
        made = with(made, "w", &[4, 6, 1, 1], 2, (0..24).map(|n| n * weight).collect());
        // One input has the name of a constant, which was so in files of that version.
        made.ir = 3;
        for node in &mut Rc::make_mut(&mut made.graph).nodes {
            if node.attrs.iter().any(|(name, _)| name == "channels_last") {
                "com.microsoft".clone_into(&mut node.domain);
            }
        }
        made
    };
    let quantize = ("q", "QuantizeLinear", ["x", "s", "z"]);
    let first: &[Line<'_>] = &[
        (quantize.0, quantize.1, &quantize.2, vec![]),
        ("y", "QLinearConv", &["q", "s", "z", "w", "v", "z", "u", "z"], vec![]),
    ];
    let last = |last: i64, to: &[i64], back: &[i64], weight: u8| {
        let told = vec![("channels_last", Attr::Int(last))];
        let lines: &[Line<'_>] = &[
            (quantize.0, quantize.1, &quantize.2, vec![]),
            ("t", "Transpose", &["q"], perm(to)),
            ("c", "QLinearConv", &["t", "s", "z", "w", "v", "z", "u", "z"], told),
            ("y", "Transpose", &["c"], perm(back)),
        ];
        made(lines, weight)
    };
    let plain = made(first, 3);
    assert!(holds(&plain, &last(1, TO_LAST, TO_FIRST, 3)));
    assert!(holds(&plain, &last(0, &[0, 1, 2, 3], &[0, 1, 2, 3], 3)));
    assert!(!holds(&plain, &last(1, TO_LAST, TO_FIRST, 5)));
    assert!(!holds(&plain, &last(1, &[0, 3, 2, 1], &[0, 3, 2, 1], 3)));
}

/// A normalization over groups of channels, and the same as means, sums of products and scales.
mod groups {
    use super::*;

    fn list(start: f32) -> Vec<f32> {
        (0..6).map(|n| start + 0.3 * n as f32).collect()
    }

    fn plain() -> Model {
        let lines: &[Line<'_>] = &[
            ("g", "Reshape", &["x", "groups"], vec![]),
            ("n", "InstanceNormalization", &["g", "one", "none"], vec![("epsilon", Attr::Float(1e-5))]),
            ("r", "Reshape", &["n", "all"], vec![]),
            ("m", "Mul", &["r", "scale"], vec![]),
            ("y", "Add", &["m", "shift"], vec![]),
        ];
        let constants: &[(&str, &[i64], Vec<f32>)] = &[
            ("one", &[3], vec![1.0; 3]),
            ("none", &[3], vec![0.0; 3]),
            ("scale", &[6, 1, 1], list(0.5)),
            ("shift", &[6, 1, 1], list(-1.0)),
        ];
        ints(ints(model(lines, constants), "groups", &[2, 3, 40]), "all", &[2, 6, 4, 5])
    }

    fn written(epsilon: f32, scale: f32, groups: [i64; 3], equation: &str) -> Model {
        let mean = || vec![("axes", Attr::Ints(vec![2]))];
        let lines: &[Line<'_>] = &[
            ("p", "GlobalAveragePool", &["x"], vec![]),
            ("a", "Reshape", &["p", "groups"], vec![]),
            ("m", "ReduceMean", &["a"], mean()),
            ("l", "Sub", &["zero", "m"], vec![]),
            ("b", "Reshape", &["l", "channels"], vec![]),
            ("c", "Add", &["x", "b"], vec![]),
            ("q", "Einsum", &["c", "c"], vec![("equation", Attr::Text(equation.as_bytes().to_vec()))]),
            ("e", "Add", &["q", "epsilon"], vec![]),
            ("f", "Reshape", &["e", "groups"], vec![]),
            ("v", "ReduceMean", &["f"], mean()),
            ("d", "Sqrt", &["v"], vec![]),
            ("k", "Div", &["scales", "d"], vec![]),
            ("t", "Reshape", &["k", "channels"], vec![]),
            ("s", "Mul", &["c", "t"], vec![]),
            ("y", "Add", &["s", "shift"], vec![]),
        ];
        let root = 20f32.sqrt();
        let constants: &[(&str, &[i64], Vec<f32>)] = &[
            ("zero", &[1, 3, 2], vec![0.0; 6]),
            ("epsilon", &[6], vec![epsilon; 6]),
            ("scales", &[1, 3, 2], list(scale).into_iter().map(|v| v * root).collect()),
            ("shift", &[6, 1, 1], list(-1.0)),
        ];
        ints(ints(model(lines, constants), "groups", &groups), "channels", &[2, 6, 1, 1])
    }

    #[test]
    fn a_normalization_over_groups_may_be_written_as_sums_of_products() {
        let found = verdict(&plain(), &written(20.0 * 1e-5, 0.5, [2, 3, 2], "nchw,nchw->nc"), &Proof::default());
        assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
    }

    #[test]
    fn another_one_is_refused() {
        let plain = plain();
        assert!(!holds(&plain, &written(1e-5, 0.5, [2, 3, 2], "nchw,nchw->nc")));
        assert!(!holds(&plain, &written(20.0 * 1e-5, 0.6, [2, 3, 2], "nchw,nchw->nc")));
        assert!(!holds(&plain, &written(20.0 * 1e-5, 0.5, [2, 2, 3], "nchw,nchw->nc")));
        assert!(!holds(&plain, &written(20.0 * 1e-5, 0.5, [2, 3, 2], "nchw,nqhw->nc")));
    }
}

#[test]
fn a_gemm_without_a_bias_is_one_with_zeros() {
    let of = |bias: &[f32], operands: &'static [&'static str]| {
        let lines: &[Line<'_>] = &[("f", "Flatten", &["x"], axis(3)), ("y", "Gemm", operands, vec![])];
        let w = (0..5 * 3).map(|n| n as f32 - 4.0).collect();
        model(lines, &[("w", &[5, 3], w), ("b", &[3], bias.to_vec())])
    };
    let (plain, zeros) = (of(&[0.0; 3], &["f", "w"]), of(&[0.0; 3], &["f", "w", "b"]));
    assert!(holds(&zeros, &plain) && holds(&plain, &zeros));
    let other = of(&[0.0, 0.0, 1e-9], &["f", "w", "b"]);
    assert!(!holds(&other, &plain) && !holds(&plain, &other));
}

#[test]
fn a_bias_may_be_computed_with_what_is_added() {
    let weights: Vec<f32> = (0..216).map(|n| (n % 23) as f32 - 9.0).collect();
    let bias = vec![0.5f32, -1.0, 2.0, 0.25];
    let told = || vec![("axes", Attr::Ints(vec![0, 2, 3])), ("keepdims", Attr::Int(0))];
    let before: &[Line<'_>] = &[
        ("t", "ReduceMean", &["z"], told()),
        ("r", "Reshape", &["t", "one"], vec![]),
        ("c", "Conv", &["x", "w", "b"], conv([1; 4])),
        ("y", "Add", &["c", "r"], vec![]),
    ];
    let constants = |bias: Vec<f32>| [("w", [4, 6, 3, 3].as_slice(), weights.clone()), ("b", &[4], bias)];
    let before = ints(model(before, &constants(bias.clone())), "one", &[4, 1, 1]);
    let after = |op: &str, bias: Vec<f32>| {
        let lines: &[Line<'_>] = &[
            ("t", "ReduceMean", &["z"], told()),
            ("s", op, &["t", "b"], vec![]),
            ("y", "Conv", &["x", "w", "s"], conv([1; 4])),
        ];
        model(lines, &constants(bias))
    };
    let found = verdict(&before, &after("Add", bias.clone()), &Proof::default());
    assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
    assert!(!holds(&before, &after("Sub", bias.clone())));
    assert!(!holds(&before, &after("Mul", bias.clone())));
    assert!(!holds(&before, &after("Add", bias.into_iter().rev().collect())));
}

#[test]
fn a_claim_may_cut_an_axis_across_a_border() {
    // The channels are [3 2], turned, and blocks of 3 of them lie apart: no digit of the source says it.
    let lines = |more: &[Line<'static>]| {
        let mut lines: Vec<Line<'static>> = vec![
            ("r", "Reshape", &["z", "split"], vec![]),
            ("t", "Transpose", &["r"], perm(&[0, 4, 3, 1, 2])),
            ("c", "Reshape", &["t", "join"], vec![]),
        ];
        lines.extend_from_slice(more);
        let made = ints(model(&lines, &[]), "split", &[2, 2, 10, 2, 3]);
        ints(ints(made, "join", &[2, 6, 4, 5]), "blocks", &[2, 2, 3, 4, 5])
    };
    let plain = lines(&[("y", "Relu", &["c"], vec![])]);
    let moved = lines(&[
        ("b", "Reshape", &["c", "blocks"], vec![]),
        ("u", "Transpose", &["b"], perm(&[0, 1, 3, 4, 2])),
        ("k", "Relu", &["u"], vec![]),
        ("v", "Transpose", &["k"], perm(&[0, 1, 4, 2, 3])),
        ("y", "Reshape", &["v", "join"], vec![]),
    ]);
    let says = |lies: Vec<Vec<(u32, i64, i64)>>| Proof {
        version: 1,
        values: vec![Claim { value: "k".into(), is: Some("y".into()), lies: Some(lies) }],
        ..Proof::default()
    };
    let right = vec![vec![(0, -1, 1)], vec![(1, -1, 3)], vec![(2, -1, 1)], vec![(3, -1, 1)], vec![(1, 3, 1)]];
    let found = verdict(&plain, &moved, &says(right.clone()));
    assert_eq!(found, Verdict::Proved { links: 1, hosts: None });
    for at in 0..5 {
        let mut other = right.clone();
        other.swap(at, (at + 1) % 5);
        assert!(!verdict(&plain, &moved, &says(other)).holds(), "{at}");
    }
    let mut part = right.clone();
    part[4].remove(0);
    assert!(!verdict(&plain, &moved, &says(part)).holds());
}

#[test]
fn a_power_of_constants_may_be_a_constant() {
    let before: &[Line<'_>] = &[("p", "Pow", &["c", "half"], vec![]), ("y", "Mul", &["x", "p"], vec![])];
    let before = model(before, &[("c", &[1], vec![0.3]), ("half", &[], vec![0.5])]);
    let after = |value: f32| model(&[("y", "Mul", &["x", "p"], vec![])], &[("p", &[1], vec![value])]);
    let right = 0.3f32.sqrt();
    let found = verdict(&before, &after(right), &Proof::default());
    assert!(matches!(found, Verdict::WithLemmas { .. }), "{found}");
    assert!(!holds(&before, &after(right * 1.00001)));
    assert_eq!(verdict(&before, &before, &Proof::default()), Verdict::Proved { links: 0, hosts: None });
}

#[test]
fn a_mean_may_be_one_of_means_of_tiles() {
    let plain = model(&[("y", "ReduceMean", &["x"], vec![("axes", Attr::Ints(vec![2, 3]))])], &[]);
    let tiled = |op: &'static str, then: &'static str, kernel: [i64; 2], strides: [i64; 2]| {
        let told = vec![("kernel_shape", Attr::Ints(kernel.to_vec())), ("strides", Attr::Ints(strides.to_vec()))];
        model(&[("t", op, &["x"], told), ("y", then, &["t"], vec![])], &[])
    };
    let mean = "GlobalAveragePool";
    for kernel in [[2, 5], [4, 1], [1, 5], [4, 5]] {
        let found = verdict(&plain, &tiled("AveragePool", mean, kernel, kernel), &Proof::default());
        assert!(matches!(found, Verdict::WithLemmas { .. } | Verdict::Proved { .. }), "{kernel:?}: {found}");
    }
    // Windows that overlap, that leave out a row, and what is no mean.
    assert!(!holds(&plain, &tiled("AveragePool", mean, [2, 5], [1, 5])));
    assert!(!holds(&plain, &tiled("AveragePool", mean, [3, 5], [3, 5])));
    assert!(!holds(&plain, &tiled("MaxPool", mean, [2, 5], [2, 5])));
    assert!(!holds(&plain, &tiled("AveragePool", "GlobalMaxPool", [2, 5], [2, 5])));
}

#[test]
fn scales_behind_a_convolution_of_one_row_may_be_in_its_weights() {
    let slope = [1.5f32, -0.3, 2.0, 0.25];
    let by =
        |row: &[f32]| -> Vec<f32> { (0..4 * 6 * 3 * 5).map(|n| row[n / 90] * ((n * 7 % 31) as f32 - 15.0)).collect() };
    // One image of 6 rows of 5 places: windows are 3 rows.
    let made = |weights: Vec<f32>, scaled: bool| {
        let last = if scaled { "Mul" } else { "Identity" };
        let lines: &[Line<'_>] = &[
            ("i", "Slice", &["x", "zero", "one", "zero"], vec![]),
            ("c", "Conv", &["i", "w"], vec![]),
            ("y", last, if scaled { &["c", "s"] } else { &["c"] }, vec![]),
        ];
        let made = model(lines, &[("w", &[4, 6, 3, 5], weights), ("s", &[4, 1, 1], slope.to_vec())]);
        super::volumes::ints(made, &[("zero", &[1], &[0]), ("one", &[1], &[1])])
    };
    let a = made(by(&[1.0; 4]), true);
    assert!(holds(&a, &made(by(&slope), false)), "{}", verdict(&a, &made(by(&slope), false), &Proof::default()));
    assert!(!holds(&a, &made(by(&[1.5, -0.3, 2.0, 0.26]), false)));
    assert!(!holds(&a, &made(by(&[-0.3, 1.5, 2.0, 0.25]), false)));
}

#[test]
fn parts_and_ranges_of_constants_are_computed() {
    let lines: &[Line<'_>] = &[
        ("r", "Range", &["first", "last", "step"], vec![]),
        ("q", "Split", &["r"], vec![]),
        ("y", "Mul", &["x", "q"], vec![]),
    ];
    let made = |step: f32| {
        let mut made = model(lines, &[("first", &[], vec![2.0]), ("last", &[], vec![9.5]), ("step", &[], vec![step])]);
        Rc::make_mut(&mut made.graph).nodes[1].outputs.push("other".into());
        made
    };
    let plain = |numbers: &[f32]| {
        model(&[("y", "Mul", &["x", "c"], vec![])], &[("c", &[numbers.len() as i64], numbers.to_vec())])
    };
    assert!(!holds(&made(1.0), &plain(&[2.0, 3.0, 4.0, 5.0])), "an end that is no integer");
    let mut whole = made(1.0);
    Rc::make_mut(&mut whole.graph).initializers[1].1.data = 12f32.to_le_bytes().to_vec().into();
    assert!(holds(&whole, &plain(&[2.0, 3.0, 4.0, 5.0, 6.0])));
    assert!(!holds(&whole, &plain(&[2.0, 3.0, 4.0, 5.0, 7.0])));
}

#[test]
fn a_number_before_a_convolution_may_be_in_its_weights() {
    let weights = |by: f32| (0..36).map(|n| by * ((n % 7) as f32 - 3.0)).collect::<Vec<_>>();
    let tensors = |by| vec![("w", [6_i64, 6, 1, 1].as_slice(), weights(by)), ("h", [].as_slice(), vec![0.5])];
    let before = |op: &'static str, factor: &'static str| {
        let lines: &[Line<'_>] = &[("m", op, &["x", factor], vec![]), ("y", "Conv", &["m", "w"], vec![])];
        model(lines, &tensors(1.0))
    };
    let inside = |by| model(&[("y", "Conv", &["x", "w"], vec![])], &tensors(by));
    assert!(holds(&before("Mul", "h"), &inside(0.5)));
    assert!(holds(&inside(0.5), &before("Mul", "h")));
    assert!(holds(&before("Div", "h"), &inside(2.0)));
    assert!(!holds(&before("Mul", "h"), &inside(0.25)));
    assert!(!holds(&before("Add", "h"), &inside(0.5)));
    let product = |by: f32| {
        let rows: Vec<f32> = (0..25).map(|n| by * n as f32).collect();
        let lines: &[Line<'_>] = &[("m", "Mul", &["x", "f"], vec![]), ("y", "MatMul", &["m", "r"], vec![])];
        model(lines, &[("r", &[5, 5], rows), ("f", &[], vec![1.0 / by])])
    };
    assert!(holds(&product(2.0), &product(4.0)));
    let by_axis = {
        let lines: &[Line<'_>] = &[("m", "Mul", &["x", "b"], vec![]), ("y", "Conv", &["m", "w"], vec![])];
        let mut tensors = tensors(1.0);
        tensors.push(("b", [5].as_slice(), vec![0.5, 1.0, 0.5, 0.5, 0.5]));
        model(lines, &tensors)
    };
    assert!(!holds(&by_axis, &inside(0.5)), "numbers of places are in no weights");
}

#[test]
fn places_of_places_are_places_of_the_whole() {
    let twice = |second: &[i64]| {
        let lines: &[Line<'_>] =
            &[("p", "Gather", &["x", "first"], axis(1)), ("y", "Gather", &["p", "second"], axis(1))];
        ints(ints(model(lines, &[]), "first", &[4, 1, 5, 0]), "second", second)
    };
    let once = |list: &[i64]| ints(model(&[("y", "Gather", &["x", "list"], axis(1))], &[]), "list", list);
    assert!(holds(&twice(&[3, 2, 1]), &once(&[0, 5, 1])));
    assert!(!holds(&twice(&[3, 2, 1]), &once(&[0, 1, 5])));
    assert!(!holds(&twice(&[3, 1, 2]), &once(&[0, 5, 1])));
    assert!(holds(&twice(&[2]), &once(&[5])));
    assert!(!holds(&twice(&[2]), &once(&[2])));
    // Along another axis it is something else.
    let lines: &[Line<'_>] = &[("p", "Gather", &["x", "first"], axis(1)), ("y", "Gather", &["p", "second"], axis(2))];
    let apart = ints(ints(model(lines, &[]), "first", &[4, 1, 5, 0]), "second", &[3, 2, 1]);
    assert!(!holds(&apart, &once(&[0, 5, 1])));
}

#[test]
fn channels_of_two_axes_may_be_read_in_either_order() {
    // 6 channels are 2 by 3, and normalized over one of these, so that they stay two axes.
    let weights = |order: &dyn Fn(i64) -> i64| -> Vec<f32> {
        (0..4 * 6 * 9).map(|n| (n / 54 * 54 + order(n / 9 % 6) * 9 + n % 9) as f32 % 31.0 - 15.0).collect()
    };
    let made = |turned: bool, w: Vec<f32>, less: f32| {
        let lines: &[Line<'_>] = &[
            ("r", "Reshape", &["x", "apart"], vec![]),
            ("m", "ReduceMax", &["r"], vec![("axes", Attr::Ints(vec![2])), ("keepdims", Attr::Int(1))]),
            ("d", "Sub", &["r", "m"], vec![]),
            ("t", "Transpose", &["d"], perm(if turned { &[0, 2, 1, 3, 4] } else { &[0, 1, 2, 3, 4] })),
            ("j", "Reshape", &["t", "joined"], vec![]),
            ("y", "Conv", &["j", "w", "b"], vec![]),
        ];
        let made = model(lines, &[("w", &[4, 6, 3, 3], w), ("b", &[4], vec![less; 4])]);
        ints(ints(made, "apart", &[2, 2, 3, 4, 5]), "joined", &[2, 6, 4, 5])
    };
    let plain = made(false, weights(&|channel| channel), 0.5);
    let right = weights(&|channel| channel % 2 * 3 + channel / 2);
    assert!(holds(&plain, &made(true, right.clone(), 0.5)));
    assert!(!holds(&plain, &made(true, right, 0.25)));
    assert!(!holds(&plain, &made(true, weights(&|channel| channel % 3 * 2 + channel / 3), 0.5)));
    assert!(!holds(&plain, &made(true, weights(&|channel| channel), 0.5)));
}
