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
