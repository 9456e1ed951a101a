//! Readings: what a verdict names where the standard and ONNX Runtime differ, and what it says with the standard's.

use super::bodies::looped;
use super::volumes::ints;
use super::{Line, TO_FIRST, TO_LAST, holds, perm};
use crate::files::model::{Attr, DeclaredDim, Graph, Input, Model, Node, ReadingOf, Tensor};
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

/// Both models with the reading of ONNX Runtime, and with that of the standard.
fn by_reading(a: &Model, b: &Model) -> [bool; 2] {
    [ReadingOf::OnnxRuntime, ReadingOf::Onnx].map(|reading| {
        let [a, b] = [a, b].map(|model| Model { reading, ..model.clone() });
        holds(&a, &b)
    })
}

fn of_opset(opset: i64, lines: &[Line<'_>], scales: [f32; 4]) -> Model {
    let made = super::model(lines, &[("s", &[4], scales.to_vec())]);
    Model { opsets: [(String::new(), opset)].into(), ..made }
}

fn text(word: &str) -> Attr {
    Attr::Text(word.into())
}

#[test]
fn old_resizes_are_ops_by_themselves_as_the_standard_has_them() {
    let nearest = || vec![("coordinate_transformation_mode", text("asymmetric")), ("nearest_mode", text("floor"))];
    let linear = || vec![("coordinate_transformation_mode", text("asymmetric")), ("mode", text("linear"))];
    for (mode, said) in [("nearest", nearest()), ("linear", linear())] {
        for scale in [2.0, 1.6] {
            let scales = [1.0, 1.0, scale, 1.0];
            let old = |opset, y: &'static str, more: &[Line<'_>]| {
                let lines = [&[(y, "Upsample", &["x", "s"][..], vec![("mode", text(mode))])], more].concat();
                of_opset(opset, &lines, scales)
            };
            let new = of_opset(13, &[("y", "Resize", &["x", "", "s"], said.clone())], scales);
            assert_eq!(by_reading(&old(9, "y", &[]), &new), [true, false], "{mode} {scale}");
            // The same op of the same operands is the same whatever it is.
            let renamed = old(9, "u", &[("y", "Identity", &["u"], vec![])]);
            assert_eq!(by_reading(&old(9, "y", &[]), &renamed), [true, true], "{mode} {scale}");
            let moved = |op, of| old(9, "u", &[("y", op, of, vec![])]);
            assert_eq!(by_reading(&moved("Relu", &["u"]), &moved("Neg", &["u"])), [false, false]);
        }
    }
}

#[test]
fn extents_by_a_scale_are_exact_as_the_standard_has_them() {
    // As a float of 32 bits 1.4 is a little less, and its product with 5 rounds to 7.
    let extents =
        |scale| of_opset(13, &[("r", "Resize", &["x", "", "s"], vec![]), ("y", "Shape", &["r"], vec![])], scale);
    let said = |dims: [i64; 4]| {
        let made = of_opset(13, &[("y", "Identity", &["dims"], vec![])], [1.0; 4]);
        ints(made, &[("dims", &[4], &dims)])
    };
    let scales = [1.0, 1.0, 1.0, 1.4];
    assert_eq!(by_reading(&extents(scales), &said([2, 6, 4, 7])), [true, false]);
    assert_eq!(by_reading(&extents(scales), &said([2, 6, 4, 6])), [false, true]);
    for at in 1..400_i64 {
        let scale = 0.25 + at as f32 * 0.01;
        let mantissa = i64::from(scale.to_bits() & 0x7f_ffff | 0x80_0000);
        let exact = |extent: i64| (extent * mantissa) >> (150 - (scale.to_bits() >> 23));
        let wanted = [2, 6, 4, 5].map(exact);
        if !wanted.contains(&0) {
            assert!(by_reading(&extents([scale; 4]), &said(wanted))[1], "{scale}: {wanted:?}");
            let [first, .., last] = wanted;
            assert!(!by_reading(&extents([scale; 4]), &said([first, wanted[1], wanted[2], last + 1]))[1], "{scale}");
        }
    }
}

#[test]
fn a_loop_with_lists_is_an_op_by_itself_as_the_standard_has_it() {
    let made = |dims: &[i64], op: &'static str, turned: bool| {
        let lines: &[Line<'_>] = &[("more", "Identity", &["go"], vec![]), ("w", op, &["v"], vec![])];
        let mut made = looped(lines, &["more", "w", "w"], &["n", "yes", if turned { "t" } else { "z" }], 0);
        let turn = |y: &'static str, x, order| -> Node {
            let mut turn = super::model(&[(y, "Transpose", &["x"], perm(order))], &[]).graph.nodes[0].clone();
            turn.inputs = vec![x];
            turn
        };
        let graph = std::rc::Rc::make_mut(&mut made.graph);
        let mut body = graph.nodes[2].attrs[0].1.clone();
        if let Attr::Graph(body) = &mut body {
            for input in &mut std::rc::Rc::make_mut(body).inputs[..2] {
                input.dims = Some(dims.iter().map(|dim| DeclaredDim::Known(*dim)).collect());
            }
        }
        graph.nodes[2].attrs[0].1 = body;
        if turned {
            graph.nodes[2].outputs[0] = "l".to_owned();
            graph.nodes.insert(2, turn("t", "z".to_owned(), TO_LAST));
            graph.nodes.push(turn("y", "l".to_owned(), TO_FIRST));
        }
        made
    };
    for (dims, wanted) in [(&[][..], [true, true]), (&[1], [true, false])] {
        assert_eq!(by_reading(&made(dims, "Relu", false), &made(dims, "Relu", true)), wanted, "{dims:?}");
        assert_eq!(by_reading(&made(dims, "Relu", false), &made(dims, "Relu", false)), [true, true], "{dims:?}");
        assert_eq!(by_reading(&made(dims, "Relu", false), &made(dims, "Neg", false)), [false, false], "{dims:?}");
    }
}
