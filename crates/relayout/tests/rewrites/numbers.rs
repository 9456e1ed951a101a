//! Numbers beside values whose last extent is 1: they get two axes, unless the runtime fuses the op with what stands beside it.

use crate::fold_nets::folded::{Folded, fold};
use crate::fold_nets::{F32, Net};
use relayout::Model;

const RULE: &str = "give_numbers_two_axes";

/// x op c, read by another op.
fn net(op: &str, extents: &[i64], number: &[i64], reader: &str) -> Net {
    let net = Net::new(17).input("x", F32, extents).floats("c", F32, number, false);
    net.node(op, &["x", "c"], "m").node(reader, &["m"], "y").output("y", F32)
}

fn dims_of_number(folded: &Folded) -> Vec<i64> {
    let model = Model::from_bytes(folded.after.clone().into(), None).unwrap();
    let graph = &model.ir().graph;
    let n = graph.nodes().find(|&n| matches!(graph.node(n).onnx(), Some("Add" | "Mul" | "Div"))).unwrap();
    graph.constant(graph.node(n).operand(1).unwrap()).unwrap().dims.clone()
}

#[test]
fn a_number_beside_a_last_extent_of_one_gets_two_axes() {
    for op in ["Add", "Mul", "Div"] {
        for number in [&[][..], &[1]] {
            let folded = fold(&net(op, &[2, 30, 40, 1], number, "Abs"));
            assert_eq!(folded.report.rewrites.get(RULE), Some(&1), "{op}");
            assert_eq!(dims_of_number(&folded), [1, 1]);
            folded.holds(0.0);
        }
    }
}

#[test]
fn a_number_stays_where_nothing_is_gained() {
    let kept = [
        net("Mul", &[2, 30, 40, 2], &[], "Abs"),
        net("Mul", &[2, 5, 10, 1], &[1], "Abs"),
        net("Mul", &[2400], &[1], "Abs"),
        net("Mul", &[2, 30, 40, 1], &[1, 1], "Abs"),
        // A normalization is fused with its epsilon.
        net("Add", &[2, 30, 40, 1], &[], "Sqrt"),
        net("Mul", &[2, 30, 40, 1], &[1], "Sigmoid"),
    ];
    for net in kept {
        assert!(!fold(&net).report.changed);
    }
    // Before operator set 7 an attribute says whether there is another shape, and from which axis on.
    let old = Net::new(6).input("x", F32, &[2, 30, 40, 1]).floats("c", F32, &[1], false);
    let old = old.node("Mul", &["x", "c"], "m").int_attribute("broadcast", 1).node("Abs", &["m"], "y").output("y", F32);
    assert_eq!(fold(&old).report.rewrites.get(RULE), None);
}
