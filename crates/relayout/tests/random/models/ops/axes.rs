//! Ops that name axes by number, in attributes or operands.

use super::*;

pub(super) fn concat(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let (axis, said) = axis_of(s, dice, x);
    let v = s.values[x].clone();
    let beside = |o: &crate::models::sketch::Value| {
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

pub(super) fn split(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn slice(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn pad(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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
        return s.simple(
            "Pad",
            x,
            &[],
            shape,
            EXACT,
            vec![ints("pads", &pads), text("mode", mode), float("value", 0.5)],
        );
    }
    let value =
        if dice.once_in(2) { s.raw(DataType::Float, &[], 0.5f32.to_le_bytes().to_vec()) } else { String::new() };
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

pub(super) fn reduce(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn softmax(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn arg(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn top_k(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn cum_sum(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn gather(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn expand(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
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

pub(super) fn tile(s: &mut Sketch, dice: &mut Dice<'_>) -> Option<Id> {
    let x = s.any(dice, 1)?;
    let v = s.values[x].clone();
    let repeats: Vec<i64> = v.shape.iter().map(|_| dice.pick(&[1, 2, 1])).collect();
    let shape = v.shape.iter().zip(&repeats).map(|(d, r)| d * r).collect();
    let list = s.ints(&repeats);
    s.simple("Tile", x, &[list], shape, EXACT, vec![])
}
