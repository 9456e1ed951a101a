//! Element types: their texts, numbers and bytes.

use relayout_ir::dtype::DType;

#[test]
fn every_type_survives_its_text_and_its_onnx_number() {
    for &d in DType::ALL {
        assert_eq!(d.as_str().parse::<DType>(), Ok(d));
        assert_eq!(DType::from_onnx(d.to_onnx()), Some(d));
    }
    assert_eq!(DType::from_onnx(0), None);
    assert_eq!(DType::from_onnx(29), None);
}

#[test]
fn sub_byte_types_pack() {
    assert_eq!(DType::U4.bytes(3), Some(2));
    assert_eq!(DType::I2.bytes(5), Some(2));
    assert_eq!(DType::F6E2M3.bytes(5), Some(4));
    assert_eq!(DType::F32.bytes(u64::MAX), None);
    assert_eq!(DType::String.bytes(1), None);
}
