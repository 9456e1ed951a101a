//! Problems in the format WCSP, which toulbar2 and other solvers of cost function networks read.
//!
//! A file names its number of variables, their states, an upper bound *top*, and functions of few variables as lists of costs. A cost
//! of `top` or more is not allowed, and neither is an assignment that costs so much.
//!
//! [`write()`] adds for each shared value its hub, as certificates do: a variable whose states are the sets of layouts that the
//! readers together can want, or, where these are many, a switch for each layout. They come behind the variables of the problem, so the
//! first states of an assignment are those of ours; names of variables are lost. [`read()`] takes functions of at most two variables.
//! So what was written and read again has other variables and the same optimum.
//!
//! Absent: functions of three and more variables, global constraints and shared functions of toulbar2, compressed files.

mod read;

use crate::Cost;
use crate::certificate::functions::{Function, Functions, INFINITE, UNITS};
use crate::problem::Problem;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;

pub use read::read;

/// A file in this format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wcsp {
    /// What it calls itself.
    pub name: String,
    /// What it asks.
    pub problem: Problem,
    /// Assignments that cost so much or more are none for it. [`Problem::cost`] knows only of costs that reach it by themselves.
    pub top: Cost,
}

/// Why a problem can't be written as WCSP.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WcspError {
    /// Solvers add costs as signed numbers of 64 bits and need room above the largest sum.
    #[error("the costs of the problem add up to more than 2^60, and WCSP has no room for that; count in a larger unit")]
    TooLarge,
}

/// The most that all costs together may come to.
const MOST: i128 = 1 << 60;

/// Writes a problem. `name` is what the file calls itself; spaces become `_`.
///
/// # Errors
/// [`WcspError`] if the costs are too large for the format.
pub fn write(problem: &Problem, name: &str) -> Result<String, WcspError> {
    let functions = Functions::of(problem);
    let most = |f: &Function| f.data.iter().copied().filter(|&cost| cost < INFINITE).max().unwrap_or(0);
    let sum: i128 = functions.list.iter().map(|f| most(f) / UNITS).sum();
    if sum > MOST {
        return Err(WcspError::TooLarge);
    }
    let top = sum + 1;
    let priced: Vec<&Function> = functions.list.iter().filter(|f| f.data.iter().any(|&cost| cost != 0)).collect();
    let mut name: String = name.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    if name.is_empty() {
        name.push_str("problem");
    }
    let widest = functions.domains.iter().max().copied().unwrap_or(0);
    let mut text = format!("{name} {} {widest} {} {top}\n", functions.domains.len(), priced.len());
    let domains: Vec<String> = functions.domains.iter().map(ToString::to_string).collect();
    text += &(domains.join(" ") + "\n");
    for function in priced {
        write_function(&mut text, function, &functions.domains, top);
    }
    Ok(text)
}

/// A function by its most frequent cost and those that differ from it.
fn write_function(text: &mut String, function: &Function, domains: &[usize], top: i128) {
    let cost = |&units: &i128| if units >= INFINITE { top } else { units / UNITS };
    let mut counts: BTreeMap<i128, usize> = BTreeMap::new();
    function.data.iter().for_each(|units| *counts.entry(cost(units)).or_default() += 1);
    let usual = counts.iter().max_by_key(|&(_, count)| count).map_or(0, |(&cost, _)| cost);
    let others: Vec<(usize, i128)> = function.data.iter().map(cost).enumerate().filter(|&(_, c)| c != usual).collect();
    // Writing to a string does not fail.
    let _ = write!(text, "{}", function.scope.len());
    function.scope.iter().for_each(|var| _ = write!(text, " {var}"));
    let _ = writeln!(text, " {usual} {}", others.len());
    for (at, cost) in others {
        for &var in &function.scope {
            let _ = write!(text, "{} ", at / function.stride(var, domains) % domains[var]);
        }
        let _ = writeln!(text, "{cost}");
    }
}
