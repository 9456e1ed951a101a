//! `solve` and `explain --problem`: cost function networks in files.

use crate::common::{folder, model, relayout, str, with_stdin};
use serde_json::Value;
use std::fs;

/// The example of docs/assignment.md, whose best assignment costs 140.
const EXAMPLE: &str = r#"relayout-problem 1
var v0 "x": 40
var v1 "p": 0
var v2 "r": 0 0
var v3 "q": 0
var v4 "y": 0
var v5 "z": 0
value "t" layouts 2
  from v1: 0
  to v2: 0 1
  moves: 0 100 | 100 0
value "u" layouts 2
  from v2: 0 1
  to v3: 0
  to v4: 1
  to v5: 1
  moves: 0 100 | 100 0
"#;

#[test]
fn a_problem_is_solved_proved_and_checked() {
    let dir = folder(&[]);
    let (problem, proof) = (dir.path().join("p.txt"), dir.path().join("proof.json"));
    fs::write(&problem, EXAMPLE).unwrap();
    let run = relayout(["solve", str(&problem), "--certificate", str(&proof)]);
    let expected = "cost 140, bound 140, optimal\n6 variables, 0 left after merging and pinning\nv0 \"x\": 0\nv1 \"p\": 0\nv2 \"r\": 0\nv3 \"q\": 0\nv4 \"y\": 0\nv5 \"z\": 0\n";
    assert_eq!(run.fine(), expected);
    let held = relayout(["solve", str(&problem), "--check", str(&proof)]);
    assert_eq!(held.fine(), "the certificate holds: cost 140, bound 140, optimal\n");
    let bad = fs::read_to_string(&proof).unwrap().replace("\"bound\":140", "\"bound\":141");
    fs::write(&proof, bad).unwrap();
    let refused = relayout(["solve", str(&problem), "--check", str(&proof)]);
    assert!(refused.refused(3).contains("it proves 140"), "{refused:?}");
    fs::write(&proof, "{}").unwrap();
    assert!(relayout(["solve", str(&problem), "--check", str(&proof)]).refused(1).contains("is not a certificate"));
}

#[test]
fn a_problem_comes_from_stdin_and_its_solution_is_json() {
    let run = with_stdin(&["solve", "-", "--json"], EXAMPLE.as_bytes());
    let solution: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!((&solution["cost"], &solution["optimal"]), (&Value::from(140), &Value::from(true)));
    assert_eq!(solution["assignment"].as_array().unwrap().len(), 6);
}

#[test]
fn the_problem_of_a_model_has_the_cost_that_its_certificate_claims() {
    let dir = folder(&[]);
    let [text, wcsp, proof] = ["p.txt", "p.wcsp", "proof.json"].map(|name| dir.path().join(name));
    for target in ["onnx", "ort-cpu"] {
        relayout(["explain", str(&model("conv")), "--target", target, "--problem", str(&text)]).fine();
        relayout(["explain", str(&model("conv")), "--target", target, "--problem", str(&wcsp)]).fine();
        let claimed = relayout(["check-certificate", str(&model("conv")), "--target", target, "--json"]);
        let cost = serde_json::from_str::<Value>(claimed.fine()).unwrap()["cost_ns"].clone();
        for file in [&text, &wcsp] {
            let solved = relayout(["solve", str(file), "--json", "--certificate", str(&proof)]);
            assert_eq!(serde_json::from_str::<Value>(solved.fine()).unwrap()["cost"], cost, "{target} {file:?}");
        }
        // What was written from the text is what was written from the model.
        let again = dir.path().join("again").with_extension("wcsp");
        relayout(["solve", str(&text), "-o", str(&again)]).fine();
        let behind_name = |file| fs::read_to_string(file).unwrap().split_once(' ').unwrap().1.to_owned();
        assert_eq!(behind_name(&again), behind_name(&wcsp), "{target}");
    }
}

#[test]
fn what_cannot_be_solved_is_said() {
    let dir = folder(&[]);
    let file = dir.path().join("p.txt");
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("relayout-problem 1\nvar v0: x", &[], 1, "line 2: `x` is not a cost"),
        ("relayout-problem 1\nvar v0: inf", &[], 1, "no assignment can be paid"),
        ("p 1 2 1 5\n2\n1 0 4 0", &["--wcsp"], 0, ""),
        ("p 2 2 2 5\n2 2\n1 0 4 0\n1 1 3 0", &["--wcsp"], 1, "no assignment below the file's upper bound 5"),
        (EXAMPLE, &["-o", "x.txt", "--nodes", "3"], 2, "--nodes"),
    ];
    for (text, options, status, says) in cases {
        fs::write(&file, text).unwrap();
        let run = relayout(["solve", str(&file)].into_iter().chain(options.iter().copied()));
        if status == 0 {
            run.fine();
        } else {
            assert!(run.refused(status).contains(says), "{run:?}");
        }
    }
    let replaced = relayout(["solve", str(&file), "-o", str(&file)]);
    assert!(replaced.refused(2).contains("would replace"), "{replaced:?}");
}
