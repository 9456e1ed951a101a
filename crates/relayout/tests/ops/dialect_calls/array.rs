//! Tensors, and their packing by the definition of a layout: the oracle of the bodies.

use half::f16;
use relayout_ir::layout::Layout;
use relayout_onnx::proto::{TensorProto, tensor_proto::DataType};
use relayout_verify::{Data, Tensor};

/// A tensor on the host.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<i64>,
    pub(crate) data: Data,
}

/// Does the same for every element type that cases have. `$of` makes an element of a small number.
macro_rules! each_type {
    ($data:expr, $v:ident, $wrap:ident, $of:ident => $body:expr) => {
        match $data {
            Data::F32($v) => each_type!(@ Data::F32, $wrap, |x: i8| f32::from(x), $of => $body),
            Data::F16($v) => each_type!(@ Data::F16, $wrap, |x: i8| f16::from_f32(f32::from(x)), $of => $body),
            Data::U8($v) => each_type!(@ Data::U8, $wrap, |x: i8| x as u8, $of => $body),
            Data::I8($v) => each_type!(@ Data::I8, $wrap, |x: i8| x, $of => $body),
            Data::I32($v) => each_type!(@ Data::I32, $wrap, |x: i8| i32::from(x), $of => $body),
            Data::I64($v) => each_type!(@ Data::I64, $wrap, |x: i8| i64::from(x), $of => $body),
            other => panic!("no case has {}", other.element_type()),
        }
    };
    (@ $variant:path, $wrap:ident, $make:expr, $of:ident => $body:expr) => {{
        #[allow(unused_variables, reason = "not every use makes elements or tensors")]
        let ($wrap, $of) = ($variant, $make);
        $body
    }};
}

impl Array {
    /// Small whole numbers, so that sums of products are exact in any order.
    pub(crate) fn floats(shape: &[i64], salt: u64) -> Array {
        Array { shape: shape.to_vec(), data: Data::F32(small(shape, salt).map(f32::from).collect()) }
    }

    /// The same in half precision.
    pub(crate) fn halves(shape: &[i64], salt: u64) -> Array {
        let halves = small(shape, salt).map(|v| f16::from_f32(f32::from(v)));
        Array { shape: shape.to_vec(), data: Data::F16(halves.collect()) }
    }

    /// Numbers around 100, unsigned.
    pub(crate) fn unsigned(shape: &[i64], salt: u64) -> Array {
        Array { shape: shape.to_vec(), data: Data::U8(small(shape, salt).map(|v| (v + 100) as u8).collect()) }
    }

    /// Small signed numbers.
    pub(crate) fn signed(shape: &[i64], salt: u64) -> Array {
        Array { shape: shape.to_vec(), data: Data::I8(small(shape, salt).collect()) }
    }

    /// 0, 1, 2, ..: every element tells where it came from.
    pub(crate) fn numbered(shape: &[i64]) -> Array {
        let count: i64 = shape.iter().product();
        Array { shape: shape.to_vec(), data: Data::I32((1..=count as i32).collect()) }
    }

    /// These elements.
    pub(crate) fn new(shape: &[i64], data: Data) -> Array {
        Array { shape: shape.to_vec(), data }
    }

    /// What a runtime gave.
    pub(crate) fn from_tensor(tensor: &Tensor) -> Array {
        Array { shape: tensor.shape().to_vec(), data: tensor.data().clone() }
    }

    /// As a runtime takes it.
    pub(crate) fn tensor(&self, name: &str) -> Tensor {
        Tensor::new(name, self.shape.clone(), self.data.clone()).unwrap()
    }

    /// As an initializer.
    pub(crate) fn initializer(&self, name: &str) -> TensorProto {
        TensorProto {
            name: Some(name.to_owned()),
            dims: self.shape.clone(),
            data_type: Some(self.onnx_type()),
            raw_data: Some(self.bytes().into()),
            ..TensorProto::default()
        }
    }

    /// As `layout` stores it; pad slots hold `lane`.
    pub(crate) fn packed(&self, layout: &Layout, lane: i8) -> Array {
        let bound = layout.bind(&self.shape).unwrap();
        let logical = Layout::row_major(self.shape.len()).bind(&self.shape).unwrap();
        let place = |slot| Some(logical.offset(&bound.coordinate(slot)?).unwrap() as usize);
        let places: Vec<Option<usize>> = (0..bound.storage_elems()).map(place).collect();
        let shape = bound.factors().iter().map(|f| f.extent as i64).collect();
        let data = each_type!(&self.data, v, wrap, of => {
            wrap(places.iter().map(|place| place.map_or(of(lane), |place| v[place])).collect())
        });
        Array { shape, data }
    }

    /// The value of this logical shape that it holds, stored as `layout`, and the contents of its pad slots.
    pub(crate) fn unpacked(&self, layout: &Layout, shape: &[i64]) -> (Array, Vec<f64>) {
        let bound = layout.bind(shape).unwrap();
        let stored: Vec<i64> = bound.factors().iter().map(|f| f.extent as i64).collect();
        assert_eq!(self.shape, stored, "the storage shape of {layout} over {shape:?}");
        let values = self.values();
        let pad = (0..bound.storage_elems()).filter(|&slot| bound.coordinate(slot).is_none());
        let lanes = pad.map(|slot| values[slot as usize]).collect();
        let logical = Layout::row_major(shape.len()).bind(shape).unwrap();
        let place = |at| bound.offset(&logical.coordinate(at).unwrap()).unwrap() as usize;
        let places: Vec<usize> = (0..logical.storage_elems()).map(place).collect();
        let data = each_type!(&self.data, v, wrap, of => wrap(places.iter().map(|&place| v[place]).collect()));
        (Array { shape: shape.to_vec(), data }, lanes)
    }

    /// The elements as numbers.
    pub(crate) fn values(&self) -> Vec<f64> {
        match &self.data {
            Data::F32(v) => v.iter().map(|&e| f64::from(e)).collect(),
            Data::F16(v) => v.iter().map(|e| e.to_f64()).collect(),
            Data::U8(v) => v.iter().map(|&e| f64::from(e)).collect(),
            Data::I8(v) => v.iter().map(|&e| f64::from(e)).collect(),
            Data::I32(v) => v.iter().map(|&e| f64::from(e)).collect(),
            Data::I64(v) => v.iter().map(|&e| e as f64).collect(),
            other => panic!("no case has {}", other.element_type()),
        }
    }

    /// ONNX's number of the element type.
    pub(crate) fn onnx_type(&self) -> i32 {
        let of = match &self.data {
            Data::F32(_) => DataType::Float,
            Data::F16(_) => DataType::Float16,
            Data::U8(_) => DataType::Uint8,
            Data::I8(_) => DataType::Int8,
            Data::I32(_) => DataType::Int32,
            Data::I64(_) => DataType::Int64,
            other => panic!("no case has {}", other.element_type()),
        };
        of as i32
    }

    fn bytes(&self) -> Vec<u8> {
        each_type!(&self.data, v, wrap, of => v.iter().flat_map(|e| e.to_le_bytes()).collect())
    }
}

/// Whole numbers from -3 to 3 in no simple order.
fn small(shape: &[i64], salt: u64) -> impl Iterator<Item = i8> {
    let count: i64 = shape.iter().product();
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 7) as i8 - 3
    })
}
