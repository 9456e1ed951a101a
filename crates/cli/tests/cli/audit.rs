//! `doctor`, `audit`, `check-certificate`, `explain --why`: what a model costs, proofs of it, and why a value lies as it does.

use crate::common::{self, command, finish, folder, listing, model, relayout, str, with_stdin};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn audit_says_of_each_move_whether_it_can_go_and_changes_nothing() {
    let before = fs::read(model("conv")).unwrap();
    let run = relayout(["audit", "--json", str(&model("conv"))]);
    let audit = &json(run.fine())[0]["audit"];
    assert_eq!(audit["schema"], 2);
    assert_eq!(audit["moves"]["nodes"], 3);
    let moves = audit["list"].as_array().unwrap();
    let fates: Vec<&str> = moves.iter().map(|m| m["fate"].as_str().unwrap()).collect();
    assert_eq!(fates, ["folds", "stays", "stays"], "the first one moves the weights");
    for m in moves.iter().filter(|m| m["fate"] == "stays") {
        let ways = m["ways"].as_array().unwrap();
        assert_eq!(ways.len(), 2, "one for each side: {m}");
        assert!(ways.iter().all(|way| way["more_ns"].is_i64()), "{m}");
        assert!(ways.iter().any(|way| way["missing"].is_string()), "{m}");
    }
    let number = |field: &str| audit[field].as_u64().unwrap();
    assert!(number("floor_ns") <= number("best_ns") && number("best_ns") <= number("predicted_ns"), "{audit}");
    let sum: u64 = moves.iter().filter_map(|m| m["cost_ns"].as_u64()).sum();
    assert_eq!(number("moves_ns"), sum);
    assert_eq!(fs::read(model("conv")).unwrap(), before);
    let text = relayout(["audit", str(&model("conv"))]);
    assert!(text.fine().contains("stays: ") && text.text().contains("can't go: no form of Conv"), "{text:?}");
}

#[test]
fn what_was_optimized_is_at_its_floor() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    for name in ["relu", "conv", "branches", "symbolic", "functions"] {
        relayout(["optimize", str(&model(name)), "-o", str(&out), "--numerics", "exact"]).fine();
        let run = relayout(["audit", "--json", "--fail-above", "0", str(&out)]);
        let all = json(run.fine());
        let audit = &all[0]["audit"];
        assert_eq!(audit["predicted_ns"], audit["floor_ns"], "{name}: {audit}");
    }
}

#[test]
fn audit_fails_above_the_limit_and_still_says_what_it_found() {
    let fine = relayout(["audit", str(&model("nothing")), "--fail-above", "0"]);
    assert!(fine.fine().starts_with("moves: 0\n"), "{fine:?}");
    let run = relayout(["audit", str(&model("relu")), "--fail-above", "50"]);
    assert_eq!((run.code, run.err.lines().count()), (3, 1), "{run:?}");
    assert!(run.err.contains("more than 50 % above its floor"), "{run:?}");
    assert!(run.text().starts_with("moves: 2\n"), "{run:?}");
    let usage = relayout(["audit", str(&model("relu")), "--fail-above=-1"]);
    assert!(usage.refused(2).contains("`-1` is not a non-negative integer"), "{usage:?}");
}

#[test]
fn two_models_stand_side_by_side() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    relayout(["optimize", str(&model("relu")), "-o", str(&out)]).fine();
    let run = relayout(["audit", str(&model("relu")), str(&out)]);
    assert!(run.fine().lines().any(|line| line == "| moves | 2 | 0 |"), "{run:?}");
    let both = json(relayout(["audit", "--json", str(&model("relu")), str(&out)]).fine());
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    let stdin = with_stdin(&["audit", "-"], &fs::read(model("relu")).unwrap());
    assert!(stdin.fine().starts_with("moves: 2\n"), "{stdin:?}");
    assert!(with_stdin(&["audit", "-", "-"], b"").refused(2).contains("stdin"));
}

#[test]
fn moves_around_an_op_that_nothing_is_known_of_stay() {
    let run = relayout(["audit", "--json", str(&model("custom_between"))]);
    let all = json(run.fine());
    let list = all[0]["audit"]["list"].as_array().unwrap();
    assert!(!list.is_empty() && list.iter().all(|m| m["fate"] == "stays"), "{list:?}");
}

#[test]
fn moves_that_can_go_are_named() {
    let run = relayout(["audit", "--json", str(&model("relu"))]);
    let all = json(run.fine());
    let audit = &all[0]["audit"];
    assert!(audit["list"].as_array().unwrap().iter().all(|m| m["fate"] == "goes"), "{audit}");
    assert_eq!((&audit["floor_ns"], &audit["best"]["nodes"]), (&0.into(), &0.into()));
}

#[test]
fn a_certificate_holds_for_its_model_and_no_other() {
    let dir = folder(&[]);
    let (out, certificate) = (dir.path().join("out.onnx"), dir.path().join("certificate.json"));
    for target in ["onnx", "ort-cpu"] {
        let run = relayout([
            "optimize",
            str(&model("conv")),
            "-o",
            str(&out),
            "--target",
            target,
            "--certificate",
            str(&certificate),
        ]);
        run.fine();
        let check = ["check-certificate", "--target", target, "--certificate", str(&certificate)];
        let holds = relayout(check.iter().copied().chain([str(&model("conv"))]));
        assert!(holds.fine().starts_with("the certificate holds: cost "), "{holds:?}");
        let made = relayout(["check-certificate", "--target", target, str(&model("conv"))]);
        assert_eq!(made.fine(), holds.text());
        let other = relayout(check.iter().copied().chain([str(&model("branches"))]));
        assert!(other.refused(3).contains("another problem"), "{other:?}");
    }
    let run = relayout(["check-certificate", "--json", str(&model("conv"))]);
    let checked = json(run.fine());
    assert_eq!((&checked["optimal"], &checked["cost_ns"]), (&true.into(), &checked["bound_ns"]));
}

#[test]
fn a_certificate_that_was_tampered_with_is_refused() {
    let dir = folder(&[]);
    let (out, path) = (dir.path().join("out.onnx"), dir.path().join("certificate.json"));
    relayout(["optimize", str(&model("conv")), "-o", str(&out), "--certificate", str(&path)]).fine();
    let good = json(&fs::read_to_string(&path).unwrap());
    let check = |what: &str, change: &dyn Fn(&mut Value), code: i32, says: &str| {
        let mut bad = good.clone();
        change(&mut bad["certificate"]);
        fs::write(&path, bad.to_string()).unwrap();
        let run = relayout(["check-certificate", str(&model("conv")), "--certificate", str(&path)]);
        assert!(run.refused(code).contains(says), "{what}: {run:?}");
    };
    let (cost, bound) = (good["certificate"]["cost"].as_u64().unwrap(), good["certificate"]["bound"].as_u64().unwrap());
    assert!(cost > 0, "two moves stay");
    check("a bound too high", &|c| c["bound"] = (bound + 1).into(), 3, "it proves");
    check("a cost too low", &|c| c["cost"] = (cost - 1).into(), 3, "claims a cost");
    check("another assignment", &|c| c["assignment"] = Value::Array(Vec::new()), 3, "more than can be paid");
    check("no proofs", &|c| c["parts"] = Value::Array(Vec::new()), 3, "0 proofs");
    check("a field left out", &|c| drop(c.as_object_mut().unwrap().remove("parts")), 1, "is not a certificate");
    fs::write(&path, "{}").unwrap();
    relayout(["check-certificate", str(&model("conv")), "--certificate", str(&path)]).refused(1);
    relayout(["check-certificate", str(&model("conv")), "--certificate", "/nowhere/c.json"]).refused(1);
}

#[test]
fn only_one_result_goes_to_stdout() {
    let run = relayout(["optimize", str(&model("relu")), "-o", "-", "--certificate", "-"]);
    assert!(run.refused(2).contains("stdout"), "{run:?}");
}

#[test]
fn explain_prices_each_layout_of_a_value() {
    let names = json(relayout(["explain", "--json", str(&model("conv"))]).fine());
    let left = &names["graphs"][0]["moves"][0];
    assert!(left["cost_ns"].is_u64() && left["ways"].as_array().map(Vec::len) == Some(2), "{left}");
    let value = left["value"].as_str().unwrap();
    let run = relayout(["explain", "--why", value, "--json", str(&model("conv"))]);
    let all = json(run.fine());
    let why = &all["values"][0][1];
    assert_eq!(why["value"], value);
    let alternatives = why["alternatives"].as_array().unwrap();
    assert!(alternatives.len() > 1, "{why}");
    let taken: Vec<&Value> = alternatives.iter().filter(|a| a["taken"] == true).collect();
    assert_eq!(taken.len(), 1, "{why}");
    assert_eq!(taken[0]["left_ns"], 0, "what was decided costs nothing more than itself");
    for a in alternatives {
        assert!(
            a["only_ns"].is_i64() != a["missing"].as_array().is_some_and(|m| !m.is_empty()),
            "a price or a reason: {a}"
        );
        assert!(a["left_ns"].as_i64().is_none_or(|more| more >= 0), "nothing undercuts an optimum: {a}");
    }
    let text = relayout(["explain", "--why", value, str(&model("conv"))]);
    assert!(text.fine().contains("everything else decided again"), "{text:?}");
}

#[test]
fn explain_of_a_value_that_is_not_there_says_so() {
    let run = relayout(["explain", "--why", "nobody", str(&model("conv"))]);
    assert!(run.refused(2).contains("no value `nobody`"), "{run:?}");
    assert!(run.refused(2).contains("the model has no such name"), "{run:?}");
    // Names of exporters are long: a part of one is enough to be told of it.
    let run = relayout(["explain", "--why", "bia", str(&model("external"))]);
    assert!(run.refused(2).contains("no value `bia` where layouts are decided: there are `bias`;"), "{run:?}");
}

/// Under `ort-cpu` the program writes blocked files itself.
#[test]
fn a_blocked_file_is_read_as_what_it_decided() {
    let dir = folder(&[]);
    let (out, report) = (dir.path().join("out.onnx"), dir.path().join("report.json"));
    let large = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo/tf_unet.onnx");
    // Of exact numerics no ConvTranspose is written as a convolution and moves of blocks, which are not read back.
    let to = ["--target", "ort-cpu", "--numerics", "exact", "--report", str(&report)];
    relayout(["optimize", str(&large), "-o", str(&out)].into_iter().chain(to)).fine();
    let report = json(&fs::read_to_string(&report).unwrap());
    assert!(common::ops(&out).iter().any(|op| op == "ReorderOutput"), "the file is blocked");
    let run = relayout(["audit", "--json", "--target", "ort-cpu", "--numerics", "exact", str(&out)]);
    let all = json(run.fine());
    let audit = &all[0]["audit"];
    assert_eq!(audit["predicted_ns"], audit["floor_ns"], "what was decided is the best: {audit}");
    assert_eq!(audit["moves"]["nodes"], report["after"]["nodes"], "{audit}");
    assert!(audit["notes"][0].as_str().unwrap().contains("reorders"), "{audit}");
    let elsewhere = relayout(["audit", str(&out)]);
    assert!(elsewhere.fine().contains("audit it with --target ort-cpu"), "{elsewhere:?}");
    // In blocks of 16 its ConvTranspose is written as convolutions; in those of 8 it stays, which is faster there.
    let blocks = ["--target", "ort-cpu", "--block", "16"];
    relayout(["optimize", str(&large), "-o", str(&out)].into_iter().chain(blocks)).fine();
    let all = json(relayout(["audit", "--json", str(&out)].into_iter().chain(blocks)).fine());
    let audit = &all[0]["audit"];
    assert!(audit["predicted_ns"].is_null(), "{audit}");
    assert!(audit["notes"][1].as_str().unwrap().contains("in a form that the target does not have"), "{audit}");
}

#[test]
fn audit_says_what_a_provider_leaves_on_its_device() {
    let shuffles =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/shufflenet_v2_x1_0.onnx");
    let on = |provider: &str| json(relayout(["audit", "--json", str(&shuffles), "--provider", provider]).fine());
    // As many as were counted with the providers themselves.
    let qnn = on("qnn");
    assert_eq!((&qnn["file"]["transposes"], &qnn["file"]["elements"]), (&46.into(), &1_787_520.into()), "{qnn}");
    assert_eq!((&qnn["optimized"]["transposes"], &qnn["optimized"]["elements"]), (&1.into(), &150_528.into()), "{qnn}");
    // As onnxruntime-web 1.30.0 and onnxruntime-webgpu 1.27.0 run it.
    assert_eq!(on("webgpu")["file"]["transposes"], 46);
    assert_eq!(on("webgpu@1.27")["file"]["transposes"], 49);
    // As onnxruntime-gpu 1.31.1 ran it on an H100, 2026-11-27; `tools/providers/held.py` has seven networks more.
    assert_eq!((&on("cuda")["file"]["transposes"], &on("cuda")["counted"]), (&46.into(), &true.into()));
    let text = relayout(["audit", str(&shuffles), "--provider", "qnn"]);
    assert!(text.fine().contains("Transposes on the device: 46, 1787520 elements"), "{text:?}");
    let unknown = relayout(["audit", str(&model("conv")), "--provider", "tpu"]);
    assert!(unknown.refused(2).contains("webgpu"), "{unknown:?}");
    let other = relayout(["audit", str(&model("conv")), "--provider", "qnn", "--target", "nhwc"]);
    assert!(other.refused(2).contains("--provider is an option of target `ort-nhwc`"), "{other:?}");
    let two = relayout(["audit", str(&model("conv")), str(&model("relu")), "--provider", "qnn"]);
    assert!(two.refused(2).contains("one model"), "{two:?}");
}

#[test]
fn a_result_for_a_provider_says_what_its_device_runs_and_in_which_sessions() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let moved =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases/axes/scatter_elements.onnx");
    let args = ["optimize", str(&moved), "-o", str(&out), "--provider"];
    for (provider, session) in [("cuda", Some("prefer_nhwc=1")), ("qnn", None)] {
        let text = relayout(args.iter().chain(&[provider]));
        let said = session.map_or(String::new(), |option| format!(", in sessions with {option}"));
        let said = format!("on the device{said}: Transposes 2 -> 0, 240 elements -> 0 elements (predicted)");
        assert!(text.fine().contains(&said), "{text:?}");
        let told = json(relayout(args.iter().chain(&[provider, "--json"])).fine());
        let device = &told["models"][0]["report"]["device"];
        assert_eq!(device["before"]["transposes"], 2, "{told}");
        assert_eq!(device["after"]["elements"], 0, "{told}");
        assert_eq!(device.get("session").and_then(|option| option.as_str()), session, "{told}");
    }
    let plain = relayout(["optimize", str(&model("relu")), "-o", str(&out), "--json"]);
    assert!(json(plain.fine())["models"][0]["report"].get("device").is_none());
}

#[test]
fn what_gains_nothing_on_the_device_comes_out_as_it_was() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let run = relayout(["optimize", str(&model("nothing")), "-o", str(&out), "--provider", "qnn"]);
    run.fine();
    assert_eq!(fs::read(&out).unwrap(), fs::read(model("nothing")).unwrap());
}

/// The program where no runtime is found, so that what fits is the same everywhere.
fn without_runtime() -> Command {
    let mut command = command();
    command.env_remove("ORT_DYLIB_PATH").env("PATH", "").env("XDG_CACHE_HOME", "/nowhere");
    command
}

#[test]
fn doctor_says_what_is_here_and_what_fits_it() {
    let run = finish(without_runtime().arg("doctor"));
    let own = ["built for ", "processor: ", "threads: ", "instruction sets: ", "caches: "];
    let of_machine = |line: &str| {
        let at = own.iter().find_map(|heading| Some(line.find(heading)? + heading.len()));
        at.map_or(line.to_owned(), |at| line[..at].to_owned() + "[of the machine]")
    };
    let text: Vec<String> = run.fine().lines().map(of_machine).collect();
    insta::assert_snapshot!("a_machine_without_a_runtime", text.join("\n"));

    let here = json(relayout(["doctor", "--json"]).fine());
    assert!(here["onnx_runtime"]["version"].as_str().unwrap().starts_with("1."), "{here}");
    assert!(here["instruction_sets"].as_array().unwrap().contains(&"portable".into()), "{here}");
    assert!(here["threads"].as_u64() > Some(0), "{here}");
    if cfg!(target_arch = "x86_64") && here["providers"].as_array().unwrap().is_empty() {
        assert_eq!(
            (&here["fits"]["target"], &here["fits"]["threads"]),
            (&"ort-cpu".into(), &here["threads"]),
            "{here}"
        );
    }
    let wrong = finish(command().args(["doctor"]).env("ORT_DYLIB_PATH", "no/such/lib.so"));
    assert!(wrong.fine().contains("ONNX Runtime: none that can be used; ") && wrong.text().contains("no/such/lib.so"));
}

#[test]
fn doctor_of_a_model_says_what_each_target_would_gain_and_writes_nothing() {
    let dir = folder(&["conv", "nothing"]);
    let call = |more: &[&str]| finish(without_runtime().current_dir(dir.path()).arg("doctor").args(more));
    let before = listing(dir.path());
    let run = call(&["conv.onnx", "--seconds", "600"]);
    // Kernels and their times are those of the machine.
    let of_host = |line: &str| if line.contains("ort-cpu") { "[of the machine]".to_owned() } else { line.to_owned() };
    let text: Vec<String> = run.fine().lines().map(of_host).collect();
    insta::assert_snapshot!("a_model_and_the_targets", text.join("\n"));

    let told = json(call(&["conv.onnx", "--json", "--seconds", "600"]).fine());
    assert_eq!((&told["limit_hit"], &told["weights"]["convolutions"]), (&false.into(), &1.into()), "{told}");
    let row = &told["targets"][0];
    assert_eq!((&row["options"], &row["outcome"]), (&"--target onnx".into(), &"gains".into()), "{row}");
    assert_eq!((&row["moves"], &row["size"]), (&json("[3, 2]"), &json("[1728, 1152]")), "{row}");
    assert_eq!(told["next"][0], "relayout optimize conv.onnx");

    let nothing = call(&["nothing.onnx", "--seconds", "600"]);
    assert!(nothing.fine().contains("nothing to gain: nothing moves data in this model"), "{nothing:?}");
    assert!(nothing.text().ends_with("next:\n  leave it as it is\n"), "{nothing:?}");
    assert_eq!(listing(dir.path()), before);
    assert!(call(&["nowhere.onnx"]).refused(1).contains("nowhere.onnx"));
    assert!(call(&["conv.onnx", "--dim", "N=4"]).refused(2).contains("no input has an open dim `N`"));
}

#[test]
fn doctor_says_when_its_time_is_over() {
    let mut child = without_runtime()
        .args(["doctor", "-", "--seconds", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // The model never comes: stdin stays open until the program has ended.
    let stdin = child.stdin.take();
    let output = child.wait_with_output().expect("it ends by itself");
    drop(stdin);
    let text = String::from_utf8(output.stdout).expect("stdout is text");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{text}");
    assert!(text.starts_with("the time limit of 1 s was hit before all targets were tried\n"), "{text}");
    assert!(text.contains("not looked at: the time was over") && text.contains("doctor - --seconds 10\n"), "{text}");
}

#[test]
fn what_fits_this_machine_is_taken_where_that_is_asked_for() {
    let conv = model("conv");
    let call = |more: &[&str]| {
        let mut command = without_runtime();
        finish(command.args(["optimize", str(&conv), "--dry-run", "--json", "--for-this-machine"]).args(more))
    };
    let run = call(&[]);
    assert_eq!(json(run.text())["models"][0]["report"]["target"], "onnx", "{run:?}");
    assert!(run.err.starts_with("for this machine: --target onnx; ONNX Runtime is not found here"), "{run:?}");
    for (asked, taken) in [(["--target", "nhwc"], "nhwc"), (["--provider", "qnn"], "ort-nhwc")] {
        let run = call(&asked);
        assert_eq!(json(run.text())["models"][0]["report"]["target"], taken, "{run:?}");
        assert!(run.err.contains("asked for"), "{run:?}");
    }
    let run = relayout(["explain", str(&conv), "--json", "--for-this-machine", "--threads", "1", "-q"]);
    if cfg!(target_arch = "x86_64") {
        let report = json(run.fine());
        assert_eq!(report["target"], "ort-cpu", "{report}");
        assert!(report["cost_source"].as_str().unwrap().contains("1 thread"), "what is asked for stays: {report}");
    }
}
