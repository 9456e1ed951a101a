//! Axes of a product that what scales it reads in pieces, as those of a transposed convolution are: the same numbers over more axes.

use super::{Affine, Grid, Weights};
use std::rc::Rc;

/// How many axes each axis of an operand is cut into, if it is read in its order.
pub(super) fn pieces(reads: &[Option<(u32, i64)>], over: &[i64], base: &[i64]) -> Option<Vec<usize>> {
    let (mut at, mut pieces) = (0, Vec::new());
    for (axis, &extent) in base.iter().enumerate() {
        let (mut left, first) = (extent, at);
        while left > 1 {
            let count = over.get(at).filter(|count| **count > 1 && left % **count == 0)?;
            left /= count;
            (reads.get(at)? == &Some((axis as u32, left))).then_some(())?;
            at += 1;
        }
        pieces.push(at - first);
    }
    (at == reads.len()).then_some(pieces)
}

/// The number of the first piece of each axis.
fn firsts(pieces: &[usize]) -> Vec<u32> {
    pieces.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + *count as u32))).collect()
}

impl Grid {
    /// The same numbers over axes that were cut, of these extents.
    pub(super) fn cut(&self, pieces: &[usize], over: &[i64]) -> Option<Grid> {
        let firsts = firsts(pieces);
        let (mut axes, mut extents) = (Vec::new(), Vec::new());
        for &axis in &self.axes {
            let first = *firsts.get(axis as usize)?;
            for axis in first..first + *pieces.get(axis as usize)? as u32 {
                axes.push(axis);
                extents.push(*over.get(axis as usize)?);
            }
        }
        Some(Grid { axes, extents, values: Rc::clone(&self.values) })
    }
}

impl Affine {
    /// The same over axes that were cut.
    pub(super) fn cut(self, pieces: &[usize], over: &[i64]) -> Option<Affine> {
        if pieces.iter().all(|count| *count == 1) {
            return Some(self);
        }
        let weights = match self.weights {
            None => None,
            Some(weights) => Some(weights.cut(pieces, over)?),
        };
        let [scale, shift, size] = [&self.scale, &self.shift, &self.size].map(|grid| grid.cut(pieces, over));
        Some(Affine { weights, scale: scale?, shift: shift?, size: size? })
    }
}

impl Weights {
    pub(super) fn cut(self, pieces: &[usize], over: &[i64]) -> Option<Weights> {
        let firsts = firsts(pieces);
        let (mut axes, mut extents) = (Vec::new(), Vec::new());
        for (axis, extent) in self.axes.iter().zip(&self.extents) {
            let Some(axis) = axis else {
                axes.push(None);
                extents.push(*extent);
                continue;
            };
            let first = *firsts.get(*axis as usize)?;
            for axis in first..first + *pieces.get(*axis as usize)? as u32 {
                axes.push(Some(axis));
                extents.push(*over.get(axis as usize)?);
            }
        }
        Some(Weights { axes, extents, ..self })
    }
}
