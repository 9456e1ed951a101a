//! `relayout calibrate --provider cuda`: a Python whose ONNX Runtime has the provider measures.

use super::python;
use crate::args;
use crate::failure::Failure;
use crate::progress::Progress;
use relayout::targets::Provider;
use relayout_calibrate::device::{DeviceOptions, DeviceRuntime, calibrate_device};

/// The text of a table.
pub(super) fn table(a: &args::Calibrate, date: &str) -> Result<String, Failure> {
    let Some(name) = &a.provider else {
        return Err(Failure::usage("target ort-nhwc is measured on the device of a provider; add --provider cuda"));
    };
    let provider = Provider::of(name).map_err(Failure::usage)?;
    let mut options = DeviceOptions::new(date);
    let stand_in = a.device == "cpu";
    if stand_in {
        options = options.few();
    }
    if a.quick {
        options = options.quick();
    }
    let python = python(a);
    let bar = Progress::start(format!("measuring with {}", python.display()));
    let mut runtime =
        DeviceRuntime::start(&python, &provider.execution_provider, stand_in).map_err(|e| unmeasured(&e))?;
    let mut progress = |done: usize, of: usize| bar.tell(format!("measuring {}", 100 * done / of.max(1)) + " %");
    let measured = calibrate_device(&mut runtime, &provider, &options, &mut progress).map_err(|e| unmeasured(&e))?;
    drop(bar);
    Ok(measured.text())
}

fn unmeasured(why: &dyn std::fmt::Display) -> Failure {
    Failure::model(format!("nothing was measured: {why}"))
}
