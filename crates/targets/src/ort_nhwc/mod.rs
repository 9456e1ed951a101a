//! Target `ort-nhwc`: standard ONNX for execution providers of ONNX Runtime that run convolutions channels last.
//!
//! ONNX Runtime puts Transposes around each op that such a provider runs channels last, and moves them through the graph, node by node.
//! Here features lie channels last between operators, and each such op stands between two Transposes of its own: the runtime's cancel
//! them. So those cost nothing, and the moves that are left are those of one decision about the whole graph.

mod constant_weights;
mod contributed_attention;
mod contributed_norm;
pub mod costs;
mod delay_transposes;
mod digits;
mod gather_rows;
mod group_norm;
mod heads;
mod join_norms;
mod join_scales;
mod join_views;
mod order_channels;
mod part_units;
mod pick_channels;
pub mod predict;
pub mod providers;
mod read_shapes;
mod resized;
mod strided_product;
mod turned_product;
mod wrapped;

use crate::shared::data::{interpolates_elsewhere, whole_axis_is_outer};
use crate::shared::forms::packed::PackedHeads;
use crate::shared::split_parts;
use crate::shared::tables::CostsError;
use costs::DeviceCosts;
pub use predict::predict;
pub use providers::Provider;
use providers::Unknown;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::MICROSOFT;
use relayout_target_api::{
    Capabilities, Cost, DeviceMoves, MoveKind, MoveQuery, NodeQuery, OpQuery, Pass, Sizes, Target, TargetForm,
};
use std::sync::Arc;

/// What a Reshape costs, or another node of a few elements.
const VIEW_NS: u64 = 8;
/// Elements that an element-wise op reads and writes in a nanosecond.
const PASS_BYTES_PER_NS: u64 = 16;

/// What tips the scales where a sum of features and one number per channel might lie either way: the runtime moves Transposes of features
/// down through such a sum, and then one of the numbers is left.
const SPREAD_NS: u64 = 4 * VIEW_NS;

/// By how much a Transpose on the host is dearer: its elements go there and back.
const REFUSED: u64 = 16;

/// The target.
#[derive(Clone)]
pub struct OrtNhwc {
    rates: Arc<Rates>,
    forms: Arc<[Box<dyn TargetForm>]>,
    passes: Arc<[Pass]>,
    source: String,
    /// The same for sessions that run nothing channels last.
    first: Option<Arc<OrtNhwc>>,
}

/// What moves cost on the provider's device.
pub(crate) struct Rates {
    pub(crate) provider: Provider,
    /// What was measured, in place of what the provider's data says.
    costs: Option<DeviceCosts>,
}

impl Rates {
    /// A Transpose of a value into this layout, or out of it.
    pub(crate) fn turned(&self, q: &NodeQuery<'_>, v: ValueId, layout: &Layout) -> Cost {
        let Some(shape) = q.sizes.shape(q.graph, v) else { return Cost::ZERO };
        let moved = layout.as_permutation().is_some_and(|order| {
            let kept: Vec<usize> = order.into_iter().filter(|&axis| shape.get(axis) != Some(&1)).collect();
            kept.windows(2).any(|pair| pair[0] > pair[1])
        });
        if moved { self.transpose(&shape, is_half(q.graph.value(v).ty.dtype())) } else { Cost::new(VIEW_NS) }
    }

    /// A Transpose of a value, whatever its order.
    pub(crate) fn whole(&self, q: &NodeQuery<'_>, v: ValueId) -> Cost {
        self.transpose(&q.sizes.shape(q.graph, v).unwrap_or_default(), is_half(q.graph.value(v).ty.dtype()))
    }

    fn transpose(&self, shape: &[u64], half: bool) -> Cost {
        self.transpose_of(shape.iter().fold(1, |a: u64, &b| a.saturating_mul(b)), half)
    }

    /// A Transpose of so many elements, of two bytes or fewer where they are halves.
    fn transpose_of(&self, elements: u64, half: bool) -> Cost {
        Cost::new(match &self.costs {
            Some(costs) => costs.transpose_ns(half, elements),
            None => self.provider.transpose_ns(elements),
        })
    }

    /// A sum of so many bytes with a bias, of elements of four bytes or of two. Where each sum is a node it is priced as a Transpose that
    /// reads rows in order, if none was measured: half the elements.
    pub(crate) fn sum(&self, bytes: u64, half: bool) -> Cost {
        let device = &self.provider.device;
        Cost::new(match &self.costs {
            Some(costs) => costs.sum_ns(half, bytes / if half { 2 } else { 4 }),
            None if device.sums_are_nodes => device.node_ns.saturating_add(bytes / (8 * device.elements_per_ns)),
            None => bytes / PASS_BYTES_PER_NS,
        })
    }

    /// A linear Resize, and products in its place, each with the products that are summed for a result and the results: what either takes
    /// beyond the faster one.
    pub(crate) fn interpolation(&self, products: [[u64; 2]; 2], half: bool) -> [Cost; 2] {
        let device = &self.provider.device;
        let Some(costs) = &self.costs else {
            // One node more, and the multiplications.
            let multiplied = products.map(|[inputs, outputs]| inputs.saturating_mul(outputs));
            let multiplied = multiplied.into_iter().fold(0, u64::saturating_add);
            let rate = resized::PRODUCTS_PER_ELEMENT * device.elements_per_ns;
            return [Cost::ZERO, Cost::new(device.node_ns.saturating_add(multiplied / rate))];
        };
        let resize = costs.resize_ns(half, products[1][1]);
        let both = products.map(|of| costs.product_ns(half, of)).into_iter().fold(0, u64::saturating_add);
        [resize, both].map(|ns| Cost::new(ns - resize.min(both)))
    }

    /// A normalization over groups of a value channels first, and by the provider's own op: what either takes beyond the faster one.
    pub(crate) fn normalization(&self, q: &NodeQuery<'_>, v: ValueId) -> [Cost; 2] {
        let elements = q.sizes.shape(q.graph, v).unwrap_or_default().iter().fold(1, |a: u64, &b| a.saturating_mul(b));
        let measured =
            self.costs.as_ref().and_then(|costs| costs.norm_ns(is_half(q.graph.value(v).ty.dtype()), elements));
        let [first, last] = measured.unwrap_or_default();
        [first, last].map(|ns| Cost::new(ns - first.min(last)))
    }
}

/// Key of the metadata of files that names the option which sessions that run them need.
pub const SESSION_KEY: &str = "relayout.session";

impl OrtNhwc {
    /// The target for an execution provider.
    pub fn of(provider: Provider) -> OrtNhwc {
        OrtNhwc::priced(provider, None)
    }

    /// With costs that were measured on a device of the provider; its files say where in their metadata. `name` is what messages call them.
    ///
    /// # Errors
    /// [`CostsError::OtherTarget`] if they were measured for another provider.
    pub fn with_costs(self, name: &str, costs: DeviceCosts) -> Result<OrtNhwc, CostsError> {
        let provider = self.rates.provider.clone();
        costs.check(name, &provider.name)?;
        Ok(OrtNhwc::priced(provider, Some(costs)))
    }

    /// For the sessions alone that its files are for, whatever files for others come to.
    #[must_use]
    pub fn in_these_sessions(self) -> OrtNhwc {
        OrtNhwc { first: None, ..self }
    }

    /// The target for the sessions of the provider that run nothing channels last, if files may be for them as well.
    pub fn channels_first(&self) -> Option<&OrtNhwc> {
        self.first.as_deref()
    }

    /// The execution provider.
    pub fn provider(&self) -> &Provider {
        &self.rates.provider
    }

    fn priced(provider: Provider, costs: Option<DeviceCosts>) -> OrtNhwc {
        let source = costs.as_ref().map_or_else(
            || {
                format!(
                    "a model of {}, ONNX Runtime {} and newer: {}",
                    provider.about,
                    provider.since(),
                    provider.source
                )
            },
            DeviceCosts::source,
        );
        let first = provider.channels_first().map(|first| Arc::new(OrtNhwc::priced(first, costs.clone())));
        let quantized_units = provider.device.quantized_units;
        let (parts, rows) = (part_units::pass(&provider), gather_rows::pass(&provider));
        let rates = Arc::new(Rates { provider, costs });
        let mut forms: Vec<Box<dyn TargetForm>> = vec![
            Box::new(wrapped::Wrapped(Arc::clone(&rates))),
            Box::new(group_norm::GroupNorms(Arc::clone(&rates))),
            Box::new(heads::Heads(Arc::clone(&rates))),
            Box::new(PackedHeads(Cost::new(VIEW_NS))),
        ];
        if rates.provider.device.turned_products {
            forms.push(Box::new(turned_product::TurnedProducts));
        }
        if rates.provider.device.fuses_products {
            forms.push(Box::new(strided_product::StridedProducts(Arc::clone(&rates))));
        }
        let mut passes = vec![
            parts,
            rows,
            digits::pass(),
            order_channels::pass(),
            pick_channels::pass(quantized_units),
            constant_weights::pass(quantized_units),
            join_scales::pass(),
            join_views::pass(),
            read_shapes::pass(),
            delay_transposes::pass(),
        ];
        // There a Transpose of queries, keys and values moves through the Gathers behind it, and is three.
        if rates.provider.splits() && !rates.provider.device.fuses_products {
            passes.push(split_parts::pass(&["write_forms"]));
        }
        if rates.provider.contributes(contributed_norm::OP) {
            passes.push(join_norms::pass(rates.provider.contributes(contributed_norm::SKIPPING)));
            // Before the form that is written with standard ops: where both could be taken it is the one that is asked first.
            forms.insert(0, Box::new(contributed_norm::ContributedNorms(Arc::clone(&rates))));
        }
        if rates.provider.contributes(contributed_attention::OP) {
            forms.push(Box::new(contributed_attention::ContributedAttention(Arc::clone(&rates))));
        }
        if !rates.provider.wraps("Resize") {
            forms.push(Box::new(resized::Resized(Arc::clone(&rates))));
        }
        OrtNhwc { rates, forms: forms.into(), passes: passes.into(), source, first }
    }
}

/// Whether elements of a type have two bytes or fewer.
fn is_half(dtype: Option<DType>) -> bool {
    dtype.and_then(|dtype| dtype.bytes(1)).is_some_and(|bytes| bytes <= 2)
}

/// What is said of a model whose inputs leave dims open for which the provider needs numbers.
fn open_sizes(graph: &Graph, provider: &Provider) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for &v in graph.inputs() {
        let value = graph.value(v);
        for (axis, dim) in value.ty.shape().unwrap_or_default().iter().enumerate() {
            let batch = axis == 0 && provider.device.unknown >= Unknown::Batch;
            let name = dim.as_symbol().map_or_else(|| format!("{}.{axis}", value.name), str::to_owned);
            if !dim.is_const() && !batch && !open.contains(&name) {
                open.push(name);
            }
        }
    }
    if open.is_empty() || provider.device.unknown == Unknown::Any {
        return None;
    }
    let sizes: Vec<String> = open.iter().map(|name| format!("--dim {name}=SIZE")).collect();
    Some(format!(
        "{} takes only nodes whose extents are numbers, so it takes none that depends on {}, which the inputs leave open: `optimize \
         --fix-sizes {}` writes sizes into the file",
        provider.execution_provider,
        open.join(", "),
        sizes.join(" ")
    ))
}

/// Whether an op spreads a computed number per channel over images that lie channels first.
fn spreads_channels(query: &OpQuery<'_>) -> bool {
    let node = query.graph.node(query.node);
    if !matches!(node.onnx(), Some("Add" | "Sub" | "Mul" | "Div")) || node.inputs.len() != 2 {
        return false;
    }
    let shape = |slot: usize| node.operand(slot).and_then(|v| query.graph.value(v).ty.shape());
    let is_spread = |slot: usize| {
        let computed = node.operand(slot).is_some_and(|v| query.graph.constant(v).is_none());
        let flat = shape(slot).is_some_and(|s| s.len() > 2 && s[2..].iter().all(Dim::is_one) && !s[1].is_one());
        let over = shape(1 - slot).is_some_and(|s| s.len() > 2 && s[2..].iter().any(|d| !d.is_one()));
        computed && flat && over && query.ins.get(1 - slot).is_some_and(Layout::is_row_major)
    };
    is_spread(0) || is_spread(1)
}

impl Target for OrtNhwc {
    fn name(&self) -> &'static str {
        "ort-nhwc"
    }

    fn about(&self) -> &'static str {
        "ONNX Runtime on NPUs and GPUs that want channels last (QNN, WebGPU, XNNPACK, CUDA with prefer_nhwc); runs in any runtime"
    }

    fn layouts(&self) -> &'static str {
        "channels last between operators; Transposes that the runtime cancels around convolutions and pools"
    }

    fn dialect(&self) -> &'static str {
        "standard ONNX"
    }

    fn cost_source(&self) -> &str {
        &self.source
    }

    fn capabilities(&self) -> Capabilities {
        // On a device a move of integers is an op like any other, and writes a quarter of the bytes.
        Capabilities {
            decides_again: false,
            checks_sizes: false,
            may_move_more: true,
            keeps_pairs: false,
            ..Capabilities::STANDARD
        }
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn passes(&self) -> &[Pass] {
        &self.passes
    }

    fn can_move(&self, graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> bool {
        digits::can_move(graph, v, from, to)
    }

    fn remarks(&self, graph: &Graph) -> Vec<String> {
        open_sizes(graph, &self.rates.provider).into_iter().collect()
    }

    fn metadata(&self) -> Vec<(String, String)> {
        let provider = &self.rates.provider;
        let session = provider.session.iter().map(|option| (SESSION_KEY.to_owned(), option.clone()));
        let costs = self.rates.costs.as_ref().map(|costs| ("relayout.costs".to_owned(), costs.source()));
        std::iter::once(("relayout.provider".to_owned(), provider.name.clone())).chain(session).chain(costs).collect()
    }

    fn only_on(&self, op: &OpName) -> Option<&str> {
        let provider = &self.rates.provider;
        // Other providers have an attention of float32.
        let own = op.domain == MICROSOFT && provider.contributes(&op.name) && op.name != contributed_attention::OP;
        own.then_some(provider.execution_provider.as_str())
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        let node = query.graph.node(query.node);
        if self.rates.provider.interpolates_innermost() && interpolates_elsewhere(query) {
            return None;
        }
        let turned =
            node.onnx().is_some_and(|op| self.rates.provider.wants_innermost(op)) && whole_axis_is_outer(query);
        if !turned {
            // Where norms run channels last too, features stay so around them.
            let provider = &self.rates.provider;
            let norms = provider.wraps("InstanceNormalization") || provider.contributes(contributed_norm::OP);
            return Some(if !norms && spreads_channels(query) { Cost::new(SPREAD_NS) } else { Cost::ZERO });
        }
        let dtype = node.operand(0).and_then(|x| query.graph.value(x).ty.dtype());
        let elements = query.bytes / dtype.and_then(|dtype| dtype.bytes(1)).unwrap_or(1).max(1);
        Some(self.rates.transpose_of(elements, is_half(dtype)).times(2))
    }

    fn on_device(&self, graph: &Graph, sizes: &dyn Sizes) -> Option<(DeviceMoves, Cost)> {
        let Rates { provider, costs } = self.rates.as_ref();
        let turned = predict::transposes(graph, provider, sizes);
        let moves = predict::sum(&turned);
        let rate = provider.device.elements_per_ns;
        let own = if let Some(costs) = costs {
            let transposes: Cost = turned.iter().map(|turned| Cost::new(turned.ns(costs))).sum();
            transposes + Cost::new(predict::convolutions(graph, provider, costs, sizes))
        } else {
            let nodes = Cost::new(provider.device.node_ns).times(moves.transposes as u64);
            nodes + Cost::new(moves.elements / rate) + Cost::new(predict::in_kernels(graph, provider, sizes) / rate)
        };
        let host = Cost::new(predict::on_host(graph, provider, sizes) / rate).times(REFUSED);
        Some((moves, own + constant_weights::turned(graph, provider) + host))
    }

    fn in_other_sessions(&self) -> Option<&dyn Target> {
        self.first.as_deref().map(|first| first as &dyn Target)
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        if query.kind == MoveKind::View {
            return Some(self.view_cost());
        }
        let whole = query.from.as_permutation().is_some() && query.to.as_permutation().is_some();
        let groups = digits::groups(query.from, query.to, query.shape)?;
        let refused = self.rates.provider.device.max_rank.is_some_and(|most| groups as u64 > most);
        let cost = self.rates.transpose(query.shape, is_half(query.dtype));
        match (whole, refused) {
            (_, false) => Some(cost),
            (true, true) => Some(cost.times(REFUSED)),
            (false, true) => None,
        }
    }

    fn view_cost(&self) -> Cost {
        Cost::new(VIEW_NS)
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        Cost::new(VIEW_NS + bytes / PASS_BYTES_PER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::{OrtNhwc, Provider, VIEW_NS};
    use relayout_ir::text::parse;
    use relayout_target_api::hints::Hints;
    use relayout_target_api::{Cost, NodeQuery};
    use std::collections::BTreeMap;

    #[test]
    fn features_with_one_pixel_are_turned_by_a_view() {
        let turned = |extents: &str| {
            let text = format!(
                "graph g opset=17\n  %x: f32[{extents}] = input\n  %y: f32[{extents}] = Relu(%x)\n  output %y\n"
            );
            let graph = parse(&text).unwrap();
            let y = graph.outputs()[0];
            let hints = Hints::new(&BTreeMap::new(), &graph);
            let query = NodeQuery::new(&graph, graph.value(y).producer().0, &hints, &|_| false);
            let target = OrtNhwc::of(Provider::of("qnn").unwrap());
            target.rates.turned(&query, y, &"NHWC".parse().unwrap())
        };
        assert_eq!(turned("2,24,1,1"), Cost::new(VIEW_NS));
        assert_eq!(turned("2,1,5,6"), Cost::new(VIEW_NS));
        assert!(turned("2,24,1,6") > Cost::new(VIEW_NS));
    }
}
