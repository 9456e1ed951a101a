//! `fold_pads`: zeros that a Pad puts around an image go into the convolution that reads it, through Transposes between them.

use relayout_eval::floats;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId};
use relayout_ir::op::{self, bind};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target::{Context, PassError};
use relayout_target::{Counted, Numerics, Rule};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "pads_into_conv",
    equation: "Conv(Pad(x, p), W, pads = q) = Conv(x, W, pads = p + q)",
    condition: "the Pad puts constant zeros around the image only, and nobody else reads it",
    buys: "the Pad, and one pass over the image",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// Folds in front of every convolution.
pub fn fold_pads(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        if !graph.contains(n) {
            continue;
        }
        let Some(fold) = Fold::plan(graph, n) else { continue };
        fold.apply(graph, n)?;
        cx.count(&RULE, 1);
    }
    Ok(())
}

/// A Pad that goes.
struct Fold {
    pad: NodeId,
    /// Transposes between the Pad and the convolution, from the Pad on, with their permutations.
    between: Vec<(NodeId, Vec<usize>)>,
    /// The convolution's pads from now on.
    pads: Vec<i64>,
}

impl Fold {
    fn plan(graph: &Graph, n: NodeId) -> Option<Fold> {
        let node = graph.node(n);
        let explicit = node.str("auto_pad").is_none_or(|mode| mode == "NOTSET" || mode == "VALID");
        if node.onnx() != Some("Conv") || !explicit {
            return None;
        }
        let mut v = node.operand(0)?;
        let rank = graph.value(v).ty.rank()?;
        // Which axis of the value at hand each axis of the convolution's operand is.
        let mut axes: Vec<usize> = (0..rank).collect();
        let mut between = Vec::new();
        let pad = loop {
            graph.only_use(v)?;
            let (maker, _) = graph.value(v).producer();
            let made = graph.node(maker);
            match &made.form {
                Form::View(View::Transpose(perm)) => {
                    axes = axes.iter().map(|&axis| perm.get(axis).copied()).collect::<Option<_>>()?;
                    between.push((maker, perm.clone()));
                    v = made.operand(0)?;
                }
                _ if made.onnx() == Some("Pad") => break maker,
                _ => return None,
            }
        };
        between.reverse();
        let padded = pads(graph, graph.node(pad))?;
        let of = |axis: usize| axes.get(axis).and_then(|&at| padded.get(at)).copied();
        // Nothing but the image is padded.
        if of(0)? != (0, 0) || of(1)? != (0, 0) {
            return None;
        }
        let spatial = rank - 2;
        let own = node.ints("pads").map_or_else(|| vec![0; 2 * spatial], <[i64]>::to_vec);
        if own.len() != 2 * spatial {
            return None;
        }
        let before = (0..spatial).map(|i| Some(own[i] + of(i + 2)?.0));
        let after = (0..spatial).map(|i| Some(own[spatial + i] + of(i + 2)?.1));
        Some(Fold { pad, between, pads: before.chain(after).collect::<Option<_>>()? })
    }

    fn apply(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let (Some(x), Some(y)) =
            (graph.node(self.pad).operand(0), graph.node(self.pad).outputs.first().copied().flatten())
        else {
            return Ok(());
        };
        let mut patch = Patch::new();
        patch.redirect(y, x);
        patch.apply(graph)?;
        remove_dead(graph, [self.pad]);
        let mut shape = graph.value(x).ty.shape().map(<[Dim]>::to_vec);
        for (transpose, perm) in self.between {
            shape = shape.and_then(|shape| perm.iter().map(|&axis| shape.get(axis).cloned()).collect());
            let Some(result) = graph.node(transpose).outputs.first().copied().flatten() else { continue };
            if let (Type::Tensor(ty), Some(shape)) = (graph.value_mut(result).ty, &shape) {
                ty.shape = Some(shape.clone());
            }
        }
        let attrs = graph.attrs_mut(n);
        attrs.shift_remove("auto_pad");
        attrs.insert("pads".to_owned(), Attr::Ints(self.pads));
        let form = bind(graph, n);
        graph.set_form(n, form);
        Ok(())
    }
}

/// Zeros before and after each axis; `None` for a Pad of anything else, or one that cuts.
fn pads(graph: &Graph, node: &Node) -> Option<Vec<(i64, i64)>> {
    let zero = match (node.operand(2), node.attrs.get("value")) {
        (Some(v), _) => floats(graph.constant(v)?)?.iter().all(|x| *x == 0.0),
        (None, Some(Attr::Float(x))) => *x == 0.0,
        (None, _) => true,
    };
    if node.str("mode").is_some_and(|mode| mode != "constant") || !zero {
        return None;
    }
    op::pads(graph, node).filter(|pads| pads.iter().all(|&(before, after)| before >= 0 && after >= 0))
}
