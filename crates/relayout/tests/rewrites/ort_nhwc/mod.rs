//! Target `ort-nhwc`.

mod contributed_attention;
mod contributed_norms;
mod measured_devices;
mod regions;
