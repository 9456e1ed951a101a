//! Sequences and optionals, from tensors and back: nothing but tensors joins the values of the model.

use super::*;
use relayout_onnx::proto::AttributeProto;
use std::collections::BTreeMap;

fn scalar(s: &mut Sketch, value: i64) -> String {
    s.raw(DataType::Int64, &[], value.to_le_bytes().to_vec())
}

fn element(s: &mut Sketch, dice: &mut Dice<'_>, rank: usize) -> Option<Id> {
    s.choose(dice, |v| v.dtype == DataType::Float && v.rank() >= rank && v.rank() < 6 && !v.constant)
}

/// An op that makes a tensor of the type of `x` from operands without a place among the values.
fn tensor(
    s: &mut Sketch,
    op: &str,
    x: Id,
    inputs: Vec<String>,
    result: (DataType, Vec<i64>),
    attributes: Vec<AttributeProto>,
) -> Option<Id> {
    s.read(x);
    s.op(op, &[x], inputs, &[result], EXACT, attributes)
}

/// A sequence of a value and its negative; one of them, the length and the sequence as one tensor.
pub(super) fn sequence(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = element(s, dice, 1)?;
    let v = s.values[x].clone();
    let y = s.simple("Neg", x, &[], v.shape.clone(), EXACT, vec![])?;
    let names = vec![s.read(x), s.read(y)];
    let sequence = s.helper("SequenceConstruct", names, vec![]);
    let length = (DataType::Int64, vec![]);
    tensor(s, "SequenceLength", x, vec![sequence.clone()], length, vec![])?;
    let joined = [vec![2], v.shape.clone()].concat();
    if Sketch::fits(&joined) {
        let attributes = vec![int("axis", 0), int("new_axis", 1)];
        tensor(s, "ConcatFromSequence", x, vec![sequence.clone()], (DataType::Float, joined), attributes)?;
    }
    let place = scalar(s, dice.pick(&[0, 1, -1]));
    tensor(s, "SequenceAt", x, vec![sequence, place], (DataType::Float, v.shape), vec![])
}

/// A sequence that starts empty and grows and shrinks.
pub(super) fn growing(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = element(s, dice, 1)?;
    let v = s.values[x].clone();
    let perm = dice.permutation(v.rank());
    let y = if v.rank() > 1 { transposed(s, x, &perm)? } else { x };
    let empty = s.helper("SequenceEmpty", vec![], vec![int("dtype", DataType::Float as i64)]);
    let (first, second) = (s.read(x), s.read(y));
    let one = s.helper("SequenceInsert", vec![empty, first], vec![]);
    let start = scalar(s, 0);
    let two = s.helper("SequenceInsert", vec![one, second, start], vec![]);
    let last = scalar(s, -1);
    let left = s.helper("SequenceErase", vec![two, last], vec![]);
    let start = scalar(s, 0);
    let shape = s.values[y].shape.clone();
    tensor(s, "SequenceAt", y, vec![left, start], (DataType::Float, shape), vec![])
}

/// A value taken apart and put together again.
pub(super) fn split_and_joined(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = element(s, dice, 1)?;
    let v = s.values[x].clone();
    let (_, axis) = axis_of(s, dice, x);
    let name = s.read(x);
    let parts = s.helper("SplitToSequence", vec![name], vec![int("axis", axis), int("keepdims", 1)]);
    tensor(s, "ConcatFromSequence", x, vec![parts], (DataType::Float, v.shape), vec![int("axis", axis)])
}

/// A body run on every element of a sequence.
pub(super) fn mapped(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = element(s, dice, 2)?;
    let v = s.values[x].clone();
    let perm = dice.permutation(v.rank());
    let list: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
    let name = s.read(x);
    let sequence = s.helper("SequenceConstruct", vec![name.clone(), name], vec![]);
    let [a, b, c] = ["b", "b", "b"].map(|base| s.name(base));
    let nodes = vec![
        node("Transpose", vec![a.clone()], vec![b.clone()], vec![ints("perm", &list)]),
        node("Relu", vec![b], vec![c.clone()], vec![]),
    ];
    let whole = |name: &str| info(name, DataType::Float, &v.shape, &BTreeMap::new(), false);
    let attributes = vec![body("body", nodes, vec![whole(&a)], vec![whole(&c)])];
    let sequence = s.helper("SequenceMap", vec![sequence], attributes);
    let place = scalar(s, 1);
    tensor(s, "SequenceAt", x, vec![sequence, place], (DataType::Float, permuted(&v.shape, &perm)), vec![])
}

/// A value that might not be there, and is.
pub(super) fn optional(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = element(s, dice, 1)?;
    let shape = s.values[x].shape.clone();
    let name = s.read(x);
    let optional = s.helper("Optional", vec![name], vec![]);
    tensor(s, "OptionalHasElement", x, vec![optional.clone()], (DataType::Bool, vec![]), vec![])?;
    tensor(s, "OptionalGetElement", x, vec![optional], (DataType::Float, shape), vec![])
}
