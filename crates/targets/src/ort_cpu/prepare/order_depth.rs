//! `order_depth`: a convolution makes its channels in the order in which `DepthToSpace` can move whole blocks of them.
//!
//! In mode `CRD` the pixels of a channel are neighbours in the depth, so that a block of channels holds pixels of few channels. In
//! mode `DCR` channels are neighbours, and whole blocks go from depth to space (`forms/depth.rs`). In which order a convolution
//! makes its channels is up to its filters. So they are put in the order of mode `DCR`, and so are the weights of depthwise
//! convolutions behind it.
//!
//! Whether that is cheaper is decided by decisions in copies of the graph.

use super::route_channels::{chain, pick_weights};
use super::trials::cheapest;
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId};
use relayout_ir::op::bind;
use relayout_target_api::{Context, Counted, Numerics, PassError, Rule, each_graph};
use std::sync::Arc;

/// The name of the pass.
pub(super) const NAME: &str = "order_depth";

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: NAME,
    equation: "DepthToSpace(f(Conv(x, W, b)), CRD) = DepthToSpace(f(Conv(x, P W, P b)), DCR)",
    condition: "the target moves whole blocks of channels; float32, and the channels that stay channels fill blocks; the convolution is \
                one of all channels; f is ops that treat each channel for itself, nobody else reads what is between, and it leaves no \
                graph; W and b are constant",
    buys: "cost: moves out of blocks and into them",
    numerics: Numerics::Exact,
    counted: Counted::Tensors,
};

/// A `DepthToSpace`, and what makes its channels.
struct DepthChain {
    node: NodeId,
    /// The convolution that makes them, and the nodes behind it.
    chain: Vec<NodeId>,
    /// By channel in the new order: the one before.
    picks: Arc<[Option<usize>]>,
}

/// Orders the channels before every `DepthToSpace` where that is cheaper, in blocks of this many channels.
pub(super) fn order_depth(graph: &mut Graph, cx: &mut Context<'_>, block: usize) -> Result<(), PassError> {
    let mut found: Vec<Vec<DepthChain>> = Vec::new();
    each_graph(graph, "", &mut |graph, _| {
        found.push(graph.nodes().filter_map(|n| DepthChain::recognize(graph, n, block)).collect());
        Ok(())
    })?;
    let count = found.iter().map(Vec::len).sum();
    if count == 0 {
        return Ok(());
    }
    let taken = cheapest(graph, cx, count, &|graph, taken| ordered(graph, &found, taken))?;
    ordered(graph, &found, &taken)?;
    let mut taken = taken.into_iter();
    for (at, own) in found.iter().enumerate() {
        let count = taken.by_ref().take(own.len()).filter(|taken| *taken).count();
        if count > 0 {
            cx.count_in(at, &RULE, count);
        }
    }
    Ok(())
}

impl DepthChain {
    fn recognize(graph: &Graph, n: NodeId, block: usize) -> Option<DepthChain> {
        let node = graph.node(n);
        if node.onnx() != Some("DepthToSpace") || node.str("mode") != Some("CRD") {
            return None;
        }
        let (x, y) = (node.operand(0)?, node.result(0)?);
        graph.only_use(x)?;
        let ty = &graph.value(y).ty;
        let channels = usize::try_from(ty.shape()?.get(1)?.as_const()?).ok()?;
        let whole = ty.dtype() == Some(DType::F32) && channels > 0 && channels.is_multiple_of(block);
        let factor = usize::try_from(node.int("blocksize")?).ok().filter(|&factor| factor > 1 && whole)?;
        let pixels = factor.checked_mul(factor)?;
        let depth = usize::try_from(graph.value(x).ty.shape()?.get(1)?.as_const()?).ok()?;
        if channels.checked_mul(pixels) != Some(depth) {
            return None;
        }
        let chain = chain(graph, x)?;
        let picks = (0..depth).map(|at| Some(at % channels * pixels + at / channels)).collect();
        Some(DepthChain { node: n, chain, picks })
    }

    fn write(&self, graph: &mut Graph) -> Result<(), PassError> {
        for &n in &self.chain {
            pick_weights(graph, n, &self.picks, 0, NAME)?;
            if let Some(y) = graph.node(n).only_result() {
                *graph.value_mut(y).differs = true;
            }
        }
        graph.attrs_mut(self.node).insert("mode".to_owned(), Attr::String("DCR".into()));
        for &n in self.chain.iter().chain([&self.node]) {
            let form = bind(graph, n);
            graph.set_form(n, form);
        }
        Ok(())
    }
}

/// Writes those that are taken, of each graph in turn.
fn ordered(graph: &mut Graph, found: &[Vec<DepthChain>], taken: &[bool]) -> Result<(), PassError> {
    let (mut at, mut taken) = (0, taken.iter());
    each_graph(graph, "", &mut |graph, _| {
        for (found, _) in found[at].iter().zip(taken.by_ref()).filter(|(_, taken)| **taken) {
            found.write(graph)?;
        }
        at += 1;
        Ok(())
    })
}
