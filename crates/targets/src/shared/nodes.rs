//! Reshapes, as passes of several targets make them.

use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, Handover, NodeId, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::types::Type;
use relayout_target_api::PassError;

/// Makes a node a Reshape of this value, its result in this layout.
pub(crate) fn become_reshape(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    target: &[i64],
    to: Option<Layout>,
) -> Result<(), PassError> {
    let to = to.unwrap_or_else(|| Layout::row_major(target.len()));
    Builder::at(graph, n).reshape_stored(x, target, &to)?.in_place_of(n);
    Ok(())
}

/// The same bytes as a value of another type and layout, read by these.
pub(crate) fn insert_reshape(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    target: &[i64],
    (ty, layout): (Type, Layout),
    (uses, outputs): (Vec<Use>, Vec<usize>),
    takes_name_of: Option<ValueId>,
) -> Result<ValueId, PassError> {
    let name = format!("{}.reshaped", graph.value(x).name);
    let mut make = Builder::at(graph, n);
    let readers = Handover { uses, outputs, takes_name_of };
    Ok(make.reshape_stored(x, target, &layout)?.result_for(&name, ty, readers)?)
}

/// Extents as a Reshape takes them, of which the first may be computed.
pub(crate) fn numbers(dims: &[Dim]) -> Option<Vec<i64>> {
    let number = |(i, d): (usize, &Dim)| d.as_const().or((i == 0).then_some(-1));
    dims.iter().enumerate().map(number).collect()
}
