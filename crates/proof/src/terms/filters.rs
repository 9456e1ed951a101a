//! What is kept of the filters of convolutions.

use crate::terms::lane::Lane;
use crate::terms::value::Value;
use crate::terms::windows::Convolution;
use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{Hash, Hasher, RandomState};
use std::rc::Rc;

/// What a filter is: what it has in common with others that may be the same, and its lanes with their weights.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) hash: u64,
    pub(crate) tag: Rc<[u8]>,
    pub(crate) bias: Rc<[u8]>,
    /// Lanes by their numbers, in ascending order, and where the weights of each begin, counted from `base`. All filters of a group have
    /// one list; those whose weights are zeros are none of the filter.
    pub(crate) read: Rc<[(u32, usize)]>,
    pub(crate) base: usize,
    pub(crate) weights: Bytes,
    /// Bytes of the weights of one lane.
    pub(crate) size: usize,
}

impl Sum {
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.read.iter().map(|&(lane, at)| (lane, self.cell(at))).filter(|(_, cell)| !is_zero(cell))
    }

    pub(crate) fn cell(&self, at: usize) -> &[u8] {
        &self.weights[self.base + at..][..self.size]
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Sum) -> bool {
        self.hash == other.hash && self.tag == other.tag && self.bias == other.bias && self.lanes().eq(other.lanes())
    }
}

impl Eq for Sum {}

impl Hash for Sum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

pub(crate) fn is_zero(cell: &[u8]) -> bool {
    cell.iter().all(|b| *b == 0)
}

/// How the windows of a convolution go, whether each image counts by itself, and the spatial axis whose windows do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    pub(crate) images: bool,
    pub(crate) axis: Option<usize>,
}

/// Convolutions of the input, and which filters they make.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    pub(crate) made: Vec<Rc<(Convolution, Value)>>,
    /// Where the channels of each may come from, so far as that was asked for.
    pub(crate) roots: Vec<FxHashSet<u32>>,
    /// What they read, so far as that was asked for.
    pub(crate) read: FxHashMap<(usize, Way), Option<Rc<Reading>>>,
    /// Those whose filters are known.
    pub(crate) seen: FxHashSet<(usize, Way)>,
    /// Channels and filters of single images that were looked at.
    pub(crate) of_images: i64,
    /// How filters are hashed: drawn when the check starts.
    pub(crate) drawn: RandomState,
    /// Numbers of lanes.
    pub(crate) numbers: FxHashMap<Lane, u32>,
    /// The lane of the result that is the filter.
    pub(crate) known: FxHashMap<Sum, Lane>,
}

impl Filters {
    /// The number of a lane.
    pub(crate) fn number(&mut self, lane: Lane) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(lane).or_insert(next)
    }
}

/// Windows along one axis.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) count: i64,
    pub(crate) kernel: i64,
    pub(crate) stride: i64,
    pub(crate) dilation: i64,
    pub(crate) before: i64,
}

/// What the filters of a convolution read. `numbers` are by image, frame and channel.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Everything that two filters have in common that are the same.
    pub(crate) tag: Rc<[u8]>,
    pub(crate) numbers: Vec<Number>,
    pub(crate) steps: Steps,
    pub(crate) axis: Option<usize>,
    pub(crate) images: i64,
    pub(crate) frames: i64,
    pub(crate) channels: i64,
}

/// A lane by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Zero,
    Unknown,
    Lane(u32),
}
