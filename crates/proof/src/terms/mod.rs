//! What values are: terms, each stored once, and the index maps under which they are seen.

pub(crate) mod align;
pub(crate) mod constants;
pub(crate) mod fits;
pub(crate) mod flat;
pub(crate) mod lanes;
pub(crate) mod name;
pub(crate) mod routed;
pub(crate) mod slots;
pub(crate) mod strided;
pub(crate) mod symbolic;
pub(crate) mod term;
pub(crate) mod value;
pub(crate) mod view;
