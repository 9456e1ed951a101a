//! What the tests of the optimizer share: the runtime, one run of `optimize`, and the judgement of its result.
//!
//! The runtime is the one that `ORT_DYLIB_PATH` names, else the one in the project folder `.relayout/venv`. Without one the
//! tests fail and say how to get it; they are never skipped.

#![allow(dead_code, reason = "each test file uses its part")]

mod runtime;
pub(crate) mod said;

pub(crate) use runtime::runtime;

use prost::Message;
use relayout::ir::graph::Graph;
use relayout::{Model, Options, Report, Target, optimize, target};
use relayout_onnx::proto::ModelProto;
use relayout_verify::{Comparison, Inputs, ModelSource, Tensor, Tolerance, verify, verify_on};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Ops whose rounding depends on the order of the elements, or on the op that is written for them.
pub(crate) const SUMS: &[&str] = &[
    "ReduceMean",
    "ReduceSum",
    "Softmax",
    "LogSoftmax",
    "CumSum",
    "LpNormalization",
    "MatMul",
    "Conv",
    "BatchNormalization",
];

/// How many samples a random test draws: so many unless the environment says otherwise.
pub(crate) fn samples(default: u64) -> u64 {
    number("RELAYOUT_RANDOM_CASES", default)
}

/// Whether tests take all cases of long lists, and not every second or third.
pub(crate) fn all_cases() -> bool {
    std::env::var("RELAYOUT_CASES").is_ok_and(|which| which == "all")
}

/// All cases of a list, or every `step`th unless [`all_cases`]; `turn` says from which on.
pub(crate) fn thinned<T: Clone>(list: &[T], step: usize, turn: usize) -> Vec<T> {
    let step = if all_cases() { 1 } else { step };
    list.iter().skip(turn % step).step_by(step).cloned().collect()
}

/// A number that the environment may set.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, and should be a number"))
}

/// A folder of the repository's test data.
pub(crate) fn testdata(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder)
}

/// The model files of a folder of the test data, by name.
pub(crate) fn model_files(folder: &str) -> Vec<PathBuf> {
    let dir = testdata(folder);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    files.sort();
    files
}

/// The name of a model: its file's, without the extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What one run of `optimize` made.
pub(crate) struct Outcome {
    /// The result as a file.
    pub(crate) bytes: Vec<u8>,
    /// The report.
    pub(crate) report: Report,
    /// The graph after the last pass, as text.
    pub(crate) text: String,
    /// That graph.
    pub(crate) graph: Graph,
}

/// Optimizes a model for target `onnx`. `dims` are sizes of symbolic dims.
pub(crate) fn optimized(bytes: &[u8], dims: &BTreeMap<String, i64>) -> Result<Outcome, String> {
    let target = target("onnx").expect("target `onnx` is built in");
    optimized_for(target.as_ref(), bytes, dims)
}

/// Optimizes a model for a target. `dims` are sizes of symbolic dims.
pub(crate) fn optimized_for(
    target: &dyn Target,
    bytes: &[u8],
    dims: &BTreeMap<String, i64>,
) -> Result<Outcome, String> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).map_err(|e| format!("it does not open: {e}"))?;
    let options = dims
        .iter()
        .fold(Options::default(), |options, (name, &size)| options.dim(name.as_str(), relayout::Size::of(size)))
        .dims_of(&model)
        .keep_decided()
        .strict();
    let result = optimize(&model, target, &options).map_err(|e| format!("optimize fails: {e}"))?;
    let bytes = result.to_bytes().map_err(|e| format!("the result can't be written: {e}"))?;
    if let Some(graph) = result.decided() {
        said::says_what_the_graph_says(graph, &bytes)?;
    }
    Ok(Outcome {
        bytes,
        report: result.report().clone(),
        text: result.graph().to_string(),
        graph: result.graph().clone(),
    })
}

/// Runs both models on random inputs, symbolic dims at these sizes.
pub(crate) fn compared(a: &[u8], b: &[u8], dims: &BTreeMap<String, i64>) -> Result<Comparison, String> {
    let inputs = Inputs::Random { seed: 1, dims: dims.clone() };
    let options = relayout_verify::Options::default();
    verify(runtime(), ModelSource::Bytes(a), ModelSource::Bytes(b), &inputs, &options).map_err(|e| e.to_string())
}

/// Runs both models on these inputs.
pub(crate) fn compared_on(a: &[u8], b: &[u8], inputs: &[Tensor]) -> Result<Comparison, String> {
    let options = relayout_verify::Options::default();
    verify_on(runtime(), ModelSource::Bytes(a), ModelSource::Bytes(b), inputs, &options).map_err(|e| e.to_string())
}

/// Whether the results agree: equal, or near where `tolerance` is given. A difference of rounding is also let pass if it is
/// tiny beside 1: what cancels to nearly nothing has no digits to compare.
pub(crate) fn judged(comparison: &Comparison, tolerance: Option<Tolerance>) -> Result<(), String> {
    let tiny = comparison.largest_absolute < 1e-5;
    let fits = match tolerance {
        None => comparison.exact,
        Some(t) => comparison.holds(&t) || (tiny && comparison.holds(&Tolerance::new(1e9, 1e9))),
    };
    if fits { Ok(()) } else { Err(format!("the results differ: {comparison}")) }
}

/// Optimizing twice gives the same bytes, and optimizing the result changes nothing.
pub(crate) fn settled(bytes: &[u8], outcome: &Outcome, dims: &BTreeMap<String, i64>) -> Result<(), String> {
    if optimized(bytes, dims)?.bytes != outcome.bytes {
        return Err("a second run on the same input gives other bytes".to_owned());
    }
    let again = optimized(&outcome.bytes, dims).map_err(|e| format!("the result is not optimized again: {e}"))?;
    if again.bytes != outcome.bytes {
        return Err(format!(
            "the result is changed when it is optimized again: {}\n{}",
            again.report.summary(),
            printed(&again.bytes)
        ));
    }
    Ok(())
}

/// Names say nothing: a result whose nodes have other names and that does not say where it comes from is left as it is too.
pub(crate) fn settled_under_other_names(result: &[u8], dims: &BTreeMap<String, i64>) -> Result<(), String> {
    let mut model = ModelProto::decode(result).map_err(|e| e.to_string())?;
    model.metadata_props.clear();
    let nodes = model.graph.iter_mut().flat_map(|g| &mut g.node);
    for (i, node) in nodes.enumerate() {
        node.name = Some(format!("renamed_{i}"));
        node.metadata_props.clear();
    }
    let renamed = model.encode_to_vec();
    let again = optimized(&renamed, dims)?;
    if again.bytes == renamed { Ok(()) } else { Err("the result is changed when its nodes are renamed".to_owned()) }
}

/// No more bytes are moved than before.
pub(crate) fn not_worse(report: &Report) -> Result<(), String> {
    let (before, after) = (report.before, report.after);
    if after.bytes <= before.bytes {
        return Ok(());
    }
    Err(format!(
        "moved bytes rise from {} in {} nodes to {} in {}",
        before.bytes, before.nodes, after.bytes, after.nodes
    ))
}

/// The result declares nothing wrongly that the input did not.
pub(crate) fn says_no_more(outcome: &Outcome) -> Result<(), String> {
    let again = optimized(&outcome.bytes, &BTreeMap::new())?;
    match again.report.notes.iter().find(|note| !outcome.report.notes.contains(note)) {
        Some(note) => Err(format!("the result declares what is not so: {note}")),
        None => Ok(()),
    }
}

/// A model file as text.
pub(crate) fn printed(bytes: &[u8]) -> String {
    Model::from_bytes(bytes.to_vec().into(), None).map_or_else(|e| e.to_string(), |m| m.print())
}

/// Constants of the main graph that nobody reads, by name.
pub(crate) fn unread(bytes: &[u8]) -> Vec<String> {
    let Ok(model) = Model::from_bytes(bytes.to_vec().into(), None) else { return Vec::new() };
    let graph = &model.ir().graph;
    let constants = graph.values().filter(|&v| graph.constant(v).is_some());
    let unread = constants.filter(|&v| graph.uses(v).is_empty() && !graph.is_output(v));
    unread.map(|v| graph.value(v).name.clone()).collect()
}

/// Symbolic dims of the cases are small and unequal, so that an exchange of two shows.
pub(crate) fn case_dims(text: &str) -> BTreeMap<String, i64> {
    let sizes = [("N", 2), ("C", 6), ("H", 4), ("W", 5), ("A", 2), ("B", 3), ("K", 1)];
    let said = |name: &str| text.lines().filter(|l| l.ends_with("= input")).any(|l| has_dim(l, name));
    sizes.into_iter().filter(|(name, _)| said(name)).map(|(name, size)| (name.to_owned(), size)).collect()
}

fn has_dim(line: &str, name: &str) -> bool {
    let shape = line.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(shape, _)| shape);
    shape.split(',').any(|dim| dim == name)
}
