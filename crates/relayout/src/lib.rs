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
//! Embedders that do not come from ONNX build a graph with [`GraphBuilder`] and call [`plan_graph`], which says what was decided
//! in their own ids, or [`optimize_graph`], which gives a graph back; [`Model::of_graph`] makes a file of it. A target of their own is
//! a [`Target`]: the crate in `examples/own-target` brings a blocked layout, two forms and a pass.
//!
//! [`Model::from_bytes`] reads a model from memory, and [`Model::from_bytes_with`] one whose external data a function gives. Feature
//! `prost` makes the messages of a model public (`relayout::proto`), and feature `onnx-protobuf` brings those of the crate of that name:
//! with either, a [`Model`] is made of messages with `try_from`, and a model or an [`Optimized`] becomes messages with `try_into`.
//!
//! This library reads no environment and prints nothing.

mod audit;
mod builder;
mod certificate;
mod error;
#[cfg(any(feature = "onnx-protobuf", feature = "prost"))]
mod interop;
mod io;
mod kernels;
mod made_for;
mod model;
mod optimize;
mod plan;
mod report;
mod why;

pub use audit::{AUDIT_SCHEMA, Audit, AuditedMove, Fate, audit};
pub use builder::{BuildError, GraphBuilder};
pub use certificate::{CertificateFile, certify, check_certificate, problem};
pub use error::Error;
pub use io::{End, IO_KEY, IoError, IoLayout, IoRecord};
pub use kernels::{KernelFile, KernelOptions, Kernels, LaunchFile, MANIFEST_SCHEMA, Manifest, MoveKernel, kernels};
pub use model::{Model, dot};
pub use optimize::{Optimized, Options, optimize, optimize_graph};
pub use plan::{
    Action, ConstantPlan, GraphPlan, Ids, ListPlan, NodePlan, OperandPlan, OutputPlan, PLAN_SCHEMA, PlanError,
    RelayoutPlan, User, ValuePlan, WindowPlan, plan_graph,
};
pub use relayout_codegen as codegen;
pub use relayout_fsio as fsio;
pub use relayout_fsio::{Place, PlaceError};
pub use relayout_ir as ir;
#[cfg(feature = "onnx-protobuf")]
pub use relayout_onnx::onnx_protobuf;
#[cfg(feature = "prost")]
pub use relayout_onnx::{prost, proto};
pub use relayout_passes::decide::solve;
pub use relayout_passes::decide::solve::certificate::{Certificate, CertificateError, Checked};
pub use relayout_passes::decide::{Alternative, Side, SolveRecord, Way, Why};
pub use relayout_passes::report::{GraphRecord, MoveRecord, OpaqueRecord, Traffic};
pub use relayout_target::hints::Size;
pub use relayout_target::{Cost, Numerics, Rule, Target};
pub use relayout_targets::{
    BUILTIN, Block, DataTarget, FunctionTarget, OrtCpu, TargetError, builtin as target, gpu, measured,
    parse as parse_target,
};
/// What a target is made of: the trait, forms, offers, fragments, passes, costs.
pub mod target {
    pub use relayout_target::*;
}
pub use optimize::{passes, rules};
pub use report::{Report, SCHEMA};
pub use why::{Explained, why};
