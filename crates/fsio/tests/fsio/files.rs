//! Files that are replaced, and what is read of pipes, links and files that change.

use relayout_fsio::{Destination, Error, Mapped, Output, Staged, destination, read, read_text};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    (dir, path)
}

fn put(path: &Path, text: &str) -> Result<(), Error> {
    Output::new(path, text.into())?.commit()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_text_appears_when_it_is_committed_and_not_before() {
    let (_dir, dir) = folder();
    let path = dir.join("report.json");
    fs::write(&path, "old").unwrap();
    let output = Output::new(&path, b"new".to_vec()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    output.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    drop(Output::new(&path, b"never".to_vec()).unwrap());
    assert_eq!((fs::read(&path).unwrap(), names(&dir)), (b"new".to_vec(), vec!["report.json".to_owned()]));
}

#[test]
fn what_cannot_be_written_is_named_as_it_was_given() {
    let (_dir, dir) = folder();
    for path in [dir.clone(), dir.join("no/such/file")] {
        let error = put(&path, "x").unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    }
    assert!(names(&dir).is_empty());
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_the_file_that_it_leads_to_is_replaced() {
    use std::os::unix::fs::symlink;
    let (_dir, dir) = folder();
    fs::create_dir(dir.join("there")).unwrap();
    let there = dir.join("there/file");
    // Relative to its own folder, over two links, and to nothing yet.
    symlink("there/file", dir.join("link")).unwrap();
    symlink("link", dir.join("link2")).unwrap();
    for text in ["first", "second"] {
        put(&dir.join("link2"), text).unwrap();
        assert_eq!(fs::read_to_string(&there).unwrap(), text);
        for link in ["link", "link2"] {
            assert!(fs::symlink_metadata(dir.join(link)).unwrap().is_symlink());
        }
    }
    assert_eq!(
        (names(&dir), names(&dir.join("there"))),
        (vec!["link".into(), "link2".into(), "there".into()], vec!["file".into()])
    );
    symlink("round", dir.join("round")).unwrap();
    put(&dir.join("round"), "x").unwrap_err();
    symlink("/dev/null", dir.join("null")).unwrap();
    put(&dir.join("null"), "x").unwrap();
    assert!(fs::symlink_metadata(dir.join("null")).unwrap().is_symlink());
    assert!(matches!(destination(&dir.join("null")), Ok(Destination::Special)));
}

#[cfg(unix)]
fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_and_written_and_stays_a_pipe() {
    use std::os::unix::fs::FileTypeExt as _;
    let (_dir, dir) = folder();
    let path = dir.join("pipe");
    fifo(&path);
    let text = "x".repeat(200_000);
    let reader = std::thread::spawn({
        let path = path.clone();
        move || read_text(path).unwrap()
    });
    put(&path, &text).unwrap();
    assert!(reader.join().unwrap() == text);
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut pipe = fs::File::options().write(true).open(path).unwrap();
            // Longer than a pipe without anybody at its other end is waited for.
            std::thread::sleep(std::time::Duration::from_millis(2500));
            pipe.write_all(b"late").unwrap();
        }
    });
    assert_eq!(Mapped::open(&path).unwrap().bytes(), &b"late"[..]);
    writer.join().unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(names(&dir), ["pipe"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_with_nothing_at_its_other_end_is_an_error() {
    let (_dir, dir) = folder();
    let path = dir.join("pipe");
    fifo(&path);
    let errors = [
        (read(&path).unwrap_err(), "nothing writes to this pipe"),
        (Mapped::open(&path).unwrap_err(), "nothing writes to this pipe"),
        (Mapped::file(&path).unwrap_err(), "it is a pipe, not a file"),
        (put(&path, "x").unwrap_err(), "nothing reads from this pipe"),
    ];
    for (error, why) in errors {
        let error = error.to_string();
        assert!(error.contains(why) && error.contains("pipe"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused() {
    let (_dir, dir) = folder();
    for (path, kind) in [(dir.as_path(), "directory"), (Path::new("/dev/null"), "device or socket")] {
        for error in [read(path).unwrap_err(), Mapped::open(path).unwrap_err()] {
            assert!(matches!(error, Error::NotAFile { kind: found, .. } if found == kind), "{error}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_rewritten_in_place_is_noticed_though_its_length_stays() {
    let (_dir, dir) = folder();
    let path = dir.join("weights");
    fs::write(&path, "old bytes").unwrap();
    let mapped = Mapped::file(&path).unwrap();
    mapped.check().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::write(&path, "new bytes").unwrap();
    assert!(matches!(mapped.check(), Err(Error::Changed { .. })));
    // It is not copied as what it was.
    let mut to = tempfile::tempfile().unwrap();
    assert!(!mapped.copy_to(0, 9, &mut to).unwrap());

    // Replaced by a rename or removed, the mapping has the old file.
    let mapped = Mapped::file(&path).unwrap();
    put(&path, "others!!!").unwrap();
    mapped.check().unwrap();
    fs::remove_file(&path).unwrap();
    mapped.check().unwrap();
    assert_eq!(mapped.bytes(), &b"new bytes"[..]);
}

#[test]
fn a_staged_file_knows_whether_another_has_its_bytes() {
    let (_dir, dir) = folder();
    let mut staged = Staged::new(dir.join("a")).unwrap();
    staged.file().write_all(b"same").unwrap();
    for (text, same) in [("same", true), ("some", false), ("same!", false)] {
        fs::write(dir.join("b"), text).unwrap();
        assert_eq!(staged.equals(&dir.join("b")).unwrap(), same, "{text}");
    }
    assert!(!staged.equals(&dir).unwrap());
    fs::write(dir.join("a"), "first").unwrap();
    staged.commit_new().unwrap_err();
    assert_eq!(fs::read(dir.join("a")).unwrap(), b"first");
}
