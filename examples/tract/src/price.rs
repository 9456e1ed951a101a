//! What tract's kernels cost: each is run alone on this machine, as tract's own code generation makes it.

use crate::turn::alone;
use cpu_time::ThreadTime;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tract_core::dyn_clone;
use tract_core::internal::*;

/// Runs of one kernel at most, and at least.
const RUNS: (usize, usize) = (60, 8);

/// After this time no more runs than the least are made.
const ENOUGH: Duration = Duration::from_millis(20);

/// Prices in nanoseconds, measured once each.
#[derive(Debug, Default)]
pub struct Prices {
    known: Mutex<BTreeMap<String, Option<u64>>>,
    by_bytes: bool,
}

impl Prices {
    /// None yet.
    pub fn new() -> Prices {
        Prices::default()
    }

    /// Without measuring: every kernel costs the same in all orders, and a move costs what its bytes do. So the same model has the same
    /// plan on every machine, and only moves are removed.
    pub fn by_bytes() -> Prices {
        Prices { by_bytes: true, ..Prices::default() }
    }

    /// How many kernels were measured.
    pub fn len(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none was measured.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What an op costs that reads such tensors; `None` if it can't be run alone, or sizes are not known.
    pub fn price(&self, op: &dyn TypedOp, facts: &[TypedFact]) -> Option<u64> {
        if self.by_bytes {
            return None;
        }
        let told = |fact: &TypedFact| format!("{:?} {:?} {}", fact.datum_type, fact.shape, fact.konst.is_some());
        let key = format!("{} {op:?} {}", op.name(), facts.iter().map(told).collect::<Vec<_>>().join(", "));
        self.known_or(key, || alone(dyn_clone::clone_box(op), facts).map(|(model, _)| model))
    }

    /// What moves of a tensor cost, one after the other.
    pub fn of_moves(&self, kind: DatumType, shape: &[usize], moves: &[AxisOp]) -> Option<u64> {
        if self.by_bytes {
            return None;
        }
        self.known_or(format!("{kind:?} {shape:?} {moves:?}"), || {
            let mut model = TypedModel::default();
            let mut wire = model.add_source("input", kind.fact(shape))?;
            for (i, step) in moves.iter().enumerate() {
                wire = model.wire_node(format!("move{i}"), step.clone(), &[wire])?[0];
            }
            model.select_output_outlets(&[wire])?;
            Ok(model)
        })
    }

    fn known_or(&self, key: String, model: impl FnOnce() -> TractResult<TypedModel>) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_insert_with(|| model().and_then(measured).ok())
    }
}

/// The shortest time of a model's runs, as the thread had it.
pub fn measured(mut model: TypedModel) -> TractResult<u64> {
    let mut inputs = tvec!();
    for (at, outlet) in model.input_outlets()?.iter().enumerate() {
        inputs.push(numbers(model.outlet_fact(*outlet)?, at as u32)?.into_tvalue());
    }
    model.optimize()?;
    let plan = model.into_runnable()?;
    let begin = Instant::now();
    let mut best = u64::MAX;
    for run in 0..RUNS.0 {
        let at = ThreadTime::now();
        plan.run(inputs.clone())?;
        best = best.min(u64::try_from(at.elapsed().as_nanos())?);
        if run + 1 >= RUNS.1 && begin.elapsed() > ENOUGH {
            break;
        }
    }
    Ok(best)
}

/// A tensor of this type and shape: numbers from -1 to 1 for floats, small ones for integers, the same each time.
///
/// # Errors
/// Where extents are not known or the type is none of numbers.
pub fn numbers(fact: &TypedFact, seed: u32) -> TractResult<Tensor> {
    let shape = fact.shape.as_concrete().context("extents are not known")?;
    let count = shape.iter().product::<usize>();
    let mut state = seed.wrapping_mul(0x9e37_79b9).wrapping_add(0x1234_5678);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    let floats: Vec<f32> = (0..count).map(|_| next()).collect();
    let tensor = Tensor::from_shape(shape, &floats)?;
    let kind = fact.datum_type;
    if kind.is_float() {
        return Ok(tensor.cast_to_dt(kind)?.into_owned());
    }
    let whole: Vec<i64> = floats.iter().map(|x| i64::from(*x > 0.0)).collect();
    Ok(Tensor::from_shape(shape, &whole)?.cast_to_dt(kind.unquantized())?.into_owned().cast_to_dt(kind)?.into_owned())
}
