//! Convolutions of volumes in blocks of their channels, as blocked ones of images.
//!
//! ```text
//! N C/16 D H W C%16, kernel kd 1 1      image [N, C, D, H W], kernel kd 1
//! N D C/16 H W C%16, kernel 1 kh kw     images [N D, C, H, W]
//!                    kernel kd kh kw    Gather(Pad(x)) over D: images [N D', kd C, H, W], W as [M, kd C, kh, kw]
//!                    the same, D < kd   image [N, D C, H, W], W as [D' M, D C, kh, kw] with zeros where no tap is
//!                    the same, apart    D images [1, C, H, W], W as [kd M, C, kh, kw]; a frame is the sum of what its taps make
//! ```
//!
//! Frames that are apart are copied nowhere, and nobody convolves those of the padding. But there is a convolution for each pair of
//! a frame and a tap, so that each has to be worth being a node.
//!
//! The form writes a blocked convolution of volumes with the weights and the bias that it has as one of images. So it takes in sums
//! and activations, and pass `lower_volumes` makes it one of images then.

use super::volume::{WIDTH, Windows};
use crate::ort_cpu::Block;
use crate::ort_cpu::costs::{ConvKernel, ConvShape, Copy, VolumeShape};
use crate::ort_cpu::machine::Machine;
use crate::ort_cpu::nodes::{constant_behind_moves, convolution};
use crate::shared::forms::product::BROADCASTS_SINCE;
use relayout_eval::{Tapped, floats};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, NodeId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::Groups;
use relayout_ir::op::{Frames, Volume};
use relayout_ir::storage::blocked_volume;
use relayout_target_api::{Cost, Fragment, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "volume_conv";
/// How many times as long an image of a batch takes as one that is in the caches, from which convolutions were measured, in
/// hundredths: 108 to 128 for 64 images of 48 and 96 channels to 16, of 32 to 64 rows and columns.
const OF_A_BATCH: u64 = 115;

/// Fewest multiply-adds of a frame and a tap for which frames are apart, so that what each node takes by itself is little beside
/// them, on many threads as well; and most pairs, so that the file does not grow beyond what people can look at.
const WORTH_A_NODE: i64 = 1 << 22;
const MOST_PAIRS: usize = 256;

/// Convolutions of volumes in blocks.
pub(super) struct VolumeConv(pub(super) Arc<Machine>);

impl TargetForm for VolumeConv {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Conv"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let Some((windows, _)) = convolved(q) else { return Vec::new() };
        // Blocks of frames, then frames of blocks.
        let packed = [false, true].map(|by_frame| Packed::recognize(self.0.block, q.graph, q.node, by_frame));
        packed.iter().flatten().filter_map(|packed| self.0.packed_volume(q, &windows, packed)).collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let (windows, group) = convolved(q)?;
        self.0.costs.volume_ns(&plain(&windows, group)).map(Cost::new)
    }

    fn write(&self, piece: &Piece<'_>, _: &Offer) -> Result<Fragment, Refused> {
        let graph = piece.graph;
        let by_frame = piece.layouts.outs.first().and_then(Option::as_ref).and_then(blocked_volume).map(|v| v.by_frame);
        let packed = by_frame.and_then(|by_frame| Packed::recognize(self.0.block, graph, piece.node, by_frame));
        let result = graph.node(piece.node).result(0);
        let (packed, y) = packed.zip(result).ok_or_else(|| Refused::new(piece, "can't be written as one of images"))?;
        Ok(packed.write(piece, self.0.block, &graph.value(y).name))
    }
}

/// The windows of a convolution of volumes with constant operands, and its groups; none where sums do not broadcast yet.
fn convolved(query: &NodeQuery<'_>) -> Option<(Windows, u64)> {
    let node = query.graph.node(query.node);
    (node.opset >= BROADCASTS_SINCE).then_some(())?;
    let constant = |slot| node.operand(slot).is_none_or(|v| (query.is_constant)(v));
    let windows = Windows::of(query).filter(|_| constant(1) && constant(2))?;
    let weights = &query.graph.value(node.operand(1)?).ty;
    let dims = weights.const_shape()?;
    let Groups { group, outer, inner } = Groups::read(node, &dims)?;
    let ([_, c, ..], [_, m, ..]) = (windows.from, windows.to);
    let [group, outer, inner] = [group, outer, inner].map(i64::unsigned_abs);
    let whole = m.is_multiple_of(group) && outer == m && inner.checked_mul(group) == Some(c);
    (weights.dtype() == Some(DType::F32) && whole).then_some((windows, group))
}

/// The convolution as ONNX has it.
fn plain(windows: &Windows, group: u64) -> VolumeShape {
    let [stride, dilation, ..] = windows.volume.along_frames().map(i64::unsigned_abs);
    let image = windows.images([windows.from[0], windows.from[1], windows.to[1]]).grouped(group);
    VolumeShape { image, d: windows.from[2], od: windows.to[2], kd: windows.volume.taps as u64, stride, dilation }
}

/// A convolution of volumes that lie in one of two ways, as one of images.
struct Packed {
    volume: Volume,
    /// How frames that come one after another become images; else an image has a frame per row.
    way: Option<Frames>,
    groups: Groups,
    /// What is read of an image fills no block: the volume is an ordinary one.
    is_thin: bool,
    /// For each frame that is left in an image and each that is read there: the tap.
    read: Vec<Vec<Option<usize>>>,
    /// Output and input channels of a frame, those that fill its last block among them.
    slots: [i64; 2],
    weights: Constant,
    /// Where it is not the node's own.
    bias: Option<Constant>,
    kernel: [i64; 3],
}

impl Packed {
    /// `None` where the weights are not known, or the runtime's kernels can't take what would be put side by side.
    fn recognize(block: Block, graph: &Graph, n: NodeId, by_frame: bool) -> Option<Packed> {
        let node = graph.node(n);
        let volume = Volume::recognize(graph, node).filter(|v| by_frame || v.image.is_pixel())?;
        let weights = constant_behind_moves(graph, node.operand(1)?)?;
        (weights.dtype == DType::F32 && weights.source.is_available()).then_some(())?;
        let [m, c, kd, kh, kw] = <[i64; 5]>::try_from(weights.dims.clone()).ok()?;
        let groups = Groups::read(node, &weights.dims)?;
        let channels = block.channels() as i64;
        let way = by_frame.then(|| {
            let fills = m % channels == 0 && c >= channels;
            let apart = groups.group == 1 && fills && is_worth_nodes(graph, node, &volume, [m, c]);
            if apart { Frames::Apart } else { volume.as_images() }
        });
        let read = way.map_or_else(|| vec![vec![Some(0)]], |way| read(&volume, way));
        let (left, taken) = (read.len(), read.first()?.len());
        // What a frame has beyond its groups would have to be put in order.
        let joins = way.is_some_and(|way| way != Frames::Each);
        (groups.group == 1 || !joins).then_some(())?;
        let is_thin = groups.group == 1 && c.checked_mul(i64::try_from(taken).ok()?)? < channels;
        let round = |n: i64| i64::try_from(u64::try_from(n).ok()?.checked_next_multiple_of(block.channels())?).ok();
        let slots = [
            if left > 1 { round(m)? } else { m },
            if joins && !is_thin && way != Some(Frames::Apart) { round(c)? } else { c },
        ];
        let [rows, columns] = if by_frame { [kh, kw] } else { [kd, 1] };
        let times = |frames: usize, slots: i64| i64::try_from(frames).ok()?.checked_mul(slots);
        let dims = vec![times(left, slots[0])?, times(taken, slots[1])?, rows, columns];
        let bias = match node.operand(2).filter(|_| left > 1 && way == Some(Frames::Joined)) {
            Some(b) => {
                let numbers = floats(graph.constant(b).filter(|c| c.pending.is_none())?)?;
                Some(tile(&numbers, usize::try_from(slots[0]).ok()?, left))
            }
            None => None,
        };
        let source = Tapped {
            weights,
            taps: if by_frame { usize::try_from(kd).ok()? } else { 1 },
            read: read.clone(),
            slots: [usize::try_from(slots[0]).ok()?, usize::try_from(slots[1]).ok()?],
        };
        let weights = Constant { dtype: DType::F32, dims, source: Arc::new(source), pending: None };
        Some(Packed { volume, way, groups, is_thin, read, slots, weights, bias, kernel: [kd, kh, kw] })
    }

    /// The convolution of images that it is at the size hints.
    fn conv(&self, windows: &Windows) -> ConvShape {
        let [group, m, c] = [self.groups.group, self.slots[0], self.slots[1]].map(i64::unsigned_abs);
        let (left, taken) = (self.read.len() as u64, self.read.first().map_or(0, Vec::len) as u64);
        let (c, m) = (c.saturating_mul(group).saturating_mul(taken), m.saturating_mul(left));
        let n = windows.from[0];
        match self.way {
            None => windows.rows([n, c, m]).grouped(group),
            Some(Frames::Apart) => windows.images([n, c, self.slots[0].unsigned_abs()]),
            Some(_) => {
                let images = self.volume.left as u64 / left.max(1);
                windows.images([n.saturating_mul(images), c, m]).grouped(group)
            }
        }
    }

    fn is_apart(&self) -> bool {
        self.way == Some(Frames::Apart)
    }

    /// A blocked convolution of volumes with these weights and this bias. `base` is what new names begin with.
    fn write(self, piece: &Piece<'_>, block: Block, base: &str) -> Fragment {
        let is_depthwise = self.groups.is_depthwise();
        let layout = if self.is_thin || is_depthwise { block.filter_weights() } else { block.dense_weights() };
        let mut fragment = Fragment::new(piece, FORM);
        let names = [format!("{base}.weights"), format!("{base}.packed")];
        let weights = fragment.packed(names, self.weights, layout.clone());
        let group = self.groups.group;
        let group = if is_depthwise { (group as u64).next_multiple_of(block.channels()) as i64 } else { group };
        let mut conv = Made::same(piece).named(convolution(), 1).reading(1, weights);
        if let Some(bias) = self.bias {
            let bias: Operand = fragment.constant(format!("{base}.bias"), bias);
            conv = conv.reading(2, bias);
        }
        conv.attrs.shift_remove("auto_pad");
        let mut layouts = piece.layouts.clone();
        layouts.ins.resize(conv.inputs.len(), None);
        layouts.ins[1] = Some(layout);
        conv.form = Form::Kernel(Box::new(layouts));
        let conv = conv.with("group", Attr::Int(group));
        fragment.become_op(conv.with("kernel_shape", Attr::Ints(self.kernel.to_vec())));
        fragment
    }
}

/// Whether a convolution of `c` to `m` channels, not of pixels, has several taps and one volume in its batch, and each frame and tap
/// multiplies enough.
fn is_worth_nodes(graph: &Graph, node: &Node, volume: &Volume, [m, c]: [i64; 2]) -> bool {
    let extents = node.result(0).and_then(|y| graph.value(y).ty.const_shape());
    let Some(&[1, _, _, h, w]) = extents.as_deref() else { return false };
    let [kh, kw] = volume.image.kernel;
    let work = [m, c, kh, kw, h, w].into_iter().fold(1, i64::saturating_mul);
    volume.taps > 1
        && volume.as_images() == Frames::Gathered
        && volume.image.kernel != [1, 1]
        && work >= WORTH_A_NODE
        && volume.pairs() <= MOST_PAIRS
        && volume.reads_everywhere()
}

/// For each frame that is left in an image and each that is read there: the tap. Frames that are apart have the weights of one tap
/// behind those of another.
fn read(volume: &Volume, way: Frames) -> Vec<Vec<Option<usize>>> {
    match way {
        Frames::Apart => (0..volume.taps).map(|tap| vec![Some(tap)]).collect(),
        Frames::Each => vec![vec![Some(0)]],
        Frames::Gathered => vec![(0..volume.taps).map(Some).collect()],
        Frames::Joined => {
            let taps = |left: usize| (0..volume.frames).map(|frame| volume.tap(left, frame)).collect();
            (0..volume.left).map(taps).collect()
        }
    }
}

/// A number per channel, zeros up to whole blocks, for each of several frames.
fn tile(numbers: &[f64], slots: usize, frames: usize) -> Constant {
    let frame = || numbers.iter().copied().chain(std::iter::repeat(0.0)).take(slots);
    Constant::floats((0..frames).flat_map(|_| frame()), &[(slots * frames) as i64])
}

impl Machine {
    /// The offer of a convolution of volumes that is this one of images.
    fn packed_volume(&self, query: &NodeQuery<'_>, windows: &Windows, packed: &Packed) -> Option<Offer> {
        let node = query.graph.node(query.node);
        let conv = packed.conv(windows);
        let kernel = if packed.is_thin { ConvKernel::BlockedFromNchw } else { ConvKernel::Blocked };
        let cost = self.costs.conv_ns(&conv, kernel).filter(|_| self.has_whole_groups(&conv)).map(Cost::new)?;
        // One for each frame and tap that it reads.
        let cost = if packed.is_apart() { cost.times(packed.volume.pairs() as u64) } else { cost };
        let (blocked, plain) = if packed.way.is_some() {
            (self.by_frame(), Layout::permutation(&[0, 2, 1, 3, 4]).ok())
        } else {
            (self.by_block(), None)
        };
        let mut ins = vec![None; node.inputs.len()];
        if let Some(first) = ins.first_mut() {
            *first = if packed.is_thin { plain } else { Some(blocked.clone()) };
        }
        if let Some(bias) = ins.get_mut(2).filter(|_| packed.bias.is_none()) {
            *bias = node.operand(2).map(|_| self.per_channel(windows.to[1]));
        }
        let cost = if conv.n > 1 || packed.is_apart() { cost.percent(OF_A_BATCH) } else { cost };
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![Some(blocked)] },
            cost: cost + self.gathered(windows, packed) + self.small_node().times(2),
            becomes: None,
            // For frames that are not there, or that a tap does not reach; and sums are formed otherwise than by the runtime, which
            // has no such kernel to take on load.
            adds_zeros: true,
        })
    }

    /// What it costs to put side by side the frames that each one reads, or to take them apart, if they have to be.
    fn gathered(&self, windows: &Windows, packed: &Packed) -> Cost {
        let volume = &packed.volume;
        let [n, _, d, h, w] = windows.from;
        let frame = [packed.slots[1].unsigned_abs(), h, w].into_iter().fold(WIDTH, u64::saturating_mul);
        let bytes = |frames: u64| frame.saturating_mul(frames).saturating_mul(n);
        let copied = |kind: Copy, frames: u64| Cost::new(self.costs.copy_ns(kind, bytes(frames), frame));
        match packed.way {
            Some(Frames::Gathered) => {}
            // Parts of a volume that does not lie in parts yet.
            Some(Frames::Apart) => return copied(Copy::Slice, d),
            _ => return Cost::ZERO,
        }
        let padded = if volume.reads_padding() { copied(Copy::Pad, d + 1) } else { Cost::ZERO };
        padded + copied(Copy::Slice, windows.to[2].saturating_mul(volume.taps as u64))
    }
}
