//! Contracts with the caller: inputs and outputs in other orders than the model has them, and files that were made before.

use crate::common::{self, compared, judged, runtime, testdata};
use crate::fold_nets::{self, F32, Net};
use prost::Message;
use relayout::io::{End, IO_KEY, IoRecord};
use relayout::ir::constant::Constant;
use relayout::ir::graph::{Graph, Op};
use relayout::proof::Unproved;
use relayout::targets::{Block, OrtCpu};
use relayout::{Error, IoLayout, Model, Options, Report, Target, optimize};
use relayout_onnx::proto::tensor_shape_proto::dimension::Value as Extent;
use relayout_onnx::proto::{ModelProto, StringStringEntryProto, ValueInfoProto, type_proto};
use relayout_verify::{Inputs, Level, ModelSource, Tolerance, VerifyError, example_inputs, run, verify};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const NONE: &BTreeMap<String, i64> = &BTreeMap::new();

/// What the checker says of models that it does not look through.
const UNKNOWN: [&str; 5] = [
    " of the input: ",
    "nobody knows its shape",
    "of a shape that is not known",
    "Loop `loop_1`: the input computes",
    "Gather `p.ordered`: the input computes",
];

fn io(text: &str) -> IoLayout {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn onnx() -> Box<dyn Target> {
    relayout::target("onnx").expect("a built-in target")
}

fn attempt(bytes: &[u8], target: &dyn Target, options: &Options) -> Result<(Vec<u8>, Report), Error> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("the model opens");
    // What the caller agreed to is the checker's too. It does not know what every model computes.
    let optimized = optimize(&model, target, &options.clone().unproved(Unproved::Loud))?;
    let why = optimized.report().proof.as_ref().and_then(|proof| proof.why.as_ref());
    let unknown = |why: &String| UNKNOWN.iter().any(|part| why.contains(part));
    assert!(why.is_none_or(unknown), "UNPROVED: {why:?}");
    Ok((optimized.to_bytes().expect("the result is written"), optimized.report().clone()))
}

fn optimized(bytes: &[u8], options: &Options) -> (Vec<u8>, Report) {
    attempt(bytes, onnx().as_ref(), options).unwrap_or_else(|e| panic!("{e}"))
}

/// Both compute the same, whatever the order of their ends.
fn agree(a: &[u8], b: &[u8]) {
    let comparison = compared(a, b, NONE).unwrap_or_else(|e| panic!("{e}"));
    assert!(comparison.rounds > 0, "nothing was run: {comparison}");
    judged(&comparison, Some(Tolerance::default())).unwrap_or_else(|e| panic!("{e}"));
}

fn ops(bytes: &[u8]) -> Vec<String> {
    let model = ModelProto::decode(bytes).expect("a model");
    model.graph.iter().flat_map(|g| &g.node).map(|n| n.op_type.clone().unwrap_or_default()).collect()
}

/// Dims and denotations of a declaration, as in `N DATA_BATCH`.
fn declared(info: &ValueInfoProto) -> Vec<String> {
    let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Vec::new();
    };
    let dims = tensor.shape.iter().flat_map(|s| &s.dim).map(|d| {
        let extent = match &d.value {
            Some(Extent::DimValue(n)) => n.to_string(),
            Some(Extent::DimParam(name)) => name.clone(),
            None => "?".to_owned(),
        };
        format!("{extent} {}", d.denotation.as_deref().unwrap_or_default()).trim().to_owned()
    });
    dims.collect()
}

fn end<'m>(model: &'m ModelProto, end: End, name: &str) -> &'m ValueInfoProto {
    let graph = model.graph.as_ref().expect("a graph");
    let infos = if end == End::Input { &graph.input } else { &graph.output };
    infos.iter().find(|i| i.name.as_deref() == Some(name)).expect("the end is there")
}

fn property(model: &ModelProto, key: &str) -> Option<String> {
    model.metadata_props.iter().find(|p| p.key.as_deref() == Some(key))?.value.clone()
}

fn records(bytes: &[u8]) -> Vec<(End, String, String, String)> {
    let model = ModelProto::decode(bytes).expect("a model");
    let records = property(&model, IO_KEY).map_or_else(Vec::new, |text| IoRecord::parse_all(&text).expect("it reads"));
    records.into_iter().map(|r| (r.end, r.name, r.from, r.to)).collect()
}

/// Conv, Relu and a pool on `x` [N, 4, H, 6] to `y` [N, 8, H, 6].
fn images() -> Net {
    Net::new(17)
        .symbolic_input("x", F32, &["N", "4", "H", "6"])
        .floats("w", F32, &[8, 4, 3, 3], true)
        .floats("b", F32, &[8], true)
        .node_with("Conv", &["x", "w", "b"], "c", &[("pads", &[1, 1, 1, 1])])
        .node("Relu", &["c"], "y")
        .symbolic_output("y", F32, &["N", "8", "H", "6"])
}

#[test]
fn images_are_fed_and_taken_channels_last() {
    let before = images().bytes();
    let options = Options::default().input(io("x:NCHW->NHWC")).output(io("y:NCHW->NHWC"));
    let (after, report) = optimized(&before, &options);
    let model = ModelProto::decode(&after[..]).unwrap();
    let channels =
        |n| vec!["N DATA_BATCH".into(), "H DATA_FEATURE".into(), "6 DATA_FEATURE".into(), format!("{n} DATA_CHANNEL")];
    assert_eq!(declared(end(&model, End::Input, "x")), channels(4));
    assert_eq!(declared(end(&model, End::Output, "y")), channels(8));
    let expected =
        [(End::Input, "x"), (End::Output, "y")].map(|(e, n)| (e, n.to_owned(), "NCHW".to_owned(), "NHWC".to_owned()));
    assert_eq!(records(&after), expected);
    assert!(
        report.changed && report.explain().contains("input `x` is NHWC for the caller, NCHW in the original"),
        "{}",
        report.explain()
    );
    assert_eq!(ops(&after).iter().filter(|op| *op == "Transpose").count(), 2);
    agree(&before, &after);
    agree(&after, &before);
    // What is fed is what was agreed: the result by hand.
    let feeds =
        example_inputs(runtime(), ModelSource::Bytes(&after), &Inputs::Random { seed: 1, dims: BTreeMap::new() })
            .unwrap();
    assert_eq!((feeds[0].shape()[2], feeds[0].shape()[3]), (6, 4));
    let out = run(runtime(), ModelSource::Bytes(&after), &feeds, Level::All).unwrap();
    assert_eq!(out[0].shape(), [feeds[0].shape()[0], feeds[0].shape()[1], 6, 8]);
}

#[test]
fn an_end_in_the_order_of_the_convolutions_needs_no_transpose() {
    let before = std::fs::read(testdata("cli").join("conv.onnx")).unwrap();
    let (after, report) = optimized(&before, &Options::default().input(io("x:NHWC->NCHW")).output(io("y:NHWC->NCHW")));
    assert_eq!((ops(&after), report.after.nodes), (vec!["Conv".to_owned(), "Relu".to_owned()], 0));
    agree(&before, &after);
}

#[test]
fn an_op_that_takes_any_order_runs_in_that_of_its_ends() {
    let net =
        Net::new(17).input("x", F32, &[2, 3, 4]).node("Relu", &["x"], "y").symbolic_output("y", F32, &["2", "3", "4"]);
    let (before, both) = (net.bytes(), Options::default().input(io("x:abc->cab")).output(io("y:abc->cab")));
    let (after, _) = optimized(&before, &both);
    assert_eq!(ops(&after), ["Relu"]);
    agree(&before, &after);
    // One end alone is a move.
    let (after, _) = optimized(&before, &Options::default().output(io("y:abc->cab")));
    assert_eq!(ops(&after), ["Relu", "Transpose"]);
    agree(&before, &after);
}

#[test]
fn an_output_keeps_its_name_where_others_read_it_in_onnx_order() {
    // MatMul finds its axes by position, so `y` is wanted both ways.
    let before = Net::new(17)
        .input("x", F32, &[2, 3, 4, 5])
        .floats("w", F32, &[5, 2], true)
        .node("Relu", &["x"], "y")
        .node("MatMul", &["y", "w"], "z")
        .symbolic_output("y", F32, &["2", "3", "4", "5"])
        .symbolic_output("z", F32, &["2", "3", "4", "2"])
        .bytes();
    let (after, _) = optimized(&before, &Options::default().output(io("y:NCHW->WHCN")));
    let model = ModelProto::decode(&after[..]).unwrap();
    assert_eq!(
        declared(end(&model, End::Output, "y")),
        ["5 DATA_FEATURE", "4 DATA_FEATURE", "3 DATA_CHANNEL", "2 DATA_BATCH"]
    );
    agree(&before, &after);
}

#[test]
fn free_ends_lie_where_nothing_has_to_move_and_named_ones_where_they_should() {
    let before = std::fs::read(testdata("cli").join("conv.onnx")).unwrap();
    let (after, report) = optimized(&before, &Options::default().free_io());
    assert_eq!((report.after.nodes, report.io.len()), (0, 2));
    assert!(report.io.iter().all(|r| r.chosen) && report.explain().contains(", chosen"), "{}", report.explain());
    agree(&before, &after);
    let (again, report) = optimized(&after, &Options::default().free_io());
    assert!(!report.changed && again == after);
    let (named, report) = optimized(&before, &Options::default().free_io().input(io("x:NHWC->NHWC")));
    assert_eq!((report.after.nodes, records(&named).len()), (1, 1));
    agree(&before, &named);
}

#[test]
fn a_contract_that_is_met_changes_nothing_and_one_that_goes_on_is_told_from_the_original() {
    let before = images().bytes();
    let channels_last = Options::default().input(io("x:NCHW->NHWC"));
    let (last, _) = optimized(&before, &channels_last);
    let (again, report) = optimized(&last, &channels_last);
    assert!(!report.changed && again == last);
    assert_eq!(optimized(&last, &Options::default()).0, last);
    let (on, _) = optimized(&last, &Options::default().input(io("x:NHWC->CHWN")));
    assert_eq!(records(&on), [(End::Input, "x".to_owned(), "NCHW".to_owned(), "CHWN".to_owned())]);
    agree(&before, &on);
    let (back, _) = optimized(&last, &Options::default().input(io("x:NHWC->NCHW")));
    assert_eq!(records(&back), []);
    assert_eq!(ops(&back), ops(&before));
    agree(&before, &back);
    let error = attempt(&last, onnx().as_ref(), &Options::default().input(io("x:NCHW->CHWN"))).unwrap_err().to_string();
    assert!(error.contains("is stored as NHWC in this file"), "{error}");
}

#[test]
fn bodies_read_what_the_caller_feeds() {
    let body = |op: &str| {
        let net = Net::new(17).node(op, &["x"], "in");
        net.floats("w", F32, &[5, 2], true).node("MatMul", &["in", "w"], "out").output("out", F32)
    };
    let before = Net::new(17)
        .input("x", F32, &[2, 3, 4, 5])
        .input("c", fold_nets::BOOL, &[])
        .branches("c", "y", &body("Relu"), &body("Neg"))
        .symbolic_output("y", F32, &["2", "3", "4", "2"])
        .bytes();
    let (after, _) = optimized(&before, &Options::default().input(io("x:NCHW->NHWC")).output(io("y:NCHW->HWCN")));
    assert_ne!(after, before);
    agree(&before, &after);
    let (free, _) = optimized(&before, &Options::default().free_io());
    agree(&before, &free);
}

#[test]
fn what_is_asked_of_an_end_that_cannot_have_it_is_refused_by_name() {
    let small = Net::new(17)
        .symbolic_input("x", F32, &["N", "20", "4", "5"])
        .input("through", F32, &[2, 3])
        .node("Relu", &["x"], "y")
        .symbolic_output("y", F32, &["N", "20", "4", "5"])
        .symbolic_output("through", F32, &["2", "3"])
        .bytes();
    let overridable = std::fs::read(testdata("cli").join("overridable.onnx")).unwrap();
    let default = default_input(&overridable);
    let bad_rank = format!("{}:{}->{}", default.0, &"NCHWD"[..default.1], reversed(&"NCHWD"[..default.1]));
    let input = |text: &str| Options::default().input(io(text));
    let cases = [
        (&small, input("image:NCHW->NHWC"), "the model has no input `image`; it has `x`, `through`"),
        (&small, Options::default().output(io("x:NCHW->NHWC")), "the model has no output `x`; it has `y`, `through`"),
        (&small, input("x:NC->CN"), "input `x` is f32[N,20,4,5], of 4 axes, but `x:NC->CN` speaks of 2"),
        (&small, input("x:NCHW->NHWC").input(io("x:NCHW->CHWN")), "input `x` is given two layouts"),
        (&small, input("through:NC->CN"), "is an input and an output of the model at once"),
        (&small, input("x:NCHW->NCHW16c"), "axis 1 is not a whole number of blocks of 16"),
        (&small, input("x:NCHW->NCHW4n"), "axis 0 is not a whole number of blocks"),
        (&small, input("x:NCHW->NCHW4c"), "can't be moved from NCHW4c to NCHW in the operators of target `onnx`"),
        (&overridable, input(&bad_rank), "has a default in the file"),
    ];
    for (bytes, options, cause) in cases {
        let Err(error) = attempt(bytes, onnx().as_ref(), &options) else { panic!("no error: {cause}") };
        assert!(matches!(error, Error::Io(_)) && error.to_string().contains(cause), "{error}");
    }
    for (text, cause) in [
        ("x", "write NAME:FROM->TO"),
        (":NC->CN", "the name is missing"),
        ("x:NN->NN", "not one letter for each axis"),
        ("x:->", "not one letter for each axis"),
        ("x:NCHW->NHW", "`W` is not an axis"),
        ("x:NCHW->NHWD", "`D` is not an axis"),
        ("x:NC->", "is empty"),
    ] {
        let Err(error) = text.parse::<IoLayout>() else { panic!("{text} reads") };
        assert!(error.to_string().contains(cause), "{text}: {error}");
    }
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// Name and rank of an input that has a default.
fn default_input(bytes: &[u8]) -> (String, usize) {
    let model = Model::from_bytes(bytes.to_vec().into(), None).unwrap();
    let graph: &Graph = &model.ir().graph;
    let has_default = |op: &Op| matches!(op, Op::Input { default: Some(Constant { .. }) });
    let mut inputs = graph.inputs().iter().map(|&v| graph.value(v));
    let value = inputs.find(|value| has_default(&graph.node(value.producer().0).op)).expect("one has a default");
    (value.name.clone(), value.ty.rank().expect("its rank is known"))
}

#[test]
fn a_sequence_has_no_layout() {
    let before =
        Net::new(17).input("x", F32, &[2, 3]).node("SequenceConstruct", &["x"], "s").sequence_output("s", F32).bytes();
    let error = attempt(&before, onnx().as_ref(), &Options::default().output(io("s:NC->CN"))).unwrap_err().to_string();
    assert!(error.contains("output `s` is not a tensor"), "{error}");
}

/// Every end of the model reversed, where it has axes to reverse.
fn all_reversed(bytes: &[u8]) -> Options {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("the model opens");
    let text = model.print();
    let graph = &model.ir().graph;
    let ranks = |values: &[relayout::ir::graph::ValueId], options: Options, input: bool| {
        values.iter().fold(options, |options, &v| {
            let value = graph.value(v);
            let default = matches!(graph.node(value.producer().0).op, Op::Input { default: Some(_) });
            let through = graph.is_output(v) && graph.inputs().contains(&v);
            let Some(rank) = value.ty.rank().filter(|r| (2..=8).contains(r) && !default && !through) else {
                return options;
            };
            let letters: String = ('a'..='z').take(rank).collect();
            let layout =
                IoLayout::new(&value.name, &letters, &reversed(&letters)).unwrap_or_else(|e| panic!("{e}\n{text}"));
            if input { options.input(layout) } else { options.output(layout) }
        })
    };
    let options = ranks(graph.inputs(), Options::default(), true);
    ranks(graph.outputs(), options, false)
}

fn models(folder: &str) -> Vec<PathBuf> {
    let is_fine = |path: &PathBuf| !common::stem(path).starts_with("bad_") && common::stem(path) != "external";
    common::model_files(folder).into_iter().filter(is_fine).collect()
}

/// Reversed ends and free ends of a model: what comes out computes the same, stays as it is, and says what became of its ends.
fn check(path: &Path) -> Result<(), String> {
    let before = std::fs::read(path).map_err(|e| e.to_string())?;
    let asked = all_reversed(&before);
    let named = asked.inputs.len() + asked.outputs.len();
    for (options, all) in [(asked, true), (Options::default().free_io(), false)] {
        let (after, _) = attempt(&before, onnx().as_ref(), &options).map_err(|e| e.to_string())?;
        if all && records(&after).len() != named {
            return Err(format!("{named} ends are named, recorded are {:?}", records(&after)));
        }
        let (same, _) = attempt(&before, onnx().as_ref(), &options).map_err(|e| e.to_string())?;
        if same != after {
            return Err("a second run on the same input gives other bytes".to_owned());
        }
        let (again, report) = attempt(&after, onnx().as_ref(), &options).map_err(|e| e.to_string())?;
        if all && again != after {
            return Err(format!("the result is changed when it is optimized again: {}", report.summary()));
        }
        // What ONNX Runtime can't run before can't be compared.
        let Ok(own) = compared(&before, &before, NONE) else { continue };
        let comparison = compared(&before, &after, NONE)?;
        if own.rounds != comparison.rounds {
            return Err(format!("it was not run: {comparison}"));
        }
        judged(&comparison, Some(Tolerance::new(1e-4, 1e-3)))?;
    }
    Ok(())
}

fn check_folder(folder: &str) {
    let paths = models(folder);
    assert!(!paths.is_empty(), "{folder}");
    let failures: Vec<String> =
        paths.iter().filter_map(|path| Some(format!("{}: {}", path.display(), check(path).err()?))).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

macro_rules! folders {
    ($($test:ident: $folder:literal;)*) => { $(#[test] fn $test() { check_folder($folder); })* };
}

folders! {
    ends_of_axes_cases_may_lie_otherwise: "cases/axes";
    ends_of_bodies_cases_may_lie_otherwise: "cases/bodies";
    ends_of_broadcast_cases_may_lie_otherwise: "cases/broadcast";
    ends_of_cancel_pair_cases_may_lie_otherwise: "cases/cancel_pair";
    ends_of_constants_cases_may_lie_otherwise: "cases/constants";
    ends_of_gain_cases_may_lie_otherwise: "cases/gain";
    ends_of_pieces_cases_may_lie_otherwise: "cases/pieces";
    ends_of_quantized_cases_may_lie_otherwise: "cases/quantized";
    ends_of_sharing_cases_may_lie_otherwise: "cases/sharing";
    ends_of_symbolic_cases_may_lie_otherwise: "cases/symbolic";
    ends_of_views_cases_may_lie_otherwise: "cases/views";
    ends_of_the_models_of_the_binary_may_lie_otherwise: "cli";
}

/// Channels enough for blocks, layers enough for them to pay.
fn blocks() -> Net {
    let mut net = Net::new(17).symbolic_input("x", F32, &["1", "32", "20", "20"]);
    let mut x = "x".to_owned();
    for layer in 0..3 {
        let (w, b, c, r) = (format!("w{layer}"), format!("b{layer}"), format!("c{layer}"), format!("r{layer}"));
        net = net.floats(&w, F32, &[32, 32, 3, 3], true).floats(&b, F32, &[32], true);
        net = net.node_with("Conv", &[&x, &w, &b], &c, &[("pads", &[1, 1, 1, 1])]).node("Relu", &[&c], &r);
        x = r;
    }
    net.node("Identity", &[&x], "y").symbolic_output("y", F32, &["1", "32", "20", "20"])
}

fn ort_cpu(block: Block) -> OrtCpu {
    OrtCpu::new(block).expect("built-in data")
}

fn other_block() -> Block {
    if Block::of_host() == Block::B8 { Block::B16 } else { Block::B8 }
}

#[test]
fn a_file_in_blocks_is_left_as_it_is_and_nothing_else_is_made_of_it() {
    let before = blocks().bytes();
    let target = ort_cpu(Block::of_host());
    let options = Options::default().input(io("x:NCHW->NHWC"));
    let (after, report) = attempt(&before, &target, &options).unwrap();
    assert!(report.changed && ops(&after).contains(&"ReorderOutput".to_owned()), "{:?}", ops(&after));
    assert!(report.moves().any(|m| m.why.contains("is given as the caller has it")), "{}", report.explain());
    assert_eq!(attempt(&before, &target, &options).unwrap().0, after, "a second run gives other bytes");
    agree(&before, &after);
    for options in [&options, &Options::default(), &Options::default().free_io()] {
        let (again, report) = attempt(&after, &target, options).unwrap();
        assert!(again == after && !report.changed && report.settled);
        assert_eq!(report.summary(), "unchanged: the model was made for target ort-cpu already");
        assert_eq!(report.io.len(), 1);
    }
    let error = |target: &dyn Target, options: &Options| attempt(&after, target, options).unwrap_err().to_string();
    let made = "was made for target `ort-cpu`";
    let said = error(onnx().as_ref(), &Options::default());
    assert!(said.contains(made) && said.contains("can't be optimized for `onnx`"), "{said}");
    let said = error(&ort_cpu(other_block()), &Options::default());
    assert!(said.contains(made) && said.contains("relayout.block=8") && said.contains("relayout.block=16"), "{said}");
    let said = error(&target.clone().unguarded(), &Options::default());
    assert!(said.contains("relayout.guard=none"), "{said}");
    let said = error(&target, &Options::default().input(io("x:NHWC->CHWN")));
    assert!(said.contains("optimize the model that it was made from"), "{said}");
    let said = error(&target, &Options::default().output(io("y:NCHW->NHWC")));
    assert!(said.contains("output `y`") && said.contains("optimize the model that it was made from"), "{said}");
}

#[test]
fn a_file_of_standard_operators_can_be_optimized_for_another_target() {
    let (standard, _) = optimized(&std::fs::read(testdata("cli").join("conv.onnx")).unwrap(), &Options::default());
    assert!(property(&ModelProto::decode(&standard[..]).unwrap(), "relayout.target").is_some());
    attempt(&standard, &ort_cpu(Block::of_host()), &Options::default()).unwrap();
}

#[test]
fn a_file_of_another_block_fails_at_its_guard() {
    let before = blocks().bytes();
    let feeds =
        example_inputs(runtime(), ModelSource::Bytes(&before), &Inputs::Random { seed: 1, dims: BTreeMap::new() })
            .unwrap();
    let attempt_at = |bytes: &[u8], level| run(runtime(), ModelSource::Bytes(bytes), &feeds, level);
    let (own, _) = attempt(&before, &ort_cpu(Block::of_host()), &Options::default()).unwrap();
    let (other, _) = attempt(&before, &ort_cpu(other_block()), &Options::default()).unwrap();
    let model = ModelProto::decode(&other[..]).unwrap();
    assert_eq!(property(&model, "relayout.block"), Some(other_block().channels().to_string()));
    for level in [Level::Disabled, Level::Basic, Level::Extended, Level::All] {
        assert!(attempt_at(&own, level).is_ok(), "{level:?}");
        let error = attempt_at(&other, level).map(|_| ()).expect_err("the guard stops it").to_string();
        assert!(matches!(attempt_at(&other, level), Err(VerifyError::Run { .. } | VerifyError::Load { .. })));
        // The reshape of the guard's twenty channels, rounded up to blocks, to the number that the other host would have.
        let requested = format!("requested shape:{{{}}}", 20u64.next_multiple_of(other_block().channels()));
        assert!(error.contains("Reshape node") && error.contains(&requested), "{level:?}: {error}");
    }
}

#[test]
fn blocks_may_be_fed_where_the_target_has_them() {
    let before = blocks().bytes();
    let block = Block::of_host();
    let options = Options::default().input(io(&format!("x:NCHW->NCHW{}c", block.channels())));
    let (after, _) = attempt(&before, &ort_cpu(block), &options).unwrap();
    assert_eq!(records(&after).len(), 1);
    let reads_input = |node: &relayout_onnx::proto::NodeProto| node.input.iter().any(|name| name == "x");
    let model = ModelProto::decode(&after[..]).unwrap();
    let readers: Vec<_> = model.graph.iter().flat_map(|g| &g.node).filter(|n| reads_input(n)).collect();
    assert!(readers.iter().all(|n| n.op_type() == "Conv" && n.domain() == "com.microsoft.nchwc"), "{readers:?}");
    agree(&before, &after);
}

#[test]
fn records_that_cannot_be_read_stop_only_who_needs_them() {
    let mut model = ModelProto::decode(&images().bytes()[..]).unwrap();
    model.metadata_props.push(StringStringEntryProto { key: Some(IO_KEY.to_owned()), value: Some("[{}]".to_owned()) });
    let bytes = model.encode_to_vec();
    let (same, report) = optimized(&bytes, &Options::default());
    assert!(
        same == bytes && report.notes.iter().any(|n| n.contains("`relayout.io` can't be read")),
        "{:?}",
        report.notes
    );
    let error = attempt(&bytes, onnx().as_ref(), &Options::default().free_io()).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
    let inputs = Inputs::Random { seed: 1, dims: BTreeMap::new() };
    let source = ModelSource::Bytes(&bytes);
    let error = verify(runtime(), source, source, &inputs, &relayout_verify::Options::default()).unwrap_err();
    assert!(matches!(error, VerifyError::Io { .. }), "{error}");
}
