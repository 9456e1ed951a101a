//! `relayout ops` and `relayout rules`, and the pages that they generate.

use std::path::Path;
use std::process::{Command, Output};

fn relayout(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_relayout")).args(args).output().expect("the program starts")
}

fn stdout(args: &[&str]) -> String {
    let output = relayout(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the table is UTF-8")
}

/// A page of the documentation is what a command prints with --markdown.
fn is_printed(page: &str, command: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let printed = stdout(&[command, "--markdown"]);
    let changed = printed.lines().zip(written.lines()).find(|(a, b)| a != b);
    assert!(
        written == printed,
        "docs/{page} is not what the table says (first difference: {changed:?}); write it anew with\n    \
         cargo run -p relayout-cli -- {command} --markdown > docs/{page}"
    );
}

#[test]
fn the_pages_of_ops_and_of_rules_are_what_the_program_prints() {
    is_printed("ops.md", "ops");
    is_printed("rules.md", "rules");
}

#[test]
fn an_op_is_printed_with_its_versions_signatures_and_what_is_renumbered() {
    let text = stdout(&["ops", "Softmax"]);
    let expected = "Softmax 1-12\n  a* x*!~ -> a* x*!; axis: `axis`, by default 1\n\
                    Softmax 13-28\n  a* [x]~ b* -> a* [x] b*; axis: `axis`, by default -1; renumbered: `axis`\n";
    assert_eq!(text, expected);
    assert!(stdout(&["ops", "NonZero"]).contains("opaque: lists coordinates"));
    assert!(stdout(&["ops", "Flatten"]).contains("view: "));
}

#[test]
fn the_table_is_json_too() {
    let all: serde_json::Value = serde_json::from_str(&stdout(&["ops", "--json"])).expect("it is JSON");
    let entries = all.as_array().expect("it is a list");
    assert!(entries.len() > 200, "{}", entries.len());
    let conv = entries.iter().find(|e| e["op"] == "Conv" && e["domain"] == "").expect("Conv is in the table");
    assert_eq!((conv["kind"].as_str(), conv["first_opset"].as_i64()), (Some("signature"), Some(1)));
    let opaque = entries.iter().filter(|e| e["kind"] == "opaque");
    assert!(opaque.clone().count() > 0 && opaque.into_iter().all(|e| e["reason"].is_string()));
}

#[test]
fn an_op_that_is_not_in_the_table_is_a_mistake_of_the_caller() {
    let output = relayout(&["ops", "Convolution"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`Convolution`"));
}

#[test]
fn a_rule_says_where_it_holds_what_it_buys_and_for_which_targets() {
    let text = stdout(&["rules", "scale_into_conv"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("scale_into_conv (reassociate; targets: "), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("  buys ")), "{text}");
    let text = stdout(&["rules", "attention", "--target", "ort-cpu"]);
    let expected = "attention (reassociate; targets: ort-cpu)\n  \
                    (MatMul (Softmax (Mul (MatMul ?q ?k) ?s) [-1]) ?v) = (Attention ?q ?k ?v ?s)\n  \
                    where ?s is a number, ?q is float32, float16 or bfloat16, ?k is float32, float16 or bfloat16, \
                    ?v is float32, float16 or bfloat16\n";
    assert_eq!(text, expected);
}

#[test]
fn rules_and_equations_are_json_too() {
    let entries = |args: &[&str]| {
        let all: serde_json::Value = serde_json::from_str(&stdout(args)).expect("it is JSON");
        all.as_array().expect("it is a list").clone()
    };
    let all = entries(&["rules", "--json"]);
    let count = |kind: &str| all.iter().filter(|e| e["kind"] == kind).count();
    assert!(count("rule") > 10 && count("equation") > 40, "{} and {}", count("rule"), count("equation"));
    assert!(all.iter().all(|e| e["targets"].as_array().is_some_and(|targets| !targets.is_empty())));
    let of_one = entries(&["rules", "--target", "nhwc", "--json"]);
    assert!(!of_one.is_empty() && of_one.len() < all.len());
    assert!(of_one.iter().all(|e| e["targets"].as_array().is_some_and(|targets| targets == &["nhwc"])));
}

#[test]
fn a_rule_or_target_that_is_not_there_is_a_mistake_of_the_caller() {
    for (args, named) in [(["rules", "folds"], "`folds`"), (["rules", "--target=tpu"], "`tpu`")] {
        let output = relayout(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(named));
    }
}
