//! What one node means for layouts, bound to its operands: a view, letters on axes, or opaque with a reason.
//!
//! A [`Bound`] signature speaks of *atoms*: one per axis letter of the instantiated signature. An implementation of the op is one
//! total order of its atoms; the order in which an operand or result is stored is the restriction of that order to its own
//! axes. So one operand's layout binds all the others, and nothing about a single op is coded anywhere else.

mod carry;
mod runs;

use crate::dim::Dim;
use crate::layout::{Layout, Refusal};
use crate::perm::inverse;
use std::fmt;

/// What a node means for layouts.
#[derive(Clone, Debug)]
pub enum Form {
    /// Moves no data in some spelling: the result's axes are the operand's, renamed or respelled.
    View(View),
    /// Axes carry letters.
    Axes(Box<Bound>),
    /// Values pass between the node and its bodies; each has one layout on both sides. Slots that no border names are
    /// row-major.
    Borders(Vec<Border>),
    /// A kernel of the target's dialect, which runs in these layouts and no others.
    Kernel(Box<KernelLayouts>),
    /// Row-major in, row-major out, for this reason.
    Opaque(String),
}

/// Layouts that a kernel reads and leaves, by slot; `None` for row-major.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLayouts {
    /// Operands.
    pub ins: Vec<Option<Layout>>,
    /// Results.
    pub outs: Vec<Option<Layout>>,
}

/// A value that crosses the border between a node and its bodies: the places where it is seen, all in one layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Border {
    /// The places.
    pub places: Vec<Place>,
}

/// One place where a value that crosses a border is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub at: At,
    /// Iterations are stacked along one more axis here, the first and outermost.
    pub stacked: bool,
}

/// Where a value that crosses a border is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Operand of the node.
    In(usize),
    /// Result of the node.
    Out(usize),
    /// Value that the node captures for its bodies.
    Capture(usize),
    /// Input of the body in this attribute.
    BodyInput(String, usize),
    /// Output of the body in this attribute.
    BodyOutput(String, usize),
    /// In the body in this attribute, the outer value that stands for this capture of the node.
    BodyOuter(String, usize),
}

impl Form {
    /// The form of a node that `canonicalize` has not seen.
    pub fn unbound() -> Form {
        Form::Opaque("not bound to a signature yet".to_owned())
    }

    /// Why the node is opaque, if it is.
    pub fn opaque_reason(&self) -> Option<&str> {
        match self {
            Form::Opaque(why) => Some(why),
            _ => None,
        }
    }
}

/// A relabelling of operand 0 as result 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The result is the operand.
    Same,
    /// Result axis `i` is operand axis `perm[i]`.
    Transpose(Vec<usize>),
    /// Same elements in row-major order, another shape (Reshape, Flatten, Squeeze, Unsqueeze).
    Reshape,
}

impl View {
    /// The result's layout if the operand's bytes are left where they are.
    ///
    /// # Errors
    /// Where no layout of the result spells the operand's arrangement.
    pub fn forward(&self, operand: &Layout, from: &[Dim], to: &[Dim]) -> Result<Layout, Refusal> {
        match self {
            View::Same => Ok(operand.clone()),
            View::Transpose(perm) => Ok(operand.transpose(perm)?),
            View::Reshape => operand.reshape(from, to),
        }
    }

    /// The operand's layout whose bytes read as this layout of the result.
    ///
    /// # Errors
    /// Where no layout of the operand spells it.
    pub fn backward(&self, result: &Layout, from: &[Dim], to: &[Dim]) -> Result<Layout, Refusal> {
        match self {
            View::Same => Ok(result.clone()),
            View::Transpose(perm) => Ok(result.transpose(&inverse(perm))?),
            View::Reshape => result.reshape(to, from),
        }
    }
}

/// What happens to the axis that a letter names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// In operands and results: an index that goes through.
    Carried,
    /// In operands only: summed over, reduced, looked up.
    Contracted,
    /// In results only.
    Produced,
    /// Goes through a sliding window.
    Windowed,
    /// Goes through, but each result element reads all of it (Softmax, `CumSum`) or its extent changes (Slice, Pad).
    Whole,
    /// Runs of it stand one after another, and each goes through (Concat, Split).
    Joined,
}

/// One axis letter of an instantiated signature.
#[derive(Clone, Debug)]
pub struct Atom {
    /// Its letter, numbered within a run: `n`, `s1`, `(g ci)`.
    pub name: String,
    /// What happens to it.
    pub role: Role,
    /// The op finds this axis by its position, so it has to stay there.
    pub pinned: bool,
}

/// Index into [`Bound::atoms`].
pub type AtomId = u16;

/// How an attribute or an operand speaks of axes of the first operand that has any (of the first result, where no operand has),
/// and is rewritten when they are stored in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renumber {
    /// An attribute holds one axis; the value is its default.
    AxisAttr(&'static str, i64),
    /// An attribute holds one axis of result 0; the value is its default.
    ResultAxisAttr(&'static str, i64),
    /// An operand holds one axis.
    AxisInput(usize),
    /// An operand holds one axis; where it is left out, the default is written out.
    AxisInputOr(usize, i64),
    /// An attribute lists axes; absent, it means all of them in order, or none, as the op says; then nothing is rewritten
    /// unless `implicit`, where an absent list means 0, 1, 2, … for as many as the first operand's rank.
    AxesAttr(&'static str, Implicit),
    /// An operand lists axes.
    AxesInput(usize, Implicit),
    /// An attribute has this many runs of one entry per axis, integers or floats.
    PerAxisAttr(&'static str, usize),
    /// An operand has this many runs of one entry per axis; one that is there but empty says nothing.
    PerAxisInput(usize, usize),
    /// An attribute has a letter per axis of every operand and result, as Einsum's equation.
    Letters(&'static str),
    /// An operand has one entry per axis, and before those others that stay where they are.
    TrailingInput(usize),
    /// The result lists the extents of operand 0 (Shape).
    Extents,
}

/// What an absent list of axes means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implicit {
    /// Every axis alike: nothing to write.
    All,
    /// Axes 0, 1, 2, … in step with the entries of another operand or attribute: to be written out.
    Leading,
    /// These axes: to be written out.
    These(&'static [i64]),
}

/// A signature bound to a node: which atom each axis of each operand and result is.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The letters, in their ONNX order.
    pub atoms: Vec<Atom>,
    /// Per operand slot, the atom of each axis; `None` for operands that are read as they are (scalars, lists of axes).
    pub operands: Vec<Option<Vec<AtomId>>>,
    /// Per result slot.
    pub results: Vec<Option<Vec<AtomId>>>,
    /// Per operand slot: whether its run is shorter than elsewhere, so that the op aligns it at its end and broadcasts it.
    pub aligned: Vec<bool>,
    /// Atoms that take the place of another in the results (Gather's index axes), kept together and in order.
    pub substitute: Option<(AtomId, Vec<AtomId>)>,
    /// The only orders of operand 0's axes in which runtimes compute the op, outermost first; `None` for any.
    pub orders: Option<Vec<Vec<usize>>>,
    /// What is rewritten on export.
    pub renumber: Vec<Renumber>,
    /// The letters of the signature this was bound from.
    pub text: &'static str,
}

/// A slot of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Operand.
    In(usize),
    /// Result.
    Out(usize),
}

/// A total order of a node's atoms, outermost first.
pub type AtomOrder = Vec<AtomId>;

impl Bound {
    /// Atoms of a slot's axes, in ONNX order.
    pub fn axes(&self, slot: Slot) -> Option<&[AtomId]> {
        match slot {
            Slot::In(i) => self.operands.get(i)?.as_deref(),
            Slot::Out(i) => self.results.get(i)?.as_deref(),
        }
    }

    /// Every slot with axes, operands first.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let ins = self.operands.iter().enumerate().filter(|(_, a)| a.is_some()).map(|(i, _)| Slot::In(i));
        ins.chain(self.results.iter().enumerate().filter(|(_, a)| a.is_some()).map(|(i, _)| Slot::Out(i)))
    }

    /// The order that ONNX's own axis order spells.
    pub fn identity(&self) -> AtomOrder {
        (0..self.atoms.len() as AtomId).collect()
    }

    /// The order in which this slot is stored under `order`: logical axes, outermost first. `None` for slots without axes.
    pub fn restrict(&self, order: &[AtomId], slot: Slot) -> Option<Vec<usize>> {
        let axes = self.axes(slot)?;
        Some(order.iter().filter_map(|a| axes.iter().position(|b| b == a)).collect())
    }

    /// The order of all atoms in which `slot` is stored as `stored` (logical axes, outermost first): atoms that the slot
    /// lacks follow the atom that precedes them in ONNX order. `None` if the op can't run in it.
    pub fn order_from(&self, slot: Slot, stored: &[usize]) -> Option<AtomOrder> {
        let axes = self.axes(slot)?;
        if stored.len() != axes.len() {
            return None;
        }
        let mut order: AtomOrder = stored.iter().map(|&i| axes.get(i).copied()).collect::<Option<_>>()?;
        for atom in 0..self.atoms.len() as AtomId {
            if order.contains(&atom) {
                continue;
            }
            let at = self.place_of_missing(atom, &order);
            order.insert(at, atom);
        }
        self.allows(&order).then_some(order)
    }

    /// Where an atom that a slot lacks goes: before those that take its place, or after the one it follows in ONNX order.
    fn place_of_missing(&self, atom: AtomId, order: &[AtomId]) -> usize {
        let position = |of: AtomId| order.iter().position(|&a| a == of);
        let substitutes = self.substitute.as_ref().filter(|(of, _)| *of == atom);
        if let Some(first) = substitutes.and_then(|(_, atoms)| position(*atoms.first()?)) {
            return first;
        }
        // Where the op finds its letters anywhere, what a slot lacks goes behind all that stand before it in the others.
        if self.renumber.iter().any(|what| matches!(what, Renumber::Letters(_))) {
            let slots = self.operands.iter().chain(&self.results).flatten().filter(|axes| axes.contains(&atom));
            let before = slots.flat_map(|axes| axes.iter().copied().take_while(|a| *a != atom));
            return before.filter_map(position).max().map_or(0, |i| i + 1);
        }
        atom.checked_sub(1).and_then(position).map_or(0, |i| i + 1)
    }

    /// Whether the op runs with its atoms in this order: pinned ones at their place, substitutes together, operand 0 in an
    /// order that runtimes compute.
    pub fn allows(&self, order: &[AtomId]) -> bool {
        // An order of all atoms has every slot's axes; without a pinned one there is nothing to look for, in as many slots as
        // a Sum may have.
        let free = order.len() == self.atoms.len() && !self.atoms.iter().any(|atom| atom.pinned);
        let pinned = free
            || self.slots().all(|slot| {
                let (Some(axes), Some(stored)) = (self.axes(slot), self.restrict(order, slot)) else { return true };
                stored.len() == axes.len()
                    && stored
                        .iter()
                        .enumerate()
                        .all(|(at, &axis)| at == axis || !self.atoms[axes[axis] as usize].pinned)
            });
        pinned && self.keeps_substitutes(order) && self.is_computed(order)
    }

    fn is_computed(&self, order: &[AtomId]) -> bool {
        let Some(orders) = &self.orders else { return true };
        self.restrict(order, Slot::In(0)).is_some_and(|stored| orders.contains(&stored))
    }

    fn keeps_substitutes(&self, order: &[AtomId]) -> bool {
        let Some((of, atoms)) = &self.substitute else { return true };
        let Some(at) = order.iter().position(|a| a == of) else { return false };
        order.get(at + 1..=at + atoms.len()) == Some(atoms.as_slice())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |slots: &[Option<Vec<AtomId>>]| {
            let each = slots.iter().map(|s| match s {
                None => "_".to_owned(),
                Some(axes) => {
                    let names: Vec<&str> = axes.iter().map(|&a| self.atoms[a as usize].name.as_str()).collect();
                    names.join(" ")
                }
            });
            each.collect::<Vec<_>>().join(", ")
        };
        write!(f, "{} -> {}", side(&self.operands), side(&self.results))
    }
}
