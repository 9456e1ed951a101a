//! Target `ort-cpu`: ONNX Runtime's blocked kernels of domain `com.microsoft.nchwc`, float32 on x86-64, and its
//! 8-bit ones of domain `com.microsoft` that read channels last.
//!
//! A blocked value is `N C/B H W C%B`, its channels rounded up to the block B of the host: 16 with AVX-512, 8 otherwise. It is
//! declared per axis, as `[N, C, H, W]` with the rounded channels. Constant weights are packed at compile time, with zeros for
//! channels that are not there.
//!
//! A signal, `[N, C, L]`, is an image of one row: what is offered for images is offered for signals at the same costs, but only around
//! convolutions of signals. The runtime itself blocks none on load.
//!
//! `forms` has a file per form, `prepare` and `finish` the passes before and after the decision, `read` what audits make of files of
//! this dialect, `costs` the measured tables.

mod carried;
pub mod costs;
mod finish;
pub(crate) mod forms;
mod machine;
mod moves;
pub(crate) mod nodes;
mod on_load;
mod prepare;
pub mod read;
mod release;
mod runs;
mod standard;
mod taken_in;

pub use machine::{Block, Processor};
pub use release::Release;
pub use standard::OnnxRuntime;

use crate::TargetError;
use crate::shared::data::DataTarget;
use crate::shared::numbers;
use crate::shared::tables::CostsError;
use costs::{BuiltinTable, Copy, MeasuredCosts, Reorder, Side};
use machine::Machine;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::{NCHWC, is_among_signals};
use relayout_ir::storage::{ImageAxes, StorageRule};
use relayout_target_api::{
    Candidates, Capabilities, Cost, Lifted, MoveKind, MoveQuery, NodeQuery, Offer, OpQuery, Pass, PassError, Since,
    Target, TargetForm, forms_of,
};
use std::sync::Arc;
use taken_in::is_taken_in;

/// The target.
#[derive(Clone)]
pub struct OrtCpu {
    machine: Arc<Machine>,
    forms: Arc<[Box<dyn TargetForm>]>,
    passes: Arc<[Pass]>,
    guarded: bool,
    source: String,
    /// Whether the costs are others than the built-in ones.
    own_costs: bool,
}

impl OrtCpu {
    /// The target for hosts of this block.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] if the built-in data does not read.
    pub fn new(block: Block) -> Result<OrtCpu, TargetError> {
        let base = DataTarget::parse("ort-cpu", include_str!("ort-cpu.toml"))?;
        Ok(OrtCpu::on(Machine { block, release: None, costs: builtin(block, 1)?, base }, false))
    }

    fn on(machine: Machine, own_costs: bool) -> OrtCpu {
        let costs = machine.costs.for_blocks_of(machine.block.channels());
        let machine = Machine { costs, ..machine };
        let source = source_of(&machine.costs);
        let machine = Arc::new(machine);
        let forms = forms::all(&machine).into();
        let passes = passes(&machine, true);
        OrtCpu { machine, forms, passes, guarded: true, source, own_costs }
    }

    /// Without the guard that makes hosts of another block fail.
    #[must_use]
    pub fn unguarded(self) -> OrtCpu {
        OrtCpu { guarded: false, passes: passes(&self.machine, false), ..self }
    }

    /// With costs measured elsewhere than the built-in ones; its files say where in their metadata. A table that was measured on
    /// hosts of another block serves too, as the built-in one does.
    #[must_use]
    pub fn with_costs(self, costs: MeasuredCosts) -> OrtCpu {
        self.with(|machine| Machine { costs, ..machine }, true)
    }

    /// With the built-in costs of ops that run on this many threads, 0 for as many as the machine has cores. What was not measured on so
    /// many follows from what was ([`MeasuredCosts::on_threads`]). Files that were decided for more than one thread say so in their metadata.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] if the built-in data does not read.
    pub fn on_threads(self, threads: u64) -> Result<OrtCpu, TargetError> {
        let threads = threads_asked(usize::try_from(threads).unwrap_or(usize::MAX)) as u64;
        let costs = builtin(self.machine.block, threads)?;
        let usual = costs.threads() == 1;
        Ok(self.with(|machine| Machine { costs, ..machine }, !usual))
    }

    /// The target for a kind of machine ([`MACHINES`](costs::MACHINES)), in its blocks and with its costs on so many threads, 0 for as many as
    /// this machine has cores.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] if the built-in data does not read.
    pub fn for_machine(machine: &BuiltinTable, threads: u64) -> Result<OrtCpu, TargetError> {
        let threads = threads_asked(usize::try_from(threads).unwrap_or(usize::MAX)) as u64;
        let costs = machine.costs().and_then(|costs| costs.on_threads(threads)).map_err(|e| malformed(&e))?;
        Ok(OrtCpu::new(Block::of(machine.block).unwrap_or(Block::B8))?.with_costs(costs))
    }

    /// For hosts whose ONNX Runtime is of this release. Without one files may have what only newer releases run; they say so in their
    /// metadata then, and the report does.
    #[must_use]
    pub fn for_release(self, release: Release) -> OrtCpu {
        let own_costs = self.own_costs;
        self.with(|machine| Machine { release: Some(release), ..machine }, own_costs)
    }

    /// The same on another machine.
    fn with(&self, change: impl FnOnce(Machine) -> Machine, own_costs: bool) -> OrtCpu {
        let made = OrtCpu::on(change(self.machine.as_ref().clone()), own_costs);
        if self.guarded { made } else { made.unguarded() }
    }

    /// What decisions are made with.
    pub fn costs(&self) -> &MeasuredCosts {
        &self.machine.costs
    }

    /// Channels of a block.
    pub fn block(&self) -> Block {
        self.machine.block
    }
}

/// Threads that are asked for: 0 is as many as the machine has cores.
pub fn threads_asked(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// The built-in table for ops of hosts with such blocks on this many threads.
fn builtin(block: Block, threads: u64) -> Result<MeasuredCosts, TargetError> {
    MeasuredCosts::builtin(block.channels(), threads).map_err(|e| malformed(&e))
}

/// Built-in data that does not read.
fn malformed(e: &CostsError) -> TargetError {
    TargetError::Malformed { name: "ort-cpu".to_owned(), why: e.to_string() }
}

/// The passes for a machine.
fn passes(machine: &Machine, guarded: bool) -> Arc<[Pass]> {
    let last = [numbers::pass()];
    let finish = finish::passes(machine.block, machine.release, guarded);
    prepare::passes(machine.block).into_iter().chain(finish).chain(last).collect()
}

/// Whether a node reads dequantized numbers or leaves some to be quantized: ONNX Runtime makes one integer op of the three.
fn is_quantized(graph: &Graph, node: NodeId) -> bool {
    let is = |n: NodeId, name: &str| graph.node(n).op.is_named(name);
    let node = graph.node(node);
    node.inputs.iter().flatten().any(|&v| is(graph.value(v).producer().0, "DequantizeLinear"))
        || node.outputs.iter().flatten().flat_map(|&v| graph.uses(v)).any(|u| is(u.node, "QuantizeLinear"))
}

/// Whether a node makes floats of constants of less than a byte. The runtime neither turns these round nor folds them: a Transpose behind
/// such a node runs each time.
fn is_narrow_weight(graph: &Graph, node: NodeId) -> bool {
    let node = graph.node(node);
    let narrow = |v: ValueId| graph.value(v).ty.dtype().and_then(DType::bits).is_some_and(|bits| bits < 8);
    node.op.is_named("DequantizeLinear") && node.operand(0).is_some_and(|q| graph.constant(q).is_some() && narrow(q))
}

/// Whether the runtime has something of its own for a node: an integer op, or a constant that it computes when it loads the file.
fn is_left_to_the_runtime(query: &NodeQuery<'_>) -> bool {
    is_quantized(query.graph, query.node) || on_load::computes(query.graph, query.graph.node(query.node))
}

/// Where costs come from, for people.
fn source_of(costs: &MeasuredCosts) -> String {
    let m = costs.machine();
    let threads = if costs.threads() == 1 { "1 thread".to_owned() } else { format!("{} threads", costs.threads()) };
    let measured: Vec<String> = m.threads.iter().map(u64::to_string).collect();
    let derived = format!(" (derived from {})", measured.join(" and "));
    let derived = if m.threads.contains(&costs.threads()) { "" } else { derived.as_str() };
    let grids = format!("measured on {} with {}, {threads}{derived}, {}", m.machine, m.runtime, m.date);
    let grids = match &m.derived {
        Some(how) => format!("derived from what was {grids}: {how}"),
        None => grids,
    };
    match costs.timed().filter(|timed| !timed.is_empty()) {
        Some(timed) => format!("{}; all others {grids}", timed.source()),
        None => grids,
    }
}

impl Target for OrtCpu {
    fn name(&self) -> &str {
        self.machine.base.name()
    }

    fn about(&self) -> &str {
        self.machine.base.about()
    }

    fn layouts(&self) -> &str {
        self.machine.base.layouts()
    }

    fn dialect(&self) -> &str {
        self.machine.base.dialect()
    }

    fn cost_source(&self) -> &str {
        &self.source
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            storage: StorageRule::PerAxis,
            standard: false,
            decides_again: false,
            bundles: false,
            checks_sizes: false,
            may_move_more: true,
            plans: false,
            ..Capabilities::STANDARD
        }
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn passes(&self) -> &[Pass] {
        &self.passes
    }

    fn can_move(&self, graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> bool {
        finish::can_move(graph, v, from, to)
    }

    fn lift(&self, graph: &mut Graph) -> Result<Option<Lifted>, PassError> {
        if !read::is_blocked(graph) {
            return Ok(None);
        }
        Ok(Some(Lifted { block: self.machine.block.channels(), ..read::lift(graph)? }))
    }

    fn metadata(&self) -> Vec<(String, String)> {
        let block = ("relayout.block".to_owned(), self.machine.block.channels().to_string());
        // The built-in table is told by the version of the program.
        let costs = self.own_costs.then(|| ("relayout.costs".to_owned(), self.source.clone()));
        let guard = (!self.guarded).then(|| ("relayout.guard".to_owned(), "none".to_owned()));
        std::iter::once(block).chain(costs).chain(guard).collect()
    }

    fn since(&self, op: &OpName, text: &dyn Fn(&str) -> Option<String>) -> Option<Since> {
        let activation = text("activation").filter(|_| op.domain == NCHWC)?;
        let release = taken_in::Activation::named(&activation)?.since()?;
        Some(Since {
            release: release.named(),
            what: format!("whose convolutions take {activation} in"),
            before: release.before().to_string(),
        })
    }

    fn runs_since(&self, release: &str) -> bool {
        let needed = Release::of_name(release);
        self.machine.release.zip(needed).is_none_or(|(here, needed)| needed <= here)
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        let mut sides = query.ins.iter().chain(query.outs);
        // The runtime turns quantized units round by itself, together with what stands between them.
        let node = &query.graph.node(query.node).op;
        if (node.is_named("QuantizeLinear") || node.is_named("DequantizeLinear"))
            && !sides.clone().all(Layout::is_row_major)
            && !is_narrow_weight(query.graph, query.node)
        {
            return None;
        }
        let taken_in = is_taken_in(query.graph, query.node, self.machine.release);
        if sides.clone().all(|l| l.as_permutation().is_some()) {
            // Before a move out of blocks it is part of the convolution, behind it it is not.
            let own = self.machine.base.op_cost(query)? + self.machine.spans(query);
            return Some(own + Cost::new(u64::from(taken_in)));
        }
        if is_quantized(query.graph, query.node) {
            return None;
        }
        // What is blocked otherwise than this host's kernels have it has no kernel.
        if !sides.all(|l| l.as_permutation().is_some() || self.machine.blocked_axis(l).is_some()) {
            return None;
        }
        let is_signal = |l: &Layout| self.machine.is_blocked_signal(l);
        if query.ins.iter().chain(query.outs).any(is_signal) && !is_among_signals(query.graph, query.node) {
            return None;
        }
        // Extents are read off the declaration.
        if node.is_named("Shape") {
            return Some(Cost::ZERO);
        }
        if taken_in {
            return Some(Cost::ZERO);
        }
        // Channels that fill a block are computed for nothing.
        let [pixels, c, slots] = self.machine.blocked_result(query.graph, query.node, query.outs)?;
        let node = query.graph.node(query.node);
        let (own, padded) = (pixels.saturating_mul(c), pixels.saturating_mul(slots));
        Some(Cost::new(self.machine.pass(node, padded).saturating_sub(self.machine.pass(node, own))))
    }

    fn offers(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        if is_left_to_the_runtime(query) {
            return Vec::new();
        }
        let mut offers: Vec<Offer> = forms_of(&self.forms, query).flat_map(|form| form.offers(query)).collect();
        let is_signal = |l: &Option<Layout>| l.as_ref().is_some_and(|l| self.machine.is_blocked_signal(l));
        let of_signals = |k: &Offer| k.layouts.ins.iter().chain(&k.layouts.outs).any(is_signal);
        if offers.iter().any(of_signals) && !is_among_signals(query.graph, query.node) {
            offers.retain(|k| !of_signals(k));
        }
        offers
    }

    fn offers_among(&self, query: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        if is_left_to_the_runtime(query) {
            return Vec::new();
        }
        forms_of(&self.forms, query).flat_map(|form| form.offers_among(query, candidates)).collect()
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        if query.kind == MoveKind::View {
            return Some(self.machine.small_node());
        }
        let side = |plain: &Layout, axes: ImageAxes| {
            let order = plain.as_permutation()?;
            let sides = [(Side::Nchw, axes.first()), (Side::ChannelsLast, axes.last())];
            sides.into_iter().find_map(|(side, axes)| (order == axes).then_some(side))
        };
        let float = query.dtype == Some(DType::F32);
        let (kind, axes, plain) = match (self.machine.blocked_axes(query.from), self.machine.blocked_axes(query.to)) {
            (None, None) if [query.from, query.to].into_iter().any(|l| self.machine.blocked_volume(l).is_some()) => {
                return self.machine.volume_move(query);
            }
            (None, None) if [query.from, query.to].into_iter().any(|l| self.machine.axes_in_runs(l).is_some()) => {
                return self.machine.run_move(query);
            }
            (None, None) => return self.machine.chain(query).map(|c| c.cost).or_else(|| self.machine.transpose(query)),
            (Some(_), Some(_)) => return None,
            (None, Some(_)) if self.machine.axes_in_runs(query.from).is_some() => return None,
            (Some(_), None) if self.machine.axes_in_runs(query.to).is_some() => return None,
            (None, Some(axes)) => (Reorder::Input, axes, query.from),
            (Some(axes), None) => (Reorder::Output, axes, query.to),
        };
        let image = axes.extents(query.shape)?;
        // ReorderInput takes whole groups of four channels.
        let whole = kind == Reorder::Output || image[1].is_multiple_of(4);
        let side = side(plain, axes)?;
        // A signal is declared as an image by a Reshape.
        let views = if axes.h.is_none() { self.machine.small_node() } else { Cost::ZERO };
        (float && whole).then(|| self.machine.reorder(kind, side, image) + views)
    }

    fn split_move(&self, query: &MoveQuery<'_>) -> Vec<[Layout; 2]> {
        self.machine.chained_layouts(query).unwrap_or_default()
    }

    fn view_cost(&self) -> Cost {
        self.machine.small_node()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.machine.base.pass_cost(bytes)
    }

    fn copy_cost(&self, bytes: u64, run: u64) -> Cost {
        Cost::new(self.machine.costs.copy_ns(Copy::Concat, bytes, run)).max(self.machine.small_node())
    }
}
