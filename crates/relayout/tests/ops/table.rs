//! Proof of the table of ops: every entry that ONNX Runtime can run on the CPU obeys the laws of `law.rs` at both ends of its range
//! of versions, what is not covered is listed with the reason, and wrong entries are found.

use crate::law;
use crate::op_cases;
use crate::op_cases::case::Case;
use crate::uncovered::{ABSENT, UNCOVERED, speaks_of};
use relayout::ir::op::{Axes, WRITTEN_OPSET, entries};
use std::collections::BTreeMap;

/// The oldest operator set that ONNX Runtime has kernels for.
const OLDEST: i64 = 7;

/// Checks cases at both ends of their ranges; panics with everything that does not hold, and with ops whose signature no case
/// put to the test.
fn prove(cases: &[Case]) {
    let mut broken = Vec::new();
    let mut tested: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for case in cases {
        let (first, last) = case.opsets;
        for opset in [first, last].into_iter().take(if first == last { 1 } else { 2 }) {
            let Some(def) = law::entry(case, opset) else {
                broken.push(format!("{}: is not in the table", case.label(opset)));
                continue;
            };
            match law::check(case, opset, def) {
                Ok(_) if matches!(def.axes, Axes::Opaque(_)) => {}
                Ok(checked) => *tested.entry((case.domain, case.op)).or_default() += checked.orders + checked.letters,
                Err(why) => broken.push(format!("{}: {why}", case.label(opset))),
            }
        }
    }
    let untested = tested.iter().filter(|(_, checks)| **checks == 0);
    broken
        .extend(untested.map(|((domain, op), _)| format!("{domain} {op}: no case has an order or a letter to check")));
    assert!(broken.is_empty(), "of {} cases these break a law:\n{}", cases.len(), broken.join("\n"));
}

#[test]
fn elementwise_ops_obey_their_laws() {
    prove(&op_cases::elementwise::cases());
}

#[test]
fn windows_normalizations_and_sampling_obey_their_laws() {
    prove(&op_cases::windows::cases());
}

#[test]
fn reductions_cuts_joins_and_picks_obey_their_laws() {
    prove(&op_cases::axes::cases());
}

#[test]
fn products_and_quantized_ops_obey_their_laws() {
    prove(&op_cases::products::cases());
}

#[test]
fn attention_obeys_its_laws() {
    prove(&op_cases::attention::cases());
}

#[test]
fn contributed_ops_obey_their_laws() {
    prove(&op_cases::contributed::cases());
}

#[test]
fn signals_and_losses_obey_their_laws() {
    prove(&op_cases::signals::cases());
}

#[test]
fn blocked_ops_have_the_types_that_are_inferred() {
    prove(&op_cases::internal::cases());
}

#[test]
fn views_shapes_and_opaque_ops_obey_their_laws() {
    prove(&op_cases::views::cases());
}

#[test]
fn every_entry_is_covered_at_both_ends_of_its_range_or_listed_with_the_reason() {
    let cases = op_cases::all();
    let lines = || ABSENT.iter().chain(UNCOVERED);
    let mut wrong = Vec::new();
    for def in entries() {
        let own = cases.iter().filter(|c| (c.domain, c.op) == (def.domain, def.name));
        let within = own.filter(|c| def.opsets.0 <= c.opsets.1 && c.opsets.0 <= def.opsets.1);
        let ends = within.fold(None, |ends: Option<(i64, i64)>, c| {
            let (low, high) = ends.unwrap_or(c.opsets);
            Some((low.min(c.opsets.0), high.max(c.opsets.1)))
        });
        let covered =
            ends.is_some_and(|(low, high)| low <= def.opsets.0.max(OLDEST) && high >= def.opsets.1.min(WRITTEN_OPSET));
        let listed = lines().any(|line| speaks_of(line, def));
        let (domain, op, (first, last)) = (def.domain, def.name, def.opsets);
        match (covered, listed) {
            (true, true) => wrong.push(format!("{domain} {op} {first}-{last} is covered: take it off the list")),
            (false, false) => {
                wrong.push(format!("{domain} {op} {first}-{last} is covered for {ends:?} only: add cases"));
            }
            _ => {}
        }
    }
    let idle = lines().filter(|line| !entries().any(|def| speaks_of(line, def)));
    wrong.extend(idle.map(|line| format!("{line:?} is not in the table")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
