//! `optimize --proof`, `optimize --prove` and `prove`: whether a result computes what its model computes.

use crate::common::{folder, model, relayout, str};
use std::fs;

#[test]
fn a_result_is_proved_and_another_one_is_refused() {
    let dir = folder(&[]);
    let (out, proof) = (dir.path().join("out.onnx"), dir.path().join("out.json"));
    for target in ["onnx", "nhwc"] {
        let conv = model("conv");
        let call = ["optimize", str(&conv), "-o", str(&out), "--target", target, "--numerics", "exact"];
        let run = relayout(call.into_iter().chain(["--proof", str(&proof), "--prove"]));
        assert!(run.code == 0 && run.err.contains("out.onnx: PROVED"), "{run:?}");
        let run = relayout(["prove", str(&conv), str(&out), "--proof", str(&proof)]);
        assert!(run.fine().starts_with("PROVED"), "{target}: {run:?}");
        let json = relayout(["prove", str(&conv), str(&out), "--proof", str(&proof), "--json"]);
        assert!(json.fine().contains("\"verdict\""), "{json:?}");
    }
    relayout(["prove", str(&model("relu")), str(&out), "--proof", str(&proof)]).refused(3);
    let text = fs::read_to_string(&proof).unwrap();
    fs::write(&proof, text.replacen("\"values\":[", "\"values\":[{\"value\":\"nobody\"},", 1)).unwrap();
    relayout(["prove", str(&model("conv")), str(&out), "--proof", str(&proof)]).refused(3);
    fs::write(&proof, "{}").unwrap();
    relayout(["prove", str(&model("conv")), str(&out), "--proof", str(&proof)]).refused(1);
}

#[test]
fn two_files_without_a_proof_are_proved_shown_to_differ_or_left_open() {
    let dir = folder(&[]);
    let (conv, out) = (model("conv"), dir.path().join("out.onnx"));
    relayout(["optimize", str(&conv), "-o", str(&out), "--target", "nhwc", "--numerics", "exact"]).fine();
    let run = relayout(["prove", str(&conv), str(&out)]);
    assert!(run.fine().starts_with("PROVED"), "{run:?}");
    let run = relayout(["prove", str(&model("relu")), str(&out), "--no-run"]);
    assert!(run.code == 4 && run.text().starts_with("UNDECIDED: "), "{run:?}");
    let run = relayout(["prove", str(&model("relu")), str(&out), "--no-run", "--format", "json"]);
    assert!(run.code == 4 && run.text().contains("\"undecided\"") && run.text().contains("\"ran\""), "{run:?}");
    let run = relayout(["prove", str(&model("nothing")), str(&model("other"))]);
    assert!(run.code == 3 && run.text().starts_with("DIFFERENT: ") && run.text().contains("differs"), "{run:?}");
}

#[test]
fn floats_of_other_types_are_told_apart_from_other_ops() {
    let (plain, halves) = (model("nothing"), model("nothing_in_halves"));
    let run = relayout(["prove", str(&plain), str(&halves)]);
    assert!(run.code == 4 && run.text().starts_with("SAME UP TO TYPES: "), "{run:?}");
    assert!(
        run.text().contains("measured on random inputs: output `y`") && run.err.contains("--up-to-types"),
        "{run:?}"
    );
    let run = relayout(["prove", str(&plain), str(&halves), "--no-run", "--up-to-types", "--json"]);
    let json: String = run.fine().split_whitespace().collect();
    let types = "\"types\":[[\"float32\"],[\"float16\",\"float32\"]]";
    assert!(json.contains("\"verdict\":\"same_up_to_types\"") && json.contains(types), "{json}");
    let run = relayout(["prove", str(&model("other")), str(&halves), "--no-run", "--up-to-types"]);
    assert!(run.code == 4 && run.text().starts_with("UNDECIDED: "), "{run:?}");
}

#[test]
fn a_verdict_about_blocks_names_their_hosts() {
    let dir = folder(&[]);
    let (conv, out) = (model("conv"), dir.path().join("out.onnx"));
    for block in ["8", "16"] {
        let call = ["optimize", str(&conv), "-o", str(&out), "--target", "ort-cpu", "--block", block, "--prove"];
        let run = relayout(call);
        assert!(run.code == 0 && run.err.contains(&format!("for hosts with blocks of {block}\n")), "{run:?}");
        let run = relayout(call.into_iter().chain(["--no-guard"]));
        assert!(
            run.code == 0 && run.err.contains(&format!("blocks of {block} only: the file has no guard")),
            "{run:?}"
        );
    }
    let json = relayout(["prove", str(&conv), str(&out), "--json"]);
    let json: String = json.fine().split_whitespace().collect();
    assert!(json.contains("\"hosts\":{\"block\":16,\"guarded\":false}"), "{json}");
}

#[test]
fn a_verdict_is_about_the_reading_that_was_asked_for() {
    let (old, new) = (model("upsample"), model("resize"));
    let said = |more: &[&str]| {
        let call = ["prove", str(&old), str(&new), "--format", "json"];
        let run = relayout(call.into_iter().chain(more.iter().copied()));
        (run.code, serde_json::from_str::<serde_json::Value>(run.text()).unwrap())
    };
    let (code, runtime) = said(&[]);
    assert!(code == 0 && runtime["reading"] == "onnxruntime" && runtime["readings"][0]["nodes"] == 1, "{runtime}");
    // A run tells only how ONNX Runtime reads them.
    let (code, standard) = said(&["--reading", "onnx"]);
    assert!(code == 4 && standard["verdict"] == "undecided" && standard["reading"] == "onnx", "{standard}");
    let dir = folder(&[]);
    let proof = dir.path().join("proof.json");
    fs::write(&proof, r#"{"version": 1, "values": []}"#).unwrap();
    assert_eq!(said(&["--proof", str(&proof)]).0, 0);
    assert_eq!(said(&["--proof", str(&proof), "--reading", "onnx"]).0, 3);
    let same = relayout(["prove", str(&old), str(&old), "--reading", "onnx", "--json"]);
    assert!(same.fine().contains("\"proved\"") && !same.text().contains("\"readings\""), "{same:?}");
    relayout(["prove", str(&old), str(&new), "--reading", "mine"]).refused(2);
}

#[test]
fn a_verdict_names_both_files_by_their_digests_and_the_program() {
    let dir = folder(&[]);
    let (conv, out, page) = (model("conv"), dir.path().join("out.onnx"), dir.path().join("page.html"));
    relayout(["optimize", str(&conv), "-o", str(&out), "--target", "nhwc", "--numerics", "exact"]).fine();
    let json = relayout(["prove", str(&conv), str(&out), "--json", "--links", "--html", str(&page)]);
    let said: serde_json::Value = serde_json::from_str(json.fine()).unwrap();
    let digest = said["models"][1]["sha256"].as_str().unwrap();
    assert!(
        said["verdict"] == "proved" && digest.len() == 64 && said["version"] == env!("CARGO_PKG_VERSION"),
        "{said}"
    );
    assert!(said["same"].as_array().is_some_and(|same| same.iter().any(|link| link["value"] == "y")), "{said}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("PROVED") && html.contains(digest) && html.contains("Link by link"), "{html}");
    assert!(!html.contains(str(dir.path())), "a page says nothing of folders");
    let other = relayout(["prove", str(&model("relu")), str(&out), "--no-run", "--html", "-"]);
    assert!(
        other.code == 4 && other.text().starts_with("<!DOCTYPE html>") && other.text().contains("UNDECIDED"),
        "{other:?}"
    );
    relayout(["prove", str(&conv), str(&out), "--html", str(&out)]).refused(2);
}

#[test]
fn a_file_that_is_not_there_is_named_once() {
    let run = relayout(["prove", str(&model("conv")), "/nowhere/b.onnx"]);
    assert!(run.code == 1 && run.err.matches("/nowhere/b.onnx").count() == 1, "{run:?}");
}

#[test]
fn prove_needs_files() {
    relayout(["optimize", str(&model("conv")), "-o", "-", "--prove"]).refused(2);
    relayout(["optimize", str(&model("conv")), "--dry-run", "--prove"]).refused(2);
    relayout(["prove", str(&model("conv")), "/nowhere/b.onnx"]).refused(1);
}

#[test]
fn results_are_proved_wherever_they_go() {
    let dir = folder(&[]);
    let (conv, out) = (model("conv"), dir.path().join("out.onnx"));
    let proved = |options: &[&str]| {
        let call = ["optimize", str(&conv), "-o", str(&out), "--target", "nhwc", "--unproved", "fail"];
        let run = relayout(call.into_iter().chain(options.iter().copied()));
        assert!(run.code == 0 && run.text().contains("; proved for "), "{options:?}: {run:?}");
    };
    proved(&[]);
    proved(&["--input", "x:NCHW->NHWC", "--output", "y:NCHW->NHWC"]);
    proved(&["--free-io"]);
    proved(&["--dry-run"]);
    let silent = relayout(["optimize", str(&conv), "-o", str(&out), "--target", "nhwc", "--unproved", "allow"]);
    assert!(!silent.fine().contains("proved"), "{silent:?}");
    let stream = relayout(["optimize", str(&conv), "-o", "-", "--target", "nhwc"]);
    assert!(stream.code == 0 && stream.err.contains("; proved for "), "{}", stream.err);
    let json = relayout(["optimize", str(&conv), "-o", str(&out), "--target", "nhwc", "--format", "json"]);
    let json: String = json.fine().split_whitespace().collect();
    assert!(json.contains("\"proof\":{\"brief\":\"provedforallsizes\",\"proved\":true"), "{json}");
    relayout(["optimize", str(&conv), "-o", str(&out), "--unproved", "quiet"]).refused(2);
}

#[test]
fn what_is_left_to_show_is_written_as_two_models() {
    let dir = folder(&[]);
    let (a, b, pieces) = (model("nothing"), model("other"), dir.path().join("left/to show"));
    let run = relayout(["prove", str(&a), str(&b), "--pieces", str(&pieces)]);
    assert!(run.code == 3 && run.text().contains("pieces: ") && run.text().contains("they differ"), "{run:?}");
    let [input, result] = ["input.onnx", "result.onnx"].map(|name| pieces.join(name));
    assert_eq!(relayout(["verify", str(&input), str(&result)]).code, 3);
    assert!(relayout(["print", str(&input)]).fine().contains("%given.x"));
    // What is there stays, and nothing is written where all is shown.
    let line = relayout(["prove", str(&a), str(&b), "--no-run", "--pieces", str(&pieces)]).refused(1).to_owned();
    assert!(line.contains("input.onnx is there already"), "{line}");
    let none = dir.path().join("none");
    relayout(["prove", str(&a), str(&a), "--pieces", str(&none)]).fine();
    assert!(!none.exists());
    let run = relayout(["prove", str(&a), str(&b), "--no-run", "--json", "--pieces", str(&none)]);
    assert!(run.code == 4 && run.text().contains("\"pieces\"") && run.text().contains("\"ran\": null"), "{run:?}");
}
