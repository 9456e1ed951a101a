//! The library in ONNX Runtime: its results beside those of Transpose and of a slow reference, to the bit.

use crate::common::{Size, alone, environment, ints, known, library, model, node, relayout, text, unknown};
use half::{bf16, f16};
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{PrimitiveTensorElementType, TensorRef};
use relayout_onnx::proto::{AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto};
use std::fmt::Debug;

fn builder(with: bool, threads: usize, level: GraphOptimizationLevel) -> ort::Result<SessionBuilder> {
    let builder = SessionBuilder::new(environment())?.with_intra_threads(threads)?.with_optimization_level(level)?;
    Ok(if with { builder.with_operator_library(library())? } else { builder })
}

fn opened(bytes: &[u8], with: bool, level: GraphOptimizationLevel) -> Result<Session, String> {
    let _alone = alone();
    let mut builder = builder(with, 1, level).expect("the library registers");
    builder.commit_from_memory(bytes).map_err(|error| error.to_string())
}

/// With the library, and such that nothing that goes wrong while shapes are inferred is passed over.
fn session(bytes: &[u8], threads: usize) -> Session {
    let _alone = alone();
    let builder = builder(true, threads, GraphOptimizationLevel::Disable).expect("the library registers");
    let mut strict = builder.with_config_entry("session.strict_shape_type_inference", "1").expect("an entry");
    strict.commit_from_memory(bytes).expect("the model loads")
}

type Output<T> = (Vec<i64>, Vec<T>);

/// The outputs, in the model's order.
fn outputs<T>(session: &mut Session, shape: &[i64], data: &[T]) -> Result<Vec<Output<T>>, String>
where
    T: PrimitiveTensorElementType + Debug + Copy + 'static,
{
    let input = TensorRef::from_array_view((shape.to_vec(), data)).expect("data of the shape");
    let results = session.run(ort::inputs!["x" => input]).map_err(|error| error.to_string())?;
    let copied = |(_, value): (&str, ort::value::ValueRef<'_>)| {
        let (shape, data) = value.try_extract_tensor::<T>().expect("the type of the input");
        (shape.to_vec(), data.to_vec())
    };
    Ok(results.iter().map(copied).collect())
}

fn elems(shape: &[i64]) -> usize {
    shape.iter().map(|&dim| usize::try_from(dim).expect("a size")).product()
}

/// The same numbers each time, different ones for each seed.
fn scattered(seed: usize) -> impl FnMut(usize) -> usize {
    let mut state = seed as u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

fn permutations(rank: usize) -> Vec<Vec<i64>> {
    let Some(last) = rank.checked_sub(1) else { return vec![Vec::new()] };
    let insert = |perm: Vec<i64>| {
        (0..=last).map(move |at| {
            let mut longer = perm.clone();
            longer.insert(at, last as i64);
            longer
        })
    };
    permutations(last).into_iter().flat_map(insert).collect()
}

/// A model with both ops, and what they give for each of the shapes.
fn beside_transpose<T>(
    element: i32,
    dims: &[Size],
    perm: &[i64],
    shapes: &[&[i64]],
    threads: usize,
    make: fn(usize) -> T,
) where
    T: PrimitiveTensorElementType + Debug + Copy + PartialEq + 'static,
{
    let perm = || vec![ints("perm", perm)];
    let nodes = vec![node("", "Transpose", "want", perm()), relayout("got", perm())];
    let mut session = session(&model(element, Some(dims), nodes, Vec::new()), threads);
    for shape in shapes {
        let data: Vec<T> = (0..elems(shape)).map(make).collect();
        let found = outputs(&mut session, shape, &data).expect("it runs");
        assert!(found[0] == found[1], "type {element}, {shape:?} by {:?}, {threads} threads", perm()[0].ints);
        assert_eq!(found[0].1.len(), data.len());
    }
}

#[test]
fn all_permutations_of_four_axes_give_what_transpose_gives() {
    for perm in permutations(4) {
        let shapes: &[&[i64]] = &[&[2, 3, 17, 33], &[1, 64, 9, 16], &[5, 1, 1, 7], &[2, 3, 17, 33]];
        beside_transpose::<f32>(1, &unknown(4), &perm, shapes, 1, |i| i as f32);
        beside_transpose::<u8>(2, &known(shapes[0]), &perm, &shapes[..1], 1, |i| (i * 167 + i / 251) as u8);
    }
}

#[test]
fn every_element_type_is_moved() {
    let (dims, perm, shapes): (_, _, &[&[i64]]) = (unknown(3), [2, 0, 1], &[&[3, 40, 50], &[7, 1, 65]]);
    macro_rules! each {
        ($($number:literal $type:ty: $make:expr),*) => {
            $(beside_transpose::<$type>($number, &dims, &perm, shapes, 1, $make);)*
        };
    }
    each!(
        1 f32: |i| i as f32, 2 u8: |i| i as u8, 3 i8: |i| i as i8, 4 u16: |i| i as u16, 5 i16: |i| i as i16,
        6 i32: |i| i as i32, 7 i64: |i| i as i64, 9 bool: |i| i % 3 == 0, 10 f16: |i| f16::from_f32(i as f32 % 1024.0),
        11 f64: |i| i as f64, 12 u32: |i| i as u32, 13 u64: |i| i as u64, 16 bf16: |i| bf16::from_f32(i as f32 % 128.0)
    );
}

#[test]
fn tensors_of_any_rank_are_moved_even_without_elements() {
    beside_transpose::<f32>(1, &[], &[], &[&[]], 1, |_| 3.0);
    for rank in 1..=6 {
        let mut next = scattered(rank);
        let perms = permutations(rank);
        for _ in 0..12 {
            let perm = &perms[next(perms.len())];
            let shapes: Vec<Vec<i64>> = (0..3).map(|_| (0..rank).map(|_| 1 + next(8) as i64).collect()).collect();
            let mut empty = shapes[0].clone();
            empty[next(rank)] = 0;
            let shapes = [&shapes[0][..], &empty, &shapes[1], &shapes[2], &shapes[0]];
            beside_transpose::<u16>(4, &unknown(rank), perm, &shapes, 1, |i| i as u16);
            beside_transpose::<u16>(4, &known(&empty), perm, &[&empty], 1, |i| i as u16);
        }
    }
}

#[test]
fn threads_of_the_session_move_the_same() {
    for threads in [1, 2, 5] {
        let shapes: &[&[i64]] = &[&[1, 64, 128, 130], &[3, 70, 64, 64], &[1, 1, 1, 1]];
        for perm in [[0, 2, 3, 1], [0, 3, 2, 1], [2, 1, 0, 3], [0, 1, 2, 3]] {
            beside_transpose::<f32>(1, &unknown(4), &perm, shapes, threads, |i| i as f32);
        }
        // Past the caches.
        beside_transpose::<f32>(1, &known(&[1, 64, 256, 256]), &[0, 3, 1, 2], &[&[1, 64, 256, 256]], threads, |i| {
            i as f32
        });
    }
}

/// A digit: an axis, what its index is divided by, and the remainder taken of that.
type Digit = (usize, usize, Option<usize>);

/// A layout's digits as text says them: `C/16%4`.
fn digits(text: &str, letters: &str) -> Vec<Digit> {
    let digit = |word: &str| {
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let (rest, modulo) = word.split_once('%').map_or((word, None), |(rest, n)| (rest, Some(number(n))));
        let (axis, div) = rest.split_once('/').map_or((rest, 1), |(axis, n)| (axis, number(n)));
        (letters.find(axis).expect("a letter"), div, modulo)
    };
    text.split(' ').map(digit).collect()
}

/// The dims that a layout is stored in.
fn stored(digits: &[Digit], shape: &[i64]) -> Vec<i64> {
    let extent = |&(axis, div, modulo): &Digit| {
        modulo.unwrap_or_else(|| usize::try_from(shape[axis]).expect("a size").div_ceil(div)) as i64
    };
    digits.iter().map(extent).collect()
}

/// Element by element: from the places of one layout to those of the other, zeros in between.
fn reference(shape: &[i64], from: &[Digit], to: &[Digit], src: &[i32]) -> Vec<i32> {
    let (from_dims, to_dims) = (stored(from, shape), stored(to, shape));
    let place = |digits: &[Digit], dims: &[i64], at: &[usize]| {
        digits.iter().zip(dims).fold(0, |place, (&(axis, div, modulo), &extent)| {
            let digit = at[axis] / div;
            place * extent as usize + modulo.map_or(digit, |modulo| digit % modulo)
        })
    };
    let mut dst = vec![0; elems(&to_dims)];
    let mut at = vec![0; shape.len()];
    for number in 0..elems(shape) {
        let mut rest = number;
        for (index, &extent) in at.iter_mut().zip(shape).rev() {
            (*index, rest) = (rest % extent as usize, rest / extent as usize);
        }
        dst[place(to, &to_dims, &at)] = src[place(from, &from_dims, &at)];
    }
    dst
}

/// From one layout to another and back, with dims known and not known, on one thread and on two.
fn check_layouts(letters: &str, from: (&str, &str), to: (&str, &str), shape: &[i64]) {
    for ((from, from_digits), (to, to_digits)) in [(from, to), (to, from)] {
        let (from_digits, to_digits) = (digits(from_digits, letters), digits(to_digits, letters));
        let input = stored(&from_digits, shape);
        let src: Vec<i32> = (1..=elems(&input) as i32).collect();
        let want = (stored(&to_digits, shape), reference(shape, &from_digits, &to_digits, &src));
        let attributes = || vec![text("from", from), text("to", to), ints("shape", shape)];
        for dims in [known(&input), unknown(input.len())] {
            for threads in [1, 2] {
                let bytes = model(6, Some(&dims), vec![relayout("y", attributes())], Vec::new());
                let found = outputs(&mut session(&bytes, threads), &input, &src).expect("it runs");
                assert!(found[0] == want, "{from} to {to} of {shape:?}, dims {dims:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn blocked_and_padded_layouts_are_what_a_slow_reference_makes_of_them() {
    let nchw = ("NCHW", "N C H W");
    let c16 = ("NCHW16c", "N C/16 H W C%16");
    for shape in [[2, 20, 5, 7], [1, 16, 3, 3], [3, 1, 2, 2], [1, 64, 30, 41], [1, 0, 4, 4], [0, 20, 4, 4]] {
        check_layouts("NCHW", nchw, c16, &shape);
        check_layouts("NCHW", ("NHWC", "N H W C"), c16, &shape);
        check_layouts("NCHW", ("NCHW8c", "N C/8 H W C%8"), c16, &shape);
        check_layouts("NCHW", ("N C/64 H C/16%4 W C%16", "N C/64 H C/16%4 W C%16"), nchw, &shape);
        check_layouts("NCHW", ("CHWN", "C H W N"), nchw, &shape);
    }
    let weights = ("OIHW16i16o", "O/16 I/16 H W I%16 O%16");
    check_layouts("OIHW", ("OIHW", "O I H W"), weights, &[40, 3, 3, 3]);
    let tiles = ("M/8 N/8 M%8 N%8", "M/8 N/8 M%8 N%8");
    check_layouts("MN", ("MN", "M N"), tiles, &[50, 29]);
    check_layouts("MN", ("NM", "N M"), tiles, &[513, 300]);
}

#[test]
fn shuffled_channels_keep_their_slots() {
    // 5 and 3 channels in slots of 8: both stretches begin with a block.
    let attributes = vec![text("from", "N C H W"), text("to", "N C[5:8,3:8] H W")];
    let bytes = model(6, Some(&unknown(4)), vec![relayout("y", attributes)], Vec::new());
    let src: Vec<i32> = (1..=16).collect();
    let found = outputs(&mut session(&bytes, 1), &[1, 8, 1, 2], &src).expect("it runs");
    let mut want = src.clone();
    want.splice(10..10, [0; 6]);
    want.extend([0; 10]);
    assert_eq!(found, [(vec![1, 16, 1, 2], want)]);
}

#[test]
fn one_session_serves_shapes_as_they_come() {
    let attributes = || vec![text("from", "NCHW"), text("to", "NCHW16c")];
    let mut session = session(&model(6, None, vec![relayout("y", attributes())], Vec::new()), 2);
    let (nchw, c16) = (digits("N C H W", "NCHW"), digits("N C/16 H W C%16", "NCHW"));
    let mut next = scattered(7);
    for _ in 0..60 {
        let shape = [1 + next(2) as i64, next(40) as i64, 1 + next(5) as i64, 1 + next(3) as i64];
        let src: Vec<i32> = (1..=elems(&shape) as i32).collect();
        let want = reference(&shape, &nchw, &c16, &src);
        let found = outputs(&mut session, &shape, &src).expect("it runs");
        assert_eq!(found, [(stored(&c16, &shape), want)], "{shape:?}");
    }
}

#[test]
fn dims_are_inferred_with_their_names() {
    let dims = [Size::Named("batch"), Size::Known(20), Size::Known(7), Size::Named("width")];
    for (attributes, want) in [
        (vec![ints("perm", &[0, 2, 3, 1])], "[batch, 7, width, 20]"),
        (vec![text("from", "NCHW"), text("to", "NCHW16c")], "[batch, 2, 7, width, 16]"),
    ] {
        let session = session(&model(1, Some(&dims), vec![relayout("y", attributes)], Vec::new()), 1);
        let ort::value::ValueType::Tensor { shape, dimension_symbols, .. } = session.outputs()[0].dtype() else {
            panic!("a tensor")
        };
        let dim = |(&size, name): (&i64, &String)| if size < 0 { name.clone() } else { size.to_string() };
        let dims: Vec<String> = shape.iter().zip(dimension_symbols.iter()).map(dim).collect();
        assert_eq!(format!("[{}]", dims.join(", ")), want);
    }
}

/// A function `Relayout` whose body is Transpose and then Neg, so that it is seen whether it ran.
fn negating(overload: &str) -> FunctionProto {
    let mut transpose = node("", "Transpose", "moved", Vec::new());
    transpose.attribute = vec![AttributeProto {
        name: Some("perm".to_owned()),
        r#type: Some(7),
        ref_attr_name: Some("perm".to_owned()),
        ..AttributeProto::default()
    }];
    let mut negate = node("", "Neg", "y", Vec::new());
    negate.input = vec!["moved".to_owned()];
    FunctionProto {
        name: Some("Relayout".to_owned()),
        domain: Some("relayout".to_owned()),
        overload: (!overload.is_empty()).then(|| overload.to_owned()),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        attribute: vec!["perm".to_owned()],
        node: vec![transpose, negate],
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(18) }],
        ..FunctionProto::default()
    }
}

#[test]
fn the_library_takes_the_place_of_a_function_body_and_without_it_the_body_runs() {
    for overload in ["", "perm_1_0"] {
        let call = NodeProto { overload: Some(overload.to_owned()), ..relayout("y", vec![ints("perm", &[1, 0])]) };
        let bytes = model(1, Some(&unknown(2)), vec![call], vec![negating(overload)]);
        for level in [GraphOptimizationLevel::Disable, GraphOptimizationLevel::Level1, GraphOptimizationLevel::All] {
            for with in [false, true] {
                let mut session = opened(&bytes, with, level).expect("both load it");
                let found = outputs::<f32>(&mut session, &[2, 3], &[0., 1., 2., 3., 4., 5.]).expect("both run it");
                let sign = if with { 1.0 } else { -1.0 };
                let want: Vec<f32> = [0., 3., 1., 4., 2., 5.].iter().map(|x| x * sign).collect();
                assert_eq!(found, [(vec![3, 2], want)], "registered: {with}, {level:?}, overload {overload:?}");
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_node_is_said_with_its_name_when_the_model_is_loaded() {
    let int =
        AttributeProto { name: Some("perm".to_owned()), r#type: Some(2), i: Some(1), ..AttributeProto::default() };
    let latin = AttributeProto { s: Some(vec![0xff].into()), ..text("from", "") };
    let cases: Vec<(i32, Vec<AttributeProto>, &[i64], &str)> = vec![
        (1, vec![], &[2, 3], "no layouts are given"),
        (1, vec![ints("perm", &[0, 0])], &[2, 3], "`perm` is [0, 0]"),
        (1, vec![ints("perm", &[0, 1, 2])], &[2, 3], "the input has 2 dims, but `perm` names 3"),
        (1, vec![int], &[2, 3], "the input has 2 dims, but `perm` names 0"),
        (1, vec![text("from", "NC")], &[2, 3], "`from` is set and `to` is not"),
        (1, vec![latin, text("to", "NC")], &[2, 3], "attribute `from` is not UTF-8 text"),
        (1, vec![text("from", "NCHW"), text("to", "NCHW16q")], &[1, 2, 3, 4], "attribute `to`: layout `NCHW16q`"),
        (1, vec![text("from", "NC"), text("to", "CN"), ints("shape", &[3, 3])], &[2, 3], "dim 0 of the input is 2"),
        (8, vec![ints("perm", &[1, 0])], &[2, 3], "elements of type string are not supported"),
        (21, vec![ints("perm", &[1, 0])], &[2, 2], "elements of type uint4 are not supported"),
        (22, vec![ints("perm", &[1, 0])], &[2, 2], "elements of type int4 are not supported"),
    ];
    for (element, attributes, shape, reason) in cases {
        let bytes = model(element, Some(&known(shape)), vec![relayout("y", attributes)], Vec::new());
        let error = opened(&bytes, true, GraphOptimizationLevel::All).map(|_| ()).expect_err("it is wrong");
        assert!(error.contains("`make_y`") && error.contains(reason), "{error}, not {reason}");
    }
}

#[test]
fn what_is_wrong_with_an_input_is_said_when_it_comes_and_the_session_goes_on() {
    let attributes = vec![text("from", "NCHW16c"), text("to", "NCHW")];
    let mut session = session(&model(6, None, vec![relayout("y", attributes)], Vec::new()), 1);
    for (shape, reason) in [
        (&[1_i64, 2, 3][..], "the input has 3 dims, but `from` is stored in 5"),
        (&[1, 2, 1, 1, 8], "dim 4 of the input is 8, but `from` and `shape` want 16"),
    ] {
        let error = outputs(&mut session, shape, &vec![0_i32; elems(shape)]).expect_err("it does not fit");
        assert!(error.contains("`make_y`") && error.contains(reason), "{error}");
    }
    let src: Vec<i32> = (0..16).collect();
    assert_eq!(outputs(&mut session, &[1, 1, 1, 1, 16], &src).expect("it fits"), [(vec![1, 16, 1, 1], src)]);
}
