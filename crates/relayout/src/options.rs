//! What a caller asks of the optimizer.

use crate::error::Error;
use crate::io::{IoLayout, Wishes};
use crate::machine::Fitting;
use crate::model::Model;
use crate::passes::passes;
use crate::unproved::Unproved;
use relayout_passes::pipeline::{PipelineOptions, Progress, Watch};
use relayout_target_api::hints::Size;
use relayout_target_api::{Numerics, Target};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Options of [`optimize`](crate::optimize).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// Sizes at which open dims of the inputs are priced: by symbol, or as `INPUT.AXIS`. A name that no input has is an error.
    pub dims: BTreeMap<String, Size>,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// By how many percent the cost of what changes together must fall at least for the change to be kept; 0 is any gain.
    pub least_gain: u64,
    /// Also print the main graph after this pass (of the first round).
    pub print_after: Option<String>,
    /// Layouts in which the caller feeds inputs.
    pub inputs: Vec<IoLayout>,
    /// Layouts in which the caller takes outputs.
    pub outputs: Vec<IoLayout>,
    /// Whether inputs and outputs that are not named may lie in any order of whole axes, whichever is cheapest.
    pub free_io: bool,
    /// For how many of the remaining moves the report says what it would take to avoid them, the dearest first. Each takes a few
    /// decisions about the whole model.
    pub price_moves: usize,
    /// Whether to note which value of the model each value of the result is, for [`Optimized::proof`](crate::Optimized::proof).
    pub proof: bool,
    /// Whether the result keeps the graph that the first round left: [`Optimized::decided`](crate::Optimized::decided).
    pub keep_decided: bool,
    /// Whether a rewrite that fails is an error. Else the part of the model that it is about stays as it was, and the report says so.
    pub strict: bool,
    /// What becomes of a result that is not proved to compute what the model computes. [`Unproved::Allow`], the default, does not look.
    pub unproved: Unproved,
    /// What was chosen for this machine, for the report to say so.
    pub for_this_machine: Option<Fitting>,
    /// The observer of the run: it is told of each pass before it runs, and may stop the run.
    pub watch: Watch,
}

impl Options {
    /// With a size, or a range of sizes, for a symbolic dim.
    #[must_use]
    pub fn dim(mut self, name: impl Into<String>, size: Size) -> Options {
        self.dims.insert(name.into(), size);
        self
    }

    /// Without sizes of dims that no input of this model leaves open, for options that several models share.
    #[must_use]
    pub fn dims_of(mut self, model: &Model) -> Options {
        self.dims.retain(|name, _| model.has_open_dim(name));
        self
    }

    /// With another rule for what rewrites may do to results.
    #[must_use]
    pub fn numerics(mut self, numerics: Numerics) -> Options {
        self.numerics = numerics;
        self
    }

    /// With changes only that gain at least so many percent of the cost of what changes together. Ask for that where costs are known less
    /// well than that.
    #[must_use]
    pub fn least_gain(mut self, percent: u64) -> Options {
        self.least_gain = percent;
        self
    }

    /// With an input that the caller feeds in this layout.
    #[must_use]
    pub fn input(mut self, layout: IoLayout) -> Options {
        self.inputs.push(layout);
        self
    }

    /// With an output that the caller takes in this layout.
    #[must_use]
    pub fn output(mut self, layout: IoLayout) -> Options {
        self.outputs.push(layout);
        self
    }

    /// With inputs and outputs in whatever order of whole axes is cheapest, except those that are named.
    #[must_use]
    pub fn free_io(mut self) -> Options {
        self.free_io = true;
        self
    }

    pub(crate) fn wishes(&self) -> Wishes<'_> {
        Wishes { inputs: &self.inputs, outputs: &self.outputs, free: self.free_io }
    }

    /// With prices for so many of the moves that are left.
    #[must_use]
    pub fn price_moves(mut self, most: usize) -> Options {
        self.price_moves = most;
        self
    }

    /// With notes for a proof.
    #[must_use]
    pub fn proof(mut self) -> Options {
        self.proof = true;
        self
    }

    /// With the graph that the first round leaves kept: [`Optimized::decided`](crate::Optimized::decided).
    #[must_use]
    pub fn keep_decided(mut self) -> Options {
        self.keep_decided = true;
        self
    }

    /// With an error where a rewrite fails, for those who look for faults of this program.
    #[must_use]
    pub fn strict(mut self) -> Options {
        self.strict = true;
        self
    }

    /// With a check of the result by a program that shares no code with the optimizer, and what becomes of a result that it does not
    /// prove. [`Optimized::report`](crate::Optimized::report) has its verdict.
    #[must_use]
    pub fn unproved(mut self, unproved: Unproved) -> Options {
        self.unproved = unproved;
        self
    }

    /// With a function that is called before each pass, on the thread that optimizes. [`ControlFlow::Break`] stops the run: it ends
    /// with [`PassError::Stopped`](relayout_target_api::PassError::Stopped), and nothing is written. After the first round the result
    /// is looked at again, most often once.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// static STOP: AtomicBool = AtomicBool::new(false);
    /// let options = relayout::Options::default().watch(|at| {
    ///     println!("round {}, pass {} of {}: {}", at.round, at.index, at.of, at.pass);
    ///     if STOP.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// });
    /// # assert!(format!("{options:?}").contains("a function"));
    /// ```
    #[must_use]
    pub fn watch(mut self, told: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static) -> Options {
        self.watch = Watch::new(told);
        self
    }

    pub(crate) fn pipeline(&self, target: &dyn Target) -> Result<PipelineOptions, Error> {
        let known = passes(target)?;
        if let Some(name) = self.print_after.as_ref().filter(|name| !known.contains(&name.as_str())) {
            return Err(Error::UnknownPass { name: name.clone(), known: known.join(", ") });
        }
        let mut options = PipelineOptions::default();
        options.dims.clone_from(&self.dims);
        options.numerics = self.numerics;
        options.least_gain = self.least_gain;
        options.print_after.clone_from(&self.print_after);
        options.price_moves = self.price_moves;
        options.watch = self.watch.clone();
        Ok(options)
    }
}
