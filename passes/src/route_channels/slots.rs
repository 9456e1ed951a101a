//! In which order a value holds its channels, so that each reader finds those that it wants in few whole blocks.

use std::collections::BTreeMap;

/// Blocks, one after the other, that the same readers want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its slots, in whole blocks.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Who wants a channel of it, in ascending order.
    pub(super) readers: Vec<usize>,
}

/// The slots of a value, whole blocks of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// By slot: the channel, or none.
    pub(super) holds: Vec<Option<usize>>,
    pub(super) parts: Vec<Part>,
}

impl Slots {
    /// Channels, for each of which its readers are given, in ascending order. Those that the same readers want lie side by side, the
    /// most numerous first; they begin a block where that makes no more blocks. What nobody reads has no slot.
    pub(super) fn of(readers: &[Vec<usize>], block: usize) -> Slots {
        let mut groups: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
        for (channel, readers) in readers.iter().enumerate().filter(|(_, readers)| !readers.is_empty()) {
            groups.entry(readers).or_default().push(channel);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let mut left: usize = groups.iter().map(Vec::len).sum();
        let blocks = left.div_ceil(block);
        let mut holds = Vec::with_capacity(blocks * block);
        for group in groups {
            let whole = holds.len().next_multiple_of(block);
            if (whole + left).div_ceil(block) <= blocks {
                holds.resize(whole, None);
            }
            left -= group.len();
            holds.extend(group.into_iter().map(Some));
        }
        holds.resize(blocks * block, None);
        let parts = parts(&holds, readers, block);
        Slots { holds, parts }
    }
}

fn parts(holds: &[Option<usize>], readers: &[Vec<usize>], block: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (number, held) in holds.chunks(block).enumerate() {
        let mut all: Vec<usize> = held.iter().flatten().flat_map(|&channel| &readers[channel]).copied().collect();
        all.sort_unstable();
        all.dedup();
        let end = (number + 1) * block;
        match parts.last_mut().filter(|part| part.readers == all) {
            Some(part) => part.end = end,
            None => parts.push(Part { start: end - block, end, readers: all }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of channels that each set of readers wants, in this order.
    fn of(wanted: &[(usize, &[usize])], block: usize) -> Slots {
        let each = wanted.iter().flat_map(|&(count, readers)| vec![readers.to_vec(); count]);
        Slots::of(&each.collect::<Vec<_>>(), block)
    }

    fn parts(slots: &Slots) -> Vec<(usize, usize, &[usize])> {
        slots.parts.iter().map(|part| (part.start, part.end, &part.readers[..])).collect()
    }

    #[test]
    fn channels_begin_blocks_where_there_is_room() {
        let slots = of(&[(7, &[2]), (29, &[0]), (14, &[1]), (8, &[3])], 16);
        assert_eq!(parts(&slots), [(0, 32, &[0][..]), (32, 48, &[1]), (48, 64, &[2, 3])]);
        assert_eq!(slots.holds.iter().flatten().count(), 58);
        assert_eq!((slots.holds[28], slots.holds[29], slots.holds[32]), (Some(35), None, Some(36)));
    }

    #[test]
    fn blocks_are_shared_where_there_is_none() {
        let slots = of(&[(24, &[0]), (12, &[1]), (12, &[2])], 16);
        assert_eq!(parts(&slots), [(0, 16, &[0][..]), (16, 32, &[0, 1]), (32, 48, &[1, 2])]);
        assert!(slots.holds.iter().all(Option::is_some));
    }

    #[test]
    fn what_nobody_reads_has_no_slot() {
        let slots = of(&[(16, &[0]), (5, &[]), (1, &[0, 1])], 8);
        assert_eq!(parts(&slots), [(0, 16, &[0][..]), (16, 24, &[0, 1])]);
        assert_eq!(slots.holds[16..], [Some(21), None, None, None, None, None, None, None]);
        assert_eq!(Slots::of(&[vec![], vec![]], 8), Slots { holds: vec![], parts: vec![] });
    }
}
