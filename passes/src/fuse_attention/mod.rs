//! `fuse_attention`: attention without mask or bias becomes `MultiHeadAttention` of `com.microsoft` where that is cheaper.
//!
//! What is cheaper depends on the moves around it: the op reads and leaves positions outside of heads, as projections have them,
//! and the products it stands for have layouts of their own. So it is decided by a decision: in a copy of the graph every
//! attention is one raised op, whose kernels are that op and the products, each in the layouts that it reads. Attentions for
//! which the op was chosen are written with it, with views around it for the layouts; all others stay as they were read, for the
//! decision proper to deal with.

mod find;

use crate::assign::{Decision, Scopes};
use crate::pipeline::{Context, PassError, each_graph};
use crate::rewrites::{RewriteForm, TABLE, reassociable};
use find::{Extents, Found, extents, find};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::raised::Attention;
use relayout_ir::types::Type;

/// Positions outside of heads, and back.
const OUTSIDE: [usize; 4] = [0, 2, 1, 3];

/// Writes as one op what is cheaper so.
pub fn fuse_attention(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    if cx.target.blocked_host().is_none() {
        return Ok(());
    }
    let mut found: Vec<Vec<Found>> = Vec::new();
    each_graph(graph, "", &mut |graph, _| {
        cx.at = found.len();
        let nodes = reassociable(graph, cx);
        found.push(nodes.into_iter().filter_map(|n| find(graph, n)).collect());
        Ok(())
    })?;
    if found.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let chosen = choose(graph, cx, found)?;
    let mut at = 0;
    each_graph(graph, "", &mut |graph, _| {
        let rewrite = TABLE.iter().find(|r| matches!(r.form, RewriteForm::Attention));
        for found in chosen.get(at).into_iter().flatten() {
            fuse(graph, found)?;
            cx.graphs[at].count(rewrite, found.nodes);
        }
        at += 1;
        Ok(())
    })
}

/// Those for which the one op is chosen, by graph.
fn choose(graph: &Graph, cx: &Context<'_>, mut found: Vec<Vec<Found>>) -> Result<Vec<Vec<Found>>, PassError> {
    let mut trial = graph.clone();
    let mut at = 0;
    each_graph(&mut trial, "", &mut |graph, _| {
        found.get(at).into_iter().flatten().for_each(|found| raise(graph, found));
        at += 1;
        Ok(())
    })?;
    let scopes = Scopes::with_ends(&trial, &cx.ends);
    let decision = Decision::of(&scopes, cx.target, &cx.hints, &cx.limits, cx.numerics)?;
    for (s, found) in found.iter_mut().enumerate() {
        found.retain(|found| {
            let rewrite = decision.plan().kernel(s, found.last).and_then(|kernel| kernel.rewrite.as_ref());
            rewrite.is_some_and(|rewrite| Attention::is_whole(&rewrite.set))
        });
    }
    Ok(found)
}

/// Makes an attention one raised op.
fn raise(graph: &mut Graph, found: &Found) {
    let n = found.last;
    let before: Vec<NodeId> = graph.node(n).inputs.iter().flatten().map(|&v| graph.value(v).producer().0).collect();
    graph.set_inputs(n, found.operands.into_iter().map(Some).collect());
    graph.set_op(n, Attention::op(), 1);
    *graph.attrs_mut(n) = Attention { keys_by_rows: found.keys_by_rows, sums: found.sums as u64 }.attrs();
    graph.set_form(n, Form::Kernel(Box::default()));
    remove_dead(graph, before);
}

/// Writes an attention as the op.
fn fuse(graph: &mut Graph, found: &Found) -> Result<(), PassError> {
    let Some(extents) = extents(graph, found) else { return Ok(()) };
    let Some(y) = graph.node(found.last).outputs.first().copied().flatten() else { return Ok(()) };
    let [q, k, v] = found.operands;
    let rank = graph.node(found.last).rank;
    let heads = found.heads.unwrap_or(1);
    let Extents { queries, keys, width, value_width, .. } = &extents;
    let mut made = Made { graph, rank, packs: found.heads.is_some() };
    let base = made.graph.value(y).name.clone();
    let inputs = [
        made.packed((q, false), &format!("{base}.queries"), (queries, heads * width))?,
        made.packed((k, !found.keys_by_rows), &format!("{base}.keys"), (keys, heads * width))?,
        made.packed((v, false), &format!("{base}.values"), (keys, heads * value_width))?,
    ];
    let op =
        OpName { domain: "com.microsoft".to_owned(), name: "MultiHeadAttention".to_owned(), overload: String::new() };
    let mut node = Node::new(Op::Onnx(op), inputs.into_iter().map(Some).collect());
    (node.rank, node.opset, node.form) = (rank, 1, Form::Kernel(Box::default()));
    node.attrs.insert("num_heads".to_owned(), Attr::Int(heads));
    node.attrs.insert("scale".to_owned(), Attr::Float(found.scale));
    let batch = extents.batch.first().cloned().unwrap_or(Dim::ONE);
    let context = made.add(
        node,
        &format!("{base}.attention"),
        vec![batch.clone(), queries.clone(), Dim::from(heads * value_width)],
    )?;
    let result = made.unpacked(context, &base, &[batch, queries.clone(), Dim::from(heads), Dim::from(*value_width)])?;
    let mut patch = Patch::new();
    patch.replace(y, result);
    patch.apply(graph).map_err(PassError::Name)?;
    remove_dead(graph, [found.last]);
    Ok(())
}

/// Makes row-major nodes in the place of others.
struct Made<'g> {
    graph: &'g mut Graph,
    rank: u32,
    /// Operands have an axis of heads, which goes into that of units.
    packs: bool,
}

impl Made<'_> {
    fn add(&mut self, node: Node, name: &str, shape: Vec<Dim>) -> Result<ValueId, PassError> {
        let name = self.graph.fresh_name(name);
        self.graph.add_single(node, name, Type::tensor(DType::F32, shape)).map_err(PassError::Name)
    }

    fn view(&mut self, x: ValueId, view: View, name: &str, shape: Vec<Dim>) -> Result<ValueId, PassError> {
        let op = if view == View::Reshape { "Reshape" } else { "Transpose" };
        let op = OpName { domain: String::new(), name: op.to_owned(), overload: String::new() };
        let mut node = Node::new(Op::Onnx(op), vec![Some(x)]);
        if let View::Transpose(perm) = &view {
            node.attrs.insert("perm".to_owned(), Attr::Ints(perm.iter().map(|&axis| axis as i64).collect()));
        }
        (node.rank, node.form) = (self.rank, Form::View(view));
        self.add(node, name, shape)
    }

    fn transposed(&mut self, x: ValueId, perm: &[usize], name: &str) -> Result<ValueId, PassError> {
        let from = self.graph.value(x).ty.shape().unwrap_or_default();
        let shape = perm.iter().filter_map(|&axis| from.get(axis).cloned()).collect();
        self.view(x, View::Transpose(perm.to_vec()), name, shape)
    }

    /// An operand as the op reads it, `[batch, positions, units of all heads]`. `turned`: its last two axes have changed places.
    fn packed(
        &mut self,
        (x, turned): (ValueId, bool),
        name: &str,
        (positions, units): (&Dim, i64),
    ) -> Result<ValueId, PassError> {
        if !self.packs {
            return if turned { self.transposed(x, &[0, 2, 1], name) } else { Ok(x) };
        }
        let perm = if turned { [0, 3, 1, 2] } else { OUTSIDE };
        let x = self.transposed(x, &perm, &format!("{name}.apart"))?;
        let batch = self.graph.value(x).ty.shape().and_then(|s| s.first().cloned()).unwrap_or(Dim::ONE);
        self.view(x, View::Reshape, name, vec![batch, positions.clone(), Dim::from(units)])
    }

    /// The result in the place of heads that it had.
    fn unpacked(&mut self, x: ValueId, name: &str, shape: &[Dim; 4]) -> Result<ValueId, PassError> {
        if !self.packs {
            return Ok(x);
        }
        let x = self.view(x, View::Reshape, &format!("{name}.context"), shape.to_vec())?;
        self.transposed(x, &OUTSIDE, &format!("{name}.heads"))
    }
}
