//! What goes to the terminal: the only place where text is printed.
//!
//! Names come from files of strangers, and a terminal obeys what stands in them: colours, titles, moves of the cursor, a direction of
//! writing that makes text read otherwise than it is. So control characters are printed as what they are, `\u001b`, which in JSON is the
//! same string. Line breaks and tabs of the program's own text stay.

use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::sync::OnceLock;

/// What the options of all commands say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    /// Results and errors are for programs.
    pub(crate) json: bool,
    /// Only errors, and what was asked for.
    pub(crate) quiet: bool,
    /// What is read, decided and written, too.
    pub(crate) verbose: bool,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Sets them, once.
pub(crate) fn set(settings: Settings) {
    SETTINGS.get_or_init(|| settings);
}

fn settings() -> Settings {
    SETTINGS.get().copied().unwrap_or_default()
}

/// Whether results and errors are for programs.
pub(crate) fn json() -> bool {
    settings().json
}

/// Whether only errors are said, and what was asked for.
pub(crate) fn quiet() -> bool {
    settings().quiet
}

/// Whether more is said than what was asked for.
pub(crate) fn verbose() -> bool {
    settings().verbose
}

/// Says a result: lines on stdout.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    writeln!(stdout().lock(), "{}", escaped(text)).map_err(Failure::stdout)
}

/// Says a result for programs.
pub(crate) fn say_json(value: &impl Serialize) -> Result<(), Failure> {
    say(&serde_json::to_string_pretty(value).map_err(Failure::model)?)
}

/// Tells something besides: text on stderr.
pub(crate) fn tell(text: &str) {
    // There is nowhere to say that this failed.
    let _ = write!(anstream::stderr().lock(), "{}", escaped(text));
}

/// Tells an error: one line on stderr, its first word in red where that is a terminal and `NO_COLOR` is not set.
pub(crate) fn error(text: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let _ = writeln!(anstream::stderr().lock(), "{red}error:{red:#} {}", escaped(text));
}

/// Tells what is going on, if that was asked for.
pub(crate) fn remark(text: impl FnOnce() -> String) {
    if verbose() {
        tell(&(text() + "\n"));
    }
}

/// The text with escapes in place of what a terminal obeys.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_obeyed(c) {
            // Writing to a string does not fail. None of these is beyond four digits.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Control characters, and those that set the direction of text.
fn is_obeyed(c: char) -> bool {
    let direction =
        matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n' && c != '\t') || direction
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_a_terminal_obeys_is_printed_as_what_it_is() {
        for (text, safe) in [
            ("a line\nand\ta name: größe 大小", "a line\nand\ta name: größe 大小"),
            ("\u{1b}[2Jgone\u{7}", "\\u001b[2Jgone\\u0007"),
            ("\u{9b}31m\u{7f}\r", "\\u009b31m\\u007f\\u000d"),
            ("x\u{202e}y\u{2066}", "x\\u202ey\\u2066"),
        ] {
            assert_eq!(escaped(text), safe);
        }
    }

    #[test]
    fn json_means_the_same() {
        let name = "\u{1b}[31m\u{9b}\u{7f}\u{202e}\n\"\\";
        let json = serde_json::to_string(name).unwrap();
        let printed = escaped(&json);
        assert!(!printed.chars().any(char::is_control));
        assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), name);
    }
}
