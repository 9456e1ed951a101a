//! Layouts along an axis that is joined: where pad slots of the runs are in the whole, and which graphs of such values are sound.

use relayout_ir::dim::Dim;
use relayout_ir::form::{Bound, Form, Slot};
use relayout_ir::graph::{Graph, Node, NodeId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::StorageRule;
use relayout_ir::text::parse;
use relayout_ir::verify::{Invariant, verify};

/// A graph whose nodes are bound to the table of ops.
fn graph(rule: &str, lines: &str) -> Graph {
    let mut graph = parse(&format!("graph g opset=17 storage={rule}\n{lines}")).unwrap();
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for n in nodes {
        let form = relayout_ir::op::bind(&graph, n);
        graph.set_form(n, form);
    }
    graph
}

fn the_only<'g>(graph: &'g Graph, op: &str) -> (&'g Node, &'g Bound) {
    let node = graph.node(graph.nodes().find(|&n| graph.node(n).onnx() == Some(op)).unwrap());
    match &node.form {
        Form::Axes(bound) => (node, bound),
        other => panic!("{op} is {other:?}"),
    }
}

/// Layouts of operands and result of a Concat of images of these channels, one of which lies so.
fn carried(channels: [i64; 2], slot: Slot, layout: &str, rule: StorageRule) -> Option<Vec<String>> {
    let [a, b] = channels;
    let g = graph(
        "per-digit",
        &format!(
            "  %a: f32[1,{a},6,6]@NCHW = input
  %b: f32[1,{b},6,6]@NCHW = input
  %y: f32[1,{},6,6]@NCHW = Concat(%a, %b) {{axis=1}}
  output %y\n",
            a + b
        ),
    );
    let (node, bound) = the_only(&g, "Concat");
    let shape = |slot: Slot| -> Option<&[Dim]> {
        let v = match slot {
            Slot::In(i) => node.inputs[i],
            Slot::Out(i) => node.outputs[i],
        };
        g.value(v?).ty.shape()
    };
    let layout: Layout = layout.parse().unwrap();
    let all = bound.carry(slot, &layout, rule, shape)?;
    Some(all.iter().map(|(_, layout)| layout.to_string()).collect())
}

#[test]
fn runs_that_fill_no_blocks_leave_pad_slots_between_them() {
    let [blocked, whole] = ["NCHW16c", "N C[24:32,20:32]/16 H W C%16"];
    let all = Some([blocked, blocked, whole].map(str::to_owned).to_vec());
    for (slot, layout) in [(Slot::In(0), blocked), (Slot::In(1), blocked), (Slot::Out(0), whole)] {
        assert_eq!(carried([24, 20], slot, layout, StorageRule::PerAxis), all, "{slot:?}");
    }
    // At the end of all there are none between them.
    let all = Some(vec![blocked.to_owned(); 3]);
    for slot in [Slot::In(0), Slot::In(1), Slot::Out(0)] {
        assert_eq!(carried([32, 20], slot, blocked, StorageRule::PerAxis), all, "{slot:?}");
    }
    // Runs with pad slots of their own.
    let nested = carried([44, 8], Slot::In(0), whole, StorageRule::PerAxis).unwrap();
    assert_eq!(nested, [whole, blocked, "N C[24:32,20:32,8:16]/16 H W C%16"]);
}

#[test]
fn blocks_of_the_whole_that_end_elsewhere_are_no_blocks_of_runs() {
    for layout in ["NCHW16c", "N C[20:32,24:32]/16 H W C%16", "N C[44:64]/16 H W C%16"] {
        assert_eq!(carried([24, 20], Slot::Out(0), layout, StorageRule::PerAxis), None, "{layout}");
    }
    // Declared per digit, no kernel reads such a value.
    assert_eq!(carried([24, 20], Slot::In(0), "NCHW16c", StorageRule::PerDigit), None);
    assert!(carried([32, 16], Slot::In(0), "NCHW16c", StorageRule::PerDigit).is_some());
}

#[test]
fn parts_of_what_is_split_are_whole_blocks() {
    let g = graph(
        "per-axis",
        "  %x: f32[1,44,6,6]@NCHW = input
  %n: i64[2] = const [24,20]
  %y: f32[1,24,6,6]@NCHW, %z: f32[1,20,6,6]@NCHW = Split(%x, %n) {axis=1}
  output %y
  output %z\n",
    );
    let (node, bound) = the_only(&g, "Split");
    let shape = |slot: Slot| match slot {
        Slot::In(i) => g.value(node.inputs[i]?).ty.shape(),
        Slot::Out(i) => g.value(node.outputs[i]?).ty.shape(),
    };
    let whole: Layout = "N C[24:32,20:32]/16 H W C%16".parse().unwrap();
    assert_eq!(bound.carry(Slot::In(0), &whole, StorageRule::PerAxis, shape), None);
}

/// What is wrong with the layouts of the axes of a graph.
fn problems(lines: &str) -> Vec<String> {
    let violations = verify(&graph("per-axis", lines)).err().unwrap_or_default();
    violations.iter().filter(|v| v.invariant == Invariant::Axes).map(ToString::to_string).collect()
}

/// Images of 24 and 20 channels in blocks, side by side in this layout, and the sum of that with one of 44 in this one.
fn summed(joined: &str, other: &str) -> String {
    format!(
        "  %a: f32[1,24,6,6]@NCHW = input
  %b: f32[1,20,6,6]@NCHW = input
  %c: f32[1,44,6,6]@NCHW = input
  %a.1: f32[1,24,6,6]@NCHW16c = relayout(%a)
  %b.1: f32[1,20,6,6]@NCHW16c = relayout(%b)
  %c.1: f32[1,44,6,6]@{other} = relayout(%c)
  %j: f32[1,44,6,6]@{joined} = Concat(%a.1, %b.1) {{axis=1}}
  %s: f32[1,44,6,6]@{joined} = Add(%j, %c.1)
  %y: f32[1,44,6,6]@NCHW = relayout(%s)
  output %y\n"
    )
}

#[test]
fn pad_slots_are_where_the_operands_have_theirs() {
    let [right, wrong] = ["N C[24:32,20:32]/16 H W C%16", "N C[20:32,24:32]/16 H W C%16"];
    assert_eq!(problems(&summed(right, right)), [""; 0]);
    let elsewhere = problems(&summed(right, wrong));
    assert!(elsewhere.iter().any(|p| p.contains("Add")), "{elsewhere:?}");
    let joined = problems(&summed(wrong, wrong));
    assert!(joined.iter().any(|p| p.contains("Concat")), "{joined:?}");
}
