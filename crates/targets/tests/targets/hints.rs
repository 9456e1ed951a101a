//! Sizes at which open dims are priced.

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, Op, OpName};
use relayout_ir::types::Type;
use relayout_target_api::Sizes;
use relayout_target_api::hints::{Hints, Scale, Size};
use std::collections::BTreeMap;

#[test]
fn sizes_are_numbers_or_ranges() {
    for (text, ends, typical) in [("224", (112, 448), 224), ("1..32", (1, 32), 16)] {
        let size: Size = text.parse().unwrap();
        assert_eq!((size.ends(), size.typical()), (ends, typical));
    }
    for bad in ["0", "-3", "8..2", "0..4", "x", "1..", ""] {
        assert!(bad.parse::<Size>().is_err(), "{bad}");
    }
}

#[test]
fn an_extent_is_priced_at_its_symbols() {
    let graph = Graph::new("g");
    let hints = Hints::new(&BTreeMap::from([("H".to_owned(), Size::of(10))]), &graph);
    let dim: Dim = "2*H+1".parse().unwrap();
    assert_eq!(hints.extent(&dim), 21);
    assert_eq!(hints.scaled(Scale::Low).extent(&dim), 11);
    assert_eq!(hints.scaled(Scale::High).extent(&dim), 41);
    assert_eq!(hints.extent(&Dim::symbol("W")), 64);
}

#[test]
fn a_dim_without_a_symbol_is_called_by_its_input_and_its_place() {
    let mut graph = Graph::new("g");
    let open = [Dim::unknown(4), Dim::unknown(5), Dim::symbol("T")];
    graph.add_input("x", Type::tensor(DType::F32, open.to_vec())).unwrap();
    let sizes = [("x.1", 10), ("x.2", 20)].map(|(name, size)| (name.to_owned(), Size::of(size)));
    let hints = Hints::new(&BTreeMap::from(sizes), &graph);
    assert_eq!(open.map(|dim| hints.extent(&dim)), [1, 10, 20]);
    let used = hints.used(&graph).into_iter().map(|(name, size)| format!("{name}={size}"));
    assert_eq!(used.collect::<Vec<_>>(), ["T=20", "x.0=1", "x.1=10"]);
}

#[test]
fn what_nobody_knows_is_as_large_as_what_it_comes_from() {
    let dims = |text: &[&str]| text.iter().map(|d| d.parse().unwrap()).collect::<Vec<Dim>>();
    let mut graph = Graph::new("g");
    let x = graph.add_input("x", Type::tensor(DType::F32, dims(&["1", "4", "H", "W"]))).unwrap();
    let mut add = |op: &str, x, shape: &[&str]| {
        let node = Node::new(Op::Onnx(OpName::onnx(op)), vec![Some(x)]);
        graph.add_single(node, op.to_owned(), Type::tensor(DType::F32, dims(shape))).unwrap()
    };
    let cut = add("Slice", x, &["1", "4", "?1", "?2"]);
    let packed = add("SpaceToDepth", cut, &["1", "16", "?3", "?4"]);
    let turned = add("Transpose", packed, &["?4", "?3", "16", "1"]);
    let counted = add("NonZero", turned, &["4", "?5"]);
    let hints = Hints::new(&BTreeMap::from([("H".to_owned(), Size::of(100)), ("W".to_owned(), Size::of(100))]), &graph);
    let extents = |v| graph.value(v).ty.shape().unwrap().iter().map(|d| hints.extent(d)).collect::<Vec<u64>>();
    assert_eq!(extents(cut), [1, 4, 100, 100]);
    assert_eq!(extents(packed), [1, 16, 50, 50]);
    assert_eq!(extents(turned), [50, 50, 16, 1]);
    assert_eq!(extents(counted), [4, 64]);
}
