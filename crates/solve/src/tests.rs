//! The solvers and the checker against brute force and integer programs, and what stands in files.

mod exact;
mod files;
mod milp;
mod oracle;
mod parts;
