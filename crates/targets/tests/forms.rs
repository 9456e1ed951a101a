//! Forms of several nodes of target `ort-cpu`: what each offers can be written, and what is written is sound.

use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Builder, Graph, NodeId};
use relayout_ir::patch::Patch;
use relayout_ir::storage::StorageRule;
use relayout_ir::text::parse;
use relayout_ir::verify::{Contract, verify_with};
use relayout_target::hints::Hints;
use relayout_target::{NodeQuery, Offer, Piece, Target};
use relayout_targets::{Block, OrtCpu};
use std::collections::BTreeMap;

/// A graph of one op, `%y`; the extents are those of its weights, if it has some.
fn graph(lines: &str, weights: &[i64]) -> (Graph, NodeId) {
    let mut graph = parse(&format!("graph g opset=16\n{lines}  output %y\n")).unwrap();
    graph.storage = StorageRule::PerAxis;
    let (n, _) = graph.value(graph.outputs()[0]).producer();
    if !weights.is_empty() {
        let w = Builder::at(&mut graph, n).filled("w", DType::F32, weights, 1.0).unwrap();
        let mut patch = Patch::new();
        patch.connect(n, 1, w);
        patch.apply(&mut graph).unwrap();
    }
    (graph, n)
}

/// What the form of this name offers.
fn offers(target: &OrtCpu, form: &str, graph: &Graph, node: NodeId) -> Vec<Offer> {
    let sizes = Hints::new(&BTreeMap::new(), graph);
    let is_constant = |v| graph.constant(v).is_some();
    let query = NodeQuery::new(graph, node, &sizes, &is_constant);
    target.offers(&query).into_iter().filter(|offer| offer.form == form).collect()
}

/// The ops that take the node's place where an offer is taken, in order, with the layout that the first operand is in.
fn written(target: &OrtCpu, graph: &Graph, n: NodeId, offer: &Offer) -> String {
    let mut graph = graph.clone();
    let node = graph.node(n);
    let (x, y) = (node.operand(0).unwrap(), node.result(0).unwrap());
    let mut contract = Contract::new();
    for (v, layout) in [(x, offer.layouts.ins.first()), (y, offer.layouts.outs.first())] {
        if let Some(layout) = layout.cloned().flatten() {
            contract.insert(graph.value(v).name.clone(), layout.clone());
            *graph.value_mut(v).layout = layout;
        }
    }
    graph.set_form(n, Form::Kernel(Box::new(offer.layouts.clone())));
    let form = target.forms().iter().find(|form| form.name() == offer.form).unwrap();
    let piece = Piece { graph: &graph, node: n, layouts: &offer.layouts, opset: 16 };
    let fragment = form.write(&piece, offer).unwrap();
    assert!(fragment.apply(&mut graph).unwrap().nodes.contains(&n));
    assert_eq!(verify_with(&graph, &contract).err(), None, "{graph}");
    let ops = graph.order().unwrap().into_iter().filter_map(|n| match &graph.node(n).op {
        relayout_ir::graph::Op::Onnx(op) => Some(op.name.clone()),
        _ => None,
    });
    format!("{}: {}", graph.value(x).layout, ops.collect::<Vec<_>>().join(" "))
}

fn all_written(form: &str, (graph, n): (Graph, NodeId)) -> Vec<String> {
    let target = OrtCpu::new(Block::B16).unwrap();
    let offers = offers(&target, form, &graph, n);
    assert!(offers.iter().all(|offer| offer.cost.is_finite()));
    offers.iter().map(|offer| written(&target, &graph, n, offer)).collect()
}

#[test]
fn groups_are_made_wider_where_they_are_no_whole_blocks_and_their_weights_are_known() {
    let conv = |c: i64, m: i64, group: i64| {
        format!(
            "  %x: f32[1,{c},9,9]@NCHW = input\n  %y: f32[1,{m},7,7]@NCHW = Conv(%x, %x) {{group={group}, kernel_shape=[3,3]}}\n"
        )
    };
    let all = |c, m, group| all_written("wide_conv", graph(&conv(c, m, group), &[m, c / group, 3, 3]));
    assert_eq!(all(128, 128, 32), ["NCHW16c: Conv"]);
    assert_eq!(all(8, 32, 2), ["NCHW: Conv"], "all channels fill no block");
    for whole in [(64, 64, 4), (32, 32, 32), (32, 32, 1)] {
        assert_eq!(all(whole.0, whole.1, whole.2), Vec::<String>::new(), "{whole:?}");
    }
    let (graph, n) = graph(&conv(128, 128, 32), &[]);
    assert!(offers(&OrtCpu::new(Block::B16).unwrap(), "wide_conv", &graph, n).is_empty());
}

#[test]
fn volumes_are_convolved_frame_by_frame_or_block_by_block() {
    let conv = |[kd, kh]: [i64; 2], [d, left]: [i64; 2], pad: i64| {
        let kernel = format!("kernel_shape=[{kd},{kh},{kh}], pads=[{pad},{0},{0},{pad},{0},{0}]", kh / 2);
        format!("  %x: f32[1,32,{d},8,8]@NCDHW = input\n  %y: f32[1,48,{left},8,8]@NCDHW = Conv(%x, %x) {{{kernel}}}\n")
    };
    let all = |kernel: [i64; 2], frames, pad| {
        let [kd, kh] = kernel;
        all_written("volume_conv", graph(&conv(kernel, frames, pad), &[48, 32, kd, kh, kh]))
    };
    let (by_frame, by_block) = ("N D C/16 H W C%16: Conv", "NCDHW16c: Conv");
    assert_eq!(all([1, 3], [4, 4], 0), [by_frame]);
    assert_eq!(all([3, 3], [4, 4], 1), [by_frame]);
    assert_eq!(all([3, 1], [4, 4], 1), [by_block, by_frame]);
    assert_eq!(all([3, 3], [2, 2], 1), [by_frame], "frames are channels of one image");
}

#[test]
fn maxima_of_volumes_are_those_of_images_and_then_of_frames() {
    let pool = |kernel: &str, left: i64| {
        let attrs = format!("{{kernel_shape={kernel}, strides=[1,2,2]}}");
        graph(
            &format!("  %x: f32[1,32,4,8,8]@NCDHW = input\n  %y: f32[1,32,{left},4,4]@NCDHW = MaxPool(%x) {attrs}\n"),
            &[],
        )
    };
    assert_eq!(all_written("volume_max", pool("[1,2,2]", 4)), ["N D C/16 H W C%16: Reshape MaxPool Reshape"]);
    let frames = "N D C/16 H W C%16: Reshape MaxPool Reshape Gather Gather Max";
    assert_eq!(all_written("volume_max", pool("[2,2,2]", 3)), [frames]);
}
