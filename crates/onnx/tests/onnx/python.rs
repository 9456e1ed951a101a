//! Against the Python package onnx: its schema, and our encoding of every model in the repository read back by it.

use relayout_onnx::file::ModelFile;
use relayout_onnx::write::{WriteOptions, write_model};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let list = out.path().join("pairs");
    std::fs::write(&list, &pairs).unwrap();
    assert_eq!(run(COMPARE, Stdio::from(std::fs::File::open(&list).unwrap())), pairs);
}

/// Prints the schema that the package carries.
const SCHEMA: &str = "
import pathlib, onnx
print(pathlib.Path(onnx.__file__).with_name('onnx-ml.proto').read_text(), end='')
";

#[test]
fn our_schema_is_that_of_the_package() {
    let ours = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/onnx-ml.proto")).unwrap();
    assert!(run(SCHEMA, Stdio::null()) == ours, "schema/README.md says how to take over another version of the schema");
}

/// What a Python program prints.
fn run(program: &str, input: Stdio) -> String {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.relayout/venv/bin/python");
    let python = std::env::var_os("PYTHON").map_or_else(installed, PathBuf::from);
    let run = Command::new(&python)
        .args(["-c", program])
        .stdin(input)
        .output()
        .unwrap_or_else(|e| panic!("{} does not run ({e}); run tools/setup once", python.display()));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}
