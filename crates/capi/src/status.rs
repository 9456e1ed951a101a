//! What a call answers.

use std::ffi::{CStr, c_char, c_int};

use relayout::codegen::Error;

/// What a call answers: 0, or why nothing was done. Later versions may have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer is null that must not be.
    Null = 1,
    /// `perm` does not name each axis once.
    NotAPermutation = 2,
    /// An element has no bytes, or the tensor does not fit the address space.
    BadSize = 3,
    /// Source and destination overlap.
    Overlap = 4,
    /// The hint is none of `enum relayout_hint`.
    BadHint = 5,
    /// A defect of the library.
    Internal = 6,
    /// The text spells no layout, or one of another rank, or one that the shape does not fit.
    BadLayout = 7,
    /// The two layouts have so little in common that no strides describe the move; go by way of a third.
    Scattered = 8,
    /// The options can't be read, or ask for what can't be had.
    BadOptions = 9,
    /// The model can't be read, or can't be optimized for this target.
    BadModel = 10,
    /// The system can't read or write a file, or a caller's function can't give external data.
    File = 11,
}

impl Status {
    /// Its number.
    pub(crate) fn code(self) -> c_int {
        self as c_int
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::NotAPermutation { .. } => Self::NotAPermutation,
            Error::NoElementBytes | Error::TooLarge { .. } | Error::OrderTooLarge { .. } => Self::BadSize,
            Error::NotAnOrder { .. } => Self::BadLayout,
            Error::Scattered { .. } => Self::Scattered,
            _ => Self::Internal,
        }
    }
}

/// What a status means, in English. Never null, never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn relayout_status_text(status: c_int) -> *const c_char {
    const TEXTS: [&CStr; 12] = [
        c"done",
        c"a pointer is null",
        c"perm does not name each axis of the shape once",
        c"an element has no bytes, or the tensor does not fit the address space",
        c"source and destination overlap",
        c"the hint is none of enum relayout_hint",
        c"a defect of the library",
        c"the text spells no layout, or one that the shape does not fit",
        c"no strides describe the move between these layouts; go by way of a third",
        c"the options can't be read, or ask for what can't be had",
        c"the model can't be read, or can't be optimized for this target",
        c"a file or external data can't be read or written",
    ];
    let text = usize::try_from(status).ok().and_then(|status| TEXTS.get(status));
    text.copied().unwrap_or(c"no such status").as_ptr()
}

/// Whether data is in the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum CacheHint {
    /// Unknown: taken to be where both sides fit.
    Auto = 0,
    /// The source was just written and the destination is read next.
    Hot = 1,
    /// The source is in memory.
    Cold = 2,
}
