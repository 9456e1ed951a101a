//! Times of cases on disk, shared by all models that are tuned on one machine with one runtime, and how their results compared.

use crate::CalibrateError;
use crate::host::Host;
use relayout::fsio::{self, Output};
use relayout_targets::measured::Case;
use relayout_verify::RunTimes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The format of caches that this version reads: another one where the meaning of a case or of its time changes.
const FORMAT: u64 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u64,
    host: Host,
    /// Nanoseconds by case; none for what can't be timed by itself.
    ns: BTreeMap<String, Option<u64>>,
    /// How models and their results ran in turns; none for results that were slower.
    #[serde(default)]
    runs: BTreeMap<String, Option<Compared>>,
}

/// How a model and its result ran in turns. Times are in milliseconds, ratios are times of the model over times of the result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Compared {
    /// The median of the model.
    pub before_ms: f64,
    /// Between these lies the middle half of the model's runs.
    pub before_between_ms: [f64; 2],
    /// The median of the result.
    pub after_ms: f64,
    /// Between these lies the middle half of the result's runs.
    pub after_between_ms: [f64; 2],
    /// The median of the ratios of the rounds.
    pub ratio: f64,
    /// The 95 % interval of that median.
    pub ratio_between: [f64; 2],
    /// The 95 % interval of that median when the model is measured beside itself.
    pub control_between: [f64; 2],
    /// Rounds.
    pub pairs: usize,
}

impl From<&RunTimes> for Compared {
    fn from(times: &RunTimes) -> Compared {
        let ms = |ns: u64| ns as f64 / 1e6;
        Compared {
            before_ms: ms(times.a_ns),
            before_between_ms: times.a_spread.map(ms),
            after_ms: ms(times.b_ns),
            after_between_ms: times.b_spread.map(ms),
            ratio: times.ratio.median,
            ratio_between: [times.ratio.low, times.ratio.high],
            control_between: [times.control.low, times.control.high],
            pairs: times.runs,
        }
    }
}

/// A model, its result and what both were fed, as a cache knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair(String);

impl Pair {
    /// A pair of these bytes; `fed` is anything else that their times depend on.
    pub fn new(model: &[u8], result: &[u8], fed: &str) -> Pair {
        let mut digest = Sha256::new();
        for part in [model, result, fed.as_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let mut hex = String::new();
        for byte in digest.finalize() {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Pair(hex)
    }
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
    runs: BTreeMap<String, Option<Compared>>,
}

impl Cache {
    /// One that is in memory only.
    pub fn of(host: Host) -> Cache {
        Cache { path: None, host, ns: BTreeMap::new(), runs: BTreeMap::new() }
    }

    /// The one in this file, empty where there is none. A damaged one, or one of another version, is set aside as `FILE.damaged`, and the
    /// second result says so. What does not even begin like a cache is somebody's other file, and stays.
    ///
    /// # Errors
    /// [`CalibrateError::OtherHost`] if it was measured on another host, [`CalibrateError::Cache`] if it can't be read or is none.
    pub fn open(path: &Path, host: Host) -> Result<(Cache, Option<PathBuf>), CalibrateError> {
        let empty = |host| Cache { path: Some(path.to_owned()), ..Cache::of(host) };
        let bytes = match fsio::read(path) {
            Ok(bytes) => bytes,
            Err(fsio::Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok((empty(host), None));
            }
            Err(e) => return Err(CalibrateError::Cache { why: e.to_string() }),
        };
        // What a crash of the system leaves may be empty, or zeros.
        if bytes.iter().find(|&&byte| byte != 0).is_some_and(|&first| first != b'{') {
            return Err(CalibrateError::Cache {
                why: format!("{} is not a file with times of kernels; name another one", path.display()),
            });
        }
        match serde_json::from_slice::<File>(&bytes) {
            Ok(file) if file.format == FORMAT => match file.host.differs(&host) {
                None => Ok((Cache { path: Some(path.to_owned()), host, ns: file.ns, runs: file.runs }, None)),
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

    /// The file, unless it is in memory only.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
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

    /// How a model and its result ran when they were compared: `Some(None)` where the result was slower.
    pub fn compared(&self, pair: &Pair) -> Option<Option<Compared>> {
        self.runs.get(&pair.0).copied()
    }

    /// Keeps, in the file as well, how a model and its result ran; `None` where the result was slower.
    ///
    /// # Errors
    /// [`CalibrateError::Cache`] if the file can't be written.
    pub fn keep(&mut self, pair: &Pair, compared: Option<Compared>) -> Result<(), CalibrateError> {
        self.runs.insert(pair.0.clone(), compared);
        self.save()
    }

    /// Writes what is known, whole or not at all. What another process wrote meanwhile is kept.
    pub(crate) fn save(&self) -> Result<(), CalibrateError> {
        let Some(path) = &self.path else { return Ok(()) };
        let failed = |e: &dyn fmt::Display| CalibrateError::Cache { why: e.to_string() };
        let (mut ns, mut runs) = match Cache::open(path, self.host.clone()) {
            Ok((there, None)) => (there.ns, there.runs),
            _ => Default::default(),
        };
        ns.extend(self.ns.iter().map(|(case, ns)| (case.clone(), *ns)));
        runs.extend(self.runs.iter().map(|(pair, run)| (pair.clone(), *run)));
        let file = File { format: FORMAT, host: self.host.clone(), ns, runs };
        let text = serde_json::to_string_pretty(&file).map_err(|e| failed(&e))?;
        Output::new(path, (text + "\n").into_bytes()).and_then(Output::commit).map_err(|e| failed(&e))
    }
}

/// A case as the key of a file.
fn key(case: &Case) -> String {
    format!("{case:?}")
}
