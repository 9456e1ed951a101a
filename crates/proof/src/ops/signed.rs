//! Signed bytes are unsigned ones less 128. A number that is quantized to signed bytes with a zero point z is the one that is quantized
//! to unsigned bytes with z + 128, less 128: rounding comes before the zero point is added, and both types end 128 apart. Nobody sees the
//! difference who takes the zero point away again. So either way of writing them is the same term.

use super::{Made, pointwise};
use crate::lemmas::real::through;
use crate::terms::align::term_of;
use crate::terms::arg::Op;
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use std::rc::Rc;

pub(super) const UNSIGNED: u8 = 2;
pub(super) const SIGNED: u8 = 3;

/// Bytes that differ by 128 differ by this bit.
const BIT: u8 = 0x80;

/// A known zero point of signed bytes as that of unsigned ones.
pub(super) fn shifted(zero: &Value) -> Option<Value> {
    let bytes = zero.elements().filter(|_| zero.dtype == SIGNED)?;
    let view = crate::terms::view::row_major(&zero.shape());
    let data: Vec<u8> = bytes.iter().map(|b| b ^ BIT).collect();
    Some(Value { source: Source::Constant { data: data.into(), offset: 0 }, view, dtype: UNSIGNED })
}

/// Unsigned bytes less 128.
pub(super) fn signed(terms: &mut Terms, bytes: &Value) -> Made {
    pointwise(terms, &Op { name: Name::Own(Own::Signed), attrs: &[], dtype: SIGNED }, &[bytes])
}

/// What signed bytes are 128 less than, if that is known.
pub(super) fn unsigned(terms: &Terms, bytes: &Value) -> Option<Value> {
    let term = Rc::clone(terms.get(term_of(bytes)?));
    if term.is(Own::Signed) { through(terms, bytes, &term, 0) } else { None }
}
