//! Elements of small tensors of known contents, picked and put in another order.

use super::InferContext;
use crate::dim::Dim;
use crate::graph::CONTENTS_LIMIT;

/// A tensor of known contents and shape.
pub(in crate::op) struct Known<'a> {
    shape: Vec<usize>,
    contents: &'a [Dim],
}

impl<'a> InferContext<'a> {
    /// An operand of known contents and shape.
    pub(in crate::op) fn known(&self, slot: usize) -> Option<Known<'a>> {
        let contents = self.contents(slot)?;
        let shape = self.ty(slot).const_shape()?;
        let shape: Vec<usize> = shape.into_iter().map(usize::try_from).collect::<Result<_, _>>().ok()?;
        // An empty tensor may have huge extents; lists of their indices may not.
        let small = shape.iter().all(|d| *d <= CONTENTS_LIMIT);
        let elems = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (small && elems == contents.len()).then_some(Known { shape, contents })
    }
}

impl Known<'_> {
    /// Elements of one row-major block of the axes from `axis` on.
    fn block(&self, axis: usize) -> usize {
        self.shape.iter().skip(axis).product()
    }

    /// Elements whose index along each axis is one of its list, in the order of the lists.
    pub(in crate::op) fn take(&self, picks: &[Vec<usize>]) -> Option<Vec<Dim>> {
        let axes = picks.iter().enumerate().map(|(axis, list)| (self.block(axis + 1), list.as_slice()));
        self.walk(axes)
    }

    /// Elements with the axes in another order, outermost first.
    pub(in crate::op) fn permute(&self, perm: &[usize]) -> Option<Vec<Dim>> {
        let ranges: Vec<Vec<usize>> = self.shape.iter().map(|&d| (0..d).collect()).collect();
        let axes: Option<Vec<_>> = perm.iter().map(|&p| Some((self.block(p + 1), ranges.get(p)?.as_slice()))).collect();
        self.walk(axes?.into_iter())
    }

    /// Elements at all sums of a stride times an index of its list, the first list outermost.
    fn walk<'l>(&self, axes: impl Iterator<Item = (usize, &'l [usize])>) -> Option<Vec<Dim>> {
        let mut offsets = vec![0usize];
        for (stride, list) in axes {
            if offsets.len().checked_mul(list.len())? > CONTENTS_LIMIT {
                return None;
            }
            offsets = offsets.iter().flat_map(|o| list.iter().map(move |i| o + i * stride)).collect();
        }
        offsets.into_iter().map(|o| self.contents.get(o).cloned()).collect()
    }
}

/// Elements of tensors side by side along an axis; their extents beside it are equal.
pub(in crate::op) fn join(parts: &[Known<'_>], axis: usize) -> Option<Vec<Dim>> {
    let total = parts.iter().try_fold(0usize, |n, p| n.checked_add(p.contents.len()))?;
    if total > CONTENTS_LIMIT || parts.iter().any(|p| p.shape.len() <= axis) {
        return None;
    }
    let outer = parts.first()?.shape.iter().take(axis).product::<usize>();
    let mut all = Vec::with_capacity(total);
    for o in 0..outer {
        for part in parts {
            let block = part.block(axis);
            all.extend_from_slice(part.contents.get(o * block..(o + 1) * block)?);
        }
    }
    Some(all)
}
