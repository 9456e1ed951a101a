//! DepthToSpace and SpaceToDepth of blocked images: one Transpose that moves whole blocks. `[N, C, H, W]` is declared with all its
//! digits, `[N, r, r, C/B, H, W, B]` where channels are deep, `[N, C/B, H, r, W, r, B]` where pixels are many. A Reshape back declares
//! the result as the other blocked ops have it.
//!
//! Channels have to be the innermost digit of the depth, as SpaceToDepth and mode DCR have them. `order_depth` makes that of mode CRD.

use crate::ort_cpu::machine::{Machine, image};
use crate::ort_cpu::nodes::reshaped;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::is_depth_first;
use relayout_ir::types::Type;
use relayout_target::{Cost, Form, Fragment, Left, Made, NodeQuery, Offer, Piece, Refused};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_depth";

/// Bytes of an element.
const WIDTH: u64 = 4;

/// What the ops of ONNX Runtime take, in eighths of what its Transpose takes for the same permutation, element by element. Measured
/// with ONNX Runtime 1.31.1 on images of 12 to 96 pixels a side and 64 to 576 channels, factors 2 and 3: 0.25 to 0.45 for both modes
/// of DepthToSpace, the less the larger, and 0.12 to 0.15 for SpaceToDepth.
const EIGHTHS: [(&str, u64); 2] = [("DepthToSpace", 3), ("SpaceToDepth", 1)];

/// DepthToSpace and SpaceToDepth of blocked images.
pub(super) struct Depths(pub(super) Arc<Machine>);

impl Form for Depths {
    fn name(&self) -> &'static str {
        FORM
    }

    fn of(&self) -> &'static [&'static str] {
        &["DepthToSpace", "SpaceToDepth"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.offer(q).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let node = q.graph.node(q.node);
        let (deep, factor) = deep(node)?;
        let [n, c, h, w] = image(q, deep)?;
        let channels = c.checked_div(factor.checked_mul(factor)?)?;
        let (_, eighths) = EIGHTHS.into_iter().find(|(op, _)| node.onnx() == Some(op))?;
        let ns = self.0.costs.transpose_ns(&[n, factor, factor, channels, h, w], &[0, 3, 4, 1, 5, 2], WIDTH);
        Some(Cost::new(ns.saturating_mul(eighths) / 8))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let unfolded = Unfolded::of(piece.graph, piece.node, self.0.block.channels());
        let unfolded = unfolded.ok_or_else(|| Refused::new(piece, "can't be written of blocks"))?;
        unfolded.write(piece).ok_or_else(|| Refused::new(piece, "has no layout of its result"))
    }
}

impl Depths {
    fn offer(&self, q: &NodeQuery<'_>) -> Option<Offer> {
        let node = q.graph.node(q.node);
        let unfolded = Unfolded::of(q.graph, q.node, self.0.block.channels())?;
        let (deep, factor) = deep(node)?;
        // Both are images of float32.
        let ([n, _, h, w], [_, channels, ..]) = (image(q, deep)?, image(q, wide(node)?)?);
        let block = self.0.block.channels();
        let digits = [n, factor, factor, channels / block, h, w, block];
        let extents = if unfolded.spreads { digits } else { [n, channels / block, h, factor, w, factor, block] };
        if extents.contains(&0) {
            return None;
        }
        let ns = self.0.costs.transpose_ns(&extents, unfolded.perm().map(|axis| axis as usize).as_slice(), WIDTH);
        let blocked = || vec![Some(self.0.blocked())];
        let layouts = KernelLayouts { ins: blocked(), outs: blocked() };
        let cost = Cost::new(ns) + self.0.small_node().times(2);
        Some(Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false })
    }
}

/// The value whose channels hold pixels, and how many pixels a side they hold.
fn deep(node: &Node) -> Option<(ValueId, u64)> {
    let factor = node.int("blocksize").and_then(|size| u64::try_from(size).ok()).filter(|&size| size > 0)?;
    let v = if node.onnx() == Some("DepthToSpace") { node.operand(0) } else { node.result(0) };
    Some((v?, factor))
}

/// The value with more pixels.
fn wide(node: &Node) -> Option<ValueId> {
    if node.onnx() == Some("DepthToSpace") { node.result(0) } else { node.operand(0) }
}

/// Such an op by the digits of blocks.
struct Unfolded {
    x: ValueId,
    /// Whether channels become pixels.
    spreads: bool,
    /// Extents of the digits of the operand, and of the result.
    from: Vec<Dim>,
    to: Vec<Dim>,
    /// Those of the result as it is.
    result: Vec<Dim>,
}

impl Unfolded {
    /// Where the channels that stay channels are whole blocks, at most one extent is unknown, and the op does something.
    fn of(graph: &Graph, n: NodeId, block: u64) -> Option<Unfolded> {
        let node = graph.node(n);
        let spreads = node.onnx() == Some("DepthToSpace");
        let (depth, factor) = deep(node)?;
        let shape = |v: ValueId| <&[Dim; 4]>::try_from(graph.value(v).ty.shape()?).ok();
        let [batch, _, h, w] = shape(depth)?;
        let [_, channels, ..] = shape(wide(node)?)?;
        let channels = u64::try_from(channels.as_const()?).ok().filter(|c| *c > 0 && c.is_multiple_of(block))?;
        let number = |x: u64| i64::try_from(x).ok().map(Dim::from);
        let (r, c, b) = (number(factor)?, number(channels / block)?, number(block)?);
        let deep = [batch, &r, &r, &c, h, w, &b].map(Dim::clone).to_vec();
        let wide = [batch, &c, h, &r, w, &r, &b].map(Dim::clone).to_vec();
        let (from, to) = if spreads { (deep, wide) } else { (wide, deep) };
        let result = shape(node.result(0)?)?.to_vec();
        let fits = factor > 1
            && (!spreads || is_depth_first(node))
            && [&from, &result].into_iter().all(|d| numbers(d).is_some());
        fits.then_some(Unfolded { x: node.operand(0)?, spreads, from, to, result })
    }

    /// Where each digit of the result stands in the operand.
    fn perm(&self) -> [i64; 7] {
        if self.spreads { [0, 3, 4, 1, 5, 2, 6] } else { [0, 3, 5, 1, 2, 4, 6] }
    }

    /// A Reshape to digits, a Transpose, and a Reshape back.
    fn write(self, piece: &Piece<'_>) -> Option<Fragment> {
        let blocked = piece.layouts.outs.first()?.clone()?;
        let (graph, opset) = (piece.graph, piece.graph.node(piece.node).opset);
        let mut made = Fragment::of(piece, FORM);
        let (perm, target) = (self.perm(), numbers(&self.from)?);
        let x = reshaped(&mut made, graph, self.x, &target, self.from);
        let left = Left::row_major(made.named("digits"), Type::tensor(DType::F32, self.to));
        let moved = Made::op("", "Transpose", opset, [x]).with("perm", Attr::Ints(perm.to_vec()));
        let moved = made.add(moved, left);
        let back = made.reshape(graph, moved, &numbers(&self.result)?, &blocked);
        made.become_op(back);
        Some(made)
    }
}

/// Extents as a Reshape takes them, of which one may be unknown.
fn numbers(dims: &[Dim]) -> Option<Vec<i64>> {
    let unknown = dims.iter().filter(|d| d.as_const().is_none()).count();
    (unknown < 2).then(|| dims.iter().map(|d| d.as_const().unwrap_or(-1)).collect())
}
