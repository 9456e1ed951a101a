//! Costs of ONNX Runtime's CPU kernels, from a table that a calibration measured.
//!
//! [`MeasuredCosts`] answers in nanoseconds what one op takes on tensors of given sizes: convolutions plain and blocked, moves
//! between the two, and the ops around them. A table is TOML: where and when it was measured, and one grid per kind of op. What
//! lies between the points of a grid is interpolated, see `shared/tables/grid.rs`; what a kernel does at once (four blocks of output
//! channels, rows without padding) is arithmetic in `conv.rs`, so that grids stay small.
//!
//! Costs are integers, and the same on every machine that reads the same table. Absent: the measuring, and time that is not
//! spent in one op alone, such as that of weights which another op pushed out of the cache.

mod case;
mod conv;
mod moves;
mod ops;
mod products;
mod scaling;
mod specs;
mod table;
mod timed;

pub use case::{
    Activation, AxisShape, Case, ConvKernel, ConvShape, Copy, Pool, PoolShape, Reorder, ResizeShape, Scaling, Side,
    Spread, VolumeShape,
};
pub use products::{Attention, AttentionShape, GemmShape, Projection, ProjectionShape};
pub use scaling::Share;
pub use specs::{ELEMENTWISE, Spec, is_binary, specs};
pub use table::{BuiltinTable, MACHINES, Machine, MeasuredCosts, ORT_CPU};
pub use timed::Timed;
