//! Arguments.
//!
//! An option means the same in every command that has it: `-o`, `--out` is where something is written, `--input` and `--output` are
//! layouts, `--force` lets a name that is taken be replaced, `--format json` is for programs.

mod examples;
mod machine;
mod model;
mod problem;
mod request;

pub(crate) use machine::{Bench, BenchPermute, BenchWhat, Calibrate, Doctor, Kernels, Mode, Ops, Rules, Targets};
pub(crate) use model::{
    Audit, CheckBundle, CheckCertificate, Diff, Emit, Explain, Optimize, PluginArgs, Print, Prove, ReadingOf, Verify,
};
pub(crate) use problem::Solve;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use relayout::machine::Fitting;
use relayout::request::dim;
use relayout::targets::Release;
use relayout::targets::measured::MACHINES;
use relayout::{IoLayout, Size};
use std::path::PathBuf;

/// Layout optimizer for ONNX models.
#[derive(Debug, Parser)]
#[command(name = "relayout", version, disable_version_flag = true, max_term_width = 100, after_help = examples::TOP)]
pub(crate) struct Args {
    /// Print the version; --version also says the target, the instruction sets and the ONNX Runtime that are found
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,

    #[command(flatten)]
    pub(crate) common: Common,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct Common {
    /// What results and errors are written as: `json` is for programs, with one object per error on stderr
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Short for --format json
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Leave out the lines that say what was done; errors and what was asked for stay
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Say on stderr what is read, decided and written, and how long it takes
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    pub(crate) verbose: bool,
}

/// How results and errors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is on this machine and which options fit it; of a model, what each target would gain
    #[command(after_help = examples::DOCTOR)]
    Doctor(Doctor),
    /// Rewrite models so that they move less data
    #[command(after_help = examples::OPTIMIZE)]
    Optimize(Optimize),
    /// Say which moves a model has, which can go, and why the others stay
    #[command(after_help = examples::EXPLAIN)]
    Explain(Explain),
    /// Say what the moves of any model cost and what they would have to cost, without rewriting it
    #[command(after_help = examples::AUDIT)]
    Audit(Audit),
    /// Say what changed between two models: nodes, constants, inputs and outputs, operator sets
    #[command(after_help = examples::DIFF)]
    Diff(Diff),
    /// Run two models in ONNX Runtime and compare their outputs
    #[command(after_help = examples::VERIFY)]
    Verify(Verify),
    /// Print a model's graph as text, as JSON or for Graphviz
    #[command(after_help = examples::PRINT)]
    Print(Print),
    /// Check a proof of how good the decision for a model is
    #[command(after_help = examples::CHECK_CERTIFICATE)]
    CheckCertificate(CheckCertificate),
    /// Solve a cost function network from a file, say how good the solution is, and prove it
    #[command(after_help = examples::SOLVE)]
    Solve(Solve),
    /// Check a proof that a result computes what its model computes
    #[command(after_help = examples::PROVE)]
    Prove(Prove),
    /// Check that a bundle is whole and holds together
    #[command(after_help = examples::CHECK_BUNDLE)]
    CheckBundle(CheckBundle),
    /// Write CUDA kernels for the moves that a model has left
    #[command(after_help = examples::KERNELS)]
    Kernels(Kernels),
    /// Measure what ops cost on this machine, or hold a table of costs against it
    #[command(after_help = examples::CALIBRATE)]
    Calibrate(Calibrate),
    /// Time something on this machine
    #[command(after_help = examples::BENCH)]
    Bench(Bench),
    /// List the targets
    #[command(after_help = examples::TARGETS)]
    Targets(Targets),
    /// List the ops: what each means for layouts, or why no layout passes through it
    #[command(after_help = examples::OPS)]
    Ops(Ops),
    /// List the rules by which nodes are rewritten, and the equations by which pieces are recognized
    #[command(after_help = examples::RULES)]
    Rules(Rules),
    /// Print the completions of a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Print a man page, or write all of them
    #[command(after_help = examples::MAN)]
    Man(Man),
}

impl Command {
    /// What it decides for, if it decides.
    pub(crate) fn decide_mut(&mut self) -> Option<&mut Decide> {
        match self {
            Command::Optimize(a) => Some(&mut a.decide),
            Command::Explain(a) => Some(&mut a.decide),
            Command::Audit(a) => Some(&mut a.decide),
            Command::Print(a) => Some(&mut a.decide),
            Command::CheckCertificate(a) => Some(&mut a.decide),
            Command::Kernels(a) => Some(&mut a.decide),
            _ => None,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Command that the page is about; without it the page of the program
    pub(crate) command: Option<String>,

    /// Folder for the pages of all commands; files of other names in it stay as they are
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}

/// Where a model is decided for.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What is decided for")]
pub(crate) struct Decide {
    /// Target, `onnx` if nothing is said; `relayout targets` says what each is for
    #[arg(long, value_parser = PossibleValuesParser::new(relayout::targets::BUILTIN))]
    pub(crate) target: Option<String>,

    /// Choose target, provider, machine and threads by what is on this machine, as `relayout doctor` says; what else is asked for stays
    #[arg(long)]
    pub(crate) for_this_machine: bool,

    /// A target of your own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "target")]
    pub(crate) target_file: Option<PathBuf>,

    /// Size of a dim that the inputs leave open, at which it is priced and checked, or a range of sizes: H=224, N=1..32, x.2=224 for
    /// axis 2 of input x, if that has no symbol. Without one: what the nodes ask for, else 1 for a batch and 64 for others
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim)]
    pub(crate) dims: Vec<(String, Size)>,

    /// What may be done to results: `exact` leaves arithmetic alone, `reassociate` folds scales and shifts into weights
    #[arg(long, value_enum, default_value_t = Numerics::Reassociate)]
    pub(crate) numerics: Numerics,

    /// Channels of a block, for target ort-cpu: 16 for hosts with AVX-512, 8 for others; by default that of this machine
    #[arg(long, value_name = "CHANNELS", value_parser = ["8", "16"])]
    pub(crate) block: Option<String>,

    /// Kind of machine that the model will run on, for target ort-cpu: its blocks and the built-in table of its costs. Without it,
    /// --block and --costs, the blocks of this machine, and the table that was measured on processors like its, else the usual one
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(MACHINES.map(|machine| machine.name)))]
    pub(crate) machine: Option<String>,

    /// For targets ort-cpu, ort-nhwc and cuda-tensorcore: a table of costs that `relayout calibrate` wrote, in place of the built-in one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) costs: Option<PathBuf>,

    /// Threads that the model will run on, for target ort-cpu and --tune; 0 for as many as the machine has cores [default: 1]. Costs on
    /// numbers of threads that were not measured follow from those that were
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: Option<u16>,

    /// For target ort-cpu: leave out the guard that makes a file fail on hosts of another block, where it computes wrong numbers
    #[arg(long)]
    pub(crate) no_guard: bool,

    /// The ONNX Runtime that will run the model: onnxruntime, onnxruntime-1.28 or, for target ort-cpu, 1.28. Target onnx is priced by what
    /// its CPU session makes of the file then. Without a version files of ort-cpu may have what only newer releases run, and say which they
    /// need
    #[arg(long, value_name = "RUNTIME", value_parser = runtime)]
    pub(crate) runtime: Option<String>,

    /// For target ort-nhwc, which it implies: the execution provider of ONNX Runtime; by default qnn. `audit` then says what runs on
    /// its device
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(relayout::targets::PROVIDERS), conflicts_with = "target_file")]
    pub(crate) provider: Option<String>,

    /// For --provider cuda: ops of ONNX Runtime's own that the result may have. It then runs on that provider only, since no other has
    /// them: normalizations over groups as one op
    #[arg(long, value_name = "DOMAIN", value_parser = PossibleValuesParser::new([relayout::ir::op::MICROSOFT]), conflicts_with = "target_file")]
    pub(crate) allow: Option<String>,

    /// What was chosen for this machine.
    #[arg(skip)]
    pub(crate) chosen: Option<Fitting>,
}

/// A version of ONNX Runtime that files are written for.
fn runtime(stated: &str) -> Result<String, String> {
    Release::of_runtime(stated).map(|_| stated.to_owned())
}

/// How you feed and take what goes in and comes out.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Layouts of inputs and outputs")]
pub(crate) struct Ends {
    /// Layout of an input: the axes that the model has, and how you feed them: x:NCHW->NHWC
    #[arg(long = "input", value_name = "NAME:FROM->TO", value_parser = io)]
    pub(crate) inputs: Vec<IoLayout>,

    /// Layout of an output: the axes that the model has, and how you take them: y:NCHW->NHWC
    #[arg(long = "output", value_name = "NAME:FROM->TO", value_parser = io)]
    pub(crate) outputs: Vec<IoLayout>,

    /// Leave the order of all other inputs and outputs to the optimizer; the report says which it took
    #[arg(long)]
    pub(crate) free_io: bool,
}

/// What may be done to results.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Numerics {
    /// Every result stays the same, bit by bit
    Exact,
    /// Sums and products may be taken in another order, but not before a quantization
    Reassociate,
}

fn io(text: &str) -> Result<IoLayout, String> {
    text.parse().map_err(|e: relayout::io::IoError| {
        let file = if text.contains("->") { "" } else { "; the file to write is `-o FILE`" };
        format!("{e}{file}")
    })
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if percent >= 0.0 => Ok(percent),
        _ => Err(format!("`{text}` is not a non-negative integer")),
    }
}

#[cfg(test)]
mod tests;
