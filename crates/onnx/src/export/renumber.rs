//! Attributes and operands that speak of axes, said for the order in which the first operand with axes is stored.

use super::views::{int_attribute, ints_attribute};
use super::{ExportError, Exporter, GraphOut};
use crate::proto::{AttributeProto, NodeProto};
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, Implicit, Renumber};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::normalize_axis;
use relayout_ir::storage::{outermost, places};

/// How the first operand that has axes is stored.
struct Order {
    /// Logical axes, outermost first.
    stored: Vec<usize>,
    /// Place of each logical axis.
    places: Vec<usize>,
}

impl Order {
    fn of(graph: &Graph, node: &Node) -> Option<Order> {
        let Form::Axes(bound) = &node.form else { return None };
        let first = bound.operands.iter().position(Option::is_some)?;
        let x = node.inputs.get(first).copied().flatten()?;
        let layout = &graph.value(x).layout;
        Some(Order { stored: outermost(layout), places: places(layout, graph.storage)? })
    }

    fn place(&self, axis: i64) -> Option<i64> {
        self.places.get(normalize_axis(axis, self.places.len())?).map(|&p| p as i64)
    }

    fn all(&self, axes: &[i64]) -> Option<Vec<i64>> {
        axes.iter().map(|&a| self.place(a)).collect()
    }

    /// Entries of one run per axis, `runs` times, in storage order.
    fn entries(&self, list: &[i64], runs: usize) -> Option<Vec<i64>> {
        let picks = self.picks(runs);
        (list.len() == picks.len()).then(|| picks.iter().map(|&i| list[i]).collect())
    }

    fn picks(&self, runs: usize) -> Vec<usize> {
        (0..runs).flat_map(|run| self.stored.iter().map(move |&axis| run * self.stored.len() + axis)).collect()
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
                let place = order.place(node.int(name).unwrap_or(default))?;
                set(proto, int_attribute(name, place));
            }
            Renumber::AxesAttr(name, implicit) => {
                let axes = match (node.ints(name), implicit) {
                    (Some(axes), _) => axes.to_vec(),
                    (None, Implicit::All) => return Some(()),
                    (None, Implicit::Leading) => (0..listed(graph, node)? as i64).collect(),
                };
                set(proto, ints_attribute(name, order.all(&axes)?));
            }
            Renumber::AxisInput(slot) => {
                let axes = order.all(&contents(graph, node, slot)?)?;
                let v = node.inputs.get(slot).copied().flatten()?;
                self.replace(out, proto, slot, "axis", &axes, graph.value(v).ty.rank()? == 0);
            }
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
                    set(proto, ints_attribute(name, order.entries(list, runs)?));
                }
            }
            Renumber::PerAxisInput(slot, runs) => {
                let Some(v) = node.inputs.get(slot).copied().flatten() else { return Some(()) };
                match contents(graph, node, slot) {
                    Some(list) => {
                        let entries = order.entries(&list, runs)?;
                        self.replace(out, proto, slot, "entries", &entries, false);
                    }
                    None => self.gather_entries(out, proto, slot, v, &order.picks(runs)),
                }
            }
            Renumber::TrailingInput(slot) => self.trailing(out, node, order, slot, proto)?,
            Renumber::Extents => {}
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
        let picks: Vec<usize> = (0..kept).chain(order.stored.iter().map(|&axis| kept + axis)).collect();
        match contents(out.graph, node, slot) {
            Some(list) => {
                let entries: Vec<i64> = picks.iter().map(|&i| list.get(i).copied()).collect::<Option<_>>()?;
                self.replace(out, proto, slot, "entries", &entries, false);
            }
            None => self.gather_entries(out, proto, slot, v, &picks),
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

    /// Picks entries of a list that is computed at run time.
    fn gather_entries(
        &mut self,
        out: &mut GraphOut<'_>,
        proto: &mut NodeProto,
        slot: usize,
        v: ValueId,
        picks: &[usize],
    ) {
        let base = out.names.of(v).to_owned();
        let indices: Vec<i64> = picks.iter().map(|&p| p as i64).collect();
        let indices = self.ints(out, &format!("{base}.order"), &indices);
        let result = self.taken.fresh(&format!("{base}.ordered"));
        out.nodes.push(gather(base, indices, result.clone()));
        proto.input[slot] = result;
    }

    /// Shape of a stored tensor, put back into ONNX's order.
    fn extents(&mut self, out: &mut GraphOut<'_>, node: &Node, order: &Order, mut proto: NodeProto) -> Option<()> {
        let rank = order.places.len() as i64;
        let clamp = |a: i64| (if a < 0 { a.saturating_add(rank) } else { a }).clamp(0, rank) as usize;
        let (start, end) = (clamp(node.int("start").unwrap_or(0)), clamp(node.int("end").unwrap_or(rank)));
        proto.attribute.retain(|a| !matches!(a.name.as_deref(), Some("start" | "end")));
        let result = proto.output.first()?.clone();
        let stored = self.taken.fresh(&format!("{result}.stored"));
        proto.output[0].clone_from(&stored);
        let picks: Vec<i64> = (start..end.max(start)).map(|axis| order.places[axis] as i64).collect();
        let indices = self.ints(out, &format!("{result}.order"), &picks);
        out.nodes.push(proto);
        out.nodes.push(gather(stored, indices, result));
        Some(())
    }
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
