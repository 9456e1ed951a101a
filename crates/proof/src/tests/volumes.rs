//! Volumes that are convolved as images: the slices that a window holds are channels.

use super::*;

const FRAMES: usize = 4;
const CHANNELS: usize = 3;
const FILTERS: usize = 2;

/// The model with lists of numbers.
pub(super) fn ints(mut made: Model, lists: &[(&str, &[i64], &[i64])]) -> Model {
    for (name, dims, values) in lists {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = Tensor { dims: dims.to_vec(), dtype: 7, data: data.into() };
        Rc::make_mut(&mut made.graph).initializers.push(((*name).to_owned(), tensor));
    }
    made
}

/// The weight of a filter for a channel, a slice of the window, and a place in it.
fn weight(filter: usize, channel: usize, slice: usize, place: usize) -> f32 {
    ((filter * 31 + channel * 17 + slice * 11 + place * 7) % 53) as f32 * 0.1 - 2.0
}

const BIAS: [f32; FILTERS] = [0.5, -1.0];

/// `x` as a volume [1, 3, 4, 4, 5], convolved.
fn plain(stride: i64) -> Model {
    let lines: &[Line<'_>] = &[
        ("v", "Reshape", &["x", "volume"], vec![]),
        (
            "c",
            "Conv",
            &["v", "w", "b"],
            vec![("pads", Attr::Ints(vec![1; 6])), ("strides", Attr::Ints(vec![stride, 1, 1]))],
        ),
        ("y", "Relu", &["c"], vec![]),
    ];
    let at = |n: usize| weight(n / 81, n / 27 % 3, n / 9 % 3, n % 9);
    let weights = (0..FILTERS * CHANNELS * 27).map(at).collect();
    let made = model(lines, &[("w", &[2, 3, 3, 3, 3], weights), ("b", &[2], BIAS.to_vec())]);
    ints(made, &[("volume", &[5], &[1, 3, 4, 4, 5])])
}

/// The slices of each window are gathered; index 4 is a slice of zeros. `order` is that of channel and slice in the weights.
fn gathered(frames: &[i64], slices_first: bool, mode: &str) -> Model {
    let count = frames.len() as i64 / 3;
    let told = vec![("mode", Attr::Text(mode.as_bytes().to_vec()))];
    let lines: &[Line<'_>] = &[
        ("v", "Reshape", &["x", "volume"], vec![]),
        ("t", "Transpose", &["v"], perm(&[0, 2, 1, 3, 4])),
        ("p", "Pad", &["t", "more"], told),
        ("g", "Gather", &["p", "frames"], axis(1)),
        ("i", "Reshape", &["g", "images"], vec![]),
        ("c", "Conv", &["i", "w", "b"], conv([1; 4])),
        ("r", "Relu", &["c"], vec![]),
        ("u", "Reshape", &["r", "slices"], vec![]),
        ("y", "Transpose", &["u"], perm(&[0, 2, 1, 3, 4])),
    ];
    let at = |n: usize| match (n / 9 % 9, slices_first) {
        (channel, true) => weight(n / 81, channel % 3, channel / 3, n % 9),
        (channel, false) => weight(n / 81, channel / 3, channel % 3, n % 9),
    };
    let weights = (0..FILTERS * 81).map(at).collect();
    let made = model(lines, &[("w", &[2, 9, 3, 3], weights), ("b", &[2], BIAS.to_vec())]);
    ints(
        made,
        &[
            ("volume", &[5], &[1, 3, 4, 4, 5]),
            ("more", &[10], &[0, 0, 0, 0, 0, 0, 1, 0, 0, 0]),
            ("frames", &[count, 3], frames),
            ("images", &[4], &[count, 9, 4, 5]),
            ("slices", &[5], &[1, count, 2, 4, 5]),
        ],
    )
}

#[test]
fn a_convolution_of_volumes_may_be_one_of_gathered_slices() {
    let right = [4, 0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4];
    let found = verdict(&plain(1), &gathered(&right, true, "constant"), &Proof::default());
    assert_eq!(found, Verdict::Proved { links: 0, hosts: None });
    assert!(holds(&plain(2), &gathered(&[4, 0, 1, 1, 2, 3], true, "constant")));
    assert!(!holds(&plain(1), &gathered(&right, false, "constant")));
    assert!(!holds(&plain(1), &gathered(&right, true, "edge")));
    for at in 0..right.len() {
        let mut other = right;
        other[at] = (other[at] + 1) % 5;
        assert!(!holds(&plain(1), &gathered(&other, true, "constant")), "slice {at}");
    }
    assert!(!holds(&plain(2), &gathered(&[0, 1, 2, 2, 3, 4], true, "constant")));
}

/// All slices are channels of one image: each filter has zeros for those that its window does not hold.
fn together(changed: Option<usize>, shift: usize) -> Model {
    let lines: &[Line<'_>] = &[
        ("v", "Reshape", &["x", "volume"], vec![]),
        ("t", "Transpose", &["v"], perm(&[0, 2, 1, 3, 4])),
        ("i", "Reshape", &["t", "image"], vec![]),
        ("c", "Conv", &["i", "w", "b"], conv([1; 4])),
        ("r", "Relu", &["c"], vec![]),
        ("u", "Reshape", &["r", "slices"], vec![]),
        ("y", "Transpose", &["u"], perm(&[0, 2, 1, 3, 4])),
    ];
    let wide = FRAMES * CHANNELS;
    let at = |n: usize| {
        let (row, column) = (n / (9 * wide), n / 9 % wide);
        let (window, filter, frame, channel) = (row / FILTERS, row % FILTERS, column / CHANNELS, column % CHANNELS);
        let slice = (frame + shift).checked_sub(window).filter(|slice| *slice < 3);
        slice.map_or(0.0, |slice| weight(filter, channel, slice, n % 9))
    };
    let mut weights: Vec<f32> = (0..FILTERS * FRAMES * wide * 9).map(at).collect();
    if let Some(at) = changed {
        weights[at] += 0.125;
    }
    let dims: [i64; 4] = [8, 12, 3, 3];
    let bias: Vec<f32> = (0..FRAMES).flat_map(|_| BIAS).collect();
    let made = model(lines, &[("w", &dims, weights), ("b", &[8], bias)]);
    ints(
        made,
        &[("volume", &[5], &[1, 3, 4, 4, 5]), ("image", &[4], &[1, 12, 4, 5]), ("slices", &[5], &[1, 4, 2, 4, 5])],
    )
}

#[test]
fn a_convolution_of_volumes_may_be_one_of_all_slices_together() {
    assert_eq!(verdict(&plain(1), &together(None, 1), &Proof::default()), Verdict::Proved { links: 0, hosts: None });
    for shift in [0, 2] {
        assert!(!holds(&plain(1), &together(None, shift)), "{shift}");
    }
    // Weights of the first filter: those of a slice that its window holds, and of one that it does not hold.
    for at in [0, 26, 27, 53, 54, 107] {
        assert!(!holds(&plain(1), &together(Some(at), 1)), "weight {at}");
    }
}

/// A tap of a chain: the frame that it reads, which weights it has, and whether it adds the bias.
type Tap = (usize, usize, bool);

fn node(op: &str, inputs: &[&str], outputs: &[&str], attrs: Vec<(&'static str, Attr)>) -> Node {
    Node {
        op: op.to_owned(),
        inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
        outputs: outputs.iter().map(|name| (*name).to_owned()).collect(),
        attrs: attrs.into_iter().map(|(name, attr)| (name.to_owned(), attr)).collect(),
        ..Node::default()
    }
}

/// A frame of the result: what its taps make, added up. `residual` is added before the others, or behind them.
fn frame(at: usize, chain: &[Tap], residual: Option<bool>) -> Vec<Node> {
    let mut nodes = Vec::new();
    let before = format!("s{at}");
    if residual.is_some() {
        nodes.push(node("Reshape", &[&format!("t{at}"), "result"], &[&before], vec![]));
    }
    let mut sum = (residual == Some(true)).then(|| before.clone());
    for (number, (read, tap, biased)) in chain.iter().enumerate() {
        let (made, both) = (format!("c{at}.{number}"), format!("a{at}.{number}"));
        let (image, weights) = (format!("i{read}"), format!("w{tap}"));
        let operands: &[&str] = if *biased { &[&image, &weights, "b"] } else { &[&image, &weights] };
        nodes.push(node("Conv", operands, &[&made], conv([1; 4])));
        sum = Some(match sum {
            None => made,
            Some(sum) => {
                nodes.push(node("Add", &[&sum, &made], &[&both], vec![]));
                both
            }
        });
    }
    let mut sum = sum.unwrap_or_default();
    if residual == Some(false) {
        let both = format!("a{at}.last");
        nodes.push(node("Add", &[&before, &sum], &[&both], vec![]));
        sum = both;
    }
    let image = format!("r{at}.image");
    nodes.push(node("Relu", &[&sum], &[&image], vec![]));
    nodes.push(node("Reshape", &[&image, "slice"], &[&format!("r{at}")], vec![]));
    nodes
}

/// Frames by themselves: each of the result is the sum of what its taps make.
fn apart(chains: &[Vec<Tap>], residual: Option<bool>) -> Model {
    let mut made = model(&[("v", "Reshape", &["x", "volume"], vec![])], &[]);
    let nodes = &mut Rc::make_mut(&mut made.graph).nodes;
    nodes.push(node("Split", &["v"], &["f0", "f1", "f2", "f3"], axis(2)));
    for (slice, image) in ["f0", "f1", "f2", "f3"].iter().zip(["i0", "i1", "i2", "i3"]) {
        nodes.push(node("Reshape", &[slice, "image"], &[image], vec![]));
    }
    if residual.is_some() {
        nodes.extend(skipped());
        nodes.push(node("Split", &["s"], &["t0", "t1", "t2", "t3"], axis(2)));
    }
    nodes.extend(chains.iter().enumerate().flat_map(|(at, chain)| frame(at, chain, residual)));
    nodes.push(node("Concat", &["r0", "r1", "r2", "r3"], &["y"], axis(2)));
    for tap in 0..3 {
        let at = |n: usize| weight(n / 27, n / 9 % 3, tap, n % 9);
        let weights: Vec<f32> = (0..FILTERS * 27).map(at).collect();
        made = floats(made, &format!("w{tap}"), &[2, 3, 3, 3], &weights);
    }
    let lists: &[(&str, &[i64], &[i64])] =
        &[("volume", &[5], &[1, 3, 4, 4, 5]), ("image", &[4], &[1, 3, 4, 5]), ("slice", &[5], &[1, 2, 1, 4, 5])];
    ints(ints(floats(made, "b", &[2], &BIAS), lists), SKIPPED)
}

/// What skips the convolution: 160 numbers of `z` as a volume like its result.
fn skipped() -> [Node; 3] {
    [
        node("Reshape", &["z", "all"], &["flat"], vec![]),
        node("Slice", &["flat", "from", "to"], &["some"], vec![]),
        node("Reshape", &["some", "like"], &["s"], vec![]),
    ]
}

/// What the nodes of `skipped` are told.
const SKIPPED: &[(&str, &[i64], &[i64])] = &[
    ("all", &[1], &[240]),
    ("from", &[1], &[40]),
    ("to", &[1], &[200]),
    ("like", &[5], &[1, 2, 4, 4, 5]),
    ("result", &[4], &[1, 2, 4, 5]),
];

/// The model with a list of floats.
fn floats(mut made: Model, name: &str, dims: &[i64], values: &[f32]) -> Model {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let tensor = Tensor { dims: dims.to_vec(), dtype: 1, data: data.into() };
    Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
    made
}

/// The chains of a convolution of stride 1, the middle tap first.
fn chains() -> Vec<Vec<Tap>> {
    let read = |left: usize| [1, 0, 2].into_iter().filter_map(move |tap| Some(((left + tap).checked_sub(1)?, tap)));
    let own = |left: usize| read(left).filter(|(frame, _)| *frame < FRAMES).map(|(frame, tap)| (frame, tap, tap == 1));
    (0..FRAMES).map(|left| own(left).collect()).collect()
}

/// `plain`, with what skips the convolution added before the Relu.
fn with_residual() -> Model {
    let mut made = plain(1);
    let nodes = &mut Rc::make_mut(&mut made.graph).nodes;
    let relu = nodes.len() - 1;
    nodes[relu].inputs = vec!["a".to_owned()];
    nodes.splice(relu..relu, skipped().into_iter().chain([node("Add", &["c", "s"], &["a"], vec![])]));
    ints(made, SKIPPED)
}

#[test]
fn a_convolution_of_volumes_may_be_sums_of_what_its_taps_make_of_frames() {
    let right = chains();
    let by_lemma = |verdict: &Verdict| matches!(verdict, Verdict::WithLemmas { .. });
    let found = verdict(&plain(1), &apart(&right, None), &Proof::default());
    assert!(by_lemma(&found), "{found:?}");
    for before in [true, false] {
        let found = verdict(&with_residual(), &apart(&right, Some(before)), &Proof::default());
        assert!(by_lemma(&found), "{found:?}");
        assert!(!holds(&plain(1), &apart(&right, Some(before))));
    }
    assert!(!holds(&with_residual(), &apart(&right, None)));
    for (left, at) in (0..FRAMES).flat_map(|left| (0..right[left].len()).map(move |at| (left, at))) {
        let changed = |change: &dyn Fn(&mut Vec<Tap>)| {
            let mut chains = right.clone();
            change(&mut chains[left]);
            !holds(&plain(1), &apart(&chains, None))
        };
        assert!(changed(&|chain| chain[at].0 = (chain[at].0 + 1) % FRAMES), "frame of {left}, {at}");
        assert!(changed(&|chain| chain[at].1 = (chain[at].1 + 1) % 3), "weights of {left}, {at}");
        assert!(changed(&|chain| chain[at].2 = !chain[at].2), "bias of {left}, {at}");
        assert!(
            changed(&|chain| {
                chain.remove(at);
            }),
            "no tap {at} of {left}"
        );
        assert!(changed(&|chain| chain.push(chain[at])), "tap {at} of {left} twice");
    }
    let mut turned = right;
    turned.swap(1, 2);
    assert!(!holds(&plain(1), &apart(&turned, None)), "frames in another order");
}

/// The sum of `x` and of its sine, less than nothing cut off; of the parts of both by themselves, put behind each other in this order.
fn by_parts(order: Option<[[&'static str; 2]; 3]>) -> Model {
    let Some(order) = order else {
        let lines: &[Line<'_>] =
            &[("s", "Sin", &["x"], vec![]), ("a", "Add", &["x", "s"], vec![]), ("y", "Relu", &["a"], vec![])];
        return model(lines, &[]);
    };
    let mut made = model(&[("s", "Sin", &["x"], vec![])], &[]);
    let nodes = &mut Rc::make_mut(&mut made.graph).nodes;
    nodes.push(node("Split", &["x", "parts"], &["x0", "x1", "x2"], axis(1)));
    nodes.push(node("Split", &["s", "parts"], &["s0", "s1", "s2"], axis(1)));
    for ([left, right], made) in order.iter().zip(["r0", "r1", "r2"]) {
        let sum = format!("{made}.sum");
        nodes.push(node("Add", &[left, right], &[&sum], vec![]));
        nodes.push(node("Relu", &[&sum], &[made], vec![]));
    }
    nodes.push(node("Concat", &["r0", "r1", "r2"], &["y"], axis(1)));
    ints(made, &[("parts", &[3], &[1, 3, 2])])
}

#[test]
fn what_is_made_of_the_same_parts_is_these_parts_of_the_whole() {
    let whole = by_parts(None);
    let right = [["x0", "s0"], ["x1", "s1"], ["s2", "x2"]];
    let found = verdict(&whole, &by_parts(Some(right)), &Proof::default());
    assert_eq!(found, Verdict::Proved { links: 0, hosts: None });
    for (at, other) in [(0, ["x0", "x0"]), (1, ["x1", "x1"]), (2, ["s2", "s2"]), (0, ["s0", "s0"])] {
        let mut wrong = right;
        wrong[at] = other;
        assert!(!holds(&whole, &by_parts(Some(wrong))), "{other:?}");
    }
    // The first of three places, and another one of one place, are not the same part.
    assert!(!holds(&whole, &by_parts(Some([["x0", "s1"], right[1], right[2]]))));
}

/// A pool of rows, as one of images of one row if `wide`.
fn rows(op: &str, wide: bool, pads: i64, counts: i64) -> Model {
    let (kernel, around) = if wide { (vec![1, 3], vec![0, pads, 0, pads]) } else { (vec![3], vec![pads; 2]) };
    let mut told = vec![("kernel_shape", Attr::Ints(kernel)), ("pads", Attr::Ints(around))];
    if op == "AveragePool" {
        told.push(("count_include_pad", Attr::Int(counts)));
    }
    let lines: &[Line<'_>] =
        &[("r", "Reshape", &["x", "to"], vec![]), ("p", op, &["r"], told), ("y", "Reshape", &["p", "flat"], vec![])];
    let to: &[i64] = if wide { &[2, 24, 1, 5] } else { &[2, 24, 5] };
    ints(model(lines, &[]), &[("to", &[to.len() as i64], to), ("flat", &[2], &[2, -1])])
}

#[test]
fn a_pool_of_one_row_is_a_pool_of_its_places() {
    for op in ["MaxPool", "AveragePool"] {
        let a = rows(op, false, 1, 1);
        assert!(holds(&a, &rows(op, true, 1, 1)), "{op}");
        assert!(!holds(&a, &rows(op, true, 0, 1)), "{op}");
    }
    assert!(!holds(&rows("AveragePool", false, 1, 1), &rows("AveragePool", true, 1, 0)));
}

/// A convolution of `x` as [2, 6, 4 or 20, 1] with a kernel of `w` over rows and columns.
fn thin(weights: &[f32], extents: [i64; 2], pads: [i64; 4], stride: i64) -> Model {
    let told = vec![("pads", Attr::Ints(pads.to_vec())), ("strides", Attr::Ints(vec![1, stride]))];
    let lines: &[Line<'_>] =
        &[("r", "Reshape", &["x", "to"], vec![]), ("c", "Conv", &["r", "w"], told), ("y", "Relu", &["c"], vec![])];
    let made = model(lines, &[("w", &[2, 6, extents[0], extents[1]], weights.to_vec())]);
    ints(made, &[("to", &[4], &[2, 6, 20, 1])])
}

#[test]
fn taps_that_read_nothing_but_padding_are_none() {
    let wide: Vec<f32> = (0..2 * 6 * 3).map(|n| n as f32 * 0.25 - 3.0).collect();
    let taps = |at: usize| wide.iter().skip(at).step_by(3).copied().collect::<Vec<f32>>();
    let a = thin(&wide, [1, 3], [0, 1, 0, 1], 1);
    assert!(holds(&a, &thin(&taps(1), [1, 1], [0; 4], 1)));
    assert!(!holds(&a, &thin(&taps(0), [1, 1], [0; 4], 1)));
    assert!(!holds(&a, &thin(&taps(2), [1, 1], [0; 4], 1)));
    assert!(holds(&thin(&wide, [1, 3], [0, 2, 0, 0], 1), &thin(&taps(2), [1, 1], [0; 4], 1)));
    let odd = |at: usize, number: f32| {
        let mut odd = wide.clone();
        odd[at] = number;
        thin(&odd, [1, 3], [0, 1, 0, 1], 1)
    };
    assert!(holds(&odd(3, 7.0), &a));
    assert!(!holds(&odd(3, f32::NAN), &a), "padding takes something from what is no number");
    // Three windows of two taps each, of which each tap reads the place once.
    let two: Vec<f32> = wide.iter().take(24).copied().collect();
    assert!(!holds(&thin(&two, [1, 2], [0, 1, 0, 1], 1), &thin(&two, [1, 2], [0, 1, 0, 0], 1)));
}
