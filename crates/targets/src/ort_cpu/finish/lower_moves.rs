//! Moves that are several nodes: those of volumes, and those to and from channels that lie apart.

use super::{run_moves, volume_moves};
use relayout_ir::graph::Graph;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// The pass.
pub(super) fn pass() -> Pass {
    let is =
        Declared::new("lower_moves", Slot::Finish, "looks at the moves that are left; those of constants are gone")
            .needs(&[Fact::Packed])
            .before(&["split_moves"]);
    Pass::on_each_graph(is, |graph, _| lower_moves(graph))
}

fn lower_moves(graph: &mut Graph) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        let _ = volume_moves::lower(graph, n)? || run_moves::lower(graph, n)?;
    }
    Ok(())
}
