//! Products of matrices whose operands or results are turned: what becomes of the Transposes around them, for the targets that
//! have something to say there. Each result is run before and after, for `ort-cpu` on the runtime's lowest and highest level.

use crate::common;
use crate::fold_nets::{self, F32, Net};
use prost::Message;
use relayout::{Target, target};
use relayout_onnx::proto::{ModelProto, NodeProto, OperatorSetIdProto, TensorProto};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, Level, ModelSource, Options, Tolerance, verify};
use std::collections::BTreeMap;

const F64: i32 = 11;

/// Sizes of the symbolic dims of a model.
fn sizes(bytes: &[u8]) -> BTreeMap<String, i64> {
    let text = common::printed(bytes);
    let inputs = || text.lines().filter(|l| l.ends_with("= input"));
    let has = |name: &str| inputs().any(|l| l.contains(&format!("[{name},")) || l.contains(&format!(",{name},")));
    [("B", 2), ("S", 100)]
        .into_iter()
        .filter(|(name, _)| has(name))
        .map(|(name, size)| (name.to_owned(), size))
        .collect()
}

/// The result of optimizing, run on these levels of the runtime beside the input.
fn made(target: &dyn Target, bytes: &[u8], levels: &[Level]) -> (ModelProto, String) {
    let dims = sizes(bytes);
    let outcome = common::optimized_for(target, bytes, &dims).expect("it is optimized");
    for &level in levels {
        let mut options = Options::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(bytes), ModelSource::Bytes(&outcome.bytes));
        let comparison = verify(common::runtime(), a, b, &inputs, &options).expect("both run");
        common::judged(&comparison, Some(Tolerance::default())).unwrap_or_else(|e| panic!("{level:?}: {e}"));
    }
    (ModelProto::decode(outcome.bytes.as_slice()).expect("a model"), outcome.text)
}

/// For ONNX Runtime's CPU provider. Products are in no blocks, so that the host is no matter.
fn for_cpu(bytes: &[u8]) -> ModelProto {
    let target = OrtCpu::new(Block::B16).expect("a built-in target");
    made(&target, bytes, &[Level::Disabled, Level::All]).0
}

fn for_onnx(bytes: &[u8]) -> ModelProto {
    made(target("onnx").expect("a target").as_ref(), bytes, &[Level::Disabled, Level::All]).0
}

fn for_tensor_cores(bytes: &[u8]) -> ModelProto {
    made(target("cuda-tensorcore").expect("a target").as_ref(), bytes, &[Level::Disabled]).0
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |g| &g.node)
}

/// Op types in the order of the file.
fn ops(model: &ModelProto) -> Vec<&str> {
    nodes(model).iter().filter_map(|n| n.op_type.as_deref()).collect()
}

/// What a node says in integers other than zero, by name.
fn flags(node: &NodeProto) -> Vec<&str> {
    let mut flags: Vec<&str> = node.attribute.iter().filter(|a| a.i() != 0).filter_map(|a| a.name.as_deref()).collect();
    flags.sort_unstable();
    flags
}

/// The flags of the only product, and what it reads.
fn product(model: &ModelProto) -> (Vec<&str>, Vec<&str>) {
    let all: Vec<&NodeProto> = nodes(model)
        .iter()
        .filter(|n| n.op_type.as_deref().is_some_and(|op| op.contains("Mul") || op == "Gemm"))
        .collect();
    assert_eq!(all.len(), 1, "{:?}", ops(model));
    (flags(all[0]), all[0].input.iter().map(String::as_str).collect())
}

/// The shape of which a Transpose by `perm` makes `shape`.
fn before(shape: &[i64], perm: &[i64]) -> Vec<i64> {
    let mut dims = vec![0; shape.len()];
    for (&dim, &from) in shape.iter().zip(perm) {
        dims[from as usize] = dim;
    }
    dims
}

/// A product of operands of these shapes that are Transposes, as the result may be.
fn turned(dtype: i32, [a, b]: [(&[i64], &[i64]); 2], result: &[i64]) -> Net {
    let net = Net::new(17)
        .input("a", dtype, &before(a.0, a.1))
        .input("b", dtype, &before(b.0, b.1))
        .node_with("Transpose", &["a"], "ta", &[("perm", a.1)])
        .node_with("Transpose", &["b"], "tb", &[("perm", b.1)])
        .node("MatMul", &["ta", "tb"], "p");
    if result.is_empty() {
        return net.node("Relu", &["p"], "y").output("y", dtype);
    }
    net.node_with("Transpose", &["p"], "y", &[("perm", result)]).output("y", dtype)
}

const LAST: &[i64] = &[0, 1, 3, 2];
const BATCH: &[i64] = &[1, 2, 0, 3];
const BOTH: &[i64] = &[1, 2, 3, 0];
const SAME: &[i64] = &[0, 1, 2, 3];

/// A product with weights of 32 rows of 64, of a type of integers whose elements take `raw` bytes in all, dequantized and turned.
fn dequantized(data_type: i32, raw: usize) -> Vec<u8> {
    let net = Net::new(21)
        .input("x", F32, &[8, 64])
        .floats("s", F32, &[32], false)
        .node("DequantizeLinear", &["w", "s"], "d")
        .int_attribute("axis", 0)
        .node_with("Transpose", &["d"], "t", &[("perm", &[1, 0])])
        .node("MatMul", &["x", "t"], "y")
        .output("y", F32);
    let mut model = ModelProto::decode(&net.bytes()[..]).expect("a model");
    let bytes: Vec<u8> = (0..raw).map(|i| (i * 37 % 251) as u8).collect();
    model.graph.as_mut().expect("a graph").initializer.push(TensorProto {
        name: Some("w".to_owned()),
        dims: vec![32, 64],
        data_type: Some(data_type),
        raw_data: Some(bytes.into()),
        ..TensorProto::default()
    });
    model.encode_to_vec()
}

#[test]
fn the_transpose_of_dequantized_weights_of_four_bits_folds() {
    const I4: i32 = 22;
    const I8: i32 = 3;
    let cpu = OrtCpu::new(Block::B16).expect("a built-in target");
    // With its rewrites on, the runtime takes a product that rounds otherwise.
    let made = |target: &dyn Target, bytes: &[u8]| made(target, bytes, &[Level::Disabled]).0;
    for target in [&cpu as &dyn Target, target("onnx").expect("a target").as_ref()] {
        let narrow = made(target, &dequantized(I4, 32 * 64 / 2));
        assert_eq!(ops(&narrow), ["DequantizeLinear", "MatMul"], "{}", target.name());
    }
    // Of bytes the runtime folds it by itself.
    assert_eq!(ops(&made(&cpu, &dequantized(I8, 32 * 64))), ["DequantizeLinear", "Transpose", "MatMul"]);
}

#[test]
fn a_constant_of_lower_rank_on_the_left_stays_as_it_is() {
    let net = Net::new(17).floats("k", F32, &[32, 64], true).input("x", F32, &[4, 64, 50]);
    let bytes = net.node("MatMul", &["k", "x"], "y").output("y", F32).bytes();
    for target in [target("onnx").expect("a target"), target("ort-nhwc").expect("a target")] {
        let outcome = common::optimized_for(target.as_ref(), &bytes, &BTreeMap::new()).expect("it is optimized");
        assert!(outcome.bytes == bytes, "{}", outcome.text);
    }
}

#[test]
fn operands_that_lie_turned_are_read_so() {
    for (a, a_flags) in [(SAME, &[][..]), (LAST, &["transA"]), (BATCH, &["transBatchA"])] {
        for (b, b_flags) in [(LAST, &["transB"][..]), (BATCH, &["transBatchB"]), (BOTH, &["transB", "transBatchB"])] {
            // Batches are broadcast both ways.
            for (left, right) in [([3, 4, 5, 6], [3, 4, 6, 7]), ([1, 4, 5, 6], [3, 1, 6, 7])] {
                let model = for_cpu(&turned(F32, [(&left, a), (&right, b)], &[]).bytes());
                assert_eq!(ops(&model), ["FusedMatMul", "Relu"], "{a:?} {b:?}");
                let mut expected = [a_flags, b_flags].concat();
                expected.sort_unstable();
                assert_eq!(product(&model), (expected, vec!["a", "b"]), "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn a_result_that_is_wanted_turned_is_the_product_of_turned_operands_in_the_other_order() {
    for (a, b, flags) in [
        (SAME, SAME, &["transA", "transB"][..]),
        (SAME, LAST, &["transB"]),
        (LAST, SAME, &["transA"]),
        (LAST, LAST, &[]),
    ] {
        let model = for_cpu(&turned(F32, [(&[2, 3, 40, 30], a), (&[2, 3, 30, 50], b)], LAST).bytes());
        assert_eq!(ops(&model), ["FusedMatMul"], "{a:?} {b:?}");
        assert_eq!(product(&model), (flags.to_vec(), vec!["b", "a"]), "{a:?} {b:?}");
    }
}

#[test]
fn operands_of_fewer_axes_are_turned_too() {
    let net = |result: &[i64]| {
        Net::new(17)
            .input("a", F32, &[3, 4, 5, 6])
            .input("b", F32, &[7, 6])
            .node_with("Transpose", &["b"], "tb", &[("perm", &[1, 0])])
            .node("MatMul", &["a", "tb"], "p")
            .node_with("Transpose", &["p"], "y", &[("perm", result)])
            .output("y", F32)
    };
    assert_eq!(product(&for_cpu(&net(LAST).bytes())), (vec!["transB"], vec!["b", "a"]));
    assert_eq!(product(&for_cpu(&net(&[1, 0, 2, 3]).bytes())).0, ["transB"]);
}

#[test]
fn an_empty_operand_whose_size_is_known_at_run_time_only_keeps_its_transpose() {
    // ONNX Runtime divides by the number of rows that stand outside of the batch.
    let net = |rows: &str, perm: &[i64]| {
        Net::new(17)
            .symbolic_input("a", F32, &[rows, "4", "6"])
            .input("b", F32, &[4, 6, 8])
            .node_with("Transpose", &["a"], "ta", &[("perm", perm)])
            .node("MatMul", &["ta", "b"], "p")
            .node("Relu", &["p"], "y")
            .symbolic_output("y", F32, &["4", rows, "8"])
            .bytes()
    };
    let model = made(&OrtCpu::new(Block::B16).expect("a target"), &net("S", &[1, 0, 2]), &[Level::Disabled]).0;
    assert_eq!(ops(&model), ["Transpose", "MatMul", "Relu"]);
    assert_eq!(ops(&for_cpu(&net("5", &[1, 0, 2]))), ["FusedMatMul", "Relu"]);
}

#[test]
fn products_that_the_fused_op_does_not_compute_keep_their_transposes() {
    // Other elements than float32, and vectors. Where the runtime absorbs these Transposes itself, on a higher level, it computes
    // something else.
    let target = OrtCpu::new(Block::B16).expect("a built-in target");
    let doubles = turned(F64, [(&[2, 3, 4, 5], SAME), (&[2, 3, 5, 6], LAST)], &[]).bytes();
    let (model, _) = made(&target, &doubles, &[Level::Disabled]);
    assert_eq!(ops(&model), ["Transpose", "MatMul", "Relu"]);
    let vector = Net::new(17)
        .input("a", F32, &[5, 4])
        .input("b", F32, &[5])
        .node_with("Transpose", &["a"], "ta", &[("perm", &[1, 0])])
        .node("MatMul", &["ta", "b"], "p")
        .node("Relu", &["p"], "y")
        .output("y", F32);
    let (model, _) = made(&target, &vector.bytes(), &[Level::Disabled]);
    assert_eq!(ops(&model), ["Transpose", "MatMul", "Relu"]);
}

#[test]
fn a_product_with_a_constant_stays_one_that_the_runtime_packs_on_load() {
    let net = Net::new(17)
        .input("a", F32, &[2, 30, 40])
        .floats("w", F32, &[30, 50], true)
        .floats("c", F32, &[50], true)
        .node_with("Transpose", &["a"], "ta", &[("perm", &[0, 2, 1])])
        .node("MatMul", &["ta", "w"], "p")
        .node("Add", &["p", "c"], "y")
        .output("y", F32);
    assert_eq!(ops(&for_cpu(&net.bytes())), ["Transpose", "MatMul", "Add"]);
}

#[test]
fn dequantized_operands_keep_their_order() {
    let net = Net::new(17)
        .input("a", F32, &[2, 4, 5])
        .input("q", fold_nets::U8, &[2, 6, 5])
        .values("scale", F32, &[], &[0.1])
        .values("zero", fold_nets::U8, &[], &[3.0])
        .node("DequantizeLinear", &["q", "scale", "zero"], "b")
        .node_with("Transpose", &["b"], "tb", &[("perm", &[0, 2, 1])])
        .node("MatMul", &["a", "tb"], "p")
        .node("Relu", &["p"], "y")
        .output("y", F32);
    assert!(ops(&for_cpu(&net.bytes())).contains(&"MatMul"));
}

#[test]
fn a_fused_product_of_the_file_changes_its_flags_and_keeps_its_factor() {
    let net = turned(F32, [(&[2, 3, 5, 6], SAME), (&[2, 3, 7, 6], LAST)], &[]);
    let mut model = ModelProto::decode(net.bytes().as_slice()).expect("a model");
    model.opset_import.push(OperatorSetIdProto { domain: Some("com.microsoft".to_owned()), version: Some(1) });
    let graph = model.graph.as_mut().expect("a graph");
    let product = graph.node.iter_mut().find(|n| n.op_type.as_deref() == Some("MatMul")).expect("a product");
    let said =
        Net::new(17).node_with("FusedMatMul", &["ta", "tb"], "p", &[("transB", &[1])]).float_attribute("alpha", 0.5);
    let said = ModelProto::decode(said.bytes().as_slice()).expect("a model").graph.expect("a graph").node.remove(0);
    *product = NodeProto { domain: Some("com.microsoft".to_owned()), ..said };
    let made = for_cpu(&model.encode_to_vec());
    assert_eq!(ops(&made), ["FusedMatMul", "Relu"]);
    let product = &nodes(&made)[0];
    let factor = product.attribute.iter().find(|a| a.name() == "alpha").map(relayout_onnx::proto::AttributeProto::f);
    assert_eq!((flags(product), factor), (vec![], Some(0.5)));
}

/// Attention of two heads of 64 channels on a batch of this many sequences.
fn attention(batch: &str, length: &str) -> Net {
    let mut net = Net::new(17).symbolic_input("x", F32, &[batch, length, "128"]);
    for name in ["q", "k", "v"] {
        let [w, linear, heads] = ["w", "l", "h"].map(|kind| format!("{kind}{name}"));
        let perm: &[i64] = if name == "k" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
        net = net
            .floats(&w, F32, &[128, 128], true)
            .node("MatMul", &["x", &w], &linear)
            .node("Reshape", &[&linear, "split"], &heads)
            .node_with("Transpose", &[&heads], name, &[("perm", perm)]);
    }
    net.ints("split", &[0, -1, 2, 64])
        .ints("join", &[0, -1, 128])
        .values("scale", F32, &[], &[0.002])
        .node("MatMul", &["q", "k"], "s")
        .node("Mul", &["s", "scale"], "scores")
        .node_with("Softmax", &["scores"], "p", &[("axis", &[-1])])
        .node("MatMul", &["p", "v"], "context")
        .node_with("Transpose", &["context"], "tc", &[("perm", &[0, 2, 1, 3])])
        .node("Reshape", &["tc", "join"], "y")
        .symbolic_output("y", F32, &[batch, length, "128"])
}

#[test]
fn attention_to_one_sequence_moves_its_result_only() {
    let bytes = attention("1", "96").bytes();
    let target = OrtCpu::new(Block::B16).expect("a built-in target");
    let (model, text) = made(&target, &bytes, &[Level::Disabled, Level::All]);
    let count = |op: &str| ops(&model).iter().filter(|o| **o == op).count();
    assert_eq!((count("Transpose"), count("FusedMatMul")), (1, 2), "{:?}", ops(&model));
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("product_attention", text);
    });
}

#[test]
fn attention_to_many_sequences_is_one_op_that_moves_nothing() {
    let bytes = attention("B", "S").bytes();
    let count = |model: &ModelProto| ops(model).iter().filter(|o| **o == "Transpose").count();
    let before = ModelProto::decode(bytes.as_slice()).expect("a model");
    let made = for_cpu(&bytes);
    assert_eq!((count(&before), count(&made)), (4, 0));
    assert!(ops(&made).contains(&"MultiHeadAttention"), "{:?}", ops(&made));
}

/// Two matrices that are Transposes, and what is computed of them.
fn matrices(opset: i64, op: &str, own: &[(&str, &[i64])], result: bool) -> Net {
    let net = Net::new(opset)
        .input("a", F32, &[30, 20])
        .input("b", F32, &[40, 30])
        .node_with("Transpose", &["a"], "ta", &[("perm", &[1, 0])])
        .node_with("Transpose", &["b"], "tb", &[("perm", &[1, 0])])
        .node_with(op, &["ta", "tb"], "p", own);
    if result { net.node_with("Transpose", &["p"], "y", &[("perm", &[1, 0])]) } else { net.node("Relu", &["p"], "y") }
        .output("y", F32)
}

#[test]
fn standard_products_of_matrices_read_their_operands_turned() {
    for op in ["Gemm", "MatMul"] {
        let model = for_onnx(&matrices(13, op, &[], false).bytes());
        assert_eq!(ops(&model), ["Gemm", "Relu"]);
        assert_eq!(product(&model), (vec!["transA", "transB"], vec!["a", "b"]));
        let model = for_onnx(&matrices(13, op, &[], true).bytes());
        assert_eq!(product(&model), (vec![], vec!["b", "a"]));
        assert_eq!(ops(&model), ["Gemm"]);
    }
}

#[test]
fn flags_that_were_there_are_turned_back() {
    let net = Net::new(13)
        .input("a", F32, &[20, 30])
        .input("b", F32, &[30, 40])
        .floats("c", F32, &[40], true)
        .node_with("Transpose", &["a"], "ta", &[("perm", &[1, 0])])
        .node_with("Gemm", &["ta", "b", "c"], "p", &[("transA", &[1])])
        .float_attribute("alpha", 0.5)
        .node_with("Transpose", &["p"], "y", &[("perm", &[1, 0])])
        .output("y", F32);
    let model = for_onnx(&net.bytes());
    // What is added has its own order, so the result is turned behind it.
    assert_eq!(ops(&model), ["Gemm", "Transpose"]);
    assert_eq!(product(&model), (vec![], vec!["a", "b", "c"]));
}

#[test]
fn a_product_in_an_operator_set_whose_gemm_needs_a_summand_keeps_its_transposes() {
    assert_eq!(
        ops(&for_onnx(&matrices(9, "MatMul", &[], false).bytes())),
        ["Transpose", "Transpose", "MatMul", "Relu"]
    );
}

#[test]
fn transposes_beside_a_product_vanish_into_the_layouts_of_its_function() {
    for (a, b, result) in
        [(SAME, LAST, &[][..]), (BATCH, BOTH, &[]), (LAST, BATCH, LAST), (BATCH, BATCH, &[2, 0, 1, 3])]
    {
        let model = for_tensor_cores(&turned(F32, [(&[2, 3, 8, 16], a), (&[2, 3, 16, 24], b)], result).bytes());
        let ops = ops(&model);
        assert!(!ops.iter().any(|op| *op == "Transpose" || op.starts_with("Relayout")), "{ops:?}");
        assert!(ops[0].starts_with("MatMul_"), "{ops:?}");
    }
    let model = for_tensor_cores(&matrices(13, "Gemm", &[], true).bytes());
    assert_eq!(ops(&model), ["Gemm_A_BA_B_BA_Y_NM"]);
}

/// A turned image, flattened and multiplied with weights.
fn flattened(op: &str, own: &[(&str, &[i64])], weights: &[i64]) -> Net {
    let net = Net::new(17).input("x", F32, &[2, 5, 6, 7]).floats("w", F32, weights, true);
    net.node_with("Transpose", &["x"], "t", &[("perm", &[0, 3, 1, 2])])
        .node_with("Flatten", &["t"], "f", &[("axis", &[1])])
        .node_with(op, &["f", "w"], "y", own)
        .output("y", F32)
}

#[test]
fn a_move_before_a_flatten_goes_into_the_weights() {
    for (op, turned, weights) in [("Gemm", true, [8, 210]), ("Gemm", false, [210, 8]), ("MatMul", false, [210, 8])] {
        let own: &[(&str, &[i64])] = if turned { &[("transB", &[1])] } else { &[] };
        let model = for_onnx(&flattened(op, own, &weights).bytes());
        assert_eq!(ops(&model), ["Reshape", op]);
    }
}

#[test]
fn a_move_stays_before_a_flatten_that_others_read_or_that_mixes_images() {
    let read = flattened("MatMul", &[], &[210, 8]).output("f", F32);
    assert!(ops(&for_onnx(&read.bytes())).contains(&"Transpose"));
    let mixed = Net::new(17)
        .input("x", F32, &[2, 5, 6, 7])
        .floats("w", F32, &[84, 8], true)
        .node_with("Transpose", &["x"], "t", &[("perm", &[1, 3, 0, 2])])
        .node_with("Flatten", &["t"], "f", &[("axis", &[1])])
        .node("MatMul", &["f", "w"], "y")
        .output("y", F32);
    assert!(ops(&for_onnx(&mixed.bytes())).contains(&"Transpose"));
}
