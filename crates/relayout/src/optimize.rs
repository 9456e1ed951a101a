//! `optimize` takes a model and returns a model and a report.

use crate::annotations::left_out;
use crate::device::gains_nothing;
use crate::error::Error;
use crate::facts;
use crate::give_back::{Failed, GivenBack, TRIES, all_given_back, is_fault};
use crate::io::{IoRecord, Wishes, declare, records_of};
use crate::made_for::{is_settled, metadata};
use crate::model::Model;
pub use crate::options::Options;
use crate::proof::{Links, Proof};
use crate::proved::{self, Asked};
use crate::report::{FileSize, Report, Rules, SCHEMA};
use crate::sizes::Sized;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::model::Model as IrModel;
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::export::{ExportOptions, Exported, export_with};
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::{ImportError, import_again, impossible};
use relayout_onnx::inline::Inlined;
use relayout_onnx::write::{
    Parts, Payloads, StagedModel, WriteOptions, bytes_in_all, copy_unchanged, split_model, stage_model, write_model,
    write_model_to,
};
use relayout_passes::decide::MovedEnd;
use relayout_passes::pipeline::{Outcome, PipelineOptions, run, steps};
use relayout_passes::report::{GraphRecord, Traffic};
use relayout_target_api::{Equation, PassError, Rule, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The names of the passes that run for a target, in their order.
///
/// # Errors
/// [`Error::Pass`] if the target's passes can't be put in order.
pub fn passes(target: &dyn Target) -> Result<Vec<&'static str>, Error> {
    Ok(steps(target)?.iter().map(|step| step.is.name).collect())
}

/// The rules that change which ops there are, for a target.
pub fn rules(target: &dyn Target) -> Vec<&'static Rule> {
    relayout_passes::pipeline::rules(target)
}

/// The equations by which pieces of several nodes are recognized for a target.
///
/// # Errors
/// [`Error::Pass`] if one of the target's own is no equation.
pub fn equations(target: &dyn Target) -> Result<Vec<Equation>, Error> {
    Ok(relayout_passes::forms::equations(target)?)
}

/// What [`optimize`] made. It keeps the file of the model, and needs nothing else of it.
#[derive(Debug)]
pub struct Optimized {
    pub(crate) input: Arc<ModelFile>,
    pub(crate) result: Option<Exported>,
    pub(crate) report: Report,
    /// Inputs and outputs that lie otherwise than in the model, as was asked for.
    pub(crate) ends: Vec<MovedEnd>,
    shown: Shown,
    /// What the last round left.
    source: Source,
    /// Of the target's dialect: whether moves are calls, and whether there is anything in it but standard ops and calls.
    calls_functions: bool,
    bundles: bool,
    links: Option<Links>,
    /// The result as it was written beside its place, until it is put there.
    staged: Mutex<Option<StagedModel>>,
}

/// Graphs of the first round that the options ask for.
#[derive(Debug, Default)]
struct Shown {
    /// After the pass that is to be printed.
    printed: Option<Graph>,
    /// After the last pass.
    decided: Option<Graph>,
}

/// A second look at the result finds nothing, as a rule; more rounds than this are never needed, and none makes it dearer.
const ROUNDS: usize = 8;

/// Optimizes a model for a target. The result of each round is optimized again until nothing changes. So optimizing the output
/// changes nothing.
///
/// # Errors
/// [`Error`]; nothing is written by this function.
pub fn optimize(model: &Model, target: &dyn Target, options: &Options) -> Result<Optimized, Error> {
    optimize_beside(model, target, options, None)
}

fn optimize_beside(
    model: &Model,
    target: &dyn Target,
    options: &Options,
    path: Option<&Path>,
) -> Result<Optimized, Error> {
    let made = |kept: &BTreeSet<u32>| decided(model, target, options, kept);
    Ok(proved::checked(&Asked { model, target, options, path }, &made)?.chosen_as(options))
}

/// Decides about all of a model but nodes of these places, which stay as they are.
fn decided(model: &Model, target: &dyn Target, options: &Options, kept: &BTreeSet<u32>) -> Result<Optimized, Error> {
    let Sized { options, records: sizes } = &Sized::of(model, options)?;
    let mut pipeline = options.pipeline(target)?;
    pipeline.kept.clone_from(kept);
    refuse_impossible(model)?;
    let wishes = options.wishes();
    let (records, unread) = known_ends(model, wishes)?;
    if is_settled(model, target, wishes, &records)? {
        return Ok(settled(model, target, records));
    }
    let metadata = metadata(target);
    let writing = ExportOptions {
        metadata: &metadata,
        calls_functions: target.capabilities().calls_functions,
        describes: options.proof,
    };
    if !wishes.is_empty() {
        pipeline.ends = wishes.resolve(&Source::of_file(model)?.typed(), target, &records)?;
    }
    let rounds = Rounds { model, target, pipeline: &pipeline, writing: &writing, strict: options.strict };
    let Made { mut source, outcome: mut first, mut exported, given_back } = rounds.first()?;
    if let Some(all) = given_back.as_ref().filter(|given| given.all) {
        return Ok(unchanged(model, target, all.why.as_str()));
    }
    let filled = filled(&source.ir.graph);
    let shown = Shown { printed: first.printed.take(), decided: options.keep_decided.then(|| source.ir.graph.clone()) };
    let mut report = report_of(model, target, &first);
    report.sizes.clone_from(sizes);
    report.notes.append(&mut source.notes);
    report.notes.extend(given_back.map(|given| given.why));
    report.io = wishes.records(&records, &first.ends)?;
    report.notes.extend(unread);
    let named = || Source::of_file(model).map(|source| Links::of(&model.ir.graph, &source.typed()));
    let mut links = options.proof.then(named).transpose()?;
    follow(&mut links, &exported);
    declare(&mut exported, wishes, &first.ends, &report.io, &metadata);
    let ends = first_ends(&pipeline, std::mem::take(&mut first.ends));
    let first = Made { source, outcome: first, exported, given_back: None };
    let (source, last, result) = match rounds.rest(first, &mut report, &mut links) {
        Err(e) if !options.strict && is_fault(&e) => return Ok(unchanged(model, target, all_given_back(&e))),
        rest => rest?,
    };
    if let Some(why) = contradicted(model, result.as_ref())? {
        let kept = unchanged(model, target, format!("it contradicts itself, which shows where a move is gone: {why}"));
        return Ok(Optimized { shown, ..kept });
    }
    if let Some(kept) = kept_as_it_is(model, target, options, result.as_ref())? {
        return Ok(Optimized { shown, ..kept });
    }
    report.changed = result.is_some();
    report.file = result.as_ref().and_then(|result| file_size(model, result, filled));
    report.after = traffic(&last, GraphRecord::after);
    report.graphs = last.graphs;
    report.notes.extend(lost_fields(model, report.changed));
    report.notes.extend(result.iter().flat_map(|result| left_out(&model.file.proto, &result.proto)));
    let can = target.capabilities();
    let input = Arc::clone(&model.file);
    let (calls_functions, bundles, staged) = (can.calls_functions, can.bundles, Mutex::default());
    Ok(Optimized { input, result, report, ends, shown, source, calls_functions, bundles, links, staged })
}

/// What the file says of inputs and outputs that lie otherwise, and why that can't be read, if nobody asks for anything.
fn known_ends(model: &Model, wishes: Wishes<'_>) -> Result<(Vec<IoRecord>, Option<String>), Error> {
    match records_of(&model.file) {
        Ok(records) => Ok((records, None)),
        Err(e) if wishes.is_empty() => Ok((Vec::new(), Some(e.to_string()))),
        Err(e) => Err(e.into()),
    }
}

/// Inputs and outputs that lie otherwise than in the model: those that the caller named, and those that were left to the decision.
fn first_ends(pipeline: &PipelineOptions, moved: Vec<MovedEnd>) -> Vec<MovedEnd> {
    let named = |output: bool| {
        let layouts = if output { &pipeline.ends.outputs } else { &pipeline.ends.inputs };
        let moved = layouts.iter().filter(|(_, layout)| !layout.is_row_major());
        moved.map(move |(name, layout)| MovedEnd { name: name.clone(), output, layout: layout.clone(), chosen: false })
    };
    named(false).chain(named(true)).chain(moved.into_iter().filter(|end| end.chosen)).collect()
}

/// How large the files are; `None` where data of the model is wrong, which is said when it is written.
fn file_size(model: &Model, result: &Exported, filled: u64) -> Option<FileSize> {
    let options = WriteOptions::for_input(&model.file);
    let before = bytes_in_all(&model.file.proto, &options).ok()?;
    let after = bytes_in_all(&result.proto, &options.payloads(&result.payloads)).ok()?;
    Some(FileSize::new(before, after, filled))
}

/// Bytes of zeros that fill axes of constants up to whole blocks, bodies included.
fn filled(graph: &Graph) -> u64 {
    let of = |v: ValueId| {
        let (ty, layout) = (&graph.value(v).ty, &graph.value(v).layout);
        let elements = |shape: &[Dim]| u64::try_from(Dim::product(shape)?.as_const()?).ok();
        let more = elements(&graph.storage_shape(v, layout)?)?.checked_sub(elements(ty.shape()?)?)?;
        graph.constant(v).and_then(|_| ty.dtype()?.bytes(more))
    };
    let own: u64 = graph.values().filter_map(of).fold(0, u64::saturating_add);
    let bodies = graph.nodes().flat_map(|n| graph.node(n).bodies());
    bodies.map(filled).fold(own, u64::saturating_add)
}

/// Notes what a round wrote, if it changed anything.
fn follow(links: &mut Option<Links>, exported: &Exported) {
    if let (Some(links), Some(written), true) = (links, &exported.written, exported.changed) {
        links.follow(written);
    }
}

/// What a round made: the graph that it left, what it did, and its messages.
struct Made {
    source: Source,
    outcome: Outcome,
    exported: Exported,
    /// What stays as it was, since rewrites of it failed.
    given_back: Option<GivenBack>,
}

/// Rounds of the pipeline on a model and on what they make of it.
struct Rounds<'a> {
    model: &'a Model,
    target: &'a dyn Target,
    pipeline: &'a PipelineOptions,
    writing: &'a ExportOptions<'a>,
    strict: bool,
}

impl Rounds<'_> {
    /// Of what `source` gives, the same each time. What fails is left as it was, and everything is decided anew without it.
    fn round(&self, source: &dyn Fn() -> Result<Source, Error>, options: &PipelineOptions) -> Result<Made, Error> {
        let mut options = options.clone();
        let mut given_back: Option<GivenBack> = None;
        for tries in 0..TRIES {
            let failed = match self.tried(source()?, &options)? {
                Ok(made) => return Ok(Made { given_back, ..made }),
                Err(failed) => failed,
            };
            let graph = source()?.ir.graph;
            failed.grow(&mut options.kept, &graph, tries);
            given_back = Some(failed.part(&graph, &options.kept, given_back));
        }
        // Nothing that is left as it is helps.
        let source = source()?;
        let exported = source.export(self.writing)?;
        let given_back = given_back.map(GivenBack::whole);
        Ok(Made { source, outcome: Outcome::default(), exported, given_back })
    }

    /// What a round makes, or what is wrong with it, if something else can be tried.
    fn tried(&self, mut source: Source, options: &PipelineOptions) -> Result<Result<Made, Failed>, Error> {
        let made = run(&mut source.ir, self.target, options).map_err(Error::from);
        let (outcome, mut exported) = match made.and_then(|outcome| Ok((outcome, source.export(self.writing)?))) {
            Ok(made) => made,
            Err(e) if self.strict || !is_fault(&e) => return Err(e),
            Err(e) => return Ok(Err(Failed::of(&e))),
        };
        let found = if exported.changed {
            let before = [&self.model.file.proto, &source.file.proto];
            facts::new_in(&before, &mut exported.proto, &source.ir, options.numerics)
        } else {
            Vec::new()
        };
        match Failed::at(&source.ir.graph, &found) {
            Some(failed) => Ok(Err(failed)),
            None => Ok(Ok(Made { source, outcome, exported, given_back: None })),
        }
    }

    /// Of the model. Where nothing was to be done but to write operands in another way, that is undone.
    fn first(&self) -> Result<Made, Error> {
        let source = || Source::of_file(self.model);
        let first = self.round(&source, self.pipeline)?;
        if first.outcome.spelled > 0 {
            let mut keeps = self.pipeline.clone();
            keeps.keeps_spelling = true;
            let kept = self.round(&source, &keeps)?;
            if !kept.exported.changed {
                return Ok(kept);
            }
        }
        Ok(first)
    }

    /// Of what was made, until nothing changes: what the last round left and did, and the messages of the last one that changed
    /// anything.
    fn rest(
        &self,
        mut made: Made,
        report: &mut Report,
        links: &mut Option<Links>,
    ) -> Result<(Source, Outcome, Option<Exported>), Error> {
        let mut result: Option<Exported> = None;
        // What the dialect of another target says can't be decided again, and of what a round made nobody knows what is to stay.
        let again = self.target.capabilities().decides_again && self.pipeline.kept.is_empty();
        let rounds = if again { ROUNDS } else { 1 };
        for _ in 1..rounds {
            if !made.exported.changed {
                break;
            }
            let exported = made.exported;
            let file = Arc::new(self.model.file.with_proto(exported.proto.clone()));
            let unread =
                |e: ImportError| Error::Pass(PassError::invalid("export", format!("the result can't be read: {e}")));
            let again = || import_again(&file, &exported.payloads).map_err(unread);
            let next = self.round(&|| Source::of(&file, &exported.payloads, again), &self.pipeline.again())?;
            let kept = result.insert(exported);
            // What is given back as a whole is the result of the round before.
            let all = next.given_back.as_ref().is_some_and(|given| given.all);
            let before = std::mem::take(&mut made.outcome);
            // Most often it is what was given back before.
            let new = next.given_back.as_ref().filter(|given| !given.is_said(&report.notes));
            report.notes.extend(new.map(|given| given.why.clone()));
            made = Made { outcome: if all { before } else { next.outcome }, ..next };
            follow(links, &made.exported);
            if made.exported.changed {
                report.folded += folded(&made.outcome);
                count_rewrites(&mut report.rewrites, &made.outcome);
                made.exported.payloads.extend(std::mem::take(&mut kept.payloads));
            }
        }
        let Made { source, outcome, exported, .. } = made;
        Ok((source, outcome, if exported.changed { Some(exported) } else { result }))
    }
}

/// A model that is left as it is, because its runtime makes as much of it by itself.
fn kept_as_it_is(
    model: &Model,
    target: &dyn Target,
    options: &Options,
    result: Option<&Exported>,
) -> Result<Option<Optimized>, Error> {
    let Some(result) = result.filter(|_| options.wishes().is_empty()) else { return Ok(None) };
    if !gains_nothing(model, &result.proto, &result.payloads, target, &options.dims)? {
        return Ok(None);
    }
    Ok(Some(unchanged(model, target, "the runtime leaves no more Transposes of it on the device")))
}

/// What can't be about a result. A model may say what can't be and be read, as long as nobody works out what follows; one move less may
/// be enough to see it.
fn contradicted(model: &Model, result: Option<&Exported>) -> Result<Option<String>, Error> {
    let Some(result) = result else { return Ok(None) };
    let file = Arc::new(model.file.with_proto(result.proto.clone()));
    let ir = import_again(&file, &result.payloads)
        .map_err(|source| Error::Import { file: "the result".to_owned(), source })?;
    Ok(impossible_in(&file, &result.payloads, ir).into_iter().next())
}

/// The model as it is, as a result: for callers who found that no result serves them better. The report says `why`.
pub fn unchanged(model: &Model, target: &dyn Target, why: impl Into<String>) -> Optimized {
    let mut kept = settled(model, target, Vec::new());
    kept.report.settled = false;
    kept.report.kept = Some(why.into());
    kept
}

/// What one round starts from: the model, with the calls of its own functions written out.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: Arc<ModelFile>,
    inlined: Option<Inlined>,
    pub(crate) ir: IrModel,
    pub(crate) notes: Vec<String>,
}

impl Source {
    /// A model as the first round sees it.
    pub(crate) fn of_model(model: &Model) -> Result<Source, Error> {
        refuse_impossible(model)?;
        Source::of_file(model)
    }

    /// The same of one that is known to be possible.
    pub(crate) fn of_file(model: &Model) -> Result<Source, Error> {
        Source::of(&model.file, &Payloads::new(), || Ok(model.ir.clone()))
    }

    /// `plain` is the graph of the file as it stands, calls and all.
    fn of(
        file: &Arc<ModelFile>,
        payloads: &Payloads,
        plain: impl FnOnce() -> Result<IrModel, Error>,
    ) -> Result<Source, Error> {
        let inlined = Inlined::of(file);
        let mut notes = inlined.notes.clone();
        if !inlined.is_empty() {
            // What a caller gives may not fit a function in ways that only show in its place.
            let read = import_again(&inlined.file, payloads).map_err(|why| why.to_string());
            match read.and_then(|ir| impossible_of(ir.clone()).into_iter().next().map_or(Ok(ir), Err)) {
                Ok(ir) => return Ok(Source { file: Arc::clone(&inlined.file), inlined: Some(inlined), ir, notes }),
                Err(why) => notes.push(format!("the model's functions are not looked through: {why}")),
            }
        }
        Ok(Source { file: Arc::clone(file), inlined: None, ir: plain()?, notes })
    }

    /// The graph with the types of its values, as far as they follow. Problems of inference are the pipeline's to report.
    pub(crate) fn typed(&self) -> Graph {
        let mut typed = self.ir.clone();
        let _ = infer_graph(&mut typed.graph, &mut typed.unknowns);
        typed.graph
    }

    /// The messages of the graph as it is now. Calls in which nothing changed are calls again.
    fn export(&self, options: &ExportOptions<'_>) -> Result<Exported, Error> {
        let mut exported = export_with(&self.file, &self.ir, options)?;
        if let Some(inlined) = self.inlined.as_ref().filter(|_| exported.changed) {
            inlined.restore(&mut exported.proto);
        }
        Ok(exported)
    }
}

/// Optimizes a graph that does not come from a file. The result has layouts and Relayouts; values keep their logical shapes.
///
/// # Errors
/// [`Error::Pass`].
pub fn optimize_graph(graph: Graph, target: &dyn Target, options: &Options) -> Result<(Graph, Report), Error> {
    let mut model = IrModel { graph, ..IrModel::default() };
    // Who takes another graph is not told where the axes of its own ops lie.
    model.graph.forget_letters();
    let mut pipeline = options.pipeline(target)?;
    // That is for those who load a file.
    pipeline.keeps_spelling = true;
    pipeline.ends = options.wishes().resolve(&model.graph, target, &[])?;
    let outcome = run(&mut model, target, &pipeline)?;
    Ok((model.graph, report_of_graph(target, outcome, options)?))
}

/// The report of a graph that does not come from a file.
pub(crate) fn report_of_graph(target: &dyn Target, outcome: Outcome, options: &Options) -> Result<Report, Error> {
    let mut report = skeleton(target, &outcome);
    report.io = options.wishes().records(&[], &outcome.ends)?;
    report.after = traffic(&outcome, GraphRecord::after);
    report.changed =
        !report.io.is_empty() || report.folded > 0 || !report.rewrites.is_empty() || report.after != report.before;
    report.graphs = outcome.graphs;
    Ok(report)
}

/// A model that is left as it is, because it was made for this target.
fn settled(model: &Model, target: &dyn Target, records: Vec<IoRecord>) -> Optimized {
    let mut report = report_of(model, target, &Outcome::default());
    report.settled = true;
    report.io = records;
    report.notes.extend(lost_fields(model, false));
    let source = Source { file: Arc::clone(&model.file), inlined: None, ir: model.ir.clone(), notes: Vec::new() };
    let can = target.capabilities();
    let (calls_functions, bundles) = (can.calls_functions, can.bundles);
    let input = Arc::clone(&model.file);
    let (shown, ends, result, links, staged) = (Shown::default(), Vec::new(), None, None, Mutex::default());
    Optimized { input, result, report, ends, shown, source, calls_functions, bundles, links, staged }
}

fn refuse_impossible(model: &Model) -> Result<(), Error> {
    let problems = impossible_in(&model.file, &Payloads::new(), model.ir.clone());
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Import { file: model.label(), source: ImportError { problems } })
}

/// What can't be about a file, of which this is the graph. What a call makes has the type that the file declares, which readers who look
/// through functions do not rely on: so nothing is wrong that fits once the calls are written out.
fn impossible_in(file: &Arc<ModelFile>, payloads: &Payloads, ir: IrModel) -> Vec<String> {
    let mut problems = impossible_of(ir);
    if !problems.is_empty() {
        let inlined = Inlined::of(file);
        let written_out = || import_again(&inlined.file, payloads);
        if !inlined.is_empty() && written_out().is_ok_and(|ir| impossible_of(ir).is_empty()) {
            problems.clear();
        }
    }
    problems
}

/// What can't be, which shows once types are known; inference finds them again, and more, in the pipeline.
fn impossible_of(mut ir: IrModel) -> Vec<String> {
    // Problems of inference are the pipeline's to report.
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    impossible(&ir.graph)
}

fn skeleton(target: &dyn Target, outcome: &Outcome) -> Report {
    Report {
        rules: Rules(rules(target)),
        schema: SCHEMA,
        target: target.name().to_owned(),
        cost_source: target.cost_source().to_owned(),
        for_this_machine: None,
        changed: false,
        settled: false,
        kept: None,
        proof: None,
        io: Vec::new(),
        hints: outcome.hints.clone(),
        sizes: Vec::new(),
        file: None,
        before: traffic(outcome, |g| g.before),
        after: Traffic::default(),
        folded: folded(outcome),
        solve: outcome.solve.clone(),
        rewrites: {
            let mut rewrites = BTreeMap::new();
            count_rewrites(&mut rewrites, outcome);
            rewrites
        },
        graphs: Vec::new(),
        remarks: Vec::new(),
        notes: outcome.notes.clone(),
    }
}

fn report_of(model: &Model, target: &dyn Target, outcome: &Outcome) -> Report {
    let mut report = skeleton(target, outcome);
    report.notes.extend(model.notes.iter().cloned());
    report.remarks = target.remarks(&model.ir.graph);
    report.notes.extend(model.newer_opset());
    report
}

fn lost_fields(model: &Model, changed: bool) -> Option<String> {
    let count = model.file.unknown_count;
    let first = model.file.unknown_fields.first()?;
    let fate = if changed { "were dropped" } else { "were kept" };
    Some(format!("{count} fields that this version's schema does not know {fate}, the first at {first}"))
}

pub(crate) fn traffic(outcome: &Outcome, of: impl Fn(&GraphRecord) -> Traffic) -> Traffic {
    outcome.graphs.iter().map(of).fold(Traffic::default(), Traffic::plus)
}

fn folded(outcome: &Outcome) -> usize {
    outcome.graphs.iter().map(|g| g.folded).sum()
}

/// Adds what rewrites took away or say otherwise.
fn count_rewrites(sum: &mut BTreeMap<String, usize>, outcome: &Outcome) {
    for (name, nodes) in outcome.graphs.iter().flat_map(|g| &g.rewrites) {
        *sum.entry(name.clone()).or_default() += nodes;
    }
}

impl Optimized {
    /// [`optimize`] for a caller who writes the result to a file then. If it is to be checked and has many bytes of new constants, it is
    /// written beside that file at once, and checked there: constants are made once, and none of them has to fit into memory.
    /// [`Optimized::write`] to the same path puts it in its place; else it goes when the result is dropped.
    ///
    /// # Errors
    /// As of [`optimize`], and those of writing.
    pub fn for_file(
        model: &Model,
        target: &dyn Target,
        options: &Options,
        path: impl AsRef<Path>,
    ) -> Result<Optimized, Error> {
        optimize_beside(model, target, options, Some(path.as_ref()))
    }

    /// What was done.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The same result, whose report says what was chosen for this machine as these options have it. [`optimize`] does that by itself.
    #[must_use]
    pub fn chosen_as(mut self, options: &Options) -> Optimized {
        self.report.for_this_machine.clone_from(&options.for_this_machine);
        self
    }

    /// The proof that the result computes what the model computed. It has no claims where nothing was noted: the model is as it was,
    /// or [`Options::proof`] was not set.
    pub fn proof(&self) -> Proof {
        let graph = self.result.as_ref().and_then(|r| r.proto.graph.as_ref());
        // An axis of extent 1 has nothing to be moved: a proof about it would say little.
        let sizes: BTreeMap<String, i64> =
            self.report.hints.clone().into_iter().filter(|(_, size)| *size > 1).collect();
        match &self.links {
            Some(links) => links.proof(graph, sizes),
            None => Proof::of(sizes),
        }
    }

    /// The graph after the last pass: layouts on values, moves as Relayouts.
    pub fn graph(&self) -> &Graph {
        &self.source.ir.graph
    }

    /// The graph after the pass that the options name.
    pub fn printed(&self) -> Option<&Graph> {
        self.shown.printed.as_ref()
    }

    /// The graph after the first round, if the options ask for it: the layouts that were decided, over the axes of the model that was
    /// read. [`Optimized::graph`] has the axes of the result instead where its layouts are written as shapes.
    pub fn decided(&self) -> Option<&Graph> {
        self.shown.decided.as_ref()
    }

    /// Writes the model to a file, whole or not at all. An unchanged model is copied byte for byte.
    ///
    /// # Errors
    /// [`Error`]; an existing file is then as it was.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let input = &*self.input;
        self.check_external()?;
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(staged) = staged.take_if(|staged| staged.is_for(path.as_ref())) {
            input.check_unchanged()?;
            staged.commit()?;
            return Ok(());
        }
        match &self.result {
            Some(r) => write_model(&r.proto, path, &WriteOptions::for_input(input).payloads(&r.payloads))?,
            None if self.refers_elsewhere(path.as_ref()) => {
                write_model(&input.proto, path, &WriteOptions::for_input(input))?
            }
            None => copy_unchanged(input, path)?,
        };
        Ok(())
    }

    /// Whether it is written, beside its place.
    pub(crate) fn is_staged(&self) -> bool {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Writes the result beside `path`, if something can be there, and takes the bytes of its new constants from there.
    pub(crate) fn stage(&mut self, path: &Path) -> Result<(), Error> {
        let Some(result) = &mut self.result else { return Ok(()) };
        let options = WriteOptions::for_input(&self.input).payloads(&result.payloads);
        let staged = stage_model(&result.proto, path, &options)?;
        match &staged {
            Some(staged) => result.payloads.take_from(staged),
            None => result.payloads.keep(),
        }
        self.staged = Mutex::new(staged);
        Ok(())
    }

    /// Writes the model to a stream. External data is stored in the model itself.
    ///
    /// # Errors
    /// [`Error`].
    pub fn write_to(&self, out: &mut dyn Write) -> Result<(), Error> {
        let input = &*self.input;
        self.check_external()?;
        match &self.result {
            Some(r) => {
                write_model_to(&r.proto, out, &WriteOptions::for_input(input).payloads(&r.payloads))?;
            }
            None if input.has_external_data() => {
                write_model_to(&input.proto, out, &WriteOptions::for_input(input))?;
            }
            None => {
                let failed = |source| relayout_onnx::error::Error::Write { file: "the output".to_owned(), source };
                out.write_all(&input.source).map_err(failed)?;
                input.check_unchanged()?;
            }
        }
        Ok(())
    }

    /// The model in parts: its bytes with all data of at least `smallest` bytes as external data, and that data by location.
    /// [`Model::from_bytes_with`] reads such a model. Together the parts may exceed 2 GiB. Data that did not change is a slice of what
    /// the model was read from, and is not copied.
    ///
    /// # Errors
    /// [`Error`].
    pub fn to_parts(&self, smallest: u64) -> Result<Parts, Error> {
        let input = &*self.input;
        self.check_external()?;
        let options = WriteOptions::for_input(input);
        Ok(match &self.result {
            Some(r) => split_model(&r.proto, smallest, &options.payloads(&r.payloads))?,
            None => split_model(&input.proto, smallest, &options)?,
        })
    }

    /// The model as bytes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// The result would refer to data beside the input from another folder.
    fn refers_elsewhere(&self, path: &Path) -> bool {
        let input = &*self.input;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let same = input.dir().and_then(|d| d.canonicalize().ok()) == folder.canonicalize().ok();
        input.has_external_data() && !same
    }

    /// Data that the result refers to has to be there: a model without its weights is no result.
    fn check_external(&self) -> Result<(), Error> {
        Ok(self.input.check_external()?)
    }
}

/// The parts of a result, for those who write it themselves.
impl Optimized {
    /// The messages of the result, how each of their values is stored, and the payloads of earlier rounds. Calls of the model's
    /// own functions are written out. If the data of a tensor is no payload, it is in [`Optimized::file`].
    ///
    /// # Errors
    /// [`Error::Export`].
    pub fn described(&self) -> Result<(Exported, Option<&Payloads>), Error> {
        let options =
            ExportOptions { calls_functions: self.calls_functions, describes: true, ..ExportOptions::default() };
        let exported = export_with(&self.source.file, &self.source.ir, &options)?;
        Ok((exported, self.result.as_ref().map(|r| &r.payloads)))
    }

    /// The file that the result was made from. It holds the data that no pass touched.
    pub fn file(&self) -> &ModelFile {
        &self.source.file
    }

    /// Whether the target's files hold nothing but standard ops and calls of the dialect's functions.
    pub fn bundles(&self) -> bool {
        self.bundles
    }

    /// Messages and payloads, if the model changed.
    pub fn exported(&self) -> Option<(&relayout_onnx::proto::ModelProto, &Payloads)> {
        self.result.as_ref().map(|r| (&r.proto, &r.payloads))
    }
}
