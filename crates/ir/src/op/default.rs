//! What attributes of ONNX's ops are where a node does not say them, for all who read them. (The checker of results has its own.)
//!
//! A signature names the default of the axis that it is about once more, as a constant can't look it up here; a test holds both
//! together. Flags that are off by default have no entry: [`Node::flag`] reads them.

use super::read::EPSILON;
use crate::graph::{Node, Op};

/// The default of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeDefault {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// A text.
    Text(&'static str),
}

use AttributeDefault::{Float, Int, Text};

/// Ops, an attribute of theirs, the version of the operator set since which it has this default, and the default.
type Entry = (&'static [&'static str], &'static str, i64, AttributeDefault);

const DEFAULTS: &[Entry] = &[
    (&["ArgMax", "ArgMin", "Compress", "CumProd", "Gather", "GatherElements"], "axis", 1, Int(0)),
    (&["Scatter", "ScatterElements", "Split"], "axis", 1, Int(0)),
    (&["DFT", "DequantizeLinear", "Flatten", "QuantizeLinear"], "axis", 1, Int(1)),
    (&["Hardmax", "LogSoftmax", "Softmax"], "axis", 1, Int(1)),
    (&["Hardmax", "LogSoftmax", "Softmax"], "axis", 13, Int(-1)),
    (&["LayerNormalization", "LpNormalization", "RMSNormalization"], "axis", 1, Int(-1)),
    (&["OneHot", "TopK"], "axis", 1, Int(-1)),
    (&["TensorScatter"], "axis", 1, Int(-2)),
    (&["Conv", "ConvTranspose"], "group", 1, Int(1)),
    (&["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"], "keepdims", 1, Int(1)),
    (&["AveragePool", "MaxPool"], "ceil_mode", 1, Int(0)),
    (&["AveragePool"], "count_include_pad", 1, Int(0)),
    (&["BatchNormalization"], "spatial", 1, Int(1)),
    (&["BatchNormalization", "GroupNormalization", "InstanceNormalization"], "epsilon", 1, Float(EPSILON)),
    (&["LayerNormalization"], "epsilon", 1, Float(EPSILON)),
    (&["GroupNormalization", "LayerNormalization"], "stash_type", 1, Int(1)),
    (&["Gemm"], "transA", 1, Int(0)),
    (&["Gemm"], "transB", 1, Int(0)),
    (&["FusedMatMul", "Gemm"], "alpha", 1, Float(1.0)),
    (&["Gemm"], "beta", 1, Float(1.0)),
    (&["Elu"], "alpha", 1, Float(1.0)),
    (&["LeakyRelu"], "alpha", 1, Float(0.01)),
    (&["HardSigmoid"], "alpha", 1, Float(0.2)),
    (&["HardSigmoid"], "beta", 1, Float(0.5)),
    (&["DepthToSpace"], "mode", 1, Text("DCR")),
    (&["Resize", "Upsample"], "mode", 1, Text("nearest")),
    (&["Resize"], "coordinate_transformation_mode", 1, Text("half_pixel")),
    (&["Resize"], "nearest_mode", 1, Text("round_prefer_floor")),
];

/// What an attribute of an op is in this version of its operator set where a node does not say it; `None` where nothing follows from that.
/// Version 0 is the newest.
pub fn default_of(op: &str, attribute: &str, opset: i64) -> Option<AttributeDefault> {
    let opset = if opset == 0 { i64::MAX } else { opset };
    let known = |(ops, name, since, _): &&Entry| ops.contains(&op) && *name == attribute && *since <= opset;
    DEFAULTS.iter().rev().find(known).map(|(.., default)| *default)
}

fn default(node: &Node, attribute: &str) -> Option<AttributeDefault> {
    match &node.op {
        Op::Onnx(op) => default_of(&op.name, attribute, node.opset),
        _ => None,
    }
}

/// An integer attribute, or its default; `None` where it has none.
pub fn int_or_default(node: &Node, attribute: &str) -> Option<i64> {
    let default = || if let Some(Int(i)) = default(node, attribute) { Some(i) } else { None };
    node.int(attribute).or_else(default)
}

/// A float attribute, or its default; `None` where it has none.
pub fn float_or_default(node: &Node, attribute: &str) -> Option<f32> {
    let default = || if let Some(Float(x)) = default(node, attribute) { Some(x) } else { None };
    node.float(attribute).or_else(default)
}

/// A text attribute, or its default; `None` where it has none.
pub fn text_or_default<'n>(node: &'n Node, attribute: &str) -> Option<&'n str> {
    let default = || if let Some(Text(text)) = default(node, attribute) { Some(text) } else { None };
    node.str(attribute).or_else(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attr;
    use crate::form::Renumber;
    use crate::graph::OpName;
    use crate::op::{Axes, AxisSource, entries};

    #[test]
    fn signatures_have_the_same_defaults() {
        let mut compared = 0;
        for def in entries().filter(|def| def.domain.is_empty()) {
            let Axes::Sig(cases) = def.axes else { continue };
            for case in cases {
                let axis = match case.axis {
                    AxisSource::Attr(name, default) | AxisSource::ResultAttr(name, default) => Some((name, default)),
                    _ => None,
                };
                let renumbered = case.renumber.iter().filter_map(|what| match *what {
                    Renumber::AxisAttr(name, default) | Renumber::ResultAxisAttr(name, default) => {
                        Some((name, default))
                    }
                    _ => None,
                });
                for (name, said) in axis.into_iter().chain(renumbered) {
                    if let Some(default) = default_of(def.name, name, def.opsets.0) {
                        assert_eq!(default, Int(said), "{} since {}", def.name, def.opsets.0);
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 20, "{compared}");
    }

    #[test]
    fn what_a_node_says_counts_before_the_default_of_its_version() {
        let mut node = Node::new(Op::Onnx(OpName::onnx("Softmax")), vec![]);
        for (opset, axis) in [(12, 1), (13, -1), (0, -1)] {
            node.opset = opset;
            assert_eq!(int_or_default(&node, "axis"), Some(axis));
        }
        node.attrs.insert("axis".to_owned(), Attr::Int(2));
        assert_eq!(int_or_default(&node, "axis"), Some(2));
        assert_eq!((int_or_default(&node, "group"), float_or_default(&node, "axis")), (None, None));
        let resize = Node::new(Op::Onnx(OpName::onnx("Resize")), vec![]);
        assert_eq!(text_or_default(&resize, "mode"), Some("nearest"));
    }
}
