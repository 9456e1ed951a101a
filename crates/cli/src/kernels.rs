//! `relayout kernels`: CUDA kernels for the moves that a model has left, in a folder of their own.
//!
//! The folder appears whole or not at all: it is written under another name beside its place and renamed.

use crate::args;
use crate::commands::{is_stdio, of_library, open, options, say, target};
use crate::failure::Failure;
use crate::progress::Progress;
use relayout::codegen::cuda::Arch;
use relayout::{KernelOptions, Kernels, optimize as optimize_model};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `relayout kernels`
pub(crate) fn kernels(a: &args::Kernels) -> Result<(), Failure> {
    if is_stdio(&a.output) {
        return Err(Failure::usage("the kernels are several files; name a folder for them, not stdout"));
    }
    let target = target(&a.decide)?;
    let place = Place::new(&a.output, a.force)?;
    let progress = Progress::start(format!("optimizing {}", a.model.display()));
    let model = open(&a.model)?;
    let optimized = optimize_model(&model, target.as_ref(), &options(&a.decide)).map_err(of_library)?;
    drop(progress);
    let wanted = a
        .decide
        .dims
        .iter()
        .fold(KernelOptions::default().arch(a.arch), |options, (name, size)| options.dim(name, *size));
    let made = relayout::kernels(optimized.graph(), &wanted);
    place.write(&made.files().map_err(Failure::model)?)?;
    say(&summary(&made, &a.output))
}

/// An architecture by its name.
pub(crate) fn arch(text: &str) -> Result<Arch, String> {
    let known = || Arch::ALL.iter().map(|arch| arch.as_str()).collect::<Vec<_>>().join(", ");
    let found = Arch::ALL.iter().copied().find(|arch| arch.as_str() == text);
    found.ok_or_else(|| format!("there is no `{text}`; say one of {}", known()))
}

/// One line, and one more for each move without a kernel.
fn summary(made: &Kernels, place: &Path) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let manifest = &made.manifest;
    let mut text = format!(
        "{}, {} in {}",
        plural(manifest.moves.len(), "move"),
        plural(manifest.kernels.len(), "kernel"),
        place.display()
    );
    for without in made.without() {
        let why = without.why.as_deref().unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(text, "\nno kernel for `{}`: {why}", without.result);
    }
    text
}

/// Where the folder goes, checked before the work begins.
struct Place {
    /// As the user said it.
    said: PathBuf,
    /// The folder that it goes into.
    parent: PathBuf,
    /// Its place.
    path: PathBuf,
    /// There is a folder that is to be replaced.
    replaces: bool,
}

impl Place {
    fn new(said: &Path, force: bool) -> Result<Place, Failure> {
        let refused = |why: String| Failure::model(format!("cannot write {}: {why}", said.display()));
        let path = match fs::symlink_metadata(said) {
            // A link to a folder stands for the folder.
            Ok(_) => said.canonicalize().map_err(|e| refused(e.to_string()))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let name = said.file_name().ok_or_else(|| refused("it names no folder".to_owned()))?;
                let parent = said.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let parent = parent.canonicalize().map_err(|e| refused(format!("{}: {e}", parent.display())))?;
                return Ok(Place { said: said.to_owned(), path: parent.join(name), parent, replaces: false });
            }
            Err(e) => return Err(refused(e.to_string())),
        };
        let entries = fs::read_dir(&path).map_err(|e| refused(e.to_string()))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| refused(e.to_string()))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        if !force && !names.is_empty() {
            return Err(refused(
                "the folder is not empty; --force replaces what an earlier run wrote there".to_owned(),
            ));
        }
        // What somebody else put there is not ours to take away.
        let ours = |name: &String| [".cu", ".json"].iter().any(|end| name.ends_with(end));
        let manifest = names.iter().any(|name| name == "manifest.json");
        if let Some(foreign) = names.iter().find(|name| !ours(name) || !manifest) {
            return Err(refused(format!("it has `{foreign}`, which this command did not write; name another folder")));
        }
        let parent = path.parent().ok_or_else(|| refused("it is the root".to_owned()))?.to_owned();
        Ok(Place { said: said.to_owned(), parent, path, replaces: true })
    }

    fn write(&self, files: &[(String, String)]) -> Result<(), Failure> {
        self.try_write(files).map_err(|e| Failure::model(format!("cannot write {}: {e}", self.said.display())))
    }

    /// Writes beside the place and renames. What was there before goes only when the new folder is in its place.
    fn try_write(&self, files: &[(String, String)]) -> io::Result<()> {
        let fresh = self.beside()?;
        for (name, text) in files {
            fs::write(fresh.path().join(name), text)?;
        }
        if !self.replaces {
            fs::rename(fresh.path(), &self.path)?;
            return Ok(());
        }
        let old = self.beside()?;
        let kept = old.path().join("old");
        fs::rename(&self.path, &kept)?;
        if let Err(error) = fs::rename(fresh.path(), &self.path) {
            fs::rename(&kept, &self.path)?;
            return Err(error);
        }
        Ok(())
    }

    fn beside(&self) -> io::Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".relayout-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        builder.tempdir_in(&self.parent)
    }
}
