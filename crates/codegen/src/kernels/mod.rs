//! Kernels that carry out a movement.
//!
//! One driver ([`engine`]) over the registers of each instruction set ([`vector`]), loops from a small model ([`job`]), and the
//! portable kernel, which is safe, runs anywhere and is what the others are tested against.
//!
//! This is where the crate uses `unsafe`: loads and stores through pointers, and calls into functions compiled for an
//! instruction set. Everything is checked before the first pointer is made: that each unit of a movement lies within both
//! buffers when the kernel is made, the buffers' lengths when it is run. An [`Isa`] comes from detection only.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, clippy::inline_always, reason = "loads, stores and shuffles of an instruction set")]
mod avx512;
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code, reason = "asks the processor for its caches"))]
mod caches;
#[allow(unsafe_code, reason = "lends a caller's work to threads of a pool, which know no lifetimes")]
mod crew;
#[allow(unsafe_code, clippy::inline_always, reason = "pointers into buffers whose bounds the kernel checked")]
mod engine;
#[allow(unsafe_code, clippy::inline_always, reason = "pointers into buffers whose bounds the kernel checked")]
mod interleave;
mod isa;
mod job;
mod model;
mod movement;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code, clippy::inline_always, reason = "loads, stores and shuffles of an instruction set")]
mod neon;
mod portable;
#[allow(unsafe_code, reason = "hands parts of buffers to threads and to the functions of an instruction set")]
mod run;
#[cfg(test)]
mod tests;
#[allow(unsafe_code, clippy::inline_always, reason = "pointers into buffers whose bounds the kernel checked")]
mod tile;
#[allow(unsafe_code, clippy::inline_always, reason = "the interface of the instruction sets")]
mod vector;
#[allow(unsafe_code, clippy::inline_always, reason = "asks for lines of the instruction set's caches")]
mod walk;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, clippy::inline_always, reason = "loads, stores and shuffles of an instruction set")]
mod x86;

pub use isa::Isa;
use job::Tuning;
pub(crate) use movement::{Axis, Movement};
pub use run::Kernel;

use crate::{Error, Plan, Relayout};

/// Whether the data is in the caches, as far as the caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Hint {
    /// Unknown: taken to be in the caches where both sides fit.
    #[default]
    Auto,
    /// The source was just written, and the destination is read next: plain stores.
    Hot,
    /// The source is in memory, or the destination does not fit the caches: stores go past them.
    Cold,
}

/// How the rows of a plan find their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowForm {
    /// What the model of costs takes to be faster.
    #[default]
    Auto,
    /// Strides: loops over the axes of the plan.
    Strided,
    /// A list of rows, [`Gather`](crate::Gather), where the plan has one; strides where it has none.
    Gather,
}

/// How a movement is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Options {
    /// Whether the data is in the caches.
    pub hint: Hint,
    /// At most this many threads, the caller's included; 0 for as many as the pool has.
    pub threads: usize,
    /// The instruction set; `None` for the best there is.
    pub isa: Option<Isa>,
    /// How rows find their places.
    pub form: RowForm,
    /// The loops, where not the model's.
    pub(crate) tuning: Option<Tuning>,
}

impl Options {
    /// These options with another hint.
    #[must_use]
    pub fn hint(self, hint: Hint) -> Self {
        Self { hint, ..self }
    }

    /// These options with another number of threads.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// These options with another instruction set.
    #[must_use]
    pub fn isa(self, isa: Isa) -> Self {
        Self { isa: Some(isa), ..self }
    }

    /// These options with rows that find their places in this way.
    #[must_use]
    pub fn form(self, form: RowForm) -> Self {
        Self { form, ..self }
    }
}

/// Moves the tensor in `src` to `dst` as planned. Both buffers have exactly [`Plan::bytes`] bytes; every byte of `dst` is
/// written.
pub fn permute(src: &[u8], dst: &mut [u8], plan: &Plan) -> Result<(), Error> {
    permute_with(src, dst, plan, &Options::default())
}

/// Moves the tensor as [`permute`] does, as the options say.
pub fn permute_with(src: &[u8], dst: &mut [u8], plan: &Plan, options: &Options) -> Result<(), Error> {
    Kernel::new(plan, options).run(src, dst)
}

/// Moves a tensor from one order to another: `src` has exactly [`Relayout::from_bytes`] bytes and `dst`
/// [`Relayout::to_bytes`]; every byte of `dst` is written, padding included.
pub fn run_relayout(src: &[u8], dst: &mut [u8], relayout: &Relayout, options: &Options) -> Result<(), Error> {
    Kernel::between(relayout, options).run(src, dst)
}
