//! Why a piece is what it was recognized as: the equations that lead from how the file spells it to the op, one step at a time.

use crate::term::{Head, Term};
use egg::FlatTerm;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The names of values, by their places.
pub(crate) type Names<'g> = FxHashMap<u32, &'g str>;

/// How a piece came to be recognized: terms, each equal to the one before by one equation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The piece as the file spells it.
    pub spelled: String,
    /// What is equal to it; the last is the op. No steps where the file has the op itself.
    pub steps: Vec<EqualTerm>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EqualTerm {
    /// The name of the equation.
    pub equation: String,
    /// Whether its right side was replaced by its left side.
    pub backward: bool,
    /// The whole term after it.
    pub term: String,
}

impl Explanation {
    /// Of the terms of a proof. Values have the names that the file gives them.
    pub(crate) fn of(names: &Names<'_>, proof: &[FlatTerm<Term>]) -> Option<Explanation> {
        let (first, rest) = proof.split_first()?;
        let steps = rest.iter().filter_map(|term| {
            let (equation, backward) = rule(term)?;
            Some(EqualTerm { equation, backward, term: told(names, term) })
        });
        Some(Explanation { spelled: told(names, first), steps: steps.collect() })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.spelled)?;
        for EqualTerm { equation, backward, term } in &self.steps {
            let way = if *backward { ", from right to left" } else { "" };
            write!(f, "\n= {term}   by {equation}{way}")?;
        }
        Ok(())
    }
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
