//! `relayout verify`, and `optimize --verify`: whether two models compute the same, in ONNX Runtime.
//!
//! The runtime runs in a process of its own, which is this program started once more: a model that ends it gives a message and no crash.
//! That process reads one line from stdin, which says what to check, and says on stderr what it does and on stdout what it found. Stdin
//! stays open as long as somebody waits for it, so that it ends with whoever started it.

use crate::args;
use crate::commands::{is_stdio, of_library, plugin, random_inputs, runtime_library, target};
use crate::failure::Failure;
use crate::page;
use crate::progress::Progress;
use crate::terminal::{json, remark, say, say_json};
use relayout::{Model, Optimized, unchanged};
use relayout_html::Measured;
use relayout_verify::{Answer, CheckOptions, CheckResult, Inputs, ModelSource, Near, PluginProvider, Runtime, check};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, Read as _, Write as _, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::spawn;

/// What the program is called with to be that process.
pub(crate) const CHILD: &str = "--check-in-this-process";

/// What a line on stderr that says what is done begins with.
const DOING: &str = "relayout is ";

/// How this program is started, where that is not the file of this process.
static STARTED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// See [`crate::started_by`].
pub(crate) fn set_started_by(words: Vec<OsString>) {
    // The first word holds.
    let _ = STARTED_BY.set(words);
}

/// `relayout verify`
pub(crate) fn verify(a: &args::Verify) -> Result<(), Failure> {
    for path in [&a.a, &a.b] {
        if path.is_dir() {
            return Err(Failure::model(format!("cannot read {}: it is a directory, not a file", path.display())));
        }
        if !path.is_file() {
            return Err(Failure::model(format!("cannot read {}: there is no such file", path.display())));
        }
    }
    let inputs = match &a.inputs {
        Some(path) => Asked::Npz(path.into()),
        None => Asked::Random {
            seed: a.seed,
            dims: a.dims.iter().map(|(name, size)| (name.clone(), size.typical())).collect(),
        },
    };
    let near = match (a.exact, a.rms) {
        (true, _) => Asking::Exact,
        (false, Some(rms)) => Asking::Within(rms),
        (false, None) => Asking::Noise,
    };
    let provider = plugin(&a.provider).map(|provider| (provider.library.into_os_string(), provider.options));
    let request = Request {
        a: (&a.a).into(),
        b: (&a.b).into(),
        inputs,
        near,
        rounds: a.rounds,
        custom_ops: a.custom_ops.iter().map(Into::into).collect(),
        provider,
    };
    let verdict = checked(&request, "running both models")?;
    if json() {
        say_json(&verdict)?;
    } else {
        say(&verdict.to_string())?;
    }
    let (a, b) = (a.a.display(), a.b.display());
    match verdict.answer {
        Answer::Equal | Answer::Near => Ok(()),
        Answer::NotCompared => {
            let why = "not everything could be compared";
            Err(Failure::Check(format!("nothing in {a} and {b} differs, but {why}; give other inputs with --inputs")))
        }
        _ => Err(Failure::Check(format!("{a} and {b} do not compute the same"))),
    }
}

/// Two files on random inputs.
pub(crate) fn on_random_inputs(a: &Path, b: &Path) -> Result<CheckResult, Failure> {
    let request = Request {
        a: a.into(),
        b: b.into(),
        inputs: Asked::Random { seed: 0, dims: BTreeMap::new() },
        near: Asking::Noise,
        rounds: CheckOptions::default().rounds,
        custom_ops: Vec::new(),
        provider: None,
    };
    checked(&request, "running both models")
}

/// That a result computes what its model does; if `timed`, also how long each of them runs, unless both are the same.
pub(crate) fn same_results(
    a: &args::Optimize,
    path: &Path,
    model: &Model,
    optimized: &Optimized,
    timed: bool,
) -> Result<Option<Measured>, Failure> {
    if !optimized.report().changed {
        remark(|| format!("{}: the result is the model, so there is nothing to verify", path.display()));
        return Ok(None);
    }
    let folder = tempfile::tempdir().map_err(|e| Failure::model(format!("no room for a temporary folder: {e}")))?;
    let result = folder.path().join("result.onnx");
    optimized.write(&result).map_err(of_library)?;
    let original = if is_stdio(path) || a.output.fix_sizes {
        let copy = folder.path().join("model.onnx");
        let target = target(&a.decide)?;
        unchanged(model, target.as_ref(), "").write(&copy).map_err(of_library)?;
        copy
    } else {
        path.to_owned()
    };
    let inputs = match &a.checks.feeds {
        Some(path) => Inputs::Npz(path.clone()),
        None => random_inputs(&a.decide, model),
    };
    let request = Request {
        a: (&original).into(),
        b: (&result).into(),
        inputs: Asked::of(&inputs),
        near: Asking::Noise,
        rounds: CheckOptions::default().rounds,
        custom_ops: Vec::new(),
        provider: None,
    };
    let verdict = checked(&request, "running both models")?;
    let path = path.display();
    match verdict.answer {
        Answer::Equal | Answer::Near if timed => {
            page::times(ModelSource::Path(&original), ModelSource::Path(&result), &inputs).map(Some)
        }
        Answer::Equal | Answer::Near => Ok(None),
        Answer::NotCompared => {
            let help = "look at it with `relayout verify --inputs FILE.npz`";
            Err(Failure::Check(format!(
                "the result can't be compared with {path}: {verdict}; nothing was written; {help}"
            )))
        }
        _ => Err(Failure::Check(format!("the result differs from {path}: {verdict}; nothing was written"))),
    }
}

/// What the other process is asked.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    a: OsString,
    b: OsString,
    inputs: Asked,
    near: Asking,
    rounds: u32,
    custom_ops: Vec<OsString>,
    provider: Option<(OsString, Vec<(String, String)>)>,
}

/// [`Inputs`] as they are sent.
#[derive(Debug, Serialize, Deserialize)]
enum Asked {
    Npz(OsString),
    Random { seed: u64, dims: BTreeMap<String, i64> },
}

impl Asked {
    fn of(inputs: &Inputs) -> Asked {
        match inputs {
            Inputs::Npz(path) => Asked::Npz(path.into()),
            Inputs::Random { seed, dims } => Asked::Random { seed: *seed, dims: dims.clone() },
            // The kinds of inputs are all here.
            _ => Asked::Random { seed: 0, dims: BTreeMap::new() },
        }
    }
}

/// [`Near`] as it is sent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Asking {
    Noise,
    Exact,
    Within(f64),
}

impl Request {
    /// Does what is asked, in this process.
    fn answer(self, doing: &mut dyn FnMut(&str)) -> Result<CheckResult, String> {
        let library = runtime_library().map_err(|failure| failure.message().unwrap_or_default().to_owned())?;
        doing("loading ONNX Runtime");
        let runtime = Runtime::load(&library).map_err(|error| error.to_string())?;
        let inputs = match self.inputs {
            Asked::Npz(path) => Inputs::Npz(path.into()),
            Asked::Random { seed, dims } => Inputs::Random { seed, dims },
        };
        let mut options = CheckOptions::default();
        options.near = match self.near {
            Asking::Noise => Near::Noise,
            Asking::Exact => Near::Exact,
            Asking::Within(most) => Near::Within(most),
        };
        options.rounds = self.rounds;
        options.custom_ops = self.custom_ops.into_iter().map(PathBuf::from).collect();
        options.provider = self.provider.map(|(library, options)| PluginProvider { library: library.into(), options });
        let (a, b) = (PathBuf::from(self.a), PathBuf::from(self.b));
        let (a, b) = (ModelSource::Path(&a), ModelSource::Path(&b));
        check(&runtime, a, b, &inputs, &options, doing).map_err(|error| error.to_string())
    }
}

/// This process as the one that is asked. Gives the exit status.
pub(crate) fn child() -> u8 {
    let mut line = String::new();
    if stdin().lock().read_line(&mut line).is_err() {
        return 2;
    }
    spawn(|| {
        // Nobody waits any more.
        let _ = stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(2);
    });
    let mut doing = |what: &str| {
        let _ = writeln!(stderr(), "{DOING}{}", what.replace(['\n', '\r'], " "));
    };
    let answer = match serde_json::from_str::<Request>(&line) {
        Ok(request) => request.answer(&mut doing),
        Err(error) => Err(format!("what to check can't be read: {error}")),
    };
    let written =
        serde_json::to_string(&answer).map_err(|_| ()).and_then(|text| writeln!(stdout(), "{text}").map_err(|_| ()));
    u8::from(written.is_err())
}

/// Asks another process.
fn checked(request: &Request, what: &str) -> Result<CheckResult, Failure> {
    // What keeps it from starting is said without one.
    let library = runtime_library()?;
    remark(|| format!("ONNX Runtime in {}", library.display()));
    let progress = Progress::start(what);
    let failed =
        |error: &dyn std::fmt::Display| Failure::model(format!("cannot start a process that runs the models: {error}"));
    let mut child = started().map_err(|e| failed(&e))?;
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed(&"it has no streams"));
    };
    let line = serde_json::to_string(request).map_err(Failure::model)?;
    let said = spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    // If it can't be told, it has ended, which is said below.
    let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
    let mut answer = String::new();
    let read = stdout.read_to_string(&mut answer);
    let status = child.wait().map_err(|e| failed(&e))?;
    drop(stdin);
    drop(progress);
    let said = said.join().unwrap_or_default();
    match serde_json::from_str::<Result<CheckResult, String>>(&answer) {
        Ok(answer) if read.is_ok() => answer.map_err(Failure::Model),
        _ => Err(Failure::Model(ended(status, &said))),
    }
}

/// The program, started once more.
fn started() -> std::io::Result<Child> {
    let words = match STARTED_BY.get() {
        Some(words) => words.clone(),
        None => vec![std::env::current_exe()?.into_os_string()],
    };
    let (program, arguments) = words.split_first().ok_or(std::io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(CHILD).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// What is said of a process that ended without an answer.
fn ended(status: ExitStatus, said: &str) -> String {
    let doing = said.lines().filter_map(|line| line.strip_prefix(DOING)).next_back().unwrap_or("starting");
    let rest: Vec<&str> = said.lines().filter(|line| !line.starts_with(DOING) && !line.trim().is_empty()).collect();
    let rest = rest.last().map_or(String::new(), |line| format!("; it said: {line}"));
    format!("ONNX Runtime ended the process that ran it, while {doing} ({status}){rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn the_end_of_the_process_names_what_was_done_last() {
        use std::os::unix::process::ExitStatusExt as _;
        let said = format!(
            "{DOING}loading ONNX Runtime\n{DOING}loading `b.onnx` with the runtime's rewrites on\n\nsome last words\n"
        );
        let text = ended(ExitStatus::from_raw(6), &said);
        assert!(text.contains("while loading `b.onnx` with the runtime's rewrites on (signal: 6"), "{text}");
        assert!(text.ends_with("it said: some last words"), "{text}");
        assert!(ended(ExitStatus::from_raw(9), "").contains("while starting (signal: 9"));
    }
}
