//! Pages of what the library answers.

use crate::graph::{Drawn, Flat, Layouts, Opaque, Whys, by_value, compare, flat, layouts};
use crate::moves::{of_audit, of_report};
use crate::page::{Change, Figure, Measured, Move, PAGE_SCHEMA, Page, PageKind, Unit};
use crate::strings::Strings;
use relayout::ir::graph::Graph;
use relayout::ir::op::infer::infer_graph;
use relayout::report::GraphRecord;
use relayout::target::hints::{Hints, Size};
use relayout::units::time;
use relayout::why::{Explained, Why, why_all};
use relayout::{Audit, Error, Model, Optimized, Options, Report, Target, audit};
use std::collections::BTreeMap;

/// For how many values a page says what each of their layouts would cost: those that are moved first, then the largest.
const PRICED_VALUES: usize = 120;
/// For how many values a page says which layouts they could have.
const EXPLAINED_VALUES: usize = 1500;

/// A page about a model and what was made of it.
///
/// The options are those of the call of [`optimize`](relayout::optimize), with [`Options::keep_decided`]; the report has prices where
/// [`Options::price_moves`] asked for them. `measured` is shown among the figures.
///
/// # Errors
/// As of [`optimize`](relayout::optimize): the model is audited, and decided about once more.
pub fn optimized_page(
    kind: PageKind,
    name: &str,
    model: &Model,
    target: &dyn Target,
    options: &Options,
    optimized: &Optimized,
    measured: Option<&Measured>,
) -> Result<Page, Error> {
    let report = optimized.report();
    let before = inferred(model);
    let mut sizes = options.dims.clone();
    for (name, &size) in &report.hints {
        sizes.entry(name.clone()).or_insert(Size::of(size));
    }
    let hints = Hints::new(&sizes, &before);
    if report.settled {
        return Ok(settled_page(kind, name, &before, &hints, report));
    }
    let audited = audit(model, target, options)?;
    let whys = explained(model, target, options)?;
    let known = by_value(&whys);
    let opaque = opaque_of(report);
    let drawn = Drawn { hints: &hints, layouts: Layouts::new(), whys: &known, opaque: &opaque };
    let mut strings = Strings::default();
    let mut a = flat("Before", &before, &drawn, &mut strings);
    let mut moves = of_audit(&audited, 0, &mut a);
    let mut graphs = vec![];
    if report.changed {
        let layouts = optimized.decided().map(layouts).unwrap_or_default();
        let after = Drawn { hints: &hints, layouts, whys: &known, opaque: &opaque };
        let mut b = flat("After", optimized.graph(), &after, &mut strings);
        compare(&mut a, &mut b);
        of_report(report, optimized.graph(), 1, &mut b, &mut moves);
        graphs.push(b);
    } else {
        // The moves of the file are those of the report, which knows the ways out.
        moves.clear();
        a.part.nodes.iter_mut().for_each(|node| node.moved = None);
        of_report(report, &before, 0, &mut a, &mut moves);
        "The model, unchanged".clone_into(&mut a.part.title);
    }
    graphs.insert(0, a);
    let mut page = page(kind, name, report.line(), graphs, moves, whys, strings);
    page.target.clone_from(&report.target);
    page.figures = figures(report, &audited, measured);
    page.facts = report.explain().lines().skip(1).filter(|line| is_fact(line)).map(str::to_owned).collect();
    Ok(page)
}

/// A page about the moves of a model as it is, or of two models side by side.
///
/// # Errors
/// As of [`audit`](mod@relayout::audit), which each model was audited with before.
pub fn audit_page(target: &dyn Target, options: &Options, audited: &[(&str, &Model, &Audit)]) -> Result<Page, Error> {
    let mut strings = Strings::default();
    let (mut graphs, mut moves, mut whys) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (name, model, audit)) in audited.iter().enumerate().take(2) {
        let graph = inferred(model);
        let hints = Hints::new(&options.dims, &graph);
        let mut known = Whys::new();
        if number == 0 {
            whys = explained(model, target, options)?;
            known = by_value(&whys);
        }
        let drawn = Drawn { hints: &hints, layouts: Layouts::new(), whys: &known, opaque: &Opaque::new() };
        let mut made = flat(name, &graph, &drawn, &mut strings);
        moves.extend(of_audit(audit, number, &mut made));
        for (at, m) in moves.iter().enumerate().filter(|(_, m)| m.graph == number) {
            if let Some(node) = m.node.and_then(|n| made.part.nodes.get_mut(n)) {
                node.moved = Some(at as u32);
            }
        }
        graphs.push(made);
    }
    if let [a, b] = &mut graphs[..] {
        compare(a, b);
    }
    let names: Vec<&str> = audited.iter().map(|(name, ..)| *name).collect();
    let audits: Vec<&Audit> = audited.iter().map(|(.., audit)| *audit).collect();
    let summary = audits.first().map_or_else(String::new, |audit| said_of(audit));
    let mut page = page(PageKind::Audit, &names.join(" and "), summary, graphs, moves, whys, strings);
    target.name().clone_into(&mut page.target);
    page.figures = audit_figures(&audits);
    let notes = audits.iter().flat_map(|audit| &audit.notes);
    page.facts = notes.map(|note| format!("note: {note}")).chain([costs(target.cost_source())]).collect();
    Ok(page)
}

/// A page about what changed between two models. `changes` is the list of it.
pub fn difference_page(names: [&str; 2], models: [&Model; 2], summary: &str, changes: Vec<Change>) -> Page {
    let mut strings = Strings::default();
    let known = Whys::new();
    let mut part = |title: &str, model: &Model| {
        let graph = inferred(model);
        let hints = Hints::new(&BTreeMap::new(), &graph);
        let drawn = Drawn { hints: &hints, layouts: Layouts::new(), whys: &known, opaque: &Opaque::new() };
        flat(title, &graph, &drawn, &mut strings)
    };
    let [mut a, mut b] = [part(names[0], models[0]), part(names[1], models[1])];
    compare(&mut a, &mut b);
    let nodes = |of: &Flat| of.part.nodes.len() as u64;
    let counted = |how: &str| changes.iter().filter(|change| change.how == how).count() as u64;
    let figures = vec![
        Figure::new("Nodes", Unit::Count, nodes(&a), nodes(&b), "inputs and bodies included, constants not"),
        Figure::new("Only in the first", Unit::Count, counted("removed"), None, "nodes, constants, inputs and outputs"),
        Figure::new("Only in the second", Unit::Count, counted("added"), None, "the same"),
        Figure::new("In both, not alike", Unit::Count, counted("changed"), None, "the same"),
    ];
    let mut page = page(PageKind::Diff, &names.join(" and "), summary.to_owned(), vec![a, b], vec![], vec![], strings);
    page.figures = figures;
    page.changes = changes;
    page
}

/// A model that was made for the target before, about which nothing was decided.
fn settled_page(kind: PageKind, name: &str, graph: &Graph, hints: &Hints, report: &Report) -> Page {
    let mut strings = Strings::default();
    let drawn = Drawn { hints, layouts: Layouts::new(), whys: &Whys::new(), opaque: &opaque_of(report) };
    let part = flat("The model, unchanged", graph, &drawn, &mut strings);
    let mut page = page(kind, name, report.line(), vec![part], vec![], vec![], strings);
    page.target.clone_from(&report.target);
    page.facts = report.notes.iter().map(|note| format!("note: {note}")).collect();
    page
}

fn page(
    kind: PageKind,
    name: &str,
    summary: String,
    graphs: Vec<Flat>,
    moves: Vec<Move>,
    whys: Vec<(String, Why)>,
    strings: Strings,
) -> Page {
    Page {
        schema: PAGE_SCHEMA,
        kind,
        name: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: String::new(),
        summary,
        figures: Vec::new(),
        facts: Vec::new(),
        moves,
        changes: Vec::new(),
        graphs: graphs.into_iter().map(|flat| flat.part).collect(),
        whys: whys.into_iter().map(|(_, why)| why).collect(),
        strings: strings.into_list(),
    }
}

/// The values that could lie in several layouts, as many as a page has room for.
fn explained(model: &Model, target: &dyn Target, options: &Options) -> Result<Vec<(String, Why)>, Error> {
    let Explained { mut values, .. } = why_all(model, target, options, PRICED_VALUES)?;
    values.truncate(EXPLAINED_VALUES);
    Ok(values)
}

/// Why no layout passes through nodes.
fn opaque_of(report: &Report) -> Opaque {
    let of = |record: &GraphRecord| -> Vec<_> {
        record.opaque.iter().map(|o| ((record.path.clone(), o.node.clone()), o.why.clone())).collect()
    };
    report.graphs.iter().flat_map(of).collect()
}

/// The graph of the file with types. What can't be typed is reported elsewhere.
fn inferred(model: &Model) -> Graph {
    let mut ir = model.ir().clone();
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    ir.graph
}

/// Lines of an explanation that are not about single moves, which the page lists.
fn is_fact(line: &str) -> bool {
    !line.starts_with(' ') && !line.starts_with("left")
}

fn costs(source: &str) -> String {
    format!("costs: {source}")
}

fn figures(report: &Report, audit: &Audit, measured: Option<&Measured>) -> Vec<Figure> {
    let mut figures = vec![
        Figure::new(
            "Moves",
            Unit::Count,
            report.before.nodes as u64,
            report.after.nodes as u64,
            "nodes that move data",
        ),
        Figure::new(
            "Bytes moved",
            Unit::Bytes,
            report.before.bytes,
            report.after.bytes,
            "written by moves in each run",
        ),
    ];
    let note = format!(
        "the layouts alone, at the costs of target `{}`; no decision can reach less than {}",
        report.target,
        time(audit.floor_ns)
    );
    figures.push(Figure::new("Predicted time", Unit::Ns, audit.predicted_ns, audit.best_ns, note));
    if let Some(m) = measured {
        figures.push(Figure::new("Measured time", Unit::Ns, m.before_ns, m.after_ns, &m.how));
    }
    figures
}

fn audit_figures(audits: &[&Audit]) -> Vec<Figure> {
    let figure = |name: &str, unit: Unit, of: &dyn Fn(&Audit) -> Option<u64>, note: &str| {
        let mut values = audits.iter().map(|audit| of(audit));
        Figure::new(name, unit, values.next().flatten(), values.next().flatten(), note)
    };
    vec![
        figure("Moves", Unit::Count, &|a| Some(a.moves.nodes as u64), "nodes that move data"),
        figure("Bytes moved", Unit::Bytes, &|a| Some(a.moves.bytes), "written by moves in each run"),
        figure("Predicted time", Unit::Ns, &|a| a.predicted_ns, "moves, and nodes that could run otherwise"),
        figure("Proven floor", Unit::Ns, &|a| Some(a.floor_ns), "no decision about layouts costs less"),
    ]
}

fn said_of(audit: &Audit) -> String {
    let (moves, left) = (audit.moves.nodes, audit.optimized.nodes);
    let excess = match audit.excess_percent() {
        Some(percent) if percent.is_finite() && percent > 0.0 => format!("{percent:.1} % above the proven floor"),
        Some(percent) if percent <= 0.0 => "at the proven floor".to_owned(),
        _ => "with no bound to hold it against".to_owned(),
    };
    format!("{moves} moves, {excess}; `optimize` would leave {left}")
}
