//! Ops of the domains that ONNX Runtime adds to ONNX. A runtime is named here and nowhere else in
//! this crate: the other entries of the table are ONNX's own.

mod attention;
mod contributed;
mod internal;
mod others;
mod quantized;

use super::{Axes, Family, Infer, OpDef, family};

/// The domain of what ONNX Runtime's exporters and optimizers write into files.
pub const MICROSOFT: &str = "com.microsoft";

/// The domain of ONNX Runtime's ops on blocks of channels.
pub const NCHWC: &str = "com.microsoft.nchwc";

/// The domain of ops on channels that are last, which ONNX Runtime has after its own layout passes.
pub const INTERNAL_NHWC: &str = "com.ms.internal.nhwc";

pub(super) const CONTRIBUTED: Family = family("ONNX Runtime's contributed ops", contributed::OPS);
pub(super) const ATTENTION: Family = family("ONNX Runtime's attention", attention::OPS);
pub(super) const QUANTIZED: Family = family("ONNX Runtime's quantized products", quantized::OPS);
pub(super) const OTHERS: Family = family("ONNX Runtime's other ops", others::OPS);
pub(super) const INTERNAL: Family = family("ONNX Runtime's internal ops", internal::OPS);

impl OpDef {
    /// An op of domain [`MICROSOFT`], whose only version is 1.
    const fn microsoft(name: &'static str, axes: Axes, infer: Infer) -> OpDef {
        OpDef { name, domain: MICROSOFT, opsets: (1, 1), axes, infer }
    }
}
