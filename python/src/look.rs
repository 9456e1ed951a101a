//! Looking at models without changing them, and at what there is.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::source::Source;
use crate::worker;
use pyo3::prelude::*;
use relayout::codegen::Isa;
use relayout::ir::graph::{Graph, Op};
use relayout::plan::Ids;
use relayout::targets::{BUILTIN, Block};
use relayout_verify::equipment_of;
use serde_json::json;
use std::path::PathBuf;

/// What the moves of a model cost: as JSON, and for people.
#[pyfunction]
pub(crate) fn audit(py: Python<'_>, source: Source, settings: Settings) -> PyResult<(String, String)> {
    worker::run(py, None, 1, move |reporter| {
        let request = settings.request()?;
        let options = reporter.watched(request.options());
        let audit = relayout::audit(&source.open()?, request.target()?.as_ref(), &options)?;
        Ok((serde_json::to_string(&audit)?, audit.explain().trim_end().to_owned()))
    })
}

/// Why a value has its layout: as JSON, and for people.
#[pyfunction]
pub(crate) fn why(py: Python<'_>, source: Source, settings: Settings, value: String) -> PyResult<(String, String)> {
    worker::run(py, None, 1, move |reporter| {
        let request = settings.request()?;
        let options = reporter.watched(request.options());
        let why = relayout::why(&source.open()?, request.target()?.as_ref(), &options, &value)?;
        Ok((serde_json::to_string(&why)?, why.explain().trim_end().to_owned()))
    })
}

/// What to do with each value and node of a model: as JSON, and the summary of the report. Values are called by their names, nodes by
/// their place in the list of nodes.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, source: Source, settings: Settings) -> PyResult<(String, String)> {
    worker::run(py, None, 1, move |reporter| {
        let request = settings.request()?;
        let options = reporter.watched(request.options());
        let model = source.open()?;
        let graph = &model.ir().graph;
        let (plan, report) = relayout::plan_graph(graph, &ids(graph), request.target()?.as_ref(), &options)?;
        Ok((serde_json::to_string(&plan)?, report.summary()))
    })
}

fn ids(graph: &Graph) -> Ids<String, u32> {
    let mut ids = Ids::new();
    for v in graph.values() {
        ids.value(v, graph.value(v).name.clone());
    }
    for n in graph.nodes() {
        let node = graph.node(n);
        if let (Op::Onnx(_), Some(place)) = (&node.op, node.origin) {
            ids.node(n, place);
        }
    }
    ids
}

/// The built-in targets, as JSON.
#[pyfunction]
pub(crate) fn targets(py: Python<'_>) -> PyResult<String> {
    let about = |name: &&str| -> Result<serde_json::Value, Failure> {
        let target = relayout::target(name)?;
        Ok(json!({
            "name": target.name(), "about": target.about(), "layouts": target.layouts(),
            "dialect": target.dialect(), "costs": target.cost_source(),
        }))
    };
    let list: Result<Vec<_>, Failure> = BUILTIN.iter().map(about).collect();
    list.map(|list| serde_json::Value::Array(list).to_string()).map_err(|failure| failure.raised(py))
}

/// What is chosen for this machine by what settings say of it, as JSON.
#[pyfunction]
pub(crate) fn fitting(py: Python<'_>, settings: Settings) -> PyResult<String> {
    worker::run(py, None, 1, move |_| Ok(serde_json::to_string(&settings.request()?.chosen)?))
}

/// Execution providers whose library is beside that of ONNX Runtime, or in a package of these folders, and whose device is there.
#[pyfunction]
pub(crate) fn providers_here(py: Python<'_>, library: PathBuf, folders: Vec<PathBuf>) -> PyResult<Vec<String>> {
    worker::run(py, None, 1, move |_| Ok(equipment_of(Some((&library, String::new())), &folders).providers))
}

/// What a file says of the host that it was made for: the values of some keys of its metadata.
#[pyfunction]
pub(crate) fn file_facts(py: Python<'_>, source: Source) -> PyResult<Vec<(String, String)>> {
    const KEYS: [&str; 3] = ["relayout.target", "relayout.block", "relayout.version"];
    worker::run(py, None, 1, move |_| {
        let model = source.open()?;
        let found = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), model.metadata(key)?.to_owned())));
        Ok(found.collect())
    })
}

/// Those of some names that are names of open dims of a model.
#[pyfunction]
pub(crate) fn open_dims(py: Python<'_>, source: Source, names: Vec<String>) -> PyResult<Vec<String>> {
    worker::run(py, None, 1, move |_| {
        let model = source.open()?;
        Ok(names.into_iter().filter(|name| model.has_open_dim(name)).collect())
    })
}

/// What this machine is: the channels of a block as ONNX Runtime takes them here, and the instruction sets of the kernels.
#[pyfunction]
pub(crate) fn host() -> (u64, Vec<&'static str>) {
    (Block::of_host().channels(), Isa::available().iter().map(|isa| isa.name()).collect())
}
