//! Laws of the layout algebra, against models that walk the storage element by element.

use std::collections::BTreeMap;

use crate::layout_common::{
    Maps, consts, coordinates, layout_for, naive_offsets, naive_storage, permutation, reshaped, shaped_layout,
};
use proptest::prelude::*;
use relayout_ir::dim::Dim;
use relayout_ir::layout::{Factor, IndexMap, Layout, LayoutNames, Refusal, Segment};

/// Whether offsets of a shape could be those of an unpadded layout: axes add up, and each is a mixed-radix number.
fn naively_spellable(offsets: &[u64], shape: &[i64]) -> bool {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as usize;
    }
    let axis_offset = |axis: usize, index: u64| offsets[index as usize * strides[axis]];
    let sums = coordinates(shape).iter().enumerate().all(|(at, coordinate)| {
        offsets[at] == coordinate.iter().enumerate().map(|(axis, index)| axis_offset(axis, *index)).sum::<u64>()
    });
    let radix = |axis: usize| {
        let mut list: Vec<u64> = (0..shape[axis] as u64).map(|index| axis_offset(axis, index)).collect();
        while list.len() > 1 {
            let run = (0..list.len()).take_while(|i| list[*i] == *i as u64 * list[1]).count();
            let fits = list.len().is_multiple_of(run)
                && list.chunks(run).all(|c| c.iter().enumerate().all(|(i, o)| *o == c[0] + i as u64 * list[1]));
            if !fits {
                return false;
            }
            list = list.chunks(run).map(|chunk| chunk[0]).collect();
        }
        true
    };
    sums && (0..shape.len()).all(radix)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn storage_is_what_nested_loops_over_the_factors_fill((shape, layout) in shaped_layout(Maps::Any)) {
        let bound = layout.bind(&shape).unwrap();
        let storage = naive_storage(&layout, &shape);
        prop_assert_eq!(bound.storage_elems(), storage.len() as u64);
        let all = coordinates(&shape);
        for (offset, element) in storage.iter().enumerate() {
            let coordinate = bound.coordinate(offset as u64);
            prop_assert_eq!(coordinate.as_deref(), element.map(|at| all[at as usize].as_slice()));
        }
        prop_assert_eq!(bound.coordinate(storage.len() as u64), None);
        // So it is one to one, and offset undoes coordinate.
        for (coordinate, offset) in all.iter().zip(naive_offsets(&layout, &shape)) {
            prop_assert_eq!(bound.offset(coordinate), Some(offset));
        }
        prop_assert_eq!(bound.is_padded(), storage.contains(&None));
    }

    #[test]
    fn strides_are_the_offsets_of_neighbours((shape, layout) in shaped_layout(Maps::None)) {
        let bound = layout.bind(&shape).unwrap();
        for factor in bound.factors() {
            if (factor.div as i64) < shape[factor.axis] {
                prop_assert_eq!(bound.axis_offset(factor.axis, factor.div), Some(factor.stride));
            }
        }
        if let Some(strides) = bound.axis_strides() {
            for coordinate in coordinates(&shape) {
                let sum = coordinate.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
                prop_assert_eq!(bound.offset(&coordinate), Some(sum));
            }
        }
    }

    #[test]
    fn text_reads_back((_, layout) in shaped_layout(Maps::Any)) {
        let text = layout.to_string();
        prop_assert_eq!(text.parse::<Layout>(), Ok(layout.clone()), "{}", text);
        for names in [LayoutNames::weights(layout.rank()), LayoutNames::features(layout.rank()), LayoutNames::matrix(layout.rank())] {
            let text = layout.display(&names).to_string();
            prop_assert_eq!(text.parse::<Layout>(), Ok(layout.clone()), "{}", text);
            let general = layout.general_form(&names);
            prop_assert_eq!(Layout::parse_with(&general, &names).or_else(|_| text.parse()), Ok(layout.clone()));
        }
        let json = serde_json::to_string(&layout).unwrap();
        prop_assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), layout);
    }

    #[test]
    fn a_transpose_moves_nothing((shape, layout) in shaped_layout(Maps::Any), seed: u64) {
        let perm = permutation(shape.len(), seed);
        let view = layout.transpose(&perm).unwrap();
        let to: Vec<i64> = perm.iter().map(|axis| shape[*axis]).collect();
        let (before, after) = (layout.bind(&shape).unwrap(), view.bind(&to).unwrap());
        prop_assert_eq!(before.storage_elems(), after.storage_elems());
        for coordinate in coordinates(&shape) {
            let moved: Vec<u64> = perm.iter().map(|axis| coordinate[*axis]).collect();
            prop_assert_eq!(before.offset(&coordinate), after.offset(&moved));
        }
        let mut inverse = vec![0; perm.len()];
        perm.iter().enumerate().for_each(|(new, old)| inverse[*old] = new);
        prop_assert_eq!(view.transpose(&inverse).unwrap(), layout);
    }

    #[test]
    fn a_reshape_that_is_not_refused_moves_nothing((shape, layout) in shaped_layout(Maps::Any), seed: u64) {
        let to = reshaped(&shape, seed);
        if let Ok(view) = layout.reshape(&consts(&shape), &consts(&to)) {
            prop_assert_eq!(naive_storage(&view, &to), naive_storage(&layout, &shape), "{} {:?} -> {} {:?}", layout, shape, view, to);
        }
    }

    #[test]
    fn an_unpadded_reshape_is_refused_only_where_nothing_spells_it(
        shape in prop::collection::vec(1i64..=8, 0..=4), fine_seed: u64, order: u64, seed: u64
    ) {
        // Any permutation of a finer shape that can be seen as this one.
        let fine = reshaped(&shape, fine_seed);
        let plain = Layout::permutation(&permutation(fine.len(), order)).unwrap();
        let Ok(layout) = plain.reshape(&consts(&fine), &consts(&shape)) else { return Ok(()) };
        let to = reshaped(&shape, seed);
        let spellable = naively_spellable(&naive_offsets(&layout, &shape), &to);
        let view = layout.reshape(&consts(&shape), &consts(&to));
        prop_assert_eq!(view.is_ok(), spellable, "{} {:?} -> {:?}: {:?}", layout, shape, to, view);
    }

    #[test]
    fn a_reshape_and_its_way_back_are_the_same_arrangement((shape, layout) in shaped_layout(Maps::Any), seed: u64) {
        let (from, to) = (consts(&shape), consts(&reshaped(&shape, seed)));
        if let Ok(view) = layout.reshape(&from, &to) {
            match view.reshape(&to, &from) {
                Ok(back) => prop_assert!(back.equivalent(&layout, &from)),
                // Unequal segments that were repeated or appended to cannot be told apart again.
                Err(Refusal::CutsSegments { .. }) if (0..shape.len()).any(|axis| layout.slot_map(axis).is_some()) => {}
                Err(why) => prop_assert!(false, "{} -> {}: {}", layout, view, why),
            }
        }
    }

    #[test]
    fn a_symbolic_reshape_holds_for_the_values((shape, layout) in shaped_layout(Maps::None), seed: u64, which: u8) {
        // Each axis may become a symbol; the result is a merge of neighbours, and the way back.
        let from: Vec<Dim> = shape.iter().enumerate().map(|(axis, extent)| {
            if which >> axis & 1 == 1 { Dim::symbol(&format!("S{axis}")) } else { Dim::from(*extent) }
        }).collect();
        let (mut to, mut to_shape): (Vec<Dim>, Vec<i64>) = (Vec::new(), Vec::new());
        for (axis, dim) in from.iter().enumerate() {
            match to.last_mut() {
                Some(last) if seed >> axis & 1 == 1 => {
                    *last = last.checked_mul(dim).unwrap();
                    *to_shape.last_mut().unwrap() *= shape[axis];
                }
                _ => { to.push(dim.clone()); to_shape.push(shape[axis]); }
            }
        }
        if let Ok(view) = layout.reshape(&from, &to) {
            prop_assert_eq!(naive_storage(&view, &to_shape), naive_storage(&layout, &shape), "{} {:?} -> {}", layout, from, view);
            if let Ok(back) = view.reshape(&to, &from) {
                prop_assert_eq!(naive_storage(&back, &shape), naive_storage(&layout, &shape));
            }
        }
    }

    #[test]
    fn the_canonical_form_is_the_same_arrangement_and_its_own_form((shape, layout) in shaped_layout(Maps::Any), which: u8) {
        let form = layout.canonical(&consts(&shape));
        prop_assert_eq!(naive_storage(&form, &shape), naive_storage(&layout, &shape), "{} {:?} -> {}", layout, shape, form);
        prop_assert_eq!(form.canonical(&consts(&shape)), form);
        let symbolic: Vec<Dim> = shape.iter().enumerate().map(|(axis, extent)| {
            if which >> axis & 1 == 1 { Dim::symbol("S") } else { Dim::from(*extent) }
        }).collect();
        prop_assert_eq!(naive_storage(&layout.canonical(&symbolic), &shape), naive_storage(&layout, &shape));
    }

    #[test]
    fn equivalent_means_the_same_storage(
        (shape, left, right) in prop::collection::vec(1i64..=4, 1..=2).prop_flat_map(|shape| {
            let (a, b) = (layout_for(&shape, Maps::Any), layout_for(&shape, Maps::Any));
            (Just(shape), a, b)
        })
    ) {
        let same = naive_storage(&left, &shape) == naive_storage(&right, &shape);
        prop_assert_eq!(left.equivalent(&right, &consts(&shape)), same, "{} {}", left, right);
    }

    #[test]
    fn a_refinement_gives_the_offsets_of_both(
        (shape, left, right) in prop::collection::vec(1i64..=7, 1..=3).prop_flat_map(|shape| {
            let (a, b) = (layout_for(&shape, Maps::Any), layout_for(&shape, Maps::Any));
            (Just(shape), a, b)
        })
    ) {
        let Ok(refined) = left.common_refinement(&right, &consts(&shape)) else { return Ok(()) };
        let (a, b) = (left.bind(&shape).unwrap(), right.bind(&shape).unwrap());
        prop_assert_eq!(refined.left_elems.as_const(), Some(a.storage_elems() as i64));
        prop_assert_eq!(refined.right_elems.as_const(), Some(b.storage_elems() as i64));
        // Slot maps that both share are refined by slots, which a table tests.
        if (0..shape.len()).any(|axis| left.slot_map(axis).is_some() && left.slot_map(axis) == right.slot_map(axis)) {
            return Ok(());
        }
        let int = |dim: &Dim| dim.as_const().unwrap() as u64;
        for coordinate in coordinates(&shape) {
            let (mut at_left, mut at_right) = (0, 0);
            for digit in &refined.digits {
                let within = coordinate[digit.axis] / int(&digit.part_div) % int(&digit.part_extent);
                let value = within / int(&digit.div) % int(&digit.extent);
                at_left += value * int(&digit.left_stride);
                at_right += value * int(&digit.right_stride);
            }
            prop_assert_eq!(Some(at_left), a.offset(&coordinate), "{} {} {:?}", left, right, refined);
            prop_assert_eq!(Some(at_right), b.offset(&coordinate));
        }
    }

    #[test]
    fn index_maps_invert_and_compose(
        (shape, a, b, c) in prop::collection::vec(1i64..=5, 1..=3).prop_flat_map(|shape| {
            let layouts = (layout_for(&shape, Maps::Any), layout_for(&shape, Maps::Any), layout_for(&shape, Maps::Any));
            (Just(shape), layouts).prop_map(|(shape, (a, b, c))| (shape, a, b, c))
        })
    ) {
        let (ab, bc) = (IndexMap::new(&a, &b, &shape).unwrap(), IndexMap::new(&b, &c, &shape).unwrap());
        let ac = ab.then(&bc).unwrap();
        let source = naive_storage(&a, &shape);
        for (offset, element) in source.iter().enumerate() {
            let there = ab.apply(offset as u64);
            prop_assert_eq!(there.is_some(), element.is_some());
            prop_assert_eq!(there.and_then(|to| ab.inverse().apply(to)), element.map(|_| offset as u64));
            prop_assert_eq!(there.and_then(|to| bc.apply(to)), ac.apply(offset as u64));
        }
        let gathered: Vec<Option<u64>> = ab.gather().map(|from| from.and_then(|from| source[from as usize])).collect();
        prop_assert_eq!(gathered, naive_storage(&b, &shape));
    }
}

type SlotMaps = Vec<(u8, Vec<Segment>)>;

/// All layouts of a shape with up to one block per axis and with pad in each place that an equal slot map can put it.
fn all_layouts(shape: &[i64], blocks: &[u64], pads: &[u64]) -> Vec<Layout> {
    let mut lists: Vec<(Vec<Factor>, SlotMaps)> = vec![(vec![], vec![])];
    for (axis, extent) in shape.iter().enumerate() {
        let (axis, extent) = (axis as u8, *extent as u64);
        let mut next = Vec::new();
        for (factors, maps) in &lists {
            for block in blocks.iter().copied() {
                let mut digits = vec![Factor::outer(axis, block)];
                digits.extend((block > 1).then_some(Factor::inner(axis, 1, block)));
                let whole = pads.iter().map(|pad| vec![Segment { len: extent, slots: extent + pad }]);
                let each = pads.iter().map(|pad| vec![Segment { len: 1, slots: 1 + pad }; extent as usize]);
                for map in whole.chain(each) {
                    // Segments that a block cuts across have no form of their own; `equivalent` covers them.
                    let aligned = map.len() == 1 || map.iter().all(|s| s.slots % block == 0);
                    if aligned && map.iter().map(|s| s.slots).sum::<u64>() % block == 0 {
                        let mut maps = maps.clone();
                        maps.push((axis, map));
                        next.push(([factors.as_slice(), &digits].concat(), maps));
                    } else {
                        next.push(([factors.as_slice(), &digits].concat(), maps.clone()));
                    }
                }
            }
        }
        lists = next;
    }
    lists
        .into_iter()
        .flat_map(|(factors, maps)| {
            orders(&factors).into_iter().map(move |f| Layout::new(maps_rank(&f), f, maps.clone()).unwrap())
        })
        .collect()
}

fn maps_rank(factors: &[Factor]) -> usize {
    factors.iter().map(|factor| usize::from(factor.axis) + 1).max().unwrap_or(0)
}

fn orders(items: &[Factor]) -> Vec<Vec<Factor>> {
    if items.is_empty() {
        return vec![vec![]];
    }
    (0..items.len())
        .flat_map(|first| {
            let mut rest = items.to_vec();
            let head = rest.remove(first);
            orders(&rest).into_iter().map(move |tail| [&[head], tail.as_slice()].concat())
        })
        .collect()
}

#[test]
fn canonical_forms_are_equal_exactly_where_storages_are() {
    for shape in [&[1][..], &[4], &[5], &[6], &[1, 1], &[1, 4], &[4, 1], &[2, 3], &[6, 2], &[5, 3], &[4, 4]] {
        let mut form_of: BTreeMap<Vec<Option<u64>>, Layout> = BTreeMap::new();
        let mut storage_of: BTreeMap<Layout, Vec<Option<u64>>> = BTreeMap::new();
        for layout in all_layouts(shape, &[1, 2, 3], &[0, 1, 3]) {
            let storage = naive_storage(&layout, shape);
            let form = layout.canonical(&consts(shape));
            let first = form_of.entry(storage.clone()).or_insert_with(|| form.clone());
            assert_eq!(*first, form, "{shape:?}: {layout} has another form than an equal layout");
            let known = storage_of.entry(form).or_insert_with(|| storage.clone());
            assert_eq!(*known, storage, "{shape:?}: {layout}");
        }
    }
}

#[test]
fn canonical_forms_agree_on_three_axes_with_unit_axes_between() {
    let shapes = [&[1, 3, 1][..], &[2, 1, 3], &[1, 1, 4], &[4, 1, 1]];
    // All four take 14 s; `RELAYOUT_CASES=all` asks for them.
    let all = std::env::var("RELAYOUT_CASES").is_ok_and(|which| which == "all");
    for shape in &shapes[..if all { 4 } else { 2 }] {
        let mut form_of: BTreeMap<Vec<Option<u64>>, Layout> = BTreeMap::new();
        for layout in all_layouts(shape, &[1, 2], &[0, 1]) {
            let form = layout.canonical(&consts(shape));
            let first = form_of.entry(naive_storage(&layout, shape)).or_insert_with(|| form.clone());
            assert_eq!(*first, form, "{shape:?}: {layout} has another form than an equal layout");
        }
    }
}
