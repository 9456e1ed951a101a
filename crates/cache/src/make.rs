//! Makes an entry: on a thread of its own, because a start waits only so long.

use crate::digest;
use crate::entry::{self, Entry, Lookup, Said};
use crate::folder::{ModelCache, Private};
use crate::known::Files;
use crate::outcome::StartKind;
use crate::prepare::{Load, StartOptions};
use bytes::Bytes;
use relayout::{Error, Model, Optimized, Options, optimize};
use std::path::PathBuf;

/// A model that outlives the call that named it.
pub(crate) enum Owned {
    /// A file, spelled without links.
    File(PathBuf),
    Memory(Bytes),
}

/// What to load, and why that.
pub(crate) struct Ready {
    pub(crate) kind: StartKind,
    pub(crate) load: Load,
    pub(crate) why: Vec<String>,
    pub(crate) summary: Option<String>,
    /// The entry's key, where one is known.
    pub(crate) key: Option<String>,
}

impl Ready {
    /// The model as it is.
    pub(crate) fn plain(why: impl Into<String>) -> Ready {
        Ready { kind: StartKind::Plain, load: Load::Model, why: vec![why.into()], summary: None, key: None }
    }

    /// What an entry says is to be loaded.
    pub(crate) fn of_entry(kind: StartKind, entry: Entry, key: &str) -> Ready {
        let Entry { model, said } = entry;
        let (kind, load) = match model {
            Some(path) => (kind, Load::File(path)),
            None => (StartKind::Plain, Load::Model),
        };
        Ready { kind, load, why: said.plain.into_iter().collect(), summary: said.summary, key: Some(key.to_owned()) }
    }

    fn also(mut self, why: Vec<String>) -> Ready {
        self.why.splice(0..0, why);
        self
    }
}

/// A model that is to be optimized for a session.
pub(crate) struct Job {
    pub(crate) model: Owned,
    pub(crate) options: StartOptions,
    pub(crate) cache: Option<ModelCache>,
}

/// Why nothing was made of a model, and whether that is so each time.
struct Stays {
    why: String,
    always: bool,
}

impl Job {
    /// What to load. It is looked for once more, because another process may have made it.
    pub(crate) fn run(&self) -> Ready {
        let model = match self.open() {
            Ok(model) => model,
            Err(e) => return Ready::plain(format!("relayout does not read it: {e}")),
        };
        let files = match &self.model {
            Owned::File(path) => Files::stamped(path, &model),
            Owned::Memory(_) => None,
        };
        let cache = match &self.cache {
            Some(cache) => cache.open(),
            None => Err("nothing is kept, because no folder is named and the user has none for caches".to_owned()),
        };
        let cache = match cache {
            Ok(cache) => cache,
            Err(why) => return self.in_memory(&model, why),
        };
        let digest = digest::of_model(model.bytes(), &model.external_data());
        if let Some(files) = files {
            files.remember(&cache, &digest);
        }
        self.with_cache(&model, &cache, &self.options.key(&digest))
    }

    fn open(&self) -> Result<Model, Error> {
        match &self.model {
            Owned::File(path) => Model::open(path),
            Owned::Memory(bytes) => Model::from_bytes(bytes.clone(), None),
        }
    }

    fn with_cache(&self, model: &Model, cache: &Private, key: &str) -> Ready {
        let slot = match cache.lock(key) {
            Ok(slot) => slot,
            Err(e) => return self.in_memory(model, format!("nothing is kept, because the cache can't be locked: {e}")),
        };
        let mut why = Vec::new();
        match entry::look_up(cache, key) {
            Lookup::Entry(entry) => return Ready::of_entry(StartKind::Kept, entry, key),
            Lookup::Damaged => {
                cache.drop_entry(&slot, key);
                why.push("what was kept is damaged and was made anew".to_owned());
            }
            Lookup::Nothing => {}
        }
        let made = self.optimized(model);
        let kept = match &made {
            Ok((made, said)) => entry::keep(cache, &slot, key, (Some(made), said)),
            Err(Stays { why, always: true }) => {
                let said = Said { plain: Some(why.clone()), summary: None };
                entry::keep(cache, &slot, key, (None, &said))
            }
            Err(Stays { why, always: false }) => return Ready::plain(why),
        };
        match (kept, made) {
            (Ok(entry), _) => Ready::of_entry(StartKind::Made, entry, key).also(why),
            (Err(e), Ok(made)) => {
                why.push(format!("the result is not kept: {e}"));
                from_memory(&made).also(why)
            }
            // The next start finds out again.
            (Err(_), Err(stays)) => Ready::plain(stays.why).also(why),
        }
    }

    /// Without a cache.
    fn in_memory(&self, model: &Model, why: String) -> Ready {
        match self.optimized(model) {
            Ok(made) => from_memory(&made).also(vec![why]),
            Err(stays) => Ready::plain(stays.why).also(vec![why]),
        }
    }

    fn optimized(&self, model: &Model) -> Result<(Optimized, Said), Stays> {
        let StartOptions { fitting, numerics, unproved, dims, .. } = &self.options;
        let target = fitting.build().map_err(|e| Stays { why: e.to_string(), always: false })?;
        let mut options = Options::default().numerics(*numerics).unproved(*unproved);
        options.dims.clone_from(dims);
        let made = optimize(model, target.as_ref(), &options.dims_of(model));
        let made = made.map_err(|e| Stays { always: !matches!(e, Error::File(_)), why: e.to_string() })?;
        if !made.report().changed {
            return Err(Stays { why: made.report().line(), always: true });
        }
        let said = Said { summary: Some(made.report().line()), plain: None };
        Ok((made, said))
    }
}

/// A result that is in no file.
fn from_memory((made, said): &(Optimized, Said)) -> Ready {
    match made.to_bytes() {
        Ok(bytes) => Ready {
            kind: StartKind::Made,
            load: Load::Bytes(bytes),
            why: Vec::new(),
            summary: said.summary.clone(),
            key: None,
        },
        Err(e) => Ready::plain(format!("the result can't be loaded from memory: {e}")),
    }
}
