//! Every instruction set of the machine with every way of doing a movement, against the portable kernel.

use proptest::prelude::*;

use super::job::{Ask, Job, LINE, Micro, Stores, Tuning};
use super::{Hint, Isa, Kernel, Movement, Options, RowForm, model, permute_with};
use crate::plan;

/// Bytes around a buffer that nobody may touch.
const FENCE: usize = 96;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 167 + i / 251) as u8).collect()
}

/// Runs on all instruction sets but the portable one and compares with that, with the buffers `shift` bytes off a line.
fn check(shape: &[usize], perm: &[usize], elem: usize, shift: usize, ways: &[Options]) {
    let plan = plan(shape, perm, elem).expect("a permutation");
    let portable = Isa::named("portable").expect("always there");
    let src = bytes(plan.bytes());
    let mut want = vec![0; plan.bytes()];
    permute_with(&src, &mut want, &plan, &Options::default().isa(portable)).expect("right sizes");
    let mut room = vec![0x55; plan.bytes() + 2 * FENCE + 64];
    let start = FENCE + room[FENCE..].as_ptr().align_offset(64) + shift;
    let range = start..start + plan.bytes();
    for &isa in Isa::available() {
        for way in ways {
            let kernel = Kernel::new(&plan, &way.isa(isa));
            room.fill(0x55);
            kernel.run(&src, &mut room[range.clone()]).expect("right sizes");
            assert!(room[range.clone()] == want, "{isa} {way:?} {shape:?} by {perm:?}, {elem} B: {plan}");
            let untouched = room[..range.start].iter().chain(&room[range.end..]).all(|&byte| byte == 0x55);
            assert!(untouched, "{isa} {way:?} {shape:?} by {perm:?}, {elem} B wrote outside");
        }
    }
}

fn hints() -> Vec<Options> {
    [Hint::Auto, Hint::Hot, Hint::Cold].map(|hint| Options::default().hint(hint).threads(2)).to_vec()
}

/// Each hint with rows by strides and by a list.
fn forms() -> Vec<Options> {
    hints().into_iter().flat_map(|way| [way.form(RowForm::Strided), way.form(RowForm::Gather)]).collect()
}

fn tuning() -> impl Strategy<Value = Tuning> {
    let run = || prop::sample::select(vec![1_usize, 64, 256, 1024, 8192]);
    let stores = prop::sample::select(vec![Stores::Plain, Stores::Stream, Stores::Staged]);
    let ask = prop::sample::select(vec![Ask::Nothing, Ask::Tile, Ask::Block]);
    (run(), run(), stores, ask, any::<bool>(), any::<bool>()).prop_map(
        |(from_run, to_run, stores, ask, sweep_to, pack)| Tuning {
            from_run,
            to_run,
            staged_run: 2 * to_run,
            sweep_to,
            stores,
            ask,
            pack,
        },
    )
}

fn shape_and_perm() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let extent = prop_oneof![2 => Just(1_usize), 30 => 2..=7_usize, 10 => 8..=40_usize, 2 => 60..=200_usize];
    let shape =
        prop::collection::vec(extent, 0..=8).prop_filter("small", |shape| shape.iter().product::<usize>() < MOST_ELEMS);
    shape.prop_flat_map(|shape| {
        let perm = Just((0..shape.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(shape), perm)
    })
}

/// Miri is some thousand times slower than a machine, and can't keep files of failures.
fn config() -> ProptestConfig {
    if cfg!(miri) {
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6) }
    } else {
        ProptestConfig::with_cases(300)
    }
}

/// Most elements of a random shape.
const MOST_ELEMS: usize = if cfg!(miri) { 300 } else { 60_000 };

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_way_of_moving_moves_the_same(
        (shape, perm) in shape_and_perm(),
        elem in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12, 16, 32]),
        tuning in tuning(),
        threads in 1..4_usize,
        shift in prop::sample::select(vec![0_usize, 0, 4, 32, 63]),
    ) {
        let way = Options { tuning: Some(tuning), ..Options::default() }.threads(threads);
        check(&shape, &perm, elem, shift, &[way, way.form(RowForm::Gather)]);
    }
}

#[test]
fn matrices_around_every_register_width_are_transposed() {
    // 0, 1, and around 1 and 3 registers of 16, 32 and 64 bytes.
    let all = [0, 1, 3, 4, 5, 7, 15, 16, 17, 31, 33, 47, 50, 63, 64, 65, 130, 194];
    let sides = if cfg!(miri) { &[1, 5, 17][..] } else { &all };
    for &elem in if cfg!(miri) { &[1, 4][..] } else { &[1, 2, 4, 8, 16] } {
        for &rows in sides {
            for &columns in sides {
                check(&[2, rows, columns], &[0, 2, 1], elem, rows % 2 * 16, &hints());
            }
        }
    }
}

#[test]
fn lines_that_get_into_each_others_way_go_by_a_stage() {
    let staged = |rows: usize, elem: usize, whole: bool| {
        let planned = plan(&[2, rows, 192], &[0, 2, 1], elem).expect("a permutation");
        let movement = Movement::of(&planned).expect("something moves");
        let job = Job::new(&movement, &model::tuning(&movement, Hint::Cold, whole), LINE, whole);
        assert!(job.stream && matches!(job.micro, Micro::Tiles { .. }), "{movement}");
        job.stage_bytes > 0
    };
    for elem in [1, 2, 4, 8] {
        assert!(staged(2048 / elem, elem, false) && !staged(2048 / elem, elem, true), "lines 2048 B apart");
        assert!(!staged(832 / elem, elem, false) && !staged(832 / elem, elem, true), "lines 832 B apart");
        assert!(staged(840 / elem, elem, false) && staged(840 / elem, elem, true), "rows that are not whole lines");
    }
}

#[test]
fn rows_of_every_length_change_places() {
    let all: Vec<usize> = (0..70).chain([127, 128, 129, 255, 256, 300]).collect();
    for &row in if cfg!(miri) { &[15, 33, 65][..] } else { &all } {
        check(&[5, 9, row], &[1, 0, 2], 1, row % 3, &forms());
    }
}

#[test]
fn rows_are_listed_where_that_is_asked_for_and_there_are_rows() {
    let form = |shape: &[usize], perm: &[usize], options: Options| {
        Kernel::new(&plan(shape, perm, 1).expect("a permutation"), &options).form()
    };
    let listed = Options::default().form(RowForm::Gather);
    let vectors = Isa::best().name() != "portable";
    let wanted = if vectors { RowForm::Gather } else { RowForm::Strided };
    assert_eq!(form(&[2, 3, 80], &[1, 0, 2], listed), wanted);
    assert_eq!(form(&[2, 3, 80], &[1, 0, 2], listed.form(RowForm::Strided)), RowForm::Strided);
    assert_eq!(form(&[2, 300], &[1, 0], listed), RowForm::Strided, "a matrix has no rows that stay whole");
}

#[test]
fn channels_of_pictures_are_put_together_and_taken_apart() {
    for channels in 1..6 {
        for &pixels in if cfg!(miri) { &[35][..] } else { &[1, 7, 15, 16, 17, 31, 32, 33, 64, 65, 97, 200, 1000] } {
            for &elem in if cfg!(miri) { &[1, 4][..] } else { &[1, 2, 4, 8] } {
                // Destinations that begin with a line, and ones that do not.
                for shift in [0, elem, 63] {
                    check(&[2, channels, pixels], &[0, 2, 1], elem, shift, &hints());
                    check(&[2, pixels, channels], &[0, 2, 1], elem, shift, &hints());
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too large for Miri, which sees threads in the others")]
fn tensors_that_threads_share_are_whole() {
    let cases: [(&[usize], &[usize], usize); 4] = [
        (&[1030, 517], &[1, 0], 4),
        (&[3, 700, 300], &[2, 1, 0], 2),
        (&[64, 100, 33, 5], &[2, 0, 3, 1], 4),
        (&[3, 7, 41, 333], &[0, 2, 1, 3], 1),
    ];
    for (shape, perm, elem) in cases {
        let ways: Vec<Options> =
            forms().into_iter().flat_map(|way| [1, 2, 3, 0].map(|threads| way.threads(threads))).collect();
        check(shape, perm, elem, 0, &ways);
    }
}

#[test]
fn threads_of_the_caller_move_the_same_however_often_they_call() {
    // Just large enough for two threads where Miri counts every step.
    let (extents, bytes_each, most) = if cfg!(miri) { ([3, 63, 88], 16, 2) } else { ([3, 700, 300], 4, 4) };
    let plan = plan(&extents, &[2, 1, 0], bytes_each).expect("a permutation");
    let src = bytes(plan.bytes());
    let mut want = vec![0; plan.bytes()];
    permute_with(&src, &mut want, &plan, &Options::default().threads(1)).expect("right sizes");
    let kernel = Kernel::new(&plan, &Options::default().threads(1));
    for helpers in 0..most {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let mut dst = vec![0; plan.bytes()];
        let share = |calls: usize, work: &(dyn Fn() + Sync)| {
            asked.store(calls, std::sync::atomic::Ordering::Relaxed);
            std::thread::scope(|scope| (0..helpers).for_each(|_| drop(scope.spawn(work))));
        };
        kernel.run_shared(&src, &mut dst, &share).expect("right sizes");
        assert!(dst == want, "{helpers} helpers");
        assert_eq!(asked.into_inner(), plan.bytes() >> 17);
    }
    let small = crate::plan(&[30, 50], &[1, 0], 4).expect("a permutation");
    let mut dst = vec![0; small.bytes()];
    let share = |_: usize, _: &(dyn Fn() + Sync)| panic!("too small to be shared");
    Kernel::new(&small, &Options::default().threads(1))
        .run_shared(&src[..small.bytes()], &mut dst, &share)
        .expect("right sizes");
}

#[test]
#[allow(unsafe_code, reason = "what was written of memory that held nothing is read")]
fn memory_that_was_never_written_is_filled() {
    use std::mem::MaybeUninit;
    let seen = |bytes: &[u8]| bytes.iter().map(|&byte| MaybeUninit::new(byte)).collect::<Vec<_>>();
    for (shape, perm, elem) in [(&[30, 50][..], &[1, 0][..], 4), (&[5, 3, 9, 7], &[0, 2, 3, 1], 2), (&[40], &[0], 1)] {
        let plan = plan(shape, perm, elem).expect("a permutation");
        let src = bytes(plan.bytes());
        let mut want = vec![0; plan.bytes()];
        permute_with(&src, &mut want, &plan, &Options::default()).expect("right sizes");
        for &isa in Isa::available() {
            for way in forms() {
                let kernel = Kernel::new(&plan, &way.isa(isa));
                let mut dst = Box::new_uninit_slice(plan.bytes());
                kernel.run_uninit(&seen(&src), &mut dst).expect("right sizes");
                // SAFETY: every byte was written with one of the source, which all hold something; Miri sees one that was not.
                let dst = unsafe { dst.assume_init() };
                assert!(*dst == *want, "{isa} {way:?} {plan}");
                let mut dst = Box::new_uninit_slice(plan.bytes());
                let share = |_: usize, work: &(dyn Fn() + Sync)| work();
                kernel.run_shared_uninit(&seen(&src), &mut dst, &share).expect("right sizes");
                // SAFETY: as above.
                assert!(*unsafe { dst.assume_init() } == *want, "{isa} {way:?} {plan}, shared");
            }
        }
    }
}
