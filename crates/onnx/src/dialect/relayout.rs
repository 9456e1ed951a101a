//! Movement: functions that bring a value from one layout to another.
//!
//! A call says the move in its attributes, so one kernel is enough for all of them. In a file a name has one body. So moves that need
//! another body than `Relayout` has get a number in that file: [`numbered`].

use super::body::{Body, Face, reference};
use super::digits::{bare, nest, rearrange};
use super::spell::{Letters, letter, spell};
use super::{DOMAIN, DialectError, FIRST_OPSET};
use crate::proto::make::{int_attribute, ints_attribute, string_attribute};
use crate::proto::{AttributeProto, FunctionProto, NodeProto, attribute_proto::AttributeType};
use relayout_ir::dim::Dim;
use relayout_ir::layout::{Factor, Layout, LayoutNames, Segment};
use std::fmt::Write as _;

/// The op that a move is, the `op_type` of a call. In files it is that of moves that put dims in another order.
pub const RELAYOUT: &str = "Relayout";

/// The name of the function of the `number`-th kind of moves in a file, from 1: `Relayout`, `Relayout_2`, `Relayout_3`.
pub fn numbered(number: usize) -> String {
    if number < 2 { RELAYOUT.to_owned() } else { format!("{RELAYOUT}_{number}") }
}

/// Whether an op of the domain of this name is a move.
///
/// ```
/// use relayout_onnx::dialect::is_move;
/// assert!(is_move("Relayout") && is_move("Relayout_12"));
/// assert!(!is_move("Relayout_") && !is_move("Relu_NHWC"));
/// ```
pub fn is_move(name: &str) -> bool {
    let number = |rest: &str| rest.strip_prefix('_').is_some_and(|n| n.parse::<usize>().is_ok());
    name.strip_prefix(RELAYOUT).is_some_and(|rest| rest.is_empty() || number(rest))
}

/// A move of one value from a layout to another, as a call of the dialect.
///
/// Slots keep their numbers: slot `i` of an axis becomes slot `i` where the result has one, further slots of the result are
/// zero. So padding slots that both layouts have are carried as they are.
///
/// ```
/// use relayout_onnx::dialect::Relayout;
/// let dims = [1, 20, 7, 7].map(Into::into);
/// let (nchw, blocked, nhwc) = ("NCHW".parse().unwrap(), "NCHW16c".parse().unwrap(), "NHWC".parse().unwrap());
/// assert_eq!(Relayout::new(&nchw, &nhwc, &dims).unwrap().kind(), "");
/// assert_eq!(Relayout::new(&nchw, &blocked, &dims).unwrap().kind(), "NCHW_NCHW16c_roundC");
/// assert_eq!(Relayout::new(&blocked, &nhwc, &dims).unwrap().kind(), "NCHW16c_NHWC_cropC");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relayout {
    from: Layout,
    to: Layout,
    /// How the number of slots changes, per axis.
    changes: Vec<Change>,
    kind: String,
    attributes: Attributes,
}

/// What a call says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Attributes {
    /// The order of storage dims.
    Perm(Vec<i64>),
    /// The layouts; slots that axes are cropped to, -1 for others; slots that axes are filled to. Lists that say nothing are empty.
    Layouts { from: String, to: String, shape: Vec<i64>, slots: Vec<i64> },
}

/// How the number of slots of an axis changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    None,
    /// Rounded up to a multiple of this, the block of the result; computed.
    Round(u64),
    /// To more, as the call says.
    Fill {
        have: i64,
        want: i64,
    },
    /// To fewer, as the call says.
    Crop {
        have: i64,
        want: i64,
    },
}

impl Change {
    fn filled(self) -> Option<i64> {
        if let Change::Fill { want, .. } = self { Some(want) } else { None }
    }

    fn cropped(self) -> Option<i64> {
        if let Change::Crop { want, .. } = self { Some(want) } else { None }
    }

    fn word(self) -> Option<&'static str> {
        Some(match self {
            Change::None => return None,
            Change::Round(_) => "round",
            Change::Fill { .. } => "fill",
            Change::Crop { .. } => "crop",
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
        let (from, to) = (strip(from)?, strip(to)?);
        let (kind, attributes) = match permutation(&from, &to, &changes) {
            Some(perm) => (String::new(), Attributes::Perm(perm)),
            None => (spelled(&from, &to, &changes)?, layouts(&from, &to, &changes)?),
        };
        Ok(Relayout { from, to, changes, kind, attributes })
    }

    /// What tells functions apart: empty where dims are only put in another order, else the layouts and how slots change. Two moves
    /// have the same only if their functions are the same.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The attributes of the call, which say all of the move: `perm` alone where dims are only put in another order, else `from` and
    /// `to`, `shape` where slots are cropped, and `slots` where they are filled.
    pub fn attributes(&self) -> Vec<AttributeProto> {
        match &self.attributes {
            Attributes::Perm(perm) => vec![ints_attribute("perm", perm.clone())],
            Attributes::Layouts { from, to, shape, slots } => {
                let list = |name, list: &Vec<i64>| (!list.is_empty()).then(|| ints_attribute(name, list.clone()));
                let lists = list("shape", shape).into_iter().chain(list("slots", slots));
                [string_attribute("from", from), string_attribute("to", to)].into_iter().chain(lists).collect()
            }
        }
    }

    /// The call, but for the names of its operand, its result and itself. A file in which `Relayout` has another body calls it by a number.
    pub fn call(&self) -> NodeProto {
        NodeProto {
            op_type: Some(RELAYOUT.to_owned()),
            domain: Some(DOMAIN.to_owned()),
            attribute: self.attributes(),
            ..NodeProto::default()
        }
    }

    /// The first operator set whose ops the body can be written in.
    pub fn first_opset(&self) -> i64 {
        let needs = self.changes.iter().map(|change| match change {
            Change::None => FIRST_OPSET,
            // Pad with pads that are computed.
            Change::Round(_) => 11,
            // Constant that takes a list from an attribute.
            Change::Fill { .. } | Change::Crop { .. } => 12,
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
            let function = format!("{RELAYOUT} {}", self.kind);
            return Err(DialectError::OpsetTooOld { function, needs, opset });
        }
        let mut body = Body::new(opset);
        let (y, doc) = match self.attributes {
            Attributes::Perm(_) => {
                let y = body.node("Transpose", &["X"], vec![reference("perm", "perm", AttributeType::Ints)]);
                (y, "Dims of X in another order: dim i of Y is dim perm[i] of X.".to_owned())
            }
            Attributes::Layouts { .. } => (self.moves(&mut body)?, self.doc()),
        };
        body.result(&y, "Y");
        let (inputs, outputs) = (vec!["X".to_owned()], vec!["Y".to_owned()]);
        let attributes = self.attributes().into_iter().filter_map(|a| a.name).collect();
        Ok(body.finish(Face { name: RELAYOUT.to_owned(), inputs, outputs, attributes, doc, opset }))
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
                Change::Fill { .. } => write!(doc, "; {axis} gets slots of zero up to its entry in `slots`"),
                Change::Crop { .. } => write!(doc, "; {axis} loses slots down to its entry in `shape`"),
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
        let crops = picked(|c| matches!(c, Change::Crop { .. }));
        if !crops.is_empty() {
            x = self.crop(body, &x, &crops);
        }
        let fills = picked(|c| matches!(c, Change::Fill { .. }));
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

    /// Entries of a list of so many that the call gives.
    fn entries(body: &mut Body, attribute: &str, length: usize, entries: &[usize]) -> String {
        let list = body.node("Constant", &[], vec![reference("value_ints", attribute, AttributeType::Ints)]);
        if entries.len() == length {
            return list;
        }
        let entries = body.ints(&entries.iter().map(|&i| i as i64).collect::<Vec<_>>());
        body.node("Gather", &[&list, &entries], vec![int_attribute("axis", 0)])
    }

    fn crop(&self, body: &mut Body, x: &str, axes: &[(usize, usize)]) -> String {
        let entries: Vec<usize> = axes.iter().map(|(axis, _)| *axis).collect();
        let ends = Self::entries(body, "shape", self.changes.len(), &entries);
        let starts = body.ints(&vec![0; axes.len()]);
        let places = body.ints(&axes.iter().map(|(_, at)| *at as i64).collect::<Vec<_>>());
        body.node("Slice", &[x, &starts, &ends, &places], vec![])
    }

    fn fill(&self, body: &mut Body, x: &str, rank: usize, axes: &[(usize, usize)]) -> String {
        let filled = self.changes.iter().enumerate().filter(|(_, c)| c.filled().is_some());
        let filled: Vec<usize> = filled.map(|(axis, _)| axis).collect();
        let entries: Vec<usize> = axes.iter().filter_map(|(axis, _)| filled.iter().position(|f| f == axis)).collect();
        let slots = Self::entries(body, "slots", filled.len(), &entries);
        let shape = body.node("Shape", &[x], vec![]);
        let both = body.node("Concat", &[&shape, &slots], vec![int_attribute("axis", 0)]);
        let entry = |at: usize| axes.iter().position(|(_, place)| *place == at).map_or(at, |i| rank + i);
        let picks = body.ints(&(0..rank).map(|at| entry(at) as i64).collect::<Vec<_>>());
        let wanted = body.node("Gather", &[&both, &picks], vec![int_attribute("axis", 0)]);
        let more = body.node("Sub", &[&wanted, &shape], vec![]);
        pad(body, x, rank, &more)
    }
}

/// The order of storage dims, if that is all that changes.
fn permutation(from: &Layout, to: &Layout, changes: &[Change]) -> Option<Vec<i64>> {
    if from.factors().len() != to.factors().len() || changes.iter().any(|c| *c != Change::None) {
        return None;
    }
    let place = |digit: &Factor| from.factors().iter().position(|have| have == digit);
    to.factors().iter().map(|digit| place(digit).map(|at| at as i64)).collect()
}

/// The layouts and how slots change, in letters and digits.
fn spelled(from: &Layout, to: &Layout, changes: &[Change]) -> Result<String, DialectError> {
    let mut name = format!("{}_{}", spell(from, Letters::Features)?, spell(to, Letters::Features)?);
    for (axis, change) in changes.iter().enumerate() {
        if let Some(word) = change.word() {
            let _ = write!(name, "_{word}{}", letter(Letters::Features, from.rank(), axis));
        }
    }
    Ok(name)
}

/// The attributes of a move that changes digits or slots. Every slot that is kept is an index there, so that padding slots which both
/// layouts have are moved; slots beyond are those of a slot map, if they are not what a block is rounded up to.
fn layouts(from: &Layout, to: &Layout, changes: &[Change]) -> Result<Attributes, DialectError> {
    let [mut cropped, mut filled] = [Vec::new(), Vec::new()];
    for (axis, change) in (0u8..).zip(changes) {
        match *change {
            Change::None | Change::Round(_) => {}
            Change::Crop { have, want } => cropped.push((axis, segment(want, have))),
            Change::Fill { have, want } => filled.push((axis, segment(have, want))),
        }
    }
    let text = |layout: &Layout, maps: Vec<(u8, Vec<Segment>)>| {
        let told = Layout::new(layout.rank(), layout.factors().iter().copied(), maps);
        let told = told.map_err(|e| DialectError::Layout { layout: layout.to_string(), why: e.to_string() })?;
        Ok(told.display(&LayoutNames::features(layout.rank())).to_string())
    };
    let crops = !cropped.is_empty();
    let shape = if crops { changes.iter().map(|c| c.cropped().unwrap_or(-1)).collect() } else { Vec::new() };
    let slots = changes.iter().filter_map(|c| c.filled()).collect();
    Ok(Attributes::Layouts { from: text(from, cropped)?, to: text(to, filled)?, shape, slots })
}

/// So many indices at the start of so many slots.
fn segment(len: i64, slots: i64) -> Vec<Segment> {
    vec![Segment { len: len.unsigned_abs(), slots: slots.unsigned_abs() }]
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
        (Some(have), Some(want)) if have < want => Ok(Change::Fill { have, want }),
        (Some(have), Some(want)) => Ok(Change::Crop { have, want }),
        _ => Err(unknown()),
    }
}
