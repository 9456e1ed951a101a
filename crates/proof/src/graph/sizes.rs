//! Sizes of symbolic dims. Nobody has to give them: where a node does not fit its weights, they are what makes it fit.

use crate::files::model::Model;
use crate::graph::eval::{Machine, Values};
use crate::terms::fits::Misfit;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Sizes of symbolic dims, and which of them were used.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// `None` if dims without a size stay unknown, so that what holds does so for all sizes.
    pub(crate) given: Option<BTreeMap<String, i64>>,
    pub(crate) used: BTreeMap<String, i64>,
    /// Names of inputs, by their terms.
    pub(crate) inputs: FxHashMap<u32, String>,
}

impl Sizes {
    /// The size of a symbol: one that was given, or one that is made up.
    pub(crate) fn of(&mut self, symbol: &str) -> i64 {
        // Symbols that nobody gave a size for get different ones, which most networks can halve a few times.
        let other = 64 + 32 * self.used.keys().filter(|used| *used != symbol).count() as i64;
        let known = self.used.get(symbol).or(self.given.as_ref().and_then(|given| given.get(symbol)));
        let size = known.copied().unwrap_or(other);
        self.used.insert(symbol.to_owned(), size);
        size
    }
}

/// How often a model is read to find its sizes, and how many nodes are looked at for that.
const READS: usize = 48;
const NODES: usize = 1 << 20;

/// How a model is read with some sizes.
struct Reading {
    used: BTreeMap<String, i64>,
    /// Nodes that were looked at.
    visited: usize,
    failed: bool,
    misfit: Option<Misfit>,
}

struct Search<'m> {
    model: &'m Model,
    left: usize,
    nodes: usize,
}

/// Sizes with which no node of the model is seen not to fit, from those that were given on: the ones that had to be others.
pub(crate) fn found(model: &Model, given: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let mut search = Search { model, left: READS, nodes: NODES };
    let mut found = BTreeMap::new();
    while let Some(reading) = search.read(&with(given, &found)) {
        let Some(misfit) = reading.misfit.clone().filter(|_| reading.failed) else { break };
        let free = |symbol: &String| !found.contains_key(symbol);
        if let Some(symbol) = misfit.symbol.clone().filter(free) {
            found.insert(symbol, misfit.want);
            continue;
        }
        let symbols: Vec<String> = reading.used.keys().filter(|symbol| free(symbol)).cloned().collect();
        let sizes = with(given, &found);
        let better = symbols.iter().find_map(|symbol| {
            let size = search.solved(&sizes, symbol, &reading, &misfit)?;
            Some((symbol.clone(), size))
        });
        let Some((symbol, size)) = better else { break };
        found.insert(symbol, size);
    }
    found
}

/// Sizes, and others in the place of some of them.
pub(crate) fn with(sizes: &BTreeMap<String, i64>, others: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    sizes.clone().into_iter().chain(others.clone()).collect()
}

/// Sizes for all symbols but these, without a factor of three: where a model counts an axis in twos and in threes, no digits say both.
pub(crate) fn others(model: &Model, given: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let mut machine = Machine::new(Some(given.clone()));
    // What was read before a node failed says which symbols there are.
    drop(machine.model(model, Values::default(), &mut |_, _, _| Ok(())));
    let sizes = (2..).filter(|n| n % 3 != 0).map(|n| 32 * n);
    let free = machine.sizes.used.into_keys().filter(|symbol| !given.contains_key(symbol));
    given.clone().into_iter().chain(free.zip(sizes)).collect()
}

impl Search<'_> {
    fn read(&mut self, sizes: &BTreeMap<String, i64>) -> Option<Reading> {
        self.left = self.left.checked_sub(1)?;
        let mut machine = Machine::new(Some(sizes.clone()));
        let failed = machine.model(self.model, Values::default(), &mut |_, _, _| Ok(())).is_err();
        let misfit = machine.terms.fits.last.take();
        self.nodes = self.nodes.saturating_sub(machine.visited);
        self.left = if self.nodes == 0 { 0 } else { self.left };
        Some(Reading { used: machine.sizes.used, visited: machine.visited, failed, misfit })
    }

    /// A size of a symbol with which the node fits: extents are taken for sums of a multiple of it and a number.
    fn solved(
        &mut self,
        sizes: &BTreeMap<String, i64>,
        symbol: &str,
        before: &Reading,
        misfit: &Misfit,
    ) -> Option<i64> {
        let (mut last, mut have) = (*before.used.get(symbol)?, misfit.have);
        let mut next = last.checked_mul(2)?;
        for _ in 0..TRIES {
            let mut with = sizes.clone();
            with.insert(symbol.to_owned(), next);
            let reading = self.read(&with)?;
            let here = reading.misfit.filter(|_| reading.visited == before.visited);
            let elsewhere = here.as_ref().is_some_and(|now| now.place != misfit.place);
            if !reading.failed || reading.visited > before.visited || elsewhere {
                return Some(next);
            }
            let now = here.filter(|now| now.want == misfit.want)?;
            let (step, change) = (i128::from(next) - i128::from(last), i128::from(now.have) - i128::from(have));
            if change == 0 {
                return None;
            }
            (last, have) = (next, now.have);
            // Rounded up: windows need at least so much.
            let wanted = (i128::from(now.want) - i128::from(now.have)) * step;
            let by = wanted.div_euclid(change) + i128::from(wanted.rem_euclid(change) != 0);
            next = i64::try_from(i128::from(next) + by)
                .ok()
                .filter(|size| (1..=LARGEST).contains(size) && *size != last)?;
        }
        None
    }
}

/// How often a size is corrected.
const TRIES: usize = 6;

/// The largest size that is tried.
const LARGEST: i64 = 1 << 20;
