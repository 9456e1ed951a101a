//! `relayout_verify` with the library: how the rest of the project runs files with moves that are left to it.
//!
//! A process of its own: it has one environment of ONNX Runtime, which `relayout_verify` makes itself.

mod common;

use common::{files, ints, model, node, relayout, unknown};
use relayout_verify::{Inputs, Level, ModelSource, Options, Runtime, Tolerance, VerifyError, verify};

fn options() -> Options {
    let mut options = Options::default();
    options.custom_ops = vec![common::library()];
    options
}

fn compare(options: &Options) -> Result<relayout_verify::Comparison, VerifyError> {
    let runtime = Runtime::load(&common::onnxruntime()).expect("ONNX Runtime loads");
    let perm = || vec![ints("perm", &[0, 3, 1, 2])];
    let dims = unknown(4);
    let transpose = model(1, Some(&dims), vec![node("", "Transpose", "y", perm())], Vec::new());
    let ours = model(1, Some(&dims), vec![relayout("y", perm())], Vec::new());
    let sizes = [("A", 2), ("B", 30), ("C", 41), ("D", 64)];
    let inputs = Inputs::Random { seed: 1, dims: sizes.map(|(name, size)| (name.to_owned(), size)).into() };
    verify(&runtime, ModelSource::Bytes(&transpose), ModelSource::Bytes(&ours), &inputs, options)
}

#[test]
fn a_model_with_custom_ops_is_verified_where_their_library_is_given() {
    for level in [Level::Disabled, Level::All] {
        let mut options = options();
        (options.level_b, options.threads, options.rounds) = (level, 2, 3);
        let comparison = compare(&options).expect("both run");
        assert!(comparison.exact && comparison.rounds == 3, "{comparison}");
    }
    let error = compare(&Options::default()).expect_err("nobody knows the op").to_string();
    assert!(error.contains("Relayout"), "{error}");
}

#[test]
fn optimized_files_are_verified_with_the_library() {
    let runtime = Runtime::load(&common::onnxruntime()).expect("ONNX Runtime loads");
    let bytes = files::convolution();
    let inputs = Inputs::Random { seed: 1, dims: [].into() };
    for (target, moves) in files::targets() {
        let file = files::optimized(&bytes, target.as_ref());
        let [a, b] = [&bytes, &file].map(|bytes| ModelSource::Bytes(bytes));
        let comparison = verify(&runtime, a, b, &inputs, &options()).unwrap_or_else(|e| panic!("{moves:?}: {e}"));
        assert!(comparison.holds(&Tolerance::default()), "{moves:?}: {comparison}");
    }
}

#[test]
fn a_library_that_is_missing_or_is_none_is_named() {
    let mut options = options();
    options.custom_ops.push("nowhere/libnothing.so".into());
    let error = compare(&options).expect_err("it is missing").to_string();
    assert!(error.contains("cannot register the custom ops of `nowhere/libnothing.so`"), "{error}");
    options.custom_ops = vec![common::onnxruntime()];
    let error = compare(&options).expect_err("it registers nothing").to_string();
    assert!(matches!(compare(&options), Err(VerifyError::CustomOps { .. })), "{error}");
}
