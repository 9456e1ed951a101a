//! What import refuses, and what it lets through because ONNX Runtime loads it.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    TensorProto, TypeProto, ValueInfoProto, type_proto,
};

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(op.to_owned()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: outputs.iter().map(ToString::to_string).collect(),
        ..NodeProto::default()
    }
}

fn typed(name: &str, elem_type: i32) -> ValueInfoProto {
    let tensor = type_proto::Tensor { elem_type: Some(elem_type), shape: None };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Int as i32),
        i: Some(value),
        ..AttributeProto::default()
    }
}

fn body(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(Box::new(graph)),
        ..AttributeProto::default()
    }
}

fn graph(nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    let output = outputs.iter().map(|name| typed(name, 1)).collect();
    GraphProto { node: nodes, output, name: Some("g".to_owned()), ..GraphProto::default() }
}

/// `x` to `y` by these nodes, in this opset.
fn model(nodes: Vec<NodeProto>, opset: i64) -> ModelProto {
    let graph = GraphProto { input: vec![typed("x", 1), typed("c", 9)], ..graph(nodes, &["y"]) };
    ModelProto { ir_version: Some(8), graph: Some(graph), opset_import: vec![set("", opset)], ..ModelProto::default() }
}

fn set(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) }
}

fn relu() -> ModelProto {
    model(vec![node("Relu", &["x"], &["y"])], 17)
}

fn with(mut model: ModelProto, change: impl FnOnce(&mut ModelProto, &mut GraphProto)) -> ModelProto {
    let mut graph = model.graph.take().expect("it has one");
    change(&mut model, &mut graph);
    model.graph = Some(graph);
    model
}

fn branches(then: GraphProto, or_else: GraphProto) -> ModelProto {
    let mut node = node("If", &["c"], &["y"]);
    node.attribute = vec![body("then_branch", then), body("else_branch", or_else)];
    model(vec![node], 17)
}

fn local(op: &str) -> NodeProto {
    NodeProto { domain: Some("local".to_owned()), ..node(op, &["x"], &["y"]) }
}

fn function(nodes: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        name: Some("F".to_owned()),
        domain: Some("local".to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node: nodes,
        opset_import: vec![set("", 17), set("local", 1)],
        ..FunctionProto::default()
    }
}

fn calling(functions: Vec<FunctionProto>) -> ModelProto {
    let opset_import = vec![set("", 17), set("local", 1)];
    ModelProto { functions, opset_import, ..model(vec![local("F")], 17) }
}

fn tensor(name: &str, dims: &[i64], bytes: usize) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(1),
        raw_data: Some(Bytes::from(vec![0; bytes])),
        ..TensorProto::default()
    }
}

/// The problems of a model, in one line.
fn problems(model: &ModelProto) -> String {
    let file = ModelFile::from_bytes(model.encode_to_vec().into(), None).expect("it can be decoded");
    import(&Arc::new(file)).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_the_standard_does_not_allow_is_refused_with_its_cause() {
    let attribute = |a: AttributeProto| {
        with(relu(), |_, graph| {
            graph.node[0].op_type = Some("Softmax".to_owned());
            graph.node[0].attribute.push(a);
        })
    };
    let empty = || graph(vec![], &[]);
    let cases = [
        (model(vec![node("Reluu", &["x"], &["y"])], 17), "`Reluu` is not an operator of the ONNX standard (opset 17)"),
        (model(vec![node("Gelu", &["x"], &["y"])], 17), "`Gelu` is an operator only from opset 20 on"),
        (model(vec![node("Upsample", &["x", "x"], &["y"])], 17), "`Upsample` is not an operator since opset 10"),
        (model(vec![node("Relu", &["x", "x"], &["y"])], 17), "has 2 inputs, and the operator takes 1"),
        (model(vec![node("Conv", &["x"], &["y"])], 17), "has 1 inputs, and the operator takes 2 to 3"),
        (model(vec![node("Relu", &[""], &["y"])], 17), "input 0 is left out"),
        (model(vec![node("Constant", &[], &["y"])], 17), "has no value"),
        (model(vec![node("Cast", &["x"], &["y"])], 17), "the attribute `to` is required"),
        (attribute(int("colour", 1)), "no attribute `colour`"),
        (
            attribute(AttributeProto { r#type: Some(2), i: Some(1), f: Some(1.0), ..int("axis", 1) }),
            "but holds a float",
        ),
        (attribute(AttributeProto { r#type: None, ..int("axis", 1) }), "does not say of which kind"),
        (
            attribute(AttributeProto { r#type: Some(1), i: None, f: Some(1.0), ..int("axis", 1) }),
            "attribute `axis` is a float, and the operator takes an integer",
        ),
        (branches(graph(vec![node("Relu", &["x"], &["a"])], &["a"]), empty()), "its branches have 1 and 0 outputs"),
        (branches(graph(vec![], &["x"]), graph(vec![], &["x"])), "output `x` of a body is a value from outside"),
        (branches(graph(vec![node("Relu", &["c"], &["x"])], &["x"]), graph(vec![], &[])), "defines `x`"),
        (model(vec![NodeProto { domain: Some("z".to_owned()), ..node("Q", &["x"], &["y"]) }], 17), "its domain `z`"),
        (calling(vec![function(vec![local("F")])]), "function `F` calls itself"),
        (calling(vec![function(vec![node("Relu", &["x"], &["y"])]); 2]), "function `F` is there twice"),
        (calling(vec![function(vec![node("Reluu", &["x"], &["y"])])]), "in function `F`: node 0 (Reluu -> `y`)"),
        (
            calling(vec![function(vec![node("Relu", &["q"], &["y"])])]),
            "in function `F`: node 0 (Relu -> `y`) reads `q`",
        ),
        (with(relu(), |_, graph| graph.input[0] = typed("x", 99)), "value `x` has element type 99"),
        (with(relu(), |_, graph| graph.input[0].r#type = None), "graph input `x` has no type"),
        (with(relu(), |model, _| model.ir_version = Some(99)), "IR version 99"),
        (with(relu(), |model, _| model.opset_import.clear()), "imports no operator set"),
        (
            with(relu(), |_, graph| {
                graph.input.push(typed("w", 11));
                graph.initializer.push(tensor("w", &[1], 4));
            }),
            "initializer `w` is f32[1], but the input of its name is f64",
        ),
        (
            with(model(vec![node("Add", &["x", "w"], &["y"])], 17), |_, graph| {
                graph.initializer.push(tensor("w", &[2], 4));
            }),
            "dims and type need 8 bytes",
        ),
    ];
    for (model, cause) in cases {
        let found = problems(&model);
        assert!(found.contains(cause), "{cause}: {found:?}");
    }
}

#[test]
fn what_onnx_runtime_loads_is_let_through() {
    let shadowing = |name: &str| {
        let branch = graph(vec![node("Relu", &["x"], &[name])], &[name]);
        with(branches(branch.clone(), branch), |_, graph| graph.node.push(node("Neg", &["y"], &["late"])))
    };
    let cases = [
        ("an operator of an opset newer than the table", model(vec![node("Reluu", &["x"], &["y"])], 99)),
        ("an operator that only ONNX Runtime has", model(vec![node("Affine", &["x"], &["y"])], 7)),
        ("a domain that ONNX Runtime imports itself", {
            model(vec![NodeProto { domain: Some("com.microsoft".to_owned()), ..node("Gelu", &["x"], &["y"]) }], 17)
        }),
        ("one name in two branches", shadowing("a")),
        ("a body's name that is defined outside later", shadowing("late")),
        ("an attribute of the runtime's own", {
            with(relu(), |_, graph| graph.node[0].attribute.push(int("__hidden", 1)))
        }),
        ("broken functions that nobody calls", {
            ModelProto { functions: vec![function(vec![node("Reluu", &["q"], &["y"])])], ..relu() }
        }),
        ("an initializer twice", {
            with(relu(), |_, graph| graph.initializer = vec![tensor("w", &[1], 4), tensor("w", &[1], 4)])
        }),
        ("data of another length that nothing reads", {
            with(relu(), |_, graph| graph.initializer = vec![tensor("w", &[2], 4)])
        }),
        ("an initializer without a name", with(relu(), |_, graph| graph.initializer = vec![tensor("", &[1], 4); 2])),
        ("a sparse initializer", {
            with(model(vec![node("Relu", &["s"], &["y"])], 17), |_, graph| {
                let indices =
                    TensorProto { data_type: Some(7), int64_data: vec![3], dims: vec![1], ..TensorProto::default() };
                let values = Some(tensor("s", &[1], 4));
                graph.sparse_initializer.push(SparseTensorProto { values, indices: Some(indices), dims: vec![16] });
            })
        }),
        ("an operator set that nothing uses, without a version", {
            with(relu(), |model, _| model.opset_import.push(set("unused", 0)))
        }),
    ];
    for (what, model) in cases {
        assert_eq!(problems(&model), "", "{what}");
    }
}
