//! Images of lanes under element-wise functions.

use super::{Lane, LaneFormat};

/// An element-wise function of one operand.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum UnaryFn {
    /// The value itself.
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `x < 0 ? alpha * x : x`.
    LeakyRelu(f64),
    /// `x < 0 ? alpha * (exp(x) - 1) : x`.
    Elu(f64),
    /// `min(max(x, lo), hi)`.
    Clip(f64, f64),
    /// Absolute value.
    Abs,
    /// `-x`.
    Neg,
    /// Square root.
    Sqrt,
    /// `1 / x`.
    Reciprocal,
    /// Exponential.
    Exp,
    /// Natural logarithm.
    Log,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `clip(alpha * x + beta, 0, 1)`.
    HardSigmoid(f64, f64),
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `log(1 + exp(x))`.
    Softplus,
    /// `x * sigmoid(x)`.
    Silu,
    /// `x * Phi(x)`, either form.
    Gelu,
    /// `x * clip(x / 6 + 1/2, 0, 1)`.
    HardSwish,
    /// `x * tanh(softplus(x))`.
    Mish,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// Nearest integer, ties to even.
    Round,
    /// -1, 0 or 1.
    Sign,
}

/// An element-wise function of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryFn {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// `left ^ right`.
    Pow,
}

impl Lane {
    /// The lane of the result of a function.
    #[must_use]
    pub fn unary(self, function: UnaryFn, format: LaneFormat) -> Lane {
        let Some((lo, hi)) = self.bounds() else { return function.range_of_anything(format) };
        if let Some(exact) = self.as_const().and_then(|value| function.exact_at(value)) {
            return Lane::exact(exact, format);
        }
        match function.image(lo, hi) {
            Some((lo, hi)) if function.selects() && lo >= format.min && hi <= format.max => Lane::interval(lo, hi),
            Some((lo, hi)) => function.within_range(Lane::rounded(lo, hi, format)),
            None => Lane::Any,
        }
    }

    /// The lane of the result of a function of two lanes.
    #[must_use]
    pub fn binary(self, function: BinaryFn, other: Lane, format: LaneFormat) -> Lane {
        let (Some((a, b)), Some((c, d))) = (self.bounds(), other.bounds()) else { return Lane::Any };
        if let (Some(x), Some(y)) = (self.as_const(), other.as_const())
            && let Some(exact) = function.exact_at(x, y, format)
        {
            return Lane::exact(exact, format);
        }
        let corners = |f: fn(f64, f64) -> f64| {
            let all = [f(a, c), f(a, d), f(b, c), f(b, d)];
            (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        };
        let (lo, hi) = match function {
            BinaryFn::Add => (a + c, b + d),
            BinaryFn::Sub => (a - d, b - c),
            BinaryFn::Mul if self.is_zero() || other.is_zero() => return Lane::ZERO,
            BinaryFn::Mul => corners(|x, y| x * y),
            BinaryFn::Div if c <= 0.0 && d >= 0.0 => return Lane::Any,
            BinaryFn::Div if self.is_zero() => return Lane::ZERO,
            BinaryFn::Div => corners(|x, y| x / y),
            BinaryFn::Min => return Lane::interval(a.min(c), b.min(d)),
            BinaryFn::Max => return Lane::interval(a.max(c), b.max(d)),
            // Monotone in each operand on either side of 1, so the corners bound it; at 0 negative powers are infinite.
            BinaryFn::Pow if a > 0.0 => corners(f64::powf),
            BinaryFn::Pow if a >= 0.0 && c > 0.0 => (0.0, corners(f64::powf).1),
            BinaryFn::Pow => return Lane::Any,
        };
        Lane::rounded(lo, hi, format)
    }
}

impl UnaryFn {
    /// The value at a point where every implementation is exact.
    #[allow(clippy::float_cmp, reason = "exactness is the question")]
    fn exact_at(self, x: f64) -> Option<f64> {
        let zero = x == 0.0;
        match self {
            UnaryFn::Identity => Some(x),
            UnaryFn::Relu => Some(x.max(0.0)),
            UnaryFn::LeakyRelu(_) | UnaryFn::Elu(_) if x >= 0.0 => Some(x),
            UnaryFn::Clip(lo, hi) if self.selects() || (lo <= x && x <= hi) => Some(x.max(lo).min(hi)),
            UnaryFn::Abs => Some(x.abs()),
            UnaryFn::Neg => Some(-x),
            UnaryFn::Floor => Some(x.floor()),
            UnaryFn::Ceil => Some(x.ceil()),
            UnaryFn::Round => Some(x.round_ties_even()),
            UnaryFn::Sign => Some(if zero { 0.0 } else { x.signum() }),
            UnaryFn::Sqrt | UnaryFn::Reciprocal if x == 1.0 => Some(1.0),
            UnaryFn::Reciprocal if x == -1.0 => Some(-1.0),
            UnaryFn::Log if x == 1.0 => Some(0.0),
            UnaryFn::HardSigmoid(_, beta) if zero && is_short(beta) => Some(beta.clamp(0.0, 1.0)),
            UnaryFn::Sigmoid if zero => Some(0.5),
            UnaryFn::Exp | UnaryFn::Cos if zero => Some(1.0),
            UnaryFn::Sqrt
            | UnaryFn::Tanh
            | UnaryFn::Erf
            | UnaryFn::Softsign
            | UnaryFn::Silu
            | UnaryFn::Gelu
            | UnaryFn::HardSwish
            | UnaryFn::Mish
            | UnaryFn::Sin
                if zero =>
            {
                Some(0.0)
            }
            _ => None,
        }
    }

    /// Whether the result is an operand or a constant that every format has, so that no rounding happens.
    fn selects(self) -> bool {
        match self {
            UnaryFn::Identity | UnaryFn::Relu | UnaryFn::Abs | UnaryFn::Neg => true,
            UnaryFn::Clip(lo, hi) => is_short(lo) && is_short(hi),
            _ => false,
        }
    }

    /// Cuts a widened interval back to what the function can give at all.
    fn within_range(self, lane: Lane) -> Lane {
        let (min, max) = match self {
            UnaryFn::Sigmoid | UnaryFn::HardSigmoid(..) => (0.0, 1.0),
            UnaryFn::Tanh | UnaryFn::Erf | UnaryFn::Sin | UnaryFn::Cos | UnaryFn::Softsign => (-1.0, 1.0),
            UnaryFn::Sqrt | UnaryFn::Exp | UnaryFn::Softplus => (0.0, f64::MAX),
            _ => return lane,
        };
        lane.bounds().map_or(Lane::Any, |(lo, hi)| Lane::interval(lo.clamp(min, max), hi.clamp(min, max)))
    }

    /// Bounds of the image of `[lo, hi]`, before rounding; `None` where it is not finite or not defined.
    fn image(self, lo: f64, hi: f64) -> Option<(f64, f64)> {
        let rising = |f: &dyn Fn(f64) -> f64| Some((f(lo), f(hi)));
        match self {
            UnaryFn::Identity => Some((lo, hi)),
            UnaryFn::Relu => rising(&|x| x.max(0.0)),
            UnaryFn::LeakyRelu(alpha) if alpha >= 0.0 => rising(&|x| if x < 0.0 { alpha * x } else { x }),
            UnaryFn::Elu(alpha) if alpha >= 0.0 => rising(&|x| if x < 0.0 { alpha * x.exp_m1() } else { x }),
            UnaryFn::LeakyRelu(_) | UnaryFn::Elu(_) => None,
            UnaryFn::Clip(min, max) => rising(&|x| x.max(min).min(max)),
            UnaryFn::Abs => {
                let smallest = if lo <= 0.0 && hi >= 0.0 { 0.0 } else { lo.abs().min(hi.abs()) };
                Some((smallest, lo.abs().max(hi.abs())))
            }
            UnaryFn::Neg => Some((-hi, -lo)),
            UnaryFn::Sqrt => (lo >= 0.0).then(|| (lo.sqrt(), hi.sqrt())),
            UnaryFn::Reciprocal => (lo > 0.0 || hi < 0.0).then(|| (1.0 / hi, 1.0 / lo)),
            UnaryFn::Exp => rising(&f64::exp),
            UnaryFn::Log => (lo > 0.0).then(|| (lo.ln(), hi.ln())),
            UnaryFn::Sigmoid => rising(&|x| 1.0 / (1.0 + (-x).exp())),
            UnaryFn::HardSigmoid(alpha, beta) if alpha >= 0.0 => rising(&|x| (alpha * x + beta).clamp(0.0, 1.0)),
            UnaryFn::HardSigmoid(..) => Some((0.0, 1.0)),
            UnaryFn::Tanh => rising(&f64::tanh),
            UnaryFn::Erf | UnaryFn::Sin | UnaryFn::Cos => Some((-1.0, 1.0)),
            UnaryFn::Softsign => rising(&|x| x / (1.0 + x.abs())),
            UnaryFn::Softplus => Some((0.0, hi.max(0.0) + std::f64::consts::LN_2)),
            // Each dips once below zero, by less than this, and stays below the identity.
            UnaryFn::Silu => Some((-0.2785, hi.max(0.0))),
            UnaryFn::Gelu => Some((-0.1701, hi.max(0.0))),
            UnaryFn::HardSwish => Some((-0.375, hi.max(0.0))),
            UnaryFn::Mish => Some((-0.3089, hi.max(0.0))),
            UnaryFn::Floor => rising(&f64::floor),
            UnaryFn::Ceil => rising(&f64::ceil),
            UnaryFn::Round => rising(&f64::round_ties_even),
            UnaryFn::Sign => rising(&|x| if x == 0.0 { 0.0 } else { x.signum() }),
        }
    }

    /// NaN goes through every function, so the image of `any` is `any`, but for integers, which have none.
    fn range_of_anything(self, format: LaneFormat) -> Lane {
        if !format.integer {
            return Lane::Any;
        }
        match self.image(format.min, format.max) {
            Some((lo, hi)) if self.selects() => Lane::rounded(lo, hi, format),
            _ => Lane::Any,
        }
    }
}

impl BinaryFn {
    /// The value at a point where every implementation is exact: the neutral and absorbing elements, and integers.
    #[allow(clippy::float_cmp, reason = "exactness is the question")]
    fn exact_at(self, x: f64, y: f64, format: LaneFormat) -> Option<f64> {
        // Sums and products of small integers are exact in every format.
        let small = |value: f64| value.fract() == 0.0 && value.abs() <= 8.0;
        let both_small = small(x) && small(y);
        match self {
            BinaryFn::Add if x == 0.0 => Some(y),
            BinaryFn::Add | BinaryFn::Sub if y == 0.0 => Some(x),
            BinaryFn::Add if format.integer || both_small => Some(x + y),
            BinaryFn::Sub if format.integer || both_small => Some(x - y),
            BinaryFn::Mul if x == 0.0 || y == 0.0 => Some(0.0),
            BinaryFn::Mul if x == 1.0 => Some(y),
            BinaryFn::Mul | BinaryFn::Div if y == 1.0 => Some(x),
            BinaryFn::Mul if format.integer || both_small => Some(x * y),
            BinaryFn::Div if x == 0.0 && y != 0.0 => Some(0.0),
            BinaryFn::Min => Some(x.min(y)),
            BinaryFn::Max => Some(x.max(y)),
            BinaryFn::Pow if y == 0.0 => Some(1.0),
            BinaryFn::Pow if y == 1.0 => Some(x),
            BinaryFn::Pow if x == 0.0 && y > 0.0 => Some(0.0),
            BinaryFn::Pow if x == 1.0 => Some(1.0),
            _ => None,
        }
    }
}

/// Whether a value has so few bits that every format holds it exactly.
fn is_short(value: f64) -> bool {
    (value * 2.0).fract() == 0.0 && value.abs() <= 64.0
}
