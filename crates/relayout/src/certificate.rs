//! Certificates prove how good a decision is. They are made with a model, and checked with the model, without trusting the
//! solver.

use crate::error::Error;
use crate::model::Model;
use crate::options::Options;
use crate::sizes::Sized;
use crate::source::Source;
use relayout_passes::decide::{Decision, Grounds, Scopes};
use relayout_passes::pipeline::{Before, Outcome, prepare};
use relayout_solve::{Limits, Problem};
use relayout_target_api::{PassError, Target};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use relayout_solve::certificate::{Certificate, CertificateError, Checked};

/// A certificate and what it is about, as it is stored in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CertificateFile {
    /// Target.
    pub target: String,
    /// Where its costs come from.
    pub cost_source: String,
    /// Sizes that symbolic dims were priced at.
    pub hints: BTreeMap<String, i64>,
    /// The claim and what is needed to check it.
    pub certificate: Certificate,
}

/// Decides a model as [`optimize`](crate::optimize) does in its first round, and proves how good the decision is.
///
/// # Errors
/// As of [`optimize`](crate::optimize).
pub fn certify(model: &Model, target: &dyn Target, options: &Options) -> Result<CertificateFile, Error> {
    with_decision(model, target, options, |decision, outcome, _| CertificateFile {
        target: target.name().to_owned(),
        cost_source: target.cost_source().to_owned(),
        hints: outcome.hints.clone(),
        certificate: decision.certify().1,
    })
}

/// Poses the problem of a model again and checks a certificate against it, without solving anything.
///
/// # Errors
/// [`Error::Certificate`] if it does not hold; else as of [`optimize`](crate::optimize).
pub fn check_certificate(
    model: &Model,
    target: &dyn Target,
    options: &Options,
    certificate: &Certificate,
) -> Result<Checked, Error> {
    Ok(certificate.check(&problem(model, target, options)?)?)
}

/// The problem of a model as [`optimize`](crate::optimize) poses it in its first round: every variable and every state, nothing
/// merged, pinned or solved. It is for other solvers, and for checks of our own.
///
/// # Errors
/// As of [`optimize`](crate::optimize).
pub fn problem(model: &Model, target: &dyn Target, options: &Options) -> Result<Problem, Error> {
    let options = &Sized::new(model, options)?.options;
    let mut source = Source::checked(model)?;
    let (_, hints) = prepare(&mut source.ir, target, &options.pipeline(target)?, Before::Everything)?;
    let scopes = Scopes::of(&source.ir.graph).with_pieces(target, options.numerics)?;
    let posed = relayout_passes::decide::problem(&scopes, target, &hints, options.numerics);
    Ok(posed.map_err(PassError::from)?)
}

/// Runs what comes before the decision, decides, and hands on what there is to say, with the notes that came up.
pub(crate) fn with_decision<T>(
    model: &Model,
    target: &dyn Target,
    options: &Options,
    say: impl FnOnce(&Decision<'_, '_>, &Outcome, Vec<String>) -> T,
) -> Result<T, Error> {
    let options = &Sized::new(model, options)?.options;
    let source = Source::checked(model)?;
    decide(source, target, options, Before::Everything, |decision, outcome, notes| say(decision, outcome, notes))
}

/// Decides from a source that may have been changed before, with a decision that may yet be told what the input decided.
pub(crate) fn decide<T>(
    mut source: Source,
    target: &dyn Target,
    options: &Options,
    before: Before,
    say: impl FnOnce(&mut Decision<'_, '_>, &Outcome, Vec<String>) -> T,
) -> Result<T, Error> {
    let (outcome, hints) = prepare(&mut source.ir, target, &options.pipeline(target)?, before)?;
    let scopes = Scopes::of(&source.ir.graph);
    let scopes = match before {
        Before::Everything => scopes.with_pieces(target, options.numerics)?,
        Before::Nothing => scopes,
    };
    let limits = Limits::default();
    let grounds = Grounds { target, hints: &hints, numerics: options.numerics, least_gain: options.least_gain };
    let mut decision = Decision::of(&scopes, grounds, &limits).map_err(PassError::from)?;
    let mut notes = source.notes;
    notes.extend(outcome.notes.iter().cloned());
    Ok(say(&mut decision, &outcome, notes))
}
