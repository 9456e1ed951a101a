//! Files and folders that are not in their place yet, so that they can be removed when a signal ends the process.

use std::collections::BTreeSet;
#[cfg(unix)]
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that is listed while this lives.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file or a folder and lists it; nobody removes what is listed between the two.
    pub(crate) fn make<T>(
        make: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> &Path,
    ) -> io::Result<(T, Self)> {
        let mut all = all();
        let made = make()?;
        let path = path(&made).to_owned();
        all.insert(path.clone());
        Ok((made, Self(path)))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

/// Removes all that is listed. What can't be removed stays. Until the answer is dropped, nothing is made.
#[cfg(unix)]
pub(crate) fn remove_all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    let all = all();
    for path in all.iter() {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_listed_while_it_is_unfinished() {
        let path = Path::new("no such folder/a file of this test");
        let ((), unfinished) = Unfinished::make(|| Ok(()), |()| path).unwrap();
        assert!(all().contains(path));
        drop(unfinished);
        assert!(!all().contains(path));
    }
}
