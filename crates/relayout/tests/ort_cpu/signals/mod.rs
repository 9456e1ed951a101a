//! Target `ort-cpu` on signals, `[N, C, L]`: convolutions and what stands around them run as blocked ones over images of one row.
//! Each model is run before and after in ONNX Runtime, as the file stands and with every optimization on load.

use crate::fold_nets;
mod random;

use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::{blocked, count, made_for, optimized, sizes_of, target};
use crate::fold_nets::{BOOL, F32, Net};
use relayout::Numerics;
use relayout_targets::builtin;

/// Attributes of an op of signals.
#[derive(Clone, Debug)]
struct Windows {
    kernel: i64,
    stride: i64,
    dilation: i64,
    pads: [i64; 2],
    group: i64,
}

impl Windows {
    /// Windows that keep the length.
    fn same(kernel: i64) -> Windows {
        Windows { kernel, stride: 1, dilation: 1, pads: [(kernel - 1) / 2, kernel / 2], group: 1 }
    }

    fn of_pool(&self) -> [(&'static str, &[i64]); 3] {
        let one = std::slice::from_ref;
        [("kernel_shape", one(&self.kernel)), ("strides", one(&self.stride)), ("pads", &self.pads)]
    }

    fn of_conv(&self) -> Vec<(&'static str, &[i64])> {
        let one = std::slice::from_ref;
        let more: [(&'static str, &[i64]); 2] = [("dilations", one(&self.dilation)), ("group", one(&self.group))];
        self.of_pool().into_iter().chain(more).collect()
    }

    fn weights(&self, m: i64, c: i64) -> [i64; 3] {
        [m, c / self.group, self.kernel]
    }

    fn left(&self, length: i64) -> Option<i64> {
        let room = length + self.pads[0] + self.pads[1] - (self.kernel - 1) * self.dilation - 1;
        (room >= 0).then(|| room / self.stride + 1)
    }
}

/// Reorders, whose number says whether a chain stays in blocks.
fn reorders(model: &relayout_onnx::proto::ModelProto) -> [usize; 2] {
    ["ReorderInput", "ReorderOutput"].map(|op| count(model, op)[1])
}

/// A convolution to `c` channels, one with these windows to `m`, an activation, and one back.
fn around(windows: &Windows, [c, m]: [i64; 2], [n, length]: [i64; 2]) -> Net {
    let three = Windows::same(3);
    Net::new(17)
        .input("x", F32, &[n, 16, length])
        .floats("w0", F32, &three.weights(c, 16), true)
        .floats("w1", F32, &windows.weights(m, c), true)
        .floats("b1", F32, &[m], true)
        .floats("w2", F32, &three.weights(16, m), true)
        .node_with("Conv", &["x", "w0"], "a", &three.of_conv())
        .node_with("Conv", &["a", "w1", "b1"], "b", &windows.of_conv())
        .node("Relu", &["b"], "c")
        .node_with("Conv", &["c", "w2"], "y", &three.of_conv())
        .output("y", F32)
}

#[test]
fn windows_of_any_kind_read_what_they_should() {
    for block in blocks() {
        let same = Windows::same(3);
        for windows in [
            same.clone(),
            Windows { stride: 2, ..same.clone() },
            Windows { dilation: 3, pads: [3, 3], ..same.clone() },
            Windows { dilation: 2, pads: [4, 0], ..same.clone() },
            Windows { pads: [0, 0], ..same },
            Windows { stride: 3, pads: [1, 4], ..Windows::same(7) },
            Windows { stride: 2, ..Windows::same(2) },
            Windows { stride: 2, ..Windows::same(1) },
            Windows::same(1),
            Windows::same(15),
        ] {
            for (channels, sizes) in [([32, 48], [1, 200]), ([60, 45], [2, 161])] {
                let model = blocked(block, &around(&windows, channels, sizes));
                assert_eq!(
                    (count(&model, "Conv"), count(&model, "Relu")),
                    ([0, 3], [0, 0]),
                    "{windows:?} {channels:?}"
                );
                assert_eq!((reorders(&model), count(&model, "Reshape")), ([1, 1], [2, 0]), "{windows:?} {channels:?}");
            }
        }
    }
}

#[test]
fn groups_are_whole_blocks_a_channel_each_or_made_wider() {
    for block in blocks() {
        for group in [2, 64, 16] {
            for kernel in [1, 3, 9] {
                let model = blocked(block, &around(&Windows { group, ..Windows::same(kernel) }, [64, 64], [1, 200]));
                assert_eq!(
                    (count(&model, "Conv"), reorders(&model)),
                    ([0, 3], [1, 1]),
                    "{group} groups, kernel {kernel}"
                );
            }
        }
    }
}

#[test]
fn padding_that_the_runtime_finds_is_that_of_one_row_and_weights_may_be_turned() {
    for block in blocks() {
        for automatic in ["SAME_UPPER", "SAME_LOWER", "VALID"] {
            let net = Net::new(17)
                .input("x", F32, &[1, 32, 201])
                .floats("wio", F32, &[4, 32, 64], true)
                .node_with("Transpose", &["wio"], "w", &[("perm", &[2, 1, 0])])
                .node_with("Conv", &["x", "w"], "y", &[("kernel_shape", &[4]), ("strides", &[2])])
                .text_attribute("auto_pad", automatic)
                .output("y", F32);
            assert_eq!(count(&blocked(block, &net), "Conv"), [0, 1], "{automatic}");
        }
    }
}

/// A convolution of an input of a few channels, what two more make of it and their sum, which another one reads.
fn residual(batch: &str, length: &str) -> Net {
    let (first, three) = (Windows { stride: 2, ..Windows::same(9) }, Windows::same(3));
    Net::new(13)
        .symbolic_input("x", F32, &[batch, "3", length])
        .floats("w0", F32, &first.weights(32, 3), true)
        .floats("w1", F32, &three.weights(32, 32), true)
        .floats("w2", F32, &three.weights(32, 32), true)
        .node_with("Conv", &["x", "w0"], "a", &first.of_conv())
        .node("Relu", &["a"], "b")
        .node_with("Conv", &["b", "w1"], "c", &three.of_conv())
        .node("LeakyRelu", &["c"], "d")
        .node_with("Conv", &["d", "w2"], "e", &three.of_conv())
        .node("Add", &["e", "b"], "f")
        .node("Relu", &["f"], "g")
        .floats("w3", F32, &[16, 32, 1], true)
        .node("Conv", &["g", "w3"], "y")
        .output("y", F32)
}

#[test]
fn batch_and_length_may_be_symbols_and_sums_are_taken_in() {
    for block in blocks() {
        for (batch, length, sizes) in
            [("N", "400", [3, 400]), ("1", "L", [1, 333]), ("N", "L", [2, 90]), ("2", "400", [2, 400])]
        {
            let net = residual(batch, length);
            let dims = sizes_of(&net, &[("N", sizes[0]), ("L", sizes[1])]);
            let model = optimized(block, &net.bytes(), &dims).expect("it computes the same");
            assert_eq!(count(&model, "Conv"), [0, 4], "{batch} {length}");
            let left = ["Add", "Relu", "LeakyRelu"].map(|op| count(&model, op)[0]);
            // A few channels are read as they are.
            assert_eq!((left, reorders(&model)), ([0, 0, 0], [0, 1]), "{batch} {length}");
        }
    }
}

/// What stands between a convolution to `c` channels and one of as many.
fn between(c: i64, n: i64, middle: impl FnOnce(Net) -> Net) -> Net {
    let five = Windows::same(5);
    let net = Net::new(17)
        .input("x", F32, &[n, 16, 120])
        .floats("w0", F32, &five.weights(c, 16), true)
        .floats("w1", F32, &five.weights(24, c), true)
        .node_with("Conv", &["x", "w0"], "a", &five.of_conv());
    middle(net).node_with("Conv", &["b", "w1"], "y", &five.of_conv()).output("y", F32)
}

#[test]
fn pools_and_scales_stay_in_blocks() {
    for block in blocks() {
        let ceil: (&str, &[i64]) = ("ceil_mode", &[1]);
        for (c, n) in [(48, 1), (60, 2)] {
            let three = Windows { stride: 2, ..Windows::same(3) };
            let norm = |net: Net| {
                let vectors = ["scale", "shift", "mean", "variance"];
                let net = vectors.iter().fold(net, |net, name| net.floats(name, F32, &[c], false));
                net.node("Tanh", &["a"], "t").node(
                    "BatchNormalization",
                    &["t", "scale", "shift", "mean", "variance"],
                    "b",
                )
            };
            let scale =
                |net: Net| net.floats("s", F32, &[c, 1], false).node("Tanh", &["a"], "t").node("Mul", &["s", "t"], "b");
            let shift = |net: Net| {
                net.floats("s", F32, &[1, c, 1], true).node("Tanh", &["a"], "t").node("Sub", &["t", "s"], "b")
            };
            let pool = |op: &'static str, more: Option<(&'static str, &'static [i64])>| {
                let windows = three.clone();
                move |net: Net| {
                    net.node_with(op, &["a"], "b", &windows.of_pool().into_iter().chain(more).collect::<Vec<_>>())
                }
            };
            let nets = [
                ("norm", between(c, n, norm)),
                ("scale", between(c, n, scale)),
                ("shift", between(c, n, shift)),
                ("maximum", between(c, n, pool("MaxPool", None))),
                ("rounded up", between(c, n, pool("MaxPool", Some(ceil)))),
                ("mean", between(c, n, pool("AveragePool", None))),
            ];
            for (what, net) in nets {
                let model = blocked(block, &net);
                assert_eq!(reorders(&model), [1, 1], "{what} of {c} channels");
                let plain =
                    ["BatchNormalization", "Mul", "Sub", "MaxPool", "AveragePool"].map(|op| count(&model, op)[0]);
                assert_eq!(plain, [0; 5], "{what} of {c} channels");
            }
        }
    }
}

#[test]
fn a_slope_for_all_channels_is_an_activation_and_those_of_each_are_products() {
    for block in blocks() {
        for (slopes, extremes) in [(1, 0), (48, 1)] {
            let model = blocked(
                block,
                &between(48, 2, |net| net.floats("slope", F32, &[slopes, 1], true).node("PRelu", &["a", "slope"], "b")),
            );
            assert_eq!(count(&model, "PRelu"), [0, 0], "{slopes} slopes");
            let found = count(&model, "Max")[0] + count(&model, "Min")[0];
            assert_eq!((found, reorders(&model)), (extremes, [1, 1]), "{slopes} slopes");
        }
    }
}

#[test]
fn squeezed_signals_scale_what_they_are_of() {
    for block in blocks() {
        for (c, n) in [(48, 1), (32, 3)] {
            let one = Windows::same(1);
            let model = blocked(
                block,
                &between(c, n, |net| {
                    net.floats("down", F32, &one.weights(16, c), true)
                        .floats("up", F32, &one.weights(c, 16), true)
                        .node_with("ReduceMean", &["a"], "m", &[("axes", &[-1]), ("keepdims", &[1])])
                        .node_with("Conv", &["m", "down"], "d", &one.of_conv())
                        .node("Relu", &["d"], "r")
                        .node_with("Conv", &["r", "up"], "u", &one.of_conv())
                        .node("Sigmoid", &["u"], "s")
                        .node("Mul", &["a", "s"], "b")
                }),
            );
            assert_eq!((reorders(&model), count(&model, "Mul")), ([1, 1], [0, 0]), "{c} channels");
            assert_eq!(count(&model, "GlobalAveragePool"), [0, 1], "{c} channels");
        }
    }
}

#[test]
fn padded_cut_split_and_joined_signals_stay_in_blocks() {
    for block in blocks() {
        for (c, n, mode) in [(60, 2, "edge"), (32, 1, "reflect")] {
            let padded = between(c, n, |net| {
                let net = net.ints("p", &[0, 0, 3, 0, 0, 5]).node("Pad", &["a", "p"], "b");
                net.text_attribute("mode", mode)
            });
            let model = blocked(block, &padded);
            assert_eq!((reorders(&model), count(&model, "Pad")), ([1, 1], [1, 0]), "{mode}");
            assert_eq!(count(&model, "Reshape"), [4, 0], "{mode}");
        }
        let cut = between(32, 1, |net| {
            let net = net.ints("from", &[3]).ints("to", &[-2]).ints("axis", &[-1]).ints("step", &[2]);
            net.node("Slice", &["a", "from", "to", "axis", "step"], "b")
        });
        let model = blocked(block, &cut);
        // Two Reshapes at the ends, and two around the Slice.
        assert_eq!((reorders(&model), count(&model, "Reshape")), ([1, 1], [4, 0]));
        let parted =
            between(64, 1, |net| {
                net.node_with("Split", &["a"], "p", &[("axis", &[-2])])
                    .also("q")
                    .node("Sigmoid", &["q"], "s")
                    .node_with("Concat", &["s", "p"], "b", &[("axis", &[1])])
            });
        let model = blocked(block, &parted);
        assert_eq!((reorders(&model), count(&model, "Reshape")), ([1, 1], [2, 0]));
    }
}

#[test]
fn means_that_drop_the_length_are_pools() {
    for block in blocks() {
        // A pool adds one after another, so that the mean of a long signal would lose more than two bits.
        for (c, op, axes, length, left) in
            [(48, "ReduceMean", 2, 128, 0), (48, "ReduceMean", 2, 300, 1), (20, "ReduceMax", -1, 300, 0)]
        {
            let five = Windows::same(5);
            let net = Net::new(17)
                .input("x", F32, &[2, 16, length])
                .floats("w", F32, &five.weights(c, 16), true)
                .floats("m", F32, &[c, 10], true)
                .node_with("Conv", &["x", "w"], "a", &five.of_conv())
                .node("Relu", &["a"], "b")
                .node_with(op, &["b"], "c", &[("axes", &[axes]), ("keepdims", &[0])])
                .node("MatMul", &["c", "m"], "y")
                .output("y", F32);
            let model = blocked(block, &net);
            assert_eq!((count(&model, "Conv"), count(&model, op)), ([0, 1], [left, 0]), "{op} {length}");
        }
    }
}

#[test]
fn signals_with_their_channels_last_are_packed_from_there() {
    for block in blocks() {
        let three = Windows::same(3);
        // The same there and back.
        let turned: (&str, &[i64]) = ("perm", &[0, 2, 1]);
        let net = Net::new(17)
            .input("x", F32, &[2, 150, 32])
            .floats("w0", F32, &three.weights(48, 32), true)
            .floats("bias", F32, &[48], true)
            .floats("w1", F32, &three.weights(32, 48), true)
            .node_with("Transpose", &["x"], "a", &[turned])
            .node_with("Conv", &["a", "w0"], "b", &three.of_conv())
            .node_with("Transpose", &["b"], "c", &[turned])
            .node("Tanh", &["c"], "t")
            .node("Add", &["t", "bias"], "d")
            .node("Sigmoid", &["d"], "e")
            .node_with("Transpose", &["e"], "f", &[turned])
            .node_with("Conv", &["f", "w1"], "g", &three.of_conv())
            .node_with("Transpose", &["g"], "y", &[turned])
            .output("y", F32);
        let model = blocked(block, &net);
        assert_eq!((count(&model, "Transpose"), reorders(&model)), ([0, 0], [1, 1]));
    }
}

#[test]
fn bodies_and_outputs_read_signals_as_they_are_declared() {
    for block in blocks() {
        let three = Windows::same(3);
        let branch = |op: &str| Net::new(17).node(op, &["b"], "r").output("r", F32);
        let net = Net::new(17)
            .input("x", F32, &[1, 16, 200])
            .input("which", BOOL, &[])
            .floats("w0", F32, &three.weights(32, 16), true)
            .floats("w1", F32, &three.weights(32, 32), true)
            .node_with("Conv", &["x", "w0"], "a", &three.of_conv())
            .node("Sigmoid", &["a"], "b")
            .node_with("Conv", &["b", "w1"], "c", &three.of_conv())
            .branches("which", "d", &branch("Tanh"), &branch("Neg"))
            .node("Mul", &["c", "d"], "e")
            .node_with("Conv", &["e", "w1"], "y", &three.of_conv())
            .node("Shape", &["c"], "extents")
            .output("y", F32)
            .output("b", F32)
            .output("extents", fold_nets::I64);
        assert_eq!(count(&blocked(block, &net), "Conv"), [0, 3]);
    }
}

#[test]
fn other_targets_and_exact_results_leave_signals_alone() {
    for block in blocks() {
        let bytes = around(&Windows::same(3), [32, 64], [1, 200]).bytes();
        let own = target(block);
        assert!(made_for(&own, &bytes, Numerics::Exact) == bytes, "every bit has to stay");
        assert!(made_for(&own, &bytes, Numerics::Reassociate) != bytes, "the target has kernels");
        let onnx = builtin("onnx").expect("a built-in target");
        assert!(made_for(onnx.as_ref(), &bytes, Numerics::Reassociate) == bytes, "the target has none");
    }
}
