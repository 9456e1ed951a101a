//! `fold_shuffles`: channels that are put in another order for a convolution of all channels alone are read in the order that they have.

use crate::state::Step;
use relayout_ir::build::bind_again;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{NewOperand, Patch, remove_dead};
use relayout_ir::perm::inverse;
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "shuffle_into_conv",
    equation: "Conv(Shuffle(x), W) = Conv(x, W P)",
    condition: "the shuffle is a Reshape that splits the channels, a Transpose of these alone, and a Reshape that joins them; nobody else \
                reads what is between; W is constant, of one group, and nobody else reads it",
    buys: "the shuffle: a pass over the image",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("fold_shuffles", Slot::Finish, "for the same reasons").needs(&[Fact::Written]).rules(&[&RULE]),
    &fold_shuffles,
);

/// Folds in front of every convolution.
fn fold_shuffles(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        if let Some(fold) = graph.contains(n).then(|| Fold::plan(graph, n)).flatten() {
            fold.apply(graph, n)?;
            cx.count(&RULE, 1);
        }
    }
    Ok(())
}

/// A shuffle that goes.
struct Fold {
    x: ValueId,
    /// The node that joins the channels.
    last: NodeId,
    weights: Constant,
    named: String,
}

impl Fold {
    fn plan(graph: &Graph, n: NodeId) -> Option<Fold> {
        let node = graph.node(n);
        if node.onnx() != Some("Conv") || node.int("group").unwrap_or(1) != 1 {
            return None;
        }
        let (y, w) = (node.operand(0)?, node.operand(1)?);
        let (joined, last) = before(graph, y, is_reshape)?;
        let (split, turned) = before(graph, joined, |form| matches!(form, Form::View(View::Transpose(_))))?;
        let (x, _) = before(graph, split, is_reshape)?;
        let Form::View(View::Transpose(perm)) = &graph.node(turned).form else { return None };
        let shape = |v: ValueId| graph.value(v).ty.shape();
        let (whole, parts) = (shape(x)?, shape(split)?);
        let [images, channels, pixels @ ..] = whole else { return None };
        let parts = parts.strip_prefix(std::slice::from_ref(images))?.strip_suffix(pixels)?;
        let parts: Vec<i64> = parts.iter().map(Dim::as_const).collect::<Option<_>>()?;
        let kept = |place: usize| perm.get(place) == Some(&place);
        let moves_channels = kept(0) && (parts.len() + 1..perm.len()).all(kept);
        let as_named = [x, y].iter().all(|&v| graph.value(v).layout.is_row_major());
        if !as_named || whole != shape(y)? || channels.as_const() != Some(parts.iter().product()) || !moves_channels {
            return None;
        }
        let order: Vec<usize> = perm.iter().skip(1).take(parts.len()).filter_map(|axis| axis.checked_sub(1)).collect();
        let weights = in_order(graph, w, &parts, &order)?;
        Some(Fold { x, last, weights, named: format!("{}.reordered", graph.value(w).name) })
    }

    fn apply(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let mut patch = Patch::new();
        patch.connect(n, 0, self.x);
        patch.set_operand(NewOperand {
            node: n,
            slot: 1,
            constant: self.weights,
            name: self.named,
            takes_name_of: None,
        });
        patch.apply(graph)?;
        remove_dead(graph, [self.last]);
        bind_again(graph, n);
        Ok(())
    }
}

fn is_reshape(form: &Form) -> bool {
    matches!(form, Form::View(View::Reshape))
}

/// The node that makes a value for one reader alone, if it is of that form, and what it reads.
fn before(graph: &Graph, v: ValueId, is: impl Fn(&Form) -> bool) -> Option<(ValueId, NodeId)> {
    let (maker, _) = graph.value(v).producer();
    graph.only_use(v)?;
    let node = graph.node(maker);
    Some((node.operand(0).filter(|_| is(&node.form))?, maker))
}

/// Weights whose second axis is made of these parts in that order, with the parts in their own order.
fn in_order(graph: &Graph, w: ValueId, parts: &[i64], order: &[usize]) -> Option<Constant> {
    let constant = graph.constant(w).filter(|c| c.pending.is_none() && graph.use_count(w) == 1)?;
    let [filters, channels, taps @ ..] = &constant.dims[..] else { return None };
    let whole = constant.dtype.bits().is_some_and(|bits| bits >= 8) && graph.value(w).layout.is_row_major();
    let as_read = order.iter().map(|&part| parts.get(part).copied()).collect::<Option<Vec<i64>>>()?;
    let extents: Vec<i64> = std::iter::once(*filters).chain(as_read).chain(taps.iter().copied()).collect();
    let inner = inverse(order).into_iter().map(|part| part + 1);
    let places: Vec<usize> = std::iter::once(0).chain(inner).chain(parts.len() + 1..extents.len()).collect();
    let to = Layout::permutation(&places).ok()?;
    (whole && parts.iter().product::<i64>() == *channels)
        .then(|| Constant { pending: Some(Box::new(Repack { extents, to })), ..constant.clone() })
}
