//! What the models are fed.
//!
//! Random inputs depend on the seed and on the name, the type and the shape of an input, and on nothing else: not on the
//! machine, not on the order of the inputs. Whole numbers of 32 and 64 bits are often indices, so they are 0 or 1, which
//! any axis of two or more elements accepts; those of 8 and 16 bits are data and take their whole range.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use half::{bf16, f16};

use super::error::listed;
use super::known::Known;
use super::model::{Dim, Model, Port};
use super::tensor::element_count;
use super::{Data, ElementType, ModelSource, Tensor, VerifyError, npz};

/// The most elements a random input may have (8 GiB of f64); more is taken for a damaged shape.
pub(super) const MOST_ELEMENTS: usize = 1 << 30;

/// The size of a symbolic dimension that is not the first of any input.
const DEFAULT_SIZE: i64 = 64;

/// Where the inputs of both models come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inputs {
    /// Made from a seed. Floating-point numbers have mean 0, variance 1 and lie within -6..6.
    Random {
        /// Round `i` of a comparison uses `seed + i`.
        seed: u64,
        /// Sizes of open dimensions: by symbol, or as `INPUT.AXIS`, which is all that those without a symbol have. Those not
        /// named here have the size that the nodes of the model ask for; where these ask for none, 1 if it is the first
        /// dimension of an input (the batch), else 64.
        dims: BTreeMap<String, i64>,
    },
    /// Read from a file that `numpy.savez` wrote, an array per input, by name. There is one round.
    Npz(PathBuf),
}

impl Inputs {
    /// One set of inputs for `model` per round.
    pub(super) fn feeds(
        &self,
        source: ModelSource<'_>,
        model: &Model,
        rounds: u32,
    ) -> Result<Vec<Vec<Tensor>>, VerifyError> {
        match self {
            Self::Npz(path) => Ok(vec![npz::read(path, model)?]),
            Self::Random { seed, dims } => {
                let known = Known::look_up(source, dims);
                let sizes = known.sizes().swap_remove(0);
                let usual = |_, batch| if batch { 1 } else { DEFAULT_SIZE };
                let shapes = shapes(&model.label, &model.inputs, dims, &sizes, &usual)?;
                let ranges = known.ranges(&shapes);
                let round = |index| {
                    let seed = seed.wrapping_add(u64::from(index));
                    let one = |((port, element, shape), range): (&Shaped, &Option<Range>)| {
                        let range = range.unwrap_or(Range::BITS);
                        random(&model.label, port, *element, shape, seed, Content::Normal, range)
                    };
                    shapes.iter().zip(&ranges).map(one).collect()
                };
                (0..rounds.max(1)).map(round).collect()
            }
        }
    }
}

/// What numbers with fractions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Mean 0 and variance 1.
    Normal,
    /// Between 0 and 1.
    Unit,
    /// Between 0 and 255 in what looks like an image, else as [`Content::Normal`].
    Bytes,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal numbers",
            Self::Unit => "numbers in 0..1",
            Self::Bytes => "images in 0..255",
        })
    }
}

/// What whole numbers of 32 and 64 bits are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    low: i64,
    high: i64,
}

impl Range {
    /// 0 or 1, which any axis of two or more elements accepts as an index.
    pub(super) const BITS: Self = Self { low: 0, high: 1 };
    pub(super) const ONES: Self = Self { low: 1, high: 1 };
    pub(super) const DIGITS: Self = Self { low: 0, high: 9 };
    pub(super) const BYTES: Self = Self { low: 0, high: 255 };
    pub(super) const WIDE: Self = Self { low: 0, high: 99_999 };
    pub(super) const SIGNED: Self = Self { low: -99_999, high: 99_999 };

    /// From the lowest to the highest.
    pub(super) fn new(low: i64, high: i64) -> Self {
        Self { low, high: high.max(low) }
    }

    /// The range with small numbers.
    pub(super) fn narrow(self) -> Self {
        Self { low: self.low.max(-9), high: self.high.min(9) }
    }

    /// What a runtime says that indices must lie in, when it refuses one.
    pub(super) fn in_message(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("inclusive range [")?;
        let (low, high) = rest.split_once(']')?.0.split_once(',')?;
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low <= high).then_some(Self { low, high })
    }

    fn number(self, source: &mut Source) -> i64 {
        if self == Self::BITS {
            // The same bit as ever: results that people noted depend on it.
            return i64::from(source.flip());
        }
        let span = self.high.saturating_sub(self.low).saturating_add(1);
        self.low + (source.next() >> 33) as i64 % span
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.low, self.high)
    }
}

/// What an input is fed with: its type and its shape.
pub(super) type Shaped = (Port, ElementType, Vec<i64>);

/// Spells shapes for people.
pub(super) fn sizes(shapes: &[Shaped]) -> String {
    shapes.iter().map(|(port, _, shape)| format!("`{}` {shape:?}", port.name)).collect::<Vec<_>>().join(", ")
}

/// The type and the shape of each of `ports`. Open dimensions have the sizes of `given`, else those of `asked`, else what `size` gives
/// by the place among the symbols of neither and whether it is the first of an input.
pub(super) fn shapes(
    label: &str,
    ports: &[Port],
    given: &BTreeMap<String, i64>,
    asked: &BTreeMap<String, i64>,
    size: &dyn Fn(usize, bool) -> i64,
) -> Result<Vec<Shaped>, VerifyError> {
    check_names(label, ports, given)?;
    let said = |name: &str| given.get(name).or_else(|| asked.get(name)).copied();
    let sizes = symbol_sizes(ports, &said, size);
    let one = |port: &Port| {
        let (element, dims) = port.tensor.as_ref().ok_or_else(|| unsupported(label, port))?;
        let concrete = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Fixed(size) => *size,
            Dim::Symbol(name) => sizes.get(name.as_str()).copied().unwrap_or(DEFAULT_SIZE),
            Dim::Unnamed => said(&place(port, axis)).unwrap_or_else(|| size(axis, axis == 0)),
        };
        let shape: Vec<i64> = dims.iter().enumerate().map(concrete).collect();
        check_size(&port.name, &shape)?;
        Ok((port.clone(), *element, shape))
    };
    ports.iter().map(one).collect()
}

/// What callers can name a dimension by that has no symbol.
fn place(port: &Port, axis: usize) -> String {
    format!("{}.{axis}", port.name)
}

/// The open dimensions of inputs: of which input, which axis, and what they are.
fn open(ports: &[Port]) -> impl Iterator<Item = (&Port, usize, &Dim)> {
    let axes = ports.iter().filter_map(|port| Some((port, &port.tensor.as_ref()?.1)));
    let axes = axes.flat_map(|(port, dims)| dims.iter().enumerate().map(move |(axis, dim)| (port, axis, dim)));
    axes.filter(|(_, _, dim)| !matches!(dim, Dim::Fixed(_)))
}

/// The name of an open dimension.
fn name_of(port: &Port, axis: usize, dim: &Dim) -> String {
    if let Dim::Symbol(name) = dim { name.clone() } else { place(port, axis) }
}

/// The sizes in these shapes of the open dimensions that are named in none of `said`, those of batches last.
pub(super) fn assumed(shapes: &[Shaped], said: &[&BTreeMap<String, i64>]) -> Vec<(String, i64)> {
    let ports: Vec<Port> = shapes.iter().map(|(port, ..)| port.clone()).collect();
    let mut found: Vec<(bool, String, i64)> = Vec::new();
    for (port, axis, dim) in open(&ports) {
        let name = name_of(port, axis, dim);
        let known = said.iter().any(|said| said.contains_key(&name) || said.contains_key(&place(port, axis)));
        let shape = shapes.iter().find(|(other, ..)| other.name == port.name).map(|(_, _, shape)| shape);
        if let Some(&size) = shape.and_then(|shape| shape.get(axis)).filter(|_| !known)
            && found.iter().all(|(_, other, _)| *other != name)
        {
            found.push((axis == 0, name, size));
        }
    }
    found.sort_by_key(|(batch, ..)| *batch);
    found.into_iter().map(|(_, name, size)| (name, size)).collect()
}

/// That each of `given` is the name of an open dimension.
fn check_names(label: &str, ports: &[Port], given: &BTreeMap<String, i64>) -> Result<(), VerifyError> {
    let is = |name: &String| {
        open(ports).any(|(port, axis, dim)| name_of(port, axis, dim) == *name || place(port, axis) == *name)
    };
    let Some(name) = given.keys().find(|name| !is(name)) else { return Ok(()) };
    let names: BTreeSet<String> = open(ports).map(|(port, axis, dim)| name_of(port, axis, dim)).collect();
    let known = listed(names.iter().map(String::as_str));
    Err(VerifyError::UnknownDim { model: label.to_owned(), name: name.clone(), known })
}

/// The size of each symbol in the inputs, as it is said if it is.
fn symbol_sizes(
    ports: &[Port],
    said: &dyn Fn(&str) -> Option<i64>,
    size: &dyn Fn(usize, bool) -> i64,
) -> BTreeMap<String, i64> {
    let symbols = || {
        open(ports)
            .filter_map(|(port, axis, dim)| if let Dim::Symbol(name) = dim { Some((port, axis, name)) } else { None })
    };
    let batches: BTreeSet<&String> = symbols().filter(|(_, axis, _)| *axis == 0).map(|(_, _, name)| name).collect();
    let (mut sizes, mut told): (BTreeMap<String, i64>, BTreeMap<String, i64>) = Default::default();
    let mut at = 0;
    for (port, axis, name) in symbols() {
        if !sizes.contains_key(name) {
            let batch = batches.contains(name);
            sizes.insert(name.clone(), size(at, batch));
            at += usize::from(!batch);
        }
        told.extend(said(name).or_else(|| said(&place(port, axis))).map(|size| (name.clone(), size)));
    }
    sizes.extend(told.clone());
    let sums: Vec<(String, i64)> = sizes.keys().filter_map(|name| Some((name.clone(), sum(name, &sizes)?))).collect();
    sizes.extend(sums.into_iter().filter(|(name, _)| !told.contains_key(name)));
    sizes
}

/// The size of a symbol that is called by a sum of others, as exporters write `past_sequence_length + 1`.
fn sum(name: &str, sizes: &BTreeMap<String, i64>) -> Option<i64> {
    let terms: Vec<&str> = name.split('+').map(str::trim).collect();
    let term = |term: &&str| sizes.get(*term).copied().or_else(|| term.parse().ok());
    if terms.len() < 2 { None } else { terms.iter().try_fold(0_i64, |all, one| all.checked_add(term(one)?)) }
}

fn check_size(input: &str, shape: &[i64]) -> Result<(), VerifyError> {
    let bad = |reason: &'static str| VerifyError::BadShape {
        input: input.to_owned(),
        shape: shape.to_vec(),
        reason: reason.into(),
    };
    if shape.iter().any(|&dim| dim < 0) {
        return Err(bad("a dimension is negative"));
    }
    match element_count(shape) {
        Some(elements) if elements <= MOST_ELEMENTS => Ok(()),
        _ => Err(bad("that is more than 2^30 elements; give smaller sizes for its symbolic dimensions")),
    }
}

fn unsupported(model: &str, port: &Port) -> VerifyError {
    VerifyError::Unsupported {
        model: model.to_owned(),
        what: format!("input `{}`", port.name),
        found: port.spelling(),
        help: "random inputs can be made for tensors of f16, bf16, f32, f64, integers of 8 to 64 bits and bool".into(),
    }
}

/// Random elements for an input of `model`.
pub(super) fn random(
    model: &str,
    port: &Port,
    element: ElementType,
    shape: &[i64],
    seed: u64,
    content: Content,
    range: Range,
) -> Result<Tensor, VerifyError> {
    let count = element_count(shape).unwrap_or(0);
    let mut source = Source::new(seed, &port.name);
    let image = shape.len() == 4 && [1, 3].iter().any(|&axis: &usize| matches!(shape[axis], 1 | 3 | 4));
    let real = |source: &mut Source| match content {
        Content::Unit => source.unit(),
        Content::Bytes if image => (source.unit() * 255.0).round(),
        Content::Normal | Content::Bytes => source.normal(),
    };
    // Digits that only doubles have.
    let fine = |source: &mut Source| {
        let digits = if content == Content::Normal { 0.0 } else { source.unit() / f64::from(1 << 24) };
        real(source) + digits
    };
    macro_rules! fill {
        ($variant:ident, $next:expr) => {
            Data::$variant((0..count).map(|_| $next).collect())
        };
    }
    let data = match element {
        ElementType::F16 => fill!(F16, f16::from_f64(real(&mut source))),
        ElementType::BF16 => fill!(BF16, bf16::from_f64(real(&mut source))),
        ElementType::F32 => fill!(F32, real(&mut source) as f32),
        ElementType::F64 => fill!(F64, fine(&mut source)),
        ElementType::I8 => fill!(I8, source.next() as i8),
        ElementType::I16 => fill!(I16, source.next() as i16),
        ElementType::U8 => fill!(U8, source.next() as u8),
        ElementType::U16 => fill!(U16, source.next() as u16),
        ElementType::I32 => fill!(I32, range.number(&mut source) as i32),
        ElementType::I64 => fill!(I64, range.number(&mut source)),
        ElementType::U32 => fill!(U32, range.number(&mut source).max(0) as u32),
        ElementType::U64 => fill!(U64, range.number(&mut source).max(0) as u64),
        ElementType::Bool => fill!(Bool, source.flip()),
        ElementType::Str => return Err(unsupported(model, port)),
    };
    Tensor::new(port.name.clone(), shape, data)
}

/// A stream of numbers that is the same on every machine: `SplitMix64` (Steele, Lea and Flood, 2014).
pub(super) struct Source {
    state: u64,
}

impl Source {
    /// The stream of the input `name` under `seed`.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        // FNV-1a, a byte at a time; the first number of the stream mixes it with the seed.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut source = Self { state: hash };
        let mixed = source.next();
        source.state = mixed ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        source
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn flip(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    /// A number between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 40) as f64 / (1_u64 << 24) as f64
    }

    /// The sum of twelve uniform numbers less six: mean 0, variance 1, and only additions, so that no mathematical
    /// library has a say in its bits.
    fn normal(&mut self) -> f64 {
        let halfwords = |bits: u64| (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum::<u64>();
        let sum = halfwords(self.next()) + halfwords(self.next()) + halfwords(self.next());
        // Each of the twelve is a multiple of 2^-16 in 0..1, taken at the middle of its step.
        (sum as f64 + 6.0) / 65536.0 - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let mut source = Source::new(7, "x");
        let numbers: Vec<f64> = (0..100_000).map(|_| source.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / 1e5;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.02, "variance {variance}");
    }

    #[test]
    fn a_message_about_an_index_says_what_it_may_be() {
        let text = "indices element out of data bounds, idx=523 must be within the inclusive range [-100,99]";
        assert_eq!(Range::in_message(text), Some(Range { low: -100, high: 99 }));
        assert_eq!(Range::in_message("no range [0,1]"), None);
        assert_eq!(Range::in_message("the inclusive range [3,2]"), None);
    }

    #[test]
    fn a_sum_of_symbols_has_their_sizes_together() {
        let sizes = BTreeMap::from([("past".to_owned(), 3), ("new".to_owned(), 4)]);
        assert_eq!(sum("past + new + 1", &sizes), Some(8));
        assert_eq!((sum("past", &sizes), sum("past + other", &sizes)), (None, None));
    }

    #[test]
    fn streams_depend_on_the_seed_and_on_the_name_only() {
        let first = |seed, name| Source::new(seed, name).next();
        assert_eq!(first(1, "x"), first(1, "x"));
        assert_ne!(first(1, "x"), first(2, "x"));
        assert_ne!(first(1, "x"), first(1, "y"));
        // Written down, so that a change of the stream shows: results that people noted depend on it.
        assert_eq!(first(0, "input"), 13_723_107_731_616_956_160);
    }

    #[test]
    fn a_shape_that_is_negative_or_too_large_is_refused() {
        for (shape, good) in [
            (vec![1, 3, 224, 224], true),
            (vec![0, 1 << 40], true),
            (vec![-1, 3], false),
            (vec![1 << 62, 1 << 62], false),
            (vec![(1 << 30) + 1], false),
        ] {
            assert_eq!(check_size("x", &shape).is_ok(), good, "{shape:?}");
        }
    }
}
