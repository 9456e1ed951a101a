//! Products of matrices: which operands and results may lie turned, and how an op says that they do.
//!
//! Gemm reads the last two axes of an operand in either order. ONNX Runtime's `FusedMatMul` also reads operands whose rows stand
//! outside of the batch. A result that is wanted turned is the product of the turned operands in the other order.

use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_target_api::{Become, Cost, NodeQuery, Offer};

/// The name of the form.
pub(crate) const FORM: &str = "turned_product";

/// The first operator set whose Gemm may do without a third operand.
pub(crate) const GEMM_WITHOUT_SUMMAND: i64 = 11;

/// The first operator set whose sums and Gemms broadcast without an attribute. ONNX Runtime has no kernels for those of older ones.
pub(crate) const BROADCASTS_SINCE: i64 = 7;

/// Most values at which Transposes are looked for.
const LOOKED_AT: usize = 16;

/// What is turned about an operand before it is a batch of matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turns {
    /// The first axis goes behind the batch: `[m, b.., k]` is `[b.., m, k]`.
    pub(crate) batch: bool,
    /// After that the last two axes change places.
    pub(crate) last: bool,
}

impl Turns {
    pub(crate) const NONE: Turns = Turns { batch: false, last: false };
    pub(crate) const LAST: Turns = Turns { batch: false, last: true };
    pub(crate) const BATCH: Turns = Turns { batch: true, last: false };
    pub(crate) const BOTH: Turns = Turns { batch: true, last: true };
    pub(crate) const ALL: [Turns; 4] = [Turns::NONE, Turns::LAST, Turns::BATCH, Turns::BOTH];

    /// What differs from other turns.
    fn beside(self, other: Turns) -> Turns {
        Turns { batch: self.batch != other.batch, last: self.last != other.last }
    }

    /// With rows for columns.
    pub(crate) fn flipped(self) -> Turns {
        Turns { last: !self.last, ..self }
    }

    /// Which axis of the operand is each axis of the batch of matrices.
    pub(crate) fn axes(self, rank: usize) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..rank).collect();
        if self.batch
            && let Some((_, before)) = axes.split_last_mut()
            && !before.is_empty()
        {
            before.rotate_left(1);
        }
        if self.last && rank >= 2 {
            axes.swap(rank - 2, rank - 1);
        }
        axes
    }

    /// The layout of an operand that is declared for these turns and stored for others. Outermost first, its axes are those of
    /// the declaration.
    pub(crate) fn stored_for(self, turns: Turns, rank: usize) -> Option<Layout> {
        let mut order = vec![0; rank];
        for (declared, stored) in self.axes(rank).into_iter().zip(turns.axes(rank)) {
            *order.get_mut(stored)? = declared;
        }
        Layout::permutation(&order).ok()
    }
}

/// How a value may be wanted: there is a Transpose on the way from it or to it that asks for that. What nothing asks for is no
/// layout to decide among, lest one move become two by way of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Axes before the last two go elsewhere.
    batch: bool,
    /// The last axis does.
    last: bool,
}

/// The direction in which Transposes are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Towards {
    Makers,
    Readers,
}

impl Wanted {
    /// Looks at what stands before or behind a value, up to products and what is opaque. An end of the graph that is reached
    /// without a Transpose may be agreed to have its last axes in the other order.
    fn look(graph: &Graph, v: ValueId, towards: Towards) -> Wanted {
        let mut wanted = Wanted::default();
        let (mut found, mut at, mut ends) = (vec![v], 0, false);
        while let Some(&v) = found.get(at).filter(|_| at < LOOKED_AT) {
            at += 1;
            let nodes: Vec<_> = match towards {
                Towards::Makers => vec![graph.value(v).producer().0],
                Towards::Readers => graph.uses(v).into_iter().map(|u| u.node).collect(),
            };
            ends |= towards == Towards::Readers && graph.is_output(v);
            ends |= nodes.iter().any(|&n| matches!(graph.node(n).op, Op::Input { .. }));
            for node in nodes.into_iter().map(|n| graph.node(n)) {
                match &node.form {
                    Form::View(View::Transpose(perm)) => {
                        let batch = perm.iter().take(perm.len().saturating_sub(2)).enumerate();
                        wanted.batch |= batch.into_iter().any(|(at, &axis)| at != axis);
                        wanted.last |= perm.last().is_some_and(|&axis| axis + 1 != perm.len());
                    }
                    Form::View(_) => {}
                    Form::Axes(_) if !is_product(node) => {}
                    _ => continue,
                }
                let next = if towards == Towards::Makers { &node.inputs } else { &node.outputs };
                for &w in next.iter().flatten() {
                    if !found.contains(&w) {
                        found.push(w);
                    }
                }
            }
        }
        wanted.last |= ends && wanted == Wanted::default();
        wanted
    }

    fn asks_for(self, turns: Turns) -> bool {
        (self.last || !turns.last) && (self.batch || !turns.batch)
    }
}

/// An operand of a product.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// Its extents as the file declares them.
    pub(crate) shape: Vec<Dim>,
    /// How the op that is there reads it.
    pub(crate) turns: Turns,
    /// Known at compile time.
    pub(crate) constant: bool,
    wanted: Wanted,
}

impl Operand {
    fn recognize(query: &NodeQuery<'_>, slot: usize, turns: Turns) -> Option<Operand> {
        let v = query.graph.node(query.node).operand(slot)?;
        let shape = query.graph.value(v).ty.shape()?.to_vec();
        let wanted = Wanted::look(query.graph, v, Towards::Makers);
        (shape.len() >= 2).then(|| Operand { shape, turns, constant: (query.is_constant)(v), wanted })
    }

    /// Its layout if it is stored for these turns; `None` for row-major.
    pub(crate) fn layout(&self, turns: Turns) -> Option<Layout> {
        self.turns.stored_for(turns, self.shape.len()).filter(|layout| !layout.is_row_major())
    }

    /// The extents with which it is stored for these turns.
    pub(crate) fn stored(&self, turns: Turns) -> Vec<Dim> {
        let order = self.turns.stored_for(turns, self.shape.len()).and_then(|layout| layout.as_permutation());
        let order = order.unwrap_or_else(|| (0..self.shape.len()).collect());
        order.into_iter().filter_map(|axis| self.shape.get(axis).cloned()).collect()
    }

    /// Whether its rows can stand outside of the batch: there is one, and the op takes so many rows.
    fn has_batch(&self, turns: Turns, rows: Rows) -> bool {
        let axes = self.turns.axes(self.shape.len());
        let dim = |axis: &usize| self.shape.get(*axis).and_then(Dim::as_const);
        let Some((batch, [row, column])) = axes.split_last_chunk::<2>() else { return false };
        let some = dim(if turns.last { column } else { row }).is_some_and(|d| d > 0);
        let takes = match rows {
            Rows::Inside => false,
            Rows::OutsideIfSome => some,
            Rows::Outside => true,
        };
        takes && batch.iter().any(|a| dim(a) != Some(1))
    }
}

/// Where an op finds the rows of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Behind the batch.
    Inside,
    /// Before it too, where they are known to be some: ONNX Runtime 1.31 divides by their number.
    OutsideIfSome,
    /// Before it too.
    Outside,
}

/// A product of two batches of matrices.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) operands: [Operand; 2],
    /// A third operand is added.
    summand: bool,
    wanted: Wanted,
}

/// A way to compute a product: the turns of both operands as they are stored, and whether the result is stored turned, so that
/// the operands change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The turns of the operands, in the file's order.
    pub(crate) turns: [Turns; 2],
    /// The turns of the result.
    pub(crate) result: Turns,
}

impl Way {
    /// What the op that is put in reads turned: its own operands, in its order.
    pub(crate) fn read(self) -> [Turns; 2] {
        let [a, b] = self.turns;
        if self.result.last { [b.flipped(), a.flipped()] } else { [a, b] }
    }
}

impl Product {
    /// The product that a node computes, if the node is one of two operands that are matrices at least and of no numbers that
    /// were dequantized: a runtime computes those with integers.
    pub(crate) fn recognize(query: &NodeQuery<'_>) -> Option<Product> {
        let node = query.graph.node(query.node);
        let Op::Onnx(op) = &node.op else { return None };
        let is = |name: &str| node.int(name).unwrap_or(0) != 0;
        let turns = match (op.domain.as_str(), op.name.as_str()) {
            ("", "MatMul") => [Turns::NONE; 2],
            ("", "Gemm") => ["transA", "transB"].map(|last| Turns { last: is(last), batch: false }),
            ("com.microsoft", "FusedMatMul" | "TransposeMatMul") => {
                [("transA", "transBatchA"), ("transB", "transBatchB")]
                    .map(|(last, batch)| Turns { last: is(last), batch: is(batch) })
            }
            _ => return None,
        };
        let quantized = node.inputs.iter().flatten().any(|&v| is_dequantized(query.graph, v));
        if quantized || !matches!(query.graph.node(query.node).form, Form::Axes(_)) {
            return None;
        }
        let operands = [Operand::recognize(query, 0, turns[0])?, Operand::recognize(query, 1, turns[1])?];
        let wanted = Wanted::look(query.graph, only_result(node)?, Towards::Readers);
        Some(Product { operands, summand: node.inputs.iter().skip(2).any(Option::is_some), wanted })
    }

    /// Whether both operands have a batch of as many axes, at least one: what reads rows outside of it asks for that.
    pub(crate) fn has_batches(&self) -> bool {
        let [a, b] = self.operands.each_ref().map(|o| o.shape.len());
        a == b && a > 2
    }

    /// The ways to compute it, but for that of the file.
    pub(crate) fn ways(&self, rows: Rows) -> Vec<Way> {
        let rows = if self.has_batches() { rows } else { Rows::Inside };
        let may = |operand: &Operand, turns: Turns, result: Turns| {
            let own = turns == operand.turns;
            (own || !operand.constant && operand.wanted.asks_for(turns.beside(operand.turns)))
                && (!turns.batch || !result.last && (own || operand.has_batch(turns, rows)))
        };
        // A left operand that is turned twice over is slow to read.
        let left = |operand: &Operand, turns: Turns| turns != Turns::BOTH || turns == operand.turns;
        let [a, b] = &self.operands;
        let mut ways = Vec::new();
        for result in [Turns::NONE, Turns::LAST] {
            if result.last && (!self.wanted.last || self.summand || a.constant || b.constant) {
                continue;
            }
            for left in Turns::ALL.into_iter().filter(|&t| left(a, t) && may(a, t, result)) {
                for right in Turns::ALL.into_iter().filter(|&t| may(b, t, result)) {
                    ways.push(Way { turns: [left, right], result });
                }
            }
        }
        ways.retain(|way| *way != self.plain());
        ways
    }

    /// What the file says.
    pub(crate) fn plain(&self) -> Way {
        Way { turns: self.operands.each_ref().map(|o| o.turns), result: Turns::NONE }
    }

    /// The layouts of a way, in the file's order of operands.
    pub(crate) fn layouts(&self, way: Way, inputs: usize, result_rank: usize) -> KernelLayouts {
        let mut ins: Vec<Option<Layout>> =
            self.operands.iter().zip(way.turns).map(|(operand, turns)| operand.layout(turns)).collect();
        ins.resize(inputs, None);
        let result = Turns::NONE.stored_for(way.result, result_rank).filter(|layout| !layout.is_row_major());
        KernelLayouts { ins, outs: vec![result] }
    }
}

/// Kernels of standard ONNX: a Gemm with other flags; for a `MatMul` of two matrices too.
pub(crate) fn gemm_kernels(query: &NodeQuery<'_>, price: &dyn Fn(&Product, Way) -> Cost) -> Vec<Offer> {
    let node = query.graph.node(query.node);
    let Some(product) = Product::recognize(query).filter(|_| is_gemm(query)) else { return Vec::new() };
    let Some(result) = only_result(node) else { return Vec::new() };
    if query.graph.value(result).ty.rank() != Some(2) {
        return Vec::new();
    }
    let of = |way: Way| {
        let [a, b] = way.read();
        let set = flags(node, [("transA", a.last), ("transB", b.last)]);
        let op = OpName::onnx("Gemm");
        Offer {
            form: FORM,
            layouts: product.layouts(way, node.inputs.len(), 2),
            cost: price(&product, way),
            becomes: Some(Become { op, opset: node.opset, operands: exchanged(way), set, remove: Vec::new() }),
            adds_zeros: false,
        }
    };
    product.ways(Rows::Inside).into_iter().map(of).collect()
}

/// Flags as a node says them: those that are set, and those that the file has set.
pub(crate) fn flags<const N: usize>(node: &Node, flags: [(&str, bool); N]) -> Vec<(String, Attr)> {
    let said = flags.into_iter().filter(|(name, on)| *on || node.attrs.contains_key(*name));
    said.map(|(name, on)| (name.to_owned(), Attr::Int(i64::from(on)))).collect()
}

/// Whether the node is a Gemm, or a product of two matrices of floats that a Gemm can stand for.
fn is_gemm(query: &NodeQuery<'_>) -> bool {
    let (graph, node) = (query.graph, query.graph.node(query.node));
    let float = |v: &Option<ValueId>| {
        let dtype = v.and_then(|v| graph.value(v).ty.dtype());
        matches!(dtype, Some(DType::F32 | DType::F64))
    };
    let matrix = |v: &Option<ValueId>| v.and_then(|v| graph.value(v).ty.rank()) == Some(2);
    match node.onnx() {
        Some("Gemm") => true,
        Some("MatMul") => node.opset >= GEMM_WITHOUT_SUMMAND && node.inputs.iter().all(|v| matrix(v) && float(v)),
        _ => false,
    }
}

/// The operands of the op that is put in, where they are in another order than in the file.
pub(crate) fn exchanged(way: Way) -> Option<Vec<usize>> {
    way.result.last.then(|| vec![1, 0])
}

/// The only result; `None` for nodes that leave more.
pub(crate) fn only_result(node: &Node) -> Option<ValueId> {
    let (first, rest) = node.outputs.split_first()?;
    if rest.iter().any(Option::is_some) { None } else { *first }
}

/// Whether a node multiplies matrices, in whatever form.
fn is_product(node: &Node) -> bool {
    ["MatMul", "Gemm", "FusedMatMul", "TransposeMatMul"].iter().any(|name| node.op.is_named(name))
}

/// Whether a value is dequantized numbers, through views.
pub(crate) fn is_dequantized(graph: &Graph, v: ValueId) -> bool {
    let mut v = v;
    loop {
        let maker = graph.node(graph.value(v).producer().0);
        if maker.op.is_named("DequantizeLinear") {
            return true;
        }
        match (&maker.form, maker.operand(0)) {
            (Form::View(_), Some(x)) => v = x,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of a tensor of this shape whose entry at a place is the place itself, seen through these axes.
    fn seen(shape: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
        let mut places = vec![vec![]];
        for &axis in axes {
            let longer = |p: &Vec<usize>| (0..shape[axis]).map(|i| [&p[..], &[i]].concat()).collect::<Vec<_>>();
            places = places.iter().flat_map(longer).collect();
        }
        let back = |p: Vec<usize>| {
            let mut place = vec![0; shape.len()];
            for (&axis, i) in axes.iter().zip(p) {
                place[axis] = i;
            }
            place
        };
        places.into_iter().map(back).collect()
    }

    #[test]
    fn rows_outside_of_the_batch_go_behind_it_and_the_last_two_axes_change_places_after_that() {
        assert_eq!(Turns::LAST.axes(4), [0, 1, 3, 2]);
        assert_eq!(Turns::BATCH.axes(4), [1, 2, 0, 3]);
        assert_eq!(Turns::BOTH.axes(4), [1, 2, 3, 0]);
        assert_eq!(Turns::BATCH.axes(2), [0, 1]);
        assert_eq!(Turns::BOTH.axes(1), [0]);
    }

    #[test]
    fn an_operand_stored_for_other_turns_has_the_matrices_of_its_declaration() {
        let shape = [2, 3, 4, 5];
        for declared in Turns::ALL {
            for turns in Turns::ALL {
                let order = declared.stored_for(turns, 4).and_then(|l| l.as_permutation()).expect("a permutation");
                // What is stored at each axis, read with the new turns, is what the declaration reads.
                let read: Vec<usize> = turns.axes(4).into_iter().map(|axis| order[axis]).collect();
                assert_eq!(read, declared.axes(4), "{declared:?} {turns:?}");
                assert_eq!(seen(&shape, &read), seen(&shape, &declared.axes(4)));
            }
        }
    }

    fn operand(shape: &[i64], turns: Turns) -> Operand {
        let wanted = Wanted { batch: true, last: true };
        Operand { shape: shape.iter().map(|&d| Dim::from(d)).collect(), turns, constant: false, wanted }
    }

    fn product(a: Operand, b: Operand) -> Product {
        Product { operands: [a, b], summand: false, wanted: Wanted { batch: true, last: true } }
    }

    #[test]
    fn a_turned_result_reads_both_operands_the_other_way_round_in_the_other_order() {
        let way = Way { turns: [Turns::NONE, Turns::LAST], result: Turns::LAST };
        assert_eq!(way.read(), [Turns::NONE, Turns::LAST]);
        assert_eq!(exchanged(way), Some(vec![1, 0]));
        let way = Way { result: Turns::NONE, ..way };
        assert_eq!(way.read(), way.turns);
        assert_eq!(exchanged(way), None);
    }

    #[test]
    fn rows_stand_outside_of_a_batch_only_where_there_is_one_and_they_are_some() {
        let batched = |shape: &[i64], rows| {
            let all = product(operand(shape, Turns::NONE), operand(&[2, 3, 5, 6], Turns::NONE)).ways(rows);
            all.iter().any(|way| way.turns[0].batch)
        };
        assert!(batched(&[2, 3, 4, 5], Rows::OutsideIfSome));
        assert!(!batched(&[2, 3, 0, 5], Rows::OutsideIfSome) && batched(&[2, 3, 0, 5], Rows::Outside));
        assert!(!batched(&[1, 1, 4, 5], Rows::Outside), "one matrix has its rows in either place");
        assert!(!batched(&[3, 4, 5], Rows::Outside), "operands of other ranks");
        assert!(!batched(&[2, 3, 4, 5], Rows::Inside));
    }

    #[test]
    fn a_constant_is_read_as_it_is_declared_and_what_is_added_has_its_own_order() {
        let mut of = product(operand(&[4, 5], Turns::NONE), operand(&[5, 6], Turns::NONE));
        assert!(of.ways(Rows::Inside).iter().any(|way| way.result.last));
        of.summand = true;
        assert!(!of.ways(Rows::Inside).iter().any(|way| way.result.last));
        of.operands[1].constant = true;
        assert_eq!(of.ways(Rows::Inside), [Way { turns: [Turns::LAST, Turns::NONE], result: Turns::NONE }]);
    }

    #[test]
    fn what_no_transpose_asks_for_is_no_way() {
        let mut of = product(operand(&[2, 3, 4], Turns::NONE), operand(&[2, 4, 6], Turns::NONE));
        (of.operands[0].wanted, of.wanted) = (Wanted::default(), Wanted::default());
        of.operands[1].wanted.last = false;
        let right = |turns| Way { turns: [Turns::NONE, turns], result: Turns::NONE };
        assert_eq!(of.ways(Rows::Outside), [right(Turns::BATCH)]);
    }

    #[test]
    fn the_way_of_the_file_is_none_of_the_others() {
        for declared in Turns::ALL {
            let of = product(operand(&[3, 3, 3], declared), operand(&[3, 3, 3], Turns::BOTH));
            assert!(!of.ways(Rows::Outside).contains(&of.plain()));
        }
    }
}
