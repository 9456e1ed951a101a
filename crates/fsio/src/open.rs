//! Opening without waiting for ever, and reading to the end.
//!
//! The system makes whoever opens a named pipe wait for the other side. Here a pipe is opened without waiting; if nothing is at
//! its other end after [`PATIENCE`], that is an error. A pipe whose other end is open is waited for, as stdin would be.

use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};

/// How long a pipe may have nothing at its other end.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the file or pipe at `path` to its end. Folders, devices and sockets are refused before they are opened.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let (mut file, mut bytes) = match open(path)? {
        Opened::File(file) => (file, Vec::new()),
        Opened::Pipe(file, begin) => (file, begin),
    };
    file.read_to_end(&mut bytes).map_err(|source| Error::read(path, source))?;
    Ok(bytes)
}

/// Reads the file or pipe at `path` to its end as UTF-8 text.
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let not_text = |_| Error::read(path, io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"));
    String::from_utf8(read(path)?).map_err(not_text)
}

/// A file that was opened for reading.
pub(crate) enum Opened {
    File(File),
    /// A pipe, and what was read of it so far.
    Pipe(File, Vec<u8>),
}

/// Opens a file or a pipe.
pub(crate) fn open(path: &Path) -> Result<Opened> {
    let failed = |source| Error::read(path, source);
    // Before it is opened, because opening a device may do something, ...
    refuse(path, fs::metadata(path).map_err(failed)?.file_type())?;
    let file = options().read(true).open(path).map_err(failed)?;
    // ... and after, because something else may have taken its place.
    let kind = file.metadata().map_err(failed)?.file_type();
    refuse(path, kind)?;
    if is_pipe(kind) {
        let begin = begin_of(&file).map_err(failed)?;
        return Ok(Opened::Pipe(file, begin));
    }
    Ok(Opened::File(file))
}

fn refuse(path: &Path, kind: FileType) -> Result<()> {
    if kind.is_file() || is_pipe(kind) {
        return Ok(());
    }
    let kind = if kind.is_dir() { "directory" } else { "device or socket" };
    Err(Error::NotAFile { path: path.to_owned(), kind })
}

/// Options with which opening a pipe does not wait. They make no difference to a file.
pub(crate) fn options() -> fs::OpenOptions {
    #[allow(unused_mut, reason = "other systems have no named pipes among their files")]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options
}

#[cfg(unix)]
pub(crate) fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
pub(crate) fn is_pipe(_: FileType) -> bool {
    false
}

/// The first bytes of a pipe that was opened without waiting. From then on reading it waits.
#[cfg(unix)]
fn begin_of(mut pipe: &File) -> io::Result<Vec<u8>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut ready = [PollFd::new(pipe, PollFlags::IN)];
    let timed_out = poll(&mut ready, Some(&patience))? == 0;
    let mut begin = vec![0; 1 << 16];
    match pipe.read(&mut begin) {
        Ok(0) if timed_out => return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing writes to this pipe")),
        Ok(length) => begin.truncate(length),
        // Something has the other end open and has not written yet.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => begin.clear(),
        Err(error) => return Err(error),
    }
    wait_from_now_on(pipe)?;
    Ok(begin)
}

#[cfg(not(unix))]
fn begin_of(_: &File) -> io::Result<Vec<u8>> {
    Ok(Vec::new())
}

#[cfg(unix)]
fn wait_from_now_on(file: &File) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    Ok(fcntl_setfl(file, fcntl_getfl(file)? - OFlags::NONBLOCK)?)
}

/// Opens a device or a pipe for writing.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    if is_pipe(fs::metadata(path)?.file_type()) {
        return open_pipe_to_write(path);
    }
    File::options().write(true).open(path)
}

#[cfg(unix)]
fn open_pipe_to_write(path: &Path) -> io::Result<File> {
    const STEP: Duration = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    loop {
        match options().write(true).open(path) {
            Ok(file) => {
                wait_from_now_on(&file)?;
                return Ok(file);
            }
            // Nothing has the other end open.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                if waited >= PATIENCE {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing reads from this pipe"));
                }
                std::thread::sleep(STEP);
                waited += STEP;
            }
            Err(error) => return Err(error),
        }
    }
}
