//! relayout: a layout optimizer for ONNX models.
//!
//! It decides how every tensor of a graph lies in memory and moves data only where that pays. It re-lays weights at compile time,
//! and says why each remaining move is there.
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
//! If your models are not ONNX files, build a graph with [`GraphBuilder`]. Then call [`plan_graph`], which says in your own ids
//! what was decided, or [`optimize_graph`], which returns a graph. [`Model::of_graph`] makes a model of a graph. For a target of
//! your own implement [`Target`]: the crate in `examples/own-target` has a blocked layout, two forms and a pass.
//!
//! [`Model::from_bytes`] reads a model from memory. [`Model::from_bytes_with`] also gets the external data from a function, and
//! [`Optimized::to_parts`] gives a result in such parts.
//! Feature `prost` makes the messages of a model public (`relayout::proto`). Feature `onnx-protobuf` uses the messages of the
//! crate of that name. With either, `try_from` makes a [`Model`] of messages, and `try_into` makes messages of a model or an
//! [`Optimized`].
//!
//! The root has what most callers need: models, options, the functions, and their results. Everything else is in modules:
//!
//! | module | what it has |
//! |---|---|
//! | [`report`], [`mod@audit`], [`mod@why`] | what the functions of these names say, part by part |
//! | [`device`] | what an execution provider would run of a file, and of what is made of it |
//! | [`model`] | models, and graphs as drawings |
//! | [`request`] | all that a caller can ask for: its options by name, as the command line, Python and C have them |
//! | [`machine`] | what models are best optimized for on a machine, chosen by what is there |
//! | [`plan`] | plans for embedders, and their ids |
//! | [`builder`] | graphs that are built in code |
//! | [`io`] | layouts of inputs and outputs, and what a file says of them |
//! | [`sizes`] | sizes of the dims that inputs leave open: their names, and what the nodes ask for |
//! | [`mod@kernels`], [`codegen`] | kernels for moves: which of them a model needs, and how they are made and run |
//! | [`certificate`], [`solve`] | proofs of decisions, and the solver |
//! | [`mod@proof`], [`checker`] | proofs that a result computes what its model computed, and what checks them |
//! | [`mod@target`] | what a target is made of |
//! | [`targets`], [`passes`] | the built-in targets, and the passes, rules and equations of a target |
//! | [`ir`] | graphs, layouts, types and ops |
//! | [`fsio`] | safe reading and replacing of files |
//!
//! This library reads no environment and prints nothing.

mod annotations;
pub mod audit;
pub mod builder;
pub mod certificate;
pub mod device;
mod error;
mod facts;
mod give_back;
#[cfg(any(feature = "onnx-protobuf", feature = "prost"))]
mod interop;
pub mod io;
pub mod kernels;
pub mod machine;
pub mod model;
mod optimize;
mod options;
pub mod passes;
pub mod plan;
pub mod proof;
pub mod report;
pub mod request;
pub mod sizes;
mod source;
mod target_metadata;
pub mod units;
mod unproved;
pub mod why;

pub use audit::{Audit, audit};
pub use builder::{BuildError, GraphBuilder};
pub use certificate::{certify, check_certificate};
pub use error::Error;
pub use io::IoLayout;
pub use kernels::kernels;
pub use model::Model;
pub use optimize::{Optimized, optimize, optimize_graph, unchanged};
pub use options::Options;
pub use plan::plan_graph;
pub use relayout_codegen as codegen;
pub use relayout_fsio as fsio;
pub use relayout_ir as ir;
#[cfg(feature = "onnx-protobuf")]
pub use relayout_onnx::onnx_protobuf;
pub use relayout_onnx::write::Parts;
#[cfg(feature = "prost")]
pub use relayout_onnx::{prost, proto};
pub use relayout_target_api::hints::Size;
pub use relayout_target_api::{Numerics, Target};
pub use relayout_targets as targets;
pub use relayout_targets::{builtin as target, parse as parse_target};
pub use report::Report;
pub use request::Request;
pub use why::why;

/// What a target is made of: the trait, forms, offers, fragments, passes, costs.
pub mod target {
    pub use relayout_target_api::*;
}

/// The checker of results, which shares no code with the optimizer.
pub mod checker {
    pub use relayout_proof::*;
}

/// The solver: cost function networks, for those who pose or check one themselves.
pub mod solve {
    pub use relayout_solve::*;
}
