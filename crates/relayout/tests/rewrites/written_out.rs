//! What ONNX Runtime fuses, written out as standard ops: run in ONNX Runtime before and after.

use crate::common;
use crate::fold_nets::{F32, F64, Net, compare};
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::export::export;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::write::{WriteOptions, write_model_to};
use relayout_targets::ort_cpu::read::write_out_fused;
use relayout_verify::Tolerance;
use std::collections::BTreeMap;
use std::sync::Arc;

const FUSED: &str = "com.microsoft";

/// Ops of the graph with everything written out, how often each; its results are those of the model.
fn written_out(net: &Net) -> BTreeMap<String, usize> {
    let bytes = net.bytes();
    let file = Arc::new(ModelFile::from_bytes(bytes.clone().into(), None).expect("it is a model"));
    let mut model = import(&file).expect("it is imported");
    assert_eq!(infer_graph(&mut model.graph, &mut model.unknowns), []);
    write_out_fused(&mut model.graph).expect("names are fresh");
    let exported = export(&file, &model, &[]).expect("it is exported");
    let mut result = Vec::new();
    let options = WriteOptions::for_input(&file).payloads(&exported.payloads);
    write_model_to(&exported.proto, &mut result, &options).expect("it is written");
    common::judged(&compare(&bytes, &result), Some(Tolerance::default())).unwrap_or_else(|e| panic!("{e}"));
    let mut ops = BTreeMap::new();
    for node in &exported.proto.graph.as_ref().expect("a graph").node {
        *ops.entry(node.op_type().to_owned()).or_default() += 1;
    }
    ops
}

fn count(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|&(op, n)| (op.to_owned(), n)).collect()
}

fn image() -> Net {
    let net = Net::new(17).input("x", F32, &[1, 6, 5, 7]).input("z", F32, &[1, 4, 5, 7]);
    net.floats("w", F32, &[4, 6, 1, 1], true).floats("b", F32, &[4], true)
}

#[test]
fn a_fused_convolution_is_a_convolution_a_sum_and_an_activation() {
    let plain = image().node("FusedConv", &["x", "w", "b"], "y").of_domain(FUSED).text_attribute("activation", "Relu");
    assert_eq!(written_out(&plain.output("y", F32)), count(&[("Conv", 1), ("Relu", 1)]));
    let summed = image()
        .node("FusedConv", &["x", "w", "b", "z"], "y")
        .of_domain(FUSED)
        .text_attribute("activation", "Relu")
        .node("Neg", &["y"], "n")
        .output("n", F32)
        .output("y", F32);
    assert_eq!(written_out(&summed), count(&[("Add", 1), ("Conv", 1), ("Neg", 1), ("Relu", 1)]));
}

#[test]
fn a_product_of_turned_operands_is_scaled_behind_it() {
    let net = Net::new(17).input("a", F32, &[2, 3, 5, 4]).input("b", F32, &[2, 3, 6, 5]);
    let turned = net
        .node_with("FusedMatMul", &["a", "b"], "y", &[("transA", &[1]), ("transB", &[1])])
        .of_domain(FUSED)
        .float_attribute("alpha", 0.125)
        .output("y", F32);
    assert_eq!(written_out(&turned), count(&[("MatMul", 1), ("Mul", 1), ("Transpose", 2)]));
}

#[test]
fn a_product_of_doubles_that_is_scaled_stays() {
    let net = Net::new(17).input("a", F64, &[2, 4]).input("b", F64, &[4, 3]);
    let scaled = net.node("FusedMatMul", &["a", "b"], "y").of_domain(FUSED).float_attribute("alpha", 0.125);
    assert_eq!(written_out(&scaled.output("y", F64)), count(&[("FusedMatMul", 1)]));
}

#[test]
fn a_product_whose_batches_are_turned_stays() {
    let net = Net::new(17).input("a", F32, &[3, 2, 4]).input("b", F32, &[2, 4, 5]);
    let kept =
        net.node_with("FusedMatMul", &["a", "b"], "y", &[("transBatchA", &[1])]).of_domain(FUSED).output("y", F32);
    assert_eq!(written_out(&kept), count(&[("FusedMatMul", 1)]));
}

#[test]
fn a_normalization_of_a_sum_is_two_nodes_and_its_sum_is_read_as_before() {
    let net = Net::new(17).input("x", F32, &[2, 5, 8]).input("skip", F32, &[2, 5, 8]);
    let net = net.floats("gamma", F32, &[8], true).floats("beta", F32, &[8], true);
    let fused = net
        .node("SkipLayerNormalization", &["x", "skip", "gamma", "beta"], "y")
        .of_domain(FUSED)
        .also("")
        .also("")
        .also("sum")
        .float_attribute("epsilon", 0.01)
        .node("Neg", &["sum"], "n")
        .output("y", F32)
        .output("n", F32);
    assert_eq!(written_out(&fused), count(&[("Add", 1), ("LayerNormalization", 1), ("Neg", 1)]));
}

/// A product of rows that a Reshape puts together and another takes apart to `apart`.
fn rows(apart: &[i64]) -> Net {
    let net = Net::new(17).input("x", F32, &[2, 3, 4]).ints("together", &[6, 4]).ints("apart", apart);
    net.floats("w", F32, &[4, 5], true)
        .floats("c", F32, &[5], true)
        .node("Reshape", &["x", "together"], "a")
        .node("Gemm", &["a", "w", "c"], "g")
        .node("Reshape", &["g", "apart"], "y")
        .output("y", F32)
}

#[test]
fn a_product_of_rows_between_reshapes_is_one_of_matrices() {
    assert_eq!(written_out(&rows(&[2, 3, 5])), count(&[("Add", 1), ("MatMul", 1)]));
    assert_eq!(written_out(&rows(&[3, 2, 5])), count(&[("Gemm", 1), ("Reshape", 2)]), "rows of another shape");
}
