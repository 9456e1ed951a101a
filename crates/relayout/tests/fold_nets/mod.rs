//! Small models in code, and a runtime to run them in.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod blocks;
pub(crate) mod cpu;
pub(crate) mod folded;

pub(crate) use crate::common::runtime;
use half::f16;
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::file::ModelFile;
use relayout_onnx::import::import;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};
use relayout_onnx::write::{WriteOptions, write_model_to};
use relayout_verify::{Comparison, Inputs, ModelSource, Options, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Both models on the same inputs, optimizations off.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Comparison {
    let inputs = Inputs::Random { seed: 7, dims: BTreeMap::new() };
    verify(runtime(), ModelSource::Bytes(a), ModelSource::Bytes(b), &inputs, &Options::default()).expect("both run")
}

pub(crate) const F32: i32 = 1;
pub(crate) const U8: i32 = 2;
pub(crate) const I8: i32 = 3;
pub(crate) const I16: i32 = 5;
pub(crate) const I32: i32 = 6;
pub(crate) const I64: i32 = 7;
pub(crate) const BOOL: i32 = 9;
pub(crate) const F16: i32 = 10;
pub(crate) const F64: i32 = 11;

/// A model under construction: one graph, one operator set.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    graph: GraphProto,
    opset: i64,
    ir_version: i64,
}

impl Net {
    pub(crate) fn new(opset: i64) -> Net {
        Net { graph: GraphProto { name: Some("net".to_owned()), ..GraphProto::default() }, opset, ir_version: 8 }
    }

    /// As a file of IR version 3, whose initializers are inputs too.
    pub(crate) fn ir_3(mut self) -> Net {
        self.ir_version = 3;
        let listed =
            |t: &TensorProto| info(t.name.as_deref().unwrap_or_default(), t.data_type.unwrap_or(F32), Some(&t.dims));
        let inputs: Vec<ValueInfoProto> = self.graph.initializer.iter().map(listed).collect();
        self.graph.input.extend(inputs);
        self
    }

    /// An If on `condition` with these two branches, each of one result.
    pub(crate) fn branches(self, condition: &str, output: &str, then: &Net, other: &Net) -> Net {
        self.node_of_bodies("If", &[condition], output, &[("then_branch", then), ("else_branch", other)])
    }

    /// A node that holds graphs.
    pub(crate) fn node_of_bodies(mut self, op: &str, inputs: &[&str], output: &str, bodies: &[(&str, &Net)]) -> Net {
        let body = |&(name, net): &(&str, &Net)| AttributeProto {
            name: Some(name.to_owned()),
            g: Some(Box::new(net.graph.clone())),
            r#type: Some(AttributeType::Graph as i32),
            ..AttributeProto::default()
        };
        self.graph.node.push(NodeProto {
            op_type: Some(op.to_owned()),
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            attribute: bodies.iter().map(body).collect(),
            ..NodeProto::default()
        });
        self
    }

    pub(crate) fn input(mut self, name: &str, dtype: i32, dims: &[i64]) -> Net {
        self.graph.input.push(info(name, dtype, Some(dims)));
        self
    }

    pub(crate) fn output(mut self, name: &str, dtype: i32) -> Net {
        self.graph.output.push(info(name, dtype, None));
        self
    }

    /// An output of these dims, whatever they truly are.
    pub(crate) fn output_of(mut self, name: &str, dtype: i32, dims: &[i64]) -> Net {
        self.graph.output.push(info(name, dtype, Some(dims)));
        self
    }

    /// What the model says of a value, true or not.
    pub(crate) fn typed(mut self, name: &str, dtype: i32, dims: &[i64]) -> Net {
        self.graph.value_info.push(info(name, dtype, Some(dims)));
        self
    }

    /// An input whose dims are numbers or names.
    pub(crate) fn symbolic_input(mut self, name: &str, dtype: i32, dims: &[&str]) -> Net {
        self.graph.input.push(symbolic_info(name, dtype, dims));
        self
    }

    /// Whether a dim of an input has this name.
    pub(crate) fn reads_symbol(&self, name: &str) -> bool {
        let named = |info: &ValueInfoProto| match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
            Some(type_proto::Value::TensorType(tensor)) => {
                let dims = tensor.shape.iter().flat_map(|shape| &shape.dim);
                dims.into_iter().any(|d| d.value == Some(dimension::Value::DimParam(name.to_owned())))
            }
            _ => false,
        };
        self.graph.input.iter().any(named)
    }

    /// An output whose dims are numbers or names.
    pub(crate) fn symbolic_output(mut self, name: &str, dtype: i32, dims: &[&str]) -> Net {
        self.graph.output.push(symbolic_info(name, dtype, dims));
        self
    }

    /// An output that is a sequence of tensors.
    pub(crate) fn sequence_output(mut self, name: &str, dtype: i32) -> Net {
        let element = info("", dtype, None).r#type.map(Box::new);
        let value = type_proto::Value::SequenceType(type_proto::Sequence { elem_type: element });
        self.graph.output.push(ValueInfoProto {
            name: Some(name.to_owned()),
            r#type: Some(TypeProto { value: Some(value), denotation: None }),
            ..ValueInfoProto::default()
        });
        self
    }

    /// Numbers that depend on the name and the place: in 0.5..1.5, every third one negative if `signs`.
    pub(crate) fn floats(self, name: &str, dtype: i32, dims: &[i64], signs: bool) -> Net {
        let count = dims.iter().product::<i64>() as u64;
        let mut state =
            name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let values: Vec<f32> = (0..count)
            .map(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let unit = (state >> 40) as f32 / (1u32 << 24) as f32;
                if signs && i % 3 == 1 { -0.5 - unit } else { 0.5 + unit }
            })
            .collect();
        self.values(name, dtype, dims, &values)
    }

    pub(crate) fn values(self, name: &str, dtype: i32, dims: &[i64], values: &[f32]) -> Net {
        let bytes: Vec<u8> = match dtype {
            F16 => values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
            I32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
            U8 | I8 => values.iter().map(|&v| if v < 0.0 { v as i8 as u8 } else { v as u8 }).collect(),
            F64 => values.iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect(),
            I64 => values.iter().flat_map(|&v| (v as i64).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        self.raw(name, dtype, dims, bytes)
    }

    pub(crate) fn ints(self, name: &str, values: &[i64]) -> Net {
        self.raw(name, I64, &[values.len() as i64], values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// One number.
    pub(crate) fn int(self, name: &str, value: i64) -> Net {
        self.raw(name, I64, &[], value.to_le_bytes().to_vec())
    }

    /// Numbers of 16 bits.
    pub(crate) fn short(self, name: &str, dims: &[i64], values: &[i16]) -> Net {
        self.raw(name, I16, dims, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    fn raw(mut self, name: &str, dtype: i32, dims: &[i64], bytes: Vec<u8>) -> Net {
        self.graph.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            dims: dims.to_vec(),
            data_type: Some(dtype),
            raw_data: Some(bytes.into()),
            ..TensorProto::default()
        });
        self
    }

    pub(crate) fn node(self, op: &str, inputs: &[&str], output: &str) -> Net {
        self.node_with(op, inputs, output, &[])
    }

    pub(crate) fn node_with(mut self, op: &str, inputs: &[&str], output: &str, ints: &[(&str, &[i64])]) -> Net {
        self.graph.node.push(NodeProto {
            op_type: Some(op.to_owned()),
            name: Some(format!("node_{output}")),
            input: inputs.iter().map(|&i| i.to_owned()).collect(),
            output: vec![output.to_owned()],
            attribute: ints.iter().map(|(name, v)| attribute(name, v)).collect(),
            ..NodeProto::default()
        });
        self
    }

    /// A whole number as an attribute of the last node.
    pub(crate) fn int_attribute(mut self, name: &str, value: i64) -> Net {
        if let Some(node) = self.graph.node.last_mut() {
            node.attribute.push(attribute(name, &[value]));
        }
        self
    }

    /// An attribute of the last node.
    pub(crate) fn float_attribute(mut self, name: &str, value: f32) -> Net {
        if let Some(node) = self.graph.node.last_mut() {
            node.attribute.push(AttributeProto {
                name: Some(name.to_owned()),
                f: Some(value),
                r#type: Some(AttributeType::Float as i32),
                ..AttributeProto::default()
            });
        }
        self
    }

    /// The last node is of this domain, of its first version.
    pub(crate) fn of_domain(mut self, domain: &str) -> Net {
        if let Some(node) = self.graph.node.last_mut() {
            node.domain = Some(domain.to_owned());
        }
        self
    }

    /// One more result of the last node.
    pub(crate) fn also(mut self, output: &str) -> Net {
        if let Some(node) = self.graph.node.last_mut() {
            node.output.push(output.to_owned());
        }
        self
    }

    /// Numbers as an attribute of the last node.
    pub(crate) fn numbers_attribute(mut self, name: &str, values: &[f32]) -> Net {
        if let Some(node) = self.graph.node.last_mut() {
            node.attribute.push(AttributeProto {
                name: Some(name.to_owned()),
                floats: values.to_vec(),
                r#type: Some(AttributeType::Floats as i32),
                ..AttributeProto::default()
            });
        }
        self
    }

    /// A text as an attribute of the last node.
    pub(crate) fn text_attribute(mut self, name: &str, value: &'static str) -> Net {
        if let Some(node) = self.graph.node.last_mut() {
            node.attribute.push(AttributeProto {
                name: Some(name.to_owned()),
                s: Some(value.as_bytes().into()),
                r#type: Some(AttributeType::String as i32),
                ..AttributeProto::default()
            });
        }
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let domains: BTreeSet<&str> = self.graph.node.iter().filter_map(|n| n.domain.as_deref()).collect();
        let import =
            |domain: &str, version: i64| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
        let others = domains.into_iter().filter(|domain| !domain.is_empty()).map(|domain| import(domain, 1));
        let model = ModelProto {
            ir_version: Some(self.ir_version),
            opset_import: std::iter::once(import("", self.opset)).chain(others).collect(),
            graph: Some(self.graph.clone()),
            ..ModelProto::default()
        };
        let mut bytes = Vec::new();
        write_model_to(&model, &mut bytes, &WriteOptions::default()).expect("a model in memory is written");
        bytes
    }

    /// The model with the type of each result that is found out, as exporters write it.
    pub(crate) fn described_bytes(mut self) -> Vec<u8> {
        let file = Arc::new(ModelFile::from_bytes(self.bytes().into(), None).expect("it is a model"));
        let mut model = import(&file).expect("it is imported");
        assert_eq!(infer_graph(&mut model.graph, &mut model.unknowns), []);
        let outputs: BTreeSet<&str> = self.graph.output.iter().map(ValueInfoProto::name).collect();
        let results = self.graph.node.iter().flat_map(|n| &n.output).filter(|name| !outputs.contains(name.as_str()));
        let typed = results.filter_map(|name| {
            let ty = &model.graph.value(model.graph.by_name(name)?).ty;
            let dims: Vec<i64> = ty.shape()?.iter().map(|dim| dim.as_const().unwrap_or(-1)).collect();
            Some(info(name, ty.dtype()?.to_onnx(), Some(&dims)))
        });
        self.graph.value_info.extend(typed.collect::<Vec<_>>());
        self.bytes()
    }
}

/// A list of integers; a list of one under a name that ONNX has as a number is one.
fn attribute(name: &str, values: &[i64]) -> AttributeProto {
    let numbers = [
        "axis",
        "batch_axis",
        "blocksize",
        "broadcast",
        "ceil_mode",
        "group",
        "keepdims",
        "num_groups",
        "output_dtype",
        "time_axis",
        "to",
        "transA",
        "transB",
        "transBatchA",
        "training_mode",
    ];
    let number = numbers.contains(&name);
    AttributeProto {
        name: Some(name.to_owned()),
        i: number.then(|| values[0]),
        ints: if number { vec![] } else { values.to_vec() },
        r#type: Some(if number { AttributeType::Int } else { AttributeType::Ints } as i32),
        ..AttributeProto::default()
    }
}

fn info(name: &str, dtype: i32, dims: Option<&[i64]>) -> ValueInfoProto {
    // Negative numbers stand for dims that are not said.
    let dim = |&d: &i64| Dimension { value: (d >= 0).then_some(dimension::Value::DimValue(d)), denotation: None };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(dtype), shape };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None }),
        ..ValueInfoProto::default()
    }
}

fn symbolic_info(name: &str, dtype: i32, dims: &[&str]) -> ValueInfoProto {
    let value = |d: &&str| match d.parse() {
        Ok(n) => dimension::Value::DimValue(n),
        Err(_) => dimension::Value::DimParam((*d).to_owned()),
    };
    let shape =
        TensorShapeProto { dim: dims.iter().map(|d| Dimension { value: Some(value(d)), denotation: None }).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(dtype), shape: Some(shape) };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None }),
        ..ValueInfoProto::default()
    }
}
