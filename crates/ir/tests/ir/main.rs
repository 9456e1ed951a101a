//! Dims and layouts, the table of ops, and graphs.

mod build;
mod dim_laws;
mod dtype;
mod graph;
mod layout_common;
mod layout_laws;
mod layout_pad;
mod layout_storage;
mod layout_text;
mod layout_views;
mod op_bind;
mod op_common;
mod op_drive;
mod op_fuzz;
mod op_infer;
mod op_read;
mod runs;
mod text;
mod text_laws;
mod verify;
mod walk;
