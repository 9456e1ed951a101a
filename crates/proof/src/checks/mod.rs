//! What is held against each other: ends, claims, types, hosts, and what the verdict says.

pub(crate) mod agreed;
pub(crate) mod check;
pub(crate) mod hosts;
pub(crate) mod lies;
pub(crate) mod sets;
pub(crate) mod untouched;
pub(crate) mod valid;
pub(crate) mod verdict;
