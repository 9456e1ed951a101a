//! relayout behind a C ABI: the optimizer, and the permute kernels. `include/relayout.h` is what C sees; `docs/c.md` says how to build,
//! install and link it.
//!
//! Every function checks what it is given before it makes a slice of it. Most answer a [`Status`]; those of the optimizer also say in a
//! sentence what went wrong. None unwinds: a panic is an answer like others.

#![allow(unsafe_code, reason = "the C ABI takes pointers")]

mod border;
mod external;
mod layouts;
mod optimize;
mod permute;
mod settings;
mod status;
mod version;

pub use border::relayout_text_free;
pub use external::{ReadAnswer, RelayoutReadFn};
pub use optimize::{
    RelayoutOptions, RelayoutResult, relayout_audit, relayout_optimize, relayout_optimize_file, relayout_options_free,
    relayout_options_new, relayout_options_set_read, relayout_result_changed, relayout_result_explanation,
    relayout_result_free, relayout_result_model, relayout_result_report, relayout_result_summary, relayout_targets,
};
pub use permute::{
    RelayoutPlan, relayout_permute, relayout_permute_cold, relayout_permute_hot, relayout_plan_bytes,
    relayout_plan_free, relayout_plan_new, relayout_plan_new_layouts, relayout_plan_run, relayout_plan_source_bytes,
};
pub use status::{CacheHint, Status, relayout_status_text};
pub use version::{relayout_version, relayout_version_number};
