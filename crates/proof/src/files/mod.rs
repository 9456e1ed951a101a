//! Files: from bytes to a model.

pub(crate) mod contents;
pub(crate) mod decode;
pub(crate) mod exact;
pub(crate) mod model;
pub(crate) mod sparse;
pub(crate) mod tensors;
pub(crate) mod wire;
