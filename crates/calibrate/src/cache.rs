//! Times of cases on disk, shared by all models that are tuned on one machine with one runtime.

use crate::CalibrateError;
use relayout::fsio::{self, Output};
use relayout_targets::measured::Case;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The format of caches that this version reads: another one where the meaning of a case or of its time changes.
const FORMAT: u64 = 1;

/// What a time depends on beside its case. Times of one host say nothing about another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Host {
    /// The processor, as it calls itself.
    pub machine: String,
    /// Instruction sets that it has, separated by spaces.
    pub flags: String,
    /// The runtime and its version.
    pub runtime: String,
    /// Threads per op.
    pub threads: u64,
}

impl Host {
    /// A host.
    pub fn new(machine: impl Into<String>, flags: impl Into<String>, runtime: impl Into<String>, threads: u64) -> Host {
        Host { machine: machine.into(), flags: flags.into(), runtime: runtime.into(), threads }
    }

    /// The name of its cache among those of other hosts: letters, digits, dots and dashes.
    pub fn file_name(&self) -> String {
        let text = format!("tune-{}-{}-{}t", self.machine, self.runtime, self.threads).to_lowercase();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let mut name: String = text.chars().map(plain).collect();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        name + ".json"
    }

    /// What differs from another host, first what matters most.
    fn differs(&self, other: &Host) -> Option<[String; 2]> {
        let threads = |host: &Host| format!("{} threads", host.threads);
        let sides = |host: &Host| [host.machine.clone(), host.runtime.clone(), host.flags.clone(), threads(host)];
        sides(self).into_iter().zip(sides(other)).find(|(a, b)| a != b).map(|(a, b)| [a, b])
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        write!(f, "{} with {}, {threads}", self.machine, self.runtime)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u64,
    host: Host,
    /// Nanoseconds by case; none for what can't be timed by itself.
    ns: BTreeMap<String, Option<u64>>,
}

/// What is known of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    /// It takes so many nanoseconds.
    Ns(u64),
    /// It can't be timed by itself.
    Untimed,
}

/// Times of cases.
#[derive(Debug)]
pub struct Cache {
    path: Option<PathBuf>,
    host: Host,
    ns: BTreeMap<String, Option<u64>>,
}

impl Cache {
    /// One that is in memory only.
    pub fn of(host: Host) -> Cache {
        Cache { path: None, host, ns: BTreeMap::new() }
    }

    /// The one in this file, empty where there is none. A file that is no cache is set aside as `FILE.damaged`, and the second result says
    /// so.
    ///
    /// # Errors
    /// [`CalibrateError::OtherHost`] if it was measured on another host, [`CalibrateError::Cache`] if it can't be read.
    pub fn open(path: &Path, host: Host) -> Result<(Cache, Option<PathBuf>), CalibrateError> {
        let empty = |host| Cache { path: Some(path.to_owned()), host, ns: BTreeMap::new() };
        let text = match fsio::read_text(path) {
            Ok(text) => text,
            Err(fsio::Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok((empty(host), None));
            }
            // Bytes that are no text are a damaged cache too.
            Err(fsio::Error::Read { source, .. }) if source.kind() == ErrorKind::InvalidData => String::new(),
            Err(e) => return Err(CalibrateError::Cache { why: e.to_string() }),
        };
        match serde_json::from_str::<File>(&text) {
            Ok(file) if file.format == FORMAT => match file.host.differs(&host) {
                None => Ok((Cache { path: Some(path.to_owned()), host, ns: file.ns }, None)),
                Some([theirs, ours]) => Err(CalibrateError::OtherHost { path: path.to_owned(), theirs, ours }),
            },
            _ => {
                let mut aside = path.as_os_str().to_owned();
                aside.push(".damaged");
                let aside = PathBuf::from(aside);
                std::fs::rename(path, &aside)
                    .map_err(|e| CalibrateError::Cache { why: format!("cannot set {} aside: {e}", path.display()) })?;
                Ok((empty(host), Some(aside)))
            }
        }
    }

    /// The host that its times are of.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What is known of a case: nothing, or its time, or that it can't be timed.
    pub(crate) fn get(&self, case: &Case) -> Option<Time> {
        self.ns.get(&key(case)).map(|ns| ns.map_or(Time::Untimed, Time::Ns))
    }

    pub(crate) fn add(&mut self, case: &Case, ns: Option<u64>) {
        self.ns.insert(key(case), ns);
    }

    /// Writes what is known, whole or not at all. What another process wrote meanwhile is kept.
    pub(crate) fn save(&self) -> Result<(), CalibrateError> {
        let Some(path) = &self.path else { return Ok(()) };
        let failed = |e: &dyn fmt::Display| CalibrateError::Cache { why: e.to_string() };
        let mut ns = match Cache::open(path, self.host.clone()) {
            Ok((there, None)) => there.ns,
            _ => BTreeMap::new(),
        };
        ns.extend(self.ns.iter().map(|(case, ns)| (case.clone(), *ns)));
        let file = File { format: FORMAT, host: self.host.clone(), ns };
        let text = serde_json::to_string_pretty(&file).map_err(|e| failed(&e))?;
        Output::new(path, (text + "\n").into_bytes()).and_then(Output::commit).map_err(|e| failed(&e))
    }
}

/// A case as the key of a file.
fn key(case: &Case) -> String {
    format!("{case:?}")
}
