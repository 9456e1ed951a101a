//! Which instruction sets this machine has.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::OnceLock;

/// An instruction set that this machine has: only detection makes one, so kernels may rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Isa(pub(super) Kind);

/// The instruction sets with kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Isa {
    /// Those of this machine, the fastest first. The portable one, which is none in particular, is always the last.
    #[must_use]
    pub fn available() -> &'static [Self] {
        static FOUND: OnceLock<Vec<Isa>> = OnceLock::new();
        FOUND.get_or_init(|| {
            let mut found = Vec::new();
            // Of the vector instructions Miri knows those of SSE2; the loops over the registers are the same for all.
            #[cfg(target_arch = "x86_64")]
            {
                if cfg!(not(miri)) {
                    if is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512dq")
                        && is_x86_feature_detected!("avx512vl")
                        && is_x86_feature_detected!("avx512vbmi")
                        && bit_manipulation()
                    {
                        found.push(Self(Kind::Avx512));
                    }
                    if bit_manipulation() {
                        found.push(Self(Kind::Avx2));
                    }
                }
                found.push(Self(Kind::Sse2));
            }
            #[cfg(target_arch = "aarch64")]
            if cfg!(not(miri)) {
                found.push(Self(Kind::Neon));
            }
            found.push(Self(Kind::Portable));
            found
        })
    }

    /// The fastest of this machine.
    #[must_use]
    pub fn best() -> Self {
        Self::available().first().copied().unwrap_or(Self(Kind::Portable))
    }

    /// The one of this name, if this machine has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::available().iter().copied().find(|isa| isa.name() == name)
    }

    /// Whether a register of it fills a line of the caches.
    pub(super) fn has_whole_lines(self) -> bool {
        self.name() == "avx512"
    }

    /// Its name: `avx512`, `avx2`, `sse2`, `neon` or `portable`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Sse2 => "sse2",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            Kind::Portable => "portable",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// AVX2 and what came with it.
#[cfg(target_arch = "x86_64")]
fn bit_manipulation() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
