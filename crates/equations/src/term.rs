//! Terms: the nodes of an e-graph.
//!
//! A term is an op of its operands and of *literals*: numbers, axes and shapes, which in a file are attributes or constants. Operands
//! come first. Ops are those of ONNX in one spelling each ([`OPS`]), and those that equations give a name to: such as
//! `Attention` of queries, keys with a column per position, values, and what scores are multiplied with.

use egg::{FromOp, Id, Language};
use relayout_ir::dim::Dim;
use relayout_target_api::Literal;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// One node of an e-graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// What it is.
    pub head: Head,
    /// Operands, then literals.
    pub args: SmallVec<[Id; 4]>,
}

/// What a term is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Head {
    /// A value of the file that is not looked into.
    Value(u32),
    /// A number, by its bits.
    Number(u64),
    /// Whole numbers, such as axes.
    Ints(Arc<[i64]>),
    /// A shape.
    Dims(Arc<[Dim]>),
    /// An op of ONNX, by its place in [`OPS`].
    Op(u16),
    /// An op that equations give a name to.
    Named(Arc<str>),
    /// A function of literals, by its place among all of them. Only right sides have it; it is computed as they are written.
    Function(u16),
}

/// What an operand or literal of an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tensor.
    Value,
    /// A number.
    Number,
    /// Whole numbers.
    Ints,
    /// A shape.
    Dims,
}

/// How the shape of a result follows from operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaping {
    /// As the first operand.
    Same,
    /// All operands broadcast together.
    Broadcast,
    /// A product of matrices.
    Product,
    /// The first operand in the order that the literal says.
    Turned,
    /// What the literal says.
    Told,
    /// The first operand with these axes of extent 1.
    Reduced,
}

/// An op as terms have it.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The name.
    pub name: &'static str,
    /// Its operands and literals.
    pub takes: &'static [Kind],
    /// The shape of its result.
    pub shaping: Shaping,
}

const fn op(name: &'static str, takes: &'static [Kind], shaping: Shaping) -> OpInfo {
    OpInfo { name, takes, shaping }
}

use Kind::{Dims, Ints, Number, Value};

/// The ops. Axes count from the end, so `[-1]` is the last one; reductions keep the axes that they take.
pub const OPS: &[OpInfo] = &[
    op("Abs", &[Value], Shaping::Same),
    op("Add", &[Value, Value], Shaping::Broadcast),
    op("Clip", &[Value, Number, Number], Shaping::Same),
    op("Div", &[Value, Value], Shaping::Broadcast),
    op("Erf", &[Value], Shaping::Same),
    op("Exp", &[Value], Shaping::Same),
    op("HardSigmoid", &[Value, Number, Number], Shaping::Same),
    op("InstanceNormalization", &[Value, Value, Value, Number], Shaping::Same),
    op("MatMul", &[Value, Value], Shaping::Product),
    op("Max", &[Value, Value], Shaping::Broadcast),
    op("Min", &[Value, Value], Shaping::Broadcast),
    op("Mul", &[Value, Value], Shaping::Broadcast),
    op("Neg", &[Value], Shaping::Same),
    op("Pow", &[Value, Value], Shaping::Broadcast),
    op("Reciprocal", &[Value], Shaping::Same),
    op("ReduceMax", &[Value, Ints], Shaping::Reduced),
    op("ReduceMean", &[Value, Ints], Shaping::Reduced),
    op("ReduceSum", &[Value, Ints], Shaping::Reduced),
    op("Relu", &[Value], Shaping::Same),
    op("Reshape", &[Value, Dims], Shaping::Told),
    op("Sigmoid", &[Value], Shaping::Same),
    op("Softmax", &[Value, Ints], Shaping::Same),
    op("Sqrt", &[Value], Shaping::Same),
    op("Sub", &[Value, Value], Shaping::Broadcast),
    op("Tanh", &[Value], Shaping::Same),
    op("Transpose", &[Value, Ints], Shaping::Turned),
    // No ops of files, but parts of several: of mean 0 and variance 1 along axes, and of mean square 1. The number is added to the
    // variance or to the mean square.
    op("Normalized", &[Value, Ints, Number], Shaping::Same),
    op("RootNormalized", &[Value, Ints, Number], Shaping::Same),
];

/// A function of literals.
pub(crate) type Function = fn(&[&Head]) -> Option<Head>;

/// Functions that right sides may have.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("inverse", |args| Some(Head::number(1.0 / args.first()?.as_number()?))),
    ("minus", |args| Some(Head::number(-args.first()?.as_number()?))),
    ("square", |args| Some(Head::number(args.first()?.as_number()?.powi(2)))),
    ("times", |args| Some(Head::number(args.first()?.as_number()? * args.get(1)?.as_number()?))),
    ("plus", |args| Some(Head::number(args.first()?.as_number()? + args.get(1)?.as_number()?))),
    ("then", then),
    (
        "second",
        |args| if let [Head::Dims(dims)] = args { Some(Head::Ints([dims.get(1)?.as_const()?].into())) } else { None },
    ),
];

/// One permutation, then the other.
fn then(args: &[&Head]) -> Option<Head> {
    let [Head::Ints(first), Head::Ints(second)] = args else { return None };
    let entry = |&at: &i64| first.get(usize::try_from(at).ok()?).copied();
    Some(Head::Ints(second.iter().map(entry).collect::<Option<_>>()?))
}

impl Head {
    /// A number.
    pub fn number(x: f64) -> Head {
        // Of the two zeros one.
        Head::Number((x + 0.0).to_bits())
    }

    /// The number that it is.
    pub fn as_number(&self) -> Option<f64> {
        if let Head::Number(bits) = self { Some(f64::from_bits(*bits)) } else { None }
    }

    /// What it says, if it is a literal.
    pub fn as_literal(&self) -> Option<Literal> {
        match self {
            Head::Number(bits) => Some(Literal::Number(f64::from_bits(*bits))),
            Head::Ints(list) => Some(Literal::Ints(list.to_vec())),
            Head::Dims(dims) => Some(Literal::Dims(dims.to_vec())),
            _ => None,
        }
    }

    /// Whether it is a literal.
    pub fn is_literal(&self) -> bool {
        matches!(self, Head::Number(_) | Head::Ints(_) | Head::Dims(_))
    }

    /// The op of this name.
    pub fn op(name: &str) -> Option<Head> {
        let at = OPS.iter().position(|op| op.name == name)?;
        u16::try_from(at).ok().map(Head::Op)
    }

    /// Whether it is an op.
    pub fn is_op(&self) -> bool {
        matches!(self, Head::Op(_) | Head::Named(_))
    }

    /// The name of the op that it is.
    pub fn name(&self) -> Option<&str> {
        if let Head::Named(name) = self { Some(name) } else { self.info().map(|op| op.name) }
    }

    /// What it is an op of.
    pub fn info(&self) -> Option<&'static OpInfo> {
        if let Head::Op(at) = self { OPS.get(usize::from(*at)) } else { None }
    }
}

impl Term {
    /// A term without arguments.
    pub fn leaf(head: Head) -> Term {
        Term { head, args: SmallVec::new() }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Head::Value(v) => write!(f, "v{v}"),
            Head::Number(bits) => write!(f, "{}", f64::from_bits(*bits)),
            Head::Ints(list) => write!(f, "[{}]", joined(list)),
            Head::Dims(dims) => write!(f, "<{}>", joined(dims)),
            Head::Named(name) => f.write_str(name),
            Head::Op(at) => f.write_str(OPS.get(usize::from(*at)).map_or("?", |op| op.name)),
            Head::Function(at) => f.write_str(FUNCTIONS.get(usize::from(*at)).map_or("?", |(name, _)| name)),
        }
    }
}

fn joined(list: &[impl fmt::Display]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.head, f)
    }
}

impl Language for Term {
    type Discriminant = (Head, usize);

    fn discriminant(&self) -> (Head, usize) {
        (self.head.clone(), self.args.len())
    }

    fn matches(&self, other: &Term) -> bool {
        self.head == other.head && self.args.len() == other.args.len()
    }

    fn children(&self) -> &[Id] {
        &self.args
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.args
    }
}

/// Text that is no term.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` with {count} arguments is no op, no function and no literal")]
pub struct NoTerm {
    text: String,
    count: usize,
}

impl FromOp for Term {
    type Error = NoTerm;

    fn from_op(text: &str, args: Vec<Id>) -> Result<Term, NoTerm> {
        let none = || NoTerm { text: text.to_owned(), count: args.len() };
        let literal = || {
            if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let list: Option<Vec<i64>> = inner.split(',').map(|x| x.parse().ok()).collect();
                return list.map(|list| Head::Ints(list.into()));
            }
            text.parse::<f64>().ok().map(Head::number)
        };
        let function = || {
            let at = FUNCTIONS.iter().position(|(name, _)| *name == text)?;
            u16::try_from(at).ok().map(Head::Function)
        };
        let named = || text.starts_with(char::is_uppercase).then(|| Head::Named(text.into()));
        let head = match Head::op(text) {
            Some(op) => op.info().is_some_and(|op| op.takes.len() == args.len()).then_some(op),
            None if args.is_empty() => literal(),
            None => function().or_else(named),
        };
        head.map(|head| Term { head, args: args.iter().copied().collect() }).ok_or_else(none)
    }
}
