//! Forms in standard ONNX, a file each.

pub(crate) mod attention;
pub(crate) mod layer_norm;
pub(crate) mod packed;
pub(crate) mod product;
pub(crate) mod projection;
pub(crate) mod scaled;
pub(crate) mod turned;
