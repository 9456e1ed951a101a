//! Whether one model can stand for another: both run as their files stand and as the runtime rewrites them, on several kinds of inputs, and
//! every element is held against what the first model's own noise allows.

use crate::compare::OutputComparison;
use crate::model::{Level, ModelSource};
use crate::noise::Near;
use crate::original::{Original, Running};
use crate::side::{Seen, Side};
use crate::{Comparison, Difference, Inputs, Options, PluginProvider, Runtime, VerifyError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// How two models are checked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CheckOptions {
    /// How near the outputs must be.
    pub near: Near,
    /// How many sets of random inputs are drawn: normal numbers and a batch of two, numbers in 0..1 and a batch of three, images in 0..255 and
    /// a batch of one, and so on. 0 counts as 1.
    pub rounds: u32,
    /// Whether a difference counts only if the first model does not differ from itself by as much where its inputs and weights are off by a
    /// hundred thousandth of themselves; else it is [`Answer::NotCompared`]. Two models that round to whole steps may differ by a step, and by
    /// what becomes of it, where the last bits of what they round differ.
    pub confirmed: bool,
    /// As [`Options::threads`].
    pub threads: usize,
    /// As [`Options::custom_ops`].
    pub custom_ops: Vec<PathBuf>,
    /// As [`Options::provider`].
    pub provider: Option<PluginProvider>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { near: Near::Noise, rounds: 3, confirmed: false, threads: 1, custom_ops: Vec::new(), provider: None }
    }
}

/// What is known of an output, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Answer {
    /// Every element was equal in every run.
    Equal,
    /// Elements differ by no more than the first model differs from itself, or as was asked for.
    Near,
    /// Nothing that could be compared differs, but something could not be compared.
    NotCompared,
    /// The models do not compute the same.
    Differs,
}

/// One output of both models, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedOutput {
    /// Its figures, the worst of all runs.
    #[serde(flatten)]
    pub figures: OutputComparison,
    /// What is known of it.
    pub answer: Answer,
    /// What differs, or why it was not compared.
    pub why: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckResult {
    /// The worst of the outputs' answers; [`Answer::Differs`] if the models do not take the same inputs.
    pub answer: Answer,
    /// How many sets of inputs the models ran on; 0 if the second does not take the inputs of the first.
    pub rounds: u32,
    /// Whether inputs and outputs agree and all outputs were equal.
    pub exact: bool,
    /// The worst `rms` of the outputs.
    pub rms: f64,
    /// The worst `largest_absolute` of the outputs.
    pub largest_absolute: f64,
    /// The worst `largest_relative` of the outputs.
    pub largest_relative: f64,
    /// Where the interfaces of the models differ. Empty if they agree.
    pub differences: Vec<Difference>,
    /// The outputs, in the order of the first model.
    pub outputs: Vec<CheckedOutput>,
    /// The sets of inputs.
    pub inputs: Vec<String>,
    /// What else is to know, such as a level at which the original does not load.
    pub notes: Vec<String>,
}

impl CheckResult {
    /// Whether the second model can stand for the first, and all of it was compared.
    pub fn holds(&self) -> bool {
        self.answer <= Answer::Near
    }

    fn new(differences: Vec<Difference>, outputs: Vec<CheckedOutput>, inputs: Vec<String>, notes: Vec<String>) -> Self {
        let figures = outputs.iter().map(|output| output.figures.clone()).collect();
        let rounds = if outputs.is_empty() && !differences.is_empty() { 0 } else { inputs.len() as u32 };
        let Comparison { rounds, exact, rms, largest_absolute, largest_relative, differences, .. } =
            Comparison::new(rounds, differences, figures);
        let worst = outputs.iter().map(|output| output.answer).max().unwrap_or(Answer::NotCompared);
        let answer = if differences.is_empty() { worst } else { Answer::Differs };
        Self { answer, rounds, exact, rms, largest_absolute, largest_relative, differences, outputs, inputs, notes }
    }
}

impl fmt::Display for CheckResult {
    /// A line per difference, per output and per note.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = || "none".to_owned();
        let mut lines = Vec::new();
        for d in &self.differences {
            let (a, b) = (d.a.clone().unwrap_or_else(none), d.b.clone().unwrap_or_else(none));
            lines.push(format!("{}: {a} in the first, {b} in the second", d.what));
        }
        for CheckedOutput { figures, answer, why } in &self.outputs {
            let figure = || format!("rms {:.1e}, largest {:.1e}", figures.rms, figures.largest_relative);
            let why = why.as_deref().unwrap_or_default();
            lines.push(match answer {
                Answer::Equal => format!("output `{}`: equal", figures.name),
                Answer::Near => format!("output `{}`: within noise, {}", figures.name, figure()),
                Answer::Differs => format!("output `{}`: differs, {why}", figures.name),
                Answer::NotCompared => format!("output `{}`: not compared, {why}", figures.name),
            });
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        f.write_str(&lines.join("\n"))
    }
}

/// Checks whether `b` can stand for `a`, which is the reference.
///
/// Both run with the runtime's rewrites off and with all of them, on several kinds of inputs. What the first model differs from itself by,
/// between these and where the last bit of its inputs is another, is its noise; an element of the second may differ by what noise and sums
/// in another order explain. Whole numbers and booleans may differ where the first model's own flip. Where the first model is further from
/// itself than can be compared, or an output has no number in it, that is the answer.
///
/// `doing` is told what is done next, so that a caller in another process knows what ended this one.
///
/// # Errors
/// As those of [`verify`](crate::verify).
pub fn check(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &Inputs,
    options: &CheckOptions,
    doing: &mut dyn FnMut(&str),
) -> Result<CheckResult, VerifyError> {
    let mut running = Running { runtime, options: options.run(), doing };
    let mut notes = Vec::new();
    let (original, mut plain) = Original::ran(&mut running, a, inputs, options.rounds, &mut notes)?;
    let mut rewritten = original.again(&mut running, a, &mut notes)?;
    if let Some(rewritten) = &mut rewritten {
        plain.share(rewritten, &original.precisions);
    }
    let (mut verdicts, mut looked_closer, mut shaken) = (Vec::new(), false, None);
    let mut differences = Vec::new();
    for level in [Level::Disabled, Level::All] {
        let reference = if level == Level::All { rewritten.as_ref() } else { Some(&plain) };
        let second = match original.second(&mut running, b, level) {
            Ok(second) => second,
            // Neither runs: that is the original's own.
            Err(VerifyError::Load { .. } | VerifyError::Run { .. }) if reference.is_none() => continue,
            Err(error) => return Err(error),
        };
        differences = second.differences;
        let Some(results) = second.results else {
            return Ok(CheckResult::new(differences, Vec::new(), Vec::new(), notes));
        };
        if reference.is_none() {
            continue;
        }
        let near = if level == Level::All && options.near == Near::Exact { Near::Noise } else { options.near };
        let judged = |plain: &Side, rewritten: Option<&Side>| {
            let reference = if level == Level::All { rewritten.unwrap_or(plain) } else { plain };
            reference.judged(&results, near, &original)
        };
        let mut seen = judged(&plain, rewritten.as_ref());
        if near == Near::Noise && !looked_closer && seen.iter().any(Seen::differs) {
            looked_closer = true;
            original.look_closer(&mut running, a, inputs, &mut plain, rewritten.as_mut());
            seen = judged(&plain, rewritten.as_ref());
        }
        if options.confirmed && seen.iter().any(Seen::differs) {
            let shaken = shaken.get_or_insert_with(|| original.shaken(&mut running, a, inputs, &plain));
            for seen in &mut seen {
                seen.excuse(&results, shaken);
            }
        }
        Seen::join(&mut verdicts, seen);
    }
    let what: Vec<String> = original.draws.iter().map(|draw| draw.what.clone()).collect();
    let outputs = verdicts.into_iter().map(|seen: Seen| seen.verdict(&what)).collect();
    Ok(CheckResult::new(differences, outputs, what, notes))
}

impl CheckOptions {
    fn run(&self) -> Options {
        Options {
            threads: self.threads,
            custom_ops: self.custom_ops.clone(),
            provider: self.provider.clone(),
            ..Options::default()
        }
    }
}
