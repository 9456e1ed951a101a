//! Building a graph in code, for embedders whose models are not ONNX files. Types of results are inferred as they are added.
//!
//! [`GraphBuilder::op`] is the short way for ops of ONNX with one result. [`GraphBuilder::add`] takes a [`NewOp`], which may have
//! several results, operands that are left out, attributes whose names are computed, and a domain of its own:
//!
//! ```
//! use relayout::GraphBuilder;
//! use relayout::builder::NewOp;
//! use relayout::ir::attr::Attr;
//! use relayout::ir::constant::Constant;
//! use relayout::ir::dtype::DType;
//!
//! let mut b = GraphBuilder::new("halves");
//! let x = b.input("x", DType::F32, [2.into(), 6.into()])?;
//! let halves = NewOp::new("Split").operand(x).attr("axis", Attr::Int(1)).attr("num_outputs", Attr::Int(2));
//! let halves = b.add(halves.result("left").result("right"))?;
//! let high = b.constant("high", Constant::filled(DType::F32, &[], 0.5))?;
//! // Clip has an upper bound in slot 2; slot 1 would be the lower one.
//! let clip = b.add(NewOp::new("Clip").operand(halves[1]).omit().operand(high).result("y"))?;
//! b.output(halves[0])?;
//! b.output(clip[0])?;
//! assert_eq!(b.shape(halves[0]), Some(&[2.into(), 3.into()][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is refused leaves the graph as it was, so that a builder can go on after an error.

use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::op::{WRITTEN_OPSET, bind};
use relayout_ir::types::Type;
use relayout_onnx::import::refused;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::{AttributeProto, NodeProto};

pub use relayout_ir::build::BuildError;

/// An op that is to be added to a graph.
#[derive(Clone, Debug)]
#[must_use = "an op is in no graph before `GraphBuilder::add`"]
pub struct NewOp {
    op: OpName,
    name: String,
    opset: Option<i64>,
    inputs: Vec<Option<ValueId>>,
    attrs: Attrs,
    results: Vec<Option<(String, Type)>>,
    letters: Option<String>,
}

impl NewOp {
    /// An op of ONNX, in the builder's opset, that reads and leaves nothing yet.
    pub fn new(op: impl Into<String>) -> NewOp {
        NewOp::of_domain("", op)
    }

    /// An op of another domain. Nothing is known of what it computes: give its results types with
    /// [`typed_result`](NewOp::typed_result), or no layout will pass through what reads them.
    pub fn of_domain(domain: impl Into<String>, op: impl Into<String>) -> NewOp {
        let op = OpName::new(domain, op);
        NewOp {
            op,
            name: String::new(),
            opset: None,
            inputs: Vec::new(),
            attrs: Attrs::default(),
            results: Vec::new(),
            letters: None,
        }
    }

    /// With the name that the node has in a file; it need not be unique.
    pub fn named(mut self, name: impl Into<String>) -> NewOp {
        self.name = name.into();
        self
    }

    /// For an op of another domain, which letter each axis of each operand and result has: `"chw, chw -> chw"` of a sum, `"chw ->
    /// chw"` of a convolution whose weights are no operand. Then layouts pass through it. The same letter is the same axis, whatever
    /// its extents; operands and results lie with their letters in one order. A letter that stands out of the order of the terms before
    /// is an axis of its own there. `_` is an operand that is read as it is. The host finds the axes by their letters, so such an op is
    /// for plans: [`optimize_graph`](crate::optimize_graph) lets no layout pass.
    pub fn letters(mut self, letters: impl Into<String>) -> NewOp {
        self.letters = Some(letters.into());
        self
    }

    /// With the version of its domain; unless said 1, and the builder's for ops of ONNX.
    pub fn opset(mut self, opset: i64) -> NewOp {
        self.opset = Some(opset);
        self
    }

    /// With a value in the next operand.
    pub fn operand(mut self, v: ValueId) -> NewOp {
        self.inputs.push(Some(v));
        self
    }

    /// With the next operand, an optional one, left out.
    pub fn omit(mut self) -> NewOp {
        self.inputs.push(None);
        self
    }

    /// With values in the next operands.
    pub fn operands(mut self, values: impl IntoIterator<Item = ValueId>) -> NewOp {
        self.inputs.extend(values.into_iter().map(Some));
        self
    }

    /// With an attribute; the last of a name counts.
    pub fn attr(mut self, name: impl Into<String>, value: Attr) -> NewOp {
        self.attrs.insert(name.into(), value);
        self
    }

    /// With a next result of this name.
    pub fn result(self, name: impl Into<String>) -> NewOp {
        self.typed_result(name, Type::Unknown)
    }

    /// With a next result of this name and type, which must not contradict what is inferred.
    pub fn typed_result(mut self, name: impl Into<String>, ty: Type) -> NewOp {
        self.results.push(Some((name.into(), ty)));
        self
    }

    /// With the next result, an optional one, left out: [`GraphBuilder::add`] does not list it.
    pub fn omit_result(mut self) -> NewOp {
        self.results.push(None);
        self
    }

    /// What can't be right about it in any graph.
    fn check(&self) -> Result<(), BuildError> {
        if self.results.iter().flatten().next().is_none() {
            return Err(self.refused("has no result, so it can't be read; name one".to_owned()));
        }
        if let Some((name, _)) = self.attrs.iter().find(|(_, attr)| !attr.bodies().is_empty()) {
            let why = format!("attribute `{name}` is a graph; models with bodies have to be read from ONNX");
            return Err(self.refused(why));
        }
        Ok(())
    }

    /// That the standard has such an op in this opset, with these attributes and as many operands and results.
    fn check_standard(&self, opset: i64) -> Result<(), BuildError> {
        let attribute = |(name, attr): (&String, &Attr)| {
            let kind = match attr {
                Attr::Float(_) => AttributeType::Float,
                Attr::Int(_) => AttributeType::Int,
                Attr::String(_) => AttributeType::String,
                Attr::Tensor(_) => AttributeType::Tensor,
                Attr::Floats(_) => AttributeType::Floats,
                Attr::Ints(_) => AttributeType::Ints,
                Attr::Strings(_) => AttributeType::Strings,
                _ => return None,
            };
            Some(AttributeProto { name: Some(name.clone()), r#type: Some(kind.into()), ..AttributeProto::default() })
        };
        // Of what only a file can have nothing is said.
        let Some(attributes) = self.attrs.iter().map(attribute).collect() else { return Ok(()) };
        let name = |there: bool| if there { "there".to_owned() } else { String::new() };
        let node = NodeProto {
            op_type: Some(self.op.name.clone()),
            input: self.inputs.iter().map(|operand| name(operand.is_some())).collect(),
            output: self.results.iter().map(|result| name(result.is_some())).collect(),
            attribute: attributes,
            ..NodeProto::default()
        };
        let wrong = refused(&node, opset);
        if wrong.is_empty() { Ok(()) } else { Err(self.refused(wrong.join("; "))) }
    }

    fn refused(&self, why: String) -> BuildError {
        let node = if self.name.is_empty() { self.op.to_string() } else { format!("{} `{}`", self.op, self.name) };
        BuildError::Node { node, why }
    }
}

/// A graph under construction. Ops are those of ONNX, with the meaning of opset [`WRITTEN_OPSET`] unless told otherwise.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    graph: Graph,
    opset: i64,
    unknowns: u32,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> GraphBuilder {
        GraphBuilder { graph: Graph::new(name), opset: WRITTEN_OPSET, unknowns: 0 }
    }

    /// With the meaning that ops have in another opset.
    #[must_use]
    pub fn opset(mut self, opset: i64) -> GraphBuilder {
        self.opset = opset;
        self
    }

    /// Adds an input; dims are numbers or symbols.
    ///
    /// # Errors
    /// [`BuildError::Name`].
    pub fn input(
        &mut self,
        name: &str,
        dtype: DType,
        shape: impl IntoIterator<Item = Dim>,
    ) -> Result<ValueId, BuildError> {
        Ok(self.graph.add_input(name, Type::tensor(dtype, shape.into_iter().collect()))?)
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// [`BuildError::Name`]; [`BuildError::Node`] if its bytes are at hand and not as many as type and shape need.
    pub fn constant(&mut self, name: &str, constant: Constant) -> Result<ValueId, BuildError> {
        if let Some((has, needs)) = constant.missized() {
            let shape = format!("{}{:?}", constant.dtype, constant.dims);
            let why = format!("it has {has} bytes, and {shape} needs {needs}");
            return Err(BuildError::Node { node: format!("constant `{name}`"), why });
        }
        let v = self.graph.add_constant(name, constant)?;
        self.graph.know_contents(v);
        Ok(v)
    }

    /// Adds an op of ONNX with one result, which gets the name. The graph is unchanged after an error.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn op<'a>(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[ValueId],
        attrs: impl IntoIterator<Item = (&'a str, Attr)>,
    ) -> Result<ValueId, BuildError> {
        let op = NewOp::new(op).operands(inputs.iter().copied()).result(name);
        let op = attrs.into_iter().fold(op, |op, (name, value)| op.attr(name, value));
        // One result was named, so there is one.
        Ok(self.add(op)?.swap_remove(0))
    }

    /// Adds an op. Gives its results in their order, those left out without a place. The graph is unchanged after an error.
    ///
    /// # Errors
    /// [`BuildError`]: a name that is taken, an operand that is no value of this graph, operands, attributes or types that the op
    /// can't have, a body, no result at all.
    pub fn add(&mut self, op: NewOp) -> Result<Vec<ValueId>, BuildError> {
        let n = self.node(op)?;
        Ok(self.graph.node(n).outputs.iter().flatten().copied().collect())
    }

    fn node(&mut self, op: NewOp) -> Result<NodeId, BuildError> {
        op.check()?;
        let standard = op.op.domain.is_empty();
        if standard {
            op.check_standard(op.opset.unwrap_or(self.opset))?;
        }
        let mut node = Node::new(Op::Onnx(op.op), op.inputs);
        node.opset = op.opset.unwrap_or(if standard { self.opset } else { 1 });
        (node.name, node.attrs) = (op.name, op.attrs);
        node.rank = self.graph.node_count() as u32;
        node.letters = op.letters.map(Into::into);
        if node.letters.is_some() {
            self.letters_fit(&node, &op.results)?;
        }
        self.graph.add_inferred(node, op.results, &mut self.unknowns)
    }

    /// Tries a node with letters in a graph of its own, so that nothing is left behind if they do not fit.
    fn letters_fit(&self, node: &Node, results: &[Option<(String, Type)>]) -> Result<(), BuildError> {
        let mut alone = Graph::new("letters");
        let mut tried = node.clone();
        for (slot, operand) in node.inputs.iter().enumerate() {
            if let Some(v) = operand.filter(|v| self.graph.has(*v)) {
                tried.inputs[slot] = Some(alone.add_input(format!("operand {slot}"), self.graph.value(v).ty.clone())?);
            } else {
                tried.inputs[slot] = None;
            }
        }
        let name = |(slot, result): (usize, &Option<(String, Type)>)| {
            result.as_ref().map(|(_, ty)| (format!("result {slot}"), ty.clone()))
        };
        let n = alone.add_inferred(tried, results.iter().enumerate().map(name).collect(), &mut 0)?;
        match bind(&alone, n) {
            Form::Opaque(why) => Err(BuildError::Node { node: alone.node(n).describe(&alone), why }),
            _ => Ok(()),
        }
    }

    /// The node that makes a value.
    ///
    /// # Panics
    /// If it is no value of this graph.
    pub fn producer(&self, v: ValueId) -> NodeId {
        self.graph.value(v).producer().0
    }

    /// Makes a value an output.
    ///
    /// # Errors
    /// [`BuildError::NoValue`] if it is no value of this graph.
    pub fn output(&mut self, v: ValueId) -> Result<(), BuildError> {
        if !self.graph.has(v) {
            return Err(BuildError::NoValue { place: format!("output {}", self.graph.outputs().len()) });
        }
        self.graph.add_output(v);
        Ok(())
    }

    /// Shape of a value as far as it is known.
    pub fn shape(&self, v: ValueId) -> Option<&[Dim]> {
        self.graph.has(v).then(|| self.graph.value(v).ty.shape())?
    }

    /// The graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}
