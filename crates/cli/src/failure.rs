//! Failures: one line on stderr and an exit status.

use crate::terminal::tell;
use clap::error::ErrorKind;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// Why the program ends with a status other than 0.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model, or a file: status 1.
    Model(String),
    /// How the program was called: status 2.
    Usage(String),
    /// A check did not hold: status 3. What was found is on stdout already.
    Check(String),
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

    /// Arguments that can't be, in one line.
    pub(crate) fn arguments(error: &clap::Error) -> Failure {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Failure::usage("no command is given; `relayout --help` lists them");
        }
        let text = error.to_string();
        let cause: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        let cause = cause.join(" ");
        Failure::usage(format!("{}; see `relayout --help`", cause.strip_prefix("error: ").unwrap_or(&cause)))
    }

    /// A failure to write stdout.
    pub(crate) fn stdout(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe { Failure::Closed } else { Failure::model(error) }
    }

    /// Says it on stderr and gives the status.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Failure::Model(text) => (text, 1),
            Failure::Usage(text) => (text, 2),
            Failure::Check(text) => (text, 3),
            Failure::Closed => return ExitCode::SUCCESS,
        };
        // One line whatever the message holds: names in files may contain line breaks.
        tell(&format!("error: {}\n", text.replace(['\n', '\r'], " ")));
        ExitCode::from(code)
    }
}
