//! Inference over graphs: bodies, declared types, contradictions, nesting.

use crate::op_common::ty;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::op::infer::{MAX_NESTING, infer_graph};
use relayout_ir::types::Type;

fn onnx(name: &str, inputs: &[ValueId]) -> Node {
    let op = OpName { domain: String::new(), name: name.to_owned(), overload: String::new() };
    let mut node = Node::new(Op::Onnx(op), inputs.iter().copied().map(Some).collect());
    node.opset = 17;
    node
}

fn add(graph: &mut Graph, node: Node, result: &str) -> ValueId {
    graph.add_single(node, result.to_owned(), Type::Unknown).unwrap()
}

fn outer(graph: &mut Graph, name: &str) -> ValueId {
    add(graph, Node::new(Op::Outer, vec![]), name)
}

fn infer(graph: &mut Graph) -> Vec<String> {
    infer_graph(graph, &mut 0).into_iter().map(|p| p.to_string()).collect()
}

fn type_of(graph: &Graph, name: &str) -> String {
    graph.value(graph.by_name(name).unwrap()).ty.to_string()
}

/// A branch that returns `op` of the outer value `x`.
fn branch(op: &str, result: &str) -> Graph {
    let mut body = Graph::new(result);
    let x = outer(&mut body, "x");
    let y = add(&mut body, onnx(op, &[x]), result);
    body.add_output(y);
    body
}

fn branching(then: &str, otherwise: &str) -> Graph {
    let mut graph = Graph::new("g");
    let cond = graph.add_input("cond", ty("bool[]")).unwrap();
    let x = graph.add_input("x", ty("f32[N,4]")).unwrap();
    let mut node = onnx("If", &[cond]);
    node.attrs.insert("then_branch".into(), Attr::Graph(Box::new(branch(then, "t"))));
    node.attrs.insert("else_branch".into(), Attr::Graph(Box::new(branch(otherwise, "e"))));
    node.captures = vec![x];
    add(&mut graph, node, "y");
    graph
}

#[test]
fn branches_see_outer_values_and_agree_dim_by_dim() {
    let mut graph = branching("Relu", "Sigmoid");
    assert_eq!(infer(&mut graph), [""; 0]);
    assert_eq!(type_of(&graph, "y"), "f32[N,4]");
    let mut graph = branching("Relu", "Shape");
    assert_eq!(infer(&mut graph), [""; 0]);
    assert_eq!(type_of(&graph, "y"), "?[*]");
    let mut graph = branching("Relu", "Transpose");
    assert_eq!(infer(&mut graph), [""; 0]);
    assert_eq!(type_of(&graph, "y"), "f32[?1,?2]");
}

/// A loop that carries `x` through `step`, which also may add results that are gathered.
fn looping(init: &str, step: impl FnOnce(&mut Graph, ValueId) -> Vec<ValueId>) -> Graph {
    let mut body = Graph::new("body");
    body.add_input("i", Type::Unknown).unwrap();
    let cond = body.add_input("c", Type::Unknown).unwrap();
    let carried = body.add_input("s", Type::Unknown).unwrap();
    let go = add(&mut body, onnx("Identity", &[cond]), "go");
    body.add_output(go);
    let results = step(&mut body, carried);
    for &v in &results {
        body.add_output(v);
    }
    let mut graph = Graph::new("g");
    let count = graph.add_constant("m", Constant::ints(&[8])).unwrap();
    let x = graph.add_input("x", ty(init)).unwrap();
    let mut node = onnx("Loop", &[count, count, x]);
    node.inputs[1] = None;
    node.attrs.insert("body".into(), Attr::Graph(Box::new(body)));
    let outputs = (0..results.len()).map(|i| Some((format!("y{i}"), Type::Unknown))).collect();
    graph.add(node, outputs).unwrap();
    graph
}

#[test]
fn a_carried_shape_that_the_body_keeps_is_known_after_the_loop() {
    let mut graph = looping("f32[N,4]", |body, s| {
        let next = add(body, onnx("Relu", &[s]), "next");
        let row = add(body, onnx("Shape", &[s]), "row");
        vec![next, row]
    });
    assert_eq!(infer(&mut graph), [""; 0]);
    assert_eq!(type_of(&graph, "y0"), "f32[N,4]");
    assert!(type_of(&graph, "y1").starts_with("i64[?"), "one row per iteration, of which there are any number");
    assert!(type_of(&graph, "y1").ends_with(",2]"));
}

#[test]
fn a_carried_extent_that_grows_is_not_known_but_the_others_are() {
    let mut graph = looping("f32[N,4]", |body, s| {
        let mut node = onnx("Concat", &[s, s]);
        node.attrs.insert("axis".into(), Attr::Int(0));
        vec![add(body, node, "next")]
    });
    assert_eq!(infer(&mut graph), [""; 0]);
    let found = type_of(&graph, "y0");
    assert!(found.starts_with("f32[?") && found.ends_with(",4]"), "{found}");
}

#[test]
fn a_carried_rank_that_changes_is_not_known() {
    let mut graph = looping("f32[N,4]", |body, s| {
        let axes = body.add_constant("axes", Constant::ints(&[0])).unwrap();
        vec![add(body, onnx("Unsqueeze", &[s, axes]), "next")]
    });
    assert_eq!(infer(&mut graph), [""; 0]);
    assert_eq!(type_of(&graph, "y0"), "f32[*]");
}

#[test]
fn a_scan_slices_and_gathers_along_its_axes() {
    let mut body = Graph::new("body");
    let state = body.add_input("s", Type::Unknown).unwrap();
    let slice = body.add_input("x", Type::Unknown).unwrap();
    let next = add(&mut body, onnx("Add", &[state, slice]), "next");
    let out = add(&mut body, onnx("Relu", &[slice]), "out");
    body.add_output(next);
    body.add_output(out);
    let mut graph = Graph::new("g");
    let init = graph.add_input("init", ty("f32[N,4]")).unwrap();
    let xs = graph.add_input("xs", ty("f32[N,T,4]")).unwrap();
    let mut node = onnx("Scan", &[init, xs]);
    node.attrs.insert("num_scan_inputs".into(), Attr::Int(1));
    node.attrs.insert("scan_input_axes".into(), Attr::Ints(vec![1]));
    node.attrs.insert("scan_output_axes".into(), Attr::Ints(vec![-1]));
    node.attrs.insert("body".into(), Attr::Graph(Box::new(body)));
    graph.add(node, vec![Some(("last".into(), Type::Unknown)), Some(("all".into(), Type::Unknown))]).unwrap();
    assert_eq!(infer(&mut graph), [""; 0]);
    assert_eq!(type_of(&graph, "last"), "f32[N,4]");
    assert_eq!(type_of(&graph, "all"), "f32[N,4,T]");
}

#[test]
fn a_false_declaration_is_reported_and_overruled() {
    let mut graph = Graph::new("g");
    let x = graph.add_input("x", ty("f32[N,4]")).unwrap();
    let y = graph.add_single(onnx("Relu", &[x]), "y".into(), ty("f32[batch,5]")).unwrap();
    let z = graph.add_single(onnx("Relu", &[y]), "z".into(), ty("f32[2,4]")).unwrap();
    let problems = infer(&mut graph);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("`y` is declared as f32[batch,5], but is f32[N,4]"), "{problems:?}");
    assert_eq!(type_of(&graph, "y"), "f32[N,4]");
    assert_eq!(graph.value(z).ty.to_string(), "f32[2,4]", "a declared number says more than a symbol");
    assert!(graph.value(z).layout.is_row_major());
}

#[test]
fn a_problem_in_a_body_names_the_body_and_the_node() {
    let mut graph = looping("f32[N,4]", |body, s| {
        let other = body.add_constant("k", Constant::ints(&[1, 2, 3])).unwrap();
        vec![add(body, onnx("Add", &[s, other]), "next")]
    });
    let problems = infer(&mut graph);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("in its body `body`: Add -> `next`: operands are of unequal element types"));
}

#[test]
fn bodies_nested_too_deep_are_reported_and_left_as_declared() {
    let mut graph = branch("Relu", "y");
    for _ in 0..=MAX_NESTING {
        let mut around = Graph::new("around");
        let cond = outer(&mut around, "cond");
        let mut node = onnx("If", &[cond]);
        node.attrs.insert("then_branch".into(), Attr::Graph(Box::new(graph.clone())));
        node.attrs.insert("else_branch".into(), Attr::Graph(Box::new(branch("Relu", "y"))));
        let y = add(&mut around, node, "y");
        around.add_output(y);
        graph = around;
    }
    // Each level holds one deeper branch, so the report is one.
    let problems = infer(&mut graph);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("nested more than 64 deep"));
}
