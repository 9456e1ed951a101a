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

mod audit;
mod builder;
pub mod calibrate;
mod certificate;
mod error;
mod kernels;
mod model;
mod optimize;
mod report;
pub mod verify;
mod why;

pub use audit::{AUDIT_SCHEMA, Audit, AuditedMove, Fate, audit};
pub use builder::{BuildError, GraphBuilder};
pub use certificate::{CertificateFile, certify, check_certificate};
pub use error::Error;
pub use kernels::{KernelFile, KernelOptions, Kernels, LaunchFile, MANIFEST_SCHEMA, Manifest, MoveKernel, kernels};
pub use model::Model;
pub use optimize::{Optimized, Options, optimize, optimize_graph};
pub use relayout_codegen as codegen;
pub use relayout_ir as ir;
pub use relayout_passes::assign::{Alternative, Side, SolveRecord, Way, Why};
pub use relayout_passes::hints::Size;
pub use relayout_passes::pipeline::PASSES;
pub use relayout_passes::record::{GraphRecord, MoveRecord, OpaqueRecord, Traffic};
pub use relayout_passes::rewrites::{Numerics, Rewrite, TABLE as REWRITES};
pub use relayout_passes::solve::certificate::{Certificate, CertificateError, Checked};
pub use relayout_target::measured;
pub use relayout_target::{BUILTIN, DataTarget, Target, TargetError, builtin as target};
pub use report::{Report, SCHEMA};
pub use why::{Explained, why};
