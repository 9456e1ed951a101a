//! All terms of both graphs, each stored once. Two values are equal if they are the same term under the same index map.

use crate::files::model::width;
use crate::terms::align::term_of;
use crate::terms::arg::{Arg, Term, as_floats, constant_digit};
use crate::terms::concats::Concats;
use crate::terms::constants::Constants;
use crate::terms::filters::Filters;
use crate::terms::fits::Fits;
use crate::terms::line::{Line, Resized};
use crate::terms::name::{Name, Own};
use crate::terms::quantized::Quantized;
use crate::terms::real::{Cores, RealForm};
use crate::terms::strided::Elements;
use crate::terms::symbolic::Symbolic;
use crate::terms::value::{Source, Value};
use crate::terms::view::View;
use crate::terms::windows::Convolved;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most joined axes and slots over each other.
const LAYERS: usize = 32;

/// All terms of both graphs.
pub(crate) struct Terms {
    list: Vec<Rc<Term>>,
    known: FxHashMap<Rc<Term>, u32>,
    pub(crate) constants: Constants,
    /// Number of terms of the input, and those of them that a lemma is about.
    pub(crate) input: Option<(u32, Option<Rc<Cores>>)>,
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
    /// Whether units of integers are read as what they are by definition, also in the input.
    pub(crate) parted: bool,
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
    /// Lines that Resizes of the input make of others.
    pub(crate) lines: Vec<Line>,
    /// Resizes that products of the result are, by these, as long as the input has none of them.
    pub(crate) halfway: FxHashMap<u32, Vec<Resized>>,
    /// Extents that do not fit.
    pub(crate) fits: Fits,
    /// Values one behind the other, by the term of what they are then, along some axes.
    pub(crate) joins: FxHashMap<u32, Vec<Join>>,
    /// What stands for extents, if all sizes are looked at.
    pub(crate) symbolic: Option<Symbolic>,
    /// Concats of the input.
    pub(crate) concats: Concats,
    /// Whether operands whose axes do not split alike are taken as they lie.
    pub(crate) apart: bool,
}

/// A value, as its term sees it, that is these parts along an axis.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) view: View,
    pub(crate) axis: usize,
    pub(crate) parts: Vec<Value>,
    /// Whether some are what a Pad adds.
    pub(crate) padded: bool,
}

/// Lemmas that were used.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// How often, by name.
    pub(crate) lemmas: BTreeMap<String, usize>,
    /// The largest relative difference of a constant.
    pub(crate) bound: f64,
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
            parted: false,
            computed: FxHashMap::default(),
            quantized: Vec::new(),
            addends: Vec::new(),
            nested: 0,
            filters: Filters::default(),
            convolved: Convolved::default(),
            halves: FxHashMap::default(),
            lines: Vec::new(),
            halfway: FxHashMap::default(),
            fits: Fits::default(),
            joins: FxHashMap::default(),
            symbolic: None,
            concats: Concats::default(),
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

    /// Whether a value is of a term that the input has not.
    pub(crate) fn lacks(&self, x: &Value) -> bool {
        term_of(x).is_some_and(|term| self.is_foreign(term))
    }

    /// Whether the input is read.
    pub(crate) fn is_of_input(&self) -> bool {
        self.input.is_none()
    }

    /// Notes that a lemma was used. What both graphs are read by needs none.
    pub(crate) fn by_lemma(&mut self, name: &str) {
        if self.input.is_some() {
            *self.held.lemmas.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Notes that a lemma says what a node of the input is.
    pub(crate) fn read_by_lemma(&mut self, name: &str) {
        *self.held.lemmas.entry(name.to_owned()).or_default() += 1;
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

    /// The number of a term that is there already.
    pub(crate) fn known_as(&self, term: &Term) -> Option<u32> {
        self.known.get(term).copied()
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
        let digits = dims.iter().map(|&(extent, stride)| constant_digit(extent, stride)).collect();
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
}
