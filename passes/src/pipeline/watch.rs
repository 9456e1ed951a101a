//! Who watches a run: a function of the caller that is told of each pass before it runs, and may stop the run.

use relayout_target_api::PassError;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The pass that runs next.
    pub pass: &'static str,
    /// Its number, from 0.
    pub index: usize,
    /// How many passes there are.
    pub of: usize,
    /// How often the result was looked at before: 0 in the first round.
    pub round: usize,
}

/// A function that is told where a run is. The default is none.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<Told>>);

type Told = dyn Fn(Progress) -> ControlFlow<()> + Send + Sync;

impl Watch {
    /// Calls `told` before each pass. [`ControlFlow::Break`] stops the run, which then ends with [`PassError::Stopped`].
    pub fn new(told: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static) -> Watch {
        Watch(Some(Arc::new(told)))
    }

    pub(super) fn tell(&self, progress: Progress) -> Result<(), PassError> {
        match self.0.as_ref().map(|told| told(progress)) {
            Some(ControlFlow::Break(())) => Err(PassError::Stopped { pass: progress.pass }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watch(a function)" } else { "Watch(nobody)" })
    }
}
