//! Means and maxima over rows and columns that drop these axes: a global pool, and a Reshape to a number per image and channel.

use crate::ort_cpu::nodes::become_reshape;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::storage::image_in_runs;
use relayout_ir::types::Type;
use relayout_target::PassError;

/// Says such a reduction of a blocked image.
pub(super) fn say(graph: &mut Graph, n: NodeId, layouts: &KernelLayouts) -> Result<(), PassError> {
    let Some(pool) = Pooled::of(graph, n, layouts) else {
        let first = format!("{} can't be a global pool", graph.node(n).describe(graph));
        return Err(PassError::invalid("lower_blocks", first));
    };
    let channels = pool.channels;
    let left = pool.add(graph, n)?;
    become_reshape(graph, n, left, &[0, channels], None)
}

/// The pool that a reduction is.
struct Pooled {
    op: &'static str,
    x: ValueId,
    layout: Layout,
    /// Where the image's axes `[n, c, h, w]` stand.
    axes: [usize; 4],
    block: i64,
    images: Dim,
    channels: i64,
}

impl Pooled {
    fn of(graph: &Graph, n: NodeId, layouts: &KernelLayouts) -> Option<Pooled> {
        let node = graph.node(n);
        let op = match node.onnx()? {
            "ReduceMean" => "GlobalAveragePool",
            "ReduceMax" => "GlobalMaxPool",
            _ => return None,
        };
        let x = node.inputs.first().copied().flatten()?;
        let layout = layouts.ins.first()?.clone()?;
        let (axes, block) = image_in_runs(&layout)?;
        let shape = graph.value(x).ty.shape()?;
        let (images, channels) = (shape.get(axes[0])?.clone(), shape.get(axes[1])?.as_const()?);
        Some(Pooled { op, x, layout, axes, block: block as i64, images, channels })
    }

    /// Adds the pool, and the move that drops what fills blocks, if anything does.
    fn add(self, graph: &mut Graph, n: NodeId) -> Result<ValueId, PassError> {
        let rank = graph.node(n).rank;
        let base = graph.node(n).outputs.first().copied().flatten().map(|y| graph.value(y).name.clone());
        let base = base.unwrap_or_else(|| "reduced".to_owned());
        let mut shape = vec![Dim::ONE; 4];
        shape[self.axes[0]] = self.images;
        shape[self.axes[1]] = Dim::from(self.channels);
        let ty = Type::tensor(DType::F32, shape);
        let op = OpName { domain: NCHWC.to_owned(), name: self.op.to_owned(), overload: String::new() };
        let mut node = Node::new(Op::Onnx(op), vec![Some(self.x)]);
        (node.rank, node.opset) = (rank, 1);
        let own = || vec![Some(self.layout.clone())];
        node.form = Form::Kernel(Box::new(KernelLayouts { ins: own(), outs: own() }));
        let name = graph.fresh_name(&format!("{base}.pooled"));
        let pooled = graph.add_single(node, name, ty.clone())?;
        *graph.value_mut(pooled).layout = self.layout.clone();
        if self.channels % self.block == 0 && self.layout.slot_map(self.axes[1]).is_none() {
            return Ok(pooled);
        }
        let mut node = Node::new(Op::Relayout, vec![Some(pooled)]);
        node.rank = rank;
        let name = graph.fresh_name(&format!("{base}.channels"));
        let channels = graph.add_single(node, name, ty)?;
        *graph.value_mut(channels).layout =
            Layout::permutation(&self.axes).unwrap_or_else(|_| Layout::row_major(self.axes.len()));
        Ok(channels)
    }
}
