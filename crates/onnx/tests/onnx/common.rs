//! What the tests share: the model files, and models made of a list of choices.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;

use bytes::Bytes;
use relayout_onnx::proto::*;

/// The small models of the repository, in order of their names.
pub(crate) fn models() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let mut models: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    models.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    models.sort();
    assert!(models.len() >= 4);
    models
}

pub(crate) fn smallest() -> Vec<u8> {
    std::fs::read(models().into_iter().find(|path| path.ends_with("espcn_x3.onnx")).unwrap()).unwrap()
}

/// A model with one initializer.
pub(crate) fn with_tensor(tensor: TensorProto) -> ModelProto {
    let graph = GraphProto { initializer: vec![tensor], ..GraphProto::default() };
    ModelProto { graph: Some(graph), ..ModelProto::default() }
}

/// A tensor of `UINT8` with these bytes.
pub(crate) fn raw(name: &str, bytes: Bytes) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: vec![bytes.len() as i64],
        data_type: Some(tensor_proto::DataType::Uint8 as i32),
        raw_data: Some(bytes),
        ..TensorProto::default()
    }
}

/// A tensor of `UINT8` whose `length` bytes are elsewhere.
pub(crate) fn external(name: &str, length: u64, entries: &[(&str, &str)]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: vec![length as i64],
        data_type: Some(tensor_proto::DataType::Uint8 as i32),
        data_location: Some(tensor_proto::DataLocation::External as i32),
        external_data: entries.iter().map(|(key, value)| entry(key, value)).collect(),
        ..TensorProto::default()
    }
}

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value.to_owned()) }
}

/// Choices from a list; zero, which means "absent", when it is used up. So a shorter list is a smaller model, and every list
/// ends.
pub(crate) struct Choices<'a> {
    left: &'a [u8],
    /// Whether a present scalar may be zero or empty.
    defaults: bool,
}

impl<'a> Choices<'a> {
    pub(crate) fn of(choices: &'a [u8]) -> Self {
        Self { left: choices, defaults: true }
    }

    /// Without the difference between absent and zero.
    pub(crate) fn without_defaults(choices: &'a [u8]) -> Self {
        Self { left: choices, defaults: false }
    }

    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.left.split_first() else { return 0 };
        self.left = rest;
        first
    }

    fn least(&self) -> u8 {
        u8::from(!self.defaults)
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.next() % 3 == 1).then(|| make(self))
    }

    fn list<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = [0, 0, 0, 0, 1, 1, 2, 3][usize::from(self.next() % 8)];
        (0..count).map(|_| make(self)).collect()
    }

    fn long(&mut self) -> i64 {
        let value = i64::from(self.next().max(self.least()));
        match value % 5 {
            0 if self.defaults => 0,
            1 => -value,
            2 => value << 20,
            3 => i64::MIN + value,
            _ => value,
        }
    }

    fn int(&mut self) -> i32 {
        let value = self.long() as i32;
        if self.defaults { value } else { value | 1 }
    }

    fn float(&mut self) -> f32 {
        f32::from(self.next()) - 2.5
    }

    fn text(&mut self) -> String {
        ["", "x", "conv1.weight", "größe", "\u{0}", "a\nb"][usize::from((self.next() % 6).max(self.least()))].to_owned()
    }

    fn bytes(&mut self) -> Bytes {
        let length = [0, 1, 3, 127, 128, 300, 20_000, 70_000][usize::from((self.next() % 8).max(self.least()))];
        vec![self.next(); length].into()
    }

    pub(crate) fn model(&mut self) -> ModelProto {
        ModelProto {
            // The graph first: it should get most of the choices.
            graph: self.maybe(|c| c.graph(3)),
            ir_version: self.maybe(Self::long),
            producer_name: self.maybe(Self::text),
            producer_version: self.maybe(Self::text),
            domain: self.maybe(Self::text),
            model_version: self.maybe(Self::long),
            doc_string: self.maybe(Self::text),
            opset_import: self.list(Self::opset),
            metadata_props: self.list(Self::entry),
            training_info: self.list(|c| TrainingInfoProto {
                initialization: c.maybe(|c| c.graph(1)),
                algorithm: c.maybe(|c| c.graph(1)),
                initialization_binding: c.list(Self::entry),
                update_binding: c.list(Self::entry),
            }),
            functions: self.list(Self::function),
            configuration: self.list(|c| DeviceConfigurationProto {
                name: c.maybe(Self::text),
                num_devices: c.maybe(Self::int),
                device: c.list(Self::text),
            }),
        }
    }

    fn opset(&mut self) -> OperatorSetIdProto {
        OperatorSetIdProto { domain: self.maybe(Self::text), version: self.maybe(Self::long) }
    }

    fn entry(&mut self) -> StringStringEntryProto {
        StringStringEntryProto { key: self.maybe(Self::text), value: self.maybe(Self::text) }
    }

    fn function(&mut self) -> FunctionProto {
        FunctionProto {
            name: self.maybe(Self::text),
            input: self.list(Self::text),
            output: self.list(Self::text),
            attribute: self.list(Self::text),
            node: self.list(|c| c.node(1)),
            doc_string: self.maybe(Self::text),
            opset_import: self.list(Self::opset),
            domain: self.maybe(Self::text),
            attribute_proto: self.list(|c| c.attribute(1)),
            value_info: self.list(Self::value_info),
            overload: self.maybe(Self::text),
            metadata_props: self.list(Self::entry),
        }
    }

    fn graph(&mut self, depth: u32) -> GraphProto {
        GraphProto {
            node: self.list(|c| c.node(depth)),
            name: self.maybe(Self::text),
            initializer: self.list(Self::tensor),
            doc_string: self.maybe(Self::text),
            input: self.list(Self::value_info),
            output: self.list(Self::value_info),
            value_info: self.list(Self::value_info),
            quantization_annotation: self.list(|c| TensorAnnotation {
                tensor_name: c.maybe(Self::text),
                quant_parameter_tensor_names: c.list(Self::entry),
            }),
            sparse_initializer: self.list(Self::sparse),
            metadata_props: self.list(Self::entry),
        }
    }

    fn node(&mut self, depth: u32) -> NodeProto {
        NodeProto {
            input: self.list(Self::text),
            output: self.list(Self::text),
            name: self.maybe(Self::text),
            op_type: self.maybe(Self::text),
            attribute: self.list(|c| c.attribute(depth)),
            doc_string: self.maybe(Self::text),
            domain: self.maybe(Self::text),
            overload: self.maybe(Self::text),
            metadata_props: self.list(Self::entry),
            device_configurations: self.list(|c| NodeDeviceConfigurationProto {
                configuration_id: c.maybe(Self::text),
                sharding_spec: c.list(Self::sharding),
                pipeline_stage: c.maybe(Self::int),
            }),
        }
    }

    fn sharding(&mut self) -> ShardingSpecProto {
        ShardingSpecProto {
            tensor_name: self.maybe(Self::text),
            device: self.list(Self::long),
            index_to_device_group_map: self
                .list(|c| IntIntListEntryProto { key: c.maybe(Self::long), value: c.list(Self::long) }),
            sharded_dim: self.list(|c| ShardedDimProto {
                axis: c.maybe(Self::long),
                simple_sharding: c.list(|c| SimpleShardedDimProto {
                    dim: c.maybe(|c| simple_sharded_dim_proto::Dim::DimParam(c.text())),
                    num_shards: c.maybe(Self::long),
                }),
            }),
        }
    }

    fn attribute(&mut self, depth: u32) -> AttributeProto {
        let deeper = depth.checked_sub(1);
        AttributeProto {
            name: self.maybe(Self::text),
            f: self.maybe(Self::float),
            i: self.maybe(Self::long),
            s: self.maybe(Self::bytes),
            t: self.maybe(|c| Box::new(c.tensor())),
            g: deeper.and_then(|depth| self.maybe(|c| Box::new(c.graph(depth)))),
            floats: self.list(Self::float),
            ints: self.list(Self::long),
            strings: self.list(Self::bytes),
            tensors: self.list(Self::tensor),
            graphs: deeper.map_or_else(Vec::new, |depth| self.list(|c| c.graph(depth))),
            doc_string: self.maybe(Self::text),
            tp: self.maybe(|c| Box::new(c.value_type(2))),
            type_protos: self.list(|c| c.value_type(1)),
            r#type: self.maybe(|c| i32::from((c.next() % 15).max(c.least()))),
            ref_attr_name: self.maybe(Self::text),
            sparse_tensor: self.maybe(|c| Box::new(c.sparse())),
            sparse_tensors: self.list(Self::sparse),
        }
    }

    fn tensor(&mut self) -> TensorProto {
        TensorProto {
            dims: self.list(Self::long),
            data_type: self.maybe(Self::int),
            segment: self.maybe(|c| tensor_proto::Segment { begin: c.maybe(Self::long), end: c.maybe(Self::long) }),
            float_data: self.list(Self::float),
            int32_data: self.list(Self::int),
            string_data: self.list(Self::bytes),
            int64_data: self.list(Self::long),
            name: self.maybe(Self::text),
            raw_data: self.maybe(Self::bytes),
            double_data: self.list(|c| f64::from(c.float())),
            uint64_data: self.list(|c| c.long() as u64),
            doc_string: self.maybe(Self::text),
            external_data: self.list(Self::entry),
            data_location: self.maybe(|c| i32::from((c.next() % 2).max(c.least()))),
            metadata_props: self.list(Self::entry),
        }
    }

    fn sparse(&mut self) -> SparseTensorProto {
        SparseTensorProto {
            values: self.maybe(Self::tensor),
            indices: self.maybe(Self::tensor),
            dims: self.list(Self::long),
        }
    }

    fn value_info(&mut self) -> ValueInfoProto {
        ValueInfoProto {
            name: self.maybe(Self::text),
            r#type: self.maybe(|c| c.value_type(2)),
            doc_string: self.maybe(Self::text),
            metadata_props: self.list(Self::entry),
        }
    }

    fn value_type(&mut self, depth: u32) -> TypeProto {
        use type_proto::{Map, Opaque, Optional, Sequence, SparseTensor, Tensor, Value};
        let inner = |c: &mut Self| depth.checked_sub(1).map(|depth| Box::new(c.value_type(depth)));
        let value = match self.next() % 7 {
            0 => None,
            1 => Some(Value::SequenceType(Sequence { elem_type: inner(self) })),
            2 => Some(Value::MapType(Map { key_type: self.maybe(Self::int), value_type: inner(self) })),
            3 => Some(Value::OptionalType(Optional { elem_type: inner(self) })),
            4 => Some(Value::OpaqueType(Opaque { domain: self.maybe(Self::text), name: self.maybe(Self::text) })),
            5 => Some(Value::SparseTensorType(SparseTensor {
                elem_type: self.maybe(Self::int),
                shape: self.maybe(Self::shape),
            })),
            _ => Some(Value::TensorType(Tensor { elem_type: self.maybe(Self::int), shape: self.maybe(Self::shape) })),
        };
        TypeProto { value, denotation: self.maybe(Self::text) }
    }

    fn shape(&mut self) -> TensorShapeProto {
        use tensor_shape_proto::dimension::Value;
        let dim = self.list(|c| tensor_shape_proto::Dimension {
            value: match c.next() % 3 {
                0 => None,
                1 => Some(Value::DimValue(c.long())),
                _ => Some(Value::DimParam(c.text())),
            },
            denotation: c.maybe(Self::text),
        });
        TensorShapeProto { dim }
    }
}
