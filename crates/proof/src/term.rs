//! Terms: what ops compute, each stored once. Two values are equal if they are the same term under the same index map.

use crate::align::{Aligned, align, term_of};
use crate::digest::Points;
use crate::flat;
use crate::lemma::{self, Cores};
use crate::model::width;
use crate::ops::Filters;
use crate::real::Form;
use crate::routed;
use crate::slots;
use crate::value::{Source, Value, gathered};
use crate::view::{self, Digit, View, normal};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Ops of two operands that may be swapped: each bit stays.
const COMMUTE: &[&str] = &["Add", "And", "Mul", "Or", "Xor", "contract"];

/// An operand of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    Absent,
    /// A constant: the common axes that it has, then extents of its own, and the digest of its elements in that order.
    Constant {
        dtype: u8,
        axes: Vec<u32>,
        own: Vec<i64>,
        digest: [u64; 2],
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
}

/// What is computed. Two terms with equal fields compute the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    /// Name of the op, with its domain if that is not the standard one.
    pub(crate) op: String,
    /// Everything else that the op is told.
    pub(crate) attrs: Vec<u8>,
    pub(crate) args: Vec<Arg>,
    /// Extents of the common axes of the operands, and what happens along each.
    pub(crate) over: Vec<i64>,
    pub(crate) class: Vec<u8>,
    /// Axes along which the order of indices matters: their digits and what the op is told of each.
    pub(crate) along: Vec<(Vec<Digit>, Vec<i64>)>,
    /// Extents of the result's axes, none of them 1.
    pub(crate) base: Vec<i64>,
    pub(crate) dtype: u8,
}

/// (extent, stride), outermost first.
type Dims = Vec<(i64, i64)>;

/// Where the elements of a constant are: address, first element, bytes, and how they are read.
type Place = (usize, i64, usize, Dims);

/// All terms of both graphs.
pub(crate) struct Terms {
    list: Vec<Rc<Term>>,
    known: FxHashMap<Rc<Term>, u32>,
    points: Points,
    /// Where the elements of a digest are.
    elements: FxHashMap<[u64; 2], (Bytes, i64, Dims)>,
    /// Digests by place in memory. The bytes are kept, so that no other constant comes to lie there.
    digests: FxHashMap<Place, ([u64; 2], Bytes)>,
    /// Number of terms of the input, and those of them that a lemma is about.
    input: Option<(u32, Option<Rc<Cores>>)>,
    /// Lemmas that were used.
    pub(crate) held: Held,
    /// Number of names that were given to numbers that nobody knows.
    unknown: u64,
    /// Real forms of terms of the result.
    pub(crate) forms: FxHashMap<u32, Form>,
    /// Normalizations of the input in other ops.
    pub(crate) norms: FxHashMap<u32, u32>,
    /// Whether powers of constants are computed, though ONNX does not fix how they round.
    pub(crate) rounds: bool,
    /// What was made of large constants, with these.
    pub(crate) computed: FxHashMap<String, (Vec<Option<Value>>, Vec<Value>)>,
    /// Numbers that real forms add.
    pub(crate) addends: Vec<f64>,
    /// Filters of convolutions of the input.
    pub(crate) filters: Filters,
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
            points: Points::draw(),
            elements: FxHashMap::default(),
            digests: FxHashMap::default(),
            input: None,
            held: Held::default(),
            unknown: 0,
            forms: FxHashMap::default(),
            norms: FxHashMap::default(),
            rounds: false,
            computed: FxHashMap::default(),
            addends: Vec::new(),
            filters: Filters::default(),
        }
    }

    /// All terms so far are those of the input. The next ones may be put in their place by a lemma.
    pub(crate) fn input_ends(&mut self) {
        self.input = Some((self.count(), None));
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
        let cores = cores.unwrap_or_else(|| Rc::new(Cores::of(self, bound)));
        self.input = Some((bound, Some(Rc::clone(&cores))));
        let Some(found) = cores.find(self, term, bound) else { return value };
        found.lemmas.iter().for_each(|lemma| self.by_lemma(lemma));
        self.held.bound = self.held.bound.max(found.bound);
        Value { source: Source::Term(found.term), ..value }
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
        let least = lemma::ROUNDINGS * lemma::unit(1)?;
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

    /// The digest of a constant's elements at these (extent, stride), in row-major order.
    pub(crate) fn digest(&mut self, value: &Value, dims: &[(i64, i64)]) -> Option<[u64; 2]> {
        let Source::Constant { data, offset } = &value.source else { return None };
        let digits = dims.iter().map(|&(extent, stride)| Digit { axis: u32::from(stride == 0), extent, stride });
        let dims: Vec<(i64, i64)> = normal(digits).iter().map(|d| (d.extent, d.stride)).collect();
        let key = (data.as_ptr().addr(), *offset, data.len(), dims);
        if let Some((digest, _)) = self.digests.get(&key) {
            return Some(*digest);
        }
        let elements = gathered(data, *offset, &key.3, width(value.dtype)?)?;
        let digest = self.points.digest(&elements);
        self.elements.entry(digest).or_insert_with(|| (data.clone(), *offset, key.3.clone()));
        self.digests.insert(key, (digest, data.clone()));
        Some(digest)
    }

    /// The elements of a digest, if they are floats of 32 or 16 bits.
    pub(crate) fn floats(&self, dtype: u8, digest: [u64; 2]) -> Option<Vec<f64>> {
        as_floats(dtype, &self.bytes(dtype, digest)?)
    }

    /// The elements of a digest.
    pub(crate) fn bytes(&self, dtype: u8, digest: [u64; 2]) -> Option<Bytes> {
        let (data, offset, dims) = self.elements.get(&digest)?;
        gathered(data, *offset, dims, width(dtype)?)
    }

    /// Whether two values are the same.
    pub(crate) fn same(&mut self, a: &Value, b: &Value) -> Option<bool> {
        let alike = a.dtype == b.dtype && a.shape() == b.shape();
        Some(match (&a.source, &b.source) {
            (Source::Term(x), Source::Term(y)) => alike && x == y && a.view == b.view,
            (Source::Constant { .. }, Source::Constant { .. }) => alike && self.whole(a)? == self.whole(b)?,
            _ => false,
        })
    }

    fn whole(&mut self, value: &Value) -> Option<[u64; 2]> {
        let dims: Vec<(i64, i64)> = value.view.iter().flatten().map(|d| (d.extent, d.stride)).collect();
        self.digest(value, &dims)
    }

    /// The operand as it is, in its own logical order.
    pub(crate) fn plain(&mut self, value: Option<&Value>) -> Option<Arg> {
        let Some(value) = value else { return Some(Arg::Absent) };
        Some(match value.source {
            Source::Term(term) => Arg::View { term, view: value.view.clone() },
            Source::Constant { .. } => {
                let digest = self.whole(value)?;
                Arg::Constant { dtype: value.dtype, axes: Vec::new(), own: value.shape(), digest }
            }
        })
    }

    /// An operand over common axes, with digits of its own behind them.
    fn arg(&mut self, value: &Value, operand: usize, aligned: &Aligned, own: &[Digit]) -> Option<Arg> {
        if let Some(term) = term_of(value) {
            return Some(Arg::Term { term, reads: aligned.reads[operand].clone(), own: own.to_vec() });
        }
        let (axes, dims) = &aligned.constants[operand];
        let mut dims = dims.clone();
        dims.extend(own.iter().map(|d| (d.extent, d.stride)));
        let digest = self.digest(value, &dims)?;
        let own = if own.is_empty() { Vec::new() } else { vec![view::extent(own)] };
        Some(Arg::Constant { dtype: value.dtype, axes: axes.clone(), own, digest })
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
        if COMMUTE.contains(&op.name) {
            // The order of terms is the same in both graphs. Constants are last, so that they don't lay the result.
            operands.sort_by_key(|(value, _)| term_of(value).unwrap_or(u32::MAX));
        }
        let operands: Vec<(&Value, View)> = operands.iter().map(|(v, view)| (v, view.clone())).collect();
        let class: Vec<u8> = (0..shape.len()).map(|axis| u8::from(together.contains(&axis))).collect();
        let aligned = align(shape, &operands, &class, true)?;
        let mut term = op.term();
        for (at, (value, _)) in operands.iter().enumerate() {
            term.args.push(self.arg(value, at, &aligned, &[])?);
        }
        term.over.clone_from(&aligned.extents);
        term.class.clone_from(&aligned.class);
        let keeps: Vec<bool> = aligned.class.iter().map(|class| !dropped || *class == 0).collect();
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
        let class: Vec<u8> = (0..shape.len()).map(|axis| u8::from(acted.iter().any(|a| a.axis == axis))).collect();
        let aligned = align(&shape, &[(value, value.view.clone())], &class, false)?;
        let mut term = op.term();
        term.args.push(self.arg(value, 0, &aligned, &[])?);
        let mut acted: Vec<&Acted> = acted.iter().collect();
        acted.sort_by_key(|a| aligned.axes[a.axis].iter().map(|d| (d.axis, -d.stride)).min());
        term.along = acted.iter().map(|a| (aligned.axes[a.axis].clone(), a.told.clone())).collect();
        let keeps: Vec<bool> = aligned.class.iter().map(|class| *class == 0).collect();
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
        let total: i64 =
            values.iter().map(|v| v.view.get(axis).map(|digits| view::extent(digits))).sum::<Option<i64>>()?;
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
        let aligned = align(&shape, &operands, &vec![0; shape.len()], true)?;
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
    pub(crate) name: &'a str,
    pub(crate) attrs: &'a [u8],
    pub(crate) dtype: u8,
}

impl Op<'_> {
    fn term(&self) -> Term {
        Term { op: self.name.to_owned(), attrs: self.attrs.to_vec(), dtype: self.dtype, ..Term::default() }
    }
}

/// The elements of a constant, if they are floats of 32 or 16 bits.
pub(crate) fn numbers(value: &Value) -> Option<Vec<f64>> {
    as_floats(value.dtype, &value.elements()?)
}

fn as_floats(dtype: u8, bytes: &[u8]) -> Option<Vec<f64>> {
    match dtype {
        1 => Some(bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()),
        10 => Some(bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f64()).collect()),
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
