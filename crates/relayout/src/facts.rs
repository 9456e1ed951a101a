//! What runtimes do wrong with a file when they load it, by version. Nothing of it is written that the model did not have: the part of
//! the model where it would be stays as it was.
//!
//! The question is asked of the messages that are about to be written, so it does not matter which rewrite would have led there.
//! `docs/runtime-bugs.md` has each with what was seen.

mod mend;
mod reader;

use reader::{Reader, STOPS_TRANSPOSES, int, ints, is_call, is_nothing, is_transpose, stays_quantized};
use relayout_ir::dtype::DType;
use relayout_ir::graph::Graph;
use relayout_ir::model::Model;
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_onnx::proto::{GraphProto, ModelProto, NodeProto};
use relayout_target_api::Numerics;
use std::collections::BTreeSet;

/// Something that a runtime does wrong.
pub(crate) struct Fact {
    /// Its heading in `docs/runtime-bugs.md`.
    pub(crate) heading: &'static str,
    /// What must not stand in a file.
    pub(crate) what: &'static str,
    /// What becomes of it.
    pub(crate) outcome: &'static str,
    /// Whether a node of a graph is so; `opset` is the version of the standard operators.
    is_so: fn(&Reader<'_>, &NodeProto) -> bool,
}

/// The runtime and the version with which all of them were seen.
pub(crate) const SEEN_IN: &str = "ONNX Runtime 1.31.1";

const PADS: &str = "Pads in front of pools";
const QUANTIZATIONS: &str = "Quantizations in a row";
const OUTPUTS: &str = "Outputs in front of a quantization";
const RANGES: &str = "Range";

/// All that is known.
pub(crate) const FACTS: &[Fact] = &[
    Fact {
        heading: "Dequantization by blocks",
        what: "a Transpose in front of a QuantizeLinear or DequantizeLinear with blocks",
        outcome: "the Transpose is moved behind it without its scales: other numbers, or it does not run",
        is_so: |reader, node| {
            let quantizes = matches!(node.op_type(), "QuantizeLinear" | "DequantizeLinear");
            let blocks = quantizes && int(node, "block_size").unwrap_or(0) > 0;
            blocks && reader.is_reached_by_transpose(node)
        },
    },
    Fact {
        heading: "MatMul of halves",
        what: "a Transpose that moves the first axis in front of a product of halves with a constant",
        outcome: "the process may end while the file is loaded",
        is_so: |reader, node| {
            let of = |constant: usize, other: usize| {
                let moves = |node: &NodeProto| ints(node, "perm").is_none_or(|perm| perm.first() != Some(&0));
                let halves = reader.constant(node, constant) == Some(DataType::Float16 as i32);
                halves && reader.producer(node, other).is_some_and(|node| is_transpose(node) && moves(node))
            };
            node.op_type() == "MatMul" && (of(0, 1) || of(1, 0))
        },
    },
    Fact {
        heading: "Dequantized values that bodies read",
        what: "a Transpose, a Reshape or another view behind a DequantizeLinear, read by name in a body",
        outcome: "the process may end while the file is loaded",
        is_so: |reader, node| {
            let captured = || node.output.iter().any(|name| reader.captured.contains(name.as_str()));
            stays_quantized(node) && captured() && reader.is_dequantized(node)
        },
    },
    Fact {
        heading: "Views of dequantized signed bytes",
        what: "a Transpose, a Reshape or another view behind a DequantizeLinear of signed bytes, in operator sets from 21 on",
        outcome: "the file does not load: the types of what is quantized again do not match",
        is_so: |reader, node| {
            // The body of a call may begin with a Transpose. Each reader gets a DequantizeLinear of its own on load.
            let view = |node: &NodeProto| stays_quantized(node) || is_call(node);
            reader.dequantizes_signed_bytes(node) && reader.is_read_by(node, &is_nothing, &view)
        },
    },
    Fact {
        heading: "Normalizations of dequantized signed bytes",
        what: "a GroupNormalization behind a DequantizeLinear of signed bytes in a file with functions, in operator sets from 21 on",
        outcome: "the file does not load: it is written out as one that begins with a Reshape before that is quantized again",
        is_so: |reader, node| {
            let passed = |node: &NodeProto| is_nothing(node) || stays_quantized(node);
            // The body of a call of a form of it has one.
            let normalizes = |node: &NodeProto| node.op_type().starts_with("GroupNormalization");
            reader.calls && reader.dequantizes_signed_bytes(node) && reader.is_read_by(node, &passed, &normalizes)
        },
    },
    Fact {
        heading: OUTPUTS,
        what: "a Transpose between a QuantizeLinear and a value that is an output or that a body reads",
        outcome: "what others read becomes quantized: other numbers",
        is_so: |reader, node| node.op_type() == "QuantizeLinear" && reader.is_moved_for_others(node),
    },
    Fact {
        heading: "Indices of quantized pools",
        what: "a QuantizeLinear behind a MaxPool whose indices are read",
        outcome: "it is put in front of the pool: among numbers that are the same once they are quantized another one is the largest",
        is_so: |reader, node| node.op_type() == "QuantizeLinear" && reader.is_pooled_with_indices(node),
    },
    Fact {
        heading: PADS,
        what: "a Pad of zeros that only a MaxPool, or an AveragePool with ceil_mode, reads",
        outcome: "the Pad becomes the pool's own padding: other numbers, or a shorter result",
        is_so: |reader, node| {
            let pools = match node.op_type() {
                "MaxPool" => true,
                "AveragePool" => int(node, "ceil_mode").unwrap_or(0) == 1,
                _ => false,
            };
            pools && reader.producer(node, 0).is_some_and(|pad| reader.is_zero_pad_for_one(pad))
        },
    },
    Fact {
        heading: "Pad",
        what: "a Pad or a Resize of named axes between two Transposes",
        outcome: "its lists are permuted as if they had an entry for every axis: it does not run, or other numbers",
        is_so: |reader, node| {
            let named = match node.op_type() {
                "Pad" => node.input.get(3).is_some_and(|axes| !axes.is_empty()),
                "Resize" => ints(node, "axes").is_some(),
                _ => false,
            };
            let passed = |node: &NodeProto| !STOPS_TRANSPOSES.contains(&node.op_type());
            let moves = |node: &NodeProto| is_transpose(node) || is_call(node);
            named && reader.is_reached_by_transpose(node) && reader.is_read_by(node, &passed, &moves)
        },
    },
    Fact {
        heading: "Units of scales for an axis",
        what: "an op that has a quantized form between a DequantizeLinear with a scale for each place of an axis and a QuantizeLinear",
        outcome: "the three become one op that takes a single scale: the file does not load, or it does not run",
        is_so: |reader, node| {
            let slots = match node.op_type() {
                "AveragePool" | "Conv" | "GlobalAveragePool" | "LeakyRelu" | "MatMul" | "Sigmoid" | "Softmax" => 1,
                "Add" | "Concat" | "Mul" => node.input.len(),
                _ => return false,
            };
            let passed = |node: &NodeProto| is_nothing(node) || stays_quantized(node);
            let quantizes = |node: &NodeProto| node.op_type() == "QuantizeLinear";
            let of_an_axis = |slot| reader.dequantizer(node, slot).is_some_and(|made| reader.has_scales(made));
            (0..slots).any(of_an_axis) && reader.is_read_by(node, &passed, &quantizes)
        },
    },
    Fact {
        heading: "Products of numbers of 8 and 2 bits",
        what: "a MatMul of dequantized numbers, some of 2 bits or floats of 8 bits, or bytes with scales of rows or blocks",
        outcome: "the three become one op, which knows bytes and scales of columns alone: it does not load, or other numbers",
        is_so: |reader, node| node.op_type() == "MatMul" && reader.multiplies_bytes_wrongly(node),
    },
    Fact {
        heading: "Views of narrow quantized numbers",
        what: "a view or a pool that has no kernel for a narrow type, behind a DequantizeLinear or before a QuantizeLinear of that type",
        outcome: "the quantization is put on its other side, and the file does not load",
        is_so: |reader, node| reader.views_what_has_no_kernel(node),
    },
    Fact {
        heading: "Casts in front of normalizations",
        what: "a Cast to another type right in front of a layer normalization that is written as ReduceMean, Sub and so on",
        outcome: "the file does not load: the normalization becomes one op, which reads what the Cast read",
        is_so: |reader, node| {
            let Some(y) = node.output.first().filter(|_| reader.casts_otherwise(node)) else { return false };
            let mean = |sub: &NodeProto| {
                let made = reader.producer(sub, 1);
                made.is_some_and(|made| made.op_type() == "ReduceMean" && made.input.first() == Some(y))
            };
            let mut readers = reader.readers.get(y.as_str()).into_iter().flatten();
            readers.any(|sub| sub.op_type() == "Sub" && sub.input.first() == Some(y) && mean(sub))
        },
    },
    Fact {
        heading: QUANTIZATIONS,
        what: "a QuantizeLinear right behind the DequantizeLinear of another pair in other units",
        outcome: "the two pairs become one: numbers that are off by up to a step",
        is_so: |reader, node| node.op_type() == "QuantizeLinear" && reader.quantizes_once_more(node),
    },
    Fact {
        heading: RANGES,
        what: "a Range of what a branch leaves, if that may be a vector, beside constants that the model has not",
        outcome: "the runtime may take the branch on load, and then refuses a constant vector: the file does not load",
        is_so: |reader, node| node.op_type() == "Range" && reader.reads_what_branches_leave(node),
    },
    Fact {
        heading: "Gather of texts",
        what: "a Gather of texts along another axis than the last one",
        outcome: "of each slice only the first text is copied",
        is_so: |reader, node| {
            let Some(v) = node.input.first().and_then(|name| reader.graph.by_name(name)) else { return false };
            let ty = &reader.graph.value(v).ty;
            let last = ty.rank().map_or(0, |rank| rank as i64 - 1);
            let axis = int(node, "axis").unwrap_or(0);
            node.op_type() == "Gather" && ty.dtype() == Some(DType::String) && axis != last && axis != -1
        },
    },
];

/// A place where one of them would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadFault {
    /// The first result of the node.
    pub(crate) value: String,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// What messages that are about to be written have of them and those that they were made from, the last of `before`, have not. What can be
/// written otherwise is. Functions of any of `before` are the model's; `ir` knows the types of values.
pub(crate) fn new_in(before: &[&ModelProto], after: &mut ModelProto, ir: &Model, numerics: Numerics) -> Vec<LoadFault> {
    let opset = ir.opsets.get("").copied().unwrap_or(0);
    let of = |proto, calls| Written { proto, graph: &ir.graph, opset, calls };
    let had_functions = before.iter().any(|proto| !proto.functions.is_empty());
    let calls = !after.functions.is_empty();
    let before = before.last().and_then(|proto| proto.graph.as_ref()).map(|proto| of(proto, had_functions));
    let (Some(before), Some(after)) = (before, &mut after.graph) else { return Vec::new() };
    // The sign of a zero is a bit as well.
    if numerics > Numerics::Exact {
        mend::mend(before, after);
    }
    let mut found = places(of(after, calls));
    if !found.is_empty() {
        let had: BTreeSet<Place> = places(before).into_iter().collect();
        found.retain(|place| !had.contains(place));
    }
    let why = |fact: &Fact| {
        format!("{SEEN_IN} can't have {}: {} (docs/runtime-bugs.md, \"{}\")", fact.what, fact.outcome, fact.heading)
    };
    let told = |place: Place| Some(LoadFault { value: place.value, why: why(FACTS.get(place.fact)?) });
    found.into_iter().filter_map(told).collect()
}

/// A graph as it stands in a file, and what has to be known of the file.
#[derive(Clone, Copy)]
struct Written<'g> {
    /// The messages.
    proto: &'g GraphProto,
    /// Knows the types of values.
    graph: &'g Graph,
    /// The version of the standard operators.
    opset: i64,
    /// Whether there are functions: then the bodies of all ops that have no kernel stand in their places before the first rewrite.
    calls: bool,
}

/// A node that one of them is about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The number of the fact.
    fact: usize,
    /// The first result of the node.
    value: String,
    /// What stands around it: with other neighbours the runtime may do something else.
    around: String,
}

fn places(written: Written<'_>) -> Vec<Place> {
    let reader = Reader::of(written);
    let mut found = Vec::new();
    for node in &written.proto.node {
        let is_so = FACTS.iter().enumerate().filter(|(_, fact)| (fact.is_so)(&reader, node));
        found.extend(is_so.map(|(fact, _)| {
            let value = node.output.first().cloned().unwrap_or_default();
            let around = match FACTS[fact].heading {
                // It looks itself at what may be gone on load.
                QUANTIZATIONS => if reader.are_kept_apart(node) { "a Transpose" } else { "" }.to_owned(),
                OUTPUTS => reader.around(node) + &reader.moves_beside(node),
                // Which branch is taken is known on load once enough is constant.
                RANGES => reader.constants(),
                _ => reader.around(node),
            };
            Place { fact, value, around }
        }));
        for body in node.bodies() {
            found.extend(places(Written { proto: body, ..written }));
        }
    }
    found
}
#[cfg(test)]
mod tests {
    use super::*;

    /// A mended text of a heading, as links to it are written.
    const PAGE: &str = include_str!("../../../docs/runtime-bugs.md");

    #[test]
    fn each_fact_has_its_section() {
        for fact in FACTS {
            assert!(
                PAGE.contains(&format!("\n## {}\n", fact.heading)),
                "docs/runtime-bugs.md has no section {}",
                fact.heading
            );
        }
    }
}
