//! Passes: steps of the pipeline that work on a graph, and what they declare about themselves.
//!
//! The pipeline has fixed slots. The engine's own passes run there in a fixed order. A target's passes go where their
//! declarations put them ([`Declared::after`], [`Declared::before`]); if that leaves a choice, in the order in which the target
//! lists them.
//!
//! Invariants: `verify` accepts the graph before and after a pass. A pass edits by patches or fragments, each applied whole.

use crate::hints::Hints;
use crate::rounding::before_rounding;
use crate::rule::{Numerics, Rule};
use crate::{Cost, Target};
use relayout_ir::graph::{DuplicateName, Graph, NodeId};
use relayout_solve::ProblemError;
use std::collections::BTreeMap;

/// A part of the pipeline. Slots run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Types are inferred, nodes are bound to their signatures, and known results are evaluated.
    Simplify,
    /// Changes that the target needs before the decision, and rules that only remove nodes.
    Prepare,
    /// Pieces of several nodes that have another form.
    Forms,
    /// The decision.
    Decide,
    /// The decision is written: layouts, moves, and the forms that were chosen.
    Write,
    /// The moves that are left, and moves of constants, are simplified.
    Finish,
    /// What nobody reads any more is removed.
    Clean,
}

/// What holds of a graph between passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// Types are inferred.
    Types,
    /// Every node is bound to its signature.
    Bound,
    /// There is a decision.
    Decided,
    /// Values have the layouts that were decided, and moves stand where readers want others.
    Layouts,
    /// Every form that was chosen is written.
    Written,
    /// Constants are stored as they are read: no move or view of one is left.
    Packed,
}

/// What a pass says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Name: a verb phrase, as `--print-after` takes it.
    pub name: &'static str,
    /// Why it runs at this place.
    pub reason: &'static str,
    /// Its slot.
    pub slot: Slot,
    /// What has to hold before it.
    pub needs: &'static [Fact],
    /// What holds after it.
    pub gives: &'static [Fact],
    /// What no longer holds after it.
    pub breaks: &'static [Fact],
    /// Passes of its slot that it comes after, by name.
    pub after: &'static [&'static str],
    /// Passes of its slot that it comes before, by name.
    pub before: &'static [&'static str],
    /// The rules that it carries out.
    pub rules: &'static [&'static Rule],
    /// Whether it keeps every node and every constant in its place, and adds only views and moves between them.
    pub keeps_nodes: bool,
}

impl Declared {
    /// A pass of a slot that needs bound nodes, and carries out no rules.
    #[must_use]
    pub const fn new(name: &'static str, slot: Slot, reason: &'static str) -> Declared {
        let needs: &[Fact] = &[Fact::Types, Fact::Bound];
        let (gives, breaks, after, before, rules): (&[Fact], &[Fact], &[_], &[_], &[_]) = (&[], &[], &[], &[], &[]);
        Declared { name, reason, slot, needs, gives, breaks, after, before, rules, keeps_nodes: false }
    }

    /// Needs these facts, and no others.
    #[must_use]
    pub const fn needs(self, needs: &'static [Fact]) -> Declared {
        Declared { needs, ..self }
    }

    /// Gives these facts.
    #[must_use]
    pub const fn gives(self, gives: &'static [Fact]) -> Declared {
        Declared { gives, ..self }
    }

    /// Comes after these passes of its slot.
    #[must_use]
    pub const fn after(self, after: &'static [&'static str]) -> Declared {
        Declared { after, ..self }
    }

    /// Comes before these passes of its slot.
    #[must_use]
    pub const fn before(self, before: &'static [&'static str]) -> Declared {
        Declared { before, ..self }
    }

    /// Carries out these rules.
    #[must_use]
    pub const fn rules(self, rules: &'static [&'static Rule]) -> Declared {
        Declared { rules, ..self }
    }

    /// Leaves every node and every constant where it is.
    #[must_use]
    pub const fn keeps_nodes(self) -> Declared {
        Declared { keeps_nodes: true, ..self }
    }
}

/// What a pass does.
pub type RunPass = dyn Fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError> + Send + Sync;

/// What a pass works on.
pub enum Run {
    /// The main graph; the pass visits bodies itself.
    Model(Box<RunPass>),
    /// Each graph by itself.
    EachGraph(Box<RunPass>),
}

/// A pass of a target.
pub struct Pass {
    /// What it says about itself.
    pub is: Declared,
    /// What it does.
    pub run: Run,
}

impl Pass {
    /// A pass that works on each graph by itself.
    pub fn on_each_graph<F>(is: Declared, run: F) -> Pass
    where
        F: Fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError> + Send + Sync + 'static,
    {
        Pass { is, run: Run::EachGraph(Box::new(run)) }
    }

    /// A pass that works on the main graph, and visits bodies itself.
    pub fn on_model<F>(is: Declared, run: F) -> Pass
    where
        F: Fn(&mut Graph, &mut Context<'_>) -> Result<(), PassError> + Send + Sync + 'static,
    {
        Pass { is, run: Run::Model(Box::new(run)) }
    }
}

/// What does not change while passes run.
pub struct Settings<'a> {
    /// The target.
    pub target: &'a dyn Target,
    /// Size hints.
    pub hints: Hints,
    /// What rules may do to results.
    pub numerics: Numerics,
    /// By how many percent the cost of a region must fall at least for it to be kept; 0 is any gain.
    pub least_gain: u64,
    /// The version of the standard domain that the model imports; 0 if it imports none.
    pub opset: i64,
    /// Whether the model quantizes somewhere. If so, what leaves a body is assumed to reach a quantization.
    pub quantizes: bool,
}

/// What passes report.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PassReport {
    /// Problems of the model that do not stop the work.
    pub notes: Vec<String>,
    /// Per graph: what rules took away or wrote in another form, by the rule's name.
    pub rules: Vec<BTreeMap<String, usize>>,
    /// Nodes whose operands were written in another way, for the sake of those who load the result. That alone is no gain.
    pub spelled: usize,
}

/// What a pass works with, beside the graph.
pub struct Context<'a> {
    /// What does not change.
    pub settings: &'a Settings<'a>,
    /// The graph that a pass over each graph is at: 0 for the main graph, bodies in the order of [`each_graph`].
    pub scope: usize,
    /// Per graph: how often it is assumed to run in each run of the model.
    pub weights: &'a [u64],
    /// What is reported.
    pub report: &'a mut PassReport,
    /// Decides about copies of the graph.
    pub trials: &'a dyn Trials,
}

impl Context<'_> {
    /// The target.
    pub fn target(&self) -> &dyn Target {
        self.settings.target
    }

    /// Notes what a rule took away or wrote in another form in the graph that the pass is at.
    pub fn count(&mut self, rule: &Rule, count: usize) {
        self.count_in(self.scope, rule, count);
    }

    /// Notes what a rule took away or wrote in another form in another graph.
    pub fn count_in(&mut self, scope: usize, rule: &Rule, count: usize) {
        let rules = &mut self.report.rules;
        if rules.len() <= scope {
            rules.resize_with(scope + 1, BTreeMap::new);
        }
        *rules[scope].entry(rule.name.to_owned()).or_default() += count;
    }

    /// The nodes of the current graph whose sums may be taken in another order, in topological order. There are none if every bit
    /// has to stay, and none that come before a quantization.
    pub fn reassociable(&self, graph: &Graph) -> Vec<NodeId> {
        reassociable(graph, self.settings.numerics, self.scope > 0 && self.settings.quantizes)
    }

    /// How often a graph is assumed to run in each run of the model.
    pub fn weight(&self, scope: usize) -> u64 {
        self.weights.get(scope).copied().unwrap_or(1)
    }
}

/// As [`Context::reassociable`]; `inside` says that the graph is a body of a model that quantizes: what leaves the body may reach a
/// quantization outside of it.
pub fn reassociable(graph: &Graph, numerics: Numerics, inside: bool) -> Vec<NodeId> {
    if numerics < Numerics::Reassociate || inside {
        return Vec::new();
    }
    let before = before_rounding(graph);
    let mut order = graph.order().unwrap_or_default();
    order.retain(|n| !before.contains(n));
    order
}

/// Makes trial decisions about copies of the graph that a pass works on, to find out what a change would cost.
pub trait Trials {
    /// Decides about a main graph with its bodies.
    ///
    /// # Errors
    /// [`PassError::Decision`] for graphs beyond the solver's number range.
    fn decide(&self, settings: &Settings<'_>, graph: &Graph) -> Result<Trial, PassError>;
}

/// The result of a trial decision.
#[derive(Debug, Default)]
pub struct Trial {
    /// Everything that it prices, for each run of the model.
    pub cost: Cost,
}

/// A pass did not do its work. All these errors but [`PassError::Stopped`] are faults of this program or of a target, not of the
/// model. Nothing is written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// A name was taken.
    #[error("a pass made a name twice (please report this): {0}")]
    Name(#[from] DuplicateName),
    /// The decision can't be posed.
    #[error("pass assign: {0}")]
    Decision(#[from] ProblemError),
    /// A pass left a graph that does not verify.
    #[error("pass {pass} left an invalid graph (please report this): {first}")]
    Invalid {
        /// The pass.
        pass: &'static str,
        /// The first violation.
        first: String,
        /// How many there are.
        count: usize,
        /// The places in the file of the nodes of the main graph that they are about, as far as they are known.
        ranks: Vec<u32>,
    },
    /// An equation of a target is none.
    #[error("target {target}: {why}")]
    Equation {
        /// The target.
        target: String,
        /// What is wrong.
        why: String,
    },
    /// A pass needs what no pass before it gives, or passes wait for each other.
    #[error("the passes of target {target} can't be put in order: {why}")]
    Order {
        /// The target.
        target: String,
        /// What is in the way.
        why: String,
    },
    /// The observer of the run stopped it.
    #[error("stopped by the caller before pass {pass}")]
    Stopped {
        /// The pass that did not run.
        pass: &'static str,
    },
}

impl PassError {
    /// An error of a pass that can't write what it has to.
    #[must_use]
    pub fn invalid(pass: &'static str, first: String) -> PassError {
        PassError::Invalid { pass, first, count: 1, ranks: Vec::new() }
    }

    /// The same error, of a body of the node at this place: what is left as it was is a node of the main graph.
    #[must_use]
    pub fn in_body_of(self, rank: u32) -> PassError {
        match self {
            PassError::Invalid { pass, first, count, .. } => {
                PassError::Invalid { pass, first, count, ranks: vec![rank] }
            }
            other => other,
        }
    }
}

/// What [`each_graph`] calls.
pub type Visit<'v> = dyn FnMut(&mut Graph, &str) -> Result<(), PassError> + 'v;

/// Visits the main graph and then its bodies, always in the same order, with the place of each.
///
/// # Errors
/// The first error of a visit.
pub fn each_graph(graph: &mut Graph, path: &str, visit: &mut Visit<'_>) -> Result<(), PassError> {
    visit(graph, path)?;
    let holders: Vec<NodeId> = graph.nodes().filter(|&n| graph.node(n).bodies().next().is_some()).collect();
    for n in holders {
        let node = graph.node(n);
        let rank = node.rank;
        let paths: Vec<String> = node.attrs.keys().map(|name| node.body_path(graph, path, name)).collect();
        for ((_, attr), path) in graph.attrs_mut(n).iter_mut().zip(paths) {
            for body in attr.bodies_mut() {
                each_graph(body, &path, visit).map_err(|e| e.in_body_of(rank))?;
            }
        }
    }
    Ok(())
}
