//! Readers of small texts: plans, launches, certificates, descriptions of targets, tables of costs, options, problems. The first byte says which.
//! What is read is written and read alike; a plan runs, and a target optimizes a model.
#![no_main]

use std::fmt::Debug;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use relayout::certificate::CertificateFile;
use relayout::io::IoRecord;
use relayout::solve::{Problem, wcsp};
use relayout::targets::gpu::GpuCosts;
use relayout::targets::ort_cpu::costs::MeasuredCosts;
use relayout::{IoLayout, Model, Options, Size, check_certificate, optimize, parse_target, target};
use relayout_codegen::cuda::{BlockedPlan, Launch};
use relayout_codegen::{Gather, Order, Plan, Relayout, permute, run_relayout};
use relayout_fuzz::memory::{Bound, bounded};
use relayout_ir::dim::Dim;
use relayout_ir::text::GraphJson;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A plan says in a few bytes how many parts it has, at most 4096; tables and values are some tens of bytes for each of the text.
const BOUND: Bound = Bound { per_byte: 4 << 10, free: 64 << 20 };
/// Larger plans are not run.
const SMALL: usize = 1 << 20;

static MODEL: LazyLock<Model> = LazyLock::new(|| {
    Model::from_bytes(include_bytes!("../../testdata/cli/conv.onnx").as_slice().into(), None).expect("it is a model")
});

fuzz_target!(|data: &[u8]| {
    let Some((&which, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    LazyLock::force(&MODEL);
    bounded(&BOUND, text.len(), || run(which, text));
});

fn run(which: u8, text: &str) {
    // The last two came later, and files of the corpus keep the reader that they were found for.
    match if which < 254 { which % 14 } else { which } {
        0 => {
            if let Some(plan) = reads::<Plan>(text) {
                plan_runs(&plan)
            }
        }
        1 => {
            if let Some(plan) = reads::<Relayout>(text) {
                relayout_runs(&plan)
            }
        }
        2 => drop(reads::<Order>(text)),
        3 => drop(reads::<Gather>(text)),
        4 => drop(reads::<Launch>(text)),
        5 => drop(reads::<GraphJson>(text)),
        6 => {
            if let Some(file) = reads::<CertificateFile>(text) {
                certificate(&file)
            }
        }
        7 => own_target(text),
        8 => {
            if let Ok(costs) = MeasuredCosts::parse("x", text) {
                let _ = costs.node_ns();
            }
        }
        9 => {
            if let Ok(costs) = GpuCosts::parse("x", text) {
                assert!(!costs.source().is_empty())
            }
        }
        10 => {
            if let Ok(end) = text.parse::<IoLayout>() {
                assert_eq!(end.to_string().parse().as_ref(), Ok(&end))
            }
        }
        11 => drop(IoRecord::parse_all(text)),
        12 => {
            let _ = text.parse::<Size>();
            if let Ok(dim) = text.parse::<Dim>() {
                assert_eq!(dim.to_string().parse().as_ref(), Ok(&dim))
            }
        }
        254 => {
            if let Ok(problem) = text.parse::<Problem>() {
                assert_eq!(problem.to_string().parse().as_ref(), Ok(&problem))
            }
        }
        255 => wcsp_is_read_back(text),
        _ => drop(reads::<BlockedPlan>(text)),
    }
}

/// What a text says, if it says something: then it is written and read alike.
fn reads<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) -> Option<T> {
    let read: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&read).expect("what was read can be written");
    let again: T = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again, read);
    Some(read)
}

/// A problem of a file has no shared values, so it has no other variables when it is written.
fn wcsp_is_read_back(text: &str) {
    let Ok(file) = wcsp::read(text) else { return };
    let Ok(written) = wcsp::write(&file.problem, &file.name) else { return };
    let again = wcsp::read(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again.problem.variables(), file.problem.variables());
    assert_eq!(wcsp::write(&again.problem, &again.name).as_ref(), Ok(&written));
}

fn plan_runs(plan: &Plan) {
    assert!(!plan.to_string().is_empty());
    if plan.bytes() > SMALL {
        return;
    }
    let src: Vec<u8> = (0..plan.bytes()).map(|at| (at % 241) as u8).collect();
    let mut dst = vec![0; plan.bytes()];
    permute(&src, &mut dst, plan).expect("the buffers fit");
    let sorted = |mut bytes: Vec<u8>| {
        bytes.sort_unstable();
        bytes
    };
    assert_eq!(sorted(src), sorted(dst), "a permutation loses nothing");
    let _ = Gather::of(plan);
}

fn relayout_runs(plan: &Relayout) {
    assert!(!plan.to_string().is_empty());
    if plan.from_bytes().max(plan.to_bytes()) > SMALL {
        return;
    }
    let src = vec![1; plan.from_bytes()];
    let mut dst = vec![0; plan.to_bytes()];
    run_relayout(&src, &mut dst, plan, &relayout_codegen::Options::default()).expect("the buffers fit");
}

fn certificate(file: &CertificateFile) {
    for name in ["onnx", "nhwc"] {
        let target = target(name).expect("it is built in");
        let _ = check_certificate(&MODEL, target.as_ref(), &Options::default(), &file.certificate);
    }
}

fn own_target(text: &str) {
    let target = match parse_target("own", text) {
        Ok(target) => target,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!target.name().is_empty() && !target.layouts().is_empty());
    match optimize(&MODEL, target.as_ref(), &Options::default()) {
        Ok(optimized) => drop(optimized.to_bytes().expect("it can be written")),
        Err(relayout::Error::Pass(error)) => panic!("a pass failed: {error}"),
        Err(_) => {}
    }
}
