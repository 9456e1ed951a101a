//! The pipeline: passes in a table, with the reason for their order.
//!
//! Every pass takes a graph that `verify` passed and leaves one that it passes; the pipeline checks that after each. A pass
//! collects its edits in a patch and applies it whole.

mod known;

use crate::assign::{Decision, Plan, Scopes, SolveRecord};
use crate::ends::{Ends, MovedEnd};
use crate::hints::{Hints, Size};
use crate::record::{GraphRecord, PricedMove, describe_priced_moves};
use crate::rewrites::Numerics;
use crate::solve::Limits;
use crate::{
    canonicalize, choose_forms, cleanup, fold_constants, fold_copies, fold_pads, fold_scales, fold_shapes,
    fold_weights, hoist, join_moves, legalize, materialize, raise_norms, reorder_weights, route_channels, trim_pools,
    unsign_bytes, widen_halves,
};
use relayout_ir::graph::{DuplicateName, Graph, NodeId, Op};
use relayout_ir::layout::Layout;
use relayout_ir::model::Model;
use relayout_ir::verify::{Contract, Violation, verify_with};
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
    /// How inputs and outputs of the model are stored.
    pub ends: Ends,
    /// Those that are stored otherwise than ONNX has them, from `assign` on.
    pub moved_ends: Vec<MovedEnd>,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// The model quantizes somewhere; what leaves a body is then taken to reach it.
    pub quantizes: bool,
    /// Anonymous dims handed out so far.
    pub unknowns: u32,
    /// The version of the standard domain that the model imports; 0 if it imports none.
    pub opset: i64,
    /// The decision, from `assign` on.
    pub plan: Plan,
    /// How it was found.
    pub solve: SolveRecord,
    /// How many of its moves are priced.
    pub price_moves: usize,
    /// Those that were, the dearest first.
    pub priced: Vec<PricedMove>,
    /// Per graph: nodes that nobody read in the input.
    pub dead_before: Vec<BTreeSet<NodeId>>,
    /// Per graph: normalizations that are one op until the decision is written.
    pub raised: BTreeMap<usize, Vec<raise_norms::Raised>>,
    /// Per graph: what is reported of it.
    pub graphs: Vec<GraphRecord>,
    /// The graph that a pass over each graph is at.
    pub at: usize,
    /// Problems of the model that do not stop the work.
    pub notes: Vec<String>,
    /// The edits of the graph and the contract with which it was verified last.
    checked: Option<(u64, Contract)>,
}

impl<'a> Context<'a> {
    /// What passes start from.
    pub fn new(target: &'a dyn Target) -> Context<'a> {
        Context {
            target,
            hints: Hints::default(),
            limits: Limits::default(),
            ends: Ends::default(),
            moved_ends: Vec::new(),
            numerics: Numerics::default(),
            quantizes: false,
            unknowns: 0,
            opset: 0,
            plan: Plan::default(),
            solve: SolveRecord::default(),
            price_moves: 0,
            priced: Vec::new(),
            dead_before: Vec::new(),
            raised: BTreeMap::new(),
            graphs: Vec::new(),
            at: 0,
            notes: Vec::new(),
            checked: None,
        }
    }
}

/// One pass.
pub struct Pass {
    /// Name: a verb.
    pub name: &'static str,
    /// Why it stands where it does.
    pub reason: &'static str,
    run: Run,
}

impl Pass {
    /// A pass that works on each graph by itself.
    #[must_use]
    pub const fn on_each_graph(
        name: &'static str,
        reason: &'static str,
        run: fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError>,
    ) -> Pass {
        Pass { name, reason, run: Run::Graph(run) }
    }

    fn run(&self, graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
        match self.run {
            Run::Model(run) => run(graph, cx),
            Run::Graph(run) => {
                cx.at = 0;
                each_graph(graph, "", &mut |graph, _| {
                    run(graph, cx)?;
                    cx.at += 1;
                    Ok(())
                })
            }
        }
    }
}

/// What a pass works on.
enum Run {
    /// The main graph; it sees to bodies itself.
    Model(fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError>),
    /// Each graph by itself.
    Graph(fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError>),
}

/// The passes in order.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "fold_shapes",
        reason: "everything after it asks for ranks, and views ask for extents",
        run: Run::Model(fold_shapes::fold_shapes),
    },
    Pass {
        name: "canonicalize",
        reason: "binds nodes to signatures, for which ranks and constant axes must be known",
        run: Run::Graph(canonicalize::canonicalize),
    },
    Pass {
        name: "fold_constants",
        reason: "needs views and the contents of shape arithmetic; constants behind nodes are no weights to what follows",
        run: Run::Graph(fold_constants::fold_constants),
    },
    Pass {
        name: "widen_halves",
        reason: "before anything is decided for element types that the target does not compute in",
        run: Run::Model(widen_halves::widen_halves),
    },
    Pass {
        name: "unsign_bytes",
        reason: "for the same reason; constants between quantizations are folded",
        run: Run::Graph(unsign_bytes::unsign_bytes),
    },
    Pass {
        name: "fold_copies",
        reason: "needs views; what comes after it need not look through copies",
        run: Run::Graph(fold_copies::fold_copies),
    },
    Pass {
        name: "fold_scales",
        reason: "needs weights as constants; before the decision, which need not carry layouts through what goes",
        run: Run::Graph(fold_scales::fold_scales),
    },
    Pass { name: "fold_pads", reason: "for the same reasons", run: Run::Graph(fold_pads::fold_pads) },
    Pass {
        name: "choose_forms",
        reason: "what scales could take in is gone; prices forms of attention and of projections by a decision of its own",
        run: Run::Model(choose_forms::choose_forms),
    },
    Pass {
        name: "route_channels",
        reason: "what stood between convolutions and could go is gone; prices both ways by decisions of its own",
        run: Run::Model(route_channels::route_channels),
    },
    Pass {
        name: "raise_norms",
        reason: "the target offers kernels for one op, and a pattern may be several; what scales could take in is gone",
        run: Run::Graph(raise_norms::raise_norms),
    },
    Pass {
        name: "assign",
        reason: "reads signatures only; decides everything that the rest carries out, for all graphs at once",
        run: Run::Model(run_assign),
    },
    Pass {
        name: "materialize",
        reason: "writes the decision as layouts and Relayouts",
        run: Run::Model(run_materialize),
    },
    Pass {
        name: "restore_norms",
        reason: "what no kernel was chosen for is written as it was, which may need views that legalize adds",
        run: Run::Graph(raise_norms::restore_norms),
    },
    Pass {
        name: "legalize",
        reason: "adds the views that the dialect needs, some of them of constants",
        run: Run::Graph(legalize::legalize),
    },
    Pass {
        name: "reorder_weights",
        reason: "takes moves that the decision left, before those of constants are folded",
        run: Run::Graph(reorder_weights::reorder_weights),
    },
    Pass {
        name: "join_moves",
        reason: "joins moves that the decision left; before views of constants are folded",
        run: Run::Graph(join_moves::join_moves),
    },
    Pass {
        name: "hoist",
        reason: "takes moves and raised operands of captured values out of loops, those of constants included",
        run: Run::Model(hoist::hoist),
    },
    Pass {
        name: "fold_weights",
        reason: "absorbs moves and views of constants, those of legalize included",
        run: Run::Graph(fold_weights::fold_weights),
    },
    Pass {
        name: "split_moves",
        reason: "looks at the moves that are left; those of constants are gone",
        run: Run::Graph(legalize::split_moves),
    },
    Pass { name: "cleanup", reason: "removes what the others left unread", run: Run::Graph(cleanup::cleanup) },
    Pass {
        name: "trim_pools",
        reason: "knows which calls are left; only they ask for extents that a loader may infer otherwise",
        run: Run::Model(trim_pools::trim_pools),
    },
];

/// Passes that leave every node and every constant where it is, and put nothing but views and moves between them.
const DECIDING: &[&str] = &["fold_shapes", "canonicalize", "assign", "materialize", "legalize"];

/// A pass that could not do its work. All are faults of this program, not of the model: the graph is left as it was read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// A name was taken.
    #[error("a pass made a name twice (please report this): {0}")]
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
    pub dims: BTreeMap<String, Size>,
    /// Limits of the solver.
    pub limits: Limits,
    /// How inputs and outputs of the model are stored.
    pub ends: Ends,
    /// Decide layouts and say them, but leave every node and every constant of the graph where it is.
    pub layouts_only: bool,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// Print the main graph after this pass.
    pub print_after: Option<String>,
    /// For how many of the moves that are left it is found out what it would take for them to go; the dearest come first.
    pub price_moves: usize,
}

impl PipelineOptions {
    /// The same for a result that is looked at again: nothing is printed, and its inputs and outputs are as they should be.
    #[must_use]
    pub fn again(&self) -> PipelineOptions {
        PipelineOptions { print_after: None, ends: Ends::default(), ..self.clone() }
    }
}

/// What the pipeline did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One record per graph: the main one first, then bodies.
    pub graphs: Vec<GraphRecord>,
    /// How the decision was found.
    pub solve: SolveRecord,
    /// Problems of the model that did not stop the work.
    pub notes: Vec<String>,
    /// Text of the main graph after the pass that was asked for.
    pub printed: Option<String>,
    /// Size hints that were used.
    pub hints: BTreeMap<String, i64>,
    /// Inputs and outputs that are stored otherwise than before.
    pub ends: Vec<MovedEnd>,
}

/// Runs every pass on the model's graph and its bodies.
///
/// # Errors
/// [`PassError`]; the model may then be changed and must be dropped.
pub fn run(model: &mut Model, target: &dyn Target, options: &PipelineOptions) -> Result<Outcome, PassError> {
    run_passes(model, target, options, PASSES)
}

/// What [`prepare`] may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Whatever the pipeline takes away before the decision.
    Everything,
    /// Nothing: the graph then is the model as it was read, its types inferred and its nodes bound to their signatures.
    Nothing,
}

/// Runs the passes that come before the decision, and gives the sizes at which it is priced.
///
/// # Errors
/// As of [`run`].
pub fn prepare(
    model: &mut Model,
    target: &dyn Target,
    options: &PipelineOptions,
    before: Before,
) -> Result<(Outcome, Hints), PassError> {
    let allowed = |name: &str| match name {
        "fold_shapes" | "canonicalize" => true,
        _ => before == Before::Everything,
    };
    let wanted = PASSES.iter().take_while(|p| p.name != "assign").filter(|p| allowed(p.name));
    let outcome = run_passes(model, target, options, wanted)?;
    let hints = Hints::new(&options.dims, &model.graph);
    Ok((outcome, hints))
}

/// Runs passes other than [`PASSES`] as [`run`] does: with one more between them, say.
///
/// # Errors
/// As of [`run`].
pub fn run_passes<'p>(
    model: &mut Model,
    target: &dyn Target,
    options: &PipelineOptions,
    passes: impl IntoIterator<Item = &'p Pass>,
) -> Result<Outcome, PassError> {
    let mut outcome = Outcome::default();
    let mut cx = Context {
        limits: options.limits.clone(),
        ends: options.ends.clone(),
        numerics: options.numerics,
        price_moves: options.price_moves,
        unknowns: model.unknowns,
        opset: ["", "ai.onnx"].iter().find_map(|domain| model.opsets.get(*domain)).copied().unwrap_or(0),
        ..Context::new(target)
    };
    let graph = &mut model.graph;
    let mut constants: Vec<BTreeSet<NodeId>> = Vec::new();
    // Those that are new once weights are folded; extents of views come later.
    let mut folded: Vec<BTreeSet<NodeId>> = Vec::new();
    each_graph(graph, "", &mut |graph, path| {
        graph.storage = target.storage();
        cx.dead_before.push(cleanup::dead_nodes(graph).into_iter().collect());
        cx.graphs.push(GraphRecord { path: path.to_owned(), ..GraphRecord::default() });
        constants.push(constants_of(graph));
        cx.quantizes |= graph.nodes().any(|n| graph.node(n).onnx().is_some_and(|op| op.contains("Quantize")));
        Ok(())
    })?;
    for pass in passes {
        if options.layouts_only && !DECIDING.contains(&pass.name) {
            continue;
        }
        let folds = pass.name == "fold_constants";
        let steps = if folds { known::op_count(graph)? } else { 0 };
        pass.run(graph, &mut cx)?;
        // Without dims that inference had to invent there is nothing to find out.
        if folds && cx.unknowns > model.unknowns && known::op_count(graph)? < steps {
            known::fold_on(graph, &mut cx)?;
            cx.hints = Hints::new(&options.dims, graph);
        }
        if pass.name == "fold_shapes" {
            cx.hints = Hints::new(&options.dims, graph);
            note_transposes(graph, &mut cx)?;
        }
        if pass.name == "fold_weights" {
            each_graph(graph, "", &mut |graph, _| {
                folded.push(constants_of(graph).difference(&constants[folded.len()]).copied().collect());
                Ok(())
            })?;
        }
        cx.check(graph, pass.name)?;
        if options.print_after.as_deref() == Some(pass.name) {
            outcome.printed = Some(graph.to_string());
        }
    }
    let mut at = 0;
    each_graph(graph, "", &mut |graph, _| {
        cx.graphs[at].moves = describe_priced_moves(graph, &cx.hints, cx.graphs[at].weight, at, &cx.priced);
        let now: BTreeSet<NodeId> = constants_of(graph).difference(&constants[at]).copied().collect();
        cx.graphs[at].folded = folded.get(at).map_or(now.len(), |folded| folded.intersection(&now).count());
        at += 1;
        Ok(())
    })?;
    outcome.hints = cx.hints.used(graph);
    outcome.graphs = cx.graphs;
    outcome.solve = cx.solve;
    outcome.notes = cx.notes;
    outcome.ends = cx.moved_ends;
    Ok(outcome)
}

fn constants_of(graph: &Graph) -> BTreeSet<NodeId> {
    graph.nodes().filter(|&n| matches!(graph.node(n).op, Op::Constant(_))).collect()
}

pub(crate) type Visit<'v> = dyn FnMut(&mut Graph, &str) -> Result<(), PassError> + 'v;

/// Visits the main graph and then its bodies, always in the same order, with the place of each.
pub(crate) fn each_graph(graph: &mut Graph, path: &str, visit: &mut Visit<'_>) -> Result<(), PassError> {
    visit(graph, path)?;
    let holders: Vec<NodeId> = graph.nodes().filter(|&n| graph.node(n).bodies().next().is_some()).collect();
    for n in holders {
        let node = graph.node(n);
        let paths: Vec<String> = node.attrs.keys().map(|name| node.body_path(graph, path, name)).collect();
        for ((_, attr), path) in graph.attrs_mut(n).iter_mut().zip(paths) {
            for body in attr.bodies_mut() {
                each_graph(body, &path, visit)?;
            }
        }
    }
    Ok(())
}

impl Context<'_> {
    /// Verifies what a pass left, if it left anything else than the one before.
    fn check(&mut self, graph: &Graph, pass: &'static str) -> Result<(), PassError> {
        // Forms are bound by the second pass; before it the graph is as the importer, which checked it, left it.
        if pass == "fold_shapes" {
            return Ok(());
        }
        // The decision is written by `materialize`; until then everything is row-major.
        let decided = if pass == "assign" { &[] } else { self.moved_ends.as_slice() };
        let agreed: Contract = decided.iter().map(|end| (end.name.clone(), end.layout.clone())).collect();
        if self.checked.as_ref().is_some_and(|(edits, with)| *edits == graph.edits() && *with == agreed) {
            return Ok(());
        }
        verify_with(graph, &agreed).map_err(|violations: Vec<Violation>| PassError::Invalid {
            pass,
            first: violations.first().map(ToString::to_string).unwrap_or_default(),
            count: violations.len(),
        })?;
        self.checked = Some((graph.edits(), agreed));
        Ok(())
    }
}

/// What the input moves, before any pass takes something away.
fn note_transposes(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for (record, scope) in cx.graphs.iter_mut().zip(&Scopes::of(graph).list) {
        record.weight = scope.weight;
    }
    let mut at = 0;
    each_graph(graph, "", &mut |graph, _| {
        cx.graphs[at].before = crate::record::transposes(graph, &cx.hints, cx.graphs[at].weight);
        at += 1;
        Ok(())
    })
}

fn run_assign(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut at = 0;
    each_graph(graph, "", &mut |graph, _| {
        cx.graphs[at].opaque = crate::record::opaque_nodes(graph);
        at += 1;
        Ok(())
    })?;
    let scopes = Scopes::with_ends(graph, &cx.ends);
    let decision = Decision::of(&scopes, cx.target, &cx.hints, &cx.limits, cx.numerics)?;
    cx.priced = decision.priced_moves(cx.price_moves);
    (cx.plan, cx.solve) = decision.into_plan();
    cx.moved_ends = moved_ends(graph, &scopes, &cx.plan, &cx.ends);
    Ok(())
}

/// Inputs and outputs that the decision, or the contract, stores otherwise than ONNX has them.
fn moved_ends(graph: &Graph, scopes: &Scopes<'_>, plan: &Plan, ends: &Ends) -> Vec<MovedEnd> {
    let mut moved = Vec::new();
    for end in ends.of(graph) {
        let place = if end.output { graph.output_places(end.value).first().copied() } else { None };
        let Some(layout) = plan.end(scopes, end.value, place).filter(|layout: &Layout| !layout.is_row_major()) else {
            continue;
        };
        let name = graph.value(end.value).name.clone();
        moved.push(MovedEnd { name, output: end.output, layout, chosen: end.layout.is_none() });
    }
    moved
}

fn run_materialize(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    materialize::materialize(graph, &cx.plan, &cx.ends)
}
