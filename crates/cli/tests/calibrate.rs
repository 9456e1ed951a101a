//! `relayout calibrate`: what is refused before anything is measured. The measuring is tested in the library.

mod common;

use common::{command, finish, folder, relayout, str};
use std::fs;

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let dir = folder(&[]);
    let table = dir.path().join("costs.toml");
    fs::write(&table, "format = 3\ntarget = \"ort-cpu\"\n").unwrap();
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
        vec!["calibrate", "--json"],
        vec!["calibrate", "--costs", "x.toml"],
        vec!["calibrate", "--check", "-o", "x.toml"],
        vec!["calibrate", "--threads", "-1"],
    ] {
        relayout(&arguments).refused(2);
    }
}

#[test]
fn a_machine_without_the_runtime_is_told_how_to_get_it() {
    let run = finish(command().args(["calibrate", "--quick"]).env("ORT_DYLIB_PATH", "no/such/libonnxruntime.so"));
    assert!(run.refused(1).contains("no ONNX Runtime library at `no/such/libonnxruntime.so`"), "{run:?}");
}
