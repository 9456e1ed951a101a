//! Proof of the table of ops: every entry that ONNX Runtime can run on the CPU obeys the laws of `law.rs` at both ends of its range
//! of versions, what is not covered is listed with the reason, and wrong entries are found.

mod case;
mod cases;
mod law;
mod runtime;
mod shuffle;

use case::Case;
use relayout::ir::op::{OpDef, TABLE};

/// The oldest operator set that ONNX Runtime has kernels for.
const OLDEST: i64 = 7;

/// Checks cases at both ends of their ranges; panics with everything that does not hold.
fn prove(cases: &[Case]) {
    let mut broken = Vec::new();
    for case in cases {
        let (first, last) = case.opsets;
        for opset in [first, last].into_iter().take(if first == last { 1 } else { 2 }) {
            let proof = match law::entry(case, opset) {
                Some(def) => law::check(case, opset, def),
                None => Err("is not in the table".to_owned()),
            };
            if let Err(why) = proof {
                broken.push(format!("{}: {why}", case.label(opset)));
            }
        }
    }
    assert!(broken.is_empty(), "{} of {} cases break a law:\n{}", broken.len(), cases.len(), broken.join("\n"));
}

fn entries() -> impl Iterator<Item = &'static OpDef> {
    TABLE.iter().flat_map(|family| family.iter())
}

#[test]
fn elementwise_ops_obey_their_laws() {
    prove(&cases::elementwise::cases());
}

#[test]
fn windows_normalizations_and_sampling_obey_their_laws() {
    prove(&cases::windows::cases());
}

#[test]
fn reductions_cuts_joins_and_picks_obey_their_laws() {
    prove(&cases::axes::cases());
}

#[test]
fn products_and_quantized_ops_obey_their_laws() {
    prove(&cases::products::cases());
}

#[test]
fn views_shapes_and_opaque_ops_obey_their_laws() {
    prove(&cases::views::cases());
}
