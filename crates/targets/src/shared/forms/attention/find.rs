//! Attention as ONNX Runtime's op has it, among what has been recognized.
//!
//! Queries, keys and values are `[batch, heads, positions, units]`, or without an axis of heads. Where heads have been merged into
//! the batch, `[batch * heads, positions, units]`, what stands before the merge is taken.

use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::raised::Attention;
use relayout_target_api::{Raise, Raised, RaisedOperand, Recognized};
use std::collections::BTreeSet;

/// The names of the op: of keys with a column per position, and with a row.
pub(crate) const OPS: &[&str] = &["Attention", BY_ROWS];
const BY_ROWS: &str = "AttentionOfRows";

/// An attention of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttentionParts {
    /// Queries, keys and values.
    pub(crate) operands: [ValueId; 3],
    /// Keys are `[.., positions, units]`, else `[.., units, positions]`.
    pub(crate) keys_by_rows: bool,
    /// What the products of queries and keys are multiplied with.
    pub(crate) scale: f32,
    /// Heads of the operands; `None` where they have no axis for them.
    pub(crate) heads: Option<i64>,
}

/// Extents of an attention whose heads stand before its positions, if they have an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    pub(crate) batch: Vec<Dim>,
    pub(crate) queries: Dim,
    pub(crate) keys: Dim,
    pub(crate) width: i64,
    pub(crate) value_width: i64,
}

/// The attribute of a raised attention that says with what the products of queries and keys are multiplied.
const SCALE: &str = "scale";

/// The attentions of a graph whose operands have one of these types, and that the target has a kernel of, in topological order. Of several
/// ways to see one, that with an axis of heads is taken.
pub(crate) fn find_all(
    graph: &Graph,
    recognized: &[Recognized],
    dtypes: &[DType],
    has_kernel: &dyn Fn(&AttentionParts) -> bool,
) -> Vec<Raised> {
    let found = |one: &Recognized| found(graph, one, dtypes).filter(has_kernel);
    let mut all: Vec<(AttentionParts, &Recognized)> =
        recognized.iter().filter_map(|one| Some((found(one)?, one))).collect();
    all.sort_by_key(|(found, _)| (found.heads.is_none(), found.keys_by_rows));
    let mut taken: BTreeSet<NodeId> = BTreeSet::new();
    all.retain(|(_, one)| {
        let free = one.nodes.iter().all(|n| !taken.contains(n));
        if free {
            taken.extend(&one.nodes);
        }
        free
    });
    let place = |one: &Recognized| recognized.iter().position(|other| other == one);
    all.sort_by_key(|(_, one)| place(one));
    all.into_iter().map(|(found, one)| found.raised(graph, one)).collect()
}

impl AttentionParts {
    /// As one raised op.
    fn raised(&self, graph: &Graph, one: &Recognized) -> Raised {
        let sums = one.nodes.iter().filter(|&&n| graph.node(n).onnx() == Some("Add")).count();
        let mut attrs = Attention { keys_by_rows: self.keys_by_rows, sums: sums as u64 }.attrs();
        attrs.insert(SCALE.to_owned(), Attr::Float(self.scale));
        let operands = self.operands.map(RaisedOperand::Value).to_vec();
        Raised { nodes: one.nodes.clone(), result: one.result, raise: Raise { op: Attention::op(), attrs, operands } }
    }

    /// What a raised node says.
    pub(crate) fn recognize(graph: &Graph, n: NodeId) -> Option<AttentionParts> {
        let node = graph.node(n);
        let keys_by_rows = Attention::of(node)?.keys_by_rows;
        let operands = [node.operand(0)?, node.operand(1)?, node.operand(2)?];
        AttentionParts { operands, keys_by_rows, scale: node.float(SCALE)?, heads: None }.with_heads(graph)
    }

    /// The attention with the heads that its operands have an axis for.
    fn with_heads(self, graph: &Graph) -> Option<AttentionParts> {
        match &extents(graph, &self)?.batch[..] {
            [_, heads] => Some(AttentionParts { heads: Some(heads.as_const()?), ..self }),
            [_] => Some(self),
            _ => None,
        }
    }
}

fn found(graph: &Graph, one: &Recognized, dtypes: &[DType]) -> Option<AttentionParts> {
    let operands = [one.value(0)?, one.value(1)?, one.value(2)?];
    let dtype = graph.value(operands[0]).ty.dtype().filter(|dtype| dtypes.contains(dtype));
    let typed = |v: ValueId| dtype.is_some() && graph.value(v).ty.dtype() == dtype;
    let usable = |v: ValueId| graph.constant(v).is_none() && typed(v) && !is_dequantized(graph, v);
    let scale = one.number(3)? as f32;
    // Of zero the op takes the default instead.
    if !OPS.contains(&one.op.as_str()) || !operands.into_iter().all(usable) || !scale.is_finite() || scale == 0.0 {
        return None;
    }
    AttentionParts { operands, keys_by_rows: one.op == BY_ROWS, scale, heads: None }.with_heads(graph)
}

/// The extents of an attention, if they are those of one without broadcasting, and none is known to be empty.
pub(crate) fn extents(graph: &Graph, found: &AttentionParts) -> Option<Extents> {
    let [q, k, v] = found.operands.map(|v| graph.value(v).ty.shape());
    let (q, k, v) = (q?.split_last_chunk::<2>()?, k?.split_last_chunk::<2>()?, v?.split_last_chunk::<2>()?);
    let ((batch, [queries, width]), (of_keys, keys), (of_values, [rows, value_width])) = (q, k, v);
    let [keys, units] = if found.keys_by_rows { keys.each_ref() } else { [&keys[1], &keys[0]] };
    if of_keys != batch || of_values != batch || rows != keys || units != width {
        return None;
    }
    let (width, value_width) = (width.as_const()?, value_width.as_const()?);
    let dims = batch.iter().chain([queries, keys]);
    let some = |d: &Dim| d.as_const().is_none_or(|n| n > 0);
    (width > 0 && value_width > 0 && dims.into_iter().all(some)).then(|| Extents {
        batch: batch.to_vec(),
        queries: queries.clone(),
        keys: keys.clone(),
        width,
        value_width,
    })
}

/// Whether a value is dequantized numbers, through views.
fn is_dequantized(graph: &Graph, mut v: ValueId) -> bool {
    loop {
        let node = graph.node(graph.value(v).producer().0);
        match (&node.op, &node.form, node.operand(0)) {
            (Op::Onnx(_), Form::View(_), Some(x)) => v = x,
            _ => return node.op.is_named("DequantizeLinear"),
        }
    }
}
