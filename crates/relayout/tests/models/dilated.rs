//! Dilated convolutions as exporters of TensorFlow write them: blocks are cut, their places are a batch, and go back. Drawn at random,
//! with near misses.

use crate::fold_nets::{F32, Net};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What is wrong with a near miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The places come back to other blocks.
    Order,
    /// Windows leave out places.
    Stride,
    /// The convolution's result is an output as well.
    Read,
    /// More is taken than was added.
    Crop,
    /// What is around the image are copies of it.
    Mode,
}

/// A network.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Rows and columns of a block; the same if it is cut by `SpaceToDepth`.
    pub(crate) block: [i64; 2],
    pub(crate) by_depth: bool,
    kernel: [i64; 2],
    /// The convolution's own dilation.
    pub(crate) own: i64,
    /// The convolution's own padding.
    pads: i64,
    same: bool,
    /// What is added before and taken again.
    first: i64,
    /// The size is not known.
    pub(crate) open: bool,
    size: [i64; 2],
    groups: usize,
    bias: usize,
    pub(crate) wrong: Option<Wrong>,
}

const CHANNELS: i64 = 4;
const FILTERS: i64 = 8;

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let wrong = prop_oneof![
        3 => Just(None),
        2 => prop_oneof![Just(Wrong::Order), Just(Wrong::Stride), Just(Wrong::Read), Just(Wrong::Crop), Just(Wrong::Mode)].prop_map(Some),
    ];
    let windows = ([1..=4_i64, 2..=4_i64], any::<bool>(), [1..=3_i64, 2..=3_i64], 1..=2_i64, 0..=1_i64, any::<bool>());
    let rest = (0..=1_i64, any::<bool>(), [14..=19_i64, 14..=19_i64], 0..3_usize, 0..3_usize);
    (windows, rest, wrong).prop_map(|((block, by_depth, kernel, own, pads, same), rest, wrong)| {
        let (first, open, size, groups, bias) = rest;
        let block = if by_depth { [block[1]; 2] } else { block };
        // Without padding windows may be larger than the image, and nobody knows whether anything is left.
        let wrong = wrong.filter(|wrong| same || *wrong != Wrong::Mode);
        let (first, own) = if same { (first, own) } else { (0, 1) };
        Case { block, by_depth, kernel, own, pads, same, first, open, size, groups, bias, wrong }
    })
}

impl Case {
    /// Sizes at which it runs, by name: none where they are known.
    pub(crate) fn sizes(&self) -> Vec<BTreeMap<String, i64>> {
        let [h, w] = self.size;
        let named = |[n, h, w]: [i64; 3]| [("n", n), ("h", h), ("w", w)].map(|(name, at)| (name.to_owned(), at)).into();
        if self.open { [[1, h, w], [2, 12, 17], [3, 21, 13]].map(named).into() } else { vec![BTreeMap::new()] }
    }

    /// What is added before and behind along an axis, but for what makes whole blocks.
    fn around(&self, axis: usize) -> [i64; 2] {
        let reach = if self.same { self.block[axis] * self.own * (self.kernel[axis] - 1) } else { 0 };
        [reach / 2 + self.first, reach - reach / 2]
    }

    fn groups(&self) -> i64 {
        [1, 2, CHANNELS][self.groups]
    }

    /// The model: `x` is an image, its channels last.
    pub(crate) fn net(&self) -> Net {
        let [h, w] = self.size;
        let net =
            Net::new(17).floats("w", F32, &[FILTERS, CHANNELS / self.groups(), self.kernel[0], self.kernel[1]], true);
        let net = net.floats("b", F32, &[FILTERS], true).ints("zeros", &[0, 0]).ints("first", &[self.first; 2]);
        let net = if self.open {
            net.symbolic_input("x", F32, &["n", "h", "w", &CHANNELS.to_string()])
        } else {
            net.input("x", F32, &[2, h, w, CHANNELS])
        };
        let net = self.padded(net);
        let net = if self.by_depth { self.by_depth(net) } else { self.by_shapes(net) };
        let net = net.node("Slice", &["joined", "starts", "ends", "rows"], "cut");
        let net =
            if self.bias == 2 { net.node("Add", &["cut", "b"], "sum") } else { net.node("Identity", &["cut"], "sum") };
        let net = net.node("Relu", &["sum"], "y").output("y", F32);
        if self.wrong == Some(Wrong::Read) { net.output("c", F32) } else { net }
    }

    /// The Pad, and the bounds of the Slice, computed where the size is not known.
    fn padded(&self, net: Net) -> Net {
        let [[top, bottom], [left, right]] = [self.around(0), self.around(1)];
        let more = |axis: usize| {
            let all = self.size[axis] + self.around(axis).iter().sum::<i64>();
            (self.block[axis] - all % self.block[axis]) % self.block[axis]
        };
        let far = i64::from(i32::MAX);
        let padded = |axis: usize| self.around(axis)[0] + self.pads * self.block[axis];
        let start = |axis| if self.wrong == Some(Wrong::Crop) { padded(axis) + 1 } else { self.first };
        let net = net.ints("rows", &[1, 2]).ints("starts", &[start(0), start(1)]);
        let mode = if self.wrong == Some(Wrong::Mode) { "edge" } else { "constant" };
        if !self.open {
            let pads = [0, top, left, 0, 0, bottom + more(0), right + more(1), 0];
            let end = |axis: usize| if more(axis) == 0 { far } else { -more(axis) };
            let net = net.ints("pads", &pads).ints("ends", &[end(0), end(1)]);
            return net.node("Pad", &["x", "pads"], "padded").text_attribute("mode", mode);
        }
        let net = net.ints("one", &[1]).ints("three", &[3]).ints("zero", &[0]).ints("far", &[far]);
        let net = net.ints("block", &self.block).ints("around", &[top + bottom, left + right]);
        let net = net.ints("before", &[top, left]).ints("behind", &[bottom, right]);
        let net = net.node("Shape", &["x"], "shape").node("Slice", &["shape", "one", "three", "zero"], "size");
        let net = net.node("Add", &["size", "around"], "all").node("Div", &["all", "block"], "whole");
        let net = net.node("Mul", &["whole", "block"], "fit").node("Sub", &["all", "fit"], "over");
        let net = net.node("Sub", &["block", "over"], "lack").node("Div", &["lack", "block"], "lacks");
        let net = net.node("Mul", &["lacks", "block"], "none").node("Sub", &["lack", "none"], "more");
        let net = net.node("Add", &["behind", "more"], "after");
        let net =
            net.node_with("Concat", &["zero", "before", "zero", "zero", "after", "zero"], "pads", &[("axis", &[0])]);
        let net = net.node("Pad", &["x", "pads"], "padded").text_attribute("mode", mode);
        // As tf2onnx has it: all of an axis of which nothing is taken.
        let net = net.node("Equal", &["more", "zero"], "is_none").node("Not", &["is_none"], "is_some");
        let net = net.node("Cast", &["is_some"], "some").int_attribute("to", 7).node("Neg", &["some"], "less");
        let net =
            net.node("Mul", &["more", "less"], "back").node("Cast", &["is_none"], "nothing").int_attribute("to", 7);
        net.node("Mul", &["far", "nothing"], "end").node("Add", &["back", "end"], "ends")
    }

    fn convolution(&self, net: Net) -> Net {
        let operands: &[&str] = if self.bias == 1 { &["batch", "w", "b"] } else { &["batch", "w"] };
        let stride = if self.wrong == Some(Wrong::Stride) { 2 } else { 1 };
        let told: &[(&str, &[i64])] =
            &[("dilations", &[self.own; 2]), ("pads", &[self.pads; 4]), ("strides", &[stride; 2])];
        net.node_with("Conv", operands, "c", told).int_attribute("group", self.groups())
    }

    fn by_depth(&self, net: Net) -> Net {
        let turned: (&str, &[i64]) = ("perm", &[1, 0, 2, 3]);
        let mode = if self.wrong == Some(Wrong::Order) { "CRD" } else { "DCR" };
        let net = net.node_with("Transpose", &["padded"], "image", &[("perm", &[3, 0, 1, 2])]);
        let net = net.node("SpaceToDepth", &["image"], "cells").int_attribute("blocksize", self.block[0]);
        let net = self.convolution(net.node_with("Transpose", &["cells"], "batch", &[turned]));
        let net = net.node_with("Transpose", &["c"], "back_cells", &[turned]);
        let net = net.node("DepthToSpace", &["back_cells"], "whole_image").int_attribute("blocksize", self.block[0]);
        let net = net.text_attribute("mode", mode);
        net.node_with("Transpose", &["whole_image"], "joined", &[("perm", &[1, 2, 3, 0])])
    }

    fn by_shapes(&self, net: Net) -> Net {
        let [p, q] = self.block;
        let net =
            net.ints("p", &[p]).ints("q", &[q]).ints("pq", &[p * q]).ints("ci", &[CHANNELS]).ints("co", &[FILTERS]);
        let net = net.ints("i0", &[0]).ints("i1", &[1]).ints("i2", &[2]);
        let part = |net: Net, of: &str, at: &str, name: &str| net.node("Gather", &[of, at], name);
        let joined = |net: Net, parts: &[&str], name: &str| net.node("Concat", parts, name).int_attribute("axis", 0);
        let net = net.node("Shape", &["padded"], "ps");
        let net = part(part(part(net, "ps", "i0", "n"), "ps", "i1", "ph"), "ps", "i2", "pw");
        let net = net.node("Div", &["ph", "p"], "bh").node("Div", &["pw", "q"], "bw").node("Mul", &["n", "pq"], "nb");
        let net = joined(net, &["n", "bh", "p", "bw", "q", "ci"], "six");
        let net = joined(net, &["nb", "bh", "bw", "ci"], "four");
        let net = net.node("Reshape", &["padded", "six"], "split");
        let net = net.node_with("Transpose", &["split"], "places", &[("perm", &[2, 4, 0, 1, 3, 5])]);
        let net = net.node("Reshape", &["places", "four"], "images");
        let net = self.convolution(net.node_with("Transpose", &["images"], "batch", &[("perm", &[0, 3, 1, 2])]));
        let net = net.node_with("Transpose", &["c"], "last", &[("perm", &[0, 2, 3, 1])]).node("Shape", &["last"], "cs");
        let net = part(part(net, "cs", "i1", "ch"), "cs", "i2", "cw");
        let net = net.node("Mul", &["ch", "p"], "yh").node("Mul", &["cw", "q"], "yw");
        let swapped = self.wrong == Some(Wrong::Order);
        let net = joined(
            net,
            if swapped { &["q", "p", "n", "ch", "cw", "co"] } else { &["p", "q", "n", "ch", "cw", "co"] },
            "six2",
        );
        let net = joined(net, &["n", "yh", "yw", "co"], "four2");
        let net = net.node("Reshape", &["last", "six2"], "split2");
        let order: &[i64] = if swapped { &[2, 3, 1, 4, 0, 5] } else { &[2, 3, 0, 4, 1, 5] };
        let net = net.node_with("Transpose", &["split2"], "rows2", &[("perm", order)]);
        net.node("Reshape", &["rows2", "four2"], "joined")
    }

    /// Whether it is a case in which nothing is wrong because of what was drawn: places of one row or column have one order.
    pub(crate) fn is_right(&self) -> bool {
        match self.wrong {
            None => true,
            Some(Wrong::Order) => !self.by_depth && self.block.contains(&1),
            Some(_) => false,
        }
    }
}
