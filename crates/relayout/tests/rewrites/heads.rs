//! Attention and `RotaryEmbedding` of ONNX whose heads stand before positions: the moves that put them there go where heads may be packed
//! into the last axis. Each result has to be the same bit for bit.

use crate::fold_nets::{F32, I64, Net, runtime};
use prost::Message;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::proto::ModelProto;
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

const HEADS_FIRST: &[i64] = &[0, 2, 1, 3];
const WIDTH: i64 = 8;
const QUERIES: i64 = 4;
const KEYS: i64 = 2;

/// Op types of what a target makes of a net, which is run on both levels beside the net.
fn made(name: &str, net: &Net) -> Vec<String> {
    let bytes = net.bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let target = target(name).expect("a built-in target");
    let result = optimize(&model, target.as_ref(), &Options::default().strict()).expect("it is optimized");
    let result = result.to_bytes().expect("it is written");
    let dims: BTreeMap<String, i64> =
        ["B", "S"].into_iter().filter(|name| net.reads_symbol(name)).map(|name| (name.to_owned(), 3)).collect();
    for level in [Level::Disabled, Level::All] {
        let mut options = Run::default();
        (options.level_a, options.level_b) = (level, level);
        let inputs = Inputs::Random { seed: 5, dims: dims.clone() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&result));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        assert!(comparison.holds(&Tolerance::new(0.0, 0.0)), "{name}, {level:?}: {comparison}");
    }
    let model = ModelProto::decode(result.as_slice()).expect("a model");
    let nodes = model.graph.map_or_else(Vec::new, |graph| graph.node);
    nodes.into_iter().filter_map(|node| node.op_type).collect()
}

/// Rows of `name` as heads of their own, before positions: `NAME.heads`.
fn split(net: Net, name: &str, heads: i64) -> Net {
    let (shape, apart) = (format!("{name}.shape"), format!("{name}.apart"));
    net.ints(&shape, &[0, 0, heads, WIDTH]).node("Reshape", &[name, &shape], &apart).node_with(
        "Transpose",
        &[&apart],
        &format!("{name}.heads"),
        &[("perm", HEADS_FIRST)],
    )
}

/// `NAME.turned`: its heads turned by their places.
fn rotated(net: Net, name: &str) -> Net {
    net.node("RotaryEmbedding", &[&format!("{name}.heads"), "cos", "sin", "places"], &format!("{name}.turned"))
}

/// The heads of `a` side by side again: `y`.
fn joined(net: Net) -> Net {
    net.node_with("Transpose", &["a"], "b", &[("perm", HEADS_FIRST)])
        .ints("whole", &[0, 0, QUERIES * WIDTH])
        .node("Reshape", &["b", "whole"], "y")
        .output("y", F32)
}

fn rows(opset: i64) -> Net {
    let net = Net::new(opset).input("q", F32, &[2, 5, QUERIES * WIDTH]).input("k", F32, &[2, 5, KEYS * WIDTH]).input(
        "v",
        F32,
        &[2, 5, KEYS * WIDTH],
    );
    [("q", QUERIES), ("k", KEYS), ("v", KEYS)].into_iter().fold(net, |net, (name, heads)| split(net, name, heads))
}

const TARGETS: [&str; 4] = ["onnx", "ort-cpu", "ort-nhwc", "nhwc"];

#[test]
fn attention_of_split_rows_is_attention_of_rows() {
    for opset in [23, 26] {
        let net = joined(rows(opset).node("Attention", &["q.heads", "k.heads", "v.heads"], "a"));
        for target in TARGETS {
            assert_eq!(made(target, &net), ["Attention"], "{target}, opset {opset}");
        }
    }
}

#[test]
fn turned_heads_with_a_cache_and_a_mask_stay_packed() {
    let net = rows(23)
        .floats("cos", F32, &[16, WIDTH / 2], true)
        .floats("sin", F32, &[16, WIDTH / 2], true)
        .values("one", F32, &[1], &[1.0])
        .ints("places", &[3, 4, 5, 6, 7, 0, 1, 2, 3, 4]);
    let net = net.ints("of_tokens", &[2, 5]).node("Reshape", &["places", "of_tokens"], "tokens");
    let turned = |net: Net, name: &str| {
        net.node("RotaryEmbedding", &[&format!("{name}.heads"), "cos", "sin", "tokens"], &format!("{name}.turned"))
    };
    let net = turned(turned(net, "q"), "k")
        .input("mask", F32, &[2, 1, 5, 9])
        .input("keys", F32, &[2, KEYS, 4, WIDTH])
        .input("values", F32, &[2, KEYS, 4, WIDTH])
        .node("Attention", &["q.turned", "k.turned", "v.heads", "mask", "keys", "values"], "a")
        .also("all_keys")
        .also("all_values");
    let net = joined(net).output("all_keys", F32).output("all_values", F32);
    for target in TARGETS {
        assert_eq!(made(target, &net), ["RotaryEmbedding", "RotaryEmbedding", "Attention"], "{target}");
    }
}

#[test]
fn a_rotation_alone_is_packed_and_open_sizes_are_copied() {
    let net = Net::new(23)
        .symbolic_input("q", F32, &["B", "S", "32"])
        .floats("cos", F32, &[16, WIDTH / 2], true)
        .floats("sin", F32, &[16, WIDTH / 2], true)
        .ints("zero", &[0])
        .symbolic_input("p", I64, &["B", "S"])
        .node("Mul", &["p", "zero"], "places");
    let net = rotated(split(net, "q", QUERIES), "q")
        .node_with("Transpose", &["q.turned"], "b", &[("perm", HEADS_FIRST)])
        .ints("whole", &[0, 0, QUERIES * WIDTH])
        .node("Reshape", &["b", "whole"], "y")
        .output("y", F32);
    for target in ["onnx", "ort-cpu", "nhwc"] {
        assert_eq!(made(target, &net), ["Mul", "RotaryEmbedding"], "{target}");
    }
}

#[test]
fn attention_between_other_orders_keeps_its_form() {
    // Positions stand outermost: neither form reads that.
    let net = Net::new(23).input("x", F32, &[5, 2, QUERIES, WIDTH]).node_with(
        "Transpose",
        &["x"],
        "t",
        &[("perm", &[1, 2, 0, 3])],
    );
    let net = net.node("Attention", &["t", "t", "t"], "y").output("y", F32);
    for target in ["onnx", "nhwc"] {
        assert_eq!(made(target, &net), ["Transpose", "Attention"], "{target}");
    }
}
