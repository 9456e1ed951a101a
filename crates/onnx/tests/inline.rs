//! Calls written out and put back: the law on every test model with functions, and what stands in between.

use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::inline::Inlined;
use relayout_onnx::proto::{FunctionProto, ModelProto};
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
