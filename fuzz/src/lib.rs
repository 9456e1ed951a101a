//! What the fuzz targets share: a bound on memory, models that are damaged in their structure, and laws of a whole run.
//!
//! A fault is a panic: the engine writes the input to a file and ends.

pub mod choice;
pub mod laws;
pub mod memory;
pub mod models;
pub mod pieces;
