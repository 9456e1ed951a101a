//! Whether two models compute the same: both are run on the same numbers.

use crate::carry::{Carried, Refused};
use crate::orders::{between, plain};
use crate::price::numbers;
use cpu_time::ThreadTime;
use std::time::{Duration, Instant};
use tract_core::internal::*;

/// Most that results may differ, as a part of the largest number in a tensor, or of 1.
pub const TOLERANCE: f32 = 1e-5;

/// Rounds of a trial at most, and the time after which no more are begun.
const ROUNDS: (usize, Duration) = (12, Duration::from_millis(600));

/// Two models that are run in turns on the same numbers.
pub struct Trial {
    before: Arc<TypedRunnableModel>,
    after: Arc<TypedRunnableModel>,
    inputs: TVec<TValue>,
}

impl Trial {
    /// Of these models; `None` if extents are not known, or the first can't be run.
    ///
    /// # Errors
    /// Where the second can't be run.
    pub fn compare(old: &TypedModel, new: &TypedModel) -> TractResult<Option<Trial>> {
        let mut inputs = tvec!();
        for (at, outlet) in old.input_outlets()?.iter().enumerate() {
            let Ok(tensor) = numbers(old.outlet_fact(*outlet)?, at as u32) else { return Ok(None) };
            inputs.push(tensor.into_tvalue());
        }
        let Ok(before) = runnable(old.clone()) else { return Ok(None) };
        Ok(Some(Trial { before, after: runnable(new.clone())?, inputs }))
    }

    /// The largest difference of a result; `None` if the first model does not run.
    ///
    /// # Errors
    /// Where the second does not run, or its results have other shapes.
    pub fn difference(&self) -> TractResult<Option<f32>> {
        let Ok(before) = self.before.run(self.inputs.clone()) else { return Ok(None) };
        worst(&before, &self.after.run(self.inputs.clone())?).map(Some)
    }

    /// The shortest times of both, in turns.
    ///
    /// # Errors
    /// Where one does not run.
    pub fn times(&self) -> TractResult<[Duration; 2]> {
        let begin = Instant::now();
        let mut best = [Duration::MAX; 2];
        for round in 0..ROUNDS.0 {
            for at in [round % 2, 1 - round % 2] {
                let plan = [&self.before, &self.after][at];
                let from = ThreadTime::now();
                plan.run(self.inputs.clone())?;
                best[at] = best[at].min(from.elapsed());
            }
            if round >= 3 && begin.elapsed() > ROUNDS.1 {
                break;
            }
        }
        Ok(best)
    }

    /// The first node that computes something else, if results differ.
    ///
    /// # Errors
    /// What tract says of the models.
    pub fn differs(&self, old: &TypedModel, carried: &Carried) -> TractResult<Option<Refused>> {
        let first = |why: String| Refused { node: old.outputs.first().map_or(0, |o| o.node), why };
        match self.difference() {
            Ok(difference) if difference.is_none_or(|d| d <= TOLERANCE) => Ok(None),
            Ok(_) => {
                Ok(Some(guilty(old, carried, &self.inputs)?.unwrap_or_else(|| first("results differ".to_owned()))))
            }
            Err(why) => Ok(Some(first(format!("the result does not run: {why:#}")))),
        }
    }
}

fn runnable(mut model: TypedModel) -> TractResult<Arc<TypedRunnableModel>> {
    model.optimize()?;
    model.into_runnable()
}

fn run(model: TypedModel, inputs: &TVec<TValue>) -> TractResult<TVec<TValue>> {
    runnable(model)?.run(inputs.clone())
}

/// The largest difference, as a part of the largest number of its tensor, or of 1.
pub fn worst(before: &[TValue], after: &[TValue]) -> TractResult<f32> {
    ensure!(before.len() == after.len(), "another number of results");
    let mut worst = 0f32;
    for (a, b) in before.iter().zip(after) {
        worst = worst.max(apart(a, b)?);
    }
    Ok(worst)
}

fn apart(a: &Tensor, b: &Tensor) -> TractResult<f32> {
    ensure!(a.shape() == b.shape() && a.datum_type() == b.datum_type(), "another shape or type");
    let (a, b) = (a.cast_to::<f32>()?, b.cast_to::<f32>()?);
    let (a, b) = (a.try_as_plain_ram()?.as_slice::<f32>()?, b.try_as_plain_ram()?.as_slice::<f32>()?);
    let scale = a.iter().filter(|x| x.is_finite()).fold(1f32, |most, x| most.max(x.abs()));
    let one = |(x, y): (&f32, &f32)| match x == y || (x.is_nan() && y.is_nan()) {
        true => 0.0,
        false if x.is_finite() && y.is_finite() => (x - y).abs() / scale,
        false => f32::INFINITY,
    };
    Ok(a.iter().zip(b).map(one).fold(0.0, f32::max))
}

/// The first node whose result differs where every result is an output.
fn guilty(old: &TypedModel, carried: &Carried, inputs: &TVec<TValue>) -> TractResult<Option<Refused>> {
    let (mut before, mut after) = (old.clone(), carried.model.clone());
    let (mut ends, mut others) = (Vec::new(), Vec::new());
    for id in old.eval_order()? {
        let outlet = OutletId::new(id, 0);
        let Some((order, mut wire)) = carried.homes.get(&outlet).cloned() else { continue };
        if old.outlet_fact(outlet)?.konst.is_some() || old.inputs.contains(&outlet) {
            continue;
        }
        for step in between(&order, &plain(order.len())).unwrap_or_default() {
            let name = after.unique_name("compared").into_owned();
            wire = after.wire_node(name, step, &[wire])?[0];
        }
        ends.push(outlet);
        others.push(wire);
    }
    before.select_output_outlets(&ends)?;
    after.select_output_outlets(&others)?;
    let (before, after) = (run(before, inputs)?, run(after, inputs)?);
    for (outlet, (a, b)) in ends.iter().zip(before.iter().zip(&after)) {
        if apart(a, b)? > TOLERANCE {
            return Ok(Some(Refused { node: outlet.node, why: "it computes something else".to_owned() }));
        }
    }
    Ok(None)
}
