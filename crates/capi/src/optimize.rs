//! The optimizer: options in, a model and a report out.

use std::ffi::{CString, c_char, c_int, c_void};

use bytes::Bytes;
use relayout::request::SideFiles;
use relayout::{Error, Model, Optimized, Report, audit};

use crate::Status;
use crate::border::{Failure, c_text, emptied, give, give_text, required_text, slice, take_back, text, told};
use crate::external::{Reader, RelayoutReadFn};
use crate::settings::{Settings, refused, targets};

/// Options of the optimizer. Any number of threads may use them at the same time, while none changes them.
#[derive(Default)]
pub struct RelayoutOptions {
    settings: Settings,
    reader: Option<Reader>,
}

/// What the optimizer made.
pub struct RelayoutResult {
    model: Option<Vec<u8>>,
    changed: bool,
    report: CString,
    summary: CString,
    explained: CString,
}

/// Lists the built-in targets: a JSON array of objects with `name`, `about`, `layouts`, `dialect` and `costs`, each a text.
///
/// Writes the list to `json`, to be freed by `relayout_text_free`, and answers 0; or writes null and answers another
/// `enum relayout_status`. If `error` is not null, a call that fails writes a sentence there, to be freed by `relayout_text_free`, and
/// one that succeeds writes null.
///
/// # Safety
/// `json` is valid for writing a pointer, `error` as well or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_targets(json: *mut *mut c_char, error: *mut *mut c_char) -> c_int {
    let work = || {
        // SAFETY: the caller vouches for it.
        unsafe { emptied(json, "json") }?;
        let list = targets()?;
        // SAFETY: as above, and it is not null.
        unsafe { give_text(json, list) };
        Ok(())
    };
    // SAFETY: the caller vouches for it.
    unsafe { told(error, work) }
}

/// Reads options. `json` is an object; null means the defaults. All fields are optional, and one that is unknown is an error. They are
/// called as the options of the command line, with `_` in place of `-`, and mean the same:
///
/// - `target`: name of a built-in target, `"onnx"` by default; `relayout_targets` lists them
/// - `target_file`, `target_text`: a target of your own, in the form of the files of `docs/targets.md`, in place of `target`
/// - `provider`, for target `ort-nhwc`, which it implies: the execution provider of ONNX Runtime, `"qnn"` by default
/// - `allow`, for provider `"cuda"`: `"com.microsoft"` lets the result have ops of that domain that it runs; `relayout.runs_on` in the
///   metadata names it if no other one runs them
/// - `for_this_machine`: true chooses target, block, machine, threads and provider by what is there; what else is said stays, and field
///   `for_this_machine` of the report says what was chosen and why. What the library can't see say with `runtime`, the version of your
///   ONNX Runtime, without which it chooses `"onnx"`, and `session_providers`, the providers of your sessions:
///   `["CUDAExecutionProvider"]`
/// - `runtime`: the ONNX Runtime that will run the model, `"onnxruntime"`, `"onnxruntime-1.28"` or, for target `ort-cpu`, `"1.28"`. Target
///   `onnx` is priced by what its CPU session makes of the file then, and takes `block`, `machine`, `costs` and `threads`. Without a version a
///   model for `ort-cpu` may have what only newer releases run, and `relayout.needs` in the metadata then says which
/// - `block`, for target `ort-cpu`: channels of a block, 16 for hosts with AVX-512 and 8 for others; by default that of this machine
/// - `guard`, for target `ort-cpu`: false leaves out the guard that makes a model fail on hosts of another block, where it computes
///   wrong numbers
/// - `machine`, for target `ort-cpu`: the kind of machine that the model will run on, `"avx512-server"`, `"avx512-desktop"`,
///   `"avx2-desktop"` or `"avx2-laptop"`: its blocks, and the built-in table of its costs
/// - `costs`, for targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`: a file with a table of costs that `relayout calibrate` wrote
/// - `threads`, for target `ort-cpu`: threads that the model will run on, 1 by default, 0 for as many as the machine has cores; costs on
///   numbers of threads that were not measured follow from those that were
/// - `dims`: sizes of dims that the inputs leave open, by symbol or as `INPUT.AXIS`: `{"N": 4, "H": "32..512", "x.2": 224}`
/// - `fix_sizes`: true writes the sizes of `dims` into the file, for runtimes that need numbers; the report says where
/// - `numerics`: `"exact"` leaves arithmetic alone, `"reassociate"`, the default, folds scales and shifts into weights
/// - `inputs`, `outputs`: how you feed and take them: `["x:NCHW->NHWC"]`
/// - `free_io`: true leaves the order of all other inputs and outputs to the optimizer
/// - `price_moves`: for how many of the moves that are left the report says what it would take for them to go
/// - `unproved`: what becomes of a result that is not proved to compute what the model computes: `"give-back"`, the default, leaves
///   what differs for the checker as it was; `"loud"` says UNPROVED in the summary; `"allow"` does not check; `"fail"` is an
///   error; `"keep-input"` leaves the model as it is. Field `proof` of the report has the verdict
/// - `proof`: a file for a proof that the result computes what the model computes; the command `relayout prove` checks it
/// - `certificate`: a file for a proof of how good the decision is; the command `relayout check-certificate` checks it
/// - `strict`: true makes a rewrite that fails an error; by default what it was about stays as it was, and the report says so
///
/// Writes the options to `out`, to be freed by `relayout_options_free`, and answers 0; or writes null and answers another
/// `enum relayout_status`. `error` is that of `relayout_targets`.
///
/// # Safety
/// `json` is a string that ends with a 0, or null; `out` is valid for writing a pointer, `error` as well or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_options_new(
    json: *const c_char,
    out: *mut *mut RelayoutOptions,
    error: *mut *mut c_char,
) -> c_int {
    let work = || {
        // SAFETY: the caller vouches for both.
        let json = unsafe {
            emptied(out, "out")?;
            text(json)
        };
        let settings = match json {
            None => Settings::default(),
            Some(Ok(json)) => Settings::parse(json)?,
            Some(Err(why)) => return Err(Failure::new(Status::BadOptions, format!("options: not UTF-8: {why}"))),
        };
        // SAFETY: as above, and it is not null.
        unsafe { give(out, RelayoutOptions { settings, reader: None }) };
        Ok(())
    };
    // SAFETY: the caller vouches for it.
    unsafe { told(error, work) }
}

/// Says where models that come as bytes have their external data from; without a function, or with null, one with external data is
/// an error. Models that are read from a file have it beside them. `context` is passed to the function.
/// Answers 0, or `RELAYOUT_STATUS_NULL` if `options` is null.
///
/// # Safety
/// `options` is null, or from `relayout_options_new`, not freed and not in use. Until they are freed, or have another function, the
/// function can be called with `context` on any thread that uses the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_options_set_read(
    options: *mut RelayoutOptions,
    read: RelayoutReadFn,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { options.as_mut() } {
        Some(options) => {
            options.reader = Reader::new(read, context);
            Status::Ok.code()
        }
        None => Status::Null.code(),
    }
}

/// Frees options; null is fine.
///
/// # Safety
/// `options` is null, or from `relayout_options_new`, not freed and not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_options_free(options: *mut RelayoutOptions) {
    // SAFETY: the caller vouches for it.
    unsafe { take_back(options) };
}

/// Optimizes a model: the `len` bytes of an ONNX file at `model`. `options` may be null, which means the defaults.
///
/// Writes what was made to `out`, to be freed by `relayout_result_free`, and answers 0; or writes null and answers another
/// `enum relayout_status`. `error` is that of `relayout_targets`. Nothing of what was given is kept: the model can be freed at once.
///
/// # Safety
/// `model` is valid for reading `len` bytes, which nobody writes to. `options` is null, or from `relayout_options_new` and not freed.
/// `out` is valid for writing a pointer, `error` as well or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_optimize(
    model: *const c_void,
    len: usize,
    options: *const RelayoutOptions,
    out: *mut *mut RelayoutResult,
    error: *mut *mut c_char,
) -> c_int {
    let work = || {
        // SAFETY: the caller vouches for it.
        unsafe { emptied(out, "out") }?;
        let bytes_of = |optimized: &Optimized| optimized.to_bytes().map(Some);
        // SAFETY: the caller vouches for the model and the options. What is made of them is bytes and texts of its own.
        let made = unsafe {
            with_model(model, len, options, |model, settings| made(settings.request().optimize(model), bytes_of))
        }?;
        // SAFETY: as above, and it is not null.
        unsafe { give(out, made) };
        Ok(())
    };
    // SAFETY: the caller vouches for it.
    unsafe { told(error, work) }
}

/// Optimizes the model in the file `from` and writes it to the file `to`, whole or not at all. External data is looked for beside `from`.
/// A result of more than 2 GiB, which does not fit one ONNX file, has external data beside `to`; `relayout_optimize` refuses it.
///
/// `options`, `out` and `error` are those of `relayout_optimize`; what `out` gets has a report, and no bytes of the model.
///
/// # Safety
/// `from` and `to` are strings that end with a 0. `options` is null, or from `relayout_options_new` and not freed. `out` is valid for
/// writing a pointer, `error` as well or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_optimize_file(
    from: *const c_char,
    to: *const c_char,
    options: *const RelayoutOptions,
    out: *mut *mut RelayoutResult,
    error: *mut *mut c_char,
) -> c_int {
    let work = || {
        // SAFETY: the caller vouches for all of them.
        let (from, to, options) = unsafe {
            emptied(out, "out")?;
            (required_text(from, "from")?, required_text(to, "to")?, options.as_ref())
        };
        let default = RelayoutOptions::default();
        let model = Model::open(from).map_err(|e| of_library(&e))?;
        let optimized = options.unwrap_or(&default).settings.request().optimize_for_file(model, to);
        let made = made(optimized, |optimized| optimized.write(to).map(|()| None))?;
        // SAFETY: as above, and it is not null.
        unsafe { give(out, made) };
        Ok(())
    };
    // SAFETY: the caller vouches for it.
    unsafe { told(error, work) }
}

/// Says of a model what its moves cost and what they would have to cost, without changing it: writes a JSON object to `json`, to be
/// freed by `relayout_text_free`. What it holds is the `--json` of the command `relayout audit`.
///
/// `model`, `len` and `options` are those of `relayout_optimize`; of external data only that is needed which decides about shapes.
/// Answers 0; or writes null and answers another `enum relayout_status`. `error` is that of `relayout_targets`.
///
/// # Safety
/// As for `relayout_optimize`, with `json` in place of `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_audit(
    model: *const c_void,
    len: usize,
    options: *const RelayoutOptions,
    json: *mut *mut c_char,
    error: *mut *mut c_char,
) -> c_int {
    let audited = |model: Model, settings: &Settings| {
        let request = settings.request();
        let target = request.target().map_err(|e| refused(&e))?;
        let audit = audit(&model, target.as_ref(), &request.options()).map_err(|e| of_library(&e))?;
        serialized(&audit)
    };
    let work = || {
        // SAFETY: the caller vouches for it.
        unsafe { emptied(json, "json") }?;
        // SAFETY: the caller vouches for the model and the options. What is made of them is a text of its own.
        let text = unsafe { with_model(model, len, options, audited) }?;
        // SAFETY: as above, and it is not null.
        unsafe { give_text(json, text) };
        Ok(())
    };
    // SAFETY: the caller vouches for it.
    unsafe { told(error, work) }
}

/// Does something with a model that comes as bytes. Its bytes, and those of its external data, are the caller's and are not copied.
///
/// # Safety
/// As [`relayout_optimize`] says of the first three arguments; and `work` keeps nothing of the model.
unsafe fn with_model<T>(
    model: *const c_void,
    len: usize,
    options: *const RelayoutOptions,
    work: impl FnOnce(Model, &Settings) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // SAFETY: the caller vouches for both, and for all uses of the bytes being over when this function returns.
    let (bytes, options) = unsafe { (Bytes::from_static(slice(model, len, "model")?), options.as_ref()) };
    let default = RelayoutOptions::default();
    let options = options.unwrap_or(&default);
    let model = match options.reader {
        // SAFETY: the caller vouches for the function; the model is gone when this function returns.
        Some(reader) => Model::from_bytes_with(bytes, |location| unsafe { reader.read(location) }),
        None => Model::from_bytes(bytes, None),
    };
    work(model.map_err(|e| of_library(&e))?, &options.settings)
}

/// Takes of a result what `bytes_of` does. Files beside the result come to their places after it.
fn made(
    optimized: Result<(Optimized, SideFiles), Error>,
    bytes_of: impl FnOnce(&Optimized) -> Result<Option<Vec<u8>>, Error>,
) -> Result<RelayoutResult, Failure> {
    let (optimized, files) = optimized.map_err(|e| of_library(&e))?;
    let model = bytes_of(&optimized).map_err(|e| of_library(&e))?;
    files.commit().map_err(|e| of_library(&e))?;
    let report = optimized.report();
    Ok(RelayoutResult {
        model,
        changed: report.changed,
        report: c_text(serialized(report)?),
        summary: c_text(summary(report)),
        explained: c_text(report.explain()),
    })
}

/// What was gained, and whether the result is proved.
fn summary(report: &Report) -> String {
    let proof = report.proof.as_ref();
    let proof = proof.map(|proof| {
        proof.why.as_ref().map_or_else(|| format!("; {}", proof.brief), |why| format!("; UNPROVED: {why}"))
    });
    report.summary() + &proof.unwrap_or_default()
}

fn serialized(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|why| Failure::new(Status::Internal, why.to_string()))
}

/// An error of the library. Its causes say whether the system failed, or the model did.
fn of_library(error: &Error) -> Failure {
    if let Error::Request(wrong) = error {
        return refused(wrong);
    }
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let system = causes.any(<dyn std::error::Error>::is::<std::io::Error>);
    let status = match error {
        Error::Io(_) | Error::UnknownDim { .. } => Status::BadOptions,
        Error::Pass(_) => Status::Internal,
        _ if system => Status::File,
        _ => Status::BadModel,
    };
    Failure::new(status, error.to_string())
}

/// The bytes of the optimized model, a whole ONNX file with all its data; `len` gets how many they are, and may be null. They belong to
/// the result. Null, and 0 bytes, if the result is null or is that of `relayout_optimize_file`.
///
/// # Safety
/// `result` is null, or from `relayout_optimize` or `relayout_optimize_file` and not freed; `len` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_result_model(result: *const RelayoutResult, len: *mut usize) -> *const u8 {
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { result.as_ref() }.and_then(|result| result.model.as_deref());
    if !len.is_null() {
        // SAFETY: not null, and the caller vouches for it.
        unsafe { len.write(bytes.map_or(0, <[u8]>::len)) };
    }
    bytes.map_or(std::ptr::null(), <[u8]>::as_ptr)
}

/// Whether the model changed: 1, or 0 if it did not or `result` is null. The bytes of a model that did not change are those that were
/// given, unless it had external data.
///
/// # Safety
/// `result` is null, or from `relayout_optimize` or `relayout_optimize_file` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_result_changed(result: *const RelayoutResult) -> c_int {
    // SAFETY: the caller vouches for it.
    c_int::from(unsafe { result.as_ref() }.is_some_and(|result| result.changed))
}

/// The report as a JSON object: what was moved before and after, each move that is left and why, and more. It belongs to the result.
/// Null if `result` is null.
///
/// # Safety
/// As for `relayout_result_changed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_result_report(result: *const RelayoutResult) -> *const c_char {
    // SAFETY: the caller vouches for it.
    unsafe { result.as_ref() }.map_or(std::ptr::null(), |result| result.report.as_ptr())
}

/// One sentence for people: what was gained, or why nothing was. It belongs to the result. Null if `result` is null.
///
/// # Safety
/// As for `relayout_result_changed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_result_summary(result: *const RelayoutResult) -> *const c_char {
    // SAFETY: the caller vouches for it.
    unsafe { result.as_ref() }.map_or(std::ptr::null(), |result| result.summary.as_ptr())
}

/// The report for people, several lines: also why each move that is left is left. It belongs to the result. Null if `result` is null.
///
/// # Safety
/// As for `relayout_result_changed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_result_explanation(result: *const RelayoutResult) -> *const c_char {
    // SAFETY: the caller vouches for it.
    unsafe { result.as_ref() }.map_or(std::ptr::null(), |result| result.explained.as_ptr())
}

/// Frees a result, its bytes and its texts; null is fine.
///
/// # Safety
/// `result` is null, or from `relayout_optimize` or `relayout_optimize_file`, not freed and not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_result_free(result: *mut RelayoutResult) {
    // SAFETY: the caller vouches for it.
    unsafe { take_back(result) };
}
