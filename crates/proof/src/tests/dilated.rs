//! Convolutions of the places of blocks, which are one convolution that is dilated.

use super::volumes::ints;
use super::*;

const FILTERS: usize = 3;

fn weights() -> Vec<f32> {
    (0..FILTERS * 6 * 9).map(|n| ((n * 31 + 7) % 53) as f32 * 0.1 - 2.0).collect()
}

/// What a model of blocks is told.
#[derive(Clone, Copy)]
struct Told {
    block: i64,
    mode: &'static str,
    pads: [i64; 4],
    cut: [i64; 4],
    /// The order of axes before the cut, and between.
    perms: [&'static [i64]; 2],
    stride: i64,
}

/// `x` [2, 6, 4, 5] padded, cut into blocks of 2, convolved, joined, cropped.
const RIGHT: Told =
    Told { block: 2, mode: "DCR", pads: [2, 2, 2, 3], cut: [0, 0, 4, 5], perms: [&[1, 0, 2, 3]; 2], stride: 1 };

fn of_blocks(told: Told) -> Model {
    let size = |n: i64| vec![("blocksize", Attr::Int(n))];
    let mode = [size(told.block), vec![("mode", Attr::Text(told.mode.as_bytes().to_vec()))]].concat();
    let lines: &[Line<'_>] = &[
        ("p", "Pad", &["x", "more"], vec![]),
        ("s", "Transpose", &["p"], perm(told.perms[0])),
        ("d", "SpaceToDepth", &["s"], size(2)),
        ("t", "Transpose", &["d"], perm(told.perms[1])),
        ("c", "Conv", &["t", "w"], vec![("strides", Attr::Ints(vec![told.stride; 2]))]),
        ("u", "Transpose", &["c"], perm(&[1, 0, 2, 3])),
        ("j", "DepthToSpace", &["u"], mode),
        ("v", "Transpose", &["j"], perm(&[1, 0, 2, 3])),
        ("k", "Slice", &["v", "starts", "ends", "axes"], vec![]),
        ("y", "Relu", &["k"], vec![]),
    ];
    let [top, left, bottom, right] = told.pads;
    let lists: &[(&str, &[i64], &[i64])] = &[
        ("more", &[8], &[0, 0, top, left, 0, 0, bottom, right]),
        ("starts", &[2], &told.cut[..2]),
        ("ends", &[2], &told.cut[2..]),
        ("axes", &[2], &[2, 3]),
    ];
    ints(model(lines, &[("w", &[3, 6, 3, 3], weights())]), lists)
}

fn dilated(dilation: i64, pads: [i64; 4]) -> Model {
    let told = vec![("dilations", Attr::Ints(vec![dilation; 2])), ("pads", Attr::Ints(pads.to_vec()))];
    let lines: &[Line<'_>] = &[("c", "Conv", &["x", "w"], told), ("y", "Relu", &["c"], vec![])];
    model(lines, &[("w", &[3, 6, 3, 3], weights())])
}

#[test]
fn the_places_of_blocks_may_be_convolved_by_themselves() {
    let found = verdict(&of_blocks(RIGHT), &dilated(2, [2; 4]), &Proof::default());
    assert!(found.holds(), "{found}");
    assert!(holds(&dilated(2, [2; 4]), &of_blocks(RIGHT)));
    // More before, and so much more taken.
    let more = Told { pads: [3, 4, 3, 3], cut: [1, 2, 5, 7], ..RIGHT };
    assert!(holds(&of_blocks(more), &dilated(2, [2; 4])));
    let less = Told { pads: [2, 2, 2, 3], cut: [1, 0, 4, 5], ..RIGHT };
    assert!(holds(&of_blocks(less), &dilated(2, [1, 2, 2, 2])));
}

#[test]
fn no_other_blocks_pads_or_parts_are_dilated() {
    let right = dilated(2, [2; 4]);
    let others = [
        Told { mode: "CRD", ..RIGHT },
        Told { pads: [3, 2, 1, 3], ..RIGHT },
        Told { pads: [2, 3, 2, 2], ..RIGHT },
        Told { pads: [1, 2, 3, 3], ..RIGHT },
        Told { cut: [1, 0, 5, 5], pads: [2, 2, 4, 3], ..RIGHT },
        Told { cut: [0, 1, 4, 6], ..RIGHT },
        Told { perms: [&[0, 1, 2, 3]; 2], ..RIGHT },
        Told { stride: 2, pads: [4, 4, 4, 5], ..RIGHT },
        Told { block: 1, ..RIGHT },
    ];
    for (at, other) in others.into_iter().enumerate() {
        assert!(!holds(&of_blocks(other), &right), "{at}");
        assert!(!holds(&right, &of_blocks(other)), "{at}");
    }
    for (dilation, pads) in [(1, [1; 4]), (2, [1, 2, 3, 2]), (2, [2, 3, 2, 1]), (3, [3; 4])] {
        assert!(!holds(&of_blocks(RIGHT), &dilated(dilation, pads)), "{dilation} {pads:?}");
    }
}

#[test]
fn a_part_of_what_a_convolution_makes_has_less_padding() {
    let part = |pads: [i64; 4], stride: i64, cut: [i64; 4]| {
        let told = vec![("pads", Attr::Ints(pads.to_vec())), ("strides", Attr::Ints(vec![stride; 2]))];
        let lines: &[Line<'_>] = &[
            ("c", "Conv", &["x", "w"], told),
            ("k", "Slice", &["c", "starts", "ends", "axes"], vec![]),
            ("y", "Relu", &["k"], vec![]),
        ];
        let lists: &[(&str, &[i64], &[i64])] =
            &[("starts", &[2], &cut[..2]), ("ends", &[2], &cut[2..]), ("axes", &[2], &[2, 3])];
        ints(model(lines, &[("w", &[3, 6, 3, 3], weights())]), lists)
    };
    // Of rows 4 + 2 + 2 - 2 = 6, of columns 7.
    assert!(holds(&part([2; 4], 1, [1, 1, 5, 6]), &dilated(1, [1; 4])));
    assert!(!holds(&part([2; 4], 1, [0, 1, 4, 6]), &dilated(1, [1; 4])));
    assert!(!holds(&part([2; 4], 1, [2, 1, 6, 6]), &dilated(1, [1; 4])));
    assert!(holds(&part([2; 4], 1, [0, 1, 4, 6]), &dilated(1, [2, 1, 0, 1])));
    // Of rows (4 + 4 - 3) / 2 + 1 = 3, of columns 4.
    assert!(holds(&part([2; 4], 2, [1, 0, 3, 4]), &part([0, 2, 1, 2], 2, [0, 0, 9, 9])));
    assert!(!holds(&part([2; 4], 2, [1, 0, 3, 4]), &part([1, 2, 1, 2], 2, [0, 0, 9, 9])));
}

/// The model with `x` of rows and columns of these extents.
fn of_extent(mut made: Model, extents: [i64; 2]) -> Model {
    let dims = [2, 6, extents[0], extents[1]].map(DeclaredDim::Known).to_vec();
    Rc::make_mut(&mut made.graph).inputs[0].dims = Some(dims);
    made
}

#[test]
fn blocks_of_one_place_are_dilated_too() {
    for (extents, pads) in [([1, 1], [2, 2, 3, 3]), ([1, 5], [2, 2, 3, 3]), ([4, 1], [2, 2, 2, 3])] {
        let told = Told { pads, cut: [0, 0, extents[0], extents[1]], ..RIGHT };
        let (a, right) = (of_extent(of_blocks(told), extents), of_extent(dilated(2, [2; 4]), extents));
        let found = verdict(&a, &right, &Proof::default());
        assert!(found.holds(), "{extents:?}: {found}");
        assert!(holds(&right, &a), "{extents:?}");
        for other in [[1, 2, 3, 2], [2, 3, 2, 1], [3, 2, 1, 2]] {
            assert!(!holds(&a, &of_extent(dilated(2, other), extents)), "{extents:?} {other:?}");
        }
        let later = Told { cut: [1, 0, extents[0] + 1, extents[1]], ..told };
        assert!(!holds(&of_extent(of_blocks(later), extents), &right), "{extents:?}: the place behind");
    }
}
