//! A convolutional network under construction: images, nodes and weights.
//!
//! Images are stored channels first, or channels last as exports from such frameworks have them, with Transposes around what ONNX
//! has channels first only.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::dice::Dice;
use crate::proto::{constant_node, info, int, ints, node, tensor};
use crate::steps;
use proptest::prelude::*;
use prost::Message;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    tensor_proto::DataType,
};
use std::collections::BTreeMap;

/// Most elements of an image: samples must run in a moment.
const MOST_ELEMENTS: i64 = 1 << 16;

/// Extents of channels, most of which fill no block.
pub(crate) const CHANNELS: &[i64] = &[20, 24, 33, 40, 17, 8, 5, 32, 16, 3, 48, 1];

/// A random network.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// Operator set.
    opset: i64,
    /// Stored channels last.
    last: bool,
    /// Images of a batch in the run, and whether the model has a symbol for them.
    batch: (i64, bool),
    /// Channels, rows and columns of the inputs.
    inputs: Vec<[i64; 3]>,
    /// Number of a family and its choices, for each step.
    steps: Vec<(u16, Vec<u16>)>,
    /// Which images become outputs beside those that nobody reads.
    outputs: Vec<u16>,
}

/// Random networks that have a step of family `theme` among 3 to 8 others.
pub(crate) fn recipes(theme: u16) -> impl Strategy<Value = Recipe> {
    let choices = || prop::collection::vec(any::<u16>(), 24);
    let extent = || prop_oneof![3 => Just(14i64), 2 => Just(9), 2 => Just(16), 1 => Just(7), 1 => Just(21)];
    let image = (prop::sample::select(&[3i64, 20, 32, 17, 1, 24, 40][..]), extent(), extent());
    (
        prop::sample::select(&[17i64, 13, 18, 11, 21][..]),
        prop::bool::weighted(0.3),
        prop_oneof![4 => Just((1i64, false)), 2 => Just((2, false)), 2 => (1i64..4).prop_map(|n| (n, true))],
        prop::collection::vec(image.prop_map(|(c, h, w)| [c, h, w]), 1..3),
        prop::collection::vec((any::<u16>(), choices()), 3..9),
        choices(),
        any::<prop::sample::Index>(),
        prop::collection::vec(any::<u16>(), 0..3),
    )
        .prop_map(move |(opset, last, batch, inputs, mut steps, own, place, outputs)| {
            let place = place.index(steps.len());
            steps.insert(place, (theme, own));
            Recipe { opset, last, batch, inputs, steps, outputs }
        })
}

/// An image of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) c: i64,
    pub(crate) h: i64,
    pub(crate) w: i64,
    read: bool,
}

impl Image {
    pub(crate) fn spatial(&self) -> [i64; 2] {
        [self.h, self.w]
    }
}

/// Index of an image.
pub(crate) type Id = usize;

/// A network that grows.
pub(crate) struct Net {
    pub(crate) opset: i64,
    /// Stored channels last.
    pub(crate) last: bool,
    pub(crate) batch: i64,
    /// Whether the batch is a symbol.
    pub(crate) symbolic: bool,
    pub(crate) images: Vec<Image>,
    pub(crate) nodes: Vec<NodeProto>,
    pub(crate) initializers: Vec<TensorProto>,
    /// Inputs that are no images.
    pub(crate) flags: Vec<ValueInfoProto>,
    names: usize,
    salt: u32,
}

/// A finished network.
pub(crate) struct Sample {
    pub(crate) bytes: Vec<u8>,
    /// Sizes of symbolic dims in the run.
    pub(crate) dims: BTreeMap<String, i64>,
}

/// Attributes of a convolution that keeps the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conv {
    pub(crate) out: i64,
    pub(crate) group: i64,
    pub(crate) kernel: [i64; 2],
    pub(crate) stride: [i64; 2],
    pub(crate) dilation: [i64; 2],
    /// Rows and columns of zeros at the start and at the end.
    pub(crate) pads: [i64; 4],
    pub(crate) bias: bool,
    /// What the largest results lie around, and how far they are from it.
    pub(crate) centre: f32,
    pub(crate) spread: f32,
}

impl Conv {
    /// One that keeps rows and columns.
    pub(crate) fn same(out: i64, kernel: i64) -> Conv {
        Conv {
            out,
            group: 1,
            kernel: [kernel; 2],
            stride: [1; 2],
            dilation: [1; 2],
            pads: [kernel / 2; 4],
            bias: true,
            centre: 0.0,
            spread: 1.0,
        }
    }
}

impl Net {
    /// A name that is not taken.
    pub(crate) fn name(&mut self, base: &str) -> String {
        self.names += 1;
        format!("{base}{}", self.names)
    }

    /// A node of one result: its name.
    pub(crate) fn add(&mut self, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        let name = self.name("v");
        let inputs = inputs.iter().map(|&i| i.to_owned()).collect();
        self.nodes.push(node(op, inputs, vec![name.clone()], attributes));
        name
    }

    /// The name of a constant.
    pub(crate) fn known(&mut self, dtype: DataType, shape: &[i64], data: Vec<u8>) -> String {
        let name = self.name("k");
        let tensor = tensor(&name, dtype, shape, data);
        if self.names.is_multiple_of(7) {
            self.nodes.push(constant_node(tensor));
        } else {
            self.initializers.push(tensor);
        }
        name
    }

    /// Constant floats between two numbers.
    pub(crate) fn between(&mut self, shape: &[i64], low: f32, high: f32) -> String {
        self.salt = self.salt.wrapping_add(1);
        let mut state = self.salt.wrapping_mul(0x9e37_79b9) | 1;
        let n = shape.iter().product::<i64>();
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            low + (high - low) * (state >> 8) as f32 / (1u32 << 24) as f32
        };
        let data = (0..n).flat_map(|_| noise().to_le_bytes()).collect();
        self.known(DataType::Float, shape, data)
    }

    /// A constant float.
    pub(crate) fn number(&mut self, x: f32) -> String {
        self.known(DataType::Float, &[], x.to_le_bytes().to_vec())
    }

    /// Constant floats.
    pub(crate) fn floats(&mut self, list: &[f32]) -> String {
        self.known(DataType::Float, &[list.len() as i64], list.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// Constant integers.
    pub(crate) fn list(&mut self, list: &[i64]) -> String {
        self.known(DataType::Int64, &[list.len() as i64], list.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// Extents as they are stored.
    pub(crate) fn stored(&self, c: i64, h: i64, w: i64) -> Vec<i64> {
        if self.last { vec![self.batch, h, w, c] } else { vec![self.batch, c, h, w] }
    }

    /// The stored axis of the channels.
    pub(crate) fn channel_axis(&self) -> i64 {
        if self.last { 3 } else { 1 }
    }

    /// The stored axes of rows and columns.
    pub(crate) fn spatial_axes(&self) -> [i64; 2] {
        if self.last { [1, 2] } else { [2, 3] }
    }

    /// Whether an image of these extents may be made.
    pub(crate) fn fits(&self, c: i64, h: i64, w: i64) -> bool {
        c > 0 && h > 0 && w > 0 && c * h * w * self.batch <= MOST_ELEMENTS
    }

    /// An image that a node has made.
    pub(crate) fn image(&mut self, name: String, c: i64, h: i64, w: i64) -> Id {
        self.images.push(Image { name, c, h, w, read: false });
        self.images.len() - 1
    }

    /// The name of an image, which is read by this.
    pub(crate) fn read(&mut self, id: Id) -> String {
        self.images[id].read = true;
        self.images[id].name.clone()
    }

    /// An image that suits, most often the last.
    pub(crate) fn choose(&self, dice: &mut Dice<'_>, suits: impl Fn(&Image) -> bool) -> Option<Id> {
        let fitting: Vec<Id> = (0..self.images.len()).filter(|&i| suits(&self.images[i])).collect();
        let last = *fitting.last()?;
        Some(if dice.below(4) < 3 { last } else { fitting[dice.below(fitting.len())] })
    }

    /// Any image.
    pub(crate) fn any(&self, dice: &mut Dice<'_>) -> Option<Id> {
        self.choose(dice, |_| true)
    }

    /// An op that keeps the extents.
    pub(crate) fn keeping(&mut self, op: &str, x: Id, more: &[&str], attributes: Vec<AttributeProto>) -> Id {
        let name = self.read(x);
        let inputs: Vec<&str> = std::iter::once(name.as_str()).chain(more.iter().copied()).collect();
        let y = self.add(op, &inputs, attributes);
        let Image { c, h, w, .. } = self.images[x];
        self.image(y, c, h, w)
    }

    /// The stored value with its channels first.
    pub(crate) fn first(&mut self, x: &str) -> String {
        if self.last { self.add("Transpose", &[x], vec![ints("perm", &[0, 3, 1, 2])]) } else { x.to_owned() }
    }

    /// A value with its channels first, as it is stored.
    pub(crate) fn back(&mut self, y: String) -> String {
        if self.last { self.add("Transpose", &[&y], vec![ints("perm", &[0, 2, 3, 1])]) } else { y }
    }

    /// A convolution, if its result has extents that are allowed.
    pub(crate) fn conv(&mut self, x: Id, conv: Conv) -> Option<Id> {
        let image = self.images[x].clone();
        let extent = |k: usize, from: i64| {
            let taps = conv.dilation[k] * (conv.kernel[k] - 1) + 1;
            (from + conv.pads[k] + conv.pads[k + 2] - taps).checked_div(conv.stride[k]).map(|n| n + 1)
        };
        let (h, w) = (extent(0, image.h)?, extent(1, image.w)?);
        let divides = image.c % conv.group == 0 && conv.out % conv.group == 0;
        if !divides || !self.fits(conv.out, h, w) {
            return None;
        }
        let depth = image.c / conv.group;
        let reach = conv.spread * (3.0 / (depth * conv.kernel[0] * conv.kernel[1]) as f32).sqrt();
        let weights = self.between(&[conv.out, depth, conv.kernel[0], conv.kernel[1]], -reach, reach);
        let name = self.read(x);
        let x = self.first(&name);
        // Exports from channels-last frameworks add the bias behind.
        let behind = self.last && conv.bias && self.names.is_multiple_of(2);
        let mut inputs = vec![x.as_str(), weights.as_str()];
        let bias = (conv.bias && !behind).then(|| self.between(&[conv.out], conv.centre - 0.3, conv.centre + 0.3));
        inputs.extend(bias.as_deref());
        let mut attributes = vec![ints("kernel_shape", &conv.kernel), ints("pads", &conv.pads)];
        if conv.stride != [1, 1] {
            attributes.push(ints("strides", &conv.stride));
        }
        if conv.dilation != [1, 1] {
            attributes.push(ints("dilations", &conv.dilation));
        }
        if conv.group != 1 {
            attributes.push(int("group", conv.group));
        }
        let y = self.add("Conv", &inputs, attributes);
        let mut y = self.back(y);
        if behind {
            let bias = self.between(&[conv.out], conv.centre - 0.3, conv.centre + 0.3);
            y = self.add("Add", &[&y, &bias], vec![]);
        }
        Some(self.image(y, conv.out, h, w))
    }

    /// The shape of an image as the model declares it.
    pub(crate) fn declared(&self, image: &Image, said: bool) -> ValueInfoProto {
        let symbols = if self.symbolic { [(0, "N")].into() } else { BTreeMap::new() };
        info(&image.name, DataType::Float, &self.stored(image.c, image.h, image.w), &symbols, said)
    }

    /// A network without images.
    pub(crate) fn new(opset: i64, last: bool, (batch, symbolic): (i64, bool)) -> Net {
        Net {
            opset,
            last,
            batch,
            symbolic,
            images: Vec::new(),
            nodes: Vec::new(),
            initializers: Vec::new(),
            flags: Vec::new(),
            names: 0,
            salt: 0,
        }
    }

    /// An input. All come before what nodes make.
    pub(crate) fn given(&mut self, [c, h, w]: [i64; 3]) -> Id {
        let id = self.image(format!("x{}", self.images.len()), c, h, w);
        self.images[id].read = true;
        id
    }

    /// The model, whose first images are inputs; outputs are those that nobody reads, and some that are picked.
    pub(crate) fn finish(self, given: usize, picks: &[u16]) -> Sample {
        let made = given..self.images.len();
        let mut outputs: Vec<Id> = made.clone().filter(|&i| !self.images[i].read).collect();
        outputs.extend(picks.iter().map(|&pick| given + usize::from(pick) % made.len()));
        let mut seen = Vec::new();
        outputs.retain(|id| {
            let new = !seen.contains(id);
            seen.push(*id);
            new
        });
        let inputs = (0..given).map(|i| self.declared(&self.images[i], true)).chain(self.flags.clone()).collect();
        let graph = GraphProto {
            name: Some("random".into()),
            input: inputs,
            output: outputs.iter().map(|&i| self.declared(&self.images[i], i % 3 != 0)).collect(),
            node: self.nodes,
            initializer: self.initializers,
            ..GraphProto::default()
        };
        let proto = ModelProto {
            ir_version: Some(8),
            opset_import: vec![OperatorSetIdProto { domain: None, version: Some(self.opset) }],
            graph: Some(graph),
            ..ModelProto::default()
        };
        let dims = if self.symbolic { [("N".to_owned(), self.batch)].into() } else { BTreeMap::new() };
        Sample { bytes: proto.encode_to_vec(), dims }
    }
}

/// The model of a recipe.
pub(crate) fn sample(recipe: &Recipe) -> Sample {
    let mut net = Net::new(recipe.opset, recipe.last, recipe.batch);
    net.salt = recipe.steps.len() as u32;
    for &extents in &recipe.inputs {
        net.given(extents);
    }
    let given = net.images.len();
    for (family, choices) in &recipe.steps {
        let _ = steps::family(*family)(&mut net, &mut Dice::of(choices));
    }
    if net.images.len() == given {
        net.keeping("Relu", 0, &[], vec![]);
    }
    net.finish(given, &recipe.outputs)
}

impl Recipe {
    /// Rows about the network itself.
    pub(crate) fn features(&self) -> Vec<String> {
        let mut rows = Vec::new();
        rows.extend(self.last.then(|| "channels-last network".to_owned()));
        rows.extend(self.batch.1.then(|| "symbolic batch".to_owned()));
        rows
    }
}
