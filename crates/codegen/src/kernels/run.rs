//! A movement made ready for a machine, and its run by one or more threads.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::isa::Kind;
use super::job::{Job, LINE};
use super::model;
use super::{Isa, Movement, Options, RowForm, crew, portable};
use crate::{Class, Error, Gather, Plan, Relayout, StridedCopy};

/// A byte of a buffer that may hold nothing yet.
type Byte = MaybeUninit<u8>;

/// Below this many bytes one thread is faster than several.
const PARALLEL_BYTES: usize = 1 << 18;

/// Pieces for each thread, so that none waits long for another.
const PIECES_PER_THREAD: usize = 8;

/// Bytes of a piece where the number of threads is not known: small beside what a thread moves in the time it takes to wake one.
const SHARED_PIECE_BYTES: usize = 1 << 17;

/// Calls `work` up to as often as it is told, from any threads and at the same time, and comes back when all calls have.
type Share<'a> = &'a dyn Fn(usize, &(dyn Fn() + Sync));

/// The threads that run the blocks.
#[derive(Clone, Copy)]
enum Threads<'a> {
    /// The caller and the pool of `rayon`, at most so many together.
    Own(usize),
    /// Those of the caller.
    Shared(Share<'a>),
}

/// A plan made ready: loops chosen, instruction set fixed. Made once, run often, by any thread.
#[derive(Debug, Clone)]
pub struct Kernel {
    from_bytes: usize,
    to_bytes: usize,
    threads: usize,
    isa: Isa,
    /// The plan, for the portable kernel, which knows permutations as such.
    plan: Option<Plan>,
    /// The plan as a list of rows, where that is how it is run.
    gather: Option<Gather>,
    parts: Vec<Part>,
    /// What fills read.
    pad: Vec<u8>,
}

/// A movement of a kernel, with the loops for a destination that begins with a line, and for one that does not.
#[derive(Debug, Clone)]
struct Part {
    movement: Movement,
    /// Whether its source is the padding.
    fill: bool,
    aligned: Job,
    odd: Option<Job>,
}

impl Kernel {
    /// Chooses the loops for a plan.
    #[must_use]
    pub fn new(plan: &Plan, options: &Options) -> Self {
        let mut kernel = Self::empty(plan.bytes(), plan.bytes(), options);
        kernel.plan = Some(plan.clone());
        if let Some(movement) = Movement::of(plan) {
            kernel.gather = kernel.listed(plan, &movement, options);
            kernel.add(movement, false, options);
        }
        kernel
    }

    /// The plan as a list of rows, if it is to be run so. Loops of a test's own choice are loops.
    fn listed(&self, plan: &Plan, movement: &Movement, options: &Options) -> Option<Gather> {
        let wanted = match options.form {
            RowForm::Strided => false,
            RowForm::Gather => true,
            RowForm::Auto => {
                options.tuning.is_none() && model::gathers(plan, movement, options.hint, self.isa.has_whole_lines())
            }
        };
        if wanted { Gather::of(plan) } else { None }
    }

    /// Chooses the loops for a move between two orders.
    #[must_use]
    pub fn between(relayout: &Relayout, options: &Options) -> Self {
        let mut kernel = Self::empty(relayout.from_bytes(), relayout.to_bytes(), options);
        kernel.pad = relayout.pad().to_vec();
        relayout.moves.iter().for_each(|movement| kernel.add(movement.clone(), false, options));
        relayout.fills.iter().for_each(|movement| kernel.add(movement.clone(), true, options));
        kernel
    }

    /// Chooses the loops for a copy between two views.
    #[must_use]
    pub fn copying(copy: &StridedCopy, options: &Options) -> Self {
        let mut kernel = Self::empty(copy.from_bytes(), copy.to_bytes(), options);
        copy.moves.iter().for_each(|movement| kernel.add(movement.clone(), false, options));
        kernel
    }

    fn empty(from_bytes: usize, to_bytes: usize, options: &Options) -> Self {
        let isa = options.isa.unwrap_or_else(Isa::best);
        let threads = if options.threads == 0 { rayon::current_num_threads() } else { options.threads };
        Self { from_bytes, to_bytes, threads, isa, plan: None, gather: None, parts: Vec::new(), pad: Vec::new() }
    }

    /// # Panics
    /// If the movement leaves its buffers: a defect of the plan that made it, caught before any pointer is made.
    fn add(&mut self, movement: Movement, fill: bool, options: &Options) {
        let from_bytes = if fill { self.pad.len() } else { self.from_bytes };
        let fits = movement.ends().is_some_and(|(from, to)| from <= from_bytes && to <= self.to_bytes);
        assert!(fits, "{movement} leaves {from_bytes} B or {} B", self.to_bytes);
        let whole = self.isa.has_whole_lines();
        let tuning = options.tuning.unwrap_or_else(|| model::tuning(&movement, options.hint, whole));
        let aligned = Job::new(&movement, &tuning, LINE, whole);
        let odd = (aligned.stream && aligned.stage_bytes == 0).then(|| Job::new(&movement, &tuning, 1, whole));
        self.parts.push(Part { movement, fill, aligned, odd });
    }

    /// Moves `src` to `dst`, both of exactly the plan's bytes; every byte of `dst` is written, but for a copy between views, which
    /// writes the elements of its view only.
    pub fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Error> {
        self.run_uninit(bytes(src), bytes_mut(dst))
    }

    /// [`Kernel::run`] for buffers that need not hold anything: memory that was just allocated, and padding of a source that nobody wrote.
    /// Every byte of `dst` is written; it holds something if the byte of `src` that it comes from does.
    pub fn run_uninit(&self, src: &[MaybeUninit<u8>], dst: &mut [MaybeUninit<u8>]) -> Result<(), Error> {
        self.run_on(src, dst, Threads::Own(self.threads))
    }

    /// [`Kernel::run`] on threads that the caller has, for programs with a pool of their own; the options' number of threads does not
    /// matter.
    ///
    /// `share(calls, work)` calls `work` up to `calls` times, from any threads and at the same time, and comes back when all calls
    /// have. Each call does what is left to be done until nothing is, so calls that come late or never cost nothing but their
    /// help. Moves too small to be worth it are made without `share`.
    pub fn run_shared(
        &self,
        src: &[u8],
        dst: &mut [u8],
        share: &dyn Fn(usize, &(dyn Fn() + Sync)),
    ) -> Result<(), Error> {
        self.run_shared_uninit(bytes(src), bytes_mut(dst), share)
    }

    /// [`Kernel::run_shared`] for buffers that need not hold anything; see [`Kernel::run_uninit`].
    pub fn run_shared_uninit(
        &self,
        src: &[MaybeUninit<u8>],
        dst: &mut [MaybeUninit<u8>],
        share: &dyn Fn(usize, &(dyn Fn() + Sync)),
    ) -> Result<(), Error> {
        self.run_on(src, dst, Threads::Shared(share))
    }

    fn run_on(&self, src: &[Byte], dst: &mut [Byte], threads: Threads<'_>) -> Result<(), Error> {
        for (buffer, want, got) in [("source", self.from_bytes, src.len()), ("destination", self.to_bytes, dst.len())] {
            if got != want {
                return Err(Error::BufferLength { buffer, want, got });
            }
        }
        match (&self.plan, &self.gather, self.isa.0, threads) {
            (Some(plan), _, Kind::Portable, _) => portable::permute(src, dst, plan),
            (Some(plan), ..) if plan.class() == Class::Copy && !parallel(threads, self.to_bytes) && !self.streams() => {
                dst.copy_from_slice(src);
            }
            // A list of rows is cut up for the pool's threads; a caller's own threads take the strided loops.
            (_, Some(gather), _, Threads::Own(own)) => {
                self.rows(gather, src, dst, if parallel(threads, self.to_bytes) { own } else { 1 });
            }
            _ => self.parts.iter().for_each(|part| self.part(part, src, dst, threads)),
        }
        Ok(())
    }

    /// The rows of a list, on at most `threads` threads. Both buffers have the plan's bytes.
    fn rows(&self, list: &Gather, src: &[Byte], dst: &mut [Byte], threads: usize) {
        let rows = dst.len() / list.row_bytes;
        let run = Rows { list, isa: self.isa, src: src.as_ptr().cast(), dst: dst.as_mut_ptr().cast() };
        if threads <= 1 {
            run.some(0..rows);
            return;
        }
        let piece = rows.div_ceil(threads * PIECES_PER_THREAD).max(1);
        let next = AtomicUsize::new(0);
        crew::share(threads - 1, &|| pieces(rows, piece, &next, |rows| run.some(rows)));
    }

    /// The instruction set that it runs on.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// How rows find their places: [`RowForm::Strided`] or [`RowForm::Gather`].
    #[must_use]
    pub fn form(&self) -> RowForm {
        let listed = self.gather.is_some() && self.isa.0 != Kind::Portable;
        if listed { RowForm::Gather } else { RowForm::Strided }
    }

    fn streams(&self) -> bool {
        self.parts.iter().any(|part| part.aligned.stream)
    }

    /// One movement. Both buffers have the bytes that `add` checked it against.
    fn part(&self, part: &Part, src: &[Byte], dst: &mut [Byte], threads: Threads<'_>) {
        let src = if part.fill { bytes(&self.pad) } else { src };
        if self.isa.0 == Kind::Portable {
            portable::strided(src, dst, &part.movement);
            return;
        }
        let job = match &part.odd {
            Some(odd) if !dst.as_ptr().addr().is_multiple_of(LINE) => odd,
            _ => &part.aligned,
        };
        let run = Run { job, isa: self.isa, src: src.as_ptr().cast(), dst: dst.as_mut_ptr().cast() };
        let bytes = part.movement.bytes();
        match threads {
            _ if !parallel(threads, bytes) => run.blocks(0..job.blocks),
            Threads::Own(threads) => run.all(threads),
            Threads::Shared(share) => run.shared(bytes, share),
        }
    }
}

/// Bytes that hold something as bytes that may.
fn bytes(bytes: &[u8]) -> &[Byte] {
    // SAFETY: the same place and length; every `u8` is a `MaybeUninit<u8>`, which has its size and alignment.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// Bytes to be written. Only what `run_on` copies of a source is, and where a destination came through here, so did its source: so
/// nothing that holds nothing gets into it.
fn bytes_mut(bytes: &mut [u8]) -> &mut [Byte] {
    // SAFETY: the same place and length, borrowed for as long; the callers, `run` and `run_shared`, have a source of `u8`, and
    // `run_on` writes bytes of the source and of the padding, which all hold something.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

fn parallel(threads: Threads<'_>, bytes: usize) -> bool {
    !matches!(threads, Threads::Own(0 | 1)) && bytes >= PARALLEL_BYTES
}

/// Takes pieces of `piece` numbers below `all` until `next` says that there are none left. No two calls get the same piece.
fn pieces(all: usize, piece: usize, next: &AtomicUsize, run: impl Fn(Range<usize>)) {
    loop {
        let start = next.fetch_add(piece, Ordering::Relaxed);
        if start >= all {
            break;
        }
        run(start..all.min(start + piece));
    }
}

/// A list of rows with its buffers, both of which have the bytes of the plan that it is of.
struct Rows<'a> {
    list: &'a Gather,
    isa: Isa,
    src: *const u8,
    dst: *mut u8,
}

// SAFETY: the source is only read; rows of the destination are disjoint, and each is copied by one thread.
unsafe impl Sync for Rows<'_> {}

impl Rows<'_> {
    fn some(&self, rows: Range<usize>) {
        let (list, src, dst) = (self.list, self.src, self.dst);
        // SAFETY: detection found the instruction set; a list made of a plan (`Gather::of`) names rows of its tensor only.
        unsafe {
            match self.isa.0 {
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => super::avx512::listed(list, src, dst, rows),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => super::x86::listed_avx2(list, src, dst, rows),
                #[cfg(target_arch = "x86_64")]
                Kind::Sse2 => super::x86::listed_sse2(list, src, dst, rows),
                #[cfg(target_arch = "aarch64")]
                Kind::Neon => super::neon::listed(list, src, dst, rows),
                // The portable kernel knows the plan.
                Kind::Portable => {}
            }
        }
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
        crew::share(threads - 1, &|| pieces(self.job.blocks, piece, &next, |blocks| self.blocks(blocks)));
    }

    /// Runs all blocks, on this thread and those that `share` calls from.
    fn shared(&self, bytes: usize, share: Share<'_>) {
        let calls = (bytes / SHARED_PIECE_BYTES).clamp(1, self.job.blocks.max(1));
        let piece = self.job.blocks.div_ceil(calls).max(1);
        let next = AtomicUsize::new(0);
        let work = || pieces(self.job.blocks, piece, &next, |blocks| self.blocks(blocks));
        share(calls, &work);
        // Whatever the calls were, nothing is left after this one.
        work();
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
