//! The builder: what it knows of the session, and how it ends.

use crate::{BuilderResult, SettingRefused};
use ort::environment::Environment;
use ort::ep::ExecutionProviderDispatch;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::DynValue;
use relayout::machine::{Equipment, Fitting, fitting};
use relayout::proof::Unproved;
use relayout::{Numerics, Size};
use relayout_cache::{Load, Making, ModelCache, ModelInput, StartOptions, StartOutcome, prepare};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a session builder of ort was told, for [`Builder::with_facts`]: ort's builder has no way to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFacts {
    /// Threads of an op; `None` if nothing was said.
    pub threads: Option<usize>,
    /// Execution providers beside the CPU's, by the names that the runtime has for them, such as `CUDAExecutionProvider`.
    pub providers: Vec<String>,
    /// How much the runtime rewrites models; `None` if nothing was said.
    pub level: Option<GraphOptimizationLevel>,
}

impl SessionFacts {
    /// Nothing.
    pub fn nothing() -> SessionFacts {
        SessionFacts::default()
    }

    /// So many threads of an op; 0 for as many as the runtime takes by itself.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> SessionFacts {
        self.threads = Some(threads).filter(|&threads| threads > 0);
        self
    }

    /// An execution provider, by the runtime's name for it.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> SessionFacts {
        self.providers.push(name.into());
        self
    }

    /// How much the runtime rewrites models.
    #[must_use]
    pub fn level(mut self, level: GraphOptimizationLevel) -> SessionFacts {
        self.level = Some(level);
        self
    }
}

/// The observer of starts, which is told of each.
type Listener = Arc<dyn Fn(&StartOutcome) + Send + Sync>;

/// A session builder that has models optimized. Its setters are those of ort's `SessionBuilder`.
pub struct Builder {
    inner: SessionBuilder,
    told: SessionFacts,
    /// Providers of the environment, which sessions have as well.
    environment: Vec<String>,
    /// Why the model is to be loaded as it is.
    as_it_is: Option<String>,
    cache: Option<ModelCache>,
    options: StartOptions,
    listener: Option<Listener>,
    outcome: Option<StartOutcome>,
    making: Option<Making>,
}

impl Builder {
    /// One for sessions of an environment, with the cache of this user.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn new(environment: &Environment) -> ort::Result<Builder> {
        let mut builder = Builder::with_facts(SessionBuilder::new(environment)?, SessionFacts::nothing());
        builder.environment = environment.execution_providers().iter().map(|each| each.name().to_owned()).collect();
        Ok(builder)
    }

    /// One that goes on with a builder of ort. What that was told has to be said once more: it can't be asked. So have the providers of its
    /// environment.
    pub fn with_facts(inner: SessionBuilder, told: SessionFacts) -> Builder {
        let nothing = fitting(&Equipment::default());
        Builder {
            inner,
            told,
            environment: Vec::new(),
            as_it_is: None,
            cache: ModelCache::of_user(),
            options: StartOptions::new(nothing),
            listener: None,
            outcome: None,
            making: None,
        }
    }

    /// The builder of ort.
    pub fn into_inner(self) -> SessionBuilder {
        self.inner
    }

    /// With this cache in place of that of the user.
    #[must_use]
    pub fn cache(mut self, cache: ModelCache) -> Builder {
        self.cache = Some(cache);
        self
    }

    /// Without a cache: each start optimizes the model, if that does not take too long.
    #[must_use]
    pub fn without_cache(mut self) -> Builder {
        self.cache = None;
        self
    }

    /// With another time that a start waits for the optimizer; `None` for as long as it takes. Two seconds if nothing is said.
    #[must_use]
    pub fn patience(mut self, patience: Option<Duration>) -> Builder {
        self.options = self.options.patience(patience);
        self
    }

    /// With results that stay the same, bit by bit.
    #[must_use]
    pub fn exact(mut self) -> Builder {
        self.options = self.options.numerics(Numerics::Exact);
        self
    }

    /// With a size, or a range of sizes, at which an open dim is priced. Where the model has no such dim nothing happens.
    #[must_use]
    pub fn dim(mut self, name: impl Into<String>, size: Size) -> Builder {
        self.options = self.options.dim(name, size);
        self
    }

    /// With another rule for results that are not proved. If nothing is said the model is loaded as it is.
    #[must_use]
    pub fn unproved(mut self, unproved: Unproved) -> Builder {
        self.options = self.options.unproved(unproved);
        self
    }

    /// With the model loaded as it is, and a sentence that says why.
    #[must_use]
    pub fn as_it_is(mut self, why: impl Into<String>) -> Builder {
        self.as_it_is = Some(why.into());
        self
    }

    /// With a function that is told what became of each start.
    #[must_use]
    pub fn on_start(mut self, listener: impl Fn(&StartOutcome) + Send + Sync + 'static) -> Builder {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// With a setting of ort for which there is no method here. Say what follows of it: [`Builder::provider`] for a device,
    /// [`Builder::as_it_is`] where the session gets weights from elsewhere.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with(mut self, set: impl FnOnce(SessionBuilder) -> ort::session::builder::BuilderResult) -> BuilderResult {
        match set(self.inner) {
            Ok(inner) => {
                self.inner = inner;
                Ok(self)
            }
            Err(e) => {
                let (code, message) = (e.code(), e.message().to_owned());
                self.inner = e.recover();
                Err(SettingRefused::new(self, code, &message))
            }
        }
    }

    /// With a provider that the session has by [`Builder::with`], by the runtime's name for it.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> Builder {
        self.told.providers.push(name.into());
        self
    }

    /// Registers execution providers, in this order.
    ///
    /// # Errors
    /// What the runtime answers for a provider that is to be an error if it can't be had.
    pub fn with_execution_providers(mut self, providers: impl AsRef<[ExecutionProviderDispatch]>) -> BuilderResult {
        for provider in providers.as_ref() {
            // Only those count that are there. The second call fails as the provider says: with an error, or with a line of ort's log.
            self = match provider.register(&mut self.inner) {
                Ok(()) => self.provider(provider.name()),
                Err(_) => self.with(|inner| inner.with_execution_providers([provider.clone()]))?,
            };
        }
        Ok(self)
    }

    /// Leaves the providers of the environment out.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_no_environment_execution_providers(mut self) -> BuilderResult {
        self.environment.clear();
        self.with(SessionBuilder::with_no_environment_execution_providers)
    }

    /// With so many threads of an op.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_intra_threads(self, threads: usize) -> BuilderResult {
        let mut set = self.with(|inner| inner.with_intra_threads(threads))?;
        set.told = set.told.threads(threads);
        Ok(set)
    }

    /// How much the runtime rewrites models. At level `Disable` they are loaded as they are.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_optimization_level(self, level: GraphOptimizationLevel) -> BuilderResult {
        let mut set = self.with(|inner| inner.with_optimization_level(level))?;
        set.told = set.told.level(level);
        Ok(set)
    }

    /// Fixes a dim by its name. The model is priced at that size.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_dimension_override(self, name: impl AsRef<str>, size: i64) -> BuilderResult {
        let name = name.as_ref();
        let set = self.with(|inner| inner.with_dimension_override(name, size))?;
        Ok(match size.to_string().parse() {
            Ok(size) => set.dim(name, size),
            Err(_) => set,
        })
    }

    /// Gives an initializer of the model another value. The model is loaded as it is.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_initializer(self, name: impl AsRef<str>, value: impl Into<Arc<DynValue>>) -> BuilderResult {
        let set = self.with(|inner| inner.with_initializer(name, value))?;
        Ok(set.as_it_is("the session is given initializers by their names in the model"))
    }

    /// Gives an initializer whose data is elsewhere its value. The model is loaded as it is.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn with_external_initializer(self, name: impl AsRef<str>, value: impl Into<Arc<DynValue>>) -> BuilderResult {
        let set = self.with(|inner| inner.with_external_initializer(name, value))?;
        Ok(set.as_it_is("the session is given initializers by their names in the model"))
    }

    /// Makes a session of a model file. External data is beside it.
    ///
    /// # Errors
    /// What ort's builder answers for the model as it is.
    pub fn commit_from_file(&mut self, path: impl AsRef<Path>) -> ort::Result<Session> {
        let path = path.as_ref();
        self.commit(ModelInput::File(path), |inner| inner.commit_from_file(path))
    }

    /// Makes a session of the bytes of a model.
    ///
    /// # Errors
    /// What ort's builder answers for the model as it is.
    pub fn commit_from_memory(&mut self, bytes: &[u8]) -> ort::Result<Session> {
        self.commit(ModelInput::Memory(bytes), |inner| inner.commit_from_memory(bytes))
    }

    /// Optimizes a model file and keeps the result, however long that takes, for programs that are installed.
    pub fn prepare(&mut self, path: impl AsRef<Path>) -> &StartOutcome {
        let outcome = self.plain().unwrap_or_else(|| {
            let options = self.start_options().patience(None);
            prepare(ModelInput::File(path.as_ref()), &options, self.cache.as_ref()).outcome
        });
        self.tell(outcome)
    }

    /// What became of the last start.
    pub fn outcome(&self) -> Option<&StartOutcome> {
        self.outcome.as_ref()
    }

    /// The thread that goes on with the optimized model of the last start, if that took too long.
    pub fn making(&mut self) -> Option<Making> {
        self.making.take()
    }

    /// What models are optimized for, by what this builder knows.
    pub fn fitting(&self) -> Fitting {
        let mut equipment = Equipment::of_this_machine().with_runtime(version());
        if let Some(threads) = self.told.threads {
            equipment.threads = threads as u64;
        }
        fitting(&equipment.with_session_providers(self.told.providers.iter().chain(&self.environment)))
    }

    fn start_options(&self) -> StartOptions {
        let mut options = self.options.clone();
        options.fitting = self.fitting();
        options.session(format!("{} {:?}", ort::info(), self.told.level))
    }

    /// Where the model is to be loaded as it is.
    fn plain(&self) -> Option<StartOutcome> {
        let disabled = self.told.level == Some(GraphOptimizationLevel::Disable);
        let disabled = disabled.then(|| "the level of optimization asks for the model as it is".to_owned());
        Some(StartOutcome::as_it_is(self.fitting(), self.as_it_is.clone().or(disabled)?))
    }

    fn tell(&mut self, outcome: StartOutcome) -> &StartOutcome {
        if let Some(listener) = &self.listener {
            listener(&outcome);
        }
        self.outcome.insert(outcome)
    }

    fn commit(
        &mut self,
        model: ModelInput<'_>,
        plain: impl FnOnce(&mut SessionBuilder) -> ort::Result<Session>,
    ) -> ort::Result<Session> {
        if let Some(outcome) = self.plain() {
            let session = plain(&mut self.inner)?;
            self.tell(outcome);
            return Ok(session);
        }
        let mut prepared = prepare(model, &self.start_options(), self.cache.as_ref());
        // A builder is changed by what it ends in; that of the model as it is has to be as it was.
        let optimized = match &prepared.load {
            Load::File(path) => Some(self.inner.clone().commit_from_file(path)),
            Load::Bytes(bytes) => Some(self.inner.clone().commit_from_memory(bytes)),
            _ => None,
        };
        let session = match optimized {
            Some(Ok(session)) => session,
            Some(Err(refused)) => {
                let session = plain(&mut self.inner)?;
                // What the runtime would not load either way is no fault of the optimized model.
                prepared.refused(refused.message());
                session
            }
            None => plain(&mut self.inner)?,
        };
        self.making = prepared.making;
        self.tell(prepared.outcome);
        Ok(session)
    }
}

/// The version of the runtime: of the branch that it was built of, or the oldest that ort works with.
fn version() -> String {
    let branch = ort::info().split("git-branch=rel-").nth(1);
    let numbers = branch.map(|rest| rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>());
    numbers.filter(|numbers| !numbers.is_empty()).unwrap_or_else(|| format!("1.{} or newer", ort::MINOR_VERSION))
}

impl Clone for Builder {
    /// A builder with the same settings, which has made no session yet.
    fn clone(&self) -> Builder {
        Builder {
            inner: self.inner.clone(),
            told: self.told.clone(),
            environment: self.environment.clone(),
            as_it_is: self.as_it_is.clone(),
            cache: self.cache.clone(),
            options: self.options.clone(),
            listener: self.listener.clone(),
            outcome: None,
            making: None,
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Builder { told, cache, options, outcome, .. } = self;
        let mut shown = f.debug_struct("Builder");
        shown.field("told", told).field("cache", cache).field("options", options).field("outcome", outcome);
        shown.finish_non_exhaustive()
    }
}
