//! `fold_scales`: scales and shifts behind a linear op go into its weights.
//!
//! From each op that `ANCHORS` reads as an anchor, the chain of its only readers is followed:
//! BatchNormalization, Add, Sub, Mul, Div and Neg with constants that are one number or one per channel, and views between
//! them. All of the chain is one scale and one shift, in f64, so that weights and bias are rounded once. The result of the last
//! op of the chain keeps its name; new weights keep the name of the old ones where those go.
//!
//! Nothing is done upstream of a quantization, to a factor that a runtime gives to the product behind it, to weights that another node reads and that are large, or to halves whose
//! products leave the range of their type.

use super::anchor::{ANCHORS, Anchor, BiasPlace};
use crate::simplify::fold_constants::{SMALL, pass_cost};
use crate::state::Step;
use relayout_eval::{Affine, reading};
use relayout_eval::{Numbers, Scaled, Split, bytes_of, decode, encode};
use relayout_ir::build::bind_again;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::patch::{NewOperand, Patch, remove_dead};
use relayout_ir::perm::place;
use relayout_target_api::{Context, Cost, Declared, PassError, Rule, Slot};
use std::sync::Arc;

/// The rules of [`ANCHORS`].
pub(crate) static RULES: &[&Rule] = &[ANCHORS[0].1, ANCHORS[1].1, ANCHORS[2].1, ANCHORS[3].1];

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "fold_scales",
        Slot::Prepare,
        "needs weights as constants; the decision need not carry layouts through what goes",
    )
    .rules(RULES),
    &fold_scales,
);

/// Folds behind every anchor, in topological order.
pub fn fold_scales(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        if !graph.contains(n) {
            continue;
        }
        let Some((rule, anchor)) = anchored(graph, n) else { continue };
        let Some(fold) = Fold::plan(graph, n, &anchor) else { continue };
        let gain: Cost = fold.removed().map(|link| pass_cost(graph, cx, link.node)).sum();
        if gain > Cost::ZERO {
            let removed = fold.apply(graph, n, &anchor)?;
            cx.count(rule, removed);
        }
    }
    Ok(())
}

fn anchored(graph: &Graph, n: NodeId) -> Option<(&'static Rule, Anchor)> {
    let node = graph.node(n);
    let (_, rule, read) = ANCHORS.iter().find(|(op, ..)| node.onnx() == Some(op))?;
    Some((rule, read(graph, node)?))
}

/// One op of a chain.
#[derive(Clone, Debug)]
struct Link {
    node: NodeId,
    /// What it reads of the chain.
    operand: ValueId,
    result: ValueId,
    affine: Affine,
    /// Where the channels are in the operand, if they are along one axis.
    axis: Option<usize>,
}

impl Link {
    /// For an Add: the slot of its constant.
    fn summand(&self, graph: &Graph) -> Option<usize> {
        let node = graph.node(self.node);
        let slot = node.inputs.iter().position(|&v| v != Some(self.operand));
        slot.filter(|_| node.onnx() == Some("Add"))
    }
}

/// What is to be done behind one anchor.
struct Fold {
    links: Vec<Link>,
    total: Affine,
    /// The Add that stays and takes the shift, and the slot of its constant.
    keeper: Option<(usize, usize)>,
}

impl Fold {
    fn plan(graph: &Graph, n: NodeId, anchor: &Anchor) -> Option<Fold> {
        let mut links = chain(graph, n, anchor);
        if !may_scale(graph, anchor) {
            let end = links.iter().position(|l| !l.affine.keeps_scale()).unwrap_or(links.len());
            links.truncate(end);
        }
        let keeper = match anchor.bias {
            BiasPlace::Operand { .. } => None,
            BiasPlace::Behind => {
                let first = links.iter().position(|l| !l.affine.keeps_origin()).unwrap_or(links.len());
                let found = links.get(first).and_then(|l| Some((first, l.summand(graph)?)));
                if found.is_none() {
                    links.truncate(first);
                }
                found
            }
        };
        // The longest chain whose factors the weights can take.
        loop {
            let gone = links.len() - usize::from(keeper.is_some_and(|(at, _)| at < links.len()));
            if gone == 0 || keeper.is_some_and(|(at, _)| at >= links.len()) {
                return None;
            }
            let start = Affine::identity(anchor.channels());
            let total = links.iter().fold(start, |sum, link| sum.then(&link.affine));
            let fold = Fold { links, total, keeper };
            if fold.fits(graph, anchor) {
                return Some(fold);
            }
            links = fold.links;
            links.pop();
        }
    }

    /// Whether the new constants are in the range of their type.
    fn fits(&self, graph: &Graph, anchor: &Anchor) -> bool {
        let Some(weights) = graph.constant(anchor.weight) else { return false };
        self.total.is_moderate()
            && encoded(&self.shifted(anchor), weights.dtype).is_some()
            && (self.total.keeps_scale() || keeps_range(weights, &self.total.scale, anchor.split))
    }

    /// The new bias, one number per channel.
    fn shifted(&self, anchor: &Anchor) -> Vec<f64> {
        let before = match &anchor.bias {
            BiasPlace::Operand { now: Some((_, now)), .. } => now.clone(),
            _ => vec![0.0; anchor.channels()],
        };
        let scaled = before.iter().zip(&self.total.scale).map(|(b, s)| b * s);
        scaled.zip(&self.total.shift).map(|(b, t)| b + t).collect()
    }

    /// The links that go.
    fn removed(&self) -> impl Iterator<Item = &Link> {
        let kept = self.keeper.map(|(at, _)| at);
        self.links.iter().enumerate().filter(move |(at, _)| Some(*at) != kept).map(|(_, link)| link)
    }

    /// Edits the graph; the number of nodes that went.
    fn apply(&self, graph: &mut Graph, n: NodeId, anchor: &Anchor) -> Result<usize, PassError> {
        let mut patch = Patch::new();
        let mut suspects: Vec<NodeId> = self.removed().map(|link| link.node).collect();
        let mut touched = vec![n];
        let removed = suspects.len();
        if let Some(weights) = graph.constant(anchor.weight).filter(|_| !self.total.keeps_scale()) {
            let scaled = Scaled {
                weights: weights.clone(),
                factors: Arc::from(self.total.scale.as_slice()),
                split: anchor.split,
            };
            let constant = Constant { source: Arc::new(scaled), ..weights.clone() };
            put(graph, &mut patch, &mut suspects, n, anchor.weight_slot, constant);
        }
        if let Some(Bias { node, slot, constant }) = self.new_bias(graph, n, anchor) {
            touched.push(node);
            put(graph, &mut patch, &mut suspects, node, slot, constant);
        }
        // From the end, so that each operand takes the name of the last result that it stands for.
        let removed_links: Vec<&Link> = self.removed().collect();
        for link in removed_links.into_iter().rev() {
            patch.replace(link.result, link.operand);
        }
        patch.apply(graph)?;
        for node in touched {
            bind_again(graph, node);
        }
        remove_dead(graph, suspects);
        Ok(removed)
    }

    /// The bias that is to be there, where anything changes about it.
    fn new_bias(&self, graph: &Graph, n: NodeId, anchor: &Anchor) -> Option<Bias> {
        let dtype = graph.constant(anchor.weight)?.dtype;
        let mut numbers = self.shifted(anchor);
        let count = vec![anchor.channels() as i64];
        let (node, slot, dims) = match (&anchor.bias, self.keeper) {
            (BiasPlace::Operand { slot, now: Some((v, _)) }, _) => {
                (n, *slot, same_count(graph, *v, anchor.channels()).unwrap_or(count))
            }
            (BiasPlace::Operand { slot, now: None }, _) if !self.total.keeps_origin() => (n, *slot, count),
            (BiasPlace::Behind, Some((at, slot))) => {
                let link = self.links.get(at)?;
                let now = graph.node(link.node).operand(slot)?;
                let dims = match link.axis {
                    // What can't tell channels apart is one number, and stays one.
                    None => {
                        numbers.truncate(1);
                        graph.constant(now)?.dims.clone()
                    }
                    Some(axis) => same_count(graph, now, anchor.channels()).unwrap_or_else(|| {
                        let behind = graph.value(link.operand).ty.rank().unwrap_or(0).saturating_sub(axis + 1);
                        count.into_iter().chain(vec![1; behind]).collect()
                    }),
                };
                (link.node, slot, dims)
            }
            _ => return None,
        };
        let bytes = encoded(&numbers, dtype)?;
        Some(Bias { node, slot, constant: Constant::inline(dtype, dims, bytes.into()) })
    }
}

/// A bias, and the operand that it is to be.
struct Bias {
    node: NodeId,
    slot: usize,
    constant: Constant,
}

/// The scales and shifts behind an anchor, up to the first value that something else reads.
fn chain(graph: &Graph, n: NodeId, anchor: &Anchor) -> Vec<Link> {
    let mut links = Vec::new();
    let mut axis = Some(anchor.axis);
    let mut at = graph.node(n).result(0);
    while let Some(v) = at.take() {
        let Some(u) = graph.only_use(v) else { break };
        let node = graph.node(u.node);
        let Some(y) = node.result(0) else { break };
        if u.slot >= node.inputs.len() || !matches!(node.op, Op::Onnx(_)) {
            break;
        }
        match &node.form {
            Form::View(_) if u.slot > 0 => break,
            Form::View(View::Same) => {}
            Form::View(View::Transpose(perm)) => axis = axis.and_then(|axis| place(perm, axis)),
            Form::View(View::Reshape) => axis = axis.and_then(|axis| kept(graph, v, y, axis)),
            _ => {
                let Some(affine) = reading(graph, node, v, axis, anchor.channels()) else { break };
                if is_factor_of_product(graph, u.node, v, y) {
                    break;
                }
                links.push(Link { node: u.node, operand: v, result: y, affine, axis });
            }
        }
        at = Some(y);
    }
    links
}

/// Where a Reshape leaves an axis that it neither splits nor joins with others.
fn kept(graph: &Graph, from: ValueId, to: ValueId, axis: usize) -> Option<usize> {
    let (from, to) = (graph.value(from).ty.shape()?, graph.value(to).ty.shape()?);
    let (extent, before) = (from.get(axis)?, Dim::product(from.get(..axis)?)?);
    (0..to.len()).find(|&at| to.get(at) == Some(extent) && Dim::product(&to[..at]).as_ref() == Some(&before))
}

/// Whether a node multiplies by one number what only a product of two activations reads: a runtime makes it that product's own
/// factor (`FusedMatMul`), and would lose a fusion for nothing.
fn is_factor_of_product(graph: &Graph, n: NodeId, x: ValueId, y: ValueId) -> bool {
    let node = graph.node(n);
    let number = |v: ValueId| v == x || graph.constant(v).and_then(Constant::elems) == Some(1);
    let scales = matches!(node.onnx(), Some("Mul" | "Div")) && node.inputs.iter().flatten().all(|&v| number(v));
    let multiplies = |node: &Node| {
        node.onnx() == Some("MatMul") && node.inputs.iter().flatten().all(|&v| graph.constant(v).is_none())
    };
    scales && !graph.is_output(y) && graph.uses(y).iter().all(|u| multiplies(graph.node(u.node)))
}

/// Whether the weights may be stored scaled: nothing else reads them, or a second copy is small.
fn may_scale(graph: &Graph, anchor: &Anchor) -> bool {
    let own = graph.only_use(anchor.weight).is_some();
    own || graph.constant(anchor.weight).and_then(Constant::size_bytes).is_some_and(|size| size <= SMALL)
}

/// Whether halves stay in the range in which they are precise: the largest of a channel, or all of it 0.
fn keeps_range(weights: &Constant, factors: &[f64], split: Split) -> bool {
    const LARGEST: f64 = 32768.0;
    const SMALLEST: f64 = 1.0 / 1024.0;
    if weights.dtype != DType::F16 {
        return true;
    }
    let numbers = bytes_of(weights).and_then(|b| decode(DType::F16, &b)).ok().and_then(|n| n.floats());
    let Some(numbers) = numbers else { return false };
    let mut largest = vec![0.0f64; factors.len()];
    let mut rest = numbers.as_slice();
    for (channel, run) in split.runs() {
        let (Some(most), Some((own, after))) = (largest.get_mut(channel), rest.split_at_checked(run)) else {
            return false;
        };
        *most = own.iter().fold(*most, |most, w| most.max(w.abs()));
        rest = after;
    }
    largest.iter().zip(factors).map(|(w, s)| w * s.abs()).all(|w| w <= 0.0 || (SMALLEST..=LARGEST).contains(&w))
}

/// Numbers in this type, if each is in its range.
fn encoded(numbers: &[f64], dtype: DType) -> Option<Vec<u8>> {
    let bytes = encode(&Numbers::F64(numbers.to_vec()), dtype).ok()?;
    decode(dtype, &bytes).ok()?.floats()?.iter().all(|x| x.is_finite()).then_some(bytes)
}

/// The dims of a constant that has one number per channel.
fn same_count(graph: &Graph, v: ValueId, channels: usize) -> Option<Vec<i64>> {
    let c = graph.constant(v)?;
    (c.elems()? == channels as u64).then(|| c.dims.clone())
}

/// Makes an operand this constant. It takes the name of the one that goes, where that has the same dims and no other reader.
fn put(graph: &Graph, patch: &mut Patch, suspects: &mut Vec<NodeId>, node: NodeId, slot: usize, constant: Constant) {
    let Some(old) = graph.node(node).operand(slot) else {
        let result = graph.node(node).result(0);
        let name = result.map_or_else(String::new, |v| format!("{}.bias", graph.value(v).name));
        patch.set_operand(NewOperand { node, slot, constant, name, takes_name_of: None });
        return;
    };
    let value = graph.value(old);
    let goes = graph.only_use(old).is_some();
    let same = graph.constant(old).is_some_and(|c| c.dims == constant.dims && c.dtype == constant.dtype);
    suspects.push(value.producer().0);
    let takes_name_of = (goes && same).then_some(old);
    patch.set_operand(NewOperand { node, slot, constant, name: value.name.clone(), takes_name_of });
}
