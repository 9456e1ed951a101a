//! Models in a session as the runtime makes it, and in one with the pass: in turns, in one process, with a second session of the first
//! kind as a control.
//!
//!     RAYON_NUM_THREADS=1 cargo run --release --example bench -- MODEL.onnx ...

#[path = "common/mod.rs"]
mod common;

use common::{Result, difference, feeds, loaded, round, run};
use relayout_nxrt::Relayout;
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 15;

/// How far from either end the interval of the median begins: of 15 rounds the 4th and the 12th, between which it is with 96 %.
const OUTSIDE: usize = 3;

/// A round of one session is repeated for about so many seconds.
const LENGTH: f64 = 0.04;

/// Median of ratios, and the interval.
fn told(mut ratios: Vec<f64>) -> (f64, String) {
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    (median, format!("{median:.3} ({:.3} to {:.3})", ratios[OUTSIDE], ratios[ratios.len() - 1 - OUTSIDE]))
}

/// Gain of a model, and what the control says.
fn one(path: &Path) -> Result<(f64, f64)> {
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let begin = Instant::now();
    let first = loaded(path, None)?;
    let without = begin.elapsed().as_secs_f64();
    let pass = Relayout::default();
    let begin = Instant::now();
    let ours = loaded(path, Some(&pass))?;
    let with = begin.elapsed().as_secs_f64();
    let parts = [Relayout::default().without_dense(), Relayout::default().without_plan()];
    let [plan, dense] = [loaded(path, Some(&parts[0]))?, loaded(path, Some(&parts[1]))?];
    let mut sessions = [first, ours, loaded(path, None)?, plan, dense];
    let feeds = feeds(&sessions[0])?;
    let results: Vec<_> = sessions.iter_mut().map(|session| run(session, &feeds)).collect::<Result<_>>()?;
    let mut apart = 0f32;
    for result in &results {
        apart = apart.max(difference(&results[0], result)?);
    }
    let runs = ((LENGTH / round(&mut sessions[0], &feeds, 1)?) as usize).clamp(1, 20);
    let mut times: [Vec<f64>; 5] = Default::default();
    for turn in 0..ROUNDS {
        for at in (0..5).map(|i| (i + turn) % 5) {
            times[at].push(round(&mut sessions[at], &feeds, runs)?);
        }
    }
    let least = |at: usize| times[at].iter().copied().fold(f64::INFINITY, f64::min) * 1e3;
    let ratios = |at: usize| told(times[0].iter().zip(&times[at]).map(|(a, b)| a / b).collect());
    let ((gain, gains), (control, controls)) = (ratios(1), ratios(2));
    let report = pass.report();
    let ((before, after), mb) = (report.moves, |bytes: u64| bytes as f64 / 1e6);
    println!(
        "| {name} | {} -> {} | {:.1} -> {:.1} | {:.1} | {:.0} | {:.0} | {gains} | {:.2} | {:.2} | {controls} | {apart:.0e} | {:.2} |",
        before.nodes,
        after.nodes,
        mb(before.bytes),
        mb(after.bytes),
        mb(report.stored),
        least(0),
        least(1),
        ratios(3).0,
        ratios(4).0,
        with - without,
    );
    for (node, why) in &report.given_back {
        eprintln!("{name}: given back at {node}: {why}");
    }
    if let Some(why) = &report.kept {
        eprintln!("{name}: stays as it is: {why}");
    }
    if std::env::var_os("EXPLAIN").is_some() {
        eprintln!("{}", report.planned);
    }
    Ok((gain, control))
}

fn mean(list: &[(String, f64, f64)], which: impl Fn(&str) -> bool) -> String {
    let list: Vec<_> = list.iter().filter(|(name, ..)| which(name)).collect();
    let of = |pick: fn(&(String, f64, f64)) -> f64| {
        (list.iter().map(|one| pick(one).ln()).sum::<f64>() / list.len() as f64).exp()
    };
    format!("{:.3} (control {:.3}) of {}", of(|one| one.1), of(|one| one.2), list.len())
}

fn main() {
    println!(
        "| model | Transposes | gathered, MB | constants, MB | without, ms | with, ms | gain | plan alone | dense alone | control | difference | in, s |"
    );
    println!("|---|---|---|---:|---:|---:|---|---:|---:|---|---:|---:|");
    let mut done = Vec::new();
    for path in std::env::args().skip(1) {
        let name = Path::new(&path).file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match one(Path::new(&path)) {
            Ok((gain, control)) => done.push((name, gain, control)),
            Err(why) => eprintln!("{name}: {}", why.to_string().chars().take(200).collect::<String>()),
        }
    }
    println!("all: {}", mean(&done, |_| true));
    println!("TensorFlow's: {}", mean(&done, |name| name.starts_with("tf_")));
    println!("others: {}", mean(&done, |name| !name.starts_with("tf_")));
}
