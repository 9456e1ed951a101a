//! Moves: planned once and run often, or both in one call.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::rc::Rc;

use relayout::codegen::{Hint, Kernel, Options, plan, relayout};

use crate::border::{self, give, guarded, take_back};
use crate::layouts::order;
use crate::{CacheHint, Status};

/// Plans that a thread keeps, the last used first: callers of `relayout_permute` repeat themselves.
const KEPT: usize = 8;

/// What a kept kernel was made for.
#[derive(PartialEq, Eq)]
struct Request {
    elem_size: usize,
    shape: Vec<usize>,
    perm: Vec<usize>,
    hint: Hint,
    threads: usize,
}

/// A request with its kernel.
struct Kept {
    request: Request,
    kernel: Rc<Kernel>,
    bytes: usize,
}

thread_local! {
    static KERNELS: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// A planned move. Any number of threads may run it at the same time.
pub struct RelayoutPlan {
    kernel: Kernel,
    source_bytes: usize,
    bytes: usize,
}

/// Permutes a dense row-major tensor: axis `i` of the destination is axis `perm[i]` of the source.
///
/// `shape` is the source's and has `rank` extents, as `perm` has. `threads` counts the caller; 0 is as many as there are
/// processors. Whether data is in the caches is guessed from the size. Answers 0, or another `enum relayout_status`; then
/// nothing was written.
///
/// # Safety
/// `shape` and `perm` are valid for `rank` numbers, `src` for reading and `dst` for writing as many bytes as the tensor has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_permute(
    src: *const c_void,
    dst: *mut c_void,
    elem_size: usize,
    rank: usize,
    shape: *const usize,
    perm: *const usize,
    threads: usize,
) -> c_int {
    // SAFETY: passed on.
    unsafe { permute_hinted(src, dst, elem_size, rank, shape, perm, threads, Hint::Auto) }
}

/// `relayout_permute` for a source that was just written and a destination that is read next: all in the caches.
///
/// # Safety
/// As for `relayout_permute`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_permute_hot(
    src: *const c_void,
    dst: *mut c_void,
    elem_size: usize,
    rank: usize,
    shape: *const usize,
    perm: *const usize,
    threads: usize,
) -> c_int {
    // SAFETY: passed on.
    unsafe { permute_hinted(src, dst, elem_size, rank, shape, perm, threads, Hint::Hot) }
}

/// `relayout_permute` for a source in memory: stores go past the caches.
///
/// # Safety
/// As for `relayout_permute`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_permute_cold(
    src: *const c_void,
    dst: *mut c_void,
    elem_size: usize,
    rank: usize,
    shape: *const usize,
    perm: *const usize,
    threads: usize,
) -> c_int {
    // SAFETY: passed on.
    unsafe { permute_hinted(src, dst, elem_size, rank, shape, perm, threads, Hint::Cold) }
}

/// # Safety
/// As for [`relayout_permute`].
#[allow(clippy::too_many_arguments, reason = "the arguments of the C functions and the hint")]
unsafe fn permute_hinted(
    src: *const c_void,
    dst: *mut c_void,
    elem_size: usize,
    rank: usize,
    shape: *const usize,
    perm: *const usize,
    threads: usize,
    hint: Hint,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for both lists.
        let (shape, perm) = unsafe { (numbers(shape, rank)?, numbers(perm, rank)?) };
        let (kernel, bytes) = kept(elem_size, shape, perm, hint, threads)?;
        // SAFETY: the caller vouches for as many bytes as the tensor has.
        unsafe { run(&kernel, bytes, bytes, src, dst) }
    })
}

/// Plans a permutation, to be run by `relayout_plan_run` and freed by `relayout_plan_free`. `hint` is an
/// `enum relayout_hint`.
/// Writes the plan to `out` and answers 0, or writes null and answers why not.
///
/// # Safety
/// `shape` and `perm` are valid for `rank` numbers, `out` for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_new(
    elem_size: usize,
    rank: usize,
    shape: *const usize,
    perm: *const usize,
    threads: usize,
    hint: c_int,
    out: *mut *mut RelayoutPlan,
) -> c_int {
    let make = |options: &Options| {
        // SAFETY: the caller vouches for both lists.
        let (shape, perm) = unsafe { (numbers(shape, rank)?, numbers(perm, rank)?) };
        let plan = plan(shape, perm, elem_size)?;
        let kernel = Kernel::new(&plan, options);
        Ok(RelayoutPlan { kernel, source_bytes: plan.bytes(), bytes: plan.bytes() })
    };
    // SAFETY: the caller vouches for it.
    unsafe { handed_out(out, threads, hint, make) }
}

/// Plans a move from one layout to another of a tensor with the logical extents `shape`, which are in the order of the letters:
/// from `NCHW` to `NHWC` they are N, C, H, W. Layouts are spelled as oneDNN, TVM and MegEngine do, or digit by digit:
/// `NCHW16c`, `nChw16c`, `aBcd16b`, `NCHW4`, `OIHW16i16o`, `N C/16 H W C%16`.
///
/// A last block that is not full is padded: with zeros in the destination, ignored in the source. So the two buffers differ in
/// size: `relayout_plan_source_bytes` and `relayout_plan_bytes`. `threads` and `hint` are those of `relayout_plan_new`.
/// Writes the plan to `out` and answers 0, or writes null and answers why not.
///
/// # Safety
/// `shape` is valid for `rank` numbers, `from` and `to` are strings that end with a 0, `out` is valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_new_layouts(
    elem_size: usize,
    rank: usize,
    shape: *const usize,
    from: *const c_char,
    to: *const c_char,
    threads: usize,
    hint: c_int,
    out: *mut *mut RelayoutPlan,
) -> c_int {
    let make = |options: &Options| {
        // SAFETY: the caller vouches for the list and for both strings.
        let (shape, from, to) = unsafe { (numbers(shape, rank)?, spelled(from)?, spelled(to)?) };
        if elem_size == 0 || elem_size > isize::MAX as usize {
            return Err(Status::BadSize);
        }
        let (from, to) = (order(from, shape)?, order(to, shape)?);
        let mut pad = Vec::new();
        pad.try_reserve_exact(elem_size).map_err(|_| Status::BadSize)?;
        pad.resize(elem_size, 0);
        let planned = relayout(shape, &from, &to, &pad)?;
        let kernel = Kernel::between(&planned, options);
        Ok(RelayoutPlan { kernel, source_bytes: planned.from_bytes(), bytes: planned.to_bytes() })
    };
    // SAFETY: the caller vouches for it.
    unsafe { handed_out(out, threads, hint, make) }
}

/// Makes a plan with these threads and this hint, and writes it to `out`; or writes null and answers why not.
///
/// # Safety
/// `out` is null or valid for writing a pointer.
unsafe fn handed_out(
    out: *mut *mut RelayoutPlan,
    threads: usize,
    hint: c_int,
    make: impl FnOnce(&Options) -> Result<RelayoutPlan, Status>,
) -> c_int {
    guarded(|| {
        if out.is_null() {
            return Err(Status::Null);
        }
        // SAFETY: the caller vouches for it, and it is not null.
        unsafe { out.write(std::ptr::null_mut()) };
        let options = Options::default().hint(hinted(hint)?).threads(threads);
        let made = make(&options)?;
        // SAFETY: as above.
        unsafe { give(out, made) };
        Ok(())
    })
}

/// Bytes that a plan reads, padding included; 0 for null.
///
/// # Safety
/// `plan` is null or from `relayout_plan_new` or `relayout_plan_new_layouts` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_source_bytes(plan: *const RelayoutPlan) -> usize {
    // SAFETY: the caller vouches for it.
    unsafe { plan.as_ref() }.map_or(0, |plan| plan.source_bytes)
}

/// Bytes that a plan writes, padding included, which for a permutation is what it reads; 0 for null.
///
/// # Safety
/// `plan` is null or from `relayout_plan_new` or `relayout_plan_new_layouts` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_bytes(plan: *const RelayoutPlan) -> usize {
    // SAFETY: the caller vouches for it.
    unsafe { plan.as_ref() }.map_or(0, |plan| plan.bytes)
}

/// Runs a plan.
///
/// # Safety
/// `plan` is from `relayout_plan_new` or `relayout_plan_new_layouts` and not freed; `src` is valid for
/// `relayout_plan_source_bytes`, `dst` for `relayout_plan_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_run(plan: *const RelayoutPlan, src: *const c_void, dst: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for it.
        let plan = unsafe { plan.as_ref() }.ok_or(Status::Null)?;
        // SAFETY: the caller vouches for the bytes.
        unsafe { run(&plan.kernel, plan.source_bytes, plan.bytes, src, dst) }
    })
}

/// Frees a plan; null is fine.
///
/// # Safety
/// `plan` is null, or from `relayout_plan_new` or `relayout_plan_new_layouts`, not freed and not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_plan_free(plan: *mut RelayoutPlan) {
    // SAFETY: the caller vouches for it.
    unsafe { take_back(plan) };
}

/// # Safety
/// `list` is valid for `rank` numbers, or null.
unsafe fn numbers<'a>(list: *const usize, rank: usize) -> Result<&'a [usize], Status> {
    match rank {
        0 => Ok(&[]),
        _ if list.is_null() => Err(Status::Null),
        // Checked by the caller for `rank` numbers; a slice may not be larger than this.
        _ if rank > isize::MAX as usize / size_of::<usize>() => Err(Status::BadSize),
        // SAFETY: not null, and the caller vouches for the numbers.
        _ => Ok(unsafe { std::slice::from_raw_parts(list, rank) }),
    }
}

/// The hint of this number.
fn hinted(hint: c_int) -> Result<Hint, Status> {
    let hints = [(CacheHint::Auto, Hint::Auto), (CacheHint::Hot, Hint::Hot), (CacheHint::Cold, Hint::Cold)];
    let named = hints.iter().find(|(number, _)| *number as c_int == hint);
    named.map(|&(_, hint)| hint).ok_or(Status::BadHint)
}

/// # Safety
/// `text` is a string that ends with a 0, or null.
unsafe fn spelled<'a>(text: *const c_char) -> Result<&'a str, Status> {
    // SAFETY: passed on.
    unsafe { border::text(text) }.ok_or(Status::Null)?.map_err(|_| Status::BadLayout)
}

/// # Safety
/// `src` is valid for `from_bytes`, `dst` for `to_bytes`, or they are null.
unsafe fn run(
    kernel: &Kernel,
    from_bytes: usize,
    to_bytes: usize,
    src: *const c_void,
    dst: *mut c_void,
) -> Result<(), Status> {
    if to_bytes == 0 {
        return Ok(());
    }
    if src.is_null() || dst.is_null() {
        return Err(Status::Null);
    }
    let (source, destination) = (src.addr(), dst.addr());
    if source < destination.saturating_add(to_bytes) && destination < source.saturating_add(from_bytes) {
        return Err(Status::Overlap);
    }
    // SAFETY: not null, apart from each other, valid for their bytes as the caller says, and a plan's bytes fit an `isize`. That
    // they hold anything is not asked: memory that was just allocated is as good a destination, and padding is as good a source.
    let (src, dst) = unsafe {
        (
            std::slice::from_raw_parts(src.cast::<MaybeUninit<u8>>(), from_bytes),
            std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<u8>>(), to_bytes),
        )
    };
    Ok(kernel.run_uninit(src, dst)?)
}

/// The kernel for a request, from those kept or made now.
fn kept(
    elem_size: usize,
    shape: &[usize],
    perm: &[usize],
    hint: Hint,
    threads: usize,
) -> Result<(Rc<Kernel>, usize), Status> {
    KERNELS.with_borrow_mut(|kernels| {
        let same = |kept: &Kept| {
            let request = &kept.request;
            (request.elem_size, request.hint, request.threads) == (elem_size, hint, threads)
                && request.shape == shape
                && request.perm == perm
        };
        if let Some(at) = kernels.iter().position(same) {
            kernels[..=at].rotate_right(1);
            return Ok((Rc::clone(&kernels[0].kernel), kernels[0].bytes));
        }
        let plan = plan(shape, perm, elem_size)?;
        let kernel = Rc::new(Kernel::new(&plan, &Options::default().hint(hint).threads(threads)));
        kernels.truncate(KEPT - 1);
        let request = Request { elem_size, shape: shape.to_vec(), perm: perm.to_vec(), hint, threads };
        kernels.insert(0, Kept { request, kernel: Rc::clone(&kernel), bytes: plan.bytes() });
        Ok((kernel, plan.bytes()))
    })
}
