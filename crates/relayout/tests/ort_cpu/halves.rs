//! Networks that convolve halves, made for ONNX Runtime's CPU provider: which Casts of theirs stay, run before and after, with the
//! runtime's own rewrites off and on.

use crate::common;
use crate::fold_nets::blocks::{blocks, executes, levels};
use crate::fold_nets::cpu::{made_for, refusal, target};
use crate::fold_nets::{BOOL, F16, F32, I64, Net};
use prost::Message;
use relayout::{Model, Numerics, Options, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_targets::Block;
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, save_as_loaded, verify};
use std::collections::BTreeMap;
use std::path::Path;

trait Halves: Sized {
    fn cast(self, from: &str, to: i32, name: &str) -> Self;
    /// A convolution of 32 channels to 32, whose name names its weights too.
    fn conv(self, from: &str, name: &str) -> Self;
}

impl Halves for Net {
    fn cast(self, from: &str, to: i32, name: &str) -> Net {
        self.node_with("Cast", &[from], name, &[("to", &[i64::from(to)])])
    }

    fn conv(self, from: &str, name: &str) -> Net {
        let weights = format!("{name}.weights");
        let net = self.floats(&weights, F16, &[32, 32, 3, 3], true);
        net.node_with("Conv", &[from, &weights], name, &[("pads", &[1, 1, 1, 1])])
    }
}

fn nodes(model: &ModelProto) -> &[NodeProto] {
    model.graph.as_ref().map_or(&[], |graph| &graph.node)
}

fn count(model: &ModelProto, op: &str) -> usize {
    nodes(model).iter().filter(|n| n.op_type() == op).count()
}

/// What is made of a network, its results held against those of the network. Nothing is left for the runtime to put in blocks.
fn optimized(block: Block, net: &Net, numerics: Numerics) -> ModelProto {
    let bytes = net.bytes();
    let target = target(block);
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let result = optimize(&model, &target, &Options::default().numerics(numerics).strict()).expect("it is optimized");
    let made = result.to_bytes().expect("it is written");
    for level in levels(block, &made) {
        let mut run = Run::default();
        run.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: BTreeMap::new() };
        let (a, b) = (ModelSource::Bytes(&bytes), ModelSource::Bytes(&made));
        let comparison = verify(common::runtime(), a, b, &inputs, &run).expect("both run");
        common::judged(&comparison, Some(Tolerance::of_result(&model, &result)))
            .unwrap_or_else(|e| panic!("{level:?}: {e}\n{}", common::printed(&made)));
    }
    let model = ModelProto::decode(made.as_slice()).expect("a model");
    if !executes(block, &made) {
        return model;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = folder.join(format!("halves_{}.onnx", std::thread::current().name().unwrap_or("main")));
    save_as_loaded(common::runtime(), ModelSource::Bytes(&made), Level::All, &place).expect("it loads");
    let loaded = ModelProto::decode(std::fs::read(place).expect("it is there").as_slice()).expect("a model");
    for op in ["ReorderInput", "ReorderOutput"] {
        assert!(count(&loaded, op) <= count(&model, op), "{op} on load\n{}", common::printed(&made));
    }
    model
}

fn blocked(model: &ModelProto) -> usize {
    nodes(model).iter().filter(|n| n.op_type() == "Conv" && n.domain() == "com.microsoft.nchwc").count()
}

/// A network that reads an image.
fn image(dtype: i32) -> Net {
    Net::new(17).input("x", dtype, &[1, 32, 12, 12])
}

/// Floats that are fed and given, halves between them, and an op of floats in the middle: as converters write networks of floats.
fn mixed() -> Net {
    image(F32)
        .cast("x", F16, "h")
        .conv("h", "c")
        .node("Relu", &["c"], "r")
        .cast("r", F32, "f")
        .values("scales", F32, &[4], &[1.0, 1.0, 2.0, 2.0])
        .node("Resize", &["f", "", "scales"], "large")
        .cast("large", F16, "g")
        .conv("g", "d")
}

#[test]
fn casts_around_what_the_runtime_computes_in_floats_go() {
    for block in blocks() {
        let net = mixed().cast("d", F32, "y").output("y", F32);
        let made = optimized(block, &net, Numerics::Reassociate);
        assert_eq!((count(&made, "Cast"), blocked(&made)), (0, 2), "{:?}", nodes(&made));
        assert_eq!(refusal(block, &net.bytes()), None);
        // Outputs of halves stay such.
        let made = optimized(block, &mixed().output("d", F16), Numerics::Reassociate);
        assert_eq!((count(&made, "Cast"), blocked(&made)), (1, 2));
        // Who wants each bit has each Cast of the model's that rounds, and one that makes floats of what it leaves.
        let made = optimized(block, &net, Numerics::Exact);
        assert!(count(&made, "Cast") >= 4, "{:?}", nodes(&made));
    }
}

#[test]
fn what_the_runtime_rounds_is_rounded() {
    for block in blocks() {
        let rounded: [(&str, Net, usize); 5] = [
            (
                "a Cast behind a Transpose, which the runtime runs in halves",
                mixed()
                    .node_with("Transpose", &["d"], "t", &[("perm", &[0, 2, 3, 1])])
                    .cast("t", F32, "y")
                    .output("y", F32),
                2,
            ),
            (
                "two Casts of the model",
                image(F32)
                    .cast("x", F16, "h")
                    .cast("h", F32, "f")
                    .cast("f", F16, "g")
                    .conv("g", "c")
                    .cast("c", F32, "y")
                    .output("y", F32),
                2,
            ),
            (
                "integers, of which not all are halves",
                image(F16)
                    .input("i", I64, &[1, 32, 1, 1])
                    .cast("i", F16, "n")
                    .conv("x", "c")
                    .node("Add", &["c", "n"], "s")
                    .cast("s", F32, "y")
                    .output("y", F32),
                3,
            ),
            (
                "an output that is rounded",
                image(F32).cast("x", F16, "y").conv("y", "c").cast("c", F32, "z").output("y", F16).output("z", F32),
                2,
            ),
            (
                "an op of the runtime's own",
                image(F32)
                    .cast("x", F16, "h")
                    .conv("h", "c")
                    .node("Gelu", &["c"], "g")
                    .of_domain("com.microsoft")
                    .conv("g", "d")
                    .cast("d", F32, "y")
                    .output("y", F32),
                2,
            ),
        ];
        for (what, net, casts) in rounded {
            let made = optimized(block, &net, Numerics::Reassociate);
            assert_eq!(count(&made, "Cast"), casts, "{what}: {:#?}", nodes(&made));
            assert!(blocked(&made) > 0, "{what}");
        }
    }
}

#[test]
fn a_cast_stays_behind_just_those_ops_that_the_runtime_runs_in_halves() {
    for block in blocks() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (place, mut of_halves) = (folder.join("one_op_of_halves.onnx"), 0);
        let ops = [
            "Transpose",
            "Concat",
            "Max",
            "Min",
            "Sign",
            "Clip",
            "Relu",
            "Sigmoid",
            "Tanh",
            "Add",
            "Mul",
            "Neg",
            "Softmax",
        ];
        for op in ops {
            let behind = |net: Net, from: &str, to: &str| {
                let operands =
                    if ["Concat", "Max", "Min", "Add", "Mul"].contains(&op) { vec![from; 2] } else { vec![from] };
                let axes: &[(&str, &[i64])] = if op == "Concat" { &[("axis", &[1])] } else { &[] };
                net.node_with(op, &operands, to, axes)
            };
            let alone = behind(image(F16), "x", "y").output("y", F16).bytes();
            save_as_loaded(common::runtime(), ModelSource::Bytes(&alone), Level::Disabled, &place).expect("it loads");
            let loaded = ModelProto::decode(std::fs::read(&place).expect("it is there").as_slice()).expect("a model");
            let runs_in_halves = count(&loaded, "Cast") == 0;
            let net =
                behind(image(F32).cast("x", F16, "h").conv("h", "c"), "c", "t").cast("t", F32, "y").output("y", F32);
            let made = optimized(block, &net, Numerics::Reassociate);
            assert_eq!(count(&made, "Cast"), if runs_in_halves { 2 } else { 0 }, "{op}");
            of_halves += usize::from(runs_in_halves);
        }
        assert!(of_halves > 0 && of_halves < ops.len());
    }
}

#[test]
fn a_result_may_differ_by_what_its_numbers_round() {
    for block in blocks() {
        let tolerance = |net: &Net| {
            let model = Model::from_bytes(net.bytes().into(), None).expect("it opens");
            let target = target(block);
            let result = optimize(&model, &target, &Options::default()).expect("it is optimized");
            Tolerance::of_result(&model, &result)
        };
        assert_eq!(tolerance(&mixed().output("d", F16)), Tolerance::new(2e-3, 2e-2));
        let floats = |scale: &str| {
            let net = image(F32).floats("w", F32, &[32, 32, 1, 1], true);
            net.values("s", F32, &[], &[0.5])
                .node("Conv", &["x", "w"], "c")
                .node(scale, &["c", "s"], "y")
                .output("y", F32)
        };
        assert_eq!(tolerance(&floats("Mul")), Tolerance::new(1e-4, 1e-3));
        assert_eq!(tolerance(&floats("Max")), Tolerance::default());
    }
}

#[test]
fn numbers_that_are_halves_anyway_need_no_rounding() {
    for block in blocks() {
        let net = image(F16)
            .input("b", BOOL, &[1, 32, 1, 1])
            .cast("b", F16, "n")
            .conv("x", "c")
            .node("Mul", &["c", "n"], "s")
            .output("s", F16);
        let made = optimized(block, &net, Numerics::Reassociate);
        // Of the image, of the numbers, and of the output.
        assert_eq!((count(&made, "Cast"), blocked(&made)), (3, 1), "{:#?}", nodes(&made));
    }
}

#[test]
fn weights_that_are_computed_of_halves_are_not_rounded_to_halves() {
    for block in blocks() {
        // A third of halves is none.
        let net = image(F16)
            .floats("w", F16, &[32, 32, 3, 3], true)
            .values("three", F16, &[], &[3.0])
            .node("Div", &["w", "three"], "thirds")
            .node("Exp", &["thirds"], "weights")
            .node_with("Conv", &["x", "weights"], "c", &[("pads", &[1, 1, 1, 1])])
            .output("c", F16);
        let made = optimized(block, &net, Numerics::Reassociate);
        let [div, exp] = ["Div", "Exp"].map(|op| count(&made, op));
        assert_eq!((div, exp, blocked(&made)), (0, 0, 1), "{:?}", nodes(&made));
        let raw =
            made.graph.as_ref().and_then(|g| g.initializer.iter().max_by_key(|t| t.raw_data().len())).expect("weights");
        let floats = raw.raw_data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        // The last digits of a half that is widened are zeros.
        assert!(floats.filter(|w| w.to_bits() & 0x1fff != 0).count() > 32 * 32 * 8);
    }
}

#[test]
fn halves_that_a_body_reads_stay_with_all_others() {
    for block in blocks() {
        let body = |op: &str| Net::new(17).node(op, &["c"], "inner").output("inner", F16);
        let net = image(F16)
            .input("which", BOOL, &[])
            .conv("x", "c")
            .branches("which", "y", &body("Relu"), &body("Neg"))
            .output("y", F16);
        let target = target(block);
        assert_eq!(made_for(&target, &net.bytes(), Numerics::Reassociate), net.bytes());
    }
}
