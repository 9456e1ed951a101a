//! Writes a region with the channels of every value in whole blocks: weights in the order of these, Splits between them, and Concats.

use super::NAME;
use super::region::{Region, Sink, Source, reader, readers, weights};
use super::slots::{Part, Slots};
use super::trace::CHANNELS;
use relayout_eval::Picked;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::bind;
use relayout_ir::op::read::group;
use relayout_ir::patch::{NewOperand, Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::PassError;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Writes a region in blocks of this many channels; the nodes have the forms of this operator set.
pub(super) fn write(graph: &mut Graph, region: &Region, block: usize, opset: i64) -> Result<(), PassError> {
    // Everything that is read off the graph, before the first edit: who reads a sink can't be told once its source has other channels.
    let ends: Vec<Vec<NodeId>> = region.sinks.iter().map(|sink| ends(graph, sink.value)).collect::<Result<_, _>>()?;
    let readers = readers(graph, region);
    let mut writer = Writer { graph, opset, held: FxHashMap::default() };
    for source in &region.sources {
        let slots = Slots::arrange(readers.get(&source.value).map_or(&[], Vec::as_slice), block);
        writer.source(source, slots)?;
    }
    for (number, (sink, ends)) in region.sinks.iter().zip(ends).enumerate() {
        writer.sink(number, sink, ends)?;
    }
    remove_dead(graph, region.between.iter().copied());
    Ok(())
}

/// A source in its new order.
struct Held {
    slots: Slots,
    /// By part of the slots: the value; one for all where no sink wants less.
    parts: Vec<ValueId>,
}

/// Channels that are picked from those before, zeros elsewhere.
pub(in crate::ort_cpu::prepare) type Picks = Arc<[Option<usize>]>;

struct Writer<'g> {
    graph: &'g mut Graph,
    opset: i64,
    held: FxHashMap<ValueId, Held>,
}

impl Writer<'_> {
    /// Has a source made in another order, and takes it apart.
    fn source(&mut self, source: &Source, slots: Slots) -> Result<(), PassError> {
        let picks: Picks = slots.holds.as_slice().into();
        for &n in &source.chain {
            pick_weights(self.graph, n, &picks, 0, NAME)?;
            if let Some(y) = self.graph.node(n).only_result() {
                self.set_channels(y, picks.len());
            }
        }
        source.chain.iter().for_each(|&n| self.bind(n));
        let parts = match &slots.parts[..] {
            [_] => vec![source.value],
            all => self.split(source.value, all)?,
        };
        self.held.insert(source.value, Held { slots, parts });
        Ok(())
    }

    /// Brings together what a sink wants, and has the nodes at its end read it.
    fn sink(&mut self, number: usize, sink: &Sink, ends: Vec<NodeId>) -> Result<(), PassError> {
        let at: FxHashMap<_, usize> = sink.channels.iter().enumerate().map(|(i, &c)| ((c.source, c.at), i)).collect();
        let mut sources: Vec<ValueId> = sink.channels.iter().map(|c| c.source).collect();
        sources.dedup();
        let mut seen = rustc_hash::FxHashSet::default();
        sources.retain(|&source| seen.insert(source));
        let (mut operands, mut picks) = (Vec::new(), Vec::new());
        for source in sources {
            let Some(Held { slots, parts }) = self.held.get(&source) else { continue };
            let wanted = |part: &&Part| part.readers.contains(&number);
            let whole = slots.parts.iter().all(|part| wanted(&part));
            let values = slots.parts.iter().zip(parts).filter(|(part, _)| wanted(part)).map(|(_, &v)| v);
            operands.extend(if whole { vec![source] } else { values.collect() });
            let held = slots.parts.iter().filter(wanted).flat_map(|part| &slots.holds[part.start..part.end]);
            picks.extend(held.map(|held| at.get(&(source, (*held)?)).copied()));
        }
        let v = if let [only] = operands[..] {
            only
        } else {
            let rank = ends.first().map_or(0, |&first| self.graph.node(first).rank);
            self.concat(sink.value, operands, picks.len(), rank)?
        };
        let picks: Picks = picks.into();
        for n in ends {
            let mut patch = Patch::new();
            patch.connect(n, 0, v);
            patch.apply(self.graph)?;
            self.read(n, &picks)?;
        }
        Ok(())
    }

    /// Has a node read channels that are picked, and those behind it what it leaves.
    fn read(&mut self, n: NodeId, picks: &Picks) -> Result<(), PassError> {
        let mut todo = vec![n];
        while let Some(n) = todo.pop() {
            if self.sums(n) {
                pick_weights(self.graph, n, picks, CHANNELS, NAME)?;
            } else if let Some(y) = self.graph.node(n).only_result() {
                pick_weights(self.graph, n, picks, 0, NAME)?;
                self.set_channels(y, picks.len());
                todo.extend(self.graph.uses(y).into_iter().map(|u| u.node));
            }
            self.bind(n);
        }
        Ok(())
    }

    fn sums(&self, n: NodeId) -> bool {
        let node = self.graph.node(n);
        node.onnx() == Some("Conv") && group(node) == Ok(1)
    }

    fn bind(&mut self, n: NodeId) {
        let form = bind(self.graph, n);
        self.graph.set_form(n, form);
    }

    fn set_channels(&mut self, v: ValueId, channels: usize) {
        let ty = self.with_channels(v, channels);
        let value = self.graph.value_mut(v);
        (*value.ty, *value.differs) = (ty, true);
    }

    /// The type of an image with other channels.
    fn with_channels(&self, v: ValueId, channels: usize) -> Type {
        let mut ty = self.graph.value(v).ty.clone();
        if let Type::Tensor(tensor) = &mut ty
            && let Some(extent) = tensor.shape.as_mut().and_then(|shape| shape.get_mut(CHANNELS))
        {
            *extent = Dim::from(channels as i64);
        }
        ty
    }

    fn split(&mut self, v: ValueId, parts: &[Part]) -> Result<Vec<ValueId>, PassError> {
        let extents: Vec<i64> = parts.iter().map(|part| (part.end - part.start) as i64).collect();
        let name = self.graph.value(v).name.clone();
        let of = |part: &Part| (format!("{name}.at_{}", part.start), self.with_channels(v, part.end - part.start));
        let results: Vec<(String, Type)> = parts.iter().map(of).collect();
        let (producer, opset) = (self.graph.value(v).producer().0, self.opset);
        let mut make = Builder::at(self.graph, producer).opset(opset);
        let split = make.op("Split", [v]).attr("axis", Attr::Int(CHANNELS as i64));
        Ok(split.told("split", &format!("{name}.sizes"), &extents, opset)?.results(results)?)
    }

    fn concat(&mut self, of: ValueId, parts: Vec<ValueId>, channels: usize, rank: u32) -> Result<ValueId, PassError> {
        let (name, ty) = (format!("{}.routed", self.graph.value(of).name), self.with_channels(of, channels));
        let mut make = Builder::new(self.graph, rank).opset(self.opset);
        Ok(make.op("Concat", parts).attr("axis", Attr::Int(CHANNELS as i64)).result(&name, ty)?)
    }
}

/// The readers of a sink that are no way to others.
fn ends(graph: &Graph, v: ValueId) -> Result<Vec<NodeId>, PassError> {
    let uses = graph.uses(v).into_iter();
    let ends: Vec<NodeId> = uses.filter(|&u| reader(graph, u).is_some()).map(|u| u.node).collect();
    match ends[..] {
        [] => Err(PassError::invalid(NAME, format!("nobody reads the channels of `{}`", graph.value(v).name))),
        _ => Ok(ends),
    }
}

/// Picks the weights of a convolution along an axis, and its bias where that is the one of its filters. Other nodes have none.
pub(in crate::ort_cpu::prepare) fn pick_weights(
    graph: &mut Graph,
    n: NodeId,
    picks: &Picks,
    axis: usize,
    pass: &'static str,
) -> Result<(), PassError> {
    let node = graph.node(n);
    if node.onnx() != Some("Conv") {
        return Ok(());
    }
    let (grouped, slots) = (group(node).is_ok_and(|group| group > 1), if axis == 0 { 1..3 } else { 1..2 });
    let (mut patch, mut before) = (Patch::new(), Vec::new());
    for slot in slots {
        let (Some(v), Some(from)) = (node.operand(slot), weights(graph, node, slot)) else { continue };
        let picked = Picked::constant(from.clone(), axis, Arc::clone(picks)).ok_or_else(|| misfit(graph, n, pass))?;
        let name = format!("{}.routed", graph.value(v).name);
        patch.set_operand(NewOperand { node: n, slot, constant: picked, name, takes_name_of: None });
        before.push(graph.value(v).producer().0);
    }
    patch.apply(graph)?;
    remove_dead(graph, before);
    if grouped {
        graph.attrs_mut(n).insert("group".to_owned(), Attr::Int(picks.len() as i64));
    }
    Ok(())
}

fn misfit(graph: &Graph, n: NodeId, pass: &'static str) -> PassError {
    let first = format!("weights of {} have no such channels", graph.node(n).describe(graph));
    PassError::Invalid { pass, first, count: 1, ranks: vec![graph.node(n).rank] }
}
