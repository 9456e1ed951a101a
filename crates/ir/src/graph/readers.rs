//! The readers of a value.

use super::ids::Use;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Up to so many readers are a sorted list. A weight, a scalar or a list of axes may be read by every node of a graph, and each
/// of them may come or go by itself.
const FEW: usize = 16;

/// The places that read one value, each once, by node and slot.
#[derive(Clone, Debug)]
pub(super) enum Readers {
    /// In order.
    Few(SmallVec<[Use; 2]>),
    /// More than the list is good for; it stays a set when they become fewer.
    Many(BTreeSet<Use>),
}

impl Default for Readers {
    fn default() -> Readers {
        Readers::Few(SmallVec::new())
    }
}

impl Readers {
    pub(super) fn insert(&mut self, u: Use) {
        match self {
            Readers::Few(list) => {
                let Err(place) = list.binary_search(&u) else { return };
                if list.len() < FEW {
                    list.insert(place, u);
                } else {
                    *self = Readers::Many(list.iter().copied().chain([u]).collect());
                }
            }
            Readers::Many(set) => drop(set.insert(u)),
        }
    }

    pub(super) fn remove(&mut self, u: Use) {
        match self {
            Readers::Few(list) => {
                if let Ok(place) = list.binary_search(&u) {
                    list.remove(place);
                }
            }
            Readers::Many(set) => drop(set.remove(&u)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Readers::Few(list) => list.len(),
            Readers::Many(set) => set.len(),
        }
    }

    pub(super) fn contains(&self, u: Use) -> bool {
        match self {
            Readers::Few(list) => list.binary_search(&u).is_ok(),
            Readers::Many(set) => set.contains(&u),
        }
    }

    /// In order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Use> + '_ {
        let (list, set) = match self {
            Readers::Few(list) => (Some(list), None),
            Readers::Many(set) => (None, Some(set)),
        };
        list.into_iter().flatten().chain(set.into_iter().flatten()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::NodeId;
    use super::*;

    #[test]
    fn readers_are_a_set_in_order_whether_few_or_many() {
        let mut readers = Readers::default();
        let mut expected = BTreeSet::new();
        // Steps that are coprime to the count visit every reader once, in no order.
        let uses =
            |step: u32| (0..40).map(move |i| Use { node: NodeId(i * step % 40 / 2), slot: (i * step % 2) as usize });
        for u in uses(7).chain(uses(11)) {
            readers.insert(u);
            expected.insert(u);
            assert!(readers.iter().eq(expected.iter().copied()) && readers.len() == expected.len());
        }
        for u in uses(13) {
            assert!(readers.contains(u));
            readers.remove(u);
            expected.remove(&u);
            assert!(readers.iter().eq(expected.iter().copied()) && !readers.contains(u));
        }
        assert_eq!(readers.len(), 0);
    }
}
