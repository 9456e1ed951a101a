//! Rewrites: changes of which ops there are. Each is an entry here that says its equation, where it holds, what it buys and
//! whether it keeps every bit; the passes that carry them out look entries up, so that nothing is applied that is not in the
//! table.
//!
//! Absent: a search. Every rewrite here takes nodes or a move away and adds no more than views, or makes several ops one, so any order
//! ends, at the same graph; what adds copies is tried once, whole, and taken where it is cheaper.

mod anchor;
mod rounding;

pub use anchor::{Anchor, BiasPlace};
pub(crate) use rounding::reassociable;

use relayout_ir::graph::{Graph, Node};

/// How the results of a rewrite compare with those of what it replaces, and what a user permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Numerics {
    /// Bit by bit the same.
    Exact,
    /// The same in the reals; rounded at other places, or in another order.
    #[default]
    Reassociate,
}

/// One rewrite.
pub struct Rewrite {
    /// Name: a verb phrase, as reports have it.
    pub name: &'static str,
    /// What is replaced by what.
    pub equation: &'static str,
    /// Where it holds.
    pub condition: &'static str,
    /// What falls strictly wherever it is applied.
    pub buys: &'static str,
    /// What it does to results.
    pub numerics: Numerics,
    /// What it is applied to.
    pub form: RewriteForm,
}

impl Rewrite {
    /// Whether what is counted of it are nodes that it took away; else they are tensors that it says otherwise.
    #[must_use]
    pub fn takes_nodes(&self) -> bool {
        !matches!(
            self.form,
            RewriteForm::Bytes
                | RewriteForm::Projection
                | RewriteForm::Turned
                | RewriteForm::Across
                | RewriteForm::Channels
        )
    }

    /// What it did, as reports have it.
    #[must_use]
    pub fn told(&self, count: usize) -> String {
        if self.takes_nodes() {
            return format!("{} took away {count} nodes", self.name);
        }
        format!("{} restated {count} tensors", self.name)
    }
}

/// Reads a node as one whose weights can take a factor per output channel.
pub type AnchorOf = fn(&Graph, &Node) -> Option<Anchor>;

/// What a rewrite is applied to.
pub enum RewriteForm {
    /// Nodes all of whose results are known; `fold_constants` carries it out.
    Known(Known),
    /// A linear op followed by scales and shifts; `fold_scales` carries it out.
    Anchored {
        /// ONNX op.
        op: &'static str,
        /// Its reading.
        anchor: AnchorOf,
    },
    /// A copy of everything; `fold_copies` carries it out.
    Copies,
    /// A Pad in front of a convolution; `fold_pads` carries it out.
    Pads,
    /// A move whose result is flattened and multiplied; `reorder_weights` carries it out.
    Moved,
    /// Two moves around ops of rows; `join_moves` carries it out.
    Rows,
    /// Signed bytes between quantizations; `unsign_bytes` carries it out.
    Bytes,
    /// Two products and the Softmax between them; `choose_forms` carries it out.
    Attention,
    /// A product with constant weights whose columns are read as heads; `choose_forms` carries it out.
    Projection,
    /// A product with constant weights beside a move of its columns; `choose_forms` carries it out.
    Turned,
    /// A `LayerNormalization` beside a move of its channels; `choose_forms` carries it out.
    Across,
    /// Channels between convolutions that are brought to other places; `route_channels` carries it out.
    Channels,
}

/// How a result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// From shape arithmetic.
    Contents,
    /// The operands are constants, and the op is one that is evaluated.
    Operands,
}

/// Every rewrite.
pub const TABLE: &[Rewrite] = &[
    Rewrite {
        name: "know_shape_arithmetic",
        equation: "f(...) = c",
        condition: "inference proves every element of the integer result, whatever the symbols are; no graph output",
        buys: "the node",
        numerics: Numerics::Exact,
        form: RewriteForm::Known(Known::Contents),
    },
    Rewrite {
        name: "evaluate_constants",
        equation: "f(c1, c2, ...) = c",
        condition: "f's result is the same in every runtime; c is small, or stored instead of as many bytes; no graph \
                    output; no DequantizeLinear that is part of a quantized unit",
        buys: "the node",
        numerics: Numerics::Exact,
        form: RewriteForm::Known(Known::Operands),
    },
    Rewrite {
        name: "read_what_is_copied",
        equation: "Slice(x, all) = x, Pad(x, 0) = x",
        condition: "what is taken and added is known, and operand and result have the same shape, whatever the symbols are; no \
                    graph output, and no body reads it",
        buys: "the node, and one pass over the tensor",
        numerics: Numerics::Exact,
        form: RewriteForm::Copies,
    },
    Rewrite {
        name: "scale_into_conv",
        equation: "s * Conv(x, W, b) + t = Conv(x, s * W, s * b + t)",
        condition: anchor::CONDITION,
        buys: anchor::BUYS,
        numerics: Numerics::Reassociate,
        form: RewriteForm::Anchored { op: "Conv", anchor: anchor::conv },
    },
    Rewrite {
        name: "scale_into_conv_transpose",
        equation: "s * ConvTranspose(x, W, b) + t = ConvTranspose(x, s * W, s * b + t)",
        condition: anchor::CONDITION,
        buys: anchor::BUYS,
        numerics: Numerics::Reassociate,
        form: RewriteForm::Anchored { op: "ConvTranspose", anchor: anchor::conv_transpose },
    },
    Rewrite {
        name: "scale_into_gemm",
        equation: "s * Gemm(x, W, c) + t = Gemm(x, s * W, s * c + t)",
        condition: anchor::CONDITION,
        buys: anchor::BUYS,
        numerics: Numerics::Reassociate,
        form: RewriteForm::Anchored { op: "Gemm", anchor: anchor::gemm },
    },
    Rewrite {
        name: "scale_into_matmul",
        equation: "s * (MatMul(x, W) + b) + t = MatMul(x, s * W) + (s * b + t)",
        condition: anchor::CONDITION,
        buys: anchor::BUYS,
        numerics: Numerics::Reassociate,
        form: RewriteForm::Anchored { op: "MatMul", anchor: anchor::matmul },
    },
    Rewrite {
        name: "pads_into_conv",
        equation: "Conv(Pad(x, p), W, pads = q) = Conv(x, W, pads = p + q)",
        condition: "the Pad puts constant zeros around the image only, and nobody else reads it",
        buys: "the Pad, and one pass over the image",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Pads,
    },
    Rewrite {
        name: "move_into_weights",
        equation: "Gemm(Flatten(Relayout(x)), W) = Gemm(Flatten(x), P W)",
        condition: "W is constant, nobody else reads it or what is moved; the batch lies outermost on both sides of the move",
        buys: "the move",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Moved,
    },
    Rewrite {
        name: "move_rows_once",
        equation: "Move(Reshape(f(Reshape(Move(x))))) = Reshape(f(Reshape(Move(x))))",
        condition: "f is products with constant weights and element-wise ops that treat every row alike, and nobody else reads what \
                    is between; the second move leaves columns innermost; one move of the digits that both have in common is \
                    cheaper than two",
        buys: "a move",
        numerics: Numerics::Exact,
        form: RewriteForm::Rows,
    },
    Rewrite {
        name: "unsign_bytes",
        equation: "DequantizeLinear(QuantizeLinear(x, s, z), s, z) = DequantizeLinear(QuantizeLinear(x, s, z + 128), s, z + 128)",
        condition: "the target's runtime computes with integers on unsigned bytes only; z is one signed byte, known; nothing but \
                    DequantizeLinear reads the bytes, and they leave no graph; likewise a small constant that is dequantized \
                    beside unsigned bytes",
        buys: "ops between quantizations that the runtime computes in floats because their bytes are not of one type",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Bytes,
    },
    Rewrite {
        name: "attend_in_one",
        equation: "MatMul(Softmax(s * MatMul(Q, K)), V) = MultiHeadAttention(Q, K, V, scale = s)",
        condition: "the target has the op, and it is cheaper together with the moves around it; float32, no mask and no bias, s one \
                    constant; nobody else reads what is between; heads and their units are known, no extent is broadcast",
        buys: "cost by the target's measurements",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Attention,
    },
    Rewrite {
        name: "project_heads_apart",
        equation: "Transpose(Reshape(MatMul(x, W) + b)) = MatMul(x, W') + b', W' with a matrix per head",
        condition: "W and b are constant, nobody else reads W or what is between; the columns are split into heads, whose number and \
                    width are known; it is cheaper together with the moves around it",
        buys: "cost: moves against what narrower products take longer",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Projection,
    },
    Rewrite {
        name: "turn_products",
        equation: "Transpose(MatMul(x, W) + b) = Gemm(W', x') + b = Conv(Transpose(x), W', b), MatMul(Transpose(x), W) = Gemm(x', W)",
        condition: "W and b are constant, nobody else reads W; float32, with Gemm float64 too; it is cheaper together with \
                    the moves around it",
        buys: "cost: moves against what products take longer that read or leave columns before rows",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Turned,
    },
    Rewrite {
        name: "normalize_across",
        equation: "Transpose(LayerNormalization(Transpose(x), s, b)) = s * (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) + b, means \
                   being convolutions",
        condition: "float32, of the last of three or four axes, whose extent is known; it is cheaper together with the moves around it",
        buys: "cost: moves against what several passes take longer than one op",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Across,
    },
    Rewrite {
        name: "route_channels",
        equation: "Conv(Split(Shuffle(Concat(Conv(x, W), y))), V) = Conv(Concat(Split(Conv(x, P W)), y), V Q)",
        condition: "the target's convolutions read blocks of channels; float32; every channel that is brought to another place comes \
                    from a convolution of all channels, and ends in one, with nothing between but ops that treat each channel for \
                    itself; weights are constant; what is read beside the channels that are wanted, times zeros, is not infinite",
        buys: "cost: shuffles, and moves into blocks and out of them, against channels that only fill these",
        numerics: Numerics::Reassociate,
        form: RewriteForm::Channels,
    },
];

/// The entry that speaks of results known in this way.
pub(crate) fn of_known(how: Known) -> Option<&'static Rewrite> {
    TABLE.iter().find(|r| matches!(r.form, RewriteForm::Known(k) if k == how))
}

/// The entry for this linear op, and its reading.
pub(crate) fn of_anchor(name: &str) -> Option<(&'static Rewrite, AnchorOf)> {
    TABLE.iter().find_map(|r| match r.form {
        RewriteForm::Anchored { op, anchor } if op == name => Some((r, anchor)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_says_everything_under_a_name_of_its_own() {
        let names: BTreeSet<&str> = TABLE.iter().map(|r| r.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for r in TABLE {
            assert!(r.equation.contains('=') && !r.condition.is_empty() && !r.buys.is_empty(), "{}", r.name);
        }
    }
}
