//! Where reports and tables go: through links, to pipes and devices, and never in their place.
#![cfg(unix)]

use crate::common::{folder, listing, model, relayout, str};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::Command;

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("the system has mkfifo").success());
}

fn is_fifo(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().file_type().is_fifo()
}

/// What is written to a pipe while `work` runs.
fn piped<T>(pipe: &Path, work: impl FnOnce() -> T) -> (T, String) {
    let path = pipe.to_owned();
    let reader = std::thread::spawn(move || fs::read_to_string(path).unwrap());
    let done = work();
    if !reader.is_finished() {
        // Where nothing was written, this lets the reader end.
        let _ = fs::File::options().read(true).write(true).open(pipe);
    }
    (done, reader.join().unwrap())
}

#[test]
fn a_report_goes_through_links_and_pipes_and_replaces_neither() {
    for option in ["--report", "--certificate"] {
        let dir = folder(&["relu"]);
        let at = |name: &str| dir.path().join(name);
        fs::write(at("report.json"), "old").unwrap();
        symlink("report.json", at("link.json")).unwrap();
        symlink("/dev/null", at("null")).unwrap();
        fifo(&at("pipe"));
        let run = |report: &str| {
            let report = at(report);
            relayout(["optimize", str(&at("relu.onnx")), "-o", str(&at("out.onnx")), option, str(&report)])
        };
        run("link.json").fine();
        assert!(fs::symlink_metadata(at("link.json")).unwrap().is_symlink());
        let report = fs::read_to_string(at("report.json")).unwrap();
        assert!(report.starts_with('{'), "{report}");
        run("null").fine();
        assert!(fs::symlink_metadata(at("null")).unwrap().is_symlink());
        let (ended, said) = piped(&at("pipe"), || run("pipe"));
        ended.fine();
        assert!(is_fifo(&at("pipe")));
        assert_eq!(said, report);
        assert_eq!(listing(dir.path()), ["link.json", "null", "out.onnx", "pipe", "relu.onnx", "report.json"]);
    }
}

#[test]
fn the_name_of_stdout_among_the_devices_is_stdout() {
    let dir = folder(&["relu"]);
    let (input, out) = (dir.path().join("relu.onnx"), dir.path().join("out.onnx"));
    let call = |report: &'static str| relayout(["optimize", str(&input), "-o", str(&out), "--report", report]);
    let (a, b) = (call("-"), call("/dev/stdout"));
    assert_eq!((a.code, &a.out, &a.err), (b.code, &b.out, &b.err));
    let both = relayout(["optimize", str(&input), "-o", "-", "--report", "/dev/stdout"]);
    assert!(both.refused(2).contains("to stdout"), "{both:?}");
}

#[test]
fn a_table_of_costs_goes_through_links_and_pipes_and_replaces_neither() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = folder(&[]);
    let at = |name: &str| dir.path().join(name);
    // A runner that answers with times for every case.
    fs::write(at("__main__.py"), "").unwrap();
    let script = r#"#!/bin/sh
n=$(grep -cE '"(conv|move|pass)": \{' "$3/cases.json")
printf '{"schema": 1, "machine": "m", "device": "cuda", "runtime": "r", "ns": [5000' > "$3/times.json"
i=1; while [ $i -lt "$n" ]; do printf ', 900000'; i=$((i + 1)); done >> "$3/times.json"
printf ']}' >> "$3/times.json"
"#;
    fs::write(at("python"), script).unwrap();
    fs::set_permissions(at("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |table: &Path| {
        let (python, runner) = (at("python"), dir.path());
        let table = str(table).to_owned();
        let call = ["calibrate", "--target", "cuda-tensorcore", "-o", &table, "--python", str(&python)];
        relayout(call.into_iter().chain(["--runner", str(runner)]))
    };
    fs::write(at("table.toml"), "old").unwrap();
    symlink("table.toml", at("link.toml")).unwrap();
    fifo(&at("pipe"));
    run(&at("link.toml")).fine();
    assert!(fs::symlink_metadata(at("link.toml")).unwrap().is_symlink());
    let table = fs::read_to_string(at("table.toml")).unwrap();
    assert!(table.contains("format = 1"), "{table}");
    let (ended, said) = piped(&at("pipe"), || run(&at("pipe")));
    ended.fine();
    assert!(is_fifo(&at("pipe")));
    assert_eq!(said, table);
}

#[test]
fn a_pipe_that_nothing_writes_to_is_an_error() {
    let dir = folder(&["relu"]);
    let pipe = dir.path().join("pipe");
    fifo(&pipe);
    let relu = model("relu");
    for (call, status) in [
        (vec!["optimize", str(&pipe), "-o", "/dev/null"], 1),
        (vec!["print", str(&pipe)], 1),
        (vec!["explain", str(&relu), "--target", "ort-cpu", "--costs", str(&pipe)], 2),
        (vec!["explain", str(&relu), "--target-file", str(&pipe)], 2),
        (vec!["check-certificate", str(&relu), "--certificate", str(&pipe)], 1),
    ] {
        let run = relayout(&call);
        assert!(run.refused(status).contains("nothing writes to this pipe"), "{run:?}");
    }
    let run = relayout(["optimize", str(&relu), "-o", str(&pipe)]);
    assert!(run.refused(1).contains("nothing reads from this pipe"), "{run:?}");
}
