//! `optimize` without `-o`, and with several models: where results go, what is never replaced, what a table says.

use crate::common::{Run, command, finish, folder, listing, model, moves, ops, relayout, str};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Runs it in this folder.
fn within(dir: &Path, args: &[&str]) -> Run {
    finish(command().current_dir(dir).args(args))
}

#[test]
fn without_an_output_the_result_stands_beside_the_model_and_nothing_is_replaced() {
    let dir = folder(&["relu"]);
    let out = dir.path().join("relu.relayout.onnx");
    let run = within(dir.path(), &["optimize", "relu.onnx"]);
    assert!(run.fine().starts_with("relu.relayout.onnx: moves 2 -> 0, "), "{run:?}");
    assert_eq!(ops(&out), ["Relu"]);
    fs::write(&out, "mine").unwrap();
    let run = within(dir.path(), &["optimize", "relu.onnx"]);
    assert_eq!(run.refused(1), "error: cannot write relu.relayout.onnx: it is there already; --force replaces it");
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    // Without writing there is something to say all the same.
    let dry = within(dir.path(), &["optimize", "relu.onnx", "--dry-run"]);
    assert!(dry.fine().starts_with("would write relu.relayout.onnx: moves 2 -> 0, "), "{dry:?}");
    assert!(dry.fine().trim_end().ends_with("; it is there already, so writing it takes --force"), "{dry:?}");
    let nowhere = within(dir.path(), &["optimize", "relu.onnx", "-o", "none/out.onnx"]);
    assert_eq!(nowhere.refused(1), "error: cannot write none/out.onnx: there is no folder none; make it first");
    within(dir.path(), &["optimize", "relu.onnx", "--force"]).fine();
    assert_eq!(ops(&out), ["Relu"]);
    // What is named is replaced.
    fs::write(&out, "mine").unwrap();
    within(dir.path(), &["optimize", "relu.onnx", "-o", "relu.relayout.onnx"]).fine();
    assert_eq!(ops(&out), ["Relu"]);
    assert_eq!(listing(dir.path()), ["relu.onnx", "relu.relayout.onnx"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_nowhere_is_something_that_is_there() {
    let dir = folder(&["relu"]);
    std::os::unix::fs::symlink("elsewhere.onnx", dir.path().join("relu.relayout.onnx")).unwrap();
    assert!(within(dir.path(), &["optimize", "relu.onnx"]).refused(1).contains("there already"));
    assert_eq!(listing(dir.path()), ["relu.onnx", "relu.relayout.onnx"]);
}

#[test]
fn a_folder_as_output_takes_the_name_of_the_model() {
    let dir = folder(&["relu"]);
    fs::create_dir(dir.path().join("there")).unwrap();
    for out in ["there", "new/"] {
        within(dir.path(), &["optimize", "relu.onnx", "-o", out]).fine();
        assert_eq!(listing(&dir.path().join(out)), ["relu.onnx"]);
        let again = within(dir.path(), &["optimize", "relu.onnx", "-o", out]);
        assert!(again.refused(1).contains("it is there already"), "{again:?}");
    }
}

#[test]
fn a_bundle_has_its_own_name_and_is_not_replaced_either() {
    let dir = folder(&["conv"]);
    let call = ["optimize", "conv.onnx", "--emit", "bundle", "--target", "nhwc"];
    within(dir.path(), &call).fine();
    assert_eq!(listing(dir.path()), ["conv.bundle", "conv.onnx"]);
    within(dir.path(), &["check-bundle", "conv.bundle"]).fine();
    let json: Value =
        serde_json::from_str(within(dir.path(), &["check-bundle", "conv.bundle", "--json"]).fine()).unwrap();
    assert_eq!(json["target"], "nhwc");
    assert!(within(dir.path(), &call).refused(1).contains("conv.bundle: it is there already"));
    within(dir.path(), &[&call[..], &["--force"]].concat()).fine();
    // The folders of several are made when there is something to put there.
    fs::create_dir(dir.path().join("models")).unwrap();
    fs::rename(dir.path().join("conv.onnx"), dir.path().join("models/conv.onnx")).unwrap();
    let several = ["optimize", "models", "-o", "bundles", "--emit", "bundle", "--target", "nhwc"];
    within(dir.path(), &several).fine();
    within(dir.path(), &["check-bundle", "bundles/conv.bundle"]).fine();
}

#[test]
fn a_dry_run_says_all_and_writes_nothing() {
    let dir = folder(&["relu", "conv"]);
    let run =
        within(dir.path(), &["optimize", "relu.onnx", "--dry-run", "--report", "r.json", "--certificate", "c.json"]);
    assert!(run.fine().starts_with("would write relu.relayout.onnx: moves 2 -> 0, "), "{run:?}");
    let run = within(dir.path(), &["optimize", ".", "-o", "out", "--dry-run"]);
    assert!(run.fine().ends_with("2 models: 2 optimized, 0 unchanged, 0 failed; nothing was written\n"), "{run:?}");
    let run = within(dir.path(), &["kernels", "conv.onnx", "-o", "kernels", "--dry-run"]);
    assert!(run.fine().starts_with("would write "), "{run:?}");
    assert_eq!(listing(dir.path()), ["conv.onnx", "relu.onnx"]);
}

/// A folder with models below each other, one of which is broken.
fn models() -> tempfile::TempDir {
    let dir = folder(&[]);
    let put = |name: &str, at: &str| {
        let path = dir.path().join("models").join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(model(name), path).unwrap();
    };
    put("conv", "a/conv.onnx");
    put("relu", "relu.onnx");
    put("nothing", "b/c/nothing.onnx");
    put("bad_perm", "b/bad.onnx");
    // None of these is a model to optimize.
    put("relu", ".hidden/relu.onnx");
    put("relu", "relu.relayout.onnx");
    fs::write(dir.path().join("models/notes.txt"), "").unwrap();
    dir
}

#[test]
fn one_that_fails_does_not_stop_the_rest() {
    let dir = models();
    for jobs in ["1", "4"] {
        let out = format!("out{jobs}");
        let run = within(dir.path(), &["optimize", "models/", "-o", &out, "--jobs", jobs]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.err.starts_with("error: models/b/bad.onnx: ") && run.err.lines().count() == 1, "{run:?}");
        let text = run.text().replace(&out, "out");
        insta::assert_snapshot!("table_of_a_folder", text);
        let out = dir.path().join(out);
        assert_eq!(listing(&out), ["a", "b", "relu.onnx"]);
        assert_eq!((listing(&out.join("a")), listing(&out.join("b"))), (vec!["conv.onnx".into()], vec!["c".into()]));
        assert_eq!(moves(&out.join("a/conv.onnx")), 2);
        let alone = dir.path().join("alone.onnx");
        relayout(["optimize", str(&model("conv")), "-o", str(&alone)]).fine();
        assert_eq!(fs::read(out.join("a/conv.onnx")).unwrap(), fs::read(&alone).unwrap());
    }
    // The second time everything is there, and each says so.
    let again = within(dir.path(), &["optimize", "models", "-o", "out1"]);
    assert_eq!((again.code, again.err.matches("it is there already; --force").count()), (1, 3), "{again:?}");
    let forced = within(dir.path(), &["optimize", "models", "-o", "out1", "--force", "-q"]);
    assert_eq!((forced.code, forced.text(), forced.err.lines().count()), (1, "", 1), "{forced:?}");
}

#[test]
fn programs_are_told_of_every_model() {
    let dir = models();
    let run = within(dir.path(), &["optimize", "models", "-o", "out", "--format", "json"]);
    assert_eq!(run.code, 1);
    let error: Value = serde_json::from_str(&run.err).unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("models/b/bad.onnx"), "{error}");
    let json: Value = serde_json::from_str(run.text()).unwrap();
    let all = json["models"].as_array().unwrap();
    let told = |field: &str| all.iter().map(|m| m[field].as_str().unwrap_or_default()).collect::<Vec<_>>();
    let names = ["models/a/conv.onnx", "models/b/bad.onnx", "models/b/c/nothing.onnx", "models/relu.onnx"];
    assert_eq!(told("model"), names);
    assert_eq!(told("status"), ["optimized", "failed", "unchanged", "optimized"]);
    assert_eq!(all[3]["report"]["before"]["nodes"], 2);
    // One model has the same form.
    let one = within(dir.path(), &["optimize", "models/relu.onnx", "-o", "one.onnx", "--json"]);
    let one: Value = serde_json::from_str(one.fine()).unwrap();
    assert_eq!((&one["models"][0]["report"], &one["models"][0]["out"]), (&all[3]["report"], &"one.onnx".into()));
}

#[test]
fn files_patterns_and_folders_are_taken_together() {
    let dir = models();
    let run = within(dir.path(), &["optimize", "models/relu.onnx", "models/*/*.onnx", "models/b/c", "-o", "out"]);
    assert_eq!((run.code, run.text().lines().last().unwrap()), (1, "4 models: 2 optimized, 1 unchanged, 1 failed"));
    assert_eq!(listing(&dir.path().join("out")), ["a", "nothing.onnx", "relu.onnx"]);
    fs::remove_file(dir.path().join("models/relu.relayout.onnx")).unwrap();
    let run = within(dir.path(), &["optimize", "models/**/[cr]*.onnx"]);
    assert!(run.code == 0 && run.err.starts_with("note: 2 models found; "), "{run:?}");
    assert!(run.text().ends_with("\n2 models: 2 optimized, 0 unchanged, 0 failed\n"), "{run:?}");
    assert_eq!(listing(&dir.path().join("models/a")), ["conv.onnx", "conv.relayout.onnx"]);
    // A result in the folder that is read is not read the next time.
    let within_models = |out: &str| within(dir.path(), &["optimize", "models/a", "-o", out, "--force"]);
    assert!(within_models("models/a/out").fine().ends_with("1 model: 1 optimized, 0 unchanged, 0 failed\n"));
    assert!(within_models("models/a/out").fine().ends_with("1 model: 1 optimized, 0 unchanged, 0 failed\n"));
}

#[test]
fn what_several_models_cannot_have_is_refused_before_anything_is_written() {
    let dir = models();
    fs::write(dir.path().join("file"), "").unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (call, code, says) in [
        (&["models", "-o", "-"][..], 2, "cannot go to stdout"),
        (&["models", "-o", "file"], 2, "file is a file"),
        (&["models", "-o", "out", "--report", "r.json"], 2, "--report is for one model; --format json"),
        (&["models", "-o", "out", "--certificate", "c.json"], 2, "--certificate is for one model"),
        (&["models", "-o", "out", "--print-after", "solve"], 2, "--print-after is for one model"),
        (&["models/relu.onnx", "models/.hidden/relu.onnx", "-o", "out"], 2, "would both be written to out/relu.onnx"),
        (&["models/*.pb", "-o", "out"], 1, "no .onnx file matches `models/*.pb`"),
        (&["models/[.onnx", "-o", "out"], 2, "is not a pattern"),
        (&["empty", "-o", "out"], 1, "the directory has no .onnx file"),
        (&["models", "-o", "out", "--jobs", "0"], 2, "--jobs"),
    ] {
        let run = within(dir.path(), &[&["optimize"], call].concat());
        assert!(run.refused(code).contains(says), "{call:?}: {run:?}");
        assert_eq!(listing(dir.path()), ["empty", "file", "models"]);
    }
}

#[test]
fn several_models_are_verified_each() {
    let dir = models();
    fs::remove_file(dir.path().join("models/b/bad.onnx")).unwrap();
    let run = within(dir.path(), &["optimize", "models", "-o", "out", "--verify", "-j", "2", "-v"]);
    assert_eq!((run.code, run.err.matches("verified in ONNX Runtime").count()), (0, 3), "{run:?}");
}

#[test]
fn installed_packages_and_caches_are_left_out_and_said() {
    let dir = folder(&[]);
    let put = |at: &str| {
        let path = dir.path().join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(model("relu"), path).unwrap();
    };
    for at in [
        "a/relu.onnx",
        "venv/lib/python3.11/site-packages/p/relu.onnx",
        "web/node_modules/p/relu.onnx",
        "made/relu.onnx",
    ] {
        put(at);
    }
    fs::write(dir.path().join("venv/pyvenv.cfg"), "").unwrap();
    fs::write(dir.path().join("made/CACHEDIR.TAG"), "").unwrap();
    let run = within(dir.path(), &["optimize", "."]);
    assert_eq!(run.code, 0, "{run:?}");
    let said: Vec<&str> = run.err.lines().map(|line| line.split(';').next().unwrap()).collect();
    let wanted = [
        "note: ./made is left out: its CACHEDIR.TAG says that it is a cache",
        "note: ./venv is left out: it is a virtual environment of Python",
        "note: ./web/node_modules is left out: packages are installed there",
        "note: 1 model found",
    ];
    assert_eq!(said, wanted);
    assert!(dir.path().join("a/relu.relayout.onnx").is_file());
    // What is named is taken, and with -q nothing is said.
    let run = within(dir.path(), &["optimize", "-q", "venv/lib/python3.11/site-packages", "made"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(dir.path().join("made/relu.relayout.onnx").is_file());
}
