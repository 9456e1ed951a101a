//! Lines that a linear Resize makes of others: which places each place is the sum of.
//!
//! Formulas: operator Resize of ONNX, `coordinate_transformation_mode`. Places beyond the ends are those of the ends. All numbers are
//! exact fractions.

use crate::terms::value::Value;

/// A Resize that something is, and the largest difference of a weight.
pub(crate) type Resized = (Value, f64);

/// A line of a linear Resize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// What the Resize is told besides, with the mode of coordinates.
    pub(crate) attrs: Vec<u8>,
    /// What it is told of the axis: the bits of its scale or -1, and the extent that it makes.
    pub(crate) told: Vec<i64>,
    pub(crate) from: i64,
    pub(crate) to: i64,
    mode: Mode,
    /// One by the scale, as a fraction.
    step: [i128; 2],
}

/// How places of a result become those of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
}

impl Line {
    /// The line of a Resize that is told this; `None` if it does not interpolate between two places, or the standard does not say where.
    pub(crate) fn new(attrs: &[u8], from: i64, told: &[i64]) -> Option<Line> {
        let mode = match attrs.strip_prefix(b"linear ")? {
            b"half_pixel " => Mode::HalfPixel,
            b"half_pixel_symmetric " => Mode::HalfPixelSymmetric,
            b"pytorch_half_pixel " => Mode::PytorchHalfPixel,
            b"align_corners " => Mode::AlignCorners,
            b"asymmetric " => Mode::Asymmetric,
            _ => return None,
        };
        let &[bits, to] = told else { return None };
        let known = 1..=1 << 24;
        let step = if bits == -1 { [i128::from(from), i128::from(to)] } else { inverse(u32::try_from(bits).ok()?)? };
        let exact = i128::from(from) * step[1] == i128::from(to) * step[0];
        // The extent that the standard takes there may be the one that is made, or the product with the scale.
        let clear = exact || !(mode == Mode::AlignCorners || mode == Mode::PytorchHalfPixel && to == 1);
        let line = Line { attrs: attrs.to_vec(), told: told.to_vec(), from, to, mode, step };
        (known.contains(&from) && known.contains(&to) && clear).then_some(line)
    }

    /// Where a place of the result lies, as a fraction.
    fn place(&self, at: i64) -> [i128; 2] {
        let [at, from, to] = [at, self.from, self.to].map(i128::from);
        let [over, under] = self.step;
        match self.mode {
            Mode::HalfPixelSymmetric => [(from - 1) * under + (2 * at + 1 - to) * over, 2 * under],
            Mode::AlignCorners | Mode::PytorchHalfPixel if to == 1 => [0, 1],
            Mode::AlignCorners => [at * (from - 1), to - 1],
            Mode::HalfPixel | Mode::PytorchHalfPixel => [(2 * at + 1) * over - under, 2 * under],
            Mode::Asymmetric => [at * over, under],
        }
    }

    /// How much of a place `of` the operand's line is in a place of the result's.
    pub(crate) fn share(&self, at: i64, of: i64) -> Option<f64> {
        let [place, one] = self.place(at);
        let last = i128::from(self.from - 1) * one;
        // From one place to the next one the share goes from all to nothing.
        let off = (place.clamp(0, last) - i128::from(of) * one).abs();
        (one > 0).then(|| (one - off).max(0) as f64 / one as f64)
    }
}

/// One by a float, as a fraction.
fn inverse(bits: u32) -> Option<[i128; 2]> {
    let scale = f32::from_bits(bits);
    (scale.is_normal() && scale > 0.0).then_some(())?;
    // A float is an integer of 24 bits times a power of two.
    let (integer, power) = (i128::from(bits & 0x7f_ffff | 0x80_0000), i64::from(bits >> 23) - 150);
    (-60..=20).contains(&power).then(|| [1 << (-power).max(0), integer << power.max(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mode: &str, from: i64, told: &[i64], at: i64) -> Vec<f64> {
        let line = Line::new(format!("linear {mode} ").as_bytes(), from, told).unwrap();
        (0..from).map(|of| line.share(at, of).unwrap()).collect()
    }

    #[test]
    fn shares_are_those_of_the_standard() {
        // As the standard's reference implementation has them.
        assert_eq!(row("half_pixel", 2, &[-1, 4], 0), [1.0, 0.0]);
        assert_eq!(row("half_pixel", 2, &[-1, 4], 1), [0.75, 0.25]);
        assert_eq!(row("align_corners", 3, &[-1, 5], 1), [0.5, 0.5, 0.0]);
        assert_eq!(row("asymmetric", 3, &[-1, 6], 3), [0.0, 0.5, 0.5]);
        assert_eq!(row("asymmetric", 3, &[-1, 6], 5), [0.0, 0.0, 1.0]);
        assert_eq!(row("pytorch_half_pixel", 4, &[-1, 1], 0), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(row("half_pixel", 4, &[-1, 1], 0), [0.0, 0.5, 0.5, 0.0]);
        // 5 places by 1.5 are 7.5, of which 7 are made.
        let scale = i64::from(1.5f32.to_bits());
        assert_eq!(row("half_pixel", 5, &[scale, 7], 2)[1..3], [5.0 / 6.0, 1.0 / 6.0]);
        assert_eq!(row("half_pixel_symmetric", 5, &[scale, 7], 3), [0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn what_the_standard_leaves_open_is_no_line() {
        let half = i64::from(1.5f32.to_bits());
        let line = |attrs: &str, from, told: &[i64]| Line::new(attrs.as_bytes(), from, told).is_some();
        assert!(!line("linear align_corners ", 5, &[half, 7]));
        assert!(line("linear align_corners ", 4, &[half, 6]));
        assert!(!line("linear tf_crop_and_resize ", 4, &[-1, 6]));
        assert!(!line("cubic half_pixel ", 4, &[-1, 6]));
        assert!(!line("antialias=Int(1);linear half_pixel ", 4, &[-1, 6]));
        assert!(!line("linear pytorch_half_pixel ", 3, &[i64::from(0.5f32.to_bits()), 1]));
        assert!(!line("linear half_pixel ", 3, &[i64::from(f32::NAN.to_bits()), 6]));
        assert!(!line("linear half_pixel ", 3, &[i64::from((-2f32).to_bits()), 6]));
    }

    #[test]
    fn fractions_are_those_of_floats() {
        for scale in [1.5f32, 0.3, 1e-5, 1024.7, 0.1] {
            let [over, under] = inverse(scale.to_bits()).unwrap();
            assert_eq!(((under as f64 / over as f64) as f32).to_bits(), scale.to_bits());
        }
    }
}
