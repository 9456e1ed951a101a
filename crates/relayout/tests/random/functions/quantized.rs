//! Random quantized networks: chains of 8-bit convolutions and pools between a `QuantizeLinear` and a `DequantizeLinear`. Scales are powers
//! of two, so that no result depends on the order of a sum or on where it is rounded.

use crate::dice::Dice;
use crate::net::{CHANNELS, Net, Sample};
use crate::proto::{int, ints};
use proptest::prelude::*;
use relayout_onnx::proto::tensor_proto::DataType;

/// A random quantized network.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// Images of a batch, channels, rows and columns.
    input: [i64; 4],
    /// Whether features are unsigned.
    unsigned: bool,
    /// The choices of each step.
    steps: Vec<Vec<u16>>,
}

pub(crate) fn recipes() -> impl Strategy<Value = Recipe> {
    let input = (
        prop::sample::select(&[1i64, 2, 16][..]),
        prop::sample::select(CHANNELS),
        prop::sample::select(&[14i64, 9, 16][..]),
        prop::sample::select(&[14i64, 7, 16][..]),
    );
    (
        input.prop_map(|(n, c, h, w)| [n, c, h, w]),
        any::<bool>(),
        prop::collection::vec(prop::collection::vec(any::<u16>(), 12), 2..6),
    )
        .prop_map(|(input, unsigned, steps)| Recipe { input, unsigned, steps })
}

/// An image of 8-bit numbers.
struct Image {
    name: String,
    extents: [i64; 3],
}

/// A quantized network that grows.
struct Quantized {
    net: Net,
    /// The type of features.
    dtype: DataType,
    zero: u8,
}

impl Quantized {
    fn scale(&mut self, exponent: i32) -> String {
        self.net.number(2f32.powi(exponent))
    }

    fn zero(&mut self) -> String {
        self.net.known(self.dtype, &[], vec![self.zero])
    }

    /// 8-bit numbers that repeat after a prime.
    fn weights(&mut self, shape: &[i64]) -> String {
        let count = shape.iter().product::<i64>();
        let data = (0..count).map(|i| ((i * 37 + count) % 23 - 11) as i8 as u8).collect();
        self.net.known(DataType::Int8, shape, data)
    }

    /// The groups and the operands of weights of a convolution of 3 x 3 or 1 x 1.
    fn filters(&mut self, dice: &mut Dice<'_>, c: i64) -> (i64, i64, i64, String) {
        let kernel = dice.pick(&[1i64, 3]);
        let (out, group) = if dice.once_in(3) { (c, c) } else { (dice.pick(CHANNELS), 1) };
        let weights = self.weights(&[out, c / group, kernel, kernel]);
        (out, group, kernel, weights)
    }

    fn linear(&mut self, dice: &mut Dice<'_>, x: &Image) -> Image {
        let [c, h, w] = x.extents;
        let (out, group, kernel, weights) = self.filters(dice, c);
        let channels = if dice.once_in(2) { vec![out] } else { vec![] };
        let entries = channels.iter().product::<i64>();
        let exponent = |i: i64| 2f32.powi(-6 - (i % 2) as i32);
        let scales = (0..entries).flat_map(|i| exponent(i).to_le_bytes()).collect();
        let scales = self.net.known(DataType::Float, &channels, scales);
        let zeros = self.net.known(DataType::Int8, &channels, vec![0; entries as usize]);
        let (from, to) = (self.scale(-4), self.scale(-4));
        let zero = [self.zero(), self.zero()];
        let mut operands = vec![x.name.clone(), from, zero[0].clone(), weights, scales, zeros, to, zero[1].clone()];
        if dice.once_in(2) {
            let bias = (0..out).flat_map(|i| ((i % 7 - 3) as i32 * 100).to_le_bytes()).collect();
            operands.push(self.net.known(DataType::Int32, &[out], bias));
        }
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let attributes = vec![int("group", group), ints("pads", &[kernel / 2; 4])];
        Image { name: self.net.add("QLinearConv", &operands, attributes), extents: [out, h, w] }
    }

    /// A convolution of floats between what is dequantized before and quantized behind.
    fn pair(&mut self, dice: &mut Dice<'_>, x: &Image) -> Image {
        let [c, h, w] = x.extents;
        let (out, group, kernel, weights) = self.filters(dice, c);
        let (scale, zero) = (self.scale(-4), self.zero());
        let floats = self.net.add("DequantizeLinear", &[&x.name, &scale, &zero], vec![]);
        let own = self.scale(-6);
        let weights = self.net.add("DequantizeLinear", &[&weights, &own], vec![]);
        let attributes = vec![int("group", group), ints("pads", &[kernel / 2; 4])];
        let y = self.net.add("Conv", &[&floats, &weights], attributes);
        let y = if dice.once_in(2) { self.net.add("Relu", &[&y], vec![]) } else { y };
        Image { name: self.net.add("QuantizeLinear", &[&y, &scale, &zero], vec![]), extents: [out, h, w] }
    }

    fn pool(&mut self, x: &Image) -> Option<Image> {
        let [c, h, w] = x.extents;
        if h < 4 || w < 4 {
            return None;
        }
        let attributes = vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])];
        Some(Image { name: self.net.add("MaxPool", &[&x.name], attributes), extents: [c, h / 2, w / 2] })
    }
}

/// The model of a recipe.
pub(crate) fn sample(recipe: &Recipe) -> Sample {
    let [n, c, h, w] = recipe.input;
    let (dtype, zero) = if recipe.unsigned { (DataType::Uint8, 128) } else { (DataType::Int8, 0) };
    let mut own = Quantized { net: Net::new(17, false, (n, false)), dtype, zero };
    let given = own.net.given([c, h, w]);
    let (scale, zero, name) = (own.scale(-4), own.zero(), own.net.read(given));
    let mut x = Image { name: own.net.add("QuantizeLinear", &[&name, &scale, &zero], vec![]), extents: [c, h, w] };
    for choices in &recipe.steps {
        let mut dice = Dice::of(choices);
        x = match dice.below(5) {
            0..=2 => own.linear(&mut dice, &x),
            3 => own.pair(&mut dice, &x),
            _ => own.pool(&x).unwrap_or(x),
        };
    }
    let [c, h, w] = x.extents;
    let floats = own.net.add("DequantizeLinear", &[&x.name, &scale, &zero], vec![]);
    own.net.image(floats, c, h, w);
    own.net.finish(1, &[])
}
