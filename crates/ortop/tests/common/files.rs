//! A file with moves of every kind: one convolution, optimized for targets that take their kernel at any price.

use super::{known, of_graph, value};
use prost::Message;
use relayout::{Model, Options, Target, optimize, parse_target};
use relayout_onnx::proto::{GraphProto, NodeProto, TensorProto};

/// A convolution of 20 channels to 12, in ONNX's layout.
pub(crate) fn convolution() -> Vec<u8> {
    let weights: Vec<u8> = (0..12 * 20 * 9).flat_map(|i| ((i % 17) as f32 - 8.0).to_le_bytes()).collect();
    let node = NodeProto {
        op_type: Some("Conv".to_owned()),
        input: vec!["x".to_owned(), "w".to_owned()],
        output: vec!["y".to_owned()],
        ..NodeProto::default()
    };
    let weights = TensorProto {
        name: Some("w".to_owned()),
        data_type: Some(1),
        dims: vec![12, 20, 3, 3],
        raw_data: Some(weights.into()),
        ..TensorProto::default()
    };
    let graph = GraphProto {
        name: Some("test".to_owned()),
        input: vec![value("x", 1, Some(&known(&[2, 20, 9, 7])))],
        output: vec![value("y", 1, Some(&known(&[2, 12, 7, 5])))],
        node: vec![node],
        initializer: vec![weights],
        ..GraphProto::default()
    };
    let mut model = of_graph(graph, Vec::new(), (18, 8));
    model.opset_import.truncate(1);
    model.encode_to_vec()
}

/// A target that takes its kernel at any price.
fn eager(layout: &str, weights: &str, channels: u64) -> Box<dyn Target> {
    let text = format!(
        r#"
        name = "eager"
        dialect = "relayout"
        about = "takes every kernel"
        layouts = "{layout}"
        source = "a test"

        [moves]
        bytes_per_ns = 1
        node_ns = 1
        view_ns = 0

        [ops]
        outer_axis_percent = 100
        pass_bytes_per_ns = 1
        anchor_moves_percent = 100000
        other_moves_percent = 100000

        [[features]]
        dtypes = ["f32"]
        ranks = [4]
        layout = "{layout}"
        weights = "{weights}"
        filters = "O S I"
        channels = {channels}
        macs_per_ns = 1
        unaligned_percent = 1000000
        "#
    );
    parse_target("eager", &text).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn optimized(bytes: &[u8], target: &dyn Target) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let outcome = optimize(&model, target, &Options::default()).expect("it is optimized");
    outcome.to_bytes().expect("it is written")
}

/// Targets, and the names of the moves into and out of what they make of [`convolution`].
pub(crate) fn targets() -> Vec<(Box<dyn Target>, [&'static str; 2])> {
    vec![
        (eager("N S C", "O S I", 1), ["Relayout", "Relayout"]),
        (eager("N S C", "O S I", 8), ["Relayout_2", "Relayout_3"]),
        (eager("N C/4 S C%4", "O/4 I/4 S I%4 O%4", 1), ["Relayout_2", "Relayout_3"]),
        (eager("N C/16 S C%16", "O/16 I/16 S I%16 O%16", 1), ["Relayout_2", "Relayout_3"]),
        (eager("C/8 S N C%8", "I/8 S O I%8", 1), ["Relayout_2", "Relayout_3"]),
    ]
}
