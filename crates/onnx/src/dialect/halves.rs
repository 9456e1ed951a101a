//! Bodies for float16.
//!
//! A runtime without half kernels for arithmetic, such as ONNX Runtime on a CPU, wraps each such op in casts and drops a pair of
//! casts that meets, so that float32 goes from one op to the next. Moves it has for halves too. One move between two ops that
//! have no such kernel is taken along in float32; two moves in a row are not, and between them results are rounded to halves where
//! the model without functions rounds nothing. The end of one body and the start of the next are such a row. So an op without a half
//! kernel that computes nothing stands between: a Sum of one operand.

use crate::proto::{FunctionProto, NodeProto};

/// Ops of bodies that only move; a runtime has them for every type.
const MOVES: &[&str] = &["Transpose", "Reshape", "Pad", "Slice", "Identity"];

fn moves(node: &NodeProto) -> bool {
    node.op_type.as_deref().is_some_and(|op| MOVES.contains(&op))
}

/// Puts a Sum of one operand before a move of operand 0, between two moves, and behind a move that makes the result. What the body
/// computes stays the same; operand 0 and the result have to be floats.
pub(crate) fn part_moves(function: &mut FunctionProto) {
    let nodes = std::mem::take(&mut function.node);
    let moved_on = |value: &String| {
        function.output.contains(value) || nodes.iter().any(|n| moves(n) && n.input.first() == Some(value))
    };
    let mut parted: Vec<NodeProto> = Vec::with_capacity(nodes.len() + 2);
    let mut sums: Vec<(String, String)> = Vec::new();
    for mut node in nodes.iter().cloned() {
        for operand in &mut node.input {
            if let Some((_, sum)) = sums.iter().find(|(value, _)| value == operand) {
                operand.clone_from(sum);
            }
        }
        if !moves(&node) {
            parted.push(node);
            continue;
        }
        if let (Some(x), Some(first)) = (node.input.first_mut(), function.input.first())
            && x == first
        {
            let own = format!("sum_{}", parted.len());
            parted.push(sum(x.clone(), own.clone()));
            *x = own;
        }
        let behind = node.output.first_mut().filter(|y| moved_on(y)).map(|y| {
            let own = format!("sum_{}", parted.len());
            if function.output.contains(y) {
                return sum(own.clone(), std::mem::replace(y, own));
            }
            sums.push((y.clone(), own.clone()));
            sum(y.clone(), own)
        });
        parted.push(node);
        parted.extend(behind);
    }
    function.node = parted;
}

/// `y` is `x`.
fn sum(x: String, y: String) -> NodeProto {
    NodeProto { op_type: Some("Sum".to_owned()), input: vec![x], output: vec![y], ..NodeProto::default() }
}

#[cfg(test)]
mod tests {
    use super::super::{DialectOp, Operand, Relayout};
    use super::part_moves;
    use crate::proto::FunctionProto;
    use relayout_ir::dim::Dim;
    use relayout_ir::layout::Layout;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    fn op(name: &str, x: &str) -> FunctionProto {
        let stored = || vec![Operand::Stored(layout(x))];
        DialectOp::new(name, 17, &stored(), &stored()).unwrap().function()
    }

    /// The nodes that data goes through, from the operand to the result.
    fn path(mut function: FunctionProto) -> Vec<String> {
        part_moves(&mut function);
        let mut at = function.input[0].clone();
        let mut ops = Vec::new();
        while let Some(node) = function.node.iter().find(|n| n.op_type() != "Shape" && n.input.first() == Some(&at)) {
            ops.push(node.op_type().to_owned());
            at.clone_from(&node.output[0]);
        }
        assert_eq!(at, function.output[0], "{ops:?}");
        ops
    }

    #[test]
    fn no_two_moves_of_halves_meet_within_a_body_or_between_two() {
        let body = path(op("MaxPool", "NHWC"));
        assert_eq!(body, ["Sum", "Transpose", "MaxPool", "Transpose", "Sum"]);
        let body = path(op("MaxPool", "NCHW8c"));
        assert_eq!(body, ["Sum", "Transpose", "Sum", "Reshape", "MaxPool", "Reshape", "Sum", "Transpose", "Sum"]);
        let shape = [1, 16, 4, 4].map(Dim::from);
        let moved = Relayout::new(&layout("NCHW"), &layout("NHWC"), &shape).unwrap().function(17).unwrap();
        assert_eq!(path(moved), ["Sum", "Transpose", "Sum"]);
    }

    #[test]
    fn every_name_of_a_parted_body_is_made_once_and_before_it_is_read() {
        let mut function = op("AveragePool", "NCHW16c");
        part_moves(&mut function);
        let mut made = function.input.clone();
        for node in &function.node {
            assert!(node.input.iter().all(|i| made.contains(i)), "{node:?}");
            assert!(node.output.iter().all(|o| !made.contains(o)), "{node:?}");
            made.extend(node.output.iter().cloned());
        }
        assert!(made.contains(&function.output[0]));
    }
}
