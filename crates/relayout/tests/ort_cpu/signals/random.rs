//! Random networks of signals: what they become computes the same.

use super::Windows;
use crate::common;
use crate::fold_nets::blocks::blocks;
use crate::fold_nets::cpu::{count, optimized, sizes_of};
use crate::fold_nets::{F32, Net};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A network of a few ops of signals, each one a step that is left out where it does not fit.
#[derive(Clone, Debug)]
struct Recipe {
    opset: i64,
    /// Images of a batch, channels and length, and whether batch and length are symbols.
    sizes: [i64; 3],
    symbolic: [bool; 2],
    /// Channels are stored last, with Transposes around what has them first.
    last: bool,
    steps: Vec<(u8, i64, Windows)>,
}

fn windows() -> impl Strategy<Value = Windows> {
    let kernel = prop_oneof![3 => Just(3i64), 2 => Just(1), 2 => 1..=9i64];
    let stride = prop_oneof![3 => Just(1i64), 1 => 2..=3i64];
    let dilation = prop_oneof![3 => Just(1i64), 1 => 2..=3i64];
    let group = prop_oneof![4 => Just(1i64), 1 => Just(2), 1 => Just(8), 2 => Just(0)];
    (kernel, stride, dilation, [0..=4i64, 0..=4], group).prop_map(|(kernel, stride, dilation, pads, group)| Windows {
        kernel,
        stride,
        dilation,
        pads,
        group,
    })
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let channels = prop::sample::select(&[32i64, 16, 60, 48, 45, 64, 20, 3][..]);
    let steps = prop::collection::vec((0..16u8, channels, windows()), 3..9);
    let sizes = [1..=3i64, 1..=40, 20..=220];
    let opset = prop::sample::select(&[11i64, 13, 17, 18][..]);
    (opset, sizes, any::<[bool; 2]>(), prop::bool::weighted(0.3), steps)
        .prop_map(|(opset, sizes, symbolic, last, steps)| Recipe { opset, sizes, symbolic, last, steps })
}

/// A network that grows.
struct Growing {
    net: Net,
    last: bool,
    at: usize,
    c: i64,
    length: i64,
    /// Signals that were made, their channels and their lengths.
    made: Vec<(usize, i64, i64)>,
    /// The last one that was padded: ONNX Runtime takes a Pad into the pool behind it, and then refuses that.
    padded: usize,
}

impl Growing {
    fn name(&self) -> String {
        format!("v{}", self.at)
    }

    /// The next signal, made by this op from the last one.
    fn then(&mut self, op: &str, more: &[&str], ints: &[(&str, &[i64])]) {
        let x = self.name();
        self.at += 1;
        let operands: Vec<&str> = std::iter::once(x.as_str()).chain(more.iter().copied()).collect();
        self.net = self.net.clone().node_with(op, &operands, &self.name(), ints);
    }

    /// The same for an op that finds channels by their place.
    fn channels_first(&mut self, op: &str, more: &[&str], ints: &[(&str, &[i64])]) {
        if self.last {
            self.then("Transpose", &[], &[("perm", &[0, 2, 1])]);
        }
        self.then(op, more, ints);
        if self.last {
            self.then("Transpose", &[], &[("perm", &[0, 2, 1])]);
        }
    }

    fn floats(&mut self, what: &str, dims: &[i64], signs: bool) -> String {
        let name = format!("{what}{}", self.at);
        self.net = self.net.clone().floats(&name, F32, dims, signs);
        name
    }

    fn scale(&mut self, by: f32) {
        let name = format!("k{}", self.at);
        self.net = self.net.clone().values(&name, F32, &[], &[by]);
        self.then("Mul", &[&name], &[]);
    }

    fn list(&mut self, what: &str, list: &[i64]) -> String {
        let name = format!("{what}{}", self.at);
        self.net = self.net.clone().ints(&name, list);
        name
    }

    fn keep(&mut self) {
        self.made.push((self.at, self.c, self.length));
    }

    fn convolve(&mut self, m: i64, windows: &Windows) {
        let Some(left) = windows.left(self.length) else { return };
        let group = if windows.group == 0 { self.c } else { windows.group };
        let group = if self.c % group == 0 { group } else { 1 };
        let m = if group == self.c { self.c } else { m + (group - m % group) % group };
        let windows = Windows { group, ..windows.clone() };
        let weights = self.floats("w", &windows.weights(m, self.c), true);
        let bias = self.floats("b", &[m], true);
        let operands = if self.at.is_multiple_of(2) { vec![weights.as_str(), &bias] } else { vec![weights.as_str()] };
        self.channels_first("Conv", &operands, &windows.of_conv());
        // Sums stay about as large as what they are of.
        self.scale(1.0 / ((self.c / group * windows.kernel) as f32).sqrt());
        (self.c, self.length) = (m, left);
        self.keep();
    }

    fn pool(&mut self, op: &str, windows: &Windows) {
        let windows = Windows { dilation: 1, ..windows.clone() };
        let small = windows.pads.iter().all(|&p| p < windows.kernel) && self.padded != self.at;
        if let Some(left) = windows.left(self.length).filter(|_| small) {
            self.channels_first(op, &[], &windows.of_pool());
            self.length = left;
        }
    }

    fn per_channel(&mut self, op: &str) {
        let dims = if self.last { vec![self.c] } else { vec![1, self.c, 1] };
        let numbers = self.floats("s", &dims, false);
        self.then(op, &[&numbers], &[]);
    }

    fn pad(&mut self, windows: &Windows) {
        let [before, behind] = windows.pads;
        let list = if self.last { [0, before, 0, 0, behind, 0] } else { [0, 0, before, 0, 0, behind] };
        let list = self.list("p", &list);
        self.then("Pad", &[&list], &[]);
        self.length += before + behind;
        self.padded = self.at;
    }

    fn cut(&mut self, windows: &Windows) {
        let [from, behind] = windows.pads;
        let step = windows.stride;
        if self.length - from - behind < 1 {
            return;
        }
        let [from_list, to, axis, steps] =
            [("from", from), ("to", self.length - behind), ("axis", if self.last { 1 } else { 2 }), ("step", step)]
                .map(|(what, number)| self.list(what, &[number]));
        self.then("Slice", &[&from_list, &to, &axis, &steps], &[]);
        self.length = (self.length - from - behind + step - 1) / step;
    }

    fn squeeze(&mut self) {
        let (x, c) = (self.name(), self.c);
        let weights = self.floats("e", &[c, c, 1], true);
        self.channels_first("GlobalAveragePool", &[], &[]);
        self.channels_first("Conv", &[&weights], &[]);
        // What is nearly nothing would be compared with what is rounded to nothing.
        self.scale(1.0 / c as f32);
        self.then("Sigmoid", &[], &[]);
        self.then("Mul", &[&x], &[]);
    }

    fn joined(&mut self, other: Option<(usize, i64, i64)>) {
        let Some((other, c, _)) = other else { return };
        let axis = if self.last { 2 } else { 1 };
        self.then("Concat", &[&format!("v{other}")], &[("axis", &[axis])]);
        self.c += c;
    }

    fn step(&mut self, kind: u8, m: i64, windows: &Windows) {
        let long = self.made.iter().rev().filter(|(v, _, l)| *v != self.at && *l == self.length);
        let alike = long.clone().find(|(_, c, _)| *c == self.c).copied();
        let long = long.clone().next().copied();
        match kind {
            0..=5 => self.convolve(m, windows),
            6 => self.pool("MaxPool", windows),
            7 => self.pool("AveragePool", windows),
            8 => self.per_channel(if m > 20 { "Mul" } else { "Sub" }),
            9 => self.pad(windows),
            10 => self.cut(windows),
            11 => self.squeeze(),
            12 => self.joined(long),
            13 => self.then("Sigmoid", &[], &[]),
            14 => match alike {
                Some((other, ..)) => self.then("Add", &[&format!("v{other}")], &[]),
                None => self.then("Tanh", &[], &[]),
            },
            _ => self.then("Relu", &[], &[]),
        }
    }
}

impl Recipe {
    fn net(&self) -> Net {
        let [n, c, length] = self.sizes;
        let said =
            |symbol: &str, size: i64, symbolic: bool| if symbolic { symbol.to_owned() } else { size.to_string() };
        let (batch, long) = (said("N", n, self.symbolic[0]), said("L", length, self.symbolic[1]));
        let c_text = c.to_string();
        let dims = if self.last { [&batch, &long, &c_text] } else { [&batch, &c_text, &long] };
        let net = Net::new(self.opset).symbolic_input("v0", F32, &dims.map(String::as_str));
        let mut growing = Growing { net, last: self.last, at: 0, c, length, made: Vec::new(), padded: usize::MAX };
        for (kind, m, windows) in &self.steps {
            growing.step(*kind, *m, windows);
        }
        growing.then("Relu", &[], &[]);
        let name = growing.name();
        growing.net.output(&name, F32)
    }
}

/// How many random networks are drawn unless `RELAYOUT_RANDOM_CASES` says otherwise.
const NETWORKS: u64 = 100;

/// What random networks have to have in blocks, each this often.
const COUNTED: [&str; 7] =
    ["Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "ReorderInput", "ReorderOutput", "networks"];
const LEAST: usize = 2;

#[test]
fn random_networks_of_signals_compute_the_same() {
    for block in blocks() {
        let counted = RefCell::new(BTreeMap::from(COUNTED.map(|op| (op, 0))));
        let mut runner = TestRunner::new_with_rng(
            Config { cases: common::samples(NETWORKS) as u32, failure_persistence: None, ..Config::default() },
            TestRng::deterministic_rng(RngAlgorithm::ChaCha),
        );
        let outcome = runner.run(&recipes(), |recipe| {
            let net = recipe.net();
            let dims = sizes_of(&net, &[("N", recipe.sizes[0]), ("L", recipe.sizes[2])]);
            let model = optimized(block, &net.bytes(), &dims).map_err(TestCaseError::fail)?;
            for (op, times) in counted.borrow_mut().iter_mut() {
                *times +=
                    if *op == "networks" { usize::from(count(&model, "Conv")[1] > 0) } else { count(&model, op)[1] };
            }
            Ok(())
        });
        outcome.expect("every network computes the same");
        // A law that nothing is put to proves nothing.
        assert!(counted.borrow().values().all(|&times| times >= LEAST), "{counted:?}");
    }
}
