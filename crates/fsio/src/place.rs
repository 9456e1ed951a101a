//! Folders that appear whole or not at all: written under another name beside their place and renamed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::PREFIX;
use crate::unfinished::Unfinished;

/// Gives a folder another name.
type Rename<'r> = &'r dyn Fn(&Path, &Path) -> io::Result<()>;

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
        let (fresh, unfinished) = Unfinished::make(|| self.beside(), tempfile::TempDir::path).map_err(failed)?;
        fill(fresh.path())?;
        // From here on it may be what was there before.
        drop(unfinished);
        Ok(self.put(fresh.path(), &|from, to| fs::rename(from, to)).map_err(|why| PlaceError::new(&self.said, why))?)
    }

    fn put(&self, fresh: &Path, rename: Rename<'_>) -> Result<(), String> {
        let said = |e: io::Error| e.to_string();
        if !self.replaces {
            return rename(fresh, &self.path).map_err(said);
        }
        if exchange(fresh, &self.path) {
            // What was there is where the new folder was, which goes with its temporary folder.
            return Ok(());
        }
        self.put_by_renames(fresh, rename)
    }

    fn put_by_renames(&self, fresh: &Path, rename: Rename<'_>) -> Result<(), String> {
        let said = |e: io::Error| e.to_string();
        let old = self.beside().map_err(said)?;
        let kept = old.path().join("old");
        rename(&self.path, &kept).map_err(said)?;
        let Err(error) = rename(fresh, &self.path) else { return Ok(()) };
        let Err(back) = rename(&kept, &self.path) else { return Err(said(error)) };
        // From here on nothing may delete it.
        let kept = old.keep().join("old");
        Err(format!("{error}; what was there is in {} now, because it cannot be put back: {back}", kept.display()))
    }

    fn beside(&self) -> io::Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        builder.tempdir_in(&self.parent)
    }
}

/// Puts one folder in the place of the other and the other way round, at once; `false`, and nothing done, where the system or
/// the file system cannot.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> Place {
        let said = dir.join("made");
        fs::create_dir(&said).unwrap();
        fs::write(said.join("old.txt"), "old").unwrap();
        Place::new(&said, |_, _| Ok(())).unwrap()
    }

    fn fresh(dir: &Path) -> PathBuf {
        let fresh = dir.join("fresh");
        fs::create_dir(&fresh).unwrap();
        fs::write(fresh.join("new.txt"), "new").unwrap();
        fresh
    }

    #[test]
    fn a_folder_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        let fill = |to: &Path| fs::write(to.join("new.txt"), "new").map_err(|e| PlaceError::new(to, e.to_string()));
        place.write(fill).unwrap();
        assert!(dir.path().join("made/new.txt").is_file() && !dir.path().join("made/old.txt").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_whose_renames_fail_is_kept() {
        // The first rename takes the old folder away, the second is to put the new one there, the third the old one back.
        for (works, whole) in [(0, true), (1, false)] {
            let dir = tempfile::tempdir().unwrap();
            let (place, fresh) = (place(dir.path()), fresh(dir.path()));
            let calls = std::cell::Cell::new(0);
            let rename = |from: &Path, to: &Path| {
                calls.set(calls.get() + 1);
                if calls.get() <= works { fs::rename(from, to) } else { Err(io::Error::other("no rename today")) }
            };
            let why = place.put_by_renames(&fresh, &rename).unwrap_err();
            assert!(why.contains("no rename today"), "{why}");
            assert_eq!(dir.path().join("made/old.txt").is_file(), whole);
            let kept = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path().join("old/old.txt"));
            let kept: Vec<PathBuf> = kept.filter(|path| path.is_file()).collect();
            assert_eq!(kept.len(), usize::from(!whole), "the old folder is somewhere");
            if let [kept] = &kept[..] {
                assert!(why.contains(kept.parent().unwrap().to_str().unwrap()), "{why} says where");
            }
        }
    }
}
