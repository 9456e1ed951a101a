//! Resizes of images that lie channels last, for providers that run `Resize` as the file has it.
//!
//! *Nearest* picks pixels, and the provider's kernel does so in any order of axes: extents or scales are put in that order.
//!
//! *Linear* kernels of these providers interpolate along the two inner axes, whatever they are. Each row and each column of a result is a
//! sum of two of the image, so channels last a Resize is two products with constant matrices ([`weights`]):
//!
//! ```text
//! [H', H] x [N, H, W C] -> [N, H', W C]        [W', W] x [N, H', W, C] -> [N, H', W', C]
//! ```
//!
//! Of one pixel, as a pool over the whole image leaves it, each element of the result is that pixel: an Expand.

mod weights;

use super::wrapped::{channels_last, to_last};
use super::{Rates, is_half};
use crate::shared::forms::product::only_result;
use relayout_eval::{Numbers, encode};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::text_or_default;
use relayout_ir::types::Type;
use relayout_target_api::{
    Cost, Counted, Fragment, Left, Made, NodeQuery, Numerics, Offer, Operand, Piece, Refused, Rule, TargetForm,
};
use std::sync::Arc;
use weights::Line;

/// The form's name.
const FORM: &str = "resized";

/// The rule.
const RULE: Rule = Rule {
    name: "interpolate_by_products",
    equation: "Resize(x) = MatMul(columns, MatMul(rows, x))",
    condition: "linear, of float32 or halves, channels kept; extents are numbers; it is cheaper together with the moves around it",
    buys: "cost: the Transposes of an image that is interpolated channels first",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// Most extents of an image.
const MOST_AXES: usize = 5;
/// A matrix has no more elements than this.
const MOST_WEIGHTS: i64 = 1 << 20;
/// Multiplications of a product in the time of an element that a Transpose writes.
pub(super) const PRODUCTS_PER_ELEMENT: u64 = 20;

/// Resizes channels last.
pub(super) struct Resized(pub(super) Arc<Rates>);

impl TargetForm for Resized {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Resize"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(resize) = Resize::recognize(q.graph, q.node).filter(|_| !q.in_body) else { return Vec::new() };
        let last = channels_last(resize.rank);
        let mut ins = vec![None; q.graph.node(q.node).inputs.len()];
        if let Some(first) = ins.first_mut() {
            first.clone_from(&last);
        }
        let products = resize.linear.as_ref().filter(|linear| !linear.is_of_one_pixel());
        let cost = products.map_or(Cost::ZERO, |linear| self.interpolation(q, linear)[1]);
        let adds_zeros = products.is_some();
        vec![Offer { form: FORM, layouts: KernelLayouts { ins, outs: vec![last] }, cost, becomes: None, adds_zeros }]
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let resize = Resize::recognize(q.graph, q.node).filter(|_| !q.in_body)?;
        let linear = resize.linear.filter(|linear| !linear.is_of_one_pixel())?;
        Some(self.interpolation(q, &linear)[0])
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &[&RULE]
    }

    fn rule(&self, offer: &Offer) -> Option<&'static Rule> {
        offer.adds_zeros.then_some(&RULE)
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let resize = Resize::recognize(piece.graph, piece.node);
        let made = resize.and_then(|resize| match &resize.linear {
            Some(linear) if linear.is_of_one_pixel() => linear.expand(piece),
            Some(linear) => linear.write(piece, &resize),
            None => resize.pick(piece),
        });
        made.ok_or_else(|| Refused::new(piece, "can't be resized channels last"))
    }
}

impl Resized {
    /// What a Resize and two products in its place take beyond the faster way.
    fn interpolation(&self, q: &NodeQuery<'_>, linear: &Linear) -> [Cost; 2] {
        let images = q.graph.node(q.node).operand(0).and_then(|x| q.sizes.shape(q.graph, x));
        let images = images.and_then(|shape| shape.first().copied()).unwrap_or(1);
        let [rows, columns] = &linear.lines;
        let each = |extents: [i64; 3]| extents.iter().fold(images, |a, &b| a.saturating_mul(b.unsigned_abs()));
        let products = [
            [rows.from.unsigned_abs(), each([rows.to, columns.from, linear.channels])],
            [columns.from.unsigned_abs(), each([rows.to, columns.to, linear.channels])],
        ];
        self.0.interpolation(products, is_half(Some(linear.dtype)))
    }
}

/// A Resize of images whose channels are kept.
struct Resize {
    x: ValueId,
    rank: usize,
    /// Where it interpolates.
    linear: Option<Linear>,
}

/// Rows and columns that are interpolated.
struct Linear {
    lines: [Line; 2],
    channels: i64,
    dtype: DType,
}

/// The slots of scales and sizes.
fn slots(opset: i64) -> &'static [usize] {
    if opset < 11 { &[1] } else { &[2, 3] }
}

impl Resize {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Resize> {
        let node = graph.node(n);
        let (x, y) = (node.operand(0)?, only_result(node)?);
        let rank = graph.value(x).ty.rank().filter(|rank| (3..=MOST_AXES).contains(rank))?;
        let told: Vec<&Constant> =
            slots(node.opset).iter().filter_map(|&slot| graph.constant(node.operand(slot)?)).collect();
        let full = |c: &&Constant| c.dims == [i64::try_from(rank).unwrap_or(0)];
        let mode = text_or_default(node, "coordinate_transformation_mode")?;
        let plain = node.ints("axes").is_none()
            && !node.flag("antialias")
            && !node.flag("exclude_outside")
            && mode != "tf_crop_and_resize"
            && node.str("keep_aspect_ratio_policy").is_none_or(|policy| policy == "stretch");
        let scales = told.iter().copied().find(full).filter(|_| plain)?;
        let kept = keeps_channels(graph, x, y, scales)?;
        let linear = match text_or_default(node, "mode")? {
            "nearest" => None,
            "linear" if rank == 4 && node.opset >= 11 => Some(Linear::recognize(graph, [x, y], scales, mode)?),
            _ => return None,
        };
        kept.then_some(Resize { x, rank, linear })
    }

    /// The same op with what it is told of each axis in the order of the axes.
    fn pick(&self, piece: &Piece<'_>) -> Option<Fragment> {
        let (graph, node) = (piece.graph, piece.graph.node(piece.node));
        let stored = piece.layouts.outs.first().cloned().flatten()?;
        let mut made = Fragment::new(piece, FORM);
        let mut op = Made::same(piece);
        for &slot in slots(node.opset) {
            let Some(told) = node.operand(slot).and_then(|v| graph.constant(v)) else { continue };
            if told.elems() == Some(self.rank as u64) {
                let turned = turned(told)?;
                op = op.reading(slot, made.constant(made.named("extents"), turned));
            }
        }
        made.become_op(op.in_layouts(vec![Some(stored.clone())], vec![Some(stored)]));
        Some(made)
    }
}

/// What is told of each axis, channels last.
fn turned(told: &Constant) -> Option<Constant> {
    let order = to_last(usize::try_from(*told.dims.first()?).ok()?);
    let at = |axis: &i64| usize::try_from(*axis).ok();
    if told.dtype == DType::I64 {
        let sizes = told.to_ints(MOST_AXES)?;
        let turned: Option<Vec<i64>> = order.iter().map(|axis| sizes.get(at(axis)?).copied()).collect();
        return Some(Constant::ints(&turned?));
    }
    let scales = told.to_floats(MOST_AXES)?;
    let turned: Option<Vec<f64>> = order.iter().map(|axis| scales.get(at(axis)?).copied()).collect();
    Some(Constant::floats(turned?, &told.dims))
}

/// Whether batch and channels are as they were.
fn keeps_channels(graph: &Graph, x: ValueId, y: ValueId, told: &Constant) -> Option<bool> {
    if told.dtype == DType::I64 {
        let (from, to) = (graph.value(x).ty.shape()?, graph.value(y).ty.shape()?);
        return Some(from.get(..2)? == to.get(..2)?);
    }
    Some(told.to_floats(MOST_AXES)?.iter().take(2).all(|scale| scale.total_cmp(&1.0).is_eq()))
}

impl Linear {
    fn recognize(graph: &Graph, [x, y]: [ValueId; 2], told: &Constant, mode: &str) -> Option<Linear> {
        let extents = |v: ValueId| -> Option<Vec<i64>> {
            graph.value(v).ty.shape()?.get(1..)?.iter().map(Dim::as_const).collect()
        };
        let (from, to) = (extents(x)?, extents(y)?);
        let scales = (told.dtype != DType::I64).then(|| told.to_floats(MOST_AXES)).flatten();
        let line = |axis: usize| {
            let scale = scales.as_ref().and_then(|scales| scales.get(axis + 1).copied());
            Line::new(*from.get(axis)?, *to.get(axis)?, scale, mode)
        };
        let lines = [line(1)?, line(2)?];
        let dtype = graph.value(x).ty.dtype()?;
        let fits = lines.iter().all(|line| line.to.checked_mul(line.from).is_some_and(|n| n <= MOST_WEIGHTS));
        let float = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        (fits && float).then_some(Linear { lines, channels: *from.first()?, dtype })
    }

    fn write(&self, piece: &Piece<'_>, resize: &Resize) -> Option<Fragment> {
        let graph = piece.graph;
        let images = graph.value(resize.x).ty.shape()?.first()?.clone();
        let stored = piece.layouts.outs.first().cloned().flatten()?;
        let [rows, columns] = &self.lines;
        let ty = |dims: &[i64]| {
            let dims = std::iter::once(images.clone()).chain(dims.iter().map(|&d| Dim::from(d))).collect();
            Type::tensor(self.dtype, dims)
        };
        let wide = columns.from.checked_mul(self.channels)?;
        let mut made = Fragment::new(piece, FORM);
        let flat = made.reshape(graph, resize.x.into(), &[0, rows.from, wide], &Layout::row_major(3));
        let flat = made.add(flat, Left::row_major(made.named("rows"), ty(&[rows.from, wide])));
        let by_rows = self.matrix(&mut made, rows, "of_rows")?;
        let first = Made::op("", "MatMul", 0, [by_rows, flat]);
        let first = made.add(first, Left::row_major(made.named("taller"), ty(&[rows.to, wide])));
        let image = [rows.to, columns.from, self.channels];
        let apart = made.reshape(graph, first, &[0, image[0], image[1], image[2]], &Layout::row_major(4));
        let apart = made.add(apart, Left::row_major(made.named("columns"), ty(&image)));
        let by_columns = self.matrix(&mut made, columns, "of_columns")?;
        made.become_op(Made::op("", "MatMul", 0, [by_columns, apart]).in_layouts(Vec::new(), vec![Some(stored)]));
        Some(made)
    }

    fn is_of_one_pixel(&self) -> bool {
        self.lines.iter().all(|line| line.from == 1)
    }

    /// One pixel, everywhere.
    fn expand(&self, piece: &Piece<'_>) -> Option<Fragment> {
        let stored = piece.layouts.outs.first().cloned().flatten()?;
        let [rows, columns] = self.lines.each_ref().map(|line| line.to);
        let mut made = Fragment::new(piece, FORM);
        let extents = made.constant(made.named("extents"), Constant::ints(&[1, rows, columns, 1]));
        let x = piece.graph.node(piece.node).operand(0)?;
        let op = Made::op("", "Expand", 0, [x.into(), extents]);
        made.become_op(op.in_layouts(vec![Some(stored.clone())], vec![Some(stored)]));
        Some(made)
    }

    fn matrix(&self, made: &mut Fragment, line: &Line, what: &str) -> Option<Operand> {
        let bytes = encode(&Numbers::F64(line.matrix()), self.dtype).ok()?;
        Some(made.constant(made.named(what), Constant::inline(self.dtype, vec![line.to, line.from], bytes.into())))
    }
}
