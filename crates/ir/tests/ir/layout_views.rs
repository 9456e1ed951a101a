//! Transpose and reshape of layouts: figures, near misses, symbolic extents.

use crate::layout_common::{consts, dims, naive_storage, parse};
use relayout_ir::layout::{Layout, LayoutError, MAX_STORAGE_ELEMS, Refusal};

/// (layout, shape before, shape after, layout after).
const FREE: &[(&str, &str, &str, &str)] = &[
    ("NCHW", "2,64,3,3", "2,576", "ab"),
    ("NHWC", "2,64,3,3", "2,576", "a b%9 b/9"),
    ("NHWC", "2,64,3,3", "2,64,9", "a c b"),
    ("NCHW16c", "2,64,3,3", "2,64,9", "a b/16 c b%16"),
    ("NCHW16c", "2,64,3,3", "2,4,16,9", "N C W H"),
    ("NCHW16c", "2,64,3,3", "2,8,8,9", "N C/2 W C%2 H"),
    ("NHWC", "N,C,H,W", "N,C,H*W", "acb"),
    ("NHWC", "1,64,3,3", "1,64,9", "acb"),
    ("cab", "1,64,9", "1,64,3,3", "NHWC"),
    ("NHWC", "1,1,64,3", "1,64,3", "abc"),
    ("NHWC", "N,64,H,W", "N,64,1,H*W", "NHWC"),
    ("acb", "B,S,64", "B,S,4,16", "N H W C"),
    ("abc", "B,S,64", "B*S,64", "ab"),
    ("ab", "B*S,64", "B,S,64", "abc"),
    ("NHWC", "1,64,1,1", "1,64", "ab"),
    ("NHWC", "N,20,1,1", "N,20", "ab"),
    ("NCHW16c", "2,20,1,1", "2,20", "a b[20:32]"),
    ("NCHW16c", "2,20,3,3", "2,20,9", "a b/16 c b%16"),
    ("NCHW16c", "2,20,3,3", "2,5,4,9", "N C/4 W C%4 H"),
    ("N C[48:64] H W", "2,48,3,3", "2,3,16,9", "N C[3:4] H W"),
    ("N C[58:64,58:64] H W", "2,116,3,3", "2,2,58,9", "N C H[58:64] W"),
    ("N C H[58:64] W", "2,2,58,9", "2,116,9", "a b[58:64,58:64] c"),
    ("N C[1:4] H W", "2,1,3,3", "2,1,9", "a b[1:4] c"),
    ("N C[1:4] H W", "2,1,3,3", "2,9", "a b[9:36]"),
    ("NHWC", "N,C,H,W", "N,1,C,H,W", "NHWCD"),
    ("NHWC", "2,0,3,3", "0", "a"),
    ("N C/16 H W C%16", "N,C,H,W", "N,C,H*W", "a b/16 c b%16"),
    ("N C%4 C/4 H W", "2,8,3,3", "2,2,4,9", "N H C W"),
];

#[test]
fn nothing_is_reshaped_to_a_negative_extent() {
    let refused = parse("NHWC").reshape(&dims("2,0,3,3"), &consts(&[0, -1]));
    assert_eq!(refused, Err(Refusal::from(LayoutError::NegativeExtent { axis: 1, extent: -1 })));
}

#[test]
fn reshapes_along_boundaries_are_spelled() {
    for (layout, from, to, expected) in FREE {
        let got = parse(layout).reshape(&dims(from), &dims(to));
        let got = got.unwrap_or_else(|e| panic!("{layout} {from} -> {to}: {e}"));
        assert_eq!(got, parse(expected), "{layout} {from} -> {to}");
    }
}

/// (layout, shape before, shape after, what the refusal says).
const NEAR_MISSES: &[(&str, &str, &str, &str)] = &[
    ("NCHW", "2,64,3,3", "2,575", "changes the number of elements"),
    ("NHWC", "2,64,3,3", "128,3,3", ""),
    ("NCHW16c", "2,64,3,3", "2,32,2,9", ""),
    (
        "NCHW16c",
        "2,48,3,3",
        "2,2,24,9",
        "axis 2 of the result needs a boundary every 24 elements, and the stored digit of 16 has none",
    ),
    ("NCHW16c", "2,20,3,3", "2,2,10,9", "20 elements are stored in 32 slots; only the outermost digit may be padded"),
    ("N C[58:64] H W", "2,58,3,3", "2,2,29,9", "58 elements are stored in 64 slots"),
    ("N C[20:32,12:16] H W", "2,32,3,3", "2,2,16,9", "would cut a slot map with unequal segments"),
    ("NHWC", "N,C,H,W", "N,C*H*W", "would hold the symbolic digit"),
    ("NCHW", "N,C,H,W", "N,2,C,H,W", "cannot show that"),
    ("NCHW", "N,C,H,W", "N,2,C//2,H,W", "cannot show that"),
    ("N C H W[3:4]", "N,C,H,3", "N,C,H*3", "padding inside of a symbolic extent (3*H)"),
    ("NCHW16c", "N,C,H,W", "N*C,H,W", "the symbolic digit (C+15)//16 inside of another one"),
    ("N C H W[3:4]", "2,3,5000,3", "2,3,15000", "slot map of more than 4096 segments"),
    ("a[1:4]", "1", "", "vanish in a result without axes"),
    ("NCHW", "2,3", "6", "rank 4 does not fit a shape of rank 2"),
    ("N C[58:64] H W", "2,60,3,3", "2,60,9", "covers 58 indices, but the axis has 60"),
    ("N C[58:64] H W", "2,C,3,3", "2,C,9", "a slot map needs constants"),
    ("NCHW", "2,-3,3,3", "2,-3,9", "an extent is not negative"),
];

#[test]
fn near_misses_are_refused_with_their_reason() {
    for (layout, from, to, why) in NEAR_MISSES {
        match parse(layout).reshape(&dims(from), &dims(to)) {
            Ok(view) => assert!(why.is_empty(), "{layout} {from} -> {to} became {view}"),
            Err(refusal) => {
                let text = refusal.to_string();
                assert!(!why.is_empty() && text.contains(why), "{layout} {from} -> {to}: {text}");
            }
        }
    }
}

#[test]
fn a_channel_shuffle_is_a_relabelling() {
    let from = dims("N,116,28,28");
    let grouped = dims("N,2,58,28,28");
    let shuffled = Layout::row_major(4)
        .reshape(&from, &grouped)
        .and_then(|view| Ok(view.transpose(&[0, 2, 1, 3, 4])?))
        .and_then(|view| view.reshape(&dims("N,58,2,28,28"), &from))
        .unwrap();
    assert_eq!(shuffled.to_string(), "N C%2 C/2 H W");
    // With each half padded to whole blocks the shuffle can still be spelled.
    let padded = parse("N C[58:64,58:64] H W").reshape(&from, &grouped).unwrap();
    let padded = padded.transpose(&[0, 2, 1, 3, 4]).unwrap().reshape(&dims("N,58,2,28,28"), &from).unwrap();
    assert_eq!(padded.to_string(), "N C%2 C[116:128]/2 H W");
}

#[test]
fn a_window_partition_and_its_way_back_cancel() {
    let (image, windows) = (dims("B,8,14,8,14,C"), dims("B,112,112,C"));
    let plain = Layout::row_major(4);
    let split = plain.reshape(&windows, &image).unwrap().transpose(&[0, 1, 3, 2, 4, 5]).unwrap();
    let merged = split.reshape(&dims("B,8,8,14,14,C"), &dims("B*64,196,C"));
    // Windows are not rows: the batch of windows holds digits of H and W with W's inner one in between.
    assert_eq!(merged.map(|layout| layout.to_string()), Ok("a/8 b/14 a%8 b%14 c".to_owned()));
    let back = split.transpose(&[0, 1, 3, 2, 4, 5]).unwrap().reshape(&image, &windows).unwrap();
    assert!(back.is_row_major());
}

/// Figures of MegEngine's layout documents: a tensor of shape (2, 64, 3, 3) numbered in NCHW order.
#[test]
fn blocked_storage_begins_as_megengine_has_it() {
    let shape = [2, 64, 3, 3];
    let stored = |text: &str| -> Vec<u64> {
        naive_storage(&parse(text), &shape).into_iter().map(Option::unwrap_or_default).collect()
    };
    let bound = |text: &str, offset: u64| {
        let coordinate = parse(text).bind(&shape).unwrap().coordinate(offset).unwrap();
        coordinate.iter().zip([576, 9, 3, 1]).map(|(index, stride)| index * stride).sum::<u64>()
    };
    let nchw4 = stored("NCHW4");
    assert_eq!(nchw4[..8], [0, 9, 18, 27, 1, 10, 19, 28]);
    assert_eq!(nchw4[36..40], [36, 45, 54, 63]);
    assert_eq!(nchw4[576..580], [576, 585, 594, 603]);
    let chwn4 = stored("CHWN4");
    assert_eq!(chwn4[..12], [0, 9, 18, 27, 576, 585, 594, 603, 1, 10, 19, 28]);
    for offset in [0, 3, 4, 7, 8, 500, 1151] {
        assert_eq!(bound("NCHW4", offset), nchw4[offset as usize]);
        assert_eq!(bound("CHWN4", offset), chwn4[offset as usize]);
    }
}

#[test]
fn strides_are_those_of_numpy() {
    let bound = parse("NHWC").bind(&[2, 3, 4, 5]).unwrap();
    assert_eq!(bound.axis_strides().as_deref(), Some(&[60, 1, 15, 3][..]));
    assert_eq!(bound.strides_bytes(32).as_deref(), Ok(&[240, 60, 12, 4][..]));
    assert_eq!(bound.strides_bits(4).as_deref(), Ok(&[240, 60, 12, 4][..]));
    assert_eq!(bound.strides_bytes(4), Err(LayoutError::SubByteStride { stride_bits: 60 }));
    assert_eq!(bound.storage_bytes(4), Ok(60));
    // numpy.empty((0, 3)).strides is (24, 8) and numpy.empty((3, 0)).strides is (8, 8)
    assert_eq!(parse("ab").bind(&[0, 3]).unwrap().strides_bytes(64).as_deref(), Ok(&[24, 8][..]));
    assert_eq!(parse("ab").bind(&[3, 0]).unwrap().strides_bytes(64).as_deref(), Ok(&[8, 8][..]));
    assert_eq!(parse("ab").bind(&[3, 0]).unwrap().storage_elems(), 0);
    assert_eq!(parse("scalar").bind(&[]).unwrap().storage_elems(), 1);
}

#[test]
fn what_is_too_large_or_does_not_fit_is_an_error() {
    let huge = 1i64 << 62;
    assert_eq!(parse("a").bind(&[huge]), Err(LayoutError::TooLarge));
    assert_eq!(parse("ab").bind(&[huge, huge]), Err(LayoutError::TooLarge));
    assert_eq!(parse("ab").bind(&[0, huge]), Err(LayoutError::TooLarge));
    assert_eq!(parse("a").bind(&[MAX_STORAGE_ELEMS as i64]).unwrap().storage_bytes(128), Ok(1 << 63));
    assert_eq!(parse("a").bind(&[-1]), Err(LayoutError::NegativeExtent { axis: 0, extent: -1 }));
    assert_eq!(parse("ab").bind(&[1]), Err(LayoutError::RankMismatch { layout: 2, shape: 1 }));
    assert!(matches!(parse("a[3:4]").bind(&[4]), Err(LayoutError::SlotMapExtent { .. })));
    assert_eq!(parse("a").bind(&[4]).unwrap().storage_bytes(0), Err(LayoutError::ElementBits { bits: 0 }));
    assert_eq!(Layout::permutation(&[0, 0]), Err(LayoutError::RepeatedAxis { axis: 0 }));
    assert_eq!(Layout::permutation(&[0, 2]), Err(LayoutError::AxisOutOfRange { axis: 2, rank: 2 }));
    assert!(matches!(Layout::row_major(2).transpose(&[0]), Err(LayoutError::PermutationLength { .. })));
    let sum = parse("ab").reshape(&consts(&[i64::MAX, i64::MAX]), &consts(&[i64::MAX]));
    assert!(matches!(sum, Err(Refusal::ElementCount { .. })));
}

#[test]
fn size_one_axes_do_not_tell_layouts_apart() {
    let cases = [
        ("NCHW", "NHWC", "N,C,1,1", true),
        ("NCHW", "NHWC", "N,1,H,W", true),
        ("NCHW", "NHWC", "N,C,H,W", false),
        ("NCHW", "CHWN", "1,C,H,W", true),
        ("NCHW16c", "N C[20:32] H W", "2,20,1,1", true),
        ("NCHW16c", "NCHW", "2,32,1,1", true),
        ("NCHW16c", "NCHW", "2,16*K,1,1", true),
        ("NCHW16c", "NCHW", "2,K,1,1", false),
        ("NCHW4c", "NHWC", "2,4,3,3", true),
        ("NCHW4c", "N H W C[3:4]", "2,3,3,3", true),
        ("N C[1:4] H W", "N C H[1:4] W", "2,1,1,3", true),
        ("NCHW4c", "NCHW8c", "2,16,3,3", false),
        ("NCHW16c", "NHWC", "2,0,3,3", true),
        // Sizes, first steps and last indices agree; what lies between does not.
        ("N C[3:4,3:5,2:3] H W", "N C[3:5,3:4,2:3] H W", "2,8,3,3", false),
    ];
    for (left, right, shape, same) in cases {
        assert_eq!(parse(left).equivalent(&parse(right), &dims(shape)), same, "{left} {right} {shape}");
    }
    assert!(parse("CHWN").canonical(&dims("1,C,1,1")).is_row_major());
    assert_eq!(parse("N/2 C N%2 H W").canonical(&dims("4,1,H,W")), parse("NCHW"));
}

#[test]
fn symbolic_layouts_refine_to_the_digits_that_they_share() {
    let refined = parse("NCHW").common_refinement(&parse("NCHW16c"), &dims("N,64,H,W")).unwrap();
    let shown: Vec<String> = refined
        .digits
        .iter()
        .map(|d| format!("{} {} {} {}", d.axis, d.extent, d.left_stride, d.right_stride))
        .collect();
    assert_eq!(shown, ["0 N 64*H*W 64*H*W", "1 4 16*H*W 16*H*W", "1 16 H*W 1", "2 H W 16*W", "3 W 1 16"]);
    let ragged = parse("NCHW").common_refinement(&parse("NCHW16c"), &dims("1,20,3,3")).unwrap();
    assert_eq!(ragged.right_elems, dims("288")[0]);
    let clash = parse("a/16 a%16 b").common_refinement(&parse("a/24 b a%24"), &dims("96,2"));
    assert!(clash.is_ok(), "adjacent digits are one, so only one side has blocks: {clash:?}");
    let clash = parse("a/16 b a%16").common_refinement(&parse("a/24 b a%24"), &dims("96,2"));
    assert!(matches!(clash, Err(Refusal::NoRefinement { axis: 0, .. })), "{clash:?}");
    let shared = parse("N C[20:32,12:16] H W").common_refinement(&parse("N H W C[20:32,12:16]"), &dims("1,32,3,3"));
    assert_eq!(shared.unwrap().digits[0].extent, dims("48")[0]);
}
