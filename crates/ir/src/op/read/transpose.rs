//! The order of axes that a Transpose leaves.

use super::super::normalize_axis;
use crate::graph::Node;
use crate::perm::is_permutation;

/// The order that a Transpose of an operand of this rank leaves, reversed by default.
///
/// # Errors
/// If the attribute holds no permutation of the axes.
pub fn transpose_perm(node: &Node, rank: usize) -> Result<Vec<usize>, String> {
    let Some(perm) = node.ints("perm") else { return Ok((0..rank).rev().collect()) };
    let axes: Option<Vec<usize>> = perm.iter().map(|&p| normalize_axis(p, rank)).collect();
    axes.filter(|axes| axes.len() == rank && is_permutation(axes))
        .ok_or_else(|| format!("`perm` {perm:?} is not a permutation of {rank} axes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attr;
    use crate::graph::{Op, OpName};

    #[test]
    fn a_transpose_reverses_unless_told_otherwise() {
        let mut node = Node::new(Op::Onnx(OpName::onnx("Transpose")), vec![]);
        assert_eq!(transpose_perm(&node, 3), Ok(vec![2, 1, 0]));
        for (perm, expected) in [(vec![0, -1, 1], Some(vec![0, 2, 1])), (vec![0, 1], None), (vec![0, 1, 1], None)] {
            node.attrs.insert("perm".to_owned(), Attr::Ints(perm));
            assert_eq!(transpose_perm(&node, 3).ok(), expected);
        }
    }
}
