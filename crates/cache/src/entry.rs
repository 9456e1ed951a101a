//! An entry: an optimized model with the facts by which it is believed, or the note that a model is to be loaded as it is.

use crate::digest;
use crate::folder::{Private, Slot, write_private};
use crate::stamp::Stamp;
use relayout::Optimized;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file of an entry that says what the others are.
pub(crate) const MANIFEST: &str = "entry.json";

/// The optimized model.
const MODEL: &str = "model.onnx";

/// An entry that was used is marked at most so often.
const MARKED: Duration = Duration::from_secs(60);

/// What was said of a model when its entry was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// What the optimizer says of its result.
    pub(crate) summary: Option<String>,
    /// Why the model is to be loaded as it is.
    pub(crate) plain: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    key: String,
    said: Said,
    files: Vec<Part>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    digest: String,
    stamp: Stamp,
}

/// An entry that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The optimized model; `None` if the model is to be loaded as it is.
    pub(crate) model: Option<PathBuf>,
    pub(crate) said: Said,
}

/// What there is of a key.
pub(crate) enum Lookup {
    Entry(Entry),
    Nothing,
    /// An entry whose files are not those that were written.
    Damaged,
}

/// Looks for the entry of a key, and whether its files are those that were written.
pub(crate) fn look_up(cache: &Private, key: &str) -> Lookup {
    let folder = cache.entries().join(key);
    let text = match fs::read(folder.join(MANIFEST)) {
        Ok(text) => text,
        Err(_) if folder.exists() => return Lookup::Damaged,
        Err(_) => return Lookup::Nothing,
    };
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(manifest) if manifest.key == key => manifest.checked(&folder).map_or(Lookup::Damaged, Lookup::Entry),
        _ => Lookup::Damaged,
    }
}

impl Manifest {
    /// The entry, if its files are those that were written.
    fn checked(mut self, folder: &Path) -> Option<Entry> {
        let mut moved = false;
        for part in &mut self.files {
            let path = folder.join(&part.name);
            // A link leads to what somebody else may write.
            if !fs::symlink_metadata(&path).ok()?.is_file() {
                return None;
            }
            let there = Stamp::of(&path).ok()?;
            if there == part.stamp {
                continue;
            }
            if there.length != part.stamp.length || digest::of_file(&path).ok()? != part.digest {
                return None;
            }
            (part.stamp, moved) = (there, true);
        }
        let model = self.files.iter().any(|part| part.name == MODEL).then(|| folder.join(MODEL));
        if model.is_none() && self.said.plain.is_none() {
            return None;
        }
        if moved {
            // The folder was copied or restored. Where that can't be noted, the digests are taken again.
            let _ = self.write(folder);
        }
        mark(&folder.join(MANIFEST));
        Some(Entry { model, said: self.said })
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        write_private(&folder.join(MANIFEST), &serde_json::to_vec(self)?)
    }
}

/// Notes that an entry was used now. Where that can't be noted, it goes earlier.
fn mark(manifest: &Path) {
    let now = SystemTime::now();
    let recent = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age < MARKED);
    if !fs::metadata(manifest).and_then(|found| found.modified()).is_ok_and(recent) {
        let _ = File::options().append(true).open(manifest).and_then(|file| file.set_modified(now));
    }
}

/// Keeps a result, or what was said of a model that stays as it is; why it can't be kept.
pub(crate) fn keep(
    cache: &Private,
    slot: &Slot,
    key: &str,
    (made, said): (Option<&Optimized>, &Said),
) -> Result<Entry, String> {
    let failed = |e: io::Error| e.to_string();
    let fresh = slot.fresh(key).map_err(failed)?;
    if let Some(made) = made {
        made.write(fresh.join(MODEL)).map_err(|e| e.to_string())?;
    }
    let files = written(&fresh).map_err(|e| e.to_string())?;
    let manifest = Manifest { key: key.to_owned(), said: said.clone(), files };
    manifest.write(&fresh).map_err(failed)?;
    cache.put(slot, &fresh, key)?;
    let model = made.map(|_| cache.entries().join(key).join(MODEL));
    Ok(Entry { model, said: said.clone() })
}

/// The files of a folder, once the disk has them: an entry never names what a crash of the system may take.
fn written(folder: &Path) -> Result<Vec<Part>, Box<dyn std::error::Error>> {
    let mut parts = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let open = File::options().read(true).write(true).open(&path)?;
        #[cfg(unix)]
        open.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        open.sync_all()?;
        parts.push(Part { name, digest: digest::of_file(&path)?, stamp: Stamp::of(&path)? });
    }
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(parts)
}
