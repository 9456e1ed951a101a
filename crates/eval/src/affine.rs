//! Element-wise nodes read as `y = scale * x + shift` with constants, one of each per channel or one for all.

use crate::{bytes_of, decode};
use relayout_ir::constant::Constant;
use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::op::int_or_default;
use relayout_ir::op::read::epsilon;

/// Largest factor that is taken into weights, and the inverse of the smallest besides 0: beyond it weights may leave the range
/// of their type where the op's results would not.
const FACTOR_LIMIT: f64 = (1u64 << 24) as f64;

/// Most elements of a constant that is read as scales or shifts.
const READ_ELEMS: u64 = 1 << 20;

/// `y = scale * x + shift`, both with one entry per channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// Factors.
    pub scale: Vec<f64>,
    /// Summands.
    pub shift: Vec<f64>,
}

impl Affine {
    /// `y = x`.
    pub fn identity(channels: usize) -> Affine {
        Affine { scale: vec![1.0; channels], shift: vec![0.0; channels] }
    }

    /// This, then `next`.
    #[must_use]
    pub fn then(&self, next: &Affine) -> Affine {
        let scale = self.scale.iter().zip(&next.scale).map(|(a, b)| a * b).collect();
        let through = self.shift.iter().zip(&next.scale).map(|(a, b)| a * b);
        Affine { scale, shift: through.zip(&next.shift).map(|(a, b)| a + b).collect() }
    }

    /// Whether every factor is 1.
    pub fn keeps_scale(&self) -> bool {
        self.scale.iter().all(|s| s.to_bits() == 1.0f64.to_bits())
    }

    /// Whether every summand is 0.
    pub fn keeps_origin(&self) -> bool {
        self.shift.iter().all(|t| t.abs() <= 0.0)
    }

    /// Whether weights and biases can take it.
    pub fn is_moderate(&self) -> bool {
        let factor = |s: &f64| s.abs() <= 0.0 || (FACTOR_LIMIT.recip()..=FACTOR_LIMIT).contains(&s.abs());
        self.scale.iter().all(factor) && self.shift.iter().all(|t| t.is_finite())
    }
}

/// A node that reads `x`, whose axis `axis` has the channels, as scale and shift; without an axis only what is the same for
/// all channels is one.
pub fn reading(graph: &Graph, node: &Node, x: ValueId, axis: Option<usize>, channels: usize) -> Option<Affine> {
    let rank = graph.value(x).ty.rank()?;
    let per_channel = |v: ValueId| vector(graph, v, rank, axis, channels);
    let one = || vec![1.0; channels];
    let none = || vec![0.0; channels];
    let affine = match node.onnx()? {
        "Neg" => Affine { scale: vec![-1.0; channels], shift: none() },
        "BatchNormalization" => batch_normalization(graph, node, x, axis, channels)?,
        op @ ("Add" | "Sub" | "Mul" | "Div") if node.opset >= 7 => {
            let (a, b) = (node.operand(0)?, node.operand(1)?);
            let first = a == x;
            if first == (b == x) {
                return None;
            }
            let c = per_channel(if first { b } else { a })?;
            match (op, first) {
                ("Add", _) => Affine { scale: one(), shift: c },
                ("Sub", true) => Affine { scale: one(), shift: c.iter().map(|c| -c).collect() },
                ("Sub", false) => Affine { scale: vec![-1.0; channels], shift: c },
                ("Mul", _) => Affine { scale: c, shift: none() },
                ("Div", true) => Affine { scale: c.iter().map(|c| c.recip()).collect(), shift: none() },
                _ => return None,
            }
        }
        _ => return None,
    };
    affine.is_moderate().then_some(affine)
}

/// BatchNormalization at inference, with all its parameters constant.
fn batch_normalization(graph: &Graph, node: &Node, x: ValueId, axis: Option<usize>, channels: usize) -> Option<Affine> {
    let trains = node.flag("training_mode");
    // Before opset 7 an attribute says which mode it is; before 9, one may make statistics per element.
    let per_element = node.opset < 7 || (node.opset < 9 && int_or_default(node, "spatial") == Some(0));
    if trains || per_element || axis != Some(1) || node.operand(0) != Some(x) {
        return None;
    }
    if node.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let epsilon = epsilon(node)?;
    let parameter = |slot: usize| {
        let values = floats(graph.constant(node.operand(slot)?)?)?;
        (values.len() == channels).then_some(values)
    };
    let (gamma, beta, mean, var) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
    let scale: Vec<f64> = gamma.iter().zip(&var).map(|(g, v)| g / (v + f64::from(epsilon)).sqrt()).collect();
    let shift = beta.iter().zip(&mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
    Some(Affine { scale, shift })
}

/// A constant that broadcasts over a tensor of this rank without changing its shape: one number, or one per channel.
fn vector(graph: &Graph, v: ValueId, rank: usize, axis: Option<usize>, channels: usize) -> Option<Vec<f64>> {
    let c = graph.constant(v)?;
    let skip = rank.checked_sub(c.dims.len())?;
    if c.elems()? == 1 {
        return Some(vec![*floats(c)?.first()?; channels]);
    }
    let axis = axis?.checked_sub(skip)?;
    let along = c.dims.iter().enumerate().all(|(i, &d)| if i == axis { d == channels as i64 } else { d == 1 });
    if along { floats(c) } else { None }
}

/// Elements of a constant of floats, if they are few and there.
pub fn floats(c: &Constant) -> Option<Vec<f64>> {
    if !c.dtype.is_float() || c.elems()? > READ_ELEMS || !c.source.is_available() {
        return None;
    }
    let numbers = decode(c.dtype, &bytes_of(c).ok()?).ok()?.floats()?;
    (numbers.len() as u64 == c.elems()?).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_and_shifts_compose_in_the_order_of_the_nodes() {
        let a = Affine { scale: vec![2.0], shift: vec![3.0] };
        let b = Affine { scale: vec![5.0], shift: vec![7.0] };
        assert_eq!(a.then(&b), Affine { scale: vec![10.0], shift: vec![22.0] });
        assert_eq!(Affine::identity(1).then(&a), a);
        assert!(!a.keeps_scale() && !a.keeps_origin() && Affine::identity(3).keeps_scale());
    }

    #[test]
    fn factors_that_could_overflow_or_vanish_are_not_moderate() {
        for scale in [f64::NAN, f64::INFINITY, 1e30, 1e-30] {
            assert!(!Affine { scale: vec![scale], shift: vec![0.0] }.is_moderate(), "{scale}");
        }
        assert!(!Affine { scale: vec![1.0], shift: vec![f64::INFINITY] }.is_moderate());
        assert!(Affine { scale: vec![0.0], shift: vec![-1.0] }.is_moderate());
    }
}
