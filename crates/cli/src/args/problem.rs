//! What is said about problems without a model.

use clap::{Args as ClapArgs, ValueHint};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Solve {
    /// Problem as `explain --problem` writes it, or in the format WCSP if its name ends in .wcsp; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Read the problem as WCSP, whatever its name is
    #[arg(long)]
    pub(crate) wcsp: bool,

    /// Solve nothing and write the problem as text, or as WCSP if this name ends in .wcsp; `-` writes stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["certificate", "check", "nodes", "entries"])]
    pub(crate) out: Option<PathBuf>,

    /// Also write a certificate of the solution as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) certificate: Option<PathBuf>,

    /// Solve nothing and check this certificate; status 3 if it does not hold
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["certificate", "nodes", "entries"])]
    pub(crate) check: Option<PathBuf>,

    /// Most nodes that branch and bound opens in a part [default: 262144]
    #[arg(long, value_name = "COUNT")]
    pub(crate) nodes: Option<u64>,

    /// Most entries of a table of the elimination [default: 262144]
    #[arg(long, value_name = "COUNT")]
    pub(crate) entries: Option<usize>,
}
