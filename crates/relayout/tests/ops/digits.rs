//! The law of digits: with an axis in blocks, wherever [`Bound::carry`] says that the op runs so, the node that the exporter writes
//! computes the same. Stored with a dim per digit, it is of another rank than the op's own: operands are raised to it, axes and
//! lists per axis are said for it.

use crate::law::Subject;
use relayout::ir::dim::Dim;
use relayout::ir::form::{Bound, Slot};
use relayout::ir::graph::ValueId;
use relayout::ir::layout::{Factor, Layout};
use relayout::ir::storage::StorageRule;
use std::collections::BTreeMap;

/// Runs the op with each axis of each slot in blocks; how many ways there were.
pub(crate) fn check(subject: &Subject<'_>, bound: &Bound) -> Result<usize, String> {
    let graph = &subject.model.graph;
    let node = graph.node(subject.node);
    let value = |slot: Slot| -> Option<ValueId> {
        match slot {
            Slot::In(i) => node.inputs.get(i).copied().flatten(),
            Slot::Out(i) => node.outputs.get(i).copied().flatten(),
        }
    };
    let shape = |slot: Slot| value(slot).and_then(|v| graph.value(v).ty.shape());
    let mut seen: Vec<BTreeMap<Slot, Layout>> = Vec::new();
    for slot in bound.slots() {
        let Some(dims) = shape(slot) else { continue };
        for layout in blocked(dims) {
            let Some(all) = bound.carry(slot, &layout, StorageRule::PerDigit, shape) else { continue };
            let layouts: BTreeMap<Slot, Layout> = all.into_iter().filter(|(slot, _)| value(*slot).is_some()).collect();
            if seen.contains(&layouts) {
                continue;
            }
            subject.run_in(&layouts).map_err(|why| format!("{bound} with {slot:?} as {layout}: {why}"))?;
            seen.push(layouts);
        }
    }
    Ok(seen.len())
}

/// Each axis of a shape in blocks that divide it, the block innermost; the axes in their order, and the other way round.
fn blocked(dims: &[Dim]) -> Vec<Layout> {
    let rank = dims.len();
    let mut layouts = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let extent = dim.as_const().and_then(|e| u64::try_from(e).ok()).filter(|&e| (2..=64).contains(&e));
        let Some(block) = extent.and_then(|e| (2..=e).find(|b| e % b == 0)) else { continue };
        let orders: [Vec<usize>; 2] = [(0..rank).collect(), (0..rank).rev().collect()];
        for order in orders {
            let outer = order.iter().map(|&a| Factor::outer(a as u8, if a == axis { block } else { 1 }));
            let inner = Factor::inner(axis as u8, 1, block);
            layouts.extend(Layout::new(rank, outer.chain([inner]), []).ok());
        }
    }
    layouts
}
