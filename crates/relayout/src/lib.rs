//! relayout: a layout optimizer for ONNX models.
//!
//! It decides how every tensor of a graph lies in memory, moves data only where that pays, re-lays weights at compile time and
//! says why each move that is left is left.
//!
//! ```no_run
//! use relayout::{Model, Options, optimize, target};
//!
//! let model = Model::open("model.onnx")?;
//! let target = target("onnx")?;
//! let optimized = optimize(&model, target.as_ref(), &Options::default())?;
//! println!("{}", optimized.report().summary());
//! optimized.write("out.onnx")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Embedders that do not come from ONNX build a graph with [`GraphBuilder`] and call [`optimize_graph`].
//!
//! This library reads no environment and prints nothing.

mod builder;
pub mod calibrate;
mod error;
mod kernels;
mod model;
mod optimize;
mod report;
pub mod verify;

pub use builder::{BuildError, GraphBuilder};
pub use error::Error;
pub use kernels::{KernelFile, KernelOptions, Kernels, LaunchFile, MANIFEST_SCHEMA, Manifest, MoveKernel, kernels};
pub use model::Model;
pub use optimize::{Optimized, Options, optimize, optimize_graph};
pub use relayout_codegen as codegen;
pub use relayout_ir as ir;
pub use relayout_passes::hints::Size;
pub use relayout_passes::pipeline::PASSES;
pub use relayout_passes::record::{GraphRecord, MoveRecord, OpaqueRecord, Traffic};
pub use relayout_passes::rewrites::{Numerics, Rewrite, TABLE as REWRITES};
pub use relayout_target::measured;
pub use relayout_target::{
    BUILTIN, DataTarget, FunctionTarget, Target, TargetError, builtin as target, parse as parse_target,
};
pub use report::{Report, SCHEMA};
