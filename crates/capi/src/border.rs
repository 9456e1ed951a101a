//! What crosses the border: pointers that come in, texts and boxes that go out, and panics, which do not.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Status;

/// Why a call did nothing: the status, and a sentence for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }

    /// A pointer that must not be null.
    fn null(name: &str) -> Failure {
        Failure::new(Status::Null, format!("`{name}` is null"))
    }
}

/// The answer of `work`, or that it panicked.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Status::Ok.code(),
        Ok(Err(status)) => status.code(),
        Err(_) => Status::Internal.code(),
    }
}

/// The answer of `work`, or that it panicked. The sentence goes to `error`, null if all went well.
///
/// # Safety
/// `error` is null or valid for writing a pointer.
pub(crate) unsafe fn told(error: *mut *mut c_char, work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(defect(panic.as_ref())),
    };
    let status = failure.as_ref().map_or(Status::Ok, |failure| failure.status);
    if !error.is_null() {
        let text = failure.map_or(std::ptr::null_mut(), |failure| owned_text(failure.text));
        // SAFETY: not null, and the caller vouches for it.
        unsafe { error.write(text) };
    }
    status.code()
}

/// A panic, for people.
fn defect(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned());
    Failure::new(Status::Internal, format!("a defect of relayout; please report it: {text}"))
}

/// A string with a zero at its end. A zero within it, which a name in a model may have, is spelled as the replacement character.
pub(crate) fn c_text(text: String) -> CString {
    CString::new(text).unwrap_or_else(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).replace('\0', "\u{fffd}");
        CString::new(text).unwrap_or_default()
    })
}

/// A string that the caller frees by `relayout_text_free`.
fn owned_text(text: String) -> *mut c_char {
    c_text(text).into_raw()
}

/// Frees a text that a function of this library gave to the caller; null is fine.
///
/// # Safety
/// `text` is null, or was given by a function of this library that says to free it so, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relayout_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it was made by `CString::into_raw` and is not used again.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Writes null to `out`, which a call that fails leaves there.
///
/// # Safety
/// `out` is null or valid for writing a pointer.
pub(crate) unsafe fn emptied<T>(out: *mut *mut T, name: &str) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: not null, and the caller vouches for it.
    unsafe { out.write(std::ptr::null_mut()) };
    Ok(())
}

/// Gives a box to the caller.
///
/// # Safety
/// `out` is valid for writing a pointer.
pub(crate) unsafe fn give<T>(out: *mut *mut T, made: T) {
    // SAFETY: the caller vouches for it.
    unsafe { out.write(Box::into_raw(Box::new(made))) };
}

/// Gives a text to the caller.
///
/// # Safety
/// `out` is valid for writing a pointer.
pub(crate) unsafe fn give_text(out: *mut *mut c_char, text: String) {
    // SAFETY: the caller vouches for it.
    unsafe { out.write(owned_text(text)) };
}

/// Takes back and drops what [`give`] gave; null is fine.
///
/// # Safety
/// `given` is null, or came from [`give`] and is not used again.
pub(crate) unsafe fn take_back<T>(given: *mut T) {
    if !given.is_null() {
        // SAFETY: it was made by `Box::into_raw` and is not used again.
        drop(unsafe { Box::from_raw(given) });
    }
}

/// The string at `text`, if it is UTF-8; null is `None`.
///
/// # Safety
/// `text` is a string that ends with a 0, or null.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<Result<&'a str, std::str::Utf8Error>> {
    // SAFETY: not null, and the caller vouches for its end.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str())
}

/// The string at `text`, called `name` by the header.
///
/// # Safety
/// `text` is a string that ends with a 0, or null.
pub(crate) unsafe fn required_text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    // SAFETY: passed on.
    let found = unsafe { self::text(text) }.ok_or_else(|| Failure::null(name))?;
    found.map_err(|error| Failure::new(Status::BadOptions, format!("`{name}` is not UTF-8: {error}")))
}

/// The `len` bytes at `bytes`, called `name` by messages. Null is an error, even where `len` is 0.
///
/// # Safety
/// `bytes` is null or valid for reading `len` bytes as long as the slice is used, and nobody writes to them.
pub(crate) unsafe fn slice<'a>(bytes: *const c_void, len: usize, name: &str) -> Result<&'a [u8], Failure> {
    if bytes.is_null() {
        return Err(Failure::null(name));
    }
    if len > isize::MAX as usize {
        return Err(Failure::new(Status::BadSize, format!("`{name}` has {len} bytes, more than there is memory")));
    }
    // SAFETY: not null, not larger than a slice may be, and the caller vouches for the bytes.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) })
}

#[cfg(test)]
mod tests {
    use super::{CString, Failure, Status, c_text, guarded, relayout_text_free, slice, told};
    use std::ffi::c_char;

    fn failed(work: impl FnOnce() -> Result<(), Failure>) -> (i32, String) {
        let mut error: *mut c_char = std::ptr::null_mut();
        // SAFETY: a place for a pointer; the text is one of this library's.
        let status = unsafe { told(&raw mut error, work) };
        assert!(!error.is_null());
        // SAFETY: it was just given, and is freed once.
        let text = unsafe { CString::from_raw(error) };
        (status, text.into_string().unwrap())
    }

    #[test]
    fn a_panic_is_an_answer() {
        let (status, text) = failed(|| panic!("the {} fell", "sky"));
        assert_eq!(status, Status::Internal.code());
        assert!(text.contains("a defect") && text.ends_with("the sky fell"), "{text}");
        let (_, text) = failed(|| std::panic::panic_any(7_u8));
        assert!(text.ends_with("it panicked"), "{text}");
        assert_eq!(guarded(|| panic!("here too")), Status::Internal.code());
        // SAFETY: null is asked for nothing.
        assert_eq!(unsafe { told(std::ptr::null_mut(), || panic!("nobody listens")) }, Status::Internal.code());
    }

    #[test]
    fn success_leaves_no_text() {
        let mut error = c"stale".as_ptr().cast_mut();
        // SAFETY: a place for a pointer.
        assert_eq!(unsafe { told(&raw mut error, || Ok(())) }, 0);
        assert!(error.is_null());
        // SAFETY: null is fine.
        unsafe { relayout_text_free(error) };
    }

    #[test]
    fn a_zero_within_a_text_does_not_cut_it_off() {
        assert_eq!(c_text("a\0b".to_owned()).to_str(), Ok("a\u{fffd}b"));
        assert_eq!(c_text("plain".to_owned()).as_c_str(), c"plain");
    }

    #[test]
    fn lengths_that_no_memory_has_are_refused() {
        let byte = 7_u8;
        // SAFETY: refused before anything is read.
        let refused = unsafe { slice((&raw const byte).cast(), usize::MAX, "model") };
        assert_eq!(refused.unwrap_err().status, Status::BadSize);
        // SAFETY: as above.
        let refused = unsafe { slice(std::ptr::null(), 0, "model") };
        assert_eq!(refused.unwrap_err(), Failure::new(Status::Null, "`model` is null"));
    }
}
