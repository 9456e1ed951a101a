//! Lemma 1: scales and shifts behind a sum of products are in its weights.
//!
//! Over the reals, `(sum_k x_k w_ko + b_o) * s_o + t_o = sum_k x_k (w_ko s_o) + (b_o s_o + t_o)`. The checker computes both sides'
//! weights and shifts from the constants in the files, in 64 bits. The lemma applies if they differ by no more than what rounding
//! them to their type a few times makes. What remains is a difference of rounding, and the largest one is reported.

use crate::real;
use crate::term::{Arg, Term, Terms};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How many roundings of constants are allowed for.
pub(crate) const ROUNDINGS: f64 = 8.0;

/// Numbers over some axes of a term's base, in row-major order; `None` among the axes is one that is summed over.
#[derive(Clone, Debug, PartialEq)]
struct Grid {
    axes: Vec<Option<u32>>,
    extents: Vec<i64>,
    values: Rc<Vec<f64>>,
}

/// A sum of products with constant weights, and what is added to it.
#[derive(Clone, Debug)]
struct Affine {
    weights: Grid,
    /// Whether the weights are those of scales alone, which may come to have more axes.
    free: bool,
    shift: Grid,
    /// Sums of the absolute values of what the shift was added up from.
    size: Grid,
}

/// What two sums of products must have in common: everything but the numbers.
pub(crate) type Core = (String, Vec<u8>, Arg, Vec<i64>, Vec<u8>, Vec<u32>, Vec<i64>);

/// Terms of the input by their core, each with its real form and the difference in it, and by their real form.
#[derive(Debug, Default)]
pub(crate) struct Cores {
    cores: BTreeMap<u64, Vec<(Core, u32, u32, f64)>>,
    forms: BTreeMap<u32, (u32, f64)>,
}

/// What a lemma found: a term of the input, and the largest relative difference of a constant.
pub(crate) struct Found {
    pub(crate) term: u32,
    pub(crate) bound: f64,
    pub(crate) lemmas: Vec<&'static str>,
}

const SCALES: &str = "scales in weights";
const FORMS: &str = "real forms";

fn hash(core: &Core) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    core.hash(&mut hasher);
    hasher.finish()
}

impl Cores {
    /// Of the first `count` terms.
    pub(crate) fn of(terms: &mut Terms, count: u32) -> Cores {
        let mut cores = Cores::default();
        for term in 0..count {
            let form = real::of_input(terms, term, count).map(|form| (form.term, form.bound));
            if let Some((form, bound)) = form {
                cores.forms.entry(form).or_insert((term, bound));
            }
            for (made, bound) in [Some((term, 0.0)), form].into_iter().flatten() {
                if let Some(core) = core(terms, made) {
                    cores.cores.entry(hash(&core)).or_default().push((core, term, made, bound));
                }
            }
        }
        cores
    }

    /// A term of the input that is this one over the reals. Those of the input are below `bound`.
    pub(crate) fn find(&self, terms: &mut Terms, term: u32, bound: u32) -> Option<Found> {
        if let Some(found) = self.scaled(terms, term) {
            return Some(found);
        }
        let form = real::whole(terms, term, bound);
        let known = if form.term < bound { Some((form.term, 0.0)) } else { self.forms.get(&form.term).copied() };
        if let Some((known, more)) = known {
            let bound = form.bound.max(more);
            return alike(terms, term, known).then(|| Found { term: known, bound, lemmas: vec![FORMS] });
        }
        let found = self.scaled(terms, form.term).filter(|_| form.term != term)?;
        Some(Found { bound: found.bound.max(form.bound), lemmas: vec![SCALES, FORMS], ..found })
    }

    /// The same by scales and shifts.
    fn scaled(&self, terms: &Terms, term: u32) -> Option<Found> {
        let wanted = core(terms, term)?;
        let candidates = self.cores.get(&hash(&wanted))?;
        let mine = affine(terms, term)?;
        candidates.iter().filter(|(core, ..)| *core == wanted).find_map(|&(_, other, made, more)| {
            let theirs = affine(terms, made).filter(|_| alike(terms, other, term))?;
            let bound = distance(&mine, &theirs, terms.get(term).dtype)?;
            let lemmas = if made == other { vec![SCALES] } else { vec![SCALES, FORMS] };
            Some(Found { term: other, bound: bound.max(more), lemmas })
        })
    }
}

fn alike(terms: &Terms, a: u32, b: u32) -> bool {
    terms.get(a).base == terms.get(b).base && terms.get(a).dtype == terms.get(b).dtype
}

/// The sum of products that a term is made of by scales and shifts: its core.
fn core(terms: &Terms, term: u32) -> Option<Core> {
    let made = terms.get(written(terms, term));
    match (made.op.as_str(), made.args.as_slice()) {
        ("Conv", [x, Arg::Constant { own, .. }, ..]) => {
            Some((made.op.clone(), made.attrs.clone(), x.clone(), Vec::new(), Vec::new(), Vec::new(), own.clone()))
        }
        ("contract", [x @ Arg::Term { .. }, Arg::Constant { axes, own, .. }]) => Some((
            made.op.clone(),
            Vec::new(),
            x.clone(),
            made.over.clone(),
            made.class.clone(),
            axes.clone(),
            own.clone(),
        )),
        _ => {
            let (inner, _) = inner(terms, made)?;
            core(terms, inner).or_else(|| Some(alone(terms, written(terms, inner))))
        }
    }
}

/// A normalization in other ops, and any other term as it is.
fn written(terms: &Terms, term: u32) -> u32 {
    terms.norms.get(&term).copied().unwrap_or(term)
}

/// What scales and shifts are made of, if that is no sum of products.
fn alone(terms: &Terms, term: u32) -> Core {
    let made = terms.get(term);
    let arg = Arg::View { term, view: Vec::new() };
    ("scale".to_owned(), Vec::new(), arg, made.base.clone(), Vec::new(), Vec::new(), Vec::new())
}

/// The only operand of a scale or a shift that is a term, and its place, if it is read as it lies.
fn inner(terms: &Terms, made: &Term) -> Option<(u32, usize)> {
    if !matches!(made.op.as_str(), "Mul" | "Add" | "Sub" | "Div" | "BatchNormalization") {
        return None;
    }
    let mut found = None;
    for (at, arg) in made.args.iter().enumerate() {
        match arg {
            Arg::Term { term, reads, own } => {
                let as_is = reads.iter().enumerate().all(|(axis, read)| *read == Some((axis as u32, 1)));
                let same = terms.get(*term).base == made.base && terms.get(*term).dtype == made.dtype;
                if found.is_some() || !as_is || !own.is_empty() || !same || made.over != made.base {
                    return None;
                }
                found = Some((*term, at));
            }
            Arg::Constant { .. } => {}
            _ => return None,
        }
    }
    found
}

fn grid(terms: &Terms, arg: &Arg, base: &[i64]) -> Option<Grid> {
    let Arg::Constant { dtype, axes, own, digest } = arg else { return None };
    let extents: Vec<i64> = axes.iter().map(|axis| base.get(*axis as usize).copied()).collect::<Option<_>>()?;
    let values = terms.floats(*dtype, *digest)?;
    let whole = own.is_empty() && values.len() as i64 == extents.iter().product::<i64>();
    whole.then(|| Grid { axes: axes.iter().copied().map(Some).collect(), extents, values: values.into() })
}

fn number(value: f64) -> Grid {
    Grid { axes: Vec::new(), extents: Vec::new(), values: vec![value].into() }
}

fn zero() -> Grid {
    number(0.0)
}

fn affine(terms: &Terms, term: u32) -> Option<Affine> {
    let made = Rc::clone(terms.get(written(terms, term)));
    match made.op.as_str() {
        "Conv" => of_conv(terms, &made),
        "contract" => {
            let [_, Arg::Constant { dtype, axes, digest, .. }] = made.args.as_slice() else { return None };
            let mut number = 0;
            let result: Vec<Option<u32>> = made
                .class
                .iter()
                .map(|class| {
                    (*class == 0).then(|| {
                        number += 1;
                        number - 1
                    })
                })
                .collect();
            let weights = Grid {
                axes: axes.iter().map(|axis| result[*axis as usize]).collect(),
                extents: axes.iter().map(|axis| made.over[*axis as usize]).collect(),
                values: terms.floats(*dtype, *digest)?.into(),
            };
            Some(Affine { weights, free: false, shift: zero(), size: zero() })
        }
        _ if inner(terms, &made).is_none() => {
            Some(Affine { weights: number(1.0), free: true, shift: zero(), size: zero() })
        }
        _ => scaled(terms, &made),
    }
}

fn of_conv(terms: &Terms, made: &Term) -> Option<Affine> {
    let [Arg::View { .. }, Arg::Constant { dtype, own, digest, .. }, bias @ ..] = made.args.as_slice() else {
        return None;
    };
    // The result is [N, O, spatial] without axes of extent 1; a result without that axis is left alone.
    let spatial = made.base.len().checked_sub(own.len() - 1);
    let channels = match spatial {
        Some(0) if made.base.first() == own.first() => 0,
        Some(1) if made.base.get(1) == own.first() => 1,
        _ => return None,
    };
    if own[0] == 1 {
        return None;
    }
    let mut axes = vec![None; own.len()];
    axes[0] = Some(channels);
    let weights = Grid { axes, extents: own.clone(), values: terms.floats(*dtype, *digest)?.into() };
    let shift = match bias {
        [] | [Arg::Absent] => zero(),
        [Arg::Constant { dtype, digest, .. }] => {
            let values = terms.floats(*dtype, *digest)?;
            let values = if values.len() == 1 { vec![values[0]; own[0] as usize] } else { values };
            Grid { axes: vec![Some(channels)], extents: vec![own[0]], values: values.into() }
        }
        _ => return None,
    };
    let size = each(&shift, &zero(), |a, _| a.abs())?;
    Some(Affine { weights, free: false, shift, size })
}

fn scaled(terms: &Terms, made: &Term) -> Option<Affine> {
    let (term, at) = inner(terms, made)?;
    let before = affine(terms, term)?;
    let constant = |at: usize| grid(terms, made.args.get(at)?, &made.base);
    match (made.op.as_str(), at) {
        ("Mul", _) => times(&before, &constant(1 - at)?),
        ("Div", 0) => times(&before, &each(&constant(1)?, &zero(), |c, _| 1.0 / c)?),
        ("Add", _) => plus(&before, &constant(1 - at)?),
        ("Sub", 0) => plus(&before, &each(&constant(1)?, &zero(), |c, _| -c)?),
        ("Sub", _) => plus(&times(&before, &number(-1.0))?, &constant(0)?),
        ("BatchNormalization", 0) => {
            let epsilon = epsilon(&made.attrs)?;
            let deviation = each(&constant(4)?, &zero(), |v, _| (v + epsilon).sqrt())?;
            let scale = each(&constant(1)?, &deviation, |s, d| s / d)?;
            let mean = each(&constant(3)?, &scale, |m, s| -m * s)?;
            plus(&plus(&times(&before, &scale)?, &mean)?, &constant(2)?)
        }
        _ => None,
    }
}

/// The epsilon of a normalization among its encoded attributes.
pub(crate) fn epsilon(attrs: &[u8]) -> Option<f64> {
    let text = String::from_utf8_lossy(attrs);
    match text.split("epsilon=Float(").nth(1) {
        Some(rest) => rest.split(')').next()?.parse::<f32>().ok().map(f64::from),
        None => Some(f64::from(1e-5_f32)),
    }
}

fn times(before: &Affine, by: &Grid) -> Option<Affine> {
    let weights = each(&before.weights, by, |w, s| w * s);
    let weights = weights.filter(|w| before.free || w.axes == before.weights.axes)?;
    let shift = each(&before.shift, by, |b, s| b * s)?;
    Some(Affine { weights, free: before.free, shift, size: each(&before.size, by, |b, s| b * s.abs())? })
}

fn plus(before: &Affine, more: &Grid) -> Option<Affine> {
    let shift = each(&before.shift, more, |b, t| b + t)?;
    Some(Affine {
        weights: before.weights.clone(),
        free: before.free,
        shift,
        size: each(&before.size, more, |b, t| b + t.abs())?,
    })
}

/// Numbers over the axes of both.
fn each(a: &Grid, b: &Grid, of: impl Fn(f64, f64) -> f64) -> Option<Grid> {
    let (mut axes, mut extents) = (a.axes.clone(), a.extents.clone());
    for (axis, extent) in b.axes.iter().zip(&b.extents) {
        axis.as_ref()?;
        if !axes.contains(axis) {
            axes.push(*axis);
            extents.push(*extent);
        }
    }
    let count: i64 = extents.iter().product();
    let strides = |grid: &Grid| -> Option<Vec<i64>> {
        let stride = |at: usize| grid.extents[at + 1..].iter().product::<i64>();
        let own = |(place, axis): (usize, &Option<u32>)| match axis {
            None => {
                if grid.axes.get(place) == Some(&None) {
                    Some(stride(place))
                } else {
                    None
                }
            }
            Some(_) => Some(grid.axes.iter().position(|x| x == axis).map_or(0, stride)),
        };
        axes.iter()
            .enumerate()
            .map(
                |(place, axis)| {
                    if axis.is_none() && grid.axes.get(place) != Some(&None) { Some(0) } else { own((place, axis)) }
                },
            )
            .collect()
    };
    let (sa, sb) = (strides(a)?, strides(b)?);
    let last = extents.len().saturating_sub(1);
    let (row, step_a, step_b) = extents.last().map_or((1, 0, 0), |extent| (*extent, sa[last], sb[last]));
    let mut index = vec![0; last];
    let mut values = Vec::with_capacity(count as usize);
    let (mut at_a, mut at_b) = (0i64, 0i64);
    for _ in 0..count / row.max(1) {
        for at in 0..row {
            let (x, y) = (a.values.get((at_a + at * step_a) as usize)?, b.values.get((at_b + at * step_b) as usize)?);
            values.push(of(*x, *y));
        }
        for axis in (0..last).rev() {
            index[axis] += 1;
            at_a += sa[axis];
            at_b += sb[axis];
            if index[axis] < extents[axis] {
                break;
            }
            at_a -= sa[axis] * extents[axis];
            at_b -= sb[axis] * extents[axis];
            index[axis] = 0;
        }
    }
    Some(Grid { axes, extents, values: values.into() })
}

/// The relative difference that one rounding makes.
pub(crate) fn unit(dtype: u8) -> Option<f64> {
    match dtype {
        1 => Some(f64::from(f32::EPSILON) / 2.0),
        10 => Some(2f64.powi(-11)),
        _ => None,
    }
}

/// The largest relative difference of the constants, if rounding explains each.
fn distance(a: &Affine, b: &Affine, dtype: u8) -> Option<f64> {
    let unit = unit(dtype)?;
    let (left, right) = if a.free && b.free {
        (each(&a.weights, &b.weights, |x, _| x)?, each(&a.weights, &b.weights, |_, y| y)?)
    } else {
        (a.weights.clone(), b.weights.clone())
    };
    if left.axes != right.axes || left.extents != right.extents {
        return None;
    }
    let mut largest = 0f64;
    let mut near = |x: f64, y: f64, size: f64| {
        let difference = (x - y).abs();
        let fits =
            x.is_finite() && y.is_finite() && difference <= ROUNDINGS * unit * size + f64::from(f32::MIN_POSITIVE);
        if size > 0.0 {
            largest = largest.max(difference / size);
        }
        fits
    };
    let close = left.values.iter().zip(right.values.iter()).all(|(x, y)| near(*x, *y, x.abs().max(y.abs())));
    let left = each(&a.shift, &b.shift, |x, _| x)?;
    let right = each(&a.shift, &b.shift, |_, y| y)?;
    let size = each(&each(&a.shift, &b.shift, |_, _| 0.0)?, &each(&a.size, &b.size, f64::max)?, |_, s| s)?;
    let sizes = left.axes == size.axes && left.values.len() == size.values.len();
    let alike = sizes
        && left.values.iter().zip(right.values.iter()).zip(size.values.iter()).all(|((x, y), s)| near(*x, *y, *s));
    (close && alike).then_some(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_meet_along_the_axes_that_they_share() {
        let a = Grid { axes: vec![Some(0), None], extents: vec![2, 3], values: vec![1., 2., 3., 4., 5., 6.].into() };
        let s = Grid { axes: vec![Some(0)], extents: vec![2], values: vec![10., 100.].into() };
        assert_eq!(each(&a, &s, |x, y| x * y).unwrap().values.as_slice(), [10., 20., 30., 400., 500., 600.]);
        let t = Grid { axes: vec![Some(1)], extents: vec![2], values: vec![1., 2.].into() };
        assert_eq!(each(&s, &t, |x, y| x + y).unwrap().values.as_slice(), [11., 12., 101., 102.]);
    }
}
