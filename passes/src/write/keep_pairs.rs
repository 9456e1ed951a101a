//! `keep_pairs`: a move of signed bytes between a `QuantizeLinear` and a `DequantizeLinear` becomes one of floats behind both.
//!
//! ```text
//! DequantizeLinear(Move(QuantizeLinear(x))) = Move(DequantizeLinear(QuantizeLinear(x)))
//! ```
//!
//! ONNX Runtime makes unsigned bytes of signed ones where both halves of a pair are neighbours, and runs the convolution before a pair that is parted
//! on floats (`findings/transpose_between_the_halves_of_a_pair.sh`). The decision has priced these moves as what they become.
//!
//! Absent: unsigned bytes, which lose nothing there; moves that the model has there itself.

use crate::state::Step;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_target_api::{Context, Declared, Fact, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("keep_pairs", Slot::Write, "moves stand where the decision put them").needs(&[Fact::Layouts]),
    &keep_pairs,
);

/// Puts every such move behind the pair.
fn keep_pairs(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    if !cx.target().capabilities().keeps_pairs {
        return Ok(());
    }
    for n in graph.order().unwrap_or_default() {
        if let Some((x, y)) = between(graph, n) {
            behind(graph, x, y)?;
            remove_dead(graph, [n]);
        }
    }
    Ok(())
}

/// The operand and the result of a move between the halves of pairs, if nobody knows what the floats behind it are called.
fn between(graph: &Graph, n: NodeId) -> Option<(ValueId, ValueId)> {
    let node = graph.node(n);
    let (x, y) = (node.operand(0).filter(|_| matches!(node.op, Op::Relayout))?, node.only_result()?);
    let made = graph.node(graph.value(x).producer().0).onnx() == Some("QuantizeLinear");
    let alone = |v| {
        graph.node(v).onnx() == Some("DequantizeLinear")
            && graph.node(v).only_result().is_some_and(|z| !graph.is_read_by_name(z))
    };
    let signed = graph.value(x).ty.dtype() == Some(DType::I8);
    let fits = signed && !graph.is_read_by_name(y) && graph.uses(y).iter().all(|u| u.slot == 0 && alone(u.node));
    (made && fits).then_some((x, y))
}

/// Lets the readers of `y` read `x`, and moves what each of them makes.
fn behind(graph: &mut Graph, x: ValueId, y: ValueId) -> Result<(), PassError> {
    let (from, to) = (graph.value(x).layout.clone(), graph.value(y).layout.clone());
    let mut patch = Patch::new();
    for reader in graph.uses(y).iter().map(|u| u.node).collect::<Vec<_>>() {
        let Some(z) = graph.node(reader).only_result() else { continue };
        let floats = graph.value(z);
        let mut node = Node::new(Op::Relayout, vec![Some(z)]);
        node.rank = graph.node(reader).rank;
        patch.connect(reader, 0, x);
        patch.set_layout(z, from.clone());
        patch.insert(Insert {
            node,
            name: format!("{}.{to}", floats.name),
            ty: floats.ty.clone(),
            layout: to.clone(),
            uses: graph.uses(z).into_vec(),
            outputs: Vec::new(),
            takes_name_of: None,
        });
    }
    patch.apply(graph)?;
    Ok(())
}
