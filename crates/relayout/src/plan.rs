//! A plan says what was decided for a graph, in the ids of the program that the graph comes from.
//!
//! Nothing of the graph is removed or replaced. The plan has every node and every value that the embedder knows, by the
//! embedder's ids ([`Ids`]), and lists what has to be added. A plan is plain data, so it can be stored and sent.
//!
//! To carry out a plan:
//!
//! 1. Give each value the storage shape of its layout.
//! 2. Repack [`constants`](GraphPlan::constants), and make [`relayouts`](GraphPlan::relayouts) for their readers.
//! 3. Do with each node what its [`Action`] says, with the attributes in the plan.
//!
//! Shapes in a plan are storage shapes. Layouts are about the logical axes, which no plan changes.

mod error;
mod windows;

use crate::error::Error;
use crate::optimize::report_of_graph;
use crate::options::Options;
use crate::report::Report;
use crate::sizes::check_names;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, InPlace, Node, NodeId, Op, Use, ValueId};
use relayout_ir::layout::storage::FreeOrCopy;
use relayout_ir::layout::{Layout, Refusal};
use relayout_ir::model::Model as IrModel;
use relayout_ir::op::{Said, renumbered};
use relayout_ir::text::AttrJson;
use relayout_passes::pipeline::{Outcome, run};
use relayout_target_api::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

pub use error::PlanError;
pub use windows::WindowPlan;

/// Version of the form of a plan.
pub const PLAN_SCHEMA: u32 = 1;

/// The embedder's ids for the values and nodes of a graph.
#[derive(Clone, Debug)]
pub struct Ids<V, N> {
    values: BTreeMap<ValueId, V>,
    nodes: BTreeMap<NodeId, N>,
}

impl<V, N> Default for Ids<V, N> {
    fn default() -> Ids<V, N> {
        Ids { values: BTreeMap::new(), nodes: BTreeMap::new() }
    }
}

impl<V: Clone + Eq + Hash, N: Clone + Eq + Hash> Ids<V, N> {
    /// No ids.
    pub fn new() -> Ids<V, N> {
        Ids::default()
    }

    /// Calls a value by this id: an input, a constant, or the result of a node. Each has its own. A constant that the embedder does not
    /// have, such as the shape that ONNX gives a Reshape, needs none: the plan leaves it out.
    pub fn value(&mut self, v: ValueId, id: V) {
        self.values.insert(v, id);
    }

    /// Calls a node by this id. Each has its own.
    pub fn node(&mut self, n: NodeId, id: N) {
        self.nodes.insert(n, id);
    }

    /// Whether everything that an embedder can have made has an id of its own, constants aside.
    fn check(&self, graph: &Graph) -> Result<(), PlanError> {
        let no_id = |what: String| Err(PlanError::NoId { what });
        let (mut values, mut nodes) = (FxHashMap::default(), FxHashMap::default());
        for v in graph.values() {
            let called = move || format!("value `{}`", graph.value(v).name);
            match self.values.get(&v) {
                Some(id) => own(&mut values, id, called)?,
                None if is_constant(graph, v) => {}
                None => return no_id(called()),
            }
        }
        for n in graph.nodes() {
            let node = graph.node(n);
            if node.bodies().next().is_some() {
                return Err(PlanError::Bodies { node: node.describe(graph) });
            }
            let called = move || format!("node {}", node.describe(graph));
            match self.nodes.get(&n).filter(|_| matches!(node.op, Op::Onnx(_))) {
                Some(id) => own(&mut nodes, id, called)?,
                None if matches!(node.op, Op::Onnx(_)) => return no_id(called()),
                None => {}
            }
        }
        Ok(())
    }
}

fn is_constant(graph: &Graph, v: ValueId) -> bool {
    matches!(graph.node(graph.value(v).producer().0).op, Op::Constant(_))
}

/// That this id is of one thing only; `called` names it.
fn own<'i, I: Eq + Hash, F: Fn() -> String>(
    known: &mut FxHashMap<&'i I, F>,
    id: &'i I,
    called: F,
) -> Result<(), PlanError> {
    if let Some(first) = known.get(id) {
        return Err(PlanError::EqualIds { first: first(), second: called() });
    }
    known.insert(id, called);
    Ok(())
}

/// What was decided for a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphPlan<V, N> {
    /// Version of this form.
    pub schema: u32,
    /// Name of the target.
    pub target: String,
    /// Whether there is anything to do.
    pub changed: bool,
    /// How each value lies where its producer, or the caller, leaves it. Values of unknown rank are left out.
    pub values: Vec<ValuePlan<V>>,
    /// What becomes of each node, in an order in which they can run.
    pub nodes: Vec<NodePlan<V, N>>,
    /// Copies of values in other layouts, each made once for all who read it.
    pub relayouts: Vec<RelayoutPlan<V, N>>,
    /// Constants that are stored otherwise: moves that are made at compile time.
    pub constants: Vec<ConstantPlan<V, N>>,
    /// The outputs of the graph, in its order.
    pub outputs: Vec<OutputPlan<V>>,
}

/// How a value lies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValuePlan<V> {
    /// The value.
    pub value: V,
    /// Its layout, over its logical axes.
    pub layout: Layout,
    /// The shape with which it is stored.
    pub shape: Vec<Dim>,
}

/// What becomes of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodePlan<V, N> {
    /// The node.
    pub node: N,
    /// What it is from now on.
    pub action: Action,
    /// What it reads; `None` for operands that are left out, for values of unknown rank, and for constants without an id.
    pub operands: Vec<Option<OperandPlan<V>>>,
    /// Attributes that change: axes with their new number, and attributes that a kernel needs.
    pub attributes: BTreeMap<String, AttrJson>,
    /// Attributes to remove.
    pub removed: Vec<String>,
    /// Operands that list axes, or something for each axis, and now have another list.
    pub lists: Vec<ListPlan>,
    /// For a result that lists extents (Shape): which places of the stored shape it lists, in this order.
    pub extents: Option<Vec<usize>>,
    /// For a Slice, Split or Concat that needs no copy: its parts, as windows of the storage that they share.
    #[serde(default)]
    pub windows: Vec<WindowPlan>,
}

/// What a node is from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// The op that it was, on operands that may have other layouts.
    Keep,
    /// A kernel of the target.
    Kernel {
        /// Its name, `domain::name` unless the domain is empty.
        op: String,
    },
    /// Nothing: the result is the operand as it is stored.
    Alias,
    /// The operand's bytes with another shape.
    Reshape {
        /// The shape with which the result is stored.
        shape: Vec<Dim>,
    },
    /// A move of bytes.
    Move {
        /// How the operand's bytes lie, read as the result.
        from: Box<Layout>,
        /// How the result lies.
        to: Box<Layout>,
    },
}

/// An operand of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OperandPlan<V> {
    /// The value.
    pub value: V,
    /// The layout in which it is read: its own, or that of one of its copies.
    pub layout: Layout,
    /// The shape that this reader needs, if it is not the shape with which the value is stored. Ops that align operands at their
    /// end find the axes by it.
    pub shape: Option<Vec<Dim>>,
}

/// Who reads a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct User<N> {
    /// The node.
    pub node: N,
    /// Its operand.
    pub slot: usize,
}

/// A copy of a value in another layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RelayoutPlan<V, N> {
    /// The value.
    pub value: V,
    /// How it lies.
    pub from: Layout,
    /// How the copy lies.
    pub to: Layout,
    /// The shape with which the copy is stored.
    pub shape: Vec<Dim>,
    /// Whether the value is known at compile time, such as a view of a constant. The copy can then be made at compile time.
    pub constant: bool,
    /// Readers of the copy.
    pub users: Vec<User<N>>,
    /// Places among the outputs of the graph that are the copy.
    pub outputs: Vec<usize>,
}

/// A constant in another layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConstantPlan<V, N> {
    /// The constant.
    pub value: V,
    /// Its extents; it is row-major.
    pub extents: Vec<i64>,
    /// How it is stored from now on; padding slots are zeros.
    pub to: Layout,
    /// The shape with which it is stored then.
    pub shape: Vec<Dim>,
    /// Readers that read it in this layout. Others read it as it is.
    pub users: Vec<User<N>>,
    /// Places among the outputs of the graph that are it.
    pub outputs: Vec<usize>,
}

/// An operand that lists something for the axes of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ListPlan {
    /// It is this list now.
    Values {
        /// The operand; it may be one that the node did not have.
        slot: usize,
        /// The list.
        values: Vec<i64>,
    },
    /// The list is computed at run time. Take these of its entries, in this order.
    Picked {
        /// The operand.
        slot: usize,
        /// The entries.
        picks: Vec<usize>,
    },
}

/// An output of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputPlan<V> {
    /// The value.
    pub value: V,
    /// The layout in which the caller gets it; `None` where its rank is not known.
    pub layout: Option<Layout>,
}

/// Decides the layouts of a graph and says what to do, in the ids of the embedder. The report says why.
///
/// # Errors
/// [`Error::Plan`] for graphs and targets for which no plan can be made, [`Error::Io`], [`Error::UnknownDim`], [`Error::Pass`].
pub fn plan_graph<V: Clone + Eq + Hash, N: Clone + Eq + Hash>(
    graph: &Graph,
    ids: &Ids<V, N>,
    target: &dyn Target,
    options: &Options,
) -> Result<(GraphPlan<V, N>, Report), Error> {
    ids.check(graph)?;
    check_names(graph, options.dims.keys())?;
    if !target.capabilities().plans {
        return Err(PlanError::Target { target: target.name().to_owned() }.into());
    }
    let mut pipeline = options.pipeline(target)?;
    pipeline.ends = options.wishes().resolve(graph, target, &[])?;
    pipeline.layouts_only = true;
    let mut model = IrModel { graph: graph.clone(), ..IrModel::default() };
    let mut outcome = run(&mut model, target, &pipeline)?;
    let unnamed = graph.values().filter(|v| !ids.values.contains_key(v)).collect();
    let planner = Planner { before: graph, graph: &model.graph, ids, unnamed };
    let plan = planner.plan(target)?;
    planner.set_apart(&mut outcome);
    let mut report = report_of_graph(target, outcome, options)?;
    report.changed = plan.changed;
    Ok((plan, report))
}

/// What an operand of the decided graph is of the embedder's graph.
struct Source {
    value: ValueId,
    layout: Layout,
    shape: Option<Vec<Dim>>,
}

struct Planner<'a, V, N> {
    before: &'a Graph,
    /// The same graph after the decision: nodes and values have kept their ids.
    graph: &'a Graph,
    ids: &'a Ids<V, N>,
    /// Constants that the embedder does not have.
    unnamed: FxHashSet<ValueId>,
}

impl<V: Clone + Eq + Hash, N: Clone + Eq + Hash> Planner<'_, V, N> {
    fn plan(&self, target: &dyn Target) -> Result<GraphPlan<V, N>, PlanError> {
        let graph = self.graph;
        let mut plan = GraphPlan {
            schema: PLAN_SCHEMA,
            target: target.name().to_owned(),
            changed: false,
            values: Vec::new(),
            nodes: Vec::new(),
            relayouts: Vec::new(),
            constants: Vec::new(),
            outputs: Vec::new(),
        };
        for (&v, id) in &self.ids.values {
            let layout = &graph.value(v).layout;
            let Some(shape) = graph.storage_shape(v, layout) else { continue };
            plan.values.push(ValuePlan { value: id.clone(), layout: layout.clone(), shape });
        }
        for n in graph.order().unwrap_or_default() {
            match (&graph.node(n).op, self.ids.nodes.get(&n)) {
                (Op::Onnx(_), Some(id)) => plan.nodes.push(self.node(n, id)?),
                (Op::Relayout, _) => self.relayout(n, &mut plan)?,
                _ => {}
            }
        }
        for &v in graph.outputs() {
            let source = self.source(v)?;
            let layout = graph.value(v).ty.rank().map(|_| source.layout);
            plan.outputs.push(OutputPlan { value: self.id(source.value)?, layout });
        }
        plan.changed = !plan.relayouts.is_empty()
            || !plan.constants.is_empty()
            || plan.values.iter().any(|v| !v.layout.is_row_major())
            || plan.nodes.iter().any(|n| matches!(n.action, Action::Kernel { .. }));
        Ok(plan)
    }

    fn cannot_express(&self, n: NodeId, why: &str) -> PlanError {
        PlanError::CannotExpress { node: self.graph.node(n).describe(self.graph), why: why.to_owned() }
    }

    fn id(&self, v: ValueId) -> Result<V, PlanError> {
        let made = || PlanError::NoId { what: format!("value `{}`", self.graph.value(v).name) };
        self.ids.values.get(&v).cloned().ok_or_else(made)
    }

    /// Follows what was put between a value and its readers.
    fn source(&self, v: ValueId) -> Result<Source, PlanError> {
        let graph = self.graph;
        let value = graph.value(v);
        if self.ids.values.contains_key(&v) {
            return Ok(Source { value: v, layout: value.layout.clone(), shape: None });
        }
        let (n, _) = value.producer();
        let node = graph.node(n);
        let operand = node.inputs.first().copied().flatten();
        let inner = operand.ok_or_else(|| self.cannot_express(n, "it was put in without an operand"))?;
        let inner = self.source(inner)?;
        match (&node.op, &node.form) {
            (Op::Relayout, _) => Ok(Source { layout: value.layout.clone(), ..inner }),
            (Op::Onnx(_), Form::View(_)) => {
                let shape = graph.storage_shape(v, &value.layout);
                Ok(Source {
                    shape: Some(shape.ok_or_else(|| self.cannot_express(n, "it has no storage shape"))?),
                    ..inner
                })
            }
            _ => Err(self.cannot_express(n, "it was put in, and is neither a view nor a move")),
        }
    }

    fn node(&self, n: NodeId, id: &N) -> Result<NodePlan<V, N>, PlanError> {
        let node = self.graph.node(n);
        let mut operands = Vec::with_capacity(node.inputs.len());
        for &v in &node.inputs {
            let ranked = v.filter(|&v| self.graph.value(v).ty.rank().is_some() && !self.unnamed.contains(&v));
            operands.push(match ranked {
                Some(v) => {
                    let Source { value, layout, shape } = self.source(v)?;
                    Some(OperandPlan { value: self.id(value)?, layout, shape })
                }
                None => None,
            });
        }
        let mut plan = NodePlan {
            node: id.clone(),
            action: self.action(n, node)?,
            operands,
            attributes: BTreeMap::new(),
            removed: Vec::new(),
            lists: Vec::new(),
            extents: None,
            windows: windows::windows(self.graph, node),
        };
        self.attributes(n, node, &mut plan)?;
        Ok(plan)
    }

    fn action(&self, n: NodeId, node: &Node) -> Result<Action, PlanError> {
        let view = match (&node.form, &node.op) {
            (Form::Kernel(_), Op::Onnx(op)) => return Ok(Action::Kernel { op: op.to_string() }),
            (Form::View(view), _) => view,
            _ => return Ok(Action::Keep),
        };
        let ends = node.inputs.first().copied().flatten().zip(node.outputs.first().copied().flatten());
        let Some((x, y)) = ends else { return Ok(Action::Keep) };
        let graph = self.graph;
        let (from, to) = (graph.value(x), graph.value(y));
        if from.ty.shape().is_none() || to.ty.shape().is_none() {
            return Ok(Action::Keep);
        }
        match graph.in_place(view, (x, &from.layout), (y, &to.layout)) {
            FreeOrCopy::Free(InPlace::Alias) => Ok(Action::Alias),
            FreeOrCopy::Free(InPlace::Reshape { to: shape, .. }) => Ok(Action::Reshape { shape }),
            FreeOrCopy::Copy(Refusal::Moves { from, to }) => {
                Ok(Action::Move { from: Box::new(from), to: Box::new(to) })
            }
            FreeOrCopy::Copy(Refusal::NoStorageShape { .. }) => {
                Err(self.cannot_express(n, "its view has no storage shape"))
            }
            FreeOrCopy::Copy(_) if from.layout.is_row_major() && to.layout.is_row_major() => Ok(Action::Keep),
            FreeOrCopy::Copy(why) => Err(self.cannot_express(n, &why.to_string())),
        }
    }

    /// What the node says of itself now and did not say before.
    fn attributes(&self, n: NodeId, node: &Node, plan: &mut NodePlan<V, N>) -> Result<(), PlanError> {
        let before = &self.before.node(n).attrs;
        let plain = |v: &ValueId| self.graph.value(*v).layout.is_row_major();
        if matches!(node.form, Form::Kernel(_)) {
            for (name, attr) in &node.attrs {
                let said = AttrJson::of(attr)
                    .ok_or_else(|| self.cannot_express(n, "an attribute of its kernel is a graph"))?;
                if before.get(name).and_then(AttrJson::of).as_ref() != Some(&said) {
                    plan.attributes.insert(name.clone(), said);
                }
            }
            plan.removed = before.keys().filter(|name| !node.attrs.contains_key(*name)).cloned().collect();
        }
        let moved = !node.inputs.iter().chain(&node.outputs).flatten().all(plain);
        if !moved || !matches!(node.form, Form::Axes(_)) {
            return Ok(());
        }
        for said in renumbered(self.graph, node).map_err(|why| self.cannot_express(n, why))? {
            match said {
                Said::Int(name, value) if before.get(name).and_then(Attr::as_int) != Some(value) => {
                    plan.attributes.insert(name.to_owned(), AttrJson::Int(value));
                }
                Said::Ints(name, values) if before.get(name).and_then(Attr::as_ints) != Some(&values) => {
                    plan.attributes.insert(name.to_owned(), AttrJson::Ints(values));
                }
                Said::Int(..) | Said::Ints(..) => {}
                Said::Floats(name, floats) => {
                    plan.attributes.extend(AttrJson::of(&Attr::Floats(floats)).map(|said| (name.to_owned(), said)));
                }
                Said::Text(name, text) => drop(plan.attributes.insert(name.to_owned(), AttrJson::String(text))),
                Said::Operand { slot, values, .. } => plan.lists.push(ListPlan::Values { slot, values }),
                Said::Picked { slot, picks } => plan.lists.push(ListPlan::Picked { slot, picks }),
                Said::Woven { .. } => {
                    return Err(
                        self.cannot_express(n, "a list that is computed at run time has entries for digits of an axis")
                    );
                }
                Said::Extents(picks) => {
                    plan.removed =
                        ["start", "end"].into_iter().filter(|a| before.contains_key(*a)).map(Into::into).collect();
                    plan.extents = Some(picks);
                }
            }
        }
        Ok(())
    }

    fn relayout(&self, n: NodeId, plan: &mut GraphPlan<V, N>) -> Result<(), PlanError> {
        let graph = self.graph;
        let node = graph.node(n);
        let ends = node.inputs.first().copied().flatten().zip(node.outputs.first().copied().flatten());
        let Some((x, y)) = ends else { return Err(self.cannot_express(n, "it has no operand or no result")) };
        let to = graph.value(y).layout.clone();
        let shape =
            graph.storage_shape(y, &to).ok_or_else(|| self.cannot_express(n, "its result has no storage shape"))?;
        let value = self.id(x)?;
        let users = self.users(y)?;
        let outputs = graph.output_places(y).to_vec();
        let extents = graph.value(x).ty.const_shape().filter(|_| graph.constant(x).is_some());
        match extents {
            Some(extents) if graph.value(x).layout.is_row_major() => {
                plan.constants.push(ConstantPlan { value, extents, to, shape, users, outputs });
            }
            _ => {
                let (from, constant) = (graph.value(x).layout.clone(), self.is_constant_or_view(x));
                plan.relayouts.push(RelayoutPlan { value, from, to, shape, constant, users, outputs });
            }
        }
        Ok(())
    }

    /// Moves that are made at compile time are no moves that are left.
    fn set_apart(&self, outcome: &mut Outcome) {
        let graph = self.graph;
        let moves = graph.nodes().map(|n| graph.node(n)).filter(|node| matches!(node.op, Op::Relayout));
        let constants = moves.flat_map(|node| &node.inputs).flatten().filter(|&&v| self.is_constant_or_view(v));
        let names: BTreeSet<&str> = constants.map(|&v| graph.value(v).name.as_str()).collect();
        for record in &mut outcome.graphs {
            let all = record.moves.len();
            record.moves.retain(|m| !names.contains(m.value.as_str()));
            record.folded += all - record.moves.len();
        }
    }

    /// A constant, or views of one.
    fn is_constant_or_view(&self, v: ValueId) -> bool {
        let node = self.graph.node(self.graph.value(v).producer().0);
        match (&node.op, &node.form) {
            (Op::Constant(_), _) => true,
            (Op::Onnx(_), Form::View(_)) => {
                node.inputs.first().copied().flatten().is_some_and(|x| self.is_constant_or_view(x))
            }
            _ => false,
        }
    }

    /// Nodes of the embedder that read a value, themselves or through what was put between.
    fn users(&self, v: ValueId) -> Result<Vec<User<N>>, PlanError> {
        let mut users = Vec::new();
        for Use { node, slot } in self.graph.uses(v) {
            match self.ids.nodes.get(&node) {
                Some(id) => users.push(User { node: id.clone(), slot }),
                None => {
                    for &y in self.graph.node(node).outputs.iter().flatten() {
                        users.extend(self.users(y)?);
                    }
                }
            }
        }
        Ok(users)
    }
}
