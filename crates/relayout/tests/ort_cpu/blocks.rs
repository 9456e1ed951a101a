//! Target `ort-cpu`, what keeps images in blocks beside convolutions: groups that are no whole blocks, reductions over rows and
//! columns, Pad and Slice. Each model is run before and after in ONNX Runtime, as the file stands and with every optimization on load.

use crate::fold_nets::blocks::{blocks, levels};
use crate::fold_nets::cpu::target;
use crate::fold_nets::{F32, Net, runtime};
use prost::Message;
use relayout::{Model, Numerics, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::Block;
use relayout_verify::{Inputs, ModelSource, Options, Tolerance, verify};
use std::collections::{BTreeMap, BTreeSet};

/// The model for a block, without the guard, its results held against those of the input.
fn optimized(block: Block, bytes: &[u8], numerics: Numerics) -> ModelProto {
    optimized_at(block, bytes, numerics, &BTreeMap::new())
}

/// The same, run at these sizes of symbolic dims.
fn optimized_at(block: Block, bytes: &[u8], numerics: Numerics, dims: &BTreeMap<String, i64>) -> ModelProto {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let target = target(block).unguarded();
    let options = relayout::Options::default().numerics(numerics).strict();
    let made = optimize(&model, &target, &options).expect("it is optimized").to_bytes().expect("it is written");
    for level in levels(block, &made) {
        let mut options = Options::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: dims.clone() };
        let comparison = verify(runtime(), ModelSource::Bytes(bytes), ModelSource::Bytes(&made), &inputs, &options);
        let comparison = comparison.expect("both run");
        assert!(comparison.holds(&Tolerance::new(2e-5, 2e-4)), "{level:?}: {comparison}");
    }
    ModelProto::decode(made.as_slice()).expect("a model")
}

fn nodes(model: &ModelProto) -> Vec<&NodeProto> {
    model.graph.iter().flat_map(|g| &g.node).collect()
}

/// Ops of ONNX's own domain, but for what says shapes.
fn standard(model: &ModelProto) -> Vec<&str> {
    let own = nodes(model).into_iter().filter(|n| n.domain.as_deref().unwrap_or_default().is_empty());
    own.filter_map(|n| n.op_type.as_deref()).filter(|op| !["Reshape", "Constant"].contains(op)).collect()
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|n| n.op_type.as_deref() == Some(op)).count()
}

const AROUND: (&str, &[i64]) = ("pads", &[1, 1, 1, 1]);

/// A convolution before and one behind a grouped one.
fn grouped(inputs: i64, groups: i64, outputs: i64) -> Net {
    Net::new(17)
        .input("x", F32, &[1, 32, 28, 28])
        .floats("w0", F32, &[inputs, 32, 1, 1], true)
        .floats("w1", F32, &[outputs, inputs / groups, 3, 3], true)
        .floats("b1", F32, &[outputs], true)
        .floats("w2", F32, &[64, outputs, 1, 1], true)
        .node("Conv", &["x", "w0"], "a")
        .node_with("Conv", &["a", "w1", "b1"], "b", &[("group", &[groups]), AROUND])
        .node("Relu", &["b"], "c")
        .node("Conv", &["c", "w2"], "y")
        .output("y", F32)
}

#[test]
fn groups_narrower_than_a_block_run_as_wider_ones() {
    for block in blocks() {
        for (inputs, groups, outputs) in [(64, 16, 64), (128, 32, 128), (64, 32, 64), (48, 12, 96)] {
            let model = optimized(block, &grouped(inputs, groups, outputs).bytes(), Numerics::Reassociate);
            assert_eq!(standard(&model), [""; 0], "{inputs} channels in {groups} groups to {outputs}");
            assert_eq!((count(&model, "ReorderInput"), count(&model, "ReorderOutput")), (1, 1));
        }
    }
}

#[test]
fn weights_may_be_turned_before_they_are_read() {
    for block in blocks() {
        // More than is computed at once.
        let net = grouped(512, 128, 512);
        let mut model = ModelProto::decode(net.bytes().as_slice()).expect("a model");
        let graph = model.graph.as_mut().expect("a graph");
        let turned = Net::new(17).floats("hwio", F32, &[3, 3, 4, 512], true).node_with(
            "Transpose",
            &["hwio"],
            "w1",
            &[("perm", &[3, 2, 0, 1])],
        );
        let turned = ModelProto::decode(turned.bytes().as_slice()).expect("a model").graph.expect("a graph");
        graph.initializer.retain(|t| t.name() != "w1");
        graph.initializer.extend(turned.initializer.into_iter().filter(|t| t.name() == "hwio"));
        graph.node.splice(0..0, turned.node);
        assert_eq!(standard(&optimized(block, &model.encode_to_vec(), Numerics::Reassociate)), [""; 0]);
    }
}

#[test]
fn groups_stay_where_every_bit_has_to() {
    for block in blocks() {
        let model = optimized(block, &grouped(64, 16, 64).bytes(), Numerics::Exact);
        let own = nodes(&model).into_iter().filter(|n| n.attribute.iter().any(|a| a.name.as_deref() == Some("group")));
        let group = |n: &NodeProto| {
            n.attribute.iter().find(|a| a.name.as_deref() == Some("group")).map(relayout_onnx::proto::AttributeProto::i)
        };
        assert_eq!(own.filter_map(group).collect::<Vec<_>>(), [16]);
    }
}

/// A convolution whose images are reduced over rows and columns, and a product behind it.
fn reduced(op: &str, opset: i64, channels: i64, keeps: i64) -> Net {
    let axes: (&str, &[i64]) = ("axes", &[2, -1]);
    let net = Net::new(opset)
        .symbolic_input("x", F32, &["N", "32", "28", "28"])
        .floats("w", F32, &[channels, 32, 3, 3], true)
        .floats("m", F32, &[channels, 5], true)
        .node_with("Conv", &["x", "w"], "a", &[AROUND])
        .node("Relu", &["a"], "b");
    let net = if opset < 18 {
        net.node_with(op, &["b"], "c", &[axes, ("keepdims", &[keeps])])
    } else {
        net.node_with(op, &["b", "axes"], "c", &[("keepdims", &[keeps])]).ints("axes", axes.1)
    };
    net.ints("flat", &[0, channels])
        .node("Reshape", &["c", "flat"], "d")
        .node("MatMul", &["d", "m"], "y")
        .symbolic_output("y", F32, &["N", "5"])
}

#[test]
fn reductions_over_rows_and_columns_read_blocks() {
    for block in blocks() {
        let dims = BTreeMap::from([("N".to_owned(), 2)]);
        for (op, pool) in [("ReduceMean", "GlobalAveragePool"), ("ReduceMax", "GlobalMaxPool")] {
            for (opset, channels, keeps) in [(13, 64, 0), (18, 64, 0), (13, 64, 1), (18, 52, 0), (13, 52, 1)] {
                let model =
                    optimized_at(block, &reduced(op, opset, channels, keeps).bytes(), Numerics::Reassociate, &dims);
                let told = format!("{op}, opset {opset}, {channels} channels, keepdims {keeps}");
                assert_eq!((count(&model, pool), count(&model, op)), (1, 0), "{told}");
                assert_eq!(standard(&model), ["MatMul"], "{told}");
            }
        }
    }
}

/// An op of an image between two convolutions.
fn between(opset: i64, channels: i64, op: impl FnOnce(Net) -> Net) -> Net {
    widening(opset, [channels; 2], op)
}

/// The same of an op that leaves another number of channels than it reads.
fn widening(opset: i64, [channels, left]: [i64; 2], op: impl FnOnce(Net) -> Net) -> Net {
    let net = Net::new(opset)
        .input("x", F32, &[1, 32, 40, 40])
        .floats("w", F32, &[channels, 32, 3, 3], true)
        .floats("v", F32, &[32, left, 3, 3], true)
        .node_with("Conv", &["x", "w"], "a", &[AROUND]);
    op(net)
        .node_with("MaxPool", &["b"], "c", &[("kernel_shape", &[2, 2])])
        .node("Conv", &["c", "v"], "y")
        .output("y", F32)
}

fn pad(opset: i64, channels: i64, value: f32, mode: &'static str, pads: &[i64]) -> Net {
    between(opset, channels, |net| match opset {
        ..11 => {
            let net = net.node_with("Pad", &["a"], "b", &[("pads", pads)]).text_attribute("mode", mode);
            net.float_attribute("value", value)
        }
        11..18 => {
            let net = net.ints("p", pads).values("fill", F32, &[], &[value]);
            let operands: &[&str] = if mode == "constant" { &["a", "p", "fill"] } else { &["a", "p"] };
            net.node("Pad", operands, "b").text_attribute("mode", mode)
        }
        _ => {
            let net = net.ints("p", &[pads[3], pads[2], pads[7], pads[6]]).ints("axes", &[-1, 2]);
            let net = net.values("fill", F32, &[], &[value]).node("Pad", &["a", "p", "fill", "axes"], "b");
            net.text_attribute("mode", mode)
        }
    })
}

/// Nodes that move an image into or out of blocks.
fn reorders(model: &ModelProto) -> [usize; 2] {
    ["ReorderInput", "ReorderOutput"].map(|op| count(model, op))
}

#[test]
fn a_pad_of_rows_and_columns_runs_on_blocks() {
    for block in blocks() {
        let pads = &[0, 0, 1, 2, 0, 0, 3, 0];
        for opset in [10, 13, 18] {
            for (mode, value) in [("constant", 0.5), ("constant", 0.0), ("reflect", 0.0), ("edge", 0.0)] {
                for channels in [64, 52] {
                    let model =
                        optimized(block, &pad(opset, channels, value, mode, pads).bytes(), Numerics::Reassociate);
                    let told = format!("opset {opset}, {mode} {value}, {channels} channels");
                    assert_eq!((standard(&model), reorders(&model)), (vec!["Pad"], [1, 1]), "{told}");
                }
            }
        }
    }
}

#[test]
fn a_pad_may_cut_as_well() {
    for block in blocks() {
        let model =
            optimized(block, &pad(13, 64, 0.5, "constant", &[0, 0, -1, 2, 0, 0, 1, -3]).bytes(), Numerics::Reassociate);
        assert_eq!((standard(&model), reorders(&model)), (vec!["Pad"], [1, 1]));
    }
}

#[test]
fn infinity_beside_an_image_stays_out_of_slots_that_are_no_channels() {
    for block in blocks() {
        let of = |channels| {
            let net = pad(13, channels, f32::NEG_INFINITY, "constant", &[0, 0, 1, 1, 0, 0, 1, 1]);
            reorders(&optimized(block, &net.bytes(), Numerics::Reassociate))
        };
        assert_eq!(of(64), [1, 1]);
        assert_ne!(of(52), [1, 1]);
    }
}

#[test]
fn channels_are_added_where_they_are_no_blocks() {
    for block in blocks() {
        let net = widening(13, [64, 68], |net| net.ints("p", &[0, 4, 1, 1, 0, 0, 1, 1]).node("Pad", &["a", "p"], "b"));
        let model = optimized(block, &net.bytes(), Numerics::Reassociate);
        assert_ne!(reorders(&model), [1, 1]);
    }
}

/// A decoder's step as exporters write it for any size: the coarse image, twice as large, is padded by what it lacks.
fn padded_to_meet(channels: i64) -> Net {
    let net = Net::new(17)
        .symbolic_input("x", F32, &["1", "32", "H", "W"])
        .floats("w", F32, &[channels, 32, 3, 3], true)
        .floats("u", F32, &[channels, channels, 1, 1], true)
        .floats("v", F32, &[32, 2 * channels, 3, 3], true)
        .values("scales", F32, &[4], &[1.0, 1.0, 2.0, 2.0])
        .ints("rows", &[2])
        .ints("columns", &[3])
        .ints("two", &[2])
        .ints("none", &[0, 0])
        .node_with("Conv", &["x", "w"], "fine", &[AROUND])
        .node_with("MaxPool", &["fine"], "pooled", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])])
        .node("Resize", &["pooled", "", "scales"], "large")
        .text_attribute("mode", "nearest")
        .node("Conv", &["large", "u"], "coarse")
        .node("Shape", &["fine"], "wanted")
        .node("Shape", &["coarse"], "there");
    let net = ["rows", "columns"].into_iter().fold(net, |net, axis| {
        let name = |what: &str| format!("{what}_{axis}");
        net.node("Gather", &["wanted", axis], &name("wanted"))
            .node("Gather", &["there", axis], &name("there"))
            .node("Sub", &[&name("wanted"), &name("there")], &name("lack"))
            .node("Div", &[&name("lack"), "two"], &name("before"))
            .node("Sub", &[&name("lack"), &name("before")], &name("behind"))
    });
    net.node_with(
        "Concat",
        &["none", "before_rows", "before_columns", "none", "behind_rows", "behind_columns"],
        "pads",
        &[("axis", &[0])],
    )
    .node("Pad", &["coarse", "pads"], "met")
    .node_with("Concat", &["fine", "met"], "both", &[("axis", &[1])])
    .node("Conv", &["both", "v"], "y")
    .output("y", F32)
}

#[test]
fn a_pad_by_what_is_computed_runs_on_blocks_and_extents_are_read_off_them() {
    for block in blocks() {
        for [height, width] in [[32, 28], [29, 31]] {
            let sizes = BTreeMap::from([("H".to_owned(), height), ("W".to_owned(), width)]);
            let model = optimized_at(block, &padded_to_meet(64).bytes(), Numerics::Reassociate, &sizes);
            assert_eq!(reorders(&model), [1, 1]);
            // Slots that are no channels are extents as well.
            let model = optimized_at(block, &padded_to_meet(52).bytes(), Numerics::Reassociate, &sizes);
            assert_ne!(reorders(&model), [1, 1]);
        }
    }
}

fn slice(channels: i64, lists: [&[i64]; 4]) -> Net {
    between(13, channels, |net| {
        let names = ["starts", "ends", "axes", "steps"];
        let net = names.into_iter().zip(lists).fold(net, |net, (name, list)| net.ints(name, list));
        net.node("Slice", &["a", "starts", "ends", "axes", "steps"], "b")
    })
}

#[test]
fn a_slice_of_rows_and_columns_runs_on_blocks() {
    for block in blocks() {
        for channels in [64, 52] {
            for lists in
                [[&[1, -30][..], &[i64::MAX, -2], &[-2, 3], &[1, 1]], [&[0, -1], &[99, i64::MIN], &[2, 3], &[2, -1]]]
            {
                let model = optimized(block, &slice(channels, lists).bytes(), Numerics::Reassociate);
                assert_eq!((standard(&model), reorders(&model)), (vec!["Slice"], [1, 1]), "{channels}: {lists:?}");
            }
        }
    }
}

#[test]
fn a_slice_of_everything_and_a_pad_of_nothing_are_no_ops() {
    for block in blocks() {
        let model = optimized(block, &slice(52, [&[0], &[52], &[1], &[1]]).bytes(), Numerics::Reassociate);
        assert_eq!((standard(&model), reorders(&model)), (vec![], [1, 1]));
        let model = optimized(block, &pad(13, 52, 1.0, "constant", &[0; 8]).bytes(), Numerics::Reassociate);
        assert_eq!((standard(&model), reorders(&model)), (vec![], [1, 1]));
        // As many, but the other way round.
        let model = optimized(block, &slice(52, [&[-1], &[i64::MIN], &[1], &[-1]]).bytes(), Numerics::Reassociate);
        assert_eq!(standard(&model), ["Slice"]);
    }
}

#[test]
fn a_new_node_does_not_take_the_name_of_another() {
    for block in blocks() {
        let mut model = ModelProto::decode(grouped(64, 1, 64).bytes().as_slice()).expect("a model");
        // Nodes are named after what they make, as the moves behind them will be.
        for node in model.graph.iter_mut().flat_map(|graph| &mut graph.node) {
            node.name = node.output.first().cloned();
        }
        let made = optimized(block, &model.encode_to_vec(), Numerics::Reassociate);
        assert_eq!(count(&made, "ReorderOutput"), 1);
        let names: Vec<&str> = nodes(&made).iter().filter_map(|node| node.name.as_deref()).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        let conv =
            nodes(&made).into_iter().find(|node| node.name.as_deref() == Some("y")).expect("a node of this name");
        assert_eq!(conv.op_type.as_deref(), Some("Conv"));
    }
}

/// Convolutions to 20 channels, beside which 12 slots fill a block, with this activation at the end.
fn activated(op: &str, summed: bool) -> Net {
    let net = Net::new(17)
        .input("x", F32, &[1, 32, 40, 40])
        .floats("w0", F32, &[64, 32, 3, 3], true)
        .floats("w1", F32, &[20, 64, 1, 1], true)
        .floats("w2", F32, &[20, 64, 1, 1], true)
        .node_with("Conv", &["x", "w0"], "a", &[AROUND])
        .node("Conv", &["a", "w1"], "b");
    let net = if summed { net.node("Conv", &["a", "w2"], "c").node("Add", &["b", "c"], "s") } else { net };
    net.node(op, &[if summed { "s" } else { "b" }], "y").output("y", F32)
}

#[test]
fn an_activation_is_part_of_its_convolution_before_a_move_out_of_blocks() {
    for block in blocks() {
        for (op, summed) in [("Relu", false), ("Relu", true), ("Sigmoid", false), ("Tanh", true), ("HardSigmoid", true)]
        {
            let model = optimized(block, &activated(op, summed).bytes(), Numerics::Reassociate);
            assert_eq!(standard(&model), [""; 0], "{op}, {summed}");
            assert_eq!((count(&model, "ReorderInput"), count(&model, "ReorderOutput")), (1, 1), "{op}, {summed}");
        }
    }
}
