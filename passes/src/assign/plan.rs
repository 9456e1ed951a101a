//! A decision: one choice per node, and what follows from it for every value.

use super::candidates::{Candidates, Choice};
use crate::hints::Hints;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::{reshape_target, same_bytes, storage_shape};
use relayout_target::{Cost, MoveKind, Target};

/// A decision for one graph.
#[derive(Clone, Debug)]
pub struct Plan {
    candidates: Candidates,
    chosen: Vec<usize>,
}

/// What becomes of one value.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// The layout in which its producer leaves it.
    pub produced: Option<Layout>,
    /// Other layouts that readers want, each once, with the readers. Row-major comes first.
    pub copies: Vec<(Layout, Vec<Use>)>,
    /// A graph output wants the first copy (row-major) rather than what is produced.
    pub output_reads_copy: bool,
    /// Its producer is a Transpose whose result is not the plain view of its operand: it moves, or is a Reshape.
    pub moved_by_producer: Option<MoveKind>,
}

impl Plan {
    pub(super) fn new(graph: &Graph, candidates: Candidates, mut chosen: Vec<usize>) -> Plan {
        chosen.resize(chosen.len().max(graph.nodes().map(|n| n.index() + 1).max().unwrap_or(0)), 0);
        Plan { candidates, chosen }
    }

    /// Layouts and choices this was decided among.
    pub fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// The choice of a node; `None` for nodes that are not ops.
    pub fn choice(&self, n: NodeId) -> Option<&Choice> {
        let choices = self.candidates.choices.get(n.index())?;
        choices.get(self.chosen.get(n.index()).copied().unwrap_or(0))
    }

    /// Choice 0 of a node: how ONNX runs it.
    pub fn origin_choice(&self, n: NodeId) -> Option<&Choice> {
        self.candidates.choices.get(n.index())?.first()
    }

    pub(super) fn revert(&mut self, n: NodeId) {
        if let Some(chosen) = self.chosen.get_mut(n.index()) {
            *chosen = 0;
        }
    }

    /// Whether the value is a constant, or views of one.
    pub fn is_constant(&self, v: ValueId) -> bool {
        self.candidates.constant[v.index()]
    }

    /// The layout in which a use reads its value, as the node wants it.
    pub fn wanted(&self, graph: &Graph, u: Use, v: ValueId) -> Layout {
        let rank = graph.value(v).ty.rank().unwrap_or(0);
        let choice = self.choice(u.node).and_then(|c| c.ins.get(u.slot));
        choice.cloned().unwrap_or_else(|| Layout::row_major(rank))
    }

    /// What becomes of a value.
    pub fn taken(&self, graph: &Graph, v: ValueId) -> Taken {
        let value = graph.value(v);
        let Some(rank) = value.ty.rank() else { return Taken::default() };
        let row_major = Layout::row_major(rank);
        let (producer, slot) = value.producer();
        let left = self.choice(producer).and_then(|c| c.outs.get(slot)).cloned().unwrap_or_else(|| row_major.clone());
        let mut wanted: Vec<(Layout, Vec<Use>)> = Vec::new();
        let output = graph.is_output(v);
        if output {
            wanted.push((row_major.clone(), vec![]));
        }
        for u in graph.uses(v) {
            let layout = self.wanted(graph, u, v);
            match wanted.iter_mut().find(|(l, _)| *l == layout) {
                Some((_, uses)) => uses.push(u),
                None => wanted.push((layout, vec![u])),
            }
        }
        wanted.sort_by_key(|(l, _)| !l.is_row_major());
        // A Transpose whose view nobody reads moves the bytes itself, to what is wanted first.
        let transposes = matches!(graph.node(producer).form, Form::View(View::Transpose(_)));
        let absorbs = transposes && !self.is_constant(v) && wanted.iter().all(|(l, _)| *l != left);
        let produced = match (absorbs, wanted.first()) {
            (false, _) => left.clone(),
            (true, Some((first, _))) => first.clone(),
            (true, None) => row_major,
        };
        let moved_by_producer = absorbs.then(|| move_kind(graph, v, &left, &produced));
        let output_reads_copy = output && !produced.is_row_major();
        let copies = wanted.into_iter().filter(|(l, _)| *l != produced).collect();
        Taken { produced: Some(produced), copies, output_reads_copy, moved_by_producer }
    }

    /// Cost of the copies of a value, its producer's own move not counted.
    pub fn copies_cost(&self, graph: &Graph, v: ValueId, taken: &Taken, target: &dyn Target, hints: &Hints) -> Cost {
        if self.is_constant(v) {
            return Cost::ZERO;
        }
        let Some(produced) = &taken.produced else { return Cost::ZERO };
        taken.copies.iter().map(|(to, _)| move_cost(graph, v, produced, to, target, hints)).sum()
    }
}

/// Cost of one move of a value between two layouts.
pub(super) fn move_cost(
    graph: &Graph,
    v: ValueId,
    from: &Layout,
    to: &Layout,
    target: &dyn Target,
    hints: &Hints,
) -> Cost {
    if from == to {
        return Cost::ZERO;
    }
    target.move_cost(move_kind(graph, v, from, to), hints.bytes(graph, v))
}

/// Whether a change of layout moves bytes, and if not whether ONNX can say it as a Reshape.
pub(super) fn move_kind(graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> MoveKind {
    let shape = graph.value(v).ty.shape().unwrap_or_default();
    let stored = |l: &Layout| storage_shape(shape, l);
    let sayable = stored(from).zip(stored(to)).is_some_and(|(a, b)| reshape_target(&a, &b).is_some());
    if same_bytes(from, to, shape) && sayable { MoveKind::View } else { MoveKind::Permute }
}

/// Whether a node is a Transpose in the file.
pub(super) fn is_transpose(node: &Node) -> bool {
    matches!(node.form, Form::View(View::Transpose(_))) && matches!(node.op, Op::Onnx(_))
}
