//! Which version this is. The macros of the header say which version a program was compiled for.

use std::ffi::{CStr, c_char, c_int};

/// Version of the library that is loaded, such as `0.1.0`. Never null, never to be freed.
///
/// `RELAYOUT_VERSION` is the version that a program was compiled for. The two may differ for a shared library. The loader refuses
/// a library with which the program can't work.
#[unsafe(no_mangle)]
pub extern "C" fn relayout_version() -> *const c_char {
    const TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a version has no zero byte"),
    };
    TEXT.as_ptr()
}

/// The same as a number that can be compared, as `RELAYOUT_VERSION_NUMBER` is: 1,000,000 times the major, 1,000 times the minor, and
/// the patch version.
#[unsafe(no_mangle)]
pub extern "C" fn relayout_version_number() -> c_int {
    const NUMBER: c_int = 1_000_000 * number(env!("CARGO_PKG_VERSION_MAJOR"))
        + 1_000 * number(env!("CARGO_PKG_VERSION_MINOR"))
        + number(env!("CARGO_PKG_VERSION_PATCH"));
    NUMBER
}

/// A number of at most three digits.
const fn number(text: &str) -> c_int {
    let digits = text.as_bytes();
    assert!(digits.len() <= 3, "a part of the version has more than three digits");
    let (mut value, mut at) = (0, 0);
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as c_int;
        at += 1;
    }
    value
}
