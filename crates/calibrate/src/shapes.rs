//! Convolutions as models have them, drawn from a seed: the shapes that a table is held against.

use relayout_targets::measured::{Activation, ConvShape};

/// A stream of numbers that is the same on every machine.
pub(super) struct Source(u64);

impl Source {
    pub(super) fn new(seed: u64) -> Source {
        Source(seed)
    }

    /// `SplitMix64` (Steele, Lea and Flood, 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn pick<T: Copy>(&mut self, of: &[T], default: T) -> T {
        let index = self.below(of.len() as u64) as usize;
        of.get(index).copied().unwrap_or(default)
    }

    /// A number from `low` to `high`, small ones as often as large ones.
    fn spread(&mut self, low: u64, high: u64) -> u64 {
        let part = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (low as f64 * (high as f64 / low as f64).powf(part)).round() as u64
    }

    /// A count of channels: mostly multiples of 8 as models have them, some of 4, some any.
    fn channels(&mut self, low: u64, high: u64) -> u64 {
        let multiple = self.pick(&[16, 8, 8, 8, 4, 1], 8);
        self.spread(low, high).div_ceil(multiple) * multiple
    }
}

/// Multiplications that a shape may have, so that none takes seconds.
const MOST: u64 = 300_000_000;

/// The next shape.
pub(super) fn draw(source: &mut Source) -> ConvShape {
    loop {
        let shape = any(source);
        let work = shape.oh * shape.ow * shape.m * (shape.c / shape.group) * shape.kh * shape.kw;
        if work <= MOST && shape.n * shape.c.max(shape.m) * shape.h * shape.w < 1 << 22 {
            return shape;
        }
    }
}

fn any(source: &mut Source) -> ConvShape {
    let size = source.spread(5, 130);
    let size = [size, if source.below(4) == 0 { source.spread(5, 130) } else { size }];
    let stride = if source.below(4) == 0 { 2 } else { 1 };
    let (c, m) = (source.channels(12, 640), source.channels(12, 640));
    let shape = match source.below(10) {
        0..3 => ConvShape::same(c, m, size, 1, if source.below(6) == 0 { 2 } else { 1 }),
        3..6 => ConvShape::same(c, m, size, 3, stride),
        6 => {
            let (kh, kw) = source.pick(&[(5, 5), (7, 7), (1, 7), (7, 1), (1, 3), (3, 1)], (5, 5));
            let shape = ConvShape::same(c.min(200), m.min(200), size, 1, 1);
            ConvShape { kh, kw, ..shape }
        }
        7 => {
            let k = source.pick(&[3, 3, 5, 7], 3);
            ConvShape::same(c, c, size, k, stride).grouped(c)
        }
        8 => {
            let group = source.pick(&[2, 4, 8, 32], 4);
            let per_group = source.pick(&[4, 8, 12, 16, 24, 32, 64], 8);
            let channels = group * per_group;
            ConvShape::same(channels, channels, size, source.pick(&[1, 3, 3], 3), stride).grouped(group)
        }
        _ => {
            let (first, k) = (source.pick(&[1, 3, 3, 3, 4, 6, 12], 3), source.pick(&[3, 3, 5, 7], 3));
            let size = size.map(|x| 2 * x);
            ConvShape::same(first, m.min(96), size, k, source.pick(&[1, 2, 2], 2))
        }
    };
    let activation =
        source.pick(&[None, Some(Activation::Relu), Some(Activation::Relu), Some(Activation::Sigmoid)], None);
    ConvShape { activation, ..shape }
}
