//! `relayout optimize --emit bundle` and `relayout check-bundle`: what is written, and that it is written whole or not at all.

use crate::common::{folder, listing, model, relayout, str, with_stdin};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn emit(model: &Path, target: &str, out: &Path) -> Vec<String> {
    ["optimize", str(model), "--target", target, "--emit", "bundle", "-o", str(out)].map(str::to_owned).to_vec()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn a_bundle_is_written_and_checked_in_one_line() {
    let dir = folder(&[]);
    let out = dir.path().join("b");
    relayout(emit(&model("moves"), "onnx", &out)).fine();
    assert_eq!(listing(&out), ["graph.json", "kernels", "manifest.json", "weights.safetensors"]);
    assert_eq!(listing(dir.path()), ["b"], "no unfinished folder is left");
    let said = relayout(["check-bundle", str(&out)]);
    let manifest = json(&out.join("manifest.json"));
    let bytes: u64 = manifest["files"].as_array().expect("a list").iter().filter_map(|f| f["bytes"].as_u64()).sum();
    let line = format!("{}: 9 nodes, 0 constants, 3 moves, {bytes} bytes, for target onnx\n", out.display());
    assert_eq!(said.fine(), line);
}

#[test]
fn a_model_from_stdin_makes_the_same_bundle() {
    let dir = folder(&[]);
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    relayout(emit(&model("conv"), "cuda-tensorcore", &a)).fine();
    let bytes = fs::read(model("conv")).expect("a model");
    let args = emit(Path::new("-"), "cuda-tensorcore", &b);
    with_stdin(&args.iter().map(String::as_str).collect::<Vec<_>>(), &bytes).fine();
    assert_eq!(listing(&a), listing(&b));
    for name in ["manifest.json", "graph.json", "weights.safetensors"] {
        assert_eq!(fs::read(a.join(name)).expect("a file"), fs::read(b.join(name)).expect("a file"), "{name}");
    }
}

#[test]
fn kernels_are_for_the_architecture_and_the_sizes_that_are_said() {
    let dir = folder(&[]);
    let out = dir.path().join("b");
    let mut args = emit(&model("moves_symbolic"), "onnx", &out);
    args.extend(["--arch", "sm_90", "--dim", "N=4"].map(str::to_owned));
    relayout(args).fine();
    let launches = listing(&out.join("kernels"));
    let launch =
        launches.iter().find(|name| Path::new(name).extension().is_some_and(|end| end == "json")).expect("a launch");
    assert_eq!(json(&out.join("kernels").join(launch))["arch"], "sm_90");
}

#[test]
fn a_bundle_is_replaced_whole_and_anything_else_stays() {
    let dir = folder(&[]);
    let out = dir.path().join("b");
    fs::create_dir(&out).expect("an empty folder is as good as none");
    relayout(emit(&model("moves"), "onnx", &out)).fine();
    relayout(emit(&model("relu"), "onnx", &out)).fine();
    assert_eq!(listing(&out), ["graph.json", "manifest.json", "weights.safetensors"], "what was there is gone");
    fs::write(out.join("thesis.txt"), "mine").expect("a file");
    let before = fs::read(out.join("graph.json")).expect("a file");
    let run = relayout(emit(&model("moves"), "onnx", &out));
    assert!(run.refused(1).contains("it has `thesis.txt`, which is not a part of the bundle there"), "{run:?}");
    assert_eq!(fs::read(out.join("graph.json")).expect("a file"), before);
    let other = dir.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("notes.md"), "mine").expect("a file");
    let run = relayout(emit(&model("moves"), "onnx", &other));
    assert!(run.refused(1).contains("it has `notes.md`), and it is not a bundle"), "{run:?}");
    assert_eq!(listing(dir.path()), ["b", "other"], "no unfinished folder is left");
}

#[test]
fn calls_that_can_not_be_are_refused_and_leave_nothing() {
    let dir = folder(&["conv"]);
    let (out, file) = (dir.path().join("out"), dir.path().join("conv.onnx"));
    let with = |more: &[&str], target: &str, out: &Path| {
        let mut args = emit(&file, target, out);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    };
    for (args, code, cause) in [
        (with(&["--block", "16"], "ort-cpu", &out), 2, "hold operators of one runtime"),
        (with(&[], "onnx", Path::new("-")), 2, "name a folder"),
        (with(&[], "onnx", &file), 1, "conv.onnx"),
        (with(&[], "onnx", &dir.path().join("nowhere/out")), 1, "nowhere"),
        (with(&["--arch", "sm_7"], "onnx", &out), 2, "there is no `sm_7`"),
        (["optimize", str(&file), "--arch", "sm_90", "-o", str(&out)].map(str::to_owned).to_vec(), 2, "--emit bundle"),
        (emit(&model("bad_perm"), "onnx", &out), 1, "not a permutation"),
    ] {
        let run = relayout(args);
        assert!(run.refused(code).contains(cause), "{run:?}");
    }
    assert_eq!(listing(dir.path()), ["conv.onnx"]);
}

#[test]
fn damage_ends_with_status_1_and_one_line() {
    let dir = folder(&[]);
    let out = dir.path().join("b");
    relayout(emit(&model("moves"), "onnx", &out)).fine();
    let graph = out.join("graph.json");
    let text = fs::read_to_string(&graph).expect("a text");
    fs::write(&graph, text.replace("\"Transpose\"", "\"Transpoze\"")).expect("it is written");
    assert!(relayout(["check-bundle", str(&out)]).refused(1).contains("graph.json: its contents are not those"));
    fs::remove_file(&graph).expect("it is there");
    assert!(relayout(["check-bundle", str(&out)]).refused(1).contains("graph.json: the manifest lists it"));
    for (place, cause) in [
        (dir.path().to_owned(), "no `manifest.json`"),
        (out.join("x"), "no such folder"),
        (model("conv"), "it is a file"),
    ] {
        assert!(relayout(["check-bundle", str(&place)]).refused(1).contains(cause), "{cause}");
    }
}

#[test]
fn the_report_comes_beside_a_bundle_too() {
    let dir = folder(&[]);
    let (out, report) = (dir.path().join("b"), dir.path().join("report.json"));
    let mut args = emit(&model("conv"), "nhwc", &out);
    args.extend(["--report".to_owned(), str(&report).to_owned()]);
    relayout(args).fine();
    assert_eq!(json(&report)["target"], "nhwc");
    assert!(out.join("manifest.json").is_file());
}
