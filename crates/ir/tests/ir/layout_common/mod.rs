//! Naive models and generators shared by the layout tests.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use proptest::prelude::*;
use relayout_ir::dim::Dim;
use relayout_ir::layout::{Factor, Layout, Segment};

pub(crate) fn parse(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn dims(text: &str) -> Vec<Dim> {
    text.split(',').filter(|t| !t.is_empty()).map(|t| t.parse().unwrap_or_else(|e| panic!("{e}"))).collect()
}

pub(crate) fn consts(shape: &[i64]) -> Vec<Dim> {
    shape.iter().map(|extent| Dim::from(*extent)).collect()
}

/// All coordinates in row-major order.
pub(crate) fn coordinates(shape: &[i64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for extent in shape {
        all = all.into_iter().flat_map(|c| (0..*extent as u64).map(move |i| [c.as_slice(), &[i]].concat())).collect();
    }
    all
}

/// Storage as nested loops over the factors fill it: the row-major index of each element, `None` in pad.
pub(crate) fn naive_storage(layout: &Layout, shape: &[i64]) -> Vec<Option<u64>> {
    let slot_lists: Vec<Vec<Option<u64>>> =
        (0..shape.len()).map(|axis| naive_slots(layout, axis, shape[axis])).collect();
    let extents: Vec<u64> = layout
        .factors()
        .iter()
        .map(|f| f.modulo.unwrap_or_else(|| (slot_lists[usize::from(f.axis)].len() as u64).div_ceil(f.div)))
        .collect();
    let mut storage = Vec::new();
    for digits in coordinates(&extents.iter().map(|e| *e as i64).collect::<Vec<_>>()) {
        let mut slots = vec![0u64; shape.len()];
        for (digit, factor) in digits.iter().zip(layout.factors()) {
            slots[usize::from(factor.axis)] += digit * factor.div;
        }
        let mut linear = Some(0);
        for (axis, slot) in slots.iter().enumerate() {
            let index = slot_lists[axis].get(*slot as usize).copied().flatten();
            linear = linear.zip(index).map(|(sum, index)| sum * shape[axis] as u64 + index);
        }
        storage.push(linear);
    }
    storage
}

fn naive_slots(layout: &Layout, axis: usize, extent: i64) -> Vec<Option<u64>> {
    let Some(segments) = layout.slot_map(axis) else { return (0..extent as u64).map(Some).collect() };
    let mut slots = Vec::new();
    let mut next = 0;
    for segment in segments {
        for at in 0..segment.slots {
            slots.push((at < segment.len).then_some(next + at));
        }
        next += segment.len;
    }
    slots
}

/// Offset of each element in row-major order.
pub(crate) fn naive_offsets(layout: &Layout, shape: &[i64]) -> Vec<u64> {
    let mut offsets = vec![0; shape.iter().product::<i64>() as usize];
    for (at, element) in naive_storage(layout, shape).iter().enumerate() {
        if let Some(element) = element {
            offsets[*element as usize] = at as u64;
        }
    }
    offsets
}

/// What a slot map of a generated layout may be.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Maps {
    None,
    Any,
}

/// A shape with a layout that fits it.
pub(crate) fn shaped_layout(maps: Maps) -> impl Strategy<Value = (Vec<i64>, Layout)> {
    prop::collection::vec(1i64..=7, 0..=4).prop_flat_map(move |shape| {
        let layout = layout_for(&shape, maps);
        (Just(shape), layout)
    })
}

/// A layout that fits a shape.
pub(crate) fn layout_for(shape: &[i64], maps: Maps) -> impl Strategy<Value = Layout> + use<> {
    let axes: Vec<_> = shape.iter().map(|extent| axis_choice(*extent, maps)).collect();
    (axes, any::<u64>()).prop_map(|(axes, seed)| {
        let mut factors = Vec::new();
        let mut slot_maps = Vec::new();
        for (axis, (blocks, map)) in axes.iter().enumerate() {
            let axis = axis as u8;
            let mut div = 1;
            for block in blocks {
                factors.push(Factor::inner(axis, div, *block));
                div *= block;
            }
            factors.push(Factor::outer(axis, div));
            if !map.is_empty() {
                let mut map = map.clone();
                let slots: u64 = map.iter().map(|s| s.slots).sum();
                map.last_mut().unwrap().slots += slots.next_multiple_of(div) - slots;
                slot_maps.push((axis, map));
            }
        }
        shuffle(&mut factors, seed);
        Layout::new(axes.len(), factors, slot_maps).unwrap()
    })
}

/// Blocks of an axis from fine to coarse, and its slot map, empty for none.
fn axis_choice(extent: i64, maps: Maps) -> BoxedStrategy<(Vec<u64>, Vec<Segment>)> {
    let blocks = prop_oneof![3 => Just(vec![]), 3 => prop::collection::vec(2u64..=4, 1), 1 => prop::collection::vec(2u64..=3, 2)];
    let extent = extent as u64;
    if maps == Maps::None || extent == 0 {
        return (blocks, Just(vec![])).boxed();
    }
    let padded = (0u64..=3).prop_map(move |pad| vec![Segment { len: extent, slots: extent + pad }]);
    let equal = (1..=extent, 0u64..=2).prop_map(move |(count, pad)| {
        let count = if extent.is_multiple_of(count) { count } else { 1 };
        let len = extent / count;
        vec![Segment { len, slots: len + pad }; count as usize]
    });
    let unequal = prop::collection::vec((1u64..=3, 0u64..=2), 1..=4).prop_map(move |parts| {
        let mut left = extent;
        let mut map = Vec::new();
        for (len, pad) in parts {
            let len = len.min(left);
            if len > 0 {
                map.push(Segment { len, slots: len + pad });
            }
            left -= len;
        }
        map.extend((left > 0).then_some(Segment { len: left, slots: left }));
        map
    });
    let map = prop_oneof![4 => Just(vec![]), 1 => padded, 1 => equal, 1 => unequal];
    (blocks, map).boxed()
}

fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (seed >> 33) as usize % (at + 1));
    }
}

/// A shape with the same number of elements: the prime factors dealt out again, with 1s in between.
pub(crate) fn reshaped(shape: &[i64], seed: u64) -> Vec<i64> {
    if shape.contains(&0) {
        return vec![0];
    }
    let mut factors = Vec::new();
    for extent in shape {
        let mut rest = *extent;
        let mut inner = Vec::new();
        for prime in [2, 3, 5, 7] {
            while rest % prime == 0 {
                inner.push(prime);
                rest /= prime;
            }
        }
        inner.push(rest);
        if seed & 1 == 1 {
            inner.reverse();
        }
        factors.extend(inner);
    }
    let mut to = Vec::new();
    let mut bits = seed >> 1;
    let mut open = 1;
    for factor in factors {
        open *= factor;
        if bits & 1 == 1 {
            to.push(open);
            open = 1;
        }
        if bits & 6 == 6 && to.len() < 6 {
            to.push(1);
        }
        bits = bits.rotate_right(3);
    }
    if open > 1 || bits & 1 == 1 {
        to.push(open);
    }
    to
}

pub(crate) fn permutation(rank: usize, seed: u64) -> Vec<usize> {
    let mut perm: Vec<usize> = (0..rank).collect();
    shuffle(&mut perm, seed);
    perm
}
