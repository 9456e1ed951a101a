//! `PRelu` between blocked convolutions, run before and after in ONNX Runtime: slopes of all kinds, and what stays as it is.

use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::{made_for, optimized, refusal, target};
use crate::fold_nets::{F32, Net};
use relayout::{Model, Numerics, Options, optimize};
use relayout_onnx::proto::ModelProto;
use std::collections::BTreeMap;

/// The slope of a channel.
type Slope<'a> = &'a dyn Fn(usize) -> f32;

/// Channels between the convolutions.
const WIDE: usize = 32;

/// Two convolutions of images of `side` rows and columns, and a `PRelu` with these slopes of these extents between them.
fn network(opset: i64, side: i64, slopes: &[f32], dims: &[i64]) -> Net {
    let wide = WIDE as i64;
    let conv = |net: Net, from: &str, to: &str| {
        let weights = format!("{to}.weights");
        let net = net.floats(&weights, F32, &[wide, wide, 3, 3], true);
        net.node_with("Conv", &[from, &weights], to, &[("pads", &[1, 1, 1, 1])])
    };
    let net = conv(Net::new(opset).input("x", F32, &[1, wide, side, side]), "x", "c");
    let net = net.values("slopes", F32, dims, slopes).node("PRelu", &["c", "slopes"], "p");
    conv(net, "p", "y").output("y", F32)
}

fn slopes(of: impl Fn(usize) -> f32) -> Vec<f32> {
    (0..WIDE).map(of).collect()
}

fn counts(model: &ModelProto, ops: &[&str]) -> Vec<usize> {
    let nodes = model.graph.as_ref().map_or(&[][..], |graph| &graph.node);
    ops.iter().map(|op| nodes.iter().filter(|n| n.op_type() == *op).count()).collect()
}

const OPS: &[&str] = &["PRelu", "Max", "Min", "ReorderInput", "ReorderOutput"];

#[test]
fn slopes_of_channels_stay_in_blocks() {
    for block in blocks() {
        let each = [WIDE as i64, 1, 1];
        let below = |at: usize| 0.25 + at as f32 / 100.0;
        let negative = |at: usize| if at.is_multiple_of(3) { -0.5 } else { 0.125 };
        let above = |at: usize| 0.5 + at as f32 / 16.0;
        let none = |at: usize| if at.is_multiple_of(5) { 0.0 } else { 0.25 };
        let cases: [(&str, Slope<'_>, [usize; 5]); 4] = [
            ("below one", &below, [0, 1, 0, 1, 1]),
            ("some below zero", &negative, [0, 1, 0, 1, 1]),
            ("some above one", &above, [0, 0, 1, 1, 1]),
            ("some zero", &none, [0, 0, 1, 1, 1]),
        ];
        for (what, slope, left) in cases {
            for opset in [9, 13, 17] {
                let net = network(opset, 12, &slopes(slope), &each);
                let made = optimized(block, &net.bytes(), &BTreeMap::new()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(counts(&made, OPS), left, "{what} {opset}");
            }
            assert_eq!(refusal(block, &network(17, 12, &slopes(slope), &each).bytes()), None, "{what}");
        }
        // Min does not broadcast yet.
        let made =
            optimized(block, &network(7, 12, &slopes(above), &each).bytes(), &BTreeMap::new()).expect("it is right");
        assert_eq!(counts(&made, &["PRelu", "Min"]), [1, 0]);
    }
}

#[test]
fn one_slope_is_that_of_a_leaky_relu() {
    for block in blocks() {
        for (values, dims) in [(slopes(|_| 0.25), vec![WIDE as i64, 1, 1]), (vec![1.5], vec![1]), (vec![-0.5], vec![])]
        {
            let net = network(17, 12, &values, &dims);
            let made = optimized(block, &net.bytes(), &BTreeMap::new()).expect("it is right");
            assert_eq!(counts(&made, OPS), [0, 0, 0, 1, 1], "{dims:?}");
            assert_eq!(refusal(block, &net.bytes()), None, "{dims:?}");
        }
    }
}

#[test]
fn few_elements_and_unknown_slopes_stay() {
    for block in blocks() {
        let target = target(block);
        let told = |net: &Net| {
            let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
            let made = optimize(&model, &target, &Options::default()).expect("it is optimized");
            made.report().rewrites.contains_key("write_out_prelu")
        };
        let each = [WIDE as i64, 1, 1];
        let below = slopes(|at| 0.25 + at as f32 / 100.0);
        assert!(told(&network(17, 12, &below, &each)));
        assert!(!told(&network(17, 4, &below, &each)));
        for odd in [f32::INFINITY, f32::NAN] {
            assert!(!told(&network(17, 12, &slopes(|at| if at == 3 { odd } else { 0.25 }), &each)), "{odd}");
        }
        // One image, and slopes for two: the result has more than the numbers.
        assert!(!told(&network(17, 12, &[0.25; 2], &[2, 1, 1, 1])));
        let fed = Net::new(17).input("x", F32, &[1, 32, 12, 12]).input("slopes", F32, &[32, 1, 1]);
        let fed = fed.node("PRelu", &["x", "slopes"], "y").output("y", F32);
        assert_eq!(made_for(&target, &fed.bytes(), Numerics::Reassociate), fed.bytes());
    }
}
