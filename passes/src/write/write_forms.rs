//! `write_forms`: the forms of several nodes that were chosen take the place of their pieces.
//!
//! A form that is one op of its node's operands was written with the layouts, by `materialize`.

use crate::forms::raise::is_raised;
use crate::state::{State, Step, each_scope};
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId};
use relayout_target_api::{Declared, Fact, PassError, Piece, Refused, Slot};
use rustc_hash::FxHashSet;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::engine(
    Declared::new("write_forms", Slot::Write, "operands lie as the forms that were chosen read them")
        .needs(&[Fact::Layouts])
        .gives(&[Fact::Written]),
    write_forms,
);

/// Writes every such form, in the order of the graph; those of raised ops first, which take in what follows them.
pub(crate) fn write_forms(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    each_scope(graph, &mut |graph, scope| {
        let order = graph.order().unwrap_or_default();
        let (raised, rest): (Vec<NodeId>, Vec<NodeId>) = order.into_iter().partition(|&n| is_raised(graph, n));
        // A node that a form before it took in is gone, and its number may be another's.
        let mut gone = FxHashSet::default();
        for n in raised.into_iter().chain(rest) {
            if !gone.contains(&n) {
                gone.extend(write_form(graph, scope, n, state)?);
            }
        }
        Ok(())
    })
}

/// Writes that of a node, if one was chosen that is no single op; the nodes that it took in.
fn write_form(graph: &mut Graph, scope: usize, n: NodeId, state: &mut State<'_>) -> Result<Vec<NodeId>, PassError> {
    let offer = state.plan.offer(scope, n).filter(|offer| offer.becomes.is_none() && graph.contains(n));
    let Some(offer) = offer else { return Ok(Vec::new()) };
    let Form::Kernel(layouts) = &graph.node(n).form else { return Ok(Vec::new()) };
    let piece = Piece { graph, node: n, layouts, opset: state.settings.opset };
    let refused = |r: Refused| PassError::invalid("write_forms", r.to_string());
    let target = state.settings.target;
    let lacking = || Refused::new(&piece, &format!("has form {}, which target {} lacks", offer.form, target.name()));
    let form = target.forms().iter().find(|form| form.name() == offer.form).ok_or_else(lacking).map_err(refused)?;
    let written = form.write(&piece, offer).map_err(refused)?.apply(graph)?;
    let gone = written.gone.clone();
    state.written.push((scope, written));
    Ok(gone)
}
