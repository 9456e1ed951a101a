//! Graphs that are built in code: ops of any shape and domain, and no trace of what was refused.

use relayout::builder::NewOp;
use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::{Graph, Op, ValueId};
use relayout::ir::op::WRITTEN_OPSET;
use relayout::ir::types::Type;
use relayout::{BuildError, GraphBuilder, Model, Options, optimize, target};

fn dims(sizes: &[i64]) -> Vec<Dim> {
    sizes.iter().map(|&n| n.into()).collect()
}

fn image(b: &mut GraphBuilder) -> ValueId {
    b.input("x", DType::F32, dims(&[1, 8, 4, 4])).unwrap()
}

/// What a file that is made of the graph has: written, and read again.
fn in_file(b: GraphBuilder) -> Model {
    Model::of_graph(&b.finish()).unwrap()
}

fn node<'g>(graph: &'g Graph, op: &str) -> &'g relayout::ir::graph::Node {
    let is = |n: &_| matches!(&graph.node(*n).op, Op::Onnx(name) if name.name == op);
    graph.node(graph.nodes().find(is).unwrap())
}

#[test]
fn an_op_may_have_several_results_and_leave_some_out() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let sizes = b.constant("sizes", Constant::ints(&[2, 5, 1])).unwrap();
    let split = NewOp::new("Split").operand(x).operand(sizes).attr("axis", Attr::Int(1)).named("cut");
    let parts = b.add(split.result("a").omit_result().result("c")).unwrap();
    assert_eq!(parts.len(), 2);
    assert_eq!(b.shape(parts[0]), Some(&dims(&[1, 2, 4, 4])[..]));
    assert_eq!(b.shape(parts[1]), Some(&dims(&[1, 1, 4, 4])[..]));
    b.output(parts[0]).unwrap();
    b.output(parts[1]).unwrap();
    let model = in_file(b);
    let split = node(&model.ir().graph, "Split");
    assert_eq!(split.name, "cut");
    let left_out: Vec<bool> = split.outputs.iter().map(Option::is_none).collect();
    assert_eq!(left_out, [false, true, false]);
}

#[test]
fn a_file_without_a_standard_op_has_a_version_of_the_standard_all_the_same() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let own = NewOp::of_domain("mine", "Own").operand(x);
    let y = b.add(own.typed_result("y", Type::tensor(DType::F32, dims(&[1])))).unwrap()[0];
    b.output(y).unwrap();
    let model = in_file(b);
    let opsets = &model.ir().opsets;
    assert_eq!((opsets.get(""), opsets.contains_key("mine")), (Some(&WRITTEN_OPSET), true), "{opsets:?}");
}

#[test]
fn optional_operands_are_left_out_in_the_middle() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let high = b.constant("high", Constant::filled(DType::F32, &[], 6.0)).unwrap();
    let clip = b.add(NewOp::new("Clip").operand(x).omit().operand(high).result("clipped")).unwrap();
    let scales = b.constant("scales", Constant::floats([1.0, 1.0, 2.0, 2.0], &[4])).unwrap();
    let resize = NewOp::new("Resize").operand(clip[0]).omit().operand(scales).result("y");
    let y = b.add(resize).unwrap()[0];
    assert_eq!(b.shape(y), Some(&dims(&[1, 8, 8, 8])[..]));
    b.output(y).unwrap();
    let model = in_file(b);
    for op in ["Clip", "Resize"] {
        let inputs = &node(&model.ir().graph, op).inputs;
        assert!(inputs[0].is_some() && inputs[1].is_none() && inputs[2].is_some(), "{op}: {inputs:?}");
    }
}

#[test]
fn what_the_standard_does_not_have_is_refused() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let w = b.constant("w", Constant::filled(DType::F32, &[8, 8, 3, 3], 0.5)).unwrap();
    let refused = |made: Result<ValueId, BuildError>| made.unwrap_err().to_string();
    let op = refused(b.op("Rleu", "y", &[x], []));
    assert_eq!(op, format!("Rleu: `Rleu` is not an operator of the ONNX standard (opset {WRITTEN_OPSET})"));
    let attribute = refused(b.op("Conv", "y", &[x, w], [("padding", Attr::Ints(vec![1; 4]))]));
    assert_eq!(attribute, "Conv: the operator has no attribute `padding`");
    let kind = refused(b.op("Conv", "y", &[x, w], [("pads", Attr::Int(1))]));
    assert!(kind.contains("attribute `pads` is "), "{kind}");
    assert!(refused(b.op("Conv", "y", &[x], [])).contains("has 1 inputs"));
    // A name that another domain has is its own business.
    let own = NewOp::of_domain("mine", "Rleu").operand(x).typed_result("own", Type::tensor(DType::F32, dims(&[1])));
    b.add(own).unwrap();
    b.op("Conv", "y", &[x, w], [("pads", Attr::Ints(vec![1; 4]))]).unwrap();

    let short = b.constant("short", Constant::inline(DType::F32, vec![4], vec![0; 3].into()));
    assert_eq!(refused(short), "constant `short`: it has 3 bytes, and f32[4] needs 16");
}

#[test]
fn names_of_attributes_may_be_computed() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let name = String::from("per") + "m";
    let owned = NewOp::new("Transpose").operand(x).attr(name.clone(), Attr::Ints(vec![0, 2, 3, 1])).result("y");
    let y = b.add(owned).unwrap()[0];
    assert_eq!(b.shape(y), Some(&dims(&[1, 4, 4, 8])[..]));
    let z = b.op("Transpose", "z", &[y], [(name.as_str(), Attr::Ints(vec![0, 3, 1, 2]))]).unwrap();
    assert_eq!(b.shape(z), b.shape(x));
}

#[test]
fn ops_of_any_domain_are_written_with_its_version() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let ty = Type::tensor(DType::F32, dims(&[1, 8]));
    let pool = NewOp::of_domain("com.example", "Pool").opset(3).operand(x).attr("how", Attr::Int(2));
    let y = b.add(pool.typed_result("y", ty.clone())).unwrap()[0];
    let z = b.op("Relu", "z", &[y], []).unwrap();
    assert_eq!(b.shape(z), ty.shape());
    b.output(z).unwrap();
    let model = in_file(b);
    assert_eq!(model.ir().opsets.get("com.example"), Some(&3));
    let pool = node(&model.ir().graph, "Pool");
    assert_eq!((pool.opset, pool.int("how")), (3, Some(2)));
    // It is opaque, and a model with it can be optimized.
    let optimized = optimize(&model, target("onnx").unwrap().as_ref(), &Options::default()).unwrap();
    assert!(!optimized.report().changed);
}

#[test]
fn a_type_that_is_given_is_checked() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let wrong = NewOp::new("Relu").operand(x).typed_result("y", Type::tensor(DType::F32, dims(&[1, 8])));
    let error = b.add(wrong).unwrap_err().to_string();
    assert!(error.contains("Relu -> `y`"), "{error}");
}

/// What each of these says, and that the graph is what it was: the same text, and all names are free.
#[test]
fn what_is_refused_leaves_nothing_behind() {
    let mut b = GraphBuilder::new("g");
    let x = image(&mut b);
    let mut other = GraphBuilder::new("other");
    let foreign = (0..9).map(|i| other.input(&format!("i{i}"), DType::F32, dims(&[1])).unwrap()).last().unwrap();
    let perm = |perm: &[i64]| NewOp::new("Transpose").operand(x).attr("perm", Attr::Ints(perm.to_vec()));
    let body = Attr::Graph(Box::new(Graph::new("body")));
    let refused = [
        (perm(&[0, 1]).result("y"), "Transpose -> `y`: "),
        (perm(&[0, 1, 3, 2]).result("x"), "value `x` is defined twice"),
        (NewOp::new("Split").operand(x).result("y").result("y"), "value `y` is defined twice"),
        (NewOp::new("Add").operand(x).operand(foreign).result("y"), "operand 1 of Add is not a value of this graph"),
        (NewOp::new("If").operand(x).attr("then_branch", body).result("y"), "attribute `then_branch` is a graph"),
        (NewOp::new("Relu").named("r").operand(x), "Relu `r`: has no result"),
    ];
    let before = b.clone().finish();
    for (op, says) in refused {
        let error = b.add(op).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        let now = b.clone().finish();
        assert_eq!(now.to_string(), before.to_string(), "{error}");
        assert_eq!((now.node_count(), now.values().count()), (before.node_count(), before.values().count()), "{error}");
        assert_eq!(now.use_count(x), 0, "{error}");
    }
    assert!(matches!(b.output(foreign), Err(BuildError::NoValue { .. })));
    assert_eq!(b.shape(foreign), None);
    let y = b.add(perm(&[0, 2, 3, 1]).result("y")).unwrap()[0];
    b.output(y).unwrap();
    assert_eq!(b.finish().outputs(), [y]);
}
