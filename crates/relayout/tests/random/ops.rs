//! The op families that a random model grows by. Each takes its operands and attributes from the dice and adds nothing where they do
//! not fit; the form of an op follows the operator set.

use crate::recipe::Dice;
use crate::sketch::{CONTRACTS, EXACT, Id, PRODUCT, ROUNDS, Sketch, float, int, ints, text};
use relayout_onnx::proto::tensor_proto::DataType;

/// Adds one op or a few; the last value that it made.
pub(crate) type Family = fn(&mut Sketch, &mut Dice<'_>) -> Option<Id>;

/// Families, those listed more than once drawn more often.
pub(crate) const FAMILIES: &[Family] = &[
    transpose, transpose, transpose, transpose, wrapped, wrapped, wrapped, unary, unary, constant_operand, constant_operand,
    binary, binary, concat, split, slice, pad, reduce, reduce, softmax, reshape, reshape, squeeze, unsqueeze, gather, expand,
    tile, conv, pool, batch_norm, matmul, gemm, cast, clip, arg, top_k, cum_sum, flatten, by_shape, quantize, choose_where,
    transposed_constant, global_pool, layer_norm, space,
];

fn permuted(shape: &[i64], perm: &[usize]) -> Vec<i64> {
    perm.iter().map(|&p| shape[p]).collect()
}

fn transposed(s: &mut Sketch, x: Id, perm: &[usize]) -> Option<Id> {
    let shape = permuted(&s.values[x].shape, perm);
    let list: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
    let reversed = perm.iter().rev().copied().eq(0..perm.len());
    let attributes = if reversed { vec![] } else { vec![ints("perm", &list)] };
    s.simple("Transpose", x, &[], shape, EXACT, attributes)
}

fn transpose(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 2)?;
    let perm = dice.permutation(s.values[x].rank());
    transposed(s, x, &perm)
}

/// A Transpose, an op or two, and the Transpose back.
fn wrapped(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    const INNER: &[Family] = &[unary, constant_operand, binary, pad, reduce, concat, softmax, slice, tile, clip, expand, cast];
    let x = s.float(dice, 2)?;
    let rank = s.values[x].rank();
    let perm = dice.permutation(rank);
    let mut y = transposed(s, x, &perm)?;
    for _ in 0..=dice.below(2) {
        s.forced = Some(y);
        y = dice.pick(INNER)(s, dice).unwrap_or(y);
        s.forced = None;
    }
    if s.values[y].rank() != rank {
        return Some(y);
    }
    let mut back = vec![0; rank];
    for (i, &p) in perm.iter().enumerate() {
        back[p] = i;
    }
    transposed(s, y, &back)
}

fn transposed_constant(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let shape = s.values[x].shape.clone();
    let perm = dice.permutation(shape.len());
    let mut before = vec![0; shape.len()];
    for (i, &p) in perm.iter().enumerate() {
        before[p] = shape[i];
    }
    let c = s.constant(dice, &before);
    let t = transposed(s, c, &perm)?;
    two(s, "Add", x, t, shape)
}

fn unary(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

fn clip(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

fn cast(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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
fn broadcasting(dice: &mut Dice<'_>, shape: &[i64]) -> Vec<i64> {
    let keep = match dice.below(4) {
        0 => shape.len(),
        1 => 1.min(shape.len()),
        _ => dice.below(shape.len() + 1),
    };
    shape[shape.len() - keep..].iter().map(|&d| if dice.once_in(2) { 1 } else { d }).collect()
}

fn two(s: &mut Sketch, op: &str, x: Id, y: Id, shape: Vec<i64>) -> Option<Id> {
    let inputs = vec![s.values[x].name.clone(), s.values[y].name.clone()];
    let effect = if op == "Mul" { PRODUCT } else { EXACT };
    let dtype = s.values[x].dtype;
    s.op(op, &[x, y], inputs, &[(dtype, shape)], effect, vec![])
}

/// An op with a constant that broadcasts; constants are shared now and then.
fn constant_operand(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 0)?;
    let shape = s.values[x].shape.clone();
    let op = dice.pick(&["Add", "Mul", "Sub", "Max", "PRelu"]);
    let wanted = broadcasting(dice, &shape);
    let shared = (0..s.values.len()).rev().find(|&i| s.values[i].constant && broadcast(&shape, &s.values[i].shape).as_deref() == Some(&shape));
    let c = match shared.filter(|_| dice.once_in(3)) {
        Some(c) => c,
        None => s.constant(dice, &wanted),
    };
    if dice.once_in(3) && op != "PRelu" { two(s, op, c, x, shape) } else { two(s, op, x, c, shape) }
}

fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
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

fn binary(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 0)?;
    let shape = s.values[x].shape.clone();
    let op = dice.pick(&["Add", "Mul", "Sub", "Min"]);
    let last = s.values.len();
    let y = s.choose(dice, |v| v.dtype == DataType::Float && !v.constant && broadcast(&shape, &v.shape).is_some())?;
    let others: Vec<Id> = (0..last).filter(|&i| i != x && s.values[i].dtype == DataType::Float && broadcast(&shape, &s.values[i].shape).is_some()).collect();
    let y = if y == x && !others.is_empty() { others[dice.below(others.len())] } else { y };
    let result = broadcast(&shape, &s.values[y].shape)?;
    two(s, op, x, y, result)
}

fn choose_where(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.exact && !v.constant)?;
    let shape = s.values[x].shape.clone();
    let limit = broadcasting(dice, &shape);
    let c = s.constant(dice, &limit);
    let names = vec![s.read(x), s.read(c)];
    let less = s.op("Less", &[x, c], names, &[(DataType::Bool, shape.clone())], EXACT, vec![])?;
    let names = vec![s.read(less), s.read(x), s.read(c)];
    s.op("Where", &[less, x, c], names, &[(DataType::Float, shape)], EXACT, vec![])
}

fn axis_of(s: &Sketch, dice: &mut Dice<'_>, x: Id) -> (usize, i64) {
    let rank = s.values[x].rank();
    let axis = dice.below(rank);
    let said = if dice.once_in(3) { axis as i64 - rank as i64 } else { axis as i64 };
    (axis, said)
}

fn concat(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let (axis, said) = axis_of(s, dice, x);
    let v = s.values[x].clone();
    let beside = |o: &crate::sketch::Value| {
        o.dtype == v.dtype && o.rank() == v.rank() && (0..v.rank()).all(|i| i == axis || o.shape[i] == v.shape[i])
    };
    let mut parts = vec![x];
    for _ in 0..=dice.below(2) {
        if v.dtype == DataType::Float && dice.once_in(4) {
            let shape = v.shape.clone();
            parts.push(s.constant(dice, &shape));
        } else {
            parts.push(s.choose(dice, beside)?);
        }
    }
    let mut shape = v.shape.clone();
    shape[axis] = parts.iter().map(|&p| s.values[p].shape[axis]).sum();
    let names = parts.iter().map(|&p| s.values[p].name.clone()).collect();
    s.op("Concat", &parts, names, &[(v.dtype, shape)], EXACT, vec![int("axis", said)])
}

fn split(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let (axis, said) = axis_of(s, dice, x);
    let v = s.values[x].clone();
    let extent = v.shape[axis];
    if extent < 2 {
        return None;
    }
    let even = extent % 2 == 0 && dice.once_in(2);
    let first = if even { extent / 2 } else { 1 + dice.below(extent as usize - 1) as i64 };
    let sizes = [first, extent - first];
    let results: Vec<_> = sizes
        .iter()
        .map(|&n| {
            let mut shape = v.shape.clone();
            shape[axis] = n;
            (v.dtype, shape)
        })
        .collect();
    let mut inputs = vec![v.name.clone()];
    let mut attributes = vec![int("axis", said)];
    match (even, s.opset) {
        (true, 18..) => attributes.push(int("num_outputs", 2)),
        (true, _) => {}
        (false, 13..) => inputs.push(s.ints(&sizes)),
        (false, _) => attributes.push(ints("split", &sizes)),
    }
    s.op("Split", &[x], inputs, &results, EXACT, attributes)
}

fn slice(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    let extent = v.shape[axis];
    let start = dice.below(extent as usize) as i64;
    let mut shape = v.shape.clone();
    let step = if s.opset >= 10 { dice.pick(&[1, 1, 2, -1]) } else { 1 };
    let end = if step < 0 { i64::MIN } else { dice.pick(&[i64::MAX, extent, start + 1]) };
    shape[axis] = if step < 0 { start + 1 } else { (end.min(extent) - start + step - 1) / step };
    if s.opset < 10 {
        let attributes = vec![ints("starts", &[start]), ints("ends", &[end]), ints("axes", &[axis as i64])];
        return s.simple("Slice", x, &[], shape, EXACT, attributes);
    }
    let whole = dice.once_in(4);
    let more = if whole {
        // Every axis by its position, none of them named.
        let at = |own: i64, other: i64| (0..v.rank()).map(|i| if i == axis { own } else { other }).collect::<Vec<_>>();
        if step != 1 {
            return None;
        }
        vec![s.ints(&at(start, 0)), s.ints(&at(end, i64::MAX))]
    } else {
        vec![s.ints(&[start]), s.ints(&[end]), s.ints(&[said]), s.ints(&[step])]
    };
    s.simple("Slice", x, &more, shape, EXACT, vec![])
}

fn pad(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let rank = v.rank();
    let mode = dice.pick(&["constant", "constant", "edge", "reflect"]);
    let room = |axis: usize| if mode == "reflect" { (v.shape[axis] - 1).min(2) } else { 2 };
    let (a, b) = (dice.below(rank), dice.below(rank));
    let mut pads = vec![0i64; 2 * rank];
    pads[a] = (1 + dice.below(2) as i64).min(room(a));
    pads[rank + b] = (dice.below(3) as i64).min(room(b));
    let shape: Vec<i64> = (0..rank).map(|i| v.shape[i] + pads[i] + pads[rank + i]).collect();
    if s.opset < 11 {
        return s.simple("Pad", x, &[], shape, EXACT, vec![ints("pads", &pads), text("mode", mode), float("value", 0.5)]);
    }
    let value = if dice.once_in(2) { s.raw(DataType::Float, &[], 0.5f32.to_le_bytes().to_vec()) } else { String::new() };
    let more = if s.opset >= 18 && dice.once_in(2) {
        let mut axes = vec![a, b];
        axes.dedup();
        let listed: Vec<i64> = axes.iter().map(|&i| pads[i]).chain(axes.iter().map(|&i| pads[rank + i])).collect();
        let axes: Vec<i64> = axes.iter().map(|&i| i as i64).collect();
        vec![s.ints(&listed), value, s.ints(&axes)]
    } else if value.is_empty() {
        vec![s.ints(&pads)]
    } else {
        vec![s.ints(&pads), value]
    };
    s.simple("Pad", x, &more, shape, EXACT, vec![text("mode", mode)])
}

fn reduce(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let op = dice.pick(&["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]);
    let mut axes: Vec<usize> = (0..=dice.below(2)).map(|_| dice.below(v.rank())).collect();
    axes.sort_unstable();
    axes.dedup();
    let all = dice.once_in(8);
    if all {
        axes = (0..v.rank()).collect();
    }
    let keep = dice.below(2) == 0;
    let shape: Vec<i64> = (0..v.rank())
        .filter_map(|i| match (axes.contains(&i), keep) {
            (false, _) => Some(v.shape[i]),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect();
    let negative = dice.once_in(3);
    let said: Vec<i64> = axes.iter().map(|&a| a as i64 - if negative { v.rank() as i64 } else { 0 }).collect();
    let by_input = s.opset >= if op == "ReduceSum" { 13 } else { 18 };
    let mut attributes = Vec::new();
    if !keep || dice.once_in(2) {
        attributes.push(int("keepdims", i64::from(keep)));
    }
    let more = match (all, by_input) {
        (true, _) => vec![],
        (false, true) => vec![s.ints(&said)],
        (false, false) => {
            attributes.push(ints("axes", &said));
            vec![]
        }
    };
    let effect = if op == "ReduceMax" || op == "ReduceMin" { EXACT } else { ROUNDS };
    s.simple(op, x, &more, shape, effect, attributes)
}

fn softmax(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let shape = s.values[x].shape.clone();
    let (_, said) = axis_of(s, dice, x);
    let op = dice.pick(&["Softmax", "LogSoftmax"]);
    let attributes = if dice.once_in(4) { vec![] } else { vec![int("axis", said)] };
    if attributes.is_empty() && s.opset < 13 && shape.len() < 2 {
        return None;
    }
    s.simple(op, x, &[], shape, ROUNDS, attributes)
}

fn arg(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.exact && v.rank() > 0 && !v.constant)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    let keep = dice.below(2) == 0;
    let mut shape = v.shape.clone();
    if keep {
        shape[axis] = 1;
    } else {
        shape.remove(axis);
    }
    let op = dice.pick(&["ArgMax", "ArgMin"]);
    let said = if s.opset < 11 { axis as i64 } else { said };
    let attributes = vec![int("axis", said), int("keepdims", i64::from(keep))];
    let name = s.read(x);
    s.op(op, &[x], vec![name], &[(DataType::Int64, shape)], EXACT, attributes)
}

fn top_k(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.exact && v.rank() > 0 && !v.constant)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    let k = 1 + dice.below(v.shape[axis] as usize) as i64;
    let mut shape = v.shape.clone();
    shape[axis] = k;
    let mut inputs = vec![s.read(x)];
    let mut attributes = vec![int("axis", if s.opset < 11 { axis as i64 } else { said })];
    if s.opset >= 10 {
        inputs.push(s.ints(&[k]));
    } else {
        attributes.push(int("k", k));
    }
    let results = [(DataType::Float, shape.clone()), (DataType::Int64, shape)];
    s.op("TopK", &[x], inputs, &results, EXACT, attributes)
}

fn cum_sum(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let shape = s.values[x].shape.clone();
    let (_, said) = axis_of(s, dice, x);
    if s.opset < 11 {
        return None;
    }
    let axis = s.raw(DataType::Int64, &[], said.to_le_bytes().to_vec());
    let attributes = vec![int("exclusive", dice.below(2) as i64), int("reverse", dice.below(2) as i64)];
    s.simple("CumSum", x, &[axis], shape, ROUNDS, attributes)
}

fn reshape(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let v = s.values[x].clone();
    let mut shape = v.shape.clone();
    let mut target;
    match dice.below(4) {
        // Two neighbours as one.
        0 if shape.len() >= 2 => {
            let at = dice.below(shape.len() - 1);
            let n = shape.remove(at + 1);
            shape[at] *= n;
            target = shape.clone();
        }
        // One axis as two.
        1 => {
            let at = dice.below(shape.len());
            let digit = (2..=shape[at]).find(|d| shape[at] % d == 0).unwrap_or(1);
            shape[at] /= digit;
            let place = at + 1;
            shape.insert(place, digit);
            target = shape.clone();
        }
        // Everything as two axes that cut where they may.
        2 => {
            let n = v.elements();
            let outer = dice.pick(&[1, 2, 3, 4, 6]);
            if n % outer != 0 {
                return None;
            }
            shape = vec![outer, n / outer];
            target = shape.clone();
        }
        // The same numbers in another order.
        _ => {
            shape.rotate_left(1);
            target = shape.clone();
        }
    }
    let at = dice.below(target.len() * 2);
    if at < target.len() {
        target[at] = -1;
    }
    if dice.once_in(3) && shape.first() == v.shape.first() {
        target[0] = 0;
    }
    let list = s.ints(&target);
    s.simple("Reshape", x, &[list], shape, EXACT, vec![])
}

fn flatten(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let axis = dice.below(v.rank() + 1);
    let shape = vec![v.shape[..axis].iter().product(), v.shape[axis..].iter().product()];
    s.simple("Flatten", x, &[], shape, EXACT, vec![int("axis", axis as i64)])
}

fn squeeze(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.shape.contains(&1) && !v.constant)?;
    let v = s.values[x].clone();
    let ones: Vec<usize> = (0..v.rank()).filter(|&i| v.shape[i] == 1).collect();
    let axis = dice.pick(&ones);
    let mut shape = v.shape.clone();
    shape.remove(axis);
    list_of_axes(s, "Squeeze", x, &[axis as i64], shape)
}

fn unsqueeze(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 0)?;
    let mut shape = s.values[x].shape.clone();
    let axis = dice.below(shape.len() + 1);
    shape.insert(axis, 1);
    list_of_axes(s, "Unsqueeze", x, &[axis as i64], shape)
}

fn list_of_axes(s: &mut Sketch, op: &str, x: Id, axes: &[i64], shape: Vec<i64>) -> Option<Id> {
    if s.opset < 13 {
        return s.simple(op, x, &[], shape, EXACT, vec![ints("axes", axes)]);
    }
    let list = s.ints(axes);
    s.simple(op, x, &[list], shape, EXACT, vec![])
}

fn gather(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    let places: &[i64] = match dice.below(3) {
        0 => &[2],
        1 => &[],
        _ => &[2, 2],
    };
    let n = places.iter().product::<i64>();
    let data = (0..n).flat_map(|_| (dice.below(v.shape[axis] as usize) as i64).to_le_bytes()).collect();
    let indices = s.raw(DataType::Int64, places, data);
    let shape = [&v.shape[..axis], places, &v.shape[axis + 1..]].concat();
    s.simple("Gather", x, &[indices], shape, EXACT, vec![int("axis", said)])
}

fn expand(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 0)?;
    let mut shape = s.values[x].shape.clone();
    let mut target = shape.clone();
    for (d, t) in shape.iter_mut().zip(&mut target) {
        if *d == 1 {
            *d = dice.pick(&[3, 1, 2]);
            *t = *d;
        } else if dice.once_in(3) {
            *t = 1;
        }
    }
    if dice.once_in(3) {
        shape.insert(0, 2);
        target.insert(0, 2);
    }
    let list = s.ints(&target);
    s.simple("Expand", x, &[list], shape, EXACT, vec![])
}

fn tile(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let v = s.values[x].clone();
    let repeats: Vec<i64> = v.shape.iter().map(|_| dice.pick(&[1, 2, 1])).collect();
    let shape = v.shape.iter().zip(&repeats).map(|(d, r)| d * r).collect();
    let list = s.ints(&repeats);
    s.simple("Tile", x, &[list], shape, EXACT, vec![])
}

fn conv(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant)?;
    let v = s.values[x].clone();
    let (channels, spatial) = (v.shape[1], v.rank() - 2);
    let depthwise = dice.once_in(3);
    let group = if depthwise { channels } else { 1 };
    let out = if depthwise { channels } else { 1 + dice.below(4) as i64 };
    let kernel = dice.pick(&[1i64, 3]);
    let weights = [vec![out, channels / group], vec![kernel; spatial]].concat();
    let w = s.constant(dice, &weights);
    let mut operands = vec![x, w];
    if dice.once_in(2) {
        operands.push(s.constant(dice, &[out]));
    }
    let shape = [vec![v.shape[0], out], v.shape[2..].to_vec()].concat();
    let names = operands.iter().map(|&o| s.values[o].name.clone()).collect();
    let attributes = vec![int("group", group), ints("pads", &vec![kernel / 2; 2 * spatial])];
    s.op("Conv", &operands, names, &[(DataType::Float, shape)], CONTRACTS, attributes)
}

fn pool(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant)?;
    let v = s.values[x].clone();
    let spatial = v.rank() - 2;
    if v.shape[2..].iter().any(|&d| d < 2) {
        return None;
    }
    let stride = dice.pick(&[1i64, 2]);
    let shape = [v.shape[..2].to_vec(), v.shape[2..].iter().map(|d| (d - 2) / stride + 1).collect()].concat();
    let attributes = vec![ints("kernel_shape", &vec![2; spatial]), ints("strides", &vec![stride; spatial])];
    let (op, effect) = dice.pick(&[("MaxPool", EXACT), ("AveragePool", ROUNDS)]);
    s.simple(op, x, &[], shape, effect, attributes)
}

fn global_pool(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && (3..=5).contains(&v.rank()) && !v.constant)?;
    let v = s.values[x].clone();
    let shape = [v.shape[..2].to_vec(), vec![1; v.rank() - 2]].concat();
    s.simple("GlobalAveragePool", x, &[], shape, ROUNDS, vec![])
}

fn batch_norm(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let c = v.shape[1];
    let mut operands = vec![x];
    for _ in 0..3 {
        operands.push(s.constant(dice, &[c]));
    }
    let variance = (0..c).flat_map(|i| (1.0 + i as f32 / 4.0).to_le_bytes()).collect();
    let variance = s.raw(DataType::Float, &[c], variance);
    let mut names: Vec<String> = operands.iter().map(|&o| s.values[o].name.clone()).collect();
    names.push(variance);
    s.op("BatchNormalization", &operands, names, &[(DataType::Float, v.shape)], ROUNDS, vec![])
}

fn layer_norm(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 1)?;
    let v = s.values[x].clone();
    let (axis, said) = axis_of(s, dice, x);
    let elements: i64 = v.shape[axis..].iter().product();
    // Of few numbers the variance may be nothing but rounding.
    if s.opset < 17 || elements < 4 || !v.exact {
        return None;
    }
    let c = s.constant(dice, &v.shape[axis..]);
    let names = vec![v.name.clone(), s.values[c].name.clone()];
    s.op("LayerNormalization", &[x, c], names, &[(DataType::Float, v.shape)], ROUNDS, vec![int("axis", said)])
}

fn matmul(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let k = v.shape[v.rank() - 1];
    let lead = v.shape[..v.rank() - 2].to_vec();
    let partner = |o: &crate::sketch::Value| {
        o.dtype == DataType::Float && !o.constant && o.rank() == v.rank() && o.shape[o.rank() - 2] == k && o.shape[..o.rank() - 2] == lead
    };
    let other = if dice.once_in(2) { s.choose(dice, partner) } else { None };
    let y = match other {
        Some(y) => y,
        None => {
            let n = 1 + dice.below(4) as i64;
            let batched = dice.once_in(4);
            let shape = if batched { [lead.clone(), vec![k, n]].concat() } else { vec![k, n] };
            s.constant(dice, &shape)
        }
    };
    let n = *s.values[y].shape.last()?;
    let mut shape = v.shape.clone();
    *shape.last_mut()? = n;
    let names = vec![v.name, s.values[y].name.clone()];
    s.op("MatMul", &[x, y], names, &[(DataType::Float, shape)], CONTRACTS, vec![])
}

fn gemm(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.rank() == 2 && !v.constant)?;
    let v = s.values[x].clone();
    let (a, b) = (dice.below(2), dice.below(2));
    let (m, k) = (v.shape[a], v.shape[1 - a]);
    let n = 1 + dice.below(4) as i64;
    let w = s.constant(dice, &if b == 1 { [n, k] } else { [k, n] });
    let mut operands = vec![x, w];
    if s.opset < 11 || dice.once_in(2) {
        operands.push(s.constant(dice, &[n]));
    }
    let names = operands.iter().map(|&o| s.values[o].name.clone()).collect();
    let attributes = vec![int("transA", a as i64), int("transB", b as i64)];
    s.op("Gemm", &operands, names, &[(DataType::Float, vec![m, n])], CONTRACTS, attributes)
}

/// Shape arithmetic as exporters write it: the first extent is read, the rest is one.
fn by_shape(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.float(dice, 2)?;
    let v = s.values[x].clone();
    let at = dice.below(v.rank());
    let name = s.read(x);
    let shape = s.helper("Shape", vec![name], vec![]);
    let place = s.ints(&[at as i64]);
    let extent = s.helper("Gather", vec![shape, place], vec![int("axis", 0)]);
    let rest = s.ints(&[-1]);
    let target = s.helper("Concat", vec![extent, rest], vec![int("axis", 0)]);
    let result = vec![v.shape[at], v.elements() / v.shape[at]];
    s.simple("Reshape", x, &[target], result, EXACT, vec![])
}

/// A pair of quantization and back, by one scale or by one per index of an axis.
fn quantize(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

fn space(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.choose(dice, |v| v.dtype == DataType::Float && v.rank() == 4 && !v.constant)?;
    let v = s.values[x].shape.clone();
    if v[1] % 4 == 0 && dice.once_in(2) {
        let shape = vec![v[0], v[1] / 4, v[2] * 2, v[3] * 2];
        return s.simple("DepthToSpace", x, &[], shape, EXACT, vec![int("blocksize", 2)]);
    }
    if v[2] % 2 != 0 || v[3] % 2 != 0 {
        return None;
    }
    let shape = vec![v[0], v[1] * 4, v[2] / 2, v[3] / 2];
    s.simple("SpaceToDepth", x, &[], shape, EXACT, vec![int("blocksize", 2)])
}
