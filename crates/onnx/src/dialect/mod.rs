//! Ops of domain `relayout`: standard ops on operands that are stored in other layouts than ONNX's, and moves between layouts.
//!
//! Each is a function local to the model, with a body in standard ONNX: what inlines functions runs the file, what knows the
//! domain matches calls by name and never looks at a body. [`DialectOp`] is an op, [`Relayout`] a move; either tells how it is
//! called and its function. `docs/dialect.md` is the reference for readers of such files; [`markdown`] writes it.
//!
//! Invariants:
//! - a storage shape has one dim per digit of the layout, outermost first (`NCHW16c` of 20 channels: `[N, 2, H, W, 16]`);
//! - a body computes on slots: it neither crops nor refills padding slots, and it fits every shape;
//! - attributes and operands that list axes or entries per axis have ONNX's order, as on the standard op;
//! - functions of one operator set with the same name are the same, but that those of files with float16 may have Sums of one operand
//!   between moves (`halves.rs`), and that moves with a number in their name are the same only within a file.
//!
//! Absent: results beside the first (Indices of `MaxPool`, statistics of `BatchNormalization`), and names of functions for
//! layouts of more than 26 axes.

mod body;
mod digits;
mod error;
mod halves;
mod markdown;
mod op;
mod relayout;
mod spell;
mod table;
mod weights;

pub use error::DialectError;
pub(crate) use halves::part_moves;
pub use markdown::markdown;
pub use op::{DialectOp, Operand};
pub use relayout::{RELAYOUT, Relayout, is_move, numbered};
pub use table::ops;
pub use weights::canonical_weight;

/// The domain of the functions.
pub const DOMAIN: &str = "relayout";

/// The version of the domain that a model with such functions imports.
pub const VERSION: i64 = 1;

/// The first IR version of files with functions.
pub const FIRST_IR_VERSION: i64 = 8;

/// The first operator set that bodies are written in; moves that change slots need a later one.
pub const FIRST_OPSET: i64 = 7;
