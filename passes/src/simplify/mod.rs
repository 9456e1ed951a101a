//! What is known is evaluated, and what need not run goes.

mod anchor;
pub mod canonicalize;
pub mod fold_constants;
pub mod fold_copies;
pub mod fold_pads;
pub mod fold_scales;
pub mod fold_shapes;
