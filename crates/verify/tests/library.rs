//! What `Runtime::load` says of files that are not an ONNX Runtime.
//!
//! In a test binary of its own, with one test: a process keeps the first library that loads, so the order matters. The
//! library that does load is found as in `verify.rs`, and without it the test fails.

use std::path::{Path, PathBuf};

use relayout_verify::{Runtime, SearchPlaces, VerifyError, find_library};

#[test]
fn what_is_no_runtime_is_refused_with_its_reason_and_does_not_spoil_a_later_load() {
    let mut places = SearchPlaces::default();
    places.explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
    places.environment = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv")));
    let library = find_library(&places).expect("this test needs ONNX Runtime: run tools/setup once");
    let folder = tempfile::tempdir().expect("temporary folder");
    let text_file = folder.path().join("libonnxruntime.so");
    std::fs::write(&text_file, "not a library").expect("file");

    for path in [Path::new("no/such/file.so"), folder.path()] {
        let error = Runtime::load(path).expect_err("no file");
        assert!(matches!(error, VerifyError::LibraryMissing { .. }), "{error}");
        assert!(error.to_string().contains(&format!("version {} or newer", Runtime::oldest())), "{error}");
    }
    // A plain text file, and a real library that is something else.
    let other = library.with_file_name("libonnxruntime_providers_shared.so");
    for (path, reason) in [(text_file, "libonnxruntime.so"), (other, "it exports no OrtGetApiBase")] {
        let error = Runtime::load(&path).expect_err("not ONNX Runtime");
        assert!(matches!(error, VerifyError::LibraryUnusable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(reason) && !text.contains('\n'), "{text}");
    }

    let runtime = Runtime::load(&library).expect("the real library still loads");
    assert_eq!(runtime.path(), library.canonicalize().expect("it is there"));
}
