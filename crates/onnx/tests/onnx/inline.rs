//! Calls written out and put back: the law on every test model with functions, and what stands in between.

use prost::Message as _;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::inline::Inlined;
use relayout_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto,
    attribute_proto, type_proto,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn with_functions() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let cases = std::fs::read_dir(root.join("cases/functions")).expect("the cases are there");
    let mut paths: Vec<PathBuf> = cases.map(|file| file.expect("a file").path()).collect();
    paths.push(root.join("models/resnet18_functions.onnx"));
    paths.sort();
    paths
}

fn opened(path: &Path) -> Arc<ModelFile> {
    Arc::new(ModelFile::open(path).expect("the model opens"))
}

/// Calls in the outermost graph.
fn calls(proto: &ModelProto) -> usize {
    let graph = proto.graph.as_ref().expect("a graph");
    let names: Vec<&str> = proto.functions.iter().map(FunctionProto::name).collect();
    graph.node.iter().filter(|n| names.contains(&n.op_type.as_deref().unwrap_or_default())).count()
}

#[test]
fn what_is_written_out_imports_and_what_is_put_back_is_what_was_read() {
    let mut written = 0;
    for path in with_functions() {
        let file = opened(&path);
        let inlined = Inlined::of(&file);
        if inlined.is_empty() {
            assert!(!inlined.notes.is_empty(), "{}: nothing is written out, and no reason is given", path.display());
            continue;
        }
        written += 1;
        assert_eq!(calls(&inlined.file.proto), 0, "{}", path.display());
        import(&inlined.file).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let mut proto = inlined.file.proto.clone();
        inlined.restore(&mut proto);
        assert!(proto == file.proto, "{} is another model after it", path.display());
    }
    assert!(written > 5, "{written} models have calls that are written out");
}

#[test]
fn a_call_whose_body_is_another_stays_written_out_and_its_function_goes() {
    let path = with_functions().into_iter().find(|p| p.ends_with("attributes_of_the_call.onnx")).expect("the case");
    let inlined = Inlined::of(&opened(&path));
    let mut proto = inlined.file.proto.clone();
    let graph = proto.graph.as_mut().expect("a graph");
    let elu = graph.node.iter_mut().find(|n| n.op_type.as_deref() == Some("Elu")).expect("the body's first node");
    assert_eq!(elu.attribute[0].f, Some(0.5), "the attribute of the call takes the place of what refers to it");
    elu.attribute[0].f = Some(0.25);
    inlined.restore(&mut proto);
    assert_eq!((calls(&proto), proto.functions.len()), (0, 0));
    let tags = proto.graph.iter().flat_map(|g| &g.node).filter(|n| !n.metadata_props.is_empty()).count();
    assert_eq!(tags, 0, "no tag is left");
}

#[test]
fn a_call_whose_inside_is_read_from_outside_stays_written_out() {
    let path = with_functions().into_iter().find(|p| p.ends_with("pair_around_a_call.onnx")).expect("the case");
    let inlined = Inlined::of(&opened(&path));
    let mut proto = inlined.file.proto.clone();
    let graph = proto.graph.as_mut().expect("a graph");
    let relu = graph.node.iter().find(|n| n.op_type.as_deref() == Some("Relu")).expect("the body's first node");
    let inside = relu.output[0].clone();
    let last = graph.node.last_mut().expect("a Transpose");
    last.input[0] = inside;
    inlined.restore(&mut proto);
    assert_eq!((calls(&proto), proto.functions.len()), (0, 0));
}

/// A node that calls a function of domain `f`, or an op of the standard one.
fn node(domain: &str, op: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        domain: Some(domain.to_owned()),
        op_type: Some(op.to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        attribute,
        ..NodeProto::default()
    }
}

fn function(name: &str, body: NodeProto) -> FunctionProto {
    let import = |domain: &str| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(17) };
    FunctionProto {
        name: Some(name.to_owned()),
        domain: Some("f".to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        node: vec![body],
        opset_import: vec![import(""), import("f")],
        ..FunctionProto::default()
    }
}

fn model(functions: Vec<FunctionProto>) -> Arc<ModelFile> {
    let tensor = type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(1), shape: None });
    let value = |name: &str| ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(tensor.clone()), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    };
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![node("f", "f0", Vec::new())],
        input: vec![value("x")],
        output: vec![value("y")],
        ..GraphProto::default()
    };
    let opset_import = functions[0].opset_import.clone();
    let proto =
        ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, functions, ..ModelProto::default() };
    Arc::new(ModelFile::from_bytes(proto.encode_to_vec().into(), None).expect("it can be decoded"))
}

#[test]
fn a_chain_of_a_hundred_thousand_functions_is_left_as_it_is() {
    const LAST: usize = 100_000;
    let next =
        |i: usize| if i == LAST { node("", "Relu", Vec::new()) } else { node("f", &format!("f{}", i + 1), Vec::new()) };
    let file = model((0..=LAST).map(|i| function(&format!("f{i}"), next(i))).collect());
    import(&file).expect("it is a model");
    let inlined = Inlined::of(&file);
    assert!(inlined.is_empty());
    let note = inlined.notes.join("; ");
    assert!(note.contains("more than 256 calls within one another"), "{note}");
}

#[test]
fn bodies_that_would_nest_deeper_than_readers_follow_are_not_written_out() {
    // Every function calls the next one in both branches of an If.
    let branch = |name: &str, call: NodeProto| {
        let output = vec![ValueInfoProto { name: Some("z".to_owned()), ..ValueInfoProto::default() }];
        let call = NodeProto { output: vec!["z".to_owned()], ..call };
        let graph = GraphProto { name: Some("b".to_owned()), node: vec![call], output, ..GraphProto::default() };
        AttributeProto {
            name: Some(name.to_owned()),
            r#type: Some(attribute_proto::AttributeType::Graph as i32),
            g: Some(Box::new(graph)),
            ..AttributeProto::default()
        }
    };
    let relu = || node("", "Relu", Vec::new());
    for (last, written) in [(3, true), (60, false)] {
        let body = |i: usize| {
            if i == last {
                return relu();
            }
            let call = node("f", &format!("f{}", i + 1), Vec::new());
            node("", "If", vec![branch("then_branch", call), branch("else_branch", relu())])
        };
        let file = model((0..=last).map(|i| function(&format!("f{i}"), body(i))).collect());
        let inlined = Inlined::of(&file);
        assert_eq!(!inlined.is_empty(), written, "{:?}", inlined.notes);
        if !written {
            assert!(inlined.notes[0].contains("bodies within one another"), "{:?}", inlined.notes);
        }
    }
}
