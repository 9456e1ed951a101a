//! relayout inside tract: decides in which orders tensors lie, by prices of tract's own kernels, and carries the plan out by tract's
//! own means. Nothing is written as ONNX.
//!
//! [`Relayout`] is a [`ModelTransform`] for decluttered models. What comes out is to be optimized, and not decluttered again, which
//! might move axes back:
//!
//! ```no_run
//! use relayout_tract::Relayout;
//! use tract_core::internal::*;
//!
//! # fn model() -> TractResult<TypedModel> { Ok(TypedModel::default()) }
//! let mut model = model()?.into_decluttered()?;
//! model.transform(&Relayout::default())?;
//! model.optimize()?;
//! let plan = model.into_runnable()?;
//! # TractResult::Ok(())
//! ```

mod carry;
mod orders;
mod price;
mod read;
mod same;
mod target;
mod turn;

pub use price::{Prices, measured, numbers};
pub use same::{TOLERANCE, worst};

use carry::{Carried, Plan, Refused, carried};
use read::read;
use relayout::{Options, plan_graph};
use same::Trial;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use target::Tract;
use tract_core::internal::*;
use tract_core::ops::konst::Const;
use tract_core::transform::ModelTransform;

/// Decisions that are made at most before the model stays as it is.
const TRIES: usize = 8;

/// By which factor a model must be faster when both are run in turns.
const LEAST: f64 = 1.005;

/// The transform.
#[derive(Clone, Debug)]
pub struct Relayout {
    prices: Arc<Prices>,
    compares: bool,
    times: bool,
    least_gain: u64,
}

impl Default for Relayout {
    fn default() -> Relayout {
        Relayout { prices: Arc::default(), compares: true, times: false, least_gain: 0 }
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether the model is another one.
    pub changed: bool,
    /// Moves of bytes in the model before and after.
    pub moves: (usize, usize),
    /// Nodes that stay as they are because tract refuses the plan there, and why.
    pub given_back: BTreeMap<String, String>,
    /// Why the whole model stays as it is, if something went wrong.
    pub kept: Option<String>,
    /// The planner's report, in words.
    pub planned: String,
}

impl Relayout {
    /// With prices that others use too: each kernel is measured once.
    #[must_use]
    pub fn prices(mut self, prices: Arc<Prices>) -> Relayout {
        self.prices = prices;
        self
    }

    /// Without running both models to compare what they compute.
    #[must_use]
    pub fn unchecked(mut self) -> Relayout {
        self.compares = false;
        self
    }

    /// With a trial at the end: both models are run in turns, and the model stays as it is if the plan is not faster.
    #[must_use]
    pub fn timed(mut self) -> Relayout {
        self.times = true;
        self
    }

    /// Changes nothing that is not expected to gain so many percent.
    #[must_use]
    pub fn least_gain(mut self, percent: u64) -> Relayout {
        self.least_gain = percent;
        self
    }

    /// The decluttered model in other orders, and what was done. What tract refuses stays as it is.
    ///
    /// # Errors
    /// What tract says of a model that contradicts itself.
    pub fn decide(&self, model: &TypedModel) -> TractResult<(TypedModel, Report)> {
        let mut report = Report { moves: (moves_of(model), moves_of(model)), ..Report::default() };
        let mut left: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..TRIES {
            let read = read(model, &left)?;
            let target = Tract { model, nodes: &read.nodes, prices: &self.prices };
            let options = Options::default().least_gain(self.least_gain);
            let planned = plan_graph(&read.graph, &read.ids, &target, &options);
            let (plan, told): (Plan, _) = match planned {
                Ok(planned) => planned,
                Err(why) => return Ok(kept(model, report, why.to_string())),
            };
            report.planned = told.explain();
            if !plan.changed {
                return Ok((model.clone(), report));
            }
            let refused = match carried(model, &plan) {
                Ok(carried) => match self.tried(model, &carried, &mut report)? {
                    None if report.kept.is_some() => return Ok((model.clone(), report)),
                    None => {
                        report.changed = true;
                        report.moves.1 = moves_of(&carried.model);
                        return Ok((carried.model, report));
                    }
                    Some(refused) => refused,
                },
                Err(refused) => refused,
            };
            report.given_back.insert(model.node(refused.node).name.clone(), refused.why.clone());
            if !left.insert(refused.node) {
                return Ok(kept(model, report, refused.why));
            }
        }
        Ok(kept(model, report, format!("tract refuses plans {TRIES} times")))
    }

    /// Runs both models: gives the first node that computes something else than it did, and says so if nothing is gained.
    fn tried(&self, model: &TypedModel, carried: &Carried, report: &mut Report) -> TractResult<Option<Refused>> {
        if !self.compares && !self.times {
            return Ok(None);
        }
        let Some(trial) = Trial::compare(model, &carried.model)? else { return Ok(None) };
        if let Some(refused) = trial.differs(model, carried)? {
            return Ok(Some(refused));
        }
        if self.times {
            let [before, after] = trial.times()?;
            if after.mul_f64(LEAST) > before {
                report.kept = Some(format!("not faster when run: {before:?} before, {after:?} after"));
            }
        }
        Ok(None)
    }
}

fn kept(model: &TypedModel, report: Report, why: String) -> (TypedModel, Report) {
    (model.clone(), Report { changed: false, moves: (report.moves.0, report.moves.0), kept: Some(why), ..report })
}

/// How many nodes of a model move bytes at run time.
pub fn moves_of(model: &TypedModel) -> usize {
    let is_move = |node: &&TypedNode| matches!(node.op_as(), Some(AxisOp::Move(..)));
    model.nodes().iter().filter(is_move).filter(|node| !is_of_constant(model, node)).count()
}

/// Whether a node only moves axes of a constant.
fn is_of_constant(model: &TypedModel, node: &TypedNode) -> bool {
    let Some(outlet) = node.inputs.first() else { return false };
    let before = model.node(outlet.node);
    before.op_is::<Const>() || (before.op_is::<AxisOp>() && is_of_constant(model, before))
}

impl ModelTransform for Relayout {
    fn name(&self) -> StaticName {
        "relayout".into()
    }

    fn transform(&self, model: &mut TypedModel) -> TractResult<()> {
        *model = self.decide(model)?.0;
        Ok(())
    }
}
