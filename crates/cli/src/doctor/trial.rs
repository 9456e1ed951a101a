//! Dry runs: what each target would make of a model, within a time limit.

use super::here::Here;
use super::weigh::Weighed;
use crate::args;
use crate::commands::{of_library, open};
use crate::failure::Failure;
use relayout::device::audit_device;
use relayout::machine::Fitting;
use relayout::report::Traffic;
use relayout::targets::{BUILTIN, PROVIDERS, Provider};
use relayout::{Model, Options, Target, audit, optimize, target};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// What is asked about: a target, or a device of target `ort-nhwc`.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// What fits this machine.
    Here(Fitting),
    /// A built-in target.
    Target(&'static str),
    /// An execution provider.
    Device(&'static str),
}

/// What a target would make of the model.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Options that ask for it.
    pub(super) options: String,
    /// What it is for.
    pub(super) place: String,
    /// Whether it is what fits this machine.
    pub(super) here: bool,
    /// What is moved, as a file and as a result.
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub(super) enum Outcome {
    /// The model would change.
    Gains { moves: [usize; 2], size: [u64; 2], unit: Unit, predicted_ns: Option<[u64; 2]> },
    /// It would stay as it is.
    Unchanged { moves: usize, size: u64, unit: Unit, why: String },
    /// It is refused.
    Refused { why: String },
    /// The time was over before.
    NotLookedAt,
}

/// What the sizes of moves are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Bytes,
    Elements,
}

/// What was found of a model.
pub(super) struct Findings {
    pub(super) weighed: Option<Weighed>,
    pub(super) rows: Vec<Row>,
}

/// What the thread that looks says.
enum Told {
    Weighed(Weighed),
    Row(Row),
    Failed(Failure),
}

/// All questions, first those about this machine.
pub(super) fn questions(here: &Here) -> Vec<Question> {
    let own = here.fits.target.as_str();
    let here = (own != "onnx").then(|| Question::Here(here.fits.clone()));
    // Of `ort-nhwc` each device is asked about.
    let others = BUILTIN.iter().filter(|&&name| (name != own || name == "onnx") && name != "ort-nhwc");
    // A version of a provider is for those who have it.
    let devices = PROVIDERS.iter().filter(|name| !name.contains('@'));
    let (first, rest): (Vec<&str>, Vec<&str>) = others.partition(|&&name| ["onnx", "ort-cpu"].contains(&name));
    let targets = |names: Vec<&'static str>| names.into_iter().map(Question::Target);
    here.into_iter()
        .chain(targets(first))
        .chain(devices.map(|name| Question::Device(name)))
        .chain(targets(rest))
        .collect()
}

/// Asks them within the time. The thread that looks for answers stops at its next pass after that, and ends with the program.
pub(super) fn ask(path: &Path, questions: &[Question], a: &args::Doctor) -> Result<Findings, Failure> {
    let end = Instant::now() + Duration::from_secs(a.seconds);
    let (sender, receiver) = channel();
    let mut options = Options::default()
        .watch(move |_| if Instant::now() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) });
    options.dims.extend(a.dims.iter().cloned());
    let (path, asked): (PathBuf, Vec<Question>) = (path.to_owned(), questions.to_vec());
    spawn(move || look(&path, &asked, &options, end, &sender));
    let mut found = gather(&receiver, end)?;
    let done = found.rows.len();
    found.rows.extend(questions.iter().skip(done).map(|question| question.row(Outcome::NotLookedAt)));
    Ok(found)
}

fn gather(receiver: &Receiver<Told>, end: Instant) -> Result<Findings, Failure> {
    let mut found = Findings { weighed: None, rows: Vec::new() };
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Told::Weighed(weighed)) => found.weighed = Some(weighed),
            Ok(Told::Row(row)) => found.rows.push(row),
            Ok(Told::Failed(failure)) => return Err(failure),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(found),
        }
    }
}

/// Looks for answers. Nobody listens any more once the time is over.
fn look(path: &Path, questions: &[Question], options: &Options, end: Instant, told: &Sender<Told>) {
    let tell = |what: Told| told.send(what).is_ok();
    let model = match open(path) {
        Ok(model) => model,
        Err(failure) => {
            tell(Told::Failed(failure));
            return;
        }
    };
    if !tell(Told::Weighed(Weighed::of(&model))) {
        return;
    }
    for question in questions {
        let told = match question.answer(&model, options) {
            Ok(outcome) => Told::Row(question.row(outcome)),
            // What is wrong with the call is so for each.
            Err(failure @ Failure::Usage(_)) => Told::Failed(failure),
            Err(_) if Instant::now() >= end => return,
            Err(failure) => {
                let why = failure.message().unwrap_or_default().to_owned();
                Told::Row(question.row(Outcome::Refused { why }))
            }
        };
        if !tell(told) {
            return;
        }
    }
}

impl Question {
    fn row(&self, outcome: Outcome) -> Row {
        let (options, place, here) = match self {
            Question::Here(fits) => (fits.words().join(" "), "this machine".to_owned(), true),
            Question::Target("onnx") => ("--target onnx".to_owned(), "any runtime".to_owned(), false),
            Question::Target(name) => (format!("--target {name}"), place(name).to_owned(), false),
            Question::Device(name) => (format!("--provider {name}"), device(name), false),
        };
        Row { options, place, here, outcome }
    }

    fn answer(&self, model: &Model, options: &Options) -> Result<Outcome, Failure> {
        match self {
            Question::Here(fits) => match &fits.provider {
                Some(provider) => on_device(model, provider, options),
                None => for_target(model, fits.build().map_err(Failure::model)?.as_ref(), options),
            },
            Question::Target(name) => for_target(model, target(name).map_err(Failure::model)?.as_ref(), options),
            Question::Device(name) => on_device(model, name, options),
        }
    }
}

/// What runs files of a target.
fn place(target: &str) -> &'static str {
    match target {
        "ort-cpu" => "ONNX Runtime on x86-64",
        name if name.starts_with("cuda") => "compilers for GPUs of NVIDIA",
        _ => "compilers that read domain relayout",
    }
}

fn device(provider: &str) -> String {
    Provider::of(provider).map_or_else(|_| provider.to_owned(), |provider| provider.execution_provider)
}

fn for_target(model: &Model, target: &dyn Target, options: &Options) -> Result<Outcome, Failure> {
    let result = optimize(model, target, options).map_err(of_library)?;
    let report = result.report();
    let (before, after): (&Traffic, &Traffic) = (&report.before, &report.after);
    if !report.changed {
        let why = report.summary();
        let why = why.strip_prefix("unchanged: ").unwrap_or(&why).to_owned();
        return Ok(Outcome::Unchanged { moves: before.nodes, size: before.bytes, unit: Unit::Bytes, why });
    }
    // Where a target has kernels of its own it adds moves that pay, and only its times say what is gained.
    let measured = target.name() == "ort-cpu";
    let audited = if measured { Some(audit(model, target, options).map_err(of_library)?) } else { None };
    let predicted_ns = audited.and_then(|audit| Some([audit.predicted_ns?, audit.best_ns]));
    let (moves, size) = ([before.nodes, after.nodes], [before.bytes, after.bytes]);
    Ok(Outcome::Gains { moves, size, unit: Unit::Bytes, predicted_ns })
}

fn on_device(model: &Model, provider: &str, options: &Options) -> Result<Outcome, Failure> {
    let audit = audit_device(model, &Provider::of(provider).map_err(Failure::model)?, options).map_err(of_library)?;
    let (file, ours, unit) = (audit.file, audit.optimized, Unit::Elements);
    if (file.transposes, file.elements) == (ours.transposes, ours.elements) {
        let why = "as many Transposes would run".to_owned();
        return Ok(Outcome::Unchanged { moves: file.transposes, size: file.elements, unit, why });
    }
    let (moves, size) = ([file.transposes, ours.transposes], [file.elements, ours.elements]);
    Ok(Outcome::Gains { moves, size, unit, predicted_ns: None })
}
