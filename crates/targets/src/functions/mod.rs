//! Targets of domain `relayout`: standard ops in channels-last or blocked layouts, each with a function body in standard ONNX.
//!
//! What differs between these targets is data: which layouts features and weights have, by element type and rank; how many
//! channels a kernel takes at a time; what things cost. Which ops have kernels, and what these need, is the same for all: a
//! convolution, a pool or another op that finds its axes by position becomes `relayout::OP` of operands that are stored so.
//!
//! A standard op on features is priced as its kernel and so many moves of its operands and results: it is what a runtime has to
//! do that knows the kernels only. Convolutions pay more than the two moves around a kernel, so they always gain; other ops
//! pay less than two, so they stay in the layout that is there and are not moved for their own sake.
//!
//! Invariants: padding slots of weights and biases are zeros, so whoever pads knows them at compile time; a move that changes slots
//! is offered only where the dialect has a function for it.

mod convolution;
mod data;
mod features;
pub mod gpu;
mod matrix;

use crate::TargetError;
use crate::shared::data::Rates;
use crate::shared::forms::packed::PackedHeads;
use crate::shared::forms::product::only_result;
use data::{Data, Features};
use gpu::{GpuCosts, MoveClass};
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::op::LAST_OPSET;
use relayout_target_api::{
    Become, Capabilities, Cost, MoveKind, MoveQuery, NodeQuery, Offer, OpQuery, Target, TargetForm,
};
use std::sync::Arc;

/// Domain of the functions.
pub(crate) const DOMAIN: &str = "relayout";
/// Version of the domain.
const VERSION: i64 = 1;
/// The first operator set that function bodies are written in.
const FIRST_OPSET: i64 = 7;
/// The first operator set in which a move can fill and crop slots.
const FIRST_PADDING_OPSET: i64 = 12;

/// The data of target `cuda-tensorcore`.
pub(crate) const CUDA_TENSORCORE: &str = include_str!("cuda-tensorcore.toml");

/// A target of domain `relayout`, as a data file describes it.
#[derive(Clone)]
pub struct FunctionTarget {
    calls: Arc<Calls>,
    forms: Arc<[Box<dyn TargetForm>]>,
}

impl FunctionTarget {
    /// Reads a target file of dialect `relayout`.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] with the place.
    pub fn parse(name: &str, text: &str) -> Result<FunctionTarget, TargetError> {
        Ok(FunctionTarget::of(Calls { data: Data::parse(name, text)?, costs: None }))
    }

    /// Target `cuda-tensorcore` with costs that were measured in place of the built-in model; its files say where in their metadata.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] if the built-in data does not read.
    pub fn measured(costs: GpuCosts) -> Result<FunctionTarget, TargetError> {
        let mut data = Data::parse("cuda-tensorcore", CUDA_TENSORCORE)?;
        data.rates = data.rates.measured(costs.machine().node_ns, costs.bytes_per_ns());
        data.source = costs.source();
        Ok(FunctionTarget::of(Calls { data, costs: Some(costs) }))
    }

    fn of(calls: Calls) -> FunctionTarget {
        let calls = Arc::new(calls);
        let forms: Vec<Box<dyn TargetForm>> = vec![
            Box::new(convolution::Convolutions(Arc::clone(&calls))),
            Box::new(matrix::Products),
            Box::new(features::OnFeatures(Arc::clone(&calls))),
            Box::new(PackedHeads(calls.rates().view)),
        ];
        FunctionTarget { calls, forms: forms.into() }
    }
}

/// What the forms of such a target share: its data, and what was measured in place of it.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    data: Data,
    costs: Option<GpuCosts>,
}

impl Calls {
    fn rates(&self) -> &Rates {
        &self.data.rates
    }

    /// Layouts that features of this type and rank may have.
    fn layouts_of(&self, dtype: DType, rank: usize) -> impl Iterator<Item = &Features> {
        self.data.features.iter().filter(move |f| f.takes(dtype, rank))
    }

    /// What moves of these values would cost.
    fn moves(&self, query: &NodeQuery<'_>, values: impl Iterator<Item = ValueId>) -> Cost {
        values.filter(|&v| !(query.is_constant)(v)).map(|v| self.rates().permute(bytes(query, v))).sum()
    }

    /// What a move costs: by its class where classes were measured.
    fn permute(&self, query: &MoveQuery<'_>) -> Cost {
        let Some(costs) = &self.costs else { return self.rates().permute(query.bytes) };
        let elem_bytes = query.dtype.and_then(|dtype| dtype.bytes(1)).unwrap_or(1);
        let class = MoveClass::classify(query.from, query.to, query.shape, elem_bytes);
        Cost::new(costs.move_ns(class, query.bytes))
    }

    /// What a standard op costs for which there are these offers: the cheapest of them, and so many moves of its operands and results.
    fn standard(&self, query: &NodeQuery<'_>, offers: &[Offer], moves_percent: u64) -> Option<Cost> {
        let node = query.graph.node(query.node);
        let cheapest = offers.iter().map(|offer| offer.cost).min()?;
        let moved = node.inputs.iter().flatten().chain(node.outputs.iter().flatten()).copied();
        Some(cheapest + self.moves(query, moved).percent(moves_percent))
    }

    /// Cost of a pass over the features of a node.
    fn pass(&self, query: &NodeQuery<'_>) -> Cost {
        let node = query.graph.node(query.node);
        let sides = node.inputs.first().into_iter().chain(node.outputs.first()).copied().flatten();
        self.rates().pass(sides.map(|v| bytes(query, v)).fold(0, u64::saturating_add))
    }
}

/// Bytes of a value at the size hints; 0 for what has no shape.
fn bytes(query: &NodeQuery<'_>, v: ValueId) -> u64 {
    let dtype = query.graph.value(v).ty.dtype();
    let elems = query.sizes.shape(query.graph, v).map(|s| s.iter().fold(1u64, |a, &b| a.saturating_mul(b)));
    dtype.zip(elems).and_then(|(dtype, elems)| dtype.bytes(elems)).unwrap_or(0)
}

/// The extent of an axis, if it is a number of at least 1.
fn extent(graph: &Graph, v: ValueId, axis: usize) -> Option<u64> {
    u64::try_from(graph.value(v).ty.shape()?.get(axis)?.as_const()?).ok().filter(|&e| e > 0)
}

/// Rank of a value, and the type that its elements are computed from: for what is dequantized, what it was quantized to.
fn kind(graph: &Graph, v: ValueId) -> Option<(DType, usize)> {
    let value = graph.value(v);
    let maker = graph.node(value.producer().0);
    let quantized = match maker.onnx() {
        Some("DequantizeLinear") => maker.operand(0).and_then(|x| graph.value(x).ty.dtype()),
        _ => None,
    };
    Some((quantized.or(value.ty.dtype())?, value.ty.rank()?))
}

/// The operator set of a node of the standard domain, if function bodies can be written in it.
fn opset(node: &Node) -> Option<i64> {
    let standard = matches!(&node.op, Op::Onnx(op) if matches!(op.domain.as_str(), "" | "ai.onnx"));
    (standard && (FIRST_OPSET..=LAST_OPSET).contains(&node.opset)).then_some(node.opset)
}

/// The layout with so many slots for an axis of this extent; `None` where its blocks do not divide them.
fn with_slots(layout: Layout, axis: usize, extent: u64, slots: u64) -> Option<Layout> {
    let block = layout.block_of(axis);
    if !slots.is_multiple_of(block) || slots < extent {
        return None;
    }
    if extent.next_multiple_of(block) == slots {
        return Some(layout);
    }
    layout.with_slot_map(axis, &[Segment { len: extent, slots }]).ok()
}

/// A number per channel, in as many slots as the channels have; `None` for row-major.
fn per_channel(channels: u64, slots: u64) -> Option<Layout> {
    if channels == slots {
        return None;
    }
    with_slots(Layout::row_major(1), 0, channels, slots)
}

/// What is stored otherwise than ONNX has it.
fn stored(layout: Layout) -> Option<Layout> {
    (!layout.is_row_major()).then_some(layout)
}

/// The call that a standard op becomes.
fn call(form: &'static str, op: &str, layouts: KernelLayouts, cost: Cost, set: Vec<(String, Attr)>) -> Offer {
    let op = OpName { domain: DOMAIN.to_owned(), name: op.to_owned(), overload: String::new() };
    let becomes = Become { op, opset: VERSION, operands: None, set, remove: Vec::new() };
    Offer { form, layouts, cost, becomes: Some(becomes), adds_zeros: false }
}

impl Target for FunctionTarget {
    fn name(&self) -> &str {
        &self.calls.data.name
    }

    fn about(&self) -> &str {
        &self.calls.data.about
    }

    fn layouts(&self) -> &str {
        &self.calls.data.layouts
    }

    fn dialect(&self) -> &'static str {
        "standard ONNX and functions of domain relayout, whose bodies are in the file"
    }

    fn cost_source(&self) -> &str {
        &self.calls.data.source
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            standard: false,
            decides_again: false,
            calls_functions: true,
            checks_sizes: false,
            may_move_more: true,
            keeps_pairs: false,
            ..Capabilities::STANDARD
        }
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn metadata(&self) -> Vec<(String, String)> {
        self.calls.costs.iter().map(|costs| ("relayout.costs".to_owned(), costs.source())).collect()
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        Some(self.calls.rates().op(query))
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        match query.kind {
            MoveKind::View => Some(self.calls.rates().view),
            MoveKind::Permute => has_move(query).then(|| self.calls.permute(query)),
        }
    }

    fn view_cost(&self) -> Cost {
        self.calls.rates().view
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.calls.rates().pass(bytes)
    }
}

/// Ranks of what is stored in blocks: features and weights.
const BLOCKED_RANKS: std::ops::RangeInclusive<usize> = 3..=5;

/// Whether the dialect has a function for a move: digits of the two layouts nest, and padding slots lie at the end of their axis.
/// Lists that are laid out as digits (pads by side and axis) have Transposes of their own.
fn has_move(query: &MoveQuery<'_>) -> bool {
    let bits = query.dtype.and_then(DType::bits);
    let (from, to) = (query.from, query.to);
    if from.as_permutation().is_some() && to.as_permutation().is_some() {
        return true;
    }
    let blocks = from.factors().len() != from.rank() || to.factors().len() != to.rank();
    if blocks && !BLOCKED_RANKS.contains(&from.rank()) {
        return false;
    }
    let whole_bytes = bits.is_some_and(|bits| bits >= 8);
    whole_bytes
        && from.rank() == to.rank()
        && (0..from.rank()).all(|axis| nests(from, to, axis) && keeps_slots(from, to, axis))
}

/// Whether every digit boundary of an axis in one layout divides, or is divided by, every one in the other.
fn nests(from: &Layout, to: &Layout, axis: usize) -> bool {
    let both = from.factors().iter().chain(to.factors());
    let mut cuts: Vec<u64> = both.filter(|f| usize::from(f.axis) == axis).map(|f| f.div).collect();
    cuts.sort_unstable();
    cuts.windows(2).all(|w| matches!(w, [a, b] if b.is_multiple_of((*a).max(1))))
}

/// Whether the padding slots of an axis are at its end in both layouts, or the same in both.
fn keeps_slots(from: &Layout, to: &Layout, axis: usize) -> bool {
    let (a, b) = (from.slot_map(axis), to.slot_map(axis));
    a == b || [a, b].into_iter().flatten().all(|map| map.len() < 2)
}
