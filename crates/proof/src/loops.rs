//! Loops: what one round makes of the values that it carries, as terms of names for these values.
//!
//! Each carried value is a name over the axes of what the first one is made of, seen as that is seen. So a loop whose values lie
//! otherwise from the start on is the same term. Names count loops from the outside: no name is seen outside of its loop.

use crate::eval::{Machine, Scope, Values};
use crate::model::Graph;
use crate::term::{Op, Term};
use crate::value::{Source, Value};
use crate::view::{self, Digit, View, normal};
use std::rc::Rc;

const BOOL: u8 = 9;

/// One carried value: the name for it, and the axes of its term in those of the value.
struct Carried {
    name: Value,
    inverse: View,
}

impl Machine {
    /// What a Loop carries out of its last round. `inputs` are the number of rounds, the condition, and the first carried values.
    pub(crate) fn repeated(
        &mut self,
        scope: &Scope<'_>,
        body: &Rc<Graph>,
        inputs: &[Option<Value>],
        values: &Values,
    ) -> Result<Vec<Option<Value>>, String> {
        let [rounds, condition, first @ ..] = inputs else { return Err("it has no operands".to_owned()) };
        let first: Vec<Value> = first.iter().cloned().collect::<Option<_>>().ok_or("a carried value is absent")?;
        if body.inputs.len() != first.len() + 2 || body.outputs.len() != first.len() + 1 {
            return Err("the checker does not know loops that collect values".to_owned());
        }
        let inner = scope.inside(values);
        let depth = inner.depth();
        let mut made = Values::default();
        for (at, (input, dtype)) in body.inputs.iter().zip([7, BOOL]).enumerate() {
            made.insert(input.name.clone(), self.named(&format!("{depth} {at}"), &[], dtype));
        }
        let mut carried = Vec::new();
        for (at, (value, input)) in first.iter().zip(&body.inputs[2..]).enumerate() {
            let one = self.carried(value, depth, at + 2).ok_or("a carried value can't be followed")?;
            made.insert(input.name.clone(), one.name.clone());
            carried.push(one);
        }
        self.body(&inner, body, &mut made).map_err(|r| format!("in its body: {}: {}", r.node, r.why))?;
        let results: Option<Vec<Value>> = body.outputs.iter().map(|name| inner.find(&made, name)).collect();
        let results = results.ok_or("nothing makes a result of its body")?;
        let mut term = Term { op: "Loop".to_owned(), ..Term::default() };
        let ends = [rounds.as_ref(), condition.as_ref(), results.first()];
        for value in ends {
            let arg = self.terms.plain(value).ok_or("an operand can't be followed")?;
            term.args.push(arg);
        }
        for ((one, value), result) in carried.iter().zip(&first).zip(&results[1..]) {
            let alike = result.dtype == value.dtype && result.shape() == value.shape();
            let next = view::composed(&one.inverse, &result.view).filter(|_| alike);
            let next = Value { view: next.ok_or("a carried value changes its shape")?, ..result.clone() };
            let start = view::composed(&one.inverse, &value.view).ok_or("a carried value can't be followed")?;
            for value in [Value { view: start, ..value.clone() }, next] {
                term.args.push(self.terms.plain(Some(&value)).ok_or("a carried value can't be followed")?);
            }
        }
        Ok(carried.iter().enumerate().map(|(at, one)| Some(self.after(&term, one, at))).collect())
    }

    /// What a value that is carried is after the last round.
    fn after(&mut self, term: &Term, one: &Carried, at: usize) -> Value {
        let base = match one.name.source {
            Source::Term(name) => self.terms.get(name).base.clone(),
            Source::Constant { .. } => Vec::new(),
        };
        let attrs = at.to_le_bytes().to_vec();
        let number = self.terms.intern(Term { attrs, base, dtype: one.name.dtype, ..term.clone() });
        Value { source: Source::Term(number), ..one.name.clone() }
    }

    /// A name for what nobody knows.
    fn named(&mut self, name: &str, base: &[i64], dtype: u8) -> Value {
        let op = Op { name: "carried", attrs: name.as_bytes(), dtype };
        let term =
            Term { op: op.name.to_owned(), attrs: op.attrs.to_vec(), base: base.to_vec(), dtype, ..Term::default() };
        let number = self.terms.intern(term);
        let axis = |(axis, &extent): (usize, &i64)| normal([Digit { axis: axis as u32, extent, stride: 1 }]);
        Value { source: Source::Term(number), view: base.iter().enumerate().map(axis).collect(), dtype }
    }

    fn carried(&mut self, value: &Value, depth: usize, at: usize) -> Option<Carried> {
        let (base, seen) = match value.source {
            Source::Term(term) => (self.terms.get(term).base.clone(), value.view.clone()),
            Source::Constant { .. } => view::identity(&value.shape()),
        };
        let inverse = view::inverse(&seen, &base)?;
        let name = self.named(&format!("{depth} {at} {base:?}"), &base, value.dtype);
        Some(Carried { name: Value { view: seen, ..name }, inverse })
    }
}
