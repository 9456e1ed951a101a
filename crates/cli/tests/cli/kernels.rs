//! `relayout kernels`: what is written, and that it is written whole or not at all.

use crate::common::{folder, listing, model, relayout, str, with_stdin};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Every file of a folder in the order of their names.
fn contents(dir: &Path) -> String {
    let mut text = String::new();
    for name in listing(dir) {
        let file = fs::read_to_string(dir.join(&name)).expect("a text");
        let _ = write!(text, "=== {name}\n{file}");
    }
    text
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn every_move_that_is_left_gets_a_kernel_and_bodies_are_not_forgotten() {
    let dir = folder(&[]);
    let out = dir.path().join("kernels");
    let run = relayout(["kernels", str(&model("moves")), "--target", "onnx", "-o", str(&out)]);
    assert_eq!(run.fine(), format!("3 moves, 2 kernels in {}\n", out.display()));
    insta::assert_snapshot!(contents(&out));
    assert_eq!(listing(dir.path()), ["kernels"]);
}

#[test]
fn symbolic_shapes_become_arguments_at_the_sizes_that_are_given() {
    let dir = folder(&[]);
    let out = dir.path().join("kernels");
    let symbolic = model("moves_symbolic");
    let args = ["kernels", str(&symbolic), "-o", str(&out), "--dim", "N=4", "--dim", "H=20", "--arch", "sm_90"];
    relayout(args).fine();
    let manifest = json(&out.join("manifest.json"));
    assert_eq!(manifest["dims"], serde_json::json!({"H": 20, "N": 4, "W": 64}));
    assert_eq!(manifest["kernels"][0]["shape_in_arguments"], true);
    let launch = out.join(manifest["moves"][0]["launch"].as_str().expect("a file"));
    insta::assert_snapshot!(fs::read_to_string(launch).expect("a text"));
}

#[test]
fn the_same_call_writes_the_same_bytes_and_so_does_the_optimized_model() {
    let dir = folder(&[]);
    let place = |name: &str| dir.path().join(name);
    for name in ["moves", "conv", "branches"] {
        let _ = fs::remove_dir_all(place("a"));
        relayout(["kernels", str(&model(name)), "-o", str(&place("a"))]).fine();
        relayout(["optimize", str(&model(name)), "-o", str(&place("m.onnx"))]).fine();
        relayout(["kernels", str(&place("m.onnx")), "-o", str(&place("b"))]).fine();
        assert_eq!(contents(&place("a")), contents(&place("b")), "{name}");
        let bytes = fs::read(model(name)).expect("a model");
        with_stdin(&["kernels", "-", "-o", str(&place("b")), "--force"], &bytes).fine();
        assert_eq!(contents(&place("a")), contents(&place("b")), "{name}");
        fs::remove_dir_all(place("b")).expect("it is there");
    }
}

#[test]
fn a_model_without_moves_gets_a_manifest_that_says_so() {
    let dir = folder(&[]);
    let out = dir.path().join("empty");
    // An empty folder is as good as none.
    fs::create_dir(&out).expect("a folder");
    assert!(relayout(["kernels", str(&model("relu")), "-o", str(&out)]).fine().starts_with("0 moves, 0 kernels in "));
    assert_eq!(listing(&out), ["manifest.json"]);
    assert_eq!(json(&out.join("manifest.json"))["moves"], serde_json::json!([]));
}

#[test]
fn what_stands_in_the_folder_stays_unless_an_earlier_run_wrote_it_and_force_is_said() {
    let dir = folder(&[]);
    let out = dir.path().join("kernels");
    relayout(["kernels", str(&model("moves")), "-o", str(&out)]).fine();
    let before = contents(&out);
    let again = ["kernels", str(&model("relu")), "-o", str(&out)].map(str::to_owned);
    assert!(relayout(&again).refused(1).contains("not empty; --force"));
    assert_eq!(contents(&out), before);
    let forced = again.iter().cloned().chain(["--force".to_owned()]);
    relayout(forced.clone()).fine();
    assert_eq!(listing(&out), ["manifest.json"], "what the earlier run wrote is gone");
    fs::write(out.join("thesis.txt"), "mine").expect("a file");
    assert!(relayout(forced).refused(1).contains("it has `thesis.txt`"));
    assert_eq!(listing(&out), ["manifest.json", "thesis.txt"]);
    assert_eq!(listing(dir.path()), ["kernels"], "no unfinished folder is left");
}

#[test]
fn calls_that_can_not_be_are_refused_and_leave_nothing() {
    let dir = folder(&["moves"]);
    let (out, file) = (dir.path().join("out"), dir.path().join("moves.onnx"));
    let nowhere = dir.path().join("nowhere/out");
    for (args, code, cause) in [
        (["kernels", str(&file), "-o", str(&file)], 1, "moves.onnx: Not a directory"),
        (["kernels", str(&file), "-o", str(&nowhere)], 1, "nowhere"),
        (["kernels", str(&file), "-o", "-"], 2, "name a folder"),
        (["kernels", str(&model("bad_perm")), "-o", str(&out)], 1, "not a permutation"),
        (["kernels", str(&file), "--arch=sm_7", str(&out)], 2, "there is no `sm_7`; say one of sm_80, "),
        (["kernels", str(&file), "--target=moon", &format!("-o{}", str(&out))], 2, "moon"),
    ] {
        let run = relayout(args);
        assert!(run.refused(code).contains(cause), "{run:?}");
    }
    assert_eq!(listing(dir.path()), ["moves.onnx"]);
}
