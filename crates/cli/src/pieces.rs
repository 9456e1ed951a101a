//! `relayout prove --pieces`: what is left to show, as two small models.

use crate::args;
use crate::failure::Failure;
use crate::verify;
use relayout::Model;
use relayout::fsio::Output;
use relayout_proof::Gap;
use relayout_verify::{Answer, CheckResult};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The files of both, in the folder that is named.
const NAMES: [&str; 2] = ["input.onnx", "result.onnx"];

/// Two models of the same inputs, which nobody showed to compute the same.
#[derive(Serialize)]
pub(crate) struct Pieces {
    input: PathBuf,
    result: PathBuf,
    /// Both on random inputs, if they ran.
    ran: Option<CheckResult>,
}

impl fmt::Display for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (input, result) = (self.input.display(), self.result.display());
        write!(f, "pieces: {input} and {result}")?;
        match &self.ran {
            Some(ran) if ran.answer == Answer::Differs => {
                write!(f, "; they differ, as `relayout verify` of them shows\n{ran}")
            }
            Some(_) => write!(f, "; no difference was seen on random inputs"),
            None => Ok(()),
        }
    }
}

/// Writes both into a folder, and runs them unless nothing may be run.
pub(crate) fn write(a: &args::Prove, folder: &Path, cut: &Gap) -> Result<Pieces, Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::model(format!("cannot make the folder {}: {e}", folder.display())))?;
    let labelled = |names: &[String]| -> Vec<(String, String)> {
        cut.given.iter().zip(names).map(|(label, name)| (format!("given.{label}"), name.clone())).collect()
    };
    let (of_input, of_result) = (labelled(&cut.given), labelled(&cut.given_in_result));
    let [input, result] = NAMES.map(|name| folder.join(name));
    let input = one(&a.a, &input, &of_input, &cut.value)?;
    let result = one(&a.b, &result, &of_result, &cut.value)?;
    let ran = if a.no_run { None } else { verify::on_random_inputs(&input, &result).ok() };
    Ok(Pieces { input, result, ran })
}

/// That nothing would be replaced.
pub(crate) fn check_place(folder: &Path) -> Result<(), Failure> {
    match NAMES.iter().map(|name| folder.join(name)).find(|path| path.exists()) {
        Some(path) => Err(Failure::model(format!("{} is there already; name another folder", path.display()))),
        None => Ok(()),
    }
}

fn one(model: &Path, to: &Path, given: &[(String, String)], value: &str) -> Result<PathBuf, Failure> {
    let piece = Model::open(model).and_then(|model| model.piece(given, value)).map_err(Failure::model)?;
    Output::new(to, piece.to_vec()).and_then(Output::commit).map_err(Failure::model)?;
    Ok(to.to_owned())
}
