//! Equations between pieces of a graph, by which one is recognized however a file spells it.
//!
//! Both sides are terms: an op with its operands, then what it is told. `?x` is a variable, `0.5` a number, `[-1]` whole numbers. Ops
//! are those of ONNX, each in one spelling (crate `relayout-equations` lists them); any other name is one that the equation gives.

use crate::Numerics;
use std::fmt;

/// What is equal: whatever is the left side is the right side too, where the conditions hold.
#[derive(Clone, Copy, Debug)]
pub struct Equation {
    /// Its name.
    pub name: &'static str,
    /// What is looked for.
    pub left: &'static str,
    /// What that is equal to.
    pub right: &'static str,
    /// Where it holds.
    pub when: &'static [When],
    /// Whether both sides are equal bit by bit.
    pub numerics: Numerics,
}

/// A condition on what variables stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// One number.
    Number(&'static str),
    /// This number, within one part in a million.
    Near(&'static str, f64),
    /// A number above zero.
    Positive(&'static str),
    /// A tensor of floats of 32 bits, or of one of the types of 16.
    Float(&'static str),
    /// Zeros.
    Zeros(&'static str),
    /// As many axes.
    Rank(&'static str, usize),
    /// A shape of as many axes.
    RankOfShape(&'static str, usize),
    /// A tensor that broadcasts into the other without making it larger.
    Within(&'static str, &'static str),
    /// The shape is the tensor's own.
    IsShapeOf(&'static str, &'static str),
    /// The axes of two tensors are the same but for the last two.
    SameBatch(&'static str, &'static str),
    /// The shape has the axes of the second, the last one of which is that of the third.
    RowsAndColumns(&'static str, &'static str, &'static str),
    /// The number is one over the extent of the tensor along the axes.
    OneOverExtent(&'static str, &'static str, &'static str),
    /// The tensor is `[images, channels, ...]`, the shape `[images, groups, ...]`.
    Groups(&'static str, &'static str),
    /// A permutation that exchanges the last two axes and leaves all before them.
    TurnsMatrices(&'static str),
    /// The axes of the tensor are the shape's, the first two of which are one axis in the shape: heads in the batch.
    MergesHeads(&'static str, &'static str),
    /// A constant with an entry per entry of the last axis of the other, its other axes of extent 1.
    PerLast(&'static str, &'static str),
    /// The last axis of the shape is that of the tensor.
    KeepsLast(&'static str, &'static str),
}

impl When {
    /// The variables that it is about.
    pub fn variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        let (first, rest) = match *self {
            When::Number(a)
            | When::Near(a, _)
            | When::Positive(a)
            | When::Float(a)
            | When::Zeros(a)
            | When::Rank(a, _)
            | When::RankOfShape(a, _)
            | When::TurnsMatrices(a) => (a, [None, None]),
            When::Within(a, b)
            | When::IsShapeOf(a, b)
            | When::SameBatch(a, b)
            | When::Groups(a, b)
            | When::MergesHeads(a, b)
            | When::PerLast(a, b)
            | When::KeepsLast(a, b) => (a, [Some(b), None]),
            When::OneOverExtent(a, b, c) | When::RowsAndColumns(a, b, c) => (a, [Some(b), Some(c)]),
        };
        std::iter::once(first).chain(rest.into_iter().flatten())
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Number(x) => write!(f, "{x} is a number"),
            When::Near(x, near) => write!(f, "{x} is {near}"),
            When::Positive(x) => write!(f, "{x} is a number above 0"),
            When::Float(x) => write!(f, "{x} is float32, float16 or bfloat16"),
            When::Zeros(x) => write!(f, "{x} is zeros"),
            When::Rank(x, rank) | When::RankOfShape(x, rank) => write!(f, "{x} has {rank} axes"),
            When::Within(a, b) => write!(f, "{a} broadcasts into {b}"),
            When::IsShapeOf(a, b) => write!(f, "{a} is the shape of {b}"),
            When::SameBatch(a, b) => write!(f, "{a} and {b} have one batch"),
            When::RowsAndColumns(d, a, b) => write!(f, "{d} has the rows of {a} and the columns of {b}"),
            When::OneOverExtent(a, b, c) => write!(f, "{a} is one over the extent of {b} along {c}"),
            When::Groups(a, b) => write!(f, "{b} has groups of the channels of {a}"),
            When::TurnsMatrices(x) => write!(f, "{x} exchanges the last two axes"),
            When::MergesHeads(x, dims) => write!(f, "{dims} has the first two axes of {x} as one"),
            When::KeepsLast(a, b) => write!(f, "{a} has the last axis of {b}"),
            When::PerLast(a, b) => write!(f, "{a} is a constant with an entry per entry of the last axis of {b}"),
        }
    }
}
