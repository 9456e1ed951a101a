//! What a node says of axes, said for the order in which the first operand with axes is stored, or the first result where no
//! operand has axes.

use super::{Form, Implicit, Renumber};
use crate::attr::Attr;
use crate::dim::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::op::{equation_terms, normalize_axis};
use crate::storage::{outermost, places};

/// One thing that a node says of axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// An attribute is this number.
    Int(&'static str, i64),
    /// An attribute is this list.
    Ints(&'static str, Vec<i64>),
    /// An attribute is this list.
    Floats(&'static str, Vec<f32>),
    /// An attribute is this text.
    Text(&'static str, String),
    /// An operand is a list known at compile time.
    Operand {
        /// Its slot; it may be one that the node does not have yet.
        slot: usize,
        /// The list.
        values: Vec<i64>,
        /// It is a number and no list.
        scalar: bool,
        /// What it lists, in a word.
        what: &'static str,
    },
    /// An operand is a list computed at run time, of which these entries are taken in this order.
    Picked {
        /// Its slot.
        slot: usize,
        /// The entries.
        picks: Vec<usize>,
    },
    /// The result lists extents: these places of the stored shape, in this order. Attributes that choose extents go.
    Extents(Vec<usize>),
}

/// How the operand or result whose axes are spoken of is stored.
struct Order {
    /// Logical axes, outermost first.
    stored: Vec<usize>,
    /// Place of each logical axis.
    places: Vec<usize>,
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
        Some(Order { stored: outermost(layout), places: places(layout, graph.storage)? })
    }

    fn place(&self, axis: i64) -> Option<i64> {
        self.places.get(normalize_axis(axis, self.places.len())?).map(|&p| p as i64)
    }

    fn all(&self, axes: &[i64]) -> Option<Vec<i64>> {
        axes.iter().map(|&a| self.place(a)).collect()
    }

    /// Entries of one run per axis, `runs` times, in storage order.
    fn entries<T: Copy>(&self, list: &[T], runs: usize) -> Option<Vec<T>> {
        let picks = self.picks(runs);
        if list.len() == picks.len() { picked(list, &picks) } else { None }
    }

    fn picks(&self, runs: usize) -> Vec<usize> {
        (0..runs).flat_map(|run| self.stored.iter().map(move |&axis| run * self.stored.len() + axis)).collect()
    }
}

/// Everything that a node with letters on its axes says of axes, for the layouts that its operands have; what does not change
/// is said too.
///
/// # Errors
/// Why it can't be said.
pub fn renumbered(graph: &Graph, node: &Node) -> Result<Vec<Said>, &'static str> {
    let Form::Axes(bound) = &node.form else { return Err("it has no axes, but operands in other orders") };
    let order = Order::of(graph, node).ok_or("operand 0 is not stored as an order of axes")?;
    let mut said = Vec::new();
    for what in &bound.renumber {
        if is_said(graph, node, *what) {
            let one = renumber(graph, node, &order, *what);
            said.push(one.ok_or("what it says of its axes can't be said in another order")?);
        }
    }
    // The result's extents are picked from that of the node as it is then.
    said.sort_by_key(|s| matches!(s, Said::Extents(_)));
    Ok(said)
}

/// Whether the node says it at all: an attribute or operand that is left out and means all axes alike says nothing of any.
fn is_said(graph: &Graph, node: &Node, what: Renumber) -> bool {
    let given = |slot: usize| node.inputs.get(slot).copied().flatten().is_some();
    match what {
        Renumber::AxesAttr(name, Implicit::All) => node.ints(name).is_some(),
        Renumber::PerAxisAttr(name, _) => matches!(node.attrs.get(name), Some(Attr::Ints(_) | Attr::Floats(_))),
        Renumber::AxesInput(slot, Implicit::All) => given(slot),
        // An empty list is as good as none.
        Renumber::PerAxisInput(slot, _) => {
            let v = node.inputs.get(slot).copied().flatten();
            v.is_some_and(|v| graph.value(v).ty.shape().is_none_or(|s| s != [Dim::ZERO]))
        }
        _ => true,
    }
}

fn renumber(graph: &Graph, node: &Node, order: &Order, what: Renumber) -> Option<Said> {
    let said = match what {
        Renumber::AxisAttr(name, default) => Said::Int(name, order.place(node.int(name).unwrap_or(default))?),
        Renumber::ResultAxisAttr(name, default) => {
            Said::Int(name, Order::of_result(graph, node)?.place(node.int(name).unwrap_or(default))?)
        }
        Renumber::AxisInputOr(slot, default) => {
            let given = node.inputs.get(slot).copied().flatten();
            let axes = if given.is_some() { contents(graph, node, slot)? } else { vec![default] };
            let scalar = given.is_none_or(|v| graph.value(v).ty.rank() == Some(0));
            Said::Operand { slot, values: order.all(&axes)?, scalar, what: "axis" }
        }
        Renumber::Letters(name) => Said::Text(name, letters(graph, node, name)?),
        Renumber::AxesAttr(name, _) => {
            let axes = match node.ints(name) {
                Some(axes) => axes.to_vec(),
                None => leading(graph, node)?,
            };
            Said::Ints(name, order.all(&axes)?)
        }
        Renumber::AxisInput(slot) => {
            let values = order.all(&contents(graph, node, slot)?)?;
            let v = node.inputs.get(slot).copied().flatten()?;
            Said::Operand { slot, values, scalar: graph.value(v).ty.rank()? == 0, what: "axis" }
        }
        Renumber::AxesInput(slot, _) => {
            let axes = match node.inputs.get(slot).copied().flatten() {
                Some(_) => contents(graph, node, slot)?,
                None => leading(graph, node)?,
            };
            Said::Operand { slot, values: order.all(&axes)?, scalar: false, what: "axes" }
        }
        Renumber::PerAxisAttr(name, runs) => match node.attrs.get(name)? {
            Attr::Ints(list) => Said::Ints(name, order.entries(list, runs)?),
            Attr::Floats(list) => Said::Floats(name, order.entries(list, runs)?),
            _ => return None,
        },
        Renumber::PerAxisInput(slot, runs) => match contents(graph, node, slot) {
            Some(list) => entries(slot, order.entries(&list, runs)?),
            None => Said::Picked { slot, picks: order.picks(runs) },
        },
        Renumber::TrailingInput(slot) => trailing(graph, node, order, slot)?,
        Renumber::Extents => Said::Extents(extents(node, order)),
    };
    Some(said)
}

fn entries(slot: usize, values: Vec<i64>) -> Said {
    Said::Operand { slot, values, scalar: false, what: "entries" }
}

/// The last entries of a list in storage order, as many as there are axes.
fn trailing(graph: &Graph, node: &Node, order: &Order, slot: usize) -> Option<Said> {
    let v = node.inputs.get(slot).copied().flatten()?;
    let length = usize::try_from(graph.value(v).ty.shape()?.first()?.as_const()?).ok()?;
    let kept = length.checked_sub(order.stored.len())?;
    let picks: Vec<usize> = (0..kept).chain(order.stored.iter().map(|&axis| kept + axis)).collect();
    Some(match contents(graph, node, slot) {
        Some(list) => entries(slot, picked(&list, &picks)?),
        None => Said::Picked { slot, picks },
    })
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

/// Places of the extents that a Shape lists.
fn extents(node: &Node, order: &Order) -> Vec<usize> {
    let rank = order.places.len() as i64;
    let clamp = |a: i64| (if a < 0 { a.saturating_add(rank) } else { a }).clamp(0, rank) as usize;
    let (start, end) = (clamp(node.int("start").unwrap_or(0)), clamp(node.int("end").unwrap_or(rank)));
    order.places.get(start..end.max(start)).unwrap_or_default().to_vec()
}

fn picked<T: Copy>(list: &[T], picks: &[usize]) -> Option<Vec<T>> {
    picks.iter().map(|&i| list.get(i).copied()).collect()
}

fn contents(graph: &Graph, node: &Node, slot: usize) -> Option<Vec<i64>> {
    let v = node.inputs.get(slot).copied().flatten()?;
    graph.value(v).contents.as_ref()?.iter().map(Dim::as_const).collect()
}

/// The axes of which a Slice speaks where it does not name them.
fn leading(graph: &Graph, node: &Node) -> Option<Vec<i64>> {
    let count = if let Some(starts) = node.ints("starts") {
        starts.len() as i64
    } else {
        let starts = node.inputs.get(1).copied().flatten()?;
        graph.value(starts).ty.shape()?.first()?.as_const()?
    };
    Some((0..count).collect())
}
