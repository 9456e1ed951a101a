//! Lemmas 5 and 6: halves that are computed in floats of 32 bits.
//!
//! Every half is a float, so an op of halves that were made floats is, over the reals, the op of the halves. Where the result computes in
//! floats what the input computes in halves, the result is the one of the input, made floats. Making halves of these gives them back.
//! Over the reals, floats are also the halves that the input makes of them.

use crate::files::model::width;
use crate::terms::align::{Class, term_of};
use crate::terms::arg::{Arg, Term};
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use half::{bf16, f16};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

pub(crate) const FLOAT: u8 = 1;
pub(crate) const HALF: u8 = 10;
pub(crate) const DOUBLE: u8 = 11;
pub(crate) const BFLOAT16: u8 = 16;

pub(crate) const LEMMA: &str = "halves as floats";
pub(crate) const UNROUNDED: &str = "floats as their halves";

/// Ops that only bring elements elsewhere, and zeros, and numbers that nobody knows.
fn moves(term: &Term) -> bool {
    match term.name() {
        Name::Own(Own::Flat | Own::Slots | Own::Pick | Own::Routed) | Name::Model("Concat") => true,
        Name::Model("Pad") => term.attrs == b"constant",
        _ => false,
    }
}

/// Most moves over each other that are followed. Each costs a call inside of a call.
const LAYERS: usize = 64;

/// What was found of a term that is moved.
type Retyped = FxHashMap<u32, Option<u32>>;

/// The same movement of elements of another type.
fn retyped(
    terms: &mut Terms,
    (term, layers): (u32, usize),
    dtype: u8,
    found: &mut Retyped,
    inner: fn(&mut Terms, u32) -> Option<u32>,
) -> Option<u32> {
    if let Some(known) = found.get(&term) {
        return *known;
    }
    let made = Rc::clone(terms.get(term));
    let rounded = terms.halves.get(&term).copied().filter(|_| dtype == HALF);
    let moved = if rounded.is_some() {
        terms.by_lemma(UNROUNDED);
        rounded
    } else if moves(&made) {
        let mut arg = |arg: &Arg| match arg {
            Arg::Term { term, reads, own } if layers > 0 => {
                let term = retyped(terms, (*term, layers - 1), dtype, found, inner)?;
                Some(Arg::Term { term, reads: reads.clone(), own: own.clone() })
            }
            _ => None,
        };
        let args: Option<Vec<Arg>> = made.args.iter().map(&mut arg).collect();
        args.map(|args| terms.intern(Term { args, dtype, ..(*made).clone() }))
    } else {
        inner(terms, term)
    };
    found.insert(term, moved);
    moved
}

/// The halves that floats are made of.
pub(crate) fn narrow(terms: &mut Terms, x: &Value) -> Option<Value> {
    let term = term_of(x).filter(|_| x.dtype == FLOAT)?;
    let inner = |terms: &mut Terms, term| halves(terms, term);
    let source = Source::Term(retyped(terms, (term, LAYERS), HALF, &mut Retyped::default(), inner)?);
    Some(Value { source, dtype: HALF, ..x.clone() })
}

/// The halves that a Cast makes floats of, as they lie.
fn halves(terms: &Terms, term: u32) -> Option<u32> {
    of_cast(terms, terms.get(term)).filter(|&term| terms.get(term).dtype == HALF)
}

/// What a Cast makes floats of, as it lies.
fn of_cast(terms: &Terms, made: &Term) -> Option<u32> {
    let [Arg::Term { term, .. }] = made.args.as_slice() else { return None };
    (*made == cast(*term, terms.get(*term))).then_some(*term)
}

/// Most terms that are looked at for one of a narrow type. What is read by more than one op is looked at once for each.
const LOOKED_AT: usize = 256;

/// The term of a narrow type that a term is, made floats where its elements come from, if there is that term.
pub(crate) fn of_halves(terms: &Terms, made: &Term) -> Option<u32> {
    narrowed(terms, made, LAYERS, &mut { LOOKED_AT })
}

fn narrowed(terms: &Terms, made: &Term, layers: usize, left: &mut usize) -> Option<u32> {
    *left = left.checked_sub(1)?;
    if made.dtype != FLOAT {
        return None;
    }
    if !moves(made) {
        return of_cast(terms, made).filter(|&term| is_narrow(terms.get(term).dtype));
    }
    let mut args = Vec::with_capacity(made.args.len());
    for arg in &made.args {
        let Arg::Term { term, reads, own } = arg else { return None };
        let term = narrowed(terms, terms.get(*term), layers.checked_sub(1)?, left)?;
        args.push(Arg::Term { term, reads: reads.clone(), own: own.clone() });
    }
    let dtype = args
        .iter()
        .find_map(|arg| if let Arg::Term { term, .. } = arg { Some(terms.get(*term).dtype) } else { None })?;
    terms.known_as(&Term { args, dtype, ..made.clone() })
}

/// A term of a narrow type as floats.
pub(crate) fn made_floats(terms: &mut Terms, term: u32) -> u32 {
    let made = cast(term, terms.get(term));
    terms.intern(made)
}

/// Remembers the floats of which the input makes halves, each where it lies.
pub(crate) fn note_rounding(terms: &mut Terms, made: &Value) {
    let Some(halves) = term_of(made) else { return };
    let Term { args, base, .. } = terms.get(halves).as_ref();
    let [Arg::Term { term, reads, .. }] = args.as_slice() else { return };
    let floats = *term;
    if *reads == as_it_lies(base) && terms.get(floats).base == *base {
        terms.halves.insert(floats, halves);
    }
}

/// How an op of one operand reads it element by element.
fn as_it_lies(base: &[i64]) -> Vec<Option<(u32, i64)>> {
    (0..).zip(base).map(|(axis, _)| Some((axis, 1))).collect()
}

/// Floats of halves.
fn cast(term: u32, halves: &Term) -> Term {
    let reads = as_it_lies(&halves.base);
    Term {
        args: vec![Arg::Term { term, reads, own: Vec::new() }],
        over: halves.base.clone(),
        class: vec![Class::Alike; halves.base.len()],
        base: halves.base.clone(),
        dtype: FLOAT,
        ..Term::of(Name::Model("Cast"))
    }
}

pub(crate) fn widened(terms: &mut Terms, x: &Value) -> Option<Value> {
    let floats = |terms: &mut Terms, term: u32| Some(made_floats(terms, term));
    let source = Source::Term(retyped(terms, (term_of(x)?, LAYERS), FLOAT, &mut Retyped::default(), floats)?);
    Some(Value { source, dtype: FLOAT, ..x.clone() })
}

/// Whether every number of the type is a float of 32 bits.
pub(crate) fn is_narrow(dtype: u8) -> bool {
    matches!(dtype, HALF | BFLOAT16)
}

/// The same numbers as floats, of floats and of what is narrower.
pub(crate) fn as_floats(terms: &mut Terms, x: &Value) -> Option<Value> {
    if !is_narrow(x.dtype) {
        return Some(x.clone()).filter(|x| x.dtype == FLOAT);
    }
    if !x.is_constant() {
        return widened(terms, x);
    }
    let halves = x.elements()?;
    let wide = |bits: &[u8]| {
        let bits = bits.try_into().ok()?;
        let number =
            if x.dtype == HALF { f16::from_le_bytes(bits).to_f32() } else { bf16::from_le_bytes(bits).to_f32() };
        Some(number.to_le_bytes())
    };
    let data = halves.chunks_exact(width(x.dtype)?).map(wide).collect::<Option<Vec<_>>>()?;
    Some(Value::constant(FLOAT, &x.shape(), data.concat().into()))
}

/// A constant of floats that are halves.
pub(crate) fn narrow_constant(x: &Value) -> Option<Value> {
    let bytes = x.elements()?;
    let mut data = Vec::with_capacity(bytes.len() / 2);
    for float in bytes.chunks_exact(width(FLOAT)?) {
        let float = f32::from_le_bytes(float.try_into().ok()?);
        let half = f16::from_f32(float);
        if half.to_f32().to_bits() != float.to_bits() {
            return None;
        }
        data.extend(half.to_le_bytes());
    }
    Some(Value::constant(HALF, &x.shape(), data.into()))
}

/// Whether the input computes it nowhere, but for where its elements lie, and for floats of halves.
pub(crate) fn is_foreign(terms: &Terms, term: u32) -> bool {
    let (mut seen, mut todo) = (FxHashSet::default(), vec![term]);
    while let Some(term) = todo.pop() {
        let made = terms.get(term);
        if !seen.insert(term) {
            continue;
        }
        if moves(made) {
            todo.extend(made.args.iter().filter_map(|arg| match arg {
                Arg::Term { term, .. } => Some(*term),
                _ => None,
            }));
        } else if terms.is_foreign(term) {
            match halves(terms, term) {
                Some(halves) => todo.push(halves),
                None => return true,
            }
        }
    }
    false
}
