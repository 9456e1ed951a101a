//! Files that are read and replaced.

mod files;
mod inside;
