//! Target `ort-cpu`, `ConvTranspose` as a blocked convolution and a move of whole blocks. Each model is run before and after in ONNX
//! Runtime, as the file stands and with every optimization on load.

use crate::common;
use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::{blocked, count, dear, made_for, optimized_by, refusal, refusal_by, sizes_of, target};
use crate::fold_nets::{F32, Net};
use prost::Message;
use relayout::Numerics;
use relayout_onnx::proto::ModelProto;
use relayout_targets::{Block, OrtCpu};
use std::collections::BTreeMap;

/// Channels of the input and between convolutions: whole blocks on every host.
const WIDE: i64 = 32;

/// Values of these extents with signs, the smaller the more of them add up.
fn weights(net: Net, name: &str, dims: &[i64; 4], sums: i64) -> Net {
    let scale = 1.0 / (3.0 * sums as f32).sqrt();
    let values: Vec<f32> =
        (0..dims.iter().product::<i64>()).map(|i| ((i * 7919 + 3) % 23 - 11) as f32 * scale).collect();
    net.values(name, F32, dims, &values)
}

/// A convolution that keeps the image, with a bias.
fn conv(net: Net, x: &str, y: &str, [from, to]: [i64; 2]) -> Net {
    let [w, b] = ["w", "b"].map(|of| format!("{y}.{of}"));
    let net = weights(net, &w, &[to, from, 3, 3], 9 * from).floats(&b, F32, &[to], true);
    net.node_with("Conv", &[x, &w, &b], y, &[("pads", &[1, 1, 1, 1])])
}

/// What a transposed convolution is told: kernel, stride, pads (starts, then ends), and what is added at the ends.
#[derive(Clone, Copy, Debug)]
struct Told {
    kernel: [i64; 2],
    stride: i64,
    pads: [i64; 4],
    more: [i64; 2],
    bias: bool,
}

impl Told {
    fn square(kernel: i64, stride: i64, pad: i64, more: i64) -> Told {
        Told { kernel: [kernel; 2], stride, pads: [pad; 4], more: [more; 2], bias: true }
    }

    /// From `x` to `y`.
    fn put(&self, net: Net, x: &str, y: &str, [from, to]: [i64; 2]) -> Net {
        let [w, b] = ["w", "b"].map(|of| format!("{y}.{of}"));
        let [kh, kw] = self.kernel;
        let net = weights(net, &w, &[from, to, kh, kw], from * kh * kw / (self.stride * self.stride).min(kh * kw));
        let net = if self.bias { net.floats(&b, F32, &[to], true) } else { net };
        let inputs = [x, &w, &b];
        let inputs = if self.bias { &inputs[..] } else { &inputs[..2] };
        let more: &[(&str, &[i64])] =
            &[("strides", &[self.stride, self.stride]), ("pads", &self.pads), ("output_padding", &self.more)];
        net.node_with("ConvTranspose", inputs, y, more)
    }
}

/// Conv, Relu, `ConvTranspose` and Conv, of so many channels of larger images, whose sizes may be names.
fn upscaler(opset: i64, told: Told, channels: i64, sizes: [&str; 3]) -> Net {
    let net = Net::new(opset).symbolic_input("x", F32, &[sizes[0], &WIDE.to_string(), sizes[1], sizes[2]]);
    let net = conv(net, "x", "a", [WIDE, WIDE]).node("Relu", &["a"], "ra");
    let net = told.put(net, "ra", "s", [WIDE, channels]);
    conv(net, "s", "y", [channels, WIDE]).output("y", F32)
}

/// Reorders into and out of blocks, and transposed convolutions as they are.
fn moves(model: &ModelProto) -> [usize; 3] {
    let all = |op: &str| count(model, op).iter().sum();
    [all("ReorderInput"), all("ReorderOutput"), all("ConvTranspose")]
}

/// What is left where the whole network is in blocks.
const BLOCKED: [usize; 3] = [1, 1, 0];

/// Those whose result is the stride times as large: kernels of 1 to 6, strides of 2 and 3, all pads that fit.
fn all() -> Vec<Told> {
    let mut list = Vec::new();
    for (kernel, stride) in (1..=6).flat_map(|kernel| [(kernel, 2), (kernel, 3)]) {
        for (before, more) in (0..=2).flat_map(|before| (0..stride).map(move |more| (before, more))) {
            let behind = kernel + more - stride - before;
            if (0..=3).contains(&behind) {
                let bias = (kernel + before) % 2 == 0;
                list.push(Told {
                    kernel: [kernel; 2],
                    stride,
                    pads: [before, before, behind, behind],
                    more: [more; 2],
                    bias,
                });
            }
        }
    }
    list
}

/// Whether a file has no transposed convolution, with a network before and after held against each other at any price.
fn is_written(target: &OrtCpu, told: Told) -> bool {
    let net = upscaler(17, told, WIDE, ["2", "7", "5"]);
    moves(&optimized_by(target, &net.bytes(), &BTreeMap::new()).expect("it computes the same"))[2] == 0
}

/// The target with costs by which the op is dearer than any form of it: its sums are priced as those of Add.
fn eager(block: Block) -> OrtCpu {
    dear(block, "elementwise-Add", 64)
}

#[test]
fn phases_compute_what_the_op_does() {
    for block in blocks() {
        assert!(all().len() > 30, "{}", all().len());
        let list = common::thinned(&all(), 2, 0);
        let mixed = Told { kernel: [4, 3], stride: 2, pads: [1, 0, 1, 2], more: [0, 1], bias: true };
        for told in list.iter().chain([&mixed]) {
            assert!(is_written(&eager(block), *told), "{told:?}");
        }
        let usual = target(block);
        let written = list.iter().filter(|told| is_written(&usual, **told)).count();
        // Where windows have few zeros it is worth it.
        assert!(written * 4 > list.len(), "{written} of {}", list.len());
    }
}

#[test]
fn usual_kernels_are_proved_and_stay_in_blocks() {
    for block in blocks() {
        for told in [
            Told::square(2, 2, 0, 0),
            Told { bias: false, ..Told::square(2, 2, 0, 0) },
            Told::square(3, 3, 0, 0),
            Told::square(3, 2, 1, 1),
        ] {
            let net = upscaler(17, told, WIDE, ["1", "12", "12"]);
            let model = optimized_by(&eager(block), &net.bytes(), &BTreeMap::new()).expect("it computes the same");
            assert_eq!((moves(&model), count(&model, "Transpose")), (BLOCKED, [1, 0]), "{told:?}");
            assert_eq!(count(&model, "Conv"), [0, 3], "{told:?}");
            assert_eq!(refusal_by(&eager(block), &net.bytes()), None, "{told:?}");
            // By the built-in costs as well with blocks of 16. See `a_u_net_stays_in_blocks` on blocks of 8.
            let left = moves(&blocked(block, &net));
            assert!(left == BLOCKED || block == Block::B8, "{told:?}");
        }
    }
}

#[test]
fn sizes_may_be_unknown() {
    for block in blocks() {
        for names in [["N", "12", "12"], ["1", "H", "12"], ["1", "H", "W"], ["N", "H", "W"]] {
            for (opset, told) in [(11, Told::square(2, 2, 0, 0)), (17, Told::square(3, 2, 1, 1))] {
                let net = upscaler(opset, told, WIDE, names);
                let sizes = sizes_of(&net, &[("N", 2), ("H", 6), ("W", 7)]);
                let model = optimized_by(&eager(block), &net.bytes(), &sizes).expect("it runs");
                assert_eq!(moves(&model), BLOCKED, "{names:?} {opset}");
                assert_eq!(refusal_by(&eager(block), &net.bytes()), None, "{names:?} {opset}");
            }
        }
    }
}

/// A network that halves an image once and puts what it was beside what the small one becomes.
fn small_u_net() -> Net {
    let net = Net::new(17).input("x", F32, &[1, 3, 32, 32]);
    let net = conv(net, "x", "a", [3, WIDE]).node("Relu", &["a"], "ra");
    let net = net.node_with("MaxPool", &["ra"], "p", &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])]);
    let net = conv(net, "p", "d", [WIDE, 2 * WIDE]).node("Relu", &["d"], "rd");
    let net = Told::square(2, 2, 0, 0).put(net, "rd", "u", [2 * WIDE, WIDE]);
    let net = net.node_with("Concat", &["ra", "u"], "both", &[("axis", &[1])]);
    let net = conv(net, "both", "e", [2 * WIDE, WIDE]).node("Relu", &["e"], "re");
    conv(net, "re", "y", [WIDE, WIDE]).output("y", F32)
}

#[test]
fn a_u_net_stays_in_blocks() {
    for block in blocks() {
        let net = small_u_net();
        let model = blocked(block, &net);
        // The first convolution reads three ordinary channels. With blocks of 8 the move to pixels copies twice as many runs, each half
        // as long, and the op stays between two moves. Measured: 52 us, and 61 us in blocks; with blocks of 16 55 us and 48 us.
        let left = if block == Block::B16 { [0, 1, 0] } else { [1, 2, 1] };
        assert_eq!(moves(&model), left);
        assert_eq!(refusal(block, &net.bytes()), None);
    }
}

#[test]
fn another_order_of_sums_has_to_be_allowed() {
    for block in blocks() {
        let target = eager(block);
        for (numerics, left) in [(Numerics::Exact, 1), (Numerics::Reassociate, 0)] {
            let made = made_for(&target, &small_u_net().bytes(), numerics);
            let model = ModelProto::decode(made.as_slice()).expect("a model");
            assert_eq!(count(&model, "ConvTranspose"), [left, 0]);
        }
    }
}

#[test]
fn a_long_kernel_stays_as_it_is_where_its_zeros_cost_more_than_moves() {
    for block in blocks() {
        // 36 taps for 16. Measured with 128 channels to 64 on images of 16 pixels a side: 1.6 times as long as the op and its moves.
        let net = Net::new(17).input("x", F32, &[1, 128, 16, 16]);
        let net = conv(net, "x", "a", [128, 128]);
        let net = Told::square(4, 2, 1, 0).put(net, "a", "s", [128, 64]);
        let net = conv(net, "s", "y", [64, WIDE]).output("y", F32);
        assert_eq!(moves(&blocked(block, &net))[2], 1);
    }
}

#[test]
fn near_misses_stay_as_they_are() {
    for block in blocks() {
        let told = |kernel, pads, more| Told { kernel: [kernel; 2], stride: 2, pads, more: [more; 2], bias: true };
        for told in [told(3, [0; 4], 0), told(2, [0; 4], 1), told(4, [1, 1, 0, 0], 0), Told::square(3, 1, 1, 0)] {
            assert_eq!(moves(&blocked(block, &upscaler(17, told, WIDE, ["1", "12", "12"])))[2], 1, "{told:?}");
        }
        assert_eq!(
            moves(&blocked(block, &upscaler(17, Told::square(2, 2, 0, 0), 24, ["1", "12", "12"])))[2],
            1,
            "channels"
        );
        let with = |weights: &[i64], group: &[(&str, &[i64])]| {
            let net = Net::new(17).input("x", F32, &[1, WIDE, 12, 12]).input("own", F32, &[WIDE, 32, 2, 2]);
            let net = conv(net, "x", "a", [WIDE, WIDE]).floats("w", F32, weights, true);
            let name = if weights.is_empty() { "own" } else { "w" };
            let told: Vec<(&str, &[i64])> =
                [("strides", &[2, 2][..])].into_iter().chain(group.iter().copied()).collect();
            conv(net.node_with("ConvTranspose", &["a", name], "s", &told), "s", "y", [32, WIDE]).output("y", F32)
        };
        for (what, net) in [
            ("groups", with(&[WIDE, 16, 2, 2], &[("group", &[2])])),
            ("computed weights", with(&[], &[])),
            ("gaps", with(&[WIDE, 32, 2, 2], &[("dilations", &[2, 2]), ("pads", &[0, 0, 1, 1])])),
            ("a shape that is said", with(&[WIDE, 32, 2, 2], &[("output_shape", &[24, 24])])),
        ] {
            assert_eq!(moves(&blocked(block, &net))[2], 1, "{what}");
        }
    }
}
