//! The one kit that adds nodes to a graph: passes that write several nodes in the place of one use it.
//!
//! A [`Builder`] stands at one place of the file's order. It makes constants, views and moves at once; any other node is a
//! [`Draft`] first, which is told its attributes and its form and then is added, or takes the place of a node that is there.
//!
//! ```
//! use relayout_ir::attr::Attr;
//! use relayout_ir::dtype::DType;
//! use relayout_ir::build::Builder;
//! use relayout_ir::graph::Graph;
//! use relayout_ir::types::Type;
//!
//! let mut graph = Graph::new("g");
//! let ty = Type::tensor(DType::F32, vec![2.into(), 3.into()]);
//! let x = graph.add_input("x", ty.clone())?;
//! let mut make = Builder::new(&mut graph, 0).opset(13).named("y");
//! let one = make.filled("one", DType::F32, &[], 1.0)?;
//! let sum = make.op("Add", [x, one]).result("sum", ty.clone())?;
//! let y = make.op("Softmax", [sum]).attr("axis", Attr::Int(-1)).result("even", ty)?;
//! assert_eq!(graph.value(y).name, "y.even");
//! # Ok::<(), relayout_ir::graph::DuplicateName>(())
//! ```
//!
//! Names are proposals: each is made unique in the order in which things are added. So are layouts of results row-major unless
//! a draft says otherwise.

use crate::attr::Attr;
use crate::constant::Constant;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::{Form, KernelLayouts, View};
use crate::graph::{DuplicateName, Graph, Handover, Node, NodeId, Op, OpName, ValueId};
use crate::layout::Layout;
use crate::op::bind;
use crate::op::infer::infer_one;
use crate::op::read::{Place, place_of};
use crate::types::{TensorType, Type};

/// Why a node whose type is inferred can't be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name is taken.
    #[error(transparent)]
    Name(#[from] DuplicateName),
    /// Operands or attributes that the op can't have.
    #[error("{node}: {why}")]
    Node {
        /// The node.
        node: String,
        /// What is wrong.
        why: String,
    },
    /// An operand or output that is no value of the graph.
    #[error("{place} is not a value of this graph; take one that was added to it")]
    NoValue {
        /// Where it is read.
        place: String,
    },
}

/// Adds nodes to a graph at one place of the file's order.
#[derive(Debug)]
pub struct Builder<'g> {
    /// The graph.
    pub graph: &'g mut Graph,
    /// The place in the order of the file that new nodes get.
    pub rank: u32,
    /// Version of the standard domain that new ops are of; 0 says none, and the exporter takes the model's.
    pub opset: i64,
    /// What new names begin with, before a point.
    pub base: Option<String>,
}

impl Graph {
    /// Adds a node and infers the types of its results. A type that is given is checked against what is inferred; `unknowns`
    /// counts the anonymous dims of the model.
    ///
    /// # Errors
    /// [`BuildError`]; the graph is then what it was.
    pub fn add_inferred(
        &mut self,
        node: Node,
        results: Vec<Option<(String, Type)>>,
        unknowns: &mut u32,
    ) -> Result<NodeId, BuildError> {
        if let Some(slot) = node.inputs.iter().position(|v| v.is_some_and(|v| !self.has(v))) {
            let place = format!("operand {slot} of {}", node.describe(self));
            return Err(BuildError::NoValue { place });
        }
        let before = *unknowns;
        let n = self.add(node, results)?;
        infer_one(self, n, unknowns).map_err(|why| {
            let node = self.node(n).describe(self);
            self.remove_unused(n);
            *unknowns = before;
            BuildError::Node { node, why }
        })?;
        Ok(n)
    }
}

impl<'g> Builder<'g> {
    /// Adds nodes at this place of the file's order. They are of no version, and names are as they are given.
    pub fn new(graph: &'g mut Graph, rank: u32) -> Builder<'g> {
        Builder { graph, rank, opset: 0, base: None }
    }

    /// Adds nodes in the place of a node.
    pub fn at(graph: &'g mut Graph, n: NodeId) -> Builder<'g> {
        let rank = graph.node(n).rank;
        Builder::new(graph, rank)
    }

    /// With ops of this version of the standard domain.
    #[must_use]
    pub fn opset(mut self, opset: i64) -> Builder<'g> {
        self.opset = opset;
        self
    }

    /// With names that begin with this one: `what` becomes `base.what`.
    #[must_use]
    pub fn named(mut self, base: impl Into<String>) -> Builder<'g> {
        self.base = Some(base.into());
        self
    }

    /// The name that the next thing called `what` gets.
    pub fn name(&self, what: &str) -> String {
        match &self.base {
            Some(base) => self.graph.fresh_name(&format!("{base}.{what}")),
            None => self.graph.fresh_name(what),
        }
    }

    /// A constant.
    ///
    /// # Errors
    /// [`DuplicateName`], here and below: fresh names rule it out.
    pub fn constant(&mut self, what: &str, c: Constant) -> Result<ValueId, DuplicateName> {
        let (ty, name) = (c.ty(), self.name(what));
        self.graph.add_single(Node::constant(c, self.rank), name, ty)
    }

    /// A vector of 64-bit integers.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn ints(&mut self, what: &str, numbers: &[i64]) -> Result<ValueId, DuplicateName> {
        self.constant(what, Constant::ints(numbers))
    }

    /// A vector of 64-bit integers with its contents known, for ops whose form or type depends on them.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn known_ints(&mut self, what: &str, numbers: &[i64]) -> Result<ValueId, DuplicateName> {
        let v = self.ints(what, numbers)?;
        self.graph.know_contents(v);
        Ok(v)
    }

    /// 32-bit floats.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn floats(&mut self, what: &str, numbers: &[f64], dims: &[i64]) -> Result<ValueId, DuplicateName> {
        self.constant(what, Constant::floats(numbers.iter().copied(), dims))
    }

    /// The same number everywhere, of float64 or float32.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn filled(&mut self, what: &str, dtype: DType, dims: &[i64], number: f64) -> Result<ValueId, DuplicateName> {
        self.constant(what, Constant::filled(dtype, dims, number))
    }

    /// A Reshape, as a view, of a value to as many elements. Its result is row-major.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn reshape(&mut self, x: ValueId, what: &str, shape: Vec<Dim>) -> Result<ValueId, DuplicateName> {
        let ty = self.with_shape(x, shape);
        self.op_of(OpName::onnx("Reshape"), 0, [x]).form(Form::View(View::Reshape)).result(what, ty)
    }

    /// A Transpose: axis `i` of the result is axis `perm[i]` of the value. Its result is row-major, so that it is a view only of
    /// a value that lies in that order.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn transpose(&mut self, x: ValueId, what: &str, perm: &[usize]) -> Result<ValueId, DuplicateName> {
        let from = self.graph.value(x).ty.shape().unwrap_or_default();
        let shape = perm.iter().filter_map(|&axis| from.get(axis).cloned()).collect();
        let ty = self.with_shape(x, shape);
        let draft = self.op_of(OpName::onnx("Transpose"), 0, [x]).attr("perm", Attr::axes(perm));
        draft.form(Form::View(View::Transpose(perm.to_vec()))).result(what, ty)
    }

    /// A move of a value to another layout.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn moved(&mut self, x: ValueId, what: &str, to: Layout) -> Result<ValueId, DuplicateName> {
        let ty = self.graph.value(x).ty.clone();
        self.move_of(x, to).result(what, ty)
    }

    /// A draft of a move of a value to another layout.
    pub fn move_of(&mut self, x: ValueId, to: Layout) -> Draft<'_, 'g> {
        self.draft(Node::new(Op::Relayout, vec![Some(x)]), false).layout(to)
    }

    /// A Reshape of the bytes of a value as they are stored, to a value of this layout. `target` is the operand that it reads,
    /// a constant that is named after the value.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn reshape_stored(&mut self, x: ValueId, target: &[i64], to: &Layout) -> Result<Draft<'_, 'g>, DuplicateName> {
        let name = self.graph.fresh_name(&format!("{}.shape", self.graph.value(x).name));
        let target = Constant::ints(target);
        let ty = target.ty();
        let target = self.graph.add_single(Node::constant(target, self.rank), name, ty)?;
        let ins = vec![self.graph.value(x).layout.declared()];
        Ok(self.op_of(OpName::onnx("Reshape"), 0, [x, target]).kernel_in(ins, vec![to.declared()]))
    }

    /// An op of the standard domain. Operands are values, or `Option`s where one may be left out.
    pub fn op(&mut self, name: &str, operands: impl IntoIterator<Item = impl Into<Option<ValueId>>>) -> Draft<'_, 'g> {
        self.op_of(OpName::onnx(name), self.opset, operands)
    }

    /// An op of any domain, of this version.
    pub fn op_of(
        &mut self,
        op: OpName,
        opset: i64,
        operands: impl IntoIterator<Item = impl Into<Option<ValueId>>>,
    ) -> Draft<'_, 'g> {
        let mut node = Node::new(Op::Onnx(op), operands.into_iter().map(Into::into).collect());
        node.opset = opset;
        self.draft(node, true)
    }

    /// The op of another node, its version and its attributes, of these operands.
    pub fn same_op(
        &mut self,
        n: NodeId,
        operands: impl IntoIterator<Item = impl Into<Option<ValueId>>>,
    ) -> Draft<'_, 'g> {
        let of = self.graph.node(n);
        let mut node = Node::new(of.op.clone(), operands.into_iter().map(Into::into).collect());
        (node.opset, node.attrs) = (of.opset, of.attrs.clone());
        self.draft(node, true)
    }

    /// A node as it is, its rank and its form included, of one result.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn put(&mut self, node: Node, what: &str, ty: Type) -> Result<ValueId, DuplicateName> {
        let name = self.name(what);
        self.graph.add_single(node, name, ty)
    }

    fn draft(&mut self, mut node: Node, binds: bool) -> Draft<'_, 'g> {
        node.rank = self.rank;
        Draft { builder: self, node, binds, layouts: Vec::new() }
    }

    /// The type of a value with another shape.
    fn with_shape(&self, x: ValueId, shape: Vec<Dim>) -> Type {
        Type::Tensor(TensorType { dtype: self.graph.value(x).ty.dtype(), shape: Some(shape) })
    }
}

/// A node that is not added yet. It is bound to its signature when it is, unless its form is told.
#[derive(Debug)]
#[must_use = "a draft is no node before it is added"]
pub struct Draft<'b, 'g> {
    builder: &'b mut Builder<'g>,
    node: Node,
    binds: bool,
    /// Layouts of the results; row-major where none is said.
    layouts: Vec<Option<Layout>>,
}

impl Draft<'_, '_> {
    /// With an attribute.
    pub fn attr(mut self, name: impl Into<String>, value: Attr) -> Self {
        self.node.attrs.insert(name.into(), value);
        self
    }

    /// With several attributes.
    pub fn attrs(mut self, attrs: impl IntoIterator<Item = (impl Into<String>, Attr)>) -> Self {
        self.node.attrs.extend(attrs.into_iter().map(|(name, value)| (name.into(), value)));
        self
    }

    /// With more operands after those it has; none, for an optional one at the end that is absent.
    pub fn operands(mut self, more: impl IntoIterator<Item = impl Into<Option<ValueId>>>) -> Self {
        self.node.inputs.extend(more.into_iter().map(Into::into));
        self
    }

    /// With a list of integers that the op has in an attribute or, from some version on, in an operand: then as a constant that is
    /// called `what`. It is left out where this version has no place for it. The contents of the constant are known if the node
    /// is to be bound.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn told(mut self, name: &str, what: &str, numbers: &[i64], opset: i64) -> Result<Self, DuplicateName> {
        let place = match &self.node.op {
            Op::Onnx(op) => place_of(&op.name, name, opset),
            _ => Place::Nowhere,
        };
        match place {
            Place::Nowhere => {}
            Place::Attribute => drop(self.node.attrs.insert(name.to_owned(), Attr::Ints(numbers.to_vec()))),
            Place::Operand(slot) => {
                let v = self.builder.ints(what, numbers)?;
                if self.binds {
                    self.builder.graph.know_contents(v);
                }
                let inputs = &mut self.node.inputs;
                inputs.resize(inputs.len().max(slot + 1), None);
                inputs[slot] = Some(v);
            }
        }
        Ok(self)
    }

    /// As a kernel of row-major operands and results.
    pub fn kernel(self) -> Self {
        self.form(Form::Kernel(Box::default()))
    }

    /// As a kernel that reads and leaves these layouts; the results lie so.
    pub fn kernel_in(mut self, ins: Vec<Option<Layout>>, outs: Vec<Option<Layout>>) -> Self {
        self.layouts.clone_from(&outs);
        self.form(Form::Kernel(Box::new(KernelLayouts { ins, outs })))
    }

    /// In this form.
    pub fn form(mut self, form: Form) -> Self {
        (self.node.form, self.binds) = (form, false);
        self
    }

    /// With the first result in this layout.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layouts = vec![Some(layout)];
        self
    }

    /// The node, not added: for a [`Patch`](crate::patch::Patch). It is not bound.
    pub fn node(self) -> Node {
        self.node
    }

    /// Adds the node with one result of this type.
    ///
    /// # Errors
    /// [`DuplicateName`], here and below: fresh names rule it out.
    pub fn result(self, what: &str, ty: Type) -> Result<ValueId, DuplicateName> {
        self.result_for(what, ty, Handover::default())
    }

    /// Adds the node with one result of this shape and of the element type of the first operand.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn shaped(self, what: &str, shape: &[Dim]) -> Result<ValueId, DuplicateName> {
        let dtype = self.node.operand(0).and_then(|v| self.builder.graph.value(v).ty.dtype());
        self.result(what, Type::Tensor(TensorType { dtype, shape: Some(shape.to_vec()) }))
    }

    /// Adds the node with one result, which these read from now on.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn result_for(self, what: &str, ty: Type, readers: Handover) -> Result<ValueId, DuplicateName> {
        let Draft { builder, node, binds, mut layouts } = self;
        let name = builder.name(what);
        let v = builder.graph.add_single(node, name, ty)?;
        if let Some(layout) = layouts.first_mut().and_then(Option::take) {
            *builder.graph.value_mut(v).layout = layout;
        }
        if binds {
            bind_again(builder.graph, builder.graph.value(v).producer().0);
        }
        builder.graph.hand_over(readers, v);
        Ok(v)
    }

    /// Adds the node with these results.
    ///
    /// # Errors
    /// [`DuplicateName`]; two results of one name are no fresh names.
    pub fn results(
        self,
        results: impl IntoIterator<Item = (impl AsRef<str>, Type)>,
    ) -> Result<Vec<ValueId>, DuplicateName> {
        let Draft { builder, node, binds, layouts } = self;
        let results = results.into_iter().map(|(what, ty)| Some((builder.name(what.as_ref()), ty))).collect();
        let n = builder.graph.add(node, results)?;
        let made: Vec<ValueId> = builder.graph.node(n).outputs.iter().copied().flatten().collect();
        for (&v, layout) in made.iter().zip(layouts) {
            if let Some(layout) = layout {
                *builder.graph.value_mut(v).layout = layout;
            }
        }
        if binds {
            bind_again(builder.graph, n);
        }
        Ok(made)
    }

    /// Adds the node with one result whose type is inferred, and binds it then. `unknowns` counts the anonymous dims of the
    /// model.
    ///
    /// # Errors
    /// [`BuildError`]; the graph is then what it was.
    #[expect(clippy::missing_panics_doc, reason = "the node has the result with which it was added")]
    pub fn inferred(self, what: &str, unknowns: &mut u32) -> Result<ValueId, BuildError> {
        let Draft { builder, node, binds, layouts } = self;
        let name = builder.name(what);
        let graph = &mut *builder.graph;
        let n = graph.add_inferred(node, vec![Some((name, Type::Unknown))], unknowns)?;
        let v = graph.node(n).outputs[0].expect("it was added with one result");
        if let Some(layout) = layouts.into_iter().next().flatten() {
            *graph.value_mut(v).layout = layout;
        }
        if binds {
            bind_again(graph, n);
        }
        Ok(v)
    }

    /// Makes a node that is there this one: it keeps its results, its rank, its name and its origin.
    pub fn in_place_of(self, n: NodeId) {
        let Draft { builder, node, binds, .. } = self;
        let graph = &mut *builder.graph;
        let Node { op, opset, inputs, attrs, form, .. } = node;
        graph.set_inputs(n, inputs);
        if let Op::Onnx(op) = op {
            graph.set_op(n, op, opset);
        }
        *graph.attrs_mut(n) = attrs;
        graph.set_form(n, form);
        if binds {
            bind_again(graph, n);
        }
    }
}

/// Binds a node to its signature, as it is now.
pub fn bind_again(graph: &mut Graph, n: NodeId) {
    let form = bind(graph, n);
    graph.set_form(n, form);
}
