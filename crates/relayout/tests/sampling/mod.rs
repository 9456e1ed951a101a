//! What tests on random models share: how many samples are drawn and which, drawing them in parts at the same time, shrinking the
//! first that fails, and what the counts have to come to.
//!
//! `RELAYOUT_RANDOM_CASES` says how many and `RELAYOUT_RANDOM_SEED` which; both have fixed defaults, so a run finds what the last
//! one found.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::common;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use relayout_verify::{Inputs, Level, ModelSource, Tensor, example_inputs, run};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// How often what a test requires has to be counted, where samples are cheap.
pub(crate) const LEAST: usize = 8;

/// In how many parts the samples are drawn at the same time. A fixed number: it decides which samples there are.
pub(crate) const PARTS: u64 = 2;

/// Which samples a test draws.
pub(crate) struct Draw {
    name: &'static str,
    samples: u64,
    seed: u64,
    shrinks: u32,
}

impl Draw {
    /// So many samples unless the environment says otherwise; one that fails is shrunk by this many tries at most.
    pub(crate) fn new(name: &'static str, samples: u64, shrinks: u32) -> Draw {
        Draw { name, samples: common::samples(samples), seed: common::number("RELAYOUT_RANDOM_SEED", 0), shrinks }
    }

    /// How many samples there are.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Runs every part and gives what each came to; fails with what the first that fails says.
    pub(crate) fn parts<T: Send>(&self, run: impl Fn(&mut Part) -> Result<T, String> + Sync) -> Vec<T> {
        // Once, and not in two threads at the same time.
        common::runtime();
        let results: Vec<Result<T, String>> = std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = (0..PARTS).map(|p| scope.spawn(move || run(&mut self.part(p)))).collect();
            let panicked = |_| Err("a part of the test panicked".to_owned());
            threads.into_iter().map(|t| t.join().unwrap_or_else(panicked)).collect()
        });
        results.into_iter().map(|result| result.unwrap_or_else(|why| panic!("{why}"))).collect()
    }

    /// A part by its number; all parts have other samples.
    pub(crate) fn part(&self, number: u64) -> Part {
        let config = Config { failure_persistence: None, max_shrink_iters: self.shrinks, ..Config::default() };
        let mut bytes = [0u8; 32];
        bytes[..8].copy_from_slice(&self.seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        let runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let samples = self.samples / PARTS + u64::from(number < self.samples % PARTS);
        Part { name: self.name, number, samples, seed: self.seed, runner }
    }

    /// At most this share of the samples, in percent, is one that the runtime does not run as it is drawn.
    pub(crate) fn few_refused(&self, refused: &[String], most: u64) {
        let share = self.percent(refused.len());
        assert!(
            share <= most,
            "ONNX Runtime refuses {share} % of the samples as they are drawn: the generator is at fault: {refused:?}"
        );
    }

    /// Nothing that is required was counted too rarely.
    pub(crate) fn none_rare(&self, rare: &[String], least: usize) {
        assert!(
            rare.is_empty(),
            "these occur less than {least} times in {} samples (RELAYOUT_RANDOM_CASES says how many):\n{}",
            self.samples,
            rare.join("\n")
        );
    }

    /// The share of the samples that so many are, in percent.
    pub(crate) fn percent(&self, count: usize) -> u64 {
        count as u64 * 100 / self.samples.max(1)
    }
}

/// A part of the samples.
pub(crate) struct Part {
    name: &'static str,
    /// Which part.
    pub(crate) number: u64,
    /// How many samples it has.
    pub(crate) samples: u64,
    /// The seed of all parts.
    pub(crate) seed: u64,
    /// What draws them.
    pub(crate) runner: TestRunner,
}

impl Part {
    /// Draws a recipe and puts it to the test; what was wrong with the smallest that fails, with the model, which is also left in
    /// the folder for temporary files.
    pub(crate) fn one<R: Debug>(
        &mut self,
        recipes: impl Strategy<Value = R>,
        model: impl Fn(&R) -> Vec<u8>,
        test: impl Fn(&R) -> Result<(), String>,
    ) -> Result<(), String> {
        let tree = recipes.new_tree(&mut self.runner).map_err(|e| e.to_string())?;
        match self.runner.run_one(tree, |recipe| test(&recipe).map_err(TestCaseError::fail)) {
            Ok(_) => Ok(()),
            Err(TestError::Fail(why, recipe)) => {
                let bytes = model(&recipe);
                let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
                    .join(format!("{}{}.onnx", self.name, self.number));
                std::fs::write(&place, &bytes).expect("the folder for temporary files can be written");
                let printed = common::printed(&bytes);
                Err(format!("{why}\n--- {recipe:?}\n--- input, also in {}\n{printed}", place.display()))
            }
            Err(e) => Err(e.to_string()),
        }
    }
}

/// What a model is fed, if the runtime runs it as it stands: `given` where that has the input, else random numbers.
pub(crate) fn feeds(bytes: &[u8], dims: &BTreeMap<String, i64>, given: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let source = ModelSource::Bytes(bytes);
    let inputs = Inputs::Random { seed: 1, dims: dims.clone() };
    let random = example_inputs(common::runtime(), source, &inputs).map_err(|e| e.to_string())?;
    let own = |t: Tensor| given.iter().find(|own| own.name() == t.name()).cloned().unwrap_or(t);
    let feeds: Vec<Tensor> = random.into_iter().map(own).collect();
    run(common::runtime(), source, &feeds, Level::Disabled).map_err(|e| e.to_string())?;
    Ok(feeds)
}
