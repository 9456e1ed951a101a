//! What was found with released models, in small: `testdata/released`. Each is optimized, its moves are counted, and it is executed
//! before and after at several sizes.

use crate::dilated::{Case, Wrong, case};
use crate::fold_nets::runtime;
use proptest::prelude::*;
use prost::Message;
use relayout::{Model, Options, Size, optimize, target};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_verify::{Inputs, ModelSource, Options as Run, Tolerance, verify};
use std::collections::BTreeMap;
use std::path::Path;

fn given(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/released");
    std::fs::read(folder.join(format!("{name}.onnx"))).expect("it is there")
}

fn proto(bytes: &[u8]) -> ModelProto {
    ModelProto::decode(bytes).expect("a model")
}

/// The result for target `onnx` and what the report says is moved, once both are known to compute the same at these sizes.
fn made(name: &str, sizes: &[&[(&str, i64)]]) -> (Vec<u8>, usize, u64) {
    let bytes = given(name);
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let onnx = target("onnx").expect("a built-in target");
    let result = optimize(&model, onnx.as_ref(), &Options::default().strict()).expect("it is optimized");
    let written = result.to_bytes().expect("it is written");
    for at in sizes {
        let dims: BTreeMap<String, i64> = at.iter().map(|&(name, size)| (name.to_owned(), size)).collect();
        let inputs = Inputs::Random { seed: 5, dims };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&written));
        let comparison = verify(runtime(), a, b, &inputs, &Run::default()).expect("both run");
        assert!(comparison.holds(&Tolerance::new(1e-6, 1e-5)), "{name}: {comparison}");
    }
    (written, result.report().after.nodes, result.report().after.bytes)
}

/// How often an op occurs in a model.
fn count(bytes: &[u8], op: &str) -> usize {
    let graph = proto(bytes).graph.unwrap_or_default();
    graph.node.iter().filter(|n| n.op_type.as_deref() == Some(op)).count()
}

/// The dilations of the only convolution.
fn dilations(bytes: &[u8]) -> Vec<i64> {
    let graph = proto(bytes).graph.unwrap_or_default();
    let conv = graph.node.iter().filter(|n| n.op_type.as_deref() == Some("Conv"));
    let told =
        |n: &NodeProto| n.attribute.iter().find(|a| a.name.as_deref() == Some("dilations")).map(|a| a.ints.clone());
    conv.filter_map(told).flatten().collect()
}

fn is_one_convolution(case: &Case) -> Result<(), TestCaseError> {
    let bytes = case.net().bytes();
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let onnx = target("onnx").expect("a built-in target");
    let options = Options::default().strict();
    let result = optimize(&model, onnx.as_ref(), &options).expect("it is optimized");
    let (written, text) = (result.to_bytes().expect("it is written"), result.graph().to_string());
    let joined = case.block.map(|places| places * case.own);
    if case.is_right() || stays_around(case) {
        prop_assert_eq!(dilations(&written), joined.to_vec(), "{:?}\n{}", case, text);
        for op in ["SpaceToDepth", "DepthToSpace", "Reshape"] {
            prop_assert_eq!(count(&written, op), 0, "{:?}\n{}", case, text);
        }
        if case.is_right() {
            // What is added behind is known to be one number for each channel, and nothing is left that computes sizes.
            prop_assert_eq!(count(&written, "Add") + count(&written, "Shape"), 0, "{:?}\n{}", case, text);
        }
        let around = count(&written, "Pad") + count(&written, "Slice");
        prop_assert_eq!(around == 0, case.is_right(), "{:?}\n{}", case, text);
    } else if case.block.iter().all(|places| *places > 1) {
        prop_assert_eq!(dilations(&written), vec![case.own; 2], "{:?}\n{}", case, text);
    }
    for dims in case.sizes() {
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&written));
        let comparison = verify(runtime(), a, b, &Inputs::Random { seed: 5, dims }, &Run::default()).expect("both run");
        prop_assert!(comparison.holds(&Tolerance::new(1e-6, 1e-5)), "{:?}: {}\n{}", case, comparison, text);
    }
    // Images of one row are among the sizes that the checker tries where they are open. It does not see that a window which reads nothing
    // but padding beside one place is as wide as that place.
    if case.wrong != Some(Wrong::Order) && !case.open {
        let verdict = verdict(&bytes, &written);
        prop_assert!(verdict.holds(), "{:?}: {}\n{}", case, verdict, text);
    }
    let again = Model::from_bytes(written.clone().into(), None).expect("it opens");
    let again = optimize(&again, onnx.as_ref(), &options).expect("it is optimized");
    prop_assert_eq!(again.to_bytes().expect("it is written"), written);
    Ok(())
}

/// What the checker says of both.
pub(crate) fn verdict(before: &[u8], after: &[u8]) -> relayout_proof::Verdict {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["before.onnx", "after.onnx"].map(|name| folder.path().join(name));
    std::fs::write(&a, before).expect("it is written");
    std::fs::write(&b, after).expect("it is written");
    relayout_proof::prove(&a, &b, &relayout_proof::Proof::default()).expect("both are read")
}

/// Whether what is around the image stays: it is no zeros, or more is taken than added.
fn stays_around(case: &Case) -> bool {
    matches!(case.wrong, Some(Wrong::Crop | Wrong::Mode))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_convolution_of_the_places_of_blocks_is_dilated(case in case()) {
        is_one_convolution(&case)?;
    }
}

fn transposes(bytes: &[u8]) -> usize {
    count(bytes, "Transpose")
}

#[test]
fn axes_of_extent_1_go_and_come_whatever_the_other_sizes_are() {
    for (name, sizes) in
        [("squeeze_dyn", &[&[("t", 20), ("f", 12)][..], &[("t", 7), ("f", 31)]][..]), ("squeeze_static", &[&[][..]])]
    {
        let (written, nodes, _) = made(name, sizes);
        assert_eq!((transposes(&written), nodes), (0, 0), "{name}");
    }
}

#[test]
fn a_gain_that_is_one_at_every_size_is_taken() {
    let (written, nodes, _) = made("reduce_dyn", &[&[("t", 64), ("f", 64)], &[("t", 9), ("f", 5)]]);
    assert_eq!((transposes(&written), nodes), (0, 0));
}

#[test]
fn an_extent_that_is_counted_in_floats_is_known() {
    let (written, nodes, bytes) = made("opaque_extent", &[&[("h", 320), ("w", 320)], &[("h", 64), ("w", 96)]]);
    assert_eq!((transposes(&written), nodes, bytes), (0, 0, 0));
}

#[test]
fn an_image_that_is_padded_to_even_sizes_is_priced_at_its_size() {
    let (written, nodes, bytes) = made("pad_extents_lost", &[&[("h", 64), ("w", 64)], &[("h", 5), ("w", 8)]]);
    // 64 x 64 x 8 floats.
    assert_eq!((transposes(&written), nodes, bytes), (1, 1, 131_072));
}

#[test]
fn a_dense_layer_of_each_step_lets_moves_through() {
    let (written, nodes, bytes) = made("dense_per_step", &[&[("n", 1)], &[("n", 3)]]);
    // 20 steps of 5 floats, not of 32.
    assert_eq!((transposes(&written), nodes, bytes), (1, 1, 400));
}

#[test]
fn weights_of_layers_that_share_them_are_written_once() {
    let (written, nodes, _) = made("shared_layers", &[&[]]);
    assert_eq!(nodes, 0);
    assert!(written.len() <= given("shared_layers").len(), "{} bytes", written.len());
}

#[test]
fn an_output_keeps_the_shape_that_it_is_declared_with() {
    let written = made("output_rank", &[&[]]).0;
    let outputs = |bytes: &[u8]| proto(bytes).graph.unwrap_or_default().output;
    assert_eq!(outputs(&written), outputs(&given("output_rank")));
}

/// What is left in a model for target `onnx`: moves and bytes.
fn left(model: &Model, options: &Options) -> (usize, u64) {
    let onnx = target("onnx").expect("a built-in target");
    let result = optimize(model, onnx.as_ref(), options).expect("it is optimized");
    (result.report().after.nodes, result.report().after.bytes)
}

#[test]
fn a_range_of_one_size_is_decided_no_worse_than_that_size_in_the_file() {
    for (name, sizes) in [
        ("reduce_dyn", [("t", 48), ("f", 20)]),
        ("squeeze_dyn", [("t", 48), ("f", 20)]),
        ("opaque_extent", [("h", 320), ("w", 192)]),
        ("pad_extents_lost", [("h", 33), ("w", 10)]),
    ] {
        let model = Model::from_bytes(given(name).into(), None).expect("it opens");
        let one = sizes.iter().fold(Options::default(), |options, &(name, size)| {
            options.dim(name, Size::range(size, size).expect("a size"))
        });
        let sizes: BTreeMap<String, i64> = sizes.iter().map(|&(name, size)| (name.to_owned(), size)).collect();
        let fixed = model.with_sizes(&sizes).expect("they are open");
        assert_eq!(left(&model, &one), left(&fixed, &Options::default()), "{name}");
    }
}

#[test]
fn what_is_decided_for_half_and_double_holds_there() {
    for name in ["reduce_dyn", "squeeze_dyn"] {
        let model = Model::from_bytes(given(name).into(), None).expect("it opens");
        let known = left(&model, &Options::default());
        for size in [32, 64, 128] {
            let at = ["t", "f"].iter().fold(Options::default(), |options, &dim| options.dim(dim, Size::of(size)));
            assert_eq!(left(&model, &at).0, known.0, "{name} at {size}");
        }
    }
}
