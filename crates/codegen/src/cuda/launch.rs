//! What an embedder needs to start a generated kernel.
//!
//! A launch is plain data: nothing here talks to a driver. All figures hold for one shape; for a kernel whose shape is given at
//! run time they are worked out anew for each shape, while the source stays.

use serde::{Deserialize, Serialize};

/// How a kernel moves its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KernelClass {
    /// One run of bytes, 16 at a time.
    Copy,
    /// Long rows change places; each thread has several words in flight.
    Rows,
    /// A matrix is transposed by square or oblong tiles through shared memory, its corners in registers.
    Tile,
    /// A group of short axes goes through shared memory, such that both sides see long runs.
    Packed,
    /// Each thread looks up where its elements come from.
    Gather,
}

impl KernelClass {
    /// The class in lower case, as it stands in kernel names and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Rows => "rows",
            Self::Tile => "tile",
            Self::Packed => "packed",
            Self::Gather => "gather",
        }
    }
}

/// A scalar that is passed to the kernel after the two pointers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Argument {
    /// Its name in the source.
    pub name: String,
    /// Its size: 4 or 8.
    pub bytes: u32,
    /// Its value, an unsigned integer.
    pub value: u64,
}

/// How to start a kernel, and what it moves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launch {
    /// What to compile for: the value of NVRTC's `--gpu-architecture`.
    pub arch: String,
    /// Blocks of the grid: x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block: [u32; 3],
    /// Shared memory that the source declares; none has to be asked for at launch.
    pub shared_bytes: u32,
    /// Alignment that both pointers must have, in bytes.
    pub alignment: u32,
    /// Width of the offsets in the kernel: 32 or 64.
    pub index_bits: u32,
    /// The source buffer has exactly this many bytes.
    pub source_bytes: u64,
    /// The destination buffer has exactly this many bytes, and each is written.
    pub destination_bytes: u64,
    /// Bytes read from memory plus bytes written to it, each counted once.
    pub moved_bytes: u64,
    /// What follows `const unsigned char* src, unsigned char* dst`, in order; empty where the shape is part of the source.
    pub arguments: Vec<Argument>,
}

/// A kernel in CUDA C++ and how to start it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CudaKernel {
    /// The `extern "C"` name of the function; equal names have equal sources.
    pub name: String,
    /// How it works.
    pub class: KernelClass,
    /// CUDA C++17 without includes: what NVRTC takes as it is.
    pub source: String,
    /// How to start it.
    pub launch: Launch,
}
