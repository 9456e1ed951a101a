//! The order of passes: what a target declares wrongly is an error before anything runs.

use crate::stub::Stub;
use relayout_passes::pipeline::steps;
use relayout_target_api::{Declared, Fact, Pass, Slot};

fn pass(is: Declared) -> Pass {
    Pass::on_each_graph(is, |_, _| Ok(()))
}

fn declared(name: &'static str, slot: Slot) -> Declared {
    Declared::new(name, slot, "a test wants it")
}

fn names(passes: Vec<Pass>) -> Result<Vec<&'static str>, String> {
    let stub = Stub::new(passes);
    steps(&stub).map(|steps| steps.iter().map(|step| step.is.name).collect()).map_err(|e| e.to_string())
}

fn why_not(passes: Vec<Pass>) -> String {
    names(passes).unwrap_err()
}

#[test]
fn passes_of_a_target_stand_where_they_say_and_else_in_their_order() {
    let a = Declared { before: &["fold_scales"], ..declared("a", Slot::Prepare) };
    let [b, c] = ["b", "c"].map(|name| declared(name, Slot::Prepare));
    let d = Declared { after: &["c"], before: &["b"], ..declared("d", Slot::Prepare) };
    let stub = Stub::new([a, b, c, d].map(pass).into());
    let all = steps(&stub).unwrap();
    let prepare: Vec<&str> = all.iter().filter(|step| step.is.slot == Slot::Prepare).map(|step| step.is.name).collect();
    let next = |name: &str| prepare.iter().skip_while(|found| **found != name).nth(1).copied();
    assert_eq!(next("a"), Some("fold_scales"), "{prepare:?}");
    assert!(prepare.ends_with(&["c", "d", "b"]), "{prepare:?}");
    // Those of the engine stay in their order.
    let stub = Stub::new(Vec::new());
    let own: Vec<&str> = steps(&stub).unwrap().iter().map(|step| step.is.name).collect();
    let left: Vec<&str> = all.iter().map(|step| step.is.name).filter(|name| own.contains(name)).collect();
    assert_eq!(left, own);
}

#[test]
fn what_gives_a_fact_comes_before_what_needs_it() {
    let needs = Declared { needs: &[Fact::Packed], ..declared("reads_packed", Slot::Finish) };
    let found = names(vec![pass(needs)]).unwrap();
    let place = |name: &str| found.iter().position(|found| *found == name);
    assert!(place("reads_packed") > place("fold_weights"), "{found:?}");
}

#[test]
fn an_unmet_need_is_an_error() {
    let early = Declared { needs: &[Fact::Layouts], ..declared("early", Slot::Prepare) };
    let why = why_not(vec![pass(early)]);
    assert!(why.contains("pass early needs Layouts, which no pass before it gives"), "{why}");
    let breaks = Declared { breaks: &[Fact::Written], ..declared("breaks", Slot::Write) };
    let breaks = Declared { after: &["write_forms"], ..breaks };
    let why = why_not(vec![pass(breaks)]);
    assert!(why.contains("pass reorder_weights needs Written, which no pass before it gives"), "{why}");
}

#[test]
fn passes_that_wait_for_each_other_are_an_error() {
    let a = Declared { after: &["b"], ..declared("a", Slot::Finish) };
    let b = Declared { after: &["a"], ..declared("b", Slot::Finish) };
    let why = why_not(vec![pass(a), pass(b)]);
    assert!(why.contains("target stub") && why.contains("wait for each other"), "{why}");
    let around = Declared { after: &["fold_pads"], before: &["fold_copies"], ..declared("around", Slot::Prepare) };
    assert!(why_not(vec![pass(around)]).contains("wait for each other"));
}

#[test]
fn an_unknown_name_is_an_error_and_so_is_one_of_another_slot() {
    for name in [&["nobody"], &["cleanup"]] {
        for is in [
            Declared { after: name, ..declared("asks", Slot::Prepare) },
            Declared { before: name, ..declared("asks", Slot::Prepare) },
        ] {
            let why = why_not(vec![pass(is)]);
            assert!(why.contains(&format!("pass asks names {}, which is no pass of its slot", name[0])), "{why}");
        }
    }
}
