//! How far a model is from itself, and what another model may differ from it by.
//!
//! One number for a whole output says little: an element of 1e9, as masks have, hides all that is wrong beside it, and an element
//! that is a difference of large numbers has no digits to compare. So each element has an allowance of its own, which comes from
//! samples of the original: it runs as the file stands and as the runtime rewrites it, on the inputs and on inputs whose last bit
//! is another. Where these runs differ, the other model may differ as well, and nowhere else by more than rounding.
//!
//! A few samples say little about one element, so its neighbours are asked: those along each axis, and those of the same
//! magnitude. The group that is nearest to itself counts. An original that is further from itself than [`Precision::cap`] allows
//! has no digits that anything could be compared with.

use crate::compare::{coordinates, distances};
use crate::tensor::{Data, Tensor};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Op, ValueId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How many times the original's own noise another model may differ by: it is the largest of a few samples that is multiplied.
const TIMES: f64 = 32.0;

/// Groups of fewer elements say nothing about their noise.
const FEWEST: usize = 32;

/// Exponents of two without an element between two magnitudes that have nothing to do with each other, such as logits and masks.
const GAP: usize = 10;

/// What functions that saturate leave beside one, relative to it: there, other ways to compute them have no digits in common.
const BESIDE_ONE: f64 = 1e-7;

/// How many times that the largest element has to be, so that something can be compared.
const FEWEST_DIGITS: f64 = 100.0;

/// What of a group is looked at: nine tenths of its elements are at most as large.
const QUANTILE: f64 = 0.9;

/// The most that the original's results in integers of 8 and 16 bits may differ from themselves by.
const CAP_OF_STEPS: f64 = 2.0;

/// What the arithmetic of a model rounds to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Precision {
    /// What sums in another order may cost, relative to the magnitude of the elements around.
    base: f64,
    /// The most that an original may differ from itself by, relative to the root mean square of the output.
    cap: f64,
    /// How much inputs are changed to find the noise, relative; `None` for the last bit of their type.
    pub(super) step: Option<f64>,
    /// Whether the output is made by a function that computes numbers near zero as differences of numbers near one half.
    logistic: bool,
}

impl Default for Precision {
    fn default() -> Self {
        Self::SINGLE
    }
}

impl Precision {
    const DOUBLE: Self = Self { base: 1e-12, cap: 1e-3, step: None, logistic: false };
    const SINGLE: Self = Self { base: 2e-5, cap: 1e-3, step: None, logistic: false };
    const HALF: Self = Self { base: 4e-3, cap: 2e-2, step: Some(1.0 / 1024.0), logistic: false };

    /// The precision of the narrowest type of numbers with fractions on the way to an output; single precision if the way is not known.
    pub(super) fn look_up(graph: Option<&Graph>, output: &str) -> Self {
        let way = graph.and_then(|graph| {
            let end = graph.outputs().iter().find(|&&v| graph.value(v).name == output)?;
            Some(on_the_way(graph, *end))
        });
        let logistic = graph.is_some_and(|graph| is_logistic(graph, output));
        let has = |wanted: &[DType]| way.as_ref().is_some_and(|types| types.iter().any(|ty| wanted.contains(ty)));
        let own = if has(&[DType::F16, DType::BF16]) {
            Self::HALF
        } else if has(&[DType::F64]) && !has(&[DType::F32]) {
            Self::DOUBLE
        } else {
            Self::SINGLE
        };
        Self { logistic: logistic && own != Self::DOUBLE, ..own }
    }

    /// What is rounded off numbers near zero, whatever is around them.
    fn least(self, magnitudes: &Magnitudes) -> f64 {
        let beside = if self.logistic { 1.0 } else { magnitudes.clusters().largest.min(1.0) };
        BESIDE_ONE * beside
    }
}

/// Ops that leave the numbers of their operands as they are.
const MOVES: [&str; 10] =
    ["Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"];

/// Whether an output has results of a Sigmoid. ONNX Runtime's own leaves multiples of 3e-8 near zero.
fn is_logistic(graph: &Graph, output: &str) -> bool {
    let ends = graph.outputs().iter().filter(|&&v| graph.value(v).name == output);
    let (mut todo, mut seen) = (ends.copied().collect::<Vec<_>>(), BTreeSet::new());
    while let Some(v) = todo.pop() {
        let node = graph.node(graph.value(v).producer().0);
        match node.onnx() {
            Some("Sigmoid") => return true,
            Some(op) if MOVES.contains(&op) && seen.insert(v.index()) => todo.extend(node.inputs.iter().flatten()),
            _ => {}
        }
    }
    false
}

/// The types of what is computed on the way to a value, and in the bodies that are. Constants are exact.
fn on_the_way(graph: &Graph, end: ValueId) -> BTreeSet<DType> {
    let (mut seen, mut todo, mut types) = (BTreeSet::new(), vec![end], BTreeSet::new());
    while let Some(v) = todo.pop() {
        let (producer, _) = graph.value(v).producer();
        let node = graph.node(producer);
        if matches!(node.op, Op::Constant(_)) || !seen.insert(v.index()) {
            continue;
        }
        types.extend(graph.value(v).ty.dtype());
        for body in node.bodies() {
            types.extend(body.values().filter_map(|v| body.value(v).ty.dtype()));
        }
        todo.extend(node.inputs.iter().flatten());
    }
    types
}

/// Whether a graph, or a body in it, says that a value is of one of these types.
pub(super) fn has(graph: &Graph, types: &[DType]) -> bool {
    let one = |v: ValueId| graph.value(v).ty.dtype().is_some_and(|ty| types.contains(&ty));
    graph.values().any(one) || graph.nodes().any(|n| graph.node(n).bodies().any(|body| has(body, types)))
}

/// How near a result must be.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Near {
    /// Within the original's own noise.
    #[default]
    Noise,
    /// Equal, where the runtime rewrites nothing.
    Exact,
    /// Each element within this times the magnitude of the elements around it.
    Within(f64),
}

/// What was found out about a result on one set of inputs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Agreement {
    Equal,
    Near,
    /// It differs, and why that is said.
    Differs(String),
    /// It differs by no more than the original does where it is shaken; by how much.
    Shaken(String),
    /// It can't be compared, and why.
    Unknown(String),
}

/// How far samples of an output were from the output.
#[derive(Debug, Clone, Default)]
pub(super) struct Noise {
    /// The largest distance of each element; nothing where all samples were equal.
    own: Vec<f64>,
    /// The distances with samples that were further away than can be compared. They tell no other model from the original, but that nobody
    /// can.
    loud: Vec<f64>,
    /// In what the samples can't be compared with the output at all, such as its shape.
    broken: Option<String>,
}

impl Noise {
    /// Takes a sample in.
    pub(super) fn add(&mut self, output: &Tensor, sample: Option<&Tensor>) {
        let Some(sample) = sample else { return self.broken = Some("it is not always there".to_owned()) };
        match distances(output, sample) {
            Err(why) => self.broken = Some(why),
            Ok(far) if far.iter().all(|&d| d == 0.0) => {}
            Ok(far) => largest(&mut self.own, far),
        }
    }

    /// Whether `other` differs from `output` by no more than samples did, in elements around it, and in at most twice as many elements. Then
    /// how far both are at most.
    pub(super) fn covers(&self, output: &Tensor, other: &Tensor) -> Option<[f64; 2]> {
        // Samples of single precision say nothing about digits that only doubles have.
        if matches!(output.data(), Data::F64(_)) {
            return None;
        }
        let far = distances(output, other).ok()?;
        let count = |of: &[f64]| of.iter().filter(|&&d| d != 0.0).count();
        let mut allowed = vec![most(&self.own); far.len()];
        let shape: Vec<usize> = output.shape().iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        if self.own.len() == far.len() {
            for_each_axis(&self.own, &shape, |of| most(of), |axis, groups| lower(&mut allowed, axis, groups));
        }
        let near = far.iter().zip(&allowed).all(|(far, allowed)| far <= allowed);
        (near && count(&far) <= 2 * count(&self.own)).then(|| [most(&far), most(&self.own)])
    }

    /// Takes in what `other` has seen; what is more than can be compared only says that.
    pub(super) fn hear(&mut self, output: &Tensor, other: Noise, precision: Precision) {
        let loud = other.own.clone();
        let broken = other.broken.is_some();
        if !self.join(output, other, precision) && !broken {
            largest(&mut self.loud, loud);
        }
    }

    /// Takes in what `other` has seen, unless it is more than can be compared: then `false`.
    pub(super) fn join(&mut self, output: &Tensor, other: Noise, precision: Precision) -> bool {
        if other.broken.is_some() || other.above_cap(output, precision).is_some() {
            return false;
        }
        largest(&mut self.own, other.own);
        true
    }

    /// Where the output differs from itself by more than can be compared, and by how much.
    fn above_cap(&self, output: &Tensor, precision: Precision) -> Option<String> {
        if self.own.is_empty() {
            return None;
        }
        let caps = caps(output, precision)?;
        let (at, own) = self.own.iter().enumerate().find(|(at, own)| **own > caps[*at])?;
        let place = coordinates(at, output.shape());
        let most = caps[at];
        Some(format!(
            "the original differs from itself by {own:.1e} at {place:?}, more than {most:.1e}, when the last bit of its inputs is another"
        ))
    }

    /// Judges `other`, which stands for `output`.
    pub(super) fn judge(&self, output: &Tensor, other: &Tensor, near: Near, precision: Precision) -> Agreement {
        let far = match distances(output, other) {
            Ok(far) => far,
            Err(why) => {
                return self
                    .broken
                    .clone()
                    .map_or(Agreement::Differs(why), |own| Agreement::Unknown(unlike_itself(&own)));
            }
        };
        if far.iter().all(|&d| d == 0.0) {
            return blank(output).map_or(Agreement::Equal, |why| Agreement::Unknown(why.to_owned()));
        }
        if near == Near::Exact {
            return differs(output, other, &far, |_| 0.0);
        }
        if let Some(own) = &self.broken {
            return Agreement::Unknown(unlike_itself(own));
        }
        match Magnitudes::of(output) {
            None => self.judge_whole(output, other, &far),
            Some(magnitudes) => {
                if near == Near::Noise
                    && precision.logistic
                    && magnitudes.clusters().largest < FEWEST_DIGITS * BESIDE_ONE
                {
                    return Agreement::Unknown("its numbers are too near to zero for a Sigmoid".to_owned());
                }
                if near == Near::Noise
                    && let Some(why) = self.above_cap(output, precision)
                {
                    return Agreement::Unknown(why);
                }
                let scales = magnitudes.scales();
                let base = if let Near::Within(most) = near { most.max(precision.base) } else { precision.base };
                let allowed = allowances(&self.own, &magnitudes);
                let loud = self.loud_allowances(&magnitudes).or_else(|| allowed.clone());
                let caps = caps(output, precision).filter(|_| near == Near::Noise);
                let least = precision.least(&magnitudes);
                let allowance = |at: usize, capped: bool| {
                    let heard = if capped { &allowed } else { &loud };
                    let noise = heard.as_ref().map_or(0.0, |allowed| allowed[at]);
                    let cap = caps.as_ref().filter(|_| capped).map_or(f64::INFINITY, |caps| caps[at]);
                    least + noise.min(cap) + base * scales[at].max(magnitudes.of[at])
                };
                match differs(output, other, &far, |at| allowance(at, true)) {
                    Agreement::Differs(why)
                        if differs(output, other, &far, |at| allowance(at, false)) == Agreement::Near =>
                    {
                        Agreement::Unknown(format!("the original's own noise is too large to tell: {why}"))
                    }
                    found => found,
                }
            }
        }
    }

    /// What noise allows each element if no sample is too far away; `None` without such a sample.
    fn loud_allowances(&self, magnitudes: &Magnitudes) -> Option<Vec<f64>> {
        let mut all = (!self.loud.is_empty()).then(|| self.loud.clone())?;
        largest(&mut all, self.own.clone());
        allowances(&all, magnitudes)
    }

    /// Judges what has no fractions: it may differ only where the original differs from itself, and in at most as many elements; steps
    /// of 8 and 16 bits are what arithmetic was rounded to, so they may differ elsewhere, too, by as much.
    fn judge_whole(&self, output: &Tensor, other: &Tensor, far: &[f64]) -> Agreement {
        let steps = matches!(output.data(), Data::I8(_) | Data::U8(_) | Data::I16(_) | Data::U16(_));
        let flips = self.own.iter().filter(|&&own| own > 0.0).count();
        let most = self.own.iter().copied().fold(0.0, f64::max);
        let count = far.iter().filter(|&&d| d > 0.0).count();
        if steps && most > CAP_OF_STEPS {
            return Agreement::Unknown(format!(
                "the original differs from itself by {most} steps when the last bit of its inputs is another"
            ));
        }
        if count > flips * if steps { 2 } else { 1 } {
            let found = differs(output, other, far, |_| 0.0);
            return if let Agreement::Differs(why) = found {
                Agreement::Differs(format!("{why}; the original differs from itself in {flips}"))
            } else {
                found
            };
        }
        differs(output, other, far, |at| match (steps, self.own.get(at)) {
            (true, _) => most,
            (false, Some(own)) if *own > 0.0 => f64::INFINITY,
            (false, _) => 0.0,
        })
    }
}

/// What noise allows each element, without what sums in another order cost; `None` without noise.
fn allowances(own: &[f64], magnitudes: &Magnitudes) -> Option<Vec<f64>> {
    if own.is_empty() {
        return None;
    }
    let mut pooled = vec![quantile(&mut own.to_vec()); own.len()];
    for_each_axis(own, &magnitudes.shape, quantile, |axis, groups| {
        lower(&mut pooled, axis, groups);
    });
    let mut alike: Vec<Vec<f64>> = vec![Vec::new(); EXPONENTS];
    for (own, of) in own.iter().zip(&magnitudes.of) {
        alike[exponent(*of)].push(*own);
    }
    let alike: Vec<Option<f64>> =
        alike.into_iter().map(|mut of| (of.len() >= FEWEST).then(|| quantile(&mut of))).collect();
    for (pooled, of) in pooled.iter_mut().zip(&magnitudes.of) {
        if let Some(alike) = alike[exponent(*of)] {
            *pooled = pooled.min(alike);
        }
    }
    Some(own.iter().zip(&pooled).map(|(own, pooled)| TIMES * (own + pooled)).collect())
}

/// The larger of two distances, for each element; nothing is zeros.
fn largest(of: &mut Vec<f64>, others: Vec<f64>) {
    if of.is_empty() {
        *of = others;
    } else {
        of.iter_mut().zip(others).for_each(|(own, d)| *own = own.max(d));
    }
}

fn unlike_itself(why: &str) -> String {
    format!("the original differs from itself: {why}")
}

/// Why equal outputs say nothing: there is no number in them.
fn blank(output: &Tensor) -> Option<&'static str> {
    if output.data().is_empty() {
        return Some("it has no elements");
    }
    let nothing = Magnitudes::of(output)?.of.iter().all(|of| of.is_nan());
    nothing.then_some("it is NaN or infinite everywhere")
}

/// What is said of the element that is furthest beyond its allowance, if one is.
fn differs(a: &Tensor, b: &Tensor, far: &[f64], allowance: impl Fn(usize) -> f64) -> Agreement {
    let beyond = far.iter().enumerate().filter(|(at, d)| **d > allowance(*at));
    let ratio = |at: usize, d: f64| if allowance(at) > 0.0 { d / allowance(at) } else { f64::INFINITY };
    let (mut count, mut worst) = (0, None);
    for (at, &d) in beyond {
        count += 1;
        if worst.is_none_or(|(_, most)| ratio(at, d) > most) {
            worst = Some((at, ratio(at, d)));
        }
    }
    let Some((at, _)) = worst else { return Agreement::Near };
    let place = coordinates(at, a.shape());
    let of = far.len();
    let allowed = allowance(at);
    let (a, b) = (a.spelled(at), b.spelled(at));
    let allowed = if allowed > 0.0 { format!(", where {allowed:.1e} is noise") } else { String::new() };
    Agreement::Differs(format!(
        "{count} of {of} elements; at {place:?} {a} in the first and {b} in the second{allowed}"
    ))
}

/// The largest noise of each element that leaves digits to compare; `None` if it is not of numbers with fractions.
fn caps(output: &Tensor, precision: Precision) -> Option<Vec<f64>> {
    let magnitudes = Magnitudes::of(output)?;
    let clusters = magnitudes.clusters();
    // It is off by a few of its steps.
    let least = if precision.logistic { 4.0 * BESIDE_ONE } else { 0.0 };
    Some(magnitudes.of.iter().map(|&of| (precision.cap * clusters.rms_at(of)).max(least)).collect())
}

/// The magnitudes of an output's elements; NaN where one is NaN or infinite.
struct Magnitudes {
    of: Vec<f64>,
    shape: Vec<usize>,
}

impl Magnitudes {
    /// `None` if the output is not of floating-point numbers.
    fn of(output: &Tensor) -> Option<Self> {
        let finite = |x: f64| if x.is_finite() { x.abs() } else { f64::NAN };
        let of: Vec<f64> = match output.data() {
            Data::F16(x) => x.iter().map(|x| finite(x.to_f64())).collect(),
            Data::BF16(x) => x.iter().map(|x| finite(x.to_f64())).collect(),
            Data::F32(x) => x.iter().map(|&x| finite(x.into())).collect(),
            Data::F64(x) => x.iter().map(|&x| finite(x)).collect(),
            _ => return None,
        };
        let shape = output.shape().iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        Some(Self { of, shape })
    }

    /// For each element the magnitude of those around it: of its cluster, or along an axis if that is less.
    fn scales(&self) -> Vec<f64> {
        let clusters = self.clusters();
        let mut scales: Vec<f64> = self.of.iter().map(|&of| clusters.rms_at(of)).collect();
        for_each_axis(&self.of, &self.shape, quantile, |axis, groups| {
            // A group of zeros says nothing about what is rounded there.
            for group in groups.iter_mut().filter(|group| **group <= 0.0) {
                *group = f64::INFINITY;
            }
            lower(&mut scales, axis, groups);
        });
        scales
    }

    /// The elements by magnitude, apart where there is a gap.
    fn clusters(&self) -> Clusters {
        let mut buckets = vec![(0_usize, 0.0_f64); EXPONENTS];
        for &of in self.of.iter().filter(|of| **of > 0.0) {
            let (count, squares) = &mut buckets[exponent(of)];
            *count += 1;
            *squares += of * of;
        }
        let mut rms = vec![0.0; EXPONENTS];
        let mut begin = 0;
        while let Some(first) = (begin..EXPONENTS).find(|&e| buckets[e].0 > 0) {
            let mut last = first;
            while let Some(next) = (last + 1..EXPONENTS.min(last + 1 + GAP)).find(|&e| buckets[e].0 > 0) {
                last = next;
            }
            let (count, squares) =
                buckets[first..=last].iter().fold((0, 0.0), |(n, sum), (count, squares)| (n + count, sum + squares));
            let one = if squares.is_finite() {
                (squares / f64::from(u32::try_from(count).unwrap_or(u32::MAX))).sqrt()
            } else {
                f64::MAX
            };
            rms[first..=last].fill(one);
            begin = last + 1;
        }
        let smallest = rms.iter().copied().find(|&one| one > 0.0).unwrap_or(0.0);
        let largest = rms.iter().copied().fold(0.0, f64::max);
        Clusters { rms, smallest, largest }
    }
}

/// The root mean square of elements of like magnitude, by exponent.
struct Clusters {
    rms: Vec<f64>,
    /// The root mean square of the smallest ones, which zeros are taken for.
    smallest: f64,
    /// The root mean square of the largest ones.
    largest: f64,
}

impl Clusters {
    fn rms_at(&self, magnitude: f64) -> f64 {
        if magnitude > 0.0 { self.rms[exponent(magnitude)] } else { self.smallest }
    }
}

/// How many exponents there are.
const EXPONENTS: usize = 2048;

/// The exponent of a magnitude; 0 for 0 and NaN.
fn exponent(of: f64) -> usize {
    if of.is_nan() { 0 } else { (of.to_bits() >> 52) as usize % EXPONENTS }
}

/// Where the elements of an axis are: element `i` has index `i / inner % dim`.
#[derive(Clone, Copy)]
struct Axis {
    inner: usize,
    dim: usize,
}

/// Calls with each axis and what says `of` of the values at each index of it, if these are many enough to say something.
fn for_each_axis(
    values: &[f64],
    shape: &[usize],
    of: impl Fn(&mut [f64]) -> f64,
    mut work: impl FnMut(Axis, &mut [f64]),
) {
    let mut inner = values.len();
    for &dim in shape {
        inner = inner.checked_div(dim).unwrap_or(0);
        if dim < 2 || values.len() / dim < FEWEST {
            continue;
        }
        let axis = Axis { inner, dim };
        let mut group = Vec::with_capacity(values.len() / dim);
        let mut groups: Vec<f64> = (0..dim)
            .map(|index| {
                group.clear();
                let runs = values.chunks(inner * dim).map(|outer| &outer[index * inner..(index + 1) * inner]);
                group.extend(runs.flatten().filter(|value| !value.is_nan()));
                of(&mut group)
            })
            .collect();
        work(axis, &mut groups);
    }
}

/// Lowers each value to that of its group.
fn lower(values: &mut [f64], axis: Axis, groups: &[f64]) {
    for (at, value) in values.iter_mut().enumerate() {
        *value = value.min(groups[at / axis.inner % axis.dim]);
    }
}

/// The largest of the values; 0 if there are none.
fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// What nine tenths of the values are at most; 0 if there are none.
fn quantile(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let at = ((values.len() - 1) as f64 * QUANTILE).ceil() as usize;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}
