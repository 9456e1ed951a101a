//! The axes of a reduction, wherever its version has them. Which version that is, the table of ops says.

use super::super::query::rank;
use super::super::{Absent, Axes, Reduce, lookup, normalize_axis};
use super::number::known_ints;
use crate::graph::{Graph, Node, Op};

/// Axes that an op reduces, in ascending order; `None` if they are computed at run time.
///
/// # Errors
/// If one is out of range.
pub(in crate::op) fn reduced_by(
    graph: &Graph,
    node: &Node,
    reduce: &Reduce,
    rank: usize,
) -> Result<Option<Vec<usize>>, String> {
    let said = if let Some(v) = reduce.input.and_then(|slot| node.operand(slot)) {
        let Some(axes) = known_ints(graph, v) else { return Ok(None) };
        Some(axes)
    } else {
        reduce.attr.and_then(|name| node.ints(name).map(<[i64]>::to_vec).or_else(|| node.int(name).map(|a| vec![a])))
    };
    let axes = match (said.filter(|a| !a.is_empty()), reduce.absent) {
        (Some(axes), _) => axes,
        (None, Absent::AllUnlessNoop) if node.flag("noop_with_empty_axes") => vec![],
        (None, Absent::All | Absent::AllUnlessNoop) => (0..rank as i64).collect(),
        (None, Absent::Axis(axis)) => vec![axis],
    };
    let mut axes: Vec<usize> = axes
        .into_iter()
        .map(|a| normalize_axis(a, rank).ok_or_else(|| format!("axis {a} is out of range for rank {rank}")))
        .collect::<Result<_, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(Some(axes))
}

/// Axes that a reduction of any domain reduces, in ascending order. `None` for ops that reduce nothing, and where the axes are
/// not known.
pub fn reduced(graph: &Graph, node: &Node) -> Option<Vec<usize>> {
    let Op::Onnx(op) = &node.op else { return None };
    let Axes::Sig(cases) = &lookup(op, node.opset)?.axes else { return None };
    let reduce = cases.iter().find_map(|case| case.reduce.as_ref())?;
    reduced_by(graph, node, reduce, rank(graph, node, 0)?).ok()?
}

/// Whether a reduction leaves the axes that it reduces, with extent 1.
pub fn keeps_axes(node: &Node) -> bool {
    node.int("keepdims").unwrap_or(1) != 0
}
