//! Numbers of constants, and attributes that are numbers with a default.

use super::operand::operand_told;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Form;
use crate::graph::{Graph, Node, Op, ValueId};

/// What ONNX adds to a variance unless the node says otherwise.
pub const EPSILON: f32 = 1e-5;

/// What a normalization adds to the variance; `None` where the attribute is no number.
pub fn epsilon(node: &Node) -> Option<f32> {
    if node.attrs.contains_key("epsilon") { node.float("epsilon") } else { Some(EPSILON) }
}

/// The number of a constant of floats that has one element, of whatever rank.
pub fn number(graph: &Graph, v: ValueId) -> Option<f64> {
    graph.constant(v)?.to_floats(1)?.first().copied()
}

/// The number that a node is told by this attribute, or by the operand that newer versions have in its place; `default` if it is
/// told none, `None` if the number is not known.
pub fn number_told(graph: &Graph, node: &Node, name: &str, default: f64) -> Option<f64> {
    match (node.float(name), operand_told(node, name)) {
        (Some(x), _) => Some(x.into()),
        (_, Some(v)) => number(graph, v),
        _ => Some(default),
    }
}

/// Whether a value is a constant, or views of one.
pub fn is_constant(graph: &Graph, mut v: ValueId) -> bool {
    loop {
        let node = graph.node(graph.value(v).producer().0);
        match (&node.op, &node.form, node.operand(0)) {
            (Op::Constant(_), ..) => return true,
            (Op::Onnx(_), Form::View(_), Some(x)) => v = x,
            _ => return false,
        }
    }
}

/// The contents of a small integer tensor, if all of them are known numbers.
pub fn known_ints(graph: &Graph, v: ValueId) -> Option<Vec<i64>> {
    if graph.value(v).ty.dtype().is_some_and(DType::is_float) {
        return None;
    }
    graph.value(v).contents.as_ref()?.iter().map(Dim::as_const).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attr;
    use crate::build::Builder;
    use crate::constant::Constant;
    use crate::dtype::DType;
    use crate::graph::OpName;

    #[test]
    fn one_element_is_a_number_and_two_are_none() {
        let mut graph = Graph::new("g");
        let mut make = Builder::new(&mut graph, 0);
        let half = make.constant("half", Constant::inline(DType::F16, vec![], vec![0, 0x38].into())).unwrap();
        let one = make.filled("one", DType::F64, &[1, 1], 1.0).unwrap();
        let two = make.floats("two", &[1.0, 2.0], &[2]).unwrap();
        let whole = make.known_ints("whole", &[3]).unwrap();
        assert_eq!([half, one, two, whole].map(|v| number(&graph, v)), [Some(0.5), Some(1.0), None, None]);
        let row = Builder::new(&mut graph, 0).reshape(two, "row", vec![1.into(), 2.into()]).unwrap();
        let sum = Builder::new(&mut graph, 0).op("Add", [row, two]).shaped("sum", &[1.into(), 2.into()]).unwrap();
        assert_eq!([two, row, sum].map(|v| is_constant(&graph, v)), [true, true, false]);
        assert_eq!((known_ints(&graph, whole), known_ints(&graph, two)), (Some(vec![3]), None));
    }

    #[test]
    fn epsilon_has_a_default_and_must_be_a_number() {
        let mut node = Node::new(Op::Onnx(OpName::onnx("LayerNormalization")), vec![]);
        assert_eq!(epsilon(&node), Some(1e-5));
        node.attrs.insert("epsilon".to_owned(), Attr::Float(0.5));
        assert_eq!(epsilon(&node), Some(0.5));
        node.attrs.insert("epsilon".to_owned(), Attr::Int(1));
        assert_eq!(epsilon(&node), None);
    }
}
