//! Failures: the exit status, one line that names the cause, and nothing written.

use crate::common::{command, finish, folder, listing, model, relayout, str, with_stdin};
use std::fs;
use std::path::Path;

const BEFORE: &[u8] = b"this was here before\n";

/// A failed `optimize` of this model leaves the output as it was, whether there was one or not; the line it says.
fn refused(input: &Path) -> String {
    let dir = folder(&[]);
    let (new, old) = (dir.path().join("new.onnx"), dir.path().join("old.onnx"));
    fs::write(&old, BEFORE).unwrap();
    let report = dir.path().join("report.json");
    let lines = [&new, &old].map(|out| {
        let run = relayout(["optimize", str(input), "-o", str(out), "--report", str(&report)]);
        run.refused(1).to_owned()
    });
    assert_eq!(lines[0], lines[1]);
    assert_eq!(listing(dir.path()), ["old.onnx"], "nothing else is written, and no unfinished file is left");
    assert_eq!(fs::read(&old).unwrap(), BEFORE);
    lines[0].clone()
}

#[test]
fn a_broken_model_is_refused_in_one_line_that_names_the_cause() {
    for (name, cause) in [
        ("bad_cycle", "cycle through or before node 1 (Add -> `b`)"),
        ("bad_operator", "`Reluu` is not an operator of the ONNX standard"),
        ("bad_attribute", "no attribute `colour`"),
        ("bad_perm", "`perm` [0, 1, 1, 2] is not a permutation"),
        ("bad_input", "reads `nowhere`, which nothing defines"),
        ("bad_domain", "domain `nobody.imported`"),
        ("bad_recursion", "function `Block` calls itself"),
        ("bad_elements", "4611686018427387904"),
    ] {
        let line = refused(&model(name));
        assert!(line.contains(cause), "{name}: {line}");
        assert!(line.contains(&format!("{name}.onnx")), "{name}: {line}");
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let dir = folder(&[]);
    let input = dir.path().join("cut.onnx");
    let whole = fs::read(model("conv")).unwrap();
    for length in (0..whole.len()).step_by(37) {
        fs::write(&input, &whole[..length]).unwrap();
        let line = refused(&input);
        assert!(line.contains("cut.onnx"), "{length}: {line}");
    }
}

#[test]
fn what_is_no_model_is_refused() {
    let dir = folder(&[]);
    assert!(refused(&dir.path().join("nowhere.onnx")).contains("nowhere.onnx"));
    assert!(refused(dir.path()).contains("directory"));
    let text = dir.path().join("text.onnx");
    fs::write(&text, "not a model\n").unwrap();
    assert!(refused(&text).contains("text file"));
    let piped = with_stdin(&["optimize", "-", "-o", "-"], b"");
    assert!(piped.refused(1).contains("empty"));
}

#[test]
fn external_data_that_is_missing_or_lies_outside_of_the_folder_is_refused() {
    let dir = folder(&["external"]);
    let input = dir.path().join("external.onnx");
    assert!(refused(&input).contains("external.bin"));
    #[cfg(unix)]
    {
        let data = model("external").with_file_name("external.bin").canonicalize().unwrap();
        std::os::unix::fs::symlink(data, dir.path().join("external.bin")).unwrap();
        assert!(refused(&input).contains("leads out of the model's folder"));
    }
    // Read from stdin a model has no folder.
    let piped = with_stdin(&["optimize", "-", "-o", "-"], &fs::read(&input).unwrap());
    assert!(piped.refused(1).contains("bias"), "{piped:?}");
}

#[test]
fn two_thousand_nested_bodies_are_refused() {
    let dir = folder(&[]);
    let input = dir.path().join("nested.onnx");
    fs::write(&input, nested(2000)).unwrap();
    assert!(refused(&input).contains("nesting"));
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let dir = folder(&[]);
    let missing = dir.path().join("missing/out.onnx");
    let run = relayout(["optimize", str(&model("relu")), "-o", str(&missing)]);
    assert!(run.refused(1).starts_with(&format!("error: cannot write {}", str(&missing))), "{run:?}");
    // Not even root can write there.
    if cfg!(target_os = "linux") {
        let run = relayout(["optimize", str(&model("relu")), "-o", "/proc/relayout.onnx"]);
        assert!(run.refused(1).contains("cannot write /proc/relayout.onnx"), "{run:?}");
    }
    assert!(listing(dir.path()).is_empty());
}

#[test]
fn a_report_that_cannot_be_written_keeps_the_model_from_being_written() {
    let dir = folder(&[]);
    let out = dir.path().join("out.onnx");
    let missing = dir.path().join("missing/report.json");
    for report in [missing.as_path(), dir.path()] {
        let run = relayout(["optimize", str(&model("relu")), "-o", str(&out), "--report", str(report)]);
        assert!(run.refused(1).contains("cannot write"), "{run:?}");
    }
    assert!(listing(dir.path()).is_empty());
}

#[test]
fn a_wrong_call_ends_with_2_and_says_what_is_wrong() {
    let relu = model("relu");
    let relu = str(&relu);
    let calls: [(&[&str], &str); 19] = [
        (&["optimise"], "unrecognized subcommand 'optimise'"),
        (&["optimize"], "<MODEL>..."),
        (&["optimize", "-"], "name the file to write with -o, or -o -"),
        (&["optimize", "-", "-o", "/"], "a model from stdin has no name"),
        (&["optimize", "-", relu], "a model from stdin is optimized alone"),
        (&["optimize", relu, "-q", "-v"], "'--quiet' cannot be used with '--verbose'"),
        (&["optimize", relu, "-o", "-", "--colour"], "--colour"),
        (&["optimize", relu, "-o", "-", "--target", "abacus"], "abacus"),
        (&["optimize", relu, "-o", "-", "--target-file", "nowhere.toml"], "nowhere.toml"),
        (&["optimize", relu, "-o", "-", "--dim", "H"], "NAME=SIZE"),
        (&["optimize", relu, "-o", "-", "--dim", "H=0"], "expected a positive integer"),
        (&["optimize", relu, "-o", "-", "--print-after", "lunch"], "no pass `lunch`"),
        (&["optimize", relu, "-o", "-", "--report", "-"], "stdout"),
        (&["optimize", relu, "-o", "-", "--input", "x"], "NAME:FROM->TO"),
        (&["optimize", relu, "-o", "-", "--output", "out.onnx"], "the file to write is `-o FILE`"),
        (&["optimize", relu, "-o", "-", "--input", "x:NCHW->NHWD"], "`D` is not an axis"),
        (&["optimize", relu, "-o", "-", "--input", "x:NCHW->NHWC", "--input", "x:NCHW->NCHW"], "two layouts"),
        (
            &["optimize", relu, "-o", "-", "--block", "8"],
            "--block is an option of target `ort-cpu`, and of `onnx` with --runtime onnxruntime",
        ),
        (&["optimize", relu, "-o", "-", "--no-guard"], "--no-guard is an option of target `ort-cpu`"),
    ];
    for (args, cause) in calls {
        let run = relayout(args);
        assert!(run.refused(2).contains(cause), "{run:?}");
    }
    for (call, cause) in [
        (&["print", relu, "--dot", "--json"][..], "two forms"),
        (&["explain", relu, "--network-dot", "-", "--json"], "not JSON"),
        (&["explain", relu, "--problem", "-", "--json"], "not JSON"),
        (&["ops", "--markdown", "--format", "json"], "two forms"),
    ] {
        let run = relayout(call);
        assert!(run.code == 2 && run.out.is_empty() && run.err.contains(cause), "{run:?}");
    }
    assert!(relayout(["verify", relu, relu, "--rounds", "0"]).refused(2).contains("--rounds"));
    assert!(relayout(["verify", relu, relu, "--exact", "--rms", "1"]).refused(2).contains("--rms"));
}

#[test]
fn a_layout_that_the_model_cannot_have_is_a_failure_of_the_model() {
    let relu = model("relu");
    for (option, end, cause) in [
        ("--input", "image:NCHW->NHWC", "the model has no input `image`; it has `x`"),
        ("--output", "x:NCHW->NHWC", "the model has no output `x`; it has `y`"),
        ("--input", "x:NC->CN", "of 4 axes, but `x:NC->CN` speaks of 2"),
        ("--input", "x:NCHW->NCHW2c", "in the operators of target `onnx`"),
    ] {
        let run = relayout(["optimize", str(&relu), "-o", "-", option, end]);
        assert!(run.refused(1).contains(cause), "{run:?}");
    }
}

#[test]
fn verify_says_when_onnx_runtime_is_missing_and_where_to_get_it() {
    let dir = folder(&["relu"]);
    let relu = dir.path().join("relu.onnx");
    let mut command = command();
    command.current_dir(dir.path()).env("PATH", "").env_remove("ORT_DYLIB_PATH");
    let run = finish(command.args(["verify", str(&relu), str(&relu)]));
    assert!(run.refused(1).contains("pip install onnxruntime"), "{run:?}");
}

/// To load a library or to start a Python is to run it: none is found by where the program is started.
#[cfg(unix)]
#[test]
fn nothing_in_the_folders_around_is_loaded_or_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = folder(&["relu"]);
    let at = |path: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    let packages = ".relayout/venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.99.9";
    fs::write(at(packages), "not a library").unwrap();
    fs::write(at("onnxruntime/capi/libonnxruntime.so.1.99.9"), "not a library").unwrap();
    fs::write(at("site.py"), "raise SystemExit").unwrap();
    fs::write(at("tools/runner/__main__.py"), "").unwrap();
    let python = at(".relayout/runner/bin/python");
    fs::write(&python, format!("#!/bin/sh\necho run > {}\n", str(&dir.path().join("run")))).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let below = at("below/deep/x").parent().unwrap().to_owned();
    let relu = dir.path().join("relu.onnx");
    // With a Python on the search path, whose own folder of packages is none of ours, and without any.
    for (folder, path) in [(dir.path(), ""), (&below, ""), (dir.path(), "/usr/bin:/bin"), (&below, "/usr/bin:/bin")] {
        let call = |arguments: &[&str]| {
            let mut command = command();
            command.current_dir(folder).env("PATH", path).env_remove("ORT_DYLIB_PATH").env_remove("PYTHON");
            finish(command.args(arguments))
        };
        let calls = [&["verify", str(&relu), str(&relu)][..], &["calibrate", "--quick"]];
        // With a runtime of the machine's own this would measure for minutes.
        for arguments in calls.iter().take(if path.is_empty() { 2 } else { 1 }) {
            let run = call(arguments);
            assert!(!run.err.contains("1.99.9"), "{run:?}");
            if path.is_empty() {
                assert!(run.refused(1).contains("ONNX Runtime is not installed"), "{run:?}");
            }
        }
        let gpu = ["calibrate", "--target", "cuda-tensorcore", "--device", "cpu"];
        assert!(call(&gpu).refused(2).contains("--runner"), "none is looked for");
        let runner = dir.path().join("tools/runner");
        let run = call(&[&gpu[..], &["--runner", str(&runner)]].concat());
        assert_eq!(run.code, 1, "{run:?}");
        assert!(!dir.path().join("run").exists(), "the Python beside the runner was run");
    }
}

#[test]
fn verify_names_a_model_that_is_not_there_or_does_not_run() {
    let relu = model("relu");
    assert!(relayout(["verify", str(&relu), "nowhere.onnx"]).refused(1).contains("nowhere.onnx"));
    assert!(relayout(["verify", str(&relu), str(relu.parent().unwrap())]).refused(1).contains("directory"));
    assert!(relayout(["verify", str(&relu), str(&model("bad_operator"))]).refused(1).contains("Reluu"));
}

#[test]
fn verify_names_a_library_of_custom_ops_that_does_not_load() {
    let relu = model("relu");
    let with = |library: &str| relayout(["verify", str(&relu), str(&relu), "--custom-ops", library]);
    assert!(with("nowhere.so").refused(1).contains("cannot register the custom ops of `nowhere.so`"));
    assert!(with(str(&relu)).refused(1).contains("relu.onnx`"));
}

/// If within If within If, written byte by byte: no library nests so deep.
fn nested(depth: usize) -> Vec<u8> {
    let leaf =
        [field(1, &[field(2, b"y"), field(4, b"Identity"), field(1, b"x")].concat()), field(2, b"leaf")].concat();
    let mut graph = leaf.clone();
    for _ in 0..depth {
        let branch = |name: &[u8], body: &[u8]| {
            field(5, &[field(1, name), field(6, body), vec![20 << 3 & 0x7f | 0x80, 1, 5]].concat())
        };
        let node = [
            field(1, b"c"),
            field(2, b"y"),
            branch(b"then_branch", &graph),
            branch(b"else_branch", &leaf),
            field(4, b"If"),
        ];
        graph = [field(1, &node.concat()), field(2, b"g")].concat();
    }
    [vec![8, 9], field(7, &graph), field(8, &[16, 18])].concat()
}

/// A length-delimited field of a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}
