//! Decisions by the solver and by an integer linear program, side by side:
//!
//!     cargo run -p relayout --example milp -- [--target NAME]... FILE...
//!
//! A line for each file and target: the price that the solver gives, its bound, and the price by the program of the problem with
//! nothing merged or pinned; its variables and states before and after merging and pinning; the size of the program. Exit status
//! 1 if any two of the three prices differ, or a decision could not be made.

#[path = "../../solve/src/tests/oracle.rs"]
mod oracle;

use oracle::optimum;
use relayout::certificate::problem;
use relayout::solve::{Limits, solve};
use relayout::{Model, Options, target};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Targets, unless some are named.
const TARGETS: [&str; 3] = ["onnx", "ort-cpu", "nhwc"];

/// Compares the decisions for every file and target.
pub(crate) fn main() -> ExitCode {
    let (mut targets, mut files) = (Vec::new(), Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--target" { targets.extend(args.next()) } else { files.push(arg) }
    }
    if targets.is_empty() {
        targets.extend(TARGETS.map(str::to_owned));
    }
    if files.is_empty() {
        eprintln!("usage: milp [--target NAME]... FILE...");
        return ExitCode::from(2);
    }
    let (mut passed, mut failed) = (0, 0);
    for (file, name) in files.iter().flat_map(|file| targets.iter().map(move |name| (file, name))) {
        let (equal, said) = compare(Path::new(file), name).unwrap_or_else(|error| (false, error.to_string()));
        println!("{file} {name}: {said}");
        if equal { passed += 1 } else { failed += 1 }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// Whether all agree, and what there is to say.
fn compare(file: &Path, name: &str) -> Result<(bool, String), Box<dyn Error>> {
    let problem = problem(&Model::open(file)?, target(name)?.as_ref(), &Options::default())?;
    let (ours, theirs) = (solve(&problem, &Limits::default()), optimum(&problem)?);
    let equal = ours.cost == theirs.cost && ours.bound == theirs.cost;
    let stats = &ours.stats;
    let said = format!(
        "{}, solver {} ns, bound {} ns, program {} ns; {} variables with {} states, after merging and pinning {} with {}; \
         program of {} columns and {} rows in {} parts, {} branches",
        if equal { "equal" } else { "NOT EQUAL" },
        ours.cost,
        ours.bound,
        theirs.cost,
        stats.variables,
        stats.states,
        stats.variables_left,
        stats.states_left,
        theirs.columns,
        theirs.rows,
        theirs.parts,
        theirs.nodes,
    );
    Ok((equal, said))
}
