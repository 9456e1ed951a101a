//! Entries of lists that are computed at run time, and of extents of stored tensors.
//!
//! The Shape of a value that is stored in another order than ONNX's lists the extents in that order. Where all that read the list pick
//! entries of it by known numbers, they pick them there. Elsewhere one Gather puts the list in ONNX's order.

use super::out::{Exporter, GraphOut, StoredList};
use crate::proto::NodeProto;
use crate::proto::make::int_attribute;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Use};
use relayout_ir::op::read::{cuts, elements_taken, known_ints};

impl Exporter {
    /// Shape of a stored tensor, in ONNX's order for those that read it, with known extents behind it.
    pub(super) fn extents(
        &mut self,
        out: &mut GraphOut<'_>,
        node: &Node,
        (picks, known): (&[usize], &[i64]),
        mut proto: NodeProto,
    ) -> Option<()> {
        proto.attribute.retain(|a| !matches!(a.name.as_deref(), Some("start" | "end")));
        let result = proto.output.first()?.clone();
        let stored = self.taken.fresh(&format!("{result}.stored"));
        proto.output[0].clone_from(&stored);
        out.written.add_list(&stored, None);
        let places: Vec<i64> = picks.iter().map(|&p| p as i64).collect();
        out.nodes.push(proto);
        // What an op says of extents is 64 bits wide.
        let list = self.longer(out, &stored, known, DType::I64);
        let v = node.result(0)?;
        if !out.graph.is_output(v) && out.graph.uses(v).iter().all(|u| picked(out.graph, *u, places.len()).is_some()) {
            out.lists.insert(v, StoredList { name: list, places });
            return Some(());
        }
        let indices = self.ints(out, &format!("{result}.order"), &places);
        out.nodes.push(gather(list, indices, result));
        Some(())
    }

    /// Has a node that picks entries of the extents of a stored tensor pick them where they are.
    pub(super) fn pick_stored(&mut self, out: &mut GraphOut<'_>, n: NodeId, proto: &mut NodeProto) {
        let read = out.graph.node(n).operand(0).and_then(|v| out.lists.get(&v));
        let found = read.and_then(|list| Some((list, picked(out.graph, Use { node: n, slot: 0 }, list.places.len())?)));
        let Some((list, (entries, scalar))) = found else { return };
        let indices: Vec<i64> = entries.iter().filter_map(|&i| list.places.get(i).copied()).collect();
        let name = list.name.clone();
        proto.op_type = Some("Gather".to_owned());
        proto.attribute = vec![int_attribute("axis", 0)];
        proto.input = vec![name, String::new()];
        self.replace(out, proto, 1, "places", (&indices, DType::I64), scalar);
    }
}

/// The entries of a list of so many that this place picks by known numbers, and whether they are one number and no list.
fn picked(graph: &Graph, u: Use, length: usize) -> Option<(Vec<usize>, bool)> {
    let node = graph.node(u.node);
    if u.slot != 0 {
        return None;
    }
    let within = |i: i64| usize::try_from(i).ok().filter(|&i| i < length);
    let count = i64::try_from(length).ok()?;
    match node.onnx()? {
        "Gather" if matches!(node.int("axis").unwrap_or(0), 0 | -1) => {
            let indices = node.operand(1)?;
            let rank = graph.value(indices).ty.rank().filter(|&rank| rank <= 1)?;
            let entries = known_ints(graph, indices)?.into_iter();
            let entries =
                entries.map(|i| within(if i < 0 { i.checked_add(count)? } else { i })).collect::<Option<_>>()?;
            Some((entries, rank == 0))
        }
        "Slice" => {
            let [cut] = cuts(graph, node)?[..] else { return None };
            let (first, taken) = elements_taken(count, cut.start, cut.end, cut.step);
            let entry = |i: i64| within(first.checked_add(i.checked_mul(cut.step)?)?);
            Some(((0..taken).map(entry).collect::<Option<_>>()?, false))
        }
        _ => None,
    }
}

/// A Gather of entries of a list.
pub(super) fn gather(data: String, indices: String, result: String) -> NodeProto {
    NodeProto {
        op_type: Some("Gather".to_owned()),
        name: Some(result.clone()),
        input: vec![data, indices],
        output: vec![result],
        attribute: vec![int_attribute("axis", 0)],
        ..NodeProto::default()
    }
}
