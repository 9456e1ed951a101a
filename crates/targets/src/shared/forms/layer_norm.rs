//! A `LayerNormalization` of the last axis, or what it computes, written for channels that come before pixels.
//!
//! Means over channels are convolutions of one tap whose weights are all `1 / channels`: of all ways to write them that is the one that
//! runtimes have fast kernels for, where channels are not innermost. Scale and bias are a `BatchNormalization` without statistics.

use super::projection::turns;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Atom, Form, Role};
use relayout_ir::graph::{DuplicateName, Graph, NodeId, ValueId};
use relayout_ir::op::normalize_axis;
use relayout_ir::op::read::{EPSILON, epsilon, transpose_perm};
use relayout_ir::perm;
use relayout_ir::raised::LayerNorm;
use relayout_target_api::{Counted, Numerics, PassError, Raise, Raised, RaisedOperand, Rule};
use rustc_hash::{FxHashMap, FxHashSet};

/// A normalization of a graph.
#[derive(Clone, Debug, PartialEq)]
struct LayerNormParts {
    x: ValueId,
    scale: ValueId,
    bias: Option<ValueId>,
    channels: i64,
    epsilon: f32,
}

/// The name of the form.
pub(crate) const FORM: &str = "layer_norm_across";

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "normalize_across",
    equation: "Transpose(LayerNormalization(Transpose(x), s, b)) = s * (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) + b, means \
               being convolutions",
    condition: "float32, of the last of three or four axes, whose extent is known; pixels around it do not all come from images of \
                convolutions and go to such; \
                it is cheaper together with the moves around it",
    buys: "cost: moves against what several passes take longer than one op",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// The normalizations of a graph in which something is transposed, without those between images.
pub(crate) fn pieces(graph: &Graph, nodes: &[NodeId]) -> Vec<Raised> {
    let nodes = if turns(graph) { nodes } else { &[] };
    let mut spared = FxHashMap::default();
    let mut raised = |&n: &NodeId| {
        let node = graph.node(n);
        let result = node.only_result()?;
        let known = node.onnx() == Some("LayerNormalization") && matches!(node.form, Form::Axes(_));
        let found = known.then_some(()).and_then(|()| find(graph, n))?;
        if !spared.contains_key(&result) {
            let (region, between) = pixels_around(graph, found.x, result);
            spared.extend(region.into_iter().map(|v| (v, between)));
        }
        if spared.get(&result) == Some(&true) {
            return None;
        }
        let operands = node.inputs.iter().flatten().map(|&v| RaisedOperand::Value(v)).collect();
        let raise = Raise { op: LayerNorm::op(), attrs: node.attrs.clone(), operands };
        Some(Raised { nodes: vec![n], result, raise })
    };
    nodes.iter().filter_map(&mut raised).collect()
}

/// The rank of images that ONNX Runtime holds in blocks.
const BLOCKED_RANK: usize = 4;

/// The pixels around a normalization: values that ops connect which treat every pixel alike, up to moves. And whether these moves are
/// all from and to images of convolutions. ONNX Runtime, which holds those in blocks, then has no moves there: it takes pixels out of
/// the blocks in place of images, and puts pixels back. So the form for images would be the several passes that it is and spare nothing:
/// three networks of timm (`convformer_s18`, `focalnet_tiny_srf`, `rdnet_tiny`) ran at 0.98, 0.99 and 0.97 with it.
fn pixels_around(graph: &Graph, x: ValueId, y: ValueId) -> (FxHashSet<ValueId>, bool) {
    let rank = graph.value(x).ty.rank().unwrap_or_default();
    let to_images = LayerNorm::channels_first(rank);
    let from_images = perm::inverse(&to_images);
    let (mut images, mut moved) = (Vec::new(), rank == BLOCKED_RANK);
    let region = connected(graph, vec![x, y], &mut |v, n, produces| {
        let (node, order) = (graph.node(n), if produces { &from_images } else { &to_images });
        moved &= !graph.is_output(v)
            && node.onnx() == Some("Transpose")
            && transpose_perm(node, rank).is_ok_and(|perm| perm == *order);
        images.extend(if produces { node.operand(0) } else { node.result(0) });
    });
    let mut convolved = false;
    if moved {
        connected(graph, images, &mut |_, n, _| convolved |= graph.node(n).onnx() == Some("Conv"));
    }
    (region, convolved)
}

/// Values of the rank of these that ops connect with them which treat every pixel alike. What other nodes produce or read one of them is
/// told.
fn connected(graph: &Graph, from: Vec<ValueId>, ends: &mut dyn FnMut(ValueId, NodeId, bool)) -> FxHashSet<ValueId> {
    let rank = from.first().and_then(|&v| graph.value(v).ty.rank()).unwrap_or_default();
    let mut region: FxHashSet<ValueId> = from.iter().copied().collect();
    let mut open = from;
    while let Some(v) = open.pop() {
        let readers = graph.uses(v).into_iter().map(|u| (u.node, false));
        for (n, produces) in readers.chain([(graph.value(v).producer().0, true)]) {
            if treats_pixels_alike(graph, n, rank) {
                let values = graph.node(n).inputs.iter().chain(&graph.node(n).outputs).flatten().copied();
                let pixels = values.filter(|&v| graph.value(v).ty.rank() == Some(rank) && graph.constant(v).is_none());
                open.extend(pixels.filter(|&v| region.insert(v)));
            } else {
                ends(v, n, produces);
            }
        }
    }
    region
}

/// Whether axes go through an op, which may join some or read all of one.
fn treats_pixels_alike(graph: &Graph, n: NodeId, rank: usize) -> bool {
    let Form::Axes(bound) = &graph.node(n).form else { return false };
    let goes_through = |atom: &Atom| matches!(atom.role, Role::Carried | Role::Joined | Role::Whole);
    let ranked = |v: &ValueId| graph.value(*v).ty.rank() == Some(rank);
    bound.atoms.iter().all(goes_through) && graph.node(n).outputs.iter().flatten().all(ranked)
}

/// The normalization that a node is, raised or not.
fn find(graph: &Graph, last: NodeId) -> Option<LayerNormParts> {
    let node = graph.node(last);
    let (x, scale) = (node.operand(0)?, node.operand(1)?);
    let ty = &graph.value(x).ty;
    let shape = ty.shape().filter(|shape| LayerNorm::has_pixels(shape.len()) && ty.dtype() == Some(DType::F32))?;
    let axis = normalize_axis(node.int("axis").unwrap_or(-1), shape.len())?;
    let channels = shape.last()?.as_const().filter(|&c| c > 0 && axis + 1 == shape.len())?;
    let bias = node.operand(2);
    let vector = |v: ValueId| graph.value(v).ty.const_shape().is_some_and(|dims| dims == [channels]);
    (vector(scale) && bias.is_none_or(vector)).then(|| LayerNormParts {
        x,
        scale,
        bias,
        channels,
        epsilon: epsilon(node).unwrap_or(EPSILON),
    })
}

/// Writes a raised normalization for channels before pixels; what takes the place of its result.
pub(crate) fn write(graph: &mut Graph, last: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
    let Some((y, found)) = graph.node(last).only_result().zip(find(graph, last)) else { return Ok(None) };
    let channels = found.channels;
    let shape = graph.value(found.x).ty.shape().unwrap_or_default().to_vec();
    let order = LayerNorm::channels_first(shape.len());
    let base = graph.value(y).name.clone();
    let mut make = Builder::at(graph, last).opset(opset).named(base);
    let x = make.transpose(found.x, "channels", &order)?;
    let own: Vec<Dim> = order.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
    let z = normalized(&mut make, &found, x, &own)?;
    let number = |what: &str, number: f64, make: &mut Builder<'_>| make.filled(what, DType::F32, &[channels], number);
    let bias = match found.bias {
        Some(bias) => bias,
        None => number("bias", 0.0, &mut make)?,
    };
    let operands =
        [z, found.scale, bias, number("mean_of_none", 0.0, &mut make)?, number("variance_of_none", 1.0, &mut make)?];
    let z = make.op("BatchNormalization", operands).attr("epsilon", Attr::Float(0.0)).shaped("scaled", &own)?;
    Ok(Some(make.transpose(z, "pixels", &perm::inverse(&order))?))
}

/// `(x - mean) / sqrt(variance + epsilon)` of channels, the second axis.
fn normalized(
    make: &mut Builder<'_>,
    found: &LayerNormParts,
    x: ValueId,
    own: &[Dim],
) -> Result<ValueId, DuplicateName> {
    let mut one = own.to_vec();
    one[1] = Dim::ONE;
    let taps: Vec<i64> = [1, found.channels].into_iter().chain(own.iter().skip(2).map(|_| 1)).collect();
    let weights = make.filled("mean_weights", DType::F32, &taps, 1.0 / found.channels as f64)?;
    let epsilon = make.filled("epsilon", DType::F32, &[], found.epsilon.into())?;
    let mean = make.op("Conv", [x, weights]).shaped("mean", &one)?;
    let centred = make.op("Sub", [x, mean]).shaped("centred", own)?;
    let squares = make.op("Mul", [centred, centred]).shaped("squares", own)?;
    let variance = make.op("Conv", [squares, weights]).shaped("variance", &one)?;
    let variance = make.op("Add", [variance, epsilon]).shaped("variance_and_epsilon", &one)?;
    let deviation = make.op("Sqrt", [variance]).shaped("deviation", &one)?;
    let scale = make.op("Reciprocal", [deviation]).shaped("per_deviation", &one)?;
    make.op("Mul", [centred, scale]).shaped("normalized", own)
}
