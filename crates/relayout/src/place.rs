//! Folders that appear whole or not at all: written under another name beside their place and renamed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where a folder goes, checked before the work begins.
#[derive(Debug)]
pub struct Place {
    /// As the caller said it.
    said: PathBuf,
    /// The folder that it goes into.
    parent: PathBuf,
    /// Its place.
    path: PathBuf,
    /// There is a folder that is to be replaced.
    replaces: bool,
}

/// Why a folder can't be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {why}", place.display())]
#[non_exhaustive]
pub struct PlaceError {
    /// The folder, as the caller said it.
    pub place: PathBuf,
    /// What is in the way.
    pub why: String,
}

impl PlaceError {
    /// Something that is in the way of a folder.
    pub fn new(place: &Path, why: impl Into<String>) -> PlaceError {
        PlaceError { place: place.to_owned(), why: why.into() }
    }
}

impl Place {
    /// A place for a folder. Where one stands that is not empty, `may_replace` looks at it, with the sorted names of what is in
    /// it, and says why it has to stay.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn new(
        said: &Path,
        may_replace: impl FnOnce(&Path, &[String]) -> Result<(), String>,
    ) -> Result<Place, PlaceError> {
        let refused = |why: String| PlaceError::new(said, why);
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
        if !names.is_empty() {
            may_replace(&path, &names).map_err(refused)?;
        }
        let parent = path.parent().ok_or_else(|| refused("it is the root".to_owned()))?.to_owned();
        Ok(Place { said: said.to_owned(), parent, path, replaces: true })
    }

    /// Has a folder beside the place filled and puts it there. What was there before goes only when the new folder is in its
    /// place; after an error it is as it was.
    ///
    /// # Errors
    /// What `fill` answers, or [`PlaceError`].
    pub fn write<E: From<PlaceError>>(&self, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
        let failed = |e: io::Error| PlaceError::new(&self.said, e.to_string());
        let fresh = self.beside().map_err(failed)?;
        fill(fresh.path())?;
        Ok(self.put(fresh.path()).map_err(failed)?)
    }

    fn put(&self, fresh: &Path) -> io::Result<()> {
        if !self.replaces {
            return fs::rename(fresh, &self.path);
        }
        let old = self.beside()?;
        let kept = old.path().join("old");
        fs::rename(&self.path, &kept)?;
        if let Err(error) = fs::rename(fresh, &self.path) {
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
