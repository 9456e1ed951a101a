//! What a blocked convolution takes in of the nodes behind it: a sum with its result, and an activation of that or of its result.

use relayout_ir::attr::Attr;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::{number, number_told};

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

/// Opset from which the standard domain has `HardSwish`.
pub(crate) const HARD_SWISH_OPSET: i64 = 14;

/// The activation that a fused convolution says it ends in, and its numbers.
pub(crate) fn said(node: &Node) -> Option<(&str, &[f32])> {
    let params = match node.attrs.get("activation_params") {
        Some(Attr::Floats(params)) => params.as_slice(),
        _ => &[],
    };
    node.str("activation").filter(|op| !op.is_empty()).map(|op| (op, params))
}

/// These numbers as the attributes of the op that such a convolution names. One that ONNX does not have, no rule knows either: it has
/// none.
pub(crate) fn attributes_of(op: &str, params: &[f32]) -> Vec<(&'static str, Attr)> {
    let names = Activation::named(op).into_iter().flat_map(Activation::attributes);
    names.zip(params).map(|(name, &p)| (name, Attr::Float(p))).collect()
}

/// The kernel's name for the activation that a node is, and the numbers that it reads; `None` if these are not known.
pub(crate) fn activation_of(graph: &Graph, n: NodeId) -> Option<(&'static str, Vec<f32>)> {
    let node = graph.node(n);
    let op = node.onnx()?;
    let activation = ACTIVATIONS.iter().find(|activation| activation.op == op)?;
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
    if is_sum(node) {
        return node.inputs.iter().flatten().filter_map(made_by).any(is_conv);
    }
    let maker = node.operand(0).filter(|_| activation_of(graph, n).is_some()).as_ref().and_then(made_by);
    maker.is_some_and(|maker| is_conv(maker) || (is_sum(graph.node(maker)) && is_taken_in(graph, maker)))
}

/// Whether a node adds two operands.
pub(crate) fn is_sum(node: &Node) -> bool {
    matches!(node.onnx(), Some("Add" | "Sum")) && node.inputs.len() == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::text::parse;

    fn graph(lines: &str) -> Graph {
        let head = "graph g opset=16\n  %x: f32[1,8,2,2]@NCHW = input\n  %s: f32[1]@N = input\n";
        parse(&format!("{head}{lines}  output %y\n")).unwrap()
    }

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
            let graph = graph(&format!("  %y: f32[1,8,2,2]@NCHW = {line}\n"));
            let n = graph.value(graph.outputs()[0]).producer().0;
            assert_eq!(activation_of(&graph, n), expected, "{line}");
        }
    }

    #[test]
    fn what_is_priced_as_taken_in_is_what_is_fused() {
        let lines = [
            ("Relu(%c)", true),
            ("Relu(%x)", false),
            ("Clip(%c, %s)", false),
            ("PRelu(%c, %s)", false),
            ("Add(%x, %c)", true),
            ("Sum(%c, %x)", true),
            ("Sum(%c, %x, %x)", false),
            ("Elu(%c)", false),
        ];
        for (line, expected) in lines {
            let conv = "  %w: f32[8,8,1,1]@NCHW = const\n  %c: f32[1,8,2,2]@NCHW = Conv(%x, %w)\n";
            let graph = graph(&format!("{conv}  %y: f32[1,8,2,2]@NCHW = {line}\n"));
            assert_eq!(is_taken_in(&graph, graph.value(graph.outputs()[0]).producer().0), expected, "{line}");
        }
    }
}
