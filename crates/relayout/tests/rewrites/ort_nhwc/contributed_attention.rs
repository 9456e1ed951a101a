//! Attention as `MultiHeadAttention` of com.microsoft for CUDA's provider, for those who allow it. The CPU's provider has the op for
//! float32, so results are held against those of the original; of halves by what it computes (`relayout::Model::for_cpu_provider`).

use crate::fold_nets::{F16, F32, Net, runtime};
use prost::Message;
use relayout::device::audit_device;
use relayout::ir::op::MICROSOFT;
use relayout::proof::Unproved;
use relayout::targets::{OrtNhwc, Provider};
use relayout::{Model, Numerics, Options, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};

/// Channels of what is projected.
const CHANNELS: i64 = 24;
const HEADS: i64 = 2;

/// Where the scores of queries and keys are multiplied with a number.
#[derive(Clone, Copy, Debug)]
enum Scaled {
    Behind(f32),
    /// Queries and keys, each with this.
    Before(f32),
}

#[derive(Clone, Copy, Debug)]
struct Case {
    dtype: i32,
    batch: i64,
    positions: i64,
    width: i64,
    scaled: Scaled,
    /// What is added to the scores, `[positions]`.
    masked: bool,
}

const LONG: Case =
    Case { dtype: F32, batch: 1, positions: 256, width: 16, scaled: Scaled::Behind(0.25), masked: false };
const HALVES: Case = Case { dtype: F16, positions: 20, batch: 2, ..LONG };

impl Case {
    fn net(&self) -> Net {
        let Case { dtype, batch, positions, width, .. } = *self;
        let all = HEADS * width;
        let small = |dims: &[i64], step: i64| -> Vec<f32> {
            (0..dims.iter().product::<i64>()).map(|i| ((i * 7919 + step) % 23 - 11) as f32 / 64.0).collect()
        };
        let mut net = Net::new(17).input("x", dtype, &[batch, positions, CHANNELS]);
        net = net.ints("split", &[0, positions, HEADS, width]).ints("all", &[0, positions, all]);
        for (step, (name, order)) in [("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])].iter().enumerate()
        {
            let [weights, rows, heads] = ["weights", "rows", "heads"].map(|what| format!("{name}_{what}"));
            let dims = [CHANNELS, all];
            net = net
                .values(&weights, dtype, &dims, &small(&dims, step as i64))
                .node("MatMul", &["x", &weights], &rows)
                .node("Reshape", &[&rows, "split"], &heads)
                .node_with("Transpose", &[&heads], name, &[("perm", order)]);
        }
        net = match self.scaled {
            Scaled::Behind(by) => {
                net.values("by", dtype, &[], &[by]).node("MatMul", &["q", "k"], "s").node("Mul", &["s", "by"], "scores")
            }
            Scaled::Before(by) => net
                .values("by", dtype, &[], &[by])
                .node("Mul", &["q", "by"], "q_by")
                .node("Mul", &["k", "by"], "k_by")
                .node("MatMul", &["q_by", "k_by"], "scores"),
        };
        let mut scores = "scores";
        if self.masked {
            net = net.floats("mask", dtype, &[positions], true).node("Add", &["scores", "mask"], "masked");
            scores = "masked";
        }
        net.node_with("Softmax", &[scores], "shares", &[("axis", &[3])])
            .node("MatMul", &["shares", "v"], "context")
            .node_with("Transpose", &["context"], "together", &[("perm", &[0, 2, 1, 3])])
            .node("Reshape", &["together", "all"], "rows")
            .values("out", dtype, &[all, CHANNELS], &small(&[all, CHANNELS], 5))
            .node("MatMul", &["rows", "out"], "y")
            .output("y", dtype)
    }
}

fn cuda() -> Provider {
    Provider::of("cuda").expect("a known provider")
}

fn allowing() -> OrtNhwc {
    OrtNhwc::of(cuda().allowing(MICROSOFT).expect("it has such ops"))
}

fn made(net: &Net, target: &OrtNhwc, options: &Options) -> Vec<u8> {
    let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
    optimize(&model, target, options).expect("it is optimized").to_bytes().expect("it is written")
}

/// The model with that domain allowed, proved, its results held against those of the input. Optimized again it stays.
fn held(case: &Case) -> ModelProto {
    let (net, options) = (&case.net(), Options::default().strict().unproved(Unproved::Fail));
    let (before, after) = (net.bytes(), made(net, &allowing(), &options));
    for level in [Level::Disabled, Level::All] {
        let mut run = Run::default();
        run.level_b = level;
        let inputs = Inputs::Random { seed: 7, dims: [].into() };
        let (a, b) = (ModelSource::Bytes(&before), ModelSource::Bytes(&after));
        let comparison = verify(runtime(), a, b, &inputs, &run).expect("both run");
        // Halves are rounded after each op of the original, and once by this one.
        let tolerance = if case.dtype == F16 { Tolerance::new(4e-3, 3e-2) } else { Tolerance::new(2e-5, 4e-4) };
        assert!(comparison.holds(&tolerance), "{case:?}, {level:?}: {comparison}");
    }
    let model = Model::from_bytes(after.clone().into(), None).expect("it opens");
    let again = optimize(&model, &allowing(), &Options::default()).expect("it is optimized");
    assert_eq!(again.to_bytes().expect("it is written"), after, "{case:?}");
    ModelProto::decode(&*after).expect("a model")
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |graph| &graph.node)
}

fn ops(model: &ModelProto) -> Vec<&str> {
    nodes(model).iter().filter_map(|node| node.op_type.as_deref()).collect()
}

/// What the attention of com.microsoft says of its heads and its scale.
fn attention(model: &ModelProto) -> Option<(i64, f32)> {
    let node = nodes(model).iter().find(|node| node.op_type.as_deref() == Some("MultiHeadAttention"))?;
    assert_eq!(node.domain.as_deref(), Some(MICROSOFT));
    let attribute = |name: &str| node.attribute.iter().find(|attr| attr.name.as_deref() == Some(name));
    Some((attribute("num_heads")?.i?, attribute("scale")?.f?))
}

#[test]
fn attention_is_one_op_between_projections_as_they_are() {
    for case in [LONG, HALVES, Case { batch: 3, ..LONG }] {
        let model = held(&case);
        assert_eq!(attention(&model), Some((HEADS, 0.25)), "{case:?}");
        assert_eq!(ops(&model), ["MatMul", "MatMul", "MatMul", "MultiHeadAttention", "MatMul"], "{case:?}");
    }
}

#[test]
fn a_number_may_stand_before_the_scores_too() {
    for case in [LONG, HALVES] {
        // Of halves the product of both is no half.
        let model = held(&Case { scaled: Scaled::Before(0.7), ..case });
        let (_, scale) = attention(&model).unwrap_or_else(|| panic!("{case:?}: {:?}", ops(&model)));
        assert!((scale - 0.49).abs() < 2e-3, "{case:?}: {scale}");
    }
}

#[test]
fn what_the_kernel_would_move_by_itself_stays() {
    for (what, case) in [
        ("few positions of floats", Case { positions: 255, ..LONG }),
        ("heads that are not read in eights", Case { width: 12, ..LONG }),
        ("heads of halves that are not read in eights", Case { width: 12, ..HALVES }),
        ("a mask", Case { masked: true, ..LONG }),
    ] {
        assert_eq!(attention(&held(&case)), None, "{what}");
    }
}

#[test]
fn by_default_no_op_of_that_domain_is_written() {
    let decoded = |bytes: Vec<u8>| ModelProto::decode(&*bytes).expect("a model");
    for case in [LONG, HALVES] {
        let plain = decoded(made(&case.net(), &OrtNhwc::of(cuda()), &Options::default()));
        assert_eq!(attention(&plain), None, "{case:?}");
        let exact = made(&case.net(), &allowing(), &Options::default().numerics(Numerics::Exact));
        assert_eq!(attention(&decoded(exact)), None, "every bit has to stay: {case:?}");
    }
}

#[test]
fn nothing_is_transposed_around_it() {
    for case in [LONG, HALVES, Case { batch: 3, ..LONG }] {
        let model = Model::from_bytes(case.net().bytes().into(), None).expect("it opens");
        let allowed = cuda().allowing(MICROSOFT).expect("it has such ops");
        let audit = audit_device(&model, &allowed, &Options::default()).expect("it is audited");
        assert!(audit.file.transposes > 0, "{case:?}");
        assert_eq!(audit.optimized.transposes, 0, "{case:?}");
    }
}
