//! What is decided for the networks of `testdata`, against an integer linear program of the decision as it is posed: nothing
//! merged, nothing pinned.

use crate::common;
use crate::fill;
#[path = "../../../solve/src/tests/oracle.rs"]
mod oracle;

use oracle::optimum;
use relayout::certificate::problem;
use relayout::solve::{Limits, solve};
use relayout::{Model, Options, Target, target};
use std::path::{Path, PathBuf};

/// All networks, and all small cases.
fn files() -> Vec<PathBuf> {
    let themes = std::fs::read_dir(common::testdata("cases")).expect("there are cases");
    let themes = themes.map(|theme| format!("cases/{}", theme.expect("readable").file_name().to_string_lossy()));
    ["models".to_owned(), "demo".to_owned()].into_iter().chain(themes).flat_map(|f| common::model_files(&f)).collect()
}

/// How many variables are left after merging and pinning, or what is wrong.
fn compare(path: &Path, target: &dyn Target) -> Result<usize, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let model = Model::from_bytes(fill::fill(&bytes)?.into(), None).map_err(|e| e.to_string())?;
    let problem = problem(&model, target, &Options::default()).map_err(|e| e.to_string())?;
    let (ours, theirs) = (solve(&problem, &Limits::default()), optimum(&problem)?);
    if (ours.cost, ours.bound, ours.optimal) == (theirs.cost, theirs.cost, true) {
        return Ok(ours.stats.variables_left);
    }
    Err(format!("the solver says {} ns, at least {} ns, the program {} ns", ours.cost, ours.bound, theirs.cost))
}

/// `open`: decisions among `testdata` that still have variables after merging and pinning, at the least.
fn check(name: &str, open: usize) {
    let target = target(name).expect("a built-in target");
    let (mut problems, mut found) = (Vec::new(), 0);
    for path in files() {
        match compare(&path, target.as_ref()) {
            Ok(left) => found += usize::from(left > 0),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    assert!(problems.is_empty(), "target {name}:\n{}", problems.join("\n"));
    assert!(found >= open, "target {name}: only {found} decisions leave anything to the solvers");
}

#[test]
fn decisions_for_standard_onnx_are_those_of_the_program() {
    check("onnx", 100);
}

#[test]
fn decisions_for_ort_cpu_are_those_of_the_program() {
    check("ort-cpu", 90);
}

#[test]
fn decisions_for_channels_last_kernels_are_those_of_the_program() {
    check("nhwc", 100);
}
