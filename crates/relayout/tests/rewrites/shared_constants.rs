//! Weights that several nodes share stay one tensor of the file when what is done to them is folded.

use crate::fold_nets::{F32, I8, Net, compare};
use prost::Message;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::proto::ModelProto;

/// What is made of a model for a target, held against it in ONNX Runtime.
fn made(net: &Net, name: &str) -> ModelProto {
    let bytes = net.bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let target = target(name).expect("a built-in target");
    let result = optimize(&model, target.as_ref(), &Options::default()).expect("it is optimized");
    let result = result.to_bytes().expect("it is written");
    assert!(compare(&bytes, &result).rms < 1e-6);
    ModelProto::decode(result.as_slice()).expect("a model")
}

fn weights(model: &ModelProto, dims: &[i64]) -> usize {
    let initializers = model.graph.as_ref().map_or(&[][..], |graph| &graph.initializer);
    initializers.iter().filter(|tensor| tensor.dims == dims).count()
}

/// Layers that each take the same weights through an op of their own, with heads that come and go.
fn layers(op: &str, attributes: &[(&str, &[i64])]) -> Net {
    let mut net = Net::new(13).input("x", F32, &[1, 64, 64]).floats("w", F32, &[64, 64], true);
    net = net.ints("heads", &[1, 64, 4, 16]).ints("flat", &[1, 64, 64]);
    let mut before = "x".to_owned();
    for at in 0..3 {
        let name = |what: &str| format!("{what}{at}");
        net = net.node_with(op, &["w"], &name("w"), attributes).node("MatMul", &[&before, &name("w")], &name("a"));
        net = net.node("Reshape", &[&name("a"), "heads"], &name("h"));
        net = net.node_with("Transpose", &[&name("h")], &name("t"), &[("perm", &[0, 2, 1, 3])]);
        net = net.node_with("Softmax", &[&name("t")], &name("s"), &[("axis", &[-1])]);
        net = net.node_with("Transpose", &[&name("s")], &name("u"), &[("perm", &[0, 2, 1, 3])]);
        net = net.node("Reshape", &[&name("u"), "flat"], &name("y"));
        before = name("y");
    }
    net.output(&before, F32)
}

#[test]
fn weights_that_layers_share_are_stored_once() {
    let turned: &[(&str, &[i64])] = &[("perm", &[1, 0])];
    for (op, attributes) in [("Identity", &[][..]), ("Neg", &[]), ("Transpose", turned)] {
        let net = layers(op, attributes);
        for target in ["onnx", "ort-cpu"] {
            let made = made(&net, target);
            assert_eq!(weights(&made, &[64, 64]), 1, "{op} for {target}");
        }
    }
}

#[test]
fn weights_that_differ_and_those_that_the_model_stores_twice_stay_as_many() {
    let mut net = layers("Neg", &[]).floats("v", F32, &[64, 64], false);
    net = net.node("Neg", &["v"], "nv").node("MatMul", &["x", "nv"], "other").output("other", F32);
    net = net.floats("first", F32, &[64, 32], true).floats("second", F32, &[64, 32], true);
    net = net.node("MatMul", &["x", "first"], "z").output("z", F32);
    net = net.node("MatMul", &["x", "second"], "zz").output("zz", F32);
    let made = made(&net, "onnx");
    assert_eq!((weights(&made, &[64, 64]), weights(&made, &[64, 32])), (2, 2));
}

/// Layers whose weights are of 8 bits, cast and scaled in the file, behind a first one of 32 bits.
fn cast_layers(count: usize) -> Net {
    let mut net = Net::new(13).input("x", F32, &[4, 96]).floats("first", F32, &[96, 96], true);
    net = net.node("MatMul", &["x", "first"], "y0").values("scale", F32, &[1], &[0.25]);
    for at in 0..count {
        let name = |what: &str, at: usize| format!("{what}{at}");
        let steps: Vec<f32> = (0..96 * 96).map(|i| ((i * 7 + at) % 11) as f32 - 5.0).collect();
        net = net.values(&name("w", at), I8, &[96, 96], &steps);
        net = net.node_with("Cast", &[&name("w", at)], &name("c", at), &[("to", &[1])]);
        net = net.node("Mul", &[&name("c", at), "scale"], &name("s", at));
        net = net.node("MatMul", &[&name("y", at), &name("s", at)], &name("m", at));
        net = net.node("Relu", &[&name("m", at)], &name("y", at + 1));
    }
    net.output(&format!("y{count}"), F32)
}

#[test]
fn weights_of_8_bits_stay_that_where_they_are_much_of_the_file() {
    for target in ["onnx", "ort-cpu"] {
        let made = made(&cast_layers(3), target);
        let initializers = made.graph.as_ref().map_or(&[][..], |graph| &graph.initializer);
        let bytes = initializers.iter().filter(|tensor| tensor.data_type == Some(I8) && tensor.dims == [96, 96]);
        assert_eq!(bytes.count(), 3, "{target}");
    }
}
