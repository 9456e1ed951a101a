//! Convolutions and maxima over volumes in blocks of their channels, said of images.
//!
//! ```text
//! N C/16 D H W C%16, kernel kd 1 1      image [N, C, D, H W], kernel kd 1
//! N D C/16 H W C%16, kernel 1 kh kw     images [N D, C, H, W]
//!                    kernel kd kh kw    Gather(Pad(x)) over D: images [N D', kd C, H, W], W as [M, kd C, kh, kw]
//!                    the same, D < kd   image [N, D C, H, W], W as [D' M, D C, kh, kw] with zeros where no tap is
//! ```
//!
//! A convolution takes in sums and activations while it is one of volumes: [`pack`] gives it its weights before, and
//! [`say_convolutions`] writes it down after.

use super::make::Maker;
use super::volume_moves::numbers;
use super::widen::weights;
use crate::ort_cpu::Block;
use crate::ort_cpu::nodes::{become_reshape, convolution, reshape};
use relayout_eval::Tapped;
use relayout_eval::floats;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::{Frames, NCHWC, Volume};
use relayout_ir::storage::blocked_volume;
use relayout_ir::types::Type;
use relayout_target::PassError;
use std::sync::Arc;

/// The axis of the frames where a volume is stored frame by frame.
const FRAMES: usize = 1;
/// The first operator set in which Pad has its numbers as an operand.
const PAD_READS_OPERANDS: i64 = 11;

/// Whether the first operand has the rank of a volume.
pub(super) fn is_volume(graph: &Graph, n: NodeId) -> bool {
    graph.node(n).operand(0).is_some_and(|x| graph.value(x).ty.rank() == Some(5))
}

/// Whether weights and, where frames are joined, the bias are constants whose numbers are there.
pub(super) fn is_sayable(graph: &Graph, n: NodeId) -> bool {
    let weights = graph.node(n).operand(1).and_then(|w| weights(graph, w));
    let known = weights.is_some_and(|w| w.dtype == DType::F32 && w.dims.len() == 5 && w.source.is_available());
    let bias = graph.node(n).operand(2).is_none_or(|b| bias(graph, b).is_some());
    let joined = Volume::of(graph, graph.node(n)).is_some_and(|v| v.as_images() == Frames::Joined);
    known && (bias || !joined)
}

fn bias(graph: &Graph, b: ValueId) -> Option<Vec<f64>> {
    floats(graph.constant(b).filter(|c| c.pending.is_none())?)
}

fn unsayable(graph: &Graph, n: NodeId) -> PassError {
    let first = format!("{} can't be said of images", graph.node(n).describe(graph));
    PassError::invalid("lower_blocks", first)
}

/// Makes such a convolution a blocked one, with the weights and the bias that it has as one of images.
pub(super) fn pack(graph: &mut Graph, n: NodeId, block: u64, layouts: &KernelLayouts) -> Result<(), PassError> {
    let Some(packed) = Packed::of(graph, n, block, layouts) else { return Err(unsayable(graph, n)) };
    let mut layouts = layouts.clone();
    let rank = graph.node(n).rank;
    let base = graph.node(n).outputs.first().copied().flatten().map(|y| graph.value(y).name.clone());
    let base = base.unwrap_or_else(|| "volume".to_owned());
    let mut inputs = graph.node(n).inputs.clone();
    let ty = Type::tensor(DType::F32, packed.weights.dims.iter().map(|&d| Dim::from(d)).collect());
    let mut made = Maker { graph, rank };
    let plain = made.constant(&format!("{base}.weights"), packed.weights)?;
    let mut node = Node::new(Op::Relayout, vec![Some(plain)]);
    node.rank = rank;
    let name = made.graph.fresh_name(&format!("{base}.packed"));
    let weights = made.graph.add_single(node, name, ty)?;
    *made.graph.value_mut(weights).layout = packed.layout.clone();
    inputs[1] = Some(weights);
    layouts.ins.resize(inputs.len(), None);
    layouts.ins[1] = Some(packed.layout);
    if let Some(bias) = packed.bias {
        inputs[2] = Some(made.constant(&format!("{base}.bias"), bias)?);
    }
    graph.set_inputs(n, inputs);
    graph.set_op(n, convolution(), 1);
    let attrs = graph.attrs_mut(n);
    attrs.shift_remove("auto_pad");
    attrs.insert("group".to_owned(), Attr::Int(packed.group));
    attrs.insert("kernel_shape".to_owned(), Attr::Ints(packed.kernel.to_vec()));
    graph.set_form(n, Form::Kernel(Box::new(layouts)));
    Ok(())
}

/// What a blocked convolution of volumes reads.
struct Packed {
    weights: Constant,
    layout: Layout,
    /// Where it is not the node's own.
    bias: Option<Constant>,
    group: i64,
    kernel: [i64; 3],
}

impl Packed {
    fn of(graph: &Graph, n: NodeId, block: u64, layouts: &KernelLayouts) -> Option<Packed> {
        let node = graph.node(n);
        let volume = Volume::of(graph, node)?;
        let by_frame = blocked_volume(layouts.outs.first()?.as_ref()?)?.by_frame;
        let thin = layouts.ins.first()?.as_ref().is_none_or(|l| l.as_permutation().is_some());
        let weights = weights(graph, graph.node(n).operand(1)?)?;
        let kernel: [i64; 5] = weights.dims.clone().try_into().ok()?;
        let [m, c, kd, kh, kw] = kernel;
        let group = node.int("group").unwrap_or(1);
        let block = Block::of(block)?;
        let round = |channels: i64| {
            let slots = u64::try_from(channels).ok()?.checked_next_multiple_of(block.channels())?;
            i64::try_from(slots).ok()
        };
        let depthwise = group > 1 && c == 1 && m == group;
        let own = [m, c];
        let wide = [m, if thin || group > 1 { c } else { round(c)? }];
        let (read, slots, [rows, columns]) = if by_frame {
            match volume.as_images() {
                Frames::Each => (vec![vec![Some(0)]], own, [kh, kw]),
                Frames::Gathered => (vec![(0..volume.taps).map(Some).collect()], wide, [kh, kw]),
                Frames::Joined => {
                    let taps = |left: usize| (0..volume.frames).map(|frame| volume.tap(left, frame)).collect();
                    let most = if volume.left > 1 { round(m)? } else { m };
                    ((0..volume.left).map(taps).collect::<Vec<Vec<_>>>(), [most, wide[1]], [kh, kw])
                }
            }
        } else {
            (vec![vec![Some(0)]], own, [kd, 1])
        };
        let times = |frames: usize, slots: i64| i64::try_from(frames).ok()?.checked_mul(slots);
        let dims = vec![times(read.len(), slots[0])?, times(read.first()?.len(), slots[1])?, rows, columns];
        let tiled = volume.left > 1 && by_frame && volume.as_images() == Frames::Joined;
        let bias = match graph.node(n).operand(2).filter(|_| tiled) {
            Some(b) => Some(tile(&bias(graph, b)?, usize::try_from(slots[0]).ok()?, volume.left)),
            None => None,
        };
        let [most, least] = slots;
        let slots = [usize::try_from(most).ok()?, usize::try_from(least).ok()?];
        let taps = if by_frame { usize::try_from(kd).ok()? } else { 1 };
        let source = Arc::new(Tapped { weights, taps, read, slots });
        Some(Packed {
            weights: Constant { dtype: DType::F32, dims, source, pending: None },
            layout: if thin || depthwise { block.filter_weights() } else { block.dense_weights() },
            bias,
            group: if depthwise { round(m)? } else { group },
            kernel: [kd, kh, kw],
        })
    }
}

/// A number per channel, zeros up to whole blocks, for each of several frames.
fn tile(numbers: &[f64], slots: usize, frames: usize) -> Constant {
    let frame = || numbers.iter().copied().chain(std::iter::repeat(0.0)).take(slots);
    let bytes: Vec<u8> = (0..frames).flat_map(|_| frame()).flat_map(|x| (x as f32).to_le_bytes()).collect();
    Constant::inline(DType::F32, vec![(slots * frames) as i64], bytes.into())
}

/// Says every blocked convolution of volumes. `opset` is the model's version of the standard domain.
pub(super) fn say_convolutions(graph: &mut Graph, opset: i64) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        let blocked = matches!(&graph.node(n).op, Op::Onnx(op) if *op == convolution());
        if blocked && is_volume(graph, n) {
            say_convolution(graph, n, opset)?;
        }
    }
    Ok(())
}

fn say_convolution(graph: &mut Graph, n: NodeId, opset: i64) -> Result<(), PassError> {
    let Some(said) = Said::of(graph, n) else { return Err(unsayable(graph, n)) };
    let (volume, y) = (&said.volume, said.y);
    let mut x = said.x;
    if said.way == Some(Frames::Gathered) {
        x = said.gather(graph, n, opset)?;
    }
    let image = as_image(graph, n, x, &said.image)?;
    let node = graph.node(n).clone();
    let Form::Kernel(layouts) = &node.form else { return Err(unsayable(graph, n)) };
    let mut layouts = layouts.as_ref().clone();
    let mut inputs = node.inputs.clone();
    inputs[0] = Some(image);
    if let Some(sum) = inputs.get(3).copied().flatten() {
        inputs[3] = Some(as_image(graph, n, sum, &said.result)?);
    }
    for slot in [0, 3] {
        if let Some(layout) = layouts.ins.get_mut(slot) {
            *layout = None;
        }
    }
    let to = layouts.outs.first().cloned().flatten();
    layouts.outs.clear();
    let mut conv = Node::new(Op::Onnx(convolution()), inputs);
    (conv.rank, conv.opset, conv.attrs) = (node.rank, 1, node.attrs.clone());
    conv.form = Form::Kernel(Box::new(layouts));
    let windows = volume.image;
    let ints = |list: &[i64]| Attr::Ints(list.to_vec());
    let (kernel, strides, dilations, pads) = if said.way.is_some() {
        (windows.kernel, windows.strides, windows.dilations, windows.pads)
    } else {
        let [stride, dilation, before, behind] = volume.along_frames();
        ([volume.taps as i64, 1], [stride, 1], [dilation, 1], [before, 0, behind, 0])
    };
    for (name, list) in [("kernel_shape", &kernel), ("strides", &strides), ("dilations", &dilations)] {
        conv.attrs.insert(name.to_owned(), ints(list));
    }
    conv.attrs.insert("pads".to_owned(), ints(&pads));
    let name = graph.fresh_name(&format!("{}.images", graph.value(y).name));
    let ty = Type::tensor(DType::F32, said.result.clone());
    let made = graph.add_single(conv, name, ty)?;
    become_reshape(graph, n, made, &said.target, to)
}

/// A blocked convolution of volumes as one of images.
struct Said {
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

impl Said {
    fn of(graph: &Graph, n: NodeId) -> Option<Said> {
        let node = graph.node(n);
        let volume = Volume::of(graph, node)?;
        let (x, y) = (graph.node(n).operand(0)?, node.outputs.first().copied().flatten()?);
        let stored =
            |v: ValueId| -> Option<[Dim; 5]> { graph.storage_shape(v, &graph.value(v).layout)?.try_into().ok() };
        let by_frame = blocked_volume(&graph.value(y).layout)?.by_frame;
        let way = by_frame.then(|| volume.as_images());
        let times = |[a, b]: [&Dim; 2]| a.checked_mul(b);
        let ([n, a, b, h, w], [_, oa, ob, oh, ow]) = (stored(x)?, stored(y)?);
        let taps = Dim::from(i64::try_from(volume.taps).ok()?);
        // Where frames come one after another, `a` are frames and `b` channels.
        let (image, result) = match way {
            None => (vec![n.clone(), a, b, times([&h, &w])?], vec![n, oa, ob, times([&oh, &ow])?]),
            Some(Frames::Each) => (vec![times([&n, &a])?, b, h, w], vec![times([&n, &oa])?, ob, oh, ow]),
            Some(Frames::Joined) => (vec![n.clone(), times([&a, &b])?, h, w], vec![n, times([&oa, &ob])?, oh, ow]),
            Some(Frames::Gathered) => {
                (vec![times([&n, &oa])?, times([&taps, &b])?, h, w], vec![times([&n, &oa])?, ob, oh, ow])
            }
        };
        let target = numbers(&stored(y)?)?;
        Some(Said { volume, way, x, y, image, result, target })
    }

    /// The frames that each one reads, side by side: `[N, D', taps, C, H, W]`.
    fn gather(&self, graph: &mut Graph, n: NodeId, opset: i64) -> Result<ValueId, PassError> {
        let layout = graph.value(self.x).layout.clone();
        let Some(mut dims) = graph.storage_shape(self.x, &layout) else { return Err(unsayable(graph, n)) };
        let mut made = Maker { rank: graph.node(n).rank, graph };
        let base = made.graph.value(self.y).name.clone();
        let mut x = self.x;
        if self.volume.reads_padding() {
            dims[FRAMES] = Dim::from(self.volume.frames as i64 + 1);
            let pads = [0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
            let operands = opset >= PAD_READS_OPERANDS;
            let list =
                if operands { Some(made.constant(&format!("{base}.pads"), Constant::ints(&pads))?) } else { None };
            let inputs = std::iter::once(x).chain(list).collect();
            let ty = Type::tensor(DType::F32, dims.clone());
            x = made.node("", "Pad", inputs, &format!("{base}.padded"), ty, 0)?;
            reads(made.graph, x, &layout);
            if !operands {
                set(made.graph, x, "pads", Attr::Ints(pads.to_vec()));
            }
        }
        let volume = &self.volume;
        let places = (0..volume.left).flat_map(|left| (0..volume.taps).map(move |tap| volume.frame(left, tap)));
        let places: Vec<i64> = places.map(|frame| frame.unwrap_or(volume.frames) as i64).collect();
        let places = Constant { dims: vec![volume.left as i64, volume.taps as i64], ..Constant::ints(&places) };
        let places = made.constant(&format!("{base}.frames"), places)?;
        dims.splice(FRAMES..=FRAMES, [volume.left, volume.taps].map(|n| Dim::from(n as i64)));
        let ty = Type::tensor(DType::F32, dims);
        let y = made.node("", "Gather", vec![x, places], &format!("{base}.gathered"), ty, 0)?;
        set(made.graph, y, "axis", Attr::Int(FRAMES as i64));
        if x == self.x {
            reads(made.graph, y, &layout);
        }
        Ok(y)
    }
}

/// Says that the node which made a value reads its first operand in a layout.
fn reads(graph: &mut Graph, y: ValueId, layout: &Layout) {
    let (node, _) = graph.value(y).producer();
    let ins = vec![Some(layout.clone()).filter(|l| !l.is_row_major())];
    graph.set_form(node, Form::Kernel(Box::new(KernelLayouts { ins, outs: Vec::new() })));
}

fn set(graph: &mut Graph, y: ValueId, name: &str, attr: Attr) {
    let (node, _) = graph.value(y).producer();
    graph.attrs_mut(node).insert(name.to_owned(), attr);
}

/// The same bytes in these extents: what a Reshape was made of, or a Reshape.
fn as_image(graph: &mut Graph, n: NodeId, x: ValueId, dims: &[Dim]) -> Result<ValueId, PassError> {
    let maker = graph.node(graph.value(x).producer().0);
    let before = maker.inputs.first().copied().flatten();
    let again = |v: &ValueId| {
        let value = graph.value(*v);
        value.layout.is_row_major() && value.ty.shape() == Some(dims) && maker.op.is_named("Reshape")
    };
    if let Some(image) = before.filter(again).filter(|_| matches!(maker.form, Form::Kernel(_))) {
        return Ok(image);
    }
    let Some(target) = numbers(dims) else { return Err(unsayable(graph, n)) };
    reshape(graph, n, x, &target, dims.to_vec())
}

/// Says a maximum over windows of a volume that is stored frame by frame: that of every image, and that of the frames which each
/// one reads.
pub(super) fn say_maximum(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    let node = graph.node(n).clone();
    let sides = graph.node(n).operand(0).zip(node.outputs.first().copied().flatten());
    let (Some(volume), Some((x, y)), Form::Kernel(layouts)) = (Volume::of(graph, &node), sides, &node.form) else {
        return Err(unsayable(graph, n));
    };
    let stored = |v: ValueId| graph.storage_shape(v, &graph.value(v).layout).and_then(|d| <[Dim; 5]>::try_from(d).ok());
    let (Some([batch, d, c, h, w]), Some(to)) = (stored(x), stored(y)) else { return Err(unsayable(graph, n)) };
    let [_, left, _, oh, ow] = to.clone();
    let Some(images) = batch.checked_mul(&d) else { return Err(unsayable(graph, n)) };
    let Some(target) = numbers(&to) else { return Err(unsayable(graph, n)) };
    let image = as_image(graph, n, x, &[images.clone(), c.clone(), h, w])?;
    let base = graph.value(y).name.clone();
    let mut made = Maker { rank: node.rank, graph };
    let pooled = vec![images, c.clone(), oh.clone(), ow.clone()];
    let mut at =
        made.node(NCHWC, "MaxPool", vec![image], &format!("{base}.images"), Type::tensor(DType::F32, pooled), 1)?;
    let windows = volume.image;
    let lists = [("kernel_shape", &windows.kernel), ("strides", &windows.strides), ("dilations", &windows.dilations)];
    for (name, list) in lists {
        set(made.graph, at, name, Attr::Ints(list.to_vec()));
    }
    set(made.graph, at, "pads", Attr::Ints(windows.pads.to_vec()));
    if let Some(ceil) = node.attrs.get("ceil_mode") {
        set(made.graph, at, "ceil_mode", ceil.clone());
    }
    if volume.as_images() == Frames::Each {
        return become_reshape(graph, n, at, &target, layouts.outs.first().cloned().flatten());
    }
    let frames = vec![batch.clone(), d, c.clone(), oh.clone(), ow.clone()];
    at = as_image(graph, n, at, &frames)?;
    let taken = vec![batch, left, c, oh, ow];
    let mut inputs = Vec::new();
    for tap in 0..volume.taps {
        // Padding is never the maximum, so that another frame of the window stands for it.
        let read =
            |left: usize| volume.frame(left, tap).or_else(|| (0..volume.taps).find_map(|t| volume.frame(left, t)));
        let places: Option<Vec<i64>> = (0..volume.left).map(|left| read(left).map(|frame| frame as i64)).collect();
        let Some(places) = places else { return Err(unsayable(graph, n)) };
        let mut made = Maker { rank: node.rank, graph };
        let places = made.constant(&format!("{base}.frames"), Constant::ints(&places))?;
        let ty = Type::tensor(DType::F32, taken.clone());
        let frames = made.node("", "Gather", vec![at, places], &format!("{base}.tap"), ty, 0)?;
        set(made.graph, frames, "axis", Attr::Int(FRAMES as i64));
        inputs.push(Some(frames));
    }
    graph.set_inputs(n, inputs);
    graph.set_op(n, OpName { domain: String::new(), name: "Max".to_owned(), overload: String::new() }, 0);
    graph.attrs_mut(n).clear();
    let outs = layouts.outs.clone();
    graph.set_form(n, Form::Kernel(Box::new(KernelLayouts { ins: Vec::new(), outs })));
    Ok(())
}
