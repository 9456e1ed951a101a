//! Files of a folder that a stranger made: no link is followed below the folder, and no path leads out of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// A folder whose files are read without leaving it.
#[derive(Debug)]
pub struct Inside {
    dir: PathBuf,
}

/// Whether a path, with `/` between its parts, stays in the folder that it is relative to and has one spelling.
pub fn is_inside(path: &str) -> bool {
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<&str> = path.split('/').collect();
    Path::new(path).components().all(normal) && parts.iter().all(|part| !part.is_empty() && *part != ".")
}

impl Inside {
    /// The folder at `dir`, which may be a link.
    pub fn new(dir: impl Into<PathBuf>) -> Inside {
        Inside { dir: dir.into() }
    }

    /// The folder, as it was given.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the file at `path`, which is relative to the folder.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::InvalidInput`] for what is no file in the folder: a path that leaves it, a link, a
    /// device, a pipe.
    pub fn open(&self, path: &str) -> io::Result<File> {
        if !is_inside(path) {
            return Err(refused("its path leaves the folder"));
        }
        let file = self.walk(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(refused("it is not a file")) }
    }

    /// All bytes of the file at `path`.
    ///
    /// # Errors
    /// Those of [`Inside::open`].
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// From folder to folder, each opened in the one before, so that nobody puts a link between a look and a step.
    #[cfg(unix)]
    fn walk(&self, path: &str) -> io::Result<File> {
        use rustix::fs::{CWD, Mode, OFlags, openat};
        use rustix::io::Errno;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut at = openat(CWD, &self.dir, flags | OFlags::DIRECTORY, Mode::empty())?;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let kind = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
            at = openat(&at, part, flags | OFlags::NOFOLLOW | kind, Mode::empty()).map_err(|error| match error {
                // A link; as a folder that is opened it is also no folder.
                Errno::LOOP | Errno::MLINK => refused("it is a link"),
                Errno::NOTDIR => refused("it lies below a link or a file"),
                other => other.into(),
            })?;
        }
        Ok(at.into())
    }

    #[cfg(not(unix))]
    fn walk(&self, path: &str) -> io::Result<File> {
        let mut at = self.dir.clone();
        for part in path.split('/') {
            at.push(part);
            if std::fs::symlink_metadata(&at)?.is_symlink() {
                return Err(refused("it is a link"));
            }
        }
        File::open(at)
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
