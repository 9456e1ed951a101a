//! What 8-bit pools take where a target has them in two orders, as a data file says it.

use serde::Deserialize;

/// What 8-bit pools take, in picoseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuantizedPools {
    pub(crate) max_per_tap: Orders,
    pub(crate) average_per_tap: Orders,
    pub(crate) global_average_per_element: Orders,
}

/// What a pool takes with channels in ONNX's place, and with channels last.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Orders {
    pub(crate) channels_first: u64,
    pub(crate) channels_last: u64,
}
