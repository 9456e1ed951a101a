//! Random small models: what `optimize` makes of them computes the same, moves no more, and is not changed by a second run.
//!
//! A sample is a [`recipe::Recipe`]: sizes, an operator set and a list of steps, each of which grows the graph by one op or a few
//! if it fits. Some steps are drawn, others are dealt (`cards.rs`), so that every op of the table, every operator set and every
//! feature that `histogram.rs` names occurs at least [`LEAST`] times; the test fails if one does not, and prints the counts.
//! Failing samples shrink to few steps. `RELAYOUT_RANDOM_CASES` sets how many samples are drawn (default 480) and
//! `RELAYOUT_RANDOM_SEED` which ones; both have fixed defaults, so a run finds what the last one found.
//!
//! A sample counts only if ONNX Runtime takes the original: at most one in five may be refused. To see the histogram:
//!
//!     cargo test -p relayout --test random -- --nocapture

mod absent;
mod cards;
#[path = "../common/mod.rs"]
mod common;
mod dice;
mod graft;
mod histogram;
mod misread;
#[path = "../op_cases/mod.rs"]
mod op_cases;
mod ops;
mod proto;
mod recipe;
mod sketch;
#[path = "../ops/uncovered.rs"]
mod uncovered;

use cards::Deck;
use histogram::Histogram;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use recipe::{Recipe, recipes};
use relayout::verify::{Inputs, Level, ModelSource, Tensor, Tolerance, example_inputs, run};
use sketch::Sample;
use std::cell::RefCell;

/// How often everything has to be counted.
const LEAST: usize = 20;

/// In how many parts the samples are drawn at the same time. A fixed number: it decides which samples there are.
const PARTS: u64 = 2;

/// How often a part deals for everything: its share.
const DEALT: usize = LEAST.div_ceil(PARTS as usize);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the model is fed, if the runtime runs it as it stands.
fn feeds(sample: &Sample) -> Result<Vec<Tensor>, String> {
    let source = ModelSource::Bytes(&sample.bytes);
    let inputs = Inputs::Random { seed: 1, dims: sample.dims.clone() };
    let random = example_inputs(common::runtime(), source, &inputs).map_err(|e| e.to_string())?;
    let given = |t: Tensor| sample.feeds.iter().find(|own| own.name() == t.name()).cloned().unwrap_or(t);
    let feeds: Vec<Tensor> = random.into_iter().map(given).collect();
    run(common::runtime(), source, &feeds, Level::Disabled).map_err(|e| e.to_string())?;
    Ok(feeds)
}

/// How near results have to be: equal, unless a sum may be taken in another order.
fn tolerance(sample: &Sample) -> Option<Tolerance> {
    (!sample.exact).then(|| Tolerance::new(1e-5, 1e-4))
}

/// Every law for one sample.
fn laws(sample: &Sample, feeds: &[Tensor]) -> Result<common::Outcome, String> {
    let dims = &sample.dims;
    let outcome = common::optimized(&sample.bytes, dims)?;
    let explained = |e: String| format!("{e}\n--- result\n{}", common::printed(&outcome.bytes));
    common::not_worse(&outcome.report).map_err(explained)?;
    common::says_no_more(&outcome).map_err(explained)?;
    let comparison = common::compared_on(&sample.bytes, &outcome.bytes, feeds).map_err(explained)?;
    common::judged(&comparison, tolerance(sample)).map_err(explained)?;
    common::settled(&sample.bytes, &outcome, dims).map_err(explained)?;
    common::settled_under_other_names(&outcome.bytes, dims).map_err(explained)?;
    Ok(outcome)
}

/// What a part of the samples came to.
#[derive(Default)]
struct Tally {
    counted: Histogram,
    refused: Vec<String>,
    changed: usize,
}

fn runner(seed: u64, part: u64) -> TestRunner {
    let config = Config { failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&part.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Draws samples and puts each to the test; what was wrong with the first that fails, shrunk.
fn part(part: u64, samples: u64, seed: u64) -> Result<Tally, String> {
    let mut runner = runner(seed, part);
    let mut deck = Deck::new(DEALT, seed.wrapping_add(part));
    let tally = RefCell::new(Tally::default());
    for row in deck.rows() {
        tally.borrow_mut().counted.mention(row);
    }
    for _ in 0..samples {
        let (opset, hand) = deck.deal(&tally.borrow().counted);
        let tree = recipes(opset, hand).new_tree(&mut runner).map_err(|e| e.to_string())?;
        let result = runner.run_one(tree, |recipe: Recipe| {
            let sample = sketch::sample(&recipe);
            let feeds = match feeds(&sample) {
                Ok(feeds) => feeds,
                Err(why) => {
                    tally.borrow_mut().refused.push(why);
                    return Ok(());
                }
            };
            let outcome = laws(&sample, &feeds).map_err(TestCaseError::fail)?;
            let mut tally = tally.borrow_mut();
            tally.changed += usize::from(outcome.report.changed);
            tally.counted.add(&sample);
            tally.counted.add_decision(&outcome);
            Ok(())
        });
        if let Err(TestError::Fail(why, recipe)) = result {
            let sample = sketch::sample(&recipe);
            let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random{part}.onnx"));
            std::fs::write(&place, &sample.bytes).expect("the folder for temporary files can be written");
            let printed = common::printed(&sample.bytes);
            return Err(format!("{why}\n--- {recipe:?}\n--- input, also in {}\n{printed}", place.display()));
        }
        result.map_err(|e| e.to_string())?;
    }
    Ok(tally.into_inner())
}

#[test]
fn random_models_compute_the_same_move_no_more_and_settle() {
    common::runtime();
    let samples = number("RELAYOUT_RANDOM_CASES", 480);
    let seed = number("RELAYOUT_RANDOM_SEED", 0);
    let parts: Vec<Result<Tally, String>> = std::thread::scope(|scope| {
        let share = |p: u64| samples / PARTS + u64::from(p < samples % PARTS);
        let threads: Vec<_> = (0..PARTS).map(|p| scope.spawn(move || part(p, share(p), seed))).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("a part of the test panicked".to_owned())))
            .collect()
    });
    let mut all = Tally::default();
    for row in histogram::required() {
        all.counted.mention(&row);
    }
    for tally in parts {
        let tally = tally.unwrap_or_else(|why| panic!("{why}"));
        all.counted.merge(&tally.counted);
        all.refused.extend(tally.refused);
        all.changed += tally.changed;
    }
    let share = |count: usize| count as u64 * 100 / samples.max(1);
    println!("{}\n{samples} samples, {} refused, {} changed", all.counted, all.refused.len(), all.changed);
    println!("absent:\n{}", absent::listed().collect::<Vec<_>>().join("\n"));
    let (refused, gaining) = (share(all.refused.len()), share(all.changed));
    assert!(
        refused <= 20,
        "ONNX Runtime refuses {refused} % of the samples as they are drawn: the generator is at fault: {:?}",
        all.refused
    );
    assert!(gaining >= 30, "only {gaining} % of the samples leave anything to gain: they test too little");
    let rare = all.counted.below(LEAST);
    assert!(
        rare.is_empty(),
        "these occur less than {LEAST} times in {samples} samples (RELAYOUT_RANDOM_CASES says how many):\n{}",
        rare.join("\n")
    );
}
