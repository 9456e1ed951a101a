//! Copies between views against a loop over all indices, on every instruction set of the machine.

use proptest::prelude::*;
use relayout_codegen::{Error, Hint, Isa, Kernel, Options, StorageId, StorageView, StridedCopy};
use relayout_layout::Layout;

fn view(number: u64, text: &str, shape: &[i64]) -> StorageView {
    let layout: Layout = text.parse().expect("a layout");
    StorageView::new(StorageId(number), &layout, shape).expect("it fits")
}

fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    let all = |mut number: i64| {
        let mut index = vec![0; shape.len()];
        for (place, &extent) in index.iter_mut().zip(shape).rev() {
            *place = number % extent;
            number /= extent;
        }
        index
    };
    (0..shape.iter().product()).map(all).collect()
}

fn check(from: &StorageView, to: &StorageView, elem: usize) {
    let copy = StridedCopy::new(from, to, elem).expect("two views of one shape");
    let src: Vec<u8> = (0..copy.from_bytes()).map(|i| (i * 167 + i / 251) as u8).collect();
    let mut want = vec![0x55; copy.to_bytes()];
    for index in indices(from.shape()) {
        let place = |view: &StorageView| view.offset_of(&index).expect("inside") as usize * elem;
        let (a, b) = (place(from), place(to));
        want[b..b + elem].copy_from_slice(&src[a..a + elem]);
    }
    for &isa in Isa::available() {
        for hint in [Hint::Hot, Hint::Cold] {
            let mut dst = vec![0x55; want.len()];
            Kernel::copying(&copy, &Options::default().isa(isa).hint(hint))
                .run(&src, &mut dst)
                .expect("whole storages");
            assert!(dst == want, "{isa} {hint:?} {from:?} to {to:?}: {copy:?}");
        }
    }
}

/// A view of 4 axes with gaps, steps, and blocks that do not divide, of which all is one window of `shape`.
fn window(number: u64, layout: &str, shape: [i64; 4], start: [i64; 4], step: i64) -> StorageView {
    let mut room: Vec<i64> = shape.iter().zip(start).map(|(extent, start)| extent + start).collect();
    room[2] = (shape[2] - 1) * step.abs() + 1 + start[2];
    let mut whole = view(number, layout, &room);
    for axis in [0, 1, 3] {
        whole = whole.narrow(axis, start[axis], shape[axis]).expect("a range");
    }
    let first = if step > 0 { start[2] } else { room[2] - 1 };
    whole.slice(2, first, shape[2], step).expect("a range")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_element_finds_its_place_and_nothing_else_is_written(
        shape in [1..3_i64, 1..40, 1..9, 1..40],
        a in [0..2_i64, 0..2, 0..3, 0..5], b in [0..2_i64, 0..2, 0..3, 0..5],
        steps in (prop::sample::select(vec![1_i64, 2, 3, -1, -2]), prop::sample::select(vec![1_i64, 2, -1])),
        layouts in (prop::sample::select(vec!["NCHW", "NHWC", "NCHW8c", "CHWN"]), prop::sample::select(vec!["NCHW", "NHWC", "NCHW16c"])),
        elem in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 16]),
    ) {
        // A range of blocks begins with one.
        let begin = |start: [i64; 4], layout: &str, block| if layout.ends_with('c') { [start[0], start[1] * block, start[2], start[3]] } else { start };
        let from = window(0, layouts.0, shape, begin(a, layouts.0, 8), steps.0);
        let to = window(1, layouts.1, shape, begin(b, layouts.1, 16), steps.1);
        check(&from, &to, elem);
    }
}

#[test]
fn large_windows_are_copied_past_the_caches_and_leave_their_gaps() {
    let from = window(0, "NCHW", [2, 64, 60, 100], [0, 3, 1, 5], 1);
    check(&from, &window(1, "NHWC", [2, 64, 60, 100], [0, 7, 0, 3], 1), 4);
    check(&from, &window(1, "NCHW16c", [2, 64, 60, 100], [0, 16, 0, 0], 1), 2);
}

#[test]
fn members_of_a_concatenation_are_free_where_they_were_made() {
    let joined = view(9, "NHWC", &[1, 8, 4, 4]);
    let members = joined.split(1, &[3, 5]).expect("both parts");
    assert!(StridedCopy::new(&members[0], &members[0], 4).expect("the same places").is_free());
    assert_eq!(
        StridedCopy::new(&members[1].narrow(1, 0, 3).expect("a range"), &members[0], 4),
        Err(Error::SameStorage)
    );
    let apart = view(1, "NHWC", &[1, 3, 4, 4]);
    assert!(!StridedCopy::new(&apart, &members[0], 4).expect("a copy").is_free());
    check(&apart, &members[0], 4);
    let shapes = StridedCopy::new(&apart, &members[1], 4);
    assert!(matches!(shapes, Err(Error::Shapes { .. })));
}

#[test]
fn repeats_are_copied_as_often_as_they_are_read() {
    let column = view(0, "NC", &[5, 1]).expand(&[3, 5, 33]).expect("one column");
    check(&column, &view(1, "NCW", &[3, 5, 33]), 4);
    check(&column, &view(1, "WCN", &[3, 5, 33]), 4);
}
