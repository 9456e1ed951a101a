//! `relayout optimize` with several models: they are optimized side by side, one that fails does not stop the rest, and a table
//! says what was gained.

use crate::args;
use crate::failure::Failure;
use crate::inputs::Job;
use crate::optimize::{Work, entry, wanted};
use crate::progress::Count;
use crate::terminal::{json, quiet, say, say_json, tell as tell_besides};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use relayout::units::bytes;
use relayout::{Report, Target};
use serde_json::json;
use std::num::NonZeroUsize;
use unicode_width::UnicodeWidthStr as _;

/// Graphs of many bodies are walked in depth: a thread gets what the first one of a process has.
const STACK_BYTES: usize = 8 << 20;

type Done<'a> = (&'a Job, Result<Report, Failure>);

/// All of them, and what became of each. The notes are said first.
pub(crate) fn optimize(a: &args::Optimize, target: &dyn Target, jobs: &[Job], notes: &[String]) -> Result<(), Failure> {
    check_call(a)?;
    for note in notes.iter().filter(|_| !quiet()) {
        tell_besides(&format!("note: {note}\n"));
    }
    let threads = a.output.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES);
    let pool = pool.build().map_err(|e| Failure::model(format!("cannot start {threads} threads: {e}")))?;
    let count = Count::start(jobs.len());
    let one = |job| one(a, target, job, &count);
    let done: Vec<Done> = pool.install(|| jobs.par_iter().map(one).collect());
    drop(count);
    for name in unknown_dims(a, &done) {
        tell_besides(&format!("note: --dim {name}: none of these models has an open dim of that name\n"));
    }
    tell(a, &done)
}

/// Dims that are named and that no model has. Nothing is said where a model was not looked at.
fn unknown_dims<'a>(a: &'a args::Optimize, done: &[Done]) -> Vec<&'a str> {
    let reports: Vec<&Report> = done.iter().filter_map(|(_, result)| result.as_ref().ok()).collect();
    if reports.len() < done.len() || reports.iter().any(|report| report.settled || report.kept.is_some()) {
        return Vec::new();
    }
    let has = |name: &str| reports.iter().any(|report| report.sizes.iter().any(|record| record.name == name));
    a.decide.dims.iter().map(|(name, _)| name.as_str()).filter(|name| !has(name)).collect()
}

fn one<'a>(a: &args::Optimize, target: &dyn Target, job: &'a Job, count: &Count) -> Done<'a> {
    count.begin(&job.model.display().to_string());
    let done = Work { a, target, job, options: wanted(a), tuning: None, among: true }.run(None, || (), false);
    count.done();
    (job, done)
}

/// What makes sense for one model only.
fn check_call(a: &args::Optimize) -> Result<(), Failure> {
    let output = &a.output;
    let single = [
        ("--report", output.report.is_some(), "--format json has a report for each of several"),
        ("--html", output.html.is_some(), "optimize one after the other"),
        ("--certificate", output.certificate.is_some(), "optimize one after the other"),
        ("--proof", output.proof.is_some(), "optimize one after the other"),
        ("--tune", a.tuning.tune, "optimize one after the other; what is measured is kept for the next"),
        ("--inputs", a.checks.feeds.is_some(), "optimize one after the other"),
        ("--print-after", a.checks.print_after.is_some(), "optimize one after the other"),
    ];
    match single.iter().find(|(_, given, _)| *given) {
        Some((option, _, way)) => Err(Failure::usage(format!("{option} is for one model; {way}"))),
        None => Ok(()),
    }
}

/// Says what became of each: errors on stderr, the table on stdout.
fn tell(a: &args::Optimize, done: &[Done]) -> Result<(), Failure> {
    let failures: Vec<&Failure> = done.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
    for failure in &failures {
        failure.tell();
    }
    if json() {
        let entries: Vec<_> = done.iter().map(|(job, result)| entry(a, job, result.as_ref())).collect();
        say_json(&json!({ "models": entries }))?;
    } else if !quiet() {
        say(&(table(&rows(a, done)) + &tally(a, done)))?;
    }
    let statuses = failures.iter().map(|failure| failure.status());
    // A model that failed outweighs one whose result differs.
    match statuses.min() {
        Some(status) => Err(Failure::Told(status)),
        None => Ok(()),
    }
}

fn rows(a: &args::Optimize, done: &[Done]) -> Vec<[String; 4]> {
    let head = [["model", "moves", "bytes moved", if a.output.dry_run { "would be written to" } else { "written to" }]];
    let mut rows: Vec<[String; 4]> = head.map(|row| row.map(str::to_owned)).into();
    for (job, result) in done {
        let model = job.model.display().to_string();
        rows.push(match result {
            Ok(report) => {
                let (before, after) = (&report.before, &report.after);
                let bytes = format!("{} -> {}", bytes(before.bytes), bytes(after.bytes));
                [model, format!("{} -> {}", before.nodes, after.nodes), bytes, job.out.display().to_string()]
            }
            Err(failure) => {
                let unproved = failure.message().is_some_and(|why| why.starts_with("UNPROVED"));
                let fate = if unproved { "unproved, not written" } else { "failed" };
                [model, "-".to_owned(), "-".to_owned(), fate.to_owned()]
            }
        });
    }
    rows
}

/// Columns side by side, the last as wide as it is.
fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(widths) {
            text += cell;
            text += &" ".repeat(width - cell.width() + 2);
        }
        text += &row[3];
        text.push('\n');
    }
    text
}

fn tally(a: &args::Optimize, done: &[Done]) -> String {
    let count =
        |wanted: fn(&Report) -> bool| done.iter().filter(|(_, result)| result.as_ref().is_ok_and(wanted)).count();
    let (optimized, unchanged) = (count(|report| report.changed), count(|report| !report.changed));
    let failed = done.len() - optimized - unchanged;
    let unproved = count(|report| report.proof.as_ref().is_some_and(|proof| !proof.proved));
    let unproved = if unproved > 0 { format!("; {unproved} UNPROVED") } else { String::new() };
    let dry = if a.output.dry_run { "; nothing was written" } else { "" };
    format!(
        "{} model{}: {optimized} optimized, {unchanged} unchanged, {failed} failed{unproved}{dry}",
        done.len(),
        if done.len() == 1 { "" } else { "s" }
    )
}
