//! The permute kernels behind a C ABI; `include/relayout.h` is what C sees.
//!
//! Every function checks its arguments before it makes a slice of them. It returns a [`Status`] and never unwinds.

#![allow(unsafe_code, reason = "the C ABI takes pointers")]

mod call;
mod layouts;
mod status;

pub use call::{
    RelayoutPlan, permute, permute_cold, permute_hot, relayout_plan_bytes, relayout_plan_free, relayout_plan_new,
    relayout_plan_new_layouts, relayout_plan_run, relayout_plan_source_bytes,
};
pub use status::{CacheHint, Status, relayout_status_text};
