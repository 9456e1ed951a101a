//! Types of results: what an entry of the table sees, and what it answers.
//!
//! Rules, exactly ONNX's, on symbolic extents. What is not proven is an anonymous dim; a constant is claimed only where it
//! is proven, whatever value a symbol takes. The one assumption about symbols is that an extent is not negative and that a
//! bound which is itself symbolic, or cuts a constant off a symbolic extent, does not reach past the end. Exporters compute sizes in
//! floats as well: an extent that is cast to one is assumed to be a number that it holds exactly (for 32 bits below 2^24).

mod arith;
mod drive;
mod element;
mod pick;

pub(super) use arith::{agree, check_rank, is_extent, quotient};
pub use drive::{MAX_NESTING, Problem, infer_graph, infer_one};
pub(super) use element::{boolean, same_dtype, typed};
pub(super) use pick::{Known, join};

use crate::attr::Attr;
use crate::constant::Constant;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::{CONTENTS_LIMIT, Graph, Node};
use crate::types::{Shape, Type};

/// What inference knows of one node.
#[derive(Debug)]
pub struct InferContext<'a> {
    /// The graph, with the types of everything before the node.
    pub graph: &'a Graph,
    /// The node.
    pub node: &'a Node,
    /// Number of anonymous dims handed out so far in the model.
    pub unknowns: &'a mut u32,
}

/// What an op's results are.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// One type per result slot; slots past the end are unknown.
    pub types: Vec<Type>,
    /// Elements of each result in row-major order, where it is a small tensor of whole numbers whose contents are known; results past
    /// the end are not known.
    pub contents: Vec<Option<Vec<Dim>>>,
}

/// An answer, or a sentence that says why no result can exist.
pub(super) type Answer = Result<Inferred, String>;

impl Inferred {
    /// One result of this type.
    pub fn one(ty: Type) -> Inferred {
        Inferred { types: vec![ty], contents: Vec::new() }
    }

    /// Several results.
    pub fn many(types: Vec<Type>) -> Inferred {
        Inferred { types, contents: Vec::new() }
    }

    /// With the elements of result 0.
    #[must_use]
    pub fn with(self, contents: Option<Vec<Dim>>) -> Inferred {
        self.with_each(vec![contents])
    }

    /// With the elements of each result.
    #[must_use]
    pub fn with_each(mut self, contents: Vec<Option<Vec<Dim>>>) -> Inferred {
        self.contents = contents.into_iter().map(|all| all.filter(|c| c.len() <= CONTENTS_LIMIT)).collect();
        self
    }
}

/// Largest float tensor whose contents are followed where they are whole numbers, in elements: as many as a shape has axes.
pub const FLOATS_LIMIT: usize = 16;

/// Most axes that a result may have.
pub const MAX_RANK: usize = 255;

impl<'a> InferContext<'a> {
    /// Type of an operand; unknown if it is left out.
    pub fn ty(&self, slot: usize) -> &'a Type {
        const NOTHING: &Type = &Type::Unknown;
        let graph = self.graph;
        self.node.operand(slot).map_or(NOTHING, |v| &graph.value(v).ty)
    }

    /// Logical shape of an operand.
    pub fn shape(&self, slot: usize) -> Option<&'a [Dim]> {
        self.ty(slot).shape()
    }

    /// Rank of an operand.
    pub fn rank(&self, slot: usize) -> Option<usize> {
        self.ty(slot).rank()
    }

    /// Element type of an operand.
    pub fn dtype(&self, slot: usize) -> Option<DType> {
        self.ty(slot).dtype()
    }

    /// Whether the operand is given.
    pub fn has(&self, slot: usize) -> bool {
        self.node.operand(slot).is_some()
    }

    /// Contents of a small integer operand, row-major.
    pub fn contents(&self, slot: usize) -> Option<&'a [Dim]> {
        let v = self.node.operand(slot)?;
        self.graph.value(v).contents.as_deref()
    }

    /// Contents of a small integer operand, if all are numbers.
    pub fn ints(&self, slot: usize) -> Option<Vec<i64>> {
        super::read::known_ints(self.graph, self.node.operand(slot)?)
    }

    /// The constant behind an operand.
    pub fn constant(&self, slot: usize) -> Option<&'a Constant> {
        self.graph.constant(self.node.operand(slot)?)
    }

    /// An integer attribute, or its default.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.node.int(name).unwrap_or(default)
    }

    /// An attribute that names an element type.
    ///
    /// # Errors
    /// If it is given but names none.
    pub fn dtype_attr(&self, name: &str) -> Result<Option<DType>, String> {
        // Before opset 6, Cast spelled it.
        let code = match self.node.attrs.get(name) {
            None => return Ok(None),
            Some(Attr::Int(code)) => i32::try_from(*code).ok(),
            Some(attr) => attr.as_str().and_then(onnx_name),
        };
        match code {
            Some(0) => Ok(None),
            code => code.and_then(DType::from_onnx).map(Some).ok_or_else(|| format!("`{name}` is not an element type")),
        }
    }

    /// Number of result slots of the node.
    pub fn results(&self) -> usize {
        self.node.outputs.len()
    }

    /// Axis `axis` of an operand of this rank.
    ///
    /// # Errors
    /// If it is out of range.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, String> {
        super::normalize_axis(axis, rank).ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))
    }

    /// Several axes of an operand of this rank, in the order given.
    ///
    /// # Errors
    /// If one is out of range or occurs twice.
    pub fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
        super::axes_among(axes, rank)
    }

    /// A dim that is equal only to itself.
    pub fn unknown(&mut self) -> Dim {
        *self.unknowns = self.unknowns.saturating_add(1);
        Dim::unknown(*self.unknowns)
    }

    /// An element of known type and unknown value, equal only to itself.
    pub fn unknown_number(&mut self) -> Dim {
        *self.unknowns = self.unknowns.saturating_add(1);
        Dim::unknown_number(*self.unknowns)
    }

    /// A shape of this rank with dims that are equal only to themselves.
    pub fn unknown_shape(&mut self, rank: usize) -> Shape {
        (0..rank).map(|_| self.unknown()).collect()
    }

    /// Shape of an operand if it has this rank; unknown dims if its rank is not known.
    ///
    /// # Errors
    /// If it has another rank.
    pub fn shape_of_rank(&mut self, slot: usize, rank: usize) -> Result<Shape, String> {
        match self.shape(slot) {
            Some(shape) if shape.len() == rank => Ok(shape.to_vec()),
            Some(shape) => Err(format!("operand {slot} has rank {}, needs {rank}", shape.len())),
            None => Ok(self.unknown_shape(rank)),
        }
    }

    /// Shape of an operand if it has at least this rank.
    ///
    /// # Errors
    /// If it has fewer axes.
    pub fn shape_from_rank(&self, slot: usize, rank: usize) -> Result<Option<&'a [Dim]>, String> {
        match self.shape(slot) {
            Some(shape) if shape.len() < rank => {
                Err(format!("operand {slot} has rank {}, needs at least {rank}", shape.len()))
            }
            shape => Ok(shape),
        }
    }
}

/// `TensorProto.DataType` of the names that Cast took before opset 6.
fn onnx_name(name: &str) -> Option<i32> {
    const NAMES: [&str; 16] = [
        "FLOAT",
        "UINT8",
        "INT8",
        "UINT16",
        "INT16",
        "INT32",
        "INT64",
        "STRING",
        "BOOL",
        "FLOAT16",
        "DOUBLE",
        "UINT32",
        "UINT64",
        "COMPLEX64",
        "COMPLEX128",
        "BFLOAT16",
    ];
    NAMES.iter().position(|n| *n == name).map(|i| i as i32 + 1)
}
