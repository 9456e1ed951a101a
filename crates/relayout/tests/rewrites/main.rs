//! What becomes of nodes: what is folded, turned, sunk or given back, run before and after.

#[path = "../common/mod.rs"]
mod common;
mod fold;
#[path = "../fold_nets/mod.rs"]
mod fold_nets;
mod fold_rounded;
mod give_back;
mod heads;
mod loaded;
mod numbers;
mod ort_nhwc;
mod padded_halves;
mod pairs;
mod picks;
mod products;
#[path = "../random/proto.rs"]
mod proto;
mod shared_constants;
mod sinking;
mod staged;
mod turned_products;
mod written_out;
