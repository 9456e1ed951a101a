//! Transforms of signals, windows and losses.

use super::case::{Case, case, exact, f, float, i64s};
use relayout_verify::Data;

pub(crate) fn cases() -> Vec<Case> {
    [transforms(), windows(), losses()].concat()
}

fn one(n: i64) -> super::case::Spec {
    exact(&[], Data::I64(vec![n]))
}

fn transforms() -> Vec<Case> {
    vec![
        case("TfIdfVectorizer", 9, 26)
            .text("mode", "TF")
            .int("min_gram_length", 1)
            .int("max_gram_length", 1)
            .int("max_skip_count", 0)
            .list("ngram_counts", &[0])
            .list("ngram_indexes", &[0, 1, 2])
            .list("pool_int64s", &[1, 2, 3])
            .x(i64s(&[2, 6], 0, 5)),
        case("DFT", 17, 19).x(f(&[2, 5, 3, 1])),
        case("DFT", 17, 19).variant("of an inner axis").int("axis", 2).x(f(&[2, 5, 4, 2])),
        case("DFT", 17, 19).variant("of more samples").int("onesided", 1).x(f(&[2, 5, 3, 1])).c(one(8)),
        case("DFT", 20, 26).x(f(&[2, 5, 4, 1])),
        case("DFT", 20, 26).variant("of axis 1").x(f(&[2, 5, 4, 2])).none().c(one(1)),
        case("DFT", 20, 26).variant("of one side").int("onesided", 1).x(f(&[2, 5, 4, 1])).c(one(6)).c(one(-3)),
        case("DFT", 20, 26).variant("backwards").int("inverse", 1).x(f(&[2, 4, 2])),
        case("STFT", 17, 26).x(f(&[2, 16, 1])).c(one(4)).none().c(one(8)),
        case("STFT", 17, 26).variant("with a window").x(f(&[2, 16, 1])).c(one(2)).x(f(&[6])).c(one(6)),
    ]
}

fn windows() -> Vec<Case> {
    let mut cases: Vec<Case> =
        ["HannWindow", "HammingWindow", "BlackmanWindow"].map(|op| case(op, 17, 26).c(one(8))).to_vec();
    cases.push(case("MelWeightMatrix", 17, 26).c(one(4)).c(one(16)).c(one(8192)).c(float(0.0)).c(float(4096.0)));
    cases
}

fn losses() -> Vec<Case> {
    let mut cases = Vec::new();
    for (op, results) in [("NegativeLogLikelihoodLoss", 1), ("SoftmaxCrossEntropyLoss", 2)] {
        let loss = |reduction: &'static str| {
            let case = case(op, 12, 26).variant(reduction).text("reduction", reduction);
            case.x(f(&[2, 4, 3, 5])).x(i64s(&[2, 3, 5], 0, 4)).results(results)
        };
        cases.extend([loss("none"), loss("sum"), loss("mean"), loss("mean").variant("weighted").x(f(&[4]))]);
    }
    cases
}
