//! Sessions of the builder beside those of ort's.

use crate::testdata;
use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::Tensor;
use relayout_ort::{Builder, ModelCache, SessionFacts, StartKind};
use relayout_verify::{SearchPlaces, find_library};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use tempfile::TempDir;

/// The environment of this process, with the runtime that `ORT_DYLIB_PATH` names, else that of the project folder.
fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut places = SearchPlaces::default();
        places.explicit = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        places.environment = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.relayout/venv")));
        let library = find_library(&places).expect("these tests need ONNX Runtime: run tools/setup once");
        let library = library.canonicalize().unwrap();
        ort::init_from(library).expect("it loads").with_telemetry(false).build().expect("an environment")
    })
}

/// A builder with a cache of its own, which waits as long as it takes.
fn builder() -> (TempDir, Builder) {
    let folder = tempfile::tempdir().unwrap();
    let cache = ModelCache::new(folder.path().join("cache"));
    (folder, Builder::new(environment()).unwrap().cache(cache).patience(None).with_intra_threads(1).unwrap())
}

fn plain() -> SessionBuilder {
    SessionBuilder::new(environment()).unwrap().with_intra_threads(1).unwrap()
}

/// What a session computes of made-up numbers of this shape.
fn run(session: &mut Session, shape: &[i64]) -> Vec<Vec<f32>> {
    let length = shape.iter().product::<i64>() as usize;
    let numbers: Vec<f32> = (0..length).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0).collect();
    let input = session.inputs()[0].name().to_owned();
    let names: Vec<String> = session.outputs().iter().map(|outlet| outlet.name().to_owned()).collect();
    let fed = Tensor::from_array((shape.to_vec(), numbers)).unwrap();
    let results = session.run(vec![(input, fed)]).unwrap();
    names.iter().map(|name| results[name.as_str()].try_extract_tensor::<f32>().unwrap().1.to_vec()).collect()
}

/// That a session has the ends of another and computes the same.
fn same(session: &mut Session, other: &mut Session, shape: &[i64]) {
    let ends = |session: &Session| {
        let all = session.inputs().iter().chain(session.outputs());
        all.map(|outlet| format!("{} {}", outlet.name(), outlet.dtype())).collect::<Vec<_>>()
    };
    assert_eq!(ends(session), ends(other));
    for (a, b) in run(session, shape).iter().zip(&run(other, shape)) {
        assert_eq!(a.len(), b.len());
        let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max);
        assert!(worst < 1e-4, "they differ by {worst}");
    }
}

#[test]
fn a_session_computes_what_that_of_the_plain_builder_does() {
    for (model, shape) in [
        ("verify/conv_around.onnx", &[2, 3, 8, 8][..]),
        ("verify/conv.onnx", &[2, 3, 8, 8][..]),
        // Its weights lie beside it.
        ("verify/conv_external.onnx", &[2, 3, 8, 8][..]),
        ("demo/tf_unet.onnx", &[1, 192, 192, 3][..]),
    ] {
        let (_folder, mut builder) = builder();
        let model = testdata(model);
        let mut expected = plain().commit_from_file(&model).unwrap();
        for first in [true, false] {
            let mut session = builder.commit_from_file(&model).unwrap();
            let outcome = builder.outcome().unwrap();
            // Other processors have no blocks, and a convolution alone no moves.
            if cfg!(target_arch = "x86_64") {
                assert_eq!(outcome.kind, if first { StartKind::Made } else { StartKind::Kept }, "{outcome}");
            }
            same(&mut session, &mut expected, shape);
        }
    }
}

#[test]
fn a_model_in_memory_is_optimized_and_kept_too() {
    let (_folder, mut builder) = builder();
    let bytes = fs::read(testdata("verify/conv_around.onnx")).unwrap();
    let mut expected = plain().commit_from_memory(&bytes).unwrap();
    for kind in [StartKind::Made, StartKind::Kept] {
        let mut session = builder.commit_from_memory(&bytes).unwrap();
        assert_eq!(builder.outcome().unwrap().kind, kind);
        same(&mut session, &mut expected, &[2, 3, 8, 8]);
    }
    let mut uncached = builder.without_cache();
    let mut session = uncached.commit_from_memory(&bytes).unwrap();
    assert_eq!(uncached.outcome().unwrap().kind, StartKind::Made);
    same(&mut session, &mut expected, &[2, 3, 8, 8]);
}

#[test]
fn what_a_session_is_given_apart_from_the_model_has_it_loaded_as_it_is() {
    let model = testdata("verify/conv_around.onnx");
    let weight = || Tensor::from_array((vec![1_i64], vec![0.0_f32])).unwrap().into_dyn();
    let as_it_is = |builder: Builder, why: &str| {
        let mut builder = builder;
        builder.commit_from_file(&model).unwrap();
        let outcome = builder.outcome().unwrap();
        assert_eq!(outcome.kind, StartKind::Plain);
        assert!(outcome.why[0].contains(why), "{outcome}");
    };
    let fresh = || builder().1;
    as_it_is(fresh().with_optimization_level(GraphOptimizationLevel::Disable).unwrap(), "the level of optimization");
    as_it_is(fresh().as_it_is("for a comparison"), "for a comparison");
    // A name that the model does not have is no error of the runtime.
    as_it_is(fresh().with_initializer("nowhere", weight()).unwrap(), "initializers");
}

/// The runtime's own error, word by word.
#[test]
fn a_model_that_the_plain_builder_does_not_load_fails_as_it_does_there() {
    let (folder, mut builder) = builder();
    let none = folder.path().join("none.onnx");
    fs::write(&none, "no model").unwrap();
    for path in [none.as_path(), Path::new("no such file")] {
        let expected = plain().commit_from_file(path).err().unwrap();
        let error = builder.commit_from_file(path).err().unwrap();
        assert_eq!((error.code(), error.message()), (expected.code(), expected.message()));
    }
    let error = builder.commit_from_memory(b"no model").err().unwrap();
    assert_eq!(error.message(), plain().commit_from_memory(b"no model").err().unwrap().message());
    assert!(builder.outcome().is_none());
}

/// The digest of no bytes, as the cache takes it.
const OF_NOTHING: &str = "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc";

#[test]
fn where_the_runtime_refuses_what_was_kept_the_model_is_loaded_as_it_is() {
    let (folder, mut builder) = builder();
    let model = testdata("verify/conv_around.onnx");
    builder.commit_from_file(&model).unwrap();
    let entry = crate::listed(&folder.path().join("cache/1/entries")).remove(0);
    // An entry that is as it was written, and no model.
    let text = fs::read_to_string(entry.join("entry.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest["files"][0]["digest"] = OF_NOTHING.into();
    manifest["files"][0]["stamp"]["length"] = 0.into();
    fs::write(entry.join("entry.json"), manifest.to_string()).unwrap();
    fs::write(entry.join("model.onnx"), "").unwrap();
    let mut expected = plain().commit_from_file(&model).unwrap();
    for _ in 0..2 {
        let mut session = builder.commit_from_file(&model).unwrap();
        let outcome = builder.outcome().unwrap();
        assert_eq!(outcome.kind, StartKind::Plain);
        assert!(outcome.why[0].contains("the runtime refused the optimized model"), "{outcome}");
        same(&mut session, &mut expected, &[2, 3, 8, 8]);
    }
}

#[test]
fn providers_and_threads_decide_what_models_are_optimized_for() {
    let target = |builder: Builder| builder.fitting().target;
    let fresh = || builder().1;
    assert_eq!(target(fresh().provider("TensorrtExecutionProvider")), "onnx");
    assert_eq!(target(fresh().provider("CUDAExecutionProvider")), "ort-nhwc");
    assert_eq!(fresh().provider("QNNExecutionProvider").fitting().provider.as_deref(), Some("qnn"));
    let own = fresh().with_execution_providers([ort::ep::CPU::default().build()]).unwrap();
    assert_eq!(target(own), target(fresh()));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(target(fresh()), "ort-cpu");
        assert_eq!(fresh().with_intra_threads(3).unwrap().fitting().threads, Some(3));
        assert_eq!(
            fresh().with_intra_threads(0).unwrap().fitting().threads,
            Builder::with_facts(plain(), SessionFacts::nothing()).fitting().threads
        );
    }
}

#[test]
fn a_builder_of_ort_is_taken_with_what_it_was_told() {
    let told =
        SessionFacts::nothing().threads(2).level(GraphOptimizationLevel::Level3).provider("CPUExecutionProvider");
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Builder::with_facts(plain(), told).cache(ModelCache::new(folder.path())).patience(None);
    let model = testdata("verify/conv_around.onnx");
    let mut session = builder.commit_from_file(&model).unwrap();
    assert_eq!(builder.outcome().unwrap().kind, StartKind::Made);
    same(&mut session, &mut builder.into_inner().commit_from_file(&model).unwrap(), &[2, 3, 8, 8]);
}

#[test]
fn a_setting_that_is_refused_leaves_the_builder_as_it_was() {
    let (_folder, builder) = builder();
    let refused = builder.with_operator_library("no such library").unwrap_err();
    assert!(!refused.to_string().is_empty());
    let mut builder = refused.recover();
    assert_eq!(builder.fitting().threads, builder.clone().fitting().threads);
    builder.commit_from_file(testdata("verify/conv_around.onnx")).unwrap();
    let question_mark = || -> ort::Result<Builder> { Ok(self::builder().1.with_operator_library("no such library")?) };
    assert!(question_mark().is_err());
}

#[test]
fn a_program_that_is_installed_prepares_its_models_and_is_told_of_each_start() {
    let (_folder, builder) = builder();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let mut builder = builder.on_start(move |start| told.lock().unwrap().push(start.to_string()));
    let model = testdata("verify/conv_around.onnx");
    assert_eq!(builder.prepare(&model).kind, StartKind::Made);
    builder.commit_from_file(&model).unwrap();
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("optimized now (target ") && lines[1].starts_with("optimized before"), "{lines:?}");
}
