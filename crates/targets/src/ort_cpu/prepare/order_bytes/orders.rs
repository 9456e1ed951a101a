//! In which order each value has its channels: that in which the convolutions before it make them, so that what reads some of them finds
//! them in few places.

use super::super::route_channels::count;
use super::region::{By, Read, Region};
use relayout_ir::graph::{Graph, ValueId};
use relayout_target_api::Sizes;
use rustc_hash::FxHashMap;

/// Most convolutions of a region whose orders are tried one by one.
const TRIED: usize = 64;
/// How often all of them are tried.
const ROUNDS: usize = 3;

/// Which channels of a value are in which place: by place, the channel that the model has there.
pub(super) type Order = Vec<usize>;

/// By value of a region, the order of its channels.
#[derive(Debug, Default)]
pub(super) struct Orders {
    of: FxHashMap<ValueId, Order>,
}

impl Orders {
    /// Those with which the fewest copies are made. A convolution makes channels that go the same way side by side, and those that go
    /// furthest first or last: those of two neighbours that meet in a Concat stay neighbours while others leave.
    pub(super) fn best(graph: &Graph, region: &Region, sizes: &dyn Sizes) -> Orders {
        let ways = ways(graph, region);
        let mut turned: Vec<bool> = (0..ways.len()).map(|number| number % 2 == 1).collect();
        let orders = |turned: &[bool]| Orders::follow(region, &ways, turned);
        let weight = |read: &Read| {
            let shape = sizes.shape(graph, read.from).unwrap_or_default();
            shape.iter().enumerate().filter(|(axis, _)| *axis != 1).fold(1, |all: u64, (_, &d)| all.saturating_mul(d))
        };
        let weights: Vec<u64> = region.reads().map(|(read, _)| weight(read)).collect();
        let price = |orders: &Orders| {
            let each = region.reads().zip(&weights).map(|((read, joined), weight)| {
                let runs = orders.runs(read).len() as u64;
                let copies = if runs < 2 && read.is_all(graph) { 0 } else { runs };
                weight.saturating_mul(copies + if joined || runs > 1 { runs } else { 0 })
            });
            each.fold(0, u64::saturating_add)
        };
        let mut best = orders(&turned);
        let mut least = price(&best);
        for _ in 0..if ways.len() > TRIED { 0 } else { ROUNDS } {
            let before = least;
            for number in 0..turned.len() {
                turned[number] ^= true;
                let other = orders(&turned);
                let cost = price(&other);
                if cost < least {
                    (best, least) = (other, cost);
                } else {
                    turned[number] ^= true;
                }
            }
            if least == before {
                break;
            }
        }
        best
    }

    /// The order of every value, where convolutions make theirs along these ways, or turned round.
    fn follow(region: &Region, ways: &FxHashMap<ValueId, (usize, Order)>, turned: &[bool]) -> Orders {
        let mut orders = Orders::default();
        for made in &region.made {
            let order = match &made.by {
                By::Convolution => ways.get(&made.value).map_or_else(Vec::new, |(number, way)| {
                    let mut way = way.clone();
                    if turned.get(*number).copied().unwrap_or_default() {
                        way.reverse();
                    }
                    way
                }),
                By::Carried(read) => orders.read(read),
                By::Joined(reads) => {
                    let mut joined = Vec::new();
                    let mut before = 0;
                    for read in reads {
                        joined.extend(orders.read(read).into_iter().map(|at| before + at));
                        before += read.at.len();
                    }
                    joined
                }
            };
            orders.of.insert(made.value, order);
        }
        orders
    }

    /// The order of a value.
    pub(super) fn at(&self, v: ValueId) -> &[usize] {
        self.of.get(&v).map_or(&[], Vec::as_slice)
    }

    /// In which order a node has the channels that it reads: by place, the one that the model has there.
    pub(super) fn read(&self, read: &Read) -> Order {
        let places: FxHashMap<usize, usize> = read.at.iter().enumerate().map(|(place, &at)| (at, place)).collect();
        self.at(read.from).iter().filter_map(|at| places.get(at).copied()).collect()
    }

    /// Where what a node reads lies: from which place on, and up to which.
    pub(super) fn runs(&self, read: &Read) -> Vec<(usize, usize)> {
        let wanted: rustc_hash::FxHashSet<usize> = read.at.iter().copied().collect();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for place in self.at(read.from).iter().enumerate().filter(|(_, at)| wanted.contains(at)).map(|(place, _)| place)
        {
            match runs.last_mut().filter(|(_, end)| *end == place) {
                Some((_, end)) => *end = place + 1,
                None => runs.push((place, place + 1)),
            }
        }
        runs
    }
}

/// By convolution: its number, and its channels, those that go the same way side by side, and those that go furthest last.
fn ways(graph: &Graph, region: &Region) -> FxHashMap<ValueId, (usize, Order)> {
    let mut labels: FxHashMap<ValueId, Vec<(ValueId, usize)>> = FxHashMap::default();
    let mut numbers: Vec<ValueId> = Vec::new();
    // By channel of a convolution, the reads that it is among.
    let mut among: FxHashMap<(ValueId, usize), Vec<usize>> = FxHashMap::default();
    let mut number = 0;
    let mut follow = |labels: &FxHashMap<ValueId, Vec<(ValueId, usize)>>, read: &Read| {
        let own = labels.get(&read.from).map_or(&[][..], Vec::as_slice);
        let taken: Vec<_> = read.at.iter().filter_map(|&at| own.get(at).copied()).collect();
        for &label in &taken {
            among.entry(label).or_default().push(number);
        }
        number += 1;
        taken
    };
    for made in &region.made {
        let own = match &made.by {
            By::Convolution => {
                numbers.push(made.value);
                (0..count(graph, made.value).unwrap_or(0)).map(|at| (made.value, at)).collect()
            }
            by => by.reads().iter().flat_map(|read| follow(&labels, read)).collect(),
        };
        labels.insert(made.value, own);
    }
    let carried = region.made.iter().map(|made| made.by.reads().len()).sum();
    for read in &region.sums {
        follow(&labels, read);
    }
    let way = |v: ValueId| {
        let mut order: Order = (0..count(graph, v).unwrap_or(0)).collect();
        let reads = |at: usize| among.get(&(v, at)).map_or(&[][..], Vec::as_slice);
        // The last value that has it, before what sums it up.
        order.sort_by_key(|&at| (reads(at).iter().filter(|&&read| read < carried).max(), reads(at)));
        order
    };
    numbers.iter().enumerate().map(|(number, &v)| (v, (number, way(v)))).collect()
}
