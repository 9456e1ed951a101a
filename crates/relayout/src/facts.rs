//! What runtimes do wrong with a file when they load it, by version. Nothing of it is written that the model did not have: the part of
//! the model where it would be stays as it was.
//!
//! The question is asked of the messages that are about to be written, so it does not matter which rewrite would have led there.
//! `docs/runtime-bugs.md` has each with what was seen.

use relayout_ir::dtype::DType;
use relayout_ir::graph::Graph;
use relayout_ir::model::Model;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use relayout_target::Numerics;
use std::collections::{BTreeMap, BTreeSet};

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
pub(crate) struct Found {
    /// The first result of the node.
    pub(crate) value: String,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// What messages that are about to be written have of them and those that they were made from, the last of `before`, have not. What can be
/// written otherwise is. Functions of any of `before` are the model's; `ir` knows the types of values.
pub(crate) fn new_in(before: &[&ModelProto], after: &mut ModelProto, ir: &Model, numerics: Numerics) -> Vec<Found> {
    let opset = ir.opsets.get("").copied().unwrap_or(0);
    let of = |proto, calls| Written { proto, graph: &ir.graph, opset, calls };
    let had_functions = before.iter().any(|proto| !proto.functions.is_empty());
    let calls = !after.functions.is_empty();
    let before = before.last().and_then(|proto| proto.graph.as_ref()).map(|proto| of(proto, had_functions));
    let (Some(before), Some(after)) = (before, &mut after.graph) else { return Vec::new() };
    // The sign of a zero is a bit as well.
    if numerics > Numerics::Exact {
        mend(before, after);
    }
    let mut found = places(of(after, calls));
    if !found.is_empty() {
        let had: BTreeSet<Place> = places(before).into_iter().collect();
        found.retain(|place| !had.contains(place));
    }
    let why = |fact: &Fact| {
        format!("{SEEN_IN} can't have {}: {} (docs/runtime-bugs.md, \"{}\")", fact.what, fact.outcome, fact.heading)
    };
    let told = |place: Place| Some(Found { value: place.value, why: why(FACTS.get(place.fact)?) });
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

/// Writes otherwise what a runtime would do wrong, where that says the same: a Pad of zeros in front of a pool pads with -0.0, which is as
/// large and is left alone. What a Pad fills with has to be known for that.
fn mend(before: Written<'_>, after: &mut GraphProto) {
    let Written { graph, opset, .. } = before;
    // Before that the number is an attribute, in which a sign makes no difference.
    if opset < PAD_OPERANDS_SINCE {
        return;
    }
    let is_pad = |place: &Place| FACTS.get(place.fact).is_some_and(|fact| fact.heading == PADS);
    let written = Written { proto: after, ..before };
    let found: Vec<Place> = places(written).into_iter().filter(is_pad).collect();
    if found.is_empty() {
        return;
    }
    let had: BTreeSet<Place> = places(before).into_iter().collect();
    let reader = Reader::of(written);
    let new = found.iter().filter(|place| !had.contains(place));
    let pads = new.filter_map(|place| reader.producer(reader.producers.get(place.value.as_str())?, 0));
    let pads: BTreeSet<String> = pads
        .filter(|pad| reader.fills_with_zeros(pad) == Some(true))
        .filter_map(|pad| pad.output.first().cloned())
        .collect();
    let taken: BTreeSet<String> = reader.tensors.keys().map(|&name| name.to_owned()).collect();
    let mut numbers = Vec::new();
    for pad in after.node.iter_mut().filter(|n| n.output.first().is_some_and(|y| pads.contains(y))) {
        let dtype = pad.input.first().and_then(|x| graph.by_name(x)).and_then(|v| graph.value(v).ty.dtype());
        let name = format!("{}.zero", pad.output.first().map_or("", String::as_str));
        let Some(raw_data) = dtype.and_then(negative_zero) else { continue };
        if graph.by_name(&name).is_some() || taken.contains(&name) {
            continue;
        }
        pad.input.resize(3, String::new());
        pad.input[2].clone_from(&name);
        let (data_type, raw_data) = (dtype.map(DType::to_onnx), Some(raw_data.into()));
        numbers.push(TensorProto { name: Some(name), data_type, raw_data, ..TensorProto::default() });
    }
    after.initializer.extend(numbers);
}

/// The first version of Pad that takes its number as an operand.
const PAD_OPERANDS_SINCE: i64 = 11;

/// The bytes of -0.0.
fn negative_zero(dtype: DType) -> Option<Vec<u8>> {
    let width = match dtype {
        DType::F16 | DType::BF16 => 2,
        DType::F32 => 4,
        DType::F64 => 8,
        _ => return None,
    };
    let mut bytes = vec![0; width];
    *bytes.last_mut()? = 0x80;
    Some(bytes)
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

/// A pair of quantizations with Transposes behind it.
struct PairBefore<'g> {
    first: &'g NodeProto,
    back: &'g NodeProto,
    /// Their permutations, in the order of the data; empty where the file does not say one.
    between: Vec<&'g [i64]>,
}

/// Whether Transposes that follow each other move nothing in all.
fn cancel(perms: &[&[i64]]) -> bool {
    let Some(first) = perms.first() else { return true };
    let start: Vec<i64> = (0..first.len() as i64).collect();
    let all = perms.iter().try_fold(start.clone(), |order, perm| {
        let place = |&axis: &i64| order.get(usize::try_from(axis).ok()?).copied();
        (perm.len() == order.len() && !perm.is_empty()).then(|| perm.iter().map(place).collect::<Option<Vec<i64>>>())?
    });
    all == Some(start)
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
                _ => reader.around(node),
            };
            Place { fact, value, around }
        }));
        for body in bodies(node) {
            found.extend(places(Written { proto: body, ..written }));
        }
    }
    found
}

/// Who makes and reads the values of a graph.
struct Reader<'g> {
    graph: &'g Graph,
    opset: i64,
    calls: bool,
    producers: BTreeMap<&'g str, &'g NodeProto>,
    /// Readers among the nodes of the graph itself.
    readers: BTreeMap<&'g str, Vec<&'g NodeProto>>,
    /// Initializers.
    tensors: BTreeMap<&'g str, &'g TensorProto>,
    /// Names that bodies read.
    captured: BTreeSet<&'g str>,
    outputs: BTreeSet<&'g str>,
}

impl<'g> Reader<'g> {
    fn of(written: Written<'g>) -> Reader<'g> {
        let Written { proto, graph, opset, calls } = written;
        let mut reader = Reader {
            graph,
            opset,
            calls,
            producers: BTreeMap::new(),
            readers: BTreeMap::new(),
            tensors: proto.initializer.iter().map(|t| (t.name(), t)).collect(),
            captured: BTreeSet::new(),
            outputs: proto.output.iter().map(ValueInfoProto::name).collect(),
        };
        for node in &proto.node {
            reader.producers.extend(node.output.iter().map(|name| (name.as_str(), node)));
            for name in &node.input {
                reader.readers.entry(name).or_default().push(node);
            }
            bodies(node).for_each(|body| reader.capture(body));
        }
        reader
    }

    fn capture(&mut self, body: &'g GraphProto) {
        for node in &body.node {
            self.captured.extend(node.input.iter().map(String::as_str));
            bodies(node).for_each(|body| self.capture(body));
        }
        self.captured.extend(body.output.iter().map(ValueInfoProto::name));
    }

    /// Which ops read the result of a node, and what views of it, and which make and read its first operand and the first operands of
    /// those.
    fn around(&self, node: &NodeProto) -> String {
        let mut text = String::new();
        let mut tell = |name: Option<&String>| {
            let name = name.map_or("", String::as_str);
            let reads = self.reads(name, LEVELS);
            let left = self.outputs.contains(name) || self.captured.contains(name);
            let made = self.producers.get(name).map_or_else(String::new, |node| told(node));
            text += &[made.as_str(), " ", &reads, if left { " left;" } else { ";" }].concat();
        };
        tell(node.output.first());
        let mut at = Some(node);
        for _ in 0..LEVELS {
            let operand = at.and_then(|node| node.input.first());
            tell(operand);
            at = operand.and_then(|name| self.producers.get(name.as_str())).copied();
        }
        text
    }

    /// All Transposes of the graph, if nothing makes floats of what a node quantizes: then it depends on what becomes of others whether
    /// something will on load.
    fn moves_beside(&self, node: &NodeProto) -> String {
        let dequantized = |reader: &NodeProto| reader.op_type() == "DequantizeLinear";
        if self.is_read_by(node, &is_nothing, &dequantized) {
            return String::new();
        }
        let moves = self.producers.iter().filter(|(_, made)| is_transpose(made) || is_call(made));
        moves.map(|(name, made)| format!("{name} {}", told(made))).collect::<Vec<_>>().join(",")
    }

    /// The ops that read a value, and behind views among them those that read these, as far as `levels`.
    fn reads(&self, name: &str, levels: usize) -> String {
        let readers = self.readers.get(name).into_iter().flatten();
        let mut reads: Vec<String> = readers
            .map(|node| match node.output.first().filter(|_| levels > 1 && is_view(node)) {
                Some(viewed) => format!("{}({})", told(node), self.reads(viewed, levels - 1)),
                None => told(node),
            })
            .collect();
        reads.sort_unstable();
        reads.join(",")
    }

    fn producer(&self, node: &NodeProto, slot: usize) -> Option<&'g NodeProto> {
        self.producers.get(node.input.get(slot)?.as_str()).copied()
    }

    /// The element type of an operand that is a constant.
    fn constant(&self, node: &NodeProto, slot: usize) -> Option<i32> {
        self.number(node.input.get(slot)?).map(TensorProto::data_type)
    }

    /// A constant: an initializer, or the tensor of a Constant.
    fn number(&self, name: &str) -> Option<&'g TensorProto> {
        let made = || {
            let node = self.producers.get(name).filter(|node| node.op_type() == "Constant")?;
            node.attribute.iter().find_map(|a| a.t.as_deref())
        };
        self.tensors.get(name).copied().or_else(made)
    }

    /// Whether a node makes floats of signed bytes by an operator set in which the type of what is quantized is an attribute.
    fn dequantizes_signed_bytes(&self, node: &NodeProto) -> bool {
        let signed = || self.constant(node, 2) == Some(DataType::Int8 as i32);
        node.op_type() == "DequantizeLinear" && self.opset >= 21 && signed()
    }

    /// Whether the first operand of a node is, but for views and what is nothing, a result of a `DequantizeLinear`.
    fn is_dequantized(&self, node: &NodeProto) -> bool {
        self.dequantizer(node, 0).is_some()
    }

    /// The `DequantizeLinear` whose result an operand is, but for views and what is nothing.
    fn dequantizer(&self, node: &NodeProto, slot: usize) -> Option<&'g NodeProto> {
        let mut seen = BTreeSet::new();
        let mut at = self.producer(node, slot);
        while let Some(made) = at.filter(|made| seen.insert(made.output.first())) {
            if made.op_type() == "DequantizeLinear" {
                return Some(made);
            }
            let passed = is_nothing(made) || stays_quantized(made);
            at = passed.then(|| self.producer(made, 0)).flatten();
        }
        None
    }

    /// Whether a `DequantizeLinear` has more than one scale.
    fn has_scales(&self, node: &NodeProto) -> bool {
        let scale = node.input.get(1).and_then(|name| self.graph.by_name(name));
        let count = scale.and_then(|v| self.graph.value(v).ty.const_shape());
        count.is_none_or(|extents| extents.iter().any(|&extent| extent != 1))
    }

    /// Whether the first operand of a node is, but for views, what a `MaxPool` makes whose indices somebody reads.
    fn is_pooled_with_indices(&self, node: &NodeProto) -> bool {
        let read = |name: &String| {
            let name = name.as_str();
            self.readers.contains_key(name) || self.outputs.contains(name) || self.captured.contains(name)
        };
        let mut seen = BTreeSet::new();
        let mut at = self.producer(node, 0);
        while let Some(made) = at.filter(|made| is_view(made) && seen.insert(made.output.first())) {
            if made.op_type() == "MaxPool" && made.output.get(1).is_some_and(read) {
                return true;
            }
            at = self.producer(made, 0);
        }
        false
    }

    /// Whether a node quantizes what another pair alone made of one quantized value, in other units of the same type, with nothing in between
    /// or with Transposes that may cancel with others on load.
    fn quantizes_once_more(&self, node: &NodeProto) -> bool {
        let alone = |name: &String| self.is_alone(name);
        let Some(PairBefore { first, back, between }) = self.pair_before(node) else { return false };
        let pairs = [first, back].iter().all(|made| made.output.first().is_some_and(alone));
        let dequantized = |reader: &NodeProto| reader.op_type() == "DequantizeLinear";
        if !pairs || !self.is_read_by(node, &is_nothing, &dequantized) || !self.are_other_units(first, node) {
            return false;
        }
        let passed = |node: &NodeProto| !STOPS_TRANSPOSES.contains(&node.op_type()) && node.op_type() != "Resize";
        let transposes = |node: &NodeProto| is_transpose(node) || is_call(node);
        between.is_empty() || self.is_reached_by_transpose(first) || self.is_read_by(node, &passed, &transposes)
    }

    /// Whether one node reads a value, and nothing else.
    fn is_alone(&self, name: &str) -> bool {
        let left = self.outputs.contains(name) || self.captured.contains(name);
        !left && self.readers.get(name).is_some_and(|readers| readers.len() == 1)
    }

    /// The pair of quantizations before a node that quantizes, by way of nothing but Transposes.
    fn pair_before(&self, node: &NodeProto) -> Option<PairBefore<'_>> {
        let mut between = Vec::new();
        let mut at = self.producer(node, 0);
        while let Some(made) = at.filter(|made| is_nothing(made) || is_transpose(made)) {
            if is_transpose(made) {
                between.insert(0, permutation(made));
            }
            at = made.input.first().filter(|name| self.is_alone(name)).and_then(|_| self.producer(made, 0));
        }
        let back = at.filter(|made| made.op_type() == "DequantizeLinear")?;
        let first = self.producer(back, 0).filter(|made| made.op_type() == "QuantizeLinear")?;
        Some(PairBefore { first, back, between })
    }

    /// Whether Transposes keep two pairs apart, as far as is seen: those in between, with the one before the first pair and the one behind
    /// the second if nobody else reads what these are moved past.
    fn are_kept_apart(&self, node: &NodeProto) -> bool {
        let Some(PairBefore { first, between, .. }) = self.pair_before(node) else { return false };
        let before = first.input.first().filter(|name| self.is_alone(name)).and_then(|_| self.producer(first, 0));
        let before: Vec<_> = before.filter(|made| is_transpose(made)).map(permutation).into_iter().collect();
        let only_reader = |made: &NodeProto| {
            let name = made.output.first().filter(|name| self.is_alone(name))?;
            self.readers.get(name.as_str())?.first().copied()
        };
        let behind = only_reader(node).and_then(only_reader).filter(|reader| is_transpose(reader));
        let behind: Vec<_> = behind.map(permutation).into_iter().collect();
        let none: &[&[i64]] = &[];
        [none, before.as_slice()].into_iter().all(|start| {
            [none, behind.as_slice()].into_iter().all(|end| !cancel(&[start, between.as_slice(), end].concat()))
        })
    }

    /// Whether a node is a Cast that changes the type, as far as is known.
    fn casts_otherwise(&self, node: &NodeProto) -> bool {
        let from = node.input.first().and_then(|name| self.graph.by_name(name));
        let from = from.and_then(|v| self.graph.value(v).ty.dtype()).map(DType::to_onnx);
        node.op_type() == "Cast" && from.map(i64::from) != int(node, "to")
    }

    /// Whether two nodes quantize to one type with other constants.
    fn are_other_units(&self, first: &NodeProto, second: &NodeProto) -> bool {
        let number = |node: &NodeProto, slot: usize| self.number(node.input.get(slot).map_or("", String::as_str));
        let [scales, zeros] = [1, 2].map(|slot| [number(first, slot), number(second, slot)]);
        let [Some(_), Some(_)] = scales else { return false };
        let types = zeros.map(|zero| zero.map(TensorProto::data_type));
        types[0] == types[1] && [scales, zeros].iter().any(|[a, b]| !has_same_elements(*a, *b))
    }

    /// Whether a node that is `wanted` reads the first result of a node, by way of those that are `passed`.
    fn is_read_by(
        &self,
        node: &NodeProto,
        passed: &dyn Fn(&NodeProto) -> bool,
        wanted: &dyn Fn(&NodeProto) -> bool,
    ) -> bool {
        let mut todo = vec![node];
        let mut seen = BTreeSet::new();
        while let Some(name) = todo.pop().and_then(|node| node.output.first()) {
            let readers = self.readers.get(name.as_str()).into_iter().flatten();
            for &reader in readers.filter(|reader| reader.input.first() == Some(name)) {
                if wanted(reader) {
                    return true;
                }
                if passed(reader) && seen.insert(reader.output.first()) {
                    todo.push(reader);
                }
            }
        }
        false
    }

    /// Whether a node pads along all axes by count, with what may be zeros, and one node alone reads that.
    fn is_zero_pad_for_one(&self, node: &NodeProto) -> bool {
        let mode = node.attribute.iter().find(|a| a.name() == "mode");
        let constant = mode.is_none_or(|mode| mode.s.as_deref() == Some(b"constant"));
        let named_axes = node.input.get(3).is_some_and(|name| !name.is_empty());
        let read_once = node.output.first().is_some_and(|name| {
            let left = self.outputs.contains(name.as_str()) || self.captured.contains(name.as_str());
            !left && self.readers.get(name.as_str()).is_some_and(|readers| readers.len() == 1)
        });
        let pads = node.op_type() == "Pad" && node.domain().is_empty() && constant && !named_axes;
        pads && read_once && self.fills_with_zeros(node) != Some(false)
    }

    /// Whether a Pad fills with zeros; `None` if the bytes of the number are not in the messages. `-0.0` is another number, and so is
    /// what is computed.
    fn fills_with_zeros(&self, pad: &NodeProto) -> Option<bool> {
        let Some(name) = pad.input.get(2).filter(|name| !name.is_empty()) else {
            return Some(pad.attribute.iter().find(|a| a.name() == "value").is_none_or(|a| a.f() == 0.0));
        };
        if let Some(tensor) = self.tensors.get(name.as_str()) {
            return is_zero(tensor);
        }
        let made = self.producers.get(name.as_str()).filter(|node| node.op_type() == "Constant");
        let told = made.and_then(|node| node.attribute.first());
        told.map_or(Some(false), |told| match &told.t {
            Some(tensor) => is_zero(tensor),
            None => Some(told.f().to_bits() == 0),
        })
    }

    /// Whether a rewrite may bring a Transpose to the first operand of a node: it is made by one, or by the call of a function, whose body may
    /// end with one, or by nodes that they pass through.
    fn is_reached_by_transpose(&self, node: &NodeProto) -> bool {
        let mut todo = vec![(node, 1)];
        let mut seen = BTreeSet::new();
        while let Some((node, operands)) = todo.pop() {
            for name in node.input.iter().take(operands).filter(|name| seen.insert(name.as_str())) {
                let Some(&made) = self.producers.get(name.as_str()) else { continue };
                if is_transpose(made) || is_call(made) {
                    return true;
                }
                if !STOPS_TRANSPOSES.contains(&made.op_type()) {
                    todo.push((made, usize::MAX));
                }
            }
        }
        false
    }

    /// Whether the first operand of a node is, but for Transposes and other views, a value that the graph leaves or that a body reads, and a
    /// Transpose is among these: one of its own, or that of a call's body.
    fn is_moved_for_others(&self, node: &NodeProto) -> bool {
        let (mut moved, mut left) = (false, false);
        let mut todo: Vec<&str> = node.input.first().map(String::as_str).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = todo.pop().filter(|_| !(moved && left)) {
            if !seen.insert(name) {
                continue;
            }
            left |= self.outputs.contains(name) || self.captured.contains(name);
            if let Some(made) = self.producers.get(name) {
                moved |= is_transpose(made) || is_call(made);
                todo.extend(made.input.first().map(String::as_str).filter(|_| is_view(made)));
            }
            for reader in self.readers.get(name).into_iter().flatten().filter(|reader| is_view(reader)) {
                moved |= is_transpose(reader);
                todo.extend(reader.output.first().map(String::as_str));
            }
        }
        moved && left
    }
}

/// How many operands in front of each other are looked at, to see whether a place is what it was.
const LEVELS: usize = 6;

/// Ops that a `QuantizeLinear` is moved in front of, and those that are nothing.
const VIEWS: &[&str] =
    &["Dropout", "Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"];

/// Ops that no Transpose is moved through.
const STOPS_TRANSPOSES: &[&str] = &[
    "Conv",
    "ConvTranspose",
    "Einsum",
    "Expand",
    "Flatten",
    "Gemm",
    "If",
    "Loop",
    "MatMul",
    "QLinearConv",
    "QLinearMatMul",
    "Reshape",
    "Scan",
];

/// Whether two constants of one type are written with the same elements.
fn has_same_elements(a: Option<&TensorProto>, b: Option<&TensorProto>) -> bool {
    let [a, b] = [a, b].map(|tensor| tensor.map(|t| (&t.raw_data, &t.float_data, &t.int32_data)));
    a == b
}

/// Whether a number is +0; `None` if its bytes are elsewhere.
fn is_zero(tensor: &TensorProto) -> Option<bool> {
    if let Some(raw) = tensor.raw_data.as_ref().filter(|raw| !raw.is_empty()) {
        return Some(raw.iter().all(|&byte| byte == 0));
    }
    let floats = tensor.float_data.iter().map(|x| x.to_bits() == 0);
    let doubles = tensor.double_data.iter().map(|x| x.to_bits() == 0);
    let narrow = tensor.int32_data.iter().map(|&x| x == 0);
    floats.chain(doubles).chain(narrow).next()
}

/// The op of a node, with the order of a Transpose: two that cancel out on load are no two that do not.
fn told(node: &NodeProto) -> String {
    ints(node, "perm").map_or_else(|| node.op_type().to_owned(), |perm| format!("{}{perm:?}", node.op_type()))
}

/// A Transpose, or the call of a function that is one.
fn is_transpose(node: &NodeProto) -> bool {
    match node.domain() {
        relayout_onnx::dialect::DOMAIN => node.op_type() == "Relayout",
        domain => node.op_type() == "Transpose" && domain.is_empty(),
    }
}

/// A call of a function of the product's, which may have Transposes.
fn is_call(node: &NodeProto) -> bool {
    node.domain() == relayout_onnx::dialect::DOMAIN
}

/// A node that may be nothing on load.
fn is_nothing(node: &NodeProto) -> bool {
    matches!(node.op_type(), "Identity" | "Dropout" | "Cast")
}

/// A node behind which what was dequantized is quantized once more on load.
fn stays_quantized(node: &NodeProto) -> bool {
    is_transpose(node) || matches!(node.op_type(), "MaxPool" | "Reshape" | "Slice" | "Squeeze" | "Unsqueeze")
}

/// A node that may be nothing but another order or shape of its first operand.
fn is_view(node: &NodeProto) -> bool {
    is_transpose(node) || VIEWS.contains(&node.op_type())
}

fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs))
}

fn int(node: &NodeProto, name: &str) -> Option<i64> {
    node.attribute.iter().find(|a| a.name() == name).map(AttributeProto::i)
}

/// The permutation of a Transpose; empty where the file does not say one.
fn permutation(node: &NodeProto) -> &[i64] {
    ints(node, "perm").unwrap_or_default()
}

fn ints<'n>(node: &'n NodeProto, name: &str) -> Option<&'n [i64]> {
    let list = node.attribute.iter().find(|a| a.name() == name && a.r#type() == AttributeType::Ints)?;
    Some(&list.ints)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mended text of a heading, as links to it are written.
    const PAGE: &str = include_str!("../../../docs/runtime-bugs.md");

    #[test]
    fn a_number_is_zero_only_where_its_bytes_say_so() {
        let raw = |bytes: &'static [u8]| TensorProto { raw_data: Some(bytes.into()), ..TensorProto::default() };
        assert_eq!(is_zero(&raw(&[0, 0, 0, 0])), Some(true));
        assert_eq!(is_zero(&raw(&[0, 0, 0, 0x80])), Some(false));
        assert_eq!(is_zero(&TensorProto { double_data: vec![-5.0], ..TensorProto::default() }), Some(false));
        assert_eq!(is_zero(&TensorProto { int32_data: vec![0], ..TensorProto::default() }), Some(true));
        // Of external data there is nothing here.
        assert_eq!(is_zero(&TensorProto::default()), None);
    }

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
