//! Memory is counted, so that no input makes more of it than its size allows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The allocator of every target: that of the system, with a count.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are allocated now, of all threads.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The most that may be. `usize::MAX` outside of [`bounded`].
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Somebody is about to be told, which needs memory itself.
static BROKEN: AtomicBool = AtomicBool::new(false);

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    // A panic is reported with a stack, which takes memory of its own.
    if live > LIMIT.load(Relaxed) && !std::thread::panicking() && !BROKEN.swap(true, Relaxed) {
        // The message and the stack say who asked. The engine catches the abort and keeps the input.
        eprintln!("more memory than the bound allows: {live} bytes after {bytes} more were asked for");
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }
}

// SAFETY: all work is the system allocator's; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both exist while the bytes are copied, unless the system grows in place; what counts is the larger one.
        if size > layout.size() {
            add(size - layout.size());
        } else {
            LIVE.fetch_sub(layout.size() - size, Relaxed);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// What an input may need: `per_byte` bytes for each of its bytes, and `free` bytes in any case.
pub struct Bound {
    pub per_byte: usize,
    pub free: usize,
}

/// Runs `work` on an input of `length` bytes. Ends the process if it has more memory allocated at any time than the bound allows,
/// beyond what there was before.
pub fn bounded<T>(bound: &Bound, length: usize, work: impl FnOnce() -> T) -> T {
    LIMIT.store(LIVE.load(Relaxed) + bound.free + bound.per_byte * length, Relaxed);
    let done = work();
    LIMIT.store(usize::MAX, Relaxed);
    done
}
