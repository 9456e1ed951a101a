//! One call of the dialect beside the standard op: tensors packed on the host, models of one node, runs of both.

mod array;
mod case;
pub(crate) mod cases;
mod model;

pub(crate) use array::Array;
pub(crate) use case::{Case, layout};
pub(crate) use model::{checked, dims, float, int, ints, moved, single, text, with_function};
