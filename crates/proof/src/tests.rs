//! Pairs of small graphs: what has to be proved, and beside each the near miss that has to be refused.

use crate::certificate::{Claim, Proof};
use crate::checks::agreed::Agreed;
use crate::checks::check::{self, Pair};
use crate::checks::verdict::Verdict;
use crate::files::model::{Attr, DeclaredDim, Graph, Input, Model, Node, Tensor};
use std::rc::Rc;

mod agreed;
mod apart;
mod bodies;
mod bounds;
mod brought;
mod bytes;
mod dilated;
mod files;
mod filters;
mod fused;
mod halves;
mod heads;
mod hosts;
mod indexed;
mod integers;
mod interpolation;
mod limits;
mod needless;
mod occurrences;
mod opaque;
mod quantize;
mod readings;
mod real;
mod recurrent;
mod rolled;
mod rules;
mod scans;
mod sizes;
mod symbolic;
mod transposed;
mod units;
mod valid;
mod versions;
mod volumes;

/// The verdict about a pair whose ends lie as the first one has them.
fn verdict(a: &Model, b: &Model, proof: &Proof) -> Verdict {
    check::verdict(&Pair { a, b, agreed: &Agreed::default(), proof })
}

/// The verdict about sets of sizes, also where something is shown for all.
fn of_sizes(a: &Model, b: &Model, proof: &Proof) -> Verdict {
    check::of_sizes(&Pair { a, b, agreed: &Agreed::default(), proof })
}

/// Result, op, operands, attributes.
type Line<'l> = (&'l str, &'l str, &'l [&'l str], Vec<(&'l str, Attr)>);

/// A graph in lines `result = Op(operand, ..) {attribute=..}`, with inputs `x` [2,6,4,5] and `z` [2,4,5,6], and constants.
fn model(lines: &[Line<'_>], constants: &[(&str, &[i64], Vec<f32>)]) -> Model {
    let mut graph = Graph::default();
    for (name, dims) in [("x", [2, 6, 4, 5]), ("z", [2, 4, 5, 6])] {
        let dims = Some(dims.map(DeclaredDim::Known).to_vec());
        graph.inputs.push(Input { name: name.to_owned(), dtype: 1, dims, ..Input::default() });
    }
    for (name, dims, values) in constants {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        graph.initializers.push(((*name).to_owned(), Tensor { dims: dims.to_vec(), dtype: 1, data: data.into() }));
    }
    for (result, op, operands, attrs) in lines {
        let attrs = attrs.iter().map(|(name, attr)| ((*name).to_owned(), attr.clone())).collect();
        let inputs = operands.iter().map(|o| (*o).to_owned()).collect();
        graph.nodes.push(Node {
            op: (*op).to_owned(),
            inputs,
            outputs: vec![(*result).to_owned()],
            attrs,
            ..Node::default()
        });
    }
    graph.outputs = vec!["y".to_owned()];
    let opsets = [("", 17), ("com.microsoft", 1), ("com.microsoft.nchwc", 1)];
    let opsets = opsets.map(|(domain, version)| (domain.to_owned(), version)).into();
    Model { graph: Rc::new(graph), opsets, ir: 8, ..Model::default() }
}

fn perm(order: &[i64]) -> Vec<(&'static str, Attr)> {
    vec![("perm", Attr::Ints(order.to_vec()))]
}

fn axis(axis: i64) -> Vec<(&'static str, Attr)> {
    vec![("axis", Attr::Int(axis))]
}

fn holds(a: &Model, b: &Model) -> bool {
    verdict(a, b, &Proof::default()).holds()
}

const TO_LAST: &[i64] = &[0, 2, 3, 1];
const TO_FIRST: &[i64] = &[0, 3, 1, 2];

#[test]
fn a_transpose_passes_a_pointwise_op() {
    let a = model(&[("t", "Transpose", &["x"], perm(TO_LAST)), ("y", "Relu", &["t"], vec![])], &[]);
    let b = model(&[("r", "Relu", &["x"], vec![]), ("y", "Transpose", &["r"], perm(TO_LAST))], &[]);
    let miss = model(&[("r", "Relu", &["x"], vec![]), ("y", "Transpose", &["r"], perm(&[0, 3, 2, 1]))], &[]);
    assert!(holds(&a, &b));
    assert!(!holds(&a, &miss));
}

#[test]
fn an_axis_moves_with_its_operand() {
    let a = model(&[("s", "Softmax", &["x"], axis(1)), ("y", "Transpose", &["s"], perm(TO_LAST))], &[]);
    let moved = |to| model(&[("t", "Transpose", &["x"], perm(TO_LAST)), ("y", "Softmax", &["t"], axis(to))], &[]);
    assert!(holds(&a, &moved(3)));
    assert!(holds(&a, &moved(-1)));
    assert!(!holds(&a, &moved(1)));
    assert!(!holds(&a, &moved(2)));
}

#[test]
fn operands_of_a_difference_stay_where_they_are() {
    let sub = |l, r| model(&[("t", "Transpose", &["z"], perm(TO_FIRST)), ("y", "Sub", &[l, r], vec![])], &[]);
    let add = |l, r| model(&[("t", "Transpose", &["z"], perm(TO_FIRST)), ("y", "Add", &[l, r], vec![])], &[]);
    assert!(!holds(&sub("x", "t"), &sub("t", "x")));
    assert!(holds(&add("x", "t"), &add("t", "x")));
}

#[test]
fn constants_are_compared_element_by_element() {
    let bias: Vec<f32> = (0..6).map(|n| n as f32).collect();
    let first = model(&[("y", "Add", &["x", "c"], vec![])], &[("c", &[1, 6, 1, 1], bias.clone())]);
    let last = |values: Vec<f32>| {
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(TO_LAST)),
            ("s", "Add", &["t", "c"], vec![]),
            ("y", "Transpose", &["s"], perm(TO_FIRST)),
        ];
        model(lines, &[("c", &[6], values)])
    };
    assert!(holds(&first, &last(bias.clone())));
    for at in 0..6 {
        let mut other = bias.clone();
        other[at] += 1.0;
        assert!(!holds(&first, &last(other)), "element {at}");
    }
    let mut turned = bias;
    turned.reverse();
    assert!(!holds(&first, &last(turned)));
}

#[test]
fn the_weights_of_a_product_may_be_turned_with_it() {
    let weights: Vec<f32> = (0..36).map(|n| (n * n) as f32).collect();
    let turned: Vec<f32> = (0..36).map(|n| weights[n % 6 * 6 + n / 6]).collect();
    let lines: &[Line<'_>] = &[("t", "Transpose", &["x"], perm(TO_LAST)), ("y", "MatMul", &["t", "w"], vec![])];
    let a = model(lines, &[("w", &[6, 6], weights.clone())]);
    let other = |values| {
        let lines: &[Line<'_>] = &[
            ("f", "Reshape", &["x", "s"], vec![]),
            ("m", "MatMul", &["w", "f"], vec![]),
            ("u", "Transpose", &["m"], perm(&[0, 2, 1])),
            ("y", "Reshape", &["u", "r"], vec![]),
        ];
        let mut b = model(lines, &[("w", &[6, 6], values)]);
        let graph = Rc::make_mut(&mut b.graph);
        for (name, shape) in [("s", vec![2i64, 6, 20]), ("r", vec![2, 4, 5, 6])] {
            let data: Vec<u8> = shape.iter().flat_map(|v| v.to_le_bytes()).collect();
            let dims = vec![shape.len() as i64];
            graph.initializers.push((name.to_owned(), Tensor { dims, dtype: 7, data: data.into() }));
        }
        b
    };
    assert!(holds(&a, &other(turned)));
    assert!(!holds(&a, &other(weights)));
}

#[test]
fn claims_are_held_to_what_is_computed() {
    let a = model(&[("t", "Transpose", &["x"], perm(TO_LAST)), ("y", "Relu", &["t"], vec![])], &[]);
    let b = model(&[("t", "Relu", &["x"], vec![]), ("y", "Transpose", &["t"], perm(TO_LAST))], &[]);
    let says = |is: &str, order: &[u32]| {
        let lies = Some(order.iter().map(|&axis| vec![(axis, -1, 1)]).collect());
        Proof { version: 1, values: vec![Claim { value: "t".into(), is: Some(is.into()), lies }], ..Proof::default() }
    };
    assert_eq!(verdict(&a, &b, &says("y", &[0, 3, 1, 2])), Verdict::Proved { links: 1, hosts: None });
    for proof in
        [says("t", &[0, 3, 1, 2]), says("y", &[0, 1, 2, 3]), says("y", &[0, 3, 2, 1]), says("q", &[0, 3, 1, 2])]
    {
        assert!(!verdict(&a, &b, &proof).holds(), "{proof:?}");
    }
    let mut strange = says("y", &[0, 3, 1, 2]);
    strange.values[0].value = "nobody".into();
    assert!(!verdict(&a, &b, &strange).holds());
}

fn weights() -> Vec<f32> {
    (0..24).map(|n| n as f32 * 0.37 - 3.1).collect()
}

fn conv(pads: [i64; 4]) -> Vec<(&'static str, Attr)> {
    vec![("pads", Attr::Ints(pads.to_vec()))]
}

#[test]
fn a_scale_and_a_shift_may_be_in_the_weights() {
    let (scale, shift) = ([1.5f32, -0.3, 2.7, 0.9], [0.2f32, 0.4, -1.0, 3.0]);
    let lines: &[Line<'_>] = &[
        ("c", "Conv", &["x", "w"], conv([0; 4])),
        ("m", "Mul", &["c", "s"], vec![]),
        ("y", "Add", &["m", "t"], vec![]),
    ];
    let a = model(
        lines,
        &[("w", &[4, 6, 1, 1], weights()), ("s", &[1, 4, 1, 1], scale.to_vec()), ("t", &[4, 1, 1], shift.to_vec())],
    );
    let other = |weights: Vec<f32>, bias: Vec<f32>| {
        let lines: &[Line<'_>] = &[("y", "Conv", &["x", "w", "b"], conv([0; 4]))];
        model(lines, &[("w", &[4, 6, 1, 1], weights), ("b", &[4], bias)])
    };
    let folded: Vec<f32> = weights().iter().enumerate().map(|(n, w)| w * scale[n / 6]).collect();
    let right = verdict(&a, &other(folded.clone(), shift.to_vec()), &Proof::default());
    assert!(matches!(right, Verdict::WithLemmas { .. }), "{right}");
    for at in 0..24 {
        let mut wrong = folded.clone();
        wrong[at] *= 1.0 + 1e-5;
        assert!(!holds(&a, &other(wrong, shift.to_vec())), "weight {at}");
    }
    for at in 0..4 {
        let mut wrong = shift.to_vec();
        wrong[at] += 1e-5;
        assert!(!holds(&a, &other(folded.clone(), wrong)), "shift {at}");
    }
    assert!(!holds(&a, &other(weights(), shift.to_vec())));
}

#[test]
fn zeros_around_an_image_may_be_padding_of_the_convolution() {
    let padded = |pads: [i64; 8], mode: &str, own| {
        let told = vec![("mode", Attr::Text(mode.as_bytes().to_vec()))];
        let lines: &[Line<'_>] = &[("p", "Pad", &["x", "n"], told), ("y", "Conv", &["p", "w"], conv(own))];
        let mut a = model(lines, &[("w", &[4, 6, 1, 1], weights())]);
        let data: Vec<u8> = pads.iter().flat_map(|n| n.to_le_bytes()).collect();
        Rc::make_mut(&mut a.graph)
            .initializers
            .push(("n".into(), Tensor { dims: vec![8], dtype: 7, data: data.into() }));
        a
    };
    let plain = |own| model(&[("y", "Conv", &["x", "w"], conv(own))], &[("w", &[4, 6, 1, 1], weights())]);
    let pads = [0, 0, 1, 2, 0, 0, 3, 4];
    assert!(holds(&padded(pads, "constant", [0; 4]), &plain([1, 2, 3, 4])));
    assert!(holds(&padded(pads, "constant", [1, 1, 0, 0]), &plain([2, 3, 3, 4])));
    assert!(!holds(&padded(pads, "constant", [0; 4]), &plain([2, 1, 3, 4])));
    assert!(!holds(&padded(pads, "edge", [0; 4]), &plain([1, 2, 3, 4])));
}

#[test]
fn a_window_that_is_not_that_of_the_weights_is_refused() {
    let a = |kernel: [i64; 2]| {
        let lines: &[Line<'_>] = &[("y", "Conv", &["x", "w"], vec![("kernel_shape", Attr::Ints(kernel.to_vec()))])];
        model(lines, &[("w", &[4, 6, 1, 1], weights())])
    };
    assert!(holds(&a([1, 1]), &a([1, 1])));
    assert!(!holds(&a([1, 1]), &a([2, 1])));
}

#[test]
fn what_is_not_known_is_refused() {
    let a = model(&[("y", "Strange", &["x"], vec![])], &[]);
    let Verdict::Refused { at, why, .. } = verdict(&a, &a, &Proof::default()) else { panic!("it is not known") };
    assert_eq!((at.as_str(), why.as_str()), ("Strange `y` of the input", "the checker does not know Strange"));
}

#[test]
fn other_inputs_or_outputs_are_refused() {
    let a = model(&[("y", "Relu", &["x"], vec![])], &[]);
    let mut b = a.clone();
    Rc::make_mut(&mut b.graph).inputs[0].dims = Some([2, 6, 5, 4].map(DeclaredDim::Known).to_vec());
    assert!(!holds(&a, &b));
    let mut c = a.clone();
    Rc::make_mut(&mut c.graph).outputs = vec!["x".to_owned()];
    assert!(!holds(&a, &c));
    let mut d = a.clone();
    Rc::make_mut(&mut d.graph).inputs.reverse();
    assert!(!holds(&a, &d));
}

#[test]
fn extents_that_cannot_be_counted_are_refused() {
    let mut huge = model(&[("y", "Relu", &["x"], vec![])], &[]);
    let graph = Rc::get_mut(&mut huge.graph).expect("nobody else has it");
    graph.inputs[0].dims = Some(vec![DeclaredDim::Known(i64::MAX), DeclaredDim::Known(3)]);
    assert!(!holds(&huge, &huge));
    let sizes = |dims: Vec<i64>| ("shape", Attr::Ints(dims));
    let views = |dims| model(&[("y", "Reshape", &["x"], vec![sizes(dims)])], &[]);
    assert!(!holds(&views(vec![-1, i64::MAX, 16]), &views(vec![-1, i64::MAX, 16])));
    assert!(holds(&views(vec![-1, 6]), &views(vec![40, 6])));
}

/// Nodes of `com.microsoft.nchwc` for blocks of 8, and weights that are packed for them: 6 channels in, 6 out, windows of one place.
mod blocks {
    use super::*;

    const REAL: usize = 6;

    fn weights() -> Vec<f32> {
        (0..REAL * REAL).map(|n| (n * n % 17) as f32 - 5.0).collect()
    }

    /// [8 in, 8 out] of one block each, with what slots hold.
    fn packed(slot: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        let w = weights();
        let at = |n: usize| (n / 8, n % 8);
        let value = |(i, o): (usize, usize)| if i < REAL && o < REAL { w[o * REAL + i] } else { slot(i, o) };
        (0..64).map(|n| value(at(n))).collect()
    }

    fn plain() -> Model {
        let lines: &[Line<'_>] = &[("c", "Conv", &["x", "w", "b"], vec![]), ("y", "Sigmoid", &["c"], vec![])];
        let bias = (0..REAL).map(|n| n as f32).collect();
        model(lines, &[("w", &[6, 6, 1, 1], weights()), ("b", &[6], bias)])
    }

    fn blocked(weights: Vec<f32>, channels: i64, pads: &[f32]) -> Model {
        let lines: &[Line<'_>] = &[
            ("p", "Pad", &["x", "two"], vec![]),
            ("r", "ReorderInput", &["p"], vec![]),
            ("c", "Conv", &["r", "w", "b"], vec![]),
            ("s", "Sigmoid", &["c"], vec![]),
            ("y", "ReorderOutput", &["s"], vec![("channels", Attr::Int(channels))]),
        ];
        let mut bias: Vec<f32> = (0..REAL).map(|n| n as f32).collect();
        bias.extend(pads);
        let mut made = model(lines, &[("w", &[8, 8, 1, 1], weights), ("b", &[8], bias)]);
        let graph = Rc::make_mut(&mut made.graph);
        for node in &mut graph.nodes {
            if matches!(node.op.as_str(), "ReorderInput" | "Conv" | "ReorderOutput") {
                "com.microsoft.nchwc".clone_into(&mut node.domain);
            }
        }
        let pads: Vec<u8> = [0i64, 0, 0, 0, 0, 2, 0, 0].iter().flat_map(|v| v.to_le_bytes()).collect();
        graph.initializers.push(("two".to_owned(), Tensor { dims: vec![8], dtype: 7, data: pads.into() }));
        made.block = Some(8);
        made
    }

    #[test]
    fn a_convolution_of_blocks_with_slots_is_the_one_without() {
        let good = blocked(packed(|_, _| 0.0), 6, &[0.0, 0.0]);
        assert!(holds(&plain(), &good), "{}", verdict(&plain(), &good, &Proof::default()));
    }

    #[test]
    fn the_last_filter_may_be_zero() {
        let clear = |mut made: Model, places: &dyn Fn(usize) -> bool| {
            let graph = Rc::make_mut(&mut made.graph);
            for (at, (_, tensor)) in graph.initializers.iter_mut().take(2).enumerate() {
                let numbers = tensor.data.chunks_exact(4).enumerate();
                let zero = |n: usize| if at == 0 { places(n) } else { n == REAL - 1 };
                let data: Vec<u8> =
                    numbers.flat_map(|(n, v)| if zero(n) { [0; 4].to_vec() } else { v.to_vec() }).collect();
                tensor.data = data.into();
            }
            made
        };
        let a = clear(plain(), &|n| n / REAL == REAL - 1);
        let blocked = |packed| clear(blocked(packed, 6, &[0.0, 0.0]), &|n| n % 8 == REAL - 1);
        let b = blocked(packed(|_, _| 0.0));
        assert!(holds(&a, &b), "{}", verdict(&a, &b, &Proof::default()));
        let mut other = packed(|_, _| 0.0);
        other[8 + 3] += 1.0;
        assert!(!holds(&a, &blocked(other)));
        assert!(!holds(&plain(), &b));
    }

    #[test]
    fn another_weight_or_number_of_channels_is_refused() {
        let mut other = packed(|_, _| 0.0);
        other[8 + 3] += 1.0;
        assert!(!holds(&plain(), &blocked(other, 6, &[0.0, 0.0])));
        assert!(!holds(&plain(), &blocked(packed(|_, _| 0.0), 5, &[0.0, 0.0])));
    }

    #[test]
    fn another_block_is_refused() {
        let mut other = blocked(packed(|_, _| 0.0), 6, &[0.0, 0.0]);
        other.block = Some(16);
        assert!(!holds(&plain(), &other));
        other.block = None;
        assert!(!holds(&plain(), &other));
    }

    #[test]
    fn slots_that_are_not_zero_reach_nothing_or_are_refused() {
        // Sigmoid makes one half of the zeros in slots. A second convolution that reads them is another one.
        let second = |slot: f32| {
            let mut made = blocked(packed(|_, _| 0.0), 6, &[0.0, 0.0]);
            let graph = Rc::make_mut(&mut made.graph);
            let data: Vec<u8> =
                packed(|i, _| if i >= REAL { slot } else { 0.0 }).iter().flat_map(|v| v.to_le_bytes()).collect();
            graph.initializers.push(("v".to_owned(), Tensor { dims: vec![8, 8, 1, 1], dtype: 1, data: data.into() }));
            let conv = Node {
                op: "Conv".to_owned(),
                domain: "com.microsoft.nchwc".to_owned(),
                inputs: vec!["s".to_owned(), "v".to_owned()],
                outputs: vec!["d".to_owned()],
                ..Node::default()
            };
            graph.nodes.insert(4, conv);
            "d".clone_into(&mut graph.nodes[5].inputs[0]);
            made
        };
        let mut wanted = plain();
        let graph = Rc::make_mut(&mut wanted.graph);
        "s".clone_into(&mut graph.nodes[1].outputs[0]);
        graph.nodes.push(Node {
            op: "Conv".to_owned(),
            inputs: vec!["s".to_owned(), "w".to_owned()],
            outputs: vec!["y".to_owned()],
            ..Node::default()
        });
        assert!(holds(&wanted, &second(0.0)), "{}", verdict(&wanted, &second(0.0), &Proof::default()));
        assert!(!holds(&wanted, &second(0.25)));
    }

    /// Two convolutions with an op and a number between them, in blocks or not.
    fn around(op: &'static str, number: f32, blocks: bool) -> Model {
        let mut made = if blocks { blocked(packed(|_, _| 0.0), 6, &[0.0, 0.0]) } else { plain() };
        let graph = Rc::make_mut(&mut made.graph);
        let scalar = |data: Vec<u8>, dims: &[i64]| Tensor { dims: dims.to_vec(), dtype: 1, data: data.into() };
        graph.initializers.push(("k".to_owned(), scalar(number.to_le_bytes().to_vec(), &[])));
        let at = graph.nodes.iter().position(|node| node.op == "Sigmoid").unwrap();
        let conv = graph.nodes[at - 1].clone();
        graph.nodes[at].outputs = vec!["s".to_owned()];
        let middle = Node {
            op: op.to_owned(),
            inputs: ["s", "k"].map(str::to_owned).into(),
            outputs: vec!["t".into()],
            ..Node::default()
        };
        let last = if blocks { "u" } else { "y" };
        let again = Node { inputs: ["t", "w"].map(str::to_owned).into(), outputs: vec![last.into()], ..conv };
        graph.nodes.splice(at + 1..=at, [middle, again]);
        if blocks {
            last.clone_into(&mut graph.nodes[at + 3].inputs[0]);
        }
        made
    }

    #[test]
    fn what_slots_are_computed_with_has_to_be_finite() {
        for op in ["Mul", "Div", "Max", "Add"] {
            assert!(holds(&around(op, 2.0, false), &around(op, 2.0, true)), "{op}");
            for number in [f32::INFINITY, f32::NAN] {
                assert!(!holds(&around(op, number, false), &around(op, number, true)), "{op} {number}");
            }
        }
    }

    /// A convolution of each channel by itself, in blocks whose last two weights are these.
    fn by_channel(slots: Option<[f32; 2]>) -> Model {
        let count = if slots.is_some() { 8 } else { REAL };
        let mut made = if slots.is_some() { blocked(packed(|_, _| 0.0), 6, &[0.0, 0.0]) } else { plain() };
        let graph = Rc::make_mut(&mut made.graph);
        let windows =
            |filter: usize| vec![if filter < REAL { filter as f32 } else { slots.unwrap()[filter - REAL] }; 2];
        // [8, 1, 2, 1] lies as one block of 8 filters.
        let data: Vec<f32> = if slots.is_some() {
            (0..2 * count).map(|n| windows(n % 8)[0]).collect()
        } else {
            (0..count).flat_map(windows).collect()
        };
        let data: Vec<u8> = data.iter().flat_map(|v| v.to_le_bytes()).collect();
        graph.initializers[0].1 = Tensor { dims: vec![count as i64, 1, 2, 1], dtype: 1, data: data.into() };
        let conv = graph.nodes.iter_mut().find(|node| node.op == "Conv").unwrap();
        conv.attrs.push(("group".to_owned(), Attr::Int(count as i64)));
        made
    }

    #[test]
    fn weights_of_slots_have_to_be_finite() {
        let wanted = by_channel(None);
        for slot in [0.0, 0.5] {
            let made = by_channel(Some([slot; 2]));
            assert!(holds(&wanted, &made), "{}", verdict(&wanted, &made, &Proof::default()));
        }
        assert!(!holds(&wanted, &by_channel(Some([0.0, f32::NAN]))));
        assert!(!holds(&wanted, &by_channel(Some([f32::INFINITY, 0.0]))));
    }

    #[test]
    fn a_part_of_a_block_is_no_part_of_its_channels() {
        let slice = |from: i64, to: i64, channels: i64| {
            let data = |v: i64| Tensor { dims: vec![1], dtype: 7, data: v.to_le_bytes().to_vec().into() };
            let lines: &[Line<'_>] = &[
                ("d", "Concat", &["x", "x"], axis(1)),
                ("p", "Concat", &["d", "x", "x"], axis(1)),
                ("r", "ReorderInput", &["p"], vec![]),
                ("s", "Slice", &["r", "from", "to", "one"], vec![]),
                ("y", "ReorderOutput", &["s"], vec![("channels", Attr::Int(channels))]),
            ];
            let mut made = model(lines, &[]);
            let graph = Rc::make_mut(&mut made.graph);
            for at in [2, 4] {
                "com.microsoft.nchwc".clone_into(&mut graph.nodes[at].domain);
            }
            for (name, value) in [("from", from), ("to", to), ("one", 1)] {
                graph.initializers.push((name.to_owned(), data(value)));
            }
            made.block = Some(8);
            made
        };
        let wanted = |from: i64, to: i64| {
            let mut made = slice(from, to, 8);
            made.block = None;
            let graph = Rc::make_mut(&mut made.graph);
            graph.nodes.remove(4);
            graph.nodes.remove(2);
            "p".clone_into(&mut graph.nodes[2].inputs[0]);
            "y".clone_into(&mut graph.nodes[2].outputs[0]);
            made
        };
        assert!(holds(&wanted(8, 16), &slice(8, 16, 8)));
        assert!(!holds(&wanted(4, 12), &slice(4, 12, 8)));
    }
}
