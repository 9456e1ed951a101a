//! `relayout bench permute`: the forms in which it says what it measured. Not how fast it is.

use crate::common::relayout;
use serde_json::Value;

#[test]
fn a_case_is_timed_beside_two_copies_in_a_table() {
    let run = relayout(["bench", "permute", "--shape", "2,6,30", "--perm", "0,2,1", "--rounds", "2", "--pairs", "2"]);
    let lines: Vec<&str> = run.fine().lines().collect();
    assert_eq!(lines.len(), 4 + 1, "{run:?}");
    assert!(lines[0].starts_with("GB/s, "), "{run:?}");
    let columns: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(columns[..2], ["shape", "perm"]);
    assert!(["permute", "copy", "stream"].iter().all(|name| columns.contains(name)), "{run:?}");
    for (line, data) in [(lines[2], "hot"), (lines[3], "cold")] {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((cells[0], cells[1], cells[4]), ("2x6x30", "0,2,1", data));
        // Of so few bytes on a busy machine, a rate may round to 0.
        assert!(cells[6..9].iter().all(|rate| rate.parse::<f64>().is_ok_and(|rate| rate >= 0.0)), "{line}");
    }
}

#[test]
fn json_has_every_round_and_what_follows_from_them() {
    let case = ["bench", "permute", "--shape", "2,4,6,40", "--perm", "0,2,1,3", "--dtype", "f16", "--hot"];
    let run = relayout(case.into_iter().chain(["--rounds", "3", "--forms", "--json"]));
    let list: Value = serde_json::from_str(run.fine()).expect("JSON");
    let [only] = list.as_array().expect("a list").as_slice() else { panic!("{list}") };
    let report = &only["report"];
    assert_eq!((&report["request"]["elem_bytes"], &report["request"]["hint"]), (&2.into(), &"hot".into()));
    assert_eq!((&report["bytes"], report["ns"].as_array().map(Vec::len)), (&3840.into(), Some(3)));
    for name in ["permute", "copy", "stream", "strided", "gather"] {
        assert!(only["gb_per_s"][name].as_f64().is_some_and(|rate| rate > 0.0), "{name}: {only}");
    }
    assert!(only["permute_of_copy"]["median"].is_f64() && only["copy_of_copy"]["median"].is_f64());
}

#[test]
fn a_harness_gets_one_line_with_a_time_for_each_run() {
    let args = "bench permute --elem 4 --shape 3,5,7 --perm 2,0,1 --threads 1 --mode dram --pairs 2 --reps 11";
    let run = relayout(args.split(' '));
    assert_eq!(run.fine().lines().count(), 1);
    let line: Value = serde_json::from_str(run.fine()).expect("JSON");
    let times = line["ns"].as_array().expect("a list");
    assert!(times.len() == 11 && times.iter().all(|ns| ns.as_u64().is_some_and(|ns| ns > 0)), "{line}");
}

#[test]
fn what_can_not_be_timed_is_refused() {
    for (args, cause) in [
        ("--shape 2,3 --perm 0,0", "[0, 0] is not a permutation of the 2 axes"),
        ("--shape 2,3", "--perm"),
        ("--shape 2,x --perm 1,0", "`x` is not a non-negative integer"),
        ("--shape 2,3 --perm 1,0 --dtype i4", "4 bits"),
        ("--shape 2,3 --perm 1,0 --dtype str", "not an element type with a size"),
        ("--shape 2,3 --perm 1,0 --elem 0", "`0` is not a number of bytes"),
        ("--shape 2,3 --perm 1,0 --hot --cold", "--cold"),
        ("--shape 2,3 --perm 1,0 --reps 3", "say --hot or --cold"),
        ("--shape 2,3 --perm 1,0 --hot --pairs 99999999999", "do not fit"),
    ] {
        let run = relayout(["bench", "permute"].into_iter().chain(args.split(' ')));
        assert!(run.refused(2).contains(cause), "{args}: {run:?}");
    }
}
