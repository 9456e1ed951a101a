//! The table: reading it, writing it, and asking it about any case.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::case::Case;
use super::specs::specs;
use super::timed::Timed;
use crate::shared::tables::grid::Grid;
use crate::shared::tables::{CostsError, Measurement, file};

/// A table that comes with the target `ort-cpu`.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinTable {
    /// Channels in a block of the machine that it was measured on.
    pub block: u64,
    /// Threads per op.
    pub threads: u64,
    /// What messages call it.
    pub name: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// The tables that come with the target `ort-cpu`: of each block those of fewer threads first.
pub const ORT_CPU: [BuiltinTable; 4] = [
    builtin(16, 1, "blocks-of-16.1-thread.toml", include_str!("blocks-of-16.1-thread.toml")),
    builtin(16, 2, "blocks-of-16.2-threads.toml", include_str!("blocks-of-16.2-threads.toml")),
    builtin(8, 1, "blocks-of-8.1-thread.toml", include_str!("blocks-of-8.1-thread.toml")),
    builtin(8, 2, "blocks-of-8.2-threads.toml", include_str!("blocks-of-8.2-threads.toml")),
];

const fn builtin(block: u64, threads: u64, name: &'static str, text: &'static str) -> BuiltinTable {
    BuiltinTable { block, threads, name, text }
}

/// The format of tables that this version reads.
const FORMAT: u64 = 4;

/// The target that the grids of [`specs`] are about.
const TARGET: &str = "ort-cpu";

/// Where and when a table was measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor, as it calls itself.
    pub machine: String,
    /// The day, as in `2026-11-21`.
    pub date: String,
    /// The runtime and its version.
    pub runtime: String,
    /// Threads per op.
    pub threads: u64,
    /// Channels in a block: 16 with AVX-512, 8 with AVX.
    pub block: u64,
    /// Nanoseconds that any node takes, even one that computes nothing.
    pub node_ns: u64,
}

/// What ops cost on a machine that was measured.
#[derive(Clone, Debug)]
pub struct MeasuredCosts {
    machine: Machine,
    /// Channels in a block of the hosts that are asked about.
    block: u64,
    grids: BTreeMap<String, Grid>,
    timed: Option<Arc<Timed>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: u64,
    #[serde(rename = "target")]
    _target: String,
    measured: Machine,
    grid: file::Lists,
}

impl MeasuredCosts {
    /// Reads a table; `name` is what messages call it.
    ///
    /// # Errors
    /// [`CostsError::Malformed`] with the place, or what else the table is if not one of this version and target.
    pub fn parse(name: &str, text: &str) -> Result<MeasuredCosts, CostsError> {
        let malformed = |why: String| CostsError::Malformed { name: name.to_owned(), why };
        file::head(name, text, TARGET, FORMAT)?;
        let read: File = file::parse(name, text)?;
        let measured = file::measurements(read.grid).map_err(malformed)?;
        MeasuredCosts::new(read.measured, measured).map_err(malformed)
    }

    /// Of the tables that come with the target `ort-cpu`, for hosts with blocks of so many channels, the one with the most threads per
    /// op that are not more than these; that of one thread for none. Blocks that no table is of have those of 16.
    ///
    /// # Errors
    /// None for the tables as they are built in, which a test reads.
    pub fn builtin(block: u64, threads: u64) -> Result<MeasuredCosts, CostsError> {
        let [first, ..] = &ORT_CPU;
        let block = ORT_CPU.iter().find(|table| table.block == block).unwrap_or(first).block;
        let fits = |table: &&BuiltinTable| table.block == block && table.threads <= threads.max(1);
        let table = ORT_CPU.iter().rfind(fits).unwrap_or(first);
        MeasuredCosts::parse(table.name, table.text)
    }

    /// A table of measurements: exactly the grids that [`specs`] lists, in any order, their axes in any order but the points
    /// of `ns` in that of the specification.
    ///
    /// # Errors
    /// What is missing, or can't be.
    pub fn new(machine: Machine, measured: Vec<Measurement>) -> Result<MeasuredCosts, String> {
        for (key, value, most) in
            [("block", machine.block, 64), ("threads", machine.threads, 1 << 16), ("node_ns", machine.node_ns, 1 << 30)]
        {
            if !(1..=most).contains(&value) {
                return Err(format!("`{key}` is {value}, and should be in 1..={most}"));
            }
        }
        let (block, node_ns) = (machine.block, machine.node_ns);
        let wanted = specs().into_iter().map(|spec| file::Wanted {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, _)| *name).collect(),
            work: move |point: &[u64]| spec.case(point, block).work(block),
        });
        let grids = file::grids(measured, wanted, node_ns)?;
        Ok(MeasuredCosts { machine, block, grids, timed: None })
    }

    /// The text of a table, the same for the same measurements.
    #[must_use]
    pub fn text(machine: &Machine, measured: &[Measurement]) -> String {
        let Machine { machine: processor, date, runtime, threads, block, node_ns } = machine;
        format!(
            "# What ops of ONNX Runtime cost, measured by `relayout calibrate`. Each list `ns` has the nanoseconds of one op at every\n\
             # point of its axes, the last axis fastest.\nformat = {FORMAT}\ntarget = \"{TARGET}\"\n\n[measured]\nmachine = {}\ndate = {}\nruntime = {}\n\
             threads = {threads}\nblock = {block}\nnode_ns = {node_ns}\n{}",
            file::quoted(processor),
            file::quoted(date),
            file::quoted(runtime),
            file::grids_text(measured),
        )
    }

    /// Where and when the table was measured.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// This table for hosts with blocks of so many channels. What fills a block is counted in theirs, and kernels take as many
    /// blocks at a time as those that were measured. How long a multiplication takes is not known of other hosts: only what is cheaper
    /// than what else counts.
    #[must_use]
    pub fn for_blocks_of(self, channels: u64) -> MeasuredCosts {
        MeasuredCosts { block: channels.max(1), ..self }
    }

    /// Channels in a block of the hosts that are asked about: of that which was measured, if nothing else was said.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// What a case costs, in nanoseconds; `None` where the runtime has no such kernel.
    #[must_use]
    pub fn ns(&self, case: &Case) -> Option<u64> {
        Some(match case {
            Case::Conv(shape, form) => return self.conv_ns(shape, *form),
            Case::Volume(shape) => return self.volume_ns(shape),
            Case::Reorder(kind, side, sizes) => self.reorder_ns(*kind, *side, *sizes),
            Case::Transpose(shape, perm, width) => self.transpose_ns(shape, perm, *width),
            Case::Elementwise(op, elements, spread) => self.elementwise_ns(op, *elements, *spread),
            Case::Pool(kind, shape, blocked) => self.pool_ns(*kind, shape, *blocked),
            Case::Resize(mode, shape, blocked) => self.resize_ns(*mode, shape, *blocked),
            Case::Copy { kind, bytes, run } => self.copy_ns(*kind, *bytes, *run),
            Case::Gemm(shape) => self.gemm_ns(shape),
            Case::Softmax(shape) => self.softmax_ns(shape),
            Case::Reduce(shape) => self.reduce_ns(shape),
            Case::Attention(shape, form) => self.attention_ns(shape, *form),
            Case::Projection(shape, form) => self.projection_ns(shape, *form),
        })
    }

    /// This table with times of single cases, which count in place of what the grids say.
    #[must_use]
    pub fn with_timed(self, timed: Arc<Timed>) -> MeasuredCosts {
        MeasuredCosts { timed: Some(timed), ..self }
    }

    /// Times of single cases, if there are any.
    pub fn timed(&self) -> Option<&Timed> {
        self.timed.as_deref()
    }

    /// The time of a case if it was measured by itself, else what the grids say.
    pub(super) fn timed_or(&self, case: impl FnOnce() -> Case, grids: impl FnOnce() -> u64) -> u64 {
        match &self.timed {
            Some(timed) => timed.ns(case(), grids),
            None => grids(),
        }
    }

    /// What a node takes that computes and moves nothing, such as a Reshape.
    pub fn node_ns(&self) -> u64 {
        let ns = self.machine.node_ns;
        self.timed.as_ref().map_or(ns, |timed| timed.scaled(ns))
    }

    /// Nanoseconds per unit of work at a place of a grid.
    pub(super) fn rate(&self, grid: &str, at: &[f64]) -> f64 {
        self.grids.get(grid).map_or(0.0, |grid| grid.rate(at))
    }

    /// The place within a grid that is nearest.
    pub(super) fn nearest<const N: usize>(&self, grid: &str, at: [f64; N]) -> [f64; N] {
        self.grids.get(grid).map_or(at, |grid| grid.nearest(at))
    }

    /// The rate of a grid over that of another, both at the place of the first that is nearest to `at`.
    pub(super) fn ratio<const N: usize>(&self, grid: &str, at: [f64; N], other: impl Fn([f64; N]) -> f64) -> f64 {
        let Some(grid) = self.grids.get(grid) else { return 1.0 };
        let at = grid.nearest(at);
        grid.rate(&at) / other(at)
    }

    /// Nanoseconds of a node that works this long.
    pub(super) fn node(&self, work_ns: f64) -> u64 {
        // A cast of a float saturates.
        self.machine.node_ns.saturating_add(work_ns.round() as u64)
    }

    /// Nanoseconds of a node with this much work at the rate of a place of a grid.
    pub(super) fn at(&self, grid: &str, at: &[f64], work: f64) -> u64 {
        self.node(self.rate(grid, at) * work)
    }
}
