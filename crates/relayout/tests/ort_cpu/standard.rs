//! Target `onnx` for ONNX Runtime: what the runtime makes of a file when it loads it is held against what the target says of it, and what is
//! written computes what the model computes.

use crate::common;
use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::target;
use crate::fold_nets::{BOOL, F32, Net};
use prost::Message as _;
use relayout::audit::audit;
use relayout::target::Target as _;
use relayout::targets::{Block, OnnxRuntime};
use relayout::{Model, Options, optimize};
use relayout_onnx::proto::{AttributeProto, ModelProto, NodeProto};
use relayout_verify::{Inputs, Level, ModelSource, Tolerance, save_as_loaded, verify};
use std::collections::BTreeMap;
use std::path::Path;

const PADS: &[(&str, &[i64])] = &[("pads", &[1, 1, 1, 1])];

fn on(block: Block) -> OnnxRuntime {
    OnnxRuntime::on(target(block)).expect("built-in data")
}

fn open(bytes: &[u8]) -> Model {
    Model::from_bytes(bytes.to_vec().into(), None).expect("it opens")
}

/// The result of a network, which has standard ops only, is proved, computes the same in the runtime, and is its own result.
fn made(block: Block, net: &Net) -> ModelProto {
    let (bytes, target) = (net.bytes(), on(block));
    let options = || Options::default().strict();
    let by = |bytes: &[u8]| optimize(&open(bytes), &target, &options()).expect("it is optimized");
    let made = by(&bytes).to_bytes().expect("it is written");
    assert!(by(&made).to_bytes().expect("it is written") == made, "a second run gives other bytes");
    assert_eq!(crate::fold_nets::cpu::refusal_by(&target, &bytes), None);
    let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&made));
    let inputs = Inputs::Random { seed: 5, dims: BTreeMap::default() };
    let compared = verify(common::runtime(), a, b, &inputs, &relayout_verify::Options::default()).expect("both run");
    assert!(compared.holds(&Tolerance::new(2e-5, 2e-4)), "{compared}");
    let made = ModelProto::decode(made.as_slice()).expect("a model");
    assert!(nodes(&made).all(|n| n.domain().is_empty()), "standard ops only");
    made
}

fn nodes(model: &ModelProto) -> impl Iterator<Item = &NodeProto> {
    model.graph.iter().flat_map(|g| &g.node)
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).filter(|n| n.op_type() == op).count()
}

/// Convolutions of `x` to `a` and `b`, what stands between, and a convolution of `m` to `y`.
fn around(channels: i64, between: impl FnOnce(Net) -> Net) -> Net {
    let filters = |net: Net, name: &str| net.floats(name, F32, &[channels, channels, 3, 3], true);
    let net = Net::new(20).input("x", F32, &[1, channels, 12, 12]);
    let net = ["w1", "w2", "w3"].into_iter().fold(net, filters);
    let net = net.node_with("Conv", &["x", "w1"], "a", PADS).node_with("Conv", &["x", "w2"], "b", PADS);
    let net = between(net).node_with("Conv", &["m", "w3"], "y", PADS);
    net.output("y", F32).output("b", F32)
}

type Between = fn(Net) -> Net;

/// What may stand between convolutions: ops that the runtime leaves in blocks, and some that it takes out.
const BETWEEN: &[(&str, Between)] = &[
    ("Relu", |net| pooled(net).node("Relu", &["p"], "m")),
    ("Sigmoid", |net| pooled(net).node("Sigmoid", &["p"], "m")),
    ("Tanh", |net| pooled(net).node("Tanh", &["p"], "m")),
    ("Gelu", |net| pooled(net).node("Gelu", &["p"], "m")),
    ("HardSigmoid", |net| pooled(net).node("HardSigmoid", &["p"], "m")),
    ("LeakyRelu", |net| pooled(net).node("LeakyRelu", &["p"], "m")),
    ("LeakyRelu of a convolution", |net| net.node("LeakyRelu", &["a"], "m")),
    ("Elu", |net| net.node("Elu", &["a"], "m")),
    ("Softplus", |net| net.node("Softplus", &["a"], "m")),
    ("Abs", |net| net.node("Abs", &["a"], "m")),
    ("Add", |net| pooled(net).node("Relu", &["b"], "r").node("Add", &["p", "r"], "m")),
    ("Mul", |net| pooled(net).node("Relu", &["b"], "r").node("Mul", &["p", "r"], "m")),
    ("Sub", |net| pooled(net).node("Relu", &["b"], "r").node("Sub", &["p", "r"], "m")),
    ("Max", |net| pooled(net).node("Relu", &["b"], "r").node("Max", &["p", "r"], "m")),
    ("AveragePool", |net| net.node_with("AveragePool", &["a"], "m", &[("kernel_shape", &[2, 2])])),
    ("Add of a number for each channel", |net| {
        net.node("GlobalAveragePool", &["a"], "g").node("Relu", &["a"], "r").node("Add", &["r", "g"], "m")
    }),
    ("Transposes", |net| {
        let net = net.node_with("Transpose", &["a"], "t", &[("perm", &[0, 2, 3, 1])]).node("Softplus", &["t"], "s");
        net.node_with("Transpose", &["s"], "m", &[("perm", &[0, 3, 1, 2])])
    }),
];

/// A pool, so that no convolution takes in what follows.
fn pooled(net: Net) -> Net {
    net.node_with("MaxPool", &["a"], "p", &[("kernel_shape", &[3, 3]), ("pads", &[1, 1, 1, 1])])
}

/// What the runtime saves of a model when it has loaded it.
fn saved(bytes: &[u8], name: &str) -> ModelProto {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("standard.{name}.onnx"));
    save_as_loaded(common::runtime(), ModelSource::Bytes(bytes), Level::All, &place).expect("it loads");
    ModelProto::decode(std::fs::read(place).expect("it is there").as_slice()).expect("a model")
}

#[test]
fn the_runtime_puts_reorders_where_the_target_says() {
    let block = Block::of_host();
    let mut otherwise = Vec::new();
    for channels in [32, 24] {
        for (name, between) in BETWEEN {
            let net = around(channels, between);
            let bytes = net.bytes();
            let loaded = saved(&bytes, "loaded");
            // Of a Transpose beside blocks the runtime makes a reorder, and so does the target.
            let told = audit(&open(&bytes), &on(block), &Options::default()).expect("it is audited").moves.nodes;
            let there =
                ["ReorderInput", "ReorderOutput", "Transpose"].map(|op| count(&loaded, op)).iter().sum::<usize>();
            if told != there {
                otherwise.push(format!("{name}, {channels} channels: told {told}, there are {there}"));
            }
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[test]
fn what_the_runtime_runs_as_well_stays_byte_for_byte() {
    for block in blocks() {
        for (name, between) in BETWEEN.iter().filter(|(name, _)| *name != "Transposes") {
            let bytes = around(32, between).bytes();
            let made = optimize(&open(&bytes), &on(block), &Options::default().strict()).expect("it is optimized");
            assert!(made.to_bytes().expect("it is written") == bytes, "{name}");
        }
    }
}

#[test]
fn groups_that_fill_no_blocks_are_joined_and_then_blocked() {
    for block in blocks() {
        let net = around(64, |net| {
            let net = net.floats("g", F32, &[64, 4, 3, 3], true);
            net.node_with("Conv", &["a", "g"], "m", PADS).int_attribute("group", 16)
        });
        let made = made(block, &net);
        let group = |n: &NodeProto| n.attribute.iter().find(|a| a.name() == "group").map(AttributeProto::i);
        let groups: Vec<_> = nodes(&made).filter_map(group).collect();
        assert_eq!(groups, [64 / block.channels() as i64]);
        if block == Block::of_host() {
            let plain =
                nodes(&saved(&made.encode_to_vec(), "groups")).filter(|n| n.domain() != "com.microsoft.nchwc").count();
            assert_eq!(plain, 0, "all of it runs in blocks");
        }
    }
}

#[test]
fn scales_means_and_shifts_of_images_stay_in_blocks() {
    for block in blocks() {
        let net = around(64, |net| {
            let net = net.floats("s", F32, &[1, 64, 1, 1], true).ints("axes", &[2, 3]);
            let net = pooled(net).node("Add", &["p", "s"], "q").node("Relu", &["q"], "m");
            let net = net.node_with("MaxPool", &["m"], "n", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])]);
            let net = net.node("ReduceMean", &["n", "axes"], "z").output("z", F32);
            net.node("ReduceMean", &["n", "axes"], "f").int_attribute("keepdims", 0).output("f", F32)
        });
        let made = made(block, &net);
        assert_eq!(["Add", "ReduceMean", "GlobalAveragePool"].map(|op| count(&made, op)), [0, 0, 2]);
    }
}

#[test]
fn convolutions_of_bodies_get_their_filters() {
    for block in blocks() {
        let then = Net::new(17).node_with("Conv", &["a", "w1"], "t", PADS).output("t", F32);
        let other = Net::new(17).node("Sigmoid", &["a"], "v").output("v", F32);
        let net = Net::new(17).input("x", F32, &[1, 16, 24, 24]).input("which", BOOL, &[]);
        let net = net.floats("w0", F32, &[32, 16, 3, 3], true).floats("w1", F32, &[32, 32, 3, 3], true);
        let net = net.node_with("Conv", &["x", "w0"], "a", PADS).branches("which", "d", &then, &other);
        let made = made(block, &net.output("d", F32));
        let bodies = nodes(&made).flat_map(|n| &n.attribute).filter_map(|a| a.g.as_deref());
        assert_eq!(bodies.map(|body| body.initializer.len()).collect::<Vec<_>>().iter().sum::<usize>(), 1);
    }
}

#[test]
fn the_target_is_that_of_standard_files() {
    let target = on(Block::B16);
    assert!(target.name() == "onnx" && target.capabilities().standard && target.metadata().is_empty());
    assert!(target.cost_source().contains("ONNX Runtime") && target.cost_source().contains("blocks of 16"));
}
