//! Files of the blocked dialect, read as standard ops on logical shapes.

use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::op::infer::infer_graph;
use relayout_ir::text::parse;
use relayout_passes::lift::{is_blocked, lift};

fn graph(body: &str) -> Graph {
    parse(&format!("graph g opset=13\n{body}")).expect("it is a graph")
}

/// Ops in order, with the shapes that are inferred of their results.
fn ops(graph: &mut Graph) -> Vec<String> {
    assert_eq!(infer_graph(graph, &mut 0).len(), 0, "the lifted graph is inferred");
    let name = |v: ValueId| graph.value(v).ty.to_string();
    let order = graph.order().expect("it has no cycle");
    let shown = |n| {
        let node = graph.node(n);
        Some(format!("{} {}", node.onnx()?, node.outputs.iter().flatten().map(|&v| name(v)).collect::<String>()))
    };
    order.into_iter().filter_map(shown).collect()
}

#[test]
fn reorders_become_what_is_left_of_them_and_sums_are_adds_again() {
    let mut graph = graph(
        "  %x: f32[1,20,8,8]@NCHW = input
  %w: f32[32,32,1,1]@NCHW = input
  %b: f32[32]@N = input
  %p: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x) {channels_last=0}
  %c: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::Conv(%p, %w, %b) {activation=\"Relu\", kernel_shape=[1,1]}
  %d: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::Conv(%c, %w, %b, %c) {kernel_shape=[1,1]}
  %e: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::Conv(%d, %w, %b, %d) {kernel_shape=[1,1]}
  %y: f32[1,20,8,8]@NCHW = com.microsoft.nchwc::ReorderOutput(%e) {channels=20}
  output %y
",
    );
    assert!(is_blocked(&graph));
    let lifted = lift(&mut graph, 16).expect("names are fresh");
    assert!(!is_blocked(&graph) && lifted.left.is_empty());
    assert_eq!(
        (lifted.reorders.len(), lifted.blocked.len()),
        (2, 6),
        "p, c, d, e and two sums lie in blocks: {lifted:?}"
    );
    let wide = "f32[1,32,8,8]";
    assert_eq!(
        ops(&mut graph),
        [
            format!("Pad {wide}"),
            format!("Conv {wide}"),
            format!("Conv {wide}"),
            format!("Add {wide}"),
            format!("Conv {wide}"),
            format!("Add {wide}"),
            "Slice f32[1,20,8,8]".to_owned(),
        ]
    );
}

#[test]
fn reorders_from_and_to_channels_last_are_transposes() {
    let mut graph = graph(
        "  %x: f32[1,8,8,16]@NCHW = input
  %p: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x) {channels_last=1}
  %m: f32[1,16,4,4]@NCHW = com.microsoft.nchwc::MaxPool(%p) {kernel_shape=[2,2], strides=[2,2]}
  %y: f32[1,4,4,16]@NCHW = com.microsoft.nchwc::ReorderOutput(%m) {channels=16, channels_last=1}
  output %y
",
    );
    lift(&mut graph, 16).expect("names are fresh");
    assert_eq!(
        ops(&mut graph),
        [
            "Transpose f32[1,16,8,8]",
            "Identity f32[1,16,8,8]",
            "MaxPool f32[1,16,4,4]",
            "Transpose f32[1,4,4,16]",
            "Identity f32[1,4,4,16]"
        ]
    );
}

#[test]
fn filters_that_nobody_reads_are_cut_off_and_the_reorder_is_one_move() {
    let mut graph = graph(
        "  %x: f32[1,16,8,8]@NCHW = input
  %w: f32[16,16,1,1]@NCHW = const
  %p: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x)
  %c: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::Conv(%p, %w) {kernel_shape=[1,1]}
  %y: f32[1,8,8,5]@NCHW = com.microsoft.nchwc::ReorderOutput(%c) {channels=5, channels_last=1}
  output %y
",
    );
    let lifted = lift(&mut graph, 16).expect("names are fresh");
    let moved = ["Identity f32[1,16,8,8]", "Conv f32[1,5,8,8]", "Transpose f32[1,8,8,5]", "Identity f32[1,8,8,5]"];
    assert_eq!(ops(&mut graph), moved);
    let turned = graph.by_name("c.lifted").expect("the Transpose's result");
    assert!(lifted.blocked.contains(&turned), "it lies in blocks until the reorder");
}

#[test]
fn what_is_no_op_that_is_known_is_left_and_named() {
    let mut graph = graph(
        "  %x: f32[1,16,8,8]@NCHW = input
  %p: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x)
  %y: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::Newer(%p)
  output %y
",
    );
    let lifted = lift(&mut graph, 16).expect("names are fresh");
    assert_eq!(lifted.left.into_iter().collect::<Vec<_>>(), ["Newer"]);
    assert!(is_blocked(&graph));
}
