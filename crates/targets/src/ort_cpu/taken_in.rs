//! What a blocked convolution takes in of the nodes behind it: a sum with its result, and an activation of that or of its result. Which
//! activations these are is a matter of the runtime's [`Release`].

use super::release::Release;
use relayout_ir::attr::Attr;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::float_or_default;
use relayout_ir::op::read::{number, number_told};

/// An activation that the kernels of convolutions apply.
pub(crate) struct Activation {
    /// The op that it is.
    op: &'static str,
    /// The kernel's name for it.
    name: &'static str,
    params: &'static [Param],
    /// The first release whose kernels have it, where some that files are written for do not.
    since: Option<Release>,
}

/// A number that the kernel reads.
enum Param {
    /// What an attribute says, or the operand that newer versions have in its place; and what it is unless said.
    Told(&'static str, f32),
    /// A constant operand.
    Operand(usize),
}

const fn activation(op: &'static str, params: &'static [Param]) -> Activation {
    Activation { op, name: op, params, since: None }
}

/// Every one of them.
static ACTIVATIONS: &[Activation] = &[
    activation("Relu", &[]),
    activation("Sigmoid", &[]),
    activation("Tanh", &[]),
    Activation { since: Some(Release::new(1, 30)), ..activation(HARD_SWISH, &[]) },
    activation("LeakyRelu", &[Param::Told("alpha", 0.01)]),
    // With one slope for all channels.
    Activation { name: "LeakyRelu", ..activation("PRelu", &[Param::Operand(1)]) },
    activation("HardSigmoid", &[Param::Told("alpha", 0.2), Param::Told("beta", 0.5)]),
    activation("Clip", &[Param::Told("min", f32::MIN), Param::Told("max", f32::MAX)]),
];

impl Activation {
    /// The activation that the kernel calls so, as the op of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Activation> {
        ACTIVATIONS.iter().find(|activation| activation.op == name && activation.name == name)
    }

    /// The first release whose convolutions apply it, where older ones do not.
    pub(crate) fn since(&self) -> Option<Release> {
        self.since
    }

    /// Whether the convolutions of a release apply it; those of the newest one if none is said.
    fn is_of(&self, release: Option<Release>) -> bool {
        self.since.zip(release).is_none_or(|(since, release)| since <= release)
    }

    /// The attributes that its numbers are of the op, in the kernel's order.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &'static str> {
        self.params.iter().filter_map(|param| match param {
            Param::Told(name, _) => Some(*name),
            Param::Operand(_) => None,
        })
    }
}

/// The first release that takes in all of them.
pub(crate) fn newest() -> Option<Release> {
    ACTIVATIONS.iter().filter_map(Activation::since).max()
}

/// Opset from which the standard domain has `HardSwish`.
pub(crate) const HARD_SWISH_OPSET: i64 = 14;
const HARD_SWISH: &str = "HardSwish";

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

/// An activation that a kernel may apply to a value.
#[derive(Debug, PartialEq)]
pub(crate) struct Activated {
    /// The kernel's name for it.
    pub(crate) name: &'static str,
    /// The numbers that it reads.
    pub(crate) params: Vec<f32>,
    /// What it is applied to.
    pub(crate) of: ValueId,
    /// How many operands of its nodes that is.
    pub(crate) reads: usize,
}

/// The activation whose result a node leaves; `None` if its numbers are not known, or the release has none of the kind.
pub(crate) fn activation_of(graph: &Graph, n: NodeId, release: Option<Release>) -> Option<Activated> {
    let node = graph.node(n);
    let op = node.onnx()?;
    let known = |op: &str| ACTIVATIONS.iter().find(|activation| activation.op == op && activation.is_of(release));
    if let Some((of, _)) = gated(graph, n) {
        return known(HARD_SWISH).map(|it| Activated { name: it.name, params: Vec::new(), of, reads: 2 });
    }
    let activation = known(op)?;
    let read = |param: &Param| match param {
        Param::Told(name, default) => number_told(graph, node, name, (*default).into()),
        Param::Operand(slot) => number(graph, node.operand(*slot)?),
    };
    let params = activation.params.iter().map(|param| read(param).map(|x| x as f32)).collect::<Option<_>>()?;
    Some(Activated { name: activation.name, params, of: node.operand(0)?, reads: 1 })
}

/// How far the slope of a gate may be from a sixth for ONNX Runtime to take it for that of `HardSwish`.
const SLOPE_WITHIN: f32 = 1e-6;

/// What a product multiplies by its own `HardSigmoid`, where that is `HardSwish`, and the gate, which nobody else reads.
fn gated(graph: &Graph, product: NodeId) -> Option<(ValueId, NodeId)> {
    let node = graph.node(product);
    let (a, b) = node.operand(0).zip(node.operand(1)).filter(|_| node.onnx() == Some("Mul"))?;
    [(a, b), (b, a)].into_iter().find_map(|(x, gate)| {
        let n = graph.value(gate).producer().0;
        let maker = graph.node(n);
        let is_gate = maker.onnx() == Some("HardSigmoid") && maker.operand(0) == Some(x);
        let slope = maker.float("alpha").is_some_and(|alpha| (alpha - 1.0 / 6.0).abs() < SLOPE_WITHIN);
        let starts = float_or_default(maker, "beta").is_some_and(|beta| beta.to_bits() == 0.5_f32.to_bits());
        (is_gate && slope && starts && graph.only_use(gate).is_some()).then_some((x, n))
    })
}

/// The product that a gate is part of.
fn product_of(graph: &Graph, gate: NodeId) -> Option<NodeId> {
    let product = graph.only_use(graph.node(gate).only_result()?)?.node;
    (gated(graph, product)?.1 == gate).then_some(product)
}

/// Whether a convolution takes in a node, if it runs in blocks: what it is priced by.
pub(crate) fn is_taken_in(graph: &Graph, n: NodeId, release: Option<Release>) -> bool {
    let n = product_of(graph, n).unwrap_or(n);
    let node = graph.node(n);
    let is_conv = |maker: NodeId| graph.node(maker).onnx() == Some("Conv");
    if is_sum(node) {
        return node.inputs.iter().flatten().any(|&v| graph.only_use(v).is_some() && is_conv(maker(graph, v)));
    }
    activation_of(graph, n, release).filter(|it| is_read_by(graph, it.of, it.reads)).is_some_and(|it| {
        let maker = maker(graph, it.of);
        is_conv(maker) || (is_sum(graph.node(maker)) && is_taken_in(graph, maker, release))
    })
}

/// What makes a value, behind Transposes of what nobody else reads: where both sides lie alike they are no nodes of the result.
fn maker(graph: &Graph, v: ValueId) -> NodeId {
    let n = graph.value(v).producer().0;
    let node = graph.node(n);
    let turned = node.operand(0).filter(|&x| node.onnx() == Some("Transpose") && graph.only_use(x).is_some());
    turned.map_or(n, |x| maker(graph, x))
}

/// Whether a value is this many operands and nothing else.
pub(crate) fn is_read_by(graph: &Graph, v: ValueId, operands: usize) -> bool {
    !graph.is_output(v) && graph.use_count(v) == operands
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
            assert_eq!(activation_of(&graph, n, None).map(|it| (it.name, it.params)), expected, "{line}");
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
            assert_eq!(is_taken_in(&graph, graph.value(graph.outputs()[0]).producer().0, None), expected, "{line}");
        }
    }

    #[test]
    fn a_transpose_in_between_is_a_view_if_nobody_else_reads_what_it_turns() {
        let turned = "  %t: f32[1,2,2,8]@NCHW = Transpose(%c) {perm=[0,2,3,1]}\n";
        let back = "  %u: f32[1,8,2,2]@NCHW = Transpose(%t) {perm=[0,3,1,2]}\n";
        let cases = [
            (turned.to_owned(), "1,2,2,8", "Relu(%t)", true),
            (format!("{turned}{back}"), "1,8,2,2", "Relu(%u)", true),
            (format!("{turned}{back}"), "1,8,2,2", "Add(%u, %x)", true),
            (format!("{turned}{back}"), "1,8,2,2", "Add(%u, %c)", false),
            (format!("{turned}{back}"), "1,2,2,8", "Relu(%t)", false),
            (turned.replace("%c", "%x"), "1,2,2,8", "Relu(%t)", false),
        ];
        for (before, shape, line, expected) in cases {
            let conv = "  %w: f32[8,8,1,1]@NCHW = const\n  %c: f32[1,8,2,2]@NCHW = Conv(%x, %w)\n";
            let graph = graph(&format!("{conv}{before}  %y: f32[{shape}]@NCHW = {line}\n"));
            assert_eq!(
                is_taken_in(&graph, graph.value(graph.outputs()[0]).producer().0, None),
                expected,
                "{before}{line}"
            );
        }
    }

    #[test]
    fn a_product_with_its_own_gate_is_an_activation_with_the_gate() {
        let cases = [
            ("%g: f32[1,8,2,2]@NCHW = HardSigmoid(%c) {alpha=0.16666667}\n  %y: f32[1,8,2,2]@NCHW = Mul(%c, %g)", true),
            ("%g: f32[1,8,2,2]@NCHW = HardSigmoid(%c) {alpha=0.16666667}\n  %y: f32[1,8,2,2]@NCHW = Mul(%g, %c)", true),
            // Another slope, another start, a gate of something else, and a third reader.
            ("%g: f32[1,8,2,2]@NCHW = HardSigmoid(%c)\n  %y: f32[1,8,2,2]@NCHW = Mul(%c, %g)", false),
            (
                "%g: f32[1,8,2,2]@NCHW = HardSigmoid(%c) {alpha=0.16666667, beta=0.25}\n  %y: f32[1,8,2,2]@NCHW = Mul(%c, %g)",
                false,
            ),
            (
                "%g: f32[1,8,2,2]@NCHW = HardSigmoid(%x) {alpha=0.16666667}\n  %y: f32[1,8,2,2]@NCHW = Mul(%c, %g)",
                false,
            ),
            (
                "%g: f32[1,8,2,2]@NCHW = HardSigmoid(%c) {alpha=0.16666667}\n  %h: f32[1,8,2,2]@NCHW = Mul(%c, %g)\n  %y: f32[1,8,2,2]@NCHW = Add(%h, %c)",
                false,
            ),
        ];
        for (lines, expected) in cases {
            let conv = "  %w: f32[8,8,1,1]@NCHW = const\n  %c: f32[1,8,2,2]@NCHW = Conv(%x, %w)\n";
            let graph = graph(&format!("{conv}  {lines}\n"));
            let product = graph.nodes().find(|&n| graph.node(n).onnx() == Some("Mul")).unwrap();
            let gate = graph.nodes().find(|&n| graph.node(n).onnx() == Some("HardSigmoid")).unwrap();
            assert_eq!(is_taken_in(&graph, product, None), expected, "{lines}");
            // By itself the gate of something else, or of another slope, is an activation like others.
            assert!(!is_taken_in(&graph, gate, None) || expected, "{lines}");
        }
    }
}
