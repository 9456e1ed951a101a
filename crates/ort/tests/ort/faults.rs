//! What goes wrong with files: processes that are killed, that write at once, disks that are full, and bytes that changed.

use crate::{Place, file, listed, patient};
use relayout::Model;
use relayout_cache::{Load, StartKind};
use std::fs;
use std::path::{Path, PathBuf};

/// An entry of a place, and its model.
fn made(place: &Place) -> (PathBuf, PathBuf) {
    let model = file(&place.start()).to_owned();
    (model.parent().unwrap().to_owned(), model)
}

/// That a start finds out what is wrong, makes the entry anew and says so, and that the next one takes it.
fn is_made_anew(place: &Place, what: &str) {
    let start = place.start();
    assert_eq!(start.outcome.kind, StartKind::Made, "{what}: {}", start.outcome);
    assert!(start.outcome.why[0].contains("is damaged and was made anew"), "{what}: {}", start.outcome);
    assert!(Model::open(file(&start)).is_ok(), "{what}");
    assert_eq!(place.start().outcome.kind, StartKind::Kept, "{what}");
}

#[test]
fn a_damaged_entry_is_made_anew() {
    let place = Place::new();
    let (entry, model) = made(&place);
    let manifest = entry.join("entry.json");
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let cut = |path: &Path| fs::write(path, &fs::read(path).unwrap()[..10]).unwrap();
    flip(&model);
    is_made_anew(&place, "a bit of the model");
    cut(&model);
    is_made_anew(&place, "the model cut off");
    fs::remove_file(&model).unwrap();
    is_made_anew(&place, "no model");
    cut(&manifest);
    is_made_anew(&place, "the manifest cut off");
    fs::remove_file(&manifest).unwrap();
    is_made_anew(&place, "no manifest");
    fs::write(&manifest, "{\"format\": 7}").unwrap();
    is_made_anew(&place, "a manifest of another version");
    fs::remove_dir_all(&entry).unwrap();
    fs::write(&entry, "a file in the stead of the folder").unwrap();
    assert_eq!(place.start().outcome.kind, StartKind::Made);
}

#[cfg(unix)]
#[test]
fn a_link_is_no_model_of_an_entry() {
    let place = Place::new();
    let (_, model) = made(&place);
    let elsewhere = place.folder.path().join("elsewhere.onnx");
    fs::rename(&model, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &model).unwrap();
    is_made_anew(&place, "a link");
}

#[test]
fn a_cache_that_was_copied_is_believed_by_its_digests() {
    let place = Place::new();
    let (entry, model) = made(&place);
    let text = fs::read_to_string(entry.join("entry.json")).unwrap();
    let copy = place.folder.path().join("copy.onnx");
    fs::copy(&model, &copy).unwrap();
    fs::rename(&copy, &model).unwrap();
    assert_eq!(place.start().outcome.kind, StartKind::Kept);
    assert_ne!(fs::read_to_string(entry.join("entry.json")).unwrap(), text, "the next start need not read it");
    assert_eq!(place.start().outcome.kind, StartKind::Kept);
}

/// As a process leaves it that is killed while it writes a model, and one that is killed while it removes an entry.
#[test]
fn what_a_killed_process_left_is_in_nobodys_way_and_goes() {
    let place = Place::new();
    let (entry, _) = made(&place);
    let key = entry.file_name().unwrap().to_str().unwrap().to_owned();
    let bytes = fs::read(entry.join("model.onnx")).unwrap();
    fs::remove_dir_all(&entry).unwrap();
    let other = if key.starts_with("00") { "11" } else { "00" };
    for folder in [place.inner("new").join(&key[..2]).join(&key), place.inner("new").join(other).join("x.gone")] {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("model.onnx"), &bytes[..bytes.len() / 2]).unwrap();
    }
    let start = place.start();
    assert_eq!(start.outcome.kind, StartKind::Made, "{}", start.outcome);
    assert!(start.outcome.why.is_empty() && Model::open(file(&start)).is_ok());
    for slot in listed(&place.inner("new")) {
        assert!(listed(&slot).is_empty(), "{slot:?} has {:?}", listed(&slot));
    }
}

/// Each start opens the lock anew, as another process does.
#[test]
fn of_starts_at_once_one_makes_the_entry_and_the_others_wait_for_it() {
    let place = Place::new();
    let kinds: Vec<StartKind> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| place.start())).collect();
        let starts = starts.into_iter().map(|start| start.join().unwrap());
        starts.inspect(|start| assert!(file(start).is_file())).map(|start| start.outcome.kind).collect()
    });
    assert_eq!(kinds.iter().filter(|kind| **kind == StartKind::Made).count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == StartKind::Kept).count(), 3, "{kinds:?}");
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn where_there_is_no_room_the_result_is_loaded_from_memory() {
    let place = Place::new();
    let full = Place { cache: place.cache.clone().most_bytes(0), ..place };
    for _ in 0..2 {
        let start = full.start();
        assert_eq!(start.outcome.kind, StartKind::Made);
        assert!(matches!(&start.load, Load::Bytes(bytes) if !bytes.is_empty()));
        assert!(start.outcome.why[0].contains("has no room for it"), "{}", start.outcome);
    }
    assert!(full.entries().is_empty());
    assert!(listed(&full.inner("new")).iter().all(|slot| listed(slot).is_empty()));
}

/// A file where the folder would be: what is tried there fails, for the administrator too.
#[test]
fn where_nothing_can_be_written_the_result_is_loaded_from_memory() {
    let place = Place::new();
    fs::write(place.cache.folder(), "a file").unwrap();
    let start = place.start();
    assert!(matches!(&start.load, Load::Bytes(_)), "{}", start.outcome);
    assert!(start.outcome.why[0].contains("nothing is kept, because"), "{}", start.outcome);
    assert_eq!(start.outcome.to_string().lines().count(), 1, "{}", start.outcome);
}

#[test]
fn a_folder_of_entries_that_cannot_be_written_to_is_no_error() {
    let place = Place::new();
    made(&place);
    // Renames into it fail.
    fs::remove_dir_all(place.inner("entries")).unwrap();
    fs::write(place.inner("entries"), "a file").unwrap();
    let start = place.start();
    assert!(matches!(&start.load, Load::Bytes(_)), "{}", start.outcome);
}

#[test]
fn what_the_runtime_refused_is_not_tried_again() {
    let place = Place::new();
    let mut start = place.start();
    start.refused("it has no kernel");
    assert_eq!((start.outcome.kind, &start.load), (StartKind::Plain, &Load::Model));
    let next = place.start();
    assert_eq!((next.outcome.kind, &next.load), (StartKind::Plain, &Load::Model));
    assert!(next.outcome.why[0].contains("it has no kernel"), "{}", next.outcome);
    // An entry that is gone says nothing of the model.
    let mut other = place.start_with(&patient().session("other"));
    fs::remove_dir_all(file(&other).parent().unwrap()).unwrap();
    other.refused("no such file");
    assert_eq!(place.start_with(&patient().session("other")).outcome.kind, StartKind::Made);
}
