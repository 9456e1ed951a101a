//! Products of integers, and sums of products that name only some of their axes.

use super::*;

const SWAPPED: &[i64] = &[0, 2, 1, 3];

/// Constants of bytes.
fn with_bytes(mut made: Model, constants: &[(&str, &[i64], Vec<u8>)]) -> Model {
    for (name, dims, data) in constants {
        let tensor = Tensor { dims: dims.to_vec(), dtype: 2, data: data.clone().into() };
        Rc::make_mut(&mut made.graph).initializers.push(((*name).to_owned(), tensor));
    }
    made
}

/// A number of the matrix.
fn number(place: u8) -> u8 {
    place.wrapping_mul(place) % 97
}

/// `x` as bytes, times a matrix: its rows lie in another order if `moved`, and so do those of the result.
fn product(moved: bool, operands: [&str; 4], zeros: [u8; 2]) -> Model {
    let back = if moved { perm(SWAPPED) } else { perm(&[0, 1, 2, 3]) };
    let lines: &[Line<'_>] = &[
        ("b", "QuantizeLinear", &["x", "s", "zx"], vec![]),
        ("q", "Transpose", &["b"], back.clone()),
        ("m", "MatMulInteger", &operands, vec![]),
        ("y", "Transpose", &["m"], back),
    ];
    let made = model(lines, &[("s", &[], vec![0.1])]);
    let weights = (0..25).map(number).collect();
    let columns = (0..5).map(|n| n + zeros[1]).collect();
    let constants: &[(&str, &[i64], Vec<u8>)] =
        &[("w", &[5, 5], weights), ("zx", &[], vec![zeros[0]]), ("zw", &[], vec![zeros[1]]), ("zc", &[5], columns)];
    with_bytes(made, constants)
}

#[test]
fn rows_of_a_product_of_integers_may_lie_in_any_order() {
    let usual = ["q", "w", "zx", "zw"];
    let a = product(false, usual, [3, 7]);
    assert!(
        holds(&a, &product(true, usual, [3, 7])),
        "{}",
        verdict(&a, &product(true, usual, [3, 7]), &Proof::default())
    );
    for other in [["q", "w", "zw", "zx"], ["q", "w", "zx", "zx"], ["q", "w", "zx", "zc"]] {
        assert!(!holds(&a, &product(true, other, [3, 7])), "{other:?}");
    }
    assert!(!holds(&a, &product(true, usual, [4, 7])));
    assert!(!holds(&a, &product(true, usual, [3, 8])));
    let by_column = ["q", "w", "zx", "zc"];
    let b = product(false, by_column, [3, 7]);
    assert!(holds(&b, &product(true, by_column, [3, 7])));
    assert!(!holds(&b, &product(true, by_column, [3, 8])));
}

#[test]
fn a_turned_matrix_is_another_product_of_integers() {
    let a = product(false, ["q", "w", "zx", "zw"], [3, 7]);
    let mut b = a.clone();
    let turned: Vec<u8> = (0..25).map(|n| number(n % 5 * 5 + n / 5)).collect();
    for (name, tensor) in &mut Rc::make_mut(&mut b.graph).initializers {
        if name == "w" {
            tensor.data = turned.clone().into();
        }
    }
    assert!(!holds(&a, &b));
}

/// Channels of `x`, which lie last, times a matrix, and back.
fn mixed(equation: &str, moved: bool) -> Model {
    let told = vec![("equation", Attr::Text(equation.as_bytes().to_vec()))];
    let weights = (0..36).map(|n| (n * n) as f32).collect();
    let (there, back) = if moved { (TO_LAST, TO_FIRST) } else { (&[0, 1, 2, 3][..], &[0, 1, 2, 3][..]) };
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(there)),
        ("e", "Einsum", &["t", "w"], told),
        ("y", "Transpose", &["e"], perm(back)),
    ];
    model(lines, &[("w", &[6, 6], weights)])
}

#[test]
fn an_ellipsis_stands_for_the_axes_that_have_no_letter() {
    let a = mixed("nchw,co->nohw", false);
    assert!(holds(&a, &mixed("...c,co->...o", true)));
    assert!(holds(&a, &mixed("n...c,co->n...o", true)));
    for other in ["...c,oc->...o", "c...,co->o...", "...c,co->...c", "...c,co->o..."] {
        assert!(!holds(&a, &mixed(other, true)), "{other}");
    }
    // The axes of an ellipsis are those of the same place from the end on.
    let b = |perm_of: &[i64], equation: &str| {
        let told = vec![("equation", Attr::Text(equation.as_bytes().to_vec()))];
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(perm_of)),
            ("s", "Relu", &["x"], vec![]),
            ("y", "Einsum", &["t", "s"], told),
        ];
        model(lines, &[])
    };
    let plain = b(&[0, 1, 2, 3], "nchw,nchw->nhw");
    assert!(holds(&plain, &b(&[1, 0, 2, 3], "cn...,nc...->n...")));
    assert!(!holds(&plain, &b(&[1, 0, 2, 3], "cn...,cn...->n...")));
}

#[test]
fn a_global_pool_takes_places_as_a_set() {
    let pool = |order: &[i64], p: i64| {
        let told = vec![("p", Attr::Int(p))];
        model(&[("t", "Transpose", &["x"], perm(order)), ("y", "GlobalLpPool", &["t"], told)], &[])
    };
    let a = pool(&[0, 1, 2, 3], 2);
    assert!(holds(&a, &pool(&[0, 1, 3, 2], 2)));
    assert!(!holds(&a, &pool(&[0, 1, 3, 2], 1)));
    assert!(!holds(&pool(&[0, 1, 2, 3], 2), &pool(&[0, 2, 1, 3], 2)));
}

#[test]
fn a_pool_that_versions_differ_about_is_the_same_pool() {
    let pool = |pads: i64, kernel: i64| {
        let told = vec![
            ("kernel_shape", Attr::Ints(vec![kernel; 2])),
            ("strides", Attr::Ints(vec![3, 3])),
            ("pads", Attr::Ints(vec![0, 0, pads, pads])),
            ("ceil_mode", Attr::Int(1)),
        ];
        model(&[("p", "MaxPool", &["x"], told), ("y", "Relu", &["p"], vec![])], &[])
    };
    let a = pool(1, 2);
    assert!(holds(&a, &a));
    assert!(!holds(&a, &pool(0, 2)));
    assert!(!holds(&a, &pool(1, 3)));
}

#[test]
fn scales_of_blocks_lie_as_the_blocks_do() {
    let quantized = |order: &[i64], at: i64, size: i64, scales: &[i64], name: &str| {
        let told = [axis(at), vec![("block_size", Attr::Int(size))]].concat();
        let back: Vec<i64> = (0..4).map(|a| order.iter().position(|o| *o == a).unwrap_or(0) as i64).collect();
        let lines: &[Line<'_>] = &[
            ("t", "Transpose", &["x"], perm(order)),
            ("q", "QuantizeLinear", &["t", name], told),
            ("b", "Transpose", &["q"], perm(&back)),
            ("y", "Identity", &["b"], vec![]),
        ];
        let count: i64 = scales.iter().product();
        let numbers: Vec<f32> = (0..count).map(|n| 0.1 + n as f32).collect();
        let channels = scales[1] * scales[2] * scales[3];
        // The same numbers where channels lie last.
        let place = |n: i64| {
            let (c, rest) = (n % scales[3], n / scales[3]);
            let (w, rest) = (rest % scales[2], rest / scales[2]);
            let (h, n) = (rest % scales[1], rest / scales[1]);
            n * channels + (c * scales[1] + h) * scales[2] + w
        };
        let last: Vec<f32> = (0..count).map(|n| 0.1 + place(n) as f32).collect();
        model(lines, &[("s", scales, numbers), ("l", scales, last)])
    };
    let a = quantized(&[0, 1, 2, 3], 1, 2, &[2, 3, 4, 5], "s");
    assert!(holds(&a, &quantized(TO_LAST, 3, 2, &[2, 4, 5, 3], "l")));
    assert!(!holds(&a, &quantized(TO_LAST, 3, 2, &[2, 4, 5, 3], "s")));
    assert!(!holds(&a, &quantized(&[0, 1, 2, 3], 1, 2, &[2, 3, 4, 5], "l")));
    assert!(!holds(&a, &quantized(&[0, 1, 2, 3], 1, 3, &[2, 2, 4, 5], "s")));
}
