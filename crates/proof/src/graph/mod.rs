//! Walks of a graph, its functions and its bodies: which term each value is.

pub(crate) mod eval;
pub(crate) mod loops;
pub(crate) mod opaque;
pub(crate) mod order;
pub(crate) mod scans;
pub(crate) mod sizes;
