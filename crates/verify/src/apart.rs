//! Checking in a process of its own, so that a model which ends the runtime gives a message and no crash.
//!
//! That process reads one line from stdin, which says what to check, and says on stderr what it does and on stdout what it found. Stdin
//! stays open as long as somebody waits for it, so that it ends with whoever started it.

use crate::{CheckOptions, CheckResult, Inputs, ModelSource, Near, PluginProvider, Runtime, VerifyError, check};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{BufRead as _, Read as _, Write as _, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::spawn;

/// The last word of a command that starts a process which is to call [`answer_apart`].
pub const APART: &str = "--check-in-this-process";

/// What a line on stderr that says what is done begins with.
const DOING: &str = "relayout is ";

/// As [`check()`] with two files, in a process that these words and [`APART`] start.
///
/// # Errors
/// Those of [`check()`]; [`VerifyError::Apart`] if the process can't be started, or ends without an answer.
pub fn check_apart(
    words: &[OsString],
    library: &Path,
    [a, b]: [&Path; 2],
    inputs: &Inputs,
    options: &CheckOptions,
) -> Result<CheckResult, VerifyError> {
    let request = Request::new(library, [a, b], inputs, options);
    let failed = |error: &dyn Display| VerifyError::Apart {
        reason: format!("cannot start a process that runs the models: {error}"),
    };
    let mut child = started(words).map_err(|e| failed(&e))?;
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed(&"it has no streams"));
    };
    let line = serde_json::to_string(&request).map_err(|e| failed(&e))?;
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
    let said = said.join().unwrap_or_default();
    match serde_json::from_str(&answer) {
        Ok(answer) if read.is_ok() => answer,
        _ => Err(VerifyError::Apart { reason: ended(status, &said) }),
    }
}

/// This process as the one that is asked. Gives the exit status.
pub fn answer_apart() -> u8 {
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
        Err(error) => Err(VerifyError::Apart { reason: format!("what to check can't be read: {error}") }),
    };
    // A path in an error may be no text.
    let text = serde_json::to_string(&answer).or_else(|failed| {
        let reason = answer.as_ref().map_or_else(VerifyError::to_string, |_| failed.to_string());
        serde_json::to_string(&Err::<CheckResult, _>(VerifyError::Apart { reason }))
    });
    let written = text.map_err(|_| ()).and_then(|text| writeln!(stdout(), "{text}").map_err(|_| ()));
    u8::from(written.is_err())
}

/// What the other process is asked. Paths need not be text.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    library: OsString,
    a: OsString,
    b: OsString,
    inputs: Asked,
    near: Near,
    rounds: u32,
    confirmed: bool,
    threads: usize,
    custom_ops: Vec<OsString>,
    provider: Option<(OsString, Vec<(String, String)>)>,
}

/// [`Inputs`] as they are sent.
#[derive(Debug, Serialize, Deserialize)]
enum Asked {
    Npz(OsString),
    Random { seed: u64, dims: BTreeMap<String, i64> },
}

impl Request {
    fn new(library: &Path, [a, b]: [&Path; 2], inputs: &Inputs, options: &CheckOptions) -> Request {
        let provider = options.provider.as_ref();
        Request {
            library: library.into(),
            a: a.into(),
            b: b.into(),
            inputs: match inputs {
                Inputs::Npz(path) => Asked::Npz(path.into()),
                Inputs::Random { seed, dims } => Asked::Random { seed: *seed, dims: dims.clone() },
            },
            near: options.near,
            rounds: options.rounds,
            confirmed: options.confirmed,
            threads: options.threads,
            custom_ops: options.custom_ops.iter().map(Into::into).collect(),
            provider: provider.map(|provider| ((&provider.library).into(), provider.options.clone())),
        }
    }

    /// Does what is asked, in this process.
    fn answer(self, doing: &mut dyn FnMut(&str)) -> Result<CheckResult, VerifyError> {
        doing("loading ONNX Runtime");
        let runtime = Runtime::load(Path::new(&self.library))?;
        let inputs = match self.inputs {
            Asked::Npz(path) => Inputs::Npz(path.into()),
            Asked::Random { seed, dims } => Inputs::Random { seed, dims },
        };
        let options = CheckOptions {
            near: self.near,
            rounds: self.rounds,
            confirmed: self.confirmed,
            threads: self.threads,
            custom_ops: self.custom_ops.into_iter().map(PathBuf::from).collect(),
            provider: self.provider.map(|(library, options)| PluginProvider { library: library.into(), options }),
        };
        let (a, b) = (PathBuf::from(self.a), PathBuf::from(self.b));
        check(&runtime, ModelSource::Path(&a), ModelSource::Path(&b), &inputs, &options, doing)
    }
}

fn started(words: &[OsString]) -> std::io::Result<Child> {
    let (program, arguments) = words.split_first().ok_or(std::io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(APART).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
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
