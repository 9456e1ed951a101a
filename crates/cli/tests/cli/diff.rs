//! `relayout diff`.

use crate::common::{folder, model, relayout, str, with_stdin};
use serde_json::Value;
use std::fs;

#[test]
fn a_model_and_its_result_differ_in_what_was_rewritten() {
    let dir = folder(&["conv"]);
    let (a, b) = (dir.path().join("conv.onnx"), dir.path().join("b.onnx"));
    relayout(["optimize", str(&a), "-o", str(&b)]).fine();
    let run = relayout(["diff", str(&a), str(&b)]);
    insta::assert_snapshot!("a_model_and_its_result", run.fine());
    let json: Value = serde_json::from_str(relayout(["diff", "--format", "json", str(&a), str(&b)]).fine()).unwrap();
    assert_eq!((&json["schema"], &json["same"], &json["same_bytes"]), (&1.into(), &false.into(), &false.into()));
    assert_eq!(
        json["nodes"]["removed"].as_array().unwrap().len(),
        1 + json["nodes"]["added"].as_array().unwrap().len()
    );
    let status = relayout(["diff", "--exit-code", str(&a), str(&b)]);
    assert_eq!((status.code, status.out == run.out), (3, true), "{status:?}");
    let piped = with_stdin(&["diff", "-", str(&b)], &fs::read(&a).unwrap());
    assert_eq!(piped.fine(), run.text());
    assert!(relayout(["diff", "-", "-"]).refused(2).contains("stdin"));
}

#[test]
fn a_model_is_the_same_as_itself() {
    for name in ["conv", "branches", "functions", "custom"] {
        let path = model(name);
        let run = relayout(["diff", "--exit-code", str(&path), str(&path)]);
        assert_eq!(run.fine(), "the files are the same, byte for byte\n");
        assert_eq!(relayout(["diff", "-q", str(&path), str(&path)]).fine(), "");
    }
}

#[test]
fn layouts_of_inputs_and_bytes_of_weights_are_seen() {
    let dir = folder(&["conv"]);
    let (a, b) = (dir.path().join("conv.onnx"), dir.path().join("b.onnx"));
    relayout(["optimize", str(&a), "-o", str(&b), "--input", "x:NHWC->NCHW"]).fine();
    let run = relayout(["diff", str(&a), str(&b)]);
    assert!(run.fine().contains("inputs\n  ~ x (f32[1,4,6,6])\n      is: f32[1,6,6,4] -> f32[1,4,6,6]\n"), "{run:?}");

    // The last byte of the largest constant, which stands as it is in the file.
    let bytes = fs::read(&a).unwrap();
    let model = relayout::Model::from_bytes(bytes.clone().into(), None).unwrap();
    let graph = &model.ir().graph;
    let weights = graph.values().filter_map(|v| graph.constant(v)).map(|c| c.source.bytes().unwrap().to_vec());
    let weights = weights.max_by_key(Vec::len).unwrap();
    let at = bytes.windows(weights.len()).position(|part| part == &weights[..]).unwrap() + weights.len() - 1;
    let mut other = bytes;
    other[at] ^= 1;
    fs::write(&b, other).unwrap();
    let run = relayout(["diff", str(&a), str(&b)]);
    let says = format!("      elements: 1 of {} bytes differ\n", weights.len());
    assert!(run.fine().starts_with("constants 1 changed\n") && run.text().contains(&says), "{run:?}");
}

#[test]
fn what_is_in_bodies_is_compared_too() {
    let dir = folder(&["branches"]);
    let (a, b) = (dir.path().join("branches.onnx"), dir.path().join("b.onnx"));
    relayout(["optimize", str(&a), "-o", str(&b)]).fine();
    let run = relayout(["diff", str(&a), str(&b)]);
    assert!(run.fine().contains("_branch/"), "{run:?}");
}
