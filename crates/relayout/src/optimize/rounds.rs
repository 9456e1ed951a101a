//! The passes run on a model, and again on what they made of it, until nothing changes.

use super::report::{count_rewrites, folded};
use crate::error::Error;
use crate::facts;
use crate::give_back::{Failed, GivenBack, TRIES, is_fault};
use crate::model::Model;
use crate::proof::Links;
use crate::report::Report;
use crate::source::{Source, contradicted, impossible_in_file};
use relayout_onnx::export::{ExportOptions, Exported};
use relayout_onnx::import::{ImportError, import_again};
use relayout_passes::pipeline::{Outcome, PipelineOptions, run};
use relayout_target_api::{PassError, Target};
use std::cell::RefCell;
use std::sync::Arc;

/// A second look at the result finds nothing, as a rule; more rounds than this are never needed, and none makes it dearer.
const ROUNDS: usize = 8;

/// What a round made: the graph that it left, what it did, and its messages.
pub(super) struct Made {
    pub(super) source: Source,
    pub(super) outcome: Outcome,
    pub(super) exported: Exported,
    /// What stays as it was, since rewrites of it failed.
    pub(super) given_back: Option<GivenBack>,
}

/// What all rounds came to.
pub(super) struct Rest {
    /// What the last round left.
    pub(super) source: Source,
    /// What it did.
    pub(super) outcome: Outcome,
    /// The messages of the last one that changed anything.
    pub(super) result: Option<Exported>,
    /// What is contradictory about them.
    pub(super) contradiction: Option<String>,
}

/// Rounds of the pipeline on a model and on what they make of it.
pub(super) struct Rounds<'a> {
    pub(super) model: &'a Model,
    pub(super) target: &'a dyn Target,
    pub(super) pipeline: &'a PipelineOptions,
    pub(super) writing: &'a ExportOptions<'a>,
    pub(super) strict: bool,
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

    /// The round of the model. Where nothing was to be done but to write operands in another way, that is undone.
    pub(super) fn first(&self) -> Result<Made, Error> {
        let source = || Source::unchecked(self.model);
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

    /// Of what was made, until nothing changes.
    pub(super) fn rest(&self, mut made: Made, report: &mut Report, links: &mut Option<Links>) -> Result<Rest, Error> {
        let mut result: Option<Exported> = None;
        // What a round starts from is read anyway.
        let contradiction: RefCell<Option<Option<String>>> = RefCell::default();
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
            contradiction.take();
            let again = || {
                let ir = import_again(&file, &exported.payloads).map_err(unread)?;
                let found = || impossible_in_file(&file, &exported.payloads, ir.clone()).into_iter().next();
                contradiction.borrow_mut().get_or_insert_with(found);
                Ok(ir)
            };
            let next = self.round(&|| Source::inlined(&file, &exported.payloads, again), &self.pipeline.again())?;
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
        let (result, known) = if exported.changed { (Some(exported), None) } else { (result, contradiction.take()) };
        let contradiction = known.map_or_else(|| contradicted(self.model, result.as_ref()), Ok)?;
        Ok(Rest { source, outcome, result, contradiction })
    }
}

/// Notes what a round wrote, if it changed anything.
pub(super) fn follow(links: &mut Option<Links>, exported: &Exported) {
    if let (Some(links), Some(written), true) = (links, &exported.written, exported.changed) {
        links.follow(written);
    }
}
