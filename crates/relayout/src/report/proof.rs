//! What the checker of results said, as a report has it.

use relayout_proof::Verdict;
use serde::{Deserialize, Serialize};

/// What the checker said of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProofRecord {
    /// Whether the result is proved.
    pub proved: bool,
    /// In a few words: `proved for all sizes`, or `UNPROVED`.
    pub brief: String,
    /// What is not shown, and why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The verdict in full, as `relayout prove` has it.
    pub verdict: String,
}

impl ProofRecord {
    pub(crate) fn new(verdict: &Verdict) -> ProofRecord {
        let brief = if verdict.holds() { verdict.brief() } else { "UNPROVED".to_owned() };
        ProofRecord { proved: verdict.holds(), brief, why: why_not(verdict), verdict: verdict.to_string() }
    }
}

/// Why a result is not proved.
pub(crate) fn why_not(verdict: &Verdict) -> Option<String> {
    if let Verdict::Refused { at, why, .. } = verdict { Some(format!("{at}: {why}")) } else { None }
}
