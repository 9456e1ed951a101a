//! Nodes of the test models through which no layout passes, by name, each with the reason that a user reads. The snapshot is
//! reviewed: a new line in it is a question to the table of ops.

use relayout::ir::graph::{Graph, Op};
use relayout::{Model, Options, optimize};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Most nodes that may be opaque, in percent of all that are ops.
const MOST_PERCENT: usize = 5;

fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut paths = Vec::new();
    for folder in ["demo", "models"] {
        let files = std::fs::read_dir(root.join(folder)).expect("the models are there");
        paths.extend(
            files.map(|file| file.expect("a file").path()).filter(|p| p.extension().is_some_and(|e| e == "onnx")),
        );
    }
    paths.sort();
    paths
}

/// Nodes of a graph and of its bodies.
fn count(graph: &Graph) -> usize {
    let of = |n| {
        let node = graph.node(n);
        usize::from(matches!(node.op, Op::Onnx(_))) + node.bodies().map(count).sum::<usize>()
    };
    graph.nodes().map(of).sum()
}

#[test]
fn opaque_nodes_of_the_test_models_are_few_and_each_has_a_reason() {
    let target = relayout::target("onnx").expect("a built-in target");
    let (mut text, mut all, mut opaque) = (String::new(), 0, 0);
    for path in models() {
        let model = Model::open(&path).expect("the model opens");
        let optimized = optimize(&model, target.as_ref(), &Options::default()).expect("the model is optimized");
        let nodes = count(&model.ir().graph);
        let found: Vec<_> =
            optimized.report().graphs.iter().flat_map(|g| g.opaque.iter().map(|o| (&g.path, o))).collect();
        let name = path.file_name().expect("a file has a name").to_string_lossy();
        let _ = writeln!(text, "{name}: {} of {nodes} nodes", found.len());
        for (place, o) in &found {
            let _ = writeln!(text, "  {place}{}: {}", o.node, o.why);
        }
        // Calls of a model's own functions are not the table's to know.
        let calls = found.iter().filter(|(_, o)| o.why.contains("function of the model")).count();
        (all, opaque) = (all + nodes - calls, opaque + found.len() - calls);
    }
    insta::assert_snapshot!(text);
    assert!(opaque * 100 <= all * MOST_PERCENT, "{opaque} of {all} nodes are opaque");
}
