//! Storage views against a list of the offsets of their elements.

use crate::layout_common::{Maps, coordinates, parse, permutation, reshaped, shaped_layout};
use proptest::prelude::*;
use relayout_ir::dim::Dim;
use relayout_ir::layout::storage::{FreeOrCopy, StorageId, StorageView, ViewError};

fn offsets(view: &StorageView) -> Vec<i64> {
    coordinates(view.shape())
        .iter()
        .map(|c| view.offset_of(&c.iter().map(|i| *i as i64).collect::<Vec<_>>()).unwrap())
        .collect()
}

fn whole(text: &str, shape: &[i64]) -> StorageView {
    StorageView::new(StorageId(1), &parse(text), shape).unwrap()
}

/// Elements of a model at the coordinates that `pick` keeps, in order.
fn pick(model: &[i64], shape: &[i64], keep: impl Fn(&[u64]) -> bool) -> Vec<i64> {
    let all = coordinates(shape);
    all.iter().zip(model).filter(|(c, _)| keep(c)).map(|(_, offset)| *offset).collect()
}

#[derive(Debug, Clone)]
enum Op {
    Narrow(u8, u8, u8),
    Slice(u8, u8, bool),
    Select(u8, u8),
    Transpose(u64),
    Expand(u8),
    Reshape(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(a, s, l)| Op::Narrow(a, s, l)),
        (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(a, s, b)| Op::Slice(a, s, b)),
        (any::<u8>(), any::<u8>()).prop_map(|(a, i)| Op::Select(a, i)),
        any::<u64>().prop_map(Op::Transpose),
        any::<u8>().prop_map(Op::Expand),
        any::<u64>().prop_map(Op::Reshape),
    ]
}

/// Applies an operation to view and model; `None` where the view refuses or the operation does not fit.
#[expect(clippy::too_many_lines, reason = "an arm per operation")]
fn apply(view: &StorageView, model: &[i64], op: &Op) -> Option<(StorageView, Vec<i64>)> {
    let shape = view.shape().to_vec();
    let axis_of = |a: u8| (!shape.is_empty()).then(|| usize::from(a) % shape.len().max(1));
    match *op {
        Op::Narrow(a, start, len) => {
            let axis = axis_of(a)?;
            let start = i64::from(start) % (shape[axis] + 1);
            let len = i64::from(len) % (shape[axis] - start + 1);
            let kept = pick(model, &shape, |c| (start..start + len).contains(&(c[axis] as i64)));
            Some((view.narrow(axis, start, len).ok()?, kept))
        }
        Op::Slice(a, step, back) => {
            let axis = axis_of(a)?;
            let step = i64::from(step) % 4 + 1;
            let count = (shape[axis] + step - 1) / step;
            if count == 0 {
                return None;
            }
            let last = (count - 1) * step;
            let mut sliced = view.slice(axis, 0, count, step).ok()?;
            let kept = pick(model, &shape, |c| c[axis] as i64 % step == 0);
            if back && count > 1 {
                sliced = view.slice(axis, last, count, -step).ok()?;
                let coordinates = coordinates(sliced.shape());
                let strides: Vec<usize> =
                    (0..shape.len()).map(|k| sliced.shape()[k + 1..].iter().product::<i64>() as usize).collect();
                let mirrored = coordinates.iter().map(|c| {
                    let at = |k: usize| if k == axis { count as u64 - 1 - c[k] } else { c[k] };
                    kept[(0..c.len()).map(|k| at(k) as usize * strides[k]).sum::<usize>()]
                });
                return Some((sliced.clone(), mirrored.collect()));
            }
            Some((sliced, kept))
        }
        Op::Select(a, index) => {
            let axis = axis_of(a).filter(|axis| shape[*axis] > 0)?;
            let index = i64::from(index) % shape[axis];
            let kept = pick(model, &shape, |c| c[axis] as i64 == index);
            Some((view.select(axis, index).unwrap(), kept))
        }
        Op::Transpose(seed) => {
            let perm = permutation(shape.len(), seed);
            let moved = view.transpose(&perm).unwrap();
            let strides: Vec<usize> =
                (0..shape.len()).map(|k| shape[k + 1..].iter().product::<i64>() as usize).collect();
            let order = coordinates(moved.shape());
            let list = order
                .iter()
                .map(|c| model[c.iter().zip(&perm).map(|(i, old)| *i as usize * strides[*old]).sum::<usize>()]);
            Some((moved.clone(), list.collect()))
        }
        Op::Expand(count) => {
            let count = i64::from(count) % 3 + 1;
            let to: Vec<i64> = [&[count], shape.as_slice()].concat();
            let list = std::iter::repeat_n(model, count as usize).flatten().copied().collect();
            Some((view.expand(&to).unwrap(), list))
        }
        Op::Reshape(seed) => match view.free_or_copy(&reshaped(&shape, seed)) {
            FreeOrCopy::Free(free) => Some((free, model.to_vec())),
            FreeOrCopy::Copy(_) => None,
        },
    }
}

/// Whether one stride per axis gives these offsets, so that a view must have been found.
fn has_strides(model: &[i64], shape: &[i64]) -> bool {
    let all = coordinates(shape);
    let strides: Vec<i64> = (0..shape.len())
        .map(|axis| {
            let neighbour = all.iter().position(|c| c.iter().enumerate().all(|(k, i)| *i == u64::from(k == axis)));
            neighbour.map_or(0, |at| model[at] - model[0])
        })
        .collect();
    all.iter().zip(model).all(|(c, offset)| {
        *offset == model[0] + c.iter().zip(&strides).map(|(index, stride)| *index as i64 * stride).sum::<i64>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_views_look_at_the_elements_that_they_should(
        (shape, layout) in shaped_layout(Maps::Any), ops in prop::collection::vec(op(), 0..6), seed: u64
    ) {
        let Ok(mut view) = StorageView::new(StorageId(7), &layout, &shape) else { return Ok(()) };
        let bound = layout.bind(&shape).unwrap();
        let mut model: Vec<i64> = coordinates(&shape).iter().map(|c| bound.offset(c).unwrap() as i64).collect();
        prop_assert_eq!(offsets(&view), model.clone());
        for op in &ops {
            if let Some((next, list)) = apply(&view, &model, op) {
                prop_assert_eq!(offsets(&next), list.clone(), "{:?} {:?} after {:?}", view, next, op);
                prop_assert!(next.same_storage(&view));
                (view, model) = (next, list);
            }
            if model.len() > 4000 {
                break;
            }
        }
        let rows = model.iter().enumerate().all(|(at, offset)| *offset == model[0] + at as i64);
        prop_assert_eq!(view.is_contiguous(), rows, "{:?}", view);
        if let Some(strides) = view.strides() {
            for (c, offset) in coordinates(view.shape()).iter().zip(&model) {
                let sum: i64 = c.iter().zip(&strides).map(|(index, stride)| *index as i64 * stride).sum();
                prop_assert_eq!(view.offset() + sum, *offset);
            }
        }
        if let Some(layout) = view.as_layout() {
            let bound = layout.bind(view.shape()).unwrap();
            let list: Vec<i64> = coordinates(view.shape()).iter().map(|c| bound.offset(c).unwrap() as i64).collect();
            prop_assert_eq!(list, model.clone());
        }
        for axis in 0..view.shape().len() {
            let mut index = 0;
            while let Some((at, run)) = view.run_from(axis, index) {
                prop_assert!(run.extent >= 1, "{:?}", view);
                for step in 0..run.extent {
                    let (found, _) = view.run_from(axis, index + step).unwrap();
                    prop_assert_eq!(found, at + step * run.stride, "{:?} axis {} from {}", view, axis, index);
                }
                index += run.extent;
            }
            prop_assert_eq!(index, view.shape()[axis]);
        }
        if let Some(runs) = view.runs() {
            let extents: Vec<i64> = runs.iter().map(|run| run.extent).collect();
            let list = coordinates(&extents).iter().map(|c| {
                view.offset() + c.iter().zip(&runs).map(|(digit, run)| *digit as i64 * run.stride).sum::<i64>()
            }).collect::<Vec<_>>();
            prop_assert_eq!(list, model.clone(), "{:?}", view);
        }
        let mut places = model.clone();
        places.sort_unstable();
        places.dedup();
        prop_assert!(view.has_repeats() || places.len() == model.len(), "{:?}", view);
        let to = reshaped(view.shape(), seed);
        if !model.is_empty() && has_strides(&model, &to) {
            prop_assert!(matches!(view.free_or_copy(&to), FreeOrCopy::Free(_)), "{:?} to {:?}", view, to);
        }
    }
}

/// Whether the answer is a view with one stride per axis, as PyTorch has it.
fn viewable(answer: &FreeOrCopy) -> bool {
    matches!(answer, FreeOrCopy::Free(view) if view.strides().is_some())
}

#[test]
fn reshapes_are_free_where_pytorch_views_them() {
    // (layout, shape, to, free), as torch.empty(shape).permute(..).view(to) answers
    let cases: &[(&str, &[i64], &[i64], bool)] = &[
        ("ab", &[6, 4], &[24], true),
        ("ba", &[6, 4], &[24], false),
        ("ba", &[6, 4], &[2, 3, 4], true),
        ("NHWC", &[2, 4, 3, 3], &[2, 4, 9], true),
        ("NHWC", &[2, 4, 3, 3], &[2, 2, 2, 9], true),
        ("NHWC", &[2, 4, 3, 3], &[8, 9], false),
        ("NHWC", &[2, 1, 3, 3], &[18], true),
        ("NCHW4c", &[2, 8, 3, 3], &[2, 2, 4, 9], true),
    ];
    for (layout, shape, to, free) in cases {
        let answer = whole(layout, shape).free_or_copy(to);
        assert_eq!(viewable(&answer), *free, "{layout} {shape:?} -> {to:?}: {answer:?}");
    }
    // An expanded axis splits and merges with itself, and with nothing else.
    let row = whole("ab", &[1, 4]).expand(&[6, 4]).unwrap();
    assert!(viewable(&row.free_or_copy(&[2, 3, 4])));
    assert!(!viewable(&row.free_or_copy(&[24])));
    // What PyTorch would copy may still be free in digits; what cuts a digit is not.
    let columns = whole("ba", &[6, 4]);
    assert!(matches!(columns.free_or_copy(&[24]), FreeOrCopy::Free(_)));
    assert!(matches!(columns.free_or_copy(&[3, 8]), FreeOrCopy::Free(_)));
    assert!(matches!(whole("ba", &[4, 6]).free_or_copy(&[8, 3]), FreeOrCopy::Free(_)));
    assert!(matches!(whole("ba", &[9, 4]).free_or_copy(&[2, 18]), FreeOrCopy::Copy(_)));
}

#[test]
fn contiguity_is_what_pytorch_answers() {
    let cases: &[(&str, &[i64], bool)] = &[
        ("NCHW", &[2, 3, 4, 5], true),
        ("NHWC", &[2, 3, 4, 5], false),
        ("NHWC", &[2, 1, 4, 5], true),
        ("NHWC", &[2, 3, 1, 1], true),
        ("NHWC", &[0, 3, 4, 5], true),
        ("NCHW4c", &[2, 4, 1, 1], true),
        ("NCHW4c", &[2, 3, 1, 1], false),
        ("scalar", &[], true),
    ];
    for (layout, shape, contiguous) in cases {
        assert_eq!(whole(layout, shape).is_contiguous(), *contiguous, "{layout} {shape:?}");
    }
    let rows = whole("ab", &[6, 4]);
    assert!(rows.narrow(0, 2, 3).unwrap().is_contiguous(), "the offset does not matter");
    assert!(!rows.narrow(1, 0, 3).unwrap().is_contiguous());
    assert!(rows.select(0, 3).unwrap().is_contiguous());
    assert!(!rows.slice(0, 0, 3, 2).unwrap().is_contiguous());
}

#[test]
fn a_split_of_whole_blocks_copies_nothing_and_off_boundary_says_so() {
    let blocked = whole("NCHW16c", &[1, 64, 2, 2]);
    let halves = blocked.split(1, &[32, 32]).unwrap();
    assert_eq!(halves[1].offset(), 32 * 4);
    assert!(halves.iter().all(|half| half.same_storage(&blocked)));
    let cut = blocked.split(1, &[24, 40]);
    assert_eq!(cut, Err(ViewError::CutsBlock { axis: 1, start: 24, end: 64, block: 16 }));
    assert!(blocked.narrow(1, 16, 5).is_ok(), "it may end within its last block");
    assert!(blocked.narrow(1, 3, 5).is_ok(), "it may lie within one block");
    assert!(matches!(blocked.slice(1, 0, 8, 8), Err(ViewError::StepCutsBlock { block: 16, .. })));
    assert!(blocked.slice(1, 5, 4, 16).is_ok());
}

#[test]
fn wrong_views_are_refused() {
    let view = whole("ab", &[6, 4]);
    assert!(matches!(view.narrow(2, 0, 1), Err(ViewError::AxisOutOfRange { axis: 2, rank: 2 })));
    assert!(matches!(view.narrow(0, 5, 2), Err(ViewError::OutOfRange { .. })));
    assert!(matches!(view.narrow(0, i64::MAX, i64::MAX), Err(ViewError::OutOfRange { .. })));
    assert!(matches!(view.slice(0, 0, 9, 2), Err(ViewError::OutOfRange { .. })));
    assert!(matches!(view.slice(0, 0, 2, 0), Err(ViewError::ZeroStep { axis: 0 })));
    assert!(matches!(view.select(0, -1), Err(ViewError::OutOfRange { .. })));
    assert!(matches!(view.split(0, &[7, -1]), Err(ViewError::SplitSizes { .. })));
    assert!(matches!(view.expand(&[5, 4]), Err(ViewError::NotExpandable { axis: 0, extent: 6, to: 5 })));
    assert!(matches!(view.expand(&[4]), Err(ViewError::AxisOutOfRange { .. })));
    assert!(view.expand(&[i64::MAX, i64::MAX, 6, 4]).is_err());
    assert!(view.transpose(&[0, 0]).is_err());
    assert!(matches!(view.free_or_copy(&[-6, -4]), FreeOrCopy::Copy(_)));
    assert!(matches!(view.free_or_copy(&[25]), FreeOrCopy::Copy(_)));
    let unequal = StorageView::new(StorageId(1), &parse("a[1:4,2:3,1:1]"), &[4]);
    assert!(matches!(unequal, Err(ViewError::Refused(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_free_for_a_layout_is_free_for_a_view((shape, layout) in shaped_layout(Maps::Any), seed: u64) {
        let Ok(view) = StorageView::new(StorageId(7), &layout, &shape) else { return Ok(()) };
        let to = reshaped(&shape, seed);
        let dims = |shape: &[i64]| shape.iter().map(|n| Dim::from(*n)).collect::<Vec<_>>();
        let Ok(left) = layout.reshape(&dims(&shape), &dims(&to)) else { return Ok(()) };
        if to.contains(&0) {
            return Ok(());
        }
        // A view cannot spell unequal segments, which a reshape may leave.
        let Ok(left) = StorageView::new(StorageId(7), &left, &to) else { return Ok(()) };
        let free = view.free_or_copy(&to).free();
        prop_assert!(free.as_ref().is_some_and(|free| offsets(free) == offsets(&left)), "{:?} {:?} {:?}", view, free, left);
    }
}

#[test]
fn tensors_with_strides_of_their_own_are_views() {
    let id = StorageId(1);
    assert_eq!(StorageView::dense(id, &[2, 3, 4]).unwrap(), whole("abc", &[2, 3, 4]));
    let columns = StorageView::strided(id, 24, 0, &[4, 6], &[1, 4]).unwrap();
    assert_eq!(columns, whole("ba", &[4, 6]));
    let backwards = StorageView::strided(id, 4, 3, &[4], &[-1]).unwrap();
    assert_eq!(backwards, whole("a", &[4]).slice(0, 3, 4, -1).unwrap());
    for (elems, offset, stride) in [(4, 2, -1), (3, 0, 1), (4, -1, 1), (4, 1, i64::MAX)] {
        assert!(StorageView::strided(id, elems, offset, &[4], &[stride]).is_err(), "{elems} {offset} {stride}");
    }
    assert!(StorageView::strided(id, 4, 0, &[4], &[1, 1]).is_err());
    assert!(StorageView::dense(id, &[i64::MAX, 2]).is_err());
    assert!(StorageView::dense(id, &[-1]).is_err());
}

#[test]
fn a_tensor_in_a_larger_storage_is_the_part_that_it_takes() {
    let joined = whole("NHWC", &[2, 6, 4, 4]);
    let second = joined.narrow(0, 1, 1).unwrap();
    let made = StorageView::new(StorageId(2), &parse("NHWC"), &[1, 6, 4, 4]).unwrap();
    let there = made.clone().within(joined.storage(), 2 * 96, 96).unwrap();
    assert_eq!(there, second);
    assert!(there.move_to(&second).is_free() && !made.move_to(&second).is_free());
    assert!(matches!(made.within(StorageId(1), 100, 5), Err(ViewError::OutOfStorage { .. })));
}

#[test]
fn a_slice_of_a_layout_is_that_layout_with_strides_of_its_own() {
    let channels = whole("NHWC", &[2, 6, 4, 5]).narrow(1, 2, 3).unwrap();
    assert_eq!(channels.strides_as(&parse("NHWC")).as_deref(), Some(&[120, 30, 6, 1][..]));
    assert_eq!(channels.strides_as(&parse("NCHW")).as_deref(), Some(&[120, 1, 30, 6][..]));
    let blocks = whole("NCHW4c", &[2, 12, 4, 5]).narrow(1, 4, 8).unwrap();
    assert_eq!(blocks.strides_as(&parse("NCHW4c")).as_deref(), Some(&[240, 80, 20, 4, 1][..]));
    assert_eq!(blocks.strides_as(&parse("NCHW2c")).as_deref(), None, "blocks of 2 have other neighbours");
    let odd = whole("NCHW4c", &[2, 12, 4, 5]).narrow(1, 0, 6).unwrap();
    assert_eq!(odd.strides_as(&parse("NCHW4c")), None, "its pad slots are others' elements");
}

#[test]
fn what_may_be_two_elements_repeats() {
    let view = whole("ab", &[6, 4]);
    assert!(!view.has_repeats() && !view.slice(0, 5, 3, -2).unwrap().has_repeats());
    assert!(whole("ab", &[1, 4]).expand(&[6, 4]).unwrap().has_repeats());
    assert!(StorageView::strided(StorageId(1), 9, 0, &[4, 3], &[2, 1]).unwrap().has_repeats());
}
