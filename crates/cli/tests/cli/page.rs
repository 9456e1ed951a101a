//! `--html`: reports as pages.

use crate::common::{folder, listing, model, relayout, str};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The data of a page.
fn data(html: &str) -> Value {
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
    let (_, rest) = html.split_once("id=\"data\">").expect("it has data");
    serde_json::from_str(rest.split_once("</script>").expect("the data ends").0).expect("the data is JSON")
}

fn page(path: &Path) -> Value {
    data(&fs::read_to_string(path).expect("the page is there"))
}

fn figure<'a>(page: &'a Value, name: &str) -> Option<&'a Value> {
    page["figures"].as_array().expect("there are figures").iter().find(|figure| figure["name"] == name)
}

#[test]
fn optimize_writes_a_page_beside_the_model_and_says_what_it_always_does() {
    let dir = folder(&["conv"]);
    let [source, out, html] = ["conv.onnx", "out.onnx", "page.html"].map(|name| dir.path().join(name));
    let plain = relayout(["optimize", str(&source), "-o", str(&out)]);
    let bytes = fs::read(&out).unwrap();
    let run = relayout(["optimize", str(&source), "-o", str(&out), "--html", str(&html)]);
    assert_eq!(run.fine(), plain.fine());
    assert_eq!(fs::read(&out).unwrap(), bytes, "the page changes nothing of the result");
    let page = page(&html);
    assert_eq!((&page["kind"], &page["name"]), (&"optimize".into(), &"conv.onnx".into()));
    assert_eq!(page["graphs"].as_array().unwrap().len(), 2);
    let moves = figure(&page, "Moves").expect("moves are counted");
    assert!(moves["before"].as_u64() > moves["after"].as_u64(), "{moves}");
    assert!(figure(&page, "Measured time").is_none(), "nothing ran");
    assert!(!page.to_string().contains(str(dir.path())), "where the model lies is not on the page");
}

#[test]
fn verified_results_are_timed() {
    let dir = folder(&["conv"]);
    let [source, out, html] = ["conv.onnx", "out.onnx", "page.html"].map(|name| dir.path().join(name));
    relayout(["optimize", str(&source), "-o", str(&out), "--verify", "--html", str(&html)]).fine();
    let page = page(&html);
    let time = figure(&page, "Measured time").expect("both ran");
    assert!(time["before"].as_u64() > Some(0) && time["after"].as_u64() > Some(0), "{time}");
    let note = time["note"].as_str().unwrap();
    assert!(note.contains("ONNX Runtime") && note.contains("before beside itself"), "{time}");
}

#[test]
fn a_result_that_is_the_model_is_not_timed() {
    let dir = folder(&["relu"]);
    let [model, source, out, html] =
        ["relu.onnx", "once.onnx", "twice.onnx", "page.html"].map(|name| dir.path().join(name));
    relayout(["optimize", str(&model), "-o", str(&source)]).fine();
    relayout(["optimize", str(&source), "-o", str(&out), "--verify", "--html", str(&html)]).fine();
    assert_eq!(fs::read(&source).unwrap(), fs::read(&out).unwrap());
    assert!(figure(&page(&html), "Measured time").is_none());
}

#[test]
fn explain_audit_and_diff_have_pages_too() {
    let dir = folder(&["conv", "relu"]);
    let [a, b, html] = ["conv.onnx", "relu.onnx", "page.html"].map(|name| dir.path().join(name));
    for (words, kind, graphs) in [
        (vec!["explain", str(&a)], "explain", 2),
        (vec!["audit", str(&a)], "audit", 1),
        (vec!["audit", str(&a), str(&b)], "audit", 2),
        (vec!["diff", str(&a), str(&b)], "diff", 2),
    ] {
        let text = relayout(&words);
        let run = relayout(words.iter().copied().chain(["--html", str(&html)]));
        assert_eq!(run.fine(), text.fine());
        let page = page(&html);
        assert_eq!((&page["kind"], page["graphs"].as_array().unwrap().len()), (&kind.into(), graphs), "{words:?}");
        // To stdout it goes instead of the text.
        let piped = relayout(words.iter().copied().chain(["--html", "-"]));
        assert_eq!(data(piped.fine()), page);
    }
    let differ = relayout(["diff", str(&a), str(&b), "--exit-code", "--html", str(&html)]);
    assert_eq!(differ.code, 3, "{differ:?}");
    assert!(!page(&html)["changes"].as_array().unwrap().is_empty());
}

#[test]
fn a_call_that_fails_leaves_no_page() {
    let dir = folder(&["conv"]);
    let [source, out, html] = ["conv.onnx", "out.onnx", "page.html"].map(|name| dir.path().join(name));
    let bad = model("bad_cycle");
    assert_eq!(relayout(["optimize", str(&bad), "-o", str(&out), "--html", str(&html)]).code, 1);
    let nowhere = dir.path().join("none/page.html");
    let run = relayout(["optimize", str(&source), "-o", str(&out), "--html", str(&nowhere)]);
    assert!(run.refused(1).contains("none/page.html"), "{run:?}");
    assert_eq!(listing(dir.path()), ["conv.onnx"]);
    relayout(["optimize", str(&source), "-o", str(&out), "--html", str(&html), "--dry-run"]).fine();
    assert_eq!(listing(dir.path()), ["conv.onnx"]);
}

#[test]
fn an_older_page_is_replaced_whole() {
    let dir = folder(&["conv"]);
    let [source, html] = ["conv.onnx", "page.html"].map(|name| dir.path().join(name));
    fs::write(&html, "older").unwrap();
    relayout(["explain", str(&source), "--html", str(&html)]).fine();
    assert_eq!(page(&html)["kind"], "explain");
    assert_eq!(listing(dir.path()), ["conv.onnx", "page.html"]);
}

#[test]
fn a_page_is_for_one_model_and_one_stream() {
    let dir = folder(&["conv", "relu"]);
    let run = relayout(["optimize", str(dir.path()), "--html", "page.html"]);
    assert!(run.refused(2).contains("--html is for one model"), "{run:?}");
    let source = dir.path().join("conv.onnx");
    let run = relayout(["optimize", str(&source), "-o", "-", "--html", "-"]);
    assert!(run.refused(2).contains("stdout"), "{run:?}");
    let run = relayout(["explain", str(&source), "--html", "page.html", "--why", "x"]);
    assert!(run.refused(2).contains("--why"), "{run:?}");
}

#[test]
fn the_same_model_gives_the_same_page() {
    let source = model("branches");
    let one = relayout(["explain", str(&source), "--html", "-"]);
    assert_eq!(relayout(["explain", str(&source), "--html", "-"]).fine(), one.fine());
}

#[test]
fn no_page_takes_the_place_of_a_model_or_of_another_file() {
    let dir = folder(&["conv", "relu"]);
    let [a, b, out, page] = ["conv.onnx", "relu.onnx", "out.onnx", "page.html"].map(|name| dir.path().join(name));
    let models = [&a, &b].map(|path| fs::read(path).unwrap());
    for (words, said) in [
        (vec!["explain", str(&a), "--html", str(&a)], "would replace the model"),
        (vec!["explain", str(&a), "--network-dot", str(&a)], "would replace the model"),
        (vec!["audit", str(&a), str(&b), "--html", str(&b)], "would replace the model"),
        (vec!["diff", str(&a), str(&b), "--html", str(&b)], "would replace the model"),
        (vec!["optimize", str(&a), "-o", str(&out), "--html", str(&a)], "would replace the model"),
        (vec!["optimize", str(&a), "-o", str(&out), "--report", str(&a)], "would replace the model"),
        (vec!["optimize", str(&a), "-o", str(&out), "--html", str(&out)], "the result and --html would both"),
        (
            vec!["optimize", str(&a), "-o", str(&out), "--html", str(&page), "--report", str(&page)],
            "--report and --html",
        ),
    ] {
        let run = relayout(&words);
        assert!(run.refused(2).contains(said), "{words:?}: {run:?}");
    }
    assert_eq!(models, [&a, &b].map(|path| fs::read(path).unwrap()));
    assert!(!out.exists() && !page.exists());
}
