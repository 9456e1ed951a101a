//! Windows, and what is kept of convolutions.

use crate::terms::value::Value;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// How windows go over spatial axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) kernel: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
    /// Starts of all axes, then ends.
    pub(crate) pads: Vec<i64>,
    /// Whether a last window that is not whole counts.
    pub(crate) ceil: bool,
    /// Axes whose padding is a rule that comes to another number from call to call, and the rule.
    pub(crate) ruled: Vec<Option<String>>,
}

impl Windows {
    /// How far the kernel reaches along an axis.
    pub(crate) fn reach(&self, at: usize) -> i64 {
        (self.kernel[at] - 1) * self.dilations[at] + 1
    }

    pub(crate) fn padding(&self, at: usize) -> i64 {
        self.pads[at] + self.pads[at + self.kernel.len()]
    }

    /// Whether a tap along an axis of this extent reads anything but padding.
    pub(crate) fn reads(&self, at: usize, tap: i64, extent: i64) -> bool {
        let (stride, first) = (self.strides[at], tap * self.dilations[at] - self.pads[at]);
        let count = (extent + self.padding(at) - self.reach(at)) / stride + 1;
        // The first window in which it reads index 0 or one behind it.
        let window = if first < 0 { (stride - 1 - first) / stride } else { 0 };
        window < count && first + window * stride < extent
    }

    /// Whether each window is known to have a place that is no padding.
    pub(crate) fn is_never_empty(&self) -> bool {
        let least = |pad: (usize, &i64)| (0..self.kernel[pad.0 % self.kernel.len()]).contains(pad.1);
        !self.ceil && self.dilations.iter().all(|dilation| *dilation == 1) && self.pads.iter().enumerate().all(least)
    }

    pub(crate) fn without_axis(&mut self, at: usize) {
        let rank = self.kernel.len();
        self.pads.remove(at + rank);
        self.pads.remove(at);
        for list in [&mut self.kernel, &mut self.strides, &mut self.dilations] {
            list.remove(at);
        }
        self.ruled.remove(at);
    }

    /// Whether zeros around an image are more of its padding.
    pub(crate) fn takes_more(&self) -> bool {
        self.pads.iter().all(|p| *p >= 0) && self.ruled.iter().all(Option::is_none)
    }

    /// Windows of one place each, without padding.
    pub(crate) fn single(&self) -> bool {
        self.kernel.iter().all(|k| *k == 1) && self.pads.iter().all(|p| *p == 0)
    }

    /// Windows that have one place along an axis, or all of it, without padding.
    pub(crate) fn spans(&self, extents: &[i64]) -> bool {
        let unpadded = self.pads.iter().all(|p| *p == 0) && self.ruled.iter().all(Option::is_none);
        unpadded && self.kernel.iter().zip(extents).all(|(kernel, extent)| *kernel == 1 || kernel == extent)
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        let ruled = if self.ruled.iter().any(Option::is_some) { format!(" {:?}", self.ruled) } else { String::new() };
        format!("{:?} {:?} {:?} {}{ruled}", self.strides, self.dilations, self.pads, u8::from(self.ceil)).into_bytes()
    }
}

/// A convolution: [N, C, spatial] with constant weights [M, C / group, window].
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    pub(crate) x: Value,
    pub(crate) w: Value,
    pub(crate) bias: Option<Value>,
    pub(crate) group: i64,
    pub(crate) windows: Windows,
}

/// Convolutions of the result that are added up, as one of the channels of all, and what else is added.
#[derive(Clone, Debug)]
pub(crate) struct TapSum {
    pub(crate) convolution: Convolution,
    pub(crate) rest: Option<Value>,
}

/// What terms of convolutions are made of.
#[derive(Debug, Default)]
pub(crate) struct Convolved {
    pub(crate) of: FxHashMap<u32, Rc<Convolution>>,
    /// Sums of convolutions of the result that the input has not, by their terms.
    pub(crate) sums: FxHashMap<u32, Rc<TapSum>>,
}
