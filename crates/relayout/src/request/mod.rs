//! One request: all that a caller asks of the optimizer, for the command line, for Python and for C alike.
//!
//! ```no_run
//! use relayout::Request;
//!
//! let mut request = Request::for_file("model.onnx");
//! request.set("target", "ort-cpu")?;
//! request.set("dims", "N=8")?;
//! request.set("unproved", "fail")?;
//! let optimized = request.run()?;
//! optimized.write("out.onnx")?;
//! # Ok::<(), relayout::Error>(())
//! ```
//!
//! [`OPTIONS`] has the names. Each option is read once, from its text to its value, and what is wrong is a [`RequestError`], which names the
//! option and what would mend it. Fields can be set too, by those who have values in place of texts.
//!
//! What the machine decides is chosen in one place: [`Request::fit`] fills in target, block, kind of machine, threads and provider by what is there
//! ([`machine`](crate::machine)). What was asked for stays, and the report says what was chosen and why.
//!
//! Absent: where models are written, and any measuring. `relayout-calibrate` tunes what [`Request::target`] and [`Request::options`] give.

mod error;
mod files;
mod read;
mod table;
mod target;

pub use error::RequestError;
pub use files::{SideFiles, certificate_text, proof_text};
pub use read::{dim, key_value};
pub use table::{OPTIONS, RequestOption, Spelling, Takes};
pub use target::measured;

use crate::error::Error;
use crate::io::IoLayout;
use crate::machine::{Asked, Equipment, Fitting, choose};
use crate::model::Model;
use crate::optimize::{Optimized, optimize};
use crate::options::Options;
use crate::proof::Unproved;
use bytes::Bytes;
use relayout_target_api::Numerics;
use relayout_target_api::hints::Size;
use relayout_targets::{Block, Release};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A model that is to be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ModelPlace {
    /// A file; external data is beside it.
    File(PathBuf),
    /// The bytes of a file without external data.
    Bytes(Bytes),
}

/// What a caller asks for. [`OPTIONS`] says how its options are called.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Request {
    /// The model, if it is read by [`Request::open`].
    pub model: Option<ModelPlace>,
    /// The name of a built-in target; `onnx` if nothing is said.
    pub target: Option<String>,
    /// A file that describes a target.
    pub target_file: Option<PathBuf>,
    /// The text of such a file.
    pub target_text: Option<String>,
    /// The execution provider, for target `ort-nhwc`, which it implies.
    pub provider: Option<String>,
    /// The domain beside the standard whose ops the result may have, though only the execution provider runs them: `com.microsoft`.
    pub allow: Option<String>,
    /// Whether [`Request::fit`] chooses what is not said.
    pub for_this_machine: bool,
    /// The version of the ONNX Runtime that is to run the result: `1.28`. Files for target `ort-cpu` have nothing then that only newer ones
    /// run.
    pub runtime: Option<String>,
    /// The execution providers of its sessions, as it calls them.
    pub session_providers: Vec<String>,
    /// Channels of a block, for target `ort-cpu`; those of this machine if nothing is said.
    pub block: Option<Block>,
    /// Whether files for target `ort-cpu` lack the guard that makes them fail on hosts of another block.
    pub no_guard: bool,
    /// The kind of machine that decisions are for, for target `ort-cpu`: the name of a built-in table of costs. Without it, without a block and
    /// without costs, the one that was measured on processors like those of this machine, else the one that is usual for its blocks.
    pub machine: Option<String>,
    /// A table of costs, for targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`.
    pub costs: Option<PathBuf>,
    /// Threads that the result will run on, for target `ort-cpu` and for tuning; 0 for as many as the machine has cores.
    pub threads: Option<u64>,
    /// Sizes of dims that the inputs leave open.
    pub dims: BTreeMap<String, Size>,
    /// Whether these sizes are written into the file.
    pub fix_sizes: bool,
    /// What may be done to results.
    pub numerics: Numerics,
    /// How inputs are fed.
    pub inputs: Vec<IoLayout>,
    /// How outputs are taken.
    pub outputs: Vec<IoLayout>,
    /// Whether the order of all others is left to the optimizer.
    pub free_io: bool,
    /// Whether a rewrite that fails is an error.
    pub strict: bool,
    /// What becomes of a result that is not proved; [`Unproved::USUAL`] if nothing is said.
    pub unproved: Option<Unproved>,
    /// A file for the proof of the result.
    pub proof: Option<PathBuf>,
    /// A file for the certificate of the decision.
    pub certificate: Option<PathBuf>,
    /// For how many of the moves that are left the report says what it would take for them to go.
    pub price_moves: usize,
    /// Whether times of this machine decide.
    pub tune: bool,
    /// For how long kernels are timed at most.
    pub tune_seconds: Duration,
    /// Where times are kept; among the user's caches if nothing is said.
    pub tune_cache: Option<PathBuf>,
    /// The plugin of the execution provider that models run on; the CPU's own if there is none.
    pub provider_library: Option<PathBuf>,
    /// What that provider is told.
    pub provider_options: Vec<(String, String)>,
    /// A Python whose ONNX Runtime has the execution provider, on whose device models are tuned.
    pub python: Option<PathBuf>,
    /// What [`Request::fit`] chose.
    pub chosen: Option<Fitting>,
    /// Options that were set.
    set: BTreeSet<&'static str>,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            model: None,
            target: None,
            target_file: None,
            target_text: None,
            provider: None,
            allow: None,
            for_this_machine: false,
            runtime: None,
            session_providers: Vec::new(),
            block: None,
            machine: None,
            no_guard: false,
            costs: None,
            threads: None,
            dims: BTreeMap::new(),
            fix_sizes: false,
            numerics: Numerics::Reassociate,
            inputs: Vec::new(),
            outputs: Vec::new(),
            free_io: false,
            strict: false,
            unproved: None,
            proof: None,
            certificate: None,
            price_moves: 0,
            tune: false,
            tune_seconds: Duration::from_secs(60),
            tune_cache: None,
            provider_library: None,
            provider_options: Vec::new(),
            python: None,
            chosen: None,
            set: BTreeSet::new(),
        }
    }
}

impl Request {
    /// A request about the model in a file.
    pub fn for_file(path: impl Into<PathBuf>) -> Request {
        Request { model: Some(ModelPlace::File(path.into())), ..Request::default() }
    }

    /// A request about the bytes of a model.
    pub fn for_bytes(bytes: impl Into<Bytes>) -> Request {
        Request { model: Some(ModelPlace::Bytes(bytes.into())), ..Request::default() }
    }

    /// Sets an option from its text. Flags are `true` or `false`; lists and tables are set once for each entry, as `N=4` for a table.
    ///
    /// # Errors
    /// [`RequestError`]: there is no such option, it can't have this value, or it has one value and was set before.
    pub fn set(&mut self, option: &str, value: impl AsRef<OsStr>) -> Result<(), RequestError> {
        let option = RequestOption::of(option)?;
        if !self.set.insert(option.key) && !option.repeats() {
            return Err(RequestError::Twice { option: option.key });
        }
        read::set(self, option.key, value.as_ref())
    }

    /// What is there, as far as the caller said: the processor of this machine, [`runtime`](Request::runtime) and
    /// [`session_providers`](Request::session_providers).
    pub fn equipment(&self) -> Equipment {
        let mut equipment = Equipment::of_this_machine();
        equipment.runtime.clone_from(&self.runtime);
        equipment.with_session_providers(&self.session_providers)
    }

    /// Chooses by what is there, if [`for_this_machine`](Request::for_this_machine) asks for that: target, block, kind of machine, threads and provider. What
    /// was asked for stays. A second call changes nothing.
    pub fn fit(&mut self, on: &Equipment) {
        let described = self.target_file.is_some() || self.target_text.is_some();
        if !self.for_this_machine || described || self.chosen.is_some() {
            return;
        }
        let asked = Asked {
            target: self.target.as_deref(),
            provider: self.provider.as_deref(),
            block: self.block.or_else(|| self.machine_block()),
            machine: self.machine.as_deref(),
            costs: self.costs.is_some(),
            threads: self.threads,
            runtime: self.runtime.as_deref(),
        };
        let fits = choose(on, &asked);
        self.target = Some(fits.target.clone());
        self.provider.clone_from(&fits.provider);
        self.block = self.block.or(fits.block.and_then(Block::of));
        self.machine = self.machine.take().or_else(|| fits.machine.clone());
        self.threads = self.threads.or(fits.threads);
        if fits.target == "ort-cpu" {
            // A version that tells no release is none to write files for.
            self.runtime.clone_from(&fits.runtime);
        }
        self.chosen = Some(fits);
    }

    /// Target `ort-cpu` has files for this version of ONNX Runtime, if none is asked for: times are measured in it. A version that tells no
    /// release leaves them as they are.
    pub fn measured_in(&mut self, version: &str) {
        if self.runtime.is_none() && Release::parse(version).is_ok() {
            self.runtime = Some(version.to_owned());
        }
    }

    /// What is asked of the optimizer by those who look at a model and use no result.
    pub fn options(&self) -> Options {
        let mut options = Options::default().numerics(self.numerics).price_moves(self.price_moves);
        options.dims.clone_from(&self.dims);
        options.inputs.clone_from(&self.inputs);
        options.outputs.clone_from(&self.outputs);
        options.free_io = self.free_io;
        options.strict = self.strict;
        options.proof = self.proof.is_some();
        options.for_this_machine.clone_from(&self.chosen);
        options
    }

    /// What is asked of the optimizer for a result that is going to be used: also what becomes of it if it is not proved.
    pub fn checked_options(&self) -> Options {
        self.options().unproved(self.unproved.unwrap_or(Unproved::USUAL))
    }

    /// The model with its sizes written in, if that is asked for, and the options without these sizes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn fixed(&self, model: Model, options: Options) -> Result<(Model, Options), Error> {
        if !self.fix_sizes {
            return Ok((model, options));
        }
        let sizes = options.dims.iter().map(|(name, size)| (name.clone(), size.typical())).collect();
        let model = model.with_sizes(&sizes)?;
        let options = options.dims_of(&model);
        Ok((model, options))
    }

    /// Reads the model.
    ///
    /// # Errors
    /// [`Error`]; of a request without a model, that it has none.
    pub fn open(&self) -> Result<Model, Error> {
        match &self.model {
            Some(ModelPlace::File(path)) => Model::open(path),
            Some(ModelPlace::Bytes(bytes)) => Model::from_bytes(bytes.clone(), None),
            None => Err(RequestError::NoModel.into()),
        }
    }

    /// Chooses by [what is there](Request::equipment), optimizes a model, and writes the [files](Request::side_files) that are asked for next to their places: [`SideFiles::commit`] puts
    /// them there once the result is where it belongs.
    ///
    /// # Errors
    /// [`Error`]. A request to tune is one: see `relayout-calibrate`.
    pub fn optimize(&self, model: Model) -> Result<(Optimized, SideFiles), Error> {
        self.optimize_beside(model, None)
    }

    /// Optimizes a model as [`Request::optimize`] does, for a caller who writes the result to a file then ([`Optimized::for_file`]).
    ///
    /// # Errors
    /// As of [`Request::optimize`], and those of writing.
    pub fn optimize_for_file(&self, model: Model, path: impl AsRef<Path>) -> Result<(Optimized, SideFiles), Error> {
        self.optimize_beside(model, Some(path.as_ref()))
    }

    fn optimize_beside(&self, model: Model, path: Option<&Path>) -> Result<(Optimized, SideFiles), Error> {
        self.check_tuning()?;
        if self.tune {
            return Err(RequestError::Untuned.into());
        }
        let mut request = self.clone();
        request.fit(&self.equipment());
        let target = request.target()?;
        let (model, options) = request.fixed(model, request.checked_options())?;
        let optimized = match path {
            Some(path) => Optimized::for_file(&model, target.as_ref(), &options, path)?,
            None => optimize(&model, target.as_ref(), &options)?,
        };
        let files = request.side_files((&model, target.as_ref(), &options), &optimized)?;
        Ok((optimized, files))
    }

    /// Does what is asked for: reads the model, [optimizes](Request::optimize) it, and writes the files beside the result.
    ///
    /// # Errors
    /// [`Error`].
    pub fn run(&self) -> Result<Optimized, Error> {
        let (optimized, files) = self.optimize(self.open()?)?;
        files.commit()?;
        Ok(optimized)
    }
}

#[cfg(test)]
mod tests;
