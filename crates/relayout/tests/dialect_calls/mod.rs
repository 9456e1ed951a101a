//! One call of the dialect beside the standard op: tensors packed on the host, models of one node, runs of both.

mod array;
mod model;

pub(crate) use array::Array;
pub(crate) use model::{checked, dims, float, int, ints, moved, single, text, with_function};
