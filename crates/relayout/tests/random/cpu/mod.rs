//! Random convolutional networks for target `ort-cpu`: what `optimize` makes of them computes the same in ONNX Runtime, with its own
//! rewrites off and on, for the block of the host; a file for the other block is well formed, and the host refuses it.
//!
//! `RELAYOUT_RANDOM_CASES` sets how many networks are drawn (default 180) and `RELAYOUT_RANDOM_SEED` which ones. Each has a step of
//! another family, so that none stays rare; the test fails if something that `rows.rs` requires was counted less than [`LEAST`]
//! times, and prints the counts:
//!
//!     cargo test -p relayout --test random -- cpu:: --nocapture

use crate::common;
mod found;
mod rows;
use crate::net::{self, Recipe, Sample, recipes};
use crate::sampling::{self, Draw, LEAST, Part};
use crate::steps;
use prost::Message;
use relayout_onnx::proto::ModelProto;
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Level, ModelSource, Options, Tensor, Tolerance, run, save_as_loaded, verify_on};
use rows::Rows;
use std::cell::RefCell;

/// Sums are formed in another order, and scales are folded into weights.
fn tolerance() -> Tolerance {
    Tolerance::new(2e-5, 2e-4)
}

/// What the network is fed, if the runtime runs it as it stands.
fn feeds(sample: &Sample) -> Result<Vec<Tensor>, String> {
    sampling::feeds(&sample.bytes, &sample.dims, &[])
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
    // Where moves cost a tenth of what they take alone, more ops are worth blocks.
    let priced = [Block::B8, Block::B16].into_iter().flat_map(|block| [2000, 100].map(|moves| (block, moves)));
    for (block, moves) in priced {
        let target = OrtCpu::new(block).map_err(|e| e.to_string())?;
        let costs = target.costs().clone().with_moves(moves);
        let target = target.with_costs(costs);
        let outcome = common::optimized_for(&target, &sample.bytes, &sample.dims)?;
        let channels = block.channels();
        let explained = |e: String| {
            format!("in blocks of {channels}, moves at {moves}: {e}\n--- result\n{}", common::printed(&outcome.bytes))
        };
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

/// Draws samples and puts each to the test.
fn part(part: &mut Part) -> Result<Tally, String> {
    let tally = RefCell::new(Tally::default());
    let name = part.number.to_string();
    for i in 0..part.samples {
        let theme = (i % u64::from(steps::COUNT)) as u16;
        let test = |recipe: &Recipe| {
            let sample = net::sample(recipe);
            let feeds = match feeds(&sample) {
                Ok(feeds) => feeds,
                Err(why) => {
                    tally.borrow_mut().refused.push(why);
                    return Ok(());
                }
            };
            let counted = laws(&sample, &feeds, &name)?;
            tally.borrow_mut().counted.add(counted.into_iter().chain(recipe.features()));
            Ok(())
        };
        part.one(recipes(theme), |recipe| net::sample(recipe).bytes, test)?;
    }
    Ok(tally.into_inner())
}

#[test]
fn random_networks_in_blocks_compute_the_same() {
    let draw = Draw::new("random_cpu", 180, 400);
    let mut all = Tally::default();
    for tally in draw.parts(part) {
        all.counted.merge(tally.counted);
        all.refused.extend(tally.refused);
    }
    println!("{}\n{} samples, {} refused", all.counted, draw.samples(), all.refused.len());
    draw.few_refused(&all.refused, 10);
    draw.none_rare(&all.counted.below(Block::of_host(), LEAST), LEAST);
}
