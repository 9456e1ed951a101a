//! Times of nodes.
//!
//! A model holds several copies of a node, each with weights of its own, so that what a call of the runtime takes beside them
//! becomes small, and is subtracted. Results are read by a Shape, after which the runtime gives their memory to another result, as it
//! does within networks: else each copy would write memory that no cache holds. Large ones are read four copies later: in networks a result
//! does not lie where the last one was. What these take is subtracted too. Models are run in turns, in several passes over all of them; a low quantile of each pass
//! is taken, and the best pass counts: other load on the machine makes runs longer, never shorter. On one thread it is the
//! time that the processor spends on it. What takes long is run less often: of it other load is a smaller part.

use std::time::Instant;

use relayout_ir::op::NCHWC;
use relayout_targets::measured::Case;

use super::cases::{OPERANDS, add, result_bytes, weight_bytes};
use super::sketch::{Sketch, Value};
use super::{CalibrateError, CalibrateOptions};
use relayout_verify::{Level, Model, ModelSource, Options, Runtime, Tensor};

/// Nodes of which the time is taken together: what each reads is what the one before it computes.
pub(super) type Chain = Vec<Case>;

/// Models that are run in turns.
pub(super) const TOGETHER: usize = 12;
/// Bytes of weights in a model, which is more than caches near a core hold.
const WEIGHTS: u64 = 16 << 20;
/// Bytes of results that a cache near a core holds even if nobody reads them.
const RESULTS: u64 = 128 << 10;
/// What copies of a node should take together, by a coarse guess, in nanoseconds.
const GUESSED_NS: f64 = 600_000.0;
/// Copies of a node in a model, at most.
pub(super) const COPIES: u64 = 128;
/// A node that takes longer than this by the coarse guess stands in its model once: what weights were near a core no longer matters.
const ALONE_NS: f64 = 5e6;
/// For how long a model is run in a pass: once more only if it took less so far.
const PASS_NS: f64 = 6e6;
/// A call that took longer than this is not made once before it is timed.
const WARM_NS: f64 = 2e6;
/// Calls that touch memory for the first time, which takes longer than most nodes: the first asks for each result by itself, the second for
/// one block in which the runtime has laid out all of them.
const FIRST_CALLS: usize = 2;
/// What calls take of which two passes are enough, and three.
const LONG_NS: [f64; 2] = [5e6, 1e6];

/// Nodes in a model of nodes that take little.
const NODES: usize = 200;

/// A model and what it is fed.
struct Timed {
    model: Model,
    feeds: Vec<Tensor>,
    threads: usize,
    /// Nanoseconds of the last call.
    last: f64,
    /// Nodes that read results: those that are a Shape, and those that are a Reshape.
    readers: [usize; 2],
}

fn with_threads(threads: usize) -> Options {
    let mut options = Options::default();
    options.threads = threads;
    options
}

impl Timed {
    /// A model that has all the memory that it needs.
    fn load(runtime: &Runtime, sketch: Sketch, threads: usize) -> Result<Timed, CalibrateError> {
        let readers = sketch.readers();
        let (bytes, feeds) = sketch.finish()?;
        let model = Model::load(runtime, ModelSource::Bytes(&bytes), Level::Disabled, &with_threads(threads))?;
        let mut timed = Timed { model, feeds, threads, last: 0.0, readers };
        for _ in 0..FIRST_CALLS {
            timed.run()?;
        }
        Ok(timed)
    }

    /// Nanoseconds of one call.
    fn run(&mut self) -> Result<f64, CalibrateError> {
        let start = Clock::now(self.threads);
        self.model.run(&self.feeds)?;
        self.last = start.elapsed_ns();
        Ok(self.last)
    }
}

/// A moment. Where ops run on the calling thread alone, it is its processor time that counts, so that what other programs take
/// of a core is not part of it.
enum Clock {
    Wall(Instant),
    #[cfg(unix)]
    Thread(u128),
}

impl Clock {
    fn now(threads: usize) -> Clock {
        #[cfg(unix)]
        if threads == 1 {
            return Clock::Thread(thread_ns());
        }
        let _ = threads;
        Clock::Wall(Instant::now())
    }

    fn elapsed_ns(&self) -> f64 {
        match self {
            Clock::Wall(start) => start.elapsed().as_nanos() as f64,
            #[cfg(unix)]
            Clock::Thread(start) => thread_ns().saturating_sub(*start) as f64,
        }
    }
}

#[cfg(unix)]
fn thread_ns() -> u128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u128 * 1_000_000_000 + time.tv_nsec as u128
}

/// Times of chains.
pub(super) struct Bench<'a> {
    runtime: &'a Runtime,
    options: &'a CalibrateOptions,
    block: u64,
    threads: usize,
}

impl<'a> Bench<'a> {
    /// Times on the first number of threads that is asked for.
    pub(super) fn new(runtime: &'a Runtime, options: &'a CalibrateOptions, block: u64) -> Bench<'a> {
        Bench { runtime, options, block, threads: options.threads.first().copied().unwrap_or(1) }
    }

    /// The same on other threads.
    pub(super) fn on_threads(self, threads: usize) -> Bench<'a> {
        Bench { threads, ..self }
    }

    /// What a node takes that moves and computes nothing: a Reshape in a row of them.
    pub(super) fn node_ns(&self) -> Result<u64, CalibrateError> {
        let mut sketch = Sketch::new();
        let mut name = sketch.node("Abs", "", &["start"], "view", &[]);
        let shapes = [sketch.ints("matrix", &[1, 1]), sketch.ints("vector", &[1])];
        for (i, shape) in shapes.iter().cycle().take(NODES).enumerate() {
            name = sketch.node("Reshape", "", &[&name, shape], &format!("view.{i}"), &[]);
        }
        Ok(self.one_of(sketch)?.round().max(1.0) as u64)
    }

    /// What a Shape takes, and a Reshape, which is the same of any operand.
    fn reader_ns(&self) -> Result<[f64; 2], CalibrateError> {
        let mut sketch = Sketch::new();
        (0..NODES).for_each(|_| drop(sketch.read("start")));
        Ok([self.one_of(sketch)?, self.node_ns()? as f64])
    }

    /// What a node takes in a model of [`NODES`] that take little.
    fn one_of(&self, sketch: Sketch) -> Result<f64, CalibrateError> {
        let (mut nodes, mut empty) = (Timed::load(self.runtime, sketch, self.threads)?, self.empty()?);
        let (mut call, mut time) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..400 {
            call = call.min(empty.run()?);
            time = time.min(nodes.run()?);
        }
        Ok((time - call) / NODES as f64)
    }

    /// A model that computes nothing: what a call takes anyhow.
    fn empty(&self) -> Result<Timed, CalibrateError> {
        Timed::load(self.runtime, Sketch::new(), self.threads)
    }

    /// Nanoseconds of each chain.
    pub(super) fn times(
        &self,
        chains: &[Chain],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<f64>, CalibrateError> {
        let (passes, rounds) = (self.options.passes.max(1), self.options.rounds.max(1));
        let reader = self.reader_ns()?;
        // Nanoseconds of a call, without what reads results.
        let mut times = vec![f64::INFINITY; chains.len()];
        // What is subtracted is the best that was seen: one call that took long must not make nodes cheap.
        let mut call = f64::INFINITY;
        let total = passes * chains.len();
        for pass in 0..passes {
            // What took long in the passes before is known well enough.
            let enough =
                |time: f64| pass > 1 && LONG_NS.iter().take(pass - 1).any(|&long| time.is_finite() && time > long);
            let open: Vec<usize> =
                (0..chains.len()).filter(|&at| !times.get(at).copied().is_some_and(enough)).collect();
            for (i, group) in open.chunks(TOGETHER).enumerate() {
                progress(pass * chains.len() + i * TOGETHER, total);
                // A pass in which other programs had the caches throughout is not the one that counts.
                let those: Vec<&Chain> = group.iter().filter_map(|&at| chains.get(at)).collect();
                let mut now = self.in_turns(&those, rounds, reader)?;
                call = call.min(now.pop().unwrap_or(f64::INFINITY));
                for (&at, now) in group.iter().zip(now) {
                    if let Some(time) = times.get_mut(at) {
                        *time = time.min(now);
                    }
                }
            }
        }
        progress(total, total);
        let of_one = |(time, chain): (f64, &Chain)| (time - call).max(1.0) / self.copies(chain) as f64;
        Ok(times.into_iter().zip(chains).map(of_one).collect())
    }

    /// Runs some chains in turns, and last a model that computes nothing: nanoseconds of a call of each.
    fn in_turns(&self, chains: &[&Chain], rounds: usize, reader: [f64; 2]) -> Result<Vec<f64>, CalibrateError> {
        let mut models = chains.iter().map(|chain| self.model(chain)).collect::<Result<Vec<Timed>, _>>()?;
        models.push(self.empty()?);
        Self::turns(&mut models, rounds, reader)
    }

    /// Nanoseconds of each case, all of them in turns. `None` for one that can't be a model of its own: it is too large, or the runtime
    /// has no kernel for it.
    pub(super) fn cases(&self, cases: &[Case]) -> Result<Vec<Option<u64>>, CalibrateError> {
        let chains: Vec<Chain> = cases.iter().map(|case| vec![case.clone()]).collect();
        let mut models = Vec::new();
        let mut places = Vec::new();
        for chain in &chains {
            let made = self.model(chain);
            places.push(made.is_ok().then_some(models.len()));
            models.extend(made.ok());
        }
        models.push(self.empty()?);
        let reader = self.reader_ns()?;
        let mut best = vec![f64::INFINITY; models.len()];
        for _ in 0..self.options.passes.max(1) {
            let times = Self::turns(&mut models, self.options.rounds.max(1), reader)?;
            best.iter_mut().zip(times).for_each(|(best, ns)| *best = best.min(ns));
        }
        let call = best.last().copied().unwrap_or_default();
        let of = |(place, chain): (Option<usize>, &Chain)| {
            Some((((best.get(place?)? - call).max(1.0) / self.copies(chain) as f64).round().max(1.0)) as u64)
        };
        Ok(places.into_iter().zip(&chains).map(of).collect())
    }

    /// Runs models in turns: nanoseconds of a call of each, without those of nodes that read results.
    fn turns(models: &mut [Timed], rounds: usize, reader: [f64; 2]) -> Result<Vec<f64>, CalibrateError> {
        let mut samples: Vec<Vec<f64>> = vec![Vec::new(); models.len()];
        for _ in 0..rounds {
            for (timed, samples) in models.iter_mut().zip(samples.iter_mut()) {
                if samples.iter().sum::<f64>() > PASS_NS {
                    continue;
                }
                // Once to have code and operands near again after the other models.
                if timed.last < WARM_NS {
                    timed.run()?;
                }
                samples.push(timed.run()?);
            }
        }
        let read =
            models.iter().map(|timed| timed.readers.iter().zip(reader).map(|(&n, ns)| n as f64 * ns).sum::<f64>());
        Ok(samples.into_iter().zip(read).map(|(samples, read)| low(samples) - read).collect())
    }

    /// How often a chain stands in its model.
    fn copies(&self, chain: &Chain) -> usize {
        let guess: f64 = chain.iter().map(|case| 200.0 + case.work(self.block) / 8.0).sum();
        let weights: u64 = chain.iter().map(|case| weight_bytes(case, self.block)).sum();
        let least = if guess > ALONE_NS { 1 } else { 2 };
        ((GUESSED_NS / guess) as u64).min(WEIGHTS / weights.max(1)).max(least).min(self.options.copies) as usize
    }

    fn model(&self, chain: &Chain) -> Result<Timed, CalibrateError> {
        let copies = self.copies(chain);
        let bytes = chain.last().map_or(0, |case| result_bytes(case, self.block));
        let mut results = Vec::new();
        let mut sketch = Sketch::new();
        for copy in 0..copies {
            let mut input: Option<String> = None;
            for case in chain {
                input = Some(add(&mut sketch, case, copy, input.as_deref(), self.block)?);
            }
            results.push(sketch.last_results());
        }
        if bytes.saturating_mul(copies as u64) > RESULTS && copies > OPERANDS {
            let behind = if bytes > RESULTS / OPERANDS as u64 { OPERANDS } else { copies };
            for (copy, names) in results.iter().enumerate() {
                let later = results.get(copy + behind).map_or(&[][..], Vec::as_slice);
                for (at, name) in names.iter().enumerate() {
                    match later.get(at) {
                        Some(other) => sketch.read_behind(name, other),
                        None => drop(sketch.read(name)),
                    }
                }
            }
        }
        Timed::load(self.runtime, sketch, self.threads)
    }
}

/// The block of the runtime on this machine: `ReorderInput` of 4 channels pads to it.
pub(super) fn block(runtime: &Runtime) -> Result<u64, CalibrateError> {
    let mut sketch = Sketch::new();
    let x = sketch.floats("x", &[1, 4, 1, 1])?;
    let blocked = sketch.node("ReorderInput", NCHWC, &[&x], "blocked", &[]);
    sketch.node("Size", "", &[&blocked], "size", &[]);
    let flat = sketch.node("Cast", "", &["size"], "size.f32", &[("to", Value::Int(1))]);
    let one = sketch.ints("one", &[1]);
    let size = sketch.node("Reshape", "", &[&flat, &one], "size.1", &[]);
    sketch.result(&size);
    let (bytes, feeds) = sketch.finish()?;
    let no_blocks = |why: String| CalibrateError::NoBlocks { why };
    let run = Model::load(runtime, ModelSource::Bytes(&bytes), Level::Disabled, &with_threads(1));
    let run = run.and_then(|mut m| m.run(&feeds));
    let outputs = run.map_err(|e| no_blocks(e.to_string()))?;
    let size = outputs.last().and_then(|tensor| match tensor.data() {
        relayout_verify::Data::F32(values) => values.first().map(|&v| v as u64),
        _ => None,
    });
    size.filter(|&size| size >= 4).ok_or_else(|| no_blocks(format!("a reorder of 4 channels gave {size:?}")))
}

/// The fifth of the samples that is below the others; its upper end.
fn low(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 5).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::low;

    #[test]
    fn a_few_long_runs_do_not_count_and_neither_does_one_short_one() {
        let mut samples = vec![10.0; 8];
        samples.extend([1.0, 900.0, 1000.0]);
        assert_eq!(low(samples) as u64, 10);
    }
}
