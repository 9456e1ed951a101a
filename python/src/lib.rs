//! `relayout._relayout`, the half of the Python package that is Rust: it reads, optimizes and writes models, runs permute kernels, and
//! is the command line. The half that is Python, in `py_src/relayout`, has what people call; nothing here is public.
//!
//! Reports cross the border as JSON, models as paths or as bytes with parts. Work on models runs in a thread of its own
//! ([`worker`]), so that Python stays free.

mod command;
mod failure;
mod look;
mod memory;
mod optimize;
mod permute;
mod session;
mod settings;
mod source;
mod tune;
mod verify;
mod worker;

/// Graphs are many small allocations, as in the program. Memory that Python made is Python's to free.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The module.
#[pyo3::pymodule]
mod _relayout {
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::look::{audit, file_facts, fitting, host, open_dims, plan, providers_here, targets, why};
    #[pymodule_export]
    use super::optimize::{Optimized, optimize};
    #[pymodule_export]
    use super::permute::permute;
    #[pymodule_export]
    use super::session::{Prepared, prepared};
    #[pymodule_export]
    use super::verify::verify;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "what Python calls it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
