//! Attention and `RotaryEmbedding` of ONNX with heads in their operands' last axis.
//!
//! Operands of rank 4 have heads before positions, `[batch, heads, positions, width]`. Those of rank 3 have the heads of a position side by
//! side, `[batch, positions, heads * width]`, which is the same with heads behind positions, and no byte elsewhere. Masks, caches
//! and the results beside the first are the same for both.
//!
//! ```text
//! Attention(q, k, v) = Reshape(Attention(Reshape(q), Reshape(k), Reshape(v)))
//! ```

use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::types::Type;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};

/// The form's name.
const FORM: &str = "packed_heads";

/// How a value with heads before positions is stored where heads stand behind them.
const BEHIND: [usize; 4] = [0, 2, 1, 3];

/// Such ops; the price of a Reshape.
pub(crate) struct PackedHeads(pub(crate) Cost);

impl TargetForm for PackedHeads {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Attention", "RotaryEmbedding"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let node = q.graph.node(q.node);
        let Some((packed, behind)) = Packed::recognize(q.graph, q.node).zip(Layout::permutation(&BEHIND).ok()) else {
            return Vec::new();
        };
        let mut ins = vec![Some(behind.clone()); packed.operands.len()];
        ins.resize(node.inputs.len(), None);
        let mut outs = vec![Some(behind)];
        outs.resize(node.outputs.len(), None);
        let cost = self.0.times(packed.views(q.graph));
        let layouts = KernelLayouts { ins, outs };
        vec![Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false }]
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let packed = Packed::recognize(piece.graph, piece.node);
        let made = packed.and_then(|packed| packed.write(piece));
        made.ok_or_else(|| Refused::new(piece, "can't have its heads in the last axis"))
    }
}

/// Heads and their width, of an operand or the result.
#[derive(Clone, Copy)]
struct Heads {
    count: i64,
    width: i64,
}

impl Heads {
    fn recognize(graph: &Graph, v: ValueId) -> Option<Heads> {
        let [_, heads, _, width] = graph.value(v).ty.shape()? else { return None };
        let (count, width) = (heads.as_const()?, width.as_const()?);
        (count > 0 && width > 0 && count.checked_mul(width).is_some()).then_some(Heads { count, width })
    }

    /// The value's type with them in its last axis.
    fn packed(self, graph: &Graph, v: ValueId) -> Option<Type> {
        let ty = &graph.value(v).ty;
        let [batch, _, positions, _] = ty.shape()? else { return None };
        Some(Type::tensor(ty.dtype()?, vec![batch.clone(), positions.clone(), Dim::from(self.count * self.width)]))
    }
}

/// A node of rank 4 whose heads are known.
struct Packed {
    /// The operands that have heads; they come first.
    operands: Vec<(ValueId, Heads)>,
    result: (ValueId, Heads),
    attrs: Vec<(&'static str, i64)>,
}

impl Packed {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Packed> {
        let node = graph.node(n);
        let of = |v: Option<ValueId>| v.and_then(|v| Some((v, Heads::recognize(graph, v)?)));
        let count = if node.onnx()? == "Attention" { 3 } else { 1 };
        let operands: Vec<(ValueId, Heads)> = (0..count).map(|at| of(node.operand(at))).collect::<Option<_>>()?;
        let attrs = match operands.as_slice() {
            [(_, queries), (_, keys), _] => vec![("q_num_heads", queries.count), ("kv_num_heads", keys.count)],
            [(_, heads)] => vec![("num_heads", heads.count)],
            _ => return None,
        };
        Some(Packed { result: of(node.result(0))?, operands, attrs })
    }

    /// Reshapes that are left: those beside one that splits or joins heads go with it.
    fn views(&self, graph: &Graph) -> u64 {
        let joins = |n: NodeId| {
            let node = graph.node(n);
            matches!(node.form, Form::View(View::Reshape)) || node.onnx() == Some("RotaryEmbedding")
        };
        let turns = |n: NodeId| matches!(graph.node(n).form, Form::View(View::Transpose(_)));
        let maker = |v: ValueId| graph.value(v).producer().0;
        let split = |v: ValueId| {
            let before = graph.node(maker(v)).operand(0).filter(|_| turns(maker(v)));
            joins(maker(before.unwrap_or(v)))
        };
        let reader = |v: ValueId| graph.only_use(v).map(|u| u.node);
        let joined = |v: ValueId| {
            let behind = reader(v).filter(|&n| turns(n)).and_then(|n| graph.node(n).only_result());
            reader(behind.unwrap_or(v)).is_some_and(joins)
        };
        let operands = self.operands.iter().filter(|&&(x, _)| !split(x)).count() as u64;
        operands + u64::from(!joined(self.result.0))
    }

    fn write(self, piece: &Piece<'_>) -> Option<Fragment> {
        let graph = piece.graph;
        let mut made = Fragment::new(piece, FORM);
        let mut node = Made::same(piece).in_layouts(Vec::new(), Vec::new());
        for (slot, &(x, heads)) in self.operands.iter().enumerate() {
            let ty = heads.packed(graph, x)?;
            let reshape = made.reshape(graph, x.into(), &[0, 0, heads.count * heads.width], &Layout::row_major(3));
            let name = made.named(&format!("heads{slot}"));
            node = node.reading(slot, made.add(reshape, Left::row_major(name, ty)));
        }
        for (name, count) in self.attrs {
            node = node.with(name, Attr::Int(count));
        }
        let (y, heads) = self.result;
        made.become_op_of(node, heads.packed(graph, y)?, Layout::row_major(3));
        let behind = Layout::permutation(&BEHIND).ok()?;
        let apart = made.reshape(graph, Operand::Outer(y), &[0, 0, heads.count, heads.width], &behind);
        let left = Left::row_major(made.named("apart"), graph.value(y).ty.clone()).stored(behind);
        let apart = made.add(apart, left);
        made.exit(y, apart);
        Some(made)
    }
}
