//! The op families that a random model grows by. Each takes its operands and attributes from the dice and adds nothing where they do
//! not fit; the form of an op follows the operator set.

mod axes;
mod bodies;
mod elementwise;
mod moves;
mod networks;
mod segments;
mod sequences;

use axes::*;
use bodies::*;
use elementwise::*;
use moves::*;
use networks::*;
use segments::*;
use sequences::*;

pub(crate) use moves::transposed;

use crate::dice::Dice;
use crate::models::sketch::{CONTRACTS, EXACT, Id, PRODUCT, ROUNDS, Sketch, body, float, info, int, ints, node, text};
use relayout_onnx::proto::tensor_proto::DataType;

/// Adds one op or a few; the last value that it made.
pub(crate) type Family = fn(&mut Sketch, &mut Dice<'_>) -> Option<Id>;

/// Families and how often each is drawn.
const FAMILIES: &[(usize, Family)] = &[
    (4, transpose),
    (3, wrapped),
    (2, unary),
    (2, constant_operand),
    (2, binary),
    (1, concat),
    (1, split),
    (1, slice),
    (1, pad),
    (2, reduce),
    (1, softmax),
    (2, reshape),
    (1, squeeze),
    (1, unsqueeze),
    (1, gather),
    (1, expand),
    (1, tile),
    (1, conv),
    (1, pool),
    (1, batch_norm),
    (1, matmul),
    (1, gemm),
    (1, cast),
    (1, clip),
    (1, arg),
    (1, top_k),
    (1, cum_sum),
    (1, flatten),
    (1, by_shape),
    (1, quantize),
    (1, choose_where),
    (1, transposed_constant),
    (1, global_pool),
    (1, layer_norm),
    (1, space),
    (1, branches),
];

/// The family that a number stands for.
pub(crate) fn family(kind: u16) -> Family {
    let total: usize = FAMILIES.iter().map(|(weight, _)| weight).sum();
    let mut left = usize::from(kind) % total;
    for &(weight, family) in FAMILIES {
        if left < weight {
            return family;
        }
        left -= weight;
    }
    transpose
}

/// Families that are dealt (see `cards.rs`): an op, the first operator set in which it is spelled so, and what makes one.
pub(crate) const DEALT: &[(&str, i64, Family)] = &[
    ("If", 7, branches),
    ("Loop", 7, iterate),
    ("Scan", 8, scan),
    ("Constant", 7, constant_node),
    ("SequenceConstruct", 11, sequence),
    ("SequenceLength", 11, sequence),
    ("SequenceAt", 11, sequence),
    ("SequenceEmpty", 11, growing),
    ("SequenceInsert", 11, growing),
    ("SequenceErase", 11, growing),
    ("SplitToSequence", 11, split_and_joined),
    ("ConcatFromSequence", 11, split_and_joined),
    ("SequenceMap", 17, mapped),
    ("Optional", 15, optional),
    ("OptionalHasElement", 15, optional),
    ("OptionalGetElement", 15, optional),
];

/// Families that are dealt for a feature that is no op.
pub(crate) const FEATURED: &[(&str, Family)] =
    &[("Concat", joined_channels), ("Split", split_channels), ("Pad", padded_channels)];

fn permuted(shape: &[i64], perm: &[usize]) -> Vec<i64> {
    perm.iter().map(|&p| shape[p]).collect()
}

fn axis_of(s: &Sketch, dice: &mut Dice<'_>, x: Id) -> (usize, i64) {
    let rank = s.values[x].rank();
    let axis = dice.below(rank);
    let said = if dice.once_in(3) { axis as i64 - rank as i64 } else { axis as i64 };
    (axis, said)
}
