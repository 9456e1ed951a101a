//! The finder: what another optimizer made of a model comes without a proof. It finds what the checker has to be told, and cuts down what
//! the checker does not see. Nothing in here is trusted: whether models compute the same is for the checker alone to say.

mod cut;
mod precision;
mod readings;
mod same;

pub use cut::Gap;
#[cfg(test)]
pub(crate) use precision::between;
pub use precision::{UpToTypes, find_up_to_types};
pub use readings::AssumedReading;
#[cfg(test)]
pub(crate) use readings::of as told_readings;
pub use same::Link;

use crate::certificate::Proof;
use crate::checks::agreed::Agreed;
use crate::checks::check::{Pair, verdict};
use crate::checks::hosts;
use crate::checks::verdict::Verdict;
use crate::error::Error;
use crate::files::contents::Contents;
use crate::files::model::{Model, ReadingOf};
use serde::Serialize;
use std::path::Path;

/// Channels of a block on the hosts that there are, the more usual first.
const BLOCKS: [i64; 2] = [16, 8];

/// What was found about two files of which nobody says how one was made of the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchResult {
    /// What the checker says.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The smallest pair of pieces between proved values, if the models are not proved to compute the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Gap>,
    /// The readings that a verdict rests on that holds, where the standard and ONNX Runtime differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<AssumedReading>,
}

/// Whether the model in the file `result` computes what the one in `input` computes, and what is left to show if nobody knows.
///
/// A file that does not say for which block of channels its ops of `com.microsoft.nchwc` are is looked at for each that hosts have.
///
/// # Errors
/// [`Error`] if a file can't be read.
pub fn find(input: &Path, result: &Path, reading: ReadingOf) -> Result<SearchResult, Error> {
    let [a, b] = both(input, result, reading)?;
    let blocks = if hosts::is_silent(&a) || hosts::is_silent(&b) { BLOCKS.map(Some).to_vec() } else { vec![None] };
    let mut last = None;
    for block in blocks {
        let (a, b) = (for_block(&a, block), for_block(&b, block));
        let found = found(&a, &b);
        if found.verdict.holds() {
            return Ok(found);
        }
        last = last.or(Some(found));
    }
    Ok(last.unwrap_or_else(|| found(&a, &b)))
}

/// The values of the result that are values of the input, in the order in which the result makes them: what a verdict rests on.
///
/// The finder reads both models with some sizes and the checker's terms. The verdict is [`find`]'s.
///
/// # Errors
/// [`Error`] if a file can't be read.
pub fn links(input: &Path, result: &Path, reading: ReadingOf) -> Result<Vec<Link>, Error> {
    let [a, b] = both(input, result, reading)?;
    let block = (hosts::is_silent(&a) || hosts::is_silent(&b)).then_some(BLOCKS[0]);
    Ok(same::links(&for_block(&a, block), &for_block(&b, block)))
}

/// The readings of ONNX Runtime that a verdict about the models in two files rests on, if it holds and is about these readings.
///
/// # Errors
/// [`Error`] if a file can't be read.
pub fn readings(input: &Path, result: &Path) -> Result<Vec<AssumedReading>, Error> {
    let [a, b] = both(input, result, ReadingOf::OnnxRuntime)?;
    Ok(readings::of(&a, &b))
}

fn both(input: &Path, result: &Path, reading: ReadingOf) -> Result<[Model; 2], Error> {
    let read = |path| Contents::open(path)?.read_as(reading).read();
    Ok([read(input)?, read(result)?])
}

fn for_block(model: &Model, block: Option<i64>) -> Model {
    Model { block: model.block.or(block), ..model.clone() }
}

pub(crate) fn found(a: &Model, b: &Model) -> SearchResult {
    let pair = Pair { a, b, agreed: &Agreed::default(), proof: &Proof::default() };
    let verdict = verdict(&pair);
    let holds = verdict.holds();
    let rests = holds && a.reading == ReadingOf::OnnxRuntime;
    let cut = if holds { None } else { cut::smallest(a, b, &same::pairs(a, b)) };
    SearchResult { verdict, cut, readings: if rests { readings::of(a, b) } else { Vec::new() } }
}
