//! `relayout calibrate`: what is refused before anything is measured. The measuring is tested in the library.

use crate::common::{command, finish, folder, python, relayout, str};
use std::fs;

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let dir = folder(&[]);
    let table = dir.path().join("costs.toml");
    fs::write(&table, "format = 6\ntarget = \"ort-cpu\"\n").unwrap();
    let line = relayout(["calibrate", "--check", "--costs", str(&table)]).refused(1).to_owned();
    assert!(line.contains("costs.toml") && line.contains("measured") && line.contains("relayout calibrate"), "{line}");
    let nowhere = dir.path().join("no/such/folder/costs.toml");
    let run = relayout(["calibrate", "--check", "--costs", str(&nowhere)]);
    assert!(run.refused(2).contains("cannot read table of costs"), "{run:?}");
    let run = relayout(["calibrate", "-o", str(&nowhere)]);
    assert!(run.refused(1).contains("there is no such folder"), "{run:?}");
    let run = relayout(["calibrate", "-o", str(dir.path())]);
    assert!(run.refused(1).contains("it is a directory"), "{run:?}");
    for arguments in [
        vec!["calibrate", "--target", "onnx"],
        vec!["calibrate", "--output", "x.toml"],
        vec!["calibrate", "--costs", "x.toml"],
        vec!["calibrate", "--check", "-o", "x.toml"],
        vec!["calibrate", "--threads", "-1"],
        vec!["calibrate", "--threads", "2,4"],
        vec!["calibrate", "--check", "--threads", "1,2"],
        vec!["calibrate", "model.onnx"],
        vec!["calibrate", "--check", "--tune-seconds", "3"],
        vec!["calibrate", "--check", "--target", "cuda-tensorcore", "model.onnx"],
    ] {
        relayout(&arguments).refused(2);
    }
}

#[test]
fn a_machine_without_the_runtime_is_told_how_to_get_it() {
    let run = finish(command().args(["calibrate", "--quick"]).env("ORT_DYLIB_PATH", "no/such/libonnxruntime.so"));
    assert!(run.refused(1).contains("no ONNX Runtime library at `no/such/libonnxruntime.so`"), "{run:?}");
}

/// A folder that looks like the runner's, and a script in place of Python.
#[cfg(unix)]
fn fake(dir: &std::path::Path, script: &str) -> [String; 4] {
    use std::os::unix::fs::PermissionsExt;
    fs::write(dir.join("__main__.py"), "").unwrap();
    let python = dir.join("python");
    fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    ["--python".to_owned(), str(&python).to_owned(), "--runner".to_owned(), str(dir).to_owned()]
}

/// Times for every case that the request names, all alike.
#[cfg(unix)]
const ANSWER: &str = r#"n=$(grep -cE '"(conv|move|pass)": \{' "$3/cases.json")
printf '{"schema": 1, "machine": "a GPU", "device": "cuda", "runtime": "PyTorch 0", "ns": [5000' > "$3/times.json"
i=1; while [ $i -lt "$n" ]; do printf ', 900000'; i=$((i + 1)); done >> "$3/times.json"
printf ']}' >> "$3/times.json""#;

#[cfg(unix)]
#[test]
fn what_a_runner_measures_becomes_a_table_that_decides() {
    let dir = folder(&["conv"]);
    let table = dir.path().join("gpu.toml");
    let fake = fake(dir.path(), ANSWER);
    let call = ["calibrate", "--target", "cuda-tensorcore", "-o", str(&table)];
    relayout(call.iter().copied().chain(fake.iter().map(String::as_str))).fine();
    let text = fs::read_to_string(&table).unwrap();
    assert!(
        text.contains("format = 1\ntarget = \"cuda-tensorcore\"") && text.contains("machine = \"a GPU\""),
        "{text}"
    );
    let model = dir.path().join("conv.onnx");
    let explain = |target| relayout(["explain", str(&model), "--target", target, "--costs", str(&table)]);
    let report = explain("cuda-tensorcore");
    assert!(report.fine().contains("measured on a GPU with PyTorch 0"), "{report:?}");
    let other = explain("ort-cpu");
    assert!(other.refused(1).contains("about target `cuda-tensorcore`, not `ort-cpu`"), "{other:?}");
    let other = explain("nhwc");
    assert!(other.refused(2).contains("`ort-cpu`, `ort-nhwc` and `cuda-tensorcore`"), "{other:?}");
}

#[cfg(unix)]
#[test]
fn a_runner_that_fails_is_quoted_and_leaves_no_table() {
    for (script, says) in [
        (
            "echo 'runner: no GPU here' >&2; exit 1",
            "no GPU here; without --costs target cuda-tensorcore keeps its built-in ones",
        ),
        ("exit 0", "left no times"),
        ("echo '{}' > \"$3/times.json\"", "the runner's answer can't be used"),
    ] {
        let dir = folder(&[]);
        let table = dir.path().join("gpu.toml");
        fs::write(&table, "the old one").unwrap();
        let fake = fake(dir.path(), script);
        let call = ["calibrate", "--target", "cuda-tensorcore", "-o", str(&table)];
        let run = relayout(call.iter().copied().chain(fake.iter().map(String::as_str)));
        assert!(run.refused(1).contains(says), "{run:?}");
        assert_eq!(fs::read_to_string(&table).unwrap(), "the old one");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing else is left");
    }
}

#[test]
fn options_of_one_target_are_refused_for_the_other() {
    for arguments in [
        vec!["calibrate", "--target", "cuda-tensorcore", "--check"],
        vec!["calibrate", "--target", "cuda-tensorcore", "--threads", "2"],
        vec!["calibrate", "--python", "python3"],
        vec!["calibrate", "--device", "cpu"],
        vec!["calibrate", "--target", "cuda-tensorcore", "--runner", "no/such/folder"],
        vec!["calibrate", "--target", "cuda-tensorcore", "--provider", "cuda"],
        vec!["calibrate", "--target", "ort-nhwc"],
        vec!["calibrate", "--provider", "cuda", "--threads", "2"],
        vec!["calibrate", "--provider", "cuda", "--check"],
        vec!["calibrate", "--provider", "qnn"],
    ] {
        relayout(&arguments).refused(2);
    }
}

#[test]
fn a_device_is_measured_through_a_python_and_its_table_decides() {
    let dir = folder(&["moves"]);
    let table = dir.path().join("device.toml");
    // The CPU's provider stands in for a device.
    let call = ["calibrate", "--provider", "cuda", "--quick", "--device", "cpu", "--python", str(&python())]
        .map(str::to_owned);
    relayout(call.iter().map(String::as_str).chain(["-o", str(&table)])).fine();
    let text = fs::read_to_string(&table).unwrap();
    assert!(text.contains("format = 1\ntarget = \"ort-nhwc\"") && text.contains("provider = \"cuda\""), "{text}");
    let model = dir.path().join("moves.onnx");
    let explain = |asked: [&str; 2]| relayout(["explain", str(&model), asked[0], asked[1], "--costs", str(&table)]);
    let report = explain(["--provider", "cuda"]);
    assert!(report.fine().contains("a CPU, so they say nothing of a device for provider cuda"), "{report:?}");
    let other = explain(["--provider", "qnn"]);
    assert!(other.refused(1).contains("`ort-nhwc --provider cuda`, not `ort-nhwc --provider qnn`"), "{other:?}");
    let other = explain(["--target", "ort-cpu"]);
    assert!(other.refused(1).contains("about target `ort-nhwc`, not `ort-cpu`"), "{other:?}");
}

#[test]
fn a_python_without_the_provider_is_told_and_leaves_no_table() {
    let dir = folder(&[]);
    let table = dir.path().join("device.toml");
    for (python, says) in
        [(python(), "CUDAExecutionProvider"), ("no/such/python".into(), "cannot start no/such/python")]
    {
        let run = relayout(["calibrate", "--provider", "cuda", "--python", str(&python), "-o", str(&table)]);
        let line = run.refused(1);
        assert!(line.contains("nothing was measured: ") && line.contains(says), "{line}");
        assert!(!table.exists());
    }
}
