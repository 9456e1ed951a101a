//! Linear ops with constant weights, read as ops that can take a factor per output channel, and a summand if there is a place.

use relayout_eval::Split;
use relayout_eval::floats;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::op::read::group;
use relayout_target_api::{Counted, Numerics, Rule};

const CONDITION: &str = "s and t are constants, one number or one per output channel; nothing else reads what lies between; \
     W is constant, and read by nothing else if it is large; no QuantizeLinear follows";
const BUYS: &str = "an element-wise node: a pass over the result";

/// The rule.
pub(crate) const INTO_CONV: Rule = Rule {
    name: "scale_into_conv",
    equation: "s * Conv(x, W, b) + t = Conv(x, s * W, s * b + t)",
    condition: CONDITION,
    buys: BUYS,
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The rule.
pub(crate) const INTO_CONV_TRANSPOSE: Rule = Rule {
    name: "scale_into_conv_transpose",
    equation: "s * ConvTranspose(x, W, b) + t = ConvTranspose(x, s * W, s * b + t)",
    condition: CONDITION,
    buys: BUYS,
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The rule.
pub(crate) const INTO_GEMM: Rule = Rule {
    name: "scale_into_gemm",
    equation: "s * Gemm(x, W, c) + t = Gemm(x, s * W, s * c + t)",
    condition: CONDITION,
    buys: BUYS,
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The rule.
pub(crate) const INTO_MATMUL: Rule = Rule {
    name: "scale_into_matmul",
    equation: "s * (MatMul(x, W) + b) + t = MatMul(x, s * W) + (s * b + t)",
    condition: CONDITION,
    buys: BUYS,
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// Reads a node as one whose weights can take a factor per output channel.
pub(super) type AnchorOf = fn(&Graph, &Node) -> Option<Anchor>;

/// The linear ops that take scales and shifts: the op, its rule, its reading.
pub(super) static ANCHORS: [(&str, &Rule, AnchorOf); 4] = [
    ("Conv", &INTO_CONV, conv),
    ("ConvTranspose", &INTO_CONV_TRANSPOSE, conv_transpose),
    ("Gemm", &INTO_GEMM, gemm),
    ("MatMul", &INTO_MATMUL, matmul),
];

/// A linear op that can take factors.
#[derive(Clone, Debug)]
pub(super) struct Anchor {
    /// Operand with the weights.
    pub weight_slot: usize,
    /// The weights.
    pub weight: ValueId,
    /// Where the output channels are in the weights.
    pub split: Split,
    /// Axis of the result that has the output channels.
    pub axis: usize,
    /// Where summands go.
    pub bias: BiasPlace,
}

/// Where an op takes a summand per output channel.
#[derive(Clone, Debug)]
pub(super) enum BiasPlace {
    /// In this operand, which holds these numbers now; `None` where it is left out.
    Operand {
        /// Slot.
        slot: usize,
        /// The value and its numbers, one per channel.
        now: Option<(ValueId, Vec<f64>)>,
    },
    /// In an Add behind it, if there is one.
    Behind,
}

impl Anchor {
    /// Output channels.
    pub(super) fn channels(&self) -> usize {
        self.split.groups * self.split.channels
    }
}

fn conv(graph: &Graph, node: &Node) -> Option<Anchor> {
    let weights = Weights::recognize(graph, node, 1)?;
    let (channels, inner) = weights.dims.split_first()?;
    let split = Split { groups: 1, inputs: 1, channels: *channels, rest: product(inner) };
    weights.anchor(graph, node, split, 1, Some(2))
}

fn conv_transpose(graph: &Graph, node: &Node) -> Option<Anchor> {
    let weights = Weights::recognize(graph, node, 1)?;
    let [inputs, channels, rest @ ..] = weights.dims.as_slice() else { return None };
    let groups = usize::try_from(group(node).ok()?).ok().filter(|g| inputs % g == 0)?;
    let split = Split { groups, inputs: inputs / groups, channels: *channels, rest: product(rest) };
    weights.anchor(graph, node, split, 1, Some(2))
}

fn gemm(graph: &Graph, node: &Node) -> Option<Anchor> {
    // Before opset 7 the summand was aligned by an attribute.
    if node.opset < 7 || node.attrs.get("beta").is_some_and(|b| !matches!(b, relayout_ir::attr::Attr::Float(1.0))) {
        return None;
    }
    let weights = Weights::recognize(graph, node, 1)?;
    let [a, b] = weights.dims[..] else { return None };
    let split = if node.flag("transB") {
        Split { groups: 1, inputs: 1, channels: a, rest: b }
    } else {
        Split { groups: 1, inputs: a, channels: b, rest: 1 }
    };
    weights.anchor(graph, node, split, 1, Some(2))
}

fn matmul(graph: &Graph, node: &Node) -> Option<Anchor> {
    let result = node.result(0)?;
    let rank = graph.value(result).ty.rank()?;
    if let Some(weights) = Weights::recognize(graph, node, 1) {
        let (channels, inputs) = weights.dims.split_last().filter(|(_, before)| !before.is_empty())?;
        let split = Split { groups: 1, inputs: product(inputs), channels: *channels, rest: 1 };
        return weights.anchor(graph, node, split, rank.checked_sub(1)?, None);
    }
    let weights = Weights::recognize(graph, node, 0)?;
    let [channels, inner] = weights.dims[..] else { return None };
    // A vector on the other side leaves no axis besides.
    let other = graph.value(node.operand(1)?).ty.rank()?;
    let split = Split { groups: 1, inputs: 1, channels, rest: inner };
    if other < 2 { None } else { weights.anchor(graph, node, split, rank.checked_sub(2)?, None) }
}

fn product(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// Constant weights of floats in ONNX's order.
struct Weights {
    slot: usize,
    value: ValueId,
    dims: Vec<usize>,
}

impl Weights {
    fn recognize(graph: &Graph, node: &Node, slot: usize) -> Option<Weights> {
        let value = node.operand(slot)?;
        let Constant { dtype, dims, pending, .. } = graph.constant(value)?;
        let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
        let dims = dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Vec<_>>>()?;
        // The product of a tensor's dims fits, so that of some of them does.
        (float && pending.is_none() && !dims.contains(&0)).then_some(Weights { slot, value, dims })
    }

    fn anchor(self, graph: &Graph, node: &Node, split: Split, axis: usize, bias: Option<usize>) -> Option<Anchor> {
        let channels = split.groups * split.channels;
        let bias = match bias {
            None => BiasPlace::Behind,
            Some(slot) => {
                let now = match node.operand(slot) {
                    None => None,
                    Some(v) => Some((v, summands(graph.constant(v)?, channels)?)),
                };
                BiasPlace::Operand { slot, now }
            }
        };
        Some(Anchor { weight_slot: self.slot, weight: self.value, split, axis, bias })
    }
}

/// A bias as one number per channel: a vector, or what broadcasts as one along the last axis.
fn summands(c: &Constant, channels: usize) -> Option<Vec<f64>> {
    let numbers = floats(c)?;
    match numbers.len() {
        1 => Some(vec![*numbers.first()?; channels]),
        n if n == channels && c.dims.last() == Some(&(channels as i64)) => Some(numbers),
        _ => None,
    }
}
