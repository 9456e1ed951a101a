//! A permutation of rows as a gather: a list that says which row of the source each row of the destination is.
//!
//! A channel shuffle, `[N, g, c, H, W]` by `(0, 2, 1, 3, 4)`, moves whole channels. Said as strides it is loops over groups and
//! channels; said as a gather (`index_select` along the channels) it is a list of `g * c` numbers that holds for every image, and
//! the destination is written from its first byte to its last. Both say the same; [`crate::RowForm`] is the choice.

use serde::{Deserialize, Serialize};

use crate::{Class, Plan};

/// Rows of more lists than this are not worth a list: the strides say it in a few numbers.
const MOST_ROWS: usize = 1 << 20;

/// Which row of the source each row of the destination is, the same in each of `batch` blocks.
///
/// Invariant: `index` names each of its places once.
///
/// ```
/// use relayout_codegen::{Gather, plan};
/// // A channel shuffle of 2 groups of 3 channels, of images of 4 by 4 floats: whole channels change places.
/// let shuffle = plan(&[8, 2, 3, 4, 4], &[0, 2, 1, 3, 4], 4).unwrap();
/// let gather = Gather::of(&shuffle).unwrap();
/// assert_eq!((gather.batch, gather.row_bytes), (8, 64));
/// assert_eq!(gather.index, [0, 3, 1, 4, 2, 5]);
/// // Single elements that change places are no rows.
/// assert_eq!(Gather::of(&plan(&[64, 64], &[1, 0], 4).unwrap()), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Gather {
    /// Blocks, one after the other on both sides.
    pub batch: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Row `i` of a block of the destination is row `index[i]` of the same block of the source.
    pub index: Vec<u32>,
}

impl Gather {
    /// The gather that a plan is, if it moves rows and they are few enough to be listed.
    #[must_use]
    pub fn of(plan: &Plan) -> Option<Self> {
        let Class::Rows { row_bytes } = plan.class() else { return None };
        // A row that is the unit has no axis any more; else it is the innermost on both sides.
        let mut axes = plan.axes();
        if plan.unit_bytes() != row_bytes {
            axes.pop();
        }
        let row_units = row_bytes / plan.unit_bytes();
        let batch = match axes.first() {
            Some(first) if first.from == first.to => axes.remove(0).extent,
            _ => 1,
        };
        let rows: usize = axes.iter().map(|axis| axis.extent).product();
        if rows > MOST_ROWS {
            return None;
        }
        let source = |row: usize| {
            let mut rest = row;
            let from = axes.iter().rev().fold(0, |from, axis| {
                let digit = rest % axis.extent;
                rest /= axis.extent;
                from + digit * axis.from
            });
            u32::try_from(from / row_units).ok()
        };
        let index = (0..rows).map(source).collect::<Option<Vec<u32>>>()?;
        Some(Self { batch, row_bytes, index })
    }
}

#[cfg(test)]
mod tests {
    use super::Gather;
    use crate::plan;

    fn gather(shape: &[usize], perm: &[usize], elem_bytes: usize) -> Option<Gather> {
        Gather::of(&plan(shape, perm, elem_bytes).expect("a permutation"))
    }

    #[test]
    fn a_channel_shuffle_is_a_gather_of_channels() {
        let shuffle = gather(&[5, 2, 3, 7, 7], &[0, 2, 1, 3, 4], 4).expect("rows");
        assert_eq!((shuffle.batch, shuffle.row_bytes), (5, 196));
        assert_eq!(shuffle.index, [0, 3, 1, 4, 2, 5]);
        // A row that is the unit of the plan, and no batch.
        let heads = gather(&[3, 2, 16], &[1, 0, 2], 4).expect("rows");
        assert_eq!((heads.batch, heads.row_bytes, heads.index), (1, 64, vec![0, 2, 4, 1, 3, 5]));
    }

    #[test]
    fn what_moves_no_rows_is_no_gather() {
        assert_eq!(gather(&[3, 5], &[1, 0], 4), None);
        assert_eq!(gather(&[3, 5], &[0, 1], 4), None);
        assert_eq!(gather(&[0], &[0], 4), None);
        assert_eq!(gather(&[2, 1 << 20, 16], &[1, 0, 2], 4), None, "more rows than a list is for");
    }
}
