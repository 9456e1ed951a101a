//! Why a piece is what it was recognized as: the equations that lead from how the file spells it to the op, one step at a time.

use crate::term::{Head, Term};
use egg::FlatTerm;
use relayout_target_api::{EqualTerm, Explanation};
use rustc_hash::FxHashMap;

/// The names of values, by their places.
pub(crate) type Names<'g> = FxHashMap<u32, &'g str>;

/// Of the terms of a proof. Values have the names that the file gives them.
pub(crate) fn explanation(names: &Names<'_>, proof: &[FlatTerm<Term>]) -> Option<Explanation> {
    let (first, rest) = proof.split_first()?;
    let steps = rest.iter().filter_map(|term| {
        let (equation, backward) = rule(term)?;
        Some(EqualTerm { equation, backward, term: told(names, term) })
    });
    Some(Explanation { spelled: told(names, first), steps: steps.collect() })
}

/// The equation by which a term, or a part of it, was replaced.
fn rule(term: &FlatTerm<Term>) -> Option<(String, bool)> {
    let forward = term.forward_rule.map(|rule| (rule.to_string(), false));
    let own = forward.or_else(|| term.backward_rule.map(|rule| (rule.to_string(), true)));
    own.or_else(|| term.children.iter().find_map(rule))
}

fn told(names: &Names<'_>, term: &FlatTerm<Term>) -> String {
    let head = match term.node.head {
        Head::Value(v) if names.contains_key(&v) => names[&v].to_owned(),
        ref other => other.to_string(),
    };
    if term.children.is_empty() {
        return head;
    }
    let parts: Vec<String> = term.children.iter().map(|part| told(names, part)).collect();
    format!("({head} {})", parts.join(" "))
}
