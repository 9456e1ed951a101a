//! Attributes of a node that is written anew, spelt out: some readers know no defaults.

use super::out::GraphOut;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::make::{empty_attribute, int_attribute, ints_attribute, string_attribute};
use crate::proto::{AttributeProto, NodeProto};
use relayout_ir::dim::Dim;
use relayout_ir::graph::Node;
use relayout_ir::op::{AttributeDefault, default_of};

/// What an attribute that is written out is.
enum Spelled {
    /// Its default.
    Default,
    /// So many numbers for each axis that windows go along.
    PerAxis(usize, i64),
    /// The extents of the weights behind the first two.
    Kernel,
}

use Spelled::{Default, Kernel, PerAxis};

/// By op: an attribute that is written out, the operator set since which the op has it, and what it is.
type Entry = (&'static [&'static str], &'static [(&'static str, i64, Spelled)]);

const SPELLED: &[Entry] = &[
    (
        &["Conv"],
        &[
            ("dilations", 1, PerAxis(1, 1)),
            ("group", 1, Default),
            ("kernel_shape", 1, Kernel),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (
        &["ConvTranspose"],
        &[
            ("dilations", 1, PerAxis(1, 1)),
            ("group", 1, Default),
            ("kernel_shape", 1, Kernel),
            ("output_padding", 1, PerAxis(1, 0)),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (
        &["MaxPool"],
        &[
            ("ceil_mode", 10, Default),
            ("dilations", 10, PerAxis(1, 1)),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (
        &["AveragePool"],
        &[
            ("ceil_mode", 10, Default),
            ("count_include_pad", 7, Default),
            ("pads", 1, PerAxis(2, 0)),
            ("strides", 1, PerAxis(1, 1)),
        ],
    ),
    (&["Gather"], &[("axis", 1, Default)]),
    (&["Split"], &[("axis", 2, Default)]),
    (&["Flatten"], &[("axis", 1, Default)]),
    (&["Softmax", "LogSoftmax"], &[("axis", 13, Default)]),
    (&["LayerNormalization"], &[("axis", 17, Default), ("epsilon", 17, Default)]),
    (&["InstanceNormalization", "BatchNormalization", "GroupNormalization"], &[("epsilon", 1, Default)]),
    (&["Gemm"], &[("alpha", 1, Default), ("beta", 1, Default), ("transA", 1, Default), ("transB", 1, Default)]),
    (&["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"], &[("keepdims", 1, Default)]),
    (&["LeakyRelu"], &[("alpha", 1, Default)]),
    (&["Elu"], &[("alpha", 1, Default)]),
    (&["HardSigmoid"], &[("alpha", 1, Default), ("beta", 1, Default)]),
    (&["DepthToSpace"], &[("mode", 11, Default)]),
];

/// The operands that are weights, of an op that has windows of their extents.
const WEIGHTS: usize = 1;

/// Says what a node of the standard domain leaves unsaid.
pub(super) fn spell(out: &GraphOut<'_>, node: &Node, proto: &mut NodeProto) {
    let Some(op) = node.onnx() else { return };
    for (name, _, spelled) in SPELLED
        .iter()
        .filter(|(ops, _)| ops.contains(&op))
        .flat_map(|(_, attributes)| attributes.iter())
        .filter(|(_, since, _)| node.opset >= *since)
    {
        let said = |name: &str| proto.attribute.iter().any(|a| a.name.as_deref() == Some(name));
        // What pads by itself says no pads.
        let by_itself = *name == "pads" && said("auto_pad");
        if !said(name) && !by_itself {
            proto.attribute.extend(attribute(out, node, name, spelled));
        }
    }
}

fn attribute(out: &GraphOut<'_>, node: &Node, name: &str, spelled: &Spelled) -> Option<AttributeProto> {
    // A kernel of a target may read a value of more dims than the value has axes.
    let stored = |v| out.graph.storage_shape(v, &out.graph.value(v).layout);
    let axes = || stored(node.operand(0)?)?.len().checked_sub(2);
    Some(match *spelled {
        Default => match default_of(node.onnx()?, name, node.opset)? {
            AttributeDefault::Int(i) => int_attribute(name, i),
            AttributeDefault::Float(x) => AttributeProto { f: Some(x), ..empty_attribute(name, AttributeType::Float) },
            AttributeDefault::Text(text) => string_attribute(name, text),
        },
        PerAxis(each, number) => ints_attribute(name, vec![number; each * axes()?]),
        Kernel => {
            let w = node.operand(WEIGHTS)?;
            let stored = stored(w)?;
            let extents = stored.get(2..2 + axes()?)?.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?;
            ints_attribute(name, extents)
        }
    })
}
