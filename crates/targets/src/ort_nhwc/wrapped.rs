//! Ops that the provider runs channels last: each stands between two Transposes, which meet those that ONNX Runtime puts there.
//!
//! ```text
//! y = Transpose(Conv(Transpose(x, to N C S), w, b), to N S C)
//! ```

use super::Rates;
use crate::shared::forms::product::only_result;
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::{self, KernelLayouts};
use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::int_or_default;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "wrapped";

/// Ranks of features: one to three spatial axes.
const RANKS: std::ops::RangeInclusive<usize> = 3..=5;

/// Ops between two Transposes.
pub(super) struct Wrapped(pub(super) Arc<Rates>);

impl TargetForm for Wrapped {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &[
            "Conv",
            "ConvTranspose",
            "QLinearConv",
            "AveragePool",
            "MaxPool",
            "LpPool",
            "GlobalAveragePool",
            "GlobalMaxPool",
            "GlobalLpPool",
            "BatchNormalization",
            "InstanceNormalization",
            "LRN",
            "GridSample",
            "DepthToSpace",
            "SpaceToDepth",
            "Resize",
            "Upsample",
        ]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        Sides::recognize(&self.0, q).map(|sides| sides.offer(q)).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let Sides { x, y, rank } = Sides::recognize(&self.0, q)?;
        let last = channels_last(rank)?;
        Some([x, y].into_iter().map(|v| self.0.turned(q, v, &last)).sum())
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        write(piece).ok_or_else(|| Refused::new(piece, "can't stand between two Transposes"))
    }
}

/// The features that an op reads and leaves.
struct Sides {
    x: ValueId,
    y: ValueId,
    rank: usize,
}

impl Sides {
    fn recognize(rates: &Rates, q: &NodeQuery<'_>) -> Option<Sides> {
        let node = q.graph.node(q.node);
        let (x, y) = (node.operand(0)?, only_result(node)?);
        let rank = q.graph.value(x).ty.rank()?;
        let same = q.graph.value(y).ty.rank() == Some(rank);
        let bytes = matches!(q.graph.value(x).ty.dtype(), Some(DType::U8 | DType::I8));
        let kernel = !(bytes && rates.provider.device.float_kernels);
        let wrapped = kernel && node.onnx().is_some_and(|op| rates.provider.wraps(op));
        (same && wrapped && !q.in_body && RANKS.contains(&rank) && is_taken(node)).then_some(Sides { x, y, rank })
    }

    fn offer(&self, q: &NodeQuery<'_>) -> Offer {
        let last = channels_last(self.rank);
        let mut ins = vec![None; q.graph.node(q.node).inputs.len()];
        if let Some(first) = ins.first_mut() {
            first.clone_from(&last);
        }
        let layouts = KernelLayouts { ins, outs: vec![last] };
        Offer { form: FORM, layouts, cost: Cost::ZERO, becomes: None, adds_zeros: false }
    }
}

/// Whether the runtime can run the op channels last. It moves Transposes through a Resize on load, and its own kernels filter with
/// cubics in the two inner axes only.
fn is_taken(node: &Node) -> bool {
    match node.onnx() {
        Some("Resize") => node.ints("axes").is_none() && node.str("mode") != Some("cubic"),
        Some("BatchNormalization") => !node.flag("training_mode") && int_or_default(node, "spatial") == Some(1),
        _ => true,
    }
}

/// Channels last, at any rank of features.
pub(super) fn channels_last(rank: usize) -> Option<Layout> {
    let axes: Vec<usize> = std::iter::once(0).chain(2..rank).chain([1]).collect();
    Layout::permutation(&axes).ok()
}

/// The order of axes that brings channels to the end.
pub(super) fn to_last(rank: usize) -> Vec<i64> {
    std::iter::once(0).chain(2..rank).chain([1]).map(|axis| i64::try_from(axis).unwrap_or(0)).collect()
}

/// The order of axes that brings channels from the end.
pub(super) fn to_first(rank: usize) -> Vec<i64> {
    [0, rank - 1].into_iter().chain(1..rank - 1).map(|axis| i64::try_from(axis).unwrap_or(0)).collect()
}

/// Whether a node is one of the Transposes of this form: the same features on both sides, channels first and last.
pub(super) fn is_wrapper(graph: &Graph, node: &Node) -> bool {
    let sides = node.operand(0).zip(node.result(0));
    let same = |x: ValueId, y: ValueId| graph.value(x).ty == graph.value(y).ty;
    let turns = sides.is_some_and(|(x, y)| same(x, y) && is_last(graph, x) != is_last(graph, y));
    node.onnx() == Some("Transpose") && matches!(node.form, form::Form::Kernel(_)) && turns
}

/// Whether features lie channels last.
pub(super) fn is_last(graph: &Graph, v: ValueId) -> bool {
    let layout = &graph.value(v).layout;
    !layout.is_row_major() && channels_last(layout.rank()).is_some_and(|last| *layout == last)
}

fn write(piece: &Piece<'_>) -> Option<Fragment> {
    let (graph, node) = (piece.graph, piece.graph.node(piece.node));
    let (x, y) = (node.operand(0)?, only_result(node)?);
    let [read, left] = [x, y].map(|v| &graph.value(v).ty);
    let stored = piece.layouts.outs.first().cloned().flatten()?;
    let rank = left.rank()?;
    let mut made = Fragment::new(piece, FORM);
    // Not moves to be optimized: also where no byte changes place the runtime puts a Transpose there, which only a Transpose meets.
    let first = Made::op("", "Transpose", 0, [x.into()]).with("perm", Attr::Ints(to_first(rank)));
    let first = first.in_layouts(vec![Some(stored.clone())], Vec::new());
    let first = made.add(first, Left::row_major(made.named("channels_first"), read.clone()));
    let op = Made::same(piece).reading(0, first).in_layouts(Vec::new(), Vec::new());
    made.become_op_of(op, left.clone(), Layout::row_major(rank));
    let back = Made::op("", "Transpose", 0, [Operand::Outer(y)]).with("perm", Attr::Ints(to_last(rank)));
    let back = back.in_layouts(Vec::new(), vec![Some(stored.clone())]);
    let back = made.add(back, Left::row_major(made.named("channels_last"), left.clone()).stored(stored));
    made.exit(y, back);
    Some(made)
}
