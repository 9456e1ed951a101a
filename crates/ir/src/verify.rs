//! Is this graph one that passes and the exporter may rely on?
//!
//! [`verify`] lists every problem, each with the node, the ONNX name of the value and what would mend it. Where it finds none, one
//! may index, unwrap and rely on all of what follows.
//!
//! **Structure**
//! - the nodes have a topological order ([`Invariant::Acyclic`]);
//! - operands, results and edges say the same, and every value that is read, captured or a graph output has a producer
//!   ([`Invariant::Edges`], [`Invariant::Outputs`]);
//! - names of values are unique within a graph, bodies apart ([`Invariant::Names`]);
//! - graph inputs are the results of input nodes; outer values occur in bodies only, and each is captured by the node that holds
//!   the body ([`Invariant::Scope`]);
//! - a constant has the element type of its value and, where the value's layout is an order of whole axes, its extents in
//!   that order; a repack permutes as many elements as the constant has ([`Invariant::Constant`]).
//!
//! **Layouts**
//! - a layout has the rank of its shape and fits it: blocks may pad, slot maps cover their axis exactly and no symbolic one
//!   ([`Invariant::Layout`]);
//! - graph inputs, graph outputs, captured values, outer values, and inputs and outputs of bodies are row-major, unless the
//!   contract says otherwise for an input or output of the main graph ([`Invariant::Pinned`]);
//! - a relayout has one operand and one result, of one type ([`Invariant::Relayout`]);
//! - operands and results of a node with letters on its axes are stored in one order of the letters, which the op allows;
//!   a letter that is split is split alike everywhere, and neither found by position, windowed nor read as a whole
//!   ([`Invariant::Axes`]);
//! - operands and results of such a node have one extent where they have one letter, and a convolution's data have the channels that its
//!   weights read in all groups ([`Invariant::Extents`]);
//! - the result of a view has the layout that the operand's bytes have under it; a Transpose may have any, and then moves the
//!   bytes ([`Invariant::View`]);
//! - an opaque node, and a slot that is read as it is, has row-major operands and results ([`Invariant::Opaque`]);
//! - a kernel of the target's dialect has operands and results in the layouts it was chosen with ([`Invariant::Kernel`]).
//!
//! Axes of extent 1 may stand anywhere, and values of unknown rank have no layout to be checked.
//!
//! **Not checked**: element types and shapes against what the op would infer; that a form is the one its signature gives;
//! known contents; what pad slots hold and whether the op may read them; that outer values have the type of what they name;
//! bytes; that names are unique across bodies; a capture that no body reads is allowed.

mod forms;
mod structure;

use crate::graph::{Graph, Node, ValueId};
use crate::layout::Layout;
use std::collections::BTreeMap;
use std::fmt;

/// What a problem breaks; the [module](self) says each in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// Nodes have a topological order.
    Acyclic,
    /// Operands, results and edges say the same.
    Edges,
    /// Names are unique.
    Names,
    /// Graph outputs have producers.
    Outputs,
    /// Inputs and outer values are where they may be.
    Scope,
    /// A constant fits its value.
    Constant,
    /// A layout fits its shape.
    Layout,
    /// What others see is row-major.
    Pinned,
    /// A relayout keeps the type.
    Relayout,
    /// One order of letters.
    Axes,
    /// One extent of a letter.
    Extents,
    /// A view moves no bytes.
    View,
    /// An opaque node is row-major.
    Opaque,
    /// A kernel runs in its layouts.
    Kernel,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// What is broken.
    pub invariant: Invariant,
    /// The nodes whose bodies lead to the graph, outermost first; empty in the main graph.
    pub path: Vec<String>,
    /// The node, as [`Node::describe`] names it; none for a problem of the whole graph.
    pub node: Option<String>,
    /// ONNX name of the value.
    pub value: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What would mend it.
    pub fix: String,
    /// The place in the file of the node of the main graph that it is about, or whose bodies it is in; `None` for a problem of the whole
    /// graph.
    pub rank: Option<u32>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for holder in &self.path {
            write!(f, "in a body of {holder}: ")?;
        }
        if let Some(node) = &self.node {
            write!(f, "{node}: ")?;
        }
        if let Some(value) = &self.value {
            write!(f, "value `{value}` ")?;
        }
        write!(f, "{}; {}", self.problem, self.fix)
    }
}

impl std::error::Error for Violation {}

/// Layouts of inputs and outputs of the main graph that the caller has agreed to, by ONNX name; row-major for all others.
pub type Contract = BTreeMap<String, Layout>;

/// Checks a graph whose inputs and outputs are row-major.
///
/// # Errors
/// Every problem, those of a graph before those of its bodies, in the order of the nodes' ids.
pub fn verify(graph: &Graph) -> Result<(), Vec<Violation>> {
    verify_with(graph, &Contract::new())
}

/// Checks a graph whose inputs and outputs have the layouts of a contract.
///
/// # Errors
/// As [`verify`]'s.
pub fn verify_with(graph: &Graph, contract: &Contract) -> Result<(), Vec<Violation>> {
    let mut violations = Vec::new();
    check(graph, Some(contract), None, &mut Vec::new(), &mut violations);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// Checks a graph and its bodies; `contract` is that of the main graph, `holder` the rank of its node in whose bodies the graph is.
fn check(
    graph: &Graph,
    contract: Option<&Contract>,
    holder: Option<u32>,
    path: &mut Vec<String>,
    violations: &mut Vec<Violation>,
) {
    let mut scope = Scope { graph, contract, holder, path, violations, node: None };
    if !structure::check(&mut scope) {
        // Ids lead nowhere: nothing else can be asked safely.
        return;
    }
    structure::pinned(&mut scope);
    for n in graph.nodes() {
        let node = graph.node(n);
        scope.node = Some(node);
        forms::check(&mut scope, node);
    }
    for node in graph.nodes().map(|n| graph.node(n)) {
        for body in node.bodies() {
            path.push(node.describe(graph));
            check(body, None, holder.or(Some(node.rank)), path, violations);
            path.pop();
        }
    }
}

/// One graph under examination.
struct Scope<'a> {
    graph: &'a Graph,
    /// None in a body.
    contract: Option<&'a Contract>,
    holder: Option<u32>,
    path: &'a [String],
    violations: &'a mut Vec<Violation>,
    /// The node looked at.
    node: Option<&'a Node>,
}

impl Scope<'_> {
    fn report(
        &mut self,
        invariant: Invariant,
        value: Option<ValueId>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let name = value.map(|v| self.graph.value(v).name.clone());
        self.report_named(invariant, name, problem, fix);
    }

    fn report_named(
        &mut self,
        invariant: Invariant,
        value: Option<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.violations.push(Violation {
            invariant,
            path: self.path.to_vec(),
            node: self.node.map(|node| node.describe(self.graph)),
            value,
            problem: problem.into(),
            fix: fix.into(),
            rank: self.holder.or(self.node.map(|node| node.rank)),
        });
    }

    /// Reports a value that is not stored as `want`; true if it is, or has no layout.
    fn stored_as(&mut self, invariant: Invariant, v: ValueId, want: Option<&Layout>, because: &str, fix: &str) -> bool {
        let value = self.graph.value(v);
        let Some(shape) = value.ty.shape() else { return true };
        let row_major = Layout::row_major(shape.len());
        let want = want.unwrap_or(&row_major);
        let stored = value.layout == *want || value.layout.equivalent(want, shape);
        if !stored {
            let problem = format!("is stored as {}, but {because} as {want}", value.layout);
            self.report(invariant, Some(v), problem, fix);
        }
        stored
    }
}
