//! Generated kernels on a GPU, against the portable kernel. Feature `cuda`; the driver and NVRTC are loaded at run time.
//!
//! Where there is no GPU each test says that it was skipped, and passes.
#![cfg(feature = "cuda")]
#![allow(unsafe_code, reason = "starting a kernel is unsafe: nothing ties its source to its arguments")]

use std::sync::Arc;

use crate::cuda_common::{Case, bytes, exact, permuted, varied};
use cudarc::driver::{CudaContext, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use relayout_codegen::cuda::{CudaKernel, KernelClass};

/// A stream of the first GPU, or `None`, with a word about it.
fn gpu(test: &str) -> Option<Arc<CudaStream>> {
    let skipped = |why: &str| {
        println!("skipped: {test}: no GPU: {why}");
        None
    };
    // SAFETY: both only try to load a library of the system by its usual names.
    let (driver, nvrtc) = unsafe { (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()) };
    if !driver {
        return skipped("no CUDA driver");
    }
    if !nvrtc {
        return skipped("no NVRTC on the library path");
    }
    match CudaContext::new(0) {
        Ok(context) => Some(context.default_stream()),
        Err(error) => skipped(&error.to_string()),
    }
}

/// What the kernel makes of the usual bytes.
fn run(stream: &Arc<CudaStream>, kernel: &CudaKernel) -> Vec<u8> {
    let launch = &kernel.launch;
    let options = CompileOptions { options: vec!["--std=c++17".to_owned()], ..CompileOptions::default() };
    let ptx = compile_ptx_with_opts(&kernel.source, options).expect("the source compiles");
    let module = stream.context().load_module(ptx).expect("the module loads");
    let function = module.load_function(&kernel.name).expect("the kernel is there");
    // Buffers begin where their alignment is what was promised, and no more.
    let shift = if launch.alignment < 16 { launch.alignment as usize } else { 0 };
    let mut source = vec![0; shift];
    source.extend(bytes(launch.source_bytes as usize));
    let source = stream.clone_htod(&source).expect("the source is copied");
    let mut destination =
        stream.clone_htod(&vec![0xa5_u8; shift + launch.destination_bytes as usize]).expect("room for the result");
    let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
    let config = LaunchConfig { grid_dim: (gx, gy, gz), block_dim: (bx, by, bz), shared_mem_bytes: 0 };
    let source_view = source.slice(shift..);
    let mut destination_view = destination.slice_mut(shift..);
    let narrow: Vec<u32> = launch.arguments.iter().map(|argument| argument.value as u32).collect();
    let mut start = stream.launch_builder(&function);
    start.arg(&source_view).arg(&mut destination_view);
    for (argument, narrow) in launch.arguments.iter().zip(&narrow) {
        if argument.bytes == 8 {
            start.arg(&argument.value);
        } else {
            start.arg(narrow);
        }
    }
    // SAFETY: the buffers have the sizes and the arguments the types and values that the launch asks for.
    unsafe { start.launch(config) }.expect("the kernel starts");
    let mut result = stream.clone_dtoh(&destination).expect("the result is copied");
    result.drain(..shift);
    result
}

fn check(stream: &Arc<CudaStream>, case: &Case) {
    // A class that cannot carry a move out says so; that is tested elsewhere.
    let Ok(kernel) = case.generate() else { return };
    assert!(run(stream, &kernel) == case.expected(), "{} is wrong: {case:?}", kernel.name);
}

#[test]
fn gpu_results_are_the_portable_kernels() {
    let Some(stream) = gpu("gpu_results_are_the_portable_kernels") else { return };
    for (_, case) in exact() {
        check(&stream, &case);
    }
    for case in varied() {
        check(&stream, &case);
    }
}

#[test]
fn gpu_results_hold_for_large_tensors() {
    let Some(stream) = gpu("gpu_results_hold_for_large_tensors") else { return };
    for elem in [1, 2, 4] {
        check(&stream, &permuted(&[16, 1024, 1024], &[0, 2, 1], elem));
        check(&stream, &permuted(&[512, 128, 256], &[1, 0, 2], elem));
        check(&stream, &permuted(&[4099, 4093], &[1, 0], elem));
        check(&stream, &permuted(&[8, 3, 640, 640], &[0, 2, 3, 1], elem));
        check(&stream, &permuted(&[32, 64, 56, 56], &[0, 2, 3, 1], elem).with(|o| o.class = Some(KernelClass::Packed)));
    }
}
