//! Models that something else runs, such as a runtime in another process: what they are fed, and how far what they leave is from what
//! the model computes here.

use crate::compare::{OutputComparison, compare};
use crate::io::Ends;
use crate::model::{Level, Model, ModelSource};
use crate::{Inputs, Options, Runtime, Tensor, VerifyError};
use relayout::io::End;

/// What a model computes in the CPU's provider without rewrites, in the order of its original.
#[derive(Clone, Debug)]
pub struct Reference {
    feeds: Vec<Tensor>,
    outputs: Vec<Tensor>,
}

/// A model that something else runs on what a [`Reference`] was fed.
#[derive(Clone, Debug)]
pub struct RunElsewhere {
    /// What it is fed, as it takes it.
    pub feeds: Vec<Tensor>,
    ends: Ends,
}

impl Reference {
    /// Runs a model once.
    ///
    /// # Errors
    /// As of [`verify`](crate::verify).
    pub fn of(
        runtime: &Runtime,
        model: ModelSource<'_>,
        inputs: &Inputs,
        options: &Options,
    ) -> Result<Reference, VerifyError> {
        let mut loaded = Model::load(runtime, model, Level::Disabled, options)?;
        let feeds = inputs.feeds(model, &loaded, 1)?.into_iter().next().unwrap_or_default();
        let outputs = loaded.run(&feeds)?;
        let ends = Ends::of(&loaded)?;
        let (feeds, outputs) = (ends.to_original(End::Input, feeds)?, ends.to_original(End::Output, outputs)?);
        Ok(Reference { feeds, outputs })
    }

    /// What a model is fed that computes the same, the first one or a result of it.
    ///
    /// # Errors
    /// As of [`verify`](crate::verify).
    pub fn elsewhere(
        &self,
        runtime: &Runtime,
        model: ModelSource<'_>,
        options: &Options,
    ) -> Result<RunElsewhere, VerifyError> {
        let loaded = Model::load(runtime, model, Level::Disabled, options)?;
        let ends = Ends::of(&loaded)?;
        let mut feeds = ends.feeds(&loaded.inputs, &self.feeds)?;
        feeds.retain(|tensor| loaded.inputs.iter().any(|port| port.name == tensor.name()));
        Ok(RunElsewhere { feeds, ends })
    }
}

impl RunElsewhere {
    /// How far what it left is from the reference, for each output of that.
    ///
    /// # Errors
    /// [`VerifyError::Io`] if a tensor does not fit what the model says of it.
    pub fn held(&self, reference: &Reference, left: Vec<Tensor>) -> Result<Vec<OutputComparison>, VerifyError> {
        let left = self.ends.to_original(End::Output, left)?;
        let of = |output: &Tensor| match left.iter().find(|tensor| tensor.name() == output.name()) {
            Some(other) => compare(output, other),
            None => OutputComparison::mismatched(output, "it was not left".to_owned()),
        };
        Ok(reference.outputs.iter().map(of).collect())
    }
}
