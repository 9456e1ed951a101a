//! Filters of a transposed convolution, for a convolution that leaves each of its phases as channels of their own.

use super::{bytes_of, extents};
use bytes::Bytes;
use relayout_ir::constant::{ConstSource, Constant};

/// Weights of a transposed convolution, `[inputs, outputs, rows, columns]` of float32, as those of a convolution: for each phase its
/// outputs, for each of these the inputs, and for each place of the window a tap, or zero.
#[derive(Debug)]
pub struct Phased {
    /// The weights.
    pub weights: Constant,
    /// For each phase and each place of the window, row by row: the tap, row by row.
    pub taps: Vec<Vec<Option<usize>>>,
}

/// Bytes of an element.
const WIDTH: usize = 4;

impl ConstSource for Phased {
    fn depth(&self) -> usize {
        self.weights.source.depth().saturating_add(1)
    }

    fn bytes(&self) -> Result<Bytes, String> {
        let weights = bytes_of(&self.weights)?;
        let dims = extents(&self.weights.dims)?;
        let &[inputs, outputs, rows, columns] = dims.as_slice() else {
            return Err("weights are not those of images".to_owned());
        };
        let own = rows.saturating_mul(columns);
        let size = [inputs, outputs, own].into_iter().try_fold(WIDTH, usize::checked_mul);
        if size != Some(weights.len()) || self.taps.iter().flatten().flatten().any(|&tap| tap >= own) {
            return Err(format!("{} bytes are not weights {dims:?}, or lack a tap", weights.len()));
        }
        let places = self.taps.first().map_or(0, Vec::len);
        let size = [self.taps.len(), outputs, inputs, places].into_iter().try_fold(WIDTH, usize::checked_mul);
        let mut out = vec![0u8; size.ok_or("the result is too large")?];
        for (phase, taps) in self.taps.iter().enumerate() {
            let known: Vec<(usize, usize)> =
                taps.iter().take(places).enumerate().filter_map(|(place, tap)| Some((place, (*tap)?))).collect();
            for (output, input) in (0..outputs).flat_map(|output| (0..inputs).map(move |input| (output, input))) {
                let from = (input * outputs + output) * own;
                let to = ((phase * outputs + output) * inputs + input) * places;
                for (place, tap) in &known {
                    let [from, to] = [from + tap, to + place].map(|at| at * WIDTH);
                    out[to..to + WIDTH].copy_from_slice(&weights[from..from + WIDTH]);
                }
            }
        }
        Ok(out.into())
    }

    fn is_available(&self) -> bool {
        self.weights.source.is_available()
    }

    fn is_computed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::dtype::DType;

    #[test]
    fn each_phase_has_its_taps_and_zeros_elsewhere() {
        let floats = |v: &[f32]| Bytes::from(v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        // Two inputs, one output, a row of three taps.
        let weights = Constant::inline(DType::F32, vec![2, 1, 1, 3], floats(&[1., 2., 3., 4., 5., 6.]));
        let of = |taps: &[[Option<usize>; 2]]| {
            Phased { weights: weights.clone(), taps: taps.iter().map(|taps| taps.to_vec()).collect() }.bytes()
        };
        let [even, odd] = [[2., 0., 5., 0.], [3., 1., 6., 4.]];
        assert_eq!(of(&[[Some(1), None], [Some(2), Some(0)]]), Ok(floats(&[even, odd].concat())));
        assert!(of(&[[Some(3), None]]).is_err());
    }
}
