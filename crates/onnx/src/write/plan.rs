//! Where each tensor's data goes, as `survey.rs` decides it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::payload::PayloadSource;
use crate::proto::{StringStringEntryProto, TensorProto};

/// No reader takes a protobuf message beyond this.
pub(super) const PROTOBUF_LIMIT: u64 = i32::MAX as u64;

/// Bytes of a tensor.
#[derive(Clone)]
pub(super) enum Payload<'a> {
    Bytes(Bytes),
    Deferred(&'a dyn PayloadSource),
}

impl Payload<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Deferred(source) => source.byte_length(),
        }
    }

    /// What tells whether two payloads are the same bytes in memory.
    pub(super) fn key(&self) -> Option<(usize, usize)> {
        match self {
            Self::Bytes(bytes) => Some((bytes.as_ptr().addr(), bytes.len())),
            Self::Deferred(_) => None,
        }
    }
}

/// A part of a model: data that is apart, and the first tensor that it is of.
pub(super) type Part<'a> = (&'a TensorProto, Payload<'a>);

/// What becomes of a tensor.
pub(super) enum Placement<'a> {
    /// Written with the fields that it has.
    AsItIs,
    /// `raw_data` is this; no reference.
    Inline(Payload<'a>),
    /// No `raw_data`; `external_data` is this.
    External(Vec<StringStringEntryProto>),
}

/// A run of the data file.
pub(super) struct Run<'a> {
    pub(super) offset: u64,
    pub(super) tensor: &'a TensorProto,
    pub(super) payload: Payload<'a>,
}

/// All decisions for one model.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// By address: the model is borrowed for as long as the plan lives. Never iterated.
    pub(super) placements: FxHashMap<*const TensorProto, Placement<'a>>,
    /// In order of offset; without gaps but for the alignment.
    pub(super) data: Vec<Run<'a>>,
    /// Name of the data file, in the folder of the output.
    pub(super) data_name: String,
    /// Names that the data file must not have: of data that is missing and must stay so.
    pub(super) dangling: BTreeSet<PathBuf>,
}

impl<'a> Plan<'a> {
    pub(super) fn placement(&self, tensor: &TensorProto) -> &Placement<'a> {
        self.placements.get(&std::ptr::from_ref(tensor)).unwrap_or(&Placement::AsItIs)
    }

    pub(super) fn place(&mut self, tensor: &TensorProto, placement: Placement<'a>) {
        self.placements.insert(std::ptr::from_ref(tensor), placement);
    }

    /// Whether there is a data file.
    pub(super) fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    /// Whether the data file may have this name.
    pub(super) fn may_be_data(&self, name: &str) -> bool {
        !self.dangling.contains(Path::new(name))
    }

    /// Gives the data file another name.
    pub(super) fn name_data(&mut self, name: &str) {
        #[allow(clippy::iter_over_hash_type, reason = "each is changed for itself")]
        for placement in self.placements.values_mut() {
            if let Placement::External(entries) = placement {
                let location = entries.iter_mut().filter(|entry| entry.key() == "location");
                location.for_each(|entry| entry.value = Some(name.to_owned()));
            }
        }
        name.clone_into(&mut self.data_name);
    }
}
