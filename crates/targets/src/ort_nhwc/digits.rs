//! Moves of digits: parts of an axis change place. Standard ONNX has a Reshape, a Transpose and a Reshape for one.

use crate::shared::nodes::{become_reshape, insert_reshape, numbers};
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::perm;
use relayout_ir::types::Type;
use relayout_target_api::moves::{Moved, moved};
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// Axes that every device takes.
pub(super) const FEW: usize = 5;

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new(
        "write_digit_moves",
        Slot::Finish,
        "looks at the moves that are left; those of constants are gone",
    )
    .needs(&[Fact::Packed])
    .before(&["split_moves"]);
    Pass::on_each_graph(is, |graph, _| {
        for n in graph.order().unwrap_or_default() {
            lower(graph, n)?;
        }
        Ok(())
    })
}

/// A part of an axis: how many slots one step spans, and up to which number of slots it counts; `None` is the whole axis.
type Digit = (usize, u64, Option<u64>);

/// The digits of a layout, cut wherever one of the two layouts cuts the axis.
fn digits(of: &Layout, cuts: &[Vec<u64>]) -> Option<Vec<Digit>> {
    let mut digits = Vec::new();
    for f in of.factors() {
        let axis = usize::from(f.axis);
        let end = f.modulo.map(|modulo| f.div * modulo);
        let inside = |cut: &u64| *cut > f.div && end.is_none_or(|end| *cut < end);
        let mut ends: Vec<Option<u64>> = cuts.get(axis)?.iter().copied().filter(inside).map(Some).collect();
        ends.push(end);
        let mut low = f.div;
        let mut own = Vec::new();
        for end in ends {
            own.push((axis, low, end));
            low = end.unwrap_or(low);
        }
        digits.extend(own.into_iter().rev());
    }
    Some(digits)
}

/// A move between two layouts: digits as they lie before it, and which of them each is behind it.
struct Between {
    from: Vec<Digit>,
    perm: Vec<usize>,
}

impl Between {
    fn new(from: &Layout, to: &Layout) -> Option<Between> {
        let rank = from.rank();
        let padded = |l: &Layout| (0..rank).any(|axis| l.slot_map(axis).is_some());
        if rank != to.rank() || padded(from) || padded(to) {
            return None;
        }
        let cuts: Vec<Vec<u64>> = (0..rank).map(|axis| cuts(from, to, axis)).collect::<Option<_>>()?;
        let (from, to) = (digits(from, &cuts)?, digits(to, &cuts)?);
        let perm = to.iter().map(|digit| from.iter().position(|other| other == digit)).collect::<Option<_>>()?;
        Some(Between { from, perm })
    }
}

/// Where either layout cuts an axis, innermost first; `None` if digits straddle each other.
fn cuts(from: &Layout, to: &Layout, axis: usize) -> Option<Vec<u64>> {
    let both = from.factors().iter().chain(to.factors()).filter(|f| usize::from(f.axis) == axis);
    let mut cuts: Vec<u64> = both.flat_map(|f| [Some(f.div), f.modulo.map(|m| f.div * m)]).flatten().collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).all(|w| w[1].is_multiple_of(w[0])).then_some(cuts)
}

/// How many groups of digits change place, if the move can be written: digits are whole.
pub(super) fn groups(from: &Layout, to: &Layout, shape: &[u64]) -> Option<usize> {
    let between = Between::new(from, to)?;
    let whole = |&(axis, low, high): &Digit| {
        let extent = shape.get(axis).copied().unwrap_or(0);
        extent.is_multiple_of(high.unwrap_or(low).max(1))
    };
    if !between.from.iter().all(whole) {
        return None;
    }
    let extents: Vec<u64> =
        between.from.iter().map(|&(axis, low, high)| high.unwrap_or(shape[axis]) / low.max(1)).collect();
    Some(perm::merged(&between.perm, |digit| extents.get(digit) != Some(&1)).perm.len())
}

/// How such a move is written: what is moved has these dims, and goes to this layout; what the Reshapes before and behind it make.
struct Steps {
    dims: Vec<Dim>,
    turned: Layout,
    before: Vec<i64>,
    after: Vec<i64>,
}

fn steps(graph: &Graph, result: ValueId, left: &Layout, to: &Layout) -> Option<Steps> {
    let between = Between::new(left, to)?;
    let shape = graph.value(result).ty.shape()?;
    let extent = |&(axis, low, high): &Digit| {
        let whole = shape.get(axis)?;
        match high {
            Some(high) => Some(Dim::from(i64::try_from(high / low).ok()?)),
            None => whole.exact_div(&Dim::from(i64::try_from(low).ok()?)),
        }
    };
    let dims: Vec<Dim> = between.from.iter().map(extent).collect::<Option<_>>()?;
    // As many axes as there are digits, if a device takes those: some find a shuffle of channels among them.
    let merged = if dims.len() <= FEW {
        let groups = (0..dims.len()).map(|digit| vec![digit]).collect();
        perm::Merged { groups, perm: between.perm }
    } else {
        perm::merged(&between.perm, |_| true)
    };
    let group = |group: &Vec<usize>| Dim::product(&group.iter().map(|&d| dims[d].clone()).collect::<Vec<_>>());
    let dims: Vec<Dim> = merged.groups.iter().map(group).collect::<Option<_>>()?;
    let stored = graph.storage_shape(result, to)?;
    let turned = Layout::permutation(&merged.perm).ok()?;
    let before = numbers(&dims)?;
    Some(Steps { dims, turned, before, after: numbers(&stored)? })
}

/// Whether a value can be moved between these layouts: standard ONNX says the dims of digits in numbers, but for one.
pub(super) fn can_move(graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> bool {
    let whole = from.as_permutation().is_some() && to.as_permutation().is_some();
    whole || steps(graph, v, from, to).is_some()
}

/// Writes such a move.
fn lower(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    let Some(Moved { source, result, left }) = moved(graph, n) else { return Ok(()) };
    let to = graph.value(result).layout.clone();
    if left.as_permutation().is_some() && to.as_permutation().is_some() {
        return Ok(());
    }
    let refused = |graph: &Graph| {
        let first = format!("{} can't be moved from {left} to {to}", graph.node(n).describe(graph));
        PassError::invalid("write_digit_moves", first)
    };
    let Some(Steps { dims, turned, before, after }) = steps(graph, result, &left, &to) else {
        return Err(refused(graph));
    };
    let Some(dtype) = graph.value(result).ty.dtype() else { return Err(refused(graph)) };
    let plain = Layout::row_major(dims.len());
    let at = insert_reshape(graph, n, source, &before, (Type::tensor(dtype, dims), plain), (vec![], vec![]), None)?;
    let name = format!("{}.moved", graph.value(result).name);
    let at = Builder::at(graph, n).moved(at, &name, turned)?;
    become_reshape(graph, n, at, &after, Some(to).filter(|to| !to.is_row_major()))
}
