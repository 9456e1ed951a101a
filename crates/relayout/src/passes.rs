//! Which passes, rules and equations a target has, and who is told of passes while they run.

use crate::error::Error;
use relayout_passes::pipeline::steps;
use relayout_target_api::{Equation, Rule, Target};

pub use relayout_passes::pipeline::{Progress, Watch};

/// The names of the passes that run for a target, in their order.
///
/// # Errors
/// [`Error::Pass`] if the target's passes can't be put in order.
pub fn passes(target: &dyn Target) -> Result<Vec<&'static str>, Error> {
    Ok(steps(target)?.iter().map(|step| step.is.name).collect())
}

/// The rules that change which ops there are, for a target.
pub fn rules(target: &dyn Target) -> Vec<&'static Rule> {
    relayout_passes::pipeline::rules(target)
}

/// The equations by which pieces of several nodes are recognized for a target.
///
/// # Errors
/// [`Error::Pass`] if one of the target's own is no equation.
pub fn equations(target: &dyn Target) -> Result<Vec<Equation>, Error> {
    Ok(relayout_passes::forms::equations(target)?)
}
