//! Forms: ways in which a target runs a piece of the graph.
//!
//! A form says in one place which ops it stands in for, in which layouts it runs, at what cost, and with which nodes it is
//! written. The decision chooses among the offers of all forms. The form that made the chosen offer writes it.

use crate::{Cost, Fragment, NodeQuery, PassError, Recognized, Refused, Rule};
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::Constant;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, OpName, ValueId};

/// The candidates of a value, as far as they are known.
pub type Candidates<'a, 'c> = &'a dyn Fn(ValueId) -> &'c [relayout_ir::layout::Layout];

/// One way in which a target runs a piece of the graph: an op, or one raised op that stands for several.
pub trait TargetForm: Send + Sync {
    /// Its name in records, unique within its target.
    fn name(&self) -> &'static str;

    /// The ops that it may stand in for, by their names in the standard or in [`relayout_ir::raised`].
    fn ops(&self) -> &'static [&'static str];

    /// Offers for a node: layouts of operands and results, each with its cost. Empty if the form does not apply. Every offer must
    /// be one that can be written.
    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer>;

    /// More offers, for layouts that ops around the node ask for.
    fn offers_among(&self, _q: &NodeQuery<'_>, _candidates: Candidates<'_, '_>) -> Vec<Offer> {
        Vec::new()
    }

    /// What the piece costs as ONNX has it; offers are compared with it. `None` if this form does not know.
    fn plain(&self, _q: &NodeQuery<'_>) -> Option<Cost> {
        None
    }

    /// The names of ops that it wants to have [`Recognized`].
    fn recognizes(&self) -> &'static [&'static str] {
        &[]
    }

    /// What stands for a piece that was recognized: one raised op, for which it makes offers.
    fn raises(&self, _graph: &Graph, _piece: &Recognized) -> Option<Raise> {
        None
    }

    /// The pieces of a graph for which it has a raised op, in topological order. `nodes` are those whose sums may be taken in another
    /// order; what has been recognized is made of them alone.
    fn pieces(&self, graph: &Graph, _nodes: &[NodeId], recognized: &[Recognized]) -> Vec<Raised> {
        let raised = |piece: &Recognized| {
            let raise = self.raises(graph, piece)?;
            Some(Raised { nodes: piece.nodes.clone(), result: piece.result, raise })
        };
        recognized.iter().filter_map(raised).collect()
    }

    /// The rules by which it writes pieces.
    fn rules(&self) -> &'static [&'static Rule] {
        &[]
    }

    /// The one of [`TargetForm::rules`] by which an offer for a raised op is written.
    fn rule(&self, _offer: &Offer) -> Option<&'static Rule> {
        None
    }

    /// Writes the raised op of a chosen offer as standard ops between views that say how its operands and its result lie. Returns
    /// what took the place of the result, or `None` if the offer is written otherwise. `opset` is the version of the standard
    /// domain.
    ///
    /// # Errors
    /// [`PassError`].
    fn spell(&self, _graph: &mut Graph, _node: NodeId, _opset: i64) -> Result<Option<ValueId>, PassError> {
        Ok(None)
    }

    /// The nodes that replace the piece, for an offer of several nodes. It is not called for an offer of one op, which has that
    /// op in [`Offer::becomes`].
    ///
    /// # Errors
    /// [`Refused`]. That is a fault of the form: it must not offer what it can't write.
    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        Err(Refused::new(piece, &format!("has form {}, which does not say how it is written", self.name())))
    }
}

/// A form in certain layouts, at a price.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The name of the form that offers it.
    pub form: &'static str,
    /// Layouts of operands and results.
    pub layouts: KernelLayouts,
    /// Cost, in the same terms as [`Target::plain_cost`](crate::Target::plain_cost).
    pub cost: Cost,
    /// What the node becomes, if that is one op of the same operands.
    pub becomes: Option<Become>,
    /// Whether elements are multiplied by zeros that the standard op does not have. The results are the same unless an element is
    /// infinite or NaN. Such an offer is not taken where every bit has to stay.
    pub adds_zeros: bool,
}

/// The one op that a node becomes.
#[derive(Clone, Debug)]
pub struct Become {
    /// The op.
    pub op: OpName,
    /// Version of its operator set.
    pub opset: i64,
    /// The operands that it takes, as the slots that they had, in its own order; `None` for all of them in the same order.
    pub operands: Option<Vec<usize>>,
    /// Attributes that are set.
    pub set: Vec<(String, Attr)>,
    /// Attributes that go.
    pub remove: Vec<String>,
}

/// A piece that one raised op may stand for.
#[derive(Clone, Debug)]
pub struct Raised {
    /// Its nodes, in topological order, the one that leaves the result last.
    pub nodes: Vec<NodeId>,
    /// Its result.
    pub result: ValueId,
    /// The op.
    pub raise: Raise,
}

/// A raised op that stands for a piece.
#[derive(Clone, Debug)]
pub struct Raise {
    /// The op.
    pub op: OpName,
    /// Its attributes.
    pub attrs: Attrs,
    /// Its operands.
    pub operands: Vec<RaisedOperand>,
}

/// An operand of a raised op.
#[derive(Clone, Debug)]
pub enum RaisedOperand {
    /// A value of the graph.
    Value(ValueId),
    /// A constant that the file does not have.
    New(Constant),
}

/// A node, or the last one of several, in whose place a form is written.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The graph. Operands have the layouts in which the form reads them.
    pub graph: &'a Graph,
    /// The node.
    pub node: NodeId,
    /// Layouts of operands and results.
    pub layouts: &'a KernelLayouts,
    /// The version of the standard domain that the model imports.
    pub opset: i64,
}
