//! Whole or not at all: a file is written beside its destination under another name and renamed when it is complete.
//!
//! Until then an error leaves whatever was there before; the unfinished file is removed when it is dropped. Permissions are
//! those of any new file under the process's umask.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::error::{Error, Result};

/// A place for a regular file.
#[derive(Debug)]
pub(super) struct Target {
    /// Canonical folder.
    pub(super) dir: PathBuf,
    /// The file in it; links are followed, so that what is replaced is the file and not the link.
    pub(super) path: PathBuf,
}

/// What a path to write to is.
#[derive(Debug)]
pub(super) enum Destination {
    File(Target),
    /// A device or a pipe: written to, never replaced.
    Special,
}

/// Looks at `path` without changing anything.
pub(super) fn destination(path: &Path) -> Result<Destination> {
    let error = |source| write_error(path, source);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(error(io::Error::from(io::ErrorKind::IsADirectory))),
        Ok(found) if !found.is_file() => Ok(Destination::Special),
        Ok(_) => target(&path.canonicalize().map_err(error)?),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => target(path),
        Err(other) => Err(error(other)),
    }
}

fn target(path: &Path) -> Result<Destination> {
    let error = |source| write_error(path, source);
    let name = path.file_name().ok_or_else(|| error(io::Error::from(io::ErrorKind::InvalidFilename)))?;
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let dir = dir.canonicalize().map_err(error)?;
    Ok(Destination::File(Target { path: dir.join(name), dir }))
}

pub(super) fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write { file: path.display().to_string(), source }
}

/// A file that is not at its destination yet.
#[derive(Debug)]
pub(super) struct Staged {
    temp: NamedTempFile,
    path: PathBuf,
}

impl Staged {
    /// An empty file beside `path`.
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let mut builder = Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let temp = builder.tempfile_in(dir).map_err(|source| write_error(&path, source))?;
        Ok(Self { temp, path })
    }

    pub(super) fn file(&mut self) -> &mut File {
        self.temp.as_file_mut()
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Waits until the disk has the bytes.
    pub(super) fn sync(&self) -> Result<()> {
        self.temp.as_file().sync_all().map_err(|source| write_error(&self.path, source))
    }

    fn persist(self) -> Result<()> {
        let Self { temp, path } = self;
        temp.persist(&path).map(drop).map_err(|error| write_error(&path, error.error))
    }
}

const PREFIX: &str = ".relayout-";

/// Puts both files in place, the model last: a reader that sees the new model sees its data. If the model cannot be put in
/// place, the data file is put back as it was.
pub(super) fn commit(data: Option<Staged>, model: Staged) -> Result<()> {
    let Some(data) = data else {
        return model.persist();
    };
    let data_path = data.path.clone();
    let before = backup(&data_path);
    data.persist()?;
    let done = model.persist();
    if done.is_err() {
        // The first error is the one to report.
        let _ = match before {
            Some(before) => before.persist(&data_path).map(drop).map_err(|error| error.error),
            None => fs::remove_file(&data_path),
        };
    }
    done
}

/// A second name for the file at `path`, if there is one and the file system has links.
fn backup(path: &Path) -> Option<NamedTempFile<()>> {
    let dir = path.parent()?;
    Builder::new().prefix(PREFIX).make_in(dir, |link| fs::hard_link(path, link)).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn staged(path: &Path, text: &str) -> Staged {
        let mut staged = Staged::new(path.to_owned()).unwrap();
        staged.file().write_all(text.as_bytes()).unwrap();
        staged
    }

    #[test]
    fn a_model_that_cannot_be_put_in_place_leaves_the_old_data_file() {
        for old in [Some("old"), None] {
            let dir = tempfile::tempdir().unwrap();
            let (data, model) = (dir.path().join("m.data"), dir.path().join("m"));
            if let Some(old) = old {
                fs::write(&data, old).unwrap();
            }
            let (new_data, new_model) = (staged(&data, "new"), staged(&model, "new"));
            // A folder that appears after the destination was looked at: the rename fails.
            fs::create_dir(&model).unwrap();
            commit(Some(new_data), new_model).unwrap_err();
            assert_eq!(fs::read_to_string(&data).ok().as_deref(), old);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1 + usize::from(old.is_some()));
        }
    }
}
