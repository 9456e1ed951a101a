//! Models of a few nodes, written down as they are run.
//!
//! A [`Sketch`] holds nodes whose operands are constants of the model, so that running it takes one number as input and gives
//! one back; what its nodes compute is read by nobody. Constants are slices of one pool of numbers. ONNX Runtime runs such
//! nodes all the same as long as its optimizations are off.

use std::sync::OnceLock;

use bytes::Bytes;
use relayout_ir::op::NCHWC;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, attribute_proto::AttributeType, tensor_proto::DataType, tensor_shape_proto, type_proto,
};
use relayout_onnx::write::{WriteOptions, write_model_to};

use super::CalibrateError;
use relayout_verify::{Data, Tensor, VerifyError};

/// Numbers in the pool: no constant is larger.
const POOL: usize = 1 << 24;
/// Of which so many are drawn; the pool repeats them. A prime, so that no axis repeats with them.
const DRAWN: usize = 65_521;

/// Positive numbers between 1/16 and 17/16, so that logarithms, roots and quotients are finite; and the same with signs.
fn drawn(signed: bool) -> &'static [f32] {
    static ALL: [OnceLock<Vec<f32>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [positive, both] = &ALL;
    let make = move || {
        let mut state: u32 = 12345;
        let number = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let magnitude = (state >> 9) as f32 / (1 << 23) as f32 + 0.0625;
            if signed && state & 0x80 != 0 { -magnitude } else { magnitude }
        };
        (0..DRAWN).map(number).collect()
    };
    if signed { both.get_or_init(make) } else { positive.get_or_init(make) }
}

/// The same as bytes, again and again.
fn pool(signed: bool) -> &'static Bytes {
    static POOLS: [OnceLock<Bytes>; 2] = [OnceLock::new(), OnceLock::new()];
    let [positive, both] = &POOLS;
    let make = move || {
        let mut bytes: Vec<u8> = Vec::with_capacity(4 * POOL);
        bytes.extend(drawn(signed).iter().flat_map(|number| number.to_le_bytes()));
        while bytes.len() < 4 * POOL {
            bytes.extend_from_within(..bytes.len().min(4 * POOL - bytes.len()));
        }
        bytes.into()
    };
    if signed { both.get_or_init(make) } else { positive.get_or_init(make) }
}

/// Halves between 1/16 and 1/8 with both signs, as bytes.
fn half_pool() -> &'static Bytes {
    static POOL_OF_HALVES: OnceLock<Bytes> = OnceLock::new();
    let half = |&number: &f32| {
        let bits = number.to_bits();
        (0x2c00 | ((bits >> 13) as u16 & 0x03ff) | ((bits >> 16) as u16 & 0x8000)).to_le_bytes()
    };
    POOL_OF_HALVES.get_or_init(|| {
        let mut bytes: Vec<u8> = drawn(true).iter().flat_map(half).collect();
        while bytes.len() < 2 * POOL {
            bytes.extend_from_within(..bytes.len().min(2 * POOL - bytes.len()));
        }
        bytes.into()
    })
}

/// An attribute's value.
pub(super) enum Value<'a> {
    Int(u64),
    Ints(&'a [u64]),
    Float(f32),
    Floats(&'a [f32]),
    Text(&'a str),
}

/// A model under construction.
#[derive(Default)]
pub(super) struct Sketch {
    graph: GraphProto,
    /// Tensors that are fed, because the runtime would prepare constants when it loads them.
    pub(super) feeds: Vec<Tensor>,
    readers: [usize; 2],
}

impl Sketch {
    pub(super) fn new() -> Sketch {
        let mut sketch = Sketch::default();
        sketch.graph.name = Some("calibration".to_owned());
        sketch.graph.input.push(port("start", &[1], DataType::Float));
        sketch.graph.output.push(port("end", &[1], DataType::Float));
        sketch.node("Identity", "", &["start"], "end", &[]);
        sketch
    }

    /// Adds a node and gives the name of its first result.
    pub(super) fn node(
        &mut self,
        op: &str,
        domain: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Value<'_>)],
    ) -> String {
        self.graph.node.push(NodeProto {
            op_type: Some(op.to_owned()),
            domain: Some(domain.to_owned()),
            name: Some(output.to_owned()),
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ..NodeProto::default()
        });
        output.to_owned()
    }

    /// Makes a number an output of the model.
    pub(super) fn result(&mut self, name: &str) {
        self.graph.output.push(port(name, &[1], DataType::Float));
    }

    /// Makes a tensor an output of the model, whose shape is inferred.
    pub(super) fn leaves(&mut self, name: &str, half: bool) {
        let mut port = port(name, &[], number(half));
        if let Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), .. }) = &mut port.r#type {
            tensor.shape = None;
        }
        self.graph.output.push(port);
    }

    /// An input of the model that who runs it feeds, made once.
    pub(super) fn reads(&mut self, name: &str, dims: &[u64], half: bool) -> String {
        if self.graph.input.iter().all(|port| port.name.as_deref() != Some(name)) {
            self.graph.input.push(port(name, dims, number(half)));
        }
        name.to_owned()
    }

    /// Gives the last node one more result.
    pub(super) fn another_output(&mut self, name: String) {
        if let Some(node) = self.graph.node.last_mut() {
            node.output.push(name);
        }
    }

    /// Has the runtime know who reads a value last: behind it the memory is free for another one. A Shape reads none of its numbers.
    pub(super) fn read(&mut self, name: &str) -> String {
        let shape = format!("{name}.shape.{}", self.readers[0]);
        self.readers[0] += 1;
        self.node("Shape", "", &[name], &shape, &[])
    }

    /// The same, but not before another value of the same shape is there: it is viewed in the shape of that one.
    pub(super) fn read_behind(&mut self, name: &str, other: &str) {
        let shape = self.read(other);
        self.readers[1] += 1;
        let view = self.node("Reshape", "", &[name, &shape], &format!("{name}.view"), &[]);
        self.read(&view);
    }

    /// The results of the last node.
    pub(super) fn last_results(&self) -> Vec<String> {
        self.graph.node.last().map(|node| node.output.clone()).unwrap_or_default()
    }

    /// Nodes that read values so: those that are a Shape, and those that are a Reshape.
    pub(super) fn readers(&self) -> [usize; 2] {
        self.readers
    }

    fn has(&self, name: &str) -> bool {
        self.graph.initializer.iter().any(|tensor| tensor.name.as_deref() == Some(name))
    }

    /// A constant of numbers with both signs, made once for each name.
    pub(super) fn floats(&mut self, name: &str, dims: &[u64]) -> Result<String, CalibrateError> {
        self.data(name, dims, DataType::Float, 4, pool(true))
    }

    /// A constant of positive numbers.
    pub(super) fn positives(&mut self, name: &str, dims: &[u64]) -> Result<String, CalibrateError> {
        self.data(name, dims, DataType::Float, 4, pool(false))
    }

    /// A constant of halves with both signs, made once for each name.
    pub(super) fn halves(&mut self, name: &str, dims: &[u64]) -> Result<String, CalibrateError> {
        self.data(name, dims, DataType::Float16, 2, half_pool())
    }

    /// A constant whose elements have so many bytes: 1, 2, 4 or 8.
    pub(super) fn elements(&mut self, name: &str, dims: &[u64], width: u64) -> Result<String, CalibrateError> {
        let ty = match width {
            1 => DataType::Uint8,
            2 => DataType::Uint16,
            8 => DataType::Uint64,
            _ => DataType::Float,
        };
        self.data(name, dims, ty, width, pool(true))
    }

    fn data(
        &mut self,
        name: &str,
        dims: &[u64],
        ty: DataType,
        width: u64,
        pool: &Bytes,
    ) -> Result<String, CalibrateError> {
        if !self.has(name) {
            let bytes = dims.iter().try_fold(width, |product, &d| product.checked_mul(d));
            let bytes = bytes.and_then(|b| usize::try_from(b).ok()).filter(|&b| b <= pool.len());
            let Some(bytes) = bytes else { return Err(CalibrateError::TooLarge { dims: dims.to_vec() }) };
            // Constants of one model start at different places, as far as there is room.
            let start = (self.graph.initializer.len() * 65_536).min(pool.len() - bytes);
            self.constant(name, dims, ty, pool.slice(start..start + bytes));
        }
        Ok(name.to_owned())
    }

    /// A constant list of integers.
    pub(super) fn ints(&mut self, name: &str, values: &[u64]) -> String {
        if !self.has(name) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            self.constant(name, &[values.len() as u64], DataType::Int64, bytes.into());
        }
        name.to_owned()
    }

    /// Constant numbers.
    pub(super) fn numbers(&mut self, name: &str, dims: &[u64], values: &[f32]) -> String {
        if !self.has(name) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            self.constant(name, dims, DataType::Float, bytes.into());
        }
        name.to_owned()
    }

    fn constant(&mut self, name: &str, dims: &[u64], ty: DataType, bytes: Bytes) {
        self.graph.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            dims: dims.iter().map(|&d| d as i64).collect(),
            data_type: Some(ty as i32),
            raw_data: Some(bytes),
            ..TensorProto::default()
        });
    }

    /// A tensor that is fed.
    pub(super) fn fed(&mut self, name: &str, dims: &[u64]) -> Result<String, CalibrateError> {
        if self.feeds.iter().all(|tensor| tensor.name() != name) {
            let count: u64 = dims.iter().product();
            let count = usize::try_from(count).ok().filter(|&count| count <= POOL);
            let Some(count) = count else { return Err(CalibrateError::TooLarge { dims: dims.to_vec() }) };
            let mut numbers = drawn(true).repeat(count.div_ceil(DRAWN));
            numbers.truncate(count);
            let shape: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
            self.feeds.push(Tensor::new(name, shape, Data::F32(numbers))?);
            self.graph.input.push(port(name, dims, DataType::Float));
        }
        Ok(name.to_owned())
    }

    /// The bytes of the model, and what it is fed.
    pub(super) fn finish(self) -> Result<(Vec<u8>, Vec<Tensor>), CalibrateError> {
        let opset =
            |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
        let model = ModelProto {
            ir_version: Some(8),
            opset_import: vec![opset("", 17), opset("com.microsoft", 1), opset(NCHWC, 1)],
            graph: Some(self.graph),
            ..ModelProto::default()
        };
        let mut bytes = Vec::new();
        write_model_to(&model, &mut bytes, &WriteOptions::default())?;
        let mut feeds = self.feeds;
        let start: Result<Tensor, VerifyError> = Tensor::new("start", [1], Data::F32(vec![1.0]));
        feeds.push(start?);
        Ok((bytes, feeds))
    }
}

fn attribute(name: &str, value: &Value<'_>) -> AttributeProto {
    let mut attribute = AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
    let ty = match value {
        Value::Int(i) => {
            attribute.i = Some(*i as i64);
            AttributeType::Int
        }
        Value::Ints(ints) => {
            attribute.ints = ints.iter().map(|&i| i as i64).collect();
            AttributeType::Ints
        }
        Value::Float(float) => {
            attribute.f = Some(*float);
            AttributeType::Float
        }
        Value::Floats(floats) => {
            attribute.floats = floats.to_vec();
            AttributeType::Floats
        }
        Value::Text(text) => {
            attribute.s = Some(Bytes::copy_from_slice(text.as_bytes()));
            AttributeType::String
        }
    };
    attribute.r#type = Some(ty as i32);
    attribute
}

/// Floats, or halves.
fn number(half: bool) -> DataType {
    if half { DataType::Float16 } else { DataType::Float }
}

fn port(name: &str, dims: &[u64], ty: DataType) -> ValueInfoProto {
    let dim = |&d: &u64| tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(d as i64)),
        denotation: None,
    };
    let tensor = type_proto::Tensor {
        elem_type: Some(ty as i32),
        shape: Some(TensorShapeProto { dim: dims.iter().map(dim).collect() }),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None }),
        ..ValueInfoProto::default()
    }
}
