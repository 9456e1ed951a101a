//! What ONNX Runtime makes of a file when it loads it: models that its own rewrites once broke, though the file was right. What
//! `optimize` writes for any target runs at its highest level and computes what the input does with all rewrites off.

use crate::common;
use crate::proto::{body, info, int, ints, node, tensor, text};
use prost::Message;
use relayout::target;
use relayout::targets::BUILTIN;
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
};
use relayout_verify::{Data, Inputs, Level, ModelSource, Options, Tensor, Tolerance, verify, verify_on};
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn value(name: &str, dtype: DataType, shape: &[i64]) -> ValueInfoProto {
    info(name, dtype, shape, &BTreeMap::new(), true)
}

fn op(op: &str, inputs: &[&str], output: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    node(op, inputs.iter().map(|&i| i.to_owned()).collect(), vec![output.to_owned()], attributes)
}

fn floats(name: &str, dims: &[i64], numbers: impl IntoIterator<Item = f32>) -> TensorProto {
    tensor(name, DataType::Float, dims, numbers.into_iter().flat_map(f32::to_le_bytes).collect())
}

fn integers(name: &str, dims: &[i64], numbers: &[i64]) -> TensorProto {
    tensor(name, DataType::Int64, dims, numbers.iter().flat_map(|i| i.to_le_bytes()).collect())
}

fn model(opset: i64, graph: GraphProto) -> Vec<u8> {
    let import = OperatorSetIdProto { domain: Some(String::new()), version: Some(opset) };
    let graph = Some(GraphProto { name: Some("g".to_owned()), ..graph });
    ModelProto { ir_version: Some(8), opset_import: vec![import], graph, ..ModelProto::default() }.encode_to_vec()
}

/// Holds what each target makes of a model against the model.
fn runs_for_every_target(bytes: &[u8]) {
    runs_on(bytes, None);
}

/// The same on these inputs, or else on random ones.
fn runs_on(bytes: &[u8], inputs: Option<&[Tensor]>) {
    let random = Inputs::Random { seed: 1, dims: BTreeMap::new() };
    let mut options = Options::default();
    options.level_b = Level::All;
    let mut problems = String::new();
    for name in BUILTIN {
        let target = target(name).expect("a built-in target");
        let outcome = common::optimized_for(target.as_ref(), bytes, &BTreeMap::new());
        let found = outcome.and_then(|outcome| {
            let [a, b] = [bytes, &outcome.bytes].map(ModelSource::Bytes);
            let compared = match inputs {
                Some(given) => verify_on(common::runtime(), a, b, given, &options),
                None => verify(common::runtime(), a, b, &random, &options),
            };
            let compared = compared.map_err(|e| e.to_string());
            compared
                .and_then(|c| common::judged(&c, Some(Tolerance::default())))
                .map_err(|why| format!("{why}\n{}", common::printed(&outcome.bytes)))
        });
        if let Err(why) = found {
            let _ = writeln!(problems, "{name}: {why}");
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// Two convolutions that targets run channels last, and this op between them, which leaves extents of `side`. `more` are its lists.
fn between_convolutions(opset: i64, middle: NodeProto, more: Vec<TensorProto>, side: i64) -> Vec<u8> {
    let weights = floats("w", &[8, 8, 1, 1], (0..64).map(|i| (i % 7) as f32 / 7.0 - 0.4));
    let graph = GraphProto {
        node: vec![op("Conv", &["x", "w"], "a", vec![]), middle, op("Conv", &["b", "w"], "y", vec![])],
        initializer: [vec![weights], more].concat(),
        input: vec![value("x", DataType::Float, &[1, 8, 6, 6])],
        output: vec![value("y", DataType::Float, &[1, 8, side, side])],
        ..GraphProto::default()
    };
    model(opset, graph)
}

#[test]
fn a_range_gets_scalars_where_the_runtime_gets_to_know_them() {
    let flow = |name: &str, of: &str, result: &str| {
        let copy = op("Identity", &[of], result, vec![]);
        body(name, vec![copy], vec![], vec![value(result, DataType::Int64, &[1])])
    };
    // That the input has four elements is known to this optimizer alone; the runtime takes the branch once it is told.
    let graph = GraphProto {
        node: vec![
            op("Size", &["x"], "size", vec![]),
            op("Equal", &["size", "four"], "is_four", vec![]),
            op("If", &["is_four"], "n", vec![flow("then_branch", "three", "a"), flow("else_branch", "m", "b")]),
            op("Range", &["zero", "n", "one"], "numbers", vec![]),
            op("Cast", &["numbers"], "floats", vec![int("to", DataType::Float as i64)]),
            op("Add", &["floats", "x"], "y", vec![]),
        ],
        initializer: vec![
            integers("zero", &[], &[0]),
            integers("one", &[1], &[1]),
            integers("three", &[1], &[3]),
            integers("four", &[], &[4]),
        ],
        input: vec![value("x", DataType::Float, &[4, 1]), value("m", DataType::Int64, &[1])],
        output: vec![value("y", DataType::Float, &[4, 3])],
        ..GraphProto::default()
    };
    runs_for_every_target(&model(17, graph));
}

#[test]
fn a_pad_of_named_axes_lists_all() {
    let lists = vec![integers("pads", &[4], &[2, 1, 2, 1]), integers("axes", &[2], &[-1, 2])];
    let pad = op("Pad", &["a", "pads", "", "axes"], "b", vec![text("mode", "edge")]);
    // Two more rows and four more columns; the second convolution asks for no square.
    let mut bytes = ModelProto::decode(&between_convolutions(18, pad, lists, 8)[..]).expect("a model");
    if let Some(graph) = &mut bytes.graph {
        graph.output = vec![value("y", DataType::Float, &[1, 8, 8, 10])];
    }
    runs_for_every_target(&bytes.encode_to_vec());
}

#[test]
fn a_resize_of_named_axes_lists_all() {
    let mode =
        |mode: &str| vec![text("mode", "linear"), ints("axes", &[2, 3]), text("coordinate_transformation_mode", mode)];
    let scales = vec![floats("scales", &[2], [2.0, 2.0])];
    let resize = op("Resize", &["a", "", "scales"], "b", mode("half_pixel"));
    runs_for_every_target(&between_convolutions(18, resize, scales, 12));
    let region = vec![floats("region", &[4], [0.1, 0.2, 0.8, 0.7]), integers("sizes", &[2], &[5, 5])];
    let resize = op("Resize", &["a", "region", "", "sizes"], "b", mode("tf_crop_and_resize"));
    runs_for_every_target(&between_convolutions(18, resize, region, 5));
}

/// A Pad of named axes and what follows it. `follows` reads `p`.
fn padded(follows: Vec<NodeProto>) -> Vec<u8> {
    let pad = op("Pad", &["x", "pads", "", "axes"], "p", vec![]);
    let graph = GraphProto {
        node: [vec![pad], follows].concat(),
        initializer: vec![integers("pads", &[4], &[1, 1, 1, 1]), integers("axes", &[2], &[2, 3])],
        input: vec![value("x", DataType::Float, &[1, 8, 6, 6])],
        output: vec![value("y", DataType::Float, &[1, 8, 8, 8])],
        ..GraphProto::default()
    };
    model(18, graph)
}

#[test]
fn a_model_with_nothing_else_to_gain_keeps_its_lists() {
    let relu = padded(vec![op("Relu", &["p"], "y", vec![])]);
    let to_and_fro: [&[i64]; 2] = [&[0, 2, 3, 1], &[0, 3, 1, 2]];
    let moved = padded(vec![
        op("Transpose", &["p"], "t", vec![ints("perm", to_and_fro[0])]),
        op("Relu", &["t"], "r", vec![]),
        op("Transpose", &["r"], "y", vec![ints("perm", to_and_fro[1])]),
    ]);
    for name in BUILTIN {
        let target = target(name).expect("a built-in target");
        let optimized = |bytes: &[u8]| {
            common::optimized_for(target.as_ref(), bytes, &BTreeMap::new()).expect("it is optimized").bytes
        };
        assert!(optimized(&relu) == relu, "{name}: a model without moves changed");
        let without = optimized(&moved);
        // A device of NHWC would run no Transpose of either.
        assert_eq!(without == moved, name == &"ort-nhwc", "{name}: the moves");
        assert!(optimized(&without) == without, "{name}: the result changed once more");
    }
}

#[test]
fn a_convolution_that_said_how_it_pads_says_so_no_more_once_it_has_taken_in_a_pad() {
    let pad = op("Pad", &["a", "pads"], "p", vec![]);
    let conv = op("Conv", &["p", "w"], "b", vec![text("auto_pad", "VALID"), ints("kernel_shape", &[1, 1])]);
    let mut valid = ModelProto::decode(
        &between_convolutions(17, pad, vec![integers("pads", &[8], &[0, 0, 1, 1, 0, 0, 1, 1])], 8)[..],
    )
    .expect("a model");
    valid.graph.iter_mut().for_each(|graph| graph.node.insert(2, conv.clone()));
    runs_for_every_target(&valid.encode_to_vec());
}

/// Kernels for CUDA and WebGPU interpolate along the two inner ones of four axes, whatever they are.
#[test]
fn a_file_for_all_runtimes_interpolates_images_where_rows_and_columns_lie_innermost() {
    for (mode, left) in [("nearest", 0), ("linear", 2), ("cubic", 2)] {
        let graph = GraphProto {
            node: vec![
                op("Transpose", &["x"], "a", vec![ints("perm", &[0, 3, 1, 2])]),
                op("Resize", &["a", "", "scales"], "b", vec![text("mode", mode)]),
                op("Transpose", &["b"], "y", vec![ints("perm", &[0, 2, 3, 1])]),
            ],
            initializer: vec![floats("scales", &[4], [1.0, 1.0, 2.0, 3.0])],
            input: vec![value("x", DataType::Float, &[2, 5, 6, 3])],
            output: vec![value("y", DataType::Float, &[2, 10, 18, 3])],
            ..GraphProto::default()
        };
        let bytes = model(17, graph);
        let target = target("onnx").expect("a built-in target");
        let outcome = common::optimized_for(target.as_ref(), &bytes, &BTreeMap::new()).expect("it is optimized");
        let made = ModelProto::decode(&outcome.bytes[..]).expect("a model");
        let nodes = made.graph.iter().flat_map(|graph| &graph.node);
        assert_eq!(nodes.filter(|node| node.op_type.as_deref() == Some("Transpose")).count(), left, "{mode}");
        // The runtime's own rewrites break a cubic one.
        if mode != "cubic" {
            runs_for_every_target(&bytes);
        }
    }
}

#[test]
fn a_resize_that_a_file_has_channels_last_may_move() {
    let last = |x: &str, y: &str| op("Resize", &[x, "", "scales"], y, vec![text("mode", "linear")]);
    let to_last = |x: &str, y: &str| op("Transpose", &[x], y, vec![ints("perm", &[0, 2, 3, 1])]);
    let to_first = |x: &str, y: &str| op("Transpose", &[x], y, vec![ints("perm", &[0, 3, 1, 2])]);
    let left = |nodes: Vec<NodeProto>, shapes: [[i64; 4]; 2]| {
        let graph = GraphProto {
            node: nodes,
            initializer: vec![floats("scales", &[4], [1.0, 2.0, 3.0, 1.0])],
            input: vec![value("x", DataType::Float, &shapes[0])],
            output: vec![value("y", DataType::Float, &shapes[1])],
            ..GraphProto::default()
        };
        let bytes = model(17, graph);
        runs_for_every_target(&bytes);
        let target = target("onnx").expect("a built-in target");
        let outcome = common::optimized_for(target.as_ref(), &bytes, &BTreeMap::new()).expect("it is optimized");
        let made = ModelProto::decode(&outcome.bytes[..]).expect("a model");
        let nodes = made.graph.iter().flat_map(|graph| &graph.node);
        nodes.filter(|node| node.op_type.as_deref() == Some("Transpose")).count()
    };
    let around = vec![to_last("x", "a"), last("a", "b"), to_first("b", "y")];
    assert_eq!(left(around, [[2, 3, 5, 6], [2, 3, 10, 18]]), 0, "it goes where kernels have it");
    assert_eq!(left(vec![last("x", "y")], [[2, 5, 6, 3], [2, 10, 18, 3]]), 0, "it stays where it is");
}

#[test]
fn a_cubic_resize_stays_channels_first() {
    // One channel lies last as it lies first, so that nothing has to be moved for a kernel.
    let graph = |opset, more: &[AttributeProto]| {
        let attributes = [&[text("mode", "cubic")], more].concat();
        let graph = GraphProto {
            node: vec![op("Resize", &["x", "", "", "sizes"], "y", attributes)],
            input: vec![value("x", DataType::Float, &[1, 1, 6, 6]), value("sizes", DataType::Int64, &[4])],
            output: vec![value("y", DataType::Float, &[1, 1, 4, 5])],
            ..GraphProto::default()
        };
        model(opset, graph)
    };
    let given = |name: &str, shape: &[i64], data| Tensor::new(name, shape.to_vec(), data).expect("as many elements");
    let image = Data::F32((0..36u8).map(|i| f32::from(i % 7)).collect());
    let inputs = [given("x", &[1, 1, 6, 6], image), given("sizes", &[4], Data::I64(vec![1, 1, 4, 5]))];
    runs_on(&graph(17, &[]), Some(&inputs));
    runs_on(&graph(18, &[int("antialias", 1)]), Some(&inputs));
}

#[test]
fn an_operator_set_that_has_no_bodies_moves_by_transposes() {
    let transpose = |x: &str, y: &str, perm: &[i64]| op("Transpose", &[x], y, vec![ints("perm", perm)]);
    let graph = GraphProto {
        node: vec![
            transpose("x", "a", &[3, 0, 1, 2]),
            op("Not", &["a"], "b", vec![]),
            transpose("b", "y", &[2, 1, 0, 3]),
        ],
        input: vec![value("x", DataType::Bool, &[2, 3, 4, 5])],
        output: vec![value("y", DataType::Bool, &[3, 2, 5, 4])],
        ..GraphProto::default()
    };
    for opset in [1, 6, 7] {
        runs_for_every_target(&model(opset, graph.clone()));
    }
}

#[test]
fn no_sum_that_broadcasts_is_written_where_the_runtime_has_none() {
    let weights = |dims: &[i64]| {
        let count = dims.iter().product::<i64>();
        floats("w", dims, (0..count).map(|i| (i % 7) as f32 / 7.0 - 0.4))
    };
    let of = |nodes: Vec<NodeProto>, w: TensorProto, x: &[i64], y: &[i64]| GraphProto {
        node: nodes,
        initializer: vec![w],
        input: vec![value("x", DataType::Float, x)],
        output: vec![value("y", DataType::Float, y)],
        ..GraphProto::default()
    };
    let turned = |x: &str, y: &str| op("Transpose", &[x], y, vec![ints("perm", &[1, 0])]);
    let images = of(vec![op("Conv", &["x", "w"], "y", vec![])], weights(&[8, 4, 3, 3]), &[1, 4, 6, 5], &[1, 8, 4, 3]);
    let volumes =
        of(vec![op("Conv", &["x", "w"], "y", vec![])], weights(&[8, 4, 3, 3, 3]), &[1, 4, 5, 6, 5], &[1, 8, 3, 4, 3]);
    let product = vec![turned("x", "a"), turned("w", "b"), op("MatMul", &["a", "b"], "y", vec![])];
    let product = of(product, weights(&[8, 10]), &[10, 4], &[4, 8]);
    for graph in [images, volumes, product] {
        for opset in [6, 7] {
            runs_for_every_target(&model(opset, graph.clone()));
        }
    }
}

/// What `onnx` writes of a model, which is not loaded.
fn written(bytes: &[u8]) -> GraphProto {
    written_for("onnx", bytes)
}

fn written_for(name: &str, bytes: &[u8]) -> GraphProto {
    let target = target(name).expect("a built-in target");
    let outcome = common::optimized_for(target.as_ref(), bytes, &BTreeMap::new()).expect("it is optimized");
    ModelProto::decode(outcome.bytes.as_slice()).expect("a model").graph.expect("it has a graph")
}

fn producer<'g>(graph: &'g GraphProto, name: &str) -> Option<&'g NodeProto> {
    graph.node.iter().find(|n| n.output.iter().any(|output| output == name))
}

#[test]
fn a_transpose_is_not_moved_across_a_cast_to_halves_in_front_of_a_product() {
    let halves =
        tensor("w", DataType::Float16, &[4, 3], [0x3c00_u16; 12].into_iter().flat_map(u16::to_le_bytes).collect());
    let graph = GraphProto {
        node: vec![
            op("Transpose", &["x"], "t", vec![ints("perm", &[1, 0, 2])]),
            op("Relu", &["t"], "r", vec![]),
            op("Cast", &["r"], "c", vec![int("to", DataType::Float16 as i64)]),
            op("MatMul", &["c", "w"], "y", vec![]),
        ],
        initializer: vec![halves],
        input: vec![value("x", DataType::Float, &[2, 5, 4])],
        output: vec![value("y", DataType::Float16, &[5, 2, 3])],
        ..GraphProto::default()
    };
    let written = written(&model(17, graph));
    let product = written.node.iter().find(|n| n.op_type() == "MatMul").expect("the product is there");
    let before = producer(&written, &product.input[0]).map(|n| n.op_type().to_owned());
    assert_ne!(before.as_deref(), Some("Transpose"));
}

#[test]
fn a_transpose_behind_a_dequantization_by_blocks_stays_there() {
    let scales = floats("s", &[2, 2, 2], (1..=8).map(|i| i as f32 / 2.0));
    let graph = GraphProto {
        node: vec![
            op("DequantizeLinear", &["x", "s"], "d", vec![int("axis", 2), int("block_size", 4)]),
            op("Transpose", &["d"], "y", vec![ints("perm", &[0, 2, 1])]),
            op("Transpose", &["d"], "v", vec![ints("perm", &[2, 1, 0])]),
        ],
        initializer: vec![scales],
        input: vec![value("x", DataType::Int8, &[2, 2, 8])],
        output: vec![value("y", DataType::Float, &[2, 8, 2]), value("v", DataType::Float, &[8, 2, 2])],
        ..GraphProto::default()
    };
    let bytes = in_ir(10, &model(21, graph));
    let written = written(&bytes);
    let blocked = written.node.iter().find(|n| n.op_type() == "DequantizeLinear").expect("it is there");
    assert!(producer(&written, &blocked.input[0]).is_none());
    runs_for_every_target(&bytes);
}

/// An image whose channels lie last, padded by one at the top and left, then a pool that wants them first.
fn padded_pool(opset: i64, value_of_pads: Option<f32>, pool: NodeProto, side: i64) -> Vec<u8> {
    let operands: &[&str] = if value_of_pads.is_some() { &["x", "pads", "value"] } else { &["x", "pads"] };
    let places = side / 2 + 1;
    let graph = GraphProto {
        node: vec![
            op("Pad", operands, "p", vec![]),
            op("Transpose", &["p"], "t", vec![ints("perm", &[0, 3, 1, 2])]),
            pool,
            op("Transpose", &["m"], "y", vec![ints("perm", &[0, 2, 3, 1])]),
        ],
        initializer: [integers("pads", &[8], &[0, 1, 1, 0, 0, 0, 0, 0])]
            .into_iter()
            .chain(value_of_pads.map(|x| floats("value", &[], [x])))
            .collect(),
        input: vec![value("x", DataType::Float, &[1, side, side, 3])],
        output: vec![value("y", DataType::Float, &[1, places, places, 3])],
        ..GraphProto::default()
    };
    model(opset, graph)
}

#[test]
fn no_pad_of_zeros_comes_in_front_of_a_pool_that_would_take_it_in() {
    let max = || op("MaxPool", &["t"], "m", vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])]);
    let mean = {
        let window = [ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2]), int("ceil_mode", 1)];
        op("AveragePool", &["t"], "m", window.to_vec())
    };
    // All of them are less than what is padded with.
    let below = |side: i64| {
        let numbers = (0..side * side * 3).map(|i| -1.0 - i as f32 / 100.0).collect();
        [Tensor::new("x", vec![1, side, side, 3], Data::F32(numbers)).expect("an image")]
    };
    for opset in [13, 17, 21] {
        runs_on(&padded_pool(opset, None, max(), 5), Some(&below(5)));
        runs_on(&padded_pool(opset, Some(0.0), max(), 5), Some(&below(5)));
    }
    runs_on(&padded_pool(17, None, mean, 6), Some(&below(6)));
    // What no runtime takes in still moves: the Transposes go.
    let least = padded_pool(17, Some(f32::MIN), max(), 5);
    runs_on(&least, Some(&below(5)));
    assert!(written(&least).node.iter().all(|n| n.op_type() != "Transpose" || n.input[0] != "p"));
}

/// A model that says another version of the format.
fn in_ir(version: i64, bytes: &[u8]) -> Vec<u8> {
    let mut model = ModelProto::decode(bytes).expect("a model");
    model.ir_version = Some(version);
    model.encode_to_vec()
}

#[test]
fn views_are_not_moved_behind_dequantized_signed_bytes() {
    let weights = floats("w", &[4, 4, 1, 1], (1..=16).map(|i| i as f32 / 16.0));
    let graph = GraphProto {
        node: vec![
            op("Transpose", &["x"], "t", vec![ints("perm", &[0, 3, 1, 2])]),
            op("QuantizeLinear", &["t", "s", "z"], "q", vec![]),
            op("DequantizeLinear", &["q", "s", "z"], "d", vec![]),
            op("Conv", &["d", "w"], "c", vec![]),
            op("Mish", &["c"], "r", vec![]),
            op("Conv", &["r", "w"], "e", vec![]),
            op("Transpose", &["e"], "y", vec![ints("perm", &[0, 2, 3, 1])]),
        ],
        initializer: vec![weights, floats("s", &[], [0.05]), tensor("z", DataType::Int8, &[], vec![0])],
        input: vec![value("x", DataType::Float, &[1, 8, 8, 4])],
        output: vec![value("y", DataType::Float, &[1, 8, 8, 4])],
        ..GraphProto::default()
    };
    runs_for_every_target(&in_ir(10, &model(21, graph)));
}

/// Signed bytes that are dequantized, and what follows, with a convolution last. The sizes of images are open.
fn dequantized(follows: Vec<NodeProto>) -> Vec<u8> {
    let mut node = vec![op("DequantizeLinear", &["x", "s", "z"], "d", vec![])];
    node.extend(follows);
    let graph = GraphProto {
        node,
        initializer: vec![
            floats("w", &[16, 16, 1, 1], (1..=256).map(|i| (i % 9) as f32 / 16.0)),
            floats("b", &[16], (1..=16).map(|i| i as f32 / 16.0)),
            floats("s", &[], [0.05]),
            tensor("z", DataType::Int8, &[], vec![0]),
        ],
        input: vec![value("x", DataType::Int8, &[1, 16, -1, -1])],
        output: vec![value("y", DataType::Float, &[1, 16, -1, -1])],
        ..GraphProto::default()
    };
    in_ir(10, &model(21, graph))
}

#[test]
fn a_file_with_functions_has_no_normalization_of_dequantized_signed_bytes() {
    let groups = op("GroupNormalization", &["d", "b", "b"], "g", vec![int("num_groups", 4)]);
    let turned = [
        op("Transpose", &["d"], "t", vec![ints("perm", &[0, 2, 3, 1])]),
        op("Transpose", &["t"], "u", vec![ints("perm", &[0, 3, 1, 2])]),
        op("GroupNormalization", &["u", "b", "b"], "g", vec![int("num_groups", 4)]),
    ];
    for normalized in [vec![groups], turned.into()] {
        let follows = [
            op("Conv", &["g", "w"], "c", vec![]),
            op("Relu", &["c"], "r", vec![]),
            op("Conv", &["r", "w"], "y", vec![]),
        ];
        runs_for_every_target(&dequantized([normalized, follows.into()].concat()));
    }
}

/// A branch that convolves a dequantized value of [2, 1, 5, 3] along its rows and leaves it as it lay.
fn convolved_rows(branch: &str) -> AttributeProto {
    let [t, c, y] = ["t", "c", "y"].map(|stem| format!("{stem}_{branch}"));
    let nodes = vec![
        op("Transpose", &["d"], &t, vec![ints("perm", &[0, 2, 3, 1])]),
        op("Conv", &[&t, "w"], &c, vec![]),
        op("Transpose", &[&c], &y, vec![ints("perm", &[0, 3, 1, 2])]),
    ];
    body(branch, nodes, vec![], vec![value(&y, DataType::Float, &[2, 1, 5, 3])])
}

/// The Transposes of one element can be Reshapes in front of the branches, where the runtime may not have a view. Nothing is loaded here
/// that has one.
#[test]
fn no_view_of_a_dequantized_value_is_read_in_a_body() {
    let branches = vec![convolved_rows("then_branch"), convolved_rows("else_branch")];
    let graph = GraphProto {
        node: vec![op("DequantizeLinear", &["x", "s", "z"], "d", vec![]), op("If", &["k"], "y", branches)],
        initializer: vec![
            floats("w", &[5, 5, 1, 1], (0..25).map(|i| (i % 7) as f32 / 7.0 - 0.4)),
            floats("s", &[], [0.25]),
            bytes("z", &[], 130),
        ],
        input: vec![value("x", DataType::Uint8, &[2, 1, 5, 3]), value("k", DataType::Bool, &[])],
        output: vec![value("y", DataType::Float, &[2, 1, 5, 3])],
        ..GraphProto::default()
    };
    for name in BUILTIN {
        let target = target(name).expect("a built-in target");
        let outcome = common::optimized_for(target.as_ref(), &model(20, graph.clone()), &BTreeMap::new())
            .expect("it is optimized");
        let written = ModelProto::decode(outcome.bytes.as_slice()).expect("a model").graph.expect("it has a graph");
        let views: Vec<&str> =
            written.node.iter().map(NodeProto::op_type).filter(|&op| op == "Reshape" || op == "Transpose").collect();
        assert_eq!(views, [""; 0], "{name}");
    }
}

#[test]
fn what_is_nothing_on_load_does_not_hide_dequantized_signed_bytes() {
    for nothing in ["Identity", "Dropout"] {
        let follows = vec![
            op(nothing, &["d"], "i", vec![]),
            op("Conv", &["i", "w"], "c", vec![]),
            op("Mish", &["c"], "r", vec![]),
            op("Conv", &["r", "w"], "e", vec![]),
            op("Transpose", &["e"], "t", vec![ints("perm", &[0, 2, 3, 1])]),
            op("Softmax", &["t"], "n", vec![int("axis", 3)]),
            op("Transpose", &["n"], "y", vec![ints("perm", &[0, 3, 1, 2])]),
        ];
        runs_for_every_target(&dequantized(follows));
    }
}

#[test]
fn texts_are_gathered_along_the_axis_along_which_they_were() {
    let graph = GraphProto {
        node: vec![
            op("Transpose", &["x"], "a", vec![ints("perm", &[0, 2, 1])]),
            op("Gather", &["a", "i"], "b", vec![int("axis", 2)]),
            op("Transpose", &["b"], "y", vec![ints("perm", &[0, 2, 1])]),
        ],
        input: vec![value("x", DataType::String, &[2, 3, 4]), value("i", DataType::Int64, &[2])],
        output: vec![value("y", DataType::String, &[2, 2, 4])],
        ..GraphProto::default()
    };
    let written = written(&model(17, graph));
    let gather = written.node.iter().find(|n| n.op_type() == "Gather").expect("it is there");
    let axis = gather.attribute.iter().find(|a| a.name() == "axis").map(AttributeProto::i);
    assert_eq!(axis, Some(2));
}

/// Two convolutions with a quantization between them, in front of which the value is an output as well.
fn left_and_quantized(opset: i64, told: &[AttributeProto], scale: TensorProto, zero: TensorProto) -> Vec<u8> {
    let graph = GraphProto {
        node: vec![
            op("Conv", &["x", "w"], "y", vec![]),
            op("QuantizeLinear", &["y", "s", "z"], "q", told.to_vec()),
            op("DequantizeLinear", &["q", "s", "z"], "d", told.to_vec()),
            op("Conv", &["d", "v"], "a", vec![]),
        ],
        initializer: vec![
            floats("w", &[16, 16, 3, 3], (0..2304).map(|i| (i % 11) as f32 / 11.0 - 0.4)),
            floats("v", &[16, 16, 1, 1], (0..256).map(|i| (i % 7) as f32 / 7.0 - 0.4)),
            scale,
            zero,
        ],
        input: vec![value("x", DataType::Float, &[1, 16, 6, 6])],
        output: vec![value("y", DataType::Float, &[1, 16, 4, 4]), value("a", DataType::Float, &[1, 16, 4, 4])],
        ..GraphProto::default()
    };
    model(opset, graph)
}

fn bytes(name: &str, dims: &[i64], number: u8) -> TensorProto {
    let count = dims.iter().product::<i64>() as usize;
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(DataType::Uint8 as i32),
        raw_data: Some(vec![number; count].into()),
        ..TensorProto::default()
    }
}

#[test]
fn an_output_is_not_put_in_front_of_a_transpose_and_a_quantization() {
    runs_for_every_target(&left_and_quantized(17, &[], floats("s", &[], [0.25]), bytes("z", &[], 128)));
}

#[test]
fn an_output_that_is_a_copy_is_not_put_in_front_of_a_transpose_and_a_quantization() {
    let graph = GraphProto {
        node: vec![
            op("Conv", &["x", "w"], "c", vec![]),
            op("Where", &["k", "x", "c"], "v", vec![]),
            op("Identity", &["v"], "y", vec![]),
            op("Transpose", &["v"], "t", vec![ints("perm", &[0, 2, 3, 1])]),
            op("QuantizeLinear", &["t", "s", "z"], "q", vec![]),
            op("DequantizeLinear", &["q", "s", "z"], "a", vec![]),
        ],
        initializer: vec![
            floats("w", &[16, 16, 1, 1], (0..256).map(|i| (i % 7) as f32 / 7.0 - 0.4)),
            tensor("k", DataType::Bool, &[1, 16, 1, 1], [0, 1].repeat(8)),
            floats("s", &[], [0.25]),
            bytes("z", &[], 128),
        ],
        input: vec![value("x", DataType::Float, &[1, 16, 6, 6])],
        output: vec![value("y", DataType::Float, &[1, 16, 6, 6]), value("a", DataType::Float, &[1, 6, 6, 16])],
        ..GraphProto::default()
    };
    runs_for_every_target(&model(17, graph));
}

#[test]
fn no_transpose_comes_to_a_quantization_by_blocks() {
    let told = [int("axis", 2), int("block_size", 2)];
    let scales = floats("s", &[1, 16, 2, 4], (0..128).map(|i| 0.1 + i as f32 / 256.0));
    runs_for_every_target(&left_and_quantized(21, &told, scales, bytes("z", &[1, 16, 2, 4], 128)));
}

/// `x` quantized and back, moved channels first, in other units and back, and convolved.
fn quantized_twice() -> Vec<u8> {
    let node = vec![
        op("QuantizeLinear", &["x", "s", "z"], "q", vec![]),
        op("DequantizeLinear", &["q", "s", "z"], "a", vec![]),
        op("Transpose", &["a"], "b", vec![ints("perm", &[0, 3, 1, 2])]),
        op("QuantizeLinear", &["b", "r", "z"], "p", vec![]),
        op("DequantizeLinear", &["p", "r", "z"], "c", vec![]),
        op("Conv", &["c", "w"], "y", vec![]),
    ];
    let graph = GraphProto {
        node,
        initializer: vec![
            floats("w", &[8, 16, 1, 1], (0..128).map(|i| (i % 7) as f32 / 7.0 - 0.4)),
            floats("s", &[], [0.1]),
            floats("r", &[], [0.13]),
            bytes("z", &[], 120),
        ],
        input: vec![value("x", DataType::Float, &[1, 5, 6, 16])],
        output: vec![value("y", DataType::Float, &[1, 8, 5, 6])],
        ..GraphProto::default()
    };
    model(17, graph)
}

#[test]
fn no_pair_comes_right_behind_another_one_of_other_units() {
    let made = written_for("nhwc", &quantized_twice());
    let quantized = producer(&made, "p").expect("it is quantized");
    assert_eq!(producer(&made, &quantized.input[0]).map(NodeProto::op_type), Some("Transpose"));
    runs_for_every_target(&quantized_twice());
}

#[test]
fn no_pair_comes_right_behind_another_one_of_which_an_output_kept_it_apart() {
    let graph = GraphProto {
        node: vec![
            op("Conv", &["x", "w"], "u", vec![]),
            op("QuantizeLinear", &["u", "s", "z"], "q", vec![]),
            op("DequantizeLinear", &["q", "s", "z"], "a", vec![]),
            op("Transpose", &["a"], "b", vec![ints("perm", &[0, 2, 3, 1])]),
            op("QuantizeLinear", &["b", "r", "z"], "p", vec![]),
            // As an output it keeps the Transpose in front of its pair, which would cancel with the next one.
            op("DequantizeLinear", &["p", "r", "z"], "c", vec![]),
            op("Transpose", &["c"], "d", vec![ints("perm", &[0, 3, 1, 2])]),
            op("Conv", &["d", "w"], "y", vec![]),
        ],
        initializer: vec![
            floats("w", &[16, 16, 1, 1], (0..256).map(|i| (i % 7) as f32 / 7.0 - 0.4)),
            floats("s", &[], [0.1]),
            floats("r", &[], [0.13]),
            bytes("z", &[], 120),
        ],
        input: vec![value("x", DataType::Float, &[1, 16, 5, 6])],
        output: vec![value("c", DataType::Float, &[1, 5, 6, 16]), value("y", DataType::Float, &[1, 16, 5, 6])],
        ..GraphProto::default()
    };
    runs_for_every_target(&model(17, graph));
}

#[test]
fn no_cast_comes_right_in_front_of_a_normalization_that_is_written_out() {
    let mean = |x: &str, y: &str| op("ReduceMean", &[x], y, vec![ints("axes", &[3]), int("keepdims", 1)]);
    let graph = GraphProto {
        node: vec![
            op("Conv", &["x", "w"], "u", vec![]),
            op("Cast", &["u"], "h", vec![int("to", i64::from(DataType::Double as i32))]),
            op("Cast", &["h"], "c", vec![int("to", i64::from(DataType::Float as i32))]),
            op("Transpose", &["c"], "t", vec![ints("perm", &[0, 2, 3, 1])]),
            mean("t", "m"),
            op("Sub", &["t", "m"], "s", vec![]),
            op("Pow", &["s", "two"], "p", vec![]),
            mean("p", "v"),
            op("Add", &["v", "e"], "ve", vec![]),
            op("Sqrt", &["ve"], "q", vec![]),
            op("Div", &["s", "q"], "d", vec![]),
            op("Mul", &["d", "g"], "f", vec![]),
            op("Add", &["f", "b"], "y", vec![]),
        ],
        initializer: vec![
            floats("w", &[16, 16, 1, 1], (0..256).map(|i| (i % 7) as f32 / 7.0 - 0.4)),
            floats("two", &[], [2.0]),
            floats("e", &[], [1e-5]),
            floats("g", &[16], (0..16).map(|i| 1.0 + i as f32 / 16.0)),
            floats("b", &[16], (0..16).map(|i| i as f32 / 32.0)),
        ],
        input: vec![value("x", DataType::Float, &[1, 16, 5, 6])],
        output: vec![value("y", DataType::Float, &[1, 5, 6, 16])],
        ..GraphProto::default()
    };
    runs_for_every_target(&model(17, graph));
}

#[test]
fn no_unit_of_scales_for_an_axis_is_written() {
    let graph = GraphProto {
        node: vec![
            op("DequantizeLinear", &["x", "s", "z"], "d", vec![int("axis", 1)]),
            op("PRelu", &["d", "a"], "r", vec![]),
            op("Transpose", &["r"], "t", vec![ints("perm", &[0, 2, 3, 1])]),
            op("QuantizeLinear", &["t", "o", "p"], "y", vec![]),
        ],
        initializer: vec![
            floats("s", &[4], [0.1, 0.2, 0.3, 0.4]),
            bytes("z", &[4], 120),
            floats("a", &[1], [0.2]),
            floats("o", &[], [0.1]),
            bytes("p", &[], 128),
        ],
        input: vec![value("x", DataType::Uint8, &[1, 4, 5, 6])],
        output: vec![value("y", DataType::Uint8, &[1, 5, 6, 4])],
        ..GraphProto::default()
    };
    runs_for_every_target(&model(17, graph));
}

/// Numbers of a type that has no bytes of its own here, all of them zero.
fn zeros(name: &str, dtype: DataType, dims: &[i64], bytes: usize) -> TensorProto {
    tensor(name, dtype, dims, vec![0; bytes])
}

#[test]
fn no_view_without_a_kernel_comes_in_front_of_floats_of_8_bits() {
    // The pool has channels first, so moves become axes that come and go; the runtime would squeeze what is quantized.
    let graph = GraphProto {
        node: vec![
            op("Reshape", &["x", "apart"], "a", vec![]),
            op("Transpose", &["a"], "b", vec![ints("perm", &[0, 2, 1, 3])]),
            op("AveragePool", &["b"], "c", vec![ints("kernel_shape", &[1, 3]), ints("pads", &[0, 1, 0, 1])]),
            op("Transpose", &["c"], "d", vec![ints("perm", &[0, 2, 1, 3])]),
            op("Reshape", &["d", "joined"], "e", vec![]),
            op("QuantizeLinear", &["e", "s", "z"], "q", vec![]),
            op("DequantizeLinear", &["q", "s", "z"], "y", vec![]),
        ],
        initializer: vec![
            integers("apart", &[4], &[0, 0, 1, 6]),
            integers("joined", &[3], &[0, 0, 6]),
            floats("s", &[], [0.1]),
            zeros("z", DataType::Float8e4m3fn, &[], 1),
        ],
        input: vec![open_rows("x")],
        output: vec![open_rows("y")],
        ..GraphProto::default()
    };
    let bytes = in_ir(10, &model(21, graph));
    let made = written(&bytes);
    let quantized = producer(&made, "q").expect("it is quantized");
    assert_eq!(producer(&made, &quantized.input[0]).map(NodeProto::op_type), Some("Reshape"));
    runs_for_every_target(&bytes);
}

/// Floats of `[B, S, 6]`.
fn open_rows(name: &str) -> ValueInfoProto {
    info(name, DataType::Float, &[2, 3, 6], &BTreeMap::from([(0, "B"), (1, "S")]), true)
}

/// Bytes that are dequantized, by the Transpose of weights that are dequantized in units along axis 0.
fn product_of_units(weights: TensorProto) -> Vec<u8> {
    product_of(bytes("z", &[], 128), weights)
}

/// The same for numbers of the type of this zero.
fn product_of(zero: TensorProto, weights: TensorProto) -> Vec<u8> {
    let graph = GraphProto {
        node: vec![
            op("QuantizeLinear", &["x", "s", "z"], "q", vec![]),
            op("DequantizeLinear", &["q", "s", "z"], "a", vec![]),
            op("DequantizeLinear", &["w", "r"], "d", vec![int("axis", 0)]),
            op("Transpose", &["d"], "t", vec![ints("perm", &[1, 0])]),
            op("MatMul", &["a", "t"], "y", vec![]),
        ],
        initializer: vec![weights, floats("s", &[], [0.05]), floats("r", &[8], (1..=8).map(|i| i as f32 / 8.0)), zero],
        input: vec![value("x", DataType::Float, &[3, 8])],
        output: vec![value("y", DataType::Float, &[3, 8])],
        ..GraphProto::default()
    };
    in_ir(13, &model(25, graph))
}

#[test]
fn numbers_of_2_bits_are_not_turned_in_front_of_a_product_of_bytes() {
    let packed = (0..16).map(|i| [0b01_11_10_00, 0b00_10_01_11][i % 2]).collect();
    let narrow = product_of_units(tensor("w", DataType::Int2, &[8, 8], packed));
    let made = written(&narrow);
    assert_eq!(producer(&made, "t").map(NodeProto::op_type), Some("Transpose"));
    runs_for_every_target(&narrow);
    // Bytes are turned in the file: the runtime takes the units of what are columns then.
    let wide = product_of_units(tensor("w", DataType::Int8, &[8, 8], (0..64).collect()));
    assert!(written(&wide).node.iter().all(|node| node.op_type() != "Transpose"));
    runs_for_every_target(&wide);
}

/// The same with weights in units of blocks, whose Transpose the runtime leaves where it is.
fn in_blocks(product: &[u8]) -> Vec<u8> {
    let mut model = ModelProto::decode(product).expect("a model");
    let graph = model.graph.as_mut().expect("it has a graph");
    graph.initializer.retain(|held| held.name() != "r");
    graph.initializer.push(floats("r", &[8, 2], (1..=16).map(|i| i as f32 / 16.0)));
    let weights = graph.node.iter_mut().find(|node| node.output[0] == "d").expect("weights are dequantized");
    weights.attribute = vec![int("axis", 1), int("block_size", 4)];
    model.encode_to_vec()
}

#[test]
fn floats_of_8_bits_are_not_turned_in_front_of_a_product() {
    let (float, byte, short) = (DataType::Float8e4m3fn, DataType::Int8, DataType::Int16);
    for (left, right, stays) in
        [(float, float, true), (float, byte, true), (DataType::Uint8, float, true), (short, float, false)]
    {
        let zero = zeros("z", left, &[], if left == short { 2 } else { 1 });
        let model = in_blocks(&product_of(zero, tensor("w", right, &[8, 8], (0..64).collect())));
        let turns = written(&model).node.iter().any(|node| node.op_type() == "Transpose");
        assert_eq!(turns, stays, "{left:?} {right:?}");
        runs_for_every_target(&model);
    }
}

#[test]
fn bytes_with_scales_of_blocks_are_not_turned_in_front_of_a_product_of_bytes() {
    runs_for_every_target(&in_blocks(&product_of_units(tensor("w", DataType::Int8, &[8, 8], (0..64).collect()))));
}
