//! The nodes that make and read the values of a graph in a file, and what stands around a node of it.

use super::Written;
use relayout_ir::dtype::DType;
use relayout_ir::graph::Graph;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_onnx::proto::{AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto};
use std::collections::{BTreeMap, BTreeSet};

/// The nodes that make and read the values of a graph.
pub(super) struct Reader<'g> {
    pub(super) graph: &'g Graph,
    pub(super) opset: i64,
    pub(super) calls: bool,
    pub(super) producers: BTreeMap<&'g str, &'g NodeProto>,
    /// Readers among the nodes of the graph itself.
    pub(super) readers: BTreeMap<&'g str, Vec<&'g NodeProto>>,
    /// Initializers.
    pub(super) tensors: BTreeMap<&'g str, &'g TensorProto>,
    /// Names that bodies read.
    pub(super) captured: BTreeSet<&'g str>,
    pub(super) outputs: BTreeSet<&'g str>,
}

impl<'g> Reader<'g> {
    pub(super) fn of(written: Written<'g>) -> Reader<'g> {
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
            node.bodies().for_each(|body| reader.capture(body));
        }
        reader
    }

    pub(super) fn capture(&mut self, body: &'g GraphProto) {
        for node in &body.node {
            self.captured.extend(node.input.iter().map(String::as_str));
            node.bodies().for_each(|body| self.capture(body));
        }
        self.captured.extend(body.output.iter().map(ValueInfoProto::name));
    }

    /// Which ops read the result of a node, and what views of it, and which make and read its first operand and the first operands of
    /// those.
    pub(super) fn around(&self, node: &NodeProto) -> String {
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
    pub(super) fn moves_beside(&self, node: &NodeProto) -> String {
        let dequantized = |reader: &NodeProto| reader.op_type() == "DequantizeLinear";
        if self.is_read_by(node, &is_nothing, &dequantized) {
            return String::new();
        }
        let moves = self.producers.iter().filter(|(_, made)| is_transpose(made) || is_call(made));
        moves.map(|(name, made)| format!("{name} {}", told(made))).collect::<Vec<_>>().join(",")
    }

    /// The ops that read a value, and behind views among them those that read these, as far as `levels`.
    pub(super) fn reads(&self, name: &str, levels: usize) -> String {
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

    pub(super) fn producer(&self, node: &NodeProto, slot: usize) -> Option<&'g NodeProto> {
        self.producers.get(node.input.get(slot)?.as_str()).copied()
    }

    /// The element type of an operand that is a constant.
    pub(super) fn constant(&self, node: &NodeProto, slot: usize) -> Option<i32> {
        self.number(node.input.get(slot)?).map(TensorProto::data_type)
    }

    /// A constant: an initializer, or the tensor of a Constant.
    pub(super) fn number(&self, name: &str) -> Option<&'g TensorProto> {
        let made = || {
            let node = self.producers.get(name).filter(|node| node.op_type() == "Constant")?;
            node.attribute.iter().find_map(|a| a.t.as_deref())
        };
        self.tensors.get(name).copied().or_else(made)
    }

    /// Whether a node makes floats of signed bytes by an operator set in which the type of what is quantized is an attribute.
    pub(super) fn dequantizes_signed_bytes(&self, node: &NodeProto) -> bool {
        let signed = || self.constant(node, 2) == Some(DataType::Int8 as i32);
        node.op_type() == "DequantizeLinear" && self.opset >= 21 && signed()
    }

    /// Whether the first operand of a node is, but for views and what is nothing, a result of a `DequantizeLinear`.
    pub(super) fn is_dequantized(&self, node: &NodeProto) -> bool {
        self.dequantizer(node, 0).is_some()
    }

    /// The `DequantizeLinear` whose result an operand is, but for views and what is nothing.
    pub(super) fn dequantizer(&self, node: &NodeProto, slot: usize) -> Option<&'g NodeProto> {
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

    /// Whether an operand of a node is what a branch or a loop leaves, and no number for sure.
    pub(super) fn reads_what_branches_leave(&self, node: &NodeProto) -> bool {
        let left = |made: &NodeProto| matches!(made.op_type(), "If" | "Loop" | "Scan");
        let operands = (0..node.input.len()).filter(|&slot| self.producer(node, slot).is_some_and(left));
        operands.filter_map(|slot| node.input.get(slot)).any(|name| self.rank(name) != Some(0))
    }

    /// Names of all constants of the graph.
    pub(super) fn constants(&self) -> String {
        let made = self.producers.iter().filter(|(_, made)| made.op_type() == "Constant").map(|(&name, _)| name);
        let names: BTreeSet<&str> = self.tensors.keys().copied().chain(made).collect();
        names.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// How many axes a value has, as far as it is known.
    fn rank(&self, name: &str) -> Option<usize> {
        let known = || self.graph.by_name(name).and_then(|v| self.graph.value(v).ty.rank());
        self.number(name).map(|tensor| tensor.dims.len()).or_else(known)
    }

    /// The type of the numbers that a `QuantizeLinear` makes or a `DequantizeLinear` takes, as far as it is known.
    pub(super) fn quantized_type(&self, node: &NodeProto) -> Option<DType> {
        let typed = |v| self.graph.value(v).ty.dtype();
        let said = |name: &String| self.graph.by_name(name).and_then(typed);
        let constant = |slot| self.constant(node, slot).and_then(DType::from_onnx);
        // The zero point has it, whatever the quantized value is called by now.
        let zero = constant(2).or_else(|| node.input.get(2).and_then(said));
        if node.op_type() == "QuantizeLinear" {
            let named = int(node, "output_dtype").and_then(|kind| DType::from_onnx(i32::try_from(kind).ok()?));
            return zero.or(named).or(Some(DType::U8));
        }
        let made = || self.producer(node, 0).filter(|made| made.op_type() == "QuantizeLinear");
        let operand = constant(0).or_else(|| node.input.first().and_then(said));
        zero.or(operand).or_else(|| made().and_then(|made| self.quantized_type(made)))
    }

    /// The `DequantizeLinear` whose result an operand is, but for what is nothing.
    fn dequantizer_beside(&self, node: &NodeProto, slot: usize) -> Option<&'g NodeProto> {
        let mut seen = BTreeSet::new();
        let mut at = self.producer(node, slot);
        while let Some(made) = at.filter(|made| is_nothing(made) && seen.insert(made.output.first())) {
            at = self.producer(made, 0);
        }
        at.filter(|made| made.op_type() == "DequantizeLinear")
    }

    /// Whether a product multiplies dequantized numbers of which some are floats of 8 bits or have 2 bits, or bytes by bytes whose scales are
    /// not those of columns. Types of 4, 16 and 32 bits are not taken into one op.
    pub(super) fn multiplies_bytes_wrongly(&self, node: &NodeProto) -> bool {
        let of = |slot| self.dequantizer_beside(node, slot).and_then(|made| Some((made, self.quantized_type(made)?)));
        let (Some((_, left)), Some((right, kind))) = (of(0), of(1)) else { return false };
        let bytes = |kind| matches!(kind, DType::I8 | DType::U8);
        let rank = right.input.first().and_then(|name| self.rank(name)).map(|rank| rank as i64);
        let axis = int(right, "axis").unwrap_or(1);
        let columns = axis == -1 || Some(axis + 1) == rank;
        let blocks = int(right, "block_size").unwrap_or(0) > 0;
        let other = || blocks || self.has_scales(right) && !columns;
        let taken = |kind: DType| bytes(kind) || kind.bits() == Some(2) || is_float_of_8_bits(kind);
        taken(left) && taken(kind) && (!bytes(left) || !bytes(kind) || other())
    }

    /// Whether the runtime has no kernel of a view or pool for the type of a quantization that is put on its other side.
    pub(super) fn views_what_has_no_kernel(&self, node: &NodeProto) -> bool {
        let lacks = |kind: DType| match node.op_type() {
            "MaxPool" => is_float_of_8_bits(kind) || kind.bits().is_some_and(|bits| bits < 8),
            "Slice" | "Squeeze" | "Unsqueeze" => is_float_of_8_bits(kind) || kind.bits() == Some(2),
            "Reshape" => kind.bits() == Some(2),
            _ => false,
        };
        let narrow = |made: &NodeProto| self.quantized_type(made).is_some_and(lacks);
        let passed = |node: &NodeProto| is_nothing(node) || stays_quantized(node);
        let quantizes = |node: &NodeProto| node.op_type() == "QuantizeLinear" && narrow(node);
        self.dequantizer(node, 0).is_some_and(narrow) || self.is_read_by(node, &passed, &quantizes)
    }

    /// Whether a `DequantizeLinear` has more than one scale.
    pub(super) fn has_scales(&self, node: &NodeProto) -> bool {
        let scale = node.input.get(1).and_then(|name| self.graph.by_name(name));
        let count = scale.and_then(|v| self.graph.value(v).ty.const_shape());
        count.is_none_or(|extents| extents.iter().any(|&extent| extent != 1))
    }

    /// Whether the first operand of a node is, but for views, what a `MaxPool` makes whose indices somebody reads.
    pub(super) fn is_pooled_with_indices(&self, node: &NodeProto) -> bool {
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
    pub(super) fn quantizes_once_more(&self, node: &NodeProto) -> bool {
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
    pub(super) fn is_alone(&self, name: &str) -> bool {
        let left = self.outputs.contains(name) || self.captured.contains(name);
        !left && self.readers.get(name).is_some_and(|readers| readers.len() == 1)
    }

    /// The pair of quantizations before a node that quantizes, by way of nothing but Transposes.
    pub(super) fn pair_before(&self, node: &NodeProto) -> Option<PairBefore<'_>> {
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
    pub(super) fn are_kept_apart(&self, node: &NodeProto) -> bool {
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
    pub(super) fn casts_otherwise(&self, node: &NodeProto) -> bool {
        let from = node.input.first().and_then(|name| self.graph.by_name(name));
        let from = from.and_then(|v| self.graph.value(v).ty.dtype()).map(DType::to_onnx);
        node.op_type() == "Cast" && from.map(i64::from) != int(node, "to")
    }

    /// Whether two nodes quantize to one type with other constants.
    pub(super) fn are_other_units(&self, first: &NodeProto, second: &NodeProto) -> bool {
        let number = |node: &NodeProto, slot: usize| self.number(node.input.get(slot).map_or("", String::as_str));
        let [scales, zeros] = [1, 2].map(|slot| [number(first, slot), number(second, slot)]);
        let [Some(_), Some(_)] = scales else { return false };
        let types = zeros.map(|zero| zero.map(TensorProto::data_type));
        types[0] == types[1] && [scales, zeros].iter().any(|[a, b]| !has_same_elements(*a, *b))
    }

    /// Whether a node that is `wanted` reads the first result of a node, by way of those that are `passed`.
    pub(super) fn is_read_by(
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
    pub(super) fn is_zero_pad_for_one(&self, node: &NodeProto) -> bool {
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
    pub(super) fn fills_with_zeros(&self, pad: &NodeProto) -> Option<bool> {
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
    pub(super) fn is_reached_by_transpose(&self, node: &NodeProto) -> bool {
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
    pub(super) fn is_moved_for_others(&self, node: &NodeProto) -> bool {
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

/// A pair of quantizations with Transposes behind it.
pub(super) struct PairBefore<'g> {
    pub(super) first: &'g NodeProto,
    pub(super) back: &'g NodeProto,
    /// Their permutations, in the order of the data; empty where the file does not say one.
    pub(super) between: Vec<&'g [i64]>,
}

/// Whether Transposes that follow each other move nothing in all.
pub(super) fn cancel(perms: &[&[i64]]) -> bool {
    let Some(first) = perms.first() else { return true };
    let start: Vec<i64> = (0..first.len() as i64).collect();
    let all = perms.iter().try_fold(start.clone(), |order, perm| {
        let place = |&axis: &i64| order.get(usize::try_from(axis).ok()?).copied();
        (perm.len() == order.len() && !perm.is_empty()).then(|| perm.iter().map(place).collect::<Option<Vec<i64>>>())?
    });
    all == Some(start)
}

/// How many operands in front of each other are looked at, to see whether a place is what it was.
pub(super) const LEVELS: usize = 6;

/// Ops that a `QuantizeLinear` is moved in front of, and those that are nothing.
pub(super) const VIEWS: &[&str] =
    &["Dropout", "Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"];

/// Ops that no Transpose is moved through.
pub(super) const STOPS_TRANSPOSES: &[&str] = &[
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
pub(super) fn has_same_elements(a: Option<&TensorProto>, b: Option<&TensorProto>) -> bool {
    let [a, b] = [a, b].map(|tensor| tensor.map(|t| (&t.raw_data, &t.float_data, &t.int32_data)));
    a == b
}

/// Whether a number is +0; `None` if its bytes are elsewhere.
pub(super) fn is_zero(tensor: &TensorProto) -> Option<bool> {
    if let Some(raw) = tensor.raw_data.as_ref().filter(|raw| !raw.is_empty()) {
        return Some(raw.iter().all(|&byte| byte == 0));
    }
    let floats = tensor.float_data.iter().map(|x| x.to_bits() == 0);
    let doubles = tensor.double_data.iter().map(|x| x.to_bits() == 0);
    let narrow = tensor.int32_data.iter().map(|&x| x == 0);
    floats.chain(doubles).chain(narrow).next()
}

/// The op of a node, with the order of a Transpose: two that cancel out on load are no two that do not.
pub(super) fn told(node: &NodeProto) -> String {
    ints(node, "perm").map_or_else(|| node.op_type().to_owned(), |perm| format!("{}{perm:?}", node.op_type()))
}

/// A Transpose, or the call of a function that is one.
pub(super) fn is_transpose(node: &NodeProto) -> bool {
    match node.domain() {
        relayout_onnx::dialect::DOMAIN => relayout_onnx::dialect::is_move(node.op_type()),
        domain => node.op_type() == "Transpose" && domain.is_empty(),
    }
}

/// A call of a function of the product's, which may have Transposes.
pub(super) fn is_call(node: &NodeProto) -> bool {
    node.domain() == relayout_onnx::dialect::DOMAIN
}

fn is_float_of_8_bits(kind: DType) -> bool {
    kind.is_float() && kind.bits() == Some(8)
}

/// A node that may be nothing on load.
pub(super) fn is_nothing(node: &NodeProto) -> bool {
    matches!(node.op_type(), "Identity" | "Dropout" | "Cast")
}

/// A node behind which what was dequantized is quantized once more on load.
pub(super) fn stays_quantized(node: &NodeProto) -> bool {
    is_transpose(node) || matches!(node.op_type(), "MaxPool" | "Reshape" | "Slice" | "Squeeze" | "Unsqueeze")
}

/// A node that may be nothing but another order or shape of its first operand.
pub(super) fn is_view(node: &NodeProto) -> bool {
    is_transpose(node) || VIEWS.contains(&node.op_type())
}

pub(super) fn int(node: &NodeProto, name: &str) -> Option<i64> {
    node.attribute.iter().find(|a| a.name() == name).map(AttributeProto::i)
}

/// The permutation of a Transpose; empty where the file does not say one.
pub(super) fn permutation(node: &NodeProto) -> &[i64] {
    ints(node, "perm").unwrap_or_default()
}

pub(super) fn ints<'n>(node: &'n NodeProto, name: &str) -> Option<&'n [i64]> {
    let list = node.attribute.iter().find(|a| a.name() == name && a.r#type() == AttributeType::Ints)?;
    Some(&list.ints)
}
#[cfg(test)]
mod tests {
    use super::*;

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
}
