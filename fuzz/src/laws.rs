//! What holds of every model that is read: laws of a whole run.

use bytes::Bytes;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::file::ModelFile;

/// Reads a model, prints it in all forms, optimizes it for a target, and reads the result again. What the library refuses is fine;
/// what it makes has to be a model that optimizing does not change again.
pub fn model_runs(bytes: &[u8], name: &str) {
    let Ok(model) = Model::from_bytes(Bytes::copy_from_slice(bytes), None) else { return };
    let target = target(name).expect("it is built in");
    let optimized = match optimize(&model, target.as_ref(), &Options::default()) {
        Ok(optimized) => optimized,
        Err(relayout::Error::Pass(error)) => panic!("a pass failed for {name}: {error}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(!optimized.report().summary().is_empty() && !optimized.report().explain().is_empty());
    let written = match optimized.to_bytes() {
        Ok(written) => written,
        // Data that is not there is missed when it is needed.
        Err(relayout::Error::File(_)) if names_files(&model) => return,
        Err(error) => panic!("what was optimized for {name} cannot be written: {error}"),
    };
    if !optimized.report().changed {
        return;
    }
    let again = Model::from_bytes(written.clone().into(), None);
    let again = again.unwrap_or_else(|error| panic!("the result for {name} cannot be read: {error}"));
    let twice = optimize(&again, target.as_ref(), &Options::default());
    let twice = twice.unwrap_or_else(|error| panic!("the result for {name} cannot be optimized: {error}"));
    let twice = twice.to_bytes().expect("it could be written once");
    assert!(twice == written, "optimizing the result for {name} changes it");
}

/// Whether any tensor has its data elsewhere.
fn names_files(model: &Model) -> bool {
    ModelFile::from_bytes(Bytes::copy_from_slice(model.bytes()), None).is_ok_and(|file| file.has_external_data())
}

/// Prints a model: text that is read back and printed alike, JSON and a drawing.
pub fn model_prints(bytes: &[u8]) {
    let Ok(model) = Model::from_bytes(Bytes::copy_from_slice(bytes), None) else { return };
    text_is_read_back(&model.print());
    assert!(model.print_json().is_ok() && !model.print_dot().is_empty());
}

/// The law of the text form: what is printed is read and printed alike.
pub fn text_is_read_back(printed: &str) {
    let read = relayout_ir::text::parse(printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(read.to_string(), printed, "it is printed otherwise once it was read");
}
