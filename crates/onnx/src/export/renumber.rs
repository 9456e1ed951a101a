//! Attributes and operands that speak of axes, written for the order in which the first operand with axes is stored, or the first
//! result where no operand has axes.

use super::error::ExportError;
use super::out::{Exporter, GraphOut};
use super::picks::gather;
use crate::proto::make::{floats_attribute, int_attribute, ints_attribute, string_attribute};
use crate::proto::{AttributeProto, NodeProto, TensorProto};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::{Said, renumbered};

impl Exporter {
    /// Writes a node whose operands or results are stored in another order than ONNX's.
    pub(super) fn renumbered(
        &mut self,
        out: &mut GraphOut<'_>,
        n: NodeId,
        mut proto: NodeProto,
    ) -> Result<(), ExportError> {
        let node = out.graph.node(n);
        let fail = |why: &str| ExportError::CannotExpress { node: node.describe(out.graph), why: why.to_owned() };
        let said = renumbered(out.graph, node).map_err(fail)?;
        for said in said {
            match said {
                Said::Int(name, value) => set(&mut proto, int_attribute(name, value)),
                Said::Ints(name, values) => set(&mut proto, ints_attribute(name, values)),
                Said::Floats(name, values) => set(&mut proto, floats_attribute(name, values)),
                Said::Text(name, text) => set(&mut proto, string_attribute(name, &text)),
                Said::Operand { slot, values, scalar, what } => {
                    let dtype = list_type(out.graph, node, slot);
                    self.replace(out, &mut proto, slot, what, (&values, dtype), scalar);
                }
                Said::Picked { slot, picks } => self.gather_entries(out, &mut proto, node, slot, (&picks, &[])),
                Said::Woven { slot: Some(slot), picks, known, .. } => {
                    self.gather_entries(out, &mut proto, node, slot, (&picks, &known));
                }
                Said::Extents(picks) => {
                    let fail = || fail("its extents can't be put in order");
                    return self.extents(out, node, (&picks, &[]), proto).ok_or_else(fail);
                }
                Said::Woven { slot: None, picks, known, .. } => {
                    let fail = || fail("its extents can't be put in order");
                    return self.extents(out, node, (&picks, &known), proto).ok_or_else(fail);
                }
            }
        }
        out.nodes.push(proto);
        Ok(())
    }

    /// Puts a list of integers in the place of an operand, of the type that the node's lists have.
    pub(super) fn replace(
        &mut self,
        out: &mut GraphOut<'_>,
        proto: &mut NodeProto,
        slot: usize,
        what: &str,
        (list, dtype): (&[i64], DType),
        scalar: bool,
    ) {
        let base = format!("{}.{what}", proto.output.first().map_or("", String::as_str));
        let name = self.taken.fresh(&base);
        let mut tensor = super::constants::int_tensor(name.clone(), list, dtype);
        if scalar {
            tensor.dims.clear();
        }
        self.add_constant(out, tensor);
        if proto.input.len() <= slot {
            proto.input.resize(slot + 1, String::new());
        }
        proto.input[slot] = name;
    }

    /// A list that is computed at run time with known entries behind it.
    pub(super) fn longer(&mut self, out: &mut GraphOut<'_>, list: &str, known: &[i64], dtype: DType) -> String {
        if known.is_empty() {
            return list.to_owned();
        }
        let more = self.ints_of(out, &format!("{list}.digits"), known, dtype);
        let result = self.taken.fresh(&format!("{list}.longer"));
        out.written.add_list(&result, None);
        out.nodes.push(NodeProto {
            op_type: Some("Concat".to_owned()),
            name: Some(result.clone()),
            input: vec![list.to_owned(), more],
            output: vec![result.clone()],
            attribute: vec![int_attribute("axis", 0)],
            ..NodeProto::default()
        });
        result
    }

    /// Picks entries of a list, and known ones behind it. Entries of a constant are picked here, others at run time.
    fn gather_entries(
        &mut self,
        out: &mut GraphOut<'_>,
        proto: &mut NodeProto,
        node: &Node,
        slot: usize,
        (picks, known): (&[usize], &[i64]),
    ) {
        let Some(v): Option<ValueId> = node.inputs.get(slot).copied().flatten() else { return };
        let base = out.names.of(v).to_owned();
        let constant = out.graph.constant(v).filter(|_| known.is_empty());
        if let Some(tensor) = constant.and_then(|list| super::constants::picked(list, picks)) {
            let name = self.taken.fresh(&format!("{base}.ordered"));
            self.add_constant(out, TensorProto { name: Some(name.clone()), ..tensor });
            proto.input[slot] = name;
            return;
        }
        let list = self.longer(out, &base, known, list_type(out.graph, node, slot));
        let indices: Vec<i64> = picks.iter().map(|&p| p as i64).collect();
        let indices = self.ints(out, &format!("{base}.order"), &indices);
        let result = self.taken.fresh(&format!("{base}.ordered"));
        out.written.add_list(&result, Some(picks.len()));
        out.nodes.push(gather(list, indices, result.clone()));
        proto.input[slot] = result;
    }
}

/// The type of the list in this slot. One that is not there yet has the type of the node's other lists where the standard wants one
/// type for all, which is so for Slice, and is of 64 bits elsewhere.
fn list_type(graph: &Graph, node: &Node, slot: usize) -> DType {
    let of = |slot: usize| node.inputs.get(slot).copied().flatten().and_then(|v| graph.value(v).ty.dtype());
    let beside = || if node.onnx() == Some("Slice") { of(1) } else { None };
    of(slot).or_else(beside).filter(|dtype| *dtype == DType::I32).unwrap_or(DType::I64)
}

fn set(proto: &mut NodeProto, attribute: AttributeProto) {
    match proto.attribute.iter_mut().find(|a| a.name == attribute.name) {
        Some(a) => *a = attribute,
        None => proto.attribute.push(attribute),
    }
}
