//! Forms: ways in which a target runs a piece of the graph.
//!
//! A form says in one place what it stands in for, in which layouts it runs and at what cost, and which nodes it is written with. The
//! decision chooses among the offers of all forms; what was chosen is written by the form that offered it.

use crate::{Cost, Fragment, NodeQuery, PassError, Refused, Rule};
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, OpName, ValueId};

/// The candidates of a value, as far as they are known.
pub type Candidates<'a, 'c> = &'a dyn Fn(ValueId) -> &'c [relayout_ir::layout::Layout];

/// One way in which a target runs a piece of the graph: an op, or one raised op that stands for several.
pub trait Form: Send + Sync {
    /// Name: what it is called in records, unique within its target.
    fn name(&self) -> &'static str;

    /// The ops that it may stand in for, by their names in the standard or in [`relayout_ir::raised`].
    fn of(&self) -> &'static [&'static str];

    /// Layouts of the ends, each with what it costs; empty where the form does not apply. Whatever is offered can be written.
    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer>;

    /// Offers beyond these, for layouts that ops around the node ask for.
    fn offers_among(&self, _q: &NodeQuery<'_>, _candidates: Candidates<'_, '_>) -> Vec<Offer> {
        Vec::new()
    }

    /// What the piece costs as ONNX has it, which offers are held against; `None` if this form does not know.
    fn plain(&self, _q: &NodeQuery<'_>) -> Option<Cost> {
        None
    }

    /// The piece of several nodes, the last of which is this one, that becomes one raised op while layouts are decided. Where no offer
    /// for that is chosen, the nodes are put back as they were.
    fn raises(&self, _graph: &Graph, _n: NodeId) -> Option<Raise> {
        None
    }

    /// The nodes that take the piece's place, for an offer of several nodes. A form is not asked for an offer that is one op: that offer
    /// says by [`Offer::becomes`] what it is.
    ///
    /// # Errors
    /// [`Refused`], which is a fault of the form: what can't be written must not be offered.
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
    /// Whether elements are multiplied by zeros that the standard op does not have: the same numbers, unless one is infinite or
    /// NaN. Not taken where every bit has to stay.
    pub adds_zeros: bool,
}

/// The one op that a node becomes.
#[derive(Clone, Debug)]
pub struct Become {
    /// The op.
    pub op: OpName,
    /// Version of its operator set.
    pub opset: i64,
    /// The operands that it takes, by the slots that they had, in its own order; all of them in theirs unless said.
    pub operands: Option<Vec<usize>>,
    /// Attributes that are set.
    pub set: Vec<(String, Attr)>,
    /// Attributes that go.
    pub remove: Vec<String>,
}

/// A raised op that stands for several nodes.
#[derive(Clone, Debug)]
pub struct Raise {
    /// The nodes before the last one that it stands for, each reading the one before by operand 0; nothing else reads them.
    pub before: Vec<NodeId>,
    /// The op.
    pub op: OpName,
    /// Its attributes.
    pub attrs: Attrs,
    /// Its operands.
    pub operands: Vec<ValueId>,
}

/// A node whose form is to be written.
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

/// Recognises pieces of several nodes that have another form, and writes them in it where a trial decision finds that cheaper.
pub trait Pieces: Sync {
    /// The pieces of a graph, among nodes whose sums may be taken in another order, in topological order.
    fn find(&self, graph: &Graph, nodes: &[NodeId]) -> Vec<Box<dyn Spanning>>;

    /// The rules by which they are written.
    fn rules(&self) -> &'static [&'static Rule];
}

/// A piece of several nodes that has another form.
pub trait Spanning {
    /// The node that leaves the result.
    fn last(&self) -> NodeId;

    /// Makes the piece one raised op, the place of which is the last node's: in a copy of the graph, for a trial decision.
    fn raise(&self, graph: &mut Graph);

    /// Takes the offer that was chosen for the raised op; whether it is one of another form than the file's.
    fn choose(&mut self, offer: &Offer) -> bool;

    /// Reads other values in the place of those that pieces before it have replaced.
    fn reads(&mut self, now: &dyn Fn(ValueId) -> ValueId);

    /// Writes the other form; the result, and what took its place.
    ///
    /// # Errors
    /// [`PassError`].
    fn write(&self, graph: &mut Graph) -> Result<Option<(ValueId, ValueId)>, PassError>;

    /// The rule by which it is written, and what is counted of it.
    fn rule(&self) -> (&'static Rule, usize);
}
