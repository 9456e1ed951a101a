//! Pad and Slice of anything but the channels of a blocked image, declared with all its digits: `[N, C, H, W]` is `[N, C/B, H, W, B]`,
//! byte by byte. The op then speaks of these axes, and a Reshape back declares the result as the other blocked ops have it. A signal
//! has no rows.

use crate::ort_cpu::costs::Copy;
use crate::ort_cpu::machine::{Machine, image_of};
use crate::ort_cpu::nodes::reshaped;
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::{Cut, Fill, Padding, Place, cuts, fill, paddings, place_of, zero_padding};
use relayout_ir::storage::{ImageAxes, axes_in_runs};
use relayout_ir::types::Type;
use relayout_target_api::{
    Candidates, Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm,
};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_digits";

/// Pad and Slice of blocked images.
pub(super) struct Digits(pub(super) Arc<Machine>);

impl TargetForm for Digits {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Pad", "Slice"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        ImageAxes::ORIGINS.into_iter().filter_map(|axes| self.offer(q, axes, None)).collect()
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.0.among_runs(q, candidates, |axes, map| self.offer(q, axes, Some(map)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let of = |axes| self.unfolded(q, axes, None);
        let (unfolded, [n, c, h, w]) = ImageAxes::ORIGINS.into_iter().find_map(of)?;
        let bytes = [n, c, h, w].into_iter().fold(WIDTH, u64::saturating_mul);
        let (kind, run) = match (unfolded.axes.c == 1, unfolded.is_scattered()) {
            (true, true) => (Copy::StridedSlice, w),
            (true, false) => (unfolded.kind(), w),
            (false, true) => (unfolded.kind(), c),
            (false, false) => (unfolded.kind(), w.saturating_mul(c)),
        };
        Some(Cost::new(self.0.costs.copy_ns(kind, bytes, run.saturating_mul(WIDTH))))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let blocked = piece.layouts.outs.first().cloned().flatten();
        let unfolded = blocked.and_then(|blocked| Unfolded::recognize(piece.graph, piece.node, blocked));
        let unfolded = unfolded.ok_or_else(|| Refused::new(piece, "can't be written of blocks"))?;
        Ok(unfolded.write(piece))
    }
}

/// Bytes of an element.
const WIDTH: u64 = 4;

impl Digits {
    /// The offer for an image whose axes stand there, and the pad slots of its channels.
    fn offer(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<Offer> {
        let (unfolded, [n, c, h, w]) = self.unfolded(query, axes, runs)?;
        let pixel = self.0.block.channels().saturating_mul(WIDTH);
        let run = if unfolded.is_scattered() { pixel } else { pixel.saturating_mul(w) };
        let bytes = [n, self.0.round(slots_of(c, runs)), h, w].into_iter().fold(WIDTH, u64::saturating_mul);
        let cost = Cost::new(self.0.costs.copy_ns(unfolded.kind(), bytes, run)) + self.0.small_node().times(2);
        let blocked = Some(unfolded.blocked);
        let mut ins = vec![None; query.graph.node(query.node).inputs.len()];
        if let Some(x) = ins.first_mut() {
            x.clone_from(&blocked);
        }
        let layouts = KernelLayouts { ins, outs: vec![blocked] };
        Some(Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false })
    }

    /// What such an op says of digits where that is no harm, and the extents of its result.
    fn unfolded(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<(Unfolded, [u64; 4])> {
        let (graph, node) = (query.graph, query.graph.node(query.node));
        let image = image_of(query, node.result(0)?, axes)?;
        let [_, c, ..] = image_of(query, node.operand(0)?, axes)?;
        let unfolded = Unfolded::recognize(graph, query.node, self.0.blocked_runs(axes, runs)?)?;
        // Pad slots are filled as well.
        let whole = c == image[1] && c.is_multiple_of(self.0.block.channels()) && runs.is_none();
        let finite = match fill(graph, node) {
            Fill::Number(x) => x.is_finite(),
            Fill::Computed => false,
            Fill::Copies => true,
        };
        let harmless = whole || finite || matches!(unfolded.told, Told::Cuts(_));
        (harmless && !image.contains(&0)).then_some((unfolded, image))
    }
}

/// An op, and what it is told of the digits of its operand.
struct Unfolded {
    x: ValueId,
    axes: ImageAxes,
    blocked: Layout,
    /// Blocks of channels, and channels of each.
    blocks: i64,
    block: i64,
    /// Extents of operand and result, a dim per digit.
    from: Vec<Dim>,
    to: Vec<Dim>,
    told: Told,
}

/// Numbers that are told of digits.
enum Told {
    Pads(Pads),
    /// Of each axis that is cut: first element, end, digit, step.
    Cuts([Vec<i64>; 4]),
}

/// What is added before every digit, then behind every digit.
enum Pads {
    Known(Vec<i64>),
    /// Entries of a list that is computed.
    Picked(ValueId, Vec<i64>),
}

/// No element.
const NONE: (Padding, Padding) = (Padding::Known(0), Padding::Known(0));

impl Pads {
    /// What a Pad of an image or a signal is told, whose axes stand there.
    fn recognize(graph: &Graph, node: &Node, axes: ImageAxes) -> Option<Pads> {
        let pads = paddings(graph, node).filter(|_| node.opset > 1)?;
        (*pads.get(axes.c)? == NONE && pads.iter().any(|p| *p != NONE)).then_some(())?;
        let digits = axes.first().into_iter().map(|axis| pads.get(axis).copied().unwrap_or(NONE)).chain([NONE]);
        let (before, after): (Vec<_>, Vec<_>) = digits.unzip();
        let all = || before.iter().chain(&after);
        let known = |p: &Padding| if let Padding::Known(elements) = p { Some(*elements) } else { None };
        if let Some(pads) = all().map(known).collect() {
            return Some(Pads::Known(pads));
        }
        // What is computed is picked from the list, the zeros of the digits as well.
        let zero = zero_padding(graph, node)?;
        let list = node.operand(1)?;
        let contents = graph.value(list).contents.as_ref()?;
        let entry = |p: &Padding| match p {
            Padding::Listed(at) => Some(*at),
            Padding::Known(0) => Some(zero),
            Padding::Known(elements) => contents.iter().position(|d| *d == Dim::from(*elements)),
        };
        let picks = all().map(|p| i64::try_from(entry(p)?).ok()).collect::<Option<_>>()?;
        Some(Pads::Picked(list, picks))
    }
}

impl Told {
    fn recognize(graph: &Graph, node: &Node, axes: ImageAxes) -> Option<Told> {
        if node.onnx() == Some("Pad") {
            return Pads::recognize(graph, node, axes).map(Told::Pads);
        }
        let cuts = cuts(graph, node)?;
        let digit = |axis: usize| axes.first().iter().position(|&a| a == axis).map(|digit| digit as i64);
        let digits = cuts.iter().map(|cut| digit(cut.axis).filter(|_| cut.axis != axes.c)).collect::<Option<_>>()?;
        let of = |what: fn(&Cut) -> i64| cuts.iter().map(what).collect::<Vec<_>>();
        Some(Told::Cuts([of(|cut| cut.start), of(|cut| cut.end), digits, of(|cut| cut.step)]))
    }
}

impl Unfolded {
    fn recognize(graph: &Graph, n: NodeId, blocked: Layout) -> Option<Unfolded> {
        let node = graph.node(n);
        let (x, y) = (node.operand(0)?, node.result(0)?);
        let (axes, block) = axes_in_runs(&blocked)?;
        let channels = u64::try_from(graph.value(x).ty.shape()?.get(axes.c)?.as_const()?).ok()?;
        let blocks = slots_of(channels, blocked.slot_map(axes.c)).div_ceil(block) as i64;
        let block = block as i64;
        let digits = |v: ValueId| -> Option<Vec<Dim>> {
            let shape = graph.value(v).ty.shape()?;
            let mut dims: Vec<Dim> =
                axes.first().iter().map(|&axis| shape.get(axis).cloned()).collect::<Option<_>>()?;
            dims[1] = Dim::from(blocks);
            dims.push(Dim::from(block));
            Some(dims)
        };
        let told = Told::recognize(graph, node, axes)?;
        Some(Unfolded { x, axes, blocks, block, from: digits(x)?, to: digits(y)?, told, blocked })
    }

    fn kind(&self) -> Copy {
        if matches!(self.told, Told::Pads(_)) { Copy::Pad } else { Copy::Slice }
    }

    /// Whether rows are copied pixel by pixel.
    fn is_scattered(&self) -> bool {
        let columns = self.axes.rank() as i64 - 1;
        let Told::Cuts([_, _, digits, steps]) = &self.told else { return false };
        digits.iter().zip(steps).any(|(&digit, &step)| digit == columns && step != 1)
    }

    /// A Reshape to digits, the op, and a Reshape back.
    fn write(self, piece: &Piece<'_>) -> Fragment {
        let (graph, node) = (piece.graph, piece.graph.node(piece.node));
        let mut made = Fragment::new(piece, FORM);
        let mut target = vec![0; self.from.len()];
        target[1] = self.blocks;
        target[self.blocked.rank()] = self.block;
        let x = reshaped(&mut made, graph, self.x, &target, self.from);
        let mut op = Made::op("", node.onnx().unwrap_or_default(), node.opset, [x]);
        match self.told {
            Told::Pads(pads) => pads.tell(&mut made, &mut op, piece),
            Told::Cuts(lists) => {
                for (name, list) in ["starts", "ends", "axes", "steps"].into_iter().zip(lists) {
                    made.tell(&mut op, name, &list, node.opset);
                }
            }
        }
        let left = Left::row_major(made.named("digits"), Type::tensor(DType::F32, self.to));
        let cut = made.add(op, left);
        let (slots, rest) = (self.blocks * self.block, self.blocked.rank() - 2);
        let target: Vec<i64> = [0, slots].into_iter().chain(std::iter::repeat_n(0, rest)).collect();
        let back = made.reshape(graph, cut, &target, &self.blocked);
        made.become_op(back);
        made
    }
}

impl Pads {
    /// Tells a Pad of digits these numbers, and what the piece's Pad is told beside its own.
    fn tell(self, made: &mut Fragment, op: &mut Made, piece: &Piece<'_>) {
        let node = piece.graph.node(piece.node);
        let others = node.attrs.iter().filter(|(name, _)| *name != "pads");
        op.attrs.extend(others.map(|(name, attr)| (name.clone(), attr.clone())));
        match self {
            Pads::Known(pads) => made.tell(op, "pads", &pads, node.opset),
            Pads::Picked(list, picks) => {
                let name = format!("{}.digits", piece.graph.value(list).name);
                let places = made.constant(format!("{name}.places"), Constant::ints(&picks));
                let ty = Type::tensor(DType::I64, vec![Dim::from(picks.len() as i64)]);
                let gather = Made::op("", "Gather", node.opset, [Operand::Outer(list), places]);
                op.inputs.push(Some(made.add(gather, Left::row_major(name, ty))));
            }
        }
        if let (Place::Operand(_), Some(fill)) = (place_of("Pad", "value", node.opset), node.operand(2)) {
            op.inputs.push(Some(Operand::Outer(fill)));
        }
    }
}
