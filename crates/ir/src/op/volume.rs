//! Windows over volumes, `[N, C, D, H, W]`, taken apart: what an op does along the frames D, and what it does in each image.
//!
//! A convolution or a maximum over frames reads, for each frame that it leaves, some of those that it is given. Which ones is
//! known here, so that the rest can be said of images.

use crate::graph::{Graph, Node};

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
}

impl Volume {
    /// The windows of a node whose first operand and result are volumes of known frames; `None` for what is none, has its padding
    /// left to the runtime, or cuts frames or images off with a negative one.
    pub fn of(graph: &Graph, node: &Node) -> Option<Volume> {
        let shape = |v: Option<Option<crate::graph::ValueId>>| graph.value(v??).ty.shape();
        let (x, y) = (shape(node.inputs.first().copied())?, shape(node.outputs.first().copied())?);
        if x.len() != 5 || y.len() != 5 || !matches!(node.str("auto_pad").unwrap_or("NOTSET"), "NOTSET" | "VALID") {
            return None;
        }
        let list = |name: &str, default: i64| match node.ints(name) {
            Some(list) => <[i64; 3]>::try_from(list).ok(),
            None => Some([default; 3]),
        };
        let kernel = match node.ints("kernel_shape") {
            Some(kernel) => <[i64; 3]>::try_from(kernel).ok()?,
            None => graph.value(node.inputs.get(1).copied()??).ty.const_shape()?.get(2..)?.try_into().ok()?,
        };
        let (strides, dilations) = (list("strides", 1)?, list("dilations", 1)?);
        let pads: [i64; 6] = match node.ints("pads") {
            Some(_) if node.str("auto_pad") == Some("VALID") => [0; 6],
            Some(pads) => pads.try_into().ok()?,
            None => [0; 6],
        };
        let positive = kernel.iter().chain(&strides).chain(&dilations).all(|&n| n > 0);
        if !positive || pads.iter().any(|&p| p < 0) {
            return None;
        }
        let extent = |dims: &[crate::dim::Dim]| usize::try_from(dims.get(2)?.as_const()?).ok().filter(|&n| n > 0);
        let count = |n: i64| usize::try_from(n).ok();
        let of_image = |list: [i64; 3]| [list[1], list[2]];
        Some(Volume {
            frames: extent(x)?,
            left: extent(y)?,
            taps: count(kernel[0])?,
            before: count(pads[0])?,
            stride: count(strides[0])?,
            dilation: count(dilations[0])?,
            image: ImageWindows {
                kernel: of_image(kernel),
                strides: of_image(strides),
                dilations: of_image(dilations),
                pads: [pads[1], pads[2], pads[4], pads[5]],
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

    /// How it is said of images with the fewest multiplications and copies.
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
        let reach = (self.left - 1) * self.stride + (self.taps - 1) * self.dilation + 1;
        let behind = reach.saturating_sub(self.before + self.frames);
        [self.stride, self.dilation, self.before, behind].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
    }
}
