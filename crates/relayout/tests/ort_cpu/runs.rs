//! Target `ort-cpu`, concatenations of channels that fill no blocks: the result stays in blocks, with pad slots between the channels of
//! one operand and those of the next. Each model is run before and after in ONNX Runtime, as the file stands and with every
//! optimization on load.

use crate::fold_nets::blocks::{blocks, levels};
use crate::fold_nets::cpu::target;
use crate::fold_nets::{F32, Net, runtime};
use prost::Message;
use relayout::{Model, Numerics, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::Block;
use relayout_verify::{Inputs, ModelSource, Options, Tolerance, verify};

const AROUND: (&str, &[i64]) = ("pads", &[1, 1, 1, 1]);
const CHANNELS: (&str, &[i64]) = ("axis", &[1]);

/// The model for a block, its results held against those of the input.
fn optimized(block: Block, net: &Net, numerics: Numerics) -> ModelProto {
    let bytes = net.bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let target = target(block).unguarded();
    let options = relayout::Options::default().numerics(numerics).strict();
    let made = optimize(&model, &target, &options).expect("it is optimized").to_bytes().expect("it is written");
    let batch = net.reads_symbol("N").then(|| ("N".to_owned(), 2));
    for level in levels(block, &made) {
        let mut options = Options::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: batch.clone().into_iter().collect() };
        let comparison = verify(runtime(), ModelSource::Bytes(&bytes), ModelSource::Bytes(&made), &inputs, &options);
        let comparison = comparison.expect("both run");
        assert!(comparison.holds(&Tolerance::new(2e-5, 2e-4)), "{level:?}: {comparison}");
    }
    ModelProto::decode(made.as_slice()).expect("a model")
}

fn nodes(model: &ModelProto) -> Vec<&NodeProto> {
    model.graph.iter().flat_map(|g| &g.node).collect()
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|n| n.op_type.as_deref() == Some(op)).count()
}

/// Nodes that move an image into or out of blocks.
fn reorders(model: &ModelProto) -> [usize; 2] {
    ["ReorderInput", "ReorderOutput"].map(|op| count(model, op))
}

/// Ops of ONNX's own domain, but for what says shapes.
fn standard(model: &ModelProto) -> Vec<&str> {
    let own = nodes(model).into_iter().filter(|n| n.domain.as_deref().unwrap_or_default().is_empty());
    own.filter_map(|n| n.op_type.as_deref()).filter(|op| !["Reshape", "Constant"].contains(op)).collect()
}

/// Channels that convolutions of all channels read, by their weights.
fn read(model: &ModelProto) -> Vec<i64> {
    let weights =
        nodes(model).into_iter().filter(|n| n.op_type.as_deref() == Some("Conv")).filter_map(|n| n.input.get(1));
    let tensors = || model.graph.iter().flat_map(|g| &g.initializer);
    weights.filter_map(|w| tensors().find(|t| t.name.as_ref() == Some(w))?.dims.get(1).copied()).collect()
}

/// Channels of an operand as they are declared in blocks.
fn whole(block: Block, channels: i64) -> i64 {
    let block = block.channels() as i64;
    (channels + block - 1) / block * block
}

/// Two operands of these channels from an image of 32, side by side as `both`; then what the closure adds, which makes `z`, and a
/// convolution of it.
fn joined([a, b]: [i64; 2], between: impl FnOnce(Net) -> Net) -> Net {
    joined_of("1", [a, b], |net| {
        between(net)
            .floats("v", F32, &[32, a + b, 3, 3], true)
            .node_with("Conv", &["z", "v"], "y", &[AROUND])
            .output("y", F32)
    })
}

/// The same for a batch, without the convolution behind it.
fn joined_of(batch: &str, [a, b]: [i64; 2], rest: impl FnOnce(Net) -> Net) -> Net {
    let net = Net::new(17)
        .symbolic_input("x", F32, &[batch, "32", "40", "40"])
        .floats("w", F32, &[a, 32, 3, 3], true)
        .floats("wb", F32, &[a], true)
        .floats("u", F32, &[b, 32, 3, 3], true)
        .node_with("Conv", &["x", "w", "wb"], "a", &[AROUND])
        .node("Relu", &["a"], "p")
        .node_with("Conv", &["x", "u"], "b", &[AROUND])
        .node("Relu", &["b"], "q")
        .node_with("Concat", &["p", "q"], "both", &[CHANNELS]);
    rest(net)
}

/// Asserts that a model is all in blocks but for its ends, and what standard ops it has.
fn stays(block: Block, told: &str, net: &Net, ops: &[&str]) {
    for numerics in [Numerics::Reassociate, Numerics::Exact] {
        let model = optimized(block, net, numerics);
        assert_eq!((standard(&model), reorders(&model)), (ops.to_vec(), [1, 1]), "{told}, {numerics:?}");
    }
}

#[test]
fn channels_that_fill_no_blocks_are_concatenated_in_blocks() {
    for block in blocks() {
        for [a, b] in [[28, 12], [44, 28], [30, 15], [12, 60]] {
            let net = joined([a, b], |net| net.node("Relu", &["both"], "z"));
            let model = optimized(block, &net, Numerics::Reassociate);
            // 28 and 12 channels are 40, which are whole blocks of 8: side by side with pad slots they are 48, and the convolution behind
            // them has a fifth more to do. With blocks of 16 it is 48 anyway.
            if (block, [a, b]) == (Block::B8, [28, 12]) {
                assert_ne!(reorders(&model), [1, 1], "{a} and {b}");
                continue;
            }
            assert_eq!(reorders(&model), [1, 1], "{a} and {b}");
            assert!(read(&model).contains(&(whole(block, a) + whole(block, b))), "{a} and {b}: {:?}", read(&model));
        }
    }
}

#[test]
fn channels_that_fill_blocks_are_declared_as_they_are() {
    for block in blocks() {
        for [a, b] in [[32, 48], [32, 20]] {
            let net = joined([a, b], |net| net.node("Relu", &["both"], "z"));
            let model = optimized(block, &net, Numerics::Reassociate);
            assert!(read(&model).contains(&(a + whole(block, b))), "{a} and {b}: {:?}", read(&model));
        }
    }
}

#[test]
fn what_leaves_channels_where_they_are_runs_between_them() {
    for block in blocks() {
        let pool = |op: &'static str| {
            move |net: Net| net.node_with(op, &["both"], "z", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])])
        };
        stays(block, "MaxPool", &joined([30, 15], pool("MaxPool")), &["Concat"]);
        stays(block, "AveragePool", &joined([30, 15], pool("AveragePool")), &["Concat"]);
        let depthwise = |net: Net| {
            net.floats("d", F32, &[45, 1, 3, 3], true).floats("db", F32, &[45], true).node_with(
                "Conv",
                &["both", "d", "db"],
                "z",
                &[("group", &[45]), AROUND],
            )
        };
        stays(block, "depthwise", &joined([30, 15], depthwise), &["Concat"]);
        let resized = |net: Net| {
            net.values("scales", F32, &[4], &[1.0, 1.0, 2.0, 2.0])
                .node("Resize", &["both", "", "scales"], "z")
                .text_attribute("mode", "nearest")
                .text_attribute("coordinate_transformation_mode", "asymmetric")
                .text_attribute("nearest_mode", "floor")
        };
        stays(block, "Resize", &joined([30, 15], resized), &["Concat"]);
        let padded = |net: Net| {
            net.ints("pads", &[0, 0, 1, 2, 0, 0, 0, 1]).values("fill", F32, &[], &[0.5]).node(
                "Pad",
                &["both", "pads", "fill"],
                "z",
            )
        };
        stays(block, "Pad", &joined([30, 15], padded), &["Concat", "Pad"]);
    }
}

#[test]
fn scales_per_channel_are_where_their_channels_are() {
    for block in blocks() {
        let normalized = |net: Net| {
            let net = ["scale", "shift", "mean"].into_iter().fold(net, |net, name| net.floats(name, F32, &[45], true));
            net.floats("var", F32, &[45], false)
                .node("BatchNormalization", &["both", "scale", "shift", "mean", "var"], "n")
                .node("Relu", &["n"], "z")
        };
        stays(block, "BatchNormalization", &joined([30, 15], normalized), &["Concat"]);
        let scaled = |net: Net| {
            net.floats("s", F32, &[45, 1, 1], true)
                .floats("t", F32, &[1, 45, 1, 1], true)
                .node("Mul", &["both", "s"], "n")
                .node("Relu", &["n"], "m")
                .node("Sub", &["t", "m"], "o")
                .node("Relu", &["o"], "z")
        };
        stays(block, "Mul and Sub", &joined([15, 30], scaled), &["Concat"]);
    }
}

#[test]
fn computed_scales_have_the_same_pad_slots() {
    for block in blocks() {
        let excited = |net: Net| {
            net.floats("down", F32, &[16, 45, 1, 1], true)
                .floats("up", F32, &[45, 16, 1, 1], true)
                .floats("ub", F32, &[45], true)
                .node("GlobalAveragePool", &["both"], "mean")
                .node("Conv", &["mean", "down"], "d")
                .node("Relu", &["d"], "e")
                .node("Conv", &["e", "up", "ub"], "f")
                .node("HardSigmoid", &["f"], "g")
                .node("Mul", &["both", "g"], "z")
        };
        stays(block, "one image", &joined([30, 15], excited), &["Concat"]);
        let batch = joined_of("2", [30, 15], |net| {
            excited(net).floats("v", F32, &[32, 45, 1, 1], true).node("Conv", &["z", "v"], "y").output("y", F32)
        });
        stays(block, "two images", &batch, &["Concat"]);
    }
}

#[test]
fn a_sum_of_two_reads_the_same_pad_slots() {
    for block in blocks() {
        // A shortcut whose convolution leaves its channels where the sum has them, and a second sum of what was concatenated later.
        let net = joined([30, 15], |net| {
            net.floats("s", F32, &[45, 32, 1, 1], true)
                .floats("sb", F32, &[45], true)
                .floats("t", F32, &[30, 45, 3, 3], true)
                .floats("r", F32, &[15, 30, 3, 3], true)
                .node("Conv", &["x", "s", "sb"], "short")
                .node("Add", &["both", "short"], "m")
                .node_with("Conv", &["m", "t"], "c", &[AROUND])
                .node_with("Conv", &["c", "r"], "d", &[AROUND])
                .node_with("Concat", &["c", "d"], "later", &[CHANNELS])
                .node("Add", &["m", "later"], "z")
        });
        let model = optimized(block, &net, Numerics::Reassociate);
        assert_eq!((count(&model, "Concat"), reorders(&model)), (2, [1, 1]));
    }
}

#[test]
fn what_was_concatenated_is_concatenated_again() {
    for block in blocks() {
        for second in [["both", "c"], ["c", "both"], ["both", "both"]] {
            let channels = second.iter().map(|&v| if v == "c" { 12 } else { 45 }).sum();
            let net = joined_of("1", [30, 15], |net| {
                net.floats("t", F32, &[12, 45, 3, 3], true)
                    .floats("v", F32, &[32, channels, 3, 3], true)
                    .node_with("Conv", &["both", "t"], "c", &[AROUND])
                    .node_with("Concat", &second, "z", &[CHANNELS])
                    .node_with("Conv", &["z", "v"], "y", &[AROUND])
                    .output("y", F32)
            });
            stays(block, &format!("{second:?}"), &net, &["Concat", "Concat"]);
        }
    }
}

#[test]
fn what_is_split_by_numbers_of_channels_has_them_side_by_side() {
    for block in blocks() {
        // A Split says how many channels each part has, and of those there are more in blocks.
        let net = joined_of("1", [30, 15], |net| {
            net.floats("t", F32, &[16, 30, 3, 3], true)
                .floats("v", F32, &[16, 15, 3, 3], true)
                .ints("parts", &[30, 15])
                .node("Relu", &["both"], "z")
                .node_with("Split", &["z", "parts"], "c", &[CHANNELS])
                .also("d")
                .node_with("Conv", &["c", "t"], "e", &[AROUND])
                .node_with("Conv", &["d", "v"], "f", &[AROUND])
                .node("Add", &["e", "f"], "y")
                .output("y", F32)
        });
        let model = optimized(block, &net, Numerics::Reassociate);
        assert_eq!(count(&model, "Split"), 1);
        assert_ne!(reorders(&model), [1, 1]);
    }
}

#[test]
fn channels_are_picked_from_their_slots_at_the_end() {
    for block in blocks() {
        // As numbers per channel, which a product reads.
        for batch in ["1", "N"] {
            let net = joined_of(batch, [30, 15], |net| {
                net.floats("m", F32, &[45, 5], true)
                    .node("Relu", &["both"], "z")
                    .node("GlobalAveragePool", &["z"], "mean")
                    .node("Flatten", &["mean"], "flat")
                    .node("MatMul", &["flat", "m"], "y")
                    .symbolic_output("y", F32, &[batch, "5"])
            });
            let model = optimized(block, &net, Numerics::Reassociate);
            assert_eq!((count(&model, "Gather"), reorders(&model)), (1, [1, 0]), "{batch}");
        }
        let net = joined_of("N", [30, 15], |net| {
            net.floats("m", F32, &[45, 5], true)
                .node_with("ReduceMean", &["both"], "flat", &[("axes", &[2, 3]), ("keepdims", &[0])])
                .node("MatMul", &["flat", "m"], "y")
                .symbolic_output("y", F32, &["N", "5"])
        });
        let model = optimized(block, &net, Numerics::Reassociate);
        assert_eq!((count(&model, "Gather"), reorders(&model)), (1, [1, 0]));
    }
}

#[test]
fn an_image_that_is_an_output_as_well_has_its_channels_side_by_side() {
    for block in blocks() {
        let net = joined([30, 15], |net| net.node("Relu", &["both"], "z").output("z", F32));
        let model = optimized(block, &net, Numerics::Reassociate);
        assert_eq!((standard(&model), reorders(&model)), (vec!["Concat", "Relu", "Gather"], [1, 2]));
        // Seen through a Transpose, which then moves.
        let model = optimized(block, &of_channels_last().output("z", F32), Numerics::Reassociate);
        assert_eq!((count(&model, "Transpose"), count(&model, "Gather"), reorders(&model)), (0, 1, [1, 2]));
    }
}

/// The same as frameworks with channels last write it.
fn of_channels_last() -> Net {
    Net::new(17)
        .input("x", F32, &[1, 40, 40, 32])
        .floats("w", F32, &[30, 32, 3, 3], true)
        .floats("u", F32, &[15, 32, 3, 3], true)
        .floats("v", F32, &[32, 45, 3, 3], true)
        .floats("bias", F32, &[45], true)
        .node_with("Transpose", &["x"], "first", &[("perm", &[0, 3, 1, 2])])
        .node_with("Conv", &["first", "w"], "a", &[AROUND])
        .node_with("Conv", &["first", "u"], "b", &[AROUND])
        .node_with("Transpose", &["a"], "p", &[("perm", &[0, 2, 3, 1])])
        .node_with("Transpose", &["b"], "q", &[("perm", &[0, 2, 3, 1])])
        .node_with("Concat", &["p", "q"], "both", &[("axis", &[3])])
        .node("Add", &["both", "bias"], "m")
        .node("Relu", &["m"], "n")
        .node_with("Transpose", &["n"], "z", &[("perm", &[0, 3, 1, 2])])
        .node_with("Conv", &["z", "v"], "y", &[AROUND])
        .output("y", F32)
}

#[test]
fn images_of_channels_last_are_concatenated_in_blocks() {
    for block in blocks() {
        let model = optimized(block, &of_channels_last(), Numerics::Reassociate);
        assert_eq!((count(&model, "Transpose"), reorders(&model)), (0, [1, 1]));
    }
}

#[test]
fn what_is_infinite_of_zeros_is_not_padded() {
    for block in blocks() {
        let curve = |net: Net| net.node("Sigmoid", &["both"], "z");
        assert_eq!(reorders(&optimized(block, &joined([30, 15], curve), Numerics::Reassociate)), [1, 1]);
        // One over a pad slot might be infinite, and no zero in the weights that read it makes that zero.
        let inverse = |net: Net| net.node("Sigmoid", &["both"], "n").node("Reciprocal", &["n"], "z");
        assert_ne!(reorders(&optimized(block, &joined([30, 15], inverse), Numerics::Reassociate)), [1, 1]);
    }
}

#[test]
fn what_reads_all_channels_has_them_side_by_side() {
    for block in blocks() {
        let softmax = |net: Net| net.node_with("Softmax", &["both"], "z", &[CHANNELS]);
        let model = optimized(block, &joined([30, 15], softmax), Numerics::Reassociate);
        assert_ne!(reorders(&model), [1, 1]);
        assert_eq!(count(&model, "Softmax"), 1);
    }
}
