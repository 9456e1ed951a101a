//! Kernels that move data, on the CPU and as sources for a GPU.

mod copy;
mod cuda_common;
mod cuda_device;
mod cuda_golden;
mod cuda_nvrtc;
mod cuda_shim;
mod field;
mod permute;
mod relayout;
