//! In a session with one thread the library starts none. A process of its own, so that nothing else does meanwhile.

#![cfg(target_os = "linux")]

mod common;

use common::{ints, known, model, relayout};
use ort::session::builder::SessionBuilder;
use ort::value::TensorRef;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux lists them").count()
}

#[test]
fn a_session_with_one_thread_stays_on_it() {
    let builder = ort::init_from(common::onnxruntime()).expect("ONNX Runtime loads");
    let environment = builder.with_telemetry(false).build().expect("an environment");
    let shape = [1_i64, 64, 256, 256];
    let bytes = model(1, Some(&known(&shape)), vec![relayout("y", vec![ints("perm", &[0, 2, 3, 1])])], Vec::new());
    let counted = |count: usize| -> ort::Result<[usize; 3]> {
        let builder = SessionBuilder::new(&environment)?.with_intra_threads(count)?;
        let before = threads();
        let mut session = builder.with_operator_library(common::library())?.commit_from_memory(&bytes)?;
        let made = threads();
        let data = vec![1_f32; 64 * 256 * 256];
        session.run(ort::inputs!["x" => TensorRef::from_array_view((shape.to_vec(), data.as_slice()))?])?;
        Ok([before, made, threads()])
    };
    let [before, made, run] = counted(1).expect("it runs");
    assert_eq!((made, run), (before, before));
    // The session's own, and none beside.
    let [before, made, run] = counted(3).expect("it runs");
    assert_eq!((made, run), (before + 2, before + 2));
}
