//! `relayout ops`, and the page that it generates.

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

#[test]
fn the_page_of_ops_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let printed = stdout(&["ops", "--markdown"]);
    let changed = printed.lines().zip(page.lines()).find(|(a, b)| a != b);
    assert!(
        page == printed,
        "docs/ops.md is not what the table says (first difference: {changed:?}); write it anew with\n    \
         cargo run -p relayout-cli -- ops --markdown > docs/ops.md"
    );
}

#[test]
fn an_op_is_printed_with_its_versions_signatures_and_what_is_renumbered() {
    let text = stdout(&["ops", "Softmax"]);
    let expected = "Softmax 1-12\n  a* x*!~ -> a* x*!; axis: `axis`, by default 1\n\
                    Softmax 13-26\n  a* [x]~ b* -> a* [x] b*; axis: `axis`, by default -1; renumbered: `axis`\n";
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
