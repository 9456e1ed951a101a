//! What has another form: equations between pieces of a graph, and the e-graph that finds where they hold.
//!
//! Exporters write one thing in many ways. A matcher that is written by hand knows some of them. Here each way that leads to another
//! is an [`Equation`](relayout_target_api::Equation), and equality saturation (crate `egg`) applies all of them to a region of the graph until nothing is new. What
//! then is equal to a named op, such as `Attention`, is [`Recognized`](relayout_target_api::Recognized), however the file spells it.
//!
//! - [`OPS`]: the ops of terms, in one spelling each.
//! - [`Region`]: nodes of a graph as terms.
//! - [`EQUATIONS`]: what is equal to what, where, and how exactly; [`named`]: the ops that they give a name to.
//! - [`Finder`]: regions, saturation, and the named ops.
//! - [`Explanation`](relayout_target_api::Explanation): the equations that lead from a spelling to an op.
//!
//! ```
//! use relayout_equations::Finder;
//! use relayout_ir::dim::Dim;
//! use relayout_ir::dtype::DType;
//! use relayout_ir::build::Builder;
//! use relayout_ir::graph::Graph;
//! use relayout_ir::types::Type;
//! use relayout_target_api::Numerics;
//!
//! // x * (1 / (1 + exp(-x)))
//! let mut graph = Graph::new("g");
//! let x = graph.add_input("x", Type::tensor(DType::F32, vec![Dim::from(8)]))?;
//! let mut make = Builder::new(&mut graph, 0).opset(17);
//! let one = make.filled("one", DType::F32, &[], 1.0)?;
//! let shape = [Dim::from(8)];
//! let minus = make.op("Neg", [x]).shaped("minus", &shape)?;
//! let power = make.op("Exp", [minus]).shaped("power", &shape)?;
//! let sum = make.op("Add", [power, one]).shaped("sum", &shape)?;
//! let sigmoid = make.op("Reciprocal", [sum]).shaped("sigmoid", &shape)?;
//! let y = make.op("Mul", [x, sigmoid]).shaped("y", &shape)?;
//!
//! let finder = Finder::new(&["Swish"], &[], Numerics::Reassociate)?;
//! let found = finder.find(&graph, &graph.order().unwrap());
//! assert_eq!((found[0].op.as_str(), found[0].result, found[0].value(0)), ("Swish", y, Some(x)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Limits are numbers of nodes and rounds, never times, so the same graph gives the same result.

mod equation;
mod equations;
mod explain;
mod facts;
mod find;
mod read;
mod term;

pub use equation::{Rewrite, Unsound};
pub use equations::{EQUATIONS, named};
pub use facts::{Facts, Known, Terms};
pub use find::Finder;
pub use read::Region;
pub use term::{Head, Kind, NoTerm, OPS, OpInfo, Shaping, Term};
