//! Calibration against the runtime that is installed: every op can be measured, and what is measured is a table.

#[path = "../../relayout/tests/common/runtime.rs"]
mod runtime;

use crate::{CalibrateError, CalibrateOptions, Calibration, LARGE, calibrate, check, few_of};
use relayout::targets::measured::{Machine, MeasuredCosts, Share, specs};
use runtime::runtime;

fn options() -> CalibrateOptions {
    let mut options = CalibrateOptions::new("a machine under test", "2026-11-21").quick();
    (options.passes, options.rounds, options.shapes) = (1, 1, 8);
    // No time is held against another here.
    (options.copies, options.step) = (1, 4);
    options.threads = vec![1, 2];
    options
}

#[test]
fn a_few_points_are_spread_over_all_of_them() {
    assert_eq!(few_of(4), [0, 1, 2, 3]);
    assert_eq!(few_of(1), [0]);
    assert!(few_of(0).is_empty());
    let few = few_of(144);
    assert!(
        few.len() == 9 && few[0] == 0 && few[8] == 143 && few.windows(2).all(|pair| pair[1] - pair[0] >= 16),
        "{few:?}"
    );
}

#[test]
fn threads_that_make_no_large_convolution_faster_are_left_out_of_a_table() {
    let share = |serial: &[&str]| {
        let serial = serial.iter().map(|&grid| grid.to_owned()).collect();
        Share { ns: vec![1000], permille: vec![600], serial }
    };
    let machine = Machine {
        machine: "a busy machine".to_owned(),
        date: "2026-11-30".to_owned(),
        runtime: "ONNX Runtime 1.31.1".to_owned(),
        threads: vec![1, 2, 4],
        block: 16,
        node_ns: vec![100, 110, 120],
        off_percent: vec![6, 7],
        derived: None,
    };
    // One grid that was faster is enough to know that threads were there.
    let shares = [(2, share(&LARGE)), (4, share(&LARGE[..2]))].into();
    let left = Calibration { machine, measured: Vec::new(), shares, busy: Vec::new() }.without_busy();
    let Machine { threads, node_ns, off_percent, .. } = &left.machine;
    assert_eq!((&threads[..], &node_ns[..], &off_percent[..]), (&[1, 4][..], &[100, 120][..], &[7][..]));
    assert_eq!(left.shares.keys().collect::<Vec<_>>(), [&4]);
    let told = left.off();
    assert!(told.len() == 2 && told[0].starts_with("on 4 threads: half of"), "{told:?}");
    assert!(told[1].starts_with("on 2 threads: not measured, since not even large convolutions"), "{told:?}");
    assert!(LARGE.iter().all(|grid| specs().iter().any(|spec| spec.name == *grid)));
}

#[test]
fn every_grid_is_measured_and_the_table_can_be_held_against_other_shapes() {
    let mut heard = Vec::new();
    let calibration = calibrate(runtime(), &options(), &mut |done, of| heard.push((done, of))).unwrap();
    let text = calibration.text();
    let costs = MeasuredCosts::parse("measured", &text).unwrap();
    let Machine { machine, date, runtime: version, threads, block, node_ns, off_percent, derived } = costs.machine();
    assert_eq!((machine.as_str(), date.as_str(), &threads[..]), ("a machine under test", "2026-11-21", &[1, 2][..]));
    assert!(version.starts_with("ONNX Runtime 1."), "{version}");
    assert!(
        [4, 8, 16].contains(block) && node_ns.len() == 2 && node_ns.iter().all(|ns| (10..100_000).contains(ns)),
        "{block} {node_ns:?}"
    );
    assert_eq!((off_percent.len(), calibration.off().len()), (1, 1));
    assert!(derived.is_none());
    assert_eq!(text.matches("[grid.").count(), specs().len());
    assert_eq!(text.matches("[threads.").count(), 1);
    let two = costs.clone().on_threads(2).unwrap();
    assert!(!two.is_derived() && costs.clone().on_threads(16).unwrap().is_derived());
    assert!(heard.windows(2).all(|w| w[0].0 < w[1].0) && heard.last().is_some_and(|(done, of)| done == of));

    let checked = check(runtime(), &costs, &options(), 7, &mut |_, _| {}).unwrap();
    let again = check(runtime(), &costs, &options(), 7, &mut |_, _| {}).unwrap();
    assert!(checked.comparisons.len() >= 8);
    let drawn = |check: &crate::Check| -> Vec<_> {
        check.comparisons.iter().map(|c| (c.shape.clone(), c.other, c.predicted_ns)).collect()
    };
    assert_eq!(drawn(&checked), drawn(&again), "the same seed draws the same shapes, and costs are no measurement");
    for c in &checked.comparisons {
        assert!(c.measured_ns.iter().chain(&c.predicted_ns).all(|&ns| ns > 0), "{c:?}");
        assert!(c.best_ns() <= c.chosen_ns());
    }
    assert!(checked.to_string().contains("ranked right"), "{checked}");

    let other = Machine { block: if *block == 8 { 16 } else { 8 }, ..costs.machine().clone() };
    let text = text.replacen(&format!("block = {block}"), &format!("block = {}", other.block), 1);
    let foreign = MeasuredCosts::parse("foreign", &text).unwrap();
    let error = check(runtime(), &foreign, &options(), 7, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, CalibrateError::OtherBlock { table, .. } if table == other.block), "{error}");
}
