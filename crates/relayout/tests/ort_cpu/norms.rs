//! Target `ort-cpu`: normalizations over groups of channels between blocked convolutions, run in ONNX Runtime before and after, with
//! its own rewrites off and on.

use crate::fold_nets::blocks::{blocks, levels};
use crate::fold_nets::cpu::target;
use crate::fold_nets::{F32, Net, runtime};
use prost::Message;
use relayout::{Model, Numerics, Options, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::Block;
use relayout_verify::{Inputs, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// Rounding of float32 sums.
const ROUNDING: f64 = 2e-5;

/// The bytes for target `ort-cpu` for a block.
fn made(block: Block, bytes: &[u8], numerics: Numerics) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let target = target(block);
    let result = optimize(&model, &target, &Options::default().numerics(numerics).strict()).expect("it is optimized");
    result.to_bytes().expect("it is written")
}

/// The model for target `ort-cpu`, its results held against those of the input.
fn optimized_within(block: Block, net: &Net, rms: f64) -> ModelProto {
    let bytes = net.bytes();
    let symbolic = net.reads_symbol("batch");
    let dims: BTreeMap<String, i64> = symbolic.then(|| ("batch".to_owned(), 3)).into_iter().collect();
    let result = made(block, &bytes, Numerics::Reassociate);
    for level in levels(block, &result) {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 11, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        assert!(comparison.holds(&Tolerance::new(rms, 20.0 * rms)), "{level:?}: {comparison}");
    }
    ModelProto::decode(result.as_slice()).expect("a model")
}

fn optimized(block: Block, net: &Net) -> ModelProto {
    optimized_within(block, net, ROUNDING)
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |graph| &graph.node)
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|node| node.op_type.as_deref() == Some(op)).count()
}

/// Written with sums per channel.
fn is_by_channels(model: &ModelProto) -> bool {
    count(model, "GlobalAveragePool") == 1 && count(model, "InstanceNormalization") == 0
}

/// Written as a normalization of rows of blocked bytes.
fn is_by_rows(model: &ModelProto) -> bool {
    count(model, "GlobalAveragePool") == 0 && count(model, "InstanceNormalization") == 1
}

/// Nothing is moved but where the graph begins and ends.
fn stays_in_blocks(model: &ModelProto) -> bool {
    count(model, "ReorderOutput") == 1
}

/// A convolution of `[batch, channels, side, side]` to `a`, whose biases are this large.
fn before(opset: i64, dims: [&str; 4], bias: f32) -> Net {
    let channels: i64 = dims[1].parse().expect("a number of channels");
    let biases: Vec<f32> = (0..channels).map(|c| bias + (c % 5) as f32).collect();
    Net::new(opset)
        .symbolic_input("x", F32, &dims)
        .floats("w0", F32, &[channels, channels, 3, 3], true)
        .values("b0", F32, &[channels], &biases)
        .node_with("Conv", &["x", "w0", "b0"], "a", &[("pads", &[1, 1, 1, 1])])
}

/// What exporters write of a normalization of `a` over groups: unit scales, then one scale and shift per channel, to `s`.
fn exported(net: Net, groups: i64, channels: i64, image: &[i64]) -> Net {
    let unit = vec![1.0; usize::try_from(groups).expect("a few groups")];
    let zero = vec![0.0; unit.len()];
    net.ints("apart", &[0, groups, -1])
        .ints("image", image)
        .values("unit", F32, &[groups], &unit)
        .values("zero", F32, &[groups], &zero)
        .floats("gamma", F32, &[channels, 1, 1], true)
        .floats("beta", F32, &[channels, 1, 1], true)
        .node("Reshape", &["a", "apart"], "rows")
        .node("InstanceNormalization", &["rows", "unit", "zero"], "even")
        .float_attribute("epsilon", 1e-4)
        .node("Reshape", &["even", "image"], "back")
        .node("Mul", &["back", "gamma"], "scaled")
        .node("Add", &["scaled", "beta"], "s")
}

/// A convolution of `from` to the result.
fn after(net: Net, from: &str, channels: i64, dims: &[&str; 4]) -> Net {
    net.floats("w1", F32, &[channels, channels, 3, 3], true)
        .node_with("Conv", &[from, "w1"], "y", &[("pads", &[1, 1, 1, 1])])
        .symbolic_output("y", F32, dims)
}

/// Convolution, the exported pattern, `Relu`, convolution.
fn network(groups: i64, channels: i64, batch: &str, side: i64, bias: f32) -> Net {
    let (c, s) = (channels.to_string(), side.to_string());
    let dims = [batch, &c, &s, &s];
    let image = [batch.parse().unwrap_or(-1), channels, side, side];
    let net = exported(before(17, dims, bias), groups, channels, &image).node("Relu", &["s"], "r");
    after(net, "r", channels, &dims)
}

#[test]
fn groups_that_straddle_blocks_are_sums_per_channel() {
    for block in blocks() {
        for (groups, channels) in [(8, 48), (32, 64), (8, 96), (8, 80), (8, 160), (4, 160), (6, 48)] {
            let model = optimized(block, &network(groups, channels, "1", 40, 0.0));
            // Groups of 8 and of 40 channels are whole blocks of 8, but not of 16: there the cheaper one of both forms is written.
            let whole = (channels / groups).unsigned_abs().is_multiple_of(block.channels());
            assert_eq!(whole, block == Block::B8 && [(4, 160), (6, 48)].contains(&(groups, channels)));
            assert!(is_by_channels(&model) || (whole && is_by_rows(&model)), "{groups} of {channels}");
            assert!(stays_in_blocks(&model), "{groups} of {channels}");
            // The scales that follow, and what is computed of the result, are in its last convolution.
            assert_eq!((count(&model, "Mul"), count(&model, "Relu")), (0, 0), "{groups} of {channels}");
        }
    }
}

#[test]
fn groups_of_whole_blocks_are_rows() {
    for block in blocks() {
        for (groups, channels, batch) in [(1, 64, "1"), (2, 64, "1"), (1, 64, "2"), (2, 64, "batch")] {
            let model = optimized(block, &network(groups, channels, batch, 24, 0.0));
            assert!(is_by_rows(&model) && stays_in_blocks(&model), "{groups} of {channels}, batch {batch}");
        }
    }
}

/// A normalization of `a` by means over these axes, to `r`.
fn by_means(axes: &[i64]) -> Net {
    let dims = ["1", "48", "40", "40"];
    let net = before(17, dims, 0.0)
        .node_with("ReduceMean", &["a"], "mean", &[("axes", axes)])
        .node("Sub", &["a", "mean"], "d")
        .node("Mul", &["d", "d"], "squares")
        .node_with("ReduceMean", &["squares"], "variance", &[("axes", axes)])
        .values("epsilon", F32, &[], &[1e-5])
        .node("Add", &["variance", "epsilon"], "above")
        .node("Sqrt", &["above"], "deviation")
        .node("Div", &["d", "deviation"], "even")
        .floats("gamma", F32, &[48, 1, 1], true)
        .floats("beta", F32, &[48, 1, 1], true)
        .node("Mul", &["even", "gamma"], "scaled")
        .node("Add", &["scaled", "beta"], "s")
        .node("Relu", &["s"], "r");
    after(net, "r", 48, &dims)
}

#[test]
fn means_of_pixels_are_a_normalization_of_each_channel() {
    for block in blocks() {
        for axes in [[2, 3], [-2, -1]] {
            let model = optimized(block, &by_means(&axes));
            assert!(is_by_channels(&model) && stays_in_blocks(&model), "{axes:?}");
            assert_eq!((count(&model, "Mul"), count(&model, "Relu")), (0, 0), "{axes:?}");
        }
        assert!(!stays_in_blocks(&optimized(block, &by_means(&[3]))), "means of rows are others");
    }
}

#[test]
fn the_form_that_was_written_is_told_with_the_equations_that_lead_there() {
    for block in blocks() {
        let told = |net: &Net| {
            let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
            let target = target(block);
            relayout::why::pieces(&model, &target, &Options::default()).expect("it is looked at")
        };
        let found = |net: &Net, op: &str| {
            let piece = told(net).into_iter().find(|piece| piece.op == op).unwrap_or_else(|| panic!("no {op}"));
            let by: Vec<String> = piece.why.steps.iter().map(|step| step.equation.clone()).collect();
            (piece.result, piece.written, by.last().cloned().unwrap_or_default())
        };
        let means = found(&by_means(&[2, 3]), "InstanceNormalization");
        let form = Some("blocked_norm_of_channels".to_owned());
        assert_eq!(means, ("even".to_owned(), form, "instance_normalization".to_owned()));
        let rows = found(&network(1, 64, "1", 24, 0.0), "GroupNormalization");
        let form = Some("blocked_norm_of_rows".to_owned());
        assert_eq!(rows, ("back".to_owned(), form, "group_normalization".to_owned()));
        // No form of the target stands in for it.
        let gated = before(17, ["1", "16", "8", "8"], 0.0).node("Sigmoid", &["a"], "g").node("Mul", &["g", "a"], "y");
        let gated = found(&gated.symbolic_output("y", F32, &["1", "16", "8", "8"]), "Swish");
        assert_eq!(gated, ("y".to_owned(), None, "swish".to_owned()));
    }
}

#[test]
fn images_of_a_batch_have_means_of_their_own() {
    for block in blocks() {
        let model = optimized(block, &network(8, 48, "2", 40, 0.0));
        assert!(is_by_channels(&model) && stays_in_blocks(&model));
    }
}

#[test]
fn a_computed_number_per_channel_is_added_in_the_bias_of_the_convolution_before() {
    for block in blocks() {
        let dims = ["1", "48", "40", "40"];
        let net = before(17, dims, 0.0)
            .input("t", F32, &[1, 24])
            .floats("g", F32, &[24, 48], true)
            .ints("axes", &[2, 3])
            .node("MatMul", &["t", "g"], "vector")
            .node("Unsqueeze", &["vector", "axes"], "told");
        let shifted = |net: Net| net.node("Add", &["a", "told"], "h");
        let model = optimized(block, &after(shifted(net.clone()), "h", 48, &dims));
        // Nothing of the size of the image is added.
        assert!(stays_in_blocks(&model) && count(&model, "Conv") == 2, "{:?}", count(&model, "Conv"));
        // Where somebody else reads what is shifted, it is a convolution of its own.
        let net = shifted(net).node("Add", &["h", "a"], "twice");
        let model = optimized(block, &after(net, "twice", 48, &dims));
        assert!(stays_in_blocks(&model) && count(&model, "Conv") == 3, "{:?}", count(&model, "Conv"));
    }
}

#[test]
fn a_large_mean_costs_no_more_digits_than_in_the_input() {
    for block in blocks() {
        // The square of the mean is more than a million times the variance: sums of plain squares would leave nothing of it.
        for groups in [8, 6] {
            let model = optimized_within(block, &network(groups, 48, "1", 40, 40000.0), 2e-3);
            // Groups of 6 channels straddle blocks of both kinds, groups of 8 are blocks of 8.
            assert_eq!(is_by_rows(&model), block == Block::B8 && groups == 6, "{groups}");
            assert_eq!(is_by_channels(&model), !is_by_rows(&model), "{groups}");
        }
        assert!(is_by_rows(&optimized_within(block, &network(1, 64, "1", 24, 40000.0), 2e-3)));
    }
}

#[test]
fn each_channel_can_be_a_group() {
    for block in blocks() {
        let dims = ["1", "128", "56", "56"];
        let net = before(17, dims, 0.0).floats("gamma", F32, &[128], true).floats("beta", F32, &[128], true).node(
            "InstanceNormalization",
            &["a", "gamma", "beta"],
            "s",
        );
        let model = optimized(block, &after(net, "s", 128, &dims));
        assert!(is_by_channels(&model) && stays_in_blocks(&model) && count(&model, "ReduceMean") == 0);
    }
}

#[test]
fn group_normalization_has_scales_per_group_or_per_channel() {
    for block in blocks() {
        for (opset, entries) in [(18, 8), (21, 48)] {
            let dims = ["1", "48", "40", "40"];
            let net = before(opset, dims, 0.0)
                .floats("gamma", F32, &[entries], true)
                .floats("beta", F32, &[entries], true)
                .node_with("GroupNormalization", &["a", "gamma", "beta"], "s", &[("num_groups", &[8])]);
            let model = optimized(block, &after(net, "s", 48, &dims));
            assert!(is_by_channels(&model) && stays_in_blocks(&model), "version {opset}");
        }
    }
}

#[test]
fn what_scales_and_shifts_a_group_normalization_goes_with_it() {
    for block in blocks() {
        for op in ["Mul", "Add", "Sub", "Div"] {
            let net = Net::new(21)
                .input("x", F32, &[1, 3, 24, 24])
                .floats("w", F32, &[32, 3, 1, 1], true)
                .floats("gamma", F32, &[32], true)
                .floats("beta", F32, &[32], true)
                .floats("k", F32, &[32, 1, 1], false)
                .floats("w2", F32, &[8, 32, 1, 1], true)
                .node("Conv", &["x", "w"], "a")
                .node_with("GroupNormalization", &["a", "gamma", "beta"], "s", &[("num_groups", &[4])])
                .node(op, &["s", "k"], "t")
                .node("Conv", &["t", "w2"], "y")
                .output("y", F32);
            let model = optimized(block, &net);
            assert!(count(&model, "Conv") > 1, "{op}");
        }
    }
}

#[test]
fn rows_have_scales_per_channel_after_them() {
    for block in blocks() {
        let dims = ["1", "64", "24", "24"];
        let net = before(21, dims, 0.0).floats("gamma", F32, &[64], true).floats("beta", F32, &[64], true).node_with(
            "GroupNormalization",
            &["a", "gamma", "beta"],
            "s",
            &[("num_groups", &[2])],
        );
        let model = optimized(block, &after(net, "s", 64, &dims));
        assert!(is_by_rows(&model) && stays_in_blocks(&model));
    }
}

/// The model still has its normalization as it was read.
fn is_kept(block: Block, net: &Net, numerics: Numerics) -> bool {
    let input = ModelProto::decode(net.bytes().as_slice()).expect("a model");
    let model = ModelProto::decode(made(block, &net.bytes(), numerics).as_slice()).expect("a model");
    let own = |op: &&NodeProto| op.op_type.as_deref() == Some("InstanceNormalization");
    let (before, now) = (nodes(&input).iter().find(own), nodes(&model).iter().find(own));
    before.is_some() && before == now
}

#[test]
fn between_blocked_convolutions_what_is_cheaper_as_it_was_is_written_as_it_was_read() {
    for block in blocks() {
        let net = network(8, 48, "1", 8, 0.0);
        let input = ModelProto::decode(net.bytes().as_slice()).expect("a model");
        let model = optimized(block, &net);
        assert_eq!(count(&model, "ReorderOutput"), 2);
        let leaving = |model: &ModelProto, value: &str| {
            let leaves = |node: &&NodeProto| node.output.iter().any(|v| v == value);
            nodes(model).iter().find(leaves).cloned()
        };
        for value in ["rows", "even", "back"] {
            assert!(leaving(&model, value).is_some() && leaving(&model, value) == leaving(&input, value), "{value}");
        }
    }
}

#[test]
fn exact_numerics_keep_the_original() {
    for block in blocks() {
        let net = network(8, 48, "1", 40, 0.0);
        assert!(is_kept(block, &net, Numerics::Exact) && !is_kept(block, &net, Numerics::Reassociate));
    }
}

#[test]
fn what_is_no_normalization_over_groups_of_channels_stays() {
    for block in blocks() {
        let dims = ["1", "48", "40", "40"];
        let image = [1, 48, 40, 40];
        let shared = network(8, 48, "1", 40, 0.0).output("even", F32);
        // Rows of another number of groups than the channels can be divided into.
        let uneven = network(5, 48, "1", 40, 0.0);
        // An image of other extents than before.
        let turned = exported(before(17, ["1", "48", "40", "20"], 0.0), 8, 48, &[1, 48, 20, 40]);
        let turned = after(turned, "s", 48, &["1", "48", "20", "40"]);
        // Channels that leave pad slots in the last block.
        let padded = network(5, 20, "1", 40, 0.0);
        // Images of a batch that share their means.
        let mixed = before(17, ["2", "48", "40", "40"], 0.0)
            .ints("apart", &[1, 8, -1])
            .ints("image", &[2, 48, 40, 40])
            .floats("unit", F32, &[8], true)
            .node("Reshape", &["a", "apart"], "rows")
            .node("InstanceNormalization", &["rows", "unit", "unit"], "even")
            .node("Reshape", &["even", "image"], "s");
        let mixed = after(mixed, "s", 48, &["2", "48", "40", "40"]);
        // Scales that the caller gives.
        let given = exported(before(17, dims, 0.0).input("given", F32, &[8]), 8, 48, &image)
            .node("InstanceNormalization", &["rows", "given", "zero"], "other")
            .node("Reshape", &["other", "image"], "t")
            .node("Add", &["s", "t"], "u");
        let given = after(given, "u", 48, &dims);
        for (why, net) in [
            ("shared", shared),
            ("uneven", uneven),
            ("turned", turned),
            ("padded", padded),
            ("mixed", mixed),
            ("given", given),
        ] {
            let model = optimized(block, &net);
            assert!(!is_by_channels(&model) && count(&model, "InstanceNormalization") > 0, "{why}");
            assert!(is_kept(block, &net, Numerics::Reassociate), "{why}");
        }
    }
}

#[test]
fn a_model_that_gains_nothing_comes_out_byte_for_byte() {
    for block in blocks() {
        let alone = exported(Net::new(17).input("a", F32, &[1, 64, 40, 40]), 8, 64, &[1, 64, 40, 40]).output("s", F32);
        assert!(made(block, &alone.bytes(), Numerics::Reassociate) == alone.bytes());
    }
}
