//! Moves between orders against a loop over all indices, on every instruction set of the machine.

use proptest::prelude::*;
use relayout_codegen::{Digit, Error, Hint, Isa, Kernel, Options, Order, Relayout, Segment, relayout};

/// The slot of an index along an axis.
fn slot(segments: &[Segment], index: usize) -> usize {
    let (mut start, mut slot) = (0, 0);
    for segment in segments {
        if index < start + segment.length {
            return slot + index - start;
        }
        start += segment.length;
        slot += segment.slots;
    }
    slot + index - start
}

/// The place of an element, in elements.
fn place(order: &Order, index: &[usize]) -> usize {
    order.digits.iter().fold(0, |place, digit| {
        let segments = order.segments.get(digit.axis).map_or(&[][..], Vec::as_slice);
        place * digit.extent + slot(segments, index[digit.axis]) / digit.stride % digit.extent
    })
}

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let all = |mut number: usize| {
        let mut index = vec![0; shape.len()];
        for (place, &extent) in index.iter_mut().zip(shape).rev() {
            *place = number % extent;
            number /= extent;
        }
        index
    };
    (0..shape.iter().product()).map(all).collect()
}

/// Bytes without a short period.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 167 + i / 251) as u8).collect()
}

fn pad(elem: usize) -> Vec<u8> {
    (0..elem).map(|byte| 0xa0 + byte as u8).collect()
}

fn check(shape: &[usize], from: &Order, to: &Order, elem: usize) {
    let pad = pad(elem);
    let plan = relayout(shape, from, to, &pad).expect("orders of the shape");
    let src = bytes(plan.from_bytes());
    let mut want: Vec<u8> = pad.iter().copied().cycle().take(plan.to_bytes()).collect();
    for index in indices(shape) {
        let (a, b) = (place(from, &index) * elem, place(to, &index) * elem);
        want[b..b + elem].copy_from_slice(&src[a..a + elem]);
    }
    for &isa in Isa::available() {
        for hint in [Hint::Hot, Hint::Cold] {
            let kernel = Kernel::between(&plan, &Options::default().isa(isa).hint(hint));
            let mut dst = vec![0x55; want.len()];
            kernel.run(&src, &mut dst).expect("buffers of the right size");
            assert!(dst == want, "{isa} {hint:?} {shape:?} {from:?} to {to:?}: {plan}");
        }
    }
}

/// An order of the shape: each axis cut into up to three digits, padded at random, all digits shuffled.
fn order(shape: Vec<usize>) -> impl Strategy<Value = Order> {
    let cuts = prop::collection::vec((1..5_usize, 1..5_usize, 0..2_usize), shape.len());
    cuts.prop_flat_map(move |cuts| {
        let mut digits = Vec::new();
        for (axis, (&extent, (fine, middle, extra))) in shape.iter().zip(cuts).enumerate() {
            let outer = extent.div_ceil(fine * middle) + extra;
            digits.push(Digit { axis, extent: fine, stride: 1 });
            digits.push(Digit { axis, extent: middle, stride: fine });
            digits.push(Digit { axis, extent: outer, stride: fine * middle });
        }
        Just(digits).prop_shuffle().prop_map(|digits| Order { digits, segments: Vec::new() })
    })
}

fn moves() -> impl Strategy<Value = (Vec<usize>, Order, Order)> {
    let extent = prop_oneof![1 => Just(0_usize), 4 => Just(1_usize), 20 => 2..=11_usize];
    prop::collection::vec(extent, 0..=4)
        .prop_flat_map(|shape| (Just(shape.clone()), order(shape.clone()), order(shape)))
        .prop_filter("small", |(_, from, to)| from.slots() < Some(40_000) && to.slots() < Some(40_000))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_element_finds_its_place_and_padding_is_filled(
        (shape, from, to) in moves(),
        elem in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 16]),
    ) {
        check(&shape, &from, &to, elem);
    }

    #[test]
    fn channel_blocks_are_packed_and_unpacked(
        n in 1..3_usize, c in 1..70_usize, hw in 1..40_usize,
        block in prop::sample::select(vec![4_usize, 8, 16, 32]),
        elem in prop::sample::select(vec![1_usize, 2, 4, 8]),
    ) {
        let shape = [n, c, hw];
        let (dense, blocked) = (Order::dense(&shape), Order::blocked(&shape, 1, block));
        check(&shape, &dense, &blocked, elem);
        check(&shape, &blocked, &dense, elem);
        check(&shape, &Order::permuted(&shape, &[0, 2, 1]), &blocked, elem);
    }

    #[test]
    fn segments_keep_their_slots(a in 1..40_usize, b in 1..40_usize, hw in 1..20_usize, extra in 0..20_usize) {
        let shape = [a + b, hw];
        let slots = [a.next_multiple_of(8) + 8 * (extra % 2), b.next_multiple_of(8)];
        let mut padded = Order::dense(&[slots[0] + slots[1], hw]);
        padded.segments = vec![vec![Segment { length: a, slots: slots[0] }, Segment { length: b, slots: slots[1] }]];
        let mut blocked = Order::blocked(&[slots[0] + slots[1], hw], 0, 8);
        blocked.segments = padded.segments.clone();
        check(&shape, &Order::dense(&shape), &padded, 4);
        check(&shape, &padded, &blocked, 2);
        check(&shape, &blocked, &Order::permuted(&shape, &[1, 0]), 1);
    }
}

#[test]
fn weights_are_packed_in_blocks_of_both_channels() {
    for (o, i, k) in [(32, 32, 9), (20, 17, 9), (16, 3, 49), (1, 1, 1)] {
        let shape = [o, i, k];
        let digit = |axis, extent, stride| Digit { axis, extent, stride };
        let mut to = Order { digits: vec![digit(0, 1, 16), digit(1, 1, 16), digit(2, k, 1)], segments: Vec::new() };
        to.digits[0].extent = usize::div_ceil(o, 16);
        to.digits[1].extent = usize::div_ceil(i, 16);
        to.digits.extend([digit(1, 16, 1), digit(0, 16, 1)]);
        check(&shape, &Order::dense(&shape), &to, 4);
        check(&shape, &to, &Order::dense(&shape), 1);
    }
}

#[test]
fn a_plan_says_what_it_does() {
    let shape = [1, 20, 49];
    let plan = relayout(&shape, &Order::dense(&shape), &Order::blocked(&shape, 1, 16), &[0; 4]).expect("an order");
    assert_eq!(
        plan.to_string(),
        "relayout, 3920 B to 6272 B; units of 4 B x 49 (4 -> 64) x 16 (196 -> 4) at 0 -> 0; \
         units of 4 B x 49 (4 -> 64) x 4 (196 -> 4) at 3136 -> 3136; fill units of 4 B x 49 (0 -> 64) x 12 (0 -> 4) at 0 -> 3152"
    );
    assert_eq!((plan.parts(), plan.traffic_bytes()), ((2, 1), 3920 + 6272));
    let text = serde_json::to_string(&plan).expect("plain data");
    assert_eq!(serde_json::from_str::<Relayout>(&text).expect("its own text"), plan);
}

#[test]
fn what_is_no_order_is_refused() {
    let shape = [4, 6];
    let dense = Order::dense(&shape);
    let with = |digits: &[(usize, usize, usize)]| Order {
        digits: digits.iter().map(|&(axis, extent, stride)| Digit { axis, extent, stride }).collect(),
        segments: Vec::new(),
    };
    let cases = [
        (with(&[(0, 4, 1)]), 1),
        (with(&[(0, 4, 1), (1, 5, 1)]), 1),
        (with(&[(0, 4, 2), (1, 6, 1)]), 0),
        (with(&[(0, 4, 1), (1, 6, 1), (2, 2, 1)]), 2),
    ];
    for (order, axis) in cases {
        let refused = Err(Error::NotAnOrder { side: "destination", axis });
        assert_eq!(relayout(&shape, &dense, &order, &[0]), refused);
    }
    assert_eq!(relayout(&shape, &dense, &dense, &[]), Err(Error::NoElementBytes));
    let huge = with(&[(0, usize::MAX, 1), (1, 6, 1)]);
    assert_eq!(relayout(&shape, &dense, &huge, &[0]), Err(Error::OrderTooLarge { side: "destination" }));
}

#[test]
fn moves_that_no_strides_describe_are_refused() {
    let shape = [1 << 26];
    let order = |block| Order::blocked(&[shape[0]], 0, block);
    let mut shuffled = order(2);
    shuffled.digits.reverse();
    let refused = relayout(&shape, &order(1), &shuffled, &[0]);
    assert!(matches!(refused, Err(Error::Scattered { .. })), "{refused:?}");
}
