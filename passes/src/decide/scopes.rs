//! Every graph of a model at once, and the borders between them.
//!
//! A scope is the main graph or a body. A value that crosses a border (carried by a loop, left by a branch, captured) has one
//! layout on both sides: the border decides it, and each side pays to meet it. An input or output of the main graph of which a
//! contract speaks crosses a border to the caller, who pays nothing.

use crate::decide::Ends;
use crate::forms::raise::pieces;
use relayout_ir::form::{At, Form};
use relayout_ir::graph::{Graph, NodeId, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::value_at;
use relayout_target_api::{Numerics, PassError, Raised, Target};
use rustc_hash::{FxHashMap, FxHashSet};

/// How often a loop body is taken to run where that is not known.
const UNKNOWN_TRIPS: u64 = 8;
/// Most that a known trip count weighs.
const MOST_TRIPS: u64 = 1 << 20;

/// One graph.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// How often it runs for each run of the model.
    pub weight: u64,
}

/// One end of a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Crossing {
    /// The border.
    pub border: usize,
    /// The value has one more axis here, outermost.
    pub stacked: bool,
}

impl Crossing {
    /// The layout here of a value that crosses in this layout.
    pub fn here(self, crossing: &Layout) -> Option<Layout> {
        if !self.stacked {
            return Some(crossing.clone());
        }
        let inner = crossing.as_permutation()?;
        let order: Vec<usize> = std::iter::once(0).chain(inner.iter().map(|a| a + 1)).collect();
        Layout::permutation(&order).ok()
    }

    /// The layout in which a value crosses that has this one here; `None` if the extra axis is not outermost.
    pub fn across(self, here: &Layout) -> Option<Layout> {
        if !self.stacked {
            return Some(here.clone());
        }
        let order = here.as_permutation()?;
        let (first, rest) = order.split_first()?;
        let inner: Vec<usize> = rest.iter().map(|a| a.wrapping_sub(1)).collect();
        if *first == 0 { Layout::permutation(&inner).ok() } else { None }
    }
}

/// Where a body is: the scope of the node that holds it, the node, the attribute, the place in the attribute.
pub type BodyKey = (usize, NodeId, String, usize);

/// Every graph of a model and every border.
#[derive(Debug, Default)]
pub struct Scopes<'g> {
    /// The main graph first; a body after the graph that holds it.
    pub list: Vec<Scope<'g>>,
    /// Per border: scope, value and crossing of each place.
    pub borders: Vec<Vec<(usize, ValueId, Crossing)>>,
    /// Which scope a body is.
    pub bodies: FxHashMap<BodyKey, usize>,
    /// Per border: the only layout in which its value may cross, if a contract has it.
    pub fixed: FxHashMap<usize, Layout>,
    /// Borders at which the caller is the other side: any order of whole axes may cross there.
    pub free: FxHashSet<usize>,
    /// Per graph: pieces for which a raised op may stand.
    pieces: Vec<Vec<Raised>>,
    produced: FxHashMap<(usize, ValueId), Crossing>,
    wanted: FxHashMap<(usize, Use), Crossing>,
    outputs: FxHashMap<(usize, usize), Crossing>,
    attached: FxHashMap<(usize, ValueId), Vec<usize>>,
}

impl<'g> Scopes<'g> {
    /// Collects the scopes of a model, whose forms are bound.
    pub fn of(root: &'g Graph) -> Scopes<'g> {
        let mut scopes = Scopes::default();
        scopes.enter(root, 1);
        scopes
    }

    /// The same with the ends of the main graph that a contract speaks of: each is a border with the caller.
    pub fn with_ends(root: &'g Graph, ends: &Ends) -> Scopes<'g> {
        let mut scopes = Scopes::of(root);
        for end in ends.of(root) {
            let id = scopes.borders.len();
            let crossing = Crossing { border: id, stacked: false };
            if end.output {
                let places = root.output_places(end.value);
                scopes.outputs.extend(places.iter().map(|&k| ((0, k), crossing)));
            } else {
                scopes.produced.insert((0, end.value), crossing);
            }
            match end.layout {
                Some(layout) => drop(scopes.fixed.insert(id, layout)),
                None => drop(scopes.free.insert(id)),
            }
            scopes.attached.entry((0, end.value)).or_default().push(id);
            scopes.borders.push(vec![(0, end.value, crossing)]);
        }
        scopes
    }

    /// The same with the pieces that a target has raised ops for.
    ///
    /// # Errors
    /// [`PassError::Equation`] if an equation of the target is none.
    pub fn with_pieces(mut self, target: &dyn Target, numerics: Numerics) -> Result<Self, PassError> {
        let quantizes = self.list.iter().any(|scope| quantizes(scope.graph));
        let graphs = self.list.iter().enumerate();
        let found = graphs.map(|(s, scope)| pieces(scope.graph, target, numerics, s > 0 && quantizes));
        self.pieces = found.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The pieces of a graph, if they were looked for.
    pub(crate) fn pieces(&self, s: usize) -> &[Raised] {
        self.pieces.get(s).map_or(&[], Vec::as_slice)
    }

    /// Whether a contract says how a value comes from the caller or goes to it.
    pub fn is_fixed(&self, s: usize, v: ValueId) -> bool {
        self.attached(s, v).iter().any(|b| self.fixed.contains_key(b))
    }

    fn enter(&mut self, graph: &'g Graph, weight: u64) -> usize {
        let s = self.list.len();
        self.list.push(Scope { graph, weight });
        for n in graph.nodes() {
            let node = graph.node(n);
            let mut inside: FxHashMap<&str, usize> = FxHashMap::default();
            for (attr, value) in &node.attrs {
                for (i, body) in value.bodies().iter().enumerate() {
                    let child = self.enter(body, weight.saturating_mul(trips(graph, n)));
                    self.bodies.insert((s, n, attr.clone(), i), child);
                    inside.insert(attr, child);
                }
            }
            if let Form::Borders(borders) = &node.form {
                for border in borders {
                    self.add_border(s, n, border, &inside);
                }
            }
        }
        s
    }

    fn add_border(&mut self, s: usize, n: NodeId, border: &relayout_ir::form::Border, inside: &FxHashMap<&str, usize>) {
        let graph = self.list[s].graph;
        let node = graph.node(n);
        let id = self.borders.len();
        let mut places = Vec::new();
        for place in &border.places {
            let Some((body, _, v)) = value_at(graph, node, &place.at) else { continue };
            let scope = body.and_then(|b| inside.get(b)).copied().unwrap_or(s);
            let crossing = Crossing { border: id, stacked: place.stacked };
            match &place.at {
                At::In(slot) => drop(self.wanted.insert((s, Use { node: n, slot: *slot }), crossing)),
                At::Capture(k) => drop(self.wanted.insert((s, Use { node: n, slot: node.inputs.len() + k }), crossing)),
                At::Out(_) | At::BodyInput(..) | At::BodyOuter(..) => drop(self.produced.insert((scope, v), crossing)),
                At::BodyOutput(_, k) => drop(self.outputs.insert((scope, *k), crossing)),
            }
            self.attached.entry((scope, v)).or_default().push(id);
            places.push((scope, v, crossing));
        }
        self.borders.push(places);
    }

    /// The graph of a scope.
    pub fn graph(&self, s: usize) -> &'g Graph {
        self.list[s].graph
    }

    /// The border that decides how a value arrives: a result of a node with bodies, a body's input or outer value.
    pub fn produced(&self, s: usize, v: ValueId) -> Option<Crossing> {
        self.produced.get(&(s, v)).copied()
    }

    /// The border that decides how a node with bodies reads an operand or captured value.
    pub fn wanted(&self, s: usize, u: Use) -> Option<Crossing> {
        self.wanted.get(&(s, u)).copied()
    }

    /// The border that decides how the k-th output of a body is left.
    pub fn output(&self, s: usize, k: usize) -> Option<Crossing> {
        self.outputs.get(&(s, k)).copied()
    }

    /// Borders that a value takes part in.
    pub fn attached(&self, s: usize, v: ValueId) -> &[usize] {
        self.attached.get(&(s, v)).map_or(&[], Vec::as_slice)
    }
}

/// Whether something in a graph quantizes.
pub(crate) fn quantizes(graph: &Graph) -> bool {
    graph.nodes().any(|n| graph.node(n).onnx().is_some_and(|op| op.contains("Quantize")))
}

/// How often the bodies of a node run.
fn trips(graph: &Graph, n: NodeId) -> u64 {
    let node = graph.node(n);
    match node.onnx() {
        Some("Loop") => {
            let count = node.operand(0).and_then(|v| graph.value(v).contents.as_ref()?.first()?.as_const());
            count.and_then(|c| u64::try_from(c).ok()).unwrap_or(UNKNOWN_TRIPS).min(MOST_TRIPS)
        }
        Some("Scan" | "SequenceMap") => UNKNOWN_TRIPS,
        _ => 1,
    }
}
