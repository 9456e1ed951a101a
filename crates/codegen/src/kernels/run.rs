//! A movement made ready for a machine, and its run by one or more threads.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::isa::Kind;
use super::job::{Job, LINE};
use super::model;
use super::{Isa, Movement, Options, portable};
use crate::{Class, Error, Plan};

/// Below this many bytes one thread is faster than several.
const PARALLEL_BYTES: usize = 1 << 18;

/// Pieces for each thread, so that none waits long for another.
const PIECES_PER_THREAD: usize = 8;

/// A plan made ready: loops chosen, instruction set fixed. Made once, run often, by any thread.
#[derive(Debug, Clone)]
pub struct Kernel {
    bytes: usize,
    threads: usize,
    isa: Isa,
    plan: Plan,
    /// The loops for a destination that begins with a line, and for one that does not.
    jobs: Option<(Job, Option<Job>)>,
}

impl Kernel {
    /// Chooses the loops for a plan.
    #[must_use]
    pub fn new(plan: &Plan, options: &Options) -> Self {
        let isa = options.isa.unwrap_or_else(Isa::best);
        let threads = if options.threads == 0 { rayon::current_num_threads() } else { options.threads };
        let fits = |movement: &Movement| {
            movement.ends().is_some_and(|(from, to)| from <= plan.bytes() && to <= plan.bytes())
        };
        let movement = Movement::of(plan).filter(fits);
        let jobs = movement.filter(|_| isa.0 != Kind::Portable).map(|movement| {
            let tuning = options.tuning.unwrap_or_else(|| model::tuning(&movement, options.hint, threads));
            let job = Job::new(&movement, &tuning, LINE);
            let odd = (tuning.stream && job.stage_bytes == 0).then(|| Job::new(&movement, &tuning, 1));
            (job, odd)
        });
        Self { bytes: plan.bytes(), threads, isa, plan: plan.clone(), jobs }
    }

    /// Moves `src` to `dst`, both of exactly [`Plan::bytes`] bytes; every byte of `dst` is written.
    pub fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Error> {
        for (buffer, got) in [("source", src.len()), ("destination", dst.len())] {
            if got != self.bytes {
                return Err(Error::BufferLength { buffer, want: self.bytes, got });
            }
        }
        let Some((job, odd)) = &self.jobs else {
            portable::permute(src, dst, &self.plan);
            return Ok(());
        };
        if self.plan.class() == Class::Copy && !job.stream && self.threads == 1 {
            dst.copy_from_slice(src);
            return Ok(());
        }
        let job = match odd {
            Some(odd) if !dst.as_ptr().addr().is_multiple_of(LINE) => odd,
            _ => job,
        };
        let run = Run { job, isa: self.isa, src: src.as_ptr(), dst: dst.as_mut_ptr() };
        run.all(if self.bytes < PARALLEL_BYTES { 1 } else { self.threads });
        Ok(())
    }

    /// The loops, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        self.jobs.as_ref().map_or_else(String::new, |(job, _)| format!("{job:?}"))
    }
}

/// A job with its buffers. Both are as long as the kernel that made this checked the job to need.
struct Run<'a> {
    job: &'a Job,
    isa: Isa,
    src: *const u8,
    dst: *mut u8,
}

// SAFETY: the source is only read; blocks write disjoint bytes of the destination, and a block is run by one thread.
unsafe impl Sync for Run<'_> {}

thread_local! {
    /// Each thread's stage, in whole lines.
    static STAGE: RefCell<Vec<Lines>> = const { RefCell::new(Vec::new()) };
}

/// A line of a stage.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lines(#[allow(dead_code, reason = "room that is used through a pointer")] [u8; LINE]);

impl Run<'_> {
    /// Runs all blocks, on at most `threads` threads, this one included.
    fn all(&self, threads: usize) {
        let threads = threads.min(self.job.blocks);
        if threads <= 1 {
            self.blocks(0..self.job.blocks);
            return;
        }
        let piece = self.job.blocks.div_ceil(threads * PIECES_PER_THREAD);
        let next = AtomicUsize::new(0);
        let busy = AtomicUsize::new(threads - 1);
        let work = || {
            loop {
                let start = next.fetch_add(piece, Ordering::Relaxed);
                if start >= self.job.blocks {
                    break;
                }
                self.blocks(start..self.job.blocks.min(start + piece));
            }
        };
        rayon::in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| {
                    work();
                    busy.fetch_sub(1, Ordering::Release);
                });
            }
            work();
            // The others are at their last piece: to sleep and be woken would take longer.
            let mut turns = 0;
            while busy.load(Ordering::Acquire) > 0 && turns < 20_000 {
                std::hint::spin_loop();
                turns += 1;
            }
        });
    }

    fn blocks(&self, blocks: Range<usize>) {
        STAGE.with_borrow_mut(|stage| {
            let lines = self.job.stage_bytes.div_ceil(LINE);
            if stage.len() < lines {
                stage.resize(lines, Lines([0; LINE]));
            }
            self.dispatch(blocks, stage.as_mut_ptr().cast());
        });
    }

    fn dispatch(&self, blocks: Range<usize>, stage: *mut u8) {
        let (job, src, dst) = (self.job, self.src, self.dst);
        // SAFETY: detection found the instruction set; `Kernel` checked that all units are within the buffers; the stage has
        // the lines that the job asks for.
        unsafe {
            match self.isa.0 {
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => super::avx512::run(job, src, dst, blocks, stage),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => super::x86::run_avx2(job, src, dst, blocks, stage),
                #[cfg(target_arch = "x86_64")]
                Kind::Sse2 => super::x86::run_sse2(job, src, dst, blocks, stage),
                #[cfg(target_arch = "aarch64")]
                Kind::Neon => super::neon::run(job, src, dst, blocks, stage),
                // The portable kernel has no jobs.
                Kind::Portable => {}
            }
        }
    }
}
