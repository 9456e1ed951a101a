//! Pairs of models that differ, each in its own way, and pairs that compute the same in another way: `check` finds each of the first and
//! passes each of the second. `tools/make_verify_models.py` makes them, and `docs/verify.md` lists them.

use crate::runtime;
use relayout_verify::{Answer, CheckOptions, CheckResult, Inputs, ModelSource, Near, VerifyError, check};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Pairs of which nothing can be said, since the original has no number or is not like itself.
const NOT_COMPARED: [&str; 3] = ["chance", "nothing_at_all", "nothing_but_nan"];

/// The pair whose second model the runtime refuses with its rewrites on.
const REFUSED: &str = "runs_only_without_rewrites";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of the pairs in a folder.
fn pairs(folder: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(root().join("testdata/verify").join(folder)).expect("the models are there");
    let names = files.map(|file| file.expect("an entry").file_name().into_string().expect("a name"));
    names.filter_map(|name| name.strip_suffix(".a.onnx").map(str::to_owned)).collect()
}

fn checked(folder: &str, name: &str, options: &CheckOptions) -> Result<CheckResult, VerifyError> {
    let path = |side: &str| root().join(format!("testdata/verify/{folder}/{name}.{side}.onnx"));
    let inputs = Inputs::Random { seed: 0, dims: BTreeMap::new() };
    let (a, b) = (path("a"), path("b"));
    check(runtime(), ModelSource::Path(&a), ModelSource::Path(&b), &inputs, options, &mut |_| {})
}

#[test]
fn every_kind_of_difference_is_found() {
    let names = pairs("differing");
    assert!(names.len() >= 30, "{}", names.len());
    for name in names {
        let found = checked("differing", &name, &CheckOptions::default());
        if name == REFUSED {
            let text = found.expect_err("the runtime refuses it").to_string();
            assert!(text.contains(".b.onnx` with the runtime's rewrites on"), "{text}");
            continue;
        }
        let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        let wanted = if NOT_COMPARED.contains(&name.as_str()) { Answer::NotCompared } else { Answer::Differs };
        assert_eq!(found.answer, wanted, "{name}: {found}");
        assert!(!found.holds());
    }
}

#[test]
fn what_computes_the_same_in_another_way_passes() {
    for name in pairs("alike") {
        let found = checked("alike", &name, &CheckOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(found.holds(), "{name}: {found}");
    }
}

#[test]
fn a_difference_that_steps_explain_is_none_that_is_confirmed() {
    let mut options = CheckOptions::default();
    let found = |options: &CheckOptions| checked("stepped", "sums_in_front_of_steps", options).expect("both run");
    assert_eq!(found(&options).answer, Answer::Differs, "the test shows nothing");
    options.confirmed = true;
    let answer = found(&options);
    assert_eq!(answer.answer, Answer::NotCompared, "{answer}");
    assert!(answer.to_string().contains("off by a hundred thousandth"), "{answer}");
    for name in pairs("differing").into_iter().filter(|name| name != REFUSED && !NOT_COMPARED.contains(&name.as_str()))
    {
        let found = checked("differing", &name, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(found.answer, Answer::Differs, "{name}: {found}");
    }
}

#[test]
fn a_wider_bound_is_for_each_element_too() {
    let mut options = CheckOptions::default();
    options.near = Near::Within(1e-2);
    let found = |name: &str| checked("differing", name, &options).expect("both run").answer;
    assert_eq!(found("one_bias"), Answer::Near);
    assert_eq!(found("weights_reversed_beside_a_mask"), Answer::Differs);
    options.near = Near::Exact;
    let sums = checked("alike", "normalization_in_filters", &options).expect("both run");
    assert_eq!(sums.answer, Answer::Differs);
}

#[test]
fn the_documentation_lists_the_pairs() {
    let page = std::fs::read_to_string(root().join("docs/verify.md")).expect("the page is there");
    for folder in ["differing", "alike"] {
        let (_, rest) = page.split_once(&format!("`testdata/verify/{folder}`")).expect("a table per folder");
        let rows = rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        let named: BTreeSet<String> = rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned())).collect();
        assert_eq!(named, pairs(folder), "docs/verify.md, {folder}");
    }
}
