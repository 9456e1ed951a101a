//! The first walk over the messages: sizes.

use super::encode::Sink;
use super::fields::model_proto;
use super::plan::{Payload, Plan};
use crate::error::{Error, Result};
use crate::proto::{ModelProto, TensorProto};
use crate::wire::MAX_DEPTH;
use prost::encoding::{encoded_len_varint, key_len};

/// Sizes of all nested messages, in the order in which the walk enters them.
pub(super) struct Sizer {
    pub(super) sizes: Vec<u64>,
    /// Bytes of the message being walked; at the end, of the model.
    pub(super) total: u64,
    depth: usize,
}

impl Sizer {
    pub(super) fn measure(model: &ModelProto, plan: &Plan<'_>) -> Result<Self> {
        let mut sizer = Self { sizes: Vec::new(), total: 0, depth: 0 };
        model_proto(&mut sizer, plan, model)?;
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
