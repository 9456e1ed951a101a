//! The ONNX Runtime that these tests run on: the one that `ORT_DYLIB_PATH` names, else the project's own. Without one they fail.

use relayout_verify::{Runtime, SearchPlaces, find_library};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The runtime of this process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut places = SearchPlaces::default();
        places.explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        places.environment = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv")));
        let library = find_library(&places).expect("these tests need ONNX Runtime: run tools/setup once");
        Runtime::load(&library).expect("ONNX Runtime loads; tools/setup installs the right version")
    })
}
