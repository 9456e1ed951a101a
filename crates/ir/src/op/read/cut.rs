//! What a Slice takes, wherever its version has the numbers.

use super::super::axes_among;
use super::super::query::{op_name, rank};
use super::operand::{List, list};
use crate::dim::Dim;
use crate::graph::{Graph, Node};

/// What a Slice takes of one axis. Bounds are as ONNX has them: negative ones count from the end, far ones are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The axis.
    pub axis: usize,
    /// The first element.
    pub start: i64,
    /// The end, which is not taken.
    pub end: i64,
    /// From one element to the next.
    pub step: i64,
}

/// A cut with symbols; `None` is what is decided at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicCut {
    /// The axis.
    pub axis: usize,
    /// The first element.
    pub start: Option<Dim>,
    /// The end, which is not taken.
    pub end: Option<Dim>,
    /// From one element to the next; never 0.
    pub step: Option<i64>,
}

impl SymbolicCut {
    /// In numbers, if all are known.
    pub fn known(&self) -> Option<Cut> {
        let number = |d: &Option<Dim>| d.as_ref()?.as_const();
        Some(Cut { axis: self.axis, start: number(&self.start)?, end: number(&self.end)?, step: self.step? })
    }
}

/// What a Slice takes of the axes that it speaks of, of an operand of this rank. `None` if not even the axes are known.
///
/// # Errors
/// Where its lists contradict each other or the rank.
pub fn symbolic_cuts(graph: &Graph, node: &Node, rank: usize) -> Result<Option<Vec<SymbolicCut>>, String> {
    let [starts, ends, axes, steps] = ["starts", "ends", "axes", "steps"].map(|name| list(graph, node, name));
    let axes = match (&axes, starts.len_in(graph)) {
        (List::Absent, Some(n)) if n <= rank => (0..n as i64).collect(),
        (List::Absent, Some(n)) => return Err(format!("{n} starts for rank {rank}")),
        (List::Absent, None) => return Ok(None),
        (axes, _) => match axes.ints() {
            Some(axes) => axes,
            None => return Ok(None),
        },
    };
    let axes = axes_among(&axes, rank)?;
    let entries = |list: &List<'_>| match list.dims() {
        Some(dims) => dims.iter().cloned().map(Some).collect(),
        None => vec![None; axes.len()],
    };
    let (starts, ends) = (entries(&starts), entries(&ends));
    let steps: Vec<Option<i64>> = match (&steps, steps.ints()) {
        (List::Absent, _) => vec![Some(1); axes.len()],
        (_, Some(steps)) => steps.into_iter().map(Some).collect(),
        (_, None) => vec![None; axes.len()],
    };
    if [starts.len(), ends.len(), steps.len()] != [axes.len(); 3] {
        return Err("starts, ends, axes and steps are of unequal length".to_owned());
    }
    if steps.contains(&Some(0)) {
        return Err("a step is 0".to_owned());
    }
    let cut = |(((axis, start), end), step)| SymbolicCut { axis, start, end, step };
    Ok(Some(axes.into_iter().zip(starts).zip(ends).zip(steps).map(cut).collect()))
}

/// What a Slice takes of the axes that it speaks of. `None` for other ops and where anything is computed at run time.
pub fn cuts(graph: &Graph, node: &Node) -> Option<Vec<Cut>> {
    let rank = rank(graph, node, 0).filter(|_| op_name(node) == "Slice")?;
    symbolic_cuts(graph, node, rank).ok()??.iter().map(SymbolicCut::known).collect()
}

/// The axes that a Slice speaks of, as numbers of the file: those that it names, or else so many as it has starts. `None` if that
/// is decided at run time.
pub fn axes_of_slice(graph: &Graph, node: &Node) -> Option<Vec<i64>> {
    match list(graph, node, "axes") {
        List::Absent => Some((0..list(graph, node, "starts").len_in(graph)? as i64).collect()),
        axes => axes.ints(),
    }
}

/// First element and number of elements that a cut takes of `n` elements.
pub fn elements_taken(n: i64, start: i64, end: i64, step: i64) -> (i64, i64) {
    let n = n.max(0);
    let place = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let (start, end) = (place(start).clamp(low, high), place(end).clamp(low, high));
    let distance = if step > 0 { end - start } else { start - end };
    let stride = step.unsigned_abs();
    let count = u64::try_from(distance).map_or(0, |d| d.div_ceil(stride));
    (start, count as i64)
}
