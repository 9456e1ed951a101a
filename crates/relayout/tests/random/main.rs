//! Random models and networks.

mod bodies;
#[path = "../common/mod.rs"]
mod common;
mod cpu;
mod cuts;
mod dice;
#[path = "../fold_nets/mod.rs"]
mod fold_nets;
mod functions;
mod models;
mod net;
mod on_load;
#[path = "../op_cases/mod.rs"]
mod op_cases;
mod proto;
#[path = "../sampling/mod.rs"]
mod sampling;
mod steps;
#[path = "../ops/uncovered.rs"]
mod uncovered;
