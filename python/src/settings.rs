//! Options as Python gives them: the request that the command line and C have too.

use crate::failure::Failure;
use pyo3::prelude::*;
use relayout::Request;
use std::ffi::OsString;

/// What a call asks for: names of options and the texts that they are set to, as `relayout._options` makes them.
#[derive(FromPyObject)]
#[pyo3(transparent)]
pub(crate) struct Settings(Vec<(String, OsString)>);

impl Settings {
    /// The request, with what was chosen for this machine if that is asked for.
    pub(crate) fn request(&self) -> Result<Request, Failure> {
        let mut request = Request::default();
        self.0.iter().try_for_each(|(option, value)| request.set(option, value))?;
        request.fit(&request.equipment());
        Ok(request)
    }
}

/// Sizes of symbolic dims, for inputs that are made: of a range the size in its middle.
pub(crate) fn sizes(request: &Request) -> Vec<(String, i64)> {
    request.dims.iter().map(|(name, size)| (name.clone(), size.typical())).collect()
}
