//! Starts and runs of sessions with relayout-ort beside those of the plain builder, in turns.
//!
//! ```text
//! cargo run --release -p relayout-ort --example starts -- [--threads N] [--rounds N] MODEL_OR_FOLDER...
//! ```
//!
//! The runtime is the one that `ORT_DYLIB_PATH` names, else that of `tools/setup`. For each model it prints the first start, which
//! optimizes; the median of plain starts and of starts with the cache, and their ratio; the median of a run of both sessions, how many times
//! as fast ours runs (median of the rounds and an interval of 95 %), and what the same way says of the plain session beside itself.
//! In a round each session has two turns in the same order, so that none follows itself (as in `tools/timing.py`). Marked are a start with
//! the cache that takes more than 1.1 of a plain one and 5 ms, a session that is slower by the whole interval, and results that differ.

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use ort::value::{DynValue, Outlet, Tensor, TensorElementType, ValueType};
use relayout_ort::{Builder, ModelCache};
use relayout_verify::{SearchPlaces, find_library};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

struct Asked {
    threads: usize,
    rounds: usize,
    models: Vec<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = Asked::read()?;
    let mut places = SearchPlaces::default();
    places.explicit = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
    places.environment = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv")));
    let library = find_library(&places).ok_or("ONNX Runtime is not found; run tools/setup")?;
    let environment = ort::init_from(library.canonicalize()?)?.with_telemetry(false).build()?;
    println!("times in ms; {} rounds in turns, {} threads", asked.rounds, asked.threads);
    println!(
        "{:<28} {:>8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>24} {:>24}  what",
        "model", "first", "plain", "cached", "ratio", "run", "run opt", "gain", "control"
    );
    let mut gains = Vec::new();
    for model in &asked.models {
        let name = model.file_stem().unwrap_or_default().to_string_lossy();
        match row(&environment, model, &asked) {
            Ok((row, gain)) => {
                println!("{name:<28} {row}");
                gains.extend(gain);
            }
            Err(e) => println!("{name:<28} not measured: {e}"),
        }
    }
    let mean = (gains.iter().map(|gain: &f64| gain.ln()).sum::<f64>() / gains.len().max(1) as f64).exp();
    println!("{} optimized models run {mean:.3} times as fast, in geometric mean", gains.len());
    Ok(())
}

impl Asked {
    fn read() -> Result<Asked, Box<dyn Error>> {
        let mut asked = Asked { threads: 1, rounds: 15, models: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number =
                || words.next().unwrap_or_default().parse().map_err(|_| format!("{word}: expected a number"));
            match word.as_str() {
                "--threads" => asked.threads = number()?,
                "--rounds" => asked.rounds = number()?,
                folder if Path::new(folder).is_dir() => {
                    let files = std::fs::read_dir(folder)?.map(|file| Ok(file?.path()));
                    let mut files = files.collect::<std::io::Result<Vec<PathBuf>>>()?;
                    files.retain(|file| file.extension().is_some_and(|kind| kind == "onnx"));
                    files.sort();
                    asked.models.extend(files);
                }
                _ => asked.models.push(PathBuf::from(word)),
            }
        }
        if asked.models.is_empty() { Err("name models".into()) } else { Ok(asked) }
    }
}

/// What was made, and how many milliseconds that took.
fn timed<T>(make: impl FnOnce() -> ort::Result<T>) -> ort::Result<(T, f64)> {
    let begin = Instant::now();
    let made = make()?;
    Ok((made, begin.elapsed().as_secs_f64() * 1e3))
}

/// Threads of a session else spin on after a run, on the cores of the session whose turn is next.
const STOP: (&str, &str) = ("session.force_spinning_stop", "1");

/// A session of the plain builder.
fn plain(environment: &Environment, model: &Path, threads: usize) -> ort::Result<Session> {
    SessionBuilder::new(environment)?
        .with_intra_threads(threads)?
        .with_config_entry(STOP.0, STOP.1)?
        .commit_from_file(model)
}

/// A session with the cache in a folder, and whether it runs an optimized model.
fn cached(environment: &Environment, model: &Path, threads: usize, folder: &Path) -> ort::Result<(Session, bool)> {
    let builder = Builder::new(environment)?.cache(ModelCache::new(folder)).patience(None);
    let mut builder = builder.with_intra_threads(threads)?.with_config_entry(STOP.0, STOP.1)?;
    let session = builder.commit_from_file(model)?;
    Ok((session, builder.outcome().is_some_and(relayout_ort::StartOutcome::is_optimized)))
}

/// A turn of a session takes at least as many milliseconds: a short model runs several times.
const TURN_MS: f64 = 5.0;

/// The median of ratios, and the interval that holds it with a probability of 95 %, whatever the distribution is.
struct Ratio {
    low: f64,
    median: f64,
    high: f64,
}

impl Ratio {
    fn of(mut ratios: Vec<f64>) -> Ratio {
        ratios.sort_by(f64::total_cmp);
        // How many lie below the interval, and as many above it: the binomial distribution of a fair coin.
        let (count, mut below, mut cut) = (ratios.len(), 0.0, 0);
        let mut share = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
        for at in 0..count / 2 {
            below += share;
            if 2.0 * below > 0.05 {
                break;
            }
            cut = at;
            share *= (count - at) as f64 / (at + 1) as f64;
        }
        let at = |place: usize| ratios.get(place).copied().unwrap_or(f64::NAN);
        Ratio { low: at(cut), median: at(count / 2), high: at(count.saturating_sub(cut + 1)) }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6.3} ({:.3} to {:.3})", self.median, self.low, self.high)
    }
}

/// The figures of a model, and the gain if it was optimized.
fn row(environment: &Environment, model: &Path, asked: &Asked) -> Result<(String, Option<f64>), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let plain = || plain(environment, model, asked.threads);
    let cached = || cached(environment, model, asked.threads, folder.path());
    let ((_, made), first) = timed(cached)?;
    let (mut theirs, (mut ours, _)) = (plain()?, cached()?);
    let (mut starts, mut runs) = (Vec::new(), Vec::new());
    let fed = inputs(theirs.inputs())?;
    let (once, of_theirs) = run(&mut theirs, &fed, 1)?;
    let same = alike(&of_theirs, &run(&mut ours, &fed, 1)?.1);
    let times = ((TURN_MS / once.max(1e-3)).ceil() as usize).clamp(1, 1000);
    for round in 0..asked.rounds {
        // The one that comes second finds files and caches warm; it is another one each time.
        starts.push(if round % 2 == 0 {
            let plain_ms = timed(plain)?.1;
            (plain_ms, timed(cached)?.1)
        } else {
            let cached_ms = timed(cached)?.1;
            (timed(plain)?.1, cached_ms)
        });
    }
    // Runs come after all starts: one behind a start would find other things in the caches.
    for _ in 0..asked.rounds {
        let mut turn = || Ok::<_, Box<dyn Error>>((run(&mut theirs, &fed, times)?.0, run(&mut ours, &fed, times)?.0));
        runs.push((turn()?, turn()?));
    }
    let (plain_ms, cached_ms) = (median(starts.iter().map(|s| s.0)), median(starts.iter().map(|s| s.1)));
    let gain = Ratio::of(runs.iter().map(|(a, b)| (a.0 + b.0) / (a.1 + b.1)).collect());
    let control = Ratio::of(runs.iter().map(|(a, b)| a.0 / b.0).collect());
    let row = format!(
        "{first:>8.1} {plain_ms:>8.1} {cached_ms:>8.1} {:>6.2} {:>9.3} {:>9.3} {gain} {control}  {}{}{}{}",
        cached_ms / plain_ms,
        median(runs.iter().map(|(a, b)| f64::midpoint(a.0, b.0))),
        median(runs.iter().map(|(a, b)| f64::midpoint(a.1, b.1))),
        if made { "optimized" } else { "as it is" },
        if cached_ms > plain_ms * 1.1 + 5.0 { ", LATE" } else { "" },
        if made && gain.high < 1.0 { ", SLOWER" } else { "" },
        if same { "" } else { ", RESULTS DIFFER" },
    );
    Ok((row, made.then_some(gain.median)))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Made-up inputs; an axis that is open has one place.
fn inputs(outlets: &[Outlet]) -> Result<Vec<(String, DynValue)>, Box<dyn Error>> {
    let one = |outlet: &Outlet| -> Result<(String, DynValue), Box<dyn Error>> {
        let ValueType::Tensor { ty, shape, .. } = outlet.dtype() else { return Err("an input is not a tensor".into()) };
        let shape: Vec<i64> = shape.iter().map(|&extent| extent.max(1)).collect();
        let length = usize::try_from(shape.iter().product::<i64>())?;
        let number = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 64.0;
        let value = match ty {
            TensorElementType::Float32 => {
                Tensor::from_array((shape, (0..length).map(number).collect::<Vec<f32>>()))?.into_dyn()
            }
            TensorElementType::Int64 => Tensor::from_array((shape, vec![1_i64; length]))?.into_dyn(),
            TensorElementType::Int32 => Tensor::from_array((shape, vec![1_i32; length]))?.into_dyn(),
            other => return Err(format!("an input has the type {other}").into()),
        };
        Ok((outlet.name().to_owned(), value))
    };
    outlets.iter().map(one).collect()
}

/// The milliseconds of a run out of so many, and the floats that the last one left.
fn run(session: &mut Session, fed: &[(String, DynValue)], times: usize) -> Result<(f64, Vec<f32>), Box<dyn Error>> {
    let names: Vec<String> = session.outputs().iter().map(|outlet| outlet.name().to_owned()).collect();
    let views = || fed.iter().map(|(name, value)| (name.as_str(), value)).collect::<Vec<_>>();
    let begin = Instant::now();
    for _ in 1..times {
        session.run(views())?;
    }
    let results = session.run(views())?;
    let ms = begin.elapsed().as_secs_f64() * 1e3 / times as f64;
    let floats = names.iter().filter_map(|name| Some(results.get(name)?.try_extract_tensor::<f32>().ok()?.1.to_vec()));
    Ok((ms, floats.flatten().collect()))
}

/// Whether numbers are the same but for rounding: beside the largest of them.
fn alike(a: &[f32], b: &[f32]) -> bool {
    let largest = a.iter().map(|x| x.abs()).fold(1e-6, f32::max);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-3 * largest || a.is_nan() && b.is_nan())
}
