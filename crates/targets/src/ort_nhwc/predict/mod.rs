//! What ONNX Runtime's layout transformation leaves of a file's Transposes on a provider's device.
//!
//! The runtime moves Transposes when it loads the file, puts one before and one behind each op that the provider runs channels last,
//! and moves those as far as they go. This does the same on a small copy of the graph.

mod net;
mod order;
mod products;
mod push;

use super::costs::{Convolution, DeviceCosts};
use super::{Provider, is_half};
use net::Net;
use push::{Rules, When, push, turn};
use relayout_ir::graph::{Graph, Node as IrNode, ValueId};
use relayout_target_api::{DeviceMoves, Sizes};

/// Transposes that a node of the device is, or that the provider puts around one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turned {
    /// How many.
    times: usize,
    /// What they write together.
    elements: u64,
    /// Whether the device refuses them.
    refused: bool,
    /// Whether elements have two bytes or fewer.
    half: bool,
}

impl Turned {
    /// What they take by measured costs.
    pub(super) fn ns(&self, costs: &DeviceCosts) -> u64 {
        let times = self.times.max(1) as u64;
        costs.transpose_ns(self.half, self.elements / times).saturating_mul(times)
    }
}

/// Predicts what runs of a model. Its bodies run on the host. Types have to be inferred.
pub fn predict(graph: &Graph, provider: &Provider, sizes: &dyn Sizes) -> DeviceMoves {
    sum(&transposes(graph, provider, sizes))
}

/// All of some Transposes.
pub(super) fn sum(turned: &[Turned]) -> DeviceMoves {
    turned.iter().fold(DeviceMoves::default(), |sum, &Turned { times, elements, refused, .. }| {
        sum.plus(DeviceMoves { transposes: times, elements, refused: usize::from(refused) })
    })
}

/// The Transposes that run of a model.
pub(super) fn transposes(graph: &Graph, provider: &Provider, sizes: &dyn Sizes) -> Vec<Turned> {
    let mut net = Net::build(graph, sizes);
    net.part_dequantized();
    let rules = |when| Rules { when, splits: provider.splits(), flattens: provider.flattens() };
    push(&mut net, rules(When::Loaded));
    // Where the provider runs nothing channels last, the runtime does not transform layouts, and moves nothing once more.
    if provider.wraps_any() {
        wrap(&mut net, provider);
        push(&mut net, rules(When::Wrapped));
    }
    if provider.device.fuses_products {
        products::take_in(&mut net);
    }
    left(&net, provider)
}

/// Elements that Transposes of bodies write, which run on the host.
pub(super) fn on_host(graph: &Graph, provider: &Provider, sizes: &dyn Sizes) -> u64 {
    let bodies = graph.nodes().flat_map(|n| graph.node(n).bodies());
    let of_body = |body: &Graph| {
        let mut net = Net::build(body, sizes);
        push(&mut net, Rules { when: When::Loaded, splits: provider.splits(), flattens: false });
        let transposes = net.order().into_iter().filter(|&n| net.nodes[n].op == "Transpose");
        let results = transposes.filter_map(|n| net.values[*net.nodes[n].outs.first()?].shape.as_deref());
        results
            .map(|shape| shape.iter().fold(1u64, |a, &b| a.saturating_mul(b)))
            .fold(on_host(body, provider, sizes), u64::saturating_add)
    };
    bodies.map(of_body).fold(0, u64::saturating_add)
}

/// What convolutions take beyond the faster of their two layouts, by measured costs.
pub(super) fn convolutions(graph: &Graph, provider: &Provider, costs: &DeviceCosts, sizes: &dyn Sizes) -> u64 {
    let shape = |v: Option<ValueId>| v.and_then(|v| sizes.shape(graph, v)).filter(|shape| shape.len() > 2);
    let beyond = |node: &IrNode| {
        let op = node.onnx().filter(|op| matches!(*op, "Conv" | "ConvTranspose"))?;
        let (x, w, y) = (shape(node.operand(0))?, shape(node.operand(1))?, shape(node.result(0))?);
        let groups = u64::try_from(node.int("group").unwrap_or(1)).ok().filter(|&groups| groups > 0)?;
        let backward = op == "ConvTranspose";
        // Each pixel of the side that is read by one filter after the other meets each weight.
        let side = if backward { &x } else { &y };
        let of = |extents: &[u64]| extents.iter().fold(1u64, |a, &b| a.saturating_mul(b));
        let (pixels, taps) = (side[0].saturating_mul(of(&side[2..])), of(&w[2..]));
        let [channels, filters] = if backward { [w[0] / groups, w[1]] } else { [w[1], w[0] / groups] };
        let conv = Convolution {
            half: is_half(graph.value(node.operand(0)?).ty.dtype()),
            depthwise: groups > 1 && channels == 1,
            taps,
            channels,
            filters: if groups > 1 && channels == 1 { filters.saturating_mul(groups) } else { filters },
            pixels,
            work: pixels as f64 * of(&w) as f64,
        };
        let ns @ [first, last] = costs.conv_ns(&conv);
        let own = if provider.wraps(op) { last } else { first };
        Some(own - ns.into_iter().min()?)
    };
    graph.nodes().filter_map(|n| beyond(graph.node(n))).fold(0, u64::saturating_add)
}

/// Elements that kernels turn by themselves, of images and of results, where nothing runs channels last.
pub(super) fn in_kernels(graph: &Graph, provider: &Provider, sizes: &dyn Sizes) -> u64 {
    let size = |v: Option<ValueId>| {
        let shape = v.and_then(|v| sizes.shape(graph, v)).unwrap_or_default();
        shape.iter().fold(1u64, |a, &b| a.saturating_mul(b))
    };
    let whole = |node: &IrNode| node.int("group").unwrap_or(1) == 1;
    let turned = graph
        .nodes()
        .map(|n| graph.node(n))
        .filter(|node| node.onnx().is_some_and(|op| provider.turns().iter().any(|known| known == op)) && whole(node));
    turned.map(|node| size(node.operand(0)).saturating_add(size(node.result(0)))).fold(0, u64::saturating_add)
}

/// Puts ops that run channels last between Transposes.
fn wrap(net: &mut Net, provider: &Provider) {
    for n in net.order() {
        let Some(x) = net.nodes[n].ins.first().copied().flatten() else { continue };
        let Some(rank) = net.values[x].shape.as_ref().map(Vec::len) else { continue };
        let node = &net.nodes[n];
        let stays = has_indices(node) || provider.device.float_kernels && net.values[x].bytes;
        if !provider.wraps_in(&node.op, node.opset) || stays || !is_taken(net, n, provider) {
            continue;
        }
        turn(net, n, 0, &order::to_last(rank));
        net.transpose_result(n, 0, &order::to_first(rank));
        net.nodes[n].wrapped = true;
    }
}

/// Whether a node is a pool that also says where its largest numbers lie. It runs on the host.
fn has_indices(node: &net::Node) -> bool {
    node.op == "MaxPool" && node.outs.len() > 1
}

/// Whether enough extents are numbers. Without that a node runs on the host.
fn is_taken(net: &Net, n: net::N, provider: &Provider) -> bool {
    let node = &net.nodes[n];
    let values = node.ins.iter().flatten().chain(&node.outs);
    values.copied().all(|v| net.values[v].constant || net.values[v].unknown <= provider.device.unknown)
}

fn left(net: &Net, provider: &Provider) -> Vec<Turned> {
    let mut all = Vec::new();
    for n in net.order() {
        if !is_taken(net, n, provider) {
            continue;
        }
        let node = &net.nodes[n];
        let y = node.outs.first().map(|&y| &net.values[y]);
        let shape = y.and_then(|y| y.shape.as_deref()).unwrap_or_default();
        let size = |v: Option<&net::V>| {
            let shape = v.and_then(|&v| net.values[v].shape.as_deref()).unwrap_or_default();
            shape.iter().fold(1u64, |a, &b| a.saturating_mul(b))
        };
        let results = || node.outs.iter().map(|v| size(Some(v))).fold(0, u64::saturating_add);
        let (times, elements) = match node.op.as_str() {
            "Transpose" => (1, size(node.outs.first())),
            // One for what it reads, and one for each result.
            op if provider.wants_innermost(op) && is_outer(node, shape.len()) => {
                let read = size(node.ins.first().and_then(Option::as_ref));
                (1 + node.outs.len(), read.saturating_add(results()))
            }
            _ => continue,
        };
        let refused =
            provider.device.max_rank.is_some_and(|most| shape.iter().filter(|&&d| d != 1).count() as u64 > most)
                || provider.device.max_extent.is_some_and(|most| shape.iter().any(|&d| d > most));
        all.push(Turned { times, elements, refused, half: y.is_some_and(|y| y.half) });
    }
    all
}

/// Whether the axis that an op works along is not the innermost.
fn is_outer(node: &net::Node, rank: usize) -> bool {
    let axis = node.axes.as_ref().and_then(|axes| axes.first().copied());
    let usual = if node.opset >= 13 || node.op == "TopK" { rank.saturating_sub(1) } else { 1 };
    axis.unwrap_or(usual) + 1 != rank
}
