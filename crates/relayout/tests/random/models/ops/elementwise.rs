//! Ops that read their operands element by element, broadcast ones too.

use super::*;

pub(super) fn unary(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 0)?;
    let shape = s.values[x].shape.clone();
    match dice.below(8) {
        0 => s.simple("Relu", x, &[], shape, EXACT, vec![]),
        1 => s.simple("Neg", x, &[], shape, EXACT, vec![]),
        2 => s.simple("Abs", x, &[], shape, EXACT, vec![]),
        3 => s.simple("Sigmoid", x, &[], shape, ROUNDS, vec![]),
        4 => s.simple("LeakyRelu", x, &[], shape, EXACT, vec![float("alpha", 0.25)]),
        5 => s.simple("Identity", x, &[], shape, EXACT, vec![]),
        6 => s.simple("Tanh", x, &[], shape, ROUNDS, vec![]),
        _ => s.simple("Dropout", x, &[], shape, EXACT, vec![]),
    }
}

pub(super) fn clip(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 0)?;
    let shape = s.values[x].shape.clone();
    if s.opset < 11 {
        return s.simple("Clip", x, &[], shape, EXACT, vec![float("min", -0.5), float("max", 1.0)]);
    }
    let bound = |s: &mut Sketch, v: f32| s.raw(DataType::Float, &[], v.to_le_bytes().to_vec());
    let low = if dice.once_in(3) { String::new() } else { bound(s, -0.5) };
    let high = bound(s, 1.0);
    s.simple("Clip", x, &[low, high], shape, EXACT, vec![])
}

pub(super) fn cast(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 0)?;
    let v = s.values[x].clone();
    let name = s.read(x);
    let to = match (v.dtype, v.exact) {
        (DataType::Float, true) => DataType::Int32,
        _ => DataType::Float,
    };
    let y = s.op("Cast", &[x], vec![name], &[(to, v.shape.clone())], EXACT, vec![int("to", to as i64)])?;
    if to == DataType::Float || dice.once_in(3) {
        return Some(y);
    }
    let name = s.read(y);
    s.op("Cast", &[y], vec![name], &[(v.dtype, v.shape)], EXACT, vec![int("to", v.dtype as i64)])
}

/// A shape that broadcasts to `shape`: some leading axes gone, some others of extent 1.
pub(super) fn broadcasting(dice: &mut Dice<'_>, shape: &[i64]) -> Vec<i64> {
    let keep = match dice.below(4) {
        0 => shape.len(),
        1 => 1.min(shape.len()),
        _ => dice.below(shape.len() + 1),
    };
    shape[shape.len() - keep..].iter().map(|&d| if dice.once_in(2) { 1 } else { d }).collect()
}

pub(super) fn two(s: &mut Sketch, op: &str, x: Id, y: Id, shape: Vec<i64>) -> Option<Id> {
    let inputs = vec![s.values[x].name.clone(), s.values[y].name.clone()];
    let effect = if op == "Mul" { PRODUCT } else { EXACT };
    let dtype = s.values[x].dtype;
    s.op(op, &[x, y], inputs, &[(dtype, shape)], effect, vec![])
}

/// An op with a constant that broadcasts; constants are shared now and then.
pub(super) fn constant_operand(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 0)?;
    let shape = s.values[x].shape.clone();
    let op = dice.pick(&["Add", "Mul", "Sub", "Max", "PRelu"]);
    let wanted = broadcasting(dice, &shape);
    let shared = (0..s.values.len())
        .rev()
        .find(|&i| s.values[i].constant && broadcast(&shape, &s.values[i].shape).as_deref() == Some(&shape));
    let c = match shared.filter(|_| dice.once_in(3)) {
        Some(c) => c,
        None => s.constant(dice, &wanted),
    };
    if dice.once_in(3) && op != "PRelu" { two(s, op, c, x, shape) } else { two(s, op, x, c, shape) }
}

pub(super) fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |s: &[i64], i: usize| if i + s.len() >= rank { s[i + s.len() - rank] } else { 1 };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y || y == 1 => Some(x),
            (1, y) => Some(y),
            _ => None,
        })
        .collect()
}

pub(super) fn binary(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 0)?;
    let shape = s.values[x].shape.clone();
    let op = dice.pick(&["Add", "Mul", "Sub", "Min"]);
    let last = s.values.len();
    let y = s.choose(dice, |v| v.dtype == DataType::Float && !v.constant && broadcast(&shape, &v.shape).is_some())?;
    let others: Vec<Id> = (0..last)
        .filter(|&i| i != x && s.values[i].dtype == DataType::Float && broadcast(&shape, &s.values[i].shape).is_some())
        .collect();
    let y = if y == x && !others.is_empty() { others[dice.below(others.len())] } else { y };
    let result = broadcast(&shape, &s.values[y].shape)?;
    two(s, op, x, y, result)
}

pub(super) fn choose_where(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.exact && !v.constant)?;
    let shape = s.values[x].shape.clone();
    let limit = broadcasting(dice, &shape);
    let c = s.constant(dice, &limit);
    let names = vec![s.read(x), s.read(c)];
    let less = s.op("Less", &[x, c], names, &[(DataType::Bool, shape.clone())], EXACT, vec![])?;
    let names = vec![s.read(less), s.read(x), s.read(c)];
    s.op("Where", &[less, x, c], names, &[(DataType::Float, shape)], EXACT, vec![])
}

/// Quantization and back, by one scale or by one per index of an axis.
pub(super) fn quantize(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.exact && v.rank() > 0 && !v.constant)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    if s.opset < 10 {
        return None;
    }
    let per_axis = s.opset >= 13 && dice.once_in(2);
    let (dims, n) = if per_axis { (vec![v.shape[axis]], v.shape[axis]) } else { (vec![], 1) };
    let scales = (0..n).flat_map(|i| (0.0625 * (1 + i % 3) as f32).to_le_bytes()).collect();
    let scale = s.raw(DataType::Float, &dims, scales);
    let zero = s.raw(DataType::Uint8, &dims, (0..n).map(|i| 120 + (i % 64) as u8).collect());
    let attributes = if per_axis { vec![int("axis", said)] } else { vec![] };
    let inputs = vec![v.name.clone(), scale.clone(), zero.clone()];
    let q = s.op("QuantizeLinear", &[x], inputs, &[(DataType::Uint8, v.shape.clone())], EXACT, attributes.clone())?;
    let mut y = q;
    if dice.once_in(3) {
        let perm = dice.permutation(v.rank());
        if v.rank() > 1 && !per_axis {
            y = transposed(s, q, &perm)?;
        }
    }
    let inputs = vec![s.read(y), scale, zero];
    let shape = s.values[y].shape.clone();
    s.op("DequantizeLinear", &[y], inputs, &[(DataType::Float, shape)], EXACT, attributes)
}
