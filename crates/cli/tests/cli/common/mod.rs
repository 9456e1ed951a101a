//! What the tests of the binary share: running it, a folder of its own for each test, and looking into models.

#![allow(dead_code, reason = "each test file uses its part")]

use relayout::Model;
use relayout::ir::graph::Op;
use relayout_verify::{SearchPlaces, find_library};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("stdout is text")
    }

    /// Ended well; stdout as text.
    pub(crate) fn fine(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self.text()
    }

    /// Ended with this status, with nothing on stdout and one line on stderr; that line. Where the arguments cannot be parsed, the
    /// program says below it how it is called; then it is the first paragraph.
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        let text = self.err.strip_suffix('\n').expect("stderr ends a line");
        assert!(text.starts_with("error: "), "{text}");
        let Some((cause, rest)) = text.split_once("\n\n") else {
            assert!(!text.contains('\n'), "{text}");
            return text;
        };
        assert!(code == 2 && rest.ends_with("For more information, try '--help'."), "{text}");
        cause
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relayout"));
    command.stdin(Stdio::null());
    // The program finds no runtime by where it is started, so the tests name theirs: the environment's, else what tools/setup made.
    let mut places = SearchPlaces::default();
    places.environment = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv")));
    if let (None, Some(library)) = (std::env::var_os("ORT_DYLIB_PATH"), find_library(&places)) {
        command.env("ORT_DYLIB_PATH", library);
    }
    command
}

/// The Python of the environment, else what tools/setup made.
pub(crate) fn python() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.relayout/venv/bin/python");
    std::env::var_os("PYTHON").filter(|path| !path.is_empty()).map_or_else(own, PathBuf::from)
}

pub(crate) fn relayout<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    finish(command().args(args))
}

pub(crate) fn finish(command: &mut Command) -> Run {
    let output = command.output().expect("the binary runs");
    Run {
        code: output.status.code().expect("it ends by itself"),
        out: output.stdout,
        err: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}

/// Runs it with these bytes on stdin.
pub(crate) fn with_stdin(args: &[&str], input: &[u8]) -> Run {
    let mut command = command();
    let piped = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the binary runs");
    child.stdin.take().expect("it is piped").write_all(input).expect("it reads all of it");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8(output.stderr).expect("stderr is text");
    Run { code: output.status.code().expect("it ends by itself"), out: output.stdout, err }
}

/// A model of `testdata/cli`, made by `tools/make_cli_models.py`.
pub(crate) fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli").join(format!("{name}.onnx"))
}

/// A folder with copies of models.
pub(crate) fn folder(models: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().expect("there is a folder for temporary files");
    for name in models {
        fs::copy(model(name), dir.path().join(format!("{name}.onnx"))).expect("the model is there");
    }
    dir
}

/// Names in a folder, in order.
pub(crate) fn listing(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Operators of a model's main graph, in its order.
pub(crate) fn ops(path: &Path) -> Vec<String> {
    let model = Model::open(path).expect("it is a model");
    let graph = &model.ir().graph;
    let mut nodes: Vec<_> = graph.nodes().map(|n| graph.node(n)).collect();
    nodes.sort_by_key(|node| node.rank);
    let name = |op: &Op| if let Op::Onnx(name) = op { Some(name.name.clone()) } else { None };
    nodes.into_iter().filter_map(|node| name(&node.op)).collect()
}

pub(crate) fn moves(path: &Path) -> usize {
    ops(path).iter().filter(|op| *op == "Transpose").count()
}

pub(crate) fn str(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}
