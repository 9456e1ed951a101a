//! A `BatchNormalization` of constants, written for channels that lie innermost: `x * s + t`, which is how runtimes compute it. The op
//! itself has its channels on the second axis.

use super::projection::turns;
use relayout_eval::reading;
use relayout_ir::attr::Attrs;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::perm;
use relayout_ir::raised::ChannelAffine;
use relayout_target_api::{
    Become, Cost, Counted, NodeQuery, Numerics, Offer, PassError, Raise, Raised, RaisedOperand, Recognized, Rule,
    TargetForm,
};

/// The form's name.
const FORM: &str = "scale_innermost";

/// The rule.
const RULE: Rule = Rule {
    name: "scale_innermost",
    equation: "Transpose(BatchNormalization(Transpose(x), s, b, m, v)) = x * f + t, f = s / sqrt(v + e), t = b - m * f",
    condition: "float32, of three axes at least; s, b, m and v are constants; it is cheaper together with the moves around it",
    buys: "cost: moves against one more pass",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// What an element-wise op takes of so many images, channels and pixels.
type Price = Box<dyn Fn([u64; 3]) -> Cost + Send + Sync>;

/// Such normalizations.
pub(crate) struct Scalings {
    /// What the op takes that the file has, beside one that is for free.
    pub(crate) plain: Price,
    /// And the product or the sum in its place.
    pub(crate) pass: Price,
}

impl TargetForm for Scalings {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &[ChannelAffine::NAME]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.offer(q).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        extents(q).map(&self.plain)
    }

    fn pieces(&self, graph: &Graph, nodes: &[NodeId], _: &[Recognized]) -> Vec<Raised> {
        let nodes = if turns(graph) { nodes } else { &[] };
        nodes.iter().filter_map(|&n| raised(graph, n)).collect()
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &[&RULE]
    }

    fn rule(&self, _offer: &Offer) -> Option<&'static Rule> {
        Some(&RULE)
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
        write(graph, node, opset)
    }
}

impl Scalings {
    fn offer(&self, q: &NodeQuery<'_>) -> Option<Offer> {
        let node = q.graph.node(q.node);
        let rank = q.graph.value(node.operand(0)?).ty.rank()?;
        let of = extents(q)?;
        let layout = Layout::permutation(&channels_last(rank)).ok()?;
        let mut ins = vec![Some(layout.clone())];
        ins.resize(node.inputs.len(), None);
        let set = vec![ChannelAffine::innermost()];
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![Some(layout)] },
            cost: (self.pass)(of).times(2),
            becomes: Some(Become { op: ChannelAffine::op(), opset: 1, operands: None, set, remove: Vec::new() }),
            adds_zeros: false,
        })
    }
}

/// Images, channels and pixels of a raised normalization.
fn extents(q: &NodeQuery<'_>) -> Option<[u64; 3]> {
    let node = q.graph.node(q.node);
    let shape = q.sizes.shape(q.graph, node.operand(0).filter(|_| ChannelAffine::is(node))?)?;
    let [images, channels, pixels @ ..] = &shape[..] else { return None };
    Some([*images, *channels, pixels.iter().copied().fold(1, u64::saturating_mul)])
}

/// The order of the axes, outermost first, with channels behind all others.
fn channels_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The normalization that a node is, as one factor and one summand per channel.
fn raised(graph: &Graph, n: NodeId) -> Option<Raised> {
    let node = graph.node(n);
    let (x, y) = (node.operand(0)?, node.only_result()?);
    let ty = &graph.value(x).ty;
    let known = node.onnx() == Some("BatchNormalization") && matches!(node.form, Form::Axes(_));
    let shape = ty.shape().filter(|shape| known && shape.len() > 2 && ty.dtype() == Some(DType::F32))?;
    let channels = usize::try_from(shape[1].as_const()?).ok().filter(|&c| c > 0)?;
    let affine = reading(graph, node, x, Some(1), channels)?;
    let numbers = |of: &[f64]| RaisedOperand::New(Constant::floats(of.to_vec(), &[channels as i64]));
    let operands = vec![RaisedOperand::Value(x), numbers(&affine.scale), numbers(&affine.shift)];
    let raise = Raise { op: ChannelAffine::op(), attrs: Attrs::default(), operands };
    Some(Raised { nodes: vec![n], result: y, raise })
}

/// Writes a raised normalization with its channels innermost; what takes the place of its result.
fn write(graph: &mut Graph, n: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
    let node = graph.node(n);
    let Some(y) = node.only_result().filter(|_| ChannelAffine::is(node)) else { return Ok(None) };
    let (Some(x), Some(factors), Some(summands)) = (node.operand(0), node.operand(1), node.operand(2)) else {
        return Ok(None);
    };
    let shape = graph.value(x).ty.shape().unwrap_or_default().to_vec();
    let order = channels_last(shape.len());
    let own: Vec<Dim> = order.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
    let base = graph.value(y).name.clone();
    let mut make = Builder::at(graph, n).opset(opset).named(base);
    let x = make.transpose(x, "channels_last", &order)?;
    let z = make.op("Mul", [x, factors]).shaped("scaled", &own)?;
    let z = make.op("Add", [z, summands]).shaped("shifted", &own)?;
    Ok(Some(make.transpose(z, "as_read", &perm::inverse(&order))?))
}
