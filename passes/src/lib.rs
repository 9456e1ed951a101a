//! The passes of relayout. Each takes a verified graph and leaves a verified graph. [`pipeline`] runs them in their slots.
//!
//! ```
//! use relayout_ir::attr::Attr;
//! use relayout_ir::dtype::DType;
//! use relayout_ir::build::Builder;
//! use relayout_ir::graph::Graph;
//! use relayout_ir::model::Model;
//! use relayout_ir::types::Type;
//! use relayout_passes::pipeline::{PipelineOptions, run};
//!
//! let mut graph = Graph::new("g");
//! let (ty, turned) = (Type::tensor(DType::F32, vec![2.into(), 3.into()]), Type::tensor(DType::F32, vec![3.into(), 2.into()]));
//! let x = graph.add_input("x", ty.clone())?;
//! let mut make = Builder::new(&mut graph, 0).opset(13);
//! let there = make.op("Transpose", [x]).attr("perm", Attr::Ints(vec![1, 0])).result("there", turned)?;
//! let back = make.op("Transpose", [there]).attr("perm", Attr::Ints(vec![1, 0])).result("back", ty)?;
//! graph.add_output(back);
//! let mut model = Model { graph, ..Model::default() };
//! let target = relayout_targets::builtin("onnx")?;
//! let outcome = run(&mut model, target.as_ref(), &PipelineOptions::default())?;
//! assert_eq!((outcome.graphs[0].before.nodes, outcome.graphs[0].after().nodes), (2, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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

mod assign;
pub mod decide;
pub mod forms;
mod operands;
pub mod pipeline;
mod reasons;
pub mod report;
pub mod simplify;
mod state;
pub mod write;
