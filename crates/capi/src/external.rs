//! External data: the bytes that a model keeps outside of its file, which a caller gives location by location.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{Error, ErrorKind};

use bytes::Bytes;

/// What a function answers that gives external data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum ReadAnswer {
    /// The data was given.
    Given = 0,
    /// There is no such data. The model can be audited, but not optimized.
    Missing = 1,
    /// The data can't be read. Any other number means the same.
    Failed = 2,
}

/// Gives all bytes of the external data of a model that `location` names, by writing where they are to `bytes` and how many they are to
/// `len`. Answers an `enum relayout_read`.
///
/// `context` is what was given to `relayout_options_set_read`. `location` is spelled as in the model, relative to the model, without
/// `..`, and ends with a 0; it is gone when the function returns. Every location is asked for once in a call. The bytes stay the
/// caller's: they have to be there, and unchanged, until the function of the library that asked for them returns. The function must
/// not throw an exception or jump out.
pub type RelayoutReadFn = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        location: *const c_char,
        bytes: *mut *const c_void,
        len: *mut usize,
    ) -> c_int,
>;

/// A caller's function, and what it is called with.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    function: unsafe extern "C" fn(*mut c_void, *const c_char, *mut *const c_void, *mut usize) -> c_int,
    context: *mut c_void,
}

impl Reader {
    /// A reader, if there is a function.
    pub(crate) fn new(function: RelayoutReadFn, context: *mut c_void) -> Option<Reader> {
        function.map(|function| Reader { function, context })
    }

    /// The data of a location.
    ///
    /// # Safety
    /// The function does what [`RelayoutReadFn`] says, and the bytes are not used once the caller's call has returned.
    pub(crate) unsafe fn read(self, location: &str) -> Result<Bytes, Error> {
        let name =
            CString::new(location).map_err(|_| Error::new(ErrorKind::InvalidInput, "the location has a zero byte"))?;
        let mut bytes: *const c_void = std::ptr::null();
        let mut len = 0_usize;
        // SAFETY: the string lives until the function returns, and both places can be written to.
        let answer = unsafe { (self.function)(self.context, name.as_ptr(), &raw mut bytes, &raw mut len) };
        if answer == ReadAnswer::Missing as c_int {
            return Err(Error::new(ErrorKind::NotFound, "the caller has no such data"));
        }
        if answer != ReadAnswer::Given as c_int {
            return Err(Error::other(format!("the caller's function answered {answer}")));
        }
        if len == 0 {
            return Ok(Bytes::new());
        }
        if bytes.is_null() || len > isize::MAX as usize {
            let why = format!("the caller's function gave {len} bytes at {bytes:?}");
            return Err(Error::new(ErrorKind::InvalidData, why));
        }
        // SAFETY: not null, not larger than a slice may be, and the function vouches for the bytes until the call returns.
        Ok(Bytes::from_static(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }))
    }
}
