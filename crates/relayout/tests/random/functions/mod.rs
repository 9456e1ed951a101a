//! Random convolutional networks for the targets of domain `relayout`: what `optimize` makes of them computes the same in ONNX Runtime,
//! which inlines the functions, with its own rewrites off and on, and a second run gives the same bytes.
//!
//! Networks are those of `cpu`, of float32 and of float16, and quantized ones (`quantized.rs`). Channels are mostly odd, so that
//! layouts have pad lanes. `RELAYOUT_RANDOM_CASES` sets how many are drawn (default 24) and `RELAYOUT_RANDOM_SEED` which ones; the
//! test fails if something that [`REQUIRED`] lists was counted less than [`LEAST`] times, and prints the counts:
//!
//!     cargo test -p relayout --test random -- functions:: --nocapture

use crate::common;
mod found;
mod halves;
mod quantized;
use crate::net::{self, Conv, Net, Recipe, Sample, recipes};
use crate::proto::{int, ints};
use crate::sampling::{self, Draw, Part};
use crate::steps;
use proptest::prelude::*;
use prost::Message;
use relayout::targets::BUILTIN;
use relayout::{Target, target};
use relayout_onnx::dialect::DOMAIN;
use relayout_onnx::proto::{GraphProto, ModelProto};
use relayout_verify::{Level, ModelSource, Options, Tensor, Tolerance, verify_on};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// How often what is required has to be counted.
const LEAST: usize = 4;

/// What has to be counted, beside a changed result of every target.
const REQUIRED: &[&str] = &[
    "calls Conv",
    "calls MaxPool",
    "calls QLinearConv",
    "calls Relayout",
    "halves with calls",
    "moves that fill or crop channels",
    "quantized network with calls",
];

/// What numbers a network computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    Floats,
    Halves,
    Quantized,
}

impl Numbers {
    /// How near results are: sums are formed in another order, and halves are rounded in other places; scales of quantized
    /// networks are powers of two, so that nothing is rounded there.
    fn tolerance(self) -> Option<Tolerance> {
        match self {
            Numbers::Floats => Some(Tolerance::new(2e-5, 2e-4)),
            Numbers::Halves => Some(Tolerance::new(4e-3, 3e-2)),
            Numbers::Quantized => None,
        }
    }
}

/// A random network.
#[derive(Clone, Debug)]
enum Drawn {
    Floats(Recipe),
    Halves(Recipe),
    Quantized(quantized::Recipe),
}

impl Drawn {
    fn sample(&self) -> (Numbers, Sample) {
        match self {
            Drawn::Floats(recipe) => (Numbers::Floats, net::sample(recipe)),
            Drawn::Halves(recipe) => (Numbers::Halves, halves::on_halves(net::sample(recipe))),
            Drawn::Quantized(recipe) => (Numbers::Quantized, quantized::sample(recipe)),
        }
    }
}

/// Networks of the kind that the number of a sample says.
fn drawn(sample: u64) -> BoxedStrategy<Drawn> {
    let theme = (sample % u64::from(steps::COUNT)) as u16;
    match sample % 4 {
        0 => recipes(theme).prop_map(Drawn::Halves).boxed(),
        1 => quantized::recipes().prop_map(Drawn::Quantized).boxed(),
        _ => recipes(theme).prop_map(Drawn::Floats).boxed(),
    }
}

/// The targets whose files call functions.
fn targets() -> Vec<Box<dyn Target>> {
    let built_in = BUILTIN.iter().map(|name| target(name).expect("a built-in target"));
    built_in.filter(|target| target.capabilities().calls_functions).collect()
}

/// Functions that a graph and its bodies call, by the op that they are named by, and what they say of slots.
fn calls(graph: &GraphProto, rows: &mut Vec<String>) {
    for node in &graph.node {
        if node.domain.as_deref() == Some(DOMAIN) {
            let name = node.op_type();
            let op = name.split('_').next().unwrap_or_default().trim_end_matches("1d").trim_end_matches("2d");
            rows.push(format!("calls {op}"));
            if node.attribute.iter().any(|a| matches!(a.name(), "shape" | "slots")) && op == "Relayout" {
                rows.push("moves that fill or crop channels".to_owned());
            }
        }
        node.attribute.iter().filter_map(|a| a.g.as_deref()).for_each(|body| calls(body, rows));
    }
}

/// Every law for one network and one target; what is to be counted.
fn laws(target: &dyn Target, numbers: Numbers, sample: &Sample, feeds: &[Tensor]) -> Result<Vec<String>, String> {
    let outcome = common::optimized_for(target, &sample.bytes, &sample.dims)?;
    let explained = |e: String| format!("{}: {e}\n--- result\n{}", target.name(), common::printed(&outcome.bytes));
    if common::optimized_for(target, &sample.bytes, &sample.dims)?.bytes != outcome.bytes {
        return Err(explained("a second run on the same input gives other bytes".to_owned()));
    }
    let same = |bytes: &[u8], level: Level| {
        let mut options = Options::default();
        options.level_b = level;
        let (a, b) = (ModelSource::Bytes(&sample.bytes), ModelSource::Bytes(bytes));
        let comparison = verify_on(common::runtime(), a, b, feeds, &options).map_err(|e| e.to_string())?;
        common::judged(&comparison, numbers.tolerance())
    };
    let mut rows = Vec::new();
    if outcome.report.changed {
        same(&outcome.bytes, Level::Disabled).map_err(explained)?;
        match (same(&outcome.bytes, Level::All), same(&sample.bytes, Level::All)) {
            (Err(why), Ok(())) => return Err(explained(format!("with the runtime's rewrites: {why}"))),
            (Err(_), Err(_)) => rows.push("changed or broken by the runtime's rewrites as it stands".to_owned()),
            (Ok(()), _) => {}
        }
        rows.push(format!("changed for {}", target.name()));
    }
    let model = ModelProto::decode(&outcome.bytes[..]).map_err(|e| e.to_string())?;
    let mut called = Vec::new();
    model.graph.iter().for_each(|graph| calls(graph, &mut called));
    match numbers {
        Numbers::Halves if !called.is_empty() => rows.push("halves with calls".to_owned()),
        Numbers::Quantized if !called.is_empty() => rows.push("quantized network with calls".to_owned()),
        _ => {}
    }
    called.sort_unstable();
    called.dedup();
    rows.extend(called);
    Ok(rows)
}

/// What a part of the samples came to.
#[derive(Default)]
struct Tally {
    counted: BTreeMap<String, usize>,
    refused: Vec<String>,
}

/// Draws samples and puts each to the test for every target.
fn part(part: &mut Part) -> Result<Tally, String> {
    let (targets, tally) = (targets(), RefCell::new(Tally::default()));
    for i in 0..part.samples {
        let test = |drawn: &Drawn| {
            let (numbers, sample) = drawn.sample();
            let feeds = match sampling::feeds(&sample.bytes, &sample.dims, &[]) {
                Ok(feeds) => feeds,
                Err(why) => {
                    tally.borrow_mut().refused.push(why);
                    return Ok(());
                }
            };
            for target in &targets {
                for row in laws(target.as_ref(), numbers, &sample, &feeds)? {
                    *tally.borrow_mut().counted.entry(row).or_default() += 1;
                }
            }
            Ok(())
        };
        part.one(drawn(i), |drawn| drawn.sample().1.bytes, test)?;
    }
    Ok(tally.into_inner())
}

/// A pool that two convolutions read, convolutions that follow each other, a Concat between them, a mean behind.
fn chained(net: &mut Net) -> Option<()> {
    let x = net.given([24, 14, 14]);
    let x = net.conv(x, Conv::same(20, 3))?;
    let name = net.read(x);
    let y = net.add("MaxPool", &[&name], vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])]);
    let y = net.image(y, 20, 7, 7);
    let (a, b) = (net.conv(y, Conv::same(17, 1))?, net.conv(y, Conv::same(16, 3))?);
    let (a, b) = (net.read(a), net.read(b));
    let both = net.add("Concat", &[&a, &b], vec![int("axis", 1)]);
    let both = net.image(both, 33, 7, 7);
    let y = net.conv(both, Conv::same(40, 1))?;
    let y = net.conv(y, Conv::same(24, 3))?;
    let name = net.read(y);
    let mean = net.add("GlobalAveragePool", &[&name], vec![]);
    let mean = net.image(mean, 24, 1, 1);
    net.conv(mean, Conv::same(48, 1)).map(|_| ())
}

#[test]
fn halves_are_rounded_between_functions_no_more_than_between_the_ops_of_the_model() {
    let mut net = Net::new(17, false, (1, false));
    chained(&mut net).expect("the network has allowed extents");
    let sample = halves::on_halves(net.finish(1, &[]));
    let feeds = sampling::feeds(&sample.bytes, &sample.dims, &[]).expect("ONNX Runtime runs it");
    let mut changed = 0;
    for target in targets() {
        let outcome = common::optimized_for(target.as_ref(), &sample.bytes, &sample.dims).expect("it is optimized");
        changed += usize::from(outcome.report.changed);
        for level in [Level::Disabled, Level::All] {
            let mut options = Options::default();
            options.level_b = level;
            let (a, b) = (ModelSource::Bytes(&sample.bytes), ModelSource::Bytes(&outcome.bytes));
            let comparison = verify_on(common::runtime(), a, b, &feeds, &options).expect("both run");
            // One rounding of everything to halves is an rms error of 3e-4.
            let near = comparison.holds(&Tolerance::new(1e-4, 1e-3));
            assert!(near, "{}, {level:?}: {comparison}\n{}", target.name(), common::printed(&outcome.bytes));
        }
    }
    assert!(changed >= 3, "only {changed} targets have layouts for halves");
}

#[test]
fn random_networks_in_functions_compute_the_same() {
    let draw = Draw::new("random_functions", 24, 100);
    let mut all = Tally::default();
    for tally in draw.parts(part) {
        tally.counted.into_iter().for_each(|(row, count)| *all.counted.entry(row).or_default() += count);
        all.refused.extend(tally.refused);
    }
    all.counted.iter().for_each(|(row, count)| println!("{row:50} {count:5}"));
    println!("{} samples, {} refused: {:?}", draw.samples(), all.refused.len(), all.refused);
    draw.few_refused(&all.refused, 10);
    let changed = targets().into_iter().map(|target| format!("changed for {}", target.name()));
    let count = |row: &String| all.counted.get(row).copied().unwrap_or(0);
    let rare: Vec<String> = REQUIRED
        .iter()
        .map(|&row| row.to_owned())
        .chain(changed)
        .filter(|row| count(row) < LEAST)
        .map(|row| format!("{row}: {}", count(&row)))
        .collect();
    draw.none_rare(&rare, LEAST);
}
