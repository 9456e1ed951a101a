//! Linear Resizes as products with matrices, and beside each what is none.

use super::volumes::ints;
use super::*;

const MODES: [&str; 5] = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"];

/// Names, extents and numbers.
type Constants = Vec<(&'static str, Vec<i64>, Vec<f32>)>;

/// Where a place of the result lies in the operand's line, in 64 bits.
fn coordinate(mode: &str, [from, to]: [i64; 2], scale: f64, at: i64) -> f64 {
    let [at, from, to] = [at, from, to].map(|n| n as f64);
    let half = (at + 0.5) / scale - 0.5;
    match mode {
        "half_pixel" | "pytorch_half_pixel" => half,
        "half_pixel_symmetric" => from / 2.0 * (1.0 - to / (scale * from)) + half,
        "align_corners" => at * (from - 1.0) / (to - 1.0),
        _ => at / scale,
    }
}

/// The matrix of a line, row by row.
fn matrix(mode: &str, [from, to]: [i64; 2], scale: Option<f64>) -> Vec<f32> {
    let scale = scale.unwrap_or(to as f64 / from as f64);
    let row = |at| {
        let place = coordinate(mode, [from, to], scale, at).clamp(0.0, (from - 1) as f64);
        (0..from).map(move |of| (1.0 - (place - of as f64).abs()).max(0.0) as f32)
    };
    (0..to).flat_map(row).collect()
}

fn turned(list: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| list.iter().skip(column).step_by(columns).copied()).collect()
}

fn linear(mode: &str) -> Vec<(&'static str, Attr)> {
    let text = |text: &str| Attr::Text(text.as_bytes().to_vec());
    vec![("mode", text("linear")), ("coordinate_transformation_mode", text(mode)), ("antialias", Attr::Int(0))]
}

/// A model of these lines over constants, lists, and `i`, which is `x` with extents of its own, or a part of it.
fn net(image: &[i64], lines: &[Line<'_>], constants: &Constants, lists: &[(&str, &[i64])]) -> Model {
    let constants: Vec<(&str, &[i64], Vec<f32>)> =
        constants.iter().map(|(name, dims, list)| (*name, dims.as_slice(), list.clone())).collect();
    let whole = ("i", "Reshape", ["x", "image"].as_slice(), vec![]);
    let part = ("i", "Slice", ["x", "first", "end"].as_slice(), vec![]);
    let all = [&[if image == IMAGE { part } else { whole }], lines].concat();
    let ends: [(&str, &[i64]); 3] = [("image", image), ("first", &[0; 4]), ("end", &IMAGE)];
    let lists: Vec<(&str, &[i64])> = [&ends, lists].concat();
    let sizes: Vec<[i64; 1]> = lists.iter().map(|(_, list)| [list.len() as i64]).collect();
    let lists: Vec<(&str, &[i64], &[i64])> =
        lists.iter().zip(&sizes).map(|((name, list), size)| (*name, size.as_slice(), *list)).collect();
    ints(model(&all, &constants), &lists)
}

/// The Resize of images to an extent of rows and one of columns, by scales where there are any.
fn resize(image: [i64; 4], to: [i64; 2], scales: Option<[f32; 2]>, mode: &str) -> Model {
    let sizes = [image[0], image[1], to[0], to[1]];
    let scales = scales.map(|[rows, columns]| ("s", vec![4], vec![1.0, 1.0, rows, columns]));
    let operands: &[&str] = if scales.is_some() { &["i", "", "s"] } else { &["i", "", "", "sizes"] };
    net(&image, &[("y", "Resize", operands, linear(mode))], &scales.into_iter().collect(), &[("sizes", &sizes)])
}

/// How the products are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// Channels last, of flattened rows, as `ort-nhwc` does.
    ChannelsLast,
    /// As the image lies, columns first.
    AsItLies,
    ByLetters,
    /// Batch, channels and rows are one axis of a plain product.
    Flat,
}

const ALL: [Written; 4] = [Written::ChannelsLast, Written::AsItLies, Written::ByLetters, Written::Flat];

/// Products with two matrices.
fn products(written: Written, image: [i64; 4], to: [i64; 2], [rows, columns]: [&[f32]; 2]) -> Model {
    let [n, c, h, w] = image;
    let [of_rows, of_columns] = [rows.to_vec(), columns.to_vec()];
    let by_columns = ("b", vec![w, to[1]], turned(columns, w as usize));
    let plain: Constants = vec![("a", vec![to[0], h], of_rows), ("b", vec![to[1], w], of_columns)];
    let equation = |text: &str| vec![("equation", Attr::Text(text.as_bytes().to_vec()))];
    let last: &[Line<'_>] = &[
        ("t", "Transpose", &["i"], perm(TO_LAST)),
        ("f", "Reshape", &["t", "flat"], vec![]),
        ("p", "MatMul", &["a", "f"], vec![]),
        ("g", "Reshape", &["p", "apart"], vec![]),
        ("q", "MatMul", &["b", "g"], vec![]),
        ("y", "Transpose", &["q"], perm(TO_FIRST)),
    ];
    match written {
        Written::ChannelsLast => net(&image, last, &plain, &[("flat", &[0, h, w * c]), ("apart", &[n, to[0], w, c])]),
        Written::AsItLies => {
            let lines: &[Line<'_>] = &[("p", "MatMul", &["i", "b"], vec![]), ("y", "MatMul", &["a", "p"], vec![])];
            net(&image, lines, &vec![plain[0].clone(), by_columns], &[])
        }
        Written::ByLetters => {
            let lines: &[Line<'_>] = &[
                ("p", "Einsum", &["i", "a"], equation("nchw,oh->wocn")),
                ("y", "Einsum", &["b", "p"], equation("vw,wocn->ncov")),
            ];
            net(&image, lines, &plain, &[])
        }
        Written::Flat => {
            let lines: &[Line<'_>] = &[
                ("f", "Reshape", &["i", "flat"], vec![]),
                ("p", "Gemm", &["f", "b"], vec![]),
                ("g", "Reshape", &["p", "apart"], vec![]),
                ("y", "MatMul", &["a", "g"], vec![]),
            ];
            let apart = [n, c, h, to[1]];
            net(&image, lines, &vec![plain[0].clone(), by_columns], &[("flat", &[n * c * h, w]), ("apart", &apart)])
        }
    }
}

fn by_products(a: &Model, b: &Model) -> bool {
    let found = verdict(a, b, &Proof::default());
    let named =
        matches!(&found, Verdict::WithLemmas { lemmas, .. } if lemmas.contains_key("interpolation as products"));
    assert_eq!(named, found.holds(), "{found}");
    named
}

/// Without the last column of `x`.
const IMAGE: [i64; 4] = [2, 6, 4, 4];

#[test]
fn a_linear_resize_is_products_in_every_mode_and_order() {
    for mode in MODES {
        for (to, scales) in [
            ([7, 11], None),
            ([2, 9], None),
            ([4, 8], None),
            ([8, 6], Some([2.0, 1.5])),
            ([6, 5], Some([1.6, 1.3])),
            ([3, 7], Some([0.75, 1.75])),
        ] {
            let exact = scales.is_none_or(|scales: [f32; 2]| (0..2).all(|at| (scales[at] * 4.0).fract() == 0.0));
            let a = resize(IMAGE, to, scales, mode);
            let line = |at: usize| matrix(mode, [4, to[at]], scales.map(|scales| f64::from(scales[at])));
            let [rows, columns] = [line(0), line(1)];
            for written in ALL {
                let b = products(written, IMAGE, to, [&rows, &columns]);
                assert_eq!(
                    by_products(&a, &b),
                    exact || mode != "align_corners",
                    "{mode} {to:?} {scales:?} {written:?}"
                );
            }
        }
    }
}

#[test]
fn matrices_of_other_resizes_are_refused() {
    let scales = [1.5f32, 1.6];
    for mode in MODES {
        let mine = |scale: f32| matrix(mode, [4, 6], Some(f64::from(scale)));
        let told = if mode == "align_corners" { [1.5; 2] } else { scales };
        let (a, [rows, columns]) = (resize(IMAGE, [6, 6], Some(told), mode), told.map(mine));
        let upside_down: Vec<f32> = rows.chunks(4).rev().flatten().copied().collect();
        let from_below: Vec<f32> = rows.chunks(4).flat_map(|row| row.iter().rev().copied()).collect();
        let off = |list: &[f32], by: usize| -> Vec<f32> { list.iter().cycle().skip(by).take(24).copied().collect() };
        let doubled: Vec<f32> = rows.iter().map(|weight| weight * 2.0).collect();
        let mut wrong = vec![upside_down, from_below, off(&rows, 4), off(&rows, 1), off(&rows, 23), doubled];
        wrong.extend([1.51, 1.4999].map(mine).into_iter().filter(|_| mode != "align_corners"));
        wrong.extend(MODES.map(|other| matrix(other, [4, 6], Some(f64::from(told[0])))));
        wrong.retain(|other| differ(other, &rows));
        for written in ALL {
            assert!(by_products(&a, &products(written, IMAGE, [6, 6], [&rows, &columns])), "{mode} {written:?}");
            if differ(&rows, &columns) {
                assert!(!by_products(&a, &products(written, IMAGE, [6, 6], [&columns, &rows])), "{mode} {written:?}");
            }
            for other in &wrong {
                let b = products(written, IMAGE, [6, 6], [other, &columns]);
                assert!(!by_products(&a, &b), "{mode} {written:?} {other:?}");
            }
        }
        // The same matrices along other axes, of an image that has as many of each.
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["i"], perm(&[0, 1, 3, 2])),
            ("p", "MatMul", &["a", "t"], vec![]),
            ("y", "MatMul", &["p", "b"], vec![]),
        ];
        let b = vec![("a", vec![6, 4], rows.clone()), ("b", vec![4, 6], turned(&columns, 4))];
        assert!(!by_products(&a, &net(&IMAGE, lines, &b, &[])), "{mode}");
    }
}

/// Whether lists differ by more than they are rounded.
fn differ(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).any(|(a, b)| (a - b).abs() > 5e-8)
}

/// Numbers that follow from each other.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}

/// A matrix with one change.
fn changed(list: &[f32], columns: usize, drawn: &mut Drawn) -> Vec<f32> {
    let (mut list, at) = (list.to_vec(), drawn.below(list.len()));
    let row = at / columns * columns;
    match drawn.below(7) {
        0 => list[at] += 1e-7,
        1 => list[at] -= 3e-7,
        2 => list[at] = -list[at],
        3 => list[at] = 0.0,
        4 => list.swap(at, row + drawn.below(columns)),
        5 => list[row..row + columns].rotate_left(1),
        _ => list.swap(at, drawn.below(columns)),
    }
    list
}

#[test]
fn drawn_changes_of_weights_are_refused() {
    let (mut drawn, mut refused) = (Drawn(7), 0);
    for mode in MODES {
        let a = resize(IMAGE, [7, 6], None, mode);
        let lines = [7, 6].map(|to| matrix(mode, [4, to], None));
        for round in 0..48 {
            let mut other = lines.clone();
            other[round % 2] = changed(&other[round % 2], 4, &mut drawn);
            if (0..2).any(|at| differ(&other[at], &lines[at])) {
                let b = products(ALL[round % 4], IMAGE, [7, 6], [&other[0], &other[1]]);
                assert!(!by_products(&a, &b), "{mode} {other:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 120, "{refused}");
}

#[test]
fn weights_may_be_rounded_and_no_more() {
    let a = resize(IMAGE, [8, 6], None, "half_pixel");
    let columns = matrix("half_pixel", [4, 6], None);
    let with = |rows: &[f32]| by_products(&a, &products(Written::AsItLies, IMAGE, [8, 6], [rows, &columns]));
    // Quarters, which need no rounding.
    let rows = matrix("half_pixel", [4, 8], None);
    assert!(with(&rows));
    for at in (0..rows.len()).filter(|at| rows[*at] != 0.0) {
        for bits in [rows[at].to_bits() + 1, rows[at].to_bits() - 2] {
            let mut other = rows.clone();
            other[at] = f32::from_bits(bits);
            assert!(!with(&other), "{at}");
        }
    }
}

#[test]
fn halves_are_rounded_to_halves() {
    let halves = |list: &[f32], by: f32| -> Vec<u8> {
        list.iter().flat_map(|x| half::f16::from_f32(x * by).to_le_bytes()).collect()
    };
    let of = |lines: &[Line<'_>], by: f32| {
        let cast = [("i", "Cast", ["x"].as_slice(), vec![("to", Attr::Int(10))])];
        let mut made = ints(model(&[&cast, lines].concat(), &[]), &[("sizes", &[4], &[2, 6, 7, 5])]);
        let data = halves(&matrix("asymmetric", [4, 7], None), by).into();
        let tensor = Tensor { dims: vec![7, 4], dtype: 10, data };
        Rc::make_mut(&mut made.graph).initializers.push(("a".to_owned(), tensor));
        made
    };
    let a = of(&[("y", "Resize", &["i", "", "", "sizes"], linear("asymmetric"))], 1.0);
    let b = |by| of(&[("y", "MatMul", &["a", "i"], vec![])], by);
    assert!(by_products(&a, &b(1.0)));
    assert!(!by_products(&a, &b(1.002)));
}

#[test]
fn two_resizes_may_share_a_product() {
    let resized = |of: [i64; 2]| -> Model {
        let [one, two] = of.map(|columns| [2, 6, 7, columns]);
        let lines: &[Line<'_>] = &[
            ("p", "Resize", &["i", "", "", "one"], linear("half_pixel")),
            ("q", "Resize", &["i", "", "", "two"], linear("half_pixel")),
            ("y", "Concat", &["p", "q"], axis(3)),
        ];
        net(&IMAGE, lines, &vec![], &[("one", &one), ("two", &two)])
    };
    let lines: &[Line<'_>] = &[
        ("r", "MatMul", &["a", "i"], vec![]),
        ("p", "MatMul", &["r", "b"], vec![]),
        ("q", "MatMul", &["r", "c"], vec![]),
        ("y", "Concat", &["p", "q"], axis(3)),
    ];
    let line = |to| matrix("half_pixel", [4, to], None);
    let constants = vec![
        ("a", vec![7, 4], line(7)),
        ("b", vec![4, 9], turned(&line(9), 4)),
        ("c", vec![4, 5], turned(&line(5), 4)),
    ];
    let products = net(&IMAGE, lines, &constants, &[]);
    assert!(by_products(&resized([9, 5]), &products));
    assert!(!by_products(&resized([5, 9]), &products));
}

#[test]
fn a_volume_is_three_products() {
    let (image, sizes) = ([2, 6, 2, 2, 5], [2, 6, 3, 4, 7]);
    let a =
        |mode| net(&image, &[("y", "Resize", &["i", "", "", "sizes"], linear(mode))], &vec![], &[("sizes", &sizes)]);
    let equation = |text: &str| vec![("equation", Attr::Text(text.as_bytes().to_vec()))];
    // Batch, channels, slices, rows and columns are n, k, d, h and w.
    let lines: &[Line<'_>] = &[
        ("p", "Einsum", &["b", "i"], equation("oh,nkdhw->kdnow")),
        ("q", "Einsum", &["p", "c"], equation("kdnow,vw->ovndk")),
        ("y", "Einsum", &["q", "a"], equation("ovndk,ed->nkeov")),
    ];
    let line = |from, to| matrix("asymmetric", [from, to], None);
    let constants = vec![("a", vec![3, 2], line(2, 3)), ("b", vec![4, 2], line(2, 4)), ("c", vec![7, 5], line(5, 7))];
    let b = net(&image, lines, &constants, &[]);
    assert!(by_products(&a("asymmetric"), &b));
    assert!(!by_products(&a("half_pixel"), &b));
}

#[test]
fn one_pixel_is_the_same_everywhere() {
    let image = [2, 60, 1, 2];
    let repeated = |to: [i64; 4]| net(&image, &[("y", "Expand", &["i", "to"], vec![])], &vec![], &[("to", &to)]);
    for mode in MODES {
        let resized = |to: [i64; 2]| resize(image, to, None, mode);
        let found = verdict(&resized([3, 2]), &repeated([2, 60, 3, 2]), &Proof::default());
        assert!(matches!(found, Verdict::Proved { .. }), "{mode}: {found}");
        let twice = |more| {
            net(
                &image,
                &[("t", "Tile", &["i", "by"], vec![]), ("y", "Resize", &["t", "", "", "to"], more)],
                &vec![],
                &[("by", &[1, 1, 3, 1]), ("to", &[2, 60, 3, 5])],
            )
        };
        assert!(holds(&resized([3, 5]), &twice(linear(mode))), "{mode}");
    }
    let cubic = vec![("mode", Attr::Text(b"cubic".to_vec()))];
    let cubic = net(&image, &[("y", "Resize", &["i", "", "", "to"], cubic)], &vec![], &[("to", &[2, 60, 3, 2])]);
    assert!(!holds(&cubic, &repeated([2, 60, 3, 2])));
}

#[test]
fn what_the_lemma_does_not_know_is_refused() {
    let (rows, columns) = (matrix("half_pixel", [4, 7], None), matrix("half_pixel", [4, 6], None));
    let products = products(Written::AsItLies, IMAGE, [7, 6], [&rows, &columns]);
    let with = |name: &'static str, attr: Attr| {
        let mut attrs = linear("half_pixel");
        attrs.retain(|(known, _)| *known != name);
        attrs.push((name, attr));
        net(&IMAGE, &[("y", "Resize", &["i", "", "", "to"], attrs)], &vec![], &[("to", &[2, 6, 7, 6])])
    };
    assert!(by_products(&with("antialias", Attr::Int(0)), &products));
    assert!(!by_products(&with("antialias", Attr::Int(1)), &products));
    assert!(!by_products(&with("exclude_outside", Attr::Int(1)), &products));
    for mode in ["nearest", "cubic"] {
        assert!(!by_products(&with("mode", Attr::Text(mode.as_bytes().to_vec())), &products), "{mode}");
    }
    // The other way round nothing is known.
    assert!(!by_products(&products, &with("antialias", Attr::Int(0))));
}
