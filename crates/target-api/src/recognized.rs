//! Pieces of a graph that are known by name, however the file spells them.

use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An op that a piece of the graph computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognized {
    /// The name of the op: one of ONNX, or one that an equation gives.
    pub op: String,
    /// What it computes.
    pub result: ValueId,
    /// Its operands, and what it is told.
    pub args: Vec<Arg>,
    /// The nodes that it stands for, in topological order. Nobody else reads what is between.
    pub nodes: Vec<NodeId>,
}

/// An operand of an op, or what it is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A value of the graph.
    Value(ValueId),
    /// Something that is known.
    Literal(Literal),
}

/// What an op is told, which a file has as an attribute or as a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(f64),
    /// Whole numbers, such as axes, which count from the end.
    Ints(Vec<i64>),
    /// A shape.
    Dims(Vec<Dim>),
}

impl Recognized {
    /// The node that leaves the result.
    pub fn last(&self, graph: &Graph) -> NodeId {
        graph.value(self.result).producer().0
    }

    /// The values among its arguments.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.args.iter().filter_map(|arg| if let Arg::Value(v) = arg { Some(*v) } else { None })
    }

    /// The value in this place.
    pub fn value(&self, at: usize) -> Option<ValueId> {
        if let Some(Arg::Value(v)) = self.args.get(at) { Some(*v) } else { None }
    }

    /// The number in this place.
    pub fn number(&self, at: usize) -> Option<f64> {
        if let Some(Arg::Literal(Literal::Number(x))) = self.args.get(at) { Some(*x) } else { None }
    }

    /// The whole numbers in this place.
    pub fn ints(&self, at: usize) -> Option<&[i64]> {
        if let Some(Arg::Literal(Literal::Ints(list))) = self.args.get(at) { Some(list) } else { None }
    }
}

/// How a piece came to be recognized: terms, each equal to the one before by one equation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The piece as the file spells it.
    pub spelled: String,
    /// What is equal to it; the last is the op. No steps where the file has the op itself.
    pub steps: Vec<EqualTerm>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EqualTerm {
    /// The name of the equation.
    pub equation: String,
    /// Whether its right side was replaced by its left side.
    pub backward: bool,
    /// The whole term after it.
    pub term: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.spelled)?;
        for EqualTerm { equation, backward, term } in &self.steps {
            let way = if *backward { ", from right to left" } else { "" };
            write!(f, "\n= {term}   by {equation}{way}")?;
        }
        Ok(())
    }
}
