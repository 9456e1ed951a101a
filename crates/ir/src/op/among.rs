//! Signals, `[N, C, L]`, told from sequences of vectors, which have as many axes: they stand around convolutions.

use crate::graph::{Graph, NodeId, ValueId};
use std::collections::{BTreeSet, VecDeque};

/// Axes of a signal.
const RANK: usize = 3;
/// Most nodes that are looked at around an op.
const AROUND: usize = 48;

/// Whether a convolution of signals is this node, or among the nearest that values of as many axes lead to.
pub fn is_among_signals(graph: &Graph, node: NodeId) -> bool {
    let is_signal = |v: &ValueId| graph.value(*v).ty.rank() == Some(RANK);
    let (mut seen, mut next) = (BTreeSet::from([node]), VecDeque::from([node]));
    while let Some(n) = next.pop_front() {
        let at = graph.node(n);
        let reads_signal = at.operand(0).is_some_and(|x| is_signal(&x));
        if at.onnx() == Some("Conv") && reads_signal {
            return true;
        }
        let before = at.inputs.iter().flatten().filter(|v| is_signal(v)).map(|&v| graph.value(v).producer().0);
        let behind = at.outputs.iter().flatten().filter(|v| is_signal(v)).flat_map(|&v| graph.uses(v)).map(|u| u.node);
        for m in before.chain(behind) {
            if seen.len() < AROUND && seen.insert(m) {
                next.push_back(m);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;
    use crate::dim::Dim;
    use crate::dtype::DType;
    use crate::types::Type;

    fn value(graph: &mut Graph, op: &str, inputs: &[ValueId], dims: &[i64]) -> ValueId {
        let ty = Type::tensor(DType::F32, dims.iter().map(|&d| Dim::from(d)).collect());
        let inputs = inputs.iter().copied();
        Builder::new(graph, 0).op(op, inputs).result("v", ty).expect("a fresh name")
    }

    #[test]
    fn a_sequence_of_vectors_is_no_signal() {
        let mut graph = Graph::new("g");
        let ty = |dims: &[i64]| Type::tensor(DType::F32, dims.iter().map(|&d| Dim::from(d)).collect());
        let x = graph.add_input("x", ty(&[1, 32, 100])).expect("a new name");
        let w = graph.add_input("w", ty(&[32, 32, 3])).expect("a new name");
        let y = value(&mut graph, "Conv", &[x, w], &[1, 32, 98]);
        let near = value(&mut graph, "Relu", &[y], &[1, 32, 98]);
        let image = value(&mut graph, "Reshape", &[near], &[1, 32, 7, 14]);
        let apart = value(&mut graph, "Reshape", &[image], &[1, 32, 98]);
        let far = value(&mut graph, "Relu", &[apart], &[1, 32, 98]);
        let is_near = |v: ValueId| is_among_signals(&graph, graph.value(v).producer().0);
        assert_eq!([y, near, far].map(is_near), [true, true, false]);
    }
}
