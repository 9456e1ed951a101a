//! Pad slots of an axis along which operands are joined (Concat): runs in blocks, side by side, are a whole in blocks with pad slots
//! between the runs. Channels of 24 and 24 in blocks of 16 are `C[24:32,24:32]/16`.
//!
//! Absent: taking them apart again (Split), whose operand may say how long the runs are.

use super::{AtomId, Bound, Role, Slot};
use crate::dim::Dim;
use crate::layout::{Layout, Segment};

impl Bound {
    /// The slot map of the joined axis `atom` in every slot that has it when `slot` has this layout. Of runs beside it that `beside`
    /// has no layout for, blocks are filled at their end. `None` where blocks of the whole don't end where its runs do, or extents
    /// are not known.
    pub(super) fn runs<'d>(
        &self,
        atom: AtomId,
        (slot, layout): (Slot, &Layout),
        beside: &impl Fn(Slot) -> Option<&'d Layout>,
        shape: &impl Fn(Slot) -> Option<&'d [Dim]>,
    ) -> Option<Vec<(Slot, Vec<Segment>)>> {
        let place = |slot: Slot| self.axes(slot)?.iter().position(|&a| a == atom);
        let extent = |slot: Slot| {
            let extent = shape(slot)?.get(place(slot)?)?.as_const()?;
            u64::try_from(extent).ok().filter(|&e| e > 0)
        };
        let block = layout.block_of(place(slot)?);
        let filled = |len: u64| Segment { len, slots: len.next_multiple_of(block) };
        let lies = |slot: Slot, layout: &Layout| -> Option<Vec<Segment>> {
            let map = layout.slot_map(place(slot)?).map(<[Segment]>::to_vec);
            Some(map.unwrap_or(vec![filled(extent(slot)?)]))
        };
        let (parts, whole) = self.joining(atom)?;
        if slot == whole {
            let lengths: Vec<u64> = parts.iter().map(|&part| extent(part)).collect::<Option<_>>()?;
            let map = lies(whole, layout)?;
            let runs = parts.into_iter().zip(cut(&map, &lengths, block)?);
            return Some(runs.chain([(whole, map)]).collect());
        }
        let run = |part: Slot| match beside(part) {
            _ if part == slot => lies(slot, layout),
            Some(layout) => lies(part, layout),
            None => Some(vec![filled(extent(part)?)]),
        };
        let mut runs = parts.into_iter().map(|part| Some((part, run(part)?))).collect::<Option<Vec<_>>>()?;
        let map = runs.iter().flat_map(|(_, map)| map.iter().copied()).collect();
        runs.push((whole, map));
        Some(runs)
    }

    /// The axis along which the op joins several operands to one result, if it does.
    pub fn joined(&self) -> Option<AtomId> {
        let joined = self.atoms.iter().position(|a| a.role == Role::Joined)?;
        AtomId::try_from(joined).ok().filter(|&atom| self.joining(atom).is_some())
    }

    /// The operands that have a run of a joined axis each, in their order, and the result that has all of it.
    fn joining(&self, atom: AtomId) -> Option<(Vec<Slot>, Slot)> {
        let has = |slot: &Slot| self.axes(*slot).is_some_and(|axes| axes.contains(&atom));
        let (ins, outs): (Vec<Slot>, Vec<Slot>) = self.slots().filter(has).partition(|s| matches!(s, Slot::In(_)));
        match outs[..] {
            [whole] if ins.len() > 1 => Some((ins, whole)),
            _ => None,
        }
    }

    /// Whether the slot maps of a joined axis are those of its runs side by side.
    pub(crate) fn runs_agree<'d>(
        &self,
        atom: AtomId,
        stored: &impl Fn(Slot) -> Option<&'d Layout>,
        shape: &impl Fn(Slot) -> Option<&'d [Dim]>,
    ) -> bool {
        let agrees = || {
            let (_, whole) = self.joining(atom)?;
            let runs = self.runs(atom, (whole, stored(whole)?), &|_| None, shape)?;
            let same = |(slot, map): (Slot, Vec<Segment>)| {
                let (layout, axis) = (stored(slot)?, self.axes(slot)?.iter().position(|&a| a == atom)?);
                Some(layout.with_slot_map(axis, &map).ok()? == *layout)
            };
            runs.into_iter().map(same).try_fold(true, |all, one| Some(all && one?))
        };
        agrees().unwrap_or(false)
    }
}

/// A slot map cut into runs of these lengths, each of whole blocks; `None` where a run ends within a block that the next one
/// has a part of.
fn cut(map: &[Segment], lengths: &[u64], block: u64) -> Option<Vec<Vec<Segment>>> {
    let mut left = map.iter().copied();
    let mut rest: Option<Segment> = None;
    let runs = lengths.iter().map(|&length| {
        let (mut run, mut missing) = (Vec::new(), length);
        while missing > 0 {
            let segment = rest.take().or_else(|| left.next())?;
            if segment.len <= missing {
                missing -= segment.len;
                run.push(segment);
                continue;
            }
            run.push(Segment { len: missing, slots: missing });
            rest = Some(Segment { len: segment.len - missing, slots: segment.slots - missing });
            missing = 0;
        }
        let slots: u64 = run.iter().map(|s| s.slots).sum();
        slots.is_multiple_of(block).then_some(run)
    });
    let runs: Vec<Vec<Segment>> = runs.collect::<Option<_>>()?;
    (rest.is_none() && left.next().is_none()).then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_map_is_cut_where_blocks_end() {
        let segments = |map: &[[u64; 2]]| map.iter().map(|&[len, slots]| Segment { len, slots }).collect::<Vec<_>>();
        let cuts = |map: &[[u64; 2]], lengths: &[u64]| {
            let runs = cut(&segments(map), lengths, 16)?;
            Some(runs.iter().map(|run| run.iter().map(|s| [s.len, s.slots]).collect()).collect::<Vec<Vec<_>>>())
        };
        assert_eq!(cuts(&[[24, 32], [24, 32]], &[24, 24]), Some(vec![vec![[24, 32]], vec![[24, 32]]]));
        // A full segment is one with what follows.
        assert_eq!(cuts(&[[56, 64]], &[32, 24]), Some(vec![vec![[32, 32]], vec![[24, 32]]]));
        assert_eq!(cuts(&[[8, 16], [8, 16], [4, 16]], &[16, 4]), Some(vec![vec![[8, 16], [8, 16]], vec![[4, 16]]]));
        for (map, lengths) in [
            (&[[48, 48]][..], &[24, 24][..]),
            (&[[24, 32], [24, 32]], &[20, 28]),
            (&[[24, 32], [24, 32]], &[24]),
            (&[[24, 32]], &[24, 24]),
            // Slots of the second run would begin within a block.
            (&[[24, 40], [24, 40]], &[24, 24]),
        ] {
            assert_eq!(cuts(map, lengths), None, "{map:?} {lengths:?}");
        }
    }
}
