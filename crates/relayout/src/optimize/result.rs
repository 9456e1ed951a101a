//! What the optimizer made of a model.

use super::report::{lost_fields, report_of};
use crate::io::IoRecord;
use crate::model::Model;
use crate::options::Options;
use crate::proof::{Links, Proof};
use crate::report::Report;
use crate::source::Source;
use relayout_ir::graph::Graph;
use relayout_onnx::export::Exported;
use relayout_onnx::file::ModelFile;
use relayout_onnx::write::StagedModel;
use relayout_passes::decide::MovedEnd;
use relayout_passes::pipeline::Outcome;
use relayout_target_api::Target;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What [`optimize`](crate::optimize) made. It keeps the file of the model, and needs nothing else of it.
#[derive(Debug)]
pub struct Optimized {
    pub(crate) input: Arc<ModelFile>,
    pub(crate) result: Option<Exported>,
    pub(crate) report: Report,
    /// Inputs and outputs that lie otherwise than in the model, as was asked for.
    pub(crate) ends: Vec<MovedEnd>,
    pub(super) shown: Shown,
    /// What the last round left.
    pub(super) source: Source,
    /// Of the target's dialect: whether moves are calls, and whether there is anything in it but standard ops and calls.
    pub(super) calls_functions: bool,
    pub(super) bundles: bool,
    pub(super) links: Option<Links>,
    /// The result as it was written beside its place, until it is put there.
    pub(super) staged: Mutex<Option<StagedModel>>,
}

/// Graphs of the first round that the options ask for.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// After the pass that is to be printed.
    pub(super) printed: Option<Graph>,
    /// After the last pass.
    pub(super) decided: Option<Graph>,
}

/// A model that is left as it is, because it was made for this target.
pub(super) fn settled(model: &Model, target: &dyn Target, records: Vec<IoRecord>) -> Optimized {
    let mut report = report_of(model, target, &Outcome::default());
    report.settled = true;
    report.io = records;
    report.notes.extend(lost_fields(model, false));
    let source = Source::as_it_stands(model);
    let can = target.capabilities();
    let (calls_functions, bundles) = (can.calls_functions, can.bundles);
    let input = Arc::clone(&model.file);
    let (shown, ends, result, links, staged) = (Shown::default(), Vec::new(), None, None, Mutex::default());
    Optimized { input, result, report, ends, shown, source, calls_functions, bundles, links, staged }
}

/// The model as it is, as a result: for callers who found that no result serves them better. The report says `why`.
pub fn unchanged(model: &Model, target: &dyn Target, why: impl Into<String>) -> Optimized {
    let mut kept = settled(model, target, Vec::new());
    kept.report.settled = false;
    kept.report.kept = Some(why.into());
    kept
}

impl Optimized {
    /// What was done.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The same result, whose report says what was chosen for this machine as these options have it. [`optimize`](crate::optimize) does
    /// that by itself.
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
}
