//! The Python of the tests, whose CPU provider stands in for a device: the way of a table, and what is said where there is none.

use super::{Asked, AskedModel, DeviceOptions, DeviceRuntime, calibrate_device, models};
use relayout_targets::Provider;
use relayout_targets::device::{Case, ConvCase, DeviceCosts, Points, specs};
use relayout_verify::ElementType;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const CUDA: &str = "CUDAExecutionProvider";

fn python() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.relayout/venv/bin/python");
    std::env::var_os("PYTHON").map_or_else(own, PathBuf::from)
}

#[test]
fn every_grid_is_measured_through_a_python_and_the_table_says_of_what() {
    let provider = Provider::of("cuda").unwrap();
    let mut runtime = DeviceRuntime::start(&python(), CUDA, true).unwrap();
    assert!(runtime.is_stand_in() && runtime.runtime().starts_with("ONNX Runtime 1."), "{runtime:?}");
    let mut options = DeviceOptions::new("2026-11-30").few();
    options.rounds = 3;
    let mut heard = Vec::new();
    let made = calibrate_device(&mut runtime, &provider, &options, &mut |done, of| heard.push((done, of))).unwrap();
    assert!(heard.windows(2).all(|w| w[0].0 < w[1].0) && heard.last().is_some_and(|(done, of)| done == of));
    let text = made.text();
    let costs = DeviceCosts::parse("measured", &text).unwrap();
    let machine = costs.machine();
    assert_eq!((machine.provider.as_str(), machine.device.as_str()), ("cuda", "cpu"));
    assert!(costs.source().contains("a CPU, so they say nothing of a device"), "{}", costs.source());
    let measured = specs(Points::Few).iter().filter(|spec| !spec.may_lack()).count();
    assert_eq!(text.matches("[grid.").count(), measured, "{text}");
}

#[test]
fn models_run_in_turns_and_a_wrong_op_is_told() {
    let mut runtime = DeviceRuntime::start(&python(), CUDA, true).unwrap();
    let mut file = |channels, pixels, half| {
        let conv = ConvCase { channels_last: true, depthwise: false, taps: 9, channels, pixels };
        runtime.put(&models::of(&Case::Conv(conv), half).unwrap().bytes).unwrap()
    };
    let [light, heavy] = [file(8, 64, true), file(32, 1024, false)];
    let model = |path: &PathBuf, op| AskedModel {
        path: path.clone(),
        options: BTreeMap::new(),
        optimized: false,
        threads: 1,
        op: Some(op),
        feeds: None,
        results: true,
    };
    let asked =
        |op| Asked { models: vec![model(&light, "Conv"), model(&heavy, op)], rounds: [5, 5], seconds: 0.0, turns: 2 };
    let ran = runtime.run(&asked("Conv")).unwrap();
    assert!(ran.len() == 2 && ran.iter().all(|ran| ran.ns.len() == 10), "{ran:?}");
    // Two hundred times the multiplications: that is seen whatever else runs.
    let [least, most] = [0, 1].map(|at: usize| ran[at].ns.iter().min().unwrap());
    assert!(*least > 0 && least < most, "{ran:?}");
    let left = &ran[0].results;
    assert!(
        left.iter().any(|tensor| tensor.shape == [1, 8, 8, 8] && tensor.element_type == ElementType::F16),
        "{left:?}"
    );
    let why = runtime.run(&asked("Resize")).unwrap_err().to_string();
    assert_eq!(why, "Resize ran on no provider in place of CPUExecutionProvider");
    assert!(runtime.run(&asked("Conv")).is_ok(), "what went wrong once is over");
}

#[test]
fn a_python_that_can_not_be_had_or_lacks_the_provider_is_named() {
    let why = |python: &Path, provider| DeviceRuntime::start(python, provider, false).unwrap_err().to_string();
    let none = why(Path::new("no/such/python"), CUDA);
    assert!(none.contains("cannot start no/such/python") && none.contains("that has ONNX Runtime"), "{none}");
    let lacking = why(&python(), "NoSuchExecutionProvider");
    assert!(lacking.contains("has no NoSuchExecutionProvider; it has ") && lacking.contains("CPUExecutionProvider"));
}

/// A Python that finds this module in the place of ONNX Runtime.
#[cfg(unix)]
fn fake(folder: &Path, module: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(folder.join("onnxruntime.py"), module).unwrap();
    let script = folder.join("python");
    let text = format!("#!/bin/sh\nPYTHONPATH='{}' exec '{}' \"$@\"\n", folder.display(), python().display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// What a runtime with CUDA's provider has, of which every session says where it runs.
#[cfg(unix)]
const MODULE: &str = r#"
import json, os
__version__ = "1.0"
get_available_providers = lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
class GraphOptimizationLevel: ORT_ENABLE_ALL = ORT_DISABLE_ALL = 0
class SessionOptions: pass
class Binding:
    bind_output = synchronize_outputs = lambda self, *_: None
class InferenceSession:
    def __init__(self, path, options, providers): self.prefix = options.profile_file_prefix
    get_providers = lambda self: PROVIDERS
    get_inputs = get_outputs = lambda self: []
    io_binding = lambda self: Binding()
    run_with_iobinding = lambda self, io: None
    def end_profiling(self):
        args = {"op_name": "Identity", "provider": "CPUExecutionProvider"}
        with open(self.prefix + ".json", "w") as file:
            json.dump([{"cat": "Node", "name": "n_kernel_time", "args": args}], file)
        return self.prefix + ".json"
"#;

#[cfg(unix)]
#[test]
fn a_runtime_that_falls_back_to_the_cpu_is_told() {
    let on = |providers: &str, says: &str| {
        let folder = tempfile::tempdir().unwrap();
        let python = fake(folder.path(), &format!("{MODULE}\nPROVIDERS = {providers}\n"));
        let mut runtime = DeviceRuntime::start(&python, CUDA, false).unwrap();
        let provider = Provider::of("cuda").unwrap();
        let made = calibrate_device(&mut runtime, &provider, &DeviceOptions::new("d"), &mut |_, _| {});
        let why = made.unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    };
    on("['CPUExecutionProvider']", "runs everything on CPUExecutionProvider in place of CUDAExecutionProvider");
    on("get_available_providers()", "no node of the model ran on CUDAExecutionProvider");
}

#[cfg(unix)]
#[test]
fn a_python_without_the_runtime_or_that_ends_is_quoted() {
    for (module, says) in [
        ("raise ImportError('no such package')", "has no ONNX Runtime: no such package"),
        ("import sys; print('out of luck', file=sys.stderr); sys.exit(3)", "gave no answer: out of luck"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let why = DeviceRuntime::start(&fake(folder.path(), module), CUDA, false).unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
}
