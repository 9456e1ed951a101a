//! Quantized numbers that got another sign.

use super::*;

const SIGNED: u8 = 3;
const UNSIGNED: u8 = 2;

/// `x` quantized and back, with these zero points of this type, and a Transpose in between.
fn quantized(dtype: u8, zeros: [u8; 2], order: &[i64]) -> Model {
    let lines: &[Line<'_>] = &[
        ("q", "QuantizeLinear", &["x", "s", "a"], vec![]),
        ("t", "Transpose", &["q"], perm(order)),
        ("y", "DequantizeLinear", &["t", "s", "b"], vec![]),
    ];
    let mut made = model(lines, &[("s", &[], vec![0.1])]);
    for (name, zero) in ["a", "b"].into_iter().zip(zeros) {
        let tensor = Tensor { dims: Vec::new(), dtype, data: vec![zero].into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    made
}

#[test]
fn signed_bytes_may_be_unsigned_ones() {
    let signed = quantized(SIGNED, [5, 5], TO_LAST);
    assert_eq!(
        verdict(&signed, &quantized(UNSIGNED, [133; 2], TO_LAST), &Proof::default()),
        Verdict::Proved { links: 0, hosts: None }
    );
    assert!(holds(&quantized(SIGNED, [0xfe; 2], TO_LAST), &quantized(UNSIGNED, [126; 2], TO_LAST)));
    for zeros in [[5, 5], [133, 5], [5, 133], [132, 133], [133, 132]] {
        assert!(!holds(&signed, &quantized(UNSIGNED, zeros, TO_LAST)), "{zeros:?}");
    }
    assert!(!holds(&signed, &quantized(UNSIGNED, [133; 2], TO_FIRST)));
    // The same bytes of another sign are other numbers.
    assert!(!holds(&quantized(SIGNED, [133; 2], TO_LAST), &quantized(UNSIGNED, [133; 2], TO_LAST)));
}

#[test]
fn no_zero_point_is_the_zero_of_its_type() {
    let without = |lines: &[Line<'_>]| {
        let mut made = model(lines, &[("s", &[], vec![0.1])]);
        made.opsets = [(String::new(), 21)].into();
        made
    };
    let told = |dtype: u8| vec![("output_dtype", Attr::Int(i64::from(dtype)))];
    let lines = |dtype: u8| -> Model {
        without(&[("q", "QuantizeLinear", &["x", "s"], told(dtype)), ("y", "DequantizeLinear", &["q", "s"], vec![])])
    };
    assert!(holds(&lines(SIGNED), &quantized(UNSIGNED, [128; 2], &[0, 1, 2, 3])));
    assert!(!holds(&lines(SIGNED), &quantized(UNSIGNED, [0; 2], &[0, 1, 2, 3])));
    assert!(!holds(&lines(SIGNED), &lines(UNSIGNED)));
}

#[test]
fn an_output_has_the_type_that_it_had() {
    let bytes = |dtype: u8, zero: u8| {
        let mut made = quantized(dtype, [zero; 2], TO_LAST);
        Rc::make_mut(&mut made.graph).outputs = vec!["q".to_owned()];
        made
    };
    assert!(holds(&bytes(SIGNED, 5), &bytes(SIGNED, 5)));
    assert!(!holds(&bytes(SIGNED, 5), &bytes(UNSIGNED, 133)));
}

/// `x` in integers of this type, again in integers of another scale and zero point in another order, and back.
fn requantized(dtype: u8, (scale, zero): (f32, u8), order: &[i64]) -> Model {
    let lines: &[Line<'_>] = &[
        ("q", "QuantizeLinear", &["x", "s", "a"], vec![]),
        ("d", "DequantizeLinear", &["q", "s", "a"], vec![]),
        ("t", "Transpose", &["d"], perm(order)),
        ("r", "QuantizeLinear", &["t", "u", "b"], vec![]),
        ("y", "DequantizeLinear", &["r", "u", "b"], vec![]),
    ];
    let mut made = model(lines, &[("s", &[], vec![0.1]), ("u", &[], vec![scale])]);
    for (name, zero) in [("a", 5), ("b", zero)] {
        let tensor = Tensor { dims: Vec::new(), dtype, data: vec![zero].into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    made
}

#[test]
fn integers_stay_what_they_are_in_the_same_units() {
    for dtype in [SIGNED, UNSIGNED] {
        let once = quantized(dtype, [5, 5], TO_LAST);
        let units = |units, order| requantized(dtype, units, order);
        assert_eq!(
            verdict(&units((0.1, 5), TO_LAST), &once, &Proof::default()),
            Verdict::Proved { links: 0, hosts: None }
        );
        assert!(!holds(&units((0.1, 5), TO_FIRST), &once));
        assert!(!holds(&units((0.1, 6), TO_LAST), &once));
        assert!(!holds(&units((0.2, 5), TO_LAST), &once));
    }
    // A scale of which products are no numbers.
    let small = |model: &Model| {
        let mut made = model.clone();
        for (_, tensor) in Rc::make_mut(&mut made.graph).initializers.iter_mut().filter(|(_, tensor)| tensor.dtype == 1)
        {
            tensor.data = 1e-40_f32.to_le_bytes().to_vec().into();
        }
        made
    };
    let [twice, once] = [requantized(SIGNED, (0.1, 5), TO_LAST), quantized(SIGNED, [5, 5], TO_LAST)];
    assert!(holds(&twice, &once) && !holds(&small(&twice), &small(&once)));
}

/// Some channels of `x` in integers, and again in integers of another scale if there is one.
fn picked(dtype: u8, list: &[i64], again: Option<f32>) -> Model {
    let mut lines: Vec<Line<'_>> = vec![
        ("q", "QuantizeLinear", &["x", "s", "a"], vec![]),
        ("d", "DequantizeLinear", &["q", "s", "a"], vec![]),
        ("p", "Gather", &["d", "list"], axis(1)),
    ];
    lines.extend(again.map(|_| ("r", "QuantizeLinear", ["p", "u", "a"].as_slice(), vec![])));
    lines.extend(again.map(|_| ("b", "DequantizeLinear", ["r", "u", "a"].as_slice(), vec![])));
    lines.push(("y", "Relu", if again.is_some() { &["b"] } else { &["p"] }, vec![]));
    let mut made = model(&lines, &[("s", &[], vec![0.1]), ("u", &[], vec![again.unwrap_or_default()])]);
    let numbers = list.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    for (name, dims, dtype, data) in [("a", vec![], dtype, vec![5]), ("list", vec![list.len() as i64], 7, numbers)] {
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), Tensor { dims, dtype, data: data.into() }));
    }
    made
}

#[test]
fn some_of_the_integers_stay_what_they_are_too() {
    for dtype in [SIGNED, UNSIGNED] {
        for list in [[4, 1, 3, 0], [0, 3, 1, 4]] {
            let once = picked(dtype, &list, None);
            assert_eq!(
                verdict(&picked(dtype, &list, Some(0.1)), &once, &Proof::default()),
                Verdict::Proved { links: 0, hosts: None }
            );
            assert!(!holds(&picked(dtype, &list, Some(0.2)), &once));
            assert!(!holds(&picked(dtype, &[4, 1, 0, 3], Some(0.1)), &once));
        }
    }
}

/// Weights of `dtype` with these attributes, scales and zero points, dequantized, in other orders if told, and added to `x`.
fn weights(dtype: u8, (dims, data): (&[i64], &[u8]), scales: (&[i64], Vec<f32>), axis: i64, block: i64) -> Model {
    let attrs = vec![("axis", Attr::Int(axis)), ("block_size", Attr::Int(block))];
    let turn = if dims == [2, 6] { vec![0, 1] } else { vec![1, 0] };
    let lines: &[Line<'_>] = &[
        ("d", "DequantizeLinear", &["w", "s", "b"], attrs),
        ("t", "Transpose", &["d"], perm(&turn)),
        ("y", "Add", &["x", "t"], vec![]),
    ];
    let zeros = vec![1; scales.1.len()];
    let mut made = model(lines, &[("s", scales.0, scales.1)]);
    made.opsets = [(String::new(), if dtype > 22 { 25 } else { 21 })].into();
    let list = [("w", dims, data.to_vec()), ("b", scales.0, zeros)];
    let graph = Rc::make_mut(&mut made.graph);
    graph.inputs[0].dims = Some([2, 6].map(DeclaredDim::Known).to_vec());
    for (name, dims, data) in list {
        let tensor = Tensor { dims: dims.to_vec(), dtype, data: data.into() };
        graph.initializers.push((name.to_owned(), tensor));
    }
    made
}

/// A matrix of 2 rows and 6 columns by its columns.
fn turned<T: Copy>(rows: &[T], columns: usize) -> Vec<T> {
    (0..columns).flat_map(|c| rows.iter().skip(c).step_by(columns).copied()).collect()
}

#[test]
fn what_small_integers_stand_for_is_computed() {
    const DATA: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15];
    for (dtype, most) in [(2, 255), (3, 255), (21, 15), (22, 15), (25, 3), (26, 3)] {
        let data = DATA.map(|byte| byte & most);
        let rows = |data: &[u8], scales| weights(dtype, (&[2, 6], data), (&[2], scales), 0, 0);
        let columns = |data: &[u8], scales| weights(dtype, (&[6, 2], &turned(data, 6)), (&[2], scales), 1, 0);
        assert!(holds(&rows(&data, vec![0.5, 0.25]), &columns(&data, vec![0.5, 0.25])), "{dtype}");
        assert!(!holds(&rows(&data, vec![0.5, 0.25]), &columns(&data, vec![0.25, 0.5])), "{dtype}");
        for at in [0, 5, 11] {
            let mut other = data;
            other[at] ^= 2;
            assert!(!holds(&rows(&data, vec![0.5, 0.25]), &columns(&other, vec![0.5, 0.25])), "{dtype}, {at}");
        }
    }
    // What the same bits stand for is another number with a sign.
    let all = |dtype| weights(dtype, (&[2, 6], &DATA), (&[2], vec![0.5, 0.25]), 0, 0);
    assert!(!holds(&all(21), &all(22)));
}

#[test]
fn what_blocks_of_small_integers_stand_for_is_computed() {
    const DATA: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15];
    const SCALES: [f32; 4] = [0.5, 0.25, 2.0, 4.0];
    // Blocks of 4 of 6 columns: the second one is not full.
    let rows = |scales: &[f32], block| weights(22, (&[2, 6], &DATA), (&[2, 2], scales.to_vec()), 1, block);
    let columns =
        |scales: &[f32], block| weights(22, (&[6, 2], &turned(&DATA, 6)), (&[2, 2], turned(scales, 2)), 0, block);
    assert!(holds(&rows(&SCALES, 4), &columns(&SCALES, 4)));
    assert!(!holds(&rows(&SCALES, 4), &rows(&SCALES, 3)));
    assert!(!holds(&rows(&SCALES, 4), &columns(&SCALES, 5)));
    for (at, other) in [[0, 2], [1, 3], [0, 1]].into_iter().enumerate() {
        let mut swapped = SCALES;
        swapped.swap(other[0], other[1]);
        assert!(!holds(&rows(&SCALES, 4), &columns(&swapped, 4)), "{at}");
    }
    // Scales that are not of so many blocks.
    assert!(!holds(&rows(&SCALES, 2), &rows(&SCALES, 4)));
}
