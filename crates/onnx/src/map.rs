//! Files as bytes: mapped, not read. The only `unsafe` of this crate.
//!
//! A mapped file is an immutable `Bytes` whose slices keep the mapping alive. What this relies on, as every reader that maps
//! does: nobody truncates or rewrites the file in place while it is open. Writers that replace a file by renaming, as this
//! crate's does, are safe: the mapping keeps the old file.
//!
//! No file stays open: a model may have its weights in thousands of files. A copy by the kernel opens the file again, and
//! makes sure that it is still the one that was mapped.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};

/// A file and its bytes.
#[derive(Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    bytes: Bytes,
    /// `None` if the bytes were read from a pipe, or the system has no identities to compare.
    identity: Option<Identity>,
}

impl MappedFile {
    /// Maps the model at `path`. A pipe, which cannot be mapped, is read to its end.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let read = |source| Error::Read { path: path.to_owned(), source };
        if !is_pipe(fs::metadata(path).map_err(read)?.file_type()) {
            return Self::map(path);
        }
        let bytes = fs::read(path).map_err(read)?.into();
        Ok(Self { path: path.to_owned(), bytes, identity: None })
    }

    /// Maps the file at `path`; anything but a file is refused before it is opened.
    pub(crate) fn map(path: &Path) -> Result<Self> {
        let read = |source| Error::Read { path: path.to_owned(), source };
        let kind = fs::metadata(path).map_err(read)?.file_type();
        if !kind.is_file() {
            let kind = if kind.is_dir() { "directory" } else { "pipe, device or socket" };
            return Err(Error::NotAFile { path: path.to_owned(), kind });
        }
        let file = File::open(path).map_err(read)?;
        let identity = Identity::of(&file.metadata().map_err(read)?);
        let bytes = map(&file).map_err(read)?;
        Ok(Self { path: path.to_owned(), bytes, identity })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The offset of `slice` in this file, if it is one of the mapping's own slices and not merely equal to one.
    pub(crate) fn offset_of(&self, slice: &[u8]) -> Option<u64> {
        let whole = self.bytes.as_ptr_range();
        let part = slice.as_ptr_range();
        let inside = !slice.is_empty() && whole.start <= part.start && part.end <= whole.end;
        inside.then(|| (part.start.addr() - whole.start.addr()) as u64)
    }

    /// Whether `path` leads to the file that was mapped.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.identity.is_some() && fs::metadata(path).is_ok_and(|there| Identity::of(&there) == self.identity)
    }

    /// Copies `length` bytes from `offset` to the position of `to`; `false`, and nothing copied, if the file is no longer
    /// where it was. On Linux the kernel does it (`copy_file_range`, which shares extents where the file system can): that is
    /// what `std::io::copy` asks for between files, falling back by itself.
    pub(crate) fn copy_to(&self, offset: u64, length: u64, to: &mut File) -> io::Result<bool> {
        let Some(mut file) = self.reopen() else {
            return Ok(false);
        };
        file.seek(SeekFrom::Start(offset))?;
        let copied = io::copy(&mut file.take(length), to)?;
        if copied == length { Ok(true) } else { Err(io::Error::other("the input was cut off while it was copied")) }
    }

    fn reopen(&self) -> Option<File> {
        // Looked at before it is opened: opening a pipe that took the file's place would wait.
        self.is_at(&self.path).then_some(())?;
        let file = File::open(&self.path).ok()?;
        (Identity::of(&file.metadata().ok()?) == self.identity).then_some(file)
    }
}

/// What tells a file from all others while it exists, and from its own past if it was rewritten in place.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
}

impl Identity {
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
    fn of(file: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        Some(Self { device: file.dev(), inode: file.ino(), length: file.len() })
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

#[cfg(unix)]
fn is_pipe(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: fs::FileType) -> bool {
    false
}

#[allow(unsafe_code, reason = "a mapping is shared with the file system, which the type system cannot see")]
fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and outlives every slice of it, because `Bytes` owns it. That nobody truncates or
    // rewrites the file meanwhile cannot be checked; it is the documented condition of this module and of `ModelFile::open`.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
