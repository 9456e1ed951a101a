//! Ops of the IR alone: what one node or several of ONNX mean together, said as one op so that a target can offer kernels for it.
//!
//! A raised node has the operands that matter and no place in a file. Where no kernel is chosen for it, the nodes that it stands for
//! take its place again before anything is written.

use crate::attr::{Attr, Attrs};
use crate::dim::Dim;
use crate::graph::{Node, Op, OpName};

/// Domain of raised ops.
pub const DOMAIN: &str = "relayout.ir";

/// The attribute of a kernel of [`GroupNorm`] that says what it is written with.
pub const WRITTEN: &str = "written";

const NAME: &str = "GroupNormalization";

fn raised(name: &str) -> OpName {
    OpName { domain: DOMAIN.to_owned(), name: name.to_owned(), overload: String::new() }
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

/// What a kernel of [`GroupNorm`] is written with, for images in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Groups are whole blocks, so their bytes are rows, and an `InstanceNormalization` of rows normalizes them.
    Rows,
    /// Sums per channel, which small ops combine to groups, and a scale and a shift per channel.
    Channels,
}

impl GroupNorm {
    /// The raised op.
    pub fn op() -> OpName {
        raised(NAME)
    }

    /// What a raised node says; `None` for any other.
    pub fn of(node: &Node) -> Option<GroupNorm> {
        let raised = is_raised(node, NAME);
        let epsilon = match node.attrs.get("epsilon") {
            Some(Attr::Float(epsilon)) if raised => *epsilon,
            _ => return None,
        };
        let by_body = node.int("by_body").unwrap_or(0) != 0;
        Some(GroupNorm { groups: node.int("groups").filter(|&g| g > 0)?, epsilon, by_body })
    }

    /// The attributes that say it.
    pub fn attrs(&self) -> Attrs {
        let by_body = Attr::Int(self.by_body.into());
        let own = [("groups", Attr::Int(self.groups)), ("epsilon", Attr::Float(self.epsilon)), ("by_body", by_body)];
        own.into_iter().map(|(name, attr)| (name.to_owned(), attr)).collect()
    }
}

impl Written {
    /// What the kernel that was chosen for a raised node is written with; `None` if none was.
    pub fn of(node: &Node) -> Option<Written> {
        [Written::Rows, Written::Channels].into_iter().find(|w| node.str(WRITTEN) == Some(w.text()))
    }

    /// As an attribute.
    pub fn attr(self) -> (String, Attr) {
        (WRITTEN.to_owned(), Attr::String(self.text().into()))
    }

    fn text(self) -> &'static str {
        match self {
            Written::Rows => "rows",
            Written::Channels => "channels",
        }
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

/// The raised projection's name, and what says that its result is made with heads outermost.
const PROJECTION: &str = "Projection";
const APART: &str = "apart";

/// `x W + b` with its columns apart as heads: operands `x`, `[rows.., inputs]`, `W`, `[inputs, columns]` or `[columns, inputs]`, and perhaps
/// `b`, an entry per column, to `[rows.., heads.., width]`, whose rows may be spelled otherwise than those of `x`. `W` and `b`
/// are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Axes of the result that are rows.
    pub rows: usize,
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
        Some(Projection { rows })
    }

    /// The attributes that say it.
    pub fn attrs(self) -> Attrs {
        let rows = Attr::Int(i64::try_from(self.rows).unwrap_or(i64::MAX));
        std::iter::once(("rows".to_owned(), rows)).collect()
    }

    /// The attribute of a kernel that makes the result with heads outermost: one product per head.
    pub fn apart() -> (String, Attr) {
        (WRITTEN.to_owned(), Attr::String(APART.into()))
    }

    /// Whether attributes that a kernel sets say so.
    pub fn is_apart(set: &[(String, Attr)]) -> bool {
        is_written(set, APART)
    }

    /// The order in which a result of this shape lies that has its heads outermost: its axes, outermost first. Rows of extent 1 are
    /// wherever they are, so they stay before the heads.
    pub fn heads_outermost(self, shape: &[Dim]) -> Vec<usize> {
        let units = shape.iter().take(self.rows).take_while(|d| d.is_one()).count();
        let heads = self.rows..shape.len().saturating_sub(1);
        let last = shape.len().saturating_sub(1).max(self.rows)..shape.len();
        (0..units).chain(heads).chain(units..self.rows.min(shape.len())).chain(last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_go_before_rows_of_more_than_one() {
        let order = |rows: usize, shape: &[i64]| {
            let shape: Vec<Dim> = shape.iter().map(|&d| Dim::from(d)).collect();
            Projection { rows }.heads_outermost(&shape)
        };
        assert_eq!(order(2, &[64, 49, 3, 4, 32]), [2, 3, 0, 1, 4]);
        assert_eq!(order(2, &[1, 49, 4, 32]), [0, 2, 1, 3]);
        assert_eq!(order(1, &[49, 4, 32]), [1, 0, 2]);
        assert_eq!(order(2, &[1, 1, 4, 32]), [0, 1, 2, 3]);
    }
}
