//! What each pass does, as text: `cases/PASS/hit_*.txt` and near misses, `cases/PASS/miss_*.txt`.
//!
//! A case is a graph, with a comment line at its top that says the target and what is shown. Behind `==>` stands the graph as the
//! pass leaves it, or `unchanged`; where passes before it change the graph, that is shown first, behind `-->`. `BLESS=1` writes what
//! is behind the arrows. Nothing is executed here, and floats have made-up elements.

use crate::stub::Stub;
use relayout_ir::constant::Constant;
use relayout_ir::graph::{Graph, Handover, Node, Op};
use relayout_ir::model::Model;
use relayout_ir::patch::remove_dead;
use relayout_ir::text::parse;
use relayout_passes::pipeline::{PipelineOptions, Step, run_steps, steps};
use relayout_target_api::{PassError, Target, each_graph};
use relayout_targets::{Block, OrtCpu, builtin};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// A target by its name; `ort-cpu/16` has that block.
fn target(name: &str) -> Box<dyn Target> {
    if name == "stub" {
        return Box::new(Stub::new(Vec::new()));
    }
    match name.strip_prefix("ort-cpu/") {
        Some(block) => Box::new(OrtCpu::new(Block::of(block.parse().unwrap()).unwrap()).unwrap()),
        None => builtin(name).unwrap(),
    }
}

/// The model of a text, whose constants of floats have elements: 0.25, 0.5, 0.75, ...
fn model(text: &str) -> Model {
    let mut graph = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let opset = text.split_once("opset=").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    each_graph(&mut graph, "", &mut |graph, _| fill(graph)).unwrap();
    Model { graph, opsets: BTreeMap::from([(String::new(), opset.unwrap())]), ..Model::default() }
}

fn fill(graph: &mut Graph) -> Result<(), PassError> {
    for v in graph.values().collect::<Vec<_>>() {
        let Some(c) = graph.constant(v).filter(|c| c.dtype.is_float() && !c.source.is_available()) else { continue };
        let filled = Constant::floats((0..c.elems().unwrap()).map(|i| (i + 1) as f64 / 4.0), &c.dims);
        let node: Node = Node::constant(filled, graph.node(graph.value(v).producer().0).rank);
        let (maker, ty) = (graph.value(v).producer().0, graph.value(v).ty.clone());
        let (name, readers) = (graph.fresh_name("filled"), Handover::everything(graph, v));
        let by = graph.add_single(node, name, ty)?;
        graph.hand_over(readers, by);
        remove_dead(graph, [maker]);
    }
    Ok(())
}

/// The graph after these steps, with what of the pass the text does not show.
fn shown(pass: &str, text: &str, target: &dyn Target, steps: &[Step<'_>]) -> String {
    let mut model = model(text);
    let outcome = run_steps(&mut model, target, &PipelineOptions::default(), steps).unwrap();
    let facts = match pass {
        "canonicalize" => forms(&model.graph),
        "assign" => format!("; {} variables\n", outcome.solve.variables),
        _ => String::new(),
    };
    format!("{}{facts}", model.graph)
}

fn forms(graph: &Graph) -> String {
    let mut text = String::new();
    for n in graph.order().unwrap() {
        let node = graph.node(n);
        if matches!(node.op, Op::Onnx(_)) {
            let form = format!("{:?}", node.form);
            let kind = form.split(['(', ' ']).next().unwrap_or_default();
            let why = node.form.opaque_reason().map(|why| format!(": {why}")).unwrap_or_default();
            let _ = writeln!(text, "; {} is {kind}{why}", node.describe(graph));
        }
    }
    text
}

/// A case with what is behind its arrows as it should be, and whether the pass did anything.
fn run(pass: &str, case: &str) -> (String, bool) {
    let input = case.split("-->").next().unwrap().split("==>").next().unwrap().trim_end().to_owned() + "\n";
    let named = input.split_once("target=").and_then(|(_, rest)| rest.split_whitespace().next());
    let target = target(named.expect("a case says `target=NAME`").trim_end_matches([';', ':']));
    let all = steps(target.as_ref()).unwrap();
    let at = all.iter().position(|step| step.is.name == pass).unwrap_or_else(|| panic!("there is no pass {pass}"));
    let read = model(&input).graph.to_string();
    let before = shown(pass, &input, target.as_ref(), &all[..at]);
    let after = shown(pass, &input, target.as_ref(), &all[..=at]);
    let mut text = input;
    if !before.starts_with(&read) {
        let _ = write!(text, "-->\n{before}");
    }
    let changed = before != after;
    let _ = if changed { write!(text, "==>\n{after}") } else { writeln!(text, "==> unchanged") };
    (text, changed)
}

#[test]
fn every_pass_does_what_its_cases_say() {
    let mut problems = String::new();
    for folder in entries(&folder()) {
        for path in entries(&folder) {
            let case = fs::read_to_string(&path).unwrap();
            let (text, changed) = run(name_of(&folder), &case);
            let name = format!("{}/{}", name_of(&folder), name_of(&path));
            if changed != name_of(&path).starts_with("hit_") {
                let _ = writeln!(problems, "{name}: {}", if changed { "a miss is changed" } else { "a hit is not" });
            }
            if std::env::var_os("BLESS").is_some() {
                fs::write(&path, text).unwrap();
            } else if case != text {
                let _ = writeln!(problems, "{name} is now (BLESS=1 writes it):\n{text}");
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn every_pass_has_a_hit_and_a_near_miss() {
    let onnx = target("onnx");
    let own: BTreeSet<&str> = onnx.passes().iter().map(|pass| pass.is.name).collect();
    let passes = steps(onnx.as_ref()).unwrap().into_iter().map(|step| step.is.name).filter(|name| !own.contains(name));
    for pass in passes {
        let names: Vec<PathBuf> = entries(&folder().join(pass));
        for kind in ["hit_", "miss_"] {
            assert!(names.iter().any(|path| name_of(path).starts_with(kind)), "pass {pass} has no {kind} case");
        }
    }
}
