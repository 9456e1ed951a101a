//! What a program does about the signals that files bring about.
//!
//! The system sends a signal where a page of a mapped file cannot be read: the file was cut off, or the disk failed. Whoever reads
//! the page can't go on, and can't be told by an error. So the program ends, but it says why, and leaves no unfinished file.
//! All of that happens on a thread of its own, because little is allowed where a signal arrives: it writes a byte to a pipe.

use std::io::{self, Read as _};
use std::os::fd::IntoRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use crate::map::file_at;
use crate::unfinished;

/// The end of the pipe that is written to.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// The address that could not be read.
static ADDRESS: AtomicUsize = AtomicUsize::new(0);

/// Signals of users that end a program.
const ENDS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// To be called once, by a program and not by a library, because signals belong to the whole process.
///
/// - A page of a mapped file that can't be read: unfinished files are removed, and `lost` is called on another thread, with the file
///   if it is known. It ends the process; the thread that read the page waits for that.
/// - The end that a user asks for, by `Ctrl-C` say: unfinished files are removed, and the process ends as it would have. A signal
///   that is ignored stays so.
/// - A write beyond the size that the process may give a file is an error like any other, and does not end the process.
///
/// # Errors
/// What the system says.
pub fn mind_signals(lost: fn(Option<&Path>)) -> io::Result<()> {
    let (mut heard, told) = io::pipe()?;
    PIPE.store(told.into_raw_fd(), Ordering::Release);
    let watch = move || {
        let mut signal = [0];
        while heard.read_exact(&mut signal).is_ok() {
            let _nothing_is_made = unfinished::remove_all();
            match c_int::from(signal[0]) {
                libc::SIGBUS => lost(file_at(ADDRESS.load(Ordering::Acquire)).as_deref()),
                signal => end_by(signal),
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
    disposition(libc::SIGXFSZ, libc::SIG_IGN)?;
    hear(libc::SIGBUS)?;
    ENDS.into_iter().try_for_each(|signal| if is_ignored(signal)? { Ok(()) } else { hear(signal) })
}

/// What a signal does from now on.
#[allow(unsafe_code, reason = "the system's interface")]
fn disposition(signal: c_int, handler: usize) -> io::Result<()> {
    // SAFETY: an all-zero structure is a valid one, and it lives until the call returns. The handler is one of the system's own, or
    // `arrived`, which has the signature that `SA_SIGINFO` asks for.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn hear(signal: c_int) -> io::Result<()> {
    disposition(signal, arrived as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize)
}

#[allow(unsafe_code, reason = "the system's interface")]
fn is_ignored(signal: c_int) -> io::Result<bool> {
    // SAFETY: an all-zero structure is a valid one, and it is written to while it lives.
    let (done, ignored) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let done = libc::sigaction(signal, std::ptr::null(), &raw mut action);
        (done, action.sa_sigaction == libc::SIG_IGN)
    };
    if done == 0 { Ok(ignored) } else { Err(io::Error::last_os_error()) }
}

/// Runs where a signal arrives: nothing but what is allowed there.
#[allow(unsafe_code, reason = "the system's interface")]
extern "C" fn arrived(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    let byte = signal as u8;
    // SAFETY: the system gives the information of the signal; the byte lives until it is written; writing and waiting are allowed
    // in a handler. A pipe with room for some bytes takes one at once, and so no error code is changed.
    unsafe {
        if signal == libc::SIGBUS {
            ADDRESS.store((*info).si_addr().addr(), Ordering::Release);
        }
        libc::write(PIPE.load(Ordering::Acquire), (&raw const byte).cast(), 1);
        if signal == libc::SIGBUS {
            loop {
                libc::pause();
            }
        }
    }
}

/// Ends the process as the signal does by itself.
#[allow(unsafe_code, reason = "the system's interface")]
fn end_by(signal: c_int) {
    if disposition(signal, libc::SIG_DFL).is_ok() {
        // SAFETY: any number is fine.
        unsafe { libc::raise(signal) };
    }
}
