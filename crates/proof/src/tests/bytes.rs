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
