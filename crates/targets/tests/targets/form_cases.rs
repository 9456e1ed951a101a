//! What each form offers and writes, as text: `form_cases/FAMILY/FORM/hit_*.txt` and near misses, `miss_*.txt`. A family is the
//! targets that share their forms: `onnx`, `ort-cpu`, `ort-nhwc`, and `functions`, those of domain `relayout`.
//!
//! A case is a graph (`taking/mod.rs` says what its first line tells). Behind each `==>` of a hit stands an offer, as the layouts that
//! it reads and leaves, and the graph once it is written; behind that of a miss, `nothing`. `BLESS=1` writes what is behind the
//! arrows. Nothing is executed here; `ops/form_laws.rs` of crate `relayout` runs what the hits write.

use crate::taking::{Case, cases, family, lacks_kernels, measured, target, targets, told};
use relayout_target_api::Target;
use relayout_targets::{Block, OrtCpu};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

/// A case with what is behind its arrows as it should be, and how many offers there are.
fn run(case: &Case) -> (String, usize) {
    let target = target(&case.target);
    let offers = case.offered(target.as_ref()).unwrap();
    let mut text = case.graph.clone();
    for offer in &offers {
        let graph = case.written(target.as_ref(), offer).unwrap_or_else(|e| panic!("{}: {e}", case.name()));
        let graph = graph.map_or("; the nodes of the file run so\n".to_owned(), |graph| graph.to_string());
        let _ = write!(text, "==> {}\n{graph}", told(offer));
    }
    if offers.is_empty() {
        text.push_str("==> nothing\n");
    }
    (text, offers.len())
}

#[test]
fn every_form_offers_and_writes_what_its_cases_say() {
    let mut problems = String::new();
    for case in cases() {
        let (text, offers) = run(case);
        if case.is_hit() != (offers > 0) {
            let _ = writeln!(problems, "{}: {offers} offers", case.name());
        }
        let differs = fs::read_to_string(&case.path).unwrap() != text;
        if differs && std::env::var_os("BLESS").is_some() {
            fs::write(&case.path, text).unwrap();
        } else if differs {
            let _ = writeln!(problems, "{} is now (BLESS=1 writes it):\n{text}", case.name());
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn every_form_of_every_target_has_a_hit_and_a_near_miss_and_no_case_is_of_another() {
    let cases = cases();
    let mut forms: BTreeSet<(String, String)> = BTreeSet::new();
    let mut problems = String::new();
    for target in targets() {
        for form in target.forms().iter().map(|form| form.name()) {
            forms.insert((family(target.as_ref()).to_owned(), form.to_owned()));
            let mut own = cases.iter().filter(|case| case.form == form && case.family == family(target.as_ref()));
            let has_miss = own.clone().any(|case| !case.is_hit());
            let has_hit = own.any(|case| case.is_hit() && !case.offered(target.as_ref()).unwrap().is_empty());
            if !has_hit || !has_miss {
                let _ = writeln!(problems, "{form} of {} has a hit: {has_hit}, a miss: {has_miss}", target.name());
            }
        }
    }
    for case in cases {
        if !forms.contains(&(case.family.clone(), case.form.clone())) {
            let _ = writeln!(problems, "{} is a case of no form", case.name());
        }
        let is_text = case.path.extension().is_some_and(|extension| extension == "txt");
        if !is_text || !case.is_hit() && !is_miss(case) {
            let _ = writeln!(problems, "{} is called neither hit_*.txt nor miss_*.txt", case.path.display());
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn every_offer_for_every_target_has_a_price_and_can_be_written() {
    let blocks = [8, 16].map(|block| Block::of(block).unwrap());
    let made = blocks.into_iter().flat_map(measured::targets);
    let of_blocks = blocks.into_iter().map(|block| Box::new(OrtCpu::new(block).unwrap()) as Box<dyn Target>);
    let mut problems = String::new();
    for target in targets().into_iter().chain(of_blocks).chain(made) {
        let target = target.as_ref();
        for case in cases().iter().filter(|case| case.is_hit() && case.family == family(target)) {
            for offer in case.offered(target).unwrap() {
                let written = case.written(target, &offer);
                if !offer.cost.is_finite() || written.is_err() {
                    let why = written.err().unwrap_or_default();
                    let _ = writeln!(problems, "{} for {}: {} {why}", case.name(), target.name(), offer.cost);
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn halves_get_every_form_of_ort_nhwc_that_float32_gets() {
    let mut problems = String::new();
    let hits =
        || cases().iter().filter(|case| case.family == "ort-nhwc" && case.is_hit() && case.graph.contains(" f32["));
    for name in ["ort-nhwc", "ort-nhwc/webgpu", "ort-nhwc/cuda", "ort-nhwc/cuda+com.microsoft"] {
        let target = target(name);
        for case in hits() {
            let offers = case.offered(target.as_ref()).unwrap().len();
            for dtype in ["f16", "bf16"] {
                let halves = case.in_type(dtype).offered(target.as_ref()).unwrap().len();
                if halves != offers && !lacks_kernels(case, dtype) {
                    let _ = writeln!(problems, "{} of {dtype}: {halves} offers, {offers} of float32", case.name());
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

fn is_miss(case: &Case) -> bool {
    case.path.file_name().unwrap().to_str().unwrap().starts_with("miss_")
}
