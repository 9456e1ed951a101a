//! The folder of a cache: who may look into it, who writes, and what goes when it is full.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What entries mean: another number where that changes.
const FORMAT: &str = "1";

/// Digests of models that are remembered.
const MOST_KNOWN: usize = 1024;

/// Where programs of this user keep what can be made again: `relayout` in `$XDG_CACHE_HOME`, `%LOCALAPPDATA%` or `~/.cache`. Whether it
/// is there or not.
pub fn cache_folder() -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let caches = named("XDG_CACHE_HOME")
        .or_else(|| named("LOCALAPPDATA"))
        .or_else(|| named("HOME").map(|home| home.join(".cache")));
    Some(caches?.join("relayout"))
}

/// A folder in which optimized models are kept. It is made when something is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCache {
    folder: PathBuf,
    most_bytes: u64,
}

impl ModelCache {
    /// The most bytes of a cache for which nothing else is said: 4 GiB.
    pub const MOST_BYTES: u64 = 4 << 30;

    /// The cache in a folder.
    pub fn new(folder: impl Into<PathBuf>) -> ModelCache {
        ModelCache { folder: folder.into(), most_bytes: ModelCache::MOST_BYTES }
    }

    /// The cache of this user, in [`cache_folder`].
    pub fn of_user() -> Option<ModelCache> {
        Some(ModelCache::new(cache_folder()?.join("models")))
    }

    /// With at most so many bytes of optimized models. What has more is not kept.
    #[must_use]
    pub fn most_bytes(mut self, bytes: u64) -> ModelCache {
        self.most_bytes = bytes;
        self
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is in it, if it is there and this user's alone.
    pub(crate) fn look(&self) -> Option<Private> {
        let root = self.folder.join(FORMAT);
        is_private(&root).ok()?.then_some(Private { root, most_bytes: self.most_bytes })
    }

    /// Opens the folder, which is made if it is not there; or why it can't be made.
    pub(crate) fn open(&self) -> Result<Private, String> {
        let root = self.folder.join(FORMAT);
        let failed = |e: io::Error| format!("nothing is kept, because {} cannot be used: {e}", self.folder.display());
        let private = Private { root, most_bytes: self.most_bytes };
        for folder in [private.root.clone(), private.entries(), private.known(), private.locks(), private.unfinished()]
        {
            make_private(&folder).map_err(failed)?;
        }
        if is_private(&private.root).map_err(failed)? {
            return Ok(private);
        }
        Err(format!("nothing is kept, because {} is not this user's alone", private.root.display()))
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Whether a folder belongs to this user, and nobody else may look into it.
#[cfg(unix)]
fn is_private(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(folder)?;
    let of_others = found.mode() & 0o077;
    Ok(found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && of_others == 0)
}

/// Elsewhere the folder of a user is private by itself.
#[cfg(not(unix))]
fn is_private(folder: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(folder)?.is_dir())
}

/// Writes a small file whole or not at all, for this user alone.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The folder of a cache that is this user's alone.
#[derive(Clone, Debug)]
pub(crate) struct Private {
    root: PathBuf,
    most_bytes: u64,
}

impl Private {
    /// A folder for each key.
    pub(crate) fn entries(&self) -> PathBuf {
        self.root.join("entries")
    }

    /// Digests of models.
    pub(crate) fn known(&self) -> PathBuf {
        self.root.join("known")
    }

    fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// What is not in its place yet, and what is about to go; a folder for each lock.
    fn unfinished(&self) -> PathBuf {
        self.root.join("new")
    }

    /// Waits until nobody else makes an entry of this key.
    pub(crate) fn lock(&self, key: &str) -> io::Result<Slot> {
        self.slot(key.get(..2).unwrap_or_default(), File::lock)
    }

    /// A lock, once `take` has it. Locks are of the first letters of keys: their files are few, and none is ever removed.
    fn slot(&self, name: &str, take: impl FnOnce(&File) -> io::Result<()>) -> io::Result<Slot> {
        let lock = File::options().create(true).truncate(false).write(true).open(self.locks().join(name))?;
        take(&lock)?;
        let folder = self.unfinished().join(name);
        // The process that wrote there before was killed.
        let _ = fs::remove_dir_all(&folder);
        make_private(&folder)?;
        Ok(Slot { folder, _lock: lock })
    }

    /// Puts a finished folder in its place, unless there is no room for it. What was used least recently goes.
    pub(crate) fn put(&self, slot: &Slot, made: &Path, key: &str) -> Result<(), String> {
        let size = size_of(made);
        if size > self.most_bytes {
            return Err(format!("it has {size} bytes, and a cache of {} has no room for it", self.most_bytes));
        }
        self.shrink(slot, self.most_bytes - size, key);
        let place = self.entries().join(key);
        self.drop_entry(slot, key);
        fs::rename(made, place).map_err(|e| e.to_string())?;
        self.tidy(slot);
        Ok(())
    }

    /// Removes an entry, at once for all who look.
    pub(crate) fn drop_entry(&self, slot: &Slot, key: &str) {
        let gone = slot.folder.join(format!("{key}.gone"));
        if fs::rename(self.entries().join(key), &gone).is_ok() {
            // What is left goes with the next entry of this lock.
            let _ = fs::remove_dir_all(gone);
        }
    }

    /// Removes entries until the others have at most so many bytes, those first that were used least recently.
    fn shrink(&self, slot: &Slot, most: u64, but: &str) {
        let Ok(entries) = fs::read_dir(self.entries()) else { return };
        let mut found: Vec<(SystemTime, u64, String)> = entries
            .flatten()
            .map(|entry| {
                (used(&entry.path()), size_of(&entry.path()), entry.file_name().to_string_lossy().into_owned())
            })
            .filter(|(.., key)| key != but)
            .collect();
        found.sort();
        let mut sum: u64 = found.iter().map(|(_, size, _)| size).sum();
        for (_, size, key) in found {
            if sum <= most {
                break;
            }
            self.drop_entry(slot, &key);
            sum -= size;
        }
    }

    /// Removes what killed processes left, and digests that nobody asked for lately.
    fn tidy(&self, own: &Slot) {
        let others = fs::read_dir(self.unfinished()).into_iter().flatten().flatten().map(|entry| entry.path());
        for other in others
            .filter(|other| *other != own.folder && fs::read_dir(other).is_ok_and(|mut in_it| in_it.next().is_some()))
        {
            let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Taking the lock clears the folder; one that is held is in use.
            let _ = self.slot(&name, |lock| {
                lock.try_lock().map_err(|e| match e {
                    TryLockError::Error(e) => e,
                    TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
                })
            });
        }
        let records = fs::read_dir(self.known()).into_iter().flatten().flatten();
        let mut records: Vec<(SystemTime, PathBuf)> =
            records.map(|entry| (modified(&entry.path()), entry.path())).collect();
        records.sort();
        let too_many = records.len().saturating_sub(MOST_KNOWN);
        for (_, path) in records.into_iter().take(too_many) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The right to make entries of some keys, and the folder in which they are made.
#[derive(Debug)]
pub(crate) struct Slot {
    folder: PathBuf,
    /// Held while the file is open.
    _lock: File,
}

impl Slot {
    /// An empty folder, on the file system of the entries.
    pub(crate) fn fresh(&self, key: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(key);
        make_private(&folder)?;
        Ok(folder)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // What stays goes with the next entry of this lock.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// When an entry was used last.
fn used(entry: &Path) -> SystemTime {
    modified(&entry.join(crate::entry::MANIFEST))
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Bytes of the files of a folder.
fn size_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum()
}
