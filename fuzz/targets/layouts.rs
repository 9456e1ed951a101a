//! Layouts: any text, and drawn layouts on drawn shapes. What is printed is read back; offsets and coordinates undo each other; a
//! transpose and its inverse; maps compose; plans of moves agree with the maps.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use relayout_codegen::{Options, Order, relayout, run_relayout};
use relayout_fuzz::memory::{Bound, bounded};
use relayout_fuzz::pieces;
use relayout_ir::dim::Dim;
use relayout_ir::layout::storage::{StorageId, StorageView};
use relayout_ir::layout::{Factor, IndexMap, Layout, LayoutNames, Segment};

/// Shapes are small here, so that all elements are looked at; a text may say a segment list of a thousand parts in a few bytes.
const BOUND: Bound = Bound { per_byte: 4 << 10, free: 16 << 20 };

const PIECES: &[&str] = &[
    "N",
    "C",
    "H",
    "W",
    "D",
    "O",
    "I",
    "M",
    "a",
    "b",
    "c",
    "n",
    "o",
    "i",
    "x",
    "16",
    "8",
    "4",
    "2",
    "1",
    "0",
    "3",
    " ",
    "/",
    "%",
    "[",
    "]",
    ":",
    ",",
    "*",
    "5:8",
    "2:3*2",
    "16c",
    "4096",
    "18446744073709551615",
    "9223372036854775808",
    "F",
    "f4",
    "scalar",
    "nChw16c",
    "OIhw4i16o4i",
    "any",
    "goihw",
];

#[derive(Debug)]
struct Case {
    text: String,
    custom: String,
    shape: Vec<i64>,
    layouts: [Layout; 3],
    perm: Vec<usize>,
    to: Vec<i64>,
    elem: usize,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let text = pieces::text(PIECES, 12, u)?;
        let custom = pieces::text(&["N", "C", "H", "W", "a", "b", "x"], 5, u)?;
        let shape: Vec<i64> = (0..u.int_in_range(0..=4)?).map(|_| u.int_in_range(0..=6)).collect::<Result<_>>()?;
        let layouts = [layout(&shape, u)?, layout(&shape, u)?, layout(&shape, u)?];
        let mut perm: Vec<usize> = (0..shape.len()).collect();
        for at in (1..perm.len()).rev() {
            perm.swap(at, u.int_in_range(0..=at)?);
        }
        let to = (0..u.int_in_range(0..=5)?).map(|_| u.int_in_range(-1..=12)).collect::<Result<_>>()?;
        let elem = u.int_in_range(1..=9)?;
        Ok(Case { text, custom, shape, layouts, perm, to, elem })
    }
}

/// A layout that may not fit: then it is row-major.
fn layout(shape: &[i64], u: &mut Unstructured<'_>) -> Result<Layout> {
    let mut factors = Vec::new();
    let mut maps = Vec::new();
    for (axis, &extent) in shape.iter().enumerate() {
        let (axis, mut div) = (axis as u8, 1);
        for _ in 0..u.int_in_range(0..=2)? {
            let block = u.int_in_range(2..=4)?;
            factors.push(Factor::inner(axis, div, block));
            div *= block;
        }
        factors.push(Factor::outer(axis, div));
        if extent > 0 && u.ratio(1, 4)? {
            let (extent, pad) = (extent as u64, u.int_in_range(0..=3)?);
            let cut = u.int_in_range(0..=extent - 1)?;
            let mut segments = vec![Segment { len: extent - cut, slots: extent - cut + pad }];
            if cut > 0 {
                segments.push(Segment { len: cut, slots: cut });
            }
            if u.ratio(3, 4)? {
                let slots: u64 = segments.iter().map(|s| s.slots).sum();
                segments.last_mut().expect("there is one").slots += slots.next_multiple_of(div) - slots;
            }
            maps.push((axis, segments));
        }
    }
    for at in (1..factors.len()).rev() {
        factors.swap(at, u.int_in_range(0..=at)?);
    }
    Ok(Layout::new(shape.len(), factors, maps).unwrap_or_else(|_| Layout::row_major(shape.len())))
}

fuzz_target!(|case: Case| bounded(&BOUND, case.text.len(), || {
    spelled(&case);
    for layout in &case.layouts {
        prints(layout);
        binds(layout, &case);
    }
    composes(&case);
    moves(&case);
}));

fn spelled(case: &Case) {
    if let Ok(layout) = case.text.parse::<Layout>() {
        prints(&layout);
        // Whatever the shape: an answer or an error.
        let shapes =
            [vec![i64::MAX; layout.rank()], vec![1; layout.rank()], vec![7; layout.rank()], vec![0; layout.rank()]];
        for shape in shapes.iter().chain([&case.to, &case.shape]) {
            let _ = layout.bind(shape).map(|bound| {
                (bound.strides_bits(u32::MAX), bound.axis_strides(), bound.offset(&[]), bound.coordinate(0))
            });
            let dims: Vec<Dim> = shape.iter().map(|&extent| Dim::from(extent)).collect();
            let _ = (layout.canonical(&dims), layout.storage_elems(&dims), layout.reshape(&dims, &[]));
            let _ = StorageView::new(StorageId(0), &layout, shape);
        }
        let _ = layout.transpose(&case.perm);
    }
    if let Some(names) = LayoutNames::custom(&case.custom) {
        let read = Layout::parse_with(&case.text, &names);
        // A text may name fewer axes than there are letters; then it is printed with others.
        if let Some(layout) = read.ok().filter(|layout| layout.rank() == case.custom.len()) {
            let text = layout.display(&names).to_string();
            assert_eq!(Layout::parse_with(&text, &names).as_ref(), Ok(&layout), "{text}");
        }
    }
}

fn prints(layout: &Layout) {
    let text = layout.to_string();
    assert_eq!(text.parse::<Layout>().as_ref(), Ok(layout), "{text}");
    let json = serde_json::to_string(layout).expect("it has a JSON form");
    assert_eq!(&serde_json::from_str::<Layout>(&json).expect("it is read back"), layout);
    let names = LayoutNames::default_for(layout.rank());
    let general = layout.general_form(&names);
    assert_eq!(Layout::parse_with(&general, &names).as_ref(), Ok(layout), "{general}");
}

fn binds(layout: &Layout, case: &Case) {
    let Ok(bound) = layout.bind(&case.shape) else { return };
    let mut elements = 0;
    for offset in 0..bound.storage_elems() {
        if let Some(coordinate) = bound.coordinate(offset) {
            assert_eq!(bound.offset(&coordinate), Some(offset), "{layout} of {:?}", case.shape);
            elements += 1;
        }
    }
    assert_eq!(elements, bound.logical_elems(), "{layout} of {:?}", case.shape);
    let view = layout.transpose(&case.perm).expect("it is a permutation");
    let mut inverse = vec![0; case.perm.len()];
    case.perm.iter().enumerate().for_each(|(new, &old)| inverse[old] = new);
    assert_eq!(view.transpose(&inverse).as_ref(), Ok(layout));
    let dims = |shape: &[i64]| shape.iter().map(|&extent| Dim::from(extent)).collect::<Vec<_>>();
    let canonical = layout.canonical(&dims(&case.shape)).bind(&case.shape).expect("the same layout");
    assert_eq!(
        (0..bound.storage_elems()).map(|at| bound.coordinate(at)).collect::<Vec<_>>(),
        (0..canonical.storage_elems()).map(|at| canonical.coordinate(at)).collect::<Vec<_>>(),
        "{layout}"
    );
    // A reshape to any shape: refused, or the elements in the same order at the same places.
    if let Ok(view) = layout.reshape(&dims(&case.shape), &dims(&case.to)) {
        let seen = view.bind(&case.to).expect("a reshape that is not refused fits");
        let (a, b) = (linear(&case.shape, &bound), linear(&case.to, &seen));
        assert_eq!(a, b, "{layout} {:?} -> {view} {:?}", case.shape, case.to);
    }
}

/// Which element, in row-major order, each slot has.
fn linear(shape: &[i64], bound: &relayout_ir::layout::BoundLayout) -> Vec<Option<u64>> {
    let index = |coordinate: &[u64]| coordinate.iter().zip(shape).fold(0, |at, (&i, &extent)| at * extent as u64 + i);
    (0..bound.storage_elems()).map(|at| bound.coordinate(at).map(|coordinate| index(&coordinate))).collect()
}

fn composes(case: &Case) {
    let [a, b, c] = &case.layouts;
    let map = |from, to| IndexMap::new(from, to, &case.shape).ok();
    let (Some(ab), Some(bc), Some(ac)) = (map(a, b), map(b, c), map(a, c)) else { return };
    assert_eq!(ab.then(&bc).as_ref(), Some(&ac));
    for at in 0..=ab.ends().0.storage_elems() {
        let there = ab.apply(at);
        assert_eq!(there.and_then(|at| bc.apply(at)), ac.apply(at));
        assert!(there.is_none_or(|there| ab.inverse().apply(there) == Some(at)));
    }
    let dims: Vec<Dim> = case.shape.iter().map(|&extent| Dim::from(extent)).collect();
    let _ = a.common_refinement(b, &dims);
    assert_eq!(a.equivalent(b, &dims), b.equivalent(a, &dims), "{a} and {b} of {:?}", case.shape);
}

/// A plan between two layouts moves as the map says, and fills padding.
fn moves(case: &Case) {
    let [a, b, _] = &case.layouts;
    let (Ok(from), Ok(to)) = (Order::new(a, &case.shape), Order::new(b, &case.shape)) else { return };
    let Ok(map) = IndexMap::new(a, b, &case.shape) else { return };
    let shape: Vec<usize> = case.shape.iter().map(|&extent| extent as usize).collect();
    let pad = vec![0xEE; case.elem];
    let Ok(plan) = relayout(&shape, &from, &to, &pad) else { return };
    let src: Vec<u8> = (0..plan.from_bytes()).map(|at| (at % 233) as u8).collect();
    let mut dst = vec![0xAA; plan.to_bytes()];
    run_relayout(&src, &mut dst, &plan, &Options::default()).expect("the buffers fit");
    let expected: Vec<u8> = map
        .gather()
        .flat_map(|at| match at {
            Some(at) => src[at as usize * case.elem..][..case.elem].to_vec(),
            None => pad.clone(),
        })
        .collect();
    assert!(dst == expected, "{a} -> {b} of {:?}, {} bytes an element", case.shape, case.elem);
    let text = serde_json::to_string(&plan).expect("it has a JSON form");
    assert_eq!(serde_json::from_str::<relayout_codegen::Relayout>(&text).expect("it is read back"), plan);
}
