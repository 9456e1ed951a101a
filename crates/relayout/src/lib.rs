//! The public library.
