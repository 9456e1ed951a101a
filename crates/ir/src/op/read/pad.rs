//! What a Pad adds, wherever its version has the numbers.

use super::super::axes_among;
use super::super::query::{op_name, rank};
use super::number::number_told;
use super::operand::{List, list};
use crate::dim::Dim;
use crate::graph::{Graph, Node};

/// How many elements a Pad adds at one end of an axis, negative where it takes some away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// So many.
    Known(i64),
    /// What this entry of operand 1 says at run time.
    Listed(usize),
}

/// What a Pad adds to one axis, with symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicPad {
    /// The axis.
    pub axis: usize,
    /// Elements before the first.
    pub before: Dim,
    /// Elements behind the last.
    pub after: Dim,
    /// Entries of the list that say both.
    pub entries: (usize, usize),
}

/// What surrounds the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// This number.
    Number(f64),
    /// A number that is not known.
    Computed,
    /// Elements of the data.
    Copies,
}

/// What a Pad adds to the axes that it speaks of, of an operand of this rank. `None` if that is not known.
///
/// # Errors
/// Where its lists are missing, or contradict each other or the rank.
pub fn symbolic_pads(graph: &Graph, node: &Node, rank: usize) -> Result<Option<Vec<SymbolicPad>>, String> {
    let pads = match node.ints("paddings") {
        Some(paddings) => List::Known(paddings.iter().copied().map(Dim::from).collect()),
        None => list(graph, node, "pads"),
    };
    let axes = match list(graph, node, "axes") {
        List::Absent => Some((0..rank as i64).collect()),
        axes => axes.ints(),
    };
    if pads.is_absent() {
        return Err("lacks `pads`".to_owned());
    }
    let (Some(pads), Some(axes)) = (pads.dims(), axes) else { return Ok(None) };
    let axes = axes_among(&axes, rank)?;
    let count = axes.len();
    if pads.len() != 2 * count {
        return Err(format!("{} pads for {count} axes", pads.len()));
    }
    let of = |(i, axis): (usize, usize)| SymbolicPad {
        axis,
        before: pads[i].clone(),
        after: pads[count + i].clone(),
        entries: (i, count + i),
    };
    Ok(Some(axes.into_iter().enumerate().map(of).collect()))
}

/// What a Pad adds before and after each axis of its operand. `None` for other ops, and where the axes are not known.
pub fn paddings(graph: &Graph, node: &Node) -> Option<Vec<(Padding, Padding)>> {
    let rank = rank(graph, node, 0).filter(|_| op_name(node) == "Pad")?;
    let said = |d: &Dim, entry: usize| d.as_const().map_or(Padding::Listed(entry), Padding::Known);
    let mut pads = vec![(Padding::Known(0), Padding::Known(0)); rank];
    for pad in symbolic_pads(graph, node, rank).ok()?? {
        pads[pad.axis] = (said(&pad.before, pad.entries.0), said(&pad.after, pad.entries.1));
    }
    Some(pads)
}

/// What a Pad adds before and after each axis, where all of it is known.
pub fn pads(graph: &Graph, node: &Node) -> Option<Vec<(i64, i64)>> {
    let known = |p: Padding| if let Padding::Known(elements) = p { Some(elements) } else { None };
    paddings(graph, node)?.into_iter().map(|(before, after)| Some((known(before)?, known(after)?))).collect()
}

/// An entry of a Pad's operand 1 that is known to be zero.
pub fn zero_padding(graph: &Graph, node: &Node) -> Option<usize> {
    graph.value(node.operand(1)?).contents.as_ref()?.iter().position(|d| *d == Dim::ZERO)
}

/// What a Pad puts around the data: zeros unless it says otherwise.
pub fn fill(graph: &Graph, node: &Node) -> Fill {
    if node.str("mode").is_some_and(|mode| mode != "constant") {
        return Fill::Copies;
    }
    number_told(graph, node, "value", 0.0).map_or(Fill::Computed, Fill::Number)
}
