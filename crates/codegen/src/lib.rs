//! Moving data from one layout to another: plans, and the kernels that carry them out.
//!
//! ```
//! use relayout_codegen::{View, permute, plan};
//!
//! // Channels first to channels last, of a typed slice.
//! let image: Vec<f32> = (0..24).map(|i| i as f32).collect();
//! let image = View::new(&[1, 2, 3, 4], &image)?;
//! assert_eq!(image.permuted(&[0, 2, 3, 1])?[..4], [0.0, 12.0, 1.0, 13.0]);
//! // The same movement of bytes, planned apart from the data.
//! let plan = plan(&[2, 3], &[1, 0], 1)?;
//! let mut turned = [0; 6];
//! permute(&[1, 2, 3, 4, 5, 6], &mut turned, &plan)?;
//! assert_eq!(turned, [1, 4, 2, 5, 3, 6]);
//! # Ok::<(), relayout_codegen::Error>(())
//! ```
//!
//! A permutation is planned once ([`plan()`]) and run often ([`permute`], [`permute_nibbles`], [`permute_crumbs`]). The plan is the shape reduced to
//! what matters for the movement: axes of extent 1 are dropped, neighbours that stay neighbours are merged, and an innermost axis
//! that fits into one move becomes the unit. All kernels work from the plan. The portable kernel is safe Rust and runs anywhere;
//! the others are tested against it.
//!
//! If whole rows change places, as in a channel shuffle, the plan can also be a [`Gather`]: a list that says which row comes from
//! where.
//!
//! What else there is:
//!
//! - [`relayout()`] moves between [`Order`]s of digits: blocked, padded, with segments.
//! - [`StridedCopy`] moves between two views of storages, such as a slice and its place in a concatenation.
//! - [`Kernel`] is one of these movements, with its loops chosen for this machine and for data in or out of the caches.
//! - [`View`] is a typed view, and [`field`] has tensors that a program indexes without knowing how they lie.
//! - [`mod@bench`] measures times.
//!
//! [`StorageView`] and [`FreeOrCopy`] of the layout algebra decide, here as in the optimizer, what is contiguous, what shares a
//! storage, what is free and what is a copy. Buffers are plain bytes, of any alignment. The crate knows nothing of graphs, names
//! or files.

pub mod bench;
mod copy;
pub mod cuda;
mod error;
pub mod field;
mod gather;
mod kernels;
mod nibbles;
mod order;
mod pattern;
mod plan;
mod relayout;
mod typed;

pub use copy::StridedCopy;
pub use error::Error;
pub use gather::Gather;
pub use kernels::{Hint, Isa, Kernel, Options, RowForm, permute, permute_with, run_relayout};
pub use nibbles::{permute_crumbs, permute_nibbles};
pub use order::{Digit, Order, Segment};
pub use plan::{Class, Plan, plan};
pub use relayout::{Relayout, relayout};
pub use relayout_layout::storage::{FreeOrCopy, StorageId, StorageView};
pub use typed::View;
