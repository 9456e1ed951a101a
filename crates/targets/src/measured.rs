//! Tables of measured costs: what those of all targets share, and the one of target `ort-cpu`.

pub use crate::ort_cpu::Processor;
pub use crate::ort_cpu::costs::{
    Activation, Attention, AttentionShape, AxisShape, BuiltinTable, Case, ConvKernel, ConvShape, Copy, ELEMENTWISE,
    GemmShape, MACHINES, Machine, MeasuredCosts, ORT_CPU, Pool, PoolShape, Projection, ProjectionShape, Reorder,
    ResizeShape, Scaling, Share, Side, Spec, Spread, Timed, VolumeShape, is_binary, specs,
};
pub use crate::shared::tables::{CostsError, Measurement, points_of};
