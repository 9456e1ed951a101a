//! Whether a view is free: its result is the operand's bytes as they lie, and how it is declared then.

use super::{Graph, ValueId};
use crate::dim::Dim;
use crate::form::View;
use crate::layout::storage::FreeOrCopy;
use crate::layout::{Layout, Refusal};
use crate::storage::{restated, same_bytes};

/// How a result is declared that is its operand's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// As the operand is: it is another name for it.
    Alias,
    /// With another shape.
    Reshape {
        /// The shape with which the operand is stored.
        from: Vec<Dim>,
        /// The shape with which the result is stored.
        to: Vec<Dim>,
    },
}

impl InPlace {
    /// The nodes with which a file says it: none for an alias, one for a shape that is the target of an ONNX Reshape, or for axes of
    /// extent 1 that go or come, more where the target is made when the model runs. `None` where no file can say it.
    pub fn nodes(&self) -> Option<usize> {
        match self {
            InPlace::Alias => Some(0),
            InPlace::Reshape { from, to } => restated(from, to).map(|said| said.nodes()),
        }
    }
}

impl View {
    /// Whether a result of shape `to` in layout `wanted` is its operand, of shape `from` in layout `operand`, as it lies.
    /// Free is the layout that the bytes have; it may spell size-1 axes otherwise than the wanted one.
    pub fn free_or_copy(&self, operand: &Layout, from: &[Dim], wanted: &Layout, to: &[Dim]) -> FreeOrCopy<Layout> {
        match self.forward(operand, from, to) {
            Ok(left) if same_bytes(&left, wanted, to) => FreeOrCopy::Free(left),
            Ok(left) => FreeOrCopy::Copy(Refusal::Moves { from: left, to: wanted.clone() }),
            Err(why) => FreeOrCopy::Copy(why),
        }
    }

    /// How the result is declared where it is the operand's bytes; `equal` says that its layout is spelled as that of the
    /// bytes is. `None` where one of them has no storage shape.
    fn declared(
        &self,
        graph: &Graph,
        equal: bool,
        (x, from): (ValueId, &Layout),
        (y, to): (ValueId, &Layout),
    ) -> Option<InPlace> {
        let (from, to) = (graph.storage_shape(x, from)?, graph.storage_shape(y, to)?);
        // The same spelling of the same axes has the same storage shape, whatever its dims are called.
        let renamed = equal && !matches!(self, View::Reshape);
        Some(if renamed || from == to { InPlace::Alias } else { InPlace::Reshape { from, to } })
    }
}

impl Graph {
    /// Whether a view of `x` in a layout is `y` in a layout, as it lies, and how `y` is declared then. A move from one
    /// layout to another is asked for as [`View::Same`] of a value.
    pub fn in_place(&self, view: &View, x: (ValueId, &Layout), y: (ValueId, &Layout)) -> FreeOrCopy<InPlace> {
        let shape = |v: ValueId| self.value(v).ty.shape().unwrap_or_default();
        match view.free_or_copy(x.1, shape(x.0), y.1, shape(y.0)) {
            FreeOrCopy::Free(left) => view
                .declared(self, left == *y.1, x, y)
                .ok_or_else(|| Refusal::NoStorageShape { layout: y.1.clone() })
                .into(),
            FreeOrCopy::Copy(why) => FreeOrCopy::Copy(why),
        }
    }

    /// Pairs of layouts of `x` and `y` between which a view is free and can be said, each with the nodes that a file needs beside the
    /// view: those that leave the bytes where a layout of `xs` or of `ys` has them.
    pub fn free_pairs(
        &self,
        view: &View,
        (x, xs): (ValueId, &[Layout]),
        (y, ys): (ValueId, &[Layout]),
    ) -> Vec<(Layout, Layout, usize)> {
        let (Some(from), Some(to)) = (self.value(x).ty.shape(), self.value(y).ty.shape()) else { return Vec::new() };
        let forward = xs.iter().filter_map(|l| Some((l.clone(), view.forward(l, from, to).ok()?)));
        let backward = ys.iter().filter_map(|r| Some((view.backward(r, from, to).ok()?, r.clone())));
        let said = |(l, r): (Layout, Layout)| {
            // Row-major to row-major is what the op itself does, whatever its target is computed from.
            let own = l.is_row_major() && r.is_row_major();
            let nodes = view.declared(self, true, (x, &l), (y, &r))?.nodes();
            let beside = if own { 0 } else { nodes?.saturating_sub(1) };
            Some((l, r, beside))
        };
        forward.chain(backward).filter_map(said).collect()
    }
}
