//! Random small models: what `optimize` makes of them computes the same, moves no more, and is not changed by a second run.
//!
//! A sample is a [`recipe::Recipe`]: sizes, an operator set and a list of steps, each of which grows the graph by one op or a few
//! if it fits. Failing samples shrink to few steps. `RELAYOUT_RANDOM_CASES` sets how many samples are drawn (default 300) and
//! `RELAYOUT_RANDOM_SEED` which ones; both have fixed defaults, so a run finds what the last one found.
//!
//! A sample counts only if ONNX Runtime takes the original: at most one in five may be refused.

#[path = "../common/mod.rs"]
mod common;
mod ops;
mod recipe;
mod sketch;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use recipe::{Recipe, recipes};
use relayout::verify::{Inputs, Level, ModelSource, Tolerance, example_inputs, run};
use sketch::Sample;
use std::cell::Cell;
use std::collections::BTreeMap;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether the runtime runs the model as it stands.
fn runs(sample: &Sample, dims: &BTreeMap<String, i64>) -> Result<(), String> {
    let source = ModelSource::Bytes(&sample.bytes);
    let inputs = Inputs::Random { seed: 1, dims: dims.clone() };
    let feeds = example_inputs(common::runtime(), source, &inputs).map_err(|e| e.to_string())?;
    run(common::runtime(), source, &feeds, Level::Disabled).map(|_| ()).map_err(|e| e.to_string())
}

/// Every law for one sample; whether the optimizer changed it.
fn laws(sample: &Sample, dims: &BTreeMap<String, i64>) -> Result<bool, String> {
    let outcome = common::optimized(&sample.bytes, dims)?;
    let explained = |e: String| format!("{e}\n--- result\n{}", common::printed(&outcome.bytes));
    common::not_worse(&outcome.report).map_err(explained)?;
    common::says_no_more(&outcome).map_err(explained)?;
    let comparison = common::compared(&sample.bytes, &outcome.bytes, dims).map_err(explained)?;
    let tolerance = (!sample.exact).then(|| Tolerance::new(1e-5, 1e-4));
    common::judged(&comparison, tolerance).map_err(explained)?;
    common::settled(&sample.bytes, &outcome, dims).map_err(explained)?;
    common::settled_under_other_names(&outcome.bytes, dims).map_err(explained)?;
    Ok(outcome.report.changed)
}

#[test]
fn random_models_compute_the_same_move_no_more_and_settle() {
    common::runtime();
    let cases = number("RELAYOUT_RANDOM_CASES", 300);
    let seed = number("RELAYOUT_RANDOM_SEED", 0);
    let config = Config { cases: cases as u32, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let (skipped, changed) = (Cell::new(0u64), Cell::new(0u64));
    let result = runner.run(&recipes(), |recipe: Recipe| {
        let sample = sketch::sample(&recipe);
        let dims = sample.dims.clone();
        if runs(&sample, &dims).is_err() {
            skipped.set(skipped.get() + 1);
            return Ok(());
        }
        let gains = laws(&sample, &dims).map_err(TestCaseError::fail)?;
        changed.set(changed.get() + u64::from(gains));
        Ok(())
    });
    if let Err(TestError::Fail(why, recipe)) = result {
        let sample = sketch::sample(&recipe);
        let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("random.onnx");
        std::fs::write(&place, &sample.bytes).expect("the folder for temporary files can be written");
        panic!("{why}\n--- input, also in {}\n{}", place.display(), common::printed(&sample.bytes));
    }
    assert!(result.is_ok(), "{result:?}");
    let share = |count: u64| count * 100 / cases.max(1);
    let (refused, gaining) = (share(skipped.get()), share(changed.get()));
    assert!(
        refused <= 20,
        "ONNX Runtime refuses {refused} % of the samples as they are drawn: the generator is at fault"
    );
    assert!(gaining >= 30, "only {gaining} % of the samples leave anything to gain: they test too little");
}
