//! `relayout prove` and `optimize --prove`: proofs that a result computes what its model computes.

use crate::args::{self, Emit};
use crate::commands::{is_stdio, is_stdout};
use crate::failure::Failure;
use crate::pieces::{self, Pieces};
use crate::terminal::{quiet, tell};
use crate::verdict::{Page, told};
use crate::verify;
use crate::written::check_written;
use relayout::Report;
use relayout_proof::{Agreed, AssumedReading, Contents, Gap, Proof, ReadingOf, UpToTypes, Verdict, prove_contents};
use relayout_verify::{Answer, CheckResult, CheckedOutput};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// `relayout prove`
pub(crate) fn prove(a: &args::Prove) -> Result<(), Failure> {
    if let Some(html) = &a.html {
        check_written(&[("--html", Some(html))], &[&a.a, &a.b])?;
    }
    if let Some(folder) = &a.pieces {
        pieces::check_place(folder)?;
    }
    let Some(path) = &a.proof else { return found(a) };
    let proof = Proof::open(path).map_err(Failure::model)?;
    let read = |path| Contents::open(path).map(|contents| contents.read_as(a.reading()));
    let of = |(a, b)| prove_contents(&a, &b, &Agreed::default(), &proof);
    let verdict = read(&a.a).and_then(|input| Ok((input, read(&a.b)?))).and_then(of).map_err(Failure::model)?;
    // Where it does not hold, the text is the failure.
    let holds = verdict.holds();
    let readings = if holds { runtime_readings(a)? } else { Vec::new() };
    told(a, &verdict, if holds { Some(verdict.to_string()) } else { None }, &Page::of(&verdict).reads(readings))?;
    held(&verdict)
}

/// What `prove` says without a proof.
#[derive(Serialize)]
struct Judged<'f> {
    /// `different` or `undecided`.
    verdict: &'static str,
    /// Where the checker stops, and why.
    at: &'f str,
    why: &'f str,
    /// What is left to show.
    cut: Option<&'f Gap>,
    /// Both files on random inputs, if they ran.
    ran: Option<&'f CheckResult>,
    /// What is left to show, as two models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<&'f Pieces>,
}

impl fmt::Display for Judged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.verdict.to_uppercase(), self.at, self.why)?;
        self.cut.map_or(Ok(()), |cut| write!(f, "\n{cut}"))?;
        self.ran.map_or(Ok(()), |ran| write!(f, "\n{ran}"))?;
        self.pieces.map_or(Ok(()), |pieces| write!(f, "\n{pieces}"))
    }
}

/// Two files of which nobody says how one was made of the other.
fn found(a: &args::Prove) -> Result<(), Failure> {
    let found = relayout_proof::find(&a.a, &a.b, a.reading()).map_err(Failure::model)?;
    let Verdict::Refused { at, why, .. } = &found.verdict else {
        return told(
            a,
            &found.verdict,
            Some(found.verdict.to_string()),
            &Page::of(&found.verdict).reads(found.readings.clone()),
        );
    };
    // A runtime that is not there, or does not run the files, leaves it open.
    let ran = if a.no_run { None } else { verify::on_random_inputs(&a.a, &a.b).ok() };
    if let Some(same) = relayout_proof::find_up_to_types(&a.a, &a.b, a.reading()).map_err(Failure::model)? {
        return up_to_types(a, &same, ran.as_ref());
    }
    let ran_apart = ran.as_ref().is_some_and(ran_apart);
    // A run tells how ONNX Runtime reads a node, and not how the standard does.
    let differs = ran_apart && (a.reading == args::ReadingOf::Onnxruntime || are_read_alike(a)?);
    let verdict = if differs { "different" } else { "undecided" };
    let pieces = cut_out(a, found.cut.as_ref());
    let judged = Judged { verdict, at, why, cut: found.cut.as_ref(), ran: ran.as_ref(), pieces: pieces.as_ref() };
    let page = Page {
        head: format!("{}: {at}: {why}", verdict.to_uppercase()),
        cut: judged.cut,
        ran: judged.ran,
        ..Page::default()
    };
    told(a, &judged, Some(judged.to_string()), &page)?;
    let (a, b) = (a.a.display(), a.b.display());
    if differs {
        Err(Failure::Check(format!("{a} and {b} do not compute the same")))
    } else {
        Err(Failure::Undecided(format!("nobody showed that {a} and {b} compute the same, or that they do not")))
    }
}

/// Whether an output differs, or the second model does not take the inputs of the first. That it declares other extents of what it takes,
/// and computes the same of it, is no difference in what it computes.
fn ran_apart(ran: &CheckResult) -> bool {
    let output_differs = ran.outputs.iter().any(|output| output.answer == Answer::Differs);
    output_differs || (ran.rounds == 0 && ran.answer == Answer::Differs)
}

/// What is left to show as two models, if that was asked for. That they can't be written takes nothing from the verdict.
fn cut_out(a: &args::Prove, cut: Option<&Gap>) -> Option<Pieces> {
    let folder = a.pieces.as_ref()?;
    let nothing = || Failure::model("no value has one name in both files");
    let written = cut.ok_or_else(nothing).and_then(|cut| pieces::write(a, folder, cut));
    written.inspect_err(|why| tell(&format!("no pieces are written: {}\n", why.message().unwrap_or_default()))).ok()
}

/// The readings of ONNX Runtime that a verdict rests on which holds.
fn runtime_readings(a: &args::Prove) -> Result<Vec<AssumedReading>, Failure> {
    match a.reading() {
        ReadingOf::OnnxRuntime => relayout_proof::readings(&a.a, &a.b).map_err(Failure::model),
        _ => Ok(Vec::new()),
    }
}

/// Whether the standard and ONNX Runtime agree about all nodes of both files, as far as the table of readings tells.
fn are_read_alike(a: &args::Prove) -> Result<bool, Failure> {
    Ok(relayout_proof::readings(&a.a, &a.b).map_err(Failure::model)?.is_empty())
}

impl args::Prove {
    /// Whose reading nodes have, as the checker calls it.
    pub(crate) fn reading(&self) -> ReadingOf {
        match self.reading {
            args::ReadingOf::Onnx => ReadingOf::Onnx,
            args::ReadingOf::Onnxruntime => ReadingOf::OnnxRuntime,
        }
    }
}

/// What `prove` says of files that are the same up to the types of their floats.
#[derive(Serialize)]
struct SameUpToTypes<'f> {
    /// `same_up_to_types`.
    verdict: &'static str,
    #[serde(flatten)]
    same: &'f UpToTypes,
    /// Both files on random inputs, if they ran.
    ran: Option<&'f CheckResult>,
}

impl fmt::Display for SameUpToTypes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.same.types.each_ref().map(|types| types.join(" and "));
        write!(f, "SAME UP TO TYPES: the same ops on the same elements, in {a} in the first and in {b} in the second")?;
        write!(f, "\nwith all of one type: {}", self.same.proof)?;
        for CheckedOutput { figures, .. } in self.ran.iter().flat_map(|ran| &ran.outputs) {
            let (rms, largest) = (figures.rms, figures.largest_relative);
            write!(f, "\nmeasured on random inputs: output `{}`: rms {rms:.1e}, largest {largest:.1e}", figures.name)?;
        }
        Ok(())
    }
}

/// Two files whose floats are of other types. How far their results are apart is measured, not proved.
fn up_to_types(a: &args::Prove, same: &UpToTypes, ran: Option<&CheckResult>) -> Result<(), Failure> {
    let said = SameUpToTypes { verdict: "same_up_to_types", same, ran };
    let text = said.to_string();
    let head = text.lines().next().unwrap_or_default().to_owned();
    told(a, &said, Some(text), &Page { head, sizes: same.proof.sizes(), ran, ..Page::default() })?;
    if a.up_to_types {
        return Ok(());
    }
    let (a, b) = (a.a.display(), a.b.display());
    Err(Failure::Undecided(format!("{a} and {b} compute in other types; --up-to-types is content with that")))
}

/// What options of `optimize` have to be for a proof.
pub(crate) fn check_call(a: &args::Optimize) -> Result<(), Failure> {
    let output = &a.output;
    let from_stream = a.models.iter().any(|model| is_stdio(model));
    let to_stream = output.out.as_ref().is_some_and(|out| is_stdout(out));
    if a.checks.prove && (from_stream || to_stream || output.dry_run || output.emit == Emit::Bundle) {
        return Err(Failure::usage("--prove reads both models from their files: name files, and write one"));
    }
    Ok(())
}

/// Says loudly of a result that it is not proved, and why.
pub(crate) fn tell_unproved(out: &Path, report: &Report) {
    if let Some(why) = report.proof.as_ref().and_then(|proof| proof.why.as_ref()) {
        let why = why.replace(['\n', '\r'], " ");
        tell(&format!("UNPROVED: {}: {why}\n", out.display()));
    }
}

/// Checks what was written against its model.
pub(crate) fn written(model: &Path, out: &Path, proof: &relayout::proof::Proof) -> Result<(), Failure> {
    let text = serde_json::to_vec(proof).map_err(Failure::model)?;
    let proof = Proof::read(&text, "the proof").map_err(Failure::model)?;
    let verdict = relayout_proof::prove(model, out, &proof).map_err(Failure::model)?;
    if verdict.holds() && !quiet() {
        tell(&format!("{}: {verdict}\n", out.display()));
    }
    held(&verdict)
}

fn held(verdict: &Verdict) -> Result<(), Failure> {
    if verdict.holds() { Ok(()) } else { Err(Failure::Check(verdict.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::{CheckResult, ran_apart};
    use serde_json::{from_value, json};

    /// What a run found of an output, where the second file declares another extent of its input.
    fn found(answer: &str, rounds: u32) -> CheckResult {
        let output = json!({
            "name": "y", "element_type": "f32", "shape": [4], "mismatch": null, "exact": false, "differing": 1, "rms": 0.0,
            "largest_absolute": 0.0, "largest_relative": 0.0, "worst_at": null, "answer": answer, "why": null,
        });
        let outputs = if rounds == 0 { json!([]) } else { json!([output]) };
        let difference = json!({ "what": "input `x`", "a": "f32[n,m]", "b": "f32[n,8]" });
        from_value(json!({
            "answer": "differs", "rounds": rounds, "exact": false, "rms": 0.0, "largest_absolute": 0.0, "largest_relative": 0.0,
            "differences": [difference], "outputs": outputs, "inputs": [], "notes": [],
        }))
        .unwrap()
    }

    #[test]
    fn other_declared_extents_are_no_difference_in_what_is_computed() {
        assert!(!ran_apart(&found("equal", 3)) && !ran_apart(&found("near", 3)));
        assert!(ran_apart(&found("differs", 3)));
        assert!(ran_apart(&found("equal", 0)), "it does not take the inputs of the first");
    }
}
