//! Our encoding of every model in the repository, read back by the Python package onnx.

use relayout_onnx::file::ModelFile;
use relayout_onnx::write::{WriteOptions, write_model};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn models(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            models(&path, found);
        } else if path.extension().is_some_and(|e| e == "onnx") {
            found.push(path);
        }
    }
}

/// Reads pairs of files, one pair a line, and fails unless both hold the same model.
const COMPARE: &str = "
import sys, onnx
for line in sys.stdin.read().splitlines():
    a, b = (onnx.load(p, load_external_data=False) for p in line.split('\\t'))
    assert a == b, line
    print(line)
";

#[test]
fn what_we_write_the_python_package_reads_as_the_same_model() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    models(&root.join("testdata"), &mut found);
    found.sort();
    assert!(found.len() > 10, "the models were not found");
    let out = tempfile::tempdir().unwrap();
    let mut pairs = String::new();
    for (i, path) in found.iter().enumerate() {
        let Ok(file) = ModelFile::open(path) else { continue };
        let copy = out.path().join(format!("{i}.onnx"));
        // Without the input, references to external data are written as they are.
        write_model(&file.proto, &copy, &WriteOptions::default()).unwrap();
        writeln!(pairs, "{}\t{}", path.display(), copy.display()).unwrap();
    }
    let python = std::env::var_os("PYTHON").map_or_else(|| root.join(".relayout/venv/bin/python"), PathBuf::from);
    let list = out.path().join("pairs");
    std::fs::write(&list, &pairs).unwrap();
    let run = Command::new(&python)
        .args(["-c", COMPARE])
        .stdin(std::fs::File::open(&list).unwrap())
        .output()
        .unwrap_or_else(|e| panic!("{} does not run ({e}); run tools/setup once", python.display()));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout), pairs);
}
