//! The report of a run, made of what its passes recorded.

use crate::annotations::left_out;
use crate::error::Error;
use crate::model::Model;
use crate::options::Options;
use crate::passes::rules;
use crate::report::{FileSize, Report, Rules, SCHEMA};
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, ValueId};
use relayout_onnx::export::Exported;
use relayout_onnx::write::{WriteOptions, bytes_in_all};
use relayout_passes::pipeline::Outcome;
use relayout_passes::report::{GraphRecord, Traffic};
use relayout_target_api::Target;
use std::collections::BTreeMap;

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

pub(super) fn report_of(model: &Model, target: &dyn Target, outcome: &Outcome) -> Report {
    let mut report = skeleton(target, outcome);
    report.notes.extend(model.notes.iter().cloned());
    report.remarks = target.remarks(&model.ir.graph);
    report.notes.extend(model.newer_opset());
    report
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
        device: None,
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

/// Puts into the report what a result comes to.
pub(super) fn tell_of_result(
    report: &mut Report,
    model: &Model,
    result: Option<&Exported>,
    last: Outcome,
    filled: u64,
) {
    report.changed = result.is_some();
    report.file = result.and_then(|result| file_size(model, result, filled));
    report.after = traffic(&last, GraphRecord::after);
    report.graphs = last.graphs;
    report.notes.extend(lost_fields(model, report.changed));
    report.notes.extend(result.iter().flat_map(|result| left_out(&model.file.proto, &result.proto)));
}

pub(super) fn lost_fields(model: &Model, changed: bool) -> Option<String> {
    let count = model.file.unknown_count;
    let first = model.file.unknown_fields.first()?;
    let fate = if changed { "were dropped" } else { "were kept" };
    Some(format!("{count} fields that this version's schema does not know {fate}, the first at {first}"))
}

pub(crate) fn traffic(outcome: &Outcome, of: impl Fn(&GraphRecord) -> Traffic) -> Traffic {
    outcome.graphs.iter().map(of).fold(Traffic::default(), Traffic::plus)
}

pub(super) fn folded(outcome: &Outcome) -> usize {
    outcome.graphs.iter().map(|g| g.folded).sum()
}

/// Adds what rewrites took away or say otherwise.
pub(super) fn count_rewrites(sum: &mut BTreeMap<String, usize>, outcome: &Outcome) {
    for (name, nodes) in outcome.graphs.iter().flat_map(|g| &g.rewrites) {
        *sum.entry(name.clone()).or_default() += nodes;
    }
}

/// How large the files are; `None` where data of the model is wrong, which is said when it is written.
fn file_size(model: &Model, result: &Exported, filled: u64) -> Option<FileSize> {
    let options = WriteOptions::for_input(&model.file);
    let before = bytes_in_all(&model.file.proto, &options).ok()?;
    let after = bytes_in_all(&result.proto, &options.payloads(&result.payloads)).ok()?;
    Some(FileSize::new(before, after, filled))
}

/// Bytes of zeros that fill axes of constants up to whole blocks, bodies included.
pub(super) fn filled(graph: &Graph) -> u64 {
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
