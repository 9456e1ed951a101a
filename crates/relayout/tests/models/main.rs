//! Whole models and graphs, from the file or the builder to the result and its report.

mod annotations;
mod between;
mod broken;
mod builder;
mod cases;
#[path = "../common/mod.rs"]
mod common;
mod declared;
mod deep;
mod dense;
mod dilated;
#[path = "../fill/mod.rs"]
mod fill;
#[path = "../fold_nets/mod.rs"]
mod fold_nets;
mod given;
mod io;
mod milp;
mod models;
mod opaque;
mod plan;
mod records;
mod released;
mod sizes;
