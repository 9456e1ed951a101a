//! Sessions with and without the pass, and numbers to run them on: for the tests and the examples.
#![allow(dead_code, reason = "each program uses a part of it")]

use cpu_time::ProcessTime;
use onnx_runtime_ep_api::ExecutionProvider;
use onnx_runtime_ep_cpu::CpuExecutionProvider;
use onnx_runtime_ir::{DataType, Dim, Graph};
use onnx_runtime_session::{InferenceSession, IoMeta, Tensor};
use relayout_nxrt::{Relayed, Relayout};
use std::path::Path;
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Most that results may differ, as a part of the largest number in a tensor, or of 1.
pub(crate) const TOLERANCE: f32 = 1e-5;

/// The provider that a session takes by itself.
pub(crate) fn cpu() -> Result<CpuExecutionProvider> {
    let mut provider = CpuExecutionProvider::new();
    provider.initialize(&onnx_runtime_ep_api::EpConfig::default())?;
    Ok(provider)
}

/// A session of a model, with the pass if there is one.
pub(crate) fn loaded(path: &Path, pass: Option<&Relayout>) -> Result<InferenceSession> {
    let provider: Arc<dyn ExecutionProvider> = match pass {
        Some(pass) => Arc::new(Relayed::new(cpu()?, pass.clone())),
        None => Arc::new(cpu()?),
    };
    Ok(InferenceSession::builder().model(path).execution_provider(provider).build()?)
}

/// A session of a graph that was made here.
pub(crate) fn session(graph: Graph) -> Result<InferenceSession> {
    Ok(InferenceSession::from_graph(graph)?)
}

/// A tensor for an input: numbers from -1 to 1 for floats, 0 and 1 for others, the same each time. An open batch is 1, other open
/// extents are 224.
pub(crate) fn numbers(input: &IoMeta, seed: usize) -> Result<Tensor> {
    let extent = |(axis, dim): (usize, &Dim)| dim.as_static().unwrap_or(if axis == 0 { 1 } else { 224 });
    let shape: Vec<usize> = input.shape.iter().enumerate().map(extent).collect();
    let mut state = (seed as u32).wrapping_mul(0x9e37_79b9).wrapping_add(0x1234_5678);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    let floats: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    let bytes: Vec<u8> = match input.dtype {
        DataType::Float32 => floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
        kind => {
            let whole = |x: &f32| u64::from(*x > 0.0).to_le_bytes();
            floats.iter().flat_map(|x| whole(x).into_iter().take(kind.byte_size())).collect()
        }
    };
    Ok(Tensor::from_raw(input.dtype, shape, &bytes)?)
}

/// Numbers for all inputs of a session, by name.
pub(crate) fn feeds(session: &InferenceSession) -> Result<Vec<(String, Tensor)>> {
    session.inputs().iter().enumerate().map(|(at, input)| Ok((input.name.clone(), numbers(input, at)?))).collect()
}

pub(crate) fn run(session: &mut InferenceSession, feeds: &[(String, Tensor)]) -> Result<Vec<Tensor>> {
    let feeds: Vec<(&str, &Tensor)> = feeds.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Ok(session.run(&feeds)?)
}

/// The largest difference, as a part of the largest number of its tensor, or of 1.
pub(crate) fn difference(before: &[Tensor], after: &[Tensor]) -> Result<f32> {
    if before.len() != after.len() {
        return Err("another number of results".into());
    }
    let mut worst = 0f32;
    for (a, b) in before.iter().zip(after) {
        if a.shape != b.shape || a.dtype != b.dtype {
            return Err(format!("{:?} {:?} became {:?} {:?}", a.dtype, a.shape, b.dtype, b.shape).into());
        }
        if a.dtype != DataType::Float32 {
            worst = worst.max(if a.as_bytes() == b.as_bytes() { 0.0 } else { f32::INFINITY });
            continue;
        }
        let (a, b) = (a.to_vec_f32(), b.to_vec_f32());
        let scale = a.iter().filter(|x| x.is_finite()).fold(1f32, |most, x| most.max(x.abs()));
        let apart = |(x, y): (&f32, &f32)| match x == y || (x.is_nan() && y.is_nan()) {
            true => 0.0,
            false if x.is_finite() && y.is_finite() => (x - y).abs() / scale,
            false => f32::INFINITY,
        };
        worst = a.iter().zip(&b).map(apart).fold(worst, f32::max);
    }
    Ok(worst)
}

/// The shortest of some runs, in seconds that all threads of the process had.
pub(crate) fn round(session: &mut InferenceSession, feeds: &[(String, Tensor)], runs: usize) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let begin = ProcessTime::now();
        run(session, feeds)?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok(best)
}
