//! Costs of an execution provider's device, from a table that a calibration measured.
//!
//! [`DeviceCosts`] says what a Transpose takes there, a convolution in either layout, a product, a Resize, a sum and a normalization, of
//! floats and of halves. A table is TOML: where and when it was measured, and the grids that [`specs`] lists. Between points the logarithm
//! of nanoseconds per unit of work is linear in the logarithms of the sizes, as in [`crate::measured`]; costs are integers and the same
//! wherever the same table is read.
//!
//! Absent: the measuring, and what a kernel saves that finds its operand in a cache.

mod specs;
mod table;

pub use crate::shared::tables::Points;
pub use specs::{Case, ConvCase, NORM_CHANNELS, NORM_GROUPS, Spec, specs};
pub use table::{DeviceCosts, DeviceMachine};

pub(crate) use table::Convolution;
