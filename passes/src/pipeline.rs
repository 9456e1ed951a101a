//! The pipeline: passes in slots, with the reason for their order.
//!
//! Every pass takes a graph that `verify` passed and leaves one that it passes; the pipeline checks that after each. A pass
//! collects its edits in a patch, or in fragments, each applied whole.

mod known;
mod order;
pub mod tell;
mod watch;

pub use order::steps;
pub use watch::{Progress, Watch};

use crate::decide::{Ends, MovedEnd, Plan, Scopes, SolveRecord, quantizes};
use crate::report::{GraphRecord, describe_priced_moves};
pub use crate::state::Step;
use crate::state::{State, each_scope};
use crate::write::cleanup;
use relayout_ir::attr::Attr;
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_ir::model::Model;
use relayout_ir::verify::{Contract, Violation, verify_with};
use relayout_solve::Limits;
use relayout_target_api::hints::{Hints, Size};
use relayout_target_api::{Fact, Numerics, PassError, PassReport, Rule, Settings, Slot, Target, Written, each_graph};
use std::collections::{BTreeMap, BTreeSet};

impl<'a> State<'a> {
    fn new(model: &Model, target: &'a dyn Target, options: &PipelineOptions) -> State<'a> {
        let opset = ["", "ai.onnx"].iter().find_map(|domain| model.opsets.get(*domain)).copied().unwrap_or(0);
        let settings = Settings {
            target,
            hints: Hints::default(),
            numerics: options.numerics,
            least_gain: options.least_gain,
            opset,
            quantizes: false,
        };
        State {
            settings,
            unknowns: model.unknowns,
            plan: Plan::default(),
            ends: options.ends.clone(),
            dead_before: Vec::new(),
            written: Vec::new(),
            pieces: Vec::new(),
            report: PassReport::default(),
            graphs: Vec::new(),
            limits: options.limits.clone(),
            moved_ends: Vec::new(),
            solve: SolveRecord::default(),
            price_moves: options.price_moves,
            keeps_nodes: options.layouts_only,
            priced: Vec::new(),
            facts: BTreeSet::new(),
            checked: None,
        }
    }
}

/// The passes of the slot in which layouts are decided.
const DECIDE: &[Step<'static>] = &[crate::assign::PASS];

/// The engine's own passes, in their order.
pub(crate) fn own<'t>() -> impl Iterator<Item = &'t Step<'t>> {
    let slots: [&[Step<'t>]; 3] = [crate::simplify::PASSES, DECIDE, crate::write::PASSES];
    slots.into_iter().flatten()
}

/// The rules that the engine's own passes and those of a target carry out.
pub fn rules(target: &dyn Target) -> Vec<&'static Rule> {
    let own = own().flat_map(|step| step.is.rules);
    let passes = target.passes().iter().flat_map(|pass| pass.is.rules);
    let pieces = target.forms().iter().flat_map(|form| form.rules());
    own.chain(passes).chain(pieces).copied().collect()
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
    /// Decide and write layouts, but leave every node and every constant of the graph where it is.
    pub layouts_only: bool,
    /// Leave out `spell_operands`: operands stay as they are written.
    pub keeps_spelling: bool,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// By how many percent the cost of a region must fall at least for it to be kept; 0 is any gain.
    pub least_gain: u64,
    /// Keep the main graph as it is after this pass, to be printed.
    pub print_after: Option<String>,
    /// For how many of the moves that are left it is found out what it would take for them to go; the dearest come first.
    pub price_moves: usize,
    /// Who is told of each pass before it runs.
    pub watch: Watch,
    /// How often the result was looked at before.
    pub round: usize,
    /// Places in the file of nodes of the main graph that stay as they are, their bodies with them.
    pub kept: BTreeSet<u32>,
}

impl PipelineOptions {
    /// The same for a result that is looked at again: nothing is printed, and its inputs and outputs are as they should be.
    #[must_use]
    pub fn again(&self) -> PipelineOptions {
        PipelineOptions { print_after: None, ends: Ends::default(), round: self.round + 1, ..self.clone() }
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
    /// The main graph after the pass that was asked for.
    pub printed: Option<Graph>,
    /// Size hints that were used.
    pub hints: BTreeMap<String, i64>,
    /// Inputs and outputs that are stored otherwise than before.
    pub ends: Vec<MovedEnd>,
    /// What was written in the place of pieces, with the number of the graph.
    pub written: Vec<(usize, Written)>,
    /// The pieces of several nodes that have another form: the number of the graph, the last node, and the form.
    pub pieces: Vec<(usize, NodeId, &'static str)>,
    /// Nodes whose operands were written in another way: [`PassReport::spelled`].
    pub spelled: usize,
}

/// Runs every pass on the model's graph and its bodies.
///
/// # Errors
/// [`PassError`]; the model may then be changed and must be dropped.
pub fn run(model: &mut Model, target: &dyn Target, options: &PipelineOptions) -> Result<Outcome, PassError> {
    run_steps(model, target, options, &steps(target)?)
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
    let mut wanted = steps(target)?;
    wanted.retain(|step| step.is.slot < Slot::Decide && (step.is.keeps_nodes || before == Before::Everything));
    let outcome = run_steps(model, target, options, &wanted)?;
    let hints = Hints::new(&options.dims, &model.graph);
    Ok((outcome, hints))
}

/// Runs other steps than those of [`steps`] as [`run`] does, with one more between them for example.
///
/// # Errors
/// As of [`run`].
pub fn run_steps(
    model: &mut Model,
    target: &dyn Target,
    options: &PipelineOptions,
    steps: &[Step<'_>],
) -> Result<Outcome, PassError> {
    let mut state = State::new(model, target, options);
    let graph = &mut model.graph;
    keep(graph, &options.kept);
    let mut constants = Constants::default();
    each_graph(graph, "", &mut |graph, path| {
        graph.storage = target.capabilities().storage;
        let dead = cleanup::dead_nodes(graph).into_iter().flat_map(|n| graph.node(n).outputs.clone()).flatten();
        state.dead_before.push(dead.collect());
        state.graphs.push(GraphRecord { path: path.to_owned(), ..GraphRecord::default() });
        constants.of_input.push(constants_of(graph));
        state.settings.quantizes |= quantizes(graph);
        Ok(())
    })?;
    let mut printed = None;
    let ops = known::op_count(graph)?;
    for (i, step) in steps.iter().enumerate() {
        let spells = step.is.name == crate::simplify::spell_operands::PASS.is.name;
        if options.layouts_only && !step.is.keeps_nodes || options.keeps_spelling && spells {
            continue;
        }
        options.watch.tell(Progress { pass: step.is.name, index: i, of: steps.len(), round: options.round })?;
        state.run(step, graph)?;
        let last = steps.get(i + 1).is_none_or(|next| next.is.slot > step.is.slot);
        // Without dims that inference had to invent there is nothing to find out.
        if step.is.slot == Slot::Simplify && last && state.unknowns > model.unknowns && known::op_count(graph)? < ops {
            known::simplify_on(graph, &mut state, steps)?;
            state.settings.hints = Hints::new(&options.dims, graph);
        }
        if step.is.gives.contains(&Fact::Types) {
            state.settings.hints = Hints::new(&options.dims, graph);
            note_transposes(graph, &mut state)?;
        }
        if step.is.gives.contains(&Fact::Packed) {
            constants.note_folded(graph)?;
        }
        state.facts.retain(|fact| !step.is.breaks.contains(fact));
        state.facts.extend(step.is.gives);
        state.check(graph, step.is.name)?;
        if options.print_after.as_deref() == Some(step.is.name) {
            printed = Some(graph.clone());
        }
    }
    state.outcome(graph, &constants, printed)
}

/// Has nodes of these ranks stay as they are.
fn keep(graph: &mut Graph, ranks: &BTreeSet<u32>) {
    if ranks.is_empty() {
        return;
    }
    let own: Vec<NodeId> = graph.nodes().filter(|&n| ranks.contains(&graph.node(n).rank)).collect();
    for n in own {
        keep_node(graph, n);
    }
}

fn keep_node(graph: &mut Graph, n: NodeId) {
    graph.keep(n);
    for body in graph.attrs_mut(n).values_mut().flat_map(Attr::bodies_mut) {
        let all: Vec<NodeId> = body.nodes().collect();
        for n in all {
            keep_node(body, n);
        }
    }
}

/// Constants of each graph.
#[derive(Default)]
struct Constants {
    of_input: Vec<BTreeSet<NodeId>>,
    /// Those that are new once weights are folded; extents of views come later.
    folded: Vec<BTreeSet<NodeId>>,
}

impl Constants {
    fn note_folded(&mut self, graph: &mut Graph) -> Result<(), PassError> {
        each_scope(graph, &mut |graph, scope| {
            self.folded.push(constants_of(graph).difference(&self.of_input[scope]).copied().collect());
            Ok(())
        })
    }
}

fn constants_of(graph: &Graph) -> BTreeSet<NodeId> {
    graph.nodes().filter(|&n| matches!(graph.node(n).op, Op::Constant(_))).collect()
}

impl State<'_> {
    fn outcome(
        mut self,
        graph: &mut Graph,
        constants: &Constants,
        printed: Option<Graph>,
    ) -> Result<Outcome, PassError> {
        each_scope(graph, &mut |graph, scope| {
            let record = &mut self.graphs[scope];
            record.moves = describe_priced_moves(graph, &self.settings.hints, record.weight, scope, &self.priced);
            let now: BTreeSet<NodeId> = constants_of(graph).difference(&constants.of_input[scope]).copied().collect();
            let folded = constants.folded.get(scope);
            record.folded = folded.map_or(now.len(), |folded| folded.intersection(&now).count());
            record.rewrites = self.report.rules.get(scope).cloned().unwrap_or_default();
            Ok(())
        })?;
        Ok(Outcome {
            graphs: self.graphs,
            solve: self.solve,
            notes: self.report.notes,
            printed,
            hints: self.settings.hints.used(graph),
            ends: self.moved_ends,
            written: self.written,
            pieces: self.pieces,
            spelled: self.report.spelled,
        })
    }

    /// Verifies what a pass left, if it left anything else than the one before.
    fn check(&mut self, graph: &Graph, pass: &'static str) -> Result<(), PassError> {
        // Before forms are bound the graph is as the importer, which checked it, left it.
        if !self.facts.contains(&Fact::Bound) {
            return Ok(());
        }
        // Until the decision is written everything is row-major.
        let decided = if self.facts.contains(&Fact::Layouts) { self.moved_ends.as_slice() } else { &[] };
        let agreed: Contract = decided.iter().map(|end| (end.name.clone(), end.layout.clone())).collect();
        if self.checked.as_ref().is_some_and(|(edits, with)| *edits == graph.edits() && *with == agreed) {
            return Ok(());
        }
        verify_with(graph, &agreed).map_err(|violations: Vec<Violation>| PassError::Invalid {
            pass,
            first: violations.first().map(ToString::to_string).unwrap_or_default(),
            count: violations.len(),
            ranks: violations.iter().filter_map(|violation| violation.rank).collect(),
        })?;
        self.checked = Some((graph.edits(), agreed));
        Ok(())
    }
}

/// What the input moves, before any pass takes something away.
fn note_transposes(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    for (record, scope) in state.graphs.iter_mut().zip(&Scopes::of(graph).list) {
        record.weight = scope.weight;
    }
    each_scope(graph, &mut |graph, scope| {
        let record = &mut state.graphs[scope];
        record.before = crate::report::transposes(graph, &state.settings.hints, record.weight);
        Ok(())
    })
}
