//! The passes of relayout. Each takes a verified graph and leaves a verified graph. [`pipeline`] runs them in their slots.
//!
//! | slot | folder | what it does |
//! |---|---|---|
//! | simplify, prepare | [`simplify`] | what is known is evaluated, what need not run goes |
//! | forms | [`forms`] | pieces of several nodes that have another form |
//! | decide | [`decide`] | one decision for all layouts and forms |
//! | write, finish, clean | [`mod@write`] | the decision is written |
//!
//! Absent: files, protobuf, clocks, threads, and the name of any runtime. What one runtime needs belongs to its target. The same
//! graph gives the same result.

pub mod decide;
pub mod forms;
pub mod pipeline;
pub mod report;
pub mod simplify;
pub mod write;
