//! Models that can be read and that no runtime would run: no target fails on them.

mod fold_nets;

use fold_nets::{F32, Net};
use relayout::targets::BUILTIN;
use relayout::{Model, Options, optimize, target};

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

#[test]
fn more_or_fewer_numbers_than_channels() {
    for numbers in [0, 1, 3, 4, 5, 8] {
        let scales = vec![1.0; numbers];
        for (what, net) in [("quantized", quantized(&scales)), ("normalized", normalized(&scales))] {
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
