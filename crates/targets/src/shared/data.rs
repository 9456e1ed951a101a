//! Targets of standard operators, given as data: `onnx`, and a user's own. What moves and passes cost by their bytes is also the base of
//! other targets.

use crate::TargetError;
use crate::shared::forms::layer_norm;
use crate::shared::forms::packed::PackedHeads;
use crate::shared::forms::product::{self, gemm_kernels};
use crate::shared::forms::projection::{self, Projected};
use crate::shared::forms::scaled::Scalings;
use crate::shared::forms::turned::{LayerNorms, TurnedProducts};
use crate::shared::numbers;
use crate::shared::pools::QuantizedPools;
use crate::shared::spans::short_spans;
use relayout_ir::form::{Role, Slot};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::perm;
use relayout_ir::raised::ProjectionForm;
use relayout_target_api::{
    Cost, MoveKind, MoveQuery, NodeQuery, Offer, OpQuery, Pass, PassError, Raised, Recognized, Rule, Target, TargetForm,
};
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// A target that is a data file.
#[derive(Clone)]
pub struct DataTarget {
    name: String,
    dialect: Dialect,
    about: String,
    layouts: String,
    source: String,
    rates: Rates,
    made: MadeForms,
    forms: Arc<[Box<dyn TargetForm>]>,
    passes: Arc<[Pass]>,
    quantized_pools: Option<QuantizedPools>,
}

impl fmt::Debug for DataTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataTarget").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    dialect: Dialect,
    about: String,
    layouts: String,
    source: String,
    moves: Moves,
    ops: Ops,
    projections: Option<Projections>,
    turned_products: Option<TurnedProducts>,
    layer_norms: Option<LayerNorms>,
    quantized_pools: Option<QuantizedPools>,
}

/// The operators that a target's output may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Dialect {
    /// Standard ONNX.
    Standard,
    /// ONNX Runtime's blocked ops beside it.
    OrtCpu,
}

/// What moves cost, as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Moves {
    bytes_per_ns: u64,
    /// What a move costs beyond that if it leaves other elements side by side and is no exchange of two runs of axes.
    #[serde(default)]
    scattered_percent: u64,
    #[serde(rename = "node_ns")]
    node: Cost,
    #[serde(rename = "view_ns")]
    view: Cost,
}

/// What moves and passes over data cost.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    bytes_per_ns: u64,
    scattered_percent: u64,
    node: Cost,
    pub(crate) view: Cost,
    outer_axis_percent: u64,
    outer_reduction_percent: u64,
    span_ns: u64,
    pass_bytes_per_ns: u64,
}

impl Rates {
    /// Checked rates; the error names the key.
    pub(crate) fn new(moves: &Moves, outer_axis_percent: u64, pass_bytes_per_ns: u64) -> Result<Rates, String> {
        let Moves { bytes_per_ns, scattered_percent, node, view } = *moves;
        if bytes_per_ns == 0 {
            return Err("`moves.bytes_per_ns` must be at least 1".to_owned());
        }
        if pass_bytes_per_ns == 0 {
            return Err("`ops.pass_bytes_per_ns` must be at least 1".to_owned());
        }
        Ok(Rates {
            bytes_per_ns,
            scattered_percent,
            node,
            view,
            outer_axis_percent,
            outer_reduction_percent: 0,
            span_ns: 0,
            pass_bytes_per_ns,
        })
    }

    /// The rates where reductions that leave the innermost axis cost this much, in percent of a move of what they read.
    #[must_use]
    pub(crate) fn with_outer_reductions(self, percent: u64) -> Rates {
        Rates { outer_reduction_percent: percent, ..self }
    }

    /// The rates where an element-wise op takes this long for each short span in which its operands meet.
    #[must_use]
    fn with_spans(self, span_ns: u64) -> Rates {
        Rates { span_ns, ..self }
    }

    /// The rates with what was measured; what costs nothing but a node stays.
    #[must_use]
    pub(crate) fn measured(&self, node_ns: u64, [bytes_per_ns, pass_bytes_per_ns]: [u64; 2]) -> Rates {
        Rates { bytes_per_ns, node: Cost::new(node_ns), pass_bytes_per_ns, ..self.clone() }
    }

    /// A move of this many bytes.
    pub(crate) fn permute(&self, bytes: u64) -> Cost {
        self.node + Cost::new(bytes.div_ceil(self.bytes_per_ns))
    }

    /// A move between two orders of whole axes.
    fn transpose(&self, query: &MoveQuery<'_>) -> Cost {
        let cost = self.permute(query.bytes);
        if is_scattered(query) { cost + cost.percent(self.scattered_percent) } else { cost }
    }

    /// A pass over this many bytes.
    pub(crate) fn pass(&self, bytes: u64) -> Cost {
        self.view + Cost::new(bytes / self.pass_bytes_per_ns)
    }

    /// A standard op: nothing, but what an op pays that reads a whole axis which is not innermost, or that turns what it reads.
    pub(crate) fn op(&self, query: &OpQuery<'_>) -> Cost {
        if query.graph.node(query.node).onnx().is_some_and(|op| TURNING.contains(&op)) {
            return Cost::new(query.turned_bytes.div_ceil(self.bytes_per_ns));
        }
        let percent = if whole_axis_is_outer(query) {
            self.outer_axis_percent
        } else if leaves_innermost_axis(query) {
            self.outer_reduction_percent
        } else {
            let spans = if self.span_ns > 0 { short_spans(query).unwrap_or(0) } else { 0 };
            return Cost::new(spans.saturating_mul(self.span_ns));
        };
        self.permute(query.bytes).percent(percent)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ops {
    outer_axis_percent: u64,
    #[serde(default)]
    outer_reduction_percent: u64,
    #[serde(default)]
    span_ns: u64,
    pass_bytes_per_ns: u64,
}

/// What a projection costs whose result has its heads outermost, beyond one with a single matrix.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Projections {
    weight_bytes_per_ns: u64,
    macs_per_ns: u64,
    columns: u64,
}

impl Projections {
    /// Checked; the error names the key.
    fn checked(self) -> Result<Projections, String> {
        let Projections { weight_bytes_per_ns, macs_per_ns, columns } = self;
        let keys = [("weight_bytes_per_ns", weight_bytes_per_ns), ("macs_per_ns", macs_per_ns), ("columns", columns)];
        match keys.into_iter().find(|(_, number)| *number == 0) {
            Some((key, _)) => Err(format!("`projections.{key}` must be at least 1")),
            None => Ok(self),
        }
    }

    /// The weights are prepared at every run, and heads are filled up to whole runs of columns.
    fn extra(&self, heads: &Projected) -> Cost {
        let bytes = heads.dtype.bytes(heads.weights()).unwrap_or(u64::MAX);
        let fill = heads.width.next_multiple_of(self.columns).saturating_sub(heads.width);
        let macs = [heads.rows, heads.inputs, heads.heads].into_iter().fold(fill, u64::saturating_mul);
        Cost::new(bytes / self.weight_bytes_per_ns + macs / self.macs_per_ns)
    }
}

/// What is known of the forms that files of standard operators have.
#[derive(Clone, Copy, Debug)]
struct MadeForms {
    projections: Option<Projections>,
    turned_products: Option<TurnedProducts>,
    layer_norms: Option<LayerNorms>,
}

impl MadeForms {
    fn forms(&self, rates: &Rates) -> Vec<Box<dyn TargetForm>> {
        vec![
            Box::new(ProjectionForms { projections: self.projections, turned: self.turned_products, view: rates.view }),
            Box::new(AcrossChannels(self.layer_norms)),
            Box::new(scalings(rates)),
            Box::new(Gemms),
            Box::new(PackedHeads(rates.view)),
        ]
    }
}

impl DataTarget {
    /// Its forms, for a target that has more.
    pub(crate) fn own_forms(&self) -> Vec<Box<dyn TargetForm>> {
        self.made.forms(&self.rates)
    }

    /// Reads a target file.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] with the place.
    pub fn parse(name: &str, text: &str) -> Result<DataTarget, TargetError> {
        let malformed = |why: String| TargetError::Malformed { name: name.to_owned(), why };
        let file: File = toml::from_str(text).map_err(|e| malformed(e.to_string()))?;
        let rates =
            Rates::new(&file.moves, file.ops.outer_axis_percent, file.ops.pass_bytes_per_ns).map_err(malformed)?;
        let rates = rates.with_outer_reductions(file.ops.outer_reduction_percent).with_spans(file.ops.span_ns);
        let projections = file.projections.map(Projections::checked).transpose().map_err(malformed)?;
        let turned_products = file.turned_products.map(TurnedProducts::checked).transpose().map_err(malformed)?;
        let layer_norms = file.layer_norms.map(LayerNorms::checked).transpose().map_err(malformed)?;
        let made = MadeForms { projections, turned_products, layer_norms };
        let File { name, dialect, about, layouts, source, quantized_pools, .. } = file;
        if dialect == Dialect::Standard && quantized_pools.is_some() {
            return Err(malformed("`quantized_pools` is for dialect `ort-cpu` only; leave it out".to_owned()));
        }
        Ok(DataTarget {
            name,
            dialect,
            about,
            layouts,
            source,
            forms: made.forms(&rates).into(),
            made,
            passes: Arc::from([numbers::pass()]),
            rates,
            quantized_pools,
        })
    }

    /// What 8-bit pools take, if the target has them in two orders.
    pub(crate) fn quantized_pools(&self) -> Option<&QuantizedPools> {
        self.quantized_pools.as_ref()
    }
}

/// Whether the op reads a whole axis at once, and that axis is not innermost in this order.
pub(crate) fn whole_axis_is_outer(query: &OpQuery<'_>) -> bool {
    let axis = match &query.graph.node(query.node).op {
        Op::Onnx(name) if WHOLE_AXIS.contains(&name.name.as_str()) => "x",
        _ => return false,
    };
    let Some(atom) = query.bound.atoms.iter().position(|a| a.name == axis) else { return false };
    let axes = query.bound.axes(Slot::In(0)).unwrap_or_default();
    let innermost = query.ins.first().and_then(|layout| layout.factors().last());
    innermost.is_some_and(|f| axes.get(usize::from(f.axis)).is_some_and(|&a| usize::from(a) != atom))
}

/// Whether a Resize of four axes interpolates along the two inner ones as the file has them, and along others here. ONNX Runtime's
/// kernels for CUDA and WebGPU interpolate along the two inner ones, whatever they are.
pub(crate) fn interpolates_elsewhere(query: &OpQuery<'_>) -> bool {
    let node = query.graph.node(query.node);
    let interpolates =
        matches!(node.onnx(), Some("Resize" | "Upsample")) && node.str("mode").is_some_and(|mode| mode != "nearest");
    let axes = query.bound.axes(Slot::In(0)).unwrap_or_default();
    let Some(layout) = query.ins.first().filter(|_| interpolates && axes.len() == 4) else { return false };
    let kept = |axis: usize| {
        let atom = axes.get(axis).and_then(|&atom| query.bound.atoms.get(usize::from(atom)));
        atom.is_some_and(|atom| atom.role != Role::Whole)
    };
    let outer_two = layout.factors().iter().take(2).all(|f| kept(usize::from(f.axis)));
    (0..2).all(kept) && !outer_two
}

/// Whether a move leaves other elements side by side, and is more than matrices that are transposed.
fn is_scattered(query: &MoveQuery<'_>) -> bool {
    let (Some(from), Some(to)) = (query.from.as_permutation(), query.to.as_permutation()) else { return false };
    let order: Vec<usize> = to.iter().filter_map(|axis| perm::place(&from, *axis)).collect();
    let counts = |place: usize| from.get(place).and_then(|&axis| query.shape.get(axis)) != Some(&1);
    let runs = perm::merged(&order, counts).perm;
    // Matrices one after the other are fast, but runtimes count axes of size 1 when they look whether there are such.
    let is_of_matrices = perm::merged(&order, |_| true).perm == [0, 2, 1];
    runs.len() > 2 && runs.last() != Some(&(runs.len() - 1)) && !is_of_matrices
}

/// Whether the op sums over axes, or the like, but not over the innermost one of more than one element.
fn leaves_innermost_axis(query: &OpQuery<'_>) -> bool {
    let node = query.graph.node(query.node);
    let reduces = node.onnx().is_some_and(|op| op.starts_with("Reduce"));
    let Some((x, layout)) = node.operand(0).filter(|_| reduces).zip(query.ins.first()) else { return false };
    let shape = query.graph.value(x).ty.shape().unwrap_or_default();
    let axes = query.bound.axes(Slot::In(0)).unwrap_or_default();
    let mut order = layout.factors().iter().rev().map(|f| usize::from(f.axis));
    let innermost = order.find(|&axis| shape.get(axis).is_none_or(|d| !d.is_one()));
    let role = |axis: usize| Some(query.bound.atoms.get(usize::from(*axes.get(axis)?))?.role);
    let contracted = query.bound.atoms.iter().any(|atom| atom.role == Role::Contracted);
    contracted && innermost.and_then(role).is_some_and(|role| role != Role::Contracted)
}

/// Ops whose kernels pack the axis `[x]` of their signature before they read it.
const WHOLE_AXIS: &[&str] = &["Softmax", "LogSoftmax", "Hardmax", "TopK", "CumSum", "CumProd", "QLinearSoftmax", "DFT"];

/// Ops whose kernels take any order and turn what they read and make themselves: a Transpose that they absorb is one node less,
/// and no byte.
const TURNING: &[&str] = &["Einsum"];

/// The forms of projections.
struct ProjectionForms {
    projections: Option<Projections>,
    turned: Option<TurnedProducts>,
    /// What a Reshape costs.
    view: Cost,
}

impl TargetForm for ProjectionForms {
    fn name(&self) -> &'static str {
        projection::FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Projection"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(of) = Projected::of(q) else { return Vec::new() };
        let operands = q.graph.node(q.node).inputs.len();
        let offer = |form| {
            let extra = match form {
                ProjectionForm::Apart => self.projections?.extra(&of),
                _ => self.turned?.extra(&of, form)?,
            };
            // A convolution takes rows as they are. Else there is one Reshape more than in the file: rows of several axes are one in
            // front of the product.
            let views = if form == ProjectionForm::Pixels { Cost::ZERO } else { self.view };
            of.kernel(form, operands, views + extra)
        };
        ProjectionForm::ALL.into_iter().filter_map(offer).collect()
    }

    fn pieces(&self, graph: &Graph, nodes: &[NodeId], _: &[Recognized]) -> Vec<Raised> {
        match (self.projections, self.turned) {
            (None, None) => Vec::new(),
            (_, turned) => projection::pieces(graph, nodes, turned.is_some()),
        }
    }

    fn rules(&self) -> &'static [&'static Rule] {
        match (self.projections, self.turned) {
            (None, None) => &[],
            (Some(_), None) => &[&projection::APART],
            _ => &[&projection::APART, &projection::TURNED],
        }
    }

    fn rule(&self, offer: &Offer) -> Option<&'static Rule> {
        projection::rule(offer)
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
        projection::write(graph, node, opset)
    }
}

/// Normalizations of the last axis, written for channels that come before pixels.
struct AcrossChannels(Option<LayerNorms>);

impl TargetForm for AcrossChannels {
    fn name(&self) -> &'static str {
        layer_norm::FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["LayerNormalization"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.and_then(|norms| norms.kernel(q)).into_iter().collect()
    }

    fn pieces(&self, graph: &Graph, nodes: &[NodeId], _: &[Recognized]) -> Vec<Raised> {
        self.0.map_or_else(Vec::new, |_| layer_norm::pieces(graph, nodes))
    }

    fn rules(&self) -> &'static [&'static Rule] {
        if self.0.is_some() { &[&layer_norm::RULE] } else { &[] }
    }

    fn rule(&self, _offer: &Offer) -> Option<&'static Rule> {
        Some(&layer_norm::RULE)
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
        layer_norm::write(graph, node, opset)
    }
}

/// Scales and shifts of channels that lie innermost: two passes over what one reads and leaves.
fn scalings(rates: &Rates) -> Scalings {
    let rates = rates.clone();
    let pass = move |of: [u64; 3]| rates.pass(of.into_iter().fold(2 * size_of::<f32>() as u64, u64::saturating_mul));
    Scalings { plain: Box::new(|_| Cost::ZERO), pass: Box::new(pass) }
}

/// A library of matrix products reads either order of the last two axes alike.
struct Gemms;

impl TargetForm for Gemms {
    fn name(&self) -> &'static str {
        product::FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MatMul", "Gemm"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        gemm_kernels(q, &|_, _| Cost::ZERO)
    }
}

impl Target for DataTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn layouts(&self) -> &str {
        &self.layouts
    }

    fn dialect(&self) -> &str {
        match self.dialect {
            Dialect::Standard => "standard ONNX",
            Dialect::OrtCpu => "standard ONNX and ONNX Runtime's com.microsoft.nchwc",
        }
    }

    fn cost_source(&self) -> &str {
        &self.source
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        let anywhere = matches!(self.dialect, Dialect::Standard);
        (!(anywhere && interpolates_elsewhere(query))).then(|| self.rates.op(query))
    }

    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &self.forms
    }

    fn passes(&self) -> &[Pass] {
        &self.passes
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        // Standard ONNX has a Transpose of whole axes, and nothing that pads.
        let transposes = query.from.as_permutation().is_some() && query.to.as_permutation().is_some();
        match query.kind {
            MoveKind::View => Some(self.rates.view),
            MoveKind::Permute => transposes.then(|| self.rates.transpose(query)),
        }
    }

    fn view_cost(&self) -> Cost {
        self.rates.view
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.rates.pass(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BUILTIN, builtin};
    use relayout_ir::layout::Layout;

    #[test]
    fn every_builtin_target_reads_under_its_own_name() {
        for name in BUILTIN {
            assert_eq!(builtin(name).map(|t| t.name().to_owned()).as_deref(), Ok(*name));
        }
    }

    #[test]
    fn an_unknown_target_is_told_what_there_is() {
        let error = builtin("gpu").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("`gpu`") && error.contains("onnx"), "{error}");
    }

    #[test]
    fn moves_grow_with_bytes_and_views_do_not() {
        let t = builtin("onnx").unwrap();
        let (from, to) = (Layout::row_major(2), Layout::permutation(&[1, 0]).unwrap());
        let cost =
            |kind, bytes| t.move_cost(&MoveQuery::permute(&from, &to, &[1, bytes]).kind(kind).bytes(bytes)).unwrap();
        assert!(cost(MoveKind::Permute, 1 << 20) > cost(MoveKind::Permute, 1 << 10));
        assert_eq!(cost(MoveKind::View, 1 << 20), cost(MoveKind::View, 0));
        assert!(cost(MoveKind::Permute, u64::MAX).is_finite());
    }

    #[test]
    fn a_move_that_scatters_elements_costs_more_than_one_of_rows_or_of_a_matrix() {
        let t = builtin("onnx").unwrap();
        let cost = |shape: &[u64], perm: &[usize]| {
            let (from, to) = (Layout::row_major(shape.len()), Layout::permutation(perm).unwrap());
            t.move_cost(&MoveQuery::permute(&from, &to, shape).bytes(1 << 20)).unwrap()
        };
        let rows = cost(&[8, 7, 8, 96], &[0, 2, 1, 3]);
        assert_eq!(rows, cost(&[1, 56, 56, 96], &[0, 3, 1, 2]), "images turned round are matrices");
        assert!(rows < cost(&[8, 7, 8, 96], &[3, 0, 2, 1]));
        assert_eq!(rows, cost(&[8, 56, 56, 96], &[0, 3, 1, 2]), "and several are as fast");
        assert!(rows < cost(&[4, 1, 12, 32, 64], &[1, 0, 2, 4, 3]), "but not if an axis of size 1 hides them");
    }

    #[test]
    fn an_element_wise_pass_costs_something_however_small_it_is() {
        let t = builtin("onnx").unwrap();
        assert!(t.pass_cost(0) > Cost::ZERO);
        assert!(t.pass_cost(1 << 20) > t.pass_cost(1 << 10) && t.pass_cost(u64::MAX).is_finite());
    }

    #[test]
    fn a_file_with_an_unknown_key_says_so() {
        let error = DataTarget::parse("mine.toml", "name = \"x\"\nspeed = 3\n").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains("speed"), "{error}");
    }
}
