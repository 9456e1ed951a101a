//! A model and its data file: whole as a pair.
//!
//! Two files cannot be renamed at once. So the data file gets a name under which nothing is there, and the model, which names it,
//! is renamed last: before that the old model has its old data, after it the new model has its new data. A process that ends in
//! between leaves a data file that nothing refers to.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use relayout_fsio::{FileTarget, Staged};

use super::options::WriteOptions;
use super::plan::{Placement, Plan};
use super::survey::{data_names, earlier_data, normal};
use crate::error::{Error, Result};
use crate::external::{Reference, is_external};
use crate::file::ModelFile;
use crate::proto::{ModelProto, TensorProto};

/// Finds a name for the data file under which nothing is there, and tells the plan. A file with the same bytes that is there
/// already serves as well: then there is nothing to put in place.
pub(super) fn place(data: Option<Staged>, plan: &mut Plan<'_>, target: &FileTarget) -> Result<Option<Staged>> {
    let Some(data) = data else { return Ok(None) };
    for name in data_names(target).into_iter().flatten() {
        if !plan.may_be_data(&name) {
            continue;
        }
        let path = target.dir.join(&name);
        let same = match data.equals(&path) {
            Ok(same) => same,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                plan.name_data(&name);
                return Ok(Some(data.at(path)));
            }
            // What cannot be read is somebody else's.
            Err(_) => false,
        };
        if same {
            plan.name_data(&name);
            return Ok(None);
        }
    }
    Err(Error::OutputName { path: target.path.clone() })
}

/// Puts both files in place, the model last. If the model cannot be put in place, the data file goes again. `between` is called
/// between the two.
pub(super) fn commit(data: Option<Staged>, model: Staged, sync: bool, between: impl FnOnce()) -> Result<()> {
    let folder = model.path().parent().map(Path::to_owned).filter(|_| sync);
    let sync = || folder.as_deref().map_or(Ok(()), relayout_fsio::sync_folder);
    let data_path = data.as_ref().map(|data| data.path().to_owned());
    if let Some(data) = data {
        data.commit_new()?;
        sync()?;
    }
    between();
    let done = model.commit();
    if let (Err(_), Some(path)) = (&done, data_path) {
        // The first error is the one to report.
        let _ = fs::remove_file(path);
    }
    done?;
    Ok(sync()?)
}

/// Data files of the model that is about to be replaced which nothing that is known refers to after that: neither the new model
/// nor the input, if that is another file.
pub(super) fn superseded(
    model: &ModelProto,
    plan: &Plan<'_>,
    target: &FileTarget,
    options: &WriteOptions<'_>,
) -> Vec<PathBuf> {
    let kept = target.dir.join(&plan.data_name);
    let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let mut old: Vec<PathBuf> = earlier_data(target);
    old.retain(|path| plan.has_data() && *path != kept && is_file(path));
    if old.is_empty() {
        return old;
    }
    let Ok(before) = ModelFile::open(&target.path) else { return Vec::new() };
    let of_old = files(&before.proto, &target.dir, |_| true);
    let mut used = files(model, &target.dir, |tensor| matches!(plan.placement(tensor), Placement::AsItIs));
    if let Some(input) = options.input.filter(|input| !input.mapped().is_some_and(|file| file.is_at(&target.path))) {
        used.extend(input.dir().into_iter().flat_map(|dir| files(&input.proto, dir, |_| true)));
    }
    old.retain(|path| of_old.contains(path) && !used.contains(path));
    old
}

/// Files that tensors refer to: by name, and where links lead.
fn files(model: &ModelProto, dir: &Path, wanted: impl Fn(&TensorProto) -> bool) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    for tensor in model.tensors().into_iter().filter(|tensor| is_external(tensor) && wanted(tensor)) {
        let Ok(reference) = Reference::of(tensor) else { continue };
        let path = dir.join(normal(reference.location));
        if found.insert(path.clone()) {
            found.extend(path.canonicalize().ok());
        }
    }
    found
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
    fn a_model_that_cannot_be_put_in_place_takes_its_data_file_away() {
        let dir = tempfile::tempdir().unwrap();
        let (data, model) = (dir.path().join("m.data"), dir.path().join("m"));
        let (new_data, new_model) = (staged(&data, "new"), staged(&model, "new"));
        // A folder that appears after the destination was looked at: the rename fails.
        fs::create_dir(&model).unwrap();
        commit(Some(new_data), new_model, false, || ()).unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_data_file_that_appears_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (data, model) = (dir.path().join("m.data"), dir.path().join("m"));
        let (new_data, new_model) = (staged(&data, "new"), staged(&model, "new"));
        fs::write(&data, "someone's").unwrap();
        commit(Some(new_data), new_model, true, || ()).unwrap_err();
        assert_eq!(fs::read(&data).unwrap(), b"someone's");
        assert!(!model.exists());
    }
}
