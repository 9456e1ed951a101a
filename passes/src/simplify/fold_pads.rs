//! `fold_pads`: zeros that a Pad puts around an image go into the convolution that reads it, through Transposes between them.

use crate::state::Step;
use relayout_ir::attr::Attr;
use relayout_ir::build::bind_again;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId};
use relayout_ir::op::read::{self, Fill, Window};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::{Context, Counted, Declared, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "pads_into_conv",
    equation: "Conv(Pad(x, p), W, pads = q) = Conv(x, W, pads = p + q)",
    condition: "the Pad puts constant zeros around the image only, and nobody else reads it",
    buys: "the Pad, and one pass over the image",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> =
    Step::each_graph(Declared::new("fold_pads", Slot::Prepare, "for the same reasons").rules(&[&RULE]), &fold_pads);

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
        if node.onnx() != Some("Conv") {
            return None;
        }
        // `None` where the runtime makes the padding.
        let own = read::windows(graph, node).ok()?.iter().map(Window::padding).collect::<Option<Vec<_>>>()?;
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
        if own.len() + 2 != rank {
            return None;
        }
        let before = own.iter().enumerate().map(|(i, pads)| Some(pads.0 + of(i + 2)?.0));
        let after = own.iter().enumerate().map(|(i, pads)| Some(pads.1 + of(i + 2)?.1));
        Some(Fold { pad, between, pads: before.chain(after).collect::<Option<_>>()? })
    }

    fn apply(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let (Some(x), Some(y)) = (graph.node(self.pad).operand(0), graph.node(self.pad).result(0)) else {
            return Ok(());
        };
        let mut patch = Patch::new();
        patch.redirect(y, x);
        patch.apply(graph)?;
        remove_dead(graph, [self.pad]);
        let mut shape = graph.value(x).ty.shape().map(<[Dim]>::to_vec);
        for (transpose, perm) in self.between {
            shape = shape.and_then(|shape| perm.iter().map(|&axis| shape.get(axis).cloned()).collect());
            let Some(result) = graph.node(transpose).result(0) else { continue };
            if let (Type::Tensor(ty), Some(shape)) = (graph.value_mut(result).ty, &shape) {
                ty.shape = Some(shape.clone());
            }
        }
        let attrs = graph.attrs_mut(n);
        attrs.shift_remove("auto_pad");
        attrs.insert("pads".to_owned(), Attr::Ints(self.pads));
        bind_again(graph, n);
        Ok(())
    }
}

/// Zeros before and after each axis; `None` for a Pad of anything else, or one that cuts.
fn pads(graph: &Graph, node: &Node) -> Option<Vec<(i64, i64)>> {
    let zeros = matches!(read::fill(graph, node), Fill::Number(x) if x == 0.0);
    let pads = zeros.then(|| read::pads(graph, node)).flatten()?;
    pads.iter().all(|&(before, after)| before >= 0 && after >= 0).then_some(pads)
}
