//! Equality of messages that hold weights or floats.
//!
//! Two tensors that share their bytes are equal without a look at them: a comparison of two models over one mapped file reads
//! no weights. Floats are equal if their bits are, so a model with a NaN in it equals itself.

use bytes::Bytes;

pub(super) fn same_bytes(a: Option<&Bytes>, b: Option<&Bytes>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.len() == b.len() && (a.as_ptr() == b.as_ptr() || a == b),
        (None, None) => true,
        _ => false,
    }
}

pub(super) fn same_floats(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

pub(super) fn same_doubles(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
    use super::super::{AttributeProto, TensorProto};
    use super::*;

    #[test]
    fn a_message_with_a_nan_equals_itself_and_not_one_with_another() {
        let tensor = TensorProto { float_data: vec![f32::NAN], double_data: vec![f64::NAN], ..TensorProto::default() };
        let attribute = AttributeProto { f: Some(f32::NAN), floats: vec![f32::NAN], ..AttributeProto::default() };
        assert_eq!((tensor.clone(), attribute.clone()), (tensor.clone(), attribute.clone()));
        assert_ne!(tensor, TensorProto { float_data: vec![1.0], ..tensor.clone() });
        assert_ne!(attribute, AttributeProto { f: Some(-f32::NAN), ..attribute.clone() });
    }

    #[test]
    fn tensors_with_other_bytes_differ_and_those_with_equal_ones_do_not() {
        let of =
            |bytes: &'static [u8]| TensorProto { raw_data: Some(Bytes::from_static(bytes)), ..TensorProto::default() };
        let copy = TensorProto { raw_data: Some(Bytes::from(vec![1, 2])), ..TensorProto::default() };
        assert_eq!(of(&[1, 2]), copy);
        assert_ne!(of(&[1, 2]), of(&[1, 3]));
        assert_ne!(of(&[1, 2]), of(&[1]));
        assert_ne!(of(&[]), TensorProto::default());
    }
}
