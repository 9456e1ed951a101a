//! `spell_operands`: operands that ONNX lets be written in several ways are written in the one that every loader reads right.
//!
//! ONNX Runtime 1.31 rewrites a model when it loads it, and two of its rewrites read an operand otherwise than its kernels do:
//!
//! - Range takes scalars. Its kernel takes a vector of one element too, but inference refuses one that is constant. What this
//!   optimizer knows of a model, the loader knows next and draws conclusions from, so that a vector may become constant there. Range
//!   gets scalars here;
//! - a Transpose that is moved through Pad or Resize takes their lists to have an entry per axis, also where `axes` names fewer. Lists
//!   that are known get an entry for every axis here.
//!
//! A model in which nothing else is to be done comes out as it was: `optimize` decides about it again without this pass.
//!
//! Absent: lists that are computed, and sizes of some axes of a value whose other extents are not known or that keep its ratio.

use crate::state::Step;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::{normalize_axis, read};
use relayout_ir::patch::Patch;
use relayout_target_api::{Context, Declared, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("spell_operands", Slot::Prepare, "Pads that fold into convolutions are gone, and lists are known"),
    &spell_operands,
);

/// Most elements of a list that names axes.
const LONGEST: usize = 64;

/// Writes the operands of every Range, Pad and Resize.
pub fn spell_operands(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in graph.nodes().collect::<Vec<_>>() {
        let spelled = match graph.node(n).onnx() {
            Some("Range") => scalars(graph, n)?,
            Some("Pad") => pads(graph, n)?,
            Some("Resize") => resize(graph, n)?,
            _ => false,
        };
        cx.report.spelled += usize::from(spelled);
    }
    Ok(())
}

/// Gives a Range scalars. Says whether there was anything to do, as do the others.
fn scalars(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let mut patch = Patch::new();
    let mut vectors = false;
    for slot in 0..graph.node(n).inputs.len() {
        let Some(v) = graph.node(n).operand(slot).filter(|&v| may_be_vector(graph, v)) else { continue };
        let value = graph.value(v);
        let (name, contents) = (value.name.clone(), value.contents.clone());
        let own = graph.constant(v).filter(|c| c.pending.is_none() && c.elems() == Some(1)).cloned();
        let opset = graph.node(n).opset;
        let mut at = Builder::at(graph, n).named(name).opset(opset);
        let scalar = if let Some(c) = own {
            at.constant("scalar", Constant { dims: Vec::new(), ..c })?
        } else {
            let none = at.known_ints("shape", &[])?;
            at.op("Reshape", [v, none]).shaped("scalar", &[])?
        };
        *graph.value_mut(scalar).contents = contents;
        patch.connect(n, slot, scalar);
        vectors = true;
    }
    patch.apply(graph)?;
    Ok(vectors)
}

/// Whether a value is a vector, or may be one: what a branch or a loop leaves may have another rank each time.
fn may_be_vector(graph: &Graph, v: ValueId) -> bool {
    let value = graph.value(v);
    let of_body = || graph.node(value.producer().0).bodies().next().is_some();
    value.ty.rank().map_or_else(of_body, |rank| rank > 0)
}

/// Gives a Pad an entry for every axis.
fn pads(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let node = graph.node(n);
    let (Some(x), Some(_), Some(pads)) = (node.operand(0), node.operand(3), read::pads(graph, node)) else {
        return Ok(false);
    };
    let (opset, attrs, value) = (node.opset, node.attrs.clone(), node.operand(2));
    let full: Vec<i64> = pads.iter().map(|p| p.0).chain(pads.iter().map(|p| p.1)).collect();
    let base = result_name(graph, node);
    let mut at = Builder::at(graph, n).named(base).opset(opset);
    let list = at.known_ints("pads", &full)?;
    at.op("Pad", [x, list]).operands(value).attrs(attrs).in_place_of(n);
    Ok(true)
}

/// The lists of a Resize, of all axes.
struct Lists {
    region: Option<Vec<f64>>,
    scales: Option<Vec<f64>>,
    sizes: Option<Vec<i64>>,
}

impl Lists {
    /// `None` where the Resize names no axes, or where a list of all axes is not known.
    fn recognize(graph: &Graph, node: &Node) -> Option<Lists> {
        let shape = graph.value(node.operand(0)?).ty.shape()?;
        let rank = shape.len();
        let axes: Vec<usize> = node.ints("axes")?.iter().map(|&a| normalize_axis(a, rank)).collect::<Option<_>>()?;
        let full = |listed: &[f64], of_rest: f64| {
            let mut list = vec![of_rest; rank];
            (listed.len() == axes.len()).then_some(())?;
            axes.iter().zip(listed).for_each(|(&axis, &number)| list[axis] = number);
            Some(list)
        };
        let crops = node.str("coordinate_transformation_mode") == Some("tf_crop_and_resize");
        let region = match node.operand(1).filter(|_| crops) {
            None => None,
            Some(v) => {
                let listed = single_floats(graph, v)?;
                let (starts, ends) = listed.split_at_checked(axes.len())?;
                Some([full(starts, 0.0)?, full(ends, 1.0)?].concat())
            }
        };
        let scales = match node.operand(2).filter(|&v| !is_empty(graph, v)) {
            None => None,
            Some(v) => Some(full(&single_floats(graph, v)?, 1.0)?),
        };
        let sizes = match node.operand(3).filter(|&v| !is_empty(graph, v)) {
            None => None,
            Some(v) => {
                let ratio = node.str("keep_aspect_ratio_policy").is_some_and(|policy| policy != "stretch");
                let listed = graph.constant(v).filter(|_| !ratio)?.to_ints(LONGEST)?;
                let mut sizes: Vec<i64> = shape.iter().map(Dim::as_const).collect::<Option<_>>()?;
                (listed.len() == axes.len()).then_some(())?;
                axes.iter().zip(listed).for_each(|(&axis, size)| sizes[axis] = size);
                Some(sizes)
            }
        };
        Some(Lists { region, scales, sizes })
    }
}

/// Gives a Resize entries for every axis.
fn resize(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let node = graph.node(n);
    let (Some(x), Some(lists)) = (node.operand(0), Lists::recognize(graph, node)) else { return Ok(false) };
    let (opset, mut attrs, base) = (node.opset, node.attrs.clone(), result_name(graph, node));
    attrs.shift_remove("axes");
    let mut at = Builder::at(graph, n).named(base).opset(opset);
    let mut floats =
        |what: &str, list: Option<Vec<f64>>| list.map(|list| at.floats(what, &list, &[list.len() as i64])).transpose();
    let mut operands = vec![Some(x), floats("region", lists.region)?, floats("scales", lists.scales)?];
    operands.extend(lists.sizes.map(|sizes| at.known_ints("sizes", &sizes)).transpose()?.map(Some));
    while operands.last() == Some(&None) {
        operands.pop();
    }
    at.op("Resize", operands).attrs(attrs).in_place_of(n);
    Ok(true)
}

/// The elements of a constant of float32.
fn single_floats(graph: &Graph, v: ValueId) -> Option<Vec<f64>> {
    graph.constant(v).filter(|c| c.dtype == DType::F32)?.to_floats(LONGEST)
}

/// Whether an operand is there and has no elements, which is the same as being left out.
fn is_empty(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).ty.shape().is_some_and(|shape| shape == [Dim::ZERO])
}

fn result_name(graph: &Graph, node: &Node) -> String {
    node.result(0).map(|y| graph.value(y).name.clone()).unwrap_or_default()
}
