//! Whole networks of `testdata/models`: what the optimizer makes of each is a snapshot, and each is run before and after.
//!
//! The files are stripped of their weights; [`fill`] puts cheap numbers of the recorded mean and spread in their place, so that
//! activations keep their size. The snapshot of a model of many nodes is its report and the number of its ops; the text of the graph
//! is in those of the others.

use crate::common;
use crate::fill;
use prost::Message;
use relayout::{Model, Report};
use relayout_onnx::proto::ModelProto;
use relayout_verify::Tolerance;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Nodes of a graph whose text is still read by people.
const READABLE: usize = 160;

fn filled(name: &str) -> Vec<u8> {
    let path = common::testdata("models").join(format!("{name}.onnx"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    fill::fill(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// How often each op occurs in the main graph.
fn ops(bytes: &[u8]) -> BTreeMap<String, usize> {
    let model = ModelProto::decode(bytes).expect("a model");
    let mut counts = BTreeMap::new();
    for node in model.graph.iter().flat_map(|g| &g.node) {
        *counts.entry(node.op_type.clone().unwrap_or_default()).or_default() += 1;
    }
    counts
}

fn told(before: &[u8], after: &[u8], report: &Report) -> String {
    let mut text = report.explain();
    let (old, new) = (ops(before), ops(after));
    for op in old.keys().chain(new.keys().filter(|op| !old.contains_key(*op))) {
        let count = |ops: &BTreeMap<String, usize>| ops.get(op).copied().unwrap_or(0);
        if count(&old) != count(&new) {
            let _ = writeln!(text, "{op}: {} -> {}", count(&old), count(&new));
        }
    }
    for name in common::unread(after) {
        let _ = writeln!(text, "unread constant `{name}`");
    }
    if new.values().sum::<usize>() <= READABLE {
        let model = Model::from_bytes(after.to_vec().into(), None).expect("the result opens");
        text.push_str(&model.print());
    }
    text
}

/// Snapshot, execution and the laws for one model. `tolerance` is for models in which a sum is formed in another order.
fn check(name: &str, tolerance: Option<Tolerance>) {
    let bytes = filled(name);
    let dims = BTreeMap::new();
    let outcome = common::optimized(&bytes, &dims).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut problems = Vec::new();
    let mut law = |result: Result<(), String>| problems.extend(result.err());
    law(common::not_worse(&outcome.report));
    law(common::says_no_more(&outcome));
    law(common::compared(&bytes, &outcome.bytes, &dims).and_then(|c| common::judged(&c, tolerance)));
    law(common::settled(&bytes, &outcome, &dims));
    law(common::settled_under_other_names(&outcome.bytes, &dims));
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(format!("model_{name}"), told(&bytes, &outcome.bytes, &outcome.report));
    });
    assert!(problems.is_empty(), "{name}: {}", problems.join("\n"));
}

macro_rules! models {
    ($($test:ident: $name:literal, $tolerance:expr;)*) => {
        $(#[test] fn $test() { check($name, $tolerance); })*

        #[test]
        fn every_model_file_has_a_test() {
            let found: Vec<String> = common::model_files("models").iter().map(|path| common::stem(path)).collect();
            let mut known = vec![$($name.to_owned()),*];
            known.sort();
            assert_eq!(found, known);
        }
    };
}

models! {
    espcn_x3_is_left_alone: "espcn_x3", None;
    if_early_exit_loses_a_cast: "if_early_exit", None;
    if_mixed_has_moves_in_its_branches: "if_mixed", None;
    loop_refine_has_a_loop: "loop_refine", None;
    resnet18_functions_calls_model_local_functions: "resnet18_functions", None;
    resnet34_bn_op9_folds_its_batch_normalizations: "resnet34_bn_op9", Some(Tolerance::default());
    tf_unet_loses_the_moves_around_its_convolutions: "tf_unet_notr", None;
    tf_mobilenet_v2_loses_the_moves_around_its_convolutions: "tf_mobilenet_v2_raw", Some(Tolerance::default());
    tf_efficientnet_b0_loses_the_moves_around_its_convolutions: "tf_efficientnet_b0_notr", Some(Tolerance::default());
    unet_dynhw_has_symbolic_extents: "unet_dynhw", None;
    shufflenet_v2_keeps_its_shuffles: "shufflenet_v2_x1_0", Some(Tolerance::default());
    qdq_shufflenet_v2_keeps_its_shuffles: "qdq_shufflenet_v2_x1_0", None;
    convnext_tiny_normalizes_channels_last: "convnext_tiny", Some(Tolerance::default());
    mobilevit_s_unfolds_patches: "mobilevit_s_sim", Some(Tolerance::default());
    segformer_b0_mixes_tokens_and_images: "segformer_b0", Some(Tolerance::default());
    gpt2_l3_splits_heads: "gpt2_l3", Some(Tolerance::default());
    whisper_enc_l2_splits_heads: "whisper_enc_l2", Some(Tolerance::default());
}
