//! Ops of the IR alone: what one node or several of ONNX mean together, said as one op so that a target can offer kernels for it.
//!
//! A raised node has the operands that matter and no place in a file. Where no kernel is chosen for it, the nodes that it stands for
//! take its place again before anything is written.

use crate::attr::{Attr, Attrs};
use crate::graph::{Node, Op, OpName};

/// Domain of raised ops.
pub const DOMAIN: &str = "relayout.ir";

/// The attribute of a kernel of [`GroupNorm`] that says what it is written with.
pub const WRITTEN: &str = "written";

const NAME: &str = "GroupNormalization";

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
        OpName { domain: DOMAIN.to_owned(), name: NAME.to_owned(), overload: String::new() }
    }

    /// What a raised node says; `None` for any other.
    pub fn of(node: &Node) -> Option<GroupNorm> {
        let raised = matches!(&node.op, Op::Onnx(op) if op.domain == DOMAIN && op.name == NAME);
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
        OpName { domain: DOMAIN.to_owned(), name: ATTENTION.to_owned(), overload: String::new() }
    }

    /// What a raised node says; `None` for any other.
    pub fn of(node: &Node) -> Option<Attention> {
        let raised = matches!(&node.op, Op::Onnx(op) if op.domain == DOMAIN && op.name == ATTENTION);
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
        let says = |attr: &Attr| matches!(attr, Attr::String(text) if text[..] == *WHOLE.as_bytes());
        set.iter().any(|(name, attr)| name == WRITTEN && says(attr))
    }
}
