//! What each crate offers, as text: whoever changes it sees it in the difference of a snapshot. And rules for names.

mod conventions;
mod imports;
#[cfg(all(feature = "onnx-protobuf", feature = "prost"))]
mod interop;
mod pages;
mod surface;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use surface::{Sources, Surface};

/// Library crates by name, with what they offer.
fn libraries() -> &'static BTreeMap<String, Surface> {
    static LIBRARIES: OnceLock<BTreeMap<String, Surface>> = OnceLock::new();
    LIBRARIES.get_or_init(read_libraries)
}

fn read_libraries() -> BTreeMap<String, Surface> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.push(root.join("passes"));
    folders.retain(|folder| folder.join("src/lib.rs").exists());
    let one = |folder: PathBuf| {
        let manifest: toml::Table = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().replace('-', "_");
        (name.clone(), Sources::read(&folder, &name).surface())
    };
    folders.into_iter().map(one).collect()
}

#[test]
fn what_each_crate_offers_changes_only_on_purpose() {
    let libraries = libraries();
    assert!(libraries.len() >= 13, "{:?}", libraries.keys());
    for (name, surface) in libraries {
        // The C ABI has a header of its own, which its tests hold.
        if name != "relayout_capi" {
            assert!(!surface.lines.is_empty(), "{name}");
            let lines: Vec<&str> = surface.lines.iter().map(String::as_str).collect();
            insta::assert_snapshot!(name.as_str(), lines.join("\n"));
        }
    }
}

#[test]
fn the_root_has_what_most_callers_need() {
    // Modules and crates of others, by features.
    let elsewhere = ["onnx_protobuf", "prost", "proto"];
    let all = libraries()["relayout"].root.iter().map(String::as_str);
    let root: BTreeSet<&str> = all.filter(|name| !elsewhere.contains(name)).collect();
    assert!(["optimize", "Model", "Target"].iter().all(|name| root.contains(name)), "{root:?}");
    assert!(root.len() <= 25, "{} names: {root:?}", root.len());
}

/// Names that types of several crates have. Errors, results and options are called the same everywhere, and messages of ONNX as ONNX
/// calls them; the others are to become fewer.
const SHARED: &[&str] = &[
    "Attention",
    // Of graphs, and of sessions: ort calls it so.
    "Builder",
    "Case",
    // The optimizer writes proofs with types of its own: the checker shares no code with it.
    "Claim",
    "Error",
    "Model",
    "Operand",
    "Options",
    "Place",
    "Plan",
    "Problem",
    "Projection",
    "Proof",
    "Relayout",
    "Result",
    "Run",
    "Segment",
    "Shape",
    "Side",
    "Slot",
    "Step",
    "Tensor",
    "Use",
    "View",
];

/// A name means one thing, whichever crate has it.
#[test]
fn types_of_different_crates_have_different_names() {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // Names of the C library are those of its header.
    for (_, surface) in libraries().iter().filter(|(name, _)| *name != "relayout_capi") {
        for (name, places_of) in &surface.types {
            let places_of = places_of.iter().map(String::as_str).filter(|place| !place.contains("::proto::"));
            places.entry(name.as_str()).or_default().extend(places_of);
        }
    }
    assert!(places.len() > 300, "{}", places.len());
    let crate_of = |place: &&str| place.split("::").next().unwrap_or_default().to_owned();
    places.retain(|_, places| places.iter().map(crate_of).collect::<BTreeSet<String>>().len() > 1);
    let shared: Vec<&str> = places.keys().copied().collect();
    assert_eq!(shared, SHARED, "{places:#?}");
}
