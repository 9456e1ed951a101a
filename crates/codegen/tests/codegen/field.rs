//! Fields: the same program for every order, and how they lie.

use relayout_codegen::field::{Arena, Field, FieldError, FieldName, Fields, Plot};
use relayout_codegen::{Digit, Order};

fn order(digits: &[(usize, usize, usize)]) -> Order {
    let digit = |&(axis, extent, stride): &(usize, usize, usize)| Digit { axis, extent, stride };
    Order { digits: digits.iter().map(digit).collect(), segments: Vec::new() }
}

/// Rows and columns in blocks of 8x8, of an extent that 8 need not divide.
fn blocks(rows: usize, columns: usize) -> Order {
    order(&[(0, rows.div_ceil(8), 8), (1, columns.div_ceil(8), 8), (0, 8, 1), (1, 8, 1)])
}

/// All ways to lay out a group that the tests try.
fn ways(rows: usize, columns: usize) -> Vec<(Order, Fields)> {
    let shape = [rows, columns];
    let orders = [
        Order::dense(&shape),
        Order::permuted(&shape, &[1, 0]),
        blocks(rows, columns),
        order(&[(1, columns.div_ceil(3), 3), (0, rows, 1), (1, 3, 1)]),
    ];
    let fields = [Fields::Together, Fields::Apart, Fields::After(1)];
    orders.iter().flat_map(|order| fields.map(|fields| (order.clone(), fields))).collect()
}

/// A wave on a membrane that is held at its edge: heights after some steps.
fn wave(height: &Field<'_, f64, 2>, velocity: &Field<'_, f64, 2>) -> Vec<f64> {
    let (rows, columns) = (height.shape()[0], height.shape()[1]);
    height[[rows / 2, columns / 3]].set(1.0);
    for _ in 0..25 {
        for i in 1..rows - 1 {
            for j in 1..columns - 1 {
                let near = height[[i - 1, j]].get()
                    + height[[i + 1, j]].get()
                    + height[[i, j - 1]].get()
                    + height[[i, j + 1]].get();
                let pull = near - 4.0 * height[[i, j]].get();
                velocity[[i, j]].set(0.999 * (velocity[[i, j]].get() + 0.2 * pull));
            }
        }
        for (index, height) in height.iter() {
            height.set(height.get() + 0.2 * velocity[index].get());
        }
    }
    (0..rows * columns).map(|at| height[[at / columns, at % columns]].get()).collect()
}

#[test]
fn a_wave_is_the_same_in_every_order() {
    let (rows, columns) = (21, 18);
    let mut seen: Vec<Vec<f64>> = Vec::new();
    for (order, fields) in ways(rows, columns) {
        let mut plot = Plot::new();
        let [height, velocity] = plot.place(&[rows, columns], &order, fields).expect("an order");
        let arena: Arena<f64> = plot.build().expect("memory");
        seen.push(wave(&arena.field(height).expect("its own"), &arena.field(velocity).expect("its own")));
    }
    assert!(seen[0].iter().any(|&height| height.abs() > 1e-3), "nothing moved");
    assert!(seen.iter().all(|heights| *heights == seen[0]), "an order changes the wave");
}

#[test]
fn blocks_of_8x8_lie_one_after_the_other_and_are_walked_so() {
    let mut plot = Plot::new();
    let name = plot.field(&[16, 24], &blocks(16, 24)).expect("an order");
    let arena: Arena<u32> = plot.build().expect("memory");
    let field: Field<'_, u32, 2> = arena.field(name).expect("its own");
    let walked: Vec<[usize; 2]> = field.iter().map(|(index, _)| index).collect();
    assert_eq!(walked.len(), 16 * 24);
    assert_eq!(walked[..10], [[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [0, 6], [0, 7], [1, 0], [1, 1]]);
    assert_eq!((walked[63], walked[64], walked[3 * 64]), ([7, 7], [0, 8], [8, 0]));
    let places: Vec<usize> = walked.iter().map(|&index| field.place(index)).collect();
    assert_eq!(places, (0..16 * 24).collect::<Vec<_>>());
}

#[test]
fn every_element_has_a_place_of_its_own() {
    for (rows, columns) in [(1, 1), (7, 5), (16, 8), (9, 17)] {
        for (order, fields) in ways(rows, columns) {
            let mut plot = Plot::new();
            let before = plot.field(&[3], &Order::dense(&[3])).expect("an order");
            let names: [FieldName; 3] = plot.place(&[rows, columns], &order, fields).expect("an order");
            let arena: Arena<usize> = plot.build().expect("memory");
            let mut places = Vec::new();
            for name in names {
                let field: Field<'_, usize, 2> = arena.field(name).expect("its own");
                let own: Vec<usize> = field.iter().map(|(index, _)| field.place(index)).collect();
                assert_eq!(own.len(), rows * columns);
                assert!(own.is_sorted(), "{order:?} {fields:?} is not walked as it lies");
                places.extend(own);
            }
            let other: Field<'_, usize, 1> = arena.field(before).expect("its own");
            places.extend((0..3).map(|at| other.place([at])));
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 3 * rows * columns + 3, "{order:?} {fields:?}");
            assert!(places.last().is_some_and(|&last| last < arena.len()));
        }
    }
}

#[test]
fn structures_of_arrays_and_arrays_of_structures_lie_as_they_should() {
    let place = |fields, index| {
        let mut plot = Plot::new();
        let [_, second] = plot.place(&[8], &order(&[(0, 2, 4), (0, 4, 1)]), fields).expect("an order");
        let arena: Arena<u8> = plot.build().expect("memory");
        arena.field::<1>(second).expect("its own").place([index])
    };
    assert_eq!([0, 1, 4, 7].map(|at| place(Fields::Together, at)), [1, 3, 9, 15]);
    assert_eq!([0, 1, 4, 7].map(|at| place(Fields::Apart, at)), [8, 9, 12, 15]);
    assert_eq!([0, 1, 4, 7].map(|at| place(Fields::After(1), at)), [4, 5, 12, 15]);
}

#[test]
fn what_is_gone_or_of_another_arena_is_an_error() {
    let mut plot = Plot::new();
    let name = plot.field(&[2, 2], &Order::dense(&[2, 2])).expect("an order");
    let mut arena: Arena<f32> = plot.build().expect("memory");
    assert!(arena.field::<2>(name).is_ok());
    assert_eq!(arena.field::<3>(name).err(), Some(FieldError::Rank { rank: 2, asked: 3 }));
    assert!(arena.field::<2>(name).expect("its own").get([2, 0]).is_none());
    let mut other = Plot::new();
    let strange = other.field(&[2, 2], &Order::dense(&[2, 2])).expect("an order");
    assert_eq!(arena.field::<2>(strange).err(), Some(FieldError::Stranger));
    arena.destroy();
    assert_eq!(arena.field::<2>(name).err(), Some(FieldError::Destroyed));
    let refused = Plot::new().field(&[2, 2], &Order::dense(&[2, 3, 4])).err();
    assert_eq!(refused, Some(FieldError::NotAnOrder { shape: vec![2, 2] }));
    let deep = Plot::new().place::<2>(&[2], &Order::dense(&[2]), Fields::After(2)).err();
    assert_eq!(deep, Some(FieldError::NoSuchDepth { depth: 2, digits: 1 }));
}

#[test]
#[should_panic(expected = "index [2, 0] of a field of shape [2, 2]")]
fn an_index_outside_panics_as_for_a_slice() {
    let mut plot = Plot::new();
    let name = plot.field(&[2, 2], &blocks(2, 2)).expect("an order");
    let arena: Arena<u8> = plot.build().expect("memory");
    let field: Field<'_, u8, 2> = arena.field(name).expect("its own");
    field[[2, 0]].set(1);
}
