//! `join_scales`: a product of two operands that are both multiplied by a number, as exporters write attention, keeps one of the numbers.
//!
//! ```text
//! MatMul(s x, t y) = MatMul(x, s t y)
//! ```

use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::patch::{NewOperand, Patch, remove_dead};
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, Pass, PassError, Rule, Slot};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "join_scales",
    equation: "MatMul(s x, t y) = MatMul(x, s t y)",
    condition: "s, t and s t are numbers of float32; nobody else reads what is multiplied by them",
    buys: "a node: a pass over x",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new(RULE.name, Slot::Finish, "products of turned operands are written")
        .needs(&[Fact::Packed])
        .rules(&[&RULE]);
    Pass::on_each_graph(is, |graph, cx: &mut Context<'_>| {
        for n in cx.reassociable(graph) {
            if is_product(graph, n) && join(graph, n)? {
                cx.count(&RULE, 1);
            }
        }
        Ok(())
    })
}

/// Whether a node is a product of two computed operands.
pub(super) fn is_product(graph: &Graph, n: NodeId) -> bool {
    graph.contains(n)
        && matches!(graph.node(n).onnx(), Some("MatMul" | "Einsum"))
        && graph.node(n).inputs.len() == 2
        && graph.node(n).inputs.iter().flatten().all(|&v| !is_constant(graph, v))
}

/// A value times a number.
struct Scaled {
    node: NodeId,
    x: ValueId,
    y: ValueId,
    slot: usize,
    by: f64,
    /// Views of the result.
    between: Vec<ValueId>,
}

/// The Mul by a number that leaves a value, through views and moves, if nothing else reads what lies between.
fn scaled(graph: &Graph, mut v: ValueId) -> Option<Scaled> {
    let mut between = Vec::new();
    loop {
        graph.only_use(v)?;
        let n = graph.value(v).producer().0;
        if let Some(scaled) = scale(graph, n) {
            return Some(Scaled { between, ..scaled });
        }
        between.push(v);
        let node = graph.node(n);
        let moves =
            matches!(node.op, Op::Relayout) || matches!(node.form, Form::View(View::Transpose(_) | View::Reshape));
        v = node.operand(0).filter(|_| moves)?;
    }
}

/// What a node multiplies by a number, if it does.
fn scale(graph: &Graph, n: NodeId) -> Option<Scaled> {
    let node = graph.node(n);
    if node.onnx() != Some("Mul") || !matches!(node.form, Form::Axes(_)) {
        return None;
    }
    let (y, operands) = (node.only_result()?, [node.operand(0)?, node.operand(1)?]);
    let slot = operands.iter().position(|&v| graph.constant(v).is_some_and(|c| c.elems() == Some(1)))?;
    let (x, c) = (operands[1 - slot], graph.constant(operands[slot])?);
    let [by] = c.to_floats(1)?[..] else { return None };
    let [from, to] = [x, y].map(|v| graph.value(v));
    let same =
        from.ty == to.ty && from.layout == to.layout && from.ty.dtype() == Some(DType::F32) && c.dtype == DType::F32;
    (same && !is_constant(graph, x)).then_some(Scaled { node: n, x, y, slot, by, between: Vec::new() })
}

/// Whether a node multiplies by a number.
pub(super) fn is_scale(graph: &Graph, n: NodeId) -> bool {
    scale(graph, n).is_some()
}

fn join(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let node = graph.node(n);
    let both = node.operand(0).zip(node.operand(1)).filter(|(a, b)| a != b);
    let Some((a, b)) = both.and_then(|(a, b)| Some((scaled(graph, a)?, scaled(graph, b)?))) else { return Ok(false) };
    // The later one stays, so that what it reads is computed before it, as it was.
    let (a, b) = if graph.node(a.node).rank > graph.node(b.node).rank { (a, b) } else { (b, a) };
    let by = (a.by * b.by) as f32;
    let Some(held) = graph.node(a.node).operand(a.slot) else { return Ok(false) };
    if !by.is_normal() || a.node == b.node {
        return Ok(false);
    }
    let dims = graph.constant(held).map(|c| c.dims.clone()).unwrap_or_default();
    let name = format!("{}.joined", graph.value(held).name);
    // What lies between is not scaled any more, or by another number.
    let between: Vec<ValueId> = a.between.iter().chain(&b.between).copied().collect();
    let mut patch = Patch::new();
    let constant = Constant::floats([f64::from(by)], &dims);
    patch.set_operand(NewOperand { node: a.node, slot: a.slot, constant, name, takes_name_of: None });
    patch.redirect(b.y, b.x);
    patch.apply(graph)?;
    *graph.value_mut(a.y).differs = true;
    for v in between {
        *graph.value_mut(v).differs = true;
    }
    let producer = graph.value(held).producer().0;
    remove_dead(graph, [b.node, producer]);
    Ok(true)
}
