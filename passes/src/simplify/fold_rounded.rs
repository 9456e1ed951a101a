//! `fold_rounded`: what depends on constants only is computed, also where ops round.
//!
//! `fold_constants` took what has the same bits in every runtime. Here are the others: sums, means, normalizations, functions and
//! products of constants. Weights that a network standardizes before each convolution are such. All ops between constants and a
//! node that stays are computed in f64, and what that node reads is rounded once.
//!
//! What a file may grow by: a small result is stored whatever it came from; a large one takes the place of large constants that
//! nothing else reads and are together no smaller. Large ones are computed when the file is written.
//!
//! Absent: graph outputs, which stay results of nodes; quantized weights, and those of 8 bits that are much of the file; what comes before a quantization; results that round
//! nothing, which `fold_constants` left for reasons of its own; what takes longer than `MOST_WORK` or more memory than
//! `LARGEST`.

use super::fold_constants::{SMALL, insert, pass_cost};
use super::narrow::{stay_narrow, widens};
use crate::state::Step;
use relayout_eval::{Needs, Plan, Rounded};
use relayout_ir::constant::{ConstSource as _, Constant};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Context, Cost, Counted, Declared, Numerics, PassError, Rule, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most bytes of a result on the way from constants to one that is stored; in f64 it takes up to four times as much.
const LARGEST: u64 = 256 << 20;

/// Most operations on one number each for a result that is stored: seconds.
const MOST_WORK: u64 = 1 << 30;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "evaluate_rounded",
    equation: "f(g(c1, ...), ...) = c",
    condition: "f or an op before it rounds, all are computed in f64, and c is rounded once; c is small, or stored instead of \
                as many bytes; no graph output; no quantized weights",
    buys: "the nodes",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "fold_rounded",
        Slot::Simplify,
        "what has the same bits everywhere is folded; what is left of constants would hide weights from all that follows",
    )
    .rules(&[&RULE]),
    &fold_rounded,
);

/// Folds what depends on constants only.
pub fn fold_rounded(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut found = Foldable { narrow: stay_narrow(graph), ..Foldable::default() };
    for n in cx.reassociable(graph) {
        found.look_at(graph, n);
    }
    let stored = found.settle(graph);
    let gain: Cost = found.nodes.iter().map(|&n| pass_cost(graph, cx, n)).sum();
    if stored.is_empty() || gain == Cost::ZERO {
        return Ok(());
    }
    let mut patch = Patch::new();
    for (&v, constant) in &stored {
        patch.insert(insert(graph, v, constant));
    }
    patch.apply(graph)?;
    cx.count(&RULE, found.nodes.len());
    remove_dead(graph, found.nodes);
    Ok(())
}

/// Nodes that depend on constants only, and what they compute.
#[derive(Default)]
struct Foldable {
    nodes: BTreeSet<NodeId>,
    plan: Arc<Plan>,
    /// The part of the plan that a value is, constants of the graph among them.
    parts: BTreeMap<ValueId, usize>,
    /// The value that a constant of the plan is.
    values: BTreeMap<usize, ValueId>,
    /// Whether weights that are stored in few bits stay that.
    narrow: bool,
}

impl Foldable {
    /// Notes the results of a node if all that are read can be computed. Operands were looked at before.
    fn look_at(&mut self, graph: &Graph, n: NodeId) {
        let node = graph.node(n);
        let is_plain = matches!(node.op, Op::Onnx(_)) && node.bodies().next().is_none();
        let results = || node.outputs.iter().enumerate().filter_map(|(slot, v)| v.map(|v| (slot, v)));
        let read: Vec<(usize, ValueId)> = results().filter(|&(_, v)| graph.use_count(v) > 0).collect();
        if !is_plain
            || (self.narrow && widens(graph, node))
            || read.is_empty()
            || results().any(|(_, v)| graph.is_output(v))
        {
            return;
        }
        // Of the second operand of CastLike only the type is read, which is that of the result.
        let count = if node.onnx() == Some("CastLike") { 1 } else { node.inputs.len() };
        let operands: Vec<ValueId> = node.inputs.iter().take(count).flatten().copied().collect();
        let known = |v: &ValueId| self.parts.contains_key(v) || graph.constant(*v).is_some();
        // Operands are told by their places, except where the op says which are left out.
        let gaps = operands.len() < count && node.inputs[..operands.len()].iter().any(Option::is_none);
        if operands.is_empty() || !operands.iter().all(known) || (gaps && node.onnx() != Some("Clip")) {
            return;
        }
        let Some(operands) = operands.into_iter().map(|v| self.part(graph, v)).collect::<Option<Vec<_>>>() else {
            return;
        };
        let Some(plan) = Arc::get_mut(&mut self.plan) else { return };
        let made: Option<Vec<_>> =
            read.iter().map(|&(slot, v)| Some((v, plan.make(graph, node, slot, operands.clone())?))).collect();
        if let Some(made) = made {
            self.parts.extend(made);
            self.nodes.insert(n);
        }
    }

    fn part(&mut self, graph: &Graph, v: ValueId) -> Option<usize> {
        if let Some(&part) = self.parts.get(&v) {
            return Some(part);
        }
        let part = Arc::get_mut(&mut self.plan)?.give(graph.constant(v)?.clone())?;
        self.parts.insert(v, part);
        self.values.insert(part, v);
        Some(part)
    }

    /// Keeps the nodes that may go, and gives what is stored for those that stay. A node that may not go makes its operands
    /// results that are stored, so it is looked at again until nothing changes; each turn takes nodes away.
    fn settle(&mut self, graph: &Graph) -> BTreeMap<ValueId, Constant> {
        loop {
            let mut left = self.bytes_that_go(graph);
            let mut stored = BTreeMap::new();
            let mut refused = Vec::new();
            for &n in &self.nodes {
                for v in graph.node(n).outputs.iter().flatten().copied().filter(|&v| self.is_read_by_others(graph, v)) {
                    match self.stored(graph, v, &mut left) {
                        Some(constant) => _ = stored.insert(v, constant),
                        None => refused.push(n),
                    }
                }
            }
            if refused.is_empty() {
                return stored;
            }
            self.nodes.retain(|n| !refused.contains(n));
        }
    }

    /// Large constants that only nodes read that go, by their number in the plan, with their bytes.
    fn bytes_that_go(&self, graph: &Graph) -> BTreeMap<usize, u64> {
        let goes = |v: ValueId| !graph.is_output(v) && !self.is_read_by_others(graph, v);
        let own = self.values.iter().filter(|&(_, &v)| goes(v));
        let sized = own.filter_map(|(&part, &v)| Some((part, graph.constant(v)?.size_bytes()?)));
        sized.filter(|&(_, size)| size > SMALL).collect()
    }

    /// Whether a node that stays reads the value.
    fn is_read_by_others(&self, graph: &Graph, v: ValueId) -> bool {
        graph.uses(v).iter().any(|u| !self.nodes.contains(&u.node))
    }

    /// The constant that a value becomes; `None` if it may not be stored. A large one takes bytes from those that are `left`.
    fn stored(&self, graph: &Graph, v: ValueId, left: &mut BTreeMap<usize, u64>) -> Option<Constant> {
        let at = *self.parts.get(&v)?;
        let needs = self.plan.needs(at);
        let (dtype, dims) = (graph.value(v).ty.dtype()?, graph.value(v).ty.const_shape()?);
        let size = Constant::missing(dtype, dims.clone(), String::new()).size_bytes()?;
        let source = Rounded { plan: Arc::clone(&self.plan), at, dtype };
        if !needs.rounds || needs.work > MOST_WORK || needs.largest > LARGEST || !source.is_available() {
            return None;
        }
        let computed = |source| Constant { dtype, dims: dims.clone(), source: Arc::new(source), pending: None };
        if size <= SMALL {
            let bytes = source.bytes().ok()?;
            // Of halves a target may want the digits that were rounded off.
            let more_digits = source.before_rounding().is_some();
            return Some(if more_digits { computed(source) } else { Constant::inline(dtype, dims.clone(), bytes) });
        }
        let fits = !needs.may_fail && claim(&needs, size, left);
        fits.then(|| computed(source))
    }
}

/// Takes as many bytes as a result has from those of the constants that it needs.
fn claim(needs: &Needs, size: u64, left: &mut BTreeMap<usize, u64>) -> bool {
    let there = needs.given.iter().filter_map(|part| left.get(part)).fold(0u64, |sum, n| sum.saturating_add(*n));
    if there < size {
        return false;
    }
    let mut wanted = size;
    for part in &needs.given {
        if let Some(bytes) = left.get_mut(part) {
            let taken = wanted.min(*bytes);
            *bytes -= taken;
            wanted -= taken;
        }
    }
    true
}
