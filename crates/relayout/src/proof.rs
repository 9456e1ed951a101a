//! What a result says of itself, so that a program that shares no code with this one can check that it computes what its input
//! computed: which value of the input each of its values is, and how it lies. It is taken from the graph as the passes leave it
//! and as export writes it, round by round.

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Op, ValueId};
use relayout_ir::layout::{Factor, Layout};
use relayout_onnx::export::{WrittenGraph, WrittenValue};
use relayout_onnx::proto::GraphProto;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use crate::unproved::Unproved;

/// The version of the format.
const VERSION: u32 = 1;

/// A digit of an axis: (axis, extent, stride). An extent of -1 is all that is left of the axis.
type Digit = (u32, i64, i64);

/// A proof, as it is stored in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Proof {
    /// The version of the format.
    pub version: u32,
    /// Sizes of symbolic dims at which shapes that do not factor may be looked at.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, i64>,
    /// Values of the main graph, in the order in which nodes make them.
    pub values: Vec<Claim>,
}

impl Proof {
    /// A proof without claims.
    pub(crate) fn of(sizes: BTreeMap<String, i64>) -> Proof {
        Proof { version: VERSION, sizes, values: Vec::new() }
    }
}

/// What a proof says of one value of the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Claim {
    /// Its name in the result.
    pub value: String,
    /// The value of the input that it is, if the names differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
    /// Per dim, outermost first, the digits of that value's axes, if it lies otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lies: Option<Vec<Vec<Digit>>>,
}

/// Ops that scale or shift.
const SCALES: &[&str] = &["BatchNormalization", "Add", "Sub", "Mul", "Div", "Neg"];

/// Ops that a convolution may do at its end.
const ACTIVATIONS: &[&str] = &["Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Clip"];

/// A value of the input, and how it lies.
#[derive(Clone, Debug)]
struct Link {
    is: String,
    lies: Option<Vec<Vec<Digit>>>,
    /// The type and the extents that the model has it with, if they are known.
    dtype: Option<DType>,
    shape: Option<Vec<Dim>>,
    /// Values that scales and shifts behind it make, and the activation behind these. Where one of them is gone, or something else makes its value, it may have gone
    /// into the weights of this one, which then is another value.
    scaled: Arc<[String]>,
}

#[expect(clippy::option_option, reason = "the inner one is a value that lies as it did")]
impl Link {
    /// How the value lies that a round wrote with this layout. A layout of other axes than the file had before says nothing, unless
    /// the axes that came or went have one place.
    fn laid(&self, value: &WrittenValue, layout: &Layout) -> Option<Option<Vec<Vec<Digit>>>> {
        let now = value.ty.shape()?;
        let before = match (&self.lies, &self.shape) {
            (Some(lies), _) if lies.len() == now.len() => Some(lies.clone()),
            (None, Some(shape)) if shape.len() == now.len() => None,
            (lies, _) if layout.is_row_major() => lies.clone(),
            (None, Some(shape)) => Some(without_units(shape, now)?),
            _ => return None,
        };
        laid(before.as_ref(), layout)
    }
}

/// Links of the file that the next round reads, by name.
#[derive(Clone, Debug)]
pub(crate) struct Links(BTreeMap<String, Link>);

impl Links {
    /// Every value of a model is itself. `typed` has the types of its values, as far as they follow.
    pub(crate) fn new(graph: &Graph, typed: &Graph) -> Links {
        let made = graph.nodes().filter(|&n| matches!(graph.node(n).op, Op::Onnx(_)));
        let results = made.flat_map(|n| graph.node(n).outputs.iter().flatten());
        let link = |v: ValueId| {
            let name = &graph.value(v).name;
            let ty = typed.by_name(name).map_or(&graph.value(v).ty, |v| &typed.value(v).ty);
            let (dtype, shape) = (ty.dtype(), ty.shape().map(<[Dim]>::to_vec));
            (name.clone(), Link { is: name.clone(), lies: None, dtype, shape, scaled: scaled(graph, v) })
        };
        Links(results.map(|&v| link(v)).collect())
    }

    /// The links of what a round wrote, from those of what it read.
    pub(crate) fn follow(&mut self, written: &WrittenGraph) {
        let mut next = BTreeMap::new();
        for (name, value) in &written.values {
            let full = |link: &&Link| {
                let typed = link.dtype.is_none() || link.dtype == value.ty.dtype();
                typed && is_full(value, link.shape.as_deref().and_then(Dim::product).as_ref())
            };
            let link = self.0.get(&value.value).filter(|_| !value.differs).filter(full).zip(value.layout.as_ref());
            let link = link.and_then(|(link, layout)| Some(Link { lies: link.laid(value, layout)?, ..link.clone() }));
            next.extend(link.map(|link| (name.clone(), link)));
        }
        self.0 = next;
    }

    /// The claims about a graph that was written.
    pub(crate) fn proof(&self, graph: Option<&GraphProto>, sizes: BTreeMap<String, i64>) -> Proof {
        let nodes = || graph.iter().flat_map(|g| &g.node);
        let names = || nodes().flat_map(|node| &node.output);
        let stays = |op: &str| SCALES.contains(&op) || ACTIVATIONS.contains(&op);
        let scales = nodes().filter(|node| stays(node.op_type())).flat_map(|node| &node.output);
        let made: BTreeSet<&String> = scales.filter_map(|name| self.0.get(name)).map(|link| &link.is).collect();
        let claim = |name: &String| {
            let link = self.0.get(name).filter(|link| link.scaled.iter().all(|scaled| made.contains(scaled)))?;
            let is = (link.is != *name).then(|| link.is.clone());
            Some(Claim { value: name.clone(), is, lies: link.lies.clone() })
        };
        Proof { values: names().filter_map(claim).collect(), ..Proof::of(sizes) }
    }
}

/// Whether a value is stored without slots, so that it has as many elements as it `was`: digits don't say what slots hold.
fn is_full(value: &WrittenValue, was: Option<&Dim>) -> bool {
    let stored = value.stored.as_deref().and_then(Dim::product);
    let count = value.ty.shape().and_then(Dim::product);
    stored.is_some() && stored == count && (was.is_none() || was == count.as_ref())
}

/// The results of the scales and shifts that alone read a value, one behind the other or with views between them, and of the
/// activation behind these.
fn scaled(graph: &Graph, v: ValueId) -> Arc<[String]> {
    let (mut found, mut at) = (Vec::new(), v);
    while let Some(u) = graph.only_use(at).filter(|_| !graph.is_output(at)) {
        let node = graph.node(u.node);
        let Some(y) = node.result(0) else { break };
        match node.onnx() {
            // A Cast to the same type and a Slice of all are views.
            Some("Transpose" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" | "Identity" | "Cast" | "Slice") => {}
            Some(op) if SCALES.contains(&op) => found.push(graph.value(y).name.clone()),
            Some(op) if ACTIVATIONS.contains(&op) => {
                found.push(graph.value(y).name.clone());
                break;
            }
            _ => break,
        }
        at = y;
    }
    found.into()
}

/// The axes of a value, in the digits of the same value with other axes, where the two differ by axes of one place.
fn without_units(shape: &[Dim], now: &[Dim]) -> Option<Vec<Vec<Digit>>> {
    let mut axes = (0_u32..).zip(shape).filter(|(_, extent)| !extent.is_one());
    let mut digits = Vec::new();
    for extent in now {
        if extent.is_one() {
            digits.push(Vec::new());
            continue;
        }
        let (axis, _) = axes.next().filter(|(_, before)| *before == extent)?;
        digits.push(vec![(axis, -1, 1)]);
    }
    axes.next().is_none().then_some(digits)
}

/// How a value lies that lies so in a file whose value lies so; `None` where digits can't say it.
#[expect(clippy::option_option, reason = "the inner one is a value that lies as it did")]
pub(crate) fn laid(before: Option<&Vec<Vec<Digit>>>, layout: &Layout) -> Option<Option<Vec<Vec<Digit>>>> {
    if layout.is_row_major() {
        return Some(before.cloned());
    }
    if (0..layout.rank()).any(|axis| layout.slot_map(axis).is_some()) {
        return None;
    }
    let digit = |f: &Factor| -> Option<Vec<Digit>> {
        let (extent, stride) = (f.modulo.map_or(-1, |m| m as i64), f.div as i64);
        let Some(before) = before else { return Some(vec![(u32::from(f.axis), extent, stride)]) };
        match before.get(usize::from(f.axis))?.as_slice() {
            digits if f.is_whole() => Some(digits.to_vec()),
            [(axis, -1, inner)] => Some(vec![(*axis, extent, stride * inner)]),
            [] => Some(Vec::new()),
            _ => None,
        }
    };
    Some(Some(layout.factors().iter().map(digit).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_one_place_come_and_go() {
        let dims = |extents: &[i64]| extents.iter().map(|&extent| Dim::from(extent)).collect::<Vec<_>>();
        let axis = |axis| vec![(axis, -1, 1)];
        let found = without_units(&dims(&[1, 384, 30]), &dims(&[1, 384, 1, 30]));
        assert_eq!(found, Some(vec![vec![], axis(1), vec![], axis(2)]));
        assert_eq!(without_units(&dims(&[1, 6, 1, 5]), &dims(&[6, 5])), Some(vec![axis(1), axis(3)]));
        for other in [&[1, 384, 1, 31][..], &[384, 1], &[30, 1, 384, 1], &[1, 384, 30, 2]] {
            assert_eq!(without_units(&dims(&[1, 384, 30]), &dims(other)), None, "{other:?}");
        }
    }
}
