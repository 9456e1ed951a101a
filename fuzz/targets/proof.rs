//! The checker of proofs: a proof of any text, a model, and a result: the model itself, a damaged copy, or what the optimizer makes
//! of it, damaged or not.
//!
//! An input has a head of five bytes: what the result is, a seed of two bytes for the damage, and the length of the proof in two
//! bytes. Then come the proof and the model. A proof of no bytes is that of the optimizer, or one without claims.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use bytes::Bytes;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use relayout::{Model, Options, optimize, target};
use relayout_fuzz::memory::{Bound, bounded};
use relayout_fuzz::models::mutate;
use relayout_proof::{Claim, Error, Proof, Verdict, prove};

/// Indices that a Slice takes are a list of 2 MiB at most, which a node has of some 20 bytes. Constants are computed up to 4 million
/// elements, in 64 bits.
const BOUND: Bound = Bound { per_byte: 128 << 10, free: 512 << 20 };

/// Bytes of the head.
const HEAD: usize = 5;

/// Results are those of one of these targets.
const TARGETS: [&str; 4] = ["onnx", "nhwc", "ort-nhwc", "ort-cpu"];

/// Both files, which each run writes anew. `tools/fuzz` names a folder in memory and removes it.
static FILES: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    let parent = std::env::var_os("RELAYOUT_FUZZ_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = parent.join(format!("relayout-fuzz-proof-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("there is room");
    [dir.join("input.onnx"), dir.join("result.onnx")]
});

struct Case<'d> {
    kind: u8,
    seed: u16,
    proof: &'d [u8],
    model: &'d [u8],
}

impl<'d> Case<'d> {
    fn read(data: &'d [u8]) -> Option<Case<'d>> {
        let (&[kind, a, b, c, d], rest) = data.split_first_chunk::<HEAD>()?;
        let length = usize::from(u16::from_le_bytes([c, d])).min(rest.len());
        let (proof, model) = rest.split_at(length);
        Some(Case { kind, seed: u16::from_le_bytes([a, b]), proof, model })
    }

    /// The result, and the optimizer's proof of it.
    fn result(&self) -> (Vec<u8>, Proof) {
        let name = TARGETS[usize::from(self.kind / 4) % TARGETS.len()];
        let same = (self.model.to_vec(), Proof::default());
        let (mut result, proof) = if self.kind & 2 > 0 { optimized(self.model, name).unwrap_or(same) } else { same };
        if self.kind & 1 > 0 {
            let size = result.len();
            result.resize(2 * size + 512, 0);
            let most = result.len();
            let written = mutate(&mut result, size, most, u32::from(self.seed)).unwrap_or(size);
            result.truncate(written);
        }
        (result, proof)
    }
}

/// What the optimizer makes of a model, with its proof.
fn optimized(model: &[u8], name: &str) -> Option<(Vec<u8>, Proof)> {
    let model = Model::from_bytes(Bytes::copy_from_slice(model), None).ok()?;
    let target = target(name).expect("it is built in");
    let optimized = optimize(&model, target.as_ref(), &Options::default().proof()).ok()?;
    let text = serde_json::to_vec(&optimized.proof()).expect("it has a JSON form");
    Some((optimized.to_bytes().ok()?, Proof::read(&text, "proof").expect("what the optimizer writes can be read")))
}

fn run(case: &Case<'_>) {
    let (result, proof) = case.result();
    let proof = if case.proof.is_empty() { Ok(proof) } else { Proof::read(case.proof, "proof") };
    let [input, output] = &*FILES;
    fs::write(input, case.model).expect("there is room");
    fs::write(output, &result).expect("there is room");
    let proof = proof.map(|proof| if case.seed & 1 > 0 { claiming(proof, &result, case.seed) } else { proof });
    match proof.and_then(|proof| Ok((prove(input, output, &proof)?, proof))) {
        Ok((verdict, proof)) => {
            assert!(!verdict.to_string().is_empty());
            let without = Proof { values: Vec::new(), ..proof };
            let proved = || prove(input, output, &without).is_ok_and(|verdict| verdict.holds());
            assert!(!verdict.holds() || proved(), "claims proved it: {verdict}");
        }
        Err(error) => return assert!(!error.to_string().is_empty()),
    }
    itself();
}

/// A proof with one more claim, drawn by the seed: a value of the result is another one, in another order.
fn claiming(mut proof: Proof, result: &[u8], seed: u16) -> Proof {
    let Ok(model) = Model::from_bytes(Bytes::copy_from_slice(result), None) else { return proof };
    let graph = &model.ir().graph;
    let names: Vec<&String> =
        graph.nodes().flat_map(|n| graph.node(n).outputs.iter().flatten()).map(|&v| &graph.value(v).name).collect();
    if names.is_empty() {
        return proof;
    }
    let drawn = |times: usize| names[usize::from(seed).wrapping_mul(times) % names.len()].clone();
    let rank = u32::from(seed >> 4) % 5;
    let turned = (0..rank).map(|axis| vec![((axis + u32::from(seed >> 8)) % rank, -1, 1)]).collect();
    let lies = (seed & 2 > 0).then_some(turned);
    let claim = Claim { value: drawn(7), is: (seed & 4 > 0).then(|| drawn(31)), lies };
    proof.version = 1;
    proof.values.retain(|other| other.value != claim.value);
    proof.values.push(claim);
    proof
}

/// A model computes what it computes: without claims the checker proves it, and needs no lemma, if it knows what its nodes mean.
fn itself() {
    let input = &FILES[0];
    match prove(input, input, &Proof::default()) {
        Ok(Verdict::Proved { links: 0, .. } | Verdict::ForSizes { links: 0, .. }) => {}
        Ok(Verdict::Refused { at, why, .. }) if at.ends_with("of the input") || why == "nothing makes it" => {}
        Ok(verdict) => panic!("a model and itself: {verdict}"),
        Err(Error::Read { .. } | Error::Unsupported { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fuzz_target!(|data: &[u8]| {
    if let Some(case) = Case::read(data) {
        bounded(&BOUND, data.len(), || run(&case));
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let start = Case::read(&data[..size]).map_or(size, |case| HEAD + case.proof.len());
    // One in two changes the messages of the model; the others the bytes of anything.
    let structural = (seed % 2 == 0 && start < size)
        .then(|| mutate(&mut data[start..], size - start, max_size.saturating_sub(start), seed))
        .flatten();
    structural.map_or_else(|| fuzzer_mutate(data, size, max_size), |written| start + written)
});
