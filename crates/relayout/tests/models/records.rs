//! Reports, audits and explanations as JSON: what is written can be read, and says the same.

use relayout::audit::Fate;
use relayout::ir::attr::Attr;
use relayout::ir::constant::Constant;
use relayout::ir::dim::Dim;
use relayout::ir::dtype::DType;
use relayout::why::Explained;
use relayout::{Audit, BuildError, GraphBuilder, Model, Options, Report, Size, audit, optimize, target, why};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is written of a record, read again.
fn again<R: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(record: &R) -> R {
    let text = serde_json::to_string_pretty(record).unwrap();
    let read: R = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(read, *record);
    assert_eq!(serde_json::to_string_pretty(&read).unwrap(), text);
    read
}

/// A network of symbolic size with a scale that goes into weights, a move that stays, an op that no layout passes through.
fn model() -> Result<Model, BuildError> {
    let mut b = GraphBuilder::new("net").opset(17);
    let x = b.input("x", DType::F32, [Dim::symbol("N"), 16.into(), 16.into(), 8.into()])?;
    let weights = b.constant("w", Constant::filled(DType::F32, &[8, 8, 3, 3], 0.5))?;
    let scale = b.constant("s", Constant::filled(DType::F32, &[8, 1, 1], 0.5))?;
    let image = b.op("Transpose", "image", &[x], [("perm", Attr::Ints(vec![0, 3, 1, 2]))])?;
    let conv = b.op("Conv", "conv", &[image, weights], [("pads", Attr::Ints(vec![1; 4]))])?;
    let scaled = b.op("Mul", "scaled", &[conv, scale], [])?;
    let back = b.op("Transpose", "back", &[scaled], [("perm", Attr::Ints(vec![0, 2, 3, 1]))])?;
    let found = b.op("NonZero", "found", &[back], [])?;
    b.output(back)?;
    b.output(found)?;
    Ok(Model::of_graph(&b.finish()).expect("it can be written"))
}

fn options() -> Options {
    let fed = "x:NHWC->NCHW".parse().unwrap();
    Options::default().dim("N", Size::of(2)).price_moves(8).input(fed)
}

#[test]
fn a_report_that_was_read_says_what_it_said() {
    let model = model().unwrap();
    for name in ["onnx", "nhwc", "cuda-tensorcore"] {
        let target = target(name).unwrap();
        let optimized = optimize(&model, target.as_ref(), &options()).unwrap();
        let report: &Report = optimized.report();
        assert!(report.changed && report.io.len() == 1 && report.hints.len() == 1, "{report:?}");
        assert!(report.rewrites.contains_key("scale_into_conv"), "{report:?}");
        assert!(report.graphs.iter().any(|g| !g.opaque.is_empty()), "{report:?}");
        let read = again(report);
        assert_eq!((read.summary(), read.explain()), (report.summary(), report.explain()));
    }
    let unmoved = optimize(&model, target("onnx").unwrap().as_ref(), &Options::default().price_moves(8)).unwrap();
    assert!(unmoved.report().moves().any(|m| !m.ways.is_empty()), "{:?}", unmoved.report());
    again(unmoved.report());
}

#[test]
fn an_audit_that_was_read_says_what_it_said() {
    let target = target("onnx").unwrap();
    let found: Audit = audit(&model().unwrap(), target.as_ref(), &Options::default()).unwrap();
    assert!(found.count(Fate::Stays) > 0 && found.list.iter().any(|m| !m.record.ways.is_empty()), "{found:?}");
    assert_eq!(again(&found).explain(), found.explain());
}

#[test]
fn an_audit_counts_no_view_among_the_moves_of_the_best_decision() {
    let mut b = GraphBuilder::new("net").opset(17);
    let x = b.input("x", DType::F32, [1, 16, 16, 8].map(Dim::from)).unwrap();
    let weights = b.constant("w", Constant::filled(DType::F32, &[8, 8, 3, 3], 0.5)).unwrap();
    let image = b.op("Transpose", "image", &[x], [("perm", Attr::Ints(vec![0, 3, 1, 2]))]).unwrap();
    let conv = b.op("Conv", "conv", &[image, weights], [("pads", Attr::Ints(vec![1; 4]))]).unwrap();
    let mean = b.op("GlobalAveragePool", "mean", &[conv], []).unwrap();
    b.output(mean).unwrap();
    let model = Model::of_graph(&b.finish()).unwrap();
    let found = audit(&model, target("nhwc").unwrap().as_ref(), &Options::default()).unwrap();
    // Channels of one pixel lie as they are read, first or last.
    assert_eq!((found.moves.nodes, found.best.nodes), (1, 0), "{found:?}");
}

#[test]
fn an_explanation_that_was_read_says_what_it_said() {
    let target = target("onnx").unwrap();
    let found: Explained = why(&model().unwrap(), target.as_ref(), &Options::default(), "image").unwrap();
    assert_eq!(found.values.len(), 1);
    assert_eq!(again(&found).explain(), found.explain());
}

#[test]
fn what_is_no_report_is_refused() {
    for text in ["{}", "[]", r#"{"schema": 1, "target": 3}"#] {
        assert!(serde_json::from_str::<Report>(text).is_err(), "{text}");
    }
}
