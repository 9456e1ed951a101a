//! Laws of forms. For every offer that a form makes in a hit of its cases (`targets/tests/form_cases`), not only the cheapest one:
//!
//! - *Written*: the offer can be taken, and the verifier passes the graph after every pass.
//! - *Equal*: ONNX Runtime computes the same from the file before and after, bit by bit where the form moves or picks data; from the
//!   file as it stands, and with what the runtime rewrites on load. Files of domain `relayout` carry the bodies of what they call, so
//!   those run as well.
//! - *Alone*: every op of the file outside of the piece is still there, once, with its attributes and operands.
//! - *Priced*: the price is finite, and asked twice the form says the same (`taking/mod.rs` asks twice).
//!
//! Each case runs for every built-in target of its family, as far as its form offers something there, of `ort-cpu` in the blocks of
//! this host; and for those that have tables of costs with tables that were made up too. `FORM=NAME` runs the cases of one form alone.

use crate::common;
#[path = "../../../targets/tests/taking/mod.rs"]
mod taking;

use relayout::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout::proof::Unproved;
use relayout::{Model, Options, Target, optimize};
use relayout_onnx::export::fresh;
use relayout_target_api::Offer;
use relayout_targets::{Block, builtin};
use relayout_verify::{Inputs, Level, ModelSource, Options as Run, Tolerance, verify};
use std::fmt::Write as _;
use taking::{Case, Taking, cases, family, measured, op_name, targets, told};

/// Rounding of float32 sums of some hundred products: the root of the mean square of all differences, and the largest one, both beside
/// the root of the mean square of the results.
const ROUNDING: [f64; 2] = [2e-5, 4e-4];
/// The same of halves, and of floats of eight bits.
const ROUNDING_OF_HALVES: [f64; 2] = [2e-3, 4e-2];
const ROUNDING_OF_BRAIN_FLOATS: [f64; 2] = [2e-2, 2e-1];

fn rounding(case: &Case) -> [f64; 2] {
    let has = |dtype: &str| case.graph.contains(dtype);
    if has(" bf16[") {
        ROUNDING_OF_BRAIN_FLOATS
    } else if has(" f16[") {
        ROUNDING_OF_HALVES
    } else {
        ROUNDING
    }
}

/// The model of a case, and its bytes.
fn file(case: &Case) -> (Model, Vec<u8>) {
    let bytes = fresh(&case.parsed()).unwrap_or_else(|e| panic!("{}: {e}", case.name()));
    (Model::from_bytes(bytes.clone().into(), None).unwrap(), bytes)
}

/// What a case makes for a target.
struct Made {
    bytes: Vec<u8>,
    graph: Graph,
    changed: bool,
}

fn made(model: &Model, target: &Taking<'_>) -> Result<Made, String> {
    made_by(model, target, &Options::default())
}

fn made_by(model: &Model, target: &Taking<'_>, options: &Options) -> Result<Made, String> {
    let result = optimize(model, target, options).map_err(|e| format!("it is not written: {e}"))?;
    let changed = result.report().changed;
    let bytes = result.to_bytes().map_err(|e| format!("it can't be a file: {e}"))?;
    Ok(Made { bytes, graph: result.graph().clone(), changed })
}

/// The law of equal results, of the file as it stands and of what the runtime makes of it on load.
fn equal(case: &Case, before: &[u8], after: &[u8]) -> Result<(), String> {
    let inputs = Inputs::Random { seed: 1, dims: common::case_dims(&case.graph) };
    let [rms, largest] = rounding(case);
    for level in [Level::Disabled, Level::All] {
        let mut options = Run::default();
        options.level_b = level;
        let (a, b) = (ModelSource::Bytes(before), ModelSource::Bytes(after));
        let comparison = verify(common::runtime(), a, b, &inputs, &options).map_err(|e| e.to_string())?;
        // The runtime computes halves in floats and rounds where it likes, beside what only moves them too.
        let exact = case.exact && rounding(case) == ROUNDING;
        let judged = common::judged(&comparison, (!exact).then(|| Tolerance::new(rms, largest)));
        judged.map_err(|why| format!("{level:?}: {why}"))?;
    }
    Ok(())
}

/// The law of the other nodes. Transposes and Reshapes are moves and views, which may go. Nodes beside the piece that take offers too
/// are still there by their names.
fn alone(case: &Case, file: &Graph, made: &Graph) -> Result<(), String> {
    let others = file.nodes().filter(|&n| matches!(file.node(n).op, Op::Onnx(_)) && !is_view(file.node(n)));
    for n in others.filter(|&n| !is_of_piece(case, file, n)) {
        let node = file.node(n);
        let is_same = |m: &NodeId| {
            let now = made.node(*m);
            let alike = op_name(now) == op_name(node) && format!("{:?}", now.attrs) == format!("{:?}", node.attrs);
            now.origin == node.origin && (alike || case.beside && now.op.is_named(node.onnx().unwrap_or_default()))
        };
        let now: Vec<NodeId> = made.nodes().filter(is_same).collect();
        let (Some(_), &[now]) = (node.origin, &now[..]) else {
            return Err(format!("{} is there {} times as it was:\n{made}", node.describe(file), now.len()));
        };
        for (slot, &v) in node.inputs.iter().enumerate() {
            let from = v.map(|v| source(file, v)).filter(|&m| !is_of_piece(case, file, m));
            let now = made.node(now).operand(slot).map(|v| made.node(source(made, v)));
            let same = |a: &Node, b: &Node| a.origin == b.origin || is_constant(a) && is_constant(b);
            if from.is_some_and(|m| !now.is_some_and(|now| same(file.node(m), now))) {
                return Err(format!("{} reads another operand {slot}:\n{made}", node.describe(file)));
            }
        }
    }
    Ok(())
}

fn is_of_piece(case: &Case, file: &Graph, n: NodeId) -> bool {
    file.node(n).result(0).is_some_and(|y| case.piece().any(|name| name == file.value(y).name))
}

fn is_view(node: &Node) -> bool {
    matches!(node.onnx(), Some("Transpose" | "Reshape"))
}

/// Constants are stored as they are read.
fn is_constant(node: &Node) -> bool {
    matches!(node.op, Op::Constant(_))
}

/// The node of the file that a value comes from, behind moves and views.
fn source(graph: &Graph, mut v: ValueId) -> NodeId {
    loop {
        let (n, _) = graph.value(v).producer();
        let node = graph.node(n);
        match node.operand(0).filter(|_| node.origin.is_none() || is_view(node)) {
            Some(x) => v = x,
            None => return n,
        }
    }
}

fn check(case: &Case, target: &dyn Target, offer: &Offer, model: &Model, before: &[u8]) -> Result<(), String> {
    if !offer.cost.is_finite() {
        return Err("its price is not finite".to_owned());
    }
    // An offer that is not taken is an error here; one that runs the nodes of the file leaves it as it is.
    let written = case.written(target, offer)?;
    let made = made(model, &case.takes(target, offer))?;
    if made.changed != written.is_some() {
        return Err(format!("the file {} changed", if made.changed { "is" } else { "is not" }));
    }
    equal(case, before, &made.bytes)?;
    alone(case, &model.ir().graph, &made.graph)
}

#[test]
fn every_offer_of_every_form_is_written_alone_and_computes_the_same() {
    let (mut problems, mut offers) = (String::new(), 0);
    let only = std::env::var("FORM").ok();
    let asked = |case: &&Case| only.as_ref().is_none_or(|form| case.form == *form);
    for target in targets().into_iter().chain(measured::targets(Block::of_host())) {
        let target = target.as_ref();
        for case in cases().iter().filter(|case| case.is_hit() && case.family == family(target)).filter(asked) {
            let (model, before) = file(case);
            let asks = case.asks(target);
            made(&model, &asks).unwrap_or_else(|e| panic!("{}: {e}", case.name()));
            for offer in asks.offered() {
                offers += 1;
                if let Err(why) = check(case, target, &offer, &model, &before) {
                    let _ = writeln!(problems, "{} for {}, {}: {why}", case.name(), target.name(), told(&offer));
                }
            }
        }
    }
    assert!(problems.is_empty() && offers > 0, "{problems}");
}

/// Of an offer in another type than float32: what `check` looks at, and that the file is proved to compute the same. The CPU provider runs
/// it only where it runs the case. Whether it does.
fn holds_in_type(case: &Case, target: &dyn Target, offer: &Offer) -> Result<bool, String> {
    let (model, before) = file(case);
    let written = case.written(target, offer)?;
    let made = made_by(&model, &case.takes(target, offer), &Options::default().unproved(Unproved::Fail))?;
    if made.changed != written.is_some() {
        return Err(format!("the file {} changed", if made.changed { "is" } else { "is not" }));
    }
    alone(case, &model.ir().graph, &made.graph)?;
    let runs = equal(case, &before, &before).is_ok();
    if runs {
        equal(case, &before, &made.bytes)?;
    }
    Ok(runs)
}

#[test]
fn every_offer_of_ort_nhwc_holds_in_halves_and_brain_floats_as_in_float32() {
    let mut problems = String::new();
    let hits =
        || cases().iter().filter(|case| case.is_hit() && case.family == "ort-nhwc" && case.graph.contains(" f32["));
    for name in ["ort-nhwc", "ort-nhwc/webgpu", "ort-nhwc/cuda", "ort-nhwc/cuda+com.microsoft"] {
        let target = taking::target(name);
        for (dtype, case) in ["f16", "bf16"].into_iter().flat_map(|dtype| hits().map(move |case| (dtype, case))) {
            let told = |why: &str| format!("{} of {dtype} for {name}: {why}\n", case.name());
            let (wanted, case) = (case.offered(target.as_ref()).unwrap().len(), case.in_type(dtype));
            // An op that newer operator sets do not have, in one that does not have the type.
            if dtype == "bf16" && case.graph.contains("opset=9 ") {
                continue;
            }
            let offers = case.offered(target.as_ref()).unwrap();
            if offers.len() != wanted && !taking::lacks_kernels(&case, dtype) {
                problems += &told(&format!("{} offers, {wanted} of float32", offers.len()));
            }
            for offer in offers {
                match holds_in_type(&case, target.as_ref(), &offer) {
                    Ok(true) => {}
                    // Of bfloat16 the CPU provider has few kernels.
                    Ok(false) if dtype == "bf16" => {}
                    Ok(false) => problems += &told("the CPU provider does not run it"),
                    Err(why) => problems += &told(&why),
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn a_form_that_is_wrong_is_found() {
    let target = builtin("onnx").unwrap();
    let target = target.as_ref();
    let gemm = cases().iter().find(|case| case.name() == "onnx/turned_product/hit_gemm").expect("a case of flags");
    let square = Case { graph: gemm.graph.replace("12", "8").replace("16", "8"), ..Case::read(&gemm.path) };
    let (model, before) = file(&square);
    let offer = square.offered(target).unwrap().remove(0);
    assert_eq!(check(&square, target, &offer, &model, &before), Ok(()));

    // Nobody sees of a square matrix that it does not lie as the op reads it.
    let wrong = square.takes(target, &offer).changing(|offer| offer.layouts.ins[0] = None);
    let wrong = made(&model, &wrong).unwrap();
    let why = equal(&square, &before, &wrong.bytes).unwrap_err();
    assert!(why.contains("differ"), "{why}");

    let without = square.graph.replace("  %z: f32[8,8] = Sin(%y)\n", "").replace("output %z", "output %y");
    let without = Case { graph: without, ..Case::read(&gemm.path) };
    let without = made(&file(&without).0, &without.takes(target, &offer)).unwrap();
    let why = alone(&square, &model.ir().graph, &without.graph).unwrap_err();
    assert!(why.contains("Sin -> `z` is there 0 times"), "{why}");
}
