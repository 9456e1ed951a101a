//! Failures: what is said on stderr, and the exit status.

use crate::args::Args;
use crate::terminal::{self, error, escaped, tell};
use clap::Parser as _;
use clap::error::{ContextKind, ErrorKind};
use relayout::request::{RequestError, Spelling};
use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::io;
use unicode_width::UnicodeWidthStr as _;

/// Why the program ends with a status other than 0.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model, or a file: status 1.
    Model(String),
    /// How the program was called: status 2.
    Usage(String),
    /// A check did not hold: status 3. What was found is on stdout already.
    Check(String),
    /// Nobody knows whether a check holds: status 4. What was found is on stdout already.
    Undecided(String),
    /// Several models failed, each for a reason that was said: this status.
    Told(u8),
    /// Whoever reads stdout went away.
    Closed,
}

impl Failure {
    /// A failure of the model.
    pub(crate) fn model(error: impl Display) -> Failure {
        Failure::Model(error.to_string())
    }

    /// A failure of the call.
    pub(crate) fn usage(error: impl Display) -> Failure {
        Failure::Usage(error.to_string())
    }

    /// A failure to write stdout.
    pub(crate) fn stdout(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe { Failure::Closed } else { Failure::model(error) }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Model(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Check(_) => 3,
            Failure::Undecided(_) => 4,
            Failure::Told(status) => *status,
            Failure::Closed => 0,
        }
    }

    /// What is said, if there is anything to say.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Model(text) | Failure::Usage(text) | Failure::Check(text) | Failure::Undecided(text) => Some(text),
            Failure::Told(_) | Failure::Closed => None,
        }
    }

    /// Says it on stderr.
    pub(crate) fn tell(&self) {
        if let Some(text) = self.message() {
            // One line whatever the message holds: names in files may contain line breaks.
            let text = text.replace(['\n', '\r'], " ");
            if terminal::json() { tell(&object(self.status(), &text, None)) } else { error(&text) }
        }
    }

    /// Says it on stderr and gives the status.
    pub(crate) fn report(self) -> u8 {
        self.tell();
        self.status()
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        let text = error.spelled(Spelling::Words);
        // What a table of costs lacks is no fault of the call.
        if let RequestError::Costs(_) = error { Failure::Model(text) } else { Failure::Usage(text) }
    }
}

/// A failure as one line of JSON.
fn object(status: u8, message: &str, tip: Option<&str>) -> String {
    let kind = match status {
        2 => "usage",
        3 | 4 => "check",
        _ => "model",
    };
    let mut error = serde_json::json!({"kind": kind, "status": status, "message": message});
    if let Some(tip) = tip {
        error["tip"] = tip.into();
    }
    serde_json::json!({ "error": error }).to_string() + "\n"
}

/// Arguments that cannot be parsed, or a request for help: clap's own text, with its tips and usage, and its status.
pub(crate) fn arguments(failed: &clap::Error, words: &[OsString]) -> u8 {
    if failed.use_stderr() && wants_json(words) {
        let (message, tip) = sentences(failed);
        tell(&object(2, &message, tip.as_deref()));
        return 2;
    }
    if words.len() < 2 {
        tell(&start());
        return 2;
    }
    // The text quotes the arguments. They are parsed once more with escapes in place of what a terminal obeys.
    let safe = words.iter().map(|word| escaped(&word.to_string_lossy()).into_owned());
    let safe = if failed.use_stderr() { Args::try_parse_from(safe).err() } else { None };
    // A closed pipe is the only way this fails, and then there is nobody to tell.
    let _ = safe.as_ref().unwrap_or(failed).print();
    failed.exit_code() as u8
}

/// What to do next, said to who gives no command: with a model of the folder that they are in, if there is one.
fn start() -> String {
    let entries = std::fs::read_dir(".").into_iter().flatten().flatten();
    let models = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "onnx"));
    let names = models.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let model = names.min().unwrap_or_else(|| "model.onnx".to_owned());
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    let model = if model.chars().all(is_plain) { model } else { format!("'{}'", model.replace('\'', r"'\''")) };
    let lines = [
        ("doctor", "", "what is on this machine, and which options fit it"),
        ("doctor ", model.as_str(), "what each target would gain of it; writes nothing"),
        ("optimize ", &model, "writes a result beside it"),
        ("explain ", &model, "why moves stay"),
    ];
    let mut text = "relayout makes ONNX models move less data. What to do next:\n\n".to_owned();
    let width = "optimize ".len() + model.width();
    for (command, model, why) in lines {
        let gap = " ".repeat(width - command.width() - model.width());
        // Writing to a string does not fail.
        let _ = writeln!(text, "  relayout {command}{model}{gap}   # {why}");
    }
    text + "\nUsage: relayout [OPTIONS] <COMMAND>; `relayout --help` lists all commands.\n"
}

/// Whether errors are for a program. Arguments that cannot be parsed are looked at word by word.
fn wants_json(words: &[OsString]) -> bool {
    let asked = |word: &OsString| word == "--json" || word == "--format=json";
    words.iter().any(asked) || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// What is wrong, and what clap thinks was meant.
fn sentences(failed: &clap::Error) -> (String, Option<String>) {
    if matches!(failed.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand) {
        return ("no command is given".to_owned(), Some("`relayout --help` lists them".to_owned()));
    }
    let text = failed.to_string();
    let cause: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let cause = cause.join(" ");
    let suggests = [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    let tip = suggests.into_iter().find_map(|kind| failed.get(kind)).map(ToString::to_string);
    (cause.strip_prefix("error: ").unwrap_or(&cause).to_owned(), tip)
}
