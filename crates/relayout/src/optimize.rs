//! `optimize` takes a model and returns a model and a report.

mod checked;
mod gains;
mod report;
mod result;
mod rounds;
mod sessions;
mod write;

use crate::error::Error;
use crate::give_back::{all_given_back, is_fault};
use crate::io::{IoRecord, Wishes, declare, records_of};
use crate::model::Model;
use crate::options::Options;
use crate::proof::Links;
use crate::report::Report;
use crate::sizes::{Sized, check_names};
use crate::source::{Source, refuse_impossible};
use crate::target_metadata::{is_settled, metadata, needs};
use checked::{Asked, checked};
use gains::Gain;
use relayout_ir::graph::Graph;
use relayout_ir::model::Model as IrModel;
use relayout_onnx::export::ExportOptions;
use relayout_passes::decide::MovedEnd;
use relayout_passes::pipeline::{PipelineOptions, run};
use relayout_target_api::Target;
use report::{filled, report_of, tell_of_result};
use result::{Shown, settled};
use rounds::{Made, Rest, Rounds, follow};
use sessions::cheapest;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

pub(crate) use gains::{graph_of_model, on_device};
pub(crate) use report::{report_of_graph, traffic};
pub use result::{Optimized, unchanged};

/// Optimizes a model for a target. The result of each round is optimized again until nothing changes. So optimizing the output
/// changes nothing.
///
/// # Errors
/// [`Error`]; nothing is written by this function.
pub fn optimize(model: &Model, target: &dyn Target, options: &Options) -> Result<Optimized, Error> {
    optimize_beside(model, target, options, None)
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
}

fn optimize_beside(
    model: &Model,
    target: &dyn Target,
    options: &Options,
    path: Option<&Path>,
) -> Result<Optimized, Error> {
    let made = |kept: &BTreeSet<u32>| cheapest(model, target, options, kept);
    Ok(checked(&Asked { model, target, options, path }, &made)?.chosen_as(options))
}

/// Decides about all of a model but nodes of these places, which stay as they are.
fn decided(model: &Model, target: &dyn Target, options: &Options, kept: &BTreeSet<u32>) -> Result<Optimized, Error> {
    let Sized { options, records: sizes } = &Sized::new(model, options)?;
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
        pipeline.ends = wishes.resolve(&Source::unchecked(model)?.typed(), target, &records)?;
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
    let named = || Source::unchecked(model).map(|source| Links::new(&model.ir.graph, &source.typed()));
    let mut links = options.proof.then(named).transpose()?;
    follow(&mut links, &exported);
    declare(&mut exported, wishes, &first.ends, &report.io, &metadata);
    let ends = first_ends(&pipeline, std::mem::take(&mut first.ends));
    let first = Made { source, outcome: first, exported, given_back: None };
    let rest = match rounds.rest(first, &mut report, &mut links) {
        Err(e) if !options.strict && is_fault(&e) => return Ok(unchanged(model, target, all_given_back(&e))),
        rest => rest?,
    };
    if let Some(why) = rest.contradiction {
        let kept = format!("it contradicts itself, which shows where a move is gone: {why}");
        return Ok(Optimized { shown, ..unchanged(model, target, kept) });
    }
    let Rest { source, outcome: last, mut result, .. } = rest;
    let gain = Gain::of(model, result.as_ref(), target, &options.dims)?;
    if wishes.is_empty() && gain.as_ref().is_some_and(Gain::is_nothing) {
        let kept = unchanged(model, target, "the runtime leaves no more Transposes of it on the device");
        return Ok(Optimized { shown, ..kept });
    }
    report.device = gain.map(|gain| gain.record(&metadata));
    report.remarks.extend(result.as_mut().map(|result| needs(&mut result.proto, target)).unwrap_or_default());
    tell_of_result(&mut report, model, result.as_ref(), last, filled);
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

/// Optimizes a graph that does not come from a file. The result has layouts and Relayouts; values keep their logical shapes.
///
/// # Errors
/// [`Error::UnknownDim`], [`Error::Io`], [`Error::Pass`].
pub fn optimize_graph(graph: Graph, target: &dyn Target, options: &Options) -> Result<(Graph, Report), Error> {
    let mut model = IrModel { graph, ..IrModel::default() };
    // Who takes another graph is not told where the axes of its own ops lie.
    model.graph.forget_letters();
    let mut pipeline = options.pipeline(target)?;
    // That is for those who load a file.
    pipeline.keeps_spelling = true;
    check_names(&model.graph, options.dims.keys())?;
    pipeline.ends = options.wishes().resolve(&model.graph, target, &[])?;
    let outcome = run(&mut model, target, &pipeline)?;
    Ok((model.graph, report_of_graph(target, outcome, options)?))
}
