//! Text of a graph, both ways, a JSON view of it, and a drawing for Graphviz.
//!
//! ```text
//! graph stem opset=17 target=ort-cpu
//!   %x: f32[1,3,224,224]@NCHW = input
//!   %w: f32[64,3,7,7]@OIHW16o = const ; 37632 B
//!   %y: f32[1,64,112,112]@NCHW16c = Conv(%x, %w) {pads=[3,3,3,3], strides=[2,2]}
//!   %y.1: f32[1,64,112,112]@NCHW = relayout(%y) ; 3211264 B, rows 64 B
//!   output %y.1
//! ; relayouts 1, moved 3211264 B
//! ```
//!
//! **Lines.** One node a line, in topological order: inputs first, constants and outer values right before their first
//! reader, then `output` lines. Everything after ` ; ` is a comment; that of a constant says what the line itself does not
//! (its size, whether its bytes are missing, in which order it will be stored), and the parser reads it.
//!
//! **Values** are `%name: TYPE@LAYOUT`. The layout is left out where the rank is unknown, and below rank 2 where it is
//! row-major. Names made of other characters than `A-Z a-z 0-9 _ . / : -` are quoted, with Rust's escapes. An operand or
//! result that is left out is `_`; a node without any result is `()`.
//!
//! **Ops** are `input`, `input(default)`, `const`, `outer`, `relayout`, and ONNX's as `Type`, `domain::Type` or
//! `domain::Type:overload`; one that would read as a keyword is quoted. Integer constants of up to 16 elements show them:
//! `const [1,2]`, `const 3`. A constant whose own type is not its value's says it: `const<i64[2]>`. Attributes are sorted by
//! name. A body is `body` there, and a block from `body NAME` to `end` below the node.
//!
//! **Operator sets.** `opset=N` in the header is that of ONNX's own ops, 1 that of all others; ` opset M` behind a node is
//! one that differs.
//!
//! Laws: `print(parse(t)) == t` for every text `t` that [`print()`] made of an acyclic graph, with the same options; and
//! [`parse()`] answers an error that says the place, and never panics.
//!
//! Not in the text: node names, origins, ranks (the order of the lines stands for them), forms, known contents of values,
//! and the bytes of tensors other than small integer constants. What is read back has no bytes to give for those, and says
//! so to whoever asks.

mod cursor;
mod dot;
pub mod json;
mod layouts;
mod names;
mod parse;
mod print;
mod scalars;
mod values;

pub use dot::dot;
pub use json::{AttrJson, GraphJson};
pub use parse::{ParseError, parse};
pub use print::{Comment, PrintOptions, print};
