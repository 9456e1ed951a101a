//! Random small models: what `optimize` makes of them computes the same, moves no more, and is not changed by a second run.
//!
//! A sample is a [`recipe::Recipe`]: sizes, an operator set and a list of steps, each of which grows the graph by one op or a few
//! if it fits. Some steps are drawn, others are dealt (`cards.rs`), so that every op of the table, every operator set and every
//! feature that `histogram.rs` names occurs at least [`LEAST`] times; the test fails if one does not, and prints the counts.
//! Failing samples shrink to few steps. `RELAYOUT_RANDOM_CASES` sets how many samples are drawn (default 240) and
//! `RELAYOUT_RANDOM_SEED` which ones; both have fixed defaults, so a run finds what the last one found.
//!
//! A sample counts only if ONNX Runtime takes the original: at most one in five may be refused. To see the histogram:
//!
//!     cargo test -p relayout --test random -- models:: --nocapture

mod absent;
mod cards;
use crate::common;
mod graft;
mod histogram;
mod misread;
mod ops;
mod recipe;
mod sketch;

use crate::sampling::{self, Draw, LEAST, PARTS, Part};
use cards::Deck;
use histogram::Histogram;
use recipe::{Recipe, recipes};
use relayout_verify::{Tensor, Tolerance};
use sketch::Sample;
use std::cell::RefCell;

/// How often a part deals for everything: its share.
const DEALT: usize = LEAST.div_ceil(PARTS as usize);

/// What the model is fed, if the runtime runs it as it stands.
fn feeds(sample: &Sample) -> Result<Vec<Tensor>, String> {
    sampling::feeds(&sample.bytes, &sample.dims, &sample.feeds)
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

/// Draws samples and puts each to the test.
fn part(part: &mut Part) -> Result<Tally, String> {
    let mut deck = Deck::new(DEALT, part.seed.wrapping_add(part.number));
    let tally = RefCell::new(Tally::default());
    for row in deck.rows() {
        tally.borrow_mut().counted.mention(row);
    }
    for _ in 0..part.samples {
        let (opset, hand) = deck.deal(&tally.borrow().counted);
        let test = |recipe: &Recipe| {
            let sample = sketch::sample(recipe);
            let feeds = match feeds(&sample) {
                Ok(feeds) => feeds,
                Err(why) => {
                    tally.borrow_mut().refused.push(why);
                    return Ok(());
                }
            };
            let outcome = laws(&sample, &feeds)?;
            let mut tally = tally.borrow_mut();
            tally.changed += usize::from(outcome.report.changed);
            tally.counted.add(&sample);
            tally.counted.add_decision(&outcome);
            Ok(())
        };
        part.one(recipes(opset, hand), |recipe| sketch::sample(recipe).bytes, test)?;
    }
    Ok(tally.into_inner())
}

#[test]
fn random_models_compute_the_same_move_no_more_and_settle() {
    let draw = Draw::new("random", 240, 2000);
    let mut all = Tally::default();
    for row in histogram::required() {
        all.counted.mention(&row);
    }
    for tally in draw.parts(part) {
        all.counted.merge(&tally.counted);
        all.refused.extend(tally.refused);
        all.changed += tally.changed;
    }
    let (refused, changed) = (all.refused.len(), all.changed);
    println!("{}\n{} samples, {refused} refused, {changed} changed", all.counted, draw.samples());
    println!("absent:\n{}", absent::listed().collect::<Vec<_>>().join("\n"));
    draw.few_refused(&all.refused, 20);
    let gaining = draw.percent(changed);
    assert!(gaining >= 30, "only {gaining} % of the samples leave anything to gain: they test too little");
    draw.none_rare(&all.counted.below(LEAST), LEAST);
}
