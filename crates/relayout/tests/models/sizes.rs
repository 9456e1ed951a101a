//! Sizes of dims that inputs leave open: what the nodes ask for, what callers say, and what is assumed.

use crate::fold_nets::{F32, I64, Net};
use prost::Message;
use relayout::sizes::{OpenDim, SizeSource};
use relayout::{Error, Model, Options, Size, optimize, target};
use relayout_onnx::proto::{ModelProto, ValueInfoProto, tensor_shape_proto::dimension::Value as Extent, type_proto};
use std::collections::BTreeMap;

fn model(net: &Net) -> Model {
    Model::from_bytes(net.bytes().into(), None).expect("it opens")
}

/// `NAME=SIZES`, with the op that asks for them.
fn told(net: &Net) -> Vec<String> {
    let one = |dim: OpenDim| {
        let op = dim.why.as_deref().and_then(|why| why.split(' ').next()).unwrap_or("nothing").to_owned();
        let only = if dim.only { "only " } else { "" };
        format!("{}={only}{:?}: {op}", dim.name, dim.sizes)
    };
    model(net).open_dims(&BTreeMap::new()).into_iter().map(one).collect()
}

fn input(dims: &[&str]) -> Net {
    Net::new(17).symbolic_input("x", F32, dims)
}

#[test]
fn operands_of_a_product_are_as_long_as_each_other() {
    let net = input(&["N", "sequence"]).floats("w", F32, &[266, 8], true).node("MatMul", &["x", "w"], "y");
    assert_eq!(told(&net.output("y", F32)), ["N=[1]: nothing", "sequence=only [266]: MatMul"]);
    let turned = input(&["T", "N"]).floats("w", F32, &[8, 30], true);
    let turned = turned.node_with("Gemm", &["x", "w"], "y", &[("transA", &[1]), ("transB", &[1])]);
    assert_eq!(told(&turned.output("y", F32)), ["T=only [30]: Gemm", "N=[64]: nothing"]);
}

#[test]
fn channels_are_those_of_the_filters() {
    let net = input(&["N", "C", "H", "W"]).floats("w", F32, &[8, 3, 3, 3], true);
    let net = net.node_with("Conv", &["x", "w"], "y", &[("group", &[2])]);
    let found = told(&net.output("y", F32));
    assert_eq!(found, ["N=[1]: nothing", "C=only [6]: Conv", "H=[64]: nothing", "W=[64]: nothing"]);
}

#[test]
fn states_of_a_recurrent_network_fit_its_weights() {
    let net = input(&["T", "N", "inputs"]).symbolic_input("h", F32, &["D", "N", "hidden"]);
    let net = net.floats("w", F32, &[1, 30, 5], true).floats("r", F32, &[1, 30, 10], true);
    let net = net.node_with("GRU", &["x", "w", "r", "", "", "h"], "y", &[]);
    let found = told(&net.output("y", F32));
    let wanted =
        ["T=[1]: nothing", "N=[64]: nothing", "inputs=only [5]: GRU", "D=only [1]: GRU", "hidden=only [10]: GRU"];
    assert_eq!(found, wanted);
}

#[test]
fn a_size_is_found_behind_windows_and_reshapes() {
    // Windows of 16 that begin 8 apart are 5 in signals of 48 to 55 samples.
    let net = input(&["1", "1", "samples"]).floats("w", F32, &[4, 1, 16], true);
    let net = net.node_with("Conv", &["x", "w"], "c", &[("strides", &[8])]);
    let net = net.ints("flat", &[1, 20]).node("Reshape", &["c", "flat"], "y");
    assert_eq!(told(&net.output("y", F32)), ["samples=[48]: Reshape"]);
    // The frames stay, so that 7 bands of 3 channels are 21.
    let net = input(&["frames", "bands", "3"]).ints("rows", &[-1, 21]).node("Reshape", &["x", "rows"], "r");
    let net = net.floats("w", F32, &[21, 2], true).node("MatMul", &["r", "w"], "y");
    assert_eq!(told(&net.output("y", F32)), ["frames=[1]: nothing", "bands=[7]: Reshape"]);
}

#[test]
fn an_image_is_large_enough_for_what_reads_it() {
    let mut net = input(&["1", "1", "H", "64"]);
    let mut before = "x".to_owned();
    for at in 0..3 {
        let made = format!("p{at}");
        net = net.node_with("MaxPool", &[&before], &made, &[("kernel_shape", &[5, 1]), ("strides", &[5, 1])]);
        before = made;
    }
    assert_eq!(told(&net.output(&before, F32)), ["H=[128]: MaxPool"]);
}

#[test]
fn a_dim_without_a_symbol_is_called_by_its_input_and_axis() {
    let net = input(&["N", ""]).floats("w", F32, &[12, 8], true).node("MatMul", &["x", "w"], "y").output("y", F32);
    assert_eq!(told(&net), ["N=[1]: nothing", "x.1=only [12]: MatMul"]);
    let bare = input(&["", ""]).node_with("Transpose", &["x"], "t", &[("perm", &[1, 0])]);
    let bare = bare.node("Relu", &["t"], "y").output("y", F32);
    let report = report(&bare, &Options::default().dim("x.1", Size::of(224))).unwrap();
    assert_eq!(report.hints, BTreeMap::from([("x.0".to_owned(), 1), ("x.1".to_owned(), 224)]));
}

fn report(net: &Net, options: &Options) -> Result<relayout::Report, Error> {
    let target = target("onnx").expect("a built-in target");
    optimize(&model(net), target.as_ref(), options).map(|optimized| optimized.report().clone())
}

#[test]
fn the_report_says_which_sizes_were_given_asked_for_and_assumed() {
    let net = input(&["N", "T", "C"]).node_with("Transpose", &["x"], "t", &[("perm", &[0, 2, 1])]);
    let net = net.node("Relu", &["t"], "r").node_with("Transpose", &["r"], "b", &[("perm", &[0, 2, 1])]);
    let net = net.floats("w", F32, &[40, 4], true).node("MatMul", &["b", "w"], "y").output("y", F32);
    let report = report(&net, &Options::default().dim("N", Size::of(4))).unwrap();
    let sizes: Vec<(&str, i64, SizeSource)> =
        report.sizes.iter().map(|record| (record.name.as_str(), record.size, record.source)).collect();
    let wanted = [("N", 4, SizeSource::Given), ("T", 64, SizeSource::Assumed), ("C", 40, SizeSource::Node)];
    assert_eq!(sizes, wanted);
    assert_eq!((report.hints["C"], report.assumed().as_str()), (40, "T=64"));
    let file = report.file.expect("it changed");
    assert!(report.line().ends_with("sizes assumed: T=64") && file.before > 0, "{}", report.line());
    assert!(report.explain().contains("C=40: MatMul `node_y` asks for it"), "{}", report.explain());
}

#[test]
fn a_name_that_no_input_has_is_an_error_that_lists_those_that_there_are() {
    let net = input(&["N", "", "3"]).node("Relu", &["x"], "y").output("y", F32);
    let refused = report(&net, &Options::default().dim("batch", Size::of(4))).unwrap_err().to_string();
    assert_eq!(refused, "no input has an open dim `batch`; the open dims are N, x.1");
    for name in ["x.2", "x.3", "y.0"] {
        assert!(report(&net, &Options::default().dim(name, Size::of(4))).is_err(), "{name}");
    }
    let net = Net::new(17).input("x", F32, &[2, 3]).node("Relu", &["x"], "y").output("y", F32);
    let refused = report(&net, &Options::default().dim("N", Size::of(4))).unwrap_err().to_string();
    assert_eq!(refused, "no input has an open dim `N`; the inputs have no open dims");
}

#[test]
fn indices_and_lengths_lie_within_what_they_are_of() {
    let net = Net::new(17).symbolic_input("ids", I64, &["N", "T"]).symbolic_input("lengths", I64, &["N"]);
    let net = net.floats("table", F32, &[100, 8], true).node("Gather", &["table", "ids"], "e");
    let net = net.node_with("Cast", &["lengths"], "short", &[("to", &[7])]);
    let net = net.node_with("ReverseSequence", &["e", "short"], "y", &[("time_axis", &[1]), ("batch_axis", &[0])]);
    let shapes = BTreeMap::from([("ids".to_owned(), vec![2, 6]), ("lengths".to_owned(), vec![2])]);
    let ranges = model(&net.output("y", F32)).whole_numbers(&shapes);
    assert_eq!(ranges, BTreeMap::from([("ids".to_owned(), (0, 99)), ("lengths".to_owned(), (1, 6))]));
}

/// The dims that a file declares of an input or output.
fn declared(info: &ValueInfoProto) -> Vec<String> {
    let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_ref().and_then(|ty| ty.value.as_ref()) else {
        return Vec::new();
    };
    let dims = tensor.shape.iter().flat_map(|shape| &shape.dim);
    let spelled = |extent: Option<&Extent>| match extent {
        Some(Extent::DimValue(size)) => size.to_string(),
        Some(Extent::DimParam(symbol)) => symbol.clone(),
        None => String::new(),
    };
    dims.map(|dim| spelled(dim.value.as_ref())).collect()
}

#[test]
fn sizes_are_written_into_a_file() {
    let net = input(&["N", "", "H", "3"]).node_with("Transpose", &["x"], "t", &[("perm", &[0, 3, 1, 2])]);
    let net = net.node("Relu", &["t"], "y").symbolic_output("y", F32, &["N", "3", "", "H"]);
    let sizes = [("N", 1), ("x.1", 8)].map(|(name, size)| (name.to_owned(), size));
    let fixed = model(&net).with_sizes(&BTreeMap::from(sizes)).expect("both are open");
    let graph = ModelProto::decode(fixed.bytes()).expect("a model").graph.expect("a graph");
    assert_eq!(declared(&graph.input[0]), ["1", "8", "H", "3"]);
    assert_eq!(declared(&graph.output[0]), ["1", "3", "", "H"]);
    assert_eq!(fixed.open_dims(&BTreeMap::new()).len(), 1);
    let optimized = optimize(&fixed, target("onnx").unwrap().as_ref(), &Options::default()).expect("it is optimized");
    let notes = &optimized.report().notes;
    let wanted = "sizes were written into the file: input `x` [1,8,H,3], output `y` [1,3,?,H]";
    assert!(notes.iter().any(|note| note == wanted), "{notes:?}");
    assert!(model(&net).with_sizes(&BTreeMap::from([("M".to_owned(), 1)])).is_err());
}

#[test]
fn a_provider_that_needs_numbers_is_told_of_and_what_would_help() {
    let net = input(&["N", "4", "8", "8"]).node("Relu", &["x"], "y").output("y", F32);
    let target = target("ort-nhwc").expect("a built-in target");
    let remark = |model: &Model| -> Vec<String> {
        let audit = relayout::audit(model, target.as_ref(), &Options::default()).expect("it is audited");
        let report = optimize(model, target.as_ref(), &Options::default()).expect("it is optimized");
        let told =
            |notes: &[String]| notes.iter().filter(|note| note.contains("--fix-sizes")).cloned().collect::<Vec<_>>();
        assert_eq!(told(&audit.notes), report.report().remarks);
        told(&audit.notes)
    };
    let open = model(&net);
    let told = remark(&open);
    let numbers = "takes only nodes whose extents are numbers, so it takes none that depends on N";
    assert!(told.len() == 1 && told[0].contains(numbers) && told[0].contains("--dim N=SIZE"), "{told:?}");
    assert!(remark(&open.with_sizes(&BTreeMap::from([("N".to_owned(), 1)])).unwrap()).is_empty());
}
