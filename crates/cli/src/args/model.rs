//! Arguments of the commands that read models.

use super::{Decide, Ends, dim, percent};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgGroup, Args as ClapArgs, ValueEnum, ValueHint};
use relayout::Size;
use relayout::codegen::cuda::Arch;
use relayout::proof::Unproved;
use relayout::request::key_value;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What `optimize` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// A model file
    Onnx,
    /// A folder: graph as JSON, weights as safetensors, CUDA kernels
    Bundle,
}

#[derive(Debug, ClapArgs)]
#[command(group(ArgGroup::new("timed").args(["tune", "for_this_machine"]).multiple(true)))]
pub(crate) struct Optimize {
    /// Models: files, folders, which are searched for `.onnx` files, and patterns such as 'models/**/*.onnx'; `-` reads stdin
    #[arg(value_name = "MODEL", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) models: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) decide: Decide,

    #[command(flatten)]
    pub(crate) ends: Ends,

    #[command(flatten)]
    pub(crate) checks: Checks,

    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
}

/// What `optimize` measures before it decides.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Tuning, targets onnx, ort-cpu and ort-nhwc")]
pub(crate) struct TuningArgs {
    /// Time the kernels and moves that this model's decision can choose from in ONNX Runtime on this machine, and decide with these
    /// times (target ort-cpu). Then run the model and the result in turns, and give changes back until the result is not slower.
    /// --for-this-machine does so for one model by itself, where it takes target ort-cpu
    #[arg(long)]
    pub(crate) tune: bool,

    /// With --for-this-machine: time nothing
    #[arg(long, requires = "for_this_machine", conflicts_with = "tune")]
    pub(crate) no_tune: bool,

    /// For how many seconds kernels are timed at most, the dearest first; `0` takes only what is in the cache
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "timed")]
    pub(crate) tune_seconds: u64,

    /// File in which times are kept for later runs [default: relayout/tune-MACHINE-RUNTIME-THREADS.json among the user's caches]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "timed")]
    pub(crate) tune_cache: Option<PathBuf>,

    /// Whether it is timed since what fits this machine is asked for.
    #[arg(skip)]
    pub(crate) for_this_machine: bool,

    /// Python whose ONNX Runtime has the execution provider (target ort-nhwc): it runs the model and the results on the provider's device
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "device")]
    pub(crate) python: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) provider: PluginArgs,
}

impl TuningArgs {
    /// Whether kernels are timed.
    pub(crate) fn times(&self) -> bool {
        self.tune || self.for_this_machine
    }
}

/// An execution provider that ONNX Runtime loads as a plugin.
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginArgs {
    /// Plugin library of the execution provider that models run on, such as that of QNN; the CPU's without one
    #[arg(long, value_name = "LIB", value_hint = ValueHint::FilePath, group = "device")]
    pub(crate) provider_library: Option<PathBuf>,

    /// What that provider is told, by its own names (`backend_path=libQnnHtp.so`); may be repeated
    #[arg(long = "provider-option", value_name = "KEY=VALUE", requires = "device", value_parser = key_value)]
    pub(crate) provider_options: Vec<(String, String)>,
}

/// What `optimize` writes, and where.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "What is written")]
pub(crate) struct OutputArgs {
    /// File to write, or folder, where there are several models; `-` writes stdout [default: MODEL.relayout.onnx beside the model]
    ///
    /// A file that is named here is replaced if it is there. Names that follow from those of the models, beside them or in a folder,
    /// are never replaced without --force. With `--emit bundle` the path is a folder, which must not be there, be empty, or be a
    /// bundle; the default is MODEL.bundle beside the model.
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) out: Option<PathBuf>,

    /// Replace files that are there, where their names follow from those of the models
    #[arg(long)]
    pub(crate) force: bool,

    /// Write the sizes that --dim says into the file too, in place of the dims that the inputs leave open
    #[arg(long, requires = "dims", conflicts_with_all = ["tune", "prove", "proof"])]
    pub(crate) fix_sizes: bool,

    /// Write nothing, but say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// What is written: `onnx`, a model file; `bundle`, a folder with graph, weights and kernels
    #[arg(long, value_enum, default_value_t = Emit::Onnx)]
    pub(crate) emit: Emit,

    /// What the kernels of a bundle are to be compiled for, as NVRTC calls it; `sm_80` if nothing is said
    #[arg(long, value_parser = crate::kernels::arch)]
    pub(crate) arch: Option<Arch>,

    /// Write the report as JSON; `-` writes stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Write the report as an HTML page, which needs no network: figures, moves with their reasons, the graph before and after, and,
    /// with --verify, measured times; `-` writes stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Write a certificate of the decision as JSON: `relayout check-certificate` checks it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) certificate: Option<PathBuf>,

    /// Write a proof that the result computes what the model computes, as JSON: `relayout prove` checks it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) proof: Option<PathBuf>,

    /// How many models are optimized at once; as many as the machine has cores if nothing is said
    #[arg(short, long, value_name = "COUNT")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// What `optimize` shows and tries before it writes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Checks")]
pub(crate) struct Checks {
    /// Run the original and the result in ONNX Runtime before writing, and write nothing if they differ
    #[arg(long)]
    pub(crate) verify: bool,

    /// With --verify: inputs from an .npz file, by name, in place of random ones
    #[arg(long = "inputs", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "verify")]
    pub(crate) feeds: Option<PathBuf>,

    /// Check that what was written computes what the model computes, with a checker that shares no code with the optimizer; end
    /// with status 3 if it is not proved
    #[arg(long)]
    pub(crate) prove: bool,

    /// What becomes of a result that is not proved to compute what the model computes: `give-back` leaves what
    /// differs for the checker as it was and decides anew, and is as `loud` where nothing can be said; `loud` writes it and says
    /// UNPROVED; `allow` does not check and says nothing; `fail` ends with status 3; `keep-input` leaves the model as it is
    /// [default: give-back, and allow with --prove]
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(Unproved::NAMES.map(|(name, _)| name)).try_map(|name| name.parse::<Unproved>()))]
    pub(crate) unproved: Option<Unproved>,

    /// End with an error where a rewrite fails; without it the part of the model that it is about stays as it was, and the report says so
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print the graph after a pass to stderr
    #[arg(long, value_name = "PASS")]
    pub(crate) print_after: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Print {
    /// Model; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// The graph as it is after this pass of the target, with the layouts that it has there; without it as the file has it
    #[arg(long, value_name = "PASS")]
    pub(crate) after: Option<String>,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// For Graphviz: ops and values with their types and layouts, what moves data coloured, each body as a graph of its own
    #[arg(long)]
    pub(crate) dot: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// Model; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) decide: Decide,

    #[command(flatten)]
    pub(crate) ends: Ends,

    /// Moves that are listed of each graph, those that cost most first; 0 for all. A page and JSON have all
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) most: usize,

    /// Only this value: who makes and reads it, which layouts it could have, what each would cost
    #[arg(long, value_name = "VALUE")]
    pub(crate) why: Option<String>,

    /// List the pieces of several nodes that are one op, and the equations by which each was recognized
    #[arg(long, conflicts_with_all = ["why", "network_dot"])]
    pub(crate) pieces: bool,

    /// Write the cost network of the decision for Graphviz, its variables and what hangs between them; `-` writes stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "why")]
    pub(crate) network_dot: Option<PathBuf>,

    /// Write the problem of the decision for `relayout solve`, or in the format WCSP if the name ends in .wcsp; `-` writes stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["why", "pieces", "network_dot", "html"])]
    pub(crate) problem: Option<PathBuf>,

    /// Also write the report as an HTML page, which needs no network: figures, moves with their reasons, and the graph; `-` writes
    /// stdout in place of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["why", "network_dot"])]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// Model; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// Another one, to stand beside it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) other: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// End with status 3 if what is predicted lies more than so many percent above the floor
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,

    /// Also write the report as an HTML page, which needs no network: figures, moves with their reasons, and the graph; `-` writes
    /// stdout in place of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckCertificate {
    /// Model that was optimized; `-` reads stdin
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// Certificate that `optimize --certificate` wrote; without it one is made first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) certificate: Option<PathBuf>,
}

/// Whose reading nodes have about which the standard and ONNX Runtime disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadingOf {
    /// That of the standard; a node of which it says nothing is an op by itself
    Onnx,
    /// That of ONNX Runtime; the verdict names the nodes
    Onnxruntime,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Prove {
    /// Model that was optimized
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) a: PathBuf,

    /// What was made of it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) b: PathBuf,

    /// Proof that `optimize --proof` wrote; without it the files may come from any optimizer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) proof: Option<PathBuf>,

    /// Whose reading nodes have about which the standard and ONNX Runtime disagree
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = ReadingOf::Onnxruntime)]
    pub(crate) reading: ReadingOf,

    /// Do not run the files on random inputs, where they are not proved to compute the same
    #[arg(long, conflicts_with = "proof")]
    pub(crate) no_run: bool,

    /// Be content if both have the same ops on the same elements in floats of other types, as after a conversion to halves
    #[arg(long, conflicts_with = "proof")]
    pub(crate) up_to_types: bool,

    /// In JSON also list which values of the second file are values of the first, and how
    #[arg(long)]
    pub(crate) links: bool,

    /// Where they are not proved to compute the same: write what is left to show as two small models of the same inputs, `input.onnx` and
    /// `result.onnx`, into this folder, which is made
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, conflicts_with = "proof")]
    pub(crate) pieces: Option<PathBuf>,

    /// Also write the verdict as an HTML page, which needs no network: what is proved how, link by link, and what is left to show; `-`
    /// writes stdout in place of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckBundle {
    /// Folder that `optimize --emit bundle` wrote
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// Reference
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) a: PathBuf,

    /// Model that should do the same
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) b: PathBuf,

    /// Inputs from an .npz file, by name; random ones otherwise
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Option<PathBuf>,

    /// Seed of the random inputs
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// How many sets of random inputs: batches of 2, 3 and 1, numbers of several kinds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Size of a dim that the inputs leave open, by its symbol or as INPUT.AXIS; of a range the size in its middle
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim)]
    pub(crate) dims: Vec<(String, Size)>,

    /// Library of custom ops for both models; may be repeated
    #[arg(long, value_name = "LIB", value_hint = ValueHint::FilePath)]
    pub(crate) custom_ops: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) provider: PluginArgs,

    /// Largest error of an element that holds, relative to the magnitude of the elements around it; without it the noise of the first
    /// model
    #[arg(long)]
    pub(crate) rms: Option<f64>,

    /// Outputs must be equal where the runtime rewrites nothing
    #[arg(long, conflicts_with = "rms")]
    pub(crate) exact: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Diff {
    /// The model as it was; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) a: PathBuf,

    /// The model as it is; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) b: PathBuf,

    /// End with status 3 if the models differ
    #[arg(long)]
    pub(crate) exit_code: bool,

    /// Also write the report as an HTML page, which needs no network: figures, moves with their reasons, and the graph; `-` writes
    /// stdout in place of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}
