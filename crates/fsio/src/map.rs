//! Files as bytes: mapped, not read.
//!
//! A mapped file is an immutable `Bytes` whose slices keep the mapping alive. What this relies on, as every reader that maps
//! does: nobody truncates or rewrites the file in place while it is open. A file that is replaced by a rename is safe: the
//! mapping keeps the old one. A file that was rewritten in place is noticed by [`Mapped::check`], which whoever made something of
//! the bytes calls before the result takes its place.
//!
//! No file stays open: a model may have its weights in thousands of files. A copy by the kernel opens the file again, and
//! makes sure that it is still the one that was mapped.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::open::{Opened, is_pipe, open, options};

/// A file and its bytes.
#[derive(Debug)]
pub struct Mapped {
    path: PathBuf,
    bytes: Bytes,
    /// `None` if the bytes were read from a pipe, or the system has no identities to compare.
    identity: Option<Identity>,
}

impl Mapped {
    /// Maps the file at `path`. A pipe, which cannot be mapped, is read to its end.
    pub fn open(path: &Path) -> Result<Self> {
        match open(path)? {
            Opened::File(file) => Self::map(path, &file),
            Opened::Pipe(mut pipe, mut bytes) => {
                pipe.read_to_end(&mut bytes).map_err(|source| Error::read(path, source))?;
                Ok(Self { path: path.to_owned(), bytes: bytes.into(), identity: None })
            }
        }
    }

    /// Maps the file at `path`; anything but a file is refused.
    pub fn file(path: &Path) -> Result<Self> {
        let pipe = || Error::NotAFile { path: path.to_owned(), kind: "pipe" };
        if fs::metadata(path).is_ok_and(|found| is_pipe(found.file_type())) {
            return Err(pipe());
        }
        match open(path)? {
            Opened::File(file) => Self::map(path, &file),
            Opened::Pipe(..) => Err(pipe()),
        }
    }

    fn map(path: &Path, file: &File) -> Result<Self> {
        let failed = |source| Error::read(path, source);
        let identity = Identity::of(&file.metadata().map_err(failed)?);
        let bytes = map(path, file).map_err(failed)?;
        Ok(Self { path: path.to_owned(), bytes, identity })
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes. The file must not be truncated while they or a slice of them live.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The offset of `slice` in this file, if it is one of the mapping's own slices and not merely equal to one.
    pub fn offset_of(&self, slice: &[u8]) -> Option<u64> {
        let whole = self.bytes.as_ptr_range();
        let part = slice.as_ptr_range();
        let inside = !slice.is_empty() && whole.start <= part.start && part.end <= whole.end;
        inside.then(|| (part.start.addr() - whole.start.addr()) as u64)
    }

    /// Whether `path` leads to the file that was mapped, rewritten or not.
    pub fn is_at(&self, path: &Path) -> bool {
        let there = fs::metadata(path).ok().as_ref().and_then(Identity::of);
        self.identity.as_ref().zip(there).is_some_and(|(mapped, there)| mapped.is_same_file(&there))
    }

    /// Whether the bytes are still those that were mapped, as far as the system can tell: the file has the size and the times
    /// that it had then. One that was replaced or removed since is fine, because the mapping has the old file.
    ///
    /// # Errors
    /// [`Error::Changed`] if the file was rewritten in place.
    pub fn check(&self) -> Result<()> {
        let there = fs::metadata(&self.path).ok().as_ref().and_then(Identity::of);
        match (&self.identity, there) {
            (Some(mapped), Some(there)) if mapped.is_same_file(&there) && *mapped != there => {
                Err(Error::Changed { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Copies `length` bytes from `offset` to the position of `to`; `false`, and nothing copied, if the file is no longer
    /// where it was. On Linux the kernel does it (`copy_file_range`, which shares extents where the file system can): that is
    /// what `std::io::copy` asks for between files, falling back by itself.
    pub fn copy_to(&self, offset: u64, length: u64, to: &mut File) -> io::Result<bool> {
        let Some(mut file) = self.reopen() else {
            return Ok(false);
        };
        file.seek(SeekFrom::Start(offset))?;
        let copied = io::copy(&mut file.take(length), to)?;
        if copied == length { Ok(true) } else { Err(io::Error::other("the input was cut off while it was copied")) }
    }

    fn reopen(&self) -> Option<File> {
        // Looked at before it is opened: opening a device that took the file's place may do something.
        self.is_at(&self.path).then_some(())?;
        let file = options().read(true).open(&self.path).ok()?;
        (Identity::of(&file.metadata().ok()?) == self.identity).then_some(file)
    }
}

/// What tells a file from all others while it exists, and from its own past if it was rewritten in place.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds of the last change of the bytes.
    modified: (i64, i64),
    /// Seconds and nanoseconds of the last change of anything, which nobody can set back.
    changed: (i64, i64),
}

impl Identity {
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
    fn of(file: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Option<Self> {
        None
    }

    fn is_same_file(&self, other: &Identity) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The mappings of this process: where each begins, its length, and its file.
static MAPPINGS: Mutex<BTreeMap<usize, (usize, PathBuf)>> = Mutex::new(BTreeMap::new());

/// The file that is mapped at an address.
pub(crate) fn file_at(address: usize) -> Option<PathBuf> {
    let mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, (length, path)) = mappings.range(..=address).next_back()?;
    // The system fills the last page up.
    (address - begin < length.next_multiple_of(PAGE)).then(|| path.clone())
}

/// The largest page of the systems that there are.
const PAGE: usize = 64 << 10;

/// A mapping that is listed while it is there.
struct Listed(memmap2::Mmap);

impl Listed {
    fn new(map: memmap2::Mmap, path: &Path) -> Self {
        let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
        mappings.insert(map.as_ptr().addr(), (map.len(), path.to_owned()));
        Self(map)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0.as_ptr().addr());
    }
}

impl AsRef<[u8]> for Listed {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[allow(unsafe_code, reason = "a mapping is shared with the file system, which the type system cannot see")]
fn map(path: &Path, file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and outlives every slice of it, because `Bytes` owns it. That nobody truncates or
    // rewrites the file meanwhile cannot be ruled out; it is the documented condition of this module and of `Mapped::bytes`,
    // and `Mapped::check` notices a breach afterwards.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(Listed::new(map, path)))
}
