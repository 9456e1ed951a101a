//! Attribute bundles read from nodes of several versions: a list is the same list wherever the version has it.

use crate::op_common::one_node;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId};
use relayout_ir::op::read::{
    self, Cut, Fill, Padding, SymbolicCut, axes_of_slice, cuts, fill, paddings, pads, reduced, symbolic_cuts,
};
use relayout_ir::types::Type;

fn read<T>((graph, n): &(Graph, NodeId), of: impl Fn(&Graph, &Node) -> T) -> T {
    of(graph, graph.node(*n))
}

#[test]
fn a_slice_says_the_same_by_attributes_and_by_operands() {
    let cut = |axis, start, end, step| Cut { axis, start, end, step };
    let old = one_node("Slice", 9, "axes=[-1,0] starts=[1,0] ends=[9,2]", "f32[4,8]", 1);
    let new = one_node("Slice", 13, "", "f32[4,8] =[1,0] =[9,2] =[-1,0]", 1);
    assert_eq!(read(&old, cuts), Some(vec![cut(1, 1, 9, 1), cut(0, 0, 2, 1)]));
    let (graph, n) = known(new);
    assert_eq!(cuts(&graph, graph.node(n)), Some(vec![cut(1, 1, 9, 1), cut(0, 0, 2, 1)]));
    let (graph, n) = known(one_node("Slice", 13, "", "f32[4,8] =[1] =[9] - =[2]", 1));
    assert_eq!(cuts(&graph, graph.node(n)), Some(vec![cut(0, 1, 9, 2)]));
    assert_eq!(axes_of_slice(&graph, graph.node(n)), Some(vec![0]));
}

#[test]
fn what_a_slice_computes_is_not_known_and_what_it_names_is() {
    let (graph, n) = known(one_node("Slice", 13, "", "f32[4,8] i64[1] ~[N] =[1]", 1));
    let node = graph.node(n);
    let found = symbolic_cuts(&graph, node, 2).unwrap().unwrap();
    let end = graph.value(node.operand(2).unwrap()).contents.as_ref().map(|c| c[0].clone());
    assert_eq!(found, [SymbolicCut { axis: 1, start: None, end, step: Some(1) }]);
    assert_eq!(cuts(&graph, node), None);
    let twice = one_node("Slice", 9, "axes=[0,0] starts=[0,0] ends=[1,1]", "f32[4,8]", 1);
    assert!(read(&twice, |graph, node| symbolic_cuts(graph, node, 2)).is_err());
}

#[test]
fn a_pad_says_the_same_by_attributes_and_by_operands() {
    for node in [
        one_node("Pad", 1, "paddings=[0,1,0,2]", "f32[4,8]", 1),
        one_node("Pad", 2, "pads=[0,1,0,2]", "f32[4,8]", 1),
        known(one_node("Pad", 13, "", "f32[4,8] =[0,1,0,2]", 1)),
        known(one_node("Pad", 18, "", "f32[4,8] =[1,2] - =[-1]", 1)),
    ] {
        assert_eq!(read(&node, pads), Some(vec![(0, 0), (1, 2)]));
    }
    let (graph, n) = known(one_node("Pad", 18, "", "f32[4,8] ~[0,N,0,2]", 1));
    let zero = (Padding::Known(0), Padding::Known(0));
    assert_eq!(paddings(&graph, graph.node(n)), Some(vec![zero, (Padding::Listed(1), Padding::Known(2))]));
    assert_eq!(pads(&graph, graph.node(n)), None);
}

#[test]
fn a_pad_fills_with_a_number_or_with_copies() {
    for (node, expected) in [
        (one_node("Pad", 2, "pads=[1,1]", "f32[4]", 1), Fill::Number(0.0)),
        (one_node("Pad", 2, "pads=[1,1] value=2.5", "f32[4]", 1), Fill::Number(2.5)),
        (one_node("Pad", 13, "", "f32[4] =[1,1] f=[1.5]", 1), Fill::Number(1.5)),
        (one_node("Pad", 13, "", "f32[4] =[1,1] f32[]", 1), Fill::Computed),
        (one_node("Pad", 13, "mode=edge", "f32[4] =[1,1] f32[]", 1), Fill::Copies),
    ] {
        assert_eq!(read(&node, fill), expected);
    }
}

#[test]
fn a_reduction_says_its_axes_where_its_version_has_them() {
    for (node, expected) in [
        (one_node("ReduceMean", 17, "axes=[-1,1]", "f32[2,3,4]", 1), Some(vec![1, 2])),
        (one_node("ReduceMean", 17, "", "f32[2,3,4]", 1), Some(vec![0, 1, 2])),
        (known(one_node("ReduceMean", 18, "", "f32[2,3,4] =[-1,1]", 1)), Some(vec![1, 2])),
        (one_node("ReduceMean", 18, "noop_with_empty_axes=1", "f32[2,3,4]", 1), Some(vec![])),
        (one_node("ReduceMean", 18, "", "f32[2,3,4] i64[1]", 1), None),
        (one_node("ArgMax", 13, "axis=-1", "f32[2,3,4]", 1), Some(vec![2])),
        (one_node("Softmax", 13, "axis=-1", "f32[2,3,4]", 1), None),
    ] {
        assert_eq!(read(&node, reduced), expected);
        assert!(read(&node, |_, node| read::keeps_axes(node)));
    }
}

#[test]
fn the_builder_tells_a_list_where_the_version_has_it() {
    let mut graph = Graph::new("g");
    let ty = Type::tensor(DType::F32, vec![4.into(), 8.into()]);
    let x = graph.add_input("x", ty.clone()).unwrap();
    let mut make = Builder::new(&mut graph, 0);
    for (opset, operands) in [(9, 1), (13, 5)] {
        let mut slice = make.op("Slice", [x]).kernel();
        for (name, number) in [("starts", 1), ("ends", 3), ("axes", 0), ("steps", 1)] {
            slice = slice.told(name, name, &[number], opset).unwrap();
        }
        let node = slice.node();
        assert_eq!((node.inputs.len(), node.attrs.len()), (operands, if opset < 10 { 3 } else { 0 }));
    }
    let y = make.op("Pad", [x]).told("pads", "pads", &[0, 0, 0, 1], 2).unwrap().result("y", ty).unwrap();
    let pad = graph.node(graph.value(y).producer().0);
    assert!(matches!(pad.attrs.get("pads"), Some(Attr::Ints(pads)) if pads[..] == [0, 0, 0, 1]));
}

/// The node with what is known of its operands.
fn known((mut graph, n): (Graph, NodeId)) -> (Graph, NodeId) {
    for v in graph.values().collect::<Vec<_>>() {
        graph.know_contents(v);
    }
    (graph, n)
}
