//! The header that is checked in is the one that the sources give, and a C program can use the library by it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn generated() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        include_guard: Some("RELAYOUT_H".to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned()],
        usize_is_size_t: true,
        documentation: true,
        style: cbindgen::Style::Tag,
        line_length: 100,
        header: Some(
            "/* Permute kernels of relayout. Written by cbindgen from the sources of relayout-capi; do not edit. */"
                .to_owned(),
        ),
        ..cbindgen::Config::default()
    };
    config.enumeration.rename_variants = cbindgen::RenameRule::QualifiedScreamingSnakeCase;
    config.export.include = vec!["Status".to_owned(), "CacheHint".to_owned()];
    let names = [("Status", "relayout_status"), ("CacheHint", "relayout_hint"), ("RelayoutPlan", "relayout_plan")];
    config.export.rename = names.map(|(from, to)| (from.to_owned(), to.to_owned())).into_iter().collect();
    let bindings = cbindgen::Builder::new().with_crate(crate_dir()).with_config(config).generate();
    let mut text = Vec::new();
    bindings.expect("sources that parse").write(&mut text);
    String::from_utf8(text).expect("text")
}

/// `UPDATE_HEADER=1 cargo test -p relayout-capi` writes it.
#[test]
fn the_header_says_what_the_sources_say() {
    let path = crate_dir().join("include/relayout.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&path, generated()).expect("a place to write to");
    }
    let kept = std::fs::read_to_string(&path).expect("the header");
    assert!(kept == generated(), "{} is out of date: run this test with UPDATE_HEADER=1", path.display());
}

/// The folder with this build's libraries.
fn libraries() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    test.ancestors().find(|dir| dir.join("librelayout_capi.so").exists()).map(Path::to_owned)
}

#[test]
fn a_c_program_permutes() {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let (Some(libraries), Ok(_)) = (libraries(), Command::new(&compiler).arg("--version").output()) else {
        eprintln!("skipped: no C compiler, or no shared library here");
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("program");
    let built = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(crate_dir().join("tests/program.c"))
        .arg("-I")
        .arg(crate_dir().join("include"))
        .arg("-L")
        .arg(&libraries)
        .args(["-lrelayout_capi", &format!("-Wl,-rpath,{}", libraries.display())])
        .output()
        .expect("the compiler runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program).output().expect("the program runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
