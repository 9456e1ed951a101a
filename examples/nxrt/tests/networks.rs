//! Networks in the runtime before and after: the same results, fewer moves, and what can't be carried out stays as it is.

#[path = "../examples/common/mod.rs"]
mod common;

use common::{TOLERANCE, cpu, difference, feeds, loaded, run};
use onnx_runtime_ir::{Attribute, DataType, Graph, Node, NodeId, TensorData, WeightRef, static_shape};
use onnx_runtime_optimizer::{OptimizationPass, PassContext, run_passes};
use onnx_runtime_session::InferenceSession;
use relayout_nxrt::{Relayout, Report, moves_of};
use std::path::PathBuf;
use std::sync::Arc;

fn model(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// What the pass did to a model; results are compared with those of a session without it.
fn decided(name: &str) -> Report {
    let pass = Relayout::default();
    let (mut plain, mut ours) = (loaded(&model(name), None).unwrap(), loaded(&model(name), Some(&pass)).unwrap());
    let feeds = feeds(&plain).unwrap();
    let [before, after] = [run(&mut plain, &feeds).unwrap(), run(&mut ours, &feeds).unwrap()];
    let difference = difference(&before, &after).unwrap();
    assert!(difference <= TOLERANCE, "{name}: {difference}");
    let outputs = |session: &InferenceSession| session.outputs().iter().map(|o| o.name.clone()).collect::<Vec<_>>();
    assert_eq!(outputs(&plain), outputs(&ours), "{name}");
    let report = pass.report();
    assert!(report.kept.is_none(), "{name}: {report:?}");
    report
}

/// A graph with an input of these extents, and ops one behind the other.
fn chain(shape: [usize; 4], ops: &[(&str, [usize; 4], Option<Attribute>)]) -> Graph {
    let mut graph = Graph::new();
    graph.opset_imports.insert(String::new(), 17);
    let mut last = graph.create_named_value("x", DataType::Float32, static_shape(shape));
    graph.add_input(last);
    for (at, (op, shape, attribute)) in ops.iter().enumerate() {
        let result = graph.create_named_value(format!("v{at}"), DataType::Float32, static_shape(*shape));
        let mut inputs = vec![Some(last)];
        if matches!(*op, "Add" | "Conv") {
            let dims = if *op == "Add" { vec![shape[1], 1, 1] } else { vec![shape[1], shape[1], 1, 1] };
            let numbers = (0..dims.iter().product()).map(|i: usize| (i % 7) as f32 * 0.1 - 0.3);
            let data =
                TensorData::from_raw(DataType::Float32, dims.clone(), numbers.flat_map(f32::to_le_bytes).collect());
            let weights = graph.create_named_value(format!("w{at}"), DataType::Float32, static_shape(dims));
            graph.set_initializer(weights, WeightRef::Inline(data));
            inputs.push(Some(weights));
        }
        let mut node = Node::new(NodeId(0), *op, inputs, vec![result]);
        let name = if *op == "Transpose" { "perm" } else { "axis" };
        node.attributes.extend(attribute.clone().map(|attribute| (name.to_owned(), attribute)));
        graph.insert_node(node);
        last = result;
    }
    graph.add_output(last);
    graph
}

fn perm(perm: [i64; 4]) -> Option<Attribute> {
    Some(Attribute::Ints(perm.to_vec()))
}

/// A convolution between images that have their channels last, and what is done to them.
fn channels_last() -> Graph {
    let (last, first) = ([2, 5, 6, 8], [2, 8, 5, 6]);
    chain(
        last,
        &[
            ("Transpose", first, perm([0, 3, 1, 2])),
            ("Conv", first, None),
            ("Add", first, None),
            ("Transpose", last, perm([0, 2, 3, 1])),
            ("Softmax", last, Some(Attribute::Int(3))),
            ("Relu", last, None),
            ("Transpose", first, perm([0, 3, 1, 2])),
            ("Conv", first, None),
            ("Transpose", last, perm([0, 2, 3, 1])),
        ],
    )
}

/// Both graphs in a session each, on the same numbers.
fn same(before: Graph, after: Graph) {
    let mut sessions = [before, after].map(|graph| InferenceSession::from_graph(graph).unwrap());
    let feeds = feeds(&sessions[0]).unwrap();
    let [before, after] = sessions.each_mut().map(|session| run(session, &feeds).unwrap());
    let difference = difference(&before, &after).unwrap();
    assert!(difference <= TOLERANCE, "{difference}");
}

#[test]
fn a_network_of_tensorflow_has_fewer_moves_and_the_same_results() {
    let (before, after) = decided("demo/tf_unet.onnx").moves;
    assert!(after.nodes * 4 < before.nodes && after.bytes * 4 < before.bytes, "{before:?} {after:?}");
}

#[test]
fn small_networks_have_the_same_results_and_no_more_moves() {
    for name in ["cli/conv.onnx", "cli/relu.onnx", "verify/conv.onnx", "verify/conv_around.onnx"] {
        let (before, after) = decided(name).moves;
        assert!(after.nodes <= before.nodes, "{name}: {before:?} {after:?}");
    }
}

#[test]
fn transposes_that_cancel_are_gone_and_the_axis_between_is_another_one() {
    let mut graph = channels_last();
    let before = graph.clone();
    let report = Relayout::default().without_dense().decide(&mut graph, &PassContext::new());
    assert!(report.changed, "{report:?}");
    assert_eq!((report.moves.0.nodes, report.moves.1.nodes), (4, 2));
    let softmax = graph.nodes.values().find(|node| node.op_type == "Softmax").unwrap();
    assert_eq!(softmax.attr("axis").unwrap().as_int(), Some(1));
    assert_eq!(moves_of(&graph), report.moves.1);
    same(before, graph);
}

#[test]
fn the_runtime_runs_it_among_its_own_passes() {
    let (mut graph, before) = (channels_last(), channels_last());
    let passes: Vec<Box<dyn OptimizationPass>> = vec![Box::new(Relayout::default())];
    run_passes(&mut graph, &passes, &PassContext::new()).unwrap();
    passes[0].postconditions(&graph).unwrap();
    assert_eq!(passes[0].name(), "LayoutPropagation");
    same(before, graph);
}

#[test]
fn a_graph_that_was_loaded_becomes_a_session_with_its_weights() {
    let path = model("demo/tf_unet.onnx");
    let (mut graph, weights) = onnx_runtime_loader::load_model_with_weights(&path).unwrap();
    let report = Relayout::default().decide(&mut graph, &PassContext::new());
    assert!(report.changed && report.copies > 0, "{report:?}");
    let folder = path.parent().unwrap();
    let mut ours =
        InferenceSession::from_graph_with_provider(graph, weights, folder, Arc::new(cpu().unwrap())).unwrap();
    let mut plain = loaded(&path, None).unwrap();
    let feeds = feeds(&plain).unwrap();
    let [before, after] = [run(&mut plain, &feeds).unwrap(), run(&mut ours, &feeds).unwrap()];
    assert!(difference(&before, &after).unwrap() <= TOLERANCE);
}

#[test]
fn without_a_plan_moves_stay_and_readers_get_dense_copies() {
    let mut graph = channels_last();
    let before = graph.clone();
    let report = Relayout::default().without_plan().decide(&mut graph, &PassContext::new());
    // The last Transpose is an output, which nobody in the graph reads.
    assert_eq!((report.changed, report.moves.1.nodes, report.copies), (false, 4, 3));
    assert_eq!(report.stored, 8 * 5 * 6 * 4, "a number for each channel is stored as an image");
    same(before, graph);
}

#[test]
fn a_graph_with_bodies_stays_as_it_is_and_says_why() {
    let mut graph = channels_last();
    let node = graph.nodes.keys().next().unwrap();
    graph.subgraphs.insert((node, "body".to_owned()), Graph::new());
    let report = Relayout::default().without_dense().decide(&mut graph, &PassContext::new());
    assert!(!report.changed && report.kept.is_some_and(|why| why.contains("bodies")));
    assert_eq!(moves_of(&graph).nodes, 4);
}
