//! Files of the blocked dialect, read as standard ops on logical shapes.

use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::op::infer::infer_graph;
use relayout_ir::text::parse;
use relayout_targets::ort_cpu::read::{has_blocked_bodies, is_blocked, lift};

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
fn reorders_become_copies_and_what_convolutions_took_in_are_nodes_again() {
    let mut graph = graph(
        "  %x: f32[1,20,8,8]@NCHW = input
  %w: f32[32,32,1,1]@NCHW = const
  %b: f32[32]@N = const
  %p: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x) {channels_last=0}
  %c: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::Conv(%p, %w, %b) {activation=\"Relu\", kernel_shape=[1,1]}
  %d: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::Conv(%c, %w, %b, %c) {kernel_shape=[1,1]}
  %e: f32[1,32,8,8]@NCHW = com.microsoft.nchwc::Conv(%d, %w, %b, %d) {activation=\"Tanh\", kernel_shape=[1,1]}
  %y: f32[1,20,8,8]@NCHW = com.microsoft.nchwc::ReorderOutput(%e) {channels=20}
  output %y
",
    );
    assert!(is_blocked(&graph));
    let lifted = lift(&mut graph).expect("names are fresh");
    assert!(!is_blocked(&graph) && lifted.left.is_empty());
    assert_eq!(
        (lifted.reorders.len(), lifted.blocked.len()),
        (2, 8),
        "p, c, d, e, two sums and two activations lie in blocks: {lifted:?}"
    );
    // What is summed has as many channels as the sum: 20 are read, 12 fill the blocks.
    let read = "f32[1,20,8,8]";
    let ops_of = ["Identity", "Conv", "Relu", "Conv", "Add", "Conv", "Add", "Tanh", "Identity"];
    assert_eq!(ops(&mut graph), ops_of.map(|op| format!("{op} {read}")));
}

/// Depthwise between two whole convolutions, from `channels` of 40 declared ones on; the weights are `kind`.
fn bottleneck(kind: &str, channels: i64) -> Graph {
    graph(&format!(
        "  %x: f32[1,16,8,8]@NCHW = input
  %a: f32[48,16,1,1]@NCHW = {kind}
  %w: f32[48,1,3,3]@NCHW = {kind}
  %z: f32[16,48,1,1]@NCHW = const
  %p: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x)
  %c: f32[1,48,8,8]@NCHW = com.microsoft.nchwc::Conv(%p, %a) {{kernel_shape=[1,1]}}
  %d: f32[1,48,8,8]@NCHW = com.microsoft.nchwc::Conv(%c, %w) {{group=48, kernel_shape=[3,3], pads=[1,1,1,1]}}
  %m: f32[1,48,4,4]@NCHW = com.microsoft.nchwc::MaxPool(%d) {{kernel_shape=[2,2], strides=[2,2]}}
  %s: f32[1,{channels},4,4]@NCHW = com.microsoft.nchwc::ReorderOutput(%m) {{channels={channels}}}
  %t: f32[1,{channels},4,4]@NCHW = Sigmoid(%s)
  %q: f32[1,48,4,4]@NCHW = com.microsoft.nchwc::ReorderInput(%t)
  %e: f32[1,16,4,4]@NCHW = com.microsoft.nchwc::Conv(%q, %z) {{kernel_shape=[1,1]}}
  %y: f32[1,16,4,4]@NCHW = com.microsoft.nchwc::ReorderOutput(%e) {{channels=16}}
  output %y
"
    ))
}

#[test]
fn channels_that_fill_blocks_are_cut_off_as_far_as_they_are_carried() {
    let mut graph = bottleneck("const", 40);
    lift(&mut graph).expect("names are fresh");
    let expected = [
        "Identity f32[1,16,8,8]",
        "Conv f32[1,40,8,8]",
        "Conv f32[1,40,8,8]",
        "MaxPool f32[1,40,4,4]",
        "Identity f32[1,40,4,4]",
        "Sigmoid f32[1,40,4,4]",
        "Identity f32[1,40,4,4]",
        "Conv f32[1,16,4,4]",
        "Identity f32[1,16,4,4]",
    ];
    assert_eq!(ops(&mut graph), expected);
}

#[test]
fn no_activation_is_lost() {
    for name in ["HardSwish", "Clip", "Newer"] {
        let mut graph = graph(&format!(
            "  %x: f32[1,16,8,8]@NCHW = input
  %w: f32[16,16,1,1]@NCHW = const
  %p: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x)
  %c: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::Conv(%p, %w) {{activation=\"{name}\", kernel_shape=[1,1]}}
  %y: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderOutput(%c) {{channels=16}}
  output %y
"
        ));
        lift(&mut graph).expect("names are fresh");
        let made = graph.by_name("c").map(|v| graph.node(graph.value(v).producer().0));
        assert_eq!(made.and_then(|node| node.onnx()), Some(name), "it leaves what the convolution left");
        assert!(name != "HardSwish" || ops(&mut graph).contains(&format!("{name} f32[1,16,8,8]")), "it is known");
    }
}

#[test]
fn weights_that_are_computed_are_not_cut_and_channels_are_cut_off_behind_them() {
    let mut graph = bottleneck("input", 40);
    lift(&mut graph).expect("names are fresh");
    let ops = ops(&mut graph);
    assert_eq!(ops[3..5], ["MaxPool f32[1,48,4,4]", "Slice f32[1,40,4,4]"], "{ops:?}");
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
    lift(&mut graph).expect("names are fresh");
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
    let lifted = lift(&mut graph).expect("names are fresh");
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
    let lifted = lift(&mut graph).expect("names are fresh");
    assert_eq!(lifted.left.into_iter().collect::<Vec<_>>(), ["Newer"]);
    assert!(is_blocked(&graph));
}

#[test]
fn blocks_of_a_body_are_found_and_left() {
    let mut graph = graph(
        "  %c: bool[] = input
  %x: f32[1,16,8,8]@NCHW = input
  %y: f32[1,16,8,8]@NCHW = If(%c) {then_branch=body}
    body b
      %x: f32[1,16,8,8]@NCHW = outer
      %p: f32[1,16,8,8]@NCHW = com.microsoft.nchwc::ReorderInput(%x)
      output %p
    end
  output %y
",
    );
    assert!(!is_blocked(&graph) && has_blocked_bodies(&graph));
    assert!(lift(&mut graph).expect("names are fresh").reorders.is_empty());
    assert!(has_blocked_bodies(&graph));
}
