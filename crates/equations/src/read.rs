//! Nodes of a graph as terms.

use crate::explain::Names;
use crate::facts::{Known, Terms};
use crate::term::{Head, Kind, Term};
use egg::{Analysis, Id};
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::normalize_axis;
use relayout_ir::op::read;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The operator set from which on Softmax normalizes one axis, the last unless told otherwise.
const SOFTMAX_OF_ONE_AXIS: i64 = 13;

/// Of a constant choice between two values at most as many elements are looked at.
const MOST_CHOICES: usize = 1 << 16;

/// A region of a graph as terms.
pub struct Region<'g> {
    pub(crate) graph: &'g Graph,
    /// The e-graph.
    pub terms: Terms,
    /// The term of each value that was read.
    classes: FxHashMap<ValueId, Id>,
}

impl<'g> Region<'g> {
    /// Reads nodes, which are in topological order. What they read of other nodes is not looked into.
    pub fn of(graph: &'g Graph, nodes: &[NodeId]) -> Region<'g> {
        Region::on(Terms::default(), graph, nodes)
    }

    /// The same, which can be explained later. It takes longer.
    pub(crate) fn explained(graph: &'g Graph, nodes: &[NodeId]) -> Region<'g> {
        Region::on(Terms::default().with_explanations_enabled(), graph, nodes)
    }

    fn on(terms: Terms, graph: &'g Graph, nodes: &[NodeId]) -> Region<'g> {
        let mut reading = Region { graph, terms, classes: FxHashMap::default() };
        for &n in nodes {
            if let Some(y) = graph.node(n).only_result()
                && let Some(class) = reading.node(graph.node(n))
            {
                reading.note(y, class);
            }
        }
        reading
    }

    /// The class of a value, if it was read.
    pub fn class(&self, v: ValueId) -> Option<Id> {
        self.classes.get(&v).map(|&id| self.terms.find(id))
    }

    /// The term of a value as the file spells it, if it was read.
    pub(crate) fn spelled(&self, v: ValueId) -> Option<Id> {
        self.classes.get(&v).copied()
    }

    /// The names of the values that were read.
    pub(crate) fn names(&self) -> Names<'g> {
        self.classes.keys().map(|&v| (v.index() as u32, self.graph.value(v).name.as_str())).collect()
    }

    /// Says that a value of the file is of a class.
    fn note(&mut self, v: ValueId, class: Id) {
        self.classes.insert(v, class);
        let ty = &self.graph.value(v).ty;
        let own = Known { dtype: ty.dtype(), shape: ty.shape().map(Arc::from), values: vec![v], ..Known::default() };
        self.know(class, own);
    }

    fn know(&mut self, class: Id, more: Known) {
        let mut fact = self.terms[class].data.clone();
        self.terms.analysis.merge(&mut fact, more);
        self.terms.set_analysis_data(class, fact);
    }

    /// The class of an operand: what it was read as, or a value that is not looked into.
    fn operand(&mut self, v: ValueId) -> Id {
        if let Some(&class) = self.classes.get(&v) {
            return class;
        }
        let class = self.terms.add_uncanonical(Term::leaf(Head::Value(v.index() as u32)));
        self.note(v, class);
        let constant = self.graph.constant(v);
        let zeros = constant.is_some_and(|c| c.dtype == DType::F32 && c.is_zero());
        self.know(class, Known { constant: constant.is_some(), zeros, ..Known::default() });
        class
    }

    fn number(&mut self, x: f64) -> Id {
        self.terms.add_uncanonical(Term::leaf(Head::number(x)))
    }

    fn ints(&mut self, list: impl IntoIterator<Item = i64>) -> Id {
        self.terms.add_uncanonical(Term::leaf(Head::Ints(list.into_iter().collect())))
    }

    fn op(&mut self, name: &str, args: SmallVec<[Id; 4]>) -> Option<Id> {
        let head = Head::op(name)?;
        Some(self.terms.add_uncanonical(Term { head, args }))
    }

    fn named(&mut self, name: &str, args: SmallVec<[Id; 4]>) -> Id {
        self.terms.add_uncanonical(Term { head: Head::Named(name.into()), args })
    }

    /// An operand beside others: one number where it is one that does not raise their rank.
    fn beside(&mut self, v: ValueId, others: &[ValueId]) -> Id {
        let rank = |v: ValueId| self.graph.value(v).ty.rank();
        let raises = others.iter().all(|&other| other == v || rank(v) > rank(other));
        match read::number(self.graph, v).filter(|_| !raises) {
            Some(x) => self.number(x),
            None => self.operand(v),
        }
    }

    /// The term of a node that is one.
    fn node(&mut self, node: &Node) -> Option<Id> {
        let graph = self.graph;
        let x = node.operand(0)?;
        match (node.onnx()?, &node.form) {
            (_, Form::View(View::Same)) => Some(self.operand(x)),
            (_, Form::View(View::Transpose(perm))) => {
                let perm = self.ints(perm.iter().map(|&axis| axis as i64));
                let x = self.operand(x);
                self.op("Transpose", smallvec![x, perm])
            }
            (_, Form::View(View::Reshape)) => {
                let shape = graph.value(node.only_result()?).ty.shape()?;
                let x = self.operand(x);
                self.reshaped(x, shape)
            }
            ("Cast", _) => {
                let dtype = |v: ValueId| graph.value(v).ty.dtype();
                let same = dtype(x).is_some() && dtype(x) == dtype(node.only_result()?);
                same.then(|| self.operand(x))
            }
            ("Expand", _) => self.same_as(node, 0),
            ("Where", _) => self.chosen(node, x),
            ("Sum", _) => self.of_values("Add", node),
            ("Softmax", _) => self.softmax(node, x),
            (op @ ("ReduceMean" | "ReduceMax" | "ReduceSum"), _) => self.reduction(op, node, x),
            ("GlobalAveragePool", _) => self.over_pixels("ReduceMean", x),
            ("GlobalMaxPool", _) => self.over_pixels("ReduceMax", x),
            ("Clip", _) => {
                let low = read::number_told(graph, node, "min", f64::MIN)?;
                let high = read::number_told(graph, node, "max", f64::MAX)?;
                let args = smallvec![self.operand(x), self.number(low), self.number(high)];
                self.op("Clip", args)
            }
            ("HardSigmoid", _) => {
                let (alpha, beta) = (node.float("alpha").unwrap_or(0.2), node.float("beta").unwrap_or(0.5));
                let args = smallvec![self.operand(x), self.number(alpha.into()), self.number(beta.into())];
                self.op("HardSigmoid", args)
            }
            ("Gemm", _) => self.gemm(node, x),
            ("LayerNormalization" | "RMSNormalization", _) => self.normalization_of_last(node, x),
            ("GroupNormalization" | "InstanceNormalization", _) => self.normalization_of_channels(node, x),
            ("Gelu", _) if node.str("approximate") == Some("tanh") => {
                let x = self.operand(x);
                Some(self.named("GeluTanh", smallvec![x]))
            }
            ("Gelu" | "HardSwish", _) => {
                let x = self.operand(x);
                Some(self.named(node.onnx()?, smallvec![x]))
            }
            (name, _) => self.of_values(name, node),
        }
    }

    /// An operand, if the result has its shape.
    fn same_as(&mut self, node: &Node, slot: usize) -> Option<Id> {
        let shape = |v: ValueId| self.graph.value(v).ty.shape();
        let x = node.operand(slot)?;
        let same = shape(x).is_some() && shape(x) == shape(node.only_result()?);
        same.then(|| self.operand(x))
    }

    /// What a constant chooses everywhere.
    fn chosen(&mut self, node: &Node, choice: ValueId) -> Option<Id> {
        let choice = self.graph.constant(choice).filter(|c| c.dtype == DType::Bool)?.to_ints(MOST_CHOICES)?;
        let first = choice.first()?;
        let same = choice.iter().all(|other| other == first);
        if same { self.same_as(node, if *first == 0 { 2 } else { 1 }) } else { None }
    }

    fn normalization_of_channels(&mut self, node: &Node, x: ValueId) -> Option<Id> {
        let operands = [x, node.operand(1)?, node.operand(2)?].map(|v| self.operand(v));
        let groups = (node.onnx() == Some("GroupNormalization")).then(|| node.int("num_groups"));
        let epsilon = read::epsilon(node)?;
        let mut args: SmallVec<[Id; 4]> = operands.into_iter().collect();
        if let Some(groups) = groups {
            args.push(self.ints([groups?]));
        }
        args.push(self.number(epsilon.into()));
        match groups {
            Some(_) => Some(self.named("GroupNormalization", args)),
            None => self.op("InstanceNormalization", args),
        }
    }

    /// An op that takes tensors alone and has nothing more to say.
    fn of_values(&mut self, name: &str, node: &Node) -> Option<Id> {
        let info = Head::op(name)?.info()?;
        let operands: Vec<ValueId> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let values = info.takes.iter().all(|kind| *kind == Kind::Value) && info.takes.len() == operands.len();
        if !values || name == "MatMul" && !matches!(node.form, Form::Axes(_)) {
            return None;
        }
        let args = match name {
            "MatMul" => operands.iter().map(|&v| self.operand(v)).collect(),
            _ => operands.iter().map(|&v| self.beside(v, &operands)).collect(),
        };
        self.op(name, args)
    }

    fn reshaped(&mut self, x: Id, shape: &[relayout_ir::dim::Dim]) -> Option<Id> {
        let dims = self.terms.add_uncanonical(Term::leaf(Head::Dims(shape.into())));
        self.op("Reshape", smallvec![x, dims])
    }

    /// Only of the last axis.
    fn softmax(&mut self, node: &Node, x: ValueId) -> Option<Id> {
        let rank = self.graph.value(x).ty.rank()?;
        let default = if node.opset < SOFTMAX_OF_ONE_AXIS { 1 } else { -1 };
        // Before, it normalized its axis and all behind it together.
        normalize_axis(node.int("axis").unwrap_or(default), rank).filter(|axis| axis + 1 == rank)?;
        let args = smallvec![self.operand(x), self.ints([-1])];
        self.op("Softmax", args)
    }

    fn reduction(&mut self, op: &str, node: &Node, x: ValueId) -> Option<Id> {
        let rank = self.graph.value(x).ty.rank()? as i64;
        let mut axes: Vec<i64> = read::reduced(self.graph, node)?.into_iter().map(|axis| axis as i64 - rank).collect();
        axes.sort_unstable();
        let shape = self.graph.value(node.only_result()?).ty.shape()?;
        let args = smallvec![self.operand(x), self.ints(axes)];
        let kept = self.op(op, args)?;
        if read::keeps_axes(node) { Some(kept) } else { self.reshaped(kept, shape) }
    }

    /// A reduction of all axes but images and channels.
    fn over_pixels(&mut self, op: &str, x: ValueId) -> Option<Id> {
        let rank = self.graph.value(x).ty.rank().filter(|&rank| rank > 2)? as i64;
        let args = smallvec![self.operand(x), self.ints(2 - rank..0)];
        self.op(op, args)
    }

    /// A product of matrices, one of them turned perhaps, and a sum.
    fn gemm(&mut self, node: &Node, x: ValueId) -> Option<Id> {
        let one = |name: &str| node.float(name).is_none_or(|x| (x - 1.0).abs() < f32::EPSILON);
        let weights = node.operand(1).filter(|_| one("alpha") && one("beta") && matches!(node.form, Form::Axes(_)))?;
        let a = self.matrix(x, node.flag("transA"))?;
        let b = self.matrix(weights, node.flag("transB"))?;
        let product = self.op("MatMul", smallvec![a, b])?;
        match node.operand(2) {
            Some(c) => {
                let c = self.operand(c);
                self.op("Add", smallvec![product, c])
            }
            None => Some(product),
        }
    }

    fn matrix(&mut self, v: ValueId, turned: bool) -> Option<Id> {
        let x = self.operand(v);
        if !turned {
            return Some(x);
        }
        let perm = self.ints([1, 0]);
        self.op("Transpose", smallvec![x, perm])
    }

    fn normalization_of_last(&mut self, node: &Node, x: ValueId) -> Option<Id> {
        let rank = self.graph.value(x).ty.rank()?;
        normalize_axis(node.int("axis").unwrap_or(-1), rank).filter(|axis| axis + 1 == rank)?;
        let name = node.onnx()?;
        let scale = self.operand(node.operand(1)?);
        let (x, epsilon) = (self.operand(x), self.number(read::epsilon(node)?.into()));
        let mut args: SmallVec<[Id; 4]> = smallvec![x, scale];
        if name == "LayerNormalization" {
            args.push(match node.operand(2) {
                Some(bias) => self.operand(bias),
                None => self.number(0.0),
            });
        }
        let last = self.ints([-1]);
        args.extend([last, epsilon]);
        Some(self.named(name, args))
    }
}
