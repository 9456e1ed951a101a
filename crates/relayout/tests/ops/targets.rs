//! Targets of domain `relayout`: what they make of the small models and the networks of `testdata` is run in a stock runtime, which
//! inlines the functions, and held against the original.
//!
//! An op by itself is not worth two moves, so the built-in targets leave it alone. Targets made here whose standard ops are dear turn
//! each into its kernel: those run every case of every op that has one.

use crate::common;
use crate::fill;
use crate::fold_nets::{F16, F32, Net};
use crate::op_cases;
use crate::op_cases::case::{Case, Operand, case, f, fr};
use crate::proto;
use prost::Message;
use relayout::{Target, parse_target, target};
use relayout_onnx::dialect::{DOMAIN, RELAYOUT};
use relayout_onnx::proto::{FunctionProto, ModelProto};
use relayout_verify::{Tensor, Tolerance};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Ops that a runtime computes otherwise in another place, beside [`common::SUMS`].
const MOVED: &[&str] = &["AveragePool", "InstanceNormalization", "LayerNormalization", "Resize"];

fn built_in(name: &str) -> Box<dyn Target> {
    target(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Sizes of the symbolic dims of a small model.
fn dims(text: &str) -> BTreeMap<String, i64> {
    let sizes = [("N", 2), ("C", 6), ("H", 4), ("W", 5), ("A", 2), ("B", 3), ("K", 1)];
    let said = |name: &str| {
        let shapes =
            text.lines().filter(|l| l.ends_with("= input")).filter_map(|l| l.split_once('[')?.1.split_once(']'));
        shapes.into_iter().any(|(shape, _)| shape.split(',').any(|dim| dim == name))
    };
    sizes.into_iter().filter(|(name, _)| said(name)).map(|(name, size)| (name.to_owned(), size)).collect()
}

fn decoded(bytes: &[u8]) -> ModelProto {
    ModelProto::decode(bytes).expect("a model")
}

/// A function of the dialect, as it is called.
fn call(name: &str) -> String {
    format!("{DOMAIN}.{name}")
}

/// The kind of moves that a function is, as its text says it: another file has another number for it.
fn kind(function: &FunctionProto) -> Option<String> {
    let (stored, changes) = function.doc_string().strip_prefix("X stored as ")?.split_once(&[';', '.'][..])?;
    let mut kind = stored.replace(" to Y stored as ", "_");
    for change in changes.split("; ").filter(|change| !change.is_empty()) {
        let (axis, how) = change.trim_start().split_once(' ')?;
        let word = ["up to a multiple", "`slots`", "`shape`"].iter().position(|word| how.contains(word))?;
        let _ = write!(kind, "_{}{axis}", ["round", "fill", "crop"][word]);
    }
    Some(kind)
}

/// Calls of the dialect, bodies included, and the ops of other domains, with their numbers. Moves are told by their kinds.
fn ops(bytes: &[u8]) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    let kinds: BTreeMap<String, String> =
        decoded(bytes).functions.iter().filter_map(|f| Some((call(f.name()), kind(f)?))).collect();
    for (op, count) in calls(bytes) {
        let kind = kinds.get(&op).map(|kind| format!("{}:{kind}", call(RELAYOUT)));
        *told.entry(kind.unwrap_or(op)).or_default() += count;
    }
    told
}

/// The same by their names.
fn calls(bytes: &[u8]) -> BTreeMap<String, usize> {
    fn count(graph: &relayout_onnx::proto::GraphProto, ops: &mut BTreeMap<String, usize>) {
        for node in &graph.node {
            let called = node.domain.as_deref() == Some(DOMAIN);
            let op = if called { call(node.op_type()) } else { node.op_type().to_owned() };
            *ops.entry(op).or_default() += 1;
            for a in &node.attribute {
                a.g.as_deref().into_iter().chain(&a.graphs).for_each(|body| count(body, ops));
            }
        }
    }
    let mut ops = BTreeMap::new();
    decoded(bytes).graph.iter().for_each(|g| count(g, &mut ops));
    ops
}

/// What is wrong with a file as a file: functions that nobody calls, calls of functions that are not there, a missing import.
fn malformed(bytes: &[u8]) -> Option<String> {
    let model = decoded(bytes);
    let own = |f: &&FunctionProto| f.domain.as_deref() == Some(DOMAIN);
    let have: BTreeSet<String> = model.functions.iter().filter(own).map(|f| call(f.name())).collect();
    if have.len() != model.functions.iter().filter(own).count() {
        return Some("two of its functions have one name".to_owned());
    }
    let prefix = format!("{DOMAIN}.");
    let called: BTreeSet<String> = calls(bytes).into_keys().filter(|op| op.starts_with(&prefix)).collect();
    let imports = model.opset_import.iter().filter(|s| s.domain.as_deref() == Some(DOMAIN)).count();
    if have != called {
        return Some(format!("it has the functions {have:?} and calls {called:?}"));
    }
    if imports != usize::from(!called.is_empty()) {
        return Some(format!("it imports domain {DOMAIN} {imports} times"));
    }
    (!model.functions.is_empty() && model.ir_version < Some(8))
        .then(|| format!("its IR version is {:?}, its functions need 8", model.ir_version))
}

/// Optimizes, runs both and compares; what is wrong.
fn problems(target: &dyn Target, bytes: &[u8], sizes: &BTreeMap<String, i64>, near: Option<Tolerance>) -> Vec<String> {
    let outcome = match common::optimized_for(target, bytes, sizes) {
        Ok(outcome) => outcome,
        Err(e) => return vec![e],
    };
    let compared = common::compared(bytes, &outcome.bytes, sizes).and_then(|c| common::judged(&c, near));
    compared.err().into_iter().chain(malformed(&outcome.bytes)).collect()
}

/// Whether a second run on the same input gives the same bytes.
fn unsettled(target: &dyn Target, bytes: &[u8], sizes: &BTreeMap<String, i64>) -> Option<String> {
    let run = || common::optimized_for(target, bytes, sizes).map(|outcome| outcome.bytes).ok();
    (run() != run()).then(|| "a second run on the same input gives other bytes".to_owned())
}

/// Every small model of every theme.
fn small_models(name: &str) {
    let target = built_in(name);
    let mut wrong = String::new();
    let themes = std::fs::read_dir(common::testdata("cases")).expect("there are cases");
    let mut folders: Vec<String> =
        themes.map(|f| f.expect("a readable folder").file_name().to_string_lossy().into_owned()).collect();
    folders.sort();
    for folder in folders {
        for path in common::model_files(&format!("cases/{folder}")) {
            let bytes = std::fs::read(&path).expect("a readable case");
            let text = common::printed(&bytes);
            let near = common::SUMS.iter().chain(MOVED).any(|op| text.contains(op)).then(Tolerance::default);
            let sizes = dims(&text);
            let settled = unsettled(target.as_ref(), &bytes, &sizes);
            for problem in problems(target.as_ref(), &bytes, &sizes, near).into_iter().chain(settled) {
                let _ = writeln!(wrong, "{folder}/{}: {problem}", common::stem(&path));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

fn network(name: &str) -> Vec<u8> {
    let path = common::testdata("models").join(format!("{name}.onnx"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    fill::fill(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Every third network, for each target another third: three times as many take minutes, and `RELAYOUT_CASES=all` asks for them.
fn networks(name: &str) {
    let target = built_in(name);
    let mut wrong = String::new();
    let nth = TARGETS.iter().position(|target| *target == name).unwrap_or(TARGETS.len());
    for (place, path) in common::model_files("models").into_iter().enumerate() {
        if !common::all_cases() && place % 3 != nth % 3 {
            continue;
        }
        let stem = common::stem(&path);
        for problem in problems(target.as_ref(), &network(&stem), &BTreeMap::new(), Some(Tolerance::default())) {
            let _ = writeln!(wrong, "{stem}: {problem}");
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

macro_rules! each_target {
    ($($small:ident, $networks:ident: $name:literal;)*) => {
        /// The targets.
        const TARGETS: &[&str] = &[$($name),*];

        $(
            #[test] fn $small() { small_models($name); }
            #[test] fn $networks() { networks($name); }
        )*

        #[test]
        fn every_target_is_listed() {
            let functions: Vec<&str> = relayout::targets::BUILTIN.iter().copied().filter(|n| built_in(n).capabilities().calls_functions).collect();
            assert_eq!(functions, TARGETS);
        }
    };
}

each_target! {
    small_models_compute_the_same_in_nhwc, networks_compute_the_same_in_nhwc: "nhwc";
    small_models_compute_the_same_for_tensor_cores, networks_compute_the_same_for_tensor_cores: "cuda-tensorcore";
    small_models_compute_the_same_in_blocks_of_16, networks_compute_the_same_in_blocks_of_16: "x86-avx512";
    small_models_compute_the_same_in_blocks_of_8, networks_compute_the_same_in_blocks_of_8: "x86-avx2";
    small_models_compute_the_same_in_blocks_of_4, networks_compute_the_same_in_blocks_of_4: "arm-neon";
    small_models_compute_the_same_for_integer_kernels, networks_compute_the_same_for_integer_kernels: "cuda-dp4a";
}

/// Not a target of functions, but one that is held to the same.
#[test]
fn small_models_compute_the_same_between_transposes() {
    small_models("ort-nhwc");
}

#[test]
fn networks_compute_the_same_between_transposes() {
    networks("ort-nhwc");
}

/// Convolutional networks move in once and out once at most, and have no plain convolution left.
#[test]
fn convolutional_networks_stay_in_the_layout_of_the_target() {
    let mut wrong = String::new();
    for name in ["nhwc", "cuda-tensorcore", "x86-avx512", "x86-avx2", "arm-neon"] {
        for model in ["resnet34_bn_op9", "tf_mobilenet_v2_raw", "tf_efficientnet_b0_notr", "espcn_x3"] {
            let outcome = common::optimized_for(built_in(name).as_ref(), &network(model), &BTreeMap::new());
            let outcome = outcome.unwrap_or_else(|e| panic!("{name}, {model}: {e}"));
            let ops = ops(&outcome.bytes);
            let left = ops.get("Conv").copied().unwrap_or(0);
            let moves: usize = ops
                .iter()
                .filter(|(op, _)| op.starts_with("relayout.Relayout") || *op == "Transpose")
                .map(|(_, count)| count)
                .sum();
            if left > 0 || moves > 2 {
                let _ = writeln!(wrong, "{name}: {model} has {left} plain convolutions and {moves} moves: {ops:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Slots of the channels of an image that two convolutions for tensor cores read, the first of which has so many.
fn slots_of_images(dtype: i32, channels: i64) -> i64 {
    let same: (&str, &[i64]) = ("pads", &[1, 1, 1, 1]);
    let net = Net::new(17)
        .input("x", dtype, &[4, channels, 32, 32])
        .floats("v", dtype, &[64, channels, 3, 3], true)
        .floats("w", dtype, &[64, 64, 3, 3], true)
        .node_with("Conv", &["x", "v"], "a", &[same])
        .node_with("Conv", &["a", "w"], "y", &[same])
        .output("y", dtype);
    let outcome = common::optimized_for(built_in("cuda-tensorcore").as_ref(), &net.bytes(), &BTreeMap::new());
    let model = ModelProto::decode(outcome.expect("it is optimized").bytes.as_slice()).expect("a model");
    let weights = model.graph.iter().flat_map(|graph| &graph.initializer);
    // Weights are stored as they are read: output channels, rows, columns, input channels.
    let first = weights.filter(|weights| weights.dims.len() == 4 && weights.dims[3] != 64);
    let found: Vec<i64> = first.map(|weights| weights.dims[3]).collect();
    assert_eq!(found.len(), 1, "{dtype} {channels}");
    found[0]
}

#[test]
fn images_in_halves_are_read_as_they_are() {
    let found = [(F16, 1), (F16, 3), (F16, 4), (F16, 5), (F32, 3)].map(|(dtype, n)| slots_of_images(dtype, n));
    assert_eq!(found, [1, 3, 8, 8, 4]);
}

/// The text of the rewritten graph, and what is called how often.
#[test]
fn rewritten_graphs_read_as_recorded() {
    for &name in TARGETS {
        let target = built_in(name);
        let mut text = String::new();
        for case in [
            "pieces/channels_last_convolution",
            "pieces/squeeze_and_excitation_channels_last",
            "quantized/pair_per_axis",
        ] {
            let path = common::testdata("cases").join(format!("{case}.onnx"));
            let bytes = std::fs::read(&path).expect("a readable case");
            let outcome = common::optimized_for(target.as_ref(), &bytes, &BTreeMap::new()).expect("it is optimized");
            let _ = write!(text, "## {case}\n{}\n", common::printed(&outcome.bytes));
        }
        for model in ["espcn_x3", "if_mixed", "resnet34_bn_op9", "qdq_shufflenet_v2_x1_0", "unet_dynhw"] {
            let outcome = common::optimized_for(target.as_ref(), &network(model), &BTreeMap::new());
            let outcome = outcome.unwrap_or_else(|e| panic!("{name}, {model}: {e}"));
            let _ = writeln!(text, "## {model}\n{}", outcome.report.summary());
            for (op, count) in ops(&outcome.bytes) {
                let _ = writeln!(text, "{op}: {count}");
            }
            text.push('\n');
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("target_{name}"), text);
        });
    }
}

/// A target that takes a kernel wherever there is one.
fn eager(layout: &str, weights: &str, filters: &str, channels: u64) -> Box<dyn Target> {
    let text = format!(
        r#"
        name = "eager"
        dialect = "relayout"
        about = "takes every kernel"
        layouts = "{layout}"
        source = "a test"

        [moves]
        bytes_per_ns = 1
        node_ns = 1
        view_ns = 0

        [ops]
        outer_axis_percent = 100
        pass_bytes_per_ns = 1
        anchor_moves_percent = 100000
        other_moves_percent = 100000

        [[features]]
        dtypes = ["f32", "i8", "u8"]
        ranks = [3, 4, 5]
        layout = "{layout}"
        weights = "{weights}"
        filters = "{filters}"
        channels = {channels}
        macs_per_ns = 1
        unaligned_percent = 1000000
        reads_plain = true
        "#
    );
    parse_target("eager", &text).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a model for a target; the functions that were called for its op.
fn case_for(target: &dyn Target, (model, feeds): &(ModelProto, Vec<Tensor>)) -> Result<Vec<String>, String> {
    let bytes = model.encode_to_vec();
    let outcome = common::optimized_for(target, &bytes, &BTreeMap::new())?;
    if let Some(problem) = malformed(&outcome.bytes) {
        return Err(problem);
    }
    let comparison = common::compared_on(&bytes, &outcome.bytes, feeds)?;
    common::judged(&comparison, Some(Tolerance::default()))?;
    Ok(ops(&outcome.bytes).into_keys().filter(|op| op.starts_with("relayout.") && !op.contains(".Relayout")).collect())
}

#[test]
fn every_op_that_has_a_kernel_runs_as_it_in_every_kind_of_layout() {
    let targets = [
        ("channels last", eager("N S C", "O S I", "O S I", 1)),
        ("padded channels last", eager("N S C", "O S I", "O S I", 8)),
        ("blocks", eager("N C/4 S C%4", "O/4 I/4 S I%4 O%4", "O/4 I S O%4", 1)),
        ("small blocks", eager("N C/2 S C%2", "O I/2 S I%2", "O/2 I S O%2", 1)),
        ("images inside", eager("C/4 S N C%4", "I/4 S O I%4", "O/4 S I O%4", 1)),
    ];
    let mut wrong = String::new();
    let mut called: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (kind, target) in &targets {
        for case in op_cases::all().iter().chain(&whole_blocks()).filter(|c| c.domain.is_empty()) {
            let (first, last) = case.opsets;
            for opset in [first, last].into_iter().take(if first == last { 1 } else { 2 }) {
                match case_for(target.as_ref(), &(case.model(opset), case.feeds())) {
                    Ok(functions) if functions.is_empty() => {}
                    Ok(_) => drop(called.entry(case.op).or_default().insert(kind)),
                    Err(why) => {
                        let _ = writeln!(wrong, "{kind}, {}: {why}", case.label(opset));
                    }
                }
            }
        }
    }
    for case in op_cases::all() {
        for (way, ends, order) in WAYS {
            match turned(&case, ends, *order).map(|case| case_for(targets[0].1.as_ref(), &case)) {
                None => {}
                Some(Ok(functions)) if functions.is_empty() => {}
                Some(Ok(_)) => drop(called.entry(case.op).or_default().insert(way)),
                Some(Err(why)) => {
                    let _ = writeln!(wrong, "{way}, {}: {why}", case.label(case.opsets.0));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let kinds = |op: &str| called.get(op).map_or(0, BTreeSet::len);
    let missing: Vec<String> =
        EVERYWHERE.iter().filter(|op| kinds(op) < 3).map(|op| format!("{op}: {:?}", called.get(op))).collect();
    assert!(missing.is_empty(), "these run as kernels in too few layouts: {missing:?}");
}

/// An end of a product.
#[derive(Clone, Copy)]
enum End {
    Operand(usize),
    Result,
}

/// How an end of a product lies, in the words of its Transpose to ONNX's order.
#[derive(Clone, Copy)]
enum Order {
    /// The last two axes change places.
    Columns,
    /// The rows stand before the batch.
    RowsFirst,
}

impl Order {
    fn perm(self, rank: i64) -> Option<Vec<i64>> {
        match self {
            Order::Columns => Some((0..rank - 2).chain([rank - 1, rank - 2]).collect()),
            Order::RowsFirst => (rank > 2).then(|| (1..rank - 1).chain([0, rank - 1]).collect()),
        }
    }
}

/// Products have kernels only for what a Transpose asks for.
const WAYS: &[(&str, &[End], Order)] = &[
    ("left by columns", &[End::Operand(0)], Order::Columns),
    ("right by columns", &[End::Operand(1)], Order::Columns),
    ("result by columns", &[End::Result], Order::Columns),
    ("all by columns", &[End::Operand(0), End::Operand(1), End::Result], Order::Columns),
    ("left with its rows first", &[End::Operand(0)], Order::RowsFirst),
    ("right with its rows first", &[End::Operand(1)], Order::RowsFirst),
    ("result with its rows first", &[End::Result], Order::RowsFirst),
    ("all with their rows first", &[End::Operand(0), End::Operand(1), End::Result], Order::RowsFirst),
];

/// A case of a product of matrices, with Transposes at these ends, and what it is fed: the same numbers in other extents.
fn turned(case: &Case, ends: &[End], order: Order) -> Option<(ModelProto, Vec<Tensor>)> {
    let transpose = |x: &str, y: &str, perm: &[i64]| {
        proto::node("Transpose", vec![x.to_owned()], vec![y.to_owned()], vec![proto::ints("perm", perm)])
    };
    let mut case = case.clone();
    let rank =
        |operand: &Option<Operand>| Some(operand.as_ref()?.tensor.shape().len() as i64).filter(|&rank| rank >= 2);
    let ranks: Vec<i64> = case.operands.iter().take(2).map(rank).collect::<Option<_>>()?;
    if !["MatMul", "Gemm"].contains(&case.op) || !case.domain.is_empty() {
        return None;
    }
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for &end in ends {
        match end {
            End::Operand(slot) => {
                let perm = order.perm(*ranks.get(slot)?)?;
                let operand = case.operands.get_mut(slot)?.as_mut()?;
                let mut stored = vec![0; perm.len()];
                perm.iter().zip(operand.tensor.shape()).for_each(|(&from, &dim)| stored[from as usize] = dim);
                let (name, data) = (operand.tensor.name().to_owned(), operand.tensor.data().clone());
                before.push(transpose(&name, &format!("t{slot}"), &perm));
                operand.tensor = Tensor::new(name, stored, data).expect("as many elements");
            }
            End::Result => behind.push(transpose("t", "y0", &order.perm(ranks.iter().copied().max()?)?)),
        }
    }
    let mut model = case.model(case.opsets.0);
    let nodes = &mut model.graph.as_mut()?.node;
    let product = nodes.first_mut()?;
    for node in &before {
        product.input.iter_mut().filter(|i| **i == node.input[0]).for_each(|i| i.clone_from(&node.output[0]));
    }
    if !behind.is_empty() {
        product.output = vec!["t".to_owned()];
    }
    *nodes = [before, std::mem::take(nodes), behind].concat();
    Some((model, case.feeds()))
}

/// Cases whose channels are whole blocks, also where pad slots would be counted.
fn whole_blocks() -> Vec<Case> {
    let channels = || [fr(&[8], 0.5, 1.5), f(&[8]), f(&[8]), fr(&[8], 0.5, 1.5)];
    let [scale, shift, mean, variance] = channels();
    let normalized = case("BatchNormalization", 15, 22).x(f(&[2, 8, 3, 4])).c(scale).c(shift).c(mean).c(variance);
    let [scale, shift, ..] = channels();
    vec![
        normalized,
        case("InstanceNormalization", 7, 22).x(f(&[2, 8, 3, 4])).c(scale).c(shift),
        case("DepthToSpace", 11, 13).x(f(&[2, 16, 3, 4])).int("blocksize", 2).text("mode", "CRD"),
        case("SpaceToDepth", 7, 13).x(f(&[2, 4, 6, 4])).int("blocksize", 2),
        case("GlobalLpPool", 7, 21).x(f(&[2, 8, 3, 4])).int("p", 2),
        case("LRN", 7, 13).x(f(&[2, 8, 3, 4])).int("size", 3),
    ]
}

/// Ops with kernels.
const EVERYWHERE: &[&str] = &[
    "Conv",
    "ConvTranspose",
    "QLinearConv",
    "ConvInteger",
    "MaxPool",
    "AveragePool",
    "LpPool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GlobalLpPool",
    "Resize",
    "Upsample",
    "GridSample",
    "DepthToSpace",
    "SpaceToDepth",
    "BatchNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "LRN",
    "MatMul",
    "Gemm",
];
