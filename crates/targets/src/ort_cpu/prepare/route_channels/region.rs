//! What is routed together: the convolutions whose channels meet in some value, and those that read these values.

use super::trace::{CHANNELS, Channel, Routes, count};
use petgraph::unionfind::UnionFind;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, Slot};
use relayout_ir::graph::{Graph, Node, NodeId, Use, ValueId};
use relayout_ir::op::{Alike, alike, bind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Ops that treat every element for itself and make a number of zero, or take the largest or the mean of elements of one channel.
const OF_EACH_CHANNEL: [&str; 11] = [
    "Relu",
    "LeakyRelu",
    "Elu",
    "Clip",
    "Sigmoid",
    "Tanh",
    "HardSigmoid",
    "HardSwish",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
];

/// A value whose channels may be made in any order.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) value: ValueId,
    /// The convolution that makes them, and the nodes behind it, up to the one that leaves the value.
    pub(super) chain: Vec<NodeId>,
}

/// A value whose channels may be read in any order, and beside others.
#[derive(Clone, Debug)]
pub(super) struct Sink {
    pub(super) value: ValueId,
    pub(super) channels: Vec<Channel>,
}

/// Sources and sinks that no others share channels with.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) sources: Vec<Source>,
    pub(super) sinks: Vec<Sink>,
    /// What brings channels from one to the other.
    pub(super) between: Vec<NodeId>,
}

/// What a node does with the channels that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// All of them end in sums.
    Sums,
    /// Each goes on by itself, in this result.
    Carries(ValueId),
}

/// The regions of a graph in which something is not brought in whole blocks. `summing` are the nodes that may sum in another order.
pub(super) fn find(graph: &Graph, summing: &[NodeId], block: usize) -> Vec<Region> {
    let routes = Routes::trace(graph);
    let summing: FxHashSet<NodeId> = summing.iter().copied().collect();
    let mut values: BTreeSet<ValueId> = routes.of.keys().copied().collect();
    values.extend(routes.of.values().flat_map(|route| &route.channels).map(|c| c.source));
    let mut regions = Regions::of(graph);
    for v in values {
        let Some(route) = routes.at(graph, v) else { continue };
        let sources: BTreeSet<ValueId> = route.channels.iter().map(|c| c.source).collect();
        let ends = graph.uses(v).into_iter().filter(|u| !routes.nodes.contains(&u.node)).collect::<Vec<_>>();
        let once = route.channels.iter().collect::<BTreeSet<_>>().len() == route.channels.len();
        let fits = !graph.is_output(v)
            && (ends.is_empty() || once && route.is_image())
            && ends.iter().all(|&u| sums(graph, u, &summing));
        regions.join(&sources, fits);
        if !ends.is_empty() {
            regions.sinks.push(Sink { value: v, channels: route.channels });
        }
    }
    let mut found = regions.take(graph);
    for region in &mut found {
        let own: BTreeSet<ValueId> = region.sources.iter().map(|source| source.value).collect();
        let held = |v: &ValueId| routes.of.get(v).is_some_and(|r| r.channels.iter().all(|c| own.contains(&c.source)));
        let made = |n: &NodeId| graph.node(*n).outputs.iter().flatten().any(held);
        region.between = graph.order().unwrap_or_default();
        region.between.retain(|n| routes.nodes.contains(n) && made(n));
    }
    let scattered = |sink: &Sink| !is_whole(graph, &sink.channels, block);
    let cuts = |&n: &NodeId| {
        let node = graph.node(n);
        let whole = |v: &ValueId| count(graph, *v).is_some_and(|channels| channels.is_multiple_of(block));
        node.onnx() != Some("Concat") && !node.outputs.iter().flatten().all(whole)
    };
    found.retain(|region| region.sinks.iter().any(scattered) || region.between.iter().any(cuts));
    found
}

/// Regions under way.
struct Regions {
    /// Sources of the same region, by their indices.
    joined: UnionFind<usize>,
    sources: BTreeSet<ValueId>,
    /// Sources of regions that have to stay as they are.
    kept: Vec<ValueId>,
    sinks: Vec<Sink>,
}

impl Regions {
    fn of(graph: &Graph) -> Regions {
        let joined = UnionFind::new(graph.value_bound());
        Regions { joined, sources: BTreeSet::new(), kept: Vec::new(), sinks: Vec::new() }
    }

    /// Makes one region of those of these sources.
    fn join(&mut self, sources: &BTreeSet<ValueId>, fits: bool) {
        let Some(&first) = sources.first() else { return };
        for &source in sources {
            self.joined.union(first.index(), source.index());
        }
        self.sources.extend(sources);
        if !fits {
            self.kept.push(first);
        }
    }

    /// A number of the region of a source.
    fn root(&self, source: ValueId) -> usize {
        self.joined.find(source.index())
    }

    /// Those that need not stay, all their sources made by convolutions.
    fn take(mut self, graph: &Graph) -> Vec<Region> {
        let mut regions: BTreeMap<usize, Option<Region>> = BTreeMap::new();
        for &source in &self.sources {
            let region = regions.entry(self.root(source)).or_insert_with(|| Some(Region::default()));
            match (chain(graph, source), &mut *region) {
                (Some(chain), Some(region)) => region.sources.push(Source { value: source, chain }),
                _ => *region = None,
            }
        }
        for &source in &self.kept {
            regions.insert(self.root(source), None);
        }
        for sink in std::mem::take(&mut self.sinks) {
            let root = sink.channels.first().map(|c| self.root(c.source));
            if let Some(Some(region)) = root.and_then(|root| regions.get_mut(&root)) {
                region.sinks.push(sink);
            }
        }
        regions.into_values().flatten().collect()
    }
}

/// Whether the channels are sources one after the other, or whole blocks of them.
fn is_whole(graph: &Graph, channels: &[Channel], block: usize) -> bool {
    let next = |a: &Channel, b: &Channel| a.source == b.source && a.at + 1 == b.at;
    channels.chunk_by(next).all(|run| {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return true };
        let end = last.at + 1;
        first.at.is_multiple_of(block) && (end.is_multiple_of(block) || Some(end) == count(graph, last.source))
    })
}

/// Whether every channel of a value ends in sums for this reader of it.
fn sums(graph: &Graph, u: Use, summing: &FxHashSet<NodeId>) -> bool {
    let mut todo = vec![u];
    while let Some(u) = todo.pop() {
        match reader(graph, u) {
            Some(Reader::Sums) if summing.contains(&u.node) => {}
            Some(Reader::Carries(y)) if !graph.is_output(y) => todo.extend(graph.uses(y)),
            _ => return false,
        }
    }
    true
}

/// The convolution that makes the channels of a value, and the nodes behind it.
pub(in crate::ort_cpu::prepare) fn chain(graph: &Graph, source: ValueId) -> Option<Vec<NodeId>> {
    let (mut v, mut chain) = (source, Vec::new());
    loop {
        let (n, slot) = graph.value(v).producer();
        chain.push(n);
        match reader(graph, Use { node: n, slot })? {
            Reader::Sums => break,
            Reader::Carries(_) => v = graph.node(n).operand(0).filter(|&x| graph.only_use(x).is_some())?,
        }
    }
    chain.reverse();
    Some(chain)
}

/// What the reader does with the channels; `None` if it is none that can be given others. Which operands have the same channels is
/// what the signature says ([`alike`]), and only the weights of a convolution can be picked.
pub(super) fn reader(graph: &Graph, u: Use) -> Option<Reader> {
    let node = graph.node(u.node);
    let y = node.only_result().filter(|_| u.slot == 0)?;
    let convolves = node.onnx()? == "Conv";
    if !convolves && node.onnx()? != "PRelu" && !OF_EACH_CHANNEL.contains(&node.onnx()?) {
        return None;
    }
    let bound = bind(graph, u.node);
    let Form::Axes(bound) = &bound else { return None };
    let Alike { places, contracted } = alike(graph, node, bound, Slot::In(0), CHANNELS)?;
    let mut made = alike(graph, node, bound, Slot::Out(0), CHANNELS)?.places;
    made.retain(|place| *place != (Slot::In(0), CHANNELS));
    if !convolves {
        return (places == [(Slot::Out(0), CHANNELS)] && made.is_empty()).then_some(Reader::Carries(y));
    }
    let biased = node.operand(2).is_some();
    let picked = weights(graph, node, 1)?.dims.len() == 4 && (!biased || weights(graph, node, 2).is_some());
    // One element along an axis is not told from one for all, but the weights of a convolution have theirs.
    let has = |found: &[(Slot, usize)], wanted: &[(Slot, usize)], v: ValueId| {
        found == wanted || found.is_empty() && count(graph, v) == Some(1)
    };
    let filters = [(Slot::In(1), 0), (Slot::In(2), 0)];
    let own = picked && has(&made, &filters[..=usize::from(biased)], y);
    if contracted {
        (own && has(&places, &[(Slot::In(1), CHANNELS)], node.operand(0)?)).then_some(Reader::Sums)
    } else {
        own.then_some(Reader::Carries(y))
    }
}

/// A constant operand of floats that is read as it is stored.
pub(super) fn weights<'g>(graph: &'g Graph, node: &Node, slot: usize) -> Option<&'g Constant> {
    let constant = graph.constant(node.operand(slot)?)?;
    let plain = constant.dtype == DType::F32 && constant.pending.is_none() && constant.source.is_available();
    plain.then_some(constant)
}

/// By channel of a source: the sinks that read it, in ascending order.
pub(super) fn readers(graph: &Graph, region: &Region) -> FxHashMap<ValueId, Vec<Vec<usize>>> {
    let all = region.sources.iter().map(|s| (s.value, vec![Vec::new(); count(graph, s.value).unwrap_or(0)]));
    let mut readers: FxHashMap<ValueId, Vec<Vec<usize>>> = all.collect();
    for (number, sink) in region.sinks.iter().enumerate() {
        for channel in &sink.channels {
            let own = readers.get_mut(&channel.source).and_then(|channels| channels.get_mut(channel.at));
            if let Some(own) = own {
                own.push(number);
            }
        }
    }
    readers
}
