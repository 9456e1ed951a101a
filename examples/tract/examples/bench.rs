//! Models by tract as it optimizes them, and by tract after [`Relayout`]: in turns, in one process, with a second copy of the
//! first as a control.
//!
//!     cargo run --release --example bench -- MODEL.onnx ...

use cpu_time::ThreadTime;
use relayout_tract::{Prices, Relayout, numbers, worst};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tract_core::internal::*;
use tract_core::ops::cnn::conv::Conv;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::Factoid;

const ROUNDS: usize = 15;

/// A round of one plan is repeated for about so many seconds.
const LENGTH: f64 = 0.04;

type Plan = Arc<TypedRunnableModel>;

/// The decluttered model, open extents set: one image, of 224 rows and columns.
fn decluttered(path: &Path) -> TractResult<TypedModel> {
    let mut model = tract_onnx::onnx().model_for_path(path)?;
    for at in 0..model.input_outlets()?.len() {
        let fact = model.input_fact(at)?.clone();
        let (Some(kind), Some(shape)) = (fact.datum_type.concretize(), fact.shape.concretize()) else { continue };
        let size = |(axis, dim): (usize, &TDim)| dim.to_usize().unwrap_or(if axis == 0 { 1 } else { 224 });
        let shape: Vec<usize> = shape.iter().enumerate().map(size).collect();
        model.set_input_fact(at, InferenceFact::dt_shape(kind, shape))?;
    }
    model.into_typed()?.into_decluttered()
}

fn runnable(mut model: TypedModel) -> TractResult<Plan> {
    model.optimize()?;
    model.into_runnable()
}

/// The shortest of some runs, in seconds that the thread had.
fn round(plan: &Plan, inputs: &TVec<TValue>, runs: usize) -> TractResult<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let begin = ThreadTime::now();
        plan.run(inputs.clone())?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

/// Gain of a model, and what the control says; `None` if it has no convolution.
fn one(path: &Path, prices: &Arc<Prices>) -> TractResult<Option<(f64, f64)>> {
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let model = decluttered(path)?;
    if !model.nodes().iter().any(|node| node.op_is::<Conv>()) {
        return Ok(None);
    }
    let mut inputs = tvec!();
    for (at, outlet) in model.input_outlets()?.iter().enumerate() {
        inputs.push(numbers(model.outlet_fact(*outlet)?, at as u32)?.into_tvalue());
    }
    let begin = Instant::now();
    let (ours, report) = Relayout::default().prices(prices.clone()).least_gain(2).timed().decide(&model)?;
    let planned = begin.elapsed().as_secs_f64();
    let plans = [runnable(model.clone())?, runnable(ours)?, runnable(model)?];
    let difference = worst(&plans[0].run(inputs.clone())?, &plans[1].run(inputs.clone())?)?;
    let runs = ((LENGTH / round(&plans[0], &inputs, 2)?) as usize).clamp(1, 40);
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..ROUNDS {
        for at in (0..3).map(|i| (i + turn) % 3) {
            times[at].push(round(&plans[at], &inputs, runs)?);
        }
    }
    let least = |at: usize| times[at].iter().copied().fold(f64::INFINITY, f64::min);
    let ratios = |at: usize| median(times[0].iter().zip(&times[at]).map(|(a, b)| a / b).collect());
    let (gain, control) = (least(0) / least(1), least(0) / least(2));
    println!(
        "| {name} | {} -> {} | {:.2} | {:.2} | {gain:.3} | {:.3} | {control:.3} | {difference:.0e} | {planned:.1} |",
        report.moves.0,
        report.moves.1,
        least(0) * 1e3,
        least(1) * 1e3,
        ratios(1),
    );
    for (node, why) in &report.given_back {
        eprintln!("{name}: given back at {node}: {why}");
    }
    if let Some(why) = &report.kept {
        eprintln!("{name}: stays as it is: {why}");
    }
    if std::env::var_os("EXPLAIN").is_some() {
        eprintln!("{}", report.planned);
        for plan in &plans[..2] {
            let mut ops = std::collections::BTreeMap::<String, usize>::new();
            plan.model().nodes().iter().for_each(|node| *ops.entry(node.op.name().to_string()).or_default() += 1);
            eprintln!("{ops:?}");
        }
    }
    Ok(Some((gain, control)))
}

fn mean(list: &[(String, f64, f64)], which: impl Fn(&str) -> bool) -> String {
    let list: Vec<_> = list.iter().filter(|(name, ..)| which(name)).collect();
    let of = |pick: fn(&(String, f64, f64)) -> f64| {
        (list.iter().map(|one| pick(one).ln()).sum::<f64>() / list.len() as f64).exp()
    };
    format!("{:.3} (control {:.3}) of {}", of(|one| one.1), of(|one| one.2), list.len())
}

fn main() -> TractResult<()> {
    println!(
        "| model | moves | tract, ms | with relayout, ms | gain | median of rounds | control | difference | planned in, s |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let prices = Arc::new(Prices::new());
    let mut done = Vec::new();
    for path in std::env::args().skip(1) {
        let name = Path::new(&path).file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match one(Path::new(&path), &prices) {
            Ok(Some((gain, control))) => done.push((name, gain, control)),
            Ok(None) => eprintln!("{name}: no convolution"),
            Err(why) => eprintln!("{name}: {}", format!("{why:#}").chars().take(200).collect::<String>()),
        }
    }
    println!("all: {}", mean(&done, |_| true));
    println!("TensorFlow's: {}", mean(&done, |name| name.starts_with("tf_")));
    println!("others: {}", mean(&done, |name| !name.starts_with("tf_")));
    Ok(())
}
