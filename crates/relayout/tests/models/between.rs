//! What stands between Transposes and lets them through, in small: optimized, executed before and after, and proved.

use crate::fold_nets::{F32, Net, runtime};
use relayout::{Model, Options, Report, optimize, target};
use relayout_verify::{Inputs, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;

/// The report and the result for a target, once it is known to compute the same.
fn made(net: &Net, name: &str) -> (Report, Vec<u8>) {
    let bytes = net.bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let target = target(name).expect("a built-in target");
    let result = optimize(&model, target.as_ref(), &Options::default().strict()).expect("it is optimized");
    let written = result.to_bytes().expect("it is written");
    let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&written));
    let inputs = Inputs::Random { seed: 3, dims: BTreeMap::new() };
    let comparison = verify(runtime(), a, b, &inputs, &Run::default()).expect("both run");
    assert!(comparison.holds(&Tolerance::new(1e-5, 1e-5)), "{comparison}\n{}", result.graph());
    let verdict = crate::released::verdict(&bytes, &written);
    assert!(verdict.holds(), "{verdict}\n{}", result.graph());
    (result.report().clone(), written)
}

/// The moves that are left for target `onnx`.
fn left(net: &Net) -> usize {
    made(net, "onnx").0.after.nodes
}

const FIRST: (&str, &[i64]) = ("perm", &[0, 3, 1, 2]);
const LAST: (&str, &[i64]) = ("perm", &[0, 2, 3, 1]);

#[test]
fn a_normalization_that_names_no_axes_is_one_of_images() {
    let net = Net::new(13).input("x", F32, &[2, 5, 6, 4]).node_with("Transpose", &["x"], "a", &[FIRST]);
    let net = net.node("MeanVarianceNormalization", &["a"], "b").node("Relu", &["b"], "c");
    let net = net.node_with("Transpose", &["c"], "y", &[LAST]).output("y", F32);
    assert_eq!(left(&net), 0);
}

/// An Einsum of channels last, between Transposes.
fn einsum(equation: &'static str, weights: &[i64]) -> Net {
    let net = Net::new(13).input("x", F32, &[2, 4, 4, 6]).floats("w", F32, weights, true);
    let net = net.node_with("Transpose", &["x"], "a", &[LAST]);
    let net = net.node("Einsum", &["a", "w"], "b").text_attribute("equation", equation);
    net.node_with("Transpose", &["b"], "c", &[FIRST]).node("Relu", &["c"], "y").output("y", F32)
}

#[test]
fn what_an_ellipsis_stands_for_is_spelled_where_it_changes_places() {
    assert_eq!(left(&einsum("...c,cd->...d", &[4, 3])), 0);
    assert_eq!(left(&einsum("...c,cd", &[4, 3])), 0);
}

#[test]
fn an_ellipsis_that_repeats_elements_stays_where_it_is() {
    assert_eq!(left(&einsum("...ij,...jk->...ik", &[1, 1, 4, 4])), 2);
}

/// A dilated convolution of signals as Keras has it: places of blocks are a batch, and each signal is an image of one row.
fn dilated(count: i64, wrong: bool) -> Net {
    let net = Net::new(13).input("x", F32, &[count, 12, 4]).floats("w", F32, &[6, 4, 1, 3], true);
    let net = net.ints("cut", &[count, 4, 3, 4]).ints("batch", &[3 * count, 4, 4]).ints("row", &[1]).ints("at", &[2]);
    let net = net.node("Reshape", &["x", "cut"], "a").node_with("Transpose", &["a"], "b", &[("perm", &[2, 0, 1, 3])]);
    let net = net.node("Reshape", &["b", "batch"], "c").node("Unsqueeze", &["c", "row"], "d");
    let net = net.node_with("Transpose", &["d"], "e", &[FIRST]).node_with(
        "Conv",
        &["e", "w"],
        "f",
        &[("pads", &[0, 1, 0, 1])],
    );
    let net = net.node("Squeeze", &["f", "at"], "g").node_with("Transpose", &["g"], "h", &[("perm", &[0, 2, 1])]);
    let net = net.ints("apart", &[3, count, 4, 6]).ints("whole", &[count, 12, 6]).node("Reshape", &["h", "apart"], "i");
    let back = if wrong { [1, 0, 2, 3] } else { [1, 2, 0, 3] };
    let net = net.node_with("Transpose", &["i"], "j", &[("perm", &back)]).node("Reshape", &["j", "whole"], "k");
    net.node("Relu", &["k"], "y").output("y", F32)
}

#[test]
fn signals_that_are_images_of_one_row_are_convolved_with_dilation() {
    for count in [1, 2] {
        let (report, written) = made(&dilated(count, false), "onnx");
        assert_eq!(report.rewrites.get("blocks_into_dilation"), Some(&1), "{count}");
        assert!(report.after.nodes <= 2 && !written.is_empty(), "{count}: {} moves", report.after.nodes);
        assert_eq!(made(&dilated(count, true), "onnx").0.rewrites.get("blocks_into_dilation"), None, "{count}");
    }
}

#[test]
fn parts_of_weights_are_stored_in_their_place() {
    let rows = 3 * 128;
    let net = Net::new(13).input("x", F32, &[1, 128]).floats("w", F32, &[rows, 128], true).ints("axis", &[0]);
    let mut net = net.ints("i0", &[0]).ints("i1", &[100]).ints("i3", &[rows]);
    for (part, ends) in [("p", ["i1", "i3"]), ("q", ["i0", "i1"])] {
        net = net.node("Slice", &["w", ends[0], ends[1], "axis"], part);
    }
    let net = net.node("Concat", &["p", "q"], "v").int_attribute("axis", 0).node_with(
        "Transpose",
        &["v"],
        "t",
        &[("perm", &[1, 0])],
    );
    let net = net.node("MatMul", &["x", "t"], "y").output("y", F32);
    let (report, written) = made(&net, "onnx");
    assert!(written.len() <= net.bytes().len(), "{} bytes", written.len());
    assert_eq!(report.after.nodes, 0);
}

#[test]
fn the_report_says_what_a_file_grew_by() {
    let net = Net::new(13).input("x", F32, &[1, 16, 20, 20]).floats("a", F32, &[20, 16, 3, 3], true);
    let net = net.floats("b", F32, &[20, 20, 3, 3], true).node("Conv", &["x", "a"], "c").node("Relu", &["c"], "d");
    let net = net.node("Conv", &["d", "b"], "y").output("y", F32);
    let (report, _) = made(&net, "ort-cpu");
    let file = report.file.expect("it changed");
    assert!(file.filled > 0 && file.after > file.before, "{file:?}");
    assert!(report.line().contains("of zeros that fill channels up to whole blocks"), "{}", report.line());
}
