//! Models of every kind: old and new opsets, external data, functions, bodies, custom operators.

use crate::common::{folder, listing, model, moves, ops, relayout, str};
use std::fs;
use std::path::Path;

fn optimize(name: &str, out: &Path) {
    relayout(["optimize", str(&model(name)), "-o", str(out)]).fine();
}

fn same(a: &Path, b: &Path) {
    relayout(["verify", str(a), str(b)]).fine();
}

#[test]
fn every_opset_from_7_on_gains() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    for name in ["opset7", "relu", "opset26"] {
        optimize(name, &out);
        assert_eq!(ops(&out), ["Relu"], "{name}");
        same(&model(name), &out);
    }
}

#[test]
fn functions_bodies_and_symbolic_dims_go_through() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    for (name, expected) in
        [("functions", vec!["Relu", "Block"]), ("branches", vec!["Relu", "If"]), ("symbolic", vec!["Relu"])]
    {
        optimize(name, &out);
        assert_eq!(ops(&out), expected, "{name}");
        same(&model(name), &out);
    }
}

#[test]
fn initializers_that_are_inputs_are_constants_before_ir_version_4_and_defaults_after() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    optimize("ir3", &out);
    assert_eq!(moves(&out), 2, "the weight is permuted for good");
    same(&model("ir3"), &out);
    optimize("overridable", &out);
    assert_eq!(moves(&out), 3, "the caller may give another weight");
    same(&model("overridable"), &out);
}

#[test]
fn an_unknown_operator_keeps_what_it_reads_and_gives() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    optimize("custom", &out);
    assert_eq!(ops(&out).iter().filter(|op| *op != "Transpose").collect::<Vec<_>>(), ["Relu", "Mystery", "Sigmoid"]);
    assert!(moves(&out) < moves(&model("custom")));
    // Between two moves of its own it has to stay as it is.
    optimize("custom_between", &out);
    assert_eq!(fs::read(&out).unwrap(), fs::read(model("custom_between")).unwrap());
}

#[test]
fn external_data_is_found_from_the_same_folder_and_from_another() {
    let dir = folder(&["external"]);
    let data = model("external").with_file_name("external.bin");
    fs::copy(&data, dir.path().join("external.bin")).unwrap();
    let input = dir.path().join("external.onnx");
    let beside = dir.path().join("out.onnx");
    relayout(["optimize", str(&input), "-o", str(&beside)]).fine();
    assert_eq!(ops(&beside), ["Relu", "Add"]);
    assert_eq!(listing(dir.path()), ["external.bin", "external.onnx", "out.onnx"]);
    same(&input, &beside);

    let other = folder(&[]);
    let out = other.path().join("out.onnx");
    relayout(["optimize", str(&input), "-o", str(&out)]).fine();
    same(&input, &out);
    assert_eq!(
        fs::read(dir.path().join("external.bin")).unwrap(),
        fs::read(&data).unwrap(),
        "the input's data is untouched"
    );

    // A stream has no folder: the data goes into the model.
    let run = relayout(["optimize", str(&input), "-o", "-"]);
    assert_eq!(run.code, 0, "{run:?}");
    let alone = other.path().join("alone.onnx");
    fs::write(&alone, &run.out).unwrap();
    same(&input, &alone);
}
