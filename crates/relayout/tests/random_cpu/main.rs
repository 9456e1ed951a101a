//! Random convolutional networks for target `ort-cpu`: what `optimize` makes of them computes the same in ONNX Runtime, with its own
//! rewrites off and on, for the block of the host; a file for the other block is well formed, and the host refuses it.
//!
//! `RELAYOUT_RANDOM_CASES` sets how many networks are drawn (default 420) and `RELAYOUT_RANDOM_SEED` which ones. Each has a step of
//! another family, so that none stays rare; the test fails if something that `rows.rs` requires was counted less than [`LEAST`]
//! times, and prints the counts:
//!
//!     cargo test -p relayout --test random_cpu -- --nocapture

mod bodies;
#[path = "../common/mod.rs"]
mod common;
mod cuts;
#[path = "../random/dice.rs"]
mod dice;
mod found;
mod net;
#[path = "../random/proto.rs"]
mod proto;
mod rows;
mod steps;

use net::{Recipe, Sample, recipes};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use prost::Message;
use relayout::verify::{
    Inputs, Level, ModelSource, Options, Tensor, Tolerance, example_inputs, run, save_as_loaded, verify_on,
};
use relayout_onnx::proto::ModelProto;
use relayout_target::{Block, OrtCpu};
use rows::Rows;
use std::cell::RefCell;

/// How often what is required has to be counted.
const LEAST: usize = 20;

/// In how many parts the samples are drawn at the same time. A fixed number: it decides which samples there are.
const PARTS: u64 = 2;

/// Sums are formed in another order, and scales are folded into weights.
fn tolerance() -> Tolerance {
    Tolerance::new(2e-5, 2e-4)
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the network is fed, if the runtime runs it as it stands.
fn feeds(sample: &Sample) -> Result<Vec<Tensor>, String> {
    let source = ModelSource::Bytes(&sample.bytes);
    let inputs = Inputs::Random { seed: 1, dims: sample.dims.clone() };
    let feeds = example_inputs(common::runtime(), source, &inputs).map_err(|e| e.to_string())?;
    run(common::runtime(), source, &feeds, Level::Disabled).map_err(|e| e.to_string())?;
    Ok(feeds)
}

/// Whether a file computes what the network does as it stands, the runtime rewriting the file this much.
fn same(sample: &Sample, bytes: &[u8], feeds: &[Tensor], level: Level) -> Result<(), String> {
    let mut options = Options::default();
    options.level_b = level;
    let (a, b) = (ModelSource::Bytes(&sample.bytes), ModelSource::Bytes(bytes));
    let comparison = verify_on(common::runtime(), a, b, feeds, &options).map_err(|e| e.to_string())?;
    common::judged(&comparison, Some(tolerance()))
}

/// What ONNX Runtime makes of a file on load has no more reorders than the file.
fn adds_no_reorders(bytes: &[u8], place: &std::path::Path) -> Result<(), String> {
    save_as_loaded(common::runtime(), ModelSource::Bytes(bytes), Level::All, place).map_err(|e| e.to_string())?;
    let loaded = std::fs::read(place).map_err(|e| e.to_string())?;
    let count = |bytes: &[u8]| {
        let model = ModelProto::decode(bytes).unwrap_or_default();
        ["ReorderInput", "ReorderOutput"].map(|op| rows::blocked_nodes(&model, &[op]))
    };
    let (own, loaded) = (count(bytes), count(&loaded));
    if loaded[0] <= own[0] && loaded[1] <= own[1] {
        return Ok(());
    }
    Err(format!("ONNX Runtime adds reorders on load: {own:?} in the file, {loaded:?} in what it runs"))
}

/// Every law for one sample; what is to be counted.
fn laws(sample: &Sample, feeds: &[Tensor], name: &str) -> Result<Vec<String>, String> {
    let mut counted = Vec::new();
    for block in [Block::B8, Block::B16] {
        let target = OrtCpu::new(block).map_err(|e| e.to_string())?;
        let outcome = common::optimized_for(&target, &sample.bytes, &sample.dims)?;
        let channels = block.channels();
        let explained =
            |e: String| format!("in blocks of {channels}: {e}\n--- result\n{}", common::printed(&outcome.bytes));
        relayout::Model::from_bytes(outcome.bytes.clone().into(), None).map_err(|e| explained(e.to_string()))?;
        if common::optimized_for(&target, &sample.bytes, &sample.dims)?.bytes != outcome.bytes {
            return Err(explained("a second run on the same input gives other bytes".to_owned()));
        }
        if block != Block::of_host() {
            let ran = run(common::runtime(), ModelSource::Bytes(&outcome.bytes), feeds, Level::Disabled);
            match (rows::is_blocked(&outcome.bytes), ran) {
                (true, Ok(_)) => return Err(explained("a host of another block runs it".to_owned())),
                (true, Err(_)) => counted.push("file of another block that this host refuses".to_owned()),
                (false, _) => {}
            }
            continue;
        }
        same(sample, &outcome.bytes, feeds, Level::Disabled).map_err(explained)?;
        match (same(sample, &outcome.bytes, feeds, Level::All), same(sample, &sample.bytes, feeds, Level::All)) {
            (Err(why), Ok(())) => return Err(explained(format!("with the runtime's rewrites: {why}"))),
            (Err(_), Err(_)) => counted.push("changed or broken by the runtime's rewrites as it stands".to_owned()),
            (Ok(()), _) if rows::has_open_average(&outcome.bytes) => {
                counted.push("average that the runtime blocks wrongly".to_owned());
            }
            (Ok(()), _) => {
                let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("loaded_{name}.onnx"));
                adds_no_reorders(&outcome.bytes, &place).map_err(explained)?;
            }
        }
        counted.extend(rows::of_file(&outcome.bytes, channels));
        counted.extend(rows::of_graph(&outcome.graph));
        if outcome.report.changed {
            counted.push("changed by the optimizer".to_owned());
        }
    }
    Ok(counted)
}

/// What a part of the samples came to.
#[derive(Default)]
struct Tally {
    counted: Rows,
    refused: Vec<String>,
}

/// Draws samples and puts each to the test; what was wrong with the first that fails, shrunk.
fn part(part: u64, samples: u64, seed: u64) -> Result<Tally, String> {
    let config = Config { failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&part.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let tally = RefCell::new(Tally::default());
    for i in 0..samples {
        let theme = (i % u64::from(steps::COUNT)) as u16;
        let tree = recipes(theme).new_tree(&mut runner).map_err(|e| e.to_string())?;
        let result = runner.run_one(tree, |recipe: Recipe| {
            let sample = net::sample(&recipe);
            let feeds = match feeds(&sample) {
                Ok(feeds) => feeds,
                Err(why) => {
                    tally.borrow_mut().refused.push(why);
                    return Ok(());
                }
            };
            let counted = laws(&sample, &feeds, &part.to_string()).map_err(TestCaseError::fail)?;
            tally.borrow_mut().counted.add(counted.into_iter().chain(recipe.features()));
            Ok(())
        });
        if let Err(TestError::Fail(why, recipe)) = result {
            let sample = net::sample(&recipe);
            let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random_cpu{part}.onnx"));
            std::fs::write(&place, &sample.bytes).expect("the folder for temporary files can be written");
            let printed = common::printed(&sample.bytes);
            return Err(format!("{why}\n--- {recipe:?}\n--- input, also in {}\n{printed}", place.display()));
        }
        result.map_err(|e| e.to_string())?;
    }
    Ok(tally.into_inner())
}

#[test]
fn random_networks_in_blocks_compute_the_same() {
    common::runtime();
    let samples = number("RELAYOUT_RANDOM_CASES", 420);
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
    for tally in parts {
        let tally = tally.unwrap_or_else(|why| panic!("{why}"));
        all.counted.merge(tally.counted);
        all.refused.extend(tally.refused);
    }
    println!("{}\n{samples} samples, {} refused", all.counted, all.refused.len());
    let refused = all.refused.len() as u64 * 100 / samples.max(1);
    assert!(
        refused <= 10,
        "ONNX Runtime refuses {refused} % of the samples as they are drawn: the generator is at fault: {:?}",
        all.refused
    );
    let rare = all.counted.below(LEAST);
    assert!(
        rare.is_empty(),
        "these occur less than {LEAST} times in {samples} samples (RELAYOUT_RANDOM_CASES says how many):\n{}",
        rare.join("\n")
    );
}
