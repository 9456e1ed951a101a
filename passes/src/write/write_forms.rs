//! `write_forms`: the forms of several nodes that were chosen take the place of their pieces.
//!
//! A form that is one op of its node's operands was written with the layouts, by `materialize`.

use crate::pipeline::{State, each_scope};
use relayout_ir::form::Form as Bound;
use relayout_ir::graph::{Graph, NodeId};
use relayout_target::{PassError, Piece, Refused};

/// Writes every such form, in the order of the graph.
pub(crate) fn write_forms(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    each_scope(graph, &mut |graph, scope| {
        for n in graph.order().unwrap_or_default() {
            write_form(graph, scope, n, state)?;
        }
        Ok(())
    })
}

fn write_form(graph: &mut Graph, scope: usize, n: NodeId, state: &mut State<'_>) -> Result<(), PassError> {
    // What a form before it took in is gone.
    let offer = state.plan.offer(scope, n).filter(|offer| offer.becomes.is_none() && graph.contains(n));
    let Some(offer) = offer else { return Ok(()) };
    let Bound::Kernel(layouts) = &graph.node(n).form else { return Ok(()) };
    let piece = Piece { graph, node: n, layouts, opset: state.settings.opset };
    let refused = |r: Refused| PassError::invalid("write_forms", r.to_string());
    let target = state.settings.target;
    let form = target.forms().iter().find(|form| form.name() == offer.form);
    let Some(form) = form else {
        return Err(refused(Refused::new(
            &piece,
            &format!("has form {}, which target {} lacks", offer.form, target.name()),
        )));
    };
    if let Some(fragment) = form.write(&piece, offer).map_err(refused)? {
        state.written.push((scope, fragment.apply(graph)?));
    }
    Ok(())
}
