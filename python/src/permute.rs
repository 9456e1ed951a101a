//! Permuting arrays with the kernels of the library.

use crate::failure::{Failure, Kind};
use crate::memory::Region;
use pyo3::prelude::*;
use relayout::codegen::{Kernel, Options, plan};

/// Writes `source` to `out` with its axes permuted: axis `i` of the result is axis `perm[i]`. Both are `numpy.ndarray`s in row-major
/// order, `out` of as many bytes; `threads` counts the caller's, and 0 is as many as there are processors.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 makes a list of numbers, and no slice")]
pub(crate) fn permute(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    perm: Vec<usize>,
    out: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let shape: Vec<usize> = source.getattr("shape")?.extract()?;
    let elem: usize = source.getattr("itemsize")?.extract()?;
    let (from, mut to) = (Region::of(source)?, Region::of(out)?);
    let refused = |text: &str| Err(Failure::new(Kind::Permute, text).raised(py));
    if !to.is_writable() {
        return refused("`out` is read-only; give an array that can be written to");
    }
    if from.overlaps(&to) {
        return refused("`out` shares memory with the array; give one of its own");
    }
    let permuted = py.detach(|| {
        let kernel = Kernel::new(&plan(&shape, &perm, elem)?, &Options::default().threads(threads));
        kernel.run_uninit(from.maybe_bytes(), to.maybe_bytes_mut())
    });
    permuted.map_err(|error| Failure::new(Kind::Permute, error).raised(py))
}
