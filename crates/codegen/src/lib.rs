//! Permute plans and kernels.
