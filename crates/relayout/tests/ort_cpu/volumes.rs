//! Target `ort-cpu` on volumes, `[N, C, D, H, W]`: convolutions and maxima over frames run as blocked ones over images. Each model is
//! run before and after in ONNX Runtime, as the file stands and with every optimization on load.

use crate::common;
use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::{blocked, count, made_for, optimized, refusal, sizes_of, target};
use crate::fold_nets::{F32, Net};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use relayout::Numerics;
use relayout_targets::{Block, builtin};
use std::cell::Cell;

/// Attributes of an op of volumes.
#[derive(Clone, Debug)]
struct Windows {
    kernel: [i64; 3],
    strides: [i64; 3],
    dilations: [i64; 3],
    pads: [i64; 6],
    group: i64,
}

impl Windows {
    /// Windows that keep the extents.
    fn same(kernel: [i64; 3]) -> Windows {
        let [d, h, w] = kernel.map(|k| k / 2);
        Windows { kernel, strides: [1; 3], dilations: [1; 3], pads: [d, h, w, d, h, w], group: 1 }
    }

    fn of_pool(&self) -> [(&'static str, &[i64]); 4] {
        [
            ("kernel_shape", &self.kernel),
            ("strides", &self.strides),
            ("dilations", &self.dilations),
            ("pads", &self.pads),
        ]
    }

    fn of_conv(&self) -> Vec<(&'static str, &[i64])> {
        let group: (&'static str, &[i64]) = ("group", std::slice::from_ref(&self.group));
        self.of_pool().into_iter().chain([group]).collect()
    }

    fn weights(&self, m: i64, c: i64) -> [i64; 5] {
        let [d, h, w] = self.kernel;
        [m, c / self.group, d, h, w]
    }

    fn left(&self, extents: [i64; 3]) -> Option<[i64; 3]> {
        let along = |i: usize| {
            let window = (self.kernel[i] - 1) * self.dilations[i] + 1;
            let room = extents[i] + self.pads[i] + self.pads[i + 3] - window;
            (room >= 0).then(|| room / self.strides[i] + 1)
        };
        Some([along(0)?, along(1)?, along(2)?])
    }
}

/// A convolution to 32 channels in images, one with these windows to `m`, an activation, and one in images back.
fn around(windows: &Windows, [c, m]: [i64; 2], [n, d, h, w]: [i64; 4]) -> Net {
    let images = Windows::same([1, 3, 3]);
    Net::new(17)
        .input("x", F32, &[n, 16, d, h, w])
        .floats("w0", F32, &images.weights(c, 16), true)
        .floats("w1", F32, &windows.weights(m, c), true)
        .floats("b1", F32, &[m], true)
        .floats("w2", F32, &images.weights(16, m), true)
        .node_with("Conv", &["x", "w0"], "a", &images.of_conv())
        .node_with("Conv", &["a", "w1", "b1"], "b", &windows.of_conv())
        .node("Relu", &["b"], "c")
        .node_with("Conv", &["c", "w2"], "y", &images.of_conv())
        .output("y", F32)
}

#[test]
fn a_convolution_of_volumes_is_one_of_images_and_takes_in_what_follows() {
    for block in blocks() {
        let model = blocked(block, &around(&Windows::same([3, 3, 3]), [32, 64], [1, 6, 14, 14]));
        assert_eq!((count(&model, "Conv"), count(&model, "Relu")), ([0, 3], [0, 0]));
        assert_eq!((count(&model, "Pad"), count(&model, "Gather")), ([1, 0], [1, 0]));
        assert_eq!((count(&model, "ReorderInput"), count(&model, "ReorderOutput")), ([0, 1], [0, 1]));
    }
}

#[test]
fn windows_of_any_kind_read_the_frames_that_they_should() {
    for block in blocks() {
        let same = Windows::same([3, 3, 3]);
        let all = [
            Windows { strides: [2, 2, 2], ..same.clone() },
            Windows { dilations: [2, 1, 2], pads: [2, 1, 2, 2, 1, 2], ..same.clone() },
            Windows { pads: [2, 0, 1, 0, 1, 1], ..same.clone() },
            Windows { pads: [0; 6], ..same.clone() },
            Windows { pads: [0, 1, 1, 3, 1, 1], strides: [3, 1, 2], ..same.clone() },
            Windows::same([1, 3, 3]),
            Windows { strides: [2, 1, 1], ..Windows::same([1, 3, 3]) },
            Windows { strides: [2, 2, 2], ..Windows::same([1, 1, 1]) },
            Windows::same([3, 1, 1]),
            Windows { strides: [2, 1, 1], pads: [0, 0, 0, 1, 0, 0], ..Windows::same([3, 1, 1]) },
            Windows { kernel: [2, 3, 5], pads: [1, 0, 2, 0, 1, 3], ..same },
        ];
        for (at, windows) in all.iter().enumerate() {
            let ends = [([32, 48], [1, 5, 14, 14]), ([20, 33], [2, 4, 9, 15])];
            for (channels, sizes) in common::thinned(&ends, 2, at) {
                let net = around(windows, channels, sizes);
                // Nine pairs of a frame and a tap are worth a node each, where a frame is no part of a block.
                let apart = windows.kernel == [2, 3, 5] && channels[1] % block.channels() as i64 == 0;
                let convolutions = if apart { 2 + 9 } else { 3 };
                assert_eq!(count(&blocked(block, &net), "Conv"), [0, convolutions], "{windows:?} {channels:?}");
                // The checker does not know yet strides over frames of windows that hold one pixel of each.
                let known = windows.strides[0] == 1 || windows.kernel[0] == 1 || windows.kernel[1] > 1;
                let refused = refusal(block, &net.bytes()).filter(|_| known);
                assert_eq!(refused, None, "{windows:?} {channels:?}");
            }
        }
    }
}

#[test]
fn fewer_frames_than_taps_are_channels_of_one_image() {
    for block in blocks() {
        for (d, pads) in [(1, 1), (2, 1), (2, 2), (3, 0)] {
            let windows = Windows { pads: [pads, 1, 1, pads, 1, 1], ..Windows::same([3, 3, 3]) };
            for (channels, n) in [([32, 48], 1), ([20, 33], 2)] {
                let net = around(&windows, channels, [n, d, 14, 14]);
                let model = blocked(block, &net);
                assert_eq!(refusal(block, &net.bytes()), None, "{d} frames, {channels:?}");
                assert_eq!(
                    (count(&model, "Conv"), count(&model, "Gather")),
                    ([0, 3], [0, 0]),
                    "{d} frames, {channels:?}"
                );
            }
        }
    }
}

#[test]
fn groups_run_where_a_frame_reads_one_frame_or_one_pixel() {
    for block in blocks() {
        for (kernel, group, runs) in [
            ([1, 3, 3], 2, true),
            ([1, 3, 3], 64, true),
            ([3, 1, 1], 2, true),
            ([3, 1, 1], 64, true),
            ([3, 3, 3], 2, false),
            ([3, 3, 3], 64, false),
        ] {
            let windows = Windows { group, ..Windows::same(kernel) };
            let model = blocked(block, &around(&windows, [64, 64], [1, 6, 14, 14]));
            assert_eq!(count(&model, "Conv"), if runs { [0, 3] } else { [1, 2] }, "{kernel:?}, {group} groups");
        }
    }
}

/// Two convolutions over frames of 32 channels whose sum with what they read is cut off, as a block of a network of videos has it.
fn block_of_videos(opset: i64, channels: i64, [n, d, h, w]: [i64; 4], second: &Windows) -> Net {
    let cube = Windows::same([3, 3, 3]);
    Net::new(opset)
        .input("x", F32, &[n, 16, d, h, w])
        .floats("w0", F32, &cube.weights(channels, 16), true)
        .floats("b0", F32, &[channels], true)
        .floats("w1", F32, &cube.weights(channels, channels), true)
        .floats("b1", F32, &[channels], true)
        .floats("w2", F32, &second.weights(channels, channels), true)
        .node_with("Conv", &["x", "w0", "b0"], "a", &cube.of_conv())
        .node("Relu", &["a"], "b")
        .node_with("Conv", &["b", "w1", "b1"], "c", &cube.of_conv())
        .node("Add", &["c", "b"], "d")
        .node("Relu", &["d"], "e")
        .node_with("Conv", &["e", "w2"], "y", &second.of_conv())
        .output("y", F32)
}

#[test]
fn frames_of_much_work_are_apart_and_copied_nowhere_between_convolutions() {
    for block in blocks() {
        let cube = Windows::same([3, 3, 3]);
        let strided = Windows { strides: [2, 2, 2], ..cube.clone() };
        let dilated = Windows { dilations: [2, 1, 1], pads: [2, 1, 1, 2, 1, 1], ..cube.clone() };
        for (second, pairs) in [(&cube, 13), (&strided, 7), (&dilated, 11)] {
            let net = block_of_videos(17, 48, [1, 5, 40, 40], second);
            let model = blocked(block, &net);
            assert_eq!(refusal(block, &net.bytes()), None, "{second:?}");
            // Each pair of a frame and a tap that reads one: thirteen of fifteen over five frames.
            assert_eq!(count(&model, "Conv"), [0, 13 + 13 + pairs], "{second:?}");
            let copies = ["Gather", "Pad", "Slice"].map(|op| count(&model, op)[0]);
            assert_eq!((copies, count(&model, "Add"), count(&model, "Relu")), ([0; 3], [0; 2], [0; 2]), "{second:?}");
            // The input comes apart once, and what leaves is put together.
            assert_eq!(["Split", "Concat"].map(|op| count(&model, op)[0]), [1, 1], "{second:?}");
        }
    }
}

#[test]
fn frames_of_a_batch_of_little_work_or_of_part_of_a_block_are_gathered() {
    for block in blocks() {
        let cube = Windows::same([3, 3, 3]);
        for (channels, sizes) in [(48, [2, 5, 40, 40]), (32, [1, 5, 12, 12]), (36, [1, 5, 40, 40])] {
            let net = block_of_videos(13, channels, sizes, &cube);
            let model = blocked(block, &net);
            assert_eq!(count(&model, "Split"), [0, 0], "{channels} {sizes:?}");
            assert_eq!(refusal(block, &net.bytes()), None, "{channels} {sizes:?}");
        }
    }
}

/// A convolution of an input of a few channels, what two more make of it and their sum, which another one reads.
fn residual(batch: &str) -> Net {
    let (first, cube) = (Windows { strides: [1, 2, 2], ..Windows::same([3, 7, 7]) }, Windows::same([3, 3, 3]));
    Net::new(13)
        .symbolic_input("x", F32, &[batch, "3", "8", "24", "24"])
        .floats("w0", F32, &first.weights(32, 3), true)
        .floats("w1", F32, &cube.weights(32, 32), true)
        .floats("w2", F32, &cube.weights(32, 32), true)
        .node_with("Conv", &["x", "w0"], "a", &first.of_conv())
        .node("Relu", &["a"], "b")
        .node_with("Conv", &["b", "w1"], "c", &cube.of_conv())
        .node("Relu", &["c"], "d")
        .node_with("Conv", &["d", "w2"], "e", &cube.of_conv())
        .node("Add", &["e", "b"], "f")
        .node("Relu", &["f"], "g")
        .floats("w3", F32, &[16, 32, 1, 1, 1], true)
        .node("Conv", &["g", "w3"], "y")
        .symbolic_output("y", F32, &[batch, "16", "8", "12", "12"])
}

#[test]
fn a_batch_may_be_a_symbol_and_sums_are_taken_in() {
    for block in blocks() {
        for (batch, n) in [("N", 1), ("N", 3), ("2", 2)] {
            let dims = sizes_of(&residual(batch), &[("N", n)]);
            let model = optimized(block, &residual(batch).bytes(), &dims).expect("it computes the same");
            // Three frames of 3 channels are 9 of an image: fewer than a block of 16, so they are read as they are. A block of 8 they
            // exceed, and ReorderInput takes multiples of 4 only: this convolution and its Relu stay.
            let stay = usize::from(block == Block::B8);
            assert_eq!(count(&model, "Conv"), [stay, 4 - stay], "{batch}");
            assert_eq!((count(&model, "Add"), count(&model, "Relu")), ([0, 0], [stay, 0]), "{batch}");
            let moves = ["ReorderInput", "ReorderOutput"].map(|op| count(&model, op));
            assert_eq!(moves, [[0, stay], [0, 1]], "{batch}");
        }
    }
}

#[test]
fn frames_and_images_of_unknown_extent_stay_with_the_runtime() {
    for block in blocks() {
        let windows = Windows::same([3, 3, 3]);
        for shape in [["1", "32", "D", "14", "14"], ["1", "32", "6", "H", "14"]] {
            let net = Net::new(17)
                .symbolic_input("x", F32, &shape)
                .floats("w", F32, &windows.weights(32, 32), true)
                .node_with("Conv", &["x", "w"], "y", &windows.of_conv())
                .output("y", F32);
            let dims = sizes_of(&net, &[("D", 6), ("H", 14)]);
            let model = optimized(block, &net.bytes(), &dims).expect("it computes the same");
            assert_eq!(count(&model, "Conv"), [1, 0], "{shape:?}");
        }
    }
}

#[test]
fn images_in_groups_of_channels_are_no_volumes_of_known_extent() {
    for block in blocks() {
        let windows: &[(&str, &[i64])] = &[("pads", &[1, 1, 1, 1])];
        let net = Net::new(17)
            .symbolic_input("x", F32, &["1", "32", "H", "14"])
            .floats("w0", F32, &[64, 32, 3, 3], true)
            .floats("w1", F32, &[32, 64, 3, 3], true)
            .ints("apart", &[1, 2, 32, -1, 14])
            .ints("whole", &[1, 64, -1, 14])
            .node_with("Conv", &["x", "w0"], "a", windows)
            .node("Reshape", &["a", "apart"], "b")
            .node("Sigmoid", &["b"], "c")
            .node("Neg", &["c"], "side")
            .node("Reshape", &["c", "whole"], "d")
            .node_with("Conv", &["d", "w1"], "y", windows)
            .output("y", F32)
            .output("side", F32);
        let model = optimized(block, &net.bytes(), &sizes_of(&net, &[("H", 10)])).expect("it computes the same");
        assert_eq!(count(&model, "Conv"), [0, 2]);
    }
}

#[test]
fn other_targets_and_exact_results_leave_volumes_alone() {
    for block in blocks() {
        let bytes = around(&Windows::same([3, 3, 3]), [32, 64], [1, 6, 14, 14]).bytes();
        let own = target(block);
        assert!(made_for(&own, &bytes, Numerics::Exact) == bytes, "every bit has to stay");
        assert!(made_for(&own, &bytes, Numerics::Reassociate) != bytes, "the target has kernels");
        let onnx = builtin("onnx").expect("a built-in target");
        assert!(made_for(onnx.as_ref(), &bytes, Numerics::Reassociate) == bytes, "the target has none");
    }
}

#[test]
fn padding_that_the_runtime_finds_stays_with_it_and_weights_may_be_turned() {
    for block in blocks() {
        let windows = Windows::same([3, 3, 3]);
        let net = |automatic: &'static str| {
            Net::new(17)
                .input("x", F32, &[1, 32, 6, 14, 14])
                .floats("dhwio", F32, &[3, 3, 3, 32, 64], true)
                .node_with("Transpose", &["dhwio"], "w", &[("perm", &[4, 3, 0, 1, 2])])
                .node_with("Conv", &["x", "w"], "y", &[("kernel_shape", &windows.kernel)])
                .text_attribute("auto_pad", automatic)
                .output("y", F32)
        };
        assert_eq!(count(&blocked(block, &net("SAME_UPPER")), "Conv"), [1, 0]);
        assert_eq!(count(&blocked(block, &net("VALID")), "Conv"), [0, 1]);
    }
}

/// A maximum between two convolutions.
fn pooled(windows: &Windows, ceil: bool, channels: i64, [n, d, h, w]: [i64; 4]) -> Net {
    let cube = Windows::same([3, 3, 3]);
    let ceil: &[(&str, &[i64])] = if ceil { &[("ceil_mode", &[1])] } else { &[] };
    Net::new(17)
        .input("x", F32, &[n, 16, d, h, w])
        .floats("w0", F32, &cube.weights(channels, 16), true)
        .floats("w1", F32, &cube.weights(16, channels), true)
        .node_with("Conv", &["x", "w0"], "a", &cube.of_conv())
        .node_with("MaxPool", &["a"], "b", &[&windows.of_pool()[..], ceil].concat())
        .node_with("Conv", &["b", "w1"], "y", &cube.of_conv())
        .output("y", F32)
}

#[test]
fn maxima_over_volumes_are_those_of_images_and_of_frames() {
    for block in blocks() {
        let none = Windows { pads: [0; 6], ..Windows::same([2, 2, 2]) };
        for windows in [
            Windows { strides: [2, 2, 2], ..none.clone() },
            Windows { strides: [2, 2, 2], ..Windows::same([3, 3, 3]) },
            Windows { strides: [1, 2, 2], ..Windows::same([1, 3, 3]) },
            Windows { dilations: [2, 1, 1], ..none.clone() },
            Windows { strides: [2, 1, 1], kernel: [2, 1, 1], ..none },
        ] {
            for (ceil, channels, sizes) in [(false, 32, [1, 6, 14, 14]), (true, 20, [2, 5, 13, 11])] {
                let model = blocked(block, &pooled(&windows, ceil, channels, sizes));
                assert_eq!(count(&model, "MaxPool"), [0, 1], "{windows:?} {channels}");
                assert_eq!(
                    (count(&model, "ReorderInput"), count(&model, "ReorderOutput")),
                    ([0, 1], [0, 1]),
                    "{windows:?}"
                );
            }
        }
    }
}

/// A network of a few ops of volumes, each one a step: `None` where extents would be none.
#[derive(Clone, Debug)]
struct Recipe {
    opset: i64,
    sizes: [i64; 4],
    symbolic: bool,
    steps: Vec<(u8, i64, Windows)>,
}

fn windows() -> impl Strategy<Value = Windows> {
    let three = |most: i64| [1..=most, 1..=most, 1..=most];
    let kernel = prop_oneof![
        4 => three(3),
        2 => [1..=1i64, 1..=1, 1..=1],
        3 => [1..=3i64, 1..=1, 1..=1],
        3 => [1..=1i64, 1..=3, 1..=3],
    ];
    let stride = prop_oneof![3 => Just([1i64; 3]), 2 => three(2)];
    let dilation = prop_oneof![3 => Just([1i64; 3]), 1 => three(2)];
    let pads = [0..=2i64, 0..=1, 0..=2, 0..=2, 0..=2, 0..=1];
    let group = prop_oneof![5 => Just(1i64), 1 => Just(2), 1 => Just(0)];
    (kernel, stride, dilation, pads, group).prop_map(|(kernel, strides, dilations, pads, group)| Windows {
        kernel,
        strides,
        dilations,
        pads,
        group,
    })
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let channels = prop::sample::select(&[32i64, 16, 20, 48, 33, 8, 3][..]);
    drawn(channels, windows(), [1..=3i64, 1..=7, 4..=15, 4..=15])
}

/// Networks in some of which a frame and a tap are much work.
fn recipes_of_much_work() -> impl Strategy<Value = Recipe> {
    let channels = prop::sample::select(&[48i64, 32, 64, 40][..]);
    let windows = windows().prop_map(|windows| {
        let kernel = windows.kernel.map(|extent| extent.max(2));
        Windows { kernel, strides: [windows.strides[0], 1, 1], group: 1, ..windows }
    });
    drawn(channels, windows, [1..=1i64, 3..=6, 28..=36, 28..=36])
        .prop_map(|recipe| Recipe { symbolic: false, ..recipe })
}

fn drawn(
    channels: impl Strategy<Value = i64>,
    windows: impl Strategy<Value = Windows>,
    sizes: [std::ops::RangeInclusive<i64>; 4],
) -> impl Strategy<Value = Recipe> {
    let steps = prop::collection::vec((0..8u8, channels, windows), 2..6);
    let opset = prop::sample::select(&[10i64, 13, 17, 18][..]);
    (opset, sizes, any::<bool>(), steps).prop_map(|(opset, sizes, symbolic, steps)| Recipe {
        opset,
        sizes,
        symbolic,
        steps,
    })
}

impl Recipe {
    fn net(&self) -> Net {
        let [n, d, h, w] = self.sizes;
        let batch = if self.symbolic { "N".to_owned() } else { n.to_string() };
        let extents = [d, h, w].map(|extent| extent.to_string());
        let mut net =
            Net::new(self.opset).symbolic_input("v0", F32, &[&batch, "16", &extents[0], &extents[1], &extents[2]]);
        let (mut at, mut c, mut from) = (0, 16, [d, h, w]);
        let (mut alike, mut made) = (None, Vec::new());
        for (kind, m, windows) in &self.steps {
            let (x, y) = (format!("v{at}"), format!("v{}", at + 1));
            let left = windows.left(from);
            net = match (kind, left, alike) {
                (0..=3, Some(left), _) => {
                    let group = if windows.group == 0 { c } else { windows.group };
                    let group = if c % group == 0 { group } else { 1 };
                    let m = if group == c { c } else { m + m % group };
                    let windows = Windows { group, ..windows.clone() };
                    let (weights, bias) = (format!("w{at}"), format!("b{at}"));
                    net = net.floats(&weights, F32, &windows.weights(m, c), true).floats(&bias, F32, &[m], true);
                    (c, from, alike) = (m, left, None);
                    made.push((at + 1, m, left));
                    let operands = if at % 2 == 0 { vec![&*x, &weights, &bias] } else { vec![&*x, &weights] };
                    net.node_with("Conv", &operands, &y, &windows.of_conv())
                }
                (4, Some(left), _)
                    if windows.pads.iter().zip([windows.kernel, windows.kernel].concat()).all(|(p, k)| *p < k) =>
                {
                    (from, alike) = (left, None);
                    net.node_with("MaxPool", &[&x], &y, &windows.of_pool()[..if self.opset < 10 { 2 } else { 4 }])
                }
                (5, _, Some(other)) => {
                    let other = format!("v{other}");
                    net.node("Add", &[&x, &other], &y)
                }
                (6, ..) => net.node("Sigmoid", &[&x], &y),
                _ => net.node("Relu", &[&x], &y),
            };
            at += 1;
            alike =
                made.iter().rev().find(|(v, m, left)| *v != at && (*m, *left) == (c, from)).map(|(v, ..)| *v).or(alike);
        }
        net.output(&format!("v{at}"), F32)
    }
}

/// How many random networks are drawn unless `RELAYOUT_RANDOM_CASES` says otherwise, and how often at least they have what is required.
const NETWORKS: u64 = 32;
const LEAST: usize = 6;
/// The same of networks of much work.
const LARGE_NETWORKS: u64 = 24;

#[test]
fn random_networks_of_volumes_compute_the_same() {
    for block in blocks() {
        let (changed, joined, gathered) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let mut runner = TestRunner::new_with_rng(
            Config { cases: common::samples(NETWORKS) as u32, failure_persistence: None, ..Config::default() },
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        let outcome = runner.run(&recipes(), |recipe| {
            let net = recipe.net();
            let model = optimized(block, &net.bytes(), &sizes_of(&net, &[("N", recipe.sizes[0])]))
                .map_err(TestCaseError::fail)?;
            let [_, convolutions] = count(&model, "Conv");
            changed.set(changed.get() + usize::from(convolutions > 0));
            gathered.set(gathered.get() + count(&model, "Gather")[0]);
            joined.set(joined.get() + convolutions);
            Ok(())
        });
        outcome.expect("every network computes the same");
        // A law that nothing is put to proves nothing.
        let counted = [changed.get(), joined.get(), gathered.get()];
        assert!(
            counted.iter().all(|&n| n >= LEAST),
            "blocked networks, convolutions, and gathered frames: {counted:?}"
        );
    }
}

#[test]
fn random_networks_of_much_work_compute_the_same() {
    for block in blocks() {
        let apart = Cell::new(0);
        let mut runner = TestRunner::new_with_rng(
            Config { cases: common::samples(LARGE_NETWORKS) as u32, failure_persistence: None, ..Config::default() },
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        let outcome = runner.run(&recipes_of_much_work(), |recipe| {
            let net = recipe.net();
            let model = optimized(block, &net.bytes(), &sizes_of(&net, &[("N", recipe.sizes[0])]))
                .map_err(TestCaseError::fail)?;
            apart.set(apart.get() + usize::from(count(&model, "Split")[0] > 0));
            Ok(())
        });
        outcome.expect("every network computes the same");
        assert!(apart.get() >= LEAST, "networks whose frames are apart: {}", apart.get());
    }
}
