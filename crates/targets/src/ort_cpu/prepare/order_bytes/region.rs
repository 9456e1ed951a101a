//! What is ordered together: the values whose channels meet in some value.

use super::super::route_channels::{Routes, count};
use super::reading::{Reading, constants, is_made, reading};
use petgraph::unionfind::UnionFind;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, Use, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Channels of a value that a node reads.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) by: Use,
    /// The value that has them.
    pub(super) from: ValueId,
    /// Its channels, in the order in which the model reads them.
    pub(super) at: Vec<usize>,
    /// What the model reads.
    pub(super) value: ValueId,
    /// The `DequantizeLinear` whose floats the node reads.
    pub(super) dequantized: Option<NodeId>,
}

impl Read {
    /// Whether it reads all channels that there are.
    pub(super) fn is_all(&self, graph: &Graph) -> bool {
        count(graph, self.from) == Some(self.at.len())
    }

    fn is_plain(&self, graph: &Graph) -> bool {
        self.is_all(graph) && self.at.is_sorted()
    }
}

/// How a value has come by its channels.
#[derive(Clone, Debug)]
pub(super) enum By {
    /// A convolution of all channels makes them.
    Convolution,
    /// They are those that a node reads, each by itself.
    Carried(Read),
    /// They are those that a Concat reads.
    Joined(Vec<Read>),
}

impl By {
    /// What is read for it.
    pub(super) fn reads(&self) -> &[Read] {
        match self {
            By::Convolution => &[],
            By::Carried(read) => std::slice::from_ref(read),
            By::Joined(reads) => reads,
        }
    }
}

/// A value whose channels may lie in another order.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) value: ValueId,
    pub(super) by: By,
}

/// Values that no others share channels with.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    /// In an order in which each comes behind those that it has its channels of.
    pub(super) made: Vec<Made>,
    /// Where channels end.
    pub(super) sums: Vec<Read>,
}

impl Region {
    /// Everything that reads channels, and whether it puts them beside others.
    pub(super) fn reads(&self) -> impl Iterator<Item = (&Read, bool)> {
        let made = self.made.iter().flat_map(|made| {
            let joins = matches!(made.by, By::Joined(_));
            made.by.reads().iter().map(move |read| (read, joins))
        });
        made.chain(self.sums.iter().map(|read| (read, false)))
    }

    /// Whether bytes are shuffled in it, and nothing else is brought to another place.
    fn shuffles(&self, graph: &Graph) -> bool {
        let bytes = |read: &Read| matches!(graph.value(read.from).ty.dtype(), Some(DType::U8 | DType::I8));
        let scattered = |read: &Read| read.at.windows(2).any(|pair| pair[0] + 1 != pair[1]);
        self.reads().any(|(read, _)| scattered(read))
            && self.reads().all(|(read, _)| read.is_plain(graph) || bytes(read))
    }
}

/// The regions of a graph in which bytes are shuffled.
pub(super) struct Found {
    pub(super) regions: Vec<Region>,
    routes: Routes,
    order: Vec<NodeId>,
}

impl Found {
    /// What brings channels from one place to another within a region.
    pub(super) fn between(&self, graph: &Graph, region: &Region) -> Vec<NodeId> {
        let own: BTreeSet<ValueId> = region.made.iter().map(|made| made.value).collect();
        let within = |v: &ValueId| {
            let source = self.routes.of.get(v).and_then(|route| route.channels.first());
            source.is_some_and(|channel| own.contains(&channel.source))
        };
        let brings = |n: &NodeId| self.routes.nodes.contains(n) && graph.node(*n).outputs.iter().flatten().any(within);
        self.order.iter().copied().filter(brings).collect()
    }
}

/// The regions of a graph whose channels may be made in another order.
pub(super) fn find(graph: &Graph) -> Found {
    let (order, routes) = (graph.order().unwrap_or_default(), Routes::trace_bytes(graph));
    let mut regions = Regions::of(graph);
    if !routes.nodes.is_empty() {
        let constants = constants(graph, &order);
        for &n in order.iter().filter(|n| !routes.nodes.contains(n)) {
            let node = graph.node(n);
            let captured = node.captures.iter().map(|&v| Some(v));
            for (slot, v) in node.inputs.iter().copied().chain(captured).enumerate() {
                if let Some(v) = v.filter(|v| !constants.contains(v)) {
                    regions.read(graph, &routes, Use { node: n, slot }, v);
                }
            }
            for &y in node.outputs.iter().flatten().filter(|y| !constants.contains(y)) {
                regions.make(graph, &routes, y);
            }
        }
        for &v in graph.outputs() {
            regions.keep(graph, &routes, v);
        }
    }
    Found { regions: regions.take(graph), routes, order }
}

/// Regions under way.
struct Regions {
    /// Values of the same region, by their indices.
    joined: UnionFind<usize>,
    made: Vec<Made>,
    /// What was read for values that are still to be made.
    parts: BTreeMap<ValueId, By>,
    sums: Vec<Read>,
    /// Values of regions that have to stay as they are.
    kept: Vec<ValueId>,
}

impl Regions {
    fn of(graph: &Graph) -> Regions {
        let joined = UnionFind::new(graph.value_bound());
        Regions { joined, made: Vec::new(), parts: BTreeMap::new(), sums: Vec::new(), kept: Vec::new() }
    }

    /// Something that reads a value, which may be an image.
    fn read(&mut self, graph: &Graph, routes: &Routes, by: Use, value: ValueId) {
        let Some(route) = routes.at(graph, value) else { return };
        let Some(from) = route.channels.first().map(|channel| channel.source) else { return };
        let at: Vec<usize> = route.channels.iter().map(|channel| channel.at).collect();
        let once = at.iter().collect::<BTreeSet<_>>().len() == at.len();
        let read = Read { by, from, at, value, dequantized: route.dequantized };
        match reading(graph, by).filter(|_| once && route.is_image()) {
            Some(Reading::Sums) => self.sums.push(read),
            Some(Reading::Carries(y)) => {
                self.joined.union(from.index(), y.index());
                self.parts.insert(y, By::Carried(read));
            }
            Some(Reading::Joins(y)) => {
                self.joined.union(from.index(), y.index());
                match self.parts.entry(y).or_insert_with(|| By::Joined(Vec::new())) {
                    By::Joined(reads) => reads.push(read),
                    _ => self.kept.push(from),
                }
            }
            None => self.kept.push(from),
        }
    }

    /// A result, which may be an image.
    fn make(&mut self, graph: &Graph, routes: &Routes, y: ValueId) {
        if routes.at(graph, y).is_none() {
            // What it was read for is none that can be followed.
            let reads = self.parts.remove(&y);
            self.kept.extend(reads.iter().flat_map(By::reads).map(|read| read.from));
            return;
        }
        let by = self.parts.remove(&y).or_else(|| is_made(graph, y).then_some(By::Convolution));
        let whole = |by: &By| count(graph, y) == channels(by).or_else(|| count(graph, y));
        match by.filter(whole) {
            Some(by) => self.made.push(Made { value: y, by }),
            None => self.kept.push(y),
        }
    }

    /// A value whose channels have to lie as they do.
    fn keep(&mut self, graph: &Graph, routes: &Routes, v: ValueId) {
        let route = routes.at(graph, v);
        self.kept.extend(route.iter().filter_map(|route| route.channels.first()).map(|channel| channel.source));
    }

    /// Those that need not stay, and in which bytes are shuffled.
    fn take(self, graph: &Graph) -> Vec<Region> {
        let root = |v: ValueId| self.joined.find(v.index());
        let kept: BTreeSet<usize> = self.kept.iter().map(|&v| root(v)).collect();
        let made: BTreeSet<ValueId> = self.made.iter().map(|made| made.value).collect();
        let mut regions: BTreeMap<usize, Region> = BTreeMap::new();
        for own in self.made {
            regions.entry(self.joined.find(own.value.index())).or_default().made.push(own);
        }
        for read in self.sums {
            regions.entry(self.joined.find(read.from.index())).or_default().sums.push(read);
        }
        regions.retain(|root, region| {
            let known = region.reads().all(|(read, _)| made.contains(&read.from));
            !kept.contains(root) && known && region.shuffles(graph)
        });
        regions.into_values().collect()
    }
}

/// How many channels are read for a value; those of a convolution are not read.
fn channels(by: &By) -> Option<usize> {
    let reads = by.reads();
    (!reads.is_empty()).then(|| reads.iter().map(|read| read.at.len()).sum())
}
