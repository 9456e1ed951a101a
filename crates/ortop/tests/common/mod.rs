//! What the tests of the library share: where it and the runtime are, and models with one node.
//!
//! The runtime is the one that `ORT_DYLIB_PATH` names, else the one in the project folder `.relayout/venv`. Without one the
//! tests fail and say how to get it; they are never skipped.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod files;

use ort::environment::Environment;
use prost::Message;
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use relayout_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TypeProto,
    ValueInfoProto, attribute_proto::AttributeType, type_proto,
};
use relayout_verify::{SearchPlaces, find_library};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// ONNX Runtime's library.
pub(crate) fn onnxruntime() -> PathBuf {
    let mut places = SearchPlaces::default();
    places.explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
    places.environment = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv")));
    find_library(&places).expect("these tests need ONNX Runtime: run tools/setup once")
}

/// The library under test, of this build.
pub(crate) fn library() -> PathBuf {
    let name = format!("{}relayout_ortop{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let test = std::env::current_exe().expect("a path");
    let beside = test.ancestors().map(|folder| folder.join(&name)).find(|path| path.is_file());
    beside.unwrap_or_else(|| panic!("cargo built no {name} above {}", test.display()))
}

/// The runtime's environment of this process.
pub(crate) fn environment() -> &'static Environment {
    static MADE: OnceLock<Environment> = OnceLock::new();
    MADE.get_or_init(|| {
        let builder = ort::init_from(onnxruntime()).expect("ONNX Runtime loads");
        builder.with_telemetry(false).with_logger(Arc::new(|_, _, _, _, _| {})).build().expect("an environment")
    })
}

/// Sessions are made one at a time: the runtime keeps the domains of custom ops in a list that two threads must not add to at once.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dim of a graph's input.
#[derive(Debug, Clone)]
pub(crate) enum Size {
    Known(i64),
    Named(&'static str),
}

pub(crate) fn known(shape: &[i64]) -> Vec<Size> {
    shape.iter().copied().map(Size::Known).collect()
}

/// Dims of no known size; so many names are enough for every test.
pub(crate) fn unknown(rank: usize) -> Vec<Size> {
    ["A", "B", "C", "D", "E", "F", "G"].into_iter().map(Size::Named).take(rank).collect()
}

pub(crate) fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Ints as i32),
        ints: ints.to_vec(),
        ..AttributeProto::default()
    }
}

pub(crate) fn text(name: &str, text: &str) -> AttributeProto {
    let s = Some(text.as_bytes().to_vec().into());
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::String as i32),
        s,
        ..AttributeProto::default()
    }
}

pub(crate) fn node(domain: &str, op: &str, output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        name: Some(format!("make_{output}")),
        domain: Some(domain.to_owned()),
        op_type: Some(op.to_owned()),
        input: vec!["x".to_owned()],
        output: vec![output.to_owned()],
        attribute,
        ..NodeProto::default()
    }
}

pub(crate) fn relayout(output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    node("relayout", "Relayout", output, attribute)
}

pub(crate) fn value(name: &str, element: i32, dims: Option<&[Size]>) -> ValueInfoProto {
    let dim = |size: &Size| Dimension {
        value: Some(match size {
            Size::Known(size) => dimension::Value::DimValue(*size),
            Size::Named(name) => dimension::Value::DimParam((*name).to_owned()),
        }),
        denotation: None,
    };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(element), shape });
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(tensor), denotation: None }),
        ..ValueInfoProto::default()
    }
}

/// A model whose nodes read its one input `x`; each node's output is one of the model's. `dims` `None` is an unknown rank.
pub(crate) fn model(
    element: i32,
    dims: Option<&[Size]>,
    nodes: Vec<NodeProto>,
    functions: Vec<FunctionProto>,
) -> Vec<u8> {
    let output = nodes.iter().flat_map(|node| &node.output).map(|name| value(name, element, None)).collect();
    let graph = GraphProto {
        name: Some("test".to_owned()),
        input: vec![value("x", element, dims)],
        output,
        node: nodes,
        ..GraphProto::default()
    };
    of_graph(graph, functions, (18, 10)).encode_to_vec()
}

/// A model at this opset and IR version.
pub(crate) fn of_graph(
    graph: GraphProto,
    functions: Vec<FunctionProto>,
    (opset, ir_version): (i64, i64),
) -> ModelProto {
    let import =
        |(domain, version): (&str, i64)| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
    let opset_import = [("", opset), ("relayout", 1)].map(import).to_vec();
    ModelProto { ir_version: Some(ir_version), graph: Some(graph), opset_import, functions, ..ModelProto::default() }
}
