//! Convolutions whose filters come in another order, and channels that are brought elsewhere.

use super::*;

/// `[filters, channels]` windows of 3 by 3, no two of them alike.
fn windows(seed: usize, filters: usize, channels: usize) -> Vec<f32> {
    (0..filters * channels * 9).map(|n| ((n * 37 + seed * 11) % 101) as f32 * 0.07 - 3.0).collect()
}

/// The rows of a matrix in another order; those without a number are zeros.
fn rows(matrix: &[f32], width: usize, order: &[Option<usize>]) -> Vec<f32> {
    let row =
        |at: &Option<usize>| at.map_or_else(|| vec![0.0; width], |at| matrix[at * width..(at + 1) * width].to_vec());
    order.iter().flat_map(row).collect()
}

/// The channels of each filter of one place, of which there are `channels`, in another order.
fn columns(matrix: &[f32], channels: usize, order: &[Option<usize>]) -> Vec<f32> {
    matrix.chunks(channels).flat_map(|row| rows(row, 1, order)).collect()
}

const FILTERS: usize = 4;
const BIAS: [f32; FILTERS] = [0.5, -1.0, 2.0, 0.25];

fn reader() -> Vec<f32> {
    (0..2 * FILTERS).map(|n| n as f32 * 0.3 - 1.1).collect()
}

/// Two convolutions with these ops between them; their weights, and how many filters the first one has.
fn pair(between: &[(&str, Vec<(&'static str, Attr)>)], first: Vec<f32>, bias: Vec<f32>, second: Vec<f32>) -> Model {
    let count = bias.len() as i64;
    let mut lines: Vec<Line<'_>> = vec![("c", "Conv", &["x", "w", "b"], conv([1; 4]))];
    let names = [["c"], ["r"], ["s"], ["t"]];
    for (at, (op, told)) in between.iter().enumerate() {
        lines.push((names[at + 1][0], op, &names[at], told.clone()));
    }
    let operands = [names[between.len()][0], "v"];
    lines.push(("y", "Conv", &operands, vec![]));
    model(&lines, &[("w", &[count, 6, 3, 3], first), ("b", &[count], bias), ("v", &[2, count, 1, 1], second)])
}

fn pool() -> Vec<(&'static str, Attr)> {
    vec![("kernel_shape", Attr::Ints(vec![2, 2])), ("strides", Attr::Ints(vec![1, 1]))]
}

#[test]
fn filters_may_come_in_another_order_if_their_readers_know() {
    let some = |order: &[usize]| -> Vec<Option<usize>> { order.iter().copied().map(Some).collect() };
    for between in
        [vec![("Relu", vec![])], vec![("Relu", vec![]), ("MaxPool", pool())], vec![("GlobalAveragePool", vec![])]]
    {
        let plain = pair(&between, windows(1, FILTERS, 6), BIAS.to_vec(), reader());
        let moved = |filters: &[Option<usize>], bias: &[Option<usize>], read: &[Option<usize>]| {
            let first = rows(&windows(1, FILTERS, 6), 54, filters);
            pair(&between, first, rows(&BIAS, 1, bias), columns(&reader(), FILTERS, read))
        };
        let order = some(&[2, 0, 3, 1]);
        assert_eq!(
            verdict(&plain, &moved(&order, &order, &order), &Proof::default()),
            Verdict::Proved { links: 0, hosts: None }
        );
        let with_slots = [Some(2), None, Some(0), Some(3), None, Some(1), None];
        assert!(holds(&plain, &moved(&with_slots, &with_slots, &with_slots)));
        let back = some(&[1, 3, 0, 2]);
        assert!(!holds(&plain, &moved(&order, &order, &back)), "{between:?}");
        assert!(!holds(&plain, &moved(&order, &back, &order)));
        assert!(!holds(&plain, &moved(&back, &order, &order)));
        assert!(!holds(&plain, &moved(&order, &order, &some(&[0, 1, 2, 3]))));
        assert!(!holds(&plain, &moved(&some(&[2, 0, 3, 3]), &some(&[2, 0, 3, 3]), &order)));
    }
}

#[test]
fn another_weight_of_filters_in_another_order_is_refused() {
    let between = [("Relu", vec![])];
    let plain = pair(&between, windows(1, FILTERS, 6), BIAS.to_vec(), reader());
    let order = [Some(2), Some(0), Some(3), Some(1)];
    let [first, bias, second] =
        [rows(&windows(1, FILTERS, 6), 54, &order), rows(&BIAS, 1, &order), columns(&reader(), FILTERS, &order)];
    assert!(holds(&plain, &pair(&between, first.clone(), bias.clone(), second.clone())));
    for at in [0, 17, 53, 54, 215] {
        let mut other = first.clone();
        other[at] += 0.01;
        assert!(!holds(&plain, &pair(&between, other, bias.clone(), second.clone())), "weight {at}");
    }
    for at in 0..FILTERS {
        let mut other = bias.clone();
        other[at] += 0.01;
        assert!(!holds(&plain, &pair(&between, first.clone(), other, second.clone())), "bias {at}");
    }
    for at in 0..2 * FILTERS {
        let mut other = second.clone();
        other[at] += 0.01;
        assert!(!holds(&plain, &pair(&between, first.clone(), bias.clone(), other)), "reader {at}");
    }
}

#[test]
fn an_op_between_filters_and_their_reader_may_have_numbers_of_its_own() {
    let scaled = |filters: Vec<f32>, slopes: Vec<f32>, second: Vec<f32>| {
        let lines: &[Line<'_>] = &[
            ("c", "Conv", &["x", "w"], conv([1; 4])),
            ("p", "PRelu", &["c", "s"], vec![]),
            ("y", "Conv", &["p", "v"], vec![]),
        ];
        model(lines, &[("w", &[4, 6, 3, 3], filters), ("s", &[4, 1, 1], slopes), ("v", &[2, 4, 1, 1], second)])
    };
    let slopes = vec![0.1, 0.2, 0.3, 0.4];
    let plain = scaled(windows(1, 4, 6), slopes.clone(), reader());
    let order = [Some(2), Some(0), Some(3), Some(1)];
    let [first, own, second] =
        [rows(&windows(1, 4, 6), 54, &order), rows(&slopes, 1, &order), columns(&reader(), 4, &order)];
    assert!(holds(&plain, &scaled(first.clone(), own, second.clone())));
    assert!(!holds(&plain, &scaled(first, slopes, second)));
}

/// Two convolutions, whose channels are shuffled; a convolution of each channel by itself, and one that reads the second half.
fn shuffled(part: i64) -> Model {
    let lines: &[Line<'_>] = &[
        ("a", "Conv", &["x", "w"], conv([1; 4])),
        ("b", "Conv", &["x", "u"], conv([1; 4])),
        ("c", "Concat", &["a", "b"], axis(1)),
        ("g", "Reshape", &["c", "groups"], vec![]),
        ("t", "Transpose", &["g"], perm(&[0, 2, 1, 3, 4])),
        ("f", "Reshape", &["t", "all"], vec![]),
        ("d", "Conv", &["f", "k"], vec![("group", Attr::Int(8)), ("pads", Attr::Ints(vec![1; 4]))]),
        ("h", "Slice", &["d", "from", "end", "one"], vec![]),
        ("y", "Conv", &["h", "v"], vec![]),
    ];
    let constants: &[(&str, &[i64], Vec<f32>)] = &[
        ("w", &[4, 6, 3, 3], windows(1, 4, 6)),
        ("u", &[4, 6, 3, 3], windows(2, 4, 6)),
        ("k", &[8, 1, 3, 3], windows(3, 8, 1)),
        ("v", &[2, 4, 1, 1], reader()),
    ];
    let mut made = model(lines, constants);
    let lists: [(&str, &[i64]); 5] =
        [("groups", &[2, 2, 4, 4, 5]), ("all", &[2, 8, 4, 5]), ("from", &[part]), ("end", &[part + 4]), ("one", &[1])];
    for (name, values) in lists {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![values.len() as i64], dtype: 7, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    }
    made
}

/// The same without the shuffle: the last convolution reads these channels of both, and has zeros for all others.
fn routed(order: &[Option<usize>; 8], kernels: &[Option<usize>; 8]) -> Model {
    let lines: &[Line<'_>] = &[
        ("b", "Conv", &["x", "u"], conv([1; 4])),
        ("a", "Conv", &["x", "w"], conv([1; 4])),
        ("f", "Concat", &["b", "a"], axis(1)),
        ("d", "Conv", &["f", "k"], vec![("group", Attr::Int(8)), ("pads", Attr::Ints(vec![1; 4]))]),
        ("y", "Conv", &["d", "v"], vec![]),
    ];
    let turned = [Some(3), Some(1), Some(0), Some(2)];
    let constants: &[(&str, &[i64], Vec<f32>)] = &[
        ("w", &[4, 6, 3, 3], windows(1, 4, 6)),
        ("u", &[4, 6, 3, 3], rows(&windows(2, 4, 6), 54, &turned)),
        ("k", &[8, 1, 3, 3], rows(&windows(3, 8, 1), 9, kernels)),
        ("v", &[2, 8, 1, 1], columns(&reader(), 4, order)),
    ];
    model(lines, constants)
}

#[test]
fn channels_of_several_convolutions_may_be_brought_to_a_reader_by_its_weights() {
    // After the shuffle channel 2 k is that of `a`, and 2 k + 1 that of `b`; the second half begins with channel 4.
    let order = [Some(3), None, None, Some(1), None, None, Some(0), Some(2)];
    let kernels = [Some(7), Some(3), Some(1), Some(5), Some(0), Some(2), Some(4), Some(6)];
    let found = verdict(&shuffled(4), &routed(&order, &kernels), &Proof::default());
    assert_eq!(found, Verdict::Proved { links: 0, hosts: None });
    assert!(!holds(&shuffled(3), &routed(&order, &kernels)), "a slice off by one");
    let mut swapped = order;
    swapped.swap(0, 3);
    assert!(!holds(&shuffled(4), &routed(&swapped, &kernels)));
    let mut more = order;
    more[1] = Some(0);
    assert!(!holds(&shuffled(4), &routed(&more, &kernels)));
    let mut other = kernels;
    other.swap(0, 1);
    assert!(!holds(&shuffled(4), &routed(&order, &other)));
}

#[test]
fn zeros_take_nothing_from_weights_that_are_finite() {
    let order = [Some(2), None, Some(0), Some(3), Some(1)];
    let plain = pair(&[("Relu", vec![])], windows(1, FILTERS, 6), BIAS.to_vec(), reader());
    let moved = |of_zeros: f32| {
        let mut second = columns(&reader(), FILTERS, &order);
        second[1] = of_zeros;
        pair(&[("Relu", vec![])], rows(&windows(1, FILTERS, 6), 54, &order), rows(&BIAS, 1, &order), second)
    };
    assert!(holds(&plain, &moved(0.0)));
    assert!(holds(&plain, &moved(0.5)));
    assert!(!holds(&plain, &moved(f32::INFINITY)));
    assert!(!holds(&plain, &moved(f32::NAN)));
}

#[test]
fn columns_of_a_gemm_may_come_in_another_order_if_its_readers_know() {
    let [w, v]: [Vec<f32>; 2] =
        [480, 12].map(|count| (0..count).map(|n| ((n * 37) % 101) as f32 * 0.07 - 3.0).collect());
    let order: Vec<Option<usize>> = [2, 0, 3, 1].map(Some).to_vec();
    let network = |w: Vec<f32>, b: Vec<f32>, v: Vec<f32>| {
        let lines: &[Line<'_>] = &[
            ("f", "Flatten", &["x"], axis(1)),
            ("g", "Gemm", &["f", "w", "b"], vec![("transB", Attr::Int(1))]),
            ("r", "Relu", &["g"], vec![]),
            ("y", "Gemm", &["r", "v"], vec![]),
        ];
        model(lines, &[("w", &[4, 120], w), ("b", &[4], b), ("v", &[4, 3], v)])
    };
    let plain = network(w.clone(), BIAS.to_vec(), v.clone());
    let (w_too, b_too, v_too) = (rows(&w, 120, &order), rows(&BIAS, 1, &order), rows(&v, 3, &order));
    assert!(holds(&plain, &network(w_too.clone(), b_too.clone(), v_too.clone())));
    assert!(!holds(&plain, &network(w_too.clone(), BIAS.to_vec(), v_too.clone())));
    assert!(!holds(&plain, &network(w_too, b_too.clone(), v)));
    assert!(!holds(&plain, &network(w, b_too, v_too)));
}

#[test]
fn a_window_over_all_rows_adds_them_up_as_a_product_does() {
    let shaped = |lines: &[Line<'_>], weights: (&[i64], Vec<f32>), to: &[i64]| {
        let mut made = model(lines, &[("w", weights.0, weights.1)]);
        let data: Vec<u8> = to.iter().flat_map(|n| n.to_le_bytes()).collect();
        let shape = Tensor { dims: vec![to.len() as i64], dtype: 7, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push(("n".to_owned(), shape));
        made
    };
    // Heads, positions and columns of a head are 6, 4 and 5.
    let w: Vec<f32> = (0..90).map(|n| ((n * 37) % 101) as f32 * 0.07 - 3.0).collect();
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(&[0, 2, 1, 3])),
        ("r", "Reshape", &["t", "n"], vec![]),
        ("y", "MatMul", &["r", "w"], vec![]),
    ];
    let product = shaped(lines, (&[30, 3], w.clone()), &[2, 4, 30]);
    let filters = |at: fn(usize, usize) -> usize| -> Vec<f32> {
        let of = |m: usize| (0..5).flat_map(move |d| (0..6).map(move |h| (m, d, h)));
        (0..3).flat_map(of).map(|(m, d, h)| w[at(d, h) * 3 + m]).collect()
    };
    let over_rows = |weights: Vec<f32>| {
        let lines: &[Line<'_>] = &[
            ("i", "Transpose", &["x"], perm(TO_FIRST)),
            ("c", "Conv", &["i", "w"], vec![("kernel_shape", Attr::Ints(vec![6, 1]))]),
            ("l", "Transpose", &["c"], perm(TO_LAST)),
            ("y", "Reshape", &["l", "n"], vec![]),
        ];
        shaped(lines, (&[3, 5, 6, 1], weights), &[2, 4, 3])
    };
    assert!(holds(&product, &over_rows(filters(|d, h| h * 5 + d))));
    assert!(!holds(&product, &over_rows(filters(|d, h| d * 6 + h))));
}
