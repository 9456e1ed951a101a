//! `relayout optimize --tune --python`: a Python runs the model and the results on a device, for which its CPU provider stands in.
#![cfg(unix)]

use crate::common::{Run, folder, listing, python, relayout, str};
use relayout::Model;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A shuffle of channels between convolutions: both kinds of session have a result of their own.
fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases/gain/shuffles_channels_for_a_convolution.onnx")
}

/// A Python that runs the script with the CPU's provider in place of the one that is asked for, and finds this module first.
fn stand_in(folder: &Path, module: Option<&str>) -> PathBuf {
    let script = folder.join("python");
    let found = folder.join("modules");
    fs::create_dir_all(&found).unwrap();
    if let Some(module) = module {
        fs::write(found.join("onnxruntime.py"), module).unwrap();
    }
    let (found, python) = (found.display(), python());
    let text =
        format!("#!/bin/sh\nPYTHONPATH='{found}' exec '{}' \"$@\" --on CPUExecutionProvider\n", python.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

fn tuned(dir: &Path, out: &Path, python: &Path, more: &[&str]) -> Run {
    let (model, cache) = (demo(), dir.join("times.json"));
    let args = ["optimize", str(&model), "--provider", "cuda", "--tune", "--python", str(python), "-o", str(out)];
    relayout(args.iter().chain(&["--tune-cache", str(&cache)]).chain(more))
}

fn told(run: &Run) -> serde_json::Value {
    let told: serde_json::Value = serde_json::from_str(run.fine()).unwrap();
    told["models"][0].clone()
}

#[test]
fn the_model_and_its_results_run_in_turns_and_the_fastest_is_written() {
    let dir = folder(&[]);
    let python = stand_in(dir.path(), None);
    let (a, b) = (dir.path().join("a.onnx"), dir.path().join("b.onnx"));
    let first = told(&tuned(dir.path(), &a, &python, &["--json"]));
    let tuning = &first["tuning"];
    let all = tuning["candidates"].as_array().unwrap();
    let sessions = |optimized: bool| -> Vec<&str> {
        let of = all.iter().filter(|candidate| candidate["optimized"] == optimized);
        of.map(|candidate| candidate["session"].as_str().unwrap()).collect()
    };
    assert_eq!(sessions(false), ["prefer_nhwc=1", "prefer_nhwc=0"], "{tuning}");
    assert_eq!(sessions(true), sessions(false), "{tuning}");
    assert!(all.iter().all(|candidate| candidate["ms"].as_f64() > Some(0.0)), "{tuning}");
    assert!(tuning["provider"].as_str().unwrap().starts_with("CPUExecutionProvider on "), "{tuning}");
    assert!(tuning["runtime"].as_str().unwrap().starts_with("ONNX Runtime 1."), "{tuning}");
    if tuning["times"].is_null() {
        assert_eq!((&tuning["slower"], &first["status"]), (&true.into(), &"unchanged".into()), "{first}");
    } else {
        assert!(tuning["times"]["ratio_between"][1].as_f64() >= Some(1.0), "{tuning}");
        let written = Model::open(&a).unwrap();
        assert_eq!(written.metadata("relayout.session"), tuning["session"].as_str(), "{tuning}");
        relayout(["verify", str(&demo()), str(&a)]).fine();
    }
    let again = told(&tuned(dir.path(), &b, &python, &["--json"]));
    assert_eq!(tuning, &again["tuning"], "what ran once does not run again");
    assert!(fs::read(&a).unwrap() == fs::read(&b).unwrap(), "the same times give the same bytes");
    let text = tuned(dir.path(), &b, &python, &[]).fine().to_owned();
    assert!(text.contains("; all in turns: as exported with prefer_nhwc=1 "), "{text}");
    assert_eq!(listing(dir.path()), ["a.onnx", "b.onnx", "modules", "python", "times.json"]);
}

/// A runtime that runs results of ours wrong: those come from files of the folder that Python is given.
const WRONG: &str = r#"
import sys
here = sys.path.pop(0) if sys.path[0].endswith("modules") else sys.path.pop(1)
del sys.modules["onnxruntime"]
import onnxruntime as real
sys.modules["onnxruntime"] = real
class Session(real.InferenceSession):
    def __init__(self, path, *args, **more):
        super().__init__(path, *args, **more)
        self.wrong = "file-" in path
    def io_binding(self):
        io = super().io_binding()
        left = io.copy_outputs_to_cpu
        io.copy_outputs_to_cpu = lambda: [value + self.wrong * abs(value).max() for value in left()]
        return io
real.InferenceSession = Session
"#;

#[test]
fn a_result_that_computes_something_else_there_is_not_taken() {
    let dir = folder(&[]);
    let python = stand_in(dir.path(), Some(WRONG));
    let out = dir.path().join("out.onnx");
    let entry = told(&tuned(dir.path(), &out, &python, &["--json"]));
    let all = entry["tuning"]["candidates"].as_array().unwrap();
    assert!(all.iter().any(|candidate| candidate["optimized"] == true), "{entry}");
    for candidate in all {
        assert_eq!(candidate["ms"].is_null(), candidate["optimized"] == true, "{entry}");
    }
    assert_eq!((&entry["status"], &entry["tuning"]["slower"]), (&"unchanged".into(), &true.into()), "{entry}");
    assert!(fs::read(demo()).unwrap() == fs::read(&out).unwrap());
}

#[test]
fn a_python_that_lacks_the_provider_is_named_and_nothing_is_written() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let line = tuned(dir.path(), &out, &python(), &[]).refused(1).to_owned();
    assert!(line.contains("CUDAExecutionProvider"), "{line}");
    let line = tuned(dir.path(), &out, Path::new("no/such/python"), &[]).refused(1).to_owned();
    assert!(line.contains("cannot start no/such/python"), "{line}");
    let line = tuned(dir.path(), &out, &python(), &["--provider-library", "p.so"]).refused(2).to_owned();
    assert!(line.contains("--python") && line.contains("--provider-library"), "{line}");
    assert_eq!(listing(dir.path()), [""; 0]);
}
