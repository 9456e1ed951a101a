//! Of which elements of a line a linear Resize takes how much, in each mode of coordinates.
//!
//! Formulas: operator Resize of ONNX, `coordinate_transformation_mode`. Coordinates beyond the ends are those of the ends.

/// A line of elements that becomes another one.
pub(super) struct Line {
    pub(super) from: i64,
    pub(super) to: i64,
    scale: f64,
    mode: Mode,
}

/// How coordinates of a result become those of the operand.
#[derive(Clone, Copy)]
enum Mode {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
}

impl Line {
    /// A line whose scale is told or follows from its extents.
    pub(super) fn new(from: i64, to: i64, scale: Option<f64>, mode: &str) -> Option<Line> {
        let mode = match mode {
            "half_pixel" => Mode::HalfPixel,
            "half_pixel_symmetric" => Mode::HalfPixelSymmetric,
            "pytorch_half_pixel" => Mode::PytorchHalfPixel,
            "align_corners" => Mode::AlignCorners,
            "asymmetric" => Mode::Asymmetric,
            _ => return None,
        };
        let scale = scale.unwrap_or(to as f64 / from as f64);
        (from > 0 && to > 0 && scale > 0.0).then_some(Line { from, to, scale, mode })
    }

    fn coordinate(&self, i: i64) -> f64 {
        let (i, from, to) = (i as f64, self.from as f64, self.to as f64);
        let half = (i + 0.5) / self.scale - 0.5;
        match self.mode {
            Mode::HalfPixel => half,
            Mode::HalfPixelSymmetric => from / 2.0 * (1.0 - to / (self.scale * from)) + half,
            Mode::PytorchHalfPixel if self.to > 1 => half,
            Mode::AlignCorners if self.to > 1 => i * (from - 1.0) / (to - 1.0),
            Mode::PytorchHalfPixel | Mode::AlignCorners => 0.0,
            Mode::Asymmetric => i / self.scale,
        }
    }

    /// The matrix `[to, from]` by which a line is multiplied.
    pub(super) fn matrix(&self) -> Vec<f64> {
        let from = usize::try_from(self.from).unwrap_or(0);
        let mut matrix = Vec::new();
        for i in 0..self.to {
            let at = self.coordinate(i).clamp(0.0, (self.from - 1) as f64);
            let low = at.floor();
            let mut row = vec![0.0; from];
            let first = low as usize;
            for (place, share) in [(first, 1.0 - (at - low)), (first + 1, at - low)] {
                if let Some(weight) = row.get_mut(place) {
                    *weight += share;
                }
            }
            matrix.extend(row);
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn rows_sum_to_one_in_every_mode() {
        for mode in ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"] {
            for (from, to) in [(1, 1), (1, 4), (3, 7), (5, 10), (7, 3), (4, 1)] {
                let line = Line::new(from, to, None, mode).unwrap();
                for row in line.matrix().chunks(from as usize) {
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{mode} {from} to {to}");
                }
            }
        }
        assert!(Line::new(2, 4, None, "tf_crop_and_resize").is_none());
    }
}
