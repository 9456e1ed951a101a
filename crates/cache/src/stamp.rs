//! What tells that a file is the one that was read before, without reading it again.

use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that was changed more recently may change again without another time: file systems count in steps of up to two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// A file, and the state that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) length: u64,
    /// Seconds and nanoseconds of the last change of the bytes.
    modified: (i64, i64),
    /// Seconds and nanoseconds of the last change of anything, which no program can set back.
    changed: (i64, i64),
}

impl Stamp {
    /// Reads the stamp of the file that a path leads to.
    pub(crate) fn of(path: &Path) -> io::Result<Stamp> {
        let found = fs::metadata(path)?;
        if found.is_file() { Ok(Stamp::of_file(&found)) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    #[cfg(unix)]
    fn of_file(file: &Metadata) -> Stamp {
        use std::os::unix::fs::MetadataExt as _;
        Stamp {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    #[cfg(not(unix))]
    fn of_file(file: &Metadata) -> Stamp {
        let since = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let modified = (since.as_secs().cast_signed(), i64::from(since.subsec_nanos()));
        Stamp { device: 0, inode: 0, length: file.len(), modified, changed: modified }
    }

    /// Whether a later change would give the file other times.
    pub(crate) fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = self.modified.max(self.changed);
        now.as_secs().cast_signed() - last.0 > SETTLED.as_secs().cast_signed()
    }
}
