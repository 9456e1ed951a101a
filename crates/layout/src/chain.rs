//! Chains: the parts of an axis, or of several axes read as one number, most significant first.
//!
//! Whether a reshape is free is decided here, for layouts ([`blocks`](super::blocks)) and for views of a storage
//! ([`strided`](super::strided)) alike: parts that continue each other are one, and a part is cut where an axis of the
//! result begins. The two differ in what a part knows of its place, so in when it continues another one and in where
//! it can be cut.

use super::Refusal;
use crate::dim::Dim;

/// A part of a chain.
pub(super) trait Link: Sized {
    /// Values that it has.
    fn values(&self) -> &Dim;

    /// Takes the next part in if it continues this one; says whether it did.
    fn join(&mut self, next: &Self) -> Result<bool, Refusal>;
}

/// Joins the parts that continue each other.
pub(super) fn merge<L: Link>(chain: Vec<L>) -> Result<Vec<L>, Refusal> {
    let mut merged: Vec<L> = Vec::with_capacity(chain.len());
    for link in chain {
        let joined = match merged.last_mut() {
            Some(before) => before.join(&link)?,
            None => false,
        };
        if !joined {
            merged.push(link);
        }
    }
    Ok(merged)
}

/// Takes `need` values off the inner end. `cut` takes a part and the values that its inner half is to have.
pub(super) fn take<L: Link>(
    chain: &mut Vec<L>,
    mut need: Dim,
    mut cut: impl FnMut(L, &Dim) -> Result<(L, L), Refusal>,
) -> Result<Vec<L>, Refusal> {
    let mut taken = Vec::new();
    while !need.is_one() {
        let link = chain.pop().ok_or(Refusal::Overflow)?;
        if let Some(rest) = need.exact_div(link.values()) {
            need = rest;
            taken.push(link);
        } else {
            let (outer, inner) = cut(link, &need)?;
            chain.push(outer);
            taken.push(inner);
            need = Dim::ONE;
        }
    }
    taken.reverse();
    Ok(taken)
}
