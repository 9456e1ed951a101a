//! What is known of a class of equal terms.

use crate::term::{Head, Shaping, Term};
use egg::{Analysis, DidMerge, EGraph, Id};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::ValueId;
use std::sync::Arc;

/// An e-graph of terms.
pub type Terms = EGraph<Term, Facts>;

/// The analysis of classes.
#[derive(Clone, Debug, Default)]
pub struct Facts;

/// What is known of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The number, axes or shape that it is.
    pub literal: Option<Head>,
    /// Type of its elements.
    pub dtype: Option<DType>,
    /// Its shape.
    pub shape: Option<Arc<[Dim]>>,
    /// Whether a file has it as a constant, a number aside.
    pub constant: bool,
    /// Whether it is zeros.
    pub zeros: bool,
    /// The values of the file that are it, in the order in which they were read.
    pub values: Vec<ValueId>,
}

impl Known {
    /// The number that it is.
    pub fn number(&self) -> Option<f64> {
        self.literal.as_ref()?.as_number()
    }

    /// The axes, or other whole numbers, that it is.
    pub fn ints(&self) -> Option<&[i64]> {
        if let Some(Head::Ints(list)) = &self.literal { Some(list) } else { None }
    }

    /// The shape that it is as a literal.
    pub fn dims(&self) -> Option<&[Dim]> {
        if let Some(Head::Dims(dims)) = &self.literal { Some(dims) } else { None }
    }

    /// Number of axes.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(|shape| shape.len())
    }
}

impl Analysis<Term> for Facts {
    type Data = Known;

    fn make(terms: &mut Terms, term: &Term, _: Id) -> Known {
        if term.head.is_literal() {
            return Known { literal: Some(term.head.clone()), ..Known::default() };
        }
        let Some(op) = term.head.info() else { return Known::default() };
        let args: Vec<&Known> = term.args.iter().map(|&id| &terms[id].data).collect();
        let dtype = args.iter().find_map(|fact| fact.dtype);
        Known { dtype, shape: shape(op.shaping, &args), ..Known::default() }
    }

    fn merge(&mut self, to: &mut Known, from: Known) -> DidMerge {
        let before = to.clone();
        let other = from.clone();
        to.literal = to.literal.take().or(from.literal);
        to.dtype = to.dtype.or(from.dtype);
        to.shape = to.shape.take().or(from.shape);
        to.constant |= from.constant;
        to.zeros |= from.zeros;
        to.values.extend(from.values);
        to.values.sort_unstable();
        to.values.dedup();
        DidMerge(*to != before, *to != other)
    }
}

/// The shape of a result, if it follows.
fn shape(shaping: Shaping, args: &[&Known]) -> Option<Arc<[Dim]>> {
    let first = args.first()?;
    match shaping {
        Shaping::Same => first.shape.clone(),
        Shaping::Told => args.get(1)?.dims().map(Arc::from),
        Shaping::Turned => {
            let (from, perm) = (first.shape.as_ref()?, args.get(1)?.ints()?);
            perm.iter().map(|&axis| from.get(usize::try_from(axis).ok()?).cloned()).collect()
        }
        Shaping::Reduced => {
            let (from, axes) = (first.shape.as_ref()?, args.get(1)?.ints()?);
            let rank = from.len() as i64;
            let of = |(axis, dim): (i64, &Dim)| if axes.contains(&(axis - rank)) { Dim::ONE } else { dim.clone() };
            Some((0..).zip(from.iter()).map(of).collect())
        }
        Shaping::Broadcast => {
            let shapes = args.iter().filter(|fact| fact.number().is_none()).map(|fact| fact.shape.clone());
            let shapes: Vec<Arc<[Dim]>> = shapes.collect::<Option<_>>()?;
            shapes.iter().skip(1).try_fold(shapes.first()?.clone(), |all, one| broadcast(&all, one))
        }
        Shaping::Product => product(first.shape.as_ref()?, args.get(1)?.shape.as_ref()?),
    }
}

/// Two shapes, broadcast together as ONNX does it.
fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Arc<[Dim]>> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let (alone, both) = long.split_at(long.len() - short.len());
    let pairs = both.iter().zip(short);
    let joined = pairs.map(|(a, b)| match () {
        () if a == b || b.is_one() => Some(a.clone()),
        () if a.is_one() => Some(b.clone()),
        () => None,
    });
    alone.iter().cloned().map(Some).chain(joined).collect()
}

/// The shape of a product of matrices, of two axes at least.
fn product(a: &[Dim], b: &[Dim]) -> Option<Arc<[Dim]>> {
    let ([of_a @ .., rows, inner], [of_b @ .., rest, columns]) = (a, b) else { return None };
    let batch = broadcast(of_a, of_b).filter(|_| inner == rest)?;
    Some(batch.iter().chain([rows, columns]).cloned().collect())
}
