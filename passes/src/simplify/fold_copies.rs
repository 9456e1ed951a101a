//! `fold_copies`: a Slice that takes everything, a Pad that adds nothing and a Cast that keeps the type go; who reads the copy reads what
//! was copied. So do those who pick known places of what a Slice took: a recurrent network that is written out reads its steps from the
//! last on so.
//!
//! Absent: graph outputs, which stay results of nodes of their name, and Identity, which no runtime copies for.

use crate::simplify::fold_constants::pass_cost;
use crate::state::Step;
use relayout_ir::build::{Builder, bind_again};
use relayout_ir::constant::Constant;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Use, ValueId};
use relayout_ir::op::normalize_axis;
use relayout_ir::op::read::{self, elements_taken};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Context, Cost, Counted, Declared, Numerics, PassError, Rule, Slot};

/// Most places that a Gather picks.
const MOST_PICKED: usize = 1 << 10;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "read_what_is_copied",
    equation: "Slice(x, all) = x, Pad(x, 0) = x, Cast(x, type of x) = x",
    condition: "what is taken and added is known, and operand and result have the same shape, whatever the symbols are, and the \
                same type; no graph output, and no body reads it",
    buys: "the node, and one pass over the tensor",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The rule for places that are picked.
pub(crate) const PICKED: Rule = Rule {
    name: "pick_from_what_is_cut",
    equation: "Gather(Slice(x, start, step), i) = Gather(x, start + step * i)",
    condition: "the Slice cuts one axis of known extent at known places, and all that read it are Gathers of known places of that axis, or \
                ask for its shape, which is its operand's; no graph output, and no body reads it",
    buys: "the Slice, and one pass over the tensor",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("fold_copies", Slot::Prepare, "what comes after it need not look through copies")
        .rules(&[&RULE, &PICKED]),
    &fold_copies,
);

/// Folds every such copy.
pub fn fold_copies(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut gone = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let Some((x, y)) = copied(graph, n).filter(|_| pass_cost(graph, cx, n) > Cost::ZERO) else { continue };
        let mut patch = Patch::new();
        patch.redirect(y, x);
        patch.apply(graph)?;
        gone.push(n);
    }
    if !gone.is_empty() {
        cx.count(&RULE, gone.len());
        remove_dead(graph, gone);
    }
    for n in graph.order().unwrap_or_default() {
        let Some(picks) = Picks::recognize(graph, n) else { continue };
        picks.apply(graph, n)?;
        cx.count(&PICKED, 1);
    }
    Ok(())
}

/// The operand and the result of a copy that only nodes of this graph read.
fn copied(graph: &Graph, n: NodeId) -> Option<(ValueId, ValueId)> {
    let node = graph.node(n);
    let is_copy = matches!(node.form, Form::View(View::Same)) && matches!(node.onnx(), Some("Slice" | "Pad" | "Cast"));
    let (x, y) = (node.operand(0)?, node.result(0)?);
    (is_copy && !graph.is_read_by_name(y) && !graph.uses(y).is_empty()).then_some((x, y))
}

/// Gathers that pick known places of what a Slice takes of one axis, and those that ask for its shape.
struct Picks {
    x: ValueId,
    /// Who reads it, and the places of the Slice's operand that a Gather picks.
    readers: Vec<(NodeId, Option<Constant>)>,
}

impl Picks {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Picks> {
        let node = graph.node(n);
        let [cut] = read::cuts(graph, node)?[..] else { return None };
        let (x, y) = (node.operand(0)?, node.result(0)?);
        let shape = graph.value(x).ty.shape()?;
        let extent = shape.get(cut.axis)?.as_const()?;
        let (start, count) = elements_taken(extent, cut.start, cut.end, cut.step);
        let place = |i: i64| {
            let i = if i < 0 { i + count } else { i };
            (0..count).contains(&i).then_some(start + cut.step * i)
        };
        let reader = |u: &Use| {
            let reader = graph.node(u.node);
            let axis = normalize_axis(reader.int("axis").unwrap_or(0), shape.len());
            let places = match reader.onnx() {
                Some("Shape") if count == extent => None,
                Some("Gather") if u.slot == 0 && axis == Some(cut.axis) => {
                    let told = graph.constant(reader.operand(1)?)?;
                    let places: Option<Vec<i64>> = told.to_ints(MOST_PICKED)?.into_iter().map(place).collect();
                    Some(Constant { dims: told.dims.clone(), ..Constant::ints(&places?) })
                }
                _ => return None,
            };
            Some((u.node, places))
        };
        let readers: Vec<_> = graph.uses(y).iter().map(reader).collect::<Option<_>>()?;
        let picks = readers.iter().any(|(_, places)| places.is_some());
        (picks && !graph.is_read_by_name(y)).then_some(Picks { x, readers })
    }

    fn apply(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let mut patch = Patch::new();
        let readers: Vec<NodeId> = self.readers.iter().map(|(reader, _)| *reader).collect();
        for (reader, places) in self.readers {
            patch.connect(reader, 0, self.x);
            if let Some(places) = places {
                let name = graph.node(reader).result(0).map(|y| graph.value(y).name.clone()).unwrap_or_default();
                patch.connect(reader, 1, Builder::at(graph, reader).named(name).constant("places", places)?);
            }
        }
        patch.apply(graph)?;
        remove_dead(graph, [n]);
        for reader in readers {
            bind_again(graph, reader);
        }
        Ok(())
    }
}
