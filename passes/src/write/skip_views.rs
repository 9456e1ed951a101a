//! `skip_views`: a view whose result is stored as a value before it is, by way of other views, is another name of that value.
//!
//! Exporters merge heads with the batch, turn them and take them apart again. Where the decision took the turn away, what is left says
//! other shapes of the same bytes and then the first one.
//!
//! What the model wrote itself stays: one of the views between lies otherwise than in the file, or was not there.

use crate::state::Step;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, OpName, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::patch::remove_dead;
use relayout_target_api::moves::moved;
use relayout_target_api::{Declared, Fact, Slot};

/// How many views are looked through.
const MOST_VIEWS: usize = 16;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("skip_views", Slot::Finish, "looks at views where no move is left between them")
        .needs(&[Fact::Written]),
    &|graph, _| {
        skip_views(graph);
        Ok(())
    },
);

/// Makes such views names of the value that they lead back to.
fn skip_views(graph: &mut Graph) {
    for n in graph.order().unwrap_or_default() {
        if !graph.contains(n) {
            continue;
        }
        let Some((x, perm)) = source(graph, n).and_then(|x| Some((x, turn(graph, x, graph.node(n).only_result()?)?)))
        else {
            continue;
        };
        let Some(y) = graph.node(n).only_result() else { continue };
        let read: Vec<NodeId> = graph.node(n).inputs.iter().flatten().map(|&v| graph.value(v).producer().0).collect();
        let to = graph.value(y).layout.clone();
        let mut builder = Builder::at(graph, n);
        let draft = builder.op_of(OpName::onnx("Transpose"), 0, [x]).attr("perm", Attr::axes(&perm));
        draft.form(Form::View(View::Transpose(perm))).layout(to).in_place_of(n);
        remove_dead(graph, read);
    }
}

/// Whether a node says the same bytes in other dims.
fn is_view(graph: &Graph, n: NodeId) -> bool {
    matches!(graph.node(n).form, Form::View(_)) && moved(graph, n).is_none()
}

/// The first value before a view, with other views between, that is stored in the shape of its result.
fn source(graph: &Graph, n: NodeId) -> Option<ValueId> {
    let y = graph.node(n).only_result().filter(|_| is_view(graph, n))?;
    let stored = |v: ValueId| graph.storage_shape(v, &graph.value(v).layout);
    let (shape, dtype) = (stored(y)?, graph.value(y).ty.dtype());
    let mut x = graph.node(n).operand(0)?;
    let reshapes = |n: NodeId| matches!(graph.node(n).form, Form::View(View::Reshape));
    let (mut found, mut decided, mut shaped) = (None, false, reshapes(n));
    for _ in 0..MOST_VIEWS {
        let before = graph.value(x).producer().0;
        if !is_view(graph, before) {
            break;
        }
        shaped |= reshapes(before);
        decided |= graph.node(before).origin.is_none() || !graph.value(x).layout.is_row_major();
        x = graph.node(before).operand(0)?;
        let same = stored(x).as_ref() == Some(&shape) && graph.value(x).ty.dtype() == dtype;
        if same && decided && shaped && !is_constant(graph, x) {
            found = Some(x);
        }
    }
    found
}

/// The Transpose that is no move between two values that are stored alike: which axis of `x` is each of `y`.
fn turn(graph: &Graph, x: ValueId, y: ValueId) -> Option<Vec<usize>> {
    let (from, to) = (graph.value(x).layout.as_permutation()?, graph.value(y).layout.as_permutation()?);
    let mut perm = vec![0; to.len()];
    for (&own, &other) in to.iter().zip(&from) {
        perm[own] = other;
    }
    (from.len() == to.len()).then_some(perm)
}
