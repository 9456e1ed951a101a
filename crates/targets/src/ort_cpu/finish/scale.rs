//! Scales and shifts per channel of a blocked image as depthwise convolutions of one tap: `y = x * w + b`.
//!
//! With constant scales the weights are packed here, zeros where no channel is. Computed scales (squeeze and excitation) are
//! weights that another op computes: blocked, `[N, C, 1, 1]` is a plain vector, which a Reshape makes the filters. Computed shifts
//! are biases in the same way, of the convolution before them if only they read it. Images of a batch have numbers of their own, so
//! they become channels of one image.

use super::make::Maker;
use crate::ort_cpu::nodes::{convolution, insert_reshape, reshape};
use relayout_eval::{Affine, floats, reading};
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::patch::{Patch, constant_node, remove_dead};
use relayout_ir::storage::{axes_in_runs, image_in_runs};
use relayout_ir::types::Type;
use relayout_target::PassError;

/// The operand of a convolution that is its bias.
const BIAS: usize = 2;

/// Whether the scale is constant and known, or computed.
pub(crate) fn is_sayable(graph: &Graph, n: NodeId, layouts: &KernelLayouts) -> bool {
    let computed = layouts.ins.iter().flatten().count() == 2;
    computed || constant_scale(graph, n, layouts).is_some()
}

/// Makes such a node a convolution.
pub(super) fn say(graph: &mut Graph, n: NodeId, layouts: &KernelLayouts) -> Result<(), PassError> {
    match constant_scale(graph, n, layouts) {
        Some((x, affine)) => say_constant(graph, n, x, &affine, layouts),
        None => say_computed(graph, n, layouts),
    }
}

/// Slots with a layout: the image, and computed scales.
fn blocked_slots(layouts: &KernelLayouts) -> Vec<usize> {
    layouts.ins.iter().enumerate().filter(|(_, l)| l.is_some()).map(|(slot, _)| slot).collect()
}

/// The image of a node with constant scales, and these.
pub(super) fn constant_scale(graph: &Graph, n: NodeId, layouts: &KernelLayouts) -> Option<(ValueId, Affine)> {
    let [slot] = blocked_slots(layouts)[..] else { return None };
    let node = graph.node(n);
    let x = node.inputs.get(slot).copied().flatten()?;
    let axis = axes_in_runs(layouts.ins.get(slot)?.as_ref()?)?.0.c;
    let channels = usize::try_from(graph.value(x).ty.shape()?.get(axis)?.as_const()?).ok()?;
    Some((x, reading(graph, node, x, Some(axis), channels)?))
}

/// A vector of a number per channel, zeros up to whole blocks, in these extents.
fn padded(numbers: &[f64], slots: usize, dims: Vec<i64>) -> Constant {
    let numbers = numbers.iter().copied().chain(std::iter::repeat(0.0)).take(slots);
    let bytes: Vec<u8> = numbers.flat_map(|x| (x as f32).to_le_bytes()).collect();
    Constant::inline(DType::F32, dims, bytes.into())
}

fn say_constant(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    affine: &Affine,
    layouts: &KernelLayouts,
) -> Result<(), PassError> {
    let (Some(slots), Some(layout)) = (slots(graph, x, layouts), layouts.outs.first().and_then(Option::as_ref)) else {
        return Ok(());
    };
    let runs = image_in_runs(layout).and_then(|(axes, _)| layout.slot_map(axes[1]));
    let affine = &widened(affine, slots, runs);
    // A scale after a scale is one: the shift of a BatchNormalization that came apart, say.
    let before = scaled_before(graph, x, slots);
    let (x, affine) = match &before {
        Some((inner, first)) => (*inner, &first.then(affine)),
        None => (x, affine),
    };
    let rank = graph.node(n).rank;
    let base = name_of(graph, n);
    let mut constant = |what: &str, c: Constant| -> Result<ValueId, PassError> {
        let ty = Type::tensor(DType::F32, c.dims.iter().map(|&d| Dim::from(d)).collect());
        let name = graph.fresh_name(&format!("{base}.{what}"));
        graph.add_single(constant_node(c, rank), name, ty).map_err(PassError::from)
    };
    let wide = slots as i64;
    let mut inputs = vec![Some(x), Some(constant("scale", padded(&affine.scale, slots, vec![wide, 1, 1, 1]))?)];
    if !affine.keeps_origin() {
        inputs.push(Some(constant("shift", padded(&affine.shift, slots, vec![wide]))?));
    }
    become_convolution(graph, n, inputs, wide, &layouts.outs);
    Ok(())
}

fn say_computed(graph: &mut Graph, n: NodeId, layouts: &KernelLayouts) -> Result<(), PassError> {
    let node = graph.node(n);
    let Some(y) = node.outputs.first().copied().flatten() else { return Ok(()) };
    let [a, b] = blocked_slots(layouts)[..] else { return Ok(()) };
    let operand = |slot: usize| node.inputs.get(slot).copied().flatten();
    let (Some(a), Some(b)) = (operand(a), operand(b)) else { return Ok(()) };
    let shape = |v: ValueId| graph.value(v).ty.shape();
    let (x, scale) = if shape(a) == shape(y) { (a, b) } else { (b, a) };
    let (Some(slots), Some(images)) = (slots(graph, x, layouts), shape(x).and_then(|s| s.first()?.as_const())) else {
        return Ok(());
    };
    let (wide, channels) = (images * slots as i64, slots as i64);
    let Some(([_, _, h, w], _)) = layouts.outs.first().cloned().flatten().and_then(|l| image_in_runs(&l)) else {
        return Ok(());
    };
    let (h, w) = match shape(x) {
        Some(shape) if shape.len() == 4 => (shape[h].clone(), shape[w].clone()),
        _ => return Ok(()),
    };
    let shifts = graph.node(n).onnx() == Some("Add");
    if shifts && images == 1 && take_shift(graph, n, x, scale, wide)? {
        return Ok(());
    }
    let numbers = |dims: &[i64]| dims.iter().map(|&d| Dim::from(d)).collect::<Vec<_>>();
    let filters = [wide, 1, 1, 1];
    let operands = if shifts {
        let ones = padded(&vec![1.0; slots * images as usize], slots * images as usize, filters.to_vec());
        let ones = Maker { rank: graph.node(n).rank, graph }.constant("unit", ones)?;
        [Some(ones), Some(reshape(graph, n, scale, &[wide], numbers(&[wide]))?)]
    } else {
        [Some(reshape(graph, n, scale, &filters, numbers(&filters))?), None]
    };
    let flat = [Dim::from(1), Dim::from(wide), h, w];
    let x = if images == 1 { x } else { reshape(graph, n, x, &[1, wide, 0, 0], flat.to_vec())? };
    let inputs = std::iter::once(x).chain(operands.into_iter().flatten()).map(Some).collect();
    convolve_images(graph, n, inputs, [images, channels], &flat, &layouts.outs)
}

/// Adds a computed shift per channel to the bias of the blocked convolution that makes `x`, if only this node reads that; says whether
/// it did.
fn take_shift(graph: &mut Graph, n: NodeId, x: ValueId, shift: ValueId, channels: i64) -> Result<bool, PassError> {
    let (conv, _) = graph.value(x).producer();
    let node = graph.node(conv);
    let bias = node.inputs.get(BIAS).copied().flatten();
    let plain = bias.is_none_or(|b| graph.value(b).layout.is_row_major());
    let whole = graph.value(x).ty.shape().and_then(|s| s.get(1)?.as_const()) == Some(channels);
    let alone = graph.only_use(x).is_some();
    let open = matches!(&node.op, Op::Onnx(op) if *op == convolution()) && node.inputs.len() <= BIAS + 1;
    let Some(y) = graph.node(n).outputs.first().copied().flatten() else { return Ok(false) };
    let same = graph.value(x).layout == graph.value(y).layout;
    if !(plain && whole && alone && open && same) || graph.node(conv).attrs.contains_key("activation") {
        return Ok(false);
    }
    let mut sum = reshape(graph, n, shift, &[channels], vec![Dim::from(channels)])?;
    if let Some(bias) = bias {
        let ty = Type::tensor(DType::F32, vec![Dim::from(channels)]);
        let name = format!("{}.bias", graph.value(y).name);
        sum = Maker { rank: graph.node(n).rank, graph }.node("", "Add", vec![sum, bias], &name, ty, 0)?;
    }
    let mut patch = Patch::new();
    patch.connect(conv, BIAS, sum);
    patch.replace(y, x);
    patch.apply(graph)?;
    remove_dead(graph, [n]);
    Ok(true)
}

/// Makes a node a depthwise convolution of one tap of images that are channels of one image of shape `flat`, and lets those who read
/// its result have the images again.
pub(super) fn convolve_images(
    graph: &mut Graph,
    n: NodeId,
    inputs: Vec<Option<ValueId>>,
    [images, channels]: [i64; 2],
    flat: &[Dim; 4],
    outs: &[Option<Layout>],
) -> Result<(), PassError> {
    let wide = images * channels;
    let Some(y) = graph.node(n).outputs.first().copied().flatten().filter(|_| images > 1) else {
        become_convolution(graph, n, inputs, wide, outs);
        return Ok(());
    };
    become_convolution(graph, n, inputs, wide, &[]);
    // The result keeps its name and readers.
    let ty = graph.value(y).ty.clone();
    *graph.value_mut(y).ty = Type::tensor(DType::F32, flat.to_vec());
    let layout = std::mem::replace(graph.value_mut(y).layout, Layout::row_major(4));
    let uses = graph.uses(y).into_vec();
    let outputs = graph.output_places(y).to_vec();
    let target = [images, channels, 0, 0];
    insert_reshape(graph, n, y, &target, (ty, layout), (uses, outputs), Some(y)).map(drop)
}

/// The operand of a scale that this value alone is the result of, read by one node, and that scale.
fn scaled_before(graph: &Graph, v: ValueId, slots: usize) -> Option<(ValueId, Affine)> {
    let node = graph.node(graph.value(v).producer().0);
    let alone = graph.only_use(v).is_some();
    let scale = matches!(&node.op, Op::Onnx(op) if *op == convolution()) && node.int("group") == Some(slots as i64);
    if !alone || !scale || node.attrs.contains_key("activation") || node.inputs.len() > 3 {
        return None;
    }
    let operand = |slot: usize| node.inputs.get(slot).copied().flatten();
    let weights = graph.constant(operand(1)?)?;
    if weights.dims != [slots as i64, 1, 1, 1] || weights.pending.is_some() {
        return None;
    }
    let shift = match operand(2) {
        Some(bias) => floats(graph.constant(bias).filter(|c| c.pending.is_none())?)?,
        None => vec![0.0; slots],
    };
    let scale = floats(weights)?;
    (shift.len() == slots).then(|| Some((operand(0)?, Affine { scale, shift })))?
}

/// With channels that only fill blocks: the last one, or where runs have pad slots.
fn widened(affine: &Affine, slots: usize, runs: Option<&[Segment]>) -> Affine {
    let wide = |numbers: &[f64]| {
        let mut wide = vec![0.0; slots];
        let mut left = numbers.iter();
        let whole = [Segment { len: numbers.len() as u64, slots: slots as u64 }];
        let mut at = 0;
        for run in runs.unwrap_or(&whole) {
            for (to, from) in wide.iter_mut().skip(at).zip(left.by_ref().take(run.len as usize)) {
                *to = *from;
            }
            at += run.slots as usize;
        }
        wide
    };
    Affine { scale: wide(&affine.scale), shift: wide(&affine.shift) }
}

/// Slots of the channels of a blocked image.
fn slots(graph: &Graph, x: ValueId, layouts: &KernelLayouts) -> Option<usize> {
    let blocked = layouts.outs.first()?.as_ref()?;
    usize::try_from(graph.storage_shape(x, blocked)?.get(1)?.as_const()?).ok()
}

fn name_of(graph: &Graph, n: NodeId) -> String {
    let result = graph.node(n).outputs.first().copied().flatten();
    result.map_or_else(|| "scaled".to_owned(), |y| graph.value(y).name.clone())
}

/// Makes a node a depthwise convolution of one tap.
pub(super) fn become_convolution(
    graph: &mut Graph,
    n: NodeId,
    inputs: Vec<Option<ValueId>>,
    channels: i64,
    outs: &[Option<Layout>],
) {
    let blocked = inputs.first().copied().flatten().map(|x| graph.value(x).layout.clone());
    let ins = vec![blocked.filter(|l| !l.is_row_major())];
    graph.set_inputs(n, inputs);
    graph.set_op(n, convolution(), 1);
    let attrs: Attrs = [("group".to_owned(), Attr::Int(channels)), ("kernel_shape".to_owned(), Attr::Ints(vec![1, 1]))]
        .into_iter()
        .collect();
    *graph.attrs_mut(n) = attrs;
    graph.set_form(n, Form::Kernel(Box::new(KernelLayouts { ins, outs: outs.to_vec() })));
}
