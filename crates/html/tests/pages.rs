//! What pages hold, as text: figures, moves, and each node with what became of it.

use relayout::{Model, Options, audit, optimize, target};
use relayout_html::{Change, GraphPart, Measured, Page, PageKind, audit_page, difference_page, optimized_page};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn page_of(model: &Model, target_name: &str, measured: Option<&Measured>) -> Page {
    let target = target(target_name).unwrap();
    let options = Options::default().price_moves(32).keep_decided();
    let optimized = optimize(model, target.as_ref(), &options).unwrap();
    optimized_page(PageKind::Optimize, "m.onnx", model, target.as_ref(), &options, &optimized, measured).unwrap()
}

/// A page as text, names in place of numbers.
fn told(page: &Page) -> String {
    let mut text = format!("{}\n", page.summary);
    for f in &page.figures {
        writeln!(text, "{}: {:?} -> {:?} ({:?})", f.name, f.before, f.after, f.unit).unwrap();
    }
    for m in &page.moves {
        let (from, to, fate, ways) = (&m.from, &m.to, m.fate, m.ways.len());
        let node = m.node.map(|n| name(page, page.graphs[m.graph].nodes[n].name));
        writeln!(
            text,
            "move {} `{}` {from} -> {to}, {} B, {fate:?}, {ways} ways, by {node:?}",
            m.graph, m.value, m.bytes
        )
        .unwrap();
    }
    for graph in &page.graphs {
        writeln!(text, "{}", graph.title).unwrap();
        graph_told(page, graph, &mut text);
    }
    text
}

fn graph_told(page: &Page, graph: &GraphPart, text: &mut String) {
    for node in &graph.nodes {
        let value = |v: &Option<u32>| {
            let value = &graph.values[(*v)? as usize];
            let layout = value.layout.map_or("?", |l| graph.layouts[l as usize].0.as_str());
            Some(format!("{}@{layout}", name(page, value.name)))
        };
        let list = |slots: &[Option<u32>]| slots.iter().filter_map(value).collect::<Vec<_>>().join(", ");
        let (op, state) = (name(page, node.op), node.state);
        let mark = if node.moved.is_some() { ", moves" } else { "" };
        writeln!(text, "  {}{op}({}) -> {} {state:?}{mark}", name(page, node.path), list(&node.ins), list(&node.outs))
            .unwrap();
    }
}

fn name(page: &Page, at: u32) -> &str {
    &page.strings[at as usize]
}

#[test]
fn a_result_is_told_with_its_moves_and_both_graphs() {
    let model = Model::open(path("cli/conv.onnx")).unwrap();
    insta::assert_snapshot!(told(&page_of(&model, "onnx", Some(&Measured::new(7, 5, "a clock")))));
}

#[test]
fn a_target_with_blocks_shows_its_layouts() {
    let model = Model::open(path("cli/conv.onnx")).unwrap();
    insta::assert_snapshot!(told(&page_of(&model, "nhwc", None)));
}

#[test]
fn bodies_are_shown_with_their_place() {
    let model = Model::open(path("cli/branches.onnx")).unwrap();
    insta::assert_snapshot!(told(&page_of(&model, "onnx", None)));
}

#[test]
fn every_move_of_the_report_has_its_node_and_the_largest_values_have_prices() {
    let model = Model::open(path("demo/tf_unet.onnx")).unwrap();
    let page = page_of(&model, "onnx", None);
    let (before, after): (Vec<_>, Vec<_>) = page.moves.iter().partition(|m| m.graph == 0);
    assert_eq!((before.len(), after.len()), (36, 2));
    for (at, m) in page.moves.iter().enumerate() {
        let node = &page.graphs[m.graph].nodes[m.node.expect("it is a node")];
        assert_eq!((node.moved, name(&page, node.op)), (Some(at as u32), "Transpose"));
    }
    assert!(after.iter().all(|m| !m.ways.is_empty() && m.cost_ns.is_some()), "{after:?}");
    let priced = page.whys.iter().filter(|why| why.alternatives.iter().any(|a| a.only_ns.is_some())).count();
    assert!((1..=120).contains(&priced), "{priced} of {}", page.whys.len());
    let explained = page.graphs[1].values.iter().filter_map(|v| v.why).max();
    assert!(explained.is_some_and(|why| (why as usize) < page.whys.len()));
    // Values of the result that lie otherwise than their axes are declared have the layout that was decided.
    let layouts: Vec<&str> = page.graphs[1].layouts.iter().map(|(text, _)| text.as_str()).collect();
    assert!(layouts.contains(&"NWCH"), "{layouts:?}");
}

#[test]
fn a_model_in_which_nothing_changes_is_shown_once() {
    let model = Model::open(path("cli/conv.onnx")).unwrap();
    let target = target("onnx").unwrap();
    let optimized = optimize(&model, target.as_ref(), &Options::default()).unwrap();
    let again = Model::from_bytes(optimized.to_bytes().unwrap().into(), None).unwrap();
    let page = page_of(&again, "onnx", None);
    assert_eq!(page.graphs.len(), 1);
    assert_eq!(page.moves.len(), optimized.report().after.nodes);
    assert!(page.moves.iter().all(|m| m.node.is_some()), "{:?}", page.moves);
}

#[test]
fn audits_stand_side_by_side() {
    let model = Model::open(path("cli/conv.onnx")).unwrap();
    let target = target("onnx").unwrap();
    let optimized = optimize(&model, target.as_ref(), &Options::default()).unwrap();
    let result = Model::from_bytes(optimized.to_bytes().unwrap().into(), None).unwrap();
    let options = Options::default();
    let audits = [&model, &result].map(|model| audit(model, target.as_ref(), &options).unwrap());
    let pair = [("a.onnx", &model, &audits[0]), ("b.onnx", &result, &audits[1])];
    insta::assert_snapshot!(told(&audit_page(target.as_ref(), &options, &pair).unwrap()));
}

#[test]
fn hostile_names_stay_names() {
    let model = Model::open(path("cli/conv.onnx")).unwrap();
    let hostile = "</script><script>alert('x')</script> \"<!--";
    let changes = vec![Change::new("nodes", "added", hostile, "Conv").details(vec![hostile.to_owned()])];
    let html = difference_page([hostile, "b"], [&model, &model], hostile, changes).html().unwrap();
    assert_eq!(html.matches("<script").count(), 2, "the data and the script");
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(!html.contains("<!--"));
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["changes"][0]["name"], hostile);
}
