//! What the standard says of nodes, by opset.

pub(crate) mod defaults;
pub(crate) mod schema;
pub(crate) mod typed;
