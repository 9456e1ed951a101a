//! Attributes of a node that is written anew, spelt out: some readers know no defaults.

use super::out::GraphOut;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::make::{empty_attribute, int_attribute, ints_attribute, string_attribute};
use crate::proto::{AttributeProto, NodeProto};
use relayout_ir::dim::Dim;
use relayout_ir::graph::Node;

/// What an attribute is where nothing is said.
enum Default {
    Int(i64),
    Float(f32),
    Text(&'static str),
    /// So many numbers for each axis that windows go along.
    PerAxis(usize, i64),
    /// The extents of the weights behind the first two.
    Kernel,
}

use Default::{Float, Int, Kernel, PerAxis, Text};

/// By op: an attribute, the operator set since which it has it, and its default.
type Spelled = (&'static [&'static str], &'static [(&'static str, i64, Default)]);

const SPELLED: &[Spelled] = &[
    (
        &["Conv"],
        &[
            ("dilations", 1, PerAxis(1, 1)),
            ("group", 1, Int(1)),
            ("kernel_shape", 1, Kernel),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (
        &["ConvTranspose"],
        &[
            ("dilations", 1, PerAxis(1, 1)),
            ("group", 1, Int(1)),
            ("kernel_shape", 1, Kernel),
            ("output_padding", 1, PerAxis(1, 0)),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (
        &["MaxPool"],
        &[
            ("ceil_mode", 10, Int(0)),
            ("dilations", 10, PerAxis(1, 1)),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (
        &["AveragePool"],
        &[
            ("ceil_mode", 10, Int(0)),
            ("count_include_pad", 7, Int(0)),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (&["Gather"], &[("axis", 1, Int(0))]),
    (&["Split"], &[("axis", 2, Int(0))]),
    (&["Flatten"], &[("axis", 1, Int(1))]),
    (&["Softmax", "LogSoftmax"], &[("axis", 13, Int(-1))]),
    (&["LayerNormalization"], &[("axis", 17, Int(-1)), ("epsilon", 17, Float(1e-5))]),
    (&["InstanceNormalization", "BatchNormalization", "GroupNormalization"], &[("epsilon", 1, Float(1e-5))]),
    (&["Gemm"], &[("alpha", 1, Float(1.0)), ("beta", 1, Float(1.0)), ("transA", 1, Int(0)), ("transB", 1, Int(0))]),
    (&["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"], &[("keepdims", 1, Int(1))]),
    (&["LeakyRelu"], &[("alpha", 1, Float(0.01))]),
    (&["Elu"], &[("alpha", 1, Float(1.0))]),
    (&["HardSigmoid"], &[("alpha", 1, Float(0.2)), ("beta", 1, Float(0.5))]),
    (&["DepthToSpace"], &[("mode", 11, Text("DCR"))]),
];

/// The operands that are weights, of an op that has windows of their extents.
const WEIGHTS: usize = 1;

/// Says what a node of the standard domain leaves unsaid.
pub(super) fn spell(out: &GraphOut<'_>, node: &Node, proto: &mut NodeProto) {
    let Some(op) = node.onnx() else { return };
    for (name, _, default) in SPELLED
        .iter()
        .filter(|(ops, _)| ops.contains(&op))
        .flat_map(|(_, attributes)| attributes.iter())
        .filter(|(_, since, _)| node.opset >= *since)
    {
        let said = |name: &str| proto.attribute.iter().any(|a| a.name.as_deref() == Some(name));
        // What pads by itself says no pads.
        let by_itself = *name == "pads" && said("auto_pad");
        if !said(name) && !by_itself {
            proto.attribute.extend(attribute(out, node, name, default));
        }
    }
}

fn attribute(out: &GraphOut<'_>, node: &Node, name: &str, default: &Default) -> Option<AttributeProto> {
    // A kernel of a target may read a value of more dims than the value has axes.
    let stored = |v| out.graph.storage_shape(v, &out.graph.value(v).layout);
    let axes = || stored(node.operand(0)?)?.len().checked_sub(2);
    Some(match *default {
        Int(i) => int_attribute(name, i),
        Float(x) => AttributeProto { f: Some(x), ..empty_attribute(name, AttributeType::Float) },
        Text(text) => string_attribute(name, text),
        PerAxis(each, number) => ints_attribute(name, vec![number; each * axes()?]),
        Kernel => {
            let w = node.operand(WEIGHTS)?;
            let stored = stored(w)?;
            let extents = stored.get(2..2 + axes()?)?.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?;
            ints_attribute(name, extents)
        }
    })
}
