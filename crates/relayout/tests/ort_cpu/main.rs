//! Target `ort-cpu`: what it writes in blocks and in other forms is run in ONNX Runtime before and after.

mod attention;
mod blocks;
mod bodies;
mod byte_channels;
mod bytes;
mod channels;
#[path = "../common/mod.rs"]
mod common;
mod depth;
#[path = "../fill/mod.rs"]
mod fill;
#[path = "../fold_nets/mod.rs"]
mod fold_nets;
mod fused;
mod guard;
mod halves;
mod layouts;
mod networks;
mod norms;
mod prelu;
mod projections;
mod runs;
mod signals;
mod standard;
mod transposed;
mod volumes;
