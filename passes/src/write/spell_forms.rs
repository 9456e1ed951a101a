//! `spell_forms`: pieces whose form is a standard op between views.

use crate::state::{State, Step, each_scope};
use relayout_ir::graph::Graph;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Counted, Declared, Fact, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::engine(
    Declared::new("spell_forms", Slot::Write, "forms that are standard ops between views are written before views are")
        .needs(&[Fact::Layouts]),
    spell_forms,
);

/// Writes raised ops whose forms are standard ops between views, and counts every piece that has another form now.
fn spell_forms(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    each_scope(graph, &mut |graph, scope| {
        for piece in state.plan.raised(scope).cloned().collect::<Vec<_>>() {
            let Some(&n) = piece.nodes.last() else { continue };
            let Some(offer) = state.plan.offer(scope, n).cloned() else { continue };
            let forms = state.settings.target.forms();
            let Some(form) = forms.iter().find(|form| form.name() == offer.form) else { continue };
            if let Some(rule) = form.rule(&offer) {
                let count = if rule.counted == Counted::Nodes { piece.nodes.len() } else { 1 };
                state.context(scope, |cx| cx.count_in(scope, rule, count));
            }
            state.pieces.push((scope, n, form.name()));
            let result = if offer.becomes.is_some() { form.spell(graph, n, state.settings.opset)? } else { None };
            if let Some(by) = result {
                let mut patch = Patch::new();
                patch.set_layout(by, graph.value(piece.result).layout.clone());
                patch.replace(piece.result, by);
                patch.apply(graph)?;
                remove_dead(graph, [n]);
            }
        }
        Ok(())
    })
}
