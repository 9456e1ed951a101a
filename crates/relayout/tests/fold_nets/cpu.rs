//! What target `ort-cpu` makes of a small model, run before and after in ONNX Runtime.

use super::blocks::levels;
use super::{Net, runtime};
use prost::Message;
use relayout::{Model, Numerics, optimize};
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_target_api::Target;
use relayout_targets::measured::{BuiltinTable, MeasuredCosts, ORT_CPU};
use relayout_targets::{Block, OrtCpu};
use relayout_verify::{Inputs, ModelSource, Options, Tolerance, verify};
use std::collections::BTreeMap;

/// The target with the costs of hosts with blocks of 16, whatever the block, and of moves as they take alone: both kinds of blocks put the
/// same forms to the test, and a few ops are worth the moves at their ends. What is decided within networks is for random networks, for
/// spellings and for the corpus.
pub(crate) fn target(block: Block) -> OrtCpu {
    let [BuiltinTable { name, text, .. }, ..] = ORT_CPU;
    by_table(block, name, text)
}

fn by_table(block: Block, name: &str, text: &str) -> OrtCpu {
    let costs = MeasuredCosts::parse(name, text).expect("a table").with_moves(1000);
    OrtCpu::new(block).expect("a built-in target").with_costs(costs)
}

/// The same but for one grid of the table: what that prices is so many times as dear. What a form computes is put to the test where
/// something else would be cheaper.
pub(crate) fn dear(block: Block, grid: &str, times: u64) -> OrtCpu {
    let [BuiltinTable { name, text, .. }, ..] = ORT_CPU;
    let head = format!("\n[grid.{grid}]\n");
    let (before, rest) = text.split_once(&head).unwrap_or_else(|| panic!("{name} has no grid {grid}"));
    let (axes, rest) = rest.split_once("ns = [").expect("a grid has times");
    let (list, behind) = rest.split_once(']').expect("a list ends");
    let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
    let numbers: Vec<String> = numbers.map(|n| (n.parse::<u64>().expect("nanoseconds") * times).to_string()).collect();
    let text = format!("{before}{head}{axes}ns = [{}]{behind}", numbers.join(", "));
    by_table(block, name, &text)
}

/// What the optimizer makes of a model.
pub(crate) fn made_for(target: &dyn Target, bytes: &[u8], numerics: Numerics) -> Vec<u8> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let options = relayout::Options::default().numerics(numerics).strict();
    optimize(&model, target, &options).expect("it is optimized").to_bytes().expect("it is written")
}

/// The model for a block, without the guard, which a second look and a second run leave as it is. Where this host has such blocks, its
/// results are held against those of the input at these sizes of symbolic dims.
pub(crate) fn optimized(block: Block, bytes: &[u8], dims: &BTreeMap<String, i64>) -> Result<ModelProto, String> {
    optimized_by(&target(block), bytes, dims)
}

/// The same with the costs of a target.
pub(crate) fn optimized_by(target: &OrtCpu, bytes: &[u8], dims: &BTreeMap<String, i64>) -> Result<ModelProto, String> {
    let target = target.clone().unguarded();
    let made = made_for(&target, bytes, Numerics::Reassociate);
    if made_for(&target, bytes, Numerics::Reassociate) != made
        || made_for(&target, &made, Numerics::Reassociate) != made
    {
        return Err("a second run gives other bytes".to_owned());
    }
    for level in levels(target.block(), &made) {
        let mut options = Options::default();
        options.level_b = level;
        let inputs = Inputs::Random { seed: 5, dims: dims.clone() };
        let comparison = verify(runtime(), ModelSource::Bytes(bytes), ModelSource::Bytes(&made), &inputs, &options);
        let comparison = comparison.map_err(|e| format!("{level:?}: {e}"))?;
        if !comparison.holds(&Tolerance::new(2e-5, 2e-4)) {
            return Err(format!("{level:?}: {comparison}"));
        }
    }
    ModelProto::decode(made.as_slice()).map_err(|e| e.to_string())
}

/// Why what is made of a model for a block is not proved to compute what the model computes; `None` if it is. Nothing is run.
pub(crate) fn refusal(block: Block, bytes: &[u8]) -> Option<String> {
    refusal_by(&target(block), bytes)
}

/// The same with the costs of a target.
pub(crate) fn refusal_by(target: &dyn Target, bytes: &[u8]) -> Option<String> {
    let model = Model::from_bytes(bytes.to_vec().into(), None).expect("it opens");
    let options = relayout::Options::default().proof().strict();
    let made = optimize(&model, target, &options).expect("it is optimized");
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["a.onnx", "b.onnx"].map(|name| folder.path().join(name));
    std::fs::write(&a, bytes).expect("it is written");
    std::fs::write(&b, made.to_bytes().expect("it has bytes")).expect("it is written");
    let text = serde_json::to_vec(&made.proof()).expect("a proof is JSON");
    let proof = relayout_proof::Proof::read(&text, "the proof").expect("it is a proof");
    let verdict = relayout_proof::prove(&a, &b, &proof).expect("both are read");
    let says_little = matches!(verdict, relayout_proof::Verdict::Proved { links: 0, .. }) && made.report().changed;
    (says_little || !verdict.holds()).then(|| verdict.to_string())
}

/// The same of a model without symbols.
pub(crate) fn blocked(block: Block, net: &Net) -> ModelProto {
    optimized(block, &net.bytes(), &BTreeMap::new()).expect("it computes the same")
}

/// The sizes of those symbols that a network has.
pub(crate) fn sizes_of(net: &Net, sizes: &[(&str, i64)]) -> BTreeMap<String, i64> {
    let own = sizes.iter().filter(|(name, _)| net.reads_symbol(name));
    own.map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

/// Nodes of the main graph.
pub(crate) fn nodes(model: &ModelProto) -> impl Iterator<Item = &NodeProto> {
    model.graph.iter().flat_map(|g| &g.node)
}

fn is_blocked(node: &NodeProto) -> bool {
    node.domain.as_deref() == Some("com.microsoft.nchwc")
}

/// How many nodes of this op there are in ONNX's domain, and in that of blocks.
pub(crate) fn count(model: &ModelProto, op: &str) -> [usize; 2] {
    let named = || nodes(model).filter(|n| n.op_type.as_deref() == Some(op));
    [named().filter(|n| !is_blocked(n)).count(), named().filter(|n| is_blocked(n)).count()]
}
