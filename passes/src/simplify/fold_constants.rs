//! `fold_constants`: nodes whose results are known become constants.
//!
//! A result is known if shape arithmetic proves its elements, or if the operands are constants and the op is one that is
//! evaluated. Small results are computed here; large ones are notes that export executes while it writes. Only results that a
//! node that stays reads are stored.
//!
//! What a file may grow by: a small result is stored whatever it came from; a large one takes the place of operands that
//! nothing else reads and are together no smaller, unless a Cast made it wider. Constants that would be stored twice, and
//! tensors that a Fill or Expand makes, stay nodes. So do Casts of weights of 8 bits where these are much of the file (`narrow.rs`).
//!
//! Absent: graph outputs, which stay results of nodes; large Transposes, which `fold_weights` turns into notes once layouts are
//! decided; dequantized weights, which a runtime fuses with what reads them.

use super::narrow::{stay_narrow, widens};
use crate::operands::known_constant;
use crate::state;
use relayout_eval::{Computed, Step};
use relayout_ir::constant::{ConstSource as _, Constant};
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, Use, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_target_api::{Context, Cost, Counted, Declared, Numerics, PassError, Rule, Slot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Largest constant, in bytes, that is computed at once, and that may be stored besides what it came from.
pub const SMALL: u64 = 64 << 10;

/// Large constants that are computed from one another when they are written are so many; the next one is computed at once. Each takes
/// stack, and a model may have a chain of any length.
const DEEPEST: usize = 64;

/// The rule.
pub(crate) const CONTENTS: Rule = Rule {
    name: "know_shape_arithmetic",
    equation: "f(...) = c",
    condition: "inference proves every element of the integer result, whatever the symbols are; no graph output",
    buys: "the node",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The rule.
pub(crate) const OPERANDS: Rule = Rule {
    name: "evaluate_constants",
    equation: "f(c1, c2, ...) = c",
    condition: "f's result is the same in every runtime; c is small, or stored instead of as many bytes; no graph \
                output; no DequantizeLinear that is part of a quantized unit",
    buys: "the node",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// How a result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// From shape arithmetic.
    Contents,
    /// The operands are constants, and the op is one that is evaluated.
    Operands,
}

impl Known {
    fn rule(self) -> &'static Rule {
        match self {
            Known::Contents => &CONTENTS,
            Known::Operands => &OPERANDS,
        }
    }
}

/// The pass.
pub(crate) const PASS: state::Step<'static> = state::Step::each_graph(
    Declared::new(
        "fold_constants",
        Slot::Simplify,
        "needs views and the contents of shape arithmetic; constants behind nodes are no weights to what follows",
    )
    .rules(&[&CONTENTS, &OPERANDS]),
    &fold_constants,
);

/// Folds everything that is known.
pub fn fold_constants(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let order = graph.order().unwrap_or_default();
    let mut found = KnownValues { narrow: stay_narrow(graph), ..KnownValues::default() };
    for &n in &order {
        found.look_at(graph, n);
    }
    found.settle(graph, &order);
    if found.nodes.is_empty() {
        return Ok(());
    }
    let gain: Cost = found.nodes.keys().map(|&n| pass_cost(graph, cx, n)).sum();
    if gain == Cost::ZERO {
        return Ok(());
    }
    let mut patch = Patch::new();
    for (&v, constant) in &found.constants {
        if found.is_read_by_others(graph, v) {
            patch.insert(insert(graph, v, constant));
        }
    }
    patch.apply(graph)?;
    for how in found.nodes.values() {
        cx.count(how.rule(), 1);
    }
    remove_dead(graph, found.nodes.into_keys());
    Ok(())
}

/// What a node costs that reads its operands and writes its results once.
pub(crate) fn pass_cost(graph: &Graph, cx: &Context<'_>, n: NodeId) -> Cost {
    let node = graph.node(n);
    let sides = node.inputs.iter().chain(&node.outputs).flatten();
    cx.target().pass_cost(sides.fold(0, |bytes, &v| cx.settings.hints.bytes(graph, v).saturating_add(bytes)))
}

/// The constant that takes the place of a value wherever that is read.
pub(crate) fn insert(graph: &Graph, v: ValueId, constant: &Constant) -> Insert {
    let value = graph.value(v);
    Insert {
        node: Node::constant(constant.clone(), graph.node(value.producer().0).rank),
        name: value.name.clone(),
        ty: value.ty.clone(),
        layout: value.layout.clone(),
        uses: graph.uses(v).into_vec(),
        outputs: vec![],
        takes_name_of: Some(v),
    }
}

/// Values that are known, and the nodes that go.
#[derive(Default)]
struct KnownValues {
    constants: BTreeMap<ValueId, Constant>,
    nodes: BTreeMap<NodeId, Known>,
    /// Whether weights that are stored in few bits stay that.
    narrow: bool,
}

impl KnownValues {
    /// Notes the results of a node if all that are read are known. Operands were looked at before.
    fn look_at(&mut self, graph: &Graph, n: NodeId) {
        let node = graph.node(n);
        if !matches!(node.op, Op::Onnx(_)) || node.bodies().next().is_some() || (self.narrow && widens(graph, node)) {
            return;
        }
        let read: Vec<(usize, ValueId)> = node
            .outputs
            .iter()
            .enumerate()
            .filter_map(|(slot, v)| v.map(|v| (slot, v)))
            .filter(|&(_, v)| graph.use_count(v) > 0)
            .collect();
        if read.is_empty() || node.outputs.iter().flatten().any(|&v| graph.is_output(v)) {
            return;
        }
        let contents: Option<Vec<Constant>> = read.iter().map(|&(_, v)| known_constant(graph, v)).collect();
        let (how, constants) = match contents {
            Some(constants) => (Known::Contents, constants),
            None => match read.iter().map(|&(slot, v)| self.evaluated(graph, node, slot, v)).collect() {
                Some(constants) => (Known::Operands, constants),
                None => return,
            },
        };
        self.constants.extend(read.into_iter().map(|(_, v)| v).zip(constants));
        self.nodes.insert(n, how);
    }

    /// The constant that an op makes of constants.
    fn evaluated(&self, graph: &Graph, node: &Node, slot: usize, v: ValueId) -> Option<Constant> {
        let given = node.inputs.iter().position(Option::is_none).unwrap_or(node.inputs.len());
        if node.inputs[given..].iter().any(Option::is_some) && !matches!(node.onnx(), Some("Slice" | "Clip")) {
            return None;
        }
        // Of the second operand of CastLike only the type is read, which is that of the result.
        let read = if node.onnx() == Some("CastLike") { 1 } else { node.inputs.len() };
        let operands: Vec<Constant> = node
            .inputs
            .iter()
            .take(read)
            .flatten()
            .map(|&x| graph.constant(x).or_else(|| self.constants.get(&x)).cloned())
            .collect::<Option<_>>()?;
        let step = Step::recognize(graph, node, slot).filter(|_| !operands.is_empty())?;
        if matches!(step, Step::Dequantize(_)) && is_in_quantized_unit(graph, v) {
            return None;
        }
        let (dtype, dims) = (graph.value(v).ty.dtype()?, graph.value(v).ty.const_shape()?);
        let size = Constant::missing(dtype, dims.clone(), String::new()).size_bytes()?;
        if matches!(step, Step::View) {
            // The same bytes, wherever they are.
            let x = operands.into_iter().next().filter(|x| x.dtype == dtype && x.pending.is_none())?;
            let fits = x.size_bytes()? == size && (size <= SMALL || self.is_own(graph, node, 0));
            return fits.then_some(Constant { dims, ..x });
        }
        let computed = Computed::new(step, operands, dtype, dims.clone());
        if size <= SMALL {
            // Operands that are large and themselves still to be computed are not computed for this.
            let at_hand = |c: &Constant| c.size_bytes().is_some_and(|s| s <= SMALL) || !c.source.is_computed();
            let bytes = computed.operands.iter().all(at_hand).then(|| relayout_bytes(&computed).ok())??;
            return Some(Constant::inline(dtype, dims, bytes));
        }
        if !self.may_be_late(graph, node, &computed, size) {
            return None;
        }
        if computed.depth() > DEEPEST {
            return relayout_bytes(&computed).ok().map(|bytes| Constant::inline(dtype, dims, bytes));
        }
        Some(Constant { dtype, dims, source: Arc::new(computed), pending: None })
    }

    /// Whether a large result may be left until it is written: it can't fail then, and the file does not grow but by what a
    /// Cast widens.
    fn may_be_late(&self, graph: &Graph, node: &Node, computed: &Computed, size: u64) -> bool {
        let types: Vec<_> = computed.operands.iter().map(|c| c.dtype).collect();
        let before = computed.operands.iter().fold(0, |n: u64, c| n.saturating_add(c.size_bytes().unwrap_or(0)));
        computed.step.never_fails(&types, computed.dtype)
            && (size <= before || matches!(computed.step, Step::Cast))
            && (0..node.inputs.len()).all(|slot| self.is_own(graph, node, slot))
    }

    /// Whether an operand is small, or read by this node alone.
    fn is_own(&self, graph: &Graph, node: &Node, slot: usize) -> bool {
        let Some(x) = node.operand(slot) else { return true };
        let constant = graph.constant(x).or_else(|| self.constants.get(&x));
        let small = constant.and_then(Constant::size_bytes).is_some_and(|s| s <= SMALL);
        small || graph.only_use(x).is_some() || is_shared_out(graph, x)
    }

    /// Takes back large Transposes that no node that goes reads, so that what they read is stored instead.
    fn settle(&mut self, graph: &Graph, order: &[NodeId]) {
        for n in order.iter().rev() {
            let transposes = matches!(graph.node(*n).form, Form::View(View::Transpose(_)));
            let Some(y) = graph.node(*n).result(0).filter(|_| transposes) else { continue };
            let large = self.constants.get(&y).and_then(Constant::size_bytes).is_some_and(|s| s > SMALL);
            if large && self.is_read_by_others(graph, y) {
                self.constants.remove(&y);
                self.nodes.remove(n);
            }
        }
    }

    /// Whether a node that stays reads the value.
    fn is_read_by_others(&self, graph: &Graph, v: ValueId) -> bool {
        graph.uses(v).iter().any(|u| !self.nodes.contains_key(&u.node))
    }
}

/// Whether all that is read of a value are parts, which together are no more than it is: then it goes with the last of them.
fn is_shared_out(graph: &Graph, x: ValueId) -> bool {
    let elements = |v: ValueId| -> Option<i64> {
        let shape = graph.value(v).ty.const_shape()?;
        shape.iter().try_fold(1, |all: i64, extent| all.checked_mul(*extent))
    };
    let part = |u: Use| {
        let node = graph.node(u.node);
        let known = node.inputs.iter().skip(1).flatten().all(|&v| is_constant(graph, v));
        let cuts = node.onnx() == Some("Slice") && u.slot == 0 && known;
        if cuts { elements(node.only_result()?) } else { None }
    };
    let parts: Option<i64> = graph.uses(x).into_iter().map(part).sum();
    !graph.is_read_by_name(x) && parts.is_some() && parts <= elements(x)
}

fn relayout_bytes(computed: &Computed) -> Result<bytes::Bytes, String> {
    computed.bytes()
}

/// Whether a dequantized constant is read by something that a runtime fuses with it: an op with weights, one whose other
/// operands are dequantized as well, one whose result is quantized, or a view that may lead to one.
pub(super) fn is_in_quantized_unit(graph: &Graph, v: ValueId) -> bool {
    let maker = |x: ValueId| graph.node(graph.value(x).producer().0);
    graph.uses(v).iter().any(|u| {
        let node = graph.node(u.node);
        let element_wise = matches!(node.onnx(), Some("Add" | "Sub" | "Mul" | "Div" | "Where" | "Concat"));
        let others = node.inputs.iter().flatten().filter(|&&x| x != v);
        let dequantized = others.into_iter().any(|&x| maker(x).onnx() == Some("DequantizeLinear"));
        let quantizes = |u: &relayout_ir::graph::Use| graph.node(u.node).onnx() == Some("QuantizeLinear");
        let quantized = node.outputs.iter().flatten().any(|&y| graph.uses(y).iter().any(quantizes));
        !element_wise || dequantized || quantized
    })
}
