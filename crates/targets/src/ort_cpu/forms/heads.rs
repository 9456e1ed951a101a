//! Projections into heads: one product, whose weights are packed on load, or a product per head (`projection.rs` of this crate).

use crate::ort_cpu::costs::{Projection as Kernel, ProjectionShape, Spread};
use crate::ort_cpu::machine::Machine;
use crate::shared::forms::projection::{self, Projected};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::raised::ProjectionForm;
use relayout_target_api::{Cost, NodeQuery, Offer, PassError, Raised, Recognized, Rule, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "projection";

/// Projections into heads.
pub(super) struct Projections(pub(super) Arc<Machine>);

impl TargetForm for Projections {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Projection"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.projection_kernels(q)
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_projection(q)
    }

    fn pieces(&self, graph: &Graph, nodes: &[NodeId], _: &[Recognized]) -> Vec<Raised> {
        projection::pieces(graph, nodes, false)
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &[&projection::APART]
    }

    fn rule(&self, offer: &Offer) -> Option<&'static Rule> {
        projection::rule(offer)
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
        projection::write(graph, node, opset)
    }
}

/// What products per head are priced at, in percent of what was measured: half of all prices are within a few percent of what their
/// ops take, and they should win by more than that.
const DOUBTED_PERCENT: u64 = 103;

impl Machine {
    /// What such a projection costs with one matrix.
    pub(super) fn plain_projection(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let projected = measured(query)?;
        let shape = shape(&projected);
        let cost = |form| self.costs.projection_ns(&shape, form);
        Some(Cost::new(match (projected.bias, is_one_op(query)) {
            (false, _) => cost(Kernel::Together),
            (true, true) => cost(Kernel::TogetherBias),
            (true, false) => {
                let channels = shape.heads.saturating_mul(shape.width);
                let elements = shape.rows.saturating_mul(channels);
                cost(Kernel::Together).saturating_add(self.costs.elementwise_ns(
                    "Add",
                    elements,
                    Spread::Last { channels },
                ))
            }
        }))
    }

    /// The kernel for it with a matrix per head.
    pub(super) fn projection_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(projected) = measured(query) else { return Vec::new() };
        let form = if projected.bias { Kernel::ApartBias } else { Kernel::Apart };
        let ns = self.costs.projection_ns(&shape(&projected), form).saturating_mul(DOUBTED_PERCENT) / 100;
        // One Reshape more than the file has: rows of several axes are one in front of the product.
        let cost = Cost::new(ns) + self.small_node();
        let operands = query.graph.node(query.node).inputs.len();
        projected.kernel(ProjectionForm::Apart, operands, cost).into_iter().collect()
    }
}

/// Whether ONNX Runtime makes one Gemm of product and sum on load: of a matrix, or where all extents are known.
fn is_one_op(query: &NodeQuery<'_>) -> bool {
    let x = query.graph.node(query.node).operand(0);
    let ty = x.map(|x| &query.graph.value(x).ty);
    ty.is_some_and(|ty| ty.rank() == Some(2) || ty.const_shape().is_some())
}

/// A raised projection of what was measured.
fn measured(query: &NodeQuery<'_>) -> Option<Projected> {
    Projected::of(query).filter(|projected| projected.dtype == DType::F32)
}

fn shape(projected: &Projected) -> ProjectionShape {
    let Projected { rows, inputs, heads, width, .. } = *projected;
    ProjectionShape { rows, inputs, heads, width }
}
