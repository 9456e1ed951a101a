//! The command line of relayout: the only place with a terminal, an environment and an exit status.
//!
//! Results go to stdout, everything else to stderr. Exit status: 0 fine, 1 the model, 2 usage, 3 a check did not hold.

mod args;
mod audit;
mod bench;
mod bundle;
mod calibrate;
mod commands;
mod failure;
mod kernels;
mod ops;
mod progress;
mod terminal;

use args::{Args, BenchWhat, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => return Failure::arguments(&error).report(),
        Err(help) => {
            // A closed pipe is the only way this fails, and then there is nobody to tell.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Optimize(a) => commands::optimize(a),
        Command::Print(a) => commands::print(a),
        Command::Explain(a) => commands::explain(a),
        Command::Audit(a) => audit::audit(a),
        Command::CheckCertificate(a) => audit::check_certificate(a),
        Command::CheckBundle(a) => bundle::check_bundle(a),
        Command::Verify(a) => commands::verify(a),
        Command::Calibrate(a) => calibrate::calibrate(a),
        Command::Targets(a) => commands::targets(a),
        Command::Kernels(a) => kernels::kernels(a),
        Command::Bench(a) => match &a.what {
            BenchWhat::Permute(a) => bench::permute(a),
        },
        Command::Ops(a) => commands::ops(a),
    }
}
