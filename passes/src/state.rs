//! What the engine keeps while passes run, and what a pass is. Passes are made of it; the pipeline lists them and runs them.

use crate::decide::{Decision, Ends, Grounds, MovedEnd, Plan, PricedMove, Scopes, SolveRecord};
use crate::report::GraphRecord;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::verify::Contract;
use relayout_solve::Limits;
use relayout_target_api::{
    Context, Declared, Fact, Pass, PassError, PassReport, Run, Settings, Trial, Trials, Written, each_graph,
};
use std::collections::BTreeSet;

/// What the engine keeps while passes run.
pub(crate) struct State<'a> {
    pub(crate) settings: Settings<'a>,
    /// Anonymous dims handed out so far.
    pub(crate) unknowns: u32,
    /// The decision, once there is one.
    pub(crate) plan: Plan,
    /// How inputs and outputs of the model are stored.
    pub(crate) ends: Ends,
    /// Per graph: results that nobody read in the input. Not their nodes: the number of one that goes is given to another.
    pub(crate) dead_before: Vec<BTreeSet<ValueId>>,
    /// What was written in the place of pieces, by graph.
    pub(crate) written: Vec<(usize, Written)>,
    /// The pieces that were raised: their graph, their last node, and the form that stands for them.
    pub(crate) pieces: Vec<(usize, NodeId, &'static str)>,
    pub(crate) report: PassReport,
    /// Per graph: what is reported of it.
    pub(crate) graphs: Vec<GraphRecord>,
    pub(crate) limits: Limits,
    /// Inputs and outputs that are stored otherwise than ONNX has them.
    pub(crate) moved_ends: Vec<MovedEnd>,
    pub(crate) solve: SolveRecord,
    /// How many of the moves that are left are priced.
    pub(crate) price_moves: usize,
    /// Whether every node of the graph stays where it is.
    pub(crate) keeps_nodes: bool,
    /// Those that were, the dearest first.
    pub(crate) priced: Vec<PricedMove>,
    /// What holds of the graph.
    pub(crate) facts: BTreeSet<Fact>,
    /// The edits of the graph and the contract with which it was verified last.
    pub(crate) checked: Option<(u64, Contract)>,
}

impl State<'_> {
    /// Calls with what passes work with, at a graph.
    pub(crate) fn context<R>(&mut self, scope: usize, call: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let weights: Vec<u64> = self.graphs.iter().map(|record| record.weight).collect();
        let trials = Solver { ends: &self.ends, limits: &self.limits };
        let (settings, report) = (&self.settings, &mut self.report);
        call(&mut Context { settings, scope, weights: &weights, report, trials: &trials })
    }

    pub(crate) fn run(&mut self, step: &Step<'_>, graph: &mut Graph) -> Result<(), PassError> {
        let run: EachGraph<'_> = match &step.run {
            StepRun::Engine(run) => return run(graph, self),
            StepRun::Model(run) => return self.context(0, |cx| run(graph, cx)),
            StepRun::Target(Pass { run: Run::Model(run), .. }) => return self.context(0, |cx| run(graph, cx)),
            StepRun::EachGraph(run) => *run,
            StepRun::Target(Pass { run: Run::EachGraph(run), .. }) => run,
        };
        self.context(0, |cx| {
            each_scope(graph, &mut |graph, scope| {
                cx.scope = scope;
                run(graph, cx)
            })
        })
    }
}

/// Decides with the limits and ends of the model.
struct Solver<'s> {
    ends: &'s Ends,
    limits: &'s Limits,
}

impl Trials for Solver<'_> {
    fn decide(&self, settings: &Settings<'_>, graph: &Graph) -> Result<Trial, PassError> {
        let scopes = Scopes::with_ends(graph, self.ends);
        let decision = Decision::of(&scopes, Grounds::of(settings), self.limits)?;
        Ok(decision.trial())
    }
}

type EachGraph<'t> = &'t (dyn Fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError> + Send + Sync);

/// What a step of the pipeline runs.
#[derive(Clone, Copy)]
pub(crate) enum StepRun<'t> {
    /// The main graph, with what the engine keeps.
    Engine(fn(&mut Graph, &mut State<'_>) -> Result<(), PassError>),
    /// The main graph; the pass sees to bodies itself.
    Model(fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError>),
    /// Each graph by itself.
    EachGraph(EachGraph<'t>),
    /// A pass of the target.
    Target(&'t Pass),
}

/// A step of the pipeline: a pass of the engine's own or of the target.
#[derive(Clone, Copy)]
pub struct Step<'t> {
    /// What the pass says about itself.
    pub is: Declared,
    run: StepRun<'t>,
}

impl Step<'static> {
    /// A pass of the engine's own, of the main graph and what the engine keeps.
    pub(crate) const fn engine(is: Declared, run: fn(&mut Graph, &mut State<'_>) -> Result<(), PassError>) -> Self {
        Step { is, run: StepRun::Engine(run) }
    }

    /// A pass of the engine's own that sees to bodies itself.
    pub(crate) const fn model(is: Declared, run: fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError>) -> Self {
        Step { is, run: StepRun::Model(run) }
    }
}

impl<'t> Step<'t> {
    /// A pass of the engine's own, of each graph by itself.
    pub(crate) const fn each_graph(is: Declared, run: EachGraph<'t>) -> Self {
        Step { is, run: StepRun::EachGraph(run) }
    }
}

impl<'t> From<&'t Pass> for Step<'t> {
    fn from(pass: &'t Pass) -> Step<'t> {
        Step { is: pass.is, run: StepRun::Target(pass) }
    }
}

/// Visits every graph of a model with its number, as [`each_graph`] orders them.
pub(crate) fn each_scope(
    graph: &mut Graph,
    visit: &mut dyn FnMut(&mut Graph, usize) -> Result<(), PassError>,
) -> Result<(), PassError> {
    let mut scope = 0;
    each_graph(graph, "", &mut |graph, _| {
        visit(graph, scope)?;
        scope += 1;
        Ok(())
    })
}
