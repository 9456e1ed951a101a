//! Models that can be read and that hardly a runtime would run, broken ones and very old ones: no target fails on them.

use crate::fold_nets::{F32, I64, Net, U8};
use prost::Message;
use relayout::targets::BUILTIN;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::proto::ModelProto;

/// Scales of a quantization of four channels.
fn quantized(scales: &[f32]) -> Net {
    let net = Net::new(13).input("x", F32, &[2, 4, 4, 4]).values("s", F32, &[scales.len() as i64], scales);
    let net =
        net.node_with("Transpose", &["x"], "t", &[("perm", &[0, 2, 3, 1])]).node("QuantizeLinear", &["t", "s"], "q");
    let net =
        net.node_with("MaxPool", &["q"], "m", &[("kernel_shape", &[2, 2])]).node("DequantizeLinear", &["m", "s"], "d");
    net.node_with("Transpose", &["d"], "y", &[("perm", &[0, 3, 1, 2])]).output("y", F32)
}

/// A normalization of four channels.
fn normalized(scales: &[f32]) -> Net {
    let net = Net::new(15).input("x", F32, &[2, 4, 4, 4]).values("s", F32, &[scales.len() as i64], scales);
    let net = net.node_with("Transpose", &["x"], "t", &[("perm", &[0, 2, 3, 1])]);
    let net = net.node("BatchNormalization", &["t", "s", "s", "s", "s"], "n");
    net.node_with("Transpose", &["n"], "y", &[("perm", &[0, 3, 1, 2])]).output("y", F32)
}

/// A result is read and optimized like any other model.
fn optimized_again(result: &[u8], name: &str) {
    let again = Model::from_bytes(result.to_vec().into(), None).expect("it is read");
    optimize(&again, target(name).expect("it is built in").as_ref(), &Options::default())
        .unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Two convolutions of sixteen channels with a bias.
fn convolved(bias: &[f32]) -> Net {
    let net = Net::new(15).input("x", F32, &[1, 16, 12, 12]).values("b", F32, &[bias.len() as i64], bias);
    let net = net.floats("w", F32, &[16, 16, 3, 3], true).node("Conv", &["x", "w", "b"], "c").node("Relu", &["c"], "r");
    net.node("Conv", &["r", "w", "b"], "y").output("y", F32)
}

#[test]
fn more_or_fewer_numbers_than_channels() {
    for numbers in [0, 1, 3, 4, 5, 8, 15, 16, 17, 32] {
        let scales = vec![1.0; numbers];
        let nets =
            [("quantized", quantized(&scales)), ("normalized", normalized(&scales)), ("convolved", convolved(&scales))];
        for (what, net) in nets {
            for name in BUILTIN {
                let model = Model::from_bytes(net.bytes().into(), None).expect("it can be read");
                let target = target(name).expect("it is built in");
                let made = optimize(&model, target.as_ref(), &Options::default());
                let made = made.unwrap_or_else(|e| panic!("{what} with {numbers} numbers for {name}: {e}"));
                let again =
                    Model::from_bytes(made.to_bytes().expect("it is written").into(), None).expect("it is read");
                optimize(&again, target.as_ref(), &Options::default()).expect("it can be optimized again");
            }
        }
    }
}

#[test]
fn a_bias_of_other_than_the_channels_puts_no_convolution_into_blocks() {
    let target = target("ort-cpu").expect("it is built in");
    for numbers in [0, 1, 15, 16, 17, 32] {
        let model = Model::from_bytes(convolved(&vec![1.0; numbers]).bytes().into(), None).expect("it can be read");
        let made = optimize(&model, target.as_ref(), &Options::default()).expect("no pass fails");
        let made = Model::from_bytes(made.to_bytes().expect("it is written").into(), None).expect("it is read");
        let text = made.print();
        assert_eq!(text.contains("nchwc::Conv("), numbers == 16, "{numbers} numbers: {text}");
        // Nor is there a guard or a shield for it.
        assert_eq!(text.contains("host."), numbers == 16, "{numbers} numbers: {text}");
    }
}

#[test]
fn attributes_without_a_kind_get_one_where_the_version_is_raised() {
    // Functions need IR version 8; from 2 on each attribute says of which kind it is.
    let net = Net::new(9).input("x", F32, &[1, 16, 12, 12]).floats("w", F32, &[16, 16, 3, 3], true);
    let net = net.node("Conv", &["x", "w"], "c").node("LeakyRelu", &["c"], "r").float_attribute("alpha", 0.5);
    let net = net.node("Conv", &["r", "w"], "y").output("y", F32).ir_3();
    let mut file = ModelProto::decode(&net.bytes()[..]).expect("a model");
    file.ir_version = Some(1);
    let nodes = file.graph.iter_mut().flat_map(|graph| &mut graph.node);
    nodes.flat_map(|node| &mut node.attribute).for_each(|a| a.r#type = None);
    let bytes = file.encode_to_vec();
    for name in BUILTIN {
        let model = Model::from_bytes(bytes.clone().into(), None).expect("it can be read");
        let made = optimize(&model, target(name).expect("it is built in").as_ref(), &Options::default());
        let made = made.unwrap_or_else(|e| panic!("{name}: {e}")).to_bytes().expect("it is written");
        Model::from_bytes(made.into(), None).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Two Transposes that cancel, and one that moves nothing.
fn turned(opset: i64, dtype: i32) -> Net {
    let net = Net::new(opset).input("x", F32, &[2, 3, 4, 5]).input("z", dtype, &[2, 1, 1, 3]);
    let net = net.node_with("Transpose", &["x"], "t", &[("perm", &[0, 2, 3, 1])]).node("Relu", &["t"], "r");
    let net = net.node_with("Transpose", &["r"], "y", &[("perm", &[0, 3, 1, 2])]).output("y", F32);
    net.node_with("Transpose", &["z"], "w", &[("perm", &[0, 3, 1, 2])]).output("w", dtype)
}

#[test]
fn what_moves_nothing_is_said_as_old_operator_sets_say_it() {
    for (opset, dtype, op, inputs) in [
        (1, F32, "Reshape", 1),
        (4, F32, "Reshape", 1),
        // Reshapes of old operator sets take floats only.
        (4, I64, "Transpose", 1),
        (5, F32, "Reshape", 2),
        (5, I64, "Reshape", 2),
    ] {
        for name in ["onnx", "nhwc", "cuda-tensorcore"] {
            let model = Model::from_bytes(turned(opset, dtype).bytes().into(), None).expect("it can be read");
            let made = optimize(&model, target(name).expect("it is built in").as_ref(), &Options::default());
            let made = made.expect("it can be optimized");
            assert!(made.report().changed && made.report().after.nodes == 0, "{}", made.graph());
            let bytes = made.to_bytes().expect("it is written");
            Model::from_bytes(bytes.clone().into(), None).unwrap_or_else(|e| panic!("{opset} for {name}: {e}"));
            let written = ModelProto::decode(&bytes[..]).expect("a model").graph.expect("a graph");
            let node = written.node.iter().find(|node| node.output == ["w"]).expect("it is there");
            assert_eq!((node.op_type(), node.input.len()), (op, inputs), "{opset} for {name}");
            let shape = node.attribute.iter().find(|a| a.name() == "shape").map(|a| a.ints.clone());
            assert_eq!(shape.is_some(), op == "Reshape" && inputs == 1, "{node:?}");
        }
    }
}

#[test]
fn constants_that_are_not_what_is_said_of_them() {
    // Four integers, which are said to be 96 elements.
    for said in [F32, I64] {
        let net = Net::new(13).input("x", said, &[2, 2, 6, 4]).ints("s", &[2, 6, 2, 4]);
        let net = net.node("Reshape", &["s", "s"], "k").typed("k", said, &[2, 6, 2, 4]);
        let net = net.node_with("Transpose", &["k"], "b", &[("perm", &[0, 2, 3, 1])]).typed("b", said, &[2, 2, 4, 6]);
        let net = net.node("MatMul", &["x", "b"], "m").node_with("Transpose", &["m"], "t", &[("perm", &[0, 2, 1, 3])]);
        let net = net.node("Relu", &["t"], "r").node_with("Transpose", &["r"], "y", &[("perm", &[0, 2, 1, 3])]);
        let bytes = net.output("y", said).bytes();
        for name in BUILTIN {
            let model = Model::from_bytes(bytes.clone().into(), None).expect("it can be read");
            let target = target(name).expect("it is built in");
            let made = optimize(&model, target.as_ref(), &Options::default());
            let made = made.unwrap_or_else(|e| panic!("{said} for {name}: {e}"));
            Model::from_bytes(made.to_bytes().expect("it is written").into(), None).expect("it is read");
        }
    }
}

#[test]
fn transposes_of_nothing() {
    // Of an operator set that is not known, so that nobody counts operands. The nodes are in no order.
    let net = Net::new(31).node("Transpose", &[], "a").node("Transpose", &["a", "q"], "b");
    let net = net.node("Transpose", &["a"], "q").output("a", F32);
    for name in BUILTIN {
        let model = Model::from_bytes(net.bytes().into(), None).expect("it can be read");
        optimize(&model, target(name).expect("it is built in").as_ref(), &Options::default())
            .expect("it can be optimized");
    }
}

#[test]
fn a_number_where_a_list_belongs() {
    // The result is said to be smaller than the operand, so that moving it is cheaper.
    let net = Net::new(13).input("x", F32, &[2, 3, 4, 3]).values("s", F32, &[], &[0.0625]);
    let net = net.node_with("Transpose", &["x"], "t", &[("perm", &[3, 2, 1, 0])]).node("Pad", &["t", "s"], "y");
    let bytes = net.output_of("y", U8, &[2, 4, 1, 3]).bytes();
    for name in BUILTIN {
        let model = Model::from_bytes(bytes.clone().into(), None).expect("it can be read");
        let target = target(name).expect("it is built in");
        let made = optimize(&model, target.as_ref(), &Options::default()).expect("it can be optimized");
        optimized_again(&made.to_bytes().expect("it is written"), name);
    }
}

#[test]
fn an_order_that_is_none_whatever_the_rank() {
    let net = Net::new(13).input("x", F32, &[2, 3, 4, 5]).symbolic_input("s", I64, &["n"]);
    let net = net.node("Reshape", &["x", "s"], "a").node_with("Transpose", &["a"], "y", &[("perm", &[0, 3, 1, 4])]);
    let bytes = net.output("y", F32).bytes();
    let model = Model::from_bytes(bytes.into(), None).expect("it can be read");
    for name in BUILTIN {
        let made = optimize(&model, target(name).expect("it is built in").as_ref(), &Options::default());
        let said = made.map(|_| ()).expect_err("it is refused").to_string();
        assert!(said.contains("`perm` [0, 3, 1, 4] is not a permutation of 4 axes"), "{said}");
    }
}

#[test]
fn an_output_of_another_rank_than_is_said() {
    // What says the rank is gone from the result, but for the output.
    let net = Net::new(13).symbolic_input("x", F32, &["n"]).symbolic_input("s", I64, &["m"]);
    let net = net.node("Reshape", &["x", "s"], "r").typed("r", F32, &[2, 3, 4, 5]);
    let net = net.node_with("Transpose", &["r"], "t", &[("perm", &[3, 2, 1, 0])]).typed("t", F32, &[5, 4, 3, 2]);
    let net = net.node_with("Transpose", &["t"], "y", &[("perm", &[0, 3, 1, 2])]).output("y", F32);
    let net = net.node_with("Transpose", &["r"], "u", &[("perm", &[0, 2, 3, 1])]);
    let net = net.node_with("Transpose", &["u"], "z", &[("perm", &[0, 3, 1, 2])]).output_of("z", F32, &[2, 3, 5]);
    let bytes = net.bytes();
    for name in BUILTIN {
        let model = Model::from_bytes(bytes.clone().into(), None).expect("it can be read");
        let target = target(name).expect("it is built in");
        let made = optimize(&model, target.as_ref(), &Options::default()).expect("it can be optimized");
        optimized_again(&made.to_bytes().expect("it is written"), name);
    }
}

#[test]
fn the_largest_of_no_elements_is_not_looked_for_along_an_axis_of_any_length() {
    let net = Net::new(13).input("x", F32, &[2]).values("t", F32, &[0, 4, 1 << 32], &[]);
    let all = net.node("ReduceMax", &["t"], "y").output("y", F32);
    let net = Net::new(13).input("x", F32, &[2]).values("t", F32, &[0, 4, 1 << 32], &[]);
    let one = net.node_with("ReduceMax", &["t"], "y", &[("axes", &[2])]).output("y", F32);
    for net in [all, one] {
        let model = Model::from_bytes(net.bytes().into(), None).expect("it can be read");
        optimize(&model, target("onnx").expect("it is built in").as_ref(), &Options::default()).expect("no pass fails");
    }
}
