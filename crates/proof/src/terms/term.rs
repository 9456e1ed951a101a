//! Terms: what ops compute, each stored once. Two values are equal if they are the same term under the same index map.

use crate::files::model::width;
use crate::lemmas::real::{RealForm, as_is};
use crate::lemmas::scales::{self, Cores};
use crate::ops::{Convolved, Filters, Quantized};
use crate::terms::align::{Aligned, Class, align, classes, term_of};
use crate::terms::constants::Constants;
use crate::terms::fits::Fits;
use crate::terms::flat;
use crate::terms::name::{Name, OpName, Own, TermName};
use crate::terms::routed;
use crate::terms::slots;
use crate::terms::strided::Elements;
use crate::terms::symbolic::Symbolic;
use crate::terms::value::{Source, Value};
use crate::terms::view::{self, Digit, REPEAT, View, normal};
use half::f16;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most joined axes and slots over each other.
const LAYERS: usize = 32;

/// An operand of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    Absent,
    /// A constant: the common axes that it has, then extents of its own, and the number of its elements in that order.
    Constant {
        dtype: u8,
        axes: Vec<u32>,
        own: Vec<i64>,
        elements: u32,
    },
    /// A term, by what it reads along the common axes, then digits of its own.
    Term {
        term: u32,
        reads: Vec<Option<(u32, i64)>>,
        own: Vec<Digit>,
    },
    /// A value in its own logical order.
    View {
        term: u32,
        view: View,
    },
    /// A value of a shape that is not known.
    Opaque(u32),
}

/// What is computed. Two terms with equal fields compute the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub(crate) op: TermName,
    /// Everything else that the op is told.
    pub(crate) attrs: Vec<u8>,
    pub(crate) args: Vec<Arg>,
    /// Extents of the common axes of the operands, and what happens along each.
    pub(crate) over: Vec<i64>,
    pub(crate) class: Vec<Class>,
    /// Axes along which the order of indices matters: their digits and what the op is told of each.
    pub(crate) along: Vec<(Vec<Digit>, Vec<i64>)>,
    /// Extents of the result's axes, none of them 1.
    pub(crate) base: Vec<i64>,
    pub(crate) dtype: u8,
}

impl Term {
    /// A term of which only the op is said.
    pub(crate) fn of(op: OpName<'_>) -> Term {
        Term {
            op: op.owned(),
            attrs: Vec::new(),
            args: Vec::new(),
            over: Vec::new(),
            class: Vec::new(),
            along: Vec::new(),
            base: Vec::new(),
            dtype: 0,
        }
    }

    pub(crate) fn name(&self) -> OpName<'_> {
        self.op.borrowed()
    }

    /// Whether it is this op of the checker.
    pub(crate) fn is(&self, own: Own) -> bool {
        self.op == Name::Own(own)
    }

    /// The common axes along which it treats each index alike.
    pub(crate) fn alike(&self) -> impl Iterator<Item = usize> {
        self.class.iter().enumerate().filter(|(_, class)| **class == Class::Alike).map(|(axis, _)| axis)
    }
}

/// All terms of both graphs.
pub(crate) struct Terms {
    list: Vec<Rc<Term>>,
    known: FxHashMap<Rc<Term>, u32>,
    pub(crate) constants: Constants,
    /// Number of terms of the input, and those of them that a lemma is about.
    input: Option<(u32, Option<Rc<Cores>>)>,
    /// Lemmas that were used.
    pub(crate) held: Held,
    /// Number of names that were given to numbers that nobody knows.
    unknown: u64,
    /// Real forms of terms of the result.
    pub(crate) forms: FxHashMap<u32, RealForm>,
    /// Normalizations of the input in other ops.
    pub(crate) norms: FxHashMap<u32, u32>,
    /// Whether powers of constants are computed, though ONNX does not fix how they round.
    pub(crate) rounds: bool,
    /// What was made of large constants, with these.
    pub(crate) computed: FxHashMap<String, (Vec<Option<Value>>, Vec<Value>)>,
    /// Large quantized constants.
    pub(crate) quantized: Vec<Quantized>,
    /// Numbers that real forms add.
    pub(crate) addends: Vec<f64>,
    /// How many real forms are being written inside of each other.
    pub(crate) nested: u32,
    /// Filters of convolutions of the input.
    pub(crate) filters: Filters,
    /// What terms of convolutions are made of.
    pub(crate) convolved: Convolved,
    /// The halves that the input makes of floats, by these.
    pub(crate) halves: FxHashMap<u32, u32>,
    /// Extents that do not fit.
    pub(crate) fits: Fits,
    /// What stands for extents, if all sizes are looked at.
    pub(crate) symbolic: Option<Symbolic>,
    /// Whether operands whose axes do not split alike are taken as they lie.
    pub(crate) apart: bool,
}

/// Lemmas that were used.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// How often, by name.
    pub(crate) lemmas: BTreeMap<String, usize>,
    /// The largest relative difference of a constant.
    pub(crate) bound: f64,
}

/// An axis along which the order of indices matters.
#[derive(Clone, Debug)]
pub(crate) struct Acted {
    /// The logical axis.
    pub(crate) axis: usize,
    /// What the op is told of this axis.
    pub(crate) told: Vec<i64>,
    /// Extent of the axis of the result.
    pub(crate) out: i64,
}

impl Terms {
    pub(crate) fn new() -> Terms {
        Terms {
            list: Vec::new(),
            known: FxHashMap::default(),
            constants: Constants::default(),
            input: None,
            held: Held::default(),
            unknown: 0,
            forms: FxHashMap::default(),
            norms: FxHashMap::default(),
            rounds: false,
            computed: FxHashMap::default(),
            quantized: Vec::new(),
            addends: Vec::new(),
            nested: 0,
            filters: Filters::default(),
            convolved: Convolved::default(),
            halves: FxHashMap::default(),
            fits: Fits::default(),
            symbolic: None,
            apart: false,
        }
    }

    /// All terms so far are those of the input. The next ones may be put in their place by a lemma.
    pub(crate) fn input_ends(&mut self) {
        self.input = Some((self.count(), None));
        self.model_ends();
    }

    /// Whether a term is none of the input, all of whose terms are there.
    pub(crate) fn is_foreign(&self, term: u32) -> bool {
        self.input.as_ref().is_some_and(|(bound, _)| term >= *bound)
    }

    /// Whether the input is read.
    pub(crate) fn is_of_input(&self) -> bool {
        self.input.is_none()
    }

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
        let Some(found) = cores.find(self, term, bound) else { return value };
        let Some(view) = view::composed(&value.view, &found.view) else { return value };
        found.lemmas.iter().for_each(|lemma| self.by_lemma(lemma));
        self.held.bound = self.held.bound.max(found.bound);
        Value { source: Source::Term(found.term), view, ..value }
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

    /// Notes that a lemma was used. What both graphs are read by needs none.
    pub(crate) fn by_lemma(&mut self, name: &str) {
        if self.input.is_some() {
            *self.held.lemmas.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Notes that a constant was computed that may be rounded otherwise.
    pub(crate) fn rounded(&mut self) {
        *self.held.lemmas.entry("constants that round".to_owned()).or_default() += 1;
    }

    /// A name that nothing else has.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.unknown += 1;
        self.unknown
    }

    /// A number that was added before, if this one differs from it by no more than a few roundings, and the relative difference.
    pub(crate) fn near(&mut self, number: f64) -> Option<(f64, f64)> {
        let least = scales::ROUNDINGS * scales::unit(1)?;
        let difference = |known: f64| (known - number).abs();
        let known = self.addends.iter().copied().min_by(|a, b| difference(*a).total_cmp(&difference(*b)));
        if let Some(known) = known.filter(|known| difference(*known) <= least * known.abs()) {
            return Some((known, if difference(known) <= 0.0 { 0.0 } else { difference(known) / known.abs() }));
        }
        self.addends.push(number);
        Some((number, 0.0))
    }

    pub(crate) fn get(&self, term: u32) -> &Rc<Term> {
        &self.list[term as usize]
    }

    /// The term without joined axes and slots, and how many of these there are.
    pub(crate) fn beneath(&self, mut term: u32) -> (u32, usize) {
        let mut layers = 0;
        while let (Name::Own(Own::Flat | Own::Slots), [Arg::Term { term: inner, .. }]) =
            (self.get(term).name(), self.get(term).args.as_slice())
        {
            (term, layers) = (*inner, layers + 1);
        }
        (term, layers)
    }

    /// Whether one more of them may be put over a value. Each costs a call inside of a call.
    pub(crate) fn takes_layer(&self, value: &Value) -> bool {
        term_of(value).is_none_or(|term| self.beneath(term).1 < LAYERS)
    }

    /// Number of terms so far.
    pub(crate) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) fn intern(&mut self, term: Term) -> u32 {
        if let Some(&known) = self.known.get(&term) {
            return known;
        }
        let (number, term) = (self.list.len() as u32, Rc::new(term));
        self.list.push(Rc::clone(&term));
        self.known.insert(term, number);
        number
    }

    /// A constant of this shape that has the elements with a number.
    pub(crate) fn constant(&self, dtype: u8, shape: &[i64], elements: u32) -> Option<Value> {
        let Elements { data, first, dims, width: bytes } = self.constants.get(elements);
        let source = Source::Constant { data: data.clone(), offset: *first };
        let digits = dims.iter().map(|&(extent, stride)| along(extent, stride)).collect();
        let list = Value { source, view: vec![digits], dtype };
        list.reshaped(shape).filter(|_| width(dtype) == Some(*bytes))
    }

    /// The elements with a number, if they are floats of 32 or 16 bits.
    pub(crate) fn floats(&self, dtype: u8, elements: u32) -> Option<Vec<f64>> {
        as_floats(dtype, &self.constants.get(elements).dense()?)
    }

    /// Whether two values are the same.
    pub(crate) fn same(&mut self, a: &Value, b: &Value) -> Option<bool> {
        let alike = a.dtype == b.dtype && a.shape() == b.shape();
        Some(match (&a.source, &b.source) {
            (Source::Term(x), Source::Term(y)) => alike && x == y && a.view == b.view,
            (Source::Constant { .. }, Source::Constant { .. }) if self.has_open(a) => {
                alike && a.splat()?.elements()? == b.splat()?.elements()?
            }
            (Source::Constant { .. }, Source::Constant { .. }) => alike && self.constants.same(a.all()?, b.all()?),
            (Source::Opaque(x), Source::Opaque(y)) => x == y,
            _ => false,
        })
    }

    /// The operand as it is, in its own logical order.
    pub(crate) fn plain(&mut self, value: Option<&Value>) -> Option<Arg> {
        let Some(value) = value else { return Some(Arg::Absent) };
        Some(match value.source {
            Source::Term(term) => Arg::View { term, view: value.view.clone() },
            Source::Opaque(term) => Arg::Opaque(term),
            Source::Constant { .. } => {
                // Of one number that is repeated as often as the shape says.
                let all = if self.has_open(value) { value.splat()?.all()? } else { value.all()? };
                let elements = self.constants.number(all);
                Arg::Constant { dtype: value.dtype, axes: Vec::new(), own: value.shape(), elements }
            }
        })
    }

    /// An operand over common axes, with digits of its own behind them.
    fn arg(&mut self, value: &Value, operand: usize, aligned: &Aligned, own: &[Digit]) -> Option<Arg> {
        if let Some(term) = term_of(value) {
            return Some(Arg::Term { term, reads: aligned.reads[operand].clone(), own: own.to_vec() });
        }
        let (axes, dims) = &aligned.constants[operand];
        if own.iter().any(|digit| self.is_open(digit.extent)) {
            return None;
        }
        let digits = dims.iter().map(|&(extent, stride)| along(extent, stride));
        let elements = self.constants.number(value.listed(digits.chain(own.iter().copied()))?);
        let own = if own.is_empty() { Vec::new() } else { vec![view::extent(own)] };
        Some(Arg::Constant { dtype: value.dtype, axes: axes.clone(), own, elements })
    }

    /// The value with other extents.
    pub(crate) fn moved(&mut self, x: &Value, to: &[i64]) -> Option<Value> {
        // Whole axes may do where parts of them are in the way.
        let bare = x.reshaped(&[x.count()]).and_then(|one| flat::without(self, &one));
        // What comes of them does not depend on which axes were counted as one before.
        let anew = |terms: &mut Terms, bare: &Value| bare.reshaped(to).or_else(|| flat::regrouped(terms, bare, to));
        if let Some(y) = bare.as_ref().and_then(|bare| anew(self, bare)) {
            return Some(y);
        }
        if let Some(y) = x.reshaped(to) {
            return Some(flat::without(self, &y).unwrap_or(y));
        }
        flat::regrouped(self, bare.as_ref().unwrap_or(x), to)
    }

    /// The same where axes are cut through a `flat`: the op runs before it.
    fn each_joined(
        &mut self,
        op: &Op<'_>,
        shape: &[i64],
        operands: &[(&Value, View)],
        together: &[usize],
        dropped: bool,
    ) -> Option<Value> {
        let (range, to, values) = flat::joined(self, shape, operands)?;
        if together.iter().any(|axis| range.contains(axis)) {
            return None;
        }
        let operands: Vec<(&Value, View)> = values.iter().map(|v| (v, v.view.clone())).collect();
        let less = range.len() - 1;
        let together: Vec<usize> =
            together.iter().map(|&axis| if axis >= range.end { axis - less } else { axis }).collect();
        let made = self.each(op, &to, &operands, &together, dropped)?;
        let cut = flat::cut_again(&made, &range, shape);
        self.moved(&made, &cut)
    }

    /// An op that treats all indices alike but along the axes `together`, whose indices it takes as a set. They are gone from the
    /// result if `dropped`. `shape` is that of the operands together; each view has its rank.
    pub(crate) fn each(
        &mut self,
        op: &Op<'_>,
        shape: &[i64],
        operands: &[(&Value, View)],
        together: &[usize],
        dropped: bool,
    ) -> Option<Value> {
        // The axes of a sum of products are more than those of any value.
        shape.iter().try_fold(1_i64, |count, extent| count.checked_mul(*extent))?;
        if let Some(made) = self.each_joined(op, shape, operands, together, dropped) {
            return Some(made);
        }
        if let Some(made) = flat::each(self, op, shape, operands, together, dropped) {
            return Some(made);
        }
        if let Some(made) = slots::each(self, op, shape, operands, together, dropped) {
            return Some(made);
        }
        if let Some(made) = routed::each(self, op, shape, operands, together, dropped) {
            return Some(made);
        }
        let mut operands: Vec<(Value, View)> = operands.iter().map(|(v, view)| ((*v).clone(), view.clone())).collect();
        for (value, view) in &mut operands {
            if let Some(one) = value.splat().filter(|_| value.count() > 1) {
                (*value, *view) = (one, vec![Vec::new(); shape.len()]);
            }
        }
        if op.name.commutes() {
            // The order of terms is the same in both graphs. Constants are last, so that they don't lay the result.
            operands.sort_by_key(|(value, _)| term_of(value).unwrap_or(u32::MAX));
        }
        let operands: Vec<(&Value, View)> = operands.iter().map(|(v, view)| (v, view.clone())).collect();
        let class = classes(shape.len(), together);
        let aligned = align(shape, &operands, &class, true)?;
        let mut term = op.term();
        for (at, (value, _)) in operands.iter().enumerate() {
            term.args.push(self.arg(value, at, &aligned, &[])?);
        }
        term.over.clone_from(&aligned.extents);
        term.class.clone_from(&aligned.class);
        let keeps: Vec<bool> = aligned.class.iter().map(|class| !dropped || *class == Class::Alike).collect();
        let (base, number) = kept(&aligned.extents, &keeps);
        term.base = base;
        let axis = |(at, axis): (usize, &Vec<Digit>)| {
            let gone = dropped && together.contains(&at);
            axis.iter().filter(|_| !gone).map(|d| renumbered(*d, &number)).collect()
        };
        let view = aligned.axes.iter().enumerate().map(axis).collect();
        Some(Value { source: Source::Term(self.intern(term)), view, dtype: op.dtype })
    }

    /// An op of one operand that acts along some axes, where the order of indices matters, and treats all others alike.
    pub(crate) fn along(&mut self, op: &Op<'_>, value: &Value, acted: &[Acted]) -> Option<Value> {
        let shape = value.shape();
        // No axis differs from call to call that is made of one which does not.
        if acted.iter().any(|a| self.is_open(a.out) && !self.is_open(shape[a.axis])) {
            return None;
        }
        let class = classes(shape.len(), &acted.iter().map(|a| a.axis).collect::<Vec<_>>());
        let aligned = align(&shape, &[(value, value.view.clone())], &class, false)?;
        let mut term = op.term();
        term.args.push(self.arg(value, 0, &aligned, &[])?);
        let mut acted: Vec<&Acted> = acted.iter().collect();
        acted.sort_by_key(|a| aligned.axes[a.axis].iter().map(|d| (d.axis, -d.stride)).min());
        term.along = acted.iter().map(|a| (aligned.axes[a.axis].clone(), a.told.clone())).collect();
        let keeps: Vec<bool> = aligned.class.iter().map(|class| *class == Class::Alike).collect();
        let (mut base, number) = kept(&aligned.extents, &keeps);
        let mut view: View =
            aligned.axes.iter().map(|axis| axis.iter().map(|d| renumbered(*d, &number)).collect()).collect();
        for a in acted {
            let digit = Digit { axis: base.len() as u32, extent: a.out, stride: 1 };
            view[a.axis] = normal([digit]);
            if a.out != 1 {
                base.push(a.out);
            }
        }
        term.over = aligned.extents;
        term.class = aligned.class;
        term.base = base;
        Some(Value { source: Source::Term(self.intern(term)), view, dtype: op.dtype })
    }

    /// The operands one behind the other along an axis.
    pub(crate) fn joined(&mut self, op: &Op<'_>, values: &[&Value], axis: usize) -> Option<Value> {
        let mut shape = values.first()?.shape();
        let parts = values.iter().map(|value| Some(view::extent(value.view.get(axis)?))).collect::<Option<Vec<_>>>()?;
        let total = self.sum_of(&parts, 0)?;
        *shape.get_mut(axis)? = 1;
        let cut = |value: &Value| {
            let mut view = value.view.clone();
            view[axis].clear();
            view
        };
        let operands: Vec<(&Value, View)> = values.iter().map(|v| (*v, cut(v))).collect();
        if operands.iter().any(|(_, view)| view::shape(view) != shape) {
            return None;
        }
        let aligned = align(&shape, &operands, &classes(shape.len(), &[]), true)?;
        let mut term = op.term();
        for (at, value) in values.iter().enumerate() {
            term.args.push(self.arg(value, at, &aligned, &value.view[axis])?);
            term.attrs.extend(view::extent(&value.view[axis]).to_le_bytes());
        }
        term.over.clone_from(&aligned.extents);
        let mut view = aligned.axes;
        let mut base = aligned.extents;
        view[axis] = normal([Digit { axis: base.len() as u32, extent: total, stride: 1 }]);
        if total != 1 {
            base.push(total);
        }
        term.base = base;
        Some(Value { source: Source::Term(self.intern(term)), view, dtype: op.dtype })
    }

    /// An op that reads its operands in their own order of axes. `results` has shape and element type of each.
    pub(crate) fn placed(
        &mut self,
        op: &Op<'_>,
        operands: &[Option<&Value>],
        results: &[(Vec<i64>, u8)],
    ) -> Option<Vec<Value>> {
        let args: Vec<Arg> = operands.iter().map(|value| self.plain(*value)).collect::<Option<_>>()?;
        let mut values = Vec::new();
        for (at, (shape, dtype)) in results.iter().enumerate() {
            if shape.iter().any(|d| *d <= 0) {
                return None;
            }
            let mut term = Op { dtype: *dtype, ..*op }.term();
            term.args.clone_from(&args);
            term.attrs.push(at as u8);
            let (base, view) = view::identity(shape);
            term.base = base;
            values.push(Value { source: Source::Term(self.intern(term)), view, dtype: *dtype });
        }
        Some(values)
    }
}

/// The name and the attributes of an op, and the element type of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(crate) name: OpName<'a>,
    pub(crate) attrs: &'a [u8],
    pub(crate) dtype: u8,
}

impl Op<'_> {
    fn term(&self) -> Term {
        Term { attrs: self.attrs.to_vec(), dtype: self.dtype, ..Term::of(self.name) }
    }
}

/// A digit of a constant.
fn along(extent: i64, stride: i64) -> Digit {
    Digit { axis: if stride == 0 { REPEAT } else { 0 }, extent, stride }
}

/// The elements of a constant, if they are floats of 32 or 16 bits.
pub(crate) fn numbers(value: &Value) -> Option<Vec<f64>> {
    as_floats(value.dtype, &value.elements()?)
}

/// Whether a constant has no elements but finite numbers.
pub(crate) fn is_finite(value: &Value) -> bool {
    let Some(all) = value.all() else { return false };
    // Without a branch for each.
    match value.dtype {
        1 => all.every(|bytes| {
            bytes.as_chunks().0.iter().fold(true, |others, x| others & f32::from_le_bytes(*x).is_finite())
        }),
        10 => all.every(|bytes| {
            bytes.as_chunks().0.iter().fold(true, |others, x| others & f16::from_le_bytes(*x).is_finite())
        }),
        _ => false,
    }
}

fn as_floats(dtype: u8, bytes: &[u8]) -> Option<Vec<f64>> {
    match dtype {
        1 => Some(bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()),
        10 => Some(bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64()).collect()),
        _ => None,
    }
}

/// Axes that stay, and the new number of each.
fn kept(extents: &[i64], keeps: &[bool]) -> (Vec<i64>, Vec<u32>) {
    let mut base = Vec::new();
    let number = keeps.iter().zip(extents).map(|(keep, extent)| {
        if *keep {
            base.push(*extent);
        }
        (base.len() as u32).saturating_sub(1)
    });
    let number = number.collect();
    (base, number)
}

fn renumbered(digit: Digit, number: &[u32]) -> Digit {
    Digit { axis: number.get(digit.axis as usize).copied().unwrap_or(digit.axis), ..digit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_without_end_is_found_at_each_place() {
        for (bad, place) in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY].into_iter().flat_map(at_each_place)
        {
            let mut list = vec![6e4; 30];
            list[7] = 1e-40;
            assert!(both(&list).iter().all(is_finite));
            list[place] = bad;
            for value in both(&list) {
                assert!(!is_finite(&value));
                assert!(!is_finite(&value.permuted(&[1, 0]).unwrap()));
                for row in 0..5 {
                    let part = value.part(0, row, 1).unwrap();
                    assert_eq!(is_finite(&part), row != place as i64 / 6, "{bad} at {place}, row {row}");
                }
            }
        }
        assert!(!is_finite(&Value::ints(&[2], &[1, 2])));
    }

    fn at_each_place(bad: f32) -> impl Iterator<Item = (f32, usize)> {
        (0..30).map(move |place| (bad, place))
    }

    /// These numbers with 32 and with 16 bits.
    fn both(list: &[f32]) -> [Value; 2] {
        let floats: Vec<u8> = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        let halves: Vec<u8> = list.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect();
        [Value::constant(1, &[5, 6], floats.into()), Value::constant(10, &[5, 6], halves.into())]
    }

    #[test]
    fn what_is_the_same_everywhere_is_one_element() {
        for place in 0..12 {
            let mut list = [3_i64; 12];
            assert_eq!(Value::ints(&[3, 4], &list).splat().unwrap().count(), 1);
            list[place] = 4;
            assert!(Value::ints(&[3, 4], &list).splat().is_none());
            let part = Value::ints(&[3, 4], &list).part(0, 1, 1).unwrap();
            assert_eq!(part.splat().is_some(), place / 4 != 1);
        }
    }
}
