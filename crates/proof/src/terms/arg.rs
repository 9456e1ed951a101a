//! Terms: what ops compute, of which operands.

use crate::terms::align::Class;
use crate::terms::name::{Name, OpName, Own, TermName};
use crate::terms::value::Value;
use crate::terms::view::{Digit, REPEAT, View};
use half::f16;

/// An operand of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    Absent,
    /// A constant: the common axes that it has, then extents of its own, and the number of its elements in that order.
    Constant {
        dtype: u8,
        axes: Vec<u32>,
        own: Vec<i64>,
        elements: u32,
    },
    /// A term, by what it reads along the common axes, then digits of its own.
    Term {
        term: u32,
        reads: Vec<Option<(u32, i64)>>,
        own: Vec<Digit>,
    },
    /// A value in its own logical order.
    View {
        term: u32,
        view: View,
    },
    /// A value of a shape that is not known.
    Opaque(u32),
}

/// What is computed. Two terms with equal fields compute the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub(crate) op: TermName,
    /// Everything else that the op is told.
    pub(crate) attrs: Vec<u8>,
    pub(crate) args: Vec<Arg>,
    /// Extents of the common axes of the operands, and what happens along each.
    pub(crate) over: Vec<i64>,
    pub(crate) class: Vec<Class>,
    /// Axes along which the order of indices matters: their digits and what the op is told of each.
    pub(crate) along: Vec<(Vec<Digit>, Vec<i64>)>,
    /// Extents of the result's axes, none of them 1.
    pub(crate) base: Vec<i64>,
    pub(crate) dtype: u8,
}

impl Term {
    /// A term of which only the op is said.
    pub(crate) fn of(op: OpName<'_>) -> Term {
        Term {
            op: op.owned(),
            attrs: Vec::new(),
            args: Vec::new(),
            over: Vec::new(),
            class: Vec::new(),
            along: Vec::new(),
            base: Vec::new(),
            dtype: 0,
        }
    }

    pub(crate) fn name(&self) -> OpName<'_> {
        self.op.borrowed()
    }

    /// Whether it is this op of the checker.
    pub(crate) fn is(&self, own: Own) -> bool {
        self.op == Name::Own(own)
    }

    /// The common axes along which it treats each index alike.
    pub(crate) fn alike(&self) -> impl Iterator<Item = usize> {
        self.class.iter().enumerate().filter(|(_, class)| **class == Class::Alike).map(|(axis, _)| axis)
    }
}

/// An axis along which the order of indices matters.
#[derive(Clone, Debug)]
pub(crate) struct Acted {
    /// The logical axis.
    pub(crate) axis: usize,
    /// What the op is told of this axis.
    pub(crate) told: Vec<i64>,
    /// Extent of the axis of the result.
    pub(crate) out: i64,
}

/// The name and the attributes of an op, and the element type of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(crate) name: OpName<'a>,
    pub(crate) attrs: &'a [u8],
    pub(crate) dtype: u8,
}

impl Op<'_> {
    pub(crate) fn term(&self) -> Term {
        Term { attrs: self.attrs.to_vec(), dtype: self.dtype, ..Term::of(self.name) }
    }
}

/// A digit of a constant.
pub(crate) fn constant_digit(extent: i64, stride: i64) -> Digit {
    Digit { axis: if stride == 0 { REPEAT } else { 0 }, extent, stride }
}

/// The elements of a constant, if they are floats of 32 or 16 bits.
pub(crate) fn numbers(value: &Value) -> Option<Vec<f64>> {
    as_floats(value.dtype, &value.elements()?)
}

/// Whether a constant has no elements but finite numbers.
pub(crate) fn is_finite(value: &Value) -> bool {
    let Some(all) = value.all() else { return false };
    // Without a branch for each.
    match value.dtype {
        1 => all.every(|bytes| {
            bytes.as_chunks().0.iter().fold(true, |others, x| others & f32::from_le_bytes(*x).is_finite())
        }),
        10 => all.every(|bytes| {
            bytes.as_chunks().0.iter().fold(true, |others, x| others & f16::from_le_bytes(*x).is_finite())
        }),
        _ => false,
    }
}

pub(crate) fn as_floats(dtype: u8, bytes: &[u8]) -> Option<Vec<f64>> {
    match dtype {
        1 => Some(bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()),
        10 => Some(bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64()).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_without_end_is_found_at_each_place() {
        for (bad, place) in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY].into_iter().flat_map(at_each_place)
        {
            let mut list = vec![6e4; 30];
            list[7] = 1e-40;
            assert!(both(&list).iter().all(is_finite));
            list[place] = bad;
            for value in both(&list) {
                assert!(!is_finite(&value));
                assert!(!is_finite(&value.permuted(&[1, 0]).unwrap()));
                for row in 0..5 {
                    let part = value.part(0, row, 1).unwrap();
                    assert_eq!(is_finite(&part), row != place as i64 / 6, "{bad} at {place}, row {row}");
                }
            }
        }
        assert!(!is_finite(&Value::ints(&[2], &[1, 2])));
    }

    fn at_each_place(bad: f32) -> impl Iterator<Item = (f32, usize)> {
        (0..30).map(move |place| (bad, place))
    }

    /// These numbers with 32 and with 16 bits.
    fn both(list: &[f32]) -> [Value; 2] {
        let floats: Vec<u8> = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        let halves: Vec<u8> = list.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect();
        [Value::constant(1, &[5, 6], floats.into()), Value::constant(10, &[5, 6], halves.into())]
    }

    #[test]
    fn what_is_the_same_everywhere_is_one_element() {
        for place in 0..12 {
            let mut list = [3_i64; 12];
            assert_eq!(Value::ints(&[3, 4], &list).splat().unwrap().count(), 1);
            list[place] = 4;
            assert!(Value::ints(&[3, 4], &list).splat().is_none());
            let part = Value::ints(&[3, 4], &list).part(0, 1, 1).unwrap();
            assert_eq!(part.splat().is_some(), place / 4 != 1);
        }
    }
}
