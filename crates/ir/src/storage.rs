//! Storage shapes: the shape with which a value of some layout is written to a file.

mod image;

pub use image::{ImageAxes, axes_in_runs, blocked_axes, blocked_image, image_in_runs};

use crate::dim::Dim;
use crate::layout::{Factor, Layout};
use serde::{Deserialize, Serialize};

/// How a dialect declares values whose axes are split or padded. Orders of whole axes are declared alike in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageRule {
    /// One dim per digit, outermost first: `NCHW16c` has rank 5.
    #[default]
    PerDigit,
    /// One dim per logical axis, in the order of their outermost digits, with its slots: `NCHW16c` is `[N, C, H, W]` with C
    /// rounded up, and only the kernels know that its bytes lie in blocks.
    PerAxis,
}

impl StorageRule {
    /// Whether this is the rule where nothing else is said.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
    pub(crate) fn is_default(&self) -> bool {
        *self == StorageRule::default()
    }

    /// Its name in the text of a graph.
    pub fn name(self) -> &'static str {
        match self {
            StorageRule::PerDigit => "per-digit",
            StorageRule::PerAxis => "per-axis",
        }
    }

    /// The rule of this name.
    pub fn named(name: &str) -> Option<StorageRule> {
        [StorageRule::PerDigit, StorageRule::PerAxis].into_iter().find(|rule| rule.name() == name)
    }
}

/// The shape in which a value of this logical shape and layout is declared. `None` where the layout is of another rank, or
/// splits or pads a symbolic axis.
pub fn storage_shape(shape: &[Dim], layout: &Layout, rule: StorageRule) -> Option<Vec<Dim>> {
    if layout.rank() != shape.len() {
        return None;
    }
    if let Some(order) = layout.as_permutation() {
        return order.iter().map(|&axis| shape.get(axis).cloned()).collect();
    }
    match rule {
        StorageRule::PerDigit => layout.factors().iter().map(|f| digit_extent(shape, layout, f)).collect(),
        StorageRule::PerAxis => outermost(layout)
            .into_iter()
            .map(|axis| {
                let whole = layout.block_of(axis) == 1 && layout.slot_map(axis).is_none();
                if whole { shape.get(axis).cloned() } else { slots(shape, layout, axis).map(Dim::from) }
            })
            .collect(),
    }
}

/// Values of a digit.
fn digit_extent(shape: &[Dim], layout: &Layout, factor: &Factor) -> Option<Dim> {
    let axis = usize::from(factor.axis);
    match factor.modulo {
        Some(modulo) => i64::try_from(modulo).ok().map(Dim::from),
        None if factor.is_whole() && layout.slot_map(axis).is_none() => shape.get(axis).cloned(),
        None => Some(Dim::from(slots(shape, layout, axis)? / i64::try_from(factor.div).ok()?)),
    }
}

/// Slots of an axis of known extent, a whole number of blocks.
fn slots(shape: &[Dim], layout: &Layout, axis: usize) -> Option<i64> {
    let extent = u64::try_from(shape.get(axis)?.as_const()?).ok()?;
    let used = match layout.slot_map(axis) {
        Some(segments) => segments.iter().map(|s| s.slots).sum::<u64>(),
        None => extent,
    };
    i64::try_from(used.checked_next_multiple_of(layout.block_of(axis))?).ok()
}

/// The target of an ONNX Reshape from one storage shape to another with the same elements: numbers, at most one -1, and 0
/// where a symbolic extent stays at its place. `None` where the target can't be said so.
pub fn reshape_target(from: &[Dim], to: &[Dim]) -> Option<Vec<i64>> {
    if to.iter().any(|d| d.as_const() == Some(0)) {
        return None;
    }
    let mut open = false;
    to.iter()
        .enumerate()
        .map(|(i, d)| match d.as_const() {
            Some(n) => Some(n),
            None if from.get(i) == Some(d) => Some(0),
            None if open => None,
            None => {
                open = true;
                Some(-1)
            }
        })
        .collect()
}

/// How a file says that bytes are read with another shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restated {
    /// A Reshape to this target: numbers, at most one -1, and 0 where a symbolic extent stays at its place.
    Reshape(Vec<i64>),
    /// A Squeeze of these axes of the operand, each of extent 1. Nothing of the others has to be known.
    Squeeze(Vec<i64>),
    /// An Unsqueeze at these axes of the result.
    Unsqueeze(Vec<i64>),
    /// A Reshape to a target that is made of the operand's shape when the model runs.
    Computed(Vec<TargetExtent>),
}

/// An extent of a Reshape's target that is made when the model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetExtent {
    /// This number, which is not negative.
    Number(i64),
    /// The extent of this axis of the operand.
    Of(usize),
    /// What is left. One of a target at most.
    Rest,
}

impl Restated {
    /// The nodes that a file needs for it.
    pub fn nodes(&self) -> usize {
        match self {
            Restated::Reshape(_) | Restated::Squeeze(_) | Restated::Unsqueeze(_) => 1,
            // Shape and Gather make the target, and a Concat puts the numbers of the file beside the extents.
            Restated::Computed(target) => 3 + usize::from(target.iter().any(|e| !matches!(e, TargetExtent::Of(_)))),
        }
    }
}

/// How a file says that what is stored with shape `from` is read with shape `to`, of as many elements; `None` where no op can say it.
pub fn restated(from: &[Dim], to: &[Dim]) -> Option<Restated> {
    let target = reshape_target(from, to);
    let sure = target.as_deref().is_some_and(finds_all);
    let reshape = target.map(Restated::Reshape);
    let ones = || {
        let squeeze = ones_between(from, to).map(Restated::Squeeze);
        squeeze.or_else(|| ones_between(to, from).map(Restated::Unsqueeze))
    };
    if sure { reshape } else { ones().or(reshape).or_else(|| computed(from, to).map(Restated::Computed)) }
}

/// The target of a Reshape whose extents of unknown size are those of the operand, wherever they stand there, and one at most that is
/// what is left.
fn computed(from: &[Dim], to: &[Dim]) -> Option<Vec<TargetExtent>> {
    let mut rest = false;
    to.iter()
        .map(|dim| match dim.as_const() {
            Some(0) => None,
            Some(n) => Some(TargetExtent::Number(n)),
            None => match from.iter().position(|other| other == dim) {
                Some(axis) => Some(TargetExtent::Of(axis)),
                None if std::mem::replace(&mut rest, true) => None,
                None => Some(TargetExtent::Rest),
            },
        })
        .collect()
}

/// Whether a Reshape to this target finds every extent, whatever the sizes are: beside one that is copied and is 0 once, of a Loop that ran
/// no rounds for example, none can be found by what is left.
pub fn finds_all(target: &[i64]) -> bool {
    !(target.contains(&0) && target.contains(&-1))
}

/// The axes of extent 1 without which the longer shape is the shorter one.
fn ones_between(longer: &[Dim], shorter: &[Dim]) -> Option<Vec<i64>> {
    let mut axes = Vec::new();
    let mut rest = shorter.iter().peekable();
    for (axis, dim) in longer.iter().enumerate() {
        if rest.next_if_eq(&dim).is_none() {
            if !dim.is_one() {
                return None;
            }
            axes.push(i64::try_from(axis).ok()?);
        }
    }
    rest.next().is_none().then_some(axes)
}

/// Whether going from layout `a` to `b` leaves every byte where it is for this shape: they differ in axes of extent 1 only.
pub fn same_bytes(a: &Layout, b: &Layout, shape: &[Dim]) -> bool {
    a == b || same_order(a, b, shape).unwrap_or_else(|| a.equivalent(b, shape))
}

/// The same of two orders of whole axes, which most layouts are: one order of the axes of more than one element. `None` of others,
/// and of values that may be empty.
fn same_order(a: &Layout, b: &Layout, shape: &[Dim]) -> Option<bool> {
    let (a, b) = (a.as_permutation()?, b.as_permutation()?);
    let some = shape.iter().all(|d| d.as_const().is_some_and(|d| d > 0));
    if !some || a.len() != shape.len() || b.len() != shape.len() {
        return None;
    }
    let long = |axis: &&usize| !shape[**axis].is_one();
    Some(a.iter().filter(long).eq(b.iter().filter(long)))
}

/// Place of each logical axis in a storage shape: that of its outermost digit.
pub fn places(layout: &Layout, rule: StorageRule) -> Option<Vec<usize>> {
    let own = |f: &&Factor| rule == StorageRule::PerDigit || f.modulo.is_none();
    let place = |axis: usize| {
        layout.factors().iter().filter(own).position(|f| usize::from(f.axis) == axis && f.modulo.is_none())
    };
    (0..layout.rank()).map(place).collect()
}

/// How a volume lies that is in blocks of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedVolume {
    /// Where its axes `[n, c, d, h, w]` stand.
    pub axes: [usize; 5],
    /// Channels of a block.
    pub block: u64,
    /// Whether its frames lie one after another, `n d c/b h w c%b`, each a blocked image; else `n c/b d h w c%b`.
    pub by_frame: bool,
}

/// How a volume in blocks of its channels lies; `None` for other layouts.
pub fn blocked_volume(layout: &Layout) -> Option<BlockedVolume> {
    let order: [usize; 5] = outermost(layout).try_into().ok()?;
    let last = layout.factors().last()?;
    let channels = usize::from(last.axis);
    let block = layout.block_of(channels);
    let one_split = layout.factors().len() == 6 && last.modulo == Some(block) && block > 1;
    let [n, a, b, h, w] = order;
    let by_frame = channels == b;
    let axes = if by_frame { [n, b, a, h, w] } else { order };
    let plain = (0..5).all(|axis| layout.slot_map(axis).is_none());
    (one_split && plain && (by_frame || channels == a)).then_some(BlockedVolume { axes, block, by_frame })
}

/// Logical axes in the order of their outermost digits, outermost first.
pub fn outermost(layout: &Layout) -> Vec<usize> {
    layout.factors().iter().filter(|f| f.modulo.is_none()).map(|f| usize::from(f.axis)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(text: &[&str]) -> Vec<Dim> {
        text.iter().map(|t| t.parse().unwrap()).collect()
    }

    #[test]
    fn blocked_values_are_declared_by_digit_or_by_axis() {
        let blocked: Layout = "NCHW16c".parse().unwrap();
        let shape = dims(&["N", "20", "H", "7"]);
        let per = |rule| storage_shape(&shape, &blocked, rule);
        assert_eq!(per(StorageRule::PerDigit), Some(dims(&["N", "2", "H", "7", "16"])));
        assert_eq!(per(StorageRule::PerAxis), Some(dims(&["N", "32", "H", "7"])));
        assert_eq!(storage_shape(&dims(&["1", "C", "7", "7"]), &blocked, StorageRule::PerAxis), None);
        let renamed = blocked.transpose(&[0, 2, 3, 1]).unwrap();
        let last = dims(&["N", "H", "7", "20"]);
        assert_eq!(storage_shape(&last, &renamed, StorageRule::PerAxis), Some(dims(&["N", "32", "H", "7"])));
        assert_eq!(places(&renamed, StorageRule::PerAxis), Some(vec![0, 2, 3, 1]));
        let padded: Layout = "N H W C[20:24]".parse().unwrap();
        assert_eq!(storage_shape(&shape, &padded, StorageRule::PerDigit), Some(dims(&["N", "H", "7", "24"])));
    }

    #[test]
    fn a_volume_lies_frame_by_frame_or_block_by_block() {
        let of = |text: &str| blocked_volume(&text.parse().unwrap()).map(|v| (v.axes, v.block, v.by_frame));
        assert_eq!(of("a c b/16 d e b%16"), Some(([0, 1, 2, 3, 4], 16, true)));
        assert_eq!(of("a b/8 c d e b%8"), Some(([0, 1, 2, 3, 4], 8, false)));
        // As a Transpose of channels-last origin names the axes.
        assert_eq!(of("a b e/16 c d e%16"), Some(([0, 4, 1, 2, 3], 16, true)));
        for other in ["a c b d e", "a b c d/16 e d%16", "a b/16 c d b%16 e", "a b/16 c d b%16"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn orders_of_whole_axes_are_compared_as_any_layouts_are() {
        let orders = [[0, 1, 2, 3], [0, 2, 3, 1], [1, 0, 2, 3], [2, 3, 0, 1], [3, 2, 1, 0]];
        let layouts = orders.map(|order| Layout::permutation(&order).unwrap());
        for shape in [
            ["2", "3", "4", "5"],
            ["1", "3", "1", "5"],
            ["2", "1", "1", "1"],
            ["1", "1", "1", "1"],
            ["2", "3", "1", "5"],
        ] {
            let shape = dims(&shape);
            for (a, b) in layouts.iter().flat_map(|a| layouts.iter().map(move |b| (a, b))) {
                assert_eq!(same_order(a, b, &shape), Some(a.equivalent(b, &shape)), "{a} {b} {shape:?}");
            }
        }
        assert_eq!(same_order(&layouts[0], &layouts[1], &dims(&["N", "1", "4", "5"])), None);
    }

    #[test]
    fn axes_of_one_element_go_and_come_by_name_where_an_extent_could_be_none() {
        let said = |from: &[&str], to: &[&str]| restated(&dims(from), &dims(to));
        assert_eq!(said(&["N", "4", "1"], &["N", "4"]), Some(Restated::Reshape(vec![0, 4])));
        assert_eq!(said(&["N", "1", "H"], &["N", "H"]), Some(Restated::Squeeze(vec![1])));
        assert_eq!(said(&["N", "H"], &["N", "1", "H"]), Some(Restated::Unsqueeze(vec![1])));
        assert_eq!(said(&["N", "2", "H"], &["N", "2*H"]), Some(Restated::Reshape(vec![0, -1])));
        let turned = vec![TargetExtent::Rest, TargetExtent::Number(4), TargetExtent::Of(3)];
        assert_eq!(said(&["N", "2", "4", "S"], &["2*N", "4", "S"]), Some(Restated::Computed(turned)));
        assert_eq!(said(&["N", "2", "S", "T"], &["2*N", "S*T"]), None, "two that nobody knows");
    }

    #[test]
    fn a_reshape_says_symbols_by_their_place_or_once() {
        assert_eq!(reshape_target(&dims(&["N", "4"]), &dims(&["N", "2", "2"])), Some(vec![0, 2, 2]));
        assert_eq!(reshape_target(&dims(&["4", "N"]), &dims(&["N", "4"])), Some(vec![-1, 4]));
        assert_eq!(reshape_target(&dims(&["H", "N"]), &dims(&["N", "H"])), None);
        assert_eq!(reshape_target(&dims(&["0", "N"]), &dims(&["N", "0"])), None);
    }
}
