//! A case of an op as a part of a random model: its node, with the operands that make it valid taken from the model where they can be.
//!
//! An operand that is fed becomes an input or is taken from the values that the model has, reshaped and cut to the extents of the
//! case and clipped to the range of its elements. Most often its axes lie in another order, with a Transpose in front of the
//! node and one back behind it, so that there is something to gain. Constants stay constants.

use super::cards::Made;
use crate::dice::Dice;
use crate::models::ops::transposed;
use crate::models::sketch::{EXACT, Id, MOST_FACTORS, Sketch, Value, float};
use crate::op_cases::case::{Case, Operand, pick};
use relayout_onnx::proto::NodeProto;
use relayout_onnx::proto::tensor_proto::DataType;
use relayout_verify::{Data, Tensor};

/// Ops that only move, compare or select numbers, or round each by itself: what they make of equal numbers is equal.
const EXACT_OPS: &[&str] = &[
    "Abs",
    "Ceil",
    "Clip",
    "CenterCropPad",
    "Compress",
    "Concat",
    "DepthToSpace",
    "Dropout",
    "Expand",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "GlobalMaxPool",
    "Identity",
    "Max",
    "MaxPool",
    "Min",
    "Neg",
    "Pad",
    "Relu",
    "Reshape",
    "ReverseSequence",
    "Round",
    "ScatterND",
    "Sign",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
];

/// Adds the node of a case with these results; the last value that it made.
pub(crate) fn graft(s: &mut Sketch, dice: &mut Dice<'_>, case: &Case, made: &[Made]) -> Option<Id> {
    let exact_op = EXACT_OPS.contains(&case.op) && case.domain.is_empty();
    let (mut names, mut factors, mut order) = (Vec::new(), 1, None);
    for operand in &case.operands {
        let Some(operand) = operand else {
            names.push(String::new());
            continue;
        };
        if operand.constant {
            let as_node = dice.once_in(4);
            names.push(s.known(&operand.tensor, as_node));
            continue;
        }
        let x = placed(s, dice, case, operand, exact_op, &mut order)?;
        factors = factors.max(s.values[x].factors);
        names.push(s.read(x));
    }
    let outputs: Vec<String> = made.iter().map(|_| s.name("v")).collect();
    s.push(NodeProto {
        op_type: Some(case.op.to_owned()),
        domain: (!case.domain.is_empty()).then(|| case.domain.to_owned()),
        input: names,
        output: outputs.clone(),
        attribute: case.attrs.clone(),
        ..NodeProto::default()
    });
    let first = s.values.len();
    for (name, result) in outputs.into_iter().zip(made) {
        let factors = if exact_op { factors } else { result.factors() };
        s.values.push(Value {
            name,
            dtype: result.dtype,
            shape: result.shape.clone(),
            exact: exact_op || result.dtype != DataType::Float,
            factors,
            read: false,
            constant: false,
        });
    }
    // Back into the order that the first operand was stored in.
    let order = order.unwrap_or_default();
    let mut last = s.values.len() - 1;
    for result in first..first + made.len() {
        if order.len() > 1 && s.values[result].rank() == order.len() && !dice.once_in(4) {
            last = transposed(s, result, &inverse(&order)).unwrap_or(last);
        }
    }
    Some(last)
}

/// The operand as a value of the model: stored with its axes in some order and brought into its own by a Transpose, most often.
/// `order` is that of the first operand (empty if it is its own), which others share if they can.
fn placed(
    s: &mut Sketch,
    dice: &mut Dice<'_>,
    case: &Case,
    operand: &Operand,
    as_it_is: bool,
    order: &mut Option<Vec<usize>>,
) -> Option<Id> {
    let rank = operand.tensor.shape().len();
    let turned = rank > 1 && !dice.once_in(5);
    let own = turned.then(|| match &*order {
        Some(first) if first.len() == rank && !dice.once_in(3) => first.clone(),
        _ => dice.permutation(rank),
    });
    order.get_or_insert_with(|| own.clone().unwrap_or_default());
    let tensor = own.as_ref().map_or_else(|| operand.tensor.clone(), |own| stored(&operand.tensor, own));
    let taken = taken(s, dice, case, &tensor, as_it_is);
    let x = taken.unwrap_or_else(|| s.fed(&tensor));
    match own {
        Some(own) => transposed(s, x, &own),
        None => Some(x),
    }
}

/// A value that the model has, if it has one that can be made to fit in place of a tensor.
fn taken(s: &mut Sketch, dice: &mut Dice<'_>, case: &Case, tensor: &Tensor, as_it_is: bool) -> Option<Id> {
    let Data::F32(elements) = tensor.data() else { return None };
    if case.partial || dice.below(2) == 0 {
        return None;
    }
    let shape = tensor.shape().to_vec();
    let wanted: i64 = shape.iter().product();
    let suits = |v: &Value| v.dtype == DataType::Float && v.exact && !v.constant && v.factors <= MOST_FACTORS;
    s.forced = None;
    let fitting = s.choose(dice, |v| suits(v) && v.shape == shape);
    let x = if let Some(x) = fitting {
        x
    } else {
        let x = s.choose(dice, |v| suits(v) && v.elements() >= wanted && wanted > 0)?;
        reshaped(s, x, &shape)?
    };
    if as_it_is {
        return Some(x);
    }
    let (low, high) = elements.iter().fold((f32::MAX, f32::MIN), |(low, high), &e| (low.min(e), high.max(e)));
    clipped(s, x, low, high)
}

/// The leading elements of a value, as a value of this shape.
fn reshaped(s: &mut Sketch, x: Id, shape: &[i64]) -> Option<Id> {
    let wanted: i64 = shape.iter().product();
    let mut x = x;
    if s.values[x].elements() != wanted {
        let (all, list) = (s.values[x].elements(), s.ints(&[-1]));
        x = s.simple("Reshape", x, &[list], vec![all], EXACT, vec![])?;
        let attributes = |s: &Sketch| {
            let ints = crate::models::sketch::ints;
            if s.opset < 10 { vec![ints("starts", &[0]), ints("ends", &[wanted])] } else { vec![] }
        };
        let attributes = attributes(s);
        let more = if s.opset < 10 { vec![] } else { vec![s.ints(&[0]), s.ints(&[wanted])] };
        x = s.simple("Slice", x, &more, vec![wanted], EXACT, attributes)?;
    }
    let list = s.ints(shape);
    s.simple("Reshape", x, &[list], shape.to_vec(), EXACT, vec![])
}

fn clipped(s: &mut Sketch, x: Id, low: f32, high: f32) -> Option<Id> {
    let shape = s.values[x].shape.clone();
    let y = if s.opset < 11 {
        s.simple("Clip", x, &[], shape, EXACT, vec![float("min", low), float("max", high)])
    } else {
        let mut bound = |v: f32| s.raw(DataType::Float, &[], v.to_le_bytes().to_vec());
        let ends = [bound(low), bound(high)];
        s.simple("Clip", x, &ends, shape, EXACT, vec![])
    }?;
    s.values[y].factors = 1;
    Some(y)
}

pub(crate) fn inverse(perm: &[usize]) -> Vec<usize> {
    (0..perm.len()).map(|axis| perm.iter().position(|&p| p == axis).unwrap_or(axis)).collect()
}

/// What a Transpose by `perm` makes this tensor of.
fn stored(tensor: &Tensor, perm: &[usize]) -> Tensor {
    let shape = tensor.shape();
    let before: Vec<i64> = inverse(perm).iter().map(|&axis| shape[axis]).collect();
    let strides: Vec<usize> = (0..shape.len()).map(|k| shape[k + 1..].iter().product::<i64>() as usize).collect();
    // Axis `perm[k]` of what is stored is axis k of the operand.
    let mut picks = vec![0usize];
    for (axis, &extent) in before.iter().enumerate() {
        let stride = inverse(perm).get(axis).map_or(0, |&k| strides[k]);
        picks = picks.iter().flat_map(|&at| (0..extent as usize).map(move |i| at + i * stride)).collect();
    }
    Tensor::new(tensor.name(), before, pick(tensor.data(), &picks)).expect("a permutation keeps the number of elements")
}
