//! Costs of convolutions and moves on a GPU, from a table that a calibration measured.
//!
//! [`GpuCosts`] says what a convolution takes on channels-first and on channels-last features, by element type, groups, taps,
//! channels and pixels, and what a move takes by its class and bytes. A table is TOML: where and when it was measured, and the
//! grids that [`specs`] lists. Between points the logarithm of nanoseconds per unit of work is linear in the logarithms of the
//! sizes, as in [`crate::measured`]; costs are integers and the same wherever the same table is read.
//!
//! Absent: the measuring, element types that PyTorch has no convolutions of (8 and 4 bits), and what a kernel saves that finds
//! its operand in a cache.

mod class;
mod specs;
mod table;

pub use crate::shared::tables::Points;
pub use class::MoveClass;
pub use specs::{Case, ConvCase, Spec, specs};
pub use table::{GpuCosts, GpuMachine};

pub(crate) use table::Convolution;
