//! `DepthToSpace` and `SpaceToDepth` of blocked images: one Transpose that moves whole blocks. `[N, C, H, W]` is declared with all
//! its digits, `[N, r, r, C/B, H, W, B]` where channels are deep, `[N, C/B, H, r, W, r, B]` where pixels are many. A Reshape back
//! declares the result as the other blocked ops have it. It is told one unknown extent by -1, and two or more by what a few small
//! nodes compute.
//!
//! Channels have to be the innermost digit of the depth, as `SpaceToDepth` and mode DCR have them. `order_depth` makes that of mode
//! CRD.

use crate::ort_cpu::machine::{Machine, image};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::is_depth_first;
use relayout_ir::types::Type;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_depth";

/// Bytes of an element.
const WIDTH: u64 = 4;

/// What the ops of ONNX Runtime take, in eighths of what its Transpose takes for the same permutation, element by element. Measured
/// with ONNX Runtime 1.31.1 on images of 12 to 96 pixels a side and 64 to 576 channels, factors 2 and 3: 0.25 to 0.45 for both
/// modes of `DepthToSpace`, the less the larger, and 0.12 to 0.15 for `SpaceToDepth`.
const EIGHTHS: [(&str, u64); 2] = [("DepthToSpace", 3), ("SpaceToDepth", 1)];

/// Nodes that compute what both Reshapes are told.
const COMPUTED: u64 = 5;

/// The first version in which numbers of 64 bits are multiplied and divided.
const INTEGERS_SINCE: i64 = 7;

/// The first version in which a Reshape can be told that an image is empty.
const EMPTY_SINCE: i64 = 14;

/// `DepthToSpace` and `SpaceToDepth` of blocked images.
pub(super) struct Depths(pub(super) Arc<Machine>);

impl TargetForm for Depths {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
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
        let ns = self.0.costs.transpose_alone(&[n, factor, factor, channels, h, w], &[0, 3, 4, 1, 5, 2], WIDTH);
        Some(Cost::new(ns.saturating_mul(eighths) / 8))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let unfolded = Unfolded::recognize(piece.graph, piece.node, self.0.block.channels());
        let unfolded = unfolded.ok_or_else(|| Refused::new(piece, "can't be written of blocks"))?;
        let mut made = Fragment::new(piece, FORM);
        unfolded.write(piece, &mut made).ok_or_else(|| Refused::new(piece, "has no layout of its result"))?;
        Ok(made)
    }
}

impl Depths {
    fn offer(&self, q: &NodeQuery<'_>) -> Option<Offer> {
        let node = q.graph.node(q.node);
        let unfolded = Unfolded::recognize(q.graph, q.node, self.0.block.channels())?;
        let (deep, _) = deep(node)?;
        // Both are images of float32.
        let ([n, _, h, w], [_, channels, ..]) = (image(q, deep)?, image(q, wide(node)?)?);
        let cost = unfolded.cost(&self.0, [n, channels, h, w])?;
        let blocked = || vec![Some(self.0.blocked())];
        let layouts = KernelLayouts { ins: blocked(), outs: blocked() };
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

/// What a value has of which channels hold pixels.
pub(super) struct Deep<'d> {
    /// Batch, rows and columns.
    pub(super) sizes: [&'d Dim; 3],
    /// Pixels a side that channels hold.
    pub(super) factor: u64,
    /// Blocks of the channels that stay channels, and channels of a block.
    pub(super) blocks: u64,
    pub(super) block: u64,
}

/// Such an op by the digits of blocks.
pub(super) struct Unfolded {
    x: Operand,
    /// Whether channels become pixels.
    spreads: bool,
    /// Pixels a side that channels hold, blocks of the channels that stay, and channels of a block.
    factor: i64,
    blocks: i64,
    block: i64,
    /// Extents of the digits of the operand, and of the result.
    from: Vec<Dim>,
    to: Vec<Dim>,
    /// Extents of the result as it is.
    result: Vec<Dim>,
}

impl Unfolded {
    /// Where the channels that stay channels are whole blocks, and the op does something.
    fn recognize(graph: &Graph, n: NodeId, block: u64) -> Option<Unfolded> {
        let node = graph.node(n);
        let spreads = node.onnx() == Some("DepthToSpace");
        let (depth, factor) = deep(node)?;
        let shape = |v: ValueId| <&[Dim; 4]>::try_from(graph.value(v).ty.shape()?).ok();
        let [batch, _, h, w] = shape(depth)?;
        let [_, channels, ..] = shape(wide(node)?)?;
        let channels = u64::try_from(channels.as_const()?).ok().filter(|c| *c > 0 && c.is_multiple_of(block))?;
        let result = shape(node.result(0)?)?.to_vec();
        let deep = Deep { sizes: [batch, h, w], factor, blocks: channels / block, block };
        let unfolded = Unfolded::new(node.operand(0)?.into(), spreads, &deep, result, node.opset)?;
        (factor > 1 && is_depth_first(node)).then_some(unfolded)
    }

    /// The move of an operand to this shape; `None` where an operator set can't say it.
    pub(super) fn new(x: Operand, spreads: bool, deep: &Deep<'_>, result: Vec<Dim>, opset: i64) -> Option<Unfolded> {
        let number = |x: u64| i64::try_from(x).ok();
        let (factor, blocks, block) = (number(deep.factor)?, number(deep.blocks)?, number(deep.block)?);
        let [r, c, b] = [factor, blocks, block].map(Dim::from);
        let [batch, h, w] = deep.sizes;
        let deep = [batch, &r, &r, &c, h, w, &b].map(Dim::clone).to_vec();
        let wide = [batch, &c, h, &r, w, &r, &b].map(Dim::clone).to_vec();
        let (from, to) = if spreads { (deep, wide) } else { (wide, deep) };
        let unfolded = Unfolded { x, spreads, factor, blocks, block, from, to, result };
        (unfolded.is_told() || opset >= INTEGERS_SINCE).then_some(unfolded)
    }

    /// What the nodes cost at these extents: batch, channels that stay channels, rows and columns of the deep value.
    pub(super) fn cost(&self, machine: &Machine, [n, channels, h, w]: [u64; 4]) -> Option<Cost> {
        let block = machine.block.channels();
        let (blocks, factor) = (channels / block, self.factor.unsigned_abs());
        let deep = [n, factor, factor, blocks, h, w, block];
        let extents = if self.spreads { deep } else { [n, blocks, h, factor, w, factor, block] };
        if extents.contains(&0) {
            return None;
        }
        let ns = machine.costs.transpose_ns(&extents, self.perm().map(|axis| axis as usize).as_slice(), WIDTH);
        Some(Cost::new(ns) + machine.small_node().times(if self.is_told() { 2 } else { 2 + COMPUTED }))
    }

    /// Whether numbers say to which extents it is reshaped.
    fn is_told(&self) -> bool {
        numbers(&self.from).is_some() && numbers(&self.result).is_some()
    }

    /// Where each digit of the result stands in the operand.
    fn perm(&self) -> [i64; 7] {
        if self.spreads { [0, 3, 4, 1, 5, 2, 6] } else { [0, 3, 5, 1, 2, 4, 6] }
    }

    /// A Reshape to digits, a Transpose, and a Reshape back, which the piece's node becomes.
    pub(super) fn write(self, piece: &Piece<'_>, made: &mut Fragment) -> Option<()> {
        let blocked = piece.layouts.outs.first()?.clone()?;
        let opset = piece.graph.node(piece.node).opset;
        let told = numbers(&self.from).zip(numbers(&self.result));
        let may_be_empty = told.is_none() && opset >= EMPTY_SINCE;
        let [digits, whole] = match told {
            Some((digits, whole)) => [ints(made, "unfolded.shape", &digits), ints(made, "shape", &whole)],
            None => self.computed(made, &blocked, opset),
        };
        let reshape = |x: Operand, target: Operand| {
            let reshape = Made::op("", "Reshape", 0, [x, target]);
            if may_be_empty { reshape.with("allowzero", Attr::Int(1)) } else { reshape }
        };
        let x = reshape(self.x, digits).in_layouts(vec![Some(blocked.clone())], Vec::new());
        let from = Left::row_major(made.named("unfolded"), Type::tensor(DType::F32, self.from.clone()));
        let x = made.add(x, from);
        let to = Left::row_major(made.named("digits"), Type::tensor(DType::F32, self.to.clone()));
        let moved = made.add(Made::op("", "Transpose", opset, [x]).with("perm", Attr::Ints(self.perm().into())), to);
        made.become_op(reshape(moved, whole).in_layouts(Vec::new(), vec![Some(blocked)]));
        Some(())
    }

    /// The extents of the operand's digits and those of the result, computed from the extents of the operand.
    fn computed(&self, made: &mut Fragment, blocked: &Layout, opset: i64) -> [Operand; 2] {
        let Unfolded { factor, blocks, block, .. } = *self;
        let node = |made: &mut Fragment, name: &str, op: &str, inputs: &[Operand], extents: i64| {
            let ty = Type::tensor(DType::I64, vec![Dim::from(extents)]);
            let node = Made::op("", op, opset, inputs.iter().copied());
            let node = match op {
                "Shape" => node.in_layouts(vec![Some(blocked.clone())], Vec::new()),
                "Concat" => node.with("axis", Attr::Int(0)),
                _ => node,
            };
            made.add(node, Left::row_major(made.named(name), ty))
        };
        let sides = ints(made, "sides", &[1, 1, factor, factor]);
        let pixels = ints(made, "pixels", &[1, factor.saturating_mul(factor), 1, 1]);
        let digits = ints(made, "factor_and_blocks", &[factor, blocks, block]);
        let sizes = node(made, "sizes", "Shape", &[self.x], 4);
        // The extents that all digits but those three have: of the value with fewer pixels.
        let (outer, whole, places) = if self.spreads {
            let grown = node(made, "grown", "Mul", &[sizes, sides], 4);
            (sizes, node(made, "shape", "Div", &[grown, pixels], 4), [0, 4, 4, 5, 2, 3, 6])
        } else {
            let cut = node(made, "cut", "Div", &[sizes, sides], 4);
            (cut, node(made, "shape", "Mul", &[cut, pixels], 4), [0, 5, 2, 4, 3, 4, 6])
        };
        let all = node(made, "extents", "Concat", &[outer, digits], 7);
        let places = ints(made, "places", &places);
        [node(made, "unfolded.shape", "Gather", &[all, places], 7), whole]
    }
}

/// A list of numbers, named after the piece's result and `what`.
fn ints(made: &mut Fragment, what: &str, list: &[i64]) -> Operand {
    made.constant(made.named(what), Constant::ints(list))
}

/// Extents as a Reshape takes them, of which one may be unknown.
fn numbers(dims: &[Dim]) -> Option<Vec<i64>> {
    let unknown = dims.iter().filter(|d| d.as_const().is_none()).count();
    (unknown < 2).then(|| dims.iter().map(|d| d.as_const().unwrap_or(-1)).collect())
}
