//! Extents that differ from call to call, for what is shown of all sizes.
//!
//! Each symbolic dim is a prime that divides no number of either file. So an extent is a number of the files times primes: an *open*
//! extent if there are any. Products of such numbers, quotients without a rest, and equal numbers are what they are whatever sizes the
//! dims have, since numbers have one list of factors. That is all that digits need. Whatever else an op computes of an open extent, as the
//! sums and rounded quotients of windows, is a prime of its own that stands for it; equal ones have one normal form.
//!
//! Sizes are 1 at least, and with them each axis of the model is: what it makes of an empty axis nobody asks. Of the result that is
//! known only where the model asks for it too: neither for an axis of its own nor for extents that broadcast in it alone.

use crate::files::model::{Attr, DeclaredDim, Graph, Model, Node, Tensor};
use crate::terms::value::Value;
use crate::terms::view::divisor;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// How many extents a model may have that are no products of others.
const PRIMES: usize = 96;

/// The first prime is above this one: small factors are those of most files.
const ABOVE: i64 = 256;

/// Most numbers of a list of extents, and of a constant that may be one.
pub(crate) const LISTED: i64 = 4096;

/// `floor((sum of numbers times products of primes + add) / by)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Quotient {
    sum: BTreeMap<i64, i64>,
    add: i64,
    by: i64,
}

/// What primes stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbolic {
    /// All primes, also those that stand for nothing yet.
    pub(crate) primes: Vec<i64>,
    names: FxHashMap<String, i64>,
    quotients: FxHashMap<Quotient, i64>,
    /// Extents of which nobody knows more than that each of these is one of them, or 1.
    common: FxHashMap<Vec<i64>, i64>,
    meanings: FxHashMap<i64, Quotient>,
    /// Terms that are lists of extents.
    pub(crate) lists: FxHashMap<u32, Vec<i64>>,
    /// Extents that are one number, since the model fails with any other, by what they are.
    fixed: BTreeMap<String, i64>,
    /// The first extent of which that was found.
    pub(crate) found: Option<(String, i64)>,
    /// How many bodies are around a node: nobody knows whether it runs.
    pub(crate) bodies: usize,
    /// Whether a claim was left that is about some sizes.
    pub(crate) left: bool,
    /// Extents that are so large at least, and those that broadcast, with which the model runs.
    asked: FxHashSet<Vec<i64>>,
    /// Whether all of the model was read.
    pub(crate) of_result: bool,
}

impl Symbolic {
    /// For the extents of these models. `None` if their numbers leave too few primes.
    pub(crate) fn of(models: [&Model; 2]) -> Option<Symbolic> {
        let mut numbers = Numbers::default();
        for model in models {
            numbers.of_model(model);
        }
        let is_prime = |n: &i64| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0);
        let primes = (ABOVE..1 << 12).filter(is_prime).filter(|p| numbers.0.iter().all(|n| n % p != 0));
        let primes: Vec<i64> = primes.take(PRIMES).collect();
        (primes.len() == PRIMES).then(|| Symbolic { primes, ..Symbolic::default() })
    }

    /// With these numbers for some extents.
    pub(crate) fn with(self, fixed: BTreeMap<String, i64>) -> Symbolic {
        Symbolic { fixed, ..self }
    }

    /// Whether a number differs from call to call.
    pub(crate) fn is_open(&self, number: i64) -> bool {
        number != 0 && self.primes.iter().any(|prime| number % prime == 0)
    }

    fn fresh(&self) -> Option<i64> {
        self.primes.get(self.names.len() + self.quotients.len() + self.common.len()).copied()
    }

    /// The extent with a name.
    pub(crate) fn named(&mut self, name: &str) -> Option<i64> {
        let known = self.names.get(name).copied();
        let extent = known.or_else(|| self.fresh())?;
        self.names.insert(name.to_owned(), extent);
        Some(self.or_fixed(extent))
    }

    /// What an extent is, whatever primes stand for its parts.
    pub(crate) fn described(&self, number: i64) -> String {
        let (mut parts, mut left) = (Vec::new(), number);
        for &prime in self.primes.iter().filter(|_| number != 0) {
            while left % prime == 0 {
                left /= prime;
                let name = self.names.iter().find(|(_, extent)| **extent == prime);
                let list = self.common.iter().find(|(_, extent)| **extent == prime);
                let sorted = |mut list: Vec<String>| {
                    list.sort();
                    list
                };
                parts.push(match (name, self.meanings.get(&prime), list) {
                    (Some((name, _)), ..) => format!("{name:?}"),
                    (_, Some(of), _) => {
                        let sum = of.sum.iter().map(|(open, times)| format!("{times} {}", self.described(*open)));
                        format!("({:?} + {}) / {}", sorted(sum.collect()), of.add, of.by)
                    }
                    (_, _, Some((list, _))) => {
                        format!("{:?}", sorted(list.iter().map(|extent| self.described(*extent)).collect()))
                    }
                    _ => String::new(),
                });
            }
        }
        parts.sort();
        format!("{left} {parts:?}")
    }

    /// An extent, or the number that it is since the model fails with any other.
    fn or_fixed(&self, extent: i64) -> i64 {
        if self.fixed.is_empty() {
            return extent;
        }
        self.fixed.get(&self.described(extent)).copied().unwrap_or(extent)
    }

    /// The extent that several become where they broadcast. If a number of the file is among them, it is that.
    pub(crate) fn common(&mut self, mut extents: Vec<i64>) -> Option<i64> {
        extents.retain(|extent| *extent != 1);
        extents.sort_unstable();
        extents.dedup();
        let closed: Vec<i64> = extents.iter().copied().filter(|extent| !self.is_open(*extent)).collect();
        if extents.len() > 1 && !self.asks(extents.clone()) {
            return None;
        }
        match (closed.as_slice(), extents.as_slice()) {
            (_, []) => Some(1),
            (_, [only]) | ([only], _) => Some(*only),
            ([], _) => {
                let known = self.common.get(&extents).copied();
                let extent = known.or_else(|| self.fresh())?;
                self.common.insert(extents, extent);
                Some(self.or_fixed(extent))
            }
            _ => None,
        }
    }

    /// Notes what has to hold of extents for the model to run. Whether the model has asked for it, if it is the result that does.
    pub(crate) fn asks(&mut self, of: Vec<i64>) -> bool {
        if !self.of_result {
            self.asked.insert(of);
            return true;
        }
        self.asked.contains(&of)
    }

    /// What a number stands for.
    fn meaning(&self, number: i64) -> Quotient {
        if let Some(known) = self.meanings.get(&number) {
            return known.clone();
        }
        let mut closed = number;
        for prime in self.primes.iter().filter(|_| number != 0) {
            while closed % prime == 0 {
                closed /= prime;
            }
        }
        let open = number.checked_div(closed).unwrap_or(1);
        let (sum, add) = if open == 1 { (BTreeMap::new(), number) } else { ([(open, closed)].into(), 0) };
        Quotient { sum, add, by: 1 }
    }

    /// The number that stands for a quotient. `None` for one of a file that would be taken for an open one.
    fn number(&mut self, mut of: Quotient) -> Option<i64> {
        of.sum.retain(|_, times| *times != 0);
        // floor((c s + a) / (c b)) = floor((s + floor(a / c)) / b)
        let common = of.sum.values().fold(of.by, |common, times| divisor(common, times.abs()));
        of.sum.values_mut().for_each(|times| *times /= common);
        (of.add, of.by) = (of.add.div_euclid(common), of.by / common);
        if of.by == 1 && (of.sum.is_empty() || of.sum.len() == 1 && of.add == 0) {
            let Some((&open, &times)) = of.sum.first_key_value() else {
                return Some(of.add).filter(|add| !self.is_open(*add));
            };
            return open.checked_mul(times).filter(|_| !self.is_open(times));
        }
        if let Some(known) = self.quotients.get(&of) {
            return Some(self.or_fixed(*known));
        }
        let number = self.fresh()?;
        self.quotients.insert(of.clone(), number);
        self.meanings.insert(number, of);
        Some(self.or_fixed(number))
    }

    /// The sum of extents and a number.
    pub(crate) fn sum(&mut self, extents: &[i64], more: i64) -> Option<i64> {
        let (open, closed): (Vec<i64>, Vec<i64>) = extents.iter().partition(|extent| self.is_open(**extent));
        let more = closed.iter().try_fold(more, |all, extent| all.checked_add(*extent))?;
        if let [one] = open[..] {
            return self.quotient(one, more, 1);
        }
        let mut all = Quotient { sum: BTreeMap::new(), add: more, by: 1 };
        for extent in open {
            let one = self.meaning(extent);
            let one = if one.by == 1 { one } else { Quotient { sum: [(extent, 1)].into(), add: 0, by: 1 } };
            all.add = all.add.checked_add(one.add)?;
            for (open, times) in one.sum {
                let sum = all.sum.entry(open).or_default();
                *sum = sum.checked_add(times)?;
            }
        }
        self.number(all)
    }

    /// Whether a number is 1 at least for all sizes.
    pub(crate) fn is_positive(&self, number: i64) -> bool {
        let least = |of: &Quotient| of.sum.values().try_fold(of.add, |all, times| all.checked_add(*times));
        let whole = |of: &Quotient| of.sum.iter().all(|(open, times)| *times > 0 && self.is_positive(*open));
        let is_one = |prime: &&i64| match self.meanings.get(prime) {
            Some(of) => least(of).is_some_and(|least| least.div_euclid(of.by) >= 1) && whole(of),
            None => true,
        };
        number > 0 && self.primes.iter().filter(|prime| number % **prime == 0).all(|prime| is_one(&prime))
    }

    /// `floor((extent + add) / by)`: rounding down twice is rounding down once.
    pub(crate) fn quotient(&mut self, extent: i64, add: i64, by: i64) -> Option<i64> {
        let mut all = self.meaning(extent);
        all.add = all.add.checked_add(all.by.checked_mul(add)?)?;
        all.by = all.by.checked_mul(by).filter(|by| *by > 0)?;
        self.number(all)
    }
}

/// The numbers of files that extents may be made of.
#[derive(Default)]
struct Numbers(FxHashSet<i64>);

impl Numbers {
    fn of_model(&mut self, model: &Model) {
        self.of_graph(&model.graph);
        for function in &model.functions {
            self.of_nodes(&function.nodes);
            function.defaults.iter().for_each(|(_, attr)| self.of_attr(attr));
        }
    }

    fn of_graph(&mut self, graph: &Graph) {
        graph.initializers.iter().for_each(|(_, tensor)| self.of_tensor(tensor));
        for dim in graph.inputs.iter().chain(&graph.declared).flat_map(|input| input.dims.iter().flatten()) {
            if let DeclaredDim::Known(extent) = dim {
                self.add(*extent);
            }
        }
        self.of_nodes(&graph.nodes);
    }

    fn of_nodes(&mut self, nodes: &[Node]) {
        nodes.iter().flat_map(|node| &node.attrs).for_each(|(_, attr)| self.of_attr(attr));
    }

    fn of_attr(&mut self, attr: &Attr) {
        match attr {
            Attr::Int(number) => self.add(*number),
            Attr::Ints(list) => list.iter().for_each(|number| self.add(*number)),
            Attr::Tensor(tensor) => self.of_tensor(tensor),
            Attr::Graph(graph) => self.of_graph(graph),
            _ => {}
        }
    }

    fn of_tensor(&mut self, tensor: &Tensor) {
        tensor.dims.iter().for_each(|extent| self.add(*extent));
        let value = Value::of_tensor(tensor);
        let small = tensor.dims.iter().try_fold(1_i64, |all, n| all.checked_mul(*n)).is_some_and(|n| n <= LISTED);
        if matches!(tensor.dtype, 6 | 7) && small {
            value.as_ints().into_iter().flatten().for_each(|number| self.add(number));
        }
    }

    /// Zero has every prime as a factor, and is none of an extent.
    fn add(&mut self, number: i64) {
        if number != 0 {
            self.0.insert(number);
        }
    }
}
