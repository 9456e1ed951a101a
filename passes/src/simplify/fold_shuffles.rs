//! `fold_shuffles`: channels that are shuffled in front of a dense convolution are read in the order in which they come.

use crate::pipeline::Step;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Builder, Graph, NodeId, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::op::read::perm::inverse;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target::{Context, Counted, Declared, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "shuffle_into_conv",
    equation: "Conv(Reshape(Transpose(Reshape(x))), W, b) = Conv(x, P W, b)",
    condition: "only channels change places; the convolution has one group, W is constant, and nobody else reads it or what is shuffled",
    buys: "a move of the image, and both Reshapes",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("fold_shuffles", Slot::Prepare, "for the same reasons").rules(&[&RULE]),
    &fold_shuffles,
);

fn fold_shuffles(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        if !graph.contains(n) {
            continue;
        }
        let Some(shuffle) = Shuffle::before(graph, n) else { continue };
        shuffle.fold(graph, n)?;
        cx.count(&RULE, 3);
    }
    Ok(())
}

/// Channels that change places in front of a convolution.
struct Shuffle {
    /// What is shuffled.
    x: ValueId,
    /// The last node that shuffles.
    last: NodeId,
    weights: ValueId,
    /// Extents of the digits of the channels, as the convolution reads them.
    digits: Vec<Dim>,
    /// Which of those each digit is in the order in which they come.
    order: Vec<usize>,
}

impl Shuffle {
    fn before(graph: &Graph, n: NodeId) -> Option<Shuffle> {
        let node = graph.node(n);
        let (shuffled, weights) = (node.operand(0)?, node.operand(1)?);
        let dense = node.onnx() == Some("Conv") && node.int("group").is_none_or(|groups| groups == 1);
        let own = is_constant(graph, weights) && graph.only_use(weights).is_some();
        (dense && own).then_some(())?;
        let shape = |v: ValueId| graph.value(v).ty.shape();
        let (last, turned) = only_view(graph, shuffled, |view| *view == View::Reshape)?;
        let (turn, split) = only_view(graph, turned, |view| matches!(view, View::Transpose(_)))?;
        let (_, x) = only_view(graph, split, |view| *view == View::Reshape)?;
        let Form::View(View::Transpose(perm)) = &graph.node(turn).form else { return None };
        let ([count, channels, pixels @ ..], [first, parts @ ..]) = (shape(x)?, shape(split)?) else { return None };
        if shape(x) != shape(shuffled) || count != first {
            return None;
        }
        let several = (2..=parts.len()).find(|&several| Dim::product(&parts[..several]).as_ref() == Some(channels))?;
        let digits = perm.get(1..=several)?.iter().map(|&axis| axis.checked_sub(1)).collect::<Option<Vec<_>>>()?;
        let stays = perm.iter().enumerate().all(|(at, &axis)| at == axis || (1..=several).contains(&at));
        let inside = digits.iter().all(|&digit| digit < several);
        let rest = Dim::product(&parts[several..]) == Dim::product(pixels);
        let known = channels.as_const().is_some() && graph.value(weights).ty.const_shape().is_some();
        (stays && inside && rest && known).then(|| Shuffle {
            x,
            last,
            weights,
            digits: digits.iter().map(|&digit| parts[digit].clone()).collect(),
            order: inverse(&digits),
        })
    }

    fn fold(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let shape = graph.value(self.weights).ty.shape().unwrap_or_default().to_vec();
        let [filters, channels, taps @ ..] = shape.as_slice() else { return Ok(()) };
        let several = self.digits.len();
        let split = [std::slice::from_ref(filters), &self.digits, taps].concat();
        let order: Vec<usize> = [0]
            .into_iter()
            .chain(self.order.iter().map(|at| at + 1))
            .chain(several + 1..several + 1 + taps.len())
            .collect();
        let whole = [&[filters.clone(), channels.clone()], taps].concat();
        let name = graph.value(self.weights).name.clone();
        let mut make = Builder::at(graph, n).named(name);
        let weights = make.reshape(self.weights, "digits", split)?;
        let weights = make.transpose(weights, "as_made", &order)?;
        let weights = make.reshape(weights, "shuffled", whole)?;
        let mut patch = Patch::new();
        patch.connect(n, 0, self.x);
        patch.connect(n, 1, weights);
        patch.apply(graph)?;
        remove_dead(graph, [self.last]);
        Ok(())
    }
}

/// The view that makes a value which one node reads, and what it reads.
fn only_view(graph: &Graph, v: ValueId, is: impl Fn(&View) -> bool) -> Option<(NodeId, ValueId)> {
    graph.only_use(v)?;
    let (n, _) = graph.value(v).producer();
    let node = graph.node(n);
    match &node.form {
        Form::View(view) if node.onnx().is_some() && is(view) => Some((n, node.operand(0)?)),
        _ => None,
    }
}
