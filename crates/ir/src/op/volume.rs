//! Windows over volumes, `[N, C, D, H, W]`, taken apart: what an op does along the frames D, and what it does in each image.
//!
//! A convolution or a maximum over frames reads, for each frame that it leaves, some of those that it is given. Which ones is
//! known here, so that the rest can be said of images.

use super::read::{Window, windows};
use crate::dim::Dim;
use crate::graph::{Graph, Node, ValueId};

/// Most pairs of a frame and a tap that are looked at: more is no video, and a list of them would be no small constant.
const MOST: usize = 1 << 16;

/// What a Conv or a pool of volumes does along the frames and within an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Frames of the operand.
    pub frames: usize,
    /// Frames of the result.
    pub left: usize,
    /// Frames that one of the result reads, those of the padding among them.
    pub taps: usize,
    /// Frames of padding before the first.
    before: usize,
    stride: usize,
    dilation: usize,
    /// What it does in an image.
    pub image: ImageWindows,
}

/// Windows over rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageWindows {
    /// Rows and columns of the kernel.
    pub kernel: [i64; 2],
    /// Strides along them.
    pub strides: [i64; 2],
    /// Dilations along them.
    pub dilations: [i64; 2],
    /// Padding before rows and columns, then behind them.
    pub pads: [i64; 4],
}

impl ImageWindows {
    /// Whether each window is one pixel, and every pixel has one.
    pub fn is_pixel(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0; 4]
    }
}

/// How a convolution of volumes is said of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// A frame of the result reads the frame of its number: the images are those of a batch.
    Each,
    /// All frames of a volume are channels of one image, and so are those of its result: where a kernel is longer than the volume,
    /// which is then read without its padding.
    Joined,
    /// The frames that one of the result reads are put side by side, and are channels of one image.
    Gathered,
    /// Each frame is an image by itself, and one of the result is the sum of what its taps make of those that it reads.
    Apart,
}

impl Volume {
    /// The windows of a node whose first operand and result are volumes of known frames; `None` for what is none, has its padding
    /// left to the runtime, or cuts frames or images off with a negative one.
    pub fn recognize(graph: &Graph, node: &Node) -> Option<Volume> {
        let shape = |v: Option<ValueId>| graph.value(v?).ty.shape();
        let (x, y) = (shape(node.operand(0))?, shape(node.result(0))?);
        let [along, rows, columns] = <[Window; 3]>::try_from(windows(graph, node).ok()?).ok()?;
        if x.len() != 5 || y.len() != 5 {
            return None;
        }
        let pads = |w: &Window| w.padding().filter(|&(before, after)| before >= 0 && after >= 0);
        let (before, _) = pads(&along)?;
        let (of_rows, of_columns) = (pads(&rows)?, pads(&columns)?);
        let extent = |dims: &[Dim]| usize::try_from(dims.get(2)?.as_const()?).ok().filter(|&n| n > 0);
        let count = |n: i64| usize::try_from(n).ok();
        let (frames, left, taps) = (extent(x)?, extent(y)?, count(along.kernel?)?);
        (frames.max(left).checked_mul(taps)? <= MOST).then_some(())?;
        Some(Volume {
            frames,
            left,
            taps,
            before: count(before)?,
            stride: count(along.stride)?,
            dilation: count(along.dilation)?,
            image: ImageWindows {
                kernel: [rows.kernel?, columns.kernel?],
                strides: [rows.stride, columns.stride],
                dilations: [rows.dilation, columns.dilation],
                pads: [of_rows.0, of_columns.0, of_rows.1, of_columns.1],
            },
        })
    }

    /// The frame that a frame of the result reads with a tap; `None` where that is padding.
    pub fn frame(&self, left: usize, tap: usize) -> Option<usize> {
        let reached = left.checked_mul(self.stride)?.checked_add(tap.checked_mul(self.dilation)?)?;
        reached.checked_sub(self.before).filter(|&frame| frame < self.frames)
    }

    /// The tap with which a frame of the result reads a frame, if it does.
    pub fn tap(&self, left: usize, frame: usize) -> Option<usize> {
        (0..self.taps).find(|&tap| self.frame(left, tap) == Some(frame))
    }

    /// Whether a frame of padding is read.
    pub fn reads_padding(&self) -> bool {
        (0..self.left).any(|left| (0..self.taps).any(|tap| self.frame(left, tap).is_none()))
    }

    /// Whether each frame of the result reads one that is no padding.
    pub fn reads_everywhere(&self) -> bool {
        (0..self.left).all(|left| (0..self.taps).any(|tap| self.frame(left, tap).is_some()))
    }

    /// How many pairs there are of a frame of the result and one that it reads, padding not counted.
    pub fn pairs(&self) -> usize {
        (0..self.left).map(|left| (0..self.taps).filter(|&tap| self.frame(left, tap).is_some()).count()).sum()
    }

    /// How it is said of images with the fewest nodes: not of frames that are apart.
    pub fn as_images(&self) -> Frames {
        if self.taps == 1 && self.left == self.frames && (0..self.left).all(|left| self.frame(left, 0) == Some(left)) {
            Frames::Each
        } else if self.frames < self.taps || (self.frames == self.taps && self.left == 1) {
            Frames::Joined
        } else {
            Frames::Gathered
        }
    }

    /// Stride, dilation, and padding before and behind along the frames, as a window over an axis has them; the padding behind is as
    /// much as is read.
    pub fn along_frames(&self) -> [i64; 4] {
        let last = self.left.saturating_sub(1).saturating_mul(self.stride);
        let window = self.taps.saturating_sub(1).saturating_mul(self.dilation).saturating_add(1);
        let behind = last.saturating_add(window).saturating_sub(self.before).saturating_sub(self.frames);
        [self.stride, self.dilation, self.before, behind].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(frames: usize, left: usize, [taps, before, stride, dilation]: [usize; 4]) -> Volume {
        let image = ImageWindows { kernel: [1, 1], strides: [1, 1], dilations: [1, 1], pads: [0; 4] };
        Volume { frames, left, taps, before, stride, dilation, image }
    }

    fn read(volume: &Volume, left: usize) -> Vec<Option<usize>> {
        (0..volume.taps).map(|tap| volume.frame(left, tap)).collect()
    }

    #[test]
    fn taps_reach_frames_and_the_padding_around_them() {
        let same = volume(3, 3, [3, 1, 1, 1]);
        assert_eq!(read(&same, 0), [None, Some(0), Some(1)]);
        assert_eq!(read(&same, 2), [Some(1), Some(2), None]);
        assert_eq!((same.tap(0, 1), same.tap(0, 2), same.along_frames()), (Some(2), None, [1, 1, 1, 1]));
        let far = volume(7, 2, [2, 0, 3, 2]);
        assert_eq!((read(&far, 0), read(&far, 1)), (vec![Some(0), Some(2)], vec![Some(3), Some(5)]));
        assert!(same.reads_padding() && !far.reads_padding());
    }

    #[test]
    fn frames_are_gathered_unless_each_reads_one_or_all_read_all() {
        for (volume, way) in [
            (volume(5, 5, [1, 0, 1, 1]), Frames::Each),
            (volume(5, 3, [1, 0, 2, 1]), Frames::Gathered),
            (volume(5, 7, [1, 1, 1, 1]), Frames::Gathered),
            (volume(5, 5, [3, 1, 1, 1]), Frames::Gathered),
            (volume(3, 3, [3, 1, 1, 1]), Frames::Gathered),
            (volume(3, 1, [3, 0, 1, 1]), Frames::Joined),
            (volume(2, 2, [3, 1, 1, 1]), Frames::Joined),
            (volume(1, 1, [3, 1, 1, 1]), Frames::Joined),
        ] {
            assert_eq!(volume.as_images(), way, "{volume:?}");
        }
    }
}
