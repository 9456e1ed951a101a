//! Two lists against each other: what one has and the other has not, and what differs where both have it.

use super::collect::Item;
use relayout::ir::constant::Constant;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// What changed among things of one kind.
#[derive(Debug, Default, Serialize)]
pub(super) struct Section {
    added: Vec<Entry>,
    removed: Vec<Entry>,
    changed: Vec<Change>,
    /// The names in both orders, if those that both models have stand in another order.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<[Vec<String>; 2]>,
}

/// Something that one of the models has.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    what: String,
}

/// Something that both have, but not alike.
#[derive(Debug, Serialize)]
struct Change {
    name: String,
    /// What it is in the second model.
    what: String,
    fields: Vec<Field>,
}

/// What differs of it.
#[derive(Debug, Serialize)]
struct Field {
    name: String,
    /// What the first model has; nothing where it has no such field, or where `detail` says what differs.
    a: Option<String>,
    b: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Section {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty() && self.order.is_none()
    }

    /// How much of each.
    pub(super) fn counts(&self) -> String {
        let parts = [
            ("added", self.added.len()),
            ("removed", self.removed.len()),
            ("changed", self.changed.len()),
            ("reordered", self.order.iter().len()),
        ];
        let parts = parts.iter().filter(|(_, count)| *count > 0);
        parts.map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}

impl Section {
    /// All of it, as a page lists it.
    pub(super) fn changes(&self, section: &str) -> Vec<relayout_html::Change> {
        use relayout_html::Change as Listed;
        let one = |how: &'static str| move |entry: &Entry| Listed::new(section, how, &entry.name, &entry.what);
        let changed = |change: &Change| {
            let details = change.fields.iter().map(Field::to_string).collect();
            Listed::new(section, "changed", &change.name, &change.what).details(details)
        };
        let order = self.order.iter().map(|[a, b]| {
            let details = vec![format!("{} -> {}", a.join(", "), b.join(", "))];
            Listed::new(section, "reordered", "order", "").details(details)
        });
        let entries = self.removed.iter().map(one("removed")).chain(self.added.iter().map(one("added")));
        entries.chain(self.changed.iter().map(changed)).chain(order).collect()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.name),
            None => write!(f, "{}: {} -> {}", self.name, shown(self.a.as_ref()), shown(self.b.as_ref())),
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sign, entries) in [('-', &self.removed), ('+', &self.added)] {
            for Entry { name, what } in entries {
                writeln!(f, "  {sign} {name} ({what})")?;
            }
        }
        for Change { name, what, fields } in &self.changed {
            writeln!(f, "  ~ {name} ({what})")?;
            for field in fields {
                writeln!(f, "      {field}")?;
            }
        }
        match &self.order {
            Some([a, b]) => writeln!(f, "  order: {} -> {}", a.join(", "), b.join(", ")),
            None => Ok(()),
        }
    }
}

fn shown(value: Option<&String>) -> &str {
    value.map_or("none", String::as_str)
}

/// What differs between two lists.
pub(super) fn compare(a: &[Item], b: &[Item]) -> Section {
    let found = pairs(a, b);
    let entry = |item: &Item| Entry { name: item.name.clone(), what: item.what.clone() };
    let taken: Vec<bool> = {
        let mut taken = vec![false; b.len()];
        found.iter().flatten().for_each(|&at| taken[at] = true);
        taken
    };
    Section {
        added: b.iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(item, _)| entry(item)).collect(),
        removed: a.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(item, _)| entry(item)).collect(),
        changed: a.iter().zip(&found).filter_map(|(item, found)| change(item, b.get((*found)?)?)).collect(),
        order: None,
    }
}

/// What differs between two lists whose order matters.
pub(super) fn compare_in_order(a: &[Item], b: &[Item]) -> Section {
    let names = |of: &[Item], other: &[Item]| -> Vec<String> {
        let both = of.iter().filter(|item| other.iter().any(|o| o.name == item.name));
        both.map(|item| item.name.clone()).collect()
    };
    let orders = [names(a, b), names(b, a)];
    Section { order: (orders[0] != orders[1]).then_some(orders), ..compare(a, b) }
}

/// For each of `a` its place in `b`: by the first of its keys that no other item has, in either list.
fn pairs(a: &[Item], b: &[Item]) -> Vec<Option<usize>> {
    let mut found = vec![None; a.len()];
    let mut free = vec![true; b.len()];
    let by_key = |items: &[Item]| -> HashMap<String, Vec<usize>> {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            item.keys.iter().for_each(|key| places.entry(key.clone()).or_default().push(at));
        }
        places
    };
    let places = [by_key(a), by_key(b)];
    let only = |side: usize, key: &str| match places[side].get(key).map(Vec::as_slice) {
        Some([at]) => Some(*at),
        _ => None,
    };
    // Names of nodes count more than those of results, so all of them come first.
    for last in [false, true] {
        for (at, item) in a.iter().enumerate() {
            let keys = item.keys.iter().enumerate().filter(|(k, _)| (k + 1 == item.keys.len()) == last);
            for (_, key) in keys {
                if let (None, Some(_), Some(other)) = (found[at], only(0, key), only(1, key))
                    && free[other]
                {
                    found[at] = Some(other);
                    free[other] = false;
                }
            }
        }
    }
    found
}

/// What differs of an item that both have, if anything does.
fn change(a: &Item, b: &Item) -> Option<Change> {
    let mut fields = Vec::new();
    if a.what != b.what {
        fields.push(Field { name: "is".to_owned(), a: Some(a.what.clone()), b: Some(b.what.clone()), detail: None });
    }
    let value = |of: &Item, name: &str| of.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    let added = b.fields.iter().filter(|(name, _)| value(a, name).is_none());
    for (name, _) in a.fields.iter().chain(added) {
        let (was, is) = (value(a, name), value(b, name));
        if was != is {
            fields.push(Field { name: name.clone(), a: was, b: is, detail: None });
        }
    }
    for (name, tensor) in &a.tensors {
        let other = b.tensors.iter().find(|(n, _)| n == name);
        if let Some(detail) = other.and_then(|(_, other)| differing(tensor, other)) {
            fields.push(Field { name: name.clone(), a: None, b: None, detail: Some(detail) });
        }
    }
    (!fields.is_empty()).then(|| Change { name: b.name.clone(), what: b.what.clone(), fields })
}

/// How the bytes of two tensors of the same type differ, if they do.
fn differing(a: &Constant, b: &Constant) -> Option<String> {
    if (a.dtype, &a.dims) != (b.dtype, &b.dims) {
        // Their types say it.
        return None;
    }
    match (a.source.bytes(), b.source.bytes()) {
        (Ok(a), Ok(b)) if a == b => None,
        (Ok(a), Ok(b)) => {
            let count = a.iter().zip(&b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len());
            Some(format!("{count} of {} bytes differ", a.len().max(b.len())))
        }
        (Err(_), Err(_)) => None,
        (Err(why), Ok(_)) | (Ok(_), Err(why)) => Some(format!("only one model has its data: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::collect::Item;
    use super::{compare, compare_in_order};

    fn item(keys: &[&str], what: &str) -> Item {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        Item { name: keys[0].clone(), keys, what: what.to_owned(), fields: Vec::new(), tensors: Vec::new() }
    }

    #[test]
    fn things_are_found_again_by_their_first_key_and_else_by_the_next() {
        let a = [item(&["node a", "result x"], "Conv"), item(&["node b", "result y"], "Relu")];
        let b = [item(&["node c", "result x"], "Conv"), item(&["node b", "result z"], "Gelu")];
        let text = compare(&a, &b).to_string();
        assert_eq!(text, "  ~ node b (Gelu)\n      is: Relu -> Gelu\n");
    }

    #[test]
    fn what_two_things_are_called_by_finds_neither() {
        let a = [item(&["n", "x"], "Relu"), item(&["n", "y"], "Relu")];
        let b = [item(&["n", "y"], "Relu")];
        assert_eq!(compare(&a, &b).to_string(), "  - n (Relu)\n");
    }

    #[test]
    fn order_is_that_of_what_both_have() {
        let [x, y, z] = ["x", "y", "z"].map(|name| item(&[name], "f32[1]"));
        let same = compare_in_order(&[item(&["x"], "f32[1]"), item(&["y"], "f32[1]")], &[z, x, y]);
        assert_eq!(same.to_string(), "  + z (f32[1])\n");
        let [x, y] = ["x", "y"].map(|name| item(&[name], "f32[1]"));
        let swapped = compare_in_order(&[item(&["x"], "f32[1]"), item(&["y"], "f32[1]")], &[y, x]);
        assert_eq!(swapped.to_string(), "  order: x, y -> y, x\n");
    }
}
