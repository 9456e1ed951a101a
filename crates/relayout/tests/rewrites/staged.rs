//! Results that are checked where they are written: beside their place, and in it only when they are put there.

use crate::fold_nets::{F32, Net};
use relayout::proof::Unproved;
use relayout::{Model, Optimized, Options, optimize, target};
use std::fs;
use std::path::Path;

/// A convolution whose weights get another layout: more than a mebibyte of them.
fn model() -> Model {
    let net = Net::new(17).input("x", F32, &[1, 160, 8, 8]).floats("w", F32, &[192, 160, 3, 3], true);
    Model::from_bytes(net.node("Conv", &["x", "w"], "y").output("y", F32).bytes().into(), None).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_result_is_beside_its_place_until_it_is_put_there() {
    let (folder, target, options) = (tempfile::tempdir().unwrap(), target("nhwc").unwrap(), Options::default());
    let options = options.unproved(Unproved::Fail);
    let (path, other) = (folder.path().join("y.onnx"), folder.path().join("z.onnx"));
    fs::write(&path, "what is there").unwrap();
    let made = Optimized::for_file(&model(), target.as_ref(), &options, &path).unwrap();
    assert!(made.report().proof.as_ref().unwrap().proved);
    assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (2, b"what is there".to_vec()));
    let want = optimize(&model(), target.as_ref(), &options).unwrap().to_bytes().unwrap();
    made.write(&other).unwrap();
    made.write(&path).unwrap();
    assert_eq!(names(folder.path()), ["y.onnx", "z.onnx"]);
    made.write(&path).unwrap();
    for bytes in [fs::read(&path).unwrap(), fs::read(&other).unwrap(), made.to_bytes().unwrap()] {
        assert!(bytes == want);
    }
}

#[test]
fn what_is_not_put_in_its_place_goes() {
    let (folder, target) = (tempfile::tempdir().unwrap(), target("nhwc").unwrap());
    let options = Options::default().unproved(Unproved::Loud);
    let path = folder.path().join("y.onnx");
    let made = Optimized::for_file(&model(), target.as_ref(), &options, &path).unwrap();
    assert_eq!(names(folder.path()).len(), 1);
    drop(made);
    assert!(names(folder.path()).is_empty());
    // Nobody looks at it, so it need not be there either.
    let silent = Optimized::for_file(&model(), target.as_ref(), &options.unproved(Unproved::Allow), &path).unwrap();
    assert!(names(folder.path()).is_empty());
    silent.write(&path).unwrap();
    let missing = folder.path().join("no/y.onnx");
    let error = Optimized::for_file(&model(), target.as_ref(), &Options::default().unproved(Unproved::Loud), &missing);
    assert!(error.unwrap_err().to_string().contains("no"));
}
