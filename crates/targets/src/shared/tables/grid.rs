//! A grid of measured times, and what lies between its points.
//!
//! A grid keeps nanoseconds per unit of work at each of its points, as a logarithm, and is linear between them in the logarithms
//! of its axes. Outside it the rate of the nearest point holds. Logarithms are computed here, with nothing but IEEE arithmetic,
//! so that the same table gives the same costs on every machine.

/// Rates over the product of some axes.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Logarithms of the points of each axis, ascending.
    axes: Vec<Vec<f64>>,
    /// Logarithms of nanoseconds per unit of work, the last axis fastest.
    rates: Vec<f64>,
}

impl Grid {
    /// A grid with one rate per point, in nanoseconds per unit of work, the last axis fastest.
    pub(crate) fn new(axes: &[Vec<u64>], rates: &[f64]) -> Grid {
        let points = |axis: &Vec<u64>| axis.iter().map(|&p| log2(p as f64)).collect();
        Grid { axes: axes.iter().map(points).collect(), rates: rates.iter().map(|&r| log2(r)).collect() }
    }

    /// Nanoseconds per unit of work at a place; one coordinate per axis.
    pub(crate) fn rate(&self, at: &[f64]) -> f64 {
        exp2(self.between(0, 0, at))
    }

    /// These rates over those of another grid of the same points.
    pub(crate) fn over(self, other: &Grid) -> Grid {
        let rates = self.rates.iter().zip(&other.rates).map(|(rate, under)| rate - under).collect();
        Grid { rates, ..self }
    }

    /// The place within the grid that is nearest.
    pub(crate) fn nearest<const N: usize>(&self, at: [f64; N]) -> [f64; N] {
        let mut nearest = at;
        for (x, axis) in nearest.iter_mut().zip(&self.axes) {
            if let (Some(&first), Some(&last)) = (axis.first(), axis.last()) {
                *x = exp2(log2(*x).clamp(first, last));
            }
        }
        nearest
    }

    /// Interpolates along axis `axis` and those after it, among the points whose index so far is `index`.
    fn between(&self, axis: usize, index: usize, at: &[f64]) -> f64 {
        let (Some(points), Some(&x)) = (self.axes.get(axis), at.get(axis)) else {
            return self.rates.get(index).copied().unwrap_or_default();
        };
        let (low, part) = place(points, log2(x));
        let below = self.between(axis + 1, index * points.len() + low, at);
        if part == 0.0 {
            return below;
        }
        let above = self.between(axis + 1, index * points.len() + low + 1, at);
        below + (above - below) * part
    }
}

/// The interval that `x` lies in, and which part of it is below `x`; the ends hold beyond them.
fn place(points: &[f64], x: f64) -> (usize, f64) {
    let above = points.partition_point(|&p| p <= x);
    let Some(low) = above.checked_sub(1) else { return (0, 0.0) };
    match (points.get(low), points.get(above)) {
        (Some(a), Some(b)) => (low, (x - a) / (b - a)),
        _ => (low, 0.0),
    }
}

/// Logarithm to base 2; what is not positive counts as the smallest normal number.
pub(crate) fn log2(x: f64) -> f64 {
    let bits = x.max(f64::MIN_POSITIVE).to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // ln m = 2 artanh((m - 1) / (m + 1)), the argument at most 1/3: twelve terms leave 1e-13.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, i| sum * s * s + 1.0 / f64::from(2 * i + 1));
    exponent as f64 + 2.0 * s * series * std::f64::consts::LOG2_E
}

/// Two to the power of `x`, which is clamped to what is normal.
pub(crate) fn exp2(x: f64) -> f64 {
    let x = x.clamp(-1000.0, 1000.0);
    let whole = x.floor();
    let y = (x - whole) * std::f64::consts::LN_2;
    // The series of e^y for y below 0.7: eighteen terms leave less than 1e-17.
    let series = (1..18).rev().fold(1.0, |sum, i| 1.0 + sum * y / f64::from(i));
    series * f64::from_bits(((whole as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_agree_with_the_mathematical_library() {
        for i in -300..300 {
            let x = 1.7_f64.powi(i / 3) * (1.0 + f64::from(i.rem_euclid(7)) / 9.0);
            assert!((log2(x) - x.log2()).abs() < 1e-11, "{x}");
            let y = f64::from(i) / 7.3;
            assert!((exp2(y) / y.exp2() - 1.0).abs() < 1e-13, "{y}");
        }
    }

    #[test]
    fn a_point_gives_its_own_rate_and_the_middle_the_geometric_mean() {
        let grid = Grid::new(&[vec![1, 4], vec![10, 1000]], &[1.0, 4.0, 16.0, 64.0]);
        let near = |at: &[f64], rate: f64| assert!((grid.rate(at) / rate - 1.0).abs() < 1e-9, "{at:?}");
        near(&[1.0, 10.0], 1.0);
        near(&[4.0, 1000.0], 64.0);
        near(&[2.0, 10.0], 4.0);
        near(&[2.0, 100.0], 8.0);
        let quarters = Grid::new(&[vec![1, 4], vec![10, 1000]], &[4.0; 4]);
        assert!((grid.over(&quarters).rate(&[2.0, 100.0]) / 2.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn beyond_its_ends_a_grid_keeps_the_rate_of_its_edge() {
        let grid = Grid::new(&[vec![2, 8]], &[3.0, 5.0]);
        for (at, rate) in [(0.0, 3.0), (1.0, 3.0), (8.0, 5.0), (1e9, 5.0)] {
            assert!((grid.rate(&[at]) / rate - 1.0).abs() < 1e-9, "{at}");
        }
    }
}
