//! `materialize`: writes the plan into the graph. Values get their layouts; where a reader wants another one, a Relayout stands
//! between, one per value and layout. A Transpose whose view nobody reads moves the bytes itself and needs none.
//!
//! A row-major copy takes the value's name, so that whoever reads the value by name, bodies and callers included, finds what
//! it expects.

use crate::pipeline::{Context, PassError};
use relayout_ir::graph::{Graph, Node, Op};
use relayout_ir::patch::{Insert, Patch};

/// Applies the plan that `assign` left.
pub fn materialize(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let Some(plan) = cx.plan.take() else { return Ok(()) };
    let mut patch = Patch::new();
    for v in graph.values() {
        let taken = plan.taken(graph, v);
        let Some(produced) = taken.produced else { continue };
        let value = graph.value(v);
        if value.layout != produced {
            patch.set_layout(v, produced.clone());
        }
        for (layout, uses) in taken.copies {
            let mut node = Node::new(Op::Relayout, vec![Some(v)]);
            node.rank = graph.node(value.producer().0).rank;
            let row_major = layout.is_row_major();
            let outputs = if row_major { places_in_outputs(graph, v) } else { Vec::new() };
            patch.insert(Insert {
                node,
                name: format!("{}.{}", value.name, if row_major { &produced } else { &layout }),
                ty: value.ty.clone(),
                layout,
                uses,
                outputs,
                takes_name_of: row_major.then_some(v),
            });
        }
    }
    patch.apply(graph).map_err(PassError::Name)?;
    cx.plan = Some(plan);
    Ok(())
}

fn places_in_outputs(graph: &Graph, v: relayout_ir::graph::ValueId) -> Vec<usize> {
    graph.outputs().iter().enumerate().filter(|(_, o)| **o == v).map(|(k, _)| k).collect()
}
