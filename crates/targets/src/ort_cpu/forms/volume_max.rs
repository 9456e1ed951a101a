//! Maxima over windows of volumes in blocks of their channels: that of every image, then that of the frames which each one reads.

use super::volume::{FRAMES, WIDTH, Windows, pair};
use crate::ort_cpu::costs::{Copy, Pool, PoolShape, Spread};
use crate::ort_cpu::machine::Machine;
use crate::ort_cpu::nodes::stored_before;
use crate::shared::nodes::numbers;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::{Frames, NCHWC, Volume};
use relayout_ir::types::Type;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "volume_max";

/// Maxima over windows of volumes in blocks.
pub(super) struct VolumeMax(pub(super) Arc<Machine>);

impl TargetForm for VolumeMax {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MaxPool"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let maximum = Maximum::recognize(q.graph, q.node).zip(Windows::of(q));
        maximum.map(|(maximum, windows)| self.0.volume_maximum(&windows, &maximum)).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let (maximum, windows) = Maximum::recognize(q.graph, q.node).zip(Windows::of(q))?;
        // That of the images, once for each frame that is read.
        let images = windows.to[0].saturating_mul(windows.to[2]).saturating_mul(maximum.volume.taps as u64);
        Some(Cost::new(self.0.costs.pool_ns(Pool::Max, &pool(&windows, images), false)))
    }

    fn write(&self, piece: &Piece<'_>, _: &Offer) -> Result<Fragment, Refused> {
        let maximum = Maximum::recognize(piece.graph, piece.node);
        let fragment = maximum.and_then(|maximum| maximum.write(piece));
        fragment.ok_or_else(|| Refused::new(piece, "can't be written as maxima of images"))
    }
}

/// The maximum over windows of so many images.
fn pool(windows: &Windows, images: u64) -> PoolShape {
    let ([_, c, _, h, w], [.., oh, ow]) = (windows.from, windows.to);
    let image = &windows.volume.image;
    PoolShape { n: images, c, h, w, oh, ow, kernel: pair(image.kernel), stride: pair(image.strides) }
}

/// A maximum over windows of a volume, whose indices nobody asks for.
struct Maximum {
    volume: Volume,
    /// For each tap: the frame that each one of the result reads.
    taps: Vec<Vec<i64>>,
}

impl Maximum {
    /// `None` too where a window is nothing but padding, so that no frame can stand for it.
    fn recognize(graph: &Graph, n: NodeId) -> Option<Maximum> {
        let node = graph.node(n);
        let indices = node.outputs.iter().skip(1).any(Option::is_some);
        let volume = Volume::recognize(graph, node).filter(|_| node.onnx() == Some("MaxPool") && !indices)?;
        // Padding is never the maximum, so that another frame of the window stands for it.
        let read = |left: usize, tap: usize| {
            volume.frame(left, tap).or_else(|| (0..volume.taps).find_map(|t| volume.frame(left, t)))
        };
        let taps = |tap: usize| (0..volume.left).map(|left| Some(read(left, tap)? as i64)).collect();
        Some(Maximum { taps: (0..volume.taps).map(taps).collect::<Option<_>>()?, volume })
    }

    /// The maxima of images and frames. What is computed at run time may be the batch only.
    fn write(&self, piece: &Piece<'_>) -> Option<Fragment> {
        let graph = piece.graph;
        let node = graph.node(piece.node);
        let (x, y) = (node.operand(0)?, node.result(0)?);
        let stored = |v: ValueId| <[Dim; 5]>::try_from(graph.storage_shape(v, &graph.value(v).layout)?).ok();
        let ([batch, d, c, h, w], [_, left, _, oh, ow]) = (stored(x)?, stored(y)?);
        let images = batch.checked_mul(&d)?;
        let base = &graph.value(y).name;
        let mut fragment = Fragment::new(piece, FORM);
        let image = stored_in(&mut fragment, graph, x.into(), vec![images.clone(), c.clone(), h, w])?;
        let pooled = vec![images, c.clone(), oh.clone(), ow.clone()];
        let pooled = fragment.add(self.pool(piece, image), left_in(format!("{base}.images"), pooled));
        if self.volume.as_images() == Frames::Each {
            let target = numbers(&stored(y)?)?;
            let reshaped = fragment.reshape(graph, pooled, &target, &graph.value(y).layout);
            fragment.become_op(reshaped);
            return Some(fragment);
        }
        let frames = vec![batch.clone(), d, c.clone(), oh.clone(), ow.clone()];
        let frames = stored_in(&mut fragment, graph, pooled, frames)?;
        let taken = vec![batch, left, c, oh, ow];
        let mut tap = |places: &Vec<i64>| {
            let places = fragment.constant(format!("{base}.frames"), Constant::ints(places));
            let gather = Made::op("", "Gather", 0, [frames, places]).with("axis", Attr::Int(FRAMES as i64));
            fragment.add(gather, left_in(format!("{base}.tap"), taken.clone()))
        };
        let taps: Vec<Operand> = self.taps.iter().map(&mut tap).collect();
        fragment.become_op(Made::op("", "Max", 0, taps).in_layouts(vec![], piece.layouts.outs.clone()));
        Some(fragment)
    }

    /// The maximum over windows of images.
    fn pool(&self, piece: &Piece<'_>, image: Operand) -> Made {
        let windows = &self.volume.image;
        let mut pool = Made::op(NCHWC, "MaxPool", 1, [image])
            .with("kernel_shape", Attr::Ints(windows.kernel.to_vec()))
            .with("strides", Attr::Ints(windows.strides.to_vec()))
            .with("dilations", Attr::Ints(windows.dilations.to_vec()))
            .with("pads", Attr::Ints(windows.pads.to_vec()));
        if let Some(ceil) = piece.graph.node(piece.node).attrs.get("ceil_mode") {
            pool = pool.with("ceil_mode", ceil.clone());
        }
        pool
    }
}

fn left_in(name: String, dims: Vec<Dim>) -> Left {
    Left::row_major(name, Type::tensor(DType::F32, dims))
}

/// The same bytes in these extents: what a Reshape was made of, or a Reshape.
fn stored_in(fragment: &mut Fragment, graph: &Graph, x: Operand, dims: Vec<Dim>) -> Option<Operand> {
    if let Operand::Outer(v) = x
        && let Some(before) = stored_before(graph, v, &dims)
    {
        return Some(before.into());
    }
    let name = format!("{}.reshaped", fragment.name(graph, x)?);
    let reshape = fragment.reshape(graph, x, &numbers(&dims)?, &Layout::row_major(dims.len()));
    Some(fragment.add(reshape, left_in(name, dims)))
}

impl Machine {
    /// The offer of a maximum: that of each image, then that of the frames.
    fn volume_maximum(&self, windows: &Windows, maximum: &Maximum) -> Offer {
        let ([n, _, d, ..], [_, c, od, oh, ow]) = (windows.from, windows.to);
        let mut cost = Cost::new(self.costs.pool_ns(Pool::Max, &pool(windows, n.saturating_mul(d)), true));
        let taps = maximum.taps.len() as u64;
        if maximum.volume.as_images() != Frames::Each {
            let frame = [self.round(c), oh, ow].into_iter().fold(1, u64::saturating_mul);
            let elements = frame.saturating_mul(n).saturating_mul(od);
            let copy = self.costs.copy_ns(Copy::Slice, elements.saturating_mul(WIDTH), frame.saturating_mul(WIDTH));
            cost += Cost::new(copy).times(taps);
            cost += Cost::new(self.costs.elementwise_ns("Max", elements, Spread::Same)).times(taps.saturating_sub(1));
        }
        let blocked = || vec![Some(self.by_frame())];
        Offer {
            form: FORM,
            layouts: KernelLayouts { ins: blocked(), outs: blocked() },
            cost: cost + self.small_node().times(2),
            becomes: None,
            adds_zeros: false,
        }
    }
}
