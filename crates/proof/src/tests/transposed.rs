//! Transposed convolutions that are written as convolutions of their phases.

use super::volumes::ints;
use super::*;

const INPUTS: usize = 6;
const OUTPUTS: usize = 2;

fn weight(input: usize, output: usize, row: usize, column: usize) -> f32 {
    ((input * 31 + output * 17 + row * 11 + column * 7) % 53) as f32 * 0.1 - 2.0
}

/// Of stride 2.
fn plain(kernel: usize, pads: i64, more: i64) -> Model {
    let told = vec![
        ("strides", Attr::Ints(vec![2, 2])),
        ("pads", Attr::Ints(vec![pads; 4])),
        ("output_padding", Attr::Ints(vec![more; 2])),
    ];
    let lines: &[Line<'_>] = &[("c", "ConvTranspose", &["x", "w", "b"], told), ("y", "Relu", &["c"], vec![])];
    let taps = kernel * kernel;
    let at = |n: usize| weight(n / taps / OUTPUTS, n / taps % OUTPUTS, n % taps / kernel, n % kernel);
    let weights = (0..INPUTS * OUTPUTS * taps).map(at).collect();
    let side = kernel as i64;
    model(lines, &[("w", &[INPUTS as i64, OUTPUTS as i64, side, side], weights), ("b", &[2], vec![0.5, -1.0])])
}

/// The same as a convolution, by what each of two phases reads along an axis: for each pixel from `-before` on, the tap.
fn by_phases(reads: [&[Option<usize>]; 2], before: i64, behind: i64, order: &[i64]) -> Model {
    let lines: &[Line<'_>] = &[
        ("c", "Conv", &["x", "w", "b"], vec![("pads", Attr::Ints(vec![before, before, behind, behind]))]),
        ("u", "Reshape", &["c", "cells"], vec![]),
        ("t", "Transpose", &["u"], perm(order)),
        ("v", "Reshape", &["t", "image"], vec![]),
        ("y", "Relu", &["v"], vec![]),
    ];
    let side = reads[0].len();
    let at = |n: usize| {
        let (filter, input, place) = (n / (INPUTS * side * side), n / (side * side) % INPUTS, n % (side * side));
        let (phase, output) = (filter / OUTPUTS, filter % OUTPUTS);
        let taps = (reads[phase / 2][place / side], reads[phase % 2][place % side]);
        if let (Some(row), Some(column)) = taps { weight(input, output, row, column) } else { 0.0 }
    };
    let weights = (0..4 * OUTPUTS * INPUTS * side * side).map(at).collect();
    let bias = (0..4).flat_map(|_| [0.5, -1.0]).collect();
    let made = model(lines, &[("w", &[8, 6, side as i64, side as i64], weights), ("b", &[8], bias)]);
    ints(made, &[("cells", &[6], &[2, 2, 2, 2, 4, 5]), ("image", &[4], &[2, 2, 8, 10])])
}

const SPREAD: &[i64] = &[0, 3, 4, 1, 5, 2];

#[test]
fn phases_may_be_convolved_by_themselves() {
    for (kernel, pads, more, reads, before, behind) in [
        (2, 0, 0, [&[Some(0)][..], &[Some(1)]], 0, 0),
        (3, 1, 1, [&[Some(1), None], &[Some(2), Some(0)]], 0, 1),
        (4, 1, 0, [&[Some(3), Some(1), None], &[None, Some(2), Some(0)]], 1, 1),
    ] {
        let of = |reads, order| {
            verdict(&plain(kernel, pads, more), &by_phases(reads, before, behind, order), &Proof::default())
        };
        assert_eq!(of(reads, SPREAD), Verdict::Proved { links: 0, hosts: None }, "{kernel}");
        let [first, second] = reads;
        assert!(!of([second, first], SPREAD).holds(), "{kernel}: phases in another order");
        assert!(!of([first, first], SPREAD).holds(), "{kernel}: a phase twice");
        assert!(!of(reads, &[0, 3, 4, 2, 5, 1]).holds(), "{kernel}: rows as columns");
        assert!(!holds(&plain(kernel, pads, more), &plain(kernel, pads + 1, more + 2)), "{kernel}: pads");
    }
    let mut other = plain(3, 1, 1);
    let window = ("kernel_shape".to_owned(), Attr::Ints(vec![3, 2]));
    Rc::make_mut(&mut other.graph).nodes[0].attrs.push(window);
    assert!(!holds(&plain(3, 1, 1), &other), "another window than that of the weights");
    // A tap that is read from the pixel beside.
    let moved = by_phases([&[None, Some(1)], &[Some(2), Some(0)]], 0, 1, SPREAD);
    assert!(!holds(&plain(3, 1, 1), &moved));
}

#[test]
fn what_is_added_to_a_transposed_convolution_may_be_its_bias() {
    for (kernel, pads, more) in [(2, 0, 0), (3, 1, 1), (4, 1, 0), (3, 0, 0)] {
        let added = |bias: [f32; 2], op: &'static str| {
            let mut made = plain(kernel, pads, more);
            let graph = Rc::make_mut(&mut made.graph);
            graph.nodes[0].inputs.truncate(2);
            "t".clone_into(&mut graph.nodes[0].outputs[0]);
            graph.nodes.insert(1, model(&[("c", op, &["t", "b"], vec![])], &[]).graph.nodes[0].clone());
            let data: Vec<u8> = bias.iter().flat_map(|v| v.to_le_bytes()).collect();
            graph.initializers[1].1 = Tensor { dims: vec![1, 2, 1, 1], dtype: 1, data: data.into() };
            made
        };
        let b = plain(kernel, pads, more);
        assert!(holds(&added([0.5, -1.0], "Add"), &b), "{kernel} {pads}");
        assert!(!holds(&added([-1.0, 0.5], "Add"), &b), "{kernel} {pads}: channels");
        assert!(!holds(&added([0.5, -1.5], "Add"), &b), "{kernel} {pads}: another number");
        assert!(!holds(&added([0.5, -1.0], "Mul"), &b), "{kernel} {pads}: a product");
    }
}

#[test]
fn scales_behind_a_transposed_convolution_may_be_in_its_weights() {
    let (slope, shift) = ([1.5f32, -0.25], [0.75f32, 2.0]);
    for (kernel, pads, more) in [(2, 0, 0), (3, 1, 1), (4, 1, 0)] {
        let mut a = plain(kernel, pads, more);
        let graph = Rc::make_mut(&mut a.graph);
        graph.nodes[0].inputs.truncate(2);
        "t".clone_into(&mut graph.nodes[0].outputs[0]);
        let behind: &[Line<'_>] =
            &[("p", "Add", &["t", "b"], vec![]), ("m", "Mul", &["p", "s"], vec![]), ("c", "Add", &["m", "h"], vec![])];
        graph.nodes.splice(1..1, model(behind, &[]).graph.nodes.clone());
        graph.initializers[1].1.dims = vec![2, 1, 1];
        for (name, values) in [("s", slope), ("h", shift)] {
            let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            graph.initializers.push((name.into(), Tensor { dims: vec![2, 1, 1], dtype: 1, data: data.into() }));
        }
        let folded = |slope: [f32; 2], bias: [f32; 2]| {
            let mut b = plain(kernel, pads, more);
            let graph = Rc::make_mut(&mut b.graph);
            let taps = kernel * kernel;
            let old = graph.initializers[0].1.data.clone();
            let number = |(n, v): (usize, &[u8])| f32::from_le_bytes(v.try_into().unwrap()) * slope[n / taps % OUTPUTS];
            let data: Vec<u8> = old.chunks_exact(4).enumerate().flat_map(|pair| number(pair).to_le_bytes()).collect();
            graph.initializers[0].1.data = data.into();
            graph.initializers[1].1.data = bias.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into();
            b
        };
        let bias = [0.5 * slope[0] + shift[0], -slope[1] + shift[1]];
        let right = verdict(&a, &folded(slope, bias), &Proof::default());
        assert!(matches!(right, Verdict::WithLemmas { .. }), "{kernel}: {right}");
        assert!(!holds(&a, &folded([slope[1], slope[0]], bias)), "{kernel}: scales");
        assert!(!holds(&a, &folded(slope, [bias[1], bias[0]])), "{kernel}: shifts");
        assert!(!holds(&a, &folded([slope[0], slope[1] * 1.001], bias)), "{kernel}: another scale");
    }
}

/// A transposed convolution that no convolution is, or one of one filter, times a number for each channel and more.
fn scaled(op: &'static str, dims: [i64; 4], behind: bool, by: f32) -> Model {
    let strides = if op == "Conv" { vec![1, 1] } else { vec![2, 3] };
    let (at, count) = if op == "Conv" { (0, dims[0]) } else { (1, dims[1]) };
    let inner = dims[at + 1..].iter().product::<i64>() as usize;
    let scale = |channel: usize| 0.5 + channel as f32;
    let weight = |n: usize| {
        let number = ((n * 31) % 53) as f32 * 0.1 - 2.0;
        if behind { number } else { number * scale(n / inner % count as usize) * by }
    };
    let weights = (0..dims.iter().product::<i64>() as usize).map(weight).collect();
    let told = vec![("strides", Attr::Ints(strides))];
    let channels: Vec<f32> = (0..count as usize).map(scale).collect();
    let shift: Vec<f32> = (0..count).map(|n| n as f32 - 0.5).collect();
    let lines: &[Line<'_>] = if behind {
        &[
            ("c", op, &["x", "w"], told),
            ("m", "Mul", &["c", "s"], vec![]),
            ("a", "Add", &["m", "t"], vec![]),
            ("y", "Relu", &["a"], vec![]),
        ]
    } else {
        &[("c", op, &["x", "w", "b"], told), ("y", "Relu", &["c"], vec![])]
    };
    let list = [count, 1, 1];
    model(lines, &[("w", &dims, weights), ("s", &list, channels), ("t", &list, shift.clone()), ("b", &[count], shift)])
}

#[test]
fn scales_go_into_the_weights_of_transposed_convolutions_and_of_single_filters() {
    for (op, dims) in [("ConvTranspose", [6, 2, 4, 3]), ("ConvTranspose", [6, 1, 4, 3]), ("Conv", [1, 6, 3, 3])] {
        let a = scaled(op, dims, true, 1.0);
        let found = verdict(&a, &scaled(op, dims, false, 1.0), &Proof::default());
        assert!(matches!(found, Verdict::WithLemmas { .. }), "{op} {dims:?}: {found}");
        assert!(!holds(&a, &scaled(op, dims, false, 1.001)), "{op} {dims:?}");
        assert!(!holds(&a, &scaled(op, dims, false, -1.0)), "{op} {dims:?}");
    }
    // The axis of a transposed convolution's channels is the second one.
    let turned = |weights: Vec<f32>| {
        let told = vec![("strides", Attr::Ints(vec![2, 3]))];
        let lines: &[Line<'_>] = &[("y", "ConvTranspose", &["x", "w"], told)];
        model(lines, &[("w", &[6, 6, 1, 2], weights)])
    };
    let number = |input: usize, output: usize| ((input * 13 + output * 7) % 11) as f32 - 5.0;
    let by = |channel: usize| 1.0 + channel as f32;
    let weights = |of: &dyn Fn(usize, usize) -> f32| -> Vec<f32> { (0..72).map(|n| of(n / 12, n / 2 % 6)).collect() };
    let told = vec![("strides", Attr::Ints(vec![2, 3]))];
    let lines: &[Line<'_>] = &[("c", "ConvTranspose", &["x", "w"], told), ("y", "Mul", &["c", "s"], vec![])];
    let scales = (0..6).map(by).collect();
    let a = model(lines, &[("w", &[6, 6, 1, 2], weights(&number)), ("s", &[6, 1, 1], scales)]);
    assert!(holds(&a, &turned(weights(&|input, output| number(input, output) * by(output)))));
    assert!(!holds(&a, &turned(weights(&|input, output| number(input, output) * by(input)))));
}

#[test]
fn a_negated_convolution_has_negated_weights() {
    for (op, dims) in [("ConvTranspose", [6, 2, 4, 3]), ("Conv", [2, 6, 3, 3])] {
        let made = |sign: f32, behind: &'static str| {
            let weight = |n: usize| sign * (((n * 31) % 53) as f32 * 0.1 - 2.0);
            let weights = (0..dims.iter().product::<i64>() as usize).map(weight).collect();
            let told = vec![("strides", Attr::Ints(if op == "Conv" { vec![1, 1] } else { vec![2, 3] }))];
            let lines: &[Line<'_>] = &[("c", op, &["x", "w"], told), ("y", behind, &["c"], vec![])];
            model(lines, &[("w", &dims, weights)])
        };
        assert!(holds(&made(1.0, "Neg"), &made(-1.0, "Identity")), "{op}");
        assert!(!holds(&made(1.0, "Neg"), &made(1.0, "Identity")), "{op}");
        assert!(!holds(&made(1.0, "Abs"), &made(-1.0, "Identity")), "{op}");
    }
}

/// A pool of `x`, which lies otherwise, and the places that it takes.
fn with_places(order: &[i64], storage: i64, output: &str) -> Model {
    let told = vec![("kernel_shape", Attr::Ints(vec![2, 2])), ("storage_order", Attr::Int(storage))];
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(order)),
        ("u", "Transpose", &["t"], perm(order)),
        ("p", "MaxPool", &["u"], told),
        ("r", "Relu", &["p"], vec![]),
        ("y", "Identity", &[], vec![]),
    ];
    let mut made = model(lines, &[]);
    let graph = Rc::make_mut(&mut made.graph);
    graph.nodes[2].outputs.push("places".to_owned());
    graph.nodes[4].inputs = vec![output.to_owned()];
    graph.outputs.push("r".to_owned());
    made
}

#[test]
fn the_places_of_a_pool_are_those_of_its_operand_as_it_lies() {
    const SWAPPED: &[i64] = &[1, 0, 2, 3];
    let a = with_places(&[0, 1, 2, 3], 0, "places");
    assert!(holds(&a, &with_places(SWAPPED, 0, "places")));
    assert!(!holds(&a, &with_places(SWAPPED, 1, "places")));
    assert!(!holds(&a, &with_places(SWAPPED, 0, "p")));
    let mut turned = with_places(&[0, 1, 2, 3], 0, "places");
    Rc::make_mut(&mut turned.graph).nodes[1].attrs[0].1 = Attr::Ints(vec![0, 1, 3, 2]);
    assert!(!holds(&a, &turned));
}

#[test]
fn a_scale_may_be_in_the_weights_of_groups() {
    let (scale, shift): ([f32; 6], [f32; 6]) = ([1.5, -0.3, 2.7, 0.9, 1.1, -2.0], [0.2, 0.4, -1.0, 3.0, 0.0, 0.5]);
    let told = || vec![("group", Attr::Int(3)), ("strides", Attr::Ints(vec![2, 1]))];
    let weights: Vec<f32> = (0..36).map(|n| n as f32 * 0.37 - 3.1).collect();
    let lines: &[Line<'_>] = &[
        ("c", "ConvTranspose", &["x", "w"], told()),
        ("m", "Mul", &["c", "s"], vec![]),
        ("y", "Add", &["m", "t"], vec![]),
    ];
    let a = model(
        lines,
        &[("w", &[6, 2, 3, 1], weights.clone()), ("s", &[6, 1, 1], scale.to_vec()), ("t", &[6, 1, 1], shift.to_vec())],
    );
    let other = |weights: Vec<f32>| {
        let lines: &[Line<'_>] = &[("y", "ConvTranspose", &["x", "w", "b"], told())];
        model(lines, &[("w", &[6, 2, 3, 1], weights), ("b", &[6], shift.to_vec())])
    };
    // Weights are [3 groups of 2, 2 of each group, 3, 1].
    let channel = |n: usize| n / 12 * 2 + n / 3 % 2;
    let folded: Vec<f32> = weights.iter().enumerate().map(|(n, w)| w * scale[channel(n)]).collect();
    let right = verdict(&a, &other(folded.clone()), &Proof::default());
    assert!(matches!(right, Verdict::WithLemmas { .. }), "{right}");
    for at in 0..36 {
        let mut wrong = folded.clone();
        wrong[at] *= 1.0 + 1e-5;
        assert!(!holds(&a, &other(wrong)), "weight {at}");
    }
    for wrong in [|n: usize| n / 3 % 6, |n: usize| n / 6, |n: usize| n / 12 + n / 3 % 2 * 3] {
        let wrong = weights.iter().enumerate().map(|(n, w)| w * scale[wrong(n)]).collect();
        assert!(!holds(&a, &other(wrong)));
    }
    assert!(!holds(&a, &other(weights)));
}
