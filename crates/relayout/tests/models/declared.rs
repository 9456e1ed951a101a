//! Models that declare what they do not compute, which readers let pass: what is made of them can be optimized again.

use prost::Message as _;
use relayout::targets::BUILTIN;
use relayout::{Model, Options, optimize, target};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::op::bind;
use relayout_ir::types::Type;
use relayout_onnx::export::export;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto::AttributeType, tensor_shape_proto, type_proto,
};
use std::sync::Arc;

pub(crate) fn node(op: &str, domain: &str, input: &str, output: &str, perm: Option<[i64; 4]>) -> NodeProto {
    let attribute = |ints: [i64; 4]| {
        let name = Some("perm".to_owned());
        AttributeProto { name, r#type: Some(7), ints: ints.to_vec(), ..AttributeProto::default() }
    };
    NodeProto {
        op_type: Some(op.to_owned()),
        domain: Some(domain.to_owned()),
        input: vec![input.to_owned()],
        output: vec![output.to_owned()],
        attribute: perm.map(attribute).into_iter().collect(),
        ..NodeProto::default()
    }
}

/// A tensor with these extents; one below zero is not known.
pub(crate) fn port(name: &str, shape: &[i64]) -> ValueInfoProto {
    let dim = |&n: &i64| {
        let value = (n >= 0).then_some(tensor_shape_proto::dimension::Value::DimValue(n));
        tensor_shape_proto::Dimension { value, denotation: None }
    };
    let shape = Some(TensorShapeProto { dim: shape.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(1), shape };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Two Transposes around the call of a function that is a Relu; `y` has the shape that is declared for it, or another.
fn around_a_call(y: &[i64]) -> Vec<u8> {
    let imports = |domains: &[&str]| -> Vec<OperatorSetIdProto> {
        let import = |domain: &&str| OperatorSetIdProto {
            domain: Some((*domain).to_owned()),
            version: Some(if domain.is_empty() { 13 } else { 1 }),
        };
        domains.iter().map(import).collect()
    };
    let function = FunctionProto {
        name: Some("both".to_owned()),
        domain: Some("local".to_owned()),
        input: vec!["a".to_owned()],
        output: vec!["b".to_owned()],
        node: vec![node("Relu", "", "a", "b", None)],
        opset_import: imports(&[""]),
        ..FunctionProto::default()
    };
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![
            node("Transpose", "", "x", "t", Some([0, 2, 3, 1])),
            node("both", "local", "t", "a", None),
            node("Transpose", "", "a", "y", Some([0, 3, 1, 2])),
        ],
        input: vec![port("x", &[2, 3, 4, 5])],
        output: vec![port("y", y), port("a", &[2, 4, 5, 3])],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        functions: vec![function],
        opset_import: imports(&["", "local"]),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

/// A model of this graph, without functions.
fn of_graph(graph: GraphProto) -> Vec<u8> {
    let mut model = ModelProto::decode(&*around_a_call(&[2, 3, 4, 5])).expect("it is a model");
    model.functions.clear();
    model.graph = Some(graph);
    model.encode_to_vec()
}

fn optimized(bytes: &[u8]) -> Result<Vec<u8>, relayout::Error> {
    let model = Model::from_bytes(bytes.to_vec().into(), None)?;
    let onnx = target("onnx").expect("it is built in");
    optimize(&model, onnx.as_ref(), &Options::default())?.to_bytes()
}

#[test]
fn what_a_call_makes_may_be_declared_with_another_rank() {
    for declared in [&[2, 3, 4, 5][..], &[2, 4, 5]] {
        let before = around_a_call(declared);
        let once = optimized(&before).expect("readers let it pass");
        assert!(once != before, "a Transpose goes");
        assert!(optimized(&once).expect("the result is a model") == once, "nothing changes again");
    }
}

#[test]
fn a_permutation_that_fits_nowhere_is_still_refused() {
    let mut model = ModelProto::decode(&*around_a_call(&[2, 3, 4, 5])).expect("it is a model");
    let graph = model.graph.as_mut().expect("it has a graph");
    graph.node[2].attribute[0].ints.pop();
    let refused = optimized(&model.encode_to_vec()).expect_err("`a` has four axes");
    assert!(refused.to_string().contains("not a permutation of 4 axes"), "{refused}");
}

#[test]
fn what_only_a_function_contradicts_stays_as_it_was_read() {
    // The function makes a matrix of cubes, and all that reads it takes four axes.
    let mut model = ModelProto::decode(&*around_a_call(&[2, 3, 4, 5])).expect("it is a model");
    model.functions[0].node = vec![node("Relu", "", "a", "r", None), node("Transpose", "", "r", "b", None)];
    let graph = model.graph.as_mut().expect("it has a graph");
    graph.input = vec![port("x", &[3, 4, 5])];
    graph.node = vec![
        node("both", "local", "x", "a", None),
        node("Transpose", "", "a", "y", None),
        node("Transpose", "", "y", "z", Some([2, 0, 3, 1])),
    ];
    let before = model.encode_to_vec();
    let once = optimized(&before).expect("readers that do not look into functions let it pass");
    assert!(optimized(&once).expect("the result is a model") == once, "nothing changes again");
}

#[test]
fn what_does_not_broadcast_stays_as_it_was_read() {
    // Without what is declared for `t`, `x` would broadcast to five axes, which the last Transpose does not take.
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![
            node("Transpose", "", "x", "t", Some([3, 2, 1, 0])),
            node("Shape", "", "z", "h", None),
            NodeProto { input: vec!["t".to_owned(), "h".to_owned()], ..node("Expand", "", "", "e", None) },
            node("Transpose", "", "e", "y", Some([0, 3, 1, 2])),
        ],
        input: vec![port("x", &[-1, -1, 1, 5]), port("z", &[-1, -1, 5, 3, 64])],
        output: vec![port("y", &[1, 3, 4, 5])],
        value_info: vec![port("t", &[5, 1, 5, 3]), port("e", &[1, 4, 5, 3])],
        ..GraphProto::default()
    };
    let once = optimized(&of_graph(graph)).expect("readers let it pass");
    assert!(optimized(&once).expect("the result is a model") == once, "nothing changes again");
}

#[test]
fn what_contradicts_itself_where_a_move_is_gone_stays_as_it_was_read() {
    // `t` is declared with as many elements as do not fill the shape. Its Transpose would be written without what is declared, and the
    // shape has more axes than the last Transpose takes.
    let shape = TensorProto {
        name: Some("s".to_owned()),
        dims: vec![5],
        data_type: Some(7),
        int64_data: vec![0, 3, 3, 0, 1],
        ..TensorProto::default()
    };
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![
            node("Transpose", "", "x", "t", Some([3, 2, 1, 0])),
            NodeProto { input: vec!["t".to_owned(), "s".to_owned()], ..node("Reshape", "", "", "r", None) },
            node("Transpose", "", "r", "y", Some([0, 2, 3, 1])),
        ],
        input: vec![port("x", &[-1, 3, 4, 5])],
        output: vec![port("y", &[2, 3, 4, 5])],
        initializer: vec![shape],
        value_info: vec![port("t", &[2, 4, 5, 3]), port("r", &[2, 5, 3, 4])],
        ..GraphProto::default()
    };
    let before = of_graph(graph);
    let model = Model::from_bytes(before.clone().into(), None).expect("readers let it pass");
    let made = optimize(&model, target("onnx").expect("it is built in").as_ref(), &Options::default());
    let made = made.expect("what can't be is not seen yet");
    assert_eq!(
        made.report().summary(),
        "unchanged: it contradicts itself, which shows where a move is gone: \
         Transpose -> `y`: `perm` [0, 2, 3, 1] is not a permutation of 5 axes"
    );
    assert!(made.to_bytes().expect("it is written") == before);
}

#[test]
fn what_a_body_contradicts_where_a_move_is_gone_stays_as_it_was_read() {
    // The state is given with five axes and declared with four, which only the Transposes of the body rely on.
    let named = |name: &str| ValueInfoProto { name: Some(name.to_owned()), ..ValueInfoProto::default() };
    let body = GraphProto {
        name: Some("step".to_owned()),
        node: vec![
            node("Transpose", "", "s", "a", Some([0, 2, 3, 1])),
            node("Relu", "", "a", "b", None),
            node("Transpose", "", "b", "o", Some([0, 3, 1, 2])),
            node("Identity", "", "go", "on", None),
        ],
        input: vec![named("i"), named("go"), port("s", &[2, 3, 4, 5])],
        output: vec![named("on"), port("o", &[2, 3, 4, 5])],
        ..GraphProto::default()
    };
    let body = AttributeProto {
        name: Some("body".to_owned()),
        g: Some(Box::new(body)),
        r#type: Some(AttributeType::Graph as i32),
        ..AttributeProto::default()
    };
    let looped = NodeProto {
        input: vec![String::new(), String::new(), "x".to_owned()],
        attribute: vec![body],
        ..node("Loop", "", "", "y", None)
    };
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![looped, node("Transpose", "", "y", "z", Some([1, 2, 0, 3]))],
        input: vec![port("x", &[2, 3, 4, 5, 3])],
        output: vec![named("z")],
        ..GraphProto::default()
    };
    let before = of_graph(graph);
    let model = Model::from_bytes(before.clone().into(), None).expect("readers let it pass");
    for name in BUILTIN {
        let made = optimize(&model, target(name).expect("it is built in").as_ref(), &Options::default());
        let made = made.expect("what can't be is not seen yet").to_bytes().expect("it is written");
        Model::from_bytes(made.clone().into(), None)
            .and_then(|model| optimize(&model, target(name).expect("it is built in").as_ref(), &Options::default()))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(*name != "onnx" || made == before);
    }
}

/// Channels may be filled up to whole blocks, and what the file said of them is wrong then.
#[test]
fn a_declared_extent_that_is_another_one_now_is_left_open() {
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![node("Relu", "", "x", "t", None), node("Relu", "", "t", "y", None)],
        input: vec![port("x", &[1, 45, 4, 4])],
        output: vec![port("y", &[1, 45, 4, 4])],
        value_info: vec![port("t", &[1, 45, 4, 4])],
        ..GraphProto::default()
    };
    let file = Arc::new(ModelFile::from_bytes(of_graph(graph).into(), None).expect("it is a model"));
    let mut model = import(&file).expect("it is imported");
    let t = model.graph.by_name("t").expect("it is there");
    *model.graph.value_mut(t).ty = Type::tensor(DType::F32, [1, 48, 4, 4].map(Dim::from).to_vec());
    let exported = export(&file, &model, &[]).expect("it is exported");
    let [info] = exported.proto.graph.as_ref().map_or(&[][..], |graph| &graph.value_info) else { panic!("one value") };
    assert_eq!(*info, port("t", &[1, -1, 4, 4]));
}

/// An end of a body may lie with its channels in parts, where one of its extents has no name.
#[test]
fn a_declared_input_in_parts_has_the_dims_that_are_stored() {
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![node("Relu", "", "x", "t", None), node("Relu", "", "t", "y", None)],
        input: vec![port("x", &[3, 28, -1])],
        output: vec![port("y", &[3, 28, -1])],
        value_info: vec![port("t", &[3, 28, -1])],
        ..GraphProto::default()
    };
    let file = Arc::new(ModelFile::from_bytes(of_graph(graph).into(), None).expect("it is a model"));
    let mut model = import(&file).expect("it is imported");
    for n in model.graph.order().expect("it has an order") {
        let form = bind(&model.graph, n);
        model.graph.set_form(n, form);
    }
    for name in ["x", "t", "y"] {
        let v = model.graph.by_name(name).expect("it is there");
        *model.graph.value_mut(v).layout = "N C%4 W C/4".parse().expect("it is a layout");
    }
    let exported = export(&file, &model, &[]).expect("it is exported");
    let graph = exported.proto.graph.expect("it has a graph");
    assert_eq!(graph.input, [port("x", &[3, 4, -1, 7])]);
    assert_eq!(graph.value_info, [port("t", &[3, 4, -1, 7])]);
}
