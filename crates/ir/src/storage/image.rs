//! Images in blocks of their channels, and signals, `[N, C, L]`, which are images of one row.

use super::outermost;
use crate::layout::{Factor, Layout};

/// Where the axes of an image stand, or those of a signal: an image of one row, for which there is no axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageAxes {
    /// The images of a batch.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Rows; `None` in a signal.
    pub h: Option<usize>,
    /// Columns.
    pub w: usize,
}

impl ImageAxes {
    /// In models of channels-first and of channels-last origin: images, then signals.
    pub const ORIGINS: [ImageAxes; 4] = [
        ImageAxes { n: 0, c: 1, h: Some(2), w: 3 },
        ImageAxes { n: 0, c: 3, h: Some(1), w: 2 },
        ImageAxes { n: 0, c: 1, h: None, w: 2 },
        ImageAxes { n: 0, c: 2, h: None, w: 1 },
    ];

    /// Those of [`ORIGINS`](ImageAxes::ORIGINS) that are of images.
    pub fn of_images() -> impl Iterator<Item = ImageAxes> {
        ImageAxes::ORIGINS.into_iter().filter(|axes| axes.h.is_some())
    }

    /// The axes of a model of channels-first origin; `None` where this is the rank of neither.
    pub fn channels_first(rank: usize) -> Option<ImageAxes> {
        ImageAxes::ORIGINS.into_iter().find(|axes| axes.rank() == rank && axes.c == 1)
    }

    /// How many there are.
    pub fn rank(self) -> usize {
        3 + usize::from(self.h.is_some())
    }

    /// N C H W.
    pub fn first(self) -> Vec<usize> {
        [Some(self.n), Some(self.c), self.h, Some(self.w)].into_iter().flatten().collect()
    }

    /// N H W C.
    pub fn last(self) -> Vec<usize> {
        [Some(self.n), self.h, Some(self.w), Some(self.c)].into_iter().flatten().collect()
    }

    /// Rows and columns.
    pub fn spatial(self) -> Vec<usize> {
        [self.h, Some(self.w)].into_iter().flatten().collect()
    }

    /// Extents `[n, c, h, w]` of a value of this shape.
    pub fn extents(self, shape: &[u64]) -> Option<[u64; 4]> {
        let of = |axis: usize| shape.get(axis).copied();
        let extents = [of(self.n)?, of(self.c)?, self.h.map_or(Some(1), of)?, of(self.w)?];
        (shape.len() == self.rank()).then_some(extents)
    }

    /// `n c/b h w c%b`.
    pub fn blocked(self, block: u64) -> Layout {
        let (order, c) = (self.first(), self.c as u8);
        let digit = |&axis: &usize| if axis == self.c { Factor::outer(c, block) } else { Factor::whole(axis as u8) };
        let digits = order.iter().map(digit).chain([Factor::inner(c, 1, block)]);
        Layout::new(order.len(), digits, []).unwrap_or_else(|_| Layout::row_major(order.len()))
    }
}

/// The axes and the block of an image or a signal in blocks of its channels, `n c/b h w c%b`; `None` for other layouts.
pub fn blocked_axes(layout: &Layout) -> Option<(ImageAxes, u64)> {
    axes_in_runs(layout).filter(|(axes, _)| layout.slot_map(axes.c).is_none())
}

/// The axes and the block of an image or a signal whose channels may have pad slots anywhere among them, as what was concatenated has them.
pub fn axes_in_runs(layout: &Layout) -> Option<(ImageAxes, u64)> {
    let axes = match outermost(layout)[..] {
        [n, c, h, w] => ImageAxes { n, c, h: Some(h), w },
        [n, c, w] => ImageAxes { n, c, h: None, w },
        _ => return None,
    };
    let last = layout.factors().last()?;
    let block = layout.block_of(axes.c);
    let one_split = layout.factors().len() == axes.rank() + 1
        && usize::from(last.axis) == axes.c
        && last.modulo == Some(block)
        && block > 1;
    let padded = |axis: usize| axis != axes.c && layout.slot_map(axis).is_some();
    (one_split && !(0..axes.rank()).any(padded)).then_some((axes, block))
}

/// The axes `[n, c, h, w]` and the block of an image in blocks of its channels, which is no signal.
pub fn blocked_image(layout: &Layout) -> Option<([usize; 4], u64)> {
    image_in_runs(layout).filter(|(axes, _)| layout.slot_map(axes[1]).is_none())
}

/// The axes `[n, c, h, w]` and the block of an image whose channels may have pad slots anywhere among them.
pub fn image_in_runs(layout: &Layout) -> Option<([usize; 4], u64)> {
    let (ImageAxes { n, c, h, w }, block) = axes_in_runs(layout)?;
    Some(([n, c, h?, w], block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_an_image_without_an_axis_for_rows() {
        let of = |text: &str| blocked_axes(&text.parse().unwrap()).map(|(axes, block)| (axes.first(), axes.h, block));
        assert_eq!(of("a b/16 c d b%16"), Some((vec![0, 1, 2, 3], Some(2), 16)));
        assert_eq!(of("a b/8 c b%8"), Some((vec![0, 1, 2], None, 8)));
        assert_eq!(of("a c/16 b c%16"), Some((vec![0, 2, 1], None, 16)));
        for other in ["a b c", "a b c/16 c%16", "a/16 b c a%16", "a b/16 c d e b%16", "a b/16 c/2 b%16 c%2"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(blocked_image(&"a b/8 c b%8".parse().unwrap()), None);
        for axes in ImageAxes::ORIGINS {
            assert_eq!(blocked_axes(&axes.blocked(8)), Some((axes, 8)));
        }
        assert_eq!(ImageAxes::channels_first(3).and_then(|axes| axes.extents(&[2, 5, 7])), Some([2, 5, 1, 7]));
    }
}
