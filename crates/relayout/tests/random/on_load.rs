//! What ONNX Runtime makes of a file on load is what target `ort-cpu` is held against: what it would do by itself is never predicted
//! to be cheaper than what was decided, and convolutions that nothing was decided about are left to it.

use crate::common;
use crate::fold_nets::{F32, Net};
use crate::net::{self, recipes};
use crate::steps;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use prost::Message;
use relayout::{Model, Numerics, Options, audit, optimize};
use relayout_onnx::proto::ModelProto;
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Level, ModelSource, save_as_loaded};

/// What ONNX Runtime runs of a file.
fn loaded(bytes: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("on_load_{name}.onnx"));
    save_as_loaded(common::runtime(), ModelSource::Bytes(bytes), Level::All, &place).map_err(|e| e.to_string())?;
    std::fs::read(place).map_err(|e| e.to_string())
}

fn blocked(bytes: &[u8], op: &str) -> usize {
    let model = ModelProto::decode(bytes).unwrap();
    let nodes = model.graph.iter().flat_map(|g| &g.node);
    nodes.filter(|n| n.op_type() == op && n.domain() == "com.microsoft.nchwc").count()
}

/// Two convolutions whose weights are made of others by `make`.
fn computed(make: impl Fn(Net, &str, &str) -> Net) -> Net {
    let net = Net::new(17).input("x", F32, &[1, 32, 14, 14]);
    let net = net.floats("v", F32, &[32, 32, 3, 3], true).floats("u", F32, &[48, 32, 3, 3], true);
    let net = make(make(net, "v", "w"), "u", "z");
    net.node_with("Conv", &["x", "w"], "c", &[("pads", &[1, 1, 1, 1])])
        .node("Relu", &["c"], "r")
        .node_with("Conv", &["r", "z"], "y", &[("pads", &[1, 1, 1, 1])])
        .output("y", F32)
}

#[test]
fn convolutions_whose_weights_the_runtime_computes_are_left_to_it() {
    let exponent = |net: Net, from: &str, to: &str| net.node("Tanh", &[from], to);
    // No pass evaluates a pool.
    let pool = |net: Net, from: &str, to: &str| {
        net.node_with("AveragePool", &[from], to, &[("kernel_shape", &[3, 3]), ("pads", &[1, 1, 1, 1])])
    };
    let target = OrtCpu::new(Block::of_host()).unwrap();
    for (net, numerics, left) in [
        (computed(exponent), Numerics::Exact, true),
        (computed(exponent), Numerics::Reassociate, false),
        (computed(pool), Numerics::Reassociate, true),
    ] {
        let bytes = net.bytes();
        let model = Model::from_bytes(bytes.clone().into(), None).unwrap();
        let made = optimize(&model, &target, &Options::default().numerics(numerics).strict()).unwrap();
        let after = made.to_bytes().unwrap();
        // By itself the runtime blocks both, with a reorder before the first and one behind the second; so do we.
        for file in [&bytes, &after] {
            let ran = loaded(file, "computed").unwrap();
            let count = ["Conv", "ReorderInput", "ReorderOutput"].map(|op| blocked(&ran, op));
            assert_eq!(count[0], 2, "{left}\n{}", made.graph());
            assert!(count[1] <= 2 && count[2] == 1, "{count:?}\n{}", made.graph());
        }
        assert_eq!(blocked(&after, "Conv"), if left { 0 } else { 2 }, "{}", made.graph());
        assert_eq!(made.report().changed, !left);
    }
}

/// The runtime's prediction for a network, by the tables that decide, and the decision's own. `None` where the network has something
/// that only one of them has a price for.
fn predictions(bytes: &[u8], name: &str) -> Result<Option<[u64; 2]>, String> {
    let target = OrtCpu::new(Block::of_host()).map_err(|e| e.to_string())?;
    let ran = loaded(bytes, name)?;
    if blocked(&ran, "Conv") == 0 {
        return Ok(None);
    }
    let model = Model::from_bytes(ran.into(), None).map_err(|e| e.to_string())?;
    let found = audit(&model, &target, &Options::default()).map_err(|e| e.to_string())?;
    // A node that runs in a form that the target does not have is priced as another.
    if found.notes.iter().any(|note| note.contains("in a form that the target does not have")) {
        return Ok(None);
    }
    Ok(found.predicted_ns.map(|runtime| [runtime, found.best_ns]))
}

#[test]
fn no_decision_is_predicted_to_cost_more_than_what_the_runtime_does_by_itself() {
    let mut runner = TestRunner::deterministic();
    let (mut held, mut cheaper) = (0, 0);
    for i in 0..120u16 {
        let recipe = recipes(i % steps::COUNT).new_tree(&mut runner).unwrap().current();
        let sample = net::sample(&recipe);
        // What the runtime does not load is no case.
        let Ok(Some([runtime, ours])) = predictions(&sample.bytes, "random") else { continue };
        assert!(ours <= runtime, "{ours} ns against {runtime} ns\n{}", common::printed(&sample.bytes));
        held += 1;
        cheaper += usize::from(ours < runtime);
    }
    assert!(held >= 40 && cheaper >= 10, "{held} networks were held against the runtime, {cheaper} are cheaper");
}
