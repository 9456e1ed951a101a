//! Bundles: what is written is what the model file would have held, reads back, is the same every time, and is refused when it
//! is damaged.

mod bundle_made;
#[path = "../../relayout/tests/fill/mod.rs"]
mod fill;

use relayout::kernels::KernelOptions;
use relayout::targets::OrtCpu;
use relayout::{Model, Options, Target, kernels, optimize};
use relayout_bundle::{Attribute, Bundle, Extent, Scope, read_bundle, write_bundle};
use relayout_ir::dtype::DType;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::{GraphProto, NodeProto};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of the repository's test data.
fn testdata(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder)
}

/// A model of the test data, with weights.
fn bytes(name: &str) -> Vec<u8> {
    let (folder, stem) = name.split_once('/').expect("folder/name");
    let path = testdata(folder).join(format!("{stem}.onnx"));
    let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    fill::fill(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn built_in(name: &str) -> Box<dyn Target> {
    relayout::target(name).expect("a built-in target")
}

/// A model optimized: the file that it would be, and its bundle.
struct Written {
    dir: TempDir,
    file: ModelFile,
    /// Nodes that move data, as `kernels` finds them.
    moves: usize,
}

impl Written {
    fn bundle(name: &str, target: &str) -> Written {
        let dir = tempfile::tempdir().expect("a folder");
        let model = Model::from_bytes(bytes(name).into(), Some(testdata("cli"))).expect("a model");
        let optimized = optimize(&model, built_in(target).as_ref(), &Options::default()).expect("it is optimized");
        let file = ModelFile::from_bytes(optimized.to_bytes().expect("it is written").into(), None).expect("a model");
        write_bundle(&optimized, dir.path().join("b"), &KernelOptions::default())
            .unwrap_or_else(|e| panic!("{name} for {target}: {e}"));
        let moves = kernels(optimized.graph(), &KernelOptions::default()).manifest.moves.len();
        Written { dir, file, moves }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("b")
    }

    fn read(&self) -> Bundle {
        read_bundle(self.path()).unwrap_or_else(|e| panic!("{e}"))
    }
}

fn is_constant(node: &NodeProto) -> bool {
    node.op_type.as_deref() == Some("Constant") && node.attribute.iter().any(|a| a.name.as_deref() == Some("value"))
}

/// The graph of a bundle beside that of the file: nodes with their names and lists of integers, ends, constants to the byte.
fn same(file: &ModelFile, graph: &GraphProto, bundle: &Bundle, scope: &Scope, main: bool) {
    let names = |slots: &[Option<String>]| slots.iter().map(|n| n.clone().unwrap_or_default()).collect::<Vec<_>>();
    let nodes: Vec<&NodeProto> = graph.node.iter().filter(|node| !is_constant(node)).collect();
    assert_eq!(nodes.len(), scope.nodes.len());
    for (theirs, ours) in nodes.iter().zip(&scope.nodes) {
        assert_eq!(theirs.op_type.as_deref(), Some(ours.op.as_str()));
        assert_eq!(theirs.output, names(&ours.outputs), "{}", ours.op);
        assert_eq!(theirs.attribute.len(), ours.attributes.len(), "{}", ours.op);
        if main {
            assert_eq!(theirs.input, names(&ours.inputs), "{}", ours.op);
        }
        for a in &theirs.attribute {
            match &ours.attributes[a.name.as_deref().expect("a name")] {
                Attribute::Int(i) => assert_eq!(Some(*i), a.i),
                Attribute::Ints(list) => assert_eq!(*list, a.ints),
                Attribute::Graph(body) => same(file, a.g.as_deref().expect("a body"), bundle, body, false),
                _ => {}
            }
        }
    }
    let ends = |infos: &[relayout_onnx::proto::ValueInfoProto]| -> Vec<String> {
        infos.iter().map(|i| i.name.clone().unwrap_or_default()).collect()
    };
    assert_eq!(ends(&graph.output), scope.outputs.iter().map(|v| v.name.clone()).collect::<Vec<_>>());
    if main {
        let found: Vec<&str> = scope.constants.iter().map(|v| v.name.as_str()).collect();
        for tensor in &graph.initializer {
            let constant = &scope.constants[found.iter().position(|n| *n == tensor.name()).expect("it is there")];
            let shape: Vec<Extent> = tensor.dims.iter().map(|&n| Extent::Number(n)).collect();
            assert_eq!(constant.shape, Some(shape), "{}", tensor.name());
            assert_eq!(constant.dtype.map(DType::to_onnx), tensor.data_type);
            let theirs = file.tensor_bytes(tensor).expect("it has bytes");
            assert!(bundle.constant(tensor.name()).expect("it is there") == theirs, "{}", tensor.name());
        }
    }
}

#[test]
fn a_bundle_holds_what_the_model_file_holds() {
    for (name, target) in [
        ("cli/conv", "cuda-tensorcore"),
        ("cli/conv", "x86-avx512"),
        ("cli/branches", "onnx"),
        ("cli/external", "nhwc"),
        ("cli/ir3", "nhwc"),
        ("cli/overridable", "nhwc"),
        ("cli/custom_between", "onnx"),
        ("cli/symbolic", "cuda-tensorcore"),
        ("models/espcn_x3", "cuda-tensorcore"),
        ("models/if_early_exit", "cuda-tensorcore"),
        ("models/if_mixed", "nhwc"),
        ("models/if_mixed", "onnx"),
        ("models/loop_refine", "cuda-tensorcore"),
        ("models/unet_dynhw", "cuda-tensorcore"),
        ("models/qdq_shufflenet_v2_x1_0", "cuda-dp4a"),
        ("demo/tf_unet", "arm-neon"),
    ] {
        let written = Written::bundle(name, target);
        let bundle = written.read();
        let graph = written.file.proto.graph.as_ref().expect("a graph");
        same(&written.file, graph, &bundle, &bundle.graph.scope, true);
        assert_eq!((bundle.manifest.target.as_str(), bundle.manifest.model.as_str()), (target, graph.name()), "{name}");
        let found = bundle.manifest.moves + bundle.manifest.moves_without_kernel;
        assert_eq!(found, written.moves, "{name} for {target}: every move that is left is one in the bundle");
    }
}

#[test]
fn padded_channels_lie_in_the_weights_and_in_the_shapes() {
    let bundle = Written::bundle("models/unet_dynhw", "cuda-tensorcore").read();
    let padded = |values: &[relayout_bundle::BundleValue]| {
        values.iter().any(|v| v.layout.as_deref().is_some_and(|layout| layout.contains('[')))
    };
    let scope = &bundle.graph.scope;
    assert!(padded(&scope.constants) && padded(&scope.values));
    let calls: Vec<&str> = scope.nodes.iter().filter(|n| n.domain == "relayout").map(|n| n.op.as_str()).collect();
    assert!(calls.iter().any(|op| op.starts_with("Conv2d_NHWC")), "{calls:?}");
    assert_eq!(bundle.graph.opsets.get("relayout"), Some(&1));
}

#[test]
fn functions_of_the_model_are_written_out() {
    let written = Written::bundle("cli/functions", "onnx");
    assert!(!written.file.proto.functions.is_empty(), "the file still has them");
    let bundle = written.read();
    let foreign = bundle.graph.scope.nodes.iter().find(|node| !node.domain.is_empty());
    assert!(foreign.is_none(), "{foreign:?}");
}

#[test]
fn moves_name_their_kernels_and_symbolic_ones_have_launches_at_the_size_hints() {
    let written = Written::bundle("cli/moves_symbolic", "onnx");
    let bundle = written.read();
    assert!(bundle.manifest.moves > 0 && bundle.manifest.moves == written.moves);
    let id = bundle.graph.scope.nodes.iter().find_map(|node| node.kernel.clone()).expect("a move");
    let launch: Value = read_json(&written.path().join(format!("kernels/{id}.json")));
    assert_eq!(launch["source"], format!("{id}.cu"));
    assert!(!launch["arguments"].as_array().expect("a list").is_empty(), "{launch}");
}

#[test]
fn constants_of_one_name_in_two_branches_stay_two_and_odd_elements_keep_their_bytes() {
    let dir = tempfile::tempdir().expect("a folder");
    let model = Model::from_bytes(bundle_made::model().into(), None).expect("a model");
    let optimized = optimize(&model, built_in("nhwc").as_ref(), &Options::default()).expect("it is optimized");
    write_bundle(&optimized, dir.path().join("b"), &KernelOptions::default()).expect("it is written");
    let bundle = read_bundle(dir.path().join("b")).expect("it reads back");
    let scope = &bundle.graph.scope;
    let floats = |body: &Scope| -> Vec<f32> {
        let [w] = body.constants.as_slice() else { panic!("{:?}", body.constants) };
        assert!(body.nodes[0].inputs.contains(&Some(w.name.clone())), "the node reads it under its new name");
        let bytes = bundle.constant(&w.name).expect("it is there");
        bytes.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().expect("four bytes"))).collect()
    };
    let branch = |name: &str| match &scope.nodes[0].attributes[name] {
        Attribute::Graph(body) => floats(body),
        other => panic!("{other:?}"),
    };
    assert_eq!((branch("then_branch"), branch("else_branch")), (vec![1.0, 2.0], vec![3.0, 4.0]));
    let attribute = |op: &str, name: &str| {
        let node = scope.nodes.iter().find(|node| node.op == op).expect("it is there");
        serde_json::to_value(&node.attributes[name]).expect("JSON")
    };
    assert_eq!(attribute("LeakyRelu", "alpha"), json!({"type": "float", "value": "inf"}));
    let fill = json!({"type": "tensor", "value": {"dtype": "f32", "shape": [1], "data": "AAAgQA=="}});
    assert_eq!(attribute("ConstantOfShape", "value"), fill);
    let q = scope.constants.iter().find(|v| v.name == "q").expect("it is there");
    assert_eq!((q.dtype.map(DType::as_str), &q.shape), (Some("i4"), &Some(vec![Extent::Number(3)])));
    assert_eq!(bundle.constant("q").expect("it is there"), [0x21, 0x0f]);
}

/// Every file of a folder, by its path.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("it is inside").to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

#[test]
fn two_writes_are_equal_byte_for_byte() {
    for (name, target) in [("models/if_mixed", "nhwc"), ("models/unet_dynhw", "cuda-tensorcore"), ("cli/moves", "onnx")]
    {
        let (a, b) = (Written::bundle(name, target), Written::bundle(name, target));
        let (a, b) = (contents(&a.path()), contents(&b.path()));
        assert!(a.len() > 3 && a.keys().eq(b.keys()), "{name}: {:?}", a.keys());
        for (path, bytes) in &a {
            assert!(*bytes == b[path], "{name}: {path} differs");
        }
    }
}

#[test]
fn a_small_graph_reads_as_recorded() {
    let written = Written::bundle("cli/conv", "cuda-tensorcore");
    let text = fs::read_to_string(written.path().join("graph.json")).expect("a text");
    insta::assert_snapshot!(text);
}

#[test]
fn what_no_bundle_can_be_made_of_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().join("b");
    let refused = |bytes: Vec<u8>, target: &dyn Target, cause: &str| {
        let model = Model::from_bytes(bytes.into(), None).expect("a model");
        let optimized = optimize(&model, target, &Options::default()).expect("it is optimized");
        let error = write_bundle(&optimized, &place, &KernelOptions::default()).expect_err(cause).to_string();
        assert!(error.contains(cause) && !error.contains('\n'), "{error}");
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0, "{cause}");
    };
    let blocked = OrtCpu::new(relayout::targets::Block::of(16).expect("a block")).expect("a target");
    refused(bytes("cli/conv"), &blocked, "operators of one runtime");
    let stripped = fs::read(testdata("models").join("espcn_x3.onnx")).expect("a model");
    refused(stripped, built_in("nhwc").as_ref(), "hydrate");
    let target = built_in("cuda-tensorcore");
    let model = Model::from_bytes(bytes("models/espcn_x3").into(), None).expect("a model");
    let made = optimize(&model, target.as_ref(), &Options::default()).expect("it is optimized");
    refused(made.to_bytes().expect("it is written"), target.as_ref(), "was made for target `cuda-tensorcore` already");
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Changes a JSON file.
fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = read_json(path);
    change(&mut value);
    fs::write(path, serde_json::to_vec(&value).expect("JSON")).expect("it is written");
}

/// Makes the manifest say of every file what it is now.
fn signed(dir: &Path) {
    edit(&dir.join("manifest.json"), |manifest| {
        for entry in manifest["files"].as_array_mut().expect("a list") {
            let bytes = fs::read(dir.join(entry["path"].as_str().expect("a path"))).expect("a file");
            let mut digest = String::new();
            for byte in Sha256::digest(&bytes) {
                write!(digest, "{byte:02x}").expect("a string takes it");
            }
            (entry["bytes"], entry["sha256"]) = (json!(bytes.len()), json!(digest));
        }
    });
}

/// Has a bundle damaged; what reading it says, which is one line.
fn damaged(name: &str, target: &str, damage: impl FnOnce(&Path)) -> String {
    let written = Written::bundle(name, target);
    damage(&written.path());
    let error = read_bundle(written.path()).expect_err("it is damaged").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

/// The same, where only the graph is changed, and the manifest knows.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> String {
    damaged(name, "cuda-tensorcore", |dir| {
        edit(&dir.join("graph.json"), change);
        signed(dir);
    })
}

#[track_caller]
fn says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "no `{part}` in: {error}");
    }
}

#[test]
fn files_that_are_not_as_they_were_written_are_named() {
    let conv = |damage: fn(&Path)| damaged("cli/conv", "cuda-tensorcore", damage);
    says(
        &conv(|dir| {
            let path = dir.join("weights.safetensors");
            let mut bytes = fs::read(&path).expect("a file");
            *bytes.last_mut().expect("a byte") ^= 1;
            fs::write(&path, bytes).expect("it is written");
        }),
        &["weights.safetensors", "digest differs"],
    );
    says(&conv(|dir| fs::remove_file(dir.join("graph.json")).expect("a file")), &["graph.json", "is not there"]);
    says(
        &conv(|dir| {
            let path = dir.join("weights.safetensors");
            let bytes = fs::read(&path).expect("a file");
            fs::write(&path, &bytes[..bytes.len() - 4]).expect("it is written");
        }),
        &["weights.safetensors", "bytes, and the manifest says"],
    );
    says(
        &conv(|dir| {
            let path = dir.join("weights.safetensors");
            let bytes = fs::read(&path).expect("a file");
            fs::write(&path, &bytes[..bytes.len() - 4]).expect("it is written");
            signed(dir);
        }),
        &["weights.safetensors", "its header speaks of"],
    );
    says(
        &conv(|dir| edit(&dir.join("manifest.json"), |m| m["files"][0]["path"] = json!("../graph.json"))),
        &["manifest.json", "not a path in the folder"],
    );
    says(
        &conv(|dir| edit(&dir.join("manifest.json"), |m| drop(m["files"].as_array_mut().expect("a list").remove(0)))),
        &["manifest.json", "does not list `graph.json`"],
    );
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_and_no_path_leads_out() {
    use std::os::unix::fs::symlink;
    // Each file is moved out of the bundle, and a link to it put in its place: bytes and digest are right.
    for file in ["manifest.json", "graph.json", "weights.safetensors", "kernels"] {
        let error = damaged("cli/moves", "onnx", |dir| {
            let away = dir.with_file_name("away");
            fs::rename(dir.join(file), &away).expect("it is there");
            symlink(away, dir.join(file)).expect("a link");
        });
        says(&error, &["link", if file == "kernels" { "kernels/" } else { file }]);
    }
    let error = damaged("cli/moves", "onnx", |dir| {
        fs::copy(dir.join("graph.json"), dir.with_file_name("graph.json")).expect("it is there");
        edit(&dir.join("manifest.json"), |m| m["files"][0]["path"] = json!("kernels/../../graph.json"));
    });
    says(&error, &["manifest.json", "not a path in the folder"]);
    // The folder itself is what the caller names.
    let written = Written::bundle("cli/moves", "onnx");
    let link = written.dir.path().join("link");
    symlink(written.path(), &link).expect("a link");
    read_bundle(link).expect("it is whole");
}

/// A file for each of very many kernels is found at once, not by a walk over all kernels.
#[test]
fn ten_thousand_kernels_are_checked_in_seconds() {
    let written = Written::bundle("cli/moves", "onnx");
    let dir = written.path();
    let (mut moves, mut files) = (Vec::new(), Vec::new());
    edit(&dir.join("graph.json"), |graph| {
        let nodes = graph["nodes"].as_array_mut().expect("a list");
        let one = nodes.iter().find(|node| node.get("move").is_some()).expect("a move").clone();
        let id = one["move"].as_str().expect("a name").to_owned();
        let launch = read_json(&dir.join(format!("kernels/{id}.json")));
        let source = fs::read(dir.join(format!("kernels/{id}.cu"))).expect("a kernel");
        let mut values = Vec::new();
        for i in 0..10_000 {
            let (copy, result) = (format!("copy_{i}"), format!("copied_{i}"));
            let mut node = one.clone();
            (node["move"], node["name"], node["outputs"]) = (json!(copy), json!(copy), json!([result]));
            moves.push(node);
            values.push(json!({"name": result}));
            let mut launch = launch.clone();
            launch["source"] = json!(format!("{copy}.cu"));
            fs::write(dir.join(format!("kernels/{copy}.json")), launch.to_string()).expect("it is written");
            fs::write(dir.join(format!("kernels/{copy}.cu")), &source).expect("it is written");
            files.extend([format!("kernels/{copy}.cu"), format!("kernels/{copy}.json")]);
        }
        nodes.append(&mut moves);
        graph["values"].as_array_mut().expect("a list").append(&mut values);
    });
    edit(&dir.join("manifest.json"), |manifest| {
        manifest["moves"] = json!(manifest["moves"].as_u64().expect("a number") + 10_000);
        let list = manifest["files"].as_array_mut().expect("a list");
        list.extend(files.iter().map(|path| json!({"path": path, "bytes": 0, "sha256": ""})));
        list.sort_by(|a, b| a["path"].as_str().cmp(&b["path"].as_str()));
    });
    signed(&dir);
    let begin = std::time::Instant::now();
    let bundle = read_bundle(&dir).unwrap_or_else(|e| panic!("{e}"));
    let seconds = begin.elapsed().as_secs();
    assert_eq!(bundle.graph.scope.moves(), written.moves + 10_000);
    assert!(seconds < 20, "{seconds} s");
}

#[test]
fn versions_and_cut_files_are_named() {
    let cut = |path: &Path| {
        let bytes = fs::read(path).expect("a file");
        fs::write(path, &bytes[..bytes.len() / 2]).expect("it is written");
    };
    let conv = |damage: &dyn Fn(&Path)| damaged("cli/conv", "cuda-tensorcore", damage);
    says(&conv(&|dir| cut(&dir.join("manifest.json"))), &["manifest.json", "cut off"]);
    says(
        &conv(&|dir| {
            cut(&dir.join("graph.json"));
            signed(dir);
        }),
        &["graph.json", "cut off"],
    );
    says(
        &conv(&|dir| edit(&dir.join("manifest.json"), |m| m["schema"] = json!(2))),
        &["manifest.json", "schema 2", "reads schema 1"],
    );
    says(&changed("cli/conv", |g| g["schema"] = json!(7)), &["graph.json", "schema 7", "reads schema 1"]);
    says(&changed("cli/conv", |g| g["nodes"] = json!(3)), &["graph.json", "not a file that a bundle has"]);
    let dir = tempfile::tempdir().expect("a folder");
    says(&read_bundle(dir.path()).expect_err("it is empty").to_string(), &["no `manifest.json`"]);
    says(&read_bundle(dir.path().join("b")).expect_err("nothing").to_string(), &["there is no such folder"]);
}

#[test]
fn graphs_that_do_not_hold_together_are_named() {
    let conv = |change: fn(&mut Value)| changed("cli/conv", change);
    says(
        &conv(|g| {
            let constant = &mut g["constants"][0];
            (constant["shape"], constant["logical"], constant["layout"]) = (json!([7]), json!([7]), json!("a"));
        }),
        &["graph.json", "constant `", "weights.safetensors` has it as", "the graph wants F32 [7]"],
    );
    says(&conv(|g| g["constants"][0]["dtype"] = json!("f16")), &["constant `", "the graph wants F16"]);
    says(&conv(|g| g["constants"][0]["dtype"] = json!("f12")), &["graph.json", "f12"]);
    says(&conv(|g| g["inputs"][0]["shape"][0] = json!(99)), &["input `", "is not how layout"]);
    says(&conv(|g| g["inputs"][0]["layout"] = json!("NQ")), &["input `", "NQ"]);
    says(&conv(|g| g["nodes"][0]["inputs"][0] = json!("nobody")), &["it reads `nobody`"]);
    says(
        &conv(|g| {
            let name = g["constants"][0]["name"].clone();
            g["nodes"][0]["outputs"][0] = name;
        }),
        &["which is there already"],
    );
    says(&conv(|g| g["outputs"][0]["name"] = json!("nobody")), &["nothing makes output `nobody`"]);
    says(&conv(|g| g["nodes"][0]["opset"] = json!(3)), &["it is of version 3"]);
    says(
        &changed("models/espcn_x3", |g| g["nodes"].as_array_mut().expect("a list").reverse()),
        &["which nothing before it makes"],
    );
    says(
        &changed("models/espcn_x3", |g| drop(g["values"].as_array_mut().expect("a list").pop())),
        &["the list of values"],
    );
    says(
        &changed("cli/conv", |g| {
            let extra = g["constants"].as_array_mut().expect("a list").pop().expect("a constant");
            for node in g["nodes"].as_array_mut().expect("a list") {
                node["inputs"].as_array_mut().expect("a list").retain(|name| *name != extra["name"]);
            }
        }),
        &["weights.safetensors", "which is not a constant of the graph"],
    );
}

#[test]
fn a_graph_that_is_changed_anywhere_is_an_error_or_another_graph_and_never_a_panic() {
    let written = Written::bundle("cli/conv", "cuda-tensorcore");
    let (dir, path) = (written.path(), written.path().join("graph.json"));
    let text = fs::read(&path).expect("a file");
    let (mut refused, mut state) = (0, 1_u64);
    for _ in 0..400 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut changed = text.clone();
        changed[(state >> 33) as usize % text.len()] = b"0123456789-\"[]{},:aN/%?x"[(state >> 20) as usize % 24];
        fs::write(&path, &changed).expect("it is written");
        signed(&dir);
        if let Err(error) = read_bundle(&dir) {
            assert!(!error.to_string().contains('\n'), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused} of 400 are refused");
}

#[test]
fn moves_without_their_kernels_and_wrong_counts_are_named() {
    let moves = |damage: fn(&Path)| damaged("cli/moves", "onnx", damage);
    let first = |dir: &Path, end: &str| {
        let mut names: Vec<_> =
            fs::read_dir(dir.join("kernels")).expect("a folder").map(|e| e.expect("one").path()).collect();
        names.sort();
        names.into_iter().find(|path| path.to_string_lossy().ends_with(end)).expect("a kernel")
    };
    says(
        &moves(|dir| {
            edit(&dir.join("graph.json"), |g| {
                let nodes = g["nodes"].as_array_mut().expect("a list");
                nodes.iter_mut().find(|n| n.get("move").is_some()).expect("a move")["move"] = json!("nowhere");
            });
            signed(dir);
        }),
        &["graph.json", "`nowhere`", "there is no `kernels/nowhere.cu`"],
    );
    let source = damaged("cli/moves", "onnx", |dir| {
        fs::write(first(dir, ".cu"), "// nothing").expect("it is written");
        signed(dir);
    });
    says(&source, &[".json: there is no kernel `"]);
    let launch = damaged("cli/moves", "onnx", |dir| {
        edit(&first(dir, ".json"), |launch| launch["source"] = json!("other.cu"));
        signed(dir);
    });
    says(&launch, &["names the source `other.cu`"]);
    says(
        &moves(|dir| edit(&dir.join("manifest.json"), |m| m["moves"] = json!(99))),
        &["manifest.json", "it counts 99 moves"],
    );
    says(
        &moves(|dir| {
            edit(&dir.join("graph.json"), |g| {
                for node in g["nodes"].as_array_mut().expect("a list") {
                    node.as_object_mut().expect("an object").remove("move");
                }
            });
            signed(dir);
        }),
        &["kernels/", "no node of the graph names it"],
    );
}
