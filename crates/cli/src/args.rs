//! Arguments.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use relayout::codegen::cuda::Arch;
use relayout::{IoLayout, Size};
use std::fmt::Display;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

/// Layout optimizer for ONNX models.
#[derive(Debug, Parser)]
#[command(name = "relayout", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Rewrite a model so that it moves less data
    Optimize(Optimize),
    /// Print a model's graph as text
    Print(Print),
    /// Say which moves a model has, which can go, and why the others stay
    Explain(Explain),
    /// Say what the moves of any model cost and what they would have to cost, without rewriting it
    Audit(Audit),
    /// Check a proof of how good the decision for a model is
    CheckCertificate(CheckCertificate),
    /// Check that a bundle is whole and holds together
    CheckBundle(CheckBundle),
    /// Run two models in ONNX Runtime and compare their outputs
    Verify(Verify),
    /// Measure what ops cost on this machine, or hold a table of costs against it
    Calibrate(Calibrate),
    /// List the targets
    Targets(Targets),
    /// Write CUDA kernels for the moves that a model has left
    Kernels(Kernels),
    /// Time something on this machine
    Bench(Bench),
    /// List the ops: what each means for layouts, or why no layout passes through it
    Ops(Ops),
}

/// Where a model is decided for.
#[derive(Debug, ClapArgs)]
pub(crate) struct Decide {
    /// Target; `relayout targets` lists them
    #[arg(long, default_value = "onnx")]
    pub(crate) target: String,

    /// A target of your own
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub(crate) target_file: Option<PathBuf>,

    /// Size at which a symbolic dim is priced, or a range of sizes: H=224, N=1..32
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim::<Size>)]
    pub(crate) dims: Vec<(String, Size)>,

    /// What may be done to results: `exact` leaves arithmetic alone, `reassociate` folds scales and shifts into weights
    #[arg(long, value_enum, default_value_t = Numerics::Reassociate)]
    pub(crate) numerics: Numerics,

    /// Channels of a block, for target ort-cpu: 16 for hosts with AVX-512, 8 for others; by default that of this machine
    #[arg(long, value_name = "CHANNELS", value_parser = ["8", "16"])]
    pub(crate) block: Option<String>,

    /// For targets ort-cpu and cuda-tensorcore: a table of costs that `relayout calibrate` wrote, in place of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,

    /// For target ort-cpu: leave out the guard that makes a file fail on hosts of another block, where it computes wrong numbers
    #[arg(long)]
    pub(crate) no_guard: bool,
}

/// How you feed and take what goes in and comes out.
#[derive(Debug, ClapArgs)]
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

/// What `optimize` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// A model file
    Onnx,
    /// A folder: graph as JSON, weights as safetensors, CUDA kernels
    Bundle,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Optimize {
    /// Model; `-` reads stdin
    pub(crate) model: PathBuf,

    /// File to write; `-` writes stdout. With `--emit bundle` a folder, which must not be there, be empty, or be a bundle
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// What is written: `onnx`, a model file; `bundle`, a folder with graph, weights and kernels
    #[arg(long, value_enum, default_value_t = Emit::Onnx)]
    pub(crate) emit: Emit,

    /// What the kernels of a bundle are to be compiled for, as NVRTC calls it; `sm_80` if nothing is said
    #[arg(long, value_parser = crate::kernels::arch)]
    pub(crate) arch: Option<Arch>,

    #[command(flatten)]
    pub(crate) decide: Decide,

    #[command(flatten)]
    pub(crate) ends: Ends,

    /// Write the report as JSON; `-` writes stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write a certificate of the decision as JSON: `relayout check-certificate` checks it
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,

    /// Run the original and the result in ONNX Runtime before writing, and write nothing if they differ
    #[arg(long)]
    pub(crate) verify: bool,

    /// Print the graph after a pass to stderr
    #[arg(long, value_name = "PASS")]
    pub(crate) print_after: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Print {
    /// Model; `-` reads stdin
    pub(crate) model: PathBuf,

    /// The graph as it is after this pass of the target, with the layouts that it has there; without it as the file has it
    #[arg(long, value_name = "PASS")]
    pub(crate) after: Option<String>,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// For Graphviz: ops and values with their types and layouts, what moves data coloured, each body as a graph of its own
    #[arg(long, conflicts_with = "json")]
    pub(crate) dot: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// Model; `-` reads stdin
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) decide: Decide,

    #[command(flatten)]
    pub(crate) ends: Ends,

    /// Only this value: who makes and reads it, which layouts it could have, what each would cost
    #[arg(long, value_name = "VALUE")]
    pub(crate) why: Option<String>,

    /// Write the cost network of the decision for Graphviz, its variables and what hangs between them; `-` writes stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["why", "json"])]
    pub(crate) network_dot: Option<PathBuf>,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// Model; `-` reads stdin
    pub(crate) model: PathBuf,

    /// Another one, to stand beside it
    pub(crate) other: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// End with status 3 if what is predicted lies more than so many percent above the floor
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckCertificate {
    /// Model that was optimized; `-` reads stdin
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// Certificate that `optimize --certificate` wrote; without it one is made first
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckBundle {
    /// Folder that `optimize --emit bundle` wrote
    pub(crate) dir: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// Reference
    pub(crate) a: PathBuf,

    /// Model that should do the same
    pub(crate) b: PathBuf,

    /// Inputs from an .npz file, by name; random ones otherwise
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Option<PathBuf>,

    /// Seed of the random inputs
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// How many random inputs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,

    /// Size of a symbolic dim
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim::<NonZeroU32>)]
    pub(crate) dims: Vec<(String, NonZeroU32)>,

    /// Library of custom ops for both models; may be repeated
    #[arg(long, value_name = "LIB")]
    pub(crate) custom_ops: Vec<PathBuf>,

    /// Largest rms error that holds, relative to the output's rms
    #[arg(long)]
    pub(crate) rms: Option<f64>,

    /// Outputs must be equal to the bit
    #[arg(long, conflicts_with = "rms")]
    pub(crate) exact: bool,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Calibrate {
    /// Target whose costs are measured
    #[arg(long, default_value = "ort-cpu", value_parser = ["ort-cpu", "cuda-tensorcore"])]
    pub(crate) target: String,

    /// Where the table goes; `-` writes stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Run each op fewer times
    #[arg(long)]
    pub(crate) quick: bool,

    /// Threads per op; 0 for as many as the machine has cores
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,

    /// Write no table, but say how well one ranks convolutions that it was not measured at
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,

    /// The table that is checked; the built-in one otherwise
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) costs: Option<PathBuf>,

    /// Seed of the convolutions that are checked
    #[arg(long, default_value_t = 0, requires = "check")]
    pub(crate) seed: u64,

    /// The check as JSON, pair by pair
    #[arg(long, requires = "check")]
    pub(crate) json: bool,

    /// For target cuda-tensorcore: the Python that has PyTorch; by default PYTHON of the environment, or python3
    #[arg(long, value_name = "FILE")]
    pub(crate) python: Option<PathBuf>,

    /// For target cuda-tensorcore: the folder of the runner, tools/runner of relayout's source
    #[arg(long, value_name = "DIR")]
    pub(crate) runner: Option<PathBuf>,

    /// For target cuda-tensorcore: `cpu` measures a few points on the CPU, which tries the way and says nothing of a GPU
    #[arg(long, default_value = "cuda", value_parser = ["cuda", "cpu"], hide = true)]
    pub(crate) device: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Targets {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Ops {
    /// Only these ops
    pub(crate) names: Vec<String>,

    /// As JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// As Markdown, as in docs/ops.md
    #[arg(long, conflicts_with = "names")]
    pub(crate) markdown: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Kernels {
    /// Model; `-` reads stdin
    pub(crate) model: PathBuf,

    /// Folder for the kernels; it must not be there, or be empty
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// What the kernels are to be compiled for, as NVRTC calls it; an unknown one is answered with a list
    #[arg(long, default_value = "sm_80", value_parser = crate::kernels::arch)]
    pub(crate) arch: Arch,

    /// Replace the folder that an earlier run wrote
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: BenchWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchWhat {
    /// The permute kernels beside a plain copy and a copy past the caches
    Permute(BenchPermute),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BenchPermute {
    /// Extents of the source: 8,64,56,56. Without it a list of usual cases is timed
    #[arg(long, value_parser = list, requires = "perm")]
    pub(crate) shape: Option<List>,

    /// The axis of the source that each axis of the result is: 0,2,3,1
    #[arg(long, value_parser = list, requires = "shape")]
    pub(crate) perm: Option<List>,

    /// Element type; f32 if nothing is said
    #[arg(long)]
    pub(crate) dtype: Option<String>,

    /// Bytes of an element, in place of a type
    #[arg(long, conflicts_with = "dtype", value_parser = bytes)]
    pub(crate) elem: Option<usize>,

    /// Threads
    #[arg(long, default_value = "1")]
    pub(crate) threads: NonZeroU32,

    #[command(flatten)]
    pub(crate) data: Data,

    /// Rounds; each runs everything once, or as often as makes a millisecond
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rounds: u32,

    /// Also time both ways in which rows find their places: by strides, by a list
    #[arg(long)]
    pub(crate) forms: bool,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Pairs of buffers to take turns; as many as fill 192 MiB where data is in memory
    #[arg(long)]
    pub(crate) pairs: Option<usize>,

    /// Only the kernel, so many runs of it, as one line of JSON with `ns` for each: what a harness calls
    #[arg(long, requires = "shape", conflicts_with_all = ["json", "rounds", "forms"],
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) reps: Option<u32>,
}

/// Where the data is; both ways unless one is said.
#[derive(Debug, ClapArgs)]
pub(crate) struct Data {
    /// Only with data in the caches
    #[arg(long, conflicts_with_all = ["cold", "mode"])]
    pub(crate) hot: bool,

    /// Only with data in memory
    #[arg(long, conflicts_with = "mode")]
    pub(crate) cold: bool,

    /// The same, by name
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
}

/// Where the data is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// In the caches
    Hot,
    /// In memory
    Cold,
    /// In memory, one pair of buffers being larger than the caches
    Dram,
}

/// Numbers with commas between them.
#[derive(Clone, Debug)]
pub(crate) struct List(pub(crate) Vec<usize>);

fn list(text: &str) -> Result<List, String> {
    let number = |part: &str| part.trim().parse().map_err(|_| format!("`{part}` is no number of at least 0"));
    text.split(',').filter(|part| !part.is_empty()).map(number).collect::<Result<_, _>>().map(List)
}

fn bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is no number of bytes; say 1, 2, 4, ...")),
        Ok(bytes) => Ok(bytes),
    }
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
        _ => Err(format!("`{text}` is no number of at least 0")),
    }
}

fn dim<T: FromStr<Err: Display>>(text: &str) -> Result<(String, T), String> {
    let (name, size) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("is not NAME=SIZE")?;
    Ok((name.to_owned(), size.parse().map_err(|e: T::Err| e.to_string())?))
}
