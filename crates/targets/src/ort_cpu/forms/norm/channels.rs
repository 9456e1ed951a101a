//! Normalizations over groups of channels by sums per channel: a global pool, a one-tap convolution that takes the mean away, a
//! convolution of the image with itself for the sums of squares, and a one-tap convolution that scales; between them small ops on a
//! number per channel. With `s` for a sum over the pixels of a channel and `g` for a mean over the channels of a group:
//!
//! ```text
//! d = x - g(s(x)) / HW                 global pool, convolution of one tap with the mean as its bias
//! v = g(s(d * d) + HW * epsilon)       depthwise convolution of `d` with itself as the filters, as large as the image
//! y = d * scale * sqrt(HW / v) + bias  convolution of one tap
//! ```
//!
//! The mean goes before anything is squared, so a large one costs no digits. Images of a batch have sums of their own, so
//! they become channels of one image. Constant scales and shifts that follow are those of the last convolution.

use super::super::scale::{By, Scaled, Scales};
use super::{Norm, Priced};
use crate::ort_cpu::costs::{Pool, PoolShape, Spread};
use crate::ort_cpu::machine::Machine;
use crate::ort_cpu::nodes::{become_one_tap, depthwise, reshaped};
use relayout_eval::Affine;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::op::NCHWC;
use relayout_ir::types::Type;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
pub(super) const FORM: &str = "blocked_norm_of_channels";
/// Most pixels whose squares one float32 sums up one after another: beyond them a sum begins to lose terms.
const MOST_PIXELS: u64 = 1 << 18;
/// Pool and convolution with itself, in percent of the pool.
const SUMS_PERCENT: u64 = 250;

/// Normalizations of blocked images by sums per channel.
pub(in super::super) struct NormsOfChannels(pub(in super::super) Arc<Machine>);

impl TargetForm for NormsOfChannels {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        Priced::recognize(&self.0, q).map_or_else(Vec::new, |norm| norm.offers(q, FORM))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let norm = Norm::recognize(piece.graph, piece.node);
        let made = norm.and_then(|norm| Writer::new(norm, piece)?.write());
        made.ok_or_else(|| Refused::new(piece, "can't be a normalization by sums per channel"))
    }
}

/// What they cost.
pub(super) fn cost(priced: &Priced<'_>, query: &NodeQuery<'_>) -> Option<Cost> {
    let costs = &priced.machine.costs;
    let [n, c, h, w] = priced.image;
    // Images of a batch become channels of one, and channels of a convolution are said in the file.
    if !priced.norm.images.is_const() || h.saturating_mul(w) > MOST_PIXELS {
        return None;
    }
    let pool = PoolShape { n, c, h, w, oh: 1, ow: 1, kernel: [h, w], stride: [1, 1] };
    let sums = costs.pool_ns(Pool::GlobalAverage, &pool, true).saturating_mul(SUMS_PERCENT) / 100;
    let small = small_ops(&priced.norm).map(Small::weight).sum();
    let each = costs.elementwise_ns("Relu", n.saturating_mul(c), Spread::Same);
    // Constant scales behind it are taken into its own, and are priced as one convolution already.
    let taps = if is_scaled_next(priced, query) { 1 } else { 2 };
    Some(Cost::new(sums) + priced.one_tap()?.times(taps) + Cost::new(each).times(small))
}

/// Whether the only reader of the result is a constant scale or shift per channel that has a blocked kernel.
fn is_scaled_next(priced: &Priced<'_>, query: &NodeQuery<'_>) -> bool {
    let Some(only) = query.graph.only_use(priced.norm.y) else { return false };
    let (scales, one) = (Scales(Arc::clone(priced.machine)), query.at(only.node));
    let constant = |offer: &Offer| offer.layouts.ins.iter().flatten().count() == 1;
    let named = query.graph.node(only.node).onnx().is_some_and(|name| scales.ops().contains(&name));
    named && scales.offers(&one).iter().any(constant)
}

/// An op of the chain besides the pool and the convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Small {
    /// Images of a batch as channels of one.
    Flat,
    /// Sums per channel, apart by groups.
    Apart,
    /// The mean of each group.
    Mean,
    /// The mean as what is added.
    Less,
    /// That as a bias.
    Shifts,
    /// The image as filters.
    Filters,
    Deviation,
    /// Scales of channels.
    Scales,
    /// These as filters.
    Taps,
    /// Channels of one image as images of a batch.
    Images,
}

/// The small ops, in their order: what is priced is what is written.
fn small_ops(norm: &Norm) -> impl Iterator<Item = Small> + use<> {
    use Small::{Apart, Deviation, Filters, Flat, Images, Less, Mean, Scales, Shifts, Taps};
    let (one_each, one_image) = (norm.each() == 1, norm.images.is_one());
    let all = [Flat, Apart, Mean, Less, Shifts, Filters, Apart, Mean, Deviation, Scales, Taps, Images];
    let there = move |small: &Small| match small {
        Mean => !one_each,
        Flat | Images => !one_image,
        _ => true,
    };
    all.into_iter().filter(there)
}

impl Small {
    /// Its op, and what its result is called.
    fn told(self) -> (&'static str, &'static str) {
        match self {
            Small::Flat => ("Reshape", "flat"),
            Small::Apart => ("Reshape", "apart"),
            Small::Mean => ("ReduceMean", "mean"),
            Small::Less => ("Sub", "less"),
            Small::Shifts => ("Reshape", "shifts"),
            Small::Filters => ("Reshape", "filters"),
            Small::Deviation => ("Sqrt", "deviation"),
            Small::Scales => ("Div", "scales"),
            Small::Taps => ("Reshape", "taps"),
            Small::Images => ("Reshape", "images"),
        }
    }

    /// What it takes, in element-wise ops of one operand on a number per channel. In a chain, where neither their code nor their
    /// operands are at hand, ops take several times what one of them does by itself. The sums of an image with a group per channel, of
    /// several channels in a group and of several images were fitted, so that the form is as fast as the original at the sizes at which
    /// it was measured to be, some 30,000 elements; how they are shared out among the ops was not measured.
    fn weight(self) -> u64 {
        match self {
            Small::Flat | Small::Images => 5,
            Small::Apart | Small::Shifts | Small::Filters | Small::Taps => 2,
            Small::Mean | Small::Less | Small::Deviation | Small::Scales => 6,
        }
    }
}

/// Writes one normalization.
struct Writer<'p> {
    norm: Norm,
    piece: &'p Piece<'p>,
    made: Fragment,
    /// Scale and bias per channel, with those that follow.
    affine: Affine,
    images: i64,
    pixels: [i64; 2],
    /// Small ops that are to come.
    small: Box<dyn Iterator<Item = Small>>,
}

impl<'p> Writer<'p> {
    fn new(norm: Norm, piece: &'p Piece<'p>) -> Option<Writer<'p>> {
        let made = Fragment::new(piece, FORM);
        let (affine, images, pixels) = (norm.per_channel(piece.graph)?, norm.images.as_const()?, norm.pixels?);
        let small = Box::new(small_ops(&norm));
        Some(Writer { norm, piece, made, affine, images, pixels, small })
    }

    fn write(mut self) -> Option<Fragment> {
        self.take_scales();
        let ([h, w], dims) = (self.pixels, self.dims());
        let wide = self.images * self.norm.channels;
        let flat = [1, wide, h, w].map(Dim::from);
        let mut x = self.norm.x.into();
        if self.images > 1 {
            self.expect(Small::Flat)?;
            x = reshaped(&mut self.made, self.piece.graph, x, &[1, wide, h, w], flat.to_vec());
        }
        let centred = self.centred(x, &flat)?;
        let filters = self.reshaped(Small::Filters, centred, &[wide, 1, h, w])?;
        let pixels = (h * w) as f64;
        let least = Constant::filled(DType::F32, &[wide], f64::from(self.norm.op.epsilon) * pixels);
        let least = self.constant("epsilon", least);
        let squares = self.depthwise([centred, filters, least], "squares", ([1, wide, 1, 1].map(Dim::from), [h, w]));
        let variance = self.per_group(squares)?;
        let deviation = self.op(Small::Deviation, vec![variance], &[dims[0], dims[1], 1])?;
        let scale: Vec<f64> = self.affine.scale.iter().map(|s| s * pixels.sqrt()).collect();
        let scale = self.constant("scale", Constant::floats(scale, &[1, dims[1], dims[2]]));
        let scale = self.op(Small::Scales, vec![scale, deviation], &dims)?;
        let taps = self.reshaped(Small::Taps, scale, &[wide, 1, 1, 1])?;
        let shift = self.affine.shift.repeat(usize::try_from(self.images).ok()?);
        let shift = self.constant("shift", Constant::floats(shift, &[wide]));
        if self.images > 1 {
            self.expect(Small::Images)?;
        }
        become_one_tap(&mut self.made, self.piece, vec![centred, taps, shift], self.images, &flat);
        self.small.next().is_none().then_some(self.made)
    }

    /// The images less the mean of each channel's group, as channels of one image of shape `flat`.
    fn centred(&mut self, x: Operand, flat: &[Dim; 4]) -> Option<Operand> {
        let (c, dims) = (self.norm.channels, self.dims());
        let wide = self.images * c;
        let ty = Type::tensor(DType::F32, [self.images, c, 1, 1].map(Dim::from).to_vec());
        let pool = Made::op(NCHWC, "GlobalAveragePool", 1, [self.norm.x.into()]);
        let pool = pool.in_layouts(self.piece.layouts.ins.iter().take(1).cloned().collect(), Vec::new());
        let means = self.made.add(pool, Left::row_major(self.made.named("means"), ty));
        let means = self.per_group(means)?;
        let zeros = self.constant("zero", Constant::filled(DType::F32, &[1, dims[1], dims[2]], 0.0));
        let less = self.op(Small::Less, vec![zeros, means], &dims)?;
        let less = self.reshaped(Small::Shifts, less, &[wide])?;
        let ones = self.constant("unit", Constant::filled(DType::F32, &[wide, 1, 1, 1], 1.0));
        Some(self.depthwise([x, ones, less], "centred", (flat.clone(), [1, 1])))
    }

    /// Constant scales and shifts per channel that alone read the result become its own.
    fn take_scales(&mut self) {
        let graph = self.piece.graph;
        let mut y = self.norm.y;
        while let Some((z, affine)) = scaled(graph, y) {
            self.made.take_in(z);
            self.affine = self.affine.then(&affine);
            y = z;
        }
    }

    /// Images, groups, and channels of each.
    fn dims(&self) -> [i64; 3] {
        [self.images, self.norm.op.groups, self.norm.each()]
    }

    /// Sums per image and channel as the mean of each group.
    fn per_group(&mut self, sums: Operand) -> Option<Operand> {
        let dims = self.dims();
        let sums = self.reshaped(Small::Apart, sums, &dims)?;
        if dims[2] == 1 {
            return Some(sums);
        }
        let mut mean = Made::op("", "ReduceMean", 0, [sums]);
        self.made.tell(&mut mean, "axes", &[2], self.piece.opset);
        self.add(Small::Mean, mean, &[dims[0], dims[1], 1])
    }

    fn constant(&mut self, what: &str, c: Constant) -> Operand {
        self.made.constant(self.made.named(what), c)
    }

    /// A depthwise convolution of one image, its channels in blocks, with filters of this size and a bias.
    fn depthwise(&mut self, operands: [Operand; 3], what: &str, (shape, kernel): ([Dim; 4], [i64; 2])) -> Operand {
        let channels = shape[1].as_const().unwrap_or(1);
        let conv = depthwise(&self.made, self.piece.graph, operands.to_vec(), channels, kernel);
        self.made.add(conv, Left::row_major(self.made.named(what), Type::tensor(DType::F32, shape.to_vec())))
    }

    fn reshaped(&mut self, small: Small, x: Operand, dims: &[i64]) -> Option<Operand> {
        let extents = self.constant(&format!("{}.shape", small.told().1), Constant::ints(dims));
        self.op(small, vec![x, extents], dims)
    }

    fn op(&mut self, small: Small, operands: Vec<Operand>, dims: &[i64]) -> Option<Operand> {
        self.add(small, Made::op("", small.told().0, 0, operands), dims)
    }

    fn add(&mut self, small: Small, made: Made, dims: &[i64]) -> Option<Operand> {
        self.expect(small)?;
        let ty = Type::tensor(DType::F32, dims.iter().map(|&d| Dim::from(d)).collect());
        Some(self.made.add(made, Left::row_major(self.made.named(small.told().1), ty)))
    }

    /// Takes the next small op off the list, which has to be this one.
    fn expect(&mut self, small: Small) -> Option<()> {
        (self.small.next()? == small).then_some(())
    }
}

/// The constant scale or shift per channel that alone reads a value: its result, and what it does.
fn scaled(graph: &Graph, y: ValueId) -> Option<(ValueId, Affine)> {
    let reader = graph.only_use(y)?.node;
    let Form::Kernel(layouts) = &graph.node(reader).form else { return None };
    match Scaled::recognize(graph, reader, layouts)? {
        Scaled { x, by: By::Constant(affine), .. } if x == y => Some((graph.node(reader).result(0)?, affine)),
        _ => None,
    }
}
