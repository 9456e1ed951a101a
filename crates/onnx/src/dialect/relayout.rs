//! Movement: functions that bring a value from one layout to another.

use super::body::{Body, Face, int_attribute, ints_attribute, reference, string_attribute};
use super::digits::{bare, nest, rearrange};
use super::spell::{Letters, letter, spell};
use super::{DialectError, FIRST_OPSET};
use crate::proto::{AttributeProto, FunctionProto, attribute_proto::AttributeType};
use relayout_ir::dim::Dim;
use relayout_ir::layout::{Factor, Layout};
use std::fmt::Write as _;

/// The function of moves that only put dims in another order.
pub const PERMUTE: &str = "Relayout";

/// A move of one value from a layout to another, as a call of the dialect.
///
/// Slots keep their numbers: slot `i` of an axis becomes slot `i` where the result has one, further slots of the result are
/// zero. So pad lanes that both layouts have are carried as they are.
///
/// ```
/// use relayout_onnx::dialect::Relayout;
/// let dims = [1, 20, 7, 7].map(Into::into);
/// let (nchw, blocked, nhwc) = ("NCHW".parse().unwrap(), "NCHW16c".parse().unwrap(), "NHWC".parse().unwrap());
/// assert_eq!(Relayout::new(&nchw, &nhwc, &dims).unwrap().name(), "Relayout");
/// assert_eq!(Relayout::new(&nchw, &blocked, &dims).unwrap().name(), "Relayout_NCHW_NCHW16c_roundC");
/// assert_eq!(Relayout::new(&blocked, &nhwc, &dims).unwrap().name(), "Relayout_NCHW16c_NHWC_cropC");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relayout {
    from: Layout,
    to: Layout,
    /// How the number of slots changes, per axis.
    changes: Vec<Change>,
    name: String,
}

/// How the number of slots of an axis changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    None,
    /// Rounded up to a multiple of this, the block of the result; computed.
    Round(u64),
    /// To more, as the call says.
    Fill(i64),
    /// To fewer, as the call says.
    Crop(i64),
}

impl Change {
    fn slots(self) -> Option<i64> {
        match self {
            Change::Fill(slots) | Change::Crop(slots) => Some(slots),
            _ => None,
        }
    }

    fn word(self) -> Option<&'static str> {
        Some(match self {
            Change::None => return None,
            Change::Round(_) => "round",
            Change::Fill(_) => "fill",
            Change::Crop(_) => "crop",
        })
    }
}

impl Relayout {
    /// The move of a value of this logical shape.
    ///
    /// # Errors
    /// [`DialectError`]: layouts of other ranks than the shape, unlike slot maps of more than one segment, and a symbolic axis
    /// whose number of slots changes in a way that can't be computed.
    pub fn new(from: &Layout, to: &Layout, shape: &[Dim]) -> Result<Relayout, DialectError> {
        for layout in [from, to] {
            if layout.rank() != shape.len() {
                let why = format!("the value has {} axes", shape.len());
                return Err(DialectError::Layout { layout: layout.to_string(), why });
            }
        }
        let changes: Vec<Change> =
            shape.iter().enumerate().map(|(axis, extent)| change(from, to, axis, extent)).collect::<Result<_, _>>()?;
        let strip = |layout: &Layout| {
            let why = "its digits spell no axis".to_owned();
            bare(layout).ok_or_else(|| DialectError::Layout { layout: layout.to_string(), why })
        };
        let mut relayout = Relayout { from: strip(from)?, to: strip(to)?, changes, name: PERMUTE.to_owned() };
        if relayout.perm().is_none() {
            relayout.name = relayout.spelled()?;
        }
        Ok(relayout)
    }

    /// Name of the function in the domain, the `op_type` of a call. Two moves have the same name only if their functions are
    /// the same.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The attributes of the call: `perm` of [`PERMUTE`], else `slots` where slots are cropped or filled.
    pub fn attributes(&self) -> Vec<AttributeProto> {
        if let Some(perm) = self.perm() {
            return vec![ints_attribute("perm", perm.iter().map(|&p| p as i64).collect())];
        }
        let slots: Vec<i64> = self.changes.iter().filter_map(|c| c.slots()).collect();
        if slots.is_empty() { Vec::new() } else { vec![ints_attribute("slots", slots)] }
    }

    /// The first operator set whose ops the body can be written in.
    pub fn first_opset(&self) -> i64 {
        let needs = self.changes.iter().map(|change| match change {
            Change::None => FIRST_OPSET,
            // Pad with pads that are computed.
            Change::Round(_) => 11,
            // Constant that takes a list from an attribute.
            Change::Fill(_) | Change::Crop(_) => 12,
        });
        needs.max().unwrap_or(FIRST_OPSET)
    }

    /// The function: input `X`, output `Y`, written in this operator set of the standard domain.
    ///
    /// # Errors
    /// [`DialectError::OpsetTooOld`].
    pub fn function(&self, opset: i64) -> Result<FunctionProto, DialectError> {
        let needs = self.first_opset();
        if opset < needs {
            return Err(DialectError::OpsetTooOld { function: self.name.clone(), needs, opset });
        }
        let mut body = Body::new(opset);
        let (y, attributes, doc) = if self.perm().is_some() {
            let y = body.node("Transpose", &["X"], vec![reference("perm", "perm", AttributeType::Ints)]);
            (y, vec!["perm".to_owned()], "Dims of X in another order: dim i of Y is dim perm[i] of X.".to_owned())
        } else {
            let attributes = self.attributes().into_iter().filter_map(|a| a.name).collect();
            (self.moves(&mut body)?, attributes, self.doc())
        };
        body.result(&y, "Y");
        let (inputs, outputs) = (vec!["X".to_owned()], vec!["Y".to_owned()]);
        Ok(body.finish(Face { name: self.name.clone(), inputs, outputs, attributes, doc, opset }))
    }

    /// The order of storage dims, if that is all that changes.
    fn perm(&self) -> Option<Vec<usize>> {
        if self.from.factors().len() != self.to.factors().len() || self.changes.iter().any(|c| *c != Change::None) {
            return None;
        }
        let place = |digit: &Factor| self.from.factors().iter().position(|have| have == digit);
        self.to.factors().iter().map(place).collect()
    }

    fn spelled(&self) -> Result<String, DialectError> {
        let rank = self.from.rank();
        let (from, to) = (spell(&self.from, Letters::Features)?, spell(&self.to, Letters::Features)?);
        let mut name = format!("{PERMUTE}_{from}_{to}");
        for (axis, change) in self.changes.iter().enumerate() {
            if let Some(word) = change.word() {
                let _ = write!(name, "_{word}{}", letter(Letters::Features, rank, axis));
            }
        }
        Ok(name)
    }

    fn doc(&self) -> String {
        let rank = self.from.rank();
        let spelled = |layout: &Layout| spell(layout, Letters::Features).unwrap_or_default();
        let mut doc = format!("X stored as {} to Y stored as {}", spelled(&self.from), spelled(&self.to));
        for (axis, change) in self.changes.iter().enumerate() {
            let axis = letter(Letters::Features, rank, axis);
            let _ = match change {
                Change::None => Ok(()),
                Change::Round(to) => write!(doc, "; {axis} gets slots of zero up to a multiple of {to}"),
                Change::Fill(_) => write!(doc, "; {axis} gets slots of zero up to its entry in `slots`"),
                Change::Crop(_) => write!(doc, "; {axis} loses slots down to its entry in `slots`"),
            };
        }
        doc.push('.');
        doc
    }

    /// Slots change where their axis is whole: before the move, after it, or between two moves.
    fn moves(&self, body: &mut Body) -> Result<String, DialectError> {
        let refuse = |layout: &Layout| DialectError::Layout {
            layout: layout.to_string(),
            why: format!("its digits and those of {} overlap", self.from),
        };
        let changed = |axis: usize| self.changes.get(axis).is_some_and(|c| *c != Change::None);
        let whole = |layout: &Layout, axis: usize| layout.block_of(axis) == 1;
        let axes = 0..self.from.rank();
        let before: Vec<usize> = axes.clone().filter(|&a| changed(a) && whole(&self.from, a)).collect();
        let after: Vec<usize> = axes.clone().filter(|&a| changed(a) && !whole(&self.from, a)).collect();
        let apart = |a: usize| !nest(&self.from, &self.to, a) || (changed(a) && !whole(&self.from, a));
        let merged: Vec<usize> = axes.filter(|&a| apart(a) && !whole(&self.to, a)).collect();
        let middle = merged_in(&self.to, &merged).ok_or_else(|| refuse(&self.to))?;
        let x = self.change(body, "X".to_owned(), &self.from, &before);
        let x = rearrange(body, x, &self.from, &middle).ok_or_else(|| refuse(&middle))?;
        let x = self.change(body, x, &middle, &after);
        rearrange(body, x, &middle, &self.to).ok_or_else(|| refuse(&self.to))
    }

    /// `x`, stored as `layout`, with the slots of these axes changed; they are whole in it.
    fn change(&self, body: &mut Body, x: String, layout: &Layout, axes: &[usize]) -> String {
        let place = |axis: usize| layout.factors().iter().position(|f| usize::from(f.axis) == axis);
        let of = |axis: usize| self.changes.get(axis).copied().unwrap_or(Change::None);
        let mut x = x;
        let picked = |wanted: fn(Change) -> bool| -> Vec<(usize, usize)> {
            axes.iter().filter(|&&a| wanted(of(a))).filter_map(|&a| Some((a, place(a)?))).collect()
        };
        let crops = picked(|c| matches!(c, Change::Crop(_)));
        if !crops.is_empty() {
            x = self.crop(body, &x, &crops);
        }
        let fills = picked(|c| matches!(c, Change::Fill(_)));
        if !fills.is_empty() {
            x = self.fill(body, &x, layout.factors().len(), &fills);
        }
        let mut multiples = vec![1; layout.factors().len()];
        for &axis in axes {
            if let (Change::Round(to), Some(at)) = (of(axis), place(axis))
                && let Some(multiple) = multiples.get_mut(at)
            {
                *multiple = to as i64;
            }
        }
        if multiples.iter().any(|&m| m != 1) { round(body, &x, &multiples) } else { x }
    }

    /// The entries of attribute `slots` for these axes.
    fn slots(&self, body: &mut Body, axes: &[(usize, usize)]) -> String {
        let listed: Vec<usize> =
            self.changes.iter().enumerate().filter(|(_, c)| c.slots().is_some()).map(|(axis, _)| axis).collect();
        let slots = body.node("Constant", &[], vec![reference("value_ints", "slots", AttributeType::Ints)]);
        if listed.len() == axes.len() {
            return slots;
        }
        let entries = axes.iter().filter_map(|(axis, _)| listed.iter().position(|l| l == axis)).map(|i| i as i64);
        let entries = body.ints(&entries.collect::<Vec<_>>());
        body.node("Gather", &[&slots, &entries], vec![int_attribute("axis", 0)])
    }

    fn crop(&self, body: &mut Body, x: &str, axes: &[(usize, usize)]) -> String {
        let ends = self.slots(body, axes);
        let starts = body.ints(&vec![0; axes.len()]);
        let places = body.ints(&axes.iter().map(|(_, at)| *at as i64).collect::<Vec<_>>());
        body.node("Slice", &[x, &starts, &ends, &places], vec![])
    }

    fn fill(&self, body: &mut Body, x: &str, rank: usize, axes: &[(usize, usize)]) -> String {
        let slots = self.slots(body, axes);
        let shape = body.node("Shape", &[x], vec![]);
        let both = body.node("Concat", &[&shape, &slots], vec![int_attribute("axis", 0)]);
        let entry = |at: usize| axes.iter().position(|(_, place)| *place == at).map_or(at, |i| rank + i);
        let picks = body.ints(&(0..rank).map(|at| entry(at) as i64).collect::<Vec<_>>());
        let wanted = body.node("Gather", &[&both, &picks], vec![int_attribute("axis", 0)]);
        let more = body.node("Sub", &[&wanted, &shape], vec![]);
        pad(body, x, rank, &more)
    }
}

/// `x` with zeros at the end of each dim, up to these multiples.
fn round(body: &mut Body, x: &str, multiples: &[i64]) -> String {
    let shape = body.node("Shape", &[x], vec![]);
    let below = body.node("Neg", &[&shape], vec![]);
    let by = body.ints(multiples);
    // The remainder has the sign of the divisor, so this is what is missing to the next multiple.
    let more = body.node("Mod", &[&below, &by], vec![]);
    pad(body, x, multiples.len(), &more)
}

/// `x` with so many zeros at the end of each dim.
fn pad(body: &mut Body, x: &str, rank: usize, more: &str) -> String {
    let none = body.ints(&vec![0; rank]);
    let pads = body.node("Concat", &[&none, more], vec![int_attribute("axis", 0)]);
    body.node("Pad", &[x, &pads], vec![string_attribute("mode", "constant")])
}

/// The layout with these axes whole, in the place of their outermost digits.
fn merged_in(layout: &Layout, axes: &[usize]) -> Option<Layout> {
    let merged = |f: &Factor| axes.contains(&usize::from(f.axis));
    let kept = layout.factors().iter().filter(|f| !merged(f) || f.modulo.is_none());
    let factors = kept.map(|f| if merged(f) { Factor::whole(f.axis) } else { *f });
    Layout::new(layout.rank(), factors, []).ok()
}

/// Slots of an axis.
fn slots_of(layout: &Layout, axis: usize, extent: &Dim) -> Option<Dim> {
    if let Some(segments) = layout.slot_map(axis) {
        return i64::try_from(segments.iter().map(|s| s.slots).sum::<u64>()).ok().map(Dim::from);
    }
    let block = Dim::from(i64::try_from(layout.block_of(axis)).ok()?);
    let blocks = extent.exact_div(&block).or_else(|| extent.ceil_div(block.as_const()?))?;
    blocks.checked_mul(&block)
}

fn change(from: &Layout, to: &Layout, axis: usize, extent: &Dim) -> Result<Change, DialectError> {
    for (layout, other) in [(from, to), (to, from)] {
        let scattered = layout.slot_map(axis).filter(|map| map.len() > 1);
        if scattered.is_some_and(|map| other.slot_map(axis) != Some(map)) {
            let why = format!("the pad slots of axis {axis} lie in several places, and {other} has them elsewhere");
            return Err(DialectError::Layout { layout: layout.to_string(), why });
        }
    }
    let (before, after) = (slots_of(from, axis, extent), slots_of(to, axis, extent));
    let unknown = || DialectError::UnknownSlots {
        axis,
        from: before.as_ref().map_or_else(|| "?".to_owned(), Dim::to_string),
        to: after.as_ref().map_or_else(|| "?".to_owned(), Dim::to_string),
    };
    let (Some(have), Some(want)) = (&before, &after) else { return Err(unknown()) };
    if have == want {
        return Ok(Change::None);
    }
    let block = to.block_of(axis);
    let rounded = i64::try_from(block).ok().and_then(|b| have.ceil_div(b)?.checked_mul(&Dim::from(b)));
    match (have.as_const(), want.as_const()) {
        // Slots of a whole axis are its extent, which its storage shape tells.
        _ if rounded.as_ref() == Some(want) && block > 1 => Ok(Change::Round(block)),
        (Some(have), Some(want)) if have < want => Ok(Change::Fill(want)),
        (Some(_), Some(want)) => Ok(Change::Crop(want)),
        _ => Err(unknown()),
    }
}
