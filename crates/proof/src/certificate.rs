//! Proofs, as they are stored: which value of the result is which value of the input, and how it lies.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the format.
pub(crate) const VERSION: u32 = 1;

/// A proof that a model computes what another one computes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The version of the format: 1.
    pub version: u32,
    /// Sizes of symbolic dims that the proof is about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, i64>,
    /// More sets of sizes that it is to be looked at with, such as the ends of ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<BTreeMap<String, i64>>,
    /// Values of the result, in the order in which its nodes make them.
    pub values: Vec<Claim>,
}

/// What a proof says of one value of the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name in the result.
    pub value: String,
    /// The value of the input that it is; the same name if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
    /// How it lies: for each of its dims, digits of the axes of the value that it is, outermost first, as
    /// (axis, extent, stride). An extent of -1 is all that is left of the axis. Left out if it lies as that value does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lies: Option<Vec<Vec<(u32, i64, i64)>>>,
}

impl Proof {
    /// Reads a proof.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Proof`].
    pub fn open(path: &Path) -> Result<Proof, Error> {
        let file = path.display().to_string();
        let read = relayout_fsio::read(path).map_err(|e| Error::of_file(&file, &e))?;
        Proof::read(&read, &file)
    }

    /// Reads a proof from memory. `file` is what errors call it.
    ///
    /// # Errors
    /// [`Error::Proof`].
    pub fn read(text: &[u8], file: &str) -> Result<Proof, Error> {
        let wrong = |why: String| Error::Proof { file: file.to_owned(), why };
        let proof: Proof = serde_json::from_slice(text).map_err(|e| wrong(e.to_string()))?;
        if proof.version != VERSION {
            return Err(wrong(format!("it has version {}, and this program reads {VERSION}", proof.version)));
        }
        Ok(proof)
    }
}
