//! Any node, however wrong, is inferred and bound without a panic, and what is bound runs in ONNX's own order.

use crate::op_common::one_node;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use relayout_ir::form::Form;
use relayout_ir::op::infer::infer_graph;
use relayout_ir::op::{OpDef, bind, entries};

const DIMS: &[&str] = &["0", "1", "1", "2", "3", "4", "8", "-1", "9223372036854775807", "N", "N", "M", "2*N", "N-1"];
const INTS: &[&str] = &["0", "1", "2", "3", "-1", "-2", "4", "9223372036854775807", "-9223372036854775808"];
const NAMES: &[&str] = &[
    "axis",
    "keepdims",
    "group",
    "transA",
    "transB",
    "block_size",
    "blocksize",
    "batch_dims",
    "num_outputs",
    "allowzero",
    "ceil_mode",
    "hidden_size",
    "to",
    "dtype",
    "start",
    "end",
    "k",
    "channels_last",
    "noop_with_empty_axes",
    "fmod",
    "training_mode",
    "layout",
];
const LISTS: &[&str] = &[
    "axes",
    "perm",
    "pads",
    "strides",
    "dilations",
    "kernel_shape",
    "output_shape",
    "output_padding",
    "starts",
    "ends",
    "split",
    "shape",
    "repeats",
];
const TEXTS: &[&str] = &[
    "auto_pad=SAME_UPPER",
    "auto_pad=VALID",
    "auto_pad=X",
    "mode=CRD",
    "equation=ij,jk->ik",
    "equation=ij->ji",
    "direction=bidirectional",
    "scales=[0.5,2.0]",
    "scales=[-1.0]",
    "keep_aspect_ratio_policy=not_larger",
];

fn list(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(select(of), 0..5).prop_map(|v| v.join(","))
}

fn operand() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (select(&["f32", "f32", "u8", "i64", "bool"][..]), list(DIMS)).prop_map(|(t, d)| format!("{t}[{d}]")),
        1 => Just("f32[*]".to_owned()),
        1 => Just("-".to_owned()),
        3 => list(INTS).prop_map(|v| format!("=[{v}]")),
        1 => select(INTS).prop_map(|v| format!("={v}")),
        1 => select(&["~[N,4]", "~[N,-1,M]", "~N", "~[N-3]", "f=[1.0,2.0]", "f=[-1.0,0.0,0.5]", "=2x2[1,0,-1,2]"][..])
            .prop_map(str::to_owned),
    ]
}

fn attr() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (select(NAMES), select(INTS)).prop_map(|(n, v)| format!("{n}={v}")),
        3 => (select(LISTS), list(INTS)).prop_map(|(n, v)| format!("{n}=[{v}]")),
        1 => select(TEXTS).prop_map(str::to_owned),
    ]
}

fn ops() -> Vec<&'static OpDef> {
    entries().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_node_panics_and_what_is_bound_runs_in_onnx_order(
        op in any::<Index>(),
        newest in any::<bool>(),
        operands in prop::collection::vec(operand(), 0..6),
        attrs in prop::collection::vec(attr(), 0..5),
        results in 0usize..4,
    ) {
        let ops = ops();
        let def = ops[op.index(ops.len())];
        let opset = if newest { def.opsets.1 } else { def.opsets.0 };
        let name = if def.domain.is_empty() { def.name.to_owned() } else { format!("{}::{}", def.domain, def.name) };
        let (mut graph, id) = one_node(&name, opset, &attrs.join(" "), &operands.join(" "), results);
        let _ = infer_graph(&mut graph, &mut 0);
        if let Form::Axes(bound) = bind(&graph, id) {
            prop_assert!(bound.allows(&bound.identity()), "{} does not run in its own order", bound);
            for slot in bound.slots() {
                let axes = bound.axes(slot).map_or(0, <[_]>::len);
                let in_order: Vec<usize> = (0..axes).collect();
                prop_assert_eq!(bound.restrict(&bound.identity(), slot), Some(in_order), "{}", bound);
            }
        }
    }
}
