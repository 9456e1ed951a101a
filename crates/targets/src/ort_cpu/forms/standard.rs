//! What is offered where ONNX Runtime puts a file of standard operators in blocks by itself: ops as they are, in blocks or between two
//! reorders, and those that are written as other standard ops because it blocks these.

use super::conv::conv_of;
use super::reduce::Reductions;
use super::scale::{Scaled, Scales};
use super::wide_conv::Wide;
use crate::ort_cpu::carried::{resizes, runs_in_blocks};
use crate::ort_cpu::costs::{ConvKernel, ConvShape};
use crate::ort_cpu::machine::{Machine, image_of};
use crate::ort_cpu::{is_left_to_the_runtime, on_load};
use relayout_eval::reading;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Op, OpName};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::keeps_axes;
use relayout_ir::storage::ImageAxes;
use relayout_ir::types::Type;
use relayout_target_api::{Become, Cost, Fragment, Left, Made, NodeQuery, Offer, Piece, Refused, TargetForm};
use std::sync::Arc;

/// Every such form on a machine.
pub(crate) fn of_standard(machine: &Arc<Machine>) -> Vec<Box<dyn TargetForm>> {
    let m = || Arc::clone(machine);
    vec![
        Box::new(AsLoaded(m())),
        Box::new(Widened(m())),
        Box::new(Pooled(Reductions(m()))),
        Box::new(OneTap(Scales(m()))),
    ]
}

/// An offer as the runtime runs the op: blocks of images, all other operands as they are.
fn as_it_is(q: &NodeQuery<'_>, form: &'static str, offer: Offer) -> Option<Offer> {
    let node = q.graph.node(q.node);
    let Op::Onnx(op) = &node.op else { return None };
    let KernelLayouts { ins, outs } = offer.layouts;
    let ins = ins.into_iter().take(1).chain(std::iter::repeat(None)).take(node.inputs.len()).collect();
    let becomes = Become { op: op.clone(), opset: node.opset, operands: None, set: Vec::new(), remove: Vec::new() };
    Some(Offer { form, layouts: KernelLayouts { ins, outs }, becomes: Some(becomes), adds_zeros: false, ..offer })
}

/// Whether an offer is of images: what it leaves has four axes.
fn is_of_images(machine: &Machine, offer: &Offer) -> bool {
    let left = offer.layouts.outs.first().and_then(Option::as_ref);
    left.is_some_and(|l| machine.is_blocked_image(l))
}

/// Convolutions, pools and scaled images that the runtime blocks as they are.
struct AsLoaded(Arc<Machine>);

const AS_LOADED: &str = "blocked_on_load";

impl TargetForm for AsLoaded {
    fn name(&self) -> &'static str {
        AS_LOADED
    }

    fn ops(&self) -> &'static [&'static str] {
        &[
            "Conv",
            "MaxPool",
            "AveragePool",
            "GlobalAveragePool",
            "GlobalMaxPool",
            "Resize",
            "Upsample",
            "BatchNormalization",
        ]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        if is_left_to_the_runtime(q) {
            return Vec::new();
        }
        let node = q.graph.node(q.node);
        let offers = match node.onnx() {
            Some("Conv") if runs_in_blocks(q.graph, q.node, q.is_constant, &self.0) => self.0.conv_kernels(q),
            Some("Resize" | "Upsample") if resizes(node) => self.0.resize_kernel(q, None).into_iter().collect(),
            Some("BatchNormalization") => self.normalized(q).into_iter().collect(),
            _ if runs_in_blocks(q.graph, q.node, q.is_constant, &self.0) => {
                self.0.pool_kernel(q, None).into_iter().collect()
            }
            _ => Vec::new(),
        };
        let of_images = offers.into_iter().filter(|offer| is_of_images(&self.0, offer));
        of_images.filter_map(|offer| as_it_is(q, AS_LOADED, offer)).collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        match q.graph.node(q.node).onnx()? {
            "Conv" => self.0.conv_as_loaded(q),
            "Resize" | "Upsample" => self.0.plain_resize(q),
            "BatchNormalization" => Scales(Arc::clone(&self.0)).plain(q),
            _ => self.0.plain_pool(q),
        }
    }
}

impl AsLoaded {
    /// A normalization in blocks, which the runtime makes a convolution of one tap.
    fn normalized(&self, q: &NodeQuery<'_>) -> Option<Offer> {
        let scales = Scales(Arc::clone(&self.0));
        scales.offer(q, ImageAxes::ORIGINS[0], None)
    }
}

impl Machine {
    /// What a convolution costs with its operand and result in ONNX's order, as the runtime runs it: in blocks with a reorder on each side, if it
    /// blocks it.
    fn conv_as_loaded(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let Some((axes, conv)) = conv_of(q) else { return self.conv_on_load(q) };
        let kernel = |form| Some(Cost::new(self.costs.conv_ns(&conv, form)?));
        let taken = on_load::takes(q.graph, q.graph.node(q.node), self.block.channels());
        if axes.h.is_none() || !taken {
            return kernel(ConvKernel::Plain);
        }
        self.isolated_conv(&conv)
    }
}

/// Convolutions of groups that the runtime does not block, as those of fewer and wider groups.
struct Widened(Arc<Machine>);

const WIDENED: &str = "wide_groups";

impl TargetForm for Widened {
    fn name(&self) -> &'static str {
        WIDENED
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Conv"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        if is_left_to_the_runtime(q) || runs_in_blocks(q.graph, q.node, q.is_constant, &self.0) {
            return Vec::new();
        }
        let Some(offer) = self.0.wide_conv(q).filter(|offer| is_of_images(&self.0, offer)) else { return Vec::new() };
        // One group of all channels has to be one that the runtime reorders.
        let channels = conv_of(q).map_or(0, |(_, conv)| conv.c);
        if !channels.is_multiple_of(4) && channels >= self.0.block.channels() {
            return Vec::new();
        }
        let KernelLayouts { ins, outs } = offer.layouts;
        let ins = ins.into_iter().take(1).chain([None, None]).take(q.graph.node(q.node).inputs.len()).collect();
        vec![Offer { form: WIDENED, layouts: KernelLayouts { ins, outs }, ..offer }]
    }

    fn write(&self, piece: &Piece<'_>, _: &Offer) -> Result<Fragment, Refused> {
        let graph = piece.graph;
        let weights = graph.node(piece.node).operand(1);
        let wide = Wide::recognize(self.0.block, graph, piece.node).zip(weights);
        let (wide, weights) = wide.ok_or_else(|| Refused::new(piece, "can't be given wider groups"))?;
        let mut made = Fragment::new(piece, WIDENED);
        let filters = made.constant(format!("{}.wide", graph.value(weights).name), wide.weights);
        made.become_op(Made::same(piece).reading(1, filters).with("group", Attr::Int(wide.groups)));
        Ok(made)
    }
}

/// Means and maxima over all of an image, which the runtime takes out of blocks, as the pools that it leaves there.
struct Pooled(Reductions);

const POOLED: &str = "pooled_in_blocks";

impl TargetForm for Pooled {
    fn name(&self) -> &'static str {
        POOLED
    }

    fn ops(&self) -> &'static [&'static str] {
        self.0.ops()
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        if is_left_to_the_runtime(q) {
            return Vec::new();
        }
        let node = q.graph.node(q.node);
        let of = |axes: ImageAxes| {
            let [_, channels, ..] = image_of(q, node.operand(0)?, axes)?;
            channels.is_multiple_of(self.0.0.block.channels()).then_some(())?;
            let offer = self.0.offer(q, axes, None)?;
            if !keeps_axes(node) {
                // Means of tiles are rounded as well, and no op of the file.
                let whole = self.0.is_whole(q, axes)?;
                return whole.then_some(Offer { form: POOLED, ..offer });
            }
            let becomes = offer.becomes?;
            let becomes = Become { op: OpName::onnx(&becomes.op.name), opset: node.opset, ..becomes };
            Some(Offer { form: POOLED, becomes: Some(becomes), ..offer })
        };
        ImageAxes::of_images().filter_map(of).collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain(q)
    }

    fn write(&self, piece: &Piece<'_>, _: &Offer) -> Result<Fragment, Refused> {
        pooled(piece).ok_or_else(|| Refused::new(piece, "can't be a global pool"))
    }
}

/// The pool of an image, which lies channels first by now, and the Reshape that drops its rows and columns.
fn pooled(piece: &Piece<'_>) -> Option<Fragment> {
    let graph = piece.graph;
    let node = graph.node(piece.node);
    let x = node.operand(0)?;
    let image = graph.value(x);
    let order = piece.layouts.ins.first()?.as_ref().map_or(Some(vec![0, 1, 2, 3]), Layout::as_permutation)?;
    let axes = ImageAxes::of_images().find(|axes| axes.first()[..] == order[..])?;
    let name = if node.onnx() == Some("ReduceMax") { "GlobalMaxPool" } else { "GlobalAveragePool" };
    let mut made = Fragment::new(piece, POOLED);
    let stored = Layout::permutation(&order).ok()?;
    let read = || vec![stored.declared()];
    let mut shape = vec![Dim::ONE; axes.rank()];
    (shape[axes.n], shape[axes.c]) = (image.ty.shape()?.get(axes.n)?.clone(), image.ty.shape()?.get(axes.c)?.clone());
    let channels = shape[axes.c].as_const()?;
    let left = Left::row_major(made.named("pooled"), Type::tensor(DType::F32, shape)).stored(stored.clone());
    let pool = Made::op("", name, node.opset, [x.into()]).in_layouts(read(), read());
    let numbers = made.add(pool, left);
    let reshape = made.reshape(graph, numbers, &[0, channels], &Layout::row_major(2));
    made.become_op(reshape);
    Some(made)
}

/// Constant scales and shifts per channel, which the runtime takes out of blocks, as depthwise convolutions of one tap.
struct OneTap(Scales);

const ONE_TAP: &str = "one_tap";

impl TargetForm for OneTap {
    fn name(&self) -> &'static str {
        ONE_TAP
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Add", "Sub", "Mul", "Div"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        if is_left_to_the_runtime(q) {
            return Vec::new();
        }
        let constant = |v: &Option<_>| v.is_some_and(|v| (q.is_constant)(v));
        let node = q.graph.node(q.node);
        if node.inputs.iter().filter(|v| constant(v)).count() != 1 {
            return Vec::new();
        }
        let of = |axes: ImageAxes| {
            let [_, channels, ..] = image_of(q, node.result(0)?, axes)?;
            channels.is_multiple_of(4).then_some(())?;
            let (layouts, [n, c, h, w]) = self.0.layouts(q, axes, None)?;
            Scaled::recognize(q.graph, q.node, &layouts)?;
            let one_tap = ConvShape { n, h, w, ..ConvShape::same(c, c, [h, w], 1, 1).grouped(c) };
            let cost = Cost::new(self.0.0.costs.conv_ns(&one_tap, ConvKernel::Blocked)?);
            Some(Offer { form: ONE_TAP, layouts, cost, becomes: None, adds_zeros: false })
        };
        ImageAxes::of_images().filter_map(of).collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain(q)
    }

    fn write(&self, piece: &Piece<'_>, _: &Offer) -> Result<Fragment, Refused> {
        one_tap(piece).ok_or_else(|| Refused::new(piece, "can't be a convolution of one tap"))
    }
}

/// The convolution that a scale or a shift of an image is, whose result lies channels first by now.
fn one_tap(piece: &Piece<'_>) -> Option<Fragment> {
    let graph = piece.graph;
    let node = graph.node(piece.node);
    let slot = node.inputs.iter().position(|v| v.is_some_and(|v| graph.constant(v).is_none()))?;
    let x = node.operand(slot)?;
    let y = graph.value(node.result(0)?);
    let order = y.layout.as_permutation()?;
    let axes = ImageAxes::of_images().find(|axes| axes.first()[..] == order[..])?;
    let channels = y.ty.shape()?.get(axes.c)?.as_const()?;
    let affine = reading(graph, node, x, Some(axes.c), usize::try_from(channels).ok()?)?;
    let mut made = Fragment::new(piece, ONE_TAP);
    let floats = |numbers: &[f64], dims: &[i64]| Constant::floats(numbers.to_vec(), dims);
    let scale = made.constant(made.named("scale"), floats(&affine.scale, &[channels, 1, 1, 1]));
    let shift =
        (!affine.keeps_origin()).then(|| made.constant(made.named("shift"), floats(&affine.shift, &[channels])));
    let operands = [Some(x.into()), Some(scale), shift].into_iter().flatten();
    let image = || vec![(!y.layout.is_row_major()).then(|| y.layout.clone())];
    let conv = Made::op("", "Conv", node.opset, operands).in_layouts(image(), image());
    made.become_op(conv.with("group", Attr::Int(channels)).with("kernel_shape", Attr::Ints(vec![1, 1])));
    Some(made)
}
