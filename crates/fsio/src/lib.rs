//! Reads, maps and replaces files and folders, so that no read waits for ever and no file is lost.
//!
//! ```
//! use relayout_fsio::{Output, read_text};
//!
//! let path = std::env::temp_dir().join(format!("relayout-fsio-{}.txt", std::process::id()));
//! // Whoever reads the path sees the old file or the new one, never a part.
//! Output::new(&path, b"whole".to_vec())?.commit()?;
//! assert_eq!(read_text(&path)?, "whole");
//! std::fs::remove_file(&path).ok();
//! # Ok::<(), relayout_fsio::Error>(())
//! ```
//!
//! - [`read`] and [`read_text`] read a file or a pipe; [`Mapped`] maps a file and notices when somebody rewrites it.
//! - [`Staged`] writes a file beside its destination and renames it; [`Output`] does so for a text that is ready.
//! - [`Place`] does the same for a folder.
//! - [`Inside`] reads the files of a folder that a stranger made: it follows no link and leaves the folder in no other way.
//! - [`mind_signals`] is for programs: it says which mapped file was cut off, and removes unfinished files when a signal ends the process.
//!
//! Absent: the permissions of a replaced file are not kept, and nothing is flushed to the disk unless the caller asks for it.

mod error;
mod inside;
mod map;
mod open;
mod place;
mod replace;
#[cfg(unix)]
mod signals;
mod unfinished;

pub use error::{Error, Result};
pub use inside::{Inside, is_inside};
pub use map::Mapped;
pub use open::{read, read_text};
pub use place::{Place, PlaceError};
pub use replace::{Destination, FileTarget, Output, Staged, destination, open_special, sync_folder};
#[cfg(unix)]
pub use signals::mind_signals;

/// What names of unfinished files and folders begin with.
const PREFIX: &str = ".relayout-";
