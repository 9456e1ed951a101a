//! Real forms: what is kept of terms that are the same over the reals. `lemmas` finds them.

use crate::terms::align::Class;
use crate::terms::arg::Arg;
use crate::terms::name::TermName;
use crate::terms::view::View;
use std::collections::BTreeMap;

/// A real form, and the largest relative difference between a constant in it and the one that a rule asks for.
#[derive(Clone, Debug)]
pub(crate) struct RealForm {
    pub(crate) term: u32,
    /// The axes of the term that it is a form of, along those of this one; `None` if they are the same.
    pub(crate) view: Option<View>,
    pub(crate) factor: f64,
    pub(crate) bound: f64,
}

pub(crate) fn as_is(term: u32) -> RealForm {
    RealForm { term, view: None, factor: 1.0, bound: 0.0 }
}

/// What two sums of products must have in common: everything but the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Core {
    /// The op and what it is told; `None` for scales alone.
    pub(crate) op: Option<(TermName, Vec<u8>)>,
    pub(crate) x: Arg,
    pub(crate) over: Vec<i64>,
    pub(crate) class: Vec<Class>,
    /// The common axes that the weights have, and their own extents.
    pub(crate) axes: Vec<u32>,
    pub(crate) own: Vec<i64>,
}

/// Terms of the input by their core, each with its real form and the difference in it, and by their real form.
#[derive(Debug, Default)]
pub(crate) struct Cores {
    pub(crate) products: BTreeMap<u64, Vec<(Core, u32, u32, f64)>>,
    pub(crate) forms: BTreeMap<u32, Known>,
    /// The same by what a number is times in the real form, and the number.
    pub(crate) parts: BTreeMap<u32, (Known, f64)>,
}

/// A term of the input by its real form, and how its axes lie along those of the form, if not as they are.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) term: u32,
    pub(crate) view: Option<View>,
    pub(crate) bound: f64,
}
