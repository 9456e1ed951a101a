//! `relayout calibrate`

mod device;
mod gpu;
mod models;

use crate::args;
use crate::commands::{is_stdout, runtime};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{json, quiet, say, say_json, tell};
use relayout::fsio::{self, Output, destination};
use relayout::request::measured;
use relayout::targets::measured::{BuiltinTable, MeasuredCosts};
use relayout::targets::{Block, threads_asked};
use relayout_calibrate::{CalibrateOptions, calibrate as measure, check as hold, processor};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn calibrate(a: &args::Calibrate) -> Result<(), Failure> {
    let target = measured_target(a)?;
    if target != "ort-cpu" {
        if !is_stdout(&a.out) {
            check_place(&a.out)?;
        }
        let table = if target == "ort-nhwc" { device::table(a, &today())? } else { gpu::table(a, &today())? };
        return put(&a.out, &table);
    }
    // What can fail at once fails before the minutes that measuring takes.
    let threads = asked(a)?;
    let costs = if a.check { Some(table(a.costs.as_deref(), &threads)?) } else { None };
    if !is_stdout(&a.out) {
        check_place(&a.out)?;
    }
    if !a.models.is_empty() {
        return models::check(a, costs);
    }
    let runtime = runtime()?;
    let mut options = CalibrateOptions::new(processor(), today());
    if a.quick {
        options = options.quick();
    }
    options.threads = threads;
    let bar = Progress::start("measuring");
    let mut progress = |done: usize, of: usize| bar.tell(format!("measuring {}", 100 * done / of.max(1)) + " %");
    if let Some(costs) = costs {
        let check = hold(&runtime, &costs, &options, a.seed, &mut progress).map_err(Failure::model)?;
        drop(bar);
        if json() {
            return say_json(&check);
        }
        return say(check.to_string().trim_end());
    }
    let calibration = measure(&runtime, &options, &mut progress).map_err(Failure::model)?.without_busy();
    drop(bar);
    if !quiet() {
        calibration.off().iter().for_each(|line| tell(&format!("{line}\n")));
    }
    put(&a.out, &calibration.text())
}

/// The target that is measured, if all options are of that one.
fn measured_target(a: &args::Calibrate) -> Result<&str, Failure> {
    let of_provider = a.provider.as_ref().map(|_| "ort-nhwc");
    let target = a.target.as_deref().or(of_provider).unwrap_or("ort-cpu");
    let (cpu, gpu, device) = (target == "ort-cpu", target == "cuda-tensorcore", target == "ort-nhwc");
    let wrong = [
        ("--check", a.check, cpu),
        ("--threads", !a.threads.is_empty(), cpu),
        ("MODEL", !a.models.is_empty(), cpu),
        ("--provider", a.provider.is_some(), device),
        ("--python", a.python.is_some(), !cpu),
        ("--runner", a.runner.is_some(), gpu),
        ("--device", a.device != "cuda", !cpu),
    ];
    match wrong.iter().find(|(_, given, fits)| *given && !fits) {
        Some((option, ..)) => Err(Failure::usage(format!("{option} is not an option for target `{target}`"))),
        None => Ok(target),
    }
}

/// A Python, as `--python` or the environment names it.
fn python(a: &args::Calibrate) -> PathBuf {
    let given = a.python.clone().or_else(|| std::env::var_os("PYTHON").filter(|p| !p.is_empty()).map(PathBuf::from));
    given.unwrap_or_else(|| PathBuf::from("python3"))
}

/// The numbers of threads that are asked for. If none is said: one for a check, else one and its doubles up to as many as the machine has
/// cores, and these.
fn asked(a: &args::Calibrate) -> Result<Vec<usize>, Failure> {
    let mut threads: Vec<usize> = a.threads.iter().map(|&threads| threads_asked(threads.into())).collect();
    if threads.is_empty() {
        threads.push(1);
        let cores = threads_asked(0);
        if !a.check {
            threads.extend((1..).map(|double| 1 << double).take_while(|&double| double < cores));
            threads.push(cores);
        }
    }
    threads.sort_unstable();
    threads.dedup();
    match threads.as_slice() {
        [_] => Ok(threads),
        _ if a.check => Err(Failure::usage("--threads takes one number with --check".to_owned())),
        [1, ..] => Ok(threads),
        _ => Err(Failure::usage(
            "--threads takes one number, or several of which one is 1: times on others are held against it".to_owned(),
        )),
    }
}

/// The table on stdout or in its place.
fn put(output: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(output) {
        return say(text.trim_end());
    }
    Output::new(output, text.into()).and_then(Output::commit).map_err(Failure::model)
}

/// The table in a file, or the built-in one of this machine, for so many threads.
fn table(path: Option<&Path>, threads: &[usize]) -> Result<MeasuredCosts, Failure> {
    let threads = threads.first().copied().unwrap_or(1) as u64;
    match path {
        Some(path) => measured(path)?.on_threads(threads).map_err(Failure::model),
        None => match BuiltinTable::of_host() {
            Some(own) => own.costs().and_then(|costs| costs.on_threads(threads)),
            None => MeasuredCosts::builtin(Block::of_host().channels(), threads),
        }
        .map_err(Failure::model),
    }
}

/// Whether there is a place for the table, seen before the minutes that measuring takes.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::model(format!("cannot write {}: it is a directory", path.display())));
    }
    match destination(path) {
        Err(fsio::Error::Write { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Err(Failure::model(format!("cannot write {}: there is no such folder", path.display())))
        }
        found => found.map(drop).map_err(Failure::model),
    }
}

/// The day in universal time.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let [year, month, day] = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a count of days from 1970-01-01, in years that start in March, so that leap days come last.
fn civil(days: u64) -> [u64; 3] {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let [month, next] = if month < 10 { [month + 3, 0] } else { [month - 9, 1] };
    [era * 400 + year + next, month, day]
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_are_counted_through_leap_years() {
        for (days, date) in [
            (0, [1970, 1, 1]),
            (59, [1970, 3, 1]),
            (11_016, [2000, 2, 29]),
            (11_017, [2000, 3, 1]),
            (20_778, [2026, 11, 21]),
            (47_540, [2100, 2, 28]),
            (47_541, [2100, 3, 1]),
        ] {
            assert_eq!(civil(days), date, "{days}");
        }
    }
}
