//! Target `ort-cpu`: convolutions in bodies whose filters stand in the graph around them.

use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::{blocked, refusal};
use crate::fold_nets::{BOOL, F32, Net};
use relayout_onnx::proto::{GraphProto, NodeProto};

const PADS: &[(&str, &[i64])] = &[("pads", &[1, 1, 1, 1])];

/// Two convolutions of a branch, whose filters it does not have.
fn then() -> Net {
    let net = Net::new(17).node_with("Conv", &["a", "w1", "b1"], "t", PADS).node("Relu", &["t"], "r");
    net.node_with("Conv", &["r", "w2"], "u", PADS).output("u", F32)
}

/// These branches between convolutions, with all filters in the main graph.
fn around(then: &Net, other: &Net) -> Net {
    Net::new(17)
        .input("x", F32, &[1, 16, 24, 24])
        .input("which", BOOL, &[])
        .floats("w0", F32, &[32, 16, 3, 3], true)
        .floats("w1", F32, &[32, 32, 3, 3], true)
        .floats("b1", F32, &[32], true)
        .floats("w2", F32, &[32, 32, 3, 3], true)
        .floats("w3", F32, &[32, 32, 3, 3], true)
        .node_with("Conv", &["x", "w0"], "a", PADS)
        .branches("which", "d", then, other)
        .node_with("Conv", &["d", "w3"], "y", PADS)
        .output("y", F32)
}

/// Of a branch: how many convolutions are plain and how many in blocks, and how many constants it has.
type Branch = ([usize; 2], usize);

/// Of all branches of these nodes, and of those within.
fn branches(nodes: &[NodeProto]) -> Vec<Branch> {
    let of = |body: &GraphProto| {
        let all = || body.node.iter().filter(|n| n.op_type() == "Conv");
        let in_blocks = all().filter(|n| n.domain() == "com.microsoft.nchwc").count();
        let own = ([all().count() - in_blocks, in_blocks], body.initializer.len());
        [vec![own], branches(&body.node)].concat()
    };
    nodes.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.as_deref()).flat_map(of).collect()
}

/// What the branches of a network become, for each block.
fn left(net: &Net) -> Vec<Vec<Branch>> {
    let one = |block| {
        assert_eq!(refusal(block, &net.bytes()), None);
        branches(&blocked(block, net).graph.unwrap_or_default().node)
    };
    blocks().map(one).collect()
}

#[test]
fn filters_that_one_branch_alone_reads_are_packed_in_it() {
    let other = Net::new(17).node("Sigmoid", &["a"], "v").output("v", F32);
    for branches in left(&around(&then(), &other)) {
        assert!(branches.contains(&([0, 2], 3)) && branches.contains(&([0, 0], 0)), "{branches:?}");
    }
}

#[test]
fn filters_that_both_branches_read_stay_outside() {
    let other = Net::new(17).node_with("Conv", &["a", "w1", "b1"], "v", PADS).output("v", F32);
    for branches in left(&around(&then(), &other)) {
        assert!(branches.contains(&([1, 1], 1)) && branches.contains(&([1, 0], 0)), "{branches:?}");
    }
}

#[test]
fn so_do_those_that_the_main_graph_reads_too() {
    let other = Net::new(17).node("Sigmoid", &["a"], "v").output("v", F32);
    let net = around(&then(), &other).node("Neg", &["w2"], "w2.negated").output("w2.negated", F32);
    for branches in left(&net) {
        assert!(branches.contains(&([1, 1], 2)), "{branches:?}");
    }
}

#[test]
fn filters_of_a_branch_within_a_branch_are_brought_all_the_way() {
    let other = Net::new(17).node("Sigmoid", &["a"], "v").output("v", F32);
    let within = |then: &Net| Net::new(17).branches("which", "n", then, &other).output("n", F32);
    for branches in left(&around(&within(&then()), &other)) {
        assert_eq!(branches.iter().filter(|branch| **branch == ([0, 2], 3)).count(), 1, "{branches:?}");
    }
}

#[test]
fn an_activation_stands_between_a_plain_convolution_and_the_move_into_blocks() {
    // ONNX Runtime takes it into the convolution when it loads the file, but not through a move.
    let other = Net::new(17).node_with("Conv", &["a", "w1", "b1"], "v", PADS).output("v", F32);
    for block in blocks() {
        let graph = blocked(block, &around(&then(), &other)).graph.unwrap_or_default();
        let bodies: Vec<&GraphProto> =
            graph.node.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.as_deref()).collect();
        let body = bodies.iter().find(|body| body.node.iter().any(|n| n.op_type() == "Relu")).expect("a branch");
        let maker = |name: &str| body.node.iter().find(|n| n.output.iter().any(|made| made == name));
        let relu = body.node.iter().find(|n| n.op_type() == "Relu").expect("it is there");
        let conv = maker(&relu.input[0]).expect("it reads a node");
        assert_eq!((conv.op_type(), conv.domain()), ("Conv", ""));
        assert!(body.node.iter().any(|n| n.op_type() == "ReorderInput" && n.input[0] == relu.output[0]));
    }
}
