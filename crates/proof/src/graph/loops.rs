//! Loops: what one round makes of the values that it carries, as terms of names for these values.
//!
//! Each carried value is a name over the axes of what the first one is made of, seen as that is seen. So a loop whose values lie
//! otherwise from the start on is the same term. Names count loops from the outside: no name is seen outside of its loop.

use crate::files::model::{Graph, Node};
use crate::graph::eval::{BOOL, Machine, Scope, Values};
use crate::ops::{back, ordered};
use crate::terms::align::term_of;
use crate::terms::arg::Term;
use crate::terms::name::{Name, Own};
use crate::terms::value::{Source, Value, count_of};
use crate::terms::view::{self, Digit, REPEAT, View, normal};
use std::rc::Rc;

/// One carried value: the name for it, and the axes of its term in those of the value. `None` if nothing is known of its shape.
pub(crate) struct Carried {
    pub(crate) name: Value,
    inverse: Option<View>,
}

impl Carried {
    /// A value of its shape as the axes of its name see it.
    pub(crate) fn seen(&self, value: &Value) -> Result<Value, String> {
        let Some(inverse) = &self.inverse else { return Ok(value.clone()) };
        let view = view::composed(inverse, &value.view).ok_or("a carried value can't be followed")?;
        Ok(Value { view, ..value.clone() })
    }
}

/// What one round makes of its names.
struct Round {
    /// The name for the condition.
    condition: Value,
    carried: Vec<Carried>,
    /// The condition, then the carried values, then what is collected.
    results: Vec<Value>,
}

impl Machine {
    /// What a Loop carries out of its last round, and what it collects. `inputs` are the number of rounds, the condition, and the first
    /// carried values.
    pub(crate) fn repeated(
        &mut self,
        scope: &Scope<'_>,
        (node, body): (&Node, &Rc<Graph>),
        inputs: &[Option<Value>],
        values: &Values,
    ) -> Result<Vec<Option<Value>>, String> {
        let [rounds, condition, first @ ..] = inputs else { return Err("it has no operands".to_owned()) };
        let first: Vec<Value> = first.iter().cloned().collect::<Option<_>>().ok_or("a carried value is absent")?;
        if body.inputs.len() != first.len() + 2 || body.outputs.len() <= first.len() {
            return Err("its body does not fit its operands".to_owned());
        }
        let mut free: Vec<bool> = first.iter().map(Value::is_opaque).collect();
        loop {
            let before = self.occurrences.clone();
            let made = self.round(scope, body, &first, values, &free);
            let changes = |round: &Round| {
                let of = round.carried.iter().zip(&first).zip(&round.results[1..]);
                of.map(|((one, value), next)| !stays(one, value, next)).collect::<Vec<bool>>()
            };
            // A value that changes its shape is one of which nothing is known.
            let more = match &made {
                Ok(round) => changes(round),
                Err(_) => vec![true; first.len()],
            };
            if free.iter().zip(&more).all(|(free, more)| *free || !more) {
                return self.after_all(node, [rounds.as_ref(), condition.as_ref()], &first, &made?);
            }
            free.iter_mut().zip(more).for_each(|(free, more)| *free |= more);
            self.occurrences = before;
        }
    }

    /// One round. Of those that are `free` no shape is known.
    fn round(
        &mut self,
        scope: &Scope<'_>,
        body: &Rc<Graph>,
        first: &[Value],
        values: &Values,
        free: &[bool],
    ) -> Result<Round, String> {
        let inner = scope.inside(values, "Loop.body");
        let depth = inner.depth();
        let mut made = Values::default();
        let [mut count, mut condition] =
            [7, BOOL].map(|dtype| self.named(&format!("{depth} {}", dtype == BOOL), &[], dtype));
        for (input, value) in body.inputs.iter().zip([&mut count, &mut condition]) {
            // Runtimes give a list of one number where the body declares one.
            let rank = input.dims.as_ref().map_or(0, Vec::len);
            value.view = Some(vec![Vec::new(); rank]).filter(|_| rank < 2).ok_or("its body counts in no number")?;
            made.insert(input.name.clone(), value.clone());
        }
        let mut carried = Vec::new();
        for (at, (value, input)) in first.iter().zip(&body.inputs[2..]).enumerate() {
            let one = if free[at] {
                Carried { name: self.unshaped_name(&format!("{depth} body {}", at + 2)), inverse: None }
            } else {
                self.carried(value, depth, at + 2).ok_or("a carried value can't be followed")?
            };
            made.insert(input.name.clone(), one.name.clone());
            carried.push(one);
        }
        self.body(&inner, body, &mut made).map_err(|r| format!("in its body: {}: {}", r.node, r.why))?;
        let results: Option<Vec<Value>> = body.outputs.iter().map(|name| inner.find(&made, name)).collect();
        Ok(Round { condition, carried, results: results.ok_or("nothing makes a result of its body")? })
    }

    /// The results of a loop, by what one round makes.
    fn after_all(
        &mut self,
        node: &Node,
        [rounds, condition]: [Option<&Value>; 2],
        first: &[Value],
        round: &Round,
    ) -> Result<Vec<Option<Value>>, String> {
        let attrs = first.len().to_le_bytes().to_vec();
        let mut term = Term { attrs, ..Term::of(Name::Model("Loop")) };
        let (next, collected) = round.results[1..].split_at(first.len());
        term.args = self.operands(&[rounds, condition, round.results.first()])?;
        for ((one, value), next) in round.carried.iter().zip(first).zip(next) {
            term.args.extend(self.operands(&[Some(&one.seen(value)?), Some(&one.seen(next)?)])?);
        }
        let count = rounds.and_then(|rounds| self.rounds(rounds));
        let known = count.filter(|_| self.runs_all(condition, round));
        // A loop may end before its last round. What holds for sizes holds for those in which it does not.
        let count = if self.sizes.given.is_some() { count } else { known };
        let whole: Vec<Value> = collected.iter().map(|one| self.as_made(one, count)).collect();
        term.args.extend(self.operands(&whole.iter().map(Some).collect::<Vec<_>>())?);
        let last = round.carried.iter().enumerate().map(|(at, one)| self.after(&term, one, at));
        let mut results: Vec<Option<Value>> = last.map(Some).collect();
        for (at, one) in collected.iter().enumerate() {
            let terms = self.terms.count();
            let all = self.collected(&term, first.len() + at, one, count)?;
            let is_new = term_of(&all).is_some_and(|made| made >= terms);
            if let (Some(count), None, true, Some(name)) = (count, known, is_new, node.outputs.get(first.len() + at)) {
                self.sizes.used.insert(format!("{name}[0]"), count);
            }
            results.push(Some(all));
        }
        Ok(results)
    }

    /// How many rounds a loop has at most: a number of the file, or an input of the model, which is one of the sizes then.
    fn rounds(&mut self, rounds: &Value) -> Option<i64> {
        if let Some(list) = rounds.as_ints() {
            return list.first().copied();
        }
        self.sizes.given.as_ref().filter(|_| rounds.count() == 1)?;
        let input = self.sizes.inputs.get(&term_of(rounds)?)?.clone();
        Some(self.sizes.of(&input))
    }

    /// Whether no round of a loop ends it.
    fn runs_all(&mut self, condition: Option<&Value>, round: &Round) -> bool {
        let holds = |value: &Value| value.dtype == BOOL && value.as_ints().is_some_and(|list| list == [1]);
        let Some(next) = round.results.first() else { return false };
        condition.is_none_or(holds) && (holds(next) || self.terms.same(next, &round.condition) == Some(true))
    }

    /// What a value that is carried is after the last round.
    pub(crate) fn after(&mut self, term: &Term, one: &Carried, at: usize) -> Value {
        let Source::Term(name) = one.name.source else { return self.part(term, at) };
        let base = self.terms.get(name).base.clone();
        let attrs = [term.attrs.as_slice(), &at.to_le_bytes()].concat();
        let number = self.terms.intern(Term { attrs, base, dtype: one.name.dtype, ..term.clone() });
        Value { source: Source::Term(number), ..one.name.clone() }
    }

    /// What is collected, as it is made, if it is known how many rounds there are: then the result is seen as each round's is seen.
    pub(crate) fn as_made(&self, one: &Value, count: Option<i64>) -> Value {
        match term_of(one).filter(|_| count.is_some_and(|count| count > 0)) {
            Some(term) => Value { view: view::identity(&self.terms.get(term).base).1, ..one.clone() },
            None => one.clone(),
        }
    }

    /// What is collected of so many rounds.
    pub(crate) fn collected(
        &mut self,
        term: &Term,
        at: usize,
        one: &Value,
        count: Option<i64>,
    ) -> Result<Value, String> {
        let Some(count) = count.filter(|count| *count > 0 && !one.is_opaque()) else { return Ok(self.part(term, at)) };
        count_of(&[&[count], one.shape().as_slice()].concat())?;
        let made = self.as_made(one, Some(count));
        let shape = [&[count], made.shape().as_slice()].concat();
        count_of(&shape)?;
        let (base, mut view) = view::identity(&shape);
        if !one.is_constant() {
            // The axes of the term have the same order behind that of rounds, which is none if it has one place.
            let first = u32::from(count != 1);
            let behind = |d: &Digit| Digit { axis: if d.axis == REPEAT { REPEAT } else { d.axis + first }, ..*d };
            view.truncate(1);
            view.extend(one.view.iter().map(|axis| axis.iter().map(behind).collect::<Vec<_>>()));
        }
        let attrs = [term.attrs.as_slice(), &at.to_le_bytes()].concat();
        let number = self.terms.intern(Term { attrs, base, dtype: one.dtype, ..term.clone() });
        Ok(Value { source: Source::Term(number), view, dtype: one.dtype })
    }

    /// A name for what nobody knows.
    pub(crate) fn named(&mut self, name: &str, base: &[i64], dtype: u8) -> Value {
        let carried = Term::of(Name::Own(Own::Carried));
        let term = Term { attrs: name.as_bytes().to_vec(), base: base.to_vec(), dtype, ..carried };
        let number = self.terms.intern(term);
        let axis = |(axis, &extent): (usize, &i64)| normal([Digit { axis: axis as u32, extent, stride: 1 }]);
        Value { source: Source::Term(number), view: base.iter().enumerate().map(axis).collect(), dtype }
    }

    /// The name for a carried value. One that repeats elements has a name over axes of its own, in the order of what it is made of.
    pub(crate) fn carried(&mut self, value: &Value, depth: usize, at: usize) -> Option<Carried> {
        let whole = match value.source {
            Source::Term(term) => Some((self.terms.get(term).base.clone(), value.view.clone())),
            Source::Constant { .. } => None,
            Source::Opaque(_) => return None,
        };
        let whole = whole.and_then(|(base, seen)| Some((view::inverse(&seen, &base)?, base, seen)));
        let (inverse, base, seen) = if let Some(whole) = whole {
            whole
        } else {
            let order = ordered(&[value], (0..value.rank()).collect());
            let (base, seen) = view::identity(&value.permuted(&order)?.shape());
            let seen = view::permute(&seen, &back(&order))?;
            (view::inverse(&seen, &base)?, base, seen)
        };
        let name = self.named(&format!("{depth} {at} {base:?}"), &base, value.dtype);
        Some(Carried { name: Value { view: seen, ..name }, inverse: Some(inverse) })
    }
}

/// Whether a body declares its count or its condition as a list, which the standard does not allow.
pub(crate) fn is_listed(body: &Graph) -> bool {
    body.inputs.iter().take(2).any(|input| input.dims.as_ref().is_some_and(|dims| !dims.is_empty()))
}

/// Whether a round leaves the shape of a carried value as it is.
pub(crate) fn stays(one: &Carried, value: &Value, next: &Value) -> bool {
    let alike = next.dtype == value.dtype && next.shape() == value.shape() && !next.is_opaque();
    alike && one.inverse.as_ref().is_none_or(|inverse| view::composed(inverse, &next.view).is_some())
}
