//! Fragments: the nodes that take the place of a piece, applied whole or not at all.

use crate::{PassError, Piece};
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::Constant;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Handover, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::{Place, place_of};
use relayout_ir::patch::{remove_dead, replace_value};
use relayout_ir::types::Type;
use std::fmt;

/// What a node of a fragment reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A value of the graph.
    Outer(ValueId),
    /// A result of a node of the fragment: the node's number, and the result's.
    Local(usize, usize),
}

impl From<ValueId> for Operand {
    fn from(v: ValueId) -> Operand {
        Operand::Outer(v)
    }
}

/// A value that a node of a fragment leaves.
#[derive(Clone, Debug)]
pub struct Left {
    /// Name to give it; made unique.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its layout.
    pub layout: Layout,
}

impl Left {
    /// A value that lies in the order of its axes.
    #[must_use]
    pub fn row_major(name: impl Into<String>, ty: Type) -> Left {
        let layout = Layout::row_major(ty.rank().unwrap_or(0));
        Left { name: name.into(), ty, layout }
    }

    /// The value in another layout.
    #[must_use]
    pub fn stored(self, layout: Layout) -> Left {
        Left { layout, ..self }
    }
}

/// A node that is made: an op of any domain with operands, attributes, and what it means for layouts.
#[derive(Clone, Debug)]
pub struct Made {
    /// The op.
    pub op: Op,
    /// Version of its operator set.
    pub opset: i64,
    /// Operands; `None` where an optional one is left out.
    pub inputs: Vec<Option<Operand>>,
    /// Attributes.
    pub attrs: Attrs,
    /// What it means for layouts.
    pub form: Form,
}

impl Made {
    /// An op of a domain, whose operands and results are declared as they are stored.
    pub fn op(domain: &str, name: &str, opset: i64, inputs: impl IntoIterator<Item = Operand>) -> Made {
        let op = OpName { domain: domain.to_owned(), name: name.to_owned(), overload: String::new() };
        let inputs = inputs.into_iter().map(Some).collect();
        Made { op: Op::Onnx(op), opset, inputs, attrs: Attrs::default(), form: Form::Kernel(Box::default()) }
    }

    /// The node of a piece as it is.
    #[must_use]
    pub fn same(piece: &Piece<'_>) -> Made {
        let Node { op, opset, inputs, attrs, form, .. } = piece.graph.node(piece.node).clone();
        Made { op, opset, inputs: inputs.into_iter().map(|v| v.map(Operand::Outer)).collect(), attrs, form }
    }

    /// A move of a value to the layout of the result.
    #[must_use]
    pub fn relayout(x: Operand) -> Made {
        let form = Form::unbound();
        Made { op: Op::Relayout, opset: 0, inputs: vec![Some(x)], attrs: Attrs::default(), form }
    }

    /// Another op with the same operands and attributes.
    #[must_use]
    pub fn named(self, op: OpName, opset: i64) -> Made {
        Made { op: Op::Onnx(op), opset, ..self }
    }

    /// The node with another operand in a slot that it has.
    #[must_use]
    pub fn reading(mut self, slot: usize, x: Operand) -> Made {
        if let Some(input) = self.inputs.get_mut(slot) {
            *input = Some(x);
        }
        self
    }

    /// The node with an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, attr: Attr) -> Made {
        self.attrs.insert(name.to_owned(), attr);
        self
    }

    /// The node reading and leaving these layouts; row-major ones may be left out.
    #[must_use]
    pub fn in_layouts(mut self, ins: Vec<Option<Layout>>, outs: Vec<Option<Layout>>) -> Made {
        self.form = Form::Kernel(Box::new(KernelLayouts { ins, outs }));
        self
    }
}

/// The nodes that take the place of a piece.
///
/// Nodes are made in the order in which they are added. There are two ways to replace the piece's own node: it becomes another op
/// in its place and keeps its results, or its readers read results of the fragment. In the second case it is removed, with what
/// only it read.
#[derive(Clone, Debug)]
pub struct Fragment {
    form: &'static str,
    piece: NodeId,
    origins: Vec<NodeId>,
    rank: u32,
    /// The piece's first result.
    result: Option<ValueId>,
    /// What names begin with: the name of that.
    base: String,
    /// Results of nodes that the piece takes in.
    taken: Vec<ValueId>,
    parts: Vec<(Made, Vec<Left>)>,
    becomes: Option<Made>,
    /// What the piece's own result is declared as from now on.
    declared: Option<(ValueId, Type, Layout)>,
    exits: Vec<(ValueId, Operand)>,
}

/// What replaced a piece, for reports and proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The form's name.
    pub form: &'static str,
    /// The nodes that it stands for, by their numbers in the file.
    pub origins: Vec<u32>,
    /// The nodes that were made or became another op.
    pub nodes: Vec<NodeId>,
    /// The nodes that were taken in, which are gone: their numbers may be those of others now.
    pub gone: Vec<NodeId>,
}

impl Fragment {
    /// A fragment without nodes in the place of a piece, by a form.
    pub fn new(piece: &Piece<'_>, form: &'static str) -> Fragment {
        let node = piece.graph.node(piece.node);
        Fragment {
            form,
            piece: piece.node,
            origins: vec![piece.node],
            rank: node.rank,
            result: node.result(0),
            base: node.result(0).map_or_else(String::new, |y| piece.graph.value(y).name.clone()),
            taken: Vec::new(),
            parts: Vec::new(),
            becomes: None,
            declared: None,
            exits: Vec::new(),
        }
    }

    /// The fragment standing for these nodes too.
    #[must_use]
    pub fn standing_for(mut self, nodes: impl IntoIterator<Item = NodeId>) -> Fragment {
        self.origins.extend(nodes);
        self
    }

    /// A name that begins with that of the piece's result.
    #[must_use]
    pub fn named(&self, what: &str) -> String {
        format!("{}.{what}", self.base)
    }

    /// Takes in a node that is the only reader of the piece's result, or of the node taken in before. From then on the piece's
    /// result has the readers and the name of `result`.
    pub fn take_in(&mut self, result: ValueId) {
        self.taken.push(result);
    }

    /// Adds a node of one result.
    pub fn add(&mut self, made: Made, left: Left) -> Operand {
        self.parts.push((made, vec![left]));
        Operand::Local(self.parts.len() - 1, 0)
    }

    /// Adds a node of several results; its number.
    pub fn add_several(&mut self, made: Made, left: Vec<Left>) -> usize {
        self.parts.push((made, left));
        self.parts.len() - 1
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: impl Into<String>, c: Constant) -> Operand {
        let ty = c.ty();
        let made = Made {
            op: Op::Constant(c),
            opset: 0,
            inputs: Vec::new(),
            attrs: Attrs::default(),
            form: Node::new(Op::Outer, vec![]).form,
        };
        self.add(made, Left::row_major(name, ty))
    }

    /// Adds a constant that is stored in a layout.
    pub fn packed(&mut self, [plain, packed]: [String; 2], c: Constant, layout: Layout) -> Operand {
        let ty = c.ty();
        let plain = self.constant(plain, c);
        self.add(Made::relayout(plain), Left::row_major(packed, ty).stored(layout))
    }

    /// A Reshape of a value as it is stored, to a value of this layout; `target` becomes a constant that is named after the value.
    pub fn reshape(&mut self, graph: &Graph, x: Operand, target: &[i64], to: &Layout) -> Made {
        let shape = format!("{}.shape", self.name(graph, x).unwrap_or("reshaped"));
        let from = self.layout(graph, x).and_then(Layout::declared);
        let target = self.constant(shape, Constant::ints(target));
        Made::op("", "Reshape", 0, [x, target]).in_layouts(vec![from], vec![to.declared()])
    }

    /// Gives a node the list `what`. Depending on `opset` its op has that list in an attribute or in an operand. An operand
    /// becomes a constant that is named after the piece's result and `what`. If this version has no place for the list, it is
    /// left out.
    pub fn tell(&mut self, node: &mut Made, what: &str, numbers: &[i64], opset: i64) {
        let Op::Onnx(op) = &node.op else { return };
        match place_of(&op.name, what, opset) {
            Place::Nowhere => {}
            Place::Attribute => drop(node.attrs.insert(what.to_owned(), Attr::Ints(numbers.to_vec()))),
            Place::Operand(slot) => {
                node.inputs.resize(node.inputs.len().max(slot + 1), None);
                node.inputs[slot] = Some(self.constant(self.named(what), Constant::ints(numbers)));
            }
        }
    }

    /// The piece's node becomes this op and keeps its results.
    pub fn become_op(&mut self, made: Made) {
        self.becomes = Some(made);
    }

    /// The piece's node becomes this op, and its result gets this type and layout. Nodes of the fragment that read the result
    /// read it so. Give its other readers an [`exit`](Fragment::exit).
    pub fn become_op_of(&mut self, made: Made, ty: Type, layout: Layout) {
        self.becomes = Some(made);
        self.declared = self.result.map(|y| (y, ty, layout));
    }

    /// The readers of a result of the piece read this operand from then on, and it takes over the name of the result.
    pub fn exit(&mut self, result: ValueId, by: Operand) {
        self.exits.push((result, by));
    }

    /// The type of an operand.
    pub fn ty<'t>(&'t self, graph: &'t Graph, x: Operand) -> Option<&'t Type> {
        match (x, &self.declared) {
            (Operand::Outer(v), Some((result, ty, _))) if v == *result => Some(ty),
            (Operand::Outer(v), _) => Some(&graph.value(v).ty),
            (Operand::Local(..), _) => Some(&self.left(x)?.ty),
        }
    }

    /// The layout of an operand.
    pub fn layout<'t>(&'t self, graph: &'t Graph, x: Operand) -> Option<&'t Layout> {
        match (x, &self.declared) {
            (Operand::Outer(v), Some((result, _, layout))) if v == *result => Some(layout),
            (Operand::Outer(v), _) => Some(&graph.value(v).layout),
            (Operand::Local(..), _) => Some(&self.left(x)?.layout),
        }
    }

    /// The name of an operand, as it is proposed.
    pub fn name<'t>(&'t self, graph: &'t Graph, x: Operand) -> Option<&'t str> {
        match x {
            // The piece's result is called as that of the node that was taken in last.
            Operand::Outer(v) if Some(v) == self.result => {
                Some(&graph.value(self.taken.last().copied().unwrap_or(v)).name)
            }
            Operand::Outer(v) => Some(&graph.value(v).name),
            Operand::Local(..) => Some(&self.left(x)?.name),
        }
    }

    fn left(&self, x: Operand) -> Option<&Left> {
        let Operand::Local(node, result) = x else { return None };
        self.parts.get(node)?.1.get(result)
    }

    /// Puts the nodes in the piece's place.
    ///
    /// # Errors
    /// [`PassError::Name`], which fresh names rule out.
    pub fn apply(self, graph: &mut Graph) -> Result<Written, PassError> {
        let gone: Vec<NodeId> = self.taken.iter().map(|&result| graph.value(result).producer().0).collect();
        let origins = self.origins.iter().chain(&gone).filter_map(|&n| graph.node(n).origin).collect();
        for (&result, &taken) in self.taken.iter().zip(&gone) {
            if let Some(own) = self.result {
                replace_value(graph, result, own, [taken])?;
            }
        }
        // Nodes of the fragment may read the piece's result, so its readers are noted before.
        let exits: Vec<(Handover, Operand)> =
            self.exits.iter().map(|&(result, by)| (Handover::everything(graph, result), by)).collect();
        let mut made: Vec<Vec<ValueId>> = Vec::with_capacity(self.parts.len());
        let mut nodes = Vec::new();
        for (part, left) in self.parts {
            let n = add(graph, self.rank, part, left, &made)?;
            made.push(graph.node(n).outputs.iter().copied().flatten().collect());
            nodes.push(n);
        }
        if let Some(Made { op: Op::Onnx(op), opset, inputs, attrs, form }) = self.becomes {
            graph.set_inputs(self.piece, inputs.iter().map(|x| x.and_then(|x| value_of(&made, x))).collect());
            graph.set_op(self.piece, op, opset);
            *graph.attrs_mut(self.piece) = attrs;
            graph.set_form(self.piece, form);
            nodes.push(self.piece);
        }
        if let Some((result, ty, layout)) = self.declared {
            let value = graph.value_mut(result);
            (*value.ty, *value.layout) = (ty, layout);
        }
        let replaces = !exits.is_empty();
        for (readers, by) in exits {
            if let Some(by) = value_of(&made, by) {
                graph.hand_over(readers, by);
            }
        }
        if replaces {
            remove_dead(graph, self.origins);
        }
        Ok(Written { form: self.form, origins, nodes, gone })
    }
}

/// Adds a node of a fragment, whose nodes before it made these values.
fn add(graph: &mut Graph, rank: u32, part: Made, left: Vec<Left>, made: &[Vec<ValueId>]) -> Result<NodeId, PassError> {
    let inputs = part.inputs.iter().map(|x| x.and_then(|x| value_of(made, x))).collect();
    let mut node = Node::new(part.op, inputs);
    (node.rank, node.opset, node.attrs, node.form) = (rank, part.opset, part.attrs, part.form);
    let results = left.iter().map(|left| Some((graph.fresh_name(&left.name), left.ty.clone()))).collect();
    let n = graph.add(node, results)?;
    let values: Vec<ValueId> = graph.node(n).outputs.iter().copied().flatten().collect();
    for (v, left) in values.into_iter().zip(left) {
        *graph.value_mut(v).layout = left.layout;
    }
    Ok(n)
}

fn value_of(made: &[Vec<ValueId>], x: Operand) -> Option<ValueId> {
    match x {
        Operand::Outer(v) => Some(v),
        Operand::Local(node, result) => made.get(node)?.get(result).copied(),
    }
}

/// A piece that its form can't write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    what: String,
}

impl Refused {
    /// The piece, and why.
    pub fn new(piece: &Piece<'_>, why: &str) -> Refused {
        Refused { what: format!("{} {why}", piece.graph.node(piece.node).describe(piece.graph)) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Refused {}
