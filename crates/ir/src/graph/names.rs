//! Names of a graph's values, and which numbered ones are free.

use super::ids::ValueId;
use rustc_hash::FxHashMap;

/// Which value has which name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    taken: FxHashMap<String, ValueId>,
    /// For each base of which `base.1` is taken: the smallest number that is not. Kept as names come and go, since a pass may ask
    /// for as many names of one base as the graph has nodes.
    free: FxHashMap<String, usize>,
}

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<ValueId> {
        self.taken.get(name).copied()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.taken.contains_key(name)
    }

    /// Gives a name to a value, whoever had it before.
    pub(super) fn insert(&mut self, name: &str, v: ValueId) {
        if let Some(holder) = self.taken.get_mut(name) {
            *holder = v;
            return;
        }
        self.taken.insert(name.to_owned(), v);
        let Some((base, number)) = numbered(name) else { return };
        let mut free = self.free.get(base).copied().unwrap_or(1);
        if number != free {
            return;
        }
        while self.taken.contains_key(&format!("{base}.{free}")) {
            free += 1;
        }
        self.free.insert(base.to_owned(), free);
    }

    pub(super) fn remove(&mut self, name: &str) {
        if self.taken.remove(name).is_none() {
            return;
        }
        let Some((base, number)) = numbered(name) else { return };
        if number == 1 {
            self.free.remove(base);
        } else if let Some(free) = self.free.get_mut(base) {
            *free = number.min(*free);
        }
    }

    /// A name that is not taken: `base`, or the first of `base.1`, `base.2`, …
    pub(super) fn fresh(&self, base: &str) -> String {
        if !self.contains(base) {
            return base.to_owned();
        }
        format!("{base}.{}", self.free.get(base).copied().unwrap_or(1))
    }
}

/// Base and number of a name as [`Names::fresh`] makes them.
fn numbered(name: &str) -> Option<(&str, usize)> {
    let (base, number) = name.rsplit_once('.')?;
    let plain = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
    Some((base, number.parse().ok().filter(|_| plain)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`Names::fresh`] is to give, by trying every number.
    fn tried(names: &Names, base: &str) -> String {
        let numbers = (1..).map(|k| format!("{base}.{k}"));
        std::iter::once(base.to_owned()).chain(numbers).find(|name| !names.contains(name)).unwrap()
    }

    #[test]
    fn the_first_free_number_is_found_however_names_come_and_go() {
        let mut names = Names::default();
        let edits = [
            "+a", "+a.2", "+a.1", "+a.1.1", "-a.2", "+a.4", "+a.2", "+a.3", "-a.1", "-a.3", "+a.01", "+a.0", "+a.+3",
            "+a.1", "-a.4", "+a.3", "-a", "+a.", "+.1", "+", "-a.1", "-a.2", "-a.3", "-never",
        ];
        for edit in edits {
            let (sign, name) = edit.split_at(1);
            if sign == "+" {
                names.insert(name, ValueId(0));
            } else {
                names.remove(name);
            }
            for base in ["a", "a.1", "", "b"] {
                assert_eq!(names.fresh(base), tried(&names, base), "after {edit}");
            }
        }
    }

    #[test]
    fn a_name_that_is_given_again_belongs_to_the_last_value() {
        let mut names = Names::default();
        names.insert("a.1", ValueId(0));
        names.insert("a.1", ValueId(1));
        assert_eq!(names.get("a.1"), Some(ValueId(1)));
        assert_eq!(names.fresh("a.1"), "a.1.1");
    }
}
