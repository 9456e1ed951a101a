//! Sums, products and bounds of what was summed, multiplied or bounded before are those of all of it, in any order: the standard tells none.

use crate::lemmas::real::{operand, through};
use crate::terms::align::{Class, term_of};
use crate::terms::arg::{Op, Term};
use crate::terms::name::{Name, Own};
use crate::terms::pointwise::{contract, together};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, REPEAT, View};
use std::rc::Rc;

/// Those that take what they made for what it was made of.
const AGAIN: &[&str] = &["ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"];

/// A reduction of these axes, which stay with one place, if its operand is one of the same op, or a sum of products or a product.
pub(super) fn of(terms: &mut Terms, op: &Op<'_>, x: &Value, axes: &[usize]) -> Option<Value> {
    let made = Rc::clone(terms.get(term_of(x)?));
    let repeats = |axis: &usize| x.view[*axis].iter().any(|digit| digit.axis == REPEAT);
    if made.dtype != x.dtype || axes.iter().any(repeats) {
        return None;
    }
    let sums = op.name == Name::Model("ReduceSum");
    match made.name() {
        Name::Model(name) if op.name == Name::Model(name) && AGAIN.contains(&name) && made.attrs == op.attrs => {
            let (inner, all) = before(terms, x, &made, 0, axes)?;
            Some(cut(together(terms, op, &[&inner], &all, true).ok()?, x.rank()))
        }
        Name::Own(Own::Contract) if sums => {
            let [(a, all), (b, _)] = [before(terms, x, &made, 0, axes)?, before(terms, x, &made, 1, axes)?];
            let shape = widest(&a, &b);
            Some(cut(contract(terms, &shape, (&a, a.view.clone()), (&b, b.view.clone()), &all).ok()?, x.rank()))
        }
        Name::Model("Mul") if sums && made.args.len() == 2 => {
            let [a, b] = [through(terms, x, &made, 0)?, through(terms, x, &made, 1)?];
            let both = !a.is_constant() && !b.is_constant();
            both.then(|| contract(terms, &x.shape(), (&a, a.view.clone()), (&b, b.view.clone()), axes).ok())?
        }
        _ => None,
    }
}

/// An operand of a reduction as it was before, with the axes that are gone behind those of what it made, and all axes that go.
fn before(terms: &Terms, x: &Value, made: &Term, at: usize, axes: &[usize]) -> Option<(Value, Vec<usize>)> {
    let inner = operand(terms, made, at)?.expanded(&made.over)?;
    let (mut gone, mut kept) = (Vec::new(), View::new());
    for (digits, class) in inner.view.iter().zip(&made.class) {
        if *class == Class::Acted { &mut gone } else { &mut kept }.push(digits.clone());
    }
    let mut view = view::composed(&x.view, &kept)?;
    let mut all = axes.to_vec();
    all.extend(view.len()..view.len() + gone.len());
    view.extend(gone);
    Some((Value { view, ..inner }, all))
}

fn widest(a: &Value, b: &Value) -> Vec<i64> {
    a.shape().into_iter().zip(b.shape()).map(|(a, b)| a.max(b)).collect()
}

/// The value without the axes behind its own.
fn cut(mut y: Value, rank: usize) -> Value {
    y.view.truncate(rank);
    y
}
