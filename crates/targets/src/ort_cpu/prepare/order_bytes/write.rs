//! Writes a region with the channels of its values in other orders: weights in these, and Splits and Concats where only some are read.

use super::super::route_channels::{CHANNELS, count};
use super::NAME;
use super::orders::Orders;
use super::reading::{Entry, entries_of, made, parts, read};
use super::region::{By, Made, Read, Region};
use relayout_eval::Picked;
use relayout_ir::attr::Attr;
use relayout_ir::build::{Builder, bind_again};
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::{NewOperand, Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::PassError;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Places of a value, from one on and up to another.
type Run = (usize, usize);

/// An operand that lies in the order of the channels, and which those are.
struct Laid {
    node: NodeId,
    entries: Vec<Entry>,
    order: Vec<usize>,
}

/// Writes a region; the nodes have the forms of this operator set.
pub(super) fn write(graph: &mut Graph, region: &Region, orders: &Orders, opset: i64) -> Result<(), PassError> {
    // Everything that is read off the graph, before the first edit.
    let laid: Vec<Laid> = region
        .made
        .iter()
        .map(|own| of_made(graph, own, orders))
        .chain(region.sums.iter().map(|own| {
            let (node, entries) = (own.by.node, read(graph, own.by));
            Laid { node, entries, order: orders.read(own) }
        }))
        .collect();
    let mut writer = Writer { graph, orders, opset, parts: FxHashMap::default(), floats: FxHashMap::default() };
    for own in &region.made {
        writer.part(own.value, region)?;
    }
    for own in &region.made {
        match &own.by {
            By::Convolution => {}
            By::Carried(read) => writer.connect(read)?,
            By::Joined(reads) => writer.join(own.value, reads)?,
        }
    }
    for read in &region.sums {
        writer.connect(read)?;
    }
    for Laid { node, entries, order } in laid {
        for entry in entries {
            lay(graph, node, entry, &order)?;
        }
        bind_again(graph, node);
    }
    for own in &region.made {
        *graph.value_mut(own.value).differs = true;
    }
    Ok(())
}

fn of_made(graph: &Graph, own: &Made, orders: &Orders) -> Laid {
    let node = graph.value(own.value).producer().0;
    let entries = match &own.by {
        By::Convolution => made(graph, node).unwrap_or_default(),
        By::Carried(carried) => read(graph, carried.by),
        By::Joined(_) => Vec::new(),
    };
    Laid { node, entries, order: orders.at(own.value).to_vec() }
}

struct Writer<'g, 'o> {
    graph: &'g mut Graph,
    orders: &'o Orders,
    opset: i64,
    /// By value and run: what has these channels alone.
    parts: FxHashMap<(ValueId, Run), ValueId>,
    /// By bytes, and a `DequantizeLinear` of the model: the same floats of them.
    floats: FxHashMap<(ValueId, NodeId), ValueId>,
}

impl Writer<'_, '_> {
    /// Takes a value apart where some of its channels are read alone.
    fn part(&mut self, v: ValueId, region: &Region) -> Result<(), PassError> {
        let all = count(self.graph, v).unwrap_or(0);
        let own = region.reads().filter(|(read, _)| read.from == v);
        let runs: BTreeSet<Run> = own.flat_map(|(read, _)| self.orders.runs(read)).collect();
        self.parts.insert((v, (0, all)), v);
        let runs: Vec<Run> = runs.into_iter().filter(|&run| run != (0, all)).collect();
        let ends = runs.iter().map(|&(_, end)| end);
        let apart = std::iter::once(0).chain(ends).eq(runs.iter().map(|&(start, _)| start).chain([all]));
        if runs.is_empty() {
            return Ok(());
        }
        if apart {
            let parts = self.split(v, &runs)?;
            self.parts.extend(runs.iter().map(|&run| (v, run)).zip(parts));
            return Ok(());
        }
        for run in runs {
            let part = self.slice(v, run)?;
            self.parts.insert((v, run), part);
        }
        Ok(())
    }

    /// Has a node read the channels that it wants, as one value.
    fn connect(&mut self, read: &Read) -> Result<(), PassError> {
        let parts = self.bytes(read);
        let whole = match parts[..] {
            [only] => only,
            _ => self.concat(read, parts)?,
        };
        let v = self.as_read(read, whole)?;
        let mut patch = Patch::new();
        patch.connect(read.by.node, read.by.slot, v);
        patch.apply(self.graph)?;
        Ok(())
    }

    /// Has a Concat read the channels that it wants, wherever they lie.
    fn join(&mut self, y: ValueId, reads: &[Read]) -> Result<(), PassError> {
        let n = self.graph.value(y).producer().0;
        let Some((first, each)) = parts(self.graph.node(n)) else { return Ok(()) };
        let before = self.graph.node(n).inputs.clone();
        let mut inputs = before.get(..first).unwrap_or_default().to_vec();
        for read in reads {
            let beside = before.get(read.by.slot + 1..read.by.slot + each).unwrap_or_default();
            for part in self.bytes(read) {
                inputs.push(Some(self.as_read(read, part)?));
                inputs.extend(beside);
            }
        }
        self.graph.set_inputs(n, inputs);
        Ok(())
    }

    /// The parts of a value in which the channels are that a node reads.
    fn bytes(&self, read: &Read) -> Vec<ValueId> {
        let runs = self.orders.runs(read);
        runs.into_iter().filter_map(|run| self.parts.get(&(read.from, run)).copied()).collect()
    }

    /// Bytes as a node reads them: dequantized, if it reads floats.
    fn as_read(&mut self, read: &Read, bytes: ValueId) -> Result<ValueId, PassError> {
        let Some(down) = read.dequantized else { return Ok(bytes) };
        let node = self.graph.node(down);
        if let Some(own) = node.only_result().filter(|_| node.operand(0) == Some(bytes)) {
            *self.graph.value_mut(own).differs = true;
            return Ok(own);
        }
        if let Some(&made) = self.floats.get(&(bytes, down)) {
            return Ok(made);
        }
        let (mut operands, ty) = (node.inputs.clone(), node.only_result().map(|y| self.graph.value(y).ty.clone()));
        if let Some(first) = operands.first_mut() {
            *first = Some(bytes);
        }
        let shape = self.graph.value(bytes).ty.shape().map(<[Dim]>::to_vec);
        let ty = match ty {
            Some(Type::Tensor(tensor)) => Type::Tensor(relayout_ir::types::TensorType { shape, ..tensor }),
            _ => Type::Unknown,
        };
        let name = format!("{}.floats", self.graph.value(bytes).name);
        let made = Builder::at(self.graph, down).same_op(down, operands).result(&name, ty)?;
        self.floats.insert((bytes, down), made);
        Ok(made)
    }

    fn split(&mut self, v: ValueId, runs: &[Run]) -> Result<Vec<ValueId>, PassError> {
        let extents: Vec<i64> = runs.iter().map(|(start, end)| (end - start) as i64).collect();
        let name = self.graph.value(v).name.clone();
        let of = |&(start, end): &Run| (format!("{name}.at_{start}"), self.with_channels(v, end - start));
        let results: Vec<(String, Type)> = runs.iter().map(of).collect();
        let (producer, opset) = (self.graph.value(v).producer().0, self.opset);
        let mut make = Builder::at(self.graph, producer).opset(opset);
        let split = make.op("Split", [v]).attr("axis", Attr::Int(CHANNELS as i64));
        Ok(split.told("split", &format!("{name}.sizes"), &extents, opset)?.results(results)?)
    }

    fn slice(&mut self, v: ValueId, (start, end): Run) -> Result<ValueId, PassError> {
        let (name, ty) = (format!("{}.at_{start}", self.graph.value(v).name), self.with_channels(v, end - start));
        let (producer, opset) = (self.graph.value(v).producer().0, self.opset);
        let mut make = Builder::at(self.graph, producer).opset(opset);
        let mut draft = make.op("Slice", [v]);
        for (told, number) in [("starts", start), ("ends", end), ("axes", CHANNELS)] {
            draft = draft.told(told, &format!("{name}.{told}"), &[number as i64], opset)?;
        }
        Ok(draft.result(&name, ty)?)
    }

    fn concat(&mut self, read: &Read, parts: Vec<ValueId>) -> Result<ValueId, PassError> {
        let name = format!("{}.{}", self.graph.value(read.from).name, read.by.node.index());
        let (ty, opset) = (self.with_channels(read.from, read.at.len()), self.opset);
        let mut make = Builder::at(self.graph, read.by.node).opset(opset);
        Ok(make.op("Concat", parts).attr("axis", Attr::Int(CHANNELS as i64)).result(&name, ty)?)
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
}

/// Stores an operand in another order along an axis; what is dequantized of constants, these.
fn lay(graph: &mut Graph, n: NodeId, (slot, axis): Entry, order: &[usize]) -> Result<(), PassError> {
    let Some(v) = graph.node(n).operand(slot) else { return Ok(()) };
    if order.is_sorted() {
        return Ok(());
    }
    let Some(constant) = graph.constant(v).cloned() else {
        let down = graph.value(v).producer().0;
        for entry in entries_of(graph, v, axis).unwrap_or_default() {
            lay(graph, down, entry, order)?;
        }
        *graph.value_mut(v).differs = true;
        bind_again(graph, down);
        return Ok(());
    };
    let picks = order.iter().map(|&at| Some(at)).collect();
    let Some(constant) = Picked::constant(constant, axis, picks) else {
        let (first, rank) =
            (format!("an operand of {} has no such channels", graph.node(n).describe(graph)), graph.node(n).rank);
        return Err(PassError::Invalid { pass: NAME, first, count: 1, ranks: vec![rank] });
    };
    let name = format!("{}.ordered", graph.value(v).name);
    let mut patch = Patch::new();
    patch.set_operand(NewOperand { node: n, slot, constant, name, takes_name_of: None });
    patch.apply(graph)?;
    remove_dead(graph, [graph.value(v).producer().0]);
    Ok(())
}
