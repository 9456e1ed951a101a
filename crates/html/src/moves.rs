//! The moves of a page: those of the model with what becomes of them, and those that are left.

use crate::graph::{Flat, each};
use crate::page::{Move, WayOut};
use relayout::audit::{Audit, Fate};
use relayout::ir::graph::Graph;
use relayout::report::{MoveRecord, Report};
use relayout::target::moves::moved;
use std::collections::{HashMap, HashSet};

/// The moves of a model as an audit lists them. Nodes that make them say so, by the place of the move among those of this call.
pub(crate) fn of_audit(audit: &Audit, graph: usize, flat: &mut Flat) -> Vec<Move> {
    let mut taken = HashSet::new();
    let mut moves = Vec::new();
    for one in &audit.list {
        let node = transpose_of(flat, &one.path, &one.record.value, &mut taken);
        if let Some(part) = node.and_then(|n| flat.part.nodes.get_mut(n)) {
            part.moved = Some(moves.len() as u32);
        }
        moves.push(of_record(&one.record, graph, node, &one.path, one.fate));
    }
    moves
}

/// The next Transpose of a value for which no move stands yet.
fn transpose_of(flat: &Flat, path: &str, value: &str, taken: &mut HashSet<usize>) -> Option<usize> {
    let found = flat.transposes(path, value).iter().copied().find(|n| !taken.contains(n))?;
    taken.insert(found);
    Some(found)
}

/// The moves that a report has left, in the graph that the last pass left.
pub(crate) fn of_report(report: &Report, graph: &Graph, number: usize, flat: &mut Flat, moves: &mut Vec<Move>) {
    let mut nodes: HashMap<(String, String, String), Vec<String>> = HashMap::new();
    each(graph, "", &mut |graph, path| {
        for n in graph.order().unwrap_or_else(|_| graph.nodes().collect()) {
            if let Some(m) = moved(graph, n) {
                let (source, result) = (graph.value(m.source), graph.value(m.result));
                let key = (path.to_owned(), source.name.clone(), result.layout.to_string());
                nodes.entry(key).or_default().push(result.name.clone());
            }
        }
    });
    for record in &report.graphs {
        for m in &record.moves {
            let results = nodes.get_mut(&(record.path.clone(), m.value.clone(), m.to.clone()));
            let result = results.filter(|names| !names.is_empty()).map(|names| names.remove(0));
            let node = result.and_then(|result| flat.maker(&record.path, &result));
            if let Some(part) = node.and_then(|n| flat.part.nodes.get_mut(n)) {
                part.moved = Some(moves.len() as u32);
            }
            moves.push(of_record(m, number, node, &record.path, Fate::Stays));
        }
    }
}

fn of_record(m: &MoveRecord, graph: usize, node: Option<usize>, path: &str, fate: Fate) -> Move {
    let ways = m.ways.iter().map(|way| WayOut {
        what: way.what.clone(),
        missing: way.missing.clone(),
        more_ns: way.more_ns,
        more_bytes: way.more_bytes,
    });
    Move {
        graph,
        node,
        path: path.to_owned(),
        value: m.value.clone(),
        producer: m.producer.clone(),
        readers: m.readers.clone(),
        from: m.from.clone(),
        to: m.to.clone(),
        bytes: m.bytes,
        cost_ns: m.cost_ns,
        fate,
        why: m.why.clone(),
        ways: ways.collect(),
    }
}
