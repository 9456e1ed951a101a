//! Whole or not at all: a file is written beside its destination under another name and renamed when it is complete.
//!
//! Until then an error leaves whatever was there before; the unfinished file is removed when it is dropped. Permissions are
//! those of any new file under the process's umask. Links are followed, also one that leads nowhere yet: the file that a link
//! leads to is replaced and never the link. A device or a pipe is written to and never replaced.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::PREFIX;
use crate::error::{Error, Result};
use crate::map::Mapped;
use crate::open::open_to_write;
use crate::unfinished::Unfinished;

/// Links that are followed one after the other; as many as the system follows.
const MOST_LINKS: usize = 40;

/// A place for a regular file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileTarget {
    /// Canonical folder.
    pub dir: PathBuf,
    /// The file in it; links are followed, so that what is replaced is the file and not the link.
    pub path: PathBuf,
}

/// What a path to write to is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Destination {
    /// A file, there or not.
    File(FileTarget),
    /// A device or a pipe: written to, never replaced.
    Special,
}

/// Looks at `path` without changing anything.
///
/// # Errors
/// [`Error::Write`] for a folder, and for a file whose folder is not there.
pub fn destination(path: &Path) -> Result<Destination> {
    let error = |source| Error::write(path, source);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(error(io::Error::from(io::ErrorKind::IsADirectory))),
        Ok(found) if !found.is_file() => Ok(Destination::Special),
        Ok(_) => target(&path.canonicalize().map_err(error)?, path),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => target(&followed(path).map_err(error)?, path),
        Err(other) => Err(error(other)),
    }
}

/// Where a link to something that is not there leads; anything else as it is.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links lead to it"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn target(path: &Path, said: &Path) -> Result<Destination> {
    let error = |source| Error::write(said, source);
    let name = path.file_name().ok_or_else(|| error(io::Error::from(io::ErrorKind::InvalidFilename)))?;
    let dir = folder_of(path).canonicalize().map_err(error)?;
    Ok(Destination::File(FileTarget { path: dir.join(name), dir }))
}

/// Opens a device or a pipe for writing.
///
/// # Errors
/// [`Error::Write`], also if nothing reads from the pipe.
pub fn open_special(path: &Path) -> Result<File> {
    open_to_write(path).map_err(|source| Error::write(path, source))
}

/// A file that is not at its destination yet.
#[derive(Debug)]
pub struct Staged {
    temp: NamedTempFile,
    path: PathBuf,
    unfinished: Unfinished,
}

impl Staged {
    /// An empty file beside `path`, whose links were followed already: see [`destination`].
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn new(path: PathBuf) -> Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let made = Unfinished::make(|| builder.tempfile_in(folder_of(&path)), NamedTempFile::path);
        // The file that is made has a name that nobody knows.
        let (temp, unfinished) = made.map_err(|source| {
            let kind = source.kind();
            let why = format!("no file can be made in {}: {}", folder_of(&path).display(), io::Error::from(kind));
            Error::write(&path, io::Error::new(kind, why))
        })?;
        Ok(Self { temp, path, unfinished })
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        self.temp.as_file_mut()
    }

    /// Its destination.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// With another destination in the same folder.
    #[must_use]
    pub fn at(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Whether the file at `path` is a file, no link, and has the bytes that this one has so far.
    ///
    /// # Errors
    /// What reading either of them answers.
    pub fn equals(&self, path: &Path) -> io::Result<bool> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() || found.len() != self.temp.as_file().metadata()?.len() {
            return Ok(false);
        }
        same_bytes(self.temp.reopen()?, File::open(path)?)
    }

    /// Maps what was written so far.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn map(&self) -> Result<Mapped> {
        Mapped::file(self.temp.path())
    }

    /// Waits until the disk has the bytes.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn sync(&self) -> Result<()> {
        self.temp.as_file().sync_all().map_err(|source| Error::write(&self.path, source))
    }

    /// Puts it in its place, in the stead of what is there.
    ///
    /// # Errors
    /// [`Error::Write`]; what is there stays then.
    pub fn commit(self) -> Result<()> {
        let Self { temp, path, unfinished: _unfinished } = self;
        temp.persist(&path).map(drop).map_err(|error| Error::write(&path, error.error))
    }

    /// Puts it in its place if nothing is there.
    ///
    /// # Errors
    /// [`Error::Write`], also if something is there.
    pub fn commit_new(self) -> Result<()> {
        let Self { temp, path, unfinished: _unfinished } = self;
        temp.persist_noclobber(&path).map(drop).map_err(|error| Error::write(&path, error.error))
    }
}

fn same_bytes(mut a: File, mut b: File) -> io::Result<bool> {
    use std::io::Read as _;
    const PIECE: u64 = 1 << 20;
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    loop {
        of_a.clear();
        of_b.clear();
        (&mut a).take(PIECE).read_to_end(&mut of_a)?;
        (&mut b).take(PIECE).read_to_end(&mut of_b)?;
        if of_a != of_b || of_a.is_empty() {
            return Ok(of_a == of_b);
        }
    }
}

/// A small file whose bytes are ready, on its way to its place. It is made before the work that may still fail and committed
/// after it.
#[derive(Debug)]
pub struct Output(Way);

#[derive(Debug)]
enum Way {
    File(Staged),
    Special(PathBuf, Vec<u8>),
}

impl Output {
    /// Writes the bytes beside their place. Nothing is written to a device or a pipe yet.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let Destination::File(target) = destination(path)? else {
            return Ok(Self(Way::Special(path.to_owned(), bytes)));
        };
        let mut staged = Staged::new(target.path)?;
        staged.file().write_all(&bytes).map_err(|source| Error::write(path, source))?;
        Ok(Self(Way::File(staged)))
    }

    /// Puts the file in its place, or writes to the device or pipe.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn commit(self) -> Result<()> {
        match self.0 {
            Way::File(staged) => staged.commit(),
            Way::Special(path, bytes) => {
                open_special(&path)?.write_all(&bytes).map_err(|source| Error::write(&path, source))
            }
        }
    }
}

/// Waits until the disk has the names of the files in a folder.
///
/// # Errors
/// [`Error::Write`].
pub fn sync_folder(dir: &Path) -> Result<()> {
    // Other systems have no folders that can be opened as files.
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|source| Error::write(dir, source))?;
    }
    Ok(())
}
