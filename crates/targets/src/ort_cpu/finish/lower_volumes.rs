//! Blocked convolutions of volumes, as blocked ones of images: the second half of form `volume_conv`, which gives them their weights.
//! Between the two they take in sums and activations.

use super::frames_apart::{self, Apart, Parts};
use crate::ort_cpu::nodes::{convolution, is_convolution, reshape, stored_before};
use crate::shared::nodes::{become_reshape, numbers};
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::{Frames, Volume};
use relayout_ir::patch::remove_dead;
use relayout_ir::storage::blocked_volume;
use relayout_ir::types::Type;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// The pass's name.
const NAME: &str = "lower_volumes";
/// The axis of the frames where a volume is stored frame by frame.
const FRAMES: usize = 1;

/// Whether the first operand has the rank of a volume.
fn is_volume(graph: &Graph, n: NodeId) -> bool {
    graph.node(n).operand(0).is_some_and(|x| graph.value(x).ty.rank() == Some(5))
}

fn refused(graph: &Graph, n: NodeId) -> PassError {
    let first = format!("{} can't be written as one of images", graph.node(n).describe(graph));
    PassError::invalid(NAME, first)
}

/// The pass.
pub(super) fn pass() -> Pass {
    let is =
        Declared::new(NAME, Slot::Write, "sums and activations are part of convolutions while these are of volumes")
            .needs(&[Fact::Written])
            .after(&["fuse_sums_and_activations"]);
    Pass::on_each_graph(is, |graph, cx| lower_volumes(graph, cx.settings.opset))
}

/// Lowers every blocked convolution of volumes. `opset` is the model's version of the standard domain.
fn lower_volumes(graph: &mut Graph, opset: i64) -> Result<(), PassError> {
    let mut parts = Parts::new();
    for n in graph.order().unwrap_or_default() {
        if is_convolution(graph.node(n)) && is_volume(graph, n) {
            lower_convolution(graph, n, &mut parts, opset)?;
        }
    }
    // Batches whose images everybody reads by themselves.
    let makers: Vec<NodeId> = parts.keys().map(|&batch| graph.value(batch).producer().0).collect();
    remove_dead(graph, makers);
    Ok(())
}

fn lower_convolution(graph: &mut Graph, n: NodeId, parts: &mut Parts, opset: i64) -> Result<(), PassError> {
    let Some(lowered) = Lowered::recognize(graph, n) else { return Err(refused(graph, n)) };
    let (volume, y) = (&lowered.volume, lowered.y);
    let mut x = lowered.x;
    if lowered.way == Some(Frames::Gathered) {
        x = lowered.gather(graph, n, opset)?;
    }
    let image = as_image(graph, n, x, &lowered.image)?;
    let node = graph.node(n).clone();
    let Form::Kernel(layouts) = &node.form else { return Err(refused(graph, n)) };
    let mut layouts = layouts.as_ref().clone();
    let mut inputs = node.inputs.clone();
    inputs[0] = Some(image);
    if let Some(sum) = inputs.get(3).copied().flatten() {
        inputs[3] = Some(as_image(graph, n, sum, &lowered.result)?);
    }
    for slot in [0, 3] {
        if let Some(layout) = layouts.ins.get_mut(slot) {
            *layout = None;
        }
    }
    let to = layouts.outs.first().cloned().flatten();
    layouts.outs.clear();
    let windows = volume.image;
    let (kernel, strides, dilations, pads) = if lowered.way.is_some() {
        (windows.kernel, windows.strides, windows.dilations, windows.pads)
    } else {
        let [stride, dilation, before, behind] = volume.along_frames();
        ([volume.taps as i64, 1], [stride, 1], [dilation, 1], [before, 0, behind, 0])
    };
    let lists = [("kernel_shape", &kernel[..]), ("strides", &strides), ("dilations", &dilations), ("pads", &pads)];
    let mut attrs = node.attrs;
    attrs.extend(lists.map(|(name, list)| (name.to_owned(), Attr::Ints(list.to_vec()))));
    let name = format!("{}.images", graph.value(y).name);
    let ty = Type::tensor(DType::F32, lowered.result.clone());
    let made = if lowered.way == Some(Frames::Apart) {
        let x = frames_apart::each(graph, n, image, parts, opset)?;
        let sum = inputs.get(3).copied().flatten();
        let sum = sum.map(|sum| frames_apart::each(graph, n, sum, parts, opset)).transpose()?;
        let apart = Apart { volume, x, sum, result: lowered.result.clone(), attrs, layouts };
        let Some(frames) = apart.write(graph, n)? else { return Err(refused(graph, n)) };
        let mut make = Builder::at(graph, n);
        let whole = make.op("Concat", frames.iter().copied()).attr("axis", Attr::Int(0)).kernel().result(&name, ty)?;
        parts.insert(whole, frames);
        whole
    } else {
        let mut make = Builder::at(graph, n);
        make.op_of(convolution(), 1, inputs).attrs(attrs).form(Form::Kernel(Box::new(layouts))).result(&name, ty)?
    };
    become_reshape(graph, n, made, &lowered.target, to)
}

/// A blocked convolution of volumes as one of images.
struct Lowered {
    volume: Volume,
    /// How frames become images; `None` where an image has a frame per row.
    way: Option<Frames>,
    x: ValueId,
    y: ValueId,
    /// Extents of the images that are read, and of those that are made.
    image: Vec<Dim>,
    result: Vec<Dim>,
    /// Extents in which the result is declared.
    target: Vec<i64>,
}

impl Lowered {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Lowered> {
        let node = graph.node(n);
        let volume = Volume::recognize(graph, node)?;
        let (x, y) = (graph.node(n).operand(0)?, node.result(0)?);
        let stored =
            |v: ValueId| -> Option<[Dim; 5]> { graph.storage_shape(v, &graph.value(v).layout)?.try_into().ok() };
        let by_frame = blocked_volume(&graph.value(y).layout)?.by_frame;
        let times = |[a, b]: [&Dim; 2]| a.checked_mul(b);
        let ([n, a, b, h, w], [_, oa, ob, oh, ow]) = (stored(x)?, stored(y)?);
        let batch = vec![times([&n, &a])?, b.clone(), h.clone(), w.clone()];
        let way = by_frame.then(|| {
            // Weights of frames that are put side by side have the channels of all of them.
            let channels = |v: ValueId| graph.value(v).ty.shape()?.get(1)?.as_const();
            let own = node.operand(1).and_then(channels) == channels(x);
            let is_apart = own && volume.taps > 1 && volume.as_images() == Frames::Gathered;
            if is_apart { Frames::Apart } else { volume.as_images() }
        });
        let taps = Dim::from(i64::try_from(volume.taps).ok()?);
        // Where frames come one after another, `a` are frames and `b` channels.
        let (image, result) = match way {
            None => (vec![n.clone(), a, b, times([&h, &w])?], vec![n, oa, ob, times([&oh, &ow])?]),
            Some(Frames::Each | Frames::Apart) => (batch, vec![times([&n, &oa])?, ob, oh, ow]),
            Some(Frames::Joined) => (vec![n.clone(), times([&a, &b])?, h, w], vec![n, times([&oa, &ob])?, oh, ow]),
            Some(Frames::Gathered) => {
                (vec![times([&n, &oa])?, times([&taps, &b])?, h, w], vec![times([&n, &oa])?, ob, oh, ow])
            }
        };
        let target = numbers(&stored(y)?)?;
        Some(Lowered { volume, way, x, y, image, result, target })
    }

    /// The frames that each one reads, side by side: `[N, D', taps, C, H, W]`.
    fn gather(&self, graph: &mut Graph, n: NodeId, opset: i64) -> Result<ValueId, PassError> {
        let layout = graph.value(self.x).layout.clone();
        let Some(mut dims) = graph.storage_shape(self.x, &layout) else { return Err(refused(graph, n)) };
        let base = graph.value(self.y).name.clone();
        let mut make = Builder::at(graph, n).named(base);
        let (mut x, mut stored) = (self.x, layout.declared());
        if self.volume.reads_padding() {
            dims[FRAMES] = Dim::from(self.volume.frames as i64 + 1);
            let pad = make.op("Pad", [x]).kernel_in(vec![stored.take()], vec![]);
            x = pad.told("pads", "pads", &[0, 0, 0, 0, 0, 0, 1, 0, 0, 0], opset)?.shaped("padded", &dims)?;
        }
        let volume = &self.volume;
        let places = (0..volume.left).flat_map(|left| (0..volume.taps).map(move |tap| volume.frame(left, tap)));
        let places: Vec<i64> = places.map(|frame| frame.unwrap_or(volume.frames) as i64).collect();
        let places = Constant { dims: vec![volume.left as i64, volume.taps as i64], ..Constant::ints(&places) };
        let places = make.constant("frames", places)?;
        dims.splice(FRAMES..=FRAMES, [volume.left, volume.taps].map(|n| Dim::from(n as i64)));
        let gather = make.op("Gather", [x, places]).attr("axis", Attr::Int(FRAMES as i64));
        Ok(gather.kernel_in(vec![stored], vec![]).shaped("gathered", &dims)?)
    }
}

/// The same bytes in these extents: what a Reshape was made of, or a Reshape.
fn as_image(graph: &mut Graph, n: NodeId, x: ValueId, dims: &[Dim]) -> Result<ValueId, PassError> {
    if let Some(image) = stored_before(graph, x, dims) {
        return Ok(image);
    }
    let Some(target) = numbers(dims) else { return Err(refused(graph, n)) };
    reshape(graph, n, x, &target, dims.to_vec())
}
