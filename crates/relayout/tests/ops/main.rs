//! Single ops: the table of ops, the dialect, equations, forms and the targets that have kernels, each executed.

#[path = "../common/mod.rs"]
mod common;
mod dialect;
mod dialect_calls;
mod digits;
mod equations;
#[path = "../fill/mod.rs"]
mod fill;
#[path = "../fold_nets/mod.rs"]
mod fold_nets;
mod form_laws;
mod law;
#[path = "../op_cases/mod.rs"]
mod op_cases;
#[path = "../random/proto.rs"]
mod proto;
mod shuffle;
mod table;
mod targets;
mod through;
mod uncovered;
mod wrong;
