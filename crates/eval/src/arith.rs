//! Element-wise ops whose result is the same in every runtime: IEEE's own, comparisons, logic, conversions.

use super::numbers::Numbers;
use relayout_ir::dtype::DType;
use std::cmp::Ordering;

/// An op of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the ONNX op of its name")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Pow,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Xor,
}

/// An op of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the ONNX op of its name")]
pub enum Unary {
    Neg,
    Abs,
    Sqrt,
    Reciprocal,
    Floor,
    Ceil,
    Round,
    Not,
}

impl Binary {
    /// The op of this name.
    pub fn named(name: &str) -> Option<Binary> {
        Some(match name {
            "Add" => Binary::Add,
            "Sub" => Binary::Sub,
            "Mul" => Binary::Mul,
            "Div" => Binary::Div,
            "Min" => Binary::Min,
            "Max" => Binary::Max,
            "Pow" => Binary::Pow,
            "Equal" => Binary::Equal,
            "Less" => Binary::Less,
            "LessOrEqual" => Binary::LessOrEqual,
            "Greater" => Binary::Greater,
            "GreaterOrEqual" => Binary::GreaterOrEqual,
            "And" => Binary::And,
            "Or" => Binary::Or,
            "Xor" => Binary::Xor,
            _ => return None,
        })
    }

    /// Whether it computes a number of the operands' type.
    pub fn is_arithmetic(self) -> bool {
        matches!(self, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div)
    }

    /// The op on pairs of elements; `a` and `b` are as long as each other.
    ///
    /// # Errors
    /// For mixed types, integer divisions that have no result, and extremes and powers on which runtimes differ.
    pub fn apply(self, a: &Numbers, b: &Numbers) -> Result<Numbers, String> {
        match (a, b) {
            (Numbers::F32(a), Numbers::F32(b)) if self == Binary::Pow => {
                a.iter().zip(b).map(|(&x, &y)| narrow_power(x, y)).collect::<Result<_, _>>().map(Numbers::F32)
            }
            (Numbers::F64(a), Numbers::F64(b)) if self == Binary::Pow => {
                a.iter().zip(b).map(|(&x, &y)| power(x, y)).collect::<Result<_, _>>().map(Numbers::F64)
            }
            (Numbers::F32(a), Numbers::F32(b)) if self.is_extreme() => self.extreme(a, b).map(Numbers::F32),
            (Numbers::F64(a), Numbers::F64(b)) if self.is_extreme() => self.extreme(a, b).map(Numbers::F64),
            (Numbers::F32(a), Numbers::F32(b)) if self.is_arithmetic() => {
                Ok(Numbers::F32(pairs(a, b, |x, y| self.f32(x, y))))
            }
            (Numbers::F64(a), Numbers::F64(b)) if self.is_arithmetic() => {
                Ok(Numbers::F64(pairs(a, b, |x, y| self.f64(x, y))))
            }
            (Numbers::F32(a), Numbers::F32(b)) => self.compare(a, b),
            (Numbers::F64(a), Numbers::F64(b)) => self.compare(a, b),
            (Numbers::Int(a), Numbers::Int(b)) => {
                a.iter().zip(b).map(|(&x, &y)| self.int(x, y)).collect::<Result<_, _>>().map(Numbers::Int)
            }
            _ => Err("the operands are of different types".to_owned()),
        }
    }

    fn is_extreme(self) -> bool {
        matches!(self, Binary::Min | Binary::Max)
    }

    /// Runtimes differ on which of two zeros is the larger, and on what NaN makes of a number.
    fn extreme<T: Copy + Into<f64>>(self, a: &[T], b: &[T]) -> Result<Vec<T>, String> {
        let of = |(&x, &y): (&T, &T)| {
            let (wide, other): (f64, f64) = (x.into(), y.into());
            match wide.partial_cmp(&other) {
                Some(Ordering::Less) => Ok(if self == Binary::Min { x } else { y }),
                Some(Ordering::Greater) => Ok(if self == Binary::Min { y } else { x }),
                Some(Ordering::Equal) if wide.to_bits() == other.to_bits() => Ok(x),
                _ => Err(format!("runtimes differ on {self:?} of {wide} and {other}")),
            }
        };
        a.iter().zip(b).map(of).collect()
    }

    fn f32(self, x: f32, y: f32) -> f32 {
        match self {
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            _ => x + y,
        }
    }

    fn f64(self, x: f64, y: f64) -> f64 {
        match self {
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            _ => x + y,
        }
    }

    fn compare<T: PartialOrd + Copy>(self, a: &[T], b: &[T]) -> Result<Numbers, String> {
        let holds: fn(&T, &T) -> bool = match self {
            Binary::Equal => |x, y| x == y,
            Binary::Less => |x, y| x < y,
            Binary::LessOrEqual => |x, y| x <= y,
            Binary::Greater => |x, y| x > y,
            Binary::GreaterOrEqual => |x, y| x >= y,
            _ => return Err("floats have no logic".to_owned()),
        };
        Ok(Numbers::Int(a.iter().zip(b).map(|(x, y)| i64::from(holds(x, y))).collect()))
    }

    fn int(self, x: i64, y: i64) -> Result<i64, String> {
        Ok(match self {
            Binary::Add => x.wrapping_add(y),
            Binary::Sub => x.wrapping_sub(y),
            Binary::Mul => x.wrapping_mul(y),
            Binary::Div => x.checked_div(y).ok_or("a division has no result")?,
            Binary::Min => x.min(y),
            Binary::Max => x.max(y),
            Binary::Pow => return Err("powers of integers are not evaluated".to_owned()),
            Binary::Equal => i64::from(x == y),
            Binary::Less => i64::from(x < y),
            Binary::LessOrEqual => i64::from(x <= y),
            Binary::Greater => i64::from(x > y),
            Binary::GreaterOrEqual => i64::from(x >= y),
            Binary::And => i64::from(x != 0 && y != 0),
            Binary::Or => i64::from(x != 0 || y != 0),
            Binary::Xor => i64::from((x != 0) != (y != 0)),
        })
    }
}

#[expect(clippy::float_cmp, reason = "exactness is the question")]
fn narrow_power(x: f32, y: f32) -> Result<f32, String> {
    let exact = power(x.into(), y.into())?;
    if f64::from(exact as f32) == exact { Ok(exact as f32) } else { Err(rounded(x.into(), y.into())) }
}

/// A root or a square that needs no rounding; exporters take the root of how many patches an image has.
#[expect(clippy::float_cmp, reason = "only these two exponents are taken")]
fn power(x: f64, y: f64) -> Result<f64, String> {
    let (exact, rest) = if y == 0.5 && x > 0.0 {
        (x.sqrt(), x.sqrt().mul_add(x.sqrt(), -x))
    } else if y == 2.0 {
        (x * x, x.mul_add(x, -x * x))
    } else {
        return Err(rounded(x, y));
    };
    if rest == 0.0 && exact.is_normal() { Ok(exact) } else { Err(rounded(x, y)) }
}

fn rounded(x: f64, y: f64) -> String {
    format!("how {x} to the power of {y} is rounded depends on the runtime")
}

fn pairs<T: Copy>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> Vec<T> {
    a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect()
}

impl Unary {
    /// Whether the result changes little where the operand does, and is a number of the same kind.
    pub(super) fn is_continuous(self) -> bool {
        matches!(self, Unary::Neg | Unary::Abs | Unary::Sqrt | Unary::Reciprocal)
    }

    /// The op of this name.
    pub fn named(name: &str) -> Option<Unary> {
        Some(match name {
            "Neg" => Unary::Neg,
            "Abs" => Unary::Abs,
            "Sqrt" => Unary::Sqrt,
            "Reciprocal" => Unary::Reciprocal,
            "Floor" => Unary::Floor,
            "Ceil" => Unary::Ceil,
            "Round" => Unary::Round,
            "Not" => Unary::Not,
            _ => return None,
        })
    }

    /// The op on every element.
    ///
    /// # Errors
    /// If it is none of these elements.
    pub fn apply(self, x: &Numbers) -> Result<Numbers, String> {
        let none = || format!("{self:?} is not an op of these elements");
        Ok(match x {
            Numbers::F32(v) => {
                let f: fn(f32) -> f32 = match self {
                    Unary::Neg => |x| -x,
                    Unary::Abs => f32::abs,
                    Unary::Sqrt => f32::sqrt,
                    Unary::Reciprocal => |x| 1.0 / x,
                    Unary::Floor => f32::floor,
                    Unary::Ceil => f32::ceil,
                    Unary::Round => f32::round_ties_even,
                    Unary::Not => return Err(none()),
                };
                Numbers::F32(v.iter().map(|&x| f(x)).collect())
            }
            Numbers::F64(v) => {
                let f: fn(f64) -> f64 = match self {
                    Unary::Neg => |x| -x,
                    Unary::Abs => f64::abs,
                    Unary::Sqrt => f64::sqrt,
                    Unary::Reciprocal => |x| 1.0 / x,
                    Unary::Floor => f64::floor,
                    Unary::Ceil => f64::ceil,
                    Unary::Round => f64::round_ties_even,
                    Unary::Not => return Err(none()),
                };
                Numbers::F64(v.iter().map(|&x| f(x)).collect())
            }
            Numbers::Int(v) => {
                let f: fn(i64) -> i64 = match self {
                    Unary::Neg => i64::wrapping_neg,
                    Unary::Abs => i64::wrapping_abs,
                    Unary::Not => |x| i64::from(x == 0),
                    _ => return Err(none()),
                };
                Numbers::Int(v.iter().map(|&x| f(x)).collect())
            }
        })
    }
}

/// Cast: the numbers as those in which type `to` computes, ready to be encoded.
///
/// # Errors
/// Where runtimes differ: floats that no integer of the type stands for, and roundings that depend on the way.
pub(super) fn cast(x: &Numbers, from: DType, to: DType) -> Result<Numbers, String> {
    let unlike = || format!("runtimes differ on {from} to {to}");
    Ok(match (x, to) {
        (Numbers::F32(v), DType::F32) => Numbers::F32(v.clone()),
        (Numbers::F32(v), DType::F16) if from == DType::F32 => Numbers::F32(v.clone()),
        (Numbers::F32(v), DType::F64) => Numbers::F64(v.iter().map(|&x| f64::from(x)).collect()),
        (Numbers::F64(v), DType::F32 | DType::F64) => Numbers::F64(v.clone()),
        (Numbers::F32(v), DType::Bool) => Numbers::Int(v.iter().map(|&x| i64::from(x != 0.0)).collect()),
        (Numbers::F64(v), DType::Bool) => Numbers::Int(v.iter().map(|&x| i64::from(x != 0.0)).collect()),
        (Numbers::F32(v), _) if !to.is_float() => {
            let wide: Vec<f64> = v.iter().map(|&x| f64::from(x)).collect();
            Numbers::Int(truncated(&wide, to).ok_or_else(unlike)?)
        }
        (Numbers::F64(v), _) if !to.is_float() => Numbers::Int(truncated(v, to).ok_or_else(unlike)?),
        (Numbers::Int(v), DType::F32) => Numbers::F32(v.iter().map(|&i| i as f32).collect()),
        (Numbers::Int(v), DType::F64) => Numbers::F64(v.iter().map(|&i| i as f64).collect()),
        // Whole numbers that a half has need no rounding.
        (Numbers::Int(v), DType::F16) if v.iter().all(|i| i.unsigned_abs() <= 2048) => {
            Numbers::F32(v.iter().map(|&i| i as f32).collect())
        }
        (Numbers::Int(v), _) if !to.is_float() => Numbers::Int(v.clone()),
        _ => return Err(unlike()),
    })
}

/// Floats cut to whole numbers, if type `to` has each.
fn truncated(v: &[f64], to: DType) -> Option<Vec<i64>> {
    let (low, high) = match to {
        // The largest float below 2^63 is well below i64::MAX, so that the bounds are exact.
        DType::I64 => (-9.2e18, 9.2e18),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::U8 => (0.0, f64::from(u8::MAX)),
        _ => return None,
    };
    v.iter().map(|x| (low..=high).contains(x).then_some(x.trunc() as i64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_division_truncates_and_refuses_zero() {
        let div = |a, b| Binary::Div.apply(&Numbers::Int(vec![a]), &Numbers::Int(vec![b]));
        assert_eq!(div(-7, 2), Ok(Numbers::Int(vec![-3])));
        assert!(div(1, 0).is_err() && div(i64::MIN, -1).is_err());
    }

    #[test]
    fn extremes_on_which_runtimes_differ_are_refused() {
        let max = |a, b| Binary::Max.apply(&Numbers::F32(vec![a]), &Numbers::F32(vec![b]));
        assert_eq!(max(-1.5, 0.0), Ok(Numbers::F32(vec![0.0])));
        assert_eq!(max(0.0, 0.0), Ok(Numbers::F32(vec![0.0])));
        assert!(max(-0.0, 0.0).is_err() && max(f32::NAN, 0.0).is_err());
        assert_eq!(Binary::Min.apply(&Numbers::Int(vec![-3]), &Numbers::Int(vec![2])), Ok(Numbers::Int(vec![-3])));
    }

    #[test]
    fn powers_that_need_rounding_are_refused() {
        let pow = |a, b| Binary::Pow.apply(&Numbers::F32(vec![a]), &Numbers::F32(vec![b]));
        assert_eq!(pow(196.0, 0.5), Ok(Numbers::F32(vec![14.0])));
        assert_eq!(pow(-1.5, 2.0), Ok(Numbers::F32(vec![2.25])));
        let long = 1.0 + f32::EPSILON;
        let refused = [(2.0, 0.5), (-4.0, 0.5), (long, 2.0), (1e30, 2.0), (4.0, 1.5), (f32::NAN, 2.0)];
        assert!(refused.into_iter().all(|(a, b)| pow(a, b).is_err()));
        assert!(Binary::Pow.apply(&Numbers::F64(vec![0.1]), &Numbers::F64(vec![2.0])).is_err());
    }

    #[test]
    fn casts_on_which_runtimes_differ_are_refused() {
        let half = Numbers::F32(vec![-1.5]);
        assert_eq!(cast(&half, DType::F32, DType::I32), Ok(Numbers::Int(vec![-1])));
        assert!(cast(&half, DType::F32, DType::U8).is_err());
        assert!(cast(&Numbers::F32(vec![f32::NAN]), DType::F32, DType::I64).is_err());
        assert!(cast(&half, DType::F32, DType::BF16).is_err());
        assert!(cast(&Numbers::Int(vec![2049]), DType::I64, DType::F16).is_err());
    }
}
