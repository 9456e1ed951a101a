//! Products of matrices: which operands and results may lie turned, and how an op says that they do.
//!
//! Gemm reads the last two axes of an operand in either order. ONNX Runtime's `FusedMatMul` also reads operands whose rows stand
//! outside of the batch. A result that is wanted turned is the product of the turned operands in the other order.

use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::layout::Layout;

/// The first operator set whose Gemm may do without a third operand.
const GEMM_WITHOUT_SUMMAND: i64 = 11;

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

/// An operand of a product.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// Its extents as the file declares them.
    pub(crate) shape: Vec<Dim>,
    /// How the op that is there reads it.
    pub(crate) turns: Turns,
    /// Known at compile time.
    pub(crate) constant: bool,
}

impl Operand {
    fn of(query: &NodeQuery<'_>, slot: usize, turns: Turns) -> Option<Operand> {
        let v = query.graph.node(query.node).inputs.get(slot).copied().flatten()?;
        let shape = query.graph.value(v).ty.shape()?.to_vec();
        (shape.len() >= 2).then(|| Operand { shape, turns, constant: (query.is_constant)(v) })
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
}

/// A way to compute a product: the turns of both operands as they are stored, and whether the result is stored turned, so that
/// the operands change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Of the operands, in the file's order.
    pub(crate) turns: [Turns; 2],
    /// Of the result.
    pub(crate) result: Turns,
}

impl Way {
    /// What the op that is put in reads turned: its own operands, in its order.
    pub(crate) fn read(&self) -> [Turns; 2] {
        let [a, b] = self.turns;
        if self.result.last { [b.flipped(), a.flipped()] } else { [a, b] }
    }
}

impl Product {
    /// The product that a node computes, if the node is one of two operands that are matrices at least and of no numbers that
    /// were dequantized: a runtime computes those with integers.
    pub(crate) fn of(query: &NodeQuery<'_>) -> Option<Product> {
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
        let operands = [Operand::of(query, 0, turns[0])?, Operand::of(query, 1, turns[1])?];
        Some(Product { operands, summand: node.inputs.iter().skip(2).any(Option::is_some) })
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
            (own || !operand.constant) && (!turns.batch || !result.last && (own || operand.has_batch(turns, rows)))
        };
        // A left operand that is turned twice over is slow to read.
        let left = |operand: &Operand, turns: Turns| turns != Turns::BOTH || turns == operand.turns;
        let [a, b] = &self.operands;
        let mut ways = Vec::new();
        for result in [Turns::NONE, Turns::LAST] {
            if result.last && (self.summand || a.constant || b.constant) {
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
    pub(crate) fn layouts(&self, way: &Way, inputs: usize, result_rank: usize) -> KernelLayouts {
        let mut ins: Vec<Option<Layout>> =
            self.operands.iter().zip(way.turns).map(|(operand, turns)| operand.layout(turns)).collect();
        ins.resize(inputs, None);
        let result = Turns::NONE.stored_for(way.result, result_rank).filter(|layout| !layout.is_row_major());
        KernelLayouts { ins, outs: vec![result] }
    }
}

/// Kernels of standard ONNX: a Gemm with other flags; for a MatMul of two matrices too.
pub(crate) fn gemm_kernels(query: &NodeQuery<'_>, price: &dyn Fn(&Product, &Way) -> Cost) -> Vec<Kernel> {
    let node = query.graph.node(query.node);
    let Some(product) = Product::of(query).filter(|_| is_gemm(query)) else { return Vec::new() };
    let Some(result) = only_result(node) else { return Vec::new() };
    if query.graph.value(result).ty.rank() != Some(2) {
        return Vec::new();
    }
    let of = |way: &Way| {
        let mut set = Vec::new();
        for (name, turns) in ["transA", "transB"].into_iter().zip(way.read()) {
            if turns.last {
                set.push((name.to_owned(), Attr::Int(1)));
            }
        }
        let op = OpName { domain: String::new(), name: "Gemm".to_owned(), overload: String::new() };
        let remove = ["transA", "transB"].map(str::to_owned).to_vec();
        Kernel {
            layouts: product.layouts(way, node.inputs.len(), 2),
            cost: price(&product, way),
            rewrite: Some(Rewrite { op, opset: node.opset, operands: exchanged(way), set, remove }),
        }
    };
    product.ways(Rows::Inside).iter().map(of).collect()
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
pub(crate) fn exchanged(way: &Way) -> Option<Vec<usize>> {
    way.result.last.then(|| vec![1, 0])
}

/// The only result; `None` for nodes that leave more.
fn only_result(node: &Node) -> Option<ValueId> {
    let (first, rest) = node.outputs.split_first()?;
    if rest.iter().any(Option::is_some) { None } else { *first }
}

/// Whether a value is dequantized numbers, through views.
fn is_dequantized(graph: &Graph, v: ValueId) -> bool {
    let mut v = v;
    loop {
        let maker = graph.node(graph.value(v).producer().0);
        if maker.op.is_named("DequantizeLinear") {
            return true;
        }
        match (&maker.form, maker.inputs.first().copied().flatten()) {
            (Form::View(_), Some(x)) => v = x,
            _ => return false,
        }
    }
}
