//! Every wrong entry is found by the law that speaks of its mistake.

use crate::law::{check, entry};
use crate::op_cases::mistakes::{Mistake, mistakes};

#[test]
fn every_wrong_entry_is_found_and_the_right_one_holds() {
    let mut missed = Vec::new();
    for Mistake { what, def, case, law } in mistakes() {
        let opset = case.opsets.1;
        match check(&case, opset, def) {
            Ok(checked) => missed.push(format!("{what}: not found by {checked:?}")),
            Err(why) if !why.contains(law) => missed.push(format!("{what}: found by another law than `{law}`: {why}")),
            Err(_) => {}
        }
        let table = entry(&case, opset).expect("the op is in the table");
        if let Err(why) = check(&case, opset, table) {
            missed.push(format!("{what}: the right entry breaks a law: {why}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
