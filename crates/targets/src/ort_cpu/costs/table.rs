//! The table: reading it, writing it, and asking it about any case.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;

use super::case::Case;
use super::scaling::{Scaling, Share};
use super::specs::specs;
use super::timed::Timed;
use crate::ort_cpu::machine::{Block, Processor};
use crate::shared::tables::grid::Grid;
use crate::shared::tables::{CostsError, Measurement, file};

/// A table that comes with the target `ort-cpu`.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinTable {
    /// Channels in a block of the machine that it was measured on.
    pub block: u64,
    /// What messages call it: the kind of machine.
    pub name: &'static str,
    /// The processors that it was measured on; none if it was derived.
    pub processor: Option<Processor>,
    /// What it says.
    pub text: &'static str,
}

/// The tables by which target `ort-cpu` decides if neither a machine nor a table is said: one of each block.
pub const ORT_CPU: [BuiltinTable; 2] = [AVX512_SERVER, AVX2_DESKTOP];

/// The kinds of machines that have a table: files are decided for one of them on any other. A table says on which machine it was measured,
/// or from which other one it was derived and how.
pub const MACHINES: [BuiltinTable; 4] = [AVX512_SERVER, AVX512_DESKTOP, AVX2_DESKTOP, AVX2_LAPTOP];

const AVX512_SERVER: BuiltinTable = BuiltinTable {
    block: 16,
    name: "avx512-server",
    processor: Some(Processor { vendor: *AMD, family: 26 }),
    text: include_str!("avx512-server.toml"),
};
/// Of this machine and the next one thread and several were measured.
const AVX512_DESKTOP: BuiltinTable = BuiltinTable {
    block: 16,
    name: "avx512-desktop",
    processor: Some(Processor { vendor: *AMD, family: 25 }),
    text: include_str!("avx512-desktop.toml"),
};
const AVX2_DESKTOP: BuiltinTable = BuiltinTable {
    block: 8,
    name: "avx2-desktop",
    processor: Some(Processor { vendor: *AMD, family: 25 }),
    text: include_str!("avx2-desktop.toml"),
};
const AVX2_LAPTOP: BuiltinTable =
    BuiltinTable { block: 8, name: "avx2-laptop", processor: None, text: include_str!("avx2-laptop.toml") };
const AMD: &[u8; 12] = b"AuthenticAMD";

impl BuiltinTable {
    /// The table of a kind of machine.
    ///
    /// # Errors
    /// There is none of this name; the message lists those that there are.
    pub fn of_machine(name: &str) -> Result<BuiltinTable, String> {
        let found = MACHINES.iter().find(|table| table.name == name).copied();
        found.ok_or_else(|| {
            let names = MACHINES.map(|table| table.name).join(", ");
            format!("`{name}`: there is no machine of this name; the built-in ones are {names}")
        })
    }

    /// The table that was measured on processors of this kind, with these blocks, if that is not the one by which is decided anyway.
    pub fn measured_on(processor: Processor, block: u64) -> Option<BuiltinTable> {
        let found = MACHINES.into_iter().find(|table| table.processor == Some(processor) && table.block == block)?;
        (!ORT_CPU.iter().any(|usual| usual.name == found.name)).then_some(found)
    }

    /// That of this machine.
    pub fn of_host() -> Option<BuiltinTable> {
        BuiltinTable::measured_on(Processor::of_host()?, Block::of_host().channels())
    }

    /// What it says.
    ///
    /// # Errors
    /// None for the tables as they are built in, which a test reads.
    pub fn costs(&self) -> Result<MeasuredCosts, CostsError> {
        MeasuredCosts::parse(self.name, self.text)
    }
}

/// Thousandths of its time alone that a reorder or a Transpose takes within a network, what it does to its neighbours counted:
/// `docs/costs.md`, *Moves within networks*.
const WITHIN_NETWORKS: u64 = 2000;

/// The format of tables that this version reads.
const FORMAT: u64 = 6;

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
    /// Threads per op, ascending. Where there are several, the first is one thread, and of the others the table has shares of its times.
    pub threads: Vec<u64>,
    /// Channels in a block: 16 with AVX-512, 8 with AVX.
    pub block: u64,
    /// Nanoseconds that any node takes, even one that computes nothing, on each number of threads.
    pub node_ns: Vec<u64>,
    /// How far half of the ops that were measured on each number of threads after the first are off by what others of them say, in percent; none
    /// if that was not measured.
    #[serde(default)]
    pub off_percent: Vec<u64>,
    /// If the times were not measured but follow from another table: from which one, and how. The rest of this is what that one says.
    #[serde(default)]
    pub derived: Option<String>,
}

/// What ops cost on a machine that was measured.
#[derive(Clone, Debug)]
pub struct MeasuredCosts {
    machine: Machine,
    /// Channels in a block of the hosts that are asked about.
    block: u64,
    /// Threads that are asked about.
    threads: u64,
    /// What a move takes within a network, in thousandths of what it takes alone.
    moves_permille: u64,
    /// What a node takes anyhow on these.
    node_ns: u64,
    /// Times on the fewest threads that were measured.
    grids: Arc<BTreeMap<String, Grid>>,
    /// How those on more compare.
    more: Arc<Scaling>,
    /// What is left of the times of each grid on the threads that are asked about, by nanoseconds on the fewest; none if it is all.
    parts: Arc<BTreeMap<String, Grid>>,
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
    /// What each number of threads after the first leaves.
    #[serde(default)]
    threads: BTreeMap<String, Share>,
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
        let number = |(threads, share): (String, Share)| {
            let number = threads.parse().map_err(|_| format!("`threads.{threads}` is not of a number of threads"));
            Ok((number?, share))
        };
        let shares = read.threads.into_iter().map(number).collect::<Result<_, _>>().map_err(malformed)?;
        MeasuredCosts::new(read.measured, measured, shares).map_err(malformed)
    }

    /// What the tables that come with the target `ort-cpu` say of hosts with blocks of so many channels, and of so many threads per op; of
    /// one thread for none. Blocks that no table is of have those of 16.
    ///
    /// # Errors
    /// None for the tables as they are built in, which a test reads.
    pub fn builtin(block: u64, threads: u64) -> Result<MeasuredCosts, CostsError> {
        let [first, ..] = &ORT_CPU;
        let table = ORT_CPU.iter().find(|table| table.block == block).unwrap_or(first);
        table.costs()?.on_threads(threads)
    }

    /// A table of measurements on the first number of threads, and of what each other number leaves of these times. The measurements are
    /// exactly the grids that [`specs`] lists, in any order, their axes in any order but the points of `ns` in that of the specification.
    ///
    /// # Errors
    /// What is missing, or can't be.
    pub fn new(
        machine: Machine,
        measured: Vec<Measurement>,
        shares: BTreeMap<u64, Share>,
    ) -> Result<MeasuredCosts, String> {
        check(&machine, &shares)?;
        let [threads, node_ns] = [&machine.threads, &machine.node_ns].map(|list| list.first().copied().unwrap_or(1));
        let block = machine.block;
        let wanted = specs().into_iter().map(|spec| file::Wanted {
            name: spec.name.clone(),
            axes: spec.axes.iter().map(|(name, _)| *name).collect(),
            work: move |point: &[u64]| spec.case(point, block).work(block),
        });
        let grids = file::grids(measured, wanted, node_ns)?;
        let nodes = machine.threads.iter().zip(&machine.node_ns).skip(1);
        let nodes = nodes.map(|(&threads, &ns)| (threads, ns as f64 / node_ns as f64)).collect();
        let (grids, more, parts) = (Arc::new(grids), Arc::new(Scaling { nodes, shares }), Arc::default());
        Ok(MeasuredCosts {
            machine,
            block,
            threads,
            moves_permille: WITHIN_NETWORKS,
            node_ns,
            grids,
            more,
            parts,
            timed: None,
        })
    }

    /// This table for ops on so many threads, at least one. Where one number of threads alone was measured, others leave of its times what they
    /// leave on the machine of `avx512-desktop`, an op that takes so long there counting as one that takes so long on one thread.
    ///
    /// # Errors
    /// None for the tables as they are built in, which a test reads.
    pub fn on_threads(self, threads: u64) -> Result<MeasuredCosts, CostsError> {
        let threads = threads.max(1);
        let measured = self.machine.threads.first().copied().unwrap_or(1);
        let (alone, same) = (self.machine.threads.len() == 1, threads == measured);
        let more = if alone && !same { AVX512_DESKTOP.costs()?.more } else { Arc::clone(&self.more) };
        let node = self.machine.node_ns.first().copied().unwrap_or(1) as f64 * more.node(threads) / more.node(measured);
        // A cast of a float saturates.
        let node_ns = node.round().max(1.0) as u64;
        let part = |name: &String| (name.clone(), more.parts(name, threads).over(&more.parts(name, measured)));
        let parts = if same { BTreeMap::new() } else { self.grids.keys().map(part).collect() };
        Ok(MeasuredCosts { threads, node_ns, parts: Arc::new(parts), ..self })
    }

    /// The text of a table, the same for the same measurements.
    #[must_use]
    pub fn text(machine: &Machine, measured: &[Measurement], shares: &BTreeMap<u64, Share>) -> String {
        let Machine { machine: processor, date, runtime, threads, block, node_ns, off_percent, derived } = machine;
        let mut out = format!(
            "# What ops of ONNX Runtime cost, measured by `relayout calibrate`. Each list `ns` has the nanoseconds of one op at every\n\
             # point of its axes, the last axis fastest, on the first number of threads. Tables `threads.N` have how many thousandths of that\n\
             # are left on N threads of ops that take so long, and the grids whose ops take all of it.\n\
             format = {FORMAT}\ntarget = \"{TARGET}\"\n\n[measured]\nmachine = {}\ndate = {}\nruntime = {}\n\
             threads = {}\nblock = {block}\nnode_ns = {}\n",
            file::quoted(processor),
            file::quoted(date),
            file::quoted(runtime),
            file::list(threads),
            file::list(node_ns),
        );
        // Writing to a string can't fail.
        if !off_percent.is_empty() {
            let _ = writeln!(out, "off_percent = {}", file::list(off_percent));
        }
        if let Some(how) = derived {
            let _ = writeln!(out, "derived = {}", file::quoted(how));
        }
        out.push_str(&file::grids_text("grid", measured));
        for (threads, Share { ns, permille, serial }) in shares {
            let [ns, permille] = [ns, permille].map(|list| file::list(list));
            let _ = writeln!(out, "\n[threads.{threads}]\nns = {ns}\npermille = {permille}\nserial = [");
            for name in serial {
                let _ = writeln!(out, "    {},", file::quoted(name));
            }
            out.push_str("]\n");
        }
        out
    }

    /// Where and when the table was measured.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Threads per op that are asked about: the fewest that were measured, if nothing else was said.
    pub fn threads(&self) -> u64 {
        self.threads
    }

    /// Whether times were not measured on this machine or not on these threads, and follow from others.
    pub fn is_derived(&self) -> bool {
        self.machine.derived.is_some() || !self.machine.threads.contains(&self.threads)
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

    /// What a case takes alone, in nanoseconds, as it is measured; `None` where the runtime has no such kernel. Decisions are by what it takes
    /// within a network: of moves that is more ([`reorder_ns`](Self::reorder_ns)).
    #[must_use]
    pub fn ns(&self, case: &Case) -> Option<u64> {
        Some(match case {
            Case::Conv(shape, form) => return self.conv_ns(shape, *form),
            Case::Volume(shape) => return self.volume_ns(shape),
            Case::Reorder(kind, side, sizes) => self.reorder_alone(*kind, *side, *sizes),
            Case::Transpose(shape, perm, width) => self.transpose_alone(shape, perm, *width),
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

    /// With moves, reorders and Transposes, that take so many thousandths of what they take alone; 2000 if nothing is said, as within networks.
    #[must_use]
    pub fn with_moves(self, permille: u64) -> MeasuredCosts {
        MeasuredCosts { moves_permille: permille, ..self }
    }

    /// What a move takes that takes so many nanoseconds alone.
    pub(super) fn within(&self, alone: u64) -> u64 {
        // A cast of a float saturates.
        (alone as f64 * self.moves_permille as f64 / 1000.0).round() as u64
    }

    /// What a node takes that computes and moves nothing, such as a Reshape.
    pub fn node_ns(&self) -> u64 {
        let ns = self.node_ns;
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

    /// Nanoseconds of a node that works this long by the times of the grids, and that threads share as the ops of `grid`.
    pub(super) fn node(&self, grid: &str, work_ns: f64) -> u64 {
        let part = self.parts.get(grid).map_or(1.0, |parts| parts.rate(&[work_ns]));
        // A cast of a float saturates.
        self.node_ns.saturating_add((work_ns * part).round() as u64)
    }

    /// Nanoseconds of a node with this much work at the rate of a place of a grid.
    pub(super) fn at(&self, grid: &str, at: &[f64], work: f64) -> u64 {
        self.node(grid, self.rate(grid, at) * work)
    }
}

/// Numbers of threads of a table, and times of a share, at most.
const MOST: u64 = 64;

/// That the numbers of a machine can be, and that there is a share for each number of threads after the first.
fn check(machine: &Machine, shares: &BTreeMap<u64, Share>) -> Result<(), String> {
    let Machine { threads, node_ns, block, .. } = machine;
    let within = |key: &str, value: u64, most: u64| {
        let fits = (1..=most).contains(&value);
        if fits { Ok(()) } else { Err(format!("`{key}` is {value}, and should be in 1..={most}")) }
    };
    within("block", *block, 64)?;
    if threads.len() as u64 > MOST {
        return Err(format!("`threads` has {} numbers, and should have {MOST} at most", threads.len()));
    }
    threads.iter().try_for_each(|&threads| within("threads", threads, 1 << 16))?;
    node_ns.iter().try_for_each(|&ns| within("node_ns", ns, 1 << 30))?;
    let rise = threads.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    if !rise || !(threads.len() == 1 || threads.first() == Some(&1)) {
        return Err("`threads` should be one number, or several that rise from 1".to_owned());
    }
    if node_ns.len() != threads.len() {
        return Err(format!("`threads` has {} numbers, and `node_ns` has {}", threads.len(), node_ns.len()));
    }
    if let Some(threads) = threads.iter().skip(1).find(|threads| !shares.contains_key(*threads)) {
        return Err(format!("there is no table `threads.{threads}`"));
    }
    let grids: BTreeSet<String> = specs().into_iter().map(|spec| spec.name).collect();
    for (number, share) in shares {
        if !threads.iter().skip(1).any(|known| known == number) {
            return Err(format!("`threads` of what was measured has no {number}"));
        }
        let Share { ns, permille, .. } = share;
        permille.iter().try_for_each(|&permille| within("permille", permille, 1 << 20))?;
        ns.iter().try_for_each(|&ns| within("ns", ns, 1 << 50))?;
        let count = ns.len() as u64;
        if !(1..=MOST).contains(&count)
            || ns.len() != permille.len()
            || !ns.windows(2).all(|pair| matches!(pair, [a, b] if a < b))
        {
            return Err(format!(
                "in table `threads.{number}`, `ns` should be 1 to {MOST} numbers that rise, and `permille` one for each"
            ));
        }
        if let Some(name) = share.serial.iter().find(|name| !grids.contains(*name)) {
            return Err(format!("no grid is called `{name}`, as one of table `threads.{number}` is"));
        }
    }
    Ok(())
}
