//! Readings: what a verdict names where the standard and ONNX Runtime differ.

use crate::files::model::{Attr, DeclaredDim, Graph, Input, Model, Node, Tensor};
use crate::finder::told_readings;
use std::rc::Rc;

fn model(opset: i64, node: Node, initializers: Vec<(String, Tensor)>) -> Model {
    let graph = Graph { nodes: vec![node], initializers, ..Graph::default() };
    Model { graph: Rc::new(graph), opsets: [(String::new(), opset)].into(), ..Model::default() }
}

fn node(op: &str, inputs: &[&str], attrs: Vec<(String, Attr)>) -> Node {
    let inputs = inputs.iter().map(|&name| name.to_owned()).collect();
    Node { op: op.to_owned(), inputs, outputs: vec!["y".to_owned()], attrs, ..Node::default() }
}

fn floats(values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { dims: vec![values.len() as i64], dtype: 1, data: data.into() }
}

fn readings(model: &Model) -> Vec<&'static str> {
    told_readings(model, &Model::default()).into_iter().map(|reading| reading.what).collect()
}

#[test]
fn a_resize_by_a_fraction_rests_on_a_product_of_floats_and_others_on_nothing() {
    for (scale, count) in [(1.5, 1), (2.0, 0)] {
        let resize = node("Resize", &["x", "", "s"], vec![]);
        let of = readings(&model(13, resize, vec![("s".to_owned(), floats(&[1.0, 1.0, scale, scale]))]));
        assert_eq!(of.len(), count, "{scale}: {of:?}");
    }
    let sizes = node("Resize", &["x", "", "", "sizes"], vec![]);
    assert!(readings(&model(13, sizes, vec![])).is_empty());
}

#[test]
fn the_nearest_place_of_a_larger_image_is_a_reading_in_old_operator_sets_only() {
    for (opset, scale, count) in [(9, 2.0, 1), (9, 0.5, 1), (11, 2.0, 0)] {
        let at = if opset < 11 { 1 } else { 2 };
        let mut inputs = vec!["x", "", ""];
        inputs[at] = "s";
        let of = readings(&model(opset, node("Upsample", &inputs, vec![]), vec![("s".to_owned(), floats(&[scale]))]));
        assert_eq!(of.len(), count, "{opset}, {scale}: {of:?}");
    }
}

#[test]
fn a_loop_that_counts_by_a_list_is_read_as_the_runtime_does() {
    for (dims, count) in [(vec![DeclaredDim::Known(1)], 1), (vec![], 0)] {
        let body = Graph { inputs: vec![Input { dims: Some(dims), ..Input::default() }], ..Graph::default() };
        let repeats = node("Loop", &["n", "c"], vec![("body".to_owned(), Attr::Graph(Rc::new(body)))]);
        assert_eq!(readings(&model(13, repeats, vec![])).len(), count);
    }
}
