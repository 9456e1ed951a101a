//! What an op meant in older operator sets, and what runtimes and the standard read otherwise.

use super::opaque::node;
use super::*;

const CUBE: [i64; 4] = [2, 5, 5, 5];

/// `y = op(x, b)` of this operator set, with a cube for `x` and as many numbers as it has channels for `b`, in this order of axes.
fn of_channels(opset: i64, op: &'static str, attrs: Vec<(&'static str, Attr)>, order: &[i64]) -> Model {
    let lines: &[Line<'_>] = &[
        ("t", "Transpose", &["x"], perm(order)),
        ("u", op, &["t", "b"], attrs),
        ("y", "Transpose", &["u"], perm(order)),
    ];
    let mut made = model(lines, &[("b", &[5], vec![1.0, 2.0, 3.0, 4.0, 5.0])]);
    Rc::make_mut(&mut made.graph).inputs[0].dims = Some(CUBE.map(DeclaredDim::Known).to_vec());
    made.opsets = [(String::new(), opset)].into();
    made
}

#[test]
fn operands_that_an_attribute_aligns_are_not_aligned_at_their_ends() {
    let told = || vec![("broadcast", Attr::Int(1)), ("axis", Attr::Int(1))];
    let (plain, swapped) = (&[0, 1, 2, 3], &[0, 2, 1, 3]);
    for op in ["Add", "Mul", "Pow"] {
        // By their ends both would be the same.
        assert!(holds(&of_channels(7, op, vec![], plain), &of_channels(7, op, vec![], swapped)), "{op}");
        assert!(!holds(&of_channels(6, op, told(), plain), &of_channels(6, op, told(), swapped)), "{op}");
        assert!(holds(&of_channels(6, op, told(), plain), &of_channels(6, op, told(), plain)), "{op}");
    }
    assert!(holds(&of_channels(7, "PRelu", vec![], plain), &of_channels(7, "PRelu", vec![], swapped)));
    assert!(!holds(&of_channels(6, "PRelu", vec![], plain), &of_channels(6, "PRelu", vec![], swapped)));
}

#[test]
fn a_type_that_is_named_by_a_word_is_that_type() {
    let cast = |word: &str| {
        let named = vec![("to", Attr::Text(word.as_bytes().into()))];
        let mut made = model(&[("c", "Cast", &["x"], named), ("y", "Relu", &["x"], vec![])], &[]);
        made.opsets = [(String::new(), 5)].into();
        Rc::make_mut(&mut made.graph).outputs = vec!["c".to_owned()];
        made
    };
    assert!(holds(&cast("INT32"), &cast("INT32")));
    assert!(!holds(&cast("INT32"), &cast("INT8")));
}

#[test]
fn an_empty_list_of_axes_is_no_list_to_some() {
    let squeezed = |axes: &[i64]| {
        let mut made = model(&[("s", "Squeeze", &["x", "axes"], vec![]), ("y", "Flatten", &["s"], vec![])], &[]);
        let graph = Rc::make_mut(&mut made.graph);
        graph.inputs[0].dims = Some([2, 1, 4, 5].map(DeclaredDim::Known).to_vec());
        let data: Vec<u8> = axes.iter().flat_map(|axis| axis.to_le_bytes()).collect();
        let tensor = Tensor { dims: vec![axes.len() as i64], dtype: 7, data: data.into() };
        graph.initializers.push(("axes".to_owned(), tensor));
        made
    };
    let mut plain = squeezed(&[]);
    node(&mut plain, 1).inputs = vec!["x".to_owned()];
    assert!(!holds(&plain, &squeezed(&[])));
    assert!(holds(&plain, &squeezed(&[1])));
}

/// One node of an operator set.
fn in_opset(opset: i64, line: Line<'_>, constants: &[(&str, &[i64], Vec<f32>)]) -> Model {
    let mut made = model(&[line], constants);
    made.opsets = [(String::new(), opset)].into();
    made
}

#[test]
fn what_is_left_out_of_an_image_is_not_the_same_in_old_operator_sets() {
    let words = ["asymmetric", "floor"].map(|word| Attr::Text(word.into()));
    let said = || {
        let [places, rounds] = words.clone();
        vec![("coordinate_transformation_mode", places), ("nearest_mode", rounds)]
    };
    for (scale, wanted) in [(0.5, false), (1.6, true), (2.0, true)] {
        let scales: &[(&str, &[i64], Vec<f32>)] = &[("s", &[4], vec![1.0, 1.0, scale, 1.0])];
        let old = in_opset(10, ("y", "Resize", &["x", "s"], vec![]), scales);
        assert!(holds(&old, &old));
        assert_eq!(holds(&old, &in_opset(13, ("y", "Resize", &["x", "", "s"], said()), scales)), wanted, "{scale}");
    }
}

#[test]
fn defaults_are_those_of_the_operator_set() {
    let selu = |opset, attrs| in_opset(opset, ("y", "Selu", &["x"], attrs), &[]);
    let told = |alpha, gamma| vec![("alpha", Attr::Float(alpha)), ("gamma", Attr::Float(gamma))];
    assert!(holds(&selu(6, vec![]), &selu(13, told(1.673_263_2, 1.050_701))));
    assert!(holds(&selu(5, vec![]), &selu(13, told(1.6732, 1.0507))));
    assert!(!holds(&selu(5, vec![]), &selu(6, vec![])));
}

#[test]
fn groups_have_a_number_each_and_later_each_channel_has_one() {
    let groups = |opset, count: i64| {
        let list = || (0..count).map(|n| n as f32).collect::<Vec<f32>>();
        let line: Line<'_> = ("y", "GroupNormalization", &["x", "s", "b"], vec![("num_groups", Attr::Int(3))]);
        in_opset(opset, line, &[("s", &[count], list()), ("b", &[count], list())])
    };
    assert!(holds(&groups(18, 3), &groups(18, 3)));
    assert!(holds(&groups(21, 6), &groups(21, 6)));
    assert!(!holds(&groups(21, 6), &groups(18, 6)));
    assert!(!holds(&groups(18, 3), &groups(21, 3)));
}

#[test]
fn a_number_is_no_list_of_one() {
    let mean = |dims: &[i64]| {
        let mut made = in_opset(18, ("y", "ReduceMean", &["x", "axes"], vec![]), &[]);
        let tensor = Tensor { dims: dims.to_vec(), dtype: 7, data: 1i64.to_le_bytes().to_vec().into() };
        Rc::make_mut(&mut made.graph).initializers.push(("axes".to_owned(), tensor));
        made
    };
    assert!(holds(&mean(&[1]), &mean(&[1])));
    assert!(!holds(&mean(&[1]), &mean(&[])));
}

#[test]
fn sums_of_constants_that_their_type_does_not_hold_stay_what_they_are() {
    let sums = |by: i8| {
        let lines: &[Line<'_>] = &[
            ("s", "Add", &["a", "b"], vec![]),
            ("f", "Cast", &["s"], vec![("to", Attr::Int(1))]),
            ("y", "Add", &["x", "f"], vec![]),
        ];
        let mut made = model(lines, &[]);
        for (name, number) in [("a", 100i8), ("b", by)] {
            let tensor = Tensor { dims: vec![], dtype: 3, data: number.to_le_bytes().to_vec().into() };
            Rc::make_mut(&mut made.graph).initializers.push((name.to_owned(), tensor));
        }
        made
    };
    assert!(holds(&sums(100), &sums(100)));
    assert!(!holds(&sums(100), &sums(101)));
    assert!(!holds(&sums(100), &sums(-56)));
}

#[test]
fn padding_by_a_rule_is_none_by_numbers_where_windows_have_gaps() {
    let convolved = |dilation: i64, rule: bool| {
        let pads = if rule {
            ("auto_pad", Attr::Text(b"SAME_UPPER".to_vec()))
        } else {
            ("pads", Attr::Ints(vec![dilation; 4]))
        };
        let attrs = vec![pads, ("dilations", Attr::Ints(vec![dilation; 2]))];
        model(&[("y", "Conv", &["x", "w"], attrs)], &[("w", &[2, 6, 3, 3], vec![1.5; 108])])
    };
    assert!(holds(&convolved(1, false), &convolved(1, true)));
    assert!(!holds(&convolved(2, false), &convolved(2, true)), "the runtime does not run it");
    assert!(holds(&convolved(2, true), &convolved(2, true)));
}
