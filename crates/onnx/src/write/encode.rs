//! The encoder: one walk over the messages, run twice.
//!
//! A length-delimited message begins with its length, so the sizes must be known before the first byte. The walk is generic
//! over a [`Sink`]: [`Sizer`](super::size::Sizer) runs it first and notes the size of every message that it enters, in the order of entering;
//! `Emitter` runs it again, takes the sizes in the same order, and writes. So every message is sized
//! once, however deep it is, and nothing larger than one leaf field is ever buffered.
//!
//! The walk itself, `fields.rs`, is generated from the schema; here is what its statements mean. A test holds the whole against
//! prost's own encoding.

use super::plan::{Payload, Placement, Plan};
use crate::error::Result;
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{StringStringEntryProto, TensorProto};

/// Where the walk's fields go.
pub(super) trait Sink: Sized {
    /// Fields of `len` bytes that `encode` appends to a buffer.
    fn leaf(&mut self, len: impl FnOnce() -> usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<()>;

    /// A nested message, whose fields `body` walks.
    fn message(&mut self, tag: u32, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()>;

    /// The `bytes` field `tag` of `tensor`.
    fn payload(&mut self, tag: u32, tensor: &TensorProto, payload: &Payload<'_>) -> Result<()>;

    /// The `bytes` field `tag` of `tensor`, if it has one.
    fn optional_payload(&mut self, tag: u32, tensor: &TensorProto, payload: Option<&Payload<'_>>) -> Result<()> {
        payload.map_or(Ok(()), |payload| self.payload(tag, tensor, payload))
    }
}

/// What is written of a tensor for its data: as the plan places it.
pub(super) struct Placed<'a> {
    pub(super) raw_data: Option<Payload<'a>>,
    pub(super) external_data: &'a [StringStringEntryProto],
    pub(super) data_location: Option<i32>,
}

impl<'a> Placed<'a> {
    pub(super) fn new(tensor: &'a TensorProto, plan: &'a Plan<'_>) -> Self {
        match plan.placement(tensor) {
            Placement::AsItIs => Self {
                raw_data: tensor.raw_data.clone().map(Payload::Bytes),
                external_data: &tensor.external_data,
                data_location: tensor.data_location,
            },
            Placement::Inline(payload) => {
                Self { raw_data: Some(payload.clone()), external_data: &[], data_location: None }
            }
            Placement::External(reference) => {
                Self { raw_data: None, external_data: reference, data_location: Some(DataLocation::External as i32) }
            }
        }
    }
}

/// Fields of scalars, strings and messages that hold no tensor, by the name of prost's encoding module.
macro_rules! leaf {
    ($sink:ident, $kind:ident, optional, $tag:literal, $value:expr) => {
        if let Some(value) = &$value {
            $sink.leaf(
                || prost::encoding::$kind::encoded_len($tag, value),
                |buffer| prost::encoding::$kind::encode($tag, value, buffer),
            )?;
        }
    };
    ($sink:ident, $kind:ident, repeated, $tag:literal, $value:expr) => {
        for value in &*$value {
            $sink.leaf(
                || prost::encoding::$kind::encoded_len($tag, value),
                |buffer| prost::encoding::$kind::encode($tag, value, buffer),
            )?;
        }
    };
    ($sink:ident, $kind:ident, packed, $tag:literal, $value:expr) => {
        if !$value.is_empty() {
            $sink.leaf(
                || prost::encoding::$kind::encoded_len_packed($tag, &$value),
                |buffer| prost::encoding::$kind::encode_packed($tag, &$value, buffer),
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
        for value in &*$value {
            $sink.message($tag, |sink| $encode(sink, $plan, value))?;
        }
    };
}

pub(super) use {leaf, nested};
