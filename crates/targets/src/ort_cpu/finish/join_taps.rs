//! Convolutions of one tap that the convolution before them takes in, where only they read that: of two constant scales one is left,
//! such as those of a BatchNormalization that came apart; a computed shift goes into the bias.

use crate::ort_cpu::nodes::is_convolution;
use relayout_eval::{Affine, floats};
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, OpName, ValueId};
use relayout_ir::patch::{Patch, remove_alone};
use relayout_ir::types::Type;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// The operand of a convolution that is its bias.
const BIAS: usize = 2;

/// The pass.
pub(super) fn pass() -> Pass {
    let is =
        Declared::new("join_taps", Slot::Write, "convolutions are blocked; before they take in sums and activations")
            .needs(&[Fact::Written]);
    Pass::on_each_graph(is, |graph, _| join_taps(graph))
}

/// Joins every such pair.
fn join_taps(graph: &mut Graph) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        if let Some(tap) = Tap::recognize(graph, n) {
            match &tap.shift {
                Shift::Known(_) => join_scales(graph, n, &tap)?,
                Shift::Computed(shift) if tap.scale.iter().all(|s| s.to_bits() == 1f64.to_bits()) => {
                    take_shift(graph, n, tap.x, *shift)?;
                }
                Shift::Computed(_) => {}
            }
        }
    }
    Ok(())
}

/// A convolution of one tap of each channel, with constant scales.
struct Tap {
    x: ValueId,
    scale: Vec<f64>,
    shift: Shift,
}

enum Shift {
    Known(Vec<f64>),
    Computed(ValueId),
}

impl Tap {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Tap> {
        let node = open(graph, n)?;
        let x = node.operand(0)?;
        let weights = graph.constant(node.operand(1)?).filter(|w| w.pending.is_none())?;
        let channels = node.int("group")?;
        let scale = (weights.dims == [channels, 1, 1, 1]).then(|| floats(weights))??;
        let shift = match node.operand(BIAS) {
            None => Shift::Known(vec![0.0; scale.len()]),
            Some(v) => match graph.constant(v).filter(|c| c.pending.is_none()) {
                Some(bias) => Shift::Known(floats(bias).filter(|shift| shift.len() == scale.len())?),
                None => Shift::Computed(v),
            },
        };
        Some(Tap { x, scale, shift })
    }
}

/// A blocked convolution that has taken in nothing yet.
fn open(graph: &Graph, n: NodeId) -> Option<&Node> {
    let node = graph.node(n);
    (is_convolution(node) && !node.attrs.contains_key("activation") && node.inputs.len() <= BIAS + 1).then_some(node)
}

/// Makes a constant scale and the one before it one. Nobody reads the latter then.
fn join_scales(graph: &mut Graph, n: NodeId, tap: &Tap) -> Result<(), PassError> {
    let before = Tap::recognize(graph, graph.value(tap.x).producer().0).filter(|_| graph.only_use(tap.x).is_some());
    let (Some(Tap { x, scale, shift: Shift::Known(shift), .. }), Shift::Known(own)) = (before, &tap.shift) else {
        return Ok(());
    };
    // What the first one read may lie otherwise than what it left.
    if scale.len() != own.len() || graph.value(x).layout != graph.value(tap.x).layout {
        return Ok(());
    }
    let affine = Affine { scale, shift }.then(&Affine { scale: tap.scale.clone(), shift: own.clone() });
    let wide = affine.scale.len() as i64;
    let mut operands = vec![Some(x), Some(number(graph, n, 1, "scale", (&affine.scale, &[wide, 1, 1, 1]))?)];
    if !affine.keeps_origin() {
        operands.push(Some(number(graph, n, BIAS, "shift", (&affine.shift, &[wide]))?));
    }
    graph.set_inputs(n, operands);
    Ok(())
}

/// Numbers as an operand of a node: as the constant that it has there, if it alone reads that.
fn number(
    graph: &mut Graph,
    n: NodeId,
    slot: usize,
    what: &str,
    (numbers, dims): (&[f64], &[i64]),
) -> Result<ValueId, PassError> {
    let node = graph.node(n);
    if let Some(v) = node.operand(slot).filter(|&v| graph.only_use(v).is_some()) {
        let (constant, _) = graph.value(v).producer();
        graph.set_constant(constant, Constant::floats(numbers.iter().copied(), dims));
        return Ok(v);
    }
    let base = node.result(0).map_or_else(String::new, |y| graph.value(y).name.clone());
    Ok(Builder::at(graph, n).named(base).floats(what, numbers, dims)?)
}

/// Adds a computed shift to the bias of the convolution that makes `x`.
fn take_shift(graph: &mut Graph, n: NodeId, x: ValueId, shift: ValueId) -> Result<(), PassError> {
    let (conv, _) = graph.value(x).producer();
    let (Some(node), Some(y)) = (open(graph, conv), graph.node(n).result(0)) else { return Ok(()) };
    let channels = graph.value(shift).ty.shape().and_then(|shape| shape.first()?.as_const());
    let whole = graph.value(x).ty.shape().and_then(|shape| shape.get(1)?.as_const()) == channels;
    let bias = node.operand(BIAS);
    let plain = bias.is_none_or(|b| graph.value(b).layout.is_row_major());
    let same = graph.value(x).layout == graph.value(y).layout;
    if !(plain && whole && same && graph.only_use(x).is_some()) {
        return Ok(());
    }
    let mut sum = shift;
    if let Some(bias) = bias {
        let ty = Type::tensor(DType::F32, graph.value(shift).ty.shape().unwrap_or_default().to_vec());
        let base = graph.value(y).name.clone();
        let add = OpName::onnx("Add");
        sum = Builder::at(graph, n).named(base).op_of(add, 0, [shift, bias]).kernel().result("bias", ty)?;
    }
    let mut patch = Patch::new();
    patch.connect(conv, BIAS, sum);
    patch.replace(y, x);
    patch.apply(graph)?;
    remove_alone(graph, n);
    Ok(())
}
