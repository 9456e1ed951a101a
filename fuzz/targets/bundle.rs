//! A bundle in which one file is another: the manifest, the graph, the weights, or the launch of a kernel. The manifest has the size and
//! the digest of the file as it is, so that reading goes on behind that check.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use relayout::kernels::KernelOptions;
use relayout::{Model, Options, optimize, target};
use relayout_bundle::{BundleManifest, read_bundle, write_bundle};
use relayout_fuzz::memory::{Bound, bounded};
use sha2::{Digest as _, Sha256};

/// JSON as values, a value for each two bytes at the least, and the header of the weights twice.
const BOUND: Bound = Bound { per_byte: 2 << 10, free: 32 << 20 };

struct Base {
    dir: PathBuf,
    manifest: BundleManifest,
    /// Path and contents of the files that are replaced, the manifest first.
    files: Vec<(String, Vec<u8>)>,
}

/// Two bundles: one with weights that were re-laid, one with moves that have kernels.
static BASES: LazyLock<[Base; 2]> = LazyLock::new(|| {
    let conv = include_bytes!("../../testdata/cli/conv.onnx").as_slice();
    let moves = include_bytes!("../../testdata/cli/moves.onnx").as_slice();
    [base("conv", conv), base("moves", moves)]
});

/// A bundle, of its own for this process. `tools/fuzz` names a folder in memory and removes it.
fn base(name: &str, model: &'static [u8]) -> Base {
    let parent = std::env::var_os("RELAYOUT_FUZZ_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = parent.join(format!("relayout-fuzz-bundle-{name}-{}", std::process::id()));
    let model = Model::from_bytes(model.into(), None).expect("it is a model");
    let target = target("nhwc").expect("it is built in");
    let optimized = optimize(&model, target.as_ref(), &Options::default()).expect("it can be optimized");
    let manifest = write_bundle(&optimized, &dir, &KernelOptions::default()).expect("it can be written");
    let replaced = manifest.files.iter().map(|file| file.path.clone()).filter(|path| !path.ends_with(".cu"));
    let paths = std::iter::once("manifest.json".to_owned()).chain(replaced);
    let files: Vec<_> = paths.map(|path| (path.clone(), fs::read(dir.join(path)).expect("it was written"))).collect();
    read_bundle(&dir).expect("it holds together");
    Base { dir, manifest, files }
}

fuzz_target!(|data: &[u8]| {
    let Some((&which, contents)) = data.split_first() else { return };
    let base = &BASES[usize::from(which % 2)];
    let (path, before) = &base.files[usize::from(which / 2) % base.files.len()];
    fs::write(base.dir.join(path), contents).expect("there is room");
    if path != "manifest.json" {
        let mut manifest = base.manifest.clone();
        let entry = manifest.files.iter_mut().find(|file| file.path == *path).expect("it is listed");
        entry.bytes = contents.len() as u64;
        entry.sha256 = Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect();
        let text = serde_json::to_vec(&manifest).expect("it has a JSON form");
        fs::write(base.dir.join("manifest.json"), text).expect("there is room");
    }
    bounded(&BOUND, contents.len(), || match read_bundle(&base.dir) {
        Ok(bundle) => {
            for constant in &bundle.graph.scope.constants {
                bundle.constant(&constant.name).expect("a bundle that was checked has its constants");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    });
    fs::write(base.dir.join(path), before).expect("there is room");
    if path != "manifest.json" {
        fs::write(base.dir.join("manifest.json"), &base.files[0].1).expect("there is room");
    }
});
