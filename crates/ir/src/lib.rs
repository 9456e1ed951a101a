//! The base of relayout: operator graph, layout algebra, op signatures.
//!
//! ```
//! use relayout_ir::layout::Layout;
//!
//! let nhwc = Layout::permutation(&[0, 2, 3, 1]).unwrap();
//! assert_eq!(nhwc.to_string(), "NHWC");
//! // Channels in blocks of 16: five factors over four axes.
//! let blocked: Layout = "NCHW16c".parse()?;
//! assert_eq!((blocked.rank(), blocked.factors().len()), (4, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Shape is logical, layout is physical.** A value has a logical shape in ONNX's axis order and never loses it. Its layout says
//! how those axes lie in memory. No pass permutes a shape, so an axis number always means the same axis. Only the exporter writes
//! physical shapes.
//!
//! **Views are metadata, [`Op::Relayout`](graph::Op::Relayout) is the only data movement.** A Transpose renames axes, a Reshape
//! splits and joins them. If the layout of the result is the view of the operand's layout, neither moves a byte. A Transpose
//! whose result has another layout is a move, as in ONNX.
//!
//! **One signature per op.** See [`op`] for the table and [`form`] for what follows from a signature.
//!
//! This crate knows no file format and does no I/O.

/// The layout algebra, a crate of its own.
pub use relayout_layout as layout;
pub use relayout_layout::{dim, dtype};

pub mod attr;
pub mod build;
pub mod constant;
pub mod form;
pub mod graph;
pub mod model;
pub mod op;
pub mod patch;
pub mod perm;
pub mod raised;
pub mod storage;
pub mod text;
pub mod types;
pub mod verify;
