//! A case: one use of an op, with data, from which a model is made at any version of the operator set.

use bytes::Bytes;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};
use relayout_verify::{Data, Tensor};

/// Relative rms error up to which floats count as equal: other orders of summation round differently.
pub(crate) const RMS: f64 = 1e-6;

/// ONNX's own operator set in models whose op is of another domain.
const STANDARD: i64 = 21;

/// One operand.
#[derive(Clone)]
pub(crate) struct Operand {
    pub(crate) tensor: Tensor,
    /// Whether the model has it as a constant, so that its contents are known when the op is bound.
    pub(crate) constant: bool,
}

/// One use of an op.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) domain: &'static str,
    /// What tells it from other cases of the op.
    pub(crate) variant: &'static str,
    /// The versions of the operator set at both ends of the range in which the op is spelled like this.
    pub(crate) opsets: (i64, i64),
    pub(crate) operands: Vec<Option<Operand>>,
    pub(crate) attrs: Vec<AttributeProto>,
    pub(crate) results: usize,
    /// Whether extents of results depend on data, so that inference can't know all of them.
    pub(crate) partial: bool,
    /// Whether the entry carries layouts, but not in this case, and for what reason (a part of it).
    pub(crate) opaque: Option<&'static str>,
}

/// A case of an op of ONNX's own domain, spelled like this from one version of the operator set to another.
pub(crate) fn case(op: &'static str, first: i64, last: i64) -> Case {
    Case {
        op,
        domain: "",
        variant: "",
        opsets: (first, last),
        operands: Vec::new(),
        attrs: Vec::new(),
        results: 1,
        partial: false,
        opaque: None,
    }
}

/// A case of an op of another domain, at its version 1.
pub(crate) fn of_domain(domain: &'static str, op: &'static str) -> Case {
    Case { domain, ..case(op, 1, 1) }
}

/// A case of an op of ONNX Runtime's own domain.
pub(crate) fn microsoft(op: &'static str) -> Case {
    of_domain("com.microsoft", op)
}

/// Data of an operand, made once its slot is known.
pub(crate) enum Spec {
    F32(Vec<i64>, f32, f32),
    U8(Vec<i64>),
    I8(Vec<i64>),
    I64(Vec<i64>, i64, i64),
    Bool(Vec<i64>),
    Exact(Vec<i64>, Data),
}

/// Floats from -1 to 1.
pub(crate) fn f(shape: &[i64]) -> Spec {
    Spec::F32(shape.to_vec(), -1.0, 1.0)
}

/// Floats of a range.
pub(crate) fn fr(shape: &[i64], low: f32, high: f32) -> Spec {
    Spec::F32(shape.to_vec(), low, high)
}

/// Bytes.
pub(crate) fn u8s(shape: &[i64]) -> Spec {
    Spec::U8(shape.to_vec())
}

/// Signed bytes.
pub(crate) fn i8s(shape: &[i64]) -> Spec {
    Spec::I8(shape.to_vec())
}

/// 64-bit integers from `low` up to, not including, `high`.
pub(crate) fn i64s(shape: &[i64], low: i64, high: i64) -> Spec {
    Spec::I64(shape.to_vec(), low, high)
}

/// Booleans.
pub(crate) fn bools(shape: &[i64]) -> Spec {
    Spec::Bool(shape.to_vec())
}

/// A vector of these integers.
pub(crate) fn ints(values: &[i64]) -> Spec {
    Spec::Exact(vec![values.len() as i64], Data::I64(values.to_vec()))
}

/// These elements.
pub(crate) fn exact(shape: &[i64], data: Data) -> Spec {
    Spec::Exact(shape.to_vec(), data)
}

/// One float.
pub(crate) fn float(x: f32) -> Spec {
    exact(&[], Data::F32(vec![x]))
}

/// One byte.
pub(crate) fn byte(x: u8) -> Spec {
    exact(&[], Data::U8(vec![x]))
}

/// A number from 0 to 1 that depends on nothing but slot and place.
fn noise(slot: usize, place: usize) -> f64 {
    let mut z = ((slot as u64 + 1) << 32 | place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

impl Spec {
    fn tensor(self, slot: usize) -> Tensor {
        let name = format!("x{slot}");
        let elems = |shape: &[i64]| 0..shape.iter().product::<i64>() as usize;
        let (shape, data) = match self {
            Spec::F32(shape, low, high) => {
                let data = elems(&shape).map(|i| low + (high - low) * noise(slot, i) as f32).collect();
                (shape, Data::F32(data))
            }
            Spec::U8(shape) => {
                let data = elems(&shape).map(|i| (noise(slot, i) * 200.0) as u8).collect();
                (shape, Data::U8(data))
            }
            Spec::I8(shape) => {
                let data = elems(&shape).map(|i| (noise(slot, i) * 200.0 - 100.0) as i8).collect();
                (shape, Data::I8(data))
            }
            Spec::I64(shape, low, high) => {
                let data = elems(&shape).map(|i| low + (noise(slot, i) * (high - low) as f64) as i64).collect();
                (shape, Data::I64(data))
            }
            Spec::Bool(shape) => {
                let data = elems(&shape).map(|i| noise(slot, i) < 0.5).collect();
                (shape, Data::Bool(data))
            }
            Spec::Exact(shape, data) => (shape, data),
        };
        Tensor::new(name, shape, data).expect("a case has as many elements as its shape says")
    }
}

impl Case {
    /// With another operand, fed at run time.
    pub(crate) fn x(self, spec: Spec) -> Case {
        self.operand(spec, false)
    }

    /// With another operand, a constant.
    pub(crate) fn c(self, spec: Spec) -> Case {
        self.operand(spec, true)
    }

    fn operand(mut self, spec: Spec, constant: bool) -> Case {
        let tensor = spec.tensor(self.operands.len());
        self.operands.push(Some(Operand { tensor, constant }));
        self
    }

    /// With an operand left out.
    pub(crate) fn none(mut self) -> Case {
        self.operands.push(None);
        self
    }

    /// With an integer attribute.
    pub(crate) fn int(self, name: &str, value: i64) -> Case {
        self.attr(name, AttributeType::Int, |a| a.i = Some(value))
    }

    /// With a list of integers as an attribute.
    pub(crate) fn list(self, name: &str, values: &[i64]) -> Case {
        self.attr(name, AttributeType::Ints, |a| a.ints = values.to_vec())
    }

    /// With a float attribute.
    pub(crate) fn num(self, name: &str, value: f32) -> Case {
        self.attr(name, AttributeType::Float, |a| a.f = Some(value))
    }

    /// With a list of floats as an attribute.
    pub(crate) fn nums(self, name: &str, values: &[f32]) -> Case {
        self.attr(name, AttributeType::Floats, |a| a.floats = values.to_vec())
    }

    /// With a text attribute.
    pub(crate) fn text(self, name: &str, value: &'static str) -> Case {
        self.attr(name, AttributeType::String, |a| a.s = Some(Bytes::from_static(value.as_bytes())))
    }

    fn attr(mut self, name: &str, ty: AttributeType, set: impl FnOnce(&mut AttributeProto)) -> Case {
        let mut a =
            AttributeProto { name: Some(name.to_owned()), r#type: Some(ty as i32), ..AttributeProto::default() };
        set(&mut a);
        self.attrs.push(a);
        self
    }

    /// With so many results.
    pub(crate) fn results(mut self, count: usize) -> Case {
        self.results = count;
        self
    }

    /// With a word that tells it from other cases of the op.
    pub(crate) fn variant(mut self, variant: &'static str) -> Case {
        self.variant = variant;
        self
    }

    /// Extents of its results depend on data.
    pub(crate) fn partial(mut self) -> Case {
        self.partial = true;
        self
    }

    /// Its entry carries layouts in general, but not here, for a reason with these words.
    pub(crate) fn opaque(mut self, why: &'static str) -> Case {
        self.opaque = Some(why);
        self
    }

    /// How messages call it.
    pub(crate) fn label(&self, opset: i64) -> String {
        let dot = if self.domain.is_empty() { "" } else { "." };
        format!("{}{dot}{} {} at opset {opset}", self.domain, self.op, self.variant)
    }

    /// What the model is fed.
    pub(crate) fn feeds(&self) -> Vec<Tensor> {
        self.operands.iter().flatten().filter(|o| !o.constant).map(|o| o.tensor.clone()).collect()
    }

    /// The model: one node.
    pub(crate) fn model(&self, opset: i64) -> ModelProto {
        let node = NodeProto {
            op_type: Some(self.op.to_owned()),
            domain: Some(self.domain.to_owned()),
            name: Some("node".to_owned()),
            input: (0..)
                .zip(&self.operands)
                .map(|(i, o)| o.as_ref().map_or(String::new(), |_| format!("x{i}")))
                .collect(),
            output: (0..self.results).map(|i| format!("y{i}")).collect(),
            attribute: self.attrs.clone(),
            ..NodeProto::default()
        };
        let (constants, fed): (Vec<&Operand>, Vec<&Operand>) = self.operands.iter().flatten().partition(|o| o.constant);
        let named = |name: &String| ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() };
        let graph = GraphProto {
            name: Some("case".to_owned()),
            input: fed.into_iter().map(|o| declared(&o.tensor)).collect(),
            initializer: constants.into_iter().map(|o| initializer(&o.tensor)).collect(),
            output: node.output.iter().map(named).collect(),
            node: vec![node],
            ..GraphProto::default()
        };
        let set =
            |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
        let opset_import = if self.domain.is_empty() {
            vec![set("", opset)]
        } else {
            vec![set("", STANDARD), set(self.domain, opset)]
        };
        ModelProto { ir_version: Some(10), graph: Some(graph), opset_import, ..ModelProto::default() }
    }
}

/// Calls the macro with each element type, its number in ONNX and how an element becomes bytes.
macro_rules! element_types {
    ($data:expr, $($variant:ident = $code:literal: $bytes:expr),*) => {
        match $data {
            $(Data::$variant(v) => ($code, Bytes::from(v.iter().flat_map($bytes).collect::<Vec<u8>>())),)*
            other => panic!("cases have no elements of type {}", other.element_type()),
        }
    };
}

/// The number of an element type in ONNX, and the elements as bytes.
pub(crate) fn encoded(data: &Data) -> (i32, Bytes) {
    element_types!(data,
        F32 = 1: |x| x.to_le_bytes(), U8 = 2: |x| x.to_le_bytes(), I8 = 3: |x| x.to_le_bytes(),
        I32 = 6: |x| x.to_le_bytes(), I64 = 7: |x| x.to_le_bytes(), Bool = 9: |x| [u8::from(*x)],
        U16 = 4: |x| x.to_le_bytes(), I16 = 5: |x| x.to_le_bytes(),
        F16 = 10: |x| x.to_le_bytes(), F64 = 11: |x| x.to_le_bytes(), U32 = 12: |x| x.to_le_bytes(),
        U64 = 13: |x| x.to_le_bytes())
}

fn declared(tensor: &Tensor) -> ValueInfoProto {
    let dim = |&d: &i64| Dimension { value: Some(dimension::Value::DimValue(d)), denotation: None };
    let shape = TensorShapeProto { dim: tensor.shape().iter().map(dim).collect() };
    let elem_type = Some(encoded(tensor.data()).0);
    let value = type_proto::Value::TensorType(type_proto::Tensor { elem_type, shape: Some(shape) });
    ValueInfoProto {
        name: Some(tensor.name().to_owned()),
        r#type: Some(TypeProto { value: Some(value), denotation: None }),
        ..ValueInfoProto::default()
    }
}

/// A tensor as a constant of a model.
pub(crate) fn initializer(tensor: &Tensor) -> TensorProto {
    let (code, bytes) = encoded(tensor.data());
    TensorProto {
        name: Some(tensor.name().to_owned()),
        dims: tensor.shape().to_vec(),
        data_type: Some(code),
        raw_data: Some(bytes),
        ..TensorProto::default()
    }
}

/// Elements at these places.
pub(crate) fn pick(data: &Data, picks: &[usize]) -> Data {
    macro_rules! each {
        ($($variant:ident),*) => {
            match data {
                $(Data::$variant(v) => Data::$variant(picks.iter().map(|&i| v[i].clone()).collect()),)*
                other => panic!("cases have no elements of type {}", other.element_type()),
            }
        };
    }
    each!(F32, F64, F16, U8, I8, U16, I16, I32, I64, U32, U64, Bool)
}
