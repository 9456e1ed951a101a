//! What a check found, and how it is said.

use crate::checks::hosts::Hosts;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// Every output of the result is the output of the input, for all sizes.
    Proved {
        /// Claims that were checked.
        links: usize,
        /// The hosts that it is about, if it is not about all.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Hosts>,
    },
    /// The same, for these sizes of symbolic dims.
    ForSizes {
        /// Claims that were checked.
        links: usize,
        /// Sets of sizes: for each it was shown by itself.
        sizes: Vec<BTreeMap<String, i64>>,
        /// The hosts that it is about, if it is not about all.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Hosts>,
    },
    /// The same over the reals: some links hold by a lemma about arithmetic, and their results differ in rounding.
    WithLemmas {
        /// Claims that were checked.
        links: usize,
        /// How often each lemma was used, by name.
        lemmas: BTreeMap<String, usize>,
        /// The largest relative difference between a constant of the result and the one that the lemma asks for.
        bound: f64,
        /// Sets of sizes of symbolic dims, if it is not shown for all.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sizes: Vec<BTreeMap<String, i64>>,
        /// The hosts that it is about, if it is not about all.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Hosts>,
    },
    /// A link does not hold, or its meaning is not known.
    Refused {
        /// The node or value.
        at: String,
        /// Why.
        why: String,
        /// A value of the result that the node makes, if it is about a node of the main graph, or the output.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<String>,
        /// Whether the model is understood, and the result is not shown to compute the same; else nothing can be said of it.
        shown: bool,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Proved { links, .. } => write!(f, "PROVED: {links} links")?,
            Verdict::ForSizes { links, sizes, .. } => write!(f, "PROVED FOR SIZES ({}): {links} links", sets(sizes))?,
            Verdict::WithLemmas { links, lemmas, bound, sizes, .. } => {
                let lemmas = listed(lemmas);
                if sizes.is_empty() {
                    write!(f, "PROVED WITH LEMMAS")?;
                } else {
                    write!(f, "PROVED FOR SIZES WITH LEMMAS ({})", sets(sizes))?;
                }
                write!(f, ": {links} links, {lemmas}, constants differ by at most {bound:.1e}")?;
            }
            Verdict::Refused { at, why, .. } => write!(f, "NOT PROVED: {at}: {why}")?,
        }
        self.hosts().map_or(Ok(()), |hosts| write!(f, ", {hosts}"))
    }
}

/// Sets of sizes, one behind the other.
fn sets(sizes: &[BTreeMap<String, i64>]) -> String {
    sizes.iter().map(listed).collect::<Vec<_>>().join("; ")
}

/// `name=number` for each.
fn listed<N: fmt::Display>(numbers: &BTreeMap<String, N>) -> String {
    numbers.iter().map(|(name, number)| format!("{name}={number}")).collect::<Vec<_>>().join(", ")
}

impl Verdict {
    /// The hosts that it is about, if it is not about all.
    pub fn hosts(&self) -> Option<Hosts> {
        match self {
            Verdict::Proved { hosts, .. } | Verdict::ForSizes { hosts, .. } | Verdict::WithLemmas { hosts, .. } => {
                *hosts
            }
            Verdict::Refused { .. } => None,
        }
    }

    /// The sets of sizes that it is about; none if it is about all.
    pub fn sizes(&self) -> &[BTreeMap<String, i64>] {
        match self {
            Verdict::ForSizes { sizes, .. } | Verdict::WithLemmas { sizes, .. } => sizes,
            Verdict::Proved { .. } | Verdict::Refused { .. } => &[],
        }
    }

    pub(crate) fn sizes_mut(&mut self) -> Option<&mut Vec<BTreeMap<String, i64>>> {
        match self {
            Verdict::ForSizes { sizes, .. } | Verdict::WithLemmas { sizes, .. } if !sizes.is_empty() => Some(sizes),
            _ => None,
        }
    }

    /// What it says in a few words: `proved for all sizes`.
    pub fn brief(&self) -> String {
        let lemmas = if matches!(self, Verdict::WithLemmas { .. }) { ", with lemmas" } else { "" };
        match (self.holds(), self.sizes().len()) {
            (false, _) => "not proved".to_owned(),
            (true, 0) => format!("proved for all sizes{lemmas}"),
            (true, 1) => format!("proved for given sizes{lemmas}"),
            (true, count) => format!("proved for {count} sets of sizes{lemmas}"),
        }
    }

    /// Whether the models are proved to compute the same.
    pub fn holds(&self) -> bool {
        !matches!(self, Verdict::Refused { .. })
    }
}
