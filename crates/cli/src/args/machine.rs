//! Arguments of the commands that measure, list and write kernels.

use super::Decide;
use clap::{Args as ClapArgs, Subcommand, ValueEnum, ValueHint};
use relayout::Size;
use relayout::codegen::cuda::Arch;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Calibrate {
    /// Target whose costs are measured [default: ort-cpu]
    #[arg(long, value_parser = ["ort-cpu", "ort-nhwc", "cuda-tensorcore"])]
    pub(crate) target: Option<String>,

    /// Execution provider on whose device target ort-nhwc is measured, which it implies
    #[arg(long, value_name = "NAME", value_parser = ["cuda"])]
    pub(crate) provider: Option<String>,

    /// Where the table goes; `-` writes stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,

    /// Run each op fewer times
    #[arg(long)]
    pub(crate) quick: bool,

    /// Numbers of threads per op, separated by commas, 1 among them if there are several; 0 for as many as the machine has cores
    /// [default: 1, 2, 4 and so on up to as many as the machine has cores; 1 with --check]
    #[arg(long, value_name = "THREADS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: Vec<u16>,

    /// Write no table, but say how well one ranks convolutions that it was not measured at
    #[arg(long, conflicts_with = "out")]
    pub(crate) check: bool,

    /// With --check: models. What their decisions choose from is timed, and what they lose by the table is measured
    #[arg(value_name = "MODEL", requires = "check", value_hint = ValueHint::FilePath)]
    pub(crate) models: Vec<PathBuf>,

    /// With models: for how many seconds the kernels of each are timed at most, the dearest first
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "models")]
    pub(crate) tune_seconds: u64,

    /// With models: file in which times are kept for later runs, as of `optimize --tune`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "models")]
    pub(crate) tune_cache: Option<PathBuf>,

    /// The table that is checked; the built-in one otherwise
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "check")]
    pub(crate) costs: Option<PathBuf>,

    /// Seed of the convolutions that are checked
    #[arg(long, default_value_t = 0, requires = "check")]
    pub(crate) seed: u64,

    /// The Python that measures: for target cuda-tensorcore one that has PyTorch, for a provider one whose ONNX Runtime has it; by default
    /// PYTHON of the environment, or python3
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) python: Option<PathBuf>,

    /// For target cuda-tensorcore: the folder of the runner, tools/runner of relayout's source
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) runner: Option<PathBuf>,

    /// For targets cuda-tensorcore and ort-nhwc: `cpu` measures a few points on the CPU, which tries the way and says nothing of a GPU
    #[arg(long, default_value = "cuda", value_parser = ["cuda", "cpu"], hide = true)]
    pub(crate) device: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// Model; `-` reads stdin. Without one it is said what is on this machine
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: Option<PathBuf>,

    /// For how many seconds targets are tried at most
    #[arg(long, default_value_t = 2, requires = "model", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,

    /// Size of a dim that the inputs leave open, at which moves are counted: N=4, H=224
    #[arg(long = "dim", value_name = "NAME=SIZE", requires = "model", value_parser = super::dim)]
    pub(crate) dims: Vec<(String, Size)>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Targets {}

#[derive(Debug, ClapArgs)]
pub(crate) struct Ops {
    /// Only these ops
    pub(crate) names: Vec<String>,

    /// As Markdown, as in docs/ops.md
    #[arg(long, conflicts_with = "names")]
    pub(crate) markdown: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Rules {
    /// Only these rules and equations
    pub(crate) names: Vec<String>,

    /// Only those of this target
    #[arg(long)]
    pub(crate) target: Option<String>,

    /// As Markdown, as in docs/rules.md
    #[arg(long, conflicts_with_all = ["names", "target"])]
    pub(crate) markdown: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Kernels {
    /// Model; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// Folder for the kernels; it must not be there, or be empty
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) decide: Decide,

    /// What the kernels are to be compiled for, as NVRTC calls it; an unknown one is answered with a list
    #[arg(long, default_value = "sm_80", value_parser = crate::kernels::arch)]
    pub(crate) arch: Arch,

    /// Replace the folder that an earlier run wrote
    #[arg(long)]
    pub(crate) force: bool,

    /// Write nothing, but say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: BenchWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchWhat {
    /// The permute kernels beside a plain copy and a copy past the caches
    #[command(after_help = super::examples::BENCH)]
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

    /// Pairs of buffers to take turns; as many as fill 192 MiB where data is in memory
    #[arg(long)]
    pub(crate) pairs: Option<usize>,

    /// Only the kernel, so many runs of it, as one line of JSON with `ns` for each: what a harness calls
    #[arg(long, requires = "shape", conflicts_with_all = ["rounds", "forms"],
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

    /// How the data lies, by name
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
    let number = |part: &str| part.trim().parse().map_err(|_| format!("`{part}` is not a non-negative integer"));
    text.split(',').filter(|part| !part.is_empty()).map(number).collect::<Result<_, _>>().map(List)
}

fn bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a number of bytes; say 1, 2, 4, ...")),
        Ok(bytes) => Ok(bytes),
    }
}
