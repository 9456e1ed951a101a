//! Models that are damaged in their structure: read, printed, optimized for `onnx`, `nhwc` and one more target, written, read again,
//! and optimized again.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use relayout::targets::BUILTIN;
use relayout_fuzz::choice::digest;
use relayout_fuzz::laws::{model_prints, model_runs};
use relayout_fuzz::memory::{Bound, bounded};
use relayout_fuzz::models::mutate;

/// Tables of the solver and offers of forms are for each node, which has about 30 bytes in a file.
const BOUND: Bound = Bound { per_byte: 8 << 10, free: 256 << 20 };

fuzz_target!(|data: &[u8]| bounded(&BOUND, data.len(), || {
    model_prints(data);
    model_runs(data, "onnx");
    model_runs(data, "nhwc");
    model_runs(data, BUILTIN[(digest(data) % BUILTIN.len() as u64) as usize]);
}));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // One in eight is damaged as bytes; what is no model can only be.
    let structural = if seed % 8 == 0 { None } else { mutate(data, size, max_size, seed) };
    structural.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
