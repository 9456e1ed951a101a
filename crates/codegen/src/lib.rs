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
//! A permutation is planned once ([`plan()`]) and run often ([`permute`], [`permute_nibbles`]). The plan is the shape with
//! everything gone that does not matter for the movement: axes of extent 1, neighbours that travel together, and the innermost
//! axis where it fits into one move. All kernels work from it; the portable one is safe Rust, runs anywhere, and is what the
//! others are tested against.
//!
//! Where whole rows change places, as in a channel shuffle, the plan is also a [`Gather`]: a list that says which row comes from where.
//!
//! A [`relayout()`] moves between [`Order`]s of digits instead: blocked, padded, with segments. A [`StridedCopy`] moves between two
//! views of storages, such as a slice and its place in a concatenation. A [`Kernel`] is one of these with its loops chosen for this
//! machine and for data in or out of the caches; [`View`] is the typed way in, [`field`] tensors that a program indexes without
//! knowing how they lie, and [`mod@bench`] the stopwatch.
//!
//! What is contiguous, the same storage, free or a copy is answered by [`StorageView`] and [`FreeOrCopy`] of the layout algebra, here
//! as in the optimizer. Buffers are plain bytes, of any alignment. The crate knows nothing of graphs, names or files.

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
pub use nibbles::permute_nibbles;
pub use order::{Digit, Order, Segment};
pub use plan::{Class, Plan, plan};
pub use relayout::{Relayout, relayout};
pub use relayout_ir::layout::storage::{FreeOrCopy, StorageId, StorageView};
pub use typed::View;
