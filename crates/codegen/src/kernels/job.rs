//! From a movement to loops: which tile, which blocks, in which order, and how the stores go out.
//!
//! A *block* is what one turn of the outer loops moves: some units of the axes at the inner end of the source and of the
//! destination, so that both sides are touched in runs of some hundred bytes. Blocks are cut from the axes in order, numbered,
//! and any range of numbers may be run by any thread; no two blocks write the same byte.
//!
//! Where the source is out of cache the stores go past the caches by whole lines. That works straight from the tile where every
//! run of the destination begins and ends with a line; else a block is gathered in a *stage* first, in the order of the
//! destination, and written from there with the odd ends by plain stores.

#![forbid(unsafe_code)]

use smallvec::SmallVec;

use super::movement::{Axis, Movement};

/// Bytes of a cache line, on all machines that have vector kernels here.
pub(super) const LINE: usize = 64;

/// Channels of pictures that are put together or taken apart by permutations of whole registers.
pub(super) const MOST_CHANNELS: usize = 4;

/// As many runs of the source as the machine's own prefetcher follows.
const FEW_RUNS: usize = 16;

/// Blocks of fewer bytes cost more to find than to move.
const BLOCK_BYTES: usize = 16 << 10;

/// Lines of the destination a multiple of so many bytes apart that are written in turn by registers that are parts of a line get into
/// each other's way: Zen 3 writes them at half the rate.
const LINES_APART: usize = 1024;

/// What is done at the inside of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Micro {
    /// The last axis is bytes that stay in order on both sides.
    Rows,
    /// `across` is contiguous in the source, the last axis in the destination.
    Tiles {
        /// An index into the job's axes, not the last.
        across: usize,
    },
    /// Unit by unit.
    Each,
}

/// How results go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Into the caches.
    Plain,
    /// Past the caches, by way of a stage only where that can't be avoided.
    Stream,
    /// Past the caches by way of a stage.
    Staged,
}

/// Which lines of the source are asked for ahead of their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// None: the machine foresees them, or they are there.
    Nothing,
    /// Those of the next tile.
    Tile,
    /// Those of the next block.
    Block,
}

/// How a job may be done; what the model of this module chooses and a test or a tuner may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Bytes of source runs in a block.
    pub(crate) from_run: usize,
    /// Bytes of destination runs in a block.
    pub(crate) to_run: usize,
    /// Bytes of destination runs in a block that is staged.
    pub(crate) staged_run: usize,
    /// Whether consecutive blocks follow the destination's run rather than the source's.
    pub(crate) sweep_to: bool,
    /// How the results go out.
    pub(crate) stores: Stores,
    /// Which lines are asked for ahead of their use.
    pub(crate) ask: Ask,
    /// Lines of the source are copied together before they are taken apart.
    pub(crate) pack: bool,
}

/// An axis of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobAxis {
    pub(super) extent: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Units of it in a block.
    pub(super) block: usize,
    /// Stride in the stage; that of the destination where there is none.
    pub(super) stage: usize,
}

/// A movement with its loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) unit: usize,
    pub(super) micro: Micro,
    /// In the order of the destination; the last is the one that tiles or rows run along.
    pub(super) axes: SmallVec<[JobAxis; 8]>,
    /// The axes in the order in which blocks follow each other, the fastest last.
    pub(super) order: SmallVec<[usize; 8]>,
    /// Axes with more than one unit in a block that are not part of the tile, the fastest last.
    pub(super) inner: SmallVec<[usize; 8]>,
    /// Axes with more than one unit in a block, but for the one that the source's runs are along.
    pub(super) runs: SmallVec<[usize; 8]>,
    /// With a stage: axes of a block that do not lie in the destination's run.
    pub(super) lines: SmallVec<[usize; 8]>,
    /// With a stage: the destination's run is the axes from here on.
    pub(super) run_from: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// How many there are.
    pub(super) blocks: usize,
    /// Bytes of the stage; 0 for none.
    pub(super) stage_bytes: usize,
    pub(super) stream: bool,
    pub(super) ask: Ask,
    pub(super) pack: bool,
}

impl Job {
    /// Plans the loops of a movement whose destination begins at an address that is a multiple of `aligned`, for registers that
    /// fill a `whole` line or do not.
    pub(super) fn new(movement: &Movement, tuning: &Tuning, aligned: usize, whole: bool) -> Self {
        let (unit, mut axes) = (movement.unit, movement.axes.clone());
        let micro = micro(unit, &mut axes);
        let mut job = Self {
            unit,
            micro,
            axes: axes
                .iter()
                .map(|&Axis { extent, from, to }| JobAxis { extent, from, to, block: 1, stage: to })
                .collect(),
            order: SmallVec::new(),
            inner: SmallVec::new(),
            runs: SmallVec::new(),
            lines: SmallVec::new(),
            run_from: 0,
            from: movement.from,
            to: movement.to,
            blocks: 1,
            stage_bytes: 0,
            stream: tuning.stores != Stores::Plain,
            ask: tuning.ask,
            pack: tuning.pack,
        };
        job.choose_blocks(tuning.from_run, tuning.to_run);
        if job.stream && (tuning.stores == Stores::Staged || !job.streams_directly(aligned, whole)) {
            job.choose_blocks(tuning.from_run, tuning.staged_run);
            job.stage();
        }
        job.choose_order(tuning);
        // Few runs that go on from block to block are what the machine foresees best by itself.
        let rows: usize = job.runs.iter().map(|&at| job.axes[at].block).product();
        if rows <= FEW_RUNS && matches!(job.micro, Micro::Tiles { .. }) && !tuning.sweep_to {
            job.ask = Ask::Nothing;
        }
        job.blocks = job.axes.iter().map(|axis| axis.extent.div_ceil(axis.block)).product();
        job
    }

    /// The unit of the tile: 1 for rows, whose last axis counts bytes.
    pub(super) fn step(&self) -> usize {
        if self.micro == Micro::Rows { 1 } else { self.unit }
    }

    /// Units of each axis in a block, from the inner end of either side, such that it is worth the bother.
    fn choose_blocks(&mut self, mut from_run: usize, mut to_run: usize) {
        for _ in 0..5 {
            self.cut(from_run, to_run);
            if self.axes.iter().fold(self.step(), |bytes, axis| bytes * axis.block) >= BLOCK_BYTES {
                break;
            }
            (from_run, to_run) = (2 * from_run, 2 * to_run);
        }
    }

    fn cut(&mut self, from_run: usize, to_run: usize) {
        self.axes.iter_mut().for_each(|axis| axis.block = 1);
        let mut run = self.step();
        for axis in self.axes.iter_mut().rev() {
            if axis.to != run || run >= to_run {
                break;
            }
            axis.block = axis.extent.min(rounded(to_run.div_ceil(run), axis.extent, run));
            run *= axis.extent;
        }
        let mut run = self.step();
        while run < from_run {
            let Some(axis) = self.axes.iter_mut().find(|axis| axis.from == run && axis.extent > 1) else { break };
            axis.block = axis.block.max(axis.extent.min(rounded(from_run.div_ceil(run), axis.extent, run)));
            run *= axis.extent;
        }
        if self.axes.iter().all(|axis| axis.block == 1)
            && let Some(last) = self.axes.last_mut()
        {
            last.block = last.extent;
        }
    }

    /// Whether the tile can write whole lines to their places, and should.
    fn streams_directly(&self, aligned: usize, whole: bool) -> bool {
        if let Micro::Tiles { across } = self.micro
            && !whole
            && self.axes[across].to.is_multiple_of(LINES_APART)
        {
            return false;
        }
        let Some((last, outer)) = self.axes.split_last() else { return false };
        // Rows of half a line pair up in the write buffers.
        let grain = match self.micro {
            Micro::Rows if last.extent == LINE / 2 => LINE / 2,
            _ => LINE,
        };
        let run = last.extent * self.step();
        if let Micro::Tiles { across } = self.micro
            && last.extent <= MOST_CHANNELS
            && self.axes[across].to == run
        {
            // Channels are put together line by line.
            let across_whole = self.axes[across].block == self.axes[across].extent;
            let others = self.axes.iter().enumerate().filter(|&(at, _)| at != across && at + 1 != self.axes.len());
            return aligned.is_multiple_of(LINE)
                && self.to.is_multiple_of(LINE)
                && (across_whole || self.axes[across].block.is_multiple_of(LINE))
                && others.into_iter().all(|(_, axis)| axis.to.is_multiple_of(LINE));
        }
        self.micro != Micro::Each
            && last.to == self.step()
            && aligned.is_multiple_of(grain)
            && self.to.is_multiple_of(grain)
            && run.is_multiple_of(grain)
            && (last.block * self.step()).is_multiple_of(grain)
            && outer.iter().all(|axis| axis.to.is_multiple_of(grain))
    }

    /// Lays the block out in a stage, or gives up on streaming where the destination's runs are too short for it.
    fn stage(&mut self) {
        let mut run = self.step();
        let mut run_from = self.axes.len();
        let mut stage = self.step();
        for (at, axis) in self.axes.iter_mut().enumerate().rev() {
            if axis.to != run {
                break;
            }
            axis.stage = stage;
            stage *= axis.block;
            run_from = at;
            run *= axis.extent;
            if axis.block != axis.extent {
                break;
            }
        }
        if stage < 4 * LINE || self.micro == Micro::Each {
            self.stream = false;
            self.axes.iter_mut().for_each(|axis| axis.stage = axis.to);
            return;
        }
        // A line more than whole ones, so that the lines of neighbouring runs are in different sets.
        let mut pitch = (stage.div_ceil(LINE) | 1) * LINE;
        for axis in self.axes[..run_from].iter_mut().rev() {
            axis.stage = pitch;
            pitch *= axis.block;
        }
        self.run_from = run_from;
        self.lines = (0..run_from).filter(|&at| self.axes[at].block > 1).collect();
        // Tiles may write a register's width past the last run.
        self.stage_bytes = pitch + LINE;
    }

    fn choose_order(&mut self, tuning: &Tuning) {
        let tile = match self.micro {
            Micro::Tiles { across } => [across, self.axes.len() - 1],
            _ => [self.axes.len().saturating_sub(1); 2],
        };
        let inside = |&at: &usize| self.axes[at].block > 1 && !tile.contains(&at);
        self.inner = (0..self.axes.len()).filter(inside).collect();
        let along = |&at: &usize| self.axes[at].block > 1 && at != tile[0];
        self.runs = (0..self.axes.len()).filter(along).collect();
        self.order = (0..self.axes.len()).filter(|&at| self.axes[at].extent > self.axes[at].block).collect();
        if !tuning.sweep_to {
            // The axis with the smallest source stride goes fastest.
            let fastest = self.order.iter().copied().min_by_key(|&at| self.axes[at].from);
            self.order.retain(|at| Some(*at) != fastest);
            self.order.extend(fastest);
        }
    }
}

/// A block of `wanted` units or somewhat more or less, such that its blocks are alike and made of whole lines.
fn rounded(wanted: usize, extent: usize, unit: usize) -> usize {
    let line = (LINE / unit).max(1);
    if wanted >= extent {
        return extent;
    }
    let pieces = extent.div_ceil(wanted);
    extent.div_ceil(pieces).next_multiple_of(line)
}

/// Which tile moves them. Where it is rows, an axis of bytes is appended, or an innermost axis turned into one.
fn micro(unit: usize, axes: &mut SmallVec<[Axis; 8]>) -> Micro {
    let last = axes.last().copied();
    if let Some(Axis { extent, from, to }) = last
        && from == unit
        && to == unit
    {
        axes.pop();
        axes.push(Axis { extent: extent * unit, from: 1, to: 1 });
        return Micro::Rows;
    }
    if !matches!(unit, 1 | 2 | 4 | 8 | 16) || axes.is_empty() {
        axes.push(Axis { extent: unit, from: 1, to: 1 });
        return Micro::Rows;
    }
    let along = last.is_some_and(|axis| axis.to == unit);
    match axes.iter().position(|axis| axis.from == unit) {
        Some(across) if along && across + 1 < axes.len() => Micro::Tiles { across },
        _ => Micro::Each,
    }
}
