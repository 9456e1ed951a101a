//! What is kept, for whom, and how long.

use crate::{Place, file, listed, patient, testdata};
use relayout::Model;
use relayout_cache::{Load, ModelCache, ModelInput, StartKind, StartOptions, prepare};
use std::fs;
use std::time::Duration;

#[test]
fn a_model_is_optimized_once_and_what_was_made_is_loaded_from_then_on() {
    let place = Place::new();
    let (first, second) = (place.start(), place.start());
    assert_eq!((first.outcome.kind, second.outcome.kind), (StartKind::Made, StartKind::Kept));
    assert_eq!(file(&first), file(&second));
    assert_eq!(first.outcome.summary, second.outcome.summary);
    assert!(second.outcome.summary.as_ref().unwrap().contains("moves 2 -> 0"), "{}", second.outcome);
    assert!(second.outcome.why.is_empty() && second.outcome.is_optimized());
    assert_eq!(Model::open(file(&second)).unwrap().metadata("relayout.target"), Some("onnx"));
}

#[test]
fn bytes_and_a_file_of_the_same_model_share_what_is_kept() {
    let place = Place::new();
    let first = place.start();
    let bytes = fs::read(&place.model).unwrap();
    let second = prepare(ModelInput::Memory(&bytes), &patient(), Some(&place.cache));
    assert_eq!((second.outcome.kind, file(&second)), (StartKind::Kept, file(&first)));
}

#[test]
fn a_model_that_stays_as_it_is_is_not_looked_at_again() {
    let place = Place::with("cli/nothing.onnx");
    let (first, second) = (place.start(), place.start());
    for start in [&first, &second] {
        assert_eq!((start.outcome.kind, &start.load), (StartKind::Plain, &Load::Model));
        assert!(start.outcome.why[0].contains("nothing moves data"), "{}", start.outcome);
    }
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn a_model_that_is_none_is_loaded_as_it_is_and_nothing_is_kept() {
    let place = Place::with("cli/bad_operator.onnx");
    let start = place.start();
    assert_eq!((start.outcome.kind, &start.load), (StartKind::Plain, &Load::Model));
    assert!(start.outcome.why[0].contains("Reluu"), "{}", start.outcome);
    assert!(!place.cache.folder().exists());
    let missing = prepare(ModelInput::File("no such file".as_ref()), &patient(), Some(&place.cache));
    assert_eq!(missing.load, Load::Model);
}

#[test]
fn other_options_another_session_and_another_model_have_entries_of_their_own() {
    let place = Place::new();
    place.start();
    for other in [patient().session("1.32"), patient().numerics(relayout::Numerics::Exact)] {
        assert_eq!(place.start_with(&other).outcome.kind, StartKind::Made);
    }
    assert_eq!(place.entries().len(), 3);
    fs::copy(testdata("cli/relu.onnx"), &place.model).unwrap();
    assert_eq!(place.start().outcome.kind, StartKind::Made);
    assert_eq!(place.entries().len(), 4);
}

#[test]
fn a_model_that_was_rewritten_in_place_is_another_model() {
    let place = Place::new();
    let before = file(&place.start()).to_owned();
    let mut bytes = fs::read(&place.model).unwrap();
    // A weight, which lies near the end of the file or before the names of inputs and outputs.
    let weight = bytes.len() / 2;
    bytes[weight] ^= 1;
    fs::write(&place.model, bytes).unwrap();
    let after = place.start();
    assert!(!matches!(&after.load, Load::File(path) if *path == before), "{}", after.outcome);
}

#[test]
fn data_in_other_files_belongs_to_the_model() {
    let place = Place::with("cli/external.onnx");
    let data = testdata("cli/external.bin");
    let beside = place.folder.path().join("external.bin");
    let mut bytes = fs::read(data).unwrap();
    fs::write(&beside, &bytes).unwrap();
    let (first, again) = (place.start(), place.start());
    assert_eq!((first.outcome.kind, again.outcome.kind), (StartKind::Made, StartKind::Kept));
    // What is kept needs nothing of the model's folder.
    let kept = Model::open(file(&first)).unwrap();
    let folder = file(&first).parent().unwrap();
    assert!(kept.external_data().keys().all(|location| folder.join(location).is_file()));
    bytes[0] ^= 1;
    fs::write(&beside, &bytes).unwrap();
    let other = place.start();
    assert_eq!(other.outcome.kind, StartKind::Made);
    assert_ne!(file(&other), file(&first));
    fs::remove_file(&beside).unwrap();
    let missing = place.start();
    assert_eq!((missing.outcome.kind, &missing.load), (StartKind::Plain, &Load::Model), "{}", missing.outcome);
    assert!(missing.outcome.why[0].contains("external.bin"), "{}", missing.outcome);
}

/// The record is changed here, so that it shows whether the model is read.
#[test]
fn the_digest_of_a_model_is_remembered_while_its_files_stay_the_same() {
    let place = Place::new();
    // It was there long before.
    let model = testdata("verify/conv_around.onnx");
    let start = || prepare(ModelInput::File(&model), &patient(), Some(&place.cache));
    start();
    let records = listed(&place.inner("known"));
    assert_eq!(records.len(), 1);
    let text = fs::read_to_string(&records[0]).unwrap();
    let (files, digest) = text.split_once("\"digest\":\"").unwrap();
    fs::write(&records[0], format!("{files}\"digest\":\"{}", digest.replacen(|_: char| true, "x", 1))).unwrap();
    assert_eq!(start().outcome.kind, StartKind::Kept, "the model was read, and its entry found");
    assert_eq!(fs::read_to_string(&records[0]).unwrap(), text, "the digest was taken again");
    // A file that was written just now may change without a trace.
    place.start();
    assert_eq!(listed(&place.inner("known")).len(), 1);
}

#[test]
fn what_was_used_least_recently_goes_when_there_is_no_room() {
    let place = Place::new();
    let first = file(&place.start()).parent().unwrap().to_owned();
    let size: u64 = listed(&first).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    let small = Place { cache: place.cache.clone().most_bytes(size * 3), ..place };
    for session in ["b", "c", "d", "e"] {
        assert_eq!(small.start_with(&patient().session(session)).outcome.kind, StartKind::Made);
        assert!(small.entries().len() <= 3, "{:?}", small.entries());
    }
    assert!(!first.exists(), "it was the oldest");
    assert_eq!(small.start_with(&patient().session("e")).outcome.kind, StartKind::Kept);
}

#[test]
fn a_start_that_would_take_too_long_gets_the_model_and_the_next_one_what_was_made_meanwhile() {
    let place = Place::with("demo/tf_unet.onnx");
    let mut first = place.start_with(&patient().patience(Some(Duration::ZERO)));
    assert_eq!((first.outcome.kind, &first.load), (StartKind::Later, &Load::Model));
    assert!(first.outcome.why[0].contains("more than 0.0 s"), "{}", first.outcome);
    first.making.take().unwrap().wait();
    let second = place.start_with(&patient().patience(Some(StartOptions::PATIENCE)));
    assert_eq!(second.outcome.kind, StartKind::Kept);
    assert!(second.making.is_none());
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let entry = file(&place.start()).parent().unwrap().to_owned();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let root = place.cache.folder().join("1");
    for folder in [&root, &place.inner("entries"), &entry] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    for path in listed(&entry) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // Where others could have put something, nothing is taken and nothing is kept.
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    let open = place.start();
    assert!(matches!(open.load, Load::Bytes(_)), "{}", open.outcome);
    assert!(open.outcome.why[0].contains("is not this user's alone"), "{}", open.outcome);
}

#[test]
fn without_a_folder_the_model_is_optimized_in_memory() {
    let start = prepare(ModelInput::File(&testdata("verify/conv_around.onnx")), &patient(), None);
    let Load::Bytes(bytes) = &start.load else { panic!("{}", start.outcome) };
    assert!(Model::from_bytes(bytes.clone().into(), None).unwrap().metadata("relayout.target").is_some());
    assert!(start.outcome.why[0].contains("no folder is named"), "{}", start.outcome);
}

#[test]
fn the_cache_of_the_user_is_where_others_of_the_user_are() {
    let cache = ModelCache::of_user().map(|cache| cache.folder().to_owned());
    assert_eq!(cache, relayout_cache::cache_folder().map(|folder| folder.join("models")));
}
