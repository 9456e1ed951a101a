//! A walk over the wire format: is this a model, where is it damaged, what does the schema not know.
//!
//! prost drops unknown fields without a word and reports damage without a place. The walk reads the same bytes beside the
//! schema's table before prost does, and checks everything that prost would refuse: truncation, varints, wire
//! types, UTF-8, nesting. It also adds up what the decoded messages will occupy, so that the caller can refuse a file that
//! unfolds into far more than its own size.
//!
//! Invariants: the position never passes the end of the innermost frame; the stack is a `Vec` of at most [`MAX_DEPTH`] + 1
//! frames, so no input can exhaust the thread's stack; no memory is reserved from a declared length.

#[rustfmt::skip]
mod schema;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;

pub(crate) use walk::{Fault, Malformed, Walk, walk};

/// How deep messages may nest below the model; the limit of every protobuf decoder (prost's, C++'s default).
pub const MAX_DEPTH: usize = 100;

/// How many unknown fields are listed one by one.
pub const MAX_LISTED_UNKNOWN: usize = 256;

/// A field that the schema does not have. prost drops it on decoding, so a model written back loses it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownField {
    /// The message that holds it, such as `graph.node[3].attribute[1]`; `model` for the outermost.
    pub path: String,
    /// The type of that message, such as `AttributeProto`.
    pub message: &'static str,
    /// Field number.
    pub number: u32,
    /// How the field is encoded.
    pub wire_type: WireType,
    /// Offset of the field's key from the start of the file, in bytes.
    pub offset: u64,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, message, number, wire_type, offset } = self;
        write!(f, "{path}: field {number} of {message} ({wire_type}) at byte {offset}")
    }
}

/// How the wire format encodes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireType {
    /// A base-128 number.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// A length and that many bytes.
    Len,
    /// Fields up to an end mark; the schema has none.
    Group,
    /// Four bytes.
    Fixed32,
}

impl fmt::Display for WireType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Varint => "varint",
            Self::Fixed64 => "64-bit",
            Self::Len => "length-delimited",
            Self::Group => "group",
            Self::Fixed32 => "32-bit",
        })
    }
}

/// A message of the schema.
struct MessageDesc {
    /// Name as in the schema file, nested ones with a dot.
    name: &'static str,
    /// Bytes of the Rust type, without what it points to.
    size: usize,
    fields: &'static [FieldDesc],
}

impl MessageDesc {
    fn field(&self, number: u32) -> Option<(usize, &'static FieldDesc)> {
        self.fields.iter().enumerate().find(|(_, field)| field.number == number)
    }
}

struct FieldDesc {
    number: u32,
    name: &'static str,
    label: Label,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    /// At most one; members of a oneof too.
    Optional,
    Repeated,
    /// Repeated, and written as one length-delimited run.
    Packed,
}

#[derive(Clone, Copy)]
enum Kind {
    Int32,
    Int64,
    Uint64,
    Enum,
    Float,
    Double,
    Str,
    Bytes,
    Message(&'static MessageDesc),
}

impl Kind {
    const fn wire_type(self) -> WireType {
        match self {
            Self::Int32 | Self::Int64 | Self::Uint64 | Self::Enum => WireType::Varint,
            Self::Float => WireType::Fixed32,
            Self::Double => WireType::Fixed64,
            Self::Str | Self::Bytes | Self::Message(_) => WireType::Len,
        }
    }

    /// Bytes of the Rust type of one element.
    const fn size(self) -> usize {
        match self {
            Self::Int32 | Self::Enum | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
            Self::Str => size_of::<String>(),
            Self::Bytes => size_of::<bytes::Bytes>(),
            Self::Message(desc) => desc.size,
        }
    }
}
