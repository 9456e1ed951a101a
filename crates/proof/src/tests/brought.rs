//! Channels of quantized images in another order: what is put together again in other units, shuffled, and taken in part.

use super::units::and;
use super::*;

const EACH: usize = 4;

/// Bytes in another order along rows of `width`, or along columns.
fn rows(matrix: &[u8], width: usize, order: &[usize]) -> Vec<u8> {
    order.iter().flat_map(|&at| matrix[at * width..][..width].to_vec()).collect()
}

fn columns(matrix: &[u8], width: usize, order: &[usize]) -> Vec<u8> {
    matrix.chunks(width).flat_map(|row| order.iter().map(|&at| row[at])).collect()
}

fn numbers(seed: usize, count: usize) -> Vec<u8> {
    (0..count).map(|at| ((at * 37 + seed * 11) % 199) as u8).collect()
}

/// In which order two convolutions make their channels, and how a third one reads them.
struct Orders<'o> {
    first: &'o [usize],
    second: &'o [usize],
    /// Of the places that it reads, those which the weights of the input are for.
    read: &'o [usize],
    /// From which to which channel each part is that it reads, with no shuffle before; the input has one, and half of what it leaves.
    parts: Option<&'o [[i64; 2]]>,
}

const PLAIN: [usize; EACH] = [0, 1, 2, 3];

/// Two quantized convolutions side by side, shuffled, and one of half of what that leaves.
fn network(on_bytes: bool, orders: &Orders<'_>) -> Model {
    let mut lines: Vec<Line<'static>> = vec![("q", "QuantizeLinear", &["x", "s0", "n"], vec![])];
    // In floats, each value is dequantized for its reader.
    let floats = |lines: &mut Vec<Line<'static>>, x: &'static str, scale: &'static str| -> &'static str {
        let y: &str = format!("{x}_{}", lines.len()).leak();
        lines.push((y, "DequantizeLinear", vec![x, scale, "n"].leak(), vec![]));
        y
    };
    let conv = |lines: &mut Vec<Line<'static>>, [y, x, s, w, t]: [&'static str; 5]| {
        if on_bytes {
            lines.push((y, "QLinearConv", vec![x, s, "n", w, "sw", "n", t, "n"].leak(), vec![]));
            return;
        }
        let (x, w) = (floats(lines, x, s), floats(lines, w, "sw"));
        let sum: &str = format!("{y}_sum").leak();
        lines.push((sum, "Conv", vec![x, w].leak(), vec![]));
        lines.push((y, "QuantizeLinear", vec![sum, t, "n"].leak(), vec![]));
    };
    conv(&mut lines, ["a", "q", "s0", "w", "s1"]);
    conv(&mut lines, ["b", "q", "s0", "v", "s2"]);
    if on_bytes {
        lines.push(("c", "QLinearConcat", &["s3", "n", "a", "s1", "n", "b", "s2", "n"], axis(1)));
    } else {
        let [a, b] = [floats(&mut lines, "a", "s1"), floats(&mut lines, "b", "s2")];
        lines.push(("j", "Concat", vec![a, b].leak(), axis(1)));
        lines.push(("c", "QuantizeLinear", &["j", "s3", "n"], vec![]));
    }
    let cut = |lines: &mut Vec<Line<'static>>, y: &'static str, from: &'static str, [start, end]: [i64; 2]| {
        let told = [("starts", start), ("ends", end), ("axes", 1)].map(|(name, at)| (name, Attr::Ints(vec![at])));
        lines.push((y, "Slice", vec![from].leak(), told.into()));
    };
    match orders.parts {
        None => {
            lines.push(("r", "Reshape", &["c", "apart"], vec![]));
            lines.push(("t", "Transpose", &["r"], perm(&[0, 2, 1, 3, 4])));
            lines.push(("u", "Reshape", &["t", "whole"], vec![]));
            cut(&mut lines, "h", "u", [4, 8]);
        }
        Some([part]) => cut(&mut lines, "h", "c", *part),
        Some(parts) => {
            for (name, part) in ["h1", "h2"].into_iter().zip(parts) {
                cut(&mut lines, name, "c", *part);
            }
            lines.push(("h", "Concat", &["h1", "h2"], axis(1)));
        }
    }
    conv(&mut lines, ["d", "h", "s3", "k", "s1"]);
    lines.push(("y", "DequantizeLinear", &["d", "s1", "n"], vec![]));
    let mut made =
        and(model(&lines, &[]), &[("s0", 0.5), ("s1", 0.25), ("s2", 0.3), ("s3", 0.4), ("sw", 0.1)], &[("n", 3)]);
    told(&mut made, orders);
    made
}

/// Lists and weights of a network.
fn told(made: &mut Model, orders: &Orders<'_>) {
    let graph = Rc::make_mut(&mut made.graph);
    // A slice of this operator set is told in operands.
    let mut told = Vec::new();
    for node in &mut graph.nodes {
        if node.op == "QLinearConcat" {
            node.domain = "com.microsoft".to_owned();
        }
        if node.op == "Slice" {
            for (name, attr) in std::mem::take(&mut node.attrs) {
                let Attr::Ints(list) = attr else { panic!("a list") };
                let operand = format!("{}_{name}", node.outputs[0]);
                node.inputs.push(operand.clone());
                told.push((operand, list));
            }
        }
    }
    told.extend(
        [("apart", vec![2, 2, 4, 4, 5]), ("whole", vec![2, 8, 4, 5])].map(|(name, list)| (name.to_owned(), list)),
    );
    for (name, list) in told {
        let data: Vec<u8> = list.iter().flat_map(|at| at.to_le_bytes()).collect();
        graph.initializers.push((name, Tensor { dims: vec![list.len() as i64], dtype: 7, data: data.into() }));
    }
    let weights = [
        ("w", [4, 6], rows(&numbers(1, 24), 6, orders.first)),
        ("v", [4, 6], rows(&numbers(2, 24), 6, orders.second)),
        ("k", [3, 4], columns(&numbers(3, 12), 4, orders.read)),
    ];
    for (name, [m, c], data) in weights {
        graph.initializers.push((name.to_owned(), Tensor { dims: vec![m, c, 1, 1], dtype: 2, data: data.into() }));
    }
}

/// Channels of the second half of the shuffle: a2 b2 a3 b3.
#[test]
fn channels_that_are_quantized_again_may_come_in_another_order() {
    for on_bytes in [false, true] {
        let plain = network(on_bytes, &Orders { first: &PLAIN, second: &PLAIN, read: &PLAIN, parts: None });
        let holds = |orders: Orders<'_>| holds(&plain, &network(on_bytes, &orders));
        // a0 a1 a2 a3 b2 b3 b0 b1 lie so, and the middle is read.
        let (second, read, middle) = (&[2, 3, 0, 1], &[0, 2, 1, 3], &[[2, 6]]);
        assert!(holds(Orders { first: &PLAIN, second, read, parts: Some(middle) }), "{on_bytes}");
        // In two places: a3 a2 of a3 a2 a1 a0, and b2 b3 of b0 b1 b2 b3.
        let (first, read, apart) = (&[3, 2, 1, 0], &[2, 0, 1, 3], &[[0, 2], [6, 8]]);
        assert!(holds(Orders { first, second: &PLAIN, read, parts: Some(apart) }), "{on_bytes}");
        // Weights in the order of the model, other channels, and channels in another order than is told.
        assert!(!holds(Orders { first: &PLAIN, second, read: &PLAIN, parts: Some(middle) }));
        assert!(!holds(Orders { first: &PLAIN, second, read: &[0, 2, 1, 3], parts: Some(&[[1, 5]]) }));
        assert!(!holds(Orders { first: &PLAIN, second: &[2, 0, 3, 1], read: &[0, 2, 1, 3], parts: Some(middle) }));
        assert!(!holds(Orders { first, second: &PLAIN, read, parts: Some(&[[0, 2], [5, 7]]) }));
    }
}

#[test]
fn parts_in_other_units_are_no_parts_of_the_same() {
    for on_bytes in [false, true] {
        let plain = network(on_bytes, &Orders { first: &PLAIN, second: &PLAIN, read: &PLAIN, parts: None });
        let (second, read, middle) = (&[2, 3, 0, 1], &[0, 2, 1, 3], &[[2, 6]]);
        let mut other = network(on_bytes, &Orders { first: &PLAIN, second, read, parts: Some(middle) });
        assert!(holds(&plain, &other));
        let graph = Rc::make_mut(&mut other.graph);
        let of_second = graph.initializers.iter_mut().find(|(name, _)| name == "s2").expect("a scale");
        of_second.1.data = 0.31f32.to_le_bytes().to_vec().into();
        assert!(!holds(&plain, &other));
    }
}
