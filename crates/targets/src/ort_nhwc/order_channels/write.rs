//! Writes a region with its channels in another order: constants are stored so, and moves stand where others know channels by their
//! numbers.

use super::meets::dim_of;
use super::region::{Region, Swaps, Way};
use crate::ort_nhwc::join_views::shorten;
use crate::shared::nodes::{become_reshape, numbers};
use relayout_eval::Picked;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, Handover, Node, NodeId, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_ir::storage::reshape_target;
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::PassError;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The pass, in messages.
const NAME: &str = "order_channels";

/// Whether the moves that a way takes can be written.
pub(super) fn fits(graph: &Graph, region: &Region, swaps: &Swaps, way: &Way) -> bool {
    let order = Order { groups: way.groups, each: region.channels / way.groups };
    let (given, wanted) = region.ends(graph, swaps, way.groups);
    region.members.iter().all(|(v, &axis)| {
        let into = given.contains(v);
        !into && !wanted.contains_key(v) || order.parts(graph, (*v, axis), into).is_some()
    })
}

/// Writes it.
pub(super) fn write(graph: &mut Graph, region: &Region, swaps: &Swaps, way: &Way) -> Result<(), PassError> {
    let order = Order { groups: way.groups, each: region.channels / way.groups };
    let (given, wanted) = region.ends(graph, swaps, way.groups);
    // Everything that is to be written, before the first edit: a region is written as a whole or not at all.
    let constants: Vec<_> = region
        .constants
        .iter()
        .map(|(&(n, slot), axes)| Some((n, slot, order.constant(graph, n, slot, axes)?)))
        .collect::<Option<_>>()
        .ok_or_else(|| PassError::invalid(NAME, "a constant has no such channels".to_owned()))?;
    for (n, slot, constant) in constants {
        set_constant(graph, Use { node: n, slot }, constant)?;
    }
    for (&v, &axis) in &region.members {
        let kept = wanted.get(&v).map_or(&[][..], Vec::as_slice);
        if given.contains(&v) {
            let uses = graph.uses(v).into_iter().filter(|u| !kept.contains(u)).collect();
            let readers = Handover { uses, ..Handover::default() };
            let own = order.moved(graph, (v, axis), true, readers)?;
            *graph.value_mut(own).differs = true;
        } else if wanted.contains_key(&v) {
            let outputs = graph.output_places(v).to_vec();
            let readers = Handover { uses: kept.to_vec(), outputs, takes_name_of: Some(v) };
            order.moved(graph, (v, axis), false, readers)?;
            *graph.value_mut(v).differs = true;
        } else {
            *graph.value_mut(v).differs = true;
        }
    }
    for &n in &way.gone {
        take_away(graph, n)?;
    }
    Ok(())
}

/// Channels in so many groups of so many each: one channel of each group after the other.
#[derive(Clone, Copy, Debug)]
struct Order {
    groups: usize,
    each: usize,
}

impl Order {
    /// The channel at each place.
    fn channels(self) -> Arc<[Option<usize>]> {
        (0..self.each).flat_map(|at| (0..self.groups).map(move |group| Some(group * self.each + at))).collect()
    }

    /// A constant operand in this order along some axes.
    fn constant(self, graph: &Graph, n: NodeId, slot: usize, axes: &BTreeSet<usize>) -> Option<Constant> {
        let v = graph.node(n).operand(slot)?;
        let mut constant = graph.constant(v)?.clone();
        for &axis in axes {
            let dim = dim_of(graph, (v, axis))?;
            if constant.dims.get(dim).copied() != i64::try_from(self.groups * self.each).ok() {
                return None;
            }
            constant = Picked::constant(constant, dim, self.channels())?;
        }
        Some(constant)
    }

    /// The dims of a value with its channels in groups, how they are said, and how those of the value are said of them moved; `None` where
    /// more extents are open than can be said.
    fn parts(self, graph: &Graph, place: (ValueId, usize), into: bool) -> Option<Parts> {
        let dim = dim_of(graph, place)?;
        let stored = graph.storage_shape(place.0, &graph.value(place.0).layout)?;
        let [groups, each] = [self.groups, self.each].map(|n| Dim::from(i64::try_from(n).unwrap_or(0)));
        let parts = if into { [groups, each] } else { [each, groups] };
        let (outside, inside) = (Dim::product(&stored[..dim])?, Dim::product(&stored[dim + 1..])?);
        let dims: Vec<Dim> = [outside].into_iter().chain(parts).chain([inside]).collect();
        let swapped: Vec<Dim> = [0, 2, 1, 3].into_iter().filter_map(|axis: usize| dims.get(axis).cloned()).collect();
        Some(Parts { before: numbers(&dims)?, after: reshape_target(&swapped, &stored)?, dims })
    }

    /// A value with its channels moved into this order, or out of it, for these readers.
    fn moved(
        self,
        graph: &mut Graph,
        place: (ValueId, usize),
        into: bool,
        readers: Handover,
    ) -> Result<ValueId, PassError> {
        let (v, n) = (place.0, graph.value(place.0).producer().0);
        let value = graph.value(v);
        let (name, ty, layout) = (value.name.clone(), value.ty.clone(), value.layout.clone());
        let refused = || PassError::invalid(NAME, format!("`{name}` can't be moved"));
        let Parts { dims, before, after } = self.parts(graph, place, into).ok_or_else(refused)?;
        let plain = Layout::row_major(dims.len());
        let apart = Type::Tensor(TensorType { dtype: ty.dtype(), shape: Some(dims) });
        let mut make = Builder::at(graph, n);
        let at = make.reshape_stored(v, &before, &plain)?.result(&format!("{name}.groups"), apart)?;
        let at = make.transpose(at, &format!("{name}.swapped"), &[0, 2, 1, 3])?;
        let what = if into { "ordered" } else { "plain" };
        Ok(make.reshape_stored(at, &after, &layout)?.result_for(&format!("{name}.{what}"), ty, readers)?)
    }
}

/// A value with its channels in groups.
struct Parts {
    dims: Vec<Dim>,
    before: Vec<i64>,
    after: Vec<i64>,
}

/// Has one reader of a constant read another one of the same type.
fn set_constant(graph: &mut Graph, u: Use, constant: Constant) -> Result<(), PassError> {
    let Some(v) = graph.node(u.node).operand(u.slot) else { return Ok(()) };
    let value = graph.value(v);
    let mut patch = Patch::new();
    patch.insert(Insert {
        node: Node::constant(constant, graph.node(value.producer().0).rank),
        name: format!("{}.ordered", value.name),
        ty: value.ty.clone(),
        layout: value.layout.clone(),
        uses: vec![u],
        outputs: Vec::new(),
        takes_name_of: None,
    });
    let before = value.producer().0;
    patch.apply(graph)?;
    remove_dead(graph, [before]);
    Ok(())
}

/// Makes a swap a Reshape: the bytes that it read are in the order in which it left them. Reshapes behind it read what the Reshape before
/// it read.
fn take_away(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    let node = graph.node(n);
    let (Some(x), Some(y)) = (node.operand(0), node.only_result()) else { return Ok(()) };
    let stored = |v: ValueId| graph.storage_shape(v, &graph.value(v).layout);
    let target = stored(x).zip(stored(y)).and_then(|(from, to)| reshape_target(&from, &to));
    let target = target.ok_or_else(|| PassError::invalid(NAME, "a swap can't be a Reshape".to_owned()))?;
    let to = graph.value(y).layout.clone();
    become_reshape(graph, n, x, &target, to.declared())?;
    *graph.value_mut(y).differs = true;
    for u in graph.uses(y) {
        shorten(graph, u.node, false)?;
    }
    if graph.contains(n) {
        shorten(graph, n, false)?;
    }
    Ok(())
}
