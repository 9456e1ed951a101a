//! Normalizations over groups as `GroupNorm` of com.microsoft, for those who allow it. No CPU has the op: results are held against those
//! of the original by what it computes (`relayout::Model::for_cpu_provider`), in float32 and in halves.

use crate::fold_nets::{F16, F32, Net, runtime};
use prost::Message;
use relayout::device::audit_device;
use relayout::ir::op::MICROSOFT;
use relayout::proof::Unproved;
use relayout::targets::{OrtNhwc, Provider};
use relayout::{Model, Numerics, Optimized, Options, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};

const SAME: (&str, &[i64]) = ("pads", &[1, 1, 1, 1]);

/// How a file writes a normalization.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// `Reshape`, `InstanceNormalization`, `Reshape`, `Mul`, `Add`.
    Rows,
    /// `GroupNormalization` with a scale and a bias for each channel.
    Op,
    /// Means and differences of rows.
    Means,
}

/// A convolution of `x`, a normalization over groups, `SiLU`, and a convolution.
#[derive(Clone, Copy)]
struct Case {
    written: Written,
    dtype: i32,
    channels: i64,
    groups: i64,
    /// Shape of the scale and the bias behind the rows.
    affine: &'static [i64],
    /// Whether an output has the normalization without its activation.
    read_twice: bool,
}

const USUAL: Case =
    Case { written: Written::Rows, dtype: F32, channels: 24, groups: 4, affine: &[24, 1, 1], read_twice: false };

impl Case {
    fn net(&self) -> Net {
        let Case { dtype, channels, groups, .. } = *self;
        let opset = if self.written == Written::Op { 21 } else { 17 };
        let sized = |from: i64, to: i64| [to, from, 3, 3];
        let small = |dims: &[i64]| -> Vec<f32> {
            let count = dims.iter().product::<i64>();
            (0..count).map(|i| ((i * 7919 + 5) % 23 - 11) as f32 / 64.0).collect()
        };
        let (w, v) = (sized(3, channels), sized(channels, 2));
        let net = Net::new(opset)
            .input("x", dtype, &[2, 3, 6, 8])
            .values("w", dtype, &w, &small(&w))
            .values("v", dtype, &v, &small(&v))
            .node_with("Conv", &["x", "w"], "a", &[SAME]);
        let net = match self.written {
            Written::Op => net
                .floats("scale", dtype, &[channels], true)
                .floats("bias", dtype, &[channels], true)
                .node_with("GroupNormalization", &["a", "scale", "bias"], "n", &[("num_groups", &[groups])])
                .float_attribute("epsilon", 1e-4),
            Written::Rows => self.affine(
                net.ints("apart", &[0, groups, -1])
                    .ints("image", &[0, channels, 6, 8])
                    .values("unit", dtype, &[groups], &vec![1.0; groups as usize])
                    .values("zero", dtype, &[groups], &vec![0.0; groups as usize])
                    .node("Reshape", &["a", "apart"], "rows")
                    .node("InstanceNormalization", &["rows", "unit", "zero"], "even")
                    .float_attribute("epsilon", 1e-4)
                    .node("Reshape", &["even", "image"], "back"),
            ),
            Written::Means => self.affine(
                net.ints("apart", &[0, groups, -1])
                    .ints("image", &[0, channels, 6, 8])
                    .values("epsilon", dtype, &[], &[1e-4])
                    .node("Reshape", &["a", "apart"], "rows")
                    .node_with("ReduceMean", &["rows"], "mean", &[("axes", &[2])])
                    .node("Sub", &["rows", "mean"], "centred")
                    .node("Mul", &["centred", "centred"], "squared")
                    .node_with("ReduceMean", &["squared"], "variance", &[("axes", &[2])])
                    .node("Add", &["variance", "epsilon"], "above")
                    .node("Sqrt", &["above"], "deviation")
                    .node("Div", &["centred", "deviation"], "even")
                    .node("Reshape", &["even", "image"], "back"),
            ),
        };
        let net = net
            .node("Sigmoid", &["n"], "gate")
            .node("Mul", &["n", "gate"], "s")
            .node_with("Conv", &["s", "v"], "y", &[SAME])
            .output("y", dtype);
        if self.read_twice { net.output("n", dtype) } else { net }
    }

    fn affine(&self, net: Net) -> Net {
        net.floats("scale", self.dtype, self.affine, true)
            .floats("bias", self.dtype, self.affine, true)
            .node("Mul", &["back", "scale"], "scaled")
            .node("Add", &["scaled", "bias"], "n")
    }
}

/// The bytes of a model with a normalization over groups.
pub(crate) fn usual() -> Vec<u8> {
    USUAL.net().bytes()
}

/// CUDA in sessions that run convolutions channels last, and no others: of networks as small as these the others run moves faster.
fn cuda() -> Provider {
    let mut cuda = Provider::of("cuda").expect("a known provider");
    cuda.channels_first = None;
    cuda
}

fn target() -> OrtNhwc {
    OrtNhwc::of(cuda().allowing(MICROSOFT).expect("it has such ops"))
}

fn made(net: &Net, options: &Options) -> Optimized {
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    optimize(&model, &target(), options).expect("it is optimized")
}

/// The model with that domain allowed, proved, its results held against those of the input.
fn held(case: &Case, what: &str) -> ModelProto {
    held_net(&case.net(), case.dtype, what)
}

fn held_net(net: &Net, dtype: i32, what: &str) -> ModelProto {
    let result = made(net, &Options::default().strict().unproved(Unproved::Fail));
    let (before, after) = (net.bytes(), result.to_bytes().expect("it is written"));
    for level in [Level::Disabled, Level::All] {
        let mut options = Run::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 7, dims: [].into() };
        let (a, b) = (ModelSource::Bytes(&before), ModelSource::Bytes(&after));
        let comparison = verify(runtime(), a, b, &inputs, &options).expect("both run");
        // Halves are rounded after each op of the original, and once by this one.
        let tolerance = if dtype == F16 { Tolerance::new(4e-3, 3e-2) } else { Tolerance::new(2e-5, 4e-4) };
        assert!(comparison.holds(&tolerance), "{what}, {level:?}: {comparison}");
    }
    ModelProto::decode(&*after).expect("a model")
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |graph| &graph.node)
}

fn ops(model: &ModelProto) -> Vec<&str> {
    nodes(model).iter().filter_map(|node| node.op_type.as_deref()).collect()
}

/// The normalization of com.microsoft, and what it says of its activation.
fn norm(model: &ModelProto) -> Option<(&NodeProto, i64)> {
    let node = nodes(model).iter().find(|node| node.domain.as_deref() == Some(MICROSOFT))?;
    let activation = node.attribute.iter().find(|attr| attr.name.as_deref() == Some("activation"))?;
    Some((node, activation.i?))
}

#[test]
fn each_spelling_becomes_one_op_with_its_activation_in_both_types() {
    for dtype in [F32, F16] {
        // Of halves the checker knows no means that are written out.
        let spelled: &[Written] =
            if dtype == F32 { &[Written::Rows, Written::Op, Written::Means] } else { &[Written::Rows, Written::Op] };
        for &written in spelled {
            let what = format!("{written:?} of type {dtype}");
            let model = held(&Case { written, dtype, ..USUAL }, &what);
            let (node, activation) = norm(&model).unwrap_or_else(|| panic!("{what}: {:?}", ops(&model)));
            assert_eq!((node.op_type.as_deref(), activation), (Some("GroupNorm"), 1), "{what}");
            // The ends, and both convolutions.
            let others: Vec<&str> = ops(&model).into_iter().filter(|op| !["Transpose", "Conv"].contains(op)).collect();
            assert_eq!(others, ["GroupNorm"], "{what}");
        }
    }
}

#[test]
fn means_of_halves_are_given_back() {
    // The checker knows no normalization of halves that is written out, so by default it stays.
    let case = Case { written: Written::Means, dtype: F16, ..USUAL };
    let result = made(&case.net(), &Options::default().unproved(Unproved::GiveBack));
    let model = ModelProto::decode(&*result.to_bytes().expect("it is written")).expect("a model");
    assert!(norm(&model).is_none(), "{:?}", ops(&model));
    assert!(ops(&model).contains(&"Sqrt"));
}

#[test]
fn nothing_is_transposed_around_it() {
    let net = USUAL.net();
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    let left = |provider: Provider| {
        let audit = audit_device(&model, &provider, &Options::default()).expect("it is audited");
        [audit.file.transposes, audit.optimized.transposes]
    };
    assert_eq!(left(cuda()), [4, 4]);
    assert_eq!(left(cuda().allowing(MICROSOFT).expect("it has such ops")), [4, 2]);
}

#[test]
fn the_file_and_the_summary_say_where_it_runs() {
    let result = made(&USUAL.net(), &Options::default());
    assert!(result.report().line().contains("it runs on CUDAExecutionProvider only"), "{}", result.report().line());
    let model = Model::from_bytes(result.to_bytes().expect("it is written").into(), None).expect("it opens");
    assert_eq!(model.metadata("relayout.runs_on"), Some("CUDAExecutionProvider"));
    assert_eq!(model.metadata("relayout.provider"), Some("cuda"));
    // Optimized again it stays.
    let again = optimize(&model, &target(), &Options::default()).expect("it is optimized");
    assert!(!again.report().changed);
    assert_eq!(again.to_bytes().expect("it is written"), result.to_bytes().expect("it is written"));
}

#[test]
fn by_default_no_op_of_that_domain_is_written() {
    for written in [Written::Rows, Written::Op, Written::Means] {
        let net = Case { written, ..USUAL }.net();
        let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
        let result = optimize(&model, &OrtNhwc::of(cuda()), &Options::default()).expect("it is optimized");
        let model = Model::from_bytes(result.to_bytes().expect("it is written").into(), None).expect("it opens");
        assert_eq!(model.metadata("relayout.runs_on"), None);
        assert!(norm(&ModelProto::decode(model.bytes()).expect("a model")).is_none(), "{written:?}");
    }
    let exact = made(&USUAL.net(), &Options::default().numerics(Numerics::Exact));
    let exact = ModelProto::decode(&*exact.to_bytes().expect("it is written")).expect("a model");
    assert!(norm(&exact).is_none(), "every bit has to stay");
}

#[test]
fn what_the_kernel_does_not_take_stays() {
    for (what, case) in [
        ("parts of images that are no groups of channels", Case { groups: 9, ..USUAL }),
        ("groups of three channels", Case { groups: 8, ..USUAL }),
        ("a group for each channel", Case { groups: 24, ..USUAL }),
        ("groups of more channels than a block", Case { channels: 1028, groups: 2, affine: &[1028, 1, 1], ..USUAL }),
    ] {
        let model = held(&case, what);
        assert!(norm(&model).is_none(), "{what}: {:?}", ops(&model));
    }
}

#[test]
fn what_it_does_not_compute_stays_behind_it() {
    // A number for each pixel.
    let model = held(&Case { affine: &[1, 6, 8], ..USUAL }, "pixels");
    let (node, activation) = norm(&model).expect("a normalization");
    assert_eq!((node.input.len(), activation), (3, 0));
    assert_eq!(ops(&model).iter().filter(|op| ["Mul", "Add", "Sigmoid"].contains(op)).count(), 4);
    // Its result without the activation is an output: that is a node of its own.
    let model = held(&Case { read_twice: true, ..USUAL }, "read twice");
    assert_eq!(norm(&model).map(|(_, activation)| activation), Some(0));
    assert_eq!(ops(&model).iter().filter(|op| ["Mul", "Add", "Sigmoid"].contains(op)).count(), 2);
}

#[test]
fn the_result_is_what_its_snapshot_says() {
    let result = made(&USUAL.net(), &Options::default());
    let model = Model::from_bytes(result.to_bytes().expect("it is written").into(), None).expect("it opens");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("contributed_norm", model.print());
    });
}

/// What is added to images before they are normalized.
#[derive(Clone, Copy, Debug)]
enum Added {
    /// Other images; the sum is read again behind the normalization.
    Images,
    /// A number for each channel of each image, as a time step is.
    Step,
    /// Other images, and the sum is divided by one.
    OverOne,
    /// A number for each pixel.
    Pixels,
}

/// A convolution and a sum, a normalization over groups, `SiLU`, a convolution.
fn summed(dtype: i32, added: Added) -> Net {
    let (channels, groups) = (24, 4);
    let small = |dims: &[i64]| -> Vec<f32> {
        (0..dims.iter().product::<i64>()).map(|i| ((i * 7919 + 5) % 23 - 11) as f32 / 64.0).collect()
    };
    let (first, second, then) = ([channels, 3, 3, 3], [channels, 3, 3, 3], [channels, channels, 3, 3]);
    let net = Net::new(17)
        .input("x", dtype, &[2, 3, 6, 8])
        .values("w", dtype, &first, &small(&first))
        .values("r", dtype, &second, &small(&second))
        .values("v", dtype, &then, &small(&then))
        .node_with("Conv", &["x", "w"], "a", &[SAME]);
    let net = match added {
        Added::Images => net.node_with("Conv", &["x", "r"], "b", &[SAME]).node("Add", &["a", "b"], "s"),
        Added::Step => net.input("b", dtype, &[2, channels, 1, 1]).node("Add", &["b", "a"], "s"),
        Added::Pixels => net.input("b", dtype, &[2, 1, 6, 8]).node("Add", &["a", "b"], "s"),
        Added::OverOne => net
            .node_with("Conv", &["x", "r"], "b", &[SAME])
            .node("Add", &["a", "b"], "t")
            .values("one", dtype, &[], &[1.0])
            .node("Div", &["t", "one"], "s"),
    };
    net.ints("apart", &[0, groups, -1])
        .ints("image", &[0, channels, 6, 8])
        .values("unit", dtype, &[groups], &vec![1.0; groups as usize])
        .values("zero", dtype, &[groups], &vec![0.0; groups as usize])
        .node("Reshape", &["s", "apart"], "rows")
        .node("InstanceNormalization", &["rows", "unit", "zero"], "even")
        .float_attribute("epsilon", 1e-4)
        .node("Reshape", &["even", "image"], "n")
        .node("Sigmoid", &["n"], "gate")
        .node("Mul", &["n", "gate"], "m")
        .node_with("Conv", &["m", "v"], "c", &[SAME])
        .node("Add", &["c", if matches!(added, Added::Images) { "s" } else { "a" }], "y")
        .output("y", dtype)
}

#[test]
fn a_sum_before_it_is_taken_in() {
    for dtype in [F32, F16] {
        for (added, results, sums) in
            [(Added::Images, 2, 1), (Added::Step, 1, 1), (Added::OverOne, 1, 1), (Added::Pixels, 1, 2)]
        {
            let what = format!("{added:?} of type {dtype}");
            let model = held_net(&summed(dtype, added), dtype, &what);
            let (node, activation) = norm(&model).unwrap_or_else(|| panic!("{what}: {:?}", ops(&model)));
            let (name, operands) = if sums == 1 { ("SkipGroupNorm", 4) } else { ("GroupNorm", 3) };
            assert_eq!((node.op_type.as_deref(), node.input.len()), (Some(name), operands), "{what}");
            assert_eq!((node.output.len(), activation), (results, 1), "{what}");
            let count = |op: &str| ops(&model).iter().filter(|other| **other == op).count();
            assert_eq!((count("Add"), count("Div")), (sums, 0), "{what}: {:?}", ops(&model));
        }
    }
}
