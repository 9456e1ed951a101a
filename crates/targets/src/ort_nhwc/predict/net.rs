//! A graph as ONNX Runtime's transpose optimizer sees it: ops, the shapes of values, and which of them are constant.

use super::order::{apply, inverse};
use crate::ort_nhwc::is_half;
use crate::ort_nhwc::providers::Unknown;
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node as IrNode, Op, ValueId};
use relayout_ir::op::normalize_axis;
use relayout_ir::op::read::keeps_axes;
use relayout_target_api::Sizes;
use rustc_hash::FxHashMap;

/// More axes than this no op lists.
const MOST_AXES: usize = 64;

/// A value, by its number.
pub(super) type V = usize;
/// A node, by its number.
pub(super) type N = usize;

/// A value.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Value {
    pub(super) shape: Option<Vec<u64>>,
    /// Which extents are no numbers.
    pub(super) unknown: Unknown,
    /// Whether it is known when the model is loaded.
    pub(super) constant: bool,
    /// Whether its elements have two bytes or fewer.
    pub(super) half: bool,
    pub(super) maker: Option<N>,
    /// Whether a caller or a body reads it.
    pub(super) left: bool,
    /// Whether its elements are integers of 8 bits.
    pub(super) bytes: bool,
    /// Whether the runtime does not know its rank.
    lost: bool,
    readers: Vec<N>,
}

/// A node.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Node {
    pub(super) op: String,
    pub(super) ins: Vec<Option<V>>,
    pub(super) outs: Vec<V>,
    /// The order of a Transpose.
    pub(super) perm: Vec<usize>,
    /// Axes that it names, where they are known.
    pub(super) axes: Option<Vec<usize>>,
    /// Whether axes that it works along are kept.
    pub(super) keeps: bool,
    /// The version of its operator set.
    pub(super) opset: i64,
    /// Whether it reads one element of an axis, whose number is known.
    pub(super) picks: bool,
    /// Whether it runs channels last.
    pub(super) wrapped: bool,
    pub(super) gone: bool,
}

/// The graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Net {
    pub(super) values: Vec<Value>,
    pub(super) nodes: Vec<Node>,
}

impl Net {
    /// A graph of standard ops, with the types that inference finds.
    pub(super) fn build(graph: &Graph, sizes: &dyn Sizes) -> Net {
        let mut net = Net::default();
        let mut known: FxHashMap<ValueId, V> = FxHashMap::default();
        for n in graph.order().unwrap_or_default() {
            net.read(graph, sizes, graph.node(n), &mut known);
        }
        for v in graph.outputs().iter().filter_map(|v| known.get(v)) {
            net.values[*v].left = true;
        }
        net
    }

    fn read(&mut self, graph: &Graph, sizes: &dyn Sizes, node: &IrNode, known: &mut FxHashMap<ValueId, V>) {
        let ins: Vec<Option<V>> = node.inputs.iter().map(|v| v.and_then(|v| known.get(&v).copied())).collect();
        for v in node.captures.iter().filter_map(|v| known.get(v)) {
            self.values[*v].left = true;
        }
        if matches!(node.onnx(), Some("Identity" | "Dropout"))
            && let Some((&y, x)) = node.outputs.iter().flatten().next().zip(ins.first().copied().flatten())
        {
            known.insert(y, x);
            return;
        }
        let constant = match &node.op {
            Op::Onnx(_) => self.is_folded(graph, node, &ins),
            op => matches!(op, Op::Constant(_)),
        };
        let lost = self.is_lost(node, &ins);
        let mut outs = Vec::new();
        for &v in node.outputs.iter().flatten() {
            let own = self.value(sizes.shape(graph, v).filter(|_| !lost), constant);
            self.values[own].unknown = if lost { Unknown::Any } else { unknown(graph, v) };
            self.values[own].lost = lost;
            self.values[own].bytes = matches!(graph.value(v).ty.dtype(), Some(DType::U8 | DType::I8));
            self.values[own].half = is_half(graph.value(v).ty.dtype());
            known.insert(v, own);
            outs.push(own);
        }
        if let (Op::Onnx(name), false) = (&node.op, constant) {
            let rank = node.operand(0).and_then(|x| graph.value(x).ty.rank()).unwrap_or(0);
            let index = ins.get(1).copied().flatten().map(|v| &self.values[v]);
            // Nothing is pushed through what reads nothing, or leaves nothing.
            let whole = !ins.is_empty() && !outs.is_empty();
            let own = Node {
                op: if whole { name.name.clone() } else { String::new() },
                perm: perm_of(node, rank),
                axes: axes_of(graph, node, rank),
                keeps: keeps_axes(node),
                opset: node.opset,
                picks: index.is_some_and(|v| v.constant && v.shape.as_ref().is_some_and(Vec::is_empty)),
                ..Node::default()
            };
            self.add(own, ins, outs);
        }
    }

    /// Whether the runtime can't infer the ranks of a node's results: a Loop may carry something else after each iteration.
    fn is_lost(&self, node: &IrNode, ins: &[Option<V>]) -> bool {
        let told = matches!(node.onnx(), Some("Reshape" | "Expand" | "Shape" | "Size"));
        node.op.is_named("Loop") || !told && ins.iter().flatten().any(|&v| self.values[v].lost)
    }

    /// Whether the results of a node are computed when the model is loaded.
    fn is_folded(&self, graph: &Graph, node: &IrNode, ins: &[Option<V>]) -> bool {
        let of_constants = !ins.is_empty() && ins.iter().all(|v| v.is_none_or(|v| self.values[v].constant));
        let fixed = |v: ValueId| graph.value(v).ty.const_shape().is_some();
        let of_extents = node.op.is_named("Shape") && node.operand(0).is_some_and(fixed);
        of_extents || of_constants && node.bodies().next().is_none()
    }

    /// A new value.
    pub(super) fn value(&mut self, shape: Option<Vec<u64>>, constant: bool) -> V {
        self.values.push(Value { shape, constant, ..Value::default() });
        self.values.len() - 1
    }

    /// Adds a node that reads and makes these values.
    pub(super) fn add(&mut self, node: Node, ins: Vec<Option<V>>, outs: Vec<V>) -> N {
        let n = self.nodes.len();
        for &v in ins.iter().flatten() {
            self.values[v].readers.push(n);
        }
        for &v in &outs {
            self.values[v].maker = Some(n);
        }
        self.nodes.push(Node { ins, outs, ..node });
        n
    }

    /// Gives each reader of dequantized values a `DequantizeLinear` of its own, as ONNX Runtime does before it moves them
    /// (`core/optimizer/qdq_transformer/ensure_unique_dq_for_node_unit.cc`).
    pub(super) fn part_dequantized(&mut self) {
        for n in 0..self.nodes.len() {
            let node = self.nodes[n].clone();
            let Some(&y) = node.outs.first().filter(|_| node.op == "DequantizeLinear") else { continue };
            for reader in self.values[y].readers.clone().into_iter().skip(1) {
                let own = self.values.len();
                let value = Value { left: false, readers: Vec::new(), ..self.values[y].clone() };
                self.values.push(value);
                self.add(node.clone(), node.ins.clone(), vec![own]);
                if let Some(slot) = self.nodes[reader].ins.iter().position(|v| *v == Some(y)) {
                    self.set(reader, slot, Some(own));
                }
            }
        }
    }

    /// Adds a Transpose of a value; its result.
    pub(super) fn transpose(&mut self, x: V, perm: &[usize]) -> V {
        let shape = self.values[x].shape.as_deref().and_then(|shape| apply(perm, shape));
        let y = self.value(shape, false);
        self.values[y].unknown = turned(self.values[x].unknown, perm);
        self.values[y].half = self.values[x].half;
        let node = Node { op: "Transpose".to_owned(), perm: perm.to_vec(), ..Node::default() };
        self.add(node, vec![Some(x)], vec![y]);
        y
    }

    /// Puts a Transpose behind a result of a node. The readers of the result read that of the Transpose, in its old shape.
    pub(super) fn transpose_result(&mut self, n: N, slot: usize, perm: &[usize]) {
        let y = self.nodes[n].outs[slot];
        let shape = self.values[y].shape.as_deref().and_then(|shape| apply(&inverse(perm), shape));
        let own = self.value(shape, false);
        self.values[own].unknown = turned(self.values[y].unknown, perm);
        self.values[own].half = self.values[y].half;
        self.nodes[n].outs[slot] = own;
        self.values[own].maker = Some(n);
        let node = Node { op: "Transpose".to_owned(), perm: perm.to_vec(), ..Node::default() };
        self.add(node, vec![Some(own)], vec![y]);
    }

    /// Has a node read another value.
    pub(super) fn set(&mut self, n: N, slot: usize, v: Option<V>) {
        if let Some(old) = self.nodes[n].ins[slot] {
            let readers = &mut self.values[old].readers;
            if let Some(at) = readers.iter().position(|&reader| reader == n) {
                readers.remove(at);
            }
        }
        self.nodes[n].ins[slot] = v;
        if let Some(v) = v {
            self.values[v].readers.push(n);
        }
    }

    /// The readers of a value, one for each operand.
    pub(super) fn readers(&self, v: V) -> &[N] {
        &self.values[v].readers
    }

    /// Removes a node.
    pub(super) fn remove(&mut self, n: N) {
        for slot in 0..self.nodes[n].ins.len() {
            self.set(n, slot, None);
        }
        self.nodes[n].gone = true;
    }

    /// Removes a node that nobody reads.
    pub(super) fn remove_unread(&mut self, n: N) {
        let read = |v: &V| self.values[*v].left || !self.values[*v].readers.is_empty();
        if !self.nodes[n].outs.iter().any(read) {
            self.remove(n);
        }
    }

    /// The Transpose that makes a value.
    pub(super) fn turned(&self, v: V) -> Option<N> {
        self.values[v].maker.filter(|&n| self.nodes[n].op == "Transpose" && !self.nodes[n].gone)
    }

    /// Everything that is there, operands before readers.
    pub(super) fn order(&self) -> Vec<N> {
        let mut state = vec![0u8; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut todo = vec![start];
            while let Some(&n) = todo.last() {
                if state[n] == 2 || self.nodes[n].gone {
                    todo.pop();
                    continue;
                }
                let before = self.nodes[n].ins.iter().flatten().filter_map(|&v| self.values[v].maker);
                let open: Vec<N> = before.filter(|&m| state[m] == 0 && !self.nodes[m].gone).collect();
                if open.is_empty() || state[n] == 1 {
                    state[n] = 2;
                    order.push(n);
                    todo.pop();
                } else {
                    state[n] = 1;
                    todo.extend(open);
                }
            }
        }
        order
    }
}

/// Which extents of a value are no numbers.
fn unknown(graph: &Graph, v: ValueId) -> Unknown {
    let Some(shape) = graph.value(v).ty.shape() else { return Unknown::Any };
    match shape.iter().rposition(|dim| dim.as_const().is_none()) {
        None => Unknown::None,
        Some(0) => Unknown::Batch,
        Some(_) => Unknown::Any,
    }
}

/// Which extents are not numbers, of the value in another order of axes.
fn turned(unknown: Unknown, perm: &[usize]) -> Unknown {
    if perm.first() == Some(&0) { unknown } else { unknown.behind_another_axis() }
}

/// The order of a Transpose.
fn perm_of(node: &IrNode, rank: usize) -> Vec<usize> {
    let axis = |&a: &i64| usize::try_from(a).unwrap_or(usize::MAX);
    node.ints("perm").map_or_else(|| (0..rank).rev().collect(), |perm| perm.iter().map(axis).collect())
}

/// The axes that a node names in an attribute or a constant.
fn axes_of(graph: &Graph, node: &IrNode, rank: usize) -> Option<Vec<usize>> {
    let slot = if node.op.is_named("Slice") { 3 } else { 1 };
    let listed = node.operand(slot).and_then(|v| graph.constant(v)).and_then(|c| c.to_ints(MOST_AXES));
    let out = node.result(0).and_then(|y| graph.value(y).ty.rank()).unwrap_or(rank);
    let rank = if node.op.is_named("Unsqueeze") { out } else { rank };
    let axes = match (node.attrs.get("axes"), node.attrs.get("axis")) {
        (Some(Attr::Ints(axes)), _) => axes.clone(),
        (_, Some(Attr::Int(axis))) => vec![*axis],
        _ if node.op.is_named("Gather") => vec![0],
        _ => listed.filter(|_| names_axes(node))?,
    };
    axes.into_iter().map(|axis| normalize_axis(axis, rank)).collect()
}

/// Whether an operand lists axes.
fn names_axes(node: &IrNode) -> bool {
    node.onnx().is_some_and(|op| op.starts_with("Reduce") || matches!(op, "Squeeze" | "Unsqueeze"))
}
