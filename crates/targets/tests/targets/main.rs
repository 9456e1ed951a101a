//! The built-in targets: their forms, their costs, and what they read and predict.

mod form_cases;
mod gpu;
mod hints;
mod lift;
mod machines;
mod measured;
mod predict;
#[path = "../taking/mod.rs"]
mod taking;
