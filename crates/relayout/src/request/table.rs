//! The options by their names. An option is called the same everywhere: `fix_sizes` in Python and in the JSON of C is `--fix-sizes` on the
//! command line. What may be said several times there (`--dim N=4 --dim H=224`) is a list or a table in Python and C, in the plural.

use super::RequestError;

/// One option of a [`Request`](super::Request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestOption {
    /// Its name in Python and C: `fix_sizes`.
    pub key: &'static str,
    /// Its name on the command line, without dashes: `fix-sizes`. `None` where the command line has no such option.
    pub word: Option<&'static str>,
    /// What it is set to.
    pub takes: Takes,
}

/// What an option is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// One text: a name, a number, a path.
    One,
    /// Texts, one after the other.
    List,
    /// Texts such as `N=4`, one after the other: a name and what it is set to.
    Table,
}

/// How names of options are written in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As words of the command line: `--fix-sizes`.
    Words,
    /// As keys of Python and C: `fix_sizes`.
    Keys,
}

impl Spelling {
    /// The name of the option with this key.
    pub(super) fn of(self, key: &'static str) -> String {
        let word = OPTIONS.iter().find(|option| option.key == key).and_then(|option| option.word);
        match (self, word) {
            (Spelling::Words, Some(word)) => format!("--{word}"),
            _ => key.to_owned(),
        }
    }
}

const fn option(key: &'static str, word: Option<&'static str>, takes: Takes) -> RequestOption {
    RequestOption { key, word, takes }
}

/// All options of a [`Request`](super::Request).
pub const OPTIONS: &[RequestOption] = &[
    option("target", Some("target"), Takes::One),
    option("target_file", Some("target-file"), Takes::One),
    option("target_text", None, Takes::One),
    option("provider", Some("provider"), Takes::One),
    option("allow", Some("allow"), Takes::One),
    option("for_this_machine", Some("for-this-machine"), Takes::Flag),
    option("runtime", Some("runtime"), Takes::One),
    // The command line and Python look for these themselves.
    option("session_providers", None, Takes::List),
    option("block", Some("block"), Takes::One),
    option("guard", Some("no-guard"), Takes::Flag),
    option("machine", Some("machine"), Takes::One),
    option("costs", Some("costs"), Takes::One),
    option("threads", Some("threads"), Takes::One),
    option("dims", Some("dim"), Takes::Table),
    option("fix_sizes", Some("fix-sizes"), Takes::Flag),
    option("numerics", Some("numerics"), Takes::One),
    option("inputs", Some("input"), Takes::List),
    option("outputs", Some("output"), Takes::List),
    option("free_io", Some("free-io"), Takes::Flag),
    option("strict", Some("strict"), Takes::Flag),
    option("unproved", Some("unproved"), Takes::One),
    option("proof", Some("proof"), Takes::One),
    option("certificate", Some("certificate"), Takes::One),
    option("price_moves", None, Takes::One),
    option("tune", Some("tune"), Takes::Flag),
    option("tune_seconds", Some("tune-seconds"), Takes::One),
    option("tune_cache", Some("tune-cache"), Takes::One),
    option("provider_library", Some("provider-library"), Takes::One),
    option("provider_options", Some("provider-option"), Takes::Table),
    option("python", Some("python"), Takes::One),
];

impl RequestOption {
    /// The option of this key.
    ///
    /// # Errors
    /// [`RequestError::Unknown`].
    pub fn of(key: &str) -> Result<&'static RequestOption, RequestError> {
        OPTIONS.iter().find(|option| option.key == key).ok_or_else(|| RequestError::Unknown { option: key.to_owned() })
    }

    /// Whether it may be set several times.
    pub fn repeats(&self) -> bool {
        matches!(self.takes, Takes::List | Takes::Table)
    }
}
