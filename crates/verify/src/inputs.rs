//! What the models are fed.
//!
//! Random inputs depend on the seed and on the name, the type and the shape of an input, and on nothing else: not on the
//! machine, not on the order of the inputs. Whole numbers of 32 and 64 bits are often indices, so they are 0 or 1, which
//! any axis of two or more elements accepts; those of 8 and 16 bits are data and take their whole range.

use std::collections::BTreeMap;
use std::path::PathBuf;

use half::{bf16, f16};

use super::error::listed;
use super::model::{Dim, Model, Port};
use super::tensor::element_count;
use super::{Data, ElementType, Tensor, VerifyError, npz};

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
        /// Sizes of symbolic dimensions by name. Those not named here are 1 where the symbol is the first dimension of
        /// an input (the batch), else 64.
        dims: BTreeMap<String, i64>,
    },
    /// Read from a file that `numpy.savez` wrote, an array per input, by name. There is one round.
    Npz(PathBuf),
}

impl Inputs {
    /// One set of inputs for `model` per round.
    pub(super) fn feeds(&self, model: &Model, rounds: u32) -> Result<Vec<Vec<Tensor>>, VerifyError> {
        match self {
            Self::Npz(path) => Ok(vec![npz::read(path, model)?]),
            Self::Random { seed, dims } => {
                let shapes = shapes(model, dims)?;
                let round = |index| {
                    let seed = seed.wrapping_add(u64::from(index));
                    let inputs = model.inputs.iter().zip(&shapes);
                    inputs.map(|(port, (element, shape))| random(port, *element, shape, seed, model)).collect()
                };
                (0..rounds.max(1)).map(round).collect()
            }
        }
    }
}

/// The type and the shape of each input of `model`.
fn shapes(model: &Model, dims: &BTreeMap<String, i64>) -> Result<Vec<(ElementType, Vec<i64>)>, VerifyError> {
    let ports = model.inputs.iter().map(|port| match &port.tensor {
        Some((element, dims)) => Ok((port, *element, dims)),
        None => Err(unsupported(model, port)),
    });
    let ports: Vec<_> = ports.collect::<Result<_, _>>()?;
    let sizes = symbol_sizes(model, dims)?;
    let concrete = |(axis, dim): (usize, &Dim)| match dim {
        Dim::Fixed(size) => *size,
        Dim::Symbol(name) => sizes.get(name.as_str()).copied().unwrap_or(DEFAULT_SIZE),
        Dim::Unnamed if axis == 0 => 1,
        Dim::Unnamed => DEFAULT_SIZE,
    };
    ports
        .into_iter()
        .map(|(port, element, dims)| {
            let shape: Vec<i64> = dims.iter().enumerate().map(concrete).collect();
            check_size(&port.name, &shape)?;
            Ok((element, shape))
        })
        .collect()
}

/// The size of each symbol in the inputs of `model`, those of `given` first.
fn symbol_sizes<'m>(model: &'m Model, given: &BTreeMap<String, i64>) -> Result<BTreeMap<&'m str, i64>, VerifyError> {
    let mut sizes: BTreeMap<&str, i64> = BTreeMap::new();
    let axes =
        model.inputs.iter().filter_map(|port| port.tensor.as_ref()).flat_map(|(_, dims)| dims.iter().enumerate());
    for (axis, dim) in axes {
        if let Dim::Symbol(name) = dim {
            let size = sizes.entry(name).or_insert(DEFAULT_SIZE);
            if axis == 0 {
                *size = 1;
            }
        }
    }
    for (name, &size) in given {
        if let Some(slot) = sizes.get_mut(name.as_str()) {
            *slot = size;
        } else {
            let known = listed(sizes.keys().copied());
            return Err(VerifyError::UnknownDim { model: model.label.clone(), name: name.clone(), known });
        }
    }
    Ok(sizes)
}

fn check_size(input: &str, shape: &[i64]) -> Result<(), VerifyError> {
    let bad = |reason| VerifyError::BadShape { input: input.to_owned(), shape: shape.to_vec(), reason };
    if shape.iter().any(|&dim| dim < 0) {
        return Err(bad("a dimension is negative"));
    }
    match element_count(shape) {
        Some(elements) if elements <= MOST_ELEMENTS => Ok(()),
        _ => Err(bad("that is more than 2^30 elements; give smaller sizes for its symbolic dimensions")),
    }
}

fn unsupported(model: &Model, port: &Port) -> VerifyError {
    VerifyError::Unsupported {
        model: model.label.clone(),
        what: format!("input `{}`", port.name),
        found: port.spelling(),
        help: "random inputs can be made for tensors of f16, bf16, f32, f64, integers of 8 to 64 bits and bool",
    }
}

fn random(port: &Port, element: ElementType, shape: &[i64], seed: u64, model: &Model) -> Result<Tensor, VerifyError> {
    let count = element_count(shape).unwrap_or(0);
    let mut source = Source::new(seed, &port.name);
    macro_rules! fill {
        ($variant:ident, $next:expr) => {
            Data::$variant((0..count).map(|_| $next).collect())
        };
    }
    let data = match element {
        ElementType::F16 => fill!(F16, f16::from_f64(source.normal())),
        ElementType::BF16 => fill!(BF16, bf16::from_f64(source.normal())),
        ElementType::F32 => fill!(F32, source.normal() as f32),
        ElementType::F64 => fill!(F64, source.normal()),
        ElementType::I8 => fill!(I8, source.next() as i8),
        ElementType::I16 => fill!(I16, source.next() as i16),
        ElementType::U8 => fill!(U8, source.next() as u8),
        ElementType::U16 => fill!(U16, source.next() as u16),
        ElementType::I32 => fill!(I32, i32::from(source.flip())),
        ElementType::I64 => fill!(I64, i64::from(source.flip())),
        ElementType::U32 => fill!(U32, u32::from(source.flip())),
        ElementType::U64 => fill!(U64, u64::from(source.flip())),
        ElementType::Bool => fill!(Bool, source.flip()),
        ElementType::Str => return Err(unsupported(model, port)),
    };
    Tensor::new(port.name.clone(), shape, data)
}

/// A stream of numbers that is the same on every machine: `SplitMix64` (Steele, Lea and Flood, 2014).
struct Source {
    state: u64,
}

impl Source {
    /// The stream of the input `name` under `seed`.
    fn new(seed: u64, name: &str) -> Self {
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

    fn flip(&mut self) -> bool {
        self.next() >> 63 == 1
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
