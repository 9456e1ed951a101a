//! The encoder: one walk over the messages, run twice.
//!
//! A length-delimited message begins with its length, so the sizes must be known before the first byte. The walk is generic
//! over a [`Sink`]: [`Sizer`] runs it first and notes the size of every message that it enters, in the order of entering;
//! [`Emitter`](super::emit::Emitter) runs it again, takes the sizes in the same order, and writes. So every message is sized
//! once, however deep it is, and nothing larger than one leaf field is ever buffered.
//!
//! Only the messages that can hold a tensor are spelled out here, field by field in the order of their numbers; everything
//! else is a leaf that prost encodes. A test holds the whole against prost's own encoding.

use prost::encoding::{self, encoded_len_varint, key_len};

use super::plan::{Payload, Placement, Plan};
use crate::error::{Error, Result};
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, StringStringEntryProto,
    TensorProto, TrainingInfoProto,
};
use crate::wire::MAX_DEPTH;

/// Where the walk's fields go.
pub(super) trait Sink: Sized {
    /// Fields of `len` bytes that `encode` appends to a buffer.
    fn leaf(&mut self, len: impl FnOnce() -> usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<()>;

    /// A nested message, whose fields `body` walks.
    fn message(&mut self, tag: u32, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()>;

    /// The `bytes` field `tag` of `tensor`.
    fn payload(&mut self, tag: u32, tensor: &TensorProto, payload: &Payload<'_>) -> Result<()>;
}

/// Sizes of all nested messages, in the order in which the walk enters them.
pub(super) struct Sizer {
    pub(super) sizes: Vec<u64>,
    /// Bytes of the message being walked; at the end, of the model.
    pub(super) total: u64,
    depth: usize,
}

impl Sizer {
    pub(super) fn of(model: &ModelProto, plan: &Plan<'_>) -> Result<Self> {
        let mut sizer = Self { sizes: Vec::new(), total: 0, depth: 0 };
        encode_model(&mut sizer, plan, model)?;
        Ok(sizer)
    }
}

impl Sink for Sizer {
    fn leaf(&mut self, len: impl FnOnce() -> usize, _: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.total += len() as u64;
        Ok(())
    }

    fn message(&mut self, tag: u32, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth == MAX_DEPTH {
            return Err(Error::TooDeepToWrite { limit: MAX_DEPTH });
        }
        let slot = self.sizes.len();
        self.sizes.push(0);
        let outer = std::mem::take(&mut self.total);
        self.depth += 1;
        body(self)?;
        self.depth -= 1;
        let size = self.total;
        if let Some(noted) = self.sizes.get_mut(slot) {
            *noted = size;
        }
        self.total = outer + delimited_len(tag, size);
        Ok(())
    }

    fn payload(&mut self, tag: u32, _: &TensorProto, payload: &Payload<'_>) -> Result<()> {
        self.total += delimited_len(tag, payload.len());
        Ok(())
    }
}

fn delimited_len(tag: u32, size: u64) -> u64 {
    (key_len(tag) + encoded_len_varint(size)) as u64 + size
}

/// Fields of scalars, strings and messages that hold no tensor, by the name of prost's encoding module.
macro_rules! leaf {
    ($sink:ident, $kind:ident, optional, $tag:literal, $value:expr) => {
        if let Some(value) = &$value {
            $sink.leaf(
                || encoding::$kind::encoded_len($tag, value),
                |buffer| encoding::$kind::encode($tag, value, buffer),
            )?;
        }
    };
    ($sink:ident, $kind:ident, repeated, $tag:literal, $value:expr) => {
        for value in &$value {
            $sink.leaf(
                || encoding::$kind::encoded_len($tag, value),
                |buffer| encoding::$kind::encode($tag, value, buffer),
            )?;
        }
    };
    ($sink:ident, $kind:ident, packed, $tag:literal, $value:expr) => {
        if !$value.is_empty() {
            $sink.leaf(
                || encoding::$kind::encoded_len_packed($tag, &$value),
                |buffer| encoding::$kind::encode_packed($tag, &$value, buffer),
            )?;
        }
    };
}

/// Nested messages that are walked.
macro_rules! nested {
    ($sink:ident, $plan:ident, optional, $tag:literal, $value:expr, $encode:ident) => {
        if let Some(value) = &$value {
            $sink.message($tag, |sink| $encode(sink, $plan, value))?;
        }
    };
    ($sink:ident, $plan:ident, repeated, $tag:literal, $value:expr, $encode:ident) => {
        for value in &$value {
            $sink.message($tag, |sink| $encode(sink, $plan, value))?;
        }
    };
}

pub(super) fn encode_model(s: &mut impl Sink, plan: &Plan<'_>, m: &ModelProto) -> Result<()> {
    leaf!(s, int64, optional, 1, m.ir_version);
    leaf!(s, string, optional, 2, m.producer_name);
    leaf!(s, string, optional, 3, m.producer_version);
    leaf!(s, string, optional, 4, m.domain);
    leaf!(s, int64, optional, 5, m.model_version);
    leaf!(s, string, optional, 6, m.doc_string);
    nested!(s, plan, optional, 7, m.graph, graph);
    leaf!(s, message, repeated, 8, m.opset_import);
    leaf!(s, message, repeated, 14, m.metadata_props);
    nested!(s, plan, repeated, 20, m.training_info, training_info);
    nested!(s, plan, repeated, 25, m.functions, function);
    leaf!(s, message, repeated, 26, m.configuration);
    Ok(())
}

fn training_info(s: &mut impl Sink, plan: &Plan<'_>, t: &TrainingInfoProto) -> Result<()> {
    nested!(s, plan, optional, 1, t.initialization, graph);
    nested!(s, plan, optional, 2, t.algorithm, graph);
    leaf!(s, message, repeated, 3, t.initialization_binding);
    leaf!(s, message, repeated, 4, t.update_binding);
    Ok(())
}

fn function(s: &mut impl Sink, plan: &Plan<'_>, f: &FunctionProto) -> Result<()> {
    leaf!(s, string, optional, 1, f.name);
    leaf!(s, string, repeated, 4, f.input);
    leaf!(s, string, repeated, 5, f.output);
    leaf!(s, string, repeated, 6, f.attribute);
    nested!(s, plan, repeated, 7, f.node, node);
    leaf!(s, string, optional, 8, f.doc_string);
    leaf!(s, message, repeated, 9, f.opset_import);
    leaf!(s, string, optional, 10, f.domain);
    nested!(s, plan, repeated, 11, f.attribute_proto, attribute);
    leaf!(s, message, repeated, 12, f.value_info);
    leaf!(s, string, optional, 13, f.overload);
    leaf!(s, message, repeated, 14, f.metadata_props);
    Ok(())
}

fn graph(s: &mut impl Sink, plan: &Plan<'_>, g: &GraphProto) -> Result<()> {
    nested!(s, plan, repeated, 1, g.node, node);
    leaf!(s, string, optional, 2, g.name);
    nested!(s, plan, repeated, 5, g.initializer, tensor);
    leaf!(s, string, optional, 10, g.doc_string);
    leaf!(s, message, repeated, 11, g.input);
    leaf!(s, message, repeated, 12, g.output);
    leaf!(s, message, repeated, 13, g.value_info);
    leaf!(s, message, repeated, 14, g.quantization_annotation);
    nested!(s, plan, repeated, 15, g.sparse_initializer, sparse_tensor);
    leaf!(s, message, repeated, 16, g.metadata_props);
    Ok(())
}

fn node(s: &mut impl Sink, plan: &Plan<'_>, n: &NodeProto) -> Result<()> {
    leaf!(s, string, repeated, 1, n.input);
    leaf!(s, string, repeated, 2, n.output);
    leaf!(s, string, optional, 3, n.name);
    leaf!(s, string, optional, 4, n.op_type);
    nested!(s, plan, repeated, 5, n.attribute, attribute);
    leaf!(s, string, optional, 6, n.doc_string);
    leaf!(s, string, optional, 7, n.domain);
    leaf!(s, string, optional, 8, n.overload);
    leaf!(s, message, repeated, 9, n.metadata_props);
    leaf!(s, message, repeated, 10, n.device_configurations);
    Ok(())
}

fn attribute(s: &mut impl Sink, plan: &Plan<'_>, a: &AttributeProto) -> Result<()> {
    leaf!(s, string, optional, 1, a.name);
    leaf!(s, float, optional, 2, a.f);
    leaf!(s, int64, optional, 3, a.i);
    leaf!(s, bytes, optional, 4, a.s);
    nested!(s, plan, optional, 5, a.t, tensor);
    nested!(s, plan, optional, 6, a.g, graph);
    leaf!(s, float, repeated, 7, a.floats);
    leaf!(s, int64, repeated, 8, a.ints);
    leaf!(s, bytes, repeated, 9, a.strings);
    nested!(s, plan, repeated, 10, a.tensors, tensor);
    nested!(s, plan, repeated, 11, a.graphs, graph);
    leaf!(s, string, optional, 13, a.doc_string);
    leaf!(s, message, optional, 14, a.tp);
    leaf!(s, message, repeated, 15, a.type_protos);
    leaf!(s, int32, optional, 20, a.r#type);
    leaf!(s, string, optional, 21, a.ref_attr_name);
    nested!(s, plan, optional, 22, a.sparse_tensor, sparse_tensor);
    nested!(s, plan, repeated, 23, a.sparse_tensors, sparse_tensor);
    Ok(())
}

fn sparse_tensor(s: &mut impl Sink, plan: &Plan<'_>, t: &SparseTensorProto) -> Result<()> {
    nested!(s, plan, optional, 1, t.values, tensor);
    nested!(s, plan, optional, 2, t.indices, tensor);
    leaf!(s, int64, repeated, 3, t.dims);
    Ok(())
}

fn tensor(s: &mut impl Sink, plan: &Plan<'_>, t: &TensorProto) -> Result<()> {
    let placement = plan.placement(t);
    leaf!(s, int64, repeated, 1, t.dims);
    leaf!(s, int32, optional, 2, t.data_type);
    leaf!(s, message, optional, 3, t.segment);
    leaf!(s, float, packed, 4, t.float_data);
    leaf!(s, int32, packed, 5, t.int32_data);
    leaf!(s, bytes, repeated, 6, t.string_data);
    leaf!(s, int64, packed, 7, t.int64_data);
    leaf!(s, string, optional, 8, t.name);
    match placement {
        Placement::AsItIs => {
            if let Some(raw) = &t.raw_data {
                s.payload(9, t, &Payload::Bytes(raw.clone()))?;
            }
        }
        Placement::Inline(payload) => s.payload(9, t, payload)?,
        Placement::External(_) => {}
    }
    leaf!(s, double, packed, 10, t.double_data);
    leaf!(s, uint64, packed, 11, t.uint64_data);
    leaf!(s, string, optional, 12, t.doc_string);
    match placement {
        Placement::AsItIs => {
            leaf!(s, message, repeated, 13, t.external_data);
            leaf!(s, int32, optional, 14, t.data_location);
        }
        Placement::Inline(_) => {}
        Placement::External(reference) => {
            let entries: &[StringStringEntryProto] = reference;
            leaf!(s, message, repeated, 13, *entries);
            leaf!(s, int32, optional, 14, Some(DataLocation::External as i32));
        }
    }
    leaf!(s, message, repeated, 16, t.metadata_props);
    Ok(())
}
