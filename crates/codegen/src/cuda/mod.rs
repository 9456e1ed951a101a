//! CUDA C++ for a move, and how to launch it.
//!
//! [`generate`] takes a [`Plan`], [`generate_blocked`] a [`BlockedPlan`]; both give a [`CudaKernel`]: a name, a self-contained source that
//! NVRTC compiles as it is, and a [`Launch`]. The kernel's signature is `(const unsigned char* src, unsigned char* dst, ...)`, with the
//! launch's arguments after the pointers. The classes are in the files of their names:
//!
//! | class | for | how |
//! |---|---|---|
//! | copy | nothing changes its order | 16-byte words, 4 in flight a thread |
//! | rows | rows of 128 bytes and more change places | the same, each word's place by literal divisions |
//! | tile | the innermost axis changes, both runs long or a whole block | 64x64 fp32, packed words for 8 and 16 bits, swizzled |
//! | packed | short rows or axes | a box through shared memory, long runs on both sides |
//! | gather | the rest, and little ones | elements looked up, put together to wide words |
//!
//! With [`Shape::Literal`] every extent is a number in the source: divisions become multiplications, guards go where tiles fit. With
//! [`Shape::RunTime`] extents, strides and the divisors' multipliers are arguments, and the source depends only on how vectors and
//! boxes were chosen: *kernels of equal names have equal sources*, so that an embedder with dynamic shapes generates for each shape
//! and compiles what it has not seen. Axes that lie whole inside a box stay literals.
//!
//! Sources are deterministic. They contain no inline PTX and reach memory through four macros, so that the same text can be run and
//! watched on a CPU. What is absent: a driver, a compiler, and any measurement; nothing here needs a GPU.

mod blocked;
mod divide;
mod error;
mod launch;
mod linear;
mod model;
mod movement;
mod oneflow;
mod packed;
mod text;
mod tile;

pub use blocked::{BlockedPlan, Direction};
pub use error::CudaError;
pub use launch::{Argument, CudaKernel, KernelClass, Launch};

use movement::Movement;
use packed::Packed;
use serde::{Deserialize, Serialize};
use text::Writer;
use tile::Tile;

use crate::Plan;

/// Rows from which on both sides are read and written in whole lines without help.
const LONG_ROW_BYTES: usize = 128;

/// Blocks of a grid, and counts that are held in 32 bits, are below this.
const COUNT_LIMIT: usize = 1 << 31;

/// The compute capability to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Arch {
    /// A100.
    Sm80,
    /// RTX 30 series, A10.
    Sm86,
    /// RTX 40 series, L4, L40.
    Sm89,
    /// H100, H200.
    Sm90,
    /// B200, GB200.
    Sm100,
}

impl Arch {
    /// All of them, the oldest first.
    pub const ALL: &'static [Self] = &[Self::Sm80, Self::Sm86, Self::Sm89, Self::Sm90, Self::Sm100];

    /// As NVRTC's `--gpu-architecture` takes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sm80 => "sm_80",
            Self::Sm86 => "sm_86",
            Self::Sm89 => "sm_89",
            Self::Sm90 => "sm_90",
            Self::Sm100 => "sm_100",
        }
    }
}

/// Where the shape stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// In the source, as numbers.
    Literal,
    /// In the launch's arguments.
    RunTime,
}

/// Whose scheme a kernel follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// What the module's text describes.
    Ours,
    /// `OneFlow`'s, for comparison; its shape is always an argument.
    OneFlow,
}

/// The width of offsets in a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// 32 bits where both buffers have less than 2^31 bytes, else 64.
    BySize,
    /// 64 bits.
    Wide,
}

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CudaOptions {
    /// What the launch says to compile for.
    pub arch: Arch,
    /// Where the shape stands.
    pub shape: Shape,
    /// Alignment of both buffers in bytes, and with it the widest access: 1, 2, 4, 8 or 16. What the driver allocates has more.
    pub alignment: usize,
    /// Width of offsets.
    pub index: Index,
    /// Whose scheme.
    pub variant: Variant,
    /// The class, or `None` to have it chosen.
    pub class: Option<KernelClass>,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            arch: Arch::Sm90,
            shape: Shape::Literal,
            alignment: 16,
            index: Index::BySize,
            variant: Variant::Ours,
            class: None,
        }
    }
}

/// A kernel before its frame: what a class gives back.
struct Draft {
    class: KernelClass,
    /// Letters and digits that tell the choices of the class apart.
    form: String,
    blocks: usize,
    threads: usize,
    shared: usize,
    out: Writer,
    /// Functions that stand before the kernel.
    inside: String,
}

/// The kernel for a plan. An empty tensor and one too large for a grid are refused.
pub fn generate(plan: &Plan, options: &CudaOptions) -> Result<CudaKernel, CudaError> {
    checked(options)?;
    finish(&Movement::from_plan(plan, options.alignment)?, options)
}

/// The kernel for channel blocks; refused like [`generate`], and where the block makes no sense.
pub fn generate_blocked(plan: &BlockedPlan, options: &CudaOptions) -> Result<CudaKernel, CudaError> {
    checked(options)?;
    finish(&Movement::from_blocked(plan, options.alignment)?, options)
}

fn checked(options: &CudaOptions) -> Result<(), CudaError> {
    if options.alignment.is_power_of_two() && options.alignment <= 16 {
        Ok(())
    } else {
        Err(CudaError::Alignment { bytes: options.alignment })
    }
}

/// Chooses, drafts and frames.
fn finish(movement: &Movement, options: &CudaOptions) -> Result<CudaKernel, CudaError> {
    let largest = movement.source_bytes.max(movement.destination_bytes);
    let wide = options.index == Index::Wide || largest >= COUNT_LIMIT;
    if let Some(axis) = movement.axes.iter().find(|axis| axis.extent >= COUNT_LIMIT) {
        return Err(CudaError::TooLarge { count: axis.extent as u128 });
    }
    let shape = if options.variant == Variant::OneFlow { Shape::RunTime } else { options.shape };
    let out = Writer::new(shape, wide);
    let draft = match options.variant {
        Variant::Ours => ours(movement, options, out)?,
        Variant::OneFlow => oneflow::draft(movement, options.alignment, out)?,
    };
    if draft.blocks >= COUNT_LIMIT {
        return Err(CudaError::TooLarge { count: draft.blocks as u128 });
    }
    let name = name(movement, options, &draft, shape, wide);
    let head = match shape {
        Shape::Literal => format!("{}: {}", draft.class.as_str(), movement.text),
        Shape::RunTime => format!("{}: the shape is in the arguments", draft.class.as_str()),
    };
    let Draft { class, blocks, threads, shared, out, inside, .. } = draft;
    let (source, arguments) = out.finish(&name, &head, &inside, threads);
    let (source_bytes, destination_bytes) = (movement.source_bytes as u64, movement.destination_bytes as u64);
    let launch = Launch {
        arch: options.arch.as_str().to_owned(),
        grid: [blocks as u32, 1, 1],
        block: [threads as u32, 1, 1],
        shared_bytes: shared as u32,
        alignment: options.alignment as u32,
        index_bits: if wide { 64 } else { 32 },
        source_bytes,
        destination_bytes,
        moved_bytes: source_bytes + destination_bytes,
        arguments,
    };
    Ok(CudaKernel { name, class, source, launch })
}

/// A name that says all that the source depends on.
fn name(movement: &Movement, options: &CudaOptions, draft: &Draft, shape: Shape, wide: bool) -> String {
    let family = if options.variant == Variant::OneFlow { "oneflow" } else { "relayout" };
    let extents: Vec<String> = movement.axes.iter().map(|axis| axis.extent.to_string()).collect();
    let extents = match shape {
        Shape::RunTime => format!("rank{}", extents.len()),
        Shape::Literal if extents.is_empty() => movement.source_bytes.to_string(),
        Shape::Literal => extents.join("x"),
    };
    let crop = match (movement.crop, shape) {
        (None, _) => String::new(),
        (Some(crop), Shape::RunTime) => format!("_cut{}_{}", crop.outer, crop.inner),
        (Some(crop), Shape::Literal) => format!("_cut{}", crop.limit),
    };
    let index = if wide { "_i64" } else { "" };
    let tag = if movement.tag.is_empty() { String::new() } else { format!("_{}", movement.tag) };
    let bits = 8 * movement.elem;
    format!("{family}_{}_b{bits}_{extents}{tag}{crop}_{}{index}", draft.class.as_str(), draft.form)
}

/// The class for a movement, or the one that was asked for.
fn ours(movement: &Movement, options: &CudaOptions, out: Writer) -> Result<Draft, CudaError> {
    let alignment = options.alignment;
    let refused = |class| CudaError::Class { class };
    if movement.axes.is_empty() {
        return match options.class {
            None | Some(KernelClass::Copy) => Ok(linear::copy(movement, alignment, out)),
            Some(class) => Err(refused(class)),
        };
    }
    let tile = Tile::new(movement, alignment);
    let packed = || Packed::new(movement, alignment);
    let class = options.class.unwrap_or_else(|| choose(movement, tile.as_ref()));
    match class {
        KernelClass::Rows if movement.crop.is_none() => Ok(linear::lookup(movement, alignment, false, out)),
        KernelClass::Gather => Ok(linear::lookup(movement, alignment, true, out)),
        KernelClass::Tile => Ok(tile::draft(movement, &tile.ok_or(refused(class))?, out)),
        KernelClass::Packed => Ok(packed::draft(movement, &packed().ok_or(refused(class))?, out)),
        KernelClass::Rows | KernelClass::Copy => Err(refused(class)),
    }
}

/// Rows that are long; else tiles, unless an axis is too short to fill them and packing can do better; a gather for crumbs.
fn choose(movement: &Movement, tile: Option<&Tile>) -> KernelClass {
    const CRUMBS_BYTES: usize = 2048;
    let keeps = movement.axes.last().filter(|axis| axis.from == axis.to);
    if let Some(row) = keeps
        && movement.crop.is_none()
        && row.extent * movement.elem >= LONG_ROW_BYTES
    {
        return KernelClass::Rows;
    }
    if movement.destination_bytes < CRUMBS_BYTES {
        return KernelClass::Gather;
    }
    let Some(tile) = tile else { return KernelClass::Packed };
    let (down, across) = (movement.axes[tile.row_axis].extent, movement.axes[tile.column_axis].extent);
    let full = tile.use_per_mille(movement) >= 600;
    let long = down.min(across) * movement.elem.min(4) >= LONG_ROW_BYTES / 2;
    if full && (long || tile.is_wide()) { KernelClass::Tile } else { KernelClass::Packed }
}

/// The widest access in bytes that `alignment` and all of `multiples` allow.
fn vector_bytes(alignment: usize, multiples: impl Iterator<Item = usize>) -> usize {
    multiples.fold(alignment, |bytes, by| if by == 0 { bytes } else { bytes.min(1 << by.trailing_zeros()) })
}
