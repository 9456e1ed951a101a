//! The target: which of tract's ops run in which orders, and at what price.

use crate::orders::{between, is_plain, pick, plain};
use crate::price::Prices;
use crate::turn::{Orders, turned};
use relayout::Target;
use relayout::ir::dtype::DType;
use relayout::ir::form::KernelLayouts;
use relayout::ir::graph::{NodeId, OpName, ValueId};
use relayout::ir::layout::Layout;
use relayout::target::{Become, Capabilities, Cost, MoveKind, MoveQuery, NodeQuery, Offer, OpQuery};
use std::collections::BTreeMap;
use tract_core::internal::*;
use tract_core::ops::array::{Pad, TypedConcat};
use tract_core::ops::binary::TypedBinOp;
use tract_core::ops::cnn::conv::Conv;
use tract_core::ops::cnn::{MaxPool, SumPool};
use tract_core::ops::downsample::Downsample;
use tract_core::ops::einsum::EinSum;
use tract_core::ops::element_wise::ElementWiseOp;
use tract_core::ops::konst::Const;
use tract_core::ops::nn::{NearestUpsample, Reduce, Softmax};

/// What a node costs that only renames axes.
const VIEW: Cost = Cost::new(300);

/// tract on this machine, for one model.
pub struct Tract<'m> {
    /// The model.
    pub model: &'m TypedModel,
    /// Which of its nodes a node of the graph is.
    pub nodes: &'m BTreeMap<NodeId, usize>,
    /// What its kernels cost.
    pub prices: &'m Prices,
}

impl Tract<'_> {
    /// Facts of a node's operands; constants have their contents.
    fn facts(&self, node: &TypedNode) -> TractResult<Vec<TypedFact>> {
        let fact = |outlet: &OutletId| {
            let fact = self.model.outlet_fact(*outlet)?;
            let mut known = fact.datum_type.fact(fact.shape.clone());
            known.konst = self.model.node(outlet.node).op_as::<Const>().map(|c| c.val().clone());
            TractResult::Ok(known)
        };
        node.inputs.iter().map(fact).collect()
    }

    /// What a node costs in these orders; `None` if tract has it not.
    fn cost(&self, id: usize, orders: &Orders) -> Option<Cost> {
        let node = self.model.node(id);
        let mut facts = self.facts(node).ok()?;
        let turned = turned(node.op.as_ref(), &facts, orders).ok()??;
        if !is_priced(node.op.as_ref()) && !self.repeats(node) {
            return Some(Cost::ZERO);
        }
        for (slot, fact) in facts.iter_mut().enumerate() {
            if let Some(order) = &orders.inputs[slot] {
                fact.shape = pick(&fact.shape.to_tvec(), order)?.into_iter().collect::<TVec<TDim>>().into();
            }
        }
        // What can't be run alone costs the same in every order.
        Some(self.prices.price(turned.op.as_ref(), &facts).map_or(Cost::ZERO, Cost::new))
    }

    /// Whether a node repeats an operand along some axis, and tract does not take it into the product before it.
    fn repeats(&self, node: &TypedNode) -> bool {
        let shape = |outlet: &OutletId| self.model.outlet_fact(*outlet).map(|fact| fact.shape.to_tvec()).ok();
        let mut shapes = node.inputs.iter().map(shape);
        let first = shapes.next().flatten();
        node.op_is::<TypedBinOp>()
            && shapes.any(|shape| shape != first)
            && !node.inputs.iter().any(|outlet| self.is_product(*outlet))
    }

    /// Whether a tensor is a product, and what was done to it since, that only one node reads: tract computes that in one node.
    fn is_product(&self, outlet: OutletId) -> bool {
        let node = self.model.node(outlet.node);
        let rest = || node.inputs.iter().any(|outlet| self.is_product(*outlet));
        let takes = node.op_is::<TypedBinOp>() || node.op_is::<ElementWiseOp>();
        let is_matrix = |op: &Conv| op.group == 1;
        self.model.outlet_successors(outlet).len() == 1
            && (node.op_is::<EinSum>() || node.op_as().is_some_and(is_matrix) || (takes && rest()))
    }

    /// The orders of a node whose operands and results in the graph have these layouts.
    fn orders(&self, id: usize, ins: &[Layout], outs: &[Layout]) -> Option<Orders> {
        let node = self.model.node(id);
        let mut ins = ins.iter();
        let mut order = |outlet: &OutletId| match self.model.node(outlet.node).op_is::<Const>() {
            true => Some(None),
            false => Some(Some(ins.next()?.as_permutation()?)),
        };
        let inputs = node.inputs.iter().map(&mut order).collect::<Option<_>>()?;
        Some(Orders { inputs, outputs: outs.iter().map(Layout::as_permutation).collect::<Option<_>>()? })
    }

    /// A convolution with its channels at the other end.
    fn other_end(&self, id: usize) -> Option<(Orders, Layout)> {
        let node = self.model.node(id);
        let spec = &node.op_as::<Conv>()?.pool_spec;
        let rank = node.outputs.first()?.fact.rank();
        let first = usize::from(spec.data_format.has_n());
        let mut order = plain(rank);
        if spec.data_format.c_is_last() {
            order[first..].rotate_right(1);
        } else {
            order[first..].rotate_left(1);
        }
        let layout = Layout::permutation(&order).ok()?;
        let is_constant = |outlet: &OutletId| self.model.node(outlet.node).op_is::<Const>();
        let inputs = node.inputs.iter().map(|outlet| (!is_constant(outlet)).then(|| order.clone())).collect();
        let orders = Orders { inputs, outputs: vec![order] };
        (!orders.is_plain()).then_some((orders, layout))
    }
}

/// Whether an op's price depends on the order.
fn is_priced(op: &dyn TypedOp) -> bool {
    op.is::<Conv>()
        || op.is::<EinSum>()
        || op.is::<MaxPool>()
        || op.is::<SumPool>()
        || op.is::<Reduce>()
        || op.is::<Softmax>()
        || op.is::<TypedConcat>()
        || op.is::<Pad>()
        || op.is::<Downsample>()
        || op.is::<NearestUpsample>()
}

impl Target for Tract<'_> {
    fn name(&self) -> &str {
        "tract"
    }

    fn about(&self) -> &str {
        "tract's kernels on this machine"
    }

    fn layouts(&self) -> &str {
        "any order of axes; channels first or last at convolutions and pools"
    }

    fn dialect(&self) -> &str {
        "tract's typed ops"
    }

    fn cost_source(&self) -> &str {
        "measured: each kernel run alone by tract on this machine"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            standard: false,
            decides_again: false,
            bundles: false,
            checks_sizes: false,
            may_move_more: true,
            ..Capabilities::STANDARD
        }
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        match self.nodes.get(&query.node) {
            Some(id) => self.cost(*id, &self.orders(*id, query.ins, query.outs)?),
            None => Some(Cost::ZERO),
        }
    }

    fn offers(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let offer = || {
            let id = *self.nodes.get(&query.node)?;
            let (orders, layout) = self.other_end(id)?;
            let cost = self.cost(id, &orders)?;
            let layouts = KernelLayouts { ins: vec![Some(layout.clone())], outs: vec![Some(layout)] };
            let op = OpName::new("tract", "Conv");
            let becomes = Some(Become { op, opset: 1, operands: None, set: Vec::new(), remove: Vec::new() });
            Some(Offer { form: "channels_moved", layouts, cost, becomes, adds_zeros: false })
        };
        offer().into_iter().collect()
    }

    fn plain_cost(&self, query: &NodeQuery<'_>) -> Cost {
        let node = query.graph.node(query.node);
        let rows = |values: &[Option<ValueId>]| -> Option<Vec<Layout>> {
            values.iter().map(|v| Some(Layout::row_major(query.graph.value((*v)?).ty.rank()?))).collect()
        };
        let cost = || {
            let id = *self.nodes.get(&query.node)?;
            self.cost(id, &self.orders(id, &rows(&node.inputs)?, &rows(&node.outputs)?)?)
        };
        let is_lettered = node.letters.is_some();
        cost().filter(|_| is_lettered).unwrap_or(Cost::ZERO)
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        if query.kind == MoveKind::View {
            return Some(VIEW);
        }
        let (from, to) = (query.from.as_permutation()?, query.to.as_permutation()?);
        let shape: Vec<usize> = query.shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
        let (moves, shape) = (between(&from, &to)?, pick(&shape, &from)?);
        if is_plain(&to) && is_plain(&from) {
            return Some(Cost::ZERO);
        }
        let kind = match query.dtype.and_then(DType::bits) {
            Some(8) => DatumType::U8,
            Some(16) => DatumType::U16,
            Some(64) => DatumType::U64,
            _ => DatumType::F32,
        };
        Some(self.prices.of_moves(kind, &shape, &moves).map_or(self.pass_cost(query.bytes), Cost::new))
    }

    fn view_cost(&self) -> Cost {
        VIEW
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        VIEW + Cost::new(bytes / 4)
    }
}
