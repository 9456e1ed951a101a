//! What became of a start, for whoever reads logs.

use relayout::machine::Fitting;
use relayout::units::elapsed;
use std::fmt;
use std::time::Duration;

/// What a session was given to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartKind {
    /// An optimized model that was kept by an earlier start.
    Kept,
    /// An optimized model that this start made.
    Made,
    /// The model as it is; a thread makes an optimized one for the next start.
    Later,
    /// The model as it is.
    Plain,
}

/// What became of a start, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartOutcome {
    /// What the session was given.
    pub kind: StartKind,
    /// A sentence for each thing that went another way than the straight one: why the model is loaded as it is, why nothing was kept.
    pub why: Vec<String>,
    /// What the optimizer says of its result.
    pub summary: Option<String>,
    /// What the model was optimized for.
    pub fitting: Fitting,
    /// How long it took to know what to load.
    pub took: Duration,
}

impl StartOutcome {
    /// For a host that loads the model as it is without asking.
    pub fn as_it_is(fitting: Fitting, why: impl Into<String>) -> StartOutcome {
        let why = vec![why.into()];
        StartOutcome { kind: StartKind::Plain, why, summary: None, fitting, took: Duration::ZERO }
    }

    /// Whether the session runs an optimized model.
    pub fn is_optimized(&self) -> bool {
        matches!(self.kind, StartKind::Kept | StartKind::Made)
    }
}

impl fmt::Display for StartOutcome {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            StartKind::Kept => "optimized before",
            StartKind::Made => "optimized now",
            StartKind::Later => "as it is, optimized for the next start",
            StartKind::Plain => "as it is",
        })?;
        write!(f, " (target {}, {})", self.fitting.target, elapsed(self.took))?;
        for part in self.summary.iter().chain(&self.why) {
            write!(f, "; {part}")?;
        }
        Ok(())
    }
}
