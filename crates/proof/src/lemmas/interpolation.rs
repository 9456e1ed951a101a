//! Lemma 8: a linear Resize as products with matrices, one along each axis that it resizes.
//!
//! Each place of a result is a sum of two places of a line, whose shares the standard defines ([`Line`]). So a Resize along some axes is,
//! one axis after the other and in any order, a product with the matrix of these shares. A product of the result whose matrix is that
//! of a Resize of the input is read as a Resize along its axis. As long as other axes are missing, that is only noted beside the
//! product ([`Terms::halfway`]). It stands in its place where it is a term of the input.

use crate::lemmas::halves::{BFLOAT16, FLOAT, HALF};
use crate::terms::align::term_of;
use crate::terms::arg::{Acted, Op, numbers};
use crate::terms::flat::under;
use crate::terms::line::{Line, Resized};
use crate::terms::name::Name::Model;
use crate::terms::pointwise::{self, Made};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, REPEAT, View, normal};
use half::bf16;
use std::rc::Rc;

const LEMMA: &str = "interpolation as products";

/// Most Resizes that one product is noted as.
const NOTED: usize = 16;

/// What a weight may be off besides being rounded: what 64 bits are off along the longest axes.
const LEAST: f64 = 1.0 / (1_u64 << 32) as f64;

/// Notes the lines of a Resize of the input that interpolates.
pub(crate) fn note(terms: &mut Terms, attrs: &[u8], shape: &[i64], acted: &[Acted]) {
    if !terms.is_of_input() {
        return;
    }
    for one in acted {
        let from = shape[one.axis];
        let line = Line::new(attrs, from, &one.told).filter(|_| !terms.is_open(from) && !terms.is_open(one.out));
        if let Some(line) = line.filter(|line| terms.lines.iter().all(|known| known != line)) {
            terms.lines.push(line);
        }
    }
}

/// A sum of products, or the Resize of the input that it is.
pub(crate) fn contract(terms: &mut Terms, shape: &[i64], a: (&Value, View), b: (&Value, View), sums: &[usize]) -> Made {
    let operands = [(a.0, a.1.clone()), (b.0, b.1.clone())];
    let y = pointwise::contract(terms, shape, a, b, sums)?;
    if terms.lines.is_empty() || !terms.lacks(&y) {
        return Ok(y);
    }
    let found = interpolated(terms, shape, &operands, sums).unwrap_or_default();
    if let Some((known, bound)) = found.iter().find(|(value, _)| !terms.lacks(value)) {
        terms.by_lemma(LEMMA);
        terms.held.bound = terms.held.bound.max(*bound);
        return Ok(known.clone());
    }
    let Some(term) = term_of(&y).filter(|_| !found.is_empty()) else { return Ok(y) };
    if let Some(back) = view::inverse(&y.view, &terms.get(term).base) {
        let seen = |(value, bound): (Value, f64)| Some((seen(&back, &value)?, bound));
        let found = found.into_iter().filter_map(seen).take(NOTED).collect();
        terms.halfway.insert(term, found);
    }
    Ok(y)
}

fn seen(view: &View, value: &Value) -> Option<Value> {
    Some(Value { view: view::composed(view, &value.view)?, ..value.clone() })
}

/// The Resizes that a product is, as it lies, each with the largest difference of a weight.
fn interpolated(
    terms: &mut Terms,
    shape: &[i64],
    operands: &[(&Value, View); 2],
    sums: &[usize],
) -> Option<Vec<Resized>> {
    let &[sum] = sums else { return None };
    let at = operands.iter().position(|(value, _)| value.is_constant())?;
    let ((matrix, axes), (x, view)) = (&operands[at], &operands[1 - at]);
    let has = |view: &View, axis: usize| view::extent(&view[axis]) != 1;
    let made: Vec<usize> = (0..shape.len()).filter(|&axis| axis != sum && has(axes, axis)).collect();
    let &[made] = made.as_slice() else { return None };
    if has(view, made) || !has(view, sum) || !has(axes, sum) || matrix.dtype != x.dtype {
        return None;
    }
    let weights = Value { view: vec![axes[made].clone(), axes[sum].clone()], ..(*matrix).clone() };
    let lines = lines_of(terms, &weights)?;
    let x = Value { view: view.clone(), ..(*x).clone() };
    let mut all = vec![(x.clone(), 0.0)];
    for (value, bound) in term_of(&x).and_then(|term| terms.halfway.get(&term)).into_iter().flatten() {
        all.extend(seen(&x.view, value).map(|value| (value, *bound)));
    }
    let mut found = Vec::new();
    for (value, before) in &all {
        for (line, bound) in &lines {
            let made_of = match line {
                Some(line) => resized(terms, value, sum, line),
                None => vec![value.clone()],
            };
            for mut y in made_of {
                y.view[made] = std::mem::take(&mut y.view[sum]);
                found.push((y, bound.max(*before)));
            }
        }
    }
    Some(found)
}

/// The lines that a matrix interpolates, each with the largest difference of a weight; `None` for one that stays as it is.
fn lines_of(terms: &Terms, weights: &Value) -> Option<Vec<(Option<Line>, f64)>> {
    let &[to, from] = weights.shape().as_slice() else { return None };
    let lines: Vec<&Line> = terms.lines.iter().filter(|line| line.from == from && line.to == to).collect();
    let (unit, least) = match weights.dtype {
        FLOAT => (2f64.powi(-24), 0.0),
        HALF => (2f64.powi(-11), 2f64.powi(-25)),
        BFLOAT16 => (2f64.powi(-8), 0.0),
        _ => return None,
    };
    if lines.is_empty() && from != to {
        return None;
    }
    let list = match weights.dtype {
        BFLOAT16 => {
            let bytes = weights.elements()?;
            bytes.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f64()).collect()
        }
        _ => numbers(weights)?,
    };
    let rows = list.chunks(usize::try_from(from).ok()?);
    let distance = |line: &Line| {
        rows.clone().zip(0..).try_fold(0f64, |most, (row, place)| {
            let far = |(at, &have): (i64, &f64)| {
                let want = line.share(place, at)?;
                let off = (have - want).abs();
                (off <= unit * want + least + LEAST).then_some(off)
            };
            (0..).zip(row).try_fold(most, |most, weight| Some(most.max(far(weight)?)))
        })
    };
    let mut found: Vec<(Option<Line>, f64)> =
        lines.iter().filter_map(|line| Some((Some((*line).clone()), distance(line)?))).collect();
    let mut all =
        rows.zip(0..).flat_map(|(row, place)| row.iter().zip(0..).map(move |(have, at)| (*have, at == place)));
    if from == to && all.all(|(have, same)| have.total_cmp(&f64::from(u8::from(same))).is_eq()) {
        found.push((None, 0.0));
    }
    Some(found)
}

/// A Resize of one axis. Where the value is a Resize of others by itself, it may also be one of all of them.
fn resized(terms: &mut Terms, x: &Value, axis: usize, line: &Line) -> Vec<Value> {
    // Each digit of another axis is one by itself, so that the axes of the other Resize are.
    let apart = |(at, digits): (usize, &Vec<view::Digit>)| -> View {
        if at == axis { vec![digits.clone()] } else { digits.iter().map(|digit| vec![*digit]).collect() }
    };
    let parts: Vec<View> = x.view.iter().enumerate().map(apart).collect();
    let place = parts[..axis].iter().map(Vec::len).sum();
    let fine = Value { view: parts.concat(), ..x.clone() };
    let acted = Acted { axis: place, told: line.told.clone(), out: line.to };
    let others = without(terms, &fine, line).filter(|(_, others)| others.iter().all(|other| other.axis != place));
    let all = others.map(|(inner, others)| (inner, [others, vec![acted.clone()]].concat()));
    let op = Op { name: Model("Resize"), attrs: &line.attrs, dtype: x.dtype };
    let mut found = Vec::new();
    for (value, acted) in [Some((fine, vec![acted])), all].into_iter().flatten() {
        let Some(y) = terms.along(&op, &value, &acted) else { continue };
        let mut digits = y.view.iter();
        let whole = |part: &View| normal(digits.by_ref().take(part.len()).flatten().copied());
        found.push(Value { view: parts.iter().map(whole).collect(), ..y });
    }
    found
}

/// What a value resizes, if it is a Resize of the same kind along axes of its own, and what it does along each.
fn without(terms: &Terms, x: &Value, line: &Line) -> Option<(Value, Vec<Acted>)> {
    let made = Rc::clone(terms.get(term_of(x)?));
    (made.name() == Model("Resize") && made.attrs == line.attrs).then_some(())?;
    let first = made.base.len().checked_sub(made.along.len())? as u32;
    let mut others = Vec::new();
    for (number, (_, told)) in (first..).zip(&made.along) {
        let reads = |digits: &Vec<view::Digit>| digits.iter().any(|digit| digit.axis == number && digit.axis != REPEAT);
        let axis = x.view.iter().position(reads)?;
        others.push(Acted { axis, told: told.clone(), out: *told.last()? });
    }
    Some((under(&made, x)?, others))
}
