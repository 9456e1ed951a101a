//! The kernels against a loop over all indices.

use proptest::prelude::*;
use relayout_codegen::{Error, permute, permute_crumbs, permute_nibbles, plan};

/// Where each element of the output comes from, element by element.
fn naive(shape: &[usize], perm: &[usize]) -> Vec<usize> {
    let elems: usize = shape.iter().product();
    let out: Vec<usize> = perm.iter().map(|&axis| shape[axis]).collect();
    let source = |mut rest: usize| {
        let mut index = vec![0; shape.len()];
        for (&axis, &extent) in perm.iter().zip(&out).rev() {
            index[axis] = rest % extent;
            rest /= extent;
        }
        index.iter().zip(shape).fold(0, |at, (&i, &extent)| at * extent + i)
    };
    (0..elems).map(source).collect()
}

/// Bytes without a short period.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 167 + i / 251) as u8).collect()
}

fn check(shape: &[usize], perm: &[usize], elem_bytes: usize) {
    let order = naive(shape, perm);
    let src = bytes(order.len() * elem_bytes);
    let want: Vec<u8> = order.iter().flat_map(|&at| &src[at * elem_bytes..(at + 1) * elem_bytes]).copied().collect();
    let mut dst = vec![0xaa; src.len()];
    let plan = plan(shape, perm, elem_bytes).expect("a permutation");
    permute(&src, &mut dst, &plan).expect("buffers of the right size");
    assert!(dst == want, "{shape:?} by {perm:?}, {elem_bytes} B an element: {plan}");
}

fn shape_and_perm() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let extent = prop_oneof![1 => Just(0_usize), 6 => Just(1_usize), 30 => 2..=5_usize, 4 => 6..=19_usize];
    let shape =
        prop::collection::vec(extent, 0..=8).prop_filter("small", |shape| shape.iter().product::<usize>() < 30_000);
    shape.prop_flat_map(|shape| {
        let perm = Just((0..shape.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(shape), perm)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_permutation_moves_each_element_to_its_place(
        (shape, perm) in shape_and_perm(),
        elem_bytes in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12, 16, 24]),
    ) {
        check(&shape, &perm, elem_bytes);
    }

    #[test]
    fn matrices_around_the_tile_size_are_transposed(
        batch in 1..3_usize, rows in 1..140_usize, columns in 1..140_usize,
        elem_bytes in prop::sample::select(vec![1_usize, 2, 4, 8, 16, 32, 64]),
    ) {
        check(&[batch, rows, columns], &[0, 2, 1], elem_bytes);
    }

    #[test]
    fn nibbles_move_like_elements((shape, perm) in shape_and_perm()) {
        let order = naive(&shape, &perm);
        let elems: Vec<u8> = bytes(order.len()).iter().map(|byte| byte >> 3 & 0xf).collect();
        let pack = |elems: &[u8]| -> Vec<u8> {
            elems.chunks(2).map(|pair| pair[0] | pair.get(1).copied().unwrap_or(0) << 4).collect()
        };
        let moved: Vec<u8> = order.iter().map(|&at| elems[at]).collect();
        let src = pack(&elems);
        let mut dst = vec![0xaa; src.len()];
        permute_nibbles(&src, &mut dst, &plan(&shape, &perm, 1).expect("a permutation")).expect("right sizes");
        prop_assert_eq!(dst, pack(&moved));
    }

    #[test]
    fn crumbs_move_like_elements((shape, perm) in shape_and_perm()) {
        let order = naive(&shape, &perm);
        let elems: Vec<u8> = bytes(order.len()).iter().map(|byte| byte >> 3 & 0x3).collect();
        let pack = |elems: &[u8]| -> Vec<u8> {
            elems.chunks(4).map(|four| four.iter().rev().fold(0, |byte, part| byte << 2 | part)).collect()
        };
        let moved: Vec<u8> = order.iter().map(|&at| elems[at]).collect();
        let src = pack(&elems);
        let mut dst = vec![0xaa; src.len()];
        permute_crumbs(&src, &mut dst, &plan(&shape, &perm, 1).expect("a permutation")).expect("right sizes");
        prop_assert_eq!(dst, pack(&moved));
    }
}

#[test]
fn tensors_large_enough_for_threads_are_moved_alike() {
    let cases: &[(&[usize], &[usize], usize)] = &[
        (&[1031, 1027], &[1, 0], 1),
        (&[3, 517, 701], &[0, 2, 1], 4),
        (&[2, 3, 419, 211], &[0, 2, 3, 1], 2),
        (&[7, 129, 65, 20], &[0, 2, 1, 3], 4),
        (&[5, 1, 333, 66], &[3, 0, 2, 1], 16),
        (&[300_001], &[0], 4),
        (&[13, 17, 19, 23, 5], &[4, 2, 0, 3, 1], 4),
        (&[2, 600_000], &[1, 0], 1),
        (&[600_000, 2], &[1, 0], 1),
        (&[40_000, 3, 10], &[1, 0, 2], 1),
    ];
    for (shape, perm, elem_bytes) in cases {
        check(shape, perm, *elem_bytes);
    }
}

#[test]
fn buffers_of_the_wrong_size_are_refused() {
    let plan = plan(&[2, 3], &[1, 0], 4).expect("a permutation");
    let short = Error::BufferLength { buffer: "source", want: 24, got: 23 };
    assert_eq!(permute(&[0; 23], &mut [0; 24], &plan), Err(short));
    let long = Error::BufferLength { buffer: "destination", want: 24, got: 25 };
    assert_eq!(permute(&[0; 24], &mut [0; 25], &plan), Err(long));
    assert_eq!(permute_nibbles(&[0; 3], &mut [0; 3], &plan), Err(Error::NotANibblePlan { elem_bytes: 4 }));
}
