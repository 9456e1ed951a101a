//! Laws of forms. For every offer that a form makes in a hit of its cases (`targets/tests/form_cases`), not only the cheapest one:
//!
//! - *Written*: the offer can be taken, and the verifier passes the graph after every pass.
//! - *Equal*: ONNX Runtime computes the same from the file before and after, bit by bit where the form moves or picks data. Files of
//!   domain `relayout` carry the bodies of what they call, so those run as well.
//! - *Alone*: every op of the file outside of the piece is still there, once, with its attributes and operands.
//! - *Priced*: the price is finite, and asked twice the form says the same (`taking/mod.rs` asks twice).
//!
//! Each case runs for every built-in target of its family, as far as its form offers something there; of `ort-cpu` in the blocks
//! of this host.

mod common;
#[path = "../../targets/tests/taking/mod.rs"]
mod taking;

use relayout::ir::graph::{Graph, Node, NodeId, Op};
use relayout::verify::Tolerance;
use relayout::{Model, Options, Target, optimize};
use relayout_target::Offer;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use taking::{Case, Taking, cases, family, op_name, targets, told};

/// Rounding of float32 sums of some hundred products: the root of the mean square of all differences, and the largest one, both beside
/// the root of the mean square of the results.
const ROUNDING: [f64; 2] = [2e-5, 4e-4];

/// What a case makes for a target.
struct Made {
    bytes: Vec<u8>,
    graph: Graph,
    changed: bool,
}

fn made(model: &Model, target: &Taking<'_>) -> Result<Made, String> {
    let result = optimize(model, target, &Options::default()).map_err(|e| format!("it is not written: {e}"))?;
    let changed = result.report().changed;
    let bytes = result.to_bytes().map_err(|e| format!("it can't be a file: {e}"))?;
    Ok(Made { bytes, graph: result.graph().clone(), changed })
}

/// The law of equal results.
fn equal(case: &Case, before: &[u8], after: &[u8]) -> Result<(), String> {
    let comparison = common::compared(before, after, &BTreeMap::new())?;
    let [rms, largest] = ROUNDING;
    common::judged(&comparison, (!case.exact).then(|| Tolerance::new(rms, largest)))
}

/// The law of the other nodes. Transposes and Reshapes are moves and views, which may go. Nodes beside the piece that take offers too
/// are still there by their names.
fn alone(case: &Case, file: &Graph, made: &Graph) -> Result<(), String> {
    let others = file.nodes().filter(|&n| matches!(file.node(n).op, Op::Onnx(_)) && !is_view(file.node(n)));
    for n in others {
        let node = file.node(n);
        let own = node.result(0).map(|y| file.value(y).name.as_str());
        if own.is_some_and(|own| case.piece().any(|name| name == own)) {
            continue;
        }
        let is_same = |m: &NodeId| {
            let now = made.node(*m);
            let alike = op_name(now) == op_name(node) && format!("{:?}", now.attrs) == format!("{:?}", node.attrs);
            now.origin == node.origin && (alike || case.beside && now.op.is_named(node.onnx().unwrap_or_default()))
        };
        let count = made.nodes().filter(is_same).count();
        if node.origin.is_none() || count != 1 {
            return Err(format!("{} is there {count} times as it was:\n{made}", node.describe(file)));
        }
    }
    Ok(())
}

fn is_view(node: &Node) -> bool {
    matches!(node.onnx(), Some("Transpose" | "Reshape"))
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
    for target in targets() {
        let target = target.as_ref();
        for case in cases().iter().filter(|case| case.is_hit() && case.family == family(target)) {
            let model = Model::of_graph(&case.parsed()).unwrap_or_else(|e| panic!("{}: {e}", case.name()));
            let before = relayout_onnx::export::fresh(&case.parsed()).unwrap();
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
