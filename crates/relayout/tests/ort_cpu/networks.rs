//! Target `ort-cpu` on the networks of `testdata/models` and the cases of `testdata/cases`, in blocks of 16: what it makes of each is
//! a snapshot, and each is run before and after, with ONNX Runtime's own rewrites off and on.
//!
//! Where the host has other blocks, results are made and compared with the snapshots but not run, and each is reported as skipped.

use crate::common;
use crate::fill;
use prost::Message;
use relayout::Report;
use relayout_onnx::proto::{GraphProto, ModelProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Options, Tolerance, verify};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Sums are formed in another order, and scales are folded into weights.
fn tolerance() -> Tolerance {
    Tolerance::new(2e-5, 2e-4)
}

/// How often each op occurs, in bodies too, with its domain.
fn ops(bytes: &[u8]) -> BTreeMap<String, usize> {
    fn walk(graph: &GraphProto, counts: &mut BTreeMap<String, usize>) {
        for node in &graph.node {
            let domain = node.domain.as_deref().filter(|d| !d.is_empty()).map_or(String::new(), |d| format!("{d}."));
            *counts.entry(format!("{domain}{}", node.op_type.as_deref().unwrap_or_default())).or_default() += 1;
            node.attribute.iter().filter_map(|a| a.g.as_deref()).for_each(|body| walk(body, counts));
        }
    }
    let model = ModelProto::decode(bytes).expect("a model");
    let mut counts = BTreeMap::new();
    model.graph.iter().for_each(|graph| walk(graph, &mut counts));
    counts
}

/// What changed in numbers.
fn told(before: &[u8], after: &[u8], report: &Report) -> String {
    let mut text = format!("{}\n", report.summary());
    let (old, new) = (ops(before), ops(after));
    for op in old.keys().chain(new.keys().filter(|op| !old.contains_key(*op))) {
        let count = |ops: &BTreeMap<String, usize>| ops.get(op).copied().unwrap_or(0);
        if count(&old) != count(&new) {
            let _ = writeln!(text, "{op}: {} -> {}", count(&old), count(&new));
        }
    }
    let target = relayout::target("ort-cpu").expect("a built-in target");
    let rules = relayout::passes::rules(target.as_ref());
    for (name, &count) in &report.rewrites {
        let told = rules.iter().find(|r| r.name == name).expect("an entry of the table").told(count);
        let _ = writeln!(text, "{told}");
    }
    text
}

/// The result for blocks of 16, and every problem of making and running it.
fn made(name: &str, bytes: &[u8], dims: &BTreeMap<String, i64>) -> Result<(common::Outcome, Vec<String>), String> {
    let target = OrtCpu::new(Block::B16).map_err(|e| e.to_string())?;
    let outcome = common::optimized_for(&target, bytes, dims)?;
    let mut problems = Vec::new();
    if common::optimized_for(&target, bytes, dims)?.bytes != outcome.bytes {
        problems.push("a second run on the same input gives other bytes".to_owned());
    }
    if Block::of_host() != Block::B16 {
        println!("skipped: {name} is not run, as it is in blocks of 16 and this host has others");
        return Ok((outcome, problems));
    }
    let run = |result: &[u8], level: Level| {
        let mut options = Options::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 1, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(bytes), ModelSource::Bytes(result));
        let ran = verify(common::runtime(), a, b, &inputs, &options).map_err(|e| e.to_string());
        ran.and_then(|comparison| common::judged(&comparison, Some(tolerance())))
    };
    if outcome.report.rewrites.contains_key("order_bytes") {
        problems.extend(ordered_bytes(bytes, &outcome.bytes, dims).err());
    } else {
        problems.extend(run(&outcome.bytes, Level::Disabled).err());
    }
    if let Err(why) = run(&outcome.bytes, Level::All) {
        match run(bytes, Level::All) {
            Ok(()) => problems.push(format!("with the runtime's own rewrites: {why}")),
            Err(own) => println!("{name}: the runtime's own rewrites change or break it as it stands: {own}"),
        }
    }
    Ok((outcome, problems))
}

/// Sums of floats in another order may round to the next byte, where the runtime computes quantized units in floats. That is as far off as
/// what the runtime makes of the units of the model itself, in integers.
fn ordered_bytes(bytes: &[u8], result: &[u8], dims: &BTreeMap<String, i64>) -> Result<(), String> {
    let compared = |result: &[u8], levels: [Level; 2]| {
        let mut options = Options::default();
        [options.level_a, options.level_b] = levels;
        let inputs = Inputs::Random { seed: 1, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(bytes), ModelSource::Bytes(result));
        verify(common::runtime(), a, b, &inputs, &options).map_err(|e| e.to_string())
    };
    // In integers every sum is the same.
    let integers = compared(result, [Level::All, Level::All])?;
    if !integers.holds(&Tolerance::new(0.0, 0.0)) {
        return Err(format!("in integers: {integers}"));
    }
    let own = compared(bytes, [Level::Disabled, Level::All])?;
    let found = compared(result, [Level::Disabled, Level::Disabled])?;
    let bound = Tolerance::new(1.25 * own.rms, 1.25 * own.largest_relative);
    if found.holds(&bound) {
        Ok(())
    } else {
        Err(format!("sums in another order: {found}; the runtime by itself: {own}"))
    }
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(format!("ort_cpu_{name}"), text);
    });
}

/// One model of the networks.
fn network(path: &std::path::Path) -> (String, Vec<String>) {
    let name = common::stem(path);
    let bytes = std::fs::read(path).map_err(|e| e.to_string()).and_then(|bytes| fill::fill(&bytes));
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(e) => return (format!("## {name}\n"), vec![format!("{name}: {e}")]),
    };
    match made(&name, &bytes, &BTreeMap::new()) {
        Ok((outcome, problems)) => {
            let text = told(&bytes, &outcome.bytes, &outcome.report);
            (format!("## {name}\n{text}"), problems.into_iter().map(|p| format!("{name}: {p}")).collect())
        }
        Err(e) => (format!("## {name}\n"), vec![format!("{name}: {e}")]),
    }
}

#[test]
fn networks_in_blocks_compute_the_same() {
    let (mut text, mut failures) = (String::new(), Vec::new());
    for path in common::model_files("models") {
        let (told, problems) = network(&path);
        let _ = writeln!(text, "{told}");
        failures.extend(problems);
    }
    snapshot("models", &text);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// One case: what became of it if it changed.
fn case(path: &std::path::Path) -> (String, Vec<String>) {
    let name = common::stem(path);
    let bytes = std::fs::read(path).expect("a readable case");
    let dims = common::case_dims(&common::printed(&bytes));
    match made(&name, &bytes, &dims) {
        Ok((outcome, problems)) => {
            let blocked = ops(&outcome.bytes).keys().any(|op| op.contains("nchwc"));
            let after = if blocked { common::printed(&outcome.bytes) } else { String::new() };
            let told = told(&bytes, &outcome.bytes, &outcome.report);
            (format!("## {name}\n{told}{after}"), problems)
        }
        Err(e) => (format!("## {name}\n"), vec![e]),
    }
}

#[test]
fn cases_in_blocks_compute_the_same() {
    let folders = std::fs::read_dir(common::testdata("cases")).expect("there are cases");
    let mut themes: Vec<String> =
        folders.map(|f| f.expect("a readable folder").file_name().to_string_lossy().into_owned()).collect();
    themes.sort();
    let mut failures = String::new();
    for theme in themes {
        let mut text = String::new();
        for path in common::model_files(&format!("cases/{theme}")) {
            let (told, problems) = case(&path);
            let _ = writeln!(text, "{told}");
            for problem in problems {
                let _ = writeln!(failures, "{theme}/{}: {problem}", common::stem(&path));
            }
        }
        snapshot(&format!("cases_{theme}"), &text);
    }
    assert!(failures.is_empty(), "{failures}");
}
