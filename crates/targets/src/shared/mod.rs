//! What several targets use. A target's folder imports this one and its own.

pub(crate) mod data;
pub(crate) mod forms;
pub(crate) mod group_norm;
pub(crate) mod nodes;
pub(crate) mod numbers;
pub(crate) mod pools;
pub(crate) mod spans;
pub(crate) mod split_parts;
pub(crate) mod tables;
