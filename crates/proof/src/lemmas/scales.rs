//! Lemma 1: scales and shifts behind a sum of products are in its weights.
//!
//! Over the reals, `(sum_k x_k w_ko + b_o) * s_o + t_o = sum_k x_k (w_ko s_o) + (b_o s_o + t_o)`. The checker computes both sides'
//! weights and shifts from the constants in the files, in 64 bits. The lemma applies if they differ by no more than what rounding
//! them to their type a few times makes. What remains is a difference of rounding, and the largest one is reported.

mod cut;

use super::halves::{FLOAT, HALF, LEMMA as HALVES, is_narrow, made_floats, of_halves};
use super::real;
use crate::terms::align::Class;
use crate::terms::arg::{Arg, Term};
use crate::terms::name::Name::{self, Model};
use crate::terms::name::Own;
use crate::terms::real::{Core, Cores, Known, RealForm};
use crate::terms::state::Terms;
use crate::terms::strided::{COPIED, Dims, Elements, Loop, RUN, Run, common, stepped, walk};
use crate::terms::value::count_of;
use crate::terms::view::{self, View};
use cut::pieces;
use half::f16;
use std::rc::Rc;

/// How many roundings of constants are allowed for.
pub(crate) const ROUNDINGS: f64 = 8.0;

/// Numbers over some axes of a term's base, in row-major order.
#[derive(Clone, Debug, PartialEq)]
struct Grid {
    axes: Vec<u32>,
    extents: Vec<i64>,
    values: Rc<Vec<f64>>,
}

/// Weights as a file has them, over the axes of a term's base; `None` among the axes is one that is summed over.
#[derive(Clone, Debug)]
struct Weights {
    axes: Vec<Option<u32>>,
    extents: Vec<i64>,
    elements: Elements,
    /// Their number among the constants: weights with one number are the same.
    number: u32,
    dtype: u8,
}

/// A sum of products with constant weights, and what is added to it.
#[derive(Clone, Debug)]
struct Affine {
    /// `None` for scales alone, which may come to have more axes.
    weights: Option<Weights>,
    /// What the weights are multiplied with.
    scale: Grid,
    shift: Grid,
    /// Sums of the absolute values of what the shift was added up from.
    size: Grid,
}

/// What a lemma found: a term of the input, and the largest relative difference of a constant.
pub(crate) struct LemmaMatch {
    pub(crate) term: u32,
    /// The axes of what was looked for, along those of the term.
    pub(crate) view: View,
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
    pub(crate) fn collect(terms: &mut Terms, count: u32) -> Cores {
        let mut cores = Cores::default();
        for term in 0..count {
            let form = real::of_input(terms, term, count).map(|(factored, form)| {
                let RealForm { term: of, view, factor, bound } = factored;
                if factor.is_normal() {
                    cores.parts.entry(of).or_insert((Known { term, view, bound }, factor));
                }
                let RealForm { term: form, view, bound, .. } = form;
                cores.forms.entry(form).or_insert(Known { term, view: view.clone(), bound });
                (form, view, bound)
            });
            let form = form.filter(|(_, view, _)| view.is_none()).map(|(form, _, bound)| (form, bound));
            for (made, bound) in [Some((term, 0.0)), form].into_iter().flatten() {
                if let Some(core) = core(terms, made) {
                    cores.products.entry(hash(&core)).or_default().push((core, term, made, bound));
                }
            }
        }
        cores
    }

    /// A term of the input that is this one over the reals. Those of the input are below `bound`.
    pub(crate) fn find(&self, terms: &mut Terms, term: u32, bound: u32) -> Option<LemmaMatch> {
        if let Some(found) = self.scaled(terms, term) {
            return Some(of_floats(terms, term, found));
        }
        let form = real::whole(terms, term, bound);
        if form.term < bound || self.forms.contains_key(&form.term) {
            return self.formed(terms, &form, bound).filter(|found| is_of_type(terms, term, found.term));
        }
        let found = self.scaled(terms, form.term).filter(|_| form.term != term && form.view.is_none())?;
        let mut lemmas = vec![SCALES, FORMS];
        lemmas.extend(found.lemmas.iter().filter(|lemma| **lemma == HALVES));
        Some(of_floats(terms, term, LemmaMatch { bound: found.bound.max(form.bound), lemmas, ..found }))
    }

    /// The term of the input that has a form or is one.
    pub(crate) fn formed(&self, terms: &Terms, form: &RealForm, bound: u32) -> Option<LemmaMatch> {
        let own = Known { term: form.term, view: None, bound: 0.0 };
        let known = if form.term < bound { &own } else { self.forms.get(&form.term)? };
        let view = between(terms, form, known)?;
        let mut lemmas = vec![FORMS];
        lemmas.extend(is_narrow(terms.get(known.term).dtype).then_some(HALVES));
        Some(LemmaMatch { term: known.term, view, bound: form.bound.max(known.bound), lemmas })
    }

    /// The form with a term of the input in the place of what this is a multiple of.
    pub(crate) fn part(&self, terms: &Terms, form: &RealForm) -> Option<RealForm> {
        let (known, factor) = self.parts.get(&form.term)?;
        let view = Some(between(terms, form, known)?);
        let (factor, bound) = (form.factor / factor, form.bound.max(known.bound));
        factor.is_normal().then_some(RealForm { term: known.term, view, factor, bound })
    }

    /// The same by scales and shifts.
    fn scaled(&self, terms: &Terms, term: u32) -> Option<LemmaMatch> {
        let wanted = core(terms, term)?;
        let candidates = self.products.get(&hash(&wanted))?;
        let mine = affine(terms, term)?;
        candidates.iter().filter(|(core, ..)| *core == wanted).find_map(|&(_, other, made, more)| {
            let theirs = affine(terms, made).filter(|_| alike(terms, other, term))?;
            let bound = distance(&mine, &theirs, terms.get(term).dtype)?;
            let mut lemmas = if made == other { vec![SCALES] } else { vec![SCALES, FORMS] };
            let halves = !is_of_type(terms, term, other) || rounds(terms, term) || rounds(terms, other);
            lemmas.extend(halves.then_some(HALVES));
            let view = view::identity(&terms.get(term).base).1;
            Some(LemmaMatch { term: other, view, bound: bound.max(more), lemmas })
        })
    }
}

/// What has a form, along the axes of the term of the input that has the same one.
fn between(terms: &Terms, form: &RealForm, known: &Known) -> Option<View> {
    let base = &terms.get(form.term).base;
    let (_, as_it_is) = view::identity(base);
    let back = view::inverse(known.view.as_ref().unwrap_or(&as_it_is), base)?;
    view::composed(form.view.as_ref().unwrap_or(&as_it_is), &back)
}

/// Whether a term of the input may be this term of the result, or this one that term made floats.
fn alike(terms: &Terms, of_input: u32, term: u32) -> bool {
    let (known, made) = (terms.get(of_input), terms.get(term));
    known.base == made.base && (known.dtype == made.dtype || is_narrow(known.dtype) && made.dtype == FLOAT)
}

/// A term of the input that was found for one of the result, made floats where the other one is.
fn of_floats(terms: &mut Terms, term: u32, found: LemmaMatch) -> LemmaMatch {
    if is_of_type(terms, term, found.term) {
        return found;
    }
    LemmaMatch { term: made_floats(terms, found.term), ..found }
}

fn is_of_type(terms: &Terms, a: u32, b: u32) -> bool {
    terms.get(a).dtype == terms.get(b).dtype
}

/// Most scales and shifts behind each other.
const SCALED: usize = 64;

/// The sum of products that a term is made of by scales and shifts, or else what these are made of: its core.
fn core(terms: &Terms, term: u32) -> Option<Core> {
    let mut at = written(terms, term);
    for depth in 0..=SCALED {
        let made = terms.get(at);
        if let Some(core) = product(terms, made) {
            return Some(core);
        }
        match inner(terms, made) {
            Some(below) => at = written(terms, below.term),
            None => return (depth > 0).then(|| alone(terms, at)),
        }
    }
    None
}

/// The core of a sum of products with constant weights.
fn product(terms: &Terms, made: &Term) -> Option<Core> {
    let (x, Arg::Constant { axes, own, .. }) = (made.args.first()?, made.args.get(1)?) else { return None };
    let x = bare(terms, x).0;
    let op = |attrs: &[u8]| Some((made.op.clone(), attrs.to_vec()));
    let own = own.clone();
    match (made.name(), &x, made.args.len()) {
        (Model("Conv" | "ConvTranspose"), ..) => {
            Some(Core { op: op(&made.attrs), x, over: Vec::new(), class: Vec::new(), axes: Vec::new(), own })
        }
        (Name::Own(Own::Contract), Arg::Term { .. }, 2) => {
            let (over, class) = (made.over.clone(), made.class.clone());
            Some(Core { op: op(&[]), x, over, class, axes: axes.clone(), own })
        }
        _ => None,
    }
}

/// An operand without the numbers that it is times, and these: over the reals they are in the weights.
fn bare(terms: &Terms, arg: &Arg) -> (Arg, f64) {
    let (mut arg, mut factor) = (arg.clone(), 1.0);
    for _ in 0..SCALED {
        let (Arg::Term { term, .. } | Arg::View { term, .. }) = &mut arg else { break };
        let Some((inner, by)) = multiple(terms, terms.get(*term)).filter(|(_, by)| (factor * by).is_normal()) else {
            break;
        };
        (*term, factor) = (inner, factor * by);
    }
    (arg, factor)
}

/// What a term is a multiple of, place by place, and by which number. Floats of halves are these halves.
fn multiple(terms: &Terms, made: &Term) -> Option<(u32, f64)> {
    if let Some(halves) = of_halves(terms, made) {
        return Some((halves, 1.0));
    }
    let [Arg::Term { term, reads, own }, by @ Arg::Constant { axes, .. }] = made.args.as_slice() else { return None };
    let whole = reads.iter().enumerate().all(|(at, read)| *read == Some((at as u32, 1)));
    let inner = terms.get(*term);
    let alike = inner.base == made.base && made.over == made.base && inner.dtype == made.dtype;
    let known = grid(terms, by, &made.base).filter(|_| whole && alike && own.is_empty() && axes.is_empty())?;
    match (made.name(), known.values.as_slice()) {
        (Model("Mul"), [by]) => Some((*term, *by)),
        (Model("Div"), [by]) => Some((*term, 1.0 / by)),
        _ => None,
    }
}

/// A normalization in other ops, and any other term as it is.
fn written(terms: &Terms, term: u32) -> u32 {
    terms.norms.get(&term).copied().unwrap_or(term)
}

/// What scales and shifts are made of, if that is no sum of products.
fn alone(terms: &Terms, term: u32) -> Core {
    let made = terms.get(term);
    let term = of_halves(terms, made).unwrap_or(term);
    let x = Arg::View { term, view: Vec::new() };
    Core { op: None, x, over: made.base.clone(), class: Vec::new(), axes: Vec::new(), own: Vec::new() }
}

/// The only operand of a scale or a shift that is a term, if it is read in its order of axes.
struct Inner {
    term: u32,
    /// Its place among the operands.
    at: usize,
    /// How many axes of the result each of its axes is.
    pieces: Vec<usize>,
}

/// Whether floats are made halves, which are the same numbers over the reals.
fn is_rounding(made: &Term) -> bool {
    made.name() == Model("Cast") && is_narrow(made.dtype)
}

/// Whether halves are made of floats among the scales and shifts that a term is.
fn rounds(terms: &Terms, term: u32) -> bool {
    let mut at = written(terms, term);
    for _ in 0..SCALED {
        let made = terms.get(at);
        match inner(terms, made) {
            Some(below) if !is_rounding(made) => at = written(terms, below.term),
            found => return found.is_some(),
        }
    }
    false
}

fn inner(terms: &Terms, made: &Term) -> Option<Inner> {
    let dtype = if is_rounding(made) { FLOAT } else { made.dtype };
    if !(dtype != made.dtype
        || matches!(made.name(), Model("Mul" | "Add" | "Sub" | "Div" | "Neg" | "BatchNormalization")))
        || made.over != made.base
    {
        return None;
    }
    let mut found = None;
    for (at, arg) in made.args.iter().enumerate() {
        match arg {
            Arg::Term { term, reads, own } => {
                let inner = terms.get(*term);
                let pieces = pieces(reads, &made.over, &inner.base)?;
                if found.is_some() || !own.is_empty() || inner.dtype != dtype {
                    return None;
                }
                found = Some(Inner { term: *term, at, pieces });
            }
            Arg::Constant { .. } => {}
            _ => return None,
        }
    }
    found
}

fn grid(terms: &Terms, arg: &Arg, base: &[i64]) -> Option<Grid> {
    let Arg::Constant { dtype, axes, own, elements } = arg else { return None };
    let extents: Vec<i64> = axes.iter().map(|axis| base.get(*axis as usize).copied()).collect::<Option<_>>()?;
    let values = terms.floats(*dtype, *elements)?;
    let whole = own.is_empty() && values.len() as i64 == extents.iter().product::<i64>();
    whole.then(|| Grid { axes: axes.clone(), extents, values: values.into() })
}

fn number(value: f64) -> Grid {
    Grid { axes: Vec::new(), extents: Vec::new(), values: vec![value].into() }
}

/// The weights as they are, with nothing added.
fn plain(weights: Option<Weights>) -> Affine {
    Affine { weights, scale: number(1.0), shift: number(0.0), size: number(0.0) }
}

fn affine(terms: &Terms, term: u32) -> Option<Affine> {
    let made = Rc::clone(terms.get(written(terms, term)));
    match made.name() {
        Model("Conv") => of_conv(terms, &made, 0),
        Model("ConvTranspose") => of_conv(terms, &made, 1),
        Name::Own(Own::Contract) => of_product(terms, &made),
        _ if inner(terms, &made).is_none() => Some(plain(None)),
        _ => scaled(terms, &made),
    }
}

fn weights(terms: &Terms, dtype: u8, axes: Vec<Option<u32>>, extents: Vec<i64>, elements: u32) -> Option<Weights> {
    let all = terms.constants.get(elements).clone();
    let fits = count_of(&extents) == Ok(all.count()) && unit(dtype).is_some();
    fits.then_some(Weights { axes, extents, elements: all, number: elements, dtype })
}

fn of_product(terms: &Terms, made: &Term) -> Option<Affine> {
    let [x, Arg::Constant { dtype, axes, elements, .. }] = made.args.as_slice() else { return None };
    let mut numbers = 0..;
    let result: Vec<Option<u32>> =
        made.class.iter().map(|class| if *class == Class::Alike { numbers.next() } else { None }).collect();
    let extents = axes.iter().map(|axis| made.over[*axis as usize]).collect();
    let axes = axes.iter().map(|axis| result[*axis as usize]).collect();
    times(&plain(Some(weights(terms, *dtype, axes, extents, *elements)?)), &number(bare(terms, x).1))
}

/// A convolution whose weights have its channels as that axis.
fn of_conv(terms: &Terms, made: &Term, at: usize) -> Option<Affine> {
    let [x @ Arg::View { view, .. }, Arg::Constant { dtype, own, elements, .. }, bias @ ..] = made.args.as_slice()
    else {
        return None;
    };
    // The result is [N, O, spatial] without axes of extent 1.
    let channels = u32::from(view::extent(view.first()?) != 1);
    let groups = if at == 1 { groups_of(made) } else { 1 };
    let listed = *elements;
    let (own, elements) = regrouped(terms, own, listed, groups)?;
    let count = *own.get(at)?;
    let axis = (count != 1).then_some(channels);
    if axis.is_some() && made.base.get(channels as usize) != Some(&count) {
        return None;
    }
    let mut axes = vec![None; own.len()];
    axes[at] = axis;
    let fits = count_of(&own) == Ok(elements.count()) && unit(*dtype).is_some();
    let before = plain(fits.then_some(Weights { axes, extents: own, elements, number: listed, dtype: *dtype }));
    let before = times(&before, &number(bare(terms, x).1)).filter(|_| fits)?;
    match bias {
        [] | [Arg::Absent] => Some(before),
        [Arg::Constant { dtype, elements, .. }] => {
            let values = terms.floats(*dtype, *elements)?;
            let values = if values.len() == 1 { vec![values[0]; count as usize] } else { values };
            let axes: Vec<u32> = axis.into_iter().collect();
            let extents = axes.iter().map(|_| count).collect();
            plus(&before, &Grid { axes, extents, values: values.into() })
        }
        _ => None,
    }
}

/// The groups of a transposed convolution.
fn groups_of(made: &Term) -> i64 {
    let text = String::from_utf8_lossy(&made.attrs);
    let groups = text.split(';').find_map(|told| told.strip_prefix("group=Int(")?.strip_suffix(')')?.parse().ok());
    groups.unwrap_or(1)
}

/// Weights [C, M / groups, window] of a transposed convolution as [C / groups, M, window], whose second axis is that of the result.
fn regrouped(terms: &Terms, own: &[i64], elements: u32, groups: i64) -> Option<(Vec<i64>, Elements)> {
    let elements = terms.constants.get(elements).clone();
    let &[inputs, outputs, ref window @ ..] = own else { return None };
    if groups == 1 {
        return Some((own.to_vec(), elements));
    }
    let (size, each) = (count_of(window).ok()?, inputs.checked_div(groups).filter(|each| each * groups == inputs)?);
    let of_group = each.checked_mul(outputs)?.checked_mul(size)?;
    let dims = [(each, outputs * size), (groups, of_group), (outputs, size), (size, 1)];
    let turned = Elements::new(&elements.dense()?, 0, dims, elements.width)?;
    Some(([&[each, groups.checked_mul(outputs)?], window].concat(), turned))
}

fn scaled(terms: &Terms, made: &Term) -> Option<Affine> {
    let Inner { term, at, pieces } = inner(terms, made)?;
    let before = affine(terms, term)?.cut(&pieces, &made.over)?;
    let constant = |at: usize| grid(terms, made.args.get(at)?, &made.base);
    match (made.name(), at) {
        (Model("Mul"), _) => times(&before, &constant(1 - at)?),
        (Model("Div"), 0) => times(&before, &each(&constant(1)?, &number(0.0), |c, _| 1.0 / c)?),
        (Model("Neg"), _) => times(&before, &number(-1.0)),
        (Model("Cast"), _) => Some(before),
        (Model("Add"), _) => plus(&before, &constant(1 - at)?),
        (Model("Sub"), 0) => plus(&before, &each(&constant(1)?, &number(0.0), |c, _| -c)?),
        (Model("Sub"), _) => plus(&times(&before, &number(-1.0))?, &constant(0)?),
        (Model("BatchNormalization"), 0) => {
            let epsilon = epsilon(&made.attrs)?;
            let deviation = each(&constant(4)?, &number(0.0), |v, _| (v + epsilon).sqrt())?;
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
    let scale = each(&before.scale, by, |w, s| w * s)?;
    let fits = |weights: &Weights| scale.axes.iter().all(|axis| weights.axes.contains(&Some(*axis)));
    before.weights.as_ref().is_none_or(fits).then_some(())?;
    let shift = each(&before.shift, by, |b, s| b * s)?;
    let size = each(&before.size, by, |b, s| b * s.abs())?;
    Some(Affine { weights: before.weights.clone(), scale, shift, size })
}

fn plus(before: &Affine, more: &Grid) -> Option<Affine> {
    let shift = each(&before.shift, more, |b, t| b + t)?;
    let size = each(&before.size, more, |b, t| b + t.abs())?;
    Some(Affine { weights: before.weights.clone(), scale: before.scale.clone(), shift, size })
}

/// Numbers over the axes of both: first those of `a`, then the others.
fn each(a: &Grid, b: &Grid, of: impl Fn(f64, f64) -> f64) -> Option<Grid> {
    let (mut axes, mut extents) = (a.axes.clone(), a.extents.clone());
    for (axis, extent) in b.axes.iter().zip(&b.extents).filter(|(axis, _)| !a.axes.contains(axis)) {
        axes.push(*axis);
        extents.push(*extent);
    }
    let seen: Vec<Option<u32>> = axes.iter().copied().map(Some).collect();
    let count = count_of(&extents).ok().filter(|count| *count <= COPIED)?;
    let loops = common([&over(a, &seen, &extents)?, &over(b, &seen, &extents)?, &[(count, 1)]])?;
    let mut values = vec![0.0; count as usize];
    walk(loops, [0; 3], RUN, &mut |run: Run<3>| {
        let ([i, j, k], [left, right, out]) = (run.at, run.strides);
        (0..run.count).for_each(|n| values[k + n * out] = of(a.values[i + n * left], b.values[j + n * right]));
        true
    });
    Some(Grid { axes, extents, values: values.into() })
}

/// (extent, stride) of a grid along these axes, which may be more than it has.
fn over(grid: &Grid, axes: &[Option<u32>], extents: &[i64]) -> Option<Dims> {
    let stride = |at: usize| grid.extents[at + 1..].iter().product::<i64>();
    let place = |axis: &u32| grid.axes.iter().position(|own| own == axis);
    let step = |(axis, extent): (&Option<u32>, &i64)| match axis.as_ref().and_then(place) {
        Some(at) if grid.extents[at] != *extent => None,
        at => Some((*extent, at.map_or(0, stride))),
    };
    let whole = grid.values.len() as i64 == grid.extents.iter().product::<i64>();
    axes.iter().zip(extents).map(step).collect::<Option<_>>().filter(|_| whole)
}

/// The relative difference that one rounding makes.
pub(crate) fn unit(dtype: u8) -> Option<f64> {
    match dtype {
        1 => Some(f64::from(f32::EPSILON) / 2.0),
        10 => Some(2f64.powi(-11)),
        _ => None,
    }
}

/// Constants that are held against each other.
struct Held {
    /// How far they may be apart, relative to their size.
    least: f64,
    /// The smallest number that is as precise as larger ones: smaller ones are rounded as it is.
    normal: f64,
    /// The largest relative difference so far.
    largest: f64,
}

impl Held {
    /// Whether rounding explains how far numbers of these sizes are apart.
    fn near(&mut self, x: &[f64], y: &[f64], size: &[f64]) -> bool {
        // Bits as wide as the numbers, so that no branch is taken for any of them.
        let (mut far, mut larger) = (0u64, 0u64);
        let (least, largest, normal) = (self.least, self.largest, self.normal);
        for ((x, y), size) in x.iter().zip(y).zip(size) {
            let (difference, size) = ((x - y).abs(), if *size < normal { normal } else { *size });
            let near = difference <= least * size + f64::from(f32::MIN_POSITIVE);
            far |= u64::from(!near) | u64::from(!x.is_finite()) | u64::from(!y.is_finite());
            larger |= u64::from(difference > largest * size);
        }
        if larger > 0 {
            let relative = |((x, y), size): ((&f64, &f64), &f64)| (x - y).abs() / size.max(normal);
            self.largest = x.iter().zip(y).zip(size).map(relative).fold(self.largest, f64::max);
        }
        far == 0
    }

    /// The same where the larger of two numbers is their size.
    fn alike(&mut self, x: &[f64], y: &[f64]) -> bool {
        let mut sizes = [0.0; RUN];
        x.chunks(RUN).zip(y.chunks(RUN)).all(|(x, y)| {
            let larger = |(x, y): (&f64, &f64)| if x.abs() > y.abs() { x.abs() } else { y.abs() };
            sizes.iter_mut().zip(x.iter().zip(y).map(larger)).for_each(|(size, larger)| *size = larger);
            self.near(x, y, &sizes)
        })
    }

    /// Weights times their scales, of which only some at a time are computed.
    fn weights(&mut self, a: &Affine, b: &Affine) -> Option<bool> {
        let (Some(x), Some(y)) = (&a.weights, &b.weights) else {
            let left = each(&a.scale, &b.scale, |x, _| x)?;
            let right = each(&a.scale, &b.scale, |_, y| y)?;
            return Some(a.weights.is_none() && b.weights.is_none() && self.alike(&left.values, &right.values));
        };
        if x.axes != y.axes || x.extents != y.extents {
            return None;
        }
        if x.number == y.number && a.scale == b.scale {
            return Some(true);
        }
        let (left, right) = (over(&a.scale, &x.axes, &x.extents)?, over(&b.scale, &y.axes, &y.extents)?);
        let loops = |x: &Weights, y: &Weights| common([&x.elements.dims, &left, &right, &y.elements.dims]);
        let Some(loops) = loops(x, y) else {
            let (x, y) = (x.dense()?, y.dense()?);
            return Some(self.along(loops(&x, &y)?, (&x, &a.scale.values), (&y, &b.scale.values)));
        };
        Some(self.along(loops, (x, &a.scale.values), (y, &b.scale.values)))
    }

    /// Weights and their scales, along common loops.
    fn along(&mut self, loops: Vec<Loop<4>>, (x, left): (&Weights, &[f64]), (y, right): (&Weights, &[f64])) -> bool {
        // Runs may be short, so that several are held against each other at a time.
        let (mut buffers, mut filled) = ([[0.0; RUN]; 4], 0);
        let first = [x.elements.first, 0, 0, y.elements.first];
        let all = walk(loops, first, RUN, &mut |run: Run<4>| {
            if filled + run.count > RUN {
                if !self.products(&mut buffers, filled) {
                    return false;
                }
                filled = 0;
            }
            let [one, s, t, other] = buffers.each_mut().map(|list| &mut list[filled..filled + run.count]);
            x.read(run.at[0], run.strides[0], one);
            numbered(left, run.at[1], run.strides[1], s, |x| x);
            numbered(right, run.at[2], run.strides[2], t, |x| x);
            y.read(run.at[3], run.strides[3], other);
            filled += run.count;
            true
        });
        all && self.products(&mut buffers, filled)
    }

    /// The first numbers of the first two lists multiplied, and those of the last two.
    fn products(&mut self, buffers: &mut [[f64; RUN]; 4], count: usize) -> bool {
        let [one, s, t, other] = buffers.each_mut().map(|list| &mut list[..count]);
        one.iter_mut().zip(s).for_each(|(w, s)| *w *= *s);
        other.iter_mut().zip(t).for_each(|(w, t)| *w *= *t);
        self.alike(one, other)
    }

    /// What is added.
    fn shifts(&mut self, a: &Affine, b: &Affine) -> Option<bool> {
        let left = each(&a.shift, &b.shift, |x, _| x)?;
        let right = each(&a.shift, &b.shift, |_, y| y)?;
        let size = each(&each(&a.shift, &b.shift, |_, _| 0.0)?, &each(&a.size, &b.size, f64::max)?, |_, s| s)?;
        let sizes = left.axes == size.axes && left.values.len() == size.values.len();
        Some(sizes && self.near(&left.values, &right.values, &size.values))
    }
}

impl Weights {
    /// The same with their elements one after the other.
    fn dense(&self) -> Option<Weights> {
        let Elements { width, .. } = self.elements;
        let elements = Elements::new(&self.elements.dense()?, 0, [(self.elements.count(), 1)], width)?;
        Some(Weights { elements, ..self.clone() })
    }

    /// Elements from a place on, as numbers.
    fn read(&self, at: usize, step: usize, out: &mut [f64]) {
        let data = &self.elements.data;
        if self.dtype == 1 {
            numbered(data.as_chunks::<4>().0, at, step, out, |bytes| f64::from(f32::from_le_bytes(bytes)));
        } else {
            numbered(data.as_chunks::<2>().0, at, step, out, |bytes| f16::from_le_bytes(bytes).to_f64());
        }
    }
}

/// The numbers of a list from a place on.
fn numbered<T: Copy>(list: &[T], at: usize, step: usize, out: &mut [f64], number: impl Fn(T) -> f64) {
    match step {
        0 => out.fill(number(list[at])),
        1 => out.iter_mut().zip(&list[at..]).for_each(|(x, n)| *x = number(*n)),
        _ => out.iter_mut().zip(stepped(list, at, step)).for_each(|(x, n)| *x = number(*n)),
    }
}

/// The largest relative difference of the constants, if rounding explains each.
fn distance(a: &Affine, b: &Affine, dtype: u8) -> Option<f64> {
    let normal = f64::from(if dtype == HALF { f16::MIN_POSITIVE.to_f32() } else { f32::MIN_POSITIVE });
    let mut held = Held { least: ROUNDINGS * unit(dtype)?, normal, largest: 0.0 };
    let holds = held.weights(a, b)? && held.shifts(a, b)?;
    holds.then_some(held.largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_meet_along_the_axes_that_they_share() {
        let a = Grid { axes: vec![0, 7], extents: vec![2, 3], values: vec![1., 2., 3., 4., 5., 6.].into() };
        let s = Grid { axes: vec![0], extents: vec![2], values: vec![10., 100.].into() };
        assert_eq!(each(&a, &s, |x, y| x * y).unwrap().values.as_slice(), [10., 20., 30., 400., 500., 600.]);
        let t = Grid { axes: vec![1], extents: vec![2], values: vec![1., 2.].into() };
        assert_eq!(each(&s, &t, |x, y| x + y).unwrap().values.as_slice(), [11., 12., 101., 102.]);
    }
}
