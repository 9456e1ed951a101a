//! How a verdict about two files is said: as text, as JSON that names both files by their digests, and as a page.

use crate::args::{self, ReadingOf};
use crate::commands::{ReportFile, is_stdout};
use crate::failure::Failure;
use crate::page;
use crate::terminal::{json, say, say_json};
use relayout::Model;
use relayout::fsio::Mapped;
use relayout_html::VerdictPage;
use relayout_proof::{AssumedReading, Gap, Hosts, Link, Verdict};
use relayout_verify::CheckResult;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A file that a verdict is about.
#[derive(Debug, Serialize)]
struct ModelFile {
    path: String,
    /// SHA-256 of the file, in hexadecimal.
    sha256: String,
    /// SHA-256 of what it keeps in other files, by their places beside it; absent if nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    data: BTreeMap<String, String>,
}

/// A verdict with what it is about, for programs.
#[derive(Serialize)]
struct Signed<'s, S: Serialize> {
    #[serde(flatten)]
    said: &'s S,
    /// The version of this program.
    version: &'static str,
    /// Both files, in the order in which they were named.
    models: [ModelFile; 2],
    /// Whose reading nodes have about which the standard and ONNX Runtime disagree: `onnx` or `onnxruntime`.
    reading: &'static str,
    /// The readings that it rests on, where the standard and ONNX Runtime differ.
    #[serde(skip_serializing_if = "<[AssumedReading]>::is_empty")]
    readings: &'s [AssumedReading],
    #[serde(skip_serializing_if = "Option::is_none")]
    same: Option<Vec<Link>>,
}

/// What a page says beside both files.
#[derive(Default)]
pub(crate) struct Page<'p> {
    /// The verdict in one line.
    pub(crate) head: String,
    /// Sets of sizes that it is about.
    pub(crate) sizes: &'p [BTreeMap<String, i64>],
    /// The hosts that it is about.
    pub(crate) hosts: Option<Hosts>,
    /// The readings that it rests on.
    pub(crate) readings: Vec<AssumedReading>,
    /// What is left to show.
    pub(crate) cut: Option<&'p Gap>,
    /// What a run found.
    pub(crate) ran: Option<&'p CheckResult>,
}

impl<'p> Page<'p> {
    /// Of a verdict of the checker.
    pub(crate) fn of(verdict: &'p Verdict) -> Page<'p> {
        Page { head: verdict.to_string(), sizes: verdict.sizes(), hosts: verdict.hosts(), ..Page::default() }
    }

    /// With the readings that it rests on.
    pub(crate) fn reads(self, readings: Vec<AssumedReading>) -> Self {
        Page { readings, ..self }
    }
}

/// Says a verdict in the form that was asked for. `text` is what is said to people.
pub(crate) fn told(
    a: &args::Prove,
    said: &impl Serialize,
    text: Option<String>,
    page: &Page<'_>,
) -> Result<(), Failure> {
    let wants_links = a.html.is_some() || (json() && a.links);
    let same =
        if wants_links { Some(relayout_proof::links(&a.a, &a.b, a.reading()).map_err(Failure::model)?) } else { None };
    let mut on_stdout = false;
    if let Some(path) = &a.html {
        let models = [file(&a.a)?, file(&a.b)?];
        let mut made = of(models, page, same.as_deref().unwrap_or_default());
        made.facts.insert(0, ("Read as".to_owned(), named(a.reading).to_owned()));
        ReportFile::new(path, made.html())?.commit()?;
        on_stdout = is_stdout(path);
    }
    if on_stdout {
        return Ok(());
    }
    if json() {
        let models = [file(&a.a)?, file(&a.b)?];
        let same = same.filter(|_| a.links);
        let (version, reading) = (env!("CARGO_PKG_VERSION"), named(a.reading));
        return say_json(&Signed { said, version, models, reading, readings: &page.readings, same });
    }
    let lines = text.into_iter().chain(page.readings.iter().map(ToString::to_string));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) }
}

/// A reading as the option names it.
fn named(reading: ReadingOf) -> &'static str {
    match reading {
        ReadingOf::Onnx => "onnx",
        ReadingOf::Onnxruntime => "onnxruntime",
    }
}

/// The page of a verdict. Where files lie is nobody's business to whom it is sent.
fn of(models: [ModelFile; 2], page: &Page<'_>, same: &[Link]) -> VerdictPage {
    let mut facts: Vec<(String, String)> = Vec::new();
    for sizes in page.sizes {
        let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        facts.push(("Sizes".to_owned(), sizes.join(", ")));
    }
    facts.extend(page.hosts.map(|hosts| ("Hosts".to_owned(), hosts.to_string())));
    facts.extend(page.readings.iter().map(|reading| ("Reading".to_owned(), reading.to_string())));
    facts.extend(page.ran.map(|ran| ("On random inputs".to_owned(), ran.to_string())));
    for model in &models {
        let data = model.data.iter().map(|(place, digest)| (format!("Data {place}"), format!("SHA-256 {digest}")));
        facts.extend(data);
    }
    let how =
        |link: &Link| if link.by_lemma { "over the reals, by a lemma" } else { "the same ops on the same elements" };
    let models = models.map(|model| (page::name(Path::new(&model.path)), model.sha256));
    let mut made = VerdictPage::new(page.head.clone(), env!("CARGO_PKG_VERSION"), models);
    made.facts = facts;
    made.links = same.iter().map(|link| [link.value.clone(), link.of.clone(), how(link).to_owned()]).collect();
    made.cut = page.cut.map(|cut| (cut.value.clone(), [cut.input.clone(), cut.result.clone()]));
    made
}

fn file(path: &Path) -> Result<ModelFile, Failure> {
    let file = Mapped::open(path).map_err(Failure::model)?;
    let data = Model::open(path).map(|model| model.external_data()).unwrap_or_default();
    let data = data.iter().map(|(place, bytes)| (place.clone(), digest(bytes))).collect();
    Ok(ModelFile { path: path.display().to_string(), sha256: digest(file.bytes()), data })
}

/// SHA-256 in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
