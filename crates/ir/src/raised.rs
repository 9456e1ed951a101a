//! Ops of the IR alone: what one node or several of ONNX mean together, said as one op so that a target can offer kernels for it.
//!
//! A raised node has the operands that matter and no place in a file. The decision knows it as a state of the last node that it stands
//! for. If an offer for it is chosen, it takes the place of that node, until a form writes it.

use crate::attr::{Attr, Attrs};
use crate::dim::Dim;
use crate::graph::{Node, Op, OpName};

/// Domain of raised ops.
pub const DOMAIN: &str = "relayout.ir";

/// The attribute of a kernel of a raised op that says what it is written with.
pub const WRITTEN: &str = "written";

const NAME: &str = "GroupNormalization";

fn raised(name: &str) -> OpName {
    OpName::new(DOMAIN, name)
}

fn is_raised(node: &Node, name: &str) -> bool {
    matches!(&node.op, Op::Onnx(op) if op.domain == DOMAIN && op.name == name)
}

/// Whether attributes that a kernel sets say that it is written with this.
fn is_written(set: &[(String, Attr)], with: &str) -> bool {
    let says = |attr: &Attr| matches!(attr, Attr::String(text) if text[..] == *with.as_bytes());
    set.iter().any(|(name, attr)| name == WRITTEN && says(attr))
}

/// `y = (x - mean) / sqrt(variance + epsilon) * scale + bias` of operands `x`, `scale`, `bias`: mean and variance are those of a group of
/// neighbouring channels of one image, over all pixels. `x` and `y` are `[N, C, H, W]`, float32; scale and bias are constants with
/// an entry per group, or one per channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    /// Groups; they divide the channels.
    pub groups: i64,
    /// What is added to the variance.
    pub epsilon: f32,
    /// The file has the op `GroupNormalization`, which the standard defines by a body of other ops.
    pub by_body: bool,
}

impl GroupNorm {
    /// The raised op.
    pub fn op() -> OpName {
        raised(NAME)
    }

    /// What a raised node says; `None` for any other.
    pub fn of(node: &Node) -> Option<GroupNorm> {
        let raised = is_raised(node, NAME);
        let epsilon = node.float("epsilon").filter(|_| raised)?;
        let by_body = node.flag("by_body");
        Some(GroupNorm { groups: node.int("groups").filter(|&g| g > 0)?, epsilon, by_body })
    }

    /// The attributes that say it.
    pub fn attrs(&self) -> Attrs {
        let by_body = Attr::Int(self.by_body.into());
        let own = [("groups", Attr::Int(self.groups)), ("epsilon", Attr::Float(self.epsilon)), ("by_body", by_body)];
        own.into_iter().map(|(name, attr)| (name.to_owned(), attr)).collect()
    }
}

/// The raised attention's name, and what says that one kernel computes it.
const ATTENTION: &str = "Attention";
const WHOLE: &str = "whole";

/// `softmax(scale * Q K) V` of operands `Q`, `K`, `V`: `[batch, heads, S, d]`, keys `[batch, heads, d, T]`, or `[batch, heads, T, d]`
/// if they are by rows, and values `[batch, heads, T, e]`, to `[batch, heads, S, e]`, all float32; or all without the axis of heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Keys have a row per position.
    pub keys_by_rows: bool,
    /// Sums of the scores with zeros that the file has beside.
    pub sums: u64,
}

impl Attention {
    /// The raised op.
    pub fn op() -> OpName {
        raised(ATTENTION)
    }

    /// What a raised node says; `None` for any other.
    pub fn of(node: &Node) -> Option<Attention> {
        let raised = is_raised(node, ATTENTION);
        let of = |name: &str| node.int(name).unwrap_or(0);
        let sums = u64::try_from(of("sums")).unwrap_or(0);
        raised.then(|| Attention { keys_by_rows: of("keys_by_rows") != 0, sums })
    }

    /// The attributes that say it.
    pub fn attrs(self) -> Attrs {
        let sums = i64::try_from(self.sums).unwrap_or(i64::MAX);
        let own = [("keys_by_rows", Attr::Int(self.keys_by_rows.into())), ("sums", Attr::Int(sums))];
        own.into_iter().map(|(name, attr)| (name.to_owned(), attr)).collect()
    }

    /// The attribute of a kernel that computes all of it at once; others are two products and what is between them.
    pub fn whole() -> (String, Attr) {
        (WRITTEN.to_owned(), Attr::String(WHOLE.into()))
    }

    /// Whether attributes that a kernel sets say that it computes all at once.
    pub fn is_whole(set: &[(String, Attr)]) -> bool {
        is_written(set, WHOLE)
    }
}

/// The raised projection's name.
const PROJECTION: &str = "Projection";

/// `x W + b`, its columns perhaps apart as heads: operands `x`, `[rows.., inputs]`, `W`, `[inputs, columns]` or `[columns, inputs]`, and
/// perhaps `b`, an entry per column, to `[rows.., heads.., width]`, whose rows may be spelled otherwise than those of `x`. `W`
/// and `b` are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Axes of the result that are rows.
    pub rows: usize,
    /// Rows can be one axis, and apart again, in whatever order `x` and the result lie.
    pub flat: bool,
}

/// What a kernel of [`Projection`] is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionForm {
    /// A product per head: the result has its heads outermost.
    Apart,
    /// A convolution of one tap: inputs and columns are channels, which stand before all rows but the first axis of these.
    Pixels,
    /// `W' x'`: the columns of the result are outermost.
    TurnedResult,
    /// `(x')' W`: the inputs of `x` are outermost.
    TurnedOperand,
    /// `W' x'` for each row of all axes but the last: inputs and columns stand before that.
    TurnedBoth,
}

impl Projection {
    /// The raised op.
    pub fn op() -> OpName {
        raised(PROJECTION)
    }

    /// What a raised node says; `None` for any other.
    pub fn of(node: &Node) -> Option<Projection> {
        let raised = is_raised(node, PROJECTION);
        let rows = node.int("rows").and_then(|rows| usize::try_from(rows).ok()).filter(|_| raised)?;
        Some(Projection { rows, flat: node.flag("flat") })
    }

    /// The attributes that say it.
    pub fn attrs(self) -> Attrs {
        let rows = Attr::Int(i64::try_from(self.rows).unwrap_or(i64::MAX));
        let own = [("rows", rows), ("flat", Attr::Int(self.flat.into()))];
        own.into_iter().map(|(name, attr)| (name.to_owned(), attr)).collect()
    }

    /// The orders in which `x` and the result lie in a form, of these shapes: their axes, outermost first. `None` where the form is none
    /// for them.
    ///
    /// Rows of extent 1 are wherever they are, so they stay outermost.
    pub fn orders(self, form: ProjectionForm, x: &[Dim], result: &[Dim]) -> Option<[Vec<usize>; 2]> {
        let (rows, inputs) = (self.rows, x.len().checked_sub(1)?);
        let units = |dims: &[Dim], rows: usize| dims.iter().take(rows).take_while(|d| d.is_one()).count();
        let (of_x, of_result) = (units(x, inputs), units(result, rows));
        let (all_x, all) = ((0..x.len()).collect(), (0..result.len()).collect());
        if rows >= result.len() {
            return None;
        }
        Some(match form {
            ProjectionForm::Apart => {
                let last = result.len() - 1;
                [all_x, (0..of_result).chain(rows..last).chain(of_result..rows).chain([last]).collect()]
            }
            ProjectionForm::TurnedResult if self.flat => {
                [all_x, (0..of_result).chain(rows..result.len()).chain(of_result..rows).collect()]
            }
            ProjectionForm::TurnedOperand if self.flat => {
                [(0..of_x).chain([inputs]).chain(of_x..inputs).collect(), all]
            }
            ProjectionForm::Pixels if x[..inputs] == result[..rows] && IMAGES.contains(&x.len()) => [
                [0, inputs].into_iter().chain(1..inputs).collect(),
                std::iter::once(0).chain(rows..result.len()).chain(1..rows).collect(),
            ],
            ProjectionForm::TurnedBoth if x[..inputs] == result[..rows] && result.len() == rows + 1 && rows > 0 => {
                let order = || (0..rows - 1).chain([rows, rows - 1]).collect();
                [order(), order()]
            }
            _ => return None,
        })
    }
}

/// Ranks of what convolutions read as signals and images.
const IMAGES: std::ops::RangeInclusive<usize> = 3..=4;

impl ProjectionForm {
    /// All of them.
    pub const ALL: [ProjectionForm; 5] = [
        ProjectionForm::Apart,
        ProjectionForm::Pixels,
        ProjectionForm::TurnedResult,
        ProjectionForm::TurnedOperand,
        ProjectionForm::TurnedBoth,
    ];

    /// As the attribute of a kernel.
    pub fn attr(self) -> (String, Attr) {
        (WRITTEN.to_owned(), Attr::String(self.text().into()))
    }

    /// The form that attributes set by a kernel say.
    pub fn of(set: &[(String, Attr)]) -> Option<ProjectionForm> {
        ProjectionForm::ALL.into_iter().find(|form| is_written(set, form.text()))
    }

    fn text(self) -> &'static str {
        match self {
            ProjectionForm::Apart => "apart",
            ProjectionForm::Pixels => "pixels",
            ProjectionForm::TurnedResult => "turned-result",
            ProjectionForm::TurnedOperand => "turned-operand",
            ProjectionForm::TurnedBoth => "turned-both",
        }
    }
}

/// The raised normalization's name, and what says that it is written for channels that stand before pixels.
const LAYER_NORM: &str = "LayerNormalization";
const ACROSS: &str = "across";

/// `LayerNormalization` of the last axis of `[N, L, C]` or `[N, H, W, C]`, float32: its operands and attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerNorm;

impl LayerNorm {
    /// The raised op.
    pub fn op() -> OpName {
        raised(LAYER_NORM)
    }

    /// Whether a node is one.
    pub fn is(node: &Node) -> bool {
        is_raised(node, LAYER_NORM)
    }

    /// Whether operands of this rank have pixels that channels can stand before.
    pub fn has_pixels(rank: usize) -> bool {
        IMAGES.contains(&rank)
    }

    /// The order of the axes, outermost first, with channels before pixels.
    pub fn channels_first(rank: usize) -> Vec<usize> {
        let last = rank.saturating_sub(1);
        [0, last].into_iter().chain(1..last).collect()
    }

    /// The attribute of a kernel that reads and leaves channels before pixels.
    pub fn across() -> (String, Attr) {
        (WRITTEN.to_owned(), Attr::String(ACROSS.into()))
    }

    /// Whether attributes that a kernel sets say so.
    pub fn is_across(set: &[(String, Attr)]) -> bool {
        is_written(set, ACROSS)
    }
}

/// What says that channels lie innermost.
const INNERMOST: &str = "innermost";

/// `x s + t` of operands `x`, `[N, C, ..]`, and `s` and `t`, constants with an entry per channel, all float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelAffine;

impl ChannelAffine {
    /// The name of the raised op.
    pub const NAME: &str = "ChannelAffine";

    /// The raised op.
    pub fn op() -> OpName {
        raised(ChannelAffine::NAME)
    }

    /// Whether a node is one.
    pub fn is(node: &Node) -> bool {
        is_raised(node, ChannelAffine::NAME)
    }

    /// The attribute of a kernel that reads and leaves channels innermost.
    pub fn innermost() -> (String, Attr) {
        (WRITTEN.to_owned(), Attr::String(INNERMOST.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(shape: &[i64]) -> Vec<Dim> {
        shape.iter().map(|&d| Dim::from(d)).collect()
    }

    #[test]
    fn heads_go_before_rows_of_more_than_one() {
        let order = |rows: usize, shape: &[i64]| {
            let [_, order] =
                Projection { rows, flat: true }.orders(ProjectionForm::Apart, &dims(&[7]), &dims(shape))?;
            Some(order)
        };
        assert_eq!(order(2, &[64, 49, 3, 4, 32]), Some(vec![2, 3, 0, 1, 4]));
        assert_eq!(order(2, &[1, 49, 4, 32]), Some(vec![0, 2, 1, 3]));
        assert_eq!(order(1, &[49, 4, 32]), Some(vec![1, 0, 2]));
        assert_eq!(order(2, &[1, 1, 4, 32]), Some(vec![0, 1, 2, 3]));
        assert_eq!(order(2, &[49, 4]), None, "no columns");
    }

    #[test]
    fn what_is_turned_goes_before_rows_of_more_than_one() {
        let of = |form, x: &[i64], y: &[i64], rows| Projection { rows, flat: true }.orders(form, &dims(x), &dims(y));
        let (operand, result) = (ProjectionForm::TurnedOperand, ProjectionForm::TurnedResult);
        assert_eq!(of(result, &[1, 49, 6], &[1, 49, 8], 2), Some([vec![0, 1, 2], vec![0, 2, 1]]));
        assert_eq!(of(result, &[1, 49, 6], &[1, 49, 2, 4], 2), Some([vec![0, 1, 2], vec![0, 2, 3, 1]]));
        assert_eq!(of(result, &[3, 49, 6], &[147, 8], 1), Some([vec![0, 1, 2], vec![1, 0]]));
        assert_eq!(of(operand, &[1, 49, 6], &[1, 49, 8], 2), Some([vec![0, 2, 1], vec![0, 1, 2]]));
        assert_eq!(of(operand, &[3, 49, 6], &[3, 49, 8], 2), Some([vec![2, 0, 1], vec![0, 1, 2]]));
        let apart = Projection { rows: 2, flat: false };
        assert_eq!(apart.orders(operand, &dims(&[3, 49, 6]), &dims(&[3, 49, 8])), None);
    }

    #[test]
    fn both_are_turned_of_equal_rows_at_any_rank() {
        let of = |x: &[i64], y: &[i64], rows| {
            Projection { rows, flat: false }.orders(ProjectionForm::TurnedBoth, &dims(x), &dims(y))
        };
        assert_eq!(of(&[49, 6], &[49, 8], 1), Some([vec![1, 0], vec![1, 0]]));
        assert_eq!(of(&[2, 3, 5, 7, 6], &[2, 3, 5, 7, 8], 4), Some([vec![0, 1, 2, 4, 3], vec![0, 1, 2, 4, 3]]));
        assert_eq!(of(&[3, 49, 6], &[147, 8], 1), None, "rows of the result are others");
        assert_eq!(of(&[49, 6], &[49, 2, 4], 1), None, "heads");
    }

    #[test]
    fn channels_stand_behind_the_first_axis_of_images_and_signals_only() {
        let of = |x: &[i64], y: &[i64], rows| {
            Projection { rows, flat: false }.orders(ProjectionForm::Pixels, &dims(x), &dims(y))
        };
        assert_eq!(of(&[3, 5, 7, 6], &[3, 5, 7, 8], 3), Some([vec![0, 3, 1, 2], vec![0, 3, 1, 2]]));
        assert_eq!(of(&[3, 49, 6], &[3, 49, 2, 4], 2), Some([vec![0, 2, 1], vec![0, 2, 3, 1]]));
        assert_eq!(of(&[49, 6], &[49, 8], 1), None);
        assert_eq!(of(&[2, 3, 5, 7, 6], &[2, 3, 5, 7, 8], 4), None);
        assert_eq!(of(&[3, 49, 6], &[147, 8], 1), None, "rows of the result are others");
        assert_eq!(LayerNorm::channels_first(4), [0, 3, 1, 2]);
    }
}
