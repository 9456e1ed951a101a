//! Runs of the program on a disk that fails, and what they leave in a folder.

use crate::common::command;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, tensor_shape_proto, type_proto,
};
use relayout_onnx::write::{WriteOptions, write_model};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Files by their path in the folder.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A call, and the folder that it works in before and after.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    args: Vec<String>,
    before: Files,
    pub(crate) after: Files,
}

/// Two channels-last convolutions with the channels of this many, their weights in a file of their own if `external`. The first
/// weight is transposed in the graph, so that it is written anew; the second is copied.
fn network(channels: i64, seed: u8) -> ModelProto {
    let node = |op: &str, input: &[&str], output: &str, attributes: Vec<AttributeProto>| NodeProto {
        op_type: Some(op.into()),
        input: input.iter().map(|&name| name.into()).collect(),
        output: vec![output.into()],
        attribute: attributes,
        ..NodeProto::default()
    };
    let perm = |order: [i64; 4]| {
        let name = Some("perm".into());
        vec![AttributeProto { name, r#type: Some(7), ints: order.to_vec(), ..AttributeProto::default() }]
    };
    let weight = |name: &str, dims: [i64; 4]| {
        let elems = dims.iter().product::<i64>() as usize;
        let values = (0..elems).flat_map(|at| (f32::from((at % 251) as u8 ^ seed) / 256.0).to_le_bytes());
        TensorProto {
            name: Some(name.into()),
            dims: dims.to_vec(),
            data_type: Some(1),
            raw_data: Some(values.collect::<Vec<u8>>().into()),
            ..TensorProto::default()
        }
    };
    let (out, back) = ([0, 2, 3, 1], [0, 3, 1, 2]);
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            node("Transpose", &["x"], "a", perm(back)),
            node("Transpose", &["w"], "v", perm([3, 2, 0, 1])),
            node("Conv", &["a", "v"], "b", vec![]),
            node("Transpose", &["b"], "c", perm(out)),
            node("Relu", &["c"], "d", vec![]),
            node("Transpose", &["d"], "e", perm(back)),
            node("Conv", &["e", "u"], "f", vec![]),
            node("Transpose", &["f"], "y", perm(out)),
        ],
        initializer: vec![weight("w", [3, 3, channels, channels]), weight("u", [channels, channels, 1, 1])],
        input: vec![port("x", [1, 6, 6, channels])],
        output: vec![port("y", [1, 4, 4, channels])],
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: None, version: Some(17) }];
    ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, ..ModelProto::default() }
}

fn port(name: &str, shape: [i64; 4]) -> ValueInfoProto {
    let value = |n| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(n)),
        denotation: None,
    };
    let shape = Some(TensorShapeProto { dim: shape.into_iter().map(value).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(1), shape };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Writes a network to `path`; its weights to a file beside it if `external`.
fn make(path: &Path, channels: i64, seed: u8, external: bool) {
    let limit = if external { 0 } else { u64::MAX };
    let options = WriteOptions::default().inline_limit(limit);
    write_model(&network(channels, seed), path, &options).expect("the folder can be written to");
}

impl Scene {
    /// All calls that write: a model with external data to a name of its own, in its own place, beside itself with `--force`; a
    /// batch to a folder; a bundle. Something older stands wherever they write.
    pub(crate) fn all() -> Vec<Scene> {
        let optimize =
            |args: &[&str]| -> Vec<String> { [&["optimize"], args].concat().iter().map(|&a| a.into()).collect() };
        let old = |dir: &Path, to: &str| {
            make(&dir.join("old.onnx"), 8, 77, true);
            run(dir, &optimize(&["old.onnx", "-o", to]));
            fs::remove_file(dir.join("old.onnx")).expect("it was made");
            fs::remove_file(dir.join("old.onnx.data")).expect("it has external data");
        };
        let external = |dir: &Path| make(&dir.join("m.onnx"), 64, 1, true);
        vec![
            Scene::new("named", optimize(&["m.onnx", "-o", "out.onnx"]), |dir| {
                old(dir, "out.onnx");
                external(dir);
            }),
            Scene::new("in place", optimize(&["m.onnx", "-o", "m.onnx"]), external),
            Scene::new("forced", optimize(&["m.onnx", "--force"]), |dir| {
                old(dir, "m.relayout.onnx");
                external(dir);
            }),
            Scene::new("batch", optimize(&["in", "-o", "out", "--force", "-j", "2"]), |dir| {
                fs::create_dir_all(dir.join("in/deep")).expect("a new folder");
                fs::create_dir_all(dir.join("out")).expect("a new folder");
                old(dir, "out/a.onnx");
                make(&dir.join("in/a.onnx"), 32, 1, true);
                make(&dir.join("in/b.onnx"), 32, 2, false);
                make(&dir.join("in/deep/c.onnx"), 16, 3, true);
            }),
            Scene::new("bundle", optimize(&["m.onnx", "--target", "nhwc", "--emit", "bundle", "-o", "out"]), |dir| {
                make(&dir.join("old.onnx"), 8, 77, false);
                run(dir, &optimize(&["old.onnx", "--target", "nhwc", "--emit", "bundle", "-o", "out"]));
                fs::remove_file(dir.join("old.onnx")).expect("it was made");
                external(dir);
            }),
        ]
    }

    fn new(name: &'static str, args: Vec<String>, make: impl Fn(&Path)) -> Scene {
        let dir = tempfile::tempdir().expect("there is a folder for temporary files");
        make(dir.path());
        let before = files(dir.path());
        run(dir.path(), &args);
        let after = files(dir.path());
        assert_ne!(before, after, "{name}: nothing is written");
        Scene { name, args, before, after }
    }

    /// A folder as it is before the call.
    pub(crate) fn folder(&self) -> TempDir {
        let dir = tempfile::tempdir().expect("there is a folder for temporary files");
        for (path, bytes) in &self.before {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("the folder is ours");
            fs::write(path, bytes).expect("the folder is ours");
        }
        dir
    }

    /// The call, in a folder.
    pub(crate) fn call(&self, dir: &Path) -> Command {
        let mut command = command();
        command.args(&self.args).current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Checks that each output is whole, old or new; whether all are old, and whether all are new. Names of files that are neither
    /// are appended to `left`.
    pub(crate) fn check(&self, dir: &Path, left: &mut Vec<String>) -> (bool, bool) {
        let found = files(dir);
        let mut known = Vec::new();
        let (mut old, mut new) = (true, true);
        for unit in self.units() {
            let of = |files: &Files| whole(files, &unit);
            let now = of(&found).unwrap_or_else(|| panic!("{}: {unit} is broken", self.name));
            let (is_old, is_new) = (Some(&now) == of(&self.before).as_ref(), Some(&now) == of(&self.after).as_ref());
            assert!(is_old || is_new, "{}: {unit} is neither the old nor the new one", self.name);
            known.extend(now.into_keys());
            (old, new) = (old && is_old, new && is_new);
        }
        left.extend(found.into_keys().filter(|path| !known.contains(path)));
        (old, new)
    }

    /// Models, inputs included, and bundles, before or after.
    fn units(&self) -> Vec<String> {
        let paths = self.before.keys().chain(self.after.keys());
        let mut units: Vec<String> = paths.filter(|path| ends_in(path, "onnx")).cloned().collect();
        units.extend((self.name == "bundle").then(|| "out/".to_owned()));
        units.sort();
        units.dedup();
        units
    }
}

/// Whether a path has this extension.
pub(crate) fn ends_in(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// The files of a unit: those of a bundle's folder, or a model and what it refers to; nothing if it is not there, `None` if a part of
/// it is missing.
fn whole(files: &Files, unit: &str) -> Option<Files> {
    if unit.ends_with('/') {
        return Some(
            files.iter().filter(|(path, _)| path.starts_with(unit)).map(|(p, b)| (p.clone(), b.clone())).collect(),
        );
    }
    let Some(bytes) = files.get(unit) else { return Some(Files::new()) };
    let mut found = Files::from([(unit.to_owned(), bytes.clone())]);
    let file = ModelFile::from_bytes(bytes.clone().into(), None).ok()?;
    let folder = unit.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    for tensor in file.proto.graph.iter().flat_map(|graph| &graph.initializer) {
        for entry in tensor.external_data.iter().filter(|entry| entry.key() == "location") {
            let path = format!("{folder}{}", entry.value());
            found.insert(path.clone(), files.get(&path)?.clone());
        }
    }
    Some(found)
}

/// Every file below a folder.
pub(crate) fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is ours") {
            let path = entry.expect("the folder is ours").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("it is below").to_str().expect("names are ours").to_owned();
                found.insert(name, fs::read(&path).expect("the file is ours"));
            }
        }
    }
    found
}

fn run(dir: &Path, args: &[String]) {
    let output = command().args(args).current_dir(dir).output().expect("the program runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What happens at a call of the system: see `shim.c`.
pub(crate) struct Fault {
    pub(crate) calls: &'static str,
    pub(crate) what: &'static str,
    pub(crate) at: usize,
}

/// Runs a scene with a fault; `None` if the call at which it should happen was never made.
pub(crate) fn with_fault(scene: &Scene, dir: &Path, fault: &Fault) -> Option<Output> {
    let place = tempfile::tempdir().expect("there is a folder for temporary files");
    let mark = place.path().join("mark");
    let mut call = scene.call(dir);
    call.env("LD_PRELOAD", shim()).env("FAULT_DIR", dir.canonicalize().expect("it is there")).env("FAULT_MARK", &mark);
    call.env("FAULT_CALLS", fault.calls).env("FAULT_WHAT", fault.what).env("FAULT_AT", fault.at.to_string());
    let output = call.output().expect("the program runs");
    mark.exists().then_some(output)
}

/// The library that makes calls fail, built once.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/faults/shim.c");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults_shim.so");
        let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", source, "-ldl", "-o"]);
        let output = compiler.arg(&built).output().expect("there is a C compiler, which Rust links with");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        built
    })
}
