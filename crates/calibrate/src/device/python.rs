//! A Python with ONNX Runtime, started once: it times models on the device of an execution provider.
//!
//! What it runs is `measure.py`, which is written into a folder of its own and speaks JSON, a line at a time.

use crate::{CalibrateError, Host};
use relayout_verify::ElementType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

const SCRIPT: &str = include_str!("measure.py");
/// What ONNX Runtime calls its own provider, which takes the place of a device where only the way is tried.
const STAND_IN: &str = "CPUExecutionProvider";

/// A running Python whose ONNX Runtime has an execution provider. It ends when this is dropped.
#[derive(Debug)]
pub struct DeviceRuntime {
    python: PathBuf,
    child: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: TempDir,
    here: Here,
    files: usize,
}

/// What is there, as the script says it.
#[derive(Debug, Deserialize)]
struct Here {
    runtime: String,
    provider: String,
    stand_in: bool,
    machine: Option<String>,
}

/// Models that run in turns.
#[derive(Debug, Serialize)]
pub(super) struct Asked {
    pub(super) models: Vec<AskedModel>,
    /// Rounds at least, and at most, of which those after the least end with the time.
    pub(super) rounds: [usize; 2],
    pub(super) seconds: f64,
    /// How often each model runs in a round.
    pub(super) turns: usize,
}

/// A model that runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AskedModel {
    pub(super) path: PathBuf,
    /// What the provider is told.
    pub(super) options: BTreeMap<String, String>,
    /// Whether the runtime rewrites it.
    pub(super) optimized: bool,
    pub(super) threads: u64,
    /// The op that has to run on the provider, and that no Transpose has to run beside; any op if none is said.
    pub(super) op: Option<&'static str>,
    /// What it is fed; drawn numbers if nothing is said.
    pub(super) feeds: Option<Vec<TensorFile>>,
    /// Whether its results are wanted.
    pub(super) results: bool,
}

/// A tensor in a file: its elements as they lie in memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TensorFile {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) element_type: ElementType,
    pub(super) shape: Vec<i64>,
    pub(super) file: PathBuf,
}

/// How a model ran.
#[derive(Debug, Deserialize)]
pub(super) struct Ran {
    /// Nanoseconds of each turn.
    pub(super) ns: Vec<u64>,
    pub(super) results: Vec<TensorFile>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer<T> {
    Error { error: String },
    Fine(T),
}

impl DeviceRuntime {
    /// Starts a Python and has it look for this provider, by the name that ONNX Runtime has for it. With `stand_in` the CPU's provider takes
    /// its place, which tries the way and says nothing of a device.
    ///
    /// # Errors
    /// [`CalibrateError::Device`]: there is no such Python, or it lacks ONNX Runtime or the provider.
    pub fn start(python: &Path, provider: &str, stand_in: bool) -> Result<DeviceRuntime, CalibrateError> {
        let folder = tempfile::Builder::new().prefix("relayout-").tempdir().map_err(|e| failed(&e))?;
        let script = folder.path().join("measure.py");
        fs::write(&script, SCRIPT).map_err(|e| failed(&e))?;
        let log = fs::File::create(folder.path().join("log")).map_err(|e| failed(&e))?;
        let mut command = Command::new(python);
        command
            .arg(script)
            .arg(provider)
            .arg(folder.path())
            .args(stand_in.then_some(["--on", STAND_IN]).iter().flatten());
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = started.map_err(|e| CalibrateError::Device {
            why: format!(
                "cannot start {}: {e}; name a Python that has ONNX Runtime with that provider",
                python.display()
            ),
        })?;
        let (Some(asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CalibrateError::Device { why: format!("{} has no stdin", python.display()) });
        };
        let (python, answers) = (python.to_owned(), BufReader::new(answers));
        let nothing = Here { runtime: String::new(), provider: String::new(), stand_in, machine: None };
        let mut started = DeviceRuntime { python, child, asks: Some(asks), answers, folder, here: nothing, files: 0 };
        started.here = started.answer()?;
        Ok(started)
    }

    /// The device, as it calls itself; the processor where the CPU's provider stands in.
    pub fn machine(&self) -> String {
        let unknown = || format!("a device of {}", self.here.provider);
        let own = || if self.here.provider == STAND_IN { crate::processor() } else { unknown() };
        self.here.machine.clone().unwrap_or_else(own)
    }

    /// The runtime and its version.
    pub fn runtime(&self) -> &str {
        &self.here.runtime
    }

    /// The provider that models run on, as ONNX Runtime calls it.
    pub fn provider(&self) -> &str {
        &self.here.provider
    }

    /// Whether the CPU's provider takes the place of the one that was asked for.
    pub fn is_stand_in(&self) -> bool {
        self.here.stand_in
    }

    /// What times depend on that are measured here, on so many threads per op.
    pub fn host(&self, threads: usize) -> Host {
        Host::new(self.machine(), "", format!("{} with {}", self.here.runtime, self.here.provider), threads as u64)
    }

    /// Puts bytes into a file that Python can read, which goes with this.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<PathBuf, CalibrateError> {
        self.files += 1;
        let path = self.folder.path().join(format!("file-{}", self.files));
        fs::write(&path, bytes).map_err(|e| failed(&e))?;
        Ok(path)
    }

    /// Runs models in turns; an answer for each.
    pub(super) fn run(&mut self, asked: &Asked) -> Result<Vec<Ran>, CalibrateError> {
        let line = serde_json::to_string(asked).map_err(|e| failed(&e))? + "\n";
        let told = self.asks.as_mut().map(|asks| asks.write_all(line.as_bytes()).and_then(|()| asks.flush()));
        // If it is gone, what it said before says why.
        let _ = told;
        asked.models.iter().map(|_| self.answer()).collect()
    }

    fn answer<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T, CalibrateError> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| failed(&e))?;
        match serde_json::from_str(&line) {
            Ok(Answer::Fine(answer)) => Ok(answer),
            Ok(Answer::Error { error }) => Err(CalibrateError::Device { why: error }),
            Err(_) => Err(CalibrateError::Device { why: self.last_words() }),
        }
    }

    /// What it said at its end.
    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let said = log.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
        format!("{} gave no answer: {said}", self.python.display())
    }
}

impl Drop for DeviceRuntime {
    fn drop(&mut self) {
        // It ends at the end of its stdin; what still runs is stopped.
        self.asks = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(error: &dyn std::fmt::Display) -> CalibrateError {
    CalibrateError::Device { why: error.to_string() }
}
