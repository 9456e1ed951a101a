//! Files that a call writes beside its result. None may be a model that is read, nor may two be the same.

use crate::failure::Failure;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Fails where a file that an option names is one of the models, or one that another option names.
///
/// `written` has each option with the path that it was given, the result first; `read` has the models. Streams and devices are never the
/// same. A result may stand in its model's place.
pub(crate) fn check_written(written: &[(&str, Option<&Path>)], read: &[&Path]) -> Result<(), Failure> {
    let models: Vec<PathBuf> = read.iter().filter_map(|path| place(path)).collect();
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in written {
        let Some((path, place)) = path.and_then(|path| Some((path, place(path)?))) else { continue };
        let at = path.display();
        if *option != RESULT && models.contains(&place) {
            return Err(Failure::usage(format!("{option} {at} would replace the model; name another file")));
        }
        if let Some((other, _)) = taken.iter().find(|(_, other)| *other == place) {
            return Err(Failure::usage(format!("{other} and {option} would both be written to {at}; name two files")));
        }
        taken.push((option, place));
    }
    Ok(())
}

/// How messages call the file of the result.
pub(crate) const RESULT: &str = "the result";

/// The file that a path leads to, whether it is there or is to come; `None` for what is no file.
fn place(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" {
        return None;
    }
    if let Ok(there) = fs::metadata(path) {
        return if there.is_file() { fs::canonicalize(path).ok() } else { None };
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(fs::canonicalize(folder).ok()?.join(path.file_name().unwrap_or(OsStr::new(""))))
}

#[cfg(test)]
mod tests {
    use super::{RESULT, check_written};
    use crate::failure::Failure;
    use std::fs;
    use std::path::Path;

    #[cfg(unix)]
    #[test]
    fn a_file_is_the_same_however_it_is_spelled() {
        let dir = tempfile::tempdir().unwrap();
        let [model, link, new] = ["m.onnx", "link.onnx", "new.html"].map(|name| dir.path().join(name));
        fs::write(&model, "").unwrap();
        std::os::unix::fs::symlink(&model, &link).unwrap();
        let dotted = dir.path().join(".").join("new.html");
        let check = |written: &[(&str, Option<&Path>)]| match check_written(written, &[&model]) {
            Ok(()) => Ok(()),
            Err(Failure::Usage(said)) => Err(said),
            Err(other) => panic!("{other:?}"),
        };
        assert!(check(&[("--html", Some(&link))]).unwrap_err().contains("would replace the model"));
        assert!(
            check(&[("--html", Some(&new)), ("--report", Some(&dotted))]).unwrap_err().contains("--html and --report")
        );
        assert_eq!(check(&[(RESULT, Some(&model)), ("--html", Some(&new)), ("--report", None)]), Ok(()));
        assert_eq!(
            check(&[("--html", Some(Path::new("/dev/null"))), ("--report", Some(Path::new("/dev/null")))]),
            Ok(())
        );
        assert_eq!(check(&[("--html", Some(Path::new("-")))]), Ok(()));
    }
}
