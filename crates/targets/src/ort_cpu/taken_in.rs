//! What a blocked convolution takes in of the nodes behind it: a sum with its result, and an activation of that or of its result.

use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::{number, number_told};

/// Ops that add two operands.
pub(crate) const SUMS: [&str; 2] = ["Add", "Sum"];

/// An activation that the kernels of convolutions apply.
pub(crate) struct Activation {
    /// The op that it is.
    op: &'static str,
    /// The kernel's name for it.
    name: &'static str,
    params: &'static [Param],
}

/// A number that the kernel reads.
enum Param {
    /// What an attribute says, or the operand that newer versions have in its place; and what it is unless said.
    Told(&'static str, f32),
    /// A constant operand.
    Operand(usize),
}

const fn activation(op: &'static str, params: &'static [Param]) -> Activation {
    Activation { op, name: op, params }
}

/// Every one of them.
static ACTIVATIONS: &[Activation] = &[
    activation("Relu", &[]),
    activation("Sigmoid", &[]),
    activation("Tanh", &[]),
    activation("HardSwish", &[]),
    activation("LeakyRelu", &[Param::Told("alpha", 0.01)]),
    // With one slope for all channels.
    Activation { op: "PRelu", name: "LeakyRelu", params: &[Param::Operand(1)] },
    activation("HardSigmoid", &[Param::Told("alpha", 0.2), Param::Told("beta", 0.5)]),
    activation("Clip", &[Param::Told("min", f32::MIN), Param::Told("max", f32::MAX)]),
];

impl Activation {
    /// The activation that a node is, whatever its numbers.
    fn of(node: &Node) -> Option<&'static Activation> {
        let op = node.onnx()?;
        ACTIVATIONS.iter().find(|activation| activation.op == op)
    }

    /// The activation that the kernel calls so, as the op of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Activation> {
        ACTIVATIONS.iter().find(|activation| activation.op == name && activation.name == name)
    }

    /// The attributes that its numbers are of the op, in the kernel's order.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &'static str> {
        self.params.iter().filter_map(|param| match param {
            Param::Told(name, _) => Some(*name),
            Param::Operand(_) => None,
        })
    }
}

/// The kernel's name for the activation that a node is, and the numbers that it reads; `None` if these are not known.
pub(crate) fn activation_of(graph: &Graph, n: NodeId) -> Option<(&'static str, Vec<f32>)> {
    let node = graph.node(n);
    let activation = Activation::of(node)?;
    let read = |param: &Param| match param {
        Param::Told(name, default) => number_told(graph, node, name, (*default).into()),
        Param::Operand(slot) => number(graph, node.operand(*slot)?),
    };
    let params = activation.params.iter().map(|param| read(param).map(|x| x as f32)).collect::<Option<_>>()?;
    Some((activation.name, params))
}

/// Whether a convolution takes in a node, if it runs in blocks: what it is priced by.
pub(crate) fn is_taken_in(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let made_by = |v: &ValueId| graph.only_use(*v).is_some().then(|| graph.value(*v).producer().0);
    let is_conv = |maker: NodeId| graph.node(maker).onnx() == Some("Conv");
    let is_sum = |maker: NodeId| graph.node(maker).onnx() == Some("Add") && is_taken_in(graph, maker);
    if node.onnx() == Some("Add") {
        return node.inputs.iter().flatten().filter_map(made_by).any(is_conv);
    }
    let is_activation = Activation::of(node).is_some_and(|activation| activation.op == activation.name);
    let maker = node.operand(0).filter(|_| is_activation).as_ref().and_then(made_by);
    maker.is_some_and(|maker| is_conv(maker) || is_sum(maker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::text::parse;

    #[test]
    fn the_numbers_of_an_activation_are_known_or_it_is_none() {
        let lines = [
            ("Relu(%x)", Some(("Relu", vec![]))),
            ("LeakyRelu(%x) {alpha=0.25}", Some(("LeakyRelu", vec![0.25]))),
            ("HardSigmoid(%x) {beta=0.25}", Some(("HardSigmoid", vec![0.2, 0.25]))),
            ("Clip(%x)", Some(("Clip", vec![f32::MIN, f32::MAX]))),
            ("Clip(%x, %s)", None),
            ("PRelu(%x, %s)", None),
            ("Elu(%x)", None),
        ];
        for (line, expected) in lines {
            let text = format!(
                "graph g opset=16\n  %x: f32[1,8,2,2]@NCHW = input\n  %s: f32[1]@N = input\n  %y: f32[1,8,2,2]@NCHW = {line}\n  output %y\n"
            );
            let graph = parse(&text).unwrap();
            let n = graph.nodes().find(|&n| graph.node(n).onnx().is_some()).unwrap();
            assert_eq!(activation_of(&graph, n), expected, "{line}");
        }
    }
}
