//! What values are: terms, each stored once, and the index maps under which they are seen.

pub(crate) mod align;
pub(crate) mod arg;
pub(crate) mod concats;
pub(crate) mod constants;
pub(crate) mod filters;
pub(crate) mod fits;
pub(crate) mod flat;
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod line;
mod make;
mod misfits;
pub(crate) mod name;
mod open;
pub(crate) mod picked;
pub(crate) mod pointwise;
pub(crate) mod quantized;
pub(crate) mod real;
pub(crate) mod routed;
pub(crate) mod slots;
pub(crate) mod state;
pub(crate) mod strided;
pub(crate) mod symbolic;
pub(crate) mod value;
pub(crate) mod view;
pub(crate) mod windows;
