//! Terms of the input in the place of those that are the same over the reals.

use super::scales::{ROUNDINGS, unit};
use crate::terms::align::term_of;
use crate::terms::arg::{Arg, Term};
use crate::terms::name::Own;
use crate::terms::real::{Cores, RealForm, as_is};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use crate::terms::view;
use std::rc::Rc;

impl Terms {
    /// The value with a term of the input in the place of one that is the same over the reals.
    pub(crate) fn real(&mut self, value: Value) -> Value {
        let Some((bound, cores)) = self.input.clone() else { return value };
        let Some(term) = term_of(&value).filter(|term| *term >= bound) else { return value };
        let cores = cores.unwrap_or_else(|| {
            // While the forms of the input are written nothing is looked up in them.
            self.input = Some((bound, Some(Rc::default())));
            Rc::new(Cores::collect(self, bound))
        });
        self.input = Some((bound, Some(Rc::clone(&cores))));
        let Some(found) = cores.find(self, term, bound) else {
            return self.real_beneath(term, &value).unwrap_or(value);
        };
        let Some(view) = view::composed(&value.view, &found.view) else { return value };
        found.lemmas.iter().for_each(|lemma| self.by_lemma(lemma));
        self.held.bound = self.held.bound.max(found.bound);
        Value { source: Source::Term(found.term), view, ..value }
    }

    /// The value with a term of the input beneath joined axes or slots, where one is the same over the reals as what is there.
    fn real_beneath(&mut self, term: u32, value: &Value) -> Option<Value> {
        let layer = Rc::clone(self.get(term));
        let [Arg::Term { term: inner, reads, own }] = layer.args.as_slice() else { return None };
        (layer.is(Own::Flat) || layer.is(Own::Slots)).then_some(())?;
        let made = Rc::clone(self.get(*inner));
        let whole = Value { source: Source::Term(*inner), view: view::identity(&made.base).1, dtype: made.dtype };
        let found = self.real(whole.clone());
        let new = term_of(&found).filter(|new| new != inner && found.view == whole.view)?;
        (self.get(new).base == made.base).then_some(())?;
        let args = vec![Arg::Term { term: new, reads: reads.clone(), own: own.clone() }];
        let source = Source::Term(self.intern(Term { args, ..layer.as_ref().clone() }));
        Some(Value { source, ..value.clone() })
    }

    /// What the input has in the place of a value that a rule made, if its real form is one of the input's.
    pub(crate) fn known_form(&mut self, y: &Value) -> Option<Value> {
        let (bound, cores) = self.input.clone()?;
        let term = term_of(y).filter(|term| *term >= bound)?;
        let found = cores?.formed(self, &as_is(term), bound)?;
        let view = view::composed(&y.view, &found.view)?;
        self.held.bound = self.held.bound.max(found.bound);
        Some(Value { source: Source::Term(found.term), view, ..y.clone() })
    }

    /// The form as a multiple of a term of the input, if one has this form but for the factor.
    pub(crate) fn known_part(&self, form: &RealForm) -> Option<RealForm> {
        let (bound, cores) = self.input.as_ref()?;
        cores.as_ref().filter(|_| form.term >= *bound)?.part(self, form)
    }

    /// A number that was added before, if this one differs from it by no more than a few roundings, and the relative difference.
    pub(crate) fn near(&mut self, number: f64) -> Option<(f64, f64)> {
        let least = ROUNDINGS * unit(1)?;
        let difference = |known: f64| (known - number).abs();
        let known = self.addends.iter().copied().min_by(|a, b| difference(*a).total_cmp(&difference(*b)));
        if let Some(known) = known.filter(|known| difference(*known) <= least * known.abs()) {
            return Some((known, if difference(known) <= 0.0 { 0.0 } else { difference(known) / known.abs() }));
        }
        self.addends.push(number);
        Some((number, 0.0))
    }
}
