//! `relayout bench permute`: how fast a permutation is on this machine, beside copies of the same bytes.

use crate::args;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{json, say, say_json};
use relayout::codegen::Hint;
use relayout::codegen::bench::{BenchReport as Report, BenchRequest, Beside, CASES, permute as time, table};
use relayout::ir::dtype::DType;

/// `relayout bench permute`
pub(crate) fn permute(a: &args::BenchPermute) -> Result<(), Failure> {
    let requests = requests(a)?;
    let mut reports: Vec<Report> = Vec::with_capacity(requests.len());
    for (at, request) in requests.iter().enumerate() {
        let progress = Progress::start(format!("timing {} of {}", at + 1, requests.len()));
        reports.push(time(request).map_err(Failure::usage)?);
        drop(progress);
    }
    if a.reps.is_some() {
        // What harnesses read: a line for the one case.
        let line = reports.first().map(serde_json::to_string).transpose().map_err(Failure::model)?;
        return say(&line.unwrap_or_default());
    }
    if json() {
        let list: Vec<serde_json::Value> = reports.iter().map(described).collect();
        return say_json(&list);
    }
    let isa = reports.first().map_or("", |report| report.isa.as_str());
    say(&format!("GB/s, bytes read and written over the median of {} rounds, {isa}\n{}", a.rounds, table(&reports)))
}

/// A report with what follows from its times.
fn described(report: &Report) -> serde_json::Value {
    let names = ["permute", "copy", "stream", "strided", "gather"];
    let rates: serde_json::Map<String, serde_json::Value> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), serde_json::json!(report.gb_per_s(name)?)))).collect();
    serde_json::json!({
        "report": report,
        "gb_per_s": rates,
        "permute_of_copy": report.of_copy("permute"),
        "copy_of_copy": report.of_copy("again"),
    })
}

fn requests(a: &args::BenchPermute) -> Result<Vec<BenchRequest>, Failure> {
    let mode = match (a.data.hot, a.data.cold, a.data.mode) {
        (true, ..) => Some(args::Mode::Hot),
        (_, true, _) => Some(args::Mode::Cold),
        (.., mode) => mode,
    };
    let hints = match mode {
        None => vec![Hint::Hot, Hint::Cold],
        Some(args::Mode::Hot) => vec![Hint::Hot],
        Some(args::Mode::Cold | args::Mode::Dram) => vec![Hint::Cold],
    };
    if a.reps.is_some() && hints.len() != 1 {
        return Err(Failure::usage("--reps times one mode; say --hot or --cold"));
    }
    let elem = elem_bytes(a)?;
    let cases: Vec<(Vec<usize>, Vec<usize>, usize)> = match (&a.shape, &a.perm) {
        (Some(shape), Some(perm)) => vec![(shape.0.clone(), perm.0.clone(), elem.unwrap_or(4))],
        _ => CASES
            .iter()
            .map(|case| (case.shape.to_vec(), case.perm.to_vec(), elem.unwrap_or(case.elem_bytes)))
            .collect(),
    };
    let beside = match (a.reps, a.forms) {
        (Some(_), _) => Beside::Nothing,
        (None, true) => Beside::Forms,
        (None, false) => Beside::Copies,
    };
    let request = |(shape, perm, elem_bytes): &(Vec<usize>, Vec<usize>, usize), hint: Hint| BenchRequest {
        shape: shape.clone(),
        perm: perm.clone(),
        elem_bytes: *elem_bytes,
        threads: a.threads.get() as usize,
        hint,
        pairs: a.pairs.unwrap_or(0),
        rounds: a.reps.unwrap_or(a.rounds) as usize,
        reps: usize::from(a.reps.is_some()),
        beside,
    };
    Ok(cases.iter().flat_map(|case| hints.iter().map(move |&hint| request(case, hint))).collect())
}

/// Bytes of an element, if they were said.
fn elem_bytes(a: &args::BenchPermute) -> Result<Option<usize>, Failure> {
    if let Some(bytes) = a.elem {
        return Ok(Some(bytes));
    }
    let Some(name) = &a.dtype else { return Ok(None) };
    let found = DType::ALL.iter().find(|dtype| dtype.as_str() == name).and_then(|dtype| dtype.bits());
    match found {
        Some(bits) if bits % 8 == 0 => Ok(Some(bits as usize / 8)),
        Some(bits) => {
            Err(Failure::usage(format!("`{name}` has {bits} bits; time elements of whole bytes, such as u8")))
        }
        None => Err(Failure::usage(format!("`{name}` is not an element type with a size; say f32, f16, i8, ..."))),
    }
}
