//! What is known of a value before it is computed: its element type and its logical shape.
//!
//! A shape is in ONNX axis order and no pass permutes it. A dim that nobody named is an anonymous symbol, equal only to itself,
//! so "unknown" needs no case of its own.

use crate::dim::Dim;
use crate::dtype::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A logical shape: extents in ONNX axis order.
pub type Shape = Vec<Dim>;

/// The type of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// Nothing is known.
    #[default]
    Unknown,
    /// A dense tensor.
    Tensor(TensorType),
    /// A sequence, optional, map or sparse tensor, described in words. Such a value has no layout.
    Other(String),
}

/// Element type and shape of a dense tensor, each as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorType {
    /// Element type.
    pub dtype: Option<DType>,
    /// Logical shape; `None` if not even the rank is known.
    pub shape: Option<Shape>,
}

impl Type {
    /// A tensor of this element type and shape.
    pub fn tensor(dtype: DType, shape: Shape) -> Type {
        Type::Tensor(TensorType { dtype: Some(dtype), shape: Some(shape) })
    }

    /// The tensor type, if this is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Logical shape, if this is a tensor of known rank.
    pub fn shape(&self) -> Option<&[Dim]> {
        self.as_tensor()?.shape.as_deref()
    }

    /// Element type, if this is a tensor and it is known.
    pub fn dtype(&self) -> Option<DType> {
        self.as_tensor()?.dtype
    }

    /// Rank, if this is a tensor of known rank.
    pub fn rank(&self) -> Option<usize> {
        self.shape().map(<[Dim]>::len)
    }

    /// Shape with every dim a number, if it is.
    pub fn const_shape(&self) -> Option<Vec<i64>> {
        self.shape()?.iter().map(Dim::as_const).collect()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Unknown => f.write_str("?"),
            Type::Other(what) => write!(f, "<{what}>"),
            Type::Tensor(t) => t.fmt(f),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            Some(d) => write!(f, "{d}")?,
            None => f.write_str("?")?,
        }
        let Some(shape) = &self.shape else { return f.write_str("[*]") };
        f.write_str("[")?;
        for (i, d) in shape.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}
