//! Files of a folder that a stranger made.
#![cfg(unix)]

use relayout_fsio::{Inside, is_inside};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn no_path_and_no_link_leads_out_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("inside");
    fs::create_dir_all(inside.join("sub")).unwrap();
    fs::create_dir(dir.path().join("outside")).unwrap();
    for path in ["inside/file", "inside/sub/file", "outside/file", "secret"] {
        fs::write(dir.path().join(path), path).unwrap();
    }
    symlink("../secret", inside.join("link")).unwrap();
    symlink("file", inside.join("own")).unwrap();
    symlink("../outside", inside.join("away")).unwrap();
    symlink(&inside, dir.path().join("alias")).unwrap();
    // The folder itself is what the caller named, and may be a link.
    for folder in [inside.clone(), dir.path().join("alias")] {
        let folder = Inside::new(folder);
        assert_eq!(folder.read("file").unwrap(), b"inside/file");
        assert_eq!(folder.read("sub/file").unwrap(), b"inside/sub/file");
        let absolute = dir.path().join("secret").to_str().unwrap().to_owned();
        for path in ["../secret", "sub/../file", "sub/../../secret", "./file", "sub//file", "", "/", absolute.as_str()]
        {
            assert!(!is_inside(path), "{path}");
            assert!(folder.open(path).unwrap_err().to_string().contains("leaves the folder"), "{path}");
        }
        for path in ["link", "own"] {
            assert!(folder.open(path).unwrap_err().to_string().contains("it is a link"), "{path}");
        }
        assert!(folder.open("away/file").unwrap_err().to_string().contains("below a link"));
        assert!(folder.open("sub").unwrap_err().to_string().contains("not a file"));
        assert_eq!(folder.open("nothing").unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}
