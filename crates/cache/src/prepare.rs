//! What to load in place of a model.

use crate::digest;
use crate::entry::{self, Lookup, Said};
use crate::folder::ModelCache;
use crate::known;
use crate::make::{Job, Owned, Ready};
use crate::outcome::{StartKind, StartOutcome};
use bytes::Bytes;
use relayout::machine::Fitting;
use relayout::proof::Unproved;
use relayout::{Numerics, Size};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A model that a session is to be made of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ModelInput<'m> {
    /// A file. External data is beside it.
    File(&'m Path),
    /// The bytes of a file that has no external data.
    Memory(&'m [u8]),
}

/// What a model is optimized for, and how long a start may wait for that.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartOptions {
    /// Target, block, kind of machine, threads and provider.
    pub fitting: Fitting,
    /// What else tells sessions apart: the build of the runtime, its level of optimization.
    pub session: String,
    /// What rewrites may do to results.
    pub numerics: Numerics,
    /// Sizes of open dims. Names that the model does not have are left out.
    pub dims: BTreeMap<String, Size>,
    /// What becomes of a result that is not proved. Nobody reads a warning of a program that starts, so the model is kept by default.
    pub unproved: Unproved,
    /// How long a start waits for an optimized model; `None` for as long as it takes. 2 seconds by default.
    pub patience: Option<Duration>,
}

impl StartOptions {
    /// For how long a start waits if nothing else is said.
    pub const PATIENCE: Duration = Duration::from_secs(2);

    /// For what was chosen.
    pub fn new(fitting: Fitting) -> StartOptions {
        StartOptions {
            fitting,
            session: String::new(),
            numerics: Numerics::default(),
            dims: BTreeMap::new(),
            unproved: Unproved::KeepInput,
            patience: Some(StartOptions::PATIENCE),
        }
    }

    /// For such a session: the build of the runtime, its level of optimization, and whatever else results depend on.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> StartOptions {
        self.session = session.into();
        self
    }

    /// With another rule for what rewrites may do to results.
    #[must_use]
    pub fn numerics(mut self, numerics: Numerics) -> StartOptions {
        self.numerics = numerics;
        self
    }

    /// With a size of an open dim.
    #[must_use]
    pub fn dim(mut self, name: impl Into<String>, size: Size) -> StartOptions {
        self.dims.insert(name.into(), size);
        self
    }

    /// With another rule for results that are not proved.
    #[must_use]
    pub fn unproved(mut self, unproved: Unproved) -> StartOptions {
        self.unproved = unproved;
        self
    }

    /// With another time that a start waits; `None` for as long as it takes.
    #[must_use]
    pub fn patience(mut self, patience: Option<Duration>) -> StartOptions {
        self.patience = patience;
        self
    }

    /// The key of what is made with these options of a model with this digest.
    pub(crate) fn key(&self, model: &str) -> String {
        let Fitting { target, block, machine, threads, provider, runtime, .. } = &self.fitting;
        let fitting = format!("{target} {block:?} {machine:?} {threads:?} {provider:?} {runtime:?}");
        let options = format!("{:?} {:?} {:?}", self.numerics, self.dims, self.unproved);
        let version = env!("CARGO_PKG_VERSION");
        digest::of_parts([model, version, &self.session, &fitting, &options].map(str::as_bytes))
    }
}

/// What to load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Load {
    /// The model as it is.
    Model,
    /// This file in its place. External data is beside it.
    File(PathBuf),
    /// These bytes in its place: they could not be kept.
    Bytes(Vec<u8>),
}

/// The answer of [`prepare`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Prepared {
    /// What to load.
    pub load: Load,
    /// What was done, and why.
    pub outcome: StartOutcome,
    /// The thread that goes on with an entry for the next start.
    pub making: Option<Making>,
    /// The entry, by which a host that can't load it says so.
    entry: Option<(ModelCache, String)>,
}

/// A thread that makes an entry. It ends with the process, and the next start begins anew.
#[derive(Debug)]
pub struct Making(JoinHandle<()>);

impl Making {
    /// Whether the entry is made.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the entry is made.
    pub fn wait(self) {
        // What went wrong there is the next start's to say.
        let _ = self.0.join();
    }
}

/// Says what to load in place of a model, and keeps what was made for later starts.
#[must_use]
pub fn prepare(model: ModelInput<'_>, options: &StartOptions, cache: Option<&ModelCache>) -> Prepared {
    let begin = Instant::now();
    let (ready, making) = match kept(model, options, cache) {
        Some(ready) => (ready, None),
        None => made(model, options, cache),
    };
    let Ready { kind, load, why, summary, key } = ready;
    let outcome = StartOutcome { kind, why, summary, fitting: options.fitting.clone(), took: begin.elapsed() };
    Prepared { load, outcome, making, entry: cache.cloned().zip(key) }
}

/// What was kept by an earlier start. A model whose digest is remembered is not read for that.
fn kept(model: ModelInput<'_>, options: &StartOptions, cache: Option<&ModelCache>) -> Option<Ready> {
    let cache = cache?.look()?;
    let digest = match model {
        ModelInput::File(path) => known::look_up(&cache, &path.canonicalize().ok()?)?,
        ModelInput::Memory(bytes) => digest::of_model(bytes, &BTreeMap::new()),
    };
    let key = options.key(&digest);
    match entry::look_up(&cache, &key) {
        Lookup::Entry(entry) => Some(Ready::of_entry(StartKind::Kept, entry, &key)),
        Lookup::Nothing | Lookup::Damaged => None,
    }
}

/// As much as the first thread of a process has: models may hold bodies in bodies.
const STACK_BYTES: usize = 8 << 20;

/// What a thread makes, if that does not take too long.
fn made(model: ModelInput<'_>, options: &StartOptions, cache: Option<&ModelCache>) -> (Ready, Option<Making>) {
    let model = match model {
        ModelInput::File(path) => match path.canonicalize() {
            Ok(path) => Owned::File(path),
            Err(e) => return (Ready::plain(e.to_string()), None),
        },
        ModelInput::Memory(bytes) => Owned::Memory(Bytes::copy_from_slice(bytes)),
    };
    let job = Job { model, options: options.clone(), cache: cache.cloned() };
    let (send, answer) = channel();
    let work = move || {
        // A start never fails for what happens here.
        let ready = catch_unwind(AssertUnwindSafe(|| job.run()));
        let _ = send.send(ready.unwrap_or_else(|_| Ready::plain("relayout failed, which is a fault of it")));
    };
    match thread::Builder::new().name("relayout".to_owned()).stack_size(STACK_BYTES).spawn(work) {
        Ok(thread) => waited(&answer, options.patience, Making(thread)),
        Err(e) => (Ready::plain(format!("no thread can be had: {e}")), None),
    }
}

fn waited(answer: &Receiver<Ready>, patience: Option<Duration>, making: Making) -> (Ready, Option<Making>) {
    let answered = match patience {
        Some(patience) => answer.recv_timeout(patience),
        None => answer.recv().map_err(|_| RecvTimeoutError::Disconnected),
    };
    match answered {
        Ok(ready) => (ready, None),
        Err(RecvTimeoutError::Disconnected) => (Ready::plain("relayout failed, which is a fault of it"), None),
        Err(RecvTimeoutError::Timeout) => {
            let waited = patience.unwrap_or_default().as_secs_f64();
            let why = format!("to optimize it takes more than {waited:.1} s");
            (Ready { kind: StartKind::Later, ..Ready::plain(why) }, Some(making))
        }
    }
}

impl Prepared {
    /// Notes that the host could not load what was prepared. Later starts load the model as it is, without trying.
    pub fn refused(&mut self, why: impl Into<String>) {
        let why = format!("the runtime refused the optimized model: {}", why.into());
        // An entry that is gone by now made room for another one, which is as good.
        let whole = !matches!(&self.load, Load::File(path) if !path.exists());
        if let Some((cache, key)) = self.entry.take().filter(|_| whole) {
            let said = Said { plain: Some(why.clone()), summary: None };
            let noted = cache.open().and_then(|cache| {
                let slot = cache.lock(&key).map_err(|e| e.to_string())?;
                entry::keep(&cache, &slot, &key, (None, &said))
            });
            self.outcome.why.extend(noted.err());
        }
        self.load = Load::Model;
        self.outcome.kind = StartKind::Plain;
        self.outcome.summary = None;
        self.outcome.why.push(why);
    }
}
