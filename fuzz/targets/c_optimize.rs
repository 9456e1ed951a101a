//! The C functions of the optimizer: options of any text, models of any bytes, a function that gives data, null anywhere.
#![no_main]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use relayout_capi::*;
use relayout_fuzz::memory::{Bound, bounded};
use relayout_fuzz::pieces;

/// As for `import`, and options are values of JSON.
const BOUND: Bound = Bound { per_byte: 8 << 10, free: 256 << 20 };

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"target\":",
    "\"onnx\"",
    "\"nhwc\"",
    "\"ort-cpu\"",
    "\"x86-avx2\"",
    "\"cuda-dp4a\"",
    "\"dims\":",
    "{\"N\":4}",
    "{\"N\":\"1..32\"}",
    "\"numerics\":\"exact\"",
    "\"inputs\":",
    "[\"x:NCHW->NHWC\"]",
    "\"outputs\":",
    "[\"y:NCHW->NHWC\"]",
    "\"free_io\":true",
    "\"price_moves\":2",
    "\"price_moves\":18446744073709551615",
    "\"block\":8",
    "\"guard\":false",
    "null",
    "1e400",
    "\\u0000",
    "\"x\"",
    "-1",
    "{\"target\":\"nhwc\"}",
    "{\"free_io\":true}",
    "{\"inputs\":[\"x:NCHW->NHWC\"]}",
    "{\"target\":\"ort-cpu\",\"block\":8}",
];

#[derive(Debug)]
struct Case {
    options: Option<String>,
    /// Which arguments are null: options, place of the result, place of the error, model.
    nulls: u8,
    answer: i32,
    given: Vec<u8>,
    model: Vec<u8>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let options = if u.ratio(1, 4)? { None } else { Some(pieces::text(PIECES, 8, u)?) };
        let nulls = if u.ratio(7, 8)? { 0 } else { u.arbitrary()? };
        let given = vec![1; u.int_in_range(0..=64)?];
        let answer = u.int_in_range(0..=3)?;
        Ok(Case { options, nulls, answer, given, model: u.bytes(u.len())?.to_vec() })
    }
}

fuzz_target!(|case: Case| {
    let length = case.model.len() + case.options.as_ref().map_or(0, String::len);
    bounded(&BOUND, length, || run(&case));
});

unsafe extern "C" fn read(
    context: *mut c_void,
    location: *const c_char,
    bytes: *mut *const c_void,
    len: *mut usize,
) -> c_int {
    assert!(!location.is_null());
    // SAFETY: the context is the case of this run, and both places can be written to.
    unsafe {
        let case = &*context.cast::<Case>();
        bytes.write(case.given.as_ptr().cast());
        len.write(case.given.len());
        case.answer
    }
}

fn run(case: &Case) {
    let null = |bit: u8| case.nulls >> bit & 1 == 1;
    let json = case.options.as_ref().and_then(|text| CString::new(text.as_bytes()).ok());
    let (mut options, mut error, mut result) = (null_mut(), null_mut(), null_mut());
    let (mut text, mut len) = (null_mut(), 0_usize);
    // SAFETY: texts end with a 0, the model has its length, and everything is freed once.
    unsafe {
        let status = relayout_options_new(
            json.as_ref().map_or(null_mut(), |json| json.as_ptr().cast_mut()),
            &raw mut options,
            &raw mut error,
        );
        told(status, &mut error, &options);
        if status == 0 && case.answer < 3 {
            assert_eq!(relayout_options_set_read(options, Some(read), std::ptr::from_ref(case).cast_mut().cast()), 0);
        }
        let used = if null(0) { null_mut() } else { options };
        let model: *const c_void = if null(3) { null_mut() } else { case.model.as_ptr().cast() };
        let place = if null(1) { null_mut() } else { &raw mut result };
        let place_of_error = if null(2) { null_mut() } else { &raw mut error };
        let status = relayout_optimize(model, case.model.len(), used, place, place_of_error);
        assert_ne!(status, Status::Internal as c_int, "the library's own fault");
        told(status, &mut error, &result);
        if status == 0 {
            let bytes = relayout_result_model(result, &raw mut len);
            assert!(!bytes.is_null() && len > 0 && !relayout_result_report(result).is_null());
            assert!(!relayout_result_summary(result).is_null() && !relayout_result_explanation(result).is_null());
            assert!(relayout_result_changed(result) == 1 || !case.model.is_empty());
        }
        relayout_result_free(result);
        let status = relayout_audit(model, case.model.len(), used, &raw mut text, place_of_error);
        assert_ne!(status, Status::Internal as c_int, "the library's own fault");
        told(status, &mut error, &text);
        relayout_text_free(text);
        relayout_options_free(options);
    }
}

/// A call that fails says why and gives nothing; one that succeeds says nothing.
unsafe fn told<T>(status: c_int, error: &mut *mut c_char, made: &*mut T) {
    assert!(status == 0 || made.is_null());
    assert!(status != 0 || error.is_null());
    // SAFETY: it is from the library and is not used any more.
    unsafe { relayout_text_free(*error) };
    *error = null_mut();
}
