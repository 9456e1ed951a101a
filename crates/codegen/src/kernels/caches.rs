//! The caches of this machine, as far as the choice of loops looks at them.

use std::sync::OnceLock;

use super::Movement;
use super::job::LINE;

/// What the loops are fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caches {
    /// Bytes of a way of the first cache: addresses a multiple of it apart share a set.
    pub(super) way_bytes: usize,
    /// Lines that a set of the first cache holds.
    pub(super) ways: usize,
    /// Bytes of the last cache.
    pub(super) last_bytes: usize,
}

/// Those of the usual machines.
const USUAL: Caches = Caches { way_bytes: 4096, ways: 8, last_bytes: MOST_BYTES };

/// Most bytes of a last cache that are counted: cores share the large ones.
const MOST_BYTES: usize = 32 << 20;

impl Caches {
    /// Those that the loops of registers which fill a `whole` line were fitted to, and for others those of this machine.
    pub(super) fn of(whole: bool) -> Self {
        static HOST: OnceLock<Caches> = OnceLock::new();
        if whole { USUAL } else { *HOST.get_or_init(|| fitted(&host())) }
    }

    /// Whether the lines of the source for `tiles` tiles along a run of the destination are more than their sets have room for.
    pub(super) fn overflow(&self, movement: &Movement, tiles: usize) -> bool {
        let Some(last) = movement.axes.last() else { return false };
        let rows = tiles * LINE / movement.unit.clamp(1, LINE);
        let step = (1_usize << last.from.trailing_zeros().min(self.way_bytes.trailing_zeros())).max(LINE);
        rows > self.ways * (self.way_bytes / step)
    }
}

/// A cache for data, as the machine describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cache {
    level: u32,
    ways: usize,
    /// All ways together.
    bytes: usize,
}

/// What follows from a machine's caches; the usual where it names none.
fn fitted(caches: &[Cache]) -> Caches {
    let mut fitted = USUAL;
    if let Some(first) = caches.iter().find(|cache| cache.level == 1)
        && first.ways > 0
        && (first.bytes / first.ways).is_power_of_two()
    {
        (fitted.ways, fitted.way_bytes) = (first.ways, first.bytes / first.ways);
    }
    if let Some(last) = caches.iter().filter(|cache| cache.level > 1).max_by_key(|cache| cache.level) {
        fitted.last_bytes = last.bytes.min(MOST_BYTES);
    }
    fitted
}

/// The caches for data of this machine.
#[cfg(target_arch = "x86_64")]
fn host() -> Vec<Cache> {
    // AMD's list and Intel's have the same form.
    let lists = [(0x8000_0000, 0x8000_001d), (0, 4)];
    // Miri knows no `cpuid`.
    let known = |&(first, leaf): &(u32, u32)| cfg!(not(miri)) && cpuid(first, 0)[0] >= leaf;
    lists
        .iter()
        .filter(|list| known(list))
        .map(|&(_, leaf)| listed(|index| cpuid(leaf, index)))
        .find(|all| !all.is_empty())
        .unwrap_or_default()
}

#[cfg(not(target_arch = "x86_64"))]
fn host() -> Vec<Cache> {
    Vec::new()
}

/// The registers `eax` to `edx`.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "the intrinsic is safe in newer versions of Rust")]
fn cpuid(leaf: u32, index: u32) -> [u32; 4] {
    // SAFETY: every x86-64 machine has the instruction.
    let found = unsafe { core::arch::x86_64::__cpuid_count(leaf, index) };
    [found.eax, found.ebx, found.ecx, found.edx]
}

/// The caches of a list that ends with one of no kind.
#[cfg(any(target_arch = "x86_64", test))]
fn listed(entry: impl Fn(u32) -> [u32; 4]) -> Vec<Cache> {
    const DATA: u32 = 1;
    const INSTRUCTIONS: u32 = 2;
    const UNIFIED: u32 = 3;
    let kinds = (0..16).map(entry).take_while(|entry| (DATA..=UNIFIED).contains(&(entry[0] & 0x1f)));
    kinds
        .filter(|entry| entry[0] & 0x1f != INSTRUCTIONS)
        .map(|[kind, shape, sets, _]| {
            let field = |shift: u32, bits: u32| ((shape >> shift) & ((1 << bits) - 1)) as usize + 1;
            let (line, parts, ways) = (field(0, 12), field(12, 10), field(22, 10));
            Cache { level: (kind >> 5) & 7, ways, bytes: line * parts * ways * (sets as usize + 1) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Cache, Caches, USUAL, fitted, listed};
    use crate::kernels::Movement;
    use crate::plan;

    /// What a Zen 3 machine answers: 32 KiB of data, 32 KiB of instructions, 512 KiB, 32 MiB.
    const ZEN_3: [[u32; 4]; 4] = [
        [0x0000_4121, 0x01c0_003f, 63, 0],
        [0x0000_4122, 0x01c0_003f, 63, 0],
        [0x0000_4143, 0x01c0_003f, 1023, 2],
        [0x0003_c163, 0x03c0_003f, 32767, 1],
    ];

    #[test]
    fn a_list_of_caches_is_read_without_those_of_instructions() {
        let caches = listed(|index| ZEN_3.get(index as usize).copied().unwrap_or_default());
        let cache = |level, ways, bytes| Cache { level, ways, bytes };
        assert_eq!(caches, [cache(1, 8, 32 << 10), cache(2, 8, 512 << 10), cache(3, 16, 32 << 20)]);
        assert_eq!(fitted(&caches), USUAL);
    }

    #[test]
    fn what_a_machine_does_not_say_is_taken_to_be_usual() {
        assert_eq!(fitted(&[]), USUAL);
        // A laptop: 48 KiB in 12 ways, and 6 MiB that cores share.
        let laptop = [Cache { level: 1, ways: 12, bytes: 48 << 10 }, Cache { level: 3, ways: 12, bytes: 6 << 20 }];
        assert_eq!(fitted(&laptop), Caches { way_bytes: 4096, ways: 12, last_bytes: 6 << 20 });
        // No power of two, and a machine without ways.
        for ways in [0, 5] {
            let odd = [Cache { level: 1, ways, bytes: 48 << 10 }];
            assert_eq!(fitted(&odd), USUAL);
        }
    }

    #[test]
    fn rows_that_share_sets_overflow_them() {
        let overflow = |columns: usize, elem: usize, tiles: usize| {
            let plan = plan(&[2, 300, columns], &[0, 2, 1], elem).expect("a permutation");
            USUAL.overflow(&Movement::of(&plan).expect("something moves"), tiles)
        };
        // 16 rows of 1 KiB: 4 sets of 8 lines. Of 2 KiB: 2 sets. Of 4 KiB: one.
        assert!(!overflow(256, 4, 1) && !overflow(256, 4, 2) && overflow(256, 4, 3));
        assert!(!overflow(512, 4, 1) && overflow(512, 4, 2));
        assert!(overflow(1024, 4, 1) && !overflow(1025, 4, 3));
        // 64 rows of 512 B.
        assert!(!overflow(512, 1, 1) && overflow(512, 1, 2));
    }
}
