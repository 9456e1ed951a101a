//! What a round of the optimizer starts from: the graph of a model, the calls of its own functions written out. A model that
//! contradicts itself is refused.

use crate::error::Error;
use crate::model::Model;
use relayout_ir::graph::Graph;
use relayout_ir::model::Model as IrModel;
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::export::{ExportOptions, Exported, export_with};
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::{ImportError, import_again, impossible};
use relayout_onnx::inline::Inlined;
use relayout_onnx::write::Payloads;
use std::sync::Arc;

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
    ///
    /// # Errors
    /// [`Error::Import`] if the model contradicts itself.
    pub(crate) fn checked(model: &Model) -> Result<Source, Error> {
        refuse_impossible(model)?;
        Source::unchecked(model)
    }

    /// A model as the first round sees it, where it is known not to contradict itself.
    pub(crate) fn unchecked(model: &Model) -> Result<Source, Error> {
        Source::inlined(&model.file, &Payloads::new(), || Ok(model.ir.clone()))
    }

    /// A model as it stands, calls and all.
    pub(crate) fn as_it_stands(model: &Model) -> Source {
        Source { file: Arc::clone(&model.file), inlined: None, ir: model.ir.clone(), notes: Vec::new() }
    }

    /// A file with the calls of its own functions written out. `plain` is its graph as it stands, for files without such calls.
    pub(crate) fn inlined(
        file: &Arc<ModelFile>,
        payloads: &Payloads,
        plain: impl FnOnce() -> Result<IrModel, Error>,
    ) -> Result<Source, Error> {
        let inlined = Inlined::of(file);
        let mut notes = inlined.notes.clone();
        if !inlined.is_empty() {
            // What a caller gives may not fit a function in ways that only show in its place.
            let read = import_again(&inlined.file, payloads).map_err(|why| why.to_string());
            match read.and_then(|ir| impossible_once_typed(ir.clone()).into_iter().next().map_or(Ok(ir), Err)) {
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
    pub(crate) fn export(&self, options: &ExportOptions<'_>) -> Result<Exported, Error> {
        let mut exported = export_with(&self.file, &self.ir, options)?;
        if let Some(inlined) = self.inlined.as_ref().filter(|_| exported.changed) {
            inlined.restore(&mut exported.proto);
        }
        Ok(exported)
    }
}

/// That a model does not contradict itself, as far as types tell.
pub(crate) fn refuse_impossible(model: &Model) -> Result<(), Error> {
    let problems = impossible_in_file(&model.file, &Payloads::new(), model.ir.clone());
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Import { file: model.label(), source: ImportError { problems } })
}

/// What is contradictory about a result. A model may contradict itself and be read, as long as nobody works out what follows; one move
/// less may be enough to see it.
pub(crate) fn contradicted(model: &Model, result: Option<&Exported>) -> Result<Option<String>, Error> {
    let Some(result) = result else { return Ok(None) };
    let file = Arc::new(model.file.with_proto(result.proto.clone()));
    let ir = import_again(&file, &result.payloads)
        .map_err(|source| Error::Import { file: "the result".to_owned(), source })?;
    Ok(impossible_in_file(&file, &result.payloads, ir).into_iter().next())
}

/// Every contradiction in a file, of which this is the graph. What a call makes has the type that the file declares, which readers who look
/// through functions do not rely on: so nothing is wrong that fits once the calls are written out.
pub(crate) fn impossible_in_file(file: &Arc<ModelFile>, payloads: &Payloads, ir: IrModel) -> Vec<String> {
    let mut problems = impossible_once_typed(ir);
    if !problems.is_empty() {
        let inlined = Inlined::of(file);
        let written_out = || import_again(&inlined.file, payloads);
        if !inlined.is_empty() && written_out().is_ok_and(|ir| impossible_once_typed(ir).is_empty()) {
            problems.clear();
        }
    }
    problems
}

/// Contradictions that show once types are known; inference finds them again, and more, in the pipeline.
fn impossible_once_typed(mut ir: IrModel) -> Vec<String> {
    // Problems of inference are the pipeline's to report.
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    impossible(&ir.graph)
}
