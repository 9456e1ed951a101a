//! The command line of relayout: the only crate with a terminal, an environment and an exit status.
//!
//! Results go to stdout, everything else to stderr. Exit status: 0 fine, 1 the model, 2 usage, 3 a check did not hold.
//!
//! The program is one call of [`run`]. Whatever starts programs of its own, as the Python package does, can call it too:
//!
//! ```no_run
//! use std::ffi::OsString;
//!
//! let words = ["relayout", "optimize", "model.onnx"].map(OsString::from);
//! let status = relayout_cli::run(words);
//! std::process::exit(status.into());
//! ```

mod args;
mod audit;
mod batch;
mod bench;
mod bundle;
mod calibrate;
mod commands;
mod diff;
mod doctor;
mod failure;
mod inputs;
mod kernels;
mod ops;
mod optimize;
mod page;
mod pieces;
mod progress;
mod prove;
mod rules;
mod shell;
mod solve;
mod terminal;
mod tune;
mod verdict;
mod verify;
mod version;
mod written;

use args::{Args, BenchWhat, Command, Format};
use clap::{CommandFactory as _, FromArgMatches as _};
use failure::Failure;
use std::ffi::OsString;
use terminal::Settings;

/// Runs the program with these words, the first of which is its own name. Gives the exit status.
///
/// To be called once in a process, which is to end with this status: how results are written and what signals do is set for good, and
/// the memory of the model is left to the system.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    if words.get(1).is_some_and(|word| word == relayout_verify::APART) {
        return relayout_verify::answer_apart();
    }
    let mut args = match parse(&words) {
        Ok(args) => args,
        Err(error) => return failure::arguments(&error, &words),
    };
    let common = &args.common;
    terminal::set(Settings {
        json: common.json || common.format == Format::Json,
        quiet: common.quiet,
        verbose: common.verbose,
    });
    #[cfg(unix)]
    if let Err(error) = relayout::fsio::mind_signals(lost) {
        return Failure::model(format!("cannot listen to signals: {error}")).report();
    }
    if let Some(decide) = args.command.decide_mut() {
        doctor::choose(decide);
    }
    if let Command::Optimize(optimize) = &mut args.command {
        tune::for_this_machine(optimize);
    }
    if let Some(decide) = args.command.decide_mut() {
        doctor::tell_chosen(decide);
    }
    match carry_out(&args) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

/// A page of a mapped file can't be read any more: whoever needs it does not return.
#[cfg(unix)]
fn lost(file: Option<&std::path::Path>) {
    let file = file.map_or_else(|| "a file".to_owned(), |path| path.display().to_string());
    let why = "it was cut off while it was read, or its disk failed; try again when nothing writes to it";
    let failure = Failure::model(format!("cannot read {file}: {why}"));
    failure.tell();
    std::process::exit(i32::from(failure.status()));
}

/// Says how the program is started where that is not by the file of this process, such as an interpreter and the name of a module: what
/// runs models of others does so in a process of its own. To be called before [`run`].
pub fn started_by(words: Vec<OsString>) {
    verify::set_started_by(words);
}

/// The arguments. What `--version` says is looked for only if it is asked for.
fn parse(words: &[OsString]) -> Result<Args, clap::Error> {
    let mut command = Args::command();
    if words.iter().any(|word| word == "--version") {
        command = command.long_version(version::long());
    }
    Args::from_arg_matches(&command.try_get_matches_from_mut(words)?)
}

fn carry_out(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Doctor(a) => doctor::doctor(a),
        Command::Optimize(a) => optimize::optimize(a),
        Command::Print(a) => commands::print(a),
        Command::Explain(a) => commands::explain(a),
        Command::Audit(a) => audit::audit(a),
        Command::Diff(a) => diff::diff(a),
        Command::CheckCertificate(a) => audit::check_certificate(a),
        Command::Solve(a) => solve::solve(a),
        Command::Prove(a) => prove::prove(a),
        Command::CheckBundle(a) => bundle::check_bundle(a),
        Command::Verify(a) => verify::verify(a),
        Command::Calibrate(a) => calibrate::calibrate(a),
        Command::Targets(a) => commands::targets(a),
        Command::Kernels(a) => kernels::kernels(a),
        Command::Bench(a) => match &a.what {
            BenchWhat::Permute(a) => bench::permute(a),
        },
        Command::Ops(a) => commands::ops(a),
        Command::Rules(a) => rules::rules(a),
        Command::Completions(a) => shell::completions(a),
        Command::Man(a) => shell::man(a),
    }
}
