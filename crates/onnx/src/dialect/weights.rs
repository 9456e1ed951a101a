//! The layout of weights that goes with a layout of features.

use super::spell::Letters;
use super::table;
use relayout_ir::layout::{Factor, Layout};

/// The layout in which a convolution's weights are usually stored where its features are stored as `features`; a function's
/// name does not mention weights that are stored so. Blocks of channels inside of everything go with blocks of both channels
/// of the weights (`NCHW16c`: `OIHW16i16o`); otherwise weights have the order of the features, output channels in the place
/// of N and input channels in that of C (`NHWC`: `OHWI`, `CHWN4`: `I/4 H W O I%4`). `None` for ops without such weights.
pub fn canonical_weight(op: &str, features: &Layout) -> Option<Layout> {
    let (_, last) = table::opsets(op)?;
    let slots = table::entry(op, last)?.inputs;
    let letters = slots.iter().filter_map(|s| s.letters);
    let transposed = letters.clone().any(|l| l == Letters::TransposedWeights);
    if !transposed && !letters.clone().any(|l| l == Letters::Weights) {
        return None;
    }
    if features.is_row_major() {
        return Some(Layout::row_major(features.rank()));
    }
    let (output, input) = if transposed { (1, 0) } else { (0, 1) };
    let place = |axis: u8| match axis {
        0 => output,
        1 => input,
        other => other,
    };
    let mut factors: Vec<Factor> = Vec::new();
    let block = inner_block(features);
    for factor in features.factors() {
        factors.push(match (factor.axis, block) {
            (0, Some(block)) => Factor::outer(output, block),
            (axis, _) => Factor { axis: place(axis), ..*factor },
        });
    }
    factors.extend(block.map(|block| Factor::inner(output, 1, block)));
    Layout::new(features.rank(), factors, []).ok()
}

/// The block of `N C/block .. C%block`, whose other axes are whole and in order.
fn inner_block(features: &Layout) -> Option<u64> {
    let (last, outer) = features.factors().split_last()?;
    let block = last.modulo.filter(|_| last.axis == 1 && last.div == 1)?;
    let ordered = outer.iter().enumerate().all(|(at, factor)| {
        let axis = u8::try_from(at).unwrap_or(u8::MAX);
        *factor == if axis == 1 { Factor::outer(1, block) } else { Factor::whole(axis) }
    });
    ordered.then_some(block)
}
