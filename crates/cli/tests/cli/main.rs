//! The program `relayout` as its users see it: what each command does, says and refuses.

mod audit;
mod batch;
mod bench;
mod bundle;
mod calibrate;
mod commands;
mod common;
mod diff;
mod failures;
mod faults;
mod kernels;
mod models;
mod outputs;
mod page;
mod prove;
mod shell;
mod solve;
mod tables;
mod terminal;
mod tour;
mod tune;
mod tune_device;
