//! Letters for axes. They are sugar of the text form only: inside, an axis is a number.

use smallvec::SmallVec;

/// Logical axis orders that have letters of their own, most usual first. No two have the same set of letters, so the
/// letters of a layout's text tell the family.
pub(super) const FAMILIES: &[&str] = &[
    "NCHW", "NCDHW", "NCW", "NC", "OIHW", "OIDHW", "OIW", "OI", "GOIHW", "GOIDHW", "GOIW", "MN", "MK", "KN", "XF",
    "NCL", "NTC", "CHW", "HW",
];

/// Letters of the axes of a layout, in logical order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LayoutNames {
    names: SmallVec<[char; 8]>,
}

impl LayoutNames {
    /// The letters that `Display` uses: `NCHW` at rank 4, `NCDHW` at rank 5, else `a`, `b`, `c`, ..
    pub fn default_for(rank: usize) -> LayoutNames {
        LayoutNames::pick(rank, &["NCHW", "NCDHW"])
    }

    /// Letters of an activation: `NCW`, `NCHW`, `NCDHW`; the default ones at other ranks.
    pub fn features(rank: usize) -> LayoutNames {
        LayoutNames::pick(rank, &["NCW", "NCHW", "NCDHW"])
    }

    /// Letters of a convolution's weight: `OIW`, `OIHW`, `OIDHW`; the default ones at other ranks.
    pub fn weights(rank: usize) -> LayoutNames {
        LayoutNames::pick(rank, &["OIW", "OIHW", "OIDHW"])
    }

    /// Letters of a matrix, `MN`; the default ones at other ranks.
    pub fn matrix(rank: usize) -> LayoutNames {
        LayoutNames::pick(rank, &["MN"])
    }

    /// One letter per axis, in logical order (`"XF"`). `None` if one is no ASCII letter or occurs twice.
    pub fn custom(letters: &str) -> Option<LayoutNames> {
        let names: SmallVec<[char; 8]> = letters.chars().collect();
        let distinct = names.iter().enumerate().all(|(at, name)| {
            name.is_ascii_alphabetic() && !names.iter().take(at).any(|have| have.eq_ignore_ascii_case(name))
        });
        distinct.then_some(LayoutNames { names })
    }

    fn pick(rank: usize, families: &[&str]) -> LayoutNames {
        let family = families.iter().find(|family| family.len() == rank);
        LayoutNames { names: family.map(|family| family.chars().collect()).unwrap_or_default() }
    }

    /// The name of an axis; past the given ones it is neutral: `a`..`z`, `a1`..`z1`, ..
    pub(super) fn of(&self, axis: usize) -> String {
        self.names.get(axis).map_or_else(|| neutral_name(axis), char::to_string)
    }

    /// Whether these letters fit a layout of this rank.
    pub(super) fn fits(&self, rank: usize) -> bool {
        self.names.is_empty() || self.names.len() == rank
    }

    /// The letters as one word, empty for neutral ones.
    pub(super) fn word(&self) -> String {
        self.names.iter().collect()
    }

    /// The axis of this name.
    pub(super) fn find(&self, name: &str, rank: usize) -> Option<usize> {
        (0..rank).find(|axis| self.of(*axis).eq_ignore_ascii_case(name))
    }

    /// The names of which these are all, if there are such: neutral ones, or a family.
    pub(super) fn infer(used: &[String]) -> Option<LayoutNames> {
        let neutral = LayoutNames { names: SmallVec::new() };
        let among = |names: &LayoutNames| used.iter().all(|name| names.find(name, used.len()).is_some());
        if among(&neutral) {
            return Some(neutral);
        }
        if let [only] = used {
            return LayoutNames::custom(only).filter(|names| names.names.len() == 1);
        }
        let families = FAMILIES.iter().filter(|family| family.len() == used.len());
        families.filter_map(|family| LayoutNames::custom(family)).find(among)
    }
}

fn neutral_name(axis: usize) -> String {
    let letter = char::from(b'a' + (axis % 26) as u8);
    if axis < 26 { letter.to_string() } else { format!("{letter}{}", axis / 26) }
}
