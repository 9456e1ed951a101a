//! Normalizations over groups of whole blocks of channels: the bytes of a group are one row, which `InstanceNormalization` reads as
//! they lie, between two Reshapes. It reads the pixels of a group in another order, which changes nothing but the rounding. Scales per
//! channel are a convolution of one tap behind it.

use super::{Norm, Priced, ROW_PASSES};
use crate::ort_cpu::machine::Machine;
use crate::ort_cpu::nodes::{become_one_tap, reshaped};
use crate::shared::group_norm;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::Graph;
use relayout_ir::types::Type;
use relayout_target_api::{
    Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Raise, Recognized, Refused, TargetForm,
};
use std::sync::Arc;

/// The form's name.
pub(super) const FORM: &str = "blocked_norm_of_rows";

/// Normalizations of rows of blocked bytes.
pub(in super::super) struct NormsOfRows(pub(in super::super) Arc<Machine>);

impl TargetForm for NormsOfRows {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        Priced::recognize(&self.0, q).map_or_else(Vec::new, |norm| norm.offers(q, FORM))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        Priced::recognize(&self.0, q).map(|norm| norm.plain())
    }

    fn recognizes(&self) -> &'static [&'static str] {
        group_norm::OPS
    }

    fn raises(&self, graph: &Graph, piece: &Recognized) -> Option<Raise> {
        group_norm::raise(graph, piece, self.0.block.channels())
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let norm = Norm::recognize(piece.graph, piece.node);
        let made = norm.and_then(|norm| write(&norm, piece));
        made.ok_or_else(|| Refused::new(piece, "can't be a normalization of rows"))
    }
}

/// What they cost.
pub(super) fn cost(priced: &Priced<'_>) -> Option<Cost> {
    let whole = priced.norm.each().unsigned_abs().is_multiple_of(priced.machine.block.channels());
    let affine = if priced.norm.per_group { Cost::ZERO } else { priced.one_tap()? };
    whole.then(|| priced.row().times(ROW_PASSES) + affine)
}

fn write(norm: &Norm, piece: &Piece<'_>) -> Option<Fragment> {
    let (graph, c, [h, w]) = (piece.graph, norm.channels, norm.pixels?);
    let groups = norm.op.groups;
    let mut made = Fragment::new(piece, FORM);
    let rows = vec![norm.images.clone(), Dim::from(groups), Dim::from(norm.each() * h * w)];
    let apart = reshaped(&mut made, graph, norm.x, &[0, groups, -1], rows.clone());
    let [scale, bias] = if norm.per_group {
        norm.affine.map(Operand::Outer)
    } else {
        let neutral = [("unit", 1.0), ("zero", 0.0)];
        neutral.map(|(what, x)| made.constant(made.named(what), Constant::filled(DType::F32, &[groups], x)))
    };
    let even = Made::op("", "InstanceNormalization", 0, [apart, scale, bias]);
    let even = even.with("epsilon", Attr::Float(norm.op.epsilon));
    let even = made.add(even, Left::row_major(made.named("even"), Type::tensor(DType::F32, rows)));
    let back = [0, c, h, w];
    if norm.per_group {
        let extents = made.constant(made.named("shape"), Constant::ints(&back));
        let reshape = Made::op("", "Reshape", 0, [even, extents]);
        made.become_op(reshape.in_layouts(Vec::new(), piece.layouts.outs.clone()));
        return Some(made);
    }
    let affine = norm.per_channel(graph)?;
    let scale = made.constant(made.named("scale"), Constant::floats(affine.scale, &[c, 1, 1, 1]));
    let shift = made.constant(made.named("shift"), Constant::floats(affine.shift, &[c]));
    let image = [c, h, w].map(Dim::from);
    let shape = std::iter::once(norm.images.clone()).chain(image.clone()).collect();
    let even = reshaped(&mut made, graph, even, &back, shape);
    let [c, h, w] = image;
    become_one_tap(&mut made, piece, vec![even, scale, shift], 1, &[Dim::ONE, c, h, w]);
    Some(made)
}
