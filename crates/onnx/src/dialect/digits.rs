//! From one order of digits to another: Reshape to the digits that both orders are made of, Transpose, Reshape.
//!
//! Dims of a storage shape are the digits of its layout. Only the outermost digit of an axis depends on the shape, so what a
//! Reshape needs to know is computed from `Shape` of its operand, and a body fits every shape.

use super::body::Body;
use crate::proto::make::int_attribute;
use relayout_ir::layout::{Factor, Layout};

/// The layout without its slot maps: storage shapes speak of slots only.
pub(super) fn bare(layout: &Layout) -> Option<Layout> {
    Layout::new(layout.rank(), layout.factors().iter().copied(), []).ok()
}

/// Writes what brings `x`, stored as the digits `from`, to the digits `to` of the same slots. `None` if digits of the two
/// overlap (blocks of 16 and of 24), or if the layouts are of different ranks.
pub(super) fn rearrange(body: &mut Body, x: String, from: &Layout, to: &Layout) -> Option<String> {
    let fine = refined(from, to)?;
    let (split, wanted) = (spelled(from, &fine), spelled(to, &fine));
    let x = split_dims(body, x, from, &fine);
    let perm: Option<Vec<usize>> = wanted.iter().map(|digit| split.iter().position(|have| have == digit)).collect();
    let x = body.transpose(x, &perm?);
    Some(merge_dims(body, x, to, &fine))
}

/// Whether [`rearrange`] can do it for this axis.
pub(super) fn nest(from: &Layout, to: &Layout, axis: usize) -> bool {
    cuts(from, to, axis).is_some()
}

/// Where the digits of an axis begin on either side, ascending; `None` if one is no multiple of the one before it.
fn cuts(from: &Layout, to: &Layout, axis: usize) -> Option<Vec<u64>> {
    let both = from.factors().iter().chain(to.factors());
    let mut cuts: Vec<u64> = both.filter(|f| usize::from(f.axis) == axis).map(|f| f.div).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).all(|w| matches!(w, [a, b] if b.is_multiple_of(*a))).then_some(cuts)
}

/// The common digits of every axis, outermost first.
fn refined(from: &Layout, to: &Layout) -> Option<Vec<Factor>> {
    if from.rank() != to.rank() {
        return None;
    }
    let mut fine = Vec::new();
    for axis in 0..from.rank() {
        let cuts = cuts(from, to, axis)?;
        let axis = u8::try_from(axis).ok()?;
        let next = cuts.iter().skip(1).copied().map(Some).chain([None]);
        let digit = |(&div, next): (&u64, Option<u64>)| Factor { axis, div, modulo: next.map(|next| next / div) };
        let ascending: Vec<Factor> = cuts.iter().zip(next).map(digit).collect();
        fine.extend(ascending.into_iter().rev());
    }
    Some(fine)
}

/// The fine digits that one digit is made of, outermost first.
fn within(coarse: Factor, fine: &[Factor]) -> Vec<Factor> {
    let end = coarse.modulo.map(|m| m * coarse.div);
    let inside = |f: &&Factor| f.axis == coarse.axis && f.div >= coarse.div && end.is_none_or(|end| f.div < end);
    fine.iter().filter(inside).copied().collect()
}

/// A layout in fine digits.
fn spelled(layout: &Layout, fine: &[Factor]) -> Vec<Factor> {
    layout.factors().iter().flat_map(|&f| within(f, fine)).collect()
}

/// An extent of a Reshape's result.
#[derive(Clone, Copy)]
enum Extent {
    /// The operand's at this place, times this.
    Times(usize, u64),
    /// The operand's at this place, divided by this.
    Over(usize, u64),
    /// Known.
    Known(u64),
}

fn split_dims(body: &mut Body, x: String, from: &Layout, fine: &[Factor]) -> String {
    let mut dims = Vec::new();
    for (at, &coarse) in from.factors().iter().enumerate() {
        let digits = within(coarse, fine);
        let inner: u64 = digits.iter().skip(1).filter_map(|d| d.modulo).product();
        dims.extend(digits.iter().enumerate().map(|(i, d)| match d.modulo {
            Some(modulo) if i > 0 => Extent::Known(modulo),
            _ => Extent::Over(at, inner),
        }));
    }
    if dims.len() == from.factors().len() { x } else { reshape(body, &x, from.factors().len(), &dims) }
}

fn merge_dims(body: &mut Body, x: String, to: &Layout, fine: &[Factor]) -> String {
    let mut dims = Vec::new();
    let mut at = 0;
    for &coarse in to.factors() {
        let digits = within(coarse, fine);
        dims.push(Extent::Times(at, digits.iter().skip(1).filter_map(|d| d.modulo).product()));
        at += digits.len();
    }
    if dims.len() == at { x } else { reshape(body, &x, at, &dims) }
}

/// A Reshape of `x`, which has `rank` dims. Computed extents in place of -1: with those even a batch of none keeps its shape.
fn reshape(body: &mut Body, x: &str, rank: usize, dims: &[Extent]) -> String {
    let mut known: Vec<i64> = Vec::new();
    let mut places: Vec<i64> = Vec::new();
    for dim in dims {
        match *dim {
            Extent::Times(at, _) | Extent::Over(at, _) => places.push(at as i64),
            Extent::Known(extent) => {
                places.push((rank + known.len()) as i64);
                known.push(extent as i64);
            }
        }
    }
    let mut shape = body.node("Shape", &[x], vec![]);
    if !known.is_empty() {
        let known = body.ints(&known);
        shape = body.node("Concat", &[&shape, &known], vec![int_attribute("axis", 0)]);
    }
    if places.iter().enumerate().any(|(i, &p)| i as i64 != p) || places.len() != rank + known.len() {
        let places = body.ints(&places);
        shape = body.node("Gather", &[&shape, &places], vec![int_attribute("axis", 0)]);
    }
    let factor = |dim: &Extent, times: bool| match *dim {
        Extent::Times(_, by) if times => by as i64,
        Extent::Over(_, by) if !times => by as i64,
        _ => 1,
    };
    for (op, times) in [("Mul", true), ("Div", false)] {
        let by: Vec<i64> = dims.iter().map(|dim| factor(dim, times)).collect();
        if by.iter().any(|&by| by != 1) {
            let by = body.ints(&by);
            shape = body.node(op, &[&shape, &by], vec![]);
        }
    }
    body.node("Reshape", &[x, &shape], vec![])
}
