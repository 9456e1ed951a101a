//! What the node builder adds, against what it was told.

use relayout_ir::attr::Attr;
use relayout_ir::build::{BuildError, Builder};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, Handover, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::replace_value;
use relayout_ir::types::Type;
use relayout_ir::verify::verify;

fn dims(text: &[&str]) -> Vec<Dim> {
    text.iter().map(|t| t.parse().unwrap()).collect()
}

fn floats(text: &[&str]) -> Type {
    Type::tensor(DType::F32, dims(text))
}

fn image() -> (Graph, ValueId) {
    let mut graph = Graph::new("g");
    let x = graph.add_input("x", floats(&["N", "16", "4", "5"])).unwrap();
    (graph, x)
}

fn maker(graph: &Graph, v: ValueId) -> &relayout_ir::graph::Node {
    graph.node(graph.value(v).producer().0)
}

#[test]
fn names_are_made_unique_in_the_order_of_creation() {
    let (mut graph, x) = image();
    let mut make = Builder::new(&mut graph, 7);
    let names = ["x", "x", "y"].map(|what| {
        let v = make.op("Relu", [x]).kernel().shaped(what, &dims(&["N", "16", "4", "5"])).unwrap();
        make.graph.value(v).name.clone()
    });
    assert_eq!(names, ["x.1", "x.2", "y"]);
    let mut make = make.named("y");
    assert_eq!(make.name("z"), "y.z");
    let c = make.ints("z", &[1, 2]).unwrap();
    assert_eq!((make.graph.value(c).name.as_str(), make.name("z").as_str()), ("y.z", "y.z.1"));
    assert!(graph.nodes().skip(1).all(|n| graph.node(n).rank == 7));
}

#[test]
fn an_op_has_the_version_of_the_builder_and_is_bound() {
    let (mut graph, x) = image();
    let mut make = Builder::new(&mut graph, 1).opset(13);
    let sizes = make.known_ints("sizes", &[6, 10]).unwrap();
    let parts = [("a", floats(&["N", "6", "4", "5"])), ("b", floats(&["N", "10", "4", "5"]))];
    let parts = make.op("Split", [x, sizes]).attr("axis", Attr::Int(1)).results(parts).unwrap();
    assert_eq!(parts.len(), 2);
    let split = maker(&graph, parts[1]);
    assert_eq!((split.opset, split.int("axis"), split.outputs.len()), (13, Some(1), 2));
    assert!(matches!(split.form, Form::Axes(_)));
    let mut make = Builder::new(&mut graph, 1).opset(13);
    let low = make.filled("low", DType::F32, &[], 0.0).unwrap();
    let clip =
        make.op("Clip", [Some(parts[0]), None]).operands([low]).shaped("c", &dims(&["N", "6", "4", "5"])).unwrap();
    assert_eq!(maker(&graph, clip).inputs, [Some(parts[0]), None, Some(low)]);
    assert!(verify(&graph).is_ok());
}

#[test]
fn what_is_known_of_constants_is_known_where_it_is_asked_for() {
    let mut graph = Graph::new("g");
    let mut make = Builder::new(&mut graph, 0);
    let (plain, known) = (make.ints("plain", &[3]).unwrap(), make.known_ints("known", &[3]).unwrap());
    let filled = make.filled("filled", DType::F64, &[2, 2], 0.5).unwrap();
    assert_eq!(graph.value(plain).contents, None);
    assert_eq!(graph.value(known).contents, Some(dims(&["3"])));
    let bytes = graph.constant(filled).unwrap().source.bytes().unwrap();
    assert_eq!(bytes.as_ref(), 0.5f64.to_le_bytes().repeat(4));
    assert_eq!(graph.value(filled).ty.const_shape(), Some(vec![2, 2]));
}

#[test]
fn views_keep_the_element_type_and_say_their_axes() {
    let (mut graph, x) = image();
    let mut make = Builder::new(&mut graph, 3).opset(13);
    let turned = make.transpose(x, "t", &[0, 2, 3, 1]).unwrap();
    let rows = make.reshape(turned, "r", dims(&["N", "20", "16"])).unwrap();
    assert_eq!(graph.value(turned).ty, floats(&["N", "4", "5", "16"]));
    assert_eq!(graph.value(rows).ty, floats(&["N", "20", "16"]));
    let node = maker(&graph, turned);
    assert_eq!((node.opset, node.ints("perm")), (0, Some(&[0, 2, 3, 1][..])));
    assert!(matches!(&node.form, Form::View(View::Transpose(perm)) if perm[..] == [0, 2, 3, 1]));
    assert!(matches!(maker(&graph, rows).form, Form::View(View::Reshape)));
}

#[test]
fn a_kernel_leaves_its_result_as_it_says() {
    let (mut graph, x) = image();
    let blocked: Layout = "NCHW8c".parse().unwrap();
    let mut make = Builder::new(&mut graph, 0);
    let moved = make.moved(x, "blocked", blocked.clone()).unwrap();
    assert!(matches!(maker(make.graph, moved).op, Op::Relayout));
    let own = || vec![Some(blocked.clone())];
    let op = OpName::new("test", "Pool");
    let pooled = make.op_of(op.clone(), 1, [moved]).kernel_in(own(), own()).shaped("p", &dims(&["N", "16", "1", "1"]));
    let pooled = pooled.unwrap();
    let target = make.graph.reshape_target(pooled, &dims(&["N", "16"]), &Layout::row_major(2));
    assert_eq!(target, Some(vec![0, 16]));
    let flat = make.reshape_stored(pooled, &[0, 16], &Layout::row_major(2)).unwrap();
    let flat = flat.result("flat", floats(&["N", "16"])).unwrap();
    assert_eq!(graph.value(pooled).layout, blocked);
    let node = maker(&graph, pooled);
    assert!(matches!((&node.op, node.opset), (Op::Onnx(found), 1) if *found == op));
    let (last, from) = (maker(&graph, flat), own());
    assert!(
        matches!(&last.form, Form::Kernel(l) if **l == KernelLayouts { ins: from, outs: vec![None] }),
        "{:?}",
        last.form
    );
    assert_eq!(graph.value(last.operand(1).unwrap()).name, "p.shape");
}

#[test]
fn a_node_takes_readers_and_a_name_or_the_place_of_another() {
    let (mut graph, x) = image();
    let ty = graph.value(x).ty.clone();
    let mut make = Builder::new(&mut graph, 0).opset(13);
    let y = make.op("Relu", [x]).result("y", ty.clone()).unwrap();
    let z = make.op("Abs", [y]).result("z", ty.clone()).unwrap();
    graph.add_output(y);
    let readers = Handover::everything(&graph, y);
    let n = graph_node(&graph, y);
    let mut make = Builder::at(&mut graph, n).opset(13);
    let copy = make.op("Identity", [y]).result_for("y", ty.clone(), readers).unwrap();
    assert_eq!((graph.value(copy).name.as_str(), graph.value(y).name.as_str()), ("y", "y.1"));
    assert_eq!(graph.outputs(), [copy]);
    assert_eq!(graph.uses(y).to_vec(), [Use { node: graph_node(&graph, copy), slot: 0 }]);
    let n = graph_node(&graph, z);
    let scale = Constant::floats([2.0], &[1]);
    let mut make = Builder::at(&mut graph, n);
    let scale = make.constant("scale", scale).unwrap();
    make.op_of(OpName::onnx("Mul"), 14, [copy, scale]).in_place_of(n);
    let node = graph.node(n);
    assert_eq!((node.onnx(), node.opset, node.only_result()), (Some("Mul"), 14, Some(z)));
    replace_value(&mut graph, z, copy, [n]).unwrap();
    assert!(!graph.contains(n));
    assert_eq!(graph.value(copy).name, "z");
}

fn graph_node(graph: &Graph, v: ValueId) -> relayout_ir::graph::NodeId {
    graph.value(v).producer().0
}

#[test]
fn types_are_inferred_or_refused() {
    let (mut graph, x) = image();
    let mut make = Builder::new(&mut graph, 0).opset(13);
    let mut unknowns = 0;
    let pooled = make.op("GlobalMaxPool", [x]).inferred("p", &mut unknowns).unwrap();
    assert_eq!(make.graph.value(pooled).ty, floats(&["N", "16", "1", "1"]));
    assert!(matches!(maker(make.graph, pooled).form, Form::Axes(_)));
    let refused = make.op("Transpose", [pooled]).attr("perm", Attr::Ints(vec![0, 9])).inferred("s", &mut unknowns);
    assert!(matches!(refused, Err(BuildError::Node { .. })), "{refused:?}");
}
