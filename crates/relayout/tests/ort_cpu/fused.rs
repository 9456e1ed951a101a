//! Files that ONNX Runtime saved after its own rewrites: convolutions that took in sums and activations, run before and after.

use crate::common;
use crate::fold_nets::blocks::{blocks, executes};
use crate::fold_nets::cpu::{made_for, optimized, optimized_by, refusal, refusal_by, target};
use crate::fold_nets::{F32, Net};
use relayout::Numerics;
use relayout::targets::Release;
use relayout_onnx::proto::ModelProto;
use relayout_verify::{Level, ModelSource, save_as_loaded};
use std::collections::BTreeMap;
use std::path::Path;

/// A convolution of the runtime's own of 32 channels to 32, with the activation and its numbers.
fn fused(net: Net, from: &[&str], name: &str, activation: (&'static str, &[f32])) -> Net {
    let weights = format!("{name}.weights");
    let mut inputs = vec![from[0], &weights];
    // A sum stands behind the bias, which is absent.
    if let Some(sum) = from.get(1) {
        inputs.extend(["", sum]);
    }
    let net = net.floats(&weights, F32, &[32, 32, 3, 3], true);
    let net = net.node_with("FusedConv", &inputs, name, &[("pads", &[1, 1, 1, 1])]).of_domain("com.microsoft");
    let (activation, numbers) = activation;
    let net = net.text_attribute("activation", activation);
    if numbers.is_empty() { net } else { net.numbers_attribute("activation_params", numbers) }
}

/// Three of them, the last one with a sum; an op that the runtime does not take in stands behind it.
fn network(opset: i64, activation: (&'static str, &[f32])) -> Net {
    let net = Net::new(opset).input("x", F32, &[1, 32, 12, 12]);
    let net = fused(net, &["x"], "a", activation);
    let net = fused(net, &["a"], "b", ("Relu", &[]));
    let net = fused(net, &["b", "a"], "c", activation);
    net.node_with("MaxPool", &["c"], "y", &[("kernel_shape", &[2, 2])]).output("y", F32)
}

fn count(model: &ModelProto, op: &str) -> usize {
    model.graph.iter().flat_map(|graph| &graph.node).filter(|n| n.op_type() == op).count()
}

#[test]
fn convolutions_that_took_in_others_run_in_blocks_with_these() {
    for block in blocks() {
        let activations: [(&str, &[f32]); 6] = [
            ("Relu", &[]),
            ("Sigmoid", &[]),
            ("Tanh", &[]),
            ("LeakyRelu", &[0.25]),
            ("HardSigmoid", &[0.25, 0.5]),
            ("Clip", &[-0.5, 0.75]),
        ];
        for (activation, numbers) in activations {
            for opset in [10, 13, 17] {
                let net = network(opset, (activation, numbers));
                let made =
                    optimized(block, &net.bytes(), &BTreeMap::new()).unwrap_or_else(|e| panic!("{activation}: {e}"));
                let of_blocks = |op: &str| {
                    let nodes = made.graph.iter().flat_map(|graph| &graph.node);
                    nodes.filter(|n| n.op_type() == op && n.domain() == "com.microsoft.nchwc").count()
                };
                assert_eq!([of_blocks("Conv"), of_blocks("MaxPool")], [3, 1], "{activation} {opset}");
                // One before the first, one behind the last; all that was taken in is taken in again.
                assert_eq!(made.graph.as_ref().map(|graph| graph.node.len()), Some(6), "{activation} {opset}");
            }
        }
        assert_eq!(refusal(block, &network(17, ("LeakyRelu", &[0.25])).bytes()), None);
    }
}

#[test]
fn nothing_is_left_for_the_runtime_to_put_in_blocks() {
    for block in blocks() {
        let net = network(17, ("Relu", &[]));
        let target = target(block);
        let made = made_for(&target, &net.bytes(), Numerics::Reassociate);
        if !executes(block, &made) {
            continue;
        }
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fused.onnx");
        save_as_loaded(common::runtime(), ModelSource::Bytes(&made), Level::All, &place).expect("it loads");
        let read = |bytes: &[u8]| <ModelProto as prost::Message>::decode(bytes).expect("a model");
        let (made, loaded) = (read(&made), read(&std::fs::read(place).expect("it is there")));
        for op in ["ReorderInput", "ReorderOutput"] {
            assert!(count(&loaded, op) <= count(&made, op), "{op}");
        }
    }
}

#[test]
fn what_no_version_of_the_standard_at_hand_has_stays() {
    for block in blocks() {
        // HardSwish came with opset 14.
        let net =
            fused(Net::new(13).input("x", F32, &[1, 32, 12, 12]), &["x"], "y", ("HardSwish", &[])).output("y", F32);
        let target = target(block);
        assert_eq!(made_for(&target, &net.bytes(), Numerics::Reassociate), net.bytes());
    }
}

#[test]
fn a_sum_or_an_activation_that_nobody_reads_is_not_taken_in() {
    for block in blocks() {
        let net = conv(Net::new(17).input("x", F32, &[1, 32, 12, 12]), "x", "a");
        let net = conv(conv(net, "a", "b"), "b", "y").output("y", F32);
        for (op, operands) in [("Add", &["b", "c"][..]), ("Relu", &["c"])] {
            let net = conv(net.clone(), "b", "c").node(op, operands, "unread");
            assert_eq!(refusal(block, &net.bytes()), None, "{op}");
            optimized(block, &net.bytes(), &BTreeMap::new()).unwrap_or_else(|e| panic!("{op}: {e}"));
        }
    }
}

fn conv(net: Net, from: &str, to: &str) -> Net {
    let weights = format!("{to}.weights");
    let net = net.floats(&weights, F32, &[32, 32, 3, 3], true);
    net.node_with("Conv", &[from, &weights], to, &[("pads", &[1, 1, 1, 1])])
}

/// Two convolutions, between which an activation is spelled by these nodes, from `c` to `y`.
fn gated(opset: i64, lines: &[(&'static str, &[&str], &str)]) -> Net {
    let numbers = [("three", 3.0), ("zero", 0.0), ("six", 6.0), ("sixth", 1.0 / 6.0)];
    let net = Net::new(opset).input("x", F32, &[1, 32, 12, 12]);
    let net = numbers.iter().fold(net, |net, (name, number)| net.values(name, F32, &[], &[*number]));
    let net = lines.iter().fold(conv(net, "x", "c"), |net, (op, from, to)| net.node(op, from, to));
    conv(net, "y", "z").output("z", F32)
}

/// The activations of the convolutions in blocks, and how many nodes there are beside these.
fn activations(made: &ModelProto) -> (Vec<String>, usize) {
    let nodes = made.graph.iter().flat_map(|graph| &graph.node);
    let (convs, others): (Vec<_>, Vec<_>) = nodes.partition(|n| n.op_type() == "Conv");
    let named = |n: &&relayout_onnx::proto::NodeProto| {
        let said = n.attribute.iter().find(|a| a.name() == "activation");
        said.map(|a| String::from_utf8_lossy(a.s()).into_owned())
    };
    (convs.iter().filter_map(named).collect(), others.len())
}

type Lines = &'static [(&'static str, &'static [&'static str], &'static str)];

/// Spellings of `HardSwish` of `c` that the runtime does not take in.
const CUT: [Lines; 4] = [
    &[
        ("Add", &["c", "three"], "a"),
        ("Clip", &["a", "zero", "six"], "b"),
        ("Mul", &["c", "b"], "m"),
        ("Div", &["m", "six"], "y"),
    ],
    &[
        ("Add", &["three", "c"], "a"),
        ("Clip", &["a", "zero", "six"], "b"),
        ("Mul", &["b", "sixth"], "m"),
        ("Mul", &["m", "c"], "y"),
    ],
    &[
        ("Mul", &["c", "sixth"], "s"),
        ("Add", &["c", "three"], "a"),
        ("Max", &["a", "zero"], "r"),
        ("Min", &["r", "six"], "b"),
        ("Mul", &["s", "b"], "y"),
    ],
    &[
        ("Add", &["c", "three"], "a"),
        ("Relu", &["a"], "r"),
        ("Min", &["r", "six"], "b"),
        ("Div", &["b", "six"], "g"),
        ("Mul", &["g", "c"], "y"),
    ],
];

#[test]
fn a_gate_that_is_written_out_is_taken_in_with_what_it_is_multiplied_by() {
    for block in blocks() {
        let plain =
            activations(&optimized(block, &gated(17, &[("Relu", &["c"], "y")]).bytes(), &BTreeMap::new()).unwrap()).1;
        for (at, lines) in CUT.iter().enumerate() {
            for opset in [12, 17] {
                let net = gated(opset, lines);
                let made = optimized(block, &net.bytes(), &BTreeMap::new()).unwrap_or_else(|e| panic!("{at}: {e}"));
                assert_eq!(activations(&made), (vec!["HardSwish".to_owned()], plain), "{at} {opset}");
                assert_eq!(refusal(block, &net.bytes()), None, "{at} {opset}");
            }
        }
        // A gate by itself is a HardSigmoid.
        let lines: Lines =
            &[("Add", &["c", "three"], "a"), ("Clip", &["a", "zero", "six"], "b"), ("Div", &["b", "six"], "y")];
        let net = gated(17, lines);
        let made = optimized(block, &net.bytes(), &BTreeMap::new()).unwrap();
        assert_eq!(activations(&made), (vec!["HardSigmoid".to_owned()], plain));
        assert_eq!(refusal(block, &net.bytes()), None);
        // What somebody else reads too, and what is cut off elsewhere, is none.
        let read: Lines = &[
            ("Add", &["c", "three"], "a"),
            ("Clip", &["a", "zero", "six"], "b"),
            ("Mul", &["c", "b"], "m"),
            ("Add", &["m", "b"], "y"),
        ];
        let other: Lines = &[
            ("Add", &["c", "three"], "a"),
            ("Clip", &["a", "zero", "three"], "b"),
            ("Mul", &["c", "b"], "m"),
            ("Div", &["m", "six"], "y"),
        ];
        for lines in [read, other] {
            let made = optimized(block, &gated(17, lines).bytes(), &BTreeMap::new()).unwrap();
            assert_eq!(activations(&made).0, Vec::<String>::new());
        }
    }
}

/// Channels that fill no block, behind a scale and a shift that go into the filters, read channel by channel.
#[test]
fn a_gate_among_slots_behind_scaled_filters_is_proved() {
    for block in blocks() {
        for channels in [12, 16] {
            let net = Net::new(17).input("x", F32, &[1, 3, 12, 12]).floats("k", F32, &[channels, 3, 3, 3], true);
            let net = net.values("scale", F32, &[], &[0.94]).values("shift", F32, &[], &[0.5]);
            let numbers = [("three", 3.0), ("zero", 0.0), ("six", 6.0)];
            let net = numbers.iter().fold(net, |net, (name, number)| net.values(name, F32, &[], &[*number]));
            let net = net.node_with("Conv", &["x", "k"], "d", &[("pads", &[1, 1, 1, 1])]);
            let lines: Lines = &[("Mul", &["d", "scale"], "e"), ("Add", &["e", "shift"], "c")];
            let net = lines.iter().chain(CUT[0]).fold(net, |net, (op, from, to)| net.node(op, from, to));
            let net = net.floats("each", F32, &[channels, 1, 3, 3], true);
            let net = net.node_with("Conv", &["y", "each"], "z", &[("pads", &[1, 1, 1, 1])]);
            let bytes = net.int_attribute("group", channels).output("z", F32).bytes();
            let made = optimized(block, &bytes, &BTreeMap::new()).unwrap_or_else(|e| panic!("{channels}: {e}"));
            assert_eq!(activations(&made).0, ["HardSwish"], "{channels}");
            assert_eq!(refusal(block, &bytes), None, "{channels}");
        }
    }
}

#[test]
fn a_product_with_its_own_hard_sigmoid_is_taken_in_at_any_opset() {
    for block in blocks() {
        for opset in [8, 13, 17] {
            let net = conv(Net::new(opset).input("x", F32, &[1, 32, 12, 12]), "x", "c");
            let net = net.node("HardSigmoid", &["c"], "g").float_attribute("alpha", 1.0 / 6.0);
            let net = conv(net.node("Mul", &["g", "c"], "y"), "y", "z").output("z", F32);
            let made = optimized(block, &net.bytes(), &BTreeMap::new()).unwrap();
            assert_eq!(activations(&made).0, ["HardSwish"], "{opset}");
            assert_eq!(refusal(block, &net.bytes()), None, "{opset}");
        }
    }
}

/// `HardSwish` in its spellings, for releases whose convolutions do not have it: it stands beside them.
#[test]
fn older_releases_get_no_activation_that_they_lack() {
    let own = |opset: i64| {
        let net = conv(Net::new(opset).input("x", F32, &[1, 32, 12, 12]), "x", "c");
        conv(net.node("HardSwish", &["c"], "y"), "y", "z").output("z", F32)
    };
    for block in blocks() {
        for net in [own(14), own(22), gated(12, CUT[0]), gated(17, CUT[3])] {
            for (version, taken) in
                [("1.24", None), ("1.29.1", None), ("1.30", Some("HardSwish")), ("1.32.0", Some("HardSwish"))]
            {
                let target = target(block).for_release(Release::parse(version).unwrap());
                let made =
                    optimized_by(&target, &net.bytes(), &BTreeMap::new()).unwrap_or_else(|e| panic!("{version}: {e}"));
                assert_eq!(activations(&made).0, Vec::from_iter(taken), "{version}");
                let needs = made.metadata_props.iter().find_map(|p| (p.key() == "relayout.needs").then(|| p.value()));
                assert_eq!(needs, taken.map(|_| "ONNX Runtime 1.30"), "{version}");
                // All of it stays in blocks.
                assert_eq!([count(&made, "ReorderInput"), count(&made, "ReorderOutput")], [1, 1], "{version}");
                assert_eq!(refusal_by(&target, &net.bytes()), None, "{version}");
            }
        }
        // A file for the newest is none for an older one, and says why; the other way round it stays as it is.
        let target = |version: &str| target(block).for_release(Release::parse(version).unwrap());
        let asked = |version: &str, bytes: Vec<u8>| {
            let model = relayout::Model::from_bytes(bytes.into(), None).unwrap();
            relayout::optimize(&model, &target(version), &relayout::Options::default())
        };
        let made = |version: &str| asked(version, own(17).bytes()).unwrap().to_bytes().unwrap();
        let refused = asked("1.28", made("1.32")).unwrap_err().to_string();
        assert!(refused.contains("relayout.needs=ONNX Runtime 1.30"), "{refused}");
        assert!(!asked("1.32", made("1.28")).unwrap().report().changed);
        // What all releases have needs none.
        let relu = gated(17, &[("Relu", &["c"], "y")]);
        let made = optimized(block, &relu.bytes(), &BTreeMap::new()).unwrap();
        assert!(made.metadata_props.iter().all(|p| p.key() != "relayout.needs"));
    }
}

#[test]
fn an_identity_keeps_no_convolution_from_what_stands_behind_it() {
    for block in blocks() {
        let net = gated(17, &[("Identity", &["c"], "i"), ("Relu", &["i"], "y")]);
        let made = optimized(block, &net.bytes(), &BTreeMap::new()).unwrap();
        assert_eq!(activations(&made).0, ["Relu"]);
        assert_eq!(count(&made, "Identity"), 0);
        assert_eq!(refusal(block, &net.bytes()), None);
        // One that an output is stays.
        let net = gated(17, &[("Identity", &["c"], "i"), ("Relu", &["c"], "y")]).output("i", F32);
        let made = optimized(block, &net.bytes(), &BTreeMap::new()).unwrap();
        assert_eq!((activations(&made).0.len(), count(&made, "Identity")), (0, 1));
    }
}
