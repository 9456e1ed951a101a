//! What a model weighs beside what its moves write: weights, caches, convolutions.

use relayout::Model;
use relayout::ir::graph::{Graph, NodeId, Op, Use, ValueId};
use relayout::units::bytes;
use serde::Serialize;

/// What is in a model, bodies included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Weighed {
    /// Nodes of the file.
    pub(super) nodes: usize,
    /// Convolutions of any kind, for which targets have layouts.
    pub(super) convolutions: usize,
    /// Bytes of constants.
    pub(super) weight_bytes: u64,
    /// Of these, bytes that lie in other files.
    pub(super) external_bytes: u64,
    /// Of these, bytes of elements that are narrower than 8 bits or packed by their op.
    pub(super) packed_bytes: u64,
    /// Inputs that an op makes longer, and gives back as an output: caches of keys and values.
    pub(super) caches: usize,
}

impl Weighed {
    pub(super) fn of(model: &Model) -> Weighed {
        let mut weighed = Weighed { external_bytes: model.external_bytes(), ..Weighed::default() };
        weighed.add(&model.ir().graph);
        weighed.caches = caches(&model.ir().graph);
        weighed
    }

    fn add(&mut self, graph: &Graph) {
        for n in graph.nodes() {
            let node = graph.node(n);
            match &node.op {
                Op::Constant(c) => {
                    let size = c.size_bytes().unwrap_or(0);
                    self.weight_bytes = self.weight_bytes.saturating_add(size);
                    if c.dtype.bits().is_some_and(|bits| bits < 8) || is_packed(graph, n) {
                        self.packed_bytes = self.packed_bytes.saturating_add(size);
                    }
                }
                Op::Onnx(name) => {
                    self.nodes += 1;
                    self.convolutions += usize::from(name.name.contains("Conv"));
                }
                _ => {}
            }
            node.bodies().for_each(|body| self.add(body));
        }
    }

    /// What moves of so many bytes are beside the weights, and why the model has little to gain where that is so.
    pub(super) fn beside(&self, moved: u64) -> Vec<String> {
        let mut said = Vec::new();
        if self.weight_bytes > 0 {
            let share = moved as f64 * 100.0 / self.weight_bytes as f64;
            let (weights, moved) = (bytes(self.weight_bytes), bytes(moved));
            let mut line =
                format!("each run reads {weights} of weights, and its moves write {moved}: {share:.1} % of that");
            if share < 1.0 && self.convolutions == 0 {
                line += "; so there is little to gain whatever is moved";
            }
            said.push(line);
        }
        if self.caches > 1 {
            said.push(format!(
                "it is a decoder with {} caches: its ops append to them and move nothing of them, so at a step of one token each move \
                 is as small as a token",
                self.caches
            ));
        }
        if self.packed_bytes > 0 {
            let (packed, all) = (bytes(self.packed_bytes), bytes(self.weight_bytes));
            said.push(format!(
                "{packed} of {all} of weights are packed or narrower than 8 bits: they stay as their kernels have them"
            ));
        }
        if self.external_bytes > 0 {
            said.push(format!(
                "{} of weights lie in other files: they are not read for this, and a result elsewhere has its own copy",
                bytes(self.external_bytes)
            ));
        }
        said
    }
}

/// Whether a reader of a constant says that its numbers have fewer than 8 bits, as `MatMulNBits` does.
fn is_packed(graph: &Graph, constant: NodeId) -> bool {
    let Some(v) = graph.node(constant).result(0) else { return false };
    let few = |n: NodeId| graph.node(n).int("bits").is_some_and(|bits| (1..8).contains(&bits));
    graph.uses(v).iter().any(|u| u.slot == 1 && few(u.node))
}

/// Inputs to which an op appends, and whose longer form of the same rank is an output of the model.
fn caches(graph: &Graph) -> usize {
    let rank = |v: ValueId| graph.value(v).ty.rank();
    let appends = |u: &Use| match &graph.node(u.node).op {
        Op::Onnx(op) if op.name.contains("Attention") => u.slot > 2,
        Op::Onnx(op) => u.slot == 0 && (op.name == "Concat" || op.name == "TensorScatter"),
        _ => false,
    };
    let is_cache = |v: ValueId| {
        let leaves =
            |n: NodeId| graph.node(n).outputs.iter().flatten().any(|&out| graph.is_output(out) && rank(out) == rank(v));
        rank(v) >= Some(3) && graph.uses(v).iter().any(|u| appends(u) && leaves(u.node))
    };
    graph.inputs().iter().filter(|&&v| is_cache(v)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout::GraphBuilder;
    use relayout::builder::NewOp;
    use relayout::ir::attr::Attr;
    use relayout::ir::constant::Constant;
    use relayout::ir::dim::Dim;
    use relayout::ir::dtype::DType;

    /// A step of a decoder: two caches that it makes longer, and a product with weights of 4 bits.
    fn decoder() -> Model {
        let mut g = GraphBuilder::new("decoder");
        let dims = |dims: &[i64]| dims.iter().map(|&d| Dim::from(d)).collect::<Vec<_>>();
        let token = g.input("token", DType::F32, dims(&[1, 2, 1, 32])).unwrap();
        for cache in ["past_keys", "past_values"] {
            let past = g.input(cache, DType::F32, dims(&[1, 2, 8, 32])).unwrap();
            let longer = g.op("Concat", &format!("{cache}_longer"), &[past, token], [("axis", Attr::Int(2))]).unwrap();
            g.output(longer).unwrap();
        }
        let packed = g.constant("packed", Constant::inline(DType::U8, vec![3, 2, 8], vec![1; 48].into())).unwrap();
        let scales = g.constant("scales", Constant::filled(DType::F32, &[6], 0.5)).unwrap();
        let product = NewOp::of_domain("com.microsoft", "MatMulNBits").operands([token, packed, scales]).result("y");
        let sizes = [("K", 32), ("N", 3), ("bits", 4), ("block_size", 16)];
        let product = sizes.into_iter().fold(product, |op, (name, n)| op.attr(name, Attr::Int(n)));
        let y = g.add(product).unwrap()[0];
        g.output(y).unwrap();
        Model::of_graph(&g.finish()).unwrap()
    }

    #[test]
    fn caches_and_packed_weights_of_a_decoder_are_counted() {
        let weighed = Weighed::of(&decoder());
        let expected = Weighed { nodes: 3, weight_bytes: 72, packed_bytes: 48, caches: 2, ..Weighed::default() };
        assert_eq!(weighed, expected);
    }

    #[test]
    fn it_is_said_where_moves_are_little_beside_the_weights() {
        let weighed = Weighed { weight_bytes: 2_000_000_000, external_bytes: 1_900_000_000, ..Weighed::of(&decoder()) };
        let said = weighed.beside(1_000_000).join("\n");
        for part in [
            "reads 2000.0 MB of weights, and its moves write 1.0 MB: 0.1 % of that; so there is little to gain",
            "a decoder with 2 caches",
            "48 B of 2000.0 MB of weights are packed",
            "1900.0 MB of weights lie in other files",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        // Convolutions gain by kernels, not only by moves.
        let convolutional = Weighed { convolutions: 1, weight_bytes: 2_000_000, ..Weighed::default() };
        let said = convolutional.beside(1000).join("\n");
        assert!(said.contains("0.1 % of that") && !said.contains("little"), "{said}");
    }

    #[test]
    fn a_concat_of_inputs_that_is_no_output_is_no_cache() {
        let mut g = GraphBuilder::new("join");
        let x = g.input("x", DType::F32, [1, 2, 8].map(Dim::from)).unwrap();
        let y = g.op("Concat", "y", &[x, x], [("axis", Attr::Int(1))]).unwrap();
        let z = g.op("Relu", "z", &[y], []).unwrap();
        g.output(z).unwrap();
        assert_eq!(Weighed::of(&Model::of_graph(&g.finish()).unwrap()).caches, 0);
    }
}
