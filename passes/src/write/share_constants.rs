//! `share_constants`: a constant that passes made is not stored again where an equal one is stored already.
//!
//! What is folded is folded for each use, so weights that several nodes share come apart. Constants of the input are never merged with one
//! another: if it stores one twice, that is the user's choice.
//!
//! Absent: constants under 64 bytes, which are no larger than the names and dims around them; large ones that are computed when they
//! are written, unless they come from the same source; and constants of a body that equal one of the graph around it.

use crate::simplify::fold_constants::SMALL;
use crate::state::Step;
use bytes::Bytes;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Context, Declared, PassError, Slot};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher as _;
use std::sync::Arc;

/// Constants of fewer bytes are left alone.
const LEAST: u64 = 64;

/// How many bytes of a large constant are looked at before it is compared with another, in so many runs.
const RUNS: usize = 64;
const RUN: usize = 64;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("share_constants", Slot::Clean, "sees the constants that are left").after(&["cleanup"]),
    &share_constants,
);

/// Lets readers of equal constants read one of them: one of the input, if there is one among them, else the first.
pub fn share_constants(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut patch = Patch::new();
    let mut gone: Vec<NodeId> = Vec::new();
    for alike in groups(graph) {
        let mut kept: FxHashMap<u64, Vec<ValueId>> = FxHashMap::default();
        for v in alike {
            let Some(key) = graph.constant(v).and_then(content) else { continue };
            let others = kept.entry(key).or_default();
            let of_input = graph.node(graph.value(v).producer().0).origin.is_some();
            let same = others.iter().find(|&&other| !of_input && may_go(graph, v) && are_equal(graph, v, other));
            match same {
                Some(&other) => {
                    patch.redirect(v, other);
                    gone.push(graph.value(v).producer().0);
                }
                None => others.push(v),
            }
        }
    }
    if patch.is_empty() {
        return Ok(());
    }
    patch.apply(graph)?;
    remove_dead(graph, gone);
    Ok(())
}

/// What constants have in common that can be equal.
type Likeness = (DType, Vec<i64>, Option<Box<Repack>>, Layout);

/// Constants that can be equal, those of the input first, where at least one is not of the input.
fn groups(graph: &Graph) -> Vec<Vec<ValueId>> {
    let mut order: Vec<(bool, ValueId)> = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        if let Some(v) = node.only_result().filter(|&v| graph.constant(v).is_some_and(is_worth_it)) {
            order.push((node.origin.is_none(), v));
        }
    }
    order.sort_by_key(|(made, _)| *made);
    let mut places: FxHashMap<Likeness, usize> = FxHashMap::default();
    let mut groups: Vec<(bool, Vec<ValueId>)> = Vec::new();
    for (made, v) in order {
        let Some(c) = graph.constant(v) else { continue };
        let likeness = (c.dtype, c.dims.clone(), c.pending.clone(), graph.value(v).layout.clone());
        let at = *places.entry(likeness).or_insert(groups.len());
        if at == groups.len() {
            groups.push((false, Vec::new()));
        }
        groups[at].0 |= made;
        groups[at].1.push(v);
    }
    groups.into_iter().filter(|(made, group)| *made && group.len() > 1).map(|(_, group)| group).collect()
}

fn is_worth_it(c: &Constant) -> bool {
    c.can_move() && c.source.is_available() && c.size_bytes().is_some_and(|size| size >= LEAST)
}

/// Whether nothing but operands of nodes of this graph reads a value.
fn may_go(graph: &Graph, v: ValueId) -> bool {
    !graph.is_output(v) && !graph.is_read_by_name(v)
}

/// The bytes of a constant before they are moved, if they are at hand or soon made.
fn at_hand(c: &Constant) -> Option<Bytes> {
    let soon = !c.source.is_computed() || c.size_bytes().is_some_and(|size| size <= SMALL);
    if soon { c.source.bytes().ok() } else { None }
}

/// A number that is the same for equal constants: of their bytes, or of the source that is to make these.
fn content(c: &Constant) -> Option<u64> {
    let mut hasher = FxHasher::default();
    match at_hand(c) {
        Some(bytes) => {
            let step = bytes.len().div_ceil(RUNS).max(RUN);
            for from in (0..bytes.len()).step_by(step) {
                hasher.write(&bytes[from..bytes.len().min(from + RUN)]);
            }
        }
        None if c.source.is_computed() => hasher.write_usize(Arc::as_ptr(&c.source).cast::<u8>().addr()),
        None => return None,
    }
    Some(hasher.finish())
}

/// Of two constants that are alike.
fn are_equal(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (Some(x), Some(y)) = (graph.constant(a), graph.constant(b)) else { return false };
    if graph.value(a).ty != graph.value(b).ty {
        return false;
    }
    Arc::ptr_eq(&x.source, &y.source) || at_hand(x).zip(at_hand(y)).is_some_and(|(x, y)| x == y)
}
