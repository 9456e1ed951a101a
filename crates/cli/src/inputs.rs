//! Which models `optimize` reads, and where each of them goes.
//!
//! A file that `-o` names is replaced if it is there. A name that follows from the model's, beside it or in a folder, is never
//! replaced without `--force`.

use crate::args::{Emit, Optimize};
use crate::commands::{is_stdio, is_stdout};
use crate::failure::Failure;
use glob::MatchOptions;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// A model to optimize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The model; `-` is stdin.
    pub(crate) model: PathBuf,
    /// Where the result goes; `-` is stdout.
    pub(crate) out: PathBuf,
    /// Whether the caller named this place, so that what is there is replaced.
    pub(crate) named: bool,
}

/// What a call asks for.
pub(crate) enum Jobs {
    /// One model.
    One(Job),
    /// Several, or those of a folder or a pattern, however many there are, and what is to be said before they are begun.
    Several(Vec<Job>, Vec<String>),
}

/// A model and its place below the folder that it was found in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ModelPath {
    path: PathBuf,
    below: PathBuf,
}

/// What a call asks for.
pub(crate) fn jobs(a: &Optimize) -> Result<Jobs, Failure> {
    if let [model] = &a.models[..]
        && !is_folder(model)
        && !is_pattern(model)
    {
        return one(a, model).map(Jobs::One);
    }
    if a.models.iter().any(|model| is_stdio(model)) {
        return Err(Failure::usage("a model from stdin is optimized alone; name files, folders or patterns"));
    }
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for model in &a.models {
        if is_folder(model) {
            let (models, left_out) = in_folder(model, a.output.out.as_deref())?;
            found.extend(models);
            notes.extend(left_out.iter().map(LeftOut::to_string));
        } else if is_pattern(model) {
            found.extend(by_pattern(model)?);
        } else {
            found.push(file(model)?);
        }
    }
    let jobs = found.into_iter().map(|found| several(a, found)).collect::<Result<Vec<_>, _>>()?;
    let jobs = apart(jobs)?;
    let searched = a.models.iter().any(|model| is_folder(model) || is_pattern(model));
    if searched && a.output.out.is_none() && !a.output.dry_run {
        let (count, s) = (jobs.len(), if jobs.len() == 1 { "" } else { "s" });
        notes.push(format!(
            "{count} model{s} found; each result goes beside its model (-o names a folder, --dry-run writes nothing)"
        ));
    }
    Ok(Jobs::Several(jobs, notes))
}

/// A folder that was not looked into, since what is in it is no model of the caller's.
struct LeftOut {
    path: PathBuf,
    why: &'static str,
}

impl LeftOut {
    /// Whether it is one: where packages are installed, or what some program can make again at any time.
    fn of(entry: &DirEntry) -> Option<LeftOut> {
        let path = entry.path();
        let why = match entry.file_name().to_str()? {
            "node_modules" | "site-packages" | "dist-packages" => "packages are installed there",
            "__pycache__" => "it is a cache",
            _ if path.join("pyvenv.cfg").is_file() => "it is a virtual environment of Python",
            _ if path.join("conda-meta").is_dir() => "it is an environment of conda",
            _ if path.join("CACHEDIR.TAG").is_file() => "its CACHEDIR.TAG says that it is a cache",
            _ => return None,
        };
        (entry.depth() > 0 && entry.file_type().is_dir()).then(|| LeftOut { path: path.to_owned(), why })
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is left out: {}; name it to have it", self.path.display(), self.why)
    }
}

fn one(a: &Optimize, model: &Path) -> Result<Job, Failure> {
    let model = model.to_owned();
    let derived = |out: PathBuf| Job { model: model.clone(), out, named: false };
    let out = match &a.output.out {
        Some(out) if is_folder(out) && !is_stdout(out) && a.output.emit == Emit::Onnx => {
            if is_stdio(&model) {
                return Err(Failure::usage("a model from stdin has no name; name the file to write with -o"));
            }
            return Ok(derived(out.join(file(&model)?.below)));
        }
        Some(out) => out.clone(),
        None if is_stdio(&model) => {
            return Err(Failure::usage("a model from stdin has no name; name the file to write with -o, or -o -"));
        }
        None => return Ok(derived(beside(&model, a.output.emit))),
    };
    Ok(Job { model, out, named: true })
}

fn several(a: &Optimize, found: ModelPath) -> Result<Job, Failure> {
    let ModelPath { path: model, below } = found;
    let out = match &a.output.out {
        None => beside(&model, a.output.emit),
        Some(out) if is_stdout(out) => {
            return Err(Failure::usage("several models cannot go to stdout; name a folder with -o"));
        }
        Some(out) if out.exists() && !out.is_dir() => {
            let out = out.display();
            return Err(Failure::usage(format!("several models need a folder, and {out} is a file; name one with -o")));
        }
        Some(out) if a.output.emit == Emit::Bundle => out.join(below).with_extension("bundle"),
        Some(out) => out.join(below),
    };
    Ok(Job { model, out, named: false })
}

/// Jobs of which no two read or write the same file.
fn apart(jobs: Vec<Job>) -> Result<Vec<Job>, Failure> {
    let mut by_out: BTreeMap<PathBuf, Job> = BTreeMap::new();
    let mut kept = Vec::new();
    for job in jobs {
        match by_out.get(&job.out) {
            None => {
                by_out.insert(job.out.clone(), job.clone());
                kept.push(job);
            }
            // Named twice, as a file and with its folder, say.
            Some(other) if other.model == job.model => {}
            Some(other) => {
                let (a, b, out) = (other.model.display(), job.model.display(), job.out.display());
                return Err(Failure::usage(format!("{a} and {b} would both be written to {out}; optimize them apart")));
            }
        }
    }
    Ok(kept)
}

/// Where the result of a model goes if nobody says it.
fn beside(model: &Path, emit: Emit) -> PathBuf {
    let mut name = model.file_stem().map(OsString::from).unwrap_or_default();
    name.push(if emit == Emit::Bundle { ".bundle" } else { ".relayout.onnx" });
    model.with_file_name(name)
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(std::path::is_separator)
}

/// Whether it is a pattern and no file of this name.
fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '['])) && !path.exists()
}

fn file(model: &Path) -> Result<ModelPath, Failure> {
    let name = model.file_name().ok_or_else(|| Failure::usage(format!("{} names no file", model.display())))?;
    Ok(ModelPath { path: model.to_owned(), below: name.into() })
}

/// The models of a folder and those below it, by name, and the folders that were left out. What earlier runs wrote there is left out, too, and so
/// is what is hidden.
fn in_folder(folder: &Path, out: Option<&Path>) -> Result<(Vec<ModelPath>, Vec<LeftOut>), Failure> {
    let out = out.and_then(|out| out.canonicalize().ok());
    let wanted = |entry: &DirEntry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let written = entry.file_type().is_dir() && out.is_some() && entry.path().canonicalize().ok() == out;
        entry.depth() == 0 || !(hidden || written)
    };
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    let mut entries = WalkDir::new(folder).sort_by_file_name().into_iter();
    while let Some(entry) = entries.next() {
        if let Ok(entry) = &entry
            && entry.file_type().is_dir()
        {
            let foreign = LeftOut::of(entry);
            if foreign.is_some() || !wanted(entry) {
                left_out.extend(foreign.filter(|_| wanted(entry)));
                entries.skip_current_dir();
                continue;
            }
        }
        let entry = entry.map_err(|e| Failure::model(format!("cannot read {}: {e}", folder.display())))?;
        if !wanted(&entry) {
            continue;
        }
        let path = entry.into_path();
        if is_model(&path)
            && let Ok(below) = path.strip_prefix(folder)
        {
            found.push(ModelPath { below: below.to_owned(), path });
        }
    }
    if found.is_empty() {
        return Err(Failure::model(format!("cannot read {}: the directory has no .onnx file", folder.display())));
    }
    Ok((found, left_out))
}

/// The models that a pattern names. Their places are counted from the last folder that the pattern names in full.
fn by_pattern(pattern: &Path) -> Result<Vec<ModelPath>, Failure> {
    let text = pattern.to_string_lossy();
    let base: PathBuf = pattern.components().take_while(|part| !is_pattern(Path::new(part.as_os_str()))).collect();
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let paths =
        glob::glob_with(&text, options).map_err(|e| Failure::usage(format!("`{text}` is not a pattern: {e}")))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(Failure::model)?;
        if is_model(&path) {
            let below = path.strip_prefix(&base).unwrap_or(&path).to_owned();
            found.push(ModelPath { path, below });
        }
    }
    if found.is_empty() {
        return Err(Failure::model(format!("no .onnx file matches `{text}`")));
    }
    Ok(found)
}

/// A file that is called as models are, and not as results.
fn is_model(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".onnx") && !name.ends_with(".relayout.onnx") && path.is_file()
}

/// That nothing is there which the caller did not name.
pub(crate) fn check_free(job: &Job, force: bool) -> Result<(), Failure> {
    if job.named || force || fs::symlink_metadata(&job.out).is_err() {
        return Ok(());
    }
    let out = job.out.display();
    Err(Failure::model(format!("cannot write {out}: it is there already; --force replaces it")))
}

/// Makes the folder that a result goes into, if the caller named only one above it.
pub(crate) fn make_folder(job: &Job) -> Result<(), Failure> {
    let folder = job.out.parent().filter(|folder| !job.named && !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), fs::create_dir_all);
    made.map_err(|e| Failure::model(format!("cannot write {}: {e}", job.out.display())))
}

#[cfg(test)]
mod tests {
    use super::{Job, apart, beside};
    use crate::args::Emit;
    use std::path::{Path, PathBuf};

    #[test]
    fn results_are_called_after_their_models() {
        for (model, onnx, bundle) in [
            ("model.onnx", "model.relayout.onnx", "model.bundle"),
            ("a/b.c.onnx", "a/b.c.relayout.onnx", "a/b.c.bundle"),
            ("a/model", "a/model.relayout.onnx", "a/model.bundle"),
        ] {
            assert_eq!(beside(Path::new(model), Emit::Onnx), PathBuf::from(onnx));
            assert_eq!(beside(Path::new(model), Emit::Bundle), PathBuf::from(bundle));
        }
    }

    #[test]
    fn what_is_named_twice_is_done_once_and_two_models_never_share_a_place() {
        let job = |model: &str, out: &str| Job { model: model.into(), out: out.into(), named: false };
        let [a, b, clash] = [job("m/a.onnx", "o/a.onnx"), job("m/b.onnx", "o/b.onnx"), job("n/a.onnx", "o/a.onnx")];
        assert_eq!(apart(vec![a.clone(), b.clone(), a.clone()]).unwrap(), [a.clone(), b]);
        let refused = apart(vec![a, clash]).unwrap_err();
        assert!(refused.message().unwrap().contains("m/a.onnx and n/a.onnx would both be written to o/a.onnx"));
    }
}
