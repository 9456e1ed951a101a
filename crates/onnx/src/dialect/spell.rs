//! How layouts are spelled in the names of functions: letters and digits only.
//!
//! A capital is the outermost digit of its axis, a number and a small letter a block, in storage order: `NHWC`, `NCHW16c`,
//! `OIHW16i16o`; the layouts that have other names keep them (`CHWN4`). A block whose finer blocks are not all to its right
//! says between two `x` how many slots one step of it spans.

use super::DialectError;
use relayout_ir::layout::{Factor, Layout, LayoutNames};
use std::fmt::Write as _;

/// Whose axes these are: which letters they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letters {
    /// `NCHW` and its like.
    Features,
    /// `OIHW` and its like.
    Weights,
    /// `IOHW` and its like: the weights of a transposed convolution.
    TransposedWeights,
    /// `MK`, `KN`: rows and columns; `A`, `B`, .. at other ranks.
    Matrix(&'static str),
    /// `C`: one number per channel.
    Channels,
    /// `A`, `B`, ..
    Neutral,
}

impl Letters {
    /// The letters of a rank, in logical order.
    fn of(self, rank: usize) -> Option<String> {
        let spatial = ["", "W", "HW", "DHW"];
        let family = |head: &str| {
            let tail = rank.checked_sub(2).and_then(|n| spatial.get(n));
            tail.filter(|tail| !tail.is_empty()).map(|tail| format!("{head}{tail}"))
        };
        let named = match self {
            Letters::Features => family("NC"),
            Letters::Weights => family("OI"),
            Letters::TransposedWeights => family("IO"),
            Letters::Matrix(letters) if letters.len() == rank => Some(letters.to_owned()),
            Letters::Channels if rank == 1 => Some("C".to_owned()),
            _ => None,
        };
        named.or_else(|| (rank <= 26).then(|| ('A'..='Z').take(rank).collect()))
    }
}

/// The spelling of a layout, which says nothing of slot maps. No two layouts of a rank have the same.
pub(super) fn spell(layout: &Layout, letters: Letters) -> Result<String, DialectError> {
    let refuse = |why: &str| DialectError::Layout { layout: layout.to_string(), why: why.to_owned() };
    let word = letters.of(layout.rank()).ok_or_else(|| refuse("it has more than 26 axes"))?;
    let bare = super::digits::bare(layout).ok_or_else(|| refuse("its digits spell no axis"))?;
    let known = LayoutNames::custom(&word).map(|names| bare.display(&names).to_string());
    if let Some(known) = known.filter(|text| text.chars().all(|c| c.is_ascii_alphanumeric())) {
        return Ok(known);
    }
    let mut text = String::new();
    for (at, factor) in bare.factors().iter().enumerate() {
        let letter = word.chars().nth(usize::from(factor.axis)).unwrap_or('?');
        match factor.modulo {
            None => text.push(letter),
            Some(modulo) => {
                let _ = write!(text, "{modulo}{}", letter.to_ascii_lowercase());
                if !finer_to_the_right(bare.factors(), at, *factor) {
                    let _ = write!(text, "x{}x", factor.div);
                }
            }
        }
    }
    Ok(text)
}

/// The letter of an axis.
pub(super) fn letter(letters: Letters, rank: usize, axis: usize) -> char {
    letters.of(rank).and_then(|word| word.chars().nth(axis)).unwrap_or('?')
}

/// Whether the blocks of the axis to the right of `factor` span what one step of it spans.
fn finer_to_the_right(factors: &[Factor], at: usize, factor: Factor) -> bool {
    let finer = factors.iter().skip(at + 1).filter(|f| f.axis == factor.axis);
    finer.filter_map(|f| f.modulo).try_fold(1u64, u64::checked_mul) == Some(factor.div)
}
