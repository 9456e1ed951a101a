//! What the runtime's kernels want dense.
//!
//! *Constants.* A sum or product takes 55 ns an element where an operand is repeated within a tensor (a number for each channel of an
//! image), and 0.25 ns where both are as large. So constants are stored as often as they are read, up to a limit.
//!
//! *Copies* behind Transposes. A Transpose is a view here, and what its readers gather themselves costs them more than an Identity,
//! which takes no strides, so that the executor gathers for it: 16 to 76 ns an element and 5 (`examples/kernels.rs`).

use crate::target::BINARY;
use onnx_runtime_ir::{Dim, Graph, Node, NodeId, TensorData, ValueId, WeightRef};
use onnx_runtime_optimizer::PassContext;
use std::collections::HashMap;

/// Bytes of a constant that is stored as often as it is read, at most.
const LARGEST: usize = 8 << 20;

/// Stores constants as often as sums and products read them. Gives how many bytes they take.
pub fn stored(graph: &mut Graph, context: &PassContext) -> u64 {
    let nodes: Vec<NodeId> = graph.nodes.iter().filter(|(_, node)| is_binary(node)).map(|(id, _)| id).collect();
    let mut known: HashMap<(ValueId, Vec<usize>), ValueId> = HashMap::new();
    let mut bytes = 0;
    for (node, slot) in nodes.into_iter().flat_map(|node| [(node, 0), (node, 1)]) {
        let Some((constant, from, to)) = repeats(graph, node, slot) else { continue };
        let stored = match known.get(&(constant, to.clone())) {
            Some(stored) => *stored,
            None => {
                let Some(weight) = graph.initializers.get(&constant) else { continue };
                let (kind, data) = (weight.dtype(), context.initializer_bytes(weight));
                let Some(data) = data.and_then(|data| expanded(data, kind.byte_size(), &from, &to)) else { continue };
                bytes += data.len() as u64;
                let name = format!("constant{}.stored{}", constant.0, graph.num_values());
                let stored = graph.create_named_value(name, kind, to.iter().copied().map(Dim::Static).collect());
                graph.set_initializer(stored, WeightRef::Inline(TensorData::from_raw(kind, to.clone(), data)));
                known.insert((constant, to), stored);
                stored
            }
        };
        graph.replace_input(node, slot, Some(stored));
    }
    bytes
}

fn is_binary(node: &Node) -> bool {
    node.is_default_domain() && BINARY.contains(&node.op_type.as_str()) && node.inputs.len() == 2
}

/// A constant operand that is repeated within the result: its extents from its first that is not 1, and those of the result there.
fn repeats(graph: &Graph, node: NodeId, slot: usize) -> Option<(ValueId, Vec<usize>, Vec<usize>)> {
    let node = graph.node(node);
    let (constant, other) = (node.inputs[slot]?, node.inputs[1 - slot]?);
    let dims = graph.initializers.get(&constant)?.dims();
    // The other operand is as large as the result, so that the result keeps its shape.
    let result = &graph.value(other).shape;
    let wide = result.len() >= dims.len() && has_shape(graph, other);
    let from: Vec<usize> = dims.iter().copied().skip_while(|n| *n == 1).collect();
    let end = result.get(result.len().checked_sub(from.len())?..).filter(|_| wide)?;
    let to: Vec<usize> = end.iter().map(|dim| dim.as_static()).collect::<Option<_>>()?;
    let fits = from.iter().zip(&to).all(|(a, b)| a == b || *a == 1);
    let first = from.first() == to.first();
    (from != to && fits && first).then_some((constant, from, to))
}

/// Whether a shape is known. The loader infers shapes and leaves the mark that they are not known; no extents at all are believed only
/// without that mark.
pub fn has_shape(graph: &Graph, id: ValueId) -> bool {
    graph.value_shape_is_known(id) || !graph.value(id).shape.is_empty()
}

/// A constant of extents `from`, each of which is that of `to` or 1, as often as `to` has it.
fn expanded(data: &[u8], size: usize, from: &[usize], to: &[usize]) -> Option<Vec<u8>> {
    let count = to.iter().try_fold(1usize, |count, n| count.checked_mul(*n))?;
    if size == 0 || count.checked_mul(size)? > LARGEST || data.len() != from.iter().product::<usize>() * size {
        return None;
    }
    let mut all = Vec::with_capacity(count * size);
    for place in 0..count {
        let (mut rest, mut at, mut stride) = (place, 0, 1);
        for (own, n) in from.iter().zip(to).rev() {
            at += if *own == 1 { 0 } else { rest % n * stride };
            (rest, stride) = (rest / n, stride * own);
        }
        all.extend_from_slice(&data[at * size..][..size]);
    }
    Some(all)
}

/// Puts an Identity behind each Transpose that somebody reads who is no view. Gives how many.
pub fn dense(graph: &mut Graph) -> usize {
    let moves: Vec<ValueId> =
        graph.nodes.values().filter(|node| is_move(graph, node)).map(|node| node.outputs[0]).collect();
    moves.into_iter().filter(|result| copied(graph, *result)).count()
}

/// Whether a Transpose leaves elements in another order, as far as extents are known.
fn is_move(graph: &Graph, node: &Node) -> bool {
    let Some(&tensor) = node.inputs.first().and_then(Option::as_ref) else { return false };
    let shape = &graph.value(tensor).shape;
    let turned: Vec<i64> = (0..shape.len() as i64).rev().collect();
    let perm = node.attr("perm").and_then(|perm| perm.as_ints()).unwrap_or(&turned);
    let wide = perm.iter().filter(|axis| shape.get(**axis as usize) != Some(&Dim::Static(1)));
    node.is_default_domain() && node.op_type == "Transpose" && !wide.is_sorted()
}

fn copied(graph: &mut Graph, result: ValueId) -> bool {
    let gathers = |node: NodeId| !matches!(graph.node(node).op_type.as_str(), "Transpose" | "Slice" | "Identity");
    let uses: Vec<_> = graph.uses(result).into_iter().filter(|(node, _)| gathers(*node)).collect();
    if uses.is_empty() {
        return false;
    }
    let value = graph.value(result);
    let (kind, shape) = (value.dtype, value.shape.clone());
    let name = format!("{}.dense{}", value.name.as_deref().unwrap_or_default(), graph.num_values());
    let copy = graph.create_named_value(name, kind, shape);
    graph.insert_node(Node::new(NodeId(0), "Identity", vec![Some(result)], vec![copy]));
    for (node, slot) in uses {
        graph.replace_input(node, slot as usize, Some(copy));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_for_each_channel_becomes_an_image() {
        assert_eq!(expanded(&[1, 2], 1, &[2, 1, 1], &[2, 1, 3]), Some(vec![1, 1, 1, 2, 2, 2]));
        assert_eq!(
            expanded(&[1, 2, 3, 4, 5, 6], 1, &[2, 1, 3], &[2, 2, 3]),
            Some(vec![1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6])
        );
        assert_eq!(expanded(&[1, 2], 1, &[2, 1], &[2, LARGEST]), None);
        assert_eq!(expanded(&[1, 2, 3], 1, &[2, 1], &[2, 2]), None);
    }
}
