//! Target `ort-cpu`, `DepthToSpace` and `SpaceToDepth` between convolutions: whole blocks move, and channels are made in the order
//! in which they can. Each model is run before and after in ONNX Runtime, as the file stands and with every optimization on load.

use crate::fold_nets::blocks::{blocks, executes};
use crate::fold_nets::cpu::{
    blocked, count, dear, made_for, nodes, optimized, optimized_by, refusal, refusal_by, sizes_of, target,
};
use crate::fold_nets::{F16, F32, Net, runtime};
use prost::Message;
use relayout::Numerics;
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::Block;
use relayout_verify::{Inputs, Level, ModelSource, Options, verify};
use std::collections::BTreeMap;

const AROUND: (&str, &[i64]) = ("pads", &[1, 1, 1, 1]);
/// Rows and columns of the input.
const SIDE: i64 = 12;
/// Channels of the input and between convolutions: whole blocks on every host.
const WIDE: i64 = 32;

/// A value of this many channels by a convolution with a bias.
fn conv(net: Net, x: &str, y: &str, [from, to]: [i64; 2]) -> Net {
    let [w, b] = ["w", "b"].map(|of| format!("{y}.{of}"));
    let scale = 1.0 / (3.0 * (9 * from) as f32).sqrt();
    let values: Vec<f32> = (0..to * from * 9).map(|i| ((i * 7919 + to) % 23 - 11) as f32 * scale).collect();
    net.values(&w, F32, &[to, from, 3, 3], &values).floats(&b, F32, &[to], true).node_with(
        "Conv",
        &[x, &w, &b],
        y,
        &[AROUND],
    )
}

/// The `DepthToSpace` of a mode, `""` for one that is not said.
fn to_space(net: Net, x: &str, y: &str, mode: &'static str, factor: i64) -> Net {
    let net = net.node_with("DepthToSpace", &[x], y, &[("blocksize", &[factor])]);
    if mode.is_empty() { net } else { net.text_attribute("mode", mode) }
}

/// Conv, Relu, Conv, `DepthToSpace` and Conv; of so many channels of pixels, whose sizes may be names.
fn upscaler(opset: i64, mode: &'static str, factor: i64, channels: i64, sizes: [&str; 3]) -> Net {
    let net = Net::new(opset).symbolic_input("x", F32, &[sizes[0], &WIDE.to_string(), sizes[1], sizes[2]]);
    let net = conv(net, "x", "a", [WIDE, WIDE]).node("Relu", &["a"], "ra");
    let net = conv(net, "ra", "d", [WIDE, channels * factor * factor]);
    let net = to_space(net, "d", "s", mode, factor);
    conv(net, "s", "y", [channels, WIDE]).output("y", F32)
}

/// Of known sizes.
fn known(mode: &'static str, factor: i64, channels: i64) -> Net {
    let side = SIDE.to_string();
    upscaler(17, mode, factor, channels, ["1", &side, &side])
}

/// Reorders into and out of blocks, and `DepthToSpace` or `SpaceToDepth` as they are.
fn moves(model: &ModelProto) -> [usize; 3] {
    let all = |op: &str| count(model, op).iter().sum();
    [all("ReorderInput"), all("ReorderOutput"), all("DepthToSpace") + all("SpaceToDepth")]
}

/// What is left where the whole network is in blocks.
const BLOCKED: [usize; 3] = [1, 1, 0];

fn is_blocked(node: &NodeProto) -> bool {
    node.domain.as_deref() == Some("com.microsoft.nchwc")
}

/// Holds results bit by bit against what the input computes with the runtime's own blocks.
fn same_bits(block: Block, net: &Net) {
    let bytes = net.bytes();
    let target = target(block).unguarded();
    let made = made_for(&target, &bytes, Numerics::Exact);
    let mut options = Options::default();
    (options.level_a, options.level_b) = (Level::All, Level::Disabled);
    let inputs = Inputs::Random { seed: 11, dims: BTreeMap::new() };
    if executes(block, &made) {
        let comparison = verify(runtime(), ModelSource::Bytes(&bytes), ModelSource::Bytes(&made), &inputs, &options);
        let comparison = comparison.expect("both run");
        assert!(comparison.exact, "{comparison}");
    }
    let model = ModelProto::decode(made.as_slice()).expect("a model");
    assert_eq!(moves(&model), BLOCKED);
}

#[test]
fn pixels_move_in_blocks_between_convolutions() {
    for block in blocks() {
        for (mode, factor) in [("DCR", 2), ("CRD", 2), ("DCR", 3), ("CRD", 3), ("", 2)] {
            let net = known(mode, factor, WIDE);
            let model = blocked(block, &net);
            assert_eq!((moves(&model), count(&model, "Transpose")), (BLOCKED, [1, 0]), "{mode} {factor}");
            assert_eq!(count(&model, "Conv"), [0, 3], "{mode} {factor}");
            assert_eq!(refusal(block, &net.bytes()), None, "{mode} {factor}");
            same_bits(block, &net);
        }
    }
}

#[test]
fn the_mode_is_that_of_the_filters_where_the_op_stays() {
    let mut stay = Vec::new();
    for (block, side) in blocks().flat_map(|block| ["2", "3", "4"].map(|side| (block, side))) {
        let wide = block.channels() as i64;
        // The last one leaves the model, in ONNX's own layout.
        let net = Net::new(17).symbolic_input("x", F32, &["1", "3", side, side]);
        let net = conv(net, "x", "a", [3, wide]);
        let net = to_space(conv(net, "a", "b", [wide, 4 * wide]), "b", "c", "CRD", 2);
        let net = to_space(conv(net, "c", "d", [wide, 4 * wide]), "d", "y", "CRD", 2).output("y", F32);
        assert_eq!(refusal(block, &net.bytes()), None, "{side} {block:?}");
        let target = target(block);
        let made = made_for(&target, &net.bytes(), Numerics::Reassociate);
        let model = ModelProto::decode(made.as_slice()).expect("a model");
        let modes = nodes(&model).filter(|n| n.op_type.as_deref() == Some("DepthToSpace")).flat_map(|n| &n.attribute);
        let modes: Vec<_> = modes.filter(|a| a.name() == "mode").map(|a| a.s.clone().unwrap_or_default()).collect();
        stay.extend(modes.into_iter().map(|mode| (block, side, String::from_utf8_lossy(&mode).into_owned())));
        blocked(block, &net);
    }
    let stay: Vec<_> = stay.iter().map(|(block, side, mode)| (*block, *side, mode.as_str())).collect();
    // Of images of 3 pixels a side the first one moves in blocks, for which filters are put in order, and the last one stays. Of smaller
    // ones both stay as they were, and larger ones, or blocks of 16, are worth it.
    let blocks_of_8 = [("2", "CRD"), ("2", "CRD"), ("3", "DCR")];
    assert_eq!(stay, blocks_of_8.map(|(side, mode)| (Block::B8, side, mode)));
}

#[test]
fn the_other_way_round_pixels_move_in_blocks_too() {
    for block in blocks() {
        for factor in [2, 3] {
            let net = Net::new(17).input("x", F32, &[2, WIDE, SIDE, SIDE]);
            let net = conv(net, "x", "a", [WIDE, WIDE]).node("Relu", &["a"], "ra");
            let net = net.node_with("SpaceToDepth", &["ra"], "d", &[("blocksize", &[factor])]);
            let net = conv(net, "d", "y", [WIDE * factor * factor, WIDE]).output("y", F32);
            let model = blocked(block, &net);
            assert_eq!((moves(&model), count(&model, "Transpose")), (BLOCKED, [1, 0]), "{factor}");
            assert_eq!(refusal(block, &net.bytes()), None, "{factor}");
            same_bits(block, &net);
        }
    }
}

#[test]
fn every_operator_set_says_it_in_its_own_way() {
    for block in blocks() {
        let side = SIDE.to_string();
        for (opset, mode) in [(9, ""), (11, ""), (11, "CRD"), (13, "CRD"), (13, "DCR"), (21, "CRD")] {
            let net = upscaler(opset, mode, 2, WIDE, ["1", &side, &side]);
            assert_eq!(moves(&blocked(block, &net)), BLOCKED, "{opset} {mode}");
        }
    }
}

#[test]
fn sizes_may_be_unknown() {
    for block in blocks() {
        let side = SIDE.to_string();
        let known = side.as_str();
        let sizes = [("N", 2), ("H", 6), ("W", 7)];
        for names in [
            ["N", known, known],
            ["1", "H", known],
            ["1", known, "W"],
            ["1", "H", "W"],
            ["N", known, "W"],
            ["N", "H", "W"],
        ] {
            for opset in [11, 17] {
                let net = upscaler(opset, "CRD", 2, WIDE, names);
                let model = optimized(block, &net.bytes(), &sizes_of(&net, &sizes)).expect("it runs");
                assert_eq!(moves(&model), BLOCKED, "{names:?} {opset}");
                assert_eq!(refusal(block, &net.bytes()), None, "{names:?} {opset}");
            }
        }
        let net = Net::new(17).symbolic_input("x", F32, &["N", &WIDE.to_string(), "2*H", "2*W"]);
        let net = conv(net, "x", "a", [WIDE, WIDE]).node_with("SpaceToDepth", &["a"], "d", &[("blocksize", &[2])]);
        let net = conv(net, "d", "y", [WIDE * 4, WIDE]).output("y", F32);
        // By the built-in costs SpaceToDepth stays with blocks of 8, whose Transpose copies twice as many runs, each half as long.
        // Measured for 32 channels and 24 x 24 pixels: 18 us, and 12 us with the op and both moves; with blocks of 16 11 us and 9 us.
        let target = dear(block, "transpose-general", 8);
        let sizes = sizes_of(&net, &[("N", 2), ("2*H", 6), ("2*W", 8)]);
        let model = optimized_by(&target, &net.bytes(), &sizes).expect("it runs");
        assert_eq!((moves(&model), refusal_by(&target, &net.bytes())), (BLOCKED, None));
    }
}

/// A network with CRD, and between the convolution and it what `between` adds: from value `d` to value `e`.
fn behind(between: impl Fn(Net) -> Net) -> Net {
    let net = Net::new(17).input("x", F32, &[1, WIDE, SIDE, SIDE]);
    let net = between(conv(net, "x", "d", [WIDE, WIDE * 4]));
    conv(to_space(net, "e", "s", "CRD", 2), "s", "y", [WIDE, WIDE]).output("y", F32)
}

#[test]
fn ops_that_treat_each_channel_for_itself_may_stand_between() {
    for block in blocks() {
        let wide = WIDE * 4;
        let nets: [(&str, Net); 6] = [
            ("Relu", behind(|net| net.node("Relu", &["d"], "e"))),
            ("Clip", {
                behind(|net| {
                    net.values("low", F32, &[], &[-0.5]).values("high", F32, &[], &[0.5]).node(
                        "Clip",
                        &["d", "low", "high"],
                        "e",
                    )
                })
            }),
            ("LeakyRelu", behind(|net| net.node("LeakyRelu", &["d"], "e").float_attribute("alpha", 0.25))),
            ("PRelu", behind(|net| net.values("slope", F32, &[1, 1, 1], &[0.25]).node("PRelu", &["d", "slope"], "e"))),
            ("Tanh twice", behind(|net| net.node("Tanh", &["d"], "t").node("Tanh", &["t"], "e"))),
            ("a depthwise convolution", {
                behind(|net| {
                    net.floats("dw", F32, &[wide, 1, 3, 3], true).floats("db", F32, &[wide], true).node_with(
                        "Conv",
                        &["d", "dw", "db"],
                        "e",
                        &[AROUND, ("group", &[wide])],
                    )
                })
            }),
        ];
        for (told, net) in nets {
            let model = blocked(block, &net);
            assert_eq!(moves(&model), BLOCKED, "{told}");
            assert_eq!(refusal(block, &net.bytes()), None, "{told}");
        }
    }
}

#[test]
fn channels_stay_in_their_order_where_anything_else_knows_it() {
    for block in blocks() {
        let wide = WIDE * 4;
        let nets: [(&str, Net); 8] = [
            ("another reader", {
                behind(|net| net.node("Relu", &["d"], "e").node_with("ReduceMean", &["d"], "m", &[("axes", &[1])]))
                    .output("m", F32)
            }),
            ("an output", behind(|net| net.node("Relu", &["d"], "e")).output("d", F32)),
            ("an output that is moved", behind(|net| net.node("Relu", &["d"], "e")).output("e", F32)),
            ("slopes of channels", {
                behind(|net| net.floats("slope", F32, &[wide, 1, 1], false).node("PRelu", &["d", "slope"], "e"))
            }),
            ("a sum over channels", behind(|net| net.node_with("Softmax", &["d"], "e", &[("axis", &[1])]))),
            ("groups", {
                behind(|net| {
                    net.floats("gw", F32, &[wide, 16, 1, 1], true).node_with(
                        "Conv",
                        &["d", "gw"],
                        "e",
                        &[("group", &[wide / 16])],
                    )
                })
            }),
            ("no convolution", {
                let net = Net::new(17).input("x", F32, &[1, WIDE * 4, SIDE, SIDE]).node("Sin", &["x"], "e");
                conv(to_space(net, "e", "s", "CRD", 2), "s", "y", [WIDE, WIDE]).output("y", F32)
            }),
            ("weights that are computed", {
                let net = Net::new(17).input("x", F32, &[1, WIDE, SIDE, SIDE]).input("w", F32, &[WIDE * 4, WIDE, 1, 1]);
                let net = to_space(net.node("Conv", &["x", "w"], "e"), "e", "s", "CRD", 2);
                conv(net, "s", "y", [WIDE, WIDE]).output("y", F32)
            }),
        ];
        for (told, net) in nets {
            let model = blocked(block, &net);
            let left = nodes(&model).find(|n| n.op_type.as_deref() == Some("DepthToSpace"));
            let mode = left
                .and_then(|n| n.attribute.iter().find(|a| a.name.as_deref() == Some("mode")))
                .and_then(|a| a.s.clone());
            assert_eq!(mode.as_deref(), Some(&b"CRD"[..]), "{told}");
        }
    }
}

#[test]
fn channels_that_fill_no_blocks_are_left_alone() {
    for block in blocks() {
        for (mode, channels) in [("CRD", 3), ("DCR", 3), ("CRD", 20), ("DCR", 20)] {
            let model = blocked(block, &known(mode, 2, channels));
            assert_eq!(count(&model, "DepthToSpace"), [1, 0], "{mode} {channels}");
            let written =
                nodes(&model).filter(|n| n.op_type.as_deref() == Some("DepthToSpace")).flat_map(|n| &n.attribute);
            let said = written.filter(|a| a.name.as_deref() == Some("mode")).filter_map(|a| a.s.as_deref());
            assert_eq!(said.collect::<Vec<_>>(), [mode.as_bytes()], "{channels}");
        }
    }
}

#[test]
fn nothing_but_floats_of_32_bits_moves_in_blocks() {
    for block in blocks() {
        let net = Net::new(17).input("x", F16, &[1, WIDE * 4, SIDE, SIDE]).node("Relu", &["x"], "a");
        let net = to_space(net, "a", "s", "DCR", 2).node("Relu", &["s"], "y").output("y", F16);
        let model = blocked(block, &net);
        assert_eq!(moves(&model), [0, 0, 1]);
        assert!(!nodes(&model).any(is_blocked));
    }
}

#[test]
fn blocks_are_made_for_it_alone_where_that_is_faster() {
    for block in blocks() {
        let alone = |op: &str, channels: i64, side: i64| {
            let net = Net::new(17).input("x", F32, &[1, channels, side, side]);
            let net = net.node_with(op, &["x"], "s", &[("blocksize", &[2])]).node("Relu", &["s"], "y").output("y", F32);
            moves(&blocked(block, &net))
        };
        // Measured: 30 us by itself, and 13 us with both moves.
        assert_eq!(alone("DepthToSpace", WIDE * 4, SIDE), [1, 1, 0]);
        // 10 us and 13 us.
        assert_eq!(alone("SpaceToDepth", WIDE, 2 * SIDE), [0, 0, 1]);
    }
}

#[test]
fn two_in_a_row_move_in_blocks() {
    for block in blocks() {
        let net = Net::new(17).input("x", F32, &[1, WIDE, SIDE, SIDE]);
        let net = conv(net, "x", "d", [WIDE, WIDE * 4]);
        let net = conv(to_space(net, "d", "s", "CRD", 2), "s", "e", [WIDE, WIDE * 4]).node("Relu", &["e"], "re");
        let net = conv(to_space(net, "re", "t", "CRD", 2), "t", "y", [WIDE, WIDE]).output("y", F32);
        let model = blocked(block, &net);
        assert_eq!((moves(&model), count(&model, "Transpose")), (BLOCKED, [2, 0]));
        assert_eq!(refusal(block, &net.bytes()), None);
    }
}

#[test]
fn weights_that_two_convolutions_share_are_put_in_order_for_each_of_them() {
    for block in blocks() {
        let net = Net::new(17).input("x", F32, &[1, WIDE, SIDE, SIDE]);
        let net = conv(net, "x", "d", [WIDE, WIDE * 4]).node("Sin", &["x"], "z");
        let net = net.node_with("Conv", &["z", "d.w", "d.b"], "e", &[AROUND]).output("e", F32);
        let net = conv(to_space(net, "d", "s", "CRD", 2), "s", "y", [WIDE, WIDE]).output("y", F32);
        let model = blocked(block, &net);
        assert_eq!(count(&model, "DepthToSpace"), [0, 0]);
    }
}

#[test]
fn each_host_has_its_own_blocks() {
    // Eight channels fill one block of the smaller hosts.
    for (block, left) in [(Block::B8, 0), (Block::B16, 1)] {
        assert_eq!(count(&blocked(block, &known("CRD", 2, 8)), "DepthToSpace"), [left, 0], "{block:?}");
    }
}
