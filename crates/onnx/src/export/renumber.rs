//! Attributes and operands that speak of axes, said for the order in which the first operand with axes is stored, or the first
//! result where no operand has axes.

use super::views::{int_attribute, ints_attribute};
use super::{ExportError, Exporter, GraphOut};
use crate::proto::{AttributeProto, NodeProto, attribute_proto::AttributeType};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, Implicit, Renumber};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::layout::Factor;
use relayout_ir::op::{equation_terms, normalize_axis};
use relayout_ir::storage::{StorageRule, outermost, places};

/// How the operand or result whose axes are spoken of is stored.
struct Order {
    /// Per dim, outermost first, the logical axis that it is; none for dims of an axis that is split or padded.
    stored: Vec<Option<usize>>,
    /// Place of each logical axis.
    places: Vec<usize>,
    /// Extents of the dims that are no logical axis.
    digits: Vec<Option<i64>>,
    /// Per logical axis, how many elements one step of its outermost dim spans.
    blocks: Vec<i64>,
}

/// An entry of a list per dim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    /// The entry of the list at this place.
    Entry(usize),
    /// What leaves a dim as it is.
    Same(i64),
}

impl Order {
    fn of(graph: &Graph, node: &Node) -> Option<Order> {
        let Form::Axes(bound) = &node.form else { return None };
        match bound.operands.iter().position(Option::is_some) {
            Some(first) => Order::stored(graph, node.inputs.get(first).copied().flatten()?),
            None => Order::of_result(graph, node),
        }
    }

    fn of_result(graph: &Graph, node: &Node) -> Option<Order> {
        Order::stored(graph, node.outputs.first().copied().flatten()?)
    }

    fn stored(graph: &Graph, v: ValueId) -> Option<Order> {
        let layout = &graph.value(v).layout;
        let places = places(layout, graph.storage)?;
        if graph.storage == StorageRule::PerAxis {
            // Whatever lies in blocks is declared by its axes.
            let stored: Vec<Option<usize>> = outermost(layout).into_iter().map(Some).collect();
            return Some(Order { digits: vec![None; stored.len()], blocks: vec![1; places.len()], stored, places });
        }
        let whole = |axis: usize| layout.block_of(axis) == 1 && layout.slot_map(axis).is_none();
        let axis = |f: &Factor| Some(usize::from(f.axis)).filter(|&axis| whole(axis));
        let blocks = (0..layout.rank()).map(|axis| i64::try_from(layout.block_of(axis)).ok());
        Some(Order {
            stored: layout.factors().iter().map(axis).collect(),
            places,
            digits: graph.storage_shape(v, layout)?.iter().map(Dim::as_const).collect(),
            blocks: blocks.collect::<Option<_>>()?,
        })
    }

    fn place(&self, axis: i64) -> Option<i64> {
        self.places.get(normalize_axis(axis, self.places.len())?).map(|&p| p as i64)
    }

    fn all(&self, axes: &[i64]) -> Option<Vec<i64>> {
        axes.iter().map(|&a| self.place(a)).collect()
    }

    /// Entries of one run per axis, `runs` times, in storage order.
    fn entries<T: Copy>(&self, node: &Node, list: &[T], runs: usize, number: fn(i64) -> T) -> Option<Vec<T>> {
        let entry = |pick: &Pick| match *pick {
            Pick::Entry(i) => list.get(i).copied(),
            Pick::Same(n) => Some(number(n)),
        };
        (list.len() == runs * self.places.len()).then(|| self.picks(node, runs)?.iter().map(entry).collect())?
    }

    /// Which entry of the list each dim takes.
    fn picks(&self, node: &Node, runs: usize) -> Option<Vec<Pick>> {
        let rank = self.places.len();
        let pick = |run: usize, (at, axis): (usize, &Option<usize>)| match axis {
            Some(axis) => Some(Pick::Entry(run * rank + axis)),
            // Such an axis goes through, so this is what says that nothing happens to a dim.
            None => Some(Pick::Same(match node.onnx()? {
                "Pad" => 0,
                "Tile" | "Expand" => 1,
                "CenterCropPad" => (*self.digits.get(at)?)?,
                _ => return None,
            })),
        };
        (0..runs).flat_map(|run| self.stored.iter().enumerate().map(move |dim| pick(run, dim))).collect()
    }
}

impl Exporter {
    /// Writes a node whose operands or results are stored in another order than ONNX's.
    pub(super) fn renumbered(
        &mut self,
        out: &mut GraphOut<'_>,
        n: NodeId,
        mut proto: NodeProto,
    ) -> Result<(), ExportError> {
        let graph = out.graph;
        let node = graph.node(n);
        let fail = |why: &str| ExportError::Unsayable { node: node.describe(graph), why: why.to_owned() };
        let Form::Axes(bound) = &node.form else { return Err(fail("it has no axes, but operands in other orders")) };
        let order = Order::of(graph, node).ok_or_else(|| fail("operand 0 is not stored as an order of axes"))?;
        let mut extents = false;
        for what in &bound.renumber {
            match *what {
                Renumber::Extents => extents = true,
                _ => self
                    .renumber_one(out, node, &order, *what, &mut proto)
                    .ok_or_else(|| fail("what it says of its axes can't be said in another order"))?,
            }
        }
        if extents {
            return self.extents(out, node, &order, proto).ok_or_else(|| fail("its extents can't be put in order"));
        }
        out.nodes.push(proto);
        Ok(())
    }

    fn renumber_one(
        &mut self,
        out: &mut GraphOut<'_>,
        node: &Node,
        order: &Order,
        what: Renumber,
        proto: &mut NodeProto,
    ) -> Option<()> {
        let graph = out.graph;
        match what {
            Renumber::AxisAttr(name, default) => {
                let axis = node.int(name).unwrap_or(default);
                set(proto, int_attribute(name, order.place(axis)?));
                self.parts(out, node, order, axis, proto)?;
            }
            Renumber::AxesAttr(name, implicit) => {
                let axes = match (node.ints(name), implicit) {
                    (Some(axes), _) => axes.to_vec(),
                    (None, Implicit::All) => return Some(()),
                    (None, Implicit::Leading) => (0..listed(graph, node)? as i64).collect(),
                };
                set(proto, ints_attribute(name, order.all(&axes)?));
            }
            Renumber::ResultAxisAttr(name, default) => {
                let place = Order::of_result(graph, node)?.place(node.int(name).unwrap_or(default))?;
                set(proto, int_attribute(name, place));
            }
            Renumber::AxisInput(slot) => {
                let axes = order.all(&contents(graph, node, slot)?)?;
                let v = node.inputs.get(slot).copied().flatten()?;
                self.replace(out, proto, slot, "axis", &axes, graph.value(v).ty.rank()? == 0);
            }
            Renumber::AxisInputOr(slot, default) => {
                let given = node.inputs.get(slot).copied().flatten();
                let axes = if given.is_some() { contents(graph, node, slot)? } else { vec![default] };
                let scalar = given.is_none_or(|v| graph.value(v).ty.rank() == Some(0));
                self.replace(out, proto, slot, "axis", &order.all(&axes)?, scalar);
            }
            Renumber::Letters(name) => set(proto, text_attribute(name, letters(graph, node, name)?)),
            Renumber::AxesInput(slot, implicit) => {
                let given = node.inputs.get(slot).copied().flatten();
                let axes = match (given, implicit) {
                    (Some(_), _) => contents(graph, node, slot)?,
                    (None, Implicit::All) => return Some(()),
                    (None, Implicit::Leading) => (0..listed(graph, node)? as i64).collect(),
                };
                let axes = order.all(&axes)?;
                self.replace(out, proto, slot, "axes", &axes, false);
            }
            Renumber::PerAxisAttr(name, runs) => {
                if let Some(list) = node.ints(name) {
                    set(proto, ints_attribute(name, order.entries(node, list, runs, |n| n)?));
                } else if let Some(Attr::Floats(list)) = node.attrs.get(name) {
                    let floats = order.entries(node, list, runs, |n| n as f32)?;
                    set(proto, AttributeProto { floats, ..attribute(name, AttributeType::Floats) });
                }
            }
            Renumber::PerAxisInput(slot, runs) => {
                let Some(v) = node.inputs.get(slot).copied().flatten() else { return Some(()) };
                if graph.value(v).ty.shape().is_some_and(|s| s == [Dim::ZERO]) {
                    return Some(());
                }
                if let Some(list) = contents(graph, node, slot) {
                    let entries = order.entries(node, &list, runs, |n| n)?;
                    self.replace(out, proto, slot, "entries", &entries, false);
                } else {
                    let picks = order.picks(node, runs)?;
                    self.gather_entries(out, proto, slot, v, &picks, runs * order.places.len());
                }
            }
            Renumber::TrailingInput(slot) => self.trailing(out, node, order, slot, proto)?,
            Renumber::Extents => {}
        }
        Some(())
    }

    /// Sizes of the parts of a Split whose axis is in blocks: in blocks too.
    fn parts(
        &mut self,
        out: &mut GraphOut<'_>,
        node: &Node,
        order: &Order,
        axis: i64,
        proto: &mut NodeProto,
    ) -> Option<()> {
        let axis = normalize_axis(axis, order.places.len())?;
        let block = *order.blocks.get(axis)?;
        let listed = node.ints("split").is_some() || node.inputs.get(1).copied().flatten().is_some();
        if block == 1 || node.onnx() != Some("Split") || !listed {
            return Some(());
        }
        let blocks = |v: &Option<ValueId>| Some(out.graph.value((*v)?).ty.shape()?.get(axis)?.as_const()? / block);
        let parts: Vec<i64> = node.outputs.iter().map(blocks).collect::<Option<_>>()?;
        if node.ints("split").is_some() {
            set(proto, ints_attribute("split", parts));
        } else {
            self.replace(out, proto, 1, "entries", &parts, false);
        }
        Some(())
    }

    /// Puts the last entries of a list in storage order, as many as there are axes.
    fn trailing(
        &mut self,
        out: &mut GraphOut<'_>,
        node: &Node,
        order: &Order,
        slot: usize,
        proto: &mut NodeProto,
    ) -> Option<()> {
        let v = node.inputs.get(slot).copied().flatten()?;
        let length = usize::try_from(out.graph.value(v).ty.shape()?.first()?.as_const()?).ok()?;
        let kept = length.checked_sub(order.stored.len())?;
        let trailing = order.stored.iter().map(|axis| Some(kept + (*axis)?)).collect::<Option<Vec<usize>>>()?;
        let picks: Vec<usize> = (0..kept).chain(trailing).collect();
        if let Some(list) = contents(out.graph, node, slot) {
            let entries: Vec<i64> = picks.iter().map(|&i| list.get(i).copied()).collect::<Option<_>>()?;
            self.replace(out, proto, slot, "entries", &entries, false);
        } else {
            let picks: Vec<Pick> = picks.into_iter().map(Pick::Entry).collect();
            self.gather_entries(out, proto, slot, v, &picks, length);
        }
        Some(())
    }

    /// Puts a list of integers in the place of an operand. It is typed as 64-bit, which every op that takes such a list takes.
    fn replace(
        &mut self,
        out: &mut GraphOut<'_>,
        proto: &mut NodeProto,
        slot: usize,
        what: &str,
        list: &[i64],
        scalar: bool,
    ) {
        let base = format!("{}.{what}", proto.output.first().map_or("", String::as_str));
        let name = self.taken.fresh(&base);
        let mut tensor = super::constants::int_tensor(name.clone(), list);
        if scalar {
            tensor.dims.clear();
        }
        self.add_constant(out, tensor);
        if proto.input.len() <= slot {
            proto.input.resize(slot + 1, String::new());
        }
        proto.input[slot] = name;
    }

    /// Picks entries of a list of this length that is computed at run time.
    fn gather_entries(
        &mut self,
        out: &mut GraphOut<'_>,
        proto: &mut NodeProto,
        slot: usize,
        v: ValueId,
        picks: &[Pick],
        length: usize,
    ) {
        let base = out.names.of(v).to_owned();
        let mut known: Vec<i64> = Vec::new();
        let indices: Vec<i64> = picks
            .iter()
            .map(|pick| match *pick {
                Pick::Entry(i) => i as i64,
                Pick::Same(n) => (length + place_of(&mut known, n)) as i64,
            })
            .collect();
        let list = self.longer(out, &base, &known);
        let indices = self.ints(out, &format!("{base}.order"), &indices);
        let result = self.taken.fresh(&format!("{base}.ordered"));
        out.nodes.push(gather(list, indices, result.clone()));
        proto.input[slot] = result;
    }

    /// A list that is computed at run time with known entries behind it.
    fn longer(&mut self, out: &mut GraphOut<'_>, list: &str, known: &[i64]) -> String {
        if known.is_empty() {
            return list.to_owned();
        }
        let more = self.ints(out, &format!("{list}.digits"), known);
        let result = self.taken.fresh(&format!("{list}.longer"));
        out.nodes.push(NodeProto {
            op_type: Some("Concat".to_owned()),
            name: Some(result.clone()),
            input: vec![list.to_owned(), more],
            output: vec![result.clone()],
            attribute: vec![int_attribute("axis", 0)],
            ..NodeProto::default()
        });
        result
    }

    /// Shape of a stored tensor, put back into ONNX's order. Extents of axes that are split or padded are known.
    fn extents(&mut self, out: &mut GraphOut<'_>, node: &Node, order: &Order, mut proto: NodeProto) -> Option<()> {
        let axes = order.places.len();
        let rank = axes as i64;
        let clamp = |a: i64| (if a < 0 { a.saturating_add(rank) } else { a }).clamp(0, rank) as usize;
        let (start, end) = (clamp(node.int("start").unwrap_or(0)), clamp(node.int("end").unwrap_or(rank)));
        proto.attribute.retain(|a| !matches!(a.name.as_deref(), Some("start" | "end")));
        let result = proto.output.first()?.clone();
        let stored = self.taken.fresh(&format!("{result}.stored"));
        proto.output[0].clone_from(&stored);
        let shape = node.inputs.first().copied().flatten().and_then(|x| out.graph.value(x).ty.shape())?;
        let mut known: Vec<i64> = Vec::new();
        let mut picks: Vec<i64> = Vec::new();
        for axis in start..end.max(start) {
            let place = *order.places.get(axis)?;
            picks.push(if order.stored.get(place).copied().flatten() == Some(axis) {
                place as i64
            } else {
                (order.stored.len() + place_of(&mut known, shape.get(axis)?.as_const()?)) as i64
            });
        }
        out.nodes.push(proto);
        let list = self.longer(out, &stored, &known);
        let indices = self.ints(out, &format!("{result}.order"), &picks);
        out.nodes.push(gather(list, indices, result));
        Some(())
    }
}

/// The place of a number in a list, which it joins if it is new.
fn place_of(list: &mut Vec<i64>, n: i64) -> usize {
    list.iter().position(|&have| have == n).unwrap_or_else(|| {
        list.push(n);
        list.len() - 1
    })
}

fn gather(data: String, indices: String, result: String) -> NodeProto {
    NodeProto {
        op_type: Some("Gather".to_owned()),
        name: Some(result.clone()),
        input: vec![data, indices],
        output: vec![result],
        attribute: vec![int_attribute("axis", 0)],
        ..NodeProto::default()
    }
}

fn attribute(name: &str, ty: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(ty as i32), ..AttributeProto::default() }
}

fn text_attribute(name: &str, text: String) -> AttributeProto {
    AttributeProto { s: Some(text.into_bytes().into()), ..attribute(name, AttributeType::String) }
}

/// An equation with the letters of each operand and result in the order in which it is stored.
fn letters(graph: &Graph, node: &Node, name: &str) -> Option<String> {
    let (left, right) = equation_terms(node.str(name)?);
    let stored = |term: &str, v: Option<&Option<ValueId>>| {
        let v = v.copied().flatten()?;
        permuted(term, &graph.value(v).layout.as_permutation()?)
    };
    let left: Option<Vec<String>> = left.iter().enumerate().map(|(i, term)| stored(term, node.inputs.get(i))).collect();
    Some(format!("{}->{}", left?.join(","), stored(&right, node.outputs.first())?))
}

/// A term with its letters in this order of axes. The axes that an ellipsis stands for stay together and in order.
fn permuted(term: &str, stored: &[usize]) -> Option<String> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let spelled = before.chars().count() + after.chars().count();
    let dots = stored.len().checked_sub(spelled)?;
    let axes: Vec<Option<char>> =
        before.chars().map(Some).chain(std::iter::repeat_n(None, dots)).chain(after.chars().map(Some)).collect();
    let mut text = String::new();
    let mut open = term.contains("...");
    for (place, &axis) in stored.iter().enumerate() {
        match axes.get(axis)? {
            Some(letter) => text.push(*letter),
            None if axis != place => return None,
            None if open => {
                open = false;
                text.push_str("...");
            }
            None => {}
        }
    }
    // An ellipsis that stands for no axis says nothing.
    Some(text)
}

fn set(proto: &mut NodeProto, attribute: AttributeProto) {
    match proto.attribute.iter_mut().find(|a| a.name == attribute.name) {
        Some(a) => *a = attribute,
        None => proto.attribute.push(attribute),
    }
}

fn contents(graph: &Graph, node: &Node, slot: usize) -> Option<Vec<i64>> {
    let v = node.inputs.get(slot).copied().flatten()?;
    graph.value(v).contents.as_ref()?.iter().map(Dim::as_const).collect()
}

/// Number of axes that a Slice speaks of, where it does not name them.
fn listed(graph: &Graph, node: &Node) -> Option<usize> {
    if let Some(starts) = node.ints("starts") {
        return Some(starts.len());
    }
    let starts = node.inputs.get(1).copied().flatten()?;
    usize::try_from(graph.value(starts).ty.shape()?.first()?.as_const()?).ok()
}
