//! Equality of messages that hold weights or floats.
//!
//! Two tensors that share their bytes are equal without a look at them: a comparison of two models over one mapped file reads
//! no weights. Floats are equal if their bits are, so a model with a NaN in it equals itself.

use super::{AttributeProto, TensorProto};
use bytes::Bytes;

impl PartialEq for TensorProto {
    fn eq(&self, other: &Self) -> bool {
        // Named one by one, so that a new field can't be forgotten.
        let Self {
            dims,
            data_type,
            segment,
            float_data,
            int32_data,
            string_data,
            int64_data,
            name,
            raw_data,
            double_data,
            uint64_data,
            doc_string,
            external_data,
            data_location,
            metadata_props,
        } = self;
        dims == &other.dims
            && data_type == &other.data_type
            && segment == &other.segment
            && same_floats(float_data, &other.float_data)
            && int32_data == &other.int32_data
            && string_data == &other.string_data
            && int64_data == &other.int64_data
            && name == &other.name
            && same_bytes(raw_data.as_ref(), other.raw_data.as_ref())
            && same_doubles(double_data, &other.double_data)
            && uint64_data == &other.uint64_data
            && doc_string == &other.doc_string
            && external_data == &other.external_data
            && data_location == &other.data_location
            && metadata_props == &other.metadata_props
    }
}

impl PartialEq for AttributeProto {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            name,
            f,
            i,
            s,
            t,
            g,
            floats,
            ints,
            strings,
            tensors,
            graphs,
            doc_string,
            tp,
            type_protos,
            r#type,
            ref_attr_name,
            sparse_tensor,
            sparse_tensors,
        } = self;
        name == &other.name
            && f.map(f32::to_bits) == other.f.map(f32::to_bits)
            && i == &other.i
            && s == &other.s
            && t == &other.t
            && g == &other.g
            && same_floats(floats, &other.floats)
            && ints == &other.ints
            && strings == &other.strings
            && tensors == &other.tensors
            && graphs == &other.graphs
            && doc_string == &other.doc_string
            && tp == &other.tp
            && type_protos == &other.type_protos
            && r#type == &other.r#type
            && ref_attr_name == &other.ref_attr_name
            && sparse_tensor == &other.sparse_tensor
            && sparse_tensors == &other.sparse_tensors
    }
}

fn same_bytes(a: Option<&Bytes>, b: Option<&Bytes>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.len() == b.len() && (a.as_ptr() == b.as_ptr() || a == b),
        (None, None) => true,
        _ => false,
    }
}

fn same_floats(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

fn same_doubles(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
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
