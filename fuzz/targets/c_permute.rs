//! The C functions that move data: any shape, order, size of element, spelling of layouts and number of threads, against a loop over all
//! elements. Around the destination lie bytes that nobody may write.
#![no_main]

use std::ffi::CString;
use std::ptr::{null, null_mut};

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use relayout_capi::*;
use relayout_fuzz::memory::{Bound, bounded};
use relayout_fuzz::pieces;
use relayout_ir::layout::{IndexMap, Layout};

/// Buffers are at most a megabyte and the tables of a plan as many; a plan has at most 4096 parts.
const BOUND: Bound = Bound { per_byte: 1 << 10, free: 64 << 20 };
/// Larger moves are planned and not run.
const SMALL: usize = 1 << 20;
const AROUND: usize = 256;

const PIECES: &[&str] = &[
    "N",
    "C",
    "H",
    "W",
    "16c",
    "8c",
    "4c",
    "NCHW",
    "NHWC",
    "a",
    "b",
    "c",
    "/",
    "%",
    " ",
    "2",
    "[3:4]",
    "C/8",
    "C%8",
    "OIHW16i16o",
    "MN",
    "NM",
    "scalar",
];
const EXTENTS: &[usize] =
    &[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 127, 128, usize::MAX, 1 << 32, 1 << 62];

#[derive(Debug)]
struct Case {
    shape: Vec<usize>,
    perm: Vec<usize>,
    elem: usize,
    threads: usize,
    hint: i32,
    misalign: usize,
    from: String,
    to: String,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let rank = u.int_in_range(0..=6)?;
        let shape = (0..rank)
            .map(|_| if u.ratio(9, 10)? { Ok(EXTENTS[u.int_in_range(0..=12)?]) } else { u.choose(EXTENTS).copied() });
        let shape = shape.collect::<Result<Vec<usize>>>()?;
        let mut perm: Vec<usize> = (0..rank).collect();
        for at in (1..rank).rev() {
            perm.swap(at, u.int_in_range(0..=at)?);
        }
        if rank > 0 && u.ratio(1, 16)? {
            perm[0] = u.int_in_range(0..=rank + 1)?;
        }
        let elem = *u.choose(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64, 100, usize::MAX, 1, 2, 4, 8])?;
        let (from, to) = (pieces::text(PIECES, 6, u)?, pieces::text(PIECES, 6, u)?);
        let threads = u.int_in_range(0..=3)?;
        Ok(Case {
            shape,
            perm,
            elem,
            threads,
            hint: u.int_in_range(-1..=3)?,
            misalign: u.int_in_range(0..=17)?,
            from,
            to,
        })
    }
}

fuzz_target!(|case: Case| bounded(&BOUND, 64, || {
    permutes(&case);
    relays(&case);
}));

/// Runs `work` on a source and a destination of these sizes, and checks what lies around the destination.
fn moved(case: &Case, from: usize, to: usize, work: impl FnOnce(&[u8], &mut [u8])) -> (Vec<u8>, Vec<u8>) {
    let src: Vec<u8> = (0..from + case.misalign).map(|at| (at % 251) as u8).collect();
    let mut dst = vec![0xA5; AROUND + case.misalign + to + AROUND];
    let begin = AROUND + case.misalign;
    work(&src[case.misalign..], &mut dst[begin..begin + to]);
    let around = dst[..begin].iter().chain(&dst[begin + to..]);
    assert!(around.into_iter().all(|&byte| byte == 0xA5), "bytes beside the destination were written");
    (src[case.misalign..].to_vec(), dst[begin..begin + to].to_vec())
}

fn permutes(case: &Case) {
    let bytes = case.shape.iter().try_fold(case.elem, |bytes, &extent| bytes.checked_mul(extent));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= SMALL) else {
        let mut plan = null_mut();
        // SAFETY: the lists have `rank` numbers.
        unsafe {
            relayout_plan_new(
                case.elem,
                case.shape.len(),
                case.shape.as_ptr(),
                case.perm.as_ptr(),
                case.threads,
                case.hint,
                &raw mut plan,
            );
            relayout_plan_free(plan);
        }
        return;
    };
    let mut statuses = [0; 3];
    for (status, permute) in statuses.iter_mut().zip([relayout_permute, relayout_permute_hot, relayout_permute_cold]) {
        let (src, dst) = moved(case, bytes, bytes, |src, dst| {
            // SAFETY: the buffers have the bytes of the shape, the lists `rank` numbers.
            *status = unsafe {
                permute(
                    src.as_ptr().cast(),
                    dst.as_mut_ptr().cast(),
                    case.elem,
                    case.shape.len(),
                    case.shape.as_ptr(),
                    case.perm.as_ptr(),
                    case.threads,
                )
            };
        });
        if *status == 0 {
            assert!(dst == permuted(&src, case), "{case:?}");
        }
    }
    assert!(statuses.iter().all(|&status| status == statuses[0]), "{statuses:?}");
    let valid = (0..case.perm.len()).all(|axis| case.perm.contains(&axis));
    assert_eq!(statuses[0] == 0, valid && case.elem > 0, "{statuses:?} {case:?}");
}

/// A loop over all elements.
fn permuted(src: &[u8], case: &Case) -> Vec<u8> {
    let rank = case.shape.len();
    if src.is_empty() {
        return Vec::new();
    }
    let mut strides = vec![case.elem; rank];
    for axis in (1..rank).rev() {
        strides[axis - 1] = strides[axis] * case.shape[axis];
    }
    let mut out = Vec::with_capacity(src.len());
    let mut at = vec![0; rank];
    while out.len() < src.len() {
        let from: usize = (0..rank).map(|axis| at[axis] * strides[case.perm[axis]]).sum();
        out.extend_from_slice(&src[from..from + case.elem]);
        for axis in (0..rank).rev() {
            at[axis] += 1;
            if at[axis] < case.shape[case.perm[axis]] {
                break;
            }
            at[axis] = 0;
        }
    }
    out
}

fn relays(case: &Case) {
    let (Ok(from), Ok(to)) = (CString::new(case.from.as_str()), CString::new(case.to.as_str())) else { return };
    let mut plan = null_mut();
    // SAFETY: the list has `rank` numbers, and the texts end with a 0.
    let status = unsafe {
        relayout_plan_new_layouts(
            case.elem,
            case.shape.len(),
            case.shape.as_ptr(),
            from.as_ptr(),
            to.as_ptr(),
            case.threads,
            case.hint,
            &raw mut plan,
        )
    };
    assert_eq!(status == 0, !plan.is_null());
    assert_ne!(status, Status::Internal as i32);
    // SAFETY: the plan is from the library or null.
    let (reads, writes) = unsafe { (relayout_plan_source_bytes(plan), relayout_plan_bytes(plan)) };
    if status == 0 && reads.max(writes) <= SMALL {
        let (src, dst) = moved(case, reads, writes, |src, dst| {
            // SAFETY: the buffers have the bytes that the plan says.
            let status = unsafe { relayout_plan_run(plan, src.as_ptr().cast(), dst.as_mut_ptr().cast()) };
            assert_eq!(status, 0);
        });
        assert!(dst == relaid(&src, case), "{case:?}");
    }
    // SAFETY: it is freed once; nothing is what null frees.
    unsafe {
        assert_ne!(relayout_plan_run(null(), null(), null_mut()), 0);
        relayout_plan_free(plan);
    }
}

/// Element by element, as the layouts say.
fn relaid(src: &[u8], case: &Case) -> Vec<u8> {
    let layout = |text: &str| text.parse::<Layout>().expect("the library has read it");
    let shape: Vec<i64> = case.shape.iter().map(|&extent| extent as i64).collect();
    let map = IndexMap::new(&layout(&case.from), &layout(&case.to), &shape).expect("the library has bound it");
    let element =
        |at: Option<u64>| at.map_or(vec![0; case.elem], |at| src[at as usize * case.elem..][..case.elem].to_vec());
    map.gather().flat_map(element).collect()
}
