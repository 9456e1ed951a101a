//! Conventions that a test can hold: which crate may know which, and where `unsafe` may stand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Package name to the packages of this workspace that it depends on.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path()).collect();
    folders.extend([root().join("passes"), root().join("examples/own-target")]);
    let manifest = |folder: &PathBuf| -> toml::Table {
        std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap()
    };
    let manifests: Vec<toml::Table> = folders.iter().map(manifest).collect();
    let name = |m: &toml::Table| m["package"]["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = manifests.iter().map(name).collect();
    let own = |m: &toml::Table| {
        let dependencies = m.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        dependencies.keys().filter(|d| names.contains(*d)).cloned().collect()
    };
    manifests.iter().map(|m| (name(m), own(m))).collect()
}

#[test]
fn no_crate_imports_upward() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("relayout-ir", &[][..]),
        ("relayout-codegen", &["relayout-ir"][..]),
        ("relayout-eval", &["relayout-ir"][..]),
        ("relayout-target", &["relayout-ir"][..]),
        ("relayout-targets", &["relayout-ir", "relayout-eval", "relayout-target"][..]),
        ("relayout-fsio", &[][..]),
        ("relayout-onnx", &["relayout-ir", "relayout-codegen", "relayout-fsio"][..]),
        ("relayout-passes", &["relayout-ir", "relayout-eval", "relayout-target"][..]),
        (
            "relayout",
            &[
                "relayout-ir",
                "relayout-target",
                "relayout-targets",
                "relayout-codegen",
                "relayout-fsio",
                "relayout-onnx",
                "relayout-passes",
            ][..],
        ),
        ("relayout-cli", &["relayout"][..]),
        // An embedder's crate knows the library alone.
        ("own-target", &["relayout"][..]),
        ("relayout-capi", &["relayout-ir", "relayout-codegen"][..]),
        ("relayout-ortop", &["relayout-codegen", "relayout-ir"][..]),
    ]);
    let edges = edges();
    assert!(edges.len() >= 7, "the manifests were not found");
    for (name, uses) in edges {
        let may = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the table of this test"));
        for used in uses {
            assert!(may.contains(&used.as_str()), "{name} must not depend on {used}");
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|n| n != "target" || path.ends_with("crates/target")) {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn unsafe_stands_only_where_the_design_allows_it() {
    const ALLOWED: &[&str] = &[
        "crates/fsio/src/map.rs",
        "crates/codegen/src/kernels/",
        "crates/capi/",
        "crates/ortop/src/api.rs",
        "crates/ortop/src/op.rs",
        "crates/codegen/tests/cuda_device.rs",
    ];
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    sources(&root().join("passes"), &mut files);
    assert!(files.len() > 50, "the sources were not found");
    // In two pieces, so that this file does not find itself.
    let word = concat!("uns", "afe {");
    for file in files {
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let found = text.lines().any(|l| l.contains(word) || l.contains(concat!("uns", "afe fn")));
        assert!(!found || ALLOWED.iter().any(|a| name.starts_with(a)), "{name} must not contain it");
    }
}

/// The crates that compute with sizes of files, all that the program is made of but the kernels.
#[test]
fn released_programs_check_for_overflow_where_sizes_of_files_are_computed_with() {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let packages = &manifest["profile"]["release"]["package"];
    for name in edges()["relayout"].iter().map(String::as_str).chain(["relayout"]).filter(|n| *n != "relayout-codegen")
    {
        let checks = packages.get(name).and_then(|package| package.get("overflow-checks"));
        assert_eq!(checks.and_then(toml::Value::as_bool), Some(true), "{name}");
    }
}
