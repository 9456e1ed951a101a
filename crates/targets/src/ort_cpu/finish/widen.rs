//! Groups of a convolution whose channels are no whole blocks, as fewer and wider groups: neighbours side by side, each with zeros
//! for the channels of the others.

use crate::ort_cpu::Block;
use crate::ort_cpu::nodes::convolution;
use relayout_eval::Diagonal;
use relayout_ir::attr::Attr;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::constant_node;
use relayout_ir::types::Type;
use relayout_target::PassError;
use std::sync::Arc;

/// Whether the weights are a constant whose bytes are there: of images, or of signals where nothing is to be done to them.
pub(super) fn is_sayable(graph: &Graph, n: NodeId) -> bool {
    let weights = graph.node(n).inputs.get(1).copied().flatten().and_then(|w| weights(graph, w));
    weights.is_some_and(|w| {
        let known = w.dtype == DType::F32 && w.source.is_available();
        known && (w.dims.len() == 4 || (w.dims.len() == 3 && w.pending.is_none()))
    })
}

/// The constant that weights are, or are behind Transposes and moves.
pub(super) fn weights(graph: &Graph, w: ValueId) -> Option<Constant> {
    // Which axis of the value at hand each axis of the weights is.
    let (mut v, mut perm) = (w, (0..graph.value(w).ty.rank()?).collect::<Vec<_>>());
    let constant = loop {
        let node = graph.node(graph.value(v).producer().0);
        match (&node.op, &node.form) {
            (Op::Constant(constant), _) => break constant,
            (Op::Relayout, _) | (_, Form::View(View::Same)) => {}
            (_, Form::View(View::Transpose(own))) => {
                perm = perm.iter().map(|&axis| own.get(axis).copied()).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        v = node.inputs.first().copied().flatten()?;
    };
    if perm.is_sorted() {
        return Some(constant.clone());
    }
    if constant.pending.is_some() || !graph.value(v).layout.is_row_major() {
        return None;
    }
    let dims = perm.iter().map(|&axis| constant.dims.get(axis).copied()).collect::<Option<_>>()?;
    let repack = Repack { extents: constant.dims.clone(), to: Layout::permutation(&perm).ok()? };
    Some(Constant { dims, pending: Some(Box::new(repack)), ..constant.clone() })
}

/// Makes such a node a blocked convolution of wider groups.
pub(super) fn say(graph: &mut Graph, n: NodeId, block: u64, layouts: &KernelLayouts) -> Result<(), PassError> {
    let Some(wide) = Wide::of(graph, n, block, layouts) else {
        let first = format!("{} can't be given wider groups", graph.node(n).describe(graph));
        return Err(PassError::invalid("lower_blocks", first));
    };
    let mut layouts = layouts.clone();
    layouts.ins[1] = Some(wide.layout.clone());
    let mut inputs = graph.node(n).inputs.clone();
    let groups = wide.groups;
    inputs[1] = Some(wide.add(graph, graph.node(n).rank)?);
    graph.set_inputs(n, inputs);
    graph.set_op(n, convolution(), 1);
    graph.attrs_mut(n).insert("group".to_owned(), Attr::Int(groups));
    graph.set_form(n, Form::Kernel(Box::new(layouts)));
    Ok(())
}

/// Wider weights of a convolution.
struct Wide {
    groups: i64,
    weights: Constant,
    name: String,
    layout: Layout,
}

impl Wide {
    fn of(graph: &Graph, n: NodeId, block: u64, layouts: &KernelLayouts) -> Option<Wide> {
        let node = graph.node(n);
        let w = node.inputs.get(1).copied().flatten()?;
        let [filters, depth, rows, columns]: [i64; 4] = graph.value(w).ty.const_shape()?.try_into().ok()?;
        let (block, groups) = (Block::of(block)?, node.int("group")?);
        let unsigned = |n: i64| u64::try_from(n).ok();
        let inputs = unsigned(depth.checked_mul(groups)?)?;
        let joined = block.joined_groups(unsigned(groups)?, inputs, unsigned(filters)?)? as i64;
        let dims = vec![filters, depth * joined, rows, columns];
        let source = Diagonal { weights: weights(graph, w)?, groups, joined };
        let weights = Constant { dtype: DType::F32, dims, source: Arc::new(source), pending: None };
        let ordinary = layouts.ins.first()?.is_none();
        let layout = if ordinary { block.filter_weights() } else { block.dense_weights() };
        let name = format!("{}.wide", graph.value(w).name);
        (layouts.ins.len() > 1).then_some(Wide { groups: groups / joined, weights, name, layout })
    }

    /// Adds the weights and their move into the layout.
    fn add(self, graph: &mut Graph, rank: u32) -> Result<ValueId, PassError> {
        let ty = Type::tensor(DType::F32, self.weights.dims.iter().map(|&d| Dim::from(d)).collect());
        let name = graph.fresh_name(&self.name);
        let wide = graph.add_single(constant_node(self.weights, rank), name, ty.clone())?;
        let mut packed = Node::new(Op::Relayout, vec![Some(wide)]);
        packed.rank = rank;
        let name = graph.fresh_name(&format!("{}.packed", self.name));
        let packed = graph.add_single(packed, name, ty)?;
        *graph.value_mut(packed).layout = self.layout;
        Ok(packed)
    }
}
