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
    /// Channels, for each of which its readers are given, in ascending order. Those that the same readers want fill whole blocks, the
    /// most numerous first; what is left of them shares blocks, and lies in two of these only where that makes fewer. What nobody
    /// reads has no slot.
    pub(super) fn arrange(readers: &[Vec<usize>], block: usize) -> Slots {
        let mut groups: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
        for (channel, readers) in readers.iter().enumerate().filter(|(_, readers)| !readers.is_empty()) {
            groups.entry(readers).or_default().push(channel);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let shared = share(&groups, block);
        let mut holds = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            holds.extend(group[..group.len() / block * block].iter().copied().map(Some));
            for own in shared.iter().filter(|own| own.first().is_some_and(|&(first, _)| first == number)) {
                holds.extend(own.iter().map(|&(_, channel)| Some(channel)));
                holds.resize(holds.len().next_multiple_of(block), None);
            }
        }
        let parts = parts(&holds, readers, block);
        Slots { holds, parts }
    }
}

/// The blocks that groups share, with what their whole blocks leave: by block, groups and channels.
fn share(groups: &[Vec<usize>], block: usize) -> Vec<Vec<(usize, usize)>> {
    let left = |group: &[usize]| group.len() % block;
    let all: usize = groups.iter().map(|group| left(group)).sum();
    let mut shared: Vec<Vec<(usize, usize)>> = vec![Vec::new(); all.div_ceil(block)];
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(left(&groups[number])));
    for number in order {
        let group = &groups[number];
        let mut rest = &group[group.len() - left(group)..];
        // The first block that has room for all of it, else whatever room there is.
        let whole = shared.iter().position(|own| own.len() + rest.len() <= block);
        for own in shared.iter_mut().skip(whole.unwrap_or(0)) {
            let (taken, after) = rest.split_at(rest.len().min(block - own.len()));
            own.extend(taken.iter().map(|&channel| (number, channel)));
            rest = after;
        }
    }
    shared
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
    fn slots_for(wanted: &[(usize, &[usize])], block: usize) -> Slots {
        let each = wanted.iter().flat_map(|&(count, readers)| vec![readers.to_vec(); count]);
        Slots::arrange(&each.collect::<Vec<_>>(), block)
    }

    fn parts(slots: &Slots) -> Vec<(usize, usize, &[usize])> {
        slots.parts.iter().map(|part| (part.start, part.end, &part.readers[..])).collect()
    }

    #[test]
    fn channels_of_other_readers_lie_in_other_blocks() {
        let slots = slots_for(&[(7, &[2]), (29, &[0]), (14, &[1]), (8, &[3])], 16);
        assert_eq!(parts(&slots), [(0, 32, &[0][..]), (32, 48, &[1]), (48, 64, &[2, 3])]);
        assert_eq!(slots.holds.iter().flatten().count(), 58);
        assert_eq!((slots.holds[28], slots.holds[29], slots.holds[32]), (Some(35), None, Some(36)));
    }

    #[test]
    fn what_fills_no_block_shares_one_with_what_it_fits_beside() {
        let slots = slots_for(&[(24, &[0]), (12, &[1]), (6, &[2]), (3, &[3]), (2, &[4]), (1, &[5])], 16);
        assert_eq!(parts(&slots), [(0, 16, &[0][..]), (16, 32, &[0, 2, 4]), (32, 48, &[1, 3, 5])]);
        assert!(slots.holds.iter().all(Option::is_some));
    }

    #[test]
    fn what_fits_beside_nothing_lies_in_two_blocks() {
        let slots = slots_for(&[(10, &[0]), (10, &[1]), (10, &[2])], 16);
        assert_eq!(parts(&slots), [(0, 16, &[0, 2][..]), (16, 32, &[1, 2])]);
        assert_eq!(slots.holds.iter().flatten().count(), 30);
    }

    #[test]
    fn what_nobody_reads_has_no_slot() {
        let slots = slots_for(&[(16, &[0]), (5, &[]), (1, &[0, 1])], 8);
        assert_eq!(parts(&slots), [(0, 16, &[0][..]), (16, 24, &[0, 1])]);
        assert_eq!(slots.holds[16..], [Some(21), None, None, None, None, None, None, None]);
        assert_eq!(Slots::arrange(&[vec![], vec![]], 8), Slots { holds: vec![], parts: vec![] });
    }
}
