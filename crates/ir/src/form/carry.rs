//! Layouts with split or padded axes at the letters of an op: one operand's digits bind all other slots.

use super::{AtomId, Bound, Renumber, Role, Slot};
use crate::dim::Dim;
use crate::layout::{Factor, Layout, Segment};
use crate::storage::StorageRule;

/// A digit of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    atom: AtomId,
    div: u64,
    modulo: Option<u64>,
}

/// What the layout of one slot says of the letters, from which follow the layouts of the others.
struct Spread<'a> {
    bound: &'a Bound,
    rule: StorageRule,
    /// Letters whose axis is split or padded.
    broken: Vec<AtomId>,
    digits: Vec<Digit>,
    /// Slot maps of letters that have one.
    maps: Vec<(AtomId, &'a [Segment])>,
    /// The letter along which runs stand one after another, if it is broken.
    joined: Option<AtomId>,
    /// Letters of the slot, and their extents there.
    axes: &'a [AtomId],
    extents: &'a [Dim],
}

impl Spread<'_> {
    /// The layout of a slot of these letters and extents. `run` is its slot map along the joined letter.
    fn over(&self, axes: &[AtomId], dims: &[Dim], run: Option<&[Segment]>) -> Option<Layout> {
        if run.is_none() && dims.iter().all(Dim::is_one) {
            // One element is the same wherever it is repeated.
            return Some(Layout::row_major(axes.len()));
        }
        let lacks = self.rule == StorageRule::PerAxis && axes.len() != self.bound.atoms.len();
        if dims.len() != axes.len() || lacks {
            return None;
        }
        let of = |atom: AtomId| axes.iter().position(|&a| a == atom);
        let mut factors = Vec::with_capacity(self.digits.len());
        for digit in &self.digits {
            let Some(axis) = of(digit.atom) else { continue };
            let repeated = self.repeats(digit.atom, &dims[axis]);
            let broken = self.broken.contains(&digit.atom);
            if repeated && (self.rule == StorageRule::PerAxis || (broken && !dims[axis].is_one())) {
                return None;
            }
            match digit.modulo {
                Some(_) if repeated => {}
                None if repeated => factors.push(Factor::whole(axis as u8)),
                modulo => factors.push(Factor { axis: axis as u8, div: digit.div, modulo }),
            }
        }
        let maps = self.maps.iter().filter(|(atom, _)| self.joined != Some(*atom)).filter_map(|(atom, map)| {
            let axis = of(*atom)?;
            (!dims[axis].is_one()).then(|| (axis as u8, map.to_vec()))
        });
        let own = self.joined.and_then(of).zip(run).map(|(axis, map)| (axis as u8, map.to_vec()));
        Layout::new(axes.len(), factors, maps.chain(own)).ok()
    }

    /// Whether a slot of this extent has one element that is repeated along the letter: it has no digits then, and no place in a
    /// declaration per axis.
    fn repeats(&self, atom: AtomId, dim: &Dim) -> bool {
        let extent = self.axes.iter().position(|&a| a == atom).map(|axis| &self.extents[axis]);
        self.bound.atoms[usize::from(atom)].role != Role::Joined && extent.is_some_and(|e| e != dim)
    }
}

impl Bound {
    /// Layouts of every slot with axes when `slot` has this layout, whose axes may be split or padded. `None` where the op
    /// can't run so: a letter that is found by position, windowed, read whole or summed over is split or padded; blocks of a
    /// joined axis (Concat) do not divide every run; an attribute speaks of an axis that has no place of its own.
    ///
    /// Declared per digit, a list of one entry per axis can be said if the entry of a split axis says that it stays as it is.
    ///
    /// Declared per axis, bytes lie otherwise than the declaration says, so only ops that treat all elements alike run: every
    /// slot has all letters at full extent. `shape` has the logical shape of each slot.
    pub fn carry<'d>(
        &self,
        slot: Slot,
        layout: &Layout,
        rule: StorageRule,
        shape: impl Fn(Slot) -> Option<&'d [Dim]>,
    ) -> Option<Vec<(Slot, Layout)>> {
        self.carry_beside(slot, layout, |_| None, rule, shape)
    }

    /// Carries a layout as [`Bound::carry`] does, where the runs beside a run of a joined axis lie as `beside` has it; blocks of others are
    /// filled at their end.
    pub fn carry_beside<'d>(
        &self,
        slot: Slot,
        layout: &Layout,
        beside: impl Fn(Slot) -> Option<&'d Layout>,
        rule: StorageRule,
        shape: impl Fn(Slot) -> Option<&'d [Dim]>,
    ) -> Option<Vec<(Slot, Layout)>> {
        let axes = self.axes(slot)?;
        let own = shape(slot)?;
        if layout.rank() != axes.len() || own.len() != axes.len() || self.substitute.is_some() {
            return None;
        }
        let broken: Vec<AtomId> = (0..axes.len())
            .filter(|&axis| layout.block_of(axis) != 1 || layout.slot_map(axis).is_some())
            .map(|axis| axes[axis])
            .collect();
        let full = (0..axes.len()).all(|axis| {
            let block = Dim::from(layout.block_of(axis) as i64);
            layout.slot_map(axis).is_none() && own[axis].exact_div(&block).is_some()
        });
        // Declared per digit, nothing reads what has pad slots between its runs.
        let joined = self.joined().filter(|atom| rule == StorageRule::PerAxis && broken.contains(atom));
        let runs = match joined {
            Some(atom) => self.runs(atom, (slot, layout), &beside, &shape)?,
            None => Vec::new(),
        };
        let breaks = |atom: AtomId| {
            let pinned = self.atoms[usize::from(atom)].pinned;
            if joined == Some(atom) { !pinned } else { self.breaks(atom, layout, axes, &shape) }
        };
        if !broken.iter().all(|&atom| breaks(atom)) || !self.renumbers(&broken, full, rule) {
            return None;
        }
        // Runtimes compute the op at its own rank only.
        if rule == StorageRule::PerDigit && self.orders.is_some() && !broken.is_empty() {
            return None;
        }
        if rule == StorageRule::PerDigit && !self.lists_reach(&broken, layout, axes, &shape) {
            return None;
        }
        let digits = self.digits(layout, axes);
        let outermost: Vec<AtomId> = digits.iter().filter(|d| d.modulo.is_none()).map(|d| d.atom).collect();
        if !self.allows(&outermost) {
            return None;
        }
        let maps = axes.iter().enumerate().filter_map(|(axis, &atom)| Some((atom, layout.slot_map(axis)?))).collect();
        let spread = Spread { bound: self, rule, broken, digits, maps, joined, axes, extents: own };
        self.slots()
            .map(|other| {
                let run = runs.iter().find(|(own, _)| *own == other).map(|(_, map)| map.as_slice());
                Some((other, spread.over(self.axes(other)?, shape(other)?, run)?))
            })
            .collect()
    }

    /// Whether the op runs with the axis of this atom split or padded as the layout has it.
    fn breaks<'d>(
        &self,
        atom: AtomId,
        layout: &Layout,
        axes: &[AtomId],
        shape: &impl Fn(Slot) -> Option<&'d [Dim]>,
    ) -> bool {
        let letter = &self.atoms[usize::from(atom)];
        let Some(axis) = axes.iter().position(|&a| a == atom) else { return false };
        match letter.role {
            _ if letter.pinned => false,
            // Nothing but extents is read.
            _ if self.renumber.contains(&Renumber::Extents) => true,
            Role::Carried => true,
            Role::Joined if layout.slot_map(axis).is_none() => self.slots().all(|other| {
                let at = self.axes(other).and_then(|axes| axes.iter().position(|&a| a == atom));
                let extent = at.zip(shape(other)).and_then(|(axis, dims)| dims.get(axis)?.as_const());
                let extent = extent.and_then(|e| u64::try_from(e).ok());
                at.is_none() || extent.is_some_and(|e| e.is_multiple_of(layout.block_of(axis)))
            }),
            _ => false,
        }
    }

    /// Whether everything that speaks of axes can be said when the axes of these atoms have several digits or none to name.
    /// `full`: no block is filled up.
    fn renumbers(&self, broken: &[AtomId], full: bool, rule: StorageRule) -> bool {
        if broken.is_empty() {
            return true;
        }
        let joined = |atom: &AtomId| self.atoms[usize::from(*atom)].role == Role::Joined;
        let pinned = self.atoms.iter().any(|a| a.pinned);
        self.renumber.iter().all(|what| match what {
            // The axis is whole, or joined and named by its outermost digit.
            Renumber::AxisAttr(..) => rule == StorageRule::PerDigit || broken.iter().all(joined),
            Renumber::AxisInput(..)
            | Renumber::AxesAttr(..)
            | Renumber::AxesInput(..)
            | Renumber::PerAxisAttr(..)
            | Renumber::PerAxisInput(..) => rule == StorageRule::PerDigit,
            // Declared per axis, a dim is the extent of its axis where no block is filled up.
            Renumber::Extents => rule == StorageRule::PerAxis && full,
            _ => false,
        }) && !pinned
    }

    /// Whether every operand still meets the others where they have a dim per digit. Operands that are aligned at their end,
    /// or repeat one element along a split axis, can be raised to the digits of the result, but only by an op that speaks of
    /// no axes. Others that lack axes (a scale per channel) have no dim but the one they name.
    fn lists_reach<'d>(
        &self,
        broken: &[AtomId],
        layout: &Layout,
        axes: &[AtomId],
        shape: &impl Fn(Slot) -> Option<&'d [Dim]>,
    ) -> bool {
        let split: Vec<AtomId> = broken
            .iter()
            .copied()
            .filter(|atom| axes.iter().position(|a| a == atom).is_some_and(|axis| layout.block_of(axis) != 1))
            .collect();
        let full = self.axes(Slot::Out(0)).map_or(0, <[AtomId]>::len);
        (0..self.operands.len()).all(|slot| {
            let Some(own) = self.axes(Slot::In(slot)) else { return true };
            let aligned = self.aligned.get(slot).copied().unwrap_or(false);
            let lacks = own.len() < full;
            let dims = shape(Slot::In(slot)).unwrap_or_default();
            let repeats = |atom: &AtomId| {
                let axis = own.iter().position(|a| a == atom);
                axis.and_then(|axis| dims.get(axis)).is_some_and(Dim::is_one)
            };
            if lacks && !aligned {
                return !own.iter().any(|atom| split.contains(atom));
            }
            let raised = lacks || split.iter().any(repeats);
            !raised || split.is_empty() || self.renumber.is_empty()
        })
    }

    /// The digits of all atoms, outermost first; atoms that the slot lacks are whole and follow the one before them in ONNX
    /// order.
    fn digits(&self, layout: &Layout, axes: &[AtomId]) -> Vec<Digit> {
        let digit = |f: &Factor| Digit { atom: axes[usize::from(f.axis)], div: f.div, modulo: f.modulo };
        let mut digits: Vec<Digit> = layout.factors().iter().map(digit).collect();
        for atom in 0..self.atoms.len() as AtomId {
            if digits.iter().any(|d| d.atom == atom) {
                continue;
            }
            let before = atom.checked_sub(1);
            let at = before.and_then(|b| digits.iter().position(|d| d.atom == b && d.modulo.is_none()));
            digits.insert(at.map_or(0, |i| i + 1), Digit { atom, div: 1, modulo: None });
        }
        digits
    }
}
