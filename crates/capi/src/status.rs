//! What a call answers.

use std::ffi::{CStr, c_char, c_int};

use relayout_codegen::Error;

/// What a call answers: 0, or why nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    RELAYOUT_OK = 0,
    /// A pointer is null that must not be.
    RELAYOUT_NULL = 1,
    /// `perm` does not name each axis once.
    RELAYOUT_NOT_A_PERMUTATION = 2,
    /// An element has no bytes, or the tensor does not fit the address space.
    RELAYOUT_BAD_SIZE = 3,
    /// Source and destination overlap.
    RELAYOUT_OVERLAP = 4,
    /// The hint is not one of `relayout_hint`.
    RELAYOUT_BAD_HINT = 5,
    /// A defect of the library.
    RELAYOUT_INTERNAL = 6,
}

impl Status {
    /// The number of it.
    pub(crate) fn code(self) -> c_int {
        self as c_int
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::NotAPermutation { .. } => Self::RELAYOUT_NOT_A_PERMUTATION,
            Error::NoElementBytes | Error::TooLarge { .. } => Self::RELAYOUT_BAD_SIZE,
            _ => Self::RELAYOUT_INTERNAL,
        }
    }
}

/// What a status means, in English; never null, never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn relayout_status_text(status: c_int) -> *const c_char {
    const TEXTS: [&CStr; 7] = [
        c"done",
        c"a pointer is null",
        c"perm does not name each axis of the shape once",
        c"an element has no bytes, or the tensor does not fit the address space",
        c"source and destination overlap",
        c"the hint is none of relayout_hint",
        c"a defect of the library",
    ];
    let text = usize::try_from(status).ok().and_then(|status| TEXTS.get(status));
    text.copied().unwrap_or(c"no such status").as_ptr()
}
