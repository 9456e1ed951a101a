//! For which sessions of a runtime a file is made, where the device has several kinds of them.

use super::decided;
use super::gains::{graph_of_model, graph_of_result, on_device};
use super::result::Optimized;
use crate::error::Error;
use crate::model::Model;
use crate::options::Options;
use crate::report::{DeviceRecord, OtherSession};
use relayout_target_api::{Cost, DeviceMoves, Target};
use relayout_targets::SESSION_KEY;
use std::collections::BTreeSet;

/// Decides for each kind of session about all of a model but the nodes of these places, and takes the file whose moves cost less. Of two that
/// cost the same, the one that moves fewer elements.
pub(super) fn cheapest(
    model: &Model,
    target: &dyn Target,
    options: &Options,
    kept: &BTreeSet<u32>,
) -> Result<Optimized, Error> {
    let here = decided(model, target, options, kept)?;
    let Some(other) = target.in_other_sessions().filter(|_| !here.report.settled) else { return Ok(here) };
    let there = decided(model, other, options, kept)?;
    let (here, there) = (InSession::of(model, here, target, options)?, InSession::of(model, there, other, options)?);
    match (here, there) {
        (Ok(here), Ok(there)) if there.rank() < here.rank() => Ok(there.rather_than(&here)),
        (Ok(here), Ok(there)) => Ok(here.rather_than(&there)),
        (Ok(InSession { made, .. }) | Err(made), _) => Ok(made),
    }
}

/// The option of sessions that files of a target need.
pub(super) fn session_of(metadata: &[(String, String)]) -> Option<String> {
    metadata.iter().find(|(key, _)| key == SESSION_KEY).map(|(_, option)| option.clone())
}

/// A result with what its sessions run of it, and of the model.
struct InSession {
    made: Optimized,
    session: Option<String>,
    before: DeviceMoves,
    after: DeviceMoves,
    cost: Cost,
}

impl InSession {
    /// The result alone if nothing can be said of the device.
    fn of(
        model: &Model,
        made: Optimized,
        target: &dyn Target,
        options: &Options,
    ) -> Result<Result<InSession, Optimized>, Error> {
        let Some((before, as_it_is)) = on_device(&graph_of_model(model)?, target, &options.dims) else {
            return Ok(Err(made));
        };
        let result = made.result.as_ref().map(|result| graph_of_result(model, &result.proto, &result.payloads));
        let result = result.transpose()?.and_then(|graph| on_device(&graph, target, &options.dims));
        let (after, cost) = result.unwrap_or((before, as_it_is));
        Ok(Ok(InSession { made, session: session_of(&target.metadata()), before, after, cost }))
    }

    fn rank(&self) -> (Cost, u64, usize) {
        (self.cost, self.after.elements, self.after.transposes)
    }

    /// The result, whose report says what the other one would come to.
    fn rather_than(self, other: &InSession) -> Optimized {
        let InSession { mut made, session, before, after, cost } = self;
        let instead = OtherSession {
            session: other.session.clone().unwrap_or_default(),
            moves: other.after.into(),
            predicted_ns: other.cost.get(),
        };
        let (before, after, predicted_ns) = (before.into(), after.into(), Some(cost.get()));
        made.report.device = Some(DeviceRecord { before, after, session, predicted_ns, instead: Some(instead) });
        made
    }
}
