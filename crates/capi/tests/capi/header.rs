//! The header that is checked in is the one that the sources give, every name in it has the prefix, and it is of this version.

use std::path::{Path, PathBuf};

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn header() -> PathBuf {
    crate_dir().join("include/relayout.h")
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(crate_dir().join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new().with_crate(crate_dir()).with_config(config).generate();
    let mut text = Vec::new();
    bindings.expect("sources that parse").write(&mut text);
    String::from_utf8(text).expect("text")
}

/// `UPDATE_HEADER=1 cargo test -p relayout-capi --test capi` writes it.
#[test]
fn the_header_says_what_the_sources_say() {
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(header(), generated()).expect("a place to write to");
    }
    let kept = std::fs::read_to_string(header()).expect("the header");
    assert!(kept == generated(), "{} is out of date: run this test with UPDATE_HEADER=1", header().display());
}

/// The header without comments.
fn code() -> String {
    let mut code = String::new();
    for (n, part) in generated().split("/*").enumerate() {
        code += if n == 0 { part } else { part.split_once("*/").expect("comments that end").1 };
    }
    code
}

#[test]
fn every_name_has_the_prefix() {
    let code = code();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut functions = 0;
    for (at, _) in code.match_indices('(') {
        let name = code[..at].rsplit(|c| !word(c)).next().unwrap();
        if !name.is_empty() {
            functions += 1;
            assert!(name.starts_with("relayout_"), "{name} has no prefix");
        }
    }
    assert!(functions >= 24, "only {functions} functions were found");
    for line in code.lines().map(str::trim) {
        let named = |keyword: &str| line.strip_prefix(keyword).and_then(|rest| rest.split(|c| !word(c)).next());
        let lower = ["struct ", "enum "].iter().find_map(|keyword| named(keyword));
        assert!(lower.is_none_or(|name| name.starts_with("relayout_")), "{line}");
        assert!(named("#define ").is_none_or(|name| name.starts_with("RELAYOUT_")), "{line}");
        let constant = line.ends_with(',') && line.contains(" = ");
        assert!(!constant || line.starts_with("RELAYOUT_"), "{line}");
    }
}

#[test]
fn the_macros_are_of_this_version() {
    let code = code();
    let value = |name: &str| -> &str {
        let found = code.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("no macro {name}"))
    };
    assert_eq!(value("RELAYOUT_VERSION"), format!("{:?}", env!("CARGO_PKG_VERSION")));
    assert_eq!(value("RELAYOUT_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MAJOR"));
    assert_eq!(value("RELAYOUT_VERSION_MINOR"), env!("CARGO_PKG_VERSION_MINOR"));
    assert_eq!(value("RELAYOUT_VERSION_PATCH"), env!("CARGO_PKG_VERSION_PATCH"));
}
