//! What a node says of axes, said for the order in which the first operand with axes is stored, or the first result where no
//! operand has axes.

use super::read::{axes_of_slice, known_ints};
use super::{equation_terms, normalize_axis};
use crate::attr::Attr;
use crate::dim::Dim;
use crate::form::{Form, Implicit, Renumber};
use crate::graph::{Graph, Node, ValueId};
use crate::storage::{StorageRule, places};

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
    /// The same as `Picked`, or as `Extents` without a slot, where some entries are known: a place from `length` on is that
    /// of an entry of `known`. So it is where an axis is split or padded.
    Woven {
        /// The operand's slot; none for the result's extents.
        slot: Option<usize>,
        /// Entries of the list that is computed, and then of `known`.
        picks: Vec<usize>,
        /// Length of the list that is computed.
        length: usize,
        /// Entries that are known.
        known: Vec<i64>,
    },
}

/// How the operand or result whose axes are spoken of is stored.
struct Order {
    /// Per dim, outermost first, the logical axis that it is; none for dims of an axis that is split or padded.
    stored: Vec<Option<usize>>,
    /// Place of each logical axis.
    places: Vec<usize>,
    /// Extents of the dims, as far as they are known.
    dims: Vec<Option<i64>>,
    /// Per logical axis, its extent, and how many elements one step of its outermost dim spans.
    axes: Vec<(Option<i64>, i64)>,
}

/// An entry of a list per dim.
#[derive(Clone, Copy)]
enum Pick {
    /// The entry of the list at this place.
    Entry(usize),
    /// This number.
    Known(i64),
}

impl Order {
    fn of_operand(graph: &Graph, node: &Node) -> Option<Order> {
        let Form::Axes(bound) = &node.form else { return None };
        match bound.operands.iter().position(Option::is_some) {
            Some(first) => Order::stored(graph, node.operand(first)?),
            None => Order::of_result(graph, node),
        }
    }

    fn of_result(graph: &Graph, node: &Node) -> Option<Order> {
        Order::stored(graph, node.result(0)?)
    }

    fn stored(graph: &Graph, v: ValueId) -> Option<Order> {
        let layout = &graph.value(v).layout;
        let places = places(layout, graph.storage)?;
        let shape = graph.value(v).ty.shape()?;
        let per_digit = graph.storage == StorageRule::PerDigit;
        // Declared per axis, whatever lies in blocks has its axes.
        let whole = |axis: usize| !per_digit || (layout.block_of(axis) == 1 && layout.slot_map(axis).is_none());
        let factors = layout.factors().iter().filter(|f| per_digit || f.modulo.is_none());
        let stored = factors.map(|f| Some(usize::from(f.axis)).filter(|&axis| whole(axis))).collect();
        let block = |axis: usize| if per_digit { i64::try_from(layout.block_of(axis)).ok() } else { Some(1) };
        let axes = shape.iter().enumerate().map(|(axis, dim)| Some((dim.as_const(), block(axis)?)));
        let dims = graph.storage_shape(v, layout)?.iter().map(Dim::as_const).collect();
        Some(Order { stored, places, dims, axes: axes.collect::<Option<_>>()? })
    }

    fn place(&self, axis: i64) -> Option<i64> {
        self.places.get(normalize_axis(axis, self.places.len())?).map(|&p| p as i64)
    }

    fn all(&self, axes: &[i64]) -> Option<Vec<i64>> {
        axes.iter().map(|&a| self.place(a)).collect()
    }

    /// Entries of one run per axis, `runs` times, in storage order.
    fn entries<T: Copy>(&self, node: &Node, list: &[T], runs: usize, number: fn(i64) -> T) -> Option<Vec<T>> {
        let picks = self.picks(node, runs)?;
        if list.len() == runs * self.places.len() { picked(list, &picks, number) } else { None }
    }

    /// Whether the dims are the axes, in their order.
    fn is_declared(&self) -> bool {
        self.stored.len() == self.places.len() && self.stored.iter().enumerate().all(|(at, axis)| *axis == Some(at))
    }

    /// Which entry of the list each dim takes.
    fn picks(&self, node: &Node, runs: usize) -> Option<Vec<Pick>> {
        let rank = self.places.len();
        let pick = |run: usize, (at, axis): (usize, &Option<usize>)| match axis {
            Some(axis) => Some(Pick::Entry(run * rank + axis)),
            // Such an axis goes through, so this is what says that nothing happens to a dim.
            None => Some(Pick::Known(match node.onnx()? {
                "Pad" => 0,
                "Tile" | "Expand" => 1,
                "CenterCropPad" => (*self.dims.get(at)?)?,
                _ => return None,
            })),
        };
        (0..runs).flat_map(|run| self.stored.iter().enumerate().map(move |dim| pick(run, dim))).collect()
    }
}

/// Everything that a node with letters on its axes says of axes, for the layouts that its operands have; what does not change
/// is said too.
///
/// # Errors
/// Why it can't be said.
pub fn renumbered(graph: &Graph, node: &Node) -> Result<Vec<Said>, &'static str> {
    let Form::Axes(bound) = &node.form else { return Err("it has no axes, but operands in other orders") };
    let order = Order::of_operand(graph, node).ok_or("operand 0 is not stored as an order of axes")?;
    let mut said = Vec::new();
    for what in &bound.renumber {
        let stays = matches!(what, Renumber::Extents) && order.is_declared();
        if is_said(graph, node, *what) && !stays {
            let one = renumber(graph, node, &order, *what);
            said.push(one.ok_or("what it says of its axes can't be said in another order")?);
            if let Renumber::AxisAttr(name, default) = *what {
                let parts = parts(graph, node, &order, node.int(name).unwrap_or(default));
                said.extend(parts?);
            }
        }
    }
    // The result's extents are picked from that of the node as it is then.
    said.sort_by_key(|s| matches!(s, Said::Extents(_) | Said::Woven { slot: None, .. }));
    Ok(said)
}

/// Whether the node says it at all: an attribute or operand that is left out and means all axes alike says nothing of any.
fn is_said(graph: &Graph, node: &Node, what: Renumber) -> bool {
    let given = |slot: usize| node.operand(slot).is_some();
    match what {
        Renumber::AxesAttr(name, Implicit::All) => node.ints(name).is_some(),
        Renumber::PerAxisAttr(name, _) => matches!(node.attrs.get(name), Some(Attr::Ints(_) | Attr::Floats(_))),
        Renumber::AxesInput(slot, Implicit::All) => given(slot),
        // An empty list is as good as none.
        Renumber::PerAxisInput(slot, _) => {
            let v = node.operand(slot);
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
            let given = node.operand(slot);
            let axes = if given.is_some() { contents(graph, node, slot)? } else { vec![default] };
            let scalar = given.is_none_or(|v| graph.value(v).ty.rank() == Some(0));
            Said::Operand { slot, values: order.all(&axes)?, scalar, what: "axis" }
        }
        Renumber::Letters(name) => Said::Text(name, letters(graph, node, name)?),
        Renumber::AxesAttr(name, implicit) => {
            let axes = match (node.ints(name), implicit) {
                (Some(axes), _) | (None, Implicit::These(axes)) => axes.to_vec(),
                (None, _) => axes_of_slice(graph, node)?,
            };
            Said::Ints(name, order.all(&axes)?)
        }
        Renumber::AxisInput(slot) => {
            let values = order.all(&contents(graph, node, slot)?)?;
            let v = node.operand(slot)?;
            Said::Operand { slot, values, scalar: graph.value(v).ty.rank()? == 0, what: "axis" }
        }
        Renumber::AxesInput(slot, _) => {
            let axes = match node.operand(slot) {
                Some(_) => contents(graph, node, slot)?,
                None => axes_of_slice(graph, node)?,
            };
            Said::Operand { slot, values: order.all(&axes)?, scalar: false, what: "axes" }
        }
        Renumber::PerAxisAttr(name, runs) => match node.attrs.get(name)? {
            Attr::Ints(list) => Said::Ints(name, order.entries(node, list, runs, |n| n)?),
            Attr::Floats(list) => Said::Floats(name, order.entries(node, list, runs, |n| n as f32)?),
            _ => return None,
        },
        Renumber::PerAxisInput(slot, runs) => match contents(graph, node, slot) {
            Some(list) => entries(slot, order.entries(node, &list, runs, |n| n)?),
            None => woven(Some(slot), &order.picks(node, runs)?, runs * order.places.len()),
        },
        Renumber::TrailingInput(slot) => trailing(graph, node, order, slot)?,
        Renumber::Extents => woven(None, &extents(node, order)?, order.stored.len()),
    };
    Some(said)
}

fn entries(slot: usize, values: Vec<i64>) -> Said {
    Said::Operand { slot, values, scalar: false, what: "entries" }
}

/// The last entries of a list in storage order, as many as there are axes.
fn trailing(graph: &Graph, node: &Node, order: &Order, slot: usize) -> Option<Said> {
    let v = node.operand(slot)?;
    let length = usize::try_from(graph.value(v).ty.shape()?.first()?.as_const()?).ok()?;
    let kept = length.checked_sub(order.stored.len())?;
    let last = order.stored.iter().map(|axis| Some(Pick::Entry(kept + (*axis)?)));
    let picks: Vec<Pick> = (0..kept).map(|i| Some(Pick::Entry(i))).chain(last).collect::<Option<_>>()?;
    Some(match contents(graph, node, slot) {
        Some(list) => entries(slot, picked(&list, &picks, |n| n)?),
        None => woven(Some(slot), &picks, length),
    })
}

/// Picks from a list that is computed, woven with what is known.
fn woven(slot: Option<usize>, picks: &[Pick], length: usize) -> Said {
    let mut known: Vec<i64> = Vec::new();
    let place = |pick: &Pick| match *pick {
        Pick::Entry(i) => i,
        Pick::Known(n) => {
            let at = known.iter().position(|&have| have == n);
            length
                + at.unwrap_or_else(|| {
                    known.push(n);
                    known.len() - 1
                })
        }
    };
    let picks: Vec<usize> = picks.iter().map(place).collect();
    match (slot, known.is_empty()) {
        (Some(slot), true) => Said::Picked { slot, picks },
        (None, true) => Said::Extents(picks),
        (slot, false) => Said::Woven { slot, picks, length, known },
    }
}

/// Sizes of the parts of a Split whose axis is in blocks: in blocks too.
fn parts(graph: &Graph, node: &Node, order: &Order, axis: i64) -> Result<Option<Said>, &'static str> {
    let axis = normalize_axis(axis, order.places.len()).ok_or("its axis is out of range")?;
    let block = order.axes.get(axis).map_or(1, |(_, block)| *block);
    let listed = node.operand(1).is_some();
    if block == 1 || node.onnx() != Some("Split") || !(listed || node.ints("split").is_some()) {
        return Ok(None);
    }
    let blocks = |v: &Option<ValueId>| Some(graph.value((*v)?).ty.shape()?.get(axis)?.as_const()? / block);
    let sizes: Option<Vec<i64>> = node.outputs.iter().map(blocks).collect();
    let sizes = sizes.ok_or("the sizes of its parts are not known")?;
    Ok(Some(if listed { entries(1, sizes) } else { Said::Ints("split", sizes) }))
}

/// An equation with the letters of each operand and result in the order in which it is stored. Where axes that an ellipsis stands for
/// change places, each has a letter of its own.
fn letters(graph: &Graph, node: &Node, name: &str) -> Option<String> {
    let equation = node.str(name)?;
    let (left, right) = equation_terms(equation);
    let stored = |term: &str, v: Option<&Option<ValueId>>, dots: &[char]| {
        let order = graph.value(v.copied().flatten()?).layout.as_permutation()?;
        let dots: String = dots.iter().collect();
        permuted(&if dots.is_empty() { term.to_owned() } else { term.replace("...", &dots) }, &order)
    };
    let written = |dots: &[char]| {
        let left: Option<Vec<String>> =
            left.iter().enumerate().map(|(i, term)| stored(term, node.inputs.get(i), dots)).collect();
        Some(format!("{}->{}", left?.join(","), stored(&right, node.outputs.first(), dots)?))
    };
    written(&[]).or_else(|| written(&letters_of_dots(graph, node, equation, &right)?))
}

/// A letter for each axis that the ellipsis of an equation stands for, none of which it has.
fn letters_of_dots(graph: &Graph, node: &Node, equation: &str, right: &str) -> Option<Vec<char>> {
    let rank = graph.value(node.result(0)?).ty.rank()?;
    let dots = rank.checked_sub(right.replace("...", "").chars().count())?;
    let free: Vec<char> = ('a'..='z').chain('A'..='Z').filter(|c| !equation.contains(*c)).take(dots).collect();
    (free.len() == dots && dots > 0).then_some(free)
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

/// Places of the extents that a Shape lists; those of axes that are split or padded are known.
fn extents(node: &Node, order: &Order) -> Option<Vec<Pick>> {
    let rank = order.places.len() as i64;
    let clamp = |a: i64| (if a < 0 { a.saturating_add(rank) } else { a }).clamp(0, rank) as usize;
    let (start, end) = (clamp(node.int("start").unwrap_or(0)), clamp(node.int("end").unwrap_or(rank)));
    let pick = |axis: usize| {
        let place = *order.places.get(axis)?;
        let whole = order.stored.get(place).copied().flatten() == Some(axis);
        if whole { Some(Pick::Entry(place)) } else { order.axes.get(axis)?.0.map(Pick::Known) }
    };
    (start..end.max(start)).map(pick).collect()
}

fn picked<T: Copy>(list: &[T], picks: &[Pick], number: fn(i64) -> T) -> Option<Vec<T>> {
    let entry = |pick: &Pick| match *pick {
        Pick::Entry(i) => list.get(i).copied(),
        Pick::Known(n) => Some(number(n)),
    };
    picks.iter().map(entry).collect()
}

fn contents(graph: &Graph, node: &Node, slot: usize) -> Option<Vec<i64>> {
    known_ints(graph, node.operand(slot)?)
}
