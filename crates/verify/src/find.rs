//! Where an ONNX Runtime library may lie.
//!
//! Nothing here reads the environment or starts a process: the caller says where to look. The order is fixed, and
//! within a folder the newest version wins, so the same disk gives the same answer.
//!
//! To load a library is to run it. So no place is found by where the process happens to be: a folder that somebody unpacked
//! must not bring a library along.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// Where [`find_library`] looks, in this order.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SearchPlaces {
    /// A path that the user named (the value of `ORT_DYLIB_PATH`). It is taken as it is, so that a wrong one is
    /// reported and not passed over.
    pub explicit: Option<PathBuf>,
    /// A virtual environment of Python that the user named.
    pub environment: Option<PathBuf>,
    /// Folders of installed Python packages (`site-packages`), such as those of the `python3` on the path.
    pub site_packages: Vec<PathBuf>,
}

/// The first ONNX Runtime library in `places`, if there is any. That it can be loaded is not checked.
pub fn find_library(places: &SearchPlaces) -> Option<PathBuf> {
    if let Some(path) = &places.explicit {
        return Some(path.clone());
    }
    let environment = places.environment.iter().flat_map(|venv| venv_packages(venv));
    environment.chain(places.site_packages.iter().cloned()).find_map(|packages| in_site_packages(&packages))
}

/// Libraries of execution providers beside a runtime's library, and in the packages `onnxruntime*` of `site_packages`: the provider's
/// name, such as `cuda`, and the file. None of them is loaded.
pub fn provider_libraries(runtime: &Path, site_packages: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let packages = site_packages.iter().flat_map(|folder| children(folder, |name| name.starts_with("onnxruntime")));
    let packages = packages.flat_map(|package| [package.join("capi"), package]);
    let folders = runtime.parent().map(Path::to_owned).into_iter().chain(packages);
    let libraries = folders.flat_map(|folder| children(&folder, |name| provider_of(name).is_some()));
    let mut found: Vec<(String, PathBuf)> =
        libraries.filter_map(|path| Some((provider_of(path.file_name()?.to_str()?)?.to_owned(), path))).collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// The provider that a library of this name is of. `shared` is what all of them share.
fn provider_of(name: &str) -> Option<&str> {
    let rest = name.split_once("onnxruntime_providers_")?.1;
    let (provider, extension) = rest.split_once('.')?;
    let is_library = ["so", "dll", "dylib"].iter().any(|kind| extension.starts_with(kind));
    (is_library && provider != "shared").then_some(provider)
}

/// The folders of packages of a virtual environment.
fn venv_packages(venv: &Path) -> Vec<PathBuf> {
    let mut pythons = children(&venv.join("lib"), |name| name.starts_with("python"));
    pythons.sort_by_cached_key(|path| Reverse(version(path)));
    let windows = venv.join("Lib").join("site-packages");
    pythons.into_iter().map(|python| python.join("site-packages")).chain([windows]).collect()
}

/// The library that the Python package `onnxruntime` in `packages` carries.
fn in_site_packages(packages: &Path) -> Option<PathBuf> {
    let mut libraries = children(&packages.join("onnxruntime").join("capi"), is_library);
    libraries.sort_by_cached_key(|path| Reverse(version(path)));
    libraries.into_iter().next()
}

/// Whether a file of this name is the runtime itself, and not one of its providers.
fn is_library(name: &str) -> bool {
    let dylib = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dylib"));
    name == "onnxruntime.dll"
        || name == "libonnxruntime.so"
        || name.starts_with("libonnxruntime.so.")
        || (dylib && (name == "libonnxruntime.dylib" || name.starts_with("libonnxruntime.")))
}

/// The entries of `folder` whose names satisfy `wanted`, in no particular order; none if it cannot be read.
fn children(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(&wanted)).map(|entry| entry.path()).collect()
}

/// The numbers in a file's name, so that 1.31 counts as newer than 1.9; then the name, to break ties.
fn version(path: &Path) -> (Vec<u64>, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    (numbers, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, path: &str) -> PathBuf {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folder");
        std::fs::write(&path, "").expect("file");
        path
    }

    #[test]
    fn the_named_path_wins_even_if_it_is_wrong() {
        let root = tempfile::tempdir().expect("temporary folder");
        touch(root.path(), "venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1");
        let explicit = Some(PathBuf::from("no/such/lib.so"));
        let environment = Some(root.path().join("venv"));
        let places = SearchPlaces { explicit: explicit.clone(), environment, ..Default::default() };
        assert_eq!(find_library(&places), explicit);
    }

    #[test]
    fn a_named_environment_comes_before_installed_packages() {
        let root = tempfile::tempdir().expect("temporary folder");
        let installed = touch(root.path(), "usr/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1");
        let places = SearchPlaces {
            environment: Some(root.path().join("venv")),
            site_packages: vec![root.path().join("empty"), root.path().join("usr/site-packages")],
            ..Default::default()
        };
        assert_eq!(find_library(&places), Some(installed));
        let own = touch(root.path(), "venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1");
        assert_eq!(find_library(&places), Some(own));
    }

    #[test]
    fn the_newest_library_is_taken_and_providers_are_not() {
        let root = tempfile::tempdir().expect("temporary folder");
        let capi = |file: &str| touch(root.path(), &format!("onnxruntime/capi/{file}"));
        capi("libonnxruntime_providers_shared.so");
        capi("onnxruntime_pybind11_state.so");
        let places = SearchPlaces { site_packages: vec![root.path().to_owned()], ..Default::default() };
        assert_eq!(find_library(&places), None);
        for file in ["libonnxruntime.so.1.9.0", "libonnxruntime.so.1.31.1"] {
            capi(file);
        }
        assert_eq!(find_library(&places), Some(root.path().join("onnxruntime/capi/libonnxruntime.so.1.31.1")));
    }

    #[test]
    fn libraries_of_providers_are_found_beside_the_runtime_and_in_packages_of_their_own() {
        let root = tempfile::tempdir().expect("temporary folder");
        let runtime = touch(root.path(), "site/onnxruntime/capi/libonnxruntime.so.1.31.1");
        touch(root.path(), "site/onnxruntime/capi/libonnxruntime_providers_shared.so");
        let cuda = touch(root.path(), "site/onnxruntime/capi/libonnxruntime_providers_cuda.so");
        let qnn = touch(root.path(), "site/onnxruntime_qnn/libonnxruntime_providers_qnn.so");
        touch(root.path(), "site/onnxruntime_qnn/libonnxruntime_providers_qnn.txt");
        let found = provider_libraries(&runtime, &[root.path().join("site"), root.path().join("none")]);
        assert_eq!(found, [("cuda".to_owned(), cuda), ("qnn".to_owned(), qnn)]);
    }

    #[test]
    fn library_names_of_every_platform_are_known() {
        for name in ["libonnxruntime.so", "libonnxruntime.so.1.31.1", "libonnxruntime.1.31.1.dylib", "onnxruntime.dll"]
        {
            assert!(is_library(name), "{name}");
        }
        for name in ["libonnxruntime_providers_shared.so", "onnxruntime_pybind11_state.so", "onnxruntime.lib"] {
            assert!(!is_library(name), "{name}");
        }
    }
}
