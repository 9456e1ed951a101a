//! Why a node is refused.

use relayout_layout::LayoutError;
use thiserror::Error;

/// Why a node cannot be run; the node's name is added where the runtime tells it.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum Refusal {
    #[error("no layouts are given: set `perm`, or `from` and `to`")]
    NoLayouts,
    #[error("attribute `{given}` is set and `{missing}` is not: set `perm` alone, or both `from` and `to`")]
    Incomplete { given: &'static str, missing: &'static str },
    #[error("`perm` is set and `{other}` too: `perm` stands alone")]
    TwoForms { other: &'static str },
    #[error("`perm` is {perm:?}: it must name each of the {rank} axes of the input once", rank = perm.len())]
    NotAPermutation { perm: Vec<i64> },
    #[error("attribute `{attribute}`: {source}")]
    Layout { attribute: &'static str, source: LayoutError },
    #[error("attribute `{attribute}` is not UTF-8 text")]
    NotText { attribute: &'static str },
    #[error("`from` has {from} axes and `to` has {to}: both lay out the same axes")]
    Ranks { from: usize, to: usize },
    #[error("`shape` has {got} dims for layouts of {want} axes")]
    ShapeRank { want: usize, got: usize },
    #[error("`shape` has the dim {dim}: give a size, or -1 to take it from the input")]
    ShapeDim { dim: i64 },
    #[error("the input has {got} dims, but {says} {want}")]
    InputRank { says: &'static str, want: usize, got: usize },
    #[error("dim {at} of the input is {got}, but `from` and `shape` want {want}")]
    InputDim { at: usize, want: i64, got: i64 },
    #[error("the shape does not fit: {0}")]
    Shape(LayoutError),
    #[error("elements of type {0} are not supported: 8, 16, 32, 64 or 128 bits are")]
    Element(String),
    #[error("the input is not a dense tensor")]
    NotATensor,
    #[error(transparent)]
    Plan(#[from] relayout_codegen::Error),
    #[error("ONNX Runtime: {0}")]
    Runtime(String),
    #[error("a defect of this library: {0}")]
    Panic(String),
}
