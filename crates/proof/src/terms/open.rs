//! Extents that differ from call to call, as terms have them.

use crate::terms::align::term_of;
use crate::terms::arg::{Acted, Op};
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::symbolic::LISTED;
use crate::terms::value::Value;
use crate::terms::view::{self, REPEAT};

impl Terms {
    /// Whether a number is 1 at least for all sizes.
    pub(crate) fn is_positive(&self, number: i64) -> bool {
        self.symbolic.as_ref().is_none_or(|symbolic| symbolic.is_positive(number))
    }

    /// Notes that a node fails if an axis of a value has another extent than this one. Only what the model is known to run counts.
    pub(crate) fn fixes(&mut self, value: &Value, axis: usize, want: i64) {
        let Some(have) = value.view.get(axis).map(|digits| view::extent(digits)) else { return };
        if let Some(symbolic) = &mut self.symbolic
            && symbolic.primes.contains(&have)
            && want > 0
            && !(symbolic.is_open(want) || symbolic.of_result || symbolic.bodies > 0)
        {
            let what = symbolic.described(have);
            symbolic.found.get_or_insert((what, want));
        }
        self.misfit(value, axis, want);
    }

    /// Whether an extent is so large at least wherever the model runs.
    pub(crate) fn has_places(&mut self, extent: i64, least: i64) -> bool {
        let Some(symbolic) = &mut self.symbolic else { return extent >= least };
        symbolic.is_positive(extent) && least <= 1 || symbolic.asks(vec![extent, -least])
    }

    /// Whether no axis of a value is empty wherever the model runs.
    pub(crate) fn is_full(&mut self, value: &Value) -> bool {
        self.symbolic.is_none()
            || value.shape().into_iter().all(|extent| !self.is_open(extent) || self.has_places(extent, 1))
    }

    /// All of the model was read.
    pub(crate) fn model_ends(&mut self) {
        self.symbolic.iter_mut().for_each(|symbolic| symbolic.of_result = true);
    }

    /// Whether an extent differs from call to call.
    pub(crate) fn is_open(&self, extent: i64) -> bool {
        self.symbolic.as_ref().is_some_and(|symbolic| symbolic.is_open(extent))
    }

    /// That an extent which was computed of numbers of the files is none that stands for another one.
    ///
    /// # Errors
    /// One that says that it is.
    pub(crate) fn closed(&self, extent: i64) -> Result<(), String> {
        let open = self.is_open(extent);
        (!open).then_some(()).ok_or_else(|| "its extent is a number that stands for another one".to_owned())
    }

    /// Whether any extent of a value does.
    pub(crate) fn has_open(&self, value: &Value) -> bool {
        self.symbolic.is_some() && value.view.iter().flatten().any(|digit| self.is_open(digit.extent))
    }

    /// The sum of extents and a number.
    pub(crate) fn sum_of(&mut self, extents: &[i64], more: i64) -> Option<i64> {
        match &mut self.symbolic {
            Some(symbolic) => symbolic.sum(extents, more),
            None => extents.iter().try_fold(more, |all, extent| all.checked_add(*extent)),
        }
    }

    /// `floor((extent + add) / by)`
    pub(crate) fn quotient_of(&mut self, extent: i64, add: i64, by: i64) -> Option<i64> {
        match &mut self.symbolic {
            Some(symbolic) => symbolic.quotient(extent, add, by),
            None => extent.checked_add(add)?.checked_div_euclid(by),
        }
    }

    /// Operands whose extents broadcast, or are the same, if the model runs, but for an axis: each brought to the extent that they become.
    pub(crate) fn stretched(&mut self, operands: &[&Value], but: Option<usize>) -> Option<Vec<Value>> {
        let rank = operands.iter().map(|value| value.rank()).max()?;
        let mut values: Vec<Value> = operands.iter().map(|value| (*value).clone()).collect();
        for back in (1..=rank).filter(|back| but != Some(rank - back)) {
            let extent = |value: &Value| value.rank().checked_sub(back).map(|axis| view::extent(&value.view[axis]));
            let extents = values.iter().filter_map(extent).collect();
            let out = self.symbolic.as_mut()?.common(extents)?;
            for value in values.iter_mut().filter(|value| extent(value).is_some_and(|own| own != 1 && own != out)) {
                let axis = value.rank() - back;
                let op = Op { name: Name::Own(Own::Stretched), attrs: &[], dtype: value.dtype };
                *value = self.along(&op, value, &[Acted { axis, told: vec![out], out }])?;
            }
        }
        Some(values)
    }

    /// Whether a constant is what digits of numbers of the files say, and repeats besides.
    pub(crate) fn is_closed(&self, constant: &Value) -> bool {
        let digits = constant.view.iter().flatten().filter(|digit| digit.axis != REPEAT);
        !constant.is_constant() || self.symbolic.is_none() || !digits.into_iter().any(|d| self.is_open(d.extent))
    }

    /// A list of numbers of which some are open extents, or a constant.
    pub(crate) fn list(&mut self, shape: &[i64], numbers: &[i64], dtype: u8) -> Option<Value> {
        if !numbers.iter().any(|number| self.is_open(*number)) {
            let narrow = |n: &i64| i32::try_from(*n).ok().map(i32::to_le_bytes);
            return match dtype {
                7 => Some(Value::ints(shape, numbers)),
                6 => Some(Value::constant(
                    6,
                    shape,
                    numbers.iter().map(narrow).collect::<Option<Vec<_>>>()?.concat().into(),
                )),
                _ => None,
            };
        }
        // What 32 bits do not hold is another number there.
        if dtype == 6 && numbers.iter().any(|n| !self.is_open(*n) && i32::try_from(*n).is_err()) {
            return None;
        }
        let attrs = format!("{numbers:?}").into_bytes();
        let made = self
            .placed(&Op { name: Name::Own(Own::Extents), attrs: &attrs, dtype }, &[], &[(shape.to_vec(), dtype)])?
            .pop()?;
        let term = term_of(&made)?;
        self.symbolic.as_mut()?.lists.insert(term, numbers.to_vec());
        Some(made)
    }

    /// The numbers of a list of extents, or of a constant; `None` for any other value.
    pub(crate) fn numbers_of(&self, value: &Value) -> Option<Vec<i64>> {
        let symbolic = self.symbolic.as_ref()?;
        if value.shape().iter().any(|extent| *extent > LISTED) || self.has_open(value) || value.count() > LISTED {
            return None;
        }
        let Some(term) = term_of(value) else {
            return value.as_ints().filter(|list| !list.iter().any(|number| symbolic.is_open(*number)));
        };
        let list = symbolic.lists.get(&term)?;
        let mut places = vec![0];
        for digit in value.view.iter().flatten() {
            let step = |place: &i64| (0..digit.extent).map(|n| place + n * digit.stride).collect::<Vec<_>>();
            places = places.iter().flat_map(step).collect();
        }
        places.into_iter().map(|place| list.get(usize::try_from(place).ok()?).copied()).collect()
    }

    /// Whether a value is a list of extents.
    pub(crate) fn is_list(&self, value: &Value) -> bool {
        let lists = self.symbolic.as_ref().map(|symbolic| &symbolic.lists);
        lists.zip(term_of(value)).is_some_and(|(lists, term)| lists.contains_key(&term))
    }
}
