//! relayout inside the `onnx-runtime-*` crates: decides in which orders tensors lie, and carries the plan out on the runtime's own
//! graph. Nothing is written as ONNX.
//!
//! [`Relayout`] is an [`OptimizationPass`] over [`Graph`]. A session takes passes from its provider only, so there are two ways:
//! run the pass and make a session of the graph, or give the session a provider that [`Relayed`] wraps.
//!
//! ```no_run
//! use onnx_runtime_ep_api::ExecutionProvider;
//! use onnx_runtime_ep_cpu::CpuExecutionProvider;
//! use onnx_runtime_session::InferenceSession;
//! use relayout_nxrt::{Relayed, Relayout};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut cpu = CpuExecutionProvider::new();
//! cpu.initialize(&Default::default())?;
//! let provider = Relayed::new(cpu, Relayout::default());
//! let session = InferenceSession::builder().model("model.onnx").execution_provider(Arc::new(provider)).build()?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod carry;
mod count;
mod dense;
mod provider;
mod read;
mod target;

pub use count::{Moves, moves_of};
pub use provider::Relayed;

use onnx_runtime_ir::{Graph, Node};
use onnx_runtime_optimizer::{OptimizationPass, PassContext};
use relayout::targets::TargetError;
use relayout::{Options, Target, plan_graph};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use target::Nxrt;

/// Prices of the runtime's kernels, measured: see `examples/kernels.rs`.
const PRICES: &str = include_str!("nxrt.toml");

/// Decisions that are made at most before the graph stays as it is.
const TRIES: usize = 8;

/// The pass.
#[derive(Clone)]
pub struct Relayout {
    target: Arc<Nxrt>,
    least_gain: u64,
    plans: bool,
    dense: bool,
    report: Arc<Mutex<Report>>,
}

impl Default for Relayout {
    /// With the prices that were measured.
    fn default() -> Relayout {
        // The text is part of the crate, and a test reads it.
        Relayout::with_prices(PRICES).expect("nxrt.toml is a target")
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether the graph is another one.
    pub changed: bool,
    /// Moves of bytes in the graph before and after.
    pub moves: (Moves, Moves),
    /// Copies that were put behind Transposes, so that their readers do not gather themselves.
    pub copies: usize,
    /// Bytes of constants that are stored as often as they are read.
    pub stored: u64,
    /// Nodes that stay as they are because the plan can't be carried out there, and why.
    pub given_back: BTreeMap<String, String>,
    /// Why the whole graph stays as it is, if something can't be said.
    pub kept: Option<String>,
    /// The planner's report, in words.
    pub planned: String,
}

/// A node for which a plan can't be made or carried out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    /// The node; nothing if it is the whole graph.
    node: Option<u32>,
    why: String,
}

impl Refused {
    fn new(node: &Node, why: impl Into<String>) -> Refused {
        Refused { node: Some(node.id.0), why: why.into() }
    }

    fn whole(why: impl Into<String>) -> Refused {
        Refused { node: None, why: why.into() }
    }
}

impl Relayout {
    /// With other prices: the text of a target file for standard ONNX.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn with_prices(text: &str) -> Result<Relayout, TargetError> {
        Ok(Relayout {
            target: Arc::new(Nxrt::parse(text)?),
            least_gain: 0,
            plans: true,
            dense: true,
            report: Arc::default(),
        })
    }

    /// Changes nothing that is not expected to gain so many percent.
    #[must_use]
    pub fn least_gain(mut self, percent: u64) -> Relayout {
        self.least_gain = percent;
        self
    }

    /// Without a plan: Transposes stay where they are.
    #[must_use]
    pub fn without_plan(mut self) -> Relayout {
        self.plans = false;
        self
    }

    /// Without copies behind Transposes and without constants that are stored as often as they are read.
    #[must_use]
    pub fn without_dense(mut self) -> Relayout {
        self.dense = false;
        self
    }

    /// What the last run of this pass, or of a copy of it, did.
    pub fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Decides about a graph and carries the plan out on it. What can't be carried out stays as it is.
    pub fn decide(&self, graph: &mut Graph, context: &PassContext) -> Report {
        let moves = moves_of(graph);
        let mut report = Report { moves: (moves, moves), ..Report::default() };
        if self.plans {
            self.planned(graph, context, &mut report);
            report.moves.1 = moves_of(graph);
        }
        if self.dense {
            report.stored = dense::stored(graph, context);
            report.copies = dense::dense(graph);
        }
        report
    }

    fn planned(&self, graph: &mut Graph, context: &PassContext, report: &mut Report) {
        let mut left: BTreeSet<u32> = BTreeSet::new();
        for _ in 0..TRIES {
            let refused = match self.tried(graph, context, &left, report) {
                Ok(None) => return,
                Ok(Some(new)) => {
                    *graph = new;
                    report.changed = true;
                    return;
                }
                Err(refused) => refused,
            };
            match refused.node {
                Some(node) if left.insert(node) => {
                    let name = graph.try_node(onnx_runtime_ir::NodeId(node)).map(described).unwrap_or_default();
                    report.given_back.insert(name, refused.why);
                }
                _ => {
                    report.kept = Some(refused.why);
                    return;
                }
            }
        }
        report.kept = Some(format!("{TRIES} plans could not be carried out"));
    }

    fn tried(
        &self,
        graph: &Graph,
        context: &PassContext,
        left: &BTreeSet<u32>,
        report: &mut Report,
    ) -> Result<Option<Graph>, Refused> {
        let read = read::read(graph, context, left)?;
        let options = Options::default().least_gain(self.least_gain);
        let planned = plan_graph(&read.graph, &read.ids, self.target.as_ref(), &options);
        let (plan, told) = planned.map_err(|why| Refused::whole(why.to_string()))?;
        report.planned = told.explain();
        if !plan.changed {
            return Ok(None);
        }
        carry::carried(graph, context, &plan).map(Some)
    }
}

/// A node as messages have it.
fn described(node: &Node) -> String {
    format!("{} `{}`", node.op_type, node.name)
}

impl std::fmt::Debug for Relayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relayout")
            .field("target", &self.target.name())
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}

impl OptimizationPass for Relayout {
    fn name(&self) -> &str {
        "LayoutPropagation"
    }

    fn run(&self, graph: &mut Graph, context: &PassContext) -> onnx_runtime_optimizer::Result<()> {
        let report = self.decide(graph, context);
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
        Ok(())
    }
}
