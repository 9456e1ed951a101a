//! Which channels a value holds: those of the values that Concat, Split, Slice, Gather and shuffles brought together in it.
//!
//! Of bytes, what is read through pairs of `DequantizeLinear` and `QuantizeLinear` with the same units is the bytes themselves. A Concat
//! is no route then, as most of them quantize what they read again.

use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::op::read::units;
use relayout_ir::op::{cuts, normalize_axis};
use rustc_hash::{FxHashMap, FxHashSet};

/// The axis of channels.
pub(in crate::ort_cpu::prepare) const CHANNELS: usize = 1;
/// Axes of an image.
const RANK: usize = 4;
/// Most channels of an image: each is listed, and no network has nearly as many.
const MOST: usize = 1 << 18;

/// A channel of a value that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::ort_cpu::prepare) struct Channel {
    pub(in crate::ort_cpu::prepare) source: ValueId,
    pub(in crate::ort_cpu::prepare) at: usize,
}

/// What a value holds along the axes between that of the images of a batch and those of pixels.
#[derive(Clone, Debug)]
pub(in crate::ort_cpu::prepare) struct Route {
    /// In row-major order of those axes.
    pub(in crate::ort_cpu::prepare) channels: Vec<Channel>,
    /// Their extents.
    dims: Vec<usize>,
    /// Axes before them: one, or none where there is one image.
    before: usize,
    /// Axes of pixels behind them: rows and columns, or one for both.
    behind: usize,
    /// The `DequantizeLinear` that makes floats of the source's bytes, if the value holds these.
    pub(in crate::ort_cpu::prepare) dequantized: Option<NodeId>,
}

impl Route {
    /// The channels of an image.
    fn of_image(channels: Vec<Channel>) -> Route {
        Route { dims: vec![channels.len()], channels, before: 1, behind: 2, dequantized: None }
    }

    /// An image of some of the channels.
    fn taken(&self, channels: Vec<Channel>) -> Route {
        Route { dequantized: self.dequantized, ..Route::of_image(channels) }
    }

    /// Whether the value is an image.
    pub(in crate::ort_cpu::prepare) fn is_image(&self) -> bool {
        (self.before, self.dims.len(), self.behind) == (1, 1, 2)
    }
}

/// What is only brought from one place to another in a graph.
#[derive(Debug, Default)]
pub(in crate::ort_cpu::prepare) struct Routes {
    /// What a route leads to.
    pub(in crate::ort_cpu::prepare) of: FxHashMap<ValueId, Route>,
    /// The nodes that lead there.
    pub(in crate::ort_cpu::prepare) nodes: FxHashSet<NodeId>,
    /// Whether routes are those of bytes.
    of_bytes: bool,
}

impl Routes {
    /// Routes through everything that brings channels from one place to another.
    pub(in crate::ort_cpu::prepare) fn trace(graph: &Graph) -> Routes {
        Routes::default().through(graph)
    }

    /// Routes of bytes: through pairs of the same units, and through no Concat.
    pub(in crate::ort_cpu::prepare) fn trace_bytes(graph: &Graph) -> Routes {
        Routes { of_bytes: true, ..Routes::default() }.through(graph)
    }

    fn through(self, graph: &Graph) -> Routes {
        let mut routes = self;
        for n in graph.order().unwrap_or_default() {
            let Some(made) = routes.follow(graph, n).filter(|made| !made.is_empty()) else { continue };
            routes.of.extend(made);
            routes.nodes.insert(n);
        }
        routes
    }

    /// What a value holds; its own channels, if it is an image that is computed.
    pub(in crate::ort_cpu::prepare) fn at(&self, graph: &Graph, v: ValueId) -> Option<Route> {
        if let Some(route) = self.of.get(&v) {
            return Some(route.clone());
        }
        let computed = matches!(graph.node(graph.value(v).producer().0).op, Op::Onnx(_));
        let count = count(graph, v).filter(|_| computed)?;
        Some(Route::of_image((0..count).map(|at| Channel { source: v, at }).collect()))
    }

    /// What the results of a node hold, if it leaves all values as they are.
    fn follow(&self, graph: &Graph, n: NodeId) -> Option<Vec<(ValueId, Route)>> {
        let node = graph.node(n);
        let op = node.onnx()?;
        if let Form::View(view) = &node.form {
            let (x, y) = (node.operand(0)?, node.only_result()?);
            return Some(vec![(y, self.view(graph, view, x, y)?)]);
        }
        match op {
            "DequantizeLinear" | "QuantizeLinear" if self.of_bytes => self.requantized(graph, n),
            "Concat" if self.of_bytes => None,
            "Concat" => Some(vec![(node.only_result()?, self.concat(graph, node)?)]),
            "Split" => self.split(graph, node),
            "Slice" | "Gather" => {
                let route = self.image(graph, node, 0)?;
                let taken = if op == "Slice" { slice(graph, node, &route)? } else { gather(graph, node, &route)? };
                Some(vec![(node.only_result()?, taken)])
            }
            _ => None,
        }
    }

    /// What is dequantized is the bytes that it was, and so is what is quantized in the same units again.
    fn requantized(&self, graph: &Graph, n: NodeId) -> Option<Vec<(ValueId, Route)>> {
        let node = graph.node(n);
        let (x, y) = (node.operand(0)?, node.only_result()?);
        let route = self.at(graph, x)?;
        let own = units(graph, node)?;
        let dequantized = match (node.onnx()?, route.dequantized) {
            ("DequantizeLinear", None) => Some(n),
            ("QuantizeLinear", Some(down)) if units(graph, graph.node(down)) == Some(own) => None,
            _ => return None,
        };
        Some(vec![(y, Route { dequantized, ..route })])
    }

    fn view(&self, graph: &Graph, view: &View, x: ValueId, y: ValueId) -> Option<Route> {
        let route = self.at(graph, x)?;
        match view {
            View::Same => Some(route),
            View::Reshape => reshape(graph, &route, x, y),
            View::Transpose(perm) => transpose(&route, perm),
        }
    }

    /// The channels of an operand that is an image.
    fn image(&self, graph: &Graph, node: &Node, slot: usize) -> Option<Route> {
        self.at(graph, node.operand(slot)?).filter(Route::is_image)
    }

    fn concat(&self, graph: &Graph, node: &Node) -> Option<Route> {
        along_channels(node)?;
        let parts = (0..node.inputs.len()).map(|slot| self.image(graph, node, slot)).collect::<Option<Vec<_>>>()?;
        Some(Route::of_image(parts.into_iter().flat_map(|part| part.channels).collect()))
    }

    fn split(&self, graph: &Graph, node: &Node) -> Option<Vec<(ValueId, Route)>> {
        along_channels(node)?;
        let whole = self.image(graph, node, 0)?;
        let mut rest = &whole.channels[..];
        let mut parts = Vec::new();
        for &y in &node.outputs {
            let y = y?;
            let (part, after) = rest.split_at_checked(count(graph, y)?)?;
            parts.push((y, whole.taken(part.to_vec())));
            rest = after;
        }
        Some(parts)
    }
}

/// The channels of an image, if they are known, there are any, and they can be listed.
pub(in crate::ort_cpu::prepare) fn count(graph: &Graph, v: ValueId) -> Option<usize> {
    let shape = graph.value(v).ty.shape().filter(|shape| shape.len() == RANK)?;
    usize::try_from(shape.get(CHANNELS)?.as_const()?).ok().filter(|c| (1..=MOST).contains(c))
}

fn along_channels(node: &Node) -> Option<()> {
    (normalize_axis(node.int("axis")?, RANK)? == CHANNELS).then_some(())
}

fn slice(graph: &Graph, node: &Node, route: &Route) -> Option<Route> {
    let [cut] = cuts(graph, node)?[..] else { return None };
    let extent = i64::try_from(route.channels.len()).ok()?;
    let within = |at: i64| usize::try_from(if at < 0 { at.saturating_add(extent) } else { at }.clamp(0, extent)).ok();
    let step = usize::try_from(cut.step).ok().filter(|&step| step > 0)?;
    let taken = route.channels.get(within(cut.start)?..within(cut.end)?)?;
    (cut.axis == CHANNELS).then(|| route.taken(taken.iter().step_by(step).copied().collect()))
}

fn gather(graph: &Graph, node: &Node, route: &Route) -> Option<Route> {
    let indices = node.operand(1).filter(|&v| graph.value(v).ty.rank() == Some(1))?;
    let indices = graph.constant(indices)?.to_ints(route.channels.len())?;
    let at = |&index: &i64| route.channels.get(normalize_axis(index, route.channels.len())?).copied();
    along_channels(node)?;
    Some(route.taken(indices.iter().map(at).collect::<Option<_>>()?))
}

/// A Reshape that says the axes of channels otherwise, or those of pixels, or leaves out the axis of one image.
fn reshape(graph: &Graph, route: &Route, x: ValueId, y: ValueId) -> Option<Route> {
    let (from, to) = (graph.value(x).ty.shape()?, graph.value(y).ty.shape()?);
    let pixels = Dim::product(from.get(from.len().checked_sub(route.behind)?..)?)?;
    let images = from.first().filter(|_| route.before == 1).unwrap_or(&Dim::ONE);
    let read = |[before, behind]: [usize; 2]| {
        let (between, last) = to.get(before..)?.split_at_checked(to.len().checked_sub(before + behind)?)?;
        let dims = between.iter().map(|d| usize::try_from(d.as_const()?).ok()).collect::<Option<Vec<_>>>()?;
        let count = dims.iter().try_fold(1_usize, |all, &d| all.checked_mul(d))?;
        let same_images = if before == 1 { to.first() == Some(images) } else { images.is_one() };
        let same = same_images && count == route.channels.len() && Dim::product(last)? == pixels;
        (same && !dims.is_empty()).then(|| Route { dims, before, behind, ..route.clone() })
    };
    let route = [[1, 2], [1, 1], [0, 2], [0, 1]].into_iter().find_map(read)?;
    // An image again only with the rows and columns that it had.
    let had = graph.value(route.channels.first()?.source).ty.shape()?;
    (!route.is_image() || to.get(RANK - 2..) == had.get(RANK - 2..)).then_some(route)
}

/// A Transpose of the axes of channels.
fn transpose(route: &Route, perm: &[usize]) -> Option<Route> {
    let (before, between) = (route.before, route.dims.len());
    let ends = (0..before).chain(before + between..before + between + route.behind);
    if perm.len() != before + between + route.behind || ends.into_iter().any(|end| perm[end] != end) {
        return None;
    }
    let axes: Vec<usize> = perm.get(before..before + between)?.iter().map(|&axis| axis - before).collect();
    let dims: Vec<usize> = axes.iter().map(|&axis| route.dims[axis]).collect();
    let stride = |axis: usize| route.dims.get(axis + 1..).map_or(1, |inner| inner.iter().product::<usize>());
    let from = |place: usize| {
        let (mut rest, mut at) = (place, 0);
        for (&axis, &extent) in axes.iter().zip(&dims).rev() {
            at += rest % extent * stride(axis);
            rest /= extent;
        }
        route.channels.get(at).copied()
    };
    let channels = (0..route.channels.len()).map(from).collect::<Option<_>>()?;
    Some(Route { channels, dims, ..*route })
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::text::parse;

    #[test]
    fn channels_that_are_too_many_to_be_listed_are_no_route() {
        let routes = |channels: u64| {
            let (one, two) = (format!("f32[1,{channels},4,4]@NCHW"), format!("f32[1,{},4,4]@NCHW", 2 * channels));
            let text = format!(
                "graph g opset=13\n  %x: {one} = input\n  %a: {one} = Relu(%x)\n  %y: {two} = Concat(%a, %a) {{axis=1}}\n  \
                 output %y\n"
            );
            let graph = parse(&text).expect("it is a graph");
            Routes::trace(&graph).of.len()
        };
        assert_eq!((routes(8), routes(1 << 40)), (1, 0));
    }
}
