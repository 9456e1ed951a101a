//! Types, attribute values and elements of small constants as text.

use super::names::Name;
use crate::attr::Attr;
use crate::constant::Constant;
use crate::dtype::DType;
use crate::types::Type;
use std::fmt;

/// Most elements of an integer constant that the text shows.
pub(super) const SHOWN_ELEMS: usize = 16;

/// A type; as its `Display`, but for descriptions with characters that would end them.
pub(super) struct TypeText<'a>(pub(super) &'a Type);

impl fmt::Display for TypeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Other(what) => angled(f, what),
            ty => ty.fmt(f),
        }
    }
}

fn angled(f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
    let bare = what.chars().all(|c| !c.is_control() && !matches!(c, '<' | '>' | '"'));
    if bare { write!(f, "<{what}>") } else { write!(f, "<{what:?}>") }
}

/// An attribute value; as its `Display`, but for names and bytes that it would not tell apart.
pub(super) struct AttrText<'a>(pub(super) &'a Attr);

impl fmt::Display for AttrText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attr::String(s) => string(f, s),
            Attr::Strings(v) => {
                f.write_str("[")?;
                for (i, s) in v.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    string(f, s)?;
                }
                f.write_str("]")
            }
            Attr::Ref(name) => write!(f, "${}", Name(name)),
            Attr::Other(what) => angled(f, what),
            attr => attr.fmt(f),
        }
    }
}

fn string(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    match std::str::from_utf8(bytes) {
        Ok(s) => write!(f, "{s:?}"),
        Err(_) => write!(f, "b\"{}\"", bytes.escape_ascii()),
    }
}

/// The elements of a small integer constant: ` 3`, ` [1,2]`; nothing for any other constant.
pub(super) struct Elements<'a>(pub(super) &'a Constant);

impl Elements<'_> {
    pub(super) fn shown(&self) -> bool {
        self.0.to_ints(SHOWN_ELEMS).is_some()
    }
}

impl fmt::Display for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ints) = self.0.to_ints(SHOWN_ELEMS) else { return Ok(()) };
        match ints[..] {
            [one] if self.0.dims.is_empty() => write!(f, " {one}"),
            _ => write!(f, " {}", Attr::Ints(ints)),
        }
    }
}

/// Little-endian bytes of integers in an integer or boolean type; an error names the first that does not fit.
pub(super) fn encode(dtype: DType, ints: &[i64]) -> Result<Vec<u8>, String> {
    fn all<T: TryFrom<i64>, const N: usize>(
        dtype: DType,
        ints: &[i64],
        le: fn(T) -> [u8; N],
    ) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(ints.len() * N);
        for &i in ints {
            bytes.extend(le(T::try_from(i).map_err(|_| format!("{i} does not fit {dtype}"))?));
        }
        Ok(bytes)
    }
    match dtype {
        DType::I64 => all(dtype, ints, i64::to_le_bytes),
        DType::U64 => all(dtype, ints, u64::to_le_bytes),
        DType::I32 => all(dtype, ints, i32::to_le_bytes),
        DType::U32 => all(dtype, ints, u32::to_le_bytes),
        DType::I16 => all(dtype, ints, i16::to_le_bytes),
        DType::U16 => all(dtype, ints, u16::to_le_bytes),
        DType::I8 => all(dtype, ints, i8::to_le_bytes),
        DType::U8 | DType::Bool => all(dtype, ints, u8::to_le_bytes),
        _ => Err(format!("elements of type {dtype} can't be written in the text form; leave them out")),
    }
}
