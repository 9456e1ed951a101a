//! The passes, their order, and the decision about pieces of several nodes.

mod cases;
mod order;
mod pieces;
mod stub;
