//! Problems as text: what [`Problem`]'s `Display` writes and its `FromStr` reads. Writing what was read gives the same text, but
//! for comments and spaces; reading what was written gives the same problem.
//!
//! ```text
//! relayout-problem 1
//! # Two nodes; the second runs on either layout.
//! var v0 "conv": 0
//! var v1 "relu": 0 12
//! pair v0 v1: 0 inf
//! value "t" layouts 2
//!   from v0: 0
//!   to v1: 0 1
//!   moves: 0 100 | 100 0
//! ```
//!
//! A line is one thing, words are set apart by spaces, and what follows `#` is a comment.
//!
//! - `relayout-problem 1` comes first: the version of the form.
//! - `var vN "NAME": COST...` is a variable with a cost for each of its states. Variables are numbered from 0 in order; the name
//!   may be left out.
//! - `pair vA vB: ROW | ROW ...` prices joint states: a row for each state of the first, with a cost for each state of the second.
//! - `value "NAME" layouts L` is a shared value. Of the indented lines behind it `from vN: LAYOUT...` says what its producer leaves
//!   in each state, each `to vN: LAYOUT...` what a reader wants in each state (`-`: it does not read), and `moves: ROW | ROW ...`
//!   what it costs to get from the layout of the row to that of the column.
//!
//! A cost is a whole number or `inf`. In names `\"`, `\\` and `\u{HEX}` stand for a quote, a backslash and any character.

mod read;
mod words;

use crate::Cost;
use crate::problem::Problem;
use std::fmt::{self, Formatter, Write as _};
use std::str::FromStr;
use thiserror::Error;

/// The first line.
const HEADER: &str = "relayout-problem 1";

/// Why a text is no problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {why}")]
#[non_exhaustive]
pub struct ReadProblemError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub why: String,
}

impl ReadProblemError {
    pub(crate) fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }
}

impl FromStr for Problem {
    type Err = ReadProblemError;

    /// Reads the form that `Display` writes.
    ///
    /// # Errors
    /// [`ReadProblemError`] with the first line that does not fit.
    fn from_str(text: &str) -> Result<Problem, ReadProblemError> {
        read::read(text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for (at, (name, costs)) in self.names.iter().zip(&self.unary).enumerate() {
            write!(f, "var v{at} {}:", Quoted(name))?;
            row(f, costs)?;
            writeln!(f)?;
        }
        for pair in &self.pairs {
            write!(f, "pair {} {}:", pair.a, pair.b)?;
            rows(f, &pair.table, self.states(pair.b))?;
        }
        for value in &self.values {
            writeln!(f, "value {} layouts {}", Quoted(&value.name), value.layouts)?;
            write!(f, "  from {}:", value.producer)?;
            value.produces.iter().try_for_each(|layout| write!(f, " {layout}"))?;
            writeln!(f)?;
            for read in &value.uses {
                write!(f, "  to {}:", read.var)?;
                for want in &read.wants {
                    match want {
                        Some(layout) => write!(f, " {layout}")?,
                        None => f.write_str(" -")?,
                    }
                }
                writeln!(f)?;
            }
            f.write_str("  moves:")?;
            rows(f, &value.moves, value.layouts)?;
        }
        Ok(())
    }
}

/// A table with so many columns, and the end of its line.
fn rows(f: &mut Formatter<'_>, table: &[Cost], columns: usize) -> fmt::Result {
    for (at, costs) in table.chunks(columns.max(1)).enumerate() {
        if at > 0 {
            f.write_str(" |")?;
        }
        row(f, costs)?;
    }
    writeln!(f)
}

fn row(f: &mut Formatter<'_>, costs: &[Cost]) -> fmt::Result {
    costs.iter().try_for_each(|cost| if cost.is_finite() { write!(f, " {cost}") } else { f.write_str(" inf") })
}

/// A name between quotes, on one line whatever it holds.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
