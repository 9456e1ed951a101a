//! What the kernels need of a vector register: loads by 16-byte lanes, interleaving inside of lanes, stores.
//!
//! One tile serves all element sizes. Take `G = 16 / E` registers, `E` bytes an element; lane `l` of register `k` holds 16
//! bytes of source row `l * G + k`. After `log2 G` rounds of interleaving register `k` with `k + G/2` the register `c` holds
//! column `c` of all rows, in order: a run of the destination. Nothing crosses a lane, so the wide registers cost no more
//! shuffles a byte than the narrow ones, and a machine with 16-byte registers runs the same code.
//!
//! The functions are `inline(always)`: they become part of a driver that has the instruction set switched on, and only there
//! may they be called.

use super::engine;
use super::job::Job;

/// A register of one or more 16-byte lanes.
///
/// # Safety
/// All functions may only be called where the instruction set of the implementation is available; pointers must be valid for
/// the bytes named.
pub(super) trait Vector: Copy {
    /// Bytes in the register, a multiple of 16.
    const BYTES: usize;

    /// Lane `l` gets the 16 bytes at `from + l * step`.
    unsafe fn lanes(from: *const u8, step: usize) -> Self;
    /// `BYTES` bytes in a row.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes `BYTES` bytes.
    unsafe fn store(self, to: *mut u8);
    /// Writes `BYTES` bytes past the caches. `to` is aligned to `BYTES`.
    unsafe fn stream(self, to: *mut u8);
    /// Elements of `E` bytes of both, in turn: of the low half of each lane, and of the high half.
    unsafe fn zip<const E: usize>(self, other: Self) -> (Self, Self);
}

/// The registers of an instruction set.
///
/// # Safety
/// As for [`Vector`].
pub(super) trait Registers: Copy {
    /// The widest.
    type Wide: Vector;
    /// At most 32 bytes.
    type Half: Vector;
    /// One lane.
    type Lane: Vector;

    /// The first `count` bytes at `from`, the rest of the lane anything; `count` is 1 to 16.
    unsafe fn load_part(from: *const u8, count: usize) -> Self::Lane;
    /// Writes the first `count` bytes, 1 to 16.
    unsafe fn store_part(lane: Self::Lane, to: *mut u8, count: usize);
    /// Asks for the line at `at`, which need not be valid.
    unsafe fn prefetch(at: *const u8);
    /// Asks for the line at `at` into the first cache.
    unsafe fn prefetch_near(at: *const u8);
    /// Asks for the line at `at`, to write to it.
    unsafe fn prefetch_owned(at: *const u8);
    /// Makes what was streamed visible before what is stored later.
    unsafe fn fence();

    /// [`engine::fill`]. Builds that are not optimized have a function of each instance ([`own_fill`]): inlined into one function, three
    /// times for each size of units, they take compilers several times as long.
    #[inline(always)]
    unsafe fn fill<const E: usize, const G: usize, const NT: bool>(
        job: &Job,
        extents: &[usize],
        src: *const u8,
        dst: *mut u8,
        ahead: usize,
    ) {
        // SAFETY: passed on.
        unsafe { engine::fill::<Self, E, G, NT>(job, extents, src, dst, ahead) }
    }

    /// Copies `count` bytes, 1 to 63.
    #[inline(always)]
    unsafe fn copy_short(from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: the pieces lie within `count` bytes from either pointer; the caller vouches for those.
        unsafe {
            if count >= 32 {
                let (first, second) = (Self::Lane::load(from), Self::Lane::load(from.add(16)));
                let (third, last) = (Self::Lane::load(from.add(count - 32)), Self::Lane::load(from.add(count - 16)));
                first.store(to);
                second.store(to.add(16));
                third.store(to.add(count - 32));
                last.store(to.add(count - 16));
            } else if count >= 16 {
                let (first, last) = (Self::Lane::load(from), Self::Lane::load(from.add(count - 16)));
                first.store(to);
                last.store(to.add(count - 16));
            } else {
                small_copy(from, to, count);
            }
        }
    }

    /// Interleaves `K` rows of elements of `E` bytes, or takes them apart; answers how many of `count` elements a row it did.
    ///
    /// Apart (`JOIN` false): row `k` of the destination, `pitch` bytes after the one before, gets element `k` of each group of
    /// `K` in the source. Together: the other way. With `NT` past the caches, where lines of the destination begin with the rows.
    #[inline(always)]
    unsafe fn interleave<const E: usize, const JOIN: bool, const NT: bool>(
        _from: *const u8,
        _to: *mut u8,
        _pitch: usize,
        _channels: usize,
        _count: usize,
    ) -> usize {
        0
    }
}

/// Copies 1 to 15 bytes by two overlapping words.
///
/// # Safety
/// Both pointers are valid for `count` bytes.
#[inline(always)]
pub(super) unsafe fn small_copy(from: *const u8, to: *mut u8, count: usize) {
    /// # Safety
    /// Both pointers are valid for `count` bytes, and `count` is at least the size of `T` and at most twice that.
    #[inline(always)]
    unsafe fn ends<T: Copy>(from: *const u8, to: *mut u8, count: usize) {
        let last = count - size_of::<T>();
        // SAFETY: both words lie within `count` bytes; unaligned accesses are used.
        unsafe {
            let (head, tail) = (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
            to.cast::<T>().write_unaligned(head);
            to.add(last).cast::<T>().write_unaligned(tail);
        }
    }
    // SAFETY: the sizes are those that `ends` asks for.
    unsafe {
        match count {
            8.. => ends::<u64>(from, to, count),
            4.. => ends::<u32>(from, to, count),
            2.. => ends::<u16>(from, to, count),
            1 => to.write(from.read()),
            0 => {}
        }
    }
}

/// A part of a lane by way of the stack, for instruction sets without masks.
///
/// # Safety
/// `from` is valid for `count` bytes, which are 1 to 16.
#[inline(always)]
pub(super) unsafe fn load_part_by_stack<L: Vector>(from: *const u8, count: usize) -> L {
    let mut room = [0_u8; 16];
    // SAFETY: the room has 16 bytes; the caller vouches for `from`.
    unsafe {
        if count == 16 {
            return L::load(from);
        }
        small_copy(from, room.as_mut_ptr(), count);
        L::load(room.as_ptr())
    }
}

/// Stores a part of a lane by way of the stack.
///
/// # Safety
/// `to` is valid for `count` bytes, which are 1 to 16.
#[inline(always)]
pub(super) unsafe fn store_part_by_stack<L: Vector>(lane: L, to: *mut u8, count: usize) {
    let mut room = [0_u8; 16];
    // SAFETY: the room has 16 bytes; the caller vouches for `to`.
    unsafe {
        if count == 16 {
            lane.store(to);
            return;
        }
        lane.store(room.as_mut_ptr());
        small_copy(room.as_ptr(), to, count);
    }
}

/// [`Registers::fill`] of a build that is not optimized: functions that have the instruction set switched on.
macro_rules! own_fill {
    ($($features:literal)?) => {
        #[cfg(debug_assertions)]
        #[inline(always)]
        unsafe fn fill<const E: usize, const G: usize, const NT: bool>(
            job: &Job,
            extents: &[usize],
            src: *const u8,
            dst: *mut u8,
            ahead: usize,
        ) {
            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            unsafe fn alone<R: Registers, const E: usize, const G: usize, const NT: bool>(
                job: &Job,
                extents: &[usize],
                src: *const u8,
                dst: *mut u8,
                ahead: usize,
            ) {
                // SAFETY: passed on.
                unsafe { crate::kernels::engine::fill::<R, E, G, NT>(job, extents, src, dst, ahead) }
            }
            // SAFETY: passed on; the caller vouches for the instruction set.
            unsafe { alone::<Self, E, G, NT>(job, extents, src, dst, ahead) }
        }
    };
}
pub(super) use own_fill;
