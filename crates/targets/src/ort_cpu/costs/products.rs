//! Products of matrices, and what is made of them: attention, and projections to its heads.

use super::case::padded;

/// Sizes of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmShape {
    /// Products of this size in one node.
    pub batch: u64,
    /// Rows of the result.
    pub m: u64,
    /// What is summed over.
    pub k: u64,
    /// Columns of the result.
    pub n: u64,
    /// Whether the second operand is stored transposed.
    pub transposed_b: bool,
    /// Whether the second operand is a constant, which the runtime packs when it loads the model.
    pub constant_b: bool,
}

/// Sizes of an attention without mask or bias: every query attends to every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionShape {
    /// Heads, those of all sequences of a batch together.
    pub heads: u64,
    /// Positions of the queries.
    pub queries: u64,
    /// Positions of keys and values.
    pub keys: u64,
    /// Units of a head of queries and keys.
    pub width: u64,
    /// Units of a head of values.
    pub value_width: u64,
}

/// How an attention runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attention {
    /// A product of batches of matrices, Softmax, and another product. Operands and result are `[heads, positions, units]`.
    Apart,
    /// `MultiHeadAttention`, which takes positions outside of heads and never writes the scores.
    Whole,
}

/// Sizes of a projection: a product of activations `[rows, inputs]` with constant weights, whose columns belong to heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProjectionShape {
    /// Rows of the activations: positions, those of all sequences of a batch together.
    pub rows: u64,
    /// Columns of the activations: what is summed over.
    pub inputs: u64,
    /// Heads of the result.
    pub heads: u64,
    /// Columns of a head.
    pub width: u64,
}

/// Columns that the runtime's kernel packs, and computes, at a time, whatever the machine's block is.
const PACKED: u64 = 16;

impl ProjectionShape {
    /// Columns of all heads with those that fill what the runtime packs: once where heads are together, else in each head.
    pub(super) fn packed_columns(&self, form: Projection) -> f64 {
        match form {
            Projection::Together | Projection::TogetherBias => padded(self.heads.saturating_mul(self.width), PACKED),
            Projection::Apart | Projection::ApartBias => self.heads as f64 * padded(self.width, PACKED),
        }
    }
}

/// How a projection runs, and whether a constant is added to what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    /// By one matrix `[inputs, heads * width]`, which the runtime packs when it loads the model. Heads of the result,
    /// `[rows, heads * width]`, lie side by side in each row.
    Together,
    /// By one matrix with a bias `[heads * width]`. The two are one Gemm, which ONNX Runtime makes of them on load where the
    /// activations are a matrix or all their extents are known; elsewhere they stay two nodes, of which this is not the cost.
    TogetherBias,
    /// By a matrix for each head, `[heads, inputs, width]`, which the runtime packs in every run. The result is
    /// `[heads, rows, width]`.
    Apart,
    /// By a matrix for each head with a bias `[heads, 1, width]`, which a node of its own adds.
    ApartBias,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ort_cpu::costs::Case;

    #[test]
    fn work_of_a_projection_fills_the_last_columns_of_each_matrix() {
        let shape = ProjectionShape { rows: 10, inputs: 7, heads: 3, width: 20 };
        let work = |form| Case::Projection(shape, form).work(8) as u64;
        assert_eq!([Projection::Together, Projection::TogetherBias].map(work), [70 * 64; 2]);
        assert_eq!([Projection::Apart, Projection::ApartBias].map(work), [70 * 3 * 32; 2]);
    }
}
