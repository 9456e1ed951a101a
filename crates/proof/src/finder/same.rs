//! Values of a result that are values of the input, as far as the checker's terms tell.

use crate::files::model::Model;
use crate::graph::eval::{Machine, Values};
use crate::graph::sizes;
use crate::terms::value::{Source, Value};
use crate::terms::view::View;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeMap;

/// For each value of the result that the input computes too, which it is there.
pub(super) type Same = FxHashMap<String, String>;

/// A value of the result that is a value of the input, as the finder sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Link {
    /// The value of the result.
    pub value: String,
    /// The value of the input.
    pub of: String,
    /// Whether it is one over the reals only, by a lemma about arithmetic.
    pub by_lemma: bool,
}

/// What both models compute, in the order of the result's nodes.
pub(super) fn links(a: &Model, b: &Model) -> Vec<Link> {
    let (same, lemmas) = values(a, b);
    let made = b.graph.nodes.iter().flat_map(|node| &node.outputs);
    let link = |value: &String| {
        let (value, of, by_lemma) = (value.clone(), same.get(value)?.clone(), lemmas.contains(value));
        Some(Link { value, of, by_lemma })
    };
    made.filter_map(link).collect()
}

/// What makes two values one: their term, the order of its axes, and their type.
type Key = (u32, bool, View, u8);

fn key(value: &Value) -> Option<Key> {
    match value.source {
        Source::Term(term) => Some((term, false, value.view.clone(), value.dtype)),
        Source::Opaque(term) => Some((term, true, View::new(), 0)),
        Source::Constant { .. } => None,
    }
}

/// What both models compute.
pub(super) fn pairs(a: &Model, b: &Model) -> Same {
    values(a, b).0
}

/// Reads both models with some sizes, the result as far as it can be read. Names, too, which values are one by a lemma.
fn values(a: &Model, b: &Model) -> (Same, FxHashSet<String>) {
    let fixed = sizes::found(a, &BTreeMap::new());
    let mut machine = Machine::new(Some(sizes::with(&BTreeMap::new(), &fixed)));
    let Ok(known) = machine.model(a, Values::default(), &mut |_, _, _| Ok(())) else { return Default::default() };
    let mut names: FxHashMap<Key, &str> = FxHashMap::default();
    let mut by_name: Vec<(&String, &Value)> = known.iter().collect();
    by_name.sort_by_key(|(name, _)| *name);
    for (name, value) in by_name {
        if let Some(key) = key(value) {
            names.entry(key).or_insert(name);
        }
    }
    let (mut same, mut lemmas) = (Same::default(), FxHashSet::default());
    for input in &b.graph.inputs {
        same.insert(input.name.clone(), input.name.clone());
    }
    machine.input_ends();
    // It ends at the first node that is not understood.
    let _ = machine.model(b, Values::default(), &mut |terms, node, values| {
        for name in &node.outputs {
            let Some(value) = values.get_mut(name) else { continue };
            let plain = self::key(value);
            *value = terms.real(value.clone());
            if self::key(value) != plain {
                lemmas.insert(name.clone());
            }
            let Some(key) = key(value) else {
                // Constants are the same if their elements are.
                if known.get(name).is_some_and(|other| terms.same(other, value) == Some(true)) {
                    same.insert(name.clone(), name.clone());
                }
                continue;
            };
            let of_this_name = known.get(name).is_some_and(|other| self::key(other).as_ref() == Some(&key));
            if of_this_name {
                same.insert(name.clone(), name.clone());
            } else if let Some(other) = names.get(&key) {
                same.insert(name.clone(), (*other).to_owned());
            }
        }
        Ok(())
    });
    (same, lemmas)
}
