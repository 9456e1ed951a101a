//! The pipeline: passes in a table, with the reason for their order.
//!
//! Every pass takes a graph that `verify` passed and leaves one that it passes; the pipeline checks that after each. A pass
//! collects its edits in a patch and applies it whole. Bodies of If, Loop and Scan are graphs of their own: their inputs,
//! outputs and captured values are row-major.

use crate::assign::{Plan, assign};
use crate::hints::Hints;
use crate::record::{GraphRecord, describe_moves};
use crate::rewrites::{Numerics, before_rounding};
use crate::solve::Limits;
use crate::{canonicalize, cleanup, fold_constants, fold_scales, fold_shapes, fold_weights, legalize, materialize};
use relayout_ir::graph::{DuplicateName, Graph, NodeId};
use relayout_ir::model::Model;
use relayout_ir::verify::{Violation, verify, verify_body};
use relayout_target::Target;
use std::collections::{BTreeMap, BTreeSet};

/// What passes share while they work on one graph.
pub struct Context<'a> {
    /// The target.
    pub target: &'a dyn Target,
    /// Size hints.
    pub hints: Hints,
    /// Limits of the solver.
    pub limits: Limits,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// What leaves this graph reaches a quantization in the graph around it.
    pub before_rounding: bool,
    /// Anonymous dims handed out so far.
    pub unknowns: u32,
    /// The decision, from `assign` on.
    pub plan: Option<Plan>,
    /// Nodes that nobody read in the input.
    pub dead_before: BTreeSet<NodeId>,
    /// What is reported of this graph.
    pub record: GraphRecord,
    /// Problems of the model that do not stop the work.
    pub notes: Vec<String>,
}

/// One pass.
pub struct Pass {
    /// Name: a verb.
    pub name: &'static str,
    /// Why it stands where it does.
    pub reason: &'static str,
    run: fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError>,
}

/// The passes in order.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "fold_shapes",
        reason: "everything after it asks for ranks, and views ask for extents",
        run: fold_shapes::fold_shapes,
    },
    Pass {
        name: "canonicalize",
        reason: "binds nodes to signatures, for which ranks and constant axes must be known",
        run: canonicalize::canonicalize,
    },
    Pass {
        name: "fold_constants",
        reason: "needs views and the contents of shape arithmetic; constants behind nodes are no weights to what follows",
        run: fold_constants::fold_constants,
    },
    Pass {
        name: "fold_scales",
        reason: "needs weights as constants; before the decision, which need not carry layouts through what goes",
        run: fold_scales::fold_scales,
    },
    Pass {
        name: "assign",
        reason: "reads signatures only; decides everything that the rest carries out",
        run: run_assign,
    },
    Pass { name: "materialize", reason: "writes the decision as layouts and Relayouts", run: materialize::materialize },
    Pass {
        name: "legalize",
        reason: "adds the views that the dialect needs, some of them of constants",
        run: legalize::legalize,
    },
    Pass {
        name: "fold_weights",
        reason: "absorbs moves and views of constants, those of legalize included",
        run: fold_weights::fold_weights,
    },
    Pass { name: "cleanup", reason: "removes what the others left unread", run: cleanup::cleanup },
];

/// A pass that could not do its work. All are faults of this program, not of the model: the graph is left as it was read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// A name was taken.
    #[error("pass {pass}: {source}", pass = "materialize", source = .0)]
    Name(DuplicateName),
    /// The decision can't be posed.
    #[error("pass assign: {0}")]
    Problem(#[from] crate::solve::ProblemError),
    /// A pass left a graph that does not verify.
    #[error("pass {pass} left an invalid graph (please report this): {first}")]
    Invalid {
        /// The pass.
        pass: &'static str,
        /// The first violation.
        first: String,
        /// How many there are.
        count: usize,
    },
}

/// Options of the pipeline.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PipelineOptions {
    /// Sizes of symbolic dims, by name.
    pub dims: BTreeMap<String, i64>,
    /// Limits of the solver.
    pub limits: Limits,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// Print the main graph after this pass.
    pub print_after: Option<String>,
}

impl PipelineOptions {
    /// The same, without printing.
    #[must_use]
    pub fn without_printing(&self) -> PipelineOptions {
        PipelineOptions { print_after: None, ..self.clone() }
    }
}

/// What the pipeline did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One record per graph: the main one first, then bodies.
    pub graphs: Vec<GraphRecord>,
    /// Problems of the model that did not stop the work.
    pub notes: Vec<String>,
    /// Text of the main graph after the pass that was asked for.
    pub printed: Option<String>,
    /// Size hints that were used.
    pub hints: BTreeMap<String, i64>,
}

/// Runs every pass on the model's graph and its bodies.
///
/// # Errors
/// [`PassError`]; the model may then be changed and must be dropped.
pub fn run(model: &mut Model, target: &dyn Target, options: &PipelineOptions) -> Result<Outcome, PassError> {
    let mut outcome = Outcome::default();
    let mut unknowns = model.unknowns;
    run_graph(&mut model.graph, &Place::default(), target, options, &mut unknowns, &mut outcome)?;
    Ok(outcome)
}

/// Where a graph is.
#[derive(Default)]
struct Place {
    /// Empty for the main graph, else the nodes and attributes that lead to it.
    path: String,
    /// What leaves it reaches a quantization.
    before_rounding: bool,
}

fn run_graph(
    graph: &mut Graph,
    place: &Place,
    target: &dyn Target,
    options: &PipelineOptions,
    unknowns: &mut u32,
    outcome: &mut Outcome,
) -> Result<(), PassError> {
    let path = place.path.as_str();
    let mut cx = Context {
        target,
        hints: Hints::default(),
        limits: options.limits.clone(),
        numerics: options.numerics,
        before_rounding: place.before_rounding,
        unknowns: *unknowns,
        plan: None,
        dead_before: cleanup::dead_nodes(graph).into_iter().collect(),
        record: GraphRecord { path: path.to_owned(), ..GraphRecord::default() },
        notes: Vec::new(),
    };
    for pass in PASSES {
        // Types of bodies come with those of the graph around them.
        if path.is_empty() || pass.name != "fold_shapes" {
            (pass.run)(graph, &mut cx)?;
        }
        if pass.name == "fold_shapes" {
            cx.hints = Hints::new(&options.dims, graph);
            cx.record.before = crate::record::transposes(graph, &cx.hints);
        }
        check(graph, path.is_empty(), pass.name)?;
        if path.is_empty() && options.print_after.as_deref() == Some(pass.name) {
            outcome.printed = Some(graph.to_string());
        }
    }
    *unknowns = cx.unknowns;
    cx.record.moves = describe_moves(graph, &cx.hints);
    if path.is_empty() {
        outcome.hints = cx.hints.used(graph);
    }
    outcome.graphs.push(cx.record);
    outcome.notes.extend(cx.notes);
    let rounding = before_rounding(graph, place.before_rounding);
    for n in graph.nodes().collect::<Vec<_>>() {
        let label = graph.node(n).describe(graph);
        let before_rounding = rounding.get(n.index()).copied().unwrap_or(true);
        for (name, attr) in graph.attrs_mut(n) {
            for body in attr.bodies_mut() {
                let place = Place { path: format!("{path}{label}.{name}/"), before_rounding };
                run_graph(body, &place, target, options, unknowns, outcome)?;
            }
        }
    }
    Ok(())
}

fn check(graph: &Graph, main: bool, pass: &'static str) -> Result<(), PassError> {
    // Forms are bound by the second pass; before it the graph is as the importer, which checked it, left it.
    if pass == "fold_shapes" {
        return Ok(());
    }
    let verified = if main { verify(graph) } else { verify_body(graph) };
    verified.map(|_| ()).map_err(|violations: Vec<Violation>| PassError::Invalid {
        pass,
        first: violations.first().map(ToString::to_string).unwrap_or_default(),
        count: violations.len(),
    })
}

fn run_assign(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    cx.record.opaque = crate::record::opaque_nodes(graph);
    let (plan, solve) = assign(graph, cx.target, &cx.hints, &cx.limits)?;
    cx.record.solve = solve;
    cx.plan = Some(plan);
    Ok(())
}
