//! tract's typed graph as a graph of relayout: what has axes gets letters, views are views, and of the rest nothing is claimed.
//!
//! Constants are not in it. They are known when the model is made, so that it costs nothing to have them in another order.

use relayout::builder::NewOp;
use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::ir::graph::{Graph, NodeId, ValueId};
use relayout::ir::types::Type;
use relayout::plan::Ids;
use relayout::{BuildError, GraphBuilder};
use std::collections::{BTreeMap, BTreeSet};
use tract_core::internal::*;
use tract_core::ops::array::{Pad, Slice, TypedConcat};
use tract_core::ops::binary::TypedBinOp;
use tract_core::ops::cast::Cast;
use tract_core::ops::cnn::conv::Conv;
use tract_core::ops::cnn::{MaxPool, SumPool};
use tract_core::ops::downsample::Downsample;
use tract_core::ops::einsum::EinSum;
use tract_core::ops::element_wise::ElementWiseOp;
use tract_core::ops::konst::Const;
use tract_core::ops::logic::Iff;
use tract_core::ops::nn::{NearestUpsample, Reduce, Softmax};
use tract_core::ops::source::TypedSource;

/// A domain for ops of tract.
const DOMAIN: &str = "tract";

/// A model as a graph.
pub struct Read {
    /// The graph.
    pub graph: Graph,
    /// tract's names for what is in it: nothing for what only the graph has.
    pub ids: Ids<OutletId, usize>,
    /// Which of tract's nodes a node is.
    pub nodes: BTreeMap<NodeId, usize>,
}

struct Reader<'m> {
    model: &'m TypedModel,
    left: &'m BTreeSet<usize>,
    builder: GraphBuilder,
    ids: Ids<OutletId, usize>,
    values: BTreeMap<OutletId, ValueId>,
    nodes: BTreeMap<NodeId, usize>,
}

/// Reads a model. Through the nodes in `left` no layout passes.
///
/// # Errors
/// What tract says of a model that contradicts itself, or the graph.
pub fn read(model: &TypedModel, left: &BTreeSet<usize>) -> TractResult<Read> {
    let mut reader = Reader {
        model,
        left,
        builder: GraphBuilder::new("tract"),
        ids: Ids::new(),
        values: BTreeMap::new(),
        nodes: BTreeMap::new(),
    };
    for id in model.eval_order()? {
        reader.node(id)?;
    }
    for outlet in model.output_outlets()? {
        if let Some(value) = reader.values.get(outlet) {
            reader.builder.output(*value)?;
        }
    }
    Ok(Read { graph: reader.builder.finish(), ids: reader.ids, nodes: reader.nodes })
}

impl Reader<'_> {
    fn node(&mut self, id: usize) -> TractResult<()> {
        let node = self.model.node(id);
        if node.op_is::<Const>() {
            return Ok(());
        }
        if node.op_is::<TypedSource>() {
            let fact = &node.outputs[0].fact;
            let value = self.builder.input(&self.name(id, 0), kind(fact.datum_type), dims(fact))?;
            self.named(value, OutletId::new(id, 0));
            return Ok(());
        }
        let view = match node.op_as::<AxisOp>() {
            Some(op) if !self.left.contains(&id) => self.view(id, op).ok().flatten(),
            _ => None,
        };
        let results = match view {
            Some(value) => vec![value],
            None => self.own(id)?,
        };
        self.ids.node(self.builder.producer(results[0]), id);
        self.nodes.insert(self.builder.producer(results[0]), id);
        for (slot, value) in results.into_iter().enumerate() {
            self.named(value, OutletId::new(id, slot));
        }
        Ok(())
    }

    fn named(&mut self, value: ValueId, outlet: OutletId) {
        self.ids.value(value, outlet);
        self.values.insert(outlet, value);
    }

    /// tract's name with its number, so that no two are one.
    fn name(&self, id: usize, slot: usize) -> String {
        format!("{} #{id}.{slot}", self.model.node(id).name)
    }

    /// An op of tract.
    fn own(&mut self, id: usize) -> TractResult<Vec<ValueId>> {
        let node = self.model.node(id);
        let mut op = NewOp::of_domain(DOMAIN, node.op.name().to_string()).named(node.name.clone());
        for value in node.inputs.iter().filter_map(|outlet| self.values.get(outlet)) {
            op = op.operand(*value);
        }
        for (slot, outlet) in node.outputs.iter().enumerate() {
            op = op.typed_result(self.name(id, slot), type_of(&outlet.fact));
        }
        if let Some(letters) = self.letters(id).filter(|_| !self.left.contains(&id))
            && let Ok(values) = self.builder.add(op.clone().letters(letters))
        {
            return Ok(values);
        }
        Ok(self.builder.add(op)?)
    }

    /// The letters of a node's operands that are no constants, and of its results.
    fn letters(&self, id: usize) -> Option<String> {
        let node = self.model.node(id);
        let is_value = |outlet: &OutletId| self.values.contains_key(outlet);
        if let Some(op) = node.op_as::<EinSum>() {
            return product(op, &node.inputs.iter().map(is_value).collect::<Vec<_>>());
        }
        // Weights that are computed have other axes than data.
        let reads_weights = node.op_is::<Conv>() && node.inputs.iter().skip(1).any(is_value);
        if !is_natural(node.op.as_ref()) || reads_weights {
            return None;
        }
        let rank = node.outputs.first()?.fact.rank();
        let ranks = node.inputs.iter().filter(|outlet| is_value(outlet));
        let ranks: Vec<usize> = ranks.map(|o| Some(self.model.outlet_fact(*o).ok()?.rank())).collect::<Option<_>>()?;
        let same = ranks.iter().all(|r| *r == rank) && node.outputs.iter().all(|o| o.fact.rank() == rank);
        let term: String = ('a'..='z').take(rank).collect();
        let side = |count: usize| vec![term.as_str(); count].join(", ");
        (same && rank <= 26 && !ranks.is_empty())
            .then(|| format!("{} -> {}", side(ranks.len()), side(node.outputs.len())))
    }

    /// An axis that is moved, added, removed or spelled otherwise.
    fn view(&mut self, id: usize, op: &AxisOp) -> Result<Option<ValueId>, BuildError> {
        let node = self.model.node(id);
        let Some(&x) = node.inputs.first().and_then(|outlet| self.values.get(outlet)) else { return Ok(None) };
        let fact = &node.outputs[0].fact;
        let (op, attr, ints) = match op {
            AxisOp::Move(..) => {
                let Some(order) = crate::orders::after(fact.rank(), std::slice::from_ref(op)) else { return Ok(None) };
                ("Transpose", "perm", order.into_iter().map(|axis| axis as i64).collect())
            }
            AxisOp::Add(axis) => ("Unsqueeze", "axes", vec![*axis as i64]),
            AxisOp::Rm(axis) => ("Squeeze", "axes", vec![*axis as i64]),
            AxisOp::Reshape(..) => {
                let Some(shape) = fact.shape.as_concrete() else { return Ok(None) };
                let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
                let shape = self.builder.constant(&format!("shape #{id}"), Constant::ints(&shape))?;
                let op = NewOp::new("Reshape").operand(x).operand(shape);
                let value = self.builder.add(op.typed_result(self.name(id, 0), type_of(fact)))?;
                return Ok(value.first().copied());
            }
        };
        let op = NewOp::new(op).opset(11).named(node.name.clone()).operand(x).attr(attr, Attr::Ints(ints));
        Ok(self.builder.add(op.typed_result(self.name(id, 0), type_of(fact)))?.first().copied())
    }
}

/// Whether all operands and results of an op have the same axes at the same places, whatever their extents.
fn is_natural(op: &dyn TypedOp) -> bool {
    op.is::<ElementWiseOp>()
        || op.is::<TypedBinOp>()
        || op.is::<Cast>()
        || op.is::<Iff>()
        || op.is::<Conv>()
        || op.is::<MaxPool>()
        || op.is::<SumPool>()
        || op.is::<Reduce>()
        || op.is::<Softmax>()
        || op.is::<TypedConcat>()
        || op.is::<Slice>()
        || op.is::<Pad>()
        || op.is::<Downsample>()
        || op.is::<NearestUpsample>()
}

/// The letters of a product, without those of its constants.
fn product(op: &EinSum, is_value: &[bool]) -> Option<String> {
    let (inputs, outputs) = op.axes.to_strs();
    let mut names: BTreeMap<char, char> = BTreeMap::new();
    let mut free = ('a'..='z').chain('A'..='Z');
    let mut name = |c: char| match names.get(&c) {
        Some(name) => Some(*name),
        None => {
            let name = free.next()?;
            names.insert(c, name);
            Some(name)
        }
    };
    let mut term = |text: &String| text.chars().map(&mut name).collect::<Option<String>>();
    let inputs: Vec<String> =
        inputs.iter().zip(is_value).filter(|(_, is)| **is).map(|(text, _)| term(text)).collect::<Option<_>>()?;
    let outputs: Vec<String> = outputs.iter().map(term).collect::<Option<_>>()?;
    Some(format!("{} -> {}", inputs.join(", "), outputs.join(", ")))
}

fn type_of(fact: &TypedFact) -> Type {
    Type::tensor(kind(fact.datum_type), dims(fact))
}

/// Extents; what is no number is a symbol of its own.
fn dims(fact: &TypedFact) -> Vec<Dim> {
    let dim = |d: &TDim| match d.to_i64() {
        Ok(n) => Dim::from(n),
        Err(_) => Dim::symbol(&format!("{d}")),
    };
    fact.shape.iter().map(dim).collect()
}

/// The element type; one of the same width where ONNX has none.
fn kind(kind: DatumType) -> DType {
    match kind.unquantized() {
        DatumType::Bool => DType::Bool,
        DatumType::U8 => DType::U8,
        DatumType::I8 => DType::I8,
        DatumType::U16 => DType::U16,
        DatumType::I16 => DType::I16,
        DatumType::F16 => DType::F16,
        DatumType::U32 => DType::U32,
        DatumType::I32 => DType::I32,
        DatumType::F32 => DType::F32,
        DatumType::U64 => DType::U64,
        DatumType::F64 => DType::F64,
        _ => DType::I64,
    }
}
